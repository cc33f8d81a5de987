//! The settings, results and errors of a defragmentation.

use std::fmt;
use std::time::Duration;

use crate::allocation::AllocationId;
use crate::error::{ForeignHandle, MapError};
use crate::pool::Pool;

/// The effort of a defragmentation: more moves for more gain.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub enum DefragmentationAlgorithm {
    /// Moves only allocations that empty a block, so that nothing is copied for a block that stays. With a single
    /// block, it moves as [`Self::Full`] does.
    Fast,
    /// Also fills fuller blocks further. Moves allocations down in their blocks if that joins free ranges of about
    /// their own size.
    #[default]
    Balanced,
    /// Moves every allocation that fits into a fuller block or further down in its own.
    Full,
    /// Like [`Self::Full`] if `bufferImageGranularity` is 1. Otherwise moves images before buffers and buffers before
    /// the rest, so that each kind has neighbours of its kind.
    Extensive,
}

#[cfg(feature = "trace")]
impl DefragmentationAlgorithm {
    /// All algorithms, in the order of their numbers in a trace.
    pub(crate) const ALL: [Self; 4] = [Self::Fast, Self::Balanced, Self::Full, Self::Extensive];

    /// Its number in a trace: its index in [`Self::ALL`].
    pub(crate) const fn number(self) -> u32 {
        match self {
            Self::Fast => 0,
            Self::Balanced => 1,
            Self::Full => 2,
            Self::Extensive => 3,
        }
    }
}

/// The scope of a defragmentation, and the limits of a pass.
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
    /// The custom pools to work on. Without pools and [`Self::memory_type_bits`], it works on all default memory.
    pub pools: &'a [&'a Pool],
    /// A bit for each memory type whose default memory to defragment, in addition to the pools.
    pub memory_type_bits: u32,
    /// The maximum number of bytes that a pass moves; 0 means no limit. A larger allocation is never moved.
    pub max_bytes_per_pass: u64,
    /// The maximum number of allocations that a pass moves; 0 means no limit.
    pub max_allocations_per_pass: u32,
    /// The time limit for planning a pass. A pass always plans one move. The time of the program's copies does not
    /// count.
    pub max_time_per_pass: Option<Duration>,
    /// Called before each candidate move, with no lock held: `true` ends the pass.
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

/// The blocks of a memory type or pool at one moment, without dedicated memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct DefragmentationExtent {
    /// The number of blocks.
    pub block_count: u64,
    /// Bytes of the blocks.
    pub block_bytes: u64,
    /// The largest allocation in bytes that fits without a further block.
    pub largest_free_range: u64,
}

/// The memory of one type or pool before and after. Changes by other threads are included.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub struct DefragmentationGain {
    /// Index of the memory type.
    pub memory_type_index: u32,
    /// True for a custom pool. Pools follow the default memory, in the order of [`DefragmentationInfo::pools`].
    pub is_pool: bool,
    /// When the defragmentation began.
    pub before: DefragmentationExtent,
    /// When it ended.
    pub after: DefragmentationExtent,
}

/// The results of a defragmentation.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct DefragmentationStatistics {
    /// Bytes of the moves that were completed.
    pub bytes_moved: u64,
    /// Bytes of the freed blocks.
    pub bytes_freed: u64,
    /// Moves that were completed.
    pub allocations_moved: u64,
    /// Blocks that were freed.
    pub blocks_freed: u64,
    /// The extents of each memory type and pool, before and after.
    pub gains: Vec<DefragmentationGain>,
}

/// The reason why a move was not completed, or its allocation was not freed. Nothing was changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum MoveError {
    /// The given allocation is not the one of the move.
    WrongAllocation {
        /// The allocation of the move.
        moved: AllocationId,
        /// The given allocation.
        given: AllocationId,
    },
    /// The allocation was freed, or its pool was destroyed.
    Foreign(ForeignHandle),
    /// The allocation is persistently mapped, and its destination cannot be mapped.
    Map(MapError),
}

sublet_engines::errors! { MoveError:
    WrongAllocation { moved, given } => "the move is of allocation {moved}, and not of {given}";
    Foreign(error) => "what is moved is gone: {error}";
    Map(error) => "the destination cannot be mapped: {error}";
}
