//! Heaps: what shaders find there, and wrong use.
#![allow(
    clippy::undocumented_unsafe_blocks,
    clippy::multiple_unsafe_ops_per_block,
    clippy::missing_transmute_annotations,
    reason = "every block calls the simulated device, whose rules are what is tested"
)]

mod find;
mod inherited;
mod records;

use find::*;
