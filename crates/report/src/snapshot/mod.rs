//! The contents of an allocator at one moment, as plain data that outlives it.

mod check;
mod descriptors;
mod error;
#[cfg(feature = "trace")]
mod foreign;
mod json;
mod live;
mod parts;
#[cfg(feature = "trace")]
mod replayed;
mod text;
mod vma;

pub use descriptors::{
    DescriptorHeapMap, DescriptorPoolMap, DescriptorPools, PoolDescriptors, PoolState, SlotUse, Slots,
};
pub use error::{FaultPosition, ReadSnapshotError, SnapshotFault};
pub use parts::{Block, Chunk, Dedicated, Device, Entry, Heap, MemoryType, Vector};

use sublet::{DetailedStatistics, TotalStatistics};

/// The contents of an allocator at one moment: heaps and budgets, and each block with its chunks. It is plain data
/// without handles, to be saved, sent, read, compared and drawn.
///
/// It comes from a live allocator ([`Self::of`]), from its [`MemoryMap`](sublet::MemoryMap) ([`Self::new`]), or from a
/// file ([`Self::from_json`]) of Sublet or of VMA. Values that a file does not have are `None`.
///
/// All three return a consistent snapshot. Its heap and type indices exist. The chunks of a block are in order of
/// offset, lie within the block and do not overlap. Blocks and pools are unique, and the sum of all sizes fits a `u64`.
/// The runs of a descriptor heap tile it. A program that edits a snapshot has to keep it consistent.
///
/// ```
/// use sublet_report::Snapshot;
///
/// # let (_gpu, allocator, allocate) = include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/example/gpu.rs"));
/// let mesh = allocate(&allocator, "mesh", 4096);
/// let mut snapshot = Snapshot::of(&allocator);
/// snapshot.title = Some("after the level was loaded".into());
/// assert_eq!(snapshot.statistics(), allocator.calculate_statistics());
/// let json = snapshot.to_json();
/// assert_eq!(Snapshot::from_json(&json)?, snapshot);
/// # Ok::<(), sublet_report::ReadSnapshotError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Snapshot {
    /// A human-readable title, which the program may set.
    pub title: Option<Box<str>>,
    /// Identifies the run of the program, and the allocator in it. [Ids](Entry::id) of two snapshots are comparable
    /// only if their runs are equal.
    pub run: Option<Box<str>>,
    /// The device.
    pub device: Device,
    /// The heaps, in the order of their indices.
    pub heaps: Vec<Heap>,
    /// The memory types, in the order of their indices.
    pub types: Vec<MemoryType>,
    /// The default vectors in the order of their memory types, then the pools.
    pub vectors: Vec<Vector>,
    /// Descriptor heaps that the program has added: see [`Self::add_descriptor_heap`].
    pub descriptor_heaps: Vec<DescriptorHeapMap>,
    /// Descriptor pools that the program has added: see [`Self::add_descriptor_sets`].
    pub descriptor_pools: Vec<DescriptorPools>,
}

/// An allocation of a [`Snapshot`], and its position.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Located<'a> {
    /// Its known properties.
    pub entry: &'a Entry,
    /// Size in bytes, including rounding.
    pub size: u64,
    /// Bytes from the start of the block; 0 if it is dedicated.
    pub offset: u64,
    /// The block; `None` if it is dedicated.
    pub block: Option<&'a Block>,
    /// The vector or pool.
    pub vector: &'a Vector,
    /// The index of `vector` in [`Snapshot::vectors`].
    pub vector_index: usize,
}

impl Snapshot {
    /// Iterates over all allocations, vector by vector: blocks in order, with their allocations in order of offset,
    /// then dedicated ones.
    ///
    /// ```
    /// use sublet_report::Snapshot;
    ///
    /// # let (_gpu, allocator, allocate) = include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/example/gpu.rs"));
    /// let mesh = allocate(&allocator, "mesh", 4096);
    /// let snapshot = Snapshot::of(&allocator);
    /// let found = snapshot.allocations().next().unwrap();
    /// assert_eq!(found.entry.id.as_deref(), Some(&*mesh.id().to_string()));
    /// assert_eq!((found.vector.memory_type, found.offset, found.size), (0, mesh.offset(), 4096));
    /// ```
    pub fn allocations(&self) -> impl Iterator<Item = Located<'_>> {
        self.vectors.iter().enumerate().flat_map(|(vector_index, vector)| {
            let shared = vector.blocks.iter().flat_map(move |block| {
                block.chunks.iter().filter_map(move |chunk| {
                    let entry = chunk.allocation.as_ref()?;
                    let (size, offset) = (chunk.size, chunk.offset);
                    Some(Located { entry, size, offset, block: Some(block), vector, vector_index })
                })
            });
            let dedicated = vector.dedicated.iter().map(move |dedicated| {
                let entry = &dedicated.allocation;
                Located { entry, size: dedicated.size, offset: 0, block: None, vector, vector_index }
            });
            shared.chain(dedicated)
        })
    }

    /// Returns sums by memory type, by heap and in total, equal to the allocator's.
    ///
    /// # Complexity
    /// O(chunks).
    #[must_use]
    pub fn statistics(&self) -> TotalStatistics {
        let mut all = TotalStatistics::new(self.types.len(), self.heaps.len());
        for vector in &self.vectors {
            all.add(vector.memory_type, vector.heap, &vector.statistics());
        }
        all
    }
}

impl Vector {
    /// Returns sums over the blocks and dedicated allocations.
    #[must_use]
    pub fn statistics(&self) -> DetailedStatistics {
        let blocks = self.blocks.iter().map(Block::statistics);
        DetailedStatistics::of_vector(blocks, self.dedicated.iter().map(|dedicated| dedicated.size))
    }
}

impl Block {
    /// Returns sums over the chunks.
    #[must_use]
    pub fn statistics(&self) -> DetailedStatistics {
        let chunks = self.chunks.iter().map(|chunk| (chunk.size, chunk.allocation.is_some()));
        DetailedStatistics::of_block(self.size, chunks)
    }
}
