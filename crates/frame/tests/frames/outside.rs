//! External changes to resources: host writes, layouts after foreign commands, and unwritten resources.

use std::sync::{Arc, Mutex};

use ash::vk;
use sublet::{AllocationCreateFlags, AllocationCreateInfo};
use sublet_frame::track::{ResourceId, Subresources, Use, UseError};
use sublet_frame::{
    Features, Frames, FramesCreateInfo, ListError, QueueInfo, SubmitError, UnwrittenObserver, WriteError,
};

use crate::fixture::{FrameFixture, PROFILES, auto, gpu, image_info, parts};
use crate::make::{begin_list, end_with};

const COLOR: vk::ImageAspectFlags = vk::ImageAspectFlags::COLOR;

fn written_by_host() -> AllocationCreateInfo<'static> {
    AllocationCreateInfo { flags: AllocationCreateFlags::HOST_ACCESS_SEQUENTIAL_WRITE, ..auto() }
}

fn copied(size: u64) -> vk::BufferCreateInfo<'static> {
    let usage = vk::BufferUsageFlags::TRANSFER_SRC | vk::BufferUsageFlags::TRANSFER_DST;
    vk::BufferCreateInfo::default().size(size).usage(usage)
}

#[test]
fn the_host_writes_only_unused_buffers() {
    // The last profile has non-coherent memory.
    for profile in PROFILES.into_iter().chain(["qualcomm-adreno-620"]) {
        let mut fixture = FrameFixture::new(profile, 1);
        let frames = fixture.frames();
        let buffer = unsafe { frames.create_buffer(&copied(64), &written_by_host()) }.unwrap();
        for round in 0..3_u8 {
            buffer.write(0, &[round; 64]).unwrap();
            buffer.write(60, &[9; 4]).unwrap();
            let mut list = begin_list(frames);
            let read = list.read_buffer(&buffer, 0..64).unwrap();
            assert_eq!(buffer.write(0, &[7]), Err(WriteError::InUse), "a list uses it");
            end_with(frames, list);
            assert_eq!(buffer.write(0, &[7]), Err(WriteError::InUse), "the list is not recycled yet");
            frames.wait(&read).unwrap();
            let bytes = read.bytes().unwrap();
            assert_eq!((&bytes[..60], &bytes[60..]), (&[round; 60][..], &[9; 4][..]), "{profile}");
        }
        // A dropped list no longer uses it.
        let mut list = frames.list(frames.queue(0)).unwrap();
        list.fill_buffer(&buffer, 0..64, 1).unwrap();
        drop(list);
        buffer.write(0, &[]).unwrap();
        buffer.write(63, &[1]).unwrap();
        let outside = WriteError::OutOfRange { offset: 63, count: 2, size: 64 };
        assert_eq!(buffer.write(63, &[1; 2]), Err(outside));
        assert!(matches!(buffer.write(u64::MAX, &[1]), Err(WriteError::OutOfRange { .. })));
        frames.freeze(buffer.id(), Use::COPY_SOURCE).unwrap();
        assert_eq!(buffer.write(0, &[1]), Err(WriteError::InUse), "lists use it without declaration");
        frames.thaw(buffer.id()).unwrap();
        buffer.write(0, &[1]).unwrap();
        let other = unsafe { frames.create_buffer(&copied(64), &auto()) }.unwrap();
        assert!(matches!(other.write(0, &[1]), Err(WriteError::NotHostVisible | WriteError::Map(_))));
    }
}

#[test]
fn lists_continue_from_the_layout_of_foreign_commands() {
    for profile in PROFILES {
        let mut fixture = FrameFixture::new(profile, 1);
        let image = fixture.image(&image_info(vk::Format::R8G8B8A8_UNORM, (4, 4), 2, 2));
        let frames = fixture.frames();
        let mut list = begin_list(frames);
        let part = Subresources::ALL.mips(0..1).layers(1..2);
        let unknown = unsafe { list.assume_image(&image, &part, Use::COPY_SOURCE) };
        assert!(matches!(unknown, Err(ListError::Use(UseError::NotUsed { .. }))), "{unknown:?}");
        let refused = frames.submit(frames.queue(0), [list]);
        assert!(matches!(refused, Err(SubmitError::Broken { .. })), "{refused:?}");

        let mut list = frames.list(frames.queue(0)).unwrap();
        let white = vk::ClearColorValue { float32: [1.0; 4] };
        unsafe { list.clear_color(&image, &Subresources::ALL, white) }.unwrap();
        let (from, to) = (vk::ImageLayout::TRANSFER_DST_OPTIMAL, vk::ImageLayout::TRANSFER_SRC_OPTIMAL);
        let foreign = |device: &ash::Device, commands| {
            let range = vk::ImageSubresourceRange {
                aspect_mask: COLOR,
                level_count: 1,
                base_array_layer: 1,
                layer_count: 1,
                ..Default::default()
            };
            let barrier = vk::ImageMemoryBarrier::default()
                .src_access_mask(vk::AccessFlags::TRANSFER_WRITE)
                .dst_access_mask(vk::AccessFlags::TRANSFER_READ)
                .old_layout(from)
                .new_layout(to)
                .image(image.handle())
                .subresource_range(range);
            let (stage, flags) = (vk::PipelineStageFlags::TRANSFER, vk::DependencyFlags::empty());
            unsafe { device.cmd_pipeline_barrier(commands, stage, stage, flags, &[], &[], &[barrier]) };
        };
        unsafe { list.raw(foreign) }.unwrap();
        unsafe { list.assume_image(&image, &part, Use::COPY_SOURCE) }.unwrap();
        // The next command needs no barrier for that part.
        let first = list.read_image(&image, 0, 1..2, COLOR).unwrap();
        let all = list.read_image(&image, 0, 0..2, COLOR).unwrap();
        // A later write waits for the readers.
        unsafe { list.clear_color(&image, &part, vk::ClearColorValue::default()) }.unwrap();
        let last = list.read_image(&image, 0, 0..2, COLOR).unwrap();
        end_with(frames, list);
        frames.wait(&last).unwrap();
        assert_eq!(first.bytes().unwrap(), [255; 64], "{profile}");
        assert_eq!(all.bytes().unwrap(), [255; 128], "{profile}");
        assert_eq!(last.bytes().unwrap(), [[255; 64], [0; 64]].concat(), "{profile}");
    }
}

#[test]
fn lists_continue_from_the_layout_of_a_foreign_submission() {
    for profile in PROFILES {
        let mut fixture = FrameFixture::new(profile, 1);
        let image = fixture.image(&image_info(vk::Format::R8G8B8A8_UNORM, (4, 4), 1, 1));
        let (device, family) = (fixture.gpu.device().clone(), fixture.gpu.queue_family_index());
        let frames = fixture.frames();
        let info = vk::CommandPoolCreateInfo::default().queue_family_index(family);
        let pool = unsafe { device.create_command_pool(&info, None) }.unwrap();
        let info = vk::CommandBufferAllocateInfo::default().command_pool(pool).command_buffer_count(1);
        let commands = unsafe { device.allocate_command_buffers(&info) }.unwrap();
        unsafe { device.begin_command_buffer(commands[0], &vk::CommandBufferBeginInfo::default()) }.unwrap();
        let range = vk::ImageSubresourceRange {
            aspect_mask: COLOR,
            level_count: 1,
            layer_count: 1,
            ..Default::default()
        };
        let layout = vk::ImageLayout::GENERAL;
        let barrier = vk::ImageMemoryBarrier::default()
            .dst_access_mask(vk::AccessFlags::TRANSFER_WRITE)
            .new_layout(layout)
            .image(image.handle())
            .subresource_range(range);
        let (top, transfer) = (vk::PipelineStageFlags::TOP_OF_PIPE, vk::PipelineStageFlags::TRANSFER);
        let none = vk::DependencyFlags::empty();
        unsafe { device.cmd_pipeline_barrier(commands[0], top, transfer, none, &[], &[], &[barrier]) };
        let white = vk::ClearColorValue { float32: [1.0; 4] };
        unsafe { device.cmd_clear_color_image(commands[0], image.handle(), layout, &white, &[range]) };
        unsafe { device.end_command_buffer(commands[0]) }.unwrap();
        frames.with_queue(frames.queue(0), |queue| {
            let submit = vk::SubmitInfo::default().command_buffers(&commands);
            unsafe { device.queue_submit(queue, &[submit], vk::Fence::null()) }.unwrap();
            unsafe { device.queue_wait_idle(queue) }.unwrap();
        });
        unsafe { frames.assume_layout(image.id(), layout) }.unwrap();
        unsafe { frames.idle(image.id()) }.unwrap();
        let mut list = begin_list(frames);
        let read = list.read_image(&image, 0, 0..1, COLOR).unwrap();
        end_with(frames, list);
        frames.wait(&read).unwrap();
        assert_eq!(read.bytes().unwrap(), [255; 64], "{profile}");
        unsafe { device.destroy_command_pool(pool, None) };
    }
}

#[test]
fn reads_of_unwritten_resources_are_reported_once() {
    let gpu = gpu("lavapipe", 1);
    let (allocator, descriptors) = parts(&gpu);
    let reported: Arc<Mutex<Vec<ResourceId>>> = Arc::default();
    let observer: UnwrittenObserver = {
        let reported = Arc::clone(&reported);
        Arc::new(move |resource| reported.lock().unwrap().push(resource))
    };
    let queues = [QueueInfo { queue: gpu.queue(), family: gpu.queue_family_index() }];
    let (instance, device, physical) = (gpu.instance(), gpu.device(), gpu.physical_device());
    let info = FramesCreateInfo {
        features: Features::for_gpu(&gpu),
        on_unwritten_read: Some(observer),
        ..FramesCreateInfo::new(instance, device, physical, gpu.api_version(), &allocator, &queues)
    };
    let mut frames = unsafe { Frames::new(&info) }.unwrap();
    let image = image_info(vk::Format::R8G8B8A8_UNORM, (4, 4), 1, 1);
    let [written, unwritten] = [0; 2].map(|_| unsafe { frames.create_buffer(&copied(64), &auto()) }.unwrap());
    let [clear, dirty] = [0; 2].map(|_| unsafe { frames.create_image(&image, &auto()) }.unwrap());
    let mapped = unsafe { frames.create_buffer(&copied(64), &written_by_host()) }.unwrap();
    let (raw, memory) = unsafe { allocator.create_buffer(&copied(64), &auto()) }.unwrap();
    let imported = unsafe { frames.import_buffer(raw, &copied(64)) };
    for round in 0..2 {
        let mut list = begin_list(&mut frames);
        list.upload(&written, 0, &[1; 64]).unwrap();
        let black = vk::ClearColorValue::default();
        unsafe { list.clear_color(&clear, &Subresources::ALL, black) }.unwrap();
        let mut other = frames.list(frames.queue(0)).unwrap();
        for buffer in [&written, &unwritten, &mapped, &imported] {
            other.read_buffer(buffer, 0..64).unwrap();
        }
        for image in [&clear, &dirty] {
            other.read_image(image, 0, 0..1, COLOR).unwrap();
        }
        frames.submit(frames.queue(0), [list, other]).unwrap();
        frames.end();
        let mut reported = std::mem::take(&mut *reported.lock().unwrap());
        reported.sort_by_key(|resource| format!("{resource:?}"));
        let mut expected: Vec<ResourceId> = vec![unwritten.id().into(), dirty.id().into()];
        expected.sort_by_key(|resource| format!("{resource:?}"));
        assert_eq!(reported, if round == 0 { expected } else { Vec::new() });
    }
    frames.wait_idle().unwrap();
    drop((written, unwritten, clear, dirty, mapped, imported, frames, descriptors));
    unsafe { allocator.destroy_buffer(raw, memory) }.unwrap();
    drop(allocator);
}
