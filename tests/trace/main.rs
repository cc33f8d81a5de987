//! Recording through the public API: a program runs on the simulated GPU, and the tests read its trace.
#![allow(clippy::unwrap_used, reason = "a test that meets the unexpected is to fail")]

#[allow(unreachable_pub, reason = "shared by the modules of this binary")]
mod fixture;

mod beginning;
mod damage;
mod ending;
mod environment;
mod events;
mod foreign;
mod foreign_requests;
mod moves;
mod sinks;
mod threads;
