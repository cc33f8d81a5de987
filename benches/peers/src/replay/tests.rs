//! A short trace, on every peer.

use clap::Parser as _;
use sublet::sim::Profile;
use sublet::trace::{
    Allocate, AllocationNumber, Event, GrantedMemory, Needs, PoolNumber, PoolSettings, Record, ScopeNumber,
    ScopeSettings, Trace, Wanted,
};
use sublet::{AllocationCreateFlags, MemoryUsage};

use super::*;
use crate::cli::PeersArguments;

const KIB: u64 = 1 << 10;

fn allocate(number: u32, size: u64, wanted: Wanted) -> Event {
    Event::Allocate(Box::new(Allocate {
        allocation: AllocationNumber(number),
        resource: Needs { size, alignment: 256, ..Needs::default() },
        wanted,
        granted: GrantedMemory::default(),
    }))
}

fn trace() -> Trace {
    let mapped =
        Wanted { usage: MemoryUsage::CpuToGpu, flags: AllocationCreateFlags::MAPPED, ..Wanted::default() };
    let device = Wanted { usage: MemoryUsage::GpuOnly, ..Wanted::default() };
    let (pool, scope) = (PoolNumber(0), ScopeNumber(0));
    let alone = Wanted { flags: AllocationCreateFlags::DEDICATED_MEMORY, ..device.clone() };
    let events = vec![
        Event::CreatePool {
            pool,
            settings: Box::new(PoolSettings { block_size: 1 << 20, ..PoolSettings::default() }),
        },
        Event::CreateScope { scope, settings: Box::new(ScopeSettings::default()) },
        allocate(0, 64 * KIB, device.clone()),
        allocate(1, 4 * KIB, mapped.clone()),
        allocate(2, 16 * KIB, Wanted { pool: Some(pool), ..Wanted::default() }),
        allocate(3, 8 * KIB, Wanted { scope: Some(scope), ..device.clone() }),
        allocate(4, 300 * KIB, alone),
        Event::CopyTo { allocation: AllocationNumber(1), offset: 0, size: 16 },
        Event::Map { allocation: AllocationNumber(1) },
        Event::Frame { index: 1 },
        Event::Free { allocation: AllocationNumber(0) },
        // No device has this much memory.
        allocate(5, 1 << 50, device.clone()),
        Event::FreeScope { scope },
        Event::DestroyPool { pool },
        Event::Trim,
        allocate(6, 32 * KIB, device),
    ];
    let record = |event| Record { event, ..Record::default() };
    Trace { records: events.into_iter().map(record).collect(), ..Trace::default() }
}

fn options(text: &str) -> Options {
    PeersArguments::try_parse_from(text.split_whitespace()).unwrap().options
}

#[test]
fn the_same_is_asked_of_every_peer_and_all_of_it_is_given_back() {
    for (driver, hint) in [
        (Driver::Null("nvidia-h200"), None),
        (Driver::Simulated("amd-rx-6700-xt"), Some(WgpuHint::MemoryUsage)),
        (Driver::Simulated("lavapipe"), None),
    ] {
        let stage = Stage::Named(driver);
        let effort = CaseEffort { rounds: 2, sample_rounds: 1 };
        let found =
            replay("short", &trace(), &stage, hint, &options("p replay short.trace"), effort, &|_| ())
                .unwrap();
        assert_eq!(found.figures.len(), PLAYERS.len() - usize::from(hint.is_none()));
        let Script { in_pools, in_scopes, refused, left_out, slots, .. } = found.script;
        assert_eq!((in_pools, in_scopes, refused, left_out), (1, 1, 1, 1));
        assert_eq!(slots, 5, "the slot of what was freed is taken again");
        for (kind, figures) in &found.figures {
            assert_eq!(figures.refused, 0, "{kind:?}");
            assert!(figures.whole > 0.0 && figures.allocate.is_some() && figures.free.is_some(), "{kind:?}");
            let MemoryFigures { reserved_peak, used_then, gaps, used_peak, blocks_peak, calls, .. } =
                figures.memory;
            let MemoryFigures { reserved_end, driver_time, driver_longest, .. } = figures.memory;
            assert!(reserved_end <= reserved_peak && driver_longest > 0.0, "{kind:?}");
            assert!(
                driver_time >= calls.allocations as f64 * 0.15 && driver_time > driver_longest,
                "{kind:?}"
            );
            assert_eq!(used_peak, 392 * KIB, "{kind:?}");
            assert!(reserved_peak >= used_peak && used_then <= used_peak && blocks_peak > 1, "{kind:?}");
            assert!(calls.allocations >= blocks_peak, "{kind:?}");
            assert_eq!(gaps.bytes, reserved_peak - used_then, "{kind:?}");
            assert!(gaps.count > 0 && (0.0..1.0).contains(&gaps.scatter()), "{kind:?}");
        }
    }
}

#[test]
fn a_device_poses_as_the_recorded_one() {
    let profile = Profile::by_name("arm-mali-g52").unwrap();
    let gpu = Stage::Posing(profile).gpu().unwrap();
    assert_eq!(gpu.memory().memory_types_as_slice().len(), profile.types.len());
    gpu.finish().unwrap();
}

#[test]
fn a_file_that_is_no_trace_is_named_with_the_reason() {
    let path = std::env::temp_dir().join(format!("sublet-no-trace-{}", std::process::id()));
    std::fs::write(&path, b"no trace at all").unwrap();
    let error = read(&path).unwrap_err();
    assert!(error.contains("sublet-no-trace") && error.contains("this is no trace"), "{error}");
    std::fs::remove_file(&path).unwrap();
    assert!(read(&path).unwrap_err().contains("sublet-no-trace"));
}
