//! Options and results of a compactor.

use std::time::Duration;

use sublet::retire::Ticket;
use sublet::{DefragmentationAlgorithm, DefragmentationStatistics};

use crate::track::Queue;

/// Options of a [`Compactor`](super::Compactor).
///
/// ```
/// # let (_gpu, frames) = sublet_frame::doc_example();
/// use sublet_frame::CompactorCreateInfo;
///
/// let gentle = CompactorCreateInfo {
///     max_bytes_per_frame: 4 << 20,
///     start_bytes: 32 << 20,
///     ..CompactorCreateInfo::new(frames.queue(0))
/// };
/// assert_eq!(gentle.max_moves_per_frame, 64);
/// ```
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct CompactorCreateInfo {
    /// The queue that copies. Resources of another family are transferred to it, and transferred back with their next
    /// use.
    pub queue: Queue,
    /// The trade-off between moved bytes and freed memory.
    pub algorithm: DefragmentationAlgorithm,
    /// Maximum bytes to copy in a frame; 0 means no limit. Larger resources never move.
    pub max_bytes_per_frame: u64,
    /// Maximum number of resources to move in a frame; 0 means no limit.
    pub max_moves_per_frame: u32,
    /// Maximum host time in a frame for planning, and again for creating replacements. At least one resource is moved
    /// regardless.
    pub max_time_per_frame: Duration,
    /// Starts when the blocks have this many more free bytes than after the last run; 0 disables this trigger.
    pub start_bytes: u64,
    /// Starts when the usage of a heap exceeds this fraction of its budget, and the blocks have more free bytes than
    /// after the last run; 0.0 disables this trigger.
    pub start_heap_usage: f32,
}

impl CompactorCreateInfo {
    /// The defaults: 16 MiB, 64 moves and 500 microseconds in a frame, starting from 64 MiB of free bytes or 90 % of a
    /// budget.
    #[must_use]
    pub const fn new(queue: Queue) -> Self {
        Self {
            queue,
            algorithm: DefragmentationAlgorithm::Fast,
            max_bytes_per_frame: 16 << 20,
            max_moves_per_frame: 64,
            max_time_per_frame: Duration::from_micros(500),
            start_bytes: 64 << 20,
            start_heap_usage: 0.9,
        }
    }
}

/// The result of a [step](super::Compactor::step).
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum CompactStep {
    /// No run is active, and no trigger has started one.
    Idle,
    /// Waiting for the device to finish earlier moves, or nothing could be moved now.
    Waiting,
    /// Resources were moved.
    Moved {
        /// Number of resources.
        moves: usize,
        /// Their bytes in memory.
        bytes: u64,
        /// The ticket of the submission that copies.
        ticket: Ticket,
    },
    /// The run has ended. The next one starts on a trigger.
    Ended(DefragmentationStatistics),
}

/// Counters of a [`Compactor`](super::Compactor) since its creation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct CompactorStatistics {
    /// Number of runs.
    pub starts: u64,
    /// Resources moved.
    pub moves: u64,
    /// Their bytes in memory.
    pub bytes_moved: u64,
    /// Moves abandoned because an open list uses the resource.
    pub busy: u64,
    /// Bytes of freed blocks, in ended runs.
    pub bytes_freed: u64,
    /// Freed blocks, in ended runs.
    pub blocks_freed: u64,
}
