//! The results of a replay.

use std::fmt;
use std::time::Duration;

use super::latencies::Latencies;

/// The kinds of calls that a replay counts separately.
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
    /// Memory is freed.
    Free,
    /// Memory is mapped.
    Map,
    /// Memory is unmapped.
    Unmap,
    /// A range that the host wrote is made visible to the device.
    Flush,
    /// A range that the device wrote is made visible to the host.
    Invalidate,
    /// A pool is made.
    CreatePool,
    /// A pool is destroyed, with everything in it.
    DestroyPool,
    /// A scope is made.
    CreateScope,
    /// A scope is freed, with everything in it.
    FreeScope,
    /// Moves are planned, completed or rolled back.
    Defragment,
    /// Empty blocks go back to the driver, at once or because fewer are kept from now on.
    Trim,
    /// A frame begins: budgets are fetched.
    Frame,
    /// Names, user data or priorities change.
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

/// How much memory was in use at one moment.
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
    /// Bytes that were taken from the driver and that no allocation used.
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
    /// The memory in use when the bytes taken from the driver first reached their peak.
    pub at_peak: Footprint,
    /// The memory in use after the last event, before the replay freed what was left.
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

/// How fragmented the free memory was.
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
    /// Their sum in bytes.
    pub bytes: u64,
    /// The largest of them in bytes.
    pub largest_bytes: u64,
}

impl FreeRanges {
    /// The share of the largest range in all free memory, in thousandths. 1000 if the free memory is one range or none.
    #[must_use]
    pub fn largest_per_mille(&self) -> u32 {
        let share = (u128::from(self.largest_bytes) * 1000).checked_div(u128::from(self.bytes));
        share.map_or(1000, |share| u32::try_from(share).unwrap_or(1000))
    }
}

/// The results of a [`Replay`](super::Replay). On one thread everything but the times is the same on every run.
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
    /// Allocations that succeeded in the recording and failed in the replay.
    pub refused: u64,
    /// Allocations that failed in the recording. The replay makes these calls again.
    pub refused_in_recording: u64,
    /// Those of them that succeeded in the replay. They are freed at once.
    pub granted_after_all: u64,
    /// Allocations that got dedicated memory.
    pub dedicated: u64,
    /// Allocations that got another memory type than in the recording.
    pub other_memory_type: u64,
    /// Events of allocations, pools, scopes or moves that the replay does not have: because they failed in it, or
    /// because the recording does not say how they were made.
    pub unknown: u64,
    /// Moves that were completed in the recording and not planned in the replay.
    pub moves_missing: u64,
    /// All memory.
    pub memory: Extremes,
    /// By memory heap.
    pub heaps: Vec<Extremes>,
    /// Free memory after the last event.
    pub free_ranges: FreeRanges,
    /// A hash of where each allocation and each move was placed, in order: vector, memory type, block, offset and size.
    /// Equal placements make equal numbers, on every driver.
    pub placements: u64,
    /// The time of all calls together.
    pub time: Duration,
}

impl ReplayReport {
    /// The calls of one kind.
    #[must_use]
    pub fn call(&self, kind: CallKind) -> CallReport {
        self.calls.get(kind.at()).cloned().unwrap_or_default()
    }
}
