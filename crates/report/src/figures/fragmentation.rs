//! The fragmentation of free memory.

use serde::Serialize;
use serde::ser::{SerializeStruct, Serializer};

use super::{emptying, share};
use crate::cast::index;
use crate::snapshot::{Block, Snapshot, Vector};
use sublet::Algorithm;

/// The fragmentation of free memory in blocks, for one or more vectors or pools. Dedicated allocations do not count,
/// because none of their memory is free.
///
/// For the blocks b of a vector v, and the free ranges r and allocations a in them:
///
/// | figure | is |
/// |---|---|
/// | `free_bytes` | Σ size(r) |
/// | `free_share()` | `free_bytes` / Σ size(b): the share that the program pays for and does not use |
/// | `largest_free` | max size(r): requests up to this size need no new block, if alignment allows |
/// | `in_largest_bytes` | Σ over the vectors of their `largest_free` |
/// | `scatter()` | 1 − `in_largest_bytes` / `free_bytes`: 0 if each vector's free memory is one range, near 1 if it is many small ones |
/// | `free_ranges` | the number of r |
/// | `empty_blocks`, `empty_bytes` | the b without an a: trimming frees them |
/// | `lonely_blocks`, `lonely_bytes` | the b with one a, and their sizes: one allocation keeps each alive |
/// | `lonely_used_bytes` | Σ size(a) of those |
/// | `removable_blocks`, `removable_bytes` | an estimate of the blocks that defragmentation empties: see below |
///
/// The estimate follows the allocator's planner, one vector at a time. It tries to empty the block with the smallest
/// share in use, then the next. It puts each of the block's allocations, the largest first, into the fullest other
/// block that has a free range for it. The block counts if all of them fit. The estimate ignores alignment, granularity
/// and immovable allocations, so the real gain may be smaller. It also ignores compaction within a block, so the gain
/// may be larger. Empty blocks do not count, nor do blocks of [linear](Algorithm::Linear) pools, which cannot be
/// defragmented.
///
/// ```
/// use ash::vk;
/// use sublet::{AllocationCreateInfo, PoolCreateInfo};
/// use sublet_report::Snapshot;
///
/// # let (_gpu, allocator, allocate) = include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/example/gpu.rs"));
/// let pool = allocator.create_pool(&PoolCreateInfo { block_size: 4096, ..PoolCreateInfo::new(0) })?;
/// let requirements = vk::MemoryRequirements { size: 1024, alignment: 1024, memory_type_bits: !0 };
/// let mut held = Vec::new();
/// for _ in 0..8 {
///     held.push(allocator.allocate_memory(&requirements, &AllocationCreateInfo::in_pool(&pool))?);
/// }
/// // Every second allocation of two full blocks goes. What remains would fit one block.
/// for at in [6, 4, 2, 0] {
///     unsafe { allocator.free_memory(held.remove(at)) }?;
/// }
/// let figures = Snapshot::of(&allocator).figures().total;
/// assert_eq!((figures.blocks, figures.free_ranges, figures.largest_free), (2, 4, 1024));
/// assert_eq!((figures.free_share(), figures.scatter()), (0.5, 0.75));
/// assert_eq!((figures.removable_blocks, figures.removable_bytes), (1, 4096));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Fragmentation {
    /// Number of blocks.
    pub blocks: u64,
    /// Their bytes.
    pub block_bytes: u64,
    /// Number of allocations in them.
    pub allocations: u64,
    /// Bytes of the allocations.
    pub used_bytes: u64,
    /// Number of free ranges.
    pub free_ranges: u64,
    /// Their bytes.
    pub free_bytes: u64,
    /// Bytes of the largest.
    pub largest_free: u64,
    /// Sum of the bytes of each vector's largest free range.
    pub in_largest_bytes: u64,
    /// Blocks without an allocation.
    pub empty_blocks: u64,
    /// Their bytes.
    pub empty_bytes: u64,
    /// Blocks with a single allocation.
    pub lonely_blocks: u64,
    /// Their bytes.
    pub lonely_bytes: u64,
    /// Bytes of those allocations.
    pub lonely_used_bytes: u64,
    /// Blocks that defragmentation would empty, estimated.
    pub removable_blocks: u64,
    /// Their bytes.
    pub removable_bytes: u64,
}

impl Fragmentation {
    /// The figures of one vector or pool.
    ///
    /// # Complexity
    /// O(n log n) for n chunks.
    #[must_use]
    pub fn of(vector: &Vector) -> Self {
        let mut all = Self::default();
        vector.blocks.iter().for_each(|block| all.add_block(block));
        all.in_largest_bytes = all.largest_free;
        if vector.algorithm != Some(Algorithm::Linear) {
            (all.removable_blocks, all.removable_bytes) = emptying::removable(&vector.blocks);
        }
        all
    }

    fn add_block(&mut self, block: &Block) {
        let all = block.statistics();
        let (allocations, used) = (all.statistics.allocation_count, all.statistics.allocation_bytes);
        self.blocks += 1;
        self.block_bytes += block.size;
        self.allocations += allocations;
        self.used_bytes += used;
        self.free_ranges += all.unused_range_count;
        let free = block.chunks.iter().filter(|chunk| chunk.allocation.is_none());
        self.free_bytes += free.map(|chunk| chunk.size).sum::<u64>();
        self.largest_free = self.largest_free.max(all.unused_range_size_max);
        match allocations {
            0 => {
                self.empty_blocks += 1;
                self.empty_bytes += block.size;
            }
            1 => {
                self.lonely_blocks += 1;
                self.lonely_bytes += block.size;
                self.lonely_used_bytes += used;
            }
            _ => {}
        }
    }

    /// Adds `other`, so that `self` describes the vectors of both.
    pub fn add(&mut self, other: &Self) {
        self.blocks += other.blocks;
        self.block_bytes += other.block_bytes;
        self.allocations += other.allocations;
        self.used_bytes += other.used_bytes;
        self.free_ranges += other.free_ranges;
        self.free_bytes += other.free_bytes;
        self.largest_free = self.largest_free.max(other.largest_free);
        self.in_largest_bytes += other.in_largest_bytes;
        self.empty_blocks += other.empty_blocks;
        self.empty_bytes += other.empty_bytes;
        self.lonely_blocks += other.lonely_blocks;
        self.lonely_bytes += other.lonely_bytes;
        self.lonely_used_bytes += other.lonely_used_bytes;
        self.removable_blocks += other.removable_blocks;
        self.removable_bytes += other.removable_bytes;
    }

    /// Returns the free share of the blocks' bytes, from 0 to 1; 0 without blocks.
    #[must_use]
    pub fn free_share(&self) -> f64 {
        share(self.free_bytes, self.block_bytes)
    }

    /// Returns the share of free bytes outside their vector's largest free range, from 0 to 1; 0 if nothing is free.
    #[must_use]
    pub fn scatter(&self) -> f64 {
        share(self.free_bytes.saturating_sub(self.in_largest_bytes), self.free_bytes)
    }
}

impl Serialize for Fragmentation {
    /// Adds `free_share` and `scatter` to the fields.
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let fields = [
            ("blocks", self.blocks),
            ("block_bytes", self.block_bytes),
            ("allocations", self.allocations),
            ("used_bytes", self.used_bytes),
            ("free_ranges", self.free_ranges),
            ("free_bytes", self.free_bytes),
            ("largest_free", self.largest_free),
            ("in_largest_bytes", self.in_largest_bytes),
            ("empty_blocks", self.empty_blocks),
            ("empty_bytes", self.empty_bytes),
            ("lonely_blocks", self.lonely_blocks),
            ("lonely_bytes", self.lonely_bytes),
            ("lonely_used_bytes", self.lonely_used_bytes),
            ("removable_blocks", self.removable_blocks),
            ("removable_bytes", self.removable_bytes),
        ];
        let mut to = to.serialize_struct("Fragmentation", fields.len() + 2)?;
        for (name, value) in fields {
            to.serialize_field(name, &value)?;
        }
        to.serialize_field("free_share", &self.free_share())?;
        to.serialize_field("scatter", &self.scatter())?;
        to.end()
    }
}

/// The [`Fragmentation`] of a whole snapshot, from [`Snapshot::figures`].
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct Figures {
    /// In the order of [`Snapshot::vectors`].
    pub vectors: Vec<Fragmentation>,
    /// By memory type, pools included.
    pub types: Vec<Fragmentation>,
    /// By heap.
    pub heaps: Vec<Fragmentation>,
    /// The sum over all vectors.
    pub total: Fragmentation,
}

impl Snapshot {
    /// Returns the fragmentation of free memory: by vector, by memory type, by heap and in total.
    ///
    /// # Complexity
    /// O(n log n) for n chunks.
    ///
    /// ```
    /// use sublet_report::Snapshot;
    ///
    /// # let (_gpu, allocator, allocate) = include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/example/gpu.rs"));
    /// let snapshot = Snapshot::of(&allocator);
    /// for (vector, figures) in snapshot.vectors.iter().zip(snapshot.figures().vectors) {
    ///     println!("memory type {}: {:.0} % scattered", vector.memory_type, 100.0 * figures.scatter());
    /// }
    /// ```
    #[must_use]
    pub fn figures(&self) -> Figures {
        let mut all = Figures {
            vectors: Vec::with_capacity(self.vectors.len()),
            types: vec![Fragmentation::default(); self.types.len()],
            heaps: vec![Fragmentation::default(); self.heaps.len()],
            total: Fragmentation::default(),
        };
        for vector in &self.vectors {
            let one = Fragmentation::of(vector);
            all.vectors.push(one);
            all.types[index(vector.memory_type)].add(&one);
            all.heaps[index(vector.heap)].add(&one);
            all.total.add(&one);
        }
        all
    }
}
