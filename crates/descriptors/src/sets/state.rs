//! The state of one bucket: the sets of its pools, and the use of each set. Makes no driver calls.
//!
//! ```text
//!            vkAllocateDescriptorSets
//!   room  ------------------------------>  live  --- retire --->  retired
//!    ^                                     |  ^                      |
//!    |                              free   |  | the same layout      | collect
//!    |                                     v  | again                |
//!    +---- vkFreeDescriptorSets ---------  ready  <------------------+
//!    +---- vkResetDescriptorPool (all of a pool at once)
//! ```
//!
//! Invariants:
//! - B1: the capacity of each pool is `room + live + ready + lost`; `live` includes the retired sets.
//! - B2: the pool and the group of an occupied slot exist; their counts match the states of the slots.
//! - B3: the ready sets of a group are chained by pool, and `mask` contains the pools with non-empty chains.
//! - B4: `with_room`, `with_ready` and `idle` contain exactly the pools that have room, have ready sets, or have no
//!   live sets. A `sealed` pool is in none of them.
//! - B5: a closed (`sealed`) pool has no ready sets. A group has at least one set.
//! - B6: the generation of a slot never repeats: a slot is not reused once its generations are used up.

use ash::vk;

use super::mask::PoolMask;
use sublet_engines::cast::{index, narrow};

/// The end of a chain.
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SetState {
    /// No set.
    Vacant,
    /// The program owns it.
    Live,
    /// The program returned it, and the device may still use it.
    Retired,
    /// It is free, and serves the next request for the same layout.
    Ready,
}

#[derive(Clone, Copy, Debug)]
struct SetEntry {
    set: vk::DescriptorSet,
    generation: u32,
    pool: u32,
    group: u32,
    /// The next vacant slot, or the next ready set of the same group and pool.
    next: u32,
    state: SetState,
}

#[derive(Debug)]
pub(super) struct PoolEntry<P> {
    pub(super) pool: P,
    pub(super) capacity: u32,
    /// Sets that were not allocated from the driver yet.
    pub(super) room: u32,
    /// Live and retired sets.
    pub(super) live: u32,
    pub(super) ready: u32,
    /// Sets that were freed or never allocated, and that only a reset makes available again.
    pub(super) lost: u32,
    /// The driver failed although the pool had room: no set is taken from the pool until it is empty.
    pub(super) sealed: bool,
}

impl<P> PoolEntry<P> {
    /// Returns three flags for B4: the pool has room, has ready sets, has no live sets.
    #[inline]
    const fn offers(&self) -> (bool, bool, bool) {
        (!self.sealed && self.room != 0, self.ready != 0, !self.sealed && self.live == 0)
    }
}

/// The sets of one layout.
#[derive(Debug)]
struct LayoutGroup {
    layout: u64,
    handle: vk::DescriptorSetLayout,
    /// The number of live, retired and ready sets.
    sets: u32,
    /// The first ready set, indexed by pool. Pools beyond the end have none.
    heads: Vec<u32>,
    mask: PoolMask,
}

/// The source of the next set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum NextSet {
    /// A ready set of the layout in this pool.
    Ready(u32),
    /// The driver, from this pool.
    Room(u32),
    /// This pool contains only ready sets of other layouts: reset it.
    Reset(u32),
    /// Like `Reset`, but the pool must not be reset: destroy it.
    Replace(u32),
    /// Free a ready set of another layout in this pool.
    Evict(u32),
    /// No pool can provide a set: create one.
    Nowhere,
}

/// The capabilities of a bucket's pools.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ways {
    /// Single sets can be freed.
    pub(super) free: bool,
    /// Pools can be reset.
    pub(super) reset: bool,
}

/// The layout of a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct LayoutKey {
    pub(super) layout: u64,
    pub(super) handle: vk::DescriptorSetLayout,
}

/// See the module's documentation. `S` is the type of the common properties of the sets, `P` the type of a pool.
#[derive(Debug)]
pub(super) struct BucketState<S, P> {
    /// `None` while the bucket is unused.
    pub(super) shape: Option<S>,
    slots: Vec<SetEntry>,
    vacant: u32,
    pools: Vec<Option<PoolEntry<P>>>,
    groups: Vec<Option<LayoutGroup>>,
    /// Pairs of layout and group index, sorted by layout.
    by_layout: Vec<(u64, u32)>,
    with_room: PoolMask,
    with_ready: PoolMask,
    idle: PoolMask,
    live: u32,
    /// Room and ready sets of all pools that are not `sealed`.
    free: u64,
}

impl<S, P> Default for BucketState<S, P> {
    fn default() -> Self {
        Self {
            shape: None,
            slots: Vec::new(),
            vacant: NONE,
            pools: Vec::new(),
            groups: Vec::new(),
            by_layout: Vec::new(),
            with_room: PoolMask::default(),
            with_ready: PoolMask::default(),
            idle: PoolMask::default(),
            live: 0,
            free: 0,
        }
    }
}

impl<S, P> BucketState<S, P> {
    /// The number of live and retired sets.
    pub(super) fn live(&self) -> u32 {
        self.live
    }

    /// Returns true if there are no pools.
    pub(super) fn is_empty(&self) -> bool {
        self.pools.iter().all(Option::is_none)
    }

    pub(super) fn pool(&self, at: u32) -> Option<&PoolEntry<P>> {
        self.pools.get(index(at))?.as_ref()
    }

    pub(super) fn pool_mut(&mut self, at: u32) -> Option<&mut PoolEntry<P>> {
        self.pools.get_mut(index(at))?.as_mut()
    }

    pub(super) fn pools(&self) -> impl Iterator<Item = &PoolEntry<P>> {
        self.pools.iter().flatten()
    }

    /// Returns the lowest pool that has no live sets and is not `sealed`.
    pub(super) fn idle_pool(&self) -> Option<u32> {
        self.idle.first()
    }

    fn group_of(&self, layout: u64) -> Option<u32> {
        let at = self.by_layout.binary_search_by_key(&layout, |&(layout, _)| layout).ok()?;
        self.by_layout.get(at).map(|&(_, group)| group)
    }

    /// Returns the source of a set for the layout. Chooses the lowest pool, so that the highest pools become empty.
    /// Ready sets of other layouts are freed only if a pool would otherwise have to be created.
    ///
    /// O(log layouts + pools / 64).
    #[inline]
    pub(super) fn source(&self, wanted: LayoutKey, ways: Ways) -> NextSet {
        let group = self.group_of(wanted.layout).and_then(|at| self.groups.get(index(at))?.as_ref());
        match (group.and_then(|group| group.mask.first()), self.with_room.first()) {
            (Some(ready), Some(room)) if room < ready => NextSet::Room(room),
            (Some(ready), _) => NextSet::Ready(ready),
            (None, Some(room)) => NextSet::Room(room),
            (None, None) => match (self.idle.first(), self.with_ready.first()) {
                (Some(idle), _) if ways.reset => NextSet::Reset(idle),
                (_, Some(ready)) if ways.free => NextSet::Evict(ready),
                (Some(idle), _) => NextSet::Replace(idle),
                (None, _) => NextSet::Nowhere,
            },
        }
    }

    /// Changes the counts of a pool, and updates the masks (B4). Returns `None` if the pool does not exist.
    #[inline]
    fn count<R>(&mut self, at: u32, change: impl FnOnce(&mut PoolEntry<P>) -> R) -> Option<R> {
        let pool = self.pools.get_mut(index(at))?.as_mut()?;
        let before = pool.offers();
        let answer = change(pool);
        let after = pool.offers();
        if after != before {
            self.set_masks(at, after);
        }
        Some(answer)
    }

    fn set_masks(&mut self, at: u32, (has_room, has_ready, is_idle): (bool, bool, bool)) {
        self.with_room.set(at, has_room);
        self.with_ready.set(at, has_ready);
        self.idle.set(at, is_idle);
    }

    /// Adds a pool at the lowest vacant index.
    pub(super) fn add_pool(&mut self, pool: P, capacity: u32) -> u32 {
        let entry = PoolEntry { pool, capacity, room: capacity, live: 0, ready: 0, lost: 0, sealed: false };
        let offers = entry.offers();
        let at = self.pools.iter().position(Option::is_none).unwrap_or(self.pools.len());
        if at == self.pools.len() {
            self.pools.push(None);
        }
        self.pools[at] = Some(entry);
        self.free += u64::from(capacity);
        self.set_masks(narrow(at), offers);
        narrow(at)
    }

    /// Removes a pool; returns `None` if it has live sets.
    pub(super) fn remove_pool(&mut self, at: u32) -> Option<P> {
        if self.pool(at)?.live != 0 {
            return None;
        }
        self.drop_ready(at);
        let pool = self.pools[index(at)].take()?;
        if !pool.sealed {
            self.free -= u64::from(pool.room);
        }
        for mask in [&mut self.with_room, &mut self.with_ready, &mut self.idle] {
            mask.remove(at);
        }
        Some(pool.pool)
    }

    /// Removes all pools and all sets.
    pub(super) fn remove_all(&mut self) -> Vec<P> {
        let pools = std::mem::take(&mut self.pools);
        *self = Self { shape: self.shape.take(), ..Self::default() };
        pools.into_iter().flatten().map(|entry| entry.pool).collect()
    }

    /// Closes the pool: no set is taken from it until it is empty.
    pub(super) fn seal(&mut self, at: u32) {
        self.drop_ready(at);
        let room = self.count(at, |pool| match std::mem::replace(&mut pool.sealed, true) {
            true => 0,
            false => pool.room,
        });
        self.free -= u64::from(room.unwrap_or(0));
    }

    /// Records that the driver has reset the pool: its full capacity becomes room.
    pub(super) fn reset(&mut self, at: u32) {
        self.drop_ready(at);
        let gained = self.count(at, |pool| {
            debug_assert_eq!(pool.live, 0, "B1: a reset takes nobody's set");
            let before = if pool.sealed { 0 } else { pool.room };
            pool.sealed = false;
            pool.lost = 0;
            pool.room = pool.capacity;
            pool.capacity - before
        });
        self.free += u64::from(gained.unwrap_or(0));
    }

    /// Removes all ready sets of a pool.
    fn drop_ready(&mut self, at: u32) {
        if !self.with_ready.contains(at) {
            return;
        }
        let mut dropped = 0;
        for group in 0..narrow(self.groups.len()) {
            while let Some(slot) = self.pop_ready(group, at) {
                self.vacate(slot);
                self.leave_group(group);
                dropped += 1;
            }
        }
        let was_counted = self.count(at, |pool| {
            pool.ready -= dropped;
            pool.lost += dropped;
            !pool.sealed
        });
        if was_counted == Some(true) {
            self.free -= u64::from(dropped);
        }
    }

    /// Removes the first ready set of a group and a pool from its chain.
    #[inline]
    fn pop_ready(&mut self, group: u32, pool: u32) -> Option<u32> {
        let group = self.groups.get_mut(index(group))?.as_mut()?;
        let head = group.heads.get_mut(index(pool))?;
        if *head == NONE {
            return None;
        }
        let slot = *head;
        *head = self.slots[index(slot)].next;
        if *head == NONE {
            group.mask.remove(pool);
        }
        Some(slot)
    }

    /// Vacates a slot, with a generation that the slot has never used.
    fn vacate(&mut self, slot: u32) {
        let vacant = &mut self.slots[index(slot)];
        vacant.state = SetState::Vacant;
        vacant.set = vk::DescriptorSet::null();
        // B6: a slot without further generations is not reused.
        if vacant.generation != u32::MAX {
            vacant.next = self.vacant;
            self.vacant = slot;
        }
    }

    fn leave_group(&mut self, at: u32) {
        let Some(Some(group)) = self.groups.get_mut(index(at)) else { return };
        group.sets -= 1;
        if group.sets != 0 {
            return;
        }
        let layout = group.layout;
        self.groups[index(at)] = None;
        if let Ok(at) = self.by_layout.binary_search_by_key(&layout, |&(layout, _)| layout) {
            self.by_layout.remove(at);
        }
    }

    /// Returns true if there are enough slot numbers for `more` sets.
    pub(super) fn has_numbers_for(&self, more: u32) -> bool {
        self.slots.len().saturating_add(index(more)) < index(NONE)
    }

    /// Takes a ready set of the layout, for [`NextSet::Ready`].
    #[inline]
    pub(super) fn take_ready(&mut self, wanted: LayoutKey, at: u32) -> Option<u32> {
        let group = self.group_of(wanted.layout)?;
        let slot = self.pop_ready(group, at)?;
        self.slots[index(slot)].state = SetState::Live;
        self.count(at, |pool| {
            pool.ready -= 1;
            pool.live += 1;
        })?;
        self.live += 1;
        self.free -= 1;
        Some(slot)
    }

    /// Adds a live set that the driver allocated from the pool.
    pub(super) fn add_live(&mut self, wanted: LayoutKey, at: u32, set: vk::DescriptorSet) -> u32 {
        let group = self.join_group(wanted);
        let slot = self.new_slot(SetEntry {
            set,
            generation: 0,
            pool: at,
            group,
            next: NONE,
            state: SetState::Live,
        });
        self.count(at, |pool| {
            pool.room -= 1;
            pool.live += 1;
        });
        self.live += 1;
        self.free -= 1;
        slot
    }

    /// Returns a vacant slot with its current generation, or a new one.
    fn new_slot(&mut self, slot: SetEntry) -> u32 {
        let at = self.vacant;
        if at == NONE {
            self.slots.push(slot);
            return narrow(self.slots.len() - 1);
        }
        let vacant = &mut self.slots[index(at)];
        self.vacant = vacant.next;
        *vacant = SetEntry { generation: vacant.generation, ..slot };
        at
    }

    fn join_group(&mut self, wanted: LayoutKey) -> u32 {
        match self.by_layout.binary_search_by_key(&wanted.layout, |&(layout, _)| layout) {
            Ok(found) => {
                let (_, at) = self.by_layout[found];
                if let Some(Some(group)) = self.groups.get_mut(index(at)) {
                    group.sets += 1;
                }
                at
            }
            Err(place) => {
                let LayoutKey { layout, handle } = wanted;
                let group =
                    LayoutGroup { layout, handle, sets: 1, heads: Vec::new(), mask: PoolMask::default() };
                let at = self.groups.iter().position(Option::is_none).unwrap_or(self.groups.len());
                if at == self.groups.len() {
                    self.groups.push(None);
                }
                self.groups[at] = Some(group);
                self.by_layout.insert(place, (layout, narrow(at)));
                narrow(at)
            }
        }
    }

    /// Returns the set and the generation of an occupied slot.
    #[inline]
    pub(super) fn set_of(&self, slot: u32) -> (vk::DescriptorSet, u32) {
        let slot = &self.slots[index(slot)];
        (slot.set, slot.generation)
    }

    /// Returns the set of a slot if it is live and has this generation.
    #[inline]
    pub(super) fn live_set(&self, slot: u32, generation: u32) -> Option<vk::DescriptorSet> {
        let slot = self.slots.get(index(slot))?;
        (slot.state == SetState::Live && slot.generation == generation).then_some(slot.set)
    }

    /// Retires a live set and ends its generation. Returns the slot in which it waits.
    pub(super) fn retire(&mut self, slot: u32) -> u32 {
        let at = self.end_generation(slot);
        self.slots[index(at)].state = SetState::Retired;
        at
    }

    /// Ends the generation of a live slot. Returns the slot that holds the set afterwards: another one if that was the
    /// last generation (B6).
    #[inline]
    fn end_generation(&mut self, at: u32) -> u32 {
        let slot = &mut self.slots[index(at)];
        if let Some(next) = slot.generation.checked_add(1).filter(|&next| next != u32::MAX) {
            slot.generation = next;
            return at;
        }
        slot.generation = u32::MAX;
        let moved = SetEntry { generation: 0, ..*slot };
        self.vacate(at);
        self.new_slot(moved)
    }

    /// Releases a live or retired set. Returns its pool.
    #[inline]
    pub(super) fn release(&mut self, slot: u32) -> u32 {
        let at =
            if self.slots[index(slot)].state == SetState::Live { self.end_generation(slot) } else { slot };
        let SetEntry { pool: place, group, .. } = self.slots[index(at)];
        self.live -= 1;
        let was_sealed = self.count(place, |pool| {
            pool.live -= 1;
            *(if pool.sealed { &mut pool.lost } else { &mut pool.ready }) += 1;
            pool.sealed
        });
        match was_sealed {
            None => {}
            Some(true) => {
                self.vacate(at);
                self.leave_group(group);
            }
            Some(false) => {
                self.free += 1;
                self.push_ready(at, place, group);
            }
        }
        place
    }

    #[inline]
    fn push_ready(&mut self, at: u32, pool: u32, group: u32) {
        let Some(Some(group)) = self.groups.get_mut(index(group)) else { return };
        if index(pool) >= group.heads.len() {
            group.heads.resize(index(pool) + 1, NONE);
        }
        let head = &mut group.heads[index(pool)];
        let slot = &mut self.slots[index(at)];
        slot.state = SetState::Ready;
        slot.next = *head;
        *head = at;
        group.mask.insert(pool);
    }

    /// Returns the slot and the handle of a ready set in the pool, for [`NextSet::Evict`]. O(layouts).
    pub(super) fn evictable(&self, pool: u32) -> Option<(u32, vk::DescriptorSet)> {
        let group = self.groups.iter().flatten().find(|group| group.mask.contains(pool))?;
        let slot = *group.heads.get(index(pool))?;
        Some((slot, self.slots.get(index(slot))?.set))
    }

    /// Records that the set from [`Self::evictable`] was freed.
    pub(super) fn evict(&mut self, slot: u32) {
        let SetEntry { pool: at, group, .. } = self.slots[index(slot)];
        let popped = self.pop_ready(group, at);
        debug_assert_eq!(popped, Some(slot), "B3: the first of its chain");
        self.vacate(slot);
        self.leave_group(group);
        self.count(at, |pool| {
            pool.ready -= 1;
            pool.room += 1;
        });
    }

    /// Returns true if this empty pool need not be kept: the free sets of the other pools are at least a quarter of its
    /// capacity.
    pub(super) fn has_enough_without(&self, at: u32) -> bool {
        let Some(pool) = self.pool(at) else { return false };
        let own = if pool.sealed { 0 } else { u64::from(pool.room) + u64::from(pool.ready) };
        (self.free - own).saturating_mul(4) >= u64::from(pool.capacity)
    }

    /// Returns each layout with live or retired sets, its number of live sets, and its number of retired sets, in the
    /// order of the layouts' creation.
    pub(super) fn held(&self) -> Vec<(vk::DescriptorSetLayout, u32, u32)> {
        let mut held = Vec::new();
        for &(_, at) in &self.by_layout {
            let of = |state| {
                let slots = self.slots.iter().filter(|slot| slot.group == at && slot.state == state);
                narrow(slots.count())
            };
            if let Some(Some(group)) = self.groups.get(index(at)) {
                held.push((group.handle, of(SetState::Live), of(SetState::Retired)));
            }
        }
        held.retain(|&(_, live, retired)| live + retired != 0);
        held
    }

    /// Returns the number of retired sets. O(sets).
    pub(super) fn retired(&self) -> u64 {
        sublet_engines::cast::widen(self.slots.iter().filter(|slot| slot.state == SetState::Retired).count())
    }

    /// Asserts all invariants. O(sets).
    pub(super) fn validate(&self) {
        let sum = |of: fn(&PoolEntry<P>) -> u32| self.pools().map(|pool| u64::from(of(pool))).sum::<u64>();
        assert_eq!(sum(|pool| pool.live), u64::from(self.live), "B2: live sets");
        let open = self.pools().filter(|pool| !pool.sealed);
        let free: u64 = open.map(|pool| u64::from(pool.room) + u64::from(pool.ready)).sum();
        assert_eq!(free, self.free, "B4: free sets");
        for (at, pool) in (0..).zip(&self.pools) {
            let in_masks = [&self.with_room, &self.with_ready, &self.idle].map(|mask| mask.contains(at));
            let Some(pool) = pool else {
                assert_eq!(in_masks, [false; 3], "B4: no pool {at}");
                continue;
            };
            let count = |states: &[SetState]| {
                let slots = self.slots.iter().filter(|slot| slot.pool == at && states.contains(&slot.state));
                narrow(slots.count())
            };
            assert_eq!(pool.room + pool.live + pool.ready + pool.lost, pool.capacity, "B1: pool {at}");
            assert_eq!(pool.live, count(&[SetState::Live, SetState::Retired]), "B2: pool {at}");
            assert_eq!(pool.ready, count(&[SetState::Ready]), "B2: pool {at}");
            let should = [!pool.sealed && pool.room != 0, pool.ready != 0, !pool.sealed && pool.live == 0];
            assert_eq!(in_masks, should, "B4: pool {at}");
            assert!(!pool.sealed || pool.ready == 0, "B5: pool {at}");
        }
        self.validate_groups();
    }

    fn validate_groups(&self) {
        let mut seen = vec![false; self.slots.len()];
        let mut see = |slot: u32| {
            assert!(!std::mem::replace(&mut seen[index(slot)], true), "B3: slot {slot} is in two chains");
        };
        assert!(self.by_layout.is_sorted_by(|a, b| a.0 < b.0), "B2: layouts");
        assert_eq!(self.by_layout.len(), self.groups.iter().flatten().count(), "B2: layouts");
        for &(layout, at) in &self.by_layout {
            let Some(Some(group)) = self.groups.get(index(at)) else { panic!("B2: no group {at}") };
            assert_eq!(group.layout, layout, "B2: group {at}");
            let own = |slot: &&SetEntry| slot.group == at && slot.state != SetState::Vacant;
            assert_eq!(group.sets, narrow(self.slots.iter().filter(own).count()), "B2: group {at}");
            assert_ne!(group.sets, 0, "B5: group {at}");
            for (pool, &head) in (0..).zip(&group.heads) {
                assert_eq!(group.mask.contains(pool), head != NONE, "B3: group {at}, pool {pool}");
                let mut next = head;
                while next != NONE {
                    see(next);
                    let slot = &self.slots[index(next)];
                    assert_eq!((slot.state, slot.pool, slot.group), (SetState::Ready, pool, at), "B3");
                    next = slot.next;
                }
            }
        }
        let mut next = self.vacant;
        while next != NONE {
            see(next);
            let slot = &self.slots[index(next)];
            assert!(slot.state == SetState::Vacant && slot.generation != u32::MAX, "B6: slot {next}");
            next = slot.next;
        }
        for (slot, seen) in self.slots.iter().zip(&seen) {
            let chained = slot.state == SetState::Ready
                || (slot.state == SetState::Vacant && slot.generation != u32::MAX);
            assert_eq!(*seen, chained, "B3: {slot:?}");
        }
    }

    /// Sets the generation of a slot, for tests that cannot run through 2^32 of them.
    #[cfg(test)]
    pub(super) fn set_generation(&mut self, slot: u32, generation: u32) {
        self.slots[index(slot)].generation = generation;
    }
}
