//! Descriptors in memory: what shaders find, and wrong use.
#![allow(
    clippy::undocumented_unsafe_blocks,
    clippy::multiple_unsafe_ops_per_block,
    reason = "every block calls the simulated device, whose rules are what is tested"
)]

mod find;
mod misuse;
