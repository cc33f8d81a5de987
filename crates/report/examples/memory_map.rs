//! Memory maps: draws every block and chunk of an allocator as text, and writes the same as JSON for VMA's tools.
//!
//! `cargo run --example memory_map`. The package `sublet-report` writes the JSON.

use std::process::ExitCode;

use ash::vk;
use sublet::{
    AllocationCreateFlags, AllocationCreateInfo, Allocator, AllocatorCreateInfo, BlockMap, MemoryUsage,
    PoolCreateInfo, Tracking, VectorMap,
};
use sublet_examples::{Context, Random, Result, Table, bytes, heading, note};

/// Width of a drawn block in characters.
const WIDTH: u64 = 64;

fn main() -> ExitCode {
    sublet_examples::run(map)
}

fn map(context: &Context) -> Result<()> {
    let info = AllocatorCreateInfo {
        preferred_large_heap_block_size: 8 << 20,
        // Records the source line of each allocation. Off by default, because it costs a table entry per allocation.
        tracking: Tracking::CALLER | Tracking::USER_DATA,
        ..context.allocator_info()
    };
    // SAFETY: the context created instance and device with this version and these flags, and outlives the allocator.
    let allocator = unsafe { Allocator::new(&info) }?;
    let mut buffers = fill(&allocator)?;

    heading("Blocks and chunks");
    let picture = allocator.memory_map();
    picture.vectors.iter().for_each(draw);

    heading("Allocations");
    let mut table = Table::new(&["name", "kind", ">user data", "made in"]);
    for entry in picture.allocations().filter(|entry| entry.name.is_some()) {
        let caller = entry.caller.map_or_else(String::new, |caller| caller.file().replace('\\', "/"));
        let name = entry.name.as_deref().unwrap_or_default();
        table.row([&name, &entry.kind, &entry.user_data.unwrap_or(0), &caller]);
    }
    table.print();

    heading("Sums");
    let all = picture.statistics();
    note(&format!(
        "{} allocations with {} in {} blocks with {}; free ranges between {} and {}.",
        all.total.statistics.allocation_count,
        bytes(all.total.statistics.allocation_bytes),
        all.total.statistics.block_count,
        bytes(all.total.statistics.block_bytes),
        bytes(all.total.unused_range_size_min),
        bytes(all.total.unused_range_size_max),
    ));

    heading("The same for GpuMemDumpVis, shortened");
    let json = sublet_report::stats_string_of_map(&allocator, &picture);
    let lines: Vec<&str> = json.lines().collect();
    let details = lines.iter().position(|line| line.contains("DefaultPools")).unwrap_or(0);
    lines.iter().skip(details).take(12).for_each(|line| note(line));
    note(&format!("... {} lines in all", lines.len()));

    for (buffer, allocation) in buffers.drain(..) {
        // SAFETY: the device never used it.
        unsafe { allocator.destroy_buffer(buffer, allocation) }?;
    }
    Ok(())
}

type Buffer = (vk::Buffer, sublet::Allocation);

/// Allocates buffers of several sizes and frees every third one, to leave visible gaps.
fn fill(allocator: &Allocator) -> Result<Vec<Buffer>> {
    let mut random = Random::new(20);
    let mut buffers = Vec::new();
    for (number, name) in (0_u64..).zip(["terrain", "castle", "river", "dragon"].iter().cycle().take(36)) {
        let size = random.within(64..640) << 10;
        let usage = vk::BufferUsageFlags::VERTEX_BUFFER | vk::BufferUsageFlags::TRANSFER_DST;
        let flags = match number {
            7 => AllocationCreateFlags::DEDICATED_MEMORY,
            _ => AllocationCreateFlags::empty(),
        };
        let info = AllocationCreateInfo {
            flags,
            usage: MemoryUsage::Auto,
            user_data: number,
            name: (number % 5 == 0).then_some(name),
            ..Default::default()
        };
        let buffer_info = vk::BufferCreateInfo::default().size(size).usage(usage);
        // SAFETY: the create-info is valid.
        buffers.push(unsafe { allocator.create_buffer(&buffer_info, &info) }?);
    }
    for at in (0..buffers.len()).rev().step_by(3) {
        let (buffer, allocation) = buffers.swap_remove(at);
        // SAFETY: the device never used it.
        unsafe { allocator.destroy_buffer(buffer, allocation) }?;
    }
    // Shows reserved but unused memory too.
    let sample = vk::BufferCreateInfo::default().size(1).usage(vk::BufferUsageFlags::UNIFORM_BUFFER);
    let auto = AllocationCreateInfo::new(MemoryUsage::Auto);
    // SAFETY: the create-info is valid.
    let memory_type = unsafe { allocator.find_memory_type_index_for_buffer_info(&sample, &auto) }?;
    // The pool lives until the allocator is destroyed.
    let _pool = allocator.create_pool(&PoolCreateInfo {
        block_size: 1 << 20,
        min_block_count: 1,
        name: Some("streaming"),
        ..PoolCreateInfo::new(memory_type)
    })?;
    Ok(buffers)
}

/// Draws a line per block: `#` is used, `+` partly used, `.` free.
fn draw(vector: &VectorMap) {
    if vector.blocks.is_empty() && vector.dedicated.is_empty() {
        return;
    }
    let pool = vector.pool_name.as_deref().map_or_else(String::new, |name| format!(", pool \"{name}\""));
    note(&format!("memory type {}, heap {}{pool}", vector.memory_type_index, vector.heap_index));
    for block in &vector.blocks {
        note(&format!("  block {:<3} {:>8} [{}]", block.id, bytes(block.size), line(block)));
    }
    for dedicated in &vector.dedicated {
        note(&format!("  dedicated {:>8} {}", bytes(dedicated.size), dedicated.allocation.kind));
    }
}

fn line(block: &BlockMap) -> String {
    let cell = block.size.div_ceil(WIDTH);
    let used_in = |from: u64, to: u64| -> u64 {
        let used = block.chunks.iter().filter(|chunk| chunk.allocation.is_some());
        used.map(|chunk| (chunk.offset + chunk.size).min(to).saturating_sub(chunk.offset.max(from))).sum()
    };
    let drawn = |from: u64| match used_in(from, from + cell) {
        0 => '.',
        used if used == cell => '#',
        _ => '+',
    };
    (0..WIDTH).map(|at| drawn(at * cell)).collect()
}
