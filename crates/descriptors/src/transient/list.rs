//! The pools of one kind and their states: open, waiting for the device, free. Makes no driver calls.
//!
//! ```text
//!              take            no room, or flush            its tickets are done          reset
//!   free ---------------> open ----------------> closed, waiting ---------------> ready ---------> free
//!                                                                                                   last in, first out
//! ```
//!
//! Invariants:
//! - T1: a pool is in one place: open (`current` or `second`), closed, waiting, ready or free.
//! - T2: a pool that is open, ready or free waits for no ticket, except an open one if pools are shared.
//! - T3: a free pool has no sets. A pool that is neither open nor free is `sealed`.
//! - T4: a waiting pool has as many `pending` tickets as entries in `retired`.
//! - T5: an open pool has sets: it is opened after its first set, and closed before it is reset.

use ash::vk;

use super::typical_counts::{Size, TypicalCounts};
use crate::DescriptorCounts;
use crate::pool::DescriptorPool;
use sublet::retire::{ClockView, MixedClocks, OtherClock, Retire, Ticket};
use sublet_engines::cast::index;
use sublet_engines::{Counted, CountedCapacity, Metadata, RegionId};

/// No pool.
pub(super) const NONE: RegionId = RegionId(u32::MAX);

#[derive(Debug)]
pub(super) struct TransientPool {
    pub(super) pool: DescriptorPool,
    /// The number of tickets that it waits for.
    pending: u32,
    /// The counts that were granted up to the last flush.
    flushed: Size,
    /// True if it was never reset, so a failure cannot come from an incomplete reset.
    pub(super) fresh: bool,
}

/// A pool that provides sets.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpenPool {
    pub(super) region: RegionId,
    pub(super) handle: vk::DescriptorPool,
}

const CLOSED: OpenPool = OpenPool { region: NONE, handle: vk::DescriptorPool::null() };

/// Totals for statistics.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct PoolSums {
    /// The number of sets in pools that were reset or destroyed.
    pub(super) recycled_sets: u64,
    pub(super) sealed: u64,
    pub(super) wasted_sets: u64,
    pub(super) wasted_descriptors: u64,
    pub(super) resets: u64,
}

#[derive(Debug)]
pub(super) struct List {
    pub(super) engine: Counted<DescriptorCounts>,
    pub(super) slots: Vec<Option<TransientPool>>,
    /// Tried first.
    pub(super) current: OpenPool,
    /// A pool that still had room when another one was opened. Tried when the current pool is full.
    pub(super) second: OpenPool,
    closed: Vec<RegionId>,
    retired: Retire<RegionId>,
    pub(super) ready: Vec<RegionId>,
    pub(super) free: Vec<RegionId>,
    /// The use of closed pools in this recording.
    used: Size,
    pub(super) typical: TypicalCounts,
    pub(super) sums: PoolSums,
    pub(super) len: usize,
}

impl TransientPool {
    /// Returns true if it waits for the device.
    pub(super) fn is_waiting(&self) -> bool {
        self.pending != 0
    }
}

impl List {
    pub(super) fn new(typical: TypicalCounts) -> Self {
        Self {
            engine: Counted::new(),
            slots: Vec::new(),
            current: CLOSED,
            second: CLOSED,
            closed: Vec::new(),
            retired: Retire::new(),
            ready: Vec::new(),
            free: Vec::new(),
            used: NOTHING,
            typical,
            sums: PoolSums { recycled_sets: 0, sealed: 0, wasted_sets: 0, wasted_descriptors: 0, resets: 0 },
            len: 0,
        }
    }

    /// Adds a new pool, which is in no place yet.
    pub(super) fn insert(&mut self, pool: DescriptorPool) -> RegionId {
        let capacity = CountedCapacity { grants: pool.max_sets(), counts: *pool.counts() };
        let added = self.engine.add_region(&capacity);
        let region =
            added.unwrap_or_else(|_| unreachable!("a pool has sets, and regions have numbers of 32 bits"));
        let at = index(region.0);
        if at == self.slots.len() {
            self.slots.push(None);
            // Reserves now, so that moving pools between places allocates nothing.
            let slots = self.slots.len();
            for places in [&mut self.closed, &mut self.ready, &mut self.free] {
                places.reserve(slots - places.len());
            }
        }
        self.slots[at] = Some(TransientPool { pool, pending: 0, flushed: NOTHING, fresh: true });
        self.len += 1;
        region
    }

    /// Removes a pool that is in no place. Its sets are dropped.
    pub(super) fn remove(&mut self, region: RegionId) -> Option<DescriptorPool> {
        let slot = self.slots.get_mut(index(region.0))?.take()?;
        self.sums.recycled_sets += u64::from(self.engine.region_grants(region));
        self.engine.reset(region);
        let removed = self.engine.remove_region(region);
        debug_assert!(removed.is_ok(), "it was reset");
        self.len -= 1;
        Some(slot.pool)
    }

    pub(super) fn slot(&self, region: RegionId) -> Option<&TransientPool> {
        self.slots.get(index(region.0))?.as_ref()
    }

    pub(super) fn slot_mut(&mut self, region: RegionId) -> Option<&mut TransientPool> {
        self.slots.get_mut(index(region.0))?.as_mut()
    }

    #[cfg(test)]
    fn is_open(&self, region: RegionId) -> bool {
        self.current.region == region || self.second.region == region
    }

    fn granted(&self, region: RegionId) -> Size {
        let usage = self.engine.region_counts(region);
        Size { grants: usage.grants, counts: usage.capacity.counts.minus(&usage.room.counts) }
    }

    /// Returns the counts that were granted since the last flush.
    fn granted_since(&self, region: RegionId) -> Size {
        let (now, then) = (self.granted(region), self.slot(region).map_or(NOTHING, |slot| slot.flushed));
        Size { grants: now.grants - then.grants, counts: now.counts.minus(&then.counts) }
    }

    /// Returns the use of this recording so far.
    pub(super) fn used(&self) -> Size {
        let mut used = self.used;
        for open in [self.current, self.second] {
            if open.region != NONE {
                add(&mut used, &self.granted_since(open.region));
            }
        }
        used
    }

    /// Takes the last free pool that has room for `need`. It is then in no place.
    pub(super) fn take_free(&mut self, need: &DescriptorCounts) -> Option<RegionId> {
        let at = self.free.iter().rposition(|&region| self.engine.fits(region, need))?;
        Some(self.free.remove(at))
    }

    /// Opens a pool that is in no place. Of the two open ones, the one with more sets left stays open.
    pub(super) fn open(&mut self, region: RegionId) {
        let Some(slot) = self.slot(region) else { return };
        let new = OpenPool { region, handle: slot.pool.handle() };
        let left = |open: OpenPool| match open.region {
            NONE => 0,
            region => self.engine.region_counts(region).room.grants,
        };
        let (mut kept, mut gone) = (self.current, self.second);
        if left(gone) > left(kept) {
            std::mem::swap(&mut kept, &mut gone);
        }
        let (kept_left, new_left) = (left(kept), left(new));
        self.current = new;
        self.second = CLOSED;
        self.close(gone.region);
        if kept_left == 0 {
            self.close(kept.region);
        } else if kept_left > new_left {
            (self.current, self.second) = (kept, new);
        } else {
            self.second = kept;
        }
    }

    /// Swaps the two open pools.
    pub(super) fn swap(&mut self) {
        std::mem::swap(&mut self.current, &mut self.second);
    }

    /// Closes an open pool.
    pub(super) fn shut(&mut self, region: RegionId) {
        if self.current.region == region {
            self.current = std::mem::replace(&mut self.second, CLOSED);
        } else if self.second.region == region {
            self.second = CLOSED;
        } else {
            return;
        }
        self.close(region);
    }

    /// Moves a pool that is no longer open to its place.
    fn close(&mut self, region: RegionId) {
        let Some(slot) = self.slot(region) else { return };
        let pending = slot.pending;
        let usage = self.engine.region_counts(region);
        self.sums.sealed += 1;
        self.sums.wasted_sets += u64::from(usage.room.grants);
        self.sums.wasted_descriptors += usage.room.counts.total();
        self.engine.seal(region);
        let since = self.granted_since(region);
        if since.grants != 0 {
            add(&mut self.used, &since);
            self.closed.push(region);
        } else if pending == 0 {
            self.ready.push(region);
        }
    }

    /// Assigns everything that was granted since the last flush to `ticket`. Closes the open pools, unless pools are
    /// shared.
    pub(super) fn flush(&mut self, ticket: Ticket, shared: bool) {
        let used = self.used();
        if used.grants == 0 {
            return;
        }
        self.typical.remember(&used);
        for open in [self.current, self.second] {
            if open.region == NONE || self.granted_since(open.region).grants == 0 {
                continue;
            }
            if shared {
                self.retire(open.region, ticket);
            } else {
                self.shut(open.region);
            }
        }
        // In closing order: the sizes of later pools were chosen with more data about the recording. These pools become
        // free last, and are used first.
        for at in 0..self.closed.len() {
            self.retire(self.closed[at], ticket);
        }
        self.closed.clear();
        self.used = NOTHING;
    }

    fn retire(&mut self, region: RegionId, ticket: Ticket) {
        let granted = self.granted(region);
        if let Some(slot) = self.slot_mut(region) {
            slot.pending += 1;
            slot.flushed = granted;
            self.retired.push(ticket, region);
        }
    }

    /// Checks that the pending tickets belong to the same clock as `ticket`.
    pub(super) fn check(&self, ticket: Ticket) -> Result<(), MixedClocks> {
        self.retired.check(ticket)
    }

    /// Moves the pools that the device is done with to `ready`. Returns an error if something waits for another clock.
    pub(super) fn collect(&mut self, clock: &ClockView) -> Option<OtherClock> {
        let Self { engine, slots, current, second, ready, retired, .. } = self;
        let collected = retired.collect(clock, |region| {
            let Some(slot) = slots.get_mut(index(region.0)).and_then(Option::as_mut) else { return };
            slot.pending = slot.pending.saturating_sub(1);
            let is_open = current.region == region || second.region == region;
            // A shared pool may have been closed with sets that are not flushed yet.
            let flushed = engine.region_grants(region) == slot.flushed.grants;
            if slot.pending == 0 && !is_open && flushed {
                ready.push(region);
            }
        });
        collected.err()
    }

    /// Frees a pool in no place, after the driver has reset it.
    pub(super) fn recycle(&mut self, region: RegionId) {
        self.sums.resets += 1;
        self.sums.recycled_sets += u64::from(self.engine.region_grants(region));
        self.engine.reset(region);
        if let Some(slot) = self.slot_mut(region) {
            slot.flushed = NOTHING;
            slot.fresh = false;
        }
        self.free.push(region);
    }

    /// Closes the open pools that provided no set since the last flush.
    pub(super) fn close_idle(&mut self) {
        for open in [self.current, self.second] {
            if open.region != NONE && self.granted_since(open.region).grants == 0 {
                self.shut(open.region);
            }
        }
    }

    /// Removes all pools in any state.
    pub(super) fn take_all(&mut self) -> impl Iterator<Item = DescriptorPool> {
        self.leave_places();
        (0..self.slots.len()).filter_map(|at| self.remove(RegionId(sublet_engines::cast::narrow(at))))
    }

    fn leave_places(&mut self) {
        self.retired.drain().for_each(drop);
        for places in [&mut self.closed, &mut self.ready, &mut self.free] {
            places.clear();
        }
        (self.current, self.second) = (CLOSED, CLOSED);
        self.used = NOTHING;
    }

    /// Returns true if neither a ticket nor the current recording uses the pool.
    pub(super) fn is_idle(&self, region: RegionId) -> bool {
        self.slot(region).is_some_and(|slot| slot.pending == 0) && self.granted_since(region).grants == 0
    }

    /// Returns the number of pools that wait for the device.
    pub(super) fn waiting(&self) -> usize {
        self.slots.iter().flatten().filter(|slot| slot.pending != 0).count()
    }

    pub(super) fn regions(&self) -> impl Iterator<Item = RegionId> + '_ {
        let live = self.slots.iter().enumerate().filter(|(_, slot)| slot.is_some());
        live.map(|(at, _)| RegionId(sublet_engines::cast::narrow(at)))
    }

    /// Asserts all invariants.
    #[cfg(test)]
    pub(super) fn validate(&self) {
        self.engine.validate();
        assert_eq!(self.regions().count(), self.len);
        for region in self.regions() {
            let Some(slot) = self.slot(region) else { continue };
            let count = |places: &[RegionId]| places.iter().filter(|&&it| it == region).count();
            let open = usize::from(self.is_open(region));
            let (closed, ready, free) = (count(&self.closed), count(&self.ready), count(&self.free));
            let waits = slot.pending != 0 && open + closed == 0;
            assert_eq!(open + closed + ready + free + usize::from(waits), 1, "T1: {region:?}");
            assert!(ready + free == 0 || slot.pending == 0, "T2: {region:?}");
            let usage = self.engine.region_counts(region);
            assert!(free == 0 || usage.grants == 0, "T3: {region:?}");
            assert_eq!(open + free == 0, usage.sealed, "T3: {region:?}");
            assert!(open == 0 || usage.grants != 0, "T5: {region:?}");
        }
        let pending: u32 = self.slots.iter().flatten().map(|slot| slot.pending).sum();
        assert_eq!(index(pending), self.retired.len(), "T4");
    }
}

pub(super) const NOTHING: Size = Size { grants: 0, counts: DescriptorCounts::new() };

fn add(sum: &mut Size, more: &Size) {
    sum.grants = sum.grants.saturating_add(more.grants);
    sum.counts.put(&more.counts);
}
