//! Resources that wait for the GPU. The tests control how far the simulated GPU executes. It reports every object that
//! is destroyed while a submission uses it, so no message at the end means that nothing was freed early.
#![allow(clippy::unwrap_used, reason = "a test that meets the unexpected is to fail")]

mod errors;
mod fixture;
#[allow(unreachable_pub, dead_code, reason = "shared with other binaries")]
#[path = "../shared/held.rs"]
mod held;
mod loss;
#[allow(unreachable_pub, reason = "shared with other binaries")]
#[path = "../shared/said.rs"]
mod said;
mod threads;
mod timelines;
