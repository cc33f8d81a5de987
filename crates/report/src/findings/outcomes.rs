//! The same requests on Sublet: with each preset, as one allocation each, and after defragmentation.

use std::time::Duration;

use serde::Serialize;

use super::Findings;
use super::finding::{FindingKind, MemoryFinding};
use crate::cast::index;
use crate::words::{bytes, count};
use sublet::trace::{DriverCost, Event, Header, Replay, Trace, TraceMemoryType};
use sublet::{Allocator, GrowthPreset, sim::Gpu};

/// The memory that the requests of a recording take on Sublet with one preset, on a simulated device like the recorded
/// one. The first outcome of a foreign recording has the memory that the program itself takes.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct PresetOutcome {
    /// The preset, or `one allocation each`. First comes `the program itself`, or for the recording of an allocator `as
    /// recorded`.
    pub preset: &'static str,
    /// The most bytes of `VkDeviceMemory`.
    pub peak_reserved_bytes: u64,
    /// The most bytes of allocations.
    pub peak_used_bytes: u64,
    /// Bytes of `VkDeviceMemory` before shutdown: after the last call that frees nothing.
    pub end_reserved_bytes: u64,
    /// The number of `VkDeviceMemory` when the most bytes were reserved.
    pub peak_memory_count: u64,
    /// Calls of `vkAllocateMemory`. A later part of a recording begins with live objects: calls for these belong to the
    /// part before.
    pub driver_allocations: u64,
    /// Calls of `vkFreeMemory` in the recording. Memory that an allocator keeps at its end is not among them.
    pub driver_frees: u64,
    /// Modelled milliseconds of all calls of `vkAllocateMemory`: medians of an H200, by kind of memory and size.
    pub driver_milliseconds: f64,
    /// Modelled milliseconds of the longest call.
    pub longest_milliseconds: f64,
    /// Requests that failed.
    pub refused: u64,
}

/// The name of the outcome that does not suballocate.
pub(super) const ONE_EACH: &str = "one allocation each";

/// The name of the outcome of an allocator with its own settings.
const AS_RECORDED: &str = "as recorded";

/// The name of the outcome that a foreign program has itself.
pub(super) const THE_PROGRAM: &str = "the program itself";

/// The number of steps between two looks at the log of the driver.
const LOG_STEPS: usize = 1024;

impl PresetOutcome {
    /// Returns the outcomes of the requests with each preset, and as one allocation each. A preset is left out if there
    /// is no allocator for the recorded device. For a foreign recording, pass its
    /// [`resource_requests`](Trace::resource_requests).
    ///
    /// # Complexity
    /// One replay for each outcome.
    #[must_use]
    pub fn all(requests: &Trace) -> Vec<Self> {
        let mut headers: Vec<(&'static str, Header)> = presets(&requests.header);
        let mut dedicated = requests.header.clone();
        dedicated.always_dedicated = true;
        headers.push((ONE_EACH, dedicated));
        headers.into_iter().filter_map(|(preset, header)| Self::of(requests, preset, &header)).collect()
    }

    fn of(requests: &Trace, preset: &'static str, header: &Header) -> Option<Self> {
        let played = |gpu: &Gpu, allocator: &Allocator| {
            let mut outcome = Self { preset, ..Self::default() };
            gpu.log_allocations(true);
            let mut replay = Replay::new(requests, allocator);
            let opening = usize::try_from(requests.header.opening_records).unwrap_or(usize::MAX);
            let (mut steps, end) = (0, last_call(requests));
            while replay.step().is_some() {
                steps += 1;
                if steps == opening {
                    drop(gpu.take_log());
                } else if steps > opening && steps % LOG_STEPS == 0 {
                    outcome.add_calls(gpu, header);
                }
                if steps == end {
                    outcome.end_reserved_bytes = allocator.statistics().block_bytes;
                }
            }
            outcome.add_calls(gpu, header);
            outcome.driver_frees = gpu.calls("vkFreeMemory");
            let report = replay.finish();
            outcome.peak_reserved_bytes = report.memory.peak_reserved_bytes;
            outcome.peak_used_bytes = report.memory.peak_used_bytes;
            outcome.peak_memory_count = report.memory.at_peak.memory_count;
            outcome.refused = report.refused;
            outcome
        };
        header.with_allocator(played).ok()
    }

    fn add_calls(&mut self, gpu: &Gpu, header: &Header) {
        for call in gpu.take_log() {
            self.add_call(&header.memory_types, call.asked.type_index, call.asked.size);
        }
    }

    /// Adds one call of `vkAllocateMemory`.
    pub(super) fn add_call(&mut self, types: &[TraceMemoryType], memory_type: u32, size: u64) {
        let flags = types.get(index(memory_type)).map(|kind| kind.flags).unwrap_or_default();
        let milliseconds = DriverCost::of(flags).allocation(size).as_secs_f64() * 1e3;
        self.driver_allocations += 1;
        self.driver_milliseconds += milliseconds;
        self.longest_milliseconds = self.longest_milliseconds.max(milliseconds);
    }
}

/// Returns the recorded allocator with each preset for the sizes of its blocks.
fn presets(header: &Header) -> Vec<(&'static str, Header)> {
    let with = |&growth: &GrowthPreset| {
        let mut header = header.clone();
        header.growth = growth;
        header.preferred_large_heap_block_size = 0;
        header.block_sizes.clear();
        header.always_dedicated = false;
        (growth.name(), header)
    };
    GrowthPreset::ALL.iter().map(with).collect()
}

/// Adds the presets, and the finding that one of them takes less.
pub(super) fn of_requests(found: &mut Findings, requests: &Trace) {
    if !found.is_foreign {
        found.presets.extend(PresetOutcome::of(requests, AS_RECORDED, &requests.header));
        found.presets.extend(PresetOutcome::all(requests));
        return;
    }
    found.presets.extend(PresetOutcome::all(requests));
    let is_preset =
        |outcome: &&PresetOutcome| !matches!(outcome.preset, ONE_EACH | THE_PROGRAM) && outcome.refused == 0;
    let blocks = found.presets.iter().filter(is_preset);
    let Some(best) = blocks.min_by_key(|outcome| outcome.peak_reserved_bytes) else { return };
    let reserved = found.at_peak.reserved_bytes;
    let Some(saved) = reserved.checked_sub(best.peak_reserved_bytes).filter(|saved| *saved > 0) else {
        return;
    };
    let text = format!(
        "The program reserves {} at most. Sublet takes {} for the same requests with the preset {}.",
        bytes(reserved),
        bytes(best.peak_reserved_bytes),
        best.preset
    );
    found.findings.push(MemoryFinding::new(FindingKind::Preset, saved, text, Vec::new()));
}

/// Adds what moving the resources of a foreign program together would free, after the records up to a time.
pub(super) fn of_moves(found: &mut Findings, requests: &Trace, until: Duration) {
    let steps = requests.records.iter().take_while(|record| record.time <= until).count();
    let packed = requests.header.with_allocator(|_, allocator| {
        let mut replay = Replay::new(requests, allocator);
        let _ = (0..steps).take_while(|_| replay.step().is_some()).count();
        let refused = replay.report().refused;
        let moves = replay.defragment();
        allocator.trim();
        (refused, moves.allocations_moved, allocator.statistics().block_bytes)
    });
    let Ok((0, moves, after)) = packed else { return };
    let reserved = found.at_end.reserved_bytes;
    let Some(saved) = reserved.checked_sub(after).filter(|saved| *saved > 0) else { return };
    let text = format!(
        "The program reserves {} at the end. Sublet's planner packs the live resources into {}, after {}.",
        bytes(reserved),
        bytes(after),
        count(moves, "move")
    );
    found.findings.push(MemoryFinding::new(FindingKind::Defragmentation, saved, text, Vec::new()));
}

/// Returns the number of records up to the last one that frees nothing: the program begins to end after it.
pub(super) fn last_call(trace: &Trace) -> usize {
    let is_end = |event: &Event| {
        matches!(
            event,
            Event::Free { .. }
                | Event::Unmap { .. }
                | Event::DestroyPool { .. }
                | Event::FreeScope { .. }
                | Event::Trim
        )
    };
    trace.records.iter().rposition(|record| !is_end(&record.event)).map_or(0, |at| at + 1)
}
