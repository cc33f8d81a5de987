//! Why there is no set.
#![forbid(unsafe_code)]

use std::error::Error;
use std::fmt;

use ash::vk;

use crate::descriptor::{CreateDescriptorPoolError, DescriptorCounts};
use crate::device::DriverError;

/// Why [`PersistentSets`](super::PersistentSets) gave no set. All sets are as they were.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum AllocateDescriptorSetError {
    /// There are no sets of such a layout: its descriptors are pushed, or in a descriptor buffer.
    NotForSets {
        /// The layout's flags.
        flags: vk::DescriptorSetLayoutCreateFlags,
    },
    /// A variable count was given, and no binding of the layout has one.
    NoVariableBinding {
        /// What was asked for.
        asked: u32,
    },
    /// The binding with the variable count has fewer descriptors.
    VariableCountTooHigh {
        /// What was asked for.
        asked: u32,
        /// What the layout allows.
        most: u32,
    },
    /// The driver refused more descriptors in pools whose sets are updated after they are bound
    /// (`maxUpdateAfterBindDescriptorsInAllPools`). What idle pools held was given back, and is counted in `left`.
    UpdateAfterBindLimit {
        /// Descriptors that the smallest pool that would do takes.
        needed: u64,
        /// What the limit leaves.
        left: u64,
        /// What the driver answered.
        source: DriverError,
    },
    /// No pool has room, and none was made.
    NoPool {
        /// Sets that the smallest pool that would do holds.
        sets: u32,
        /// What each of them holds.
        counts: DescriptorCounts,
        /// Why not.
        source: CreateDescriptorPoolError,
    },
    /// A pool that was made for these sets gave none.
    FreshPoolRefused {
        /// What each set holds.
        counts: DescriptorCounts,
        /// What the driver answered.
        source: DriverError,
    },
    /// `vkAllocateDescriptorSets` failed for another reason than that the pool is exhausted.
    Driver {
        /// What each set holds.
        counts: DescriptorCounts,
        /// What the driver answered.
        source: DriverError,
    },
    /// There are 2^32 sets of this kind.
    TooManySets,
    /// The host has no memory for so many sets at once. No pool was made.
    HostMemory {
        /// Sets that were asked for.
        sets: u32,
    },
}

impl fmt::Display for AllocateDescriptorSetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotForSets { flags } => write!(f, "there are no sets of a layout with {flags:?}"),
            Self::NoVariableBinding { asked } => {
                write!(f, "a variable count of {asked} was given, and no binding of the layout has one")
            }
            Self::VariableCountTooHigh { asked, most } => {
                write!(f, "{asked} descriptors were asked for, and the layout has {most}")
            }
            Self::UpdateAfterBindLimit { needed, left, source } => write!(
                f,
                "{needed} descriptors that are updated after they are bound: the limit of the device leaves {left}, and \
                 {source}"
            ),
            Self::NoPool { sets, counts, source } => {
                write!(f, "no pool was made for {sets} sets of {counts} each: {source}")
            }
            Self::FreshPoolRefused { counts, source } => {
                write!(f, "a new pool refused the first set that it was made for, of {counts}: {source}")
            }
            Self::Driver { counts, source } => {
                write!(f, "the driver did not allocate a descriptor set of {counts}: {source}")
            }
            Self::TooManySets => f.write_str("2^32 descriptor sets of this kind are there already"),
            Self::HostMemory { sets } => {
                write!(f, "the host has no memory for {sets} descriptor sets at once")
            }
        }
    }
}

impl Error for AllocateDescriptorSetError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::NoPool { source, .. } => source.source(),
            Self::UpdateAfterBindLimit { source, .. }
            | Self::FreshPoolRefused { source, .. }
            | Self::Driver { source, .. } => source.source(),
            _ => None,
        }
    }
}
