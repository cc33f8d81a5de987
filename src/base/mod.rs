//! Utilities for every layer: alignment arithmetic, index conversions, the two kinds of lock, a stopwatch.

pub(crate) mod align;
pub(crate) mod append_table;
pub(crate) mod cast;
pub(crate) mod sync;
pub(crate) mod watch;
