//! A pipeline that paints a picture in one color, computed from a word of a storage buffer, a word of a vertex buffer,
//! and a texel. On simulated GPUs, a closure replaces the shader.

use std::ffi::CStr;

use ash::vk;
use sublet_frame::{Frames, PipelineLayout, RenderPassInfo};

/// Returns the words of a shader. `examples/shaders` compiles it from the WGSL beside it.
pub(crate) fn words(code: &[u8]) -> Vec<u32> {
    ash::util::read_spv(&mut std::io::Cursor::new(code)).unwrap()
}

/// Returns a binding of one descriptor.
pub(crate) fn binding(
    number: u32,
    kind: vk::DescriptorType,
    stages: vk::ShaderStageFlags,
) -> vk::DescriptorSetLayoutBinding<'static> {
    vk::DescriptorSetLayoutBinding::default()
        .binding(number)
        .descriptor_type(kind)
        .descriptor_count(1)
        .stage_flags(stages)
}

pub(crate) struct Painter {
    device: ash::Device,
    pub(crate) layout: PipelineLayout,
    pub(crate) pipeline: vk::Pipeline,
}

impl Painter {
    /// Creates a pipeline for colors of four bytes.
    pub(crate) fn new(device: &ash::Device, frames: &Frames) -> Self {
        let stages = vk::ShaderStageFlags::FRAGMENT;
        let bindings = [
            binding(0, vk::DescriptorType::STORAGE_BUFFER, stages),
            binding(1, vk::DescriptorType::SAMPLED_IMAGE, stages),
        ];
        let sets = [vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings)];
        let layout = unsafe { frames.create_pipeline_layout(&sets, &[]) }.unwrap();
        let shape = PipelineInfo {
            shader: include_bytes!("paint.spv"),
            stages: [c"corner", c"paint"],
            input: vk::VertexInputBindingDescription {
                stride: 4,
                input_rate: vk::VertexInputRate::INSTANCE,
                ..Default::default()
            },
            attribute: vk::Format::R32_UINT,
            depth: vk::Format::UNDEFINED,
            dynamic: &DYNAMIC,
        };
        let pipeline = pipeline(device, frames, layout.handle(), &shape);
        Self { device: device.clone(), layout, pipeline }
    }
}

impl Drop for Painter {
    /// The frames were dropped, or the device is idle.
    fn drop(&mut self) {
        unsafe { self.device.destroy_pipeline(self.pipeline, None) };
    }
}

/// The parameters of a pipeline. Each pipeline draws triangles with one attribute, in colors of four bytes.
pub(crate) struct PipelineInfo<'a> {
    /// SPIR-V.
    pub(crate) shader: &'a [u8],
    pub(crate) stages: [&'a CStr; 2],
    pub(crate) input: vk::VertexInputBindingDescription,
    pub(crate) attribute: vk::Format,
    /// The depth format, tested and written, or `UNDEFINED`.
    pub(crate) depth: vk::Format,
    /// The dynamic state.
    pub(crate) dynamic: &'a [vk::DynamicState],
}

/// The state that [`CommandList::set_viewport`](sublet_frame::CommandList::set_viewport) sets.
pub(crate) const DYNAMIC: [vk::DynamicState; 2] = [vk::DynamicState::VIEWPORT, vk::DynamicState::SCISSOR];

pub(crate) fn pipeline(
    device: &ash::Device,
    frames: &Frames,
    layout: vk::PipelineLayout,
    shape: &PipelineInfo<'_>,
) -> vk::Pipeline {
    let code = words(shape.shader);
    let code = vk::ShaderModuleCreateInfo::default().code(&code);
    let module = unsafe { device.create_shader_module(&code, None) }.unwrap();
    let stage =
        |stage, name| vk::PipelineShaderStageCreateInfo::default().stage(stage).module(module).name(name);
    let [vertex, fragment] = shape.stages;
    let stages =
        [stage(vk::ShaderStageFlags::VERTEX, vertex), stage(vk::ShaderStageFlags::FRAGMENT, fragment)];
    let bindings = [shape.input];
    let attributes = [vk::VertexInputAttributeDescription::default().format(shape.attribute)];
    let vertices = vk::PipelineVertexInputStateCreateInfo::default()
        .vertex_binding_descriptions(&bindings)
        .vertex_attribute_descriptions(&attributes);
    let assembly =
        vk::PipelineInputAssemblyStateCreateInfo::default().topology(vk::PrimitiveTopology::TRIANGLE_LIST);
    let viewport = vk::PipelineViewportStateCreateInfo::default().viewport_count(1).scissor_count(1);
    let states = vk::PipelineDynamicStateCreateInfo::default().dynamic_states(shape.dynamic);
    let raster = vk::PipelineRasterizationStateCreateInfo::default().line_width(1.0);
    let samples =
        vk::PipelineMultisampleStateCreateInfo::default().rasterization_samples(vk::SampleCountFlags::TYPE_1);
    let tests = shape.depth != vk::Format::UNDEFINED;
    let depth = vk::PipelineDepthStencilStateCreateInfo::default()
        .depth_test_enable(tests)
        .depth_write_enable(tests)
        .depth_compare_op(vk::CompareOp::LESS_OR_EQUAL);
    let blends =
        [vk::PipelineColorBlendAttachmentState::default().color_write_mask(vk::ColorComponentFlags::RGBA)];
    let blend = vk::PipelineColorBlendStateCreateInfo::default().attachments(&blends);
    let formats = [vk::Format::R8G8B8A8_UNORM];
    let mut rendering = vk::PipelineRenderingCreateInfo::default()
        .color_attachment_formats(&formats)
        .depth_attachment_format(shape.depth);
    let pass = RenderPassInfo::new(&formats, shape.depth);
    let pass = unsafe { frames.render_pass(&pass) }.unwrap();
    let mut info = vk::GraphicsPipelineCreateInfo::default()
        .stages(&stages)
        .vertex_input_state(&vertices)
        .input_assembly_state(&assembly)
        .viewport_state(&viewport)
        .rasterization_state(&raster)
        .multisample_state(&samples)
        .depth_stencil_state(&depth)
        .color_blend_state(&blend)
        .dynamic_state(&states)
        .layout(layout)
        .render_pass(pass);
    if pass == vk::RenderPass::null() {
        info = info.push_next(&mut rendering);
    }
    let made = unsafe { device.create_graphics_pipelines(vk::PipelineCache::null(), &[info], None) };
    unsafe { device.destroy_shader_module(module, None) };
    made.unwrap()[0]
}
