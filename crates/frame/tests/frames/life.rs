//! Lifetimes of resources, and recycling by frames.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;

use ash::vk;
use sublet::{AllocationCreateInfo, MemoryUsage};
use sublet_frame::track::{Subresources, Use};
use sublet_frame::{BeginError, ListError, ReadError, SubmitError};

use crate::fixture::{self, FrameFixture, FrameParts, PROFILES, image_info};
use crate::make::{begin_list, end_with};

#[test]
fn frames_cycle_with_every_submission_api() {
    for profile in PROFILES {
        let mut fixture = FrameFixture::new(profile, 1);
        let buffer = fixture.buffer(4096);
        for frame in 0..10_u8 {
            let frames = fixture.frames();
            let mut list = begin_list(frames);
            list.upload(&buffer, 16, &[frame; 1000]).unwrap();
            list.fill_buffer(&buffer, 0..16, u32::from(frame) * 0x0101_0101).unwrap();
            let read = list.read_buffer(&buffer, 0..1016).unwrap();
            assert_eq!(read.bytes(), Err(ReadError::NotReady));
            end_with(frames, list);
            frames.wait(&read).unwrap();
            assert!(read.is_ready());
            assert_eq!(read.bytes().unwrap(), [frame; 1016], "{profile}");
        }
        let statistics = fixture.frames().statistics();
        assert_eq!((statistics.frames, statistics.lists, statistics.submissions), (10, 10, 10));
        assert!(statistics.pools <= 3 && statistics.contexts == 1, "{statistics:?}");
    }
}

#[test]
fn a_buffer_that_is_dropped_lives_as_long_as_the_list() {
    for profile in PROFILES {
        let mut fixture = FrameFixture::new(profile, 1);
        fixture.gpu.hold_submissions(true);
        let (from, to) = (fixture.buffer(256), fixture.buffer(256));
        let live = fixture.gpu.live().buffers;
        let frames = fixture.frames();
        let mut list = begin_list(frames);
        list.fill_buffer(&from, 0..256, 0x0707_0707).unwrap();
        list.copy_buffer(&from, &to, &[vk::BufferCopy { src_offset: 0, dst_offset: 0, size: 256 }]).unwrap();
        let read = list.read_buffer(&to, 0..256).unwrap();
        drop((from, to));
        end_with(frames, list);
        assert_eq!(fixture.gpu.live().buffers, live + 1, "{profile}");
        fixture.frames().wait(&read).unwrap();
        assert_eq!(read.bytes().unwrap(), [7; 256]);
        drop(read);
        assert_eq!(fixture.gpu.live().buffers, live - 2, "{profile}");
    }
}

#[test]
fn resources_may_outlive_the_frames() {
    let mut fixture = FrameFixture::new("lavapipe", 1);
    let info = image_info(vk::Format::R8_UNORM, (4, 4), 1, 1);
    let _kept = (fixture.buffer(64), fixture.image(&info));
    drop(fixture.frames.take());
    assert_eq!(fixture.gpu.live().buffers, 1);
}

#[test]
fn lists_may_outlive_the_frames() {
    let mut fixture = FrameFixture::new("lavapipe", 1);
    let buffer = fixture.buffer(64);
    let frames = fixture.frames();
    let mut list = frames.list(frames.queue(0)).unwrap();
    list.upload(&buffer, 0, &[1; 64]).unwrap();
    drop(fixture.frames.take());
}

#[test]
fn a_list_that_is_dropped_leaves_nothing() {
    let mut fixture = FrameFixture::new("lavapipe", 1);
    let buffer = fixture.buffer(64);
    let frames = fixture.frames();
    let mut list = begin_list(frames);
    list.upload(&buffer, 0, &[1; 64]).unwrap();
    let read = list.read_buffer(&buffer, 0..64).unwrap();
    drop(list);
    // Some drivers execute commands of a pool that was reset during recording.
    assert_eq!(frames.statistics().pools, 0);
    assert_eq!(read.bytes(), Err(ReadError::Never));
    drop(read);
    frames.end();
    assert_eq!(frames.statistics().in_flight, 0);
}

/// Open lists share upload pages. Idle memory is freed.
#[test]
fn open_lists_share_pages_and_idle_memory_is_freed() {
    const LISTS: u64 = 500;
    for by_itself in [false, true] {
        let mut fixture = FrameFixture::new("nvidia-rtx-5070-ti", 1);
        let buffer = fixture.buffer(LISTS * 16);
        let blocks = |fixture: &FrameFixture| -> u64 {
            fixture.allocator.memory_type_statistics().iter().map(|one| one.block_bytes).sum()
        };
        let before = blocks(&fixture);
        let frames = fixture.frames();
        frames.begin().unwrap();
        let queue = frames.queue(0);
        let lists: Vec<_> = (0..LISTS)
            .map(|at| {
                let mut list = frames.list(queue).unwrap();
                list.upload(&buffer, at * 16, &[at as u8; 16]).unwrap();
                list
            })
            .collect();
        let open = frames.statistics();
        assert_eq!((open.pools, open.contexts), (LISTS, LISTS));
        // A chunk of 4 KiB for each list.
        assert_eq!(open.upload_bytes, 2 << 20, "{open:?}");
        frames.submit(queue, lists).unwrap();
        let mut list = frames.list(queue).unwrap();
        let read = list.read_buffer(&buffer, 0..LISTS * 16).unwrap();
        end_with(frames, list);
        frames.wait(&read).unwrap();
        let expected: Vec<u8> = (0..LISTS).flat_map(|at| [at as u8; 16]).collect();
        assert_eq!(read.bytes().unwrap(), expected);
        drop(read);
        if by_itself {
            // Twice: objects must be idle from the first to the last of 120 collections.
            for _ in 0..2 * 120 {
                frames.begin().unwrap();
                let mut list = frames.list(queue).unwrap();
                list.upload(&buffer, 0, &[1; 16]).unwrap();
                end_with(frames, list);
            }
            let left = frames.statistics();
            assert!(left.pools <= 3 && left.contexts <= 1 && left.upload_bytes <= 6 << 20, "{left:?}");
        }
        frames.wait_idle().unwrap();
        let bytes = frames.statistics().upload_bytes;
        assert_eq!(frames.trim().unwrap(), bytes);
        let left = frames.statistics();
        assert_eq!((left.pools, left.contexts, left.upload_bytes), (0, 0, 0));
        fixture.allocator.trim();
        assert_eq!(blocks(&fixture), before);
    }
}

/// Pages wait for each list that has bytes in them, regardless of other lists.
#[test]
fn uploads_of_an_open_list_are_preserved() {
    // The second profile has non-coherent memory.
    for profile in ["lavapipe", "qualcomm-adreno-620"] {
        let mut fixture = FrameFixture::new(profile, 1);
        let (first, other) = (fixture.buffer(1 << 16), fixture.buffer(1 << 16));
        let frames = fixture.frames();
        let queue = frames.queue(0);
        let mut kept = frames.list(queue).unwrap();
        kept.upload(&first, 0, &[7; 1000]).unwrap();
        for round in 0..200_u64 {
            frames.begin().unwrap();
            let mut list = frames.list(queue).unwrap();
            let size = round as usize * 300 + 1;
            list.upload(&other, 0, &vec![round as u8; size]).unwrap();
            let read = list.read_buffer(&other, size as u64 - 1..size as u64).unwrap();
            if round % 5 == 4 {
                // Never submitted: its bytes are free at once.
                drop(list);
                assert_eq!(read.bytes(), Err(ReadError::Never));
                frames.end();
                continue;
            }
            end_with(frames, list);
            frames.wait(&read).unwrap();
            assert_eq!(read.bytes().unwrap(), [round as u8], "{profile}");
            if round % 50 == 0 {
                frames.trim().unwrap();
            }
            if round % 10 == 0 {
                kept.upload(&first, 1000 + round * 100, &vec![8; 9000]).unwrap();
            }
        }
        assert!(frames.statistics().upload_bytes <= 8 << 20);
        let read = kept.read_buffer(&first, 0..29_000).unwrap();
        frames.submit(queue, [kept]).unwrap();
        frames.wait(&read).unwrap();
        assert!(read.bytes().unwrap()[..1000].iter().all(|&byte| byte == 7), "{profile}");
        assert!(read.bytes().unwrap()[1000..].iter().all(|&byte| byte == 8), "{profile}");
    }
}

#[test]
fn lists_are_recorded_by_many_threads() {
    let mut fixture = FrameFixture::new("nvidia-rtx-5070-ti", 1);
    let buffers: Vec<_> = (0..4).map(|_| fixture.buffer(256)).collect();
    for frame in 0..5_u8 {
        let frames = fixture.frames();
        frames.begin().unwrap();
        let queue = frames.queue(0);
        let (shared, buffers) = (&*frames, &buffers);
        let lists: Vec<_> = thread::scope(|scope| {
            let threads: Vec<_> = (0..4_u8)
                .map(|thread| {
                    scope.spawn(move || {
                        let mut list = shared.list(queue).unwrap();
                        list.upload(&buffers[usize::from(thread)], 0, &[frame * 4 + thread; 256]).unwrap();
                        let read = list.read_buffer(&buffers[usize::from(thread)], 0..256).unwrap();
                        (list, read)
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let (lists, reads): (Vec<_>, Vec<_>) = lists.into_iter().unzip();
        let ticket = frames.submit(queue, lists).unwrap();
        frames.end();
        frames.wait(ticket).unwrap();
        for (read, thread) in reads.iter().zip(0_u8..) {
            assert_eq!(read.bytes().unwrap(), [frame * 4 + thread; 256]);
        }
    }
}

#[test]
fn queues_wait_for_one_another() {
    for profile in PROFILES {
        let mut fixture = FrameFixture::new(profile, 2);
        fixture.gpu.hold_submissions(true);
        let buffer = fixture.buffer(64);
        let frames = fixture.frames();
        frames.begin().unwrap();
        let (first, second) = (frames.queue(0), frames.queue(1));
        let mut last = None;
        for round in 0..6_u8 {
            let queue = if round % 2 == 0 { first } else { second };
            let mut list = frames.list(queue).unwrap();
            list.upload(&buffer, u64::from(round) * 4, &[round + 1; 4]).unwrap();
            last = Some(list.read_buffer(&buffer, 0..24).unwrap());
            frames.submit(queue, [list]).unwrap();
        }
        frames.end();
        let read = last.unwrap();
        frames.wait(&read).unwrap();
        let expected: Vec<u8> = (1..=6).flat_map(|byte| [byte; 4]).collect();
        assert_eq!(read.bytes().unwrap(), expected, "{profile}");
        assert!(frames.statistics().waits >= 5);
    }
}

struct Counting(AtomicUsize);

impl Wake for Counting {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn a_read_back_is_a_future() {
    let mut fixture = FrameFixture::new("lavapipe", 1);
    fixture.gpu.hold_submissions(true);
    let buffer = fixture.buffer(16);
    let frames = fixture.frames();
    let mut list = begin_list(frames);
    list.fill_buffer(&buffer, 0..16, 0x0303_0303).unwrap();
    let mut read = pin!(list.read_buffer(&buffer, 0..16).unwrap());
    let wakes = Arc::new(Counting(AtomicUsize::new(0)));
    let waker = Waker::from(Arc::clone(&wakes));
    let mut context = Context::from_waker(&waker);
    assert!(read.as_mut().poll(&mut context).is_pending());
    let ticket = frames.submit(frames.queue(0), [list]).unwrap();
    frames.collect().unwrap();
    assert!(read.as_mut().poll(&mut context).is_pending());
    assert_eq!(wakes.0.load(Ordering::Relaxed), 0);
    frames.wait(ticket).unwrap();
    assert_eq!(wakes.0.load(Ordering::Relaxed), 1);
    assert_eq!(read.as_mut().poll(&mut context), Poll::Ready(Ok(vec![3; 16])));
}

#[test]
fn invalid_commands_return_errors_and_record_nothing() {
    let mut fixture = FrameFixture::new("lavapipe", 1);
    let mut other = FrameFixture::new("lavapipe", 1);
    let (buffer, foreign) = (fixture.buffer(64), other.buffer(64));
    let frames = fixture.frames();
    let queue = frames.queue(0);
    let mut list = begin_list(frames);
    let copy = |src_offset, dst_offset, size| vk::BufferCopy { src_offset, dst_offset, size };
    assert_eq!(list.fill_buffer(&foreign, 0..64, 0), Err(ListError::OtherFrames));
    assert!(matches!(
        list.fill_buffer(&buffer, 0..68, 0),
        Err(ListError::OutOfRange { end: 68, size: 64, .. })
    ));
    assert!(matches!(
        list.fill_buffer(&buffer, 2..64, 0),
        Err(ListError::Misaligned { given: 2, alignment: 4, .. })
    ));
    assert!(matches!(list.update_buffer(&buffer, 0, &[0; 3]), Err(ListError::Misaligned { .. })));
    let area =
        |x, width| vk::Rect2D { offset: vk::Offset2D { x, y: 0 }, extent: vk::Extent2D { width, height: 4 } };
    for (x, width) in [(-1, 4), (0, 0), (1, u32::MAX)] {
        assert!(
            matches!(list.set_viewport(area(x, width)), Err(ListError::OutOfRange { .. })),
            "{x}, {width}"
        );
    }
    assert_eq!(list.set_viewport(area(1, 4)), Ok(()));
    let overlap = list.copy_buffer(&buffer, &buffer, &[copy(0, 16, 32)]);
    assert_eq!(overlap, Err(ListError::Overlap { region: 0, with: 0 }));
    assert!(list.copy_buffer(&buffer, &buffer, &[copy(0, 32, 32)]).is_ok());
    let image = image_info(vk::Format::R8G8B8A8_UNORM, (4, 4), 1, 1);
    let image = fixture.image(&image);
    let frames = fixture.frames();
    assert!(matches!(
        unsafe {
            list.copy_image(
                &image,
                &image,
                &[vk::ImageCopy {
                    src_subresource: vk::ImageSubresourceLayers {
                        aspect_mask: vk::ImageAspectFlags::COLOR,
                        mip_level: 1,
                        base_array_layer: 0,
                        layer_count: 1,
                    },
                    ..Default::default()
                }],
            )
        },
        Err(ListError::OutOfRange { what: "mips", .. })
    ));
    frames.submit(queue, [list]).unwrap();

    let other_queue = other.frames().queue(0);
    let list = other.frames().list(other_queue).unwrap();
    assert_eq!(frames.submit(queue, [list]), Err(SubmitError::WrongQueue { list: 0 }));
    // One command uses a buffer in two ways.
    let mut list = frames.list(queue).unwrap();
    unsafe { list.use_buffer(&buffer, 0..64, Use::COPY_SOURCE) }.unwrap();
    let twice = unsafe { list.use_buffer(&buffer, 0..64, Use::COPY_TARGET) };
    assert!(matches!(twice, Err(ListError::Use(_))));
    // The first error is reported.
    let (outside, first) = (vk::PipelineStageFlags2::COPY, twice.unwrap_err());
    let layout = vk::ImageLayout::UNDEFINED;
    let none = Use::new(outside, vk::AccessFlags2::TRANSFER_READ, layout);
    let second = unsafe { list.use_image(&image, &Subresources::ALL, none) }.unwrap_err();
    assert_ne!(first, second);
    let refused = frames.submit(queue, [list]).unwrap_err();
    assert!(refused.to_string().contains(&first.to_string()), "{refused}");
    assert_eq!(refused, SubmitError::Broken { list: 0, error: Box::new(first) });
    frames.end();
}

#[test]
fn rejected_commands_declare_no_uses() {
    let mut fixture = FrameFixture::new("lavapipe", 1);
    let buffer = fixture.buffer(64);
    let image = fixture.image(&image_info(vk::Format::R8G8B8A8_UNORM, (4, 4), 1, 1));
    let frames = fixture.frames();
    let queue = frames.queue(0);
    let mut list = frames.list(queue).unwrap();
    assert_eq!(unsafe { list.draw_indirect(&buffer, 0, 1, 0) }, Err(ListError::OutsideRendering));
    assert_eq!(unsafe { list.draw_indexed_indirect(&buffer, 0, 1, 0) }, Err(ListError::OutsideRendering));
    let (none, black) = (Subresources::ALL.mips(0..0), vk::ClearColorValue::default());
    let cleared = unsafe { list.clear_color(&image, &none, black) };
    assert!(matches!(cleared, Err(ListError::OutOfRange { what: "mips", .. })), "{cleared:?}");
    // Reading the buffer as arguments and writing it would be two uses by one command.
    list.fill_buffer(&buffer, 0..64, 0).unwrap();
    frames.submit(queue, [list]).unwrap();
}

#[test]
fn a_lost_device_releases_everything() {
    for profile in PROFILES {
        let mut fixture = FrameFixture::new(profile, 2);
        fixture.gpu.hold_submissions(true);
        let buffer = fixture.buffer(64);
        let frames = fixture.frames();
        let queue = frames.queue(0);
        let mut list = begin_list(frames);
        list.upload(&buffer, 0, &[1; 64]).unwrap();
        let read = list.read_buffer(&buffer, 0..64).unwrap();
        frames.submit(queue, [list]).unwrap();
        let mut open = frames.list(queue).unwrap();
        open.upload(&buffer, 0, &[2; 64]).unwrap();
        fixture.gpu.faults().lose_device();
        let frames = fixture.frames();
        assert_eq!(frames.submit(queue, [open]), Err(SubmitError::Lost), "{profile}");
        assert!(matches!(frames.collect(), Err(BeginError::Lost)));
        assert!(frames.list(queue).is_err());
        assert_eq!(read.bytes(), Err(ReadError::Lost));
        assert_eq!(frames.statistics().in_flight, 0);
    }
}

/// The submission fails after another family has released a buffer and an image for it.
#[test]
fn resources_of_a_half_done_submission_outlive_the_release() {
    for profile in PROFILES {
        let mut fixture = FrameFixture::new(profile, 3);
        fixture.gpu.hold_submissions(true);
        let (buffer, to) = (fixture.buffer(64), fixture.buffer(64));
        let image = fixture.image(&image_info(vk::Format::R8G8B8A8_UNORM, (4, 4), 1, 1));
        let frames = fixture.frames();
        let (first, second) = (frames.queue(0), frames.queue(2));
        let mut list = frames.list(first).unwrap();
        list.fill_buffer(&buffer, 0..64, 1).unwrap();
        let black = vk::ClearColorValue::default();
        unsafe { list.clear_color(&image, &Subresources::ALL, black) }.unwrap();
        frames.submit(first, [list]).unwrap();
        frames.wait_idle().unwrap();
        let mut list = frames.list(second).unwrap();
        list.copy_buffer(&buffer, &to, &[vk::BufferCopy { src_offset: 0, dst_offset: 0, size: 64 }]).unwrap();
        let read = list.read_image(&image, 0, 0..1, vk::ImageAspectFlags::COLOR).unwrap();
        for call in ["vkQueueSubmit", "vkQueueSubmit2", "vkQueueSubmit2KHR"] {
            fixture.gpu.faults().fail_nth(call, 1, vk::Result::ERROR_OUT_OF_HOST_MEMORY);
        }
        let frames = fixture.frames();
        let refused = frames.submit(second, [list]);
        assert!(matches!(refused, Err(SubmitError::HalfDone(_))), "{profile}: {refused:?}");
        assert_eq!(read.bytes(), Err(ReadError::Never));
        drop((buffer, image, read));
        assert_eq!(fixture.gpu.live().buffers, 2, "{profile}: one of them is kept by the release");
        fixture.frames().wait_idle().unwrap();
        assert_eq!(fixture.frames().statistics().in_flight, 0);
        assert_eq!(fixture.gpu.live().buffers, 1, "{profile}");
    }
}

#[test]
fn resources_stay_alive_if_the_wait_fails() {
    // A list that keeps a buffer, and one that keeps nothing.
    for (profile, keeps) in PROFILES.into_iter().flat_map(|profile| [(profile, true), (profile, false)]) {
        let mut fixture = FrameFixture::new(profile, 1);
        fixture.gpu.hold_submissions(true);
        let buffer = fixture.buffer(64);
        let frames = fixture.frames();
        let queue = frames.queue(0);
        let mut list = frames.list(queue).unwrap();
        if keeps {
            list.upload(&buffer, 0, &[1; 64]).unwrap();
        }
        frames.submit(queue, [list]).unwrap();
        drop(buffer);
        // Its objects are leaked.
        let FrameParts { frames, gpu, .. } = fixture.release();
        let live = || {
            let live = gpu.live();
            (live.semaphores, live.fences, live.command_pools, live.buffers)
        };
        let before = live();
        for call in ["vkWaitSemaphores", "vkWaitForFences"] {
            gpu.faults().fail_always(call, vk::Result::ERROR_OUT_OF_HOST_MEMORY);
        }
        drop(frames);
        assert_eq!(live(), before, "{profile}");
        assert!(gpu.take_messages().is_empty(), "{profile}");
    }
}

#[test]
fn shared_memory_is_handed_over_between_resources() {
    let mut fixture = FrameFixture::new("lavapipe", 1);
    fixture.gpu.allow_aliasing(true);
    let frames = fixture.frames();
    let requirements = vk::MemoryRequirements { size: 65_536, alignment: 4096, memory_type_bits: !0 };
    let memory =
        frames.allocate_shared(&requirements, &AllocationCreateInfo::new(MemoryUsage::GpuOnly)).unwrap();
    let usage = vk::BufferUsageFlags::TRANSFER_SRC | vk::BufferUsageFlags::TRANSFER_DST;
    let info = vk::BufferCreateInfo::default().size(4096).usage(usage);
    let one = unsafe { frames.create_buffer_in(&memory, 0, &info) }.unwrap();
    let two = unsafe { frames.create_buffer_in(&memory, 0, &info) }.unwrap();
    let image_info = image_info(vk::Format::R8G8B8A8_UNORM, (16, 16), 1, 1);
    let image = unsafe { frames.create_image_in(&memory, 0, &image_info) }.unwrap();
    let mut list = begin_list(frames);
    list.fill_buffer(&one, 0..4096, 1).unwrap();
    let first = list.read_buffer(&one, 0..4).unwrap();
    let before = frames.statistics().barriers;
    list.fill_buffer(&two, 0..4096, 2).unwrap();
    assert!(frames.statistics().barriers > before, "the other buffer used the memory");
    let second = list.read_buffer(&two, 0..4).unwrap();
    let texels = sublet_frame::ImageData::new(0, 0, &[9; 1024]);
    list.upload_image(&image, &[texels]).unwrap();
    let third = list.read_image(&image, 0, 0..1, vk::ImageAspectFlags::COLOR).unwrap();
    let ticket = end_with(frames, list);
    frames.wait(ticket).unwrap();
    assert_eq!(first.bytes().unwrap(), [1, 0, 0, 0]);
    assert_eq!(second.bytes().unwrap(), [2, 0, 0, 0]);
    assert_eq!(third.bytes().unwrap(), [9; 1024]);
}

#[test]
fn transient_images_share_memory_or_fail_without_leaks() {
    let mut fixture = FrameFixture::new("lavapipe", 1);
    fixture.gpu.allow_aliasing(true);
    let info = image_info(vk::Format::R8G8B8A8_UNORM, (64, 64), 1, 1);
    let wanted = [0..=1, 1..=2, 2..=3].map(|steps| sublet_frame::TransientImage { info, steps });
    let allocation = AllocationCreateInfo::new(MemoryUsage::GpuOnly);
    let make = |fixture: &mut FrameFixture| unsafe {
        fixture.frames().create_transient_images(&wanted, &allocation)
    };
    let images = make(&mut fixture).unwrap();
    let places: Vec<_> = images.iter().map(|image| image.memory_range().unwrap()).collect();
    assert_eq!(places[0], places[2], "no step uses both");
    assert_eq!(places[0].offset + places[0].size, places[1].offset, "step 1 uses both");
    drop(images);
    fixture.frames().wait_idle().unwrap();
    let live = fixture.gpu.live().images;
    // Three temporary images for the requirements, and three final ones.
    for nth in 0..6 {
        fixture.gpu.faults().fail_nth("vkCreateImage", nth, vk::Result::ERROR_OUT_OF_HOST_MEMORY);
        assert!(make(&mut fixture).is_err(), "call {nth}");
        fixture.frames().wait_idle().unwrap();
        assert_eq!(fixture.gpu.live().images, live, "call {nth}");
    }
}

/// All of these tests run with hazard detection of the simulated GPU.
#[test]
fn undeclared_uses_are_hazards() {
    let mut fixture = FrameFixture::new("lavapipe", 1);
    let buffer = fixture.buffer(64);
    let frames = fixture.frames();
    let mut list = frames.list(frames.queue(0)).unwrap();
    list.fill_buffer(&buffer, 0..64, 1).unwrap();
    let handle = buffer.handle();
    unsafe { list.raw(|device, commands| device.cmd_fill_buffer(commands, handle, 0, 64, 2)) }.unwrap();
    frames.submit(frames.queue(0), [list]).unwrap();
    frames.wait_idle().unwrap();
    let messages = fixture.gpu.take_messages();
    assert!(messages.iter().any(|message| message.vuid == "SYNC-HAZARD-WRITE-AFTER-WRITE"), "{messages:#?}");
}

/// `end` maintains the allocator: a program that grows steadily calls no driver within a frame, unless it opts out.
#[test]
fn the_end_of_a_frame_creates_the_next_block() {
    for is_maintained in [true, false] {
        let gpu = fixture::gpu("lavapipe", 1);
        let (allocator, descriptors) = fixture::parts(&gpu);
        let mut frames = fixture::frames_with(&gpu, &allocator, &descriptors, 1, |info| {
            info.maintain = info.maintain.filter(|_| is_maintained);
        })
        .unwrap();
        let mut held = Vec::new();
        let mut calls = 0;
        for frame in 0..40 {
            frames.begin().unwrap();
            let before = gpu.calls("vkAllocateMemory");
            held.push(fixture::buffer(&frames, 3 << 20));
            if frame > 3 {
                calls += gpu.calls("vkAllocateMemory") - before;
            }
            frames.end();
        }
        assert_eq!(calls == 0, is_maintained);
        drop((held, frames));
        drop(allocator);
        gpu.assert_silent();
    }
}
