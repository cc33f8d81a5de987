//! A buffer that destroys itself.

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Weak};

use ash::vk;
use sublet::device::DriverError;
use sublet::{Allocation, AllocationCreateFlags, AllocationCreateInfo, CreateError, MemoryUsage, Move};

use super::body::{Body, Buffers, Current, Name};
use super::memory::{Memory, Movable};
use super::{CreateResourceError, SharedMemory, ViewError};
use crate::device::Core;
use crate::track::{BufferId, BufferInfo, Place};

/// Whether what is allocated so may be moved, as far as that goes: it is of no use to the host, in the default memory of
/// its type, and bound by the allocator.
pub(super) fn may_move(info: &AllocationCreateInfo<'_>, made: &Allocation) -> bool {
    let stays = AllocationCreateFlags::CAN_ALIAS | AllocationCreateFlags::DONT_BIND;
    let default = info.pool.is_none() && info.scope.is_none() && !is_mapped(info);
    default && !info.flags.intersects(stays) && !made.is_dedicated() && made.mapped_pointer().is_none()
}

/// Whether the host may map what is allocated so.
pub(super) fn is_mapped(info: &AllocationCreateInfo<'_>) -> bool {
    let access = AllocationCreateFlags::HOST_ACCESS_RANDOM
        | AllocationCreateFlags::HOST_ACCESS_SEQUENTIAL_WRITE
        | AllocationCreateFlags::MAPPED;
    // The usages let the host map it without saying so in flags.
    info.flags.intersects(access)
        || matches!(info.usage, MemoryUsage::CpuOnly | MemoryUsage::CpuToGpu | MemoryUsage::GpuToCpu)
        || info.required_flags.contains(vk::MemoryPropertyFlags::HOST_VISIBLE)
}

/// What a buffer was made from.
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

    /// As it was, but for what extends it.
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

    /// Whether another one can be made like it, and the contents copied.
    fn may_move(&self, info: &vk::BufferCreateInfo<'_>) -> bool {
        let copied = vk::BufferUsageFlags::TRANSFER_SRC | vk::BufferUsageFlags::TRANSFER_DST;
        // What is built in them knows where they are.
        let stays = vk::BufferUsageFlags::ACCELERATION_STRUCTURE_STORAGE_KHR
            | vk::BufferUsageFlags::MICROMAP_STORAGE_EXT;
        self.usage.contains(copied)
            && !self.usage.intersects(stays)
            && self.flags.is_empty()
            && info.p_next.is_null()
    }
}

/// The families that share a resource.
///
/// # Safety
/// Where the mode is concurrent, there are as many families.
pub(super) unsafe fn families(mode: vk::SharingMode, first: *const u32, count: u32) -> Box<[u32]> {
    let count = usize::try_from(count).unwrap_or(0);
    if mode != vk::SharingMode::CONCURRENT || first.is_null() || count == 0 {
        return Box::default();
    }
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(first, count) }.into()
}

pub(crate) struct BufferInner {
    core: Arc<Core>,
    facts: BufferFacts,
    current: Current<Buffers>,
    name: Name,
}

/// A buffer that may be gone.
pub(crate) struct WeakBuffer(Weak<BufferInner>);

impl WeakBuffer {
    pub(crate) fn upgrade(&self) -> Option<Buffer> {
        self.0.upgrade().map(Buffer)
    }
}

/// A buffer with its memory and its place in the books of states. Cheap to clone: a clone is the same buffer.
///
/// It is destroyed and its memory freed when the last clone goes. Lists that use it have one until the device is done
/// with them, so that it may be dropped at any time. What a list does not know of, as an address in another buffer or a
/// descriptor of a heap, has to be [kept](crate::CommandList::keep_buffer) by the list.
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
        core: &Arc<Core>,
        info: &vk::BufferCreateInfo<'_>,
        allocation: &AllocationCreateInfo<'_>,
    ) -> Result<Self, CreateError> {
        // SAFETY: the caller's promise.
        let (handle, made) = unsafe { core.allocator.create_buffer(info, allocation) }?;
        // SAFETY: as above.
        let facts = unsafe { BufferFacts::of(info) };
        let movable = facts.may_move(info) && may_move(allocation, &made);
        let buffer = Self::register(core, handle, facts, Memory::own(made, movable));
        if let Some(unwritten) = core.info.unwritten.as_ref().filter(|_| is_mapped(allocation)) {
            // The host writes it without telling.
            unwritten.mark(buffer.id().into());
        }
        Ok(buffer)
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
        // SAFETY: the caller's promise.
        let facts = unsafe { BufferFacts::of(info) };
        Ok(Self::register(core, handle, facts, Memory::Shared { memory: memory.clone(), place }))
    }

    /// A buffer that is somebody else's.
    ///
    /// # Safety
    /// It was made from `info`, which is valid, and lives for as long as any clone.
    pub(crate) unsafe fn import(
        core: &Arc<Core>,
        handle: vk::Buffer,
        info: &vk::BufferCreateInfo<'_>,
    ) -> Self {
        // SAFETY: the caller's promise.
        let facts = unsafe { BufferFacts::of(info) };
        Self::register(core, handle, facts, Memory::Foreign)
    }

    fn register(core: &Arc<Core>, handle: vk::Buffer, facts: BufferFacts, memory: Memory) -> Self {
        let current = Current::new(Self::body(core, handle, &facts, memory));
        let buffer =
            Self(Arc::new(BufferInner { core: Arc::clone(core), facts, current, name: Name::default() }));
        if let Some(id) = buffer.0.current.home().and_then(|home| home.id()) {
            core.movables.insert(id, Movable::Buffer(WeakBuffer(Arc::downgrade(&buffer.0))));
        }
        buffer
    }

    fn body(core: &Arc<Core>, handle: vk::Buffer, facts: &BufferFacts, memory: Memory) -> Body<Buffers> {
        let (concurrent, place) = (facts.is_concurrent(), memory.place());
        let known = BufferInfo { concurrent, place, ..BufferInfo::new(handle, facts.size) };
        let id = core.global.lock().add_buffer(&known);
        Body::new(core, handle, id, memory)
    }

    /// The buffer itself. A [`Compactor`](crate::Compactor) that moves it gives it another one.
    #[inline]
    #[must_use]
    pub fn handle(&self) -> vk::Buffer {
        self.0.current.handle()
    }

    /// Its name in the books of states, which goes with the [`handle`](Self::handle).
    #[inline]
    #[must_use]
    pub fn id(&self) -> BufferId {
        self.0.current.id()
    }

    /// In bytes.
    #[inline]
    #[must_use]
    pub fn size(&self) -> u64 {
        self.0.facts.size
    }

    /// What it was made for.
    #[must_use]
    pub fn usage(&self) -> vk::BufferUsageFlags {
        self.0.facts.usage
    }

    /// Its memory; `None` if it is somebody else's, or if it [may be moved](Self::is_movable).
    #[must_use]
    pub fn allocation(&self) -> Option<&Allocation> {
        self.0.current.allocation()
    }

    /// Where it is; `None` if it is somebody else's.
    #[must_use]
    pub fn place(&self) -> Option<Place> {
        self.0.current.place()
    }

    /// Whether a [`Compactor`](crate::Compactor) may move it.
    #[must_use]
    pub fn is_movable(&self) -> bool {
        self.0.current.is_free()
    }

    /// Lets it stay where it is, or be moved again. When this returns nobody moves it any more.
    ///
    /// Subscribers of a compactor must not call it: it would never return.
    pub fn pin(&self, pinned: bool) {
        self.0.current.pin(&self.0.core, pinned);
    }

    /// Names it for tools: RenderDoc, validation layers. A [`Compactor`](crate::Compactor) that moves it names what takes
    /// over. Nothing but that is done without [`Features::debug_utils`](crate::Features::debug_utils).
    ///
    /// Subscribers of a compactor must not call it: it would never return.
    ///
    /// # Errors
    /// [`DriverError`] if the driver refuses: the name is what it was.
    #[doc(alias = "vkSetDebugUtilsObjectNameEXT")]
    #[doc(alias = "SetName")]
    pub fn set_name(&self, name: &str) -> Result<(), DriverError> {
        self.0.name.set(&self.0.core, &self.0.current, name)
    }

    /// Its [name](Self::set_name).
    #[must_use]
    pub fn name(&self) -> Option<String> {
        self.0.name.get()
    }

    /// A view of texels: made at the first call, kept, and destroyed with the buffer.
    ///
    /// # Safety
    /// The buffer can have it (VUID-VkBufferViewCreateInfo-offset-00925 and those that follow), and does not move until
    /// the caller is done with the view.
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
                |result| core.told(ViewError::Driver(DriverError { call: "vkCreateBufferView", result }));
            let view = made.map_err(refused)?;
            views.texels.push((key, view));
            Ok(view)
        })
    }

    /// Another body like this one, at the destination of a move. If it goes first the move is rolled back; if the old one
    /// goes first, the move is complete. `None` if the buffer does not move.
    pub(crate) fn begin_move(&self, moved: Move<'static>) -> Result<Option<Body<Buffers>>, CreateError> {
        let Self(inner) = self;
        let Some(home) = inner.current.home() else { return Ok(None) };
        // SAFETY: the buffer was made from this. What is made here is destroyed before the move is rolled back: `Home`
        // sees to that.
        let handle = unsafe { moved.create_buffer(&inner.facts.create_info()) }?;
        inner.name.pass_on(&inner.core, handle);
        home.begin_move(moved, vk::Handle::as_raw(handle));
        Ok(Some(Self::body(&inner.core, handle, &inner.facts, Memory::Movable(Arc::clone(home)))))
    }

    pub(crate) fn current(&self) -> &Current<Buffers> {
        &self.0.current
    }

    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.0.core
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
            .field("handle", &self.handle())
            .field("size", &self.size())
            .finish_non_exhaustive()
    }
}
