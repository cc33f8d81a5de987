//! The limits of a device for the descriptors of a heap.

use super::super::counts::DescriptorKind;
use super::super::device::DescriptorDevice;
use super::create_info::CreateHeapError;

/// The descriptors of a heap, for comparison with limits.
pub(super) struct HeapShape<'a> {
    pub(super) types: &'a [DescriptorKind],
    pub(super) slots: u32,
    /// True if one array holds all types.
    pub(super) is_one: bool,
}

/// A limit of the device, and the types that it counts.
struct Limit {
    name: &'static str,
    allowed: u32,
    counts: fn(DescriptorKind) -> bool,
}

fn is_sampler(kind: DescriptorKind) -> bool {
    matches!(kind, DescriptorKind::Sampler | DescriptorKind::CombinedImageSampler)
}

fn is_sampled_image(kind: DescriptorKind) -> bool {
    matches!(
        kind,
        DescriptorKind::SampledImage
            | DescriptorKind::CombinedImageSampler
            | DescriptorKind::UniformTexelBuffer
    )
}

fn is_storage_image(kind: DescriptorKind) -> bool {
    matches!(kind, DescriptorKind::StorageImage | DescriptorKind::StorageTexelBuffer)
}

fn is_uniform_buffer(kind: DescriptorKind) -> bool {
    kind == DescriptorKind::UniformBuffer
}

fn is_storage_buffer(kind: DescriptorKind) -> bool {
    kind == DescriptorKind::StorageBuffer
}

/// Returns true for types other than samplers. Acceleration structures have separate limits, which the layout query
/// covers.
fn is_resource(kind: DescriptorKind) -> bool {
    !matches!(kind, DescriptorKind::Sampler | DescriptorKind::AccelerationStructure)
}

/// Checks the limits of update-after-bind sets if `after_bind`, otherwise those of other sets.
pub(super) fn check(
    device: &DescriptorDevice,
    wanted: &HeapShape<'_>,
    after_bind: bool,
) -> Result<(), CreateHeapError> {
    let limits = if after_bind { of_update_after_bind(device) } else { of_other_sets(device) };
    for Limit { name, allowed, counts } in limits {
        let arrays = wanted.types.iter().filter(|&&kind| counts(kind)).count();
        // A mutable descriptor counts once towards each limit of its types.
        let arrays: u64 =
            if wanted.is_one { u64::from(arrays != 0) } else { sublet_engines::cast::widen(arrays) };
        let asked = arrays * u64::from(wanted.slots);
        if asked > u64::from(allowed) {
            return Err(CreateHeapError::Limit { limit: name, asked, allowed: allowed.into() });
        }
    }
    Ok(())
}

macro_rules! limits {
    ($of:expr; $($name:literal $field:ident $counts:ident),* $(,)?) => {
        [$(Limit { name: $name, allowed: $of.$field, counts: $counts }),*]
    };
}

fn of_update_after_bind(device: &DescriptorDevice) -> [Limit; 11] {
    let of = &device.driver().facts.indexing;
    limits![of;
        "maxDescriptorSetUpdateAfterBindSamplers" max_descriptor_set_update_after_bind_samplers is_sampler,
        "maxDescriptorSetUpdateAfterBindSampledImages" max_descriptor_set_update_after_bind_sampled_images is_sampled_image,
        "maxDescriptorSetUpdateAfterBindStorageImages" max_descriptor_set_update_after_bind_storage_images is_storage_image,
        "maxDescriptorSetUpdateAfterBindUniformBuffers" max_descriptor_set_update_after_bind_uniform_buffers is_uniform_buffer,
        "maxDescriptorSetUpdateAfterBindStorageBuffers" max_descriptor_set_update_after_bind_storage_buffers is_storage_buffer,
        "maxPerStageDescriptorUpdateAfterBindSamplers" max_per_stage_descriptor_update_after_bind_samplers is_sampler,
        "maxPerStageDescriptorUpdateAfterBindSampledImages" max_per_stage_descriptor_update_after_bind_sampled_images is_sampled_image,
        "maxPerStageDescriptorUpdateAfterBindStorageImages" max_per_stage_descriptor_update_after_bind_storage_images is_storage_image,
        "maxPerStageDescriptorUpdateAfterBindUniformBuffers" max_per_stage_descriptor_update_after_bind_uniform_buffers is_uniform_buffer,
        "maxPerStageDescriptorUpdateAfterBindStorageBuffers" max_per_stage_descriptor_update_after_bind_storage_buffers is_storage_buffer,
        "maxPerStageUpdateAfterBindResources" max_per_stage_update_after_bind_resources is_resource,
    ]
}

fn of_other_sets(device: &DescriptorDevice) -> [Limit; 11] {
    let of = device.limits();
    limits![of;
        "maxDescriptorSetSamplers" max_descriptor_set_samplers is_sampler,
        "maxDescriptorSetSampledImages" max_descriptor_set_sampled_images is_sampled_image,
        "maxDescriptorSetStorageImages" max_descriptor_set_storage_images is_storage_image,
        "maxDescriptorSetUniformBuffers" max_descriptor_set_uniform_buffers is_uniform_buffer,
        "maxDescriptorSetStorageBuffers" max_descriptor_set_storage_buffers is_storage_buffer,
        "maxPerStageDescriptorSamplers" max_per_stage_descriptor_samplers is_sampler,
        "maxPerStageDescriptorSampledImages" max_per_stage_descriptor_sampled_images is_sampled_image,
        "maxPerStageDescriptorStorageImages" max_per_stage_descriptor_storage_images is_storage_image,
        "maxPerStageDescriptorUniformBuffers" max_per_stage_descriptor_uniform_buffers is_uniform_buffer,
        "maxPerStageDescriptorStorageBuffers" max_per_stage_descriptor_storage_buffers is_storage_buffer,
        "maxPerStageResources" max_per_stage_resources is_resource,
    ]
}
