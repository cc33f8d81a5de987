//! The allocator: gpu-allocator's rules for memory types, Sublet's for everything else.
#![expect(unsafe_code, reason = "calls Vulkan")]

#[cfg(feature = "std")]
use std::backtrace::Backtrace;
#[cfg(feature = "std")]
use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroU64;

use ash::vk;
use log::{Level, debug, log};
use sublet::{
    AllocationCreateFlags, AllocationCreateInfo, AllocatorCreateFlags, AllocatorCreateInfo, BlockSizes,
    ResourceKind, Tracking,
};

use super::allocation::AllocationInner;
use super::{Allocation, AllocationCreateDesc, AllocationScheme, AllocatorCreateDesc};
use crate::{
    AllocationError, AllocationReport, AllocationSizes, AllocatorDebugSettings, AllocatorReport,
    MemoryBlockReport, MemoryLocation, Result,
};

/// Log targets, which filters match: the modules of the original.
const VULKAN: &str = "gpu_allocator::vulkan";
const FREE_LIST: &str = "gpu_allocator::allocator::free_list_allocator";
const DEDICATED: &str = "gpu_allocator::allocator::dedicated_block_allocator";

/// Allocates memory of one device.
pub struct Allocator {
    inner: sublet::Allocator,
    memory: vk::PhysicalDeviceMemoryProperties,
    debug_settings: AllocatorDebugSettings,
    next_id: NonZeroU64,
    /// Backtraces by allocation number, if they are enabled.
    #[cfg(feature = "std")]
    backtraces: BTreeMap<u64, Backtrace>,
}

impl Allocator {
    /// Creates an allocator for a device, which must outlive it.
    ///
    /// # Errors
    /// [`AllocationError::InvalidAllocatorCreateDesc`].
    pub fn new(desc: &AllocatorCreateDesc) -> Result<Self> {
        let invalid = AllocationError::InvalidAllocatorCreateDesc;
        if desc.physical_device == vk::PhysicalDevice::null() {
            return Err(invalid("AllocatorCreateDesc field `physical_device` is null.".to_owned()));
        }
        // SAFETY: the original interface is not `unsafe` here. Its documentation requires that the handles belong
        // together and that the device outlives the allocator.
        let memory = unsafe { desc.instance.get_physical_device_memory_properties(desc.physical_device) };
        let block_sizes = block_sizes(&memory, &desc.allocation_sizes);
        let mut info = AllocatorCreateInfo {
            // Device-coherent memory is allowed, as in the original. It is used only if a resource allows no other
            // type, and such a resource exists only if the program has enabled the feature.
            flags: AllocatorCreateFlags::KHR_DEDICATED_ALLOCATION
                | AllocatorCreateFlags::AMD_DEVICE_COHERENT_MEMORY
                // As in the original, an empty block is freed unless it is the last of its memory type.
                | AllocatorCreateFlags::KEEP_ONLY_LAST_BLOCK,
            block_sizes: &block_sizes,
            tracking: Tracking::USER_DATA,
            // The program's version is unknown. Version 1.0 has everything that is needed here.
            ..AllocatorCreateInfo::new(
                &desc.instance,
                &desc.device,
                desc.physical_device,
                vk::API_VERSION_1_0,
            )
        };
        info.flags.set(AllocatorCreateFlags::BUFFER_DEVICE_ADDRESS, desc.buffer_device_address);
        // SAFETY: as above.
        let inner = unsafe { sublet::Allocator::new(&info) }
            .or_else(|_| {
                // A Vulkan 1.0 device without the extension.
                info.flags.remove(AllocatorCreateFlags::KHR_DEDICATED_ALLOCATION);
                // SAFETY: as above.
                unsafe { sublet::Allocator::new(&info) }
            })
            .map_err(|error| invalid(words(&error)))?;
        // A recording that fails to start emits an event. The allocator works without it.
        #[cfg(feature = "trace")]
        let _ = sublet::trace::start_from_environment(&inner);
        if desc.debug_settings.log_memory_information {
            debug!(target: VULKAN, "memory type count: {}", memory.memory_type_count);
            debug!(target: VULKAN, "memory heap count: {}", memory.memory_heap_count);
            for (index, memory_type) in memory.memory_types_as_slice().iter().enumerate() {
                let (flags, heap) = (memory_type.property_flags, memory_type.heap_index);
                debug!(target: VULKAN, "memory type[{index}]: prop flags: 0x{:x}, heap[{heap}]", flags.as_raw());
            }
            for (index, heap) in memory.memory_heaps_as_slice().iter().enumerate() {
                debug!(target: VULKAN, "heap[{index}] flags: 0x{:x}, size: {} MiB", heap.flags.as_raw(), heap.size >> 20);
            }
        }
        Ok(Self {
            inner,
            memory,
            debug_settings: desc.debug_settings,
            next_id: NonZeroU64::MIN,
            #[cfg(feature = "std")]
            backtraces: BTreeMap::new(),
        })
    }

    /// Returns Sublet's allocator, which has more functions: memory maps, budgets, reports.
    ///
    /// ```
    /// # use ash::vk;
    /// # use gpu_allocator::{MemoryLocation, vulkan::{AllocationCreateDesc, AllocationScheme, Allocator, AllocatorCreateDesc}};
    /// # let gpu = sublet::sim::Gpu::new(sublet::sim::Profile::by_name("lavapipe").unwrap());
    /// # let mut allocator = Allocator::new(&AllocatorCreateDesc {
    /// #     instance: gpu.instance().clone(), device: gpu.device().clone(), physical_device: gpu.physical_device(),
    /// #     debug_settings: Default::default(), buffer_device_address: false, allocation_sizes: Default::default(),
    /// # })?;
    /// # let requirements = vk::MemoryRequirements { size: 4096, alignment: 256, memory_type_bits: !0 };
    /// # let (location, linear) = (MemoryLocation::GpuOnly, true);
    /// # let allocation_scheme = AllocationScheme::GpuAllocatorManaged;
    /// let memory =
    ///     allocator.allocate(&AllocationCreateDesc { name: "mesh", requirements, location, linear, allocation_scheme })?;
    /// let map = allocator.as_sublet().memory_map();
    /// let entry = map.allocations().next().unwrap();
    /// assert_eq!(entry.name.as_deref(), Some("mesh"));
    /// assert_eq!(Some(entry.id), memory.as_sublet().map(|memory| memory.id()));
    /// let heaps = allocator.as_sublet().heap_budgets();
    /// assert_eq!(heaps[0].statistics.allocation_bytes, 4096);
    /// allocator.free(memory)?;
    /// # Ok::<(), gpu_allocator::AllocationError>(())
    /// ```
    pub fn as_sublet(&self) -> &sublet::Allocator {
        &self.inner
    }

    /// Allocates memory for a resource that the caller binds.
    ///
    /// # Errors
    /// See [`AllocationError`].
    pub fn allocate(&mut self, desc: &AllocationCreateDesc<'_>) -> Result<Allocation> {
        let vk::MemoryRequirements { size, alignment, .. } = desc.requirements;
        if self.debug_settings.log_allocations {
            debug!(target: VULKAN, "Allocating `{}` of {size} bytes with an alignment of {alignment}.", desc.name.escape_debug());
            self.log_backtrace("Allocation");
        }
        if size == 0 || !alignment.is_power_of_two() {
            return Err(AllocationError::InvalidAllocationCreateDesc);
        }
        let [preferred, required] = properties_of(desc.location);
        let bits = desc.requirements.memory_type_bits;
        let memory_type = self
            .find(bits, preferred)
            .or_else(|| self.find(bits, required))
            .ok_or(AllocationError::NoCompatibleMemoryTypeFound)?;
        let memory = match (self.allocate_in(memory_type, desc), desc.location) {
            // If no device-local host-visible memory is left, falls back to host memory.
            (Err(_), MemoryLocation::CpuToGpu) => {
                let memory_type =
                    self.find(bits, required).ok_or(AllocationError::NoCompatibleMemoryTypeFound)?;
                self.allocate_in(memory_type, desc)
            }
            (allocated, _) => allocated,
        }?;
        let id = self.next_id;
        self.next_id = id.saturating_add(1);
        #[cfg(feature = "std")]
        if self.debug_settings.store_stack_traces {
            self.backtraces.insert(id.get(), Backtrace::force_capture());
        }
        let properties = self.properties(memory.memory_type_index());
        let dedicated = desc.allocation_scheme != AllocationScheme::GpuAllocatorManaged;
        Ok(Allocation {
            inner: Some(AllocationInner { memory, id, properties, dedicated }),
            name: Some(desc.name.into()),
        })
    }

    /// Frees an allocation. Does nothing if it holds no memory.
    ///
    /// # Errors
    /// [`AllocationError::Internal`] for an allocation of another allocator.
    pub fn free(&mut self, allocation: Allocation) -> Result<()> {
        if self.debug_settings.log_frees {
            debug!(target: VULKAN, "Freeing `{}`.", allocation.name.as_deref().unwrap_or("<null>").escape_debug());
            self.log_backtrace("Free");
        }
        let Some(inner) = allocation.inner else { return Ok(()) };
        // SAFETY: the original interface is not `unsafe` here. Its documentation requires that the device no longer
        // uses the memory, and that resources bound to it are destroyed.
        unsafe { self.inner.free_memory(inner.memory) }
            .map_err(|error| AllocationError::Internal(words(&error)))?;
        #[cfg(feature = "std")]
        self.backtraces.remove(&inner.id.get());
        Ok(())
    }

    /// Changes the name in reports.
    ///
    /// # Errors
    /// [`AllocationError::Internal`] for an allocation of another allocator.
    pub fn rename_allocation(&mut self, allocation: &mut Allocation, name: &str) -> Result<()> {
        allocation.name = Some(name.into());
        match &mut allocation.inner {
            None => Ok(()),
            Some(inner) => self
                .inner
                .set_allocation_name(&inner.memory, Some(name))
                .map_err(|error| AllocationError::Internal(words(&error))),
        }
    }

    /// Logs all live allocations.
    pub fn report_memory_leaks(&self, log_level: Level) {
        for vector in self.inner.memory_map().vectors {
            let memory_type = vector.memory_type_index;
            for (block, block_map) in vector.blocks.iter().enumerate() {
                for chunk in &block_map.chunks {
                    if let Some(entry) = &chunk.allocation {
                        let place = (Some(chunk.offset), chunk.size);
                        self.log_leak(log_level, (memory_type, block), place, entry);
                    }
                }
            }
            for (block, dedicated) in vector.dedicated.iter().enumerate() {
                let block = vector.blocks.len() + block;
                self.log_leak(log_level, (memory_type, block), (None, dedicated.size), &dedicated.allocation);
            }
        }
    }

    /// Returns all blocks and live allocations.
    pub fn generate_report(&self) -> AllocatorReport {
        let mut allocations = Vec::new();
        let mut blocks = Vec::new();
        let name = |entry: &sublet::AllocationEntry| entry.name.as_deref().unwrap_or("").to_owned();
        for vector in self.inner.memory_map().vectors {
            for block in &vector.blocks {
                let first = allocations.len();
                allocations.extend(block.chunks.iter().filter_map(|chunk| {
                    let entry = chunk.allocation.as_ref()?;
                    Some(AllocationReport { name: name(entry), offset: chunk.offset, size: chunk.size })
                }));
                blocks.push(MemoryBlockReport { size: block.size, allocations: first..allocations.len() });
            }
            for dedicated in &vector.dedicated {
                let first = allocations.len();
                let name = name(&dedicated.allocation);
                allocations.push(AllocationReport { name, offset: 0, size: dedicated.size });
                blocks.push(MemoryBlockReport { size: dedicated.size, allocations: first..first + 1 });
            }
        }
        AllocatorReport {
            total_allocated_bytes: allocations.iter().map(|allocation| allocation.size).sum(),
            total_capacity_bytes: blocks.iter().map(|block| block.size).sum(),
            allocations,
            blocks,
        }
    }

    /// Returns the bytes of all blocks.
    pub fn capacity(&self) -> u64 {
        self.inner.statistics().block_bytes
    }

    /// Returns the first allowed memory type that has all `flags`.
    fn find(&self, memory_type_bits: u32, flags: vk::MemoryPropertyFlags) -> Option<u32> {
        (0_u32..).zip(self.memory.memory_types_as_slice()).find_map(|(index, memory_type)| {
            let allowed = memory_type_bits & 1_u32.checked_shl(index).unwrap_or(0) != 0;
            (allowed && memory_type.property_flags.contains(flags)).then_some(index)
        })
    }

    fn properties(&self, memory_type: u32) -> vk::MemoryPropertyFlags {
        let types = self.memory.memory_types_as_slice();
        let index = usize::try_from(memory_type).unwrap_or(usize::MAX);
        types.get(index).map_or(vk::MemoryPropertyFlags::empty(), |found| found.property_flags)
    }

    /// Allocates memory of this type.
    fn allocate_in(&self, memory_type: u32, desc: &AllocationCreateDesc<'_>) -> Result<sublet::Allocation> {
        let mapped = self.properties(memory_type).contains(vk::MemoryPropertyFlags::HOST_VISIBLE);
        let mut flags = AllocationCreateFlags::empty();
        flags.set(AllocationCreateFlags::MAPPED, mapped);
        // The memory type is fixed here. The flags are only for recordings, which may be replayed on a device with
        // other types.
        let [preferred_flags, required_flags] = properties_of(desc.location);
        let info = AllocationCreateInfo {
            flags,
            required_flags,
            preferred_flags,
            memory_type_bits: 1 << memory_type,
            user_data: self.next_id.get(),
            name: Some(desc.name),
            ..Default::default()
        };
        let alone = AllocationCreateInfo { flags: flags | AllocationCreateFlags::DEDICATED_MEMORY, ..info };
        match desc.allocation_scheme {
            AllocationScheme::GpuAllocatorManaged => {
                let kind = if desc.linear { ResourceKind::Buffer } else { ResourceKind::ImageOptimal };
                // SAFETY: the caller states the kind of resource that it binds.
                unsafe { self.inner.allocate_memory_of_kind(&desc.requirements, kind, &info) }
            }
            AllocationScheme::DedicatedBuffer(buffer) => {
                // SAFETY: the buffer is live, and nothing is bound to it yet, as the scheme requires.
                unsafe { self.inner.allocate_memory_for_buffer(buffer, &alone) }
            }
            AllocationScheme::DedicatedImage(image) => {
                // SAFETY: the image is live, and nothing is bound to it yet, as the scheme requires.
                unsafe { self.inner.allocate_memory_for_image(image, &alone) }
            }
        }
        .map_err(|error| refused(&error))
    }

    #[cfg_attr(not(feature = "std"), allow(clippy::unused_self, reason = "there are no backtraces"))]
    fn log_backtrace(&self, what: &str) {
        #[cfg(feature = "std")]
        if self.debug_settings.log_stack_traces {
            debug!(target: VULKAN, "{what} stack trace: {}", Backtrace::force_capture());
        }
        #[cfg(not(feature = "std"))]
        let _ = what;
    }

    fn log_leak(
        &self,
        level: Level,
        (memory_type, block): (u32, usize),
        (offset, size): (Option<u64>, u64),
        entry: &sublet::AllocationEntry,
    ) {
        let name = entry.name.as_deref().unwrap_or("");
        let id = entry.user_data.unwrap_or(0);
        let backtrace = self.backtrace_line(id);
        match offset {
            Some(offset) => {
                let allocation_type = match entry.kind {
                    ResourceKind::Buffer | ResourceKind::ImageLinear => "Linear",
                    _ => "NonLinear",
                };
                log!(
                    target: FREE_LIST,
                    level,
                    r"leak detected: {{
    memory type: {memory_type}
    memory block: {block}
    chunk: {{
        chunk_id: {id},
        size: 0x{size:x},
        offset: 0x{offset:x},
        allocation_type: {allocation_type},
        name: {name}{backtrace}
    }}
}}"
                );
            }
            None => log!(
                target: DEDICATED,
                level,
                r"leak detected: {{
    memory type: {memory_type}
    memory block: {block}
    dedicated allocation: {{
        size: 0x{size:x},
        name: {name}{backtrace}
    }}
}}"
            ),
        }
    }

    /// Returns the backtrace of an allocation, for the last line of its leak.
    #[cfg(feature = "std")]
    fn backtrace_line(&self, id: u64) -> String {
        let disabled = Backtrace::disabled();
        format!(",\n        backtrace: {}", self.backtraces.get(&id).unwrap_or(&disabled))
    }

    #[cfg(not(feature = "std"))]
    fn backtrace_line(&self, _: u64) -> &'static str {
        ""
    }
}

impl fmt::Debug for Allocator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.generate_report().fmt(f)
    }
}

impl Drop for Allocator {
    fn drop(&mut self) {
        if self.debug_settings.log_leaks_on_shutdown {
            self.report_memory_leaks(Level::Warn);
        }
    }
}

/// Heaps up to this size have smaller blocks. The original's blocks would fit rarely or never.
const SMALL_HEAP_MAX_SIZE: u64 = 1 << 30;

/// Returns the block sizes of each memory type.
fn block_sizes(memory: &vk::PhysicalDeviceMemoryProperties, sizes: &AllocationSizes) -> Vec<BlockSizes> {
    let heaps = memory.memory_heaps_as_slice();
    let of_type = |memory_type: &vk::MemoryType| {
        let is_host = memory_type.property_flags.contains(vk::MemoryPropertyFlags::HOST_VISIBLE);
        let (first, largest) = sizes.range(is_host);
        let heap = usize::try_from(memory_type.heap_index).ok().and_then(|index| heaps.get(index));
        let most = match heap {
            Some(heap) if heap.size <= SMALL_HEAP_MAX_SIZE => heap.size / 8,
            _ => u64::MAX,
        };
        BlockSizes { first: first.min(most), largest: largest.min(most) }
    };
    memory.memory_types_as_slice().iter().map(of_type).collect()
}

/// Returns the preferred and the required properties of a location.
fn properties_of(location: MemoryLocation) -> [vk::MemoryPropertyFlags; 2] {
    let device = vk::MemoryPropertyFlags::DEVICE_LOCAL;
    let host = vk::MemoryPropertyFlags::HOST_VISIBLE | vk::MemoryPropertyFlags::HOST_COHERENT;
    match location {
        MemoryLocation::Unknown => [vk::MemoryPropertyFlags::empty(); 2],
        MemoryLocation::GpuOnly => [device; 2],
        MemoryLocation::CpuToGpu => [host | device, host],
        MemoryLocation::GpuToCpu => [host | vk::MemoryPropertyFlags::HOST_CACHED, host],
    }
}

/// Returns the original's error for a failed allocation.
fn refused(error: &sublet::AllocationError) -> AllocationError {
    match error {
        sublet::AllocationError::Map(error) => AllocationError::FailedToMap(error.vk_result().to_string()),
        sublet::AllocationError::NoMemoryType(_) => AllocationError::NoCompatibleMemoryTypeFound,
        sublet::AllocationError::Full { .. }
        | sublet::AllocationError::BlockTooSmall { .. }
        | sublet::AllocationError::Memory(_) => match error.vk_result() {
            vk::Result::ERROR_OUT_OF_DEVICE_MEMORY => AllocationError::OutOfMemory,
            // Also used if the driver was not called, because it would have failed with the same result.
            result => AllocationError::Internal(format!("Unexpected error in vkAllocateMemory: {result:?}")),
        },
        _ => AllocationError::Internal(words(error)),
    }
}

/// Returns an error with all its causes as one line.
fn words(error: &dyn std::error::Error) -> String {
    let mut words = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        words = format!("{words}: {cause}");
        source = cause.source();
    }
    words
}
