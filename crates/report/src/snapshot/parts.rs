//! The parts of a snapshot. The field names are those of the JSON.

use serde::{Deserialize, Serialize};

use super::text;
use sublet::Algorithm;
use sublet::ResourceKind;

/// The device that a [`Snapshot`](super::Snapshot) was taken on.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Device {
    /// Its name.
    pub name: Option<Box<str>>,
    /// `VkPhysicalDeviceType`, without the prefix: `DISCRETE_GPU`.
    pub kind: Option<Box<str>>,
    /// The Vulkan version that it supports, as `major.minor.patch`.
    pub api_version: Option<Box<str>>,
    /// `driverVersion`, in a vendor-specific encoding.
    pub driver_version: Option<u32>,
    /// `vendorID`.
    pub vendor_id: Option<u32>,
    /// `deviceID`.
    pub device_id: Option<u32>,
    /// `maxMemoryAllocationCount`: the maximum number of live blocks and dedicated allocations.
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
    /// Size in bytes.
    pub size: u64,
    /// `VkMemoryHeapFlags`, without prefix and suffix: `DEVICE_LOCAL`. Flags without a name are a hexadecimal number.
    pub flags: Vec<Box<str>>,
    /// Bytes that may be in use.
    pub budget: u64,
    /// Bytes in use, by the whole program if the driver reports it.
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
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Vector {
    /// Index of the memory type.
    pub memory_type: u32,
    /// Index of its heap.
    pub heap: u32,
    /// The number of the pool; `None` for a default vector. Pools from VMA are numbered in file order.
    pub pool: Option<u32>,
    /// The pool's name.
    pub name: Option<Box<str>>,
    /// The algorithm that divides the blocks; `None` from VMA.
    #[serde(default, with = "text::algorithm")]
    pub algorithm: Option<Algorithm>,
    /// Bytes of a block; the maximum if the allocator chooses the sizes.
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
    /// Size in bytes.
    pub size: u64,
    /// Number of mappings.
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
    /// Size in bytes, including rounding.
    pub size: u64,
    /// The allocation; `None` if the range is free.
    pub allocation: Option<Entry>,
}

/// A dedicated allocation.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Dedicated {
    /// Size in bytes.
    pub size: u64,
    /// Number of mappings; `None` from VMA.
    pub map_count: Option<u64>,
    /// Its properties.
    pub allocation: Entry,
}

/// The known properties of an allocation in a [`Snapshot`](super::Snapshot).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Entry {
    /// Its [id](sublet::Allocation::id) as text; `None` from VMA.
    pub id: Option<Box<str>>,
    /// The kind of resource. In JSON: `BUFFER`, `IMAGE_OPTIMAL`.
    #[serde(with = "text::kind")]
    pub kind: ResourceKind,
    /// The stored bits of `VkBufferUsageFlags` or `VkImageUsageFlags`; 0 if unknown.
    pub usage: u64,
    /// Its name.
    pub name: Option<Box<str>>,
    /// The user data. In JSON: a hexadecimal string, because numbers there are exact only up to 2^53.
    #[serde(default, with = "text::user_data")]
    pub user_data: Option<u64>,
    /// The calling source line: `file:line`.
    pub caller: Option<Box<str>>,
}
