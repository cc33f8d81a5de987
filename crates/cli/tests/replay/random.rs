//! Recording and replay of random programs.

use std::collections::BTreeMap;
use std::thread;

use sublet::sim::{Gpu, Profile};
use sublet::trace::{CallKind, Event, MoveOutcome, Replay, Trace, TraceBuffer};
use sublet::{Allocator, AllocatorCreateInfo};

use crate::outcome::result;
use crate::program::{Blocks, PlacementRow, Program};

fn allocator(gpu: &Gpu) -> Allocator {
    // SAFETY: instance and device are live, and outlive the allocator.
    unsafe { Allocator::new(&AllocatorCreateInfo::for_gpu(gpu)) }.unwrap()
}

/// Returns the placements of a replay, in the order of the program's.
fn places(trace: &Trace, replay: &mut Replay<'_>) -> Vec<PlacementRow> {
    let (mut places, mut blocks, mut memories) = (Vec::new(), Blocks::default(), BTreeMap::new());
    while let Some(record) = replay.step() {
        let Some(number) = record.event.allocation() else { continue };
        let is_placed = match &record.event {
            Event::Allocate(_) => true,
            Event::Move { outcome, .. } => *outcome == MoveOutcome::Completed,
            _ => false,
        };
        if is_placed {
            let allocation = replay.allocation(number).unwrap();
            places.push(blocks.placed(&allocation));
            if let Some(before) = memories.insert(number, allocation.memory) {
                blocks.left(before);
            }
        }
        // Includes memory that was freed with its pool or scope.
        memories.retain(|number, memory| {
            let lives = replay.allocation(*number).is_some();
            if !lives {
                blocks.left(*memory);
            }
            lives
        });
        assert!(places.len() <= trace.records.len());
    }
    places
}

#[test]
fn a_recorded_program_is_replayed_to_the_same_places() {
    let (mut moved, mut refused) = (0, 0);
    for (name, seed) in
        Profile::names().zip(1_u64..).flat_map(|(name, seed)| [(name, seed), (name, seed + 1000)])
    {
        let profile = Profile::by_name(name).unwrap();
        let (gpu, sink) = (Gpu::new(profile), TraceBuffer::new());
        let original = allocator(&gpu);
        original.start_recording(sink.clone()).unwrap();
        let mut program = Program::new(&gpu, &original, seed);
        program.run(400);
        original.stop_recording().unwrap();
        moved += program.moved;
        refused += program.refused;

        let trace = Trace::read(&sink.bytes()).unwrap();
        assert_eq!(trace.unknown_events, 0);
        assert!(std::ptr::eq(trace.header.profile(), profile), "{name} poses as itself");
        let fresh = trace.header.simulated().build();
        // SAFETY: instance and device are live, and outlive the allocator.
        let other = unsafe { Allocator::new(&trace.header.create_info(&fresh)) }.unwrap();
        let mut replay = Replay::new(&trace, &other);
        let found = places(&trace, &mut replay);
        for (at, (found, expected)) in found.iter().zip(&program.places).enumerate() {
            assert_eq!(found, expected, "{name}, seed {seed}, place {at}");
        }
        assert_eq!(found.len(), program.places.len(), "{name}, seed {seed}");
        other.validate();
        // Compares the state too: allocations and free ranges.
        assert_eq!(other.calculate_statistics(), original.calculate_statistics(), "{name}, seed {seed}");

        let report = replay.finish();
        let memory = report.memory;
        assert_eq!(
            (memory.peak_reserved_bytes, memory.peak_used_bytes),
            (program.peak_reserved, program.peak_used)
        );
        let troubles = [report.refused, report.unknown, report.moves_missing, report.other_memory_type];
        assert_eq!((troubles, report.granted_after_all), ([0; 4], 0), "{name}, seed {seed}");
        assert_eq!(report.refused_in_recording, program.refused);
        assert_eq!(report.call(CallKind::Allocate).made, program.granted + program.refused);
        assert_eq!(other.statistics().allocation_count, 0);

        program.end();
        drop((original, other));
        gpu.assert_silent();
        fresh.assert_silent();
    }
    assert!(moved > 100 && refused > 100, "moved {moved}, refused {refused}: it was worth it");
}

#[test]
fn a_replay_of_several_threads_has_every_call_and_refuses_nothing() {
    let profile = Profile::by_name("nvidia-rtx-5070-ti").unwrap();
    for seed in 0..3_u64 {
        let (gpu, sink) = (Gpu::new(profile), TraceBuffer::new());
        let original = allocator(&gpu);
        original.start_recording(sink.clone()).unwrap();
        let made: Vec<(u64, u64)> = thread::scope(|scope| {
            let spawn = |thread: u64| {
                let (gpu, original) = (&gpu, &original);
                scope.spawn(move || {
                    let mut program = Program::new(gpu, original, seed * 100 + thread);
                    program.run_beside_others(500);
                    program.end();
                    (program.granted, program.refused)
                })
            };
            let threads: Vec<_> = (0..4).map(spawn).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        original.stop_recording().unwrap();

        let trace = Trace::read(&sink.bytes()).unwrap();
        let fresh = trace.header.simulated().build();
        let other = allocator(&fresh);
        let report = Replay::new(&trace, &other).finish();
        assert_eq!((report.refused, report.unknown), (0, 0), "seed {seed}: {report:?}");
        let granted: u64 = made.iter().map(|(granted, _)| granted).sum();
        let refused: u64 = made.iter().map(|(_, refused)| refused).sum();
        assert_eq!(report.call(CallKind::Allocate).made, granted + refused);
        assert_eq!(report.refused_in_recording, refused);
        assert_eq!(report.memory.at_end.allocation_count, 0, "the threads have freed everything");
        // A second replay gives the same result, for any order of the threads.
        let again = allocator(&fresh);
        assert_eq!(result(&Replay::new(&trace, &again).finish()), result(&report));
    }
}

#[test]
fn what_was_there_before_the_recording_is_there_in_the_replay() {
    let gpu = Gpu::new(Profile::by_name("amd-rx-6700-xt").unwrap());
    let original = allocator(&gpu);
    let mut program = Program::new(&gpu, &original, 5);
    program.run(150);
    let before = original.statistics().allocation_count;
    let sink = TraceBuffer::new();
    original.start_recording(sink.clone()).unwrap();
    program.run(150);
    let after = original.statistics();
    original.stop_recording().unwrap();

    let trace = Trace::read(&sink.bytes()).unwrap();
    let existing = trace.records.iter().filter(|record| matches!(record.event, Event::Existing(_))).count();
    assert_eq!(u64::try_from(existing).unwrap(), before);
    let fresh = trace.header.simulated().build();
    let other = allocator(&fresh);
    let mut replay = Replay::new(&trace, &other);
    while replay.step().is_some() {}
    assert_eq!(replay.report().unknown, 0);
    assert_eq!(other.statistics().allocation_count, after.allocation_count);
    drop(replay);
    assert_eq!(other.statistics().allocation_count, 0, "a replay that is dropped leaves nothing");
    program.end();
}
