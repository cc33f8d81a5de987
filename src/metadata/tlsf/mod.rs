//! The engine for everything: two-level segregated fit.
//!
//! See [`Tlsf`].
#![forbid(unsafe_code)]

mod at;
mod bins;
mod empties;
mod offset_index;
mod outside;
mod place;
mod search;
mod slabs;

#[cfg(test)]
mod tests;

use std::fmt;

use self::bins::{Bins, class_and_step, class_of};
use self::empties::Empties;
use self::offset_index::OffsetIndex;
use self::search::Find;
use self::slabs::{LEAST_CAPACITY, LISTS, SMALL, Slabs, class_for, is_slot, smallness};
use super::chunks::{Chunks, NONE, Vacated};
use super::{
    Alignment, AllocateError, BadKey, Chunk, Freed, Key, Metadata, NotEmpty, RegionError, RegionId, Request,
    Sizes, Span, Strategy, Tag, Usage,
};

/// Grants any size in constant time, and packs well: the engine for everything that has no better one.
///
/// The free chunks of all regions are in lists by size class, 64 classes to each power of two, and bits say which lists
/// have one. A request takes the head of a list that the bits name; what it does not need goes back into the list of
/// its size. A chunk that is freed is joined with its neighbours at once.
///
/// ```text
///   first     bit r: second[r] is not 0              . . . . 1 . . 1 . .
///                                                            |
///   second    bit c of row r: list 64 r + c      row 4:  ..1........1....
///                                                          |
///   heads     first chunk of each list               heads[64 * 4 + 13]
///                                                          |
///   chunks    nodes of 32 bytes, in one array         [ 1240 units ] -> [ 1232 units ] -> none
///                                                          |
///   regions   rings of nodes by address       [ used ] [ free 1240 ] [ used ] [ used ] [ free ]
///
///   empties   regions that are one free chunk, if there are several, by power of two: the last to be cut
/// ```
///
/// Units: whatever the owner counts. A span has the size that was asked, to the unit. Sizes to 2^63.
///
/// # What is left out
/// A free chunk of a few units beside a large used one is of no use to anybody, but is made, listed, found too small,
/// and joined again. In an engine for regions of 2^17 units or more that is not [`Tlsf::exact`] it stays with the used
/// chunk, if it is less than a 32nd of that, and at most 1/32768 of the largest region (8 KiB of 256 MiB); what
/// alignment leaves before a small chunk also if it is up to an eighth of that, and at most 2^-20 of the largest region
/// (256 bytes of 256 MiB). Sizes are rounded up besides to one of 64 to a power of two, where that takes less than
/// 1/65536 of the largest region, so that the hole that one allocation leaves fits the next one of about its size.
///
/// None of that is counted as used, [`Metadata::walk`] shows it as free, and it is free when a chunk beside it is
/// freed; until then no allocation gets it. A [`VirtualBlock`](crate::VirtualBlock) that would have to refuse a request
/// makes all of it free first. [`MinMemory`](Strategy::MinMemory) and [`MinOffset`](Strategy::MinOffset)
/// leave out nothing. Random requests need as many regions as they did when nothing was left out, give or take one of a
/// hundred.
///
/// # Slabs
/// An engine [`with_slabs`](Tlsf::with_slabs) cuts chunks of up to 64 Ki units into 4 to 64 equal slots, for sizes up
/// to 4 Ki units at alignments up to 512 that are asked for again and again: a slot is taken and given back without a
/// look at neighbours or classes of chunks. There are 8 sizes of slots to a power of two, and below 1 Ki units
/// multiples of 128. Slots that are free count as free and [`Metadata::walk`] shows them so, but no other size gets
/// them, unless it were refused else. One is made only while used slabs together leave free less than a 16th of what is
/// granted and a 16th of what is free, or a 128th of the regions while that is more; in used regions only, and none
/// where less than 16 % is free. An empty slab stays for the next of its size, as far as a 64th of what is granted
/// allows, or half of an only region. All of them go back before a request is refused and before a region is added.
///
/// [`MinMemory`](Strategy::MinMemory) and [`MinOffset`](Strategy::MinOffset) take no slots, but where they would be
/// refused else, and after the first `MinOffset` no slab is made any more.
///
/// # Strategies
/// Each looks at a fixed number of chunks, so that no request is slow because memory is fragmented or alignments are
/// mixed. "Sure" is a chunk of at least `size + alignment - 1` units: it fits wherever it lies.
///
/// | strategy | looks at | costs |
/// |---|---|---|
/// | [`Balanced`](Strategy::Balanced) | the head of the first list whose chunks are all of `size` units or more, then of the first that is sure; before both, the head of the list that `size` belongs to, if sizes like it are not rounded; where the alignment is above the size only the one that is sure | O(1), one to three looks |
/// | [`MinTime`](Strategy::MinTime) | the head of the first list that is sure, then as Balanced | O(1), one look |
/// | [`MinMemory`](Strategy::MinMemory) | up to 8 chunks of each of these lists and of one more, and takes the smallest that fits | O(1), 32 looks |
/// | [`MinOffset`](Strategy::MinOffset) | the lowest 32 chunks of `size` units or more, then the lowest that is sure | O(log n) for each |
///
/// Where sizes repeat, or are multiples of their alignments as the sizes of Vulkan's resources are, Balanced is the
/// fastest of them too: it finds holes that fit, and has nothing to put back.
///
/// Chunks of used regions come first, and among empty regions the smallest that is large enough, so that as many
/// regions as possible stay empty. MinOffset goes by region and offset alone.
///
/// When all that found nothing, the largest 32 of the chunks that might still fit are looked at, then the empty
/// regions, and before a request is refused 1024 of those chunks, from where the last such look ended. An alignment
/// above the largest region's size, rounded up to a power of two, is met at the start of a region only, and costs a look
/// at each region.
///
/// # When there is no space
/// [`AllocateError::NoSpace`] is never wrong about an empty region, nor about a chunk of 65/64 of `size + alignment`
/// units or more; what is left out beside used chunks, or free in slabs that are not empty, is no chunk. It can be wrong
/// where more than 1024 free chunks of used regions have between 64/65 of `size` and that many units: if those of them
/// that were looked at are all too small or lie badly, another might have done. A second request looks at others. Random
/// requests with the usual alignments, in a region that is as full as it gets, meet this less than once in a thousand
/// refusals. A size of 0 is answered with it too.
///
/// # Complexity
/// Allocating and freeing: O(1), but for [`Strategy::MinOffset`]. The first request with that strategy builds an
/// index of all free chunks, O(n), and from then on every operation of this engine keeps it up, O(log n). Adding a
/// region, or emptying one: O(1) where regions of like capacity are equal, else O(empty regions of that power of two);
/// besides, O(empty slabs).
/// [`Metadata::reset`]: O(chunks of the region).
///
/// Host memory: 32 bytes for each chunk, used or free, at most an eighth more than ever was needed at once, and 256
/// bytes for each power of two up to the largest region; the index takes 24 bytes more for each chunk. A slot takes 8
/// bytes, its slab 48, and an engine that has made slabs 700 bytes. Two free chunks are never neighbours, so there are
/// at most as many as used ones; in random use there are a third as many.
///
/// # Invariants
/// Asserted by [`Metadata::validate`] under these numbers, besides those of the arena of chunks, C1 to C7:
///
/// - I1: no two free chunks are neighbours.
/// - I2: each free chunk is in one list: that of its size class, or, if it is all of its region and there are others,
///   that of the empty regions of its power of two; and nothing else is in a list.
/// - I3: a bit of the second level is set iff its list is not empty.
/// - I4: a bit of the first level is set iff its row of the second level is not zero.
/// - I5: a list of empty regions is in the order of their capacities, the largest first, and its bit is set iff it is
///   not empty.
/// - I6: the index of offsets, if there is one, holds the free chunks and nothing else, in the order of addresses;
///   parents have higher priorities than children; each knows the largest chunk from itself down.
///
/// # What it does badly
/// An engine of 2^17 units or more does not fill a region to the last unit: see what is left out. Whoever needs that
/// takes [`Tlsf::exact`].
///
/// A free list is last in, first out: MinTime and Balanced do not take the best chunk of a class, so that a class's
/// width, 1/64, is the least difference in size that they see. Small and large, short-lived and long-lived chunks are
/// neighbours; whoever knows better uses several engines, or [`Linear`](super::Linear). Keys of a chunk repeat
/// after 2^32 allocations; of the key of a slot 22 bits of its generation are compared.
///
/// # Examples
/// ```
/// use sublet::metadata::{Alignment, Freed, Metadata, Request, Strategy, Tlsf};
///
/// // Two blocks of a megabyte.
/// let mut tlsf = Tlsf::new(1 << 20);
/// let first = tlsf.add_region(&(1 << 20))?;
/// let second = tlsf.add_region(&(1 << 20))?;
///
/// let alignment = Alignment::new(256).expect("a power of two");
/// let (a, granted) = tlsf.allocate(&Request::new(1000, alignment)).expect("there is room");
/// assert_eq!((granted.offset % 256, granted.size), (0, 1000));
/// let low = Request { strategy: Strategy::MinOffset, ..Request::new(10, alignment) };
/// let (b, granted) = tlsf.allocate(&low).expect("there is room");
/// // The region that became empty last is cut first. By offset, the first one is lower.
/// assert_eq!((granted.region, granted.offset), (first, 0));
///
/// tlsf.free(a).expect("a live key");
/// assert!(tlsf.free(a).is_err());
/// assert!(tlsf.free(b).expect("a live key").region_empty);
/// assert_eq!(tlsf.largest_free(), 1 << 20);
/// # Ok::<(), sublet::metadata::RegionError>(())
/// ```
///
/// Source: Masmano, Ripoll, Crespo and Real, "TLSF: a new dynamic memory allocator for real-time systems", 2004. Here
/// one index serves many regions, alignment is part of the search, and the bookkeeping is apart from the memory.
#[derive(Clone)]
pub struct Tlsf {
    chunks: Chunks,
    bins: Bins,
    empties: Empties,
    /// `None` until [`Strategy::MinOffset`] is asked for.
    index: Option<Box<OffsetIndex>>,
    /// Where small sizes go that come and go: `None` until one has come again and again.
    slabs: Option<Box<Slabs>>,
    /// How often requests of each class of slots found none.
    misses: [u8; LISTS],
    /// The chunk that the next [`Tlsf::find_last`] begins with, if that is listed then among those that might fit.
    /// [`NONE`]: the last one has looked at all of them.
    hand: u32,
    /// Below this is the [`smallness`] of what has slots: 0 if nothing has now.
    slab_sizes: u64,
    /// The same, or 0 if there are to be no slabs.
    slab_limit: u64,
    /// Sizes up to this, a power of two, and alignments up to it need nothing but the bins: the largest that a region
    /// may have, or 0 if there is an index.
    warm_sizes: u64,
}

impl Tlsf {
    /// Brings the limit of nodes within reach of a test.
    #[cfg(all(test, not(loom)))]
    pub(crate) fn set_max_slots(&mut self, max: u32) {
        self.chunks.set_max_slots(max);
    }

    /// An engine without regions, each of which is to have at most `max_region_capacity` units.
    ///
    /// # Panics
    /// If `max_region_capacity` is 0 or above 2^63.
    #[must_use]
    pub fn new(max_region_capacity: u64) -> Self {
        let mut tlsf = Self::exact(max_region_capacity);
        tlsf.chunks.allow_slack();
        tlsf
    }

    /// As [`Tlsf::new`], and nothing is left out: every unit that is not used is in a free chunk, whatever the
    /// strategy. For owners to whom each unit counts; it takes more time and host memory where sizes differ a little.
    ///
    /// # Panics
    /// If `max_region_capacity` is 0 or above 2^63.
    ///
    /// # Examples
    /// ```
    /// use sublet::metadata::{Alignment, Metadata, Request, Tlsf};
    ///
    /// let mut tlsf = Tlsf::exact(1 << 20);
    /// tlsf.add_region(&(1 << 20))?;
    /// assert!(tlsf.allocate(&Request::new((1 << 20) - 3, Alignment::ONE)).is_ok());
    /// assert!(tlsf.allocate(&Request::new(3, Alignment::ONE)).is_ok());
    /// # Ok::<(), sublet::metadata::RegionError>(())
    /// ```
    #[must_use]
    pub fn exact(max_region_capacity: u64) -> Self {
        Self {
            chunks: Chunks::new(max_region_capacity),
            bins: Bins::new(max_region_capacity),
            empties: Empties::new(),
            index: None,
            slabs: None,
            misses: [0; LISTS],
            hand: NONE,
            slab_sizes: 0,
            slab_limit: 0,
            warm_sizes: 1 << max_region_capacity.ilog2(),
        }
    }

    /// As [`Tlsf::new`], with slabs: small sizes of which many are live come out of chunks that are cut into equal
    /// slots, which takes fewer instructions. For regions of 4 Mi units or more; with smaller ones there are none.
    ///
    /// # Panics
    /// If `max_region_capacity` is 0 or above 2^63.
    ///
    /// # Examples
    /// ```
    /// use sublet::metadata::{Alignment, Metadata, Request, Tlsf};
    ///
    /// let mut tlsf = Tlsf::with_slabs(1 << 28);
    /// tlsf.add_region(&(1 << 28))?;
    /// let request = Request::new(500, Alignment::ONE);
    /// let keys: Vec<_> = (0..100).map(|_| tlsf.allocate(&request).expect("there is room").0).collect();
    /// assert_eq!(tlsf.usage().used, 50_000);
    /// # keys.into_iter().for_each(|key| assert!(tlsf.free(key).is_ok()));
    /// # assert_eq!(tlsf.largest_free(), 1 << 28);
    /// # Ok::<(), sublet::metadata::RegionError>(())
    /// ```
    #[must_use]
    pub fn with_slabs(max_region_capacity: u64) -> Self {
        let mut tlsf = Self::new(max_region_capacity);
        if max_region_capacity >= LEAST_CAPACITY {
            tlsf.slab_sizes = SMALL;
            tlsf.slab_limit = SMALL;
        }
        tlsf
    }

    /// Bytes of host memory that the engine holds, besides its own size.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        let index = self.index.as_ref().map_or(0, |index| size_of::<OffsetIndex>() + index.heap_bytes());
        let slabs = self.slabs.as_ref().map_or(0, |slabs| slabs.heap_bytes());
        self.chunks.heap_bytes() + self.bins.heap_bytes() + index + slabs
    }

    /// What [`Metadata::allocate`] does when the two or three looks of its strategy found nothing, or when the request
    /// is out of the ordinary.
    #[cold]
    #[inline(never)]
    fn allocate_hard(&mut self, request: &Request) -> Result<(Key, Span), AllocateError> {
        let &Request { size, alignment, strategy, upper, tag } = request;
        if upper {
            return Err(AllocateError::UpperUnsupported);
        }
        if size == 0 || size > self.chunks.max_capacity() || !self.chunks.reserve_two() {
            return Err(AllocateError::NoSpace);
        }
        if strategy == Strategy::MinOffset && self.index.is_none() {
            self.build_index();
        }
        let Some(find) = self.find_anywhere(size, alignment, strategy) else {
            let granted = self.grant_any_slot(size, alignment, tag);
            return granted
                .map(|(key, addr)| (key, self.chunks.span_at(addr, size)))
                .ok_or(AllocateError::NoSpace);
        };
        if self.is_apart(find.chunk) {
            self.open_region(find.chunk);
        }
        let exact = matches!(strategy, Strategy::MinMemory | Strategy::MinOffset);
        self.take_hard(find, size, tag, exact).ok_or(AllocateError::NoSpace)
    }

    /// All looks there are, one after the other.
    fn find_anywhere(&mut self, size: u64, alignment: Alignment, strategy: Strategy) -> Option<Find> {
        // Most that is refused is larger than any free chunk: no look would find one.
        if self.bins.find(class_of(size)).is_none() && self.empties.is_none() && !self.give_slabs_back() {
            self.hand = NONE;
            return None;
        }
        let mut find = self.find(size, alignment, strategy);
        // Before a region is broken into that is empty: what slabs keep.
        if find.is_none() && self.give_slabs_back() {
            find = self.find(size, alignment, strategy);
        }
        find.or_else(|| self.find_empty(size, alignment)).or_else(|| {
            let (find, hand) = self.find_last(size, alignment.mask());
            self.hand = hand;
            find
        })
    }

    /// Shows what is granted in a slab.
    fn show_slab(&self, number: u32, visit: &mut dyn FnMut(Chunk)) {
        if let Some(slabs) = &self.slabs {
            slabs.walk(&self.chunks, number, visit);
        }
    }

    /// The sizes of the chunks that [`Metadata::walk`] shows.
    pub(crate) fn measure(&self, region: RegionId) -> Sizes {
        self.chunks.measure(region, |number, end, sizes| match &self.slabs {
            Some(slabs) => slabs.measure(number, end, sizes),
            None => end,
        })
    }

    /// Every look at the bins but [`Self::find_last`], one after the other.
    fn find(&self, size: u64, alignment: Alignment, strategy: Strategy) -> Option<Find> {
        let mask = alignment.mask();
        if self.is_over_aligned(mask) {
            return self.find_start(size);
        }
        let find = match strategy {
            Strategy::Balanced | Strategy::MinTime => {
                let (class, step) = class_and_step(size);
                self.find_balanced(class, step, size, mask)
            }
            Strategy::MinMemory => self.find_small(size, mask),
            Strategy::MinOffset => self.find_low(size, mask),
        };
        find.or_else(|| self.find_hard(size, mask))
    }

    /// Whether there is a place for a request, as far as the engine looks. Nothing is changed.
    pub(crate) fn fits(&self, request: &Request) -> Result<bool, AllocateError> {
        let &Request { size, alignment, strategy, upper, .. } = request;
        if upper {
            return Err(AllocateError::UpperUnsupported);
        }
        // The first who asks for the lowest offset builds the index for it. Where there is any place there is a lowest
        // one.
        let is_without_index = strategy == Strategy::MinOffset && self.index.is_none();
        let strategy = if is_without_index { Strategy::Balanced } else { strategy };
        if size == 0 || size > self.chunks.max_capacity() {
            return Ok(false);
        }
        let has_slot = matches!(strategy, Strategy::Balanced | Strategy::MinTime)
            && self.is_small(size, alignment)
            && self.slabs.as_deref().is_some_and(|slabs| slabs.has_slot(class_for(size, alignment)));
        Ok(has_slot
            || self.find(size, alignment, strategy).is_some()
            || self.find_empty(size, alignment).is_some()
            || self.find_last(size, alignment.mask()).0.is_some()
            || self.any_class(size, alignment).is_some()
            || self.kept_runs().any(|(addr, have)| {
                let mask = alignment.mask().min(self.chunks.offset_mask());
                (addr.wrapping_neg() & mask).saturating_add(size) <= have
            }))
    }

    /// [`Metadata::allocate`] with [`Strategy::MinTime`].
    #[inline(never)]
    fn allocate_min_time(&mut self, request: &Request) -> Result<(Key, Span), AllocateError> {
        let &Request { size, alignment, tag, .. } = request;
        let mask = alignment.mask();
        if size.wrapping_sub(1) | mask >= self.warm_sizes {
            return self.allocate_hard(request);
        }
        let granted = if self.is_small(size, alignment) {
            self.grant_small(size, alignment, tag)
        } else {
            let find = self.find_sure(size, mask);
            find.and_then(|find| self.take_warm(find, mask, class_and_step(size).1, size, tag))
        };
        match granted {
            Some((key, addr)) => Ok((key, self.chunks.span_at(addr, size))),
            None => self.allocate_hard(request),
        }
    }

    /// What nearly all requests are, with [`Strategy::Balanced`], answered in registers: the key, and where the chunk
    /// starts, counted over all regions. `None`, and nothing is changed: [`Self::allocate_hard`] knows better.
    ///
    /// What it chooses between are functions of their own on purpose: where either is part of a larger one, whatever
    /// that one is, it runs out of registers.
    #[inline(always)]
    pub(crate) fn grant(&mut self, size: u64, alignment: Alignment, tag: Tag) -> Option<(Key, u64)> {
        if self.is_small(size, alignment) {
            return self.grant_small(size, alignment, tag);
        }
        self.grant_core(size, alignment, tag)
    }

    /// [`Self::grant`], as a function.
    #[inline(never)]
    fn grant_any(&mut self, size: u64, alignment: Alignment, tag: Tag) -> Option<(Key, u64)> {
        self.grant(size, alignment, tag)
    }

    /// Whether slots are for such requests, and there may be some.
    #[inline(always)]
    const fn is_small(&self, size: u64, alignment: Alignment) -> bool {
        smallness(size, alignment) < self.slab_sizes
    }

    /// As [`Self::grant`], of a size that slabs may serve.
    #[inline(never)]
    fn grant_small(&mut self, size: u64, alignment: Alignment, tag: Tag) -> Option<(Key, u64)> {
        let class = class_for(size, alignment);
        let Self { chunks, slabs, .. } = self;
        if let Some(slabs) = slabs {
            if let Some(granted) = slabs.take(chunks, class, size, tag) {
                return Some(granted);
            }
        }
        self.grant_without_slot(size, alignment, tag, class)
    }

    /// As [`Self::grant`], of a chunk.
    #[inline(never)]
    fn grant_core(&mut self, size: u64, alignment: Alignment, tag: Tag) -> Option<(Key, u64)> {
        let mask = alignment.mask();
        if size.wrapping_sub(1) | mask >= self.warm_sizes {
            return None;
        }
        let (class, step) = class_and_step(size);
        let find = self.find_balanced(class, step, size, mask)?;
        self.take_warm(find, mask, step, size, tag)
    }

    /// [`Self::grant`], or else all other looks: the key, the region, and the offset in it. `None`: there is no space.
    #[inline(always)]
    pub(crate) fn grant_somewhere(
        &mut self,
        size: u64,
        alignment: Alignment,
        tag: Tag,
    ) -> Option<(Key, RegionId, u64)> {
        match self.grant_warm(size, alignment, tag) {
            Some(granted) => Some(granted),
            None => self.grant_hard(size, alignment, tag),
        }
    }

    /// [`Self::grant`]: the key, the region, and the offset in it.
    #[inline(always)]
    pub(crate) fn grant_warm(
        &mut self,
        size: u64,
        alignment: Alignment,
        tag: Tag,
    ) -> Option<(Key, RegionId, u64)> {
        let (key, addr) = self.grant(size, alignment, tag)?;
        Some((key, self.chunks.region_of(addr), addr & self.chunks.offset_mask()))
    }

    /// [`Self::allocate_hard`] for what [`Self::grant`] did not grant.
    #[cold]
    #[inline(never)]
    pub(crate) fn grant_hard(
        &mut self,
        size: u64,
        alignment: Alignment,
        tag: Tag,
    ) -> Option<(Key, RegionId, u64)> {
        let request = Request { tag, ..Request::new(size, alignment) };
        let (key, Span { region, offset, .. }) = self.allocate_hard(&request).ok()?;
        Some((key, region, offset))
    }

    /// How many allocations a region has.
    #[inline(always)]
    pub(crate) fn used_chunks(&self, region: RegionId) -> u32 {
        self.chunks.used_chunks(region)
    }

    /// [`Metadata::free`], answered in registers: the region, and whether it is empty now. As [`Self::grant`] it chooses
    /// between functions of their own.
    #[inline(always)]
    pub(crate) fn take_back(&mut self, key: Key) -> Option<(RegionId, bool)> {
        if is_slot(key) { self.take_slot_back(key) } else { self.take_chunk_back(key) }
    }

    #[inline(never)]
    fn take_chunk_back(&mut self, key: Key) -> Option<(RegionId, bool)> {
        let (vacated, addr, _, region_empty) = self.chunks.release(key).ok()?;
        let region = self.chunks.region_of(addr);
        // One branch, not two.
        if region_empty | (self.warm_sizes == 0) {
            let Vacated { chunk, prev, next } = vacated;
            return Some((region, self.end_chunk(chunk, prev, next, region)));
        }
        self.give_warm(vacated);
        Some((region, false))
    }

    #[inline(never)]
    fn take_slot_back(&mut self, key: Key) -> Option<(RegionId, bool)> {
        let Self { chunks, slabs, .. } = self;
        let given = slabs.as_deref_mut()?.give(chunks, key)?;
        self.slab_sizes = SMALL;
        if given.is_empty | given.is_time {
            return Some(self.slab_emptied(given));
        }
        Some((given.region, false))
    }

    /// [`Metadata::free`] of a chunk.
    #[inline(never)]
    fn free_chunk(&mut self, key: Key) -> Result<Freed, BadKey> {
        let (vacated, addr, size, region_empty) = self.chunks.release(key)?;
        let span = self.chunks.span_at(addr, size);
        if region_empty || self.warm_sizes == 0 {
            let Vacated { chunk, prev, next } = vacated;
            return Ok(Freed { span, region_empty: self.end_chunk(chunk, prev, next, span.region) });
        }
        self.give_warm(vacated);
        Ok(Freed { span, region_empty: false })
    }

    /// [`Metadata::free`] of a slot.
    #[inline(never)]
    fn free_slot(&mut self, key: Key) -> Result<Freed, BadKey> {
        let span = self.span_of_slot(key)?;
        let (_, region_empty) = self.take_slot_back(key).ok_or(BadKey)?;
        Ok(Freed { span, region_empty })
    }

    #[inline(never)]
    fn span_of_slot(&self, key: Key) -> Result<Span, BadKey> {
        self.slabs.as_deref().and_then(|slabs| slabs.span(&self.chunks, key)).ok_or(BadKey)
    }

    #[inline(never)]
    fn tag_of_slot(&self, key: Key) -> Result<Tag, BadKey> {
        self.slabs.as_deref().and_then(|slabs| slabs.tag(key)).ok_or(BadKey)
    }

    /// The region of what is granted.
    #[inline]
    pub(crate) fn region_of(&self, key: Key) -> Option<RegionId> {
        if is_slot(key) {
            self.span_of_slot(key).ok().map(|span| span.region)
        } else {
            self.chunks.region_of_used(key)
        }
    }

    /// Replaces the tag of what is granted.
    #[inline]
    pub(crate) fn set_tag(&mut self, key: Key, tag: Tag) -> Result<(), BadKey> {
        if is_slot(key) {
            self.slabs.as_deref_mut().and_then(|slabs| slabs.set_tag(key, tag)).ok_or(BadKey)
        } else {
            self.chunks.set_tag(key, tag)
        }
    }

    /// The rest of taking a chunk back where there may be an index, or where nothing may be left in its region: whether
    /// nothing is left in it. What was vacated comes part by part: as a whole it would be in memory for all.
    #[inline(never)]
    fn end_chunk(&mut self, chunk: u32, prev: u32, next: u32, region: RegionId) -> bool {
        self.give_back(Vacated { chunk, prev, next }, region);
        let region_empty = self.chunks.check_empty(region).is_ok();
        if region_empty {
            self.region_emptied(region);
            self.slab_sizes = self.slab_limit;
        }
        region_empty
    }

    /// Builds the index of offsets. From now on nothing is done the warm way, which knows no index.
    fn build_index(&mut self) {
        self.index = Some(Box::new(OffsetIndex::new(&self.chunks)));
        self.warm_sizes = 0;
    }

    /// Whether an aligned address says nothing about the offset: only offset 0 is a multiple of such an alignment.
    #[inline]
    const fn is_over_aligned(&self, mask: u64) -> bool {
        mask > self.chunks.offset_mask()
    }

    /// Makes a region one free chunk, whatever is in it.
    fn clear(&mut self, region: RegionId) {
        if let Some(slabs) = &mut self.slabs {
            slabs.forget_region(&self.chunks, region);
        }
        if self.chunks.region_count() == 1 && self.index.is_none() {
            self.bins.clear();
        } else {
            self.unlist_all(region);
        }
        let whole = self.chunks.collapse(region);
        self.list(whole);
    }

    /// Whether a free chunk is one of several regions, and all of it: those are not in the bins, see [`Empties`].
    fn is_apart(&self, chunk: u32) -> bool {
        self.chunks.region_count() > 1 && self.chunks.is_whole_region(chunk)
    }

    /// Puts a free chunk into its list, and into the index.
    fn list(&mut self, chunk: u32) {
        if self.is_apart(chunk) {
            self.empties.insert(&mut self.chunks, chunk);
        } else {
            let class = class_of(self.chunks.size(chunk));
            self.bins.insert(self.chunks.parts_mut().0, chunk, class);
        }
        if let Some(index) = &mut self.index {
            index.insert(&self.chunks, chunk);
        }
    }

    /// Takes a free chunk out of its list, and out of the index.
    fn unlist(&mut self, chunk: u32) {
        if self.is_apart(chunk) {
            self.empties.remove(&mut self.chunks, chunk);
        } else {
            let class = class_of(self.chunks.size(chunk));
            self.bins.remove(self.chunks.parts_mut().0, chunk, class);
        }
        if let Some(index) = &mut self.index {
            index.remove(&self.chunks, chunk);
        }
    }

    /// Puts the chunk of an empty region into the bins: to be cut there, or because it is the only one now.
    fn open_region(&mut self, chunk: u32) {
        self.empties.remove(&mut self.chunks, chunk);
        let class = class_of(self.chunks.size(chunk));
        self.bins.insert(self.chunks.parts_mut().0, chunk, class);
    }

    /// Takes the chunk of what was the only region out of the bins, if that is empty: nothing else is listed then.
    fn close_region(&mut self) {
        let Some(class) = self.bins.find(0) else { return };
        let chunk = self.bins.head(class);
        if self.chunks.is_whole_region(chunk) {
            self.bins.remove(self.chunks.parts_mut().0, chunk, class);
            self.empties.insert(&mut self.chunks, chunk);
        }
    }

    /// Whether the last refusal is for want of room: not only 1024 of the chunks that might have done were looked at.
    pub(crate) const fn has_looked_at_all(&self) -> bool {
        self.hand == NONE
    }
}

impl fmt::Debug for Tlsf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tlsf")
            .field("max_region_capacity", &self.chunks.max_capacity())
            .field("regions", &self.chunks.regions().count())
            .field("usage", &self.usage())
            .finish_non_exhaustive()
    }
}

impl Metadata for Tlsf {
    type Capacity = u64;
    type Request = Request;
    type Span = Span;
    type Chunk = Chunk;

    fn add_region(&mut self, &capacity: &u64) -> Result<RegionId, RegionError> {
        self.give_slabs_back();
        let (region, chunk) = self.chunks.add_region(capacity)?;
        self.slab_sizes = self.slab_limit;
        if self.chunks.region_count() == 2 {
            self.close_region();
        }
        self.list(chunk);
        Ok(region)
    }

    fn remove_region(&mut self, region: RegionId) -> Result<(), NotEmpty> {
        self.chunks.check_empty(region)?;
        // Only the only region is kept in slabs when nothing is granted in it.
        self.give_slabs_back();
        self.unlist(self.chunks.first(region));
        self.chunks.remove_region(region);
        if self.chunks.region_count() == 1 {
            self.empties.any().into_iter().for_each(|chunk| self.open_region(chunk));
        }
        Ok(())
    }

    #[inline]
    fn allocate(&mut self, request: &Request) -> Result<(Key, Span), AllocateError> {
        let &Request { size, alignment, strategy, upper, tag } = request;
        if strategy == Strategy::Balanced && !upper {
            // One look where there are no slabs, and one call: more would not be inlined.
            let granted = if self.slab_sizes == 0 {
                self.grant_core(size, alignment, tag)
            } else {
                self.grant_any(size, alignment, tag)
            };
            if let Some((key, addr)) = granted {
                return Ok((key, self.chunks.span_at(addr, size)));
            }
        } else if strategy == Strategy::MinTime && !upper {
            return self.allocate_min_time(request);
        }
        self.allocate_hard(request)
    }

    fn allocate_outside(
        &mut self,
        request: &Request,
        is_closed: &dyn Fn(RegionId) -> bool,
    ) -> Result<(Key, Span), AllocateError> {
        self.allocate_off_list(request, is_closed)
    }

    #[inline]
    fn free(&mut self, key: Key) -> Result<Freed, BadKey> {
        if is_slot(key) { self.free_slot(key) } else { self.free_chunk(key) }
    }

    fn reset(&mut self, region: RegionId) {
        if self.chunks.check_empty(region).is_err() {
            self.clear(region);
            self.slab_sizes = self.slab_limit;
        }
    }

    fn span(&self, key: Key) -> Result<Span, BadKey> {
        if is_slot(key) { self.span_of_slot(key) } else { self.chunks.span(key) }
    }

    #[inline]
    fn tag(&self, key: Key) -> Result<Tag, BadKey> {
        if is_slot(key) { self.tag_of_slot(key) } else { self.chunks.tag(key) }
    }

    fn region_usage(&self, region: RegionId) -> Usage {
        self.chunks.region_usage(region)
    }

    fn usage(&self) -> Usage {
        self.chunks.usage()
    }

    fn largest_free(&self) -> u64 {
        let largest = self.bins.largest(&self.chunks).max(self.empties.largest(&self.chunks));
        // Asked whenever a request is refused, mostly of an engine without slabs.
        match self.slabs {
            None => largest,
            Some(_) => self.kept_runs().fold(largest, |largest, (_, size)| largest.max(size)),
        }
    }

    fn walk(&self, region: RegionId, visit: &mut dyn FnMut(Chunk)) {
        self.chunks.walk(region, &|number, visit| self.show_slab(number, visit), visit);
    }

    fn validate(&self) {
        let Self { chunks, bins, empties, index, slabs, .. } = self;
        let mut free = Vec::new();
        let granted = |number| slabs.as_deref().map_or((0, 0), |slabs| slabs.sums(number));
        chunks.validate(&granted, &mut |chunk| {
            assert!(!chunks.is_free(chunks.next(chunk)), "I1: chunk {chunk} and the one behind are free");
            free.push(chunk);
        });
        let mut listed = Vec::new();
        bins.validate(chunks, &mut |chunk| {
            assert!(!self.is_apart(chunk), "I2: chunk {chunk}, a whole region, is in a bin");
            listed.push(chunk);
        });
        empties.validate(chunks, &mut |chunk| {
            assert!(
                self.is_apart(chunk),
                "I2: chunk {chunk}, part of a region or the only one, is with the empty ones"
            );
            listed.push(chunk);
        });
        if let Some(index) = index {
            index.validate(chunks, &free);
        }
        if let Some(slabs) = slabs {
            slabs.validate(chunks);
        }
        for region in chunks.regions() {
            let mut shown = Sizes::default();
            self.walk(region, &mut |chunk| shown.add_chunk(&chunk));
            assert_eq!(self.measure(region), shown, "the sizes of region {region:?} are those of its chunks");
        }
        free.sort_unstable();
        listed.sort_unstable();
        assert_eq!(free, listed, "I2: a free chunk is in no list, or in two");
    }
}
