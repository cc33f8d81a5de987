//! Resources that wait for the GPU. The tests decide how far the simulated GPU executes. It reports everything that is
//! destroyed while a submission still uses it: silence at the end proves that nothing was freed early.
#![allow(clippy::unwrap_used, reason = "a test that meets the unexpected is to fail")]

mod errors;
mod frames;
#[allow(unreachable_pub, dead_code, reason = "shared with other binaries")]
#[path = "../shared/held.rs"]
mod held;
mod loss;
mod random;
mod rig;
#[allow(unreachable_pub, reason = "shared with other binaries")]
#[path = "../shared/said.rs"]
mod said;
mod threads;
mod timelines;
