//! Errors of creating a pool.

use std::error::Error;
use std::fmt;

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

impl fmt::Display for CreatePoolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MemoryType { memory_type, allowed } => {
                write!(f, "memory type {memory_type} is not one of those that may be used: {allowed:#b}")
            }
            Self::BlockCounts { min, max } => write!(f, "at least {min} blocks are more than at most {max}"),
            Self::BlockSize { block_size, max } => {
                write!(f, "a block of {block_size} bytes is more than the {max} bytes that are possible")
            }
            Self::Alignment { alignment } => write!(f, "the alignment {alignment} is not a power of two"),
            Self::Priority { priority } => write!(f, "the priority {priority} is not between 0 and 1"),
            Self::TooMany => f.write_str("there are 2^32 pools, as many as can be numbered"),
            Self::Memory(error) => write!(f, "the pool has no memory for its first blocks: {error}"),
        }
    }
}

impl Error for CreatePoolError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Memory(error) => error.source(),
            _ => None,
        }
    }
}
