//! The limits of descriptors that a physical device reports, and whether layouts keep them.
#![expect(unsafe_code, reason = "the functions have the C ABI")]

use std::ffi::c_void;

use ash::vk;
use ash::vk::DescriptorSetLayoutCreateFlags as LayoutFlags;
use ash::vk::DescriptorType as Type;

use crate::facts::broken::Broken;
use crate::facts::chain;
use crate::facts::profiles::{DescriptorLimits, DescriptorMaxima};
use crate::objects::descriptors::{LayoutBinding, SetLayoutDescription};
use crate::objects::state::GpuState;

/// Fills the structures of a chain that report limits of descriptors.
///
/// # Safety
///
/// The chain is valid, and valid for writes.
pub(crate) unsafe fn write(gpu_state: &GpuState, next: *mut c_void) {
    let limits = &gpu_state.descriptors.limits;
    let (stage, set) = (&limits.per_stage_update_after_bind, &limits.per_set_update_after_bind);
    // SAFETY: the promise of `write`: a valid chain, also for writes.
    let push = unsafe { chain::find_mut::<vk::PhysicalDevicePushDescriptorPropertiesKHR<'_>>(next) };
    if let Some(out) = push {
        out.max_push_descriptors =
            if gpu_state.offers("VK_KHR_push_descriptor") { limits.max_push_descriptors } else { 0 };
    }
    macro_rules! indexing {
        ($out:ident) => {
            $out.max_update_after_bind_descriptors_in_all_pools =
                limits.max_update_after_bind_descriptors_in_all_pools;
            $out.robust_buffer_access_update_after_bind = vk::TRUE;
            $out.max_per_stage_descriptor_update_after_bind_samplers = stage.samplers;
            $out.max_per_stage_descriptor_update_after_bind_uniform_buffers = stage.uniform_buffers;
            $out.max_per_stage_descriptor_update_after_bind_storage_buffers = stage.storage_buffers;
            $out.max_per_stage_descriptor_update_after_bind_sampled_images = stage.sampled_images;
            $out.max_per_stage_descriptor_update_after_bind_storage_images = stage.storage_images;
            $out.max_per_stage_descriptor_update_after_bind_input_attachments = stage.input_attachments;
            $out.max_per_stage_update_after_bind_resources = stage.resources;
            $out.max_descriptor_set_update_after_bind_samplers = set.samplers;
            $out.max_descriptor_set_update_after_bind_uniform_buffers = set.uniform_buffers;
            $out.max_descriptor_set_update_after_bind_uniform_buffers_dynamic = set.uniform_buffers_dynamic;
            $out.max_descriptor_set_update_after_bind_storage_buffers = set.storage_buffers;
            $out.max_descriptor_set_update_after_bind_storage_buffers_dynamic = set.storage_buffers_dynamic;
            $out.max_descriptor_set_update_after_bind_sampled_images = set.sampled_images;
            $out.max_descriptor_set_update_after_bind_storage_images = set.storage_images;
            $out.max_descriptor_set_update_after_bind_input_attachments = set.input_attachments;
        };
    }
    macro_rules! inline {
        ($out:ident) => {
            $out.max_inline_uniform_block_size = limits.max_inline_uniform_block_size;
            $out.max_per_stage_descriptor_inline_uniform_blocks = limits.per_stage.inline_uniform_blocks;
            $out.max_per_stage_descriptor_update_after_bind_inline_uniform_blocks =
                stage.inline_uniform_blocks;
            $out.max_descriptor_set_inline_uniform_blocks = limits.per_set.inline_uniform_blocks;
            $out.max_descriptor_set_update_after_bind_inline_uniform_blocks = set.inline_uniform_blocks;
        };
    }
    // SAFETY: as above.
    if let Some(out) = unsafe { chain::find_mut::<vk::PhysicalDeviceVulkan12Properties<'_>>(next) } {
        indexing!(out);
    }
    // SAFETY: as above.
    let own = unsafe { chain::find_mut::<vk::PhysicalDeviceDescriptorIndexingProperties<'_>>(next) };
    if let Some(out) = own {
        indexing!(out);
    }
    // SAFETY: as above.
    if let Some(out) = unsafe { chain::find_mut::<vk::PhysicalDeviceVulkan13Properties<'_>>(next) } {
        inline!(out);
        out.max_inline_uniform_total_size = limits.max_inline_uniform_block_size;
    }
    // SAFETY: as above.
    let own = unsafe { chain::find_mut::<vk::PhysicalDeviceInlineUniformBlockProperties<'_>>(next) };
    if let Some(out) = own {
        inline!(out);
    }
}

impl DescriptorLimits {
    /// The descriptors of a type that a set may have, if it has no others.
    pub(crate) fn most_in_a_set(&self, kind: Type, after: bool) -> u32 {
        let (stage, set) = if after {
            (&self.per_stage_update_after_bind, &self.per_set_update_after_bind)
        } else {
            (&self.per_stage, &self.per_set)
        };
        let most = set.of(kind).min(stage.resources);
        // Dynamic buffers have no limit for a stage: it is 0.
        if crate::objects::descriptors::names::is_dynamic(kind) { most } else { most.min(stage.of(kind)) }
    }
}

/// How many descriptors the sets of a pipeline have. Units: descriptors, as the limits count them.
#[derive(Default)]
pub(crate) struct DescriptorTotals {
    /// Layouts without UPDATE_AFTER_BIND_POOL.
    before: DescriptorSums,
    /// All layouts.
    all: DescriptorSums,
}

/// Sums over sets: for each stage, and over all.
#[derive(Default)]
struct DescriptorSums {
    stages: [[u64; GROUPS.len()]; STAGES.len()],
    sets: [u64; GROUPS.len()],
}

const STAGES: [vk::ShaderStageFlags; 6] = [
    vk::ShaderStageFlags::VERTEX,
    vk::ShaderStageFlags::TESSELLATION_CONTROL,
    vk::ShaderStageFlags::TESSELLATION_EVALUATION,
    vk::ShaderStageFlags::GEOMETRY,
    vk::ShaderStageFlags::FRAGMENT,
    vk::ShaderStageFlags::COMPUTE,
];

/// One thing that limits count.
struct DescriptorLimitGroup {
    types: &'static [Type],
    name: &'static str,
    limit: fn(&DescriptorMaxima) -> u32,
    /// The rules for one stage and for all sets: of layouts without UPDATE_AFTER_BIND_POOL, and of all.
    stage: Option<[&'static str; 2]>,
    set: [&'static str; 2],
}

macro_rules! rule {
    ($number:literal) => {
        concat!("VUID-VkPipelineLayoutCreateInfo-", $number)
    };
}

const GROUPS: [DescriptorLimitGroup; 9] = [
    DescriptorLimitGroup {
        types: &[Type::SAMPLER, Type::COMBINED_IMAGE_SAMPLER],
        name: "samplers",
        limit: |counts| counts.samplers,
        stage: Some([rule!("descriptorType-03016"), rule!("descriptorType-03022")]),
        set: [rule!("descriptorType-03028"), rule!("pSetLayouts-03036")],
    },
    DescriptorLimitGroup {
        types: &[Type::UNIFORM_BUFFER, Type::UNIFORM_BUFFER_DYNAMIC],
        name: "uniform buffers",
        limit: |counts| counts.uniform_buffers,
        stage: Some([rule!("descriptorType-03017"), rule!("descriptorType-03023")]),
        set: [rule!("descriptorType-03029"), rule!("pSetLayouts-03037")],
    },
    DescriptorLimitGroup {
        types: &[Type::UNIFORM_BUFFER_DYNAMIC],
        name: "dynamic uniform buffers",
        limit: |counts| counts.uniform_buffers_dynamic,
        stage: None,
        set: [rule!("descriptorType-03030"), rule!("pSetLayouts-03038")],
    },
    DescriptorLimitGroup {
        types: &[Type::STORAGE_BUFFER, Type::STORAGE_BUFFER_DYNAMIC],
        name: "storage buffers",
        limit: |counts| counts.storage_buffers,
        stage: Some([rule!("descriptorType-03018"), rule!("descriptorType-03024")]),
        set: [rule!("descriptorType-03031"), rule!("pSetLayouts-03039")],
    },
    DescriptorLimitGroup {
        types: &[Type::STORAGE_BUFFER_DYNAMIC],
        name: "dynamic storage buffers",
        limit: |counts| counts.storage_buffers_dynamic,
        stage: None,
        set: [rule!("descriptorType-03032"), rule!("pSetLayouts-03040")],
    },
    DescriptorLimitGroup {
        types: &[Type::COMBINED_IMAGE_SAMPLER, Type::SAMPLED_IMAGE, Type::UNIFORM_TEXEL_BUFFER],
        name: "sampled images",
        limit: |counts| counts.sampled_images,
        stage: Some([rule!("descriptorType-06939"), rule!("descriptorType-03025")]),
        set: [rule!("descriptorType-03033"), rule!("pSetLayouts-03041")],
    },
    DescriptorLimitGroup {
        types: &[Type::STORAGE_IMAGE, Type::STORAGE_TEXEL_BUFFER],
        name: "storage images",
        limit: |counts| counts.storage_images,
        stage: Some([rule!("descriptorType-03020"), rule!("descriptorType-03026")]),
        set: [rule!("descriptorType-03034"), rule!("pSetLayouts-03042")],
    },
    DescriptorLimitGroup {
        types: &[Type::INPUT_ATTACHMENT],
        name: "input attachments",
        limit: |counts| counts.input_attachments,
        stage: Some([rule!("descriptorType-03021"), rule!("descriptorType-03027")]),
        set: [rule!("descriptorType-03035"), rule!("pSetLayouts-03043")],
    },
    DescriptorLimitGroup {
        types: &[Type::INLINE_UNIFORM_BLOCK],
        name: "inline uniform blocks",
        limit: |counts| counts.inline_uniform_blocks,
        stage: Some([rule!("descriptorType-02212"), rule!("descriptorType-02213")]),
        set: [rule!("descriptorType-02216"), rule!("descriptorType-02217")],
    },
];

impl DescriptorSums {
    fn add(&mut self, binding: &LayoutBinding) {
        let count = match binding.kind {
            Type::INLINE_UNIFORM_BLOCK => 1,
            _ => u64::from(binding.count),
        };
        for (group, sum) in GROUPS.iter().zip(&mut self.sets) {
            if group.types.contains(&binding.kind) {
                *sum += count;
            }
        }
        for (stage, sums) in STAGES.iter().zip(&mut self.stages) {
            if binding.stages.contains(*stage) {
                for (group, sum) in GROUPS.iter().zip(sums) {
                    if group.types.contains(&binding.kind) {
                        *sum += count;
                    }
                }
            }
        }
    }

    /// The first of the limits that is exceeded; `which` of the rules it breaks.
    fn over(&self, stage: &DescriptorMaxima, set: &DescriptorMaxima, which: usize) -> Option<Broken> {
        for (group, &sum) in GROUPS.iter().zip(&self.sets) {
            let limit = (group.limit)(set);
            if sum > u64::from(limit) {
                let text = format!("{sum} {} in all sets, and the limit is {limit}", group.name);
                return Some((group.set[which], text));
            }
        }
        for (flag, sums) in STAGES.iter().zip(&self.stages) {
            for (group, &sum) in GROUPS.iter().zip(sums) {
                let limit = (group.limit)(stage);
                if let Some(rules) = group.stage.filter(|_| sum > u64::from(limit)) {
                    let text =
                        format!("{sum} {} in the stage {flag:?}, and the limit is {limit}", group.name);
                    return Some((rules[which], text));
                }
            }
        }
        None
    }
}

impl DescriptorTotals {
    pub(crate) fn of<'a>(layouts: impl Iterator<Item = &'a SetLayoutDescription>) -> Self {
        let mut totals = Self::default();
        for layout in layouts.filter(|layout| !layout.has(LayoutFlags::DESCRIPTOR_BUFFER_EXT)) {
            for binding in layout.bindings.values() {
                totals.all.add(binding);
                if !layout.has(LayoutFlags::UPDATE_AFTER_BIND_POOL) {
                    totals.before.add(binding);
                }
            }
        }
        totals
    }

    /// The first limit that is exceeded, as the rule that a pipeline layout breaks by it. Those for update after bind
    /// hold for devices that have it, `indexing`.
    pub(crate) fn first_over(&self, limits: &DescriptorLimits, indexing: bool) -> Option<Broken> {
        let before = self.before.over(&limits.per_stage, &limits.per_set, 0);
        let after = || {
            let (stage, set) = (&limits.per_stage_update_after_bind, &limits.per_set_update_after_bind);
            if indexing { self.all.over(stage, set, 1) } else { None }
        };
        before.or_else(after)
    }
}
