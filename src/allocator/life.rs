//! The beginning and the end of an allocator.
#![expect(unsafe_code, reason = "calls Vulkan, or has its caller promise what Vulkan asks")]

use std::sync::atomic::{AtomicU32, Ordering};

use ash::vk;

use super::debug::DebugState;
use super::recording::Recording;
use super::route::Bookkeeping;
use super::{API_VERSION_1_4, Allocator, AllocatorCreateInfo, AllocatorInner, PoolNumbers};
use crate::allocation::Leak;
use crate::base::append_table::AppendTable;
use crate::base::sync::Mutex;
use crate::blocks::{Budgets, DeviceContext};
use crate::create_info::AllocatorCreateFlags;
use crate::device::{DeviceSettings, LiveDevice};
use crate::error::CreateAllocatorError;
use crate::memory_type::{self, MemoryTypeTable};

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
            LiveDevice::new(&info.functions, info.instance, info.physical_device, info.device, settings)
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
        budgets.limit_mapped(info.max_mapped_size);
        if info.debug.exceed_max_allocation_count {
            budgets.exceed_max_live_memory();
        }
        let context = DeviceContext { device, budgets };
        let allowed_types = memory_type::global_mask(&context.device.memory, info.flags);
        let device_type = context.device.properties.device_type;
        let core_version = info.api_version.min(context.device.properties.api_version);
        let mut inner = Box::new(AllocatorInner {
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
