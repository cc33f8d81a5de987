//! Errors of allocating memory from the driver.

use ash::vk;

use crate::device::DriverError;

/// The reason why no `VkDeviceMemory` could be allocated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum MemoryError {
    /// The size exceeds the whole heap, or the program's limit on it. The driver was not called.
    HeapTooSmall {
        /// Requested bytes.
        size: u64,
        /// Index of the heap.
        heap: u32,
        /// Its size in bytes.
        heap_size: u64,
    },
    /// The heap would exceed the program's limit. The driver was not called.
    HeapLimit {
        /// Requested bytes.
        size: u64,
        /// Index of the heap.
        heap: u32,
        /// Bytes already in use.
        used: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// The heap would exceed its budget, and the request had `WITHIN_BUDGET`. The driver was not called.
    OverBudget {
        /// Requested bytes.
        size: u64,
        /// Index of the heap.
        heap: u32,
        /// Bytes in use.
        usage: u64,
        /// Bytes that may be in use.
        budget: u64,
    },
    /// The device does not allow so many `VkDeviceMemory` objects. The driver was not called.
    TooManyAllocations {
        /// `maxMemoryAllocationCount`.
        limit: u32,
    },
    /// The driver's call failed.
    Driver {
        /// Requested bytes.
        size: u64,
        /// Index of the memory type.
        memory_type: u32,
        /// Index of its heap.
        heap: u32,
        /// The call and its result.
        error: DriverError,
    },
}

impl MemoryError {
    /// The Vulkan result that VMA would return for this error.
    pub fn vk_result(&self) -> vk::Result {
        match self {
            Self::TooManyAllocations { .. } => vk::Result::ERROR_TOO_MANY_OBJECTS,
            Self::Driver { error, .. } => error.result,
            _ => vk::Result::ERROR_OUT_OF_DEVICE_MEMORY,
        }
    }

    /// Returns true if another memory type or a smaller block may succeed.
    pub(crate) fn is_shortage(&self) -> bool {
        !matches!(self, Self::Driver { error, .. } if !error.is_out_of_memory())
    }

    /// Returns true if the heap can never hold so many bytes under the requested limits, even if it is empty.
    pub(crate) fn is_permanent(&self) -> bool {
        match *self {
            Self::HeapTooSmall { .. } => true,
            Self::HeapLimit { size, limit, .. } => size > limit,
            Self::OverBudget { size, budget, .. } => size > budget,
            Self::TooManyAllocations { .. } | Self::Driver { .. } => false,
        }
    }
}

sublet_engines::errors! { MemoryError:
    HeapTooSmall { size, heap, heap_size } => "{size} bytes are more than heap {heap} has: {heap_size}";
    HeapLimit { size, heap, used, limit } =>
        "{size} bytes would pass the limit of heap {heap}: {used} of {limit} bytes are taken";
    OverBudget { size, heap, usage, budget } =>
        "{size} bytes would pass the budget of heap {heap}: {usage} of {budget} bytes are in use";
    TooManyAllocations { limit } => "the device allows {limit} memory allocations, which this would exceed";
    Driver { size, memory_type, heap, error } =>
        "the driver gave no {size} bytes of memory type {memory_type} in heap {heap}: {error}", error;
}
