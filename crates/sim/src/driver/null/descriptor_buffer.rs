//! The null device's functions for descriptor buffers.
//!
//! A layout's handle holds its offsets: all its bindings have the same size, so that a binding's offset is its number
//! times that. Descriptors are not written: the memory that a program has for them may point nowhere.
#![expect(unsafe_code, reason = "the functions have the C ABI")]

use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering};

use ash::vk;
use ash::vk::Handle as _;

use crate::driver::null::{descriptor_limits, do_nothing, replacements};
use crate::facts::arithmetic::widen;
use crate::facts::chain;
use crate::facts::profiles::DescriptorBufferLimits;

replacements! {
    PFN_vkCreateDescriptorSetLayout = create_layout;
    PFN_vkDestroyDescriptorSetLayout = destroy_layout;
    PFN_vkGetDescriptorSetLayoutSizeEXT = size;
    PFN_vkGetDescriptorSetLayoutBindingOffsetEXT = offset;
    PFN_vkGetDescriptorEXT = get;
    PFN_vkCmdBindDescriptorBuffersEXT = bind;
    PFN_vkCmdSetDescriptorBufferOffsetsEXT = set_offsets;
}

do_nothing! {
    destroy_layout(vk::Device, vk::DescriptorSetLayout, *const vk::AllocationCallbacks<'_>);
    get(vk::Device, *const vk::DescriptorGetInfoEXT<'_>, usize, *mut c_void);
    bind(vk::CommandBuffer, u32, *const vk::DescriptorBufferBindingInfoEXT<'_>);
    set_offsets(
        vk::CommandBuffer, vk::PipelineBindPoint, vk::PipelineLayout, u32, u32, *const u32, *const vk::DeviceSize
    );
}

/// The size of a binding is a multiple of this: no driver's `descriptorBufferOffsetAlignment` is larger.
const UNIT: u64 = 256;
/// Bits of a layout's handle: units of each binding, then one more than the last binding's number, then a
/// count that makes handles different.
const SIZE_BITS: u32 = 32;
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
    let size = bindings.iter().map(|binding| bytes(&limits, binding).div_ceil(UNIT)).max().unwrap_or(0);
    let count = bindings.iter().map(|binding| u64::from(binding.binding) + 1).max().unwrap_or(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let raw = (size & ((1 << SIZE_BITS) - 1))
        | (count & ((1 << BINDING_BITS) - 1)) << SIZE_BITS
        | number << (SIZE_BITS + BINDING_BITS);
    // SAFETY: VUID-vkCreateDescriptorSetLayout-pSetLayout-parameter.
    unsafe { chain::output(p_layout, vk::DescriptorSetLayout::from_raw(raw)) };
    vk::Result::SUCCESS
}

/// The bytes of a binding's descriptors. For types that may become several, as much as any descriptor may have.
fn bytes(limits: &DescriptorBufferLimits, binding: &vk::DescriptorSetLayoutBinding<'_>) -> u64 {
    let inline = binding.descriptor_type == vk::DescriptorType::INLINE_UNIFORM_BLOCK;
    let other = if inline { 1 } else { UNIT };
    limits.size(binding.descriptor_type).map_or(other, widen) * u64::from(binding.descriptor_count)
}

/// The size of each binding in bytes, and one more than the last binding's number.
fn sizes(layout: vk::DescriptorSetLayout) -> (u64, u64) {
    let raw = layout.as_raw();
    ((raw & ((1 << SIZE_BITS) - 1)) * UNIT, raw >> SIZE_BITS & ((1 << BINDING_BITS) - 1))
}

unsafe extern "system" fn size(_: vk::Device, layout: vk::DescriptorSetLayout, p_size: *mut vk::DeviceSize) {
    let (size, count) = sizes(layout);
    // SAFETY: VUID-vkGetDescriptorSetLayoutSizeEXT-pLayoutSizeInBytes-parameter.
    unsafe { chain::output(p_size, size * count) };
}

unsafe extern "system" fn offset(
    _: vk::Device,
    layout: vk::DescriptorSetLayout,
    binding: u32,
    p_offset: *mut vk::DeviceSize,
) {
    // SAFETY: VUID-vkGetDescriptorSetLayoutBindingOffsetEXT-pOffset-parameter.
    unsafe { chain::output(p_offset, sizes(layout).0 * u64::from(binding)) };
}
