//! The part of VMA 3.3's C interface that is called here. vk-mem provides the library, but its declarations are
//! private.
#![expect(unsafe_code, reason = "calls Vulkan and other allocators")]

use std::ffi::{c_char, c_void};

use ash::vk;
// Links the library.
use vk_mem as _;

pub(crate) type FfiAllocator = *mut c_void;
pub(crate) type FfiPool = *mut c_void;
pub(crate) type FfiAllocation = *mut c_void;
pub(crate) type FfiVirtualBlock = *mut c_void;
/// A non-pointer handle: 64 bits on every platform.
pub(crate) type FfiVirtualAllocation = u64;

/// `VMA_MEMORY_USAGE_GPU_ONLY`.
pub(crate) const USAGE_GPU_ONLY: u32 = 1;
/// `VMA_MEMORY_USAGE_AUTO`.
pub(crate) const USAGE_AUTO: u32 = 7;
/// `VMA_ALLOCATION_CREATE_HOST_ACCESS_SEQUENTIAL_WRITE_BIT | VMA_ALLOCATION_CREATE_MAPPED_BIT`.
pub(crate) const WRITTEN_AND_MAPPED: u32 = 0x404;
/// `VMA_POOL_CREATE_LINEAR_ALGORITHM_BIT`.
pub(crate) const POOL_LINEAR: u32 = 4;
/// `VMA_VIRTUAL_BLOCK_CREATE_LINEAR_ALGORITHM_BIT`.
pub(crate) const BLOCK_LINEAR: u32 = 1;

/// `VmaVulkanFunctions`.
#[repr(C)]
pub(crate) struct FfiVulkanFunctions {
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
pub(crate) struct FfiAllocatorCreateInfo {
    pub(crate) flags: u32,
    pub(crate) physical_device: vk::PhysicalDevice,
    pub(crate) device: vk::Device,
    pub(crate) preferred_large_heap_block_size: u64,
    pub(crate) allocation_callbacks: *const vk::AllocationCallbacks<'static>,
    pub(crate) device_memory_callbacks: *const c_void,
    pub(crate) heap_size_limit: *const u64,
    pub(crate) vulkan_functions: *const FfiVulkanFunctions,
    pub(crate) instance: vk::Instance,
    pub(crate) vulkan_api_version: u32,
    pub(crate) type_external_memory_handle_types: *const c_void,
}

/// `VmaAllocationCreateInfo`.
#[repr(C)]
pub(crate) struct FfiAllocationCreateInfo {
    pub(crate) flags: u32,
    pub(crate) usage: u32,
    pub(crate) required_flags: vk::MemoryPropertyFlags,
    pub(crate) preferred_flags: vk::MemoryPropertyFlags,
    pub(crate) memory_type_bits: u32,
    pub(crate) pool: FfiPool,
    pub(crate) user_data: *mut c_void,
    pub(crate) priority: f32,
}

/// `VmaPoolCreateInfo`.
#[repr(C)]
pub(crate) struct FfiPoolCreateInfo {
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
pub(crate) struct FfiStatistics {
    pub(crate) block_count: u32,
    pub(crate) allocation_count: u32,
    pub(crate) block_bytes: u64,
    pub(crate) allocation_bytes: u64,
}

/// `VmaDetailedStatistics`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct FfiDetailedStatistics {
    pub(crate) statistics: FfiStatistics,
    pub(crate) unused_range_count: u32,
    pub(crate) allocation_size_min: u64,
    pub(crate) allocation_size_max: u64,
    pub(crate) unused_range_size_min: u64,
    pub(crate) unused_range_size_max: u64,
}

/// `VmaTotalStatistics`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct FfiTotalStatistics {
    pub(crate) memory_type: [FfiDetailedStatistics; vk::MAX_MEMORY_TYPES],
    pub(crate) memory_heap: [FfiDetailedStatistics; vk::MAX_MEMORY_HEAPS],
    pub(crate) total: FfiDetailedStatistics,
}

/// `VmaAllocationInfo`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct FfiAllocationInfo {
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
pub(crate) struct FfiAllocationInfo2 {
    pub(crate) allocation_info: FfiAllocationInfo,
    pub(crate) block_size: u64,
    pub(crate) dedicated_memory: vk::Bool32,
}

/// `VmaBudget`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct FfiBudget {
    pub(crate) statistics: FfiStatistics,
    pub(crate) usage: u64,
    pub(crate) budget: u64,
}

/// `VmaDefragmentationInfo`.
#[repr(C)]
pub(crate) struct FfiDefragmentationInfo {
    pub(crate) flags: u32,
    pub(crate) pool: FfiPool,
    pub(crate) max_bytes_per_pass: u64,
    pub(crate) max_allocations_per_pass: u32,
    pub(crate) break_callback: *const c_void,
    pub(crate) break_callback_user_data: *mut c_void,
}

/// `VmaDefragmentationMove`.
#[repr(C)]
pub(crate) struct FfiDefragmentationMove {
    pub(crate) operation: u32,
    pub(crate) source: FfiAllocation,
    pub(crate) destination: FfiAllocation,
}

/// `VmaDefragmentationPassMoveInfo`.
#[repr(C)]
pub(crate) struct FfiDefragmentationPassMoveInfo {
    pub(crate) move_count: u32,
    pub(crate) moves: *mut FfiDefragmentationMove,
}

/// `VmaDefragmentationStats`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct FfiDefragmentationStats {
    pub(crate) bytes_moved: u64,
    pub(crate) bytes_freed: u64,
    pub(crate) allocations_moved: u32,
    pub(crate) blocks_freed: u32,
}

/// `VmaVirtualBlockCreateInfo`.
#[repr(C)]
pub(crate) struct FfiVirtualBlockCreateInfo {
    pub(crate) size: u64,
    pub(crate) flags: u32,
    pub(crate) allocation_callbacks: *const vk::AllocationCallbacks<'static>,
}

/// `VmaVirtualAllocationCreateInfo`.
#[repr(C)]
pub(crate) struct FfiVirtualAllocationCreateInfo {
    pub(crate) size: u64,
    pub(crate) alignment: u64,
    pub(crate) flags: u32,
    pub(crate) user_data: *mut c_void,
}

unsafe extern "C" {
    #[link_name = "vmaCreateAllocator"]
    pub(crate) fn create_allocator(
        info: *const FfiAllocatorCreateInfo,
        allocator: *mut FfiAllocator,
    ) -> vk::Result;
    #[link_name = "vmaDestroyAllocator"]
    pub(crate) fn destroy_allocator(allocator: FfiAllocator);
    #[link_name = "vmaCalculateStatistics"]
    pub(crate) fn calculate_statistics(allocator: FfiAllocator, statistics: *mut FfiTotalStatistics);
    #[link_name = "vmaCreatePool"]
    pub(crate) fn create_pool(
        allocator: FfiAllocator,
        info: *const FfiPoolCreateInfo,
        pool: *mut FfiPool,
    ) -> vk::Result;
    #[link_name = "vmaDestroyPool"]
    pub(crate) fn destroy_pool(allocator: FfiAllocator, pool: FfiPool);
    #[link_name = "vmaAllocateMemory"]
    pub(crate) fn allocate_memory(
        allocator: FfiAllocator,
        requirements: *const vk::MemoryRequirements,
        info: *const FfiAllocationCreateInfo,
        allocation: *mut FfiAllocation,
        allocation_info: *mut c_void,
    ) -> vk::Result;
    #[link_name = "vmaFreeMemory"]
    pub(crate) fn free_memory(allocator: FfiAllocator, allocation: FfiAllocation);
    #[link_name = "vmaCreateBuffer"]
    pub(crate) fn create_buffer(
        allocator: FfiAllocator,
        buffer_info: *const vk::BufferCreateInfo<'_>,
        info: *const FfiAllocationCreateInfo,
        buffer: *mut vk::Buffer,
        allocation: *mut FfiAllocation,
        allocation_info: *mut c_void,
    ) -> vk::Result;
    #[link_name = "vmaDestroyBuffer"]
    pub(crate) fn destroy_buffer(allocator: FfiAllocator, buffer: vk::Buffer, allocation: FfiAllocation);
    #[link_name = "vmaCreateImage"]
    pub(crate) fn create_image(
        allocator: FfiAllocator,
        image_info: *const vk::ImageCreateInfo<'_>,
        info: *const FfiAllocationCreateInfo,
        image: *mut vk::Image,
        allocation: *mut FfiAllocation,
        allocation_info: *mut c_void,
    ) -> vk::Result;
    #[link_name = "vmaDestroyImage"]
    pub(crate) fn destroy_image(allocator: FfiAllocator, image: vk::Image, allocation: FfiAllocation);
    #[link_name = "vmaBeginDefragmentation"]
    pub(crate) fn begin_defragmentation(
        allocator: FfiAllocator,
        info: *const FfiDefragmentationInfo,
        context: *mut *mut c_void,
    ) -> vk::Result;
    #[link_name = "vmaBeginDefragmentationPass"]
    pub(crate) fn begin_defragmentation_pass(
        allocator: FfiAllocator,
        context: *mut c_void,
        pass: *mut FfiDefragmentationPassMoveInfo,
    ) -> vk::Result;
    #[link_name = "vmaEndDefragmentationPass"]
    pub(crate) fn end_defragmentation_pass(
        allocator: FfiAllocator,
        context: *mut c_void,
        pass: *mut FfiDefragmentationPassMoveInfo,
    ) -> vk::Result;
    #[link_name = "vmaEndDefragmentation"]
    pub(crate) fn end_defragmentation(
        allocator: FfiAllocator,
        context: *mut c_void,
        stats: *mut FfiDefragmentationStats,
    );
    #[link_name = "vmaSetCurrentFrameIndex"]
    pub(crate) fn set_current_frame_index(allocator: FfiAllocator, frame_index: u32);
    #[link_name = "vmaGetHeapBudgets"]
    pub(crate) fn heap_budgets(allocator: FfiAllocator, budgets: *mut FfiBudget);
    #[link_name = "vmaFindMemoryTypeIndex"]
    pub(crate) fn find_memory_type_index(
        allocator: FfiAllocator,
        memory_type_bits: u32,
        info: *const FfiAllocationCreateInfo,
        index: *mut u32,
    ) -> vk::Result;
    #[link_name = "vmaFindMemoryTypeIndexForBufferInfo"]
    pub(crate) fn find_memory_type_index_for_buffer_info(
        allocator: FfiAllocator,
        buffer_info: *const vk::BufferCreateInfo<'_>,
        info: *const FfiAllocationCreateInfo,
        index: *mut u32,
    ) -> vk::Result;
    #[link_name = "vmaFindMemoryTypeIndexForImageInfo"]
    pub(crate) fn find_memory_type_index_for_image_info(
        allocator: FfiAllocator,
        image_info: *const vk::ImageCreateInfo<'_>,
        info: *const FfiAllocationCreateInfo,
        index: *mut u32,
    ) -> vk::Result;
    #[link_name = "vmaGetPoolStatistics"]
    pub(crate) fn pool_statistics(allocator: FfiAllocator, pool: FfiPool, statistics: *mut FfiStatistics);
    #[link_name = "vmaGetAllocationInfo2"]
    pub(crate) fn allocation_info2(
        allocator: FfiAllocator,
        allocation: FfiAllocation,
        info: *mut FfiAllocationInfo2,
    );
    #[link_name = "vmaMapMemory"]
    pub(crate) fn map_memory(
        allocator: FfiAllocator,
        allocation: FfiAllocation,
        data: *mut *mut c_void,
    ) -> vk::Result;
    #[link_name = "vmaUnmapMemory"]
    pub(crate) fn unmap_memory(allocator: FfiAllocator, allocation: FfiAllocation);
    #[link_name = "vmaFlushAllocation"]
    pub(crate) fn flush_allocation(
        allocator: FfiAllocator,
        allocation: FfiAllocation,
        offset: u64,
        size: u64,
    ) -> vk::Result;
    #[link_name = "vmaInvalidateAllocation"]
    pub(crate) fn invalidate_allocation(
        allocator: FfiAllocator,
        allocation: FfiAllocation,
        offset: u64,
        size: u64,
    ) -> vk::Result;
    #[link_name = "vmaAllocateMemoryForBuffer"]
    pub(crate) fn allocate_memory_for_buffer(
        allocator: FfiAllocator,
        buffer: vk::Buffer,
        info: *const FfiAllocationCreateInfo,
        allocation: *mut FfiAllocation,
        allocation_info: *mut c_void,
    ) -> vk::Result;
    #[link_name = "vmaAllocateMemoryForImage"]
    pub(crate) fn allocate_memory_for_image(
        allocator: FfiAllocator,
        image: vk::Image,
        info: *const FfiAllocationCreateInfo,
        allocation: *mut FfiAllocation,
        allocation_info: *mut c_void,
    ) -> vk::Result;
    #[link_name = "vmaCreateBufferWithAlignment"]
    pub(crate) fn create_buffer_with_alignment(
        allocator: FfiAllocator,
        buffer_info: *const vk::BufferCreateInfo<'_>,
        info: *const FfiAllocationCreateInfo,
        min_alignment: u64,
        buffer: *mut vk::Buffer,
        allocation: *mut FfiAllocation,
        allocation_info: *mut c_void,
    ) -> vk::Result;
    #[link_name = "vmaCreateVirtualBlock"]
    pub(crate) fn create_virtual_block(
        info: *const FfiVirtualBlockCreateInfo,
        block: *mut FfiVirtualBlock,
    ) -> vk::Result;
    #[link_name = "vmaDestroyVirtualBlock"]
    pub(crate) fn destroy_virtual_block(block: FfiVirtualBlock);
    #[link_name = "vmaIsVirtualBlockEmpty"]
    pub(crate) fn is_virtual_block_empty(block: FfiVirtualBlock) -> vk::Bool32;
    #[link_name = "vmaVirtualAllocate"]
    pub(crate) fn virtual_allocate(
        block: FfiVirtualBlock,
        info: *const FfiVirtualAllocationCreateInfo,
        allocation: *mut FfiVirtualAllocation,
        offset: *mut u64,
    ) -> vk::Result;
    #[link_name = "vmaVirtualFree"]
    pub(crate) fn virtual_free(block: FfiVirtualBlock, allocation: FfiVirtualAllocation);
    #[link_name = "vmaClearVirtualBlock"]
    pub(crate) fn clear_virtual_block(block: FfiVirtualBlock);
    #[link_name = "vmaGetVirtualBlockStatistics"]
    pub(crate) fn virtual_block_statistics(block: FfiVirtualBlock, statistics: *mut FfiStatistics);
}
