//! Any bytes as a recording, of Sublet or of another program. They are read as they are. Then they are repaired, because
//! hardly any mutation has the right checksums, and are read, replayed, and described by a history and by findings.
#![no_main]

mod device;
mod repair;

use crate::device::with_allocator;
use libfuzzer_sys::{Corpus, fuzz_target};
use sublet::trace::{ForeignRecords, Replay, Trace};
use sublet_report::{Findings, History, Snapshot, recording_to_perfetto};

/// The length of a recording in records that is replayed, so that no input takes long.
const MOST_RECORDS: usize = 1_000;
fn replay(trace: &Trace) {
    let _ = with_allocator(&trace.header, |allocator| {
        let mut replay = Replay::new(trace, allocator);
        while replay.step().is_some() {}
        allocator.validate();
        drop(replay.finish());
        let statistics = allocator.statistics();
        assert_eq!(statistics.allocation_count, 0, "the replay leaves allocations");
    });
}

fn describe(trace: &Trace) {
    let findings = Findings::of(trace);
    let history = if trace.is_foreign() {
        Ok(History::of_foreign(&trace.header, &trace.records))
    } else {
        with_allocator(&trace.header, |allocator| History::replayed(trace, allocator))
    };
    if let Ok(mut history) = history {
        history.add_findings(&findings);
        let _ = history.to_html();
    }
    let _ = recording_to_perfetto(trace);
}

fuzz_target!(|bytes: &[u8]| -> Corpus {
    let _ = Trace::read_prefix(bytes);
    let Some(repaired) = repair::repaired(bytes) else { return Corpus::Keep };
    let Ok(prefix) = Trace::read_prefix(&repaired) else { return Corpus::Keep };
    let mut trace = prefix.trace;
    trace.records.truncate(MOST_RECORDS);
    if let Ok(mut records) = ForeignRecords::new(&repaired) {
        let _ = History::with_findings(&records.header().clone(), records.by_ref());
        let _ = Snapshot::of_trace_at(&trace, trace.records.len() / 2);
    }
    replay(&trace.resource_requests());
    describe(&trace);
    Corpus::Keep
});
