//! Why there is no set, and why there are no transient sets at all.
#![forbid(unsafe_code)]

use std::error::Error;
use std::fmt;

use ash::vk;

use crate::descriptor::{CreateDescriptorPoolError, DescriptorCounts, DescriptorFeatures};
use crate::device::DriverError;
use crate::retire::OtherClock;

/// Why a set was not allocated. Nothing that was allocated before is touched.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum TransientError {
    /// The set needs more than the create-info's pools hold, and [`LargeSets::Refuse`](super::LargeSets::Refuse) was
    /// chosen. Vulkan was not called.
    TooLarge {
        /// What the set needs.
        need: Box<DescriptorCounts>,
        /// What a pool holds.
        capacity: Box<DescriptorCounts>,
    },
    /// There are no sets of such a layout, or not from these pools: its descriptors are pushed, or are in a descriptor
    /// buffer, or are the host's only.
    NoSetsOfLayout {
        /// The layout's flags.
        flags: vk::DescriptorSetLayoutCreateFlags,
    },
    /// A variable count above what the layout allows.
    VariableCount {
        /// What was asked for.
        count: u32,
        /// The most that there can be; 0 for a layout without such a binding.
        max: u32,
    },
    /// The layout has mutable descriptors of a type that the create-info does not name.
    MutableType {
        /// The type.
        descriptor_type: vk::DescriptorType,
    },
    /// All pools are in use, and there may not be more ([`max_pools`](super::TransientSetsCreateInfo::max_pools)).
    /// `collect` helps once recordings are done.
    PoolLimit {
        /// The most that there may be.
        max_pools: usize,
    },
    /// More free pools were asked for than there may be ([`max_pools`](super::TransientSetsCreateInfo::max_pools)).
    TooManyPools {
        /// Free pools that were asked for.
        asked: usize,
        /// The most pools that there may be.
        max_pools: usize,
    },
    /// There was no pool for it, and none could be made.
    Pool {
        /// Why.
        source: CreateDescriptorPoolError,
    },
    /// A pool that has room for the set, and no other set in it, refused. It is kept, for other layouts.
    Refused {
        /// What the set needs.
        need: Box<DescriptorCounts>,
        /// What the pool holds.
        capacity: Box<DescriptorCounts>,
        /// What the driver said.
        source: DriverError,
    },
    /// The driver failed for another reason than that a pool is full.
    Driver {
        /// What the set needs.
        need: Box<DescriptorCounts>,
        /// What it said.
        source: DriverError,
    },
}

impl fmt::Display for TransientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge { need, capacity } => write!(f, "a set of {need}, and pools are of {capacity}"),
            Self::NoSetsOfLayout { flags } => write!(f, "a layout with {flags:?} has no sets in these pools"),
            Self::VariableCount { count, max } => {
                write!(f, "a variable count of {count}, and the layout allows {max}")
            }
            Self::MutableType { descriptor_type } => {
                write!(f, "mutable descriptors of type {descriptor_type:?}, which the pools are not made for")
            }
            Self::PoolLimit { max_pools } => {
                write!(f, "all {max_pools} descriptor pools are in use, and there may not be more")
            }
            Self::TooManyPools { asked, max_pools } => {
                write!(f, "{asked} free descriptor pools, and there may be {max_pools}")
            }
            Self::Pool { source } => write!(f, "no pool has room, and there is no new one: {source}"),
            Self::Refused { need, capacity, source } => {
                write!(f, "an empty pool of {capacity} refused a set of {need}: {source}")
            }
            Self::Driver { need, source } => {
                write!(f, "the driver did not allocate a descriptor set of {need}: {source}")
            }
        }
    }
}

impl Error for TransientError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Pool { source } => source.source(),
            Self::Refused { source, .. } | Self::Driver { source, .. } => source.source(),
            _ => None,
        }
    }
}

/// Why there are no [`TransientSets`](super::TransientSets). Nothing was made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum CreateTransientSetsError {
    /// Without Vulkan 1.1 or `VK_KHR_maintenance1` a pool that is full may not say so, and asking it is invalid.
    Unsupported {
        /// What is not enabled.
        missing: DescriptorFeatures,
    },
    /// [`sets_per_pool`](super::TransientSetsCreateInfo::sets_per_pool) or
    /// [`max_sets_per_pool`](super::TransientSetsCreateInfo::max_sets_per_pool) is zero.
    NoSets,
    /// More pools at the start than there may be.
    MinPools {
        /// Pools at the start.
        min_pools: usize,
        /// The most that there may be.
        max_pools: usize,
    },
    /// The pools for the start could not be made.
    Pool {
        /// Why.
        source: CreateDescriptorPoolError,
    },
}

impl fmt::Display for CreateTransientSetsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsupported { missing } => {
                write!(
                    f,
                    "descriptor pools need Vulkan 1.1 or {missing:?}, which the program has not enabled"
                )
            }
            Self::NoSets => f.write_str("pools of no sets"),
            Self::MinPools { min_pools, max_pools } => {
                write!(f, "{min_pools} pools at the start, and there may be {max_pools}")
            }
            Self::Pool { source } => write!(f, "the pools for the start could not be made: {source}"),
        }
    }
}

impl Error for CreateTransientSetsError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Pool { source } => source.source(),
            _ => None,
        }
    }
}

/// Some pools are not free although they might be: the driver did not reset them, and they are kept as they are for the
/// next [`collect`](super::TransientSets::collect); or they wait for tickets of another clock. All others that were
/// done were reset.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CollectError {
    /// Pools that are free again.
    pub collected: usize,
    /// Pools that are done, and not reset.
    pub left: usize,
    /// The driver's first answer that was an error.
    pub source: Option<DriverError>,
    /// Sets wait for tickets of another clock, which alone says that they are done.
    pub other_clock: Option<OtherClock>,
}

impl fmt::Display for CollectError {
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

impl Error for CollectError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_ref()?.source()
    }
}
