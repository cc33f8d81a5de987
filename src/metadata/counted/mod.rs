//! Regions that hold so many of each kind: descriptor pools, as their counts see them.
//!
//! There are no offsets: what a grant takes out of a region is a vector of counts and nothing else, and grants are
//! alike. So this engine does not implement [`Metadata`](super::Metadata), whose chunks lie at offsets of a range, have
//! a largest free one and a walk in order. The words are the same: regions are added and removed, grants are allocated
//! and freed, and a region is reset as a whole.
//!
//! Grants have no keys either. Who frees one says what was in it, and the engine refuses what cannot be true: more than
//! the region has granted.
//!
//! ```text
//!   capacity   |########################|   grants 64   kinds: 64, 128, 64
//!   granted    |######......            |          20          20,  60, 20
//!   room       |      ..................|          44          44,  68, 44
//!
//!   sealed: nothing more is allocated in it before it is reset, whatever room there is
//! ```
//!
//! Invariants:
//! - C1: the room of a region fits its capacity.
//! - C2: a region without grants has all of its capacity as room.
//! - C3: `grants` is the sum over the regions.
//! - C4: a vacant slot holds nothing, and `vacant` names each once.
#![forbid(unsafe_code)]

#[cfg(test)]
mod tests;

use std::fmt;

use super::{NotEmpty, RegionId};
use crate::base::cast::{index, narrow, widen};

/// So many of each kind.
///
/// Arrays are counts: `[u32; N]` has `N` kinds.
///
/// ```
/// use sublet::metadata::Counts;
/// let mut room = [3_u32, 1];
/// assert!([2, 1].fits(&room) && ![0, 2].fits(&room));
/// room.take(&[2, 1]);
/// assert_eq!(room, [1, 0]);
/// ```
pub trait Counts: Copy + PartialEq + fmt::Debug {
    /// None of any kind.
    const ZERO: Self;

    /// Whether all of this can be taken out of `room`.
    fn fits(&self, room: &Self) -> bool;

    /// Takes `counts` out. They fit: the engine has asked.
    fn take(&mut self, counts: &Self);

    /// Puts back what was taken.
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

/// What a region of [`Counted`] can hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CountedCapacity<C> {
    /// Grants at once.
    pub grants: u32,
    /// What is in all of them.
    pub counts: C,
}

/// How full a region of [`Counted`] is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CountedUsage<C> {
    /// What it can hold.
    pub capacity: CountedCapacity<C>,
    /// Live grants.
    pub grants: u32,
    /// What is left.
    pub room: CountedCapacity<C>,
    /// Nothing more is allocated in it before it is reset.
    pub sealed: bool,
}

/// A grant was given back that the region cannot have made. Nothing was changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BadGrant;

#[derive(Clone, Debug)]
struct Region<C> {
    room: C,
    /// Grants left; of a sealed region `room_grants` is zero and this is kept in `unsealed`.
    room_grants: u32,
    /// Grants left but for the seal.
    unsealed: u32,
    sealed: bool,
    capacity: CountedCapacity<C>,
    live: bool,
}

/// Divides vectors of counts among grants: regions that hold so many of each kind, as descriptor pools do.
///
/// Grants have no offsets and no keys: one is like the other, and who frees one says what was in it.
///
/// # Complexity
/// O(1) in the number of regions for everything with a region; [`allocate`](Self::allocate) looks at them in turn. Each
/// comparison costs one step for each kind.
///
/// ```
/// use sublet::metadata::{Counted, CountedCapacity};
/// let mut engine = Counted::new();
/// let region = engine.add_region(&CountedCapacity { grants: 4, counts: [4, 8] });
/// assert!(engine.allocate_in(region, &[1, 4]) && engine.allocate_in(region, &[1, 4]));
/// assert!(!engine.allocate_in(region, &[1, 4]), "there is none left of the second kind");
/// engine.reset(region);
/// assert!(engine.allocate_in(region, &[1, 4]));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Counted<C> {
    regions: Vec<Region<C>>,
    vacant: Vec<u32>,
    grants: u64,
}

impl<C: Counts> Counted<C> {
    /// No regions. Takes no memory.
    #[must_use]
    pub const fn new() -> Self {
        Self { regions: Vec::new(), vacant: Vec::new(), grants: 0 }
    }

    /// Adds an empty region. Slots of removed regions are used again, the last one first.
    ///
    /// # Panics
    /// If there are 2^32 regions.
    pub fn add_region(&mut self, capacity: &CountedCapacity<C>) -> RegionId {
        let region = Region {
            room: capacity.counts,
            room_grants: capacity.grants,
            unsealed: capacity.grants,
            sealed: false,
            capacity: *capacity,
            live: true,
        };
        if let Some(at) = self.vacant.pop() {
            self.regions[index(at)] = region;
            return RegionId(at);
        }
        assert!(widen(self.regions.len()) < u64::from(u32::MAX), "regions are numbered with 32 bits");
        let id = RegionId(narrow(self.regions.len()));
        self.regions.push(region);
        self.vacant.reserve(self.regions.len());
        id
    }

    /// Takes an empty region out.
    ///
    /// # Errors
    /// [`NotEmpty`] if it has grants.
    ///
    /// # Panics
    /// If there is no such region.
    pub fn remove_region(&mut self, region: RegionId) -> Result<(), NotEmpty> {
        let slot = self.region_mut(region);
        if slot.unsealed != slot.capacity.grants {
            return Err(NotEmpty);
        }
        let nothing = CountedCapacity { grants: 0, counts: C::ZERO };
        *slot = Region {
            room: C::ZERO,
            room_grants: 0,
            unsealed: 0,
            sealed: false,
            capacity: nothing,
            live: false,
        };
        self.vacant.push(region.0);
        Ok(())
    }

    /// Whether a grant fits a region now. Never, if it is sealed or there is no such region.
    #[inline]
    #[must_use]
    pub fn fits(&self, region: RegionId, need: &C) -> bool {
        self.regions.get(index(region.0)).is_some_and(|slot| slot.room_grants != 0 && need.fits(&slot.room))
    }

    /// Takes a grant out of a region; `false` and nothing changed, if it does not fit.
    #[inline]
    #[must_use = "it may not fit"]
    pub fn allocate_in(&mut self, region: RegionId, need: &C) -> bool {
        let Some(slot) = self.regions.get_mut(index(region.0)) else { return false };
        if slot.room_grants == 0 || !need.fits(&slot.room) {
            return false;
        }
        slot.room.take(need);
        slot.room_grants -= 1;
        slot.unsealed -= 1;
        self.grants += 1;
        true
    }

    /// Takes a grant out of the first region that it fits, in the order of their ids. O(regions).
    pub fn allocate(&mut self, need: &C) -> Option<RegionId> {
        let ids = (0..narrow(self.regions.len())).map(RegionId);
        ids.into_iter().find(|&region| self.allocate_in(region, need))
    }

    /// Takes one grant back. Returns whether the region is empty now. A sealed region stays sealed.
    ///
    /// # Errors
    /// [`BadGrant`] if the region has no grant, or has not granted that much.
    ///
    /// # Panics
    /// If there is no such region.
    pub fn free(&mut self, region: RegionId, grant: &C) -> Result<bool, BadGrant> {
        let slot = self.region_mut(region);
        if slot.unsealed == slot.capacity.grants {
            return Err(BadGrant);
        }
        let mut granted = slot.capacity.counts;
        granted.take(&slot.room);
        if !grant.fits(&granted) {
            return Err(BadGrant);
        }
        granted.take(grant);
        let last = slot.unsealed + 1 == slot.capacity.grants;
        if last && granted != C::ZERO {
            return Err(BadGrant);
        }
        slot.room.put(grant);
        slot.unsealed += 1;
        if !slot.sealed {
            slot.room_grants = slot.unsealed;
        }
        self.grants -= 1;
        Ok(last)
    }

    /// Nothing more is allocated in the region before it is reset.
    ///
    /// # Panics
    /// If there is no such region.
    ///
    /// ```
    /// use sublet::metadata::{Counted, CountedCapacity};
    /// let mut engine = Counted::new();
    /// let region = engine.add_region(&CountedCapacity { grants: 1, counts: [2] });
    /// engine.seal(region);
    /// assert!(!engine.fits(region, &[1]));
    /// ```
    pub fn seal(&mut self, region: RegionId) {
        let slot = self.region_mut(region);
        slot.sealed = true;
        slot.room_grants = 0;
    }

    /// Takes all grants of a region back, and the seal off.
    ///
    /// # Panics
    /// If there is no such region.
    pub fn reset(&mut self, region: RegionId) {
        let slot = self.region_mut(region);
        let granted = slot.capacity.grants - slot.unsealed;
        slot.room = slot.capacity.counts;
        slot.room_grants = slot.capacity.grants;
        slot.unsealed = slot.capacity.grants;
        slot.sealed = false;
        self.grants -= u64::from(granted);
    }

    /// How full a region is.
    ///
    /// # Panics
    /// If there is no such region.
    #[must_use]
    pub fn region_usage(&self, region: RegionId) -> CountedUsage<C> {
        let slot = self.region(region);
        CountedUsage {
            capacity: slot.capacity,
            grants: slot.capacity.grants - slot.unsealed,
            room: CountedCapacity { grants: slot.unsealed, counts: slot.room },
            sealed: slot.sealed,
        }
    }

    /// Live grants of a region.
    ///
    /// # Panics
    /// If there is no such region.
    #[must_use]
    pub fn region_grants(&self, region: RegionId) -> u32 {
        let slot = self.region(region);
        slot.capacity.grants - slot.unsealed
    }

    /// Live grants of all regions.
    #[must_use]
    pub fn grants(&self) -> u64 {
        self.grants
    }

    /// Checks every numbered invariant. O(regions), for tests and debugging.
    ///
    /// # Panics
    /// Names the invariant that is broken.
    pub fn validate(&self) {
        let mut grants = 0;
        let mut vacant = 0;
        for (at, slot) in self.regions.iter().enumerate() {
            assert!(slot.room.fits(&slot.capacity.counts), "C1: region {at} has more room than capacity");
            assert!(slot.unsealed <= slot.capacity.grants, "C1: region {at} has room for too many grants");
            let open = if slot.sealed { 0 } else { slot.unsealed };
            assert_eq!(slot.room_grants, open, "C1: region {at} and its seal");
            let granted = slot.capacity.grants - slot.unsealed;
            assert!(
                granted != 0 || slot.room == slot.capacity.counts,
                "C2: region {at} is empty and not whole"
            );
            grants += u64::from(granted);
            if !slot.live {
                vacant += 1;
                assert!(slot.capacity.grants == 0 && slot.capacity.counts == C::ZERO, "C4: region {at}");
                let named = self.vacant.iter().filter(|&&vacant| index(vacant) == at).count();
                assert_eq!(named, 1, "C4: region {at} is vacant");
            }
        }
        assert_eq!(grants, self.grants, "C3");
        assert_eq!(vacant, self.vacant.len(), "C4");
    }

    fn region(&self, region: RegionId) -> &Region<C> {
        match self.regions.get(index(region.0)) {
            Some(slot) if slot.live => slot,
            _ => panic!("there is no region {}", region.0),
        }
    }

    fn region_mut(&mut self, region: RegionId) -> &mut Region<C> {
        match self.regions.get_mut(index(region.0)) {
            Some(slot) if slot.live => slot,
            _ => panic!("there is no region {}", region.0),
        }
    }
}
