//! The sizes of descriptors in Vulkan's own heaps, and what drivers reserve there.

use ash::vk;

/// The fields of `VkPhysicalDeviceDescriptorHeapPropertiesEXT`. Units: bytes, but for the count.
///
/// Profiles of drivers that have the extension have it in
/// [`LimitsProfile::descriptor_heap`](super::LimitsProfile::descriptor_heap);
/// [`GpuBuilder::descriptor_heap`](crate::GpuBuilder::descriptor_heap) gives it to any.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DescriptorHeapLimits {
    /// `samplerHeapAlignment`: of the address of a sampler heap.
    pub sampler_heap_alignment: u64,
    /// `resourceHeapAlignment`.
    pub resource_heap_alignment: u64,
    /// `maxSamplerHeapSize`.
    pub max_sampler_heap: u64,
    /// `maxResourceHeapSize`.
    pub max_resource_heap: u64,
    /// `minSamplerHeapReservedRange`.
    pub sampler_reserved: u64,
    /// `minSamplerHeapReservedRangeWithEmbedded`.
    pub sampler_reserved_with_embedded: u64,
    /// `minResourceHeapReservedRange`.
    pub resource_reserved: u64,
    /// `samplerDescriptorSize`.
    pub sampler: u64,
    /// `imageDescriptorSize`: of texel buffers, too.
    pub image: u64,
    /// `bufferDescriptorSize`.
    pub buffer: u64,
    /// `samplerDescriptorAlignment`.
    pub sampler_alignment: u64,
    /// `imageDescriptorAlignment`.
    pub image_alignment: u64,
    /// `bufferDescriptorAlignment`.
    pub buffer_alignment: u64,
    /// `maxPushDataSize`.
    pub max_push_data: u64,
    /// `maxDescriptorHeapEmbeddedSamplers`.
    pub max_embedded_samplers: u32,
}

impl DescriptorHeapLimits {
    /// Mesa's driver for Intel GPUs, 26.2.2, on an Arc B580: a report of `vulkaninfo` in a public repository. It
    /// reserves nothing.
    pub const MESA_ANV: Self = Self {
        sampler_heap_alignment: 64,
        resource_heap_alignment: 64,
        max_sampler_heap: 1 << 31,
        max_resource_heap: 1 << 31,
        sampler_reserved: 0,
        sampler_reserved_with_embedded: 0,
        resource_reserved: 0,
        sampler: 32,
        image: 64,
        buffer: 64,
        sampler_alignment: 32,
        image_alignment: 64,
        buffer_alignment: 64,
        max_push_data: 256,
        max_embedded_samplers: 2048,
    };

    /// NVIDIA's driver on a GeForce RTX 5090, as a public repository noted it in 2026. It reserves much. The note
    /// leaves out the alignments of descriptors, which are taken to be their sizes, and the reservation with embedded
    /// samplers, which is taken to be that without them and a descriptor for each.
    pub const NVIDIA: Self = Self {
        sampler_heap_alignment: 32,
        resource_heap_alignment: 32,
        max_sampler_heap: 128 << 10,
        max_resource_heap: 32 << 20,
        sampler_reserved: 512,
        sampler_reserved_with_embedded: 512 + 2032 * 32,
        resource_reserved: 0x1_7a00,
        sampler: 32,
        image: 32,
        buffer: 16,
        sampler_alignment: 32,
        image_alignment: 32,
        buffer_alignment: 16,
        max_push_data: 256,
        max_embedded_samplers: 2032,
    };

    /// How many bytes a descriptor has in a heap. `None` for types that heaps do not hold.
    pub fn size(&self, kind: vk::DescriptorType) -> Option<u64> {
        use vk::DescriptorType as Type;
        Some(match kind {
            Type::SAMPLER => self.sampler,
            Type::SAMPLED_IMAGE
            | Type::STORAGE_IMAGE
            | Type::INPUT_ATTACHMENT
            | Type::UNIFORM_TEXEL_BUFFER
            | Type::STORAGE_TEXEL_BUFFER => self.image,
            Type::UNIFORM_BUFFER | Type::STORAGE_BUFFER | Type::ACCELERATION_STRUCTURE_KHR => self.buffer,
            _ => return None,
        })
    }
}
