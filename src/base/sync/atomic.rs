//! The atomics that a model checker must see: the standard library's in ordinary builds, loom's in the tests that
//! `.ci/loom` runs.
//!
//! Code that shares data between threads without a lock must use the atomics of this module. Add a missing type to both
//! imports below. loom's types cannot be created in a `const`, and neither can a type that contains one.
#![allow(unused_imports, reason = "one set for all; not every build uses the whole of it")]

#[cfg(not(all(loom, test)))]
pub(crate) use std::{
    hint::spin_loop,
    sync::OnceLock,
    sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence},
    thread::yield_now,
};

#[cfg(all(loom, test))]
pub(crate) use loom::{
    hint::spin_loop,
    sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence},
    thread::yield_now,
};

#[cfg(all(loom, test))]
pub(crate) use super::model::{OnceLock, SpinWait, Turn};
#[cfg(not(all(loom, test)))]
pub(crate) use super::wait::SpinWait;

/// Marks exclusive access that only the order of atomics ensures. Does nothing outside a model. In a model, it fails if
/// the memory order does not make the end of the previous thread's access visible.
#[cfg(not(all(loom, test)))]
#[derive(Debug)]
pub(crate) struct Turn;

#[cfg(not(all(loom, test)))]
impl Turn {
    #[inline]
    pub(crate) const fn new() -> Self {
        Self
    }

    #[inline]
    pub(crate) const fn touch(&self) {}
}
