//! The null device's descriptor functions: they do nothing, and never refuse.
//!
//! Handles are consecutive numbers. Nothing that the program passes is kept. Layouts are those of `descriptor_buffer`,
//! whose handles hold their sizes.
#![expect(unsafe_code, reason = "the functions have the C ABI")]

use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering};

use ash::vk;

use crate::driver::null::{do_nothing, replacements};
use crate::facts::arithmetic::index;
use crate::facts::chain;

replacements! {
    PFN_vkCreateSampler = sampler::create;
    PFN_vkDestroySampler = sampler::destroy;
    PFN_vkCreatePipelineLayout = pipeline::create;
    PFN_vkDestroyPipelineLayout = pipeline::destroy;
    PFN_vkCreateDescriptorPool = pool::create;
    PFN_vkDestroyDescriptorPool = pool::destroy;
    PFN_vkResetDescriptorPool = reset;
    PFN_vkAllocateDescriptorSets = allocate;
    PFN_vkFreeDescriptorSets = free;
    PFN_vkUpdateDescriptorSets = update;
    PFN_vkCreateDescriptorUpdateTemplate = template::create;
    PFN_vkDestroyDescriptorUpdateTemplate = template::destroy;
    PFN_vkUpdateDescriptorSetWithTemplate = with_template;
    PFN_vkCmdBindDescriptorSets = bind;
    PFN_vkCmdPushDescriptorSetKHR = push;
    PFN_vkCmdPushDescriptorSetWithTemplateKHR = push_template;
    PFN_vkCmdPushConstants = constants;
}

do_nothing! {
    reset(vk::Device, vk::DescriptorPool, vk::DescriptorPoolResetFlags) -> vk::Result;
    free(vk::Device, vk::DescriptorPool, u32, *const vk::DescriptorSet) -> vk::Result;
    update(vk::Device, u32, *const vk::WriteDescriptorSet<'_>, u32, *const vk::CopyDescriptorSet<'_>);
    with_template(vk::Device, vk::DescriptorSet, vk::DescriptorUpdateTemplate, *const c_void);
    bind(
        vk::CommandBuffer, vk::PipelineBindPoint, vk::PipelineLayout, u32, u32, *const vk::DescriptorSet, u32, *const u32
    );
    push(
        vk::CommandBuffer, vk::PipelineBindPoint, vk::PipelineLayout, u32, u32, *const vk::WriteDescriptorSet<'_>
    );
    push_template(vk::CommandBuffer, vk::DescriptorUpdateTemplate, vk::PipelineLayout, u32, *const c_void);
    constants(vk::CommandBuffer, vk::PipelineLayout, vk::ShaderStageFlags, u32, u32, *const c_void);
}

static NEXT: AtomicU64 = AtomicU64::new(1);

/// Creation and destruction of each kind of object, in a module of its own.
macro_rules! objects {
    ($($name:ident: $info:ident, $handle:ident;)*) => {$(
        mod $name {
            use super::*;

            pub(crate) unsafe extern "system" fn create(
                _: vk::Device,
                _: *const vk::$info<'_>,
                _: *const vk::AllocationCallbacks<'_>,
                p_object: *mut vk::$handle,
            ) -> vk::Result {
                let handle = vk::Handle::from_raw(NEXT.fetch_add(1, Ordering::Relaxed));
                // SAFETY: VUID-vkCreateDescriptorPool-pDescriptorPool-parameter, and its counterparts.
                unsafe { chain::output(p_object, handle) };
                vk::Result::SUCCESS
            }

            do_nothing! {
                pub(crate) destroy(vk::Device, vk::$handle, *const vk::AllocationCallbacks<'_>);
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
