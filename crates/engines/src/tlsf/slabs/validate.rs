//! Assertions of the numbered invariants of slabs.

use super::{LISTS, NONE, Slab, Slabs, index, narrow};
use crate::chunks::Chunks;

impl Slabs {
    /// Asserts S1 to S5.
    pub(in super::super) fn validate(&self, chunks: &Chunks) {
        let mut slots = [0; LISTS];
        let (mut used, mut total, mut empty_units) = (0, 0, 0);
        let mut listed = vec![false; self.slabs.len()];
        for (class, &head) in (0_u32..).zip(&self.heads) {
            let mut number = head;
            while number != NONE {
                let slab = &self.slabs[index(number)];
                let is_again = std::mem::replace(&mut listed[index(number)], true);
                assert!(!is_again && slab.class == class, "S2: slab {number} is in two lists");
                let is_known = self.empty_map >> class & 1 == 1;
                assert!(is_known || !slab.is_empty(), "S3: bit {class}");
                number = slab.next;
            }
        }
        let mut entries = vec![false; self.entries.len()];
        for (number, slab) in (0_u32..).zip(&self.slabs) {
            let Slab { free, full, addr, slot, class, first, chunk, .. } = *slab;
            assert_eq!(free & !full, 0, "S1: slab {number} has a free slot beyond its end");
            assert_eq!(listed[index(number)], free != 0, "S2: slab {number} in a list");
            if full == 0 {
                continue;
            }
            assert_eq!(chunks.slab(chunk), Some(number), "S1: the chunk of slab {number} is another's");
            assert_eq!(chunks.extent(chunk), (addr, slab.units()), "S1: slab {number} lies elsewhere");
            let alignment = 1 << slot.trailing_zeros().min(16);
            assert_eq!(addr & (alignment - 1), 0, "S1: slab {number} is badly aligned");
            for place in 0..slab.slots() {
                let entry = index(first + place);
                assert!(!std::mem::replace(&mut entries[entry], true), "S5: entry {entry} is in two runs");
                if (full & !free) >> place & 1 == 1 {
                    let size = self.entries[entry].size();
                    assert!(size <= slot.into(), "S5: slot {place} of slab {number} holds {size}");
                    used += size;
                }
            }
            slots[index(class)] += slab.slots();
            total += slab.units();
            empty_units += if slab.is_empty() { slab.units() } else { 0 };
        }
        assert_eq!((used, total, empty_units), (self.used, self.total, self.empty_units), "S4: sums");
        assert_eq!(self.slots, slots, "S4: slots of each class");
        let mut spare = self.spare;
        for _ in &self.slabs {
            if spare == NONE {
                return;
            }
            assert_eq!(self.slabs[index(spare)].full, 0, "S2: spare slab {spare} is in use");
            spare = self.slabs[index(spare)].next;
        }
        panic!("S2: more than {} slabs are not in use", narrow(self.slabs.len()));
    }
}
