//! Errors of recordings.

use std::error::Error;
use std::fmt;
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

impl fmt::Display for StartRecordingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Recording => f.write_str("the allocator records already"),
            Self::Thread(error) => write!(f, "the thread that writes the trace was not started: {error}"),
            Self::Create(error) => write!(f, "the file of the trace was not made: {error}"),
        }
    }
}

impl Error for StartRecordingError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Recording => None,
            Self::Thread(error) | Self::Create(error) => error.source(),
        }
    }
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

impl fmt::Display for StopRecordingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotRecording => f.write_str("the allocator does not record"),
            Self::Write(error) => write!(f, "the trace was not written: {error}"),
            Self::Panicked => f.write_str("the sink of the trace panicked"),
            Self::InSink => f.write_str("the sink stopped its own recording, and cannot wait for itself"),
        }
    }
}

impl Error for StopRecordingError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Write(error) => error.source(),
            _ => None,
        }
    }
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
