//! Playing a trace on an allocator.

mod hands;
mod latencies;
mod moves;
mod placements;
mod play;
mod pools;
mod report;
#[cfg(feature = "sim")]
mod simulated;
#[cfg(all(test, feature = "sim"))]
#[cfg(not(loom))]
mod tests;
mod translate;

use std::collections::BTreeMap;
use std::fmt;

pub use latencies::Latencies;
pub use report::{CallKind, CallReport, Extremes, Footprint, FreeRanges, ReplayReport};

use super::{AllocationNumber, PoolNumber, Record, Trace};
use crate::allocation::{Allocation, AllocationInfo};
use crate::allocator::Allocator;
use crate::allocator::defragment::{OpenDefragmentation, PlannedMove};
use crate::base::sync::{Shared, Threading};
use crate::pool::{Pool, Scope};
use placements::Placements;
use translate::Translation;

/// Whom memory ends with.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Owner {
    Nobody,
    Pool(u32),
    Scope(u32),
}

/// An allocation of the trace, as it is here.
#[derive(Debug)]
struct Held {
    allocation: Allocation,
    owner: Owner,
    /// Open mappings.
    mappings: u32,
}

/// A defragmentation, and the moves of its pass that are not resolved.
#[derive(Debug)]
struct Context {
    open: OpenDefragmentation,
    moves: Vec<PlannedMove>,
}

/// A pool of a trace, as it is here: see [`Replay::pool`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct ReplayedPool {
    /// The number that a [`MemoryMap`](crate::MemoryMap) shows it under.
    pub number: u32,
    /// Index of its memory type.
    pub memory_type_index: u32,
    /// Bytes of a block; the most of them if the allocator manages the sizes.
    pub block_size: u64,
}

/// Plays a trace on an allocator: asks it for what the recorded program asked its own for, in the recorded order, on
/// one thread and as fast as it can, and measures.
///
/// No buffers and images are made: allocations are asked for by the requirements, the kind and the usage that were
/// recorded, so that they come out of the same decisions. Nothing is written into memory.
///
/// On an allocator like the recorded one, on a device like it ([`Header::simulated`](super::Header::simulated)),
/// allocations of a recording of one thread lie where they lay. What can differ is told in the [`ReplayReport`]:
///
/// - **Another device.** A mask of memory types is translated: a type becomes those here that have the most of its
///   flags in common, and the fewest others; all types become all. If no type of a mask was one of the recording, all
///   are taken.
/// - **Calls that failed** when they were recorded are made again. If an allocation is granted here after all, it is
///   freed at once. Other calls that failed are not in a trace.
/// - **What is not here**, because it was refused here, is passed over, with all that is done to it, and counted.
/// - **Several threads** were served by several parts of a block list, of which one thread sees one. What threads
///   settled in is left out, unless the recording has one thread.
/// - **Defragmentation** plans anew. Of each pass as many moves are done as there were, without the limits on time and
///   the callback that there may have been; each as it was resolved, and what was not planned then is rolled back.
/// - **Copies** in and out of memory map, flush or invalidate, and unmap; the bytes are not touched.
/// - **Chains** for `VkMemoryAllocateInfo` are not in a trace, and memory that had one is ordinary memory here.
/// - **What lived before** the recording began is allocated first, one after the other: its places are not the old
///   ones.
///
/// ```
/// # use sublet::*; use sublet::trace::*;
/// # let mesh = Existing { size: 4096, alignment: 256, ..Existing::new(AllocationNumber(0)) };
/// # let event = Event::Existing(Box::new(mesh));
/// # let bytes = Trace { records: vec![Record { event, ..Record::default() }], ..Trace::default() }.to_bytes();
/// // Of a file that some program recorded.
/// let trace = Trace::read(&bytes)?;
/// let gpu = trace.header.simulated().build();
/// // SAFETY: instance and device are live, and outlive the allocator.
/// let allocator = unsafe { Allocator::new(&trace.header.create_info(&gpu)) }?;
/// let mut replay = Replay::new(&trace, &allocator);
/// while let Some(record) = replay.step() {
///     println!("{:?}: {:?}", record.time, record.event);
/// }
/// let report = replay.finish();
/// assert_eq!((report.call(CallKind::Allocate).made, report.memory.peak_used_bytes), (1, 4096));
/// assert_eq!(allocator.statistics().allocation_count, 0, "nothing is left");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "dropping it frees everything that it has made"]
pub struct Replay<'a, T: Threading = Shared> {
    trace: &'a Trace,
    allocator: &'a Allocator<T>,
    /// The index of the record that is next.
    next: usize,
    translation: Translation,
    /// Whether the recording is of one thread.
    is_single: bool,
    live: BTreeMap<u32, Held>,
    pools: BTreeMap<u32, Pool>,
    scopes: BTreeMap<u32, Scope>,
    /// The allocations that were made in a pool or scope, in order; some of them may be gone.
    members: BTreeMap<Owner, Vec<u32>>,
    contexts: BTreeMap<u32, Context>,
    placements: Placements,
    report: ReplayReport,
}

impl<'a, T: Threading> Replay<'a, T> {
    /// Begins. Nothing is called yet. What the allocator has allocated already stays as it is, and counts in the
    /// figures of memory.
    pub fn new(trace: &'a Trace, allocator: &'a Allocator<T>) -> Self {
        let heaps = allocator.heap_statistics().len();
        let report = ReplayReport {
            calls: vec![CallReport::default(); CallKind::ALL.len()],
            heaps: vec![Extremes::default(); heaps],
            ..ReplayReport::default()
        };
        let mut replay = Self {
            trace,
            allocator,
            next: 0,
            translation: Translation::new(&trace.header, &allocator.memory_properties()),
            is_single: trace.records.iter().all(|record| record.thread == trace.records[0].thread),
            live: BTreeMap::new(),
            pools: BTreeMap::new(),
            scopes: BTreeMap::new(),
            members: BTreeMap::new(),
            contexts: BTreeMap::new(),
            placements: Placements::new(),
            report,
        };
        replay.look();
        replay
    }

    /// Replays the next record, and answers with it; `None` at the end.
    pub fn step(&mut self) -> Option<&'a Record> {
        let trace = self.trace;
        let record = trace.records.get(self.next)?;
        self.next += 1;
        self.report.events += 1;
        self.play(&record.event);
        self.report.placements = self.placements.digest();
        Some(record)
    }

    /// How many records there are still to be replayed.
    #[must_use]
    pub fn remaining(&self) -> usize {
        self.trace.records.len() - self.next
    }

    /// An allocation of the trace, if it lives here now.
    ///
    /// Only facts, since the next step may free it: an [`Allocation`] that is lent could be mapped, and written to
    /// afterwards.
    ///
    /// ```compile_fail,E0308
    /// # use sublet::*; use sublet::trace::*;
    /// fn misuse(replay: &Replay<'_>) -> Option<&Allocation> {
    ///     replay.allocation(AllocationNumber(0))
    /// }
    /// ```
    #[must_use]
    pub fn allocation(&self, number: AllocationNumber) -> Option<AllocationInfo> {
        let held = self.live.get(&number.0)?;
        self.allocator.allocation_info(&held.allocation).ok()
    }

    /// A pool of the trace, if it is here now.
    ///
    /// Only facts, since the next step may destroy it with all that is in it: nobody else can allocate in it.
    ///
    /// ```compile_fail,E0308
    /// # use sublet::*; use sublet::trace::*;
    /// fn misuse(replay: &Replay<'_>) -> Option<&Pool> {
    ///     replay.pool(PoolNumber(0))
    /// }
    /// ```
    #[must_use]
    pub fn pool(&self, number: PoolNumber) -> Option<ReplayedPool> {
        self.pools.get(&number.0).map(|pool| ReplayedPool {
            number: pool.number(),
            memory_type_index: pool.memory_type_index(),
            block_size: pool.block_size(),
        })
    }

    /// What came of it so far. Free memory is not looked at before [`Self::finish`].
    #[must_use]
    pub fn report(&self) -> &ReplayReport {
        &self.report
    }

    /// Replays what is left, says what came of it, and frees everything that was made. Look at the allocator before
    /// that to see what the program left: after the last [`Self::step`].
    pub fn finish(mut self) -> ReplayReport {
        while self.step().is_some() {}
        let all = self.allocator.calculate_statistics();
        let mut ranges = FreeRanges { count: all.total.unused_range_count, ..FreeRanges::default() };
        if ranges.count > 0 {
            ranges.bytes = all.total.statistics.unused_bytes();
            ranges.largest_bytes = all.total.unused_range_size_max;
        }
        self.report.free_ranges = ranges;
        std::mem::take(&mut self.report)
    }
}

impl<T: Threading> Drop for Replay<'_, T> {
    fn drop(&mut self) {
        self.free_all();
    }
}

impl<T: Threading> fmt::Debug for Replay<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replay")
            .field("next", &self.next)
            .field("live", &self.live.len())
            .field("report", &self.report)
            .finish_non_exhaustive()
    }
}
