//! Writes the records of one thread.

use std::sync::atomic::Ordering;

use sublet::private::{Put, SEGMENT_BYTES, SEGMENT_HEADER_BYTES, SEGMENT_MARK};

use super::fields::{FixedBytes, RecordFields};
use super::segment::WatchSegment;
use super::watch::WatchRecording;

/// The operation, and two numbers of at most ten bytes.
const LONGEST_START: usize = 21;

/// The segment of a thread, and the position of its next record.
#[derive(Debug)]
pub(crate) struct WatchWriter {
    /// The number of the thread. A thread that ended leaves it to another one.
    thread: u32,
    segment: Option<WatchSegment>,
    at: usize,
    sequence: u64,
    time: u64,
}

impl WatchWriter {
    pub(super) fn new(thread: u32) -> Self {
        Self { thread, segment: None, at: 0, sequence: 0, time: 0 }
    }

    /// Leaves the segment as it is. The next record takes another one.
    pub(super) fn leave_segment(&mut self) {
        self.segment = None;
    }

    /// Writes a record. Does nothing once the recording has ended.
    #[inline]
    pub(crate) fn put(&mut self, recording: &WatchRecording, fields: &RecordFields) {
        self.put_encoded(recording, fields.bytes());
    }

    /// Writes a record whose operation and fields are encoded.
    #[inline]
    pub(super) fn put_encoded(&mut self, recording: &WatchRecording, encoded: &[u8]) {
        let Some((&operation, fields)) = encoded.split_first() else { return };
        if self.segment.is_none() || self.at + LONGEST_START + fields.len() > SEGMENT_BYTES {
            self.take_segment(recording);
        }
        let Some(segment) = &mut self.segment else { return };
        let time = recording.now().max(self.time);
        // W2: the one counter of all threads.
        let sequence = recording.counters.sequence.fetch_add(1, Ordering::Relaxed);
        if self.at == 0 {
            (self.sequence, self.time) = (sequence, time);
            segment.write(8, &sequence.to_le_bytes());
            segment.write(16, &time.to_le_bytes());
            segment.write(24, &self.thread.to_le_bytes());
            segment.write(0, &SEGMENT_MARK);
            self.at = SEGMENT_HEADER_BYTES;
        }
        let mut start = FixedBytes::<LONGEST_START>::new();
        start.byte(operation);
        start.number(sequence.saturating_sub(self.sequence));
        start.number(time.saturating_sub(self.time));
        let start = start.as_slice();
        (self.sequence, self.time) = (sequence, time);
        segment.write(self.at, start);
        segment.write(self.at + start.len(), fields);
        self.at += start.len() + fields.len();
        segment.commit(self.at);
    }

    #[cold]
    fn take_segment(&mut self, recording: &WatchRecording) {
        self.segment = recording.take_segment();
        self.at = 0;
    }
}
