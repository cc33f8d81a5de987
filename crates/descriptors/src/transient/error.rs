//! Errors of transient sets.

use std::error::Error;
use std::fmt;

use ash::vk;

use crate::{CreateDescriptorPoolError, DescriptorCounts, DescriptorFeatures};
use sublet::device::DriverError;
use sublet::retire::OtherClock;

/// The set was not allocated. Existing sets are unaffected.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum TransientError {
    /// The set needs more than a pool of the create-info holds, and [`LargeSets::Refuse`](super::LargeSets::Refuse) is
    /// set. Vulkan was not called.
    TooLarge {
        /// The counts of the set.
        need: Box<DescriptorCounts>,
        /// The capacity of a pool.
        capacity: Box<DescriptorCounts>,
    },
    /// The layout has no sets, or none in these pools: its descriptors are pushed, are in a descriptor buffer, or
    /// are host-only.
    NoSetsOfLayout {
        /// The layout's flags.
        flags: vk::DescriptorSetLayoutCreateFlags,
    },
    /// The variable count exceeds the layout's maximum.
    VariableCount {
        /// The requested count.
        count: u32,
        /// The maximum; 0 for a layout without a variable binding.
        max: u32,
    },
    /// The layout has mutable descriptors of a type that is not in the create-info.
    MutableType {
        /// The type.
        descriptor_type: vk::DescriptorType,
    },
    /// All pools are in use, and the limit ([`max_pools`](super::TransientSetsCreateInfo::max_pools)) is reached. Call
    /// `collect` once recordings are done.
    PoolLimit {
        /// The maximum number of pools.
        max_pools: usize,
    },
    /// The requested number of free pools exceeds the limit ([`max_pools`](super::TransientSetsCreateInfo::max_pools)).
    TooManyPools {
        /// The requested number of free pools.
        asked: usize,
        /// The maximum number of pools.
        max_pools: usize,
    },
    /// No pool had room, and none could be created.
    Pool {
        /// The error of the creation.
        source: CreateDescriptorPoolError,
    },
    /// An empty pool with room for the set failed to provide it. The pool is kept for other layouts.
    Refused {
        /// The counts of the set.
        need: Box<DescriptorCounts>,
        /// The capacity of the pool.
        capacity: Box<DescriptorCounts>,
        /// The driver's error.
        source: DriverError,
    },
    /// The driver failed for another reason than a full pool.
    Driver {
        /// The counts of the set.
        need: Box<DescriptorCounts>,
        /// The driver's error.
        source: DriverError,
    },
}

sublet_engines::errors! { TransientError:
    TooLarge { need, capacity } => "a set of {need}, and pools are of {capacity}";
    NoSetsOfLayout { flags } => "a layout with {flags:?} has no sets in these pools";
    VariableCount { count, max } => "a variable count of {count}, and the layout allows {max}";
    MutableType { descriptor_type } =>
        "mutable descriptors of type {descriptor_type:?}, which the pools are not made for";
    PoolLimit { max_pools } => "all {max_pools} descriptor pools are in use, and there may not be more";
    TooManyPools { asked, max_pools } => "{asked} free descriptor pools, and there may be {max_pools}";
    Pool { source } => "no pool has room, and there is no new one: {source}", source;
    Refused { need, capacity, source } =>
        "an empty pool of {capacity} refused a set of {need}: {source}", source;
    Driver { need, source } => "the driver did not allocate a descriptor set of {need}: {source}", source;
}

/// The [`TransientSets`](super::TransientSets) could not be created. Nothing is left behind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum CreateTransientSetsError {
    /// Without Vulkan 1.1 or `VK_KHR_maintenance1`, a full pool may not report it, and allocating from it is invalid.
    Unsupported {
        /// The missing features.
        missing: DescriptorFeatures,
    },
    /// [`sets_per_pool`](super::TransientSetsCreateInfo::sets_per_pool) or
    /// [`max_sets_per_pool`](super::TransientSetsCreateInfo::max_sets_per_pool) is zero.
    NoSets,
    /// The number of initial pools exceeds the limit.
    MinPools {
        /// The number of initial pools.
        min_pools: usize,
        /// The maximum number of pools.
        max_pools: usize,
    },
    /// The initial pools could not be created.
    Pool {
        /// The error of the creation.
        source: CreateDescriptorPoolError,
    },
}

sublet_engines::errors! { CreateTransientSetsError:
    Unsupported { missing } => "descriptor pools need Vulkan 1.1 or {missing:?}, which the program has not enabled";
    NoSets => "pools of no sets";
    MinPools { min_pools, max_pools } => "{min_pools} pools at the start, and there may be {max_pools}";
    Pool { source } => "the pools for the start could not be made: {source}", source;
}

/// Some pools that could be free are not. Either the driver failed to reset them, and the next
/// [`collect`](super::TransientSets::collect) retries; or they wait for tickets of another clock. All other completed
/// pools were reset.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CollectPoolsError {
    /// The number of pools that became free.
    pub collected: usize,
    /// The number of completed pools that were not reset.
    pub left: usize,
    /// The driver's first error.
    pub source: Option<DriverError>,
    /// Set if sets wait for tickets of another clock. Only that clock can report them as done.
    pub other_clock: Option<OtherClock>,
}

impl fmt::Display for CollectPoolsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { collected, left, source, other_clock } = self;
        write!(f, "{collected} descriptor pools were reset")?;
        if let Some(source) = source {
            write!(f, "; the driver did not reset {left}: {source}")?;
        }
        if let Some(OtherClock { ticket, tickets, .. }) = other_clock {
            write!(f, "; {tickets} tickets are of another clock, the first of them {ticket:?}")?;
        }
        Ok(())
    }
}

impl Error for CollectPoolsError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_ref()?.source()
    }
}
