//! Traces are read as their format says.

use std::time::Duration;

use super::*;
use crate::allocation::ResourceKind;
use crate::create_info::MemoryUsage;
use crate::defragment::DefragmentationAlgorithm;
use crate::engine::Algorithm;
use crate::record::chunk::{ChunkHeader, ChunkKind, MAGIC, TimePoint};
use crate::record::encode::{Operation, THREAD};

#[test]
fn every_operation_has_a_row_in_the_documentation() {
    let rows = include_str!("mod.rs");
    for operation in Operation::ALL {
        assert_eq!(Operation::of_code(operation.code()), Some(*operation));
        let (code, word) = (operation.code(), operation.word());
        let row = |row: &str| {
            row.starts_with("//! | `")
                && [format!("`{code:02x}` {word}"), format!("`{code:02x}` [{word}]")]
                    .iter()
                    .any(|named| row.contains(named))
        };
        assert!(rows.lines().any(row), "`{code:02x}` {word}");
    }
}

/// The bytes in the documentation of the format.
fn documented() -> Vec<u8> {
    let text = include_str!("mod.rs");
    let (_, example) = text.split_once("## An example").unwrap();
    let (_, block) = example.split_once("```text").unwrap();
    let (block, _) = block.split_once("```").unwrap();
    let lines = block.lines().filter_map(|line| line.strip_prefix("//! ")?.split_once(';'));
    let bytes = lines.flat_map(|(bytes, _)| bytes.split_whitespace());
    bytes.map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect()
}

#[test]
fn the_example_of_the_documentation_is_what_it_says() {
    let allocation = AllocationNumber(0);
    let made = Allocate {
        allocation,
        resource: Needs {
            size: 4096,
            alignment: 256,
            memory_type_bits: 7,
            kind: ResourceKind::Buffer,
            ..Needs::default()
        },
        wanted: Wanted { usage: MemoryUsage::Auto, name: Some("mesh".into()), ..Wanted::default() },
        granted: GrantedMemory { memory_type: 1, dedicated: false },
    };
    let record = |micros, event| Record { time: Duration::from_micros(micros), thread: 0, event };
    let records = vec![record(1, Event::Allocate(Box::new(made))), record(3, Event::Free { allocation })];
    let trace = Trace { records, ..Trace::default() };
    assert_eq!(Trace::read(&documented()).unwrap(), trace);
}

#[test]
fn failures_have_their_numbers() {
    assert_eq!(Failure::of_number(19), Failure::Other);
    let error = crate::error::AllocationError::BlockTooSmall { size: 2, block_size: 1 };
    assert_eq!(Failure::from(&error), Failure::BlockTooSmall);
}

#[test]
fn names_are_where_their_numbers_say() {
    assert_eq!(Algorithm::ALL.map(Algorithm::number), [0, 1, 2]);
    assert_eq!(DefragmentationAlgorithm::ALL.map(DefragmentationAlgorithm::number), [0, 1, 2, 3]);
    let usages = MemoryUsage::ALL.iter().map(|usage| usage.number());
    assert!(usages.eq(0..10));
}

/// Builds a file with a head and these chunks of calls, each with its stated number of records.
fn file(chunks: &[(&[u8], u32)]) -> Vec<u8> {
    let mut head = Vec::new();
    Header::default().encode(&mut head);
    let mut file = MAGIC.to_vec();
    let mut chunk = |kind, number, records, payload: &[u8]| {
        let header = ChunkHeader { kind, number, records, point: TimePoint::default() };
        file.extend(header.to_bytes(payload));
        file.extend(payload);
    };
    chunk(ChunkKind::Head, 0, 0, &head);
    for (number, &(payload, records)) in (1..).zip(chunks) {
        chunk(ChunkKind::Calls, number, records, payload);
    }
    file
}

/// An allocation from before the recording, at the first place of the first vector.
const EXISTING: &[u8] = &[THREAD, 0, Operation::Existing.code(), 0, 4, 1, 0, 0, 16, 8, 1, 0, 0, 0, 0];
/// An allocation at the same place: the same allocation.
const AGAIN: &[u8] = &[THREAD, 0, Operation::Allocate.code(), 0, 0, 0, 0, 0, 16, 8, 1, 0, 4, 1, 0];

/// A chunk has a valid checksum but invalid content. None of it is used, including its corrections of earlier chunks.
#[test]
fn a_chunk_that_is_wrong_at_its_end_takes_nothing_back() {
    let unknown_event = [Operation::Free.code(), 0, 4, 99, 0];
    let with = |end: &[u8]| [AGAIN, &unknown_event, end].concat();
    let whole = Trace::read_prefix(&file(&[(EXISTING, 1), (&with(&[]), 2)])).unwrap();
    assert!(matches!(whole.end.unwrap().damage, Damage::NoEnd));
    assert!(matches!(whole.trace.records[..], [Record { event: Event::Allocate(_), .. }]));
    assert_eq!(whole.trace.unknown_events, 1);
    for (end, records) in [(&[0xEE, 0][..], 3), (&[], 3), (&[Operation::Free.code()][..], 3)] {
        let damaged = Trace::read_prefix(&file(&[(EXISTING, 1), (&with(end), records)])).unwrap();
        assert!(!matches!(damaged.end.unwrap().damage, Damage::NoEnd));
        assert!(matches!(damaged.trace.records[..], [Record { event: Event::Existing(_), .. }]));
        assert_eq!(damaged.trace.unknown_events, 0);
    }
}

#[test]
fn an_allocation_with_two_records_is_one() {
    let other = |key: u8| [Operation::Existing.code(), 0, 4, key, 0, 0, 16, 8, 1, 0, 0, 0, 0];
    let first = [EXISTING, &other(2)].concat();
    let second =
        [AGAIN, &[Operation::Free.code(), 0, 4, 2, 0], &[Operation::Free.code(), 0, 4, 1, 0]].concat();
    let trace = Trace::read_prefix(&file(&[(&first, 2), (&second, 3)])).unwrap().trace;
    let numbers: Vec<_> = trace.records.iter().map(|record| record.event.allocation().unwrap().0).collect();
    assert_eq!(numbers, [1, 0, 1, 0]);
    assert!(matches!(trace.records[1].event, Event::Allocate(_)));
}
