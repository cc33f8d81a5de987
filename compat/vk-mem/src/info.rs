//! Create-infos.
#![expect(unsafe_code, reason = "calls Vulkan")]

use std::ffi::{CStr, c_void};
use std::marker::PhantomData;

use ash::vk;

use crate::flags::{AllocationCreateFlags, AllocatorCreateFlags, AllocatorPoolCreateFlags, MemoryUsage};

/// The settings of a new [`Allocator`](crate::Allocator).
pub struct AllocatorCreateInfo<'a> {
    pub(crate) physical_device: vk::PhysicalDevice,
    pub(crate) device: &'a ash::Device,
    pub(crate) instance: &'a ash::Instance,
    /// Enabled extensions.
    pub flags: AllocatorCreateFlags,
    /// The most bytes of a block in heaps above 1 GiB, by VMA's rule for growth; zero for blocks that follow the bytes
    /// in use.
    pub preferred_large_heap_block_size: vk::DeviceSize,
    /// Passed to the driver.
    pub allocation_callbacks: Option<&'a vk::AllocationCallbacks<'a>>,
    /// Called for each allocation and free of a `VkDeviceMemory`.
    pub device_memory_callbacks: Option<&'a sublet::device::DeviceMemoryCallbacks>,
    /// Maximum bytes for each heap; empty for no limits.
    pub heap_size_limits: &'a [vk::DeviceSize],
    /// The Vulkan version that the program uses; zero for 1.0.
    pub vulkan_api_version: u32,
    /// External handle types for memory of each type; empty for none.
    pub type_external_memory_handle_types: &'a [vk::ExternalMemoryHandleTypeFlagsKHR],
}

impl<'a> AllocatorCreateInfo<'a> {
    /// Creates settings for a device, with defaults for all others.
    pub fn new(
        instance: &'a ash::Instance,
        device: &'a ash::Device,
        physical_device: vk::PhysicalDevice,
    ) -> AllocatorCreateInfo<'a> {
        Self {
            physical_device,
            device,
            instance,
            flags: AllocatorCreateFlags::empty(),
            preferred_large_heap_block_size: 0,
            allocation_callbacks: None,
            device_memory_callbacks: None,
            heap_size_limits: &[],
            vulkan_api_version: 0,
            type_external_memory_handle_types: &[],
        }
    }
}

/// The settings of a new pool.
#[derive(Clone)]
pub struct PoolCreateInfo<'a> {
    /// Its memory type.
    pub memory_type_index: u32,
    /// Its flags.
    pub flags: AllocatorPoolCreateFlags,
    /// Bytes of each block; zero lets the allocator choose.
    pub block_size: vk::DeviceSize,
    /// Number of blocks that always exist.
    pub min_block_count: usize,
    /// Maximum number of blocks; zero for no limit.
    pub max_block_count: usize,
    /// 0 to 1, with VK_EXT_memory_priority.
    pub priority: f32,
    /// Minimum alignment of every allocation; zero for none.
    pub min_allocation_alignment: vk::DeviceSize,
    /// Chained to every `VkMemoryAllocateInfo`. It lives as long as the pool: see [`push_next`](Self::push_next).
    pub memory_allocate_next: *const c_void,
    /// Carries the lifetime of the pushed structures.
    pub _marker: PhantomData<&'a mut ()>,
}

impl<'a> PoolCreateInfo<'a> {
    /// Prepends a structure to the chain.
    pub fn push_next<T: vk::ExtendsMemoryAllocateInfo>(&mut self, next: &'a mut T) {
        let chain = vk::MemoryAllocateInfo { p_next: self.memory_allocate_next, ..Default::default() };
        self.memory_allocate_next = chain.push_next(next).p_next;
    }
}

impl Default for PoolCreateInfo<'_> {
    fn default() -> Self {
        Self {
            memory_type_index: 0,
            flags: AllocatorPoolCreateFlags::empty(),
            block_size: 0,
            min_block_count: 0,
            max_block_count: 0,
            priority: 0.0,
            min_allocation_alignment: 0,
            memory_allocate_next: std::ptr::null(),
            _marker: PhantomData,
        }
    }
}

impl PoolCreateInfo<'_> {
    /// Converts to Sublet's create-info.
    ///
    /// # Safety
    /// The chain is valid while the pool lives.
    pub(crate) unsafe fn to_sublet(&self, has_priorities: bool) -> sublet::PoolCreateInfo<'static> {
        let linear = self.flags.contains(AllocatorPoolCreateFlags::LINEAR_ALGORITHM);
        sublet::PoolCreateInfo {
            flags: sublet::PoolCreateFlags::from_bits_truncate(self.flags.bits())
                & sublet::PoolCreateFlags::IGNORE_BUFFER_IMAGE_GRANULARITY,
            algorithm: if linear { sublet::Algorithm::Linear } else { sublet::Algorithm::Tlsf },
            block_size: self.block_size,
            min_block_count: u32::try_from(self.min_block_count).unwrap_or(u32::MAX),
            max_block_count: u32::try_from(self.max_block_count).unwrap_or(u32::MAX),
            priority: if has_priorities { self.priority } else { 0.5 },
            min_allocation_alignment: self.min_allocation_alignment,
            // SAFETY: guaranteed by the caller: the chain is valid while the pool lives.
            memory_allocate_next: unsafe { sublet::MemoryAllocateNext::new(self.memory_allocate_next) },
            ..sublet::PoolCreateInfo::new(self.memory_type_index)
        }
    }
}

/// The settings of an allocation. In a pool, only flags, user data and priority count.
#[derive(Clone)]
pub struct AllocationCreateInfo {
    /// Its flags.
    pub flags: AllocationCreateFlags,
    /// Its intended usage.
    pub usage: MemoryUsage,
    /// Properties that the memory type must have.
    pub required_flags: vk::MemoryPropertyFlags,
    /// Properties that the memory type should have.
    pub preferred_flags: vk::MemoryPropertyFlags,
    /// Mask of allowed memory types; zero for all.
    pub memory_type_bits: u32,
    /// The program's user data.
    pub user_data: usize,
    /// 0 to 1, for dedicated memory with VK_EXT_memory_priority.
    pub priority: f32,
}

impl Default for AllocationCreateInfo {
    fn default() -> Self {
        Self {
            flags: AllocationCreateFlags::empty(),
            usage: MemoryUsage::Unknown,
            required_flags: vk::MemoryPropertyFlags::empty(),
            preferred_flags: vk::MemoryPropertyFlags::empty(),
            memory_type_bits: 0,
            user_data: 0,
            priority: 0.0,
        }
    }
}

impl AllocationCreateInfo {
    /// Converts to Sublet's create-info.
    pub(crate) fn to_sublet<'a>(
        &self,
        pool: Option<&'a sublet::Pool>,
        has_priorities: bool,
    ) -> sublet::AllocationCreateInfo<'a> {
        sublet::AllocationCreateInfo {
            flags: flags(self.flags),
            usage: usage(self.usage),
            required_flags: self.required_flags,
            preferred_flags: self.preferred_flags,
            memory_type_bits: self.memory_type_bits,
            pool,
            user_data: if self.is_named() { 0 } else { wide(self.user_data) },
            // Without the extension the driver ignores the priority. A pool has its own. Both cases accept any value.
            priority: if has_priorities && pool.is_none() { self.priority } else { 0.5 },
            ..Default::default()
        }
    }

    fn is_named(&self) -> bool {
        self.flags.contains(AllocationCreateFlags::USER_DATA_COPY_STRING)
    }

    /// Returns the name at the address in the user data, if the flags say that it is one.
    ///
    /// # Safety
    /// With that flag, the user data is null or the address of a string.
    pub(crate) unsafe fn name(&self) -> Option<String> {
        if !self.is_named() || self.user_data == 0 {
            return None;
        }
        let name = std::ptr::with_exposed_provenance(self.user_data);
        // SAFETY: the caller's promise: it is the address of a string; null was ruled out above.
        Some(unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned())
    }
}

/// Converts flags to Sublet's. If several strategies are set, keeps the one that VMA follows.
fn flags(flags: AllocationCreateFlags) -> sublet::AllocationCreateFlags {
    use sublet::AllocationCreateFlags as Flags;
    let flags = Flags::from_bits_truncate(flags.bits() & AllocationCreateFlags::all().bits());
    let in_order = [Flags::STRATEGY_MIN_TIME, Flags::STRATEGY_MIN_MEMORY, Flags::STRATEGY_MIN_OFFSET];
    let first = in_order.into_iter().find(|&strategy| flags.contains(strategy));
    flags.difference(Flags::STRATEGY_MASK) | first.unwrap_or_default()
}

#[allow(deprecated, reason = "programs may still use them")]
fn usage(usage: MemoryUsage) -> sublet::MemoryUsage {
    match usage {
        MemoryUsage::Unknown => sublet::MemoryUsage::Unknown,
        MemoryUsage::GpuOnly => sublet::MemoryUsage::GpuOnly,
        MemoryUsage::CpuOnly => sublet::MemoryUsage::CpuOnly,
        MemoryUsage::CpuToGpu => sublet::MemoryUsage::CpuToGpu,
        MemoryUsage::GpuToCpu => sublet::MemoryUsage::GpuToCpu,
        MemoryUsage::CpuCopy => sublet::MemoryUsage::CpuCopy,
        MemoryUsage::GpuLazy => sublet::MemoryUsage::GpuLazilyAllocated,
        MemoryUsage::Auto => sublet::MemoryUsage::Auto,
        MemoryUsage::AutoPreferDevice => sublet::MemoryUsage::AutoPreferDevice,
        MemoryUsage::AutoPreferHost => sublet::MemoryUsage::AutoPreferHost,
    }
}

/// Converts user data to Sublet's type. No host has addresses of more than 64 bits.
pub(crate) fn wide(user_data: usize) -> u64 {
    u64::try_from(user_data).unwrap_or(u64::MAX)
}

/// Converts user data back.
pub(crate) fn narrow(user_data: u64) -> usize {
    usize::try_from(user_data).unwrap_or(usize::MAX)
}
