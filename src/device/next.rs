//! Extension structures that only the program knows.

use std::ffi::c_void;

/// A `pNext` chain for `VkMemoryAllocateInfo`: exports, imports, or anything else that the allocator does not know.
/// Null by default.
///
/// The chain comes last. The allocator puts its own structures before it where they are needed, in this order:
/// `VkExportMemoryAllocateInfo`, `VkMemoryPriorityAllocateInfoEXT`, `VkMemoryAllocateFlagsInfo` and
/// `VkMemoryDedicatedAllocateInfo`.
///
/// ```
/// # use sublet::*; use ash::vk;
/// let export = vk::ExportMemoryAllocateInfo::default().handle_types(vk::ExternalMemoryHandleTypeFlags::OPAQUE_FD);
/// let info = PoolCreateInfo {
///     // SAFETY: `export` outlives the pool, and the extension is enabled.
///     memory_allocate_next: unsafe { MemoryAllocateNext::new(std::ptr::from_ref(&export).cast()) },
///     ..PoolCreateInfo::new(0)
/// };
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemoryAllocateNext(*const c_void);

// SAFETY: nothing is written through the pointer, and `new` has the caller promise that nobody writes to the chain for
// as long as it is used, on whatever thread.
unsafe impl Send for MemoryAllocateNext {}
// SAFETY: as for `Send`.
unsafe impl Sync for MemoryAllocateNext {}

impl MemoryAllocateNext {
    pub(crate) const NONE: Self = Self(std::ptr::null());

    /// Takes a chain.
    ///
    /// # Safety
    /// The chain is valid for `VkMemoryAllocateInfo` on the device (VUID-VkMemoryAllocateInfo-pNext-pNext), holds none
    /// of the structures that the allocator adds itself (priority, allocate flags, dedicated), and stays where it is,
    /// unchanged by any thread, until the call that it is given to returns, or until the pool that it is given to is
    /// destroyed: whichever thread has the pool grow reads it. An import is of the size and the memory type of the
    /// allocation (VUID-VkMemoryAllocateInfo-allocationSize-01742 and its siblings), and of no other memory type that
    /// the allocator might choose.
    #[must_use]
    pub const unsafe fn new(chain: *const c_void) -> Self {
        Self(chain)
    }

    pub(crate) const fn get(self) -> *const c_void {
        self.0
    }

    pub(crate) const fn is_some(self) -> bool {
        !self.0.is_null()
    }
}

impl Default for MemoryAllocateNext {
    fn default() -> Self {
        Self::NONE
    }
}
