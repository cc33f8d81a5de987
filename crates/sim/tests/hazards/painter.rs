//! A pipeline that draws over an image: in a render pass, or with the newer interface in dynamic rendering.

use ash::vk;

use super::fixture::{Draw, Form};

/// Texels of the image, across and down.
const SIDE: u32 = 16;

/// Compiled from `painter.wgsl` by `examples/shaders`.
const SHADER: &[u8] = include_bytes!("painter.spv");

pub(crate) struct Painter<'a> {
    device: &'a ash::Device,
    view: vk::ImageView,
    layout: vk::PipelineLayout,
    pipeline: vk::Pipeline,
    /// Null in dynamic rendering.
    pass: vk::RenderPass,
    framebuffer: vk::Framebuffer,
}

const ATTACHED: vk::ImageLayout = vk::ImageLayout::COLOR_ATTACHMENT_OPTIMAL;
const FORMAT: vk::Format = vk::Format::R8G8B8A8_UNORM;

impl<'a> Painter<'a> {
    /// For the first level of the first layer.
    pub(crate) fn new(device: &'a ash::Device, image: vk::Image, form: Form) -> Self {
        let range = vk::ImageSubresourceRange {
            aspect_mask: vk::ImageAspectFlags::COLOR,
            base_mip_level: 0,
            level_count: 1,
            base_array_layer: 0,
            layer_count: 1,
        };
        let info = vk::ImageViewCreateInfo::default()
            .image(image)
            .view_type(vk::ImageViewType::TYPE_2D)
            .format(FORMAT)
            .subresource_range(range);
        let view = unsafe { device.create_image_view(&info, None) }.unwrap();
        let layout =
            unsafe { device.create_pipeline_layout(&vk::PipelineLayoutCreateInfo::default(), None) }.unwrap();
        let (mut pass, mut framebuffer) = (vk::RenderPass::null(), vk::Framebuffer::null());
        if form == Form::First {
            (pass, framebuffer) = render_pass(device, view);
        }
        let pipeline = pipeline(device, layout, pass);
        Self { device, view, layout, pipeline, pass, framebuffer }
    }

    /// The buffers have vertices, indices and commands.
    pub(crate) fn render(&self, commands: vk::CommandBuffer, draws: &[Draw], buffers: [vk::Buffer; 3]) {
        let device = self.device;
        let [vertices, indices, numbers] = buffers;
        let colors = [vk::RenderingAttachmentInfo::default()
            .image_view(self.view)
            .image_layout(ATTACHED)
            .load_op(vk::AttachmentLoadOp::CLEAR)
            .store_op(vk::AttachmentStoreOp::STORE)];
        let extent = vk::Extent2D { width: SIDE, height: SIDE };
        let area = vk::Rect2D { extent, ..Default::default() };
        let (inline, in_pass) = (vk::SubpassContents::INLINE, self.pass != vk::RenderPass::null());
        let values = [vk::ClearValue::default()];
        let begin = vk::RenderPassBeginInfo::default()
            .render_pass(self.pass)
            .framebuffer(self.framebuffer)
            .render_area(area)
            .clear_values(&values);
        let info = vk::RenderingInfo::default().render_area(area).layer_count(1).color_attachments(&colors);
        match in_pass {
            true => unsafe { device.cmd_begin_render_pass(commands, &begin, inline) },
            false => unsafe { device.cmd_begin_rendering(commands, &info) },
        }
        unsafe { device.cmd_bind_pipeline(commands, vk::PipelineBindPoint::GRAPHICS, self.pipeline) };
        unsafe { device.cmd_bind_vertex_buffers(commands, 0, &[vertices], &[0]) };
        unsafe { device.cmd_bind_index_buffer(commands, indices, 0, vk::IndexType::UINT16) };
        for draw in draws {
            match draw {
                Draw::Plain => unsafe { device.cmd_draw(commands, 3, 1, 0, 0) },
                Draw::Indexed => unsafe { device.cmd_draw_indexed(commands, 3, 1, 0, 0, 0) },
                Draw::Indirect => unsafe { device.cmd_draw_indirect(commands, numbers, 0, 1, 16) },
            }
        }
        match in_pass {
            true => unsafe { device.cmd_end_render_pass(commands) },
            false => unsafe { device.cmd_end_rendering(commands) },
        }
    }
}

impl Drop for Painter<'_> {
    fn drop(&mut self) {
        unsafe { self.device.destroy_pipeline(self.pipeline, None) };
        unsafe { self.device.destroy_pipeline_layout(self.layout, None) };
        unsafe { self.device.destroy_framebuffer(self.framebuffer, None) };
        unsafe { self.device.destroy_render_pass(self.pass, None) };
        unsafe { self.device.destroy_image_view(self.view, None) };
    }
}

/// A pass that waits for nothing and changes nothing.
fn render_pass(device: &ash::Device, view: vk::ImageView) -> (vk::RenderPass, vk::Framebuffer) {
    let attachments = [vk::AttachmentDescription::default()
        .format(FORMAT)
        .samples(vk::SampleCountFlags::TYPE_1)
        .load_op(vk::AttachmentLoadOp::CLEAR)
        .store_op(vk::AttachmentStoreOp::STORE)
        .initial_layout(ATTACHED)
        .final_layout(ATTACHED)];
    let colors = [vk::AttachmentReference { attachment: 0, layout: ATTACHED }];
    let subpasses = [vk::SubpassDescription::default().color_attachments(&colors)];
    let info = vk::RenderPassCreateInfo::default().attachments(&attachments).subpasses(&subpasses);
    let pass = unsafe { device.create_render_pass(&info, None) }.unwrap();
    let views = [view];
    let info = vk::FramebufferCreateInfo::default().render_pass(pass).attachments(&views);
    let info = info.width(SIDE).height(SIDE).layers(1);
    (pass, unsafe { device.create_framebuffer(&info, None) }.unwrap())
}

fn pipeline(device: &ash::Device, layout: vk::PipelineLayout, pass: vk::RenderPass) -> vk::Pipeline {
    let code = ash::util::read_spv(&mut std::io::Cursor::new(SHADER)).unwrap();
    let code = vk::ShaderModuleCreateInfo::default().code(&code);
    let module = unsafe { device.create_shader_module(&code, None) }.unwrap();
    let stage =
        |stage, name| vk::PipelineShaderStageCreateInfo::default().stage(stage).module(module).name(name);
    let stages =
        [stage(vk::ShaderStageFlags::VERTEX, c"corner"), stage(vk::ShaderStageFlags::FRAGMENT, c"white")];
    let bindings = [vk::VertexInputBindingDescription::default().stride(4)];
    let attributes = [vk::VertexInputAttributeDescription::default().format(vk::Format::R32_UINT)];
    let vertices = vk::PipelineVertexInputStateCreateInfo::default()
        .vertex_binding_descriptions(&bindings)
        .vertex_attribute_descriptions(&attributes);
    let assembly =
        vk::PipelineInputAssemblyStateCreateInfo::default().topology(vk::PrimitiveTopology::TRIANGLE_LIST);
    let extent = vk::Extent2D { width: SIDE, height: SIDE };
    let viewports = [vk::Viewport { width: 16.0, height: 16.0, max_depth: 1.0, ..Default::default() }];
    let scissors = [vk::Rect2D { extent, ..Default::default() }];
    let viewport = vk::PipelineViewportStateCreateInfo::default().viewports(&viewports).scissors(&scissors);
    let raster = vk::PipelineRasterizationStateCreateInfo::default().line_width(1.0);
    let samples =
        vk::PipelineMultisampleStateCreateInfo::default().rasterization_samples(vk::SampleCountFlags::TYPE_1);
    let blends =
        [vk::PipelineColorBlendAttachmentState::default().color_write_mask(vk::ColorComponentFlags::RGBA)];
    let blend = vk::PipelineColorBlendStateCreateInfo::default().attachments(&blends);
    let formats = [FORMAT];
    let mut rendering = vk::PipelineRenderingCreateInfo::default().color_attachment_formats(&formats);
    let mut info = vk::GraphicsPipelineCreateInfo::default()
        .stages(&stages)
        .vertex_input_state(&vertices)
        .input_assembly_state(&assembly)
        .viewport_state(&viewport)
        .rasterization_state(&raster)
        .multisample_state(&samples)
        .color_blend_state(&blend)
        .layout(layout)
        .render_pass(pass);
    if pass == vk::RenderPass::null() {
        info = info.push_next(&mut rendering);
    }
    let made = unsafe { device.create_graphics_pipelines(vk::PipelineCache::null(), &[info], None) };
    unsafe { device.destroy_shader_module(module, None) };
    made.unwrap()[0]
}
