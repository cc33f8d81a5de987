//! Files for trace viewers.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::Value;
use sublet::ResourceKind;
use sublet::trace::{
    Allocate, AllocateFailed, AllocationNumber, BeginDefragmentation, DefragmentationNumber, Event, Existing,
    Failure, GrantedMemory, Header, MoveOutcome, Needs, PoolNumber, PoolSettings, Record, ScopeNumber,
    ScopeSettings, Trace, TraceMemoryType, Wanted,
};
use sublet_report::{Snapshot, perfetto};

use super::kit::{NASTY, PROFILES, Program};

/// Parses a file and checks that it has the Trace Event Format.
fn events(text: &str) -> Vec<Value> {
    let file: Value = serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}"));
    assert!(["ms", "ns"].contains(&file["displayTimeUnit"].as_str().unwrap()));
    assert!(file["otherData"].is_object());
    let mut open = BTreeMap::new();
    let all = file["traceEvents"].as_array().unwrap();
    for event in all {
        assert!(event["name"].is_string() && event["cat"].is_string(), "{event}");
        assert!(event["pid"].is_u64() && event["tid"].is_u64(), "{event}");
        assert!(event["ts"].as_f64().unwrap() >= 0.0, "{event}");
        assert!(event["args"].is_object(), "{event}");
        let id = || (event["cat"].to_string(), event["id"].as_str().unwrap().to_owned());
        match event["ph"].as_str().unwrap() {
            "X" => assert!(event["dur"].is_number(), "{event}"),
            "C" => assert!(event["args"].as_object().unwrap().values().all(Value::is_number), "{event}"),
            "i" => assert!(["g", "p", "t"].contains(&event["s"].as_str().unwrap()), "{event}"),
            "b" => {
                let begun = (event["ts"].as_f64().unwrap(), event["name"].clone(), event["pid"].clone());
                assert!(open.insert(id(), begun).is_none(), "{event} is open already");
            }
            "e" => {
                let (ts, name, pid) = open.remove(&id()).unwrap_or_else(|| panic!("{event} was not begun"));
                assert!(event["ts"].as_f64().unwrap() >= ts, "{event}");
                assert_eq!((&event["name"], &event["pid"]), (&name, &pid));
            }
            "M" => match event["name"].as_str().unwrap() {
                "process_name" | "thread_name" => assert!(event["args"]["name"].is_string()),
                "process_sort_index" => assert!(event["args"]["sort_index"].is_number()),
                other => panic!("{other}"),
            },
            other => panic!("phase {other}"),
        }
    }
    assert!(open.is_empty(), "{open:?}");
    all.clone()
}

fn of_phase<'a>(events: &'a [Value], phase: &'a str) -> impl Iterator<Item = &'a Value> {
    events.iter().filter(move |event| event["ph"] == phase)
}

#[test]
fn each_chunk_in_use_is_a_slice_of_its_block() {
    for profile in PROFILES {
        let program = Program::busy(profile, 200);
        let snapshot = program.snapshot();
        let events = events(&perfetto(&snapshot));
        let slices: Vec<_> = of_phase(&events, "X").collect();
        assert_eq!(slices.len(), snapshot.allocations().count(), "{profile}");
        for (slice, found) in slices.iter().zip(snapshot.allocations()) {
            assert_eq!((&slice["ts"], &slice["dur"]), (&found.offset.into(), &found.size.into()));
            assert_eq!(slice["args"]["kind"], found.entry.kind.to_string());
            assert_eq!(slice["args"]["id"].as_str(), found.entry.id.as_deref());
            assert_eq!(slice["args"]["name"].as_str(), found.entry.name.as_deref(), "the name itself");
        }
        // Each block and each dedicated allocation has a track, and slices on a track do not overlap.
        let mut tracks = BTreeMap::new();
        for slice in &slices {
            let track = (slice["pid"].as_u64(), slice["tid"].as_u64());
            let end = tracks.entry(track).or_insert(0);
            assert!(slice["ts"].as_u64().unwrap() >= *end, "{slice}");
            *end = slice["ts"].as_u64().unwrap() + slice["dur"].as_u64().unwrap();
        }
        let named = of_phase(&events, "M").filter(|event| event["name"] == "thread_name").count();
        let blocks: usize =
            snapshot.vectors.iter().map(|vector| vector.blocks.len() + vector.dedicated.len()).sum();
        assert_eq!(named, blocks);
        program.finish();
    }
}

#[test]
fn heaps_are_counters() {
    let program = Program::busy("nvidia-gtx-1060", 100);
    let snapshot = program.snapshot();
    let events = events(&perfetto(&snapshot));
    for (heap, number) in snapshot.heaps.iter().zip(0..) {
        for (what, bytes) in [("budget", heap.budget), ("usage", heap.usage), ("size", heap.size)] {
            let values: Vec<_> = of_phase(&events, "C")
                .filter(|event| {
                    let name = event["name"].as_str().unwrap();
                    name.starts_with(&format!("heap {number}")) && name.ends_with(what)
                })
                .map(|event| event["args"]["bytes"].as_u64().unwrap())
                .collect();
            assert_eq!(values, [bytes, bytes], "at both ends");
        }
    }
    program.finish();
}

#[test]
fn snapshots_of_vma_and_of_nothing_are_shown_too() {
    let snapshot = Snapshot::from_json(include_str!("vma-3.3.json")).unwrap();
    let shown = events(&perfetto(&snapshot));
    assert_eq!(of_phase(&shown, "X").count(), snapshot.allocations().count());
    events(&perfetto(&Snapshot::default()));
}

/// Writes a recording record by record, a microsecond and a half apart.
#[derive(Default)]
struct Recording {
    trace: Trace,
    now: Duration,
}

impl Recording {
    fn new() -> Self {
        let mut header = Header::default();
        header.program = NASTY[2].into();
        header.memory_types =
            [0, 0, 1].map(|heap| TraceMemoryType { heap, ..TraceMemoryType::default() }).to_vec();
        Self { trace: Trace { header, ..Trace::default() }, now: Duration::ZERO }
    }

    fn on(&mut self, thread: u32, event: Event) {
        self.trace.records.push(Record { time: self.now, thread, event });
        self.now += Duration::from_nanos(1500);
    }

    fn add(&mut self, event: Event) {
        self.on(0, event);
    }

    fn allocate(&mut self, number: u32, size: u64, memory_type: u32, edit: impl FnOnce(&mut Wanted)) {
        let mut wanted = Wanted::default();
        edit(&mut wanted);
        self.add(Event::Allocate(Box::new(Allocate {
            allocation: AllocationNumber(number),
            resource: Needs { size, kind: ResourceKind::Buffer, ..Needs::default() },
            wanted,
            granted: GrantedMemory { memory_type, dedicated: false },
        })));
    }

    fn free(&mut self, number: u32) {
        self.add(Event::Free { allocation: AllocationNumber(number) });
    }

    fn events(&self) -> Vec<Value> {
        events(&sublet_report::recording_to_perfetto(&self.trace))
    }
}

/// Returns the values of a counter, with their times in microseconds.
fn counter(events: &[Value], name: &str) -> Vec<(f64, u64)> {
    of_phase(events, "C")
        .filter(|event| event["name"] == name)
        .map(|event| (event["ts"].as_f64().unwrap(), event["args"]["bytes"].as_u64().unwrap()))
        .collect()
}

#[test]
fn bytes_are_counted_by_heap_type_and_pool_over_time() {
    let mut recording = Recording::new();
    let pool = PoolNumber(0);
    let settings =
        PoolSettings { memory_type_index: 2, name: Some("ring".into()), ..PoolSettings::default() };
    recording.add(Event::CreatePool { pool, settings: Box::new(settings) });
    recording.allocate(0, 100, 0, |_| {});
    recording.allocate(1, 50, 1, |_| {});
    recording.allocate(2, 7, 2, |wanted| wanted.pool = Some(pool));
    recording.free(0);
    recording.free(2);
    let events = recording.events();
    assert_eq!(counter(&events, "heap 0"), [(1.5, 100), (3.0, 150), (6.0, 50)]);
    assert_eq!(counter(&events, "memory type 0"), [(1.5, 100), (6.0, 0)]);
    assert_eq!(counter(&events, "memory type 1"), [(3.0, 50)]);
    assert_eq!(counter(&events, "heap 1"), [(4.5, 7), (7.5, 0)]);
    assert_eq!(counter(&events, "pool 0 \u{201c}ring\u{201d}"), [(4.5, 7), (7.5, 0)]);
    assert_eq!(counter(&events, "all"), [(1.5, 100), (3.0, 150), (4.5, 157), (6.0, 57), (7.5, 50)]);
}

#[test]
fn a_counter_has_one_value_for_one_moment() {
    let mut recording = Recording::new();
    for number in 0..10 {
        recording.now = Duration::from_micros(5);
        recording.allocate(number, 10, 0, |_| {});
    }
    assert_eq!(counter(&recording.events(), "all"), [(5.0, 100)]);
}

#[test]
fn an_allocation_is_a_slice_from_its_making_to_its_end() {
    let mut recording = Recording::new();
    let (pool, scope) = (PoolNumber(3), ScopeNumber(4));
    recording.add(Event::CreatePool { pool, settings: Box::default() });
    recording.add(Event::CreateScope { scope, settings: Box::<ScopeSettings>::default() });
    let existing =
        Existing { name: Some("from before".into()), size: 5, ..Existing::new(AllocationNumber(0)) };
    recording.add(Event::Existing(Box::new(existing)));
    recording.allocate(1, 10, 0, |wanted| wanted.name = Some("freed".into()));
    recording.allocate(2, 10, 0, |wanted| wanted.pool = Some(pool));
    recording.allocate(3, 10, 0, |wanted| wanted.scope = Some(scope));
    recording.allocate(4, 10, 0, |wanted| wanted.name = Some("never freed".into()));
    recording.allocate(5, 10, 0, |wanted| wanted.name = Some("freed by a move".into()));
    recording.add(Event::SetName { allocation: AllocationNumber(2), name: Some("named later".into()) });
    recording.free(1);
    recording.add(Event::DestroyPool { pool });
    recording.add(Event::FreeScope { scope });
    let defragmentation = DefragmentationNumber(0);
    recording.add(Event::BeginDefragmentation(Box::new(BeginDefragmentation::new(defragmentation))));
    let outcome = MoveOutcome::Freed;
    recording.add(Event::Move { defragmentation, allocation: AllocationNumber(5), outcome });
    let moved =
        Event::Move { defragmentation, allocation: AllocationNumber(4), outcome: MoveOutcome::Completed };
    recording.add(moved);
    recording.add(Event::EndDefragmentation { defragmentation });
    recording.free(0);
    recording.add(Event::Frame { index: 9 });
    let events = recording.events();
    let lives: BTreeMap<String, (f64, f64)> = of_phase(&events, "b")
        .map(|begin| {
            let is_end = |end: &&Value| end["id"] == begin["id"] && end["cat"] == begin["cat"];
            let end = of_phase(&events, "e").find(is_end).unwrap();
            let name = begin["name"].as_str().unwrap().to_owned();
            (name, (begin["ts"].as_f64().unwrap(), end["ts"].as_f64().unwrap()))
        })
        .collect();
    let at = |record: f64| record * 1.5;
    let expected = [
        ("BUFFER", (at(5.0), at(11.0))),
        ("defragmentation", (at(12.0), at(15.0))),
        ("freed", (at(3.0), at(9.0))),
        ("freed by a move", (at(7.0), at(13.0))),
        ("from before", (at(2.0), at(16.0))),
        ("named later", (at(4.0), at(10.0))),
        ("never freed", (at(6.0), at(17.0))),
    ];
    assert_eq!(lives, expected.map(|(name, life)| (name.to_owned(), life)).into());
}

#[test]
fn calls_stand_on_their_threads_and_frames_on_all() {
    let mut recording = Recording::new();
    recording.allocate(0, 10, 0, |_| {});
    recording.on(3, Event::Map { allocation: AllocationNumber(0) });
    recording.on(1, Event::Trim);
    recording.add(Event::Frame { index: 7 });
    let failed = AllocateFailed {
        resource: Needs { size: 77, ..Needs::default() },
        wanted: Wanted::default(),
        failure: Failure::Full,
    };
    recording.add(Event::AllocateFailed(Box::new(failed)));
    let events = recording.events();
    let calls: Vec<_> = of_phase(&events, "i")
        .map(|event| {
            (event["name"].as_str().unwrap(), event["tid"].as_u64().unwrap(), event["s"].as_str().unwrap())
        })
        .collect();
    let expected = [
        ("allocate", 1, "t"),
        ("map", 4, "t"),
        ("trim", 2, "t"),
        ("frame 7", 1, "g"),
        ("allocating 77 bytes failed: Full", 1, "p"),
    ];
    assert_eq!(calls, expected);
    let threads: BTreeSet<_> = of_phase(&events, "M")
        .filter(|event| event["name"] == "thread_name")
        .map(|event| event["args"]["name"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(threads, ["thread 0", "thread 1", "thread 3"].map(str::to_owned).into());
}

/// Invalid recordings are shown too: times that go back, repeated numbers, ends without a begin.
#[test]
fn what_cannot_be_is_shown_all_the_same() {
    let mut recording = Recording::new();
    recording.now = Duration::from_secs(1);
    recording.allocate(0, u64::MAX, u32::MAX, |_| {});
    recording.now = Duration::ZERO;
    recording.allocate(0, u64::MAX, 9, |wanted| wanted.pool = Some(PoolNumber(u32::MAX)));
    recording.free(0);
    recording.free(0);
    recording.free(17);
    recording.on(u32::MAX, Event::Trim);
    recording.now = Duration::MAX - Duration::from_secs(1);
    recording.add(Event::Frame { index: u32::MAX });
    let events = recording.events();
    assert_eq!(of_phase(&events, "b").count(), 2);
    let empty = events_of_nothing();
    assert!(of_phase(&empty, "b").next().is_none());
}

fn events_of_nothing() -> Vec<Value> {
    events(&sublet_report::recording_to_perfetto(&Trace::default()))
}

#[test]
fn nasty_names_stay_within_their_strings() {
    let mut recording = Recording::new();
    for (name, number) in NASTY.iter().zip(0..) {
        recording.allocate(number, 10, 0, |wanted| wanted.name = Some((*name).into()));
    }
    let text = sublet_report::recording_to_perfetto(&recording.trace);
    assert!(
        !text.contains('\u{202e}')
            || !text.contains("\"name\":\"right to left \u{202e}gnp.erutxet\",\"cat\"")
    );
    let events = events(&text);
    let names: Vec<_> = of_phase(&events, "b").map(|event| event["args"]["name"].as_str()).collect();
    for (name, shown) in NASTY.iter().zip(names).skip(1) {
        assert_eq!(shown, Some(*name), "the arguments have the name itself");
    }
}

/// A missing call is a new one. A timeline shows each call as an instant. If the call begins or ends something that a
/// timeline draws, `recording/ledger.rs` has to handle it.
#[test]
fn a_timeline_follows_or_passes_over_each_call_by_name() {
    let followed = [
        "existing",
        "allocate",
        "free",
        "move",
        "set name",
        "create pool",
        "destroy pool",
        "free scope",
        "begin defragmentation",
        "end defragmentation",
    ];
    let passed_over = [
        "allocate failed",
        "map",
        "unmap",
        "flush",
        "invalidate",
        "copy to",
        "copy from",
        "set user data",
        "set priority",
        "set pool name",
        "set pool priority",
        "set empty blocks kept of pool",
        "settle in pool",
        "create scope",
        "frame",
        "trim",
        "set empty blocks kept",
        "settle in memory type",
        "reserve",
        "reserve in pool",
        "maintain",
        "begin pass",
        "end pass",
    ];
    let known: BTreeSet<_> = followed.iter().chain(&passed_over).collect();
    assert_eq!(known, Event::NAMES.iter().collect());
}
