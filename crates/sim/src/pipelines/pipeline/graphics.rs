//! Graphics pipelines. Of their state that is kept which says what memory a draw touches, and which attachments it
//! fits.
#![expect(unsafe_code, reason = "the functions have the C ABI")]

use std::collections::BTreeMap;

use ash::vk;

use super::compute::{all_flags, check_cache, make, program};
use crate::facts::broken::{Broken, refuse_if};
use crate::facts::chain;
use crate::objects::entry::on_device;
use crate::objects::passes::Formats;
use crate::objects::pipelines::{DYNAMIC, Drawing, PipelineProgram, Touch, VertexBuffer};
use crate::objects::state::DeviceObject;

pub(crate) unsafe extern "system" fn create(
    device: vk::Device,
    cache: vk::PipelineCache,
    count: u32,
    p_infos: *const vk::GraphicsPipelineCreateInfo<'_>,
    callbacks: *const vk::AllocationCallbacks<'_>,
    p_pipelines: *mut vk::Pipeline,
) -> vk::Result {
    on_device(device, "vkCreateGraphicsPipelines", |device| {
        let rules = [
            "VUID-vkCreateGraphicsPipelines-createInfoCount-arraylength",
            "VUID-vkCreateGraphicsPipelines-pipelineCache-parameter",
        ];
        // SAFETY: VUID-vkCreateGraphicsPipelines-pCreateInfos-parameter.
        let infos = unsafe { chain::array(p_infos, count) };
        let programs = check_cache(device, cache, infos.is_empty(), rules).and_then(|()| {
            // SAFETY: VUID-vkCreateGraphicsPipelines-pCreateInfos-parameter: a valid structure.
            infos.iter().map(|info| unsafe { graphics(device, info) }).collect()
        });
        // SAFETY: VUID-vkCreateGraphicsPipelines-pAllocator-parameter; no lock is held; and `pPipelines` has
        // `createInfoCount` elements: VUID-vkCreateGraphicsPipelines-pPipelines-parameter.
        unsafe { make(device, programs, infos.len(), callbacks, p_pipelines) }
    })
}

/// The program of a graphics pipeline.
///
/// # Safety
///
/// `info` is valid, and so is what it points to and does not ignore.
unsafe fn graphics(
    device: &DeviceObject,
    info: &vk::GraphicsPipelineCreateInfo<'_>,
) -> Result<PipelineProgram, Broken> {
    // SAFETY: the promise of `graphics`: VUID-VkGraphicsPipelineCreateInfo-pStages-parameter.
    let stages = unsafe { chain::array(info.p_stages, info.stage_count) };
    refuse_if!(!stages.iter().any(|stage| stage.stage == vk::ShaderStageFlags::VERTEX)
        => "VUID-VkGraphicsPipelineCreateInfo-stage-02096", "there is no vertex shader");
    // SAFETY: the promise of `graphics`: VUID-VkGraphicsPipelineCreateInfo-pNext-pNext.
    let flags = unsafe { all_flags(info.flags, info.p_next) };
    let rules =
        ["VUID-VkGraphicsPipelineCreateInfo-flags-11311", "VUID-VkGraphicsPipelineCreateInfo-layout-06602"];
    // SAFETY: the promise of `graphics`.
    let mut program = unsafe { program(device, flags, stages, info.layout, rules) }?;
    // SAFETY: the promise of `graphics`.
    program.drawing = Some(unsafe { drawing(device, info) }?);
    Ok(program)
}

/// # Safety
///
/// As for [`graphics`].
unsafe fn drawing(
    device: &DeviceObject,
    info: &vk::GraphicsPipelineCreateInfo<'_>,
) -> Result<Drawing, Broken> {
    let mut sets = [false; DYNAMIC.len()];
    // SAFETY: the promise of `graphics`: VUID-VkGraphicsPipelineCreateInfo-pDynamicState-parameter.
    if let Some(dynamic) = unsafe { chain::input(info.p_dynamic_state) } {
        // SAFETY: VUID-VkPipelineDynamicStateCreateInfo-pDynamicStates-parameter.
        for state in unsafe { chain::array(dynamic.p_dynamic_states, dynamic.dynamic_state_count) } {
            let Some(place) = DYNAMIC.iter().position(|(known, ..)| known == state) else {
                let text = format!("the simulated device has no commands for {state:?}");
                return Err(("SUBLET-unsupported-pipeline", text));
            };
            sets[place] = true;
        }
    }
    let mut buffers = BTreeMap::new();
    // SAFETY: the promise of `graphics`: VUID-VkGraphicsPipelineCreateInfo-pStages-02097.
    if let Some(vertices) = unsafe { chain::input(info.p_vertex_input_state) } {
        let (from, count) =
            (vertices.p_vertex_binding_descriptions, vertices.vertex_binding_description_count);
        // SAFETY: VUID-VkPipelineVertexInputStateCreateInfo-pVertexBindingDescriptions-parameter.
        for binding in unsafe { chain::array(from, count) } {
            let by_instance = binding.input_rate == vk::VertexInputRate::INSTANCE;
            buffers.insert(binding.binding, VertexBuffer { stride: binding.stride, by_instance });
        }
    }
    // SAFETY: the promise of `graphics`.
    let mut formats = unsafe { formats(device, info) }?;
    let mut drawing = Drawing {
        buffers,
        sets,
        formats: Formats::default(),
        colors: Vec::new(),
        depth: Touch::default(),
        stencil: Touch::default(),
    };
    // SAFETY: the promise of `graphics`: VUID-VkGraphicsPipelineCreateInfo-rasterizerDiscardEnable-09024.
    let raster = unsafe { chain::input(info.p_rasterization_state) };
    if raster.is_none_or(|raster| raster.rasterizer_discard_enable != vk::TRUE) {
        // SAFETY: it is not ignored: VUID-VkGraphicsPipelineCreateInfo-rasterizerDiscardEnable-00751.
        formats.samples =
            unsafe { chain::input(info.p_multisample_state) }.map(|state| state.rasterization_samples);
        if formats.colors.iter().any(|format| *format != vk::Format::UNDEFINED) {
            // SAFETY: it is not ignored: VUID-VkGraphicsPipelineCreateInfo-renderPass-09030.
            drawing.colors = unsafe { colors(info) };
        }
        if [formats.depth, formats.stencil].iter().any(|format| *format != vk::Format::UNDEFINED) {
            // SAFETY: it is not ignored: VUID-VkGraphicsPipelineCreateInfo-renderPass-09028.
            if let Some(state) = unsafe { chain::input(info.p_depth_stencil_state) } {
                let test = state.depth_test_enable == vk::TRUE;
                drawing.depth = Touch { reads: test, writes: test && state.depth_write_enable == vk::TRUE };
                let test = state.stencil_test_enable == vk::TRUE;
                let mask = state.front.write_mask | state.back.write_mask;
                drawing.stencil = Touch { reads: test, writes: test && mask != 0 };
            }
        }
    }
    drawing.formats = formats;
    Ok(drawing)
}

/// The accesses of a draw to colors.
///
/// # Safety
///
/// As for [`graphics`]; the state of blending is not ignored.
unsafe fn colors(info: &vk::GraphicsPipelineCreateInfo<'_>) -> Vec<Touch> {
    // SAFETY: the promise of `colors`.
    let Some(blend) = (unsafe { chain::input(info.p_color_blend_state) }) else { return Vec::new() };
    // SAFETY: VUID-VkPipelineColorBlendStateCreateInfo-pAttachments-07353.
    let attachments = unsafe { chain::array(blend.p_attachments, blend.attachment_count) };
    let touch = |state: &vk::PipelineColorBlendAttachmentState| {
        let writes = !state.color_write_mask.is_empty();
        let mixes = state.blend_enable == vk::TRUE || blend.logic_op_enable == vk::TRUE;
        Touch { reads: writes && mixes, writes }
    };
    attachments.iter().map(touch).collect()
}

/// The attachments that a pipeline is for, but for their samples.
///
/// # Safety
///
/// As for [`graphics`].
unsafe fn formats(
    device: &DeviceObject,
    info: &vk::GraphicsPipelineCreateInfo<'_>,
) -> Result<Formats, Broken> {
    if info.render_pass == vk::RenderPass::null() {
        // SAFETY: the promise of `graphics`: VUID-VkGraphicsPipelineCreateInfo-pNext-pNext.
        let Some(rendering) = (unsafe { chain::find::<vk::PipelineRenderingCreateInfo<'_>>(info.p_next) })
        else {
            return Ok(Formats::default());
        };
        // SAFETY: VUID-VkGraphicsPipelineCreateInfo-renderPass-06579.
        let colors =
            unsafe { chain::array(rendering.p_color_attachment_formats, rendering.color_attachment_count) };
        return Ok(Formats {
            colors: colors.to_vec(),
            depth: rendering.depth_attachment_format,
            stencil: rendering.stencil_attachment_format,
            view_mask: rendering.view_mask,
            ..Formats::default()
        });
    }
    let state = device.state.lock();
    let rule = "VUID-VkGraphicsPipelineCreateInfo-renderPass-06603";
    let pass = state.known(device, info.render_pass, state.passes.passes.get(&info.render_pass), rule)?;
    refuse_if!(info.subpass != 0 => "VUID-VkGraphicsPipelineCreateInfo-renderPass-06046",
        "the subpass is {}, and the pass has one", info.subpass);
    Ok(pass.info.formats.clone())
}
