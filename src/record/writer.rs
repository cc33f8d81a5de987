//! The thread that writes a recording. Calls of the program wait for the sink only when all payloads are full.

use std::any::Any;
use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;
use std::time::{Duration, Instant};

use super::bytes::Put;
use super::chunk::{ChunkHeader, ChunkKind, MAGIC, TimePoint};
use super::error::{RecordingSummary, StopRecordingError};
use super::recorder::CallRecorder;
use sublet_engines::cast::widen;

/// The maximum duration whose records are lost when the program ends suddenly.
const INTERVAL: Duration = Duration::from_millis(250);

/// Dropping a panic payload may panic again. The payload of that second panic is leaked.
fn panicked(payload: Box<dyn Any + Send>) -> StopRecordingError {
    if let Err(again) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        std::mem::forget(again);
    }
    StopRecordingError::Panicked
}

struct SinkWriter<W> {
    sink: W,
    chunk: u32,
    bytes: u64,
}

impl<W: Write> SinkWriter<W> {
    /// Calls the sink, and catches its panic.
    fn call(&mut self, bytes: &[u8]) -> Result<(), StopRecordingError> {
        let called = catch_unwind(AssertUnwindSafe(|| self.sink.write_all(bytes)));
        self.bytes += widen(bytes.len());
        called.map_err(panicked)?.map_err(StopRecordingError::Write)
    }

    fn flush(&mut self) -> Result<(), StopRecordingError> {
        let called = catch_unwind(AssertUnwindSafe(|| self.sink.flush()));
        called.map_err(panicked)?.map_err(StopRecordingError::Write)
    }

    fn chunk(
        &mut self,
        kind: ChunkKind,
        records: u32,
        point: TimePoint,
        payload: &[u8],
    ) -> Result<(), StopRecordingError> {
        let too_many = || StopRecordingError::Write(io::ErrorKind::FileTooLarge.into());
        let header = ChunkHeader { kind, number: self.chunk, records, point };
        self.chunk = self.chunk.checked_add(1).ok_or_else(too_many)?;
        self.call(&header.to_bytes(payload))?;
        self.call(payload)
    }
}

/// Writes a recording until it is over.
pub(super) fn run(
    recorder: &CallRecorder,
    header: &[u8],
    sink: impl Write,
) -> Result<RecordingSummary, StopRecordingError> {
    recorder.enter_sink();
    let mut writer = SinkWriter { sink, chunk: 0, bytes: 0 };
    let written = write(recorder, header, &mut writer);
    if let Err(error) = &written {
        recorder.give_up();
        tracing::error!(
            name: "recording_broken", target: "sublet::trace",
            error = %error,
            cause = std::error::Error::source(error).map(tracing::field::display),
            "the recording ends here"
        );
    }
    // Dropping the sink may panic, too.
    let dropped = catch_unwind(AssertUnwindSafe(|| drop(writer)));
    written.and_then(|summary| dropped.map(|()| summary).map_err(panicked))
}

fn write<W: Write>(
    recorder: &CallRecorder,
    header: &[u8],
    writer: &mut SinkWriter<W>,
) -> Result<RecordingSummary, StopRecordingError> {
    writer.call(&MAGIC)?;
    writer.chunk(ChunkKind::Head, 0, TimePoint::default(), header)?;
    loop {
        match recorder.next_full() {
            Ok(full) => {
                let payload = full.payload.get(..full.length).unwrap_or_default();
                writer.chunk(ChunkKind::Calls, full.records, full.point, payload)?;
                recorder.give_back(full.payload);
            }
            Err(true) => break,
            Err(false) => {
                writer.flush()?;
                let begun = Instant::now();
                thread::park_timeout(INTERVAL);
                if begun.elapsed() >= INTERVAL {
                    recorder.close_payload();
                }
            }
        }
    }
    let (records, start) = recorder.totals();
    let mut totals = Vec::new();
    totals.number(records);
    totals.number(u64::from(writer.chunk) + 1);
    let point = start.point(0);
    writer.chunk(ChunkKind::Last, 0, point, &totals)?;
    writer.flush()?;
    Ok(RecordingSummary { records, bytes: writer.bytes, duration: Duration::from_nanos(point.nanoseconds) })
}
