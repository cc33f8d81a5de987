//! What every floor may use: alignment arithmetic, index conversions, the two forms of lock, a stopwatch.

pub(crate) mod align;
pub(crate) mod append_table;
pub(crate) mod cast;
pub(crate) mod sync;
pub(crate) mod watch;
