//! Extension structures of the program.
#![expect(unsafe_code, reason = "calls Vulkan")]

use std::ffi::c_void;

/// A `pNext` chain for `VkMemoryAllocateInfo`: exports, imports, or structures that the allocator does not support
/// itself. Null by default.
///
/// The chain comes last. The allocator inserts its own structures before it as needed, in the order of this table. It
/// never adds a structure that is already in the chain.
///
/// | structure | added | not added |
/// |---|---|---|
/// | `VkExportMemoryAllocateInfo` | with [`external_memory_handle_types`](crate::AllocatorCreateInfo::external_memory_handle_types) | if the chain imports memory, or exports it itself |
/// | `VkMemoryPriorityAllocateInfoEXT` | with [`EXT_MEMORY_PRIORITY`](crate::AllocatorCreateFlags::EXT_MEMORY_PRIORITY) | if the chain has a priority |
/// | `VkMemoryAllocateFlagsInfo` | with [`BUFFER_DEVICE_ADDRESS`](crate::AllocatorCreateFlags::BUFFER_DEVICE_ADDRESS), and if the chain replays an address | never: the flags and the device mask of the chain are merged into it |
/// | `VkMemoryDedicatedAllocateInfo` | in dedicated memory for a buffer or an image, unless [`CAN_ALIAS`](crate::AllocationCreateFlags::CAN_ALIAS) is set | if the chain imports a host pointer, or dedicates the memory itself |
///
/// Memory that is imported as `OPAQUE_FD` or as an opaque Windows handle may be dedicated to a resource only if the
/// exported memory was dedicated to an identical one (VUID-VkMemoryDedicatedAllocateInfo-image-01878 and its siblings).
/// The allocator cannot check this: set `CAN_ALIAS` if the exported memory was not dedicated.
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

// SAFETY: nothing writes through the pointer, and the caller of `new` promises that no thread writes to the chain while
// it is in use.
unsafe impl Send for MemoryAllocateNext {}
// SAFETY: as for `Send`.
unsafe impl Sync for MemoryAllocateNext {}

impl MemoryAllocateNext {
    pub(crate) const NONE: Self = Self(std::ptr::null());

    /// Wraps a chain.
    ///
    /// # Safety
    /// 1. The chain is valid for `VkMemoryAllocateInfo` on the device (VUID-VkMemoryAllocateInfo-pNext-pNext).
    /// 2. No thread moves or changes the chain until the call that receives it returns. For a pool, this holds until
    ///    the pool is destroyed, because any thread that makes the pool grow reads the chain.
    /// 3. Imported memory has the size and the memory type of the allocation
    ///    (VUID-VkMemoryAllocateInfo-allocationSize-01742, -01743, -01745 and their siblings). The request allows no
    ///    other memory type.
    /// 4. Structures that `ash` 0.38 does not have come after `VkMemoryAllocateFlagsInfo`. Otherwise the allocator
    ///    cannot merge its own flags into that structure, and passes it on unchanged.
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
