//! How transient sets do.
#![forbid(unsafe_code)]

use super::TransientSets;
use crate::descriptor::{DescriptorPoolState, DescriptorPoolView};
use crate::metadata::CountedCapacity;

/// How [`TransientSets`] do, over their life.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct TransientSetsStatistics {
    /// Pools that there are.
    pub pools: usize,
    /// The most that there were at once.
    pub peak_pools: usize,
    /// Pools that were ever made. If it goes on rising while the work stays the same, `collect` is not called, or the
    /// clock is not told.
    pub pools_created: u64,
    /// Pools without sets, ready to be used.
    pub free_pools: usize,
    /// Pools that wait for the device.
    pub waiting_pools: usize,
    /// Sets that were ever allocated.
    pub sets_allocated: u64,
    /// Sets in pools that were not reset since.
    pub live_sets: u64,
    /// Pools that were closed because they had no room, or because the recording was over.
    pub sealed: u64,
    /// Sets that closed pools still had room for, added up.
    pub wasted_sets: u64,
    /// Descriptors that closed pools still had room for, added up.
    pub wasted_descriptors: u64,
    /// Calls of `vkResetDescriptorPool`.
    pub resets: u64,
    /// Times that a driver said that a pool is full which was not, by its counts.
    pub refusals: u64,
}

impl TransientSets {
    /// How they do. O(pools).
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

    /// Shows all pools: for debugging.
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
