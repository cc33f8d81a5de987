//! A pipeline that paints a picture in one color, which is made of a word of a storage buffer, one of a vertex buffer and
//! a texel. On simulated GPUs a closure does what the shader does.

use ash::vk;
use naga::back::spv;
use naga::valid::{Capabilities, ValidationFlags, Validator};
use sublet_frame::{Frames, PipelineLayout, RenderPassInfo};

/// SPIR-V of a shader in WGSL.
pub(crate) fn compile(shader: &str) -> Vec<u32> {
    let module = naga::front::wgsl::parse_str(shader).unwrap();
    let info = Validator::new(ValidationFlags::all(), Capabilities::all()).validate(&module).unwrap();
    let mut options = spv::Options { lang_version: (1, 0), ..Default::default() };
    // No names either, which there are in debug builds.
    options.flags = spv::WriterFlags::empty();
    spv::write_vec(&module, &info, &options, None).unwrap()
}

pub(crate) struct Painter {
    device: ash::Device,
    pub(crate) layout: PipelineLayout,
    pub(crate) pipeline: vk::Pipeline,
}

impl Painter {
    /// For colors of four bytes.
    pub(crate) fn new(device: &ash::Device, frames: &Frames) -> Self {
        let stages = vk::ShaderStageFlags::FRAGMENT;
        let binding = |number, kind| {
            vk::DescriptorSetLayoutBinding::default()
                .binding(number)
                .descriptor_type(kind)
                .descriptor_count(1)
                .stage_flags(stages)
        };
        let bindings =
            [binding(0, vk::DescriptorType::STORAGE_BUFFER), binding(1, vk::DescriptorType::SAMPLED_IMAGE)];
        let sets = [vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings)];
        let layout = unsafe { frames.create_pipeline_layout(&sets, &[]) }.unwrap();
        let pipeline = pipeline(device, frames, layout.handle());
        Self { device: device.clone(), layout, pipeline }
    }
}

impl Drop for Painter {
    /// The frames are gone, or the device is idle.
    fn drop(&mut self) {
        unsafe { self.device.destroy_pipeline(self.pipeline, None) };
    }
}

fn pipeline(device: &ash::Device, frames: &Frames, layout: vk::PipelineLayout) -> vk::Pipeline {
    let code = compile(include_str!("paint.wgsl"));
    let code = vk::ShaderModuleCreateInfo::default().code(&code);
    let module = unsafe { device.create_shader_module(&code, None) }.unwrap();
    let stage =
        |stage, name| vk::PipelineShaderStageCreateInfo::default().stage(stage).module(module).name(name);
    let stages =
        [stage(vk::ShaderStageFlags::VERTEX, c"corner"), stage(vk::ShaderStageFlags::FRAGMENT, c"paint")];
    let bindings = [vk::VertexInputBindingDescription {
        stride: 4,
        input_rate: vk::VertexInputRate::INSTANCE,
        ..Default::default()
    }];
    let attributes = [vk::VertexInputAttributeDescription::default().format(vk::Format::R32_UINT)];
    let vertices = vk::PipelineVertexInputStateCreateInfo::default()
        .vertex_binding_descriptions(&bindings)
        .vertex_attribute_descriptions(&attributes);
    let assembly =
        vk::PipelineInputAssemblyStateCreateInfo::default().topology(vk::PrimitiveTopology::TRIANGLE_LIST);
    let viewport = vk::PipelineViewportStateCreateInfo::default().viewport_count(1).scissor_count(1);
    let states = [vk::DynamicState::VIEWPORT, vk::DynamicState::SCISSOR];
    let states = vk::PipelineDynamicStateCreateInfo::default().dynamic_states(&states);
    let raster = vk::PipelineRasterizationStateCreateInfo::default().line_width(1.0);
    let samples =
        vk::PipelineMultisampleStateCreateInfo::default().rasterization_samples(vk::SampleCountFlags::TYPE_1);
    let blends =
        [vk::PipelineColorBlendAttachmentState::default().color_write_mask(vk::ColorComponentFlags::RGBA)];
    let blend = vk::PipelineColorBlendStateCreateInfo::default().attachments(&blends);
    let formats = [vk::Format::R8G8B8A8_UNORM];
    let mut rendering = vk::PipelineRenderingCreateInfo::default().color_attachment_formats(&formats);
    let pass = RenderPassInfo::new(&formats, vk::Format::UNDEFINED);
    let pass = unsafe { frames.render_pass(&pass) }.unwrap();
    let mut info = vk::GraphicsPipelineCreateInfo::default()
        .stages(&stages)
        .vertex_input_state(&vertices)
        .input_assembly_state(&assembly)
        .viewport_state(&viewport)
        .rasterization_state(&raster)
        .multisample_state(&samples)
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
