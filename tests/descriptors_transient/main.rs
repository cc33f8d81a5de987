//! Transient descriptor sets as a program uses them, on simulated drivers that end pools in all the ways that real ones
//! do.
#![allow(clippy::unwrap_used, reason = "a test that meets the unexpected is to fail")]

mod creation;
mod exhaustion;
mod faults;
mod growth;
#[allow(unreachable_pub, dead_code, reason = "shared with other binaries")]
#[path = "../shared/held.rs"]
mod held;
mod kinds;
mod lists;
mod quirks;
mod random;
mod recycling;
mod rig;
