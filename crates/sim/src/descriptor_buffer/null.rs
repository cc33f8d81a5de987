//! The null device's functions for descriptor buffers.
//!
//! What a layout's places are is in its handle: all its bindings have the same room, so that a binding's offset is its
//! number times that. Descriptors have no bytes: where a program writes them to may be memory that points nowhere.

use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering};

use ash::vk;
use ash::vk::Handle as _;

use crate::arithmetic::widen;
use crate::chain;
use crate::entry::entries;
use crate::null::descriptor_limits;
use crate::profiles::DescriptorBufferLimits;

entries! {
    Device result vk::PFN_vkCreateDescriptorSetLayout = create_layout: core 0 "vkCreateDescriptorSetLayout";
    Device void vk::PFN_vkDestroyDescriptorSetLayout = destroy_layout: core 0 "vkDestroyDescriptorSetLayout";
    Device void vk::PFN_vkGetDescriptorSetLayoutSizeEXT = size:
        ext "VK_EXT_descriptor_buffer" "vkGetDescriptorSetLayoutSizeEXT";
    Device void vk::PFN_vkGetDescriptorSetLayoutBindingOffsetEXT = offset:
        ext "VK_EXT_descriptor_buffer" "vkGetDescriptorSetLayoutBindingOffsetEXT";
    Device void vk::PFN_vkGetDescriptorEXT = get: ext "VK_EXT_descriptor_buffer" "vkGetDescriptorEXT";
    Device void vk::PFN_vkCmdBindDescriptorBuffersEXT = bind:
        ext "VK_EXT_descriptor_buffer" "vkCmdBindDescriptorBuffersEXT";
    Device void vk::PFN_vkCmdSetDescriptorBufferOffsetsEXT = set_offsets:
        ext "VK_EXT_descriptor_buffer" "vkCmdSetDescriptorBufferOffsetsEXT";
}

/// The room of a binding is a multiple of this: no driver's `descriptorBufferOffsetAlignment` is larger.
const UNIT: u64 = 256;
/// Bits of a layout's handle: units of room for each binding, then one more than the last binding's number, then a
/// count that makes handles different.
const ROOM_BITS: u32 = 32;
const BINDING_BITS: u32 = 12;

static NEXT: AtomicU64 = AtomicU64::new(1);

unsafe extern "system" fn create_layout(
    device: vk::Device,
    p_info: *const vk::DescriptorSetLayoutCreateInfo<'_>,
    _: *const vk::AllocationCallbacks<'_>,
    p_layout: *mut vk::DescriptorSetLayout,
) -> vk::Result {
    // SAFETY: VUID-vkCreateDescriptorSetLayout-pCreateInfo-parameter.
    let info = unsafe { chain::input(p_info) };
    let bindings = info.map_or(&[][..], |info| {
        // SAFETY: VUID-VkDescriptorSetLayoutCreateInfo-pBindings-parameter.
        unsafe { chain::array(info.p_bindings, info.binding_count) }
    });
    // SAFETY: only null devices have this function.
    let limits = unsafe { descriptor_limits(device) };
    let room = bindings.iter().map(|binding| bytes(&limits, binding).div_ceil(UNIT)).max().unwrap_or(0);
    let count = bindings.iter().map(|binding| u64::from(binding.binding) + 1).max().unwrap_or(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let raw = (room & ((1 << ROOM_BITS) - 1))
        | (count & ((1 << BINDING_BITS) - 1)) << ROOM_BITS
        | number << (ROOM_BITS + BINDING_BITS);
    // SAFETY: VUID-vkCreateDescriptorSetLayout-pSetLayout-parameter.
    unsafe { chain::output(p_layout, vk::DescriptorSetLayout::from_raw(raw)) };
    vk::Result::SUCCESS
}

unsafe extern "system" fn destroy_layout(
    _: vk::Device,
    _: vk::DescriptorSetLayout,
    _: *const vk::AllocationCallbacks<'_>,
) {
}

/// The bytes of a binding's descriptors. For types that may become several, as much as any descriptor may have.
fn bytes(limits: &DescriptorBufferLimits, binding: &vk::DescriptorSetLayoutBinding<'_>) -> u64 {
    let inline = binding.descriptor_type == vk::DescriptorType::INLINE_UNIFORM_BLOCK;
    let other = if inline { 1 } else { UNIT };
    limits.size(binding.descriptor_type).map_or(other, widen) * u64::from(binding.descriptor_count)
}

/// The room of each binding in bytes, and one more than the last binding's number.
fn room(layout: vk::DescriptorSetLayout) -> (u64, u64) {
    let raw = layout.as_raw();
    ((raw & ((1 << ROOM_BITS) - 1)) * UNIT, raw >> ROOM_BITS & ((1 << BINDING_BITS) - 1))
}

unsafe extern "system" fn size(_: vk::Device, layout: vk::DescriptorSetLayout, p_size: *mut vk::DeviceSize) {
    let (room, count) = room(layout);
    // SAFETY: VUID-vkGetDescriptorSetLayoutSizeEXT-pLayoutSizeInBytes-parameter.
    unsafe { chain::output(p_size, room * count) };
}

unsafe extern "system" fn offset(
    _: vk::Device,
    layout: vk::DescriptorSetLayout,
    binding: u32,
    p_offset: *mut vk::DeviceSize,
) {
    // SAFETY: VUID-vkGetDescriptorSetLayoutBindingOffsetEXT-pOffset-parameter.
    unsafe { chain::output(p_offset, room(layout).0 * u64::from(binding)) };
}

unsafe extern "system" fn get(
    _: vk::Device,
    _: *const vk::DescriptorGetInfoEXT<'_>,
    _: usize,
    _: *mut c_void,
) {
}

unsafe extern "system" fn bind(
    _: vk::CommandBuffer,
    _: u32,
    _: *const vk::DescriptorBufferBindingInfoEXT<'_>,
) {
}

unsafe extern "system" fn set_offsets(
    _: vk::CommandBuffer,
    _: vk::PipelineBindPoint,
    _: vk::PipelineLayout,
    _: u32,
    _: u32,
    _: *const u32,
    _: *const vk::DeviceSize,
) {
}
