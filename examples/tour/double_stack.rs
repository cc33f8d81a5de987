//! A linear pool of one block, filled from both ends.

use ash::vk;
use sublet::{
    Algorithm, Allocation, AllocationCreateFlags as Flags, AllocationCreateInfo, MemoryUsage, PoolCreateInfo,
};

use crate::kept::Kept;
use sublet_examples::{Result, Table, bytes, chain, note};

const BLOCK: u64 = 8 << 20;

pub(crate) fn run(kept: &mut Kept<'_>) -> Result<()> {
    note("What lives for the level grows from below, what lives for a frame from above (UPPER_ADDRESS).");
    let sample = vk::BufferCreateInfo::default().size(1).usage(vk::BufferUsageFlags::STORAGE_BUFFER);
    let auto = AllocationCreateInfo::new(MemoryUsage::Auto);
    // SAFETY: the create-info is valid.
    let memory_type_index = unsafe { kept.allocator.find_memory_type_index_for_buffer_info(&sample, &auto) }?;
    let pool = kept.pool(&PoolCreateInfo {
        block_size: BLOCK,
        max_block_count: 1,
        algorithm: Algorithm::Linear,
        name: Some("double stack"),
        ..PoolCreateInfo::new(memory_type_index)
    })?;
    let take = |kept: &Kept<'_>, size: u64, flags| -> Result<(vk::Buffer, Allocation)> {
        let info = AllocationCreateInfo { flags, ..AllocationCreateInfo::in_pool(&kept.pools[pool]) };
        kept.buffer(size, vk::BufferUsageFlags::STORAGE_BUFFER, &info)
    };

    let mut table = Table::new(&["step", ">lower end", ">upper end", ">free between"]);
    let mut level = Vec::new();
    for size in [600 << 10, 900 << 10, 1500 << 10] {
        level.push(take(kept, size, Flags::empty())?);
    }
    let mut add = |step: &str, level: &[(vk::Buffer, Allocation)], frame: &[(vk::Buffer, Allocation)]| {
        let lower = level.last().map_or(0, |(_, top)| top.offset() + top.size());
        let upper = frame.last().map_or(BLOCK, |(_, top)| top.offset());
        table.row([&step, &bytes(lower), &bytes(upper), &bytes(upper - lower)]);
    };
    add("level loaded", &level, &[]);
    let mut frame = Vec::new();
    for number in 1..=3 {
        for size in [700 << 10, 300 << 10, 64 << 10] {
            frame.push(take(kept, size, Flags::UPPER_ADDRESS)?);
        }
        add(&format!("frame {number} drawn"), &level, &frame);
        // Frees in reverse order.
        while let Some(top) = frame.pop() {
            kept.destroy_buffer(top)?;
        }
    }
    add("frames gone", &level, &frame);
    frame.push(take(kept, 2 << 20, Flags::UPPER_ADDRESS)?);
    add("one large frame", &level, &frame);
    table.print();
    match take(kept, 4 << 20, Flags::empty()) {
        Err(error) => note(&format!("  4 MiB more do not fit, and the error says why: {}", chain(&*error))),
        Ok(_) => return Err("the two stacks have met without an error".into()),
    }
    kept.buffers.extend(level);
    kept.buffers.extend(frame);
    Ok(())
}
