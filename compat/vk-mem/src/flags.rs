//! Flags, with the values that VMA gave them, and usages.

/// What memory is for.
#[derive(Debug, Clone, Copy, Eq, PartialEq, Hash, PartialOrd, Ord)]
pub enum MemoryUsage {
    /// The flags say it.
    Unknown,
    /// The device's own.
    #[deprecated(since = "0.3.0", note = "`Auto` looks at the resource")]
    GpuOnly,
    /// Read and written by the host.
    #[deprecated(since = "0.3.0", note = "`Auto` looks at the resource")]
    CpuOnly,
    /// Written by the host, read by the device.
    #[deprecated(since = "0.3.0", note = "`Auto` looks at the resource")]
    CpuToGpu,
    /// Written by the device, read by the host.
    #[deprecated(since = "0.3.0", note = "`Auto` looks at the resource")]
    GpuToCpu,
    /// Not the device's, if there is other memory.
    #[deprecated(since = "0.3.0", note = "`Auto` looks at the resource")]
    CpuCopy,
    /// Lazily allocated: for attachments that need not be stored.
    GpuLazy,
    /// What the resource's own usage asks for.
    Auto,
    /// The same, rather in the device's memory.
    AutoPreferDevice,
    /// The same, rather in the host's memory.
    AutoPreferHost,
}

bitflags::bitflags! {
    /// How an [`Allocator`](crate::Allocator) is made: the extensions that the device has enabled.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
    pub struct AllocatorCreateFlags: u32 {
        /// Nothing.
        const NONE = 0;
        /// Of no effect here.
        const EXTERNALLY_SYNCHRONIZED = 0x1;
        /// VK_KHR_dedicated_allocation and VK_KHR_get_memory_requirements2.
        const KHR_DEDICATED_ALLOCATION = 0x2;
        /// VK_KHR_bind_memory2.
        const KHR_BIND_MEMORY2 = 0x4;
        /// VK_EXT_memory_budget.
        const EXT_MEMORY_BUDGET = 0x8;
        /// VK_AMD_device_coherent_memory.
        const AMD_DEVICE_COHERENT_MEMORY = 0x10;
        /// The feature bufferDeviceAddress.
        const BUFFER_DEVICE_ADDRESS = 0x20;
        /// VK_EXT_memory_priority.
        const EXT_MEMORY_PRIORITY = 0x40;
        /// VK_KHR_maintenance4.
        const KHR_MAINTENANCE4 = 0x80;
        /// VK_KHR_maintenance5.
        const KHR_MAINTENANCE5 = 0x100;
    }
}

bitflags::bitflags! {
    /// How memory is allocated.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
    pub struct AllocationCreateFlags: u32 {
        /// A `VkDeviceMemory` of its own.
        const DEDICATED_MEMORY = 0x1;
        /// Only in memory that is there already.
        const NEVER_ALLOCATE = 0x2;
        /// Mapped for as long as it lives.
        const MAPPED = 0x4;
        /// `user_data` is the address of a string that ends with a zero, which becomes the name.
        const USER_DATA_COPY_STRING = 0x20;
        /// From the upper end of a linear pool.
        const UPPER_ADDRESS = 0x40;
        /// The resource is not bound.
        const DONT_BIND = 0x80;
        /// Only within the heap's budget.
        const WITHIN_BUDGET = 0x100;
        /// Other resources will share the memory.
        const CAN_ALIAS = 0x200;
        /// The host writes it in order, and does not read it.
        const HOST_ACCESS_SEQUENTIAL_WRITE = 0x400;
        /// The host reads and writes it in any order.
        const HOST_ACCESS_RANDOM = 0x800;
        /// Memory that the host does not see will do as well.
        const HOST_ACCESS_ALLOW_TRANSFER_INSTEAD = 0x1000;
        /// The place that wastes least.
        const STRATEGY_MIN_MEMORY = 0x1_0000;
        /// The same.
        const STRATEGY_BEST_FIT = 0x1_0000;
        /// The place that is found soonest.
        const STRATEGY_MIN_TIME = 0x2_0000;
        /// The same.
        const STRATEGY_FIRST_FIT = 0x2_0000;
        /// The lowest place.
        const STRATEGY_MIN_OFFSET = 0x4_0000;
    }
}

bitflags::bitflags! {
    /// How a pool is made.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
    pub struct AllocatorPoolCreateFlags: u32 {
        /// Nothing but buffers, or nothing but images with optimal tiling, goes into it.
        const IGNORE_BUFFER_IMAGE_GRANULARITY = 0x2;
        /// A stack, a ring or two stacks.
        const LINEAR_ALGORITHM = 0x4;
        /// The bits that choose the algorithm.
        const ALGORITHM_MASK = 0x4;
    }
}

bitflags::bitflags! {
    /// How a [`VirtualBlock`](crate::VirtualBlock) is made.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
    pub struct VirtualBlockCreateFlags: u32 {
        /// A stack, a ring or two stacks.
        const VMA_VIRTUAL_BLOCK_CREATE_LINEAR_ALGORITHM_BIT = 0x1;
    }
}

bitflags::bitflags! {
    /// How a range of a [`VirtualBlock`](crate::VirtualBlock) is allocated.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
    pub struct VirtualAllocationCreateFlags: u32 {
        /// From the upper end of a linear block.
        const VMA_VIRTUAL_ALLOCATION_CREATE_UPPER_ADDRESS_BIT = 0x40;
        /// The place that wastes least.
        const VMA_VIRTUAL_ALLOCATION_CREATE_STRATEGY_MIN_MEMORY_BIT = 0x1_0000;
        /// The place that is found soonest.
        const VMA_VIRTUAL_ALLOCATION_CREATE_STRATEGY_MIN_TIME_BIT = 0x2_0000;
        /// The lowest place.
        const VMA_VIRTUAL_ALLOCATION_CREATE_STRATEGY_MIN_OFFSET_BIT = 0x4_0000;
        /// The bits that choose the place.
        const VMA_VIRTUAL_ALLOCATION_CREATE_STRATEGY_MASK = 0x7_0000;
    }
}
