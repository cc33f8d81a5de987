//! `VK_EXT_descriptor_heap`: one heap of resources and one of samplers, of bytes that the program places itself.
//!
//! - [`mod@write`]: the bytes of descriptors. `commands::heaps` binds heaps, and pushes data.
//! - [`mapping`]: the heap mappings of shaders with sets and bindings. [`find`]: the descriptors behind them.

pub(crate) mod find;
pub(crate) mod mapping;
#[cfg(test)]
mod tests;
pub(crate) mod write;

use ash::vk;

use crate::facts::ffi;
use crate::objects::entry::{entries, on_physical_device};
use crate::objects::state::GpuState;

pub(crate) use find::{HeapDescriptor, HeapView, ShaderDescriptorKind, at_offset, mapped};
pub(crate) use mapping::read as read_mappings;

entries! {
    Instance void ffi::PFN_vkGetPhysicalDeviceDescriptorSizeEXT = size:
        ext "VK_EXT_descriptor_heap" "vkGetPhysicalDeviceDescriptorSizeEXT";
    Device result ffi::PFN_vkWriteSamplerDescriptorsEXT = write::samplers:
        ext "VK_EXT_descriptor_heap" "vkWriteSamplerDescriptorsEXT";
    Device result ffi::PFN_vkWriteResourceDescriptorsEXT = write::resources:
        ext "VK_EXT_descriptor_heap" "vkWriteResourceDescriptorsEXT";
}

/// Fills the structure of the properties. Leaves it as it is if the GPU has no heaps.
pub(crate) fn write_properties(
    gpu_state: &GpuState,
    out: &mut ffi::PhysicalDeviceDescriptorHeapPropertiesEXT,
) {
    let Some(limits) = gpu_state.descriptor_heap else { return };
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

#[expect(unsafe_code, reason = "the functions have the C ABI")]
unsafe extern "system" fn size(device: vk::PhysicalDevice, kind: vk::DescriptorType) -> vk::DeviceSize {
    on_physical_device(device, "vkGetPhysicalDeviceDescriptorSizeEXT", |instance| {
        let size = instance.gpu_state.descriptor_heap.and_then(|limits| limits.size(kind));
        size.unwrap_or_else(|| {
            let text = format!("type is {kind:?}");
            instance.gpu_state.report("VUID-vkGetPhysicalDeviceDescriptorSizeEXT-type-11362", text);
            0
        })
    })
}
