//! A trace as a list of steps that every peer supports.
//!
//! The peers differ in how memory is requested: usages, locations, masks, pools. To give all of them the same work, the
//! trace is first replayed on Sublet on the same device. Each allocation is then requested in the memory type that it
//! had there. No peer searches for a type, and none can choose another. The other operations:
//!
//! - Each peer maps persistent mappings in its own way, and temporary mappings too.
//! - An allocation that was dedicated because the program or the driver wanted it is requested as dedicated. If Sublet
//!   chose dedicated memory because of the size, each peer decides itself.
//! - Pools are pools for Sublet and VMA. The others have none, and use their default memory: limits and linear order
//!   are lost.
//! - Scopes are default memory for all peers, and their allocations are freed one by one.
//! - Sublet and VMA get the starts of frames, at which they fetch budgets.
//! - Defragmentation, trimming, flushes, names and priorities are skipped.

use std::collections::BTreeMap;

use ash::vk;
use sublet::trace::{Event, MoveOutcome, Needs, PoolSettings, Replay, Trace, Wanted};
use sublet::{AllocationCreateFlags, Allocator, ResourceKind};

/// The kind of host access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Host {
    Never,
    Writes,
    Reads,
}

/// One allocation request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ScriptRequest {
    pub(crate) size: u64,
    pub(crate) alignment: u64,
    pub(crate) memory_type: u32,
    pub(crate) kind: ResourceKind,
    pub(crate) host: Host,
    /// Mapped persistently.
    pub(crate) mapped: bool,
    /// Uses dedicated memory.
    pub(crate) dedicated: bool,
    pub(crate) pool: Option<u32>,
    /// Allocates from the upper end of a linear pool.
    pub(crate) upper: bool,
}

impl ScriptRequest {
    /// Returns the flags for Sublet, and for VMA, whose flags have the same values.
    #[inline]
    pub(crate) fn flags(&self) -> AllocationCreateFlags {
        let mut flags = AllocationCreateFlags::empty();
        flags.set(AllocationCreateFlags::MAPPED, self.mapped);
        flags.set(AllocationCreateFlags::DEDICATED_MEMORY, self.dedicated);
        flags.set(AllocationCreateFlags::UPPER_ADDRESS, self.upper);
        flags
    }
}

/// One step. Its numbers refer to slots for allocations, and to pools.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ScriptStep {
    Allocate(u32, ScriptRequest),
    Free(u32),
    Map(u32),
    Unmap(u32),
    CreatePool(u32, Box<PoolSettings>),
    DestroyPool(u32),
    Frame(u32),
}

/// The steps of all peers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Script {
    pub(crate) steps: Vec<ScriptStep>,
    pub(crate) slots: usize,
}

impl Script {
    /// Creates the script of a trace for this allocator's device.
    pub(crate) fn new(trace: &Trace, allocator: &Allocator) -> Self {
        let mut maker = ScriptBuilder {
            script: Self::default(),
            memory: allocator.memory_properties(),
            live: BTreeMap::new(),
            free_slots: Vec::new(),
            pools: BTreeMap::new(),
            pools_made: 0,
        };
        let mut replay = Replay::new(trace, allocator);
        while let Some(record) = replay.step() {
            let memory_type = record
                .event
                .allocation()
                .and_then(|number| replay.allocation(number))
                .map(|info| info.memory_type_index);
            let pool = match &record.event {
                Event::CreatePool { pool, .. } => replay.pool(*pool).map(|pool| pool.memory_type_index),
                _ => None,
            };
            maker.event(&record.event, memory_type.or(pool));
        }
        maker.end()
    }
}

/// The owner whose end frees an allocation.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ScriptOwner {
    Nobody,
    Pool(u32),
    Scope(u32),
}

struct ScriptAllocation {
    slot: u32,
    owner: ScriptOwner,
    mappings: u32,
}

struct ScriptBuilder {
    script: Script,
    memory: vk::PhysicalDeviceMemoryProperties,
    /// By number in the trace.
    live: BTreeMap<u32, ScriptAllocation>,
    /// The slot that was freed last is used first, because it is in the cache.
    free_slots: Vec<u32>,
    /// By number in the trace.
    pools: BTreeMap<u32, u32>,
    pools_made: u32,
}

impl ScriptBuilder {
    fn event(&mut self, event: &Event, memory_type: Option<u32>) {
        match event {
            Event::Existing(existing) => {
                let needs = Needs {
                    size: existing.size,
                    alignment: existing.alignment,
                    kind: existing.kind,
                    ..Needs::default()
                };
                let wanted = Wanted { pool: existing.pool, scope: existing.scope, ..Wanted::default() };
                self.allocate(existing.allocation.0, &needs, &wanted, memory_type);
            }
            Event::Allocate(allocate) => {
                self.allocate(allocate.allocation.0, &allocate.resource, &allocate.wanted, memory_type);
            }
            Event::Free { allocation } | Event::Move { allocation, outcome: MoveOutcome::Freed, .. } => {
                self.free(allocation.0);
            }
            Event::Map { allocation } => self.map(allocation.0),
            Event::Unmap { allocation } => self.unmap(allocation.0),
            Event::CopyTo { allocation, .. } | Event::CopyFrom { allocation, .. } => {
                self.map(allocation.0);
                self.unmap(allocation.0);
            }
            Event::CreatePool { pool, settings } => {
                let Some(memory_type) = memory_type else { return };
                let number = self.pools_made;
                self.pools_made += 1;
                self.pools.insert(pool.0, number);
                let settings =
                    PoolSettings { memory_type_index: memory_type, ..PoolSettings::clone(settings) };
                self.script.steps.push(ScriptStep::CreatePool(number, Box::new(settings)));
            }
            Event::DestroyPool { pool } => {
                self.end_owner(ScriptOwner::Pool(pool.0));
                if let Some(number) = self.pools.remove(&pool.0) {
                    self.script.steps.push(ScriptStep::DestroyPool(number));
                }
            }
            Event::FreeScope { scope } => self.end_owner(ScriptOwner::Scope(scope.0)),
            Event::Frame { index } => self.script.steps.push(ScriptStep::Frame(*index)),
            _ => {}
        }
    }

    fn allocate(&mut self, number: u32, needs: &Needs, wanted: &Wanted, memory_type: Option<u32>) {
        // Without a type, the allocation failed in Sublet on this device.
        let Some(memory_type) = memory_type else { return };
        let (owner, pool) = match (wanted.pool, wanted.scope) {
            (Some(pool), _) => (ScriptOwner::Pool(pool.0), self.pools.get(&pool.0).copied()),
            (None, Some(scope)) => (ScriptOwner::Scope(scope.0), None),
            (None, None) => (ScriptOwner::Nobody, None),
        };
        let flags = self.memory.memory_types[memory_type as usize].property_flags;
        let mapped = wanted.flags.contains(AllocationCreateFlags::MAPPED);
        let host = match flags {
            flags if !flags.contains(vk::MemoryPropertyFlags::HOST_VISIBLE) => Host::Never,
            _ if !mapped && wanted.preferred_flags == vk::MemoryPropertyFlags::DEVICE_LOCAL => Host::Never,
            // Such an image is for the device, also if all memory is host-visible.
            _ if !mapped && needs.kind == ResourceKind::ImageOptimal => Host::Never,
            _ if wanted.preferred_flags.contains(vk::MemoryPropertyFlags::HOST_CACHED)
                || wanted.flags.contains(AllocationCreateFlags::HOST_ACCESS_RANDOM) =>
            {
                Host::Reads
            }
            _ => Host::Writes,
        };
        let slot = self.free_slots.pop().unwrap_or_else(|| {
            self.script.slots += 1;
            self.script.slots as u32 - 1
        });
        let ask = ScriptRequest {
            size: needs.size,
            alignment: needs.alignment.max(wanted.min_alignment).max(1),
            memory_type,
            kind: needs.kind,
            host,
            mapped: mapped && host != Host::Never,
            dedicated: needs.requires_dedicated
                || needs.prefers_dedicated
                || wanted.flags.contains(AllocationCreateFlags::DEDICATED_MEMORY),
            pool,
            upper: wanted.flags.contains(AllocationCreateFlags::UPPER_ADDRESS),
        };
        self.script.steps.push(ScriptStep::Allocate(slot, ask));
        self.live.insert(number, ScriptAllocation { slot, owner, mappings: 0 });
    }

    fn free(&mut self, number: u32) {
        let Some(live) = self.live.remove(&number) else { return };
        (0..live.mappings).for_each(|_| self.script.steps.push(ScriptStep::Unmap(live.slot)));
        self.script.steps.push(ScriptStep::Free(live.slot));
        self.free_slots.push(live.slot);
    }

    fn map(&mut self, number: u32) {
        if let Some(live) = self.live.get_mut(&number) {
            live.mappings += 1;
            self.script.steps.push(ScriptStep::Map(live.slot));
        }
    }

    fn unmap(&mut self, number: u32) {
        if let Some(live) = self.live.get_mut(&number).filter(|live| live.mappings > 0) {
            live.mappings -= 1;
            self.script.steps.push(ScriptStep::Unmap(live.slot));
        }
    }

    fn end_owner(&mut self, owner: ScriptOwner) {
        let ended = self.live.iter().filter(|(_, live)| live.owner == owner);
        let ended: Vec<u32> = ended.map(|(number, _)| *number).collect();
        ended.into_iter().for_each(|number| self.free(number));
    }

    /// Frees everything that the program left, so that every peer must end empty.
    fn end(mut self) -> Script {
        let left: Vec<u32> = self.live.keys().copied().collect();
        left.into_iter().for_each(|number| self.free(number));
        let pools = std::mem::take(&mut self.pools);
        self.script.steps.extend(pools.into_values().map(ScriptStep::DestroyPool));
        self.script
    }
}
