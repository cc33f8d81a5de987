//! Tests of the public interface: snapshots, figures, comparisons, pictures.
#![allow(
    clippy::unwrap_used,
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    reason = "a test that meets the unexpected is to fail, and its numbers are small"
)]

mod compared;
mod damaged;
mod descriptors;
mod figures;
mod findings;
mod foreign;
mod kit;
mod leaks;
mod pictures;
mod saved;
mod timelines;
mod vma;
#[path = "../example/watched.rs"]
#[allow(unreachable_pub, reason = "shared with other binaries")]
mod watched;
