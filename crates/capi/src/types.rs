//! The structures of the C interface, as `include/vk_mem_alloc.h` declares them. What a member means is said there.

use std::ffi::{c_char, c_void};

use ash::vk;

/// `VmaAllocator`.
pub type VmaAllocator = *mut super::allocator::AllocatorObject;
/// `VmaPool`.
pub type VmaPool = *mut super::pool::PoolObject;
/// `VmaAllocation`: where its object is, with a part of its generation in the lowest bits. Only
/// the slab that gave it out reads it.
pub type VmaAllocation = *mut super::slab::Slot;
/// `VmaDefragmentationContext`.
pub type VmaDefragmentationContext = *mut super::defragmentation::ContextObject;
/// `VmaVirtualBlock`.
pub type VmaVirtualBlock = *mut super::virtual_block::BlockObject;
/// `VmaVirtualAllocation`: 64 bits on every platform, 0 for null.
pub type VmaVirtualAllocation = u64;

/// Bits of `VmaAllocatorCreateFlags` that are no [`AllocatorCreateFlags`](sublet::AllocatorCreateFlags).
pub const EXTERNALLY_SYNCHRONIZED: u32 = 0x1;
/// Bit of `VmaAllocationCreateFlags`: user data is a string, to be copied as the name.
pub const USER_DATA_COPY_STRING: u32 = 0x20;
/// Bit of `VmaPoolCreateFlags`.
pub const POOL_LINEAR_ALGORITHM: u32 = 0x4;
/// Bit of `VmaVirtualBlockCreateFlags`.
pub const VIRTUAL_BLOCK_LINEAR_ALGORITHM: u32 = 0x1;

/// `PFN_vmaAllocateDeviceMemoryFunction` and `PFN_vmaFreeDeviceMemoryFunction`.
pub type DeviceMemoryFunction = unsafe extern "system" fn(
    allocator: VmaAllocator,
    memory_type: u32,
    memory: vk::DeviceMemory,
    size: u64,
    user_data: *mut c_void,
);

/// `PFN_vmaCheckDefragmentationBreakFunction`.
pub type BreakFunction = unsafe extern "system" fn(user_data: *mut c_void) -> vk::Bool32;

/// `VmaDeviceMemoryCallbacks`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct VmaDeviceMemoryCallbacks {
    /// Told of memory that the driver gave.
    pub allocate: Option<DeviceMemoryFunction>,
    /// Told of memory that is about to go back.
    pub free: Option<DeviceMemoryFunction>,
    /// Handed to both.
    pub user_data: Pointer,
}

/// A pointer of the program's, which only it looks behind.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pointer(pub *mut c_void);

impl Default for Pointer {
    fn default() -> Self {
        Self(std::ptr::null_mut())
    }
}

/// `VmaVulkanFunctions`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
#[allow(missing_docs, reason = "each is the function of its name")]
pub struct VmaVulkanFunctions {
    pub get_instance_proc_addr: Option<vk::PFN_vkGetInstanceProcAddr>,
    pub get_device_proc_addr: Option<vk::PFN_vkGetDeviceProcAddr>,
    pub get_physical_device_properties: Option<vk::PFN_vkGetPhysicalDeviceProperties>,
    pub get_physical_device_memory_properties: Option<vk::PFN_vkGetPhysicalDeviceMemoryProperties>,
    pub allocate_memory: Option<vk::PFN_vkAllocateMemory>,
    pub free_memory: Option<vk::PFN_vkFreeMemory>,
    pub map_memory: Option<vk::PFN_vkMapMemory>,
    pub unmap_memory: Option<vk::PFN_vkUnmapMemory>,
    pub flush_mapped_memory_ranges: Option<vk::PFN_vkFlushMappedMemoryRanges>,
    pub invalidate_mapped_memory_ranges: Option<vk::PFN_vkInvalidateMappedMemoryRanges>,
    pub bind_buffer_memory: Option<vk::PFN_vkBindBufferMemory>,
    pub bind_image_memory: Option<vk::PFN_vkBindImageMemory>,
    pub get_buffer_memory_requirements: Option<vk::PFN_vkGetBufferMemoryRequirements>,
    pub get_image_memory_requirements: Option<vk::PFN_vkGetImageMemoryRequirements>,
    pub create_buffer: Option<vk::PFN_vkCreateBuffer>,
    pub destroy_buffer: Option<vk::PFN_vkDestroyBuffer>,
    pub create_image: Option<vk::PFN_vkCreateImage>,
    pub destroy_image: Option<vk::PFN_vkDestroyImage>,
    pub cmd_copy_buffer: Option<vk::PFN_vkCmdCopyBuffer>,
    pub get_buffer_memory_requirements2: Option<vk::PFN_vkGetBufferMemoryRequirements2>,
    pub get_image_memory_requirements2: Option<vk::PFN_vkGetImageMemoryRequirements2>,
    pub bind_buffer_memory2: Option<vk::PFN_vkBindBufferMemory2>,
    pub bind_image_memory2: Option<vk::PFN_vkBindImageMemory2>,
    pub get_physical_device_memory_properties2: Option<vk::PFN_vkGetPhysicalDeviceMemoryProperties2>,
    pub get_device_buffer_memory_requirements: Option<vk::PFN_vkGetDeviceBufferMemoryRequirements>,
    pub get_device_image_memory_requirements: Option<vk::PFN_vkGetDeviceImageMemoryRequirements>,
    /// Of Windows; elsewhere a pointer that nobody looks at.
    pub get_memory_win32_handle: Option<vk::PFN_vkGetMemoryWin32HandleKHR>,
    #[cfg(not(sublet_vma_3_3))]
    pub get_physical_device_properties2: Option<vk::PFN_vkGetPhysicalDeviceProperties2>,
}

impl std::fmt::Debug for VmaVulkanFunctions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("VmaVulkanFunctions").finish_non_exhaustive()
    }
}

/// `VmaAllocatorCreateInfo`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "vk_mem_alloc.h has the documentation")]
pub struct VmaAllocatorCreateInfo {
    pub flags: u32,
    pub physical_device: vk::PhysicalDevice,
    pub device: vk::Device,
    pub preferred_large_heap_block_size: u64,
    pub allocation_callbacks: *const vk::AllocationCallbacks<'static>,
    pub device_memory_callbacks: *const VmaDeviceMemoryCallbacks,
    pub heap_size_limit: *const u64,
    pub vulkan_functions: *const VmaVulkanFunctions,
    pub instance: vk::Instance,
    pub vulkan_api_version: u32,
    pub type_external_memory_handle_types: *const vk::ExternalMemoryHandleTypeFlags,
}

/// `VmaAllocatorInfo`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs, reason = "vk_mem_alloc.h has the documentation")]
pub struct VmaAllocatorInfo {
    pub instance: vk::Instance,
    pub physical_device: vk::PhysicalDevice,
    pub device: vk::Device,
}

/// `VmaStatistics`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "vk_mem_alloc.h has the documentation")]
pub struct VmaStatistics {
    pub block_count: u32,
    pub allocation_count: u32,
    pub block_bytes: u64,
    pub allocation_bytes: u64,
}

/// `VmaDetailedStatistics`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "vk_mem_alloc.h has the documentation")]
pub struct VmaDetailedStatistics {
    pub statistics: VmaStatistics,
    pub unused_range_count: u32,
    pub allocation_size_min: u64,
    pub allocation_size_max: u64,
    pub unused_range_size_min: u64,
    pub unused_range_size_max: u64,
}

/// `VmaTotalStatistics`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "vk_mem_alloc.h has the documentation")]
pub struct VmaTotalStatistics {
    pub memory_type: [VmaDetailedStatistics; vk::MAX_MEMORY_TYPES],
    pub memory_heap: [VmaDetailedStatistics; vk::MAX_MEMORY_HEAPS],
    pub total: VmaDetailedStatistics,
}

/// `VmaBudget`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "vk_mem_alloc.h has the documentation")]
pub struct VmaBudget {
    pub statistics: VmaStatistics,
    pub usage: u64,
    pub budget: u64,
}

/// `VmaAllocationCreateInfo`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "vk_mem_alloc.h has the documentation")]
pub struct VmaAllocationCreateInfo {
    pub flags: u32,
    pub usage: u32,
    pub required_flags: vk::MemoryPropertyFlags,
    pub preferred_flags: vk::MemoryPropertyFlags,
    pub memory_type_bits: u32,
    pub pool: VmaPool,
    pub user_data: *mut c_void,
    pub priority: f32,
    #[cfg(not(sublet_vma_3_3))]
    pub min_alignment: u64,
}

impl VmaAllocationCreateInfo {
    /// The alignment that is asked for, where the structure has a member for it.
    #[inline]
    pub(crate) const fn min_alignment(&self) -> u64 {
        #[cfg(not(sublet_vma_3_3))]
        let alignment = self.min_alignment;
        #[cfg(sublet_vma_3_3)]
        let alignment = 0;
        alignment
    }
}

/// `VmaPoolCreateInfo`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "vk_mem_alloc.h has the documentation")]
pub struct VmaPoolCreateInfo {
    pub memory_type_index: u32,
    pub flags: u32,
    pub block_size: u64,
    pub min_block_count: usize,
    pub max_block_count: usize,
    pub priority: f32,
    pub min_allocation_alignment: u64,
    pub memory_allocate_next: *const c_void,
}

/// `VmaAllocationInfo`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "vk_mem_alloc.h has the documentation")]
pub struct VmaAllocationInfo {
    pub memory_type: u32,
    pub device_memory: vk::DeviceMemory,
    pub offset: u64,
    pub size: u64,
    pub mapped_data: *mut c_void,
    pub user_data: *mut c_void,
    pub name: *const c_char,
}

/// `VmaAllocationInfo2`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "vk_mem_alloc.h has the documentation")]
pub struct VmaAllocationInfo2 {
    pub allocation_info: VmaAllocationInfo,
    pub block_size: u64,
    pub dedicated_memory: vk::Bool32,
}

/// `VmaDefragmentationInfo`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "vk_mem_alloc.h has the documentation")]
pub struct VmaDefragmentationInfo {
    pub flags: u32,
    pub pool: VmaPool,
    pub max_bytes_per_pass: u64,
    pub max_allocations_per_pass: u32,
    pub break_callback: Option<BreakFunction>,
    pub break_callback_user_data: *mut c_void,
}

/// `VmaDefragmentationMove`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "vk_mem_alloc.h has the documentation")]
pub struct VmaDefragmentationMove {
    pub operation: u32,
    pub src_allocation: VmaAllocation,
    pub dst_tmp_allocation: VmaAllocation,
}

/// `VmaDefragmentationPassMoveInfo`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "vk_mem_alloc.h has the documentation")]
pub struct VmaDefragmentationPassMoveInfo {
    pub move_count: u32,
    pub moves: *mut VmaDefragmentationMove,
}

/// `VmaDefragmentationStats`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "vk_mem_alloc.h has the documentation")]
pub struct VmaDefragmentationStats {
    pub bytes_moved: u64,
    pub bytes_freed: u64,
    pub allocations_moved: u32,
    pub device_memory_blocks_freed: u32,
}

/// `VmaVirtualBlockCreateInfo`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "vk_mem_alloc.h has the documentation")]
pub struct VmaVirtualBlockCreateInfo {
    pub size: u64,
    pub flags: u32,
    pub allocation_callbacks: *const vk::AllocationCallbacks<'static>,
}

/// `VmaVirtualAllocationCreateInfo`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "vk_mem_alloc.h has the documentation")]
pub struct VmaVirtualAllocationCreateInfo {
    pub size: u64,
    pub alignment: u64,
    pub flags: u32,
    pub user_data: *mut c_void,
}

/// `VmaVirtualAllocationInfo`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "vk_mem_alloc.h has the documentation")]
pub struct VmaVirtualAllocationInfo {
    pub offset: u64,
    pub size: u64,
    pub user_data: *mut c_void,
}

/// `SubletDebugSettings`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs, reason = "vk_mem_alloc.h has the documentation")]
pub struct SubletDebugSettings {
    pub margin: u64,
    pub min_buffer_image_granularity: u64,
    pub detect_corruption: vk::Bool32,
    pub fill: vk::Bool32,
    pub always_dedicated: vk::Bool32,
    pub exceed_max_allocation_count: vk::Bool32,
}

/// What C sees of a structure: its size, and where its members are. The test of the header compiles these as
/// assertions.
#[derive(Clone, Debug)]
pub struct Layout {
    /// The structure's name in C.
    pub name: &'static str,
    /// Bytes of one.
    pub size: usize,
    /// The members that C knows by these names, and the bytes before each.
    pub members: Vec<(&'static str, usize)>,
}

/// Lists the layout of each structure: the Rust name of a member, and its name in C.
macro_rules! layouts {
    ($( $structure:ident { $($(#[$condition:meta])? $member:ident = $name:literal),* $(,)? } )*) => {
        /// The layout of every structure.
        #[must_use]
        pub fn layouts() -> Vec<Layout> {
            vec![$(
                Layout {
                    name: stringify!($structure),
                    size: size_of::<$structure>(),
                    members: vec![$($(#[$condition])? ($name, std::mem::offset_of!($structure, $member)),)*],
                },
            )*]
        }
    };
}

layouts! {
    VmaDeviceMemoryCallbacks { allocate = "pfnAllocate", free = "pfnFree", user_data = "pUserData" }
    VmaVulkanFunctions {
        get_instance_proc_addr = "vkGetInstanceProcAddr",
        get_device_proc_addr = "vkGetDeviceProcAddr",
        get_physical_device_properties = "vkGetPhysicalDeviceProperties",
        get_physical_device_memory_properties = "vkGetPhysicalDeviceMemoryProperties",
        allocate_memory = "vkAllocateMemory",
        free_memory = "vkFreeMemory",
        map_memory = "vkMapMemory",
        unmap_memory = "vkUnmapMemory",
        flush_mapped_memory_ranges = "vkFlushMappedMemoryRanges",
        invalidate_mapped_memory_ranges = "vkInvalidateMappedMemoryRanges",
        bind_buffer_memory = "vkBindBufferMemory",
        bind_image_memory = "vkBindImageMemory",
        get_buffer_memory_requirements = "vkGetBufferMemoryRequirements",
        get_image_memory_requirements = "vkGetImageMemoryRequirements",
        create_buffer = "vkCreateBuffer",
        destroy_buffer = "vkDestroyBuffer",
        create_image = "vkCreateImage",
        destroy_image = "vkDestroyImage",
        cmd_copy_buffer = "vkCmdCopyBuffer",
        get_buffer_memory_requirements2 = "vkGetBufferMemoryRequirements2KHR",
        get_image_memory_requirements2 = "vkGetImageMemoryRequirements2KHR",
        bind_buffer_memory2 = "vkBindBufferMemory2KHR",
        bind_image_memory2 = "vkBindImageMemory2KHR",
        get_physical_device_memory_properties2 = "vkGetPhysicalDeviceMemoryProperties2KHR",
        get_device_buffer_memory_requirements = "vkGetDeviceBufferMemoryRequirements",
        get_device_image_memory_requirements = "vkGetDeviceImageMemoryRequirements",
        get_memory_win32_handle = "vkGetMemoryWin32HandleKHR",
        #[cfg(not(sublet_vma_3_3))]
        get_physical_device_properties2 = "vkGetPhysicalDeviceProperties2KHR",
    }
    VmaAllocatorCreateInfo {
        flags = "flags",
        physical_device = "physicalDevice",
        device = "device",
        preferred_large_heap_block_size = "preferredLargeHeapBlockSize",
        allocation_callbacks = "pAllocationCallbacks",
        device_memory_callbacks = "pDeviceMemoryCallbacks",
        heap_size_limit = "pHeapSizeLimit",
        vulkan_functions = "pVulkanFunctions",
        instance = "instance",
        vulkan_api_version = "vulkanApiVersion",
        type_external_memory_handle_types = "pTypeExternalMemoryHandleTypes",
    }
    VmaAllocatorInfo { instance = "instance", physical_device = "physicalDevice", device = "device" }
    VmaStatistics {
        block_count = "blockCount",
        allocation_count = "allocationCount",
        block_bytes = "blockBytes",
        allocation_bytes = "allocationBytes",
    }
    VmaDetailedStatistics {
        statistics = "statistics",
        unused_range_count = "unusedRangeCount",
        allocation_size_min = "allocationSizeMin",
        allocation_size_max = "allocationSizeMax",
        unused_range_size_min = "unusedRangeSizeMin",
        unused_range_size_max = "unusedRangeSizeMax",
    }
    VmaTotalStatistics { memory_type = "memoryType", memory_heap = "memoryHeap", total = "total" }
    VmaBudget { statistics = "statistics", usage = "usage", budget = "budget" }
    VmaAllocationCreateInfo {
        flags = "flags",
        usage = "usage",
        required_flags = "requiredFlags",
        preferred_flags = "preferredFlags",
        memory_type_bits = "memoryTypeBits",
        pool = "pool",
        user_data = "pUserData",
        priority = "priority",
        #[cfg(not(sublet_vma_3_3))]
        min_alignment = "minAlignment",
    }
    VmaPoolCreateInfo {
        memory_type_index = "memoryTypeIndex",
        flags = "flags",
        block_size = "blockSize",
        min_block_count = "minBlockCount",
        max_block_count = "maxBlockCount",
        priority = "priority",
        min_allocation_alignment = "minAllocationAlignment",
        memory_allocate_next = "pMemoryAllocateNext",
    }
    VmaAllocationInfo {
        memory_type = "memoryType",
        device_memory = "deviceMemory",
        offset = "offset",
        size = "size",
        mapped_data = "pMappedData",
        user_data = "pUserData",
        name = "pName",
    }
    VmaAllocationInfo2 {
        allocation_info = "allocationInfo",
        block_size = "blockSize",
        dedicated_memory = "dedicatedMemory",
    }
    VmaDefragmentationInfo {
        flags = "flags",
        pool = "pool",
        max_bytes_per_pass = "maxBytesPerPass",
        max_allocations_per_pass = "maxAllocationsPerPass",
        break_callback = "pfnBreakCallback",
        break_callback_user_data = "pBreakCallbackUserData",
    }
    VmaDefragmentationMove {
        operation = "operation",
        src_allocation = "srcAllocation",
        dst_tmp_allocation = "dstTmpAllocation",
    }
    VmaDefragmentationPassMoveInfo { move_count = "moveCount", moves = "pMoves" }
    VmaDefragmentationStats {
        bytes_moved = "bytesMoved",
        bytes_freed = "bytesFreed",
        allocations_moved = "allocationsMoved",
        device_memory_blocks_freed = "deviceMemoryBlocksFreed",
    }
    VmaVirtualBlockCreateInfo { size = "size", flags = "flags", allocation_callbacks = "pAllocationCallbacks" }
    VmaVirtualAllocationCreateInfo {
        size = "size",
        alignment = "alignment",
        flags = "flags",
        user_data = "pUserData",
    }
    VmaVirtualAllocationInfo { offset = "offset", size = "size", user_data = "pUserData" }
    SubletDebugSettings {
        margin = "margin",
        min_buffer_image_granularity = "minBufferImageGranularity",
        detect_corruption = "detectCorruption",
        fill = "fill",
        always_dedicated = "alwaysDedicated",
        exceed_max_allocation_count = "exceedMaxAllocationCount",
    }
}

/// What VMA's structures measure where pointers have 64 bits.
#[cfg(target_pointer_width = "64")]
const _: () = {
    /// The version of VMA whose sizes are served.
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
