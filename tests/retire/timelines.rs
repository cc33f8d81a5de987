//! A timeline semaphore for each lane.

use ash::vk;
use sublet::device::MissingFunction;
use sublet::sim::{Gpu, Profile};
use sublet::{Allocator, AllocatorCreateInfo, TimelineError};

use super::rig::{Rig, timeline};

fn destroy(rig: &Rig, semaphores: &[vk::Semaphore]) {
    rig.execute_all();
    for &semaphore in semaphores {
        // SAFETY: nothing is in flight.
        unsafe { rig.gpu.device().destroy_semaphore(semaphore, None) };
    }
}

#[test]
fn everything_that_a_recording_uses_is_freed_when_its_value_is_reached() {
    let mut rig = Rig::new();
    let lane = rig.clock.add_lane().unwrap();
    let semaphore = timeline(&rig.gpu);
    let ticket = rig.clock.open(lane);
    let ((buffer, first), (image, second), third) = (rig.buffer(), rig.image(), rig.memory());
    let commands = rig.record(&[buffer]);
    // SAFETY: the recording is the last that uses them.
    unsafe { rig.retired.retire_buffer(ticket, buffer, first) };
    // SAFETY: as above.
    unsafe { rig.retired.retire_image(ticket, image, second) };
    // SAFETY: as above.
    unsafe { rig.retired.retire_memory(ticket, third) };
    assert_eq!(rig.collect().unwrap(), 0, "it is not submitted");
    let submission = rig.submit(commands, Some((semaphore, 5)), vk::Fence::null());
    rig.clock.submit(ticket, 5).unwrap();
    let poll = || {
        // SAFETY: the semaphore is live.
        unsafe { rig.allocator.poll_timelines(&rig.clock, &[(lane, semaphore)]) }.unwrap();
        rig.collect().unwrap()
    };
    assert_eq!((poll(), rig.retired.oldest()), (0, Some(ticket)));
    rig.execute(submission);
    assert_eq!(poll(), 3);
    assert_eq!((rig.buffers(), rig.gpu.live().images), (0, 0));
    destroy(&rig, &[semaphore]);
    rig.finish();
}

#[test]
fn submissions_out_of_order_are_freed_in_the_order_in_which_the_gpu_gets_done() {
    let mut rig = Rig::new();
    let lane = rig.clock.add_lane().unwrap();
    let semaphore = timeline(&rig.gpu);
    let tickets = [(); 3].map(|()| rig.clock.open(lane));
    let buffers = tickets.map(|ticket| {
        let (buffer, allocation) = rig.buffer();
        // SAFETY: the recording is the only one that uses the buffer.
        unsafe { rig.retired.retire_buffer(ticket, buffer, allocation) };
        buffer
    });
    // Opened as 0, 1, 2; submitted as 2, 0, 1.
    for (value, at) in [(1, 2), (2, 0), (3, 1)] {
        let commands = rig.record(&buffers[at..=at]);
        rig.submit(commands, Some((semaphore, value)), vk::Fence::null());
        rig.clock.submit(tickets[at], value).unwrap();
    }
    let mut done = Vec::new();
    for executed in 1..=3 {
        rig.execute(executed);
        // SAFETY: the semaphore is live.
        unsafe { rig.allocator.poll_timelines(&rig.clock, &[(lane, semaphore)]) }.unwrap();
        assert_eq!(rig.collect().unwrap(), 1);
        done.push(tickets.map(|ticket| rig.clock.is_done(ticket)));
    }
    assert_eq!(done, [[false, false, true], [true, false, true], [true, true, true]]);
    destroy(&rig, &[semaphore]);
    rig.finish();
}

#[test]
fn two_lanes_do_not_wait_for_each_other() {
    let mut rig = Rig::new();
    let lanes = [(); 2].map(|()| (rig.clock.add_lane().unwrap(), timeline(&rig.gpu)));
    let [graphics, transfer] = lanes;
    let tickets = lanes.map(|(lane, _)| rig.clock.open(lane));
    let buffers = tickets.map(|ticket| {
        let (buffer, allocation) = rig.buffer();
        // SAFETY: the recording is the only one that uses the buffer.
        unsafe { rig.retired.retire_buffer(ticket, buffer, allocation) };
        buffer
    });
    // The transfer's values are far above those of the graphics lane: they have nothing to do with each other.
    let commands = rig.record(&buffers[1..]);
    let quick = rig.submit(commands, Some((transfer.1, 1_000)), vk::Fence::null());
    rig.clock.submit(tickets[1], 1_000).unwrap();
    let commands = rig.record(&buffers[..1]);
    rig.submit(commands, Some((graphics.1, 1)), vk::Fence::null());
    rig.clock.submit(tickets[0], 1).unwrap();
    rig.execute(quick);
    // SAFETY: the semaphores are live.
    unsafe { rig.allocator.poll_timelines(&rig.clock, &lanes) }.unwrap();
    assert_eq!(rig.collect().unwrap(), 1);
    assert!(rig.clock.is_done(tickets[1]) && !rig.clock.is_done(tickets[0]));
    rig.execute_all();
    // SAFETY: the semaphores are live.
    unsafe { rig.allocator.poll_timelines(&rig.clock, &lanes) }.unwrap();
    assert_eq!(rig.collect().unwrap(), 1);
    destroy(&rig, &lanes.map(|(_, semaphore)| semaphore));
    rig.finish();
}

#[test]
fn only_timelines_with_something_in_flight_are_read() {
    let rig = Rig::new();
    let lanes = [(); 3].map(|()| (rig.clock.add_lane().unwrap(), timeline(&rig.gpu)));
    rig.gpu.reset_calls();
    // SAFETY: the semaphores are live.
    let poll = || unsafe { rig.allocator.poll_timelines(&rig.clock, &lanes) }.unwrap();
    poll();
    let _open = rig.clock.open(lanes[0].0);
    poll();
    assert_eq!(rig.gpu.calls("vkGetSemaphoreCounterValue"), 0);
    rig.clock.submit(rig.clock.open(lanes[1].0), 1).unwrap();
    poll();
    assert_eq!(rig.gpu.calls("vkGetSemaphoreCounterValue"), 1);
    destroy(&rig, &lanes.map(|(_, semaphore)| semaphore));
    rig.finish();
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
    let lane = clock.add_lane().unwrap();
    let ticket = clock.open(lane);
    clock.submit(ticket, 1).unwrap();
    let semaphore = timeline(&gpu);
    // SAFETY: the semaphore is live.
    unsafe { allocator.poll_timelines(&clock, &[(lane, semaphore)]) }.unwrap();
    assert!(!clock.is_done(ticket));
    assert_eq!(gpu.calls("vkGetSemaphoreCounterValueKHR"), 1);
    // SAFETY: nothing was submitted.
    unsafe { gpu.device().destroy_semaphore(semaphore, None) };
    drop(allocator);
    gpu.assert_silent();
}
