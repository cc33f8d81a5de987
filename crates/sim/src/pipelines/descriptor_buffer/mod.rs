//! `VK_EXT_descriptor_buffer`: descriptors as bytes that the program places itself.
//!
//! - [`get`]: the bytes of one descriptor. `objects::descriptor_table` has their meaning.
//! - [`layout`]: the positions of a set's bindings.
//! - [`find`]: the descriptors that shaders find. `commands::descriptor_buffers` binds.
//!
//! Every driver has its own sizes, see [`DescriptorBufferLimits`](crate::profiles::DescriptorBufferLimits).

pub(crate) mod find;
pub(crate) mod get;
pub(crate) mod layout;
#[cfg(test)]
mod tests;

use ash::vk;

use crate::facts::broken::{Broken, refuse_if};
use crate::facts::chain;
use crate::memory::usage::{buffer_limits, no_descriptor_buffers};
use crate::objects::entry::{checked, entries};
use crate::objects::state::{DeviceObject, GpuState};
use layout::SetPlaces;

pub(crate) use find::{descriptor, parts};

entries! {
    Device void vk::PFN_vkGetDescriptorSetLayoutSizeEXT = layout_size:
        ext "VK_EXT_descriptor_buffer" "vkGetDescriptorSetLayoutSizeEXT";
    Device void vk::PFN_vkGetDescriptorSetLayoutBindingOffsetEXT = binding_offset:
        ext "VK_EXT_descriptor_buffer" "vkGetDescriptorSetLayoutBindingOffsetEXT";
    Device void vk::PFN_vkGetDescriptorEXT = get::get: ext "VK_EXT_descriptor_buffer" "vkGetDescriptorEXT";
}

/// Fills `VkPhysicalDeviceDescriptorBufferPropertiesEXT`. Leaves it as it is if the GPU has no descriptor buffers.
pub(crate) fn write_properties(
    gpu_state: &GpuState,
    out: &mut vk::PhysicalDeviceDescriptorBufferPropertiesEXT<'_>,
) {
    let Some(limits) =
        gpu_state.profile.limits.descriptor_buffer.filter(|_| gpu_state.offers("VK_EXT_descriptor_buffer"))
    else {
        return;
    };
    out.combined_image_sampler_descriptor_single_array = vk::Bool32::from(limits.single_array);
    out.bufferless_push_descriptors = vk::Bool32::from(limits.bufferless_push);
    out.allow_sampler_image_view_post_submit_creation = vk::FALSE;
    out.descriptor_buffer_offset_alignment = limits.offset_alignment;
    out.max_descriptor_buffer_bindings = limits.max_bindings;
    out.max_resource_descriptor_buffer_bindings = limits.max_resource_bindings;
    out.max_sampler_descriptor_buffer_bindings = limits.max_sampler_bindings;
    out.max_embedded_immutable_sampler_bindings = limits.max_bindings;
    out.max_embedded_immutable_samplers = 2048;
    out.buffer_capture_replay_descriptor_data_size = 0;
    out.image_capture_replay_descriptor_data_size = 0;
    out.image_view_capture_replay_descriptor_data_size = 0;
    out.sampler_capture_replay_descriptor_data_size = 0;
    out.acceleration_structure_capture_replay_descriptor_data_size = 0;
    out.sampler_descriptor_size = limits.sampler;
    out.combined_image_sampler_descriptor_size = limits.combined_image_sampler;
    out.sampled_image_descriptor_size = limits.sampled_image;
    out.storage_image_descriptor_size = limits.storage_image;
    out.uniform_texel_buffer_descriptor_size = limits.texel_buffer;
    out.robust_uniform_texel_buffer_descriptor_size = limits.texel_buffer;
    out.storage_texel_buffer_descriptor_size = limits.texel_buffer;
    out.robust_storage_texel_buffer_descriptor_size = limits.texel_buffer;
    out.uniform_buffer_descriptor_size = limits.uniform_buffer;
    out.robust_uniform_buffer_descriptor_size = limits.uniform_buffer;
    out.storage_buffer_descriptor_size = limits.storage_buffer;
    out.robust_storage_buffer_descriptor_size = limits.storage_buffer;
    out.input_attachment_descriptor_size = limits.input_attachment;
    out.acceleration_structure_descriptor_size = limits.acceleration_structure;
    out.max_sampler_descriptor_buffer_range = limits.max_range;
    out.max_resource_descriptor_buffer_range = limits.max_range;
    out.sampler_descriptor_buffer_address_space_size = limits.address_space;
    out.resource_descriptor_buffer_address_space_size = limits.address_space;
    out.descriptor_buffer_address_space_size = limits.address_space;
}

/// The places of a set layout that is made for descriptor buffers.
fn places(
    device: &DeviceObject,
    layout: vk::DescriptorSetLayout,
    [enabled, parameter, flag]: [&'static str; 3],
) -> Result<SetPlaces, Broken> {
    if !device.features.descriptor_buffer {
        return Err(no_descriptor_buffers(enabled));
    }
    let state = device.state.lock();
    let name = state.label(layout);
    let found = state.known(device, layout, state.descriptors.layouts.get(&layout), parameter)?;
    refuse_if!(!found.layout.has(vk::DescriptorSetLayoutCreateFlags::DESCRIPTOR_BUFFER_EXT) => flag,
        "{name} was created without DESCRIPTOR_BUFFER");
    Ok(SetPlaces::of(&buffer_limits(device), &found.layout))
}

#[expect(unsafe_code, reason = "the functions have the C ABI")]
unsafe extern "system" fn layout_size(
    device: vk::Device,
    layout: vk::DescriptorSetLayout,
    p_size: *mut vk::DeviceSize,
) {
    checked(device, "vkGetDescriptorSetLayoutSizeEXT", |device| {
        let rules = [
            "VUID-vkGetDescriptorSetLayoutSizeEXT-None-08011",
            "VUID-vkGetDescriptorSetLayoutSizeEXT-layout-parameter",
            "VUID-vkGetDescriptorSetLayoutSizeEXT-layout-08012",
        ];
        let places = places(device, layout, rules)?;
        // SAFETY: VUID-vkGetDescriptorSetLayoutSizeEXT-pLayoutSizeInBytes-parameter.
        unsafe { chain::output(p_size, places.size) };
        Ok(())
    });
}

#[expect(unsafe_code, reason = "the functions have the C ABI")]
unsafe extern "system" fn binding_offset(
    device: vk::Device,
    layout: vk::DescriptorSetLayout,
    binding: u32,
    p_offset: *mut vk::DeviceSize,
) {
    checked(device, "vkGetDescriptorSetLayoutBindingOffsetEXT", |device| {
        let rules = [
            "VUID-vkGetDescriptorSetLayoutBindingOffsetEXT-None-08013",
            "VUID-vkGetDescriptorSetLayoutBindingOffsetEXT-layout-parameter",
            "VUID-vkGetDescriptorSetLayoutBindingOffsetEXT-layout-08014",
        ];
        let text = format!("the layout has no binding {binding}");
        let missing = ("SUBLET-vkGetDescriptorSetLayoutBindingOffsetEXT-binding", text);
        let offset = places(device, layout, rules)?.offset(binding).ok_or(missing)?;
        // SAFETY: VUID-vkGetDescriptorSetLayoutBindingOffsetEXT-pOffset-parameter.
        unsafe { chain::output(p_offset, offset) };
        Ok(())
    });
}
