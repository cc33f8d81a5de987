//! Sinks that fail, panic, or are slow.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use sublet::trace::{RecordingSummary, StopRecordingError, Trace, TraceBuffer};

use crate::fixture::*;

/// A sink that accepts `room` bytes and then fails.
struct Small {
    into: TraceBuffer,
    room: usize,
    panics: bool,
}

impl Write for Small {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let fits = bytes.len().min(self.room);
        if fits == 0 {
            assert!(!self.panics, "a sink may do that");
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.room -= fits;
        self.into.write(&bytes[..fits])
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn busy(allocator: &sublet::Allocator) {
    for size in 1..20_000 {
        free(allocator, allocate(allocator, size));
    }
}

#[test]
fn a_sink_that_is_full_ends_the_recording_and_nothing_else() {
    let gpu = gpu();
    for room in [0, 3, 40, 200, 70_000, 150_001] {
        let allocator = allocator(&gpu);
        let into = TraceBuffer::new();
        allocator.start_recording(Small { into: into.clone(), room, panics: false }).unwrap();
        busy(&allocator);
        let error = allocator.stop_recording().unwrap_err();
        let StopRecordingError::Write(cause) = &error else { panic!("{error}") };
        assert_eq!(cause.kind(), io::ErrorKind::StorageFull);
        assert!(error.to_string().contains(&cause.to_string()), "{error}");
        assert_eq!(into.bytes().len(), room);
        // The written part can be read.
        assert!(Trace::read(&into.bytes()).is_err());
        if room > 1000 {
            let prefix = Trace::read_prefix(&into.bytes()).unwrap();
            assert_eq!(prefix.trace.records.is_empty(), room < 66_000);
        }
        // The allocator can record again.
        assert_eq!(recorded(&allocator, || free(&allocator, allocate(&allocator, 64))).records.len(), 2);
        assert!(allocator.destroy().is_empty());
    }
}

#[test]
fn after_a_failure_nothing_is_recorded_any_more() {
    let gpu = gpu();
    let allocator = allocator(&gpu);
    allocator.start_recording(Small { into: TraceBuffer::new(), room: 0, panics: false }).unwrap();
    while allocator.is_recording() {
        free(&allocator, allocate(&allocator, 64));
    }
    // The error is kept until the recording is stopped.
    allocator.start_recording(TraceBuffer::new()).unwrap_err();
    assert!(allocator.destroy().is_empty());
}

#[test]
fn a_sink_that_panics_ends_the_recording_and_nothing_else() {
    let gpu = gpu();
    for room in [0, 50, 100_000] {
        let allocator = allocator(&gpu);
        allocator.start_recording(Small { into: TraceBuffer::new(), room, panics: true }).unwrap();
        busy(&allocator);
        assert!(matches!(allocator.stop_recording(), Err(StopRecordingError::Panicked)));
        assert!(allocator.destroy().is_empty());
    }
}

/// A sink that fails when it is flushed, or panics when it is dropped.
struct BadEnd {
    panics_on_drop: bool,
}

impl Write for BadEnd {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.panics_on_drop { Ok(()) } else { Err(io::Error::other("the disk is gone")) }
    }
}

impl Drop for BadEnd {
    fn drop(&mut self) {
        assert!(!self.panics_on_drop, "a sink may do that, too");
    }
}

#[test]
fn a_sink_that_fails_at_the_very_end_is_reported() {
    let gpu = gpu();
    let allocator = allocator(&gpu);
    allocator.start_recording(BadEnd { panics_on_drop: false }).unwrap();
    allocator.trim();
    let error = allocator.stop_recording().unwrap_err();
    assert_eq!(error.to_string(), "the trace was not written: the disk is gone");
    allocator.start_recording(BadEnd { panics_on_drop: true }).unwrap();
    assert!(matches!(allocator.stop_recording(), Err(StopRecordingError::Panicked)));
}

/// A sink that blocks until its gate opens.
struct Slow {
    into: TraceBuffer,
    gate: Arc<AtomicBool>,
}

impl Write for Slow {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        while !self.gate.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(1));
        }
        self.into.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Calls wait for a slow sink only if many records are pending, and no record is lost.
#[test]
fn a_slow_sink_makes_calls_wait_and_loses_none() {
    const CALLS: usize = 400_000;
    let gpu = gpu();
    let allocator = &allocator(&gpu);
    let (into, gate) = (TraceBuffer::new(), Arc::new(AtomicBool::new(false)));
    allocator.start_recording(Slow { into: into.clone(), gate: Arc::clone(&gate) }).unwrap();
    let made = &AtomicUsize::new(0);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for index in 0..CALLS {
                allocator.set_current_frame_index(u32::try_from(index).unwrap());
                made.fetch_add(1, Ordering::Relaxed);
            }
        });
        // This many are made without waiting, however long the thread has to wait for a processor.
        let mut before = 0;
        while before <= 50_000 || before != made.load(Ordering::Relaxed) {
            before = made.load(Ordering::Relaxed);
            std::thread::sleep(Duration::from_millis(200));
        }
        assert!(before < CALLS, "calls that are not written are kept, or lost");
        gate.store(true, Ordering::Relaxed);
    });
    allocator.stop_recording().unwrap();
    let trace = Trace::read(&into.bytes()).unwrap();
    assert_eq!(trace.records.len(), CALLS);
}

/// A sink that calls the allocator that it records, which is not allowed.
struct Meddling {
    allocator: std::sync::Weak<sublet::Allocator>,
    ended: std::sync::mpsc::Sender<Result<RecordingSummary, StopRecordingError>>,
}

impl Write for Meddling {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(allocator) = self.allocator.upgrade() {
            busy(&allocator);
            assert!(allocator.start_recording(sublet::trace::TraceBuffer::new()).is_err());
            let _ = self.ended.send(allocator.stop_recording());
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_sink_that_ends_its_own_recording_does_not_wait_for_itself() {
    let gpu = gpu();
    let allocator = std::sync::Arc::new(allocator(&gpu));
    let (send, receive) = std::sync::mpsc::channel();
    let sink = Meddling { allocator: std::sync::Arc::downgrade(&allocator), ended: send };
    allocator.start_recording(sink).unwrap();
    assert!(matches!(receive.recv().unwrap(), Err(StopRecordingError::InSink)));
    // The allocator continues without a recording, and another one may begin.
    busy(&allocator);
    let _ = allocator.stop_recording();
    assert!(!allocator.is_recording());
    let buffer = sublet::trace::TraceBuffer::new();
    allocator.start_recording(buffer.clone()).unwrap();
    busy(&allocator);
    allocator.stop_recording().unwrap();
    assert!(sublet::trace::Trace::read(&buffer.bytes()).is_ok());
}
