//! Utilities for every layer: the two kinds of lock, a table, a stopwatch.

pub(crate) mod append_table;
pub(crate) mod sync;
pub(crate) mod watch;
