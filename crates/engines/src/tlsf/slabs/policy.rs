//! When a class gets a slab, and when an empty slab returns to the core.
//!
//! A slab must save time at almost no cost in space. So a class gets one only if several requests of the class found no
//! slot, and if the free space in used slabs is small compared with the live and the free units. A slab is made only in
//! used regions. If little is free, no slab is made: small chunks then fill the gaps that alignments leave.
//!
//! A few empty slabs stay for recurring sizes. All of them are freed before a request is refused, and before a region
//! is added.

use super::super::Tlsf;
use super::{
    CLASSES, FEWEST_SLOTS, FreedSlot, LARGEST, LISTS, MAX_SLABS, MOST_SLOTS, NONE, Slab, Slabs, index, low,
    slot_of,
};
use crate::{Alignment, Key, RegionId, Tag, Usage};

/// While the free space in used slabs is below this, any recurring size gets slabs: a 128th of the capacity, but at least
/// 256 Ki units, or a 16th of a small capacity.
const fn nothing(capacity: u64) -> u64 {
    let (part, most) = (capacity >> 7, capacity >> 4);
    let least = if most < 1 << 18 { most } else { 1 << 18 };
    if part > least { part } else { least }
}
const _: () =
    assert!(nothing(1 << 30) == 8 << 20 && nothing(8 << 20) == 1 << 18 && nothing(1 << 20) == 1 << 16);
/// One in this many requests without a slot asks for a slab.
const ASK_EVERY: u8 = 4;
/// Below that limit: the number of requests without a slot after which a class gets a slab, and the number by which the
/// slots of the class are divided to get those of the new slab.
const HOT_THEN: (u8, u32) = (ASK_EVERY, 1);
/// The same above that limit.
const HOT: (u8, u32) = (16, 8);
/// Log2 of a divisor of the live units. New slabs keep the free space in used slabs below that part, or below that of
/// [`nothing`] if it is larger.
const OF_LIVE_LOG2: u32 = 4;
/// Log2 of a divisor of the free units. New slabs keep the free space in used slabs below that part, too.
const OF_FREE_LOG2: u32 = 3;
/// Log2 of a divisor of the remaining allowance. A new slab takes at most that part.
const SHARE_LOG2: u32 = 2;
/// The free 128ths of all regions below which no new slabs are made.
const LEAST_FREE: u64 = 12;
/// Log2 of a divisor of the live units. Empty slabs have at most that many units.
const KEPT_LOG2: u32 = 6;
/// The usual minimum of slots. A slab of fewer slots, as for large sizes, takes as much host memory as chunks.
const USUAL_SLOTS: u32 = 8;

impl Slabs {
    /// The free space in used slabs. Empty ones are not counted, because they can be freed at any time.
    const fn waste(&self) -> u64 {
        self.total - self.used - self.empty_units
    }

    /// Returns true if a slab of the class has a free slot.
    pub(in super::super) fn has_slot(&self, class: u32) -> bool {
        self.heads[index(class)] != NONE
    }

    /// Returns true if a slab is in use and empty.
    fn is_empty(&self, number: u32) -> bool {
        self.slabs[index(number)].is_empty()
    }
}

impl Tlsf {
    /// Serves a request whose class has no free slot: with a chunk, or occasionally with the first slot of a new slab.
    #[inline(never)]
    pub(in super::super) fn try_allocate_without_slot(
        &mut self,
        size: u64,
        alignment: Alignment,
        tag: Tag,
        class: u32,
    ) -> Option<(Key, u64)> {
        let list = index(class) & (LISTS - 1);
        let misses = self.misses[list] + 1;
        if misses % ASK_EVERY == 0 {
            let usage = self.chunks.usage();
            let is_little_free = usage.capacity - usage.used < usage.capacity / 128 * LEAST_FREE;
            let is_made = !is_little_free && self.make_slab(class, misses).is_some();
            let granted = if is_made {
                let Self { chunks, slabs, .. } = self;
                slabs.as_deref_mut()?.take(chunks, class, size, tag)
            } else {
                self.try_allocate_chunk::<false>(size, alignment, tag)
            }?;
            self.misses[index(class)] = if is_little_free || misses >= HOT.0 { 0 } else { misses };
            if is_little_free {
                // Disables slots until a slot is freed, or a region is added or becomes empty.
                self.slab_sizes = 0;
            }
            return Some(granted);
        }
        let granted = self.try_allocate_chunk::<false>(size, alignment, tag)?;
        // Not counted if refused: a repeated request must get the same answer.
        self.misses[list] = misses;
        Some(granted)
    }

    /// The number of slots of a new slab after this many misses; `None` if no slab is worthwhile.
    fn wanted_slots(&self, class: u32, slot: u64, misses: u8) -> Option<u32> {
        let Usage { capacity, used: live, .. } = self.chunks.usage();
        // A single region is in the bins even while it is empty, and should get no slab then.
        if live == 0 {
            return None;
        }
        let slabs = self.slabs.as_deref();
        let waste = slabs.map_or(0, Slabs::waste);
        let nothing = nothing(capacity);
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

    /// Makes a slab in a used region. Makes none if that needs an empty region.
    #[inline(never)]
    fn make_slab(&mut self, class: u32, misses: u8) -> Option<()> {
        let slot = slot_of(class);
        let slots = self.wanted_slots(class, slot, misses)?;
        let units = slot * u64::from(slots);
        let alignment = Alignment::from_log2(slot.trailing_zeros().min(LARGEST.trailing_zeros()));
        let (key, addr) = self.try_allocate_chunk::<false>(units, alignment, Tag(0))?;
        let slabs = self.slabs.get_or_insert_with(|| Box::new(Slabs::new()));
        let chunk = self.chunks.hand_over(key, addr, units, slabs.next_number());
        slabs.add(chunk, addr, class, slot, slots);
        Some(())
    }

    /// The class of a free slot that serves the request, if no chunk does.
    pub(in super::super) fn any_class(&self, size: u64, alignment: Alignment) -> Option<u32> {
        let slabs = self.slabs.as_deref()?;
        (0..CLASSES).find(|&class| {
            let slot = slot_of(class);
            slot >= size && slot & alignment.mask() == 0 && slabs.has_slot(class)
        })
    }

    /// Called after a slab became empty, if its region is empty too, or if it is time to check for too many empty
    /// slabs.
    #[cold]
    #[inline(never)]
    pub(in super::super) fn slab_emptied(&mut self, given: FreedSlot) -> (RegionId, bool) {
        if given.is_empty {
            self.region_emptied(given.region);
        }
        let usage = self.chunks.usage();
        // Up to half of a single region may be empty slabs. They prevent no request, see `find_anywhere`.
        let only = if self.chunks.region_count() == 1 { usage.capacity / 2 } else { 0 };
        self.trim((usage.used >> KEPT_LOG2).max(only));
        (given.region, given.is_empty)
    }

    /// Frees empty slabs until they have at most `most` units.
    #[inline(never)]
    fn trim(&mut self, most: u64) {
        while let Some(slabs) = self.slabs.as_deref_mut().filter(|slabs| slabs.empty_units > most) {
            let above = slabs.empty_map & (u64::MAX << slabs.hand);
            let class = if above == 0 { slabs.empty_map } else { above }.trailing_zeros();
            // At most 63, because no class has the last bit.
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

    /// Returns unlisted empty slabs to the core.
    fn give_slabs(&mut self, mut gone: u32) {
        while let Some(slabs) = self.slabs.as_deref_mut().filter(|_| gone != NONE) {
            let (next, Slab { class, chunk, addr, .. }) = slabs.forget(gone);
            gone = next;
            self.misses[index(class)] = 0;
            self.give_back(self.chunks.vacated(chunk), self.chunks.region_of(addr));
        }
    }

    /// Merges empty slabs with the free chunks beside them. Returns true if there was an empty slab. An engine does
    /// this itself before it refuses a request. Call it before explicit placement, see [`Tlsf::places`].
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

    /// Frees the slabs of an empty region, unless it is the only region.
    #[inline(never)]
    pub(in super::super) fn region_emptied(&mut self, region: RegionId) {
        if self.chunks.region_count() > 1 && !self.chunks.is_whole_region(self.chunks.first(region)) {
            self.clear(region);
        }
    }

    /// The address and size of each run that empty slabs and the free chunks around them would form.
    pub(in super::super) fn kept_runs(&self) -> impl Iterator<Item = (u64, u64)> {
        let slabs = self.slabs.as_deref().filter(|slabs| slabs.empty_units > 0);
        slabs.into_iter().flat_map(move |slabs| {
            let is_kept =
                move |chunk: u32| self.chunks.slab(chunk).is_some_and(|number| slabs.is_empty(number));
            let is_free = move |chunk: u32| self.chunks.is_free(chunk) || is_kept(chunk);
            // Visits each run once, from its first slab. At most one free chunk lies before that.
            let is_first = move |slab: &&Slab| {
                let prev = self.chunks.prev(slab.chunk);
                !(is_kept(prev) || self.chunks.is_free(prev) && is_kept(self.chunks.prev(prev)))
            };
            slabs.slabs.iter().filter(|slab| slab.is_empty()).filter(is_first).map(move |slab| {
                let (prev, mut next) = (self.chunks.prev(slab.chunk), self.chunks.next(slab.chunk));
                while is_free(next) {
                    next = self.chunks.next(next);
                }
                let (addr, size) = self.chunks.extent(prev);
                // A free chunk stays where it is. A slab takes the slack of the used chunk before it.
                let start = if self.chunks.is_free(prev) { addr } else { addr.wrapping_add(size) };
                (start, self.chunks.addr(next).wrapping_sub(start))
            })
        })
    }

    /// Units of all slabs, and the units in them that are not granted. O(1).
    #[must_use]
    pub fn slab_units(&self) -> (u64, u64) {
        self.slabs.as_deref().map_or((0, 0), |slabs| (slabs.total, slabs.total - slabs.used))
    }
}
