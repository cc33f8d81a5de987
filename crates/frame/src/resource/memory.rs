//! Memory of resources, shared or movable.
#![expect(unsafe_code, reason = "calls Vulkan")]

use std::any::Any;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use sublet::{Allocation, AllocationId, Move};

use super::{Buffer, Image, WeakBuffer, WeakImage};
use crate::device::DeviceCore;
use crate::track::MemoryRange;

struct SharedMemoryInner {
    core: Arc<DeviceCore>,
    allocation: Option<Allocation>,
}

/// Memory that several resources share: see [`Frames::create_buffer_in`](crate::Frames::create_buffer_in) and
/// [`Frames::create_image_in`](crate::Frames::create_image_in). Lists detect aliasing: the use of a resource waits for
/// the last use of the resources that overlap it, and discards their contents.
///
/// Cheap to clone. The memory is freed when the last clone and the last resource in it are dropped, and no list in
/// flight uses such a resource.
#[derive(Clone)]
pub struct SharedMemory(Arc<SharedMemoryInner>);

impl SharedMemory {
    pub(crate) fn new(core: Arc<DeviceCore>, allocation: Allocation) -> Self {
        Self(Arc::new(SharedMemoryInner { core, allocation: Some(allocation) }))
    }

    /// Returns the allocation.
    ///
    /// # Panics
    /// Never: the allocation exists as long as the value.
    pub fn allocation(&self) -> &Allocation {
        self.0.allocation.as_ref().expect("the allocation exists until the last clone is dropped")
    }

    pub(crate) fn belongs_to(&self, core: &Arc<DeviceCore>) -> bool {
        Arc::ptr_eq(&self.0.core, core)
    }
}

impl Drop for SharedMemoryInner {
    fn drop(&mut self) {
        free(&self.core, self.allocation.take());
    }
}

impl fmt::Debug for SharedMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedMemory").field("size", &self.allocation().size()).finish_non_exhaustive()
    }
}

/// The memory of a resource.
pub(crate) enum ResourceMemory {
    /// Exclusive and never moved; `None` after it was freed.
    Own(Option<Allocation>),
    /// Exclusive and movable.
    Movable(Arc<MovableMemory>),
    Shared {
        memory: SharedMemory,
        range: MemoryRange,
    },
    /// Memory of the host, and the value that keeps it alive.
    Host(Option<Allocation>, #[expect(dead_code, reason = "it is only dropped")] Box<dyn Any + Send + Sync>),
    /// The resource is imported, with its memory.
    Foreign,
}

impl ResourceMemory {
    pub(crate) fn own(allocation: Allocation, movable: bool) -> Self {
        match movable {
            true => Self::Movable(Arc::new(MovableMemory::new(allocation))),
            false => Self::Own(Some(allocation)),
        }
    }

    /// Returns the allocation if it never moves.
    pub(crate) fn allocation(&self) -> Option<&Allocation> {
        match self {
            Self::Own(allocation) | Self::Host(allocation, _) => allocation.as_ref(),
            Self::Shared { memory, .. } => Some(memory.allocation()),
            Self::Movable(_) | Self::Foreign => None,
        }
    }

    /// Returns the memory range if other resources may share it.
    pub(crate) fn shared_range(&self) -> Option<MemoryRange> {
        match self {
            Self::Shared { range, .. } => Some(*range),
            Self::Own(_) | Self::Host(..) | Self::Movable(_) | Self::Foreign => None,
        }
    }

    /// Returns the current memory range.
    pub(crate) fn current_range(&self) -> Option<MemoryRange> {
        match self {
            Self::Own(allocation) | Self::Host(allocation, _) => allocation.as_ref().map(range_of),
            Self::Movable(memory) => memory.current_range(),
            Self::Shared { range, .. } => Some(*range),
            Self::Foreign => None,
        }
    }

    /// Releases the memory after the object with this handle was destroyed.
    pub(crate) fn release(&mut self, core: &DeviceCore, handle: u64) {
        match self {
            // The host's memory is dropped later, with `self`.
            Self::Own(allocation) | Self::Host(allocation, _) => free(core, allocation.take()),
            Self::Movable(memory) => memory.release(core, handle),
            // The last resource in it frees the memory.
            Self::Shared { .. } | Self::Foreign => {}
        }
    }
}

fn range_of(allocation: &Allocation) -> MemoryRange {
    MemoryRange { memory: allocation.memory(), offset: allocation.offset(), size: allocation.size() }
}

fn free(core: &DeviceCore, allocation: Option<Allocation>) {
    let Some(allocation) = allocation else { return };
    // SAFETY: its resource is destroyed. Lists in flight would have kept the resource.
    if let Err(error) = unsafe { core.allocator.free_memory(allocation) } {
        tracing::warn!(name: "free_refused", target: "sublet::leak", %error, "the memory of a resource was not freed");
    }
}

/// The memory of a movable resource. During a move, two bodies use it: the source and the destination of the copy. The
/// first one to be dropped rolls back or completes the move. Its lock is taken before that of [`Movables`], and held
/// while the allocator does so.
pub(crate) struct MovableMemory(Mutex<MovableState>);

struct MovableState {
    /// `None` after it was freed.
    allocation: Option<Allocation>,
    /// The move in progress, and the handle of the object at its destination.
    moving: Option<(Move<'static>, u64)>,
}

impl MovableMemory {
    fn new(allocation: Allocation) -> Self {
        Self(Mutex::new(MovableState { allocation: Some(allocation), moving: None }))
    }

    pub(crate) fn id(&self) -> Option<AllocationId> {
        self.0.lock().allocation.as_ref().map(Allocation::id)
    }

    fn current_range(&self) -> Option<MemoryRange> {
        let state = self.0.lock();
        let mut range = range_of(state.allocation.as_ref()?);
        if let Some((moved, _)) = &state.moving {
            (range.memory, range.offset) = (moved.memory(), moved.offset());
        }
        Some(range)
    }

    pub(crate) fn begin_move(&self, moved: Move<'static>, handle: u64) {
        self.0.lock().moving = Some((moved, handle));
    }

    /// Releases the memory of one of the bodies.
    fn release(&self, core: &DeviceCore, handle: u64) {
        let mut state = self.0.lock();
        let MovableState { allocation, moving } = &mut *state;
        match (moving.take(), allocation) {
            // The destination was dropped: roll back.
            (Some((moved, to)), _) if to == handle => drop(moved),
            (Some((moved, _)), Some(allocation)) => {
                let old = allocation.id();
                // SAFETY: the object at the old place is destroyed, and lists in flight would have kept it. Movable
                // resources are never mapped.
                match unsafe { moved.complete(allocation) } {
                    Ok(()) => core.movables.rename(old, allocation.id()),
                    Err(error) => {
                        tracing::warn!(name: "move_refused", target: "sublet::leak", error = %error.error(), "a move was not completed");
                        // The destination is in use and must not be allocated again.
                        std::mem::forget(error.unfinished);
                    }
                }
            }
            (_, allocation) => {
                let allocation = allocation.take();
                drop(state);
                allocation.iter().for_each(|allocation| core.movables.remove(allocation.id()));
                free(core, allocation);
            }
        }
    }
}

pub(crate) enum Movable {
    Buffer(WeakBuffer),
    Image(WeakImage),
}

/// Movable resources by allocation. No lock is taken under theirs, which is never held over a driver call.
#[derive(Default)]
pub(crate) struct Movables(Mutex<HashMap<AllocationId, Movable>>);

impl Movables {
    pub(crate) fn insert(&self, id: AllocationId, movable: Movable) {
        self.0.lock().insert(id, movable);
    }

    fn remove(&self, id: AllocationId) {
        self.0.lock().remove(&id);
    }

    fn rename(&self, old: AllocationId, new: AllocationId) {
        let mut movables = self.0.lock();
        if let Some(movable) = movables.remove(&old) {
            movables.insert(new, movable);
        }
    }

    /// Returns the resource of an allocation, if it is movable. `Some(None)` if only lists in flight still use it.
    pub(crate) fn find(&self, id: AllocationId) -> Option<Option<FoundResource>> {
        Some(match self.0.lock().get(&id)? {
            Movable::Buffer(buffer) => buffer.upgrade().map(FoundResource::Buffer),
            Movable::Image(image) => image.upgrade().map(FoundResource::Image),
        })
    }
}

pub(crate) enum FoundResource {
    Buffer(Buffer),
    Image(Image),
}
