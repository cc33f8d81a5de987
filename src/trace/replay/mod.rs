//! Replays a trace on an allocator.

mod latencies;
mod moves;
mod placements;
mod play;
mod pools;
mod release;
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
use crate::allocator::defragment::{OpenDefragmentation, PlannedAllocationMove};
use crate::pool::{Pool, Scope};
use placements::Placements;
use translate::Translation;

/// The pool or scope that contains an allocation, and frees it when it is destroyed itself.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum ReplayedOwner {
    Nobody,
    Pool(u32),
    Scope(u32),
}

/// An allocation of the replay, for one of the trace.
#[derive(Debug)]
struct ReplayedAllocation {
    allocation: Allocation,
    owner: ReplayedOwner,
    /// The number of open mappings.
    mappings: u32,
}

/// A defragmentation, and the unresolved moves of its pass.
#[derive(Debug)]
struct Context {
    open: OpenDefragmentation,
    moves: Vec<PlannedAllocationMove>,
}

/// A pool of the replay, for one of the trace: see [`Replay::pool`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct ReplayedPool {
    /// Its number in a [`MemoryMap`](crate::MemoryMap).
    pub number: u32,
    /// Index of its memory type.
    pub memory_type_index: u32,
    /// The size of a block in bytes; of the largest block if the allocator chooses the sizes.
    pub block_size: u64,
}

/// Replays a trace on an allocator: repeats the calls of the recorded program in the recorded order, on one thread and
/// without pauses, and measures them.
///
/// It creates no buffers and images. It requests allocations with the recorded requirements, kind and usage, so that
/// the allocator makes the same decisions. It writes nothing into memory.
///
/// If the recording has one thread, and allocator and device are like the recorded ones
/// ([`Header::simulated`](super::Header::simulated)), every allocation is placed as in the recording. The
/// [`ReplayReport`] counts the differences:
///
/// - **Another device.** A memory type is replaced by the types that share most of its flags and have the fewest
///   others. A mask of all types becomes all types, and so does a mask without a type of the recorded device.
/// - **Calls that failed** in the recording are repeated. If such an allocation succeeds, it is freed at once. A trace
///   contains no other failed calls.
/// - **Allocations that fail only in the replay** are counted, and all later calls for them are skipped.
/// - **Several threads** used several shards of a vector. The single thread of a replay uses one shard. Calls of
///   `attach_to_pool` and `attach_to_memory_type` are skipped, unless the recording has one thread.
/// - **Defragmentation** plans again, without the recorded time limit and without the callback. Each pass resolves as
///   many moves as the recorded one. A move gets the recorded outcome, or is rolled back if the recording did not plan
///   it.
/// - **Copies** into and out of memory map, flush or invalidate, and unmap. They do not access the bytes.
/// - **Chains** for `VkMemoryAllocateInfo` are not in a trace: the replay uses ordinary memory instead.
/// - **Protected memory** is requested as recorded. If the device has such memory types, enable `protectedMemory`, or
///   replay only recordings that you trust: a file may name any type.
/// - **Foreign recordings** have no requests until [`Trace::resource_requests`] finds them. Their events are counted as
///   unknown.
/// - **Allocations that existed before** the recording are allocated first, one after the other, at new places.
///
/// ```
/// # use ash::vk; use sublet::*; use sublet::trace::*;
/// # let (_gpu, recorded) = sublet::doc_example();
/// # let file = TraceBuffer::new();
/// # recorded.start_recording(file.clone())?;
/// # let mesh = vk::MemoryRequirements { size: 4096, alignment: 256, memory_type_bits: !0 };
/// # let mesh = recorded.allocate_memory(&mesh, &AllocationCreateInfo::default())?;
/// # recorded.stop_recording()?;
/// # unsafe { recorded.free_memory(mesh) }?;
/// # let bytes = file.bytes();
/// // `bytes` is the content of a recorded file.
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
    /// True if the recording has one thread.
    is_single: bool,
    live: BTreeMap<u32, ReplayedAllocation>,
    pools: BTreeMap<u32, Pool>,
    scopes: BTreeMap<u32, Scope>,
    /// The allocations in each pool or scope, in order; some of them may be freed.
    members: BTreeMap<ReplayedOwner, Vec<u32>>,
    contexts: BTreeMap<u32, Context>,
    placements: Placements,
    report: ReplayReport,
}

impl<'a> Replay<'a> {
    /// Prepares a replay without making a call. Existing allocations of the allocator stay, and the memory figures
    /// include them.
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

    /// Returns the number of remaining records.
    #[must_use]
    pub fn remaining(&self) -> usize {
        self.trace.records.len() - self.next
    }

    /// Returns information about an allocation of the trace, if it is live in the replay.
    ///
    /// The result is not an [`Allocation`], because the next step may free it. A program that has mapped it could then
    /// write to freed memory.
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

    /// Returns information about a pool of the trace, if it exists in the replay.
    ///
    /// The result is not a [`Pool`], because the next step may destroy the pool with everything in it, including
    /// allocations of the program.
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

    /// Returns the results so far. [`Self::finish`] adds the free ranges.
    #[must_use]
    pub fn report(&self) -> &ReplayReport {
        &self.report
    }

    /// Replays the remaining records, frees everything that the replay allocated, and returns the results. To inspect
    /// the final state, query the allocator after the last [`Self::step`], before this call.
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
