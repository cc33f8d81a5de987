//! Errors of reserving memory.

use ash::vk;

use super::{ForeignHandle, MemoryError};

/// The reason why memory could not be reserved. No block was created.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ReserveMemoryError {
    /// The memory type does not exist, or the allocator may not use it. Remedy: one of the allowed types.
    MemoryType {
        /// The given index.
        memory_type: u32,
        /// The allowed types, one bit each.
        allowed: u32,
    },
    /// The pool may not have so many blocks. The driver was not called. Remedy: fewer bytes, or a larger
    /// [`max_block_count`](crate::PoolCreateInfo::max_block_count).
    TooManyBlocks {
        /// Bytes of the missing blocks.
        bytes: u64,
        /// The number of missing blocks.
        blocks: u64,
        /// The number of blocks that the pool has.
        block_count: u32,
        /// The maximum number of blocks.
        max_block_count: u32,
    },
    /// The size of the heap, its limit, its budget or the driver does not allow it. If the driver was not called, the
    /// size in the error is that of all missing blocks.
    Memory(MemoryError),
    /// The pool belongs to another allocator, or was destroyed.
    Foreign(ForeignHandle),
}

impl ReserveMemoryError {
    /// The Vulkan result that describes the error best.
    pub fn vk_result(&self) -> vk::Result {
        match self {
            Self::MemoryType { .. } | Self::Foreign(_) => vk::Result::ERROR_UNKNOWN,
            Self::TooManyBlocks { .. } => vk::Result::ERROR_OUT_OF_DEVICE_MEMORY,
            Self::Memory(error) => error.vk_result(),
        }
    }
}

sublet_engines::errors! { ReserveMemoryError:
    MemoryType { memory_type, allowed } => "memory type {memory_type} is not among the allowed ones: {allowed:#b}";
    TooManyBlocks { bytes, blocks, block_count, max_block_count } =>
        "{bytes} bytes need {blocks} more blocks: the pool has {block_count} and may have {max_block_count}";
    Memory(error: MemoryError) => "{error}";
    Foreign(error: ForeignHandle) => "{error}";
}
