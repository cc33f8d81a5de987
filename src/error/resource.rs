//! Why there is no buffer, image or memory type for one.
#![forbid(unsafe_code)]

use std::error::Error;
use std::fmt;

use ash::vk;

use super::allocation::{AllocationError, Contradiction};
use super::sharing::AliasError;
use crate::device::DriverError;
use crate::memory_type::NoMemoryType;

/// Why a buffer or image was not created. Nothing is left behind.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub enum CreateError {
    /// A buffer of zero bytes, or an image with an extent, level count or layer count of zero.
    ZeroExtent,
    /// A buffer of `size` bytes, and the device has none above `max`: its `maxBufferSize`
    /// ([`max_buffer_size`](crate::Allocator::max_buffer_size)). Divide it.
    BufferTooLarge {
        /// Bytes that were asked for.
        size: u64,
        /// The most bytes that a buffer may have.
        max: u64,
    },
    /// `SHADER_DEVICE_ADDRESS` usage, and the allocator was made without `BUFFER_DEVICE_ADDRESS`.
    DeviceAddress,
    /// The resource is sparse (`VK_BUFFER_CREATE_SPARSE_BINDING_BIT` or its twin): it has any number of pages, which
    /// `vkQueueBindSparse` puts into memory. Create it, allocate pages for it with
    /// [`allocate_memory_pages`](crate::Allocator::allocate_memory_pages), and bind them.
    Sparse,
    /// The image is disjoint (`VK_IMAGE_CREATE_DISJOINT_BIT`): each of its planes has requirements, and memory, of its
    /// own. Create it, [`allocate`](crate::Allocator::allocate_memory) for each plane what
    /// `VkImagePlaneMemoryRequirementsInfo` says, and [`bind`](crate::Allocator::bind_image_memory2) each with a
    /// `VkBindImagePlaneMemoryInfo`.
    Disjoint,
    /// The driver did not create the resource.
    Resource(DriverError),
    /// There is no memory for it.
    Allocation(AllocationError),
    /// The driver did not bind the memory to the resource.
    Bind(DriverError),
    /// The resource was to share memory, and cannot be where it was to be.
    Alias(AliasError),
}

fn too_large(f: &mut fmt::Formatter<'_>, size: u64, max: u64) -> fmt::Result {
    write!(f, "a buffer of {size} bytes is above maxBufferSize, which is {max} on this device")
}

impl CreateError {
    /// The Vulkan result that VMA would give for this.
    pub fn vk_result(&self) -> vk::Result {
        match self {
            Self::ZeroExtent | Self::DeviceAddress => vk::Result::ERROR_INITIALIZATION_FAILED,
            // What drivers answer that look at the limit.
            Self::BufferTooLarge { .. } => vk::Result::ERROR_OUT_OF_DEVICE_MEMORY,
            Self::Alias(_) => vk::Result::ERROR_VALIDATION_FAILED_EXT,
            Self::Disjoint | Self::Sparse => vk::Result::ERROR_FEATURE_NOT_PRESENT,
            Self::Resource(error) | Self::Bind(error) => error.result,
            Self::Allocation(error) => error.vk_result(),
        }
    }
}

impl fmt::Display for CreateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ZeroExtent => f.write_str("a size, extent, level count or layer count is zero"),
            Self::BufferTooLarge { size, max } => too_large(f, *size, *max),
            Self::DeviceAddress => f.write_str(
                "a buffer with a device address needs an allocator made with AllocatorCreateFlags::BUFFER_DEVICE_ADDRESS",
            ),
            Self::Sparse => f.write_str("the pages of a sparse resource are allocated and bound each on its own"),
            Self::Disjoint => f.write_str("the planes of a disjoint image have memory of their own, each"),
            Self::Resource(error) => write!(f, "the driver did not create the resource: {error}"),
            Self::Allocation(error) => write!(f, "there is no memory for the resource: {error}"),
            Self::Bind(error) => write!(f, "the memory was not bound: {error}"),
            Self::Alias(error) => write!(f, "the resource cannot be in that memory: {error}"),
        }
    }
}

impl Error for CreateError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Resource(error) | Self::Bind(error) => error.source(),
            Self::Allocation(error) => error.source(),
            Self::Alias(error) => error.source(),
            Self::ZeroExtent
            | Self::BufferTooLarge { .. }
            | Self::DeviceAddress
            | Self::Disjoint
            | Self::Sparse => None,
        }
    }
}

impl From<AllocationError> for CreateError {
    fn from(error: AllocationError) -> Self {
        Self::Allocation(error)
    }
}

impl From<AliasError> for CreateError {
    fn from(error: AliasError) -> Self {
        Self::Alias(error)
    }
}

/// Why a memory type was not found.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub enum FindMemoryTypeError {
    /// The flags exclude each other.
    Contradiction(Contradiction),
    /// No memory type will do.
    NoMemoryType(NoMemoryType),
    /// The image is disjoint: each of its planes has requirements of its own.
    Disjoint,
    /// A buffer of `size` bytes, and the device has none above `max`: its `maxBufferSize`
    /// ([`max_buffer_size`](crate::Allocator::max_buffer_size)).
    BufferTooLarge {
        /// Bytes that were asked for.
        size: u64,
        /// The most bytes that a buffer may have.
        max: u64,
    },
    /// The driver did not create the resource whose requirements were to be read.
    Resource(DriverError),
}

impl fmt::Display for FindMemoryTypeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Contradiction(what) => write!(f, "contradictory flags: {what}"),
            Self::NoMemoryType(error) => error.fmt(f),
            Self::Disjoint => {
                f.write_str("the planes of a disjoint image have requirements of their own, each")
            }
            Self::BufferTooLarge { size, max } => too_large(f, *size, *max),
            Self::Resource(error) => write!(f, "the driver did not create the resource: {error}"),
        }
    }
}

impl Error for FindMemoryTypeError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Contradiction(_) | Self::Disjoint | Self::BufferTooLarge { .. } => None,
            Self::NoMemoryType(error) => error.source(),
            Self::Resource(error) => error.source(),
        }
    }
}
