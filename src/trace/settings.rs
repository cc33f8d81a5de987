//! The settings of pools, scopes and defragmentations, and the allocations from before the recording.

use std::time::Duration;

use super::event::{AllocationNumber, DefragmentationNumber, PoolNumber, ScopeNumber};
use crate::allocation::ResourceKind;
use crate::create_info::PoolParameters;
use crate::defragment::DefragmentationAlgorithm;

/// An allocation that existed when the recording began.
///
/// ```
/// use sublet::trace::{AllocationNumber, Existing};
/// let existing = Existing { size: 4096, ..Existing::new(AllocationNumber(0)) };
/// assert_eq!(existing.alignment, 1);
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Existing {
    /// Its number.
    pub allocation: AllocationNumber,
    /// Index of the memory type.
    pub memory_type: u32,
    /// True if the memory is dedicated.
    pub dedicated: bool,
    /// Its size in bytes, including rounding.
    pub size: u64,
    /// An alignment in bytes, at least the requested one.
    pub alignment: u64,
    /// The kind of resource.
    pub kind: ResourceKind,
    /// The lowest 23 bits of its `VkBufferUsageFlags` or `VkImageUsageFlags`; 0 if unknown.
    pub usage: u32,
    /// The pool that contains it.
    pub pool: Option<PoolNumber>,
    /// The scope that contains it.
    pub scope: Option<ScopeNumber>,
    /// Its user data, if the allocator tracks it.
    pub user_data: Option<u64>,
    /// Its name.
    pub name: Option<Box<str>>,
}

impl Existing {
    /// Returns one byte of memory type 0, of unknown use.
    #[must_use]
    pub fn new(allocation: AllocationNumber) -> Self {
        Self {
            allocation,
            memory_type: 0,
            dedicated: false,
            size: 1,
            alignment: 1,
            kind: ResourceKind::Unknown,
            usage: 0,
            pool: None,
            scope: None,
            user_data: None,
            name: None,
        }
    }
}

/// The settings of a pool: a [`PoolCreateInfo`](crate::PoolCreateInfo) with an owned name, and a flag in place of its
/// chain. For a pool from before the recording, the minimum alignment includes that of its memory type.
pub type PoolSettings = PoolParameters<Box<str>, bool>;

/// The settings of a scope: a [`ScopeCreateInfo`](crate::ScopeCreateInfo).
#[derive(Clone, PartialEq, Debug)]
pub struct ScopeSettings {
    /// The size of each block in bytes; 0 if the allocator chooses.
    pub block_size: u64,
    /// The priority of its blocks.
    pub priority: f32,
    /// Its name.
    pub name: Option<Box<str>>,
}

impl Default for ScopeSettings {
    fn default() -> Self {
        Self { block_size: 0, priority: 0.5, name: None }
    }
}

/// The settings of a defragmentation: a [`DefragmentationInfo`](crate::DefragmentationInfo).
///
/// ```
/// use sublet::trace::{BeginDefragmentation, DefragmentationNumber};
/// let begin = BeginDefragmentation::new(DefragmentationNumber(0));
/// assert!(begin.pools.is_empty());
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BeginDefragmentation {
    /// Its number.
    pub defragmentation: DefragmentationNumber,
    /// The algorithm.
    pub algorithm: DefragmentationAlgorithm,
    /// The pools.
    pub pools: Vec<PoolNumber>,
    /// The memory types, one bit each. 0 without pools means all.
    pub memory_type_bits: u32,
    /// The maximum of bytes to move in a pass; 0 for no limit.
    pub max_bytes_per_pass: u64,
    /// The maximum number of allocations to move in a pass; 0 for no limit.
    pub max_allocations_per_pass: u32,
    /// The maximum duration of planning a pass.
    pub max_time_per_pass: Option<Duration>,
}

impl BeginDefragmentation {
    /// Returns a defragmentation of everything, without limits.
    #[must_use]
    pub fn new(defragmentation: DefragmentationNumber) -> Self {
        Self {
            defragmentation,
            algorithm: DefragmentationAlgorithm::default(),
            pools: Vec::new(),
            memory_type_bits: 0,
            max_bytes_per_pass: 0,
            max_allocations_per_pass: 0,
            max_time_per_pass: None,
        }
    }
}

/// The outcome of a move.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum MoveOutcome {
    /// The allocation is at its new place.
    Completed,
    /// It stays at its place for the rest of the defragmentation.
    Ignored,
    /// It was freed.
    Freed,
    /// It stays at its place for now.
    RolledBack,
}
