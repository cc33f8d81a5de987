//! The statistics strings, in the schema of VMA's `vmaBuildStatsString` and `vmaBuildVirtualBlockStatsString`.

use ash::vk;

use crate::cast::index;
use crate::flags::{HEAP_FLAGS, TYPE_FLAGS};
use crate::writer::{JsonWriter, ListLayout};
use sublet::Allocator;
use sublet::VirtualBlock;
use sublet::{AllocationEntry, DetailedStatistics, MemoryMap, TotalStatistics, VectorMap};

/// Describes an allocator as JSON: device, budgets, statistics, and, if `detailed`, every block with its chunks. The
/// layout is that of `vmaBuildStatsString`, so its tools, such as GpuMemDumpVis, can read it.
///
/// `CustomData` is the user data in hexadecimal, if it is not zero and
/// [`Tracking::USER_DATA`](sublet::Tracking::USER_DATA) is on. `Usage` has the stored lower bits of the usage.
///
/// # Complexity
/// O(chunks): see [`Allocator::memory_map`] if `detailed`, else [`Allocator::calculate_statistics`].
///
/// ```
/// # let (_gpu, allocator, allocate) = include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/example/gpu.rs"));
/// let mesh = allocate(&allocator, r#"mesh "A""#, 4096);
/// let json = sublet_report::stats_string(&allocator, true);
/// let line = r#"{ "Offset": 0, "Type": "UNKNOWN", "Size": 4096, "Usage": 0, "Name": "mesh \"A\"" },"#;
/// assert!(json.contains(line), "{json}");
/// ```
#[must_use]
pub fn stats_string(allocator: &Allocator, detailed: bool) -> String {
    if detailed {
        return stats_string_of_map(allocator, &allocator.memory_map());
    }
    write(allocator, &allocator.calculate_statistics(), None)
}

/// Same as [`stats_string`] with details, for an existing map. A program with its own names or data can add them to the
/// map first, as for [`Snapshot::new`](crate::Snapshot::new).
#[must_use]
pub fn stats_string_of_map(allocator: &Allocator, map: &MemoryMap) -> String {
    write(allocator, &map.statistics(), Some(map))
}

fn write(allocator: &Allocator, statistics: &TotalStatistics, map: Option<&MemoryMap>) -> String {
    JsonWriter::document(|json| {
        json.object("General", |json| write_general(json, allocator));
        json.object("Total", |json| write_statistics(json, &statistics.total));
        json.object("MemoryInfo", |json| write_heaps(json, allocator, statistics));
        if let Some(map) = map {
            json.object("DefaultPools", |json| write_defaults(json, allocator, map));
            json.object("CustomPools", |json| write_pools(json, map));
        }
    })
}

fn write_general(json: &mut JsonWriter, allocator: &Allocator) {
    let properties = allocator.physical_device_properties();
    let memory = allocator.memory_properties();
    let version = properties.api_version;
    let (major, minor) = (vk::api_version_major(version), vk::api_version_minor(version));
    json.string("API", "Vulkan");
    json.string("apiVersion", &format!("{major}.{minor}.{}", vk::api_version_patch(version)));
    let name = properties.device_name_as_c_str().unwrap_or_default();
    json.string("GPU", &name.to_string_lossy());
    // Device types are not negative.
    json.number("deviceType", properties.device_type.as_raw().unsigned_abs());
    json.number("maxMemoryAllocationCount", properties.limits.max_memory_allocation_count);
    json.number("bufferImageGranularity", properties.limits.buffer_image_granularity);
    json.number("nonCoherentAtomSize", properties.limits.non_coherent_atom_size);
    json.number("memoryHeapCount", memory.memory_heap_count);
    json.number("memoryTypeCount", memory.memory_type_count);
}

fn write_heaps(json: &mut JsonWriter, allocator: &Allocator, statistics: &TotalStatistics) {
    let memory = allocator.memory_properties();
    let types = memory.memory_types_as_slice();
    for (at, (heap, budget)) in (0..).zip(memory.memory_heaps_as_slice().iter().zip(allocator.heap_budgets()))
    {
        json.object(&format!("Heap {at}"), |json| {
            json.list("Flags", ListLayout::OneLine, |json| {
                write_flags(json, heap.flags.as_raw(), HEAP_FLAGS, 0)
            });
            json.number("Size", heap.size);
            json.object("Budget", |json| {
                json.number("BudgetBytes", budget.budget);
                json.number("UsageBytes", budget.usage);
            });
            json.object("Stats", |json| write_statistics(json, &statistics.memory_heaps[index(at)]));
            json.object("MemoryPools", |json| {
                for (kind, number) in types.iter().zip(0..).filter(|(kind, _)| kind.heap_index == at) {
                    json.object(&format!("Type {number}"), |json| {
                        let flags = kind.property_flags.as_raw();
                        // VMA writes this flag twice.
                        let again = vk::MemoryPropertyFlags::PROTECTED.as_raw();
                        json.list("Flags", ListLayout::OneLine, |json| {
                            write_flags(json, flags, TYPE_FLAGS, again);
                        });
                        let statistics = &statistics.memory_types[index(number)];
                        json.object("Stats", |json| write_statistics(json, statistics));
                    });
                }
            });
        });
    }
}

fn write_defaults(json: &mut JsonWriter, allocator: &Allocator, map: &MemoryMap) {
    // VMA has no entry for memory types that it never uses.
    let is_used = |vector: &&VectorMap| allocator.is_type_allowed(vector.memory_type_index);
    for vector in map.vectors.iter().filter(|vector| vector.pool.is_none()).filter(is_used) {
        json.object(&format!("Type {}", vector.memory_type_index), |json| write_vector(json, vector));
    }
}

/// Writes the names of the flags, then a number with the unnamed ones and those of `again`.
fn write_flags(json: &mut JsonWriter, flags: u32, names: &[(u32, &str)], again: u32) {
    let mut rest = flags;
    for &(flag, name) in names.iter().filter(|(flag, _)| flags & flag != 0) {
        json.string_element(name);
        rest &= !flag | again;
    }
    if rest != 0 {
        json.number_element(rest);
    }
}

fn write_statistics(json: &mut JsonWriter, all: &DetailedStatistics) {
    let sums = &all.statistics;
    json.number("BlockCount", sums.block_count);
    json.number("BlockBytes", sums.block_bytes);
    json.number("AllocationCount", sums.allocation_count);
    json.number("AllocationBytes", sums.allocation_bytes);
    json.number("UnusedRangeCount", all.unused_range_count);
    if sums.allocation_count > 1 {
        json.number("AllocationSizeMin", all.allocation_size_min);
        json.number("AllocationSizeMax", all.allocation_size_max);
    }
    if all.unused_range_count > 1 {
        json.number("UnusedRangeSizeMin", all.unused_range_size_min);
        json.number("UnusedRangeSizeMax", all.unused_range_size_max);
    }
}

/// Writes pools in lists by memory type, without empty lists.
fn write_pools(json: &mut JsonWriter, map: &MemoryMap) {
    let memory_types = map.vectors.iter().map(|vector| vector.memory_type_index + 1).max().unwrap_or(0);
    for memory_type in 0..memory_types {
        let is_of_type = |vector: &&VectorMap| vector.memory_type_index == memory_type;
        let mut pools =
            map.vectors.iter().filter(|vector| vector.pool.is_some()).filter(is_of_type).zip(0..).peekable();
        if pools.peek().is_none() {
            continue;
        }
        json.list(&format!("Type {memory_type}"), ListLayout::Lines, |json| {
            for (pool, at) in pools {
                json.object_element(ListLayout::Lines, |json| {
                    let at: u32 = at;
                    match &pool.pool_name {
                        Some(name) => json.string("Name", &format!("{at} - {name}")),
                        None => json.string("Name", &at.to_string()),
                    }
                    write_vector(json, pool);
                });
            }
        });
    }
}

fn write_vector(json: &mut JsonWriter, vector: &VectorMap) {
    json.number("PreferredBlockSize", vector.block_size);
    json.object("Blocks", |json| {
        for block in &vector.blocks {
            json.object(&block.id.to_string(), |json| {
                json.number("MapRefCount", block.map_count);
                write_block(json, &block.statistics(), |json| {
                    for chunk in &block.chunks {
                        json.object_element(ListLayout::OneLine, |json| {
                            json.number("Offset", chunk.offset);
                            match &chunk.allocation {
                                Some(allocation) => write_allocation(json, chunk.size, allocation),
                                None => write_free(json, chunk.size),
                            }
                        });
                    }
                });
            });
        }
    });
    json.list("DedicatedAllocations", ListLayout::Lines, |json| {
        for dedicated in &vector.dedicated {
            json.object_element(ListLayout::OneLine, |json| {
                write_allocation(json, dedicated.size, &dedicated.allocation);
            });
        }
    });
}

fn write_block(json: &mut JsonWriter, all: &DetailedStatistics, chunks: impl FnOnce(&mut JsonWriter)) {
    json.number("TotalBytes", all.statistics.block_bytes);
    json.number("UnusedBytes", all.statistics.unused_bytes());
    json.number("Allocations", all.statistics.allocation_count);
    json.number("UnusedRanges", all.unused_range_count);
    json.list("Suballocations", ListLayout::Lines, chunks);
}

fn write_free(json: &mut JsonWriter, size: u64) {
    json.string("Type", "FREE");
    json.number("Size", size);
}

fn write_allocation(json: &mut JsonWriter, size: u64, allocation: &AllocationEntry) {
    json.string("Type", allocation.kind.text());
    json.number("Size", size);
    json.number("Usage", allocation.usage);
    write_custom_data(json, allocation.user_data.unwrap_or(0));
    if let Some(name) = &allocation.name {
        json.string("Name", name);
    }
}

/// Zero stands for a null pointer.
fn write_custom_data(json: &mut JsonWriter, user_data: u64) {
    if user_data != 0 {
        json.string("CustomData", &format!("{user_data:#x}"));
    }
}

/// Describes a virtual block as JSON, in the layout of `vmaBuildVirtualBlockStatsString`: statistics, and, if
/// `detailed`, every range. `CustomData` is the user data in hexadecimal, if it is not zero.
///
/// # Complexity
/// O(ranges).
///
/// ```
/// use sublet::{VirtualAllocationCreateInfo, VirtualBlock, VirtualBlockCreateInfo};
///
/// let mut block = VirtualBlock::new(&VirtualBlockCreateInfo { size: 64, ..Default::default() })?;
/// let info = VirtualAllocationCreateInfo { size: 16, user_data: 0xab, ..Default::default() };
/// let allocation = block.allocate(&info)?;
/// let json = sublet_report::virtual_block_stats_string(&block, true);
/// assert!(json.contains(r#"{ "Offset": 0, "Size": 16, "CustomData": "0xab" }"#), "{json}");
/// assert!(json.contains(r#"{ "Offset": 16, "Type": "FREE", "Size": 48 }"#), "{json}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn virtual_block_stats_string(block: &VirtualBlock, detailed: bool) -> String {
    let statistics = block.detailed_statistics();
    JsonWriter::document(|json| {
        json.object("Stats", |json| write_statistics(json, &statistics));
        if detailed {
            json.object("Details", |json| {
                write_block(json, &statistics, |json| {
                    block.walk(|range| {
                        json.object_element(ListLayout::OneLine, |json| {
                            json.number("Offset", range.offset);
                            match range.user_data {
                                Some(user_data) => {
                                    json.number("Size", range.size);
                                    write_custom_data(json, user_data);
                                }
                                None => write_free(json, range.size),
                            }
                        });
                    });
                });
            });
        }
    })
}
