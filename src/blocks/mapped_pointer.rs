//! A host pointer to device memory that may move between threads.
#![expect(unsafe_code, reason = "dereferences mapped memory")]

use std::ptr::NonNull;

/// The address where a `VkDeviceMemory` or an allocation in it is mapped, or none.
///
/// This is only an address. Code that reads or writes through it must justify the access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct MappedPointer(Option<NonNull<u8>>);

// SAFETY: this type only stores an address. Every access through it is justified where it happens.
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

    /// The address `offset` bytes further on. Unmapped stays unmapped.
    ///
    /// The result is inside the mapping only if `offset` is inside the memory.
    pub(crate) fn at(self, offset: u64) -> Self {
        let Ok(offset) = usize::try_from(offset) else {
            return Self::UNMAPPED;
        };
        Self(self.0.and_then(|base| NonNull::new(base.as_ptr().wrapping_add(offset))))
    }
}
