//! The part of VMA 3.3's C interface that is called here. vk-mem provides the library, but its declarations are
//! private.
#![expect(unsafe_code, reason = "calls Vulkan and other allocators")]

use std::ffi::{c_char, c_void};

use ash::vk;
// Links the library.
use vk_mem as _;

pub(crate) type Allocator = *mut c_void;
pub(crate) type Pool = *mut c_void;
pub(crate) type Allocation = *mut c_void;
pub(crate) type Block = *mut c_void;
/// A non-pointer handle: 64 bits on every platform.
pub(crate) type VirtualAllocation = u64;

/// `VMA_MEMORY_USAGE_GPU_ONLY`.
pub(crate) const USAGE_GPU_ONLY: u32 = 1;
/// `VMA_MEMORY_USAGE_AUTO`.
pub(crate) const USAGE_AUTO: u32 = 7;
/// `VMA_POOL_CREATE_LINEAR_ALGORITHM_BIT`.
pub(crate) const POOL_LINEAR: u32 = 4;
/// `VMA_VIRTUAL_BLOCK_CREATE_LINEAR_ALGORITHM_BIT`.
pub(crate) const BLOCK_LINEAR: u32 = 1;

/// `VmaVulkanFunctions`.
#[repr(C)]
pub(crate) struct VulkanFunctions {
    pub(crate) get_instance_proc_addr: Option<vk::PFN_vkGetInstanceProcAddr>,
    pub(crate) get_device_proc_addr: Option<vk::PFN_vkGetDeviceProcAddr>,
    pub(crate) get_physical_device_properties: vk::PFN_vkGetPhysicalDeviceProperties,
    pub(crate) get_physical_device_memory_properties: vk::PFN_vkGetPhysicalDeviceMemoryProperties,
    pub(crate) allocate_memory: vk::PFN_vkAllocateMemory,
    pub(crate) free_memory: vk::PFN_vkFreeMemory,
    pub(crate) map_memory: vk::PFN_vkMapMemory,
    pub(crate) unmap_memory: vk::PFN_vkUnmapMemory,
    pub(crate) flush_mapped_memory_ranges: vk::PFN_vkFlushMappedMemoryRanges,
    pub(crate) invalidate_mapped_memory_ranges: vk::PFN_vkInvalidateMappedMemoryRanges,
    pub(crate) bind_buffer_memory: vk::PFN_vkBindBufferMemory,
    pub(crate) bind_image_memory: vk::PFN_vkBindImageMemory,
    pub(crate) get_buffer_memory_requirements: vk::PFN_vkGetBufferMemoryRequirements,
    pub(crate) get_image_memory_requirements: vk::PFN_vkGetImageMemoryRequirements,
    pub(crate) create_buffer: vk::PFN_vkCreateBuffer,
    pub(crate) destroy_buffer: vk::PFN_vkDestroyBuffer,
    pub(crate) create_image: vk::PFN_vkCreateImage,
    pub(crate) destroy_image: vk::PFN_vkDestroyImage,
    pub(crate) cmd_copy_buffer: vk::PFN_vkCmdCopyBuffer,
    pub(crate) get_buffer_memory_requirements2: Option<vk::PFN_vkGetBufferMemoryRequirements2>,
    pub(crate) get_image_memory_requirements2: Option<vk::PFN_vkGetImageMemoryRequirements2>,
    pub(crate) bind_buffer_memory2: Option<vk::PFN_vkBindBufferMemory2>,
    pub(crate) bind_image_memory2: Option<vk::PFN_vkBindImageMemory2>,
    pub(crate) get_physical_device_memory_properties2: Option<vk::PFN_vkGetPhysicalDeviceMemoryProperties2>,
    pub(crate) get_device_buffer_memory_requirements: Option<vk::PFN_vkGetDeviceBufferMemoryRequirements>,
    pub(crate) get_device_image_memory_requirements: Option<vk::PFN_vkGetDeviceImageMemoryRequirements>,
    /// Only on Windows.
    pub(crate) get_memory_win32_handle: *mut c_void,
}

/// `VmaAllocatorCreateInfo`.
#[repr(C)]
pub(crate) struct AllocatorCreateInfo {
    pub(crate) flags: u32,
    pub(crate) physical_device: vk::PhysicalDevice,
    pub(crate) device: vk::Device,
    pub(crate) preferred_large_heap_block_size: u64,
    pub(crate) allocation_callbacks: *const vk::AllocationCallbacks<'static>,
    pub(crate) device_memory_callbacks: *const c_void,
    pub(crate) heap_size_limit: *const u64,
    pub(crate) vulkan_functions: *const VulkanFunctions,
    pub(crate) instance: vk::Instance,
    pub(crate) vulkan_api_version: u32,
    pub(crate) type_external_memory_handle_types: *const c_void,
}

/// `VmaAllocationCreateInfo`.
#[repr(C)]
pub(crate) struct AllocationCreateInfo {
    pub(crate) flags: u32,
    pub(crate) usage: u32,
    pub(crate) required_flags: vk::MemoryPropertyFlags,
    pub(crate) preferred_flags: vk::MemoryPropertyFlags,
    pub(crate) memory_type_bits: u32,
    pub(crate) pool: Pool,
    pub(crate) user_data: *mut c_void,
    pub(crate) priority: f32,
}

/// `VmaPoolCreateInfo`.
#[repr(C)]
pub(crate) struct PoolCreateInfo {
    pub(crate) memory_type_index: u32,
    pub(crate) flags: u32,
    pub(crate) block_size: u64,
    pub(crate) min_block_count: usize,
    pub(crate) max_block_count: usize,
    pub(crate) priority: f32,
    pub(crate) min_allocation_alignment: u64,
    pub(crate) memory_allocate_next: *mut c_void,
}

/// `VmaStatistics`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct Statistics {
    pub(crate) block_count: u32,
    pub(crate) allocation_count: u32,
    pub(crate) block_bytes: u64,
    pub(crate) allocation_bytes: u64,
}

/// `VmaDetailedStatistics`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct DetailedStatistics {
    pub(crate) statistics: Statistics,
    pub(crate) unused_range_count: u32,
    pub(crate) allocation_size_min: u64,
    pub(crate) allocation_size_max: u64,
    pub(crate) unused_range_size_min: u64,
    pub(crate) unused_range_size_max: u64,
}

/// `VmaTotalStatistics`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct TotalStatistics {
    pub(crate) memory_type: [DetailedStatistics; vk::MAX_MEMORY_TYPES],
    pub(crate) memory_heap: [DetailedStatistics; vk::MAX_MEMORY_HEAPS],
    pub(crate) total: DetailedStatistics,
}

/// `VmaAllocationInfo`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct AllocationInfo {
    pub(crate) memory_type: u32,
    pub(crate) device_memory: vk::DeviceMemory,
    pub(crate) offset: u64,
    pub(crate) size: u64,
    pub(crate) mapped_data: *mut c_void,
    pub(crate) user_data: *mut c_void,
    pub(crate) name: *const c_char,
}

/// `VmaAllocationInfo2`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct AllocationInfo2 {
    pub(crate) allocation_info: AllocationInfo,
    pub(crate) block_size: u64,
    pub(crate) dedicated_memory: vk::Bool32,
}

/// `VmaBudget`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct Budget {
    pub(crate) statistics: Statistics,
    pub(crate) usage: u64,
    pub(crate) budget: u64,
}

/// `VmaDefragmentationInfo`.
#[repr(C)]
pub(crate) struct DefragmentationInfo {
    pub(crate) flags: u32,
    pub(crate) pool: Pool,
    pub(crate) max_bytes_per_pass: u64,
    pub(crate) max_allocations_per_pass: u32,
    pub(crate) break_callback: *const c_void,
    pub(crate) break_callback_user_data: *mut c_void,
}

/// `VmaDefragmentationMove`.
#[repr(C)]
pub(crate) struct DefragmentationMove {
    pub(crate) operation: u32,
    pub(crate) source: Allocation,
    pub(crate) destination: Allocation,
}

/// `VmaDefragmentationPassMoveInfo`.
#[repr(C)]
pub(crate) struct DefragmentationPassMoveInfo {
    pub(crate) move_count: u32,
    pub(crate) moves: *mut DefragmentationMove,
}

/// `VmaDefragmentationStats`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct DefragmentationStats {
    pub(crate) bytes_moved: u64,
    pub(crate) bytes_freed: u64,
    pub(crate) allocations_moved: u32,
    pub(crate) blocks_freed: u32,
}

/// `VmaVirtualBlockCreateInfo`.
#[repr(C)]
pub(crate) struct VirtualBlockCreateInfo {
    pub(crate) size: u64,
    pub(crate) flags: u32,
    pub(crate) allocation_callbacks: *const vk::AllocationCallbacks<'static>,
}

/// `VmaVirtualAllocationCreateInfo`.
#[repr(C)]
pub(crate) struct VirtualAllocationCreateInfo {
    pub(crate) size: u64,
    pub(crate) alignment: u64,
    pub(crate) flags: u32,
    pub(crate) user_data: *mut c_void,
}

unsafe extern "C" {
    #[link_name = "vmaCreateAllocator"]
    pub(crate) fn create_allocator(info: *const AllocatorCreateInfo, allocator: *mut Allocator)
    -> vk::Result;
    #[link_name = "vmaDestroyAllocator"]
    pub(crate) fn destroy_allocator(allocator: Allocator);
    #[link_name = "vmaCalculateStatistics"]
    pub(crate) fn calculate_statistics(allocator: Allocator, statistics: *mut TotalStatistics);
    #[link_name = "vmaCreatePool"]
    pub(crate) fn create_pool(
        allocator: Allocator,
        info: *const PoolCreateInfo,
        pool: *mut Pool,
    ) -> vk::Result;
    #[link_name = "vmaDestroyPool"]
    pub(crate) fn destroy_pool(allocator: Allocator, pool: Pool);
    #[link_name = "vmaAllocateMemory"]
    pub(crate) fn allocate_memory(
        allocator: Allocator,
        requirements: *const vk::MemoryRequirements,
        info: *const AllocationCreateInfo,
        allocation: *mut Allocation,
        allocation_info: *mut c_void,
    ) -> vk::Result;
    #[link_name = "vmaFreeMemory"]
    pub(crate) fn free_memory(allocator: Allocator, allocation: Allocation);
    #[link_name = "vmaCreateBuffer"]
    pub(crate) fn create_buffer(
        allocator: Allocator,
        buffer_info: *const vk::BufferCreateInfo<'_>,
        info: *const AllocationCreateInfo,
        buffer: *mut vk::Buffer,
        allocation: *mut Allocation,
        allocation_info: *mut c_void,
    ) -> vk::Result;
    #[link_name = "vmaDestroyBuffer"]
    pub(crate) fn destroy_buffer(allocator: Allocator, buffer: vk::Buffer, allocation: Allocation);
    #[link_name = "vmaCreateImage"]
    pub(crate) fn create_image(
        allocator: Allocator,
        image_info: *const vk::ImageCreateInfo<'_>,
        info: *const AllocationCreateInfo,
        image: *mut vk::Image,
        allocation: *mut Allocation,
        allocation_info: *mut c_void,
    ) -> vk::Result;
    #[link_name = "vmaDestroyImage"]
    pub(crate) fn destroy_image(allocator: Allocator, image: vk::Image, allocation: Allocation);
    #[link_name = "vmaBeginDefragmentation"]
    pub(crate) fn begin_defragmentation(
        allocator: Allocator,
        info: *const DefragmentationInfo,
        context: *mut *mut c_void,
    ) -> vk::Result;
    #[link_name = "vmaBeginDefragmentationPass"]
    pub(crate) fn begin_defragmentation_pass(
        allocator: Allocator,
        context: *mut c_void,
        pass: *mut DefragmentationPassMoveInfo,
    ) -> vk::Result;
    #[link_name = "vmaEndDefragmentationPass"]
    pub(crate) fn end_defragmentation_pass(
        allocator: Allocator,
        context: *mut c_void,
        pass: *mut DefragmentationPassMoveInfo,
    ) -> vk::Result;
    #[link_name = "vmaEndDefragmentation"]
    pub(crate) fn end_defragmentation(
        allocator: Allocator,
        context: *mut c_void,
        stats: *mut DefragmentationStats,
    );
    #[link_name = "vmaSetCurrentFrameIndex"]
    pub(crate) fn set_current_frame_index(allocator: Allocator, frame_index: u32);
    #[link_name = "vmaGetHeapBudgets"]
    pub(crate) fn heap_budgets(allocator: Allocator, budgets: *mut Budget);
    #[link_name = "vmaFindMemoryTypeIndex"]
    pub(crate) fn find_memory_type_index(
        allocator: Allocator,
        memory_type_bits: u32,
        info: *const AllocationCreateInfo,
        index: *mut u32,
    ) -> vk::Result;
    #[link_name = "vmaFindMemoryTypeIndexForBufferInfo"]
    pub(crate) fn find_memory_type_index_for_buffer_info(
        allocator: Allocator,
        buffer_info: *const vk::BufferCreateInfo<'_>,
        info: *const AllocationCreateInfo,
        index: *mut u32,
    ) -> vk::Result;
    #[link_name = "vmaFindMemoryTypeIndexForImageInfo"]
    pub(crate) fn find_memory_type_index_for_image_info(
        allocator: Allocator,
        image_info: *const vk::ImageCreateInfo<'_>,
        info: *const AllocationCreateInfo,
        index: *mut u32,
    ) -> vk::Result;
    #[link_name = "vmaGetPoolStatistics"]
    pub(crate) fn pool_statistics(allocator: Allocator, pool: Pool, statistics: *mut Statistics);
    #[link_name = "vmaGetAllocationInfo2"]
    pub(crate) fn allocation_info2(allocator: Allocator, allocation: Allocation, info: *mut AllocationInfo2);
    #[link_name = "vmaMapMemory"]
    pub(crate) fn map_memory(
        allocator: Allocator,
        allocation: Allocation,
        data: *mut *mut c_void,
    ) -> vk::Result;
    #[link_name = "vmaUnmapMemory"]
    pub(crate) fn unmap_memory(allocator: Allocator, allocation: Allocation);
    #[link_name = "vmaFlushAllocation"]
    pub(crate) fn flush_allocation(
        allocator: Allocator,
        allocation: Allocation,
        offset: u64,
        size: u64,
    ) -> vk::Result;
    #[link_name = "vmaInvalidateAllocation"]
    pub(crate) fn invalidate_allocation(
        allocator: Allocator,
        allocation: Allocation,
        offset: u64,
        size: u64,
    ) -> vk::Result;
    #[link_name = "vmaAllocateMemoryForBuffer"]
    pub(crate) fn allocate_memory_for_buffer(
        allocator: Allocator,
        buffer: vk::Buffer,
        info: *const AllocationCreateInfo,
        allocation: *mut Allocation,
        allocation_info: *mut c_void,
    ) -> vk::Result;
    #[link_name = "vmaAllocateMemoryForImage"]
    pub(crate) fn allocate_memory_for_image(
        allocator: Allocator,
        image: vk::Image,
        info: *const AllocationCreateInfo,
        allocation: *mut Allocation,
        allocation_info: *mut c_void,
    ) -> vk::Result;
    #[link_name = "vmaCreateBufferWithAlignment"]
    pub(crate) fn create_buffer_with_alignment(
        allocator: Allocator,
        buffer_info: *const vk::BufferCreateInfo<'_>,
        info: *const AllocationCreateInfo,
        min_alignment: u64,
        buffer: *mut vk::Buffer,
        allocation: *mut Allocation,
        allocation_info: *mut c_void,
    ) -> vk::Result;
    #[link_name = "vmaCreateVirtualBlock"]
    pub(crate) fn create_virtual_block(info: *const VirtualBlockCreateInfo, block: *mut Block) -> vk::Result;
    #[link_name = "vmaDestroyVirtualBlock"]
    pub(crate) fn destroy_virtual_block(block: Block);
    #[link_name = "vmaIsVirtualBlockEmpty"]
    pub(crate) fn is_virtual_block_empty(block: Block) -> vk::Bool32;
    #[link_name = "vmaVirtualAllocate"]
    pub(crate) fn virtual_allocate(
        block: Block,
        info: *const VirtualAllocationCreateInfo,
        allocation: *mut VirtualAllocation,
        offset: *mut u64,
    ) -> vk::Result;
    #[link_name = "vmaVirtualFree"]
    pub(crate) fn virtual_free(block: Block, allocation: VirtualAllocation);
    #[link_name = "vmaClearVirtualBlock"]
    pub(crate) fn clear_virtual_block(block: Block);
    #[link_name = "vmaGetVirtualBlockStatistics"]
    pub(crate) fn virtual_block_statistics(block: Block, statistics: *mut Statistics);
}
