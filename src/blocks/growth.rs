//! Growth of a vector: the size of a new block, and its allocation.

use super::device_block::{DeviceBlock, DeviceContext};
use super::events::PendingEvents;
use crate::error::MemoryError;
use crate::pool::{BlockSizing, VectorConfig};
use crate::vector::policy::{LiveGrowth, doubled, grown};

/// How often a managed block size may be halved below the preferred one.
const MAX_HALVINGS: u32 = 3;
/// Over the budget, blocks shrink to no less than this fraction of the preferred size. Small allocations then still
/// share blocks, instead of costing one driver call each.
const LEAST_PART: u64 = 64;
/// Blocks that follow the bytes in use exceed their cap once their number is the driver's limit of allocations, divided
/// by this. From then on, their number grows only with the logarithm of the bytes in use.
const PART_OF_ALLOCATIONS: u32 = 16;

/// Parameters of a new block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockGrowth {
    pub(crate) config: VectorConfig,
    /// Bytes that must fit.
    pub(crate) needed: u64,
    /// The number of existing blocks.
    pub(crate) block_count: u32,
    /// Bytes of the largest one.
    pub(crate) largest_block: u64,
    /// Bytes in use.
    pub(crate) live: u64,
    /// True if the block gets the full size at once. Linear algorithms need this, because a request that does not fit
    /// at the end needs another block. So does the last block that a limit allows, because no larger one can follow.
    pub(crate) full_sized: bool,
    pub(crate) within_budget: bool,
}

impl BlockGrowth {
    /// Allocates a block. If the driver refuses, tries smaller sizes.
    ///
    /// `full_sized` blocks have the block size. Others follow the bytes in use, the number of blocks, or VMA's rule.
    pub(crate) fn allocate(
        &self,
        context: &DeviceContext,
        events: &mut PendingEvents,
    ) -> Result<DeviceBlock, MemoryError> {
        self.try_sizes(context, |size| {
            let what = self.config.block(size);
            DeviceBlock::allocate(context, &what, false, self.within_budget, events)
        })
    }

    /// The size of the block that [`Self::allocate`] would request, if the limits allow one.
    pub(crate) fn foresee(&self, context: &DeviceContext) -> Result<u64, MemoryError> {
        let heap = context.heap_of(self.config.memory_type);
        self.try_sizes(context, |size| {
            context.budgets.check(heap, size, 1, self.within_budget).map(|()| size)
        })
    }

    fn try_sizes<R>(
        &self,
        context: &DeviceContext,
        mut attempt: impl FnMut(u64) -> Result<R, MemoryError>,
    ) -> Result<R, MemoryError> {
        let config = &self.config;
        if config.fixed_block_size {
            return attempt(config.block_size);
        }
        let eighth = (config.block_size >> MAX_HALVINGS).max(1);
        let (smallest, mut size) = match config.sizing {
            BlockSizing::Live(rule) => (rule.step(), self.followed(context, rule)),
            BlockSizing::Doubling { first } => {
                let next = doubled(first, config.block_size, self.block_count);
                // A larger request gets the next doubled size that holds it, and may fill that block.
                (eighth, grown(next, config.block_size, self.needed.div_ceil(2), 0))
            }
            BlockSizing::Vma => (eighth, grown(eighth, config.block_size, self.needed, self.largest_block)),
        };
        if self.full_sized {
            size = config.block_size;
        }
        context.budgets.refresh_if_stale(&context.device);
        let free = context.budgets.level(context.heap_of(config.memory_type)).free();
        let least = self.needed.max(config.block_size / LEAST_PART).min(size);
        while size > free && size / 2 >= least {
            size /= 2;
        }
        // Half of this size would be too small, so up to half of the block might stay unused. That is not acceptable
        // over the budget. A full-sized block may be the only one, so it serves later requests too.
        if size > free && !self.full_sized {
            size = least;
        }
        loop {
            match attempt(size) {
                Err(error) if error.is_shortage() && size / 2 >= smallest.max(self.needed) => size /= 2,
                answer => return answer,
            }
        }
    }

    /// The size of a block that follows the bytes in use.
    fn followed(&self, context: &DeviceContext, rule: LiveGrowth) -> u64 {
        let (_, most) = context.budgets.live_memory();
        let cap = rule.cap.max(self.live / u64::from(most / PART_OF_ALLOCATIONS).max(1));
        let size = LiveGrowth { cap, ..rule }.next(self.needed, self.live);
        // Near the driver's limit of allocations, each block has to hold much.
        let is_scarce = context.budgets.is_near_max_live_memory();
        let size = if is_scarce { size.max(self.config.block_size >> MAX_HALVINGS) } else { size };
        // No request exceeds the block size.
        size.min(self.config.block_size)
    }
}
