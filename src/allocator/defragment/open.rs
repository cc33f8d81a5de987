//! A context as an owned value: the C interface holds it between calls, and [`Defragmentation`](super::Defragmentation)
//! wraps it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use super::super::Allocator;
use super::super::recorded_call::{Outcome, RecordedCall};
use crate::allocation::{Allocation, AllocationId, allocation_flags};
use crate::blocks::{
    BeginVectorError, Effort, Emptied, Extent, MemoryBlockVector, PassBudget, Planned, VectorCompaction,
};
use crate::defragment::{
    DefragmentationAlgorithm, DefragmentationExtent, DefragmentationGain, DefragmentationInfo,
    DefragmentationStatistics, MoveError,
};
use crate::error::{BeginDefragmentationError, ForeignHandle, MapError};
use sublet_engines::cast::narrow;

/// One vector of a context.
#[derive(Debug)]
struct OpenVector {
    vector: u32,
    memory_type: u32,
    is_pool: bool,
    before: Extent,
    compaction: VectorCompaction,
}

/// The results so far. Atomic, because moves are resolved through shared references.
#[derive(Debug, Default)]
struct DefragmentationTally {
    bytes_moved: AtomicU64,
    bytes_freed: AtomicU64,
    allocations_moved: AtomicU64,
    blocks_freed: AtomicU64,
    /// True if a move of the last pass was completed, ignored or freed.
    has_resolved: AtomicBool,
    /// A pass has begun and not ended.
    has_pass: AtomicBool,
}

impl DefragmentationTally {
    fn emptied(&self, emptied: Emptied) {
        self.bytes_freed.fetch_add(emptied.bytes, Ordering::Relaxed);
        self.blocks_freed.fetch_add(emptied.blocks, Ordering::Relaxed);
    }

    fn resolved(&self) {
        self.has_resolved.store(true, Ordering::Relaxed);
    }
}

/// A context. It must be passed to `close_defragmentation`.
#[derive(Debug)]
#[must_use]
pub struct OpenDefragmentation {
    /// Its number in a trace.
    number: u32,
    vectors: Vec<OpenVector>,
    max_bytes: u64,
    max_moves: u32,
    max_time: Option<Duration>,
    /// The number of moves of the last pass.
    planned: usize,
    tally: DefragmentationTally,
}

/// A move and its vector. It must be completed, ignored, freed or rolled back, once.
#[derive(Debug)]
#[must_use]
#[doc(hidden)]
pub struct PlannedAllocationMove {
    pub(crate) vector: u32,
    pub(crate) memory_type: u32,
    pub(crate) allocator: u32,
    pub(crate) planned: Planned,
}

impl PlannedAllocationMove {
    /// The allocation of the move.
    #[doc(hidden)]
    pub fn source(&self) -> AllocationId {
        let source = self.planned.source;
        AllocationId {
            allocator: self.allocator,
            vector: self.vector,
            generation: source.generation,
            shard: source.shard,
            dedicated: false,
            key: source.key.0,
        }
    }

    /// The destination as an allocation like `source`, for binding and mapping. It must not be freed, and must not be
    /// used after the move is resolved.
    #[allow(dead_code, reason = "for the C interface")]
    #[doc(hidden)]
    pub fn destination(&self, source: &Allocation) -> Allocation {
        Allocation {
            memory: self.planned.memory,
            offset: self.planned.offset,
            size: source.size,
            mapped: self.planned.mapped,
            user_data: 0,
            key: self.planned.key,
            vector: self.vector,
            generation: self.planned.source.generation,
            allocator: self.allocator,
            memory_type: source.memory_type,
            flags: source.flags,
            shard: 0,
        }
    }
}

fn effort(algorithm: DefragmentationAlgorithm) -> Effort {
    match algorithm {
        DefragmentationAlgorithm::Fast => Effort::Fast,
        DefragmentationAlgorithm::Balanced => Effort::Balanced,
        DefragmentationAlgorithm::Full => Effort::Full,
        DefragmentationAlgorithm::Extensive => Effort::Extensive,
    }
}

impl From<Extent> for DefragmentationExtent {
    fn from(extent: Extent) -> Self {
        let Extent { blocks, block_bytes, largest_free } = extent;
        Self { block_count: blocks, block_bytes, largest_free_range: largest_free }
    }
}

impl Allocator {
    /// Begins a context. Does not keep the break callback of `info`: [`Self::plan_moves`] takes one each time.
    pub(crate) fn open_defragmentation(
        &self,
        info: &DefragmentationInfo<'_>,
    ) -> Result<OpenDefragmentation, BeginDefragmentationError> {
        let all = info.pools.is_empty() && info.memory_type_bits == 0;
        let mut open = OpenDefragmentation {
            number: self.next_defragmentation(),
            vectors: Vec::new(),
            max_bytes: info.max_bytes_per_pass,
            max_moves: info.max_allocations_per_pass,
            max_time: info.max_time_per_pass,
            planned: 0,
            tally: DefragmentationTally::default(),
        };
        let types = narrow(self.inner.context.device.memory_types().len());
        let wanted = |&memory_type: &u32| all || info.memory_type_bits >> memory_type & 1 == 1;
        let defaults = (0..types).filter(wanted).map(|memory_type| (memory_type, memory_type, None));
        let pools = info.pools.iter().map(|pool| {
            let known = pool.allocator == self.inner.id;
            let vector = if known { pool.facts.vector } else { u32::MAX };
            (vector, pool.facts.config.memory_type, Some(pool.generation))
        });
        for (vector, memory_type, generation) in defaults.chain(pools) {
            let is_pool = generation.is_some();
            let foreign = BeginVectorError::Gone;
            let begun = self.inner.vector(vector).ok_or(foreign).and_then(|blocks| {
                let before = blocks.extent();
                let compaction =
                    blocks.begin_compaction(&self.inner.context, generation, effort(info.algorithm))?;
                Ok(OpenVector { vector, memory_type, is_pool, before, compaction })
            });
            match begun {
                Ok(begun) => open.vectors.push(begun),
                Err(error) => {
                    self.let_go(&open);
                    return Err(match error {
                        BeginVectorError::Gone => BeginDefragmentationError::Foreign(ForeignHandle::Pool),
                        BeginVectorError::Algorithm(algorithm) => {
                            BeginDefragmentationError::Algorithm { algorithm }
                        }
                        BeginVectorError::InProgress => {
                            BeginDefragmentationError::InProgress { memory_type, is_pool }
                        }
                    });
                }
            }
        }
        tracing::debug!(
            name: "defragmentation_begun", target: "sublet::defragment",
            algorithm = ?info.algorithm, vectors = open.vectors.len(),
            "defragmentation begins"
        );
        self.record(RecordedCall::BeginDefragmentation(open.number, info));
        Ok(open)
    }

    /// Ends the compaction of all vectors.
    fn let_go(&self, open: &OpenDefragmentation) {
        for open in &open.vectors {
            if let Some(vector) = self.inner.vector(open.vector) {
                vector.end_compaction(&open.compaction);
            }
        }
    }

    /// Plans the moves of the next pass. Returns none if there is nothing to do, if `stop` ended the pass, or if the
    /// last pass had no effect. All moves of the previous pass must be resolved.
    pub(crate) fn plan_moves(
        &self,
        open: &mut OpenDefragmentation,
        stop: &mut dyn FnMut() -> bool,
    ) -> Vec<PlannedAllocationMove> {
        let span = tracing::debug_span!(target: "sublet::defragment", "plan_pass");
        let _entered = span.enter();
        self.end_pass(open);
        let has_resolved = open.tally.has_resolved.swap(false, Ordering::Relaxed);
        if open.planned != 0 && !has_resolved {
            self.record(RecordedCall::BeginPass(open.number, 0));
            return Vec::new();
        }
        let mut budget = PassBudget::new(open.max_bytes, open.max_moves, open.max_time, stop);
        let mut moves = Vec::new();
        for open in &mut open.vectors {
            let Some(vector) = self.inner.vector(open.vector) else { continue };
            let mut planned = Vec::new();
            vector.plan(&self.inner.context, &mut open.compaction, &mut budget, &mut planned);
            let (vector, memory_type, allocator) = (open.vector, open.memory_type, self.inner.id);
            let planned = planned.into_iter();
            moves.extend(planned.map(|planned| PlannedAllocationMove {
                vector,
                memory_type,
                allocator,
                planned,
            }));
        }
        open.planned = moves.len();
        tracing::debug!(
            name: "defragmentation_pass", target: "sublet::defragment",
            moves = moves.len(), bytes = moves.iter().map(|planned| planned.planned.size).sum::<u64>(),
            "a pass is planned"
        );
        open.tally.has_pass.store(open.planned != 0, Ordering::Relaxed);
        self.record(RecordedCall::BeginPass(open.number, narrow(open.planned)));
        moves
    }

    /// Completes a pass after all its moves are resolved: returns unused ranges of shards, which may free blocks.
    pub(crate) fn end_pass(&self, open: &OpenDefragmentation) {
        if open.planned != 0 {
            for open_vector in &open.vectors {
                if let Some(vector) = self.inner.vector(open_vector.vector) {
                    open.tally.emptied(vector.tidy(&self.inner.context, &open_vector.compaction));
                }
            }
        }
        if open.tally.has_pass.swap(false, Ordering::Relaxed) {
            self.record(RecordedCall::EndPass(open.number));
        }
    }

    fn vector_of_move(&self, planned: &PlannedAllocationMove) -> Result<&MemoryBlockVector, MoveError> {
        self.inner.vector(planned.vector).ok_or(MoveError::Foreign(ForeignHandle::Allocation))
    }

    fn check_move(planned: &PlannedAllocationMove, allocation: &Allocation) -> Result<(), MoveError> {
        let (moved, given) = (planned.source(), allocation.id());
        if moved == given { Ok(()) } else { Err(MoveError::WrongAllocation { moved, given }) }
    }

    /// Completes a move: `allocation` gets its new place, and the old one is freed. `users` is the number of users of
    /// its mapping that move with it, besides the persistent one. The device must not use the memory.
    pub(crate) fn complete_move(
        &self,
        open: &OpenDefragmentation,
        planned: &PlannedAllocationMove,
        allocation: &mut Allocation,
        users: u64,
    ) -> Result<(), MoveError> {
        Self::check_move(planned, allocation)?;
        let persistent = allocation.has(allocation_flags::MAPPED);
        let vector = self.vector_of_move(planned)?;
        let is_watched = allocation.has(allocation_flags::WATCHED);
        if is_watched {
            self.unguard(allocation);
        }
        let destination = AllocationId { shard: 0, key: planned.planned.key.0, ..planned.source() };
        // Before the move: afterwards the old place may be granted again.
        self.record_move(open, planned, Outcome::Completing(destination));
        let complete = || vector.complete(&self.inner.context, &planned.planned, persistent, users);
        let completed = self.inner.with_addresses(complete, |error| Some(error));
        let (grant, emptied) = completed.map_err(|error| {
            self.record_move(open, planned, Outcome::Failed(destination));
            if is_watched {
                self.guard(allocation);
            }
            match error {
                MapError::Foreign(error) => MoveError::Foreign(error),
                error => MoveError::Map(error),
            }
        })?;
        allocation.memory = grant.memory;
        allocation.offset = grant.offset;
        allocation.mapped = grant.mapped;
        allocation.key = grant.key;
        allocation.shard = grant.shard;
        if is_watched {
            self.guard(allocation);
        }
        let tally = &open.tally;
        tally.emptied(emptied);
        tally.bytes_moved.fetch_add(planned.planned.size, Ordering::Relaxed);
        tally.allocations_moved.fetch_add(1, Ordering::Relaxed);
        tally.resolved();
        Ok(())
    }

    /// Frees the destination, and excludes the source's block from further moves of this context.
    pub(crate) fn ignore_move(&self, open: &OpenDefragmentation, planned: &PlannedAllocationMove) {
        if let Some(vector) = self.inner.vector(planned.vector) {
            vector.let_stay(planned.planned.source);
        }
        // Before the free: afterwards the destination may be granted again.
        self.record_move(open, planned, Outcome::Ignored);
        self.give_back_destination(open, planned);
        open.tally.resolved();
    }

    /// Leaves the allocation in place.
    pub(crate) fn roll_back_move(&self, open: &OpenDefragmentation, planned: &PlannedAllocationMove) {
        self.record_move(open, planned, Outcome::RolledBack);
        self.give_back_destination(open, planned);
    }

    fn record_move(&self, open: &OpenDefragmentation, planned: &PlannedAllocationMove, outcome: Outcome) {
        self.record(RecordedCall::Move { defragmentation: open.number, source: planned.source(), outcome });
    }

    fn give_back_destination(&self, open: &OpenDefragmentation, planned: &PlannedAllocationMove) {
        if let Some(vector) = self.inner.vector(planned.vector) {
            open.tally.emptied(vector.roll_back(&self.inner.context, &planned.planned));
        }
    }

    /// Frees the allocation of the move, and the destination. `users` is the number of users of its mapping, which end
    /// with it.
    pub(crate) fn free_move(
        &self,
        open: &OpenDefragmentation,
        planned: &PlannedAllocationMove,
        allocation: &Allocation,
        users: u64,
    ) -> Result<(), MoveError> {
        Self::check_move(planned, allocation)?;
        self.record_move(open, planned, Outcome::Freeing);
        if allocation.has(allocation_flags::WATCHED) {
            self.unwatch(allocation);
        }
        let persistent = allocation.has(allocation_flags::MAPPED);
        let vector = self.vector_of_move(planned)?;
        let freed = vector.free_moved(&self.inner.context, planned.planned.source, persistent, users);
        open.tally.emptied(freed.map_err(MoveError::Foreign)?);
        self.give_back_destination(open, planned);
        open.tally.resolved();
        Ok(())
    }

    /// The results so far.
    pub(crate) fn defragmentation_statistics(&self, open: &OpenDefragmentation) -> DefragmentationStatistics {
        let gain = |open: &OpenVector| {
            let after = self.inner.vector(open.vector).map(MemoryBlockVector::extent).unwrap_or_default();
            DefragmentationGain {
                memory_type_index: open.memory_type,
                is_pool: open.is_pool,
                before: open.before.into(),
                after: after.into(),
            }
        };
        DefragmentationStatistics {
            bytes_moved: open.tally.bytes_moved.load(Ordering::Relaxed),
            bytes_freed: open.tally.bytes_freed.load(Ordering::Relaxed),
            allocations_moved: open.tally.allocations_moved.load(Ordering::Relaxed),
            blocks_freed: open.tally.blocks_freed.load(Ordering::Relaxed),
            gains: open.vectors.iter().map(gain).collect(),
        }
    }

    /// Ends a context. All its moves must be resolved.
    pub(crate) fn close_defragmentation(&self, open: OpenDefragmentation) -> DefragmentationStatistics {
        self.end_pass(&open);
        let statistics = self.defragmentation_statistics(&open);
        self.let_go(&open);
        let DefragmentationStatistics { bytes_moved, bytes_freed, allocations_moved, blocks_freed, .. } =
            statistics;
        tracing::debug!(
            name: "defragmentation_ended", target: "sublet::defragment",
            bytes_moved, bytes_freed, allocations_moved, blocks_freed,
            "defragmentation ends"
        );
        self.record(RecordedCall::EndDefragmentation(open.number));
        statistics
    }
}
