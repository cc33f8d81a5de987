//! How many descriptors drivers allow.

use ash::vk::DescriptorType as Type;

/// The limits that touch descriptors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DescriptorLimits {
    /// `maxBoundDescriptorSets`.
    pub max_bound_descriptor_sets: u32,
    /// `VkPhysicalDeviceMaintenance3Properties::maxPerSetDescriptors`.
    pub max_per_set_descriptors: u32,
    /// `maxPushConstantsSize`, in bytes.
    pub max_push_constants_size: u32,
    /// `VkPhysicalDevicePushDescriptorPropertiesKHR::maxPushDescriptors`.
    pub max_push_descriptors: u32,
    /// `maxSamplerAllocationCount`.
    pub max_sampler_allocation_count: u32,
    /// `maxInlineUniformBlockSize`, in bytes.
    pub max_inline_uniform_block_size: u32,
    /// `maxUpdateAfterBindDescriptorsInAllPools`.
    pub max_update_after_bind_descriptors_in_all_pools: u32,
    /// `maxPerStageDescriptor*` and `maxPerStageResources`.
    pub per_stage: DescriptorMaxima,
    /// `maxDescriptorSet*`.
    pub per_set: DescriptorMaxima,
    /// `maxPerStageDescriptorUpdateAfterBind*` and `maxPerStageUpdateAfterBindResources`.
    pub per_stage_update_after_bind: DescriptorMaxima,
    /// `maxDescriptorSetUpdateAfterBind*`.
    pub per_set_update_after_bind: DescriptorMaxima,
}

/// The most there may be of each type of descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DescriptorMaxima {
    /// Samplers, those of combined descriptors included.
    pub samplers: u32,
    /// Uniform buffers; dynamic ones are among them.
    pub uniform_buffers: u32,
    /// Dynamic uniform buffers. They have no limit for each stage of their own.
    pub uniform_buffers_dynamic: u32,
    /// Storage buffers; dynamic ones are among them.
    pub storage_buffers: u32,
    /// Dynamic storage buffers. They have no limit for each stage of their own.
    pub storage_buffers_dynamic: u32,
    /// Sampled images, combined descriptors and uniform texel buffers.
    pub sampled_images: u32,
    /// Storage images and storage texel buffers.
    pub storage_images: u32,
    /// Input attachments.
    pub input_attachments: u32,
    /// Inline uniform blocks.
    pub inline_uniform_blocks: u32,
    /// All of them together, for one stage. There is no such limit for a set.
    pub resources: u32,
}

impl DescriptorMaxima {
    /// The number for a type, where a combined image sampler counts as an image. A type that has no number of its own,
    /// as a mutable one, has the largest.
    pub fn of(&self, kind: Type) -> u32 {
        match kind {
            Type::SAMPLER => self.samplers,
            Type::COMBINED_IMAGE_SAMPLER => self.sampled_images.min(self.samplers),
            Type::SAMPLED_IMAGE | Type::UNIFORM_TEXEL_BUFFER => self.sampled_images,
            Type::STORAGE_IMAGE | Type::STORAGE_TEXEL_BUFFER => self.storage_images,
            Type::UNIFORM_BUFFER => self.uniform_buffers,
            Type::UNIFORM_BUFFER_DYNAMIC => self.uniform_buffers_dynamic,
            Type::STORAGE_BUFFER => self.storage_buffers,
            Type::STORAGE_BUFFER_DYNAMIC => self.storage_buffers_dynamic,
            Type::INPUT_ATTACHMENT => self.input_attachments,
            Type::INLINE_UNIFORM_BLOCK => self.inline_uniform_blocks,
            _ => u32::MAX,
        }
    }
}
