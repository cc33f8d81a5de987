//! Errors of mapping and binding, and of handles that belong to another allocator.

use std::error::Error;
use std::fmt;

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

impl fmt::Display for ForeignHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pool => "the pool is of another allocator, or was destroyed",
            Self::Allocation => "the allocation is of another allocator, or its pool was destroyed",
        })
    }
}

impl Error for ForeignHandle {}

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
    /// The driver's call failed.
    Driver(DriverError),
}

impl MapError {
    /// The Vulkan result that corresponds to this error.
    pub fn vk_result(&self) -> vk::Result {
        match self {
            Self::Driver(error) => error.result,
            Self::OutOfRange { .. } | Self::Foreign(_) => vk::Result::ERROR_VALIDATION_FAILED_EXT,
            _ => vk::Result::ERROR_MEMORY_MAP_FAILED,
        }
    }
}

impl fmt::Display for MapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotHostVisible { memory_type } => {
                write!(f, "memory type {memory_type} is not host-visible")
            }
            Self::NoHostAccess => f.write_str(
                "the allocation was made without host access: an automatic usage needs a HOST_ACCESS flag to be mapped",
            ),
            Self::OutOfRange { offset, size, allocation_size } => {
                write!(
                    f,
                    "{size} bytes from {offset} on are not inside an allocation of {allocation_size} bytes"
                )
            }
            Self::Foreign(error) => error.fmt(f),
            Self::NotMapped => f.write_str("the allocation is not mapped"),
            Self::Driver(error) => error.fmt(f),
        }
    }
}

impl Error for MapError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Driver(error) => error.source(),
            _ => None,
        }
    }
}

impl From<DriverError> for MapError {
    fn from(error: DriverError) -> Self {
        Self::Driver(error)
    }
}

impl From<ForeignHandle> for MapError {
    fn from(error: ForeignHandle) -> Self {
        Self::Foreign(error)
    }
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

impl fmt::Display for BindError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OutOfRange { offset, allocation_size } => {
                write!(f, "offset {offset} is not inside an allocation of {allocation_size} bytes")
            }
            Self::Foreign(error) => error.fmt(f),
            Self::ExtensionNotPresent => {
                f.write_str("a chain for binding needs Vulkan 1.1 or VK_KHR_bind_memory2")
            }
            Self::Driver(error) => write!(f, "the memory was not bound: {error}"),
        }
    }
}

impl Error for BindError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Driver(error) => error.source(),
            _ => None,
        }
    }
}

impl From<DriverError> for BindError {
    fn from(error: DriverError) -> Self {
        Self::Driver(error)
    }
}
