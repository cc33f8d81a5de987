//! Tests every type that waits for the device, in every situation of a program: a frame slot that is never used again,
//! discarded recordings, submissions in another order, two queues, a lost device.
//!
//! The simulated device executes when a test lets it. It reports every object that is destroyed, reset or written while
//! a submission uses it. The tests check the results of the execution, and so detect overwritten uploads and wrong
//! descriptors.
#![allow(clippy::unwrap_used, reason = "a test that meets the unexpected is to fail")]
#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "handles are of the fixture, which outlives all that uses them"
)]

mod fixture;
#[allow(unreachable_pub, reason = "shared with other binaries")]
#[path = "../shared/said.rs"]
mod said;
mod situations;
mod subjects;
