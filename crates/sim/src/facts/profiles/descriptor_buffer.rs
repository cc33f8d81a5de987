//! The sizes of descriptors in memory, which are every driver's own.

use ash::vk;

/// The fields of `VkPhysicalDeviceDescriptorBufferPropertiesEXT`. Units: bytes, but for the counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DescriptorBufferLimits {
    /// `descriptorBufferOffsetAlignment`: of sets in a descriptor buffer, and of its address.
    pub offset_alignment: u64,
    /// `maxDescriptorBufferBindings`: descriptor buffers that are bound at a time.
    pub max_bindings: u32,
    /// `maxResourceDescriptorBufferBindings`.
    pub max_resource_bindings: u32,
    /// `maxSamplerDescriptorBufferBindings`.
    pub max_sampler_bindings: u32,
    /// `samplerDescriptorSize`.
    pub sampler: usize,
    /// `combinedImageSamplerDescriptorSize`.
    pub combined_image_sampler: usize,
    /// `sampledImageDescriptorSize`.
    pub sampled_image: usize,
    /// `storageImageDescriptorSize`.
    pub storage_image: usize,
    /// `inputAttachmentDescriptorSize`.
    pub input_attachment: usize,
    /// `uniformTexelBufferDescriptorSize` and `storageTexelBufferDescriptorSize`.
    pub texel_buffer: usize,
    /// `uniformBufferDescriptorSize`.
    pub uniform_buffer: usize,
    /// `storageBufferDescriptorSize`.
    pub storage_buffer: usize,
    /// `accelerationStructureDescriptorSize`.
    pub acceleration_structure: usize,
    /// `maxSamplerDescriptorBufferRange` and `maxResourceDescriptorBufferRange`.
    pub max_range: u64,
    /// `samplerDescriptorBufferAddressSpaceSize`, and those of resources and of all together.
    pub address_space: u64,
    /// `bufferlessPushDescriptors`.
    pub bufferless_push: bool,
    /// `combinedImageSamplerDescriptorSingleArray`: whether image and sampler of an element are side by side.
    pub single_array: bool,
}

impl DescriptorBufferLimits {
    /// How many bytes a descriptor has in memory. `None` for types that descriptor buffers do not hold as descriptors.
    pub fn size(&self, kind: vk::DescriptorType) -> Option<usize> {
        Some(match kind {
            vk::DescriptorType::SAMPLER => self.sampler,
            vk::DescriptorType::COMBINED_IMAGE_SAMPLER => self.combined_image_sampler,
            vk::DescriptorType::SAMPLED_IMAGE => self.sampled_image,
            vk::DescriptorType::STORAGE_IMAGE => self.storage_image,
            vk::DescriptorType::INPUT_ATTACHMENT => self.input_attachment,
            vk::DescriptorType::UNIFORM_TEXEL_BUFFER | vk::DescriptorType::STORAGE_TEXEL_BUFFER => {
                self.texel_buffer
            }
            vk::DescriptorType::UNIFORM_BUFFER => self.uniform_buffer,
            vk::DescriptorType::STORAGE_BUFFER => self.storage_buffer,
            vk::DescriptorType::ACCELERATION_STRUCTURE_KHR => self.acceleration_structure,
            _ => return None,
        })
    }
}
