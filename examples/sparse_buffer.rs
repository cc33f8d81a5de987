//! A sparse buffer: as large as it may ever get, with memory only for the used parts.
//!
//! The program creates the buffer. The allocator provides the pages, many per call, and takes them back.
#![allow(clippy::multiple_unsafe_ops_per_block, reason = "an example is to be read")]

use std::process::ExitCode;

use ash::vk;
use sublet::{AllocationCreateInfo, Allocator, MemoryUsage};
use sublet_examples::{Context, Result, bytes, note};

/// The simulated device to use if the device has no sparse binding.
const WITH_SPARSE_BINDING: &str = "nvidia-rtx-5070-ti";

/// Maximum size of the buffer.
const WHOLE: u64 = 1 << 30;
/// The used parts, far from one another: first page and number of pages.
const USED: [(u64, u64); 2] = [(0, 3), (10_000, 2)];

fn main() -> ExitCode {
    sublet_examples::run(|context| {
        if context.has_sparse_binding() {
            return sparse_buffer(context);
        }
        note(&format!(
            "{} has no sparse binding: {WITH_SPARSE_BINDING} is simulated.",
            context.device_name()
        ));
        let context = Context::simulated(WITH_SPARSE_BINDING)?;
        sparse_buffer(&context)?;
        match context.finish().first() {
            None => Ok(()),
            Some(message) => Err(message.clone().into()),
        }
    })
}

fn sparse_buffer(context: &Context) -> Result<()> {
    let device = context.device();
    // SAFETY: the context created instance and device with this version and these flags, and outlives the allocator.
    let allocator = unsafe { Allocator::new(&context.allocator_info()) }?;

    let info = vk::BufferCreateInfo::default()
        .flags(vk::BufferCreateFlags::SPARSE_BINDING)
        .size(WHOLE)
        .usage(vk::BufferUsageFlags::STORAGE_BUFFER | vk::BufferUsageFlags::TRANSFER_DST);
    // SAFETY: the create-info is valid, and the feature sparseBinding is enabled.
    let (buffer, requirements) = unsafe {
        let buffer = device.create_buffer(&info, None)?;
        (buffer, device.get_buffer_memory_requirements(buffer))
    };

    // A page's size equals its alignment. A call returns all requested pages or none.
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
    // SAFETY: buffer and memory are live, and the ranges are whole pages of both.
    unsafe { device.queue_bind_sparse(context.queue(), &[bind], vk::Fence::null())? };
    note(&format!(
        "{} of buffer, {} of memory in {} pages",
        bytes(WHOLE),
        bytes(count * page.size),
        pages.len()
    ));

    // SAFETY: the queue is idle when the buffer is destroyed, and the buffer is destroyed before its pages are freed.
    unsafe {
        device.device_wait_idle()?;
        device.destroy_buffer(buffer, None);
        for allocation in pages {
            allocator.free_memory(allocation)?;
        }
    }
    Ok(())
}
