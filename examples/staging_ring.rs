//! A ring buffer for uploads: a linear pool with one block. Each frame allocates a range, and frees it in order.
//!
//! `cargo run --example staging_ring`

use std::collections::VecDeque;
use std::process::ExitCode;

use ash::vk;
use sublet::{
    Algorithm, Allocation, AllocationCreateFlags as Flags, AllocationCreateInfo, Allocator, MemoryUsage,
    PoolCreateInfo,
};
use sublet_examples::{Context, Frames, Result, Table, bytes, note};

const IN_FLIGHT: u32 = 3;
/// Bytes of a frame's upload. Three fit the block. The fourth has to wait for the device.
const UPLOAD: u64 = 300 << 10;
const RING: u64 = 1 << 20;

fn main() -> ExitCode {
    sublet_examples::run(ring)
}

fn ring(context: &Context) -> Result<()> {
    // SAFETY: the context created instance and device with this version and these flags, and outlives the allocator.
    let allocator = unsafe { Allocator::new(&context.allocator_info()) }?;
    let staging = AllocationCreateInfo {
        flags: Flags::HOST_ACCESS_SEQUENTIAL_WRITE | Flags::MAPPED,
        ..AllocationCreateInfo::new(MemoryUsage::Auto)
    };
    let upload = vk::BufferCreateInfo::default().size(UPLOAD).usage(vk::BufferUsageFlags::TRANSFER_SRC);
    // SAFETY: the create-info is valid.
    let memory_type_index = unsafe { allocator.find_memory_type_index_for_buffer_info(&upload, &staging) }?;
    // A linear pool with one block acts as a ring if the oldest allocation is freed first.
    let pool = allocator.create_pool(&PoolCreateInfo {
        block_size: RING,
        max_block_count: 1,
        algorithm: Algorithm::Linear,
        name: Some("staging ring"),
        ..PoolCreateInfo::new(memory_type_index)
    })?;
    let in_ring = AllocationCreateInfo { flags: staging.flags, ..AllocationCreateInfo::in_pool(&pool) };

    let on_device = vk::BufferCreateInfo::default()
        .size(UPLOAD)
        .usage(vk::BufferUsageFlags::TRANSFER_DST | vk::BufferUsageFlags::STORAGE_BUFFER);
    // SAFETY: the create-info is valid.
    let target =
        unsafe { allocator.create_buffer(&on_device, &AllocationCreateInfo::new(MemoryUsage::Auto)) }?;

    note(&format!("A ring of {}, uploads of {}, {IN_FLIGHT} frames in flight.", bytes(RING), bytes(UPLOAD)));
    let mut frames = Frames::new(context, IN_FLIGHT)?;
    let mut in_flight: VecDeque<(vk::Buffer, Allocation)> = VecDeque::new();
    let mut table = Table::new(&[">frame", ">uploaded from", ">to", ">uploads alive", "the ring"]);
    for frame in 0..10_u8 {
        frames.wait()?;
        if in_flight.len() == usize::try_from(IN_FLIGHT)? {
            destroy(&allocator, in_flight.pop_front())?;
        }
        // SAFETY: the create-info is valid.
        let (buffer, mut allocation) = unsafe { allocator.create_buffer(&upload, &in_ring) }?;
        allocator.copy_to_allocation(&vec![frame; usize::try_from(UPLOAD)?], &mut allocation, 0)?;
        let (start, end) = (allocation.offset(), allocation.offset() + UPLOAD);
        in_flight.push_back((buffer, allocation));
        table.row([&frame, &bytes(start), &bytes(end), &in_flight.len(), &drawing(&in_flight)]);
        frames.submit(|device, commands| {
            // SAFETY: both buffers have this many bytes, and live until the frame is complete.
            unsafe {
                device.cmd_copy_buffer(commands, buffer, target.0, &[vk::BufferCopy::default().size(UPLOAD)])
            };
        })?;
    }
    table.print();
    note(
        "Each row begins behind the one before, or at 0 where the end was near. No search, no fragmentation.",
    );

    frames.wait_for_all()?;
    while !in_flight.is_empty() {
        destroy(&allocator, in_flight.pop_front())?;
    }
    destroy(&allocator, Some(target))?;
    // SAFETY: everything in the pool is destroyed.
    let leaks = unsafe { allocator.destroy_pool(pool) }?;
    if leaks.is_empty() { Ok(()) } else { Err(format!("forgotten: {leaks:?}").into()) }
}

/// Destroys an upload that the device has completed.
fn destroy(allocator: &Allocator, upload: Option<(vk::Buffer, Allocation)>) -> Result<()> {
    if let Some((buffer, allocation)) = upload {
        // SAFETY: the callers have waited for the frame that used it.
        unsafe { allocator.destroy_buffer(buffer, allocation) }?;
    }
    Ok(())
}

/// Draws the block as a line: a digit by age for each 32 KiB, and a dot for free ones.
fn drawing(in_flight: &VecDeque<(vk::Buffer, Allocation)>) -> String {
    let cell = 32 << 10;
    let newest = in_flight.len();
    let at = |offset: u64| {
        let holder = in_flight
            .iter()
            .position(|(_, held)| (held.offset()..held.offset() + held.size()).contains(&offset));
        holder.map_or_else(|| ".".to_owned(), |age| (newest - age).to_string())
    };
    (0..RING / cell).map(|index| at(index * cell + cell / 2)).collect()
}
