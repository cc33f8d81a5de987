//! Several threads, one order.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Barrier;

use sublet::trace::Event;

use crate::rig::*;

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
    assert_eq!(trace.strangers, 0);
    assert_eq!(trace.records.len(), usize::try_from(THREADS * EACH * 3).unwrap());
    // Each thread's own calls are in its own order.
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

/// An allocation may be freed by another thread than the one that made it, at once.
#[test]
fn what_one_thread_makes_and_another_frees_is_told_in_that_order() {
    let gpu = gpu();
    let allocator = &allocator(&gpu);
    let trace = recorded(allocator, || {
        let (send, receive) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            scope.spawn(move || (0..20_000).for_each(|_| send.send(allocate(allocator, 64)).unwrap()));
            scope.spawn(move || receive.into_iter().for_each(|allocation| free(allocator, allocation)));
        });
    });
    assert_eq!((trace.records.len(), trace.strangers), (40_000, 0));
}
