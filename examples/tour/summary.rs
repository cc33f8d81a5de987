//! All live allocations at the end of the tour, and their overhead.

use sublet::Statistics;

use crate::kept::Kept;
use sublet_examples::{Result, Table, bytes, count, heading, note};

pub(crate) fn show(kept: &Kept<'_>) -> Result<()> {
    heading("What is alive");
    note(
        "A row for each memory type's own blocks and for each pool; waste is what was taken and is not allocated.",
    );
    let mut table =
        Table::new(&["memory", ">blocks", ">in blocks", ">allocations", ">allocated", ">waste", ">%"]);
    let mut total = Statistics::default();
    for (memory_type, all) in (0..).zip(kept.allocator.memory_type_statistics()) {
        if all == Statistics::default() {
            continue;
        }
        total.add(&all);
        let mut pools = Vec::new();
        let mut default = all;
        for pool in kept.pools.iter().filter(|pool| pool.memory_type_index() == memory_type) {
            let held = kept.allocator.pool_statistics(pool)?;
            default.block_count -= held.block_count;
            default.block_bytes -= held.block_bytes;
            default.allocation_count -= held.allocation_count;
            default.allocation_bytes -= held.allocation_bytes;
            let name = kept.allocator.pool_name(pool)?;
            pools.push((format!("  pool \"{}\"", name.as_deref().unwrap_or("")), held));
        }
        add(&mut table, &format!("type {memory_type}, default"), &default);
        for (name, held) in pools {
            add(&mut table, &name, &held);
        }
    }
    table.rule();
    add(&mut table, "all", &total);
    table.print();
    Ok(())
}

fn add(table: &mut Table, what: &str, held: &Statistics) {
    let waste = held.block_bytes - held.allocation_bytes;
    table.row([
        &what,
        &count(held.block_count),
        &bytes(held.block_bytes),
        &count(held.allocation_count),
        &bytes(held.allocation_bytes),
        &bytes(waste),
        &(waste * 100 / held.block_bytes.max(1)),
    ]);
}
