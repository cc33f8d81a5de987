//! Assertions of the numbered invariants of the chunks.

use super::slots::{DEAD, FREE, HEADER, TO_FREE, USED, named};
use super::{ChunkRegion, Chunks, NONE};
use crate::Usage;
use crate::cast::{index, narrow, widen};

/// One less than 1/64 of the highest power of two in a size.
fn step(size: u64) -> u64 {
    size.checked_ilog2().map_or(0, |log2| (1 << log2) / 64).max(1) - 1
}

impl Chunks {
    /// The most slack behind a used chunk of `size` units, and before it.
    fn slack(&self, size: u64) -> (u64, u64) {
        let rounding = self.rounding(step(size));
        (Self::slack_behind(rounding), self.slack_before(size, rounding))
    }

    /// Asserts C1 to C7, and calls `visit` for each free chunk, region by region, in the order of addresses. `granted`
    /// returns the granted units and slots of a slab.
    pub(crate) fn validate(&self, granted: &dyn Fn(u32) -> (u64, u32), visit: &mut dyn FnMut(u32)) {
        let regions = self.regions.iter().filter(|region| region.header != NONE).count();
        assert_eq!(narrow(regions), self.region_count, "C7: the number of regions");
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
                assert_eq!(*region, ChunkRegion::default(), "C7: vacant region {id} is not zero");
                assert!(id >= index(self.lowest_vacant), "C7: vacant region {id} would be overlooked");
                continue;
            }
            let header = self.slots.get(region.header);
            mark(region.header);
            assert_eq!(header.state(), HEADER, "C2: region {id} has no header");
            assert_eq!(
                (widen(id), header.size),
                (u64::from(header.b), region.capacity.wrapping_neg()),
                "C2: header of region {id}"
            );
            let (mut used, mut used_chunks) = (0, 0);
            let (mut before, mut chunk) = (region.header, named(header.next));
            let link = |slot: u32| slot | if self.is_free(slot) { TO_FREE } else { 0 };
            assert_eq!(header.next, link(chunk), "C2: header of region {id}");
            let start = widen(id) << self.shift;
            assert_eq!(header.addr, start.wrapping_add(region.capacity), "C2: header of region {id}");
            // The end of the previous chunk, and the most slack behind it: none if it is free.
            let (mut end, mut behind) = (start, None);
            while chunk != region.header {
                let node = self.slots.get(chunk);
                mark(chunk);
                assert_eq!(node.prev, link(before), "C2: chunk {chunk} does not point back");
                assert_eq!(
                    node.next,
                    link(named(node.next)),
                    "C2: chunk {chunk} does not know what is behind it"
                );
                let gap = node.addr.wrapping_sub(end);
                assert_ne!(node.size, 0, "C3: chunk {chunk} is empty");
                let slab = node.slab();
                let slack = (node.state() == USED || slab.is_some()).then(|| self.slack(node.size));
                let most = behind.map_or(0, |behind| behind + slack.map_or(0, |(_, before)| before));
                assert!(gap <= most, "C3: chunk {chunk} does not start where the one before ends");
                behind = slack.map(|(behind, _)| behind);
                match node.state() {
                    USED => {
                        used += node.size;
                        used_chunks += 1;
                    }
                    FREE => visit(chunk),
                    HEADER if slab.is_some() => {
                        let (units, slots) = granted(slab.unwrap_or_default());
                        used += units;
                        used_chunks += slots;
                    }
                    state => panic!("C4: chunk {chunk} is in state {state}"),
                }
                // The last region may end at 2^64.
                end = node.addr.wrapping_add(node.size);
                (before, chunk) = (chunk, named(node.next));
            }
            assert_eq!(header.prev, link(before), "C2: header of region {id} does not point back");
            let gap = header.addr.wrapping_sub(end);
            assert!(gap <= behind.unwrap_or(0), "C3: region {id} ends elsewhere");
            assert_eq!((region.used, region.used_chunks), (used, used_chunks), "C5: sums of region {id}");
            total.capacity += region.capacity;
            total.used += used;
            total.used_chunks += u64::from(used_chunks);
        }
        assert_eq!(self.usage(), total, "C5: sums of the engine");
        let mut slot = self.slots.dead;
        while slot != NONE {
            mark(slot);
            assert_eq!(self.slots.get(slot).state(), DEAD, "C6: slot {slot} is not dead");
            slot = self.slots.get(slot).b;
        }
        assert!(seen.iter().all(|&seen| seen), "C6: a slot is in no chain");
    }
}
