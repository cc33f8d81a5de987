//! The allocator for Vulkan.

mod allocation;
mod allocator;

use ash::vk;

use crate::{AllocationSizes, AllocatorDebugSettings, MemoryLocation};

pub use allocation::{Allocation, MappedAllocationSlab};
pub use allocator::Allocator;

/// The placement of an allocation.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub enum AllocationScheme {
    /// Dedicated memory of this buffer.
    DedicatedBuffer(vk::Buffer),
    /// Dedicated memory of this image.
    DedicatedImage(vk::Image),
    /// Part of a block or dedicated memory. The allocator decides.
    GpuAllocatorManaged,
}

/// A request to an [`Allocator`].
#[derive(Clone, Debug)]
pub struct AllocationCreateDesc<'a> {
    /// The name in reports.
    pub name: &'a str,
    /// The resource's requirements from Vulkan.
    pub requirements: vk::MemoryRequirements,
    /// The users of the memory.
    pub location: MemoryLocation,
    /// True for a buffer or an image with linear tiling, false for an image with optimal tiling.
    pub linear: bool,
    /// The placement of the memory.
    pub allocation_scheme: AllocationScheme,
}

/// The settings of a new [`Allocator`].
pub struct AllocatorCreateDesc {
    /// The instance.
    pub instance: ash::Instance,
    /// The device. It must outlive the allocator.
    pub device: ash::Device,
    /// The physical device of `device`.
    pub physical_device: vk::PhysicalDevice,
    /// Debug settings.
    pub debug_settings: AllocatorDebugSettings,
    /// True if the feature bufferDeviceAddress is enabled.
    pub buffer_device_address: bool,
    /// Block sizes.
    pub allocation_sizes: AllocationSizes,
}
