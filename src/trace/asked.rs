//! The requests to the allocator, and their results.

use ash::vk;

use super::event::{AllocationNumber, PoolNumber, ScopeNumber};
use crate::allocation::ResourceKind;
use crate::create_info::{AllocationCreateFlags, MemoryUsage};

/// The memory requirements of a resource, as the driver reported them.
///
/// ```
/// # use sublet::trace::Needs; use sublet::*;
/// # let (gpu, allocator) = sublet::doc_example();
/// let needs = Needs { device_access: Some(true), ..Needs::default() };
/// let found = needs.memory_type(&allocator, AllocationCreateFlags::HOST_ACCESS_RANDOM);
/// assert_eq!(found, Some(0), "this device has one memory type");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Needs {
    /// The size in bytes.
    pub size: u64,
    /// The alignment in bytes. If the call failed, it may not be a power of two.
    pub alignment: u64,
    /// The memory types that the resource supports, one bit each.
    pub memory_type_bits: u32,
    /// The driver prefers dedicated memory for the resource.
    pub prefers_dedicated: bool,
    /// The driver requires dedicated memory for the resource.
    pub requires_dedicated: bool,
    /// The kind of resource.
    pub kind: ResourceKind,
    /// The lowest 23 bits of its `VkBufferUsageFlags` or `VkImageUsageFlags`; 0 if unknown.
    pub usage: u32,
    /// True if the device does more with it than copy, which affects the `Auto` usages; `None` if unknown.
    pub device_access: Option<bool>,
    /// True if dedicated memory for it needs a device address.
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

/// The request of the program: an [`AllocationCreateInfo`](crate::AllocationCreateInfo).
#[derive(Clone, PartialEq, Debug)]
pub struct Wanted {
    /// The flags.
    pub flags: AllocationCreateFlags,
    /// The memory usage.
    pub usage: MemoryUsage,
    /// Properties that the memory type must have.
    pub required_flags: vk::MemoryPropertyFlags,
    /// Properties that it should have.
    pub preferred_flags: vk::MemoryPropertyFlags,
    /// The memory types that the program allows; 0 for all.
    pub memory_type_bits: u32,
    /// The requested pool. Also `None` if the pool belonged to another allocator, which makes the call fail.
    pub pool: Option<PoolNumber>,
    /// The requested scope. Also `None` if the scope belonged to another allocator, which makes the call fail.
    pub scope: Option<ScopeNumber>,
    /// The priority.
    pub priority: f32,
    /// The minimum alignment in bytes.
    pub min_alignment: u64,
    /// Its user data.
    pub user_data: u64,
    /// Its name.
    pub name: Option<Box<str>>,
    /// True if the program gave a chain for the `VkMemoryAllocateInfo`, for example for an import or an export. The
    /// trace does not contain the chain.
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

/// The result of an allocation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct GrantedMemory {
    /// Index of the memory type.
    pub memory_type: u32,
    /// True if the memory is dedicated.
    pub dedicated: bool,
}

/// A successful allocation.
#[derive(Clone, PartialEq, Debug)]
pub struct Allocate {
    /// Its number.
    pub allocation: AllocationNumber,
    /// Its resource.
    pub resource: Needs,
    /// The request of the program.
    pub wanted: Wanted,
    /// The result.
    pub granted: GrantedMemory,
}

/// A failed allocation.
#[derive(Clone, PartialEq, Debug)]
pub struct AllocateFailed {
    /// Its resource.
    pub resource: Needs,
    /// The request of the program.
    pub wanted: Wanted,
    /// The kind of error.
    pub failure: Failure,
}

/// The kind of an [`AllocationError`](crate::AllocationError).
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
    /// The request was above `maxMemoryAllocationSize`. Only in recordings of old versions, which did not call the
    /// driver.
    AllocationTooLarge,
    /// A kind that this version does not support.
    Other,
}
