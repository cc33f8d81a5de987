//! A small number for each thread, which spreads threads over a few slots.
//!
//! Tokens are dense: a thread gets the lowest number that no living thread has. So a program with four threads uses 0
//! to 3, however many threads have come and gone. They are **hints, not identities**: two living threads share a token
//! if there are more than [`TOKENS`] of them, and while the locals of one of them are destroyed.

#[cfg(not(all(loom, test)))]
mod leased;
#[cfg(all(loom, test))]
mod pretended;
mod taken;

#[cfg(not(all(loom, test)))]
pub(crate) use self::leased::current;
#[cfg(all(test, not(loom)))]
pub(crate) use self::leased::pose_as;
#[cfg(all(loom, test))]
pub(crate) use self::pretended::{current, pretend};

/// All tokens are less than this.
#[cfg_attr(all(loom, test), allow(dead_code, reason = "tokens are given by hand in a model"))]
pub(crate) const TOKENS: u32 = 4096;
