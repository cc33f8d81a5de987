//! Layouts, pools, sets, templates and samplers.

pub(crate) mod capacity;
pub(crate) mod contents;
pub(crate) mod names;
pub(crate) mod policy;

use std::collections::BTreeMap;
use std::sync::Arc;

use ash::vk;
use ash::vk::DescriptorBindingFlags as Flags;
use ash::vk::DescriptorPoolCreateFlags as PoolFlags;
use ash::vk::DescriptorSetLayoutCreateFlags as LayoutFlags;
use ash::vk::DescriptorType as Type;

use crate::facts::arithmetic::index;
use crate::objects::descriptors::capacity::{PoolCapacity, TakenCapacity};
use crate::objects::descriptors::contents::Contents;
use crate::objects::descriptors::names::is_dynamic;
use crate::objects::handle_map::{HandleMap, HandleSet};
use crate::objects::host_bytes::HostBytes;

/// Everything on a device that has to do with descriptors.
#[derive(Default)]
pub(crate) struct DescriptorState {
    pub(crate) layouts: HandleMap<vk::DescriptorSetLayout, SetLayoutObject>,
    pub(crate) pipeline_layouts: HandleMap<vk::PipelineLayout, PipelineLayoutObject>,
    pub(crate) samplers: HandleMap<vk::Sampler, Sampler>,
    pub(crate) pools: HandleMap<vk::DescriptorPool, DescriptorPoolObject>,
    pub(crate) sets: HandleMap<vk::DescriptorSet, DescriptorSetObject>,
    pub(crate) templates: HandleMap<vk::DescriptorUpdateTemplate, Template>,
    /// Descriptors of all pools that were created with UPDATE_AFTER_BIND.
    pub(crate) update_after_bind: u64,
    /// The version of the newest set contents: an update that makes command buffers invalid raises it.
    pub(crate) versions: u64,
}

impl DescriptorState {
    /// Returns whether a set is of a pool that is only for the host.
    pub(crate) fn is_host_only(&self, set: vk::DescriptorSet) -> bool {
        let pool = self.sets.get(&set).and_then(|set| self.pools.get(&set.pool));
        pool.is_some_and(|pool| pool.flags.contains(vk::DescriptorPoolCreateFlags::HOST_ONLY_EXT))
    }

    /// The contents of a set; `None` if it is freed.
    pub(crate) fn set_contents(&self, set: vk::DescriptorSet) -> Option<&Contents> {
        Some(&self.sets.get(&set)?.contents)
    }
}

/// A `VkDescriptorSetLayout`. Other objects share its description, which outlives it.
pub(crate) struct SetLayoutObject {
    pub(crate) layout: Arc<SetLayoutDescription>,
    pub(crate) host: HostBytes,
}

/// The description of a descriptor set layout. Layouts with equal descriptions are "identically defined".
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SetLayoutDescription {
    pub(crate) flags: LayoutFlags,
    pub(crate) bindings: BTreeMap<u32, LayoutBinding>,
}

/// One binding of a set layout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LayoutBinding {
    pub(crate) kind: Type,
    /// The count of array elements, or of bytes of an inline uniform block; for a variable count, the most.
    pub(crate) count: u32,
    pub(crate) stages: vk::ShaderStageFlags,
    pub(crate) flags: Flags,
    /// One for each element, or none at all.
    pub(crate) immutable: Vec<vk::Sampler>,
    /// The types that a mutable binding may have, sorted.
    pub(crate) mutable: Vec<Type>,
}

impl SetLayoutDescription {
    pub(crate) fn has(&self, flags: LayoutFlags) -> bool {
        self.flags.contains(flags)
    }

    /// The binding of a variable count: the last one, if it has the flag.
    pub(crate) fn variable(&self) -> Option<(u32, &LayoutBinding)> {
        let (&number, binding) = self.bindings.last_key_value()?;
        binding.flags.contains(Flags::VARIABLE_DESCRIPTOR_COUNT).then_some((number, binding))
    }

    /// Its dynamic buffers, by binding and element: a command that binds it takes an offset for each, in this order.
    pub(crate) fn dynamic(&self) -> impl Iterator<Item = (u32, u32)> {
        let dynamic = self.bindings.iter().filter(|(_, binding)| is_dynamic(binding.kind));
        dynamic.flat_map(|(&number, binding)| (0..binding.count).map(move |element| (number, element)))
    }
}

/// A `VkPipelineLayout`. Pipelines and recorded commands share its description, which outlives it.
pub(crate) struct PipelineLayoutObject {
    pub(crate) layout: Arc<PipelineLayoutDescription>,
    pub(crate) host: HostBytes,
}

/// The description of a pipeline layout.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct PipelineLayoutDescription {
    pub(crate) flags: u32,
    /// The layout of each set; `None` where the create-info has NULL.
    pub(crate) sets: Vec<Option<Arc<SetLayoutDescription>>>,
    /// The ranges of push constants: stages, offset and size, sorted.
    pub(crate) push_constants: Vec<(u32, u32, u32)>,
}

impl PipelineLayoutDescription {
    /// The layout of a set.
    pub(crate) fn set(&self, number: u32) -> Option<&Arc<SetLayoutDescription>> {
        self.sets.get(index(number))?.as_ref()
    }

    /// Returns whether the two are "compatible for push constants".
    pub(crate) fn same_constants(&self, other: &Self) -> bool {
        self.push_constants == other.push_constants
    }

    /// Returns whether the two are "compatible for set `number`" (section "Pipeline Layout Compatibility"): identically
    /// defined layouts for the sets up to it, and the same push constants.
    pub(crate) fn compatible(&self, other: &Self, number: u32) -> bool {
        let sets = index(number) + 1;
        self.flags == other.flags
            && self.same_constants(other)
            && self.sets.len() >= sets
            && other.sets.len() >= sets
            && self.sets[..sets] == other.sets[..sets]
    }
}

impl DescriptorState {
    /// The description of a pipeline layout.
    pub(crate) fn pipeline_layout(
        &self,
        handle: vk::PipelineLayout,
    ) -> Option<&Arc<PipelineLayoutDescription>> {
        self.pipeline_layouts.get(&handle).map(|object| &object.layout)
    }
}

/// A `VkSampler`.
pub(crate) struct Sampler {
    pub(crate) host: HostBytes,
}

/// A `VkDescriptorPool`.
pub(crate) struct DescriptorPoolObject {
    pub(crate) flags: PoolFlags,
    pub(crate) capacity: PoolCapacity,
    pub(crate) sets: HandleSet<vk::DescriptorSet>,
    /// Sets that were allocated, and sets that were freed, since the pool was created or reset.
    pub(crate) allocated: u64,
    pub(crate) freed: u64,
    /// Sets whose memory resets lost.
    pub(crate) leaked: u64,
    pub(crate) host: HostBytes,
}

/// A `VkDescriptorSet`.
pub(crate) struct DescriptorSetObject {
    pub(crate) pool: vk::DescriptorPool,
    pub(crate) layout: Arc<SetLayoutDescription>,
    /// The handle that the layout had: it must be alive when the set is updated.
    pub(crate) layout_handle: vk::DescriptorSetLayout,
    /// The descriptors of the variable binding.
    pub(crate) variable: u32,
    pub(crate) contents: Contents,
    /// Changes with every update that makes command buffers with this set invalid.
    pub(crate) version: u64,
    pub(crate) taken: TakenCapacity,
    /// Submissions that are not done and name this set.
    pub(crate) in_use: u32,
}

impl DescriptorSetObject {
    /// The count of array elements of a binding, or of bytes of an inline uniform block; 0 for a binding that is not
    /// there.
    pub(crate) fn count(&self, binding: u32) -> u32 {
        match self.layout.variable() {
            Some((number, _)) if number == binding => self.variable,
            _ => self.layout.bindings.get(&binding).map_or(0, |binding| binding.count),
        }
    }
}

/// A `VkDescriptorUpdateTemplate`.
pub(crate) struct Template {
    pub(crate) entries: Vec<vk::DescriptorUpdateTemplateEntry>,
    pub(crate) target: TemplateTarget,
    pub(crate) host: HostBytes,
}

/// The target of a template.
pub(crate) enum TemplateTarget {
    Set(Arc<SetLayoutDescription>),
    Push { point: vk::PipelineBindPoint, layout: Arc<PipelineLayoutDescription>, set: u32 },
}
