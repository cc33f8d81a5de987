//! Slack between two chunks of a ring, see C3 of [`Chunks`].

use super::slots::FREE;
use super::{ChunkNode, Chunks, NONE, Vacated};

impl Chunks {
    /// Allows used chunks to leave slack that is too small for a free chunk, see C3. Regions of less than 2^17 units
    /// have none.
    pub(crate) fn allow_slack(&mut self) {
        let share = self.max_capacity >> 16;
        self.rounding = share.checked_ilog2().map_or(0, |log2| (1 << log2) - 1);
        self.slack_before_max = share >> 4;
    }

    /// Forbids slack from now on; existing slack stays.
    pub(crate) fn forbid_slack(&mut self) {
        (self.rounding, self.slack_before_max) = (0, 0);
    }

    /// Returns true if slack is allowed.
    pub(crate) const fn allows_slack(&self) -> bool {
        self.rounding != 0 || self.slack_before_max != 0
    }

    /// The chunks with slack behind them. O(chunks).
    pub(crate) fn slack_chunks(&self) -> Vec<u32> {
        let is_followed = |&chunk: &u32| {
            let (addr, size) = self.extent(chunk);
            addr.wrapping_add(size) != self.addr(self.next(chunk))
        };
        self.regions().flat_map(|region| self.chunks(region)).filter(is_followed).collect()
    }

    /// Turns the slack behind a chunk into a vacated chunk.
    pub(crate) fn vacate_behind(&mut self, chunk: u32) -> Vacated {
        let next = self.slots.get(chunk).next;
        // Its neighbours determine its address and size.
        let new = self.link(ChunkNode { addr: 0, size: 0, prev: chunk, next, a: FREE, b: NONE });
        self.vacated(new)
    }

    /// The most units by which a size is rounded up, at most `step`. Both are one less than a power of two.
    #[inline]
    pub(crate) const fn rounding(&self, step: u64) -> u64 {
        self.rounding & step
    }

    /// The most slack behind a used chunk that is rounded up by at most `rounding`.
    #[inline]
    pub(crate) const fn slack_behind(rounding: u64) -> u64 {
        2 * rounding
    }

    /// The most slack before a used chunk of `size` units that is rounded up by at most `rounding`.
    #[inline]
    pub(crate) fn slack_before(&self, size: u64, rounding: u64) -> u64 {
        (2 * rounding).max(self.slack_before_max.min(size >> 3))
    }
}
