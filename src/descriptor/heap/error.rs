//! What can go wrong with a descriptor heap.
#![forbid(unsafe_code)]

use std::error::Error;
use std::fmt;

use super::super::counts::DescriptorKind;
use super::super::descriptor::DescriptorDataError;
use super::create_info::CreateHeapError;
use super::range::DescriptorRangeId;
use crate::device::DriverError;
use crate::error::MemoryError;

/// No range was allocated. Nothing was changed.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum HeapError {
    /// A range has one slot at least.
    ZeroCount,
    /// More slots than there may be in a row in the heap. Ask for less at once, or raise its limit.
    TooMany {
        /// Slots that were asked for.
        asked: u32,
        /// The most that can be in a row, ever.
        most: u32,
    },
    /// There is no place for so many slots in a row. If `free` is enough, the heap is fragmented; if `retiring` is,
    /// collect once the GPU is done.
    Full {
        /// Slots that were asked for.
        asked: u32,
        /// Slots that are free.
        free: u32,
        /// The largest count that could be allocated now.
        largest_free: u32,
        /// Slots that wait for the GPU.
        retiring: u32,
    },
    /// The host has no memory for what is kept of the range. There was room for it.
    HostMemory {
        /// Slots that were asked for.
        asked: u32,
    },
    /// The heap was full and did not grow. It is as it was.
    NotGrown {
        /// Slots that were asked for.
        asked: u32,
        /// Why not.
        source: Box<CreateHeapError>,
    },
}

impl fmt::Display for HeapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ZeroCount => f.write_str("a range of no slots"),
            Self::TooMany { asked, most } => {
                write!(f, "{asked} slots in a row, in a heap that may have {most}")
            }
            Self::Full { asked, free, largest_free, retiring } => write!(
                f,
                "{asked} slots in a row: {free} are free, {largest_free} of them in a row, and {retiring} wait for the GPU"
            ),
            Self::HostMemory { asked } => {
                write!(f, "{asked} slots in a row: the host has no memory for what is kept of them")
            }
            Self::NotGrown { asked, source } => {
                write!(f, "{asked} slots in a row: the heap is full and did not grow: {source}")
            }
        }
    }
}

impl Error for HeapError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::NotGrown { source, .. } => source.source(),
            _ => None,
        }
    }
}

/// A slot is not in its range.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OutOfRange {
    /// What was asked for, counted from 0.
    pub slot: u32,
    /// Slots of the range.
    pub count: u32,
}

impl fmt::Display for OutOfRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "slot {} of a range of {}", self.slot, self.count)
    }
}

impl Error for OutOfRange {}

/// A range is none of the heap's. Nothing was changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum RangeError {
    /// It was retired or freed, or its frame is over.
    StaleHandle {
        /// The range.
        range: DescriptorRangeId,
    },
    /// It is of another heap.
    ForeignHeap {
        /// The range.
        range: DescriptorRangeId,
    },
}

impl fmt::Display for RangeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::StaleHandle { range } => {
                write!(f, "the range of {} slots at {} is retired or freed", range.count, range.first)
            }
            Self::ForeignHeap { range } => {
                write!(f, "the range of {} slots at {} is of another heap", range.count, range.first)
            }
        }
    }
}

impl Error for RangeError {}

/// A descriptor was not written. The slot holds what it held.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub enum HeapWriteError {
    /// The range is none of the heap's.
    Range(RangeError),
    /// The range has not so many slots.
    OutOfRange(OutOfRange),
    /// The heap was not made for descriptors of this type.
    Kind {
        /// The type.
        kind: DescriptorKind,
    },
    /// The descriptor does not say what descriptor buffers want.
    Data(DescriptorDataError),
    /// The driver did not write the descriptor, for want of memory.
    Driver(DriverError),
    /// What was written could not be flushed, in memory that is not coherent.
    Memory(MemoryError),
    /// The source of a copy holds bytes, and the heap takes descriptors, or the other way round, or the sizes differ:
    /// the two were not made for the same types with the same device.
    Unlike {
        /// Bytes of a slot of the source; 0 if it holds descriptors.
        from: u64,
        /// Bytes of a slot of the heap; 0 if it takes descriptors.
        to: u64,
    },
}

impl From<RangeError> for HeapWriteError {
    fn from(error: RangeError) -> Self {
        Self::Range(error)
    }
}

impl From<OutOfRange> for HeapWriteError {
    fn from(error: OutOfRange) -> Self {
        Self::OutOfRange(error)
    }
}

impl From<DriverError> for HeapWriteError {
    fn from(error: DriverError) -> Self {
        Self::Driver(error)
    }
}

impl From<DescriptorDataError> for HeapWriteError {
    fn from(error: DescriptorDataError) -> Self {
        Self::Data(error)
    }
}

impl fmt::Display for HeapWriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Range(error) => write!(f, "there is no such slot to write: {error}"),
            Self::OutOfRange(error) => write!(f, "there is no such slot to write: {error}"),
            Self::Kind { kind } => write!(f, "the heap is not made for a {kind:?}"),
            Self::Data(error) => write!(f, "the descriptor has no bytes: {error}"),
            Self::Driver(error) => write!(f, "the driver did not write the descriptor: {error}"),
            Self::Memory(error) => write!(f, "what was written is not flushed: {error}"),
            Self::Unlike { from, to } => {
                write!(f, "slots of {from} bytes are copied to slots of {to}, where 0 stands for no bytes")
            }
        }
    }
}

impl Error for HeapWriteError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Driver(error) => error.source(),
            Self::Memory(error) => error.source(),
            _ => None,
        }
    }
}
