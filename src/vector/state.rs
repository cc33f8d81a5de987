//! The state of a vector: its blocks and grants. It creates and destroys no block. Blocks to be destroyed are passed to
//! the caller.
//!
//! Invariants, asserted by `validate` under these numbers:
//! - V1: each region of the engine has one block, and the sums are those of the blocks.
//! - V2: a block is empty exactly if nothing is granted in it. `live` is the sum over the blocks.
//! - V3: a closed block is not empty.
//! - V4: the engine's grants are exactly the live ones.
//! - V5: there are no more blocks than the maximum.
//!
//! The block source may panic in any call. So each change of the state is complete before the call, or is undone by a
//! guard.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};

use super::backing::{
    Backing, BlockInfo, GiveBackError, GrantOf, Granted, GrowthLimits, HandleError, Refusal, VectorError,
    VectorKey, VectorStatistics,
};
use super::policy::{NextBlock, Policy, first_to_go};
use crate::retire::{ClockView, OtherClock, Retire, Ticket};
use sublet_engines::cast::{index, narrow, widen};
use sublet_engines::{AllocateError, InRegion, Key, Metadata, RegionId};

/// A block with its counters.
#[derive(Debug)]
struct BlockSlot<K> {
    block: K,
    units: u64,
    live: u32,
    sealed: bool,
    own: bool,
    /// If it is empty: the number of collections before it became so.
    empty_since: u64,
}

/// The invariant that a region without a block breaks.
const HAS_BLOCK: &str = "V1: a region has a block";

/// The result of an attempt with the existing blocks.
pub(super) enum PlacementResult<G> {
    Granted(G),
    /// There is no room. `tried` blocks had room, but refused.
    NoRoom {
        tried: u32,
    },
}

/// Makes an item from a span.
pub(super) type Realize<'a, B, M> =
    &'a mut dyn FnMut(
        &mut <B as Backing<M>>::Block,
        &<M as Metadata>::Span,
    ) -> Result<<B as Backing<M>>::Item, Refusal<<B as Backing<M>>::Error>>;

/// See the [module](self).
pub(super) struct BlockVectorState<B: Backing<M>, M: Metadata> {
    id: u64,
    pub(super) engine: M,
    pub(super) policy: Policy,
    slots: Vec<Option<BlockSlot<B::Block>>>,
    sums: VectorStatistics,
    /// The number of empty blocks that were made for oversize requests.
    own_empty: u32,
    waiting: Retire<GrantOf<B, M>>,
    /// Grants whose tickets are done, and that are about to be freed.
    done: VecDeque<GrantOf<B, M>>,
    /// Calls of `collect`.
    collections: u64,
}

/// A grant of the engine without an item yet. Dropping it frees the grant.
struct Unrealized<'a, M: Metadata> {
    engine: &'a mut M,
    key: Key,
}

impl<M: Metadata> Drop for Unrealized<'_, M> {
    fn drop(&mut self) {
        let freed = self.engine.free(self.key);
        debug_assert!(freed.is_ok(), "it was granted just now");
    }
}

impl<B: Backing<M>, M: Metadata> BlockVectorState<B, M> {
    pub(super) fn new(engine: M, policy: Policy) -> Self {
        /// The number of vectors so far. A key contains the number of its vector.
        static VECTORS: AtomicU64 = AtomicU64::new(0);

        Self {
            id: VECTORS.fetch_add(1, Ordering::Relaxed),
            engine,
            policy,
            slots: Vec::new(),
            sums: VectorStatistics::default(),
            own_empty: 0,
            waiting: Retire::new(),
            done: VecDeque::new(),
            collections: 0,
        }
    }

    /// The vector's key for a key of the engine.
    fn key_of(&self, key: Key) -> VectorKey {
        VectorKey { vector: self.id, key }
    }

    fn slot(&self, region: RegionId) -> &BlockSlot<B::Block> {
        self.slots.get(index(region.0)).and_then(Option::as_ref).expect(HAS_BLOCK)
    }

    fn slot_mut(&mut self, region: RegionId) -> &mut BlockSlot<B::Block> {
        self.slots.get_mut(index(region.0)).and_then(Option::as_mut).expect(HAS_BLOCK)
    }

    /// Grants a request from an existing block. Adds blocks to be destroyed to `doomed`.
    pub(super) fn allocate(
        &mut self,
        request: &M::Request,
        realize: Realize<'_, B, M>,
        doomed: &mut Vec<B::Block>,
    ) -> Result<PlacementResult<GrantOf<B, M>>, VectorError<B::Error>> {
        let mut tried = 0;
        loop {
            // An engine that can close regions grants nothing in a closed one.
            let granted = if self.sums.sealed_blocks == 0 {
                self.engine.allocate(request)
            } else {
                let is_sealed = |region: RegionId| {
                    self.slots.get(index(region.0)).and_then(Option::as_ref).is_some_and(|slot| slot.sealed)
                };
                self.engine.allocate_outside(request, &is_sealed)
            };
            let (key, span) = match granted {
                Ok(granted) => granted,
                Err(AllocateError::NoSpace) => return Ok(PlacementResult::NoRoom { tried }),
                Err(error) => return Err(VectorError::Request(error)),
            };
            let region = span.region();
            let slot = self.slots.get_mut(index(region.0)).and_then(Option::as_mut).expect(HAS_BLOCK);
            let unrealized = Unrealized { engine: &mut self.engine, key };
            let refusal = match realize(&mut slot.block, &span) {
                Ok(item) => {
                    std::mem::forget(unrealized);
                    self.count(region);
                    return Ok(PlacementResult::Granted(Granted { key: self.key_of(key), span, item }));
                }
                Err(refusal) => refusal,
            };
            drop(unrealized);
            match refusal {
                Refusal::Failed(error) => return Err(VectorError::Realize(error)),
                Refusal::Exhausted => tried += 1,
            }
            if !self.seal(region) {
                // An empty block that refuses is useless.
                doomed.extend(self.take(region));
            }
        }
    }

    /// Counts a grant in a block.
    fn count(&mut self, region: RegionId) {
        let slot = self.slot_mut(region);
        slot.live += 1;
        if slot.live == 1 {
            let (units, own) = (slot.units, slot.own);
            self.count_empty(units, own, false);
        }
        self.sums.live += 1;
    }

    /// Counts a block that became empty, or is no longer empty.
    fn count_empty(&mut self, units: u64, own: bool, is_empty: bool) {
        let sums = &mut self.sums;
        if is_empty {
            sums.empty_blocks += 1;
            sums.empty_units += units;
            self.own_empty += u32::from(own);
        } else {
            sums.empty_blocks -= 1;
            sums.empty_units -= units;
            self.own_empty -= u32::from(own);
        }
    }

    /// Closes a block: nothing more is granted in it until it is empty. Returns false, and does nothing, if it is
    /// empty.
    fn seal(&mut self, region: RegionId) -> bool {
        let Some(slot) = self.slots.get_mut(index(region.0)).and_then(Option::as_mut) else { return false };
        if slot.live == 0 {
            return false;
        }
        if !std::mem::replace(&mut slot.sealed, true) {
            self.sums.sealed_blocks += 1;
            // For an engine that cannot close regions, `allocate` avoids the closed ones.
            let _ = self.engine.seal(region);
        }
        true
    }

    /// The numbers of empty usual blocks and of all usual blocks: those that were not made for an oversize request.
    fn usual(&self) -> (u32, u32) {
        (self.sums.empty_blocks - self.own_empty, self.sums.blocks - self.sums.own_blocks)
    }

    /// Plans a block for a request without room. Adds empty blocks that must be destroyed first to `doomed`.
    pub(super) fn plan(
        &mut self,
        backing: &B,
        request: Option<&M::Request>,
        doomed: &mut Vec<B::Block>,
    ) -> Result<NextBlock<M::Capacity>, VectorError<B::Error>> {
        let units = self.engine.usage().capacity;
        let usual = self.slots.iter().flatten().filter(|slot| !slot.own);
        let largest = usual.map(|slot| slot.units).max().unwrap_or(0);
        let limits = GrowthLimits { blocks: self.sums.blocks, units, largest };
        let next = backing.capacity_for(request, &limits).ok_or(VectorError::TooLarge)?;
        let full = VectorError::Full { blocks: self.sums.blocks, units };
        // No empty block has room for the request, so they may be destroyed to stay within the limits. Without a
        // request, the vector creates its first blocks, which all stay.
        let (mut blocks, mut left) = (self.sums.blocks, units);
        let mut gone = Vec::new();
        let may_go = request.map(|_| self.by_age(true).into_iter().chain(self.spare_by_age()));
        for region in may_go.into_iter().flatten() {
            if self.policy.allows(blocks, left, next.units) {
                break;
            }
            blocks -= 1;
            left -= self.slot(region).units;
            gone.push(region);
        }
        if !self.policy.allows(blocks, left, next.units) {
            return Err(full);
        }
        doomed.extend(gone.into_iter().filter_map(|region| self.take(region)));
        Ok(next)
    }

    /// Adds a block. Returns it if the engine rejects it.
    pub(super) fn adopt(
        &mut self,
        block: B::Block,
        next: &NextBlock<M::Capacity>,
    ) -> Result<RegionId, (B::Block, VectorError<B::Error>)> {
        let region = match self.engine.add_region(&next.capacity) {
            Ok(region) => region,
            Err(error) => return Err((block, VectorError::Region(error))),
        };
        let units = self.engine.region_usage(region).capacity;
        let at = index(region.0);
        if at >= self.slots.len() {
            self.slots.resize_with(at + 1, || None);
        }
        let slot =
            BlockSlot { block, units, live: 0, sealed: false, own: next.own, empty_since: self.collections };
        self.slots[at] = Some(slot);
        self.sums.blocks += 1;
        self.sums.own_blocks += u32::from(next.own);
        self.sums.created += 1;
        self.sums.peak_units = self.sums.peak_units.max(self.engine.usage().capacity);
        self.count_empty(units, next.own, true);
        Ok(region)
    }

    /// Removes an empty block.
    pub(super) fn take(&mut self, region: RegionId) -> Option<B::Block> {
        let place = self.slots.get_mut(index(region.0))?;
        let slot = place.take_if(|slot| slot.live == 0)?;
        let removed = self.engine.remove_region(region);
        debug_assert!(removed.is_ok(), "V2: nothing is granted in it");
        self.sums.blocks -= 1;
        self.sums.own_blocks -= u32::from(slot.own);
        self.count_empty(slot.units, slot.own, false);
        Some(slot.block)
    }

    /// The span of a live key of this vector.
    pub(super) fn span(&self, key: VectorKey) -> Result<M::Span, HandleError> {
        if key.vector != self.id {
            return Err(HandleError::Foreign);
        }
        self.engine.span(key.key).map_err(|_| HandleError::Stale)
    }

    pub(super) fn block(&self, key: VectorKey) -> Result<(&B::Block, M::Span), HandleError> {
        let span = self.span(key)?;
        Ok((&self.slot(span.region()).block, span))
    }

    pub(super) fn block_mut(&mut self, key: VectorKey) -> Result<(&mut B::Block, M::Span), HandleError> {
        let span = self.span(key)?;
        Ok((&mut self.slot_mut(span.region()).block, span))
    }

    /// Frees a grant. Adds blocks to be destroyed to `doomed`.
    pub(super) fn free(
        &mut self,
        backing: &B,
        granted: GrantOf<B, M>,
        doomed: &mut Vec<B::Block>,
    ) -> Result<(), GiveBackError<GrantOf<B, M>>> {
        if granted.key.vector != self.id {
            return Err(GiveBackError { reason: HandleError::Foreign, granted });
        }
        let Ok(freed) = self.engine.free(granted.key.key) else {
            return Err(GiveBackError { reason: HandleError::Stale, granted });
        };
        let region = freed.span.region();
        let slot = self.slot_mut(region);
        slot.live -= 1;
        let is_empty = slot.live == 0;
        self.sums.live -= 1;
        if is_empty {
            self.count_emptied(region);
        }
        backing.release(&mut self.slot_mut(region).block, &freed.span, granted.item);
        if is_empty {
            self.reset(backing, region, doomed);
        }
        Ok(())
    }

    /// Counts that a block became empty.
    fn count_emptied(&mut self, region: RegionId) {
        let since = self.collections;
        let slot = self.slot_mut(region);
        let (units, own) = (slot.units, slot.own);
        slot.empty_since = since;
        if std::mem::replace(&mut slot.sealed, false) {
            self.sums.sealed_blocks -= 1;
            self.engine.reset(region);
        }
        self.count_empty(units, own, true);
    }

    /// Resets a block that became empty, or removes it.
    fn reset(&mut self, backing: &B, region: RegionId, doomed: &mut Vec<B::Block>) {
        if !backing.reset(&mut self.slot_mut(region).block) {
            doomed.extend(self.take(region));
        }
        self.take_surplus(doomed);
    }

    /// Removes empty blocks beyond those to keep.
    fn take_surplus(&mut self, doomed: &mut Vec<B::Block>) {
        while self.policy.own_surplus(self.own_empty) > 0 {
            let Some(oldest) = self.by_age(true).into_iter().next() else { break };
            doomed.extend(self.take(oldest));
        }
        if self.policy.idle_collects != Some(0) {
            return;
        }
        loop {
            let (empty, blocks) = self.usual();
            let first = first_to_go(self.empty(false).map(|(id, slot)| (slot.units, id)), u64::MAX);
            match first {
                Some(first) if self.policy.surplus(empty, blocks) > 0 => doomed.extend(self.take(first)),
                _ => break,
            }
        }
    }

    /// Empty blocks: those of oversize requests, or the others.
    fn empty(&self, own: bool) -> impl Iterator<Item = (RegionId, &BlockSlot<B::Block>)> {
        let ids = (0..narrow(self.slots.len())).map(RegionId);
        let present = ids.zip(&self.slots).filter_map(|(id, slot)| Some((id, slot.as_ref()?)));
        present.filter(move |(_, slot)| slot.live == 0 && slot.own == own)
    }

    /// The same, longest empty first.
    fn by_age(&self, own: bool) -> Vec<RegionId> {
        let mut empty: Vec<_> = self.empty(own).map(|(id, slot)| (slot.empty_since, id)).collect();
        empty.sort_unstable();
        empty.into_iter().map(|(_, id)| id).collect()
    }

    /// The usual blocks that may be removed, longest empty first.
    fn spare_by_age(&self) -> Vec<RegionId> {
        let (empty, blocks) = self.usual();
        let mut spare = self.by_age(false);
        spare.truncate(index(self.policy.spare(empty, blocks)));
        spare
    }

    /// Removes all empty blocks, except for the minimum.
    pub(super) fn trim(&mut self) -> Vec<B::Block> {
        let all: Vec<_> = self.by_age(true).into_iter().chain(self.spare_by_age()).collect();
        all.into_iter().filter_map(|region| self.take(region)).collect()
    }

    /// Frees a grant when a ticket is done.
    pub(super) fn retire(
        &mut self,
        ticket: Ticket,
        granted: GrantOf<B, M>,
    ) -> Result<(), GiveBackError<GrantOf<B, M>>> {
        match self.span(granted.key) {
            Ok(_) => {
                self.waiting.push(ticket, granted);
                Ok(())
            }
            Err(reason) => Err(GiveBackError { reason, granted }),
        }
    }

    /// Frees grants whose tickets are done, and removes blocks that have been empty for long.
    pub(super) fn collect(
        &mut self,
        backing: &B,
        clock: &ClockView,
        doomed: &mut Vec<B::Block>,
    ) -> Result<usize, OtherClock> {
        self.collections += 1;
        // A panic in an earlier call may have left grants here.
        let before = self.done.len();
        let collected = self.waiting.collect(clock, |granted| self.done.push_back(granted));
        let collected = collected.map(|count| count + before);
        while let Some(granted) = self.done.pop_front() {
            // Only `clear` makes waiting grants stale, and it drops them.
            let freed = self.free(backing, granted, doomed);
            debug_assert!(freed.is_ok(), "what waits is live");
        }
        let (empty, blocks) = self.usual();
        let surplus = index(self.policy.surplus(empty, blocks));
        if surplus > 0 {
            let is_idle =
                |&region: &RegionId| self.policy.is_idle(self.slot(region).empty_since, self.collections);
            let idle: Vec<_> = self.by_age(false).into_iter().take(surplus).filter(is_idle).collect();
            doomed.extend(idle.into_iter().filter_map(|region| self.take(region)));
        }
        collected
    }

    /// Frees everything at once, without releasing items. Returns the number of grants.
    pub(super) fn clear(&mut self, backing: &B, doomed: &mut Vec<B::Block>) -> u64 {
        self.waiting.drain().for_each(drop);
        self.done.clear();
        let live = self.sums.live;
        for region in (0..narrow(self.slots.len())).map(RegionId) {
            let Some(slot) = self.slots[index(region.0)].as_mut() else { continue };
            if slot.live == 0 {
                continue;
            }
            self.sums.live -= u64::from(std::mem::take(&mut slot.live));
            // `count_emptied` resets only closed regions.
            self.engine.reset(region);
            self.count_emptied(region);
            self.reset(backing, region, doomed);
        }
        live
    }

    pub(super) fn statistics(&self) -> VectorStatistics {
        let usage = self.engine.usage();
        VectorStatistics {
            waiting: widen(self.waiting.len() + self.done.len()),
            units: usage.capacity,
            used_units: usage.used,
            ..self.sums
        }
    }

    pub(super) fn blocks(&self) -> impl Iterator<Item = (BlockInfo, &B::Block)> {
        (0..).zip(&self.slots).filter_map(|(id, slot)| {
            let BlockSlot { ref block, live, sealed, own, .. } = *slot.as_ref()?;
            Some((BlockInfo { region: RegionId(id), live, sealed, own }, block))
        })
    }

    pub(super) fn validate(&self) {
        self.engine.validate();
        let mut sums = VectorStatistics::default();
        let (mut own_empty, mut used) = (0, 0);
        for (id, slot) in (0..).zip(&self.slots) {
            let Some(slot) = slot else { continue };
            let usage = self.engine.region_usage(RegionId(id));
            assert_eq!(usage.capacity, slot.units, "V1: block {id}");
            assert_eq!(usage.used_chunks, u64::from(slot.live), "V4: block {id}");
            assert!(slot.live != 0 || !slot.sealed, "V3: block {id}");
            sums.blocks += 1;
            sums.own_blocks += u32::from(slot.own);
            sums.sealed_blocks += u32::from(slot.sealed);
            sums.live += u64::from(slot.live);
            sums.units += slot.units;
            used += usage.used;
            if slot.live == 0 {
                sums.empty_blocks += 1;
                sums.empty_units += slot.units;
                own_empty += u32::from(slot.own);
            }
        }
        let VectorStatistics { created, peak_units, waiting, .. } = self.statistics();
        assert_eq!(
            VectorStatistics { created, peak_units, waiting, used_units: used, ..sums },
            self.statistics(),
            "V1"
        );
        assert_eq!(own_empty, self.own_empty, "V1");
        assert!(sums.units <= peak_units && waiting <= sums.live, "V1");
        assert!(sums.blocks <= self.policy.max_blocks, "V5: {sums:?}");
    }
}
