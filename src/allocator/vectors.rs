//! The vectors of an allocator: one for each memory type, then those of the pools.

use super::pools::MAX_BLOCK_SIZE;
use super::{AllocatorCreateInfo, AllocatorInner};
use crate::allocation::allocation_flags;
use crate::blocks::MemoryBlockVector;
use crate::create_info::{AllocatorCreateFlags, BlockSizes, GrowthPreset};
use crate::device::MemoryAllocateNext;
use crate::engine::Algorithm;
use crate::pool::{BlockSizing, NO_LIMIT, VectorConfig, VectorFacts};
use crate::vector::policy::LiveGrowth;
use sublet_engines::Alignment;
use sublet_engines::cast::{index, narrow};

/// In heaps up to this size, blocks have an eighth of the heap.
const SMALL_HEAP_MAX_SIZE: u64 = 1 << 30;
/// The default block size in larger heaps.
const DEFAULT_LARGE_HEAP_BLOCK_SIZE: u64 = 256 << 20;
/// Managed block sizes are multiples of this.
const BLOCK_SIZE_STEP: u64 = 32;
/// Usual block sizes that follow the bytes in use are multiples of the first number, or of an eighth of a smaller block
/// size. They are at most these bytes divided by the second number.
const BALANCED: (u32, u32) = (4 << 20, 4);
/// The same for [`GrowthPreset::MemoryFirst`].
const MEMORY_FIRST: (u32, u32) = (1 << 20, 6);

/// The vector of a memory type.
pub(super) struct DefaultVector {
    pub(super) facts: VectorFacts,
    pub(super) vector: MemoryBlockVector,
}
impl AllocatorInner {
    /// Activates one vector for each memory type.
    pub(super) fn activate_defaults(&mut self, info: &AllocatorCreateInfo<'_>) {
        let large = match info.preferred_large_heap_block_size {
            0 => DEFAULT_LARGE_HEAP_BLOCK_SIZE,
            size => size,
        };
        let keeps_only_last = info.flags.contains(AllocatorCreateFlags::KEEP_ONLY_LAST_BLOCK);
        let default = |memory_type| {
            let heap_size = self.context.budgets.heap_size(self.context.heap_of(memory_type));
            let asked = info.block_sizes.get(index(memory_type)).copied().unwrap_or_default();
            let most = self.context.device.max_memory_size;
            let BlockSizes { first, largest: block_size } = managed_sizes(heap_size, large, asked, most);
            let sizing = match info.growth {
                _ if asked != BlockSizes::default() => BlockSizing::Doubling { first },
                _ if info.preferred_large_heap_block_size != 0 => BlockSizing::Vma,
                GrowthPreset::Vma => BlockSizing::Vma,
                preset => BlockSizing::Live(self.live_growth(preset, memory_type, block_size)),
            };
            let config = VectorConfig {
                memory_type,
                algorithm: Algorithm::Tlsf,
                block_size,
                sizing,
                fixed_block_size: false,
                min_blocks: 0,
                max_blocks: NO_LIMIT,
                empty_blocks_kept: info.empty_blocks_kept,
                keeps_only_last,
                granularity: self.context.device.granularity,
                min_alignment: self.least_alignment(memory_type),
                priority: 0.5,
                next: MemoryAllocateNext::NONE,
                scope: None,
            };
            let facts = VectorFacts {
                vector: memory_type,
                config,
                // The fast path would not fill the last block.
                largest_shared: if info.debug.is_special() || keeps_only_last { 0 } else { block_size / 2 },
                host: self.host_flags(memory_type),
            };
            DefaultVector { facts, vector: MemoryBlockVector::unused() }
        };
        self.defaults = (0..narrow(self.context.device.memory_types().len())).map(default).collect();
        // Activated in place, because the active state is large.
        for DefaultVector { facts, vector } in &self.defaults {
            let active = vector.activate(&self.context, facts.config, None);
            debug_assert!(active.is_ok(), "a vector without blocks asks nothing of the driver");
        }
    }

    /// The growth of blocks that follow the bytes in use. The cap bounds the time of one call of the driver.
    fn live_growth(&self, preset: GrowthPreset, memory_type: u32, block_size: u64) -> LiveGrowth {
        let (step, part) = if preset == GrowthPreset::MemoryFirst { MEMORY_FIRST } else { BALANCED };
        let cap = self.context.cost_of(memory_type).largest_cheap();
        let eighth = (block_size / 8).next_multiple_of(BLOCK_SIZE_STEP);
        // In small heaps, a block that one request fills badly would take much of the heap.
        LiveGrowth {
            step: u32::try_from(eighth).map_or(step, |eighth| step.min(eighth)),
            cap: cap.min(block_size / 4),
            part,
        }
    }

    /// The vector with that number.
    #[inline]
    pub(super) fn vector(&self, number: u32) -> Option<&MemoryBlockVector> {
        match self.defaults.get(index(number)) {
            Some(default) => Some(&default.vector),
            None => self.pool_vectors.get(self.pool_number(number)),
        }
    }

    /// The index in the table of pools for a vector number.
    #[inline]
    pub(super) fn pool_number(&self, number: u32) -> u32 {
        number.wrapping_sub(narrow(self.defaults.len()))
    }

    /// All vectors: first one for each memory type, then the pools.
    pub(super) fn vectors(&self) -> impl Iterator<Item = &MemoryBlockVector> {
        self.numbered_vectors().map(|(_, vector)| vector)
    }

    /// Every vector, with its number.
    pub(super) fn numbered_vectors(&self) -> impl Iterator<Item = (u32, &MemoryBlockVector)> {
        let defaults = self.defaults.iter().map(|default| &default.vector);
        (0..).zip(defaults.chain(self.pool_vectors.iter()))
    }

    /// The flags that all allocations of a memory type have.
    pub(super) fn host_flags(&self, memory_type: u32) -> u8 {
        let device = &self.context.device;
        match (device.is_host_visible(memory_type), device.is_coherent(memory_type)) {
            (false, _) => 0,
            (true, true) => allocation_flags::HOST_VISIBLE,
            (true, false) => allocation_flags::HOST_VISIBLE | allocation_flags::NON_COHERENT,
        }
    }

    /// The minimum alignment. In memory that needs flushes, allocations begin at an atom, so that no two share one.
    pub(super) fn least_alignment(&self, memory_type: u32) -> Alignment {
        let flushed = self.host_flags(memory_type) & allocation_flags::NON_COHERENT != 0;
        if flushed { self.context.device.atom } else { Alignment::ONE }
    }
}

/// The requested sizes, or the defaults, limited by the heap and by the largest allowed `VkDeviceMemory`.
fn managed_sizes(heap_size: u64, large: u64, asked: BlockSizes, max_memory_size: u64) -> BlockSizes {
    let down = |size: u64| size - size % BLOCK_SIZE_STEP;
    let most = down(heap_size).min(MAX_BLOCK_SIZE).min(down(max_memory_size));
    // Cannot overflow: the bounds are multiples of the step.
    let step = |size: u64, most: u64| size.min(most).next_multiple_of(BLOCK_SIZE_STEP);
    let largest = match asked.largest {
        0 => default_block_size(heap_size, large, max_memory_size),
        size => step(size, most).max(BLOCK_SIZE_STEP),
    };
    let first = if asked.first == 0 { largest / 8 } else { asked.first };
    BlockSizes { first: step(first.max(1), largest), largest }
}

/// A heap's preferred block size: an eighth of a small heap, else `large`, limited by the largest allowed
/// `VkDeviceMemory`. A multiple of [`BLOCK_SIZE_STEP`].
fn default_block_size(heap_size: u64, large: u64, max_memory_size: u64) -> u64 {
    let size = if heap_size <= SMALL_HEAP_MAX_SIZE {
        heap_size / 8
    } else {
        // A block that exceeds the heap or an engine's limit would make every allocation dedicated.
        large.min(heap_size - heap_size % BLOCK_SIZE_STEP).min(MAX_BLOCK_SIZE)
    };
    // The device's limit on one allocation also applies; Vulkan guarantees at least 2^30.
    let size = size.min((max_memory_size - max_memory_size % BLOCK_SIZE_STEP).max(BLOCK_SIZE_STEP));
    // Cannot overflow: the sizes above are below 2^63, or multiples already.
    size.max(1).next_multiple_of(BLOCK_SIZE_STEP)
}
