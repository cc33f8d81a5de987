//! The sizes of descriptors in bytes.

use ash::vk;

use super::counts::DescriptorKind;
use super::device::DescriptorDevice;
use super::features::DescriptorFeatures;

/// The maximum size of a descriptor in bytes, which `VK_EXT_descriptor_buffer` guarantees.
pub(crate) const MAX_DESCRIPTOR_BYTES: usize = 256;

/// The size in bytes of one descriptor in a descriptor buffer, by type, for one device.
///
/// ```
/// # use sublet::sim; use sublet_descriptors::*;
/// # let gpu = sim::Gpu::new(sim::Profile::by_name("lavapipe").unwrap());
/// # let device = unsafe { DescriptorDevice::new(&DescriptorDeviceCreateInfo::for_gpu(&gpu)) }?;
/// let sizes = DescriptorSizes::of(&device);
/// // This device has no descriptor buffers.
/// assert_eq!(sizes.get(DescriptorKind::StorageBuffer), None);
/// # Ok::<(), CreateDescriptorDeviceError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct DescriptorSizes {
    /// Indexed by [`DescriptorKind::index`]; 0 for none. At most [`MAX_DESCRIPTOR_BYTES`].
    bytes: [u16; DescriptorKind::ALL.len()],
}

impl DescriptorSizes {
    /// Reads the sizes of the device, which depend on [`DescriptorFeatures::ROBUST_BUFFER_ACCESS`].
    #[must_use]
    pub fn of(device: &DescriptorDevice) -> Self {
        let features = device.features();
        let mut bytes = [0; DescriptorKind::ALL.len()];
        if features.contains(DescriptorFeatures::DESCRIPTOR_BUFFER) {
            let all = &device.driver().facts.buffer;
            let is_robust = features.contains(DescriptorFeatures::ROBUST_BUFFER_ACCESS);
            for kind in DescriptorKind::ALL {
                let size = reported_size(all, kind, is_robust).filter(|&size| size <= MAX_DESCRIPTOR_BYTES);
                bytes[kind.index()] = size.and_then(|size| u16::try_from(size).ok()).unwrap_or(0);
            }
        }
        Self { bytes }
    }

    /// Returns the size of a descriptor of this type in bytes. `None` without descriptor buffers, for types that they
    /// do not support, and for invalid reported sizes: 0, or more than 256.
    #[inline]
    #[must_use]
    pub fn get(&self, kind: DescriptorKind) -> Option<u64> {
        let bytes = self.bytes[kind.index()];
        (bytes != 0).then(|| bytes.into())
    }

    /// Returns the size of a mutable descriptor of these types: the maximum of their sizes. `None` if one of them has
    /// no size, or the list is empty.
    #[must_use]
    pub fn largest(&self, kinds: &[DescriptorKind]) -> Option<u64> {
        let mut largest = None;
        for &kind in kinds {
            largest = largest.max(Some(self.get(kind)?));
        }
        largest
    }
}

/// Returns the reported size, which may be invalid.
fn reported_size(
    all: &vk::PhysicalDeviceDescriptorBufferPropertiesEXT<'_>,
    kind: DescriptorKind,
    is_robust: bool,
) -> Option<usize> {
    let either = |robust, usual| if is_robust { robust } else { usual };
    Some(match kind {
        DescriptorKind::Sampler => all.sampler_descriptor_size,
        DescriptorKind::CombinedImageSampler => all.combined_image_sampler_descriptor_size,
        DescriptorKind::SampledImage => all.sampled_image_descriptor_size,
        DescriptorKind::StorageImage => all.storage_image_descriptor_size,
        DescriptorKind::UniformTexelBuffer => {
            either(all.robust_uniform_texel_buffer_descriptor_size, all.uniform_texel_buffer_descriptor_size)
        }
        DescriptorKind::StorageTexelBuffer => {
            either(all.robust_storage_texel_buffer_descriptor_size, all.storage_texel_buffer_descriptor_size)
        }
        DescriptorKind::UniformBuffer => {
            either(all.robust_uniform_buffer_descriptor_size, all.uniform_buffer_descriptor_size)
        }
        DescriptorKind::StorageBuffer => {
            either(all.robust_storage_buffer_descriptor_size, all.storage_buffer_descriptor_size)
        }
        DescriptorKind::InputAttachment => all.input_attachment_descriptor_size,
        DescriptorKind::AccelerationStructure => all.acceleration_structure_descriptor_size,
        DescriptorKind::UniformBufferDynamic
        | DescriptorKind::StorageBufferDynamic
        | DescriptorKind::InlineUniformBlock
        | DescriptorKind::Mutable => return None,
    })
}
