//! The results of resolution.

use ash::vk;
use vk::PipelineStageFlags2 as Stages;

use super::memory::{Holder, Memories};
use super::{IntervalState, Queue, TrackedQueue, TrackedResource, index};
use crate::track::batch::BarrierBatch;
use crate::track::intervals::Intervals;

/// A semaphore wait of a submission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[doc(alias = "queueWaitForCommandList")]
pub struct Wait {
    /// The queue that signals it.
    pub queue: Queue,
    /// The number of the submission: [`Submission::serial`] or [`Release::serial`]. With one timeline semaphore for
    /// each queue, these numbers can be its values.
    pub serial: u64,
    /// The stages that wait.
    pub stages: Stages,
}

/// A submission to another queue that releases ownership, and has to be submitted first.
#[derive(Clone, Debug)]
pub struct Release {
    pub(super) queue: Queue,
    pub(super) serial: u64,
    pub(super) waits: Vec<Wait>,
    pub(super) batch: BarrierBatch,
}

impl Release {
    /// Returns the queue to submit to.
    #[must_use]
    pub fn queue(&self) -> Queue {
        self.queue
    }

    /// Returns its number on that queue.
    #[must_use]
    pub fn serial(&self) -> u64 {
        self.serial
    }

    /// Returns its semaphore waits.
    #[must_use]
    pub fn waits(&self) -> &[Wait] {
        &self.waits
    }

    /// Returns its barriers.
    #[must_use]
    pub fn batch(&self) -> &BarrierBatch {
        &self.batch
    }
}

/// The result of [`Global::resolve`](super::Global::resolve). Reuse it to avoid allocations.
#[derive(Clone, Debug, Default)]
pub struct Submission {
    pub(super) serial: u64,
    pub(super) waits: Vec<Wait>,
    /// Only the first `lists` and `released` elements belong to this submission.
    pub(super) preambles: Vec<BarrierBatch>,
    pub(super) lists: usize,
    pub(super) releases: Vec<Release>,
    pub(super) released: usize,
    pub(super) journal: Journal,
}

/// The states before a submission, for [`Global::revoke`](super::Global::revoke).
#[derive(Clone, Debug, Default)]
pub(super) struct Journal {
    wanted: bool,
    /// The number of the `Global`.
    global: u32,
    /// Slot, states and last use. Only the first `used` elements belong to this submission.
    saved: Vec<(u32, Intervals<IntervalState>, u64)>,
    used: usize,
    /// Bytes of a memory and their previous holders.
    holders: Vec<(vk::DeviceMemory, u64, u64, Holder)>,
    queues: Vec<TrackedQueue>,
    sequence: u64,
}

impl Journal {
    const fn new(wanted: bool) -> Self {
        Self {
            wanted,
            global: 0,
            saved: Vec::new(),
            used: 0,
            holders: Vec::new(),
            queues: Vec::new(),
            sequence: 0,
        }
    }

    pub(super) fn start(&mut self, global: u32, queues: &[TrackedQueue], sequence: u64) {
        (self.global, self.used) = (global, 0);
        self.holders.clear();
        if self.wanted {
            self.sequence = sequence;
            self.queues.resize_with(queues.len(), TrackedQueue::default);
            self.queues.iter_mut().zip(queues).for_each(|(saved, queue)| saved.copy_from(queue));
        }
    }

    pub(super) fn save(&mut self, slot: u32, entry: &TrackedResource) {
        if !self.wanted {
            return;
        }
        if let Some((saved_slot, cells, used_at)) = self.saved.get_mut(self.used) {
            cells.copy_from(&entry.cells);
            (*saved_slot, *used_at) = (slot, entry.used_at);
        } else {
            self.saved.push((slot, entry.cells.clone(), entry.used_at));
        }
        self.used += 1;
    }

    /// Sets the holder of bytes of a memory.
    pub(super) fn hold(
        &mut self,
        memories: &mut Memories,
        memory: vk::DeviceMemory,
        (start, end): (u64, u64),
        holder: Holder,
    ) {
        let Some(known) = memories.get_mut(&memory) else { return };
        known.holders.update(start, end, |from, to, held| {
            if self.wanted && *held != holder {
                self.holders.push((memory, from, to, *held));
            }
            *held = holder;
        });
    }

    /// Restores the saved states in reverse order, so the first state of a resource saved twice wins.
    pub(super) fn restore(
        &mut self,
        global: u32,
        entries: &mut [TrackedResource],
        queues: &mut [TrackedQueue],
        memories: &mut Memories,
    ) -> Option<u64> {
        if !self.wanted || self.global != global || self.queues.len() != queues.len() {
            return None;
        }
        for (slot, cells, used_at) in self.saved[..self.used].iter().rev() {
            let entry = &mut entries[index(*slot)];
            entry.cells.copy_from(cells);
            entry.used_at = *used_at;
        }
        for (memory, start, end, holder) in self.holders.drain(..).rev() {
            if let Some(known) = memories.get_mut(&memory) {
                known.holders.update(start, end, |_, _, held| *held = holder);
            }
        }
        queues.iter_mut().zip(&self.queues).for_each(|(queue, saved)| queue.copy_from(saved));
        self.used = 0;
        self.queues.clear();
        Some(self.sequence)
    }
}

impl Submission {
    /// Creates an empty submission.
    #[must_use]
    pub const fn new() -> Self {
        Self::with_journal(false)
    }

    /// Creates an empty submission that [`Global::revoke`](super::Global::revoke) can undo after the driver has
    /// rejected it.
    #[must_use]
    pub const fn revocable() -> Self {
        Self::with_journal(true)
    }

    const fn with_journal(wanted: bool) -> Self {
        Self {
            serial: 0,
            waits: Vec::new(),
            preambles: Vec::new(),
            lists: 0,
            releases: Vec::new(),
            released: 0,
            journal: Journal::new(wanted),
        }
    }

    /// Returns its number on its queue, from 1.
    #[must_use]
    pub fn serial(&self) -> u64 {
        self.serial
    }

    /// Returns the barriers to record before a list, or at the end of the previous list. Most submissions have a
    /// preamble only for the first list: it contains the barriers of everything that the submission has not used
    /// earlier.
    #[must_use]
    #[doc(alias = "FlushPendingResourceBarriers")]
    pub fn preamble(&self, list: usize) -> Option<&BarrierBatch> {
        self.preambles[..self.lists].get(list).filter(|batch| !batch.is_empty())
    }

    /// Returns the semaphore waits, at most one for each other queue.
    #[must_use]
    pub fn waits(&self) -> &[Wait] {
        &self.waits
    }

    /// Returns the submissions to other queues that must come first, at most one for each queue.
    #[must_use]
    pub fn releases(&self) -> &[Release] {
        &self.releases[..self.released]
    }

    pub(super) fn start(&mut self, serial: u64, lists: usize) {
        self.serial = serial;
        self.waits.clear();
        self.preambles.iter_mut().for_each(BarrierBatch::clear);
        if self.preambles.len() < lists {
            self.preambles.resize_with(lists, BarrierBatch::new);
        }
        (self.lists, self.released) = (lists, 0);
    }

    /// Adds a wait, and returns the combined wait for that queue.
    pub(super) fn wait(waits: &mut Vec<Wait>, wait: Wait) -> Wait {
        if let Some(other) = waits.iter_mut().find(|other| other.queue == wait.queue) {
            other.serial = other.serial.max(wait.serial);
            other.stages |= wait.stages;
            return *other;
        }
        waits.push(wait);
        wait
    }
}
