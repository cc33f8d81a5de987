//! One descriptor pool, as whoever allocates from it shows it.
#![forbid(unsafe_code)]

use ash::vk;

use super::counts::DescriptorCounts;

/// One `VkDescriptorPool` of [`PersistentSets`](super::PersistentSets) or [`TransientSets`](super::TransientSets), as
/// their `walk_pools` shows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct DescriptorPoolView {
    /// The pool, for naming alone.
    pub handle: vk::DescriptorPool,
    /// Sets that it was made for.
    pub sets: u32,
    /// Descriptors that it was made for.
    pub counts: DescriptorCounts,
    /// Sets that were allocated and not freed. Those that wait for the GPU are among them, and in a pool of recordings
    /// all since its last reset.
    pub live_sets: u32,
    /// Sets that it still gives.
    pub free_sets: u32,
    /// Descriptors that are left for those.
    pub left: DescriptorCounts,
    /// What it waits for.
    pub state: DescriptorPoolState,
}

/// What a descriptor pool does.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum DescriptorPoolState {
    /// Sets come from it, or it is full.
    Open,
    /// It has no live sets, and is kept.
    Idle,
    /// Nothing comes from it until it is empty.
    Sealed,
    /// A pool of recordings, which waits for the GPU as a whole.
    Waiting,
}
