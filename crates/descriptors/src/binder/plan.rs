//! The properties of a set layout that the binder needs: the staging position of each descriptor, and its form for the
//! driver.
//!
//! ```text
//!   elements   one for each descriptor, and one for each inline uniform block          bits of masks
//!   words      what a template reads: 3 for images and buffers, 1 for views,           sets, push descriptors
//!              an inline uniform block's bytes
//!   bytes      as the driver lays them out                                             descriptor buffers
//! ```
#![expect(unsafe_code, reason = "calls Vulkan, or has its caller promise what Vulkan asks")]

use ash::vk;

use super::error::PipelineLayoutError;
use crate::counts::DescriptorKind;
use crate::device::DescriptorDevice;
use crate::layout::{SetLayout, SetLayoutBinding};
use crate::models::BindingModel;
use crate::sizes::DescriptorSizes;
use sublet_engines::Alignment;
use sublet_engines::cast::{host_size, index};

/// The way in which descriptors of a set reach the device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum BindMethod {
    /// A `VkDescriptorSet` that is written and bound.
    Set,
    /// Push descriptors.
    Push,
    /// Bytes in a descriptor buffer, bound by offset.
    Buffer,
    /// The program binds its own set: nothing is staged.
    Elsewhere,
}

/// The byte layout of a binding.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct BindingBytes {
    /// The offset of the first descriptor in the set, in bytes.
    pub(super) offset: usize,
    /// The distance between descriptors in bytes.
    pub(super) stride: usize,
    /// The sizes of an image and of a sampler, for combined image samplers whose arrays are split into an array of
    /// images and an array of samplers.
    pub(super) split: Option<(usize, usize)>,
}

#[derive(Clone, Debug)]
pub(super) struct BindingPlan {
    pub(super) number: u32,
    pub(super) kind: DescriptorKind,
    /// The number of descriptors; for an inline uniform block, the number of bytes.
    pub(super) count: u32,
    pub(super) first_element: u32,
    /// The number of elements: 0 if the samplers are immutable.
    pub(super) elements: u32,
    pub(super) first_word: usize,
    /// The number of words of a descriptor.
    pub(super) stride: usize,
    /// The index of its first dynamic offset.
    pub(super) first_dynamic: usize,
    pub(super) bytes: BindingBytes,
}

impl BindingPlan {
    pub(super) fn is_inline(&self) -> bool {
        self.kind == DescriptorKind::InlineUniformBlock
    }

    pub(super) fn is_dynamic(&self) -> bool {
        is_dynamic(self.kind)
    }
}

/// A set of a pipeline layout.
#[derive(Debug)]
pub(super) struct SetPlan {
    pub(super) layout: SetLayout,
    pub(super) way: BindMethod,
    pub(super) bindings: Box<[BindingPlan]>,
    pub(super) elements: u32,
    pub(super) words: usize,
    pub(super) dynamics: usize,
    /// The size in a descriptor buffer, a multiple of the offset alignment.
    pub(super) bytes: usize,
    /// True if the set has mutable descriptors, each with its own type.
    pub(super) is_mutable: bool,
    /// The template for sets whose elements are all staged. The pipeline layout owns it.
    pub(super) template: Option<vk::DescriptorUpdateTemplate>,
    /// The same for push descriptors, indexed by bind point.
    pub(super) push_templates: [Option<vk::DescriptorUpdateTemplate>; 2],
}

fn is_dynamic(kind: DescriptorKind) -> bool {
    matches!(kind, DescriptorKind::UniformBufferDynamic | DescriptorKind::StorageBufferDynamic)
}

/// Returns the number of words that a template reads for a descriptor: a `VkDescriptorImageInfo`, a
/// `VkDescriptorBufferInfo`, or a handle.
fn words_of(kind: DescriptorKind) -> usize {
    match kind {
        DescriptorKind::UniformTexelBuffer
        | DescriptorKind::StorageTexelBuffer
        | DescriptorKind::AccelerationStructure => 1,
        _ => 3,
    }
}
/// True if the staged words of images have the stride of a `VkDescriptorImageInfo` array. Writes require this stride; a
/// template takes any stride as a parameter.
pub(super) const IMAGES_ARE_DENSE: bool = size_of::<vk::DescriptorImageInfo>() == 24;
// The size is 20 if 8-byte integers have an alignment of 4, as on 32-bit x86 Unix.
const _: () = assert!(IMAGES_ARE_DENSE || size_of::<vk::DescriptorImageInfo>() == 20);
const _: () = assert!(size_of::<vk::DescriptorBufferInfo>() == 24);
const _: () = assert!(size_of::<vk::BufferView>() == 8 && size_of::<vk::AccelerationStructureKHR>() == 8);

fn bind_method_of(device: &DescriptorDevice, layout: &SetLayout) -> BindMethod {
    let embedded = vk::DescriptorSetLayoutCreateFlags::EMBEDDED_IMMUTABLE_SAMPLERS_EXT;
    if layout.flags().contains(embedded) {
        BindMethod::Elsewhere
    } else if layout.is_push_descriptor() {
        BindMethod::Push
    } else if device.model() == BindingModel::Buffer {
        BindMethod::Buffer
    } else {
        BindMethod::Set
    }
}

impl SetPlan {
    /// Creates a plan without templates.
    ///
    /// # Safety
    /// The layout's handle is live.
    pub(super) unsafe fn new(
        device: &DescriptorDevice,
        set: u32,
        layout: &SetLayout,
    ) -> Result<Self, PipelineLayoutError> {
        let way = bind_method_of(device, layout);
        let mut plan = Self {
            layout: layout.clone(),
            way,
            bindings: Box::default(),
            elements: 0,
            words: 0,
            dynamics: 0,
            bytes: 0,
            is_mutable: false,
            template: None,
            push_templates: [None; 2],
        };
        if way == BindMethod::Elsewhere {
            return Ok(plan);
        }
        let used = || layout.bindings().iter().filter(|binding| binding.count != 0);
        let mut bindings = Vec::with_capacity(used().count());
        for binding in used() {
            bindings.push(plan.add(binding));
        }
        if way == BindMethod::Buffer {
            // SAFETY: the caller promises that the layout is live; `check` in `layout` verified that it was created for
            // descriptor buffers.
            unsafe { plan.lay_out(device, set, &mut bindings) }?;
        }
        plan.bindings = bindings.into();
        Ok(plan)
    }

    /// Assigns positions to a binding, and adds it to the totals.
    fn add(&mut self, binding: &SetLayoutBinding) -> BindingPlan {
        let kind = binding.kind;
        let is_inline = kind == DescriptorKind::InlineUniformBlock;
        let in_layout = binding.immutable_samplers
            && kind == DescriptorKind::Sampler
            // The driver does not write immutable samplers into a buffer, so the program must.
            && self.way != BindMethod::Buffer;
        let elements = match () {
            () if in_layout => 0,
            () if is_inline => 1,
            () => binding.count,
        };
        let stride = words_of(kind);
        let words = match () {
            () if self.way == BindMethod::Buffer || in_layout => 0,
            () if is_inline => index(binding.count).div_ceil(size_of::<u64>()),
            () => index(binding.count).saturating_mul(stride),
        };
        let plan = BindingPlan {
            number: binding.binding,
            kind,
            count: binding.count,
            first_element: self.elements,
            elements,
            first_word: self.words,
            stride,
            first_dynamic: self.dynamics,
            bytes: BindingBytes::default(),
        };
        self.elements = self.elements.saturating_add(elements);
        self.words = self.words.saturating_add(words);
        if is_dynamic(kind) {
            self.dynamics += index(binding.count);
        }
        self.is_mutable |= kind == DescriptorKind::Mutable;
        plan
    }

    /// Queries the positions of descriptors in a descriptor buffer from the driver.
    ///
    /// # Safety
    /// The layout is live, and was created for descriptor buffers.
    unsafe fn lay_out(
        &mut self,
        device: &DescriptorDevice,
        set: u32,
        bindings: &mut [BindingPlan],
    ) -> Result<(), PipelineLayoutError> {
        let handle = self.layout.handle();
        // SAFETY: the caller's promise: the layout is live, and was created for descriptor buffers.
        let size = unsafe { device.driver().set_layout_size(handle) };
        let aligned = offset_alignment(device).align_up(size).and_then(host_size);
        // Larger sets do not fit an address space.
        let too_large = |size: &usize| isize::try_from(*size).is_err();
        let Some(bytes) = aligned.filter(|size| !too_large(size)) else {
            return Err(PipelineLayoutError::SetSize { set, bytes: size });
        };
        let sizes = DescriptorSizes::of(device);
        let properties = &device.driver().facts.buffer;
        for binding in bindings {
            let kind = binding.kind;
            // SAFETY: the caller promises that the layout is live and was created for descriptor buffers; it has the
            // binding.
            let offset = unsafe { device.driver().binding_offset(handle, binding.number) };
            let stride = match kind {
                DescriptorKind::InlineUniformBlock => Some(1),
                DescriptorKind::Mutable => {
                    let types = self.layout.binding(binding.number).map(|binding| &binding.mutable_types);
                    let kinds = types.map(|types| types.iter().copied().filter_map(DescriptorKind::from_vk));
                    let each = kinds.into_iter().flatten().map(|kind| sizes.get(kind));
                    each.reduce(|largest, size| Some(largest?.max(size?))).flatten()
                }
                kind => sizes.get(kind),
            };
            let Some(stride) = stride else {
                return Err(PipelineLayoutError::NotInBuffers { set, binding: binding.number, kind });
            };
            let split = kind == DescriptorKind::CombinedImageSampler
                && properties.combined_image_sampler_descriptor_single_array == vk::FALSE;
            let parts =
                || Some((sizes.get(DescriptorKind::SampledImage)?, sizes.get(DescriptorKind::Sampler)?));
            let split = parts().filter(|_| split);
            let each = split.map_or(stride, |(image, sampler)| (image + sampler).max(stride));
            let end = each.checked_mul(u64::from(binding.count)).and_then(|bytes| bytes.checked_add(offset));
            if end.is_none_or(|end| end > size) {
                return Err(PipelineLayoutError::BindingOffset {
                    set,
                    binding: binding.number,
                    offset,
                    bytes: size,
                });
            }
            // Cannot fail: all values are below the size of the set, which fits `usize`.
            let host = |value: u64| host_size(value).unwrap_or(0);
            binding.bytes = BindingBytes {
                offset: host(offset),
                stride: host(stride),
                split: split.map(|(image, sampler)| (host(image), host(sampler))),
            };
        }
        self.bytes = bytes;
        Ok(())
    }

    /// Returns the plan of a binding by its number. O(log n).
    #[inline]
    pub(super) fn binding(&self, number: u32) -> Option<&BindingPlan> {
        // Most layouts number their bindings from 0 without gaps.
        if let Some(binding) = self.bindings.get(index(number)).filter(|binding| binding.number == number) {
            return Some(binding);
        }
        let at = self.bindings.binary_search_by_key(&number, |binding| binding.number).ok()?;
        self.bindings.get(at)
    }

    /// Returns true if the set must be bound without staging: it contains only immutable samplers.
    pub(super) fn is_staged_by_itself(&self) -> bool {
        self.way == BindMethod::Set && self.elements == 0 && !self.bindings.is_empty()
    }

    /// Returns the entries of a template: one for each binding with elements.
    pub(super) fn template_entries(&self) -> Vec<vk::DescriptorUpdateTemplateEntry> {
        let staged = self.bindings.iter().filter(|binding| binding.elements != 0);
        staged
            .map(|binding| {
                vk::DescriptorUpdateTemplateEntry::default()
                    .dst_binding(binding.number)
                    .dst_array_element(0)
                    .descriptor_count(binding.count)
                    .descriptor_type(binding.kind.to_vk())
                    .offset(binding.first_word * size_of::<u64>())
                    .stride(binding.stride * size_of::<u64>())
            })
            .collect()
    }

    /// Returns true if templates can write the set: each binding must have one type.
    pub(super) fn may_have_template(&self) -> bool {
        !self.is_mutable && self.elements != 0 && matches!(self.way, BindMethod::Set | BindMethod::Push)
    }
}

/// Returns the alignment of offsets in descriptor buffers. It is a power of two, even if the driver's value is not.
pub(super) fn offset_alignment(device: &DescriptorDevice) -> Alignment {
    Alignment::at_least(device.driver().facts.buffer.descriptor_buffer_offset_alignment)
}
