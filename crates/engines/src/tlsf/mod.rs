//! The general-purpose engine: two-level segregated fit.
//!
//! See [`Tlsf`].

mod at;
mod bins;
mod empties;
mod offset_index;
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
    Alignment, AllocateError, BadKey, ChunkInfo, Freed, Key, Metadata, NotEmpty, RegionError, RegionId,
    Request, Sizes, Span, Strategy, Tag, Usage, allocate_elsewhere,
};

/// Grants any size in constant time and packs well. The default engine unless another one suits better.
///
/// The free chunks of all regions are in lists by size class, 64 classes to each power of two. Bits mark the lists that
/// are not empty. A request takes the head of a suitable list, and the rest of the chunk goes back into the list of its
/// size. A freed chunk is merged with its neighbours at once.
///
/// ```text
///   first     bit r: second[r] is not 0              . . . . 1 . . 1 . .
///                                                            |
///   second    bit c of row r: list 64 r + c      row 4:  ..1........1....
///                                                          |
///   heads     first chunk of each list               heads[64 * 4 + 2]
///                                                          |
///   chunks    nodes of 32 bytes, in one array          [ 532 units ] -> [ 528 units ] -> none
///                                                          |
///   regions   rings of nodes by address       [ used ] [ free  532 ] [ used ] [ used ] [ free ]
///
///   empties   regions that are one free chunk, if there are several, by power of two: the last to be cut
/// ```
///
/// Units can be anything. A span has exactly the requested size. Sizes go up to 2^63.
///
/// # Slack
/// A free chunk of a few units beside a large used one is useless, but would be created, listed, found too small, and
/// merged again. So engines for regions of 2^17 units or more, except [`Tlsf::exact`], leave such units as slack of the
/// used chunk. Slack is less than 1/32 of the used chunk, and at most 1/32768 of the largest region (8 KiB of 256 MiB).
/// Slack before a small chunk, caused by alignment, may also be up to 1/8 of that chunk, and at most 2^-20 of the
/// largest region (256 bytes of 256 MiB).
///
/// The slack behind a chunk also rounds its size up: to one of 64 sizes to a power of two, or for large sizes to a
/// multiple of 1/65536 of the largest region. So the hole of one allocation fits the next one of similar size.
///
/// Slack does not count as used, and [`Metadata::walk`] shows it as free. It becomes free when a chunk beside it is
/// freed; until then no allocation gets it. A `VirtualBlock` of `sublet` frees all slack before it refuses a
/// request. Only [`Balanced`](Strategy::Balanced) and [`MinTime`](Strategy::MinTime) leave slack. Random requests need as
/// many regions as without slack, within one percent.
///
/// # Slabs
/// An engine made [`with_slabs`](Tlsf::with_slabs) cuts chunks of up to 64 Ki units into 4 to 64 equal slots. They
/// serve recurring sizes up to 4 Ki units at alignments up to 512. Taking and freeing a slot does not touch neighbours
/// or size classes. Slot sizes are multiples of 128 units up to 1 Ki, and 8 to each power of two above that. Free slots
/// count as free, and [`Metadata::walk`] shows them so. A request of another size gets a free slot only if it would be
/// refused otherwise.
///
/// New slabs are made only while the free space in used slabs is small: below 1/16 of the granted units (or, if
/// that is more, 1/128 of all regions, or 256 Ki units, but at most 1/16 of all regions), and below 1/8 of the free
/// units. They are made only in used regions, and only if at least 10 % of all units are free. Empty slabs stay for the
/// next request of their size, up to 1/64 of the granted units, or half of a single region. All of them are freed before
/// a request is refused and before a region is added.
///
/// Strategies other than [`Balanced`](Strategy::Balanced) and [`MinTime`](Strategy::MinTime) take slots only if they would
/// be refused otherwise. After the first request with `MinOffset`, no more slabs are made.
///
/// # Strategies
/// Each strategy checks a fixed number of chunks, so fragmented memory and mixed alignments do not make requests slow.
/// A "sure" chunk has at least `size + alignment - 1` units: it fits at any address.
///
/// | strategy | checks | cost |
/// |---|---|---|
/// | [`Balanced`](Strategy::Balanced) | the head of the list of `size`, unless the engine rounds such sizes; then of the first list whose chunks all have at least `size` units, unless the alignment exceeds the size; then of the first sure list | O(1), one to three checks |
/// | [`MinTime`](Strategy::MinTime) | the head of the first sure list, then as Balanced | O(1), one check |
/// | [`MinMemory`](Strategy::MinMemory) | up to 8 chunks of each of these lists and of one more; takes the smallest fit of the first list that has one | O(1), 32 checks |
/// | [`MinOffset`](Strategy::MinOffset) | the lowest 32 chunks of at least `size` units, then the lowest sure one | O(log n) for each |
/// | [`LastRegion`](Strategy::LastRegion) | the first 32 chunks from the list of `size` on; takes the smallest fit of the region with the highest id; else as MinTime | O(1), 32 checks |
///
/// Balanced is also the fastest strategy if sizes repeat, or are multiples of their alignments like the sizes of Vulkan
/// resources. It then finds exact holes, so no rest goes back into a list.
///
/// Chunks of used regions come first, then the smallest empty region that is large enough, so that as many regions as
/// possible stay empty. MinOffset only considers region and offset.
///
/// If all that fails, the engine checks the largest 32 of the other candidates, then the empty regions. Before it
/// refuses a request, it checks 1024 more candidates, starting where the last such search ended.
///
/// An alignment above the largest region's size, rounded up to a power of two, is only possible at the start of a
/// region. Such a request checks the start of each region.
///
/// # When there is no space
/// [`AllocateError::NoSpace`] is always correct about empty regions, and about chunks of at least 65/64 of `size +
/// alignment` units. (Slack beside used chunks and free slots in slabs are not chunks.) It can be wrong if more than
/// 1024 free chunks of used regions have between 64/65 of `size` and that many units, and the checked ones among them
/// are all too small or misaligned. A second request checks others. Random requests with the usual alignments, in a
/// region that is as full as possible, meet this in less than one of a thousand refusals. A request of size 0 gets the
/// same error.
///
/// # Complexity
/// Allocating and freeing: O(1), except with [`Strategy::MinOffset`]. The first request with that strategy builds an
/// index of all free chunks, O(n). From then on every operation of this engine maintains it, O(log n). Adding a region,
/// or emptying one: O(1) if regions of similar capacity are equal, else O(empty regions of that power of two), plus
/// O(empty slabs). [`Metadata::reset`]: O(chunks of the region).
///
/// Host memory: 32 bytes for each chunk, used or free, at most an eighth more than the peak, and 256 bytes for each
/// power of two up to the largest region. The index takes 24 more bytes for each chunk. A slot takes 8 bytes, its slab
/// 48, and the tables of all slabs 700 bytes. Two free chunks are never neighbours, so there are at most as many
/// as used ones; random use has a third as many.
///
/// # Invariants
/// [`Metadata::validate`] asserts these numbered invariants, and C1 to C7 of the chunks:
///
/// - I1: no two free chunks are neighbours.
/// - I2: each free chunk is in exactly one list. The chunk of an empty region, if there are several regions, is in the
///   list of its power of two. Any other is in the list of its size class. Nothing else is in a list.
/// - I3: a bit of the second level is set iff its list is not empty.
/// - I4: a bit of the first level is set iff its row of the second level is not zero.
/// - I5: a list of empty regions is sorted by capacity, the largest first, and its bit is set iff it is not empty.
/// - I6: the index of offsets, if there is one, contains exactly the free chunks, in the order of addresses. Parents
///   have higher priorities than children. Each node stores the largest size in its subtree.
///
/// # Limitations
/// An engine for regions of 2^17 units or more does not fill a region to the last unit, because of slack. Use
/// [`Tlsf::exact`] if you need that.
///
/// A free list is last in, first out: MinTime and Balanced do not take the best chunk of a class. So they do not
/// distinguish sizes that differ by less than the width of a class, 1/64. Small and large, short-lived and long-lived
/// chunks are neighbours; if you know their lifetimes, use several engines, or [`Linear`](super::Linear). Keys of a
/// chunk repeat after 2^32 allocations; for the key of a slot, only 22 bits of its generation are compared.
///
/// # Examples
/// ```
/// use sublet_engines::{Alignment, Freed, Metadata, Request, Strategy, Tlsf};
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
/// # Ok::<(), sublet_engines::RegionError>(())
/// ```
///
/// Source: Masmano, Ripoll, Crespo and Real, "TLSF: a new dynamic memory allocator for real-time systems", 2004. This
/// variant has one index for many regions, searches with alignment, and keeps its metadata apart from the memory.
#[derive(Clone)]
pub struct Tlsf {
    chunks: Chunks,
    bins: Bins,
    empties: Empties,
    /// `None` until the first request with [`Strategy::MinOffset`].
    index: Option<Box<OffsetIndex>>,
    /// Slots for recurring small sizes; `None` until a size recurs.
    slabs: Option<Box<Slabs>>,
    /// The number of requests of each slot class that found no slot.
    misses: [u8; LISTS],
    /// The chunk at which the next [`Tlsf::find_last`] starts, if it is a listed candidate then. [`NONE`] if the last
    /// search checked all candidates.
    hand: u32,
    /// Requests with a [`smallness`] below this may use slots. 0 disables slots for now.
    slab_sizes: u64,
    /// The value of `slab_sizes` while slots are enabled; 0 if the engine never uses slabs.
    slab_limit: u64,
    /// The fast paths serve sizes and alignments up to this power of two: the largest one up to the capacity of a
    /// region, or 0 if there is an index.
    warm_sizes: u64,
}

impl Tlsf {
    /// Limits the number of chunks, used and free, and with it the engine's host memory. A request or region that would
    /// exceed the limit fails. The limit without this call is 2^30.
    ///
    /// ```
    /// use sublet_engines::{Metadata, RegionError, Tlsf};
    /// let mut engine = Tlsf::new(1024);
    /// engine.limit_chunks(0);
    /// assert_eq!(engine.add_region(&1024), Err(RegionError::TooMany));
    /// ```
    pub fn limit_chunks(&mut self, max: u32) {
        self.chunks.set_max_slots(max);
    }

    /// Creates an engine without regions. Each region may have up to `max_region_capacity` units.
    ///
    /// # Panics
    /// Panics if `max_region_capacity` is 0 or above 2^63.
    #[must_use]
    pub fn new(max_region_capacity: u64) -> Self {
        let mut tlsf = Self::exact(max_region_capacity);
        tlsf.chunks.allow_slack();
        tlsf
    }

    /// Like [`Tlsf::new`], but without slack: every unused unit is in a free chunk, with any strategy. For owners that
    /// need each unit. Takes more time and host memory if sizes differ a little.
    ///
    /// # Panics
    /// Panics if `max_region_capacity` is 0 or above 2^63.
    ///
    /// # Examples
    /// ```
    /// use sublet_engines::{Alignment, Metadata, Request, Tlsf};
    ///
    /// let mut tlsf = Tlsf::exact(1 << 20);
    /// tlsf.add_region(&(1 << 20))?;
    /// assert!(tlsf.allocate(&Request::new((1 << 20) - 3, Alignment::ONE)).is_ok());
    /// assert!(tlsf.allocate(&Request::new(3, Alignment::ONE)).is_ok());
    /// # Ok::<(), sublet_engines::RegionError>(())
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

    /// Like [`Tlsf::new`], with slabs: small sizes of which many are live come from chunks that are cut into equal
    /// slots, which takes fewer instructions. For regions of 4 Mi units or more; smaller ones have no slabs.
    ///
    /// # Panics
    /// Panics if `max_region_capacity` is 0 or above 2^63.
    ///
    /// # Examples
    /// ```
    /// use sublet_engines::{Alignment, Metadata, Request, Tlsf};
    ///
    /// let mut tlsf = Tlsf::with_slabs(1 << 28);
    /// tlsf.add_region(&(1 << 28))?;
    /// let request = Request::new(500, Alignment::ONE);
    /// let keys: Vec<_> = (0..100).map(|_| tlsf.allocate(&request).expect("there is room").0).collect();
    /// assert_eq!(tlsf.usage().used, 50_000);
    /// # keys.into_iter().for_each(|key| assert!(tlsf.free(key).is_ok()));
    /// # assert_eq!(tlsf.largest_free(), 1 << 28);
    /// # Ok::<(), sublet_engines::RegionError>(())
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

    /// Bytes of host memory, besides the size of the engine itself.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        let index = self.index.as_ref().map_or(0, |index| size_of::<OffsetIndex>() + index.heap_bytes());
        let slabs = self.slabs.as_ref().map_or(0, |slabs| slabs.heap_bytes());
        self.chunks.heap_bytes() + self.bins.heap_bytes() + index + slabs
    }

    /// The slow path of [`Metadata::allocate`]: the checks of [`Self::try_allocate`] failed, or the request is unusual.
    #[cold]
    #[inline(never)]
    fn allocate_slow(&mut self, request: &Request) -> Result<(Key, u64), AllocateError> {
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
            // The last resort: a suitable slot of any class.
            let class = self.any_class(size, alignment).ok_or(AllocateError::NoSpace)?;
            let Self { chunks, slabs, .. } = self;
            let granted = slabs.as_deref_mut().and_then(|slabs| slabs.take(chunks, class, size, tag));
            return granted.ok_or(AllocateError::NoSpace);
        };
        if self.is_apart(find.chunk) {
            self.open_region(find.chunk);
        }
        let exact = !matches!(strategy, Strategy::Balanced | Strategy::MinTime);
        self.take_slow(find, size, tag, exact).ok_or(AllocateError::NoSpace)
    }

    /// All searches in turn.
    fn find_anywhere(&mut self, size: u64, alignment: Alignment, strategy: Strategy) -> Option<Find> {
        // Most refused requests are larger than any free chunk, so no search could succeed.
        if self.bins.find(class_of(size)).is_none() && self.empties.is_none() && !self.give_slabs_back() {
            self.hand = NONE;
            return None;
        }
        let mut find = self.find(size, alignment, strategy);
        // Frees empty slabs before an empty region is cut.
        if find.is_none() && self.give_slabs_back() {
            find = self.find(size, alignment, strategy);
        }
        find.or_else(|| self.find_empty(size, alignment)).or_else(|| {
            let (find, hand) = self.find_last(size, alignment.mask());
            self.hand = hand;
            find
        })
    }

    /// Visits the grants in a slab.
    fn show_slab(&self, number: u32, visit: &mut dyn FnMut(ChunkInfo)) {
        if let Some(slabs) = &self.slabs {
            slabs.walk(&self.chunks, number, visit);
        }
    }

    /// The sizes of the chunks that [`Metadata::walk`] shows.
    pub fn measure(&self, region: RegionId) -> Sizes {
        self.chunks.measure(region, |number, end, sizes| match &self.slabs {
            Some(slabs) => slabs.measure(number, end, sizes),
            None => end,
        })
    }

    /// All searches of the bins except [`Self::find_last`], in turn.
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
            Strategy::LastRegion => self.find_in_last(size, mask),
        };
        find.or_else(|| self.find_slow(size, mask))
    }

    /// Returns true if a request would succeed, as far as the engine searches. Changes nothing.
    ///
    /// # Errors
    /// [`AllocateError::UpperUnsupported`] for a request from the upper end.
    pub fn fits(&self, request: &Request) -> Result<bool, AllocateError> {
        let &Request { size, alignment, strategy, upper, .. } = request;
        if upper {
            return Err(AllocateError::UpperUnsupported);
        }
        // Without the index, which only `allocate` builds, checks for any place: if there is one, there is a lowest
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

    /// The fast path for nearly all requests, with [`Strategy::Balanced`]. Returns the key, the region, and the offset
    /// in it. Returns `None`, and changes nothing, if the caller must use [`Metadata::allocate`].
    ///
    /// The two branches are separate functions, because either is slower if it is inlined into a larger function.
    ///
    /// # Complexity
    /// O(1).
    ///
    /// ```
    /// use sublet_engines::{Alignment, Metadata, Request, Tag, Tlsf};
    /// let mut tlsf = Tlsf::new(1024);
    /// let region = tlsf.add_region(&1024)?;
    /// let (key, granted, offset) = tlsf.try_allocate(100, Alignment::ONE, Tag(0)).expect("there is room");
    /// assert_eq!((granted, tlsf.span(key).expect("a live key").offset), (region, offset));
    /// # Ok::<(), sublet_engines::RegionError>(())
    /// ```
    #[inline(always)]
    pub fn try_allocate(
        &mut self,
        size: u64,
        alignment: Alignment,
        tag: Tag,
    ) -> Option<(Key, RegionId, u64)> {
        let (key, addr) = if self.is_small(size, alignment) {
            self.try_allocate_slot(size, alignment, tag)
        } else {
            self.try_allocate_chunk::<false>(size, alignment, tag)
        }?;
        Some((key, self.chunks.region_of(addr), addr & self.chunks.offset_mask()))
    }

    /// Returns true if slots may serve such requests now.
    #[inline(always)]
    const fn is_small(&self, size: u64, alignment: Alignment) -> bool {
        smallness(size, alignment) < self.slab_sizes
    }

    /// [`Self::try_allocate`] for a size that slabs may serve. Returns the key and the address.
    #[inline(never)]
    fn try_allocate_slot(&mut self, size: u64, alignment: Alignment, tag: Tag) -> Option<(Key, u64)> {
        let class = class_for(size, alignment);
        let Self { chunks, slabs, .. } = self;
        if let Some(slabs) = slabs {
            if let Some(granted) = slabs.take(chunks, class, size, tag) {
                return Some(granted);
            }
        }
        self.try_allocate_without_slot(size, alignment, tag, class)
    }

    /// [`Self::try_allocate`] of a chunk. Returns the key and the address. `SURE` takes only a chunk that fits whatever
    /// its address, as [`Strategy::MinTime`] does.
    #[inline(never)]
    fn try_allocate_chunk<const SURE: bool>(
        &mut self,
        size: u64,
        alignment: Alignment,
        tag: Tag,
    ) -> Option<(Key, u64)> {
        let mask = alignment.mask();
        if size.wrapping_sub(1) | mask >= self.warm_sizes {
            return None;
        }
        let (class, step) = class_and_step(size);
        let find =
            if SURE { self.find_sure(size, mask) } else { self.find_balanced(class, step, size, mask) };
        self.take_fast(find?, step, size, tag)
    }

    /// The number of allocations in a region.
    #[inline(always)]
    pub fn used_chunks(&self, region: RegionId) -> u32 {
        self.chunks.used_chunks(region)
    }

    /// A shorter [`Metadata::free`]. Returns the region, and true if it is empty now, or `None` for a bad key. The
    /// branches are separate functions, as in [`Self::try_allocate`].
    #[inline(always)]
    pub fn take_back(&mut self, key: Key) -> Option<(RegionId, bool)> {
        if is_slot(key) { self.take_slot_back(key) } else { self.take_chunk_back(key) }
    }

    #[inline(never)]
    fn take_chunk_back(&mut self, key: Key) -> Option<(RegionId, bool)> {
        let (vacated, addr, _, region_empty) = self.chunks.release(key).ok()?;
        let region = self.chunks.region_of(addr);
        // One branch instead of two.
        if region_empty | (self.warm_sizes == 0) {
            let Vacated { chunk, prev, next } = vacated;
            return Some((region, self.end_chunk(chunk, prev, next, region)));
        }
        self.give_fast(vacated);
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
        self.give_fast(vacated);
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

    /// The region of a live key.
    #[inline]
    pub fn region_of(&self, key: Key) -> Option<RegionId> {
        if is_slot(key) {
            self.span_of_slot(key).ok().map(|span| span.region)
        } else {
            self.chunks.region_of_used(key)
        }
    }

    /// Replaces the tag of a live key.
    ///
    /// # Errors
    /// [`BadKey`] if `key` is not live in this engine.
    #[inline]
    pub fn set_tag(&mut self, key: Key, tag: Tag) -> Result<(), BadKey> {
        if is_slot(key) {
            self.slabs.as_deref_mut().and_then(|slabs| slabs.set_tag(key, tag)).ok_or(BadKey)
        } else {
            self.chunks.set_tag(key, tag)
        }
    }

    /// Completes the free of a chunk if there is an index, or if its region is empty now. Returns true if the region is
    /// empty. The vacated chunk is passed in parts, so that the fast path need not store it in memory.
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

    /// Builds the index of offsets, and disables the fast paths, which do not maintain it.
    fn build_index(&mut self) {
        self.index = Some(Box::new(OffsetIndex::new(&self.chunks)));
        self.warm_sizes = 0;
    }

    /// Returns true if only offset 0 is a multiple of such an alignment. Then an aligned address says nothing about the
    /// offset.
    #[inline]
    const fn is_over_aligned(&self, mask: u64) -> bool {
        mask > self.chunks.offset_mask()
    }

    /// Makes a region one free chunk, whatever it contains.
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

    /// Returns true if a free chunk is the whole of one of several regions. Such chunks are not in the bins, see
    /// [`Empties`].
    fn is_apart(&self, chunk: u32) -> bool {
        self.chunks.region_count() > 1 && self.chunks.is_whole_region(chunk)
    }

    /// Adds a free chunk to its list and to the index.
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

    /// Removes a free chunk from its list and from the index.
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

    /// Adds the free chunks of a region to their lists and to the index.
    fn list_all(&mut self, region: RegionId) {
        self.with_free(region, Self::list);
    }

    /// Removes the free chunks of a region from their lists and from the index.
    fn unlist_all(&mut self, region: RegionId) {
        self.with_free(region, Self::unlist);
    }

    /// Calls `act` with each free chunk of a region. `act` must not change the region's ring.
    fn with_free(&mut self, region: RegionId, act: fn(&mut Self, u32)) {
        let mut chunk = self.chunks.first(region);
        let header = self.chunks.prev(chunk);
        while chunk != header {
            if self.chunks.is_free(chunk) {
                act(self, chunk);
            }
            chunk = self.chunks.next(chunk);
        }
    }
    /// Moves the chunk of an empty region to the bins: to be cut, or because it is the only region now.
    fn open_region(&mut self, chunk: u32) {
        self.empties.remove(&mut self.chunks, chunk);
        let class = class_of(self.chunks.size(chunk));
        self.bins.insert(self.chunks.parts_mut().0, chunk, class);
    }

    /// Moves the chunk of the formerly single region out of the bins, if the region is empty. Nothing else is listed
    /// then.
    fn close_region(&mut self) {
        let Some(class) = self.bins.find(0) else { return };
        let chunk = self.bins.head(class);
        if self.chunks.is_whole_region(chunk) {
            self.bins.remove(self.chunks.parts_mut().0, chunk, class);
            self.empties.insert(&mut self.chunks, chunk);
        }
    }

    /// Returns true if the last refusal was for lack of space, and not because the search ended after 1024 candidates.
    pub const fn has_looked_at_all(&self) -> bool {
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
    type Chunk = ChunkInfo;

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
        // Only a single region keeps slabs while nothing is granted in it.
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
        let granted = match strategy {
            _ if upper => None,
            Strategy::Balanced | Strategy::MinTime if self.is_small(size, alignment) => {
                self.try_allocate_slot(size, alignment, tag)
            }
            Strategy::Balanced => self.try_allocate_chunk::<false>(size, alignment, tag),
            Strategy::MinTime => self.try_allocate_chunk::<true>(size, alignment, tag),
            Strategy::MinMemory | Strategy::MinOffset | Strategy::LastRegion => None,
        };
        let (key, addr) = match granted {
            Some(granted) => granted,
            None => self.allocate_slow(request)?,
        };
        Ok((key, self.chunks.span_at(addr, size)))
    }

    /// Takes the free chunks of closed regions off the lists meanwhile. O(chunks of those regions).
    fn allocate_outside(
        &mut self,
        request: &Request,
        is_closed: &dyn Fn(RegionId) -> bool,
    ) -> Result<(Key, Span), AllocateError> {
        if self.is_over_aligned(request.alignment.mask()) {
            // `find_start` checks the starts of all regions, listed or not.
            return allocate_elsewhere(self, request, is_closed);
        }
        if request.strategy == Strategy::MinOffset && self.index.is_none() {
            // The index must contain all free chunks.
            self.build_index();
        }
        // An empty slab cannot be merged with a free chunk that is off the lists.
        self.give_slabs_back();
        self.hand = NONE;
        let slab_sizes = std::mem::take(&mut self.slab_sizes);
        let closed: Vec<RegionId> = self.chunks.regions().filter(|&region| is_closed(region)).collect();
        closed.iter().for_each(|&region| self.unlist_all(region));
        let result = self.allocate(request);
        closed.iter().for_each(|&region| self.list_all(region));
        self.slab_sizes = slab_sizes;
        match result {
            // No chunk fits, and the request got a free slot in a closed region.
            Ok((key, span)) if is_closed(span.region) => {
                let _ = self.free(key);
                allocate_elsewhere(self, request, is_closed)
            }
            other => other,
        }
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
        // Each refused request calls this, and most engines have no slabs then.
        match self.slabs {
            None => largest,
            Some(_) => self.kept_runs().fold(largest, |largest, (_, size)| largest.max(size)),
        }
    }

    fn walk(&self, region: RegionId, visit: &mut dyn FnMut(ChunkInfo)) {
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
