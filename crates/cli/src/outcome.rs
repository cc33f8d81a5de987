//! The part of a replay's result that is equal on every run, as JSON.

use serde_json::{Map, Value, json};
use sublet::trace::{CallKind, Extremes, Footprint, ReplayReport};

fn footprint(found: &Footprint) -> Value {
    json!({
        "reserved": found.reserved_bytes,
        "used": found.used_bytes,
        "memories": found.memory_count,
        "allocations": found.allocation_count,
    })
}

fn extremes(found: &Extremes) -> Value {
    json!({
        "peak_reserved": found.peak_reserved_bytes,
        "peak_used": found.peak_used_bytes,
        "at_peak": footprint(&found.at_peak),
        "at_end": footprint(&found.at_end),
    })
}

/// Returns everything except the times.
pub(crate) fn result(report: &ReplayReport) -> Value {
    let mut calls = Map::new();
    for kind in CallKind::ALL {
        let call = report.call(*kind);
        if call.made > 0 {
            calls.insert(kind.name().to_owned(), json!({ "made": call.made, "failed": call.failed }));
        }
    }
    json!({
        "events": report.events,
        "calls": calls,
        "refused": report.refused,
        "refused_in_recording": report.refused_in_recording,
        "granted_after_all": report.granted_after_all,
        "dedicated": report.dedicated,
        "other_memory_type": report.other_memory_type,
        "unknown": report.unknown,
        "moves_missing": report.moves_missing,
        "memory": extremes(&report.memory),
        "heaps": report.heaps.iter().map(extremes).collect::<Vec<_>>(),
        "free_ranges": report.free_ranges.count,
        "free_bytes": report.free_ranges.bytes,
        "largest_free": report.free_ranges.largest_bytes,
        // A string, because numbers of JSON are exact only up to 2^53.
        "placements": format!("{:#018x}", report.placements),
    })
}
