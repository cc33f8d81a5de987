//! Errors of creating a pool.

use ash::vk;

use super::memory::MemoryError;

/// The reason why a pool could not be created. Nothing is left behind.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub enum CreatePoolError {
    /// The memory type does not exist, or the allocator may not use it.
    MemoryType {
        /// The given memory type.
        memory_type: u32,
        /// A bit for each memory type that the allocator may use.
        allowed: u32,
    },
    /// The minimum number of blocks exceeds the maximum.
    BlockCounts {
        /// `min_block_count`.
        min: u32,
        /// `max_block_count`.
        max: u32,
    },
    /// The block size exceeds the heap, or an engine's limit.
    BlockSize {
        /// The given block size, in bytes.
        block_size: u64,
        /// The largest possible size, in bytes.
        max: u64,
    },
    /// The minimum alignment is not a power of two.
    Alignment {
        /// The given alignment, in bytes.
        alignment: u64,
    },
    /// The priority is not between 0.0 and 1.0.
    Priority {
        /// The given priority.
        priority: f32,
    },
    /// All 2^32 pool numbers are in use.
    TooMany,
    /// There is no memory for the first blocks.
    Memory(MemoryError),
}

impl CreatePoolError {
    /// The Vulkan result that VMA would return for this error.
    pub fn vk_result(&self) -> vk::Result {
        match self {
            Self::MemoryType { .. } => vk::Result::ERROR_FEATURE_NOT_PRESENT,
            Self::Memory(error) => error.vk_result(),
            Self::TooMany => vk::Result::ERROR_TOO_MANY_OBJECTS,
            Self::BlockSize { .. } => vk::Result::ERROR_OUT_OF_DEVICE_MEMORY,
            _ => vk::Result::ERROR_INITIALIZATION_FAILED,
        }
    }
}

sublet_engines::errors! { CreatePoolError:
    MemoryType { memory_type, allowed } =>
        "memory type {memory_type} is not one of those that may be used: {allowed:#b}";
    BlockCounts { min, max } => "at least {min} blocks are more than at most {max}";
    BlockSize { block_size, max } => "a block of {block_size} bytes is more than the {max} bytes that are possible";
    Alignment { alignment } => "the alignment {alignment} is not a power of two";
    Priority { priority } => "the priority {priority} is not between 0 and 1";
    TooMany => "there are 2^32 pools, as many as can be numbered";
    Memory(error) => "the pool has no memory for its first blocks: {error}";
}
