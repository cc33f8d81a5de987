//! Moves allocations so that blocks become empty and free ranges become large.
//!
//! A pass takes a snapshot of the vector (`picture.rs`) and plans moves from it (`plan.rs`, with `ranges.rs`). It
//! reserves each destination as a used chunk of the core (`place.rs`). The locks are held for the snapshot and for each
//! reservation, never while the program decides whether to continue. Concurrent changes can only cost a move: a
//! destination that was taken is abandoned.
//!
//! Between planning and completion a move is two independent used chunks. The source belongs to its owner, who may free
//! it. The destination belongs to the holder of the [`Planned`], who completes it or rolls it back.

mod picture;
mod place;
mod plan;
mod ranges;

use std::time::{Duration, Instant};

use ash::vk;

use super::super::device_block::DeviceContext;
use super::super::mapped_pointer::MappedPointer;
use super::{AllocationKey, Annotation, MemoryBlockVector};
use crate::engine::Algorithm;
use sublet_engines::Alignment;
use sublet_engines::{Key, Metadata, Tag};

/// A pass ends after this many moves that did not fit into its remaining bytes.
const SKIPS: u32 = 16;
/// A context plans at most this many moves per initial allocation, plus [`MOVES_BESIDES`]. It only reaches the limit if
/// other threads undo its work.
const MOVES_EACH: u64 = 8;
const MOVES_BESIDES: u64 = 1 << 10;

/// How much to move for which gain.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Effort {
    /// Only moves that empty a block.
    Fast,
    /// Also moves allocations into fuller blocks, and within a block where it pays.
    Balanced,
    /// Also moves every allocation that can get a lower offset in its block.
    Full,
    /// As `Full`, but moves images first, then buffers, then the rest, if the granularity separates them.
    Extensive,
}

/// The remaining limits of a pass.
pub(crate) struct PassBudget<'a> {
    /// The byte limit of the pass, and the bytes that are left.
    most_bytes: u64,
    bytes_left: u64,
    moves_left: u64,
    ends: Option<(Instant, Duration)>,
    skips_left: u32,
    has_planned: bool,
    is_over: bool,
    /// Returns true if the program wants the pass to end here.
    stop: &'a mut dyn FnMut() -> bool,
}

impl<'a> PassBudget<'a> {
    /// 0 bytes or 0 moves mean no limit.
    pub(crate) fn new(
        bytes: u64,
        moves: u32,
        time: Option<Duration>,
        stop: &'a mut dyn FnMut() -> bool,
    ) -> Self {
        let bytes = if bytes == 0 { u64::MAX } else { bytes };
        Self {
            most_bytes: bytes,
            bytes_left: bytes,
            moves_left: if moves == 0 { u64::MAX } else { u64::from(moves) },
            ends: time.map(|time| (Instant::now(), time)),
            skips_left: SKIPS,
            has_planned: false,
            is_over: false,
            stop,
        }
    }

    /// Returns true if nothing more may be planned.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over
    }

    /// Returns true if a move of `size` bytes may be planned. Called once for each candidate.
    fn admits(&mut self, size: u64) -> bool {
        self.is_over = self.is_over || self.is_late() || (self.stop)();
        if self.is_over {
            return false;
        }
        if size > self.bytes_left {
            self.skips_left -= 1;
            self.is_over = self.skips_left == 0;
            return false;
        }
        true
    }

    /// Returns true if the time is up. A pass always gets one move.
    fn is_late(&self) -> bool {
        self.has_planned && self.ends.is_some_and(|(begun, time)| begun.elapsed() >= time)
    }

    /// Counts a planned move of `size` bytes.
    fn spend(&mut self, size: u64) {
        self.has_planned = true;
        self.bytes_left = self.bytes_left.saturating_sub(size);
        self.moves_left -= 1;
        self.is_over = self.is_over || self.moves_left == 0 || self.bytes_left == 0;
    }
}

/// The state of a context for one vector.
#[derive(Debug)]
pub(crate) struct VectorCompaction {
    /// The use of the vector to which it belongs.
    generation: u32,
    effort: Effort,
    /// True if the last pass found nothing to do.
    is_done: bool,
    /// The moves that may still be planned.
    moves_left: u64,
}

/// A move from a source to a reserved destination.
#[derive(Debug)]
#[must_use = "its destination is set aside until the move is completed or rolled back"]
pub(crate) struct Planned {
    pub(crate) source: AllocationKey,
    /// The memory that holds the source.
    pub(crate) source_memory: vk::DeviceMemory,
    /// The key of the reserved chunk in the core.
    pub(crate) key: Key,
    pub(crate) memory: vk::DeviceMemory,
    pub(crate) offset: u64,
    /// Bytes of both chunks.
    pub(crate) size: u64,
    pub(crate) tag: Tag,
    /// The address at which the destination is mapped, if the source's block is mapped. The move then counts as one
    /// user of the mapping.
    pub(crate) mapped: MappedPointer,
    /// The annotation of the source.
    pub(crate) annotation: Annotation,
}

impl Planned {
    /// The destination.
    pub(crate) fn destination(&self) -> AllocationKey {
        AllocationKey { generation: self.source.generation, key: self.key, dedicated: false, shard: 0 }
    }
}

/// Blocks that were freed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Emptied {
    pub(crate) blocks: u64,
    pub(crate) bytes: u64,
}

impl Emptied {
    pub(crate) fn add(&mut self, other: Self) {
        self.blocks += other.blocks;
        self.bytes += other.bytes;
    }
}

/// The reason why a vector cannot be defragmented.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum BeginVectorError {
    /// The vector is not in use, or `generation` does not match.
    Gone,
    /// Its algorithm does not support moves.
    Algorithm(Algorithm),
    /// Another context is active on it.
    InProgress,
}

/// The blocks of a vector, without dedicated memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Extent {
    pub(crate) blocks: u64,
    pub(crate) block_bytes: u64,
    pub(crate) largest_free: u64,
}

impl MemoryBlockVector {
    /// Begins a context on this vector. Pools pass their `generation`.
    pub(crate) fn begin_compaction(
        &self,
        context: &DeviceContext,
        generation: Option<u32>,
        effort: Effort,
    ) -> Result<VectorCompaction, BeginVectorError> {
        let compaction = {
            let mut core = self.core.lock();
            let generation = generation.unwrap_or(core.generation);
            let active = core.use_of(generation).map_err(|_| BeginVectorError::Gone)?;
            match active.config.algorithm {
                Algorithm::Tlsf => {}
                algorithm => return Err(BeginVectorError::Algorithm(algorithm)),
            }
            if std::mem::replace(&mut active.is_compacted, true) {
                return Err(BeginVectorError::InProgress);
            }
            // Empty blocks do not wait for maintenance while the vector is compacted.
            active.heeds_below = u64::MAX;
            active.blocks.iter_mut().flatten().for_each(|block| block.stays = false);
            let effort = match effort {
                Effort::Extensive if active.config.granularity == Alignment::ONE => Effort::Full,
                effort => effort,
            };
            VectorCompaction { generation, effort, is_done: false, moves_left: 0 }
        };
        self.reclaim(context);
        let moves_left = self.totals().allocation_count.saturating_mul(MOVES_EACH);
        Ok(VectorCompaction { moves_left: moves_left.saturating_add(MOVES_BESIDES), ..compaction })
    }

    /// Ends a context after all its moves are completed or rolled back.
    pub(crate) fn end_compaction(&self, compaction: &VectorCompaction) {
        if let Ok(active) = self.core.lock().use_of(compaction.generation) {
            active.is_compacted = false;
        }
    }

    /// The current size of the blocks and of the largest free range.
    pub(crate) fn extent(&self) -> Extent {
        self.core.lock().active.as_ref().map_or(Extent::default(), |active| Extent {
            blocks: u64::from(active.block_count),
            block_bytes: active.block_bytes,
            largest_free: active.engine.largest_free(),
        })
    }
}
