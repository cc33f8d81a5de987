//! Persistent descriptor sets through the public API: on drivers that refuse everything that Vulkan permits, on drivers
//! that refuse nothing, and on drivers with faults. The simulated driver validates the calls.
#![allow(
    clippy::unwrap_used,
    clippy::undocumented_unsafe_blocks,
    clippy::multiple_unsafe_ops_per_block,
    reason = "a test that meets the unexpected is to fail; all handles are of the simulated device, and live"
)]

#[allow(unreachable_pub, reason = "shared by the modules of this binary")]
mod common;

#[allow(unreachable_pub, reason = "shared with other binaries")]
#[path = "../../../../tests/shared/held.rs"]
mod held;

mod batches;
mod buckets;
mod failures;
mod mixed_frees;
mod model;
mod names;
mod pools;
mod quirks;
mod retirement;
mod threads;
mod update_after_bind;
mod variable;
