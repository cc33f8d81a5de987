//! Maintenance: a program that calls `Allocator::maintain` once per frame gets its blocks created and freed there.
//!
//! Before the first call, and for a program that stops calling, a free that leaves a surplus empty block frees it at
//! once. While a program calls it regularly, such blocks stay until they were unused for [`WINDOW`] calls.

use super::super::device_block::{DeviceBlock, DeviceContext};
use super::super::events::PendingEvents;
use super::super::growth::BlockGrowth;
use super::state::{Active, VectorBlock};
use super::{MemoryBlockVector, VectorRequest};
use crate::base::sync::atomic::Ordering;
use crate::device::TimeBudget;
use sublet_engines::cast::widen;
use sublet_engines::{Alignment, Metadata, RegionId, Strategy, Tag};

/// The calls whose growth predicts that of the next ones, and after which an unused block may be freed.
const WINDOW: usize = 32;
/// The free bytes should last for this many calls, so that vectors that run low together get their blocks in turn.
const CALLS_AHEAD: u64 = 3;

/// State of a vector that is maintained.
#[derive(Debug)]
pub(super) struct Upkeep {
    /// The number of calls; wraps.
    calls: u32,
    /// Bytes in use at the last call.
    used: u64,
    /// Bytes by which the last calls found the vector grown.
    growth: [u64; WINDOW],
    /// Bytes of blocks that may still become empty until the next call, initially those of all blocks. `None` after
    /// more became empty: the program does not call regularly, so frees release blocks at once until the next call.
    may_empty: Option<u64>,
}

/// The free bytes of a vector, and the bytes that it should have free.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockLack {
    room: u64,
    wanted: u64,
}

impl BlockLack {
    /// Returns true if this vector needs a block sooner than the other.
    pub(crate) fn is_worse_than(self, other: Self) -> bool {
        u128::from(self.room) * u128::from(other.wanted) < u128::from(other.room) * u128::from(self.wanted)
    }
}

/// The driver calls that would serve a vector.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MaintenanceWish {
    /// The vector needs another block.
    pub(crate) lack: Option<BlockLack>,
    /// Bytes of the empty block to free.
    pub(crate) idle: Option<u64>,
}

impl MemoryBlockVector {
    /// Measures the growth since the last call. Returns the driver calls that would serve the vector, or `None` if it
    /// needs none.
    pub(crate) fn observe(&self) -> Option<MaintenanceWish> {
        // A vector without memory needs none until it has grown.
        if !self.had_memory.load(Ordering::Relaxed) {
            return None;
        }
        let mut core = self.core.lock();
        let active = core.active.as_mut()?;
        active.observe();
        let idle = active.idle_block(|_| true).map(|(_, size)| size);
        let wish = MaintenanceWish { lack: active.lack(), idle };
        (wish.lack.is_some() || wish.idle.is_some()).then_some(wish)
    }

    /// Frees the largest block that was empty for a long time and that the time admits. Returns its bytes, and those of
    /// the next one.
    pub(crate) fn free_idle_block(
        &self,
        context: &DeviceContext,
        time: &mut TimeBudget,
    ) -> Option<(u64, Option<u64>)> {
        let (block, next, cost) = {
            let mut core = self.core.lock();
            let active = core.active.as_mut()?;
            let cost = context.cost_of(active.config.memory_type);
            let (region, size) = active.idle_block(|size| time.admits(cost.free(size)))?;
            let block = active.take_empty_block(region)?;
            (block, active.idle_block(|_| true).map(|(_, size)| size), cost.free(size))
        };
        let bytes = block.size;
        self.destroy_block(context, block);
        time.spend(cost);
        Some((bytes, next))
    }

    /// Creates the next block by one call of the driver, if the vector still needs one and the time admits it. Returns
    /// its bytes, or 0 if the driver refused it, and whether the vector needs another one; `None` without a call. After
    /// a refusal, the vector needs none until it has grown again.
    pub(crate) fn grow_ahead(
        &self,
        context: &DeviceContext,
        time: &mut TimeBudget,
    ) -> Option<(u64, Option<BlockLack>)> {
        let mut events = None;
        let mut unwanted = None;
        let grown = self.grow_ahead_in_turn(context, time, &mut events, &mut unwanted);
        if let Some((memory_type, events)) = events {
            events.emit(context, memory_type, || self.pool_name());
        }
        if let Some(block) = unwanted {
            block.destroy(context, || self.pool_name());
        }
        grown
    }

    /// [`Self::grow_ahead`] under the growth lock, without emitting events. The caller frees `unwanted`.
    fn grow_ahead_in_turn(
        &self,
        context: &DeviceContext,
        time: &mut TimeBudget,
        events: &mut Option<(u32, PendingEvents)>,
        unwanted: &mut Option<DeviceBlock>,
    ) -> Option<(u64, Option<BlockLack>)> {
        let _growth_lock = self.growth.lock();
        let dedicated = self.counted_dedicated();
        let (generation, growth) = {
            let mut core = self.core.lock();
            let generation = core.generation;
            let active = core.active.as_mut()?;
            active.lack()?;
            (generation, active.plan_ahead(dedicated)?)
        };
        let memory_type = growth.config.memory_type;
        // A single size, so that a driver that refuses is called once. Above the budget, none fits.
        let size = growth.foresee(context).ok()?;
        let cost = context.cost_of(memory_type).allocation(size);
        if !time.admits(cost) {
            return None;
        }
        time.spend(cost);
        let (_, events) = events.insert((memory_type, PendingEvents::default()));
        let block =
            DeviceBlock::allocate(context, &growth.config.block(size), false, growth.within_budget, events);
        let mut core = self.core.lock();
        *unwanted = match (block, core.use_of(generation)) {
            (Ok(block), Ok(active)) => {
                let bytes = block.size;
                match active.add_block(block) {
                    Ok(_) => return Some((bytes, active.lack())),
                    Err(block) => Some(block),
                }
            }
            (Ok(block), Err(_)) => Some(block),
            (Err(_), _) => None,
        };
        if let Some(upkeep) = core.active.as_mut().and_then(|active| active.upkeep.as_mut()) {
            upkeep.growth = [0; WINDOW];
        }
        Some((0, None))
    }
}

impl Upkeep {
    /// Growth that is expected until the next call. Only growth that happened twice counts, so that a level that was
    /// loaded at once does not cause further blocks.
    fn expected(&self) -> u64 {
        let (mut largest, mut second) = (0, 0);
        for &growth in &self.growth {
            second = second.max(growth.min(largest));
            largest = largest.max(growth);
        }
        second
    }
}

impl Active {
    /// Returns true if empty blocks wait for the next maintenance. Those that a defragmentation empties do not.
    pub(super) fn is_maintained(&self) -> bool {
        !self.is_compacted && self.upkeep.as_ref().is_some_and(|upkeep| upkeep.may_empty.is_some())
    }

    /// The number of calls of `maintain`, to mark when a block became empty.
    pub(super) fn maintained_calls(&self) -> u32 {
        self.upkeep.as_ref().map_or(0, |upkeep| upkeep.calls)
    }

    /// Counts a block that became empty.
    pub(super) fn count_emptied(&mut self, region: RegionId) {
        let bytes = self.block_mut(region).memory.size;
        if let Some(upkeep) = self.upkeep.as_mut() {
            upkeep.may_empty = upkeep.may_empty.and_then(|most| most.checked_sub(bytes));
        }
    }

    fn observe(&mut self) {
        let used = self.engine.usage().used;
        let upkeep = self.upkeep.get_or_insert_with(|| {
            Box::new(Upkeep { calls: 0, used: 0, growth: [0; WINDOW], may_empty: None })
        });
        upkeep.growth.rotate_right(1);
        upkeep.growth[0] = used.saturating_sub(upkeep.used);
        upkeep.used = used;
        upkeep.calls = upkeep.calls.wrapping_add(1);
        upkeep.may_empty = Some(self.block_bytes);
    }

    /// Bytes that should be free: at most a quarter of those in use, or the growth until the next call.
    fn wanted_room(&self) -> u64 {
        let Some(upkeep) = self.upkeep.as_ref() else { return 0 };
        let expected = upkeep.expected();
        expected.saturating_mul(CALLS_AHEAD).min(expected.max(upkeep.used / 4))
    }

    /// Bytes of all blocks without allocations.
    fn unused_bytes(&self) -> u64 {
        let unused = self.identified().filter(|&(region, _)| self.is_unused(region));
        unused.map(|(_, block)| block.memory.size).sum()
    }

    fn lack(&self) -> Option<BlockLack> {
        let wanted = self.wanted_room();
        if wanted == 0 || self.engine.largest_free() >= wanted {
            return None;
        }
        let room = self.engine.largest_free().max(self.unused_bytes());
        (room < wanted).then_some(BlockLack { room, wanted })
    }

    /// Plans a block of the usual size, or for the growth that is expected if that is more. `None` if the vector may
    /// have no more blocks.
    fn plan_ahead(&self, dedicated: u32) -> Option<BlockGrowth> {
        let expected = self.upkeep.as_ref()?.expected().min(self.config.block_size);
        let request = VectorRequest {
            size: expected,
            alignment: Alignment::ONE,
            tag: Tag(0),
            whole_pages: false,
            mapped: false,
            strategy: Strategy::Balanced,
            upper: false,
            never_allocate: false,
            within_budget: true,
        };
        self.plan_growth(&request, dedicated).ok()
    }

    /// The largest empty block of a wanted size that was unused in the whole window, if there are more blocks than a
    /// vector without maintenance would keep, and if the others have room for the expected growth.
    fn idle_block(&self, wants: impl Fn(u64) -> bool) -> Option<(RegionId, u64)> {
        let upkeep = self.upkeep.as_ref()?;
        if !self.has_surplus() {
            return None;
        }
        let (wanted, unused) = (self.wanted_room(), self.unused_bytes());
        let is_idle = |&(_, block): &(RegionId, &VectorBlock)| {
            let calls = upkeep.calls.wrapping_sub(block.empty_since);
            block.empty
                && wants(block.memory.size)
                && u64::from(calls) >= widen(WINDOW)
                && (wanted == 0 || unused - block.memory.size >= wanted)
        };
        let idle = self.identified().filter(is_idle).map(|(region, block)| (region, block.memory.size));
        idle.max_by_key(|&(region, size)| (size, region))
    }
}
