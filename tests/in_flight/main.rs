//! Everything that waits for the device, in every situation in which a program may come: a slot of frames that is never
//! used again, recordings that are discarded, submissions in another order, two queues, a lost device.
//!
//! The simulated device executes when it is told to. It reports whatever is destroyed, reset or written while a
//! submission uses it, and what it executes is looked at: an upload that was overwritten, or a descriptor of somebody
//! else's, is found.
#![allow(clippy::unwrap_used, reason = "a test that meets the unexpected is to fail")]
#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "handles are of the rig, which outlives all that uses them"
)]

mod rig;
#[allow(unreachable_pub, reason = "shared with other binaries")]
#[path = "../shared/said.rs"]
mod said;
mod situations;
mod subjects;
