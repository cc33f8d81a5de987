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
    /// Allocates memory, with or without a resource.
    Allocate,
    /// Frees memory.
    Free,
    /// Maps memory.
    Map,
    /// Unmaps memory.
    Unmap,
    /// Flushes a range that the host wrote.
    Flush,
    /// Invalidates a range that the device wrote.
    Invalidate,
    /// Creates a pool.
    CreatePool,
    /// Destroys a pool with everything in it.
    DestroyPool,
    /// Creates a scope.
    CreateScope,
    /// Frees a scope with everything in it.
    FreeScope,
    /// Plans, completes or rolls back moves.
    Defragment,
    /// Releases empty blocks, at once or because the number to keep was reduced.
    Trim,
    /// Creates blocks ahead of need.
    Reserve,
    /// Creates and frees blocks between frames.
    Maintain,
    /// Begins a frame, which queries budgets.
    Frame,
    /// Changes names, user data or priorities.
    Describe,
}

impl CallKind {
    /// All kinds, in the order of [`ReplayReport::calls`].
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
        Self::Reserve,
        Self::Maintain,
        Self::Frame,
        Self::Describe,
    ];

    /// Returns the kind in one word, for tables and keys.
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
            Self::Reserve => "reserve",
            Self::Maintain => "maintain",
            Self::Frame => "frame",
            Self::Describe => "describe",
        }
    }

    pub(super) fn at(self) -> usize {
        // `ALL` contains each kind once.
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
    /// The number of calls.
    pub made: u64,
    /// The number of failed calls.
    pub failed: u64,
    /// The durations, including failed calls. They include the cost of the clock, about twenty nanoseconds.
    pub latencies: Latencies,
}

/// The memory usage at one moment.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub struct Footprint {
    /// The bytes allocated from the driver.
    pub reserved_bytes: u64,
    /// The bytes of allocations, including rounding.
    pub used_bytes: u64,
    /// The number of `VkDeviceMemory` objects.
    pub memory_count: u64,
    /// The number of allocations.
    pub allocation_count: u64,
}

/// The memory usage of one heap, or of all, over a replay.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub struct Extremes {
    /// The maximum of bytes allocated from the driver.
    pub peak_reserved_bytes: u64,
    /// The maximum of bytes of allocations.
    pub peak_used_bytes: u64,
    /// The usage when the bytes from the driver first reached their peak.
    pub at_peak: Footprint,
    /// The usage after the last event, before the replay freed the rest.
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

/// The fragmentation of free memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub struct FreeRanges {
    /// The number of free ranges in all blocks.
    pub count: u64,
    /// Their total size in bytes.
    pub bytes: u64,
    /// The size of the largest one in bytes.
    pub largest_bytes: u64,
}

/// The results of a [`Replay`](super::Replay). If the recording has one thread, everything but the times is the same in
/// every run.
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
    /// The number of replayed events.
    pub events: u64,
    /// Indexed like [`CallKind::ALL`].
    pub calls: Vec<CallReport>,
    /// Allocations that succeeded in the recording and failed in the replay.
    pub refused: u64,
    /// Allocations that failed in the recording. The replay repeats these calls.
    pub refused_in_recording: u64,
    /// Allocations that failed in the recording but succeeded in the replay. They are freed at once.
    pub granted_after_all: u64,
    /// Allocations with dedicated memory.
    pub dedicated: u64,
    /// Allocations in another memory type than in the recording.
    pub other_memory_type: u64,
    /// Events of allocations, pools, scopes or moves that the replay does not have: their creation failed in the
    /// replay, or is missing in the recording.
    pub unknown: u64,
    /// Moves that were completed in the recording but not planned in the replay.
    pub moves_missing: u64,
    /// The usage of all memory.
    pub memory: Extremes,
    /// The usage of each heap.
    pub heaps: Vec<Extremes>,
    /// The free memory after the last event.
    pub free_ranges: FreeRanges,
    /// A hash of the place of each allocation and move, in order: vector, memory type, block, offset and size. Equal
    /// placements have equal hashes, on every driver.
    pub placements: u64,
    /// The total duration of all calls.
    pub time: Duration,
}

impl ReplayReport {
    /// Returns the calls of one kind.
    #[must_use]
    pub fn call(&self, kind: CallKind) -> CallReport {
        self.calls.get(kind.at()).cloned().unwrap_or_default()
    }
}
