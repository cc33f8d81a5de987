//! Memory: allocate, free, map, flush.
#![expect(unsafe_code, reason = "the functions have the C ABI, and call the next layer")]

use std::ffi::c_void;

use ash::vk;
use sublet::private::Operation;
use sublet::trace::ForeignMemoryFlags;

use super::{FAILED, next, slice};
use crate::chain;
use crate::device::WatchedDevice;
use crate::recording::{ObjectKey, RecordFields};

/// The structures that import memory.
const IMPORTS: &[vk::StructureType] = &[
    vk::StructureType::IMPORT_MEMORY_FD_INFO_KHR,
    vk::StructureType::IMPORT_MEMORY_HOST_POINTER_INFO_EXT,
    vk::StructureType::IMPORT_MEMORY_WIN32_HANDLE_INFO_KHR,
    vk::StructureType::IMPORT_MEMORY_WIN32_HANDLE_INFO_NV,
    vk::StructureType::IMPORT_ANDROID_HARDWARE_BUFFER_INFO_ANDROID,
    vk::StructureType::IMPORT_MEMORY_ZIRCON_HANDLE_INFO_FUCHSIA,
    vk::StructureType::IMPORT_MEMORY_BUFFER_COLLECTION_FUCHSIA,
    vk::StructureType::IMPORT_METAL_BUFFER_INFO_EXT,
    vk::StructureType::IMPORT_SCREEN_BUFFER_INFO_QNX,
];

/// The flags of an allocation, and the resource that it is dedicated to.
///
/// # Safety
/// V1 holds for `info`.
unsafe fn flags_of(info: &vk::MemoryAllocateInfo<'_>) -> (ForeignMemoryFlags, Option<ObjectKey>) {
    let (mut flags, mut resource) = (ForeignMemoryFlags::empty(), None);
    // SAFETY: the caller's.
    for kind in unsafe { chain::types(info.p_next) } {
        if IMPORTS.contains(&kind) {
            flags |= ForeignMemoryFlags::IMPORTED;
        }
        if kind == vk::StructureType::EXPORT_MEMORY_ALLOCATE_INFO {
            flags |= ForeignMemoryFlags::EXPORTABLE;
        }
    }
    // SAFETY: the caller's.
    if let Some(dedicated) = unsafe { chain::find::<vk::MemoryDedicatedAllocateInfo<'_>>(info.p_next) } {
        if dedicated.buffer != vk::Buffer::null() {
            resource = Some(dedicated.buffer.into());
        } else if dedicated.image != vk::Image::null() {
            resource = Some(dedicated.image.into());
        }
        flags.set(ForeignMemoryFlags::DEDICATED, resource.is_some());
    }
    // SAFETY: the caller's.
    if let Some(allocate) = unsafe { chain::find::<vk::MemoryAllocateFlagsInfo<'_>>(info.p_next) } {
        if allocate.flags.contains(vk::MemoryAllocateFlags::DEVICE_ADDRESS) {
            flags |= ForeignMemoryFlags::DEVICE_ADDRESS;
        }
    }
    (flags, resource)
}

pub(crate) unsafe extern "system" fn allocate_memory(
    device: vk::Device,
    info: *const vk::MemoryAllocateInfo<'_>,
    callbacks: *const vk::AllocationCallbacks<'_>,
    memory: *mut vk::DeviceMemory,
) -> vk::Result {
    let (known, next) = next!(device, allocate_memory, FAILED);
    // SAFETY: V3, and the parameters are those of the program.
    let result = known.checked(unsafe { next(device, info, callbacks, memory) });
    let Some(recording) = &known.recording else { return result };
    // SAFETY: V1.
    let Some(info) = (unsafe { info.as_ref() }) else { return result };
    let memory_type = info.memory_type_index.into();
    if result != vk::Result::SUCCESS {
        let code = u64::from(result.as_raw().unsigned_abs());
        recording.put(Operation::MemoryAllocationFailed, &[memory_type, info.allocation_size, code]);
        return result;
    }
    // SAFETY: V1: the next layer wrote the handle.
    let handle = unsafe { *memory };
    // SAFETY: V1.
    let (flags, dedicated) = unsafe { flags_of(info) };
    recording.record(|access| {
        let id = access.next_memory();
        let resource = dedicated.and_then(|key| access.objects().id(key)).unwrap_or(0);
        let numbers = [id, memory_type, info.allocation_size, flags.bits().into(), resource];
        access.create(handle.into(), id, false, &RecordFields::new(Operation::MemoryAllocated, &numbers));
    });
    result
}

pub(crate) unsafe extern "system" fn free_memory(
    device: vk::Device,
    memory: vk::DeviceMemory,
    callbacks: *const vk::AllocationCallbacks<'_>,
) {
    let (known, next) = next!(device, free_memory);
    // Before the call: afterwards, another thread may get the same handle.
    if memory != vk::DeviceMemory::null() {
        known.record(|access| access.end(memory.into(), Operation::MemoryFreed));
    }
    // SAFETY: V3, and the parameters are those of the program.
    unsafe { next(device, memory, callbacks) };
}

/// Returns a size plus one; 0 for the rest.
fn size_or_rest(size: u64) -> u64 {
    size.wrapping_add(1)
}

fn record_map(known: &WatchedDevice, memory: vk::DeviceMemory, offset: u64, size: u64) {
    known.record(|access| {
        access.update(memory.into(), |object| {
            let numbers = [object.id, offset, size_or_rest(size)];
            let fields = RecordFields::new(Operation::MemoryMapped, &numbers);
            object.replace(Operation::MemoryMapped, &fields);
            object.add_flags(ForeignMemoryFlags::WAS_MAPPED);
            Some(fields)
        });
    });
}

fn record_unmap(known: &WatchedDevice, memory: vk::DeviceMemory) {
    known.record(|access| {
        access.update(memory.into(), |object| {
            object.remove(Operation::MemoryMapped);
            Some(RecordFields::new(Operation::MemoryUnmapped, &[object.id]))
        });
    });
}

pub(crate) unsafe extern "system" fn map_memory(
    device: vk::Device,
    memory: vk::DeviceMemory,
    offset: vk::DeviceSize,
    size: vk::DeviceSize,
    flags: vk::MemoryMapFlags,
    data: *mut *mut c_void,
) -> vk::Result {
    let (known, next) = next!(device, map_memory, FAILED);
    // SAFETY: V3, and the parameters are those of the program.
    let result = known.checked(unsafe { next(device, memory, offset, size, flags, data) });
    if result == vk::Result::SUCCESS {
        record_map(known, memory, offset, size);
    }
    result
}

pub(crate) unsafe extern "system" fn map_memory2(
    device: vk::Device,
    info: *const vk::MemoryMapInfoKHR<'_>,
    data: *mut *mut c_void,
) -> vk::Result {
    let (known, next) = next!(device, map_memory2, FAILED);
    // SAFETY: V3, and the parameters are those of the program.
    let result = known.checked(unsafe { next(device, info, data) });
    // SAFETY: V1.
    if let Some(info) = unsafe { info.as_ref() }.filter(|_| result == vk::Result::SUCCESS) {
        record_map(known, info.memory, info.offset, info.size);
    }
    result
}

pub(crate) unsafe extern "system" fn unmap_memory(device: vk::Device, memory: vk::DeviceMemory) {
    let (known, next) = next!(device, unmap_memory);
    record_unmap(known, memory);
    // SAFETY: V3, and the parameters are those of the program.
    unsafe { next(device, memory) };
}

pub(crate) unsafe extern "system" fn unmap_memory2(
    device: vk::Device,
    info: *const vk::MemoryUnmapInfoKHR<'_>,
) -> vk::Result {
    let (known, next) = next!(device, unmap_memory2, FAILED);
    // SAFETY: V3, and the parameters are those of the program.
    let result = known.checked(unsafe { next(device, info) });
    // SAFETY: V1.
    if let Some(info) = unsafe { info.as_ref() }.filter(|_| result == vk::Result::SUCCESS) {
        record_unmap(known, info.memory);
    }
    result
}

fn record_ranges(known: &WatchedDevice, operation: Operation, ranges: &[vk::MappedMemoryRange<'_>]) {
    known.record(|access| {
        for range in ranges {
            let noted = access.objects().note(range.memory, ForeignMemoryFlags::WAS_SYNCHRONIZED);
            if let Some(id) = noted {
                access.put(operation, &[id, range.offset, size_or_rest(range.size)]);
            }
        }
    });
}

pub(crate) unsafe extern "system" fn flush(
    device: vk::Device,
    count: u32,
    ranges: *const vk::MappedMemoryRange<'_>,
) -> vk::Result {
    let (known, next) = next!(device, flush, FAILED);
    // SAFETY: V3, and the parameters are those of the program.
    let result = known.checked(unsafe { next(device, count, ranges) });
    if result == vk::Result::SUCCESS {
        // SAFETY: V1.
        record_ranges(known, Operation::MemoryFlushed, unsafe { slice(ranges, count) });
    }
    result
}

pub(crate) unsafe extern "system" fn invalidate(
    device: vk::Device,
    count: u32,
    ranges: *const vk::MappedMemoryRange<'_>,
) -> vk::Result {
    let (known, next) = next!(device, invalidate, FAILED);
    // SAFETY: V3, and the parameters are those of the program.
    let result = known.checked(unsafe { next(device, count, ranges) });
    if result == vk::Result::SUCCESS {
        // SAFETY: V1.
        record_ranges(known, Operation::MemoryInvalidated, unsafe { slice(ranges, count) });
    }
    result
}
