//! The allocator: default vectors, pools, and the routing of allocations.

mod alias;
mod allocate;
mod bind;
mod copy;
mod create;
mod create_info;
mod debug;
mod dedicated;
pub(crate) mod defragment;
mod empty_blocks;
mod events;
mod external;
mod find;
mod fit;
mod map;
mod memory_map;
mod pools;
mod priority;
mod recorded_call;
#[cfg_attr(not(feature = "trace"), path = "not_recording.rs")]
mod recording;
mod relief;
mod request;
mod retire;
mod route;
mod scopes;
mod settle;
mod statistics;
mod tracking;
mod vectors;

use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};

use ash::vk;

use crate::allocation::{Allocation, AllocationInfo, Leak, allocation_flags};
use crate::base::append_table::AppendTable;
use crate::base::sync::Mutex;
use crate::blocks::{BlockVector, Budgets, DeviceContext};
use crate::create_info::AllocatorCreateFlags;
use crate::device::{Device, DeviceSettings};
use crate::error::{CreateAllocatorError, ForeignHandle};
use crate::memory_type::{self, MemoryTypeTable};

use debug::DebugState;
pub use recorded_call::{Outcome, RecordedCall};
use recording::Recording;

pub use create::CreateInside;
pub use create_info::AllocatorCreateInfo;
pub use debug::DebugSettings;
pub use defragment::{
    CompleteMoveError, Defragmentation, DefragmentationPass, FreeMoveError, Move, SharedDefragmentation,
};
pub use map::Mapping;
pub use map::Visibility;
pub use request::Resource;
pub use retire::{CollectError, RetiredResources, TimelineError};
use route::Bookkeeping;
pub use statistics::HeapBudget;
pub use tracking::Tracking;
use vectors::DefaultVector;

/// `ash` has no name for it yet.
const API_VERSION_1_4: u32 = vk::make_api_version(0, 1, 4, 0);
/// Numbers of pools: the free ones, and the next unused one.
#[derive(Debug)]
struct PoolNumbers {
    free: Vec<u32>,
    next: u32,
}

struct Inner {
    id: u32,
    context: DeviceContext,
    types: MemoryTypeTable,
    allowed_types: u32,
    maintenance5: bool,
    tracking: Tracking,
    /// True if every allocation needs work beyond the fast path.
    bookkeeping: Bookkeeping,
    /// By memory type.
    defaults: Box<[DefaultVector]>,
    /// The vectors of pools, numbered after the default ones.
    pool_vectors: AppendTable<BlockVector>,
    pools: Mutex<PoolNumbers>,
    /// Serializes relief: freeing empty blocks for lack of memory. Held over driver calls.
    relief: Mutex<()>,
    /// The number of reliefs.
    reliefs: AtomicU32,
    debug: DebugState,
    recording: Recording,
}

/// Suballocates device memory: from default vectors, one for each memory type, and from custom pools.
///
/// All methods take `&self`. `Allocator` is [`Send`] and [`Sync`]; share it by reference or in an
/// [`Arc`](std::sync::Arc). The value itself is one pointer.
///
/// Threads that contend for the blocks of a memory type get exclusive parts of them, so that they do not wait for one
/// another. [`guide::performance`](crate::guide::performance#threads) describes when, and the cost. A thread waits for
/// another thread's driver call only if it needs one too.
///
/// ```
/// use ash::vk;
/// use sublet::{AllocationCreateInfo, Allocator, AllocatorCreateInfo, MemoryUsage, sim};
///
/// let gpu = sim::Gpu::new(sim::Profile::by_name("lavapipe").unwrap());
/// let info = AllocatorCreateInfo::new(gpu.instance(), gpu.device(), gpu.physical_device(), gpu.api_version());
/// // SAFETY: instance and device are live, and outlive the allocator.
/// let allocator = unsafe { Allocator::new(&info) }?;
///
/// let buffer_info = vk::BufferCreateInfo::default().size(65_536).usage(vk::BufferUsageFlags::VERTEX_BUFFER);
/// // SAFETY: the create-info is valid.
/// let (buffer, allocation) =
///     unsafe { allocator.create_buffer(&buffer_info, &AllocationCreateInfo::new(MemoryUsage::Auto)) }?;
/// // SAFETY: the device never used the buffer.
/// unsafe { allocator.destroy_buffer(buffer, allocation) }?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias = "DeviceAllocator")]
#[doc(alias = "VulkanAllocator")]
pub struct Allocator {
    inner: Box<Inner>,
}

/// The device features that the flags and the version imply.
fn settings(info: &AllocatorCreateInfo<'_>, api_version: u32) -> DeviceSettings {
    let flag = |flag| info.flags.contains(flag);
    let at_least = |version| api_version >= version;
    DeviceSettings {
        dedicated_allocation: at_least(vk::API_VERSION_1_1)
            || flag(AllocatorCreateFlags::KHR_DEDICATED_ALLOCATION),
        bind_memory2: at_least(vk::API_VERSION_1_1) || flag(AllocatorCreateFlags::KHR_BIND_MEMORY2),
        maintenance3: at_least(vk::API_VERSION_1_1),
        maintenance4: at_least(vk::API_VERSION_1_3) || flag(AllocatorCreateFlags::KHR_MAINTENANCE4),
        memory_budget: flag(AllocatorCreateFlags::EXT_MEMORY_BUDGET),
        memory_priority: flag(AllocatorCreateFlags::EXT_MEMORY_PRIORITY),
        buffer_device_address: flag(AllocatorCreateFlags::BUFFER_DEVICE_ADDRESS),
        pageable_device_local_memory: flag(AllocatorCreateFlags::EXT_PAGEABLE_DEVICE_LOCAL_MEMORY),
        external_memory_win32: flag(AllocatorCreateFlags::KHR_EXTERNAL_MEMORY_WIN32),
    }
}

impl Allocator {
    /// Creates an allocator that any number of threads may use at once. Allocates no device memory yet.
    ///
    /// # Errors
    /// [`CreateAllocatorError`] if a required function is missing, or the version or the heap limits are invalid.
    ///
    /// # Safety
    /// 1. Instance, physical device and device are live, belong together, and outlive the allocator. The allocator ends
    ///    when it is dropped, or with [`destroy`](Self::destroy) or [`destroy_in_place`](Self::destroy_in_place).
    /// 2. `info.functions` belong to this instance and device.
    /// 3. `info.api_version` is at most the version of the instance, and the features in `info.flags` are enabled on
    ///    the device.
    /// 4. `info.allocation_callbacks` may be called from any thread until the allocator ends
    ///    (VUID-VkAllocationCallbacks-pfnAllocation-00632 and its siblings). The extensions that define
    ///    `info.external_memory_handle_types` are enabled.
    /// 5. When the allocator ends, the device no longer uses any of its memory.
    #[doc(alias = "CreateAllocator")]
    pub unsafe fn new(info: &AllocatorCreateInfo<'_>) -> Result<Self, CreateAllocatorError> {
        static NEXT_ID: AtomicU32 = AtomicU32::new(1);
        let (major, minor) =
            (vk::api_version_major(info.api_version), vk::api_version_minor(info.api_version));
        if major != 1 || minor > 4 {
            return Err(CreateAllocatorError::ApiVersion { api_version: info.api_version });
        }
        // SAFETY: the caller's promises 1 to 3.
        let mut device = unsafe {
            let settings = settings(info, info.api_version);
            Device::new(&info.functions, info.instance, info.physical_device, info.device, settings)
        }?;
        // An instance may be newer than the device: a version counts only if both support it.
        device.settings = settings(info, info.api_version.min(device.properties.api_version));
        if let Some(function) = device.missing_for_settings() {
            return Err(CreateAllocatorError::ExtensionNotPresent { function });
        }
        device.read_size_limits();
        let heaps = device.memory_heaps().len();
        if info.heap_size_limits.len() > heaps {
            return Err(CreateAllocatorError::HeapLimits { limits: info.heap_size_limits.len(), heaps });
        }
        let types = device.memory_types().len();
        if info.external_memory_handle_types.len() > types {
            let handle_types = info.external_memory_handle_types.len();
            return Err(CreateAllocatorError::ExternalMemoryHandleTypes { handle_types, types });
        }
        if info.block_sizes.len() > types {
            return Err(CreateAllocatorError::BlockSizes { sizes: info.block_sizes.len(), types });
        }
        // SAFETY: the caller's promise 4: the callbacks may be called from any thread. Nothing was created yet.
        unsafe { device.set_host_callbacks(info.allocation_callbacks) };
        device.set_memory_callbacks(info.device_memory_callbacks.clone());
        // SAFETY: the caller's promise 4.
        unsafe { device.set_export_types(info.external_memory_handle_types) };
        if info.debug.detect_corruption && info.debug.margin == 0 {
            return Err(CreateAllocatorError::NoMargin);
        }
        device.raise_granularity(info.debug.min_buffer_image_granularity);
        let mut budgets = Budgets::new(&device, info.heap_size_limits);
        if info.debug.exceed_max_allocation_count {
            budgets.exceed_max_live_memory();
        }
        let context = DeviceContext { device, budgets };
        let allowed_types = memory_type::global_mask(&context.device.memory, info.flags);
        let device_type = context.device.properties.device_type;
        let core_version = info.api_version.min(context.device.properties.api_version);
        let mut inner = Box::new(Inner {
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            types: MemoryTypeTable::new(&context.device.memory, device_type, allowed_types),
            allowed_types,
            maintenance5: core_version >= API_VERSION_1_4
                || info.flags.contains(AllocatorCreateFlags::KHR_MAINTENANCE5),
            tracking: info.tracking,
            bookkeeping: Bookkeeping::new(info.tracking),
            defaults: Box::default(),
            pool_vectors: AppendTable::new(),
            pools: Mutex::new(PoolNumbers { free: Vec::new(), next: 0 }),
            relief: Mutex::new(()),
            reliefs: AtomicU32::new(0),
            debug: DebugState::new(info.debug),
            recording: Recording::new(info),
            context,
        });
        inner.activate_defaults(info);
        Ok(Self { inner })
    }

    /// [`Self::free_memory`] by reference, for programs that keep allocations in a table or free them in `Drop`.
    ///
    /// # Errors
    /// [`ForeignHandle`] if the allocation belongs to another allocator, or if its pool was destroyed.
    ///
    /// # Safety
    /// See [`Self::free_memory`]. After a successful call the allocation is not used again.
    #[inline]
    pub unsafe fn free_in_place(&self, allocation: &Allocation) -> Result<(), ForeignHandle> {
        self.before_free(allocation);
        self.take_back(allocation)
    }

    /// Informs recordings and debug settings of an allocation that is about to be freed.
    #[inline(always)]
    fn before_free(&self, allocation: &Allocation) {
        self.record_free(allocation);
        if allocation.has(allocation_flags::WATCHED) {
            self.unwatch(&allocation.copied());
        }
    }

    /// Returns the range to its vector.
    #[inline(always)]
    fn take_back(&self, allocation: &Allocation) -> Result<(), ForeignHandle> {
        let vector = self.vector_of(allocation)?;
        vector.free(&self.inner.context, allocation.live(), allocation.has(allocation_flags::MAPPED))
    }

    /// Frees an allocation for an operation that failed. Also frees a block that was made for it.
    ///
    /// # Safety
    /// See [`Self::free_memory`].
    #[cold]
    pub(crate) unsafe fn undo_memory(&self, allocation: &Allocation) {
        self.before_free(allocation);
        let mapped = allocation.has(allocation_flags::MAPPED);
        let undone = self
            .vector_of(allocation)
            .and_then(|vector| vector.undo(&self.inner.context, allocation.live(), mapped));
        debug_assert!(undone.is_ok());
    }

    /// All properties of an allocation.
    ///
    /// # Errors
    /// [`ForeignHandle`] if it belongs to another allocator, or its pool was destroyed.
    pub fn allocation_info(&self, allocation: &Allocation) -> Result<AllocationInfo, ForeignHandle> {
        let vector = self.vector_of(allocation)?;
        let (annotation, memory_size) = vector.annotation_and_memory_size(allocation.live())?;
        Ok(AllocationInfo {
            memory_type_index: allocation.memory_type_index(),
            memory: allocation.memory,
            offset: allocation.offset,
            size: allocation.size,
            mapped_pointer: allocation.mapped_pointer(),
            user_data: allocation.user_data,
            name: annotation.name,
            caller: annotation.caller,
            memory_size,
            dedicated: allocation.is_dedicated(),
        })
    }

    /// Names an allocation for statistics and leak reports; `None` removes the name.
    ///
    /// # Errors
    /// [`ForeignHandle`] if it belongs to another allocator, or its pool was destroyed.
    #[doc(alias = "SetName")]
    pub fn set_allocation_name(
        &self,
        allocation: &Allocation,
        name: Option<&str>,
    ) -> Result<(), ForeignHandle> {
        self.vector_of(allocation)?.set_name(allocation.live(), name)?;
        self.record(RecordedCall::SetName(allocation, name));
        Ok(())
    }

    /// Frees every empty block, except the minimum number in each pool, and unmaps memory without users. Unused memory
    /// of threads' shards returns first. Returns the bytes freed.
    ///
    /// ```
    /// # use sublet::*; use ash::vk;
    /// # let (gpu, allocator) = sublet::doc_example();
    /// # let requirements = vk::MemoryRequirements { size: 4096, alignment: 64, memory_type_bits: !0 };
    /// let allocation = allocator.allocate_memory(&requirements, &AllocationCreateInfo::default())?;
    /// // SAFETY: nothing was ever bound to it.
    /// unsafe { allocator.free_memory(allocation) }?;
    /// assert!(allocator.trim() >= 4096, "one empty block was kept until now");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn trim(&self) -> u64 {
        let span = tracing::debug_span!(target: "sublet::block", "trim");
        let _entered = span.enter();
        let bytes = self.inner.vectors().map(|vector| vector.trim(&self.inner.context)).sum();
        tracing::debug!(name: "trimmed", target: "sublet::block", bytes, "empty blocks given back");
        self.record(RecordedCall::Trim);
        bytes
    }

    /// Destroys the allocator and returns the allocations that were still live. Dropping it does the same, but only
    /// logs these leaks.
    ///
    /// ```
    /// # use sublet::*; use ash::vk;
    /// # let (gpu, allocator) = sublet::doc_example();
    /// # let requirements = vk::MemoryRequirements { size: 4096, alignment: 64, memory_type_bits: !0 };
    /// let info = AllocationCreateInfo { name: Some("forgotten"), ..Default::default() };
    /// let _lost = allocator.allocate_memory(&requirements, &info)?;
    /// let leaks = allocator.destroy();
    /// assert_eq!(leaks[0].name.as_deref(), Some("forgotten"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn destroy(self) -> Vec<Leak> {
        self.inner.shut_down()
    }

    /// [`Self::destroy`] by reference, for the `Drop` of a struct that owns the allocator and its device: Rust drops
    /// the fields only afterwards. Frees all memory, and returns the allocations that were still live. Dropping the
    /// allocator later calls neither the driver nor the callbacks.
    ///
    /// ```
    /// # use sublet::*; use ash::vk;
    /// struct Renderer {
    ///     allocator: Allocator,
    ///     device: ash::Device,
    /// #   gpu: sim::Gpu,
    /// }
    ///
    /// impl Drop for Renderer {
    ///     fn drop(&mut self) {
    ///         // SAFETY: nothing is submitted any more, and the allocator is only dropped from here on.
    ///         let leaks = unsafe { self.allocator.destroy_in_place() };
    ///         assert!(leaks.is_empty());
    ///         // SAFETY: everything that was made with the device is destroyed.
    ///         unsafe { self.device.destroy_device(None) };
    /// #       self.gpu.assert_silent();
    ///     }
    /// }
    /// # let gpu = sim::Gpu::new(sim::Profile::by_name("lavapipe").unwrap());
    /// # // SAFETY: `Renderer::drop` destroys the allocator before the device.
    /// # let allocator = unsafe { Allocator::new(&AllocatorCreateInfo::for_gpu(&gpu)) }?;
    /// # let needed = vk::MemoryRequirements { size: 4096, alignment: 256, memory_type_bits: !0 };
    /// # let kept = allocator.allocate_memory(&needed, &AllocationCreateInfo::default())?;
    /// # // SAFETY: nothing was bound to it. An empty block stays.
    /// # unsafe { allocator.free_memory(kept) }?;
    /// # drop(Renderer { allocator, device: gpu.device().clone(), gpu });
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Safety
    /// 1. As when the allocator is dropped, the device no longer uses any of its memory.
    /// 2. The allocator is not used again, except to drop it. No call checks this, because the check would slow down
    ///    all of them. The same holds for its pools, scopes and allocations.
    pub unsafe fn destroy_in_place(&mut self) -> Vec<Leak> {
        self.inner.shut_down()
    }

    /// Checks all internal state for consistency. For tests and debugging: O(allocations).
    ///
    /// # Panics
    /// Panics with the violated invariant.
    pub fn validate(&self) {
        self.inner.vectors().for_each(BlockVector::validate);
    }

    /// The vector of a live allocation. Fails if its pool or scope is gone.
    fn live_vector_of(&self, allocation: &Allocation) -> Result<&BlockVector, ForeignHandle> {
        let vector = self.vector_of(allocation)?;
        vector.memory_size(allocation.live())?;
        Ok(vector)
    }

    /// The vector of an allocation.
    #[inline]
    fn vector_of(&self, allocation: &Allocation) -> Result<&BlockVector, ForeignHandle> {
        if allocation.allocator != self.inner.id {
            return Err(ForeignHandle::Allocation);
        }
        self.inner.vector(allocation.vector).ok_or(ForeignHandle::Allocation)
    }
}

impl Inner {
    /// Frees everything and returns the leaks. A second call finds nothing.
    fn shut_down(&self) -> Vec<Leak> {
        self.finish_recording();
        let mut leaks = Vec::new();
        for (number, vector) in self.numbered_vectors() {
            leaks.append(&mut self.deactivate(number, vector));
        }
        leaks
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.shut_down();
    }
}

impl fmt::Debug for Allocator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Allocator")
            .field("id", &self.inner.id)
            .field("memory_types", &self.inner.defaults.len())
            .finish_non_exhaustive()
    }
}

/// Setup for documentation examples.
#[cfg(feature = "sim")]
#[must_use]
#[doc(hidden)]
pub fn doc_example() -> (&'static sublet_sim::Gpu, Allocator) {
    let profile = sublet_sim::Profile::by_name("lavapipe").expect("a profile that is built in");
    let gpu = &*Box::leak(Box::new(sublet_sim::Gpu::new(profile)));
    // SAFETY: the simulated instance and device are live for ever, because `gpu` is never dropped.
    let allocator = unsafe { Allocator::new(&AllocatorCreateInfo::for_gpu(gpu)) };
    (gpu, allocator.expect("the simulated driver refuses nothing"))
}
