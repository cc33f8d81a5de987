//! Written traces are read back unchanged.
use std::time::Duration;

use ash::vk;

use super::*;
use crate::allocation::ResourceKind;
use crate::create_info::{
    AllocationCreateFlags, AllocatorCreateFlags, BlockSizes, MemoryUsage, PoolCreateFlags,
};
use crate::defragment::DefragmentationAlgorithm;
use crate::engine::Algorithm;
use crate::record::chunk::{ChunkHeader, ChunkKind, MAGIC, TimePoint};
use crate::record::encode::{Operation, THREAD};

/// A header without default values.
fn header() -> Header {
    Header {
        library_version: "1.2.3".into(),
        program: "game".into(),
        process: 77,
        started: 1_790_000_000,
        device_name: "Simulated GPU".into(),
        vendor_id: 0x10DE,
        device_id: 0x2684,
        device_type: vk::PhysicalDeviceType::DISCRETE_GPU,
        driver_version: 5,
        device_api_version: vk::API_VERSION_1_3,
        heaps: vec![
            TraceHeap { size: 8 << 30, flags: vk::MemoryHeapFlags::DEVICE_LOCAL },
            TraceHeap::default(),
        ],
        memory_types: vec![TraceMemoryType { heap: 1, flags: vk::MemoryPropertyFlags::HOST_VISIBLE }],
        buffer_image_granularity: 1024,
        non_coherent_atom_size: 64,
        max_memory_allocation_count: 4096,
        api_version: vk::API_VERSION_1_1,
        flags: AllocatorCreateFlags::EXT_MEMORY_BUDGET,
        preferred_large_heap_block_size: 64 << 20,
        heap_size_limits: vec![1 << 30, u64::MAX],
        empty_blocks_kept: 2,
        tracking: 3,
        margin: 16,
        always_dedicated: true,
        min_buffer_image_granularity: 4096,
        exceed_max_allocation_count: true,
        block_sizes: vec![BlockSizes { first: 4 << 20, largest: 64 << 20 }],
    }
}

/// One of every event, without default values if possible.
fn events() -> Vec<Event> {
    let (allocation, second) = (AllocationNumber(0), AllocationNumber(1));
    let (pool, scope) = (PoolNumber(0), ScopeNumber(0));
    let defragmentation = DefragmentationNumber(0);
    let needs = Needs {
        size: 65_537,
        alignment: 256,
        memory_type_bits: 0b1011,
        prefers_dedicated: true,
        requires_dedicated: true,
        kind: ResourceKind::ImageOptimal,
        usage: 0x7F_FFFF,
        device_access: Some(true),
        device_address: true,
    };
    let wanted = Wanted {
        flags: AllocationCreateFlags::MAPPED | AllocationCreateFlags::STRATEGY_MIN_TIME,
        usage: MemoryUsage::AutoPreferHost,
        required_flags: vk::MemoryPropertyFlags::HOST_COHERENT,
        preferred_flags: vk::MemoryPropertyFlags::HOST_CACHED,
        memory_type_bits: 7,
        pool: Some(pool),
        scope: None,
        priority: 0.75,
        min_alignment: 64,
        user_data: u64::MAX,
        name: Some("shadow atlas".into()),
        has_chain: true,
    };
    let existing = Existing {
        memory_type: 2,
        dedicated: true,
        size: 1 << 40,
        alignment: 16,
        kind: ResourceKind::Buffer,
        usage: 0x82,
        scope: Some(scope),
        user_data: Some(0),
        name: Some("old".into()),
        ..Existing::new(allocation)
    };
    let pool_settings = PoolSettings {
        memory_type_index: 1,
        flags: PoolCreateFlags::IGNORE_BUFFER_IMAGE_GRANULARITY,
        algorithm: Algorithm::Linear,
        block_size: 1 << 20,
        min_block_count: 1,
        max_block_count: 3,
        empty_blocks_kept: 2,
        priority: 1.0,
        min_allocation_alignment: 128,
        name: Some("ring".into()),
        memory_allocate_next: true,
    };
    let begin = BeginDefragmentation {
        algorithm: DefragmentationAlgorithm::Full,
        pools: vec![pool],
        memory_type_bits: 5,
        max_bytes_per_pass: 1 << 33,
        max_allocations_per_pass: 9,
        max_time_per_pass: Some(Duration::from_micros(100)),
        ..BeginDefragmentation::new(defragmentation)
    };
    let settings = ScopeSettings { block_size: 1 << 16, priority: 0.25, name: Some("level 1".into()) };
    let in_scope = Wanted { pool: None, scope: Some(scope), ..wanted.clone() };
    let odd = Needs { size: 0, alignment: 48, ..needs };
    let third = AllocationNumber(2);
    vec![
        Event::CreatePool { pool, settings: Box::new(pool_settings) },
        Event::CreateScope { scope, settings: Box::new(settings) },
        Event::Existing(Box::new(existing)),
        Event::Allocate(Box::new(Allocate {
            allocation: second,
            resource: needs,
            wanted,
            granted: GrantedMemory { memory_type: 1, dedicated: true },
        })),
        Event::Allocate(Box::new(Allocate {
            allocation: third,
            resource: Needs::default(),
            wanted: Wanted::default(),
            granted: GrantedMemory::default(),
        })),
        Event::AllocateFailed(Box::new(AllocateFailed {
            resource: odd,
            wanted: in_scope,
            failure: Failure::Alignment,
        })),
        Event::Map { allocation: second },
        Event::Flush { allocation: second, offset: 3, size: vk::WHOLE_SIZE },
        Event::Invalidate { allocation: second, offset: 0, size: 0 },
        Event::CopyTo { allocation: second, offset: 1 << 33, size: 1 << 34 },
        Event::CopyFrom { allocation: second, offset: 1, size: 2 },
        Event::Unmap { allocation: second },
        Event::SetName { allocation, name: None },
        Event::SetName { allocation, name: Some("".into()) },
        Event::SetUserData { allocation, user_data: 42 },
        Event::SetPriority { allocation, priority: 0.125 },
        Event::SetPoolName { pool, name: Some("é".into()) },
        Event::SetPoolPriority { pool, priority: 0.0 },
        Event::SetPoolEmptyBlocksKept { pool, empty_blocks_kept: u32::MAX },
        Event::SettleInPool { pool },
        Event::ReserveInPool { pool, bytes: 1 << 40 },
        Event::Frame { index: u32::MAX },
        Event::Trim,
        Event::SetEmptyBlocksKept { empty_blocks_kept: 0 },
        Event::SettleInMemoryType { memory_type: 31 },
        Event::Reserve { memory_type: 31, bytes: 1 << 35 },
        Event::Maintain { max_allocations: 1, max_frees: u32::MAX },
        Event::BeginDefragmentation(Box::new(begin)),
        Event::BeginPass { defragmentation, moves: 3 },
        Event::Move { defragmentation, allocation: second, outcome: MoveOutcome::Completed },
        Event::Move { defragmentation, allocation: second, outcome: MoveOutcome::Ignored },
        Event::Move { defragmentation, allocation: second, outcome: MoveOutcome::RolledBack },
        Event::Move { defragmentation, allocation: second, outcome: MoveOutcome::Freed },
        Event::EndPass { defragmentation },
        Event::EndDefragmentation { defragmentation },
        Event::Free { allocation: third },
        Event::FreeScope { scope },
        Event::DestroyPool { pool },
    ]
}

fn trace() -> Trace {
    let records = (0_u32..).zip(events()).map(|(at, event)| Record {
        time: Duration::from_nanos(u64::from(at) * 1_000_003),
        thread: at / 4 % 3,
        event,
    });
    Trace { header: header(), records: records.collect(), unknown_events: 0 }
}

#[test]
fn every_event_is_read_as_it_was_written() {
    let trace = trace();
    let read = Trace::read(&trace.to_bytes()).unwrap();
    assert_eq!(read.header, trace.header);
    for (read, written) in read.records.iter().zip(&trace.records) {
        assert_eq!(read, written);
    }
    assert_eq!(read, trace);
}

/// Fails if `events` lacks an operation.
#[test]
fn every_operation_has_an_event_and_a_row_in_the_documentation() {
    let (events, rows) = (events(), include_str!("mod.rs"));
    for operation in Operation::ALL {
        assert!(events.iter().any(|event| event.operation() == *operation), "{operation:?}");
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

#[test]
fn a_trace_of_many_chunks_is_read_as_it_was_written() {
    let mut trace = trace();
    let frame = |index: u32| Record {
        time: Duration::from_secs(3600 + u64::from(index)),
        thread: index % 5,
        event: Event::Frame { index },
    };
    trace.records.extend((0..100_000).map(frame));
    let bytes = trace.to_bytes();
    assert!(bytes.windows(4).filter(|bytes| bytes == b"CALL").count() > 5);
    assert_eq!(Trace::read(&bytes).unwrap(), trace);
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
    assert_eq!(trace.to_bytes(), documented());
}

#[test]
fn failures_have_numbers_that_come_back() {
    for number in 0..19 {
        assert_eq!(Failure::of_number(number).number(), number);
    }
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

/// Calls for objects that were never created are not events.
#[test]
fn unknown_events_are_counted() {
    let allocation = AllocationNumber(9);
    let record = |event| Record { event, ..Record::default() };
    let of_unknown_events = vec![
        record(Event::Free { allocation }),
        record(Event::SetName { allocation, name: Some("x".into()) }),
        record(Event::DestroyPool { pool: PoolNumber(3) }),
        record(Event::FreeScope { scope: ScopeNumber(3) }),
        record(Event::EndPass { defragmentation: DefragmentationNumber(0) }),
    ];
    let trace = Trace { records: of_unknown_events, ..Trace::default() };
    let read = Trace::read(&trace.to_bytes()).unwrap();
    assert_eq!((read.records.len(), read.unknown_events), (0, 5));
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
