//! The kinds of descriptors, and their names in messages.

use ash::vk;
use ash::vk::DescriptorType as Type;

use crate::facts::profiles::LimitsProfile;

/// The parts of a descriptor of each type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DescriptorFamily {
    Buffer,
    Texels,
    Image,
    Inline,
    /// Acceleration structures and the like, which the simulated device does not have.
    Other,
}

pub(crate) fn family(kind: Type) -> DescriptorFamily {
    match kind {
        Type::UNIFORM_BUFFER
        | Type::STORAGE_BUFFER
        | Type::UNIFORM_BUFFER_DYNAMIC
        | Type::STORAGE_BUFFER_DYNAMIC => DescriptorFamily::Buffer,
        Type::UNIFORM_TEXEL_BUFFER | Type::STORAGE_TEXEL_BUFFER => DescriptorFamily::Texels,
        Type::SAMPLER
        | Type::COMBINED_IMAGE_SAMPLER
        | Type::SAMPLED_IMAGE
        | Type::STORAGE_IMAGE
        | Type::INPUT_ATTACHMENT => DescriptorFamily::Image,
        Type::INLINE_UNIFORM_BLOCK => DescriptorFamily::Inline,
        _ => DescriptorFamily::Other,
    }
}

pub(crate) fn is_dynamic(kind: Type) -> bool {
    kind == Type::UNIFORM_BUFFER_DYNAMIC || kind == Type::STORAGE_BUFFER_DYNAMIC
}

pub(crate) fn is_uniform_buffer(kind: Type) -> bool {
    kind == Type::UNIFORM_BUFFER || kind == Type::UNIFORM_BUFFER_DYNAMIC
}

/// The usage that a descriptor of this type needs of its buffer, and what its offset is a multiple of.
pub(crate) fn buffer_needs(kind: Type, limits: &LimitsProfile) -> (vk::BufferUsageFlags, u64) {
    use vk::BufferUsageFlags as Usage;
    match kind {
        Type::UNIFORM_TEXEL_BUFFER => (Usage::UNIFORM_TEXEL_BUFFER, limits.min_texel_buffer_offset_alignment),
        Type::STORAGE_TEXEL_BUFFER => (Usage::STORAGE_TEXEL_BUFFER, limits.min_texel_buffer_offset_alignment),
        _ if is_uniform_buffer(kind) => (Usage::UNIFORM_BUFFER, limits.min_uniform_buffer_offset_alignment),
        _ => (Usage::STORAGE_BUFFER, limits.min_storage_buffer_offset_alignment),
    }
}

/// Returns whether a descriptor of this type has a sampler.
pub(crate) fn has_sampler(kind: Type) -> bool {
    kind == Type::SAMPLER || kind == Type::COMBINED_IMAGE_SAMPLER
}

/// How a message calls a type.
pub(crate) fn type_name(kind: vk::DescriptorType) -> String {
    format!("{kind:?}")
}
