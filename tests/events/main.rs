//! Events that the library emits through `tracing`: exactly those documented in the guide. A subscriber may use the
//! allocator.
#![allow(clippy::unwrap_used, reason = "a test")]

mod collect;
mod memory;
mod promise;
mod quiet;
mod reentry;
mod sets;
mod source;
mod table;
