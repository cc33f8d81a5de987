//! How many descriptors drivers allow.
#![forbid(unsafe_code)]

use ash::vk::DescriptorType as Type;

/// The limits that touch descriptors.
///
/// ```
/// use sublet_sim::profiles::{DescriptorLimits, Profile};
/// let limits: &DescriptorLimits = &Profile::by_name("nvidia-h200").unwrap().limits.descriptors;
/// assert_eq!(limits.max_push_descriptors, 32);
/// assert_eq!(limits.per_set_update_after_bind.sampled_images, 1 << 20);
/// ```
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
///
/// ```
/// use ash::vk::DescriptorType;
/// use sublet_sim::profiles::{DescriptorMaxima, Profile};
/// let limits = &Profile::by_name("nvidia-h200").unwrap().limits.descriptors;
/// let counts: &DescriptorMaxima = &limits.per_set;
/// assert_eq!(counts.of(DescriptorType::UNIFORM_BUFFER), counts.uniform_buffers);
/// ```
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
    /// The number for a type, where a combined image sampler counts as an image. A type that has no number of its own, as a
    /// mutable one, has the largest.
    ///
    /// ```
    /// use ash::vk::DescriptorType;
    /// use sublet_sim::profiles::Profile;
    /// let counts = Profile::by_name("lavapipe").unwrap().limits.descriptors.per_stage;
    /// assert_eq!(counts.of(DescriptorType::STORAGE_TEXEL_BUFFER), counts.storage_images);
    /// assert_eq!(counts.of(DescriptorType::MUTABLE_EXT), u32::MAX);
    /// ```
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

    /// The same number for every type.
    const fn all(count: u32) -> Self {
        Self {
            samplers: count,
            uniform_buffers: count,
            uniform_buffers_dynamic: count,
            storage_buffers: count,
            storage_buffers_dynamic: count,
            sampled_images: count,
            storage_images: count,
            input_attachments: count,
            inline_uniform_blocks: count,
            resources: count,
        }
    }
}

const MILLION: u32 = 1 << 20;

/// What Vulkan asks of every device, which is what the smallest have.
pub(super) const LEAST: DescriptorLimits = DescriptorLimits {
    max_bound_descriptor_sets: 4,
    max_per_set_descriptors: 1024,
    max_push_constants_size: 128,
    max_push_descriptors: 32,
    max_sampler_allocation_count: 4000,
    max_inline_uniform_block_size: 256,
    max_update_after_bind_descriptors_in_all_pools: 0,
    per_stage: DescriptorMaxima {
        samplers: 16,
        uniform_buffers: 12,
        uniform_buffers_dynamic: 8,
        storage_buffers: 4,
        storage_buffers_dynamic: 4,
        sampled_images: 16,
        storage_images: 4,
        input_attachments: 4,
        inline_uniform_blocks: 4,
        resources: 128,
    },
    per_set: DescriptorMaxima {
        samplers: 96,
        uniform_buffers: 72,
        uniform_buffers_dynamic: 8,
        storage_buffers: 24,
        storage_buffers_dynamic: 4,
        sampled_images: 96,
        storage_images: 24,
        input_attachments: 4,
        inline_uniform_blocks: 4,
        resources: u32::MAX,
    },
    per_stage_update_after_bind: DescriptorMaxima::all(0),
    per_set_update_after_bind: DescriptorMaxima::all(0),
};

const NVIDIA_STAGE: DescriptorMaxima = DescriptorMaxima {
    uniform_buffers_dynamic: 15,
    storage_buffers_dynamic: 16,
    inline_uniform_blocks: 32,
    resources: u32::MAX,
    ..DescriptorMaxima::all(MILLION)
};

/// NVIDIA: read from an H200 with driver 580.159.04. Cards before Turing may have fewer uniform buffers.
pub(super) const NVIDIA: DescriptorLimits = DescriptorLimits {
    max_bound_descriptor_sets: 32,
    max_per_set_descriptors: u32::MAX,
    max_push_constants_size: 256,
    max_push_descriptors: 32,
    max_sampler_allocation_count: 4000,
    max_inline_uniform_block_size: 256,
    max_update_after_bind_descriptors_in_all_pools: u32::MAX,
    per_stage: NVIDIA_STAGE,
    per_set: NVIDIA_STAGE,
    per_stage_update_after_bind: NVIDIA_STAGE,
    per_set_update_after_bind: NVIDIA_STAGE,
};

const AMD_STAGE: DescriptorMaxima = DescriptorMaxima {
    uniform_buffers_dynamic: 16,
    storage_buffers_dynamic: 8,
    inline_uniform_blocks: 64,
    ..DescriptorMaxima::all(8_388_606)
};

/// Mesa's RADV: what fits into 2 GiB; inline uniform blocks of 4 MiB. Typical for AMD's own drivers too.
pub(super) const AMD: DescriptorLimits = DescriptorLimits {
    max_bound_descriptor_sets: 32,
    max_per_set_descriptors: 22_369_621,
    max_push_constants_size: 256,
    max_push_descriptors: 32,
    max_sampler_allocation_count: 64 << 10,
    max_inline_uniform_block_size: 4 << 20,
    max_update_after_bind_descriptors_in_all_pools: u32::MAX / 64,
    per_stage: AMD_STAGE,
    per_set: AMD_STAGE,
    per_stage_update_after_bind: AMD_STAGE,
    per_set_update_after_bind: AMD_STAGE,
};

const INTEL_STAGE: DescriptorMaxima = DescriptorMaxima {
    samplers: 65_535,
    uniform_buffers: 64,
    uniform_buffers_dynamic: 8,
    storage_buffers: 65_535,
    storage_buffers_dynamic: 8,
    sampled_images: 65_535,
    storage_images: 65_535,
    input_attachments: 64,
    inline_uniform_blocks: 32,
    resources: u32::MAX,
};

const INTEL_AFTER: DescriptorMaxima = DescriptorMaxima {
    uniform_buffers_dynamic: 8,
    storage_buffers_dynamic: 8,
    inline_uniform_blocks: 32,
    resources: u32::MAX,
    ..DescriptorMaxima::all(MILLION)
};

/// Mesa's ANV: few uniform buffers to a stage, small sets. Typical values.
pub(super) const INTEL: DescriptorLimits = DescriptorLimits {
    max_bound_descriptor_sets: 8,
    max_per_set_descriptors: 1024,
    max_push_constants_size: 128,
    max_push_descriptors: 32,
    max_sampler_allocation_count: 64 << 10,
    max_inline_uniform_block_size: 4096,
    max_update_after_bind_descriptors_in_all_pools: MILLION,
    per_stage: INTEL_STAGE,
    per_set: DescriptorMaxima {
        samplers: 6 * 65_535,
        uniform_buffers: 6 * 64,
        storage_buffers: 6 * 65_535,
        sampled_images: 6 * 65_535,
        storage_images: 6 * 65_535,
        input_attachments: 256,
        ..INTEL_STAGE
    },
    per_stage_update_after_bind: INTEL_AFTER,
    per_set_update_after_bind: INTEL_AFTER,
};

const APPLE_STAGE: DescriptorMaxima = DescriptorMaxima {
    samplers: 16,
    uniform_buffers: 31,
    uniform_buffers_dynamic: 8,
    storage_buffers: 31,
    storage_buffers_dynamic: 8,
    sampled_images: 128,
    storage_images: 8,
    input_attachments: 128,
    inline_uniform_blocks: 31,
    resources: 159,
};

const APPLE_AFTER: DescriptorMaxima = DescriptorMaxima {
    samplers: 1024,
    uniform_buffers_dynamic: 8,
    storage_buffers_dynamic: 8,
    inline_uniform_blocks: 31,
    resources: MILLION,
    ..DescriptorMaxima::all(500_000)
};

/// MoltenVK on an M1. Typical values.
pub(super) const APPLE: DescriptorLimits = DescriptorLimits {
    max_bound_descriptor_sets: 8,
    max_per_set_descriptors: 1024,
    max_push_constants_size: 4096,
    max_push_descriptors: 159,
    max_sampler_allocation_count: 1024,
    max_inline_uniform_block_size: 4096,
    max_update_after_bind_descriptors_in_all_pools: MILLION,
    per_stage: APPLE_STAGE,
    per_set: DescriptorMaxima {
        samplers: 80,
        uniform_buffers: 155,
        storage_buffers: 155,
        sampled_images: 640,
        storage_images: 40,
        input_attachments: 640,
        ..APPLE_STAGE
    },
    per_stage_update_after_bind: APPLE_AFTER,
    per_set_update_after_bind: APPLE_AFTER,
};

/// Phones and small boards: somewhat more than Vulkan asks of every device. Typical values.
pub(super) const MOBILE: DescriptorLimits = DescriptorLimits {
    max_push_constants_size: 128,
    per_stage: DescriptorMaxima {
        samplers: 16,
        uniform_buffers: 14,
        storage_buffers: 24,
        sampled_images: 128,
        storage_images: 8,
        input_attachments: 8,
        resources: 158,
        ..LEAST.per_stage
    },
    per_set: DescriptorMaxima {
        samplers: 96,
        uniform_buffers: 84,
        storage_buffers: 144,
        sampled_images: 768,
        storage_images: 48,
        input_attachments: 8,
        ..LEAST.per_set
    },
    ..LEAST
};

/// What lavapipe says of update after bind, which it has not.
const LAVAPIPE_AFTER: DescriptorMaxima = DescriptorMaxima {
    uniform_buffers_dynamic: 16,
    storage_buffers_dynamic: 16,
    inline_uniform_blocks: 8,
    ..DescriptorMaxima::all(64 << 10)
};

/// Mesa's lavapipe: read from 22.3.6.
pub(super) const LAVAPIPE: DescriptorLimits = DescriptorLimits {
    max_bound_descriptor_sets: 8,
    max_per_set_descriptors: 1024,
    max_push_constants_size: 128,
    max_push_descriptors: 32,
    max_sampler_allocation_count: 32 << 10,
    max_inline_uniform_block_size: 4096,
    max_update_after_bind_descriptors_in_all_pools: u32::MAX / 64,
    per_stage_update_after_bind: LAVAPIPE_AFTER,
    per_set_update_after_bind: LAVAPIPE_AFTER,
    per_stage: DescriptorMaxima {
        samplers: 32,
        uniform_buffers: 15,
        uniform_buffers_dynamic: 8,
        storage_buffers: 32,
        storage_buffers_dynamic: 8,
        sampled_images: 128,
        storage_images: 64,
        input_attachments: 8,
        inline_uniform_blocks: 8,
        resources: 128,
    },
    per_set: DescriptorMaxima {
        samplers: 32 << 10,
        uniform_buffers: 256,
        uniform_buffers_dynamic: 256,
        storage_buffers: 256,
        storage_buffers_dynamic: 256,
        sampled_images: 256,
        storage_images: 256,
        input_attachments: 256,
        inline_uniform_blocks: 8,
        resources: u32::MAX,
    },
};

/// SwiftShader. Typical values.
pub(super) const SWIFTSHADER: DescriptorLimits = DescriptorLimits {
    per_stage: DescriptorMaxima {
        samplers: 64,
        uniform_buffers: 15,
        storage_buffers: 30,
        sampled_images: 200,
        storage_images: 16,
        resources: 200,
        ..LEAST.per_stage
    },
    per_set: DescriptorMaxima {
        samplers: 256,
        uniform_buffers: 90,
        storage_buffers: 155,
        sampled_images: 256,
        storage_images: 256,
        ..LEAST.per_set
    },
    ..LEAST
};
