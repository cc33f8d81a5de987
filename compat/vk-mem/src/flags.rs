//! Flags with VMA's values, and usages.

/// The intended usage of memory.
#[derive(Debug, Clone, Copy, Eq, PartialEq, Hash, PartialOrd, Ord)]
pub enum MemoryUsage {
    /// Determined by the flags.
    Unknown,
    /// Device memory.
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
    /// Not in device memory, if there is other memory.
    #[deprecated(since = "0.3.0", note = "`Auto` looks at the resource")]
    CpuCopy,
    /// Lazily allocated: for attachments that need not be stored.
    GpuLazy,
    /// Determined by the resource's own usage.
    Auto,
    /// Same as `Auto`, but prefers device memory.
    AutoPreferDevice,
    /// Same as `Auto`, but prefers host memory.
    AutoPreferHost,
}

bitflags::bitflags! {
    /// Flags of an [`Allocator`](crate::Allocator): the extensions that the device has enabled.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
    pub struct AllocatorCreateFlags: u32 {
        /// Nothing.
        const NONE = 0;
        /// Has no effect here.
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
    /// Flags of an allocation.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
    pub struct AllocationCreateFlags: u32 {
        /// Uses dedicated memory.
        const DEDICATED_MEMORY = 0x1;
        /// Uses only existing memory.
        const NEVER_ALLOCATE = 0x2;
        /// Maps the memory while the allocation lives.
        const MAPPED = 0x4;
        /// `user_data` is the address of a null-terminated string, which becomes the name.
        const USER_DATA_COPY_STRING = 0x20;
        /// Allocates from the upper end of a linear pool.
        const UPPER_ADDRESS = 0x40;
        /// Does not bind the resource.
        const DONT_BIND = 0x80;
        /// Fails rather than exceed the heap's budget.
        const WITHIN_BUDGET = 0x100;
        /// Allows other resources to share the memory.
        const CAN_ALIAS = 0x200;
        /// The host writes sequentially and does not read.
        const HOST_ACCESS_SEQUENTIAL_WRITE = 0x400;
        /// The host reads and writes it in any order.
        const HOST_ACCESS_RANDOM = 0x800;
        /// Also allows memory that is not host-visible.
        const HOST_ACCESS_ALLOW_TRANSFER_INSTEAD = 0x1000;
        /// Chooses the place that wastes least.
        const STRATEGY_MIN_MEMORY = 0x1_0000;
        /// Same as `STRATEGY_MIN_MEMORY`.
        const STRATEGY_BEST_FIT = 0x1_0000;
        /// Chooses the place that is found fastest.
        const STRATEGY_MIN_TIME = 0x2_0000;
        /// Same as `STRATEGY_MIN_TIME`.
        const STRATEGY_FIRST_FIT = 0x2_0000;
        /// Chooses the lowest place.
        const STRATEGY_MIN_OFFSET = 0x4_0000;
    }
}

bitflags::bitflags! {
    /// Flags of a pool.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
    pub struct AllocatorPoolCreateFlags: u32 {
        /// The pool holds only buffers, or only images with optimal tiling.
        const IGNORE_BUFFER_IMAGE_GRANULARITY = 0x2;
        /// A stack, a ring or a double stack.
        const LINEAR_ALGORITHM = 0x4;
        /// Mask of the bits that choose the algorithm.
        const ALGORITHM_MASK = 0x4;
    }
}

bitflags::bitflags! {
    /// Flags of a [`VirtualBlock`](crate::VirtualBlock).
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
    pub struct VirtualBlockCreateFlags: u32 {
        /// A stack, a ring or a double stack.
        const VMA_VIRTUAL_BLOCK_CREATE_LINEAR_ALGORITHM_BIT = 0x1;
    }
}

bitflags::bitflags! {
    /// Flags of a range in a [`VirtualBlock`](crate::VirtualBlock).
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
    pub struct VirtualAllocationCreateFlags: u32 {
        /// Allocates from the upper end of a linear block.
        const VMA_VIRTUAL_ALLOCATION_CREATE_UPPER_ADDRESS_BIT = 0x40;
        /// Chooses the place that wastes least.
        const VMA_VIRTUAL_ALLOCATION_CREATE_STRATEGY_MIN_MEMORY_BIT = 0x1_0000;
        /// Chooses the place that is found fastest.
        const VMA_VIRTUAL_ALLOCATION_CREATE_STRATEGY_MIN_TIME_BIT = 0x2_0000;
        /// Chooses the lowest place.
        const VMA_VIRTUAL_ALLOCATION_CREATE_STRATEGY_MIN_OFFSET_BIT = 0x4_0000;
        /// Mask of the bits that choose the place.
        const VMA_VIRTUAL_ALLOCATION_CREATE_STRATEGY_MASK = 0x7_0000;
    }
}
