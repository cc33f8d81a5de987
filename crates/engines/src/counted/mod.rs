//! Regions that hold a number of items of each kind, like descriptor pools.
//!
//! There are no offsets: a grant takes only a vector of counts out of a region. Otherwise [`Counted`] is a [`Metadata`]
//! like the other engines, whose units are grants.
//!
//! A grant may have a key. [`Metadata::allocate`] returns a key, for grants that are freed individually.
//! [`Counted::allocate_in`] keeps no record, for grants that end when their region is reset.
//!
//! ```text
//!   capacity   |########################|   grants 64   kinds: 64, 128, 64
//!   granted    |######......            |          20          20,  60, 20
//!   room       |      ..................|          44          44,  68, 44
//!
//!   closed: the region grants nothing more until it is reset, even if it has room
//! ```
//!
//! Invariants:
//! - C1: the remaining room of a region does not exceed its capacity.
//! - C2: the room of a region without grants is its whole capacity.
//! - C3: `grants` and `capacity` are the sums over the regions.
//! - C4: a vacant region slot has no capacity. A region is in `open` iff it has remaining grants and is not closed.
//! - C5: the records of the keyed grants of a region form a list, linked both ways. All other records are in the list
//!   of dead ones.

#[cfg(test)]
mod tests;

use std::fmt;
use std::num::NonZeroU64;

use super::{
    AllocateError, BadKey, Freed, InRegion, Key, Metadata, NotEmpty, RegionError, RegionId, Tag, Usage,
    first_generation,
};
use crate::cast::{index, narrow, widen};

/// A number of items of each kind.
///
/// Arrays are counts: `[u32; N]` has `N` kinds.
///
/// ```
/// use sublet_engines::Counts;
/// let mut room = [3_u32, 1];
/// assert!([2, 1].fits(&room) && ![0, 2].fits(&room));
/// room.take(&[2, 1]);
/// assert_eq!(room, [1, 0]);
/// ```
pub trait Counts: Copy + PartialEq + fmt::Debug {
    /// None of any kind.
    const ZERO: Self;

    /// Returns true if `self` can be taken out of `room`.
    fn fits(&self, room: &Self) -> bool;

    /// Takes `counts` out. The engine has checked that they fit.
    fn take(&mut self, counts: &Self);

    /// Puts `counts` back.
    fn put(&mut self, counts: &Self);
}

impl<const N: usize> Counts for [u32; N] {
    const ZERO: Self = [0; N];

    #[inline]
    fn fits(&self, room: &Self) -> bool {
        self.iter().zip(room).all(|(need, have)| need <= have)
    }

    #[inline]
    fn take(&mut self, counts: &Self) {
        for (have, take) in self.iter_mut().zip(counts) {
            *have = have.saturating_sub(*take);
        }
    }

    #[inline]
    fn put(&mut self, counts: &Self) {
        for (have, put) in self.iter_mut().zip(counts) {
            *have = have.saturating_add(*put);
        }
    }
}

/// The capacity of a region of [`Counted`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CountedCapacity<C> {
    /// The maximum number of live grants.
    pub grants: u32,
    /// The items of all grants together.
    pub counts: C,
}

/// The usage of a region of [`Counted`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CountedUsage<C> {
    /// The capacity of the region.
    pub capacity: CountedCapacity<C>,
    /// Live grants.
    pub grants: u32,
    /// The remaining capacity.
    pub room: CountedCapacity<C>,
    /// True if the region is closed: it grants nothing more until it is reset.
    pub sealed: bool,
}

/// A request to a [`Counted`].
///
/// ```
/// use sublet_engines::*;
/// let mut engine = Counted::new();
/// engine.add_region(&CountedCapacity { grants: 4, counts: [4, 8] }).unwrap();
/// let (key, span) = engine.allocate(&CountedRequest::new([1, 2])).unwrap();
/// assert_eq!((span.region, span.counts), (RegionId(0), [1, 2]));
/// assert!(engine.free(key).unwrap().region_empty);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CountedRequest<C> {
    /// The number of items of each kind.
    pub counts: C,
    /// See [`Tag`].
    pub tag: Tag,
}

impl<C> CountedRequest<C> {
    /// An untagged request.
    #[must_use]
    pub const fn new(counts: C) -> Self {
        Self { counts, tag: Tag(0) }
    }
}

/// A grant of a [`Counted`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CountedSpan<C> {
    /// The region of the grant.
    pub region: RegionId,
    /// The number of items of each kind.
    pub counts: C,
}

impl<C> InRegion for CountedSpan<C> {
    fn region(&self) -> RegionId {
        self.region
    }
}

/// A live grant, as [`Metadata::walk`] of a [`Counted`] shows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CountedChunk<C> {
    /// Its key.
    pub key: Key,
    /// Its tag.
    pub tag: Tag,
    /// The items of the grant.
    pub counts: C,
}

/// The region cannot have made the grant that was freed. Nothing was changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BadGrant;

/// No record: the end of a list.
const NONE: u32 = u32::MAX;

/// A grant with a key.
#[derive(Clone, Copy, Debug)]
struct GrantRecord<C> {
    counts: C,
    /// `NONE` for a dead record.
    region: u32,
    generation: u32,
    tag: Tag,
    /// Links in the list of the region, or of the dead ones.
    next: u32,
    previous: u32,
}

#[derive(Clone, Debug)]
struct CountedRegion<C> {
    room: C,
    /// Remaining grants; 0 if the region is closed.
    room_grants: u32,
    /// Remaining grants, even if the region is closed.
    unsealed: u32,
    /// The number of grants with a key, and the record of the newest one.
    keyed: u32,
    first: u32,
    sealed: bool,
    capacity: CountedCapacity<C>,
    live: bool,
}

impl<C: Counts> CountedRegion<C> {
    const VACANT: Self = Self {
        room: C::ZERO,
        room_grants: 0,
        unsealed: 0,
        keyed: 0,
        first: NONE,
        sealed: false,
        capacity: CountedCapacity { grants: 0, counts: C::ZERO },
        live: false,
    };

    fn granted(&self) -> u32 {
        self.capacity.grants - self.unsealed
    }

    /// Returns true if the region has remaining grants and is not closed.
    #[inline]
    fn is_open(&self) -> bool {
        self.room_grants != 0
    }

    /// Puts a grant back. Returns true if the region is empty now.
    fn put(&mut self, counts: &C) -> bool {
        self.room.put(counts);
        self.unsealed += 1;
        if !self.sealed {
            self.room_grants = self.unsealed;
        }
        self.unsealed == self.capacity.grants
    }
}

/// Divides vectors of counts among grants: regions hold a number of items of each kind, as descriptor pools do.
///
/// Its units are grants: [`Usage::capacity`] is the maximum number of live grants.
///
/// # Complexity
/// Operations with a region or a key do not depend on the number of regions. A reset visits each grant with a key.
/// [`allocate`](Metadata::allocate) takes the lowest region with room. It skips 64 full regions in a step, and checks
/// the others in turn. Each check takes one step for each kind. Adding a region visits the existing ones.
///
/// ```
/// use sublet_engines::{Counted, CountedCapacity, Metadata};
/// let mut engine = Counted::new();
/// let region = engine.add_region(&CountedCapacity { grants: 4, counts: [4, 8] }).unwrap();
/// assert!(engine.allocate_in(region, &[1, 4]) && engine.allocate_in(region, &[1, 4]));
/// assert!(!engine.allocate_in(region, &[1, 4]), "there is none left of the second kind");
/// engine.reset(region);
/// assert!(engine.allocate_in(region, &[1, 4]));
/// ```
#[derive(Clone, Debug)]
pub struct Counted<C> {
    regions: Vec<CountedRegion<C>>,
    /// One bit for each region, set if it is open: C4.
    open: Vec<u64>,
    records: Vec<GrantRecord<C>>,
    /// The first dead record.
    dead: u32,
    generation: u32,
    grants: u64,
    capacity: u64,
}

impl<C: Counts> Default for Counted<C> {
    fn default() -> Self {
        Self::new()
    }
}

impl<C: Counts> Counted<C> {
    /// Creates an engine without regions. Allocates no host memory.
    #[must_use]
    pub fn new() -> Self {
        Self {
            regions: Vec::new(),
            open: Vec::new(),
            records: Vec::new(),
            dead: NONE,
            generation: first_generation(),
            grants: 0,
            capacity: 0,
        }
    }

    /// Returns true if a grant fits a region now. Returns false if the region is closed or does not exist.
    #[inline]
    #[must_use]
    pub fn fits(&self, region: RegionId, need: &C) -> bool {
        self.regions.get(index(region.0)).is_some_and(|slot| slot.is_open() && need.fits(&slot.room))
    }

    /// Makes a grant without a key in a region. Returns false, and changes nothing, if it does not fit. Resetting the
    /// region frees the grant, and so does [`Self::free_in`].
    #[inline]
    #[must_use = "it may not fit"]
    pub fn allocate_in(&mut self, region: RegionId, need: &C) -> bool {
        let Some(slot) = self.regions.get_mut(index(region.0)) else { return false };
        if !slot.is_open() || !need.fits(&slot.room) {
            return false;
        }
        slot.room.take(need);
        slot.room_grants -= 1;
        slot.unsealed -= 1;
        self.grants += 1;
        if slot.room_grants == 0 {
            self.close(region.0);
        }
        true
    }

    /// Frees one grant without a key. Returns true if the region is empty now. A closed region stays closed.
    ///
    /// # Errors
    /// [`BadGrant`] if the region has no grant without a key, or has not granted that many items.
    ///
    /// # Panics
    /// Panics if there is no such region.
    pub fn free_in(&mut self, region: RegionId, grant: &C) -> Result<bool, BadGrant> {
        let slot = self.region_mut(region);
        if slot.granted() == slot.keyed {
            return Err(BadGrant);
        }
        let mut granted = slot.capacity.counts;
        granted.take(&slot.room);
        if !grant.fits(&granted) {
            return Err(BadGrant);
        }
        granted.take(grant);
        if slot.granted() == 1 && granted != C::ZERO {
            return Err(BadGrant);
        }
        Ok(self.put(region, grant))
    }

    /// The capacity, the grants and the remaining room of a region.
    ///
    /// # Panics
    /// Panics if there is no such region.
    #[must_use]
    pub fn region_counts(&self, region: RegionId) -> CountedUsage<C> {
        let slot = self.region(region);
        CountedUsage {
            capacity: slot.capacity,
            grants: slot.granted(),
            room: CountedCapacity { grants: slot.unsealed, counts: slot.room },
            sealed: slot.sealed,
        }
    }

    /// The number of live grants of a region.
    ///
    /// # Panics
    /// Panics if there is no such region.
    #[must_use]
    pub fn region_grants(&self, region: RegionId) -> u32 {
        self.region(region).granted()
    }

    /// The number of live grants of all regions.
    #[must_use]
    pub fn grants(&self) -> u64 {
        self.grants
    }

    /// Clears the bit of a region that has no more grants: C4.
    #[cold]
    fn close(&mut self, region: u32) {
        self.open[index(region / 64)] &= !(1 << (region % 64));
    }

    /// Updates the bit of a region: C4.
    #[inline]
    fn heed_open(&mut self, region: RegionId) {
        let at = index(region.0);
        let bit = 1 << (region.0 % 64);
        if self.regions[at].is_open() { self.open[at / 64] |= bit } else { self.open[at / 64] &= !bit }
    }

    /// Puts a grant of a region back. Returns true if the region is empty now.
    fn put(&mut self, region: RegionId, counts: &C) -> bool {
        let is_empty = self.region_mut(region).put(counts);
        self.grants -= 1;
        self.heed_open(region);
        is_empty
    }

    /// The lowest region with room for a grant.
    #[inline]
    fn find(&self, need: &C) -> Option<RegionId> {
        for (at, &word) in (0..).zip(&self.open) {
            let mut left = word;
            while left != 0 {
                let region = RegionId(at * 64 + left.trailing_zeros());
                if need.fits(&self.regions[index(region.0)].room) {
                    return Some(region);
                }
                left &= left - 1;
            }
        }
        None
    }

    /// Returns true if one more record is possible.
    fn has_records(&self) -> bool {
        self.dead != NONE || widen(self.records.len()) < u64::from(NONE)
    }

    /// Inserts a record for a grant of a region.
    fn insert(&mut self, region: u32, counts: C, tag: Tag) -> Key {
        let next = self.regions[index(region)].first;
        self.generation = self.generation.wrapping_add(1);
        let generation = self.generation;
        let tag = Tag(tag.0 & Tag::MASK);
        let record = GrantRecord { counts, region, generation, tag, next, previous: NONE };
        let at = match self.dead {
            NONE => {
                self.records.push(record);
                narrow(self.records.len() - 1)
            }
            dead => {
                self.dead = self.records[index(dead)].next;
                self.records[index(dead)] = record;
                dead
            }
        };
        if next != NONE {
            self.records[index(next)].previous = at;
        }
        let slot = &mut self.regions[index(region)];
        slot.first = at;
        slot.keyed += 1;
        Self::key(at, generation)
    }

    /// The key contains the index plus one, so that no key is zero.
    fn key(at: u32, generation: u32) -> Key {
        let key = (u64::from(generation) << 32) | (u64::from(at) + 1);
        Key(NonZeroU64::new(key).unwrap_or(NonZeroU64::MIN))
    }

    /// The index of a live record.
    fn at(&self, key: Key) -> Result<u32, BadKey> {
        let key = key.0.get();
        let at =
            u32::try_from(key & u64::from(u32::MAX)).ok().and_then(|at| at.checked_sub(1)).ok_or(BadKey)?;
        let record = self.records.get(index(at)).ok_or(BadKey)?;
        let is_live = record.region != NONE && u64::from(record.generation) == key >> 32;
        if is_live { Ok(at) } else { Err(BadKey) }
    }

    /// Makes a record dead.
    fn bury(&mut self, at: u32) {
        let record = &mut self.records[index(at)];
        record.region = NONE;
        record.next = std::mem::replace(&mut self.dead, at);
    }

    fn region(&self, region: RegionId) -> &CountedRegion<C> {
        match self.regions.get(index(region.0)) {
            Some(slot) if slot.live => slot,
            _ => panic!("there is no region {}", region.0),
        }
    }

    fn region_mut(&mut self, region: RegionId) -> &mut CountedRegion<C> {
        match self.regions.get_mut(index(region.0)) {
            Some(slot) if slot.live => slot,
            _ => panic!("there is no region {}", region.0),
        }
    }

    fn usage_of(slot: &CountedRegion<C>) -> Usage {
        let granted = u64::from(slot.granted());
        Usage { capacity: slot.capacity.grants.into(), used_chunks: granted, used: granted, rounding: 0 }
    }
}

impl<C: Counts> Metadata for Counted<C> {
    type Capacity = CountedCapacity<C>;
    type Request = CountedRequest<C>;
    type Span = CountedSpan<C>;
    type Chunk = CountedChunk<C>;

    fn add_region(&mut self, capacity: &CountedCapacity<C>) -> Result<RegionId, RegionError> {
        if capacity.grants == 0 {
            return Err(RegionError::Capacity { capacity: 0, max: u32::MAX.into() });
        }
        let at = self.regions.iter().position(|slot| !slot.live).unwrap_or(self.regions.len());
        if widen(at) >= u64::from(u32::MAX) {
            return Err(RegionError::TooMany);
        }
        let region = CountedRegion {
            room: capacity.counts,
            room_grants: capacity.grants,
            unsealed: capacity.grants,
            capacity: *capacity,
            live: true,
            ..CountedRegion::VACANT
        };
        if at == self.regions.len() {
            self.regions.push(region);
            self.open.resize(self.regions.len().div_ceil(64), 0);
        } else {
            self.regions[at] = region;
        }
        self.capacity += u64::from(capacity.grants);
        let region = RegionId(narrow(at));
        self.heed_open(region);
        Ok(region)
    }

    fn remove_region(&mut self, region: RegionId) -> Result<(), NotEmpty> {
        let slot = self.region_mut(region);
        if slot.granted() != 0 {
            return Err(NotEmpty);
        }
        let grants = slot.capacity.grants;
        *slot = CountedRegion::VACANT;
        self.capacity -= u64::from(grants);
        self.heed_open(region);
        Ok(())
    }

    #[inline]
    fn allocate(&mut self, request: &CountedRequest<C>) -> Result<(Key, CountedSpan<C>), AllocateError> {
        let counts = request.counts;
        let region = self.find(&counts).ok_or(AllocateError::NoSpace)?;
        if !self.has_records() || !self.allocate_in(region, &counts) {
            return Err(AllocateError::NoSpace);
        }
        Ok((self.insert(region.0, counts, request.tag), CountedSpan { region, counts }))
    }

    fn free(&mut self, key: Key) -> Result<Freed<CountedSpan<C>>, BadKey> {
        let at = self.at(key)?;
        let GrantRecord { counts, region, next, previous, .. } = self.records[index(at)];
        if next != NONE {
            self.records[index(next)].previous = previous;
        }
        let slot = &mut self.regions[index(region)];
        slot.keyed -= 1;
        match previous {
            NONE => slot.first = next,
            previous => self.records[index(previous)].next = next,
        }
        self.bury(at);
        let span = CountedSpan { region: RegionId(region), counts };
        Ok(Freed { span, region_empty: self.put(span.region, &counts) })
    }

    /// Frees all grants, and reopens the region.
    fn reset(&mut self, region: RegionId) {
        let slot = self.region_mut(region);
        let (granted, mut at) = (slot.granted(), slot.first);
        slot.room = slot.capacity.counts;
        slot.room_grants = slot.capacity.grants;
        slot.unsealed = slot.capacity.grants;
        slot.sealed = false;
        slot.keyed = 0;
        slot.first = NONE;
        self.grants -= u64::from(granted);
        self.heed_open(region);
        while at != NONE {
            let next = self.records[index(at)].next;
            self.bury(at);
            at = next;
        }
    }

    fn seal(&mut self, region: RegionId) -> bool {
        let slot = self.region_mut(region);
        slot.sealed = true;
        slot.room_grants = 0;
        self.heed_open(region);
        true
    }

    fn span(&self, key: Key) -> Result<CountedSpan<C>, BadKey> {
        let record = &self.records[index(self.at(key)?)];
        Ok(CountedSpan { region: RegionId(record.region), counts: record.counts })
    }

    fn tag(&self, key: Key) -> Result<Tag, BadKey> {
        Ok(self.records[index(self.at(key)?)].tag)
    }

    fn region_usage(&self, region: RegionId) -> Usage {
        Self::usage_of(self.region(region))
    }

    fn usage(&self) -> Usage {
        Usage { capacity: self.capacity, used_chunks: self.grants, used: self.grants, rounding: 0 }
    }

    /// The room of the region with the most remaining grants. O(regions).
    fn largest_free(&self) -> CountedCapacity<C> {
        let room = |slot: &CountedRegion<C>| CountedCapacity { grants: slot.room_grants, counts: slot.room };
        let open = self.regions.iter().filter(|slot| slot.is_open());
        let most = open.max_by_key(|slot| slot.room_grants);
        most.map_or(CountedCapacity { grants: 0, counts: C::ZERO }, room)
    }

    /// Visits the grants with a key, the newest first.
    fn walk(&self, region: RegionId, visit: &mut dyn FnMut(CountedChunk<C>)) {
        let mut at = self.region(region).first;
        while at != NONE {
            let record = &self.records[index(at)];
            visit(CountedChunk {
                key: Self::key(at, record.generation),
                tag: record.tag,
                counts: record.counts,
            });
            at = record.next;
        }
    }

    fn validate(&self) {
        let (mut grants, mut capacity, mut chained) = (0, 0, 0);
        for (at, slot) in self.regions.iter().enumerate() {
            assert!(slot.room.fits(&slot.capacity.counts), "C1: region {at} has more room than capacity");
            assert!(slot.unsealed <= slot.capacity.grants, "C1: region {at} has room for too many grants");
            let open = if slot.sealed { 0 } else { slot.unsealed };
            assert_eq!(slot.room_grants, open, "C1: region {at} and its seal");
            assert!(
                slot.granted() != 0 || slot.room == slot.capacity.counts,
                "C2: region {at} is empty and not whole"
            );
            grants += u64::from(slot.granted());
            capacity += u64::from(slot.capacity.grants);
            let is_vacant = slot.capacity.grants == 0 && slot.capacity.counts == C::ZERO;
            assert!(slot.live || is_vacant, "C4: region {at}");
            assert_eq!(self.open[at / 64] >> (at % 64) & 1 == 1, slot.is_open(), "C4: region {at}");
            let (mut next, mut previous, mut keyed) = (slot.first, NONE, 0);
            while next != NONE {
                let record = &self.records[index(next)];
                assert_eq!((index(record.region), record.previous), (at, previous), "C5: record {next}");
                (previous, next, keyed) = (next, record.next, keyed + 1);
            }
            assert_eq!(keyed, slot.keyed, "C5: region {at}");
            assert!(keyed <= slot.granted(), "C5: region {at}");
            chained += index(keyed);
        }
        let mut next = self.dead;
        while next != NONE {
            assert_eq!(self.records[index(next)].region, NONE, "C5: record {next}");
            (next, chained) = (self.records[index(next)].next, chained + 1);
        }
        assert_eq!((grants, capacity), (self.grants, self.capacity), "C3");
        assert_eq!(chained, self.records.len(), "C5");
    }
}
