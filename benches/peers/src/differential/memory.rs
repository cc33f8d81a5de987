//! The memory of one side: its blocks, their owners, and the allocations in them.

use std::collections::BTreeMap;

use ash::vk;

use super::side::Placement;
use super::tap::{TapLog, TappedMemory};

/// The owner of a `VkDeviceMemory`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum MemoryOwner {
    /// The default vector of a memory type.
    Default(u32),
    /// A pool, by its slot.
    Pool(usize),
}

#[derive(Clone, Debug)]
pub(super) struct SideBlock {
    pub(super) owner: MemoryOwner,
    pub(super) memory_type: u32,
    pub(super) size: u64,
    pub(super) dedicated: bool,
    /// Offsets and ends of the allocations in it.
    used: BTreeMap<u64, u64>,
}

impl SideBlock {
    pub(super) fn is_empty(&self) -> bool {
        self.used.is_empty()
    }
}

/// The memory of one side.
#[derive(Clone, Default, Debug)]
pub(super) struct SideMemory {
    pub(super) blocks: BTreeMap<vk::DeviceMemory, SideBlock>,
}

impl SideMemory {
    /// Applies the driver calls of an operation. `pool` is the operation's pool, if it had one.
    pub(super) fn enter(&mut self, log: &TapLog, pool: Option<usize>) {
        for &TappedMemory { memory, size, memory_type } in &log.got {
            let owner = pool.map_or(MemoryOwner::Default(memory_type), MemoryOwner::Pool);
            let block = SideBlock { owner, memory_type, size, dedicated: false, used: BTreeMap::new() };
            self.blocks.insert(memory, block);
        }
        for memory in &log.freed {
            self.blocks.remove(memory);
        }
    }

    /// Adds an allocation. Returns an error if it cannot be there.
    pub(super) fn place(&mut self, place: &Placement) -> Result<(), String> {
        let Some(block) = self.blocks.get_mut(&place.memory) else {
            return Err(format!("an allocation in memory that was never allocated: {place:?}"));
        };
        block.dedicated = place.dedicated;
        let end = place.offset.checked_add(place.size).filter(|end| *end <= block.size);
        let Some(end) = end else {
            return Err(format!("an allocation leaves its block of {} bytes: {place:?}", block.size));
        };
        let before = block.used.range(..end).next_back().map(|(_, end)| *end);
        if before.is_some_and(|before| before > place.offset) {
            return Err(format!("two allocations overlap: {place:?}"));
        }
        block.used.insert(place.offset, end);
        Ok(())
    }

    /// Removes an allocation. Its block may be freed already.
    pub(super) fn take(&mut self, place: &Placement) {
        if let Some(block) = self.blocks.get_mut(&place.memory) {
            block.used.remove(&place.offset);
        }
    }

    /// Returns all blocks without their names, in an order that is the same on both sides.
    pub(super) fn shape(&self) -> Vec<(MemoryOwner, u64, bool)> {
        let mut shape: Vec<_> =
            self.blocks.values().map(|block| (block.owner, block.size, block.dedicated)).collect();
        shape.sort_unstable();
        shape
    }

    /// Returns the bytes of some blocks.
    pub(super) fn bytes(&self, is_counted: impl Fn(&SideBlock) -> bool) -> u64 {
        self.blocks.values().filter(|block| is_counted(block)).map(|block| block.size).sum()
    }

    /// Returns the numbers of empty blocks and of all blocks of a vector.
    pub(super) fn empties(&self, owner: MemoryOwner) -> (usize, usize) {
        let own = || self.blocks.values().filter(|block| block.owner == owner && !block.dedicated);
        (own().filter(|block| block.is_empty()).count(), own().count())
    }
}
