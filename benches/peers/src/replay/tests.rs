//! A short trace, on every peer.

use clap::Parser as _;
use sublet::private::foreign_recording;
use sublet::trace::{
    Allocate, AllocationNumber, Event, ForeignMemoryFlags, GrantedMemory, MemoryNumber, Needs, PoolNumber,
    PoolSettings, Record, ResourceNumber, ScopeNumber, ScopeSettings, Trace, Wanted,
};
use sublet::{AllocationCreateFlags, MemoryUsage, ResourceKind};

use super::script::{Host, ScriptStep};
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
    for name in ["null:nvidia-h200", "sim:amd-rx-6700-xt", "sim:lavapipe"] {
        let driver = Driver::parse(name, 0).unwrap();
        let found = replay("short", &trace(), &driver, &options("p replay short.trace"), 2, &|_| ()).unwrap();
        assert_eq!(found.figures.len(), WHOLE.len());
        assert_eq!(found.script.slots, 5, "the slot of what was freed is taken again");
        for (kind, figures) in &found.figures {
            let ReplayFigures { reserved_peak, used_then, used_peak, blocks_peak, calls, .. } = *figures;
            let ReplayFigures { reserved_end, driver_time, driver_longest, .. } = *figures;
            assert!(figures.refused == 0 && figures.whole > 0.0, "{kind:?}");
            assert!(reserved_end <= reserved_peak && driver_longest > 0.0, "{kind:?}");
            assert!(
                driver_time >= calls.allocations as f64 * 0.15 && driver_time > driver_longest,
                "{kind:?}"
            );
            assert_eq!(used_peak, 392 * KIB, "{kind:?}");
            assert!(reserved_peak >= used_peak && used_then <= used_peak && blocks_peak > 1, "{kind:?}");
            assert!(calls.allocations >= blocks_peak, "{kind:?}");
        }
    }
}

/// An image with optimal tiling is host memory only if its allocation is mapped, even if all memory is host-visible.
#[test]
fn an_optimal_image_is_no_host_memory() {
    let (buffer, image) = (ResourceKind::Buffer, ResourceKind::ImageOptimal);
    let (mapped, none) = (AllocationCreateFlags::MAPPED, AllocationCreateFlags::empty());
    for (kind, flags, expected) in [
        (image, none, Host::Never),
        (image, mapped, Host::Writes),
        (buffer, none, Host::Writes),
        (buffer, mapped, Host::Writes),
    ] {
        let mut event = allocate(0, KIB, Wanted { flags, ..Wanted::default() });
        if let Event::Allocate(allocate) = &mut event {
            allocate.resource.kind = kind;
        }
        let trace = Trace { records: vec![Record { event, ..Record::default() }], ..Trace::default() };
        let gpu = TestGpu::new(&Driver::parse("null:lavapipe", 0).unwrap(), None).unwrap();
        let script = peers::with_sublet(&gpu, |allocator| Script::new(&trace, allocator)).unwrap();
        let ScriptStep::Allocate(_, ask) = &script.steps[0] else { panic!("{:?}", script.steps) };
        assert_eq!(ask.host, expected, "{kind:?} {flags:?}");
    }
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

/// A program with its own blocks: every peer is asked for its resources.
#[test]
fn a_foreign_recording_is_played_by_every_peer() {
    let (memory, flags) = (MemoryNumber(1), ForeignMemoryFlags::empty());
    let mut events =
        vec![Event::MemoryAllocated { memory, memory_type: 0, size: 1 << 26, flags, resource: None }];
    for number in 1..4 {
        let resource = ResourceNumber(number);
        events.push(Event::BufferCreated { resource, size: 64 * KIB, usage: 0x20, flags: 0 });
        events.push(Event::Bound { resource, plane: None, memory, offset: number << 20 });
    }
    let records = events.into_iter().map(|event| Record { event, ..Record::default() }).collect();
    let file = foreign_recording(&Trace { records, ..Trace::default() });
    let path = std::env::temp_dir().join(format!("sublet-foreign-{}", std::process::id()));
    std::fs::write(&path, file).unwrap();
    let trace = read(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    let driver = Driver::parse("null:nvidia-h200", 0).unwrap();
    let found = replay("foreign", &trace, &driver, &options("p replay foreign.trace"), 1, &|_| ()).unwrap();
    assert_eq!(found.script.slots, 3);
    assert!(found.figures.values().all(|figures| figures.used_peak == 192 * KIB));
}
