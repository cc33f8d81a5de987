//! The engine of powers of two.
//!
//! See [`Buddy`].

#[cfg(test)]
mod tests;

use super::chunks::{Chunks, NONE};
use super::{
    AllocateError, BadKey, ChunkInfo, Freed, Key, Metadata, NotEmpty, RegionError, RegionId, Request, Span,
    Tag, Usage, allocate_elsewhere,
};
use crate::cast::index;

/// 2^0 to 2^63.
const ORDERS: usize = 64;

/// A region needs at most this many slots: one for each of its pieces, and one for its header.
const REGION_SLOTS: u32 = 65;

/// Grants powers of two. A free chunk that is too large is halved until it fits. A freed chunk is merged with its other
/// half, its buddy, if that is free and whole.
///
/// A chunk of 2^k units has **order** k, and starts at a multiple of 2^k from the start of its region. So alignments up
/// to the size cost nothing, and flipping bit k of its offset gives the offset of its buddy. For a larger alignment the
/// engine takes a chunk as large as the alignment, or else the free start of a region.
///
/// A region whose capacity is not a power of two consists of pieces that are, the largest first. Chunks of different
/// pieces are never merged. A rest below the smallest order is never used.
///
/// ```text
///   capacity 110, smallest 4            one allocation of 10: 64 -> 32 + 32, 32 -> 16 + 16
///
///   0                 64       96  104 108 110
///   | order 6         | order 5 |  3  | 2 | |        pieces, and a rest of 2
///   |#10###|16 | 32   |         |     |   |-|        6 units more than asked: Usage::rounding is 6
/// ```
///
/// If sizes are powers of two, or slightly less, free chunks have few sizes, and the hole of one allocation fits the
/// next. If sizes are arbitrary, rounding wastes a quarter of the memory on average: use [`Tlsf`](super::Tlsf) then.
///
/// Units can be anything. Spans have the granted size. [`Usage::rounding`] is the sum of the excess over the requested
/// sizes.
///
/// # Complexity
/// Allocating: O(1) to find the chunk, then one step for each halving. Freeing: one step for each merge. Both take at
/// most 63 steps, for any number of regions and chunks. If no free chunk is as large as the alignment, allocating
/// checks the starts of all regions. A chunk takes 40 bytes of host memory.
///
/// # Invariants
/// [`Metadata::validate`] asserts these numbered invariants, and C1 to C7 of the chunks:
///
/// - B1: all chunks but a region's rest are powers of two, not below the smallest, at a multiple of their size, inside
///   one piece.
/// - B2: the free ones are in the list of their order, and nothing else is in a list.
/// - B3: a bit in the map of lists is set iff the list is not empty.
/// - B4: no two free chunks are buddies inside one piece.
/// - B5: the sums of rounding, of each region and of the engine, are those of the used chunks.
///
/// # Examples
/// ```
/// use sublet_engines::{Alignment, Buddy, Metadata, Request};
///
/// let mut buddy = Buddy::new(1 << 20, 256);
/// buddy.add_region(&(1 << 20))?;
/// let (a, granted) = buddy.allocate(&Request::new(5000, Alignment::ONE)).expect("there is room");
/// assert_eq!((granted.offset, granted.size), (0, 8192));
/// assert_eq!((buddy.usage().used, buddy.usage().rounding), (8192, 3192));
/// let (b, granted) = buddy.allocate(&Request::new(1, Alignment::ONE)).expect("there is room");
/// assert_eq!((granted.offset, granted.size), (8192, 256));
///
/// buddy.free(a).expect("a live key");
/// assert!(buddy.free(a).is_err());
/// buddy.free(b).expect("a live key");
/// assert_eq!(buddy.largest_free(), 1 << 20);
/// # Ok::<(), sublet_engines::RegionError>(())
/// ```
#[derive(Clone, Debug)]
#[doc(alias = "BuddyAllocator")]
pub struct Buddy {
    chunks: Chunks,
    /// Heads of the lists of free chunks by order, over all regions, last freed first.
    lists: [u32; ORDERS],
    /// Bit `k`: list `k` is not empty.
    map: u64,
    /// Units of the smallest chunk, a power of two.
    smallest: u64,
    /// By used chunk: the granted units beyond the requested size.
    roundings: Vec<u64>,
    /// Their sum by region.
    region_roundings: Vec<u64>,
    /// Their sum over all regions.
    rounding: u64,
}

impl Buddy {
    /// Creates an engine without regions. Each region may have up to `max_region_capacity` units. No chunk is smaller
    /// than `smallest`, rounded up to a power of two. A larger value saves host memory and steps, and wastes units.
    ///
    /// # Panics
    /// Panics if one of the two is 0 or above 2^63.
    #[must_use]
    pub fn new(max_region_capacity: u64, smallest: u64) -> Self {
        assert!((1..=1 << 63).contains(&smallest), "the smallest chunk has 1 to 2^63 units, not {smallest}");
        Self {
            chunks: Chunks::new(max_region_capacity),
            lists: [NONE; ORDERS],
            map: 0,
            smallest: smallest.next_power_of_two(),
            roundings: Vec::new(),
            region_roundings: Vec::new(),
            rounding: 0,
        }
    }

    /// Units of the smallest chunk.
    #[must_use]
    pub const fn smallest(&self) -> u64 {
        self.smallest
    }

    /// Bytes of host memory that the engine holds.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        self.chunks.heap_bytes()
            + (self.roundings.capacity() + self.region_roundings.capacity()) * size_of::<u64>()
    }

    /// The smallest grant for a request, a power of two; `None` above 2^63. An empty region of that size fits it,
    /// because offset 0 is a multiple of every alignment.
    #[inline]
    pub fn granted(&self, request: &Request) -> Option<u64> {
        request.size.max(self.smallest).checked_next_power_of_two()
    }

    #[inline]
    fn push(&mut self, order: u32, chunk: u32) {
        self.chunks.list_push(&mut self.lists[index(order)], chunk);
        self.map |= 1 << order;
    }

    #[inline]
    fn remove(&mut self, order: u32, chunk: u32) {
        let list = &mut self.lists[index(order)];
        self.chunks.list_remove(list, chunk);
        if *list == NONE {
            self.map &= !(1 << order);
        }
    }

    /// Replaces the tag of a live key.
    ///
    /// # Errors
    /// [`BadKey`] if `key` is not live in this engine.
    pub fn set_tag(&mut self, key: Key, tag: Tag) -> Result<(), BadKey> {
        self.chunks.set_tag(key, tag)
    }

    /// Cuts a new region, a single unlisted chunk, into pieces.
    fn divide(&mut self, chunk: u32) {
        let mut rest = self.chunks.size(chunk);
        while rest >= self.smallest {
            let order = rest.ilog2();
            let size = 1 << order;
            let piece = if rest == size { chunk } else { self.chunks.cut_front(chunk, size) };
            self.push(order, piece);
            rest -= size;
        }
    }

    /// The free chunk for a request, its order, and the order of the grant.
    #[inline]
    fn find(&self, request: &Request) -> Option<(u32, u32, u32)> {
        let size = self.granted(request).filter(|_| request.size != 0)?;
        let order = size.max(request.alignment.get()).trailing_zeros();
        let large_enough = self.map >> order;
        if large_enough == 0 {
            return self.find_start(size);
        }
        let found = order + large_enough.trailing_zeros();
        Some((self.lists[index(found)], found, order))
    }

    /// [`Self::find`] if no free chunk is as large as the alignment. Tries the starts of regions, the tightest first.
    #[cold]
    #[inline(never)]
    fn find_start(&self, size: u64) -> Option<(u32, u32, u32)> {
        if self.map >> size.trailing_zeros() == 0 {
            return None;
        }
        let starts = self.chunks.regions().map(|region| self.chunks.first(region));
        let starts = starts.map(|chunk| (self.chunks.size(chunk), chunk));
        let large_enough = starts.filter(|&(found, chunk)| found >= size && self.chunks.is_free(chunk));
        let (found, chunk) = large_enough.min_by_key(|&(found, _)| found)?;
        Some((chunk, found.trailing_zeros(), size.trailing_zeros()))
    }

    /// Returns true if a request would succeed. Changes nothing.
    ///
    /// # Errors
    /// [`AllocateError::UpperUnsupported`] for a request from the upper end.
    pub fn fits(&self, request: &Request) -> Result<bool, AllocateError> {
        if request.upper {
            return Err(AllocateError::UpperUnsupported);
        }
        Ok(self.find(request).is_some())
    }

    /// Removes the free chunks of a region from their lists.
    fn unlist(&mut self, region: RegionId) {
        self.with_free(region, Self::remove);
    }

    /// Adds the free chunks of a region to their lists.
    fn list(&mut self, region: RegionId) {
        self.with_free(region, Self::push);
    }

    /// Calls `act` with the order and index of each free chunk. `act` must not change the region's ring.
    fn with_free(&mut self, region: RegionId, act: fn(&mut Self, u32, u32)) {
        let first = self.chunks.first(region);
        let header = self.chunks.prev(first);
        let mut chunk = first;
        while chunk != header {
            let size = self.chunks.size(chunk);
            if self.chunks.is_free(chunk) && size >= self.smallest {
                act(self, size.trailing_zeros(), chunk);
            }
            chunk = self.chunks.next(chunk);
        }
    }
}

impl Metadata for Buddy {
    type Capacity = u64;
    type Request = Request;
    type Span = Span;
    type Chunk = ChunkInfo;

    fn add_region(&mut self, &capacity: &u64) -> Result<RegionId, RegionError> {
        if (1..=self.chunks.max_capacity()).contains(&capacity) && !self.chunks.has_slots(REGION_SLOTS) {
            return Err(RegionError::TooMany);
        }
        let (region, chunk) = self.chunks.add_region(capacity)?;
        self.divide(chunk);
        if self.region_roundings.len() <= index(region.0) {
            self.region_roundings.push(0);
        }
        Ok(region)
    }

    fn remove_region(&mut self, region: RegionId) -> Result<(), NotEmpty> {
        self.chunks.check_empty(region)?;
        self.unlist(region);
        self.chunks.remove_region(region);
        Ok(())
    }

    /// Halves the found chunk down to the order of the grant.
    #[inline(never)]
    fn allocate(&mut self, request: &Request) -> Result<(Key, Span), AllocateError> {
        if request.upper {
            return Err(AllocateError::UpperUnsupported);
        }
        let (chunk, found, order) = self.find(request).ok_or(AllocateError::NoSpace)?;
        if !self.chunks.has_slots(found - order) {
            return Err(AllocateError::NoSpace);
        }
        self.remove(found, chunk);
        for order in (order..found).rev() {
            let buddy = self.chunks.cut_back(chunk, 1 << order);
            self.push(order, buddy);
        }
        let (addr, size) = self.chunks.extent(chunk);
        self.chunks.mark_links(chunk, 0);
        let key = self.chunks.occupy(chunk, addr, size, request.tag);
        let span = self.chunks.span_at(addr, size);
        let rounding = size - request.size;
        if self.roundings.len() <= index(chunk) {
            self.roundings.resize(self.chunks.slot_count(), 0);
        }
        self.roundings[index(chunk)] = rounding;
        self.region_roundings[index(span.region.0)] += rounding;
        self.rounding += rounding;
        Ok((key, span))
    }

    #[inline]
    fn free(&mut self, key: Key) -> Result<Freed, BadKey> {
        let (chunk, freed) = self.chunks.vacate(key)?;
        let rounding = self.roundings[index(chunk)];
        self.region_roundings[index(freed.span.region.0)] -= rounding;
        self.rounding -= rounding;
        let Span { offset, mut size, .. } = freed.span;
        // A whole, free buddy touches this chunk and has its size. The neighbours of a piece have another size than the
        // piece, so nothing is merged across its border. A region's rest is smaller than any chunk, and never merged.
        loop {
            let behind = offset & size == 0;
            let buddy = if behind { self.chunks.next(chunk) } else { self.chunks.prev(chunk) };
            if !self.chunks.is_free(buddy) || self.chunks.size(buddy) != size {
                break;
            }
            self.remove(size.trailing_zeros(), buddy);
            if behind {
                self.chunks.absorb_next(chunk);
            } else {
                self.chunks.absorb_prev(chunk);
            }
            // `offset` need not change: merging with the previous chunk only clears a bit that is not read again.
            size *= 2;
        }
        self.push(size.trailing_zeros(), chunk);
        Ok(freed)
    }

    fn reset(&mut self, region: RegionId) {
        self.unlist(region);
        let chunk = self.chunks.collapse(region);
        self.rounding -= std::mem::take(&mut self.region_roundings[index(region.0)]);
        self.divide(chunk);
    }

    /// Removes the free chunks of closed regions from the lists meanwhile. Uses the default implementation if the
    /// alignment exceeds the size, because the search of the starts of regions ignores the lists.
    fn allocate_outside(
        &mut self,
        request: &Request,
        is_closed: &dyn Fn(RegionId) -> bool,
    ) -> Result<(Key, Span), AllocateError> {
        if self.granted(request).is_none_or(|size| request.alignment.get() > size) {
            return allocate_elsewhere(self, request, is_closed);
        }
        let closed: Vec<RegionId> = self.chunks.regions().filter(|&region| is_closed(region)).collect();
        closed.iter().for_each(|&region| self.unlist(region));
        let granted = self.allocate(request);
        closed.iter().for_each(|&region| self.list(region));
        granted
    }

    fn span(&self, key: Key) -> Result<Span, BadKey> {
        self.chunks.span(key)
    }

    fn tag(&self, key: Key) -> Result<Tag, BadKey> {
        self.chunks.tag(key)
    }

    fn region_usage(&self, region: RegionId) -> Usage {
        let usage = self.chunks.region_usage(region);
        Usage { rounding: self.region_roundings[index(region.0)], ..usage }
    }

    fn usage(&self) -> Usage {
        Usage { rounding: self.rounding, ..self.chunks.usage() }
    }

    /// The size of the highest order with a free chunk. O(1).
    fn largest_free(&self) -> u64 {
        self.map.checked_ilog2().map_or(0, |order| 1 << order)
    }

    fn walk(&self, region: RegionId, visit: &mut dyn FnMut(ChunkInfo)) {
        self.chunks.walk(region, &|_, _| (), visit);
    }

    fn validate(&self) {
        let mut free = 0;
        self.chunks.validate(&|_| (0, 0), &mut |_| free += 1);
        let mut rounding = 0;
        for region in self.chunks.regions() {
            let capacity = self.chunks.region_usage(region).capacity;
            let usable = capacity & !(self.smallest - 1);
            let mut region_rounding = 0;
            for chunk in self.chunks.chunks(region) {
                let (offset, size) = (self.chunks.offset(chunk), self.chunks.size(chunk));
                if offset == usable {
                    assert!(self.chunks.is_free(chunk), "B1: the rest of a region is used");
                    assert_eq!(size, capacity - usable, "B1: the rest of a region");
                    free -= 1;
                    continue;
                }
                assert!(size.is_power_of_two() && size >= self.smallest, "B1: a chunk of {size}");
                assert_eq!(offset % size, 0, "B1: a chunk of {size} at {offset}");
                // The highest bit in which an offset and the end differ is the order of its piece.
                let piece = 1 << (offset ^ usable).ilog2();
                assert!(size <= piece, "B1: a chunk of {size} in a piece of {piece}");
                if self.chunks.is_free(chunk) {
                    let next = self.chunks.next(chunk);
                    let pair =
                        offset & size == 0 && self.chunks.is_free(next) && self.chunks.size(next) == size;
                    assert!(!pair, "B4: free buddies of {size} at {offset}");
                } else {
                    region_rounding += self.roundings[index(chunk)];
                }
            }
            assert_eq!(
                region_rounding,
                self.region_roundings[index(region.0)],
                "B5: rounding of region {}",
                region.0
            );
            rounding += region_rounding;
        }
        assert_eq!(rounding, self.rounding, "B5: rounding of the engine");
        let mut listed = 0;
        for (order, &head) in self.lists.iter().enumerate() {
            assert_eq!(self.map >> order & 1 == 1, head != NONE, "B3: list {order}");
            self.chunks.validate_list(head, &mut |chunk| {
                assert_eq!(self.chunks.size(chunk), 1 << order, "B2: a chunk in list {order}");
                listed += 1;
            });
        }
        assert_eq!(listed, free, "B2: a free chunk is in no list");
    }
}
