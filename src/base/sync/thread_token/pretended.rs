//! The tokens of modelled threads: what the test says they are.
#![forbid(unsafe_code)]

use std::cell::Cell;

loom::thread_local! {
    static TOKEN: Cell<u32> = Cell::new(0);
}

/// The token that the calling thread pretends to have; 0 if it said nothing.
pub(crate) fn current() -> u32 {
    TOKEN.try_with(Cell::get).unwrap_or(0)
}

/// Lets the calling thread have `token`.
pub(crate) fn pretend(token: u32) {
    TOKEN.with(|known| known.set(token));
}
