//! What a snapshot is made of. The names of the fields are those of the JSON.

use serde::{Deserialize, Serialize};

use super::text;
use sublet::Algorithm;
use sublet::ResourceKind;

/// The device that a [`Snapshot`](super::Snapshot) was taken on.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Device {
    /// What it calls itself.
    pub name: Option<Box<str>>,
    /// `VkPhysicalDeviceType`, without the prefix: `DISCRETE_GPU`.
    pub kind: Option<Box<str>>,
    /// `major.minor.patch` of the Vulkan version that it has.
    pub api_version: Option<Box<str>>,
    /// `driverVersion`, which each vendor packs as it likes.
    pub driver_version: Option<u32>,
    /// `vendorID`.
    pub vendor_id: Option<u32>,
    /// `deviceID`.
    pub device_id: Option<u32>,
    /// `maxMemoryAllocationCount`: this many blocks and dedicated allocations can be live.
    pub max_memory_allocation_count: Option<u32>,
    /// `bufferImageGranularity`, in bytes.
    pub buffer_image_granularity: Option<u64>,
    /// `nonCoherentAtomSize`, in bytes.
    pub non_coherent_atom_size: Option<u64>,
}

/// A heap of the device.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Heap {
    /// Bytes.
    pub size: u64,
    /// `VkMemoryHeapFlags`, without prefix and suffix: `DEVICE_LOCAL`. Flags without a name are a hexadecimal number.
    pub flags: Vec<Box<str>>,
    /// Bytes that may be in use.
    pub budget: u64,
    /// Bytes in use, by the whole program where the driver says so.
    pub usage: u64,
}

/// A memory type of the device.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct MemoryType {
    /// The index of its heap.
    pub heap: u32,
    /// `VkMemoryPropertyFlags`, without prefix and suffix: `HOST_VISIBLE`. Flags without a name are a hexadecimal
    /// number.
    pub flags: Vec<Box<str>>,
}

/// The blocks of one memory type's default vector, or of a pool.
///
/// ```
/// use sublet::PoolCreateInfo;
/// use sublet_report::{Snapshot, Vector};
///
/// # let (_gpu, allocator, allocate) = include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/example/gpu.rs"));
/// let info = PoolCreateInfo { block_size: 1 << 20, min_block_count: 2, ..PoolCreateInfo::new(0) };
/// let pool = allocator.create_pool(&info)?;
/// let snapshot = Snapshot::of(&allocator);
/// let vector: &Vector = snapshot.vectors.iter().find(|it| it.pool == Some(pool.number())).unwrap();
/// assert_eq!(vector.statistics(), allocator.calculate_pool_statistics(&pool)?);
/// for block in &vector.blocks {
///     assert_eq!((block.size, block.chunks.len(), &block.chunks[0].allocation), (1 << 20, 1, &None));
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Vector {
    /// Index of the memory type.
    pub memory_type: u32,
    /// Index of its heap.
    pub heap: u32,
    /// The number of the pool; `None` for a default vector. VMA's pools are numbered as they stand in the file.
    pub pool: Option<u32>,
    /// The pool's name.
    pub name: Option<Box<str>>,
    /// How blocks are divided; VMA does not say.
    #[serde(default, with = "text::algorithm")]
    pub algorithm: Option<Algorithm>,
    /// Bytes of a block; the most of them if the allocator manages the sizes.
    pub block_size: u64,
    /// The blocks, in the order of their ids.
    pub blocks: Vec<Block>,
    /// The dedicated allocations.
    pub dedicated: Vec<Dedicated>,
}

/// One block and its chunks.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Block {
    /// The block's number in its vector or pool.
    pub id: u32,
    /// Bytes.
    pub size: u64,
    /// Users of the block's mapping.
    pub map_count: u64,
    /// Used and free chunks, in the order of their offsets.
    pub chunks: Vec<Chunk>,
}

/// A range of a block.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Chunk {
    /// Bytes from the start of the block.
    pub offset: u64,
    /// Bytes, rounding included.
    pub size: u64,
    /// What is there; `None` if it is free.
    pub allocation: Option<Entry>,
}

/// A dedicated allocation.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Dedicated {
    /// Bytes.
    pub size: u64,
    /// Users of its mapping; VMA does not say.
    pub map_count: Option<u64>,
    /// What it is for.
    pub allocation: Entry,
}

/// What is known of an allocation in a [`Snapshot`](super::Snapshot).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Entry {
    /// The text of its [id](sublet::Allocation::id); VMA has none.
    pub id: Option<Box<str>>,
    /// What it is for. In JSON: `BUFFER`, `IMAGE_OPTIMAL`.
    #[serde(with = "text::kind")]
    pub kind: ResourceKind,
    /// `VkBufferUsageFlags` or `VkImageUsageFlags`, as far as they are kept; 0 if they are not known.
    pub usage: u64,
    /// Its name.
    pub name: Option<Box<str>>,
    /// What the caller keeps with it. In JSON: a hexadecimal number as a string, because numbers there end at 2^53.
    #[serde(default, with = "text::user_data")]
    pub user_data: Option<u64>,
    /// Where it was allocated: `file:line`.
    pub caller: Option<Box<str>>,
}
