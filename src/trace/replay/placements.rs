//! A hash of the places of allocations.

use std::collections::BTreeMap;

use ash::vk;
use ash::vk::Handle as _;

use crate::allocation::Allocation;

/// The constants of FNV-1a for 64 bits.
const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0100_0000_01b3;

/// Tracks allocations, and hashes their places: equal placements have equal hashes.
///
/// Handles and ids are excluded, because drivers choose them. Blocks are numbered by first use: the first block with an
/// allocation is 0. Empty blocks are removed.
#[derive(Debug)]
pub(super) struct Placements {
    digest: u64,
    /// By handle: the number of the block, and its number of live allocations.
    blocks: BTreeMap<u64, (u64, u64)>,
    next: u64,
}

impl Placements {
    pub(super) fn new() -> Self {
        Self { digest: BASIS, blocks: BTreeMap::new(), next: 0 }
    }

    pub(super) fn digest(&self) -> u64 {
        self.digest
    }

    /// Adds an allocation that was placed or moved. `in_pool` is true in a pool or a scope.
    pub(super) fn placed(&mut self, allocation: &Allocation, in_pool: bool) {
        let (block, live) = self.blocks.entry(allocation.memory().as_raw()).or_insert_with(|| {
            self.next += 1;
            (self.next - 1, 0)
        });
        *live += 1;
        let words = [
            u64::from(allocation.memory_type_index()),
            u64::from(in_pool) << 1 | u64::from(allocation.is_dedicated()),
            *block,
            allocation.offset(),
            allocation.size(),
        ];
        words.into_iter().for_each(|word| self.add(word));
    }

    /// Adds a failed allocation.
    pub(super) fn refused(&mut self) {
        self.add(u64::MAX);
    }

    /// Removes an allocation from its block.
    pub(super) fn left(&mut self, memory: vk::DeviceMemory) {
        let handle = memory.as_raw();
        if let Some((_, live)) = self.blocks.get_mut(&handle) {
            *live -= 1;
            if *live == 0 {
                self.blocks.remove(&handle);
            }
        }
    }

    fn add(&mut self, word: u64) {
        for byte in word.to_le_bytes() {
            self.digest = (self.digest ^ u64::from(byte)).wrapping_mul(PRIME);
        }
    }
}
