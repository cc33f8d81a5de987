//! What a resource is at the moment, and what becomes of that.

use std::ffi::{CStr, CString};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use ash::vk;
use parking_lot::{Mutex, RwLock};
use sublet::Allocation;
use sublet::device::DriverError;

use super::ViewInfo;
use super::memory::{Home, Memory};
use crate::device::Core;
use crate::track::{BufferId, ImageId, Place, ResourceId};

/// Buffers or images.
pub(crate) trait Kind: 'static {
    type Handle: Copy + fmt::Debug + vk::Handle + Send + Sync;
    type Id: Copy + Into<ResourceId> + Send + Sync;

    /// # Safety
    /// The handle is of the device, and nothing uses it any more.
    unsafe fn destroy(device: &ash::Device, handle: Self::Handle);
}

pub(crate) enum Buffers {}
pub(crate) enum Images {}

impl Kind for Buffers {
    type Handle = vk::Buffer;
    type Id = BufferId;

    unsafe fn destroy(device: &ash::Device, handle: vk::Buffer) {
        // SAFETY: the caller's own promise.
        unsafe { device.destroy_buffer(handle, None) };
    }
}

impl Kind for Images {
    type Handle = vk::Image;
    type Id = ImageId;

    unsafe fn destroy(device: &ash::Device, handle: vk::Image) {
        // SAFETY: the caller's own promise.
        unsafe { device.destroy_image(handle, None) };
    }
}

/// No list may take it: it is being moved.
const SEALED: u32 = u32::MAX;

/// The views of a body.
#[derive(Default)]
pub(crate) struct Views {
    pub(crate) made: Vec<(ViewInfo, vk::ImageView)>,
    /// Those of a buffer, by format, offset and size.
    pub(crate) texels: Vec<((vk::Format, u64, u64), vk::BufferView)>,
    /// A successor has got views like those that were made, so that there are to be no others.
    pub(crate) handed_over: bool,
}

/// A name for the driver, which ends at the first NUL.
pub(crate) fn c_name(name: &str) -> CString {
    let name = name.split('\0').next().unwrap_or_default();
    CString::new(name).unwrap_or_default()
}

/// The name of a resource, whatever it is at the moment.
#[derive(Default)]
pub(crate) struct Name(Mutex<Option<CString>>);

impl Name {
    /// Names what the resource is, and what it will be when it is moved.
    pub(crate) fn set<K: Kind>(
        &self,
        core: &Core,
        current: &Current<K>,
        name: &str,
    ) -> Result<(), DriverError> {
        // Until the lock is gone nothing takes over.
        let _moving = core.moving.lock();
        let (mut kept, name) = (self.0.lock(), c_name(name));
        let handle = current.handle();
        // SAFETY: the resource is live; the lock on its name keeps other threads from naming it, and the driver needs no
        // more.
        unsafe { core.api.set_name(handle, &name) }.map_err(|error| core.note(error))?;
        *kept = Some(name);
        Ok(())
    }

    /// Names what is about to take over. Tools show no name if the driver refuses it.
    pub(crate) fn pass_on<H: vk::Handle>(&self, core: &Core, handle: H) {
        if let Some(name) = &*self.0.lock() {
            // SAFETY: it was made just now, and nobody else has it.
            let _ = unsafe { core.api.set_name(handle, name) };
        }
    }

    pub(crate) fn get(&self) -> Option<String> {
        self.0.lock().as_deref().map(|name| CStr::to_string_lossy(name).into_owned())
    }
}

/// A buffer or an image of the driver's, with its place in the books. Lists keep it until the device is done with it.
pub(crate) struct Body<K: Kind> {
    core: Arc<Core>,
    pub(crate) handle: K::Handle,
    pub(crate) id: K::Id,
    memory: Memory,
    /// Lists with it that were not submitted yet, or [`SEALED`].
    lists: AtomicU32,
    pub(crate) views: Mutex<Views>,
}

impl<K: Kind> Body<K> {
    pub(crate) fn new(core: &Arc<Core>, handle: K::Handle, id: K::Id, memory: Memory) -> Self {
        if let Some(unwritten) = core.info.unwritten.as_ref().filter(|_| matches!(memory, Memory::Foreign)) {
            unwritten.mark(id.into());
        }
        let (core, lists, views) = (Arc::clone(core), AtomicU32::new(0), Mutex::default());
        Self { core, handle, id, memory, lists, views }
    }

    /// Its memory, if nobody else is in it and it stays.
    pub(crate) fn own_allocation(&self) -> Option<&Allocation> {
        match &self.memory {
            Memory::Own(allocation) => allocation.as_ref(),
            _ => None,
        }
    }

    pub(crate) fn slot(&self) -> u32 {
        let id: ResourceId = self.id.into();
        id.slot()
    }

    /// A list takes it. False if it is being moved.
    pub(crate) fn enter(&self) -> bool {
        // SEALED is the largest number, to which nothing can be added.
        self.lists.fetch_update(Ordering::Acquire, Ordering::Relaxed, |lists| lists.checked_add(1)).is_ok()
    }

    /// A list that took it was submitted, or will never be.
    pub(crate) fn leave(&self) {
        self.lists.fetch_sub(1, Ordering::Release);
    }

    /// Lets no list take it. False if a list has it that was not submitted yet.
    pub(crate) fn seal(&self) -> bool {
        self.lists.compare_exchange(0, SEALED, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Lets lists take it again.
    pub(crate) fn unseal(&self) {
        self.lists.store(0, Ordering::Release);
    }
}

impl<K: Kind> Drop for Body<K> {
    fn drop(&mut self) {
        // It was there from the start, and nobody else removes it.
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
        if !matches!(self.memory, Memory::Foreign) {
            // SAFETY: as above; it is the body's own.
            unsafe { K::destroy(device, self.handle) };
        }
        self.memory.leave(&self.core, vk::Handle::as_raw(self.handle));
    }
}

/// The body of a resource.
pub(crate) enum Current<K: Kind> {
    /// Always the same.
    Fixed(Arc<Body<K>>),
    /// The last one.
    Movable {
        body: RwLock<Arc<Body<K>>>,
        /// What it was made as: until it moves nobody takes the lock for these.
        first: (K::Handle, K::Id),
        moved: AtomicBool,
        home: Arc<Home>,
        pinned: AtomicBool,
    },
}

impl<K: Kind> Current<K> {
    pub(crate) fn new(body: Body<K>) -> Self {
        let home = match &body.memory {
            Memory::Movable(home) => Some(Arc::clone(home)),
            _ => None,
        };
        let body = Arc::new(body);
        match home {
            None => Self::Fixed(body),
            Some(home) => {
                let (first, moved, pinned) = ((body.handle, body.id), false.into(), false.into());
                Self::Movable { body: RwLock::new(body), first, moved, home, pinned }
            }
        }
    }

    /// Handle and id go with one another if the resource does not move in between.
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

    pub(crate) fn pin(&self, core: &Core, pin: bool) {
        if let Self::Movable { pinned, .. } = self {
            pinned.store(pin, Ordering::Relaxed);
            // Whoever moves it right now comes to an end first.
            core.wait_for_moves();
        }
    }

    /// Whether it may be moved now.
    pub(crate) fn is_free(&self) -> bool {
        matches!(self, Self::Movable { pinned, .. } if !pinned.load(Ordering::Relaxed))
    }

    pub(crate) fn home(&self) -> Option<&Arc<Home>> {
        match self {
            Self::Movable { home, .. } => Some(home),
            Self::Fixed(_) => None,
        }
    }

    /// The allocation of what stays where it is.
    pub(crate) fn allocation(&self) -> Option<&Allocation> {
        match self {
            Self::Fixed(body) => body.memory.allocation(),
            Self::Movable { .. } => None,
        }
    }

    pub(crate) fn place(&self) -> Option<Place> {
        self.with(|body| body.memory.where_it_is())
    }

    /// Another body takes over.
    pub(crate) fn replace(&self, new: Arc<Body<K>>) {
        if let Self::Movable { body, moved, .. } = self {
            // No lock is held when the old one goes.
            let old = std::mem::replace(&mut *body.write(), new);
            moved.store(true, Ordering::Release);
            drop(old);
        }
    }
}
