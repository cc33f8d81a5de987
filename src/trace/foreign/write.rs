//! Writes foreign recordings, for tests of programs that read them.

use std::collections::BTreeMap;

use super::field::put_fields;
use super::{SEGMENT_BYTES, SEGMENT_HEADER_BYTES, SEGMENT_MARK};
use crate::record::bytes::Put;
use crate::record::chunk::foreign_head;
use crate::trace::Trace;
use sublet_engines::cast::{nanoseconds, narrow};

/// A segment that is not full.
struct OpenSegment {
    /// Its number.
    number: usize,
    records: Vec<u8>,
    first: (u64, u64),
    last: (u64, u64),
}

/// Returns the file of a foreign recording, as the layer writes it: each thread has segments of its own.
///
/// Records that are not foreign, and those longer than a segment, are left out.
#[must_use]
pub fn foreign_recording(trace: &Trace) -> Vec<u8> {
    let mut file = foreign_head(&trace.header);
    file.resize(file.len().next_multiple_of(SEGMENT_BYTES), 0);
    let start = file.len();
    let mut open = BTreeMap::<u32, OpenSegment>::new();
    let mut segments = 0;
    let mut write = |thread: u32, segment: &OpenSegment| {
        let at = start + segment.number * SEGMENT_BYTES;
        file.resize(file.len().max(at + SEGMENT_BYTES), 0);
        let mut bytes = SEGMENT_MARK.to_vec();
        bytes.extend(narrow(segment.records.len()).to_le_bytes());
        bytes.extend(segment.first.0.to_le_bytes());
        bytes.extend(segment.first.1.to_le_bytes());
        bytes.extend(thread.to_le_bytes());
        bytes.extend([0; 4]);
        bytes.extend(&segment.records);
        file[at..at + bytes.len()].copy_from_slice(&bytes);
    };
    for (sequence, record) in (0..).zip(&trace.records).filter(|(_, record)| record.event.is_foreign()) {
        let now = (sequence, nanoseconds(record.time));
        let mut body = Vec::new();
        put_fields(&record.event, &mut body);
        let space = SEGMENT_BYTES - SEGMENT_HEADER_BYTES;
        // The operation, and two numbers of at most ten bytes.
        let needed = body.len() + 21;
        if let Some(full) = open.get(&record.thread).filter(|full| full.records.len() + needed > space) {
            write(record.thread, full);
            open.remove(&record.thread);
        }
        if needed > space {
            continue;
        }
        let segment = open.entry(record.thread).or_insert_with(|| {
            segments += 1;
            OpenSegment { number: segments - 1, records: Vec::new(), first: now, last: now }
        });
        segment.records.push(record.event.operation().code());
        segment.records.number(now.0 - segment.last.0);
        segment.records.number(now.1.saturating_sub(segment.last.1));
        segment.records.extend(body);
        segment.last = (now.0, now.1.max(segment.last.1));
    }
    open.iter().for_each(|(thread, segment)| write(*thread, segment));
    file
}
