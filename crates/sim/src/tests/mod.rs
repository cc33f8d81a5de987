//! The simulated device against its own rules: right use is silent, and wrong use is reported once, under its rule.
#![allow(
    clippy::undocumented_unsafe_blocks,
    clippy::multiple_unsafe_ops_per_block,
    reason = "the tests call the driver as programs do, right or wrong on purpose"
)]

mod allocation;
mod binding;
mod chains;
mod common;
mod content;
mod faults;
mod mapping;
mod misuse;
mod null;
mod objects;
mod queues;
mod threads;

pub(crate) use common::*;
