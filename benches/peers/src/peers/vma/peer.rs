//! VMA, in C++: the allocator with its default pools or a custom pool.
#![expect(unsafe_code, reason = "calls VMA")]

use std::ptr;

use ash::vk;
use sublet::Algorithm;
use sublet::trace::PoolSettings;

use super::ffi;
use crate::gpu::TestGpu;
use crate::peers::{PeerMode, PeerResource, SharedPeer, WholePeer, buffer_info, image_info};
use crate::replay::script::ScriptRequest;
use crate::script::{PeerRequest, PeerRequestKind};

/// An allocator.
pub(crate) struct Vma {
    allocator: ffi::FfiAllocator,
    pool: ffi::FfiPool,
    /// The pools of a recording.
    pools: Vec<ffi::FfiPool>,
    info: ffi::FfiAllocationCreateInfo,
    automatic: ffi::FfiAllocationCreateInfo,
    upload: ffi::FfiAllocationCreateInfo,
}

// SAFETY: VMA locks internally unless VMA_ALLOCATOR_CREATE_EXTERNALLY_SYNCHRONIZED_BIT is set, and it is not.
unsafe impl Send for Vma {}
// SAFETY: as above.
unsafe impl Sync for Vma {}

/// An allocation.
pub(crate) struct OwnedVmaAllocation(ffi::FfiAllocation);

// SAFETY: any thread may free it.
unsafe impl Send for OwnedVmaAllocation {}

/// Returns the functions of an instance and a device of Vulkan 1.3. With older ones, later functions must not be
/// called.
pub(crate) fn functions(instance: &ash::Instance, device: &ash::Device) -> ffi::FfiVulkanFunctions {
    let core = device.fp_v1_0();
    ffi::FfiVulkanFunctions {
        get_instance_proc_addr: None,
        get_device_proc_addr: None,
        get_physical_device_properties: instance.fp_v1_0().get_physical_device_properties,
        get_physical_device_memory_properties: instance.fp_v1_0().get_physical_device_memory_properties,
        allocate_memory: core.allocate_memory,
        free_memory: core.free_memory,
        map_memory: core.map_memory,
        unmap_memory: core.unmap_memory,
        flush_mapped_memory_ranges: core.flush_mapped_memory_ranges,
        invalidate_mapped_memory_ranges: core.invalidate_mapped_memory_ranges,
        bind_buffer_memory: core.bind_buffer_memory,
        bind_image_memory: core.bind_image_memory,
        get_buffer_memory_requirements: core.get_buffer_memory_requirements,
        get_image_memory_requirements: core.get_image_memory_requirements,
        create_buffer: core.create_buffer,
        destroy_buffer: core.destroy_buffer,
        create_image: core.create_image,
        destroy_image: core.destroy_image,
        cmd_copy_buffer: core.cmd_copy_buffer,
        get_buffer_memory_requirements2: Some(device.fp_v1_1().get_buffer_memory_requirements2),
        get_image_memory_requirements2: Some(device.fp_v1_1().get_image_memory_requirements2),
        bind_buffer_memory2: Some(device.fp_v1_1().bind_buffer_memory2),
        bind_image_memory2: Some(device.fp_v1_1().bind_image_memory2),
        get_physical_device_memory_properties2: Some(
            instance.fp_v1_1().get_physical_device_memory_properties2,
        ),
        get_device_buffer_memory_requirements: Some(device.fp_v1_3().get_device_buffer_memory_requirements),
        get_device_image_memory_requirements: Some(device.fp_v1_3().get_device_image_memory_requirements),
        get_memory_win32_handle: ptr::null_mut(),
    }
}

fn checked(result: vk::Result, call: &str) -> Result<(), String> {
    if result == vk::Result::SUCCESS { Ok(()) } else { Err(format!("{call}: {result}")) }
}

fn allocation_info(usage: u32, pool: ffi::FfiPool) -> ffi::FfiAllocationCreateInfo {
    ffi::FfiAllocationCreateInfo {
        flags: 0,
        usage,
        required_flags: vk::MemoryPropertyFlags::empty(),
        preferred_flags: vk::MemoryPropertyFlags::empty(),
        memory_type_bits: 0,
        pool,
        user_data: ptr::null_mut(),
        priority: 0.5,
    }
}

/// Returns default settings of a pool.
fn pool_info(memory_type_index: u32) -> ffi::FfiPoolCreateInfo {
    ffi::FfiPoolCreateInfo {
        memory_type_index,
        flags: 0,
        block_size: 0,
        min_block_count: 0,
        max_block_count: 0,
        priority: 0.5,
        min_allocation_alignment: 0,
        memory_allocate_next: ptr::null_mut(),
    }
}

/// Returns VMA's description of an allocation.
///
/// # Safety
/// The allocator is live, and the allocation belongs to it.
pub(crate) unsafe fn details(
    allocator: ffi::FfiAllocator,
    allocation: ffi::FfiAllocation,
) -> ffi::FfiAllocationInfo2 {
    let mut found = std::mem::MaybeUninit::<ffi::FfiAllocationInfo2>::zeroed();
    // SAFETY: the caller's promise.
    unsafe { ffi::allocation_info2(allocator, allocation, found.as_mut_ptr()) };
    // SAFETY: it was filled above.
    unsafe { found.assume_init() }
}

/// Creates a pool of a live allocator.
fn create_pool(allocator: ffi::FfiAllocator, info: &ffi::FfiPoolCreateInfo) -> Result<ffi::FfiPool, String> {
    let mut pool = ptr::null_mut();
    // SAFETY: the create-info is complete, and the callers have a live allocator.
    checked(unsafe { ffi::create_pool(allocator, info, &raw mut pool) }, "vmaCreatePool")?;
    Ok(pool)
}

impl Vma {
    pub(crate) fn new(gpu: &TestGpu, shape: PeerMode) -> Result<Option<Self>, String> {
        let (block_size, min, max, flags) = match shape {
            PeerMode::Default | PeerMode::Created => (0, 0, 0, None),
            PeerMode::Pool { block_size, min, max } => (block_size, min, max, Some(0)),
            PeerMode::LinearPool { block_size } => {
                let linear = ffi::POOL_LINEAR;
                (block_size, 0, 1, Some(linear))
            }
            _ => return Ok(None),
        };
        let functions = functions(gpu.instance(), gpu.device());
        let info = ffi::FfiAllocatorCreateInfo {
            flags: 0,
            physical_device: gpu.physical_device(),
            device: gpu.device().handle(),
            preferred_large_heap_block_size: 0,
            allocation_callbacks: ptr::null(),
            device_memory_callbacks: ptr::null(),
            heap_size_limit: ptr::null(),
            vulkan_functions: &functions,
            instance: gpu.instance().handle(),
            vulkan_api_version: gpu.api_version().min(vk::API_VERSION_1_3),
            type_external_memory_handle_types: ptr::null(),
        };
        let mut allocator = ptr::null_mut();
        // SAFETY: the create-info is complete; the creator of a peer keeps the device until the peer is finished.
        checked(unsafe { ffi::create_allocator(&raw const info, &raw mut allocator) }, "vmaCreateAllocator")?;
        let info = |flags| ffi::FfiPoolCreateInfo {
            flags,
            block_size,
            min_block_count: min,
            max_block_count: max,
            ..pool_info(gpu.device_local_type())
        };
        let pool = flags.map(|flags| create_pool(allocator, &info(flags))).transpose()?;
        let pool = pool.unwrap_or(ptr::null_mut());
        let usage = ffi::USAGE_GPU_ONLY;
        let automatic = ffi::USAGE_AUTO;
        Ok(Some(Self {
            allocator,
            pool,
            pools: Vec::new(),
            info: allocation_info(usage, pool),
            automatic: allocation_info(automatic, ptr::null_mut()),
            upload: ffi::FfiAllocationCreateInfo {
                flags: ffi::WRITTEN_AND_MAPPED,
                ..allocation_info(automatic, ptr::null_mut())
            },
        }))
    }

    #[inline]
    fn memory(
        &self,
        requirements: vk::MemoryRequirements,
        info: &ffi::FfiAllocationCreateInfo,
    ) -> Option<OwnedVmaAllocation> {
        let mut allocation = ptr::null_mut();
        let (to, none) = (&raw mut allocation, ptr::null_mut());
        // SAFETY: the allocator is live, and all arguments are valid.
        let result = unsafe { ffi::allocate_memory(self.allocator, &raw const requirements, info, to, none) };
        (result == vk::Result::SUCCESS).then_some(OwnedVmaAllocation(allocation))
    }
}

impl SharedPeer for Vma {
    type Allocation = OwnedVmaAllocation;

    #[inline]
    fn allocate(&self, request: &PeerRequest) -> Option<OwnedVmaAllocation> {
        let requirements = vk::MemoryRequirements {
            size: request.size,
            alignment: request.alignment,
            memory_type_bits: u32::MAX,
        };
        self.memory(requirements, &self.info)
    }

    #[inline]
    fn free(&self, held: OwnedVmaAllocation) {
        // SAFETY: the allocation belongs to this allocator, and no device uses it.
        unsafe { ffi::free_memory(self.allocator, held.0) };
    }

    fn live(&self) -> Option<u64> {
        let mut all = ffi::FfiTotalStatistics::default();
        // SAFETY: the allocator is live.
        unsafe { ffi::calculate_statistics(self.allocator, &raw mut all) };
        Some(all.total.statistics.allocation_count.into())
    }

    /// Returns an error if an allocation is live. Destroying VMA then aborts with assertions, and leaks without.
    fn finish(self) -> Result<(), String> {
        if let Some(live) = self.live().filter(|live| *live > 0) {
            return Err(format!("VMA still has {live} allocations"));
        }
        if !self.pool.is_null() {
            // SAFETY: nothing is left in it.
            unsafe { ffi::destroy_pool(self.allocator, self.pool) };
        }
        // SAFETY: nothing is left in it, and it is not used again.
        unsafe { ffi::destroy_allocator(self.allocator) };
        Ok(())
    }
}

impl WholePeer for Vma {
    #[inline]
    fn create(&mut self, request: &PeerRequest) -> Option<(PeerResource, OwnedVmaAllocation)> {
        let mut allocation = ptr::null_mut();
        let (info, memory, none) = (&raw const self.automatic, &raw mut allocation, ptr::null_mut());
        let (result, resource) = if request.kind == PeerRequestKind::Image {
            let (from, mut image) = (image_info(request), vk::Image::null());
            let (from, to) = (&raw const from, &raw mut image);
            // SAFETY: the allocator is live, and all arguments are valid.
            let result = unsafe { ffi::create_image(self.allocator, from, info, to, memory, none) };
            (result, PeerResource::Image(image))
        } else {
            let (from, mut buffer) = (buffer_info(request), vk::Buffer::null());
            let info = if request.kind == PeerRequestKind::Upload { &raw const self.upload } else { info };
            let (from, to) = (&raw const from, &raw mut buffer);
            // SAFETY: the allocator is live, and all arguments are valid.
            let result = unsafe { ffi::create_buffer(self.allocator, from, info, to, memory, none) };
            (result, PeerResource::Buffer(buffer))
        };
        (result == vk::Result::SUCCESS).then_some((resource, OwnedVmaAllocation(allocation)))
    }

    #[inline]
    fn destroy(&mut self, resource: PeerResource, held: OwnedVmaAllocation) {
        match resource {
            // SAFETY: both belong to this allocator, and no device uses them.
            PeerResource::Buffer(buffer) => unsafe { ffi::destroy_buffer(self.allocator, buffer, held.0) },
            // SAFETY: as above.
            PeerResource::Image(image) => unsafe { ffi::destroy_image(self.allocator, image, held.0) },
        }
    }
    /// `vmaAllocateMemory` does not learn the kind of resource, so VMA keeps the larger distance between resources.
    #[inline]
    fn play(&mut self, ask: &ScriptRequest) -> Option<OwnedVmaAllocation> {
        let bits = 1 << ask.memory_type;
        let requirements =
            vk::MemoryRequirements { size: ask.size, alignment: ask.alignment, memory_type_bits: bits };
        let pool = ask.pool.map_or(ptr::null_mut(), |pool| self.pools[pool as usize]);
        let mut info = allocation_info(ffi::USAGE_UNKNOWN, pool);
        info.flags = ask.flags().bits();
        self.memory(requirements, &info)
    }

    #[inline]
    fn map(&mut self, held: &mut OwnedVmaAllocation) -> bool {
        let mut data = ptr::null_mut();
        // SAFETY: the allocation belongs to this allocator.
        let result = unsafe { ffi::map_memory(self.allocator, held.0, &raw mut data) };
        result == vk::Result::SUCCESS
    }

    #[inline]
    fn unmap(&mut self, held: &mut OwnedVmaAllocation) {
        // SAFETY: scripts pair it with a `map`.
        unsafe { ffi::unmap_memory(self.allocator, held.0) };
    }

    fn create_pool(&mut self, number: u32, settings: &PoolSettings) -> Result<(), String> {
        let linear = if settings.algorithm == Algorithm::Linear { ffi::POOL_LINEAR } else { 0 };
        let pool = create_pool(
            self.allocator,
            &ffi::FfiPoolCreateInfo {
                // The flags have the same values in VMA.
                flags: settings.flags.bits() | linear,
                block_size: settings.block_size,
                min_block_count: settings.min_block_count as usize,
                max_block_count: settings.max_block_count as usize,
                min_allocation_alignment: settings.min_allocation_alignment,
                ..pool_info(settings.memory_type_index)
            },
        )?;
        self.pools.resize(self.pools.len().max(number as usize + 1), ptr::null_mut());
        self.pools[number as usize] = pool;
        Ok(())
    }

    fn destroy_pool(&mut self, number: u32) {
        let pool = std::mem::replace(&mut self.pools[number as usize], ptr::null_mut());
        if !pool.is_null() {
            // SAFETY: the script has freed everything in it.
            unsafe { ffi::destroy_pool(self.allocator, pool) };
        }
    }

    fn begin_frame(&mut self, index: u32) {
        // SAFETY: the allocator is live.
        unsafe { ffi::set_current_frame_index(self.allocator, index) };
    }
}
