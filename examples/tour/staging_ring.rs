//! A linear pool of one block, freed in the order of allocation: a ring buffer.

use std::collections::VecDeque;
use std::time::Instant;

use ash::vk;
use sublet::{
    Algorithm, Allocation, AllocationCreateFlags as Flags, AllocationCreateInfo, MemoryUsage, PoolCreateInfo,
};

use crate::kept::Kept;
use sublet_examples::{Frames, Random, Result, Table, bytes, checksum, count, note};

const FRAMES: u32 = 1_000;
const IN_FLIGHT: usize = 3;
/// Size of the device buffer that all frames write to.
const TARGET: u64 = 1 << 20;

pub(crate) fn run(kept: &mut Kept<'_>) -> Result<()> {
    note(
        "1,000 frames stage a few uploads each; three are in flight, and the oldest gives its room to the newest.",
    );
    let auto = AllocationCreateInfo::new(MemoryUsage::Auto);
    let staging = AllocationCreateInfo { flags: Flags::HOST_ACCESS_SEQUENTIAL_WRITE | Flags::MAPPED, ..auto };
    let sample = vk::BufferCreateInfo::default().size(1).usage(vk::BufferUsageFlags::TRANSFER_SRC);
    // SAFETY: the create-info is valid.
    let memory_type_index =
        unsafe { kept.allocator.find_memory_type_index_for_buffer_info(&sample, &staging) }?;
    let pool = kept.pool(&PoolCreateInfo {
        block_size: 4 << 20,
        min_block_count: 1,
        max_block_count: 1,
        algorithm: Algorithm::Linear,
        name: Some("staging ring"),
        ..PoolCreateInfo::new(memory_type_index)
    })?;
    let both = vk::BufferUsageFlags::TRANSFER_SRC | vk::BufferUsageFlags::TRANSFER_DST;
    let target = kept.buffer(TARGET, both, &auto)?;

    let mut frames = Frames::new(kept.context, u32::try_from(IN_FLIGHT)?)?;
    let mut in_flight: VecDeque<Vec<(vk::Buffer, Allocation)>> = VecDeque::new();
    let mut expected = vec![0; usize::try_from(TARGET)?];
    let mut random = Random::new(1_000);
    let (mut uploads, mut staged, mut wraps, mut last) = (0_u64, 0, 0_u32, 0);
    kept.context.submit(|device, commands| {
        // SAFETY: the buffer may be written by transfers, and its size is a multiple of 4.
        unsafe { device.cmd_fill_buffer(commands, target.0, 0, vk::WHOLE_SIZE, 0) };
    })?;
    let start = Instant::now();
    for _ in 0..FRAMES {
        frames.wait()?;
        if in_flight.len() == IN_FLIGHT {
            // The device has completed these uploads, the oldest in the ring.
            for upload in in_flight.pop_front().into_iter().flatten() {
                kept.destroy_buffer(upload)?;
            }
        }
        let mut frame = Vec::new();
        let mut copies = Vec::new();
        for _ in 0..random.within(1..6) {
            let size = random.within(16..16_384) * 4;
            let data = random.bytes(usize::try_from(size)?);
            let info = AllocationCreateInfo {
                flags: staging.flags,
                ..AllocationCreateInfo::in_pool(&kept.pools[pool])
            };
            let (buffer, mut allocation) = kept.buffer(size, vk::BufferUsageFlags::TRANSFER_SRC, &info)?;
            kept.allocator.copy_to_allocation(&data, &mut allocation, 0)?;
            wraps += u32::from(allocation.offset() < last);
            last = allocation.offset();
            let to = random.within(0..(TARGET - size) / 4) * 4;
            expected[usize::try_from(to)?..][..data.len()].copy_from_slice(&data);
            copies.push((buffer, vk::BufferCopy { src_offset: 0, dst_offset: to, size }));
            (uploads, staged) = (uploads + 1, staged + size);
            frame.push((buffer, allocation));
        }
        in_flight.push_back(frame);
        frames.submit(|device, commands| {
            for (buffer, copy) in &copies {
                // SAFETY: the copy is inside both buffers, which live until the frame is complete.
                unsafe { device.cmd_copy_buffer(commands, *buffer, target.0, &[*copy]) };
                // Uploads may overlap, and the later one has to win.
                sublet_examples::make_visible(device, commands);
            }
        })?;
    }
    frames.wait_for_all()?;
    let time = start.elapsed();
    kept.buffers.extend(in_flight.into_iter().flatten());

    let arrived = read_back(kept, target.0)?;
    kept.buffers.push(target);
    let statistics = kept.allocator.pool_statistics(&kept.pools[pool])?;
    let mut table = Table::new(&[">frames", ">uploads", ">staged", ">blocks", ">block", ">wraps", ">time"]);
    table.row([
        &count(FRAMES),
        &count(uploads),
        &bytes(staged),
        &statistics.block_count,
        &bytes(statistics.block_bytes),
        &count(wraps),
        &format!("{} ms", time.as_millis()),
    ]);
    table.print();
    if arrived != expected {
        return Err("the device does not have what the frames uploaded".into());
    }
    note(&format!(
        "  The device has exactly what the frames wrote: checksum {:016x} on both sides.",
        checksum(&arrived)
    ));
    Ok(())
}

fn read_back(kept: &Kept<'_>, buffer: vk::Buffer) -> Result<Vec<u8>> {
    let info = AllocationCreateInfo {
        flags: Flags::HOST_ACCESS_RANDOM,
        ..AllocationCreateInfo::new(MemoryUsage::Auto)
    };
    let back = kept.buffer(TARGET, vk::BufferUsageFlags::TRANSFER_DST, &info)?;
    kept.context.submit(|device, commands| {
        // SAFETY: both buffers have this many bytes and the required usage.
        unsafe {
            device.cmd_copy_buffer(commands, buffer, back.0, &[vk::BufferCopy::default().size(TARGET)])
        };
    })?;
    let mut bytes = vec![0; usize::try_from(TARGET)?];
    kept.allocator.copy_from_allocation(&back.1, 0, &mut bytes)?;
    kept.destroy_buffer(back)?;
    Ok(bytes)
}
