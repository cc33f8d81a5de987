//! Creation, queries and destruction of allocators.
#![expect(unsafe_code, reason = "the functions have the C ABI")]

use std::time::Duration;

use ash::vk;

use crate::allocator::{AllocatorObject, Front, functions, memory_counts};
use crate::guard::{answer, exported, given, is_missing, leaked, misused, refused};
use crate::pointer_set::PointerSet;
use crate::slab::HandleSlab;
use crate::types::{
    VmaAllocator, VmaAllocatorCreateInfo, VmaAllocatorInfo, VmaDeviceMemoryFunction, VmaPool,
};
use crate::{log, settings};
use sublet::AllocatorCreateFlags;
use sublet::device::{DeviceMemoryCallbacks, RawDeviceMemoryCallbacks};
use sublet::private::index;
use sublet::{Allocator, AllocatorCreateInfo, MaintainInfo, ReserveMemoryError};
use sublet::{CreateAllocatorError, GrowthPreset};

/// The flags that VMA knows. The Rust interface knows more.
const KNOWN_FLAGS: u32 = 0x3FF;
/// `SUBLET_ALLOCATOR_CREATE_MEMORY_FIRST_BIT`: [`GrowthPreset::MemoryFirst`].
const MEMORY_FIRST: u32 = 0x4_0000;

/// Creates an allocator from the program's structure. `own` is the address that the object will have.
///
/// # Safety
/// C1 to C3 for `info`.
unsafe fn make(
    info: &VmaAllocatorCreateInfo,
    own: VmaAllocator,
) -> Result<AllocatorObject, CreateAllocatorError> {
    // SAFETY: C3.
    let functions = functions(unsafe { info.vulkan_functions.as_ref() });
    let limits: &[u64] = if info.heap_size_limit.is_null() {
        &[]
    } else {
        // SAFETY: C3.
        let count = unsafe { memory_counts(&functions, info.instance, info.physical_device) }.1;
        // SAFETY: C3: the list has an element for each heap.
        unsafe { std::slice::from_raw_parts(info.heap_size_limit, count) }
    };
    // SAFETY: C3.
    let memory_callbacks = unsafe { info.device_memory_callbacks.as_ref() }.map(|callbacks| {
        let raw = RawDeviceMemoryCallbacks {
            allocated: callbacks.allocate.map(untyped),
            freeing: callbacks.free.map(untyped),
            allocator: own.cast(),
            user_data: callbacks.user_data.0,
        };
        // SAFETY: C3: the functions may be called with this allocator and this user data while the allocator
        // lives.
        unsafe { DeviceMemoryCallbacks::from_raw(raw) }
    });
    let handle_types: &[vk::ExternalMemoryHandleTypeFlags] =
        if info.type_external_memory_handle_types.is_null() {
            &[]
        } else {
            // SAFETY: C3.
            let count = unsafe { memory_counts(&functions, info.instance, info.physical_device) }.0;
            // SAFETY: C3: the list has an element for each memory type.
            unsafe { std::slice::from_raw_parts(info.type_external_memory_handle_types, count) }
        };
    let flags = AllocatorCreateFlags::from_bits_truncate(info.flags & KNOWN_FLAGS);
    let api_version = match info.vulkan_api_version {
        0 => vk::API_VERSION_1_0,
        version => version,
    };
    let rust = AllocatorCreateInfo {
        flags,
        growth: match info.flags & MEMORY_FIRST {
            0 => GrowthPreset::Balanced,
            _ => GrowthPreset::MemoryFirst,
        },
        preferred_large_heap_block_size: info.preferred_large_heap_block_size,
        heap_size_limits: limits,
        // SAFETY: C3.
        allocation_callbacks: unsafe { info.allocation_callbacks.as_ref() },
        device_memory_callbacks: memory_callbacks,
        external_memory_handle_types: handle_types,
        debug: settings::current(),
        max_mapped_size: settings::max_mapped_size(),
        ..AllocatorCreateInfo::from_raw(
            info.instance,
            info.device,
            info.physical_device,
            api_version,
            functions,
        )
    };
    // SAFETY: C3.
    let allocator = unsafe { Allocator::new(&rust) }?;
    // A recording that fails to start is logged. The allocator works without it.
    #[cfg(feature = "trace")]
    let _ = sublet::trace::start_from_environment(&allocator);
    let properties = Box::new(*allocator.physical_device_properties());
    let memory_properties = Box::new(allocator.memory_properties());
    let has_priorities = flags.contains(AllocatorCreateFlags::EXT_MEMORY_PRIORITY);
    Ok(AllocatorObject {
        front: Front { allocator, slab: HandleSlab::new(), has_priorities },
        instance: info.instance,
        physical_device: info.physical_device,
        device: info.device,
        properties,
        memory_properties,
        pools: PointerSet::new(),
        contexts: PointerSet::new(),
    })
}

/// Casts the function to one whose handle is an untyped pointer.
fn untyped(function: VmaDeviceMemoryFunction) -> sublet::device::DeviceMemoryFunction {
    // SAFETY: the two types differ only in the pointee of the first parameter, which does not affect the ABI.
    unsafe { std::mem::transmute::<VmaDeviceMemoryFunction, sublet::device::DeviceMemoryFunction>(function) }
}

/// Returns the result for a failed creation. VMA asserts in all these cases and defines no result.
fn result(error: &CreateAllocatorError) -> vk::Result {
    match error {
        CreateAllocatorError::ExtensionNotPresent { .. } => vk::Result::ERROR_EXTENSION_NOT_PRESENT,
        _ => vk::Result::ERROR_INITIALIZATION_FAILED,
    }
}

exported! {
    /// Creates an allocator.
    fn vmaCreateAllocator(info: *const VmaAllocatorCreateInfo, allocator: *mut VmaAllocator) -> vk::Result {
        const NAME: &str = "vmaCreateAllocator";
        log::start();
        // SAFETY: C3.
        unsafe { answer(allocator, std::ptr::null_mut()) };
        // SAFETY: C3.
        let (Some(info), false) = (unsafe { given(NAME, info) }, is_missing(NAME, allocator)) else {
            return vk::Result::ERROR_INITIALIZATION_FAILED;
        };
        if info.instance == vk::Instance::null()
            || info.physical_device == vk::PhysicalDevice::null()
            || info.device == vk::Device::null()
        {
            misused(NAME, "instance, physicalDevice and device must not be null");
            return vk::Result::ERROR_INITIALIZATION_FAILED;
        }
        // Callbacks receive the handle, so its address must be known before the allocator exists.
        let mut place = Box::<AllocatorObject>::new_uninit();
        // SAFETY: C1 to C3.
        match unsafe { make(info, place.as_mut_ptr()) } {
            Ok(object) => {
                place.write(object);
                // SAFETY: C3; the pointer is not null.
                unsafe { allocator.write(Box::into_raw(place).cast()) };
                vk::Result::SUCCESS
            }
            Err(error) => refused(NAME, &error, true, result(&error)),
        }
    }

    /// Destroys an allocator and everything in it.
    fn vmaDestroyAllocator(allocator: VmaAllocator) {
        if !allocator.is_null() {
            // SAFETY: C1 and C2: `vmaCreateAllocator` made the box, and no other call uses it.
            let object = unsafe { Box::from_raw(allocator) };
            let left = object.end_all();
            // Dropping the object logs each leak by name. The sums come last, because an assertion ends the program
            // there.
            drop(object);
            for (holds, count) in left.into_iter().filter(|&(_, count)| count != 0) {
                leaked("vmaDestroyAllocator", "allocator", holds, count);
            }
        }
    }

    /// Returns the handles that the allocator was created with.
    fn vmaGetAllocatorInfo(allocator: VmaAllocator, info: *mut VmaAllocatorInfo) {
        // SAFETY: C1.
        if let Some(object) = unsafe { given("vmaGetAllocatorInfo", allocator) } {
            let AllocatorObject { instance, physical_device, device, .. } = *object;
            // SAFETY: C3.
            unsafe { answer(info, VmaAllocatorInfo { instance, physical_device, device }) };
        }
    }

    /// Returns a pointer to the properties of the physical device.
    fn vmaGetPhysicalDeviceProperties(
        allocator: VmaAllocator,
        properties: *mut *const vk::PhysicalDeviceProperties,
    ) {
        // SAFETY: C1.
        if let Some(object) = unsafe { given("vmaGetPhysicalDeviceProperties", allocator) } {
            // SAFETY: C3.
            unsafe { answer(properties, std::ptr::from_ref(&*object.properties)) };
        }
    }

    /// Returns a pointer to the memory properties, with the sizes of heaps as limited.
    fn vmaGetMemoryProperties(
        allocator: VmaAllocator,
        properties: *mut *const vk::PhysicalDeviceMemoryProperties,
    ) {
        // SAFETY: C1.
        if let Some(object) = unsafe { given("vmaGetMemoryProperties", allocator) } {
            // SAFETY: C3.
            unsafe { answer(properties, std::ptr::from_ref(&*object.memory_properties)) };
        }
    }

    /// Returns the properties of one memory type.
    fn vmaGetMemoryTypeProperties(allocator: VmaAllocator, memory_type: u32, flags: *mut vk::MemoryPropertyFlags) {
        const NAME: &str = "vmaGetMemoryTypeProperties";
        // SAFETY: C1.
        if let Some(object) = unsafe { given(NAME, allocator) } {
            let known = object.memory_types().get(index(memory_type));
            if known.is_none() {
                misused(NAME, "there is no such memory type");
            }
            let properties = known.map_or(vk::MemoryPropertyFlags::empty(), |known| known.property_flags);
            // SAFETY: C3.
            unsafe { answer(flags, properties) };
        }
    }

    /// Begins a frame and fetches the budgets.
    fn vmaSetCurrentFrameIndex(allocator: VmaAllocator, frame_index: u32) {
        // SAFETY: C1.
        if let Some(object) = unsafe { given("vmaSetCurrentFrameIndex", allocator) } {
            object.front.allocator.set_current_frame_index(frame_index);
        }
    }

    /// Creates blocks ahead of need, in a pool or in a memory type.
    fn subletReserve(allocator: VmaAllocator, pool: VmaPool, memory_type: u32, size: vk::DeviceSize) -> vk::Result {
        const NAME: &str = "subletReserve";
        // SAFETY: C1.
        let Some(object) = (unsafe { given(NAME, allocator) }) else {
            return vk::Result::ERROR_INITIALIZATION_FAILED;
        };
        let allocator = &object.front.allocator;
        let reserved = if pool.is_null() {
            allocator.reserve(memory_type, size)
        } else {
            // SAFETY: C2.
            let Some(pool) = (unsafe { object.pools.of(NAME, pool) }) else {
                return vk::Result::ERROR_INITIALIZATION_FAILED;
            };
            allocator.reserve_in_pool(pool.pool(), size)
        };
        match reserved {
            Ok(_) => vk::Result::SUCCESS,
            Err(error) => {
                let misuse = matches!(error, ReserveMemoryError::MemoryType { .. } | ReserveMemoryError::Foreign(_));
                let result = if misuse { vk::Result::ERROR_INITIALIZATION_FAILED } else { error.vk_result() };
                refused(NAME, &error, misuse, result)
            }
        }
    }

    /// Creates blocks ahead of need and frees empty ones, between frames.
    fn subletMaintain(allocator: VmaAllocator, max_allocations: u32, max_frees: u32, max_microseconds: u32) {
        // SAFETY: C1.
        if let Some(object) = unsafe { given("subletMaintain", allocator) } {
            let max_time = Duration::from_micros(max_microseconds.into());
            object.front.allocator.maintain(&MaintainInfo { max_allocations, max_frees, max_time });
        }
    }
}
