//! Descriptor buffers and the offsets of sets, in command buffers: recording, and its valid usage.
#![expect(unsafe_code, reason = "the functions have the C ABI")]

use std::sync::Arc;

use ash::vk;
use ash::vk::BufferUsageFlags as Usage;

use crate::commands::record;
use crate::facts::arithmetic::{index, is_aligned, widen};
use crate::facts::broken::{Broken, refuse_if};
use crate::facts::chain;
use crate::memory::usage::buffer_limits;
use crate::memory::usage::no_descriptor_buffers;
use crate::objects::commands::RecordedCommand;
use crate::objects::descriptors::PipelineLayoutDescription;
use crate::objects::state::{DeviceObject, DeviceState};
use crate::pipelines::descriptor_buffer::layout::SetPlaces;

/// A descriptor buffer that a program wants to bind.
struct DescriptorBufferBinding {
    address: u64,
    usage: Usage,
    /// True if it names the buffer of push descriptors.
    push_handle: bool,
}

/// The usages that say what a descriptor buffer holds.
const KINDS: [Usage; 3] = [
    Usage::RESOURCE_DESCRIPTOR_BUFFER_EXT,
    Usage::SAMPLER_DESCRIPTOR_BUFFER_EXT,
    Usage::PUSH_DESCRIPTORS_DESCRIPTOR_BUFFER_EXT,
];

pub(crate) unsafe extern "system" fn buffers(
    command_buffer: vk::CommandBuffer,
    count: u32,
    p_infos: *const vk::DescriptorBufferBindingInfoEXT<'_>,
) {
    // SAFETY: VUID-vkCmdBindDescriptorBuffersEXT-pBindingInfos-parameter.
    let infos = unsafe { chain::array(p_infos, count) };
    let bindings: Vec<_> = infos
        .iter()
        .map(|info| {
            // SAFETY: VUID-VkDescriptorBufferBindingInfoEXT-pNext-pNext.
            let push = unsafe {
                chain::find::<vk::DescriptorBufferBindingPushDescriptorBufferHandleEXT<'_>>(info.p_next)
            };
            DescriptorBufferBinding { address: info.address, usage: info.usage, push_handle: push.is_some() }
        })
        .collect();
    record(command_buffer, "vkCmdBindDescriptorBuffersEXT", |device, state| {
        let buffers = check_buffers(device, state, &bindings)?;
        Ok(vec![RecordedCommand::BindDescriptorBuffers { buffers }])
    });
}

/// The buffers at the addresses, if they may be bound.
fn check_buffers(
    device: &DeviceObject,
    state: &DeviceState,
    bindings: &[DescriptorBufferBinding],
) -> Result<Vec<(vk::Buffer, u64)>, Broken> {
    if !device.features.descriptor_buffer {
        return Err(no_descriptor_buffers("VUID-vkCmdBindDescriptorBuffersEXT-None-08047"));
    }
    let limits = buffer_limits(device);
    let count = widen(bindings.len());
    refuse_if!(bindings.is_empty() => "VUID-vkCmdBindDescriptorBuffersEXT-bufferCount-arraylength",
        "bufferCount is 0");
    refuse_if!(count > u64::from(limits.max_bindings)
        => "VUID-vkCmdBindDescriptorBuffersEXT-bufferCount-08051",
        "{count} buffers, and maxDescriptorBufferBindings is {}", limits.max_bindings);
    let most = [
        (
            limits.max_resource_bindings,
            "VUID-vkCmdBindDescriptorBuffersEXT-maxResourceDescriptorBufferBindings-08049",
        ),
        (
            limits.max_sampler_bindings,
            "VUID-vkCmdBindDescriptorBuffersEXT-maxSamplerDescriptorBufferBindings-08048",
        ),
        (1, "VUID-vkCmdBindDescriptorBuffersEXT-None-08050"),
    ];
    for (kind, (most, rule)) in KINDS.into_iter().zip(most) {
        let count = bindings.iter().filter(|binding| binding.usage.contains(kind)).count();
        refuse_if!(widen(count) > u64::from(most) => rule,
            "{count} buffers have the usage {kind:?}, and the most is {most}");
    }
    bindings.iter().map(|binding| check_buffer(device, state, binding)).collect()
}

fn check_buffer(
    device: &DeviceObject,
    state: &DeviceState,
    binding: &DescriptorBufferBinding,
) -> Result<(vk::Buffer, u64), Broken> {
    let limits = buffer_limits(device);
    let address = binding.address;
    let all = KINDS.into_iter().fold(Usage::empty(), |all, kind| all | kind);
    let wanted = binding.usage & all;
    refuse_if!(wanted.is_empty() => "VUID-VkDescriptorBufferBindingInfoEXT-usage-10998",
        "the usage {:?} is none of a descriptor buffer", binding.usage);
    refuse_if!(!is_aligned(address, limits.offset_alignment)
        => "VUID-VkDescriptorBufferBindingInfoEXT-address-08057",
        "{address:#x} is no multiple of descriptorBufferOffsetAlignment, {}", limits.offset_alignment);
    let rules = [
        "VUID-VkDescriptorBufferBindingInfoEXT-usage-08123",
        "VUID-VkDescriptorBufferBindingInfoEXT-usage-08122",
        "VUID-VkDescriptorBufferBindingInfoEXT-usage-08124",
    ];
    let found = state.locate(address, wanted);
    let name = found.as_ref().map(|found| state.name(found.buffer));
    let usage = found.as_ref().and_then(|found| Some(state.buffers.get(&found.buffer)?.description.usage));
    let usage = usage.unwrap_or_default();
    for (kind, rule) in KINDS.into_iter().zip(rules) {
        if wanted.contains(kind) && !usage.contains(kind) {
            let text = match &name {
                Some(name) => format!("{name}, at {address:#x}, was created without {kind:?}"),
                None => format!("no buffer with SHADER_DEVICE_ADDRESS lies at the address {address:#x}"),
            };
            return Err((rule, text));
        }
    }
    let (Some(found), Some(name)) = (found, name) else {
        let text = format!("no buffer with SHADER_DEVICE_ADDRESS lies at the address {address:#x}");
        return Err(("VUID-VkDescriptorBufferBindingInfoEXT-usage-08123", text));
    };
    refuse_if!(usage & all != wanted => "VUID-vkCmdBindDescriptorBuffersEXT-pBindingInfos-08055",
        "usage is {wanted:?}, and {name} was created with {:?}", usage & all);
    let push = wanted.contains(Usage::PUSH_DESCRIPTORS_DESCRIPTOR_BUFFER_EXT);
    refuse_if!(push && !limits.bufferless_push && !binding.push_handle
        => "VUID-VkDescriptorBufferBindingInfoEXT-bufferlessPushDescriptors-08056",
        "{name} is for push descriptors, and its handle is not in the chain");
    Ok((found.buffer, address))
}

pub(crate) unsafe extern "system" fn offsets(
    command_buffer: vk::CommandBuffer,
    point: vk::PipelineBindPoint,
    layout: vk::PipelineLayout,
    first: u32,
    count: u32,
    p_buffers: *const u32,
    p_offsets: *const vk::DeviceSize,
) {
    // SAFETY: VUID-vkCmdSetDescriptorBufferOffsetsEXT-pBufferIndices-parameter.
    let buffers = unsafe { chain::array(p_buffers, count) };
    // SAFETY: VUID-vkCmdSetDescriptorBufferOffsetsEXT-pOffsets-parameter.
    let offsets = unsafe { chain::array(p_offsets, count) };
    record(command_buffer, "vkCmdSetDescriptorBufferOffsetsEXT", |device, state| {
        let sets: Vec<_> = buffers.iter().copied().zip(offsets.iter().copied()).collect();
        let bound = state.commands.buffers.get(&command_buffer).map(|buffer| &buffer.uses.descriptor_buffers);
        let bound = bound.map_or(&[][..], Vec::as_slice);
        let layout = check_offsets(device, state, bound, layout, first, &sets)?;
        Ok(vec![RecordedCommand::SetOffsets { point, layout, first, sets }])
    });
}

/// The layout, if sets may lie at these places: each is one of the descriptor buffers that are `bound`, and an offset.
fn check_offsets(
    device: &DeviceObject,
    state: &DeviceState,
    bound: &[u64],
    layout: vk::PipelineLayout,
    first: u32,
    sets: &[(u32, u64)],
) -> Result<Arc<PipelineLayoutDescription>, Broken> {
    if !device.features.descriptor_buffer {
        return Err(no_descriptor_buffers("VUID-vkCmdSetDescriptorBufferOffsetsEXT-None-08060"));
    }
    let Some(layout) = state.descriptors.pipeline_layout(layout) else {
        let text = state.missing(device, layout);
        return Err(("VUID-vkCmdSetDescriptorBufferOffsetsEXT-layout-parameter", text));
    };
    refuse_if!(sets.is_empty() => "VUID-vkCmdSetDescriptorBufferOffsetsEXT-setCount-arraylength",
        "setCount is 0");
    refuse_if!(index(first).saturating_add(sets.len()) > layout.sets.len()
        => "VUID-vkCmdSetDescriptorBufferOffsetsEXT-firstSet-08066",
        "{} sets from {first} on, and the layout has {}", sets.len(), layout.sets.len());
    let limits = buffer_limits(device);
    for (number, &(buffer, offset)) in (first..).zip(sets) {
        let broken = |rule, text: String| Err((rule, format!("set {number}: {text}")));
        let flag = vk::DescriptorSetLayoutCreateFlags::DESCRIPTOR_BUFFER_EXT;
        let Some(set) = layout.set(number).filter(|set| set.has(flag)) else {
            let text = "its layout was created without DESCRIPTOR_BUFFER".to_owned();
            return broken("VUID-vkCmdSetDescriptorBufferOffsetsEXT-firstSet-09006", text);
        };
        if buffer >= limits.max_bindings {
            let text = format!("buffer {buffer}, and maxDescriptorBufferBindings is {}", limits.max_bindings);
            return broken("VUID-vkCmdSetDescriptorBufferOffsetsEXT-pBufferIndices-08064", text);
        }
        let Some(&address) = bound.get(index(buffer)) else {
            let text = format!("buffer {buffer}, and {} are bound", bound.len());
            return broken("VUID-vkCmdSetDescriptorBufferOffsetsEXT-pBufferIndices-08065", text);
        };
        if !is_aligned(offset, limits.offset_alignment) {
            let text = format!(
                "the offset {offset} is no multiple of descriptorBufferOffsetAlignment, {}",
                limits.offset_alignment
            );
            return broken("VUID-vkCmdSetDescriptorBufferOffsetsEXT-pOffsets-08061", text);
        }
        let size = SetPlaces::of(&limits, set).fixed_size;
        let end = offset.saturating_add(size);
        // A buffer that is destroyed is noticed when the commands are submitted.
        let left = state.locate(address, Usage::empty()).map_or(u64::MAX, |found| found.left);
        if end > left {
            let text =
                format!("{size} bytes from {offset} on, and the buffer has {left} from its address on");
            return broken("VUID-vkCmdSetDescriptorBufferOffsetsEXT-pOffsets-08063", text);
        }
        if end > limits.max_range {
            let text =
                format!("it ends at {end}, and maxResourceDescriptorBufferRange is {}", limits.max_range);
            return broken("VUID-vkCmdSetDescriptorBufferOffsetsEXT-pOffsets-08127", text);
        }
    }
    Ok(Arc::clone(layout))
}
