//! Dedicated memory with the program's own `pNext` chain, for imports, exports and structures that the allocator does
//! not know.

use std::panic::Location;

use ash::vk;

use super::{Allocator, Resource};
use crate::allocation::Allocation;
use crate::create_info::AllocationCreateInfo;
use crate::device::{MemoryAllocateNext, ResourceRequirements};
use crate::error::AllocationError;

impl Allocator {
    /// Allocates dedicated memory with a chain for its `VkMemoryAllocateInfo`. Otherwise like [`Self::allocate_memory`]
    /// with [`DEDICATED_MEMORY`](crate::AllocationCreateFlags::DEDICATED_MEMORY).
    ///
    /// This imports memory that another API or process exported. The import must use the memory type of the export:
    /// take `memory_type_bits` of the requirements from `vkGetMemoryFdPropertiesKHR` or its siblings.
    ///
    /// # Errors
    /// See [`AllocationError`]; [`TwoMemoryAllocateChains`](crate::Contradiction::TwoMemoryAllocateChains) if the pool
    /// has a chain as well.
    ///
    #[cfg_attr(unix, doc = "```")]
    #[cfg_attr(not(unix), doc = "```ignore")]
    /// # use sublet::*; use ash::vk;
    /// # use std::os::fd::IntoRawFd;
    /// # let (gpu, allocator) = sublet::doc_example();
    /// let requirements = vk::MemoryRequirements { size: 65_536, alignment: 256, memory_type_bits: 1 };
    /// let opaque = vk::ExternalMemoryHandleTypeFlags::OPAQUE_FD;
    /// let export = vk::ExportMemoryAllocateInfo::default().handle_types(opaque);
    /// // SAFETY: the chain lives until the call returns, and the extension is enabled.
    /// let next = unsafe { MemoryAllocateNext::new(std::ptr::from_ref(&export).cast()) };
    /// let exported = allocator.allocate_dedicated_memory(&requirements, &AllocationCreateInfo::default(), next)?;
    /// // SAFETY: the memory was allocated to be exported so.
    /// let fd = unsafe { allocator.memory_fd(&exported, opaque) }?;
    ///
    /// // Elsewhere, mostly in another process. Vulkan owns the descriptor from here on.
    /// let import = vk::ImportMemoryFdInfoKHR::default().handle_type(opaque).fd(fd.into_raw_fd());
    /// // SAFETY: as above; size and memory type are those of the export.
    /// let next = unsafe { MemoryAllocateNext::new(std::ptr::from_ref(&import).cast()) };
    /// let imported = allocator.allocate_dedicated_memory(&requirements, &AllocationCreateInfo::default(), next)?;
    /// # for allocation in [imported, exported] {
    /// #     unsafe { allocator.free_memory(allocation) }?;
    /// # }
    /// # gpu.assert_silent();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[track_caller]
    pub fn allocate_dedicated_memory(
        &self,
        requirements: &vk::MemoryRequirements,
        info: &AllocationCreateInfo<'_>,
        next: MemoryAllocateNext,
    ) -> Result<Allocation, AllocationError> {
        let resource = Resource::unknown(ResourceRequirements::from(requirements));
        self.allocate(resource, || info, Some(next), Location::caller())
    }
}
