//! A pool with its own limit: it never displaces other memory, and returns an error when it is full.
//!
//! `cargo run --example custom_pool`

use std::process::ExitCode;

use ash::vk;
use sublet::{
    AllocationCreateInfo, AllocationError, Allocator, CreateError, CreatePoolError, MemoryUsage, Pool,
    PoolCreateInfo,
};
use sublet_examples::{Context, Result, Table, bytes, chain, heading, note};

fn main() -> ExitCode {
    sublet_examples::run(meshes)
}

/// Meshes get at most 32 MiB: two blocks of 16 MiB. The first exists from the start.
fn meshes(context: &Context) -> Result<()> {
    // SAFETY: the context created instance and device with this version and these flags, and outlives the allocator.
    let allocator = unsafe { Allocator::new(&context.allocator_info()) }?;

    // A pool has one memory type. A sample of its resources determines the type.
    let auto = AllocationCreateInfo::new(MemoryUsage::Auto);
    // SAFETY: the create-info is valid.
    let memory_type_index = unsafe { allocator.find_memory_type_index_for_buffer_info(&mesh(1), &auto) }?;
    let limits = PoolCreateInfo {
        block_size: 16 << 20,
        min_block_count: 1,
        max_block_count: 2,
        name: Some("meshes"),
        ..PoolCreateInfo::new(memory_type_index)
    };
    let pool = allocator.create_pool(&limits)?;
    note(&format!(
        "Pool \"meshes\": 1 to 2 blocks of {} in memory type {memory_type_index}.",
        bytes(pool.block_size())
    ));

    heading("Until it is full");
    let mut loaded = Vec::new();
    let mut table = Table::new(&[">mesh", ">size", ">offset", ">blocks", ">allocated"]);
    let refusal = loop {
        let size = (u64::try_from(loaded.len())? % 3 + 3) << 20;
        // SAFETY: the create-info is valid.
        match unsafe { allocator.create_buffer(&mesh(size), &AllocationCreateInfo::in_pool(&pool)) } {
            Ok((buffer, allocation)) => {
                let held = allocator.pool_statistics(&pool)?;
                table.row([
                    &loaded.len(),
                    &bytes(size),
                    &bytes(allocation.offset()),
                    &held.block_count,
                    &bytes(held.allocation_bytes),
                ]);
                loaded.push((buffer, allocation));
            }
            Err(error) => break error,
        }
    };
    table.print();

    heading("The error is made to be read, and to be matched");
    note(&chain(&refusal));
    match refusal {
        CreateError::Allocation(AllocationError::Full { size, free, largest_free, .. }) => note(&format!(
            "Wanted {}: {} are free in all, {} in one piece, so {}.",
            bytes(size),
            bytes(free),
            bytes(largest_free),
            if free >= size { "moving things together would help" } else { "something has to go" },
        )),
        other => return Err(other.into()),
    }

    heading("Room again");
    let (buffer, allocation) = loaded.swap_remove(1);
    // SAFETY: the device never used it.
    unsafe { allocator.destroy_buffer(buffer, allocation) }?;
    // SAFETY: the create-info is valid.
    let again = unsafe { allocator.create_buffer(&mesh(4 << 20), &AllocationCreateInfo::in_pool(&pool)) }?;
    note(&format!(
        "After mesh 1 was freed, 4 MiB fit again, at its place: offset {}.",
        bytes(again.1.offset())
    ));
    loaded.push(again);

    heading("What cannot be is refused");
    let backwards = PoolCreateInfo { min_block_count: 3, ..limits };
    match allocator.create_pool(&backwards) {
        Err(error @ CreatePoolError::BlockCounts { .. }) => note(&chain(&error)),
        other => return Err(format!("expected a refusal, got {other:?}").into()),
    }
    for (buffer, allocation) in loaded {
        // SAFETY: the device never used it.
        unsafe { allocator.destroy_buffer(buffer, allocation) }?;
    }
    close(&allocator, pool)
}

/// Destroys the pool, which reports forgotten allocations.
fn close(allocator: &Allocator, pool: Pool) -> Result<()> {
    // SAFETY: everything in it was destroyed above.
    let leaks = unsafe { allocator.destroy_pool(pool) }?;
    note(&format!("\nThe pool is destroyed; allocations that were forgotten in it: {}.", leaks.len()));
    Ok(())
}

fn mesh(size: u64) -> vk::BufferCreateInfo<'static> {
    vk::BufferCreateInfo::default()
        .size(size)
        .usage(vk::BufferUsageFlags::VERTEX_BUFFER | vk::BufferUsageFlags::INDEX_BUFFER)
}
