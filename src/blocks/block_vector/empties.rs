//! Empty blocks: how many stay after a free, and which go.

use super::super::device_block::{DeviceBlock, DeviceContext};
use super::Emptied;
use super::state::{Active, VectorBlock};
use crate::pool::BlockSizing;
use crate::vector::policy::{LiveGrowth, first_to_go, surplus};
use sublet_engines::cast::{index, narrow};
use sublet_engines::{Key, Metadata, RegionId};

/// A spare empty block is freed after this many frees in other blocks: the number of blocks, divided by this.
const BLOCKS_FOR_A_FREE: u32 = 2;

/// Work after a free, done once the core's lock is released.
#[derive(Debug)]
pub(super) enum FollowUp {
    /// A block to free.
    Block(DeviceBlock),
    /// The core holds only leased ranges. If those are empty too, they return, and all blocks but one are freed.
    OnlyLeases,
}

impl FollowUp {
    pub(super) fn block(self) -> Option<DeviceBlock> {
        match self {
            Self::Block(block) => Some(block),
            Self::OnlyLeases => None,
        }
    }
}

impl Active {
    /// Returns the work that remains after a free, if any.
    #[inline(always)]
    pub(super) fn after_free(
        &mut self,
        context: &DeviceContext,
        key: Key,
        region: RegionId,
        is_empty: bool,
    ) -> Option<FollowUp> {
        // Non-short-circuit, for one branch instead of two.
        let heeds = self.engine.usage().used < self.heeds_below;
        if is_empty | heeds { self.look_after(context, key, region, is_empty) } else { None }
    }

    #[cold]
    #[inline(never)]
    fn look_after(
        &mut self,
        context: &DeviceContext,
        key: Key,
        region: RegionId,
        is_empty: bool,
    ) -> Option<FollowUp> {
        if !self.annotations.is_empty() {
            self.annotations.remove(&key);
        }
        if is_empty { self.on_empty(context, region) } else { self.on_free() }
    }

    /// Decides whether a block that just became empty stays.
    fn on_empty(&mut self, context: &DeviceContext, region: RegionId) -> Option<FollowUp> {
        self.mark_empty(region);
        self.count_emptied(region);
        self.take_surplus(context).map(FollowUp::Block).or_else(|| self.idle())
    }

    /// Handles a free that left its block in use. It may free a spare empty block: small vectors at once, vectors with
    /// many blocks after several frees. A program that frees a whole level soon empties the next block.
    fn on_free(&mut self) -> Option<FollowUp> {
        self.frees_elsewhere = self.frees_elsewhere.saturating_add(1);
        if self.keeps_more_than_usual() {
            self.hysteresis.count_free(self.engine.usage().used_chunks);
        }
        let is_time = self.frees_elsewhere >= self.block_count / BLOCKS_FOR_A_FREE;
        let block = if is_time && self.has_spare() { self.return_first_to_go() } else { None };
        self.heeds_below = self.must_heed_below();
        block.map(FollowUp::Block).or_else(|| self.idle())
    }

    /// The least value of `heeds_below`.
    pub(super) fn must_heed_below(&self) -> u64 {
        match self.config.sizing {
            _ if !self.annotations.is_empty() || self.lease_count > 0 => u64::MAX,
            _ if !self.has_empty_to_free() => 0,
            BlockSizing::Live(rule) => rule.live_of_bound(self.block_bytes),
            BlockSizing::Vma | BlockSizing::Doubling { .. } => u64::MAX,
        }
    }

    /// Returns true if only leased ranges keep more blocks alive than stay anyway.
    pub(super) fn has_only_leases(&self) -> bool {
        let stays = self.config.min_blocks.max(1);
        self.lease_count > 0
            && self.block_count > stays
            && self.engine.usage().used_chunks == self.lease_count
    }

    fn idle(&self) -> Option<FollowUp> {
        self.has_only_leases().then_some(FollowUp::OnlyLeases)
    }

    pub(super) fn mark_empty(&mut self, region: RegionId) {
        let calls = self.maintained_calls();
        let block = self.block_mut(region);
        block.empty = true;
        block.empty_since = calls;
        block.reserved = false;
        // Mappings that were left open end with the last allocation.
        block.map_count = 0;
        self.empty_blocks += 1;
        self.heeds_below = u64::MAX;
        self.frees_elsewhere = 0;
    }

    /// The number of empty blocks to free if `kept` of them stay.
    fn surplus(&self, kept: u32) -> u32 {
        surplus(self.empty_blocks, self.block_count, kept, self.config.min_blocks)
    }

    /// Returns true if frees in other blocks may free an empty block, if enough of them follow.
    fn has_empty_to_free(&self) -> bool {
        let staying = self.config.empty_blocks_kept.saturating_sub(1);
        !self.is_maintained() && self.surplus(staying) > 0
    }

    /// The number of empty blocks that may stay while the heap is within its budget.
    fn empty_blocks_kept(&self) -> u32 {
        let has_others = self.config.keeps_only_last && self.block_count > 1;
        if has_others { 0 } else { self.config.empty_blocks_kept }
    }

    /// Returns true if there are more empty blocks than may stay.
    pub(super) fn has_surplus(&self) -> bool {
        let kept = self.empty_blocks_kept();
        self.surplus(kept) > 0 && !(kept > 0 && self.is_within_bound())
    }

    /// Returns true if frees in other blocks will free an empty block.
    pub(super) fn has_spare(&self) -> bool {
        self.has_empty_to_free() && !self.is_within_bound()
    }

    /// Returns true if the sizes of blocks follow the bytes in use.
    pub(super) fn follows_live(&self) -> bool {
        matches!(self.config.sizing, BlockSizing::Live(_))
    }

    /// Returns true if empty blocks stay because they are few bytes beside those in use.
    fn is_within_bound(&self) -> bool {
        match self.config.sizing {
            BlockSizing::Live(rule) => self.block_bytes <= self.bound(rule),
            BlockSizing::Vma | BlockSizing::Doubling { .. } => false,
        }
    }

    /// The bytes of all blocks beyond which empty ones are freed.
    fn bound(&self, rule: LiveGrowth) -> u64 {
        let live = self.engine.usage().used;
        // Maintenance delays the frees itself. Nothing would count them, so the kept bytes would stay for good.
        let kept = if self.is_maintained() { 0 } else { self.hysteresis.kept(live) };
        rule.bound(live).saturating_add(kept)
    }

    /// Returns true if empty blocks stay only because of the hysteresis. Annotations and leases bring every free here,
    /// and must not make these blocks leave sooner.
    fn keeps_more_than_usual(&self) -> bool {
        let BlockSizing::Live(rule) = self.config.sizing else { return false };
        self.has_empty_to_free() && self.block_bytes > rule.bound(self.engine.usage().used)
    }

    /// Takes out an empty block if there are more than are kept.
    pub(super) fn take_surplus(&mut self, context: &DeviceContext) -> Option<DeviceBlock> {
        let level = context.budgets.level(context.heap_of(self.config.memory_type));
        let is_over = level.usage >= level.budget;
        let has_surplus = if is_over { self.surplus(0) > 0 } else { self.has_surplus() };
        let waits = self.is_maintained() && !is_over;
        if !has_surplus || waits {
            return None;
        }
        // A block that the budget takes says nothing about how soon the vector needs one again.
        if is_over { self.take_first_to_go() } else { self.return_first_to_go() }
    }

    /// [`Self::take_first_to_go`], because too much is empty.
    fn return_first_to_go(&mut self) -> Option<DeviceBlock> {
        let block = self.take_first_to_go()?;
        self.hysteresis.count_returned(block.size);
        Some(block)
    }

    /// Takes out the smallest empty block that brings the vector back to its bound, else the largest.
    pub(super) fn take_first_to_go(&mut self) -> Option<DeviceBlock> {
        let excess = match self.config.sizing {
            BlockSizing::Live(rule) => self.block_bytes.saturating_sub(self.bound(rule)),
            BlockSizing::Vma | BlockSizing::Doubling { .. } => u64::MAX,
        };
        let size = |(id, block): (u32, &Option<VectorBlock>)| {
            let block = block.as_ref().filter(|block| block.empty)?;
            Some((block.memory.size, RegionId(id)))
        };
        // Starts at the newest blocks, which are the likeliest to be empty, and stops after the last empty one.
        let empty = (0..narrow(self.blocks.len())).rev().zip(self.blocks.iter().rev()).filter_map(size);
        let first = first_to_go(empty.take(index(self.empty_blocks)), excess)?;
        self.take_empty_block(first)
    }

    pub(super) fn take_empty_block(&mut self, region: RegionId) -> Option<DeviceBlock> {
        self.engine.remove_region(region).ok()?;
        let block = self.blocks[index(region.0)].take()?;
        self.block_count -= 1;
        self.block_bytes -= block.memory.size;
        self.empty_blocks -= 1;
        Some(block.memory)
    }

    /// The blocks that [`Self::take_empty_blocks`] would take with `keep` 0. With `reserved`, as if the reservations
    /// had ended.
    pub(super) fn empties(&self, reserved: bool) -> Emptied {
        let unused = |&(id, block): &(RegionId, &VectorBlock)| block.empty || reserved && self.is_unused(id);
        let count =
            if reserved { narrow(self.identified().filter(unused).count()) } else { self.empty_blocks };
        let most = surplus(count, self.block_count, 0, self.config.min_blocks);
        let empty = self.identified().rev().filter(unused);
        let bytes = empty.take(index(most)).map(|(_, block)| block.memory.size).sum();
        Emptied { blocks: u64::from(most), bytes }
    }

    /// Takes out empty blocks, newest first, until `keep` of them, or the minimum number of all blocks, are left.
    pub(super) fn take_empty_blocks(&mut self, keep: u32) -> Vec<DeviceBlock> {
        let mut taken = Vec::new();
        for id in (0..narrow(self.blocks.len())).rev() {
            if self.surplus(keep) == 0 {
                break;
            }
            if self.blocks[index(id)].as_ref().is_some_and(|block| block.empty) {
                taken.extend(self.take_empty_block(RegionId(id)));
            }
        }
        taken
    }
}
