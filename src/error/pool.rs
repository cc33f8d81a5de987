//! Errors of creating a pool.
#![forbid(unsafe_code)]

use std::error::Error;
use std::fmt;

use ash::vk;

use super::memory::MemoryError;

/// Why a pool could not be created. Nothing is left behind.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub enum CreatePoolError {
    /// There is no such memory type, or the allocator may not use it.
    MemoryType {
        /// What was given.
        memory_type: u32,
        /// A bit for each memory type that the allocator may use.
        allowed: u32,
    },
    /// The least number of blocks exceeds the greatest.
    BlockCounts {
        /// `min_block_count`.
        min: u32,
        /// `max_block_count`.
        max: u32,
    },
    /// The block size exceeds the heap, or what an engine can divide.
    BlockSize {
        /// The block size that was given, in bytes.
        block_size: u64,
        /// The most that is possible, in bytes.
        max: u64,
    },
    /// The minimum alignment is not a power of two.
    Alignment {
        /// The alignment that was given, in bytes.
        alignment: u64,
    },
    /// The priority is not between 0.0 and 1.0.
    Priority {
        /// What was given.
        priority: f32,
    },
    /// There are 2^32 pools, as many as can be numbered.
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
