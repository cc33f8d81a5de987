//! Errors of beginning a defragmentation.

use ash::vk;

use super::access::ForeignHandle;
use crate::engine::Algorithm;

/// The reason why a defragmentation could not begin. Nothing was changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum BeginDefragmentationError {
    /// The pool belongs to another allocator, or was destroyed.
    Foreign(ForeignHandle),
    /// Nothing can be moved in a pool with this algorithm. A [`Linear`](Algorithm::Linear) pool depends on the order of
    /// its allocations. In a [`Buddy`](Algorithm::Buddy) pool, a free range only joins its neighbour of the same size.
    Algorithm {
        /// The pool's algorithm.
        algorithm: Algorithm,
    },
    /// Another defragmentation is active on the same memory type or pool, or the pool is in the list twice.
    InProgress {
        /// Index of the memory type.
        memory_type: u32,
        /// True if it is a pool, and not the default memory.
        is_pool: bool,
    },
}

impl BeginDefragmentationError {
    /// The Vulkan result that corresponds to this error; for a linear pool the one that VMA returns.
    pub fn vk_result(&self) -> vk::Result {
        match self {
            Self::Foreign(_) => vk::Result::ERROR_VALIDATION_FAILED_EXT,
            Self::Algorithm { .. } => vk::Result::ERROR_FEATURE_NOT_PRESENT,
            Self::InProgress { .. } => vk::Result::ERROR_INITIALIZATION_FAILED,
        }
    }
}

sublet_engines::errors! { BeginDefragmentationError:
    Foreign(error) => "{error}";
    Algorithm { algorithm } => "nothing can be moved in a pool that is {algorithm:?}";
    InProgress { memory_type, is_pool } =>
        "{} of memory type {memory_type} is being defragmented already"
            (if *is_pool { "a pool" } else { "the default memory" });
}
