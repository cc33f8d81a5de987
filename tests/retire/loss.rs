//! A device that is lost while work is in flight, and the end of a program.

use ash::vk;
use sublet::TimelineError;
use sublet::retire::SubmitError;

use super::rig::{Rig, timeline};

#[test]
fn when_the_device_is_lost_nothing_is_freed_until_the_clock_is_shut_down() {
    let mut rig = Rig::new();
    let (lane, semaphore) = (rig.clock.add_lane().unwrap(), timeline(&rig.gpu));
    for value in 1..=3 {
        let ticket = rig.clock.open(lane);
        let (buffer, allocation) = rig.buffer();
        let commands = rig.record(&[buffer]);
        // SAFETY: only this recording uses the buffer.
        unsafe { rig.retired.retire_buffer(ticket, buffer, allocation) };
        rig.submit(commands, Some((semaphore, value)), vk::Fence::null());
        rig.clock.submit(ticket, value).unwrap();
    }
    rig.execute(1);
    // SAFETY: the semaphore is live.
    let poll = || unsafe { rig.allocator.poll_timelines(&rig.clock, &[(lane, semaphore)]) };
    poll().unwrap();
    assert_eq!(rig.collect().unwrap(), 1);
    rig.gpu.faults().lose_device();
    let lost = poll().unwrap_err();
    assert!(
        matches!(lost, TimelineError::Driver { lane: of, source }
            if of == lane && source.result == vk::Result::ERROR_DEVICE_LOST),
        "{lost}"
    );
    assert_eq!(rig.collect().unwrap(), 0, "nobody knows what was executed");
    assert_eq!(rig.retired.len(), 2);
    let open = rig.clock.open(lane);
    let (buffer, allocation) = rig.buffer();
    // SAFETY: the device does not use the buffer.
    unsafe { rig.retired.retire_buffer(open, buffer, allocation) };
    rig.clock.shutdown();
    assert_eq!(rig.collect().unwrap(), 3);
    assert_eq!(rig.clock.submit(open, 4), Err(SubmitError::ShutDown { ticket: open }));
    assert_eq!(rig.buffers(), 0);
    // SAFETY: nothing is in flight.
    unsafe { rig.gpu.device().destroy_semaphore(semaphore, None) };
}

#[test]
fn what_was_read_before_the_loss_counts() {
    let mut rig = Rig::new();
    let lanes = [(); 2].map(|()| (rig.clock.add_lane().unwrap(), timeline(&rig.gpu)));
    for &(lane, semaphore) in &lanes {
        let ticket = rig.clock.open(lane);
        let (buffer, allocation) = rig.buffer();
        let commands = rig.record(&[buffer]);
        // SAFETY: only this recording uses the buffer.
        unsafe { rig.retired.retire_buffer(ticket, buffer, allocation) };
        rig.submit(commands, Some((semaphore, 1)), vk::Fence::null());
        rig.clock.submit(ticket, 1).unwrap();
    }
    rig.execute_all();
    rig.gpu.faults().fail_nth("vkGetSemaphoreCounterValue", 1, vk::Result::ERROR_DEVICE_LOST);
    // SAFETY: the semaphores are live.
    let poll = || unsafe { rig.allocator.poll_timelines(&rig.clock, &lanes) };
    assert!(poll().is_err());
    assert_eq!(rig.collect().unwrap(), 1);
    poll().unwrap();
    assert_eq!(rig.collect().unwrap(), 1);
    for (_, semaphore) in lanes {
        // SAFETY: nothing is in flight.
        unsafe { rig.gpu.device().destroy_semaphore(semaphore, None) };
    }
}

#[test]
fn a_drain_frees_everything_when_the_device_is_idle() {
    let mut rig = Rig::new();
    let lane = rig.clock.add_lane().unwrap();
    for _ in 0..4 {
        let ticket = rig.clock.open(lane);
        let (buffer, allocation) = rig.buffer();
        let commands = rig.record(&[buffer]);
        // SAFETY: only this recording uses the buffer.
        unsafe { rig.retired.retire_buffer(ticket, buffer, allocation) };
        rig.submit(commands, None, vk::Fence::null());
    }
    rig.execute_all();
    // SAFETY: nothing is in flight, and nothing will be submitted.
    assert_eq!(unsafe { rig.retired.drain(&rig.allocator) }.unwrap(), 4);
}
