//! Errors of recordings.

use std::io;
use std::time::Duration;

/// The recording did not begin.
#[derive(Debug)]
#[non_exhaustive]
pub enum StartRecordingError {
    /// The allocator is already recording. Stop that recording first, even if it has failed: stopping returns its
    /// error.
    Recording,
    /// The writer thread could not be started.
    Thread(io::Error),
    /// The file could not be created.
    Create(io::Error),
}

sublet_engines::errors! { StartRecordingError:
    Recording => "the allocator records already";
    Thread(error) => "the thread that writes the trace was not started: {error}";
    Create(error) => "the file of the trace was not made: {error}";
}

/// The recording is incomplete.
#[derive(Debug)]
#[non_exhaustive]
pub enum StopRecordingError {
    /// The allocator is not recording.
    NotRecording,
    /// The sink failed to write. The bytes that it wrote before are a trace without its last chunk.
    Write(io::Error),
    /// The sink panicked.
    Panicked,
    /// The sink itself stopped the recording. The call cannot wait for bytes that the sink has not written yet.
    InSink,
}

sublet_engines::errors! { StopRecordingError:
    NotRecording => "the allocator does not record";
    Write(error) => "the trace was not written: {error}";
    Panicked => "the sink of the trace panicked";
    InSink => "the sink stopped its own recording, and cannot wait for itself";
}

/// The figures of a finished recording.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct RecordingSummary {
    /// The number of records: one for each object that existed at the start, and one for each call.
    pub records: u64,
    /// The size of the trace in bytes.
    pub bytes: u64,
    /// The duration of the recording.
    pub duration: Duration,
}
