//! Memory that several resources use in turns.

use std::fmt;
use std::sync::Arc;

use sublet::Allocation;

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
        if let Some(allocation) = self.allocation.take() {
            // SAFETY: the last resource in it is destroyed, and lists in flight would keep one.
            if let Err(error) = unsafe { self.core.allocator.free_memory(allocation) } {
                tracing::warn!(name: "free_refused", target: "sublet::leak", %error, "shared memory was not freed");
            }
        }
    }
}

impl fmt::Debug for SharedMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedMemory").field("size", &self.allocation().size()).finish_non_exhaustive()
    }
}

/// What a resource is in.
pub(crate) enum Memory {
    /// Its own; `None` once it is given back.
    Own(Option<Allocation>),
    Shared {
        memory: SharedMemory,
        place: Place,
    },
    /// It is somebody else's, and so is the resource.
    Foreign,
}

impl Memory {
    pub(crate) fn allocation(&self) -> Option<&Allocation> {
        match self {
            Self::Own(allocation) => allocation.as_ref(),
            Self::Shared { memory, .. } => Some(memory.allocation()),
            Self::Foreign => None,
        }
    }

    pub(crate) fn place(&self) -> Option<Place> {
        match self {
            Self::Shared { place, .. } => Some(*place),
            Self::Own(_) | Self::Foreign => None,
        }
    }
}
