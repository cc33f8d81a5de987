//! What came of a replay.
#![forbid(unsafe_code)]

use std::fmt;
use std::time::Duration;

use super::latencies::Latencies;

/// What a program calls an allocator for, as far as it is counted apart.
///
/// ```
/// use sublet::trace::CallKind;
/// assert_eq!(CallKind::ALL[0], CallKind::Allocate);
/// println!("{}", CallKind::CreatePool);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum CallKind {
    /// Memory is asked for, with or without a resource.
    Allocate,
    /// Memory is given back.
    Free,
    /// The host begins to look at memory.
    Map,
    /// The host has looked.
    Unmap,
    /// A range that the host wrote is made visible.
    Flush,
    /// A range that the device wrote is made visible.
    Invalidate,
    /// A pool is made.
    CreatePool,
    /// A pool is ended, with all that is still in it.
    DestroyPool,
    /// A lifetime scope is made.
    CreateScope,
    /// A scope is ended, with all that is in it.
    FreeScope,
    /// Moves are planned, completed or given up.
    Defragment,
    /// Empty blocks are given back, at once or by a new number of those that are kept.
    Trim,
    /// A frame begins: budgets are fetched.
    Frame,
    /// Names, the program's own numbers, priorities.
    Describe,
}

impl CallKind {
    /// Every kind, each at the index that it has in a [`ReplayReport`].
    pub const ALL: &'static [Self] = &[
        Self::Allocate,
        Self::Free,
        Self::Map,
        Self::Unmap,
        Self::Flush,
        Self::Invalidate,
        Self::CreatePool,
        Self::DestroyPool,
        Self::CreateScope,
        Self::FreeScope,
        Self::Defragment,
        Self::Trim,
        Self::Frame,
        Self::Describe,
    ];

    /// The kind in one word, for tables and keys.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Allocate => "allocate",
            Self::Free => "free",
            Self::Map => "map",
            Self::Unmap => "unmap",
            Self::Flush => "flush",
            Self::Invalidate => "invalidate",
            Self::CreatePool => "create_pool",
            Self::DestroyPool => "destroy_pool",
            Self::CreateScope => "create_scope",
            Self::FreeScope => "free_scope",
            Self::Defragment => "defragment",
            Self::Trim => "trim",
            Self::Frame => "frame",
            Self::Describe => "describe",
        }
    }

    pub(super) fn at(self) -> usize {
        // The first in `ALL` that is equal is the one at its own index.
        Self::ALL.iter().position(|kind| *kind == self).unwrap_or(0)
    }
}

impl fmt::Display for CallKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The calls of one kind.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct CallReport {
    /// Calls that were made.
    pub made: u64,
    /// Those of them that failed.
    pub failed: u64,
    /// How long they took, the failed ones too. The clock's own cost, some twenty nanoseconds, is in it.
    pub latencies: Latencies,
}

/// How much memory was in use.
///
/// ```
/// let none = sublet::trace::Footprint::default();
/// assert_eq!(none.waste_bytes(), 0);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub struct Footprint {
    /// Bytes taken from the driver.
    pub reserved_bytes: u64,
    /// Bytes of allocations, rounding included.
    pub used_bytes: u64,
    /// `VkDeviceMemory` objects.
    pub memory_count: u64,
    /// Allocations.
    pub allocation_count: u64,
}

impl Footprint {
    /// Bytes that were taken from the driver and used by nobody.
    #[must_use]
    pub const fn waste_bytes(&self) -> u64 {
        self.reserved_bytes.saturating_sub(self.used_bytes)
    }
}

/// The memory of one heap, or of all, over a replay.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub struct Extremes {
    /// The most bytes taken from the driver.
    pub peak_reserved_bytes: u64,
    /// The most bytes of allocations.
    pub peak_used_bytes: u64,
    /// As it was when the most was taken from the driver, for the first time.
    pub at_peak: Footprint,
    /// As it was after the last event, before the replay freed what was left.
    pub at_end: Footprint,
}

impl Extremes {
    pub(super) fn see(&mut self, now: Footprint) {
        self.peak_used_bytes = self.peak_used_bytes.max(now.used_bytes);
        if now.reserved_bytes > self.peak_reserved_bytes {
            self.peak_reserved_bytes = now.reserved_bytes;
            self.at_peak = now;
        }
        self.at_end = now;
    }
}

/// How the free memory was cut up.
///
/// ```
/// let none = sublet::trace::FreeRanges::default();
/// assert_eq!(none.largest_per_mille(), 1000, "nothing is cut up");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub struct FreeRanges {
    /// Free ranges in all blocks.
    pub count: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes of the largest.
    pub largest_bytes: u64,
}

impl FreeRanges {
    /// The share of the largest range in all that is free, in thousandths: 1000 is one piece, or nothing.
    #[must_use]
    pub fn largest_per_mille(&self) -> u32 {
        let share = (u128::from(self.largest_bytes) * 1000).checked_div(u128::from(self.bytes));
        share.map_or(1000, |share| u32::try_from(share).unwrap_or(1000))
    }
}

/// What came of a [`Replay`](super::Replay). On one thread everything in it but the times is the same on every run.
///
/// ```
/// # use sublet::*; use sublet::trace::*;
/// # let trace = Trace::default();
/// # let (gpu, allocator) = sublet::doc_example();
/// let report = Replay::new(&trace, &allocator).finish();
/// assert_eq!(report.call(CallKind::Allocate).failed, 0);
/// println!("{} bytes at most, {:?} in all", report.memory.peak_reserved_bytes, report.time);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct ReplayReport {
    /// Events that were replayed.
    pub events: u64,
    /// By [`CallKind`], in the order of [`CallKind::ALL`].
    pub calls: Vec<CallReport>,
    /// Allocations that were granted when it was recorded, and here were not.
    pub refused: u64,
    /// Allocations that were refused when it was recorded. They are asked for again.
    pub refused_in_recording: u64,
    /// Those of them that were granted here. They are freed at once.
    pub granted_after_all: u64,
    /// Allocations that got memory of their own.
    pub dedicated: u64,
    /// Allocations that were granted in another memory type than when it was recorded.
    pub other_memory_type: u64,
    /// Events about allocations, pools, scopes or moves that there are not here: because they were refused, or because
    /// the recording does not say where they came from.
    pub unknown: u64,
    /// Moves that were completed when it was recorded, and that were not planned here.
    pub moves_missing: u64,
    /// All memory.
    pub memory: Extremes,
    /// By memory heap.
    pub heaps: Vec<Extremes>,
    /// Free memory after the last event.
    pub free_ranges: FreeRanges,
    /// A number made of where each allocation and each move was placed, in order: vector, memory type, block, offset,
    /// size. Equal numbers for equal placements, on every driver.
    pub placements: u64,
    /// All calls together.
    pub time: Duration,
}

impl ReplayReport {
    /// The calls of one kind.
    #[must_use]
    pub fn call(&self, kind: CallKind) -> CallReport {
        self.calls.get(kind.at()).cloned().unwrap_or_default()
    }
}
