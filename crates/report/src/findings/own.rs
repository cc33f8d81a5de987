//! Findings in the recording of an allocator, from a replay of it.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Findings;
use super::churn::Churn;
use super::finding::{FindingKind, FindingObject, MemoryFinding, largest_of};
use super::nearly_empty::{self, MAX_KEEPERS, is_nearly_empty};
use super::outcomes::last_call;
use super::survey::MomentSums;
use crate::cast::widen;
use crate::snapshot::{Snapshot, Vector};
use crate::words::{bytes, clean, count, title};
use sublet::Statistics;
use sublet::trace::{Event, Replay, Trace};

/// Adds the sums and the findings about the blocks of an allocator, from a replay of its own recording.
pub(super) fn of_blocks(found: &mut Findings, trace: &Trace) {
    let last = last_call(trace);
    let time = last.checked_sub(1).and_then(|at| trace.records.get(at)).map_or(Duration::ZERO, |it| it.time);
    let played = trace.header.with_allocator(|gpu, allocator| {
        let mut replay = Replay::new(trace, allocator);
        let (mut churn, mut frees) = (Churn::default(), None);
        for at in 0..last {
            let Some(record) = replay.step() else { break };
            let now = sums(widen(at) + 1, record.time, &allocator.statistics());
            found.peak_memory_count = found.peak_memory_count.max(now.memory_count);
            let peak = &mut found.at_peak;
            if (now.reserved_bytes, now.used_bytes) > (peak.reserved_bytes, peak.used_bytes) {
                *peak = now;
            }
            if record.time > time / 2 {
                frees.get_or_insert_with(|| {
                    gpu.log_allocations(true);
                    gpu.calls("vkFreeMemory")
                });
                churn.frames += u64::from(matches!(record.event, Event::Frame { .. }));
            }
        }
        found.at_end = sums(widen(last), time, &allocator.statistics());
        let log = gpu.take_log();
        churn.allocated = widen(log.len());
        churn.allocated_bytes = log.iter().fold(0, |sum, call| sum.saturating_add(call.asked.size));
        churn.freed = gpu.calls("vkFreeMemory") - frees.unwrap_or_else(|| gpu.calls("vkFreeMemory"));
        (churn, Snapshot::of_replay(trace, &replay, allocator), replay.defragment())
    });
    let Ok((churn, snapshot, gained)) = played else { return };
    found.findings.extend(churn.finding(time));
    found.findings.extend(failed(trace));
    found.findings.extend(nearly_empty::finding(snapshot.vectors.iter().flat_map(nearly_empty_blocks)));
    if gained.bytes_freed > 0 {
        let text = format!(
            "Defragmentation at the end would free {} of {}, after {}.",
            bytes(gained.bytes_freed),
            bytes(found.at_end.reserved_bytes),
            count(gained.allocations_moved, "move")
        );
        found.findings.push(MemoryFinding::of_many(
            FindingKind::Defragmentation,
            gained.bytes_freed,
            gained.blocks_freed,
            text,
            Vec::new(),
        ));
    }
}

fn sums(record: u64, time: Duration, statistics: &Statistics) -> MomentSums {
    MomentSums {
        record,
        time,
        reserved_bytes: statistics.block_bytes,
        used_bytes: statistics.allocation_bytes,
        memory_count: statistics.block_count,
    }
}

/// Returns the nearly empty blocks of a vector, with their free bytes.
fn nearly_empty_blocks(vector: &Vector) -> impl Iterator<Item = (u64, FindingObject)> + '_ {
    vector.blocks.iter().filter_map(|block| {
        let used = block.statistics().statistics.allocation_bytes;
        let entries: Vec<_> = block.chunks.iter().filter_map(|chunk| chunk.allocation.as_ref()).collect();
        if entries.is_empty() || !is_nearly_empty(block.size, used) {
            return None;
        }
        let names =
            entries.iter().take(MAX_KEEPERS).map(|entry| entry.name.as_deref().or(entry.id.as_deref()));
        let names: Vec<_> = names.map(|name| clean(name.unwrap_or("?"))).collect();
        let about = format!("{} in use, kept alive by {}", bytes(used), names.join(", "));
        let label = format!("{}, block {}", title(vector), block.id);
        Some((block.size - used, FindingObject::new(label, block.size, about)))
    })
}

/// Returns the allocations that failed in the recording, by kind of error.
fn failed(trace: &Trace) -> Option<MemoryFinding> {
    let mut kinds = BTreeMap::<String, (u64, u64)>::new();
    for record in &trace.records {
        let Event::AllocateFailed(failed) = &record.event else { continue };
        let kind = kinds.entry(format!("{:?}", failed.failure)).or_default();
        *kind = (kind.0 + 1, kind.1.max(failed.resource.size));
    }
    let times = kinds.values().map(|(times, _)| times).sum();
    let objects = kinds
        .iter()
        .map(|(kind, &(times, largest))| FindingObject::new(kind.as_str(), largest, largest_of(times)));
    let text = format!("The allocator refused {}.", count(times, "allocation"));
    let objects: Vec<_> = objects.collect();
    (times > 0).then(|| MemoryFinding::of_many(FindingKind::AllocationFailed, 0, times, text, objects))
}
