//! What to defragment and how, and what came of it.
#![forbid(unsafe_code)]

use std::error::Error;
use std::fmt;
use std::time::Duration;

use crate::allocation::AllocationId;
use crate::error::{ForeignHandle, MapError};
use crate::pool::Pool;

/// How much is moved for how little.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub enum DefragmentationAlgorithm {
    /// Moves only what empties a block, so that nothing is copied for a block that stays. Where there is one block it
    /// moves as [`Self::Full`] does.
    Fast,
    /// Also makes fuller blocks fuller, and moves allocations down in their blocks where they stand in the way of free
    /// ranges that are about as large as themselves.
    #[default]
    Balanced,
    /// Moves everything that can go into a fuller block or further down in its own.
    Full,
    /// As [`Self::Full`], where `bufferImageGranularity` is 1. Else images are moved before buffers and those before
    /// the rest, so that each kind has neighbours of its kind.
    Extensive,
}

#[cfg(feature = "trace")]
impl DefragmentationAlgorithm {
    /// All, in the order of the numbers that a trace has for them.
    pub(crate) const ALL: [Self; 4] = [Self::Fast, Self::Balanced, Self::Full, Self::Extensive];

    /// The number that a trace has for it: where it is in [`Self::ALL`].
    pub(crate) const fn number(self) -> u32 {
        match self {
            Self::Fast => 0,
            Self::Balanced => 1,
            Self::Full => 2,
            Self::Extensive => 3,
        }
    }
}

/// What a context for defragmentation works on, and how much it does at a time.
///
/// ```
/// use std::time::Duration;
/// use sublet::{DefragmentationAlgorithm, DefragmentationInfo};
///
/// let gentle = DefragmentationInfo {
///     algorithm: DefragmentationAlgorithm::Fast,
///     max_bytes_per_pass: 16 << 20,
///     max_time_per_pass: Some(Duration::from_micros(200)),
///     ..Default::default()
/// };
/// assert!(gentle.pools.is_empty(), "the default vectors");
/// ```
#[derive(Clone, Copy, Default)]
pub struct DefragmentationInfo<'a> {
    /// See [`DefragmentationAlgorithm`].
    pub algorithm: DefragmentationAlgorithm,
    /// The custom pools to work on. If there are none, and no [`Self::memory_type_bits`], all default memory is worked
    /// on.
    pub pools: &'a [&'a Pool],
    /// A bit for each memory type of which the default memory is to be worked on, besides the pools.
    pub memory_type_bits: u32,
    /// The most bytes that a pass moves; 0 means no limit. What is larger is never moved.
    pub max_bytes_per_pass: u64,
    /// The most allocations that a pass moves; 0 means no limit.
    pub max_allocations_per_pass: u32,
    /// After this long no further move is planned in a pass, if there is one. The time that the program takes to copy
    /// does not count.
    pub max_time_per_pass: Option<Duration>,
    /// Asked before each move that might be planned, with no lock held: `true` ends the pass.
    pub break_callback: Option<&'a dyn Fn() -> bool>,
}

impl fmt::Debug for DefragmentationInfo<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DefragmentationInfo")
            .field("algorithm", &self.algorithm)
            .field("pools", &self.pools)
            .field("memory_type_bits", &self.memory_type_bits)
            .field("max_bytes_per_pass", &self.max_bytes_per_pass)
            .field("max_allocations_per_pass", &self.max_allocations_per_pass)
            .field("max_time_per_pass", &self.max_time_per_pass)
            .field("break_callback", &self.break_callback.is_some())
            .finish()
    }
}

/// What the blocks of a memory type or pool were like; dedicated memory is not in it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct DefragmentationExtent {
    /// Blocks.
    pub block_count: u64,
    /// Bytes of the blocks.
    pub block_bytes: u64,
    /// The largest allocation in bytes that there is room for without a further block.
    pub largest_free_range: u64,
}

/// What the memory of one type, or one pool, gained. What other threads did meanwhile is in it too.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub struct DefragmentationGain {
    /// Index of the memory type.
    pub memory_type_index: u32,
    /// Whether it is a custom pool. Pools are in the order of [`DefragmentationInfo::pools`], and behind the default
    /// memory.
    pub is_pool: bool,
    /// When the context began.
    pub before: DefragmentationExtent,
    /// When it ended.
    pub after: DefragmentationExtent,
}

/// What came of it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct DefragmentationStatistics {
    /// Bytes of the moves that were completed.
    pub bytes_moved: u64,
    /// Bytes of the blocks that went back to the driver.
    pub bytes_freed: u64,
    /// Moves that were completed.
    pub allocations_moved: u64,
    /// Blocks that went back to the driver.
    pub blocks_freed: u64,
    /// Before and after, of each memory type and pool.
    pub gains: Vec<DefragmentationGain>,
}

/// Why a move was not completed, or its allocation not freed. Nothing was changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum MoveError {
    /// The allocation is not the one that is moved.
    WrongAllocation {
        /// The one that is moved.
        moved: AllocationId,
        /// The one that was given.
        given: AllocationId,
    },
    /// Its pool was destroyed, or it was freed.
    Foreign(ForeignHandle),
    /// It is persistently mapped, and its new place cannot be.
    Map(MapError),
}

impl fmt::Display for MoveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WrongAllocation { moved, given } => {
                write!(f, "the move is of allocation {moved}, and not of {given}")
            }
            Self::Foreign(error) => write!(f, "what is moved is gone: {error}"),
            Self::Map(error) => write!(f, "the destination cannot be mapped: {error}"),
        }
    }
}

impl Error for MoveError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::WrongAllocation { .. } | Self::Foreign(_) => None,
            Self::Map(error) => error.source(),
        }
    }
}
