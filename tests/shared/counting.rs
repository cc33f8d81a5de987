//! A global allocator that counts the requests of a thread.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
    static BYTES: Cell<usize> = const { Cell::new(0) };
}

/// Enters bytes that came and bytes that went.
fn enter(came: usize, went: usize) {
    COUNT.set(COUNT.get() + u64::from(came > 0));
    BYTES.set(BYTES.get().wrapping_add(came).wrapping_sub(went));
}

struct Counting;

// SAFETY: every call goes to the system's allocator as it came, which keeps the contract.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        enter(layout.size(), 0);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        enter(0, layout.size());
        // SAFETY: `memory` came from `System`, as all memory of this allocator does.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        enter(size, layout.size());
        // SAFETY: `memory` came from `System`, as all memory of this allocator does.
        unsafe { System.realloc(memory, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Host allocations of this thread so far.
pub fn count() -> u64 {
    COUNT.get()
}

/// Bytes that this thread has and has not given back, wrapping.
pub fn bytes() -> usize {
    BYTES.get()
}
