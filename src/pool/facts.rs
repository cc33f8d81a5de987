//! The configuration of a vector, and its constant properties, which are readable without its lock.

use crate::device::{DriverAllocation, MemoryAllocateNext};
use crate::engine::Algorithm;
use crate::vector::policy::LiveGrowth;
use sublet_engines::Alignment;

/// The maximum number of blocks of a vector without a limit.
pub(crate) const NO_LIMIT: u32 = u32::MAX;

/// The configuration of a vector. Its priority and the number of kept empty blocks may change later; only the vector
/// has the new values.
#[derive(Clone, Copy, Debug)]
pub(crate) struct VectorConfig {
    pub(crate) memory_type: u32,
    pub(crate) algorithm: Algorithm,
    /// Bytes of a block; of the largest block if the allocator chooses the sizes.
    pub(crate) block_size: u64,
    /// The sizes of new blocks, unless `fixed_block_size` is set.
    pub(crate) sizing: BlockSizing,
    /// The program chose the size: every block has it, and nothing is dedicated.
    pub(crate) fixed_block_size: bool,
    pub(crate) min_blocks: u32,
    /// [`NO_LIMIT`] if there is none.
    pub(crate) max_blocks: u32,
    pub(crate) empty_blocks_kept: u32,
    /// An empty block stays only if there is no other block. Requests fill the last of a few blocks first.
    pub(crate) keeps_only_last: bool,
    /// `bufferImageGranularity`, or 1 if it is ignored.
    pub(crate) granularity: Alignment,
    /// The minimum alignment of every allocation.
    pub(crate) min_alignment: Alignment,
    pub(crate) priority: f32,
    pub(crate) next: MemoryAllocateNext,
    /// The number of the scope that the vector belongs to.
    #[cfg_attr(not(feature = "trace"), allow(dead_code, reason = "only a recording looks at it"))]
    pub(crate) scope: Option<u32>,
}

/// The rule for the sizes of new blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum BlockSizing {
    /// VMA's rule: sizes double from an eighth of `block_size`, and a request above half of `block_size` gets dedicated
    /// memory even if a block has room.
    Vma,
    /// The first block has `first` bytes, and each further one twice as much. A request above the size of the next block
    /// gets dedicated memory if no block has room. gpu-allocator's rule.
    Doubling { first: u64 },
    /// Sizes follow the bytes in use.
    Live(LiveGrowth),
}

impl VectorConfig {
    /// Returns true if the number of blocks is limited.
    pub(crate) fn is_limited(&self) -> bool {
        self.max_blocks != NO_LIMIT
    }

    /// The limit as in create-infos and errors: 0 means none.
    pub(crate) fn max_block_count(&self) -> u32 {
        if self.is_limited() { self.max_blocks } else { 0 }
    }

    /// The memory of a block of `size` bytes.
    pub(crate) fn block(&self, size: u64) -> DriverAllocation {
        DriverAllocation {
            size,
            memory_type: self.memory_type,
            priority: Some(self.priority),
            device_address: true,
            dedicated_to: None,
            next: self.next.get(),
        }
    }
}

/// Properties of a vector that are readable without its lock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct VectorFacts {
    /// Its number in the allocator.
    pub(crate) vector: u32,
    /// Its initial configuration.
    pub(crate) config: VectorConfig,
    /// Allocations of at most this many bytes always share a block; larger ones may get dedicated memory. 0 if
    /// every allocation needs the slow path.
    pub(crate) largest_shared: u64,
    /// The flags `HOST_VISIBLE` and `NON_COHERENT` of an allocation, for this memory type.
    pub(crate) host: u8,
}
