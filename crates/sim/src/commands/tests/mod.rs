//! Commands: what they do to bytes, and the reports of wrong ones.
#![allow(
    clippy::undocumented_unsafe_blocks,
    clippy::multiple_unsafe_ops_per_block,
    reason = "every block calls the simulated device, whose rules are what is tested"
)]

mod buffers;
mod draws;
pub(crate) mod fixture;
mod images;
mod life;
mod passes;
mod rendering;
mod scaled;
mod wrong_images;
