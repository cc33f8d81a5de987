//! The number of descriptors of each type: required by a set, or left in a pool.

use std::fmt;

use ash::vk;

use sublet_engines::Counts;

/// Declares the kinds: each with the type of Vulkan, and what its documentation adds.
macro_rules! kinds {
    ($($kind:ident $type:ident $($note:literal)?;)*) => {
        /// The types of descriptors that are counted, in the order of [`DescriptorKind::ALL`].
        ///
        /// ```
        /// use ash::vk;
        /// use sublet_descriptors::DescriptorKind;
        /// let kind = DescriptorKind::from_vk(vk::DescriptorType::STORAGE_BUFFER);
        /// assert_eq!(kind, Some(DescriptorKind::StorageBuffer));
        /// assert_eq!(DescriptorKind::StorageBuffer.to_vk(), vk::DescriptorType::STORAGE_BUFFER);
        /// ```
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        #[non_exhaustive]
        pub enum DescriptorKind {
            $(
                #[doc = concat!("`VK_DESCRIPTOR_TYPE_", stringify!($type), "`" $(, $note)?, ".")]
                $kind,
            )*
        }

        impl DescriptorKind {
            /// All types, in the order of Vulkan's numbers.
            pub const ALL: [Self; 14] = [$(Self::$kind),*];

            /// Returns the Vulkan value.
            #[must_use]
            pub const fn to_vk(self) -> vk::DescriptorType {
                match self {
                    $(Self::$kind => vk::DescriptorType::$type,)*
                }
            }
        }
    };
}

kinds! {
    Sampler SAMPLER;
    CombinedImageSampler COMBINED_IMAGE_SAMPLER;
    SampledImage SAMPLED_IMAGE;
    StorageImage STORAGE_IMAGE;
    UniformTexelBuffer UNIFORM_TEXEL_BUFFER;
    StorageTexelBuffer STORAGE_TEXEL_BUFFER;
    UniformBuffer UNIFORM_BUFFER;
    StorageBuffer STORAGE_BUFFER;
    UniformBufferDynamic UNIFORM_BUFFER_DYNAMIC;
    StorageBufferDynamic STORAGE_BUFFER_DYNAMIC;
    InputAttachment INPUT_ATTACHMENT;
    InlineUniformBlock INLINE_UNIFORM_BLOCK ": counted in bytes, as in Vulkan";
    AccelerationStructure ACCELERATION_STRUCTURE_KHR;
    Mutable MUTABLE_EXT;
}

impl DescriptorKind {
    /// Returns the kind of a type; `None` for types of vendor extensions.
    #[must_use]
    pub fn from_vk(descriptor_type: vk::DescriptorType) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.to_vk() == descriptor_type)
    }

    /// Returns the index in [`Self::ALL`].
    #[expect(clippy::as_conversions, reason = "the kinds are few, and numbered from 0 on")]
    pub(super) const fn index(self) -> usize {
        self as usize
    }
}

/// The length of the array, a power of two so that a few vector instructions compare all counts.
const SLOTS: usize = 16;
/// The slot for the number of inline uniform block bindings, which pools count in addition to their bytes.
const INLINE_BINDINGS: usize = 14;
const _: () = assert!(DescriptorKind::ALL.len() <= INLINE_BINDINGS && INLINE_BINDINGS < SLOTS);

/// The number of descriptors of each type.
///
/// Inline uniform blocks are counted in bytes, as in Vulkan, and their bindings separately.
///
/// ```
/// use sublet_descriptors::{DescriptorCounts, DescriptorKind};
/// let mut pool = DescriptorCounts::new().with(DescriptorKind::SampledImage, 10);
/// let set = DescriptorCounts::new().with(DescriptorKind::SampledImage, 4);
/// assert!(set.fits(&pool));
/// pool.take(&set);
/// assert_eq!(pool.get(DescriptorKind::SampledImage), 6);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(align(64))]
pub struct DescriptorCounts {
    slots: [u32; SLOTS],
}

impl DescriptorCounts {
    /// Returns counts that are all zero.
    #[must_use]
    pub const fn new() -> Self {
        Self { slots: [0; SLOTS] }
    }

    /// Adds `count` of one kind; saturates at `u32::MAX`.
    #[must_use]
    pub const fn with(mut self, kind: DescriptorKind, count: u32) -> Self {
        let slot = kind.index();
        self.slots[slot] = self.slots[slot].saturating_add(count);
        self
    }

    /// Adds bindings of inline uniform blocks; saturates.
    #[must_use]
    pub const fn with_inline_uniform_bindings(mut self, bindings: u32) -> Self {
        self.slots[INLINE_BINDINGS] = self.slots[INLINE_BINDINGS].saturating_add(bindings);
        self
    }

    /// Returns the count of one kind.
    #[must_use]
    pub const fn get(&self, kind: DescriptorKind) -> u32 {
        self.slots[kind.index()]
    }

    /// Returns the number of inline uniform block bindings.
    #[must_use]
    pub const fn inline_uniform_bindings(&self) -> u32 {
        self.slots[INLINE_BINDINGS]
    }

    /// Returns true if all counts are zero.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        self.slots == [0; SLOTS]
    }

    /// Returns the number of descriptors of all types; an inline uniform block counts as one for each binding.
    #[must_use]
    pub fn total(&self) -> u64 {
        let inline = DescriptorKind::InlineUniformBlock.index();
        let of = |(slot, &count): (usize, &u32)| if slot == inline { 0 } else { u64::from(count) };
        self.slots.iter().enumerate().map(of).sum()
    }

    /// Returns true if `room` contains all of these counts. O(1), a few instructions.
    #[inline]
    #[must_use]
    pub fn fits(&self, room: &Self) -> bool {
        let mut fits = true;
        for (need, have) in self.slots.iter().zip(&room.slots) {
            fits &= need <= have;
        }
        fits
    }

    /// Subtracts `counts`; saturates at zero.
    #[inline]
    pub fn take(&mut self, counts: &Self) {
        debug_assert!(counts.fits(self), "more is taken than there is");
        *self = self.minus(counts);
    }

    /// Adds `counts`; saturates at `u32::MAX`.
    #[inline]
    pub fn put(&mut self, counts: &Self) {
        *self = self.zip(counts, u32::saturating_add);
    }

    /// Multiplies each count by `factor`; saturates at `u32::MAX`.
    #[must_use]
    pub fn times(mut self, factor: u32) -> Self {
        for slot in &mut self.slots {
            *slot = slot.saturating_mul(factor);
        }
        self
    }

    /// Returns the difference of each count; saturates at zero.
    #[must_use]
    pub(crate) fn minus(self, counts: &Self) -> Self {
        self.zip(counts, u32::saturating_sub)
    }

    /// Combines each pair of counts with `choose`.
    #[inline]
    #[must_use]
    pub(crate) fn zip(mut self, other: &Self, choose: impl Fn(u32, u32) -> u32) -> Self {
        for (slot, other) in self.slots.iter_mut().zip(&other.slots) {
            *slot = choose(*slot, *other);
        }
        self
    }

    /// Returns the larger count of each kind.
    #[must_use]
    pub fn max(self, other: &Self) -> Self {
        self.zip(other, u32::max)
    }

    /// Iterates over the kinds with non-zero counts, in the order of [`DescriptorKind::ALL`].
    pub fn iter(&self) -> impl Iterator<Item = (DescriptorKind, u32)> + '_ {
        DescriptorKind::ALL.into_iter().map(|kind| (kind, self.get(kind))).filter(|&(_, count)| count != 0)
    }
}

impl Counts for DescriptorCounts {
    const ZERO: Self = Self::new();

    #[inline]
    fn fits(&self, room: &Self) -> bool {
        self.fits(room)
    }

    /// Subtracts without saturation: the engine has checked that the counts fit.
    #[inline]
    fn take(&mut self, counts: &Self) {
        debug_assert!(counts.fits(self), "more is taken than there is");
        *self = self.zip(counts, u32::wrapping_sub);
    }

    #[inline]
    fn put(&mut self, counts: &Self) {
        self.put(counts);
    }
}

impl fmt::Debug for DescriptorCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut map = f.debug_map();
        for (kind, count) in self.iter() {
            map.entry(&kind, &count);
        }
        if self.inline_uniform_bindings() != 0 {
            map.entry(&"inline uniform bindings", &self.inline_uniform_bindings());
        }
        map.finish()
    }
}

/// The format for error messages: `3 SampledImage, 1 Sampler`.
impl fmt::Display for DescriptorCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut first = true;
        for (kind, count) in self.iter() {
            write!(f, "{}{count} {kind:?}", if first { "" } else { ", " })?;
            first = false;
        }
        if first { f.write_str("no descriptors") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_and_types_are_the_same_thing() {
        for (at, kind) in DescriptorKind::ALL.into_iter().enumerate() {
            assert_eq!(kind.index(), at);
            assert_eq!(DescriptorKind::from_vk(kind.to_vk()), Some(kind));
        }
    }

    #[test]
    fn every_kind_is_counted_for_itself() {
        for kind in DescriptorKind::ALL {
            let one = DescriptorCounts::new().with(kind, 1);
            assert!(!one.is_zero() && !one.fits(&DescriptorCounts::new()));
            for other in DescriptorKind::ALL {
                let room = DescriptorCounts::new().with(other, 1);
                assert_eq!(one.fits(&room), kind == other);
            }
        }
        let bindings = DescriptorCounts::new().with_inline_uniform_bindings(1);
        assert!(!bindings.fits(&DescriptorCounts::new().with(DescriptorKind::InlineUniformBlock, 64)));
    }

    #[test]
    fn sums_stop_at_the_end() {
        let many = DescriptorCounts::new().with(DescriptorKind::Sampler, u32::MAX);
        assert_eq!(many.with(DescriptorKind::Sampler, 1), many);
        assert_eq!(many.times(2), many);
        let mut sum = many;
        sum.put(&many);
        assert_eq!(sum, many);
    }

    #[test]
    fn an_error_names_what_is_there() {
        let counts =
            DescriptorCounts::new().with(DescriptorKind::Sampler, 1).with(DescriptorKind::Mutable, 2);
        assert_eq!(counts.to_string(), "1 Sampler, 2 Mutable");
        assert_eq!(DescriptorCounts::new().to_string(), "no descriptors");
    }
}
