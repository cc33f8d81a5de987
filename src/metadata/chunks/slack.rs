//! What is left out between two chunks of a ring, see C3 of [`Chunks`].
#![forbid(unsafe_code)]

use super::slots::FREE;
use super::{Chunks, NONE, Node};

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

    /// The chunks behind which something is left out, and how many units. O(chunks).
    pub(in crate::metadata) fn left_out(&self) -> Vec<(u32, u64)> {
        let chunks = self.regions().flat_map(|region| self.chunks(region));
        let behind = |chunk| {
            let (addr, size) = self.extent(chunk);
            self.addr(self.next(chunk)).wrapping_sub(addr.wrapping_add(size))
        };
        chunks.map(|chunk| (chunk, behind(chunk))).filter(|&(_, units)| units != 0).collect()
    }

    /// Makes the units that are left out behind a chunk a free chunk, in no list yet.
    pub(in crate::metadata) fn insert_behind(&mut self, chunk: u32, units: u64) -> u32 {
        let (addr, size) = self.extent(chunk);
        let next = self.next(chunk);
        let node = Node { addr: addr + size, size: units, prev: chunk, next, a: FREE, b: NONE };
        let new = self.slots.insert(node);
        self.slots.get_mut(chunk).next = new;
        self.slots.get_mut(next).prev = new;
        new
    }

    /// Joins the units that are left out before a free chunk to it.
    pub(in crate::metadata) fn extend_down(&mut self, chunk: u32, units: u64) {
        let node = self.slots.get_mut(chunk);
        node.addr -= units;
        node.size += units;
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
