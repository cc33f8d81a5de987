//! Replays the calls for pools and scopes.

use super::super::{Event, PoolSettings, ScopeSettings};
use super::play::timed;
use super::{CallKind, Replay, ReplayedOwner, release};
use crate::create_info::PoolCreateInfo;
use crate::device::MemoryAllocateNext;
use crate::pool::{Pool, Scope, ScopeCreateInfo};

/// The maximum number of initial blocks of a pool. A hand-made file may request more than any program would.
const MOST_BLOCKS: u32 = 1 << 16;

impl Replay<'_> {
    pub(super) fn create_pool(&mut self, number: u32, settings: &PoolSettings) {
        let info = PoolCreateInfo {
            memory_type_index: self.translation.one(settings.memory_type_index),
            min_block_count: settings.min_block_count.min(MOST_BLOCKS),
            ..settings.with(settings.name.as_deref(), MemoryAllocateNext::default())
        };
        let allocator = self.allocator;
        if let Some(pool) = self.call(CallKind::CreatePool, || allocator.create_pool(&info)) {
            if let Some(before) = self.pools.insert(number, pool) {
                self.unknown();
                self.forget(ReplayedOwner::Pool(number));
                self.end_pool(before);
            }
        }
        self.look();
    }

    /// Removes the allocations of a pool or scope that was destroyed.
    fn forget(&mut self, owner: ReplayedOwner) {
        for number in self.members.remove(&owner).unwrap_or_default() {
            if self.live.get(&number).is_some_and(|held| held.owner == owner) {
                if let Some(held) = self.live.remove(&number) {
                    self.placements.left(held.allocation.memory());
                }
            }
        }
    }

    fn end_pool(&mut self, pool: Pool) {
        let allocator = self.allocator;
        self.call(CallKind::DestroyPool, || release::destroy_pool(allocator, pool));
    }

    fn end_scope(&mut self, scope: Scope) {
        let allocator = self.allocator;
        self.call(CallKind::FreeScope, || release::free_scope(allocator, scope));
    }

    pub(super) fn destroy_pool(&mut self, number: u32) {
        let Some(pool) = self.pools.remove(&number) else { return self.unknown() };
        self.forget(ReplayedOwner::Pool(number));
        self.end_pool(pool);
        self.look();
    }

    pub(super) fn change_pool(&mut self, number: u32, event: &Event) {
        let Some(pool) = self.pools.get(&number) else { return self.unknown() };
        let allocator = self.allocator;
        let (kind, (changed, took)) = match event {
            Event::SetPoolName { name, .. } => {
                (CallKind::Describe, timed(|| allocator.set_pool_name(pool, name.as_deref()).map_err(drop)))
            }
            Event::SetPoolPriority { priority, .. } => {
                (CallKind::Describe, timed(|| allocator.set_pool_priority(pool, *priority).map_err(drop)))
            }
            Event::SetPoolEmptyBlocksKept { empty_blocks_kept: kept, .. } => (
                CallKind::Trim,
                timed(|| allocator.set_pool_empty_blocks_kept(pool, *kept).map(drop).map_err(drop)),
            ),
            Event::ReserveInPool { bytes, .. } => {
                (CallKind::Reserve, timed(|| allocator.reserve_in_pool(pool, *bytes).map(drop).map_err(drop)))
            }
            _ => {
                // With several threads, each of these calls attached its own thread to a shard.
                if self.is_single {
                    let attached = allocator.attach_to_pool(pool);
                    debug_assert!(attached.is_ok());
                }
                return self.look();
            }
        };
        self.count(kind, took, changed.is_err());
        self.look();
    }

    pub(super) fn create_scope(&mut self, number: u32, settings: &ScopeSettings) {
        let info = ScopeCreateInfo {
            name: settings.name.as_deref(),
            block_size: settings.block_size,
            priority: settings.priority,
        };
        let allocator = self.allocator;
        if let Some(scope) = self.call(CallKind::CreateScope, || allocator.create_scope(&info)) {
            if let Some(before) = self.scopes.insert(number, scope) {
                self.unknown();
                self.forget(ReplayedOwner::Scope(number));
                self.end_scope(before);
            }
        }
    }

    pub(super) fn free_scope(&mut self, number: u32) {
        let Some(scope) = self.scopes.remove(&number) else { return self.unknown() };
        self.forget(ReplayedOwner::Scope(number));
        self.end_scope(scope);
        self.look();
    }
}
