//! How large descriptors are as bytes.
#![forbid(unsafe_code)]

use ash::vk;

use super::counts::DescriptorKind;
use super::device::DescriptorDevice;
use super::features::DescriptorFeatures;

/// The most bytes that a descriptor can have: `VK_EXT_descriptor_buffer` promises it of every size.
pub(crate) const MAX_DESCRIPTOR_BYTES: usize = 256;

/// Bytes of one descriptor in a descriptor buffer, by type: each device has its own.
///
/// ```
/// # use sublet::{descriptor::*, sim};
/// # let gpu = sim::Gpu::new(sim::Profile::by_name("lavapipe").unwrap());
/// # // SAFETY: instance and device are live, and outlive everything that is made from the value.
/// # let device = unsafe { DescriptorDevice::new(&DescriptorDeviceCreateInfo::for_gpu(&gpu)) }?;
/// let sizes = DescriptorSizes::of(&device);
/// // This device has no descriptor buffers.
/// assert_eq!(sizes.get(DescriptorKind::StorageBuffer), None);
/// # Ok::<(), CreateDescriptorDeviceError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct DescriptorSizes {
    /// By [`DescriptorKind::index`]; 0 for none. At most [`MAX_DESCRIPTOR_BYTES`].
    bytes: [u16; DescriptorKind::ALL.len()],
}

impl DescriptorSizes {
    /// What the device says, with [`DescriptorFeatures::ROBUST_BUFFER_ACCESS`] taken into account.
    #[must_use]
    pub fn of(device: &DescriptorDevice) -> Self {
        let features = device.features();
        let mut bytes = [0; DescriptorKind::ALL.len()];
        if features.contains(DescriptorFeatures::DESCRIPTOR_BUFFER) {
            let all = &device.driver().facts.buffer;
            let is_robust = features.contains(DescriptorFeatures::ROBUST_BUFFER_ACCESS);
            for kind in DescriptorKind::ALL {
                let size = said(all, kind, is_robust).filter(|&size| size <= MAX_DESCRIPTOR_BYTES);
                bytes[kind.index()] = size.and_then(|size| u16::try_from(size).ok()).unwrap_or(0);
            }
        }
        Self { bytes }
    }

    /// Bytes of a descriptor of this type. `None` where there are no descriptor buffers, for types that cannot be in
    /// one, and for what a device must not answer: 0, and more than 256.
    #[inline]
    #[must_use]
    pub fn get(&self, kind: DescriptorKind) -> Option<u64> {
        let bytes = self.bytes[kind.index()];
        (bytes != 0).then(|| bytes.into())
    }

    /// Bytes of a mutable descriptor that takes these types: those of the largest. `None` if one of them has no size,
    /// or there is none.
    #[must_use]
    pub fn largest(&self, kinds: &[DescriptorKind]) -> Option<u64> {
        let mut largest = None;
        for &kind in kinds {
            largest = largest.max(Some(self.get(kind)?));
        }
        largest
    }
}

/// What the device says, whether it can be or not.
fn said(
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
