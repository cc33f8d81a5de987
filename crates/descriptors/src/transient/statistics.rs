//! Figures of transient sets.

use super::TransientSets;
use crate::{DescriptorPoolState, DescriptorPoolView};
use sublet_engines::CountedCapacity;

/// The figures of [`TransientSets`] over their lifetime.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct TransientSetsStatistics {
    /// The current number of pools.
    pub pools: usize,
    /// The maximum number of pools so far.
    pub peak_pools: usize,
    /// The number of pools ever created. If it keeps rising under a constant load, `collect` is not called, or the
    /// clock does not learn of completed work.
    pub pools_created: u64,
    /// Pools without sets, ready for use.
    pub free_pools: usize,
    /// Pools that wait for the device.
    pub waiting_pools: usize,
    /// The number of sets ever allocated.
    pub sets_allocated: u64,
    /// Sets in pools that were not reset since.
    pub live_sets: u64,
    /// Pools that were closed because they were full, or because the recording ended.
    pub sealed: u64,
    /// The total number of sets that closed pools still had room for.
    pub wasted_sets: u64,
    /// The total number of descriptors that closed pools still had room for.
    pub wasted_descriptors: u64,
    /// Calls of `vkResetDescriptorPool`.
    pub resets: u64,
    /// The number of times that a driver reported a full pool although the counts left room.
    pub refusals: u64,
}

impl TransientSets {
    /// Returns the figures. O(pools).
    #[must_use]
    pub fn statistics(&self) -> TransientSetsStatistics {
        let mut sum = TransientSetsStatistics {
            pools: self.pools(),
            peak_pools: self.peak_pools,
            pools_created: self.pools_created,
            refusals: self.refusals,
            ..Default::default()
        };
        for list in &self.lists {
            sum.free_pools += list.free.len();
            sum.waiting_pools += list.waiting();
            sum.live_sets += list.engine.grants();
            sum.sets_allocated += list.engine.grants() + list.sums.recycled_sets;
            sum.sealed += list.sums.sealed;
            sum.wasted_sets += list.sums.wasted_sets;
            sum.wasted_descriptors += list.sums.wasted_descriptors;
            sum.resets += list.sums.resets;
        }
        sum
    }

    /// Calls `visit` for all pools, for debugging.
    ///
    /// # Complexity
    /// O(pools).
    pub fn walk_pools(&self, mut visit: impl FnMut(DescriptorPoolView)) {
        for list in &self.lists {
            for region in list.regions() {
                let Some(slot) = list.slot(region) else { continue };
                let usage = list.engine.region_counts(region);
                let is_open = [list.current.region, list.second.region].contains(&region);
                let state = if slot.is_waiting() {
                    DescriptorPoolState::Waiting
                } else if is_open {
                    DescriptorPoolState::Open
                } else if usage.grants == 0 {
                    DescriptorPoolState::Idle
                } else {
                    DescriptorPoolState::Sealed
                };
                let room = if usage.sealed { CountedCapacity::default() } else { usage.room };
                visit(DescriptorPoolView {
                    handle: slot.pool.handle(),
                    sets: slot.pool.max_sets(),
                    counts: *slot.pool.counts(),
                    live_sets: usage.grants,
                    free_sets: room.grants,
                    left: room.counts,
                    state,
                });
            }
        }
    }
}
