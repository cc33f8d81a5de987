//! The structures of the C interface, as `include/vk_mem_alloc.h` declares and documents them.

use std::ffi::{c_char, c_void};

use ash::vk;

/// `VmaAllocator`.
pub type VmaAllocator = *mut super::allocator::AllocatorObject;
/// `VmaPool`.
pub type VmaPool = *mut super::pool::PoolObject;
/// `VmaAllocation`: the address of its object, with a part of the object's generation in the lowest bits. Only the slab
/// that made it reads it.
pub type VmaAllocation = *mut super::slab::HandleSlot;
/// `VmaDefragmentationContext`.
pub type VmaDefragmentationContext = *mut super::defragmentation::ContextObject;
/// `VmaVirtualBlock`.
pub type VmaVirtualBlock = *mut super::virtual_block::BlockObject;
/// `VmaVirtualAllocation`: 64 bits on every platform, 0 for null.
pub type VmaVirtualAllocation = u64;

/// Bit of `VmaAllocationCreateFlags`: user data is a string, which is copied as the name.
pub const USER_DATA_COPY_STRING: u32 = 0x20;
/// Bit of `VmaPoolCreateFlags`.
pub const POOL_LINEAR_ALGORITHM: u32 = 0x4;
/// Bit of `VmaVirtualBlockCreateFlags`.
pub const VIRTUAL_BLOCK_LINEAR_ALGORITHM: u32 = 0x1;

/// `PFN_vmaAllocateDeviceMemoryFunction` and `PFN_vmaFreeDeviceMemoryFunction`.
pub type VmaDeviceMemoryFunction = unsafe extern "system" fn(
    allocator: VmaAllocator,
    memory_type: u32,
    memory: vk::DeviceMemory,
    size: u64,
    user_data: *mut c_void,
);

/// `PFN_vmaCheckDefragmentationBreakFunction`.
pub type BreakFunction = unsafe extern "system" fn(user_data: *mut c_void) -> vk::Bool32;

/// A pointer of the program, which this library never dereferences.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pointer(pub *mut c_void);

impl Default for Pointer {
    fn default() -> Self {
        Self(std::ptr::null_mut())
    }
}

/// The layout of a structure as C sees it. The test of the header compiles these as assertions.
#[derive(Clone, Debug)]
pub struct StructureLayout {
    /// The structure's name in C.
    pub name: &'static str,
    /// Its size in bytes.
    pub size: usize,
    /// The names of its members in C, and their offsets in bytes.
    pub members: Vec<(&'static str, usize)>,
}

/// Defines the structures, each member with its type and its name in C, and the function `layouts`.
macro_rules! structures {
    ($( $(#[$attribute:meta])* $structure:ident {
        $($(#[$condition:meta])? $member:ident: $type:ty = $name:literal),* $(,)?
    } )*) => {
        $(
            #[doc = concat!("`", stringify!($structure), "`.")]
            #[repr(C)]
            #[derive(Clone, Copy, Debug)]
            $(#[$attribute])*
            #[allow(missing_docs, reason = "vk_mem_alloc.h has the documentation")]
            pub struct $structure { $($(#[$condition])? pub $member: $type),* }
        )*

        /// Returns the layouts of all structures.
        #[must_use]
        pub fn layouts() -> Vec<StructureLayout> {
            vec![$(
                StructureLayout {
                    name: stringify!($structure),
                    size: size_of::<$structure>(),
                    members: vec![$($(#[$condition])? ($name, std::mem::offset_of!($structure, $member)),)*],
                },
            )*]
        }
    };
}

structures! {
    #[derive(Default)]
    VmaDeviceMemoryCallbacks {
        allocate: Option<VmaDeviceMemoryFunction> = "pfnAllocate",
        free: Option<VmaDeviceMemoryFunction> = "pfnFree",
        user_data: Pointer = "pUserData",
    }

    #[derive(Default)]
    VmaVulkanFunctions {
        get_instance_proc_addr: Option<vk::PFN_vkGetInstanceProcAddr> = "vkGetInstanceProcAddr",
        get_device_proc_addr: Option<vk::PFN_vkGetDeviceProcAddr> = "vkGetDeviceProcAddr",
        get_physical_device_properties: Option<vk::PFN_vkGetPhysicalDeviceProperties> = "vkGetPhysicalDeviceProperties",
        get_physical_device_memory_properties:
            Option<vk::PFN_vkGetPhysicalDeviceMemoryProperties> = "vkGetPhysicalDeviceMemoryProperties",
        allocate_memory: Option<vk::PFN_vkAllocateMemory> = "vkAllocateMemory",
        free_memory: Option<vk::PFN_vkFreeMemory> = "vkFreeMemory",
        map_memory: Option<vk::PFN_vkMapMemory> = "vkMapMemory",
        unmap_memory: Option<vk::PFN_vkUnmapMemory> = "vkUnmapMemory",
        flush_mapped_memory_ranges: Option<vk::PFN_vkFlushMappedMemoryRanges> = "vkFlushMappedMemoryRanges",
        invalidate_mapped_memory_ranges:
            Option<vk::PFN_vkInvalidateMappedMemoryRanges> = "vkInvalidateMappedMemoryRanges",
        bind_buffer_memory: Option<vk::PFN_vkBindBufferMemory> = "vkBindBufferMemory",
        bind_image_memory: Option<vk::PFN_vkBindImageMemory> = "vkBindImageMemory",
        get_buffer_memory_requirements: Option<vk::PFN_vkGetBufferMemoryRequirements> = "vkGetBufferMemoryRequirements",
        get_image_memory_requirements: Option<vk::PFN_vkGetImageMemoryRequirements> = "vkGetImageMemoryRequirements",
        create_buffer: Option<vk::PFN_vkCreateBuffer> = "vkCreateBuffer",
        destroy_buffer: Option<vk::PFN_vkDestroyBuffer> = "vkDestroyBuffer",
        create_image: Option<vk::PFN_vkCreateImage> = "vkCreateImage",
        destroy_image: Option<vk::PFN_vkDestroyImage> = "vkDestroyImage",
        cmd_copy_buffer: Option<vk::PFN_vkCmdCopyBuffer> = "vkCmdCopyBuffer",
        get_buffer_memory_requirements2:
            Option<vk::PFN_vkGetBufferMemoryRequirements2> = "vkGetBufferMemoryRequirements2KHR",
        get_image_memory_requirements2:
            Option<vk::PFN_vkGetImageMemoryRequirements2> = "vkGetImageMemoryRequirements2KHR",
        bind_buffer_memory2: Option<vk::PFN_vkBindBufferMemory2> = "vkBindBufferMemory2KHR",
        bind_image_memory2: Option<vk::PFN_vkBindImageMemory2> = "vkBindImageMemory2KHR",
        get_physical_device_memory_properties2:
            Option<vk::PFN_vkGetPhysicalDeviceMemoryProperties2> = "vkGetPhysicalDeviceMemoryProperties2KHR",
        get_device_buffer_memory_requirements:
            Option<vk::PFN_vkGetDeviceBufferMemoryRequirements> = "vkGetDeviceBufferMemoryRequirements",
        get_device_image_memory_requirements:
            Option<vk::PFN_vkGetDeviceImageMemoryRequirements> = "vkGetDeviceImageMemoryRequirements",
        get_memory_win32_handle: Option<vk::PFN_vkGetMemoryWin32HandleKHR> = "vkGetMemoryWin32HandleKHR",
        #[cfg(not(sublet_vma_3_3))]
        get_physical_device_properties2:
            Option<vk::PFN_vkGetPhysicalDeviceProperties2> = "vkGetPhysicalDeviceProperties2KHR",
    }

    VmaAllocatorCreateInfo {
        flags: u32 = "flags",
        physical_device: vk::PhysicalDevice = "physicalDevice",
        device: vk::Device = "device",
        preferred_large_heap_block_size: u64 = "preferredLargeHeapBlockSize",
        allocation_callbacks: *const vk::AllocationCallbacks<'static> = "pAllocationCallbacks",
        device_memory_callbacks: *const VmaDeviceMemoryCallbacks = "pDeviceMemoryCallbacks",
        heap_size_limit: *const u64 = "pHeapSizeLimit",
        vulkan_functions: *const VmaVulkanFunctions = "pVulkanFunctions",
        instance: vk::Instance = "instance",
        vulkan_api_version: u32 = "vulkanApiVersion",
        type_external_memory_handle_types: *const vk::ExternalMemoryHandleTypeFlags = "pTypeExternalMemoryHandleTypes",
    }

    #[derive(Default)]
    VmaAllocatorInfo {
        instance: vk::Instance = "instance",
        physical_device: vk::PhysicalDevice = "physicalDevice",
        device: vk::Device = "device",
    }

    #[derive(Default, PartialEq, Eq)]
    VmaStatistics {
        block_count: u32 = "blockCount",
        allocation_count: u32 = "allocationCount",
        block_bytes: u64 = "blockBytes",
        allocation_bytes: u64 = "allocationBytes",
    }

    #[derive(PartialEq, Eq)]
    VmaDetailedStatistics {
        statistics: VmaStatistics = "statistics",
        unused_range_count: u32 = "unusedRangeCount",
        allocation_size_min: u64 = "allocationSizeMin",
        allocation_size_max: u64 = "allocationSizeMax",
        unused_range_size_min: u64 = "unusedRangeSizeMin",
        unused_range_size_max: u64 = "unusedRangeSizeMax",
    }

    #[derive(PartialEq, Eq)]
    VmaTotalStatistics {
        memory_type: [VmaDetailedStatistics; vk::MAX_MEMORY_TYPES] = "memoryType",
        memory_heap: [VmaDetailedStatistics; vk::MAX_MEMORY_HEAPS] = "memoryHeap",
        total: VmaDetailedStatistics = "total",
    }

    #[derive(Default, PartialEq, Eq)]
    VmaBudget { statistics: VmaStatistics = "statistics", usage: u64 = "usage", budget: u64 = "budget" }

    VmaAllocationCreateInfo {
        flags: u32 = "flags",
        usage: u32 = "usage",
        required_flags: vk::MemoryPropertyFlags = "requiredFlags",
        preferred_flags: vk::MemoryPropertyFlags = "preferredFlags",
        memory_type_bits: u32 = "memoryTypeBits",
        pool: VmaPool = "pool",
        user_data: *mut c_void = "pUserData",
        priority: f32 = "priority",
        #[cfg(not(sublet_vma_3_3))]
        min_alignment: u64 = "minAlignment",
    }

    VmaPoolCreateInfo {
        memory_type_index: u32 = "memoryTypeIndex",
        flags: u32 = "flags",
        block_size: u64 = "blockSize",
        min_block_count: usize = "minBlockCount",
        max_block_count: usize = "maxBlockCount",
        priority: f32 = "priority",
        min_allocation_alignment: u64 = "minAllocationAlignment",
        memory_allocate_next: *const c_void = "pMemoryAllocateNext",
    }

    VmaAllocationInfo {
        memory_type: u32 = "memoryType",
        device_memory: vk::DeviceMemory = "deviceMemory",
        offset: u64 = "offset",
        size: u64 = "size",
        mapped_data: *mut c_void = "pMappedData",
        user_data: *mut c_void = "pUserData",
        name: *const c_char = "pName",
    }

    VmaAllocationInfo2 {
        allocation_info: VmaAllocationInfo = "allocationInfo",
        block_size: u64 = "blockSize",
        dedicated_memory: vk::Bool32 = "dedicatedMemory",
    }

    VmaDefragmentationInfo {
        flags: u32 = "flags",
        pool: VmaPool = "pool",
        max_bytes_per_pass: u64 = "maxBytesPerPass",
        max_allocations_per_pass: u32 = "maxAllocationsPerPass",
        break_callback: Option<BreakFunction> = "pfnBreakCallback",
        break_callback_user_data: *mut c_void = "pBreakCallbackUserData",
    }

    VmaDefragmentationMove {
        operation: u32 = "operation",
        src_allocation: VmaAllocation = "srcAllocation",
        dst_tmp_allocation: VmaAllocation = "dstTmpAllocation",
    }

    VmaDefragmentationPassMoveInfo {
        move_count: u32 = "moveCount",
        moves: *mut VmaDefragmentationMove = "pMoves",
    }

    #[derive(Default, PartialEq, Eq)]
    VmaDefragmentationStats {
        bytes_moved: u64 = "bytesMoved",
        bytes_freed: u64 = "bytesFreed",
        allocations_moved: u32 = "allocationsMoved",
        device_memory_blocks_freed: u32 = "deviceMemoryBlocksFreed",
    }

    VmaVirtualBlockCreateInfo {
        size: u64 = "size",
        flags: u32 = "flags",
        allocation_callbacks: *const vk::AllocationCallbacks<'static> = "pAllocationCallbacks",
    }

    VmaVirtualAllocationCreateInfo {
        size: u64 = "size",
        alignment: u64 = "alignment",
        flags: u32 = "flags",
        user_data: *mut c_void = "pUserData",
    }

    VmaVirtualAllocationInfo {
        offset: u64 = "offset",
        size: u64 = "size",
        user_data: *mut c_void = "pUserData",
    }

    #[derive(Default)]
    SubletDebugSettings {
        margin: u64 = "margin",
        min_buffer_image_granularity: u64 = "minBufferImageGranularity",
        detect_corruption: vk::Bool32 = "detectCorruption",
        fill: vk::Bool32 = "fill",
        always_dedicated: vk::Bool32 = "alwaysDedicated",
        exceed_max_allocation_count: vk::Bool32 = "exceedMaxAllocationCount",
    }
}

impl VmaAllocationCreateInfo {
    /// Returns the requested alignment, or 0 with VMA 3.3, whose structure has no member for it.
    #[inline]
    pub(crate) const fn min_alignment(&self) -> u64 {
        #[cfg(not(sublet_vma_3_3))]
        let alignment = self.min_alignment;
        #[cfg(sublet_vma_3_3)]
        let alignment = 0;
        alignment
    }
}

/// Sizes of VMA's structures with 64-bit pointers.
#[cfg(target_pointer_width = "64")]
const _: () = {
    /// True if the build uses the structure sizes of VMA 3.3.
    const IS_3_3: bool = cfg!(sublet_vma_3_3);
    assert!(size_of::<VmaAllocationCreateInfo>() == if IS_3_3 { 48 } else { 56 });
    assert!(size_of::<VmaVulkanFunctions>() == if IS_3_3 { 216 } else { 224 });
    assert!(size_of::<VmaAllocationInfo>() == 56);
    assert!(size_of::<VmaAllocationInfo2>() == 72);
    assert!(size_of::<VmaAllocatorCreateInfo>() == 88);
    assert!(size_of::<VmaPoolCreateInfo>() == 56);
    assert!(size_of::<VmaBudget>() == 40);
    assert!(size_of::<VmaStatistics>() == 24);
    assert!(size_of::<VmaDetailedStatistics>() == 64);
    assert!(size_of::<VmaTotalStatistics>() == 3136);
    assert!(size_of::<VmaDefragmentationInfo>() == 48);
    assert!(size_of::<VmaDefragmentationMove>() == 24);
    assert!(size_of::<VmaDefragmentationStats>() == 24);
    assert!(size_of::<VmaVirtualBlockCreateInfo>() == 24);
    assert!(size_of::<VmaVirtualAllocationCreateInfo>() == 32);
};
