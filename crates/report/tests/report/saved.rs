//! Saving and reading snapshots.

use serde_json::{Value, json};
use sublet::Algorithm;
use sublet_report::{FaultPosition, ReadSnapshotError, Snapshot, SnapshotFault};

use super::kit::{NASTY, PROFILES, Program, small};

#[test]
fn what_is_saved_is_read_again() {
    for profile in PROFILES {
        let program = Program::busy(profile, 300);
        let mut snapshot = program.snapshot();
        snapshot.title = Some(NASTY.concat().into());
        assert_eq!(Snapshot::from_json(&snapshot.to_json()).unwrap(), snapshot, "{profile}");
        program.finish();
    }
}

/// A new algorithm needs a word in `snapshot/text.rs`. `figures/fragmentation.rs` has to define whether defragmentation
/// can empty its blocks.
#[test]
fn each_algorithm_has_a_word() {
    let program = Program::busy(PROFILES[0], 10);
    let mut snapshot = program.snapshot();
    let words = Algorithm::ALL.iter().map(|&algorithm| {
        snapshot.vectors[0].algorithm = Some(algorithm);
        let text = snapshot.to_json();
        assert_eq!(Snapshot::from_json(&text).unwrap(), snapshot);
        let saved: Value = serde_json::from_str(&text).unwrap();
        saved["vectors"][0]["algorithm"].as_str().unwrap().to_owned()
    });
    assert_eq!(words.collect::<Vec<_>>(), ["Tlsf", "Linear", "Buddy"]);
    program.finish();
}

#[test]
fn a_snapshot_says_all_that_the_map_says() {
    for profile in PROFILES {
        let program = Program::busy(profile, 300);
        let (map, snapshot) = (program.allocator.memory_map(), program.snapshot());
        assert_eq!(map.allocations().count(), snapshot.allocations().count());
        for (entry, found) in map.allocations().zip(snapshot.allocations()) {
            assert_eq!(found.entry.id.as_deref(), Some(entry.id.to_string().as_str()));
            assert_eq!((found.entry.kind, found.entry.usage), (entry.kind, u64::from(entry.usage)));
            assert_eq!((&found.entry.name, found.entry.user_data), (&entry.name, entry.user_data));
            let caller = entry.caller.unwrap();
            let text = format!("{}:{}", caller.file(), caller.line());
            assert_eq!(found.entry.caller.as_deref(), Some(text.as_str()));
        }
        assert_eq!(snapshot.vectors.len(), map.vectors.len());
        for (vector, expected) in snapshot.vectors.iter().zip(&map.vectors) {
            assert_eq!((vector.memory_type, vector.heap), (expected.memory_type_index, expected.heap_index));
            assert_eq!((vector.pool, &vector.name), (expected.pool, &expected.pool_name));
            assert_eq!(
                (vector.algorithm, vector.block_size),
                (Some(expected.algorithm), expected.block_size)
            );
            assert_eq!(vector.statistics(), expected.statistics());
            assert_eq!(vector.blocks.len(), expected.blocks.len());
            for (block, expected) in vector.blocks.iter().zip(&expected.blocks) {
                assert_eq!(
                    (block.id, block.size, block.map_count),
                    (expected.id, expected.size, expected.map_count)
                );
            }
            for (dedicated, expected) in vector.dedicated.iter().zip(&expected.dedicated) {
                assert_eq!((dedicated.size, dedicated.map_count), (expected.size, Some(expected.map_count)));
            }
        }
        assert_eq!(snapshot.statistics(), program.allocator.calculate_statistics());
        let budgets = program.allocator.heap_budgets();
        for (heap, budget) in snapshot.heaps.iter().zip(&budgets) {
            assert_eq!((heap.budget, heap.usage), (budget.budget, budget.usage));
        }
        program.finish();
    }
}

#[test]
fn an_allocation_is_found_by_its_id() {
    let program = Program::busy("lavapipe", 100);
    let snapshot = program.snapshot();
    for (_, memory) in &program.buffers {
        let id = memory.id().to_string();
        let found: Vec<_> =
            snapshot.allocations().filter(|found| found.entry.id.as_deref() == Some(&id)).collect();
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].block.is_none(), memory.is_dedicated());
        if !memory.is_dedicated() {
            assert_eq!(found[0].offset, memory.offset());
        }
    }
    program.finish();
}

#[test]
fn snapshots_of_one_run_say_so() {
    let program = Program::busy("lavapipe", 10);
    let (one, other) = (program.snapshot(), program.snapshot());
    assert!(one.run.is_some() && one.run == other.run);
    program.finish();
}

#[test]
fn members_that_come_later_are_left_out() {
    let mut map = small();
    let plain = Snapshot::from_json(&map.to_string()).unwrap();
    map["vectors"][0]["blocks"][0]["chunks"][0]["allocation"]["later"] = json!({ "a": [1, null] });
    map["later"] = json!(7);
    assert_eq!(Snapshot::from_json(&map.to_string()).unwrap(), plain);
}

#[test]
fn what_is_not_said_is_none() {
    let read = Snapshot::from_json(&small().to_string()).unwrap();
    let first = read.allocations().next().unwrap().entry;
    assert_eq!((first.user_data, first.caller.as_deref(), read.run.as_deref()), (None, None, None));
    assert_eq!(read.device.name, None);
    let mut map = small();
    map["vectors"][0].as_object_mut().unwrap().remove("algorithm");
    assert_eq!(Snapshot::from_json(&map.to_string()).unwrap().vectors[0].algorithm, None);
}

/// Returns the fault that an edit of the small map causes, and its position.
fn fault(edit: impl FnOnce(&mut Value)) -> (SnapshotFault, FaultPosition) {
    let mut map = small();
    edit(&mut map);
    match Snapshot::from_json(&map.to_string()) {
        Err(ReadSnapshotError::Contradiction { fault, place }) => (fault, place),
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_cannot_be_is_refused_with_its_place() {
    let (found, place) = fault(|map| map["types"][1]["heap"] = json!(2));
    assert_eq!(found, SnapshotFault::NoSuchHeap { heap: 2, heaps: 2 });
    assert_eq!((place, place.to_string().as_str()), (FaultPosition::default(), "memory map"));
    assert_eq!(found.to_string(), "heap 2 is named, and there are 2");
    let (found, place) = fault(|map| map["vectors"][1]["memory_type"] = json!(9));
    assert_eq!((found, place.vector), (SnapshotFault::NoSuchType { memory_type: 9, types: 2 }, Some(1)));
    let (found, _) = fault(|map| map["vectors"][1]["heap"] = json!(0));
    assert_eq!(found, SnapshotFault::HeapOfAnotherType { heap: 0, of_type: 1 });
    let (found, place) = fault(|map| map["vectors"][0]["blocks"][0]["chunks"][1]["offset"] = json!(15));
    assert_eq!(found, SnapshotFault::Overlap { end_of_previous: 16 });
    assert_eq!((place.vector, place.block, place.offset), (Some(0), Some(3), Some(15)));
    let (found, _) = fault(|map| map["vectors"][0]["blocks"][0]["chunks"][1]["size"] = json!(49));
    assert_eq!(found, SnapshotFault::BeyondBlock { size: 49, block_size: 64 });
    let (found, _) = fault(|map| map["vectors"][0]["blocks"][0]["chunks"][1]["size"] = json!(u64::MAX));
    assert_eq!(found, SnapshotFault::BeyondBlock { size: u64::MAX, block_size: 64 }, "no overflow");
    let (found, place) = fault(|map| map["vectors"][0]["dedicated"][0]["size"] = json!(u64::MAX));
    assert_eq!((found, place.vector), (SnapshotFault::TooLarge, Some(0)));
    let (found, _) = fault(|map| map["vectors"][1]["blocks"][0]["size"] = json!(u64::MAX));
    assert_eq!(found, SnapshotFault::TooLarge, "over vectors, too");
    let (found, place) = fault(|map| {
        let vector = map["vectors"][0].clone();
        map["vectors"].as_array_mut().unwrap().push(vector);
    });
    assert_eq!((found, place.vector), (SnapshotFault::VectorTwice, Some(2)));
    let (found, _) = fault(|map| {
        let block = map["vectors"][0]["blocks"][0].clone();
        map["vectors"][0]["blocks"].as_array_mut().unwrap().push(block);
    });
    assert_eq!(found, SnapshotFault::BlockTwice);
    let (found, place) = fault(|map| map["vectors"][0]["dedicated"][0]["allocation"]["id"] = json!("1"));
    assert_eq!((found, place.block), (SnapshotFault::AllocationTwice, None));
    let (found, _) = fault(|map| map["heaps"] = json!(vec![map["heaps"][0].clone(); 17]));
    assert_eq!(found, SnapshotFault::TooManyHeaps { heaps: 17 });
    let (found, _) = fault(|map| map["types"] = json!(vec![map["types"][0].clone(); 33]));
    assert_eq!(found, SnapshotFault::TooManyTypes { types: 33 });
    let error = Snapshot::from_json(&{
        let mut map = small();
        map["vectors"][0]["blocks"][0]["chunks"][1]["offset"] = json!(15);
        map.to_string()
    });
    let expected = "vector 0, block 3, chunk at 15: the chunk before it ends at 16";
    assert_eq!(error.unwrap_err().to_string(), expected);
}

#[test]
fn what_is_no_json_says_where() {
    let text = serde_json::to_string_pretty(&small()).unwrap();
    let (line, _) = text.lines().enumerate().find(|(_, line)| line.contains("IMAGE_OPTIMAL")).unwrap();
    for (wrong, why) in [("IMAGE_SQUARE", "a kind of resource"), ("IMAGE_\u{e9}", "a kind of resource")] {
        let error = Snapshot::from_json(&text.replace("IMAGE_OPTIMAL", wrong)).unwrap_err();
        let ReadSnapshotError::Json { line: found, column, source } = &error else { panic!("{error:?}") };
        assert!(*found == line + 1 && *column > 0, "{error}");
        assert!(source.to_string().contains(why), "{source}");
        assert!(error.to_string().contains(why), "{error}");
    }
    // A truncated text is not JSON.
    for end in (0..text.len()).step_by(7).filter(|&end| text.is_char_boundary(end)) {
        assert!(matches!(Snapshot::from_json(&text[..end]), Err(ReadSnapshotError::Json { .. })), "{end}");
    }
    for absurd in ["", "{", "nul", "\u{0}", "[[[[", &"[".repeat(100_000), &"{\"a\":".repeat(100_000)] {
        assert!(matches!(Snapshot::from_json(absurd), Err(ReadSnapshotError::Json { .. })));
    }
    for absurd in ["1e400", "-1", "18446744073709551616", "1.5", "\"64\"", "null", "[]"] {
        let edited =
            serde_json::to_string(&small()).unwrap().replace("\"size\":16", &format!("\"size\":{absurd}"));
        assert!(matches!(Snapshot::from_json(&edited), Err(ReadSnapshotError::Json { .. })), "{absurd}");
    }
}

#[test]
fn what_is_something_else_is_told_apart() {
    assert!(matches!(Snapshot::from_json("{}"), Err(ReadSnapshotError::NotASnapshot)));
    let other = r#"{ "format": "sublet-trace", "version": 1 }"#;
    assert!(matches!(Snapshot::from_json(other), Err(ReadSnapshotError::NotASnapshot)));
    let mut map = small();
    map["version"] = json!(2);
    let found = Snapshot::from_json(&map.to_string());
    assert!(matches!(found, Err(ReadSnapshotError::Version { found: Some(2), known: 1 })), "{found:?}");
    map.as_object_mut().unwrap().remove("version");
    let found = Snapshot::from_json(&map.to_string());
    assert!(matches!(found, Err(ReadSnapshotError::Version { found: None, .. })), "{found:?}");
}

#[test]
fn a_snapshot_may_be_part_of_something_larger() {
    let program = Program::busy("lavapipe", 30);
    let both = vec![program.snapshot(), program.snapshot()];
    let text = serde_json::to_string(&both).unwrap();
    assert_eq!(serde_json::from_str::<Vec<Snapshot>>(&text).unwrap(), both);
    let broken = text.replacen("\"heap\":0", "\"heap\":5", 1);
    let error = serde_json::from_str::<Vec<Snapshot>>(&broken).unwrap_err();
    assert!(error.to_string().contains("heap 5"), "{error}");
    program.finish();
}
