//! The null device's descriptor functions: they do nothing, and never refuse.
//!
//! Handles are counted on, so that all are different. What the device is told is not kept. Layouts are those of
//! `descriptor_buffer`, whose handles know their sizes.

use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering};

use ash::vk;

use crate::arithmetic::index;
use crate::chain;
use crate::entry::entries;

entries! {
    Device result vk::PFN_vkCreateSampler = sampler::create: core 0 "vkCreateSampler";
    Device void vk::PFN_vkDestroySampler = sampler::destroy: core 0 "vkDestroySampler";
    Device result vk::PFN_vkCreatePipelineLayout = pipeline::create: core 0 "vkCreatePipelineLayout";
    Device void vk::PFN_vkDestroyPipelineLayout = pipeline::destroy: core 0 "vkDestroyPipelineLayout";
    Device result vk::PFN_vkCreateDescriptorPool = pool::create: core 0 "vkCreateDescriptorPool";
    Device void vk::PFN_vkDestroyDescriptorPool = pool::destroy: core 0 "vkDestroyDescriptorPool";
    Device result vk::PFN_vkResetDescriptorPool = reset: core 0 "vkResetDescriptorPool";
    Device result vk::PFN_vkAllocateDescriptorSets = allocate: core 0 "vkAllocateDescriptorSets";
    Device result vk::PFN_vkFreeDescriptorSets = free: core 0 "vkFreeDescriptorSets";
    Device void vk::PFN_vkUpdateDescriptorSets = update: core 0 "vkUpdateDescriptorSets";
    Device result vk::PFN_vkCreateDescriptorUpdateTemplate = template::create:
        core 1 "vkCreateDescriptorUpdateTemplate",
        ext "VK_KHR_descriptor_update_template" "vkCreateDescriptorUpdateTemplateKHR";
    Device void vk::PFN_vkDestroyDescriptorUpdateTemplate = template::destroy:
        core 1 "vkDestroyDescriptorUpdateTemplate",
        ext "VK_KHR_descriptor_update_template" "vkDestroyDescriptorUpdateTemplateKHR";
    Device void vk::PFN_vkUpdateDescriptorSetWithTemplate = with_template:
        core 1 "vkUpdateDescriptorSetWithTemplate",
        ext "VK_KHR_descriptor_update_template" "vkUpdateDescriptorSetWithTemplateKHR";
    Device void vk::PFN_vkCmdBindDescriptorSets = bind: core 0 "vkCmdBindDescriptorSets";
    Device void vk::PFN_vkCmdPushDescriptorSetKHR = push:
        ext "VK_KHR_push_descriptor" "vkCmdPushDescriptorSetKHR", core 4 "vkCmdPushDescriptorSet";
    Device void vk::PFN_vkCmdPushDescriptorSetWithTemplateKHR = push_template:
        ext "VK_KHR_push_descriptor" "vkCmdPushDescriptorSetWithTemplateKHR",
        core 4 "vkCmdPushDescriptorSetWithTemplate";
    Device void vk::PFN_vkCmdPushConstants = constants: core 0 "vkCmdPushConstants";
}

static NEXT: AtomicU64 = AtomicU64::new(1);

/// Creation and destruction of each kind of object, in a module of its own.
macro_rules! objects {
    ($($name:ident: $info:ident, $handle:ident;)*) => {$(
        mod $name {
            use super::*;

            pub(super) unsafe extern "system" fn create(
                _: vk::Device,
                _: *const vk::$info<'_>,
                _: *const vk::AllocationCallbacks<'_>,
                p_object: *mut vk::$handle,
            ) -> vk::Result {
                let handle = vk::Handle::from_raw(NEXT.fetch_add(1, Ordering::Relaxed));
                // SAFETY: where the program wants the handle: VUID-vkCreateDescriptorPool-pDescriptorPool-parameter and
                // its likes.
                unsafe { chain::output(p_object, handle) };
                vk::Result::SUCCESS
            }

            pub(super) unsafe extern "system" fn destroy(
                _: vk::Device,
                _: vk::$handle,
                _: *const vk::AllocationCallbacks<'_>,
            ) {
            }
        }
    )*};
}

objects! {
    sampler: SamplerCreateInfo, Sampler;
    pipeline: PipelineLayoutCreateInfo, PipelineLayout;
    pool: DescriptorPoolCreateInfo, DescriptorPool;
    template: DescriptorUpdateTemplateCreateInfo, DescriptorUpdateTemplate;
}

unsafe extern "system" fn reset(
    _: vk::Device,
    _: vk::DescriptorPool,
    _: vk::DescriptorPoolResetFlags,
) -> vk::Result {
    vk::Result::SUCCESS
}

unsafe extern "system" fn allocate(
    _: vk::Device,
    p_info: *const vk::DescriptorSetAllocateInfo<'_>,
    p_sets: *mut vk::DescriptorSet,
) -> vk::Result {
    // SAFETY: VUID-vkAllocateDescriptorSets-pAllocateInfo-parameter.
    let count = unsafe { chain::input(p_info) }.map_or(0, |info| info.descriptor_set_count);
    let first = NEXT.fetch_add(u64::from(count), Ordering::Relaxed);
    for (position, raw) in (0..index(count)).zip(first..) {
        // SAFETY: `pDescriptorSets` has `descriptorSetCount` elements:
        // VUID-vkAllocateDescriptorSets-pDescriptorSets-parameter.
        let slot = unsafe { p_sets.add(position) };
        // SAFETY: as above.
        unsafe { slot.write(vk::Handle::from_raw(raw)) };
    }
    vk::Result::SUCCESS
}

unsafe extern "system" fn free(
    _: vk::Device,
    _: vk::DescriptorPool,
    _: u32,
    _: *const vk::DescriptorSet,
) -> vk::Result {
    vk::Result::SUCCESS
}

unsafe extern "system" fn update(
    _: vk::Device,
    _: u32,
    _: *const vk::WriteDescriptorSet<'_>,
    _: u32,
    _: *const vk::CopyDescriptorSet<'_>,
) {
}

unsafe extern "system" fn with_template(
    _: vk::Device,
    _: vk::DescriptorSet,
    _: vk::DescriptorUpdateTemplate,
    _: *const c_void,
) {
}

unsafe extern "system" fn bind(
    _: vk::CommandBuffer,
    _: vk::PipelineBindPoint,
    _: vk::PipelineLayout,
    _: u32,
    _: u32,
    _: *const vk::DescriptorSet,
    _: u32,
    _: *const u32,
) {
}

unsafe extern "system" fn push(
    _: vk::CommandBuffer,
    _: vk::PipelineBindPoint,
    _: vk::PipelineLayout,
    _: u32,
    _: u32,
    _: *const vk::WriteDescriptorSet<'_>,
) {
}

unsafe extern "system" fn push_template(
    _: vk::CommandBuffer,
    _: vk::DescriptorUpdateTemplate,
    _: vk::PipelineLayout,
    _: u32,
    _: *const c_void,
) {
}

unsafe extern "system" fn constants(
    _: vk::CommandBuffer,
    _: vk::PipelineLayout,
    _: vk::ShaderStageFlags,
    _: u32,
    _: u32,
    _: *const c_void,
) {
}
