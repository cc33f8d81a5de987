//! One region, and the place of its next allocation.

use super::entry_pages::{EntryPages, RegionSide};
use crate::cast::narrow;
use crate::{AllocateError, ChunkInfo, Key, Request, Usage};

/// One region. Capacity 0: vacant.
///
/// ```text
///   |.....|#front#|---|#back#|............|#upper back#|##|        limit: the end of the upper side
///                            end          limit
///
///   |####|#back#|............|#front#|----|#####|--|               ring; limit: the oldest entry
///               end          limit
/// ```
#[derive(Clone, Default, Debug)]
#[repr(align(64))]
pub(super) struct LinearRegion {
    /// The end of the newest entry of the lower side; 0 without one.
    end: u64,
    /// The offset that the lower side must not pass.
    limit: u64,
    pub(super) capacity: u64,
    pub(super) used: u64,
    pub(super) used_chunks: u32,
    /// True if the lower side has wrapped: its newest entries lie below its oldest one.
    ring: bool,
    /// Fills upwards from offset 0. A ring wraps there at the end.
    lower: RegionSide,
    /// Fills downwards from the end.
    upper: RegionSide,
}

// One cache line.
const _: () = assert!(size_of::<LinearRegion>() == 64);

impl LinearRegion {
    /// Gives an empty or vacant region a capacity; 0 makes it vacant.
    pub(super) fn open(&mut self, capacity: u64) {
        self.capacity = capacity;
        self.limit = capacity;
    }

    pub(super) fn usage(&self) -> Usage {
        let used_chunks = u64::from(self.used_chunks);
        Usage { capacity: self.capacity, used_chunks, used: self.used, rounding: 0 }
    }

    #[inline]
    pub(super) const fn is_empty(&self) -> bool {
        self.used_chunks == 0
    }

    /// The place of `request` on the lower side without a wrap.
    #[inline]
    pub(super) fn place(&self, request: &Request) -> Option<u64> {
        fit(self.end, self.limit, request)
    }

    /// Returns true if `request` fits at offset 0, below the oldest entry.
    pub(super) fn may_wrap(&self, pages: &EntryPages, request: &Request) -> bool {
        request.size.wrapping_sub(1) < self.wrap_room(pages)
    }

    /// Free units at the start, below the oldest entry, if the lower side may wrap.
    fn wrap_room(&self, pages: &EntryPages) -> u64 {
        // The limit is below the capacity in a ring, and if the upper side has entries. Neither can wrap.
        if self.limit != self.capacity { 0 } else { self.oldest(pages) }
    }

    /// The offset of the oldest entry of the lower side; 0 without one.
    #[inline]
    fn oldest(&self, pages: &EntryPages) -> u64 {
        pages.front(self.lower).map_or(0, |front| front.offset)
    }

    /// Continues the lower side at offset 0: the wrap of a ring.
    pub(super) fn wrap(&mut self, pages: &EntryPages) {
        self.limit = self.oldest(pages);
        self.ring = true;
    }

    /// The place of `request` on the upper side.
    pub(super) fn place_upper(&self, request: &Request) -> Result<u64, AllocateError> {
        if self.ring {
            return Err(AllocateError::UpperInRing);
        }
        let start = self.limit.checked_sub(request.size).ok_or(AllocateError::NoSpace)?;
        let offset = request.alignment.align_down(start);
        if offset < self.end || request.size == 0 { Err(AllocateError::NoSpace) } else { Ok(offset) }
    }

    /// Returns true if [`LinearRegion::push`] has a slot for an entry.
    #[inline]
    pub(super) const fn has_slot(&self) -> bool {
        self.lower.has_slot()
    }

    /// Ensures that a side has a slot for the next entry. Returns false if no more pages are allowed.
    pub(super) fn reserve(&mut self, pages: &mut EntryPages, id: u32, upper: bool) -> bool {
        let side = if upper { &mut self.upper } else { &mut self.lower };
        side.has_slot() || pages.add_page(side, id, upper)
    }

    /// Adds an allocation at `offset`, its place on the lower side. The side has a slot.
    #[inline]
    pub(super) fn push(&mut self, pages: &mut EntryPages, request: &Request, offset: u64) -> Key {
        let size = request.size;
        self.end = offset + size;
        self.used += size;
        self.used_chunks += 1;
        pages.push(&mut self.lower, offset, size, request.tag)
    }

    /// [`Self::push`] for the upper side.
    pub(super) fn push_upper(&mut self, pages: &mut EntryPages, request: &Request, offset: u64) -> Key {
        let size = request.size;
        self.limit = offset;
        self.used += size;
        self.used_chunks += 1;
        pages.push(&mut self.upper, offset, size, request.tag)
    }

    /// Frees a live entry of this region. Returns true if the caller must call [`Self::complete_free`]. If false, the
    /// free is complete, and the region is not empty.
    #[inline]
    #[must_use]
    pub(super) fn remove(&mut self, pages: &mut EntryPages, slot: u32, size: u64) -> bool {
        self.used -= size;
        self.used_chunks -= 1;
        match pages.kill(slot) {
            None => {}
            // The fast path of a stack.
            Some(Some(newest)) if self.lower.is_newest(slot) => {
                self.lower.go_back(newest);
                self.end = pages.entry(newest).end();
            }
            Some(_) => return true,
        }
        if self.ring {
            self.follow(pages);
        }
        false
    }

    /// Completes a free after [`Self::remove`] returned true: the entry was the newest of its page.
    pub(super) fn complete_free(&mut self, pages: &mut EntryPages, slot: u32) {
        if pages.is_upper(slot) {
            if let Some(newest) = pages.complete_free(&mut self.upper, slot) {
                // A region with an upper side is not a ring. Only the default entry, which means none, ends at 0.
                self.limit = if newest.end() == 0 { self.capacity } else { newest.offset };
            }
        } else if let Some(newest) = pages.complete_free(&mut self.lower, slot) {
            self.end = newest.end();
        }
        if self.ring {
            self.follow(pages);
        }
    }

    /// Moves the limit of a ring to its oldest entry. If that lies before the end, only one of the two laps is left,
    /// and the region is no longer a ring.
    #[inline(never)]
    fn follow(&mut self, pages: &EntryPages) {
        let oldest = self.oldest(pages);
        self.ring = self.end <= oldest;
        self.limit = if self.ring { oldest } else { self.capacity };
    }

    /// The largest size at alignment 1 that [`LinearRegion::place`] can place.
    pub(super) const fn room(&self) -> u64 {
        self.limit - self.end
    }

    /// The larger of [`LinearRegion::room`] and the room after a wrap.
    pub(super) fn room_or_wrap(&self, pages: &EntryPages) -> u64 {
        self.room().max(self.wrap_room(pages))
    }

    /// Removes all allocations.
    pub(super) fn clear(&mut self, pages: &mut EntryPages) {
        self.used = 0;
        self.used_chunks = 0;
        pages.clear(&mut self.lower);
        pages.clear(&mut self.upper);
        (self.end, self.limit, self.ring) = (0, self.capacity, false);
    }

    /// Visits used chunks and the ranges between them.
    pub(super) fn walk(&self, pages: &EntryPages, visit: &mut dyn FnMut(ChunkInfo)) {
        let mut end = 0;
        let mut next = |offset: u64, size: u64, used| {
            if end < offset {
                visit(ChunkInfo { offset: end, size: offset - end, used: None });
            }
            if size != 0 {
                visit(ChunkInfo { offset, size, used });
            }
            end = offset + size;
        };
        // The entries of the second lap are the newest, and lie below the oldest.
        let oldest = self.oldest(pages);
        let lower = pages.entries(self.lower);
        let second_lap = lower.clone().skip_while(|(_, entry)| entry.offset >= oldest);
        let first_lap = lower.take_while(|(_, entry)| entry.offset >= oldest);
        for (slot, entry) in second_lap.chain(first_lap).chain(pages.entries_back(self.upper)) {
            next(entry.offset, entry.size, Some((pages.key(slot), entry.tag())));
        }
        next(self.capacity, 0, None);
    }

    /// The number of pages of the region.
    pub(super) fn page_count(&self, pages: &EntryPages) -> usize {
        pages.ids(self.lower).count() + pages.ids(self.upper).count()
    }

    /// Asserts L1 to L5 and L9 of the engine.
    pub(super) fn validate(&self, pages: &EntryPages, id: u32) {
        pages.validate_side(self.lower, id, false);
        pages.validate_side(self.upper, id, true);
        let oldest = self.oldest(pages);
        let (mut end, mut laps, mut limit) = (0, 1, self.capacity);
        for (_, entry) in pages.entries(self.lower) {
            if entry.offset < end {
                laps += 1;
                limit = oldest;
                end = 0;
            }
            assert!(entry.size != 0, "L3: an allocation of nothing");
            assert!(end <= entry.offset, "L3: the lower side overlaps itself");
            assert!(entry.size <= limit.saturating_sub(entry.offset), "L3: the lower side reaches too far");
            end = entry.end();
        }
        let has_upper = pages.entries(self.upper).next().is_some();
        assert!(laps == 1 || (laps == 2 && !has_upper), "L4: {laps} laps");
        let mut limit = self.capacity;
        for (_, entry) in pages.entries(self.upper) {
            assert!(entry.size != 0, "L3: an allocation of nothing");
            assert!(
                entry.offset <= limit && entry.size <= limit - entry.offset,
                "L3: the upper side overlaps itself"
            );
            limit = entry.offset;
        }
        assert!(laps == 2 || end <= limit, "L3: the two sides overlap");
        let entries = pages.entries(self.lower).chain(pages.entries(self.upper));
        let used = entries.clone().map(|(_, entry)| entry.size).sum();
        let used_chunks = narrow(entries.count());
        assert_eq!((self.used, self.used_chunks), (used, used_chunks), "L5: sums of the region");
        let ring = laps == 2;
        let newest = pages.entries(self.lower).last().map_or(0, |(_, entry)| entry.end());
        let limit = if ring { oldest } else { limit };
        assert_eq!((self.end, self.limit, self.ring), (newest, limit, ring), "L9: end, limit and ring");
    }

    /// Asserts L4 of the engine for one of many regions.
    pub(super) fn validate_one_of_many(&self) {
        assert!(!self.ring && self.upper.is_new(), "L4: a ring or an upper side in one of many regions");
    }
}

/// The lowest place for `request` between two offsets.
#[inline]
fn fit(from: u64, to: u64, request: &Request) -> Option<u64> {
    let offset = request.alignment.align_up(from)?;
    // Avoids a sum that could overflow. A size of 0 has no place.
    (offset <= to && request.size.wrapping_sub(1) < to - offset).then_some(offset)
}
