//! How far free memory is scattered.
#![forbid(unsafe_code)]

use serde::Serialize;
use serde::ser::{SerializeStruct, Serializer};

use super::{room, share};
use crate::cast::index;
use crate::snapshot::{Block, Snapshot, Vector};
use sublet::Algorithm;

/// How far the free memory of blocks is scattered, for a vector or pool, or for several together. Dedicated allocations
/// have no part in it: nothing of their memory is free.
///
/// With the blocks b of a vector v, the free ranges r and the allocations a in them:
///
/// | figure | is |
/// |---|---|
/// | `free_bytes` | Σ size(r) |
/// | `free_share()` | `free_bytes` / Σ size(b): what the program pays for and does not use |
/// | `largest_free` | max size(r): a request that is not larger needs no new block, as far as alignment allows |
/// | `in_largest_bytes` | Σ over the vectors of their `largest_free` |
/// | `scatter()` | 1 − `in_largest_bytes` / `free_bytes`: 0 if each vector's free memory is one range, near 1 if it lies in crumbs |
/// | `free_ranges` | how many r |
/// | `empty_blocks`, `empty_bytes` | the b without an a: trimming gives them back |
/// | `lonely_blocks`, `lonely_bytes` | the b with one a, and their sizes: one allocation keeps each of them |
/// | `lonely_used_bytes` | Σ size(a) of those |
/// | `removable_blocks`, `removable_bytes` | an estimate of what defragmentation empties: see below |
///
/// The estimate tries, vector by vector, to empty the block that has the fewest bytes in use, then the next: each of
/// its allocations, the largest first, is put in the smallest free range of the other blocks that takes it, and the
/// block counts if all find room. Alignment, granularity and what the program may not move are not known, so less may
/// come out; that allocations also move together within a block is left out, so more may. Blocks that are empty already
/// do not count, nor do those of [linear](Algorithm::Linear) pools, which are not defragmented.
///
/// ```
/// # use sublet::*; use sublet_report::Snapshot; use ash::vk;
/// # let gpu = sim::Gpu::new(sim::Profile::by_name("lavapipe").unwrap());
/// # let allocator = unsafe { Allocator::new(&AllocatorCreateInfo::for_gpu(&gpu)) }?;
/// let pool = allocator.create_pool(&PoolCreateInfo { block_size: 4096, ..PoolCreateInfo::new(0) })?;
/// let requirements = vk::MemoryRequirements { size: 1024, alignment: 1024, memory_type_bits: !0 };
/// let mut held = Vec::new();
/// for _ in 0..8 {
///     held.push(allocator.allocate_memory(&requirements, &AllocationCreateInfo::in_pool(&pool))?);
/// }
/// // Of two full blocks every second allocation goes: what is left would fit one.
/// for at in [6, 4, 2, 0] {
///     unsafe { allocator.free_memory(held.remove(at)) }?;
/// }
/// let figures = Snapshot::of(&allocator).figures().total;
/// assert_eq!((figures.blocks, figures.free_ranges, figures.largest_free), (2, 4, 1024));
/// assert_eq!((figures.free_share(), figures.scatter()), (0.5, 0.75));
/// assert_eq!((figures.removable_blocks, figures.removable_bytes), (1, 4096));
/// # for allocation in held { unsafe { allocator.free_memory(allocation) }?; }
/// # unsafe { allocator.destroy_pool(pool) }?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Fragmentation {
    /// How many blocks.
    pub blocks: u64,
    /// Their bytes.
    pub block_bytes: u64,
    /// How many allocations are in them.
    pub allocations: u64,
    /// Bytes of the allocations.
    pub used_bytes: u64,
    /// How many ranges are free.
    pub free_ranges: u64,
    /// Bytes of those.
    pub free_bytes: u64,
    /// Bytes of the largest of those.
    pub largest_free: u64,
    /// Bytes of the largest free range of each vector, added up.
    pub in_largest_bytes: u64,
    /// Blocks without an allocation.
    pub empty_blocks: u64,
    /// Their bytes.
    pub empty_bytes: u64,
    /// Blocks that one allocation keeps.
    pub lonely_blocks: u64,
    /// Their bytes.
    pub lonely_bytes: u64,
    /// Bytes of the allocations that keep them.
    pub lonely_used_bytes: u64,
    /// Blocks that defragmentation would empty: an estimate.
    pub removable_blocks: u64,
    /// Their bytes.
    pub removable_bytes: u64,
}

impl Fragmentation {
    /// Of one vector or pool.
    ///
    /// # Complexity
    /// O(n log n) for n chunks.
    ///
    /// ```
    /// # use sublet::*; use sublet_report::{{Fragmentation, Snapshot}};
    /// # let gpu = sim::Gpu::new(sim::Profile::by_name("lavapipe").unwrap());
    /// # let allocator = unsafe { Allocator::new(&AllocatorCreateInfo::for_gpu(&gpu)) }?;
    /// let pool = allocator.create_pool(&PoolCreateInfo { min_block_count: 2, ..PoolCreateInfo::new(0) })?;
    /// let snapshot = Snapshot::of(&allocator);
    /// let figures = Fragmentation::of(snapshot.vectors.last().unwrap());
    /// assert_eq!((figures.blocks, figures.empty_blocks, figures.scatter()), (2, 2, 0.5));
    /// # unsafe { allocator.destroy_pool(pool) }?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn of(vector: &Vector) -> Self {
        let mut all = Self::default();
        vector.blocks.iter().for_each(|block| all.add_block(block));
        all.in_largest_bytes = all.largest_free;
        if vector.algorithm != Some(Algorithm::Linear) {
            (all.removable_blocks, all.removable_bytes) = room::removable(&vector.blocks);
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

    /// Adds up: `self` is then of the vectors of both.
    ///
    /// ```
    /// # use sublet_report::Fragmentation;
    /// let mut one = Fragmentation::default();
    /// one.add(&Fragmentation::default());
    /// assert_eq!(one, Fragmentation::default());
    /// ```
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

    /// The share of the blocks' bytes that is free, from 0 to 1; 0 without blocks.
    ///
    /// ```
    /// # use sublet_report::Fragmentation;
    /// assert_eq!(Fragmentation::default().free_share(), 0.0);
    /// ```
    #[must_use]
    pub fn free_share(&self) -> f64 {
        share(self.free_bytes, self.block_bytes)
    }

    /// The share of the free bytes that is not in the largest free range of its vector, from 0 to 1; 0 if nothing is
    /// free.
    ///
    /// ```
    /// # use sublet_report::Fragmentation;
    /// assert_eq!(Fragmentation::default().scatter(), 0.0);
    /// ```
    #[must_use]
    pub fn scatter(&self) -> f64 {
        share(self.free_bytes.saturating_sub(self.in_largest_bytes), self.free_bytes)
    }
}

impl Serialize for Fragmentation {
    /// The fields, and `free_share` and `scatter`.
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

/// The [`Fragmentation`] of everything: made by [`Snapshot::figures`].
///
/// ```
/// # use sublet::*; use sublet_report::{{Figures, Snapshot}};
/// # let gpu = sim::Gpu::new(sim::Profile::by_name("lavapipe").unwrap());
/// # let allocator = unsafe { Allocator::new(&AllocatorCreateInfo::for_gpu(&gpu)) }?;
/// let figures: Figures = Snapshot::of(&allocator).figures();
/// assert_eq!((figures.vectors.len(), figures.types.len(), figures.heaps.len()), (1, 1, 1));
/// assert_eq!(figures.heaps[0], figures.total);
/// # Ok::<(), CreateAllocatorError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct Figures {
    /// In the order of [`Snapshot::vectors`].
    pub vectors: Vec<Fragmentation>,
    /// By memory type, pools included.
    pub types: Vec<Fragmentation>,
    /// By heap.
    pub heaps: Vec<Fragmentation>,
    /// In all.
    pub total: Fragmentation,
}

impl Snapshot {
    /// How far the free memory is scattered: by vector, by memory type, by heap and in all.
    ///
    /// # Complexity
    /// O(n log n) for n chunks.
    ///
    /// ```
    /// # use sublet::*; use sublet_report::Snapshot;
    /// # let gpu = sim::Gpu::new(sim::Profile::by_name("lavapipe").unwrap());
    /// # let allocator = unsafe { Allocator::new(&AllocatorCreateInfo::for_gpu(&gpu)) }?;
    /// let snapshot = Snapshot::of(&allocator);
    /// for (vector, figures) in snapshot.vectors.iter().zip(snapshot.figures().vectors) {
    ///     println!("memory type {}: {:.0} % scattered", vector.memory_type, 100.0 * figures.scatter());
    /// }
    /// # Ok::<(), CreateAllocatorError>(())
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
