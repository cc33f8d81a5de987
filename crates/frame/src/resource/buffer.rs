//! Buffers with shared ownership.
#![expect(unsafe_code, reason = "calls Vulkan")]

use std::any::Any;
use std::fmt;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::{Arc, Weak};

use ash::vk;
use sublet::device::DriverError;
use sublet::{Allocation, AllocationCreateFlags, AllocationCreateInfo, CreateError, MemoryUsage, Move};

use super::body::{Body, BufferClass, CurrentBody, DebugName};
use super::memory::{Movable, ResourceMemory};
use super::{CreateResourceError, SharedMemory, ViewError};
use crate::device::DeviceCore;
use crate::track::{BufferId, BufferInfo, MemoryRange};

/// Returns true if the allocation permits moves: it has no host access, is in a default block of its memory type, and
/// the allocator has bound it.
pub(super) fn may_move(info: &AllocationCreateInfo<'_>, made: &Allocation) -> bool {
    let stays = AllocationCreateFlags::CAN_ALIAS | AllocationCreateFlags::DONT_BIND;
    let default = info.pool.is_none() && info.scope.is_none() && !is_mapped(info);
    default && !info.flags.intersects(stays) && !made.is_dedicated() && made.mapped_pointer().is_none()
}

/// Returns true if the host may map the allocation.
pub(super) fn is_mapped(info: &AllocationCreateInfo<'_>) -> bool {
    let access = AllocationCreateFlags::HOST_ACCESS_RANDOM
        | AllocationCreateFlags::HOST_ACCESS_SEQUENTIAL_WRITE
        | AllocationCreateFlags::MAPPED;
    // These usages permit mapping without flags.
    info.flags.intersects(access)
        || matches!(info.usage, MemoryUsage::CpuOnly | MemoryUsage::CpuToGpu | MemoryUsage::GpuToCpu)
        || info.required_flags.contains(vk::MemoryPropertyFlags::HOST_VISIBLE)
}

#[derive(Debug)]
pub(crate) struct BufferFacts {
    flags: vk::BufferCreateFlags,
    pub(crate) size: u64,
    pub(crate) usage: vk::BufferUsageFlags,
    sharing_mode: vk::SharingMode,
    families: Box<[u32]>,
}

impl BufferFacts {
    /// # Safety
    /// `info` is valid.
    unsafe fn of(info: &vk::BufferCreateInfo<'_>) -> Self {
        Self {
            flags: info.flags,
            size: info.size,
            usage: info.usage,
            sharing_mode: info.sharing_mode,
            // SAFETY: the caller's own promise.
            families: unsafe {
                families(info.sharing_mode, info.p_queue_family_indices, info.queue_family_index_count)
            },
        }
    }

    /// Returns the create-info without its `pNext` chain.
    pub(crate) fn create_info(&self) -> vk::BufferCreateInfo<'_> {
        vk::BufferCreateInfo::default()
            .flags(self.flags)
            .size(self.size)
            .usage(self.usage)
            .sharing_mode(self.sharing_mode)
            .queue_family_indices(&self.families)
    }

    pub(crate) fn is_concurrent(&self) -> bool {
        self.sharing_mode == vk::SharingMode::CONCURRENT
    }

    /// Returns true if an equal buffer can be created and filled by a copy.
    fn may_move(&self, info: &vk::BufferCreateInfo<'_>) -> bool {
        let copied = vk::BufferUsageFlags::TRANSFER_SRC | vk::BufferUsageFlags::TRANSFER_DST;
        // Acceleration structures and micromaps contain addresses.
        let stays = vk::BufferUsageFlags::ACCELERATION_STRUCTURE_STORAGE_KHR
            | vk::BufferUsageFlags::MICROMAP_STORAGE_EXT;
        self.usage.contains(copied)
            && !self.usage.intersects(stays)
            && self.flags.is_empty()
            && info.p_next.is_null()
    }
}

/// Returns the families that share a resource.
///
/// # Safety
/// If the mode is concurrent, `first` points to `count` families.
pub(super) unsafe fn families(mode: vk::SharingMode, first: *const u32, count: u32) -> Box<[u32]> {
    let count = usize::try_from(count).unwrap_or(0);
    if mode != vk::SharingMode::CONCURRENT || first.is_null() || count == 0 {
        return Box::default();
    }
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(first, count) }.into()
}

pub(crate) struct BufferInner {
    core: Arc<DeviceCore>,
    facts: BufferFacts,
    current: CurrentBody<BufferClass>,
    name: DebugName,
}

/// A buffer that may have been destroyed.
pub(crate) struct WeakBuffer(Weak<BufferInner>);

impl WeakBuffer {
    pub(crate) fn upgrade(&self) -> Option<Buffer> {
        self.0.upgrade().map(Buffer)
    }
}

/// A buffer with its memory and its tracked state. Cheap to clone: a clone is the same buffer.
///
/// Dropping the last clone destroys the buffer and frees its memory. Lists that use it hold a clone until the device is
/// done with them, so you may drop it at any time. Call [`keep_buffer`](crate::CommandList::keep_buffer) for uses that
/// a list cannot see, such as an address in another buffer or a descriptor of a heap.
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
pub struct Buffer(Arc<BufferInner>);

impl Buffer {
    /// # Safety
    /// `info` is valid for the device.
    #[track_caller]
    pub(crate) unsafe fn create(
        core: &Arc<DeviceCore>,
        info: &vk::BufferCreateInfo<'_>,
        allocation: &AllocationCreateInfo<'_>,
    ) -> Result<Self, CreateError> {
        // SAFETY: the caller's promise.
        let (handle, made) = unsafe { core.allocator.create_buffer(info, allocation) }?;
        // SAFETY: as above.
        let facts = unsafe { BufferFacts::of(info) };
        let movable = facts.may_move(info) && may_move(allocation, &made);
        let buffer = Self::register(core, handle, facts, ResourceMemory::own(made, movable));
        if let Some(unwritten) = core.info.unwritten.as_ref().filter(|_| is_mapped(allocation)) {
            // Host writes are not tracked.
            unwritten.mark(buffer.id().into());
        }
        Ok(buffer)
    }

    /// # Safety
    /// `info` is valid for the device, and the memory is not dedicated to another resource.
    pub(crate) unsafe fn create_in(
        core: &Arc<DeviceCore>,
        memory: &SharedMemory,
        offset: u64,
        info: &vk::BufferCreateInfo<'_>,
    ) -> Result<Self, CreateResourceError> {
        if !memory.belongs_to(core) {
            return Err(CreateResourceError::OtherFrames);
        }
        let allocation = memory.allocation();
        // SAFETY: the caller's promise; lists declare their uses, and the tracker orders aliased resources.
        let handle = unsafe { core.allocator.create_aliasing_buffer(allocation, offset, info) }?;
        // SAFETY: the buffer was just created.
        let size = unsafe { core.api.device().get_buffer_memory_requirements(handle) }.size;
        let range = MemoryRange { memory: allocation.memory(), offset: allocation.offset() + offset, size };
        // SAFETY: the caller's promise.
        let facts = unsafe { BufferFacts::of(info) };
        Ok(Self::register(core, handle, facts, ResourceMemory::Shared { memory: memory.clone(), range }))
    }

    /// # Safety
    /// See [`Allocator::import_host_buffer`](sublet::Allocator::import_host_buffer). The memory stays valid until
    /// `owner` is dropped.
    #[track_caller]
    pub(crate) unsafe fn import_host(
        core: &Arc<DeviceCore>,
        info: &vk::BufferCreateInfo<'_>,
        memory: NonNull<[u8]>,
        owner: Box<dyn Any + Send + Sync>,
    ) -> Result<Self, CreateResourceError> {
        // SAFETY: the caller's promise. The body drops the owner after it has destroyed the buffer.
        let (handle, made) = unsafe { core.allocator.import_host_buffer(info, memory, None) }?;
        // SAFETY: as above.
        let facts = unsafe { BufferFacts::of(info) };
        let buffer = Self::register(core, handle, facts, ResourceMemory::Host(Some(made), owner));
        if let Some(unwritten) = &core.info.unwritten {
            // Host writes are not tracked.
            unwritten.mark(buffer.id().into());
        }
        Ok(buffer)
    }

    /// Wraps a buffer without ownership.
    ///
    /// # Safety
    /// It was created from `info`, which is valid, and outlives all clones.
    pub(crate) unsafe fn import(
        core: &Arc<DeviceCore>,
        handle: vk::Buffer,
        info: &vk::BufferCreateInfo<'_>,
    ) -> Self {
        // SAFETY: the caller's promise.
        let facts = unsafe { BufferFacts::of(info) };
        Self::register(core, handle, facts, ResourceMemory::Foreign)
    }

    fn register(
        core: &Arc<DeviceCore>,
        handle: vk::Buffer,
        facts: BufferFacts,
        memory: ResourceMemory,
    ) -> Self {
        let current = CurrentBody::new(Self::body(core, handle, &facts, memory));
        let buffer = Self(Arc::new(BufferInner {
            core: Arc::clone(core),
            facts,
            current,
            name: DebugName::default(),
        }));
        if let Some(id) = buffer.0.current.movable_memory().and_then(|memory| memory.id()) {
            core.movables.insert(id, Movable::Buffer(WeakBuffer(Arc::downgrade(&buffer.0))));
        }
        buffer
    }

    fn body(
        core: &Arc<DeviceCore>,
        handle: vk::Buffer,
        facts: &BufferFacts,
        memory: ResourceMemory,
    ) -> Body<BufferClass> {
        let (concurrent, memory_range) = (facts.is_concurrent(), memory.shared_range());
        let known = BufferInfo { concurrent, memory_range, ..BufferInfo::new(handle, facts.size) };
        let id = core.global.lock().add_buffer(&known);
        Body::new(core, handle, id, memory)
    }

    /// Returns the current handle. A move by a [`Compactor`](crate::Compactor) changes it.
    #[inline]
    #[must_use]
    pub fn handle(&self) -> vk::Buffer {
        self.0.current.handle()
    }

    /// Returns its id in the tracker, which changes together with [`handle`](Self::handle).
    #[inline]
    #[must_use]
    pub fn id(&self) -> BufferId {
        self.0.current.id()
    }

    /// Returns the size in bytes.
    #[inline]
    #[must_use]
    pub fn size(&self) -> u64 {
        self.0.facts.size
    }

    /// Returns the usage flags.
    #[must_use]
    pub fn usage(&self) -> vk::BufferUsageFlags {
        self.0.facts.usage
    }

    /// Returns its memory; `None` if it is imported or [movable](Self::is_movable).
    #[must_use]
    pub fn allocation(&self) -> Option<&Allocation> {
        self.0.current.allocation()
    }

    /// Returns its current memory range; `None` if it is imported.
    #[must_use]
    pub fn memory_range(&self) -> Option<MemoryRange> {
        self.0.current.memory_range()
    }

    /// Returns true if a [`Compactor`](crate::Compactor) may move it.
    #[must_use]
    pub fn is_movable(&self) -> bool {
        self.0.current.is_free()
    }

    /// Pins or unpins the buffer. After `pin(true)` returns, no [`Compactor`](crate::Compactor) moves it.
    ///
    /// Subscribers of a compactor must not call this function: it would deadlock.
    pub fn pin(&self, pinned: bool) {
        self.0.current.pin(&self.0.core, pinned);
    }

    /// Sets a debug name for tools such as RenderDoc and validation layers. The name survives moves by a
    /// [`Compactor`](crate::Compactor). Without [`Features::debug_utils`](crate::Features::debug_utils), the driver
    /// does not get it.
    ///
    /// Subscribers of a compactor must not call this function: it would deadlock.
    ///
    /// # Errors
    /// [`DriverError`] if the driver call fails; the name stays unchanged.
    #[doc(alias = "vkSetDebugUtilsObjectNameEXT")]
    #[doc(alias = "SetName")]
    pub fn set_name(&self, name: &str) -> Result<(), DriverError> {
        self.0.name.set(&self.0.core, &self.0.current, name)
    }

    /// Returns its [debug name](Self::set_name).
    #[must_use]
    pub fn name(&self) -> Option<String> {
        self.0.name.get()
    }

    /// Returns a texel view, created on first use and destroyed with the buffer.
    ///
    /// # Safety
    /// The buffer supports the view (VUID-VkBufferViewCreateInfo-offset-00925 and those that follow), and does not move
    /// while the caller uses the view.
    pub(crate) unsafe fn texel_view(
        &self,
        format: vk::Format,
        range: Range<u64>,
    ) -> Result<vk::BufferView, ViewError> {
        let (core, key) = (self.core(), (format, range.start, range.end - range.start));
        self.current().with(|body| {
            let mut views = body.views.lock();
            if let Some((_, view)) = views.texels.iter().find(|(known, _)| *known == key) {
                return Ok(*view);
            }
            let info = vk::BufferViewCreateInfo::default()
                .buffer(body.handle)
                .format(format)
                .offset(range.start)
                .range(key.2);
            // SAFETY: the buffer is live, and the caller promises the rest.
            let made = unsafe { core.api.device().create_buffer_view(&info, None) };
            let refused =
                |result| core.or_lost(ViewError::Driver(DriverError { call: "vkCreateBufferView", result }));
            let view = made.map_err(refused)?;
            views.texels.push((key, view));
            Ok(view)
        })
    }

    /// Creates an equal body at the destination of a move. If it is dropped before the old body, the move is rolled
    /// back; if the old body is dropped first, the move is completed. Returns `None` if the buffer is not movable.
    pub(crate) fn begin_move(&self, moved: Move<'static>) -> Result<Option<Body<BufferClass>>, CreateError> {
        let Self(inner) = self;
        let Some(memory) = inner.current.movable_memory() else { return Ok(None) };
        // SAFETY: the buffer was created from this info. `MovableMemory` ensures that the new buffer is destroyed
        // before a rollback.
        let handle = unsafe { moved.create_buffer(&inner.facts.create_info()) }?;
        inner.name.pass_on(&inner.core, handle);
        memory.begin_move(moved, vk::Handle::as_raw(handle));
        Ok(Some(Self::body(&inner.core, handle, &inner.facts, ResourceMemory::Movable(Arc::clone(memory)))))
    }

    pub(crate) fn current(&self) -> &CurrentBody<BufferClass> {
        &self.0.current
    }

    pub(crate) fn core(&self) -> &Arc<DeviceCore> {
        &self.0.core
    }
}

impl PartialEq for Buffer {
    /// Returns true if both are the same buffer.
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Buffer {}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Buffer")
            .field("handle", &self.handle())
            .field("size", &self.size())
            .finish_non_exhaustive()
    }
}
