//! What is left out between two chunks of a ring, see C3 of [`Chunks`].
#![forbid(unsafe_code)]

use super::slots::FREE;
use super::{Chunks, NONE, Node, Vacated};

impl Chunks {
    /// Lets used chunks leave out units that are too few to be worth a free chunk, see C3: of regions with less than
    /// 2^17 units none.
    pub(in crate::metadata) fn allow_slack(&mut self) {
        let share = self.max_capacity >> 16;
        self.rounding = share.checked_ilog2().map_or(0, |log2| (1 << log2) - 1);
        self.sliver = share >> 4;
    }

    /// From now on nothing is left out; what was stays so.
    pub(in crate::metadata) fn forbid_slack(&mut self) {
        (self.rounding, self.sliver) = (0, 0);
    }

    /// Whether anything may be left out.
    pub(in crate::metadata) const fn leaves_out(&self) -> bool {
        self.rounding != 0 || self.sliver != 0
    }

    /// The chunks behind which something is left out. O(chunks).
    pub(in crate::metadata) fn left_out(&self) -> Vec<u32> {
        let is_followed = |&chunk: &u32| {
            let (addr, size) = self.extent(chunk);
            addr.wrapping_add(size) != self.addr(self.next(chunk))
        };
        self.regions().flat_map(|region| self.chunks(region)).filter(is_followed).collect()
    }

    /// Makes what is left out behind a chunk one that was vacated.
    pub(in crate::metadata) fn vacate_behind(&mut self, chunk: u32) -> Vacated {
        let next = self.slots.get(chunk).next;
        // Where it is and how large, its neighbours say.
        let new = self.link(Node { addr: 0, size: 0, prev: chunk, next, a: FREE, b: NONE });
        self.vacated(new)
    }

    /// What a size is rounded up by at most, of at most `step`: both are one less than a power of two.
    #[inline]
    pub(in crate::metadata) const fn rounding(&self, step: u64) -> u64 {
        self.rounding & step
    }

    /// The most units that a used chunk which is rounded up by at most `rounding` may leave out behind itself.
    #[inline]
    pub(in crate::metadata) const fn slack_behind(rounding: u64) -> u64 {
        2 * rounding
    }

    /// The most units that a used chunk of `size` units which is rounded up by at most `rounding` may leave out before
    /// itself.
    #[inline]
    pub(in crate::metadata) fn slack_before(&self, size: u64, rounding: u64) -> u64 {
        (2 * rounding).max(self.sliver.min(size >> 3))
    }
}
