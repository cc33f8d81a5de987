//! Descriptor heaps on simulated GPUs: shaders find the written descriptors, nothing leaks, and errors name the missing
//! features.
#![allow(
    clippy::unwrap_used,
    clippy::undocumented_unsafe_blocks,
    clippy::multiple_unsafe_ops_per_block,
    reason = "a test that meets the unexpected is to fail; all handles are of the simulated device, and live"
)]

mod bindless;
mod buffer;
mod classic;
#[allow(unreachable_pub, reason = "shared by the modules of this binary")]
mod common;
mod grow;
#[allow(unreachable_pub, dead_code, reason = "shared with other binaries")]
#[path = "../../../../tests/shared/held.rs"]
mod held;
mod host;
mod kinds;
#[allow(unreachable_pub, reason = "shared by the modules of this binary")]
mod native;
mod owned;
mod set;
#[allow(unreachable_pub, reason = "shared by the modules of this binary")]
mod shader;
mod slot;
mod threads;
