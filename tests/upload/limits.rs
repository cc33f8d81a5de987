//! The memory limit of an arena, and waiting for space.

use std::cell::Cell;

use ash::vk;
use sublet::retire::{Clock, OtherClock, Ticket};
use sublet::upload::{UploadArenaCreateInfo, UploadError, WaitError};

use crate::common::*;
use crate::support::*;

fn limited(pages: u64) -> UploadArenaCreateInfo<'static> {
    UploadArenaCreateInfo { memory_limit: Some(pages * 4096), ..small(4096) }
}

#[test]
fn the_limit_is_never_passed_and_what_is_refused_changes_nothing() {
    on_every_gpu(|fixture| {
        let mut arena = arena(&fixture, &limited(3));
        for _ in 0..3 {
            arena.allocate(4096, 1).unwrap();
        }
        let before = arena.statistics();
        fixture.gpu.reset_calls();
        let full = UploadError::MemoryLimit { memory_limit: 3 * 4096, in_use: 3 * 4096, needed: 4096 };
        assert_eq!(arena.allocate(1, 1), Err(full));
        assert!(matches!(arena.allocate(5000, 1), Err(UploadError::MemoryLimit { needed: 5000.., .. })));
        assert!(matches!(arena.reserve(1), Err(UploadError::MemoryLimit { .. })));
        assert_eq!(arena.statistics(), before);
        assert!(fixture.gpu.call_counts().is_empty());
    });
}

/// Some pages were created and freed again. The statistics do not include them.
#[test]
fn a_reserve_that_is_refused_leaves_no_peak() {
    on_every_gpu(|fixture| {
        let mut arena = arena(&fixture, &limited(3));
        arena.reserve(4096).unwrap();
        let before = arena.statistics();
        assert!(matches!(arena.reserve(5 * 4096), Err(UploadError::MemoryLimit { .. })));
        assert_eq!(arena.statistics(), before);
    });
}

#[test]
fn free_pages_give_way_to_what_needs_the_memory() {
    let fixture = Fixture::new(sublet::sim::profiles::ALL[0]);
    let mut time = Time::new();
    let mut arena = arena(&fixture, &UploadArenaCreateInfo { own_pages_kept: 9, ..limited(4) });
    arena.reserve(4 * 4096).unwrap();
    // Two of the four pages are freed for a page of twice the size.
    arena.allocate(8192, 1).unwrap();
    let statistics = arena.statistics();
    assert_eq!((statistics.pages, statistics.own_pages, statistics.reserved), (3, 1, 4 * 4096));
    arena.flush(time.submitted()).unwrap();
    time.finish(1);
    arena.collect(&time.clock).unwrap();
    // The other way round.
    for _ in 0..4 {
        arena.allocate(4096, 1).unwrap();
    }
    let statistics = arena.statistics();
    assert_eq!((statistics.pages, statistics.own_pages, statistics.peak_reserved), (4, 0, 4 * 4096));
}

#[test]
fn reserving_more_than_the_limit_makes_no_page() {
    let fixture = Fixture::new(sublet::sim::profiles::ALL[0]);
    let mut arena = arena(&fixture, &limited(4));
    arena.allocate(1, 1).unwrap();
    let before = arena.statistics();
    assert!(arena.reserve(5 * 4096).is_err());
    let after = arena.statistics();
    assert_eq!((after.pages, after.reserved), (before.pages, before.reserved));
    arena.reserve(4 * 4096 - 1).unwrap();
    assert_eq!(arena.statistics().pages, 4);
}

#[test]
fn whoever_waits_gets_the_oldest_recordings_pages() {
    on_every_gpu(|fixture| {
        let mut time = Time::new();
        let mut arena = arena(&fixture, &limited(2));
        let mut buffers = Vec::new();
        for _ in 0..2 {
            buffers.push(arena.write(&[1; 4096], 1).unwrap().buffer);
            arena.flush(time.submitted()).unwrap();
        }
        let waits = Cell::new(0);
        let wait = |_: Ticket| {
            waits.set(waits.get() + 1);
            time.finish(waits.get());
            Ok::<(), vk::Result>(())
        };
        let upload = arena.allocate_or_wait(4096, 1, &time.clock, wait).unwrap();
        assert_eq!((upload.buffer, waits.get()), (buffers[0], 1), "the older one, and nobody else");
        // With enough space there is no wait.
        assert!(arena.wait_for_space(1, 1, &time.clock, wait).is_ok());
        assert_eq!(waits.get(), 2);
        arena.wait_for_space(1, 1, &time.clock, wait).unwrap();
        assert_eq!(waits.get(), 2);
    });
}

/// Each wait frees one page, and the upload needs two.
#[test]
fn a_large_upload_waits_for_as_many_recordings_as_it_needs() {
    on_every_gpu(|fixture| {
        let mut time = Time::new();
        let mut arena = arena(&fixture, &limited(4));
        for _ in 0..4 {
            arena.write(&[1; 4096], 1).unwrap();
            arena.flush(time.submitted()).unwrap();
        }
        let waits = Cell::new(0);
        let wait = |_: Ticket| {
            waits.set(waits.get() + 1);
            time.finish(waits.get());
            Ok::<(), vk::Result>(())
        };
        arena.wait_for_space(8192, 1, &time.clock, wait).unwrap();
        assert_eq!((waits.get(), arena.statistics().used), (2, 2 * 4096), "nothing is given out yet");
        arena.allocate_or_wait(8192, 1, &time.clock, wait).unwrap();
        assert_eq!((waits.get(), arena.statistics().reserved), (2, 4 * 4096));
    });
}

#[test]
fn what_is_done_already_is_not_waited_for() {
    let fixture = Fixture::new(sublet::sim::profiles::ALL[0]);
    let mut time = Time::new();
    let mut arena = arena(&fixture, &limited(1));
    arena.write(&[1; 4096], 1).unwrap();
    arena.flush(time.submitted()).unwrap();
    time.finish(1);
    let never = |_: Ticket| -> Result<(), ()> { panic!("there is nothing to wait for") };
    arena.allocate_or_wait(1, 1, &time.clock, never).unwrap();
}

#[test]
fn waiting_comes_to_an_end_whatever_the_caller_does() {
    let fixture = Fixture::new(sublet::sim::profiles::ALL[0]);
    let mut time = Time::new();
    let mut arena = arena(&fixture, &limited(1));
    // The current recording uses all of the memory, so there is no ticket to wait for.
    arena.write(&[1; 4096], 1).unwrap();
    let never = |_: Ticket| -> Result<(), ()> { panic!("there is nothing to wait for") };
    let error = arena.allocate_or_wait(1, 1, &time.clock, never).unwrap_err();
    assert!(matches!(error, WaitError::NoRoom(UploadError::MemoryLimit { .. })));
    // Errors that a wait cannot resolve.
    let error = arena.allocate_or_wait(0, 1, &time.clock, never).unwrap_err();
    assert_eq!(error, WaitError::NoRoom(UploadError::ZeroSize));
    let error = arena.allocate_or_wait(1, 3, &time.clock, never).unwrap_err();
    assert_eq!(error, WaitError::NoRoom(UploadError::Alignment { alignment: 3 }));
    let ticket = time.submitted();
    arena.flush(ticket).unwrap();
    let before = arena.statistics();
    // A failing wait, and one that returns without waiting.
    let error = arena.allocate_or_wait(1, 1, &time.clock, |_| Err(vk::Result::ERROR_DEVICE_LOST));
    assert_eq!(error.unwrap_err(), WaitError::Wait(vk::Result::ERROR_DEVICE_LOST));
    let mut calls = 0;
    let error = arena.allocate_or_wait(1, 1, &time.clock, |asked| {
        calls += 1;
        assert_eq!(asked, ticket);
        Ok::<(), ()>(())
    });
    assert_eq!((error.unwrap_err(), calls), (WaitError::NoProgress { ticket }, 1));
    // A clock that does not know the ticket.
    let error = arena.allocate_or_wait(1, 1, &Clock::new(), never).unwrap_err();
    assert_eq!(error, WaitError::OtherClock(OtherClock { ticket, tickets: 1, collected: 0 }));
    // A page above the memory limit, which no wait can make possible.
    let error = arena.allocate_or_wait(1 << 20, 1, &time.clock, never).unwrap_err();
    assert!(matches!(error, WaitError::NoRoom(UploadError::MemoryLimit { .. })));
    assert_eq!(arena.statistics(), before);
    time.finish(1);
    arena.collect(&time.clock).unwrap();
    arena.validate();
    drop(arena.release());
}

#[test]
fn a_device_without_memory_is_waited_for_too() {
    let fixture = Fixture::new(sublet::sim::profiles::ALL[0]);
    let mut time = Time::new();
    let mut arena = arena(&fixture, &small(4096));
    arena.write(&[1; 4096], 1).unwrap();
    arena.flush(time.submitted()).unwrap();
    fixture.gpu.faults().fail_always("vkAllocateMemory", vk::Result::ERROR_OUT_OF_DEVICE_MEMORY);
    let error = arena.allocate(1, 1).unwrap_err();
    assert_eq!(driver_result(&error), Some(vk::Result::ERROR_OUT_OF_DEVICE_MEMORY));
    let wait = |_: Ticket| {
        time.finish(1);
        Ok::<(), vk::Result>(())
    };
    arena.allocate_or_wait(1, 1, &time.clock, wait).unwrap();
    assert_eq!(arena.statistics().pages, 1);
    fixture.gpu.faults().clear();
}

/// This works even if there is no ticket to wait for.
#[test]
fn free_pages_give_way_to_a_device_without_memory() {
    on_every_gpu(|fixture| {
        let mut time = Time::new();
        let mut arena = arena(&fixture, &UploadArenaCreateInfo { own_pages_kept: 9, ..small(4096) });
        arena.reserve(3 * 4096).unwrap();
        let fail = || {
            fixture.gpu.faults().fail_nth("vkAllocateMemory", 0, vk::Result::ERROR_OUT_OF_DEVICE_MEMORY);
        };
        fail();
        arena.allocate(8000, 1).unwrap();
        assert_eq!((arena.statistics().pages, arena.statistics().own_pages), (1, 1));
        arena.flush(time.submitted()).unwrap();
        time.finish(1);
        arena.collect(&time.clock).unwrap();
        fail();
        arena.allocate(4096, 1).unwrap();
        assert_eq!((arena.statistics().pages, arena.statistics().own_pages), (1, 0));
        // Without free pages and without another heap, the call fails.
        fixture.gpu.faults().fail_always("vkAllocateMemory", vk::Result::ERROR_OUT_OF_DEVICE_MEMORY);
        let error = arena.allocate(4096, 1).unwrap_err();
        fixture.gpu.faults().clear();
        assert_eq!(driver_result(&error), Some(vk::Result::ERROR_OUT_OF_DEVICE_MEMORY));
    });
}

/// One call meets the memory limit and a device without memory. Pages freed for the limit are not counted twice, and
/// new pages are not freed for the next one.
#[test]
fn reserving_takes_back_what_it_made_where_limit_and_device_refuse_at_once() {
    on_every_profile(|profile| {
        for refusals in 1..4 {
            let fixture = Fixture::new(profile);
            let mut time = Time::new();
            let info = UploadArenaCreateInfo { own_pages_kept: 9, ..limited(3) };
            let mut arena = arena(&fixture, &info);
            arena.allocate(4097, 1).unwrap();
            arena.flush(time.submitted()).unwrap();
            time.finish(1);
            arena.collect(&time.clock).unwrap();
            assert_eq!((arena.statistics().own_pages, arena.statistics().free_pages), (1, 1));
            // The limit permits one page beside the large one, which is freed for the second.
            for nth in 1..=refusals {
                fixture.gpu.faults().fail_nth(
                    "vkAllocateMemory",
                    nth,
                    vk::Result::ERROR_OUT_OF_DEVICE_MEMORY,
                );
            }
            let reserved = arena.reserve(2 * 4096);
            fixture.gpu.faults().clear();
            arena.validate();
            if reserved.is_ok() {
                assert_eq!(arena.statistics().free_pages, 2);
            }
            let mut uploads: Vec<_> = (0..3).map(|_| arena.allocate(4096, 1).unwrap().buffer).collect();
            uploads.sort_unstable();
            uploads.dedup();
            assert_eq!(uploads.len(), 3, "a page is given out twice");
        }
    });
}
