//! A number for each thread that ever called a recording allocator. No two threads have the same number.

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, Ordering};

/// The thread has no number yet.
const NONE: u32 = u32::MAX;

thread_local! {
    // Without a destructor: it can be read at any time.
    static NUMBER: Cell<u32> = const { Cell::new(NONE) };
}

/// The calling thread's number.
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
