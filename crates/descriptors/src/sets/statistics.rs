//! Figures of persistent sets.

use super::bucket::SetShape;
use super::state::BucketState;
use crate::pool::DescriptorPool;
use crate::{DescriptorPoolState, DescriptorPoolView};
use sublet_engines::cast::narrow;

/// The state of [`PersistentSets`](super::PersistentSets). Units: pools; sets.
///
/// The sum of live, retired, ready, room and lost sets is the capacity.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct PersistentSetsStatistics {
    /// Buckets that have pools: one for each distinct combination of descriptor counts, with and without
    /// update-after-bind.
    pub buckets: u32,
    /// The number of `VkDescriptorPool`s.
    pub pools: u32,
    /// Pools that provide no sets, because the driver failed although there was room.
    pub sealed_pools: u32,
    /// Pools without live sets that are kept.
    pub idle_pools: u32,
    /// The capacity of all pools.
    pub capacity: u64,
    /// Sets that the program owns.
    pub live_sets: u64,
    /// Sets that wait for their tickets.
    pub retired_sets: u64,
    /// Free sets that serve the next request for the same layout.
    pub ready_sets: u64,
    /// Sets that the pools can still allocate.
    pub room: u64,
    /// Sets that were freed or never allocated, and that only a reset of their pool makes available again.
    pub lost: u64,
}

impl PersistentSetsStatistics {
    pub(super) fn add<S, P>(&mut self, state: &BucketState<S, P>) {
        let pools = narrow(state.pools().count());
        self.buckets += u32::from(pools != 0);
        self.pools += pools;
        let retired = state.retired();
        self.retired_sets += retired;
        self.live_sets += u64::from(state.live()) - retired;
        for pool in state.pools() {
            self.capacity += u64::from(pool.capacity);
            self.ready_sets += u64::from(pool.ready);
            self.sealed_pools += u32::from(pool.sealed);
            self.idle_pools += u32::from(pool.live == 0);
            if pool.sealed {
                self.lost += u64::from(pool.room) + u64::from(pool.lost);
            } else {
                self.room += u64::from(pool.room);
                self.lost += u64::from(pool.lost);
            }
        }
    }
}

impl BucketState<SetShape, DescriptorPool> {
    /// Calls `visit` for the pools of the bucket.
    pub(super) fn walk_pools(&self, visit: &mut dyn FnMut(DescriptorPoolView)) {
        let Some(shape) = self.shape else { return };
        for entry in self.pools() {
            let free_sets = if entry.sealed { 0 } else { entry.room + entry.ready };
            let state = match (entry.sealed, entry.live) {
                (true, _) => DescriptorPoolState::Sealed,
                (false, 0) => DescriptorPoolState::Idle,
                (false, _) => DescriptorPoolState::Open,
            };
            visit(DescriptorPoolView {
                handle: entry.pool.handle(),
                sets: entry.capacity,
                counts: *entry.pool.counts(),
                live_sets: entry.live,
                free_sets,
                left: shape.counts.times(free_sets),
                state,
            });
        }
    }
}
