//! The ways in which recordings end.

use std::time::{Duration, Instant};

use sublet::trace::{Damage, Event, StopRecordingError, Trace, TraceBuffer};

use crate::fixture::*;

#[test]
fn an_allocator_that_is_dropped_finishes_its_trace() {
    let gpu = gpu();
    let (dropped, destroyed) = (TraceBuffer::new(), TraceBuffer::new());
    for (buffer, is_dropped) in [(&dropped, true), (&destroyed, false)] {
        let allocator = allocator(&gpu);
        allocator.start_recording(buffer.clone()).unwrap();
        allocator.trim();
        let _leaked = allocate(&allocator, 64);
        if is_dropped {
            drop(allocator);
        } else {
            assert_eq!(allocator.destroy().len(), 1);
        }
        let trace = Trace::read(&buffer.bytes()).unwrap();
        assert_eq!(trace.records.len(), 2);
        assert_eq!(trace.records[0].event, Event::Trim);
    }
}

#[test]
fn who_does_not_record_cannot_stop() {
    let gpu = gpu();
    let allocator = allocator(&gpu);
    assert!(matches!(allocator.stop_recording(), Err(StopRecordingError::NotRecording)));
    recorded(&allocator, || {});
    assert!(matches!(allocator.stop_recording(), Err(StopRecordingError::NotRecording)));
}

#[test]
fn calls_before_and_after_are_not_recorded() {
    let gpu = gpu();
    let allocator = allocator(&gpu);
    allocator.trim();
    let trace = recorded(&allocator, || allocator.set_current_frame_index(1));
    allocator.trim();
    assert_eq!(events(&trace), [Event::Frame { index: 1 }]);
}

/// The trace of a program that crashes.
#[test]
fn a_trace_that_still_grows_has_what_happened_a_moment_ago() {
    let gpu = gpu();
    let allocator = allocator(&gpu);
    let buffer = TraceBuffer::new();
    allocator.start_recording(buffer.clone()).unwrap();
    allocator.set_current_frame_index(7);
    // Ends when the record is there, however long the thread that writes has to wait for a processor.
    loop {
        std::thread::sleep(Duration::from_millis(50));
        // The trace may be read while it is being written.
        let Ok(prefix) = Trace::read_prefix(&buffer.bytes()) else { continue };
        let damage = prefix.end.unwrap().damage;
        assert!(matches!(damage, Damage::NoEnd | Damage::Truncated { .. }), "{damage}");
        if prefix.trace.records.iter().any(|record| record.event == Event::Frame { index: 7 }) {
            break;
        }
    }
    allocator.stop_recording().unwrap();
    assert_eq!(Trace::read(&buffer.bytes()).unwrap().records.len(), 1);
}

#[test]
fn times_are_those_that_passed() {
    let gpu = gpu();
    let allocator = allocator(&gpu);
    let begun = Instant::now();
    let trace = recorded(&allocator, || {
        allocator.set_current_frame_index(1);
        std::thread::sleep(Duration::from_millis(60));
        allocator.set_current_frame_index(2);
        std::thread::sleep(Duration::from_millis(700));
        allocator.set_current_frame_index(3);
    });
    let elapsed = begun.elapsed();
    let times: Vec<_> = trace.records.iter().map(|record| record.time).collect();
    let passed = [times[1] - times[0], times[2] - times[1]];
    assert!(passed[0] >= Duration::from_millis(55), "{times:?}");
    assert!(passed[1] >= Duration::from_millis(690), "{times:?}");
    assert!(times[2] <= elapsed, "{times:?} in {elapsed:?}");
}

#[test]
fn many_records_take_few_bytes() {
    const PAIRS: u32 = 50_000;
    let gpu = gpu();
    let allocator = allocator(&gpu);
    let buffer = TraceBuffer::new();
    allocator.start_recording(buffer.clone()).unwrap();
    let mut live: Vec<_> = (0..100).map(|_| allocate(&allocator, 4096)).collect();
    for at in 0..PAIRS {
        let size = 256 + u64::from(at % 4096);
        let slot = usize::try_from(at % 97).unwrap();
        free(&allocator, std::mem::replace(&mut live[slot], allocate(&allocator, size)));
    }
    live.into_iter().for_each(|allocation| free(&allocator, allocation));
    let summary = allocator.stop_recording().unwrap();
    assert_eq!(summary.records, u64::from(2 * PAIRS + 200));
    let each = summary.bytes / summary.records;
    assert!(each <= 20, "{each} bytes for a record");
    let trace = Trace::read(&buffer.bytes()).unwrap();
    check(&trace);
    assert_eq!(u64::try_from(trace.records.len()).unwrap(), summary.records);
}
