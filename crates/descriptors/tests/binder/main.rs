//! The binder through its public API: a pipeline finds the staged descriptors, by sets, by push descriptors and in
//! descriptor buffers.
#![allow(
    clippy::unwrap_used,
    clippy::undocumented_unsafe_blocks,
    clippy::multiple_unsafe_ops_per_block,
    reason = "a test that meets the unexpected is to fail; all handles are of the simulated device, and live"
)]

mod buffers;
mod calls;
mod errors;
mod faults;
mod fixture;
#[allow(unreachable_pub, dead_code, reason = "shared with other binaries")]
#[path = "../../../../tests/shared/held.rs"]
mod held;
mod layouts;
mod model;
