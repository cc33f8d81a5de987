//! Compaction: moved and unmoved resources, freed blocks, and failing calls.

use std::error::Error;
use std::sync::{Arc, Mutex};

use ash::vk;
use sublet::{AllocationCreateFlags, AllocationCreateInfo, Allocator, AllocatorCreateInfo, MemoryUsage, sim};
use sublet_frame::track::{Subresources, Use};
use sublet_frame::{
    BarrierObserver, Buffer, CompactError, CompactStep, Compactor, CompactorCreateInfo, Frames, Image,
    ImageData, MovedResource, SubmitError, ViewInfo,
};

use crate::fixture::{FrameFixture, FrameParts, PROFILES, auto, frames, frames_with, gpu, image_info};
use crate::held::hold;
use crate::make::{begin_list, end_with};

const COLOR: vk::ImageAspectFlags = vk::ImageAspectFlags::COLOR;
pub(crate) const SIZE: u64 = 16 << 10;

/// Creates frames with blocks of a few resources each.
pub(crate) fn fixture(profile: &str, queues: u32) -> FrameFixture {
    fixture_with(profile, queues, None)
}

pub(crate) fn fixture_with(profile: &str, queues: u32, observer: Option<BarrierObserver>) -> FrameFixture {
    let gpu = gpu(profile, queues);
    let (_, descriptors) = crate::fixture::parts(&gpu);
    let allocator = Arc::new(small_blocks(&gpu));
    let count = queues as usize;
    let frames = frames_with(&gpu, &allocator, &descriptors, count, |info| info.on_barriers = observer);
    let frames = frames.unwrap();
    hold(FrameParts { frames: Some(frames), descriptors, allocator, gpu })
}

fn small_blocks(gpu: &sim::Gpu) -> Allocator {
    let info = AllocatorCreateInfo {
        preferred_large_heap_block_size: 128 << 10,
        ..AllocatorCreateInfo::for_gpu(gpu)
    };
    unsafe { Allocator::new(&info) }.unwrap()
}

pub(crate) fn info(frames: &Frames) -> CompactorCreateInfo {
    CompactorCreateInfo {
        max_time_per_frame: std::time::Duration::MAX,
        start_bytes: 0,
        start_heap_usage: 0.0,
        ..CompactorCreateInfo::new(frames.queue(0))
    }
}

fn reserved(allocator: &Allocator) -> u64 {
    allocator.memory_type_statistics().iter().map(|one| one.block_bytes).sum()
}

/// Creates many buffers and images and keeps every fourth, filled with its index.
pub(crate) fn scattered(frames: &mut Frames) -> Result<(Vec<Buffer>, Vec<Image>), Box<dyn Error>> {
    scattered_among(frames, &[])
}

/// Creates them with concurrent sharing between several families.
fn scattered_among(
    frames: &mut Frames,
    families: &[u32],
) -> Result<(Vec<Buffer>, Vec<Image>), Box<dyn Error>> {
    let mode = match families {
        [] => vk::SharingMode::EXCLUSIVE,
        _ => vk::SharingMode::CONCURRENT,
    };
    let format = image_info(vk::Format::R8G8B8A8_UNORM, (64, 64), 1, 1);
    let format = format.usage(format.usage | vk::ImageUsageFlags::SAMPLED);
    let format = format.sharing_mode(mode).queue_family_indices(families);
    let usage = vk::BufferUsageFlags::TRANSFER_SRC | vk::BufferUsageFlags::TRANSFER_DST;
    let bytes = vk::BufferCreateInfo::default().size(SIZE).usage(usage);
    let bytes = bytes.sharing_mode(mode).queue_family_indices(families);
    let (mut buffers, mut images) = (Vec::new(), Vec::new());
    for _ in 0..48 {
        buffers.push(unsafe { frames.create_buffer(&bytes, &auto()) }?);
        images.push(unsafe { frames.create_image(&format, &auto()) }?);
    }
    let mut number = 0;
    buffers.retain(|_| {
        number += 1;
        number % 4 == 1
    });
    number = 0;
    images.retain(|_| {
        number += 1;
        number % 4 == 1
    });
    frames.begin()?;
    let mut list = frames.list(frames.queue(0))?;
    for (at, (buffer, image)) in (0..).zip(buffers.iter().zip(&images)) {
        list.upload(buffer, 0, &[at; SIZE as usize])?;
        list.upload_image(image, &[ImageData::new(0, 0, &[at; SIZE as usize])])?;
        image.view()?;
    }
    frames.submit(frames.queue(0), [list])?;
    frames.end();
    Ok((buffers, images))
}

pub(crate) fn check(frames: &mut Frames, buffers: &[Buffer], images: &[Image]) -> Result<(), Box<dyn Error>> {
    let mut list = frames.list(frames.queue(0))?;
    let mut reads = Vec::new();
    for (at, (buffer, image)) in (0_u8..).zip(buffers.iter().zip(images)) {
        reads.push((at, list.read_buffer(buffer, 0..SIZE)?));
        reads.push((at, list.read_image(image, 0, 0..1, COLOR)?));
    }
    let ticket = frames.submit(frames.queue(0), [list])?;
    frames.wait(ticket)?;
    for (at, read) in reads {
        assert!(read.bytes()?.iter().all(|&byte| byte == at), "{at} has wrong bytes");
    }
    Ok(())
}

/// Steps until the run has ended.
fn run(frames: &mut Frames, compactor: &mut Compactor) -> Result<(), Box<dyn Error>> {
    compactor.request();
    for _ in 0..100 {
        frames.begin()?;
        let step = compactor.step(frames)?;
        frames.end();
        if matches!(step, CompactStep::Ended(_)) {
            return Ok(());
        }
    }
    panic!("the run has not ended")
}

#[test]
fn blocks_are_freed_and_contents_preserved() {
    for profile in PROFILES {
        let mut fixture = fixture(profile, 2);
        let fixture = &mut *fixture;
        let frames = fixture.frames.as_mut().unwrap();
        let (buffers, images) = scattered(frames).unwrap();
        frames.wait_idle().unwrap();
        let before = reserved(&fixture.allocator);
        let mut compactor =
            Compactor::new(CompactorCreateInfo { max_bytes_per_frame: 64 << 10, ..info(frames) });
        let reported = Arc::new(Mutex::new(Vec::new()));
        let subscriber = Arc::clone(&reported);
        compactor.subscribe(move |moved| match moved.resource {
            MovedResource::Buffer { buffer, old } => {
                assert_ne!(buffer.handle(), old);
                subscriber.lock().unwrap().push((buffer.memory_range(), None));
            }
            MovedResource::Image { image, old, views } => {
                assert_ne!(image.handle(), old);
                assert_eq!(views.len(), 1);
                assert_ne!(views[0].new, views[0].old);
                subscriber
                    .lock()
                    .unwrap()
                    .push((image.memory_range(), Some((image.view().unwrap(), views[0].new))));
            }
            _ => unreachable!(),
        });
        run(frames, &mut compactor).unwrap();
        frames.wait_idle().unwrap();
        let (after, statistics) = (reserved(&fixture.allocator), compactor.statistics());
        assert!(after < before, "{before} bytes before, {after} after");
        assert!(statistics.bytes_freed > 0 && statistics.moves > 4, "{statistics:?}");
        assert_eq!(reported.lock().unwrap().len() as u64, statistics.moves);
        for (place, views) in reported.lock().unwrap().iter() {
            assert!(place.is_some());
            assert!(views.is_none_or(|(view, new)| view == new));
        }
        check(frames, &buffers, &images).unwrap();
        // Nothing more can be gained, so no run starts.
        frames.begin().unwrap();
        assert_eq!(compactor.step(frames).unwrap(), CompactStep::Idle);
        frames.end();
    }
}

/// The simulated GPU rejects concurrent resources without their families.
#[test]
fn concurrent_resources_stay_concurrent_when_moved() {
    let mut fixture = fixture("lavapipe", 3);
    let family = fixture.gpu.queue_family_index();
    let frames = fixture.frames.as_mut().unwrap();
    let (buffers, images) = scattered_among(frames, &[family, family + 1]).unwrap();
    frames.wait_idle().unwrap();
    let mut compactor = Compactor::new(info(frames));
    run(frames, &mut compactor).unwrap();
    assert!(compactor.statistics().moves > 4);
    // The other family reads it without a release.
    let mut list = frames.list(frames.queue(2)).unwrap();
    let read = list.read_buffer(&buffers[1], 0..SIZE).unwrap();
    frames.submit(frames.queue(2), [list]).unwrap();
    frames.wait(&read).unwrap();
    assert_eq!(read.bytes().unwrap(), [1; SIZE as usize]);
    assert_eq!(frames.statistics().releases, 0);
    check(frames, &buffers, &images).unwrap();
}

#[test]
fn limits_of_a_frame_are_respected() {
    let mut fixture = fixture("lavapipe", 1);
    let frames = fixture.frames.as_mut().unwrap();
    let _kept = scattered(frames).unwrap();
    let mut compactor = Compactor::new(CompactorCreateInfo {
        max_bytes_per_frame: 2 * SIZE,
        max_moves_per_frame: 3,
        ..info(frames)
    });
    compactor.request();
    let mut moved = 0;
    for _ in 0..100 {
        frames.begin().unwrap();
        match compactor.step(frames).unwrap() {
            CompactStep::Moved { moves, bytes, .. } => {
                assert!(moves <= 3 && bytes <= 2 * SIZE, "{moves} moves of {bytes} bytes");
                moved += 1;
            }
            CompactStep::Ended(_) => break,
            _ => {}
        }
        frames.end();
    }
    assert!(moved > 2 && !compactor.is_active());
}

#[test]
fn pinned_frozen_and_host_visible_resources_do_not_move() {
    let mut fixture = fixture("lavapipe", 1);
    let frames = fixture.frames.as_mut().unwrap();
    let (buffers, images) = scattered(frames).unwrap();
    let host = AllocationCreateInfo {
        flags: AllocationCreateFlags::HOST_ACCESS_RANDOM,
        ..AllocationCreateInfo::new(MemoryUsage::Auto)
    };
    let dedicated = AllocationCreateInfo { flags: AllocationCreateFlags::DEDICATED_MEMORY, ..auto() };
    let copied = vk::BufferUsageFlags::TRANSFER_SRC | vk::BufferUsageFlags::TRANSFER_DST;
    let bytes = vk::BufferCreateInfo::default().size(SIZE).usage(copied);
    let fixed = unsafe {
        [
            frames.create_buffer(&bytes, &host).unwrap(),
            frames.create_buffer(&bytes, &dedicated).unwrap(),
            frames.create_buffer(&bytes, &AllocationCreateInfo::new(MemoryUsage::GpuToCpu)).unwrap(),
            frames.create_buffer(&bytes.usage(vk::BufferUsageFlags::TRANSFER_DST), &auto()).unwrap(),
        ]
    };
    for one in &fixed {
        assert!(!one.is_movable() && one.allocation().is_some() && one.memory_range().is_some());
    }
    let shown = Use::COPY_SOURCE;
    let mut list = frames.list(frames.queue(0)).unwrap();
    unsafe { list.use_buffer(&buffers[1], 0..SIZE, shown) }.unwrap();
    frames.submit(frames.queue(0), [list]).unwrap();
    frames.freeze(buffers[1].id(), shown).unwrap();
    images.iter().for_each(|image| image.pin(true));
    buffers[2..].iter().for_each(|buffer| buffer.pin(true));
    assert!(!buffers[2].is_movable() && buffers[0].is_movable() && buffers[0].allocation().is_none());
    let handles = |buffers: &[Buffer], images: &[Image]| {
        let buffers: Vec<_> = buffers.iter().map(Buffer::handle).collect();
        (buffers, images.iter().map(Image::handle).collect::<Vec<_>>())
    };
    let before = handles(&buffers[1..], &images);
    let mut compactor = Compactor::new(info(frames));
    run(frames, &mut compactor).unwrap();
    assert_eq!(handles(&buffers[1..], &images), before);
    images.iter().for_each(|image| image.pin(false));
    buffers[2..].iter().for_each(|buffer| buffer.pin(false));
    frames.thaw(buffers[1].id()).unwrap();
    run(frames, &mut compactor).unwrap();
    assert_ne!(handles(&buffers[1..], &images), before);
    check(frames, &buffers, &images).unwrap();
}

#[test]
fn resources_used_by_an_open_list_do_not_move() {
    let mut fixture = fixture("lavapipe", 1);
    let frames = fixture.frames.as_mut().unwrap();
    let (buffers, images) = scattered(frames).unwrap();
    let handles = || images.iter().map(Image::handle).collect::<Vec<_>>();
    let (old, pictures) = (buffers.iter().map(Buffer::handle).collect::<Vec<_>>(), handles());
    let mut list = begin_list(frames);
    let mut reads = Vec::new();
    for (at, (buffer, image)) in (0_u32..).zip(buffers.iter().zip(&images)) {
        // Written after the step, in submission order.
        list.fill_buffer(buffer, 0..SIZE, !(at * 0x0101_0101)).unwrap();
        list.fill_buffer(buffer, 0..SIZE, at * 0x0101_0101).unwrap();
        reads.push(list.read_image(image, 0, 0..1, COLOR).unwrap());
    }
    let mut compactor = Compactor::new(info(frames));
    compactor.request();
    assert_eq!(compactor.step(frames).unwrap(), CompactStep::Waiting);
    assert_eq!(handles(), pictures);
    assert_eq!(buffers.iter().map(Buffer::handle).collect::<Vec<_>>(), old);
    assert!(compactor.statistics().busy > 0, "{:?}", compactor.statistics());
    let ticket = end_with(frames, list);
    frames.wait(ticket).unwrap();
    for (at, read) in reads.iter().enumerate() {
        assert!(read.bytes().unwrap().iter().all(|&byte| usize::from(byte) == at));
    }
    // No list uses the resources any more.
    run(frames, &mut compactor).unwrap();
    run(frames, &mut compactor).unwrap();
    assert_ne!(handles(), pictures);
    check(frames, &buffers, &images).unwrap();
}

#[test]
fn resources_kept_by_a_list_do_not_move() {
    let mut fixture = fixture("lavapipe", 1);
    let frames = fixture.frames.as_mut().unwrap();
    let (buffers, images) = scattered(frames).unwrap();
    let mut list = frames.list(frames.queue(0)).unwrap();
    buffers.iter().try_for_each(|buffer| list.keep_buffer(buffer)).unwrap();
    images.iter().try_for_each(|image| list.keep_image(image)).unwrap();
    let handles = || images.iter().map(Image::handle).collect::<Vec<_>>();
    let before = (buffers.iter().map(Buffer::handle).collect::<Vec<_>>(), handles());
    let mut compactor = Compactor::new(info(frames));
    compactor.request();
    assert_eq!(compactor.step(frames).unwrap(), CompactStep::Waiting);
    assert_eq!((buffers.iter().map(Buffer::handle).collect::<Vec<_>>(), handles()), before);
    drop(list);
    // The request stays until it is complete.
    for _ in 0..10 {
        frames.begin().unwrap();
        compactor.step(frames).unwrap();
        frames.end();
    }
    assert_ne!(handles(), before.1);
    check(frames, &buffers, &images).unwrap();
}

#[test]
fn a_compactor_starts_on_its_triggers() {
    let mut fixture = fixture("lavapipe", 1);
    let frames = fixture.frames.as_mut().unwrap();
    let _kept = scattered(frames).unwrap();
    let step = |frames: &mut Frames, info: CompactorCreateInfo| {
        frames.wait_idle().unwrap();
        let mut compactor = Compactor::new(info);
        compactor.step(frames).unwrap()
    };
    let quiet = info(frames);
    assert_eq!(step(frames, quiet), CompactStep::Idle);
    assert_eq!(step(frames, CompactorCreateInfo { start_bytes: 1 << 30, ..quiet }), CompactStep::Idle);
    assert_eq!(step(frames, CompactorCreateInfo { start_heap_usage: 0.9, ..quiet }), CompactStep::Idle);
    let moved = step(frames, CompactorCreateInfo { start_bytes: 256 << 10, ..quiet });
    assert!(matches!(moved, CompactStep::Moved { .. }), "{moved:?}");
    let moved = step(frames, CompactorCreateInfo { start_heap_usage: 1e-7, ..quiet });
    assert!(matches!(moved, CompactStep::Moved { .. }), "{moved:?}");
}

#[test]
fn a_resource_may_be_dropped_during_its_move() {
    for profile in PROFILES {
        let mut fixture = fixture(profile, 1);
        fixture.gpu.hold_submissions(true);
        let frames = fixture.frames.as_mut().unwrap();
        let (mut buffers, images) = scattered(frames).unwrap();
        let mut compactor = Compactor::new(info(frames));
        compactor.request();
        frames.begin().unwrap();
        assert!(matches!(compactor.step(frames).unwrap(), CompactStep::Moved { .. }));
        buffers.clear();
        frames.end();
        drop(images);
        frames.wait_idle().unwrap();
        assert!(matches!(compactor.step(frames).unwrap(), CompactStep::Ended(_)));
    }
}

#[test]
fn other_defragmentations_and_lost_devices_are_errors() {
    let mut fixture = fixture("lavapipe", 1);
    let fixture = &mut *fixture;
    let frames = fixture.frames.as_mut().unwrap();
    let kept = scattered(frames).unwrap();
    let mut compactor = Compactor::new(info(frames));
    compactor.request();
    let allocator = Arc::clone(&fixture.allocator);
    let other = allocator.begin_defragmentation(&sublet::DefragmentationInfo::default()).unwrap();
    assert!(matches!(compactor.step(frames), Err(CompactError::Begin(_))));
    drop(other);
    drop(allocator);
    compactor.request();
    let handles: Vec<_> = kept.0.iter().map(Buffer::handle).collect();
    let call = if fixture.gpu.extensions().iter().any(|name| name == "VK_KHR_synchronization2") {
        "vkQueueSubmit2"
    } else {
        "vkQueueSubmit"
    };
    fixture.gpu.faults().fail_nth(call, 0, vk::Result::ERROR_DEVICE_LOST);
    let error = compactor.step(frames).unwrap_err();
    assert_eq!(error, CompactError::Lost);
    assert_eq!(kept.0.iter().map(Buffer::handle).collect::<Vec<_>>(), handles);
    assert_eq!(compactor.step(frames), Err(CompactError::Lost));
    fixture.gpu.faults().clear();
}

/// Runs with one failing call, with copies on the last of `queues`. Returns true if an error was returned.
fn attempt(profile: &str, queues: u32, fault: Option<(&str, u64)>) -> bool {
    let gpu = gpu(profile, queues);
    let (_, descriptors) = crate::fixture::parts(&gpu);
    let allocator = Arc::new(small_blocks(&gpu));
    let mut made = frames(&gpu, &allocator, &descriptors, queues as usize).unwrap();
    let (buffers, images) = scattered(&mut made).unwrap();
    made.wait_idle().unwrap();
    if let Some((call, n)) = fault {
        gpu.faults().fail_nth(call, n, vk::Result::ERROR_OUT_OF_DEVICE_MEMORY);
    }
    gpu.hold_submissions(true);
    let queue = made.queue(queues as usize - 1);
    let mut compactor = Compactor::new(CompactorCreateInfo { queue, ..info(&made) });
    let handles = |buffers: &[Buffer], images: &[Image]| {
        let buffers: Vec<_> = buffers.iter().map(Buffer::handle).collect();
        (buffers, images.iter().map(Image::handle).collect::<Vec<_>>())
    };
    let (mut failed, mut closed) = (false, false);
    compactor.request();
    for _ in 0..40 {
        let old = handles(&buffers, &images);
        if made.begin().is_err() {
            failed = true;
            continue;
        }
        match compactor.step(&made) {
            Ok(CompactStep::Ended(_)) => break,
            Ok(_) => {}
            Err(error) => {
                failed = true;
                assert!(!error.to_string().is_empty());
                assert_eq!(handles(&buffers, &images), old, "{fault:?}: rolled back completely");
                gpu.faults().clear();
                if matches!(error, CompactError::Submit(SubmitError::HalfDone(_))) {
                    closed = true;
                    break;
                }
                // Unmoved resources still create views.
                for image in &images {
                    let view_type = vk::ImageViewType::TYPE_2D_ARRAY;
                    let format = vk::Format::R8G8B8A8_UNORM;
                    let view = ViewInfo { view_type, format, part: Subresources::ALL };
                    unsafe { image.view_with(&view) }.unwrap();
                }
            }
        }
        made.end();
    }
    gpu.faults().clear();
    if !closed {
        // The same works immediately afterwards.
        made.wait_idle().unwrap();
        run(&mut made, &mut compactor).unwrap();
        check(&mut made, &buffers, &images).unwrap();
        assert!(compactor.statistics().moves > 4, "{fault:?}: {:?}", compactor.statistics());
    }
    drop((buffers, images, compactor));
    drop(made);
    drop(descriptors);
    let leaks = Arc::try_unwrap(allocator).unwrap().destroy();
    assert!(leaks.is_empty(), "{profile}, {fault:?}: {leaks:?}");
    let live = gpu.live();
    assert_eq!((live.buffers, live.images, live.command_pools), (0, 0, 0), "{fault:?}");
    let messages = gpu.take_messages();
    assert!(messages.is_empty(), "{profile}, {fault:?}: {messages:#?}");
    failed
}

#[test]
fn every_call_fails_in_turn() {
    let calls = [
        ("vkCreateBuffer", 12),
        ("vkCreateImage", 12),
        ("vkCreateImageView", 12),
        ("vkBindBufferMemory", 12),
        ("vkBindImageMemory", 12),
        ("vkBindBufferMemory2", 12),
        ("vkBindImageMemory2", 12),
        ("vkCreateCommandPool", 3),
        ("vkAllocateCommandBuffers", 3),
        ("vkBeginCommandBuffer", 4),
        ("vkEndCommandBuffer", 4),
        ("vkQueueSubmit", 6),
        ("vkQueueSubmit2", 6),
        ("vkCreateSemaphore", 2),
        ("vkCreateFence", 4),
        ("vkResetCommandPool", 3),
    ];
    let mut tried = 0;
    for (profile, queues) in PROFILES.into_iter().flat_map(|profile| [(profile, 1), (profile, 3)]) {
        assert!(!attempt(profile, queues, None));
        for (call, count) in calls {
            for n in 0..count {
                tried += usize::from(attempt(profile, queues, Some((call, n))));
            }
        }
    }
    assert!(tried > 80, "only {tried} calls failed");
}

#[test]
fn names_survive_moves() {
    for profile in PROFILES {
        let mut fixture = fixture(profile, 1);
        let frames = fixture.frames.as_mut().unwrap();
        let (buffers, images) = scattered(frames).unwrap();
        for (at, (buffer, image)) in buffers.iter().zip(&images).enumerate() {
            buffer.set_name(&format!("bytes {at}")).unwrap();
            image.set_name(&format!("texels {at}")).unwrap();
        }
        let before: Vec<_> =
            buffers.iter().map(Buffer::handle).zip(images.iter().map(Image::handle)).collect();
        let mut compactor = Compactor::new(info(frames));
        run(frames, &mut compactor).unwrap();
        let mut list = begin_list(frames);
        let mut moved = [0, 0];
        for (at, ((buffer, image), before)) in buffers.iter().zip(&images).zip(before).enumerate() {
            moved[0] += usize::from(buffer.handle() != before.0);
            moved[1] += usize::from(image.handle() != before.1);
            assert_eq!(buffer.name().as_deref(), Some(&*format!("bytes {at}")));
            // Provoke messages that name the resources.
            let wrong = |device: &ash::Device, commands| {
                unsafe { device.cmd_fill_buffer(commands, buffer.handle(), 1, 4, 0) };
                let source = vk::ImageLayout::TRANSFER_SRC_OPTIMAL;
                let (black, part) = (vk::ClearColorValue::default(), vk::ImageSubresourceRange::default());
                unsafe { device.cmd_clear_color_image(commands, image.handle(), source, &black, &[part]) };
            };
            unsafe { list.raw(wrong) }.unwrap();
            let said: Vec<_> = fixture.gpu.take_messages().iter().map(ToString::to_string).collect();
            for name in [format!("bytes {at}"), format!("texels {at}")] {
                assert!(said.iter().any(|said| said.contains(&name)), "{profile}, {name}: {said:#?}");
            }
        }
        assert!(moved.iter().all(|&moved| moved > 0), "{moved:?}");
    }
}
