//! The contents of a descriptor set that were written, by binding and array element.

use std::collections::BTreeMap;

use ash::vk;

use super::SetLayoutDescription;
use crate::facts::arithmetic::{index, narrow};

/// A descriptor, as a shader of the simulated device finds it. Got from [`Gpu::descriptor`](crate::Gpu::descriptor)
/// and [`Gpu::bound_descriptor`](crate::Gpu::bound_descriptor).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SimulatedDescriptor {
    /// A uniform or storage buffer, dynamic or not.
    Buffer {
        /// The type that it was written as.
        kind: vk::DescriptorType,
        /// The buffer.
        buffer: vk::Buffer,
        /// Its offset in the buffer, in bytes.
        offset: u64,
        /// Its bytes, or `VK_WHOLE_SIZE`.
        range: u64,
    },
    /// A uniform or storage texel buffer.
    Texels {
        /// The type that it was written as.
        kind: vk::DescriptorType,
        /// The view.
        view: vk::BufferView,
    },
    /// A sampler, an image, or both. The one that the type lacks is NULL.
    Image {
        /// The type that it was written as.
        kind: vk::DescriptorType,
        /// The sampler; the layout's own where it is immutable.
        sampler: vk::Sampler,
        /// The view.
        view: vk::ImageView,
        /// The layout that the image has when a shader reads it.
        layout: vk::ImageLayout,
    },
}

impl SimulatedDescriptor {
    /// The type that it was written as: that of a mutable binding is its active one.
    pub fn kind(&self) -> vk::DescriptorType {
        match *self {
            Self::Buffer { kind, .. } | Self::Texels { kind, .. } | Self::Image { kind, .. } => kind,
        }
    }
}

/// The descriptors and inline bytes of a set, or of push descriptors in its place.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Contents {
    descriptors: BTreeMap<(u32, u32), SimulatedDescriptor>,
    /// The bytes of inline uniform blocks. Bytes that were never written are 0.
    inline: BTreeMap<u32, Vec<u8>>,
}

/// One thing that an update does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ContentsChange {
    Descriptor {
        binding: u32,
        element: u32,
        descriptor: SimulatedDescriptor,
    },
    /// Forgets an element: a copy of one that was never written does so.
    Forget {
        binding: u32,
        element: u32,
    },
    Bytes {
        binding: u32,
        offset: u32,
        bytes: Vec<u8>,
    },
}

impl ContentsChange {
    pub(crate) fn binding(&self) -> u32 {
        match *self {
            Self::Descriptor { binding, .. } | Self::Forget { binding, .. } | Self::Bytes { binding, .. } => {
                binding
            }
        }
    }
}

impl Contents {
    /// The initial contents of a set: its immutable samplers.
    pub(crate) fn new(layout: &SetLayoutDescription) -> Self {
        let mut contents = Self::default();
        for (&number, binding) in &layout.bindings {
            if binding.kind != vk::DescriptorType::SAMPLER {
                continue;
            }
            for (element, &sampler) in binding.immutable.iter().enumerate() {
                let descriptor = SimulatedDescriptor::Image {
                    kind: binding.kind,
                    sampler,
                    view: vk::ImageView::null(),
                    layout: vk::ImageLayout::UNDEFINED,
                };
                contents.descriptors.insert((number, narrow(element)), descriptor);
            }
        }
        contents
    }

    /// The descriptor at a binding and element, if one was written.
    pub(crate) fn descriptor(&self, binding: u32, element: u32) -> Option<&SimulatedDescriptor> {
        self.descriptors.get(&(binding, element))
    }

    /// The bytes of an inline uniform block, up to the last one that was written.
    pub(crate) fn inline(&self, binding: u32) -> Option<&[u8]> {
        self.inline.get(&binding).map(Vec::as_slice)
    }

    pub(crate) fn apply(&mut self, changes: &[ContentsChange]) {
        for change in changes {
            match change {
                ContentsChange::Descriptor { binding, element, descriptor } => {
                    self.descriptors.insert((*binding, *element), *descriptor);
                }
                ContentsChange::Forget { binding, element } => {
                    self.descriptors.remove(&(*binding, *element));
                }
                ContentsChange::Bytes { binding, offset, bytes } => {
                    let block = self.inline.entry(*binding).or_default();
                    let (from, to) = (index(*offset), index(*offset) + bytes.len());
                    if block.len() < to {
                        block.resize(to, 0);
                    }
                    block[from..to].copy_from_slice(bytes);
                }
            }
        }
    }
}
