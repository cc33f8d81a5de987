//! Tests of histories. `tests/report_page/history.rs` tests their pages in a browser.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::collections::BTreeSet;
use std::path::Path;

use super::*;
use crate::cast::index;
use crate::history::parts::NEVER;
use crate::snapshot::{Entry, Snapshot};
use sublet::Allocator;
#[cfg(feature = "findings")]
use sublet::trace::ForeignRecords;
use sublet::trace::{Event, Replay, Trace};

const RECORDINGS: [&str; 8] =
    ["defragment", "frames", "level", "render", "tour", "vello", "vk-graph", "wgpu"];

fn recording(name: &str) -> Trace {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/traces");
    Trace::read(&std::fs::read(folder.join(format!("{name}.trace"))).unwrap()).unwrap()
}

/// Passes a new allocator to a closure. Its device differs from the recorded ones, so memory types are translated.
fn with_allocator<R>(task: impl FnOnce(&Allocator) -> R) -> R {
    let (_gpu, allocator) = sublet::doc_example();
    task(&allocator)
}

/// A block or dedicated memory: memory type, pool, number, size.
type ShownMemory = (u32, Option<u32>, Option<u32>, u64);
/// An allocation: its memory, offset, size, kind, usage, name.
type ShownPlacement = (ShownMemory, u64, u64, &'static str, u64, String);

fn of_snapshot(snapshot: &Snapshot) -> (Vec<ShownMemory>, BTreeSet<ShownPlacement>) {
    let placed = |memory, offset, size, entry: &Entry| {
        let name = entry.name.as_deref().unwrap_or_default().to_owned();
        (memory, offset, size, entry.kind.text(), entry.usage, name)
    };
    let (mut memories, mut all) = (Vec::new(), BTreeSet::new());
    for vector in &snapshot.vectors {
        for block in &vector.blocks {
            let memory = (vector.memory_type, vector.pool, Some(block.id), block.size);
            memories.push(memory);
            for chunk in &block.chunks {
                if let Some(entry) = &chunk.allocation {
                    all.insert(placed(memory, chunk.offset, chunk.size, entry));
                }
            }
        }
        for dedicated in &vector.dedicated {
            let memory = (vector.memory_type, vector.pool, None, dedicated.size);
            memories.push(memory);
            all.insert(placed(memory, 0, dedicated.size, &dedicated.allocation));
        }
    }
    memories.sort_unstable();
    (memories, all)
}

fn of_history(history: &History, moment: u32) -> (Vec<ShownMemory>, BTreeSet<ShownPlacement>) {
    let is_live = |from, to| from <= moment && moment < to;
    let memory = |it: &HeldMemory| {
        let vector = &history.vectors[index(it.vector)];
        (vector.memory_type, vector.pool, (!it.dedicated).then_some(it.number), it.size)
    };
    let memories = history.memories.iter().filter(|it| is_live(it.from, it.to));
    let mut memories: Vec<ShownMemory> = memories.map(memory).collect();
    memories.sort_unstable();
    let placed = history.placed.iter().filter(|it| is_live(it.from, it.to)).map(|it| {
        let name = if it.name == 0 { "" } else { &*history.texts.all()[index(it.name) - 1] };
        let held = memory(&history.memories[index(it.memory)]);
        (held, it.offset, it.size, it.kind.text(), it.usage, name.to_owned())
    });
    (memories, placed.collect())
}

/// Names of an allocation without one hold from its start, so names are not compared where they change.
fn without_names(
    mut state: (Vec<ShownMemory>, BTreeSet<ShownPlacement>),
) -> (Vec<ShownMemory>, BTreeSet<ShownPlacement>) {
    state.1 =
        state.1.into_iter().map(|(memory, a, b, c, d, _)| (memory, a, b, c, d, String::new())).collect();
    state
}

#[test]
fn a_history_has_the_map_of_every_moment() {
    for name in RECORDINGS {
        let trace = recording(name);
        let history = with_allocator(|allocator| History::replayed(&trace, allocator));
        assert!(history.allocation_count() > 5, "{name}");
        let every = (history.moments.len() / 40).max(1);
        with_allocator(|allocator| {
            let mut replay = Replay::new(&trace, allocator);
            let (mut calls, mut in_pass) = (0, false);
            for (at, moment) in history.moments.iter().enumerate().step_by(every) {
                while calls < moment.call {
                    in_pass = match replay.step().unwrap().event {
                        Event::BeginPass { .. } => true,
                        Event::EndPass { .. } => false,
                        _ => in_pass,
                    };
                    calls += 1;
                }
                // The allocator's map has the destinations of moves as well.
                if in_pass {
                    continue;
                }
                let expected = without_names(of_snapshot(&Snapshot::of(allocator)));
                let found = without_names(of_history(&history, u32::try_from(at).unwrap()));
                assert!(found == expected, "{name} after {calls} calls");
            }
        });
    }
}

/// A moved allocation keeps its number, and has a place for each move.
#[test]
fn moves_are_places_of_one_allocation() {
    let trace = recording("defragment");
    let history = with_allocator(|allocator| History::replayed(&trace, allocator));
    let moved: Vec<_> = history.placed.iter().filter(|it| !it.is_first).collect();
    assert!(moved.len() > 10, "{}", moved.len());
    for it in moved {
        let before =
            history.placed.iter().find(|other| other.number == it.number && other.to == it.from).unwrap();
        assert!((before.memory, before.offset) != (it.memory, it.offset) || before.name != it.name);
        assert_eq!((before.size, before.kind), (it.size, it.kind));
    }
}

/// Bytes in use in a heap at a moment, by the columns of a page.
fn used(data: &serde_json::Value, heap: u64, moment: u64) -> u64 {
    let column =
        |table: &str, name: &str| -> Vec<u64> { serde_json::from_value(data[table][name].clone()).unwrap() };
    let running = |values: Vec<u64>| -> Vec<u64> {
        values
            .into_iter()
            .scan(0, |sum, it| {
                *sum += it;
                Some(*sum)
            })
            .collect()
    };
    let heap_of = |memory: u64| {
        let vector = &data["memories"]["vector"][usize::try_from(memory).unwrap()];
        data["vectors"][usize::try_from(vector.as_u64().unwrap()).unwrap()]["heap"].as_u64().unwrap()
    };
    let (from, life) = (running(column("placed", "from")), column("placed", "life"));
    let (memory, size) = (column("placed", "memory"), column("placed", "size"));
    let is_live = |at: usize| {
        from[at] <= moment && (life[at] == 0 || moment < from[at] + life[at]) && heap_of(memory[at]) == heap
    };
    let shown: u64 = (0..from.len()).filter(|&at| is_live(at)).map(|at| size[at]).sum();
    let moments = running(column("hidden", "moment"));
    let of_heap = |at: &usize| column("hidden", "heap")[*at] == heap && moments[*at] <= moment;
    let hidden = (0..moments.len()).rfind(of_heap).map_or(0, |at| column("hidden", "used")[at]);
    shown + hidden
}

#[path = "../../tests/example/watched.rs"]
#[allow(dead_code, unreachable_pub, reason = "shared with the integration tests")]
mod watched;

/// A program that allocates by itself: blocks with resources, dedicated memory, names, and frees in any order.
fn foreign_program() -> Trace {
    use ash::vk;
    let mut game = watched::Watched::on("nvidia-rtx-5070-ti");
    let mut random = fastrand::Rng::with_seed(7);
    let mut resources = Vec::new();
    let mut memories = Vec::new();
    for step in 0..400_u64 {
        let memory_type = random.u32(0..2);
        match random.u32(0..10) {
            0 => memories.push((game.allocate(memory_type, 1 << 20), 0)),
            1 => {
                let target = game.image(70_000, vk::ImageUsageFlags::COLOR_ATTACHMENT);
                memories.push((game.dedicate(memory_type, target, 131_072), u64::MAX));
            }
            2 if !memories.is_empty() => game.free(memories.swap_remove(random.usize(0..memories.len())).0),
            3 | 4 if !resources.is_empty() => {
                game.destroy(resources.swap_remove(random.usize(0..resources.len())));
            }
            5 => game.event(Event::Presented),
            _ => {
                let free = memories.iter_mut().find(|(_, end)| *end < 900_000);
                let Some((memory, end)) = free else { continue };
                let size = random.u64(1..40_000);
                let buffer = game.buffer(size, vk::BufferUsageFlags::VERTEX_BUFFER);
                game.bind(buffer, *memory, *end);
                if step % 3 == 0 {
                    game.name(buffer, &format!("mesh {step}"));
                }
                *end += size + random.u64(0..2) * 512;
                resources.push(buffer);
            }
        }
    }
    game.trace
}

#[test]
fn a_foreign_history_has_the_map_of_every_moment() {
    let trace = foreign_program();
    let history = History::of_foreign(&trace.header, &trace.records);
    assert!(history.allocation_count() > 100 && history.frames.len() > 10);
    for (at, moment) in history.moments.iter().enumerate().step_by(5) {
        let snapshot = Snapshot::of_trace_at(&trace, usize::try_from(moment.call).unwrap());
        let (memories, placed) = without_names(of_snapshot(&snapshot));
        let (mut found, found_placed) = without_names(of_history(&history, u32::try_from(at).unwrap()));
        // A dedicated memory without its resource is a block in the snapshot.
        let sizes = |all: &[ShownMemory]| all.iter().map(|it| (it.0, it.3)).collect::<Vec<_>>();
        found.sort_unstable_by_key(|it| (it.0, it.3));
        let mut expected = memories.clone();
        expected.sort_unstable_by_key(|it| (it.0, it.3));
        assert_eq!(sizes(&found), sizes(&expected), "after {} calls", moment.call);
        let places = |all: &BTreeSet<ShownPlacement>| {
            all.iter()
                .filter(|it| it.0.2.is_some())
                .map(|it| (it.1, it.2, it.3, it.4))
                .collect::<BTreeSet<_>>()
        };
        assert_eq!(places(&found_placed), places(&placed), "after {} calls", moment.call);
        assert_eq!(found_placed.len(), placed.len(), "after {} calls", moment.call);
    }
}

/// Numbers of a file may be anything.
#[test]
fn hostile_numbers_of_a_foreign_program_do_no_harm() {
    use sublet::trace::{ForeignMemoryFlags, MemoryNumber, Record, ResourceNumber};
    let mut events = Vec::new();
    for number in [0, 1, u64::MAX, 1 << 60, u64::MAX] {
        let (memory, resource) = (MemoryNumber(number), ResourceNumber(number));
        for flags in [ForeignMemoryFlags::empty(), ForeignMemoryFlags::all()] {
            events.push(Event::MemoryAllocated {
                memory,
                memory_type: 0,
                size: u64::MAX,
                flags,
                resource: None,
            });
            events.push(Event::MemoryAllocated { memory, memory_type: 99, size: 1, flags, resource: None });
            events.push(Event::BufferCreated { resource, size: u64::MAX, usage: u64::MAX, flags: 0 });
            events.push(Event::Bound { resource, plane: Some(u32::MAX), memory, offset: u64::MAX });
            events.push(Event::Bound { resource, plane: None, memory, offset: 7 });
            events.push(Event::Budget { heap: 99, budget: u64::MAX, usage: 0 });
        }
    }
    events.push(Event::DeviceDestroyed);
    let header = foreign_program().header;
    for end in 0..events.len() {
        let records = events[..end].iter().map(|event| Record { event: event.clone(), ..Record::default() });
        let history = History::of_foreign(&header, records);
        assert!(history.to_html().contains("</html>"));
    }
}

#[test]
fn what_is_left_out_stays_in_the_sums() {
    let trace = recording("level");
    let history = with_allocator(|allocator| History::replayed(&trace, allocator));
    let whole = serde_json::to_value(history.data()).unwrap();
    assert!(whole["left_out"].is_null());
    let few = serde_json::to_value(history.data_of(40)).unwrap();
    assert_eq!(few["placed"]["number"].as_array().unwrap().len(), 40);
    assert_eq!(few["left_out"]["placed"], history.placed.len() - 40);
    let calls = |data: &serde_json::Value| -> Vec<u64> {
        let differences: Vec<u64> = serde_json::from_value(data["moments"]["call"].clone()).unwrap();
        differences
            .into_iter()
            .scan(0, |sum, it| {
                *sum += it;
                Some(*sum)
            })
            .collect()
    };
    let (all, kept) = (calls(&whole), calls(&few));
    assert!(kept.len() < all.len());
    let mut most = 0;
    for (at, call) in kept.iter().enumerate().step_by(3) {
        let same = all.iter().position(|it| it == call).unwrap();
        for heap in 0..whole["heaps"].as_array().unwrap().len() {
            let [heap, at, same] = [heap, at, same].map(|it| u64::try_from(it).unwrap());
            let sum = used(&whole, heap, same);
            assert_eq!(used(&few, heap, at), sum, "heap {heap} after {call} calls");
            most = most.max(sum);
        }
    }
    assert!(most > 1 << 20);
}

/// A program may allocate memory again and again without a resource in it, and name everything differently.
#[test]
fn memory_and_texts_are_left_out_too() {
    let mut game = watched::Watched::on("nvidia-rtx-5070-ti");
    for number in 0..300_u64 {
        let memory = game.allocate(0, 1 << 20);
        if number % 2 == 0 {
            let buffer = game.buffer(4096, ash::vk::BufferUsageFlags::VERTEX_BUFFER);
            game.bind(buffer, memory, 0);
            game.name(buffer, &format!("thing {number}"));
            // Later ones live longer.
            (0..number).for_each(|_| game.event(Event::Submitted { command_buffers: 1 }));
        }
        game.free(memory);
    }
    let history = History::of_foreign(&game.trace.header, &game.trace.records);
    let few = serde_json::to_value(history.data_of(20)).unwrap();
    let length = |part: &str, column: &str| few[part][column].as_array().unwrap().len();
    assert_eq!((length("placed", "number"), length("memories", "size")), (20, 40));
    let named = |at: u64| few["texts"][usize::try_from(at - 1).unwrap()].as_str().unwrap();
    let names = few["placed"]["name"].as_array().unwrap().iter().map(|it| named(it.as_u64().unwrap()));
    let expected: Vec<_> = (0..20).map(|at| format!("thing {}", 260 + 2 * at)).collect();
    assert_eq!(names.collect::<Vec<_>>(), expected);
    assert_eq!(few["texts"].as_array().unwrap().len(), 20);
    assert_eq!((&few["left_out"]["placed"], &few["left_out"]["memories"]), (&130.into(), &260.into()));
    let reserved = few["hidden"]["reserved"].as_array().unwrap();
    assert_eq!(reserved.iter().map(|it| it.as_u64().unwrap()).max(), Some(1 << 20));
}

#[test]
fn a_burst_has_many_more_allocations_than_other_frames() {
    let memory =
        HeldMemory { vector: 0, number: 0, name: 0, size: 1 << 20, dedicated: false, from: 0, to: NEVER };
    let mut history = History { memories: vec![memory], ..History::default() };
    let mut moment = 0;
    for frame in 0..20 {
        history.frames.push((moment, frame));
        let count = if frame == 7 || frame == 8 { 30 } else { 2 };
        for _ in 0..count {
            moment += 1;
            history.placed.push(HistoryPlacement {
                number: moment.into(),
                memory: 0,
                offset: 0,
                size: 100,
                kind: sublet::ResourceKind::Buffer,
                usage: 0,
                name: 0,
                note: 0,
                is_first: true,
                from: moment,
                to: NEVER,
            });
        }
        moment += 1;
    }
    history.moments = (0..=moment).map(|it| HistoryMoment { call: it.into(), time: it.into() }).collect();
    let bursts = history.bursts();
    // Two neighbours are one burst.
    let found: Vec<_> = bursts.iter().map(|it| (it.allocations, it.bytes)).collect();
    assert_eq!(found, [(60, 6000)]);
    assert_eq!((bursts[0].from, bursts[0].to), (history.frames[7].0 - 1, history.frames[9].0 - 1));
}

#[cfg(feature = "findings")]
#[test]
fn findings_come_from_the_pass_of_the_history() {
    let trace = foreign_program();
    let mut bytes = sublet::private::foreign_recording(&trace);
    let mut records = ForeignRecords::new(&bytes).unwrap();
    let (mut together, findings) = History::with_findings(&trace.header, records.by_ref());
    assert_eq!(findings, Findings::of(&trace));
    together.add_findings(&findings);
    let mut apart = History::of_foreign(&trace.header, &trace.records);
    apart.add_findings(&Findings::of(&trace));
    assert!(together.findings.as_ref().is_some_and(|found| !found.is_empty()));
    assert_eq!(together.to_json(), apart.to_json());
    // The damage is known afterwards.
    bytes[(1 << 16) + 32 + 100] = 0xFF;
    let mut records = ForeignRecords::new(&bytes).unwrap();
    let found = Findings::of_records(&mut records);
    assert_eq!(found.damaged_bytes, records.damaged_bytes());
    assert!(records.next().is_none() && records.damaged_bytes() > 0);
}
