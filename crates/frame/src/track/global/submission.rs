//! What a submission needs besides its lists.
#![forbid(unsafe_code)]

use ash::vk;
use vk::PipelineStageFlags2 as Stages;

use super::memory::{Holder, Memories};
use super::{Entry, Queue, QueueState, State, index};
use crate::track::batch::Batch;
use crate::track::intervals::Intervals;

/// A semaphore that a submission has to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[doc(alias = "queueWaitForCommandList")]
pub struct Wait {
    /// The queue that signals it.
    pub queue: Queue,
    /// The number of its submission, as [`Submission::serial`] and [`Release::serial`] give it. The values of a
    /// timeline semaphore for each queue can be these numbers.
    pub serial: u64,
    /// The stages that wait.
    pub stages: Stages,
}

/// A submission to another queue that has to come first, because it gives resources away.
#[derive(Clone, Debug)]
pub struct Release {
    pub(super) queue: Queue,
    pub(super) serial: u64,
    pub(super) waits: Vec<Wait>,
    pub(super) batch: Batch,
}

impl Release {
    /// The queue that it goes to.
    #[must_use]
    pub fn queue(&self) -> Queue {
        self.queue
    }

    /// Its number on that queue.
    #[must_use]
    pub fn serial(&self) -> u64 {
        self.serial
    }

    /// What it waits for.
    #[must_use]
    pub fn waits(&self) -> &[Wait] {
        &self.waits
    }

    /// The barriers that it consists of.
    #[must_use]
    pub fn batch(&self) -> &Batch {
        &self.batch
    }
}

/// What [`Global::resolve`](super::Global::resolve) found. Keep it and pass it again: it keeps its room.
#[derive(Clone, Debug, Default)]
pub struct Submission {
    pub(super) serial: u64,
    pub(super) waits: Vec<Wait>,
    /// Those up to the counts are of this submission.
    pub(super) fronts: Vec<Batch>,
    pub(super) lists: usize,
    pub(super) releases: Vec<Release>,
    pub(super) released: usize,
    pub(super) journal: Journal,
}

/// What was before a submission, so that it can be revoked.
#[derive(Clone, Debug, Default)]
pub(super) struct Journal {
    wanted: bool,
    /// The number of the `Global` that was before.
    global: u32,
    /// Those up to `used` are of this submission: a slot, its states, and when it was used.
    saved: Vec<(u32, Intervals<State>, u64)>,
    used: usize,
    /// Bytes of a memory, and who held them.
    holders: Vec<(vk::DeviceMemory, u64, u64, Holder)>,
    queues: Vec<QueueState>,
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

    pub(super) fn start(&mut self, global: u32, queues: &[QueueState], sequence: u64) {
        (self.global, self.used) = (global, 0);
        self.holders.clear();
        if self.wanted {
            self.sequence = sequence;
            self.queues.resize_with(queues.len(), QueueState::default);
            self.queues.iter_mut().zip(queues).for_each(|(saved, queue)| saved.copy_from(queue));
        }
    }

    pub(super) fn save(&mut self, slot: u32, entry: &Entry) {
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

    /// Lets a resource hold bytes of a memory.
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

    /// Puts back what was. What was saved twice becomes what it was at first.
    pub(super) fn restore(
        &mut self,
        global: u32,
        entries: &mut [Entry],
        queues: &mut [QueueState],
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
    /// Empty.
    #[must_use]
    pub const fn new() -> Self {
        Self::with_journal(false)
    }

    /// Empty, and remembers what it changed: [`Global::revoke`](super::Global::revoke) takes it back, for a driver that
    /// refuses what was resolved.
    #[must_use]
    pub const fn revocable() -> Self {
        Self::with_journal(true)
    }

    const fn with_journal(wanted: bool) -> Self {
        Self {
            serial: 0,
            waits: Vec::new(),
            fronts: Vec::new(),
            lists: 0,
            releases: Vec::new(),
            released: 0,
            journal: Journal::new(wanted),
        }
    }

    /// Its number on its queue, from 1.
    #[must_use]
    pub fn serial(&self) -> u64 {
        self.serial
    }

    /// The barriers that have to be recorded in front of a list, or at the end of the list before it; none if there are
    /// none. Mostly only the first list has some: what the submission does not use before comes there.
    #[must_use]
    #[doc(alias = "FlushPendingResourceBarriers")]
    pub fn front(&self, list: usize) -> Option<&Batch> {
        self.fronts[..self.lists].get(list).filter(|batch| !batch.is_empty())
    }

    /// Semaphores that it has to wait for, one for each other queue at most.
    #[must_use]
    pub fn waits(&self) -> &[Wait] {
        &self.waits
    }

    /// Submissions to other queues that have to come first, one for each queue at most.
    #[must_use]
    pub fn releases(&self) -> &[Release] {
        &self.releases[..self.released]
    }

    pub(super) fn start(&mut self, serial: u64, lists: usize) {
        self.serial = serial;
        self.waits.clear();
        self.fronts.iter_mut().for_each(Batch::clear);
        if self.fronts.len() < lists {
            self.fronts.resize_with(lists, Batch::new);
        }
        (self.lists, self.released) = (lists, 0);
    }

    /// Adds a wait, and returns what is waited for of that queue altogether.
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
