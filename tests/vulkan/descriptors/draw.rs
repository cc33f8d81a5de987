//! Draws that read an image and a color through Vulkan's own heap. Simulated devices have no rasterizer.

use ash::vk;
use sublet_descriptors::{Descriptor, DescriptorKind, HeapKind, HeapMappings, NativeStore, heap_ffi};
use sublet_examples::Context;

use super::native::{
    FORMAT, Heap, heap, image_of_two_texels, info, on_each_native_device, picture, push, texels, to_general,
    view, write_image,
};
use super::{Data, words};
use crate::{Fixture, Image};

/// Covers the target with the product of a texel and a color. Push data has their slots.
const DRAW: &[u8] = include_bytes!("draw.spv");

#[test]
fn draws_read_through_a_native_heap() {
    on_each_native_device(|fixture| {
        if !fixture.context.draws() {
            return;
        }
        let device = fixture.descriptor_device();
        let types = [DescriptorKind::SampledImage, DescriptorKind::StorageBuffer];
        let heap = heap(fixture, &device, &info(HeapKind::Resource, &types));
        let source = picture(fixture, [[0; 4], [200, 100, 50, 255]]);
        let usage = vk::ImageUsageFlags::COLOR_ATTACHMENT | vk::ImageUsageFlags::TRANSFER_SRC;
        let target = image_of_two_texels(fixture, usage);
        let mut data = Data::new(fixture, 1);
        data.set_task(0, [1.0, 0.5, 0.0, 1.0].map(f32::to_bits));
        let range = heap.allocate(3).unwrap();
        // SAFETY: the buffer is live, and no shader reads the slot.
        let color = unsafe { heap.write(range.id(), 2, &Descriptor::StorageBuffer(data.task(0))) }.unwrap();
        let image = write_image(&heap, DescriptorKind::SampledImage, &source);
        let pipeline = pipeline(fixture.context, &heap);
        let seen = draw(fixture, &heap, pipeline, &target, |commands| {
            push(&device, commands, &[image, color]);
        });
        assert_eq!(seen, [200, 50, 0, 255, 200, 50, 0, 255]);
        let vulkan = fixture.context.device();
        // SAFETY: all submissions were waited for, and their command buffers are freed; here and below.
        unsafe { vulkan.destroy_pipeline(pipeline, None) };
        // SAFETY: as above.
        unsafe { NativeStore::destroy(heap.into_store()) };
        [source, target].into_iter().for_each(|image| fixture.destroy_image(image));
        data.destroy();
    });
}

/// Creates a pipeline without a layout. Both of its stages have the mappings.
fn pipeline(context: &Context, heap: &Heap<'_>) -> vk::Pipeline {
    let device = context.device();
    let code = words(DRAW);
    let module = vk::ShaderModuleCreateInfo::default().code(&code);
    // SAFETY: the code is a compiler's output.
    let module = unsafe { device.create_shader_module(&module, None) }.unwrap();
    let mut mappings = [0, 1].map(|_| HeapMappings::new(heap.store().mappings(0)));
    let [of_vertex, of_fragment] = mappings.each_mut();
    let stage = |stage| vk::PipelineShaderStageCreateInfo::default().module(module).stage(stage);
    let stages = [
        stage(vk::ShaderStageFlags::VERTEX).name(c"corner").push_next(of_vertex.info()),
        stage(vk::ShaderStageFlags::FRAGMENT).name(c"texel").push_next(of_fragment.info()),
    ];
    let vertices = vk::PipelineVertexInputStateCreateInfo::default();
    let assembly =
        vk::PipelineInputAssemblyStateCreateInfo::default().topology(vk::PrimitiveTopology::TRIANGLE_LIST);
    let area = vk::Rect2D { extent: vk::Extent2D { width: 2, height: 1 }, ..Default::default() };
    let viewports = [vk::Viewport { width: 2.0, height: 1.0, max_depth: 1.0, ..Default::default() }];
    let viewport = vk::PipelineViewportStateCreateInfo::default()
        .viewports(&viewports)
        .scissors(std::slice::from_ref(&area));
    let raster = vk::PipelineRasterizationStateCreateInfo::default().line_width(1.0);
    let samples =
        vk::PipelineMultisampleStateCreateInfo::default().rasterization_samples(vk::SampleCountFlags::TYPE_1);
    let blends =
        [vk::PipelineColorBlendAttachmentState::default().color_write_mask(vk::ColorComponentFlags::RGBA)];
    let blend = vk::PipelineColorBlendStateCreateInfo::default().attachments(&blends);
    let mut rendering = vk::PipelineRenderingCreateInfo::default().color_attachment_formats(&[FORMAT]);
    let mut flags =
        vk::PipelineCreateFlags2CreateInfoKHR::default().flags(heap_ffi::PIPELINE_CREATE_2_DESCRIPTOR_HEAP);
    let info = vk::GraphicsPipelineCreateInfo::default()
        .stages(&stages)
        .vertex_input_state(&vertices)
        .input_assembly_state(&assembly)
        .viewport_state(&viewport)
        .rasterization_state(&raster)
        .multisample_state(&samples)
        .color_blend_state(&blend)
        .push_next(&mut rendering)
        .push_next(&mut flags);
    // SAFETY: the create-info is valid, and its chains point to live structures.
    let made = unsafe { device.create_graphics_pipelines(vk::PipelineCache::null(), &[info], None) };
    // SAFETY: a pipeline does not need its module after its creation.
    unsafe { device.destroy_shader_module(module, None) };
    made.unwrap()[0]
}

/// Draws a triangle over the target, and returns the two texels.
fn draw(
    fixture: &Fixture<'_>,
    heap: &Heap<'_>,
    pipeline: vk::Pipeline,
    target: &Image,
    push: impl Fn(vk::CommandBuffer),
) -> [u8; 8] {
    // SAFETY: the image is live and bound.
    let seen = unsafe { fixture.context.device().create_image_view(&view(target), None) }.unwrap();
    let attachments = [vk::RenderingAttachmentInfo::default()
        .image_view(seen)
        .image_layout(vk::ImageLayout::GENERAL)
        .load_op(vk::AttachmentLoadOp::CLEAR)
        .store_op(vk::AttachmentStoreOp::STORE)];
    let area = vk::Rect2D { extent: vk::Extent2D { width: 2, height: 1 }, ..Default::default() };
    let rendering =
        vk::RenderingInfo::default().render_area(area).layer_count(1).color_attachments(&attachments);
    let record = |vulkan: &ash::Device, commands: vk::CommandBuffer| {
        let stage = vk::PipelineStageFlags::COLOR_ATTACHMENT_OUTPUT;
        to_general(vulkan, commands, target, (stage, vk::AccessFlags::COLOR_ATTACHMENT_WRITE));
        // SAFETY: it is being recorded, and is primary.
        unsafe { heap.store().cmd_bind(commands) };
        push(commands);
        // SAFETY: the view is of the target, and the feature is enabled.
        unsafe { vulkan.cmd_begin_rendering(commands, &rendering) };
        // SAFETY: it is a graphics pipeline.
        unsafe { vulkan.cmd_bind_pipeline(commands, vk::PipelineBindPoint::GRAPHICS, pipeline) };
        // SAFETY: everything that the pipeline needs is bound.
        unsafe { vulkan.cmd_draw(commands, 3, 1, 0, 0) };
        // SAFETY: rendering was begun.
        unsafe { vulkan.cmd_end_rendering(commands) };
    };
    fixture.context.submit(record).unwrap();
    // SAFETY: the submission was waited for.
    unsafe { fixture.context.device().destroy_image_view(seen, None) };
    texels(fixture, target)
}
