//! Results of an allocator, in terms that both sides have.

use ash::vk;
use sublet::{AllocationError, Contradiction, DefragmentationAlgorithm};

use super::program::{PoolSpec, ProgramResource, Spec};
use super::tap::Tap;

/// An allocation as its holder sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Placement {
    pub(super) memory: vk::DeviceMemory,
    pub(super) memory_type: u32,
    pub(super) offset: u64,
    pub(super) size: u64,
    pub(super) dedicated: bool,
    pub(super) mapped: bool,
}

/// The reason for a failure. Only Sublet reports one.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Why {
    /// VMA reports only the result.
    Unsaid,
    Allocation(AllocationError),
    /// Another error of an operation with only a few.
    Other(&'static str),
}

impl Why {
    pub(super) fn contradiction(self) -> Option<Contradiction> {
        match self {
            Self::Allocation(AllocationError::Contradiction(what)) => Some(what),
            _ => None,
        }
    }
}

/// A failed operation.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct FailedOperation {
    pub(super) result: vk::Result,
    pub(super) why: Why,
}

/// Figures of a heap.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct HeapFigures {
    pub(super) usage: u64,
    pub(super) budget: u64,
    pub(super) blocks: u64,
    pub(super) block_bytes: u64,
    pub(super) allocations: u64,
    pub(super) allocation_bytes: u64,
}

/// Figures of a pool.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct PoolFigures {
    pub(super) blocks: u64,
    pub(super) block_bytes: u64,
    pub(super) allocations: u64,
}

/// The settings of a defragmentation.
#[derive(Clone, Copy, Debug)]
pub(super) struct CompactionSettings {
    pub(super) algorithm: DefragmentationAlgorithm,
    /// The pool, or `None` for all default vectors.
    pub(super) pool: Option<usize>,
    /// 0 for no limit; here and below.
    pub(super) max_bytes: u64,
    pub(super) max_moves: u32,
}

/// The result of a defragmentation.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Compacted {
    pub(super) passes: u64,
    pub(super) moves: u64,
    pub(super) bytes_moved: u64,
    pub(super) bytes_freed: u64,
    /// Maximum bytes and moves of a pass.
    pub(super) largest_pass: (u64, u64),
}

/// One side. Allocations and pools are stored in slots, which the caller numbers.
pub(super) trait Side {
    fn tap(&self) -> &Tap;
    fn create_pool(&mut self, slot: usize, spec: &PoolSpec) -> Result<(), FailedOperation>;
    fn destroy_pool(&mut self, slot: usize);
    fn allocate(
        &mut self,
        slot: usize,
        resource: &ProgramResource,
        spec: &Spec,
        pool: Option<usize>,
    ) -> Result<Placement, FailedOperation>;
    fn free(&mut self, slot: usize);
    fn map(&mut self, slot: usize) -> Result<(), FailedOperation>;
    fn unmap(&mut self, slot: usize);
    fn make_visible(
        &mut self,
        slot: usize,
        offset: u64,
        size: u64,
        invalidate: bool,
    ) -> Result<(), FailedOperation>;
    /// Returns the current place of the allocation.
    fn place(&self, slot: usize) -> Placement;
    fn find(&mut self, resource: &ProgramResource, spec: &Spec) -> Result<u32, FailedOperation>;
    fn set_frame(&mut self);
    fn heaps(&mut self) -> Vec<HeapFigures>;
    fn pool_figures(&mut self, slot: usize) -> PoolFigures;
    /// Checks its own invariants.
    fn validate(&self);
    /// Destroys the allocator, which must be empty.
    fn finish(self) -> Vec<String>
    where
        Self: Sized;
    /// Defragments until nothing is left to move. Nothing is bound to moved allocations.
    fn compact(&mut self, how: &CompactionSettings) -> Compacted;
}
