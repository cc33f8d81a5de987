//! The dedicated allocations of one memory type or pool. Each has its own `VkDeviceMemory`.

use std::num::NonZeroU64;

use super::block_vector::Annotation;
use super::device_block::{DeviceBlock, MappableMemory};
use sublet_engines::cast::{index, narrow};
use sublet_engines::{BadKey, Key, Tag};

/// One dedicated allocation.
#[derive(Debug)]
pub(crate) struct DedicatedAllocation {
    pub(crate) block: DeviceBlock,
    /// Users of the mapping: guards, and the allocation itself if it is persistently mapped. 64 bits, as for blocks.
    pub(crate) map_count: u64,
    /// True if it was [reserved](DedicatedList::reserve). The caller did not ask for dedicated memory, so it counts as
    /// a block of its pool.
    pub(crate) counts: bool,
    pub(crate) tag: Tag,
    pub(crate) annotation: Annotation,
}

/// Slots with generations, which detect stale keys.
#[derive(Debug, Default)]
pub(crate) struct DedicatedList {
    slots: Vec<(u32, Option<DedicatedAllocation>)>,
    free: Vec<u32>,
    last_generation: u32,
    count: u64,
    bytes: u64,
    /// Allocations that count as blocks of a limited pool, including reserved ones.
    counted: u32,
}

fn split(key: Key) -> Option<(usize, u32)> {
    let low = u32::try_from(key.0.get() & u64::from(u32::MAX)).ok()?;
    let generation = u32::try_from(key.0.get() >> 32).ok()?;
    Some((index(low.checked_sub(1)?), generation))
}

fn join(at: u32, generation: u32) -> Key {
    let low = NonZeroU64::MIN.saturating_add(u64::from(at));
    Key(low | (u64::from(generation) << 32))
}

impl DedicatedList {
    /// The number of allocations that count as blocks.
    pub(crate) fn counted(&self) -> u32 {
        self.counted
    }

    /// Counts one allocation before the driver is called.
    pub(crate) fn reserve(&mut self) {
        self.counted += 1;
    }

    /// Ends a reservation: its allocation failed, or was freed.
    pub(crate) fn unreserve(&mut self) {
        self.counted = self.counted.saturating_sub(1);
    }

    /// Inserts `dedicated`.
    pub(crate) fn insert(&mut self, dedicated: DedicatedAllocation) -> Key {
        self.last_generation = self.last_generation.wrapping_add(1);
        self.count += 1;
        self.bytes += dedicated.block.size;
        let slot = (self.last_generation, Some(dedicated));
        let at = match self.free.pop() {
            Some(at) => {
                self.slots[index(at)] = slot;
                at
            }
            None => {
                self.slots.push(slot);
                narrow(self.slots.len() - 1)
            }
        };
        join(at, self.last_generation)
    }

    /// Removes an allocation.
    pub(crate) fn remove(&mut self, key: Key) -> Result<DedicatedAllocation, BadKey> {
        self.get_mut(key)?;
        let (at, _) = split(key).ok_or(BadKey)?;
        let dedicated = self.slots[at].1.take().ok_or(BadKey)?;
        self.free.push(narrow(at));
        self.count -= 1;
        self.bytes -= dedicated.block.size;
        if dedicated.counts {
            self.unreserve();
        }
        Ok(dedicated)
    }

    pub(crate) fn get_mut(&mut self, key: Key) -> Result<&mut DedicatedAllocation, BadKey> {
        let (at, generation) = split(key).ok_or(BadKey)?;
        match self.slots.get_mut(at) {
            Some((current, Some(dedicated))) if *current == generation => Ok(dedicated),
            _ => Err(BadKey),
        }
    }

    /// Clears the mappings without users and returns their memory, which the caller then unmaps.
    pub(crate) fn take_idle_mappings(&mut self) -> Vec<MappableMemory> {
        let all = self.slots.iter_mut().filter_map(|(_, dedicated)| dedicated.as_mut());
        let idle = all.filter(|dedicated| dedicated.map_count == 0);
        idle.filter_map(|dedicated| dedicated.block.forget_mapped()).collect()
    }

    /// The number of allocations and their bytes.
    pub(crate) fn totals(&self) -> (u64, u64) {
        (self.count, self.bytes)
    }

    /// All allocations with their keys, in the order of their slots.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Key, &DedicatedAllocation)> {
        (0..)
            .zip(&self.slots)
            .filter_map(|(at, (generation, dedicated))| Some((join(at, *generation), dedicated.as_ref()?)))
    }

    /// Removes all allocations.
    pub(crate) fn drain(&mut self) -> Vec<DedicatedAllocation> {
        self.free.clear();
        self.count = 0;
        self.bytes = 0;
        self.counted = 0;
        self.slots.drain(..).filter_map(|(_, dedicated)| dedicated).collect()
    }
}
