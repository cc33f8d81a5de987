//! Sublet's calls.

use ash::vk;
use sublet::{
    Allocation, AllocationCreateInfo, Allocator, AllocatorCreateFlags, AllocatorCreateInfo,
    DefragmentationInfo, Pool, PoolCreateInfo, Shared, Tracking, VirtualAllocation,
    VirtualAllocationCreateInfo,
};

use super::super::sublet::{self as peer, Sublet, Virtual};
use super::{Block, COPIED, Calls, MANY, Request, Shape, Spec};
use crate::gpu::Gpu;

/// The name that allocations are given.
const NAME: &str = "shadow map, cascade 2";

fn from_info(
    info: &AllocatorCreateInfo<'_>,
    gpu: &Gpu,
    shape: Shape,
) -> Result<Option<Sublet<Shared>>, String> {
    // SAFETY: whoever makes a peer keeps the device until the peer is finished.
    let allocator = unsafe { Allocator::new(info) }.map_err(|error| error.to_string())?;
    Sublet::new(allocator, gpu, shape)
}

impl Calls for Sublet<Shared> {
    type Maker = AllocatorCreateInfo<'static>;
    type Info = AllocationCreateInfo<'static>;
    type Pool = Pool;
    type PoolInfo = PoolCreateInfo<'static>;
    type Block = Virtual;

    fn new(gpu: &Gpu, shape: Shape) -> Result<Option<Self>, String> {
        peer::shared(gpu, shape)
    }

    fn new_with_user_data(gpu: &Gpu, shape: Shape) -> Result<Option<Self>, String> {
        let info = AllocatorCreateInfo { tracking: Tracking::USER_DATA, ..peer::create_info(gpu) };
        from_info(&info, gpu, shape)
    }

    fn new_with_budget(gpu: &Gpu, shape: Shape) -> Result<Option<Self>, String> {
        let flags = AllocatorCreateFlags::EXT_MEMORY_BUDGET;
        from_info(&AllocatorCreateInfo { flags, ..peer::create_info(gpu) }, gpu, shape)
    }

    fn maker(gpu: &Gpu) -> Self::Maker {
        peer::create_info(gpu)
    }

    fn made_and_destroyed(maker: &Self::Maker) -> bool {
        // SAFETY: the device lives as long as the row.
        unsafe { Allocator::new(maker) }.is_ok_and(|allocator: Allocator| allocator.destroy().is_empty())
    }

    fn pool_info(memory_type: u32) -> Self::PoolInfo {
        PoolCreateInfo::new(memory_type)
    }

    fn create_pool(&self, info: &Self::PoolInfo) -> Option<Pool> {
        self.allocator.create_pool(info).ok()
    }

    fn destroy_pool(&self, pool: Pool) -> bool {
        // SAFETY: nothing is in it.
        unsafe { self.allocator.destroy_pool(pool) }.is_ok_and(|leaks| leaks.is_empty())
    }

    fn info(&self, spec: Spec) -> Self::Info {
        AllocationCreateInfo {
            flags: spec.flags,
            usage: spec.usage,
            required_flags: spec.required,
            preferred_flags: spec.preferred,
            memory_type_bits: spec.bits,
            pool: self.info.pool,
            ..AllocationCreateInfo::default()
        }
    }

    fn request(&self, needs: &vk::MemoryRequirements, info: &Self::Info) -> Option<Allocation> {
        self.allocator.allocate_memory(needs, info).ok()
    }

    fn request_named(&self, needs: &vk::MemoryRequirements, info: &Self::Info) -> Option<Allocation> {
        self.allocator.allocate_memory(needs, &AllocationCreateInfo { name: Some(NAME), ..*info }).ok()
    }

    fn request_numbered(&self, request: &Request, number: u64) -> Option<Allocation> {
        let Request { size, alignment, .. } = *request;
        let needs = vk::MemoryRequirements { size, alignment, memory_type_bits: u32::MAX };
        let info = AllocationCreateInfo { user_data: number, ..self.info };
        self.allocator.allocate_memory(&needs, &info).ok()
    }

    fn set_name(&self, allocation: &Allocation) -> bool {
        self.allocator.set_allocation_name(allocation, Some(NAME)).is_ok()
    }

    fn allocation_info(&self, allocation: &Allocation) -> Option<u64> {
        self.allocation_info2(allocation)
    }

    fn allocation_info2(&self, allocation: &Allocation) -> Option<u64> {
        self.allocator.allocation_info(allocation).ok().map(|info| info.size)
    }

    fn budgets(&self) -> u64 {
        self.allocator.heap_budgets().iter().map(|heap| heap.statistics.allocation_count).sum()
    }

    fn statistics(&self) -> u64 {
        self.allocator.calculate_statistics().total.statistics.allocation_count
    }

    fn pool_statistics(&self) -> u64 {
        let found = self.info.pool.and_then(|pool| self.allocator.pool_statistics(pool).ok());
        found.unwrap_or_default().allocation_count
    }

    fn pool_detailed(&self) -> u64 {
        let found = self.info.pool.and_then(|pool| self.allocator.calculate_pool_statistics(pool).ok());
        found.unwrap_or_default().statistics.allocation_count
    }

    fn text(&self, map: bool) -> usize {
        sublet_report::stats_string(&self.allocator, map).len()
    }

    fn frame(&self, index: u32) {
        self.allocator.set_current_frame_index(index);
    }

    fn find(&self, info: &Self::Info) -> Option<u32> {
        self.allocator.find_memory_type_index(u32::MAX, info).ok()
    }

    fn find_for_buffer(&self, buffer: &vk::BufferCreateInfo<'_>, info: &Self::Info) -> Option<u32> {
        // SAFETY: the create-info is complete.
        unsafe { self.allocator.find_memory_type_index_for_buffer_info(buffer, info) }.ok()
    }

    fn find_for_image(&self, image: &vk::ImageCreateInfo<'_>, info: &Self::Info) -> Option<u32> {
        // SAFETY: the create-info is complete.
        unsafe { self.allocator.find_memory_type_index_for_image_info(image, info) }.ok()
    }

    fn bind(&self, allocation: &Allocation, buffer: vk::Buffer) -> bool {
        // SAFETY: the buffer is not bound, and the allocation is as large and as aligned as it needs.
        unsafe { self.allocator.bind_buffer_memory(allocation, 0, buffer) }.is_ok()
    }

    fn map(&self, allocation: &Allocation) -> bool {
        // SAFETY: it pairs with the mapping, whose pointer is not used.
        self.allocator
            .map_memory(allocation)
            .is_ok_and(|_| unsafe { self.allocator.unmap_memory(allocation) }.is_ok())
    }

    fn make_visible(&self, allocation: &Allocation, invalidate: bool) -> bool {
        let size = COPIED as u64;
        let done = if invalidate {
            self.allocator.invalidate(allocation, 0, size)
        } else {
            self.allocator.flush(allocation, 0, size)
        };
        done.is_ok()
    }

    fn make_many_visible(&self, allocations: &[Allocation], invalidate: bool) -> bool {
        let ranges: [_; MANY] = std::array::from_fn(|at| (&allocations[at], 0, COPIED as u64));
        let done = if invalidate {
            self.allocator.invalidate_many(&ranges)
        } else {
            self.allocator.flush_many(&ranges)
        };
        done.is_ok()
    }

    fn copy_to(&self, bytes: &[u8; COPIED], allocation: &mut Allocation) -> bool {
        self.allocator.copy_to_allocation(bytes, allocation, 0).is_ok()
    }

    fn copy_from(&self, allocation: &Allocation, bytes: &mut [u8; COPIED]) -> bool {
        self.allocator.copy_from_allocation(allocation, 0, bytes).is_ok()
    }

    fn defragment(&self, allocations: &mut [Allocation]) -> u64 {
        let pools: Vec<_> = self.info.pool.into_iter().collect();
        let info = DefragmentationInfo { pools: &pools, ..DefragmentationInfo::default() };
        let Ok(mut context) = self.allocator.begin_defragmentation(&info) else { return 0 };
        while let Some(pass) = context.begin_pass() {
            for moved in pass {
                let Some(number) = moved.user_data() else { return 0 };
                std::hint::black_box((moved.memory(), moved.offset()));
                // SAFETY: nothing is bound to it.
                let completed = unsafe { moved.complete(&mut allocations[number as usize - 1]) };
                if completed.is_err() {
                    return 0;
                }
            }
        }
        context.end().allocations_moved
    }
}

impl Block for Virtual {
    fn new(shape: Shape) -> Result<Option<Self>, String> {
        peer::virtual_block(shape)
    }

    fn upper(&mut self, request: &Request) -> Option<VirtualAllocation> {
        let Request { size, alignment, .. } = *request;
        let info = VirtualAllocationCreateInfo {
            size,
            alignment,
            upper_address: true,
            ..VirtualAllocationCreateInfo::default()
        };
        self.0.allocate(&info).ok()
    }

    fn detailed(&self) -> u64 {
        self.0.detailed_statistics().statistics.allocation_count
    }

    fn text(&self) -> usize {
        sublet_report::virtual_block_stats_string(&self.0, true).len()
    }
}
