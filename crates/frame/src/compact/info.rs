//! How a compactor is to work, and what it did.
#![forbid(unsafe_code)]

use std::time::Duration;

use sublet::retire::Ticket;
use sublet::{DefragmentationAlgorithm, DefragmentationStatistics};

use crate::track::Queue;

/// How a [`Compactor`](super::Compactor) is to work.
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
    /// The queue that copies. Resources that another family has are given to this one and come back with their next use.
    pub queue: Queue,
    /// How much is moved for how much gain.
    pub algorithm: DefragmentationAlgorithm,
    /// The most bytes that a frame copies; 0 means no limit. What is larger is never moved.
    pub max_bytes_per_frame: u64,
    /// The most resources that a frame moves; 0 means no limit.
    pub max_moves_per_frame: u32,
    /// How long the host plans, and how long it makes what takes over, in a frame. One resource may be moved however
    /// long that takes.
    pub max_time_per_frame: Duration,
    /// It starts when the blocks have so many more free bytes than it left the last time; 0 means not by itself.
    pub start_bytes: u64,
    /// It starts when the usage of a heap is above this part of its budget, and there are more free bytes in blocks than
    /// it left the last time; 0.0 means not for that.
    pub start_heap_usage: f32,
}

impl CompactorCreateInfo {
    /// What empties blocks, 16 MiB, 64 moves and 500 microseconds in a frame, from 64 MiB of free bytes or nine tenths
    /// of a budget on.
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

/// What came of a [step](super::Compactor::step).
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum CompactStep {
    /// There is no reason to start.
    Idle,
    /// The device is not done with what was moved before, or nothing could be moved right now.
    Waiting,
    /// Resources were moved.
    Moved {
        /// How many.
        moves: usize,
        /// Their bytes in memory.
        bytes: u64,
        /// Of the submission that copies.
        ticket: Ticket,
    },
    /// Nothing is left to be moved. It starts again when there is a reason.
    Ended(DefragmentationStatistics),
}

/// What a [`Compactor`](super::Compactor) did since it was made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct CompactorStatistics {
    /// How often it started.
    pub starts: u64,
    /// Resources that it moved.
    pub moves: u64,
    /// Their bytes in memory.
    pub bytes_moved: u64,
    /// Moves that it gave up because a list had the resource.
    pub busy: u64,
    /// Bytes of the blocks that went back to the driver, as far as it has ended.
    pub bytes_freed: u64,
    /// Blocks that went back, as far as it has ended.
    pub blocks_freed: u64,
}
