//! The entries of live allocations, in pages, and their keys.

use std::num::NonZeroU64;

use crate::cast::{index, narrow};
use crate::{Key, Tag, first_generation};

/// No page: the end of a list.
pub(super) const NONE: u32 = u32::MAX;

/// Entries in a page, one for each bit of [`EntryPage::live`].
pub(super) const PAGE_ENTRIES: u32 = u32::BITS;

/// Slots are below this.
const SLOTS: u32 = 1 << 30;

/// A bit of a key besides the slot, so that no key is zero.
const NOT_ZERO: NonZeroU64 = match NonZeroU64::new(1 << 30) {
    Some(bit) => bit,
    None => NonZeroU64::MIN,
};

/// An allocation. A dead entry is overwritten when its slot is reused.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct LinearEntry {
    pub(super) offset: u64,
    pub(super) size: u64,
    generation: u32,
    tag: u32,
}

impl LinearEntry {
    /// The end of the allocation. An entry lies in its region, so this cannot overflow.
    #[inline]
    pub(super) const fn end(&self) -> u64 {
        self.offset + self.size
    }

    pub(super) const fn tag(&self) -> Tag {
        Tag(self.tag)
    }
}

/// Entries of one side of a region, in the order of allocation.
#[derive(Clone, Debug)]
struct EntryPage {
    /// Bit `k`: entry `k` is live.
    live: u32,
    /// The previous page of its side.
    prev: u32,
    /// The next page of its side, or of the list of free pages.
    next: u32,
    upper: bool,
    region: u32,
    entries: [LinearEntry; index(PAGE_ENTRIES)],
}

/// The page and the bit of an entry.
#[inline]
const fn split(slot: u32) -> (usize, u32) {
    (index(slot / PAGE_ENTRIES), 1 << (slot % PAGE_ENTRIES))
}

#[inline]
fn key(slot: u32, generation: u32) -> Key {
    Key(NOT_ZERO | (u64::from(generation) << 32) | u64::from(slot))
}

/// A live entry that [`EntryPages::find`] found.
#[derive(Clone, Copy, Debug)]
pub(super) struct FoundEntry {
    pub(super) slot: u32,
    pub(super) region: u32,
    pub(super) entry: LinearEntry,
}

/// All pages of an engine.
#[derive(Clone, Debug)]
pub(super) struct EntryPages {
    pages: Vec<EntryPage>,
    /// The first free page.
    free: u32,
    /// The generation of the next entry. Counts all entries ever made.
    generation: u32,
    /// The maximum number of pages; lower in tests.
    max: u32,
}

impl EntryPages {
    pub(super) fn new() -> Self {
        Self { pages: Vec::new(), free: NONE, generation: first_generation(), max: SLOTS / PAGE_ENTRIES }
    }

    #[inline]
    pub(super) fn entry(&self, slot: u32) -> &LinearEntry {
        &self.pages[index(slot / PAGE_ENTRIES)].entries[index(slot % PAGE_ENTRIES)]
    }

    pub(super) fn key(&self, slot: u32) -> Key {
        key(slot, self.entry(slot).generation)
    }

    /// The live entry of a key.
    #[inline(always)]
    pub(super) fn find(&self, key: Key) -> Option<FoundEntry> {
        let bits = key.0.get() ^ NOT_ZERO.get();
        #[allow(clippy::as_conversions, clippy::cast_possible_truncation, reason = "two halves of 32 bits")]
        let (slot, generation) = (bits as u32, (bits >> 32) as u32);
        let (page, bit) = split(slot);
        let page = self.pages.get(page)?;
        let entry = page.entries[index(slot % PAGE_ENTRIES)];
        let is_live = page.live & bit != 0 && entry.generation == generation;
        is_live.then_some(FoundEntry { slot, region: page.region, entry })
    }

    /// Replaces the tag of the live entry of a key.
    pub(super) fn set_tag(&mut self, key: Key, tag: Tag) -> Option<()> {
        let FoundEntry { slot, .. } = self.find(key)?;
        let (page, _) = split(slot);
        self.pages[page].entries[index(slot % PAGE_ENTRIES)].tag = tag.0 & Tag::MASK;
        Some(())
    }

    /// Returns true if one more page is available.
    pub(super) fn has_page(&self) -> bool {
        self.free != NONE || self.pages.len() < index(self.max)
    }

    /// Adds a page to a side without a free slot. Returns false at the limit. The caller pushes an entry next.
    pub(super) fn add_page(&mut self, side: &mut RegionSide, region: u32, upper: bool) -> bool {
        if !self.has_page() {
            return false;
        }
        let id = if self.free == NONE { self.grow() } else { self.free };
        let prev = side.last();
        let page = &mut self.pages[index(id)];
        self.free = page.next;
        (page.prev, page.next, page.upper, page.region) = (prev, NONE, upper, region);
        match self.pages.get_mut(index(prev)) {
            Some(prev) => prev.next = id,
            None => side.first = id,
        }
        side.next = id * PAGE_ENTRIES;
        true
    }

    fn grow(&mut self) -> u32 {
        let len = self.pages.len();
        if len == self.pages.capacity() {
            // Grows by a quarter, because doubling would leave half of the memory unused. In total, each page is copied
            // about five times.
            self.pages.reserve_exact(1.max(len / 4));
        }
        let entries = [LinearEntry::default(); index(PAGE_ENTRIES)];
        self.pages.push(EntryPage { live: 0, prev: NONE, next: NONE, upper: false, region: 0, entries });
        narrow(len)
    }

    /// Appends an entry to a side, which [has a slot](RegionSide::has_slot).
    #[inline(always)]
    pub(super) fn push(&mut self, side: &mut RegionSide, offset: u64, size: u64, tag: Tag) -> Key {
        let (slot, generation) = (side.next, self.generation);
        let (page, bit) = split(slot);
        let page = &mut self.pages[page];
        page.live |= bit;
        page.entries[index(slot % PAGE_ENTRIES)] =
            LinearEntry { offset, size, generation, tag: tag.0 & Tag::MASK };
        self.generation = generation.wrapping_add(1);
        side.next = slot + 1;
        key(slot, generation)
    }

    /// Marks a live entry dead. Returns `Some` if it was the newest of its page. The caller then moves the side back to
    /// its newest live entry. The inner value is the slot of the page's newest live entry, if any.
    #[inline(always)]
    pub(super) fn kill(&mut self, slot: u32) -> Option<Option<u32>> {
        let (page, bit) = split(slot);
        let page = &mut self.pages[page];
        page.live ^= bit;
        (page.live < bit)
            .then(|| page.live.checked_ilog2().map(|newest| slot / PAGE_ENTRIES * PAGE_ENTRIES + newest))
    }

    /// Returns true if an entry belongs to an upper side.
    #[inline]
    pub(super) fn is_upper(&self, slot: u32) -> bool {
        self.pages[index(slot / PAGE_ENTRIES)].upper
    }

    /// Completes a free after the newest entry of a page was killed. Removes the page from its side if it has no live
    /// entry and is not the only one. Moves the side back to its newest entry. Returns that entry if it changed, or a
    /// default entry if there is none.
    #[inline]
    pub(super) fn complete_free(&mut self, side: &mut RegionSide, slot: u32) -> Option<LinearEntry> {
        let was_newest = side.is_newest(slot);
        let mut id = slot / PAGE_ENTRIES;
        let page = &self.pages[index(id)];
        if page.live == 0 {
            if page.prev == page.next {
                // Both are `NONE`: it is the only page. Skips the first slot, because a side with a page never has that
                // as its next slot.
                side.next = id * PAGE_ENTRIES + 1;
                return Some(LinearEntry::default());
            }
            id = self.take_out(side, id);
        }
        if !was_newest {
            return None;
        }
        // If it was the newest, there are older entries, and a previous page.
        let page = &self.pages[index(id)];
        let newest = page.live.ilog2();
        side.next = id * PAGE_ENTRIES + newest + 1;
        Some(page.entries[index(newest)])
    }

    /// Frees a page of a side, and returns the previous page.
    #[inline(never)]
    fn take_out(&mut self, side: &mut RegionSide, page: u32) -> u32 {
        let free = std::mem::replace(&mut self.free, page);
        let gone = &mut self.pages[index(page)];
        let (prev, next) = (gone.prev, std::mem::replace(&mut gone.next, free));
        match self.pages.get_mut(index(prev)) {
            Some(prev) => prev.next = next,
            None => side.first = next,
        }
        if let Some(next) = self.pages.get_mut(index(next)) {
            next.prev = prev;
        }
        prev
    }

    /// Removes all entries of a side: one step for each page.
    pub(super) fn clear(&mut self, side: &mut RegionSide) {
        let RegionSide { first: mut id, .. } = std::mem::take(side);
        while let Some(page) = self.pages.get_mut(index(id)) {
            page.live = 0;
            let next = std::mem::replace(&mut page.next, self.free);
            self.free = std::mem::replace(&mut id, next);
        }
    }

    /// The oldest live entry of a side.
    pub(super) fn front(&self, side: RegionSide) -> Option<&LinearEntry> {
        let page = self.pages.get(index(side.first))?;
        page.entries.get(index(page.live.trailing_zeros()))
    }

    /// The pages of a side, oldest first.
    pub(super) fn ids(&self, side: RegionSide) -> impl Iterator<Item = u32> + Clone {
        self.chain(side.first, |page| page.next)
    }

    /// The live entries of a side with their slots, oldest first.
    pub(super) fn entries(&self, side: RegionSide) -> impl Iterator<Item = (u32, &LinearEntry)> + Clone {
        self.ids(side).flat_map(|page| self.live(page))
    }

    /// The live entries of a side with their slots, newest first.
    pub(super) fn entries_back(&self, side: RegionSide) -> impl Iterator<Item = (u32, &LinearEntry)> + Clone {
        self.chain(side.last(), |page| page.prev).flat_map(|page| self.live(page).rev())
    }

    fn live(&self, id: u32) -> impl DoubleEndedIterator<Item = (u32, &LinearEntry)> + Clone {
        let page = &self.pages[index(id)];
        let live = (0..PAGE_ENTRIES).filter(|bit| page.live >> bit & 1 == 1);
        live.map(move |bit| (id * PAGE_ENTRIES + bit, &page.entries[index(bit)]))
    }

    fn chain(&self, first: u32, next: fn(&EntryPage) -> u32) -> impl Iterator<Item = u32> + Clone {
        let there = |id: u32| (id != NONE).then_some(id);
        std::iter::successors(there(first), move |&id| there(next(&self.pages[index(id)])))
    }

    /// Bytes of host memory.
    pub(super) fn heap_bytes(&self) -> usize {
        self.pages.capacity() * size_of::<EntryPage>()
    }

    /// Asserts L1 and L2 of the engine for one side.
    pub(super) fn validate_side(&self, side: RegionSide, region: u32, upper: bool) {
        let mut before = NONE;
        for id in self.ids(side) {
            let page = &self.pages[index(id)];
            assert_eq!(page.prev, before, "L1: the link backwards of page {id}");
            assert_eq!((page.region, page.upper), (region, upper), "L1: page {id} is of another side");
            let is_only = page.prev == NONE && page.next == NONE;
            assert!(page.live != 0 || is_only, "L2: page {id} has no live entry");
            before = id;
        }
        assert_eq!(side.last(), before, "L1: the last page");
        let kept = if side.is_new() { 0 } else { side.first * PAGE_ENTRIES + 1 };
        let newest = self.entries(side).last().map_or(kept, |(slot, _)| slot + 1);
        assert_eq!(side.next, newest, "L2: the next slot is not behind the newest entry");
    }

    /// Asserts L1 of the engine for the free pages. `in_use` is the number of pages in use.
    pub(super) fn validate_free(&self, in_use: usize) {
        let mut count = in_use;
        for id in self.chain(self.free, |page| page.next) {
            assert_eq!(self.pages[index(id)].live, 0, "L1: free page {id} has live entries");
            count += 1;
            assert!(count <= self.pages.len(), "L1: the free pages go round");
        }
        assert_eq!(count, self.pages.len(), "L1: a page is lost");
    }

    /// Sets the limit for a test.
    #[cfg(test)]
    pub(super) fn set_max(&mut self, max: u32) {
        self.max = max;
    }

    #[cfg(test)]
    pub(super) fn generation(&self) -> u32 {
        self.generation
    }

    /// Sets the generation for a test.
    #[cfg(test)]
    pub(super) fn set_generation(&mut self, generation: u32) {
        self.generation = generation;
    }
}

/// The pages of one side of a region.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct RegionSide {
    /// The page of the oldest entry.
    first: u32,
    /// The slot of the next entry, after the newest one. It may be the first slot of a page that does not exist yet.
    /// Without entries it is the second slot of the page, or 0 without a page.
    next: u32,
}

impl Default for RegionSide {
    fn default() -> Self {
        Self { first: NONE, next: 0 }
    }
}

impl RegionSide {
    /// Returns true if the newest entry, live or just killed, is in `slot`.
    #[inline]
    pub(super) const fn is_newest(self, slot: u32) -> bool {
        self.next == slot + 1
    }

    /// Moves back to an entry in the page of the newest one. No later entry is live.
    #[inline]
    pub(super) const fn go_back(&mut self, newest: u32) {
        self.next = newest + 1;
    }

    /// Returns true if it has no page yet.
    #[inline]
    pub(super) const fn is_new(self) -> bool {
        self.first == NONE
    }

    /// Returns true if there is a slot for the next entry.
    #[inline]
    pub(super) const fn has_slot(self) -> bool {
        self.next % PAGE_ENTRIES != 0
    }

    /// The page of the newest entry.
    const fn last(self) -> u32 {
        if self.is_new() { NONE } else { (self.next - 1) / PAGE_ENTRIES }
    }
}
