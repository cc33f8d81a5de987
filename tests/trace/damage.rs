//! Truncated, changed or invented traces: each results in a precise error or in a correct trace.

use std::sync::LazyLock;

use proptest::prelude::*;
use sublet::trace::{Damage, Event, Trace, TraceBuffer};
use sublet::{AllocationCreateInfo, MemoryUsage, PoolCreateInfo, ScopeCreateInfo};

use crate::fixture::*;

/// Returns a short trace with many kinds of records.
fn small() -> Vec<u8> {
    let gpu = gpu();
    let allocator = allocator(&gpu);
    let pool =
        allocator.create_pool(&PoolCreateInfo { name: Some("pool"), ..PoolCreateInfo::new(0) }).unwrap();
    let kept = allocate(&allocator, 300);
    let buffer = TraceBuffer::new();
    allocator.start_recording(buffer.clone()).unwrap();
    let scope =
        allocator.create_scope(&ScopeCreateInfo { name: Some("scope"), ..Default::default() }).unwrap();
    let named = AllocationCreateInfo {
        name: Some("name"),
        user_data: u64::MAX,
        min_alignment: 512,
        ..AllocationCreateInfo::in_pool(&pool)
    };
    let in_pool = allocator.allocate_memory(&requirements(64), &named).unwrap();
    let usual =
        AllocationCreateInfo { usage: MemoryUsage::GpuOnly, ..AllocationCreateInfo::in_scope(&scope) };
    let _in_scope = allocator.allocate_memory(&requirements(128), &usual).unwrap();
    allocator.allocate_memory(&requirements(0), &usual).unwrap_err();
    allocator.set_allocation_name(&in_pool, Some("another")).unwrap();
    allocator.set_current_frame_index(300);
    let mut mapped = host(&allocator, 256);
    allocator.copy_to_allocation(&[1; 9], &mut mapped, 3).unwrap();
    for allocation in [in_pool, kept, mapped] {
        free(&allocator, allocation);
    }
    // SAFETY: nothing was bound to its allocations.
    unsafe { allocator.free_scope(scope) }.unwrap();
    // SAFETY: the pool is empty.
    unsafe { allocator.destroy_pool(pool) }.unwrap();
    allocator.stop_recording().unwrap();
    buffer.bytes()
}

/// Returns a trace of this number of frames. 40,000 fill several chunks.
fn frames(count: u32) -> Vec<u8> {
    let gpu = gpu();
    let allocator = allocator(&gpu);
    let buffer = TraceBuffer::new();
    allocator.start_recording(buffer.clone()).unwrap();
    (0..count).for_each(|index| allocator.set_current_frame_index(index));
    allocator.stop_recording().unwrap();
    buffer.bytes()
}

#[test]
fn a_trace_that_is_cut_anywhere_is_an_error_and_what_is_before_can_be_read() {
    let bytes = small();
    let whole = Trace::read(&bytes).unwrap();
    assert!(whole.records.len() > 14);
    for length in 0..bytes.len() {
        let error = Trace::read(&bytes[..length]).unwrap_err();
        match error.damage {
            Damage::Truncated { needed, there } => {
                assert!(there < needed && error.offset + there == u64::try_from(length).unwrap(), "{error}");
            }
            Damage::NoEnd => assert_eq!(error.offset, u64::try_from(length).unwrap()),
            damage => panic!("{damage} at {length}"),
        }
        if let Ok(prefix) = Trace::read_prefix(&bytes[..length]) {
            assert_eq!(prefix.end, Some(error));
            assert_eq!(prefix.trace.header, whole.header);
            assert!(whole.records.starts_with(&prefix.trace.records));
        }
    }
}

#[test]
fn every_whole_chunk_before_a_cut_is_read() {
    let bytes = frames(40_000);
    let trace = Trace::read(&bytes).unwrap();
    let mut counts = Vec::new();
    for length in (0..bytes.len()).step_by(997) {
        let Ok(prefix) = Trace::read_prefix(&bytes[..length]) else { continue };
        assert!(trace.records.starts_with(&prefix.trace.records));
        counts.push(prefix.trace.records.len());
    }
    assert!(counts.is_sorted());
    counts.dedup();
    assert!(counts.len() >= 3 && counts[0] == 0, "{counts:?}");
}

/// A changed byte is always an error, and never results in another valid trace.
#[test]
fn a_trace_with_one_byte_changed_is_an_error() {
    let mut bytes = small();
    for at in 0..bytes.len() {
        for flip in [1, 2, 4, 8, 16, 32, 64, 128, 255] {
            bytes[at] ^= flip;
            let error = Trace::read(&bytes).unwrap_err();
            assert!(error.offset <= u64::try_from(at).unwrap(), "{error}, and byte {at} was changed");
            assert!(!error.to_string().is_empty());
            bytes[at] ^= flip;
        }
    }
    Trace::read(&bytes).unwrap();
}

#[test]
fn an_error_says_where_and_what() {
    let bytes = frames(40_000);
    let trace = Trace::read(&bytes).unwrap();
    let starts: Vec<_> = (0..bytes.len() - 4)
        .filter(|&at| [&b"HEAD"[..], b"CALL", b"LAST"].contains(&&bytes[at..at + 4]))
        .collect();
    assert!(starts.len() >= 4, "{starts:?}");
    let damage_of = |bytes: &[u8]| Trace::read(bytes).unwrap_err();
    let mut changed = bytes.clone();
    changed[starts[2] + 100] ^= 1;
    let error = damage_of(&changed);
    assert_eq!((error.offset, error.chunk), (u64::try_from(starts[2]).unwrap(), 2));
    assert!(matches!(error.damage, Damage::Checksum { stored, computed } if stored != computed));
    let prefix = Trace::read_prefix(&changed).unwrap();
    assert_eq!(prefix.end, Some(error));
    assert!(!prefix.trace.records.is_empty() && trace.records.starts_with(&prefix.trace.records));

    // A missing chunk, and a duplicate one.
    let without = [&bytes[..starts[1]], &bytes[starts[2]..]].concat();
    assert_eq!(damage_of(&without).damage, Damage::Number { expected: 1, found: 2 });
    let twice = [&bytes[..starts[2]], &bytes[starts[1]..]].concat();
    assert_eq!(damage_of(&twice).damage, Damage::Number { expected: 2, found: 1 });

    let longer = [&bytes[..], b"xyz"].concat();
    assert_eq!(damage_of(&longer).damage, Damage::Trailing { bytes: 3 });
    let mut later = bytes.clone();
    later[7] = 200;
    assert_eq!(damage_of(&later).damage, Damage::Version { found: 200 });
    assert_eq!(damage_of(b"this is a text, and no trace").damage, Damage::NotATrace);
    assert_eq!(damage_of(&[]).damage, Damage::Truncated { needed: 8, there: 0 });
    assert!(matches!(
        damage_of(&bytes[..starts[1] + 10]).damage,
        Damage::Truncated { needed: 36, there: 10 }
    ));
    assert_eq!(damage_of(&bytes[..starts[1]]).damage, Damage::NoEnd);
}

/// Returns the bytes of one chunk, with its correct checksum.
fn chunk(kind: &[u8; 4], number: u32, records: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend(kind);
    bytes.extend(number.to_le_bytes());
    bytes.extend(u32::try_from(payload.len()).unwrap().to_le_bytes());
    bytes.extend(records.to_le_bytes());
    bytes.extend([0; 16]);
    let crc = crc(&[&bytes, payload]);
    bytes.extend(crc.to_le_bytes());
    bytes.extend(payload);
    bytes
}

/// Computes the checksum bit by bit, as defined.
fn crc(pieces: &[&[u8]]) -> u32 {
    !pieces.iter().copied().flatten().fold(u32::MAX, |crc, &byte| {
        (0..8).fold(
            crc ^ u32::from(byte),
            |crc, _| {
                if crc & 1 == 1 { crc >> 1 ^ 0xEDB8_8320 } else { crc >> 1 }
            },
        )
    })
}

/// Returns a file with one chunk of calls.
fn file(records: u32, payload: &[u8]) -> Vec<u8> {
    static EMPTY: LazyLock<Vec<u8>> = LazyLock::new(|| frames(0));
    let empty = &*EMPTY;
    let head = empty.windows(4).position(|bytes| bytes == b"LAST").unwrap();
    let last = [u8::try_from(records).unwrap(), 3];
    [&empty[..head], &chunk(b"CALL", 1, records, payload), &chunk(b"LAST", 2, 0, &last)].concat()
}

/// Well-formed files with invalid contents, from a faulty or malicious writer.
#[test]
fn records_that_make_no_sense_are_errors() {
    let damage_of = |records, payload: &[u8]| Trace::read(&file(records, payload)).unwrap_err().damage;
    // Thread 0 and a frame.
    let frame = [1, 0, 0x60, 0, 7];
    assert_eq!(Trace::read(&file(1, &frame)).unwrap().records[0].event, Event::Frame { index: 7 });
    assert_eq!(damage_of(2, &frame), Damage::Count { counted: 1, stored: 2 });
    assert_eq!(damage_of(1, &[0x60, 0, 7]), Damage::NoThread);
    assert_eq!(damage_of(1, &[1, 0, 0x60, 0]), Damage::Overrun);
    assert_eq!(damage_of(1, &[1, 0, 0xEE, 0]), Damage::Operation { operation: 0xEE });
    assert_eq!(damage_of(1, &[1, 0, 0x60, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F]), Damage::Value);
    let scope = [0x50, 0, 0, 0, 0, 0, 0, 0, 0];
    // A scope that is created while a recording begins may be recorded twice, by its creator and by the recorder.
    let twice = Trace::read(&file(2, &[&[1, 0], &scope[..], &scope[..]].concat())).unwrap();
    assert_eq!(twice.records.len(), 1);
    let scope_with_name = [1, 0, 0x50, 0, 0, 0, 0, 0, 0, 0, 2, 0xFF];
    assert_eq!(damage_of(1, &scope_with_name), Damage::Text);
    // A name and a list with the longest length that can be encoded.
    let huge = [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1];
    assert_eq!(damage_of(1, &[&[1, 0, 0x50, 0, 0, 0, 0, 0, 0, 0], &huge[..]].concat()), Damage::Overrun);
    assert_eq!(damage_of(1, &[&[1, 0, 0x70, 0, 0, 0, 0, 0, 0, 0], &huge[..]].concat()), Damage::Overrun);
    // A call on an unknown allocation is counted, but is no error.
    let trace = Trace::read(&file(1, &[1, 0, 0x13, 0, 0, 1, 1])).unwrap();
    assert_eq!((trace.records.len(), trace.unknown_events), (0, 1));
}

#[test]
fn a_chunk_that_is_longer_than_the_file_takes_no_memory() {
    let mut bytes = frames(0);
    bytes[8 + 8..8 + 12].copy_from_slice(&u32::MAX.to_le_bytes());
    let error = Trace::read(&bytes).unwrap_err();
    assert!(matches!(error.damage, Damage::Truncated { needed, .. } if needed == 36 + u64::from(u32::MAX)));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    /// Any payload after a valid header and checksum results in an error or a trace, and never panics.
    #[test]
    fn any_payload_is_read_or_refused(payload in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut bytes = vec![1, 0];
        bytes.extend(&payload);
        let _ = Trace::read(&file(1, &bytes));
    }

    /// The same with payloads closer to real records.
    #[test]
    fn any_records_are_read_or_refused(
        records in prop::collection::vec(
            (prop::sample::select(vec![
                0x10_u8, 0x11, 0x12, 0x13, 0x20, 0x22, 0x24, 0x30, 0x31, 0x32, 0x40, 0x41, 0x42, 0x45, 0x50, 0x51,
                0x60, 0x61, 0x70, 0x71, 0x72, 0x73, 0x74,
            ]),
            prop::collection::vec(0_u8..8, 4..24)), 0..40)
    ) {
        let mut bytes = vec![1, 0];
        for (operation, rest) in records {
            bytes.push(operation);
            bytes.extend(rest);
        }
        let file = file(1, &bytes);
        if let Ok(prefix) = Trace::read_prefix(&file) {
            prop_assert!(prefix.trace.records.len() <= bytes.len());
        }
    }

    /// Changes several bytes of a real trace and corrects the checksums.
    #[test]
    fn a_changed_trace_with_right_checksums_is_read_or_refused(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8)
    ) {
        thread_local! {
            static SMALL: Vec<u8> = small();
        }
        let mut payload = SMALL.with(|bytes| {
            let start = bytes.windows(4).position(|bytes| bytes == b"CALL").unwrap();
            let length = u32::from_le_bytes(bytes[start + 8..start + 12].try_into().unwrap());
            bytes[start + 36..start + 36 + usize::try_from(length).unwrap()].to_vec()
        });
        for (at, byte) in changes {
            let at = at.index(payload.len());
            payload[at] = byte;
        }
        let _ = Trace::read(&file(17, &payload));
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        prop_assert!(Trace::read(&bytes).is_err());
    }
}
