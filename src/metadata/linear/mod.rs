//! The engine that only ever goes on: for lifetimes that nest, follow one another, or end together.
//!
//! See [`Linear`].
#![forbid(unsafe_code)]

mod region;
mod rooms;
mod serial;
mod side;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use self::region::Region;
use self::rooms::Rooms;
use self::serial::{MAX_REGIONS, Serial};
use self::side::{Record, Side};
use super::{
    AllocateError, BadKey, Chunk, Freed, Key, Metadata, NotEmpty, RegionError, RegionId, Request, Span, Tag,
    Usage,
};
use crate::base::cast::{index, narrow};

/// How many regions a [`Linear`] engine may have, and with that what it can be used as.
///
/// ```
/// use sublet::metadata::{AllocateError, Linear, Metadata, Regions, Request};
///
/// let upper = Request { upper: true, ..Request::new(10, 1) };
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
    /// Up to 65,535 regions, filled one after the other: free-at-once or stack.
    Many,
}

/// Puts each allocation behind the one before. What is freed in the middle is not used again until everything on one
/// side of it is freed too.
///
/// Nobody says what a region is used as; it shows in the order of the calls. `#` is used, `.` is free, `-` is free but
/// will not be used again before a neighbour is freed; numbers say in which order the allocations were made.
///
/// **Free-at-once**: allocate, allocate, ... and then free everything, in any order, or [`reset`](Metadata::reset) the
/// region. When the last allocation goes, the next one is at offset 0.
///
/// ```text
///   |#0###|#1#|#2#####|............|        |-----|#1#|-------|............|
///   0                              end      after freeing 2 and 0: the tail grew, the start waits for 1
/// ```
///
/// **Stack**: what is freed in the reverse order is there again at once.
///
/// ```text
///   |#0###|#1#|#2#####|............|        |#0###|#1#|#3###########|......|
///                                           after freeing 2 and allocating 3
/// ```
///
/// **Ring buffer** ([`Regions::Single`] only): what is freed in the same order is there again when the end is reached.
/// An allocation is never split: one that does not fit before the end goes to the start, and what it left at the
/// end waits until the ring comes round.
///
/// ```text
///   |-----|#1#|#2#####|#3#######|..|        |#4##|.|#1#|#2#####|#3#######|-|
///   after freeing 0                         4 does not fit at the end, but before 1
/// ```
///
/// **Double stack** ([`Regions::Single`] only): allocations with [`Request::upper`] fill a second stack from the end
/// downwards, so that two kinds of lifetimes share one region.
///
/// ```text
///   |#0###|#2#|..................|#3####|#1##|
///          lower side ->       <- upper side
/// ```
///
/// Where the two sides meet there is no space. A ring buffer has no upper side and a double stack does not wrap: an
/// upper allocation in a region that has wrapped is [`AllocateError::UpperInRing`], and while there is one the lower
/// side ends where the upper one does.
///
/// **With [`Regions::Many`]** one region is current. It is filled up to its end; then the one with the lowest id among
/// the empty ones with enough room becomes current. A region that is left is not used again before it is empty.
/// There is no wrap and no upper side.
///
/// Units: whatever the owner counts. Offsets are multiples of the alignment; sizes are granted as asked.
///
/// # Complexity
/// Allocating: O(1) amortised; O(log regions) when another region becomes current and there is more than one empty one.
/// Freeing: O(1) amortised for the oldest and the newest allocation of a side, and for any other one as long as the side
/// was not popped like a stack before and the two sides of a double stack did not take turns; else O(log n) in the number of
/// allocations popped or made on the other side. [`Metadata::reset`]: O(1).
/// [`Metadata::largest_free`]: O(1).
///
/// Host memory: 32 bytes for each allocation, and for each hole until a neighbour is freed. What a region has grown
/// to hold is kept, and used for the next region that becomes current.
///
/// # Invariants
/// Asserted by [`Metadata::validate`] under these numbers:
///
/// - L1: the first and the last record of each side are live.
/// - L2: serial numbers rise along a side.
/// - L3: records of one side lie behind one another (upper: below one another), inside the region, and the lower side
///   ends where the upper one does, or at the oldest record if it has wrapped.
/// - L4: the lower side wraps once at most, in a single region only, and only without an upper side.
/// - L5: the sums of each region and of the engine are those of their live records.
/// - L6: a vacant region has no records, is in the heap of vacant slots once, and is not current.
/// - L7: exactly the empty regions that are not current have room to be chosen for.
/// - L8: the tree of rooms is a tournament: each node is the greater of its children. It is all zero while the only
///   region with room is kept beside it.
/// - L9: what a region keeps beside its records (where the next one goes, what it must not reach over, whether the
///   lower side has wrapped) agrees with them.
///
/// # Examples
/// A ring buffer for three frames:
///
/// ```
/// use sublet::metadata::{Linear, Metadata, Regions, Request};
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
///     let (a, _) = ring.allocate(&Request::new(100, 16)).expect("three frames fit");
///     let (b, _) = ring.allocate(&Request::new(50 + frame % 50, 16)).expect("three frames fit");
///     in_flight.push_back([Some(a), Some(b)]);
/// }
/// assert_eq!(ring.region_usage(region).used_chunks, 6);
/// # Ok::<(), sublet::metadata::RegionError>(())
/// ```
///
/// A double stack:
///
/// ```
/// use sublet::metadata::{AllocateError, Linear, Metadata, Regions, Request};
///
/// let mut stack = Linear::new(1000, Regions::Single);
/// stack.add_region(&1000)?;
/// let upper = |size| Request { upper: true, ..Request::new(size, 1) };
/// let (_, low) = stack.allocate(&Request::new(300, 1)).expect("there is room");
/// let (_, high) = stack.allocate(&upper(300)).expect("there is room");
/// assert_eq!((low.offset, high.offset), (0, 700));
/// assert_eq!(stack.allocate(&upper(500)), Err(AllocateError::NoSpace));
/// # Ok::<(), sublet::metadata::RegionError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Linear {
    regions: Vec<Region>,
    /// Where the next allocation goes if it fits; [`NO_REGION`] until there is one.
    current: u32,
    many: bool,
    /// Of the next allocation.
    serial: Serial,
    usage: Usage,
    max_region_capacity: u64,
    /// The capacities of the empty regions that are not current, 0 for all others. Not used for a single region.
    rooms: Rooms,
    /// Sides whose region is empty and not current: their memory serves the next region that becomes current.
    spare: Vec<Side>,
    vacant: BinaryHeap<Reverse<u32>>,
}

/// No region has this id, see [`MAX_REGIONS`].
const NO_REGION: u32 = u32::MAX;

impl Linear {
    /// An engine without regions, each of which is to have at most `max_region_capacity` units.
    ///
    /// # Panics
    /// Never.
    ///
    /// # Examples
    /// ```
    /// use sublet::metadata::{Linear, Metadata, RegionError, Regions, Request};
    ///
    /// let mut scopes = Linear::new(1 << 20, Regions::Many);
    /// let (first, second) = (scopes.add_region(&100)?, scopes.add_region(&100)?);
    /// let (_, a) = scopes.allocate(&Request::new(60, 1)).expect("an empty region");
    /// let (_, b) = scopes.allocate(&Request::new(60, 1)).expect("an empty region");
    /// assert_eq!((a.region, b.region), (first, second));
    ///
    /// let mut ring = Linear::new(1 << 20, Regions::Single);
    /// ring.add_region(&100)?;
    /// assert_eq!(ring.add_region(&100), Err(RegionError::TooMany));
    /// # Ok::<(), RegionError>(())
    /// ```
    #[must_use]
    pub fn new(max_region_capacity: u64, regions: Regions) -> Self {
        Self {
            regions: Vec::new(),
            current: NO_REGION,
            many: regions == Regions::Many,
            serial: Serial::first(),
            usage: Usage::default(),
            max_region_capacity,
            rooms: Rooms::default(),
            spare: Vec::new(),
            vacant: BinaryHeap::new(),
        }
    }

    /// Whether the engine was made for one region or for many.
    ///
    /// # Examples
    /// ```
    /// use sublet::metadata::{Linear, Regions};
    ///
    /// assert_eq!(Linear::new(1, Regions::Many).regions(), Regions::Many);
    /// ```
    #[must_use]
    pub const fn regions(&self) -> Regions {
        if self.many { Regions::Many } else { Regions::Single }
    }

    /// Bytes of host memory that the engine holds.
    ///
    /// # Examples
    /// ```
    /// use sublet::metadata::{Linear, Regions};
    ///
    /// assert_eq!(Linear::new(1000, Regions::Single).heap_bytes(), 0);
    /// ```
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        self.regions.capacity() * size_of::<Region>()
            + self.regions.iter().map(Region::heap_bytes).sum::<usize>()
            + self.spare.capacity() * size_of::<Side>()
            + self.spare.iter().map(Side::heap_bytes).sum::<usize>()
            + self.rooms.heap_bytes()
            + self.vacant.capacity() * size_of::<Reverse<u32>>()
    }

    fn region(&self, region: RegionId) -> &Region {
        match self.regions.get(index(region.0)) {
            Some(found) if found.capacity != 0 => found,
            _ => panic!("this engine has no region {}", region.0),
        }
    }

    /// Records an allocation at a place that was found free.
    #[inline]
    fn commit(&mut self, region: u32, offset: u64, request: &Request) -> (Key, Span) {
        let serial = self.serial;
        self.serial = serial.next();
        let id = RegionId(region);
        let size = request.size;
        let region = &mut self.regions[index(region)];
        let record = Record::new(offset, size, serial, request.tag);
        if request.upper {
            region.push_upper(record);
        } else {
            region.push_lower(record);
        }
        self.usage.used += size;
        self.usage.used_chunks += 1;
        (serial.key(id, request.upper), Span { region: id, offset, size })
    }

    /// What [`Metadata::allocate`] does when the current region is full.
    #[cold]
    #[inline(never)]
    fn allocate_elsewhere(&mut self, request: &Request) -> Result<(Key, Span), AllocateError> {
        if !self.many {
            let region = self.regions.get(index(self.current)).ok_or(AllocateError::NoSpace)?;
            let offset = region.place_wrapped(request).ok_or(AllocateError::NoSpace)?;
            return Ok(self.commit(self.current, offset, request));
        }
        // Offset 0 is a multiple of every alignment, so the capacity alone decides.
        let found = if request.size == 0 { None } else { self.rooms.lowest(request.size) };
        let found = found.ok_or(AllocateError::NoSpace)?;
        let left = std::mem::replace(&mut self.current, narrow(found));
        self.rooms.set(found, 0);
        if self.regions.get(index(left)).is_some_and(Region::is_empty) {
            self.put_by(left);
        }
        let lower = self.regions[found].lower_mut();
        if !lower.is_warm() {
            *lower = self.spare.pop().unwrap_or_default();
        }
        Ok(self.commit(self.current, 0, request))
    }

    #[cold]
    #[inline(never)]
    fn allocate_upper(&mut self, request: &Request) -> Result<(Key, Span), AllocateError> {
        if self.many {
            return Err(AllocateError::UpperUnsupported);
        }
        let region = self.regions.get(index(self.current)).ok_or(AllocateError::NoSpace)?;
        let offset = region.place_upper(request)?;
        Ok(self.commit(self.current, offset, request))
    }

    /// Lets an empty region that is not current be chosen again, and takes the memory of its records for others.
    fn put_by(&mut self, id: u32) {
        let region = &mut self.regions[index(id)];
        self.rooms.set(index(id), region.capacity);
        let lower = region.lower_mut();
        if lower.is_warm() {
            // There are at most as many spare sides as regions, for which there is room since they were added.
            self.spare.push(std::mem::take(lower));
        }
    }

    /// Asserts L6 and L7.
    fn validate_slots(&self) {
        let mut vacant: Vec<u32> = self.vacant.iter().map(|&Reverse(id)| id).collect();
        vacant.sort_unstable();
        let expected: Vec<u32> =
            (0..narrow(self.regions.len())).filter(|&id| self.regions[index(id)].capacity == 0).collect();
        assert_eq!(vacant, expected, "L6: the heap of vacant slots");
        assert!(!vacant.contains(&self.current), "L6: the current region is vacant");
        for &id in &vacant {
            assert!(self.regions[index(id)].is_empty(), "L6: vacant region {id} has records");
        }
        for (id, region) in self.regions.iter().enumerate() {
            let open = self.many && region.is_empty() && id != index(self.current);
            let room = if open { region.capacity } else { 0 };
            assert_eq!(self.rooms.room(id), room, "L7: room of region {id}");
        }
        assert!(self.many || self.regions.len() <= 1, "L7: a single region, not {}", self.regions.len());
    }
}

impl Metadata for Linear {
    type Capacity = u64;
    type Request = Request;
    type Span = Span;

    fn add_region(&mut self, &capacity: &u64) -> Result<RegionId, RegionError> {
        if capacity == 0 || capacity > self.max_region_capacity {
            return Err(RegionError::Capacity { capacity, max: self.max_region_capacity });
        }
        let sum = self.usage.capacity.checked_add(capacity).ok_or(RegionError::TooMany)?;
        let limit = if self.many { MAX_REGIONS } else { 1 };
        let id = match self.vacant.peek() {
            Some(&Reverse(id)) => id,
            None if self.regions.len() < index(limit) => narrow(self.regions.len()),
            None => return Err(RegionError::TooMany),
        };
        if self.vacant.pop().is_none() {
            self.regions.push(Region::default());
            // What `put_by` and `remove_region` push later is paid for here.
            self.spare.reserve(self.regions.len() - self.spare.len());
            self.vacant.reserve(self.regions.len());
            if self.many {
                self.rooms.grow(self.regions.len());
            }
        }
        self.regions[index(id)].open(capacity);
        self.usage.capacity = sum;
        if self.many {
            self.rooms.set(index(id), capacity);
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
        if self.many {
            self.put_by(id);
            self.rooms.set(index(id), 0);
        }
        if self.current == id {
            self.current = NO_REGION;
        }
        self.regions[index(id)].close();
        self.usage.capacity -= capacity;
        self.vacant.push(Reverse(id));
        Ok(())
    }

    #[inline]
    fn allocate(&mut self, request: &Request) -> Result<(Key, Span), AllocateError> {
        debug_assert!(request.alignment.is_power_of_two(), "an alignment of {}", request.alignment);
        if request.upper {
            return self.allocate_upper(request);
        }
        if let Some(region) = self.regions.get(index(self.current)) {
            if let Some(offset) = region.place(request) {
                return Ok(self.commit(self.current, offset, request));
            }
        }
        self.allocate_elsewhere(request)
    }

    #[inline]
    fn free(&mut self, key: Key) -> Result<Freed, BadKey> {
        let (id, upper, serial) = Serial::of(key);
        let region = self.regions.get_mut(index(id.0)).ok_or(BadKey)?;
        let Record { offset, size, .. } = region.take(upper, serial).ok_or(BadKey)?;
        let region_empty = region.is_empty();
        self.usage.used -= size;
        self.usage.used_chunks -= 1;
        if region_empty && self.many && id.0 != self.current {
            self.put_by(id.0);
        }
        Ok(Freed { span: Span { region: id, offset, size }, region_empty })
    }

    fn reset(&mut self, region: RegionId) {
        let Usage { used, used_chunks, .. } = self.region(region).usage();
        self.usage.used -= used;
        self.usage.used_chunks -= used_chunks;
        self.regions[index(region.0)].clear();
        if self.many && self.current != region.0 {
            self.put_by(region.0);
        }
    }

    fn span(&self, key: Key) -> Result<Span, BadKey> {
        let (region, upper, serial) = Serial::of(key);
        let found = self.regions.get(index(region.0)).ok_or(BadKey)?;
        let &Record { offset, size, .. } = found.side(upper).live(serial).ok_or(BadKey)?;
        Ok(Span { region, offset, size })
    }

    fn tag(&self, key: Key) -> Result<Tag, BadKey> {
        let (region, upper, serial) = Serial::of(key);
        let found = self.regions.get(index(region.0)).ok_or(BadKey)?;
        found.side(upper).live(serial).map(Record::tag).ok_or(BadKey)
    }

    fn region_usage(&self, region: RegionId) -> Usage {
        self.region(region).usage()
    }

    fn usage(&self) -> Usage {
        self.usage
    }

    /// O(1): what is left of the current region, or the largest empty one.
    fn largest_free(&self) -> u64 {
        let current = self.regions.get(index(self.current));
        if self.many {
            current.map_or(0, Region::room).max(self.rooms.greatest())
        } else {
            current.map_or(0, Region::room_or_wrap)
        }
    }

    fn walk(&self, region: RegionId, visit: &mut dyn FnMut(Chunk)) {
        self.region(region).walk(region, visit);
    }

    fn validate(&self) {
        let mut sum = Usage::default();
        for region in &self.regions {
            region.validate();
            if self.many {
                region.validate_one_of_many();
            }
            sum.capacity += region.capacity;
            sum.used += region.used;
            sum.used_chunks += region.used_chunks;
        }
        assert_eq!(self.usage, sum, "L5: sums of the engine");
        self.validate_slots();
        self.rooms.validate();
    }
}
