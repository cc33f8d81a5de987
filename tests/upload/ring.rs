//! Rings: wrapping, pieces and waits.

use std::cell::Cell;

use ash::vk;
use sublet::retire::{Clock, Ticket};
use sublet::upload::{UploadError, UploadRingCreateInfo, WaitError};

use crate::common::*;
use crate::support::*;

fn of(size: u64) -> UploadRingCreateInfo<'static> {
    UploadRingCreateInfo::new(size)
}

#[test]
fn a_ring_goes_round_and_never_splits_an_upload() {
    on_every_gpu(|rig| {
        let mut ring = ring(&rig, &of(4096));
        let mut time = Time::new();
        assert_eq!(ring.allocate(1500, 1).unwrap().offset, 0);
        ring.flush(time.submitted()).unwrap();
        let second = ring.allocate(1500, 1).unwrap();
        assert!(second.offset >= 1500 && second.offset <= 1792);
        ring.flush(time.submitted()).unwrap();
        // What is left at the end is too short, and the start is not free.
        let before = ring.statistics();
        let end = 4096 - (before.used + before.padding);
        let full = UploadError::Full { size: 1400, alignment: 1, free: end, largest_free: end };
        assert_eq!(ring.allocate(1400, 1), Err(full));
        assert_eq!(ring.statistics(), before);
        time.finish(1);
        assert_eq!(ring.collect(&time.clock).unwrap(), 1);
        assert_eq!(ring.allocate(1400, 1).unwrap().offset, 0, "at the start, in one piece");
        assert_eq!(ring.statistics().tail, end);
        ring.validate();
        ring.flush(time.submitted()).unwrap();
        time.finish(3);
        assert_eq!(ring.collect(&time.clock).unwrap(), 2);
        assert_eq!(ring.statistics().free, 4096);
        assert_eq!(ring.allocate(4096, 1).unwrap().offset, 0, "an empty ring is one run again");
    });
}

/// What is free at the start is had to the last byte, and then there is nothing.
#[test]
fn an_upload_that_just_fits_before_the_oldest_goes_there() {
    on_every_gpu(|rig| {
        let mut ring = ring(&rig, &of(4096));
        let mut time = Time::new();
        ring.allocate(1024, 1).unwrap();
        ring.flush(time.submitted()).unwrap();
        ring.allocate(3072, 1).unwrap();
        ring.flush(time.submitted()).unwrap();
        time.finish(1);
        assert_eq!(ring.collect(&time.clock).unwrap(), 1);
        let full = |size, free| UploadError::Full { size, alignment: 1, free, largest_free: free };
        assert_eq!(ring.allocate(1025, 1), Err(full(1025, 1024)));
        assert_eq!(ring.allocate(1024, 1).unwrap().offset, 0);
        ring.validate();
        assert_eq!(ring.allocate(1, 1), Err(full(1, 0)));
        ring.flush(time.submitted()).unwrap();
        // Wrapped as well: all that lies between head and tail.
        time.finish(2);
        assert_eq!(ring.collect(&time.clock).unwrap(), 1);
        assert_eq!(ring.allocate(3072, 1).unwrap().offset, 1024);
    });
}

#[test]
fn the_oldest_recording_holds_up_those_behind_it() {
    let rig = Rig::new(sublet::sim::profiles::ALL[0]);
    let mut ring = ring(&rig, &of(4096));
    let clock = Clock::new();
    let (slow, fast) = (clock.add_lane().unwrap(), clock.add_lane().unwrap());
    let tickets = [clock.open(slow), clock.open(fast), clock.open(fast)];
    for ticket in tickets {
        ring.allocate(1024, 1).unwrap();
        ring.flush(ticket).unwrap();
    }
    clock.submit(tickets[1], 1).unwrap();
    clock.submit(tickets[2], 2).unwrap();
    clock.submit(tickets[0], 1).unwrap();
    clock.completed(fast, 2);
    assert_eq!(ring.collect(&clock).unwrap(), 0);
    assert_eq!((ring.statistics().pieces, ring.statistics().free), (3, 1024));
    clock.completed(slow, 1);
    assert_eq!(ring.collect(&clock).unwrap(), 3);
    assert_eq!(ring.statistics().free, 4096);
    ring.validate();
    drop(ring.release());
}

#[test]
fn a_frame_slot_that_is_never_used_again_holds_up_nothing() {
    let rig = Rig::new(sublet::sim::profiles::ALL[0]);
    let mut ring = ring(&rig, &of(4096));
    let clock = Clock::new();
    let lane = clock.add_lane().unwrap();
    for frame in 0..60_u32 {
        let slots = if frame < 30 { 3 } else { 2 };
        let ticket = clock.begin_frame(lane, frame % slots);
        ring.collect(&clock).unwrap();
        ring.allocate(1024, 1).unwrap();
        ring.flush(ticket).unwrap();
        clock.end_frame(ticket).unwrap();
        ring.validate();
    }
    clock.idle();
    ring.collect(&clock).unwrap();
    drop(ring.release());
}

#[test]
fn what_is_wrong_or_too_large_is_refused() {
    let rig = Rig::new(sublet::sim::profiles::ALL[0]);
    let mut ring = ring(&rig, &of(4096));
    let before = ring.statistics();
    assert_eq!(ring.allocate(0, 1), Err(UploadError::ZeroSize));
    assert_eq!(ring.write_slice::<u32>(&[], 1), Err(UploadError::ZeroSize));
    for alignment in [0, 3, u64::MAX] {
        assert_eq!(ring.allocate(1, alignment), Err(UploadError::Alignment { alignment }));
    }
    for size in [4097, u64::MAX] {
        assert_eq!(ring.allocate(size, 1 << 63), Err(UploadError::Oversize { size, max: 4096 }));
    }
    let max = ring.max_alignment();
    for alignment in [2 * max, 1 << 63] {
        assert_eq!(ring.allocate(1, alignment), Err(UploadError::AlignmentTooLarge { alignment, max }));
    }
    assert_eq!(ring.statistics(), before);
    // As large as the ring, and with an alignment that nothing but the start has.
    assert_eq!(ring.allocate(4096, max).unwrap().offset, 0);
}

#[test]
fn whoever_waits_gets_the_oldest_pieces_room_and_no_more_is_waited_for() {
    on_every_gpu(|rig| {
        let mut ring = ring(&rig, &of(4096));
        let mut time = Time::new();
        for _ in 0..4 {
            ring.allocate(1024, 1).unwrap();
            ring.flush(time.submitted()).unwrap();
        }
        let waits = Cell::new(0);
        let wait = |_: Ticket| {
            waits.set(waits.get() + 1);
            time.finish(waits.get());
            Ok::<(), vk::Result>(())
        };
        ring.wait_for_room(2000, 1, &time.clock, wait).unwrap();
        assert_eq!((waits.get(), ring.statistics().used), (2, 2048), "nothing is given out yet");
        assert_eq!(ring.allocate_or_wait(2000, 1, &time.clock, wait).unwrap().offset, 0);
        assert_eq!(waits.get(), 2);
    });
}

#[test]
fn waiting_comes_to_an_end_whatever_the_caller_does() {
    let rig = Rig::new(sublet::sim::profiles::ALL[0]);
    let mut ring = ring(&rig, &of(4096));
    let mut time = Time::new();
    let never = |_: Ticket| -> Result<(), ()> { panic!("there is nothing to wait for") };
    // The recording that is being made has filled it.
    ring.allocate(4096, 1).unwrap();
    let error = ring.allocate_or_wait(1, 1, &time.clock, never).unwrap_err();
    assert!(matches!(error, WaitError::NoRoom(UploadError::Full { .. })));
    let ticket = time.submitted();
    ring.flush(ticket).unwrap();
    for size in [0, 4097] {
        assert!(matches!(ring.allocate_or_wait(size, 1, &time.clock, never), Err(WaitError::NoRoom(_))));
    }
    let error = ring.allocate_or_wait(1, 1, &time.clock, |_| Err(vk::Result::ERROR_DEVICE_LOST));
    assert_eq!(error.unwrap_err(), WaitError::Wait(vk::Result::ERROR_DEVICE_LOST));
    let error = ring.allocate_or_wait(1, 1, &time.clock, |_| Ok::<(), ()>(()));
    assert_eq!(error.unwrap_err(), WaitError::NoProgress { ticket });
    assert_eq!(ring.statistics().pieces, 1);
    time.finish(1);
    ring.allocate_or_wait(1, 1, &time.clock, never).unwrap();
}

#[test]
fn a_ring_that_is_dropped_too_early_leaks_its_buffer() {
    let rig = Rig::new(sublet::sim::profiles::ALL[0]);
    let mut ring = ring(&rig, &of(4096));
    let upload = ring.write(b"the device reads this later", 1).unwrap();
    ring.flush(Time::new().submitted()).unwrap();
    drop(ring.release());
    assert_eq!((rig.gpu.live().buffers, rig.allocator.statistics().allocation_count), (1, 1));
    // SAFETY: the memory is still the ring's, and mapped.
    assert_eq!(unsafe { upload.ptr.read() }, b't');
    // SAFETY: nothing was submitted in truth.
    unsafe { rig.gpu.device().destroy_buffer(upload.buffer, None) };
    let Rig { allocator, gpu } = rig.release();
    assert_eq!(allocator.destroy().len(), 1);
    assert!(gpu.finish().is_empty());
}
