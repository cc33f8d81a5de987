//! Errors of descriptor heaps.

use std::error::Error;
use std::fmt;

use super::super::counts::DescriptorKind;
use super::super::descriptor::DescriptorDataError;
use super::create_info::CreateHeapError;
use super::range::DescriptorRangeId;
use sublet::MemoryError;
use sublet::device::DriverError;

/// The range was not allocated. Nothing was changed.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum HeapError {
    /// The requested number of slots is zero.
    ZeroCount,
    /// The heap can never have this many consecutive slots. Request fewer slots, or raise the heap's limit.
    TooMany {
        /// The requested number of slots.
        asked: u32,
        /// The maximum number of consecutive slots.
        most: u32,
    },
    /// There is no free range of this size. If `free` is sufficient, the heap is fragmented. If `retiring` is
    /// sufficient, collect once the GPU is done.
    Full {
        /// The requested number of slots.
        asked: u32,
        /// The number of free slots.
        free: u32,
        /// The largest count that could be allocated now.
        largest_free: u32,
        /// The number of slots that wait for the GPU.
        retiring: u32,
    },
    /// The host has no memory for the state of the range, although the heap has space.
    HostMemory {
        /// The requested number of slots.
        asked: u32,
    },
    /// The heap was full and could not grow. Nothing was changed.
    NotGrown {
        /// The requested number of slots.
        asked: u32,
        /// The error of the growth.
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

/// The slot is outside its range.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OutOfRange {
    /// The requested slot, counted from 0.
    pub slot: u32,
    /// The number of slots in the range.
    pub count: u32,
}

impl fmt::Display for OutOfRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "slot {} of a range of {}", self.slot, self.count)
    }
}

impl Error for OutOfRange {}

/// The range is not valid in the heap. Nothing was changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum RangeError {
    /// It was retired or freed, or its frame is over.
    StaleHandle {
        /// The range.
        range: DescriptorRangeId,
    },
    /// It belongs to another heap.
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

/// The descriptor was not written. The slot is unchanged.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub enum HeapWriteError {
    /// The range is not valid in the heap.
    Range(RangeError),
    /// The slot is outside the range.
    OutOfRange(OutOfRange),
    /// The heap does not hold descriptors of this type.
    Kind {
        /// The type.
        kind: DescriptorKind,
    },
    /// The descriptor lacks data that descriptor buffers need.
    Data(DescriptorDataError),
    /// The driver was out of memory.
    Driver(DriverError),
    /// The write could not be flushed, in memory that is not coherent.
    Memory(MemoryError),
    /// Source and destination of a copy are incompatible: one holds bytes and the other descriptors, or the sizes
    /// differ. They were not created for the same types with the same device.
    Unlike {
        /// The size of a source slot in bytes; 0 if it holds descriptors.
        from: u64,
        /// The size of a heap slot in bytes; 0 if it holds descriptors.
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
