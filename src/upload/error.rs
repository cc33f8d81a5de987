//! Why there is no arena, or no room in one.
#![forbid(unsafe_code)]

use std::error::Error;
use std::fmt;

use crate::device::DriverError;
use crate::error::{AllocationError, CreateError, CreatePoolError, FindMemoryTypeError, MemoryError};
use crate::retire::{MixedClocks, OtherClock, Ticket};

/// Why an [`UploadArena`](super::UploadArena) was not made. Nothing is left behind.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub enum CreateUploadError {
    /// The size of a page is zero, or more than the host can address.
    Size {
        /// What was asked for, in bytes.
        size: u64,
    },
    /// A page is one buffer, and the device has none above `max`: its `maxBufferSize`
    /// ([`max_buffer_size`](crate::Allocator::max_buffer_size)).
    BufferTooLarge {
        /// What was asked for, in bytes.
        size: u64,
        /// The most bytes that a buffer may have.
        max: u64,
    },
    /// No usage was given.
    NoUsage,
    /// The limit is below a single page.
    Limit {
        /// What was given, in bytes.
        memory_limit: u64,
        /// Bytes of a page.
        page_size: u64,
    },
    /// Addresses were asked for, and the allocator was made without
    /// [`BUFFER_DEVICE_ADDRESS`](crate::AllocatorCreateFlags::BUFFER_DEVICE_ADDRESS) or did not find the function.
    DeviceAddress,
    /// The pool is another allocator's.
    ForeignPool,
    /// The pool's memory type cannot be mapped.
    NotHostVisible {
        /// The pool's memory type.
        memory_type: u32,
    },
    /// The pool's memory type is none that buffers of this usage can be in.
    PoolMemoryType {
        /// The pool's memory type.
        memory_type: u32,
        /// Those that are possible, one bit each.
        memory_type_bits: u32,
    },
    /// There is no memory type, or the driver did not say what a buffer needs.
    MemoryType(FindMemoryTypeError),
    /// There is no pool for the pages.
    Pool(CreatePoolError),
}

impl fmt::Display for CreateUploadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Size { size } => write!(f, "{size} bytes are no size for a page"),
            Self::BufferTooLarge { size, max } => write!(
                f,
                "a page of {size} bytes is above maxBufferSize, which is {max} on this device"
            ),
            Self::NoUsage => f.write_str("the buffers are not to be used for anything"),
            Self::Limit { memory_limit, page_size } => {
                write!(f, "a limit of {memory_limit} bytes is below one page of {page_size}")
            }
            Self::DeviceAddress => f.write_str(
                "device addresses need an allocator made with AllocatorCreateFlags::BUFFER_DEVICE_ADDRESS, and the function",
            ),
            Self::ForeignPool => f.write_str("the pool is of another allocator"),
            Self::NotHostVisible { memory_type } => {
                write!(f, "the pool's memory type {memory_type} is not host-visible")
            }
            Self::PoolMemoryType { memory_type, memory_type_bits } => write!(
                f,
                "the pool's memory type {memory_type} is not one of those for the buffers: {memory_type_bits:#b}"
            ),
            Self::MemoryType(error) => write!(f, "there is no memory type for uploads: {error}"),
            Self::Pool(error) => write!(f, "there is no pool for the pages: {error}"),
        }
    }
}

impl Error for CreateUploadError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::MemoryType(error) => error.source(),
            Self::Pool(error) => error.source(),
            _ => None,
        }
    }
}

/// Why an arena has no room. Nothing was given out; free pages may have been given back to make room.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub enum UploadError {
    /// Zero bytes were asked for.
    ZeroSize,
    /// The alignment is not a power of two.
    Alignment {
        /// What was asked for.
        alignment: u64,
    },
    /// Pages are not aligned to as much in their mapping and in the device's addresses. Only the page size of the host
    /// is certain.
    AlignmentTooLarge {
        /// What was asked for.
        alignment: u64,
        /// What there is: [`UploadArena::max_alignment`](super::UploadArena::max_alignment).
        max: u64,
    },
    /// More was to be reserved in an arena than the heaps have that pages may be in.
    Reserve {
        /// What was asked for, in bytes.
        bytes: u64,
        /// Bytes of the pages that there are.
        reserved: u64,
        /// Bytes of those heaps together.
        heaps: u64,
    },
    /// More was asked for than a page, and [`Oversize::Error`](super::Oversize::Error) refuses that; or more than the
    /// host can address.
    Oversize {
        /// What was asked for, in bytes.
        size: u64,
        /// Bytes of a page.
        max: u64,
    },
    /// Another page would be more than the limit allows. Collecting pages helps.
    MemoryLimit {
        /// Bytes that all pages together may have.
        memory_limit: u64,
        /// Bytes of the pages that are not free.
        in_use: u64,
        /// Bytes of the page that is needed.
        needed: u64,
    },
    /// There is no memory for another page, or no buffer.
    Page(CreateError),
}

impl UploadError {
    /// Whether it may pass when the device is done with what it is doing: see
    /// [`UploadArena::wait_for_room`](super::UploadArena::wait_for_room).
    #[must_use]
    pub fn may_pass(&self) -> bool {
        match self {
            // What is more than the limit alone has no room at any time.
            Self::MemoryLimit { memory_limit, needed, .. } => needed <= memory_limit,
            Self::Page(error) => may_pass(error),
            _ => false,
        }
    }
}

/// As [`UploadError::may_pass`], of a buffer.
pub(super) fn may_pass(error: &CreateError) -> bool {
    match error {
        CreateError::Resource(error) => error.is_out_of_memory(),
        CreateError::Allocation(error) => match error {
            AllocationError::Full { .. } => true,
            AllocationError::Memory(MemoryError::HeapTooSmall { .. }) => false,
            AllocationError::Memory(error) => error.is_shortage(),
            AllocationError::Map(error) => error.is_out_of_memory(),
            _ => false,
        },
        _ => false,
    }
}

/// Whether another heap may still do.
pub(super) fn is_shortage(error: &CreateError) -> bool {
    matches!(error, CreateError::Allocation(error) if error.is_shortage())
}

impl fmt::Display for UploadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ZeroSize => f.write_str("an upload of zero bytes"),
            Self::Alignment { alignment } => write!(f, "the alignment {alignment} is not a power of two"),
            Self::AlignmentTooLarge { alignment, max } => write!(
                f,
                "an alignment of {alignment} was asked for, and a buffer for uploads begins at a multiple of {max}, in memory and addresses"
            ),
            Self::Reserve { bytes, reserved, heaps } => write!(
                f,
                "{bytes} bytes were to be reserved beside pages of {reserved}, and the heaps for pages have {heaps}"
            ),
            Self::Oversize { size, max } => {
                write!(f, "an upload of {size} bytes is larger than a page of {max}")
            }
            Self::MemoryLimit { memory_limit, in_use, needed } => write!(
                f,
                "with {in_use} bytes in use, a page of {needed} would be more than the limit of {memory_limit}"
            ),
            Self::Page(error) => write!(f, "there is no memory for another page: {error}"),
        }
    }
}

impl Error for UploadError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Page(error) => error.source(),
            _ => None,
        }
    }
}

/// Why uploads were not made visible to the device. Nothing was changed: the call may be made again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum FlushError {
    /// The ticket is of another clock than those that are waited for already.
    MixedClocks(MixedClocks),
    /// What the driver answered.
    Driver(DriverError),
}

impl fmt::Display for FlushError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MixedClocks(error) => error.fmt(f),
            Self::Driver(error) => write!(f, "what was uploaded is not visible to the device: {error}"),
        }
    }
}

impl Error for FlushError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::MixedClocks(_) => None,
            Self::Driver(error) => error.source(),
        }
    }
}

/// Why waiting for room came to nothing. What the wait found done was collected; else nothing was changed.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub enum WaitError<W> {
    /// There is no room, and no recording is left to wait for.
    NoRoom(UploadError),
    /// What the caller waited with failed.
    Wait(W),
    /// The caller has waited, and the clock still does not say that the ticket is done.
    NoProgress {
        /// What was waited for.
        ticket: Ticket,
    },
    /// What there is to wait for is of another clock: no wait would make this one say that it is done.
    OtherClock(OtherClock),
}

impl<W: fmt::Display> fmt::Display for WaitError<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoRoom(error) => write!(f, "there is nothing to wait for: {error}"),
            Self::Wait(error) => write!(f, "waiting for the device failed: {error}"),
            Self::NoProgress { ticket } => write!(f, "{ticket:?} was waited for and is not done"),
            Self::OtherClock(error) => error.fmt(f),
        }
    }
}

impl<W: Error + 'static> Error for WaitError<W> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::NoRoom(error) => error.source(),
            Self::Wait(error) => error.source(),
            Self::NoProgress { .. } | Self::OtherClock(_) => None,
        }
    }
}
