//! VMA. `vmaAllocateMemory` does not learn the kind of resource, so VMA keeps the larger distance between resources.
#![expect(unsafe_code, reason = "calls Vulkan and other allocators")]

use std::ptr;

use ash::vk;
use sublet::Algorithm;
use sublet::trace::PoolSettings;

use super::Plays;
use crate::gpu::TestGpu;
use crate::peers::vma::{allocation_info, check_empty, checked, create_allocator, ffi};
use crate::replay::script::ScriptRequest;

pub(super) struct VmaPlayer {
    allocator: ffi::FfiAllocator,
    pools: Vec<ffi::FfiPool>,
}

/// `VMA_MEMORY_USAGE_UNKNOWN`.
const UNKNOWN: u32 = 0;

impl VmaPlayer {
    pub(super) fn new(gpu: &TestGpu) -> Result<Self, String> {
        Ok(Self { allocator: create_allocator(gpu)?, pools: Vec::new() })
    }
}

impl Plays for VmaPlayer {
    type Allocation = ffi::FfiAllocation;

    #[inline]
    fn allocate(&mut self, ask: &ScriptRequest) -> Option<ffi::FfiAllocation> {
        let bits = 1 << ask.memory_type;
        let requirements =
            vk::MemoryRequirements { size: ask.size, alignment: ask.alignment, memory_type_bits: bits };
        let pool = ask.pool.map_or(ptr::null_mut(), |pool| self.pools[pool as usize]);
        let mut info = allocation_info(UNKNOWN, pool);
        info.flags = ask.flags().bits();
        let mut allocation = ptr::null_mut();
        let (info, to, none) = (&raw const info, &raw mut allocation, ptr::null_mut());
        // SAFETY: the allocator is live, and all arguments are valid.
        let result = unsafe { ffi::allocate_memory(self.allocator, &raw const requirements, info, to, none) };
        (result == vk::Result::SUCCESS).then_some(allocation)
    }

    #[inline]
    fn free(&mut self, allocation: ffi::FfiAllocation) {
        // SAFETY: the allocation belongs to this allocator, and no device uses it.
        unsafe { ffi::free_memory(self.allocator, allocation) };
    }

    #[inline]
    fn map(&mut self, allocation: &mut ffi::FfiAllocation) -> bool {
        let mut data = ptr::null_mut();
        // SAFETY: the allocation belongs to this allocator.
        let result = unsafe { ffi::map_memory(self.allocator, *allocation, &raw mut data) };
        result == vk::Result::SUCCESS
    }

    #[inline]
    fn unmap(&mut self, allocation: &mut ffi::FfiAllocation) {
        // SAFETY: scripts pair it with a `map`.
        unsafe { ffi::unmap_memory(self.allocator, *allocation) };
    }

    fn create_pool(&mut self, number: u32, settings: &PoolSettings) -> Result<(), String> {
        let linear = if settings.algorithm == Algorithm::Linear { ffi::POOL_LINEAR } else { 0 };
        let info = ffi::FfiPoolCreateInfo {
            memory_type_index: settings.memory_type_index,
            // The flags have the same values in VMA.
            flags: settings.flags.bits() | linear,
            block_size: settings.block_size,
            min_block_count: settings.min_block_count as usize,
            max_block_count: settings.max_block_count as usize,
            priority: 0.5,
            min_allocation_alignment: settings.min_allocation_alignment,
            memory_allocate_next: ptr::null_mut(),
        };
        let mut pool = ptr::null_mut();
        // SAFETY: the create-info is complete.
        let made = unsafe { ffi::create_pool(self.allocator, &raw const info, &raw mut pool) };
        checked(made, "vmaCreatePool")?;
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

    fn frame(&mut self, index: u32) {
        // SAFETY: the allocator is live.
        unsafe { ffi::set_current_frame_index(self.allocator, index) };
    }

    fn finish(self) -> Result<(), String> {
        // SAFETY: the allocator is live.
        unsafe { check_empty(self.allocator) }?;
        // SAFETY: nothing is left in it, and it is not used again.
        unsafe { ffi::destroy_allocator(self.allocator) };
        Ok(())
    }
}
