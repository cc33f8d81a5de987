//! How a vector gets another block: of which size, and out of which memory.
#![forbid(unsafe_code)]

use super::device_block::{DeviceBlock, DeviceContext};
use super::events::PendingEvents;
use crate::device::DriverAllocation;
use crate::error::MemoryError;
use crate::pool::VectorConfig;
use crate::vector::policy::grown;

/// How often a managed block size may be halved below the preferred one.
const MAX_HALVINGS: u32 = 3;
/// Over the budget, blocks shrink down to this part of the preferred size, so that small allocations go on sharing
/// blocks instead of becoming one driver call each.
const LEAST_PART: u64 = 64;

/// A vector's wish for a block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Growth {
    pub(crate) config: VectorConfig,
    /// What has to fit, in bytes.
    pub(crate) needed: u64,
    /// Bytes of the largest block that there is.
    pub(crate) largest_block: u64,
    /// The first block is as large as any: one that is divided in order is not searched, and what does not fit its end
    /// needs another; and where none may follow, none that is larger can.
    pub(crate) full_sized: bool,
    pub(crate) within_budget: bool,
}

impl Growth {
    /// Asks the driver for a block, for a smaller one if it refuses, and so on.
    ///
    /// Managed sizes start small, unless the block is to be full-sized, and double while there is a block as large, or
    /// the request would fill more than half. So a fresh vector on a large heap gets 32, 64, 128 and then 256 MiB.
    pub(crate) fn allocate(
        &self,
        context: &DeviceContext,
        events: &mut PendingEvents,
    ) -> Result<DeviceBlock, MemoryError> {
        self.try_sizes(context, |size| self.ask(context, size, events))
    }

    /// Bytes of the block that [`Self::allocate`] would ask the driver for, if the books allow one.
    pub(crate) fn foresee(&self, context: &DeviceContext) -> Result<u64, MemoryError> {
        let heap = context.heap_of(self.config.memory_type);
        self.try_sizes(context, |size| context.budgets.check(heap, size, self.within_budget).map(|()| size))
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
        let smallest = (config.block_size >> MAX_HALVINGS).max(1);
        let first = if config.first_block_size == 0 { smallest } else { config.first_block_size };
        let first = if self.full_sized { config.block_size } else { first };
        let mut size = grown(first, config.block_size, self.needed, self.largest_block);
        context.budgets.refresh_if_stale(&context.device);
        let free = context.budgets.level(context.heap_of(config.memory_type)).free();
        let least = self.needed.max(config.block_size / LEAST_PART).min(size);
        while size > free && size / 2 >= least {
            size /= 2;
        }
        // Half of a block would be too small, and half of this one may stay unused: over the budget nobody else has
        // the use of it. A full-sized block may be the only one, for more than this request.
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

    /// Asks the driver for a block of `size` bytes.
    pub(crate) fn ask(
        &self,
        context: &DeviceContext,
        size: u64,
        events: &mut PendingEvents,
    ) -> Result<DeviceBlock, MemoryError> {
        let what = DriverAllocation {
            size,
            memory_type: self.config.memory_type,
            priority: Some(self.config.priority),
            device_address: true,
            dedicated_to: None,
            next: self.config.next.get(),
        };
        DeviceBlock::allocate(context, &what, false, self.within_budget, events)
    }
}
