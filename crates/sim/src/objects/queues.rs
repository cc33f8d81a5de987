//! Submissions that are not done.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use ash::vk;

use crate::hazards::SemaphoreUse;
use crate::objects::commands::{RecordedCommand, Uses};

/// Submissions of a device's queues.
#[derive(Default)]
pub(crate) struct QueueState {
    /// One for each queue.
    pub(crate) timelines: Vec<QueueTimeline>,
    /// The number of the last submission. Numbers are not used again.
    pub(crate) last: u64,
    /// The numbers of submissions that are not done.
    pub(crate) unfinished: BTreeSet<u64>,
}

/// Submissions of one queue.
#[derive(Default)]
pub(crate) struct QueueTimeline {
    pub(crate) waiting: VecDeque<QueueSubmission>,
    /// True if submissions are held back.
    pub(crate) held: bool,
    /// True if a thread is running one. That thread goes on to the next, so that no other has to.
    pub(crate) running: bool,
}

impl QueueState {
    pub(crate) fn new(queues: usize) -> Self {
        let timelines = std::iter::repeat_with(QueueTimeline::default).take(queues).collect();
        Self { timelines, ..Self::default() }
    }

    /// The count of submissions that are not done.
    pub(crate) fn pending(&self) -> usize {
        self.timelines.iter().map(QueueTimeline::pending).sum()
    }

    pub(crate) fn running(&self) -> bool {
        self.timelines.iter().any(|timeline| timeline.running)
    }
}

impl QueueTimeline {
    pub(crate) fn pending(&self) -> usize {
        self.waiting.len() + usize::from(self.running)
    }
}

/// One batch of a submission.
#[derive(Default)]
pub(crate) struct QueueSubmission {
    pub(crate) number: u64,
    /// Values of timeline semaphores to wait for.
    pub(crate) waits: Vec<(vk::Semaphore, u64)>,
    /// The submissions that signal the binary semaphores that it waits for.
    pub(crate) after: Vec<u64>,
    pub(crate) signals: Vec<(vk::Semaphore, u64)>,
    /// All semaphores that it names.
    pub(crate) semaphores: Vec<vk::Semaphore>,
    pub(crate) command_buffers: Vec<vk::CommandBuffer>,
    pub(crate) commands: Vec<Arc<Vec<RecordedCommand>>>,
    pub(crate) uses: Vec<Uses>,
    /// Its waits and signals with their stages, if hazards are looked for.
    pub(crate) ordered_by: [Vec<SemaphoreUse>; 2],
    /// NULL, or signaled when it is done.
    pub(crate) fence: vk::Fence,
}
