//! Errors of the allocation of sets.

use ash::vk;

use crate::{CreateDescriptorPoolError, DescriptorCounts};
use sublet::device::DriverError;

/// [`PersistentSets`](super::PersistentSets) could not allocate a set. All sets are unchanged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum AllocateDescriptorSetError {
    /// The layout has no sets: its descriptors are pushed, or are in a descriptor buffer.
    NotForSets {
        /// The layout's flags.
        flags: vk::DescriptorSetLayoutCreateFlags,
    },
    /// A variable count was given, but no binding of the layout has one.
    NoVariableBinding {
        /// The requested count.
        asked: u32,
    },
    /// The requested count exceeds the maximum of the variable binding.
    VariableCountTooHigh {
        /// The requested count.
        asked: u32,
        /// The maximum count of the layout.
        most: u32,
    },
    /// The driver rejected more descriptors in update-after-bind pools (`maxUpdateAfterBindDescriptorsInAllPools`).
    /// Idle pools were destroyed first; `left` includes their descriptors.
    UpdateAfterBindLimit {
        /// The number of descriptors in the smallest sufficient pool.
        needed: u64,
        /// The remaining descriptors below the limit.
        left: u64,
        /// The driver's error.
        source: DriverError,
    },
    /// No pool has room, and none could be created.
    NoPool {
        /// The number of sets in the smallest sufficient pool.
        sets: u32,
        /// The counts of each set.
        counts: DescriptorCounts,
        /// The error of the creation.
        source: CreateDescriptorPoolError,
    },
    /// A new pool for these sets failed to allocate one.
    FreshPoolRefused {
        /// The counts of each set.
        counts: DescriptorCounts,
        /// The driver's error.
        source: DriverError,
    },
    /// `vkAllocateDescriptorSets` failed for another reason than an exhausted pool.
    Driver {
        /// The counts of each set.
        counts: DescriptorCounts,
        /// The driver's error.
        source: DriverError,
    },
    /// There are already 2^32 sets of this kind.
    TooManySets,
    /// The host has no memory for the list of sets. No pool was created.
    HostMemory {
        /// The requested number of sets.
        sets: u32,
    },
}

sublet_engines::errors! { AllocateDescriptorSetError:
    NotForSets { flags } => "there are no sets of a layout with {flags:?}";
    NoVariableBinding { asked } => "a variable count of {asked} was given, and no binding of the layout has one";
    VariableCountTooHigh { asked, most } => "{asked} descriptors were asked for, and the layout has {most}";
    UpdateAfterBindLimit { needed, left, source } =>
        "{needed} descriptors that are updated after they are bound: the limit of the device leaves {left}, and \
         {source}", source;
    NoPool { sets, counts, source } => "no pool was made for {sets} sets of {counts} each: {source}", source;
    FreshPoolRefused { counts, source } =>
        "a new pool refused the first set that it was made for, of {counts}: {source}", source;
    Driver { counts, source } => "the driver did not allocate a descriptor set of {counts}: {source}", source;
    TooManySets => "2^32 descriptor sets of this kind are there already";
    HostMemory { sets } => "the host has no memory for {sets} descriptor sets at once";
}
