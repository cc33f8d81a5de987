//! Dispatches with the bindings of lists and the resulting barriers.

use ash::vk;
use sublet::sim;
use sublet_descriptors::BindPoint;
use sublet_frame::track::{Subresources, Use};
use sublet_frame::{
    Attachment, Buffer, Image, ImageData, ListError, PipelineLayout, RenderingInfo, StorageAccess, ViewError,
    ViewInfo,
};

use crate::fixture::{FrameFixture, PROFILES, image_info};
use crate::make::{begin_list, end_with};
use crate::paint::{PipelineInfo, binding, pipeline};

const COMPUTE: BindPoint = BindPoint::Compute;

/// A pipeline with constants in binding 0 and storage buffers in bindings 1 and 2.
pub(crate) struct Program {
    pub(crate) pipeline: vk::Pipeline,
    pub(crate) layout: PipelineLayout,
}

impl Program {
    pub(crate) fn new(fixture: &FrameFixture, constants: vk::DescriptorType) -> Self {
        Self::of(fixture, [constants, vk::DescriptorType::STORAGE_BUFFER, vk::DescriptorType::STORAGE_BUFFER])
    }

    fn of(fixture: &FrameFixture, kinds: [vk::DescriptorType; 3]) -> Self {
        let program = Self::with(fixture, &kinds.map(|kind| (kind, vk::ShaderStageFlags::COMPUTE)));
        // Adds the constants to each number of the first buffer, and writes the second.
        fixture.gpu.set_kernel("main", |kernel: &mut sim::Kernel<'_>| {
            let mut factor = [0; 4];
            kernel.read_push_constants(0, &mut factor);
            let more = kernel.buffer(0, 0, 0).read_u32(0);
            let (from, to) = (kernel.buffer(0, 1, 0), kernel.buffer(0, 2, 0));
            for at in 0..to.len() / 4 {
                let number = from.read_u32(at * 4).wrapping_mul(u32::from_le_bytes(factor));
                to.write_u32(at * 4, number.wrapping_add(more));
            }
        });
        program
    }

    /// Creates a pipeline with these bindings that does nothing.
    fn with(fixture: &FrameFixture, kinds: &[(vk::DescriptorType, vk::ShaderStageFlags)]) -> Self {
        let device = fixture.gpu.device();
        let stages = vk::ShaderStageFlags::COMPUTE;
        let bindings: Vec<_> =
            (0..).zip(kinds).map(|(number, &(kind, stages))| binding(number, kind, stages)).collect();
        let sets = [vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings)];
        let ranges = [vk::PushConstantRange { stage_flags: stages, offset: 0, size: 4 }];
        let frames = fixture.frames.as_ref().unwrap();
        let layout = unsafe { frames.create_pipeline_layout(&sets, &ranges) }.unwrap();
        let code = vk::ShaderModuleCreateInfo::default().code(&[0x0723_0203]);
        let module = unsafe { device.create_shader_module(&code, None) }.unwrap();
        let stage = vk::PipelineShaderStageCreateInfo::default().stage(stages).module(module).name(c"main");
        let info = vk::ComputePipelineCreateInfo::default().stage(stage).layout(layout.handle());
        let none = vk::PipelineCache::null();
        let pipeline = unsafe { device.create_compute_pipelines(none, &[info], None) }.unwrap()[0];
        unsafe { device.destroy_shader_module(module, None) };
        fixture.gpu.set_kernel("main", |_: &mut sim::Kernel<'_>| {});
        Self { pipeline, layout }
    }

    pub(crate) fn destroy(self, fixture: &FrameFixture) {
        unsafe { fixture.gpu.device().destroy_pipeline(self.pipeline, None) };
    }
}

#[test]
fn dispatches_follow_one_another() {
    let kinds = [vk::DescriptorType::UNIFORM_BUFFER, vk::DescriptorType::UNIFORM_BUFFER_DYNAMIC];
    // The third profile cannot recycle descriptor pools.
    for (profile, kind) in PROFILES[..2].iter().flat_map(|profile| kinds.map(|kind| (*profile, kind))) {
        let mut fixture = FrameFixture::new(profile, 1);
        let program = Program::new(&fixture, kind);
        let layout = &program.layout;
        let (one, two) = (fixture.buffer(256), fixture.buffer(256));
        for frame in 0..6_u32 {
            let frames = fixture.frames();
            let mut list = begin_list(frames);
            list.fill_buffer(&one, 0..256, frame).unwrap();
            unsafe { list.bind_pipeline(COMPUTE, program.pipeline, layout) }.unwrap();
            let factor = 3_u32.to_le_bytes();
            unsafe { list.push_constants(COMPUTE, vk::ShaderStageFlags::COMPUTE, 0, &factor) }.unwrap();
            for step in 0..4_u32 {
                let (from, to) = if step % 2 == 0 { (&one, &two) } else { (&two, &one) };
                list.bind_constants(COMPUTE, (0, 0), &(step * 10)).unwrap();
                list.bind_buffer(COMPUTE, (0, 1, 0), from, 0..256, StorageAccess::Read).unwrap();
                list.bind_buffer(COMPUTE, (0, 2, 0), to, 0..256, StorageAccess::Write).unwrap();
                let before = frames.statistics().barrier_calls;
                unsafe { list.dispatch([1, 1, 1]) }.unwrap();
                assert_eq!(frames.statistics().barrier_calls, before + 1, "step {step}");
            }
            let read = list.read_buffer(&one, 0..256).unwrap();
            end_with(frames, list);
            frames.wait(&read).unwrap();
            let expected = (0..4).fold(frame, |number, step| number * 3 + step * 10);
            assert_eq!(read.bytes().unwrap(), expected.to_le_bytes().repeat(64), "{profile}, frame {frame}");
        }
        drop((one, two));
        program.destroy(&fixture);
    }
}

#[test]
fn arguments_come_from_a_buffer() {
    let mut fixture = FrameFixture::new("lavapipe", 1);
    let program = Program::new(&fixture, vk::DescriptorType::UNIFORM_BUFFER);
    let layout = &program.layout;
    let (one, two, arguments) = (fixture.buffer(256), fixture.buffer(256), fixture.buffer(64));
    let frames = fixture.frames();
    let mut list = begin_list(frames);
    let counts: Vec<u8> = [1_u32, 1, 1].iter().flat_map(|count| count.to_le_bytes()).collect();
    list.update_buffer(&arguments, 4, &counts).unwrap();
    list.fill_buffer(&one, 0..256, 5).unwrap();
    unsafe { list.bind_pipeline(COMPUTE, program.pipeline, layout) }.unwrap();
    unsafe { list.push_constants(COMPUTE, vk::ShaderStageFlags::COMPUTE, 0, &2_u32.to_le_bytes()) }.unwrap();
    list.bind_constants(COMPUTE, (0, 0), &1_u32).unwrap();
    list.bind_buffer(COMPUTE, (0, 1, 0), &one, 0..256, StorageAccess::Read).unwrap();
    list.bind_buffer(COMPUTE, (0, 2, 0), &two, 0..256, StorageAccess::Write).unwrap();
    assert!(matches!(unsafe { list.dispatch_indirect(&arguments, 56) }, Err(ListError::OutOfRange { .. })));
    unsafe { list.dispatch_indirect(&arguments, 4) }.unwrap();
    // Commands recorded by the program.
    unsafe { list.use_buffer(&two, 0..4, Use::CLEAR) }.unwrap();
    let handle = two.handle();
    unsafe { list.raw(|device, commands| device.cmd_fill_buffer(commands, handle, 0, 4, 9)) }.unwrap();
    let read = list.read_buffer(&two, 0..8).unwrap();
    end_with(frames, list);
    frames.wait(&read).unwrap();
    assert_eq!(read.bytes().unwrap(), [9, 0, 0, 0, 11, 0, 0, 0]);
    drop((read, one, two, arguments));
    program.destroy(&fixture);
}

/// Bytes bound as constants, read and written at once have one use, for every overlap.
#[test]
fn one_range_may_be_bound_in_several_ways() {
    let mut fixture = FrameFixture::new("lavapipe", 1);
    let program = Program::new(&fixture, vk::DescriptorType::UNIFORM_BUFFER);
    let (one, two) = (fixture.buffer(1024), fixture.buffer(1024));
    let frames = fixture.frames();
    for (ranges, same) in [
        ([0..256, 0..256, 0..256], true),
        // The first two overlap the third, but not each other.
        ([0..256, 256..1024, 0..768], true),
        ([256..512, 0..1024, 0..1024], true),
        ([0..16, 256..512, 256..512], false),
    ] {
        let mut list = begin_list(frames);
        let other = if same { &one } else { &two };
        list.fill_buffer(&one, 0..1024, 5).unwrap();
        list.fill_buffer(other, 0..1024, 5).unwrap();
        unsafe { list.bind_pipeline(COMPUTE, program.pipeline, &program.layout) }.unwrap();
        unsafe { list.push_constants(COMPUTE, vk::ShaderStageFlags::COMPUTE, 0, &3_u32.to_le_bytes()) }
            .unwrap();
        unsafe { list.push_constants(COMPUTE, vk::ShaderStageFlags::COMPUTE, 0, &[]) }.unwrap();
        let [constants, from, to] = ranges.clone();
        list.bind_buffer(COMPUTE, (0, 0, 0), &one, constants, StorageAccess::Read).unwrap();
        list.bind_buffer(COMPUTE, (0, 1, 0), other, from, StorageAccess::Read).unwrap();
        list.bind_buffer(COMPUTE, (0, 2, 0), other, to.clone(), StorageAccess::Write).unwrap();
        let before = frames.statistics().barrier_calls;
        unsafe { list.dispatch([1, 1, 1]) }.unwrap();
        assert_eq!(frames.statistics().barrier_calls, before + 1, "{ranges:?}");
        let read = list.read_buffer(other, to.start..to.start + 4).unwrap();
        end_with(frames, list);
        frames.wait(&read).unwrap();
        assert_eq!(read.bytes().unwrap(), [20, 0, 0, 0], "{ranges:?}");
    }
    drop((one, two));
    program.destroy(&fixture);
}

/// Mip generation by the shader binds its own pipeline and sets in between.
#[test]
fn bindings_survive_mip_generation() {
    let mut fixture = FrameFixture::new("lavapipe", 1);
    let program = Program::new(&fixture, vk::DescriptorType::UNIFORM_BUFFER);
    fixture.gpu.set_kernel("sublet_mips", |_: &mut sim::Kernel<'_>| {});
    let (one, two) = (fixture.buffer(256), fixture.buffer(256));
    let usage = vk::ImageUsageFlags::SAMPLED | vk::ImageUsageFlags::STORAGE;
    let info = image_info(vk::Format::R16G16B16A16_SFLOAT, (8, 8), 3, 1);
    let image = fixture.image(&info.usage(info.usage | usage));
    let frames = fixture.frames();
    let mut list = begin_list(frames);
    list.fill_buffer(&one, 0..256, 5).unwrap();
    unsafe { list.bind_pipeline(COMPUTE, program.pipeline, &program.layout) }.unwrap();
    unsafe { list.push_constants(COMPUTE, vk::ShaderStageFlags::COMPUTE, 0, &2_u32.to_le_bytes()) }.unwrap();
    list.bind_constants(COMPUTE, (0, 0), &1_u32).unwrap();
    list.bind_buffer(COMPUTE, (0, 1, 0), &one, 0..256, StorageAccess::Read).unwrap();
    list.bind_buffer(COMPUTE, (0, 2, 0), &two, 0..256, StorageAccess::Write).unwrap();
    unsafe { list.dispatch([1, 1, 1]) }.unwrap();
    list.upload_image(&image, &[ImageData::new(0, 0, &[0; 512])]).unwrap();
    list.generate_mips(&image).unwrap();
    // A layout with other ranges may invalidate push constants.
    unsafe { list.push_constants(COMPUTE, vk::ShaderStageFlags::COMPUTE, 0, &3_u32.to_le_bytes()) }.unwrap();
    unsafe { list.dispatch([1, 1, 1]) }.unwrap();
    let read = list.read_buffer(&two, 0..4).unwrap();
    end_with(frames, list);
    frames.wait(&read).unwrap();
    assert_eq!(read.bytes().unwrap(), [16, 0, 0, 0]);
    drop((read, one, two, image));
    program.destroy(&fixture);
}

/// A set may have bindings for pipelines of both bind points. A pipeline waits only for bindings that it can use.
#[test]
fn bindings_of_other_pipelines_are_not_used() {
    let mut fixture = FrameFixture::new("lavapipe", 1);
    let (compute, fragment) = (vk::ShaderStageFlags::COMPUTE, vk::ShaderStageFlags::FRAGMENT);
    let storage = vk::DescriptorType::STORAGE_BUFFER;
    let sampled = vk::DescriptorType::SAMPLED_IMAGE;
    let none = vk::ShaderStageFlags::empty();
    let kinds =
        [(storage, fragment), (sampled, fragment), (storage, compute), (sampled, compute), (storage, none)];
    let program = Program::with(&fixture, &kinds);
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
        dynamic: &crate::paint::DYNAMIC,
    };
    let device = fixture.gpu.device().clone();
    let drawing = pipeline(&device, fixture.frames.as_ref().unwrap(), program.layout.handle(), &shape);
    for stage in ["corner", "paint"] {
        fixture.gpu.set_kernel(stage, |_: &mut sim::Kernel<'_>| {});
    }
    let buffers: Vec<_> = (0..6).map(|_| fixture.buffer(64)).collect();
    let info = image_info(vk::Format::R8G8B8A8_UNORM, (4, 4), 1, 1);
    let usage = vk::ImageUsageFlags::SAMPLED | vk::ImageUsageFlags::COLOR_ATTACHMENT;
    let images: Vec<_> = (0..4).map(|_| fixture.image(&info.usage(info.usage | usage))).collect();
    let frames = fixture.frames();
    let mut list = frames.list(frames.queue(0)).unwrap();
    unsafe { list.clear_color(&images[3], &Subresources::ALL, vk::ClearColorValue::default()) }.unwrap();
    for buffer in &buffers {
        list.fill_buffer(buffer, 0..64, 1).unwrap();
    }
    frames.submit(frames.queue(0), [list]).unwrap();
    // The unused binding was written by this list, or earlier.
    let mut barriers = |point, written: bool| {
        let mut list = begin_list(frames);
        for buffer in &buffers[..4] {
            list.fill_buffer(buffer, 0..64, 1).unwrap();
        }
        for image in &images[..2] {
            unsafe { list.clear_color(image, &Subresources::ALL, vk::ClearColorValue::default()) }.unwrap();
        }
        let graphics = point == BindPoint::Graphics;
        let bound = if graphics { drawing } else { program.pipeline };
        unsafe { list.bind_pipeline(point, bound, &program.layout) }.unwrap();
        let (buffer, image) = if written { (&buffers[1], &images[1]) } else { (&buffers[4], &images[3]) };
        let (none, read, both) = (vk::Sampler::null(), StorageAccess::Read, StorageAccess::ReadWrite);
        let of = |used: bool| if used { (&buffers[0], &images[0]) } else { (buffer, image) };
        let (one, other) = (of(graphics), of(!graphics));
        list.bind_buffer(point, (0, 0, 0), one.0, 0..64, read).unwrap();
        unsafe { list.bind_image(point, (0, 1, 0), one.1, None, none, read) }.unwrap();
        list.bind_buffer(point, (0, 2, 0), other.0, 0..64, both).unwrap();
        unsafe { list.bind_image(point, (0, 3, 0), other.1, None, none, read) }.unwrap();
        list.bind_buffer(point, (0, 4, 0), if written { &buffers[2] } else { &buffers[5] }, 0..64, both)
            .unwrap();
        let before = frames.statistics().barriers;
        if graphics {
            list.bind_vertex_buffer(0, &buffers[3], 0).unwrap();
            let colors = [Some(Attachment::clear(&images[2]))];
            let info = RenderingInfo::new(images[2].extent(0), &colors, None);
            list.set_viewport(info.area).unwrap();
            unsafe { list.begin_rendering(&info) }.unwrap();
            unsafe { list.draw(0..3, 0..1) }.unwrap();
            list.end_rendering().unwrap();
        } else {
            unsafe { list.dispatch([1, 1, 1]) }.unwrap();
        }
        let made = frames.statistics().barriers - before;
        end_with(frames, list);
        made
    };
    for point in [BindPoint::Graphics, COMPUTE] {
        let (without, with) = (barriers(point, false), barriers(point, true));
        assert!(without > 0 && with == without, "{point:?}: {without} barriers, and {with}");
    }
    frames.wait_idle().unwrap();
    drop((buffers, images));
    drop(fixture.frames.take());
    unsafe { device.destroy_pipeline(drawing, None) };
    program.destroy(&fixture);
}

/// The default view of depth and stencil has both aspects. Shaders see depth or stencil.
#[test]
fn depth_and_stencil_are_bound_apart() {
    let mut fixture = FrameFixture::new("lavapipe", 1);
    let program =
        Program::with(&fixture, &[(vk::DescriptorType::SAMPLED_IMAGE, vk::ShaderStageFlags::COMPUTE)]);
    let info = image_info(vk::Format::D32_SFLOAT_S8_UINT, (4, 4), 2, 1);
    let usage = vk::ImageUsageFlags::SAMPLED | vk::ImageUsageFlags::DEPTH_STENCIL_ATTACHMENT;
    let image = fixture.image(&info.usage(info.usage | usage));
    let frames = fixture.frames();
    let mut list = frames.list(frames.queue(0)).unwrap();
    let data = |mip, aspect, bytes| ImageData { aspect, ..ImageData::new(mip, 0, bytes) };
    let (depth, stencil) = (vk::ImageAspectFlags::DEPTH, vk::ImageAspectFlags::STENCIL);
    let texels = [0; 64];
    for mip in 0..2 {
        list.upload_image(&image, &[data(mip, depth, &texels), data(mip, stencil, &texels)]).unwrap();
    }
    unsafe { list.bind_pipeline(COMPUTE, program.pipeline, &program.layout) }.unwrap();
    let view = |part| ViewInfo { view_type: vk::ImageViewType::TYPE_2D, format: image.format(), part };
    let mip = Subresources::ALL.mips(1..2);
    let stencil = mip.clone().aspects(stencil);
    for view in [None, Some(view(mip)), Some(view(stencil))] {
        let (none, read) = (vk::Sampler::null(), StorageAccess::Read);
        unsafe { list.bind_image(COMPUTE, (0, 0, 0), &image, view.as_ref(), none, read) }.unwrap();
        unsafe { list.dispatch([1, 1, 1]) }.unwrap();
    }
    frames.submit(frames.queue(0), [list]).unwrap();
    frames.wait_idle().unwrap();
    drop(image);
    program.destroy(&fixture);
}

/// Slices of a three-dimensional image, and planes of another image, are bound like layers and aspects.
#[test]
fn slices_and_planes_are_bound() {
    let mut fixture = FrameFixture::new("lavapipe", 1);
    let program =
        Program::with(&fixture, &[(vk::DescriptorType::SAMPLED_IMAGE, vk::ShaderStageFlags::COMPUTE)]);
    let sampled = vk::ImageUsageFlags::SAMPLED;
    let info = image_info(vk::Format::R8G8B8A8_UNORM, (8, 8), 2, 1).image_type(vk::ImageType::TYPE_3D);
    let info = info.extent(vk::Extent3D { width: 8, height: 8, depth: 8 }).usage(info.usage | sampled);
    let volume = fixture.image(&info.flags(vk::ImageCreateFlags::TYPE_2D_ARRAY_COMPATIBLE));
    let info = image_info(vk::Format::G8_B8R8_2PLANE_420_UNORM, (8, 8), 1, 1);
    let info = info.usage(info.usage | sampled).flags(vk::ImageCreateFlags::MUTABLE_FORMAT);
    let planar = fixture.image(&info);
    let bytes = fixture.buffer(256);
    let frames = fixture.frames();
    let mut list = frames.list(frames.queue(0)).unwrap();
    list.fill_buffer(&bytes, 0..256, 9).unwrap();
    let plane = |aspect_mask, buffer_offset, side| vk::BufferImageCopy {
        buffer_offset,
        image_subresource: vk::ImageSubresourceLayers { aspect_mask, layer_count: 1, ..Default::default() },
        image_extent: vk::Extent3D { width: side, height: side, depth: 1 },
        ..Default::default()
    };
    let planes = [vk::ImageAspectFlags::PLANE_0, vk::ImageAspectFlags::PLANE_1];
    let regions = [plane(planes[0], 0, 8), plane(planes[1], 64, 4)];
    unsafe { list.copy_buffer_to_image(&bytes, &planar, &regions) }.unwrap();
    unsafe { list.clear_color(&volume, &Subresources::ALL, vk::ClearColorValue::default()) }.unwrap();
    unsafe { list.bind_pipeline(COMPUTE, program.pipeline, &program.layout) }.unwrap();
    let view = |format, part| ViewInfo { view_type: vk::ImageViewType::TYPE_2D, format, part };
    let slice = |mip: u32, slice: u32| {
        view(volume.format(), Subresources::ALL.mips(mip..mip + 1).layers(slice..slice + 1))
    };
    let of_plane = |format, plane: usize| view(format, Subresources::ALL.aspects(planes[plane]));
    for (image, view) in [
        (&volume, slice(0, 3)),
        (&volume, slice(0, 7)),
        (&volume, slice(1, 3)),
        (&planar, of_plane(vk::Format::R8_UNORM, 0)),
        (&planar, of_plane(vk::Format::R8G8_UNORM, 1)),
    ] {
        let (none, read) = (vk::Sampler::null(), StorageAccess::Read);
        unsafe { list.bind_image(COMPUTE, (0, 0, 0), image, Some(&view), none, read) }.unwrap();
        unsafe { list.dispatch([1, 1, 1]) }.unwrap();
        let used = Use::sampled(vk::PipelineStageFlags2::COMPUTE_SHADER);
        unsafe { list.use_image(image, &view.part, used) }.unwrap();
    }
    // Errors for missing parts, after which the list stays usable.
    let mut refused = |image: &Image, view: Option<&ViewInfo>| {
        let (none, read) = (vk::Sampler::null(), StorageAccess::Read);
        unsafe { list.bind_image(COMPUTE, (0, 0, 0), image, view, none, read) }.unwrap_err()
    };
    let out_of_range =
        |what, start, size| ListError::View(ViewError::OutOfRange { what, start, end: start + 1, size });
    assert_eq!(refused(&volume, Some(&slice(1, 4))), out_of_range("layers", 4, 4));
    assert_eq!(refused(&volume, Some(&slice(2, 0))), out_of_range("mips", 2, 2));
    let asked = vk::ImageAspectFlags::PLANE_2;
    let third = view(vk::Format::R8_UNORM, Subresources::ALL.aspects(asked));
    let has = vk::ImageAspectFlags::COLOR | planes[0] | planes[1];
    assert_eq!(refused(&planar, Some(&third)), ListError::View(ViewError::Aspects { asked, has }));
    let format = planar.format();
    assert_eq!(refused(&planar, None), ListError::View(ViewError::Conversion { format }));
    assert_eq!(planar.view(), Err(ViewError::Conversion { format }));
    let wrong = unsafe { list.copy_buffer_to_image(&bytes, &planar, &[plane(asked, 0, 4)]) };
    assert_eq!(wrong, Err(ListError::Format { format, aspect: asked }));
    frames.submit(frames.queue(0), [list]).unwrap();
    frames.wait_idle().unwrap();
    drop((volume, planar, bytes));
    program.destroy(&fixture);
}

#[test]
fn bindings_are_checked() {
    let mut fixture = FrameFixture::new("lavapipe", 1);
    let program = Program::new(&fixture, vk::DescriptorType::UNIFORM_BUFFER);
    let buffer = fixture.buffer(256);
    let frames = fixture.frames();
    let mut list = frames.list(frames.queue(0)).unwrap();
    let bound = list.bind_buffer(COMPUTE, (0, 1, 0), &buffer, 0..256, StorageAccess::Read);
    assert_eq!(bound, Err(ListError::NoBinding { set: 0, binding: 1 }));
    let layout = &program.layout;
    unsafe { list.bind_pipeline(COMPUTE, program.pipeline, layout) }.unwrap();
    let bound = list.bind_buffer(COMPUTE, (0, 3, 0), &buffer, 0..256, StorageAccess::Read);
    assert_eq!(bound, Err(ListError::NoBinding { set: 0, binding: 3 }));
    let bound = list.bind_buffer(COMPUTE, (0, 1, 0), &buffer, 2..256, StorageAccess::Read);
    assert!(matches!(bound, Err(ListError::Misaligned { given: 2, .. })));
    let bound = list.bind_buffer(COMPUTE, (0, 1, 1), &buffer, 0..256, StorageAccess::Read);
    assert!(matches!(bound, Err(ListError::Stage(_))));
    drop((list, buffer));
    program.destroy(&fixture);
}

/// Adds a constant to each number of one part of a buffer, and writes another part.
fn adds(fixture: &mut FrameFixture, kinds: [vk::DescriptorType; 3], usage: vk::BufferUsageFlags) {
    let texels = [vk::DescriptorType::UNIFORM_TEXEL_BUFFER, vk::DescriptorType::STORAGE_TEXEL_BUFFER];
    let program = Program::of(fixture, kinds);
    let frames = fixture.frames.as_mut().unwrap();
    let usage = usage | vk::BufferUsageFlags::TRANSFER_SRC | vk::BufferUsageFlags::TRANSFER_DST;
    let info = vk::BufferCreateInfo::default().size(2048).usage(usage);
    let numbers = unsafe { frames.create_buffer(&info, &crate::make::auto()) }.unwrap();
    for frame in 0..3_u32 {
        let mut list = begin_list(frames);
        list.fill_buffer(&numbers, 0..2048, frame).unwrap();
        unsafe { list.bind_pipeline(COMPUTE, program.pipeline, &program.layout) }.unwrap();
        let factor = 3_u32.to_le_bytes();
        unsafe { list.push_constants(COMPUTE, vk::ShaderStageFlags::COMPUTE, 0, &factor) }.unwrap();
        for step in 0..3_u64 {
            // From each part to the next.
            let parts = [1024, 512 * step, 512 * (step + 1)].map(|start| start..start + 256);
            let access = [StorageAccess::Read, StorageAccess::Read, StorageAccess::Write];
            for (number, (part, access)) in (0..).zip(parts.into_iter().zip(access)) {
                let (place, format) = ((0, number, 0), vk::Format::R32_UINT);
                if texels.contains(&kinds[number as usize]) {
                    list.bind_texel_buffer(COMPUTE, place, &numbers, format, part, access).unwrap();
                } else {
                    list.bind_buffer(COMPUTE, place, &numbers, part, access).unwrap();
                }
            }
            if step == 1 {
                // The constant would overlap the result.
                continue;
            }
            unsafe { list.dispatch([1, 1, 1]) }.unwrap();
        }
        let read = list.read_buffer(&numbers, 0..2048).unwrap();
        end_with(frames, list);
        frames.wait(&read).unwrap();
        let bytes = read.bytes().unwrap();
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        let results = [0, 512, 764, 768, 1024, 1536, 1788, 1792].map(word);
        let new = 4 * frame;
        assert_eq!(results, [frame, new, new, frame, frame, new, new, frame], "{kinds:?}");
    }
    program.destroy(fixture);
    drop(numbers);
}

#[test]
fn dynamic_bindings_and_texels_are_bytes_of_buffers() {
    use vk::{BufferUsageFlags as Usage, DescriptorType as Type};
    for profile in ["lavapipe", "nvidia-gtx-1060", "arm-mali-g52"] {
        let mut fixture = FrameFixture::new(profile, 1);
        let buffers = Usage::UNIFORM_BUFFER | Usage::STORAGE_BUFFER;
        let dynamic =
            [Type::UNIFORM_BUFFER_DYNAMIC, Type::STORAGE_BUFFER_DYNAMIC, Type::STORAGE_BUFFER_DYNAMIC];
        adds(&mut fixture, dynamic, buffers);
        let texels = [Type::UNIFORM_BUFFER, Type::UNIFORM_TEXEL_BUFFER, Type::STORAGE_TEXEL_BUFFER];
        adds(&mut fixture, texels, buffers | Usage::UNIFORM_TEXEL_BUFFER | Usage::STORAGE_TEXEL_BUFFER);
    }
}

#[test]
fn invalid_texel_buffers_are_rejected() {
    let mut fixture = FrameFixture::new("lavapipe", 1);
    let kinds = [vk::DescriptorType::UNIFORM_TEXEL_BUFFER, vk::DescriptorType::STORAGE_BUFFER];
    let program = Program::with(&fixture, &kinds.map(|kind| (kind, vk::ShaderStageFlags::COMPUTE)));
    let frames = fixture.frames.as_mut().unwrap();
    let usage = vk::BufferUsageFlags::UNIFORM_TEXEL_BUFFER;
    let info = vk::BufferCreateInfo::default().size(1024).usage(usage);
    let numbers = unsafe { frames.create_buffer(&info, &crate::make::auto()) }.unwrap();
    let plain = crate::make::buffer(frames, 1024);
    let mut list = begin_list(frames);
    unsafe { list.bind_pipeline(COMPUTE, program.pipeline, &program.layout) }.unwrap();
    let (read, float) = (StorageAccess::Read, vk::Format::R32_SFLOAT);
    let mut bind = |buffer: &Buffer, binding, format, range| {
        list.bind_texel_buffer(COMPUTE, (0, binding, 0), buffer, format, range, read)
    };
    assert!(matches!(bind(&numbers, 0, float, 1..5), Err(ListError::Misaligned { .. })));
    assert!(matches!(bind(&numbers, 0, float, 0..6), Err(ListError::Misaligned { .. })));
    assert!(matches!(bind(&numbers, 0, float, 1024..2048), Err(ListError::OutOfRange { .. })));
    assert!(matches!(bind(&numbers, 0, vk::Format::D32_SFLOAT, 0..64), Err(ListError::Format { .. })));
    let blocks = bind(&numbers, 0, vk::Format::BC7_UNORM_BLOCK, 0..64);
    assert!(matches!(blocks, Err(ListError::Format { .. })), "{blocks:?}");
    assert!(matches!(bind(&plain, 0, float, 0..64), Err(ListError::BufferUsage { .. })));
    assert!(
        matches!(bind(&numbers, 1, float, 0..64), Err(ListError::Stage(_))),
        "the binding is not a texel buffer"
    );
    bind(&numbers, 0, float, 0..64).unwrap();
    drop(list);
    program.destroy(&fixture);
}
