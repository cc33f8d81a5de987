//! Bytes that the host writes into a buffer.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use ash::vk;
use sublet::{Allocation, MapError};

use super::Buffer;
use super::body::{Body, Current, Kind};
use crate::device::{Core, LostDevice};

impl Buffer {
    /// Writes bytes by the host, at once, `offset` bytes from the start: for buffers in memory that the host reaches,
    /// while the device uses none of it. For other buffers, and while the device is at work, there is
    /// [`CommandList::upload`](crate::CommandList::upload).
    ///
    /// The device uses the buffer from the moment that a list does until [`Frames::begin`](crate::Frames::begin),
    /// [`collect`](crate::Frames::collect) or [`wait`](crate::Frames::wait) has taken the list back. A program that writes
    /// in each frame has a buffer for each [`slot`](crate::Frames::slot).
    ///
    /// Subscribers of a compactor must not call it: it would never return.
    ///
    /// ```
    /// # let (_gpu, frames) = sublet_frame::doc_example();
    /// use ash::vk;
    /// use sublet::{AllocationCreateFlags, AllocationCreateInfo, MemoryUsage};
    ///
    /// let info = vk::BufferCreateInfo::default().size(256).usage(vk::BufferUsageFlags::UNIFORM_BUFFER);
    /// let memory = AllocationCreateInfo {
    ///     flags: AllocationCreateFlags::HOST_ACCESS_SEQUENTIAL_WRITE,
    ///     ..AllocationCreateInfo::new(MemoryUsage::Auto)
    /// };
    /// // SAFETY: the create-info is valid.
    /// let constants = unsafe { frames.create_buffer(&info, &memory) }?;
    /// constants.write(16, &1.5_f32.to_le_bytes())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`WriteError`]: nothing was written.
    pub fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), WriteError> {
        let (core, size) = (self.core(), self.size());
        let count = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        if offset.checked_add(count).is_none_or(|end| end > size) {
            return Err(WriteError::OutOfRange { offset, count, size });
        }
        if bytes.is_empty() {
            return Ok(());
        }
        let written = self.current().alone(core, |body| {
            let allocation = body.own_allocation().ok_or(WriteError::NotHostVisible)?;
            // What is frozen is used by lists that do not say so.
            if !core.global.lock().can_be_replaced(body.id) {
                return Err(WriteError::InUse);
            }
            copy(core, allocation, offset, bytes).map_err(|error| core.told(WriteError::Map(error)))?;
            // It is there: the caller has it.
            let _ = core.global.lock().idle(body.id);
            Ok(())
        });
        written.unwrap_or(Err(WriteError::InUse))
    }
}

/// Writes bytes that were found to be within the allocation's buffer, and which nobody else reads or writes.
fn copy(core: &Core, allocation: &Allocation, offset: u64, bytes: &[u8]) -> Result<(), MapError> {
    let start = core.allocator.map_memory(allocation)?;
    let at = usize::try_from(offset).unwrap_or(usize::MAX);
    // SAFETY: the offset is within the buffer, which is within the allocation, which is mapped.
    let to = unsafe { start.cast::<u8>().add(at) };
    // SAFETY: as many bytes of the allocation begin there, and the lock that the caller holds keeps others from them.
    unsafe { to.copy_from_nonoverlapping(std::ptr::NonNull::from(bytes).cast(), bytes.len()) };
    let flushed = core.allocator.flush(allocation, offset, bytes.len().try_into().unwrap_or(u64::MAX));
    // SAFETY: it was mapped above, and the pointer is not used any more.
    let unmapped = unsafe { core.allocator.unmap_memory(allocation) };
    flushed.and(unmapped)
}

impl<K: Kind> Current<K> {
    /// Calls `f` while no list has the resource, or can take it. `None` if one has.
    fn alone<R>(&self, core: &Core, f: impl FnOnce(&Body<K>) -> R) -> Option<R> {
        // Lists that want it meanwhile wait for this lock.
        let _moving = core.moving.lock();
        self.with(|body| {
            if !body.seal() {
                return None;
            }
            // Lists that were submitted have a share until they are taken back.
            let alone = Arc::strong_count(body) == 1;
            fence(Ordering::Acquire);
            let answer = alone.then(|| f(body));
            body.unseal();
            answer
        })
    }
}

/// Why the host did not write into a buffer. Nothing was changed.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum WriteError {
    /// The device is lost.
    Lost,
    /// The bytes end beyond the buffer.
    OutOfRange {
        /// Where they start.
        offset: u64,
        /// How many there are.
        count: u64,
        /// Bytes of the buffer.
        size: u64,
    },
    /// The memory is not the buffer's own, or may be moved: it was made without host access.
    NotHostVisible,
    /// A list uses the buffer that is being recorded, or is in flight, or was not taken back; or the buffer is frozen.
    InUse,
    /// The memory cannot be mapped or flushed.
    Map(MapError),
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lost => f.write_str("the device is lost"),
            Self::OutOfRange { offset, count, size } => {
                write!(f, "{count} bytes from {offset} on end beyond the buffer, which has {size}")
            }
            Self::NotHostVisible => f.write_str(
                "the buffer was made without host access: upload to it, or make it with `HOST_ACCESS_SEQUENTIAL_WRITE`",
            ),
            Self::InUse => f.write_str("a list may still use the buffer: wait, or have one for each frame in flight"),
            Self::Map(error) => error.fmt(f),
        }
    }
}

impl Error for WriteError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Lost => Some(&vk::Result::ERROR_DEVICE_LOST),
            Self::Map(error) => error.source(),
            _ => None,
        }
    }
}

impl LostDevice for WriteError {
    const LOST: Self = Self::Lost;
}
