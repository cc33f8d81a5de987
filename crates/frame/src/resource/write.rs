//! Host writes into buffers.
#![expect(unsafe_code, reason = "calls Vulkan")]

use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use ash::vk;
use sublet::{Allocation, MapError};

use super::Buffer;
use super::body::{Body, CurrentBody, ResourceClass};
use crate::device::{DeviceCore, LostDevice};

impl Buffer {
    /// Writes bytes at `offset` from the host, immediately. The memory must be host-visible, and the device must not
    /// use the buffer. Otherwise use [`CommandList::upload`](crate::CommandList::upload).
    ///
    /// A buffer is in use from its first use by a list until [`Frames::begin`](crate::Frames::begin),
    /// [`collect`](crate::Frames::collect) or [`wait`](crate::Frames::wait) has recycled that list. A program that
    /// writes in each frame needs one buffer for each [`slot`](crate::Frames::slot).
    ///
    /// Subscribers of a compactor must not call this function: it would deadlock.
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
    /// See [`WriteError`]; nothing was written.
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
            // Lists use frozen resources without declaration.
            if !core.global.lock().can_be_replaced(body.id) {
                return Err(WriteError::InUse);
            }
            copy(core, allocation, offset, bytes).map_err(|error| core.or_lost(WriteError::Map(error)))?;
            // Cannot fail: the caller has the resource.
            let _ = core.global.lock().idle(body.id);
            Ok(())
        });
        written.unwrap_or(Err(WriteError::InUse))
    }
}

/// Copies bytes into the allocation. The caller has checked the range and excludes other users.
fn copy(core: &DeviceCore, allocation: &Allocation, offset: u64, bytes: &[u8]) -> Result<(), MapError> {
    let start = core.allocator.map_memory(allocation)?;
    let at = usize::try_from(offset).unwrap_or(usize::MAX);
    // SAFETY: the offset is within the buffer, which is within the allocation, which is mapped.
    let to = unsafe { start.cast::<u8>().add(at) };
    // SAFETY: the allocation has this many bytes from there, and the caller's lock excludes other users.
    unsafe { to.copy_from_nonoverlapping(std::ptr::NonNull::from(bytes).cast(), bytes.len()) };
    let flushed = core.allocator.flush(allocation, offset, bytes.len().try_into().unwrap_or(u64::MAX));
    // SAFETY: it was mapped above, and the pointer is not used any more.
    let unmapped = unsafe { core.allocator.unmap_memory(allocation) };
    flushed.and(unmapped)
}

impl<K: ResourceClass> CurrentBody<K> {
    /// Calls `f` while no list uses the resource, and prevents that one begins to. Returns `None` if a list uses it.
    fn alone<R>(&self, core: &DeviceCore, f: impl FnOnce(&Body<K>) -> R) -> Option<R> {
        // A list that begins to use the resource meanwhile waits for this lock.
        let _moving = core.moving.lock();
        self.with(|body| {
            if !body.close() {
                return None;
            }
            // Submitted lists hold an `Arc` of the body until they are recycled.
            let alone = Arc::strong_count(body) == 1;
            fence(Ordering::Acquire);
            let answer = alone.then(|| f(body));
            body.reopen();
            answer
        })
    }
}

/// An error of [`Buffer::write`]. Nothing was written.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum WriteError {
    /// The device is lost.
    Lost,
    /// The bytes exceed the buffer.
    OutOfRange {
        /// The requested offset.
        offset: u64,
        /// The number of bytes.
        count: u64,
        /// The size of the buffer in bytes.
        size: u64,
    },
    /// The memory is shared or movable, or was allocated without host access.
    NotHostVisible,
    /// A list uses the buffer and is open, in flight or not recycled yet; or the buffer is frozen.
    InUse,
    /// Mapping or flushing the memory failed.
    Map(MapError),
}

sublet_engines::errors! { WriteError:
    Lost => "the device is lost" from &vk::Result::ERROR_DEVICE_LOST;
    OutOfRange { offset, count, size } => "{count} bytes at offset {offset} exceed the buffer of {size} bytes";
    NotHostVisible => "the buffer has no host access: use an upload, or create it with `HOST_ACCESS_SEQUENTIAL_WRITE`";
    InUse => "a list may still use the buffer: wait, or use one buffer for each frame in flight";
    Map(error) => "{error}";
}

impl LostDevice for WriteError {
    const LOST: Self = Self::Lost;
}
