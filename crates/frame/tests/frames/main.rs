//! Frames, lists and resources on simulated GPUs.
#![allow(
    clippy::unwrap_used,
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    clippy::undocumented_unsafe_blocks,
    clippy::multiple_unsafe_ops_per_block,
    missing_docs,
    reason = "a test may panic, and counts small things; what its unsafe code promises is the test's set-up"
)]

mod callbacks;
mod compact;
mod compact_threads;
mod faults;
mod fill;
mod fixture;
mod foreign;
mod heaps;
#[allow(unreachable_pub, reason = "shared with other binaries")]
#[path = "../../../../tests/shared/held.rs"]
mod held;
mod host;
mod images;
mod life;
mod long;
mod lost;
mod make;
mod mixed;
mod outside;
mod paint;
mod programs;
mod random;
mod shaders;
mod state;
