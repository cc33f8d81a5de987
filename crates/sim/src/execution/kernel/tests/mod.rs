//! Dispatches, and what shaders find.
#![allow(
    clippy::undocumented_unsafe_blocks,
    clippy::multiple_unsafe_ops_per_block,
    reason = "every block calls the simulated device, whose rules are what is tested"
)]

mod buffers;
pub(crate) mod fixture;
mod images;
mod pipelines;
