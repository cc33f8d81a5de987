//! Budgets: shows the usage and budget of each heap, and how to get an error instead of exceeding a budget.
//!
//! `cargo run --example budget`

use std::process::ExitCode;

use ash::vk;
use sublet::{
    AllocationCreateFlags, AllocationCreateInfo, AllocationError, Allocator, AllocatorCreateFlags,
    AllocatorCreateInfo, CreateError, MemoryError, MemoryUsage,
};
use sublet_examples::{Context, Result, Table, bytes, chain, heading, note};

fn main() -> ExitCode {
    sublet_examples::run(budgets)
}

fn budgets(context: &Context) -> Result<()> {
    // A program may also limit itself, here to 64 MiB of each heap. The limit is an upper bound of the budget.
    let heaps = context.memory_properties().memory_heap_count;
    let limits = vec![64 << 20; usize::try_from(heaps)?];
    let info = AllocatorCreateInfo { heap_size_limits: &limits, ..context.allocator_info() };
    // SAFETY: the context created instance and device with this version and these flags, and outlives the allocator.
    let allocator = unsafe { Allocator::new(&info) }?;
    let from_driver = context.allocator_flags().contains(AllocatorCreateFlags::EXT_MEMORY_BUDGET);
    note(&format!(
        "Budgets come from {}.",
        if from_driver { "the driver" } else { "an estimate: 80 % of each heap" }
    ));
    note(&format!("This program limits itself to {} of each heap.", bytes(64 << 20)));

    show(context, &allocator, "At first");
    let within = AllocationCreateInfo {
        flags: AllocationCreateFlags::WITHIN_BUDGET,
        ..AllocationCreateInfo::new(MemoryUsage::Auto)
    };
    let mut loaded = Vec::new();
    let refusal = loop {
        let buffer_info =
            vk::BufferCreateInfo::default().size(2 << 20).usage(vk::BufferUsageFlags::STORAGE_BUFFER);
        // SAFETY: the create-info is valid.
        match unsafe { allocator.create_buffer(&buffer_info, &within) } {
            Ok(buffer) => loaded.push(buffer),
            Err(error) => break error,
        }
    };
    // Fetches the budgets from the driver, once per frame. Between frames, the allocator updates them itself.
    allocator.set_current_frame_index(1);
    show(context, &allocator, &format!("With {} buffers of {}", loaded.len(), bytes(2 << 20)));

    heading("One more, WITHIN_BUDGET");
    note(&chain(&refusal));
    match refusal {
        CreateError::Allocation(AllocationError::Memory(MemoryError::OverBudget {
            usage, budget, ..
        })) => {
            note(&format!("{} of {} were used: time to stream something out.", bytes(usage), bytes(budget)));
        }
        CreateError::Allocation(AllocationError::Memory(MemoryError::HeapLimit { used, limit, .. })) => {
            note(&format!("{} of the program's own limit of {} were taken.", bytes(used), bytes(limit)));
        }
        other => return Err(other.into()),
    }

    for (buffer, allocation) in loaded {
        // SAFETY: the device never used it.
        unsafe { allocator.destroy_buffer(buffer, allocation) }?;
    }
    let trimmed = allocator.trim();
    allocator.set_current_frame_index(2);
    show(context, &allocator, &format!("All freed, {} of empty blocks trimmed", bytes(trimmed)));
    Ok(())
}

fn show(context: &Context, allocator: &Allocator, title: &str) {
    heading(title);
    let mut table =
        Table::new(&[">heap", "kind", ">size", ">budget", ">used", ">blocks", ">allocations", ""]);
    let heaps = context.memory_properties();
    for (index, (heap, now)) in heaps.memory_heaps_as_slice().iter().zip(allocator.heap_budgets()).enumerate()
    {
        let local = heap.flags.contains(vk::MemoryHeapFlags::DEVICE_LOCAL);
        table.row([
            &index,
            &(if local { "device" } else { "host" }),
            &bytes(heap.size),
            &bytes(now.budget),
            &bytes(now.usage),
            &now.statistics.block_count,
            &now.statistics.allocation_count,
            &bar(now.usage, now.budget),
        ]);
    }
    table.print();
}

/// Returns twenty cells, filled by the used share of the budget.
fn bar(used: u64, budget: u64) -> String {
    let filled = (u128::from(used) * 20).div_ceil(u128::from(budget.max(1))).min(20);
    (0..20).map(|cell| if cell < filled { '█' } else { '░' }).collect()
}
