//! The view of one descriptor pool, for debugging.

use ash::vk;

use super::counts::DescriptorCounts;

/// One `VkDescriptorPool` of [`PersistentSets`](super::PersistentSets) or [`TransientSets`](super::TransientSets), as
/// `walk_pools` reports it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct DescriptorPoolView {
    /// The pool. Use the handle only for identification.
    pub handle: vk::DescriptorPool,
    /// The number of sets that it was created for.
    pub sets: u32,
    /// The descriptors that it was created for.
    pub counts: DescriptorCounts,
    /// Sets that are allocated and not freed. Includes sets that wait for the GPU; in a transient pool, all sets since
    /// its last reset.
    pub live_sets: u32,
    /// The number of sets that it can still provide.
    pub free_sets: u32,
    /// The descriptors that remain for those sets.
    pub left: DescriptorCounts,
    /// The state of the pool.
    pub state: DescriptorPoolState,
}

/// The state of a descriptor pool.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum DescriptorPoolState {
    /// It provides sets, or is full.
    Open,
    /// It has no live sets, and is kept for reuse.
    Idle,
    /// It provides no sets until it is empty.
    Sealed,
    /// A transient pool that waits for the GPU as a whole.
    Waiting,
}
