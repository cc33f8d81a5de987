//! The fast path emits no events, not even at the lowest level.

use ash::vk;
use sublet::{AllocationCreateFlags as Flags, AllocationCreateInfo, MemoryUsage, PoolCreateInfo};

use crate::collect::heard;
use crate::memory::{KIB, MIB, allocator, gpu, host_type, requirements};

#[test]
fn an_allocation_that_finds_room_and_a_free_tell_nothing() {
    let gpu = gpu();
    let allocator = allocator(&gpu);
    let info = PoolCreateInfo { block_size: MIB, min_block_count: 1, ..PoolCreateInfo::new(host_type(&gpu)) };
    let pool = allocator.create_pool(&info).unwrap();
    let gpu_only = AllocationCreateInfo::new(MemoryUsage::GpuOnly);
    let mapped = AllocationCreateInfo {
        flags: Flags::MAPPED | Flags::HOST_ACCESS_SEQUENTIAL_WRITE,
        ..AllocationCreateInfo::new(MemoryUsage::CpuToGpu)
    };
    let named = AllocationCreateInfo { name: Some("named"), ..Default::default() };
    let infos = [gpu_only, mapped, named, AllocationCreateInfo::in_pool(&pool)];
    // One of each stays allocated, so that a mapped block exists.
    let mut kept: Vec<_> =
        infos.iter().map(|info| allocator.allocate_memory(&requirements(KIB), info).unwrap()).collect();
    let buffer_info = vk::BufferCreateInfo::default().size(KIB).usage(vk::BufferUsageFlags::VERTEX_BUFFER);
    let seen = heard(|| {
        for _ in 0..100 {
            for info in &infos {
                let allocation = allocator.allocate_memory(&requirements(KIB), info).unwrap();
                // SAFETY: nothing was bound to it.
                unsafe { allocator.free_memory(allocation) }.unwrap();
            }
            // SAFETY: the create-info is valid.
            let (buffer, allocation) = unsafe { allocator.create_buffer(&buffer_info, &gpu_only) }.unwrap();
            // SAFETY: the device never used the buffer.
            unsafe { allocator.destroy_buffer(buffer, allocation) }.unwrap();
            drop(allocator.map(&mut kept[1]).unwrap());
            let _ = allocator.heap_budgets();
            let _ = allocator.statistics();
        }
    });
    assert!(seen.is_empty(), "{seen:?}");
    for allocation in kept {
        // SAFETY: as above.
        unsafe { allocator.free_memory(allocation) }.unwrap();
    }
    // SAFETY: the pool is empty.
    unsafe { allocator.destroy_pool(pool) }.unwrap();
}
