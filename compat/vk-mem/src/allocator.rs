//! The allocator: creation, queries, and freeing.
#![expect(unsafe_code, reason = "calls Vulkan")]

use std::ffi::c_void;

use ash::prelude::VkResult;
use ash::vk;
use sublet::FreeError;

use crate::allocation::{Allocation, AllocationInfo, AllocationInfo2};
use crate::flags::AllocatorCreateFlags;
use crate::info::{AllocatorCreateInfo, wide};
use crate::refused::{corrupted, misused, not_made};
use crate::statistics::{Budget, TotalStatistics};

/// Allocates memory of one device. Dropping it frees the remaining memory.
///
/// ```
/// use ash::vk;
/// use vk_mem::{Alloc, AllocationCreateFlags, AllocationCreateInfo, Allocator, AllocatorCreateInfo, MemoryUsage};
///
/// # let gpu = sublet::sim::Gpu::new(sublet::sim::Profile::by_name("lavapipe").unwrap());
/// # let (instance, device, physical_device) = (gpu.instance(), gpu.device(), gpu.physical_device());
/// let info = AllocatorCreateInfo::new(instance, device, physical_device);
/// // SAFETY: the three belong together, and outlive the allocator.
/// let allocator = unsafe { Allocator::new(info) }?;
/// let vertices = vk::BufferCreateInfo::default().size(1024).usage(vk::BufferUsageFlags::VERTEX_BUFFER);
/// let written = AllocationCreateInfo {
///     usage: MemoryUsage::Auto,
///     flags: AllocationCreateFlags::HOST_ACCESS_SEQUENTIAL_WRITE,
///     ..Default::default()
/// };
/// // SAFETY: the create-info is valid.
/// let (buffer, mut allocation) = unsafe { allocator.create_buffer(&vertices, &written) }?;
/// // SAFETY: the device never used the buffer.
/// unsafe { allocator.destroy_buffer(buffer, &mut allocation) };
/// # drop(allocator);
/// # gpu.assert_silent();
/// # Ok::<(), vk::Result>(())
/// ```
#[derive(Debug)]
pub struct Allocator {
    inner: sublet::Allocator,
    /// Stored for methods that return a reference.
    memory: Box<vk::PhysicalDeviceMemoryProperties>,
    /// True if the device uses priorities.
    pub(crate) has_priorities: bool,
}

impl Allocator {
    /// Creates an allocator for a device.
    ///
    /// # Errors
    /// `ERROR_EXTENSION_NOT_PRESENT` for a flag whose functions the driver does not have, `ERROR_INITIALIZATION_FAILED`
    /// for any other invalid setting.
    ///
    /// # Safety
    /// 1. Instance, physical device and device belong together and outlive the allocator.
    /// 2. Every flag's extension is enabled.
    pub unsafe fn new(create_info: AllocatorCreateInfo<'_>) -> VkResult<Self> {
        let has = |flag| create_info.flags.contains(flag);
        let api_version = match create_info.vulkan_api_version {
            0 => vk::API_VERSION_1_0,
            version => version,
        };
        let known = create_info.flags.difference(AllocatorCreateFlags::EXTERNALLY_SYNCHRONIZED)
            & AllocatorCreateFlags::all();
        let mut info = sublet::AllocatorCreateInfo {
            flags: sublet::AllocatorCreateFlags::from_bits_truncate(known.bits()),
            preferred_large_heap_block_size: create_info.preferred_large_heap_block_size,
            heap_size_limits: create_info.heap_size_limits,
            allocation_callbacks: create_info.allocation_callbacks,
            device_memory_callbacks: create_info.device_memory_callbacks.cloned(),
            external_memory_handle_types: create_info.type_external_memory_handle_types,
            ..sublet::AllocatorCreateInfo::new(
                create_info.instance,
                create_info.device,
                create_info.physical_device,
                api_version,
            )
        };
        // A program may set no version and use functions of later ones, which the instance then has.
        if has(AllocatorCreateFlags::EXT_MEMORY_BUDGET) {
            let v1_1 = create_info.instance.fp_v1_1();
            info.functions
                .get_physical_device_memory_properties2
                .get_or_insert(v1_1.get_physical_device_memory_properties2);
        }
        // SAFETY: 1: the three belong together and outlive the allocator; 2: the extensions are enabled.
        let inner = unsafe { sublet::Allocator::new(&info) }.map_err(|error| not_made(&error))?;
        // A recording that fails to start emits an event. The allocator works without it.
        #[cfg(feature = "trace")]
        let _ = sublet::trace::start_from_environment(&inner);
        let memory = Box::new(inner.memory_properties());
        Ok(Self { inner, memory, has_priorities: has(AllocatorCreateFlags::EXT_MEMORY_PRIORITY) })
    }

    /// Returns Sublet's allocator, which has more functions.
    pub fn as_sublet(&self) -> &sublet::Allocator {
        &self.inner
    }

    /// Returns the device's properties.
    ///
    /// # Errors
    /// None.
    ///
    /// # Safety
    /// Always safe.
    pub unsafe fn get_physical_device_properties(&self) -> VkResult<vk::PhysicalDeviceProperties> {
        Ok(*self.inner.physical_device_properties())
    }

    /// Returns memory types and heaps, with the sizes of heaps as limited.
    ///
    /// # Safety
    /// Always safe.
    pub unsafe fn get_memory_properties(&self) -> &vk::PhysicalDeviceMemoryProperties {
        &self.memory
    }

    /// Returns the properties of a memory type; empty if the type does not exist.
    pub fn get_memory_type_properties(&self, memory_type_index: u32) -> vk::MemoryPropertyFlags {
        let index = usize::try_from(memory_type_index).unwrap_or(usize::MAX);
        let found = self.memory.memory_types_as_slice().get(index);
        found.map_or(vk::MemoryPropertyFlags::empty(), |found| found.property_flags)
    }

    /// Returns the properties of an allocation's memory type; empty if it was freed.
    pub fn get_allocation_memory_properties(&self, allocation: &Allocation) -> vk::MemoryPropertyFlags {
        allocation.live().map_or(vk::MemoryPropertyFlags::empty(), |inner| {
            self.get_memory_type_properties(inner.memory_type_index())
        })
    }

    /// Begins a frame and fetches the budgets.
    ///
    /// # Safety
    /// Always safe.
    pub unsafe fn set_current_frame_index(&self, frame_index: u32) {
        self.inner.set_current_frame_index(frame_index);
    }

    /// Walks the allocator and returns detailed statistics.
    ///
    /// # Errors
    /// None.
    pub fn calculate_statistics(&self) -> VkResult<TotalStatistics> {
        Ok(TotalStatistics::from(&self.inner.calculate_statistics()))
    }

    /// Returns usage and budget of each heap.
    ///
    /// # Errors
    /// None.
    pub fn get_heap_budgets(&self) -> VkResult<Vec<Budget>> {
        Ok(self.inner.heap_budgets().iter().map(Budget::from).collect())
    }

    /// Returns a report as JSON in VMA's schema, with a map of every block if `detailed`.
    pub fn build_stats_string(&self, detailed: bool) -> String {
        sublet_report::stats_string(&self.inner, detailed)
    }

    /// Frees memory and leaves `allocation` empty. Ignores an empty allocation and one of another allocator.
    ///
    /// # Safety
    /// 1. The device no longer uses the memory.
    /// 2. The device no longer uses anything that is bound to it.
    pub unsafe fn free_memory(&self, allocation: &mut Allocation) {
        if let Ok(inner) = self.take(allocation) {
            // SAFETY: 1: the device no longer uses the memory; 2: nor what is bound to it.
            not_freed(allocation, unsafe { self.inner.free_memory(inner) });
        }
    }

    /// Takes out Sublet's allocation and removes the program's mappings.
    fn take(&self, allocation: &mut Allocation) -> VkResult<sublet::Allocation> {
        let inner = allocation.take()?;
        if allocation.map_count != 0 {
            let _ = misused("the allocation is still mapped");
        }
        while let Some(left) = allocation.map_count.checked_sub(1) {
            // SAFETY: the mapping was counted when it was made, and the program no longer uses the memory.
            if unsafe { self.inner.unmap_memory(&inner) }.is_err() {
                // It belongs to another allocator and stays unchanged, or its pool and mappings are gone.
                return Ok(inner);
            }
            allocation.map_count = left;
        }
        allocation.set_mapped(std::ptr::null_mut());
        Ok(inner)
    }

    /// Frees several allocations, the last one first.
    ///
    /// # Safety
    /// As for [`free_memory`](Self::free_memory).
    pub unsafe fn free_memory_pages(&self, allocations: &mut [Allocation]) {
        for allocation in allocations.iter_mut().rev() {
            // SAFETY: 1 and 2 of `free_memory`, for each.
            unsafe { self.free_memory(allocation) };
        }
    }

    /// Destroys a buffer and frees its memory. Does nothing for an empty allocation, whose buffer is destroyed already.
    ///
    /// # Safety
    /// 1. The device no longer uses the buffer.
    /// 2. The device no longer uses anything else that is bound to the memory.
    pub unsafe fn destroy_buffer(&self, buffer: vk::Buffer, allocation: &mut Allocation) {
        if let Ok(inner) = self.take(allocation) {
            // SAFETY: 1: the device no longer uses the buffer; 2: nor anything else in the memory.
            not_freed(allocation, unsafe { self.inner.destroy_buffer(buffer, inner) });
        }
    }

    /// Destroys an image and frees its memory. Does nothing for an empty allocation, whose image is destroyed already.
    ///
    /// # Safety
    /// 1. The device no longer uses the image.
    /// 2. The device no longer uses anything else that is bound to the memory.
    pub unsafe fn destroy_image(&self, image: vk::Image, allocation: &mut Allocation) {
        if let Ok(inner) = self.take(allocation) {
            // SAFETY: 1: the device no longer uses the image; 2: nor anything else in the memory.
            not_freed(allocation, unsafe { self.inner.destroy_image(image, inner) });
        }
    }

    /// Describes an allocation.
    pub fn get_allocation_info(&self, allocation: &Allocation) -> AllocationInfo {
        allocation.info()
    }

    /// Describes an allocation and its block.
    pub fn get_allocation_info2(&self, allocation: &Allocation) -> AllocationInfo2 {
        let allocation_info = allocation.info();
        let known = allocation
            .live()
            .and_then(|inner| self.inner.allocation_info(inner).map_err(|error| misused(&error.to_string())));
        let (block_size, dedicated_memory) =
            known.map_or((0, false), |known| (known.memory_size, known.dedicated));
        AllocationInfo2 { allocation_info, block_size, dedicated_memory }
    }

    /// Replaces the user data of an allocation.
    ///
    /// # Safety
    /// Always safe.
    pub unsafe fn set_allocation_user_data(&self, allocation: &mut Allocation, user_data: *mut c_void) {
        if let Ok(inner) = allocation.live_mut() {
            inner.set_user_data(wide(user_data.expose_provenance()));
        }
    }

    /// Sets or removes the name of an allocation in statistics.
    pub fn set_allocation_name(&self, allocation: &Allocation, name: Option<&str>) {
        let Ok(inner) = allocation.live() else { return };
        if let Err(error) = self.inner.set_allocation_name(inner, name) {
            let _ = misused(&error.to_string());
        }
    }

    /// Returns the name of an allocation.
    pub fn get_allocation_name(&self, allocation: &Allocation) -> Option<String> {
        let known = self.inner.allocation_info(allocation.live().ok()?).ok()?;
        known.name.map(String::from)
    }

    /// Checks the margins in the memory types whose bit is set in `memory_types`. As in the original, the parameter has
    /// a misleading type.
    ///
    /// # Errors
    /// `ERROR_FEATURE_NOT_PRESENT` if there are no margins, `ERROR_UNKNOWN` if one is damaged.
    ///
    /// # Safety
    /// Always safe.
    pub unsafe fn check_corruption(&self, memory_types: vk::MemoryPropertyFlags) -> VkResult<()> {
        self.inner.check_corruption(memory_types.as_raw()).map_err(|error| corrupted(&error))
    }
}

/// Returns an allocation that could not be freed to the program.
fn not_freed(allocation: &mut Allocation, freed: Result<(), FreeError>) {
    if let Err(error) = freed {
        let reason = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
        let _ = misused(&reason);
        allocation.put_back(error.allocation);
    }
}
