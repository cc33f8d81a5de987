//! Errors of the driver: a lost device, submissions that are half done, waits that fail.

use std::error::Error;
use std::sync::Arc;

use ash::vk;
use sublet_frame::{
    BeginError, CreateFramesError, CreateLayoutError, CreateResourceError, ListError, OpenError, ReadError,
    SubmitError, ViewError,
};

use crate::bench::{Bench, PROFILES, frames, frames_with, gpu, parts};
use crate::faults::{may_fail, program};

const LOST: vk::Result = vk::Result::ERROR_DEVICE_LOST;
const NO_MEMORY: vk::Result = vk::Result::ERROR_OUT_OF_HOST_MEMORY;

fn says_lost(error: &(dyn Error + 'static)) -> bool {
    matches!(error.downcast_ref(), Some(BeginError::Lost))
        || matches!(error.downcast_ref(), Some(OpenError::Lost))
        || matches!(error.downcast_ref(), Some(SubmitError::Lost))
        || matches!(error.downcast_ref(), Some(ListError::Lost))
        || matches!(error.downcast_ref(), Some(ReadError::Lost))
        || matches!(error.downcast_ref(), Some(ViewError::Lost))
        || matches!(error.downcast_ref(), Some(CreateResourceError::Lost))
        || matches!(error.downcast_ref(), Some(CreateLayoutError::Lost))
        || matches!(error.downcast_ref(), Some(CreateFramesError::Lost))
}

/// Whichever call says so first: the error is `Lost`, nothing is submitted any more, and nothing is left behind.
#[test]
fn a_lost_device_is_lost_wherever_it_is_seen_first() {
    let mut seen = 0;
    for profile in PROFILES {
        let counts = {
            let gpu = gpu(profile, 3);
            let (allocator, descriptors) = parts(&gpu);
            program(&mut frames(&gpu, &allocator, &descriptors, 3).unwrap(), 2).unwrap();
            gpu.call_counts()
        };
        for (call, count) in counts.into_iter().filter(|(call, _)| may_fail(call)) {
            for n in 0..count {
                let gpu = gpu(profile, 3);
                let (allocator, descriptors) = parts(&gpu);
                gpu.faults().fail_nth(call, n, LOST);
                let what = format!("{profile}, {call} {n}");
                match frames(&gpu, &allocator, &descriptors, 3) {
                    Err(error) => {
                        assert_eq!(error, CreateFramesError::Lost, "{what}");
                        seen += 1;
                    }
                    Ok(mut frames) => {
                        if let Err(error) = program(&mut frames, 2) {
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
                    (live.semaphores, live.fences, live.command_pools, live.buffers, live.images, live.views);
                assert_eq!(left, (0, 0, 0, 0, 0, 0), "{what}");
            }
        }
    }
    assert!(seen > 116, "only {seen} calls failed");
}

/// The device is lost while something is in flight, and nobody asks before the frames are dropped.
#[test]
fn a_device_that_is_lost_when_frames_are_dropped_lets_go_of_everything() {
    for profile in PROFILES {
        let mut bench = Bench::new(profile, 2);
        bench.gpu.hold_submissions(true);
        let buffer = bench.buffer(64);
        let frames = bench.frames();
        let mut list = frames.list(frames.queue(0)).unwrap();
        list.upload(&buffer, 0, &[1; 64]).unwrap();
        let read = list.read_buffer(&buffer, 0..64).unwrap();
        frames.submit(frames.queue(0), [list]).unwrap();
        bench.gpu.faults().lose_device();
        drop(bench.frames.take());
        assert_eq!(read.bytes(), Err(ReadError::Lost), "{profile}");
        drop((buffer, read));
        let live = bench.gpu.live();
        assert_eq!(
            (live.command_pools, live.buffers, live.fences, live.semaphores),
            (0, 0, 0, 0),
            "{profile}"
        );
        bench.finish();
    }
}

/// All that may fail but a submission is done before anything is given away.
#[test]
fn only_submissions_are_half_done() {
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
            let mut bench = Bench::new(profile, 3);
            let (buffer, to) = (bench.buffer(64), bench.buffer(64));
            let frames = bench.frames();
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
            bench.gpu.faults().fail_nth(call, n, NO_MEMORY);
            let frames = bench.frames();
            let mut read = read;
            if let Err(error) = frames.submit(second, [list]) {
                assert!(matches!(error, SubmitError::Driver(_)), "{profile}, {call} {n}: {error:?}");
                refused += 1;
                let (again, list) = record(frames);
                frames.submit(second, [list]).unwrap();
                read = again;
            }
            bench.gpu.faults().clear();
            let frames = bench.frames();
            frames.wait(&read).unwrap();
            assert_eq!(read.bytes().unwrap()[..4], [1, 0, 0, 0], "{profile}, {call} {n}");
            frames.wait_idle().unwrap();
            drop((buffer, to, read));
            bench.finish();
        }
    }
    assert!(refused >= 15, "only {refused}");
}

#[test]
fn a_wait_that_fails_is_tried_again_when_frames_are_dropped() {
    for profile in PROFILES {
        let mut bench = Bench::new(profile, 1);
        bench.gpu.hold_submissions(true);
        let buffer = bench.buffer(64);
        let frames = bench.frames();
        let mut list = frames.list(frames.queue(0)).unwrap();
        list.upload(&buffer, 0, &[1; 64]).unwrap();
        frames.submit(frames.queue(0), [list]).unwrap();
        drop(buffer);
        for call in ["vkWaitSemaphores", "vkWaitForFences"] {
            bench.gpu.faults().fail_nth(call, 0, NO_MEMORY);
        }
        bench.finish();
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
