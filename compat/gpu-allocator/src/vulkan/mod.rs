//! The allocator for Vulkan.

mod allocation;
mod allocator;

use ash::vk;

use crate::{AllocationSizes, AllocatorDebugSettings, MemoryLocation};

pub use allocation::{Allocation, MappedAllocationSlab};
pub use allocator::Allocator;

/// Whose memory it is.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub enum AllocationScheme {
    /// The buffer's own.
    DedicatedBuffer(vk::Buffer),
    /// The image's own.
    DedicatedImage(vk::Image),
    /// Part of a block, or its own, as the allocator sees fit.
    GpuAllocatorManaged,
}

/// What is asked of an [`Allocator`].
#[derive(Clone, Debug)]
pub struct AllocationCreateDesc<'a> {
    /// Shown in reports.
    pub name: &'a str,
    /// What Vulkan says that the resource needs.
    pub requirements: vk::MemoryRequirements,
    /// Who uses it.
    pub location: MemoryLocation,
    /// A buffer or an image with linear tiling, and not an image with optimal tiling.
    pub linear: bool,
    /// Whose memory it is.
    pub allocation_scheme: AllocationScheme,
}

/// How an [`Allocator`] is made.
pub struct AllocatorCreateDesc {
    /// The instance.
    pub instance: ash::Instance,
    /// The device. It has to outlive the allocator.
    pub device: ash::Device,
    /// The physical device that it was made from.
    pub physical_device: vk::PhysicalDevice,
    /// Help in finding faults.
    pub debug_settings: AllocatorDebugSettings,
    /// The feature bufferDeviceAddress is enabled.
    pub buffer_device_address: bool,
    /// How large blocks are.
    pub allocation_sizes: AllocationSizes,
}
