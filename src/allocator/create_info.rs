//! Parameters of an allocator.

use ash::vk;

use super::Tracking;
use super::debug::DebugSettings;
use crate::create_info::{AllocatorCreateFlags, BlockSizes, GrowthPreset};
use crate::device::{DeviceMemoryCallbacks, VulkanFunctions};

/// Parameters of a new allocator.
///
/// ```
/// # use sublet::*;
/// # let gpu = sim::Gpu::new(sim::Profile::by_name("lavapipe").unwrap());
/// let info = AllocatorCreateInfo {
///     flags: AllocatorCreateFlags::EXT_MEMORY_BUDGET,
///     ..AllocatorCreateInfo::new(gpu.instance(), gpu.device(), gpu.physical_device(), gpu.api_version())
/// };
/// assert_eq!(info.preferred_large_heap_block_size, 0);
/// ```
#[derive(Clone, Debug)]
#[doc(alias = "ALLOCATOR_DESC")]
pub struct AllocatorCreateInfo<'a> {
    /// Features that are enabled on the device: see [`AllocatorCreateFlags`].
    pub flags: AllocatorCreateFlags,
    /// The instance.
    pub instance: vk::Instance,
    /// The physical device of [`Self::device`].
    pub physical_device: vk::PhysicalDevice,
    /// The device.
    pub device: vk::Device,
    /// The Vulkan version that the program uses, as in `VkApplicationInfo::apiVersion`. The patch number is ignored.
    pub api_version: u32,
    /// The sizes of new blocks, and how much empty memory stays.
    pub growth: GrowthPreset,
    /// Bytes of the largest block in heaps above 1 GiB by VMA's rule, which any value but 0 selects, as
    /// [`GrowthPreset::Vma`] does. 0 means 256 MiB for that rule, as in VMA. Limited by
    /// [`max_memory_allocation_size`](crate::Allocator::max_memory_allocation_size).
    pub preferred_large_heap_block_size: u64,
    /// Block sizes by memory type, which override both. May be shorter than the list of memory types.
    pub block_sizes: &'a [BlockSizes],
    /// Limits by heap, in bytes; [`vk::WHOLE_SIZE`] for no limit. May be shorter than the list of heaps.
    pub heap_size_limits: &'a [u64],
    /// The most bytes that may be mapped at a time; 0 means 1 GiB on 32-bit hosts, and no limit on others. A block is
    /// mapped as a whole when the first allocation in it is mapped. Beyond the limit, memory that is mapped without need
    /// is unmapped, and then mapping fails with [`MapError::AddressSpace`](crate::MapError::AddressSpace).
    pub max_mapped_size: u64,
    /// The number of empty blocks that each memory type may keep. With 0, a block is freed as soon as it is empty. With
    /// 1, the default, one empty block stays until something is freed in another block. With a larger number, all but
    /// one of them stay until [`trim`](crate::Allocator::trim), and the last one until something is freed in another
    /// block. Unless the number is 0, blocks that follow the bytes in use also stay while all blocks of the memory type
    /// have at most 8 MiB more than 1.25 times these bytes, or 2 MiB more than 1.17 times with
    /// [`GrowthPreset::MemoryFirst`]. If blocks were needed again soon after they were freed, up to a quarter of the bytes
    /// in use more stay. When memory runs out, or while a heap is over its budget, none stays.
    pub empty_blocks_kept: u32,
    /// Data to keep for every allocation, for leak reports and memory maps; nothing by default. See [`Tracking`].
    pub tracking: Tracking,
    /// Vulkan functions from the program. Missing ones are looked up.
    pub functions: VulkanFunctions,
    /// The driver's host allocation callbacks, passed to every `vk*` call that takes them, and copied. The allocator's
    /// own host memory always comes from Rust's global allocator. Buffers and images that the allocator created must be
    /// destroyed by it, or with the same callbacks.
    pub allocation_callbacks: Option<&'a vk::AllocationCallbacks<'a>>,
    /// Callbacks for each allocation and free of a `VkDeviceMemory`.
    pub device_memory_callbacks: Option<DeviceMemoryCallbacks>,
    /// Handle types by memory type. All memory of the type is exported with them, through `VkExportMemoryAllocateInfo`.
    /// May be shorter than the list of memory types. Such a structure in the program's own chain takes precedence, and
    /// imported memory is not exported. Every resource bound to exported memory must be created with at least one of
    /// these types (VUID-vkBindImageMemory-memory-02728).
    pub external_memory_handle_types: &'a [vk::ExternalMemoryHandleTypeFlags],
    /// Debugging aids; off by default.
    pub debug: DebugSettings,
}

impl<'a> AllocatorCreateInfo<'a> {
    /// Parameters for a program that uses `ash`. `api_version` is the version of the **instance**.
    ///
    /// An instance of version 1.0 with VK_KHR_get_physical_device_properties2 also needs
    /// [`VulkanFunctions::with_entry`], or budgets do not work.
    #[must_use]
    pub fn new(
        instance: &ash::Instance,
        device: &ash::Device,
        physical_device: vk::PhysicalDevice,
        api_version: u32,
    ) -> Self {
        let functions = VulkanFunctions::from_ash(instance, api_version);
        Self::from_raw(instance.handle(), device.handle(), physical_device, api_version, functions)
    }

    /// Parameters for a simulated GPU, with all its features enabled.
    #[cfg(feature = "sim")]
    #[must_use]
    pub fn for_gpu(gpu: &sublet_sim::Gpu) -> Self {
        let flag_of = |name: &str| match name {
            "VK_KHR_dedicated_allocation" => AllocatorCreateFlags::KHR_DEDICATED_ALLOCATION,
            "VK_KHR_bind_memory2" => AllocatorCreateFlags::KHR_BIND_MEMORY2,
            "VK_EXT_memory_budget" => AllocatorCreateFlags::EXT_MEMORY_BUDGET,
            "VK_AMD_device_coherent_memory" => AllocatorCreateFlags::AMD_DEVICE_COHERENT_MEMORY,
            "VK_KHR_buffer_device_address" => AllocatorCreateFlags::BUFFER_DEVICE_ADDRESS,
            "VK_EXT_memory_priority" => AllocatorCreateFlags::EXT_MEMORY_PRIORITY,
            "VK_KHR_maintenance4" => AllocatorCreateFlags::KHR_MAINTENANCE4,
            "VK_KHR_maintenance5" => AllocatorCreateFlags::KHR_MAINTENANCE5,
            "VK_EXT_pageable_device_local_memory" => AllocatorCreateFlags::EXT_PAGEABLE_DEVICE_LOCAL_MEMORY,
            _ => AllocatorCreateFlags::empty(),
        };
        let info = Self::new(gpu.instance(), gpu.device(), gpu.physical_device(), gpu.api_version());
        Self {
            flags: gpu.extensions().iter().map(|name| flag_of(name)).collect(),
            functions: info.functions.with_entry(gpu.entry()),
            ..info
        }
    }

    /// Parameters for a program that has raw Vulkan handles and functions.
    ///
    /// ```
    /// # use sublet::*;
    /// # let gpu = sim::Gpu::new(sim::Profile::by_name("lavapipe").unwrap());
    /// let functions = device::VulkanFunctions {
    ///     get_instance_proc_addr: Some(gpu.entry().static_fn().get_instance_proc_addr),
    ///     ..Default::default()
    /// };
    /// let info = AllocatorCreateInfo::from_raw(
    ///     gpu.instance().handle(), gpu.device().handle(), gpu.physical_device(), gpu.api_version(), functions,
    /// );
    /// // SAFETY: the handles are live and outlive the allocator.
    /// let allocator = unsafe { Allocator::new(&info) }?;
    /// # Ok::<(), CreateAllocatorError>(())
    /// ```
    #[must_use]
    pub fn from_raw(
        instance: vk::Instance,
        device: vk::Device,
        physical_device: vk::PhysicalDevice,
        api_version: u32,
        functions: VulkanFunctions,
    ) -> Self {
        Self {
            flags: AllocatorCreateFlags::empty(),
            instance,
            physical_device,
            device,
            api_version,
            growth: GrowthPreset::Balanced,
            preferred_large_heap_block_size: 0,
            block_sizes: &[],
            heap_size_limits: &[],
            max_mapped_size: 0,
            empty_blocks_kept: 1,
            tracking: Tracking::empty(),
            functions,
            allocation_callbacks: None,
            device_memory_callbacks: None,
            external_memory_handle_types: &[],
            debug: DebugSettings::default(),
        }
    }
}
