//! Recordings as files for trace viewers.

mod ledger;

use std::collections::BTreeSet;

use serde::Serialize;

use self::ledger::Ledger;
use crate::chrome::{ChromeEvents, Time};
use sublet::trace::{AllocateFailed, Event, MoveOutcome, Record, Trace};

/// The processes of the file: calls of the program, counters, and the allocations of the first memory type.
const CALLS: u32 = 1;
const BYTES: u32 = 2;
const FIRST_TYPE: u32 = 3;

/// Returns a recording as a file that [Perfetto](https://ui.perfetto.dev) and Chrome's `about:tracing` open.
///
/// Its processes are:
///
/// - the program: calls are instants on their threads, failures on all threads, frames across everything;
/// - counters: the bytes of live allocations in total, by heap, by memory type and by pool. A recording has no blocks;
/// - one for each memory type: its allocations under their first names, each from its creation to its free or to the
///   end of the recording.
///
/// The recording of a foreign program is shown by its [requests](Trace::resource_requests).
///
/// # Complexity
/// O(n log n) for n records.
///
/// ```
/// use sublet::trace::{Allocate, AllocationNumber, Event, GrantedMemory, Needs, Record, Trace, Wanted};
///
/// let allocation = AllocationNumber(0);
/// let event = Event::Allocate(Box::new(Allocate {
///     allocation,
///     resource: Needs { size: 4096, ..Needs::default() },
///     wanted: Wanted { name: Some("mesh".into()), ..Wanted::default() },
///     granted: GrantedMemory::default(),
/// }));
/// let frees = Event::Free { allocation };
/// let records = vec![Record { event, ..Record::default() }, Record { event: frees, ..Record::default() }];
/// let json = sublet_report::recording_to_perfetto(&Trace { records, ..Trace::default() });
/// assert!(json.contains(r#"{"ph":"b","name":"mesh","cat":"allocation","ts":0.0,"#), "{json}");
/// ```
#[must_use]
pub fn recording_to_perfetto(recording: &Trace) -> String {
    if recording.is_foreign() {
        return recording_to_perfetto(&recording.resource_requests());
    }
    let mut events = ChromeEvents::new();
    let mut ledger = Ledger::new(recording);
    ledger.introduce(&mut events);
    introduce(&mut events, recording);
    // Threads write their records concurrently, so times may go back slightly.
    let mut now = 0;
    for record in &recording.records {
        now = now.max(u64::try_from(record.time.as_nanos()).unwrap_or(u64::MAX));
        call(&mut events, now, record);
        ledger.follow(&mut events, now, &record.event);
    }
    ledger.finish(&mut events, now);
    events.finish(&RecordingMetadata {
        program: &recording.header.program,
        process: recording.header.process,
        device: &recording.header.device_name,
        library_version: &recording.header.library_version,
    })
}

fn introduce(events: &mut ChromeEvents, recording: &Trace) {
    let header = &recording.header;
    let program = if header.program.is_empty() { "calls" } else { &header.program };
    events.process(CALLS, &format!("{program} ({})", header.process), 1);
    let threads: BTreeSet<u32> = recording.records.iter().map(|record| record.thread).collect();
    for thread in threads {
        events.thread(CALLS, thread.saturating_add(1), &format!("thread {thread}"));
    }
}

#[derive(Serialize)]
struct RecordingMetadata<'a> {
    program: &'a str,
    process: u32,
    device: &'a str,
    library_version: &'a str,
}

/// Writes the call on the track of its thread.
fn call(events: &mut ChromeEvents, now: u64, record: &Record) {
    let mut instant = |name: &str, over: char| {
        let track = (CALLS, record.thread.saturating_add(1));
        let arguments = CallArguments { allocation: record.event.allocation().map(|number| number.0) };
        events.instant(track, Time::Nanos(now), "call", (name, over), arguments);
    };
    match &record.event {
        Event::Frame { index } => instant(&format!("frame {index}"), 'g'),
        Event::AllocateFailed(failed) => instant(&failure(failed), 'p'),
        event => instant(word(event), 't'),
    }
}

#[derive(Serialize)]
struct CallArguments {
    #[serde(skip_serializing_if = "Option::is_none")]
    allocation: Option<u32>,
}

fn failure(failed: &AllocateFailed) -> String {
    format!("allocating {} bytes failed: {:?}", failed.resource.size, failed.failure)
}

fn word(event: &Event) -> &'static str {
    match event {
        Event::Move { outcome: MoveOutcome::Completed, .. } => "move completed",
        Event::Move { outcome: MoveOutcome::Ignored, .. } => "move ignored",
        Event::Move { outcome: MoveOutcome::Freed, .. } => "move freed",
        event => event.name(),
    }
}

/// Returns the track of a memory type's allocations. A hand-made recording may name a type above Vulkan's 32.
fn track_of(memory_type: u32) -> u32 {
    FIRST_TYPE.saturating_add(memory_type)
}
