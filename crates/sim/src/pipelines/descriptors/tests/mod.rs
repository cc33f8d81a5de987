//! Descriptors of the simulated device: their contents, full pools, and reports.
#![allow(
    clippy::undocumented_unsafe_blocks,
    clippy::multiple_unsafe_ops_per_block,
    reason = "the tests call the driver as programs do, right or wrong on purpose"
)]

mod bound;
mod capabilities;
mod copies;
mod fixture;
mod layouts;
mod objects;
mod pending;
mod pools;
mod quirks;
mod random;
mod templates;
mod writes;

use ash::vk;
use ash::vk::DescriptorType as Type;

use crate::Gpu;
use crate::facts::profiles::pool_policy::{DescriptorPoolPolicy, DescriptorQuirk};
use crate::facts::profiles::{ALL, Profile};
use crate::objects::descriptors::contents::SimulatedDescriptor;
use crate::tests::WRONG;
use fixture::{DescriptorFixture, at, many};

const FULL: vk::Result = vk::Result::ERROR_OUT_OF_POOL_MEMORY;

fn profile(name: &str) -> &'static Profile {
    Profile::by_name(name).expect("a profile of this name")
}

/// A GPU with every feature that has to do with descriptors, and pools that refuse what they may.
fn strict() -> DescriptorFixture {
    DescriptorFixture::new(
        Gpu::builder(profile("nvidia-h200")).descriptor_pools(DescriptorPoolPolicy::Strict),
    )
}
