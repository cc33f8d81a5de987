//! The object behind a `VmaAllocator`.
#![expect(unsafe_code, reason = "the functions have the C ABI")]

use std::ffi::{CStr, c_void};
use std::fmt;
use std::sync::OnceLock;

use ash::vk;

use sublet::Allocation;
use sublet::Allocator;
use sublet::device::VulkanFunctions;
use sublet::private::{AllocatorInside, RecordedCall};
use sublet::private::{index, narrow, widen};
use sublet::{AllocationCreateFlags, AllocationCreateInfo, MemoryUsage};

use super::defragmentation::ContextObject;
use super::guard::{foreign, given, misused};
use super::pointer_set::PointerSet;
use super::pool::PoolObject;
use super::slab::{HandleSlab, HandleSlot};
use super::types::{
    USER_DATA_COPY_STRING, VmaAllocation, VmaAllocationCreateInfo, VmaAllocationInfo, VmaVulkanFunctions,
};

/// An allocator and the objects of its allocations.
#[derive(Debug)]
pub(super) struct Front {
    pub(super) allocator: Allocator,
    pub(super) slab: HandleSlab,
    /// True if the device uses priorities.
    pub(super) has_priorities: bool,
}

/// The object behind a `VmaAllocator`.
pub struct AllocatorObject {
    pub(super) front: Front,
    pub(super) instance: vk::Instance,
    pub(super) physical_device: vk::PhysicalDevice,
    pub(super) device: vk::Device,
    /// Stored because functions return a pointer to them.
    pub(super) properties: Box<vk::PhysicalDeviceProperties>,
    pub(super) memory_properties: Box<vk::PhysicalDeviceMemoryProperties>,
    /// Pools that are not destroyed yet.
    pub(super) pools: PointerSet<PoolObject>,
    /// Defragmentations that have not ended yet.
    pub(super) contexts: PointerSet<ContextObject>,
}

impl fmt::Debug for AllocatorObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AllocatorObject").field("front", &self.front).finish_non_exhaustive()
    }
}

impl AllocatorObject {
    /// Returns the memory types.
    pub(super) fn memory_types(&self) -> &[vk::MemoryType] {
        let count = index(self.memory_properties.memory_type_count);
        self.memory_properties.memory_types.get(..count).unwrap_or_default()
    }

    /// Ends what the program left. Returns the number of defragmentations, pools and allocations.
    pub(super) fn end_all(&self) -> [(&'static str, u64); 3] {
        let contexts = self.contexts.take_all();
        let open = widen(contexts.len());
        for context in contexts {
            self.front.end_defragmentation(*context);
        }
        let pools = widen(self.pools.take_all().len());
        let mut allocations = 0;
        self.front.slab.for_each(|_, _| allocations += 1);
        [("defragmentations", open), ("pools", pools), ("allocations", allocations)]
    }
}

/// The flags that VMA knows. The Rust interface may know more.
const KNOWN_FLAGS: u32 = 0x7_1FC7;

/// Converts a create-info of C into one of the Rust interface.
///
/// # Safety
/// `info.pool` is null or a live pool (C1).
#[inline(always)]
pub(super) unsafe fn create_info<'a>(
    info: &VmaAllocationCreateInfo,
    has_priorities: bool,
) -> AllocationCreateInfo<'a> {
    // SAFETY: the caller's promise: `info.pool` is null or a live pool.
    let pool = unsafe { info.pool.cast_const().as_ref() };
    let flags = AllocationCreateFlags::from_bits_truncate(info.flags & KNOWN_FLAGS);
    let strategies = (flags & AllocationCreateFlags::STRATEGY_MASK).bits();
    AllocationCreateInfo {
        flags: if strategies & strategies.wrapping_sub(1) == 0 { flags } else { one_strategy(flags) },
        usage: usage(info.usage),
        required_flags: info.required_flags,
        preferred_flags: info.preferred_flags,
        memory_type_bits: info.memory_type_bits,
        pool: pool.map(PoolObject::pool),
        scope: None,
        // With this flag, the string is the name and not user data.
        user_data: if info.flags & USER_DATA_COPY_STRING == 0 { address(info.user_data) } else { 0 },
        // Without the extension the driver ignores the priority. A pool has its own. Both cases accept any value.
        priority: if has_priorities && pool.is_none() { info.priority } else { 0.5 },
        min_alignment: info.min_alignment(),
        name: None,
    }
}

/// Returns the one strategy that VMA follows if several are set.
#[cold]
#[inline(never)]
pub(super) fn one_strategy(flags: AllocationCreateFlags) -> AllocationCreateFlags {
    use AllocationCreateFlags as Flags;
    let in_order = [Flags::STRATEGY_MIN_TIME, Flags::STRATEGY_MIN_MEMORY, Flags::STRATEGY_MIN_OFFSET];
    let first = in_order.into_iter().find(|&strategy| flags.contains(strategy));
    flags.difference(Flags::STRATEGY_MASK) | first.unwrap_or_default()
}

/// Converts a pointer of the program into the number that an allocation stores as user data.
#[inline]
pub(super) fn address(pointer: *mut c_void) -> u64 {
    // Only the program dereferences the pointer, so its provenance is exposed.
    sublet::private::widen(pointer.expose_provenance())
}

/// Returns the pointer that [`address`] converted.
#[inline]
pub(super) fn pointer(address: u64) -> *mut c_void {
    std::ptr::with_exposed_provenance_mut(usize::try_from(address).unwrap_or(0))
}

/// Returns the create-info behind a pointer. Logs and returns `None` if the pointer is null, or if the usage is unknown
/// and the request has no pool.
///
/// # Safety
/// `info` is null, or valid for reads while the result is used.
#[inline(always)]
pub(super) unsafe fn given_info<'a>(
    function: &'static str,
    info: *const VmaAllocationCreateInfo,
) -> Option<&'a VmaAllocationCreateInfo> {
    // SAFETY: the caller's promise: the pointer is null or valid for reads.
    let info = unsafe { given(function, info) }?;
    // A pool ignores the usage: its memory type was chosen at creation.
    if info.usage > LAST_USAGE && info.pool.is_null() {
        misused(function, "usage is not one of VmaMemoryUsage");
        return None;
    }
    Some(info)
}

/// `VMA_MEMORY_USAGE_AUTO_PREFER_HOST`.
const LAST_USAGE: u32 = 9;

/// Converts a usage number. An unknown number occurs only with a pool, which ignores the usage: see [`given_info`].
#[inline(always)]
fn usage(usage: u32) -> MemoryUsage {
    match usage {
        0 => MemoryUsage::Unknown,
        1 => MemoryUsage::GpuOnly,
        2 => MemoryUsage::CpuOnly,
        3 => MemoryUsage::CpuToGpu,
        4 => MemoryUsage::GpuToCpu,
        5 => MemoryUsage::CpuCopy,
        6 => MemoryUsage::GpuLazilyAllocated,
        7 => MemoryUsage::Auto,
        8 => MemoryUsage::AutoPreferDevice,
        9 => MemoryUsage::AutoPreferHost,
        _ => MemoryUsage::Unknown,
    }
}

/// See `vmaEndDefragmentationPass` in the header.
const DESTINATION_FREED: &str = "dstTmpAllocation belongs to the defragmentation: its move is not made, and srcAllocation stays where it is";

impl Front {
    /// Creates the object of a new allocation, names it if the flags say so, and writes handle and description.
    ///
    /// # Safety
    /// 1. The allocation is not used again.
    /// 2. `handle` and `description` are null or valid for writes.
    /// 3. `info.user_data` is null or a string if the flags say that it is one.
    #[inline(always)]
    pub(super) unsafe fn publish(
        &self,
        allocation: &Allocation,
        info: &VmaAllocationCreateInfo,
        handle: *mut VmaAllocation,
        description: *mut VmaAllocationInfo,
    ) {
        // SAFETY: 1: the allocation is not used again.
        let object = unsafe { self.slab.insert(allocation) };
        if info.flags & USER_DATA_COPY_STRING != 0 && !info.user_data.is_null() {
            // SAFETY: 3: the user data is a string; the object was made just now, so that no other call uses it.
            unsafe { self.name(object, info.user_data.cast_const().cast()) };
        }
        if !description.is_null() {
            // SAFETY: the object was made just now.
            if let Some(slot) = unsafe { HandleSlot::of(object) } {
                // SAFETY: 2: it is valid for writes.
                unsafe { description.write(describe(slot)) };
            }
        }
        // SAFETY: 2: it is valid for writes; exported functions check it for null.
        unsafe { handle.write(object) };
    }

    /// Sets or removes the name of an allocation.
    ///
    /// # Safety
    /// 1. `handle` is live and not used by another call.
    /// 2. `name` is null or a string.
    #[cold]
    pub(super) unsafe fn name(&self, handle: VmaAllocation, name: *const std::ffi::c_char) {
        // SAFETY: 1: the handle is live.
        let Some(slot) = (unsafe { self.own("vmaSetAllocationName", handle) }) else { return };
        // SAFETY: 2: it is a string.
        let name = (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) }.to_owned());
        // The allocator stores the name too, for reports and leaks.
        let text = name.as_deref().map(CStr::to_string_lossy);
        if let Err(error) = self.allocator.set_allocation_name(slot.allocation(), text.as_deref()) {
            foreign("vmaSetAllocationName", &error);
        }
        // SAFETY: 1: no other call uses the handle.
        unsafe { slot.set_name(name) };
    }

    /// Replaces the user data of an allocation.
    ///
    /// # Safety
    /// C1 and C2.
    pub(super) unsafe fn set_user_data(&self, function: &'static str, handle: VmaAllocation, user_data: u64) {
        // SAFETY: C1, C2.
        let Some(slot) = (unsafe { self.own(function, handle) }) else { return };
        // SAFETY: C2: the copy replaces the allocation.
        let mut changed = unsafe { slot.copy() };
        changed.set_user_data(user_data);
        self.allocator.record(RecordedCall::SetUserData(&changed, user_data));
        // SAFETY: C2: no other call uses the allocation.
        unsafe { self.slab.replace(slot, changed) };
    }

    /// Returns the object of an allocation. Logs and returns `None` if the handle is not a live one of this allocator.
    ///
    /// # Safety
    /// C1 and C2.
    #[inline(always)]
    pub(super) unsafe fn own<'a>(
        &self,
        function: &'static str,
        handle: VmaAllocation,
    ) -> Option<&'a HandleSlot> {
        // SAFETY: C1, C2.
        let slot = unsafe { self.slab.own(handle) };
        if slot.is_none() {
            misused(function, "the allocation is null, another allocator's, or was freed already");
        }
        slot
    }

    /// Frees an allocation. Ignores null and handles that are no longer allocated.
    ///
    /// # Safety
    /// 1. As for [`Allocator::free_memory`].
    /// 2. `handle` is null or came from a live allocator, and no other call uses it.
    #[inline(always)]
    pub(super) unsafe fn free(&self, function: &'static str, handle: VmaAllocation) {
        if handle.is_null() {
            return;
        }
        // SAFETY: 2: it came from a live allocator, and no other call uses it.
        let Some(slot) = (unsafe { self.own(function, handle) }) else { return };
        let allocation = slot.allocation();
        // SAFETY: 2: no other call uses the handle.
        if !unsafe { slot.is_plain() } {
            if slot.give_up_destination() {
                return misused(function, DESTINATION_FREED);
            }
            self.unmap_all(function, allocation, slot.map_count());
            // SAFETY: 2: no other call uses the handle.
            unsafe { slot.clean() };
        }
        // SAFETY: 1: the device no longer uses the memory. The slot is removed just below, so the memory is freed once.
        if let Err(error) = unsafe { self.allocator.free_in_place(allocation) } {
            foreign(function, &error);
        }
        // SAFETY: 2: no other call uses the handle; it is plain, or was made so above.
        unsafe { self.slab.remove_plain(slot) };
    }

    /// Removes the mappings that the program left.
    #[cold]
    #[inline(never)]
    fn unmap_all(&self, function: &'static str, allocation: &Allocation, count: u32) {
        if count == 0 {
            return;
        }
        misused(function, "the allocation is still mapped");
        for _ in 0..count {
            // SAFETY: each mapping was counted when it was made, and the program no longer uses the memory.
            let unmapped = unsafe { self.allocator.unmap_memory(allocation) };
            if unmapped.is_err() {
                // The pool is destroyed, and the mapping with it.
                return;
            }
        }
    }
}

/// Describes an allocation in C's structure.
#[inline(always)]
pub(super) fn describe(slot: &HandleSlot) -> VmaAllocationInfo {
    let allocation = slot.allocation();
    VmaAllocationInfo {
        memory_type: allocation.memory_type_index(),
        device_memory: allocation.memory(),
        offset: allocation.offset(),
        size: allocation.size(),
        mapped_data: slot.mapped(),
        user_data: pointer(allocation.user_data()),
        name: slot.name(),
    }
}

/// Selects the functions of Vulkan to use.
///
/// There are three cases. The program gives every function, or the two functions that look up the others, or nothing.
/// In the last case the system's Vulkan library is loaded and stays loaded until the program ends.
pub(super) fn functions(given: Option<&VmaVulkanFunctions>) -> VulkanFunctions {
    let given = given.copied().unwrap_or_default();
    let mut functions = VulkanFunctions {
        get_instance_proc_addr: given.get_instance_proc_addr,
        get_device_proc_addr: given.get_device_proc_addr,
        get_physical_device_properties: given.get_physical_device_properties,
        get_physical_device_memory_properties: given.get_physical_device_memory_properties,
        get_physical_device_memory_properties2: given.get_physical_device_memory_properties2,
        allocate_memory: given.allocate_memory,
        free_memory: given.free_memory,
        map_memory: given.map_memory,
        unmap_memory: given.unmap_memory,
        flush_mapped_memory_ranges: given.flush_mapped_memory_ranges,
        invalidate_mapped_memory_ranges: given.invalidate_mapped_memory_ranges,
        bind_buffer_memory: given.bind_buffer_memory,
        bind_image_memory: given.bind_image_memory,
        get_buffer_memory_requirements: given.get_buffer_memory_requirements,
        get_image_memory_requirements: given.get_image_memory_requirements,
        create_buffer: given.create_buffer,
        destroy_buffer: given.destroy_buffer,
        create_image: given.create_image,
        destroy_image: given.destroy_image,
        get_buffer_memory_requirements2: given.get_buffer_memory_requirements2,
        get_image_memory_requirements2: given.get_image_memory_requirements2,
        bind_buffer_memory2: given.bind_buffer_memory2,
        bind_image_memory2: given.bind_image_memory2,
        get_device_buffer_memory_requirements: given.get_device_buffer_memory_requirements,
        get_device_image_memory_requirements: given.get_device_image_memory_requirements,
        get_memory_win32_handle: given.get_memory_win32_handle.filter(|_| cfg!(windows)),
        // VMA has no members for the other functions.
        ..VulkanFunctions::default()
    };
    // A program that gives device functions has loaded Vulkan itself. The system may have no Vulkan library to load.
    if functions.get_instance_proc_addr.is_none() && functions.allocate_memory.is_none() {
        functions.get_instance_proc_addr = loaded();
    }
    functions
}

/// Returns `vkGetInstanceProcAddr` of the system's Vulkan library. The first call loads the library.
#[cold]
pub(super) fn loaded() -> Option<vk::PFN_vkGetInstanceProcAddr> {
    static ENTRY: OnceLock<Option<ash::Entry>> = OnceLock::new();
    let entry = ENTRY.get_or_init(|| {
        // SAFETY: loading runs the library's initialisers. The system's Vulkan library is trusted, as by a program that
        // links to it.
        match unsafe { ash::Entry::load() } {
            Ok(entry) => Some(entry),
            Err(error) => {
                tracing::error!(name: "vulkan_not_loaded", target: "sublet::capi", %error, "the Vulkan library was not loaded");
                None
            }
        }
    });
    entry.as_ref().map(|entry| entry.static_fn().get_instance_proc_addr)
}

/// Returns the numbers of memory types and heaps, which are the lengths of the program's lists.
///
/// # Safety
/// As for [`Allocator::new`].
pub(super) unsafe fn memory_counts(
    functions: &VulkanFunctions,
    instance: vk::Instance,
    physical_device: vk::PhysicalDevice,
) -> (usize, usize) {
    const NAME: &CStr = c"vkGetPhysicalDeviceMemoryProperties";
    let found = functions.get_physical_device_memory_properties.or_else(|| {
        let lookup = functions.get_instance_proc_addr?;
        // SAFETY: the instance is live and the name ends with a zero (VUID-vkGetInstanceProcAddr-pName-parameter).
        let found = unsafe { lookup(instance, NAME.as_ptr()) }?;
        // SAFETY: the function of this name has this type.
        Some(unsafe {
            std::mem::transmute::<unsafe extern "system" fn(), vk::PFN_vkGetPhysicalDeviceMemoryProperties>(
                found,
            )
        })
    });
    let Some(query) = found else {
        // The creation of the allocator fails in this case too.
        return (0, 0);
    };
    let mut properties = vk::PhysicalDeviceMemoryProperties::default();
    // SAFETY: the physical device is live (VUID-vkGetPhysicalDeviceMemoryProperties-physicalDevice-parameter).
    unsafe { query(physical_device, &mut properties) };
    let types = properties.memory_type_count.min(narrow(properties.memory_types.len()));
    let heaps = properties.memory_heap_count.min(narrow(properties.memory_heaps.len()));
    (index(types), index(heaps))
}

#[cfg(test)]
mod tests {
    use super::*;
    use sublet::sim::{Gpu, Profile};
    use sublet::{AllocatorCreateInfo, PoolCreateInfo};

    #[test]
    fn of_several_strategies_the_one_of_vma_is_followed() {
        use AllocationCreateFlags as Flags;
        let [memory, time, offset] =
            [Flags::STRATEGY_MIN_MEMORY, Flags::STRATEGY_MIN_TIME, Flags::STRATEGY_MIN_OFFSET];
        for (several, one) in [
            (memory | time | offset, time),
            (memory | time, time),
            (time | offset, time),
            (memory | offset, memory),
            (offset, offset),
        ] {
            assert_eq!(one_strategy(several | Flags::MAPPED), one | Flags::MAPPED);
        }
    }

    #[test]
    fn priorities_count_where_they_are_enabled_and_not_in_pools() {
        let gpu = Gpu::new(Profile::by_name("lavapipe").unwrap());
        // SAFETY: the device outlives the allocator.
        let allocator = unsafe { Allocator::new(&AllocatorCreateInfo::for_gpu(&gpu)) }.unwrap();
        let mut pool = PoolObject::new(allocator.create_pool(&PoolCreateInfo::new(0)).unwrap());
        let mut info = VmaAllocationCreateInfo {
            flags: u32::MAX,
            usage: 0,
            required_flags: vk::MemoryPropertyFlags::empty(),
            preferred_flags: vk::MemoryPropertyFlags::empty(),
            memory_type_bits: 0,
            pool: std::ptr::null_mut(),
            user_data: std::ptr::null_mut(),
            priority: 7.0,
            #[cfg(not(sublet_vma_3_3))]
            min_alignment: 0,
        };
        // SAFETY: there is no pool.
        let asked = unsafe { create_info(&info, true) };
        assert_eq!((asked.priority, asked.flags.bits() & !KNOWN_FLAGS), (7.0, 0));
        // SAFETY: as above.
        assert_eq!(unsafe { create_info(&info, false) }.priority, 0.5);
        info.pool = &raw mut pool;
        // SAFETY: the pool lives.
        assert_eq!(unsafe { create_info(&info, true) }.priority, 0.5);
        // SAFETY: no device uses it.
        assert!(unsafe { allocator.destroy_pool(pool.into_pool()) }.unwrap().is_empty());
    }
}
