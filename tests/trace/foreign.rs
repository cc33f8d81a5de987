//! Recordings of foreign programs: merged from segments, and read up to any damage.

use std::collections::BTreeMap;
use std::time::Duration;

use ash::vk;
use proptest::prelude::*;
use sublet::private::foreign_recording;
use sublet::trace::{
    Damage, DriverMemoryAction, DriverMemoryReport, Event, ForeignImage, ForeignMemoryFlags, ForeignObject,
    ForeignProgram, ForeignRecords, ForeignRequirements, MemoryNumber, Record, ResourceNumber, SparseBinding,
    Trace,
};

const SEGMENT: usize = 1 << 16;
const MEMORY: MemoryNumber = MemoryNumber(1);
const RESOURCE: ResourceNumber = ResourceNumber(1);

/// One event of each kind, with values that need all bits.
fn every_event() -> Vec<Event> {
    let image = ForeignImage {
        format: vk::Format::G8_B8R8_2PLANE_420_UNORM,
        width: 1920,
        height: u32::MAX,
        depth: 1,
        mip_levels: 11,
        array_layers: 6,
        samples: 4,
        tiling: vk::ImageTiling::DRM_FORMAT_MODIFIER_EXT,
        usage: vk::ImageUsageFlags::SAMPLED,
        flags: vk::ImageCreateFlags::DISJOINT,
        image_type: vk::ImageType::TYPE_2D,
    };
    let requirements = ForeignRequirements {
        plane: Some(1),
        size: 4096,
        alignment: 256,
        memory_type_bits: 0x8000_0001,
        prefers_dedicated: true,
        requires_dedicated: false,
    };
    let binding =
        SparseBinding { resource_offset: 65536, size: 65536, memory: Some(MEMORY), memory_offset: 0 };
    let report = DriverMemoryReport {
        action: DriverMemoryAction::Unimported,
        object: u64::MAX,
        object_type: vk::ObjectType::SWAPCHAIN_KHR,
        size: 1,
        heap: 2,
    };
    let flags = ForeignMemoryFlags::DEDICATED | ForeignMemoryFlags::DEVICE_ADDRESS;
    vec![
        Event::MemoryAllocated {
            memory: MEMORY,
            memory_type: 3,
            size: u64::MAX,
            flags,
            resource: Some(RESOURCE),
        },
        Event::MemoryAllocationFailed {
            memory_type: 1,
            size: 9,
            result: vk::Result::ERROR_OUT_OF_DEVICE_MEMORY,
        },
        Event::MemoryMapped { memory: MEMORY, offset: 0, size: None },
        Event::MemoryFlushed { memory: MEMORY, offset: 64, size: Some(128) },
        Event::MemoryInvalidated { memory: MEMORY, offset: 0, size: Some(0) },
        Event::MemoryUnmapped { memory: MEMORY },
        Event::BufferCreated { resource: RESOURCE, size: 4096, usage: 1 << 40, flags: 8 },
        Event::ImageCreated { resource: ResourceNumber(2), image: Box::new(image) },
        Event::Requirements { resource: ResourceNumber(2), requirements: Box::new(requirements) },
        Event::Bound { resource: ResourceNumber(2), plane: Some(1), memory: MEMORY, offset: 0 },
        Event::Bound { resource: RESOURCE, plane: None, memory: MEMORY, offset: 8192 },
        Event::Named { object: ForeignObject::Memory(MEMORY), name: "heap".into() },
        Event::Named { object: ForeignObject::Resource(RESOURCE), name: "".into() },
        Event::SparseBound { resource: RESOURCE, binding: Box::new(binding) },
        Event::ResourceDestroyed { resource: RESOURCE },
        Event::MemoryFreed { memory: MEMORY },
        Event::Submitted { command_buffers: 3 },
        Event::Presented,
        Event::Budget { heap: 0, budget: 1 << 40, usage: 5 },
        Event::DriverMemory { report: Box::new(report) },
        Event::DeviceLost,
        Event::DeviceDestroyed,
    ]
}

fn trace(events: impl IntoIterator<Item = Event>) -> Trace {
    let records = (0..).zip(events).map(|(nanos, event)| Record {
        time: Duration::from_nanos(nanos * 1000),
        thread: 0,
        event,
    });
    Trace { records: records.collect(), ..Trace::default() }
}

#[test]
fn every_event_is_read_as_it_was_written() {
    let written = trace(every_event());
    assert!(written.is_foreign() && written.records.iter().all(|record| record.event.is_foreign()));
    let bytes = foreign_recording(&written);
    assert_eq!(Trace::read(&bytes).unwrap(), written);
    assert_eq!(bytes[7], 2);
}

/// Threads write into segments of their own, and the sequence numbers give one order.
#[test]
fn segments_are_merged_in_the_order_of_the_program() {
    let mut written = trace((0..40_000).map(|index| Event::Submitted { command_buffers: index }));
    let mut random = fastrand::Rng::with_seed(5);
    for record in &mut written.records {
        record.thread = random.u32(0..7);
    }
    // Readers count threads in the order of their first records.
    let mut order = Vec::new();
    for record in &mut written.records {
        if !order.contains(&record.thread) {
            order.push(record.thread);
        }
        let at = order.iter().position(|thread| *thread == record.thread).unwrap();
        record.thread = u32::try_from(at).unwrap();
    }
    let bytes = foreign_recording(&written);
    assert!(bytes.len() >= 8 * SEGMENT, "one for the head, and one for each thread");
    let read = Trace::read(&bytes).unwrap();
    assert!(read == written, "all {} records, in their order", written.records.len());
    let records = ForeignRecords::new(&bytes).unwrap();
    assert!(records.eq(written.records));
}

#[test]
fn unused_segments_are_skipped() {
    let written = trace(every_event());
    let mut bytes = foreign_recording(&written);
    let used = bytes.split_off(SEGMENT);
    bytes.extend(vec![0; SEGMENT]);
    bytes.extend(used);
    bytes.extend(vec![0; 3 * SEGMENT]);
    assert_eq!(Trace::read(&bytes).unwrap(), written);
}

/// A malformed record ends its segment only.
#[test]
fn damage_is_counted_and_other_segments_are_read() {
    let mut written = trace(vec![Event::Presented; 20]);
    for record in &mut written.records[10..] {
        record.thread = 1;
    }
    let mut bytes = foreign_recording(&written);
    // A record of this kind has an operation and two numbers, one or two bytes each.
    let first = SEGMENT + 32;
    let damaged = bytes[first..].windows(3).position(|bytes| bytes == [0x91, 1, 0xE8]).unwrap();
    bytes[first + damaged] = 0x13;
    let prefix = Trace::read_prefix(&bytes).unwrap();
    assert_eq!(prefix.trace.records.len(), 11, "the first of one thread, and all of the other");
    let error = prefix.end.unwrap();
    assert_eq!(error.damage, Damage::Operation { operation: 0x13 });
    assert_eq!((error.offset, error.chunk), (u64::try_from(first + damaged).unwrap(), 1));
    assert_eq!(Trace::read(&bytes), Err(error));
    let mut records = ForeignRecords::new(&bytes).unwrap();
    assert_eq!(records.by_ref().count(), 11);
    let committed = u32::from_le_bytes(bytes[SEGMENT + 4..SEGMENT + 8].try_into().unwrap());
    assert_eq!(records.damaged_bytes(), u64::from(committed) - u64::try_from(damaged).unwrap());
}

#[test]
fn a_file_that_is_cut_anywhere_is_read_up_to_the_cut() {
    let written = trace(every_event());
    let bytes = foreign_recording(&written);
    let end = SEGMENT
        + 32
        + usize::try_from(u32::from_le_bytes(bytes[SEGMENT + 4..SEGMENT + 8].try_into().unwrap())).unwrap();
    let mut counts = Vec::new();
    for length in (0..400).chain(SEGMENT..end + 3) {
        let Ok(prefix) = Trace::read_prefix(&bytes[..length]) else {
            assert!(length < 400);
            continue;
        };
        assert!(written.records.starts_with(&prefix.trace.records));
        assert_eq!(prefix.end.is_none(), length >= end || length <= SEGMENT, "{length}");
        counts.push(prefix.trace.records.len());
    }
    assert!(counts.is_sorted() && counts.last() == Some(&written.records.len()), "{counts:?}");
}

#[test]
fn segments_with_wrong_headers_are_damage() {
    let bytes = foreign_recording(&trace(vec![Event::Presented; 3]));
    let damage_of = |at: usize, with: &[u8]| {
        let mut bytes = bytes.clone();
        bytes[at..at + with.len()].copy_from_slice(with);
        let mut records = ForeignRecords::new(&bytes).unwrap();
        let count = records.by_ref().count();
        (count, records.damage().unwrap().damage, records.damaged_bytes())
    };
    let (count, damage, lost) = damage_of(SEGMENT, b"THRE");
    assert_eq!((count, damage, lost), (0, Damage::Kind { mark: *b"THRE" }, 65536));
    let (count, damage, _) = damage_of(SEGMENT + 4, &u32::MAX.to_le_bytes());
    assert!(count == 3 && matches!(damage, Damage::Operation { operation: 0 } | Damage::Truncated { .. }));
    // Sums of numbers that have more than 64 bits.
    let (count, damage, _) = damage_of(SEGMENT + 8, &u64::MAX.to_le_bytes());
    assert_eq!((count, damage), (1, Damage::Value));
    let (count, damage, _) = damage_of(SEGMENT + 16, &u64::MAX.to_le_bytes());
    assert_eq!((count, damage), (1, Damage::Value));
}

#[test]
fn a_file_of_another_version_is_told_apart() {
    let mut bytes = foreign_recording(&trace(every_event()));
    let damage_of = |bytes: &[u8]| ForeignRecords::new(bytes).unwrap_err().damage;
    bytes[7] = 1;
    assert_eq!(damage_of(&bytes), Damage::NotForeign);
    bytes[7] = 3;
    assert_eq!(damage_of(&bytes), Damage::Version { found: 3 });
    assert_eq!(Trace::read(&bytes).unwrap_err().damage, Damage::Version { found: 3 });
    bytes[7] = 2;
    bytes[20] ^= 1;
    assert!(matches!(damage_of(&bytes), Damage::Checksum { .. }));
    assert_eq!(damage_of(b"PNG"), Damage::NotATrace);
}

/// Returns a file with these bytes as the records of two segments.
fn file(first: &[u8], second: &[u8]) -> Vec<u8> {
    let mut bytes = foreign_recording(&Trace::default());
    for records in [first, second] {
        let start = bytes.len();
        bytes.extend(b"THRD");
        bytes.extend(u32::try_from(records.len()).unwrap().to_le_bytes());
        bytes.extend([0; 24]);
        bytes.extend(records);
        bytes.resize(start + SEGMENT, 0);
    }
    bytes
}

/// Sums over all types after each record take a bounded time.
#[test]
fn memory_types_beyond_the_limit_are_ignored() {
    let mut program = ForeignProgram::default();
    for number in 0..1000 {
        let (memory, flags) = (MemoryNumber(u64::from(number)), ForeignMemoryFlags::empty());
        let event = Event::MemoryAllocated { memory, memory_type: number, size: 4096, flags, resource: None };
        program.follow(&Record { event, ..Record::default() });
    }
    assert_eq!((program.types.len(), program.memories.len()), (32, 32));
}

/// The sums that a program keeps are those of its objects.
fn check_sums(program: &ForeignProgram) {
    let mut types = BTreeMap::<u32, (u64, u64, u64, u64)>::new();
    for (number, memory) in &program.memories {
        let sums = types.entry(memory.memory_type).or_default();
        sums.0 += 1;
        sums.1 = sums.1.wrapping_add(memory.size);
        for &(offset, resource, plane) in &memory.bound {
            let bound = &program.resources[&resource].bound;
            let binding =
                bound.iter().find(|it| (it.memory, it.offset, it.plane) == (*number, offset, plane));
            sums.2 += 1;
            sums.3 = sums.3.wrapping_add(binding.unwrap().size);
        }
    }
    let known = program.types.iter().map(|(memory_type, usage)| {
        let sums = (usage.memory_count, usage.reserved_bytes, usage.resource_count, usage.used_bytes);
        (*memory_type, sums)
    });
    assert!(known.eq(types));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    /// Any bytes in segments result in records, at most one for three bytes, and are replayed without a panic.
    #[test]
    fn any_segments_are_read(
        first in prop::collection::vec(any::<u8>(), 0..300),
        second in prop::collection::vec((0x80_u8..0x98, prop::collection::vec(0_u8..12, 2..10)), 0..60),
    ) {
        let second: Vec<u8> =
            second.into_iter().flat_map(|(operation, rest)| [vec![operation], rest].concat()).collect();
        let bytes = file(&first, &second);
        let prefix = Trace::read_prefix(&bytes).unwrap();
        prop_assert!(prefix.trace.records.len() <= (first.len() + second.len()) / 3);
        let mut program = ForeignProgram::default();
        for record in &prefix.trace.records {
            program.follow(record);
            check_sums(&program);
        }
        let requests = prefix.trace.resource_requests();
        prop_assert!(requests.records.len() <= 2 * prefix.trace.records.len());
        let mut records = ForeignRecords::new(&bytes).unwrap();
        prop_assert!(records.by_ref().eq(prefix.trace.records));
        prop_assert!(records.damaged_bytes() <= u64::try_from(first.len() + second.len()).unwrap());
    }

    /// Changes bytes of a real file, also in the headers of segments.
    #[test]
    fn a_changed_file_is_read_or_refused(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8)
    ) {
        thread_local! {
            static BYTES: Vec<u8> = foreign_recording(&trace(every_event()));
        }
        let mut bytes = BYTES.with(Clone::clone);
        for (at, byte) in changes {
            bytes[SEGMENT + at.index(500)] = byte;
        }
        if let Ok(prefix) = Trace::read_prefix(&bytes) {
            prop_assert!(prefix.trace.records.len() < 500);
            let _ = prefix.trace.resource_requests();
        }
    }
}
