//! One region: where the next allocation goes.
#![forbid(unsafe_code)]

use super::serial::Serial;
use super::side::{Place, Record, Side};
use crate::base::align::{align_down, align_up};
use crate::metadata::{AllocateError, Chunk, RegionId, Request, Usage};

/// One region. Capacity 0: vacant.
///
/// ```text
///   |.....|#front#|###|#back#|............|#upper back#|##|        limit: where the upper side ends
///                            end          limit
///
///   |####|#back#|............|#front#|####|------|                 ring; limit: the oldest record
///               end          limit
/// ```
#[derive(Clone, Debug, Default)]
pub(super) struct Region {
    /// Where the newest record of the lower side ends; 0 without one.
    end: u64,
    /// What the lower side must not reach over.
    limit: u64,
    pub(super) capacity: u64,
    pub(super) used: u64,
    pub(super) used_chunks: u64,
    /// The lower side ran over the end and goes on below its own oldest record.
    ring: bool,
    /// Fills upwards from offset 0; in a ring, from there again once the end is reached.
    lower: Side,
    /// Fills downwards from the end.
    upper: Side,
}

impl Region {
    /// Makes a vacant region an empty one.
    pub(super) fn open(&mut self, capacity: u64) {
        self.capacity = capacity;
        self.limit = capacity;
    }

    /// Makes an empty region a vacant one.
    pub(super) fn close(&mut self) {
        self.capacity = 0;
        self.limit = 0;
    }

    pub(super) const fn usage(&self) -> Usage {
        Usage { capacity: self.capacity, used_chunks: self.used_chunks, used: self.used, rounding: 0 }
    }

    #[inline]
    pub(super) const fn is_empty(&self) -> bool {
        self.used_chunks == 0
    }

    #[inline]
    pub(super) const fn side(&self, upper: bool) -> &Side {
        if upper { &self.upper } else { &self.lower }
    }

    /// The lower side, for whose memory there may be better use while the region is empty.
    pub(super) fn lower_mut(&mut self) -> &mut Side {
        &mut self.lower
    }

    /// Where `request` goes on the lower side without a wrap.
    #[inline]
    pub(super) fn place(&self, request: &Request) -> Option<u64> {
        let offset = align_up(self.end, request.alignment)?;
        // Without a sum that could overflow; a size of 0 has no place.
        (offset <= self.limit && request.size.wrapping_sub(1) < self.limit - offset).then_some(offset)
    }

    /// Where `request` goes on the lower side after a wrap: at offset 0, below the oldest record.
    pub(super) fn place_wrapped(&self, request: &Request) -> Option<u64> {
        (request.size.wrapping_sub(1) < self.wrap_room()).then_some(0)
    }

    fn wrap_room(&self) -> u64 {
        match self.lower.front() {
            Some(front) if !self.ring && self.upper.is_empty() => front.offset,
            _ => 0,
        }
    }

    /// Where `request` goes on the upper side.
    pub(super) fn place_upper(&self, request: &Request) -> Result<u64, AllocateError> {
        if self.ring {
            return Err(AllocateError::UpperInRing);
        }
        let start = self.limit.checked_sub(request.size).ok_or(AllocateError::NoSpace)?;
        let offset = align_down(start, request.alignment);
        if offset < self.end || request.size == 0 { Err(AllocateError::NoSpace) } else { Ok(offset) }
    }

    /// Records an allocation that [`Region::place`] or [`Region::place_wrapped`] has found a place for.
    #[inline]
    pub(super) fn push_lower(&mut self, record: Record) {
        if record.offset < self.end {
            self.ring = true;
            self.limit = self.lower.front().map_or(self.limit, |front| front.offset);
        }
        self.end = record.end();
        self.count(&record);
        self.lower.push(record);
    }

    /// Records an allocation that [`Region::place_upper`] has found a place for.
    pub(super) fn push_upper(&mut self, record: Record) {
        self.limit = record.offset;
        self.count(&record);
        self.upper.push(record);
    }

    #[inline]
    fn count(&mut self, record: &Record) {
        self.used += record.size;
        self.used_chunks += 1;
    }

    /// Frees the record with that number, if it is live.
    #[inline]
    pub(super) fn take(&mut self, upper: bool, serial: Serial) -> Option<Record> {
        let side = if upper { &mut self.upper } else { &mut self.lower };
        let (record, place) = side.take(serial)?;
        match place {
            Place::Middle => {}
            _ if self.ring || upper => self.settle(),
            Place::Front if !self.lower.is_empty() => {}
            Place::Front | Place::Back => self.end = self.lower.back().map_or(0, Record::end),
        }
        self.used -= record.size;
        self.used_chunks -= 1;
        Some(record)
    }

    /// Sets `end`, `limit` and `ring` after records were taken off an end.
    fn settle(&mut self) {
        (self.end, self.limit, self.ring) = self.bounds();
    }

    /// L9: `end`, `limit` and `ring` as the records have them.
    #[inline]
    fn bounds(&self) -> (u64, u64, bool) {
        let upper_end = self.upper.back().map_or(self.capacity, |back| back.offset);
        match (self.lower.front(), self.lower.back()) {
            (Some(front), Some(back)) if back.offset < front.offset => (back.end(), front.offset, true),
            (_, Some(back)) => (back.end(), upper_end, false),
            (_, None) => (0, upper_end, false),
        }
    }

    /// The largest size at alignment 1 that [`Region::place`] has room for.
    pub(super) const fn room(&self) -> u64 {
        self.limit - self.end
    }

    /// As [`Region::room`], also after a wrap.
    pub(super) fn room_or_wrap(&self) -> u64 {
        self.room().max(self.wrap_room())
    }

    /// Bytes of host memory held.
    pub(super) fn heap_bytes(&self) -> usize {
        self.lower.heap_bytes() + self.upper.heap_bytes()
    }

    /// Forgets all allocations. Keeps the memory of the records.
    pub(super) fn clear(&mut self) {
        self.used = 0;
        self.used_chunks = 0;
        self.lower.clear();
        self.upper.clear();
        self.settle();
    }

    /// Live records in the order of their offsets, and whether they are of the upper side.
    fn live(&self) -> impl Iterator<Item = (&Record, bool)> {
        let lower = self.lower.records();
        // The records of the second lap are the newest, and lie below the oldest.
        let first_lap = self
            .lower
            .front()
            .map_or(0, |front| lower.partition_point(|record| record.offset >= front.offset));
        let lower = lower.range(first_lap..).chain(lower.range(..first_lap));
        let upper = self.upper.records().iter().rev();
        lower
            .map(|record| (record, false))
            .chain(upper.map(|record| (record, true)))
            .filter(|(record, _)| record.is_live())
    }

    /// Shows used chunks and what lies between them.
    pub(super) fn walk(&self, region: RegionId, visit: &mut dyn FnMut(Chunk)) {
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
        for (record, upper) in self.live() {
            next(record.offset, record.size, Some((record.serial.key(region, upper), record.tag())));
        }
        next(self.capacity, 0, None);
    }

    /// Asserts L1 to L5 and L9 of the engine.
    pub(super) fn validate(&self) {
        self.lower.validate();
        self.upper.validate();
        let oldest = self.lower.front().map_or(self.capacity, |front| front.offset);
        let (mut end, mut laps, mut limit) = (0, 1, self.capacity);
        for record in self.lower.records() {
            if record.offset < end {
                laps += 1;
                limit = oldest;
                end = 0;
            }
            assert!(record.size != 0, "L3: an allocation of nothing");
            assert!(end <= record.offset, "L3: the lower side overlaps itself");
            assert!(record.size <= limit.saturating_sub(record.offset), "L3: the lower side reaches too far");
            end = record.end();
        }
        assert!(laps == 1 || (laps == 2 && self.ring && self.upper.is_empty()), "L4: {laps} laps");
        let mut limit = self.capacity;
        for record in self.upper.records() {
            assert!(record.size != 0, "L3: an allocation of nothing");
            assert!(
                record.offset <= limit && record.size <= limit - record.offset,
                "L3: the upper side overlaps itself"
            );
            limit = record.offset;
        }
        assert!(laps == 2 || end <= limit, "L3: the two sides overlap");
        let (mut used, mut used_chunks) = (0, 0);
        for (record, _) in self.live() {
            used += record.size;
            used_chunks += 1;
        }
        assert_eq!((self.used, self.used_chunks), (used, used_chunks), "L5: sums of the region");
        assert_eq!((self.end, self.limit, self.ring), self.bounds(), "L9: end, limit and ring");
    }

    /// Asserts L4 of the engine for one of many regions.
    pub(super) fn validate_one_of_many(&self) {
        assert!(!self.ring && self.upper.is_empty(), "L4: a ring or an upper side in one of many regions");
    }
}
