//! What is expected of a replay: all of its report but the times.

use std::path::Path;
use std::{env, fs};

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

/// A report without its times, as JSON.
pub(crate) fn summary(report: &ReplayReport) -> Value {
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
        // Numbers of JSON end at 2^53.
        "placements": format!("{:#018x}", report.placements),
    })
}

/// Compares with the file, or writes it.
///
/// # Panics
/// If the file is missing, or says something else.
pub(crate) fn blessed(path: &Path, found: &Value) {
    let found = format!("{found:#}\n");
    if env::var_os("SUBLET_BLESS").is_some() {
        fs::write(path, &found).unwrap();
        return;
    }
    let expected = fs::read_to_string(path).unwrap_or_else(|error| {
        panic!("{}: {error}; a trace needs its expected result: set SUBLET_BLESS", path.display())
    });
    for (line, (found, expected)) in (1..).zip(found.lines().zip(expected.lines())) {
        assert_eq!(found, expected, "{}, line {line}", path.display());
    }
    assert_eq!(found.len(), expected.len(), "{}", path.display());
}
