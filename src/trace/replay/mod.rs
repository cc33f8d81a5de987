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
use crate::pool::{Pool, Scope};
use placements::Placements;
use translate::Translation;

/// What an allocation ends with.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Owner {
    Nobody,
    Pool(u32),
    Scope(u32),
}

/// An allocation that the replay has made for one of the trace.
#[derive(Debug)]
struct Held {
    allocation: Allocation,
    owner: Owner,
    /// Open mappings.
    mappings: u32,
}

/// A defragmentation, and the unresolved moves of its pass.
#[derive(Debug)]
struct Context {
    open: OpenDefragmentation,
    moves: Vec<PlannedMove>,
}

/// A pool that a replay has made for one of the trace: see [`Replay::pool`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct ReplayedPool {
    /// Its number in a [`MemoryMap`](crate::MemoryMap).
    pub number: u32,
    /// Index of its memory type.
    pub memory_type_index: u32,
    /// Bytes of a block; of the largest block if the allocator chooses the sizes.
    pub block_size: u64,
}

/// Replays a trace on an allocator: makes the calls of the recorded program again, in the recorded order, on one
/// thread and as fast as it can, and measures them.
///
/// It makes no buffers and images. It asks for allocations with the recorded requirements, kind and usage, so that the
/// allocator decides as it did then. It writes nothing into memory.
///
/// If one thread made the recording, and allocator and device are like the recorded ones
/// ([`Header::simulated`](super::Header::simulated)), every allocation is placed where it was. The [`ReplayReport`]
/// counts the differences:
///
/// - **Another device.** A memory type becomes the types that share most of its flags and have the fewest others.
///   A mask of all types becomes all types, and so does a mask without a type of the recorded device.
/// - **Calls that failed** in the recording are made again. If such an allocation succeeds, it is freed at once. A
///   trace has no other failed calls.
/// - **Allocations that fail only in the replay** are counted, and every later call for them is skipped.
/// - **Several threads** had several shards of a vector. The one thread of a replay sees one. Calls that settle a
///   thread are skipped, unless one thread made the recording.
/// - **Defragmentation** plans again, without the recorded limit on time and without the callback. Each pass resolves
///   as many moves as the recorded one. A move has the recorded outcome, or is rolled back if it was not planned then.
/// - **Copies** in and out of memory map, flush or invalidate, and unmap. They do not touch the bytes.
/// - **Chains** for `VkMemoryAllocateInfo` are not in a trace: memory that had one is ordinary memory in the replay.
/// - **Allocations that lived before** the recording began are made first, one after the other, at new places.
///
/// ```
/// # use sublet::*; use sublet::trace::*;
/// # let mesh = Existing { size: 4096, alignment: 256, ..Existing::new(AllocationNumber(0)) };
/// # let event = Event::Existing(Box::new(mesh));
/// # let bytes = Trace { records: vec![Record { event, ..Record::default() }], ..Trace::default() }.to_bytes();
/// // From a file that some program recorded.
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
pub struct Replay<'a> {
    trace: &'a Trace,
    allocator: &'a Allocator,
    /// The index of the next record.
    next: usize,
    translation: Translation,
    /// Whether the recording has one thread.
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

impl<'a> Replay<'a> {
    /// Prepares a replay, without a call yet. The allocator keeps what it has allocated already, and the figures of
    /// memory include it.
    pub fn new(trace: &'a Trace, allocator: &'a Allocator) -> Self {
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

    /// Replays the next record and returns it; `None` at the end.
    pub fn step(&mut self) -> Option<&'a Record> {
        let trace = self.trace;
        let record = trace.records.get(self.next)?;
        self.next += 1;
        self.report.events += 1;
        self.play(&record.event);
        self.report.placements = self.placements.digest();
        Some(record)
    }

    /// How many records are still to be replayed.
    #[must_use]
    pub fn remaining(&self) -> usize {
        self.trace.records.len() - self.next
    }

    /// Facts about an allocation of the trace, if it lives in the replay.
    ///
    /// Not an [`Allocation`], because the next step may free it: the program could have mapped it, and write to it
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

    /// Facts about a pool of the trace, if it lives in the replay.
    ///
    /// Not a [`Pool`], because the next step may destroy it with everything in it: no allocation of the
    /// program may be in it.
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

    /// The results so far. [`Self::finish`] adds the free ranges.
    #[must_use]
    pub fn report(&self) -> &ReplayReport {
        &self.report
    }

    /// Replays the remaining records, frees everything that the replay made, and returns the results. To see what the
    /// program left, look at the allocator before: after the last [`Self::step`].
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

impl Drop for Replay<'_> {
    fn drop(&mut self) {
        self.free_all();
    }
}

impl fmt::Debug for Replay<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replay")
            .field("next", &self.next)
            .field("live", &self.live.len())
            .field("report", &self.report)
            .finish_non_exhaustive()
    }
}
