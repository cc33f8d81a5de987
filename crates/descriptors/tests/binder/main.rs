//! The binder through its public API: a pipeline finds the staged descriptors, by sets, by push descriptors and in
//! descriptor buffers.
#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "calls of the simulated driver, on objects that each test makes and destroys"
)]
#![allow(clippy::unwrap_used, reason = "a test that meets the unexpected is to fail")]

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
