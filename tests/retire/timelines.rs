//! A timeline_semaphore semaphore for each timeline_semaphore of the clock.

use ash::vk;
use sublet::device::MissingFunction;
use sublet::sim::{Gpu, Profile};
use sublet::{Allocator, AllocatorCreateInfo, TimelineError};

use super::fixture::{Fixture, timeline_semaphore};

fn destroy(fixture: &Fixture, semaphores: &[vk::Semaphore]) {
    fixture.execute_all();
    for &semaphore in semaphores {
        // SAFETY: nothing is in flight.
        unsafe { fixture.gpu.device().destroy_semaphore(semaphore, None) };
    }
}

#[test]
fn everything_that_a_recording_uses_is_freed_when_its_value_is_reached() {
    let mut fixture = Fixture::new();
    let timeline = fixture.clock.add_timeline().unwrap();
    let semaphore = timeline_semaphore(&fixture.gpu);
    let ticket = fixture.clock.open(timeline);
    let ((buffer, first), (image, second), third) = (fixture.buffer(), fixture.image(), fixture.memory());
    let commands = fixture.record(&[buffer]);
    // SAFETY: the recording is the last one to use the buffer.
    unsafe { fixture.retired.retire_buffer(ticket, buffer, first) };
    // SAFETY: as above.
    unsafe { fixture.retired.retire_image(ticket, image, second) };
    // SAFETY: as above.
    unsafe { fixture.retired.retire_memory(ticket, third) };
    assert_eq!(fixture.collect().unwrap(), 0, "it is not submitted");
    let submission = fixture.submit(commands, Some((semaphore, 5)), vk::Fence::null());
    fixture.clock.submit(ticket, 5).unwrap();
    let poll = || {
        // SAFETY: the semaphore is live.
        unsafe { fixture.allocator.poll_timelines(&fixture.clock, &[(timeline, semaphore)]) }.unwrap();
        fixture.collect().unwrap()
    };
    assert_eq!((poll(), fixture.retired.oldest()), (0, Some(ticket)));
    fixture.execute(submission);
    assert_eq!(poll(), 3);
    assert_eq!((fixture.buffers(), fixture.gpu.live().images), (0, 0));
    destroy(&fixture, &[semaphore]);
}

#[test]
fn a_queue_with_fences_and_one_with_a_timeline_share_a_clock() {
    let mut fixture = Fixture::with_queues(2);
    let (graphics, transfer) = (fixture.clock.add_timeline().unwrap(), fixture.clock.add_timeline().unwrap());
    let semaphore = timeline_semaphore(&fixture.gpu);
    let (frame, upload) = (fixture.clock.begin_frame(graphics, 0), fixture.clock.open(transfer));
    for (queue, ticket) in [(0, frame), (1, upload)] {
        let (buffer, allocation) = fixture.buffer();
        let commands = fixture.record(&[buffer]);
        // SAFETY: only this recording uses the buffer.
        unsafe { fixture.retired.retire_buffer(ticket, buffer, allocation) };
        let signal = (queue == 1).then_some((semaphore, 1));
        fixture.submit_to(queue, commands, signal, vk::Fence::null());
    }
    fixture.clock.end_frame(frame).unwrap();
    fixture.clock.submit(upload, 1).unwrap();
    // SAFETY: the semaphore is live.
    let poll =
        || unsafe { fixture.allocator.poll_timelines(&fixture.clock, &[(transfer, semaphore)]) }.unwrap();
    fixture.execute_on(1, 1);
    poll();
    assert_eq!((fixture.collect().unwrap(), fixture.retired.oldest()), (1, Some(frame)));
    // Stands for the wait on the slot's fence.
    fixture.execute_on(0, 1);
    let next = fixture.clock.begin_frame(graphics, 0);
    assert_eq!(fixture.collect().unwrap(), 1);
    fixture.clock.discard(next).unwrap();
    destroy(&fixture, &[semaphore]);
}

#[test]
fn only_timelines_with_something_in_flight_are_read() {
    let fixture = Fixture::new();
    let timelines =
        [(); 3].map(|()| (fixture.clock.add_timeline().unwrap(), timeline_semaphore(&fixture.gpu)));
    fixture.gpu.reset_calls();
    // SAFETY: the semaphores are live.
    let poll = || unsafe { fixture.allocator.poll_timelines(&fixture.clock, &timelines) }.unwrap();
    poll();
    let _open = fixture.clock.open(timelines[0].0);
    poll();
    assert_eq!(fixture.gpu.calls("vkGetSemaphoreCounterValue"), 0);
    fixture.clock.submit(fixture.clock.open(timelines[1].0), 1).unwrap();
    poll();
    assert_eq!(fixture.gpu.calls("vkGetSemaphoreCounterValue"), 1);
    destroy(&fixture, &timelines.map(|(_, semaphore)| semaphore));
}

#[test]
fn a_device_that_cannot_read_timelines_is_a_typed_error() {
    let profile = Profile::by_name("lavapipe").unwrap();
    let gpu = Gpu::builder(profile)
        .api_version(vk::API_VERSION_1_1)
        .without_extension("VK_KHR_timeline_semaphore")
        .build();
    // SAFETY: instance and device are live, and outlive the allocator.
    let allocator = unsafe { Allocator::new(&AllocatorCreateInfo::for_gpu(&gpu)) }.unwrap();
    let clock = sublet::retire::Clock::new();
    // SAFETY: there are no semaphores.
    let error = unsafe { allocator.poll_timelines(&clock, &[]) }.unwrap_err();
    let name = "vkGetSemaphoreCounterValue";
    assert_eq!(error, TimelineError::MissingFunction(MissingFunction { name }));
    drop(allocator);
    gpu.assert_silent();
}

#[test]
fn the_extension_serves_where_the_version_is_older() {
    let profile = Profile::by_name("lavapipe").unwrap();
    let gpu = Gpu::builder(profile).api_version(vk::API_VERSION_1_1).build();
    // SAFETY: instance and device are live, and outlive the allocator.
    let allocator = unsafe { Allocator::new(&AllocatorCreateInfo::for_gpu(&gpu)) }.unwrap();
    let clock = sublet::retire::Clock::new();
    let timeline = clock.add_timeline().unwrap();
    let ticket = clock.open(timeline);
    clock.submit(ticket, 1).unwrap();
    let semaphore = timeline_semaphore(&gpu);
    // SAFETY: the semaphore is live.
    unsafe { allocator.poll_timelines(&clock, &[(timeline, semaphore)]) }.unwrap();
    assert!(!clock.is_done(ticket));
    assert_eq!(gpu.calls("vkGetSemaphoreCounterValueKHR"), 1);
    // SAFETY: nothing was submitted.
    unsafe { gpu.device().destroy_semaphore(semaphore, None) };
    drop(allocator);
    gpu.assert_silent();
}
