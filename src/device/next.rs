//! Extensions of Vulkan's structures that only the program knows.

use std::ffi::c_void;

/// A `pNext` chain for `VkMemoryAllocateInfo`: exports, imports, whatever the allocator does not know. Null by default.
///
/// In the structure that the driver gets it comes last. Before it stand, in this order and where there is a reason for them:
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
#[derive(Clone, Copy, Debug)]
pub struct MemoryAllocateNext(*const c_void);

impl MemoryAllocateNext {
    /// A chain that the caller vouches for.
    ///
    /// # Safety
    /// The chain is valid for `VkMemoryAllocateInfo` on the device (VUID-VkMemoryAllocateInfo-pNext-pNext), holds none of
    /// the structures that the allocator adds itself (priority, allocate flags, dedicated), and stays where it is,
    /// unchanged, until the call that it is given to returns, or until the pool that it is given to is destroyed. An import
    /// is of the size and the memory type of the allocation (VUID-VkMemoryAllocateInfo-allocationSize-01742 and its
    /// siblings), and of no other memory type that the allocator might choose.
    ///
    /// ```
    /// # use sublet::MemoryAllocateNext;
    /// // SAFETY: null is no chain.
    /// let none = unsafe { MemoryAllocateNext::new(std::ptr::null()) };
    /// ```
    #[must_use]
    pub const unsafe fn new(chain: *const c_void) -> Self {
        Self(chain)
    }

    pub(crate) const fn get(self) -> *const c_void {
        self.0
    }
}

impl Default for MemoryAllocateNext {
    fn default() -> Self {
        Self(std::ptr::null())
    }
}
