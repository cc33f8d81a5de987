//! Recording what a program asks of its allocator, and reading it again.

mod asked;
mod decode;
mod environment;
mod error;
mod event;
mod number;
mod read;
mod replay;
mod settings;
mod sink;
#[cfg(test)]
#[cfg(not(loom))]
mod tests;
mod write;

pub use self::asked::{Allocate, AllocateFailed, Failure, Granted, Needs, Wanted};
pub use self::environment::start_from_environment;
pub use self::error::{Damage, ReadTraceError};
pub use self::event::{
    AllocationNumber, DefragmentationNumber, Event, PoolNumber, Record, ScopeNumber, Trace,
};
pub use self::read::Prefix;
pub use self::replay::{
    CallKind, CallReport, Extremes, Footprint, FreeRanges, Latencies, Replay, ReplayReport,
};
pub use self::settings::{BeginDefragmentation, Existing, MoveOutcome, PoolSettings, ScopeSettings};
pub use self::sink::Buffer;
pub use crate::record::error::{RecordingSummary, StartRecordingError, StopRecordingError};
pub use crate::record::header::{Header, Heap, MemoryType};
