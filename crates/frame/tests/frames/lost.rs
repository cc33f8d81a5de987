//! Driver errors: a lost device, `HalfDone` submissions, failing waits.

use std::error::Error;
use std::sync::Arc;

use ash::vk;
use sublet::{AllocationCreateFlags, AllocationCreateInfo, MemoryUsage, sim};
use sublet_descriptors::BindPoint;
use sublet_frame::{
    Attachment, BeginError, CreateFramesError, CreateLayoutError, CreateResourceError, Frames, ListError,
    OpenError, PipelineLayout, ReadError, RenderingInfo, StorageAccess, SubmitError, TransientImage,
    ViewError, WriteError,
};

use crate::faults::{may_fail, program};
use crate::fixture::{FrameFixture, PROFILES, auto, frames, frames_with, gpu, image_info, parts};
use crate::paint::binding;

const COMPUTE: BindPoint = BindPoint::Compute;
const LOST: vk::Result = vk::Result::ERROR_DEVICE_LOST;
const NO_MEMORY: vk::Result = vk::Result::ERROR_OUT_OF_HOST_MEMORY;

/// Renders, generates mips by a compute shader, binds descriptors, and uses shared memory. The caller provides the
/// pipeline.
fn draws(
    frames: &Frames,
    binds: bool,
    pipeline: vk::Pipeline,
    layout: &PipelineLayout,
) -> Result<(), Box<dyn Error>> {
    let mut info = image_info(vk::Format::R8G8B8A8_UNORM, (16, 16), 3, 1);
    info.usage |=
        vk::ImageUsageFlags::COLOR_ATTACHMENT | vk::ImageUsageFlags::SAMPLED | vk::ImageUsageFlags::STORAGE;
    let image = unsafe { frames.create_image(&info, &auto()) }?;
    image.view()?;
    let usage = vk::BufferUsageFlags::TRANSFER_DST | vk::BufferUsageFlags::STORAGE_BUFFER;
    let info = vk::BufferCreateInfo::default().size(256).usage(usage);
    let needs = vk::MemoryRequirements { size: 4096, alignment: 4096, memory_type_bits: !0 };
    let memory = frames.allocate_shared(&needs, &AllocationCreateInfo::new(MemoryUsage::GpuOnly))?;
    let buffer = unsafe { frames.create_buffer_in(&memory, 0, &info) }?;
    let info = image_info(vk::Format::R8_UNORM, (8, 8), 1, 1);
    let transient = [TransientImage { info, steps: 0..=1 }];
    let only = AllocationCreateInfo::new(MemoryUsage::GpuOnly);
    drop(unsafe { frames.create_transient_images(&transient, &only) }?);

    let usage = vk::BufferUsageFlags::UNIFORM_BUFFER;
    let info = vk::BufferCreateInfo::default().size(256).usage(usage);
    let flags = AllocationCreateFlags::HOST_ACCESS_SEQUENTIAL_WRITE;
    unsafe { frames.create_buffer(&info, &AllocationCreateInfo { flags, ..auto() }) }?.write(0, &[1; 64])?;

    let mut list = frames.list(frames.queue(0))?;
    let colors = [Some(Attachment::clear(&image))];
    unsafe { list.begin_rendering(&RenderingInfo::new(image.extent(0), &colors, None)) }?;
    list.end_rendering()?;
    frames.submit(frames.queue(0), [list])?;
    let mut list = frames.list(frames.queue(2))?;
    list.generate_mips(&image)?;
    // The third profile cannot recycle descriptor pools.
    if binds {
        unsafe { list.bind_pipeline(COMPUTE, pipeline, layout) }?;
        list.bind_constants(COMPUTE, (0, 0), &7_u32)?;
        list.bind_buffer(COMPUTE, (0, 1, 0), &buffer, 0..256, StorageAccess::Write)?;
        unsafe {
            list.bind_image(COMPUTE, (0, 2, 0), &image, None, vk::Sampler::null(), StorageAccess::Read)
        }?;
        unsafe { list.dispatch([1, 1, 1]) }?;
    }
    let ticket = frames.submit(frames.queue(2), [list])?;
    frames.wait(ticket)?;
    Ok(())
}

/// Creates the pipeline, or returns the error of the driver.
fn pipeline(gpu: &sim::Gpu, layout: &PipelineLayout) -> Result<vk::Pipeline, vk::Result> {
    gpu.set_kernel("main", |_| {});
    gpu.set_kernel("sublet_mips", |_| {});
    let (device, stages) = (gpu.device(), vk::ShaderStageFlags::COMPUTE);
    let code = vk::ShaderModuleCreateInfo::default().code(&[0x0723_0203]);
    let module = unsafe { device.create_shader_module(&code, None) }?;
    let stage = vk::PipelineShaderStageCreateInfo::default().stage(stages).module(module).name(c"main");
    let info = vk::ComputePipelineCreateInfo::default().stage(stage).layout(layout.handle());
    let made = unsafe { device.create_compute_pipelines(vk::PipelineCache::null(), &[info], None) };
    unsafe { device.destroy_shader_module(module, None) };
    Ok(made.map_err(|(_, result)| result)?[0])
}

/// Runs the program with copies, then the one with draws.
fn all(frames: &mut Frames, gpu: &sim::Gpu, binds: bool) -> Result<(), Box<dyn Error>> {
    program(frames, 2)?;
    let kinds = [
        vk::DescriptorType::UNIFORM_BUFFER,
        vk::DescriptorType::STORAGE_BUFFER,
        vk::DescriptorType::SAMPLED_IMAGE,
    ];
    let stages = vk::ShaderStageFlags::COMPUTE;
    let bindings: Vec<_> = (0..).zip(kinds).map(|(number, kind)| binding(number, kind, stages)).collect();
    let sets = [vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings)];
    let layout = unsafe { frames.create_pipeline_layout(&sets, &[]) }?;
    // Errors of the test's own driver calls are not counted.
    let Ok(pipeline) = pipeline(gpu, &layout) else { return Ok(()) };
    let done = draws(frames, binds, pipeline, &layout);
    let idle = frames.wait_idle();
    unsafe { gpu.device().destroy_pipeline(pipeline, None) };
    done?;
    Ok(idle?)
}

fn says_lost(error: &(dyn Error + 'static)) -> bool {
    matches!(error.downcast_ref(), Some(BeginError::Lost))
        || matches!(error.downcast_ref(), Some(OpenError::Lost))
        || matches!(error.downcast_ref(), Some(SubmitError::Lost))
        || matches!(error.downcast_ref(), Some(ListError::Lost))
        || matches!(error.downcast_ref(), Some(ReadError::Lost))
        || matches!(error.downcast_ref(), Some(WriteError::Lost))
        || matches!(error.downcast_ref(), Some(ViewError::Lost))
        || matches!(error.downcast_ref(), Some(CreateResourceError::Lost))
        || matches!(error.downcast_ref(), Some(CreateLayoutError::Lost))
        || matches!(error.downcast_ref(), Some(CreateFramesError::Lost))
}

/// Whichever call reports it first, the error is `Lost`, submissions are rejected, and nothing leaks.
#[test]
fn a_lost_device_is_lost_in_every_error() {
    let mut seen = 0;
    for profile in PROFILES {
        let binds = profile != PROFILES[2];
        let counts = {
            let gpu = gpu(profile, 3);
            let (allocator, descriptors) = parts(&gpu);
            gpu.allow_aliasing(true);
            all(&mut frames(&gpu, &allocator, &descriptors, 3).unwrap(), &gpu, binds).unwrap();
            assert_eq!(gpu.take_messages().len(), 0, "{profile}");
            gpu.call_counts()
        };
        for (call, count) in counts.into_iter().filter(|(call, _)| may_fail(call)) {
            for n in 0..count {
                let gpu = gpu(profile, 3);
                let (allocator, descriptors) = parts(&gpu);
                gpu.allow_aliasing(true);
                gpu.faults().fail_nth(call, n, LOST);
                let what = format!("{profile}, {call} {n}");
                match frames(&gpu, &allocator, &descriptors, 3) {
                    Err(error) => {
                        assert_eq!(error, CreateFramesError::Lost, "{what}");
                        seen += 1;
                    }
                    Ok(mut frames) => {
                        if let Err(error) = all(&mut frames, &gpu, binds) {
                            assert!(says_lost(&*error), "{what}: {error:?}");
                            assert_eq!(frames.list(frames.queue(0)).err(), Some(OpenError::Lost), "{what}");
                            assert!(matches!(frames.wait_idle(), Err(BeginError::Lost)), "{what}");
                            assert_eq!(frames.statistics().in_flight, 0, "{what}");
                            seen += 1;
                        }
                    }
                }
                drop(descriptors);
                let leaks = Arc::try_unwrap(allocator).unwrap().destroy();
                assert!(leaks.is_empty(), "{what}: {leaks:?}");
                let live = gpu.live();
                let left =
                    [live.semaphores, live.fences, live.command_pools, live.buffers, live.images, live.views];
                assert_eq!(left, [0; 6], "{what}");
            }
        }
    }
    assert!(seen > 300, "only {seen} calls failed");
}

/// The device is lost while work is in flight, and detected only when the frames are dropped.
#[test]
fn a_device_lost_before_frames_are_dropped_releases_everything() {
    for profile in PROFILES {
        let mut fixture = FrameFixture::new(profile, 2);
        fixture.gpu.hold_submissions(true);
        let buffer = fixture.buffer(64);
        let frames = fixture.frames();
        let mut list = frames.list(frames.queue(0)).unwrap();
        list.upload(&buffer, 0, &[1; 64]).unwrap();
        let read = list.read_buffer(&buffer, 0..64).unwrap();
        frames.submit(frames.queue(0), [list]).unwrap();
        fixture.gpu.faults().lose_device();
        drop(fixture.frames.take());
        assert_eq!(read.bytes(), Err(ReadError::Lost), "{profile}");
        drop((buffer, read));
        let live = fixture.gpu.live();
        assert_eq!(
            (live.command_pools, live.buffers, live.fences, live.semaphores),
            (0, 0, 0, 0),
            "{profile}"
        );
    }
}

/// Everything that may fail, except submissions, happens before any release.
#[test]
fn only_failing_submissions_return_half_done() {
    let calls = [
        "vkCreateFence",
        "vkCreateSemaphore",
        "vkCreateCommandPool",
        "vkAllocateCommandBuffers",
        "vkBeginCommandBuffer",
        "vkEndCommandBuffer",
    ];
    let mut refused = 0;
    for (profile, call) in PROFILES.into_iter().flat_map(|profile| calls.map(|call| (profile, call))) {
        for n in 0..4 {
            let mut fixture = FrameFixture::new(profile, 3);
            let (buffer, to) = (fixture.buffer(64), fixture.buffer(64));
            let frames = fixture.frames();
            let (first, second) = (frames.queue(0), frames.queue(2));
            let mut list = frames.list(first).unwrap();
            list.fill_buffer(&buffer, 0..64, 1).unwrap();
            frames.submit(first, [list]).unwrap();
            let record = |frames: &sublet_frame::Frames| {
                let mut list = frames.list(second).unwrap();
                let copy = vk::BufferCopy { src_offset: 0, dst_offset: 0, size: 64 };
                list.copy_buffer(&buffer, &to, &[copy]).unwrap();
                (list.read_buffer(&to, 0..64).unwrap(), list)
            };
            let (read, list) = record(frames);
            fixture.gpu.faults().fail_nth(call, n, NO_MEMORY);
            let frames = fixture.frames();
            let mut read = read;
            if let Err(error) = frames.submit(second, [list]) {
                assert!(matches!(error, SubmitError::Driver(_)), "{profile}, {call} {n}: {error:?}");
                refused += 1;
                let (again, list) = record(frames);
                frames.submit(second, [list]).unwrap();
                read = again;
            }
            fixture.gpu.faults().clear();
            let frames = fixture.frames();
            frames.wait(&read).unwrap();
            assert_eq!(read.bytes().unwrap()[..4], [1, 0, 0, 0], "{profile}, {call} {n}");
            frames.wait_idle().unwrap();
        }
    }
    assert!(refused >= 15, "only {refused}");
}

#[test]
fn a_wait_that_fails_is_tried_again_when_frames_are_dropped() {
    for profile in PROFILES {
        let mut fixture = FrameFixture::new(profile, 1);
        fixture.gpu.hold_submissions(true);
        let buffer = fixture.buffer(64);
        let frames = fixture.frames();
        let mut list = frames.list(frames.queue(0)).unwrap();
        list.upload(&buffer, 0, &[1; 64]).unwrap();
        frames.submit(frames.queue(0), [list]).unwrap();
        drop(buffer);
        for call in ["vkWaitSemaphores", "vkWaitForFences"] {
            fixture.gpu.faults().fail_nth(call, 0, NO_MEMORY);
        }
    }
}

#[test]
fn no_frame_in_flight_and_too_many_are_errors() {
    let gpu = gpu("lavapipe", 1);
    let (allocator, descriptors) = parts(&gpu);
    let most = sublet_frame::Frames::MOST_IN_FLIGHT;
    let make = |count| {
        let made = frames_with(&gpu, &allocator, &descriptors, 1, |info| info.frames_in_flight = count);
        made.map(|frames| frames.slot())
    };
    assert_eq!(make(0), Err(CreateFramesError::NoFrames));
    for frames in [usize::MAX, most + 1] {
        assert_eq!(make(frames), Err(CreateFramesError::TooManyFrames { frames, most }));
    }
    assert_eq!((make(1), make(most)), (Ok(0), Ok(0)));
}
