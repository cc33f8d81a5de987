//! Usage and budget of each heap.

use sublet::AllocatorCreateFlags;

use crate::kept::Kept;
use sublet_examples::{Table, bytes, count, heading, note};

pub(crate) fn show(kept: &Kept<'_>, title: &str) {
    heading(title);
    let driver = kept.context.allocator_flags().contains(AllocatorCreateFlags::EXT_MEMORY_BUDGET);
    note(if driver {
        "Used and budget come from the driver (VK_EXT_memory_budget) and count the whole program."
    } else {
        "This device has no VK_EXT_memory_budget: used is what the allocator took, the budget 80 % of the heap."
    });
    // Fetches the budgets from the driver.
    kept.allocator.set_current_frame_index(0);
    let heaps = kept.context.memory_properties();
    let mut table = Table::new(&[
        ">heap",
        ">size",
        ">budget",
        ">used",
        ">blocks",
        ">in blocks",
        ">allocations",
        ">allocated",
    ]);
    for (index, (heap, budget)) in heaps.memory_heaps.iter().zip(kept.allocator.heap_budgets()).enumerate() {
        let statistics = budget.statistics;
        table.row([
            &index,
            &bytes(heap.size),
            &bytes(budget.budget),
            &bytes(budget.usage),
            &count(statistics.block_count),
            &bytes(statistics.block_bytes),
            &count(statistics.allocation_count),
            &bytes(statistics.allocation_bytes),
        ]);
    }
    table.print();
}
