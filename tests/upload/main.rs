//! Uploads through the public API on every simulated GPU. The tests check the bytes that the device reads and the
//! driver's messages.
#![allow(
    clippy::unwrap_used,
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    reason = "a test that meets the unexpected is to fail, and its numbers are small"
)]

#[allow(unreachable_pub, dead_code, reason = "shared with another binary, and by the modules of this one")]
#[path = "../allocator/common.rs"]
mod common;
#[allow(unreachable_pub, reason = "shared with other binaries")]
#[path = "../shared/held.rs"]
mod held;
#[allow(unreachable_pub, reason = "shared with other binaries")]
#[path = "../shared/said.rs"]
mod said;
#[allow(unreachable_pub, reason = "shared by the modules of this binary")]
mod support;

mod arena;
mod clocks;
mod content;
mod fallback;
mod faults;
mod limits;
mod memory;
mod model;
