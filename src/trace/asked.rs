//! What was asked of the allocator, and what it gave.
#![forbid(unsafe_code)]

use ash::vk;

use super::event::{AllocationNumber, PoolNumber, ScopeNumber};
use crate::allocation::ResourceKind;
use crate::create_info::{AllocationCreateFlags, MemoryUsage};

/// What a resource needs, as its driver said.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Needs {
    /// Bytes.
    pub size: u64,
    /// Bytes; a call that failed may have had one that is no power of two.
    pub alignment: u64,
    /// The memory types that will do, a bit for each.
    pub memory_type_bits: u32,
    /// The driver would rather have memory of its own for it.
    pub prefers_dedicated: bool,
    /// The driver has to have memory of its own for it.
    pub requires_dedicated: bool,
    /// What it is.
    pub kind: ResourceKind,
    /// The lowest 23 bits of its `VkBufferUsageFlags` or `VkImageUsageFlags`; 0 if they are not known.
    pub usage: u32,
    /// Whether the device does more with it than copy, which the `Auto` usages go by; `None` if that is not known.
    pub device_access: Option<bool>,
    /// Whether memory of its own needs a device address.
    pub device_address: bool,
}

impl Default for Needs {
    fn default() -> Self {
        Self {
            size: 1,
            alignment: 1,
            memory_type_bits: u32::MAX,
            prefers_dedicated: false,
            requires_dedicated: false,
            kind: ResourceKind::Unknown,
            usage: 0,
            device_access: None,
            device_address: false,
        }
    }
}

/// What the program asked for: an [`AllocationCreateInfo`](crate::AllocationCreateInfo).
#[derive(Clone, PartialEq, Debug)]
pub struct Wanted {
    /// The flags.
    pub flags: AllocationCreateFlags,
    /// What the memory is for.
    pub usage: MemoryUsage,
    /// What the memory type must have.
    pub required_flags: vk::MemoryPropertyFlags,
    /// What it should have.
    pub preferred_flags: vk::MemoryPropertyFlags,
    /// The memory types that the program allows; 0 for all.
    pub memory_type_bits: u32,
    /// The pool that it asked for. `None` as well if the pool was not one of the allocator: the call failed then.
    pub pool: Option<PoolNumber>,
    /// The scope that it asked for. `None` as well if the scope was not one of the allocator: the call failed then.
    pub scope: Option<ScopeNumber>,
    /// The priority.
    pub priority: f32,
    /// The least alignment, in bytes.
    pub min_alignment: u64,
    /// What the program keeps with it.
    pub user_data: u64,
    /// Its name.
    pub name: Option<Box<str>>,
    /// The program gave a chain for the `VkMemoryAllocateInfo`, which is not in the trace: an import or an export,
    /// mostly.
    pub has_chain: bool,
}

impl Default for Wanted {
    fn default() -> Self {
        Self {
            flags: AllocationCreateFlags::empty(),
            usage: MemoryUsage::Unknown,
            required_flags: vk::MemoryPropertyFlags::empty(),
            preferred_flags: vk::MemoryPropertyFlags::empty(),
            memory_type_bits: 0,
            pool: None,
            scope: None,
            priority: 0.5,
            min_alignment: 0,
            user_data: 0,
            name: None,
            has_chain: false,
        }
    }
}

/// What the program got.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Granted {
    /// Index of the memory type.
    pub memory_type: u32,
    /// Whether the memory is its own.
    pub dedicated: bool,
}

/// An allocation that was made.
#[derive(Clone, PartialEq, Debug)]
pub struct Allocate {
    /// Its number.
    pub allocation: AllocationNumber,
    /// What it is for.
    pub resource: Needs,
    /// How it was asked for.
    pub wanted: Wanted,
    /// What there was.
    pub granted: Granted,
}

/// An allocation that was not made.
#[derive(Clone, PartialEq, Debug)]
pub struct AllocateFailed {
    /// What it was for.
    pub resource: Needs,
    /// How it was asked for.
    pub wanted: Wanted,
    /// Why.
    pub failure: Failure,
}

/// Why an allocation was not made: which kind of [`AllocationError`](crate::AllocationError).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Failure {
    /// [`AllocationError::ZeroSize`](crate::AllocationError::ZeroSize).
    ZeroSize,
    /// [`AllocationError::Alignment`](crate::AllocationError::Alignment).
    Alignment,
    /// [`AllocationError::Priority`](crate::AllocationError::Priority).
    Priority,
    /// [`AllocationError::Contradiction`](crate::AllocationError::Contradiction).
    Contradiction,
    /// [`AllocationError::NoMemoryType`](crate::AllocationError::NoMemoryType).
    NoMemoryType,
    /// [`AllocationError::PoolMemoryType`](crate::AllocationError::PoolMemoryType).
    PoolMemoryType,
    /// [`AllocationError::ForeignPool`](crate::AllocationError::ForeignPool).
    ForeignPool,
    /// [`AllocationError::UpperAddress`](crate::AllocationError::UpperAddress).
    UpperAddress,
    /// [`AllocationError::UpperAddressInRing`](crate::AllocationError::UpperAddressInRing).
    UpperAddressInRing,
    /// [`AllocationError::BlockTooSmall`](crate::AllocationError::BlockTooSmall).
    BlockTooSmall,
    /// [`AllocationError::Full`](crate::AllocationError::Full).
    Full,
    /// [`AllocationError::Map`](crate::AllocationError::Map).
    Map,
    /// [`MemoryError::HeapTooSmall`](crate::MemoryError::HeapTooSmall).
    HeapTooSmall,
    /// [`MemoryError::HeapLimit`](crate::MemoryError::HeapLimit).
    HeapLimit,
    /// [`MemoryError::OverBudget`](crate::MemoryError::OverBudget).
    OverBudget,
    /// [`MemoryError::TooManyAllocations`](crate::MemoryError::TooManyAllocations).
    TooManyAllocations,
    /// [`MemoryError::Driver`](crate::MemoryError::Driver).
    Driver,
    /// [`MemoryError::AllocationTooLarge`](crate::MemoryError::AllocationTooLarge).
    AllocationTooLarge,
    /// One that this version does not know.
    Other,
}
