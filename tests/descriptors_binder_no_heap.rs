//! A warm binder asks the host for no memory: counted by a global allocator of this binary's own.
#![allow(clippy::unwrap_used, reason = "a test that meets the unexpected is to fail")]

#[path = "descriptors_binder/quiet.rs"]
mod quiet;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use quiet::{Quiet, Way, descriptors};
use sublet::descriptor::BindPoint;
use sublet::retire::Clock;

thread_local! {
    /// Host allocations of this thread.
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: every call goes to the system's allocator as it came, which keeps the contract.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: `memory` came from `System`, as all memory of this allocator does.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        COUNT.with(|count| count.set(count.get() + 1));
        // SAFETY: `memory` came from `System`, as all memory of this allocator does.
        unsafe { System.realloc(memory, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const POINT: BindPoint = BindPoint::Compute;

/// Some draws, of which each changes the set, and a flush and a collection.
fn frame(quiet: &mut Quiet, clock: &Clock, lane: sublet::retire::LaneId) {
    let ticket = clock.open(lane);
    quiet.binder.begin();
    for draw in 0..100 {
        quiet.binder.set_layout(POINT, &quiet.layout).unwrap();
        let (uniforms, storage, textures) = descriptors(1 + draw % 3);
        quiet.binder.stage(POINT, 0, 0, 0, &uniforms).unwrap();
        quiet.binder.stage(POINT, 0, 1, 0, &storage).unwrap();
        quiet.binder.stage(POINT, 0, 2, 0, &textures).unwrap();
        // SAFETY: the functions do nothing.
        unsafe { quiet.binder.commit(quiet.commands, POINT) }.unwrap();
    }
    quiet.binder.flush(ticket).unwrap();
    clock.discard(ticket).unwrap();
    quiet.binder.collect(clock).unwrap();
}

#[test]
fn a_warm_binder_takes_no_memory_from_the_host() {
    for way in [Way::Sets, Way::Push, Way::Buffer] {
        let mut quiet = Quiet::new(way);
        let clock = Clock::new();
        let lane = clock.add_lane().unwrap();
        let before = COUNT.with(Cell::get);
        for _ in 0..20 {
            frame(&mut quiet, &clock, lane);
        }
        assert!(COUNT.with(Cell::get) > before, "the count does not count");
        let before = COUNT.with(Cell::get);
        for _ in 0..20 {
            frame(&mut quiet, &clock, lane);
        }
        assert_eq!(COUNT.with(Cell::get) - before, 0, "{way:?}");
        quiet.close();
    }
}
