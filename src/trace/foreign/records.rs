//! Merges the segments of a foreign recording.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::time::Duration;

use super::field::read_fields;
use super::{SEGMENT_BYTES, SEGMENT_HEADER_BYTES, SEGMENT_MARK};
use crate::record::bytes::Take;
use crate::record::encode::Operation;
use crate::record::header::Header;
use crate::trace::error::{Damage, ReadTraceError};
use crate::trace::read::read_head;
use crate::trace::{Event, Record, Trace};
use sublet_engines::cast::{index, narrow, widen};

/// The records of a foreign recording, one after the other. A recording of any length needs memory only for its
/// segments, a thousandth of the file. [`Trace::read`] keeps all records instead.
///
/// ```
/// use sublet::trace::{Event, ForeignRecords, Record, Trace};
/// # let records = vec![Record { event: Event::Presented, ..Record::default() }];
/// # let bytes = sublet::private::foreign_recording(&Trace { records, ..Trace::default() });
/// // `bytes` is the content of a file that the layer wrote.
/// let mut records = ForeignRecords::new(&bytes)?;
/// let frames = records.by_ref().filter(|record| record.event == Event::Presented).count();
/// assert_eq!((frames, records.damaged_bytes()), (1, 0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct ForeignRecords<'a> {
    header: Header,
    segments: Vec<Segment<'a>>,
    /// The segments that have a next record, by its sequence number.
    next: BinaryHeap<Reverse<(u64, usize)>>,
    threads: BTreeMap<u32, u32>,
    damaged_bytes: u64,
    damage: Option<ReadTraceError>,
}

/// The unread part of a segment.
#[derive(Clone, Debug)]
struct Segment<'a> {
    take: Take<'a>,
    /// The index of the first byte after the header.
    at: usize,
    thread: u32,
    sequence: u64,
    /// In nanoseconds since the start of the recording.
    time: u64,
    event: Option<Event>,
}

impl<'a> ForeignRecords<'a> {
    /// Begins to read a foreign recording.
    ///
    /// # Errors
    /// [`ReadTraceError`] if it is no foreign recording, or if its head is damaged.
    pub fn new(bytes: &'a [u8]) -> Result<Self, ReadTraceError> {
        let (header, end) = read_head(bytes, super::FOREIGN_VERSION)?;
        let mut records = Self {
            header,
            segments: Vec::new(),
            next: BinaryHeap::new(),
            threads: BTreeMap::new(),
            damaged_bytes: 0,
            damage: None,
        };
        let first = end.next_multiple_of(SEGMENT_BYTES);
        for (number, segment) in bytes.get(first..).unwrap_or_default().chunks(SEGMENT_BYTES).enumerate() {
            records.add_segment(first + number * SEGMENT_BYTES, segment);
        }
        Ok(records)
    }

    /// Returns the program and the device. Fields that describe an allocator have their defaults.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Returns the number of bytes that could not be read so far. A malformed record hides the rest of its segment.
    #[must_use]
    pub fn damaged_bytes(&self) -> u64 {
        self.damaged_bytes
    }

    /// Returns the damage that is nearest to the start of the file, of all that was found so far.
    #[must_use]
    pub fn damage(&self) -> Option<ReadTraceError> {
        self.damage
    }

    /// Reads all records into a trace.
    pub(in crate::trace) fn collect_trace(&mut self) -> Trace {
        let records = self.by_ref().collect();
        Trace { header: self.header.clone(), records, unknown_events: 0 }
    }

    fn found(&mut self, at: usize, bytes: usize, damage: Damage) {
        self.damaged_bytes = self.damaged_bytes.saturating_add(widen(bytes));
        let error = ReadTraceError { offset: widen(at), chunk: narrow(at / SEGMENT_BYTES), damage };
        if self.damage.is_none_or(|known| error.offset < known.offset) {
            self.damage = Some(error);
        }
    }

    fn add_segment(&mut self, at: usize, bytes: &'a [u8]) {
        let Some((header, rest)) = bytes.split_first_chunk::<SEGMENT_HEADER_BYTES>() else {
            let (needed, there) = (widen(SEGMENT_HEADER_BYTES), widen(bytes.len()));
            return self.found(at, bytes.len(), Damage::Truncated { needed, there });
        };
        let word = |at: usize| [header[at], header[at + 1], header[at + 2], header[at + 3]];
        let small = |at| u32::from_le_bytes(word(at));
        let long = |at| u64::from(small(at)) | u64::from(small(at + 4)) << 32;
        match word(0) {
            SEGMENT_MARK => {}
            [0, 0, 0, 0] => return,
            mark => return self.found(at, bytes.len(), Damage::Kind { mark }),
        }
        let committed = index(small(4));
        let known = committed.min(rest.len());
        if known < committed {
            let (needed, there) = (widen(committed), widen(known));
            self.found(at, committed.min(SEGMENT_BYTES) - known, Damage::Truncated { needed, there });
        }
        self.segments.push(Segment {
            take: Take::new(rest.get(..known).unwrap_or_default()),
            at: at + SEGMENT_HEADER_BYTES,
            thread: small(24),
            sequence: long(8),
            time: long(16),
            event: None,
        });
        self.advance(self.segments.len() - 1);
    }

    /// Reads the next record of a segment, if it has one.
    fn advance(&mut self, number: usize) {
        let segment = &mut self.segments[number];
        let (at, hidden) = (segment.at + segment.take.at(), segment.take.rest());
        if hidden == 0 {
            return;
        }
        match segment.read() {
            Ok(event) => {
                segment.event = Some(event);
                self.next.push(Reverse((segment.sequence, number)));
            }
            Err(damage) => {
                segment.take = Take::new(&[]);
                self.found(at, hidden, damage);
            }
        }
    }
}

impl Segment<'_> {
    fn read(&mut self) -> Result<Event, Damage> {
        let operation = self.take.byte()?;
        let known = Operation::of_code(operation).ok_or(Damage::Operation { operation })?;
        let sequence = self.sequence.checked_add(self.take.number()?).ok_or(Damage::Value)?;
        let time = self.time.checked_add(self.take.number()?).ok_or(Damage::Value)?;
        let event = read_fields(known, &mut self.take)?.ok_or(Damage::Operation { operation })?;
        (self.sequence, self.time) = (sequence, time);
        Ok(event)
    }
}

impl Iterator for ForeignRecords<'_> {
    type Item = Record;

    fn next(&mut self) -> Option<Record> {
        let Reverse((_, number)) = self.next.pop()?;
        // A segment is in the heap only while it has a next record.
        let segment = self.segments.get_mut(number)?;
        let event = segment.event.take()?;
        let time = Duration::from_nanos(segment.time);
        let known = narrow(self.threads.len());
        let thread = *self.threads.entry(segment.thread).or_insert(known);
        self.advance(number);
        Some(Record { time, thread, event })
    }
}
