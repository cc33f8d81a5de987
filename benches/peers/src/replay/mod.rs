//! Replays traces of programs on every peer, with the same requests in the same order.

mod cost;
mod run;
pub(crate) mod script;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use sublet::trace::Trace;

use self::run::{ReplayFigures, ScriptPlayer};
use self::script::Script;
use crate::cli::Options;
use crate::gpu::{Driver, TestGpu};
use crate::peers::{self, PeerKind, PeerMode};
use crate::statistics::{bytes, median, number, ratio};
use crate::table::AlignedTable;
use crate::workloads::WHOLE;

/// One trace on all peers.
pub(crate) struct Replayed {
    pub(crate) name: String,
    pub(crate) script: Script,
    pub(crate) figures: BTreeMap<PeerKind, ReplayFigures>,
}

fn read(path: &Path) -> Result<Trace, String> {
    let said = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let bytes = std::fs::read(path).map_err(|error| said(&error))?;
    let trace = Trace::read(&bytes).map_err(|error| said(&error))?;
    // A foreign program has no requests until they are found.
    Ok(if trace.is_foreign() { trace.resource_requests() } else { trace })
}

/// Replays one trace on all selected peers in turn, so that disturbances of the machine affect all of them.
pub(crate) fn replay(
    name: &str,
    trace: &Trace,
    driver: &Driver,
    options: &Options,
    rounds: u64,
    tell: &impl Fn(&str),
) -> Result<Replayed, String> {
    let gpu = TestGpu::new(driver, None)?;
    let script = peers::with_sublet(&gpu, |allocator| Script::new(trace, allocator))?;
    let mut times: BTreeMap<PeerKind, Vec<f64>> = BTreeMap::new();
    let mut figures = BTreeMap::new();
    for round in 0..=rounds {
        for kind in WHOLE.into_iter().filter(|kind| options.wants_peer(*kind)) {
            tell(&format!("{name}, round {round}: {}", kind.title()));
            // The first round measures memory, and warms caches and the driver.
            let gpu = TestGpu::new(driver, None)?;
            let player = ScriptPlayer { script: &script, is_timed: round > 0, gpu: &gpu };
            let played = peers::make_whole(kind, &gpu, PeerMode::Default, player).and_then(|played| {
                let played = played.ok_or("it replays no recordings")??;
                gpu.finish()?;
                Ok(played)
            });
            let found = played.map_err(|error| format!("{name}, {}: {error}", kind.title()))?;
            if round > 0 {
                times.entry(kind).or_default().push(found.whole);
            } else {
                figures.insert(kind, found);
            }
        }
    }
    for (kind, figures) in &mut figures {
        figures.whole = times.get(kind).and_then(|times| median(times)).unwrap_or_default();
    }
    Ok(Replayed { name: name.to_owned(), script, figures })
}

/// Returns the tables of these traces.
pub(crate) fn tables(
    files: &[PathBuf],
    driver: &Driver,
    options: &Options,
    rounds: u64,
    tell: impl Fn(&str),
) -> Result<Vec<AlignedTable>, String> {
    let mut all = Vec::new();
    for path in files {
        let trace = read(path)?;
        let recorded = Driver::Null(trace.header.profile());
        let driver = if options.has_default_driver() { &recorded } else { driver };
        let name = path.file_stem().map(|stem| stem.to_string_lossy()).unwrap_or_default();
        all.push(replay(&name, &trace, driver, options, rounds, &tell)?);
    }
    let place = if options.has_default_driver() {
        "a driver that does nothing, with the recorded device's memory".to_owned()
    } else {
        driver.to_string()
    };
    Ok(print(&all, &place))
}

fn print(all: &[Replayed], place: &str) -> Vec<AlignedTable> {
    let heads = || std::iter::once("").chain(WHOLE.map(PeerKind::title));
    let table = |title: &str, note: &str, cell: &dyn Fn(&ReplayFigures) -> String| {
        let mut table = AlignedTable::new(title, note, heads());
        for replayed in all {
            let cells = WHOLE.map(|kind| replayed.figures.get(&kind).map_or("-".to_owned(), cell));
            table.row(std::iter::once(replayed.name.clone()).chain(cells));
        }
        table
    };
    let mut times = AlignedTable::new(
        &format!("Traces replayed on {place}: nanoseconds for each call"),
        "Medians of interleaved rounds, from an empty allocator to an empty one. The first driver calls of a peer are \
         included, and its last frees are not. gpu-allocator and gpu-alloc run without the lock that their users put \
         around them.",
        heads().chain(["VMA/Sublet", "gpu-allocator/Sublet", "gpu-alloc/Sublet"]),
    );
    for replayed in all {
        let calls = replayed.script.steps.len().max(1) as f64;
        let each = |kind: PeerKind| replayed.figures.get(&kind).map(|figures| figures.whole / calls);
        let cells = WHOLE.map(|kind| each(kind).map_or("-".to_owned(), number));
        let versus = [PeerKind::Vma, PeerKind::GpuAllocator, PeerKind::GpuAlloc]
            .map(|kind| ratio(each(kind), each(PeerKind::Sublet)));
        times.row(std::iter::once(replayed.name.clone()).chain(cells).chain(versus));
    }
    let peak = table(
        "Traces: memory at the peak",
        "The most reserved bytes / the share of them that was not in use then. Every peer serves each request from the \
         memory type that Sublet chose. gpu-allocator and gpu-alloc have no pools, and use their default memory. All \
         peers free the allocations of scopes one by one. Defragmentation, trimming, flushes and names are omitted.",
        &|figures| {
            let ReplayFigures { reserved_peak, used_then, .. } = *figures;
            let unused = reserved_peak.saturating_sub(used_then) as f64 / reserved_peak.max(1) as f64;
            format!("{} / {} %", bytes(reserved_peak as f64), number(100.0 * unused))
        },
    );
    let end = table(
        "Traces: memory and time of the driver",
        "Reserved bytes after everything was freed / modelled milliseconds of all calls of vkAllocateMemory / of the \
         longest. The model has the times of an H200. On devices with only device-local memory, the access of the host \
         decides about the kind of memory.",
        &|figures| {
            let ReplayFigures { reserved_end, driver_time, driver_longest, .. } = *figures;
            format!("{} / {} / {}", bytes(reserved_end as f64), number(driver_time), number(driver_longest))
        },
    );
    let calls = table(
        "Traces: memory objects and calls of the driver",
        "The most memory objects at once / calls of vkAllocateMemory / vkFreeMemory / vkMapMemory.",
        &|figures| {
            let ReplayFigures { blocks_peak, calls, .. } = *figures;
            format!("{blocks_peak} / {} / {} / {}", calls.allocations, calls.frees, calls.maps)
        },
    );
    let mut tables = vec![times, peak, end, calls];
    if all.iter().any(|replayed| replayed.figures.values().any(|figures| figures.refused > 0)) {
        tables.push(table("Traces: failed allocations", "", &|figures| figures.refused.to_string()));
    }
    tables
}
