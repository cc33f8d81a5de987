//! The tokens of modelled threads, set by the test.

use std::cell::Cell;

loom::thread_local! {
    static TOKEN: Cell<u32> = Cell::new(0);
}

/// The token that the test set for the calling thread; 0 by default.
pub(crate) fn current() -> u32 {
    TOKEN.try_with(Cell::get).unwrap_or(0)
}

/// Sets the token of the calling thread.
pub(crate) fn pretend(token: u32) {
    TOKEN.with(|known| known.set(token));
}
