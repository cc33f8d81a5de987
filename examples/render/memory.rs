//! What the scene takes of the device's memory, while all of it lives.

use std::collections::BTreeMap;

use sublet::Allocator;
use sublet_report::Snapshot;

use crate::support::{Table, bytes, heading, note};

/// Sums by the first word of the names.
pub(crate) fn show(allocator: &Allocator) -> Snapshot {
    heading("Memory, while all of it lives");
    let snapshot = Snapshot::of(allocator);
    let mut kinds = BTreeMap::<String, (u64, u64)>::new();
    for located in snapshot.allocations() {
        let name = located.entry.name.as_deref().unwrap_or("other");
        let kind = kinds.entry(name.split(' ').next().unwrap_or(name).to_owned()).or_default();
        *kind = (kind.0 + 1, kind.1 + located.size);
    }
    let mut table = Table::new(&["what", ">allocations", ">bytes"]);
    for (kind, (count, size)) in &kinds {
        table.row([kind, count, &bytes(*size)]);
    }
    table.print();
    let all = allocator.statistics();
    note(&format!(
        "{} in {} blocks of {} in all.",
        bytes(all.allocation_bytes),
        all.block_count,
        bytes(all.block_bytes)
    ));
    snapshot
}
