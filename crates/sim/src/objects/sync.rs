//! Fences, semaphores and events.

use ash::vk;

use crate::objects::handle_map::HandleMap;

/// Fences and semaphores of a device.
#[derive(Default)]
pub(crate) struct SyncState {
    pub(crate) fences: HandleMap<vk::Fence, Fence>,
    pub(crate) semaphores: HandleMap<vk::Semaphore, Semaphore>,
    /// Events, and whether they are set.
    pub(crate) events: HandleMap<vk::Event, bool>,
}

/// A `VkFence`.
#[derive(Debug)]
pub(crate) struct Fence {
    pub(crate) signaled: bool,
    /// The count of submissions that are not done and will signal it: at most one, if the program keeps the rules.
    pub(crate) pending: u32,
}

/// A `VkSemaphore`.
#[derive(Debug)]
pub(crate) struct Semaphore {
    pub(crate) kind: SemaphoreKind,
    /// The submission that signals it, if it is binary and nothing submitted waits for it yet.
    pub(crate) signaler: Option<u64>,
    /// The count of submissions that are not done and name it.
    pub(crate) pending: u32,
}

/// The two kinds of semaphore.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SemaphoreKind {
    /// True if it will be signaled when all that is submitted is done.
    Binary { signaled: bool },
    /// Its value, and the largest value that a submission is to give it.
    Timeline { value: u64, scheduled: u64 },
}

impl SyncState {
    /// The value of a timeline semaphore; `None` for others.
    pub(crate) fn timeline(&self, semaphore: vk::Semaphore) -> Option<u64> {
        match self.semaphores.get(&semaphore)?.kind {
            SemaphoreKind::Timeline { value, .. } => Some(value),
            SemaphoreKind::Binary { .. } => None,
        }
    }
}
