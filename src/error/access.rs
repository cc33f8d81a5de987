//! Errors of mapping and binding, and of handles that belong to another allocator.

use ash::vk;

use crate::device::DriverError;

/// A pool or an allocation was passed to an allocator that did not create it, or that has already destroyed its pool.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ForeignHandle {
    /// A pool.
    Pool,
    /// An allocation.
    Allocation,
}

sublet_engines::errors! { ForeignHandle:
    Pool => "the pool is of another allocator, or was destroyed";
    Allocation => "the allocation is of another allocator, or its pool was destroyed";
}

/// The reason why an allocation cannot be mapped, flushed, or copied to or from.
///
/// ```
/// # use sublet::*; use ash::vk;
/// # let (gpu, allocator) = sublet::doc_example();
/// # let requirements = vk::MemoryRequirements { size: 4096, alignment: 256, memory_type_bits: !0 };
/// # let allocation = allocator.allocate_memory(&requirements, &AllocationCreateInfo::default())?;
/// let error = allocator.flush(&allocation, 4000, 200).unwrap_err();
/// assert_eq!(error, MapError::OutOfRange { offset: 4000, size: 200, allocation_size: 4096 });
/// # unsafe { allocator.free_memory(allocation) }?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum MapError {
    /// The memory type is not host-visible.
    NotHostVisible {
        /// The memory type.
        memory_type: u32,
    },
    /// The allocation was made with an `Auto` usage and no `HOST_ACCESS` flag.
    NoHostAccess,
    /// The range is not inside the allocation. `vk::WHOLE_SIZE` means everything after the offset.
    OutOfRange {
        /// Start of the range, in bytes from the start of the allocation.
        offset: u64,
        /// Its length in bytes.
        size: u64,
        /// Bytes of the allocation.
        allocation_size: u64,
    },
    /// The allocation belongs to another allocator, or its pool was destroyed.
    Foreign(ForeignHandle),
    /// The allocation is not mapped, or no longer mapped.
    NotMapped,
    /// Mapped memory would exceed [`AllocatorCreateInfo::max_mapped_size`](crate::AllocatorCreateInfo::max_mapped_size).
    /// The driver was not called.
    AddressSpace {
        /// Bytes to map: those of the whole `VkDeviceMemory` that holds the allocation.
        size: u64,
        /// Bytes already mapped.
        mapped: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// The driver's call failed.
    Driver(DriverError),
}

impl MapError {
    /// Returns true if memory that is not mapped may do.
    pub(crate) fn is_shortage(&self) -> bool {
        match self {
            Self::AddressSpace { .. } => true,
            Self::Driver(error) => error.is_out_of_memory() || self.is_out_of_addresses(),
            _ => false,
        }
    }

    /// Returns true if unmapping other memory may help.
    pub(crate) fn is_out_of_addresses(&self) -> bool {
        match self {
            Self::AddressSpace { size, limit, .. } => size <= limit,
            Self::Driver(error) => error.result == vk::Result::ERROR_MEMORY_MAP_FAILED,
            _ => false,
        }
    }

    /// The Vulkan result that corresponds to this error.
    pub fn vk_result(&self) -> vk::Result {
        match self {
            Self::Driver(error) => error.result,
            Self::OutOfRange { .. } | Self::Foreign(_) => vk::Result::ERROR_VALIDATION_FAILED_EXT,
            _ => vk::Result::ERROR_MEMORY_MAP_FAILED,
        }
    }
}

sublet_engines::errors! { MapError:
    NotHostVisible { memory_type } => "memory type {memory_type} is not host-visible";
    NoHostAccess =>
        "the allocation was made without host access: an automatic usage needs a HOST_ACCESS flag to be mapped";
    OutOfRange { offset, size, allocation_size } =>
        "{size} bytes from {offset} on are not inside an allocation of {allocation_size} bytes";
    Foreign(error: ForeignHandle) => "{error}";
    NotMapped => "the allocation is not mapped";
    AddressSpace { size, mapped, limit } =>
        "mapping {size} bytes would exceed the limit of {limit} mapped bytes: {mapped} are mapped";
    Driver(error: DriverError) => "{error}";
}

/// The reason why a resource could not be bound.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum BindError {
    /// The offset is not inside the allocation.
    OutOfRange {
        /// Bytes from the start of the allocation.
        offset: u64,
        /// Bytes of the allocation.
        allocation_size: u64,
    },
    /// The allocation belongs to another allocator.
    Foreign(ForeignHandle),
    /// There is a chain, but the device has neither Vulkan 1.1 nor VK_KHR_bind_memory2.
    ExtensionNotPresent,
    /// The driver's call failed.
    Driver(DriverError),
}

impl BindError {
    /// The Vulkan result that VMA would return for this error.
    pub fn vk_result(&self) -> vk::Result {
        match self {
            Self::Driver(error) => error.result,
            Self::ExtensionNotPresent => vk::Result::ERROR_EXTENSION_NOT_PRESENT,
            _ => vk::Result::ERROR_VALIDATION_FAILED_EXT,
        }
    }
}

sublet_engines::errors! { BindError:
    OutOfRange { offset, allocation_size } => "offset {offset} is not inside an allocation of {allocation_size} bytes";
    Foreign(error) => "{error}";
    ExtensionNotPresent => "a chain for binding needs Vulkan 1.1 or VK_KHR_bind_memory2";
    Driver(error: DriverError) => "the memory was not bound: {error}";
}
