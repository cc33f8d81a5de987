//! Mapping, flushing and invalidating.
#![expect(unsafe_code, reason = "the functions have the C ABI")]

use std::ffi::c_void;

use ash::vk;
use ash::vk::Handle as _;

use crate::facts::broken::{Broken, refuse_if};
use crate::facts::chain;
use crate::objects::entry::{checked, entries};
use crate::objects::memory::MemoryObject;
use crate::objects::state::{DeviceObject, DeviceState};

entries! {
    Device result vk::PFN_vkMapMemory = map: core 0 "vkMapMemory";
    Device void vk::PFN_vkUnmapMemory = unmap: core 0 "vkUnmapMemory";
    Device result vk::PFN_vkMapMemory2KHR = map2:
        ext "VK_KHR_map_memory2" "vkMapMemory2KHR", core 4 "vkMapMemory2";
    Device result vk::PFN_vkUnmapMemory2KHR = unmap2:
        ext "VK_KHR_map_memory2" "vkUnmapMemory2KHR", core 4 "vkUnmapMemory2";
    Device result vk::PFN_vkFlushMappedMemoryRanges = flush: core 0 "vkFlushMappedMemoryRanges";
    Device result vk::PFN_vkInvalidateMappedMemoryRanges = invalidate: core 0 "vkInvalidateMappedMemoryRanges";
}

unsafe extern "system" fn map(
    device: vk::Device,
    memory: vk::DeviceMemory,
    offset: vk::DeviceSize,
    size: vk::DeviceSize,
    _: vk::MemoryMapFlags,
    pp_data: *mut *mut c_void,
) -> vk::Result {
    checked(device, "vkMapMemory", |device| {
        // SAFETY: VUID-vkMapMemory-ppData-parameter.
        unsafe { map_memory(device, memory, offset, size, &MAP, pp_data) }
    })
}

unsafe extern "system" fn map2(
    device: vk::Device,
    p_info: *const vk::MemoryMapInfoKHR<'_>,
    pp_data: *mut *mut c_void,
) -> vk::Result {
    checked(device, "vkMapMemory2KHR", |device| {
        // SAFETY: VUID-vkMapMemory2-pMemoryMapInfo-parameter.
        let info = unsafe { chain::given(p_info, "VUID-vkMapMemory2-pMemoryMapInfo-parameter") }?;
        // SAFETY: VUID-vkMapMemory2-ppData-parameter.
        unsafe { map_memory(device, info.memory, info.offset, info.size, &MAP2, pp_data) }
    })
}

/// The identifiers of the rules of one of the two mapping functions.
struct MapRules {
    handle: &'static str,
    mapped: &'static str,
    offset: &'static str,
    zero: &'static str,
    size: &'static str,
    visible: &'static str,
}

const MAP: MapRules = MapRules {
    handle: "VUID-vkMapMemory-memory-parameter",
    mapped: "VUID-vkMapMemory-memory-00678",
    offset: "VUID-vkMapMemory-offset-00679",
    zero: "VUID-vkMapMemory-size-00680",
    size: "VUID-vkMapMemory-size-00681",
    visible: "VUID-vkMapMemory-memory-00682",
};

const MAP2: MapRules = MapRules {
    handle: "VUID-VkMemoryMapInfo-memory-parameter",
    mapped: "VUID-VkMemoryMapInfo-memory-07958",
    offset: "VUID-VkMemoryMapInfo-offset-07959",
    zero: "VUID-VkMemoryMapInfo-size-07960",
    size: "VUID-VkMemoryMapInfo-size-07961",
    visible: "VUID-VkMemoryMapInfo-memory-07962",
};

/// Maps a range, and writes where it is; NULL if it cannot be mapped.
///
/// # Safety
///
/// `pp_data` is NULL, or valid for a write.
unsafe fn map_memory(
    device: &DeviceObject,
    handle: vk::DeviceMemory,
    offset: u64,
    size: u64,
    rules: &MapRules,
    pp_data: *mut *mut c_void,
) -> Result<vk::Result, Broken> {
    // SAFETY: the promise of `map_memory`.
    unsafe { chain::output(pp_data, std::ptr::null_mut()) };
    let mut state = device.state.lock();
    let name = state.label(handle);
    let memory = state.known(device, handle, state.memories.get(&handle), rules.handle)?;
    let whole = memory.info.size;
    refuse_if!(memory.mapped.is_some() => rules.mapped, "{name} is mapped already");
    refuse_if!(!memory.properties.contains(vk::MemoryPropertyFlags::HOST_VISIBLE) => rules.visible,
        "memory type {} of {name} is not HOST_VISIBLE", memory.info.type_index);
    refuse_if!(offset >= whole => rules.offset, "offset is {offset}, and {name} has {whole} bytes");
    refuse_if!(size == 0 => rules.zero, "size is 0, for {name}");
    refuse_if!(size != vk::WHOLE_SIZE && size > whole - offset => rules.size,
        "offset is {offset} and size is {size}, and {name} has {whole} bytes");
    let end = if size == vk::WHOLE_SIZE { whole } else { offset + size };
    let Some(skip) = crate::facts::arithmetic::host_size(offset) else {
        return Ok(vk::Result::ERROR_MEMORY_MAP_FAILED);
    };
    let Some(start) = memory.store.host() else {
        return Ok(vk::Result::ERROR_OUT_OF_HOST_MEMORY);
    };
    if let Some(memory) = state.memories.get_mut(&handle) {
        memory.mapped = Some((offset, end));
    }
    // SAFETY: `skip` < `whole`, and the view has that many bytes.
    let data = unsafe { start.add(skip) };
    // SAFETY: the promise of `map_memory`.
    unsafe { chain::output(pp_data, data.as_ptr().cast()) };
    Ok(vk::Result::SUCCESS)
}

unsafe extern "system" fn unmap(device: vk::Device, memory: vk::DeviceMemory) {
    let _ = checked(device, "vkUnmapMemory", |device| {
        let rules = ["VUID-vkUnmapMemory-memory-parameter", "VUID-vkUnmapMemory-memory-00689"];
        unmap_memory(device, memory, rules)
    });
}

unsafe extern "system" fn unmap2(
    device: vk::Device,
    p_info: *const vk::MemoryUnmapInfoKHR<'_>,
) -> vk::Result {
    checked(device, "vkUnmapMemory2KHR", |device| {
        // SAFETY: VUID-vkUnmapMemory2-pMemoryUnmapInfo-parameter.
        let memory = unsafe { chain::input(p_info) }.map_or(vk::DeviceMemory::null(), |info| info.memory);
        let rules = ["VUID-VkMemoryUnmapInfo-memory-parameter", "VUID-VkMemoryUnmapInfo-memory-07964"];
        unmap_memory(device, memory, rules)
    })
}

fn unmap_memory(
    device: &DeviceObject,
    handle: vk::DeviceMemory,
    [unknown, unmapped]: [&'static str; 2],
) -> Result<vk::Result, Broken> {
    let mut state = device.state.lock();
    let name = state.label(handle);
    let mapped = state.memories.get_mut(&handle).map(|memory| memory.mapped.take());
    let mapped = state.known(device, handle, mapped, unknown)?;
    refuse_if!(mapped.is_none() => unmapped, "{name} is not mapped");
    Ok(vk::Result::SUCCESS)
}

unsafe extern "system" fn flush(
    device: vk::Device,
    count: u32,
    p_ranges: *const vk::MappedMemoryRange<'_>,
) -> vk::Result {
    checked(device, "vkFlushMappedMemoryRanges", |device| {
        // SAFETY: VUID-vkFlushMappedMemoryRanges-pMemoryRanges-parameter.
        let ranges = unsafe { chain::array(p_ranges, count) };
        exchange(device, ranges, true, "VUID-vkFlushMappedMemoryRanges-memoryRangeCount-arraylength")
    })
}

unsafe extern "system" fn invalidate(
    device: vk::Device,
    count: u32,
    p_ranges: *const vk::MappedMemoryRange<'_>,
) -> vk::Result {
    checked(device, "vkInvalidateMappedMemoryRanges", |device| {
        // SAFETY: VUID-vkInvalidateMappedMemoryRanges-pMemoryRanges-parameter.
        let ranges = unsafe { chain::array(p_ranges, count) };
        exchange(device, ranges, false, "VUID-vkInvalidateMappedMemoryRanges-memoryRangeCount-arraylength")
    })
}

/// Checks all ranges. If no rule is broken, copies between the two views of each.
fn exchange(
    device: &DeviceObject,
    ranges: &[vk::MappedMemoryRange<'_>],
    flush: bool,
    empty: &'static str,
) -> Result<vk::Result, Broken> {
    refuse_if!(ranges.is_empty() => empty, "there are no ranges");
    if device.gpu_state.log.is_on() {
        device.gpu_state.log.sync(ranges, flush);
    }
    let state = device.state.lock();
    let mut copies = Vec::with_capacity(ranges.len());
    for range in ranges {
        let memory = state.memories.get(&range.memory);
        let rule = "VUID-VkMappedMemoryRange-memory-parameter";
        let memory = state.known(device, range.memory, memory, rule)?;
        let end = check_range(device, memory, range)
            .map_err(|(rule, text)| (rule, format!("{}: {text}", state.name(range.memory))))?;
        if flush {
            report_shared_atoms(device, &state, memory, range.offset, end);
        }
        copies.push((std::sync::Arc::clone(&memory.store), range.offset, end - range.offset));
    }
    drop(state);
    for (store, offset, size) in copies {
        let done = if flush { store.flush(offset, size) } else { store.invalidate(offset, size) };
        if !done {
            return Ok(vk::Result::ERROR_OUT_OF_HOST_MEMORY);
        }
    }
    Ok(vk::Result::SUCCESS)
}

/// The end of a range, or the rule that the range breaks.
fn check_range(
    device: &DeviceObject,
    memory: &MemoryObject,
    range: &vk::MappedMemoryRange<'_>,
) -> Result<u64, Broken> {
    let atom = device.profile().limits.non_coherent_atom_size;
    let whole = memory.info.size;
    let (offset, size) = (range.offset, range.size);
    let Some((start, end)) = memory.mapped else {
        return Err(("VUID-VkMappedMemoryRange-memory-00684", "it is not mapped".to_owned()));
    };
    let range_end = if size == vk::WHOLE_SIZE {
        refuse_if!(offset < start || offset > end => "VUID-VkMappedMemoryRange-size-00686",
            "offset is {offset}, and the mapped range is {start}..{end}");
        if end % atom != 0 && end != whole {
            let text = format!(
                "size is VK_WHOLE_SIZE, and the mapping's end {end} is neither a multiple of nonCoherentAtomSize {atom} \
                 nor the end of the memory {whole}"
            );
            return Err(("VUID-VkMappedMemoryRange-size-01389", text));
        }
        end
    } else {
        let Some(range_end) = offset.checked_add(size).filter(|&it| offset >= start && it <= end) else {
            let text =
                format!("offset is {offset} and size is {size}, and the mapped range is {start}..{end}");
            return Err(("VUID-VkMappedMemoryRange-size-00685", text));
        };
        if size % atom != 0 && range_end != whole {
            let text = format!(
                "size is {size}, not a multiple of nonCoherentAtomSize {atom}, and the range's end {range_end} is not the \
                 end of the memory {whole}"
            );
            return Err(("VUID-VkMappedMemoryRange-size-01390", text));
        }
        range_end
    };
    refuse_if!(offset % atom != 0 => "VUID-VkMappedMemoryRange-offset-00687",
        "offset is {offset}, which is not a multiple of nonCoherentAtomSize {atom}");
    Ok(range_end)
}

/// Reports neighbours that share an atom within a range that the host flushes. Flushing one of them overwrites what the
/// device, or another thread, wrote to the other with stale bytes.
fn report_shared_atoms(
    device: &DeviceObject,
    state: &DeviceState,
    memory: &MemoryObject,
    offset: u64,
    end: u64,
) {
    if memory.properties.contains(vk::MemoryPropertyFlags::HOST_COHERENT) {
        return;
    }
    let atom = device.profile().limits.non_coherent_atom_size;
    let mut last: Option<(u64, u64)> = None;
    for (start, handle, binding) in memory.within(offset, end) {
        let stop = binding.used_end;
        if let Some((other, other_stop)) = last {
            // Overlapping resources are aliases or reported as such.
            if other_stop > 0 && other_stop <= start && (other_stop - 1) / atom == start / atom {
                let text = format!(
                    "{} ends at {other_stop} and {} starts at {start}: they share an atom of {atom} bytes, and it is flushed",
                    state.resource_name(other),
                    state.resource_name(handle)
                );
                device.report("SUBLET-shared-atom", text);
            }
        }
        if last.is_none_or(|(_, other_stop)| stop > other_stop) {
            last = Some((handle, stop));
        }
    }
}

impl DeviceState {
    /// The name of a buffer or image whose kind is not known.
    pub(crate) fn resource_name(&self, handle: u64) -> String {
        if self.images.contains_key(&vk::Image::from_raw(handle)) {
            self.name(vk::Image::from_raw(handle))
        } else {
            self.name(vk::Buffer::from_raw(handle))
        }
    }
}
