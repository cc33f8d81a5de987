//! Heaps and push data in command buffers: recording, and its valid usage.
#![expect(unsafe_code, reason = "the functions have the C ABI")]

use ash::vk;

use crate::commands::record;
use crate::facts::arithmetic::{is_aligned, widen};
use crate::facts::broken::{Broken, refuse_if};
use crate::facts::chain;
use crate::facts::ffi;
use crate::memory::usage::heap_limits;
use crate::memory::usage::no_heaps;
use crate::objects::commands::RecordedCommand;
use crate::objects::heaps::HeapBinding;
use crate::objects::state::{DeviceObject, DeviceState};

/// The rules of the two commands, in the same order.
struct BindHeapRules {
    inherited: &'static str,
    parameter: &'static str,
    reserved_end: &'static str,
    reserved_size: &'static str,
    size: &'static str,
    alignment: &'static str,
    /// Of the reserved offset: for buffers, or for samplers; and for images.
    reserved_alignment: [&'static str; 2],
    other: &'static str,
    usage: &'static str,
}

const SAMPLERS: BindHeapRules = BindHeapRules {
    inherited: "VUID-vkCmdBindSamplerHeapEXT-commandBuffer-11231",
    parameter: "VUID-vkCmdBindSamplerHeapEXT-pBindInfo-parameter",
    reserved_end: "VUID-vkCmdBindSamplerHeapEXT-pBindInfo-11223",
    reserved_size: "VUID-vkCmdBindSamplerHeapEXT-pBindInfo-11224",
    size: "VUID-vkCmdBindSamplerHeapEXT-pBindInfo-11225",
    alignment: "VUID-vkCmdBindSamplerHeapEXT-pBindInfo-11226",
    reserved_alignment: ["VUID-vkCmdBindSamplerHeapEXT-pBindInfo-11434"; 2],
    other: "VUID-vkCmdBindSamplerHeapEXT-pBindInfo-11228",
    usage: "VUID-vkCmdBindSamplerHeapEXT-heapRange-11230",
};

const RESOURCES: BindHeapRules = BindHeapRules {
    inherited: "VUID-vkCmdBindResourceHeapEXT-commandBuffer-11238",
    parameter: "VUID-vkCmdBindResourceHeapEXT-pBindInfo-parameter",
    reserved_end: "VUID-vkCmdBindResourceHeapEXT-pBindInfo-11232",
    reserved_size: "VUID-vkCmdBindResourceHeapEXT-pBindInfo-11233",
    size: "VUID-vkCmdBindResourceHeapEXT-pBindInfo-11234",
    alignment: "VUID-vkCmdBindResourceHeapEXT-pBindInfo-11235",
    reserved_alignment: [
        "VUID-vkCmdBindResourceHeapEXT-pBindInfo-11435",
        "VUID-vkCmdBindResourceHeapEXT-pBindInfo-11436",
    ],
    other: "VUID-vkCmdBindResourceHeapEXT-pBindInfo-11236",
    usage: "VUID-vkCmdBindResourceHeapEXT-heapRange-11237",
};

pub(crate) unsafe extern "system" fn samplers(
    command_buffer: vk::CommandBuffer,
    p_info: *const ffi::BindHeapInfoEXT,
) {
    record(command_buffer, "vkCmdBindSamplerHeapEXT", |device, state| {
        // SAFETY: VUID-vkCmdBindSamplerHeapEXT-pBindInfo-parameter.
        let info = unsafe { chain::input(p_info) };
        bind(device, state, command_buffer, info, true)
    });
}

pub(crate) unsafe extern "system" fn resources(
    command_buffer: vk::CommandBuffer,
    p_info: *const ffi::BindHeapInfoEXT,
) {
    record(command_buffer, "vkCmdBindResourceHeapEXT", |device, state| {
        // SAFETY: VUID-vkCmdBindResourceHeapEXT-pBindInfo-parameter.
        let info = unsafe { chain::input(p_info) };
        bind(device, state, command_buffer, info, false)
    });
}

/// The heaps of resources and of samplers that a secondary command buffer inherits.
///
/// # Safety
///
/// The chain of the info is valid, with what it points to.
pub(crate) unsafe fn inherited(
    device: &DeviceObject,
    state: &DeviceState,
    command_buffer: vk::CommandBuffer,
    info: &vk::CommandBufferInheritanceInfo<'_>,
) -> Result<[Option<HeapBinding>; 2], Broken> {
    // SAFETY: the promise of `inherited`.
    let heaps = unsafe { chain::find::<ffi::CommandBufferInheritanceDescriptorHeapInfoEXT>(info.p_next) };
    let Some(heaps) = heaps else { return Ok([None; 2]) };
    let binding = |info, sampler| match info {
        None => Ok(None),
        Some(info) => binding(device, state, command_buffer, info, sampler).map(Some),
    };
    // SAFETY: the promise of `inherited`: NULL, or a valid structure; here and below.
    let resources = unsafe { chain::input(heaps.p_resource_heap_bind_info) };
    // SAFETY: as above.
    let samplers = unsafe { chain::input(heaps.p_sampler_heap_bind_info) };
    Ok([binding(resources, false)?, binding(samplers, true)?])
}

/// Checks that a secondary command buffer inherits what is bound in the one that executes it.
pub(crate) fn check_inherited(
    bound: &[Option<HeapBinding>; 2],
    inherited: &[Option<HeapBinding>; 2],
) -> Result<(), Broken> {
    const OTHER: [&str; 2] =
        ["VUID-vkCmdExecuteCommands-commandBuffer-11352", "VUID-vkCmdExecuteCommands-commandBuffer-11351"];
    const NONE: [&str; 2] =
        ["VUID-vkCmdExecuteCommands-commandBuffer-11474", "VUID-vkCmdExecuteCommands-commandBuffer-11473"];
    for (at, (bound, inherited)) in bound.iter().zip(inherited).enumerate() {
        let Some(inherited) = inherited else { continue };
        let address = inherited.address;
        refuse_if!(bound.is_none() => NONE[at],
            "a secondary command buffer inherits the heap at {address:#x}, and none is bound");
        refuse_if!(*bound != Some(*inherited) => OTHER[at],
            "a secondary command buffer inherits the heap at {address:#x}, and another is bound");
    }
    Ok(())
}

/// The command, if the heap may be bound.
fn bind(
    device: &DeviceObject,
    state: &DeviceState,
    command_buffer: vk::CommandBuffer,
    info: Option<&ffi::BindHeapInfoEXT>,
    sampler: bool,
) -> Result<Vec<RecordedCommand>, Broken> {
    let rules = if sampler { &SAMPLERS } else { &RESOURCES };
    let inherits = state.commands.buffers.get(&command_buffer).map(|buffer| buffer.uses.inherited);
    refuse_if!(inherits.is_some_and(|heaps| heaps[usize::from(sampler)].is_some()) => rules.inherited,
        "{} inherits a heap, and binds one", state.name(command_buffer));
    let Some(info) = info else { return Err((rules.parameter, "pBindInfo is NULL".to_owned())) };
    Ok(vec![RecordedCommand::BindHeap(binding(device, state, command_buffer, info, sampler)?)])
}

/// The heap, if it may be bound.
fn binding(
    device: &DeviceObject,
    state: &DeviceState,
    command_buffer: vk::CommandBuffer,
    info: &ffi::BindHeapInfoEXT,
    sampler: bool,
) -> Result<HeapBinding, Broken> {
    let rules = if sampler { &SAMPLERS } else { &RESOURCES };
    let Some(limits) = heap_limits(device) else {
        // Vulkan has no rule for it: without the feature, no buffer could be bound.
        return Err(no_heaps(rules.usage));
    };
    let (address, size) = (info.heap_range.address, info.heap_range.size);
    let (start, bytes) = (info.reserved_range_offset, info.reserved_range_size);
    let (least, most, alignment, aligned) = if sampler {
        let aligned = [limits.sampler_alignment; 2];
        (limits.sampler_reserved, limits.max_sampler_heap, limits.sampler_heap_alignment, aligned)
    } else {
        let aligned = [limits.buffer_alignment, limits.image_alignment];
        (limits.resource_reserved, limits.max_resource_heap, limits.resource_heap_alignment, aligned)
    };
    let end = start.saturating_add(bytes);
    refuse_if!(end > size => rules.reserved_end,
        "the reserved range ends at {end}, and the heap has {size} bytes");
    refuse_if!(bytes < least => rules.reserved_size,
        "{bytes} bytes are reserved, and the device wants {least}");
    refuse_if!(size > most => rules.size, "the heap has {size} bytes, and the most is {most}");
    refuse_if!(!is_aligned(address, alignment) => rules.alignment,
        "the address {address:#x} is no multiple of {alignment}");
    for (alignment, rule) in aligned.into_iter().zip(rules.reserved_alignment) {
        refuse_if!(!is_aligned(start, alignment) => rule,
            "the reserved offset {start} is no multiple of {alignment}");
    }
    let usage = ffi::BUFFER_USAGE_DESCRIPTOR_HEAP;
    let found = state.locate(address, usage).filter(|found| found.left >= size);
    let found = found.filter(|found| {
        state.buffers.get(&found.buffer).is_some_and(|buffer| buffer.description.usage.contains(usage))
    });
    let Some(found) = found else {
        let text = format!("no buffer with DESCRIPTOR_HEAP has the {size} bytes from {address:#x} on");
        return Err((rules.usage, text));
    };
    let heap = HeapBinding { sampler, buffer: found.buffer, address, size, reserved: (start, end) };
    let (from, to) = heap.reserved_addresses();
    for (&other, buffer) in state.commands.buffers.iter() {
        let clash = buffer.uses.heaps.iter().find(|bound| {
            let (start, end) = bound.reserved_addresses();
            from < end && start < to && ((from, to) != (start, end) || bound.sampler != sampler)
        });
        if let Some(bound) = clash.filter(|_| other != command_buffer) {
            let text = format!(
                "the reserved range from {from:#x} to {to:#x} overlaps that of {}, from {:#x} on",
                state.name(other),
                bound.reserved_addresses().0
            );
            return Err((rules.other, text));
        }
    }
    Ok(heap)
}

pub(crate) unsafe extern "system" fn push_data(
    command_buffer: vk::CommandBuffer,
    p_info: *const ffi::PushDataInfoEXT,
) {
    record(command_buffer, "vkCmdPushDataEXT", |device, _| {
        // SAFETY: VUID-vkCmdPushDataEXT-pPushDataInfo-parameter.
        let info = unsafe { chain::given(p_info, "VUID-vkCmdPushDataEXT-pPushDataInfo-parameter") }?;
        let size = widen(info.data.size);
        check_push(device, info.offset, size)?;
        let count = u32::try_from(size).unwrap_or(0);
        // SAFETY: VUID-VkPushDataInfoEXT-data-parameter.
        let bytes = unsafe { chain::array(info.data.address.cast::<u8>(), count) };
        Ok(vec![RecordedCommand::PushData { offset: info.offset, bytes: bytes.to_vec() }])
    });
}

fn check_push(device: &DeviceObject, offset: u32, size: u64) -> Result<(), Broken> {
    let Some(limits) = heap_limits(device) else {
        return Err(no_heaps("VUID-VkPushDataInfoEXT-offset-11243"));
    };
    let text = format!("{size} bytes from {offset} on, and maxPushDataSize is {}", limits.max_push_data);
    refuse_if!(u64::from(offset).saturating_add(size) > limits.max_push_data
        => "VUID-VkPushDataInfoEXT-offset-11243", "{text}");
    refuse_if!(offset % 4 != 0 => "VUID-VkPushDataInfoEXT-offset-11418", "{text}");
    refuse_if!(size % 4 != 0 => "VUID-VkPushDataInfoEXT-data-11419", "{text}");
    Ok(())
}
