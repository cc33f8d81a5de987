//! The search for a place: the strategies, each with a fixed number of checks.
//!
//! For a request of `size` units at a multiple of `alignment`, three classes matter:
//!
//! ```text
//!   class_of(size)              tight: its chunks are about as large; some are too small, some badly aligned
//!   class_above(size)           its chunks are large enough; some are badly aligned
//!   class_above(size + mask)    sure: whatever the address of a chunk, `size` units at the alignment fit into it
//! ```
//!
//! Here `mask` is `alignment - 1`, the most that alignment can cost. If the engine rounds a size up to the start of a
//! class, the hole of an equal size is in the class above. So it checks the tight class only for sizes that it does not
//! round.

use std::cmp::Reverse;

use super::Tlsf;
use super::bins::{class_above, class_of};
use crate::Alignment;
use crate::chunks::NONE;

/// The number of chunks of one list that [`Tlsf::find_small`] compares.
const COMPARED: u32 = 8;

/// The number of chunks that [`Tlsf::find_slow`] checks before it gives up.
pub(super) const HARD_LOOKS: u32 = 32;

/// The number of chunks that [`Tlsf::find_last`] checks before a request is refused. Creating a region costs the owner
/// more than that.
pub(super) const LAST_LOOKS: u32 = 1024;

/// The number of chunks that [`Tlsf::find_in_last`] compares.
pub(super) const LAST_REGION_LOOKS: u32 = 32;

/// The number of the lowest, large enough chunks that [`Tlsf::find_low`] checks before it takes the lowest that is sure
/// to fit.
pub(super) const LOW_LOOKS: u32 = 32;

/// A free chunk that fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Find {
    pub(super) chunk: u32,
    /// Its class.
    pub(super) class: u32,
    /// Its first unit, counted over all regions.
    pub(super) addr: u64,
    /// Its units.
    pub(super) have: u64,
    /// Units before the first aligned address in it.
    pub(super) gap: u64,
}

impl Tlsf {
    /// The place in `chunk`, if the request fits.
    #[inline]
    fn fit(&self, chunk: u32, size: u64, mask: u64) -> Option<Find> {
        let (addr, have) = self.chunks.extent(chunk);
        let gap = addr.wrapping_neg() & mask;
        // Cannot overflow: `size` is at most 2^63, and `gap` is less than that. `NONE` never fits: slot 0 has no units.
        if gap + size <= have { Some(Find { chunk, class: class_of(have), addr, have, gap }) } else { None }
    }

    /// The place in the first chunk of a class, if there is one and the request fits.
    #[inline(always)]
    fn fit_head(&self, class: u32, size: u64, mask: u64) -> Option<Find> {
        let chunk = self.bins.head(class);
        let (addr, have) = self.chunks.extent(chunk);
        let gap = addr.wrapping_neg() & mask;
        if gap + size <= have { Some(Find { chunk, class, addr, have, gap }) } else { None }
    }

    /// [`Strategy::Balanced`](crate::Strategy::Balanced): checks the first chunks of up to three lists, in
    /// this order. The result is the first chunk of its list.
    ///
    /// - The tight class, unless the engine rounds `size` up to a class.
    /// - `class`, the class above, or the next one that has a chunk. Skipped if `mask` is at least `size`, because such
    ///   chunks hardly ever have an aligned place.
    /// - The sure class, or the next one that has a chunk.
    #[inline(always)]
    pub(super) fn find_balanced(&self, class: u32, step: u64, size: u64, mask: u64) -> Option<Find> {
        if self.chunks.rounding(step) != step {
            // If `size` is the smallest of its class, the class above is the tight one, else the next after it.
            if let Some(find) = self.fit_head(class - u32::from(size & step != 0), size, mask) {
                return Some(find);
            }
        }
        if mask >= size {
            return self.find_sure(size, mask);
        }
        self.fit_head(self.bins.find(class)?, size, mask).or_else(|| self.find_sure(size, mask))
    }

    /// [`Strategy::MinTime`](crate::Strategy::MinTime): the first chunk that is sure to fit. It is the first
    /// of its list.
    #[inline(always)]
    pub(super) fn find_sure(&self, size: u64, mask: u64) -> Option<Find> {
        let class = self.bins.find(class_above(size + mask))?;
        let chunk = self.bins.head(class);
        let (addr, have) = self.chunks.extent(chunk);
        Some(Find { chunk, class, addr, have, gap: addr.wrapping_neg() & mask })
    }

    /// [`Strategy::MinMemory`](crate::Strategy::MinMemory): the smallest fit among the first few chunks of
    /// the tight class, of the next two classes above, and of the sure one, in this order.
    pub(super) fn find_small(&self, size: u64, mask: u64) -> Option<Find> {
        if let Some(find) = self.smallest_of(self.bins.head(class_of(size)), size, mask) {
            return Some(find);
        }
        let mut class = class_of(size) + 1;
        for _ in 0..2 {
            class = self.bins.find(class)?;
            if let Some(find) = self.smallest_of(self.bins.head(class), size, mask) {
                return Some(find);
            }
            class += 1;
        }
        let class = self.bins.find(class_above(size + mask))?;
        self.smallest_of(self.bins.head(class), size, mask)
    }

    /// The smallest fit among the first few chunks of a list.
    fn smallest_of(&self, head: u32, size: u64, mask: u64) -> Option<Find> {
        let mut best = None;
        let mut best_have = u64::MAX;
        let mut chunk = head;
        for _ in 0..COMPARED {
            if chunk == NONE {
                break;
            }
            let have = self.chunks.size(chunk);
            if have < best_have {
                if let Some(find) = self.fit(chunk, size, mask) {
                    (best, best_have) = (Some(find), have);
                }
            }
            chunk = self.chunks.list_next(chunk);
        }
        best
    }

    /// The slow search if no list has a chunk that is sure to fit. Checks the other candidates, the largest first,
    /// because they are most likely to fit after alignment. Gives up after [`HARD_LOOKS`].
    #[cold]
    #[inline(never)]
    pub(super) fn find_slow(&self, size: u64, mask: u64) -> Option<Find> {
        self.look_through(size, mask, NONE, HARD_LOOKS).0
    }

    /// The last search if no empty region is large enough either. Starts where the previous such search ended, so
    /// repeated requests check other chunks each time. Also returns the start of the next search, or [`NONE`] after the
    /// last candidate.
    #[cold]
    #[inline(never)]
    pub(super) fn find_last(&self, size: u64, mask: u64) -> (Option<Find>, u32) {
        if self.is_over_aligned(mask) {
            return (None, self.hand);
        }
        self.look_through(size, mask, self.hand, LAST_LOOKS)
    }

    /// Checks up to `looks` of the chunks from the tight class to the sure one, the largest classes first. Starts at
    /// `hand` if that is listed among them. Also returns the next candidate, or [`NONE`] after the last.
    fn look_through(&self, size: u64, mask: u64, hand: u32, mut looks: u32) -> (Option<Find>, u32) {
        let (tight, top) = (class_of(size), class_above(size + mask).min(self.bins.last_class()));
        let first_below = |class: u32| {
            let found = self.bins.find_below(class).filter(|&found| found >= tight)?;
            Some(self.bins.head(found))
        };
        let behind = |chunk: u32| match self.chunks.list_next(chunk) {
            // Cannot underflow: no size is 0, so no class is.
            NONE => first_below(class_of(self.chunks.size(chunk)) - 1),
            next => Some(next),
        };
        let is_between = |&hand: &u32| {
            let is_listed = hand != NONE && self.chunks.is_free(hand) && !self.is_apart(hand);
            is_listed && (tight..=top).contains(&class_of(self.chunks.size(hand)))
        };
        let begin = Some(hand).filter(is_between);
        let mut has_turned = begin.is_none();
        let mut chunk = begin.or_else(|| first_below(top));
        loop {
            let here = match chunk {
                Some(here) => here,
                None if has_turned => return (None, NONE),
                None => {
                    has_turned = true;
                    chunk = first_below(top);
                    continue;
                }
            };
            if has_turned && chunk == begin {
                return (None, NONE);
            }
            if looks == 0 {
                return (None, here);
            }
            looks -= 1;
            chunk = behind(here);
            if let Some(find) = self.fit(here, size, mask) {
                return (Some(find), chunk.unwrap_or(NONE));
            }
        }
    }

    /// [`Strategy::MinOffset`](crate::Strategy::MinOffset): the lowest chunk that fits, among the lowest
    /// [`LOW_LOOKS`] that are large enough, else the lowest that is sure to fit.
    pub(super) fn find_low(&self, size: u64, mask: u64) -> Option<Find> {
        let index = self.index.as_deref()?;
        let mut chunk = index.first(&self.chunks, size);
        for _ in 0..LOW_LOOKS {
            if chunk == NONE {
                return None;
            }
            if let Some(find) = self.fit(chunk, size, mask) {
                return Some(find);
            }
            chunk = index.next(&self.chunks, chunk, size);
        }
        self.fit(index.first(&self.chunks, size + mask), size, mask)
    }

    /// [`Strategy::LastRegion`](crate::Strategy::LastRegion): the smallest fit in the last region that has one, among the
    /// first [`LAST_REGION_LOOKS`] chunks from the tight class on, else a chunk that is sure to fit.
    pub(super) fn find_in_last(&self, size: u64, mask: u64) -> Option<Find> {
        let mut best: Option<Find> = None;
        let mut class = class_of(size);
        let mut chunk = NONE;
        for _ in 0..LAST_REGION_LOOKS {
            if chunk == NONE {
                let Some(next) = self.bins.find(class) else { break };
                (chunk, class) = (self.bins.head(next), next + 1);
            }
            if let Some(find) = self.fit(chunk, size, mask) {
                let rank = |find: &Find| (self.chunks.region_of(find.addr), Reverse(find.have));
                best = best.filter(|best| rank(best) >= rank(&find)).or(Some(find));
            }
            chunk = self.chunks.list_next(chunk);
        }
        best.or_else(|| self.find_sure(size, mask))
    }

    /// The lowest region with a free start, for an alignment that only the start of a region has. O(regions).
    #[cold]
    pub(super) fn find_start(&self, size: u64) -> Option<Find> {
        self.chunks
            .regions()
            .map(|region| self.chunks.first(region))
            .filter(|&chunk| self.chunks.is_free(chunk))
            .find_map(|chunk| self.fit(chunk, size, 0))
    }

    /// The smallest empty region that is large enough, among a few candidates.
    pub(super) fn find_empty(&self, size: u64, alignment: Alignment) -> Option<Find> {
        if self.is_over_aligned(alignment.mask()) {
            return None;
        }
        let chunk = self.empties.find(&self.chunks, size)?;
        // The start of a region has any alignment up to the region's address range.
        self.fit(chunk, size, 0)
    }
}
