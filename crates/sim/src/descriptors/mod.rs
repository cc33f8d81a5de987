//! Descriptor set layouts, pipeline layouts, samplers, descriptor pools, sets, their contents, and update templates.
//!
//! The contents of a set are kept by binding and array element, and only for written elements: a layout of a million
//! descriptors costs nothing until a program writes them. The driver that the GPU poses as decides when a pool refuses,
//! see [`DescriptorPoolPolicy`].
//!
//! What a command buffer has bound is in `commands::descriptors`; what a shader finds there is [`Descriptor`].

mod contents;
mod copy;
mod features;
mod inspect;
mod layout;
mod limits;
mod names;
mod null;
mod pipeline_layout;
mod policy;
mod pool;
mod room;
mod sampler;
mod set;
mod template;
#[cfg(test)]
mod tests;
mod update;
mod write;

use std::collections::BTreeMap;

use ash::vk;

use super::entry::entries;
use super::state::DeviceState;
use crate::arithmetic::widen;

pub use contents::Descriptor;
pub(super) use contents::{Change, Contents};
pub(super) use features::{DescriptorFeatures, FIELDS, slots};
pub(super) use layout::{Binding, SetLayout};
pub(super) use limits::write as write_limits;
pub(super) use names::buffer_needs;
pub(super) use null::REPLACEMENTS;
pub(super) use pipeline_layout::PipelineLayout;
pub(super) use policy::Behaviour;
pub use policy::{DescriptorPoolPolicy, DescriptorQuirk};
pub(super) use template::read as read_template;
pub(super) use write::{Write, WriteTarget, changes, read as read_write};

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

/// Everything on a device that has to do with descriptors.
#[derive(Default)]
pub(super) struct DescriptorState {
    pub(super) layouts: BTreeMap<vk::DescriptorSetLayout, layout::Layout>,
    pub(super) pipeline_layouts: BTreeMap<vk::PipelineLayout, pipeline_layout::Object>,
    pub(super) samplers: BTreeMap<vk::Sampler, sampler::Sampler>,
    pub(super) pools: BTreeMap<vk::DescriptorPool, pool::Pool>,
    pub(super) sets: BTreeMap<vk::DescriptorSet, set::Set>,
    pub(super) templates: BTreeMap<vk::DescriptorUpdateTemplate, template::Template>,
    /// Descriptors of all pools that were created with UPDATE_AFTER_BIND.
    update_after_bind: u64,
    /// The version of the newest set contents: an update that makes command buffers invalid raises it.
    versions: u64,
}

impl DescriptorState {
    /// The count of each kind of object, for `Gpu::live`.
    pub(super) fn live(&self, live: &mut super::LiveObjects) {
        live.descriptor_pools = widen(self.pools.len());
        live.descriptor_sets = widen(self.sets.len());
        live.descriptor_set_layouts = widen(self.layouts.len());
        live.descriptor_update_templates = widen(self.templates.len());
        live.samplers = widen(self.samplers.len());
        live.pipeline_layouts = widen(self.pipeline_layouts.len());
    }
}

impl DeviceState {
    /// Descriptor pools, layouts, samplers and templates that are alive, in words. Sets go with their pools.
    pub(super) fn descriptor_names(&self) -> impl Iterator<Item = String> {
        let state = &self.descriptors;
        let pools = state
            .pools
            .iter()
            .map(|(&handle, pool)| format!("{} with {} sets", self.name(handle), pool.sets.len()));
        let templates = state.templates.keys().map(|&handle| self.name(handle));
        let pipelines = state.pipeline_layouts.keys().map(|&handle| self.name(handle));
        let layouts = state.layouts.keys().map(|&handle| self.name(handle));
        let samplers = state.samplers.keys().map(|&handle| self.name(handle));
        pools.chain(templates).chain(pipelines).chain(layouts).chain(samplers)
    }

    /// Whether a set is of a pool that is only for the host.
    pub(super) fn is_host_only(&self, set: vk::DescriptorSet) -> bool {
        let pool = self.descriptors.sets.get(&set).and_then(|set| self.descriptors.pools.get(&set.pool));
        pool.is_some_and(|pool| pool.flags.contains(vk::DescriptorPoolCreateFlags::HOST_ONLY_EXT))
    }

    /// What a write to a set goes to: `None` for a set that is freed.
    pub(super) fn set_contents(&self, set: vk::DescriptorSet) -> Option<&Contents> {
        Some(&self.descriptors.sets.get(&set)?.contents)
    }
}
