//! The current object of a resource, and its lifetime.
#![expect(unsafe_code, reason = "calls Vulkan")]

use std::ffi::{CStr, CString};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use ash::vk;
use parking_lot::{Mutex, RwLock};
use sublet::Allocation;
use sublet::device::DriverError;

use super::ViewInfo;
use super::memory::{MovableMemory, ResourceMemory};
use crate::device::DeviceCore;
use crate::track::{BufferId, ImageId, MemoryRange, ResourceId};

/// Buffers or images.
pub(crate) trait ResourceClass: 'static {
    type Handle: Copy + fmt::Debug + vk::Handle + Send + Sync;
    type Id: Copy + Into<ResourceId> + Send + Sync;

    /// # Safety
    /// The handle belongs to the device and is not used any more.
    unsafe fn destroy(device: &ash::Device, handle: Self::Handle);
}

pub(crate) enum BufferClass {}
pub(crate) enum ImageClass {}

impl ResourceClass for BufferClass {
    type Handle = vk::Buffer;
    type Id = BufferId;

    unsafe fn destroy(device: &ash::Device, handle: vk::Buffer) {
        // SAFETY: the caller's own promise.
        unsafe { device.destroy_buffer(handle, None) };
    }
}

impl ResourceClass for ImageClass {
    type Handle = vk::Image;
    type Id = ImageId;

    unsafe fn destroy(device: &ash::Device, handle: vk::Image) {
        // SAFETY: the caller's own promise.
        unsafe { device.destroy_image(handle, None) };
    }
}

/// The value of `Body::lists` during a move: no list may use the body.
const CLOSED: u32 = u32::MAX;

/// The views of a body.
#[derive(Default)]
pub(crate) struct Views {
    pub(crate) made: Vec<(ViewInfo, vk::ImageView)>,
    /// Buffer views, by format, offset and size.
    pub(crate) texels: Vec<((vk::Format, u64, u64), vk::BufferView)>,
    /// True if a replacement has copies of these views. Then no further views may be created.
    pub(crate) handed_over: bool,
}

/// Converts a debug name. It ends at the first NUL.
pub(crate) fn c_name(name: &str) -> CString {
    let name = name.split('\0').next().unwrap_or_default();
    CString::new(name).unwrap_or_default()
}

/// The debug name of a resource. Moves keep it. Its lock is taken before that of the current body, and held while the
/// driver sets the name.
#[derive(Default)]
pub(crate) struct DebugName(Mutex<Option<CString>>);

impl DebugName {
    /// Sets the name of the current object and of its replacements.
    pub(crate) fn set<K: ResourceClass>(
        &self,
        core: &DeviceCore,
        current: &CurrentBody<K>,
        name: &str,
    ) -> Result<(), DriverError> {
        // Prevents a move during the call.
        let _moving = core.moving.lock();
        let (mut kept, name) = (self.0.lock(), c_name(name));
        let handle = current.handle();
        // SAFETY: the resource is live. The lock on its name excludes other threads, which is all that the driver
        // requires.
        unsafe { core.api.set_name(handle, &name) }.map_err(|error| core.record_error(error))?;
        *kept = Some(name);
        Ok(())
    }

    /// Names a replacement. On an error of the driver, tools show no name.
    pub(crate) fn pass_on<H: vk::Handle>(&self, core: &DeviceCore, handle: H) {
        if let Some(name) = &*self.0.lock() {
            // SAFETY: the object was just created and is not shared yet.
            let _ = unsafe { core.api.set_name(handle, name) };
        }
    }

    pub(crate) fn get(&self) -> Option<String> {
        self.0.lock().as_deref().map(|name| CStr::to_string_lossy(name).into_owned())
    }
}

/// A buffer or image object with its tracked state. Lists keep it until the device is done with it.
pub(crate) struct Body<K: ResourceClass> {
    core: Arc<DeviceCore>,
    pub(crate) handle: K::Handle,
    pub(crate) id: K::Id,
    memory: ResourceMemory,
    /// Number of open lists that use it, or [`CLOSED`].
    lists: AtomicU32,
    /// Protects the views; taken before those of the replacement. Held while the driver creates one.
    pub(crate) views: Mutex<Views>,
}

impl<K: ResourceClass> Body<K> {
    pub(crate) fn new(core: &Arc<DeviceCore>, handle: K::Handle, id: K::Id, memory: ResourceMemory) -> Self {
        if let Some(unwritten) =
            core.info.unwritten.as_ref().filter(|_| matches!(memory, ResourceMemory::Foreign))
        {
            unwritten.mark(id.into());
        }
        let (core, lists, views) = (Arc::clone(core), AtomicU32::new(0), Mutex::default());
        Self { core, handle, id, memory, lists, views }
    }

    /// Returns its memory, if it is neither shared nor movable.
    pub(crate) fn own_allocation(&self) -> Option<&Allocation> {
        match &self.memory {
            ResourceMemory::Own(allocation) => allocation.as_ref(),
            _ => None,
        }
    }

    pub(crate) fn slot(&self) -> u32 {
        let id: ResourceId = self.id.into();
        id.slot()
    }

    /// Registers a list as a user. Returns false during a move.
    pub(crate) fn enter(&self) -> bool {
        // `CLOSED` is the maximum, so adding to it fails.
        self.lists.fetch_update(Ordering::Acquire, Ordering::Relaxed, |lists| lists.checked_add(1)).is_ok()
    }

    /// Unregisters a list that was submitted or dropped.
    pub(crate) fn leave(&self) {
        self.lists.fetch_sub(1, Ordering::Release);
    }

    /// Closes the body to lists. Returns false if an open list uses it.
    pub(crate) fn close(&self) -> bool {
        self.lists.compare_exchange(0, CLOSED, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Opens the body to lists again.
    pub(crate) fn reopen(&self) {
        self.lists.store(0, Ordering::Release);
    }
}

impl<K: ResourceClass> Drop for Body<K> {
    fn drop(&mut self) {
        // It was added in the constructor, and only this destructor removes it.
        let _ = self.core.global.lock().remove(self.id);
        if let Some(unwritten) = &self.core.info.unwritten {
            unwritten.forget(self.id.into());
        }
        let device = self.core.api.device();
        let Views { made: views, texels, .. } = self.views.get_mut();
        for (_, view) in texels.drain(..) {
            // SAFETY: lists in flight would keep the body, so the device is done with its views.
            unsafe { device.destroy_buffer_view(view, None) };
        }
        if !views.is_empty() {
            self.core.render_passes.forget(views.iter().map(|(_, view)| *view));
        }
        for (_, view) in views.drain(..) {
            // SAFETY: lists in flight would keep the body, so the device is done with its views.
            unsafe { device.destroy_image_view(view, None) };
        }
        if !matches!(self.memory, ResourceMemory::Foreign) {
            // SAFETY: as above; the body owns the handle.
            unsafe { K::destroy(device, self.handle) };
        }
        self.memory.release(&self.core, vk::Handle::as_raw(self.handle));
    }
}

/// The current body of a resource.
pub(crate) enum CurrentBody<K: ResourceClass> {
    /// Never replaced.
    Fixed(Arc<Body<K>>),
    /// Replaced by moves.
    Movable {
        /// Protects the choice of the body; taken before the locks of the body and `global`. Locked for writing only to
        /// replace the body, and for reading also over driver calls.
        body: RwLock<Arc<Body<K>>>,
        /// Its first handle and id: read without the lock until the first move.
        first: (K::Handle, K::Id),
        moved: AtomicBool,
        memory: Arc<MovableMemory>,
        pinned: AtomicBool,
    },
}

impl<K: ResourceClass> CurrentBody<K> {
    pub(crate) fn new(body: Body<K>) -> Self {
        let memory = match &body.memory {
            ResourceMemory::Movable(memory) => Some(Arc::clone(memory)),
            _ => None,
        };
        let body = Arc::new(body);
        match memory {
            None => Self::Fixed(body),
            Some(memory) => {
                let (first, moved, pinned) = ((body.handle, body.id), false.into(), false.into());
                Self::Movable { body: RwLock::new(body), first, moved, memory, pinned }
            }
        }
    }

    /// Returns the current handle. It is consistent with the id if the resource does not move between both calls.
    #[inline]
    pub(crate) fn handle(&self) -> K::Handle {
        match self {
            Self::Movable { first, moved, .. } if !moved.load(Ordering::Acquire) => first.0,
            _ => self.with(|body| body.handle),
        }
    }

    #[inline]
    pub(crate) fn id(&self) -> K::Id {
        match self {
            Self::Movable { first, moved, .. } if !moved.load(Ordering::Acquire) => first.1,
            _ => self.with(|body| body.id),
        }
    }

    #[inline]
    pub(crate) fn with<R>(&self, f: impl FnOnce(&Arc<Body<K>>) -> R) -> R {
        match self {
            Self::Fixed(body) => f(body),
            Self::Movable { body, .. } => f(&body.read()),
        }
    }

    pub(crate) fn pin(&self, core: &DeviceCore, pin: bool) {
        if let Self::Movable { pinned, .. } = self {
            pinned.store(pin, Ordering::Relaxed);
            // A running move finishes first.
            core.wait_for_moves();
        }
    }

    /// Returns true if it may be moved now.
    pub(crate) fn is_free(&self) -> bool {
        matches!(self, Self::Movable { pinned, .. } if !pinned.load(Ordering::Relaxed))
    }

    pub(crate) fn movable_memory(&self) -> Option<&Arc<MovableMemory>> {
        match self {
            Self::Movable { memory, .. } => Some(memory),
            Self::Fixed(_) => None,
        }
    }

    /// Returns the allocation if the resource never moves.
    pub(crate) fn allocation(&self) -> Option<&Allocation> {
        match self {
            Self::Fixed(body) => body.memory.allocation(),
            Self::Movable { .. } => None,
        }
    }

    pub(crate) fn memory_range(&self) -> Option<MemoryRange> {
        self.with(|body| body.memory.current_range())
    }

    pub(crate) fn replace(&self, new: Arc<Body<K>>) {
        if let Self::Movable { body, moved, .. } = self {
            // Drop the old body without the lock.
            let old = std::mem::replace(&mut *body.write(), new);
            moved.store(true, Ordering::Release);
            drop(old);
        }
    }
}
