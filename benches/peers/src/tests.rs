//! Every workload with every peer, small enough for a test. Each run checks its own end state.

use std::time::Duration;

use clap::Parser as _;

use crate::cli::PeersArguments;
use crate::gpu::Driver;
use crate::peers::PeerKind;
use crate::session::Session;
use crate::workloads::growth::growth;
use crate::workloads::threads::{FreedBy, ThreadsPlan, threads};
use crate::workloads::{self, Scale};

const SCALE: Scale = Scale { seed: 1, pairs: 60, smaller: 100 };

fn null() -> Driver {
    Driver::parse("null", 0).unwrap()
}

fn arguments(line: &str) -> PeersArguments {
    PeersArguments::try_parse_from(["peers"].into_iter().chain(line.split_whitespace())).unwrap()
}

fn session(line: &str) -> Session {
    Session::tiny(&arguments(line).options).unwrap()
}

/// Runs a command with `--quick`.
fn run(line: &str) {
    let arguments = arguments(&format!("{line} --quick"));
    let ran = Session::tiny(&arguments.options).unwrap().run(&arguments.command);
    ran.unwrap_or_else(|error| panic!("{line}: {error}"));
}

#[test]
fn every_workload_with_every_peer() {
    let mut rows = session("all").measure_all(&workloads::ALL).unwrap().into_iter();
    for workload in workloads::ALL.into_iter().flat_map(|maker| maker(&SCALE)) {
        let row = rows.next().unwrap();
        assert_eq!(row.id, workload.id);
        for entry in &workload.peers {
            let figures = row.figures.get(&entry.kind);
            let without = entry.kind == PeerKind::GpuAllocator
                && ["frame-linear", "ring-linear"].contains(&workload.id.as_str());
            assert_eq!(figures.is_none(), without, "{}, {}", workload.id, entry.kind.title());
            let Some(figures) = figures else { continue };
            assert!(figures.pair.is_some_and(|pair| pair > 0.0), "{}", workload.id);
            let has_heap = workload.thorough && cfg!(target_env = "gnu");
            assert!(!has_heap || figures.own_heap.is_some(), "{}", workload.id);
        }
    }
    assert!(rows.next().is_none());
}

#[test]
fn every_peer_with_threads() {
    for kind in workloads::WHOLE {
        for (count, freed_by) in [1, 3].into_iter().flat_map(|n| FreedBy::ALL.map(|freed_by| (n, freed_by))) {
            let duration = Duration::from_millis(20);
            let plan =
                ThreadsPlan { threads: count, freed_by, warm_up: duration, duration, scale: SCALE, round: 0 };
            let figures = threads(plan, &null(), kind).unwrap();
            assert!(figures.throughput > 0.0 && figures.live > 0);
            assert!(figures.reserved > figures.live);
        }
    }
}

#[test]
fn growth_with_every_peer() {
    for kind in workloads::WHOLE {
        assert!(growth(&null(), kind, &SCALE, 4).unwrap().max > 0.0, "{}", kind.title());
    }
}

/// The simulated driver checks every call, and a run fails if it reports anything or if memory is left.
#[test]
fn every_command_prints_its_tables() {
    for command in ["churn", "order", "frame", "level", "granularity", "blocks", "create", "growth", "frames"]
    {
        run(command);
    }
    run("threads --threads 1,2");
    run("frames --driver sim:nvidia-h200 --peer sublet");
    for driver in ["null", "sim:nvidia-h200"] {
        run(&format!("driver --driver {driver}"));
        run(&format!("descriptors --driver {driver}"));
    }
    for command in ["churn --only churn-1k", "frame", "granularity", "create"] {
        run(&format!("{command} --driver sim:nvidia-h200"));
    }
}

/// Checks the checks: a run must fail on a wrong end state.
#[test]
fn a_wrong_end_is_an_error() {
    use crate::case::{CaseSetup, case};
    use crate::peers::PeerMode;
    use crate::script::{PeerRequest, PeerRequestKind, Phase};

    let driver = null();
    let request = PeerRequest { size: 1 << 20, alignment: 16, kind: PeerRequestKind::Memory };
    for kind in workloads::WHOLE {
        let place = CaseSetup { driver: &driver, granularity: 1, kind, shape: PeerMode::Default };
        // A failed allocation.
        let mut refused = case(place, 2).unwrap().unwrap();
        refused.limit(0);
        refused.prepare(&[Phase::Allocate(vec![(0, request)])], 1);
        assert!(refused.finish().is_err_and(|error| error.contains("refused")), "{}", kind.title());
        // Two allocations in one slot: the first is lost.
        let mut lost = case(place, 2).unwrap().unwrap();
        lost.prepare(&[Phase::Allocate(vec![(0, request), (0, request)])], 1);
        assert!(lost.finish().is_err(), "{}", kind.title());
    }
}

#[test]
fn a_row_above_vma_is_an_error() {
    let mut row = session("churn --only churn-1k-usual").measure_all(&[workloads::churn]).unwrap().remove(0);
    row.figures.get_mut(&PeerKind::Sublet).unwrap().reserved_peak = Some(1.5);
    row.figures.get_mut(&PeerKind::Vma).unwrap().reserved_peak = Some(1.49);
    assert_eq!(row.check(), Ok(()));
    row.figures.get_mut(&PeerKind::Sublet).unwrap().reserved_peak = Some(1.6);
    assert!(row.check().is_err_and(|error| error.contains("1.60") && error.contains("1.49")));
}
