//! A snapshot of all blocks and chunks.

use std::panic::Location;

use ash::vk;

use super::{DetailedStatistics, TotalStatistics};
use crate::allocation::{AllocationId, ResourceKind};
use crate::engine::Algorithm;

/// A snapshot of everything that an allocator holds: its vectors, their blocks, and the chunks of each block. Returned
/// by [`memory_map`](crate::Allocator::memory_map).
///
/// It holds no lock, and does not change afterwards. Each vector is captured at one moment; other threads may run
/// between two vectors.
///
/// ```
/// # use sublet::*; use ash::vk;
/// # let (gpu, allocator) = sublet::doc_example();
/// let requirements = vk::MemoryRequirements { size: 4096, alignment: 256, memory_type_bits: !0 };
/// let info = AllocationCreateInfo { name: Some("mesh"), ..Default::default() };
/// let allocation = allocator.allocate_memory(&requirements, &info)?;
/// let map = allocator.memory_map();
/// for block in map.vectors.iter().flat_map(|vector| &vector.blocks) {
///     for chunk in &block.chunks {
///         let name = chunk.allocation.as_ref().map(|allocation| allocation.name.as_deref().unwrap_or("(unnamed)"));
///         println!("block {}: {:>9} bytes at {:>9}: {}", block.id, chunk.size, chunk.offset, name.unwrap_or("free"));
///     }
/// }
/// assert_eq!(map.statistics().total.statistics.allocation_bytes, 4096);
/// # unsafe { allocator.free_memory(allocation) }?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct MemoryMap {
    /// The default vectors in the order of their memory types, then the pools in the order of their numbers.
    pub vectors: Vec<VectorMap>,
    pub(crate) memory_types: usize,
    pub(crate) memory_heaps: usize,
}

impl MemoryMap {
    /// Returns the totals of the snapshot.
    ///
    /// # Complexity
    /// O(chunks).
    #[must_use]
    pub fn statistics(&self) -> TotalStatistics {
        let mut all = TotalStatistics::new(self.memory_types, self.memory_heaps);
        for vector in &self.vectors {
            all.add(vector.memory_type_index, vector.heap_index, &vector.statistics());
        }
        all
    }

    /// [`Self::allocations`] with mutable access, to add data of the program.
    pub fn allocations_mut(&mut self) -> impl Iterator<Item = &mut AllocationEntry> {
        self.vectors.iter_mut().flat_map(|vector| {
            let chunks = vector.blocks.iter_mut().flat_map(|block| &mut block.chunks);
            let shared = chunks.filter_map(|chunk| chunk.allocation.as_mut());
            shared.chain(vector.dedicated.iter_mut().map(|dedicated| &mut dedicated.allocation))
        })
    }

    /// Returns every allocation: by vector and block, in the order of offsets, and dedicated ones last.
    pub fn allocations(&self) -> impl Iterator<Item = &AllocationEntry> {
        self.vectors.iter().flat_map(|vector| {
            let chunks = vector.blocks.iter().flat_map(|block| &block.chunks);
            let shared = chunks.filter_map(|chunk| chunk.allocation.as_ref());
            shared.chain(vector.dedicated.iter().map(|dedicated| &dedicated.allocation))
        })
    }
}

/// The blocks of a memory type's default vector, or of a pool.
///
/// ```
/// # use sublet::*;
/// # let (gpu, allocator) = sublet::doc_example();
/// let pool = allocator.create_pool(&PoolCreateInfo { min_block_count: 1, ..PoolCreateInfo::new(0) })?;
/// let map: VectorMap = allocator.pool_memory_map(&pool)?;
/// assert_eq!((map.pool, map.blocks.len()), (Some(pool.number()), 1));
/// # unsafe { allocator.destroy_pool(pool) }?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct VectorMap {
    /// Index of the memory type.
    pub memory_type_index: u32,
    /// Index of its heap.
    pub heap_index: u32,
    /// The [number](crate::Pool::number) of the pool; `None` for a default vector.
    pub pool: Option<u32>,
    /// The pool's name.
    pub pool_name: Option<Box<str>>,
    /// The algorithm of the blocks.
    pub algorithm: Algorithm,
    /// The size of a block in bytes; the maximum if the allocator chooses the sizes.
    pub block_size: u64,
    /// The blocks, in the order of their ids.
    pub blocks: Vec<BlockMap>,
    /// The dedicated allocations, in no specified order.
    pub dedicated: Vec<DedicatedMap>,
}

impl VectorMap {
    /// Returns the totals of this vector.
    ///
    /// # Complexity
    /// O(chunks).
    #[must_use]
    pub fn statistics(&self) -> DetailedStatistics {
        let blocks = self.blocks.iter().map(BlockMap::statistics);
        DetailedStatistics::of_vector(blocks, self.dedicated.iter().map(|dedicated| dedicated.size))
    }
}

/// One block and its chunks.
///
/// ```
/// # use sublet::*;
/// # let (gpu, allocator) = sublet::doc_example();
/// # let info = PoolCreateInfo { block_size: 1 << 20, min_block_count: 2, ..PoolCreateInfo::new(0) };
/// let pool = allocator.create_pool(&info)?;
/// let blocks: Vec<BlockMap> = allocator.pool_memory_map(&pool)?.blocks;
/// assert_eq!((blocks[1].id, blocks[1].size, blocks[1].chunks.len()), (1, 1 << 20, 1));
/// # unsafe { allocator.destroy_pool(pool) }?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct BlockMap {
    /// The number of the block in its vector or pool. It is stable, and never reused.
    pub id: u32,
    /// The device memory of the block.
    pub memory: vk::DeviceMemory,
    /// The size in bytes.
    pub size: u64,
    /// The number of users of the block's mapping: guards, persistently mapped allocations, and leased ranges that
    /// contain such allocations.
    pub map_count: u64,
    /// Used and free chunks, in the order of their offsets. They cover the block.
    pub chunks: Vec<ChunkMap>,
}

impl BlockMap {
    /// Returns the totals of this block.
    #[must_use]
    pub fn statistics(&self) -> DetailedStatistics {
        let chunks = self.chunks.iter().map(|chunk| (chunk.size, chunk.allocation.is_some()));
        DetailedStatistics::of_block(self.size, chunks)
    }
}

/// A range of a block.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct ChunkMap {
    /// The offset in the block in bytes.
    pub offset: u64,
    /// The size in bytes, including rounding.
    pub size: u64,
    /// The allocation in the chunk; `None` if it is free. Two neighbouring chunks can both be free if shards lease
    /// ranges of the block.
    pub allocation: Option<AllocationEntry>,
}

/// A dedicated allocation.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct DedicatedMap {
    /// The device memory, which contains only this allocation.
    pub memory: vk::DeviceMemory,
    /// The size in bytes.
    pub size: u64,
    /// The number of users of its mapping.
    pub map_count: u64,
    /// The allocation.
    pub allocation: AllocationEntry,
}

/// The properties of an allocation in a [`MemoryMap`].
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct AllocationEntry {
    /// The [id](crate::Allocation::id) of the allocation.
    pub id: AllocationId,
    /// The kind of its resource.
    pub kind: ResourceKind,
    /// The lower bits of the `VkBufferUsageFlags` or `VkImageUsageFlags`, as far as they are stored; 0 if unknown.
    pub usage: u32,
    /// Its name.
    pub name: Option<Box<str>>,
    /// The caller's user data, with [`Tracking::USER_DATA`](crate::Tracking::USER_DATA).
    pub user_data: Option<u64>,
    /// The source location of the allocation, with [`Tracking::CALLER`](crate::Tracking::CALLER).
    pub caller: Option<&'static Location<'static>>,
}
