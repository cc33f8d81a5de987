//! Every workload with every peer, small enough for a test. Each run checks its own end state.

use clap::Parser as _;

use crate::cli::{PeersArguments, PeersCommand};
use crate::peers::PeerKind;
use crate::session::Session;
use crate::workloads::threads::FreedBy;
use crate::workloads::{self, Scale};

fn session(options: &str) -> Session {
    let arguments = PeersArguments::try_parse_from(
        ["peers", "all", "--quick"].into_iter().chain(options.split_whitespace()),
    );
    Session::tiny(&arguments.unwrap().options).unwrap()
}

fn run(options: &str, commands: &[PeersCommand]) -> Session {
    let mut session = session(options);
    for command in commands {
        session.run(command).unwrap_or_else(|error| panic!("{command:?}: {error}"));
    }
    session
}

#[test]
fn every_workload_with_every_peer() {
    use PeersCommand::{Blocks, Churn, Create, Engines, Frame, Granularity, Level, Order};
    let session = run("", &[Churn, Order, Frame, Level, Granularity, Blocks, Create, Engines]);
    let scale = Scale { seed: 1, pairs: 10, smaller: 100 };
    let mut seen = 0;
    for workload in workloads::all().flat_map(|maker| maker(&scale)) {
        for entry in &workload.peers {
            let figures = session.results().get(&workload.id, entry.kind);
            let without = match entry.kind {
                PeerKind::GpuAllocator => ["frame-linear", "ring-linear"].contains(&workload.id.as_str()),
                PeerKind::OffsetAllocator => workload.id == "engine-linear",
                _ => false,
            };
            assert_eq!(figures.is_none(), without, "{}, {}", workload.id, entry.kind.title());
            let Some(figures) = figures else { continue };
            assert!(figures.pair.is_some_and(|pair| pair > 0.0), "{}", workload.id);
            if workload.thorough && entry.kind != PeerKind::Nothing {
                assert!(figures.own_heap.is_some(), "{}", workload.id);
            }
            seen += 1;
        }
    }
    assert!(seen > 100, "only {seen}");
}

#[test]
fn every_peer_with_threads() {
    let session = run("--threads 1,3", &[PeersCommand::Threads]);
    for kind in
        [PeerKind::Sublet, PeerKind::Vma, PeerKind::GpuAllocator, PeerKind::GpuAlloc, PeerKind::Nothing]
    {
        for (threads, freed_by) in [1, 3].into_iter().flat_map(|n| FreedBy::ALL.map(|freed_by| (n, freed_by)))
        {
            let figures = session.results().threads(kind, threads, freed_by);
            let figures = figures.unwrap_or_else(|| panic!("{}, {threads}, {freed_by:?}", kind.title()));
            assert!(figures.throughput > 0.0 && figures.live > 0);
            assert!(kind == PeerKind::Nothing || figures.reserved > figures.live);
        }
    }
}

#[test]
fn growth_with_every_peer() {
    let session = run("", &[PeersCommand::Growth]);
    for kind in [PeerKind::Sublet, PeerKind::Vma, PeerKind::GpuAllocator, PeerKind::GpuAlloc] {
        assert!(session.results().growth(kind).is_some_and(|found| found.max > 0.0), "{}", kind.title());
    }
}

/// The simulated driver checks every call, and a run fails if it reports anything or if memory is left.
#[test]
fn frames_with_every_peer() {
    let command = PeersCommand::Frames { device_mib: Some(64), host_mib: Some(16), frames: 20, work_ms: 0 };
    run("", std::slice::from_ref(&command));
    run("--driver sim:nvidia-h200 --peer sublet", &[command]);
}

#[test]
fn every_giver_of_descriptor_sets() {
    use crate::workloads::descriptors::{Giver, ROWS};
    for driver in ["", "--driver sim:nvidia-h200"] {
        let session = run(driver, &[PeersCommand::Descriptors]);
        for row in &ROWS {
            for giver in Giver::ALL {
                let nanoseconds = session.results().sets(row.id, giver);
                let without = giver == Giver::Transient && row.id != "sets-frames";
                assert_eq!(nanoseconds.is_none(), without, "{}, {}", row.id, giver.title());
                assert!(nanoseconds.is_none_or(|nanoseconds| nanoseconds > 0.0));
            }
        }
    }
}

/// The simulated driver checks every call, and a run fails if it reports anything.
#[test]
fn a_driver_that_checks_is_content() {
    run(
        "--driver sim:nvidia-h200 --only churn-1k --only frame --only granularity --only create",
        &[PeersCommand::Churn, PeersCommand::Frame, PeersCommand::Granularity, PeersCommand::Create],
    );
}

/// Checks the checks: a run must fail on a wrong end state.
#[test]
fn a_wrong_end_is_an_error() {
    use crate::case::{CaseSetup, case};
    use crate::gpu::Driver;
    use crate::peers::PeerMode;
    use crate::script::{PeerRequest, PeerRequestKind, Phase};

    let driver = Driver::parse("null", 0).unwrap();
    let request = PeerRequest { size: 1 << 20, alignment: 16, kind: PeerRequestKind::Memory };
    for kind in [PeerKind::Sublet, PeerKind::Vma, PeerKind::GpuAllocator, PeerKind::GpuAlloc] {
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
    assert!(session("--only churn-1k-usual --peer sublet").run(&PeersCommand::Churn).is_ok());
}
