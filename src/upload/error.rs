//! Errors of arenas.

use std::error::Error;
use std::fmt;

use crate::device::DriverError;
use crate::error::{
    AllocationError, CreateError, CreatePoolError, FindMemoryTypeError, MapError, MemoryError,
};
use crate::retire::{MixedClocks, OtherClock, Ticket};

/// The [`UploadArena`](super::UploadArena) was not created. Nothing is left behind.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub enum CreateUploadError {
    /// The size of a page is zero, or does not fit the host's address space.
    Size {
        /// The requested size in bytes.
        size: u64,
    },
    /// A page is one buffer, and the size exceeds the device's `maxBufferSize`
    /// ([`max_buffer_size`](crate::Allocator::max_buffer_size)).
    BufferTooLarge {
        /// The requested size in bytes.
        size: u64,
        /// The maximum size of a buffer in bytes.
        max: u64,
    },
    /// The usage flags are empty.
    NoUsage,
    /// The memory limit is below the size of one page.
    Limit {
        /// The requested limit in bytes.
        memory_limit: u64,
        /// The size of a page in bytes.
        page_size: u64,
    },
    /// Device addresses were requested, but the allocator was created without
    /// [`BUFFER_DEVICE_ADDRESS`](crate::AllocatorCreateFlags::BUFFER_DEVICE_ADDRESS) or did not find the function.
    DeviceAddress,
    /// The pool belongs to another allocator.
    ForeignPool,
    /// The pool's memory type cannot be mapped.
    NotHostVisible {
        /// The pool's memory type.
        memory_type: u32,
    },
    /// Buffers with this usage do not support the pool's memory type.
    PoolMemoryType {
        /// The pool's memory type.
        memory_type: u32,
        /// The supported memory types, one bit each.
        memory_type_bits: u32,
    },
    /// No memory type fits, or the driver did not report the requirements of a buffer.
    MemoryType(FindMemoryTypeError),
    /// The pool for the pages could not be created.
    Pool(CreatePoolError),
}

sublet_engines::errors! { CreateUploadError:
    Size { size } => "{size} bytes are no size for a page";
    BufferTooLarge { size, max } => "a page of {size} bytes is above maxBufferSize, which is {max} on this device";
    NoUsage => "the buffers are not to be used for anything";
    Limit { memory_limit, page_size } => "a limit of {memory_limit} bytes is below one page of {page_size}";
    DeviceAddress =>
        "device addresses need an allocator made with AllocatorCreateFlags::BUFFER_DEVICE_ADDRESS, and the function";
    ForeignPool => "the pool is of another allocator";
    NotHostVisible { memory_type } => "the pool's memory type {memory_type} is not host-visible";
    PoolMemoryType { memory_type, memory_type_bits } =>
        "the pool's memory type {memory_type} is not one of those for the buffers: {memory_type_bits:#b}";
    MemoryType(error) => "there is no memory type for uploads: {error}";
    Pool(error) => "there is no pool for the pages: {error}";
}

/// The arena has no space. Nothing was allocated; free pages may have been destroyed to make space.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub enum UploadError {
    /// Zero bytes were requested.
    ZeroSize,
    /// The alignment is not a power of two.
    Alignment {
        /// The requested alignment.
        alignment: u64,
    },
    /// Pages have a smaller alignment in their mapping or in device addresses. Only the page size of the host is
    /// guaranteed.
    AlignmentTooLarge {
        /// The requested alignment.
        alignment: u64,
        /// The maximum alignment: [`UploadArena::max_alignment`](super::UploadArena::max_alignment).
        max: u64,
    },
    /// The reservation exceeds the size of all usable heaps.
    Reserve {
        /// The requested size in bytes.
        bytes: u64,
        /// The size of the existing pages in bytes.
        reserved: u64,
        /// The size of the usable heaps in bytes.
        heaps: u64,
    },
    /// The request is larger than a page and [`Oversize::Error`](super::Oversize::Error) is set, or it does not fit the
    /// host's address space.
    Oversize {
        /// The requested size in bytes.
        size: u64,
        /// The size of a page in bytes.
        max: u64,
    },
    /// Another page would exceed the memory limit. Collecting pages helps.
    MemoryLimit {
        /// The maximum size of all pages together, in bytes.
        memory_limit: u64,
        /// The size of the pages that cannot make room, in bytes: those in use, and for a reservation also the free
        /// pages that it counts.
        in_use: u64,
        /// The size of the required page in bytes.
        needed: u64,
    },
    /// The memory or the buffer of another page could not be created.
    Page(CreateError),
}

impl UploadError {
    /// Returns true if the error may pass when the device has completed its current work: see
    /// [`UploadArena::wait_for_space`](super::UploadArena::wait_for_space).
    #[must_use]
    pub fn may_pass(&self) -> bool {
        match self {
            // A page that alone exceeds the limit never fits.
            Self::MemoryLimit { memory_limit, needed, .. } => needed <= memory_limit,
            Self::Page(error) => may_pass(error),
            _ => false,
        }
    }
}

/// [`UploadError::may_pass`] for the creation of a buffer.
pub(super) fn may_pass(error: &CreateError) -> bool {
    match error {
        CreateError::Resource(error) => error.is_out_of_memory(),
        CreateError::Allocation(error) => match error {
            AllocationError::Full { .. } => true,
            AllocationError::Memory(MemoryError::HeapTooSmall { .. }) => false,
            AllocationError::Memory(error) => error.is_shortage(),
            AllocationError::Map(error @ MapError::AddressSpace { .. }) => error.is_out_of_addresses(),
            AllocationError::Map(MapError::Driver(error)) => error.is_out_of_memory(),
            _ => false,
        },
        _ => false,
    }
}

/// Returns true if another heap may have space.
pub(super) fn is_shortage(error: &CreateError) -> bool {
    matches!(error, CreateError::Allocation(error) if error.is_shortage())
}

sublet_engines::errors! { UploadError:
    ZeroSize => "an upload of zero bytes";
    Alignment { alignment } => "the alignment {alignment} is not a power of two";
    AlignmentTooLarge { alignment, max } =>
        "an alignment of {alignment} was asked for, and a buffer for uploads begins at a multiple of {max}, in memory \
         and addresses";
    Reserve { bytes, reserved, heaps } =>
        "{bytes} bytes were to be reserved beside pages of {reserved}, and the heaps for pages have {heaps}";
    Oversize { size, max } => "an upload of {size} bytes is larger than a page of {max}";
    MemoryLimit { memory_limit, in_use, needed } =>
        "with {in_use} bytes in use or reserved, a page of {needed} would be more than the limit of {memory_limit}";
    Page(error) => "there is no memory for another page: {error}";
}

/// Uploads were not made visible to the device. Nothing was changed, so the caller may retry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum FlushError {
    /// The ticket belongs to another clock than the pending tickets.
    MixedClocks(MixedClocks),
    /// The driver's error.
    Driver(DriverError),
}

sublet_engines::errors! { FlushError:
    MixedClocks(error) => "{error}";
    Driver(error) => "what was uploaded is not visible to the device: {error}";
}

/// Waiting for space failed. Everything that was done was collected; nothing else changed.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub enum WaitError<W> {
    /// There is no space, and no recording is left to wait for.
    NoRoom(UploadError),
    /// The caller's `wait` failed.
    Wait(W),
    /// The caller has waited, but the clock still does not report the ticket as done.
    NoProgress {
        /// The ticket that was waited for.
        ticket: Ticket,
    },
    /// The pending tickets belong to another clock.
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
