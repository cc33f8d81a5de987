//! A global allocator that counts the allocations of each thread.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
    static BYTES: Cell<usize> = const { Cell::new(0) };
}

/// Counts allocated and freed bytes.
fn enter(came: usize, went: usize) {
    COUNT.set(COUNT.get() + u64::from(came > 0));
    BYTES.set(BYTES.get().wrapping_add(came).wrapping_sub(went));
}

struct Counting;

// SAFETY: every call is forwarded unchanged to the system allocator, which upholds the contract.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        enter(layout.size(), 0);
        // SAFETY: the caller upholds the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        enter(0, layout.size());
        // SAFETY: `System` allocated `memory`, like all memory of this allocator.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        enter(size, layout.size());
        // SAFETY: `System` allocated `memory`, like all memory of this allocator.
        unsafe { System.realloc(memory, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Returns the number of host allocations of this thread so far.
pub fn count() -> u64 {
    COUNT.get()
}

/// Returns the bytes that this thread has allocated minus those it has freed, wrapping.
pub fn bytes() -> usize {
    BYTES.get()
}
