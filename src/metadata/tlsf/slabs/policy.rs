//! When a class gets a slab, and when an empty one goes back to the core.
//!
//! A slab is worth it if what it saves in time costs next to nothing in space. So a class has to be hot, what is free in
//! used slabs has to be little beside what is live and what is free anyway, and a slab is made only of what is left in
//! regions that are used. Where little is free there are none: small chunks then fill what alignments leave. Empty slabs
//! stay for those who come and go, as far as they are few; all of them go back before a request is refused, and before a
//! region is added.
#![forbid(unsafe_code)]

use super::super::Tlsf;
use super::{
    CLASSES, FEWEST_SLOTS, Given, LARGEST, LISTS, MAX_SLABS, MOST_SLOTS, NONE, Slab, Slabs, index, low,
    slot_of,
};
use crate::metadata::{Alignment, Key, RegionId, Tag, Usage};

/// While what is free in slabs is less than this part of the regions, whatever comes again has slabs: log2.
const NOTHING_LOG2: u32 = 7;
/// Of so many requests without a slot one asks for a slab.
const ASK_EVERY: u8 = 4;
/// Requests without a slot that make a class hot then, and the part of its slots that a new slab has.
const HOT_THEN: (u8, u32) = (ASK_EVERY, 1);
/// The same while there is more.
const HOT: (u8, u32) = (16, 8);
/// What is free in slabs is at most this part of what is live, and of what is free: log2.
const OF_LIVE_LOG2: u32 = 4;
const OF_FREE_LOG2: u32 = 4;
/// One new slab takes at most this part of what is left of that: log2.
const SHARE_LOG2: u32 = 2;
/// Free 128ths of all regions without which there are no new slabs.
const LEAST_FREE: u64 = 20;
/// Empty slabs are at most this part of what is live: log2.
const KEPT_LOG2: u32 = 6;
/// With fewer slots, as large ones have, a slab takes as much host memory as chunks.
const USUAL_SLOTS: u32 = 8;

impl Slabs {
    /// What is free in used slabs: empty ones are in nobody's way.
    const fn waste(&self) -> u64 {
        self.total - self.used - self.empty_units
    }

    /// Whether a slab of the class has a free slot.
    pub(in super::super) fn has_slot(&self, class: u32) -> bool {
        self.heads[index(class)] != NONE
    }

    /// Whether a slab is in use and holds nothing.
    fn is_empty(&self, number: u32) -> bool {
        self.slabs[index(number)].is_empty()
    }
}

impl Tlsf {
    /// A request of a class of which no slab has a free slot: a chunk, or now and then the first slot of a new slab, if
    /// there is to be one.
    #[inline(never)]
    pub(in super::super) fn grant_without_slot(
        &mut self,
        size: u64,
        alignment: Alignment,
        tag: Tag,
        class: u32,
    ) -> Option<(Key, u64)> {
        let list = index(class) & (LISTS - 1);
        let misses = self.misses[list] + 1;
        if misses % ASK_EVERY == 0 {
            return self.ask_for_slab(size, alignment, tag, class, misses);
        }
        let granted = self.grant_core(size, alignment, tag)?;
        // Not before: who asks again after a refusal must get the same answer.
        self.misses[list] = misses;
        Some(granted)
    }

    #[cold]
    #[inline(never)]
    fn ask_for_slab(
        &mut self,
        size: u64,
        alignment: Alignment,
        tag: Tag,
        class: u32,
        misses: u8,
    ) -> Option<(Key, u64)> {
        let usage = self.chunks.usage();
        let is_little_free = usage.capacity - usage.used < usage.capacity / 128 * LEAST_FREE;
        let is_made = !is_little_free && self.make_slab(class, misses).is_some();
        let granted = if is_made {
            let Self { chunks, slabs, .. } = self;
            slabs.as_deref_mut()?.take(chunks, class, size, tag)
        } else {
            self.grant_core(size, alignment, tag)
        }?;
        self.misses[index(class)] = if is_little_free || misses >= HOT.0 { 0 } else { misses };
        if is_little_free {
            // Nor is any class asked for again until a slot or a region is free.
            self.slab_sizes = 0;
        }
        Some(granted)
    }

    /// The slots that a new slab of a class would have after so many misses; `None` if there is to be none.
    fn wanted_slots(&self, class: u32, slot: u64, misses: u8) -> Option<u32> {
        let Usage { capacity, used: live, .. } = self.chunks.usage();
        // What is free in an only region is in the bins even while it is empty.
        if live == 0 {
            return None;
        }
        let slabs = self.slabs.as_deref();
        let waste = slabs.map_or(0, Slabs::waste);
        let nothing = capacity >> NOTHING_LOG2;
        let (hot, part) = if waste < nothing { HOT_THEN } else { HOT };
        if misses < hot || slabs.is_some_and(|slabs| slabs.slabs.len() >= MAX_SLABS) {
            return None;
        }
        let free = capacity.saturating_sub(live + waste);
        let most = (live >> OF_LIVE_LOG2).max(nothing).min(free >> OF_FREE_LOG2);
        let units = (most.saturating_sub(waste) >> SHARE_LOG2).min(LARGEST);
        let count = slabs.map_or(0, |slabs| slabs.slots[index(class)]);
        let slots = (count / part).clamp(USUAL_SLOTS, MOST_SLOTS).min(low(units / slot));
        (slots >= FEWEST_SLOTS).then_some(slots)
    }

    /// A new slab, out of what is left in a used region, or none: it is worth no other.
    #[inline(never)]
    fn make_slab(&mut self, class: u32, misses: u8) -> Option<()> {
        let slot = slot_of(class);
        let slots = self.wanted_slots(class, slot, misses)?;
        let units = slot * u64::from(slots);
        let alignment = Alignment::from_log2(slot.trailing_zeros().min(LARGEST.trailing_zeros()));
        let (key, addr) = self.grant_core(units, alignment, Tag(0))?;
        let slabs = self.slabs.get_or_insert_with(|| Box::new(Slabs::new()));
        let chunk = self.chunks.hand_over(key, addr, units, slabs.next_number());
        slabs.add(chunk, addr, class, slot, slots);
        Some(())
    }

    /// A slot of another class that would do, where no chunk does: the last that there is.
    pub(in super::super) fn grant_any_slot(
        &mut self,
        size: u64,
        alignment: Alignment,
        tag: Tag,
    ) -> Option<(Key, u64)> {
        let class = self.any_class(size, alignment)?;
        let Self { chunks, slabs, .. } = self;
        slabs.as_deref_mut()?.take(chunks, class, size, tag)
    }

    /// The class whose slot [`Self::grant_any_slot`] would take.
    pub(in super::super) fn any_class(&self, size: u64, alignment: Alignment) -> Option<u32> {
        let slabs = self.slabs.as_deref()?;
        (0..CLASSES).find(|&class| {
            let slot = slot_of(class);
            slot >= size && slot & alignment.mask() == 0 && slabs.has_slot(class)
        })
    }

    /// What is to be done after a slab became empty: nothing is granted in its region any more, or it is time to look
    /// whether there are too many.
    #[cold]
    #[inline(never)]
    pub(in super::super) fn slab_emptied(&mut self, given: Given) -> (RegionId, bool) {
        if given.is_empty {
            self.region_emptied(given.region);
        }
        let usage = self.chunks.usage();
        // In an only region half of it may be such: they are in nobody's way.
        let only = if self.chunks.region_count() == 1 { usage.capacity / 2 } else { 0 };
        self.trim((usage.used >> KEPT_LOG2).max(only));
        (given.region, given.is_empty)
    }

    /// Gives back empty slabs until they have at most so many units.
    #[inline(never)]
    fn trim(&mut self, most: u64) {
        while let Some(slabs) = self.slabs.as_deref_mut().filter(|slabs| slabs.empty_units > most) {
            let above = slabs.empty_map & (u64::MAX << slabs.hand);
            let class = if above == 0 { slabs.empty_map } else { above }.trailing_zeros();
            // No class is the last bit.
            slabs.hand = class + 1;
            let mut surplus = slabs.empty_units - most;
            let gone = slabs.sift(class, |slab| {
                let goes = slab.is_empty() && surplus > 0;
                surplus = surplus.saturating_sub(if goes { slab.units() } else { 0 });
                goes
            });
            self.give_slabs(gone);
        }
    }

    /// Gives empty slabs that are in no list back to the core.
    fn give_slabs(&mut self, mut gone: u32) {
        while let Some(slabs) = self.slabs.as_deref_mut().filter(|_| gone != NONE) {
            let (next, Slab { class, chunk, addr, .. }) = slabs.forget(gone);
            gone = next;
            self.misses[index(class)] = 0;
            self.give_back(self.chunks.vacated(chunk), self.chunks.region_of(addr));
        }
    }

    /// Joins the slabs that hold nothing to the free chunks beside them. An engine does that by itself before it
    /// refuses a request; for owners that choose places, see [`Tlsf::places`]. Whether there was one.
    ///
    /// # Complexity
    /// O(slabs).
    #[inline(never)]
    pub fn give_slabs_back(&mut self) -> bool {
        let any = self.slabs.as_deref().is_some_and(|slabs| slabs.empty_units > 0);
        if any {
            self.trim(0);
        }
        any
    }

    /// Gives back the slabs of a region in which nothing is granted any more, unless it is the only one.
    #[inline(never)]
    pub(in super::super) fn region_emptied(&mut self, region: RegionId) {
        if self.chunks.region_count() > 1 && !self.chunks.is_whole_region(self.chunks.first(region)) {
            self.clear(region);
        }
    }

    /// What empty slabs and the free chunks around them would be together: first units and units.
    pub(in super::super) fn kept_runs(&self) -> impl Iterator<Item = (u64, u64)> {
        let slabs = self.slabs.as_deref().filter(|slabs| slabs.empty_units > 0);
        slabs.into_iter().flat_map(move |slabs| {
            let is_kept =
                move |chunk: u32| self.chunks.slab(chunk).is_some_and(|number| slabs.is_empty(number));
            let is_free = move |chunk: u32| self.chunks.is_free(chunk) || is_kept(chunk);
            // Of neighbours the first one shows the run: in front of it is one free chunk at most.
            let is_first = move |slab: &&Slab| {
                let prev = self.chunks.prev(slab.chunk);
                !(is_kept(prev) || self.chunks.is_free(prev) && is_kept(self.chunks.prev(prev)))
            };
            slabs.slabs.iter().filter(|slab| slab.is_empty()).filter(is_first).map(move |slab| {
                let (mut prev, mut next) = (self.chunks.prev(slab.chunk), self.chunks.next(slab.chunk));
                if is_free(prev) {
                    prev = self.chunks.prev(prev);
                }
                while is_free(next) {
                    next = self.chunks.next(next);
                }
                let (addr, size) = self.chunks.extent(prev);
                let start = addr.wrapping_add(size);
                (start, self.chunks.addr(next).wrapping_sub(start))
            })
        })
    }

    /// Units of all slabs, and what of them is not granted.
    #[cfg(test)]
    pub(crate) fn slab_units(&self) -> (u64, u64) {
        self.slabs.as_deref().map_or((0, 0), |slabs| (slabs.total, slabs.total - slabs.used))
    }
}
