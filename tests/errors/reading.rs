//! Errors for invalid recordings, traces and memory maps.

use std::io;

use sublet::trace::{Damage, ReadTraceError, StartRecordingError, StopRecordingError};
use sublet_report::{FaultPosition, FindingLimit, ReadSnapshotError, Snapshot, SnapshotFault};

use super::{RenderedError, each, rendered, saying};

pub(crate) fn all() -> Vec<RenderedError> {
    let mut all = Vec::new();
    let gone = || io::Error::other("the disk is gone");
    all.extend(each([
        StartRecordingError::Recording,
        StartRecordingError::Thread(gone()),
        StartRecordingError::Create(gone()),
    ]));
    all.extend(each([
        StopRecordingError::NotRecording,
        StopRecordingError::Write(gone()),
        StopRecordingError::Panicked,
        StopRecordingError::InSink,
    ]));
    let damages = [
        Damage::NotATrace,
        Damage::Version { found: 117 },
        Damage::NotForeign,
        Damage::Truncated { needed: 1001, there: 1002 },
        Damage::NoEnd,
        Damage::Checksum { stored: 1001, computed: 1002 },
        Damage::Number { expected: 1001, found: 1002 },
        Damage::Trailing { bytes: 1001 },
        Damage::Count { counted: 1001, stored: 1002 },
        Damage::Operation { operation: 117 },
        Damage::Overrun,
        Damage::Value,
        Damage::Text,
        Damage::NoThread,
        Damage::Twice,
    ];
    for damage in damages {
        all.push(shown(&damage));
        all.push(rendered(ReadTraceError { offset: 4711, chunk: 12, damage }));
    }
    let damage = Damage::Kind { mark: *b"GIF8" };
    all.push(RenderedError { parts: vec!["GIF8".to_owned()], ..shown(&damage) });
    all.push(saying(ReadTraceError { offset: 4711, chunk: 12, damage }, &["4711", "12", "GIF8"]));

    let limit = "waste=117".parse::<FindingLimit>().unwrap_err();
    all.push(saying(limit, &["waste=117", "PERCENT%"]));

    let json = Snapshot::from_json("{\n \"format\": }").unwrap_err();
    all.push(saying(json, &["expected value at line 2 column 12"]));
    all.extend(each([
        ReadSnapshotError::NotASnapshot,
        ReadSnapshotError::Version { found: Some(117), known: 118 },
        ReadSnapshotError::Version { found: None, known: 118 },
        ReadSnapshotError::OldVma,
        ReadSnapshotError::NotVulkan,
        ReadSnapshotError::WithoutDetails,
    ]));
    let faults = [
        SnapshotFault::TooManyHeaps { heaps: 117 },
        SnapshotFault::TooManyTypes { types: 133 },
        SnapshotFault::HeapMissing { heap: 13 },
        SnapshotFault::TypeMissing { memory_type: 17 },
        SnapshotFault::NoSuchHeap { heap: 13, heaps: 12 },
        SnapshotFault::NoSuchType { memory_type: 17, types: 16 },
        SnapshotFault::HeapOfAnotherType { heap: 13, of_type: 12 },
        SnapshotFault::VectorTwice,
        SnapshotFault::BlockTwice,
        SnapshotFault::AllocationTwice,
        SnapshotFault::Overlap { end_of_previous: 1001 },
        SnapshotFault::BeyondBlock { size: 1002, block_size: 1001 },
        SnapshotFault::TooLarge,
        SnapshotFault::Slots { heap: 118, slot: 119 },
    ];
    let mut place = FaultPosition::default();
    (place.vector, place.block, place.offset) = (Some(31), Some(32), Some(33));
    for fault in faults {
        all.push(shown(&fault));
        all.push(rendered(ReadSnapshotError::Contradiction { place, fault }));
    }
    all
}

/// A value that is displayed inside an error and is no error itself.
#[derive(Debug)]
struct Shown(String);

impl std::fmt::Display for Shown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Shown {}

fn shown<T: std::fmt::Display + std::fmt::Debug>(it: &T) -> RenderedError {
    let debug = format!("{it:?}");
    let parts = super::parts_of(&debug);
    let path =
        std::any::type_name::<T>().trim_start_matches("sublet::").replace("sublet_report::", "report::");
    RenderedError { path, debug, parts, ..saying(Shown(it.to_string()), &[]) }
}
