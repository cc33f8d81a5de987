//! `VK_EXT_descriptor_heap`: one heap of resources and one of samplers, of bytes that the program places itself.
//!
//! - [`ffi`]: the structures, which `ash` does not have yet.
//! - [`mod@write`]: the bytes of descriptors. [`bind`]: heaps and push data in command buffers.
//! - [`mapping`]: where shaders with sets and bindings find their descriptors. [`find`]: what is there.

mod bind;
pub(super) use sublet_vk::descriptor_heap as ffi;
mod find;
mod mapping;
#[cfg(test)]
mod tests;
mod write;

use ash::vk;

use super::describe::Broken;
use super::entry::{call, entries, on_physical_device};
use super::format::BufferDescription;
use super::profiles::DescriptorHeapLimits;
use super::state::{Device, Hub};

pub(super) use bind::HeapBinding;
pub(super) use find::{Asked, HeapView, Seen, at_offset, mapped};
pub(super) use mapping::{Mapping, read as read_mappings};
pub(super) use write::{HeapImage, SamplerState};

entries! {
    Instance void ffi::PFN_vkGetPhysicalDeviceDescriptorSizeEXT = size:
        ext "VK_EXT_descriptor_heap" "vkGetPhysicalDeviceDescriptorSizeEXT";
    Device result ffi::PFN_vkWriteSamplerDescriptorsEXT = write::samplers:
        ext "VK_EXT_descriptor_heap" "vkWriteSamplerDescriptorsEXT";
    Device result ffi::PFN_vkWriteResourceDescriptorsEXT = write::resources:
        ext "VK_EXT_descriptor_heap" "vkWriteResourceDescriptorsEXT";
    Device void ffi::PFN_vkCmdBindHeapEXT = bind::samplers:
        ext "VK_EXT_descriptor_heap" "vkCmdBindSamplerHeapEXT";
    Device void ffi::PFN_vkCmdBindHeapEXT = bind::resources:
        ext "VK_EXT_descriptor_heap" "vkCmdBindResourceHeapEXT";
    Device void ffi::PFN_vkCmdPushDataEXT = bind::push_data: ext "VK_EXT_descriptor_heap" "vkCmdPushDataEXT";
}

/// The device's sizes and reservations. `None` if the feature is not enabled.
pub(super) fn limits(device: &Device) -> Option<DescriptorHeapLimits> {
    device.hub.descriptor_heap.filter(|_| device.features.descriptor_heap)
}

fn not_enabled(rule: &'static str) -> Broken {
    (rule, "the feature descriptorHeap is not enabled".to_owned())
}

/// Whether a buffer may be created that is, or is not, for heaps.
pub(super) fn check_usage(device: &Device, buffer: &BufferDescription) -> Result<(), Broken> {
    if buffer.usage.contains(ffi::BUFFER_USAGE_DESCRIPTOR_HEAP) && limits(device).is_none() {
        // Vulkan has no rule for a usage that the device does not know.
        return Err(not_enabled("VUID-VkBufferCreateInfo-usage-parameter"));
    }
    Ok(())
}

/// Fills the structure of the properties. Leaves it as it is if the GPU has no heaps.
pub(super) fn write_properties(hub: &Hub, out: &mut ffi::PhysicalDeviceDescriptorHeapPropertiesEXT) {
    let Some(limits) = hub.descriptor_heap else { return };
    out.sampler_heap_alignment = limits.sampler_heap_alignment;
    out.resource_heap_alignment = limits.resource_heap_alignment;
    out.max_sampler_heap_size = limits.max_sampler_heap;
    out.max_resource_heap_size = limits.max_resource_heap;
    out.min_sampler_heap_reserved_range = limits.sampler_reserved;
    out.min_sampler_heap_reserved_range_with_embedded = limits.sampler_reserved_with_embedded;
    out.min_resource_heap_reserved_range = limits.resource_reserved;
    out.sampler_descriptor_size = limits.sampler;
    out.image_descriptor_size = limits.image;
    out.buffer_descriptor_size = limits.buffer;
    out.sampler_descriptor_alignment = limits.sampler_alignment;
    out.image_descriptor_alignment = limits.image_alignment;
    out.buffer_descriptor_alignment = limits.buffer_alignment;
    out.max_push_data_size = limits.max_push_data;
    out.image_capture_replay_opaque_data_size = 0;
    out.max_descriptor_heap_embedded_samplers = limits.max_embedded_samplers;
    out.sampler_ycbcr_conversion_count = 1;
    out.sparse_descriptor_heaps = vk::FALSE;
    out.protected_descriptor_heaps = vk::FALSE;
}

unsafe extern "system" fn size(device: vk::PhysicalDevice, kind: vk::DescriptorType) -> vk::DeviceSize {
    on_physical_device(device, call!("vkGetPhysicalDeviceDescriptorSizeEXT"), |instance| {
        let size = instance.hub.descriptor_heap.and_then(|limits| limits.size(kind));
        size.unwrap_or_else(|| {
            let text = format!("type is {kind:?}");
            instance.hub.report("VUID-vkGetPhysicalDeviceDescriptorSizeEXT-type-11362", text);
            0
        })
    })
}
