//! Lists on a real driver, with the validation layer and synchronization checks: expects correct results and no
//! messages. Skipped without a driver or layer; `SUBLET_REQUIRE_VULKAN=1` makes that a failure.
#![allow(
    clippy::unwrap_used,
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    clippy::undocumented_unsafe_blocks,
    clippy::multiple_unsafe_ops_per_block,
    missing_docs,
    reason = "a test may panic, and counts small things; what its unsafe code promises is the test's set-up"
)]

mod device;
mod heaps;
#[path = "../frames/make.rs"]
mod make;
mod mips;
#[path = "../frames/paint.rs"]
mod paint;
mod passes;
#[path = "../frames/random.rs"]
mod random;

use std::sync::Arc;

use ash::vk;
use sublet::{AllocationCreateInfo, Allocator, AllocatorCreateFlags, AllocatorCreateInfo, MemoryUsage};
use sublet_descriptors::{
    BindPoint, BindingModel, DescriptorDevice, DescriptorDeviceCreateInfo, DescriptorFeatures,
};
use sublet_frame::track::{Subresources, Use};
use sublet_frame::{
    Attachment, Buffer, Features, Frames, FramesCreateInfo, Image, ImageData, PipelineLayout, QueueInfo,
    RenderingInfo, StorageAccess, TransientImage, ViewInfo, ViewportInfo,
};

use device::Device;
use paint::{Painter, PipelineInfo, binding, words};

const COLOR: vk::ImageAspectFlags = vk::ImageAspectFlags::COLOR;
const SIZE: u32 = 16;

/// Creates the layout of one set with bindings of these types.
fn layout(frames: &Frames, stages: vk::ShaderStageFlags, kinds: &[vk::DescriptorType]) -> PipelineLayout {
    let bindings: Vec<_> = (0..).zip(kinds).map(|(number, &kind)| binding(number, kind, stages)).collect();
    let set = vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings);
    unsafe { frames.create_pipeline_layout(&[set], &[]) }.unwrap()
}

fn compute_pipeline(device: &Device, layout: vk::PipelineLayout, shader: &[u8]) -> vk::Pipeline {
    let code = words(shader);
    let info = vk::ShaderModuleCreateInfo::default().code(&code);
    let module = unsafe { device.device.create_shader_module(&info, None) }.unwrap();
    let stages = vk::ShaderStageFlags::COMPUTE;
    let stage = vk::PipelineShaderStageCreateInfo::default().stage(stages).module(module).name(c"main");
    let info = vk::ComputePipelineCreateInfo::default().stage(stage).layout(layout);
    let none = vk::PipelineCache::null();
    let made = unsafe { device.device.create_compute_pipelines(none, &[info], None) }.unwrap()[0];
    unsafe { device.device.destroy_shader_module(module, None) };
    made
}

fn image(frames: &Frames, format: vk::Format, mips: u32, usage: vk::ImageUsageFlags) -> Image {
    let info = vk::ImageCreateInfo::default()
        .image_type(vk::ImageType::TYPE_2D)
        .format(format)
        .extent(vk::Extent3D { width: SIZE, height: SIZE, depth: 1 })
        .mip_levels(mips)
        .array_layers(1)
        .samples(vk::SampleCountFlags::TYPE_1)
        .usage(usage | vk::ImageUsageFlags::TRANSFER_SRC | vk::ImageUsageFlags::TRANSFER_DST);
    unsafe { frames.create_image(&info, &AllocationCreateInfo::new(MemoryUsage::Auto)) }.unwrap()
}

fn buffer(frames: &Frames, size: u64, usage: vk::BufferUsageFlags) -> Buffer {
    let usage = usage | vk::BufferUsageFlags::TRANSFER_SRC | vk::BufferUsageFlags::TRANSFER_DST;
    let info = vk::BufferCreateInfo::default().size(size).usage(usage);
    unsafe { frames.create_buffer(&info, &AllocationCreateInfo::new(MemoryUsage::Auto)) }.unwrap()
}

/// Copies, clears and uploads repeatedly on the same resources.
fn transfers(frames: &mut Frames) {
    let (one, two) = (
        buffer(frames, 1024, vk::BufferUsageFlags::empty()),
        buffer(frames, 1024, vk::BufferUsageFlags::empty()),
    );
    let picture = image(frames, vk::Format::R8G8B8A8_UNORM, 5, vk::ImageUsageFlags::SAMPLED);
    for frame in 0..4_u8 {
        frames.begin().unwrap();
        let queue = frames.queue(0);
        let mut first = frames.list(queue).unwrap();
        first.fill_buffer(&one, 0..1024, 0x0101_0101 * u32::from(frame)).unwrap();
        first.update_buffer(&one, 0, &[9; 16]).unwrap();
        first.upload(&one, 8, &[frame + 1; 100]).unwrap();
        let copy = vk::BufferCopy { src_offset: 0, dst_offset: 0, size: 1024 };
        first.copy_buffer(&one, &two, &[copy]).unwrap();
        first.copy_buffer(&two, &one, &[copy]).unwrap();
        let mut second = frames.list(queue).unwrap();
        second.fill_buffer(&two, 512..1024, 0).unwrap();
        second.upload_image(&picture, &[ImageData::new(0, 0, &[frame * 16; 1024])]).unwrap();
        second.generate_mips(&picture).unwrap();
        let part = Subresources::ALL.mips(1..2);
        let grey = vk::ClearColorValue { float32: [1.0; 4] };
        unsafe { second.clear_color(&picture, &part, grey) }.unwrap();
        let reads: Vec<_> =
            (0..5).map(|mip| second.read_image(&picture, mip, 0..1, COLOR).unwrap()).collect();
        let bytes = second.read_buffer(&one, 0..1024).unwrap();
        let ticket = frames.submit(queue, [first, second]).unwrap();
        frames.end();
        frames.wait(ticket).unwrap();
        let mut expected = vec![frame; 1024];
        expected[..16].fill(9);
        expected[8..108].fill(frame + 1);
        assert_eq!(bytes.bytes().unwrap(), expected);
        for (mip, read) in reads.iter().enumerate() {
            let texel = if mip == 1 { 255 } else { frame * 16 };
            assert!(read.bytes().unwrap().iter().all(|&byte| byte == texel), "mip {mip}");
        }
    }
}

/// Images that share memory: within a list, between lists, and between frames.
fn shared(frames: &mut Frames) {
    let info = vk::ImageCreateInfo::default()
        .image_type(vk::ImageType::TYPE_2D)
        .format(vk::Format::R8G8B8A8_UNORM)
        .extent(vk::Extent3D { width: SIZE, height: SIZE, depth: 1 })
        .mip_levels(1)
        .array_layers(1)
        .samples(vk::SampleCountFlags::TYPE_1)
        .usage(
            vk::ImageUsageFlags::TRANSFER_SRC
                | vk::ImageUsageFlags::TRANSFER_DST
                | vk::ImageUsageFlags::COLOR_ATTACHMENT,
        );
    let wanted = [0..=0, 1..=1, 2..=2].map(|steps| TransientImage { info, steps });
    let memory = AllocationCreateInfo::new(MemoryUsage::GpuOnly);
    let images = unsafe { frames.create_transient_images(&wanted, &memory) }.unwrap();
    assert!(images.iter().all(|image| image.memory_range() == images[0].memory_range()));
    for frame in 0..3_u8 {
        frames.begin().unwrap();
        let queue = frames.queue(0);
        let mut first = frames.list(queue).unwrap();
        // Unread contents, contents read by a copy, and rendered contents.
        first.upload_image(&images[0], &[ImageData::new(0, 0, &[frame; 1024])]).unwrap();
        first.upload_image(&images[1], &[ImageData::new(0, 0, &[frame + 1; 1024])]).unwrap();
        let mut reads = vec![first.read_image(&images[1], 0, 0..1, COLOR).unwrap()];
        let target = [Some(Attachment::clear(&images[2]))];
        let info = RenderingInfo::new(images[2].extent(0), &target, None);
        unsafe { first.begin_rendering(&info) }.unwrap();
        first.end_rendering().unwrap();
        // Without this read, lavapipe clears after the upload that follows, despite the barriers between them.
        reads.push(first.read_image(&images[2], 0, 0..1, COLOR).unwrap());
        let mut second = frames.list(queue).unwrap();
        second.upload_image(&images[0], &[ImageData::new(0, 0, &[frame + 2; 1024])]).unwrap();
        reads.push(second.read_image(&images[0], 0, 0..1, COLOR).unwrap());
        second.upload_image(&images[1], &[ImageData::new(0, 0, &[frame + 3; 1024])]).unwrap();
        let ticket = frames.submit(queue, [first, second]).unwrap();
        frames.end();
        frames.wait(ticket).unwrap();
        for (read, texel) in reads.iter().zip([frame + 1, 0, frame + 2]) {
            assert_eq!(read.bytes().unwrap(), [texel; 1024], "frame {frame}");
        }
    }
}

/// Dispatches that read the results of the previous one.
fn dispatches(frames: &mut Frames, layout: &PipelineLayout, pipeline: vk::Pipeline) {
    let numbers = buffer(frames, 256, vk::BufferUsageFlags::STORAGE_BUFFER);
    let arguments = buffer(frames, 64, vk::BufferUsageFlags::INDIRECT_BUFFER);
    for frame in 0..3_u32 {
        let mut list = make::begin_list(frames);
        list.fill_buffer(&numbers, 0..256, frame).unwrap();
        let counts: Vec<u8> = [1_u32, 1, 1].iter().flat_map(|count| count.to_le_bytes()).collect();
        list.upload(&arguments, 0, &counts).unwrap();
        let point = BindPoint::Compute;
        unsafe { list.bind_pipeline(point, pipeline, layout) }.unwrap();
        list.bind_buffer(point, (0, 1, 0), &numbers, 0..256, StorageAccess::ReadWrite).unwrap();
        for step in 0..4_u32 {
            list.bind_constants(point, (0, 0), &[step, 0, 0, 0]).unwrap();
            if step % 2 == 0 {
                unsafe { list.dispatch([1, 1, 1]) }.unwrap();
            } else {
                unsafe { list.dispatch_indirect(&arguments, 0) }.unwrap();
            }
        }
        let read = list.read_buffer(&numbers, 0..256).unwrap();
        make::end_with(frames, list);
        frames.wait(&read).unwrap();
        let expected = (0..4).fold(frame, |number, step| number * 3 + step);
        assert_eq!(read.bytes().unwrap(), expected.to_le_bytes().repeat(64));
    }
}

/// Draws a triangle over a whole picture. Its color depends on the constants and on a blitted mip.
fn draws(frames: &mut Frames, layout: &PipelineLayout, pipeline: vk::Pipeline) {
    let target = image(frames, vk::Format::R8G8B8A8_UNORM, 1, vk::ImageUsageFlags::COLOR_ATTACHMENT);
    let depth = {
        let usage = vk::ImageUsageFlags::DEPTH_STENCIL_ATTACHMENT;
        image(frames, vk::Format::D16_UNORM, 1, usage)
    };
    let picture = image(frames, vk::Format::R8G8B8A8_UNORM, 5, vk::ImageUsageFlags::SAMPLED);
    let corners = buffer(frames, 24, vk::BufferUsageFlags::VERTEX_BUFFER);
    let indices = buffer(frames, 8, vk::BufferUsageFlags::INDEX_BUFFER);
    for frame in 0..3_u8 {
        let mut list = make::begin_list(frames);
        let places: Vec<u8> =
            [-1.0_f32, -1.0, 3.0, -1.0, -1.0, 3.0].iter().flat_map(|place| place.to_le_bytes()).collect();
        list.upload(&corners, 0, &places).unwrap();
        list.upload(&indices, 0, &[0, 0, 1, 0, 2, 0]).unwrap();
        list.upload_image(&picture, &[ImageData::new(0, 0, &[51; 1024])]).unwrap();
        list.generate_mips(&picture).unwrap();
        let point = BindPoint::Graphics;
        unsafe { list.bind_pipeline(point, pipeline, layout) }.unwrap();
        list.bind_constants(point, (0, 0), &[0.2_f32 * f32::from(frame), 0.0, 0.0, 0.0]).unwrap();
        let none = vk::Sampler::null();
        unsafe { list.bind_image(point, (0, 1, 0), &picture, None, none, StorageAccess::Read) }.unwrap();
        list.bind_vertex_buffer(0, &corners, 0).unwrap();
        list.bind_index_buffer(&indices, 0, false).unwrap();
        let far = vk::ClearValue { depth_stencil: vk::ClearDepthStencilValue { depth: 1.0, stencil: 0 } };
        let far = Attachment { clear: far, ..Attachment::clear(&depth) };
        let colors = [Some(Attachment::clear(&target))];
        let info = RenderingInfo::new(target.extent(0), &colors, Some(far));
        list.set_viewport(info.area).unwrap();
        unsafe { list.begin_rendering(&info) }.unwrap();
        assert!(list.read_image(&target, 0, 0..1, COLOR).is_err(), "not within rendering");
        unsafe { list.draw(0..3, 0..1) }.unwrap();
        // Sampling again after sampling needs no barrier.
        let before = frames.statistics().barrier_calls;
        unsafe { list.draw_indexed(0..3, 0, 0..1) }.unwrap();
        assert_eq!(frames.statistics().barrier_calls, before);
        // A use that needs a barrier interrupts rendering.
        unsafe { list.use_image(&picture, &Subresources::ALL, Use::COPY_SOURCE) }.unwrap();
        list.flush().unwrap();
        unsafe { list.draw(0..3, 0..1) }.unwrap();
        assert!(frames.statistics().barrier_calls > before);
        list.end_rendering().unwrap();
        let read = list.read_image(&target, 0, 0..1, COLOR).unwrap();
        make::end_with(frames, list);
        frames.wait(&read).unwrap();
        let texel = [51 * (frame + 1), 51, 51, 51];
        assert_eq!(read.bytes().unwrap(), texel.repeat((SIZE * SIZE) as usize), "frame {frame}");
    }
}

/// Views of aspects without separate state: planes, and depth without stencil.
fn views(device: &Device, frames: &mut Frames, layout: &PipelineLayout, pipeline: vk::Pipeline) {
    let sampled = vk::ImageUsageFlags::SAMPLED | vk::ImageUsageFlags::TRANSFER_DST;
    let format = vk::Format::G8_B8R8_2PLANE_420_UNORM;
    let has =
        unsafe { device.instance.get_physical_device_format_properties(device.physical_device, format) };
    let needs = vk::FormatFeatureFlags::SAMPLED_IMAGE | vk::FormatFeatureFlags::TRANSFER_DST;
    // Some versions of lavapipe have no multi-planar formats.
    let planar = has.optimal_tiling_features.contains(needs).then(|| {
        let info = make::image_info(format, (8, 8), 1, 1).flags(vk::ImageCreateFlags::MUTABLE_FORMAT);
        make::image(frames, &info.usage(sampled))
    });
    let info = make::image_info(vk::Format::D32_SFLOAT_S8_UINT, (8, 8), 1, 1);
    let drawn = vk::ImageUsageFlags::DEPTH_STENCIL_ATTACHMENT;
    let depth = make::image(frames, &info.usage(info.usage | sampled | drawn));
    let bytes = buffer(frames, 256, vk::BufferUsageFlags::empty());
    let texels = buffer(frames, 1024, vk::BufferUsageFlags::STORAGE_BUFFER);
    let mut list = make::begin_list(frames);
    list.fill_buffer(&bytes, 0..256, 0x0101_0101 * 51).unwrap();
    let plane = |aspect_mask, buffer_offset, side| vk::BufferImageCopy {
        buffer_offset,
        image_subresource: vk::ImageSubresourceLayers { aspect_mask, layer_count: 1, ..Default::default() },
        image_extent: vk::Extent3D { width: side, height: side, depth: 1 },
        ..Default::default()
    };
    let planes = [vk::ImageAspectFlags::PLANE_0, vk::ImageAspectFlags::PLANE_1];
    let regions = [plane(planes[0], 0, 8), plane(planes[1], 64, 4)];
    if let Some(planar) = &planar {
        unsafe { list.copy_buffer_to_image(&bytes, planar, &regions) }.unwrap();
    }
    // Clears depth and stencil together, then each alone: the other one stays.
    let value = |depth, stencil| vk::ClearDepthStencilValue { depth, stencil };
    let (of_depth, of_stencil) = (vk::ImageAspectFlags::DEPTH, vk::ImageAspectFlags::STENCIL);
    unsafe { list.clear_depth_stencil(&depth, &Subresources::ALL, value(0.25, 7)) }.unwrap();
    let stencil = Subresources::ALL.aspects(of_stencil);
    unsafe { list.clear_depth_stencil(&depth, &stencil, value(0.5, 8)) }.unwrap();
    let first = list.read_image(&depth, 0, 0..1, of_stencil).unwrap();
    unsafe { list.clear_depth_stencil(&depth, &Subresources::ALL.aspects(of_depth), value(0.75, 9)) }
        .unwrap();
    let second = list.read_image(&depth, 0, 0..1, of_stencil).unwrap();
    unsafe { list.bind_pipeline(BindPoint::Compute, pipeline, layout) }.unwrap();
    list.bind_buffer(BindPoint::Compute, (0, 1, 0), &texels, 0..1024, StorageAccess::Write).unwrap();
    let view = |format, part| Some(ViewInfo { view_type: vk::ImageViewType::TYPE_2D_ARRAY, format, part });
    let of_plane = |format, plane: usize| view(format, Subresources::ALL.aspects(planes[plane]));
    let mut reads = Vec::new();
    for (image, view, expected) in [
        (planar.as_ref(), of_plane(vk::Format::R8_UNORM, 0), [0.2, 0.0, 0.0, 1.0]),
        (planar.as_ref(), of_plane(vk::Format::R8G8_UNORM, 1), [0.2, 0.2, 0.0, 1.0]),
        (Some(&depth), view(depth.format(), Subresources::ALL), [0.75, 0.0, 0.0, 1.0]),
    ] {
        let Some(image) = image else { continue };
        let (none, read) = (vk::Sampler::null(), StorageAccess::Read);
        unsafe { list.bind_image(BindPoint::Compute, (0, 0, 0), image, view.as_ref(), none, read) }.unwrap();
        unsafe { list.dispatch([1, 1, 1]) }.unwrap();
        reads.push((list.read_buffer(&texels, 0..16).unwrap(), expected));
    }
    let ticket = make::end_with(frames, list);
    frames.wait(ticket).unwrap();
    assert_eq!((first.bytes().unwrap()[0], second.bytes().unwrap()[0]), (8, 8));
    for (at, (read, expected)) in reads.iter().enumerate() {
        for (bytes, expected) in read.bytes().unwrap().chunks_exact(4).zip(expected) {
            let found = f32::from_le_bytes(bytes.try_into().unwrap());
            assert!((found - expected).abs() < 1e-5, "view {at}: {found}, {expected}");
        }
    }
}

/// A triangle with a flipped viewport, a scissor and another depth range.
fn viewports(frames: &mut Frames, layout: &PipelineLayout, pipeline: vk::Pipeline) {
    let target = image(frames, vk::Format::R8G8B8A8_UNORM, 1, vk::ImageUsageFlags::COLOR_ATTACHMENT);
    let usage = vk::ImageUsageFlags::DEPTH_STENCIL_ATTACHMENT;
    let depth = image(frames, vk::Format::D16_UNORM, 1, usage);
    let picture = image(frames, vk::Format::R8G8B8A8_UNORM, 5, vk::ImageUsageFlags::SAMPLED);
    let corners = buffer(frames, 24, vk::BufferUsageFlags::VERTEX_BUFFER);
    let places = [-1.0_f32, -1.0, 0.9, -1.0, -1.0, 0.3].map(f32::to_le_bytes).concat();
    let point = BindPoint::Graphics;
    let mut paint = |viewport: ViewportInfo| {
        let mut list = make::begin_list(frames);
        list.upload(&corners, 0, &places).unwrap();
        list.upload_image(&picture, &[ImageData::new(0, 0, &[0; 1024])]).unwrap();
        list.generate_mips(&picture).unwrap();
        unsafe { list.bind_pipeline(point, pipeline, layout) }.unwrap();
        list.bind_constants(point, (0, 0), &[1.0_f32; 4]).unwrap();
        let none = vk::Sampler::null();
        unsafe { list.bind_image(point, (0, 1, 0), &picture, None, none, StorageAccess::Read) }.unwrap();
        list.bind_vertex_buffer(0, &corners, 0).unwrap();
        let far = vk::ClearValue { depth_stencil: vk::ClearDepthStencilValue { depth: 1.0, stencil: 0 } };
        let colors = [Some(Attachment::clear(&target))];
        let far = Attachment { clear: far, ..Attachment::clear(&depth) };
        unsafe { list.begin_rendering(&RenderingInfo::new(target.extent(0), &colors, Some(far))) }.unwrap();
        list.set_viewport(viewport).unwrap();
        unsafe { list.draw(0..3, 0..1) }.unwrap();
        list.end_rendering().unwrap();
        let reads = [(&target, COLOR), (&depth, vk::ImageAspectFlags::DEPTH)];
        let reads = reads.map(|(image, aspect)| list.read_image(image, 0, 0..1, aspect).unwrap());
        make::end_with(frames, list);
        reads.iter().for_each(|read| frames.wait(read).unwrap());
        let row = (SIZE * 4) as usize;
        let rows: Vec<_> = reads[0].bytes().unwrap().chunks(row).map(<[u8]>::to_vec).collect();
        let depths = reads[1].bytes().unwrap();
        let nearest = depths.chunks(2).map(|depth| u16::from_le_bytes([depth[0], depth[1]])).min();
        (rows, nearest.unwrap())
    };
    let area = vk::Rect2D { extent: vk::Extent2D { width: SIZE, height: SIZE }, ..Default::default() };
    let (upright, half) = paint(ViewportInfo::new(area));
    // The vertices are half-way between near and far.
    assert!((0x7fff..=0x8000).contains(&half), "{half:#x}");
    let (mut flipped, nearer) = paint(ViewportInfo { flip: true, max_depth: 0.5, ..ViewportInfo::new(area) });
    assert!((0x3fff..=0x4000).contains(&nearer), "{nearer:#x}");
    assert_ne!(flipped, upright);
    flipped.reverse();
    assert_eq!(flipped, upright);
    let top = vk::Rect2D { extent: vk::Extent2D { width: SIZE, height: 2 }, ..area };
    let (cut, _) = paint(ViewportInfo { scissor: Some(top), ..ViewportInfo::new(area) });
    assert_eq!(cut[..2], upright[..2]);
    assert!(cut[2..].iter().flatten().all(|&byte| byte == 0));
}

/// Recognizes a false positive of layer 1.4.309. A list that reads bytes and then writes them has an execution barrier
/// between the two. At submission, the layer compares the write with that of the previous list and ignores the read.
/// Within one list it does not.
fn forgets_a_read(message: &str) -> bool {
    ["WRITE_AFTER_WRITE", "on the current VkQueue", "synchronization allows", "TRANSFER_READ"]
        .iter()
        .all(|part| message.contains(part))
}

/// Returns the device; `None` if there is none.
fn open(features: Features) -> Option<Device> {
    match Device::new(features) {
        Ok(device) => Some(device),
        Err(error) => {
            assert!(std::env::var_os("SUBLET_REQUIRE_VULKAN").is_none(), "{error}");
            eprintln!("skipped: {error}");
            None
        }
    }
}

/// Creates frames, and what they use.
fn parts(
    device: &Device,
    features: Features,
    flags: AllocatorCreateFlags,
    descriptor_features: DescriptorFeatures,
) -> (Arc<Allocator>, DescriptorDevice, Frames) {
    let version = vk::API_VERSION_1_3;
    let (instance, ash, physical) = (&device.instance, &device.device, device.physical_device);
    let info = AllocatorCreateInfo { flags, ..AllocatorCreateInfo::new(instance, ash, physical, version) };
    let allocator = Arc::new(unsafe { Allocator::new(&info) }.unwrap());
    let info = DescriptorDeviceCreateInfo {
        model: BindingModel::Sets,
        features: descriptor_features,
        ..DescriptorDeviceCreateInfo::new(instance, ash, physical, version)
    };
    let descriptors = unsafe { DescriptorDevice::new(&info) }.unwrap();
    let queues = [QueueInfo { queue: device.queue, family: device.family }];
    let info = FramesCreateInfo {
        features,
        descriptors: Some(&descriptors),
        ..FramesCreateInfo::new(instance, ash, physical, version, &allocator, &queues)
    };
    let frames = unsafe { Frames::new(&info) }.unwrap();
    (allocator, descriptors, frames)
}

/// Returns the contents of the rendered images; `None` without a device.
fn run(features: Features) -> Option<Vec<Vec<u8>>> {
    let device = open(features)?;
    let (allocator, descriptors, mut frames) =
        parts(&device, features, AllocatorCreateFlags::empty(), DescriptorFeatures::empty());
    let ash = &device.device;

    transfers(&mut frames);
    shared(&mut frames);
    let painter = Painter::new(ash, &frames);
    let program = |seed| random::program(&mut frames, 1, None, Some(&painter), seed);
    let moves: u64 = (0..20).map(program).sum();
    assert!(moves > 5, "only {moves} resources were moved");
    let uniform = vk::DescriptorType::UNIFORM_BUFFER_DYNAMIC;
    let compute = vk::ShaderStageFlags::COMPUTE;
    let add = layout(&frames, compute, &[uniform, vk::DescriptorType::STORAGE_BUFFER]);
    let adding = compute_pipeline(&device, add.handle(), include_bytes!("add.spv"));
    dispatches(&mut frames, &add, adding);
    let kinds = [vk::DescriptorType::SAMPLED_IMAGE, vk::DescriptorType::STORAGE_BUFFER];
    let look = layout(&frames, compute, &kinds);
    let looking = compute_pipeline(&device, look.handle(), include_bytes!("texels.spv"));
    mips::chains(&mut frames, &look, looking);
    views(&device, &mut frames, &look, looking);
    let stages = vk::ShaderStageFlags::FRAGMENT;
    let draw = layout(&frames, stages, &[uniform, vk::DescriptorType::SAMPLED_IMAGE]);
    let shape = PipelineInfo {
        shader: include_bytes!("shaders.spv"),
        stages: [c"corner", c"texel"],
        input: vk::VertexInputBindingDescription::default().stride(8),
        attribute: vk::Format::R32G32_SFLOAT,
        depth: vk::Format::D16_UNORM,
        dynamic: &paint::DYNAMIC,
    };
    let drawing = paint::pipeline(ash, &frames, draw.handle(), &shape);
    draws(&mut frames, &draw, drawing);
    viewports(&mut frames, &draw, drawing);
    let pictures = passes::scenes(&mut frames);

    drop((frames, painter));
    drop((add, look, draw));
    for made in [adding, looking, drawing] {
        unsafe { ash.destroy_pipeline(made, None) };
    }
    drop(descriptors);
    assert!(Arc::try_unwrap(allocator).unwrap().destroy().is_empty());
    let name = device.name.clone();
    let messages: Vec<_> = device.finish().into_iter().filter(|message| !forgets_a_read(message)).collect();
    assert!(messages.is_empty(), "{name}, {features:?}: {messages:#?}");
    Some(pictures)
}

#[test]
fn the_validation_layer_reports_nothing() {
    let all = Features {
        synchronization2: true,
        timeline_semaphore: true,
        dynamic_rendering: true,
        debug_utils: true,
        ..Features::default()
    };
    if let Some(pictures) = run(all) {
        run(Features { synchronization2: false, ..all });
        run(Features { timeline_semaphore: false, ..all });
        let in_passes = Features { dynamic_rendering: false, ..all };
        let apart = Features { separate_depth_stencil_layouts: true, ..in_passes };
        for passes in [in_passes, apart, Features::default()] {
            assert!(run(passes).unwrap() == pictures, "render passes leave what dynamic rendering does");
        }
    }
}
