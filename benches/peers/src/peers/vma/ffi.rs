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

/// `VMA_MEMORY_USAGE_UNKNOWN`.
pub(crate) const USAGE_UNKNOWN: u32 = 0;
/// `VMA_MEMORY_USAGE_GPU_ONLY`.
pub(crate) const USAGE_GPU_ONLY: u32 = 1;
/// `VMA_MEMORY_USAGE_AUTO`.
pub(crate) const USAGE_AUTO: u32 = 7;
/// `VMA_ALLOCATION_CREATE_HOST_ACCESS_SEQUENTIAL_WRITE_BIT | VMA_ALLOCATION_CREATE_MAPPED_BIT`.
pub(crate) const WRITTEN_AND_MAPPED: u32 = 0x404;
/// `VMA_POOL_CREATE_LINEAR_ALGORITHM_BIT`.
pub(crate) const POOL_LINEAR: u32 = 4;

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

/// Declares functions by their names in VMA and here.
macro_rules! functions {
    ($($vma:literal fn $name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)?;)*) => {
        unsafe extern "C" {
            $(#[link_name = $vma] pub(crate) fn $name($($argument: $type),*) $(-> $result)?;)*
        }
    };
}

functions! {
    "vmaCreateAllocator" fn create_allocator(
        info: *const FfiAllocatorCreateInfo, allocator: *mut FfiAllocator
    ) -> vk::Result;
    "vmaDestroyAllocator" fn destroy_allocator(allocator: FfiAllocator);
    "vmaCalculateStatistics" fn calculate_statistics(allocator: FfiAllocator, statistics: *mut FfiTotalStatistics);
    "vmaCreatePool" fn create_pool(
        allocator: FfiAllocator, info: *const FfiPoolCreateInfo, pool: *mut FfiPool
    ) -> vk::Result;
    "vmaDestroyPool" fn destroy_pool(allocator: FfiAllocator, pool: FfiPool);
    "vmaAllocateMemory" fn allocate_memory(
        allocator: FfiAllocator, requirements: *const vk::MemoryRequirements,
        info: *const FfiAllocationCreateInfo, allocation: *mut FfiAllocation, allocation_info: *mut c_void
    ) -> vk::Result;
    "vmaFreeMemory" fn free_memory(allocator: FfiAllocator, allocation: FfiAllocation);
    "vmaCreateBuffer" fn create_buffer(
        allocator: FfiAllocator, buffer_info: *const vk::BufferCreateInfo<'_>,
        info: *const FfiAllocationCreateInfo, buffer: *mut vk::Buffer, allocation: *mut FfiAllocation,
        allocation_info: *mut c_void
    ) -> vk::Result;
    "vmaDestroyBuffer" fn destroy_buffer(allocator: FfiAllocator, buffer: vk::Buffer, allocation: FfiAllocation);
    "vmaCreateImage" fn create_image(
        allocator: FfiAllocator, image_info: *const vk::ImageCreateInfo<'_>,
        info: *const FfiAllocationCreateInfo, image: *mut vk::Image, allocation: *mut FfiAllocation,
        allocation_info: *mut c_void
    ) -> vk::Result;
    "vmaDestroyImage" fn destroy_image(allocator: FfiAllocator, image: vk::Image, allocation: FfiAllocation);
    "vmaBeginDefragmentation" fn begin_defragmentation(
        allocator: FfiAllocator, info: *const FfiDefragmentationInfo, context: *mut *mut c_void
    ) -> vk::Result;
    "vmaBeginDefragmentationPass" fn begin_defragmentation_pass(
        allocator: FfiAllocator, context: *mut c_void, pass: *mut FfiDefragmentationPassMoveInfo
    ) -> vk::Result;
    "vmaEndDefragmentationPass" fn end_defragmentation_pass(
        allocator: FfiAllocator, context: *mut c_void, pass: *mut FfiDefragmentationPassMoveInfo
    ) -> vk::Result;
    "vmaEndDefragmentation" fn end_defragmentation(
        allocator: FfiAllocator, context: *mut c_void, stats: *mut FfiDefragmentationStats
    );
    "vmaSetCurrentFrameIndex" fn set_current_frame_index(allocator: FfiAllocator, frame_index: u32);
    "vmaGetHeapBudgets" fn heap_budgets(allocator: FfiAllocator, budgets: *mut FfiBudget);
    "vmaFindMemoryTypeIndex" fn find_memory_type_index(
        allocator: FfiAllocator, memory_type_bits: u32, info: *const FfiAllocationCreateInfo,
        index: *mut u32
    ) -> vk::Result;
    "vmaFindMemoryTypeIndexForBufferInfo" fn find_memory_type_index_for_buffer_info(
        allocator: FfiAllocator, buffer_info: *const vk::BufferCreateInfo<'_>,
        info: *const FfiAllocationCreateInfo, index: *mut u32
    ) -> vk::Result;
    "vmaFindMemoryTypeIndexForImageInfo" fn find_memory_type_index_for_image_info(
        allocator: FfiAllocator, image_info: *const vk::ImageCreateInfo<'_>,
        info: *const FfiAllocationCreateInfo, index: *mut u32
    ) -> vk::Result;
    "vmaGetPoolStatistics" fn pool_statistics(allocator: FfiAllocator, pool: FfiPool, statistics: *mut FfiStatistics);
    "vmaGetAllocationInfo2" fn allocation_info2(
        allocator: FfiAllocator, allocation: FfiAllocation, info: *mut FfiAllocationInfo2
    );
    "vmaMapMemory" fn map_memory(
        allocator: FfiAllocator, allocation: FfiAllocation, data: *mut *mut c_void
    ) -> vk::Result;
    "vmaUnmapMemory" fn unmap_memory(allocator: FfiAllocator, allocation: FfiAllocation);
    "vmaFlushAllocation" fn flush_allocation(
        allocator: FfiAllocator, allocation: FfiAllocation, offset: u64, size: u64
    ) -> vk::Result;
    "vmaInvalidateAllocation" fn invalidate_allocation(
        allocator: FfiAllocator, allocation: FfiAllocation, offset: u64, size: u64
    ) -> vk::Result;
    "vmaAllocateMemoryForBuffer" fn allocate_memory_for_buffer(
        allocator: FfiAllocator, buffer: vk::Buffer, info: *const FfiAllocationCreateInfo,
        allocation: *mut FfiAllocation, allocation_info: *mut c_void
    ) -> vk::Result;
    "vmaAllocateMemoryForImage" fn allocate_memory_for_image(
        allocator: FfiAllocator, image: vk::Image, info: *const FfiAllocationCreateInfo,
        allocation: *mut FfiAllocation, allocation_info: *mut c_void
    ) -> vk::Result;
    "vmaCreateBufferWithAlignment" fn create_buffer_with_alignment(
        allocator: FfiAllocator, buffer_info: *const vk::BufferCreateInfo<'_>,
        info: *const FfiAllocationCreateInfo, min_alignment: u64, buffer: *mut vk::Buffer,
        allocation: *mut FfiAllocation, allocation_info: *mut c_void
    ) -> vk::Result;
}
