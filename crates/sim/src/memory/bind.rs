//! How the driver checks a bind: the offset, the size, the memory type, and the granularity between neighbours.
#![expect(unsafe_code, reason = "the functions have the C ABI")]

use std::sync::Arc;
use std::sync::atomic::Ordering;

use ash::vk;
use ash::vk::Handle as _;

use crate::facts::broken::{Broken, refuse_if, rule};
use crate::facts::chain;
use crate::facts::format::Requirements;
use crate::objects::entry::{checked, entries, on_device, report_broken};
use crate::objects::memory::{BoundResource, MemoryInfo, MemoryObject};
use crate::objects::resources::MemoryBinding;
use crate::objects::resources::SparseRange;
use crate::objects::state::{DeviceObject, DeviceState, Label};

entries! {
    Device result vk::PFN_vkBindBufferMemory = bind_buffer: core 0 "vkBindBufferMemory";
    Device result vk::PFN_vkBindImageMemory = bind_image: core 0 "vkBindImageMemory";
    Device result vk::PFN_vkBindBufferMemory2 = bind_buffers:
        core 1 "vkBindBufferMemory2", ext "VK_KHR_bind_memory2" "vkBindBufferMemory2KHR";
    Device result vk::PFN_vkBindImageMemory2 = bind_images:
        core 1 "vkBindImageMemory2", ext "VK_KHR_bind_memory2" "vkBindImageMemory2KHR";
}

/// How the identifiers of the rules of one way to bind end.
struct BindMemoryRules {
    /// The call or structure that they begin with.
    of: &'static str,
    resource: &'static str,
    bound: &'static str,
    offset: &'static str,
    types: &'static str,
    alignment: &'static str,
    size: &'static str,
    requires_dedicated: &'static str,
    dedicated: &'static str,
    export: &'static str,
    import: &'static str,
    /// Of an Android hardware buffer.
    import_android: &'static str,
}

const BUFFER: BindMemoryRules = BindMemoryRules {
    of: "vkBindBufferMemory",
    resource: "buffer-parameter",
    bound: "buffer-07459",
    offset: "memoryOffset-01031",
    types: "memory-01035",
    alignment: "memoryOffset-01036",
    size: "size-01037",
    requires_dedicated: "buffer-01444",
    dedicated: "memory-01508",
    export: "memory-02726",
    import: "memory-02985",
    import_android: "memory-02986",
};

const BUFFER_INFO: BindMemoryRules = BindMemoryRules { of: "VkBindBufferMemoryInfo", ..BUFFER };

const IMAGE: BindMemoryRules = BindMemoryRules {
    of: "vkBindImageMemory",
    resource: "image-parameter",
    bound: "image-07460",
    offset: "memoryOffset-01046",
    types: "memory-01047",
    alignment: "memoryOffset-01048",
    size: "size-01049",
    requires_dedicated: "image-01445",
    dedicated: "memory-02628",
    export: "memory-02728",
    import: "memory-02989",
    import_android: "memory-02990",
};

const IMAGE_INFO: BindMemoryRules = BindMemoryRules {
    of: "VkBindImageMemoryInfo",
    types: "pNext-01615",
    alignment: "pNext-01616",
    size: "pNext-01617",
    ..IMAGE
};

unsafe extern "system" fn bind_buffer(
    device: vk::Device,
    buffer: vk::Buffer,
    memory: vk::DeviceMemory,
    offset: vk::DeviceSize,
) -> vk::Result {
    checked(device, "vkBindBufferMemory", |device| {
        bind_buffer_memory(device, &mut device.state.lock(), buffer, memory, offset, &BUFFER)
    })
}

unsafe extern "system" fn bind_image(
    device: vk::Device,
    image: vk::Image,
    memory: vk::DeviceMemory,
    offset: vk::DeviceSize,
) -> vk::Result {
    checked(device, "vkBindImageMemory", |device| {
        bind_image_memory(device, &mut device.state.lock(), image, memory, offset, &IMAGE)
    })
}

unsafe extern "system" fn bind_buffers(
    device: vk::Device,
    count: u32,
    p_infos: *const vk::BindBufferMemoryInfo<'_>,
) -> vk::Result {
    on_device(device, "vkBindBufferMemory2", |device| {
        // SAFETY: VUID-vkBindBufferMemory2-pBindInfos-parameter.
        let infos = unsafe { chain::array(p_infos, count) };
        bind_all(device, infos, "VUID-vkBindBufferMemory2-bindInfoCount-arraylength", |state, info| {
            bind_buffer_memory(device, state, info.buffer, info.memory, info.memory_offset, &BUFFER_INFO)
        })
    })
}

unsafe extern "system" fn bind_images(
    device: vk::Device,
    count: u32,
    p_infos: *const vk::BindImageMemoryInfo<'_>,
) -> vk::Result {
    on_device(device, "vkBindImageMemory2", |device| {
        // SAFETY: VUID-vkBindImageMemory2-pBindInfos-parameter.
        let infos = unsafe { chain::array(p_infos, count) };
        bind_all(device, infos, "VUID-vkBindImageMemory2-bindInfoCount-arraylength", |state, info| {
            bind_image_memory(device, state, info.image, info.memory, info.memory_offset, &IMAGE_INFO)
        })
    })
}

/// Binds what can be bound; the result is that of the last bind that fails. `empty` is the rule against no infos.
fn bind_all<I>(
    device: &DeviceObject,
    infos: &[I],
    empty: &'static str,
    bind: impl Fn(&mut DeviceState, &I) -> Result<vk::Result, Broken>,
) -> vk::Result {
    if infos.is_empty() {
        return device.refuse(empty, "there is nothing to bind");
    }
    infos.iter().fold(vk::Result::SUCCESS, |before, info| {
        let result = bind(&mut device.state.lock(), info);
        match report_broken(&device.gpu_state, result) {
            vk::Result::SUCCESS => before,
            failed => failed,
        }
    })
}

fn bind_buffer_memory(
    device: &DeviceObject,
    state: &mut DeviceState,
    handle: vk::Buffer,
    memory: vk::DeviceMemory,
    offset: u64,
    rules: &BindMemoryRules,
) -> Result<vk::Result, Broken> {
    let of = rules.of;
    let name = state.label(handle);
    let buffer = state
        .buffers
        .get(&handle)
        .ok_or_else(|| (rule(of, rules.resource), state.missing(device, handle)))?;
    refuse_if!(buffer.bound.is_some() => rule(of, rules.bound), "{name} is bound to memory already");
    refuse_if!(buffer.pages.is_some() => rule(of, "buffer-01030"),
        "{name} is sparse: its pages are bound by vkQueueBindSparse");
    let (requirements, description, external) = (buffer.requirements, buffer.description, buffer.external);
    let target = check_memory(device, state, memory, offset, &name, &requirements, rules)?;
    let info = &target.info;
    check_sharing(info, external, &name, rules)?;
    refuse_if!(requirements.requires_dedicated && info.dedicated_buffer != handle => rule(of, rules.requires_dedicated),
        "{name} requires a dedicated allocation");
    let addressed =
        vk::MemoryAllocateFlags::from_raw(info.flags).contains(vk::MemoryAllocateFlags::DEVICE_ADDRESS);
    refuse_if!(device.features.buffer_device_address
        && description.usage.contains(vk::BufferUsageFlags::SHADER_DEVICE_ADDRESS)
        && !addressed
        => rule(of, "bufferDeviceAddress-03339"),
        "{name} has SHADER_DEVICE_ADDRESS, and {} was allocated without DEVICE_ADDRESS", state.name(memory));
    let replayed = vk::MemoryAllocateFlags::from_raw(info.flags)
        .contains(vk::MemoryAllocateFlags::DEVICE_ADDRESS_CAPTURE_REPLAY);
    refuse_if!(device.features.buffer_device_address_capture_replay
        && description.flags.contains(vk::BufferCreateFlags::DEVICE_ADDRESS_CAPTURE_REPLAY)
        && !replayed
        => rule(of, "bufferDeviceAddressCaptureReplay-09200"),
        "{name} has DEVICE_ADDRESS_CAPTURE_REPLAY, and {} was allocated without", state.name(memory));
    let binding = BoundResource {
        end: offset + requirements.size,
        used_end: offset + description.size,
        linear: true,
        alias: false,
    };
    let store = Arc::clone(&target.store);
    place(device, state, memory, offset, handle.as_raw(), &name, binding);
    if let Some(buffer) = state.buffers.get_mut(&handle) {
        buffer.bound = Some(MemoryBinding { memory, offset, store });
    }
    Ok(vk::Result::SUCCESS)
}

fn bind_image_memory(
    device: &DeviceObject,
    state: &mut DeviceState,
    handle: vk::Image,
    memory: vk::DeviceMemory,
    offset: u64,
    rules: &BindMemoryRules,
) -> Result<vk::Result, Broken> {
    let of = rules.of;
    let name = state.label(handle);
    let image =
        state.images.get(&handle).ok_or_else(|| (rule(of, rules.resource), state.missing(device, handle)))?;
    refuse_if!(image.bound.is_some() => rule(of, rules.bound), "{name} is bound to memory already");
    let (requirements, description, external) = (image.requirements, image.description, image.external);
    let target = check_memory(device, state, memory, offset, &name, &requirements, rules)?;
    let info = &target.info;
    check_sharing(info, external, &name, rules)?;
    refuse_if!(requirements.requires_dedicated && info.dedicated_image != handle => rule(of, rules.requires_dedicated),
        "{name} requires a dedicated allocation");
    let end = offset + requirements.size;
    let binding = BoundResource {
        end,
        used_end: end,
        linear: description.tiling == vk::ImageTiling::LINEAR,
        alias: description.flags.contains(vk::ImageCreateFlags::ALIAS),
    };
    let store = Arc::clone(&target.store);
    place(device, state, memory, offset, handle.as_raw(), &name, binding);
    if let Some(image) = state.images.get_mut(&handle) {
        image.bound = Some(MemoryBinding { memory, offset, store });
    }
    Ok(vk::Result::SUCCESS)
}

/// Memory that is shared with others holds resources that were created to be shared in the same way.
fn check_sharing(
    info: &MemoryInfo,
    external: u32,
    name: &Label,
    rules: &BindMemoryRules,
) -> Result<(), Broken> {
    let of = rules.of;
    let (export, import) = (info.export_handle_types, info.import_handle_type);
    refuse_if!(export != 0 && export & external == 0 => rule(of, rules.export),
        "the memory was allocated with export types {export:#x}, and {name} was created with {external:#x}");
    let android = vk::ExternalMemoryHandleTypeFlags::ANDROID_HARDWARE_BUFFER_ANDROID.as_raw();
    let rest = if import == android { rules.import_android } else { rules.import };
    refuse_if!(import & external != import => rule(of, rest),
        "the memory was imported from type {import:#x}, and {name} was created with {external:#x}");
    Ok(())
}

/// The memory, if it fits a resource with these requirements at this offset. Neighbours are not looked at.
fn check_memory<'a>(
    device: &DeviceObject,
    state: &'a DeviceState,
    handle: vk::DeviceMemory,
    offset: u64,
    name: &Label,
    requirements: &Requirements,
    rules: &BindMemoryRules,
) -> Result<&'a MemoryObject, Broken> {
    let of = rules.of;
    let memory_name = state.label(handle);
    let memory = state
        .memories
        .get(&handle)
        .ok_or_else(|| (rule(of, "memory-parameter"), state.missing(device, handle)))?;
    let Requirements { size, alignment, type_bits, .. } = *requirements;
    let (whole, kind) = (memory.info.size, memory.info.type_index);
    refuse_if!(offset >= whole => rule(of, rules.offset),
        "memoryOffset is {offset}, and {memory_name} has {whole} bytes");
    refuse_if!(kind >= 32 || type_bits & (1 << kind) == 0 => rule(of, rules.types),
        "memoryTypeBits of {name} is {type_bits:#b}, and {memory_name} is of type {kind}");
    let info = &memory.info;
    // The handles of a device are all different, whatever their kinds.
    let owner = info.dedicated_buffer.as_raw() | info.dedicated_image.as_raw();
    if owner != 0 && (owner != name.raw() || offset != 0) {
        let owner = state.resource_name(owner);
        let text =
            format!("{memory_name} is dedicated to {owner}, and {name} is bound to it at offset {offset}");
        return Err((rule(of, rules.dedicated), text));
    }
    refuse_if!(offset % alignment != 0 => rule(of, rules.alignment),
        "memoryOffset is {offset}, and {name} requires an alignment of {alignment}");
    refuse_if!(size > whole - offset => rule(of, rules.size),
        "{name} requires {size} bytes, and {memory_name} of {whole} bytes has {} after memoryOffset {offset}",
        whole - offset);
    Ok(memory)
}

/// Puts a resource in its place, and reports neighbours that break a rule. It binds the resource all the same, because
/// a real driver does not look.
pub(crate) fn place(
    device: &DeviceObject,
    state: &mut DeviceState,
    memory: vk::DeviceMemory,
    offset: u64,
    handle: u64,
    name: &Label,
    binding: BoundResource,
) {
    let Some(target) = state.memories.get(&memory) else {
        return;
    };
    let granularity = device.profile().limits.buffer_image_granularity.max(1);
    // The pages that the resource touches: within them must be nothing of the other kind, and within the resource
    // nothing at all.
    let first = offset - offset % granularity;
    let last = binding.end.checked_next_multiple_of(granularity).unwrap_or(u64::MAX);
    let mut overlaps = false;
    for (start, other, neighbour) in target.within(first, last) {
        let (from, to) = (start.max(offset), neighbour.end.min(binding.end));
        if from < to {
            overlaps = true;
            if !(neighbour.alias && binding.alias || device.gpu_state.may_alias(memory, from, to)) {
                let text = format!(
                    "{name} at {offset}..{} overlaps {} at {start}..{} of {}",
                    binding.end,
                    state.resource_name(other),
                    neighbour.end,
                    state.name(memory)
                );
                device.report("SUBLET-overlap", text);
            }
        } else if neighbour.linear != binding.linear {
            let (kind, other_kind) =
                if binding.linear { ("linear", "optimal") } else { ("optimal", "linear") };
            let text = format!(
                "{name} ({kind}) at {offset}..{} and {} ({other_kind}) at {start}..{} of {} share a page of \
                 bufferImageGranularity, {granularity} bytes",
                binding.end,
                state.resource_name(other),
                neighbour.end,
                state.name(memory)
            );
            device.report("SUBLET-granularity", text);
        }
    }
    if let Some(target) = state.memories.get_mut(&memory) {
        target.overlaps |= overlaps;
        target.bindings.insert((offset, handle), binding);
    }
}

impl MemoryObject {
    /// The bindings that have bytes in a range, in the order of their offsets: start, handle and the rest.
    pub(crate) fn within(&self, offset: u64, end: u64) -> Vec<(u64, u64, BoundResource)> {
        let before = self
            .bindings
            .range(..(end, 0))
            .rev()
            .map(|(&(start, handle), &binding)| (start, handle, binding));
        let mut found: Vec<_> = if self.overlaps {
            before.filter(|(_, _, binding)| binding.end > offset).collect()
        } else {
            // Nothing overlaps, and so the ends are in the order of the starts.
            before.take_while(|(_, _, binding)| binding.end > offset).collect()
        };
        found.reverse();
        found
    }
}

impl crate::objects::state::GpuState {
    /// Returns whether resources may overlap in this range.
    fn may_alias(&self, memory: vk::DeviceMemory, from: u64, to: u64) -> bool {
        self.aliasing.load(Ordering::Relaxed)
            || self.aliases.lock().iter().any(|alias| alias.0 == memory && alias.1 <= from && to <= alias.2)
    }
}

impl DeviceState {
    /// Unbinds pages, also parts of larger ranges.
    pub(crate) fn unbind_pages(&mut self, handle: vk::Buffer, offset: u64, size: u64) {
        let end = offset.saturating_add(size);
        let Some(pages) = self.buffers.get_mut(&handle).and_then(|buffer| buffer.pages.as_mut()) else {
            return;
        };
        let meets = |(start, bound): &(&u64, &SparseRange)| **start < end && offset < **start + bound.size;
        let gone: Vec<_> = pages.iter().filter(meets).map(|(&start, &bound)| (start, bound)).collect();
        let mut kept = Vec::new();
        for (start, bound) in &gone {
            pages.remove(start);
            if *start < offset {
                kept.push((*start, SparseRange { size: offset - start, ..*bound }));
            }
            if start + bound.size > end {
                let skipped = end - start;
                let rest =
                    SparseRange { size: bound.size - skipped, offset: bound.offset + skipped, ..*bound };
                kept.push((end, rest));
            }
        }
        pages.extend(kept.iter().copied());
        for (_, bound) in gone {
            if let Some(memory) = self.memories.get_mut(&bound.memory) {
                memory.bindings.remove(&(bound.offset, handle.as_raw()));
            }
        }
        for (_, bound) in kept {
            let end = bound.offset + bound.size;
            let binding = BoundResource { end, used_end: end, linear: true, alias: false };
            if let Some(memory) = self.memories.get_mut(&bound.memory) {
                memory.bindings.insert((bound.offset, handle.as_raw()), binding);
            }
        }
    }
}
