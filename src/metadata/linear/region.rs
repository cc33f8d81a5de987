//! One region: where the next allocation goes.
#![forbid(unsafe_code)]

use super::pages::{Pages, Side};
use crate::base::cast::narrow;
use crate::metadata::{AllocateError, Chunk, Key, Request, Usage};

/// One region. Capacity 0: vacant.
///
/// ```text
///   |.....|#front#|---|#back#|............|#upper back#|##|        limit: where the upper side ends
///                            end          limit
///
///   |####|#back#|............|#front#|----|#####|--|               ring; limit: the oldest entry
///               end          limit
/// ```
#[derive(Clone, Default, Debug)]
#[repr(align(64))]
pub(super) struct Region {
    /// Where the newest entry of the lower side ends; 0 without one.
    end: u64,
    /// What the lower side must not reach over.
    limit: u64,
    pub(super) capacity: u64,
    pub(super) used: u64,
    pub(super) used_chunks: u32,
    /// The lower side ran over the end and goes on below its own oldest entry.
    ring: bool,
    /// Fills upwards from offset 0; in a ring, from there again once the end is reached.
    lower: Side,
    /// Fills downwards from the end.
    upper: Side,
}

// One line of the cache.
const _: () = assert!(size_of::<Region>() == 64);

impl Region {
    /// Makes an empty or vacant region one of that capacity; 0: a vacant one.
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

    /// Where `request` goes on the lower side without a wrap.
    #[inline]
    pub(super) fn place(&self, request: &Request) -> Option<u64> {
        fit(self.end, self.limit, request)
    }

    /// Whether `request` may go to offset 0, below the oldest entry.
    pub(super) fn may_wrap(&self, pages: &Pages, request: &Request) -> bool {
        request.size.wrapping_sub(1) < self.wrap_room(pages)
    }

    /// Units at the start, below the oldest entry, if the lower side may wrap.
    fn wrap_room(&self, pages: &Pages) -> u64 {
        if self.ring || !self.upper.is_empty() { 0 } else { self.oldest(pages) }
    }

    /// Where the oldest entry of the lower side is; 0 without one.
    #[inline]
    fn oldest(&self, pages: &Pages) -> u64 {
        pages.front(self.lower).map_or(0, |front| front.offset)
    }

    /// Lets the lower side go on at offset 0.
    pub(super) fn wrap(&mut self, pages: &Pages) {
        self.limit = self.oldest(pages);
        self.ring = true;
    }

    /// Where `request` goes on the upper side.
    pub(super) fn place_upper(&self, request: &Request) -> Result<u64, AllocateError> {
        if self.ring {
            return Err(AllocateError::UpperInRing);
        }
        let start = self.limit.checked_sub(request.size).ok_or(AllocateError::NoSpace)?;
        let offset = request.alignment.align_down(start);
        if offset < self.end || request.size == 0 { Err(AllocateError::NoSpace) } else { Ok(offset) }
    }

    /// Whether [`Region::push`] has a slot to put an entry into.
    #[inline]
    pub(super) const fn has_slot(&self) -> bool {
        self.lower.has_slot()
    }

    /// Sees to it that a side has a slot for the next entry; `false` if there may not be one.
    pub(super) fn reserve(&mut self, pages: &mut Pages, id: u32, upper: bool) -> bool {
        let side = if upper { &mut self.upper } else { &mut self.lower };
        side.has_slot() || pages.add_page(side, id, upper)
    }

    /// Records an allocation at a place that was found for it on the lower side, which has a slot.
    #[inline]
    pub(super) fn push(&mut self, pages: &mut Pages, request: &Request, offset: u64) -> Key {
        let size = request.size;
        self.end = offset + size;
        self.used += size;
        self.used_chunks += 1;
        pages.push(&mut self.lower, offset, size, request.tag)
    }

    /// The same on the upper side.
    pub(super) fn push_upper(&mut self, pages: &mut Pages, request: &Request, offset: u64) -> Key {
        let size = request.size;
        self.limit = offset;
        self.used += size;
        self.used_chunks += 1;
        pages.push(&mut self.upper, offset, size, request.tag)
    }

    /// Frees a live entry of this region. `true`: [`Self::settle`] has to follow. Without it the region is not empty.
    #[inline]
    #[must_use]
    pub(super) fn remove(&mut self, pages: &mut Pages, slot: u32, size: u64) -> bool {
        self.used -= size;
        self.used_chunks -= 1;
        match pages.kill(slot) {
            None => {}
            // What a stack does, without more ado.
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

    /// After the newest entry of a page was killed.
    pub(super) fn settle(&mut self, pages: &mut Pages, slot: u32) {
        if pages.is_upper(slot) {
            if pages.settle(&mut self.upper, slot).is_some() {
                // Beside an upper side there is no ring.
                self.limit = pages.back(self.upper).map_or(self.capacity, |back| back.offset);
            }
        } else if let Some(newest) = pages.settle(&mut self.lower, slot) {
            self.end = newest.end();
        }
        if self.ring {
            self.follow(pages);
        }
    }

    /// Moves the limit of a ring to its oldest entry. When that lies in front of the end, one of the two laps has
    /// gone.
    #[inline(never)]
    fn follow(&mut self, pages: &Pages) {
        let oldest = self.oldest(pages);
        self.ring = self.end <= oldest;
        self.limit = if self.ring { oldest } else { self.capacity };
    }

    /// The largest size at alignment 1 that [`Region::place`] has room for.
    pub(super) const fn room(&self) -> u64 {
        self.limit - self.end
    }

    /// As [`Region::room`], also after a wrap.
    pub(super) fn room_or_wrap(&self, pages: &Pages) -> u64 {
        self.room().max(self.wrap_room(pages))
    }

    /// Forgets all allocations, however many.
    pub(super) fn clear(&mut self, pages: &mut Pages) {
        self.used = 0;
        self.used_chunks = 0;
        pages.clear(&mut self.lower);
        pages.clear(&mut self.upper);
        (self.end, self.limit, self.ring) = (0, self.capacity, false);
    }

    /// Shows used chunks and what lies between them.
    pub(super) fn walk(&self, pages: &Pages, visit: &mut dyn FnMut(Chunk)) {
        let mut end = 0;
        let mut next = |offset: u64, size: u64, used| {
            if end < offset {
                visit(Chunk { offset: end, size: offset - end, used: None });
            }
            if size != 0 {
                visit(Chunk { offset, size, used });
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

    /// How many pages it has.
    pub(super) fn page_count(&self, pages: &Pages) -> usize {
        pages.ids(self.lower).count() + pages.ids(self.upper).count()
    }

    /// Asserts L1 to L5 and L9 of the engine.
    pub(super) fn validate(&self, pages: &Pages, id: u32) {
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
        assert!(laps == 1 || (laps == 2 && self.upper.is_empty()), "L4: {laps} laps");
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
        assert!(!self.ring && self.upper.is_empty(), "L4: a ring or an upper side in one of many regions");
    }
}

/// The lowest place for `request` between two offsets.
#[inline]
fn fit(from: u64, to: u64, request: &Request) -> Option<u64> {
    let offset = request.alignment.align_up(from)?;
    // Without a sum that could overflow; a size of 0 has no place.
    (offset <= to && request.size.wrapping_sub(1) < to - offset).then_some(offset)
}
