//! Memory that several resources use in turns.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use sublet::{Allocation, AllocationId, Move};

use super::{Buffer, Image, WeakBuffer, WeakImage};
use crate::device::Core;
use crate::track::Place;

struct Inner {
    core: Arc<Core>,
    allocation: Option<Allocation>,
}

/// Memory for resources that share it: [`Frames::create_buffer_in`](crate::Frames::create_buffer_in) and
/// [`Frames::create_image_in`](crate::Frames::create_image_in). Lists know which of them share bytes: the use of one
/// after another one waits, and discards what the other has left, without being asked.
///
/// Cheap to clone. It is freed when the last clone and the last resource in it are gone, and no list that uses one is
/// in flight.
#[derive(Clone)]
pub struct SharedMemory(Arc<Inner>);

impl SharedMemory {
    pub(crate) fn new(core: Arc<Core>, allocation: Allocation) -> Self {
        Self(Arc::new(Inner { core, allocation: Some(allocation) }))
    }

    /// The allocation.
    ///
    /// # Panics
    /// Never: it has one for as long as it lives.
    pub fn allocation(&self) -> &Allocation {
        self.0.allocation.as_ref().expect("an allocation is there until the last clone goes")
    }

    pub(crate) fn is_of(&self, core: &Arc<Core>) -> bool {
        Arc::ptr_eq(&self.0.core, core)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        free(&self.core, self.allocation.take());
    }
}

impl fmt::Debug for SharedMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedMemory").field("size", &self.allocation().size()).finish_non_exhaustive()
    }
}

/// What a resource is in.
pub(crate) enum Memory {
    /// Its own, for good; `None` once it is given back.
    Own(Option<Allocation>),
    /// Its own, which may be moved.
    Movable(Arc<Home>),
    Shared {
        memory: SharedMemory,
        place: Place,
    },
    /// It is somebody else's, and so is the resource.
    Foreign,
}

impl Memory {
    pub(crate) fn own(allocation: Allocation, movable: bool) -> Self {
        match movable {
            true => Self::Movable(Arc::new(Home::new(allocation))),
            false => Self::Own(Some(allocation)),
        }
    }

    /// What stays where it is.
    pub(crate) fn allocation(&self) -> Option<&Allocation> {
        match self {
            Self::Own(allocation) => allocation.as_ref(),
            Self::Shared { memory, .. } => Some(memory.allocation()),
            Self::Movable(_) | Self::Foreign => None,
        }
    }

    /// Where it is, if other resources may be there too.
    pub(crate) fn place(&self) -> Option<Place> {
        match self {
            Self::Shared { place, .. } => Some(*place),
            Self::Own(_) | Self::Movable(_) | Self::Foreign => None,
        }
    }

    /// Where it is.
    pub(crate) fn where_it_is(&self) -> Option<Place> {
        match self {
            Self::Own(allocation) => allocation.as_ref().map(place_of),
            Self::Movable(home) => home.place(),
            Self::Shared { place, .. } => Some(*place),
            Self::Foreign => None,
        }
    }

    /// What had the handle is destroyed, and the device is done with it.
    pub(crate) fn leave(&mut self, core: &Core, handle: u64) {
        match self {
            Self::Own(allocation) => free(core, allocation.take()),
            Self::Movable(home) => home.leave(core, handle),
            // The memory goes with the last resource in it.
            Self::Shared { .. } | Self::Foreign => {}
        }
    }
}

fn place_of(allocation: &Allocation) -> Place {
    Place { memory: allocation.memory(), offset: allocation.offset(), size: allocation.size() }
}

fn free(core: &Core, allocation: Option<Allocation>) {
    let Some(allocation) = allocation else { return };
    // SAFETY: what was in it is destroyed, and lists in flight would have kept that.
    if let Err(error) = unsafe { core.allocator.free_memory(allocation) } {
        tracing::warn!(name: "free_refused", target: "sublet::leak", %error, "the memory of a resource was not freed");
    }
}

/// The memory of a resource that may be moved. While it is, two bodies have it: the one that it is copied from, and the
/// one that it is copied to. Whichever goes first settles the move.
pub(crate) struct Home(Mutex<Residence>);

struct Residence {
    /// `None` once it is given back.
    allocation: Option<Allocation>,
    /// A move that is under way, and the handle of what is at its destination.
    moving: Option<(Move<'static>, u64)>,
}

impl Home {
    fn new(allocation: Allocation) -> Self {
        Self(Mutex::new(Residence { allocation: Some(allocation), moving: None }))
    }

    /// Names its allocation.
    pub(crate) fn id(&self) -> Option<AllocationId> {
        self.0.lock().allocation.as_ref().map(Allocation::id)
    }

    fn place(&self) -> Option<Place> {
        let residence = self.0.lock();
        let mut place = place_of(residence.allocation.as_ref()?);
        if let Some((moved, _)) = &residence.moving {
            (place.memory, place.offset) = (moved.memory(), moved.offset());
        }
        Some(place)
    }

    /// A move is under way to where `handle` is.
    pub(crate) fn begin_move(&self, moved: Move<'static>, handle: u64) {
        self.0.lock().moving = Some((moved, handle));
    }

    /// One of the bodies is gone.
    fn leave(&self, core: &Core, handle: u64) {
        let mut residence = self.0.lock();
        let Residence { allocation, moving } = &mut *residence;
        match (moving.take(), allocation) {
            // The destination: it is free again.
            (Some((moved, to)), _) if to == handle => drop(moved),
            (Some((moved, _)), Some(allocation)) => {
                let old = allocation.id();
                // SAFETY: what was at the old place is destroyed, and lists in flight would have kept that. Nothing that
                // is moved is mapped.
                match unsafe { moved.complete(allocation) } {
                    Ok(()) => core.movables.rename(old, allocation.id()),
                    Err(error) => {
                        tracing::warn!(name: "move_refused", target: "sublet::leak", error = %error.error(), "a move was not completed");
                        // Something is at the destination, which must not be given to others.
                        std::mem::forget(error.unfinished);
                    }
                }
            }
            (_, allocation) => {
                let allocation = allocation.take();
                drop(residence);
                allocation.iter().for_each(|allocation| core.movables.remove(allocation.id()));
                free(core, allocation);
            }
        }
    }
}

/// A resource that may be moved.
pub(crate) enum Movable {
    Buffer(WeakBuffer),
    Image(WeakImage),
}

/// What may be moved, by its allocation.
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

    /// The buffer or image of an allocation, if it is of one. `Some(None)`: the last handle is gone, and only lists in
    /// flight still use it.
    pub(crate) fn find(&self, id: AllocationId) -> Option<Option<Found>> {
        Some(match self.0.lock().get(&id)? {
            Movable::Buffer(buffer) => buffer.upgrade().map(Found::Buffer),
            Movable::Image(image) => image.upgrade().map(Found::Image),
        })
    }
}

/// What an allocation is of.
pub(crate) enum Found {
    Buffer(Buffer),
    Image(Image),
}
