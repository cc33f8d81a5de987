//! A sparse buffer: as large as it could ever get, and backed by memory only where it is used.
//!
//! The allocator has no part in making the buffer; it gives the pages, many at once, and takes them back.
#![allow(clippy::multiple_unsafe_ops_per_block, reason = "an example is to be read")]

use std::error::Error;

use ash::vk;
use sublet::{AllocationCreateInfo, Allocator, AllocatorCreateInfo, MemoryUsage, sim};

/// What the buffer could grow to.
const WHOLE: u64 = 1 << 30;
/// What is used of it now: two stretches, far from one another.
const USED: [(u64, u64); 2] = [(0, 3), (10_000, 2)];

fn main() -> Result<(), Box<dyn Error>> {
    // Simulated, and one of the GPUs with sparse binding; with a real device pass your own handles.
    let gpu = sim::Gpu::new(sim::Profile::by_name("nvidia-rtx-5070-ti").ok_or("no such profile")?);
    let device = gpu.device();
    // SAFETY: instance and device are live, and outlive the allocator.
    let allocator = unsafe { Allocator::new(&AllocatorCreateInfo::for_gpu(&gpu)) }?;

    let info = vk::BufferCreateInfo::default()
        .flags(vk::BufferCreateFlags::SPARSE_BINDING)
        .size(WHOLE)
        .usage(vk::BufferUsageFlags::STORAGE_BUFFER | vk::BufferUsageFlags::TRANSFER_DST);
    // SAFETY: the create-info is valid, and the feature sparseBinding is enabled.
    let (buffer, requirements) = unsafe {
        let buffer = device.create_buffer(&info, None)?;
        (buffer, device.get_buffer_memory_requirements(buffer))
    };

    // A page is as large as it has to be aligned. Any number of them comes with one call, or none does.
    let page = vk::MemoryRequirements { size: requirements.alignment, ..requirements };
    let count: u64 = USED.iter().map(|(_, pages)| pages).sum();
    let wanted = vec![page; usize::try_from(count)?];
    let pages =
        allocator.allocate_memory_pages(&wanted, &[AllocationCreateInfo::new(MemoryUsage::GpuOnly)])?;

    let places = USED.iter().flat_map(|&(first, pages)| first..first + pages);
    let binds: Vec<_> = places
        .zip(&pages)
        .map(|(at, allocation)| {
            vk::SparseMemoryBind::default()
                .resource_offset(at * page.size)
                .size(page.size)
                .memory(allocation.memory())
                .memory_offset(allocation.offset())
        })
        .collect();
    let of_buffer = [vk::SparseBufferMemoryBindInfo::default().buffer(buffer).binds(&binds)];
    let bind = vk::BindSparseInfo::default().buffer_binds(&of_buffer);
    // SAFETY: buffer and memory are live, and the places are whole pages of either.
    unsafe { device.queue_bind_sparse(gpu.queue(), &[bind], vk::Fence::null())? };
    println!(
        "{} MiB of buffer, {} KiB of memory in {} pages",
        WHOLE >> 20,
        (count * page.size) >> 10,
        pages.len()
    );

    // SAFETY: the queue is idle when the buffer goes, and the buffer is gone when its pages go.
    unsafe {
        device.device_wait_idle()?;
        device.destroy_buffer(buffer, None);
        for allocation in pages {
            allocator.free_memory(allocation)?;
        }
    }
    gpu.assert_silent();
    Ok(())
}
