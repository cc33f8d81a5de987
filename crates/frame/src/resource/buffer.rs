//! A buffer that destroys itself.

use std::fmt;
use std::sync::Arc;

use ash::vk;
use sublet::{Allocation, AllocationCreateInfo, CreateError};

use super::memory::Memory;
use super::{CreateResourceError, SharedMemory};
use crate::device::Core;
use crate::track::{BufferId, BufferInfo, Place};

struct Inner {
    core: Arc<Core>,
    handle: vk::Buffer,
    id: BufferId,
    size: u64,
    usage: vk::BufferUsageFlags,
    memory: Memory,
}

/// A buffer with its memory and its place in the books of states. Cheap to clone: a clone is the same buffer.
///
/// It is destroyed and its memory freed when the last clone goes. Lists that use it have one until the device is done
/// with them, so that it may be dropped at any time. What a list does not know of, as an address in another buffer or a
/// descriptor of a heap, has to be [kept](crate::CommandList::keep) by the list.
///
/// ```
/// # let (_gpu, frames) = sublet_frame::doc_example();
/// use ash::vk;
/// use sublet::{AllocationCreateInfo, MemoryUsage};
///
/// let info = vk::BufferCreateInfo::default().size(4096).usage(vk::BufferUsageFlags::TRANSFER_DST);
/// // SAFETY: the create-info is valid.
/// let buffer = unsafe { frames.create_buffer(&info, &AllocationCreateInfo::new(MemoryUsage::Auto)) }?;
/// let same = buffer.clone();
/// assert_eq!(same.handle(), buffer.handle());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Buffer(Arc<Inner>);

impl Buffer {
    /// # Safety
    /// `info` is valid for the device.
    #[track_caller]
    pub(crate) unsafe fn create(
        core: &Arc<Core>,
        info: &vk::BufferCreateInfo<'_>,
        allocation: &AllocationCreateInfo<'_>,
    ) -> Result<Self, CreateError> {
        // SAFETY: the caller's promise.
        let (handle, allocation) = unsafe { core.allocator.create_buffer(info, allocation) }?;
        Ok(Self::register(core, handle, info, Memory::Own(Some(allocation))))
    }

    /// # Safety
    /// `info` is valid for the device, and the memory is not dedicated to another resource.
    pub(crate) unsafe fn create_in(
        core: &Arc<Core>,
        memory: &SharedMemory,
        offset: u64,
        info: &vk::BufferCreateInfo<'_>,
    ) -> Result<Self, CreateResourceError> {
        if !memory.is_of(core) {
            return Err(CreateResourceError::OtherFrames);
        }
        let allocation = memory.allocation();
        // SAFETY: the caller's promise; what is in the memory is used in turns, as lists declare it.
        let handle = unsafe { core.allocator.create_aliasing_buffer(allocation, offset, info) }?;
        // SAFETY: the buffer was made just now.
        let size = unsafe { core.api.device().get_buffer_memory_requirements(handle) }.size;
        let place = Place { memory: allocation.memory(), offset: allocation.offset() + offset, size };
        Ok(Self::register(core, handle, info, Memory::Shared { memory: memory.clone(), place }))
    }

    /// A buffer that is somebody else's.
    ///
    /// # Safety
    /// It was made from `info` and lives for as long as any clone.
    pub(crate) unsafe fn import(
        core: &Arc<Core>,
        handle: vk::Buffer,
        info: &vk::BufferCreateInfo<'_>,
    ) -> Self {
        Self::register(core, handle, info, Memory::Foreign)
    }

    fn register(
        core: &Arc<Core>,
        handle: vk::Buffer,
        info: &vk::BufferCreateInfo<'_>,
        memory: Memory,
    ) -> Self {
        let concurrent = info.sharing_mode == vk::SharingMode::CONCURRENT;
        let known = BufferInfo { concurrent, place: memory.place(), ..BufferInfo::new(handle, info.size) };
        let id = core.submitter.lock().global.add_buffer(&known);
        let core = Arc::clone(core);
        Self(Arc::new(Inner { core, handle, id, size: info.size, usage: info.usage, memory }))
    }

    /// The buffer itself.
    #[inline]
    #[must_use]
    pub fn handle(&self) -> vk::Buffer {
        self.0.handle
    }

    /// Its name in the books of states.
    #[inline]
    #[must_use]
    pub fn id(&self) -> BufferId {
        self.0.id
    }

    /// In bytes.
    #[inline]
    #[must_use]
    pub fn size(&self) -> u64 {
        self.0.size
    }

    /// What it was made for.
    #[must_use]
    pub fn usage(&self) -> vk::BufferUsageFlags {
        self.0.usage
    }

    /// Its memory; `None` if it is somebody else's.
    #[must_use]
    pub fn allocation(&self) -> Option<&Allocation> {
        self.0.memory.allocation()
    }

    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.0.core
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // It was there from the start, and nobody else removes it.
        let _ = self.core.submitter.lock().global.remove(self.id);
        match &mut self.memory {
            Memory::Own(allocation) => {
                let Some(allocation) = allocation.take() else { return };
                // SAFETY: lists in flight would have a clone, so the device is done with it.
                if let Err(error) = unsafe { self.core.allocator.destroy_buffer(self.handle, allocation) } {
                    tracing::warn!(name: "free_refused", target: "sublet::leak", %error, "the memory of a buffer was not freed");
                }
            }
            // SAFETY: as above; the memory goes with the last resource in it.
            Memory::Shared { .. } => unsafe { self.core.api.device().destroy_buffer(self.handle, None) },
            Memory::Foreign => {}
        }
    }
}

impl PartialEq for Buffer {
    /// Whether both are the same buffer.
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Buffer {}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Buffer")
            .field("handle", &self.0.handle)
            .field("size", &self.0.size)
            .finish_non_exhaustive()
    }
}
