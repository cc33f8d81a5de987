//! Collects records in payloads, under a lock that is held for some nanoseconds. The lock defines one order for all
//! threads.

use std::cell::Cell;
use std::collections::VecDeque;
use std::io::Write;
use std::sync::Arc;
use std::thread::{self, JoinHandle, Thread};

use parking_lot::{Condvar, Mutex};

use super::bytes::Put;
use super::chunk::TimePoint;
use super::clock::{self, Start};
use super::encode::{Operation, THREAD};
use super::error::{RecordingSummary, StartRecordingError, StopRecordingError};
pub(crate) use super::payload::Cursor;
use super::payload::{LIMIT, Payload, new_payload};
use super::thread as threads;
use super::writer;
use crate::base::sync::{CoreGuard, CoreMutex};

/// The number of payloads of a recording. They bound the bytes that wait for the sink.
const PAYLOADS: usize = 16;
/// Marks a payload without a thread number: the next record writes one.
const NOBODY: u32 = u32::MAX;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum RecorderState {
    Closed,
    /// The recording first writes the existing objects. All other records wait until that is done.
    Opening,
    Open,
}

/// A payload for the sink.
#[derive(Debug)]
pub(super) struct Full {
    pub(super) payload: Payload,
    pub(super) length: usize,
    pub(super) records: u32,
    pub(super) point: TimePoint,
}

#[derive(Debug)]
struct Hot {
    /// The last position at which a record without a text may begin; 0 unless open.
    limit: usize,
    at: usize,
    last_ticks: u64,
    thread: u32,
    records: u32,
    /// `None` only while closed.
    payload: Option<Payload>,
    state: RecorderState,
    total: u64,
    start: Start,
    full: VecDeque<Full>,
    spare: Vec<Payload>,
    writer: Option<Thread>,
}

type HotGuard<'a> = CoreGuard<'a, Hot>;

impl Hot {
    fn new() -> Self {
        Self {
            limit: 0,
            at: 0,
            last_ticks: 0,
            thread: NOBODY,
            records: 0,
            payload: None,
            state: RecorderState::Closed,
            total: 0,
            start: Start::now(),
            full: VecDeque::new(),
            spare: Vec::new(),
            writer: None,
        }
    }

    /// Writes one record into the payload, which has space for it.
    #[inline(always)]
    fn put(&mut self, operation: Operation, thread: u32, ticks: u64, body: impl FnOnce(&mut Cursor<'_>)) {
        let (Some(payload), Ok(at)) = (self.payload.as_mut(), u16::try_from(self.at)) else { return };
        let mut cursor = Cursor::new(payload, at);
        if thread != self.thread {
            self.thread = thread;
            cursor.byte(THREAD);
            cursor.number(thread.into());
        }
        cursor.byte(operation.code());
        // A thread may read the clock and then wait for the lock. Its record then gets the time of the previous record.
        let passed = ticks.saturating_sub(self.last_ticks);
        self.last_ticks += passed;
        cursor.number(passed);
        body(&mut cursor);
        self.at = usize::from(cursor.at());
        self.records += 1;
    }

    /// Sends the payload to the writer, if it has a record and a spare payload can replace it. The `last` payload needs
    /// no replacement.
    fn close_payload(&mut self, last: bool) -> bool {
        if self.records == 0 || !last && self.spare.is_empty() {
            return false;
        }
        let Some(payload) = self.payload.take() else { return false };
        let point = self.start.point(self.last_ticks);
        self.full.push_back(Full { payload, length: self.at, records: self.records, point });
        self.total += u64::from(self.records);
        self.payload = self.spare.pop();
        self.at = 0;
        self.records = 0;
        self.thread = NOBODY;
        self.last_ticks = self.start.ticks.saturating_add(point.ticks);
        true
    }

    fn is_closed(&self) -> bool {
        self.state == RecorderState::Closed
    }

    /// Closes the recording, and sends the remaining records to the writer.
    fn end(&mut self) {
        if !self.is_closed() {
            self.close_payload(true);
            self.close();
        }
    }

    fn close(&mut self) {
        self.state = RecorderState::Closed;
        self.limit = 0;
    }
}

thread_local! {
    /// The address of the recorder whose writer thread this is.
    static WRITES_FOR: Cell<usize> = const { Cell::new(0) };
}

type Writing = JoinHandle<Result<RecordingSummary, StopRecordingError>>;

/// Collects records. An allocator creates one for its first recording, and reuses it for later ones.
#[derive(Debug)]
pub(crate) struct CallRecorder {
    /// The payload that is being filled, and those that wait for the writer. Held for one record.
    hot: CoreMutex<Hot>,
    /// Held while a thread waits for space and while space is made, so that no wake-up is lost.
    gate: Mutex<()>,
    room: Condvar,
    /// The writer thread, until a call takes its result.
    writing: Mutex<Option<Writing>>,
}

impl CallRecorder {
    pub(crate) fn new() -> Self {
        Self {
            hot: CoreMutex::new(Hot::new()),
            gate: Mutex::new(()),
            room: Condvar::new(),
            writing: Mutex::new(None),
        }
    }

    /// Begins a recording. Records of other threads wait until the result is dropped. The allocator records calls from
    /// the call of `begun` on.
    pub(crate) fn start(
        self: &Arc<Self>,
        header: Vec<u8>,
        sink: impl Write + Send + 'static,
        begun: impl FnOnce(),
    ) -> Result<Opening<'_>, StartRecordingError> {
        if self.is_in_sink() {
            return Err(StartRecordingError::Recording);
        }
        let mut writing = self.writing.lock();
        if writing.is_some() {
            return Err(StartRecordingError::Recording);
        }
        let spare: Vec<_> = (1..PAYLOADS).map(|_| new_payload()).collect();
        let payload = new_payload();
        {
            let mut hot = self.hot.lock();
            let full = VecDeque::with_capacity(PAYLOADS);
            *hot = Hot { state: RecorderState::Opening, payload: Some(payload), spare, full, ..Hot::new() };
            hot.last_ticks = hot.start.ticks;
        }
        let recorder = Arc::clone(self);
        let builder = thread::Builder::new().name("sublet trace".into());
        match builder.spawn(move || writer::run(&recorder, &header, sink)) {
            Ok(handle) => {
                let mut hot = self.hot.lock();
                hot.writer = Some(handle.thread().clone());
                *writing = Some(handle);
                begun();
                Ok(Opening { recorder: self, _writing: writing })
            }
            Err(error) => {
                self.hot.lock().close();
                // A call that began in an earlier recording may wait for this one to open.
                self.made_room();
                Err(StartRecordingError::Thread(error))
            }
        }
    }

    /// Ends a recording, and waits until everything is written. The allocator records no calls after the call of
    /// `ended`.
    pub(crate) fn stop(&self, ended: impl FnOnce()) -> Result<RecordingSummary, StopRecordingError> {
        if self.is_in_sink() {
            // The writer thread cannot wait for itself.
            let mut hot = self.hot.lock();
            hot.end();
            ended();
            return Err(StopRecordingError::InSink);
        }
        // Held until everything is written, so that no new recording takes the payloads of this one.
        let mut writing = self.writing.lock();
        let handle = writing.take().ok_or(StopRecordingError::NotRecording)?;
        let writer = {
            let mut hot = self.hot.lock();
            hot.end();
            ended();
            hot.writer.take()
        };
        if let Some(writer) = writer {
            writer.unpark();
        }
        self.made_room();
        // The writer catches panics of the sink.
        let written = handle.join().unwrap_or(Err(StopRecordingError::Panicked));
        // Frees the payloads.
        let _payloads = std::mem::replace(&mut *self.hot.lock(), Hot::new());
        written
    }

    /// Adds a record. `text` is the number of bytes of its texts and lists. Calls `gone` if no recording is active or
    /// starting.
    #[inline(always)]
    pub(crate) fn record(
        &self,
        operation: Operation,
        text: usize,
        gone: impl FnOnce(),
        body: impl FnOnce(&mut Cursor<'_>),
    ) {
        let thread = threads::number();
        let ticks = clock::ticks();
        let mut hot = self.hot.lock();
        if hot.at + text >= hot.limit {
            match self.make_room(hot, text, false) {
                Ok(found) => hot = found,
                Err(Some(_closed)) => return gone(),
                Err(None) => return,
            }
        }
        hot.put(operation, thread, ticks, body);
    }

    /// Returns true on the writer thread, which must not wait for its own progress.
    fn is_in_sink(&self) -> bool {
        WRITES_FOR.get() == std::ptr::from_ref(self).addr()
    }

    /// Marks the calling thread as the writer.
    pub(super) fn enter_sink(&self) {
        WRITES_FOR.set(std::ptr::from_ref(self).addr());
    }

    /// Returns true if a recording has begun and its result was not taken yet. No other recording can begin then.
    pub(crate) fn is_taken(&self) -> bool {
        self.is_in_sink() || self.writing.lock().is_some()
    }

    /// Returns true if calls are not recorded: there is no recording, or it has ended.
    pub(crate) fn is_over(&self) -> bool {
        self.hot.lock().is_closed()
    }

    /// Waits for space for a record with `text` bytes of text. Returns the lock as an error if there is no recording.
    /// Returns `Err(None)` for calls from the sink while there is no space: they are not recorded.
    #[cold]
    #[inline(never)]
    fn make_room<'a>(
        &'a self,
        mut hot: HotGuard<'a>,
        text: usize,
        opening: bool,
    ) -> Result<HotGuard<'a>, Option<HotGuard<'a>>> {
        debug_assert!(text < LIMIT, "a record is no longer than a payload");
        loop {
            match hot.state {
                RecorderState::Closed => return Err(Some(hot)),
                RecorderState::Opening if !opening => {}
                _ if hot.at + text < LIMIT => return Ok(hot),
                _ => {
                    if hot.close_payload(false) {
                        let writer = hot.writer.clone();
                        drop(hot);
                        if let Some(writer) = writer {
                            writer.unpark();
                        }
                        hot = self.hot.lock();
                        continue;
                    }
                }
            }
            drop(hot);
            if self.is_in_sink() {
                return Err(None);
            }
            let mut gate = self.gate.lock();
            hot = self.hot.lock();
            let waits = match hot.state {
                RecorderState::Closed => false,
                RecorderState::Opening if !opening => true,
                _ => hot.at + text >= LIMIT && hot.spare.is_empty(),
            };
            if waits {
                drop(hot);
                self.room.wait(&mut gate);
                hot = self.hot.lock();
            }
        }
    }

    fn made_room(&self) {
        let _gate = self.gate.lock();
        self.room.notify_all();
    }

    /// Returns the next payload to write. The error is true if the recording is over.
    pub(super) fn next_full(&self) -> Result<Full, bool> {
        let mut hot = self.hot.lock();
        let closed = hot.is_closed();
        hot.full.pop_front().ok_or(closed)
    }

    /// Sends a partial payload to the writer.
    pub(super) fn close_payload(&self) {
        self.hot.lock().close_payload(false);
    }

    /// Returns a written payload for reuse.
    pub(super) fn give_back(&self, payload: Payload) {
        self.hot.lock().spare.push(payload);
        self.made_room();
    }

    /// Ends the recording, because nothing more can be written.
    pub(super) fn give_up(&self) {
        {
            let mut hot = self.hot.lock();
            hot.close();
            hot.full.clear();
        }
        self.made_room();
    }

    /// Returns the number of records, and the start of the recording.
    pub(super) fn totals(&self) -> (u64, Start) {
        let hot = self.hot.lock();
        (hot.total, hot.start)
    }
}

/// A recording that has begun and still writes the existing objects.
#[derive(Debug)]
#[must_use]
pub(crate) struct Opening<'a> {
    recorder: &'a CallRecorder,
    /// Held until the existing objects are written: no thread can end this recording and begin another one meanwhile.
    _writing: parking_lot::MutexGuard<'a, Option<Writing>>,
}

impl Opening<'_> {
    /// Writes a record before those of all other threads.
    pub(crate) fn record(&self, operation: Operation, text: usize, body: impl FnOnce(&mut Cursor<'_>)) {
        let thread = threads::number();
        let hot = self.recorder.hot.lock();
        if let Ok(mut hot) = self.recorder.make_room(hot, text, true) {
            // At the start of the recording.
            let ticks = hot.last_ticks;
            hot.put(operation, thread, ticks, body);
        }
    }
}

impl Drop for Opening<'_> {
    fn drop(&mut self) {
        {
            let mut hot = self.recorder.hot.lock();
            // The sink may have failed meanwhile.
            if hot.state == RecorderState::Opening {
                hot.state = RecorderState::Open;
                hot.limit = LIMIT;
            }
        }
        self.recorder.made_room();
    }
}

const LONGEST: usize = LIMIT / 2;

/// Truncates a text so that its record fits a payload.
#[inline(always)]
pub(crate) fn fitting(text: Option<&str>) -> Option<&str> {
    text.map(|text| if text.len() <= LONGEST { text } else { cut(text) })
}

#[cold]
fn cut(text: &str) -> &str {
    // A character has at most four bytes.
    let end = (LONGEST.saturating_sub(3)..=LONGEST).rev().find(|&end| text.is_char_boundary(end));
    &text[..end.unwrap_or(0)]
}

/// Truncates a list of elements of at most `bytes` each, so that it fits a payload.
pub(crate) fn fitting_list<V>(list: &[V], bytes: usize) -> &[V] {
    &list[..list.len().min(LIMIT / 2 / bytes)]
}

/// Returns the number of bytes in a text.
#[inline(always)]
pub(crate) fn length(text: Option<&str>) -> usize {
    text.map_or(0, str::len)
}
