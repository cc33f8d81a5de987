//! Snapshots of a live allocator.

use std::process;
use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};

use ash::vk;

use super::parts::{Block, Chunk, Dedicated, Device, Entry, Heap, MemoryType, Vector};
use super::{Snapshot, text};
use crate::flags::{HEAP_FLAGS, TYPE_FLAGS, words};
use crate::words::file_and_line;
use sublet::Allocator;
use sublet::{AllocationEntry, MemoryMap, VectorMap};

impl Snapshot {
    /// Takes a snapshot of the allocator's current contents.
    ///
    /// # Complexity
    /// That of [`memory_map`](Allocator::memory_map), which blocks other threads. Use it for tools, not in every frame.
    #[must_use]
    pub fn of(allocator: &Allocator) -> Self {
        Self::new(allocator, &allocator.memory_map())
    }

    /// Creates a snapshot from an existing map, with the current budgets. A program with its own names or data can add
    /// them to the map first.
    ///
    /// ```
    /// use sublet_report::Snapshot;
    ///
    /// # let (_gpu, allocator, allocate) = include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/example/gpu.rs"));
    /// let allocation = allocate(&allocator, "unnamed", 4096);
    /// let mut map = allocator.memory_map();
    /// for entry in map.allocations_mut().filter(|entry| entry.id == allocation.id()) {
    ///     entry.name = Some("level 3".into());
    /// }
    /// let snapshot = Snapshot::new(&allocator, &map);
    /// assert_eq!(snapshot.allocations().next().unwrap().entry.name.as_deref(), Some("level 3"));
    /// ```
    #[must_use]
    pub fn new(allocator: &Allocator, map: &MemoryMap) -> Self {
        let memory = allocator.memory_properties();
        let heaps = memory.memory_heaps_as_slice().iter().zip(allocator.heap_budgets());
        let types = memory.memory_types_as_slice().iter();
        Self {
            title: None,
            run: Some(format!("{}-{:x}", run(), allocator.number()).into()),
            device: device(allocator.physical_device_properties()),
            heaps: heaps
                .map(|(heap, budget)| Heap {
                    size: heap.size,
                    flags: words(heap.flags.as_raw(), HEAP_FLAGS),
                    budget: budget.budget,
                    usage: budget.usage,
                })
                .collect(),
            types: types
                .map(|kind| MemoryType {
                    heap: kind.heap_index,
                    flags: words(kind.property_flags.as_raw(), TYPE_FLAGS),
                })
                .collect(),
            vectors: map.vectors.iter().map(vector).collect(),
            descriptor_heaps: Vec::new(),
            descriptor_pools: Vec::new(),
        }
    }
}

/// Returns a text that identifies the run of the program. Two runs may have the same process id, as in containers, but
/// not at the same time.
fn run() -> &'static str {
    static FIRST: OnceLock<Box<str>> = OnceLock::new();
    FIRST.get_or_init(|| {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        format!("{:x}-{:x}", process::id(), now.as_nanos()).into()
    })
}

fn device(properties: &vk::PhysicalDeviceProperties) -> Device {
    let version = properties.api_version;
    let (major, minor) = (vk::api_version_major(version), vk::api_version_minor(version));
    let kind = u32::try_from(properties.device_type.as_raw()).ok().and_then(text::device_kind);
    let name = properties.device_name_as_c_str().unwrap_or_default();
    Device {
        name: Some(name.to_string_lossy().into()),
        kind: Some(kind.unwrap_or("OTHER").into()),
        api_version: Some(format!("{major}.{minor}.{}", vk::api_version_patch(version)).into()),
        driver_version: Some(properties.driver_version),
        vendor_id: Some(properties.vendor_id),
        device_id: Some(properties.device_id),
        max_memory_allocation_count: Some(properties.limits.max_memory_allocation_count),
        buffer_image_granularity: Some(properties.limits.buffer_image_granularity),
        non_coherent_atom_size: Some(properties.limits.non_coherent_atom_size),
    }
}

fn vector(map: &VectorMap) -> Vector {
    let blocks = map.blocks.iter().map(|block| {
        let chunks = block.chunks.iter().map(|chunk| Chunk {
            offset: chunk.offset,
            size: chunk.size,
            allocation: chunk.allocation.as_ref().map(entry),
        });
        Block { id: block.id, size: block.size, map_count: block.map_count, chunks: chunks.collect() }
    });
    let dedicated = map.dedicated.iter().map(|dedicated| Dedicated {
        size: dedicated.size,
        map_count: Some(dedicated.map_count),
        allocation: entry(&dedicated.allocation),
    });
    let (blocks, dedicated) = (blocks.collect(), dedicated.collect());
    Vector { blocks, dedicated, ..Vector::without_blocks(map) }
}

impl Vector {
    /// Describes a vector of an allocator, without its blocks and its dedicated allocations.
    pub(crate) fn without_blocks(map: &VectorMap) -> Self {
        Self {
            memory_type: map.memory_type_index,
            heap: map.heap_index,
            pool: map.pool,
            name: map.pool_name.clone(),
            algorithm: Some(map.algorithm),
            block_size: map.block_size,
            ..Self::default()
        }
    }
}

fn entry(entry: &AllocationEntry) -> Entry {
    Entry {
        id: Some(entry.id.to_string().into()),
        kind: entry.kind,
        usage: entry.usage.into(),
        name: entry.name.clone(),
        user_data: entry.user_data,
        caller: entry.caller.map(|caller| file_and_line(caller).into()),
    }
}
