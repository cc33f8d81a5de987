//! A timeline semaphore for each timeline of the clock.

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
    // SAFETY: the recording is the last one to use the buffer.
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
}

#[test]
fn submissions_out_of_order_are_freed_in_the_order_in_which_the_gpu_gets_done() {
    let mut rig = Rig::new();
    let lane = rig.clock.add_lane().unwrap();
    let semaphore = timeline(&rig.gpu);
    let tickets = [(); 3].map(|()| rig.clock.open(lane));
    let buffers = tickets.map(|ticket| {
        let (buffer, allocation) = rig.buffer();
        // SAFETY: only this recording uses the buffer.
        unsafe { rig.retired.retire_buffer(ticket, buffer, allocation) };
        buffer
    });
    // Opened in the order 0, 1, 2, and submitted in the order 2, 0, 1.
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
}

#[test]
fn two_queues_do_not_wait_for_each_other() {
    let mut rig = Rig::with_queues(2);
    let lanes = [(); 2].map(|()| (rig.clock.add_lane().unwrap(), timeline(&rig.gpu)));
    // The values of the second timeline are far above those of the first, and independent of them.
    for (queue, first) in [(0, 1), (1, 1_000)] {
        for value in first..first + 3 {
            let ticket = rig.clock.open(lanes[queue].0);
            let (buffer, allocation) = rig.buffer();
            let commands = rig.record(&[buffer]);
            // SAFETY: only this recording uses the buffer.
            unsafe { rig.retired.retire_buffer(ticket, buffer, allocation) };
            rig.submit_to(queue, commands, Some((lanes[queue].1, value)), vk::Fence::null());
            rig.clock.submit(ticket, value).unwrap();
        }
    }
    let poll = || {
        // SAFETY: the semaphores are live.
        unsafe { rig.allocator.poll_timelines(&rig.clock, &lanes) }.unwrap();
        rig.collect().unwrap()
    };
    assert_eq!(poll(), 0);
    rig.execute_on(1, 2);
    assert_eq!(poll(), 2);
    rig.execute_on(0, 1);
    assert_eq!(poll(), 1);
    rig.execute_on(1, 3);
    assert_eq!(poll(), 1);
    rig.execute_on(0, 3);
    assert_eq!(poll(), 2);
    destroy(&rig, &lanes.map(|(_, semaphore)| semaphore));
}

#[test]
fn a_queue_with_fences_and_one_with_a_timeline_share_a_clock() {
    let mut rig = Rig::with_queues(2);
    let (graphics, transfer) = (rig.clock.add_lane().unwrap(), rig.clock.add_lane().unwrap());
    let semaphore = timeline(&rig.gpu);
    let (frame, upload) = (rig.clock.begin_frame(graphics, 0), rig.clock.open(transfer));
    for (queue, ticket) in [(0, frame), (1, upload)] {
        let (buffer, allocation) = rig.buffer();
        let commands = rig.record(&[buffer]);
        // SAFETY: only this recording uses the buffer.
        unsafe { rig.retired.retire_buffer(ticket, buffer, allocation) };
        let signal = (queue == 1).then_some((semaphore, 1));
        rig.submit_to(queue, commands, signal, vk::Fence::null());
    }
    rig.clock.end_frame(frame).unwrap();
    rig.clock.submit(upload, 1).unwrap();
    // SAFETY: the semaphore is live.
    let poll = || unsafe { rig.allocator.poll_timelines(&rig.clock, &[(transfer, semaphore)]) }.unwrap();
    rig.execute_on(1, 1);
    poll();
    assert_eq!((rig.collect().unwrap(), rig.retired.oldest()), (1, Some(frame)));
    // Stands for the wait on the slot's fence.
    rig.execute_on(0, 1);
    let next = rig.clock.begin_frame(graphics, 0);
    assert_eq!(rig.collect().unwrap(), 1);
    rig.clock.discard(next).unwrap();
    destroy(&rig, &[semaphore]);
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
