//! Recordings of programs that allocate their memory without this library.

mod facts;
mod field;
mod program;
mod records;
mod requests;
mod write;

pub use facts::{
    DriverMemoryAction, DriverMemoryReport, ForeignImage, ForeignMemoryFlags, ForeignObject,
    ForeignRequirements, MemoryNumber, ResourceNumber, SparseBinding,
};
pub use program::{
    ForeignBinding, ForeignMemory, ForeignProgram, ForeignResource, ForeignShape, ForeignUsage,
};
pub use records::ForeignRecords;
pub use requests::ResourceRequests;
pub use write::foreign_recording;

pub(in crate::trace) use crate::record::chunk::FOREIGN_VERSION;

/// Bytes of a segment, with its header. Segments begin at multiples of it.
pub const SEGMENT_BYTES: usize = 1 << 16;
/// Bytes of a segment before its records.
pub const SEGMENT_HEADER_BYTES: usize = 32;
/// The first bytes of a segment that a thread has used.
pub const SEGMENT_MARK: [u8; 4] = *b"THRD";
