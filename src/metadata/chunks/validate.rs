//! The invariants of the chunks, asserted under their numbers.
#![forbid(unsafe_code)]

use super::slots::{DEAD, FREE, HEADER, USED};
use super::{Chunks, NONE, Region};
use crate::base::cast::{index, widen};
use crate::metadata::Usage;

impl Chunks {
    /// Asserts C1 to C7, and calls `visit` for each free chunk, region by region, in the order of addresses.
    pub(in crate::metadata) fn validate(&self, visit: &mut dyn FnMut(u32)) {
        let mut total = Usage::default();
        let mut seen = vec![false; self.slots.nodes.len()];
        let none = self.slots.get(NONE);
        assert_eq!((none.addr, none.size, none.b), (0, 0, NONE), "C1: slot 0 is a chunk");
        assert_ne!(none.state(), USED, "C1: slot 0 is used");
        seen[0] = true;
        let mut mark = |slot: u32| {
            assert!(!std::mem::replace(&mut seen[index(slot)], true), "C6: slot {slot} is in two chains");
        };
        for (id, region) in self.regions.iter().enumerate() {
            if region.header == NONE {
                assert_eq!(*region, Region::default(), "C7: vacant region {id} is not zero");
                assert!(id >= index(self.lowest_vacant), "C7: vacant region {id} would be overlooked");
                continue;
            }
            let header = self.slots.get(region.header);
            mark(region.header);
            assert_eq!(header.state(), HEADER, "C2: region {id} has no header");
            assert_eq!(
                (widen(id), header.size),
                (u64::from(header.b), region.capacity),
                "C2: header of region {id}"
            );
            let (mut used, mut used_chunks) = (0, 0);
            let (mut before, mut chunk) = (region.header, header.next);
            let mut end = widen(id) << self.shift;
            assert_eq!(header.addr, end, "C2: header of region {id}");
            while chunk != region.header {
                let node = self.slots.get(chunk);
                mark(chunk);
                assert_eq!(node.prev, before, "C2: chunk {chunk} does not point back");
                assert_eq!(node.addr, end, "C3: chunk {chunk} does not start where the one before ends");
                assert_ne!(node.size, 0, "C3: chunk {chunk} is empty");
                match node.state() {
                    USED => {
                        used += node.size;
                        used_chunks += 1;
                    }
                    FREE => visit(chunk),
                    state => panic!("C4: chunk {chunk} is in state {state}"),
                }
                // The last region may end at 2^64.
                end = end.wrapping_add(node.size);
                (before, chunk) = (chunk, node.next);
            }
            assert_eq!(header.prev, before, "C2: header of region {id} does not point back");
            assert_eq!(end.wrapping_sub(header.addr), region.capacity, "C3: region {id} ends elsewhere");
            assert_eq!((region.used, region.used_chunks), (used, used_chunks), "C5: sums of region {id}");
            total.capacity += region.capacity;
            total.used += used;
            total.used_chunks += u64::from(used_chunks);
        }
        assert_eq!(self.usage, total, "C5: sums of the engine");
        let mut slot = self.slots.dead;
        while slot != NONE {
            mark(slot);
            assert_eq!(self.slots.get(slot).state(), DEAD, "C6: slot {slot} is not dead");
            slot = self.slots.get(slot).b;
        }
        assert!(seen.iter().all(|&seen| seen), "C6: a slot is in no chain");
    }
}
