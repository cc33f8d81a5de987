//! The staged descriptors of one set, and the result of its last commit.
//!
//! Invariants, asserted by `validate`:
//! - A1: `missing` is the number of elements of the layout that are not in `staged`. Before the first staging,
//!   `missing` is 0 and `staged` is empty.
//! - A2: `made` was created from `words_made` (or `bytes_made`), a copy of all staged data at that commit.
//! - A3: in a descriptor buffer, the bytes of an element are up to date in `bytes` unless it is in `dirty`.

use ash::vk::{self, Handle};

use super::bound::Own;
use super::mask::Mask;
use super::plan::{BindMethod, BindingPlan, SetPlan};
use crate::counts::DescriptorKind;
use crate::descriptor::{Descriptor, DescriptorWrite};
use sublet_engines::cast::{index, narrow};

/// The result of a commit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum CommittedSet {
    Set(vk::DescriptorSet),
    /// Bytes at this offset of a descriptor buffer.
    Bytes {
        buffer: vk::Buffer,
        offset: u64,
    },
    /// Pushed: the descriptors exist only in the command buffer.
    Pushed,
}

/// A set that the program owns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum GivenSet {
    Set(vk::DescriptorSet),
    /// The set is at this offset of a descriptor buffer that is bound for these usages.
    Bytes {
        address: vk::DeviceAddress,
        usage: vk::BufferUsageFlags,
        offset: u64,
    },
}

#[derive(Debug, Default)]
pub(super) struct SetArea {
    /// True if the vectors below have space for all descriptors of the layout. They are allocated on the first staging,
    /// because programs often write the sets of large arrays themselves.
    ready: bool,
    staged: Mask,
    /// The number of elements that are not staged.
    pub(super) missing: u32,
    /// For sets and push descriptors.
    pub(super) words: Vec<u64>,
    words_made: Vec<u64>,
    /// The types of mutable descriptors, indexed by element; empty if the layout has none.
    pub(super) kinds: Vec<DescriptorKind>,
    /// For descriptor buffers, indexed by element.
    pub(super) descriptors: Vec<Descriptor>,
    pub(super) bytes: Vec<u8>,
    bytes_made: Vec<u8>,
    pub(super) dirty: Mask,
    /// Dynamic offsets, in binding order.
    pub(super) offsets: Vec<u32>,
    pub(super) given: Option<GivenSet>,
    pub(super) made: Option<CommittedSet>,
}

/// The value of an element that is not staged.
const NOTHING: Descriptor = Descriptor::Sampler(vk::Sampler::null());

/// Returns the words that a template reads of a descriptor, in the memory layout of Vulkan's structures.
#[inline]
fn words(descriptor: &Descriptor) -> ([u64; 3], usize) {
    match descriptor.write_data() {
        DescriptorWrite::Image(image) => {
            // The layout has four bytes, followed by four bytes of padding.
            let mut layout = [0; 8];
            layout[..4].copy_from_slice(&image.image_layout.as_raw().to_ne_bytes());
            ([image.sampler.as_raw(), image.image_view.as_raw(), u64::from_ne_bytes(layout)], 3)
        }
        DescriptorWrite::Buffer(buffer) => ([buffer.buffer.as_raw(), buffer.offset, buffer.range], 3),
        DescriptorWrite::Texels(view) => ([view.as_raw(), 0, 0], 1),
        DescriptorWrite::AccelerationStructure(handle) => ([handle.as_raw(), 0, 0], 1),
    }
}

impl SetArea {
    /// Clears the area for a set of another layout.
    pub(super) fn replace(&mut self, plan: Option<&SetPlan>) {
        self.ready = false;
        self.missing = 0;
        self.given = None;
        self.made = None;
        self.offsets.clear();
        self.offsets.resize(plan.map_or(0, |plan| plan.dynamics), 0);
    }

    /// Allocates the vectors on the first staging.
    #[inline]
    fn make_ready(&mut self, plan: &SetPlan) {
        if !self.ready {
            self.make_room(plan);
        }
    }

    #[cold]
    fn make_room(&mut self, plan: &SetPlan) {
        self.staged.reset(plan.elements);
        self.missing = plan.elements;
        self.made = None;
        // The vectors of the other model stay empty.
        for words in [&mut self.words, &mut self.words_made] {
            words.clear();
        }
        for bytes in [&mut self.bytes, &mut self.bytes_made] {
            bytes.clear();
        }
        self.descriptors.clear();
        self.kinds.clear();
        if plan.way == BindMethod::Buffer {
            self.dirty.reset(plan.elements);
            self.descriptors.resize(index(plan.elements), NOTHING);
            for bytes in [&mut self.bytes, &mut self.bytes_made] {
                bytes.resize(plan.bytes, 0);
            }
        } else {
            for words in [&mut self.words, &mut self.words_made] {
                words.resize(plan.words, 0);
            }
            self.kinds
                .resize(if plan.is_mutable { index(plan.elements) } else { 0 }, DescriptorKind::Mutable);
        }
        self.ready = true;
    }

    /// Drops the program's own set, so that the staged descriptors are used again.
    #[inline]
    fn drop_given(&mut self) -> bool {
        let had = self.given.take().is_some();
        if had {
            self.ready = false;
        }
        had
    }

    #[inline]
    fn insert(&mut self, element: u32) -> bool {
        let is_new = self.staged.insert(element);
        if is_new {
            self.missing -= 1;
            // A2: the last result lacks the new descriptor.
            self.made = None;
        }
        is_new
    }

    /// Stages descriptors, which fit the binding, from `first` on. Returns true if anything changed.
    #[inline]
    pub(super) fn stage(
        &mut self,
        plan: &SetPlan,
        binding: &BindingPlan,
        first: u32,
        descriptors: &[Descriptor],
    ) -> bool {
        let mut changed = self.drop_given();
        self.make_ready(plan);
        for (element, descriptor) in (first..).zip(descriptors) {
            let at = binding.first_element + element;
            let differs = if plan.way == BindMethod::Buffer {
                self.put_descriptor(at, descriptor)
            } else {
                self.put_words(binding, element, descriptor)
            };
            changed |= self.insert(at) | differs;
        }
        changed
    }

    #[inline]
    fn put_words(&mut self, binding: &BindingPlan, element: u32, descriptor: &Descriptor) -> bool {
        let (words, count) = words(descriptor);
        let at = binding.first_word + index(element) * binding.stride;
        let mut differs = self.words[at..at + count] != words[..count];
        self.words[at..at + count].copy_from_slice(&words[..count]);
        if let Some(kind) = self.kinds.get_mut(index(binding.first_element + element)) {
            // The same words with another type are a different descriptor.
            if std::mem::replace(kind, descriptor.kind()) != descriptor.kind() {
                differs = true;
                self.made = None;
            }
        }
        differs
    }

    #[inline]
    fn put_descriptor(&mut self, at: u32, descriptor: &Descriptor) -> bool {
        let before = std::mem::replace(&mut self.descriptors[index(at)], *descriptor);
        let differs = before != *descriptor || !self.staged.contains(at);
        if differs {
            self.dirty.insert(at);
        }
        differs
    }

    /// Stages bytes of an inline uniform block; the range is inside it. Returns true if anything changed.
    pub(super) fn stage_inline(
        &mut self,
        plan: &SetPlan,
        binding: &BindingPlan,
        offset: u32,
        bytes: &[u8],
    ) -> bool {
        let mut changed = self.drop_given();
        self.make_ready(plan);
        changed |= self.insert(binding.first_element);
        let offset = index(offset);
        if plan.way == BindMethod::Buffer {
            let at = binding.bytes.offset + offset;
            let target = &mut self.bytes[at..at + bytes.len()];
            changed |= target != bytes;
            target.copy_from_slice(bytes);
            return changed;
        }
        for (at, &byte) in (offset..).zip(bytes) {
            let word = &mut self.words[binding.first_word + at / size_of::<u64>()];
            let mut in_word = word.to_ne_bytes();
            in_word[at % size_of::<u64>()] = byte;
            let with = u64::from_ne_bytes(in_word);
            changed |= *word != with;
            *word = with;
        }
        changed
    }

    /// Replaces the staged descriptors by a set of the program. Returns true if anything changed.
    pub(super) fn stage_given(&mut self, given: GivenSet) -> bool {
        self.made = None;
        self.given.replace(given) != Some(given)
    }

    /// Returns true if anything was staged by element.
    pub(super) fn is_ready(&self) -> bool {
        self.ready
    }

    #[inline]
    pub(super) fn is_staged(&self, element: u32) -> bool {
        self.ready && self.staged.contains(element)
    }

    /// Returns the number of consecutive staged descriptors of one type in a binding, from `first` on.
    pub(super) fn run(&self, binding: &BindingPlan, first: u32) -> u32 {
        let kind_at = |element: u32| self.kinds.get(index(element)).copied();
        let begin = binding.first_element + first;
        let end = binding.first_element + binding.elements;
        let same = |&element: &u32| self.is_staged(element) && kind_at(element) == kind_at(begin);
        narrow((begin..end).take_while(same).count())
    }

    /// Returns true if the last result is up to date.
    #[inline]
    pub(super) fn is_as_made(&self) -> bool {
        self.made.is_some() && self.words == self.words_made && self.bytes == self.bytes_made
    }

    /// Records the result of a commit.
    #[inline]
    pub(super) fn set_made(&mut self, made: CommittedSet) {
        self.words_made.copy_from_slice(&self.words);
        self.bytes_made.copy_from_slice(&self.bytes);
        self.made = Some(made);
    }

    /// Drops the last result: it may be destroyed, or may refer to destroyed objects.
    pub(super) fn forget_made(&mut self) {
        self.made = None;
        if self.ready && !self.descriptors.is_empty() {
            self.dirty.copy_from(&self.staged);
        }
    }

    /// Returns the program's own set; null if there is none.
    pub(super) fn given_set(&self) -> vk::DescriptorSet {
        match self.given {
            Some(GivenSet::Set(set)) => set,
            _ => vk::DescriptorSet::null(),
        }
    }

    /// Returns the program's own descriptor buffer, and the offset of the set in it.
    pub(super) fn given_buffer(&self) -> Option<(Own, u64)> {
        match self.given {
            Some(GivenSet::Bytes { address, usage, offset }) => Some(((address, usage), offset)),
            _ => None,
        }
    }

    pub(super) fn is_given(&self) -> bool {
        self.given.is_some()
    }

    /// Asserts the invariants of the [module](self).
    pub(super) fn validate(&self, plan: &SetPlan) {
        if !self.ready {
            return;
        }
        let staged = (0..plan.elements).filter(|&element| self.staged.contains(element)).count();
        assert_eq!(narrow(staged) + self.missing, plan.elements, "A1");
        assert_eq!(
            (self.words.len(), self.bytes.len()),
            (self.words_made.len(), self.bytes_made.len()),
            "A2"
        );
        if plan.way == BindMethod::Buffer {
            assert_eq!((self.bytes.len(), self.descriptors.len()), (plan.bytes, index(plan.elements)), "A3");
        } else {
            assert_eq!(self.words.len(), plan.words, "A2");
        }
    }
}
