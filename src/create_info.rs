//! Flags, usages and create-infos, with VMA's names.

use ash::vk;

use crate::device::MemoryAllocateNext;
use crate::engine::Algorithm;
use crate::pool::{Pool, Scope};

bitflags::bitflags! {
    /// Flags of an [`AllocationCreateInfo`]. The values are VMA's.
    ///
    /// ```
    /// use sublet::AllocationCreateFlags;
    /// let upload = AllocationCreateFlags::HOST_ACCESS_SEQUENTIAL_WRITE | AllocationCreateFlags::MAPPED;
    /// assert_eq!(upload.bits(), 0x404);
    /// ```
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
    pub struct AllocationCreateFlags: u32 {
        /// The allocation gets its own `VkDeviceMemory`.
        #[doc(alias = "ALLOCATION_FLAG_COMMITTED")]
        const DEDICATED_MEMORY = 0x1;
        /// Uses only existing blocks: the driver is not called for more memory.
        #[doc(alias = "ALLOCATION_FLAG_NEVER_ALLOCATE")]
        const NEVER_ALLOCATE = 0x2;
        /// The allocation stays mapped for its whole life. Ignored if the memory is not host-visible.
        const MAPPED = 0x4;
        /// Allocates from the upper end of a linear pool: the second side of a double stack.
        #[doc(alias = "ALLOCATION_FLAG_UPPER_ADDRESS")]
        const UPPER_ADDRESS = 0x40;
        /// `create_buffer` and `create_image` do not bind the memory to the new resource.
        const DONT_BIND = 0x80;
        /// Fails rather than exceed the heap's budget. Checked whenever the driver would be called for memory.
        #[doc(alias = "ALLOCATION_FLAG_WITHIN_BUDGET")]
        const WITHIN_BUDGET = 0x100;
        /// Several resources will be bound to this memory: no `VkMemoryDedicatedAllocateInfo` is attached.
        #[doc(alias = "ALLOCATION_FLAG_CAN_ALIAS")]
        const CAN_ALIAS = 0x200;
        /// The host writes in order and never reads: write-combined memory is good enough.
        const HOST_ACCESS_SEQUENTIAL_WRITE = 0x400;
        /// The host reads, or writes in any order: cached memory is preferred.
        const HOST_ACCESS_RANDOM = 0x800;
        /// With a `HOST_ACCESS` flag: also accepts memory that is not host-visible. The program then copies with a
        /// transfer.
        const HOST_ACCESS_ALLOW_TRANSFER_INSTEAD = 0x1000;
        /// Optimizes placement for tight packing.
        const STRATEGY_MIN_MEMORY = 0x1_0000;
        /// Optimizes placement for time.
        const STRATEGY_MIN_TIME = 0x2_0000;
        /// Places at the lowest offset.
        const STRATEGY_MIN_OFFSET = 0x4_0000;
    }
}

impl AllocationCreateFlags {
    /// The strategy bits; at most one of them may be set.
    pub const STRATEGY_MASK: Self =
        Self::STRATEGY_MIN_MEMORY.union(Self::STRATEGY_MIN_TIME).union(Self::STRATEGY_MIN_OFFSET);
    /// Both host-access bits; at most one of them may be set.
    pub const HOST_ACCESS_MASK: Self = Self::HOST_ACCESS_SEQUENTIAL_WRITE.union(Self::HOST_ACCESS_RANDOM);
}

bitflags::bitflags! {
    /// Features of the device, and how the allocator uses it. The values are VMA's, except for the last one, which VMA
    /// does not have.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
    pub struct AllocatorCreateFlags: u32 {
        /// Has no effect: an allocator always has its locks. An uncontended lock is too cheap to justify a variant
        /// without locks.
        const EXTERNALLY_SYNCHRONIZED = 0x1;
        /// VK_KHR_get_memory_requirements2 and VK_KHR_dedicated_allocation are enabled. Implied by Vulkan 1.1.
        const KHR_DEDICATED_ALLOCATION = 0x2;
        /// VK_KHR_bind_memory2 is enabled. Implied by Vulkan 1.1.
        const KHR_BIND_MEMORY2 = 0x4;
        /// VK_EXT_memory_budget is enabled: budgets come from the driver.
        const EXT_MEMORY_BUDGET = 0x8;
        /// The feature `deviceCoherentMemory` of VK_AMD_device_coherent_memory is enabled. Without this flag such
        /// memory types are never used.
        const AMD_DEVICE_COHERENT_MEMORY = 0x10;
        /// The feature `bufferDeviceAddress` is enabled: memory is allocated with
        /// `VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT`.
        const BUFFER_DEVICE_ADDRESS = 0x20;
        /// VK_EXT_memory_priority is enabled.
        const EXT_MEMORY_PRIORITY = 0x40;
        /// VK_KHR_maintenance4 is enabled. Implied by Vulkan 1.3.
        const KHR_MAINTENANCE4 = 0x80;
        /// VK_KHR_maintenance5 is enabled: buffer usage is read from `VkBufferUsageFlags2CreateInfoKHR` if present.
        /// Implied by Vulkan 1.4.
        const KHR_MAINTENANCE5 = 0x100;
        /// VK_KHR_external_memory_win32 is enabled: memory may be exported as Windows handles.
        const KHR_EXTERNAL_MEMORY_WIN32 = 0x200;
        /// VK_EXT_pageable_device_local_memory is enabled: the priority of memory may be changed.
        const EXT_PAGEABLE_DEVICE_LOCAL_MEMORY = 0x1_0000;
        /// An empty block of a memory type stays only if it is the last one. If there are others, it is freed at once.
        /// So that this is rare, requests fill the last of two or three blocks first. Every allocation takes the slow
        /// path. Does not apply to pools.
        const KEEP_ONLY_LAST_BLOCK = 0x2_0000;
    }
}

/// The sizes of the blocks of a memory type, in bytes. The first block has the first size. With each block, the size of
/// the next one doubles, up to the largest size. A request above the size of the next block enters a block that has
/// room, or else gets dedicated memory where possible. This is gpu-allocator's rule.
///
/// Sizes are rounded up to multiples of 32 bytes, and limited to the heap. If the heap's budget or the driver has no
/// room for a block, the allocator tries smaller ones.
///
/// A program that knows its devices sets the sizes, here with smaller blocks for uploads than for textures:
///
/// ```
/// # use sublet::*; use ash::vk;
/// # let gpu = sim::Gpu::new(sim::Profile::by_name("nvidia-h200").unwrap());
/// # let memory = unsafe { gpu.instance().get_physical_device_memory_properties(gpu.physical_device()) };
/// let sizes: Vec<BlockSizes> = memory
///     .memory_types_as_slice()
///     .iter()
///     .map(|memory_type| match memory_type.property_flags.contains(vk::MemoryPropertyFlags::HOST_VISIBLE) {
///         true => BlockSizes { first: 4 << 20, largest: 32 << 20 },
///         false => BlockSizes { first: 64 << 20, largest: 512 << 20 },
///     })
///     .collect();
/// let info = AllocatorCreateInfo { block_sizes: &sizes, ..AllocatorCreateInfo::for_gpu(&gpu) };
/// // SAFETY: instance and device are live, and outlive the allocator.
/// let allocator = unsafe { Allocator::new(&info) }?;
/// let requirements = vk::MemoryRequirements { size: 65_536, alignment: 256, memory_type_bits: !0 };
/// let upload = AllocationCreateInfo { usage: MemoryUsage::CpuOnly, ..Default::default() };
/// let memory = allocator.allocate_memory(&requirements, &upload)?;
/// assert_eq!(allocator.statistics().block_bytes, 4 << 20);
/// # // SAFETY: nothing was ever bound to it.
/// # unsafe { allocator.free_memory(memory) }?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BlockSizes {
    /// Bytes of the first block, at most the largest size; 0 means an eighth of the largest.
    pub first: u64,
    /// Bytes of the largest block; 0 means a size that depends on the heap and on
    /// [`preferred_large_heap_block_size`](crate::AllocatorCreateInfo::preferred_large_heap_block_size).
    pub largest: u64,
}

/// The rule for the sizes of new blocks, and for the empty blocks that stay. Each one trades reserved memory for time in
/// the driver.
///
/// | rule | a new block | unused memory | calls of the driver |
/// |---|---|---|---|
/// | [`MemoryFirst`](Self::MemoryFirst) | a sixth of the bytes in use, at least 1 MiB | the least | the most, each is short |
/// | [`Balanced`](Self::Balanced) | a quarter of the bytes in use, at least 4 MiB | a little more | fewer, each is short |
/// | [`Vma`](Self::Vma) | 32 MiB, doubling to 256 MiB | the last block may be almost unused | the fewest, some take long |
///
/// The first two rules limit usual blocks to sizes that a driver creates within about 1.5 ms:
/// [how blocks grow](crate::guide::performance#how-blocks-grow).
///
/// ```
/// # use sublet::*; use ash::vk;
/// # let gpu = sim::Gpu::new(sim::Profile::by_name("nvidia-h200").unwrap());
/// let reserved = |growth| {
///     let info = AllocatorCreateInfo { growth, ..AllocatorCreateInfo::for_gpu(&gpu) };
///     // SAFETY: instance and device are live, and outlive the allocator.
///     let allocator = unsafe { Allocator::new(&info) }?;
///     let requirements = vk::MemoryRequirements { size: 65_536, alignment: 256, memory_type_bits: !0 };
///     let memory = allocator.allocate_memory(&requirements, &AllocationCreateInfo::default())?;
///     let bytes = allocator.statistics().block_bytes;
///     // SAFETY: nothing was ever bound to it.
///     unsafe { allocator.free_memory(memory) }?;
///     Ok::<u64, Box<dyn std::error::Error>>(bytes)
/// };
/// assert_eq!(reserved(GrowthPreset::MemoryFirst)?, 1 << 20);
/// assert_eq!(reserved(GrowthPreset::Balanced)?, 4 << 20);
/// assert_eq!(reserved(GrowthPreset::Vma)?, 32 << 20);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub enum GrowthPreset {
    /// Reserves the least: for programs that share a small heap with others, or that allocate rarely.
    MemoryFirst,
    /// Blocks follow the bytes in use, and few calls of the driver are needed.
    #[default]
    Balanced,
    /// VMA's rule: sizes double from an eighth of the largest block, which has 256 MiB in heaps above 1 GiB, or
    /// [`preferred_large_heap_block_size`](crate::AllocatorCreateInfo::preferred_large_heap_block_size). A request above
    /// half of the largest block gets dedicated memory even if a block has room.
    Vma,
}

impl GrowthPreset {
    /// Every preset, the default first.
    pub const ALL: &'static [Self] = &[Self::Balanced, Self::MemoryFirst, Self::Vma];

    /// The name on command lines.
    ///
    /// ```
    /// assert_eq!(sublet::GrowthPreset::MemoryFirst.name(), "memory-first");
    /// ```
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::MemoryFirst => "memory-first",
            Self::Balanced => "balanced",
            Self::Vma => "vma",
        }
    }

    /// The number in recordings.
    #[cfg(feature = "trace")]
    pub(crate) const fn number(self) -> u64 {
        match self {
            Self::Balanced => 0,
            Self::MemoryFirst => 1,
            Self::Vma => 2,
        }
    }
}

bitflags::bitflags! {
    /// Flags of a [`PoolCreateInfo`]. The value is VMA's.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
    pub struct PoolCreateFlags: u32 {
        /// The pool holds only buffers and linear images, or only optimal images: `bufferImageGranularity` does not
        /// matter.
        const IGNORE_BUFFER_IMAGE_GRANULARITY = 0x2;
    }
}

/// The purpose of the memory. Use one of the three `Auto` usages, which also depend on the usage of the buffer or
/// image. The others are VMA's older vocabulary.
///
/// ```
/// assert_eq!(sublet::MemoryUsage::default(), sublet::MemoryUsage::Unknown);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
#[doc(alias = "D3D12_HEAP_TYPE_DEFAULT")]
#[doc(alias = "D3D12_HEAP_TYPE_UPLOAD")]
#[doc(alias = "D3D12_HEAP_TYPE_READBACK")]
#[doc(alias = "BufferDomain")]
#[doc(alias = "ImageDomain")]
pub enum MemoryUsage {
    /// Only [`AllocationCreateInfo::required_flags`] and [`AllocationCreateInfo::preferred_flags`] count.
    #[default]
    Unknown = 0,
    /// Prefers device-local memory.
    GpuOnly = 1,
    /// Host-visible and host-coherent memory.
    CpuOnly = 2,
    /// Host-visible memory, device-local if possible.
    CpuToGpu = 3,
    /// Host-visible memory, cached if possible.
    GpuToCpu = 4,
    /// Memory that is not device-local, for data that was moved out of device-local memory.
    CpuCopy = 5,
    /// Lazily allocated memory, for transient attachments. Always dedicated. Fails if the device has none.
    GpuLazilyAllocated = 6,
    /// The best memory for the resource and the `HOST_ACCESS` flags.
    Auto = 7,
    /// Like [`MemoryUsage::Auto`], but device-local if there is a choice.
    AutoPreferDevice = 8,
    /// Like [`MemoryUsage::Auto`], but not device-local if there is a choice.
    AutoPreferHost = 9,
}

impl MemoryUsage {
    /// Every usage, indexed by its number.
    pub const ALL: &'static [Self] = &[
        Self::Unknown,
        Self::GpuOnly,
        Self::CpuOnly,
        Self::CpuToGpu,
        Self::GpuToCpu,
        Self::CpuCopy,
        Self::GpuLazilyAllocated,
        Self::Auto,
        Self::AutoPreferDevice,
        Self::AutoPreferHost,
    ];

    /// Returns true for the three `Auto` usages, which depend on the resource.
    #[must_use]
    pub const fn is_auto(self) -> bool {
        matches!(self, Self::Auto | Self::AutoPreferDevice | Self::AutoPreferHost)
    }

    /// Its number in VMA and in a trace: its index in [`Self::ALL`].
    #[inline]
    pub(crate) const fn number(self) -> u32 {
        // In the order of the variants, so that it compiles to the discriminant without a branch.
        match self {
            Self::Unknown => 0,
            Self::GpuOnly => 1,
            Self::CpuOnly => 2,
            Self::CpuToGpu => 3,
            Self::GpuToCpu => 4,
            Self::CpuCopy => 5,
            Self::GpuLazilyAllocated => 6,
            Self::Auto => 7,
            Self::AutoPreferDevice => 8,
            Self::AutoPreferHost => 9,
        }
    }
}

/// Parameters of one allocation.
///
/// ```
/// use sublet::{AllocationCreateFlags, AllocationCreateInfo, MemoryUsage};
/// let staging = AllocationCreateInfo {
///     usage: MemoryUsage::Auto,
///     flags: AllocationCreateFlags::HOST_ACCESS_SEQUENTIAL_WRITE | AllocationCreateFlags::MAPPED,
///     name: Some("staging"),
///     ..Default::default()
/// };
/// assert!(staging.pool.is_none());
/// ```
#[derive(Clone, Copy, Debug)]
#[doc(alias = "ALLOCATION_DESC")]
pub struct AllocationCreateInfo<'a> {
    /// See [`AllocationCreateFlags`].
    pub flags: AllocationCreateFlags,
    /// See [`MemoryUsage`]. Ignored with a [`Self::pool`].
    pub usage: MemoryUsage,
    /// Properties that the memory type must have. Ignored with a [`Self::pool`].
    pub required_flags: vk::MemoryPropertyFlags,
    /// Properties that the memory type should have. Ignored with a [`Self::pool`].
    pub preferred_flags: vk::MemoryPropertyFlags,
    /// A bit for each memory type that may be used; 0 means all. Ignored with a [`Self::pool`].
    pub memory_type_bits: u32,
    /// The custom pool to allocate from, instead of the default vector of the best memory type.
    pub pool: Option<&'a Pool>,
    /// The scope to allocate from: its pool for the best memory type is used. Excludes a [`Self::pool`].
    pub scope: Option<&'a Scope>,
    /// The caller's own number, kept with the allocation.
    pub user_data: u64,
    /// Priority of the memory, 0.0 to 1.0, if it ends up dedicated and VK_EXT_memory_priority is enabled.
    pub priority: f32,
    /// The minimum alignment in bytes, a power of two; 0 means that of the requirements.
    pub min_alignment: u64,
    /// Shown in statistics and leak reports. Copied.
    pub name: Option<&'a str>,
}

impl Default for AllocationCreateInfo<'_> {
    fn default() -> Self {
        Self {
            flags: AllocationCreateFlags::empty(),
            usage: MemoryUsage::Unknown,
            required_flags: vk::MemoryPropertyFlags::empty(),
            preferred_flags: vk::MemoryPropertyFlags::empty(),
            memory_type_bits: 0,
            pool: None,
            scope: None,
            user_data: 0,
            priority: 0.5,
            min_alignment: 0,
            name: None,
        }
    }
}

impl<'a> AllocationCreateInfo<'a> {
    /// An allocation for `usage`, everything else default.
    #[must_use]
    pub fn new(usage: MemoryUsage) -> Self {
        Self { usage, ..Self::default() }
    }

    /// An allocation in `pool`, everything else default.
    #[must_use]
    pub fn in_pool(pool: &'a Pool) -> Self {
        Self { pool: Some(pool), ..Self::default() }
    }

    /// An allocation in a scope, everything else default.
    #[must_use]
    pub fn in_scope(scope: &'a Scope) -> Self {
        Self { scope: Some(scope), ..Self::default() }
    }
}

/// Parameters of a custom pool: [`PoolParameters`] with a borrowed name and a chain.
///
/// ```
/// use sublet::{Algorithm, PoolCreateInfo};
/// let frame = PoolCreateInfo {
///     block_size: 16 << 20,
///     max_block_count: 1,
///     algorithm: Algorithm::Linear,
///     ..PoolCreateInfo::new(0)
/// };
/// assert_eq!(frame.min_block_count, 0);
/// ```
#[doc(alias = "POOL_DESC")]
pub type PoolCreateInfo<'a> = PoolParameters<&'a str, MemoryAllocateNext>;

/// The settings of a custom pool: a [`PoolCreateInfo`], or in a trace the
/// [`PoolSettings`](https://docs.rs/sublet/latest/sublet/trace/type.PoolSettings.html). Only the first borrows the name
/// and has the chain.
///
/// ```
/// use sublet::{MemoryAllocateNext, PoolCreateInfo, PoolParameters};
/// let settings: PoolParameters<Box<str>, bool> = PoolParameters { block_size: 1 << 20, ..PoolParameters::new(2) };
/// let again: PoolCreateInfo<'_> = settings.with(settings.name.as_deref(), MemoryAllocateNext::default());
/// assert_eq!((again.memory_type_index, again.block_size), (2, 1 << 20));
/// ```
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PoolParameters<Name, Chain> {
    /// The index of the pool's memory type.
    pub memory_type_index: u32,
    /// See [`PoolCreateFlags`].
    pub flags: PoolCreateFlags,
    /// See [`Algorithm`].
    pub algorithm: Algorithm,
    /// Bytes of each block; 0 lets the allocator choose and change sizes, and allows dedicated allocations in the pool.
    /// With 0, a linear pool uses blocks of the largest size. So does any pool for the last block that
    /// [`Self::max_block_count`] allows.
    pub block_size: u64,
    /// Blocks that exist from the start and are never freed before the pool ends.
    pub min_block_count: u32,
    /// The maximum number of blocks; 0 means no limit. An allocation that is dedicated because no block can hold it
    /// counts as a block. Explicitly requested dedicated memory does not: by
    /// [`DEDICATED_MEMORY`](AllocationCreateFlags::DEDICATED_MEMORY), a resource that requires it, or the debug
    /// settings.
    ///
    /// An [`Algorithm::Linear`] pool can be a ring buffer or a double stack only with 1. With several blocks it does
    /// not wrap, and rejects [`AllocationCreateFlags::UPPER_ADDRESS`].
    pub max_block_count: u32,
    /// The number of empty blocks that the pool keeps, unless [`Self::min_block_count`] keeps more. See
    /// [`AllocatorCreateInfo::empty_blocks_kept`](crate::AllocatorCreateInfo::empty_blocks_kept).
    pub empty_blocks_kept: u32,
    /// Priority of the memory, 0.0 to 1.0, if VK_EXT_memory_priority is enabled.
    pub priority: f32,
    /// The minimum alignment of every allocation in bytes, a power of two; 0 means none.
    pub min_allocation_alignment: u64,
    /// Shown in statistics and leak reports. Copied.
    pub name: Option<Name>,
    /// A `pNext` chain for every `VkMemoryAllocateInfo` of the pool; see [`MemoryAllocateNext`]. In a trace: true if
    /// there was one.
    pub memory_allocate_next: Chain,
}

impl<Name, Chain: Default> Default for PoolParameters<Name, Chain> {
    fn default() -> Self {
        Self::new(0)
    }
}

impl<Name, Chain> PoolParameters<Name, Chain> {
    /// The same settings with another name and chain.
    #[must_use]
    pub fn with<N, C>(&self, name: Option<N>, memory_allocate_next: C) -> PoolParameters<N, C> {
        PoolParameters {
            memory_type_index: self.memory_type_index,
            flags: self.flags,
            algorithm: self.algorithm,
            block_size: self.block_size,
            min_block_count: self.min_block_count,
            max_block_count: self.max_block_count,
            empty_blocks_kept: self.empty_blocks_kept,
            priority: self.priority,
            min_allocation_alignment: self.min_allocation_alignment,
            name,
            memory_allocate_next,
        }
    }
}

impl<Name, Chain: Default> PoolParameters<Name, Chain> {
    /// A pool in memory type `memory_type_index`, everything else default: TLSF without limits, with block sizes that
    /// the allocator chooses.
    #[must_use]
    pub fn new(memory_type_index: u32) -> Self {
        Self {
            memory_type_index,
            flags: PoolCreateFlags::empty(),
            algorithm: Algorithm::Tlsf,
            block_size: 0,
            min_block_count: 0,
            max_block_count: 0,
            empty_blocks_kept: 1,
            priority: 0.5,
            min_allocation_alignment: 0,
            name: None,
            memory_allocate_next: Chain::default(),
        }
    }
}
