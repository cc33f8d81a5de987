//! Errors of beginning a defragmentation.

use std::error::Error;
use std::fmt;

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

impl fmt::Display for BeginDefragmentationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Foreign(error) => error.fmt(f),
            Self::Algorithm { algorithm } => {
                write!(f, "nothing can be moved in a pool that is {algorithm:?}")
            }
            Self::InProgress { memory_type, is_pool } => {
                let what = if *is_pool { "a pool" } else { "the default memory" };
                write!(f, "{what} of memory type {memory_type} is being defragmented already")
            }
        }
    }
}

impl Error for BeginDefragmentationError {}
