//! The history of a recording of Sublet, by a replay.

use std::collections::{BTreeMap, BTreeSet};

use ash::vk;
use ash::vk::Handle as _;

use super::History;
use super::builder::{Described, HistoryBuilder};
use crate::snapshot::{Snapshot, Vector};
use sublet::trace::{AllocationNumber, Event, MoveOutcome, Replay, Trace};
use sublet::{AllocationInfo, Allocator, ResourceKind};

impl History {
    /// Replays a recording on an allocator, and collects the place of every allocation. The allocator should be new and
    /// like the recorded one, as in the example of [`History`]. [`Replay`] lists the differences to the recorded
    /// program. The destination of a move counts as free until the move is completed.
    ///
    /// # Complexity
    /// That of the replay, and O(allocations) for each block that is created or destroyed.
    #[must_use]
    pub fn replayed(trace: &Trace, allocator: &Allocator) -> Self {
        let mut follower = Follower {
            builder: HistoryBuilder::new(Snapshot::of(allocator)),
            allocator,
            replay: Replay::new(trace, allocator),
            live: BTreeMap::new(),
            blocks: BTreeMap::new(),
            memories: BTreeMap::new(),
            held: HeldSum::default(),
            other: HeldSum::default(),
            used: 0,
        };
        follower.refresh();
        while let Some(record) = follower.replay.step() {
            let time = u64::try_from(record.time.as_nanos()).unwrap_or(u64::MAX);
            follower.builder.next_call(time);
            follower.follow(&record.event);
            follower.used = follower.replay.report().memory.at_end.used_bytes;
        }
        follower.builder.finish()
    }
}

/// The number and the bytes of `VkDeviceMemory` objects.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct HeldSum {
    count: u64,
    bytes: u64,
}

/// A block: its vector, and its number there.
type BlockKey = (u32, u32);

struct Follower<'a> {
    builder: HistoryBuilder,
    allocator: &'a Allocator,
    replay: Replay<'a>,
    /// The placement of each live allocation, and its memory.
    live: BTreeMap<u32, (u32, vk::DeviceMemory)>,
    blocks: BTreeMap<BlockKey, vk::DeviceMemory>,
    /// By handle: the number of the memory, its size, and true if it is dedicated.
    memories: BTreeMap<u64, (u32, u64, bool)>,
    /// The sum of `memories`.
    held: HeldSum,
    /// The difference between `held` and the allocator's own sum after the last refresh.
    other: HeldSum,
    /// The bytes of all allocations before the current call.
    used: u64,
}

impl Follower<'_> {
    fn follow(&mut self, event: &Event) {
        let mut is_rare = false;
        match event {
            Event::Existing(it) => {
                let has_owner = it.pool.is_some() || it.scope.is_some();
                self.placed(it.allocation, has_owner, it.name.as_deref(), (it.kind, it.usage));
            }
            Event::Allocate(it) => {
                let (wanted, resource) = (&it.wanted, &it.resource);
                let has_owner = wanted.pool.is_some() || wanted.scope.is_some();
                let what = (resource.kind, resource.usage);
                self.placed(it.allocation, has_owner, wanted.name.as_deref(), what);
            }
            Event::AllocateFailed(_) => {
                self.builder.failure();
                is_rare = true;
            }
            Event::Free { allocation } => self.freed(allocation.0),
            Event::Move { allocation, outcome: MoveOutcome::Freed, .. } => self.freed(allocation.0),
            Event::Move { allocation, outcome: MoveOutcome::Completed, .. } => self.moved(*allocation),
            Event::Move { .. } => {}
            Event::SetName { allocation, name } => self.named(allocation.0, name.as_deref()),
            Event::DestroyPool { .. } | Event::FreeScope { .. } => {
                self.end_missing();
                is_rare = true;
            }
            Event::Frame { index } => self.builder.frame((*index).into(), true),
            Event::Map { .. } | Event::Unmap { .. } | Event::Flush { .. } | Event::Invalidate { .. } => {}
            Event::CopyTo { .. } | Event::CopyFrom { .. } => {}
            _ => is_rare = true,
        }
        if is_rare || self.other != self.difference() {
            self.refresh();
        }
    }

    /// Returns the memory that the allocator has, and that is not in `memories`.
    fn difference(&self) -> HeldSum {
        let all = &self.replay.report().memory.at_end;
        HeldSum {
            count: all.memory_count.wrapping_sub(self.held.count),
            bytes: all.reserved_bytes.wrapping_sub(self.held.bytes),
        }
    }

    fn placed(
        &mut self,
        allocation: AllocationNumber,
        has_owner: bool,
        name: Option<&str>,
        (kind, usage): (ResourceKind, u32),
    ) {
        self.freed(allocation.0);
        let Some(info) = self.replay.allocation(allocation) else { return };
        // The chunk of an allocation may be larger than its request.
        let used = self.replay.report().memory.at_end.used_bytes;
        let size = used.saturating_sub(self.used).max(info.size);
        let Some(memory) = self.memory_of(&info, has_owner) else { return };
        let number = allocation.0;
        let it = Described { number: number.into(), size, kind, usage: usage.into(), name, note: None };
        let placed = self.builder.place(memory, info.offset, it, true);
        self.live.insert(number, (placed, info.memory));
    }

    /// Returns the number of the memory of an allocation.
    fn memory_of(&mut self, info: &AllocationInfo, has_owner: bool) -> Option<u32> {
        let handle = info.memory.as_raw();
        let is_known = |is: &(u32, u64, bool)| is.2 == info.dedicated && is.1 == info.memory_size;
        if !self.memories.get(&handle).is_some_and(is_known) {
            let vector = if has_owner { None } else { self.builder.default_vector(info.memory_type_index) };
            match vector {
                // Many programs have only dedicated memory: it needs no comparison with the allocator's map.
                Some(vector) if info.dedicated && !self.memories.contains_key(&handle) => {
                    self.begin_memory(vector, 0, info.memory_size, (info.memory, true));
                }
                _ => self.refresh(),
            }
        }
        self.memories.get(&handle).map(|&(memory, ..)| memory)
    }

    fn freed(&mut self, number: u32) {
        let Some((placed, handle)) = self.live.remove(&number) else { return };
        self.builder.end(placed);
        if self.memories.get(&handle.as_raw()).is_some_and(|&(_, _, dedicated)| dedicated) {
            self.end_memory(handle);
        }
    }

    fn moved(&mut self, allocation: AllocationNumber) {
        let Some(info) = self.replay.allocation(allocation) else { return };
        let Some(&(placed, _)) = self.live.get(&allocation.0) else { return };
        let Some(memory) = self.memory_of(&info, true) else { return };
        let moved = self.builder.move_to(placed, memory, info.offset);
        self.live.insert(allocation.0, (moved, info.memory));
    }

    fn named(&mut self, number: u32, name: Option<&str>) {
        if let Some((placed, _)) = self.live.get_mut(&number) {
            *placed = self.builder.rename(*placed, name);
        }
    }

    /// Ends the allocations that were freed with their pool or scope.
    fn end_missing(&mut self) {
        let is_gone = |number: &u32| self.replay.allocation(AllocationNumber(*number)).is_none();
        let gone: Vec<u32> = self.live.keys().copied().filter(is_gone).collect();
        gone.into_iter().for_each(|number| self.freed(number));
    }

    fn end_memory(&mut self, handle: vk::DeviceMemory) {
        if let Some((memory, size, _)) = self.memories.remove(&handle.as_raw()) {
            self.builder.end_memory(memory);
            self.held.count -= 1;
            self.held.bytes -= size;
        }
    }

    fn begin_memory(&mut self, vector: u32, number: u32, size: u64, place: (vk::DeviceMemory, bool)) {
        let (handle, dedicated) = place;
        let memory = self.builder.begin_memory(vector, number, size, dedicated);
        self.memories.insert(handle.as_raw(), (memory, size, dedicated));
        self.held.count += 1;
        self.held.bytes = self.held.bytes.saturating_add(size);
    }

    /// Compares the device memory with that of the allocator.
    fn refresh(&mut self) {
        let map = self.allocator.memory_map();
        let mut blocks = BTreeMap::new();
        let mut dedicated = BTreeMap::new();
        for vector in map.vectors.iter().filter(|it| !it.blocks.is_empty() || !it.dedicated.is_empty()) {
            let number = self.builder.vector(Vector::without_blocks(vector));
            blocks.extend(vector.blocks.iter().map(|it| ((number, it.id), (it.memory, it.size))));
            dedicated.extend(vector.dedicated.iter().map(|it| (it.memory.as_raw(), (number, it.size))));
        }
        let there: BTreeSet<u64> = blocks.values().map(|(memory, _)| memory.as_raw()).collect();
        let is_gone =
            |key: &BlockKey| blocks.get(key).map(|(memory, _)| *memory) != self.blocks.get(key).copied();
        let gone: Vec<BlockKey> = self.blocks.keys().copied().filter(is_gone).collect();
        for key in gone {
            if let Some(handle) = self.blocks.remove(&key) {
                self.end_memory(handle);
            }
        }
        let is_gone = |(handle, (.., is_dedicated)): &(&u64, &(u32, u64, bool))| {
            *is_dedicated && (!dedicated.contains_key(*handle) || there.contains(*handle))
        };
        let gone: Vec<u64> = self.memories.iter().filter(is_gone).map(|(&handle, _)| handle).collect();
        gone.into_iter().for_each(|handle| self.end_memory(vk::DeviceMemory::from_raw(handle)));
        for (key, (memory, size)) in blocks {
            if self.blocks.insert(key, memory).is_none() {
                self.begin_memory(key.0, key.1, size, (memory, false));
            }
        }
        for (handle, (vector, size)) in dedicated {
            if !self.memories.contains_key(&handle) {
                self.begin_memory(vector, 0, size, (vk::DeviceMemory::from_raw(handle), true));
            }
        }
        self.other = self.difference();
    }
}
