//! Errors of descriptor heaps.

use super::super::counts::DescriptorKind;
use super::super::descriptor::DescriptorDataError;
use super::create_info::CreateHeapError;
use super::range::DescriptorRangeId;
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

sublet_engines::errors! { HeapError:
    ZeroCount => "a range of no slots";
    TooMany { asked, most } => "{asked} slots in a row, in a heap that may have {most}";
    Full { asked, free, largest_free, retiring } =>
        "{asked} slots in a row: {free} are free, {largest_free} of them in a row, and {retiring} wait for the GPU";
    HostMemory { asked } => "{asked} slots in a row: the host has no memory for what is kept of them";
    NotGrown { asked, source } => "{asked} slots in a row: the heap is full and did not grow: {source}", source;
}

/// The slot is outside its range.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OutOfRange {
    /// The requested slot, counted from 0.
    pub slot: u32,
    /// The number of slots in the range.
    pub count: u32,
}

sublet_engines::errors! { struct OutOfRange { slot, count } => "slot {slot} of a range of {count}" }

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

sublet_engines::errors! { RangeError:
    StaleHandle { range } => "the range of {} slots at {} is retired or freed" (range.count, range.first);
    ForeignHeap { range } => "the range of {} slots at {} is of another heap" (range.count, range.first);
}

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
    /// Source and destination of a copy are incompatible: one holds bytes and the other descriptors, or the sizes
    /// differ. They were not created for the same types with the same device.
    Unlike {
        /// The size of a source slot in bytes; 0 if it holds descriptors.
        from: u64,
        /// The size of a heap slot in bytes; 0 if it holds descriptors.
        to: u64,
    },
}

sublet_engines::errors! { HeapWriteError:
    Range(error: RangeError) => "there is no such slot to write: {error}";
    OutOfRange(error: OutOfRange) => "there is no such slot to write: {error}";
    Kind { kind } => "the heap is not made for a {kind:?}";
    Data(error: DescriptorDataError) => "the descriptor has no bytes: {error}";
    Driver(error: DriverError) => "the driver did not write the descriptor: {error}";
    Unlike { from, to } => "slots of {from} bytes are copied to slots of {to}, where 0 stands for no bytes";
}
