//! Moving allocations so that blocks become empty, and free ranges large.
//!
//! A pass looks at the vector once (`picture.rs`), decides on that what should go where (`plan.rs`, with `ranges.rs`),
//! and sets each destination aside as a used chunk of the core (`place.rs`). The locks are held for the look and for
//! each destination, never while the program is asked whether to go on. What other threads do meanwhile may cost a
//! move, and nothing else: a destination that was taken is given up.
//!
//! Between planning and completion a move is two used chunks that know nothing of one another. Its source is its
//! owner's, who may free it; its destination belongs to whoever has the [`Planned`], who completes it or rolls it back.
#![forbid(unsafe_code)]

mod picture;
mod place;
mod plan;
mod ranges;

use std::time::{Duration, Instant};

use ash::vk;

use super::super::device_block::DeviceContext;
use super::super::mapped_pointer::MappedPointer;
use super::{Annotation, BlockVector, Live};
use crate::base::align::Alignment;
use crate::metadata::{Algorithm, Key, Metadata, Tag};

/// How many moves may not fit into what is left of a pass's bytes before the pass ends.
const SKIPS: u32 = 16;
/// How often a context may move each allocation that there was at its beginning, on average, and how many moves it may
/// make besides. It comes nowhere near, unless other threads undo what it does.
const MOVES_EACH: u64 = 8;
const MOVES_BESIDES: u64 = 1 << 10;

/// How much is moved for how little.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Effort {
    /// What empties a block.
    Fast,
    /// Also what makes fuller blocks fuller, and within a block where it pays.
    Balanced,
    /// Everything that can go further down.
    Full,
    /// As `Full`, images first, then buffers, then the rest, where they keep to granularity pages of their own.
    Extensive,
}

/// What a pass may still do.
pub(crate) struct PassBudget<'a> {
    /// What a pass may move at all, and what it may move yet.
    most_bytes: u64,
    bytes_left: u64,
    moves_left: u64,
    ends: Option<(Instant, Duration)>,
    skips_left: u32,
    has_planned: bool,
    is_over: bool,
    /// Whether the program wants the pass to end here.
    stop: &'a mut dyn FnMut() -> bool,
}

impl<'a> PassBudget<'a> {
    /// 0 bytes and 0 moves stand for no limit.
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

    /// Whether nothing more may be planned.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over
    }

    /// Whether a move of `size` bytes may be planned. Asked once for each candidate.
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

    /// Whether the time is up. A pass is never too short for one move.
    fn is_late(&self) -> bool {
        self.has_planned && self.ends.is_some_and(|(begun, time)| begun.elapsed() >= time)
    }

    /// A move of `size` bytes was planned.
    fn spend(&mut self, size: u64) {
        self.has_planned = true;
        self.bytes_left = self.bytes_left.saturating_sub(size);
        self.moves_left -= 1;
        self.is_over = self.is_over || self.moves_left == 0 || self.bytes_left == 0;
    }
}

/// What a context knows of one vector.
#[derive(Debug)]
pub(crate) struct Compaction {
    /// The use of the vector that it is for.
    generation: u32,
    effort: Effort,
    /// Nothing was left to do.
    is_done: bool,
    /// Moves that may be planned yet.
    moves_left: u64,
}

/// A move: from where the source lies to a destination that is set aside for it.
#[derive(Debug)]
#[must_use = "its destination is set aside until the move is completed or rolled back"]
pub(crate) struct Planned {
    pub(crate) source: Live,
    /// What the source lies in.
    pub(crate) source_memory: vk::DeviceMemory,
    /// Of the chunk that is set aside, in the core.
    pub(crate) key: Key,
    pub(crate) memory: vk::DeviceMemory,
    pub(crate) offset: u64,
    /// Bytes of both chunks.
    pub(crate) size: u64,
    pub(crate) tag: Tag,
    /// Where the destination is mapped, if the source's block is mapped. It counts as one user of the mapping then.
    pub(crate) mapped: MappedPointer,
    /// What is kept of the source.
    pub(crate) annotation: Annotation,
}

impl Planned {
    /// The destination.
    pub(crate) fn destination(&self) -> Live {
        Live { generation: self.source.generation, key: self.key, dedicated: false, shard: 0 }
    }
}

/// Blocks that went back to the driver.
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

/// Why a vector is not defragmented.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum BeginError {
    /// It is not in use, or not in this use.
    Gone,
    /// Its blocks are divided in a way in which nothing can be moved.
    Algorithm(Algorithm),
    /// Another context works on it.
    InProgress,
}

/// The blocks of a vector, without dedicated memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Extent {
    pub(crate) blocks: u64,
    pub(crate) block_bytes: u64,
    pub(crate) largest_free: u64,
}

impl BlockVector {
    /// Begins a context on this vector; `generation` of a pool.
    pub(crate) fn begin_compaction(
        &self,
        context: &DeviceContext,
        generation: Option<u32>,
        effort: Effort,
    ) -> Result<Compaction, BeginError> {
        let compaction = {
            let mut core = self.core.lock();
            let generation = generation.unwrap_or(core.generation);
            let active = core.use_of(generation).map_err(|_| BeginError::Gone)?;
            match active.config.algorithm {
                Algorithm::Tlsf => {}
                algorithm => return Err(BeginError::Algorithm(algorithm)),
            }
            if std::mem::replace(&mut active.is_compacted, true) {
                return Err(BeginError::InProgress);
            }
            active.blocks.iter_mut().flatten().for_each(|block| block.stays = false);
            let effort = match effort {
                Effort::Extensive if active.config.granularity == Alignment::ONE => Effort::Full,
                effort => effort,
            };
            Compaction { generation, effort, is_done: false, moves_left: 0 }
        };
        self.reclaim(context);
        let moves_left = self.totals().allocation_count.saturating_mul(MOVES_EACH);
        Ok(Compaction { moves_left: moves_left.saturating_add(MOVES_BESIDES), ..compaction })
    }

    /// Ends a context, all moves of which are completed or rolled back.
    pub(crate) fn end_compaction(&self, compaction: &Compaction) {
        if let Ok(active) = self.core.lock().use_of(compaction.generation) {
            active.is_compacted = false;
        }
    }

    /// What the blocks look like now.
    pub(crate) fn extent(&self) -> Extent {
        self.core.lock().active.as_ref().map_or(Extent::default(), |active| Extent {
            blocks: u64::from(active.block_count),
            block_bytes: active.block_bytes,
            largest_free: active.engine.largest_free(),
        })
    }
}
