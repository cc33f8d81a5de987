//! Several threads in one trace, with one order.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};

use ash::vk;
use sublet::trace::{Event, Trace, TraceBuffer};
use sublet::{AllocationCreateInfo, PoolCreateInfo, ScopeCreateInfo};

use crate::fixture::*;

const THREADS: u32 = 4;
const EACH: u32 = 3000;

#[test]
fn threads_are_told_apart_and_all_they_do_is_there() {
    let gpu = gpu();
    let allocator = &allocator(&gpu);
    let trace = recorded(allocator, || {
        let barrier = &Barrier::new(4);
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                scope.spawn(move || {
                    barrier.wait();
                    let mut kept = Vec::new();
                    for at in 0..EACH {
                        allocator.set_current_frame_index(thread << 24 | at);
                        kept.push(allocate(allocator, u64::from(at % 500 + 1)));
                        if kept.len() > 30 {
                            free(allocator, kept.swap_remove(0));
                        }
                    }
                    kept.into_iter().for_each(|allocation| free(allocator, allocation));
                });
            }
        });
    });
    assert_eq!(trace.unknown_events, 0);
    assert_eq!(trace.records.len(), usize::try_from(THREADS * EACH * 3).unwrap());
    // The calls of each thread are in order.
    let mut next: BTreeMap<u32, u32> = BTreeMap::new();
    let mut of_thread = BTreeMap::new();
    for record in &trace.records {
        if let Event::Frame { index } = record.event {
            assert_eq!(*of_thread.entry(record.thread).or_insert(index >> 24), index >> 24);
            let expected = next.entry(record.thread).or_default();
            assert_eq!(index & 0xFF_FFFF, *expected);
            *expected += 1;
        }
    }
    let seen: Vec<_> = trace.records.iter().map(|record| record.thread).collect();
    let mut order = BTreeSet::new();
    for thread in seen {
        assert!(order.contains(&thread) || thread == u32::try_from(order.len()).unwrap());
        order.insert(thread);
    }
    assert_eq!(order.len(), 4);
}

/// A thread may free another thread's allocation at once.
#[test]
fn what_one_thread_makes_and_another_frees_is_recorded_in_that_order() {
    let gpu = gpu();
    let allocator = &allocator(&gpu);
    let trace = recorded(allocator, || {
        let (send, receive) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            scope.spawn(move || (0..20_000).for_each(|_| send.send(allocate(allocator, 64)).unwrap()));
            scope.spawn(move || receive.into_iter().for_each(|allocation| free(allocator, allocation)));
        });
    });
    assert_eq!((trace.records.len(), trace.unknown_events), (40_000, 0));
}

#[test]
fn what_is_made_while_a_recording_begins_is_recorded_once() {
    let gpu = gpu();
    let allocator = allocator(&gpu);
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    let pool = allocator.create_pool(&PoolCreateInfo::new(0)).unwrap();
                    let scope = allocator.create_scope(&ScopeCreateInfo::default()).unwrap();
                    // SAFETY: the scope is empty.
                    unsafe { allocator.free_scope(scope) }.unwrap();
                    // SAFETY: the pool is empty.
                    unsafe { allocator.destroy_pool(pool) }.unwrap();
                }
            });
        }
        for _ in 0..300 {
            let buffer = TraceBuffer::new();
            allocator.start_recording(buffer.clone()).unwrap();
            std::thread::yield_now();
            allocator.stop_recording().unwrap();
            Trace::read(&buffer.bytes()).unwrap();
        }
        over.store(true, Ordering::Relaxed);
    });
}

#[test]
fn recordings_that_are_ended_as_they_begin_are_not_mixed() {
    const LIVE: usize = 2000;
    let gpu = gpu();
    let allocator = allocator(&gpu);
    let requirements = vk::MemoryRequirements { size: 256, alignment: 256, memory_type_bits: !0 };
    let held: Vec<_> = (0..LIVE)
        .map(|_| allocator.allocate_memory(&requirements, &AllocationCreateInfo::default()).unwrap())
        .collect();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                let _ = allocator.stop_recording();
            }
        });
        for _ in 0..200 {
            let buffer = TraceBuffer::new();
            while allocator.start_recording(buffer.clone()).is_err() {}
            // Both calls wait until everything is written, whichever of them ends the recording.
            let _ = allocator.stop_recording();
            let trace = Trace::read(&buffer.bytes()).unwrap();
            let existing = trace.records.iter().filter(|it| matches!(it.event, Event::Existing(_))).count();
            assert_eq!(existing, LIVE);
        }
        over.store(true, Ordering::Relaxed);
    });
    for allocation in held {
        // SAFETY: nothing was bound to it.
        unsafe { allocator.free_memory(allocation) }.unwrap();
    }
}
