//! What a vector is made with, and what is known of it without its lock.
#![forbid(unsafe_code)]

use crate::base::align::Alignment;
use crate::device::MemoryAllocateNext;
use crate::metadata::Algorithm;

/// As the most blocks of a vector: as many as there is memory for.
pub(crate) const NO_LIMIT: u32 = u32::MAX;

/// What a vector is made with. Of that, its priority and how many empty blocks it keeps may change later: then only the
/// vector knows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct VectorConfig {
    pub(crate) memory_type: u32,
    pub(crate) algorithm: Algorithm,
    /// Bytes of a block; the most of them if sizes are managed.
    pub(crate) block_size: u64,
    /// Bytes of the first block if sizes are managed; 0: as few halvings of the largest size as `growth` makes.
    pub(crate) first_block_size: u64,
    /// The program chose the size: every block has it, and nothing is dedicated.
    pub(crate) fixed_block_size: bool,
    pub(crate) min_blocks: u32,
    /// [`NO_LIMIT`] if there is none.
    pub(crate) max_blocks: u32,
    pub(crate) empty_blocks_kept: u32,
    /// An empty block stays only if there is no other block.
    pub(crate) keeps_only_last: bool,
    /// `bufferImageGranularity`, or 1 where it is ignored.
    pub(crate) granularity: Alignment,
    /// Every allocation is aligned to this at least.
    pub(crate) min_alignment: Alignment,
    pub(crate) priority: f32,
    pub(crate) next: MemoryAllocateNext,
    /// The number of the scope that it is a vector of.
    #[cfg_attr(not(feature = "trace"), allow(dead_code, reason = "only a recording looks at it"))]
    pub(crate) scope: Option<u32>,
}

impl VectorConfig {
    /// Whether the number of blocks is limited.
    pub(crate) fn is_limited(&self) -> bool {
        self.max_blocks != NO_LIMIT
    }

    /// The limit as create-infos and errors have it: 0 for none.
    pub(crate) fn max_block_count(&self) -> u32 {
        if self.is_limited() { self.max_blocks } else { 0 }
    }
}

/// What is known of a vector without its lock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct VectorFacts {
    /// Its number in the allocator.
    pub(crate) vector: u32,
    /// As it was made.
    pub(crate) config: VectorConfig,
    /// The most bytes that always share a block; what is larger may get dedicated memory. 0 where debug settings have
    /// something to do for every allocation.
    pub(crate) largest_shared: u64,
    /// `HOST_VISIBLE` and `NON_COHERENT` of the flags of an allocation, as the memory type has them.
    pub(crate) host: u8,
}
