//! A unique number for each thread that has called a recording allocator.

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, Ordering};

/// The thread has no number yet.
const NONE: u32 = u32::MAX;

thread_local! {
    // It has no destructor, so it can be read at any time.
    static NUMBER: Cell<u32> = const { Cell::new(NONE) };
}

/// Returns the number of the calling thread.
#[inline]
pub(super) fn number() -> u32 {
    let number = NUMBER.get();
    if number == NONE { first() } else { number }
}

#[cold]
#[inline(never)]
fn first() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    NUMBER.set(number);
    number
}
