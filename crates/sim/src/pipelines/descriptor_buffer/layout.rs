//! The positions of a set's bindings in a descriptor buffer.

use ash::vk;

use crate::facts::arithmetic::{align_up, host_size, widen};
use crate::facts::profiles::DescriptorBufferLimits;
use crate::objects::descriptors::{LayoutBinding, SetLayoutDescription};

/// The properties of a binding that decide its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BindingShape {
    pub(crate) binding: u32,
    pub(crate) kind: vk::DescriptorType,
    /// Bytes of an element, or of the one byte of an inline uniform block.
    pub(crate) bytes: usize,
    /// Elements; bytes of an inline uniform block.
    pub(crate) count: u32,
    /// Created with `VK_DESCRIPTOR_BINDING_VARIABLE_DESCRIPTOR_COUNT_BIT`.
    pub(crate) variable: bool,
}

/// Shaders read inline uniform blocks as other uniform data, sixteen bytes at a time.
const INLINE_ALIGNMENT: u64 = 16;

impl BindingShape {
    /// The shape of a binding of a set layout.
    pub(crate) fn new(limits: &DescriptorBufferLimits, number: u32, binding: &LayoutBinding) -> Self {
        // A mutable descriptor has space for its largest type.
        let mutable = binding.mutable.iter().filter_map(|&kind| limits.size(kind)).max();
        let bytes = limits.size(binding.kind).or(mutable).unwrap_or(1);
        let variable = binding.flags.contains(vk::DescriptorBindingFlags::VARIABLE_DESCRIPTOR_COUNT);
        Self { binding: number, kind: binding.kind, bytes, count: binding.count, variable }
    }
}

/// The places of a set's bindings. Units: bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SetPlaces {
    /// `vkGetDescriptorSetLayoutSizeEXT`.
    pub(crate) size: u64,
    /// The bytes of a set without an element in the binding of a variable count.
    pub(crate) fixed_size: u64,
    /// Binding, offset and bytes, in the order of the offsets.
    pub(crate) bindings: Vec<(u32, u64, u64)>,
}

impl SetPlaces {
    /// The places of a set layout's bindings.
    pub(crate) fn of(limits: &DescriptorBufferLimits, layout: &SetLayoutDescription) -> Self {
        let shape = |(&number, binding)| BindingShape::new(limits, number, binding);
        Self::new(limits, &layout.bindings.iter().map(shape).collect::<Vec<_>>())
    }

    /// Vulkan leaves the order to the driver. This one goes backwards, so that a program cannot rely on the order of
    /// the binding numbers. It keeps bytes of its own at the start, so that a program cannot rely on a first offset of 0.
    /// A binding with a variable count is the last, as Vulkan demands.
    pub(crate) fn new(limits: &DescriptorBufferLimits, bindings: &[BindingShape]) -> Self {
        let mut ordered = bindings.to_vec();
        ordered.sort_unstable_by_key(|shape| (shape.variable, std::cmp::Reverse(shape.binding)));
        let mut places = Self::default();
        let mut end = if bindings.is_empty() { 0 } else { limits.offset_alignment };
        for shape in ordered {
            let (each, count) = (widen(shape.bytes), u64::from(shape.count));
            let alignment = if shape.kind == vk::DescriptorType::INLINE_UNIFORM_BLOCK {
                INLINE_ALIGNMENT
            } else {
                1 << each.trailing_zeros().min(limits.offset_alignment.trailing_zeros())
            };
            // No overflow: counts are 32 bits, and sizes are below 256.
            let offset = align_up(end, alignment).unwrap_or(end);
            places.bindings.push((shape.binding, offset, each * count));
            if shape.variable {
                places.fixed_size = offset;
            }
            end = offset + each * count;
        }
        if !bindings.iter().any(|shape| shape.variable) {
            places.fixed_size = end;
        }
        places.size = align_up(end, limits.offset_alignment).unwrap_or(end);
        places
    }

    /// `vkGetDescriptorSetLayoutBindingOffsetEXT`; `None` if the set has no such binding.
    pub(crate) fn offset(&self, binding: u32) -> Option<u64> {
        self.bindings.iter().find(|(number, ..)| *number == binding).map(|&(_, offset, _)| offset)
    }

    /// The ranges of bytes of an element: offset and size. There are two if arrays of combined images and samplers are
    /// kept apart; `count` is the array's upper bound.
    pub(crate) fn element(
        &self,
        limits: &DescriptorBufferLimits,
        shape: &BindingShape,
        element: u32,
    ) -> Option<Vec<(u64, usize)>> {
        let start = self.offset(shape.binding)?;
        let at = |size: usize| u64::from(element) * widen(size);
        if shape.kind == vk::DescriptorType::INLINE_UNIFORM_BLOCK {
            return Some(vec![(start, host_size(u64::from(shape.count))?)]);
        }
        if shape.kind == vk::DescriptorType::COMBINED_IMAGE_SAMPLER && !limits.single_array {
            let samplers = start + u64::from(shape.count) * widen(limits.sampled_image);
            let image = (start + at(limits.sampled_image), limits.sampled_image);
            return Some(vec![image, (samplers + at(limits.sampler), limits.sampler)]);
        }
        Some(vec![(start + at(shape.bytes), shape.bytes)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::profiles::ALL;

    const KINDS: [vk::DescriptorType; 8] = [
        vk::DescriptorType::SAMPLER,
        vk::DescriptorType::COMBINED_IMAGE_SAMPLER,
        vk::DescriptorType::SAMPLED_IMAGE,
        vk::DescriptorType::STORAGE_IMAGE,
        vk::DescriptorType::UNIFORM_TEXEL_BUFFER,
        vk::DescriptorType::UNIFORM_BUFFER,
        vk::DescriptorType::STORAGE_BUFFER,
        vk::DescriptorType::INLINE_UNIFORM_BLOCK,
    ];

    fn shapes(limits: &DescriptorBufferLimits) -> Vec<BindingShape> {
        let shape = |(binding, kind)| {
            let bytes = limits.size(kind).unwrap_or(1);
            BindingShape { binding, kind, bytes, count: binding * 3 + 1, variable: false }
        };
        (0_u32..).zip(KINDS).map(shape).collect()
    }

    fn limits() -> impl Iterator<Item = DescriptorBufferLimits> {
        ALL.iter().filter_map(|profile| profile.limits.descriptor_buffer)
    }

    #[test]
    fn bindings_and_their_elements_are_apart_and_inside() {
        for limits in limits() {
            let shapes = shapes(&limits);
            let places = SetPlaces::new(&limits, &shapes);
            let mut taken = Vec::new();
            for shape in &shapes {
                let block = shape.kind == vk::DescriptorType::INLINE_UNIFORM_BLOCK;
                for element in 0..if block { 1 } else { shape.count } {
                    taken.extend(places.element(&limits, shape, element).unwrap());
                }
            }
            taken.sort_unstable();
            assert!(taken.windows(2).all(|pair| pair[0].0 + widen(pair[0].1) <= pair[1].0));
            let (offset, bytes) = *taken.last().unwrap();
            assert!(offset + widen(bytes) <= places.size && places.size % limits.offset_alignment == 0);
            assert_eq!(places.fixed_size, offset + widen(bytes));
        }
    }

    #[test]
    fn offsets_are_not_in_the_order_of_the_bindings_and_none_is_0() {
        for limits in limits() {
            let places = SetPlaces::new(&limits, &shapes(&limits));
            let offsets: Vec<_> = (0..8).map(|binding| places.offset(binding).unwrap()).collect();
            assert!(!offsets.is_sorted() && !offsets.contains(&0));
            assert_eq!(places.offset(8), None);
        }
    }

    #[test]
    fn a_binding_with_a_variable_count_is_the_last() {
        for limits in limits() {
            let mut shapes = shapes(&limits);
            shapes[6].variable = true;
            let places = SetPlaces::new(&limits, &shapes);
            let offset = places.offset(6).unwrap();
            assert!((0..8).all(|binding| places.offset(binding).unwrap() <= offset));
            assert_eq!(places.fixed_size, offset);
        }
    }

    #[test]
    fn a_set_without_bindings_takes_no_bytes() {
        for limits in limits() {
            assert_eq!(SetPlaces::new(&limits, &[]), SetPlaces::default());
        }
    }
}
