//! The description of the device and the allocator in a trace.

use ash::vk;

use super::bytes::{Put, Take, Wrong};
use crate::create_info::{AllocatorCreateFlags, BlockSizes, GrowthPreset};
use sublet_engines::cast::widen;

/// A memory heap of the device in a trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TraceHeap {
    /// The size in bytes, as the driver reports it, without the allocator's limit.
    pub size: u64,
    /// Its flags.
    pub flags: vk::MemoryHeapFlags,
}

/// A memory type of the device in a trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TraceMemoryType {
    /// Index of its heap.
    pub heap: u32,
    /// Its flags.
    pub flags: vk::MemoryPropertyFlags,
}

/// The program, the device and the allocator of a trace: enough to simulate that device.
///
/// ```
/// # use sublet::*;
/// # let (gpu, allocator) = sublet::doc_example();
/// let sink = trace::TraceBuffer::new();
/// allocator.start_recording(sink.clone())?;
/// allocator.stop_recording()?;
/// let header = trace::Trace::read(&sink.bytes())?.header;
/// assert_eq!(header.memory_types.len(), usize::try_from(allocator.memory_properties().memory_type_count)?);
/// assert_eq!(&*header.library_version, env!("CARGO_PKG_VERSION"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Header {
    /// The version of the recording library.
    pub library_version: Box<str>,
    /// The file name of the program; empty if unknown.
    pub program: Box<str>,
    /// The program's process id.
    pub process: u32,
    /// The start of the recording in seconds since 1970, UTC.
    pub started: u64,
    /// `deviceName`.
    pub device_name: Box<str>,
    /// `vendorID`.
    pub vendor_id: u32,
    /// `deviceID`.
    pub device_id: u32,
    /// `deviceType`.
    pub device_type: vk::PhysicalDeviceType,
    /// `driverVersion`.
    pub driver_version: u32,
    /// `apiVersion` of the device.
    pub device_api_version: u32,
    /// The memory heaps.
    pub heaps: Vec<TraceHeap>,
    /// The memory types.
    pub memory_types: Vec<TraceMemoryType>,
    /// `bufferImageGranularity` of the device.
    pub buffer_image_granularity: u64,
    /// `nonCoherentAtomSize` of the device.
    pub non_coherent_atom_size: u64,
    /// `maxMemoryAllocationCount` of the device.
    pub max_memory_allocation_count: u32,
    /// The Vulkan version that the allocator was created for.
    pub api_version: u32,
    /// The allocator's flags.
    pub flags: AllocatorCreateFlags,
    /// The size of a block in a large heap in bytes; 0 for the default.
    pub preferred_large_heap_block_size: u64,
    /// The memory limit of each heap in bytes. Heaps beyond the end of the list have no limit.
    pub heap_size_limits: Vec<u64>,
    /// The number of empty blocks that each memory type kept when the allocator was created.
    pub empty_blocks_kept: u32,
    /// Bits of [`Tracking`](crate::Tracking).
    pub tracking: u32,
    /// [`DebugSettings::margin`](crate::DebugSettings::margin).
    pub margin: u64,
    /// [`DebugSettings::always_dedicated`](crate::DebugSettings::always_dedicated).
    pub always_dedicated: bool,
    /// [`DebugSettings::min_buffer_image_granularity`](crate::DebugSettings::min_buffer_image_granularity).
    pub min_buffer_image_granularity: u64,
    /// [`DebugSettings::exceed_max_allocation_count`](crate::DebugSettings::exceed_max_allocation_count).
    pub exceed_max_allocation_count: bool,
    /// Indexed by memory type: [`AllocatorCreateInfo::block_sizes`](crate::AllocatorCreateInfo::block_sizes).
    pub block_sizes: Vec<BlockSizes>,
    /// [`AllocatorCreateInfo::growth`](crate::AllocatorCreateInfo::growth).
    pub growth: GrowthPreset,
    /// The number of a part of a foreign recording, from 2; 0 for the first. A later part begins with the objects that
    /// are live at its start.
    pub part: u32,
    /// The number of records at the start of a later part that describe those objects.
    pub opening_records: u64,
}

impl Header {
    /// Encodes the payload of the first chunk.
    pub(crate) fn encode(&self, put: &mut impl Put) {
        put.text(&self.library_version);
        put.text(&self.program);
        put.number(self.process.into());
        put.number(self.started);
        // Reserved: older files have a flag here.
        put.byte(0);
        put.text(&self.device_name);
        put.number(self.vendor_id.into());
        put.number(self.device_id.into());
        put.number(u32::from_le_bytes(self.device_type.as_raw().to_le_bytes()).into());
        put.number(self.driver_version.into());
        put.number(self.device_api_version.into());
        put.number(widen(self.heaps.len()));
        for heap in &self.heaps {
            put.number(heap.size);
            put.number(heap.flags.as_raw().into());
        }
        put.number(widen(self.memory_types.len()));
        for memory_type in &self.memory_types {
            put.number(memory_type.heap.into());
            put.number(memory_type.flags.as_raw().into());
        }
        put.number(self.buffer_image_granularity);
        put.number(self.non_coherent_atom_size);
        put.number(self.max_memory_allocation_count.into());
        put.number(self.api_version.into());
        put.number(self.flags.bits().into());
        put.number(self.preferred_large_heap_block_size);
        put.number(widen(self.heap_size_limits.len()));
        for &limit in &self.heap_size_limits {
            put.number(limit);
        }
        put.number(self.empty_blocks_kept.into());
        put.number(self.tracking.into());
        put.number(self.margin);
        put.byte(self.always_dedicated.into());
        put.number(self.min_buffer_image_granularity);
        put.byte(self.exceed_max_allocation_count.into());
        // The rest is omitted if it has default values, as in most allocators.
        let has_part = self.part != 0;
        let has_growth = has_part || self.growth != GrowthPreset::default();
        if has_growth || !self.block_sizes.is_empty() {
            put.number(widen(self.block_sizes.len()));
            for sizes in &self.block_sizes {
                put.number(sizes.first);
                put.number(sizes.largest);
            }
        }
        if has_growth {
            put.number(self.growth.number());
        }
        if has_part {
            put.number(self.part.into());
            put.number(self.opening_records);
        }
    }

    /// Decodes the payload of the first chunk. Fields that a later writer appended are ignored.
    pub(crate) fn decode(take: &mut Take<'_>) -> Result<Self, Wrong> {
        // The file has the fields in declaration order.
        Ok(Self {
            library_version: take.text()?.into(),
            program: take.text()?.into(),
            process: take.small()?,
            started: take.number()?,
            device_name: {
                // See `encode`.
                take.flag()?;
                take.text()?.into()
            },
            vendor_id: take.small()?,
            device_id: take.small()?,
            device_type: vk::PhysicalDeviceType::from_raw(i32::from_le_bytes(take.small()?.to_le_bytes())),
            driver_version: take.small()?,
            device_api_version: take.small()?,
            heaps: take.list(|take| {
                Ok(TraceHeap { size: take.number()?, flags: vk::MemoryHeapFlags::from_raw(take.small()?) })
            })?,
            memory_types: take.list(|take| {
                Ok(TraceMemoryType {
                    heap: take.small()?,
                    flags: vk::MemoryPropertyFlags::from_raw(take.small()?),
                })
            })?,
            buffer_image_granularity: take.number()?,
            non_coherent_atom_size: take.number()?,
            max_memory_allocation_count: take.small()?,
            api_version: take.small()?,
            flags: AllocatorCreateFlags::from_bits_retain(take.small()?),
            preferred_large_heap_block_size: take.number()?,
            heap_size_limits: take.list(Take::number)?,
            empty_blocks_kept: take.small()?,
            tracking: take.small()?,
            margin: take.number()?,
            always_dedicated: take.flag()?,
            min_buffer_image_granularity: take.number()?,
            exceed_max_allocation_count: take.flag()?,
            // Omitted if empty.
            block_sizes: match take.rest() {
                0 => Vec::new(),
                _ => take.list(|take| Ok(BlockSizes { first: take.number()?, largest: take.number()? }))?,
            },
            growth: match take.rest() {
                0 => GrowthPreset::default(),
                _ => {
                    let number = take.number()?;
                    let mut presets = GrowthPreset::ALL.iter().copied();
                    // A preset of a later version cannot be replayed.
                    presets.find(|&preset| preset.number() == number).unwrap_or_default()
                }
            },
            part: match take.rest() {
                0 => 0,
                _ => take.small()?,
            },
            opening_records: match take.rest() {
                0 => 0,
                _ => take.number()?,
            },
        })
    }
}
