//! Allocation from a vector: from the core, a shard, a new block, or dedicated memory.

use super::super::dedicated::DedicatedAllocation;
use super::super::device_block::{DeviceBlock, DeviceContext};
use super::super::events::{PendingEvents, emit_above_limit};
use super::state::VectorCore;
use super::{AllocationKey, Annotation, Grant, MemoryBlockVector};
use crate::base::sync::atomic::Ordering;
use crate::device::DriverAllocation;
use crate::error::{AllocationError, Contradiction};
use crate::pool::VectorConfig;
use sublet_engines::Alignment;
use sublet_engines::{Request, Strategy, Tag};

/// A request to a vector: the fields for an engine, and the limits that the vector observes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct VectorRequest {
    pub(crate) size: u64,
    pub(crate) alignment: Alignment,
    pub(crate) tag: Tag,
    /// The resource may be optimal. It gets whole granularity pages, so that no linear resource shares a page with it.
    pub(crate) whole_pages: bool,
    /// The allocation stays mapped for its whole life.
    pub(crate) mapped: bool,
    pub(crate) strategy: Strategy,
    pub(crate) upper: bool,
    pub(crate) never_allocate: bool,
    pub(crate) within_budget: bool,
}

impl VectorRequest {
    /// Size and alignment of the request to an engine. Sizes that would overflow stay as they are; they fit nowhere.
    #[inline(always)]
    pub(super) fn placed(&self, granularity: Alignment, min_alignment: Alignment) -> (u64, Alignment) {
        let (mut size, mut alignment) = (self.size, self.alignment.max(min_alignment));
        if granularity > Alignment::ONE && self.whole_pages {
            size = granularity.align_up(size).unwrap_or(size);
            alignment = alignment.max(granularity);
        }
        (size, alignment)
    }

    /// The request to an engine.
    #[inline]
    pub(super) fn of_engine(&self, granularity: Alignment, min_alignment: Alignment) -> Request {
        let Self { strategy, upper, tag, .. } = *self;
        let (size, alignment) = self.placed(granularity, min_alignment);
        Request { size, alignment, strategy, upper, tag }
    }
}

/// The places that an allocation from a vector may use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum BlockSearch {
    /// Existing blocks. The shards of other threads keep their ranges.
    Existing,
    /// Existing blocks, then empty ranges of all shards, then a new block, then a place in any shard.
    All,
    /// As [`Self::All`], after existing blocks were tried.
    Rest,
}

impl MemoryBlockVector {
    /// Assigns a shard to the calling thread, if this vector leases ranges. Returns true if it does.
    pub(crate) fn attach(&self) -> bool {
        let leases_ranges = self.core.lock().leasing().is_some();
        leases_ranges && self.shards.attach() != 0
    }

    /// The fast path: allocates from the calling thread's shard, or from the core if no other thread holds the lock,
    /// with the balanced strategy from below. The caller maps the block if `mapped` is set. On `None`, the caller
    /// continues with [`Self::allocate_without_growth`].
    #[inline(always)]
    pub(crate) fn try_allocate(&self, request: VectorRequest) -> Option<Grant> {
        let home = self.shards.home();
        if home != 0 {
            // A copy, so that the request for the core is not stored in memory.
            let copied = request;
            return self.shards.get(home)?.try_allocate(&copied, home);
        }
        let mut guard = self.core.try_lock()?;
        let core: &mut VectorCore = &mut guard;
        let generation = core.generation;
        let active = core.active.as_mut()?;
        let VectorConfig { granularity, min_alignment, .. } = active.config;
        let (size, alignment) = request.placed(granularity, min_alignment);
        let (key, region, offset) = active.engine.try_allocate(size, alignment, request.tag)?;
        core.uses = core.uses.wrapping_add(1);
        Some(active.granted(key, region, offset, request.mapped, generation))
    }

    /// Allocates from an existing block. `None` changes nothing.
    #[inline(never)]
    pub(crate) fn allocate_without_growth(
        &self,
        context: &DeviceContext,
        request: &VectorRequest,
    ) -> Option<Grant> {
        let home = self.shards.home();
        let grant = if home == 0 {
            match self.core.try_lock() {
                Some(mut core) => core.allocate(request).ok()??,
                // Another thread holds the core: wait for it, or move to a shard if that happens often.
                None => {
                    let mut core = self.core.lock();
                    if core.count_contention()
                        && core.leasing().is_some_and(|leasing| leasing.serves(request))
                    {
                        drop(core);
                        self.allocate_in_shard(context, self.shards.attach(), request)?
                    } else {
                        core.allocate(request).ok()??
                    }
                }
            }
        } else {
            self.allocate_in_shard(context, home, request)?
        };
        self.map_granted(context, grant, request).ok()
    }

    /// Allocates from a shard.
    #[inline]
    fn allocate_in_shard(&self, context: &DeviceContext, home: u8, request: &VectorRequest) -> Option<Grant> {
        let shard = self.shards.get(home)?;
        if shard.begins_to_look_around() && self.goes_back(context, home) {
            return self.core.lock().allocate(request).ok()?;
        }
        let mut surplus = Vec::new();
        let granted = {
            let mut state = shard.lock();
            let granted = state.allocate(request, home, false);
            if state.has_surplus() {
                state.take_surplus(&mut surplus);
            }
            granted
        };
        if !surplus.is_empty() {
            self.give_surplus_back(context, &surplus);
        }
        granted.or_else(|| self.allocate_in_new_lease(context, home, request))
    }

    /// Moves the calling thread back to the core if no other shard was used since the last check: the core is faster
    /// for one thread. All threads move, because threads that have ended cannot do so themselves.
    #[cold]
    fn goes_back(&self, context: &DeviceContext, home: u8) -> bool {
        // Read before the checks: a thread that gets a shard in between keeps it.
        let attached = self.shards.attached();
        let others = self.shards.iter().filter(|&(number, _)| number != home);
        // No short circuit: each check starts a new period for its shard.
        let is_alone = others.fold(true, |alone, (_, shard)| shard.was_left_alone() & alone);
        if is_alone {
            self.shards.detach(attached);
            self.reclaim(context);
        }
        is_alone
    }

    /// Leases another range for a shard and allocates from it. A request that shards do not serve goes to the core.
    #[cold]
    fn allocate_in_new_lease(
        &self,
        context: &DeviceContext,
        home: u8,
        request: &VectorRequest,
    ) -> Option<Grant> {
        let leasing = {
            let mut core = self.core.lock();
            match core.leasing().filter(|leasing| leasing.serves(request)) {
                Some(leasing) => leasing,
                None => return core.allocate(request).ok()?,
            }
        };
        self.look_for_quiet_shard(context);
        let shard = self.shards.get(home)?;
        let mut sizes = shard.lock().next_leases(&leasing, request);
        let lease = {
            let mut core = self.core.lock();
            // A small range is better than one allocation from the core: the thread will likely allocate again, and
            // each visit to the core delays the threads that use it.
            match sizes.find_map(|size| core.lease_range(size)) {
                Some(lease) => lease,
                None => return core.allocate(request).ok()?,
            }
        };
        match shard.add_lease(&leasing, lease) {
            // Surplus ranges are returned later.
            Ok(()) => shard.lock().allocate(request, home, true),
            Err(lease) => {
                self.give_back(context, &lease);
                None
            }
        }
    }

    /// Allocates from the places that `search` admits. With [`BlockSearch::Existing`], the request is one that may not
    /// grow the vector.
    pub(crate) fn allocate(
        &self,
        context: &DeviceContext,
        request: &VectorRequest,
        search: BlockSearch,
    ) -> Result<Grant, AllocationError> {
        let home = self.shards.home();
        let mut granted = None;
        if home != 0 && search != BlockSearch::Rest {
            granted = self.allocate_in_shard(context, home, request);
        }
        if granted.is_none() {
            granted = self.core.lock().allocate(request)?;
        }
        let takes_from_shards = search != BlockSearch::Existing;
        if granted.is_none() && takes_from_shards && self.reclaim(context).is_some() {
            granted = self.core.lock().allocate(request)?;
        }
        let answer = match granted {
            Some(grant) => self.map_granted(context, grant, request),
            None => self.grow(context, request),
        };
        let error = match answer {
            Err(error) if error.is_shortage() && takes_from_shards => error,
            answer => return answer,
        };
        // A place in another thread's shard is better than a failure.
        let mut shards = self.shards.iter();
        if let Some(grant) = shards.find_map(|(number, shard)| shard.lock().allocate(request, number, true)) {
            return self.map_granted(context, grant, request);
        }
        let error = self.with_shards(error);
        self.emit_exhausted(&error);
        Err(error)
    }

    /// Grows the vector by a block, and allocates from it.
    #[cold]
    fn grow(&self, context: &DeviceContext, request: &VectorRequest) -> Result<Grant, AllocationError> {
        // A request that may not grow the vector fails here, and does not wait for a thread that may.
        let dedicated = self.counted_dedicated();
        self.core.lock().check_growth(request, dedicated)?;
        // The span covers more than the driver call: a subscriber that allocates as the span begins must not find
        // `growth` locked.
        let span = tracing::debug_span!(target: "sublet::block", "grow", size = request.size);
        let _entered = span.enter();
        let growth_lock = self.growth.lock();
        // While this thread holds the lock, this count can only decrease.
        let dedicated = self.counted_dedicated();
        let planned = {
            let mut core = self.core.lock();
            // Another thread may have grown the vector or freed memory meanwhile.
            if let Some(grant) = core.allocate(request)? {
                drop((core, growth_lock));
                return self.map_granted(context, grant, request);
            }
            core.plan_growth(request, dedicated)?
        };
        let mut events = PendingEvents::default();
        let grown = planned.allocate(context, &mut events).map(|block| {
            self.had_memory.store(true, Ordering::Relaxed);
            self.core.lock().allocate_in_new_block(block, request)
        });
        drop(growth_lock);
        events.emit(context, planned.config.memory_type, || self.pool_name());
        let (granted, unwanted) = grown?;
        if let Some(block) = unwanted {
            self.destroy_block(context, block);
        }
        self.map_granted(context, granted?, request)
    }

    /// Emits that a pool reached its maximum number of blocks.
    fn emit_exhausted(&self, error: &AllocationError) {
        let AllocationError::Full {
            size,
            alignment,
            free,
            largest_free,
            block_count: blocks,
            max_block_count,
        } = *error
        else {
            return;
        };
        // 0 means that the request allowed no new block. Otherwise only a pool has a limit.
        if max_block_count == 0 || !tracing::enabled!(target: "sublet::pool", tracing::Level::DEBUG) {
            return;
        }
        let memory_type = self.config(None).map(|config| config.memory_type);
        let pool = self.pool_name();
        tracing::debug!(
            name: "pool_exhausted", target: "sublet::pool",
            pool = pool.as_deref(), memory_type, size, alignment, free, largest_free, blocks,
            max_blocks = max_block_count,
            "no block of the pool has room, and it may have no more"
        );
    }

    /// Adds the free space in shards to the figures of an error.
    pub(super) fn with_shards(&self, mut error: AllocationError) -> AllocationError {
        if let AllocationError::Full { free, largest_free, .. } = &mut error {
            for (_, shard) in self.shards.iter() {
                let shard = shard.lock();
                let usage = shard.usage();
                *free += usage.capacity - usage.used;
                *largest_free = shard.largest_free().max(*largest_free);
            }
        }
        error
    }

    /// Maps the block if the request needs it and the block is unmapped.
    pub(crate) fn map_granted(
        &self,
        context: &DeviceContext,
        grant: Grant,
        request: &VectorRequest,
    ) -> Result<Grant, AllocationError> {
        if !request.mapped || grant.mapped.is_mapped() {
            return Ok(grant);
        }
        let Grant { generation, key, shard, .. } = grant;
        let live = AllocationKey { generation, key, dedicated: false, shard };
        let mapped =
            if shard == 0 { self.map_memory(context, live) } else { self.map_for_shard(context, live) };
        match mapped {
            Ok(mapped) => Ok(Grant { mapped: mapped.at(grant.offset), ..grant }),
            Err(error) => {
                let freed = self.undo(context, live, true);
                debug_assert!(freed.is_ok());
                Err(AllocationError::Map(error))
            }
        }
    }

    /// Dedicated allocations that count as blocks.
    pub(super) fn counted_dedicated(&self) -> u32 {
        self.dedicated.lock().counted()
    }

    /// Checks that the limit allows one more dedicated allocation that counts as a block.
    pub(crate) fn check_dedicated(&self, request: &VectorRequest) -> Result<(), AllocationError> {
        let dedicated = self.counted_dedicated();
        let checked = self.core.lock().check_count(request, dedicated);
        checked.map_err(|error| self.with_shards(error))
    }

    /// [`Self::check_dedicated`], and counts the allocation.
    fn reserve_dedicated(&self, request: &VectorRequest) -> Result<(), AllocationError> {
        // Locked, because a thread that creates a block has counted the dedicated allocations under this lock.
        let _growth_lock = self.growth.lock();
        self.check_dedicated(request)?;
        self.dedicated.lock().reserve();
        Ok(())
    }

    /// Makes a dedicated allocation. If `what.priority` is `None`, it gets the vector's priority. `by_name` means that
    /// the caller asked for dedicated memory. Otherwise the allocation counts as a block if the number of blocks is
    /// limited.
    pub(crate) fn allocate_dedicated(
        &self,
        context: &DeviceContext,
        what: &DriverAllocation,
        request: &VectorRequest,
        by_name: bool,
    ) -> Result<Grant, AllocationError> {
        let (generation, priority, own_next, is_limited) = {
            let core = self.core.lock();
            let config = &core.in_use().config;
            (core.generation, config.priority, config.next.get(), config.is_limited())
        };
        let next = match (what.next.is_null(), own_next) {
            (true, next) => next,
            (false, next) if next.is_null() => what.next,
            _ => return Err(Contradiction::TwoMemoryAllocateChains.into()),
        };
        let what = DriverAllocation { next, priority: what.priority.or(Some(priority)), ..*what };
        let counts = !by_name && is_limited;
        if counts {
            self.reserve_dedicated(request)?;
        }
        let made = self.allocate_dedicated_block(context, &what, request).inspect_err(|_| {
            if counts {
                self.dedicated.lock().unreserve();
            }
        });
        let block = made?;
        let (memory, mapped) = (block.memory, block.mapped());
        let map_count = u64::from(request.mapped);
        self.had_memory.store(true, Ordering::Relaxed);
        let key = self.dedicated.lock().insert(DedicatedAllocation {
            block,
            map_count,
            counts,
            tag: request.tag,
            annotation: Annotation::default(),
        });
        Ok(Grant { memory, offset: 0, mapped, key, generation, shard: 0 })
    }

    /// Allocates the memory of a dedicated allocation, and maps it if the request needs it.
    fn allocate_dedicated_block(
        &self,
        context: &DeviceContext,
        what: &DriverAllocation,
        request: &VectorRequest,
    ) -> Result<DeviceBlock, AllocationError> {
        let mut events = PendingEvents::default();
        if let Some(limit) = context.budgets.exceeded_by(what.size) {
            emit_above_limit(context, what.memory_type, what.size, limit);
        }
        let allocated = {
            let span = tracing::debug_span!(target: "sublet::block", "dedicate", size = what.size);
            let _entered = span.enter();
            DeviceBlock::allocate(context, what, true, request.within_budget, &mut events)
        };
        events.emit(context, what.memory_type, || self.pool_name());
        let mut block = allocated?;
        if request.mapped {
            if let Err(error) = block.map(context) {
                block.destroy(context, || self.pool_name());
                return Err(AllocationError::Map(error));
            }
        }
        Ok(block)
    }
}
