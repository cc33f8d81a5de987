//! Replays traces of programs on every peer, with the same requests in the same order.

mod cost;
pub(crate) mod gaps;
mod run;
pub(crate) mod script;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use sublet::sim::Profile;
use sublet::trace::Trace;

use self::run::{MemoryFigures, ReplayRun, RunPurpose, ScriptPlayer};
use self::script::Script;
use crate::case::CaseEffort;
use crate::cli::Options;
use crate::gpu::{Driver, TestGpu};
use crate::output::percentiles;
use crate::peers::replay::{self as players, PLAYERS, WgpuHint};
use crate::peers::{self, PeerKind};
use crate::statistics::{Percentiles, bytes, median, number, ratio};
use crate::table::AlignedTable;

/// The device of a replay.
#[derive(Clone)]
pub(crate) enum Stage {
    /// A driver that does nothing, with the memory of the recorded device.
    Posing(&'static Profile),
    /// A named driver.
    Named(Driver),
}

impl Stage {
    pub(crate) fn gpu(&self) -> Result<TestGpu, String> {
        match self {
            Self::Posing(profile) => Ok(TestGpu::posing(profile)),
            Self::Named(driver) => TestGpu::new(driver, None),
        }
    }
}

/// The figures of a peer with a trace.
#[derive(Clone, Debug)]
pub(crate) struct ReplayFigures {
    /// Nanoseconds for all calls.
    pub(crate) whole: f64,
    pub(crate) allocate: Option<Percentiles>,
    pub(crate) free: Option<Percentiles>,
    pub(crate) memory: MemoryFigures,
    pub(crate) refused: u64,
}

/// One trace on all peers.
pub(crate) struct Replayed {
    pub(crate) name: String,
    pub(crate) script: Script,
    pub(crate) figures: BTreeMap<PeerKind, ReplayFigures>,
}

fn read(path: &Path) -> Result<Trace, String> {
    let said = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let bytes = std::fs::read(path).map_err(|error| said(&error))?;
    Trace::read(&bytes).map_err(|error| said(&error))
}

/// Creates the script of a trace for this stage.
pub(crate) fn script(trace: &Trace, stage: &Stage) -> Result<Script, String> {
    let gpu = stage.gpu()?;
    peers::with_sublet(&gpu, |allocator| Script::new(trace, allocator))
}

/// Plays a script on a peer. `None` if the peer cannot play scripts.
fn play(
    script: &Script,
    stage: &Stage,
    kind: PeerKind,
    hint: Option<WgpuHint>,
    purpose: RunPurpose,
) -> Result<Option<ReplayRun>, String> {
    let gpu = stage.gpu()?;
    let run = players::make(kind, &gpu, hint, ScriptPlayer { script, purpose, gpu: &gpu })?.transpose()?;
    gpu.finish()?;
    Ok(run)
}

/// Replays one trace on all selected peers in turn, so that disturbances of the machine affect all of them.
pub(crate) fn replay(
    name: &str,
    trace: &Trace,
    stage: &Stage,
    hint: Option<WgpuHint>,
    options: &Options,
    effort: CaseEffort,
    tell: &impl Fn(&str),
) -> Result<Replayed, String> {
    let script = script(trace, stage)?;
    let wanted: Vec<PeerKind> = PLAYERS.into_iter().filter(|kind| options.wants_peer(*kind)).collect();
    let mut wholes: BTreeMap<PeerKind, Vec<f64>> = BTreeMap::new();
    let mut singles: BTreeMap<PeerKind, (Vec<Percentiles>, Vec<Percentiles>)> = BTreeMap::new();
    let mut figures = BTreeMap::new();
    let said = |kind: PeerKind, error: String| format!("{name}, {}: {error}", kind.title());
    for round in 0..effort.rounds {
        for &kind in &wanted {
            tell(&format!("{name}, round {round}: {}", kind.title()));
            let run = |purpose| play(&script, stage, kind, hint, purpose).map_err(|error| said(kind, error));
            // The first round warms caches and the driver.
            if round == 0 {
                run(RunPurpose::Whole)?;
            }
            if let Some(run) = run(RunPurpose::Whole)? {
                wholes.entry(kind).or_default().push(run.whole);
            }
            if round < effort.sample_rounds {
                if let Some(run) = run(RunPurpose::Single)? {
                    let (allocate, free) = singles.entry(kind).or_default();
                    allocate.extend(run.allocate);
                    free.extend(run.free);
                }
            }
            if round == 0 {
                if let Some(ReplayRun { memory, refused, .. }) = run(RunPurpose::Memory)? {
                    let unmeasured =
                        ReplayFigures { whole: 0.0, allocate: None, free: None, memory, refused };
                    figures.insert(kind, unmeasured);
                }
            }
        }
    }
    for (kind, figures) in &mut figures {
        figures.whole = wholes.get(kind).and_then(|wholes| median(wholes)).unwrap_or_default();
        if let Some((allocate, free)) = singles.get(kind) {
            figures.allocate = Percentiles::median(allocate);
            figures.free = Percentiles::median(free);
        }
    }
    Ok(Replayed { name: name.to_owned(), script, figures })
}

/// Returns the name of the file without the common suffix.
fn name_of(path: &Path) -> String {
    path.file_stem().map_or_else(|| path.display().to_string(), |stem| stem.to_string_lossy().into_owned())
}

/// Returns titles, notes and tables for these traces.
pub(crate) fn tables(
    files: &[PathBuf],
    hint: Option<WgpuHint>,
    driver: &Driver,
    options: &Options,
    effort: CaseEffort,
    tell: impl Fn(&str),
) -> Result<Vec<(String, String, AlignedTable)>, String> {
    let mut all = Vec::new();
    for path in files {
        let trace = read(path)?;
        let stage = if options.has_default_driver() {
            Stage::Posing(trace.header.profile())
        } else {
            Stage::Named(driver.clone())
        };
        all.push(replay(&name_of(path), &trace, &stage, hint, options, effort, &tell)?);
    }
    let mut place = if options.has_default_driver() {
        "a driver that does nothing, with the recorded device's memory".to_owned()
    } else {
        format!("{driver}")
    };
    if let Some(hint) = hint {
        place = format!("{place}; gpu-allocator and its stand-in with wgpu's block sizes for {hint:?}");
    }
    Ok(print(&all, &place))
}

fn print(all: &[Replayed], place: &str) -> Vec<(String, String, AlignedTable)> {
    let heads = || std::iter::once("").chain(PLAYERS.iter().map(|kind| kind.title()));
    let table = |cell: &dyn Fn(&Replayed, &ReplayFigures) -> String| {
        let mut table = AlignedTable::new(heads());
        for replayed in all {
            let cells = PLAYERS.iter().map(|kind| {
                let figures = replayed.figures.get(kind);
                figures.map_or_else(|| "-".to_owned(), |figures| cell(replayed, figures))
            });
            table.row(std::iter::once(replayed.name.clone()).chain(cells));
        }
        table
    };
    let mut tables = Vec::new();
    let mut add = |title: &str, note: &str, table: AlignedTable| {
        tables.push((title.to_owned(), note.to_owned(), table))
    };

    let mut times =
        AlignedTable::new(heads().chain(["VMA/Sublet", "gpu-allocator/Sublet", "gpu-alloc/Sublet"]));
    for replayed in all {
        let whole = |kind: PeerKind| {
            replayed.figures.get(&kind).map(|figures| figures.whole / replayed.script.calls().max(1) as f64)
        };
        let own = whole(PeerKind::Sublet);
        let cells = PLAYERS.iter().map(|kind| whole(*kind).map_or_else(|| "-".to_owned(), number));
        let versus = [PeerKind::Vma, PeerKind::GpuAllocator, PeerKind::GpuAlloc];
        let versus = versus.map(|kind| ratio(whole(kind), own));
        times.row(std::iter::once(replayed.name.clone()).chain(cells).chain(versus));
    }
    add(
        &format!("Traces replayed on {place}: nanoseconds for each call"),
        "Medians of interleaved rounds, from an empty allocator to an empty one: what it takes from the driver first is in it, and what \
         it gives back last is not. gpu-allocator and gpu-alloc are measured without the lock that their users put around them.",
        times,
    );
    let single = "Nanoseconds, p50 / p99 / p99.9 / max, medians of rounds, with the calls in which the driver gives or takes memory.";
    let of = |found: Option<Percentiles>| found.map_or_else(|| "-".to_owned(), percentiles);
    add("Traces: single calls of allocate", single, table(&|_, figures| of(figures.allocate)));
    add("Traces: single calls of free", single, table(&|_, figures| of(figures.free)));
    add(
        "Traces: memory at the peak",
        "The most that was reserved / the share of it that was never used while it was.",
        table(&|_, figures| {
            let MemoryFigures { reserved_peak, used_then, .. } = figures.memory;
            let unused = reserved_peak.saturating_sub(used_then) as f64 / reserved_peak.max(1) as f64;
            format!("{} / {} %", bytes(reserved_peak as f64), number(100.0 * unused))
        }),
    );
    add(
        "Traces: memory and time of the driver",
        "Reserved at the peak / after everything was freed / modelled milliseconds of all calls of vkAllocateMemory / of the longest. \
         The model has the times of an H200: 0.25, 0.54, 1.3 and 4.1 ms for 1, 16, 64 and 256 MiB of device-local memory; 0.66, 5, 18 \
         and 77 ms of uncached host memory; 0.15, 2.1, 14 and 58 ms of cached host memory; linear between them. On devices with only \
         device-local memory, the access of the host decides about the kind.",
        table(&|_, figures| {
            let MemoryFigures { reserved_peak, reserved_end, driver_time, driver_longest, .. } =
                figures.memory;
            let (peak, end) = (bytes(reserved_peak as f64), bytes(reserved_end as f64));
            format!("{peak} / {end} / {} / {}", number(driver_time), number(driver_longest))
        }),
    );
    add(
        "Traces: fragmentation at the peak",
        "Gaps between live allocations in the memory that is reserved / bytes in them / the largest / scatter: the share of those bytes \
         that is not in the largest gap of its memory type. At the moment with the most reserved, and of such moments the one with the \
         most in use. Computed for all alike from where allocations lie and what was asked for: what a peer adds to an allocation, and \
         what its alignment skips, is part of a gap.",
        table(&|_, figures| {
            let MemoryFigures { gaps, .. } = figures.memory;
            let (all, largest) = (bytes(gaps.bytes as f64), bytes(gaps.largest as f64));
            format!("{} / {all} / {largest} / {} %", gaps.count, number(100.0 * gaps.scatter()))
        }),
    );
    add(
        "Traces: memory objects and calls of the driver",
        "The most memory objects at once / calls of vkAllocateMemory / vkFreeMemory / vkMapMemory.",
        table(&|_, figures| {
            let MemoryFigures { blocks_peak, calls, .. } = figures.memory;
            format!("{blocks_peak} / {} / {} / {}", calls.allocations, calls.frees, calls.maps)
        }),
    );
    if all.iter().any(|replayed| replayed.figures.values().any(|figures| figures.refused > 0)) {
        add("Traces: allocations refused", "", table(&|_, figures| figures.refused.to_string()));
    }
    let mut what = AlignedTable::new([
        "",
        "calls",
        "live bytes at most",
        "in pools",
        "in scopes",
        "refused",
        "left out",
    ]);
    for Replayed { name, script, figures } in all {
        let used = figures.values().map(|figures| figures.memory.used_peak).max().unwrap_or(0);
        let counts = [script.in_pools, script.in_scopes, script.refused, script.left_out];
        let cells = [name.clone(), script.calls().to_string(), bytes(used as f64)];
        what.row(cells.into_iter().chain(counts.map(|count| count.to_string())));
    }
    add(
        "Traces: what they are",
        "Allocations are asked for in the memory type that Sublet chose. gpu-allocator and gpu-alloc have no pools, and serve them from \
         their only memory. The stand-in is asked for no memory of its own by name. What is in scopes is freed piece by piece, by every peer. Left out are defragmentation, trimming, flushes and \
         names; refused are allocations that Sublet could not make on this device.",
        what,
    );
    tables
}
