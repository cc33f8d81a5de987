//! A descriptor with the create-info of its view or sampler.

use ash::vk;

use super::descriptor::{Descriptor, ImageDescriptor};

/// A descriptor for any heap: the handle, for sets and descriptor buffers, and its create-info, for heaps of
/// `VK_EXT_descriptor_heap`. Such a heap ignores handles, so programs that use only it may pass null handles and create
/// no views or samplers.
///
/// ```
/// use ash::vk;
/// use sublet_descriptors::{Descriptor, DescriptorKind, DescriptorSource};
/// let info = vk::SamplerCreateInfo::default().min_filter(vk::Filter::LINEAR);
/// let source = DescriptorSource::Sampler { sampler: vk::Sampler::null(), info: &info };
/// assert_eq!(source.descriptor().kind(), DescriptorKind::Sampler);
/// ```
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum DescriptorSource<'a> {
    /// A sampler.
    Sampler {
        /// The handle.
        sampler: vk::Sampler,
        /// The create-info of the sampler.
        info: &'a vk::SamplerCreateInfo<'a>,
    },
    /// A sampled image.
    SampledImage {
        /// View and layout.
        image: ImageDescriptor,
        /// The create-info of the view.
        info: &'a vk::ImageViewCreateInfo<'a>,
    },
    /// A storage image.
    StorageImage {
        /// View and layout.
        image: ImageDescriptor,
        /// The create-info of the view.
        info: &'a vk::ImageViewCreateInfo<'a>,
    },
    /// A descriptor that needs no create-info in any heap: for example a buffer with its address.
    Other(Descriptor),
}

impl DescriptorSource<'_> {
    /// Returns the descriptor for sets and descriptor buffers.
    #[must_use]
    pub const fn descriptor(&self) -> Descriptor {
        match *self {
            Self::Sampler { sampler, .. } => Descriptor::Sampler(sampler),
            Self::SampledImage { image, .. } => Descriptor::SampledImage(image),
            Self::StorageImage { image, .. } => Descriptor::StorageImage(image),
            Self::Other(descriptor) => descriptor,
        }
    }
}

impl From<Descriptor> for DescriptorSource<'_> {
    fn from(descriptor: Descriptor) -> Self {
        Self::Other(descriptor)
    }
}
