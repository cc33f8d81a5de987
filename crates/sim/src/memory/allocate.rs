//! `VkDeviceMemory`: allocating and freeing it, and the request that it was made for.
#![expect(unsafe_code, reason = "the functions have the C ABI")]

use std::collections::BTreeMap;
use std::sync::Arc;

use ash::vk;
use ash::vk::Handle as _;

use crate::facts::arithmetic::{index, widen};
use crate::facts::broken::{Broken, refuse_if};
use crate::facts::chain;
use crate::memory::memory_chain::ChainFacts;
use crate::memory::{external, memory_chain};
use crate::objects::entry::{checked, entries, on_device};
use crate::objects::host_bytes::HostBytes;
use crate::objects::log::AllocateCall;
use crate::objects::memory::{MemoryInfo, MemoryObject};
use crate::objects::state::{DeviceObject, DeviceState, Label};
use crate::objects::store::Store;
use crate::objects::{host, registry};

/// Device addresses are given out from here on: low enough for every sum, high enough to be no host pointer or index.
const FIRST_ADDRESS: u64 = 0x10_0000_0000;
/// The gap between two memories, so that an overrun hits nothing.
const ADDRESS_GAP: u64 = 0x1_0000;

entries! {
    Device result vk::PFN_vkAllocateMemory = allocate: core 0 "vkAllocateMemory";
    Device void vk::PFN_vkFreeMemory = free: core 0 "vkFreeMemory";
    Device void vk::PFN_vkGetDeviceMemoryCommitment = commitment: core 0 "vkGetDeviceMemoryCommitment";
    Device void vk::PFN_vkSetDeviceMemoryPriorityEXT = set_priority:
        ext "VK_EXT_pageable_device_local_memory" "vkSetDeviceMemoryPriorityEXT";
    Device void vk::PFN_vkGetDeviceMemoryOpaqueCaptureAddress = opaque_address:
        core 2 "vkGetDeviceMemoryOpaqueCaptureAddress",
        ext "VK_KHR_buffer_device_address" "vkGetDeviceMemoryOpaqueCaptureAddressKHR";
}

unsafe extern "system" fn allocate(
    device: vk::Device,
    p_info: *const vk::MemoryAllocateInfo<'_>,
    callbacks: *const vk::AllocationCallbacks<'_>,
    p_memory: *mut vk::DeviceMemory,
) -> vk::Result {
    let result = checked(device, "vkAllocateMemory", |device| {
        // SAFETY: VUID-vkAllocateMemory-pAllocateInfo-parameter.
        let info = unsafe { chain::given(p_info, "VUID-vkAllocateMemory-pAllocateInfo-parameter") }?;
        // SAFETY: the chain is valid: VUID-VkMemoryAllocateInfo-pNext-pNext.
        let mut asked = unsafe { asked(info) };
        // SAFETY: as above.
        let facts = unsafe { ChainFacts::read(asked.size, info.p_next) };
        // SAFETY: the chain is valid: VUID-VkMemoryAllocateInfo-pNext-pNext.
        let fd = unsafe { chain::find::<vk::ImportMemoryFdInfoKHR<'_>>(info.p_next) };
        let fd = fd.filter(|info| !info.handle_type.is_empty()).map(|info| info.fd);
        // SAFETY: as above.
        let host = unsafe { chain::find::<vk::ImportMemoryHostPointerInfoEXT<'_>>(info.p_next) };
        let host = host.filter(|info| !info.handle_type.is_empty()).map(|info| info.p_host_pointer);
        let shared = match host {
            // SAFETY: VUID-VkImportMemoryHostPointerInfoEXT-handleType-01750.
            Some(pointer) => unsafe { external::imported_host(device.profile(), &asked, pointer) },
            None => external::imported(&asked, fd),
        };
        let shared = match shared {
            Ok(shared) => shared,
            Err((vuid, text)) => {
                device.report(vuid, text);
                return Ok(vk::Result::ERROR_INVALID_EXTERNAL_HANDLE);
            }
        };
        let taken = fd.filter(|_| shared.is_some());
        // SAFETY: VUID-vkAllocateMemory-pAllocator-parameter; no lock is held.
        let host = match unsafe { host::take(callbacks) } {
            Ok(host) => host,
            Err(error) => return Ok(error),
        };
        let mut state = device.state.lock();
        if facts.leaves_size(&asked) && asked.size == 0 {
            asked.size = state.images.get(&asked.dedicated_image).map_or(0, |image| image.requirements.size);
        }
        let heap = match check(device, &state, &asked, &facts) {
            Ok(heap) => heap,
            Err((result, broken)) => {
                drop(state);
                if let Some((rule, text)) = broken {
                    device.report(rule, text);
                }
                // SAFETY: as above, and nothing has it.
                unsafe { host::give_back(callbacks, host) };
                return Ok(result);
            }
        };
        let memory = device.gpu_state.handle::<vk::DeviceMemory>();
        state.add_memory(device, memory, asked, heap, host, shared, facts.replayed_address);
        if let Some(fd) = taken {
            // SAFETY: the import succeeded: the descriptor is the driver's.
            unsafe { external::close(fd) };
        }
        // SAFETY: VUID-vkAllocateMemory-pMemory-parameter.
        unsafe { chain::output(p_memory, memory) };
        Ok(vk::Result::SUCCESS)
    });
    // The log is written here, so that it has the calls that an ordered fault answers too.
    if let Some(device) = registry::device(device).filter(|device| device.gpu_state.log.is_on()) {
        // SAFETY: VUID-vkAllocateMemory-pAllocateInfo-parameter.
        if let Some(info) = unsafe { chain::input(p_info) } {
            // SAFETY: the chain is valid: VUID-VkMemoryAllocateInfo-pNext-pNext.
            let asked = unsafe { asked(info) };
            let memory = match result {
                // SAFETY: VUID-vkAllocateMemory-pMemory-parameter; it was written above.
                vk::Result::SUCCESS => unsafe { *p_memory },
                _ => vk::DeviceMemory::null(),
            };
            device.gpu_state.log.push(AllocateCall { asked, memory, result });
        }
    }
    result
}

/// The request of an allocate-info, chain included.
///
/// # Safety
///
/// The chain of `info` is valid.
unsafe fn asked(info: &vk::MemoryAllocateInfo<'_>) -> MemoryInfo {
    let next = info.p_next;
    // SAFETY: the promise of `asked`: the chain is valid.
    let dedicated = unsafe { chain::find::<vk::MemoryDedicatedAllocateInfo<'_>>(next) };
    // SAFETY: as above.
    let flags = unsafe { chain::find::<vk::MemoryAllocateFlagsInfo<'_>>(next) };
    // SAFETY: as above.
    let priority = unsafe { chain::find::<vk::MemoryPriorityAllocateInfoEXT<'_>>(next) };
    // SAFETY: as above.
    let export = unsafe { chain::find::<vk::ExportMemoryAllocateInfo<'_>>(next) };
    // SAFETY: as above.
    let import_handle_type = unsafe { memory_chain::imported_type(next) };
    // SAFETY: as above.
    let chain = unsafe { chain::types(next) };
    MemoryInfo {
        size: info.allocation_size,
        type_index: info.memory_type_index,
        dedicated_buffer: dedicated.map_or(vk::Buffer::null(), |info| info.buffer),
        dedicated_image: dedicated.map_or(vk::Image::null(), |info| info.image),
        priority: priority.map(|info| info.priority),
        flags: flags.map_or(0, |info| info.flags.as_raw()),
        device_mask: flags.map_or(0, |info| info.device_mask),
        export_handle_types: export.map_or(0, |info| info.handle_types.as_raw()),
        import_handle_type,
        chain,
    }
}

/// The result of a `vkAllocateMemory` that fails, and the rule that is broken, if any.
type AllocateFailure = (vk::Result, Option<Broken>);

/// Takes the bytes from the memory's heap, and returns the heap.
fn check(
    device: &DeviceObject,
    state: &DeviceState,
    asked: &MemoryInfo,
    facts: &ChainFacts,
) -> Result<u32, AllocateFailure> {
    let profile = device.profile();
    check_asked(device, state, asked, facts).map_err(|broken| {
        // No heap is that large. This is the one rule with a result of its own.
        let result = match broken.0 {
            TOO_LARGE => vk::Result::ERROR_OUT_OF_DEVICE_MEMORY,
            _ => vk::Result::ERROR_VALIDATION_FAILED_EXT,
        };
        (result, Some(broken))
    })?;
    let limit = profile.limits.max_memory_allocation_count;
    if widen(state.memories.len()) >= u64::from(limit) {
        let text =
            format!("{limit} memories are allocated, which is the most that maxMemoryAllocationCount allows");
        let broken = ("VUID-vkAllocateMemory-maxMemoryAllocationCount-04101", text);
        return Err((vk::Result::ERROR_TOO_MANY_OBJECTS, Some(broken)));
    }
    if facts.replayed_address != 0 && !state.is_free_address(facts.replayed_address, asked.size) {
        return Err((vk::Result::ERROR_INVALID_OPAQUE_CAPTURE_ADDRESS, None));
    }
    let size = asked.size;
    let heap = profile.types.get(index(asked.type_index)).map_or(0, |kind| kind.heap);
    let limits = &profile.limits;
    let is_too_large =
        size > limits.max_memory_allocation_size && !limits.grants_above_max_memory_allocation_size;
    let refused = device.gpu_state.faults.refuses(size) || is_too_large;
    // The last check: from here on the bytes are taken.
    if refused || !device.gpu_state.take(heap, size) {
        return Err((vk::Result::ERROR_OUT_OF_DEVICE_MEMORY, None));
    }
    Ok(heap)
}

const TOO_LARGE: &str = "VUID-vkAllocateMemory-pAllocateInfo-01713";

fn check_asked(
    device: &DeviceObject,
    state: &DeviceState,
    asked: &MemoryInfo,
    facts: &ChainFacts,
) -> Result<(), Broken> {
    let (profile, features) = (device.profile(), &device.features);
    facts.check(device, asked)?;
    let MemoryInfo { size, type_index, export_handle_types: export, .. } = *asked;
    let Some(kind) = profile.types.get(index(type_index)) else {
        let text =
            format!("memoryTypeIndex is {type_index}, and there are {} memory types", profile.types.len());
        return Err(("VUID-vkAllocateMemory-pAllocateInfo-01714", text));
    };
    refuse_if!(size == 0 && export == 0 && !facts.is_import() => "VUID-VkMemoryAllocateInfo-allocationSize-07897",
        "allocationSize is 0");
    let (heap, flags) = (kind.heap, kind.flags);
    let heap_size = profile.heaps.get(index(heap)).map_or(0, |heap| heap.size);
    refuse_if!(size > heap_size => TOO_LARGE,
        "allocationSize is {size}, and heap {heap} of memory type {type_index} has {heap_size} bytes");
    let coherent = flags.contains(vk::MemoryPropertyFlags::DEVICE_COHERENT_AMD);
    refuse_if!(coherent && !features.device_coherent_memory
        => "VUID-vkAllocateMemory-deviceCoherentMemory-02790",
        "memory type {type_index} is device coherent, and the feature deviceCoherentMemory is not enabled");
    let protected = flags.contains(vk::MemoryPropertyFlags::PROTECTED);
    refuse_if!(protected && !features.protected_memory => "VUID-VkMemoryAllocateInfo-memoryTypeIndex-01872",
        "memory type {type_index} is protected, and the feature protectedMemory is not enabled");
    check_dedicated(device, state, asked)?;
    let address = vk::MemoryAllocateFlags::from_raw(asked.flags);
    let address = address.contains(vk::MemoryAllocateFlags::DEVICE_ADDRESS);
    refuse_if!(address && !features.buffer_device_address => "VUID-VkMemoryAllocateInfo-flags-03331",
        "the flag DEVICE_ADDRESS is set, and the feature bufferDeviceAddress is not enabled");
    if let Some(priority) = asked.priority {
        refuse_if!(!(0.0..=1.0).contains(&priority)
            => "VUID-VkMemoryPriorityAllocateInfoEXT-priority-02602",
            "priority is {priority}, which is not between 0 and 1");
    }
    refuse_if!(export != 0 && !profile.features.external_memory
        => "VUID-VkExportMemoryAllocateInfo-handleTypes-00656",
        "handleTypes is {export:#x}, and the device exports no memory");
    Ok(())
}

fn check_dedicated(device: &DeviceObject, state: &DeviceState, asked: &MemoryInfo) -> Result<(), Broken> {
    let (buffer, image, asked) = (asked.dedicated_buffer, asked.dedicated_image, asked.size);
    refuse_if!(!buffer.is_null() && !image.is_null() => "VUID-VkMemoryDedicatedAllocateInfo-image-01432",
        "the memory is to be dedicated to {} and to {}", state.name(buffer), state.name(image));
    if !buffer.is_null() {
        let found = state.buffers.get(&buffer).map(|buffer| buffer.requirements.size);
        let rule = "VUID-VkMemoryDedicatedAllocateInfo-buffer-parameter";
        let size = state.known(device, buffer, found, rule)?;
        refuse_if!(size != asked => "VUID-VkMemoryDedicatedAllocateInfo-buffer-02965",
            "allocationSize is {asked}, and {} requires {size}", state.name(buffer));
    }
    if !image.is_null() {
        let found = state.images.get(&image).map(|image| image.requirements.size);
        let rule = "VUID-VkMemoryDedicatedAllocateInfo-image-parameter";
        let size = state.known(device, image, found, rule)?;
        refuse_if!(size != asked => "VUID-VkMemoryDedicatedAllocateInfo-image-02964",
            "allocationSize is {asked}, and {} requires {size}", state.name(image));
    }
    Ok(())
}

impl DeviceState {
    /// Returns whether no memory has any of `size` bytes from this address on.
    fn is_free_address(&self, address: u64, size: u64) -> bool {
        let end = address.saturating_add(size);
        let before = self.addresses.range(..end).next_back();
        let reaches = |memory: &MemoryObject| memory.address.saturating_add(memory.info.size) > address;
        !before.is_some_and(|(_, handle)| self.memories.get(handle).is_some_and(reaches))
    }

    #[allow(clippy::too_many_arguments, reason = "all that is known of it, each once")]
    fn add_memory(
        &mut self,
        device: &DeviceObject,
        handle: vk::DeviceMemory,
        info: MemoryInfo,
        heap: u32,
        host: HostBytes,
        shared: Option<Arc<Store>>,
        replayed: u64,
    ) {
        let properties =
            device.profile().types.get(index(info.type_index)).map_or(Default::default(), |kind| kind.flags);
        let split = properties.contains(vk::MemoryPropertyFlags::HOST_VISIBLE)
            && !properties.contains(vk::MemoryPropertyFlags::HOST_COHERENT);
        let next = self.address_end.max(FIRST_ADDRESS).next_multiple_of(ADDRESS_GAP);
        let address = if replayed == 0 { next } else { replayed };
        // At most the heaps' sizes are allocated at a time, but addresses are not used again unless a program replays
        // them: after 2^64 bytes they stay at the end, which nobody reaches.
        let end = address.saturating_add(info.size).saturating_add(ADDRESS_GAP).min(1 << 62);
        self.address_end = self.address_end.max(end);
        let memory = MemoryObject {
            store: shared
                .unwrap_or_else(|| Arc::new(Store::new(info.size, split, &device.gpu_state.host_limit))),
            info,
            heap,
            properties,
            host,
            mapped: None,
            bindings: BTreeMap::new(),
            overlaps: false,
            address,
        };
        self.addresses.insert(address, handle);
        self.memories.insert(handle, memory);
    }
}

unsafe extern "system" fn free(
    device: vk::Device,
    memory: vk::DeviceMemory,
    callbacks: *const vk::AllocationCallbacks<'_>,
) {
    on_device(device, "vkFreeMemory", |device| {
        let mut freed = None;
        let remove = |state: &mut DeviceState, name: &Label| {
            let found = state.memories.remove(&memory)?;
            state.addresses.remove(&found.address);
            device.gpu_state.give_back(found.heap, found.info.size);
            if let Some(user) = state.submitted_user(&found) {
                let text = format!("{name} is freed, and a submission still uses {user}");
                device.report("VUID-vkFreeMemory-memory-00677", text);
            }
            // The bytes are freed with the last reference, which a command may still hold, and not under the lock.
            freed.insert(found).host.into()
        };
        // vkFreeMemory has no rule of its own about callbacks; the one of VkAllocationCallbacks is for all objects.
        let callbacks_rule = "SUBLET-vkFreeMemory-callbacks";
        let rules = ["VUID-vkFreeMemory-memory-parameter", callbacks_rule, callbacks_rule];
        // SAFETY: 1: VUID-vkFreeMemory-pAllocator-parameter. 2: no lock is held. 3: as 1.
        unsafe { host::destroy(device, memory, callbacks, rules, remove) };
    });
}

impl DeviceState {
    /// A resource in `memory` that a pending submission uses.
    fn submitted_user(&self, memory: &MemoryObject) -> Option<String> {
        memory.bindings.keys().find_map(|&(_, handle)| {
            let (buffer, image) = (vk::Buffer::from_raw(handle), vk::Image::from_raw(handle));
            if self.buffers.get(&buffer).is_some_and(|buffer| buffer.in_use > 0) {
                return Some(self.name(buffer));
            }
            if self.images.get(&image).is_some_and(|image| image.in_use > 0) {
                return Some(self.name(image));
            }
            None
        })
    }
}

unsafe extern "system" fn commitment(
    device: vk::Device,
    memory: vk::DeviceMemory,
    p_bytes: *mut vk::DeviceSize,
) {
    on_device(device, "vkGetDeviceMemoryCommitment", |device| {
        let state = device.state.lock();
        match state.memories.get(&memory) {
            None => {
                let text = state.missing(device, memory);
                device.report("VUID-vkGetDeviceMemoryCommitment-memory-parameter", text);
            }
            Some(found) if !found.properties.contains(vk::MemoryPropertyFlags::LAZILY_ALLOCATED) => {
                let text = format!("the memory type of {} is not lazily allocated", state.name(memory));
                device.report("VUID-vkGetDeviceMemoryCommitment-memory-00690", text);
            }
            Some(_) => {}
        }
        // As on a tile renderer that never spills, nothing is committed.
        // SAFETY: VUID-vkGetDeviceMemoryCommitment-pCommittedMemoryInBytes-parameter.
        unsafe { chain::output(p_bytes, 0) };
    });
}

unsafe extern "system" fn set_priority(device: vk::Device, memory: vk::DeviceMemory, priority: f32) {
    checked(device, "vkSetDeviceMemoryPriorityEXT", |device| {
        let mut state = device.state.lock();
        refuse_if!(!(0.0..=1.0).contains(&priority) => "VUID-vkSetDeviceMemoryPriorityEXT-priority-06258",
            "priority is {priority}, which is not between 0 and 1");
        let set = state.memories.get_mut(&memory).map(|found| found.info.priority = Some(priority));
        state.known(device, memory, set, "VUID-vkSetDeviceMemoryPriorityEXT-memory-parameter")
    });
}

unsafe extern "system" fn opaque_address(
    device: vk::Device,
    p_info: *const vk::DeviceMemoryOpaqueCaptureAddressInfo<'_>,
) -> u64 {
    checked(device, "vkGetDeviceMemoryOpaqueCaptureAddress", |device| {
        // SAFETY: VUID-vkGetDeviceMemoryOpaqueCaptureAddress-pInfo-parameter.
        let memory = unsafe { chain::input(p_info) }.map_or(vk::DeviceMemory::null(), |info| info.memory);
        let state = device.state.lock();
        let rule = "VUID-VkDeviceMemoryOpaqueCaptureAddressInfo-memory-parameter";
        let found = state.known(device, memory, state.memories.get(&memory), rule)?;
        let flags = vk::MemoryAllocateFlags::from_raw(found.info.flags);
        refuse_if!(!flags.contains(vk::MemoryAllocateFlags::DEVICE_ADDRESS)
            => "VUID-VkDeviceMemoryOpaqueCaptureAddressInfo-memory-03336",
            "{} was allocated without DEVICE_ADDRESS", state.name(memory));
        Ok(found.address)
    })
}
