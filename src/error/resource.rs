//! Errors of creating a buffer or an image, and of finding a memory type for one.

use ash::vk;

use super::allocation::{AllocationError, Contradiction};
use super::sharing::AliasError;
use crate::device::DriverError;
use crate::memory_type::NoMemoryType;

/// The reason why a buffer or image could not be created. Nothing is left behind.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub enum CreateError {
    /// A buffer of zero bytes, or an image with an extent, level count or layer count of zero.
    ZeroExtent,
    /// The buffer is larger than `maxBufferSize` of the device
    /// ([`max_buffer_size`](crate::Allocator::max_buffer_size)). Remedy: divide it.
    BufferTooLarge {
        /// Requested bytes.
        size: u64,
        /// The maximum size of a buffer, in bytes.
        max: u64,
    },
    /// The buffer has the usage `SHADER_DEVICE_ADDRESS`, but the allocator was created without `BUFFER_DEVICE_ADDRESS`.
    DeviceAddress,
    /// The resource is sparse (`VK_BUFFER_CREATE_SPARSE_BINDING_BIT` or `VK_IMAGE_CREATE_SPARSE_BINDING_BIT`):
    /// `vkQueueBindSparse` binds its pages. Remedy: create it, allocate pages for it with
    /// [`allocate_memory_pages`](crate::Allocator::allocate_memory_pages), and bind them.
    Sparse,
    /// The image is disjoint (`VK_IMAGE_CREATE_DISJOINT_BIT`): each of its planes has its own requirements and memory.
    /// Remedy: create it, query the requirements of each plane with `VkImagePlaneMemoryRequirementsInfo`,
    /// [`allocate`](crate::Allocator::allocate_memory) memory for it, and
    /// [`bind`](crate::Allocator::bind_image_memory2) that with a `VkBindImagePlaneMemoryInfo`.
    Disjoint,
    /// The driver did not create the resource.
    Resource(DriverError),
    /// The memory could not be allocated.
    Allocation(AllocationError),
    /// The driver did not bind the memory to the resource.
    Bind(DriverError),
    /// The resource cannot share that memory at that offset.
    Alias(AliasError),
}

impl CreateError {
    /// The Vulkan result that VMA would return for this error.
    pub fn vk_result(&self) -> vk::Result {
        match self {
            Self::ZeroExtent | Self::DeviceAddress => vk::Result::ERROR_INITIALIZATION_FAILED,
            // Drivers that check the limit return this.
            Self::BufferTooLarge { .. } => vk::Result::ERROR_OUT_OF_DEVICE_MEMORY,
            Self::Alias(_) => vk::Result::ERROR_VALIDATION_FAILED_EXT,
            Self::Disjoint | Self::Sparse => vk::Result::ERROR_FEATURE_NOT_PRESENT,
            Self::Resource(error) | Self::Bind(error) => error.result,
            Self::Allocation(error) => error.vk_result(),
        }
    }
}

sublet_engines::errors! { CreateError:
    ZeroExtent => "a size, extent, level count or layer count is zero";
    BufferTooLarge { size, max } => "a buffer of {size} bytes is above maxBufferSize, which is {max} on this device";
    DeviceAddress =>
        "a buffer with a device address needs an allocator made with AllocatorCreateFlags::BUFFER_DEVICE_ADDRESS";
    Sparse => "a sparse resource has no memory of its own: allocate and bind its pages";
    Disjoint => "a disjoint image has memory for each plane: allocate and bind its planes";
    Resource(error) => "the driver did not create the resource: {error}";
    Allocation(error: AllocationError) => "there is no memory for the resource: {error}";
    Bind(error) => "the memory was not bound: {error}";
    Alias(error: AliasError) => "the resource cannot be in that memory: {error}";
}

/// The reason why no memory type was found.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub enum FindMemoryTypeError {
    /// The flags exclude each other.
    Contradiction(Contradiction),
    /// No memory type fits.
    NoMemoryType(NoMemoryType),
    /// The image is disjoint: each of its planes has its own requirements.
    Disjoint,
    /// The buffer is larger than `maxBufferSize` of the device
    /// ([`max_buffer_size`](crate::Allocator::max_buffer_size)).
    BufferTooLarge {
        /// Requested bytes.
        size: u64,
        /// The maximum size of a buffer, in bytes.
        max: u64,
    },
    /// The driver did not create the resource for the query of requirements.
    Resource(DriverError),
}

sublet_engines::errors! { FindMemoryTypeError:
    Contradiction(what) => "contradictory flags: {what}";
    NoMemoryType(error) => "{error}";
    Disjoint => "a disjoint image has requirements for each plane: query those of its planes";
    BufferTooLarge { size, max } => "a buffer of {size} bytes is above maxBufferSize, which is {max} on this device";
    Resource(error) => "the driver did not create the resource: {error}";
}
