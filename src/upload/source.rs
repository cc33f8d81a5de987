//! Where buffers for uploads come from: which memory, which pool; and how what was written becomes visible.

use std::panic::Location;
use std::sync::Arc;

use ash::vk;

use super::allocator_ref::AllocatorRef;
use super::backing::Backing;
use super::create_info::UploadMemory;
use super::error::CreateUploadError;
use super::piece::Alignments;
use crate::base::align::{align_down, align_up};
use crate::base::cast::{host_size, index};
use crate::create_info::{
    AllocationCreateFlags as Flags, AllocationCreateInfo, MemoryUsage, PoolCreateFlags, PoolCreateInfo,
};
use crate::device::{Device, DriverError, Requirements};
use crate::error::{AllocationError, CreateError, FindMemoryTypeError};
use crate::memory_type::buffer_device_access_2;
use crate::metadata::Algorithm;
use crate::pool::Pool;

/// A BAR of this size is a small one: the driver needs part of it, and other programs do.
const SMALL_BAR: u64 = 256 << 20;

/// Ranges for `vkFlushMappedMemoryRanges`, kept so that flushing asks the host for no memory.
#[derive(Debug, Default)]
pub(super) struct Ranges(Vec<vk::MappedMemoryRange<'static>>);

// SAFETY: the only pointers in it are the ends of chains, which are null: `Source::add_range` alone adds to it.
unsafe impl Send for Ranges {}

/// What both an arena and a ring are asked for.
pub(super) struct Wanted<'a> {
    pub(super) size: u64,
    pub(super) usage: vk::BufferUsageFlags,
    pub(super) device_address: bool,
    pub(super) memory: UploadMemory,
    pub(super) pool: Option<&'a Arc<Pool>>,
    pub(super) name: Option<&'a str>,
    /// Who made the arena or ring: all its buffers are of that place, whoever made it grow.
    pub(super) caller: &'static Location<'static>,
}

/// Where memory is allocated.
#[derive(Debug)]
enum Place {
    /// The allocator's default blocks.
    Default,
    /// A pool that goes with the source. Its blocks are pages.
    Own(Pool),
    /// A pool of the program's.
    Given(Arc<Pool>),
}

/// What buffers are made with.
#[derive(Debug)]
pub(super) struct Source<A: AllocatorRef> {
    allocator: A,
    place: Place,
    usage: vk::BufferUsageFlags,
    addresses: bool,
    memory_type: u32,
    /// Whether what the host writes is visible without a flush.
    coherent: bool,
    pub(super) alignments: Alignments,
    name: Option<Box<str>>,
    caller: &'static Location<'static>,
}

impl<A: AllocatorRef> Source<A> {
    /// Checks what is wanted, and answers with the size of a buffer: rounded up to `nonCoherentAtomSize`.
    ///
    /// # Safety
    /// The usages are valid for the device.
    pub(super) unsafe fn new(allocator: A, wanted: &Wanted<'_>) -> Result<(Self, u64), CreateUploadError> {
        let owner = allocator.allocator();
        let device = owner.device();
        let bad_size = CreateUploadError::Size { size: wanted.size };
        let size = align_up(wanted.size, device.atom).filter(|&size| size > 0).ok_or(bad_size)?;
        if host_size(size).and_then(|size| isize::try_from(size).ok()).is_none() {
            return Err(bad_size);
        }
        if wanted.usage.is_empty() {
            return Err(CreateUploadError::NoUsage);
        }
        let address = vk::BufferUsageFlags::SHADER_DEVICE_ADDRESS;
        let addresses = wanted.device_address || wanted.usage.contains(address);
        if addresses && !device.has_buffer_addresses() {
            return Err(CreateUploadError::DeviceAddress);
        }
        let usage = if addresses { wanted.usage | address } else { wanted.usage };
        let (place, memory_type) = match wanted.pool {
            Some(pool) => {
                owner.pool_facts(pool).map_err(|_| CreateUploadError::ForeignPool)?;
                let memory_type = pool.memory_type_index();
                if !device.is_host_visible(memory_type) {
                    return Err(CreateUploadError::NotHostVisible { memory_type });
                }
                // SAFETY: the caller's own promise; the size is not zero.
                let memory_type_bits = unsafe { requirements(device, size, usage) }?.memory_type_bits;
                if memory_type_bits & (1 << memory_type) == 0 {
                    return Err(CreateUploadError::PoolMemoryType { memory_type, memory_type_bits });
                }
                (Place::Given(Arc::clone(pool)), memory_type)
            }
            None => {
                let info = vk::BufferCreateInfo::default().size(size).usage(usage);
                // SAFETY: the caller's own promise; the size is not zero.
                let memory_type = unsafe { choose(&allocator, &info, wanted.memory) }?;
                (Place::Default, memory_type)
            }
        };
        let coherent = device.is_coherent(memory_type);
        let alignments = Alignments::of(device);
        let name = wanted.name.map(Box::from);
        let caller = wanted.caller;
        let source =
            Self { allocator, place, usage, addresses, memory_type, coherent, alignments, name, caller };
        Ok((source, size))
    }

    /// Gives the source a pool of its own, with blocks of `count` buffers of `size` bytes; not if it has been given one.
    ///
    /// # Safety
    /// The usages are valid for the device.
    pub(super) unsafe fn own_pool(&mut self, size: u64, count: u32) -> Result<(), CreateUploadError> {
        if !matches!(self.place, Place::Default) {
            return Ok(());
        }
        let owner = self.allocator.allocator();
        // SAFETY: the caller's own promise; the size is not zero.
        let needed = unsafe { requirements(owner.device(), size, self.usage) }?;
        // What a driver asks for is at least the size; one that says less is not believed. What overflows is too large, and the
        // pool says so.
        let alignment = needed.alignment.max(self.alignments.any).checked_next_power_of_two();
        let page = needed.size.max(size).checked_add(owner.margin());
        let page = page.zip(alignment).and_then(|(page, alignment)| align_up(page, alignment));
        let block_size = page.and_then(|page| page.checked_mul(u64::from(count.max(1)))).unwrap_or(u64::MAX);
        let pool = owner.create_pool(&PoolCreateInfo {
            block_size,
            algorithm: Algorithm::Linear,
            // There are only buffers in it.
            flags: PoolCreateFlags::IGNORE_BUFFER_IMAGE_GRANULARITY,
            // The source's user knows which pages are worth keeping.
            empty_blocks_kept: 0,
            name: self.name.as_deref(),
            ..PoolCreateInfo::new(self.memory_type)
        });
        self.place = Place::Own(pool.map_err(CreateUploadError::Pool)?);
        Ok(())
    }

    pub(super) fn memory_type(&self) -> u32 {
        self.memory_type
    }

    /// Where the next recording may begin to write behind what another one has written: no two have an atom together, so that
    /// flushing the one does not touch what the device reads of the other.
    #[inline]
    pub(super) fn round(&self, offset: u64, size: u64) -> u64 {
        if self.coherent {
            return offset;
        }
        align_up(offset, self.allocator.allocator().device().atom).map_or(size, |offset| offset.min(size))
    }

    /// Makes a buffer. One that is `alone` does not fit the blocks of a pool of the source's own.
    ///
    /// # Safety
    /// The usages are valid for the device, and the size is not zero.
    pub(super) unsafe fn create(&self, size: u64, alone: bool) -> Result<Backing, CreateError> {
        let owner = self.allocator.allocator();
        let buffer_info = vk::BufferCreateInfo::default().size(size).usage(self.usage);
        let host = AllocationCreateInfo {
            flags: Flags::HOST_ACCESS_SEQUENTIAL_WRITE | Flags::MAPPED,
            usage: MemoryUsage::Auto,
            memory_type_bits: 1 << self.memory_type,
            // Offsets are aligned within the buffer; with this, pointers and addresses are as well.
            min_alignment: self.alignments.any,
            name: self.name.as_deref(),
            ..AllocationCreateInfo::default()
        };
        let info = match &self.place {
            Place::Own(_) if alone => {
                AllocationCreateInfo { flags: host.flags | Flags::DEDICATED_MEMORY, ..host }
            }
            Place::Default => host,
            Place::Own(pool) => AllocationCreateInfo { pool: Some(pool), ..host },
            Place::Given(pool) => AllocationCreateInfo { pool: Some(pool), ..host },
        };
        // SAFETY: the caller's own promise.
        let (buffer, allocation) = unsafe { owner.create_buffer_for(&buffer_info, &info, self.caller) }?;
        let address = if self.addresses {
            // SAFETY: the buffer was made just now with the usage, and bound.
            unsafe { owner.device().buffer_address(buffer) }
        } else {
            None
        };
        let memory_size = owner.allocation_info(&allocation).map_or(0, |info| info.memory_size);
        tracing::debug!(
            name: "upload_buffer_created", target: "sublet::upload",
            size, memory_type = self.memory_type, owner = self.name.as_deref(), alone,
            "upload buffer created"
        );
        // SAFETY: both were made just now. The allocation was asked to be mapped, and stays so until it is freed, which happens in
        // `destroy` only.
        unsafe { Backing::new(buffer, allocation, size, address, memory_size) }.map_err(|allocation| {
            // SAFETY: both were made just now, and nobody has seen them.
            let freed = unsafe { owner.destroy_buffer(buffer, allocation) };
            debug_assert!(freed.is_ok());
            // Only an allocation that is smaller than its buffer, or without its pointer, comes here.
            CreateError::Allocation(AllocationError::Map(DriverError {
                call: "vkMapMemory",
                result: vk::Result::ERROR_MEMORY_MAP_FAILED,
            }))
        })
    }

    /// Destroys a buffer and frees its memory.
    ///
    /// # Safety
    /// The device no longer uses it.
    pub(super) unsafe fn destroy(&self, backing: &mut Backing) {
        let size = backing.size();
        if let Some((buffer, allocation)) = backing.take() {
            // SAFETY: the caller's own promise; both are of this allocator.
            let freed = unsafe { self.allocator.allocator().destroy_buffer(buffer, allocation) };
            debug_assert!(freed.is_ok(), "the pool of a page was destroyed before the page");
            tracing::debug!(
                name: "upload_buffer_destroyed", target: "sublet::upload",
                size, memory_type = self.memory_type, owner = self.name.as_deref(),
                "upload buffer destroyed"
            );
        }
    }

    /// Ends the pool that the source has of its own.
    ///
    /// # Safety
    /// The device no longer uses any of the source's buffers. Nothing more is made.
    pub(super) unsafe fn close(&mut self) {
        if let Place::Own(pool) = std::mem::replace(&mut self.place, Place::Default) {
            // SAFETY: the caller's own promise.
            let leaks = unsafe { self.allocator.allocator().destroy_pool(pool) };
            debug_assert!(leaks.is_ok_and(|leaks| leaks.is_empty()), "a page was forgotten");
        }
    }

    /// Adds bytes from `begin` to `end` that the host has written, if they have to be flushed.
    pub(super) fn add_range(&self, ranges: &mut Ranges, backing: &Backing, begin: u64, end: u64) {
        let Some(allocation) = backing.allocation().filter(|_| !self.coherent && begin < end) else {
            return;
        };
        let atom = self.allocator.allocator().device().atom;
        let begin = align_down(allocation.offset() + begin, atom);
        // The end of an allocation is at most the end of its memory, so that the sum does not overflow; only rounding may.
        let end = align_up(allocation.offset() + end, atom).unwrap_or(u64::MAX).min(backing.memory_size);
        let range =
            vk::MappedMemoryRange::default().memory(allocation.memory()).offset(begin).size(end - begin);
        ranges.0.push(range);
    }

    /// Makes the ranges visible to the device, with one call of the driver at most. They are gone afterwards.
    pub(super) fn flush(&self, ranges: &mut Ranges) -> Result<(), DriverError> {
        if ranges.0.is_empty() {
            return Ok(());
        }
        // SAFETY: `add_range` made ranges of live memory that begin at an atom and end at one or at the end of the memory;
        // the memory of a backing is mapped for as long as it lives (VUID-VkMappedMemoryRange-memory-00684, -offset-00687,
        // -size-01390).
        let flushed = unsafe { self.allocator.allocator().device().flush(&ranges.0) };
        ranges.0.clear();
        flushed
    }
}

/// What a buffer needs.
///
/// # Safety
/// The usages are valid for the device, and the size is not zero.
unsafe fn requirements(
    device: &Device,
    size: u64,
    usage: vk::BufferUsageFlags,
) -> Result<Requirements, CreateUploadError> {
    let info = vk::BufferCreateInfo::default().size(size).usage(usage);
    // SAFETY: the caller's own promise.
    unsafe { device.requirements_for_buffer(&info) }
        .map_err(|error| CreateUploadError::MemoryType(FindMemoryTypeError::Resource(error)))
}

/// The memory type for buffers like this one.
///
/// # Safety
/// The create-info is valid for the device.
unsafe fn choose<A: AllocatorRef>(
    allocator: &A,
    info: &vk::BufferCreateInfo<'_>,
    memory: UploadMemory,
) -> Result<u32, CreateUploadError> {
    let owner = allocator.allocator();
    let find = |usage| {
        let wish = AllocationCreateInfo {
            flags: Flags::HOST_ACCESS_SEQUENTIAL_WRITE,
            ..AllocationCreateInfo::new(usage)
        };
        // SAFETY: the caller's own promise.
        unsafe { owner.find_memory_type_index_for_buffer_info(info, &wish) }
            .map_err(CreateUploadError::MemoryType)
    };
    match memory {
        UploadMemory::PreferDevice => return find(MemoryUsage::AutoPreferDevice),
        UploadMemory::PreferHost => return find(MemoryUsage::AutoPreferHost),
        UploadMemory::Auto => {}
    }
    let usage = vk::BufferUsageFlags2KHR::from_raw(u64::from(info.usage.as_raw()));
    if buffer_device_access_2(usage) == Some(true) {
        let near = find(MemoryUsage::AutoPreferDevice)?;
        let properties = owner.memory_properties();
        let heaps = &properties.memory_heaps[..index(properties.memory_heap_count)];
        let is_local = |heap: &vk::MemoryHeap| heap.flags.contains(vk::MemoryHeapFlags::DEVICE_LOCAL);
        let heap = heaps[index(properties.memory_types[index(near)].heap_index)];
        if is_local(&heap) && (heap.size > SMALL_BAR || heaps.iter().all(is_local)) {
            return Ok(near);
        }
    }
    find(MemoryUsage::AutoPreferHost)
}
