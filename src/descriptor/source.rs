//! A descriptor with what its view or sampler was created from.
#![forbid(unsafe_code)]

use ash::vk;

use super::descriptor::{Descriptor, ImageDescriptor};

/// A descriptor for any heap: the handle, which sets and descriptor buffers take, and what it was created from, which
/// heaps of `VK_EXT_descriptor_heap` take instead. Such a heap looks at no handle: programs for it alone may leave the
/// views and samplers out, and give null handles.
///
/// ```
/// use ash::vk;
/// use sublet::descriptor::{Descriptor, DescriptorKind, DescriptorSource};
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
        /// What it was created from.
        info: &'a vk::SamplerCreateInfo<'a>,
    },
    /// An image that is sampled.
    SampledImage {
        /// View and layout.
        image: ImageDescriptor,
        /// What the view was created from.
        info: &'a vk::ImageViewCreateInfo<'a>,
    },
    /// An image that is read and written.
    StorageImage {
        /// View and layout.
        image: ImageDescriptor,
        /// What the view was created from.
        info: &'a vk::ImageViewCreateInfo<'a>,
    },
    /// A descriptor that says all that every heap wants: one of a buffer with its address.
    Other(Descriptor),
}

impl DescriptorSource<'_> {
    /// What sets and descriptor buffers take of it.
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
