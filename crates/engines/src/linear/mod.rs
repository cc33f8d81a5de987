//! The engine for lifetimes that nest, follow one another, or end together. It places each allocation after the
//! previous one.
//!
//! See [`Linear`].

mod entry_pages;
mod open_regions;
mod region;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use self::entry_pages::{EntryPages, FoundEntry, LinearEntry};
use self::open_regions::OpenRegions;
use self::region::LinearRegion;

use super::{
    Alignment, AllocateError, BadKey, ChunkInfo, Freed, Key, Metadata, NotEmpty, RegionError, RegionId,
    Request, Span, Tag, Usage, allocate_elsewhere,
};
use crate::cast::{index, narrow};

/// The number of regions of a [`Linear`] engine, which determines how it can be used.
///
/// ```
/// use sublet_engines::{Alignment, AllocateError, Linear, Metadata, Regions, Request};
///
/// let upper = Request { upper: true, ..Request::new(10, Alignment::ONE) };
/// let answer = |regions| {
///     let mut engine = Linear::new(100, regions);
///     engine.add_region(&100).unwrap();
///     engine.allocate(&upper).map(|(_, span)| span.offset)
/// };
/// assert_eq!(answer(Regions::Single), Ok(90));
/// assert_eq!(answer(Regions::Many), Err(AllocateError::UpperUnsupported));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Regions {
    /// One region: free-at-once, stack, double stack or ring buffer.
    Single,
    /// Any number of regions, filled one after the other: free-at-once or stack.
    Many,
}

/// Places each allocation after the previous one. A range that is freed in the middle is not reused until everything on
/// one side of it is freed too.
///
/// The order of calls determines how a region is used. In the pictures `#` is used, `.` is free, and `-` is free but
/// not reused before a neighbour is freed; numbers are the order of allocation.
///
/// **Free-at-once**: allocate any number, then free everything in any order, or [`reset`](Metadata::reset) the region.
/// After the last free, the next allocation is at offset 0.
///
/// ```text
///   |#0###|#1#|#2#####|............|        |-----|#1#|-------|............|
///   0                              end      after freeing 2 and 0: the start is reused after 1 is freed
/// ```
///
/// **Stack**: ranges that are freed in reverse order can be reused at once.
///
/// ```text
///   |#0###|#1#|#2#####|............|        |#0###|#1#|#3###########|......|
///                                           after freeing 2 and allocating 3
/// ```
///
/// **Ring buffer** ([`Regions::Single`] only): ranges that are freed in the order of allocation are reused once the end
/// is reached. An allocation is never split: one that does not fit before the end goes to the start. The free range at
/// the end is reused in the next round.
///
/// ```text
///   |-----|#1#|#2#####|#3#######|..|        |#4##|.|#1#|#2#####|#3#######|-|
///   after freeing 0                         4 does not fit at the end, but before 1
/// ```
///
/// **Double stack** ([`Regions::Single`] only): allocations with [`Request::upper`] fill a second stack from the end
/// downwards. So two kinds of lifetimes share one region.
///
/// ```text
///   |#0###|#2#|..................|#3####|#1##|
///          lower side ->       <- upper side
/// ```
///
/// The region is full when the two sides meet. A ring buffer has no upper side: an upper allocation in a region that
/// has wrapped fails with [`AllocateError::UpperInRing`]. A double stack does not wrap: an upper side limits the lower
/// one.
///
/// **With [`Regions::Many`]** the regions form a stack of regions. The region on top is current, and is filled up to
/// its end. Then the smallest empty region with enough room goes on top; among equals, the one that was emptied last.
/// The other empty regions can be removed. When the region on top becomes empty, the one below is current again, with
/// the free space after its newest allocation. A region below the top is not used until those above are empty, or until
/// it is empty itself. There is no wrap and no upper side: ranges that are freed in the order of allocation are reused
/// when a whole region is empty.
///
/// ```text
///   |#0#|#1#####|..|  |#2######|.....|       |#0#|............|  |.............|
///   left for 2        current                after freeing 2 and 1: current again, and the other is empty
/// ```
///
/// Units can be anything. Offsets are multiples of the alignment. Granted sizes equal the requested ones.
///
/// # Complexity
/// Allocating and freeing: O(1), in any order of frees, with any number of allocations and regions, without deferred
/// work. There are two exceptions. Choosing another region is a binary search among the different capacities of the
/// regions, and reads one bit for each capacity. If there are more entries than ever before, their host memory grows by
/// a quarter.
///
/// [`Metadata::reset`]: one step for 32 allocations. [`Metadata::largest_free`]: O(1) with one region, else it reads
/// one bit for each capacity.
///
/// Host memory: 25 bytes for each allocation, in pages of 32 entries. A page is reused when none of its entries is
/// live. In the worst case one of each 32 successive allocations lives on, and takes 800 bytes. A region that is
/// emptied keeps one page, until it is reset or removed.
///
/// # How it works
/// A key contains the index of its allocation's entry, and the expected generation. A side is a list of pages with
/// entries in the order of allocation. A word in each page marks the live entries.
///
/// ```text
///   first                                                             next: behind the newest entry
///   | 0000 1011 |  <->  | 1111 1111 |  <->  | 0100 0000 |  <->  | 1101 .... |
///          oldest                              this page is freed with its only live entry
/// ```
///
/// The oldest entry is the first live one of the first page. When the newest entry is freed, the next newest is the
/// last live one of its page or of the previous page. Counting the zeros of a word finds both, without visiting holes.
/// The only page of a side stays when its last entry is freed, so that alternating frees and allocations find a slot.
///
/// # Invariants
/// [`Metadata::validate`] asserts these numbered invariants:
///
/// - L1: each page is in the list of one side of one region, which it names, or free; free ones have no live entry.
///   Lists are linked both ways.
/// - L2: each page of a side has a live entry, unless it is the only one. The next entry goes behind the newest one, or
///   into the second slot of the page if there is no live entry.
/// - L3: entries of the lower side lie behind one another, and those of the upper side below one another, inside the
///   region. The lower side does not pass the end of the upper one, or its own oldest entry if it has wrapped.
/// - L4: the lower side wraps once at most, in a single region only, and only without an upper side.
/// - L5: the sums of each region and of the engine are those of their live entries.
/// - L6: a vacant region has no entries, is in the heap of vacant slots once, and is not current.
/// - L7: a region of many is open, that is, may become current, iff it is empty and not current.
/// - L8: there is one group for each capacity of a region, in ascending order. Its list contains the open regions of
///   that capacity, linked both ways. Its bit is set iff the list is not empty.
/// - L9: the end, the limit and the ring flag of a region agree with its entries.
/// - L10: of many regions, those that are not open form the stack, linked both ways, with the current one on top. A
///   region in the stack is empty only if it is the only one there.
///
/// # Examples
/// A ring buffer for three frames:
///
/// ```
/// use sublet_engines::{Alignment, Linear, Metadata, Regions, Request};
///
/// let mut ring = Linear::new(1000, Regions::Single);
/// let region = ring.add_region(&1000)?;
/// let mut in_flight = std::collections::VecDeque::new();
/// for frame in 0..100 {
///     if in_flight.len() == 3 {
///         // The GPU is done with the oldest frame.
///         for key in in_flight.pop_front().unwrap_or([None; 2]).into_iter().flatten() {
///             ring.free(key).expect("freed once");
///         }
///     }
///     let (a, _) = ring.allocate(&Request::new(100, Alignment::ONE)).expect("three frames fit");
///     let (b, _) = ring.allocate(&Request::new(50 + frame % 50, Alignment::ONE)).expect("three frames fit");
///     in_flight.push_back([Some(a), Some(b)]);
/// }
/// assert_eq!(ring.region_usage(region).used_chunks, 6);
/// # Ok::<(), sublet_engines::RegionError>(())
/// ```
///
/// A double stack:
///
/// ```
/// use sublet_engines::{Alignment, AllocateError, Linear, Metadata, Regions, Request};
///
/// let mut stack = Linear::new(1000, Regions::Single);
/// stack.add_region(&1000)?;
/// let upper = |size| Request { upper: true, ..Request::new(size, Alignment::ONE) };
/// let (_, low) = stack.allocate(&Request::new(300, Alignment::ONE)).expect("there is room");
/// let (_, high) = stack.allocate(&upper(300)).expect("there is room");
/// assert_eq!((low.offset, high.offset), (0, 700));
/// assert_eq!(stack.allocate(&upper(500)), Err(AllocateError::NoSpace));
/// # Ok::<(), sublet_engines::RegionError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Linear {
    regions: Vec<LinearRegion>,
    /// The first candidate for the next allocation; [`NO_REGION`] until there is one.
    current: u32,
    many: bool,
    /// The entries of all regions.
    pages: EntryPages,
    /// The sums over the regions that are not current. The capacity is the sum over all regions.
    others: Usage,
    max_region_capacity: u64,
    /// The empty regions that are not current, and the stack of the others. Not used for a single region.
    open: OpenRegions,
    vacant: BinaryHeap<Reverse<u32>>,
}

/// The id of no region.
const NO_REGION: u32 = u32::MAX;

impl Linear {
    /// Creates an engine without regions. Each region may have up to `max_region_capacity` units.
    ///
    /// # Panics
    /// Never.
    #[must_use]
    pub fn new(max_region_capacity: u64, regions: Regions) -> Self {
        Self {
            regions: Vec::new(),
            current: NO_REGION,
            many: regions == Regions::Many,
            pages: EntryPages::new(),
            others: Usage::default(),
            max_region_capacity,
            open: OpenRegions::default(),
            vacant: BinaryHeap::new(),
        }
    }

    /// Returns whether the engine was made for one region or for many.
    #[must_use]
    pub const fn regions(&self) -> Regions {
        if self.many { Regions::Many } else { Regions::Single }
    }

    /// Bytes of host memory that the engine holds.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        self.regions.capacity() * size_of::<LinearRegion>()
            + self.pages.heap_bytes()
            + self.open.heap_bytes()
            + self.vacant.capacity() * size_of::<Reverse<u32>>()
    }

    fn region(&self, region: RegionId) -> &LinearRegion {
        match self.regions.get(index(region.0)) {
            Some(found) if found.capacity != 0 => found,
            _ => panic!("this engine has no region {}", region.0),
        }
    }

    /// The first candidate region for requests.
    #[inline]
    pub fn current(&self) -> RegionId {
        RegionId(self.current)
    }

    /// The fast path: a request for the lower side of the current region. Returns the key, the region, and the offset
    /// in it. Returns `None`, and changes nothing, if the caller must use [`Metadata::allocate`].
    ///
    /// # Complexity
    /// O(1).
    ///
    /// ```
    /// use sublet_engines::{Alignment, Linear, Metadata, Regions, Tag};
    /// let mut linear = Linear::new(64, Regions::Single);
    /// assert!(linear.try_allocate(10, Alignment::ONE, Tag(0)).is_none(), "there is no region");
    /// let region = linear.add_region(&64)?;
    /// assert!(linear.allocate(&sublet_engines::Request::new(10, Alignment::ONE)).is_ok());
    /// let granted = linear.try_allocate(10, Alignment::ONE, Tag(0));
    /// assert!(granted.is_some_and(|(_, found, offset)| (found, offset) == (region, 10)));
    /// # Ok::<(), sublet_engines::RegionError>(())
    /// ```
    #[inline(always)]
    pub fn try_allocate(
        &mut self,
        size: u64,
        alignment: Alignment,
        tag: Tag,
    ) -> Option<(Key, RegionId, u64)> {
        let region = self.current();
        let (key, offset) = self.try_push(size, alignment, tag)?;
        Some((key, region, offset))
    }

    /// [`Self::try_allocate`] without the region: two values are returned in registers, three are not (row
    /// `frame-linear`).
    #[inline(never)]
    fn try_push(&mut self, size: u64, alignment: Alignment, tag: Tag) -> Option<(Key, u64)> {
        let request = Request { tag, ..Request::new(size, alignment) };
        let region = self.regions.get_mut(index(self.current))?;
        let offset = region.place(&request)?;
        if region.has_slot() {
            return Some((region.push(&mut self.pages, &request, offset), offset));
        }
        // The next page of entries.
        self.push_at(self.current, offset, &request).ok().map(|(key, _)| (key, offset))
    }

    /// Returns true if a request would succeed. Changes nothing.
    ///
    /// # Errors
    /// [`AllocateError::UpperUnsupported`] or [`AllocateError::UpperInRing`] for a request from the upper end.
    pub fn fits(&self, request: &Request) -> Result<bool, AllocateError> {
        let current = self.regions.get(index(self.current));
        if request.upper {
            if self.many {
                return Err(AllocateError::UpperUnsupported);
            }
            return match current.map(|region| region.place_upper(request)) {
                Some(Ok(_)) => Ok(true),
                Some(Err(AllocateError::UpperInRing)) => Err(AllocateError::UpperInRing),
                _ => Ok(false),
            };
        }
        let is_here = |region: &LinearRegion| {
            region.place(request).is_some() || (!self.many && region.may_wrap(&self.pages, request))
        };
        let fits = current.is_some_and(is_here) || self.open.greatest() >= request.size;
        Ok(request.size != 0 && fits)
    }

    /// Replaces the tag of a live key.
    ///
    /// # Errors
    /// [`BadKey`] if `key` is not live in this engine.
    pub fn set_tag(&mut self, key: Key, tag: Tag) -> Result<(), BadKey> {
        self.pages.set_tag(key, tag).ok_or(BadKey)
    }

    /// A shorter [`Metadata::free`]. Returns the region, and true if it is empty now, or `None` for a bad key.
    #[inline(never)]
    pub fn take_back(&mut self, key: Key) -> Option<(RegionId, bool)> {
        let freed = self.free(key).ok()?;
        Some((freed.span.region, freed.region_empty))
    }

    /// Makes room if the current region has none, or no slot for the entry, or if the request is for the upper side.
    /// Returns the region, which is current then, and the offset.
    #[inline(never)]
    fn make_room(&mut self, request: &Request) -> Result<(u32, u64), AllocateError> {
        let current = self.current;
        if request.upper {
            if self.many {
                return Err(AllocateError::UpperUnsupported);
            }
            let region = self.regions.get(index(current)).ok_or(AllocateError::NoSpace)?;
            return Ok((current, region.place_upper(request)?));
        }
        if let Some(region) = self.regions.get_mut(index(current)) {
            if !region.has_slot() && !self.pages.has_page() {
                return Err(AllocateError::NoSpace);
            }
            if let Some(offset) = region.place(request) {
                return Ok((current, offset));
            }
            if !self.many && region.may_wrap(&self.pages, request) {
                region.wrap(&self.pages);
                return Ok((current, 0));
            }
        }
        Ok((self.enter_empty(request)?, 0))
    }

    /// Makes an empty region current, in which the request fits at the start.
    fn enter_empty(&mut self, request: &Request) -> Result<u32, AllocateError> {
        if request.size == 0 || !self.pages.has_page() {
            return Err(AllocateError::NoSpace);
        }
        // Offset 0 is a multiple of every alignment, so only the capacity matters. A single region is never open.
        let found = self.open.take(request.size).ok_or(AllocateError::NoSpace)?;
        let mut left = std::mem::replace(&mut self.current, found);
        if let Some(region) = self.regions.get(index(left)) {
            self.others.used += region.used;
            self.others.used_chunks += u64::from(region.used_chunks);
            if region.is_empty() {
                // It is alone on the stack: L10.
                self.open.pull(left, region.capacity);
                left = NO_REGION;
            }
        }
        self.open.push(found, left);
        Ok(found)
    }

    /// The slow path of [`Metadata::free`], if [`LinearRegion::remove`] returned true. Returns true if the region is
    /// empty now.
    #[inline(never)]
    fn complete_free(&mut self, id: u32, slot: u32, size: u64) -> bool {
        if id != self.current {
            self.others.used -= size;
            self.others.used_chunks -= 1;
        }
        let region = &mut self.regions[index(id)];
        region.complete_free(&mut self.pages, slot);
        let is_empty = region.is_empty();
        if is_empty && self.many {
            self.emptied(id);
        }
        is_empty
    }

    /// Removes an emptied region, one of many, from the stack, unless it is alone there.
    fn emptied(&mut self, id: u32) {
        if id == self.current {
            let Some(below) = self.open.below(id) else { return };
            let region = &self.regions[index(below)];
            self.others.used -= region.used;
            self.others.used_chunks -= u64::from(region.used_chunks);
            self.current = below;
        }
        self.open.pull(id, self.regions[index(id)].capacity);
    }

    /// Grants a request at an offset where it fits. Fails if the region gets no page for the entry.
    fn push_at(&mut self, region: u32, offset: u64, request: &Request) -> Result<(Key, Span), AllocateError> {
        let found = &mut self.regions[index(region)];
        if !found.reserve(&mut self.pages, region, request.upper) {
            return Err(AllocateError::NoSpace);
        }
        let key = if request.upper {
            found.push_upper(&mut self.pages, request, offset)
        } else {
            found.push(&mut self.pages, request, offset)
        };
        Ok((key, Span { region: RegionId(region), offset, size: request.size }))
    }

    /// Asserts L6, L7 and L10.
    fn validate_vacant(&self) {
        let mut vacant: Vec<u32> = self.vacant.iter().map(|&Reverse(id)| id).collect();
        vacant.sort_unstable();
        let expected: Vec<u32> =
            (0..narrow(self.regions.len())).filter(|&id| self.regions[index(id)].capacity == 0).collect();
        assert_eq!(vacant, expected, "L6: the heap of vacant slots");
        assert!(!vacant.contains(&self.current), "L6: the current region is vacant");
        for &id in &vacant {
            assert!(self.regions[index(id)].is_empty(), "L6: vacant region {id} has entries");
        }
        let is_open = |id: u32, region: &LinearRegion| region.is_empty() && id != self.current;
        let present = (0..).zip(&self.regions).filter(|(_, region)| self.many && region.capacity != 0);
        self.open.validate(present.clone().map(|(id, region)| (id, region.capacity, is_open(id, region))));
        let stack = present.filter(|&(id, region)| !is_open(id, region)).map(|(id, _)| id);
        if self.many {
            self.open.validate_stack(self.current, stack.clone());
            let is_empty = self.regions.get(index(self.current)).is_some_and(LinearRegion::is_empty);
            assert!(!is_empty || stack.count() == 1, "L10: the current region is empty and not alone");
        }
        assert!(self.many || self.regions.len() <= 1, "L7: a single region, not {}", self.regions.len());
    }
}

impl Metadata for Linear {
    type Capacity = u64;
    type Request = Request;
    type Span = Span;
    type Chunk = ChunkInfo;

    fn add_region(&mut self, &capacity: &u64) -> Result<RegionId, RegionError> {
        if capacity == 0 || capacity > self.max_region_capacity {
            return Err(RegionError::Capacity { capacity, max: self.max_region_capacity });
        }
        let sum = self.others.capacity.checked_add(capacity).ok_or(RegionError::TooMany)?;
        let limit = if self.many { NO_REGION } else { 1 };
        let id = match self.vacant.peek() {
            Some(&Reverse(id)) => id,
            None if self.regions.len() < index(limit) => narrow(self.regions.len()),
            None => return Err(RegionError::TooMany),
        };
        if self.vacant.pop().is_none() {
            self.regions.push(LinearRegion::default());
            // Reserves the capacity that `remove_region` needs, so that removing never allocates.
            self.vacant.reserve(self.regions.len());
        }
        self.regions[index(id)].open(capacity);
        self.others.capacity = sum;
        if self.many {
            self.open.add(id, capacity);
            self.open.open(id, capacity);
        } else {
            self.current = id;
        }
        Ok(RegionId(id))
    }

    fn remove_region(&mut self, region: RegionId) -> Result<(), NotEmpty> {
        let found = self.region(region);
        let capacity = found.capacity;
        if !found.is_empty() {
            return Err(NotEmpty);
        }
        let id = region.0;
        if self.current == id {
            self.current = NO_REGION;
        } else {
            self.open.close(id, capacity);
        }
        if self.many {
            self.open.remove(capacity);
        }
        let gone = &mut self.regions[index(id)];
        gone.clear(&mut self.pages);
        gone.open(0);
        self.others.capacity -= capacity;
        self.vacant.push(Reverse(id));
        Ok(())
    }

    // Inlined, because a call would add a third to the cost. Rare cases are separate functions.
    #[inline(always)]
    fn allocate(&mut self, request: &Request) -> Result<(Key, Span), AllocateError> {
        if let Some(region) = self.regions.get_mut(index(self.current)).filter(|_| !request.upper) {
            if let Some(offset) = region.place(request) {
                if region.has_slot() {
                    let key = region.push(&mut self.pages, request, offset);
                    return Ok((key, Span { region: RegionId(self.current), offset, size: request.size }));
                }
            }
        }
        let (region, offset) = self.make_room(request)?;
        self.push_at(region, offset, request)
    }

    // Inlined for the same reasons as `allocate`.
    #[inline(always)]
    fn free(&mut self, key: Key) -> Result<Freed, BadKey> {
        let found = self.pages.find(key).ok_or(BadKey)?;
        let FoundEntry { slot, region: id, entry: LinearEntry { offset, size, .. } } = found;
        let span = Span { region: RegionId(id), offset, size };
        if self.regions[index(id)].remove(&mut self.pages, slot, size) {
            return Ok(Freed { span, region_empty: self.complete_free(id, slot, size) });
        }
        if id != self.current {
            self.others.used -= size;
            self.others.used_chunks -= 1;
        }
        Ok(Freed { span, region_empty: false })
    }

    fn reset(&mut self, region: RegionId) {
        let Usage { used, used_chunks, .. } = self.region(region).usage();
        self.regions[index(region.0)].clear(&mut self.pages);
        if used_chunks == 0 {
            return;
        }
        if self.current != region.0 {
            self.others.used -= used;
            self.others.used_chunks -= used_chunks;
        }
        if self.many {
            self.emptied(region.0);
        }
    }

    /// Only the current region and the empty ones grant anything.
    fn allocate_outside(
        &mut self,
        request: &Request,
        is_closed: &dyn Fn(RegionId) -> bool,
    ) -> Result<(Key, Span), AllocateError> {
        let is_full = self.current != NO_REGION && is_closed(self.current());
        if !is_full || request.upper {
            return allocate_elsewhere(self, request, is_closed);
        }
        if !self.many {
            return Err(AllocateError::NoSpace);
        }
        let region = self.enter_empty(request)?;
        let (key, span) = self.push_at(region, 0, request)?;
        if !is_closed(span.region) {
            return Ok((key, span));
        }
        // The empty region is closed, too.
        let _ = self.free(key);
        allocate_elsewhere(self, request, is_closed)
    }

    /// Removes the region if it is empty. A region below the top of the stack grants nothing anyway, and is left as it
    /// is. The current region stays current and is filled; a ring first up to its end, then up to its oldest
    /// allocation.
    fn discard(&mut self, region: RegionId) {
        if self.remove_region(region).is_ok() || self.current() != region {
            return;
        }
        loop {
            let found = self.region(region);
            let room = if self.many { found.room() } else { found.room_or_wrap(&self.pages) };
            if room == 0 {
                return;
            }
            let filled = self.allocate(&Request::new(room, Alignment::ONE));
            assert!(filled.is_ok_and(|(_, span)| span.region == region), "there is as much room");
        }
    }

    fn span(&self, key: Key) -> Result<Span, BadKey> {
        let FoundEntry { region, entry: LinearEntry { offset, size, .. }, .. } =
            self.pages.find(key).ok_or(BadKey)?;
        Ok(Span { region: RegionId(region), offset, size })
    }

    fn tag(&self, key: Key) -> Result<Tag, BadKey> {
        self.pages.find(key).ok_or(BadKey).map(|found| found.entry.tag())
    }

    fn region_usage(&self, region: RegionId) -> Usage {
        self.region(region).usage()
    }

    fn usage(&self) -> Usage {
        let mut sum = self.others;
        if let Some(region) = self.regions.get(index(self.current)) {
            sum.used += region.used;
            sum.used_chunks += u64::from(region.used_chunks);
        }
        sum
    }

    /// The free end of the current region, or the largest empty region. O(1).
    fn largest_free(&self) -> u64 {
        let current = self.regions.get(index(self.current));
        if self.many {
            current.map_or(0, LinearRegion::room).max(self.open.greatest())
        } else {
            current.map_or(0, |region| region.room_or_wrap(&self.pages))
        }
    }

    fn walk(&self, region: RegionId, visit: &mut dyn FnMut(ChunkInfo)) {
        self.region(region).walk(&self.pages, visit);
    }

    fn validate(&self) {
        let (mut sum, mut pages) = (Usage::default(), 0);
        for (id, region) in self.regions.iter().enumerate() {
            region.validate(&self.pages, narrow(id));
            pages += region.page_count(&self.pages);
            if self.many {
                region.validate_one_of_many();
            }
            sum.capacity += region.capacity;
            sum.used += region.used;
            sum.used_chunks += u64::from(region.used_chunks);
        }
        assert_eq!(self.usage(), sum, "L5: sums of the engine");
        self.pages.validate_free(pages);
        self.validate_vacant();
    }
}
