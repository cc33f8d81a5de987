//! Descriptor set layouts, pipeline layouts, samplers, descriptor pools, sets, their contents, and update templates.
//!
//! The contents of a set are kept by binding and array element, and only for written elements: a layout of a million
//! descriptors costs nothing until a program writes them. The driver that the GPU poses as decides when a pool refuses,
//! see [`DescriptorPoolPolicy`](crate::DescriptorPoolPolicy).
//!
//! `objects::commands::bindings` has the bindings of command buffers.

pub(crate) mod copy;
pub(crate) mod layout;
pub(crate) mod limits;
pub(crate) mod pipeline_layout;
pub(crate) mod pool;
pub(crate) mod sampler;
pub(crate) mod set;
pub(crate) mod template;
#[cfg(test)]
mod tests;
pub(crate) mod update;
pub(crate) mod write;

use ash::vk;

use crate::objects::entry::entries;

pub(crate) use limits::write as write_limits;

pub(crate) use template::read as read_template;
pub(crate) use write::{Write, WriteTarget, changes, read as read_write};

entries! {
    Device result vk::PFN_vkCreateDescriptorSetLayout = layout::create: core 0 "vkCreateDescriptorSetLayout";
    Device void vk::PFN_vkDestroyDescriptorSetLayout = layout::destroy: core 0 "vkDestroyDescriptorSetLayout";
    Device void vk::PFN_vkGetDescriptorSetLayoutSupport = layout::support:
        core 1 "vkGetDescriptorSetLayoutSupport", ext "VK_KHR_maintenance3" "vkGetDescriptorSetLayoutSupportKHR";
    Device result vk::PFN_vkCreateSampler = sampler::create: core 0 "vkCreateSampler";
    Device void vk::PFN_vkDestroySampler = sampler::destroy: core 0 "vkDestroySampler";
    Device result vk::PFN_vkCreatePipelineLayout = pipeline_layout::create: core 0 "vkCreatePipelineLayout";
    Device void vk::PFN_vkDestroyPipelineLayout = pipeline_layout::destroy: core 0 "vkDestroyPipelineLayout";
    Device result vk::PFN_vkCreateDescriptorPool = pool::create: core 0 "vkCreateDescriptorPool";
    Device void vk::PFN_vkDestroyDescriptorPool = pool::destroy: core 0 "vkDestroyDescriptorPool";
    Device result vk::PFN_vkResetDescriptorPool = pool::reset: core 0 "vkResetDescriptorPool";
    Device result vk::PFN_vkAllocateDescriptorSets = set::allocate: core 0 "vkAllocateDescriptorSets";
    Device result vk::PFN_vkFreeDescriptorSets = set::free: core 0 "vkFreeDescriptorSets";
    Device void vk::PFN_vkUpdateDescriptorSets = update::update: core 0 "vkUpdateDescriptorSets";
    Device result vk::PFN_vkCreateDescriptorUpdateTemplate = template::create:
        core 1 "vkCreateDescriptorUpdateTemplate",
        ext "VK_KHR_descriptor_update_template" "vkCreateDescriptorUpdateTemplateKHR";
    Device void vk::PFN_vkDestroyDescriptorUpdateTemplate = template::destroy:
        core 1 "vkDestroyDescriptorUpdateTemplate",
        ext "VK_KHR_descriptor_update_template" "vkDestroyDescriptorUpdateTemplateKHR";
    Device void vk::PFN_vkUpdateDescriptorSetWithTemplate = update::with_template:
        core 1 "vkUpdateDescriptorSetWithTemplate",
        ext "VK_KHR_descriptor_update_template" "vkUpdateDescriptorSetWithTemplateKHR";
}
