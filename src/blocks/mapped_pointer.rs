//! The host's view of device memory: a pointer that may travel between threads.

use std::ptr::NonNull;

/// Where a `VkDeviceMemory`, or an allocation in it, is mapped; or that it is not.
///
/// Only an address: whoever reads or writes through it has to argue for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct MappedPointer(Option<NonNull<u8>>);

// SAFETY: an address is only a number here; every access through it is argued where it happens.
unsafe impl Send for MappedPointer {}
// SAFETY: as for `Send`.
unsafe impl Sync for MappedPointer {}

impl MappedPointer {
    pub(crate) const UNMAPPED: Self = Self(None);

    pub(crate) fn new(pointer: NonNull<u8>) -> Self {
        Self(Some(pointer))
    }

    pub(crate) fn is_mapped(self) -> bool {
        self.0.is_some()
    }

    pub(crate) fn get(self) -> Option<NonNull<u8>> {
        self.0
    }

    /// The place `offset` bytes further on; unmapped stays unmapped.
    ///
    /// The result is only an address: it is inside the mapping if `offset` is inside the memory.
    pub(crate) fn at(self, offset: u64) -> Self {
        let Ok(offset) = usize::try_from(offset) else {
            return Self::UNMAPPED;
        };
        Self(self.0.and_then(|base| NonNull::new(base.as_ptr().wrapping_add(offset))))
    }
}
