//! Creates buffers for uploads: chooses the memory and the pool, and flushes writes.
#![expect(unsafe_code, reason = "calls Vulkan, or has its caller promise what Vulkan asks")]

use std::ops::Range;
use std::panic::Location;
use std::sync::Arc;

use ash::vk;

use super::allocator_ref::AllocatorRef;
use super::backing::PageBacking;
use super::create_info::{UploadArenaCreateInfo, UploadMemory};
use super::error::{CreateUploadError, FlushError, is_shortage, may_pass};
use super::piece::Alignments;
use crate::allocator::{Allocator, Resource};
use crate::create_info::{
    AllocationCreateFlags as Flags, AllocationCreateInfo, MemoryUsage, PoolCreateFlags, PoolCreateInfo,
};
use crate::device::{LiveDevice, ResourceRequirements};
use crate::engine::Algorithm;
use crate::error::{AllocationError, CreateError, CreatePoolError, FindMemoryTypeError, MapError};
use crate::memory_type::device_access;
use crate::pool::Pool;
use sublet_engines::Alignment;
use sublet_engines::cast::{host_size, index};

/// A BAR of at most this size is small: the driver and other programs need part of it.
const SMALL_BAR: u64 = 256 << 20;

/// Ranges for `vkFlushMappedMemoryRanges`. Kept so that a flush allocates no host memory.
#[derive(Debug, Default)]
pub(super) struct FlushRanges(Vec<vk::MappedMemoryRange<'static>>);

// SAFETY: the only pointers in it are `pNext` chains, which are null: only `ArenaBuffers::add_range` adds to it.
unsafe impl Send for FlushRanges {}

/// The source of memory.
#[derive(Debug)]
enum Origin {
    /// The arena's own pools, one for each memory type in use. A block holds one or more pages.
    Own {
        block_size: u64,
        /// Indexed like `memory_types`.
        pools: Box<[Option<Pool>]>,
    },
    /// A pool that the program created.
    Given(Arc<Pool>),
}

/// The alignment of each buffer, in its mapping and in device addresses: the page size of a host, which is the
/// granularity of a mapping. No device requires larger offset alignments, and no driver guarantees more for a mapping.
const BASE_ALIGNMENT: u64 = 4096;

/// The parameters of all buffers of an arena.
#[derive(Debug)]
pub(super) struct ArenaBuffers<A: AllocatorRef> {
    allocator: A,
    origin: Origin,
    usage: vk::BufferUsageFlags,
    addresses: bool,
    /// The best memory type first, then one for each other usable heap: the fallbacks when the heap is full.
    memory_types: Box<[u32]>,
    pub(super) alignments: Alignments,
    /// The minimum alignment of an allocation.
    base_alignment: u64,
    /// The largest power of two that divides the mapped pointers and device addresses of all buffers.
    pub(super) most_alignment: u64,
    name: Option<Box<str>>,
    /// The caller that created the arena. All buffers are attributed to it, whichever call made the arena grow.
    caller: &'static Location<'static>,
}

impl<A: AllocatorRef> ArenaBuffers<A> {
    /// Validates the request, and creates the first pool. Returns the size of a page, rounded up to
    /// `nonCoherentAtomSize`.
    ///
    /// # Safety
    /// The usages are valid for the device.
    pub(super) unsafe fn new(
        allocator: A,
        asked: &UploadArenaCreateInfo<'_>,
        caller: &'static Location<'static>,
    ) -> Result<(Self, u64), CreateUploadError> {
        let owner = allocator.allocator();
        let device = owner.device();
        let bad_size = CreateUploadError::Size { size: asked.page_size };
        let size = device.atom.align_up(asked.page_size).filter(|&size| size > 0).ok_or(bad_size)?;
        if host_size(size).and_then(|size| isize::try_from(size).ok()).is_none() {
            return Err(bad_size);
        }
        if asked.usage.is_empty() {
            return Err(CreateUploadError::NoUsage);
        }
        let max = owner.max_buffer_size();
        if size > max {
            return Err(CreateUploadError::BufferTooLarge { size, max });
        }
        let address = vk::BufferUsageFlags::SHADER_DEVICE_ADDRESS;
        let addresses = asked.device_address || asked.usage.contains(address);
        if addresses && !device.has_buffer_addresses() {
            return Err(CreateUploadError::DeviceAddress);
        }
        let usage = if addresses { asked.usage | address } else { asked.usage };
        let mut memory_types = match &asked.pool {
            Some(pool) => {
                owner.pool_facts(pool).map_err(|_| CreateUploadError::ForeignPool)?;
                let memory_type = pool.memory_type_index();
                if !device.is_host_visible(memory_type) {
                    return Err(CreateUploadError::NotHostVisible { memory_type });
                }
                // SAFETY: the caller's promise; the size is not zero.
                let memory_type_bits = unsafe { requirements(device, size, usage) }?.memory_type_bits;
                if memory_type_bits & (1 << memory_type) == 0 {
                    return Err(CreateUploadError::PoolMemoryType { memory_type, memory_type_bits });
                }
                Box::from([memory_type])
            }
            None => {
                let info = vk::BufferCreateInfo::default().size(size).usage(usage);
                // SAFETY: the caller's promise; the size is not zero.
                unsafe { choose(&allocator, &info, asked.memory) }?
            }
        };
        if let Some(memory_limit) = asked.memory_limit.filter(|&limit| limit < size) {
            return Err(CreateUploadError::Limit { memory_limit, page_size: size });
        }
        let alignments = Alignments::of(device);
        let base_alignment = alignments.any.max(BASE_ALIGNMENT);
        let origin = match &asked.pool {
            Some(pool) => Origin::Given(Arc::clone(pool)),
            None => {
                // SAFETY: the caller's promise; the size is not zero.
                let needed = unsafe { requirements(device, size, usage) }?;
                // A driver must report at least the size, so a smaller figure is ignored. An overflow becomes a size
                // that pool creation rejects.
                let alignment = Alignment::at_least(needed.alignment.max(base_alignment));
                let page = needed.size.max(size).checked_add(owner.margin());
                let page = page.and_then(|page| alignment.align_up(page));
                let count = u64::from(asked.pages_per_block.max(1));
                let block_size = page.and_then(|page| page.checked_mul(count)).unwrap_or(u64::MAX);
                own_pools(owner, asked.name, &mut memory_types, block_size)?
            }
        };
        let buffers = Self {
            origin,
            usage,
            addresses,
            memory_types,
            alignments,
            base_alignment,
            most_alignment: base_alignment,
            name: asked.name.map(Box::from),
            caller,
            allocator,
        };
        Ok((buffers, size))
    }

    /// The preferred memory type.
    pub(super) fn memory_type(&self) -> u32 {
        self.memory_types.first().copied().unwrap_or_default()
    }

    /// The size of all usable heaps, which is an upper bound for uploads.
    pub(super) fn capacity(&self) -> u64 {
        let properties = self.allocator.allocator().memory_properties();
        let heap_of = |&memory_type: &u32| properties.memory_types[index(memory_type)].heap_index;
        let sizes = self.memory_types.iter().map(|kind| properties.memory_heaps[index(heap_of(kind))].size);
        sizes.fold(0, u64::saturating_add)
    }

    /// Rounds up the offset at which the next recording may write. Two recordings must not share an atom, so that
    /// flushing one does not touch bytes that the device reads for the other.
    #[inline]
    pub(super) fn round(&self, backing: &PageBacking, offset: u64) -> u64 {
        if backing.coherent {
            return offset;
        }
        let size = backing.size();
        self.allocator.allocator().device().atom.align_up(offset).map_or(size, |offset| offset.min(size))
    }

    /// The number of usable heaps.
    pub(super) fn heaps(&self) -> usize {
        self.memory_types.len()
    }

    /// Creates a buffer in the first of these heaps that has space. `last_error` is the error of earlier attempts. A
    /// buffer that is `alone` does not fit the blocks of the arena's own pool.
    ///
    /// # Safety
    /// The usages are valid for the device, and the size is not zero.
    pub(super) unsafe fn create(
        &mut self,
        size: u64,
        alone: bool,
        heaps: Range<usize>,
        mut last_error: Option<CreateError>,
    ) -> Result<PageBacking, CreateError> {
        for at in heaps {
            if let Origin::Own { block_size, pools } = &self.origin {
                if !alone && pools[at].is_none() {
                    // The error of the preferred memory type explains the failure.
                    let owner = self.allocator.allocator();
                    let made = make_pool(owner, self.name.as_deref(), self.memory_types[at], *block_size);
                    let Ok(pool) = made else { continue };
                    if let Origin::Own { pools, .. } = &mut self.origin {
                        pools[at] = Some(pool);
                    }
                }
            }
            // SAFETY: the caller's promise: the usages are valid for the device, and the size is not zero.
            match unsafe { self.create_in(at, size, alone) } {
                Ok(backing) => {
                    self.most_alignment = self.most_alignment.min(backing.alignment());
                    return Ok(backing);
                }
                Err(error) => {
                    // Among several errors, prefer one that may pass later: the caller can wait for it.
                    if last_error.is_none_or(|last_error| !may_pass(&last_error) && may_pass(&error)) {
                        last_error = Some(error);
                    }
                    if !is_shortage(&error) {
                        break;
                    }
                }
            }
        }
        // Unreachable default: the first memory type has its pool, and callers that skip it pass `last_error`.
        Err(last_error.unwrap_or(CreateError::ZeroExtent))
    }

    /// Creates a buffer in one of the memory types.
    ///
    /// # Safety
    /// The usages are valid for the device, and the size is not zero.
    unsafe fn create_in(&self, at: usize, size: u64, alone: bool) -> Result<PageBacking, CreateError> {
        let owner = self.allocator.allocator();
        let memory_type = self.memory_types[at];
        let buffer_info = vk::BufferCreateInfo::default().size(size).usage(self.usage);
        let host = AllocationCreateInfo {
            flags: Flags::HOST_ACCESS_SEQUENTIAL_WRITE | Flags::MAPPED,
            usage: MemoryUsage::Auto,
            memory_type_bits: 1 << memory_type,
            // Offsets are aligned within the buffer; this also aligns pointers and addresses. `PageBacking::alignment`
            // measures what the driver returned.
            min_alignment: self.base_alignment,
            name: self.name.as_deref(),
            ..AllocationCreateInfo::default()
        };
        let info = match &self.origin {
            Origin::Own { .. } if alone => {
                AllocationCreateInfo { flags: host.flags | Flags::DEDICATED_MEMORY, ..host }
            }
            Origin::Own { pools, .. } => AllocationCreateInfo { pool: pools[at].as_ref(), ..host },
            Origin::Given(pool) => AllocationCreateInfo { pool: Some(pool), ..host },
        };
        // SAFETY: the caller's promise: the usages are valid for the device, and the size is not zero.
        let (buffer, allocation) = unsafe { owner.create_buffer_for(&buffer_info, &info, self.caller) }?;
        let address = if self.addresses {
            // SAFETY: the buffer was just created with the usage, and bound.
            unsafe { owner.device().buffer_address(buffer) }
        } else {
            None
        };
        let memory_size = owner.allocation_info(&allocation).map_or(0, |info| info.memory_size);
        tracing::debug!(
            name: "upload_buffer_created", target: "sublet::upload",
            size, memory_type, fallback = at > 0, owner = self.name.as_deref(), alone,
            "upload buffer created"
        );
        // SAFETY: both were just created. The allocation was asked to be mapped, and stays so until it is freed, which
        // happens in `destroy` only.
        let backing = unsafe { PageBacking::new(buffer, allocation, size, address, memory_size) };
        let backing = backing.map(|mut backing| {
            backing.memory_type = memory_type;
            backing.coherent = owner.device().is_coherent(memory_type);
            backing.is_fallback = at > 0;
            backing
        });
        backing.map_err(|allocation| {
            // SAFETY: both were just created, and nothing else uses them.
            let freed = unsafe { owner.destroy_buffer(buffer, allocation) };
            debug_assert!(freed.is_ok());
            // The allocation is smaller than its buffer, or not mapped.
            CreateError::Allocation(AllocationError::Map(MapError::NotMapped))
        })
    }

    /// Destroys a buffer and frees its memory.
    ///
    /// # Safety
    /// The device no longer uses it.
    pub(super) unsafe fn destroy(&self, backing: &mut PageBacking) {
        let (size, memory_type) = (backing.size(), backing.memory_type);
        if let Some((buffer, allocation)) = backing.take() {
            // SAFETY: the caller's promise; both are of this allocator.
            let freed = unsafe { self.allocator.allocator().destroy_buffer(buffer, allocation) };
            debug_assert!(freed.is_ok(), "the pool of a page was destroyed before the page");
            tracing::debug!(
                name: "upload_buffer_destroyed", target: "sublet::upload",
                size, memory_type, owner = self.name.as_deref(),
                "upload buffer destroyed"
            );
        }
    }

    /// Destroys the arena's own pools.
    ///
    /// # Safety
    /// The device no longer uses any buffer of the arena. The arena creates no more buffers.
    pub(super) unsafe fn close(&mut self) {
        if let Origin::Own { pools, .. } = &mut self.origin {
            for pool in std::mem::take(pools).into_iter().flatten() {
                // SAFETY: the caller's promise.
                let leaks = unsafe { self.allocator.allocator().destroy_pool(pool) };
                debug_assert!(leaks.is_ok_and(|leaks| leaks.is_empty()), "a page was forgotten");
            }
        }
    }

    /// Adds the bytes from `begin` to `end`, which the host has written, if they need a flush.
    pub(super) fn add_range(&self, ranges: &mut FlushRanges, backing: &PageBacking, begin: u64, end: u64) {
        let Some(allocation) = backing.allocation().filter(|_| !backing.coherent && begin < end) else {
            return;
        };
        let atom = self.allocator.allocator().device().atom;
        let begin = atom.align_down(allocation.offset() + begin);
        // The end of an allocation is at most the end of its memory, so the sum does not overflow; only the rounding
        // may.
        let end = atom.align_up(allocation.offset() + end).unwrap_or(u64::MAX).min(backing.memory_size);
        let range =
            vk::MappedMemoryRange::default().memory(allocation.memory()).offset(begin).size(end - begin);
        ranges.0.push(range);
    }

    /// Flushes the ranges with at most one driver call, and clears them.
    pub(super) fn flush(&self, ranges: &mut FlushRanges) -> Result<(), FlushError> {
        if ranges.0.is_empty() {
            return Ok(());
        }
        // SAFETY: `add_range` made ranges of live, mapped memory that begin at an atom and end at one or at the end of
        // the memory (VUID-VkMappedMemoryRange-memory-00684, -offset-00687, -size-01390).
        let flushed = unsafe { self.allocator.allocator().device().flush(&ranges.0) };
        ranges.0.clear();
        flushed.map_err(FlushError::Driver)
    }
}

/// Creates the pool of the first memory type. Pools of other memory types are created on demand. Removes memory types
/// whose heap cannot hold a block; no page will be requested from them.
fn own_pools(
    owner: &Allocator,
    name: Option<&str>,
    memory_types: &mut Box<[u32]>,
    block_size: u64,
) -> Result<Origin, CreateUploadError> {
    let mut first_error = None;
    while let [memory_type, rest @ ..] = &**memory_types {
        match make_pool(owner, name, *memory_type, block_size) {
            Ok(pool) => {
                let mut pools: Box<[_]> = memory_types.iter().map(|_| None).collect();
                pools[0] = Some(pool);
                return Ok(Origin::Own { block_size, pools });
            }
            Err(error) => {
                first_error = first_error.or(Some(error));
                *memory_types = Box::from(rest);
            }
        }
    }
    // There is at least one memory type, and each attempt has its error.
    Err(CreateUploadError::Pool(first_error.unwrap_or(CreatePoolError::TooMany)))
}

fn make_pool(
    owner: &Allocator,
    name: Option<&str>,
    memory_type: u32,
    block_size: u64,
) -> Result<Pool, CreatePoolError> {
    owner.create_pool(&PoolCreateInfo {
        block_size,
        algorithm: Algorithm::Linear,
        // The pool contains buffers only.
        flags: PoolCreateFlags::IGNORE_BUFFER_IMAGE_GRANULARITY,
        // The arena decides which pages to keep.
        empty_blocks_kept: 0,
        name,
        ..PoolCreateInfo::new(memory_type)
    })
}

/// Returns the memory requirements of a buffer.
///
/// # Safety
/// The usages are valid for the device, and the size is not zero.
unsafe fn requirements(
    device: &LiveDevice,
    size: u64,
    usage: vk::BufferUsageFlags,
) -> Result<ResourceRequirements, CreateUploadError> {
    let info = vk::BufferCreateInfo::default().size(size).usage(usage);
    // SAFETY: the caller's promise: the usages are valid for the device, and the size is not zero.
    unsafe { device.requirements_for_buffer(&info) }
        .map_err(|error| CreateUploadError::MemoryType(FindMemoryTypeError::Resource(error)))
}

/// Returns the memory types for such buffers: the best overall, then the best of each other heap. One per heap is
/// enough, because types of a full heap are all full.
///
/// # Safety
/// The create-info is valid for the device.
unsafe fn choose<A: AllocatorRef>(
    allocator: &A,
    info: &vk::BufferCreateInfo<'_>,
    memory: UploadMemory,
) -> Result<Box<[u32]>, CreateUploadError> {
    let owner = allocator.allocator();
    let usage = vk::BufferUsageFlags2KHR::from_raw(u64::from(info.usage.as_raw()));
    // SAFETY: the caller's promise: the create-info is valid for the device.
    let requirements = unsafe { requirements(owner.device(), info.size, info.usage) }?;
    let resource = Resource::buffer(requirements, vk::Buffer::null(), Some(usage));
    let properties = owner.memory_properties();
    let heap_of = |memory_type: u32| properties.memory_types[index(memory_type)].heap_index;
    let find = |usage| -> Result<Box<[u32]>, CreateUploadError> {
        let wish = AllocationCreateInfo {
            flags: Flags::HOST_ACCESS_SEQUENTIAL_WRITE,
            ..AllocationCreateInfo::new(usage)
        };
        let mut order = Vec::new();
        for memory_type in owner.find_all_for(&resource, &wish).map_err(CreateUploadError::MemoryType)? {
            if order.iter().all(|&other| heap_of(other) != heap_of(memory_type)) {
                order.push(memory_type);
            }
        }
        Ok(order.into_boxed_slice())
    };
    match memory {
        UploadMemory::PreferDevice => return find(MemoryUsage::AutoPreferDevice),
        UploadMemory::PreferHost => return find(MemoryUsage::AutoPreferHost),
        UploadMemory::Auto => {}
    }
    if device_access(usage.as_raw()) == Some(true) {
        let near = find(MemoryUsage::AutoPreferDevice)?;
        let heaps = &properties.memory_heaps[..index(properties.memory_heap_count)];
        let is_local = |heap: &vk::MemoryHeap| heap.flags.contains(vk::MemoryHeapFlags::DEVICE_LOCAL);
        let heap = near.first().map(|&memory_type| heaps[index(heap_of(memory_type))]);
        if heap.is_some_and(|heap| is_local(&heap) && (heap.size > SMALL_BAR || heaps.iter().all(is_local))) {
            return Ok(near);
        }
    }
    find(MemoryUsage::AutoPreferHost)
}
