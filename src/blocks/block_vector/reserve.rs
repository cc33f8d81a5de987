//! Reserving: blocks that are created before they are needed, and stay until something was freed in them.

use super::super::budget::Budgets;
use super::super::device_block::{DeviceBlock, DeviceContext};
use super::super::events::PendingEvents;
use super::MemoryBlockVector;
use super::state::{Active, VectorBlock};
use crate::base::sync::atomic::Ordering;
use crate::engine::Algorithm;
use crate::error::{ForeignHandle, MemoryError, ReserveMemoryError};
use crate::pool::VectorConfig;
use sublet_engines::cast::{index, narrow};
use sublet_engines::{Metadata, RegionId};

/// A partial block is rounded up to a multiple of this.
const RESERVED_STEP: u64 = 1 << 20;

/// The blocks that a reservation has to create.
#[derive(Debug)]
struct Reservation {
    config: VectorConfig,
    /// Bytes of the blocks to create. All have the usual size, except the last one.
    bytes: u64,
    /// The empty blocks that the reservation kept from being freed.
    kept: Vec<RegionId>,
}

impl Reservation {
    fn sizes(&self) -> impl Iterator<Item = u64> {
        let usual = self.config.block_size;
        let mut left = self.bytes;
        std::iter::from_fn(move || {
            let size = usual.min(left);
            left -= size;
            (size > 0).then_some(size)
        })
    }
}

impl MemoryBlockVector {
    /// Creates blocks until unused ones have `bytes` in total. They stay until something was freed in them. Returns the
    /// bytes of the created blocks. A failure changes nothing.
    pub(crate) fn reserve(
        &self,
        context: &DeviceContext,
        generation: Option<u32>,
        bytes: u64,
    ) -> Result<u64, ReserveMemoryError> {
        // Not under the lock of the core: this may call the driver.
        context.budgets.refresh_if_stale(&context.device);
        let mut events = None;
        let mut unwanted = Vec::new();
        let reserved = self.reserve_in_turn(context, generation, bytes, &mut events, &mut unwanted);
        if let Some((memory_type, events)) = events {
            events.emit(context, memory_type, || self.pool_name());
        }
        unwanted.into_iter().for_each(|block| block.destroy(context, || self.pool_name()));
        reserved
    }

    /// The bytes that [`Self::reserve`] needs if all empty blocks are freed before, and the number of blocks.
    pub(crate) fn reserve_need(&self, bytes: u64) -> (u64, u32) {
        let core = self.core.lock();
        let Some(active) = core.active.as_ref() else { return (0, 0) };
        let reserved = active.identified().filter(|&(id, block)| block.reserved && active.is_unused(id));
        let missing = bytes.saturating_sub(reserved.map(|(_, block)| block.memory.size).sum());
        let missing = active.rounded_reservation(missing);
        (missing, u32::try_from(active.blocks_for(missing)).unwrap_or(u32::MAX))
    }

    /// [`Self::reserve`] under the growth lock, without emitting events. The caller frees `unwanted`.
    fn reserve_in_turn(
        &self,
        context: &DeviceContext,
        generation: Option<u32>,
        bytes: u64,
        events: &mut Option<(u32, PendingEvents)>,
        unwanted: &mut Vec<DeviceBlock>,
    ) -> Result<u64, ReserveMemoryError> {
        let _growth_lock = self.growth.lock();
        let dedicated = self.counted_dedicated();
        let (generation, planned) = {
            let mut core = self.core.lock();
            let generation = generation.unwrap_or(core.generation);
            let active = core.use_of(generation).map_err(|_| ForeignHandle::Pool)?;
            let heap = context.heap_of(active.config.memory_type);
            (generation, active.plan_reservation(&context.budgets, heap, bytes, dedicated)?)
        };
        let (_, events) = events.insert((planned.config.memory_type, PendingEvents::default()));
        let made = planned.sizes().try_for_each(|size| {
            let block = DeviceBlock::allocate(context, &planned.config.block(size), false, true, events)?;
            unwanted.push(block);
            Ok(())
        });
        let mut core = self.core.lock();
        let active = core.use_of(generation).map_err(|_| ForeignHandle::Pool)?;
        let added = made.and_then(|()| active.add_reserved(unwanted));
        if added.is_err() {
            planned.kept.iter().for_each(|&region| active.end_reservation(region));
        } else if planned.bytes > 0 {
            self.had_memory.store(true, Ordering::Relaxed);
        }
        Ok(added.map(|()| planned.bytes)?)
    }
}

impl Active {
    /// The blocks with their regions.
    pub(super) fn identified(&self) -> impl DoubleEndedIterator<Item = (RegionId, &VectorBlock)> {
        let ids = (0..narrow(self.blocks.len())).map(RegionId);
        ids.zip(&self.blocks).filter_map(|(id, block)| Some((id, block.as_ref()?)))
    }

    /// Returns true if nothing is allocated in the block.
    pub(super) fn is_unused(&self, region: RegionId) -> bool {
        let block = self.blocks.get(index(region.0)).and_then(Option::as_ref);
        block.is_some_and(|block| {
            block.empty || block.reserved && self.engine.region_usage(region).used_chunks == 0
        })
    }

    /// Ends the reservation of all unused blocks, so that they may be freed.
    pub(super) fn end_reservations(&mut self) {
        (0..narrow(self.blocks.len())).for_each(|id| self.end_reservation(RegionId(id)));
    }

    /// Ends the reservation of a block that is unused, so that it may be freed.
    fn end_reservation(&mut self, region: RegionId) {
        if self.block_of(region).is_some_and(|block| block.reserved) && self.is_unused(region) {
            let calls = self.maintained_calls();
            let block = self.block_mut(region);
            (block.reserved, block.empty, block.empty_since) = (false, true, calls);
            self.empty_blocks += 1;
            self.heeds_below = u64::MAX;
        }
    }

    /// Keeps an empty block from being freed.
    fn begin_reservation(&mut self, region: RegionId) {
        let block = self.block_mut(region);
        (block.reserved, block.empty) = (true, false);
        self.empty_blocks -= 1;
    }

    /// Rounds the missing bytes of a reservation up to the bytes of its new blocks.
    fn rounded_reservation(&self, missing: u64) -> u64 {
        let config = &self.config;
        // A smaller block would not have the capacity: the buddy engine halves, and fixed sizes are fixed.
        let is_exact = !config.fixed_block_size && config.algorithm == Algorithm::Tlsf;
        let step = if is_exact { RESERVED_STEP.min(config.block_size) } else { config.block_size };
        missing.checked_next_multiple_of(step).unwrap_or(missing)
    }

    /// The number of blocks with `bytes` in total.
    fn blocks_for(&self, bytes: u64) -> u64 {
        bytes.div_ceil(self.config.block_size.max(1))
    }

    /// Checks the limits of a reservation, and reserves the unused blocks that exist.
    fn plan_reservation(
        &mut self,
        budgets: &Budgets,
        heap: u32,
        bytes: u64,
        dedicated: u32,
    ) -> Result<Reservation, ReserveMemoryError> {
        let mut missing = bytes;
        let mut kept = Vec::new();
        for wants_reserved in [true, false] {
            for (id, block) in self.identified() {
                if missing > 0 && block.reserved == wants_reserved && self.is_unused(id) {
                    missing = missing.saturating_sub(block.memory.size);
                    kept.push(id);
                }
            }
        }
        let bytes = self.rounded_reservation(missing);
        let blocks = self.blocks_for(bytes);
        let counted = self.block_count.saturating_add(dedicated);
        let max_block_count = self.config.max_blocks;
        if blocks > 0 {
            let left = u64::from(max_block_count.saturating_sub(counted));
            // Blocks above the pool's own limit do not count here, so that this limit is reported.
            let possible = u32::try_from(blocks.min(left)).unwrap_or(u32::MAX);
            // All blocks together, so that a reservation that cannot succeed calls no driver.
            budgets.check(heap, bytes, possible, true)?;
            if blocks > left {
                return Err(ReserveMemoryError::TooManyBlocks {
                    bytes,
                    blocks,
                    block_count: counted,
                    max_block_count,
                });
            }
        }
        kept.retain(|&id| self.block_mut(id).empty);
        kept.iter().for_each(|&id| self.begin_reservation(id));
        Ok(Reservation { config: self.config, bytes, kept })
    }

    /// Adds new blocks that are reserved, all or none.
    fn add_reserved(&mut self, blocks: &mut Vec<DeviceBlock>) -> Result<(), MemoryError> {
        let limit = self.block_count;
        let mut added = Vec::new();
        while let Some(block) = blocks.pop() {
            match self.add_block(block) {
                Ok(region) => added.push(region),
                Err(block) => {
                    blocks.push(block);
                    blocks.extend(added.into_iter().filter_map(|region| self.take_empty_block(region)));
                    return Err(MemoryError::TooManyAllocations { limit });
                }
            }
        }
        added.into_iter().for_each(|region| self.begin_reservation(region));
        Ok(())
    }
}
