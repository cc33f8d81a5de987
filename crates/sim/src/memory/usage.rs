//! Buffers for descriptors: limits, and the rules of their usages.

use ash::vk::BufferUsageFlags as Usage;

use crate::facts::broken::{Broken, refuse_if};
use crate::facts::ffi;
use crate::facts::format::BufferDescription;
use crate::facts::profiles::{DescriptorBufferLimits, DescriptorHeapLimits};
use crate::objects::state::DeviceObject;

/// The device's sizes and reservations. `None` if the feature is not enabled.
pub(crate) fn heap_limits(device: &DeviceObject) -> Option<DescriptorHeapLimits> {
    device.gpu_state.descriptor_heap.filter(|_| device.features.descriptor_heap)
}

pub(crate) fn no_heaps(rule: &'static str) -> Broken {
    (rule, "the feature descriptorHeap is not enabled".to_owned())
}

/// Checks whether a buffer may be created that is, or is not, for heaps.
pub(crate) fn check_heap_usage(device: &DeviceObject, buffer: &BufferDescription) -> Result<(), Broken> {
    if buffer.usage.contains(ffi::BUFFER_USAGE_DESCRIPTOR_HEAP) && heap_limits(device).is_none() {
        // Vulkan has no rule for a usage that the device does not know.
        return Err(no_heaps("VUID-VkBufferCreateInfo-usage-parameter"));
    }
    Ok(())
}

/// The sizes of the device's descriptors. A program does not ask a device without descriptor buffers, so any will do.
pub(crate) fn buffer_limits(device: &DeviceObject) -> DescriptorBufferLimits {
    device.profile().limits.descriptor_buffer.unwrap_or_default()
}

pub(crate) fn no_descriptor_buffers(rule: &'static str) -> Broken {
    (rule, "the feature descriptorBuffer is not enabled".to_owned())
}

/// Checks whether a buffer may be created that is, or is not, for descriptors.
pub(crate) fn check_buffer_usage(device: &DeviceObject, buffer: &BufferDescription) -> Result<(), Broken> {
    let limits = buffer_limits(device);
    let (size, usage) = (buffer.size, buffer.usage);
    if usage.contains(Usage::PUSH_DESCRIPTORS_DESCRIPTOR_BUFFER_EXT) {
        refuse_if!(!device.features.descriptor_buffer_push_descriptors => "VUID-VkBufferCreateInfo-usage-08101",
            "the feature descriptorBufferPushDescriptors is not enabled");
        refuse_if!(limits.bufferless_push => "VUID-VkBufferCreateInfo-usage-08102",
            "a buffer for push descriptors, and bufferlessPushDescriptors is true");
        refuse_if!(!usage.intersects(Usage::RESOURCE_DESCRIPTOR_BUFFER_EXT | Usage::SAMPLER_DESCRIPTOR_BUFFER_EXT)
            => "VUID-VkBufferCreateInfo-usage-08103",
            "a buffer for push descriptors, and neither for resources nor for samplers");
    }
    let rules = [
        (Usage::RESOURCE_DESCRIPTOR_BUFFER_EXT, "VUID-VkBufferCreateInfo-usage-08098"),
        (Usage::SAMPLER_DESCRIPTOR_BUFFER_EXT, "VUID-VkBufferCreateInfo-usage-08097"),
    ];
    for (kind, rule) in rules.into_iter().filter(|(kind, _)| usage.contains(*kind)) {
        if !device.features.descriptor_buffer {
            // Vulkan has no rule for a usage that the device does not know.
            return Err(no_descriptor_buffers("VUID-VkBufferCreateInfo-usage-parameter"));
        }
        let state = device.state.lock();
        let same = state.buffers.values().filter(|buffer| buffer.description.usage.contains(kind));
        let taken = same.fold(0_u64, |sum, buffer| sum.saturating_add(buffer.description.size));
        refuse_if!(taken.saturating_add(size) > limits.address_space => rule,
            "{size} bytes with the usage {kind:?}, {taken} that are there, and the address space has {}",
            limits.address_space);
    }
    Ok(())
}
