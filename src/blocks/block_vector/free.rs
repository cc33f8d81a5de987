//! Freeing: allocations return to the vector, leased ranges to the core, and blocks to the driver.

use super::super::device_block::{DeviceBlock, DeviceContext, ReturnedBlock, unmap_memory};
use super::empties::FollowUp;
use super::shard::{LeasedRange, Shard};
use super::state::Active;
use super::{AllocationKey, Emptied, FOREIGN, MemoryBlockVector};
use crate::error::ForeignHandle;
use sublet_engines::Key;

impl MemoryBlockVector {
    /// Frees an allocation. May return an emptied block to the driver.
    #[inline(always)]
    pub(crate) fn free(
        &self,
        context: &DeviceContext,
        live: AllocationKey,
        mapped: bool,
    ) -> Result<(), ForeignHandle> {
        // Destructured, so that the fast path does not store it in memory.
        let AllocationKey { generation, key, dedicated, shard } = live;
        if u8::from(dedicated) | shard != 0 {
            return self.free_outside(context, key, generation, shard, dedicated);
        }
        let follow_up = {
            let mut core = self.core.lock();
            let active = core.use_of(generation)?;
            let (region, is_empty) = active.engine.take_back(key).ok_or(FOREIGN)?;
            if mapped {
                let block = active.block_mut(region);
                // Saturating: a program that unmaps once too often must not make the allocator panic.
                block.map_count = block.map_count.saturating_sub(1);
            }
            active.after_free(context, key, region, is_empty)
        };
        if let Some(follow_up) = follow_up {
            self.finish_free(context, follow_up);
        }
        Ok(())
    }

    #[cold]
    fn finish_free(&self, context: &DeviceContext, follow_up: FollowUp) {
        match follow_up {
            FollowUp::Block(block) => {
                self.destroy_block(context, block);
                // A large allocation lowers the bound when it is freed, possibly by the bytes of several empty blocks.
                while let Some(block) = self.take_surplus(context) {
                    self.destroy_block(context, block);
                }
            }
            FollowUp::OnlyLeases => self.give_idle_leases_back(context),
        }
    }

    /// Takes out an empty block beyond those that the bytes in use justify.
    fn take_surplus(&self, context: &DeviceContext) -> Option<DeviceBlock> {
        let mut core = self.core.lock();
        let active = core.active.as_mut()?;
        if active.follows_live() { active.take_surplus(context) } else { None }
    }

    /// Returns all leased ranges if no shard has an allocation: they would keep empty blocks alive.
    #[cold]
    fn give_idle_leases_back(&self, context: &DeviceContext) {
        if self.shards.are_idle() {
            self.reclaim(context);
        }
    }

    /// [`Self::free`] for an allocation outside the core.
    #[inline(never)]
    fn free_outside(
        &self,
        context: &DeviceContext,
        key: Key,
        generation: u32,
        shard: u8,
        dedicated: bool,
    ) -> Result<(), ForeignHandle> {
        if dedicated {
            return self.free_dedicated(context, key);
        }
        let live = AllocationKey { generation, key, dedicated, shard };
        let (room, is_own) = self.shards.with_ownership(shard).ok_or(FOREIGN)?;
        let has_emptied =
            if is_own { room.free_in_own_shard(live)? } else { room.free_in_other_shard(live)? };
        if has_emptied {
            self.give_surplus_back(context, &room.take_surplus(self.shards.is_attached(shard)));
        }
        Ok(())
    }

    /// Returns the leased ranges that a shard does not keep, and checks another shard for unused ranges.
    #[cold]
    pub(super) fn give_surplus_back(&self, context: &DeviceContext, surplus: &[LeasedRange]) {
        for lease in surplus {
            self.give_back(context, lease);
        }
        self.look_for_quiet_shard(context);
        // `has_only_leases` is false while only the blocks that stay anyway are left. So allocations that come and go
        // in them do not lease a range each time.
        if self.shards.are_idle() && self.has_only_leases() {
            self.reclaim(context);
        }
    }

    fn has_only_leases(&self) -> bool {
        self.core.lock().active.as_ref().is_some_and(Active::has_only_leases)
    }

    /// The shard of a live allocation, or `None` for the core.
    #[inline]
    pub(super) fn shard_of(&self, live: AllocationKey) -> Result<Option<&Shard>, ForeignHandle> {
        if live.shard == 0 {
            return Ok(None);
        }
        self.shards.get(live.shard).map(Some).ok_or(FOREIGN)
    }

    /// Returns an empty leased range to the core. Returns the number of bytes freed to the driver.
    pub(super) fn give_back(&self, context: &DeviceContext, lease: &LeasedRange) -> u64 {
        // A separate statement releases the lock before the driver call.
        let emptied = self.core.lock().take_back(context, lease);
        let Some(block) = emptied else { return 0 };
        let bytes = block.size;
        self.destroy_block(context, block);
        bytes
    }

    /// Takes empty leased ranges from one shard, if it was not used since the last check. Each call checks another
    /// shard. Ranges that an idle thread left behind return this way, at the price of an occasional check.
    pub(super) fn look_for_quiet_shard(&self, context: &DeviceContext) {
        let mut leases = Vec::new();
        if let Some(mut shard) = self.shards.next_to_look_at().and_then(Shard::try_lock) {
            if shard.is_quiet() {
                shard.take_empty(&mut leases);
            }
        }
        for lease in &leases {
            self.give_back(context, lease);
        }
    }

    /// Takes all empty leased ranges from all shards. Returns `None` if there were none, else the number of bytes freed
    /// to the driver.
    pub(crate) fn reclaim(&self, context: &DeviceContext) -> Option<u64> {
        let mut leases = Vec::new();
        self.shards.iter().for_each(|(_, shard)| shard.lock().take_empty(&mut leases));
        (!leases.is_empty()).then(|| leases.iter().map(|lease| self.give_back(context, lease)).sum())
    }

    #[cold]
    fn free_dedicated(&self, context: &DeviceContext, key: Key) -> Result<(), ForeignHandle> {
        // A separate statement: a guard in the scrutinee would be held across the driver call.
        let removed = self.dedicated.lock().remove(key);
        self.destroy_block(context, removed.map_err(|_| FOREIGN)?.block);
        Ok(())
    }

    /// Frees memory that was removed from the vector.
    #[cold]
    pub(super) fn destroy_block(&self, context: &DeviceContext, block: DeviceBlock) {
        // `trim` may be unmapping this block. No new unmapping of it can begin, so waiting once is enough, and others
        // may map while the driver frees.
        drop(self.mappings.lock());
        block.destroy(context, || self.pool_name());
    }

    /// Returns the memory type, and the number and bytes of the blocks that are empty and could be freed. Returns
    /// `None` if the vector is unused or `wants` rejects its memory type. Empty leased ranges return first. Includes
    /// reserved blocks if `reserved` is set.
    pub(crate) fn gather_empty(
        &self,
        reserved: bool,
        wants: impl FnOnce(u32) -> bool,
    ) -> Option<(u32, Emptied)> {
        let memory_type = self.config(None)?.memory_type;
        if !wants(memory_type) {
            return None;
        }
        let mut leases = Vec::new();
        self.shards.iter().for_each(|(_, shard)| shard.lock().take_empty(&mut leases));
        let mut core = self.core.lock();
        leases.iter().for_each(|lease| core.take_back_leased(lease));
        Some((memory_type, core.active.as_ref()?.empties(reserved)))
    }

    /// Frees empty blocks, and reserved ones if `reserved` is set, except the first ones of a pool. The caller emits
    /// the events after it has released its locks.
    pub(crate) fn return_empty(&self, context: &DeviceContext, reserved: bool) -> Vec<ReturnedBlock> {
        // A separate statement releases the lock before the driver call.
        let emptied = self.core.lock().active.as_mut().map_or_else(Vec::new, |active| {
            if reserved {
                active.end_reservations();
            }
            active.take_empty_blocks(0)
        });
        // See `destroy_block`.
        drop(self.mappings.lock());
        emptied.into_iter().map(|block| block.give_back(context)).collect()
    }

    /// Frees empty blocks and unmaps memory that has no users of its mapping. Returns the bytes freed.
    pub(crate) fn trim(&self, context: &DeviceContext) -> u64 {
        let reclaimed = self.reclaim(context).unwrap_or(0);
        let freed = self.give_empty_blocks_back(context, 0);
        self.unmap_idle(context);
        reclaimed + freed
    }

    /// Unmaps memory that has no users of its mapping.
    pub(crate) fn unmap_idle(&self, context: &DeviceContext) {
        let _mappings = self.mappings.lock();
        let unmapped = self.core.lock().active.as_mut().map(Active::take_idle_mappings);
        let dedicated = self.dedicated.lock().take_idle_mappings();
        unmapped.into_iter().flatten().chain(dedicated).for_each(|memory| unmap_memory(context, memory));
    }

    /// Frees empty blocks until `keep` of them, or the first blocks of a pool, are left. Returns the bytes freed.
    pub(super) fn give_empty_blocks_back(&self, context: &DeviceContext, keep: u32) -> u64 {
        // A separate statement releases the lock before the driver call.
        let emptied =
            self.core.lock().active.as_mut().map_or_else(Vec::new, |active| active.take_empty_blocks(keep));
        let bytes = emptied.iter().map(|block| block.size).sum();
        emptied.into_iter().for_each(|block| self.destroy_block(context, block));
        bytes
    }
}
