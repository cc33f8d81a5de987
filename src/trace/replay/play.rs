//! Replays one event at a time.

use std::panic::Location;
use std::time::{Duration, Instant};

use super::super::{Allocate, AllocateFailed, Event, Existing, Failure, Needs, Wanted};
use super::{CallKind, Footprint, Replay, ReplayedAllocation, ReplayedOwner, release};
use crate::allocation::Allocation;
use crate::allocator::{Allocator, MaintainInfo, Resource};
use crate::create_info::{AllocationCreateFlags, AllocationCreateInfo, MemoryUsage};
use crate::device::ResourceRequirements;
use crate::statistics::Statistics;

impl From<&Statistics> for Footprint {
    fn from(statistics: &Statistics) -> Self {
        Self {
            reserved_bytes: statistics.block_bytes,
            used_bytes: statistics.allocation_bytes,
            memory_count: statistics.block_count,
            allocation_count: statistics.allocation_count,
        }
    }
}

pub(super) fn timed<R>(call: impl FnOnce() -> R) -> (R, Duration) {
    let start = Instant::now();
    let result = call();
    (result, start.elapsed())
}

impl Needs {
    /// Returns the resource for a request, with these memory types.
    fn resource(&self, memory_type_bits: u32) -> Resource {
        let requirements = ResourceRequirements {
            size: self.size,
            alignment: self.alignment,
            memory_type_bits,
            prefers_dedicated: self.prefers_dedicated,
            requires_dedicated: self.requires_dedicated,
        };
        Resource::recorded(requirements, self.kind, self.usage, self.device_access, self.device_address)
    }

    /// Returns the index of the memory type that the allocator would choose for the resource, with these flags for the
    /// access of the host and [`MemoryUsage::Auto`]. `None` if no type is suitable, or if [`Self::device_access`] is
    /// unknown.
    #[must_use]
    pub fn memory_type(&self, allocator: &Allocator, host_access: AllocationCreateFlags) -> Option<u32> {
        let usage = MemoryUsage::Auto;
        let info = AllocationCreateInfo { flags: host_access, usage, ..AllocationCreateInfo::default() };
        allocator.find_for(&self.resource(self.memory_type_bits), &info).ok()
    }
}

impl Replay<'_> {
    pub(super) fn play(&mut self, event: &Event) {
        match event {
            Event::Existing(existing) => self.existing(existing),
            Event::Allocate(allocate) => self.allocate(allocate),
            Event::AllocateFailed(failed) => self.allocate_failed(failed),
            Event::Free { allocation } => self.free(allocation.0),
            Event::Map { allocation } => self.map(allocation.0),
            Event::Unmap { allocation } => self.unmap(allocation.0),
            Event::Flush { allocation, offset, size } => self.flush(allocation.0, *offset, *size),
            Event::Invalidate { allocation, offset, size } => self.invalidate(allocation.0, *offset, *size),
            Event::CopyTo { allocation, offset, size } => {
                self.map(allocation.0);
                self.flush(allocation.0, *offset, *size);
                self.unmap(allocation.0);
            }
            Event::CopyFrom { allocation, offset, size } => {
                self.map(allocation.0);
                self.invalidate(allocation.0, *offset, *size);
                self.unmap(allocation.0);
            }
            Event::SetName { .. } | Event::SetUserData { .. } | Event::SetPriority { .. } => {
                self.describe(event);
            }
            Event::CreatePool { pool, settings } => self.create_pool(pool.0, settings),
            Event::DestroyPool { pool } => self.destroy_pool(pool.0),
            Event::SetPoolName { pool, .. }
            | Event::SetPoolPriority { pool, .. }
            | Event::SetPoolEmptyBlocksKept { pool, .. }
            | Event::ReserveInPool { pool, .. }
            | Event::SettleInPool { pool } => self.change_pool(pool.0, event),
            Event::CreateScope { scope, settings } => self.create_scope(scope.0, settings),
            Event::FreeScope { scope } => self.free_scope(scope.0),
            Event::Frame { index } => {
                let (allocator, index) = (self.allocator, *index);
                self.run(CallKind::Frame, || allocator.set_current_frame_index(index));
            }
            Event::Trim => {
                let allocator = self.allocator;
                self.run(CallKind::Trim, || allocator.trim());
                self.look();
            }
            Event::SetEmptyBlocksKept { empty_blocks_kept } => {
                let (allocator, kept) = (self.allocator, *empty_blocks_kept);
                self.run(CallKind::Trim, || allocator.set_empty_blocks_kept(kept));
                self.look();
            }
            Event::SettleInMemoryType { memory_type } => {
                if self.is_single {
                    self.allocator.attach_to_memory_type(self.translation.one(*memory_type));
                }
            }
            Event::Reserve { memory_type, bytes } => {
                let (allocator, memory_type) = (self.allocator, self.translation.one(*memory_type));
                self.call(CallKind::Reserve, || allocator.reserve(memory_type, *bytes));
                self.look();
            }
            Event::Maintain { max_allocations, max_frees, max_microseconds } => {
                let allocator = self.allocator;
                let info = MaintainInfo {
                    max_allocations: *max_allocations,
                    max_frees: *max_frees,
                    max_time: Duration::from_micros((*max_microseconds).into()),
                };
                self.run(CallKind::Maintain, || allocator.maintain(&info));
                self.look();
            }
            Event::BeginDefragmentation(begin) => self.begin_defragmentation(begin),
            Event::BeginPass { defragmentation, moves } => self.begin_pass(defragmentation.0, *moves),
            Event::Move { defragmentation, allocation, outcome } => {
                self.resolve(defragmentation.0, allocation.0, *outcome);
            }
            Event::EndPass { defragmentation } => self.end_pass(defragmentation.0),
            Event::EndDefragmentation { defragmentation } => self.end_defragmentation(defragmentation.0),
            // `Trace::resource_requests` turns them into requests.
            Event::MemoryAllocated { .. }
            | Event::MemoryAllocationFailed { .. }
            | Event::MemoryFreed { .. }
            | Event::MemoryMapped { .. }
            | Event::MemoryUnmapped { .. }
            | Event::MemoryFlushed { .. }
            | Event::MemoryInvalidated { .. }
            | Event::BufferCreated { .. }
            | Event::ImageCreated { .. }
            | Event::Requirements { .. }
            | Event::Bound { .. }
            | Event::ResourceDestroyed { .. }
            | Event::Named { .. }
            | Event::SparseBound { .. }
            | Event::Submitted { .. }
            | Event::Presented
            | Event::Budget { .. }
            | Event::DriverMemory { .. }
            | Event::DeviceLost
            | Event::DeviceDestroyed => self.unknown(),
        }
    }

    pub(super) fn count(&mut self, kind: CallKind, took: Duration, failed: bool) {
        self.report.time += took;
        let report = &mut self.report.calls[kind.at()];
        report.made += 1;
        report.failed += u64::from(failed);
        report.latencies.add(took);
    }

    /// Makes a call, and records its result and duration.
    pub(super) fn call<R, E>(&mut self, kind: CallKind, call: impl FnOnce() -> Result<R, E>) -> Option<R> {
        let (result, took) = timed(call);
        self.count(kind, took, result.is_err());
        result.ok()
    }

    /// [`Self::call`] for calls that cannot fail.
    pub(super) fn run<R>(&mut self, kind: CallKind, call: impl FnOnce() -> R) -> R {
        let (result, took) = timed(call);
        self.count(kind, took, false);
        result
    }

    /// Records the current memory usage.
    pub(super) fn look(&mut self) {
        let heaps = self.allocator.heap_statistics();
        let mut all = Statistics::default();
        for (extremes, heap) in self.report.heaps.iter_mut().zip(&heaps) {
            extremes.see(heap.into());
            all.add(heap);
        }
        self.report.memory.see((&all).into());
    }

    pub(super) fn unknown(&mut self) {
        self.report.unknown += 1;
    }

    /// Allocates with the recorded request. `None` if the replay does not have the pool or scope.
    fn ask(
        &mut self,
        needs: &Needs,
        wanted: &Wanted,
        flags: AllocationCreateFlags,
    ) -> Option<Option<Allocation>> {
        let pool = match wanted.pool {
            Some(pool) => Some(self.pools.get(&pool.0)?),
            None => None,
        };
        let scope = match wanted.scope {
            Some(scope) => Some(self.scopes.get(&scope.0)?),
            None => None,
        };
        let info = AllocationCreateInfo {
            flags: wanted.flags | flags,
            usage: wanted.usage,
            required_flags: wanted.required_flags,
            preferred_flags: wanted.preferred_flags,
            memory_type_bits: self.translation.wish(wanted.memory_type_bits),
            pool,
            scope,
            user_data: wanted.user_data,
            priority: wanted.priority,
            min_alignment: wanted.min_alignment,
            name: wanted.name.as_deref(),
        };
        let resource = needs.resource(self.translation.bits(needs.memory_type_bits));
        // Pool and scope are borrowed from the replay during the call.
        let (allocated, took) =
            timed(|| self.allocator.allocate(resource, || &info, None, Location::caller()));
        self.count(CallKind::Allocate, took, allocated.is_err());
        Some(allocated.ok())
    }

    /// Stores an allocation.
    fn keep(&mut self, number: u32, allocation: Allocation, owner: ReplayedOwner, recorded_type: u32) {
        self.placements.placed(&allocation, owner != ReplayedOwner::Nobody);
        self.report.dedicated += u64::from(allocation.is_dedicated());
        self.report.other_memory_type += u64::from(allocation.memory_type_index() != recorded_type);
        if owner != ReplayedOwner::Nobody {
            self.members.entry(owner).or_default().push(number);
        }
        let before = self.live.insert(number, ReplayedAllocation { allocation, owner, mappings: 0 });
        if let Some(before) = before {
            // Readers never give two allocations the same number.
            self.unknown();
            self.give_back(before);
        }
        self.look();
    }

    pub(super) fn give_back(&mut self, held: ReplayedAllocation) {
        self.placements.left(held.allocation.memory());
        let freed = release::free(self.allocator, held.allocation);
        debug_assert!(freed.is_ok(), "{freed:?}");
    }

    fn existing(&mut self, existing: &Existing) {
        let needs = Needs {
            size: existing.size,
            alignment: existing.alignment,
            memory_type_bits: 1_u32.checked_shl(existing.memory_type).unwrap_or(0),
            kind: existing.kind,
            usage: existing.usage,
            ..Needs::default()
        };
        let wanted = Wanted {
            pool: existing.pool,
            scope: existing.scope,
            user_data: existing.user_data.unwrap_or(0),
            name: existing.name.clone(),
            ..Wanted::default()
        };
        self.grant(existing.allocation.0, &needs, &wanted, existing.memory_type, existing.dedicated);
    }

    fn allocate(&mut self, allocate: &Allocate) {
        let Allocate { allocation, resource, wanted, granted } = allocate;
        self.grant(
            allocation.0,
            resource,
            wanted,
            granted.memory_type,
            wanted.has_chain && granted.dedicated,
        );
    }

    fn grant(&mut self, number: u32, needs: &Needs, wanted: &Wanted, recorded_type: u32, dedicated: bool) {
        let flags =
            if dedicated { AllocationCreateFlags::DEDICATED_MEMORY } else { AllocationCreateFlags::empty() };
        let owner = match (wanted.pool, wanted.scope) {
            (Some(pool), _) => ReplayedOwner::Pool(pool.0),
            (None, Some(scope)) => ReplayedOwner::Scope(scope.0),
            (None, None) => ReplayedOwner::Nobody,
        };
        match self.ask(needs, wanted, flags) {
            Some(Some(allocation)) => self.keep(number, allocation, owner, recorded_type),
            Some(None) => {
                self.report.refused += 1;
                self.placements.refused();
                // A failure may have changed the set of blocks.
                self.look();
            }
            None => self.unknown(),
        }
    }

    fn allocate_failed(&mut self, failed: &AllocateFailed) {
        self.report.refused_in_recording += 1;
        // The trace does not identify the pool.
        if failed.failure == Failure::ForeignPool {
            return;
        }
        match self.ask(&failed.resource, &failed.wanted, AllocationCreateFlags::empty()) {
            Some(Some(allocation)) => {
                self.report.granted_after_all += 1;
                self.look();
                let freed = release::free(self.allocator, allocation);
                debug_assert!(freed.is_ok(), "{freed:?}");
            }
            Some(None) => {}
            None => self.unknown(),
        }
        self.look();
    }

    fn free(&mut self, number: u32) {
        let Some(held) = self.live.remove(&number) else { return self.unknown() };
        self.placements.left(held.allocation.memory());
        let allocator = self.allocator;
        self.call(CallKind::Free, || release::free(allocator, held.allocation));
        self.look();
    }

    fn map(&mut self, number: u32) {
        let Some(held) = self.live.get_mut(&number) else { return self.unknown() };
        let (mapped, took) = timed(|| self.allocator.count_mapping(&held.allocation));
        held.mappings += u32::from(mapped.is_ok());
        self.count(CallKind::Map, took, mapped.is_err());
    }

    fn unmap(&mut self, number: u32) {
        let Some(held) = self.live.get_mut(&number).filter(|held| held.mappings > 0) else {
            return self.unknown();
        };
        let (unmapped, took) = timed(|| release::unmap(self.allocator, &held.allocation, held.mappings));
        held.mappings -= 1;
        self.count(CallKind::Unmap, took, unmapped.is_err());
    }

    fn flush(&mut self, number: u32, offset: u64, size: u64) {
        let Some(held) = self.live.get(&number) else { return self.unknown() };
        let (flushed, took) = timed(|| self.allocator.flush(&held.allocation, offset, size));
        self.count(CallKind::Flush, took, flushed.is_err());
    }

    fn invalidate(&mut self, number: u32, offset: u64, size: u64) {
        let Some(held) = self.live.get(&number) else { return self.unknown() };
        let (invalidated, took) = timed(|| self.allocator.invalidate(&held.allocation, offset, size));
        self.count(CallKind::Invalidate, took, invalidated.is_err());
    }

    /// Sets the name, the user data or the priority of an allocation.
    fn describe(&mut self, event: &Event) {
        let Some(held) = event.allocation().and_then(|number| self.live.get_mut(&number.0)) else {
            return self.unknown();
        };
        let (allocator, allocation) = (self.allocator, &mut held.allocation);
        let (described, took) = timed(|| match event {
            Event::SetName { name, .. } => {
                allocator.set_allocation_name(allocation, name.as_deref()).map_err(drop)
            }
            Event::SetUserData { user_data, .. } => {
                allocator.set_allocation_user_data(allocation, *user_data).map_err(drop)
            }
            Event::SetPriority { priority, .. } => {
                allocator.set_allocation_priority(allocation, *priority).map_err(drop)
            }
            _ => Ok(()),
        });
        self.count(CallKind::Describe, took, described.is_err());
    }

    /// Frees everything that the replay allocated, without counting it in the report.
    pub(super) fn free_all(&mut self) {
        for (_, context) in std::mem::take(&mut self.contexts) {
            context.moves.iter().for_each(|planned| self.allocator.roll_back_move(&context.open, planned));
            self.allocator.close_defragmentation(context.open);
        }
        for (_, held) in std::mem::take(&mut self.live) {
            // Destroying a pool or scope frees its allocations.
            if held.owner == ReplayedOwner::Nobody {
                self.give_back(held);
            }
        }
        for (_, pool) in std::mem::take(&mut self.pools) {
            let destroyed = release::destroy_pool(self.allocator, pool);
            debug_assert!(destroyed.is_ok(), "{destroyed:?}");
        }
        for (_, scope) in std::mem::take(&mut self.scopes) {
            let freed = release::free_scope(self.allocator, scope);
            debug_assert!(freed.is_ok(), "{freed:?}");
        }
    }
}
