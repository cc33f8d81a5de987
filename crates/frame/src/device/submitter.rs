//! Submission scratch memory and the state of submissions.

use std::collections::VecDeque;

use ash::vk;
use sublet::retire::Ticket;

use super::CommandPool;
use super::api::{SubmitScratch, SubmitSemaphore};
use crate::track::Submission;

#[derive(Default)]
struct QueueSubmissions {
    submitted: u64,
    /// Fences of submissions that are not known to be done; empty with timeline semaphores.
    fences: VecDeque<(u64, vk::Fence)>,
}

/// Reused between submissions. Its lock guards the queues.
pub(crate) struct Submitter {
    pub(crate) submission: Submission,
    pub(crate) scratch: SubmitScratch,
    pub(crate) commands: Vec<vk::CommandBuffer>,
    pub(crate) waits: Vec<SubmitSemaphore>,
    pub(crate) signals: Vec<SubmitSemaphore>,
    /// Tickets of the release submissions for the current submission.
    pub(crate) released: Vec<Ticket>,
    /// Command pools of the releases, until they are submitted.
    pub(crate) pools: VecDeque<CommandPool>,
}

impl Submitter {
    pub(crate) fn new() -> Self {
        Self {
            submission: Submission::revocable(),
            scratch: SubmitScratch::default(),
            commands: Vec::new(),
            waits: Vec::new(),
            signals: Vec::new(),
            released: Vec::new(),
            pools: VecDeque::new(),
        }
    }
}

/// The submissions of all queues, with their fences and semaphores. No other lock is taken while this one is held.
pub(crate) struct SubmissionState {
    queues: Vec<QueueSubmissions>,
    free_fences: Vec<vk::Fence>,
    free_semaphores: Vec<vk::Semaphore>,
    /// Binary semaphores that are signaled but will not be waited for. They cannot be reused.
    spoiled: Vec<vk::Semaphore>,
}

impl SubmissionState {
    pub(crate) fn new(queues: usize) -> Self {
        Self {
            queues: (0..queues).map(|_| QueueSubmissions::default()).collect(),
            free_fences: Vec::new(),
            free_semaphores: Vec::new(),
            spoiled: Vec::new(),
        }
    }

    pub(crate) fn submitted(&self) -> impl Iterator<Item = u64> + '_ {
        self.queues.iter().map(|queue| queue.submitted)
    }

    pub(crate) fn enter(&mut self, queue: usize, serial: u64, fence: vk::Fence) {
        self.queues[queue].submitted = serial;
        if fence != vk::Fence::null() {
            self.queues[queue].fences.push_back((serial, fence));
        }
    }

    /// Returns the fence that signals the end of a submission; `None` if the submission is known to be done.
    pub(crate) fn fence_of(&self, queue: usize, serial: u64) -> Option<vk::Fence> {
        let later = |&&(of, _): &&(u64, vk::Fence)| of >= serial;
        self.queues[queue].fences.iter().find(later).map(|&(_, fence)| fence)
    }

    pub(crate) fn oldest_fence(&self, queue: usize) -> Option<(u64, vk::Fence)> {
        self.queues[queue].fences.front().copied()
    }

    /// Removes the oldest fence of a queue, and recycles it if it was reset.
    pub(crate) fn take_fence(&mut self, queue: usize, reset: bool) {
        let fence = self.queues[queue].fences.pop_front();
        self.free_fences.extend(fence.map(|(_, fence)| fence).filter(|_| reset));
    }

    pub(crate) fn free_counts(&self) -> (usize, usize) {
        (self.free_fences.len(), self.free_semaphores.len())
    }

    pub(crate) fn free_fence(&mut self) -> Option<vk::Fence> {
        self.free_fences.pop()
    }

    /// Recycles a fence that is neither signaled nor submitted.
    pub(crate) fn recycle_fence(&mut self, fence: vk::Fence) {
        self.free_fences.extend((fence != vk::Fence::null()).then_some(fence));
    }

    pub(crate) fn free_semaphore(&mut self) -> Option<vk::Semaphore> {
        self.free_semaphores.pop()
    }

    /// Recycles a binary semaphore that is not signaled.
    pub(crate) fn recycle_semaphore(&mut self, semaphore: vk::Semaphore) {
        self.free_semaphores.push(semaphore);
    }

    pub(crate) fn spoil(&mut self, semaphore: vk::Semaphore) {
        self.spoiled.push(semaphore);
    }

    /// Removes all objects that are to be destroyed.
    pub(crate) fn take_objects(&mut self) -> (Vec<vk::Fence>, Vec<vk::Semaphore>) {
        let mut fences = std::mem::take(&mut self.free_fences);
        fences
            .extend(self.queues.iter_mut().flat_map(|queue| queue.fences.drain(..)).map(|(_, fence)| fence));
        let mut semaphores = std::mem::take(&mut self.free_semaphores);
        semaphores.append(&mut self.spoiled);
        (fences, semaphores)
    }
}
