//! A device that is lost while work is in flight, and the end of a program.

use ash::vk;
use sublet::TimelineError;
use sublet::retire::ClockSubmitError;

use super::fixture::{Fixture, timeline_semaphore};

#[test]
fn when_the_device_is_lost_nothing_is_freed_until_the_clock_is_shut_down() {
    let mut fixture = Fixture::new();
    let (timeline, semaphore) = (fixture.clock.add_timeline().unwrap(), timeline_semaphore(&fixture.gpu));
    for value in 1..=3 {
        let ticket = fixture.clock.open(timeline);
        let (buffer, allocation) = fixture.buffer();
        let commands = fixture.record(&[buffer]);
        // SAFETY: only this recording uses the buffer.
        unsafe { fixture.retired.retire_buffer(ticket, buffer, allocation) };
        fixture.submit(commands, Some((semaphore, value)), vk::Fence::null());
        fixture.clock.submit(ticket, value).unwrap();
    }
    fixture.execute(1);
    // SAFETY: the semaphore is live.
    let poll = || unsafe { fixture.allocator.poll_timelines(&fixture.clock, &[(timeline, semaphore)]) };
    poll().unwrap();
    assert_eq!(fixture.collect().unwrap(), 1);
    fixture.gpu.faults().lose_device();
    let lost = poll().unwrap_err();
    assert!(
        matches!(lost, TimelineError::Driver { timeline: of, source }
            if of == timeline && source.result == vk::Result::ERROR_DEVICE_LOST),
        "{lost}"
    );
    assert_eq!(fixture.collect().unwrap(), 0, "nobody knows what was executed");
    assert_eq!(fixture.retired.len(), 2);
    let open = fixture.clock.open(timeline);
    let (buffer, allocation) = fixture.buffer();
    // SAFETY: the device does not use the buffer.
    unsafe { fixture.retired.retire_buffer(open, buffer, allocation) };
    fixture.clock.shutdown();
    assert_eq!(fixture.collect().unwrap(), 3);
    assert_eq!(fixture.clock.submit(open, 4), Err(ClockSubmitError::ShutDown { ticket: open }));
    assert_eq!(fixture.buffers(), 0);
    // SAFETY: nothing is in flight.
    unsafe { fixture.gpu.device().destroy_semaphore(semaphore, None) };
}

#[test]
fn a_drain_frees_everything_when_the_device_is_idle() {
    let mut fixture = Fixture::new();
    let timeline = fixture.clock.add_timeline().unwrap();
    for _ in 0..4 {
        let ticket = fixture.clock.open(timeline);
        let (buffer, allocation) = fixture.buffer();
        let commands = fixture.record(&[buffer]);
        // SAFETY: only this recording uses the buffer.
        unsafe { fixture.retired.retire_buffer(ticket, buffer, allocation) };
        fixture.submit(commands, None, vk::Fence::null());
    }
    fixture.execute_all();
    // SAFETY: nothing is in flight, and nothing will be submitted.
    assert_eq!(unsafe { fixture.retired.drain(&fixture.allocator) }.unwrap(), 4);
}
