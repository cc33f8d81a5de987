//! Transient descriptor sets through the public API, on simulated drivers that report full pools in all the ways of
//! real ones.
#![allow(
    clippy::unwrap_used,
    clippy::undocumented_unsafe_blocks,
    clippy::multiple_unsafe_ops_per_block,
    reason = "a test that meets the unexpected is to fail; all handles are of the simulated device, and live"
)]

mod creation;
mod exhaustion;
mod faults;
mod fixture;
mod growth;
#[allow(unreachable_pub, dead_code, reason = "shared with other binaries")]
#[path = "../../../../tests/shared/held.rs"]
mod held;
mod kinds;
mod lists;
mod quirks;
mod random;
mod recycling;
