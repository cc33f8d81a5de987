//! The part of VMA 3.3's C interface that is called here. vk-mem brings the library, and keeps its own declarations to
//! itself.

use std::ffi::c_void;

use ash::vk;
// Links the library.
use vk_mem as _;

pub(super) type Allocator = *mut c_void;
pub(super) type Pool = *mut c_void;
pub(super) type Allocation = *mut c_void;
pub(super) type Block = *mut c_void;
/// A handle that is no pointer: 64 bits everywhere.
pub(super) type VirtualAllocation = u64;

/// `VMA_MEMORY_USAGE_GPU_ONLY`.
pub(super) const USAGE_GPU_ONLY: u32 = 1;
/// `VMA_MEMORY_USAGE_AUTO`.
pub(super) const USAGE_AUTO: u32 = 7;
/// `VMA_POOL_CREATE_LINEAR_ALGORITHM_BIT`.
pub(super) const POOL_LINEAR: u32 = 4;
/// `VMA_VIRTUAL_BLOCK_CREATE_LINEAR_ALGORITHM_BIT`.
pub(super) const BLOCK_LINEAR: u32 = 1;

/// `VmaVulkanFunctions`.
#[repr(C)]
pub(super) struct VulkanFunctions {
    pub(super) get_instance_proc_addr: Option<vk::PFN_vkGetInstanceProcAddr>,
    pub(super) get_device_proc_addr: Option<vk::PFN_vkGetDeviceProcAddr>,
    pub(super) get_physical_device_properties: vk::PFN_vkGetPhysicalDeviceProperties,
    pub(super) get_physical_device_memory_properties: vk::PFN_vkGetPhysicalDeviceMemoryProperties,
    pub(super) allocate_memory: vk::PFN_vkAllocateMemory,
    pub(super) free_memory: vk::PFN_vkFreeMemory,
    pub(super) map_memory: vk::PFN_vkMapMemory,
    pub(super) unmap_memory: vk::PFN_vkUnmapMemory,
    pub(super) flush_mapped_memory_ranges: vk::PFN_vkFlushMappedMemoryRanges,
    pub(super) invalidate_mapped_memory_ranges: vk::PFN_vkInvalidateMappedMemoryRanges,
    pub(super) bind_buffer_memory: vk::PFN_vkBindBufferMemory,
    pub(super) bind_image_memory: vk::PFN_vkBindImageMemory,
    pub(super) get_buffer_memory_requirements: vk::PFN_vkGetBufferMemoryRequirements,
    pub(super) get_image_memory_requirements: vk::PFN_vkGetImageMemoryRequirements,
    pub(super) create_buffer: vk::PFN_vkCreateBuffer,
    pub(super) destroy_buffer: vk::PFN_vkDestroyBuffer,
    pub(super) create_image: vk::PFN_vkCreateImage,
    pub(super) destroy_image: vk::PFN_vkDestroyImage,
    pub(super) cmd_copy_buffer: vk::PFN_vkCmdCopyBuffer,
    pub(super) get_buffer_memory_requirements2: vk::PFN_vkGetBufferMemoryRequirements2,
    pub(super) get_image_memory_requirements2: vk::PFN_vkGetImageMemoryRequirements2,
    pub(super) bind_buffer_memory2: vk::PFN_vkBindBufferMemory2,
    pub(super) bind_image_memory2: vk::PFN_vkBindImageMemory2,
    pub(super) get_physical_device_memory_properties2: vk::PFN_vkGetPhysicalDeviceMemoryProperties2,
    pub(super) get_device_buffer_memory_requirements: vk::PFN_vkGetDeviceBufferMemoryRequirements,
    pub(super) get_device_image_memory_requirements: vk::PFN_vkGetDeviceImageMemoryRequirements,
    /// Of Windows.
    pub(super) get_memory_win32_handle: *mut c_void,
}

/// `VmaAllocatorCreateInfo`.
#[repr(C)]
pub(super) struct AllocatorCreateInfo {
    pub(super) flags: u32,
    pub(super) physical_device: vk::PhysicalDevice,
    pub(super) device: vk::Device,
    pub(super) preferred_large_heap_block_size: u64,
    pub(super) allocation_callbacks: *const vk::AllocationCallbacks<'static>,
    pub(super) device_memory_callbacks: *const c_void,
    pub(super) heap_size_limit: *const u64,
    pub(super) vulkan_functions: *const VulkanFunctions,
    pub(super) instance: vk::Instance,
    pub(super) vulkan_api_version: u32,
    pub(super) type_external_memory_handle_types: *const c_void,
}

/// `VmaAllocationCreateInfo`.
#[repr(C)]
pub(super) struct AllocationCreateInfo {
    pub(super) flags: u32,
    pub(super) usage: u32,
    pub(super) required_flags: vk::MemoryPropertyFlags,
    pub(super) preferred_flags: vk::MemoryPropertyFlags,
    pub(super) memory_type_bits: u32,
    pub(super) pool: Pool,
    pub(super) user_data: *mut c_void,
    pub(super) priority: f32,
}

/// `VmaPoolCreateInfo`.
#[repr(C)]
pub(super) struct PoolCreateInfo {
    pub(super) memory_type_index: u32,
    pub(super) flags: u32,
    pub(super) block_size: u64,
    pub(super) min_block_count: usize,
    pub(super) max_block_count: usize,
    pub(super) priority: f32,
    pub(super) min_allocation_alignment: u64,
    pub(super) memory_allocate_next: *mut c_void,
}

/// `VmaStatistics`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(super) struct Statistics {
    pub(super) block_count: u32,
    pub(super) allocation_count: u32,
    pub(super) block_bytes: u64,
    pub(super) allocation_bytes: u64,
}

/// `VmaDetailedStatistics`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(super) struct DetailedStatistics {
    pub(super) statistics: Statistics,
    pub(super) unused_range_count: u32,
    pub(super) allocation_size_min: u64,
    pub(super) allocation_size_max: u64,
    pub(super) unused_range_size_min: u64,
    pub(super) unused_range_size_max: u64,
}

/// `VmaTotalStatistics`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(super) struct TotalStatistics {
    pub(super) memory_type: [DetailedStatistics; vk::MAX_MEMORY_TYPES],
    pub(super) memory_heap: [DetailedStatistics; vk::MAX_MEMORY_HEAPS],
    pub(super) total: DetailedStatistics,
}

/// `VmaVirtualBlockCreateInfo`.
#[repr(C)]
pub(super) struct VirtualBlockCreateInfo {
    pub(super) size: u64,
    pub(super) flags: u32,
    pub(super) allocation_callbacks: *const vk::AllocationCallbacks<'static>,
}

/// `VmaVirtualAllocationCreateInfo`.
#[repr(C)]
pub(super) struct VirtualAllocationCreateInfo {
    pub(super) size: u64,
    pub(super) alignment: u64,
    pub(super) flags: u32,
    pub(super) user_data: *mut c_void,
}

unsafe extern "C" {
    #[link_name = "vmaCreateAllocator"]
    pub(super) fn create_allocator(info: *const AllocatorCreateInfo, allocator: *mut Allocator)
    -> vk::Result;
    #[link_name = "vmaDestroyAllocator"]
    pub(super) fn destroy_allocator(allocator: Allocator);
    #[link_name = "vmaCalculateStatistics"]
    pub(super) fn calculate_statistics(allocator: Allocator, statistics: *mut TotalStatistics);
    #[link_name = "vmaCreatePool"]
    pub(super) fn create_pool(
        allocator: Allocator,
        info: *const PoolCreateInfo,
        pool: *mut Pool,
    ) -> vk::Result;
    #[link_name = "vmaDestroyPool"]
    pub(super) fn destroy_pool(allocator: Allocator, pool: Pool);
    #[link_name = "vmaAllocateMemory"]
    pub(super) fn allocate_memory(
        allocator: Allocator,
        requirements: *const vk::MemoryRequirements,
        info: *const AllocationCreateInfo,
        allocation: *mut Allocation,
        allocation_info: *mut c_void,
    ) -> vk::Result;
    #[link_name = "vmaFreeMemory"]
    pub(super) fn free_memory(allocator: Allocator, allocation: Allocation);
    #[link_name = "vmaCreateBuffer"]
    pub(super) fn create_buffer(
        allocator: Allocator,
        buffer_info: *const vk::BufferCreateInfo<'_>,
        info: *const AllocationCreateInfo,
        buffer: *mut vk::Buffer,
        allocation: *mut Allocation,
        allocation_info: *mut c_void,
    ) -> vk::Result;
    #[link_name = "vmaDestroyBuffer"]
    pub(super) fn destroy_buffer(allocator: Allocator, buffer: vk::Buffer, allocation: Allocation);
    #[link_name = "vmaCreateImage"]
    pub(super) fn create_image(
        allocator: Allocator,
        image_info: *const vk::ImageCreateInfo<'_>,
        info: *const AllocationCreateInfo,
        image: *mut vk::Image,
        allocation: *mut Allocation,
        allocation_info: *mut c_void,
    ) -> vk::Result;
    #[link_name = "vmaDestroyImage"]
    pub(super) fn destroy_image(allocator: Allocator, image: vk::Image, allocation: Allocation);
    #[link_name = "vmaCreateVirtualBlock"]
    pub(super) fn create_virtual_block(info: *const VirtualBlockCreateInfo, block: *mut Block) -> vk::Result;
    #[link_name = "vmaDestroyVirtualBlock"]
    pub(super) fn destroy_virtual_block(block: Block);
    #[link_name = "vmaIsVirtualBlockEmpty"]
    pub(super) fn is_virtual_block_empty(block: Block) -> vk::Bool32;
    #[link_name = "vmaVirtualAllocate"]
    pub(super) fn virtual_allocate(
        block: Block,
        info: *const VirtualAllocationCreateInfo,
        allocation: *mut VirtualAllocation,
        offset: *mut u64,
    ) -> vk::Result;
    #[link_name = "vmaVirtualFree"]
    pub(super) fn virtual_free(block: Block, allocation: VirtualAllocation);
    #[link_name = "vmaClearVirtualBlock"]
    pub(super) fn clear_virtual_block(block: Block);
    #[link_name = "vmaGetVirtualBlockStatistics"]
    pub(super) fn virtual_block_statistics(block: Block, statistics: *mut Statistics);
}
