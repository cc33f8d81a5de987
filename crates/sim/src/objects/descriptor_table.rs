//! The bytes of a descriptor: a number in a table of the device, and a pattern that goes with it.
//!
//! A driver is free to write what it likes into its descriptors. This one writes into the first four bytes the number
//! of the description and a check of it, and into every later byte a value that follows from these two. So it notices
//! bytes that were moved, cut, mixed or made up. The same description always has the same bytes.

use std::collections::BTreeMap;

use ash::vk;

use crate::facts::arithmetic::{index, narrow};
use crate::objects::heaps::{HeapImage, SamplerState};

/// The meaning of a descriptor's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Meaning {
    /// A range of a buffer, as the shader sees it.
    Buffer {
        kind: vk::DescriptorType,
        address: u64,
        range: u64,
    },
    /// An image, and for combined ones its sampler.
    Image {
        kind: vk::DescriptorType,
        view: vk::ImageView,
        sampler: vk::Sampler,
        layout: vk::ImageLayout,
    },
    Sampler(vk::Sampler),
    AccelerationStructure(u64),
    /// An image in a heap, where there are no views.
    HeapImage(HeapImage),
    /// A sampler in a heap, where there are no objects.
    HeapSampler(SamplerState),
}

/// Every descriptor whose bytes were asked for.
#[derive(Debug, Default)]
pub(crate) struct DescriptorTable {
    known: Vec<Meaning>,
    numbers: BTreeMap<Meaning, u32>,
}

/// Bits of a descriptor's number: what is left of four bytes is for the check.
const NUMBER_BITS: u32 = 24;

impl DescriptorTable {
    /// Writes a descriptor's bytes. If `to` is too short, or no number is left, it writes nothing and answers false.
    pub(crate) fn encode(&mut self, descriptor: Meaning, to: &mut [u8]) -> bool {
        let next = narrow(self.known.len());
        if to.len() < 4 || next >= (1 << NUMBER_BITS) - 1 {
            return false;
        }
        let number = *self.numbers.entry(descriptor).or_insert(next);
        if number == next {
            self.known.push(descriptor);
        }
        for (at, byte) in to.iter_mut().enumerate() {
            *byte = pattern(number, at);
        }
        true
    }

    /// The meaning of bytes. `None` if they are not those of a descriptor.
    pub(crate) fn decode(&self, bytes: &[u8]) -> Option<Meaning> {
        let word = u32::from_le_bytes(bytes.first_chunk::<4>().copied()?);
        // Numbers begin at 1, so that zeroes are no descriptor.
        let number = (word & ((1 << NUMBER_BITS) - 1)).checked_sub(1)?;
        let intact = bytes.iter().enumerate().all(|(at, &byte)| byte == pattern(number, at));
        if intact { self.known.get(index(number)).copied() } else { None }
    }
}

/// The byte at `at` of the descriptor with this number: three bytes of the number, one that checks it, and then bytes
/// that depend on both number and place.
fn pattern(number: u32, at: usize) -> u8 {
    let stored = (number + 1).to_le_bytes();
    match at {
        0..=2 => stored[at],
        _ => {
            let mixed = (number + 1).wrapping_mul(0x9e37_79b1).rotate_left(narrow(at % 32)) ^ narrow(at);
            mixed.wrapping_mul(0x85eb_ca6b).to_le_bytes()[3]
        }
    }
}

#[cfg(test)]
mod tests {
    use ash::vk::Handle as _;

    use super::*;

    fn buffer(address: u64) -> Meaning {
        Meaning::Buffer { kind: vk::DescriptorType::STORAGE_BUFFER, address, range: 64 }
    }

    #[test]
    fn what_was_encoded_is_decoded_at_every_size() {
        let mut table = DescriptorTable::default();
        for size in [4, 8, 16, 32, 96] {
            for address in 0..200 {
                let mut bytes = vec![0; size];
                assert!(table.encode(buffer(address), &mut bytes));
                assert_eq!(table.decode(&bytes), Some(buffer(address)));
            }
        }
        assert_eq!(table.known.len(), 200);
    }

    #[test]
    fn too_few_bytes_are_left_alone() {
        let mut bytes = [9; 3];
        assert!(!DescriptorTable::default().encode(buffer(1), &mut bytes));
        assert_eq!(bytes, [9; 3]);
    }

    #[test]
    fn a_wrong_byte_anywhere_makes_it_no_descriptor() {
        let mut table = DescriptorTable::default();
        let mut all = vec![0; 16];
        for address in 0..50 {
            assert!(table.encode(buffer(address), &mut all));
            for at in 0..16 {
                let mut wrong = all.clone();
                wrong[at] ^= 0x10;
                assert_eq!(table.decode(&wrong), None, "byte {at} of {address}");
            }
        }
        assert_eq!(table.decode(&[0; 16]), None);
        assert_eq!(table.decode(&[]), None);
        assert_eq!(table.decode(&all[4..]), None);
    }

    #[test]
    fn few_words_that_were_made_up_pass_for_descriptors() {
        let mut table = DescriptorTable::default();
        for address in 0..1000 {
            assert!(table.encode(buffer(address), &mut [0; 4]));
        }
        let passing =
            (0..1_u32 << 20).filter(|word| table.decode(&(word << 12 | word >> 8).to_le_bytes()).is_some());
        assert!(passing.count() < 64);
    }

    #[test]
    fn a_sampler_and_an_image_of_the_same_number_are_two_things() {
        let mut table = DescriptorTable::default();
        let (mut one, mut other) = ([0; 4], [0; 4]);
        let sampler = vk::Sampler::from_raw(7);
        let view = vk::ImageView::from_raw(7);
        let image = Meaning::Image {
            kind: vk::DescriptorType::SAMPLED_IMAGE,
            view,
            sampler: vk::Sampler::null(),
            layout: vk::ImageLayout::GENERAL,
        };
        assert!(table.encode(Meaning::Sampler(sampler), &mut one));
        assert!(table.encode(image, &mut other));
        assert_ne!(one, other);
        assert_eq!(table.decode(&one), Some(Meaning::Sampler(sampler)));
        assert_eq!(table.decode(&other), Some(image));
    }
}
