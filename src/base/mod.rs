//! Utilities for every layer: the two kinds of lock, a stopwatch.

pub(crate) mod sync;
pub(crate) mod watch;
