//! Giving memory back: allocations to the vector, loans to the core, blocks to the driver.
#![forbid(unsafe_code)]

use super::super::device_block::{DeviceBlock, DeviceContext, ReturnedBlock, unmap_memory};
use super::shard::{Loan, Shard};
use super::state::{Active, Aftermath};
use super::{BlockVector, Emptied, FOREIGN, Live};
use crate::error::ForeignHandle;
use crate::metadata::Key;

impl BlockVector {
    /// Takes an allocation back. A block that is empty now may go back to the driver.
    #[inline(always)]
    pub(crate) fn free(
        &self,
        context: &DeviceContext,
        live: Live,
        mapped: bool,
    ) -> Result<(), ForeignHandle> {
        // Part by part: as a whole it would be in memory for those who do not go there.
        let Live { generation, key, dedicated, shard } = live;
        if u8::from(dedicated) | shard != 0 {
            return self.free_outside(context, key, generation, shard, dedicated);
        }
        let aftermath = {
            let mut core = self.core.lock();
            let active = core.use_of(generation)?;
            let (region, is_empty) = active.engine.take_back(key).ok_or(FOREIGN)?;
            if mapped {
                let block = active.block_mut(region);
                // A program that unmapped once too often must not take the allocator down with it.
                block.map_count = block.map_count.saturating_sub(1);
            }
            active.after_free(context, key, region, is_empty)
        };
        if let Some(aftermath) = aftermath {
            self.finish_free(context, aftermath);
        }
        Ok(())
    }

    #[cold]
    fn finish_free(&self, context: &DeviceContext, aftermath: Aftermath) {
        match aftermath {
            Aftermath::Block(block) => self.destroy_block(context, block),
            Aftermath::OnlyLoans => self.give_idle_loans_back(context),
        }
    }

    /// If nothing is allocated in any shard, all loans come home: they would keep blocks alive in which there is
    /// nothing.
    #[cold]
    fn give_idle_loans_back(&self, context: &DeviceContext) {
        if self.shards.are_idle() {
            self.reclaim(context);
        }
    }

    /// [`Self::free`] of what the core has not granted.
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
        let live = Live { generation, key, dedicated, shard };
        let (room, is_home) = self.shards.with_home(shard).ok_or(FOREIGN)?;
        let has_emptied = if is_home { room.free_at_home(live)? } else { room.free_elsewhere(live)? };
        if has_emptied {
            self.give_surplus_back(context, &room.take_surplus(self.shards.is_settled(shard)));
        }
        Ok(())
    }

    /// Gives back the loans that a shard does not keep, and looks whether another has such.
    #[cold]
    pub(super) fn give_surplus_back(&self, context: &DeviceContext, surplus: &[Loan]) {
        for loan in surplus {
            self.give_back(context, loan);
        }
        self.look_for_quiet_shard(context);
        // One block stays anyway, and what comes and goes in that shall not fetch its loan each time.
        if self.shards.are_idle() && self.has_only_loans() {
            self.reclaim(context);
        }
    }

    fn has_only_loans(&self) -> bool {
        self.core.lock().active.as_ref().is_some_and(Active::has_only_loans)
    }

    /// The shard that a live allocation is in; `None`: the core.
    #[inline]
    pub(super) fn shard_of(&self, live: Live) -> Result<Option<&Shard>, ForeignHandle> {
        if live.shard == 0 {
            return Ok(None);
        }
        self.shards.get(live.shard).map(Some).ok_or(FOREIGN)
    }

    /// Gives the core a loan back in which nothing is allocated. Returns the bytes that the driver got back.
    pub(super) fn give_back(&self, context: &DeviceContext, loan: &Loan) -> u64 {
        // Bound first: the driver must not be called with the guard alive.
        let emptied = self.core.lock().take_back(context, loan);
        let Some(block) = emptied else { return 0 };
        let bytes = block.size;
        self.destroy_block(context, block);
        bytes
    }

    /// Takes empty loans from one shard, another each time, if nobody has used it since the last look. So what a thread
    /// leaves behind when it turns to something else comes back, at the price of one look now and then.
    pub(super) fn look_for_quiet_shard(&self, context: &DeviceContext) {
        let mut loans = Vec::new();
        if let Some(mut shard) = self.shards.next_to_look_at().and_then(Shard::try_lock) {
            if shard.is_quiet() {
                shard.take_empty(&mut loans);
            }
        }
        for loan in &loans {
            self.give_back(context, loan);
        }
    }

    /// Takes all empty loans from all shards. `None` if there were none, else the bytes that the driver got back.
    pub(super) fn reclaim(&self, context: &DeviceContext) -> Option<u64> {
        let mut loans = Vec::new();
        self.shards.iter().for_each(|(_, shard)| shard.lock().take_empty(&mut loans));
        (!loans.is_empty()).then(|| loans.iter().map(|loan| self.give_back(context, loan)).sum())
    }

    #[cold]
    fn free_dedicated(&self, context: &DeviceContext, key: Key) -> Result<(), ForeignHandle> {
        // Bound first: a guard in the scrutinee would be held across the driver's call.
        let removed = self.dedicated.lock().remove(key);
        self.destroy_block(context, removed.map_err(|_| FOREIGN)?.block);
        Ok(())
    }

    /// Gives back memory that was taken out of the books.
    #[cold]
    pub(super) fn destroy_block(&self, context: &DeviceContext, block: DeviceBlock) {
        // `trim` may be about to unmap it. It cannot begin to any more, so that waiting once is enough, and others may
        // map while the driver frees.
        drop(self.mappings.lock());
        block.destroy(context, || self.pool_name());
    }

    /// Memory type and number and bytes of the blocks that could go back because nothing is in them, if the vector is
    /// in use and of a memory type that is wanted. Loans in which nothing is allocated come home before.
    pub(crate) fn gather_empty(&self, wants: impl FnOnce(u32) -> bool) -> Option<(u32, Emptied)> {
        let memory_type = self.config(None)?.memory_type;
        if !wants(memory_type) {
            return None;
        }
        let mut loans = Vec::new();
        self.shards.iter().for_each(|(_, shard)| shard.lock().take_empty(&mut loans));
        let mut core = self.core.lock();
        loans.iter().for_each(|loan| core.take_home(loan));
        Some((memory_type, core.active.as_ref()?.empties()))
    }

    /// Gives empty blocks back, but for the first ones of a pool. They are to be told when no lock is held.
    pub(crate) fn return_empty(&self, context: &DeviceContext) -> Vec<ReturnedBlock> {
        // Bound first: the driver must not be called with the guard alive.
        let emptied =
            self.core.lock().active.as_mut().map_or_else(Vec::new, |active| active.take_empty_blocks(0));
        // See `destroy_block`.
        drop(self.mappings.lock());
        emptied.into_iter().map(|block| block.give_back(context)).collect()
    }

    /// Gives empty blocks back and unmaps what nobody has mapped. Returns the bytes given back.
    pub(crate) fn trim(&self, context: &DeviceContext) -> u64 {
        let reclaimed = self.reclaim(context).unwrap_or(0);
        let mappings = self.mappings.lock();
        let (emptied, unmapped) = {
            let mut core = self.core.lock();
            let Some(active) = core.active.as_mut() else {
                return reclaimed;
            };
            (active.take_empty_blocks(0), active.take_idle_mappings())
        };
        let dedicated = self.dedicated.lock().take_idle_mappings();
        unmapped.into_iter().chain(dedicated).for_each(|memory| unmap_memory(context, memory));
        drop(mappings);
        let bytes: u64 = emptied.iter().map(|block| block.size).sum();
        emptied.into_iter().for_each(|block| block.destroy(context, || self.pool_name()));
        reclaimed + bytes
    }

    /// Gives empty blocks back until `keep` of them, or the first blocks of a pool, are left. Returns the bytes given
    /// back.
    pub(super) fn give_empty_blocks_back(&self, context: &DeviceContext, keep: u32) -> u64 {
        // Bound first: the driver must not be called with the guard alive.
        let emptied =
            self.core.lock().active.as_mut().map_or_else(Vec::new, |active| active.take_empty_blocks(keep));
        let bytes = emptied.iter().map(|block| block.size).sum();
        emptied.into_iter().for_each(|block| self.destroy_block(context, block));
        bytes
    }
}
