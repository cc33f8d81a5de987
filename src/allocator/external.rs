//! Exporting memory to other APIs and processes.
#![expect(unsafe_code, reason = "calls Vulkan, or has its caller promise what Vulkan asks")]

use ash::vk;

use super::Allocator;
use crate::allocation::Allocation;
use crate::error::ExportError;

impl Allocator {
    /// Returns a new file descriptor for the device memory of an allocation (`vkGetMemoryFdKHR`).
    ///
    /// The descriptor refers to the whole memory. Unless the allocation is dedicated, the importer needs its
    /// [`offset`](Allocation::offset) and the [`memory_size`](crate::AllocationInfo::memory_size). The memory must have
    /// been allocated for export: through
    /// [`external_memory_handle_types`](crate::AllocatorCreateInfo::external_memory_handle_types), or a chain of the
    /// pool or the allocation.
    ///
    /// # Errors
    /// [`ExportError::NotEnabled`] without VK_KHR_external_memory_fd, else the driver's error.
    ///
    /// # Safety
    /// The memory was allocated with this handle type in `VkExportMemoryAllocateInfo`
    /// (VUID-VkMemoryGetFdInfoKHR-handleType-00671), and the type is one of file descriptors (-00672).
    ///
    /// ```
    /// # use sublet::*; use ash::vk;
    /// # let gpu = sim::Gpu::new(sim::Profile::by_name("lavapipe").unwrap());
    /// let opaque = vk::ExternalMemoryHandleTypeFlags::OPAQUE_FD;
    /// let info = AllocatorCreateInfo { external_memory_handle_types: &[opaque], ..AllocatorCreateInfo::for_gpu(&gpu) };
    /// // SAFETY: the handles are live and outlive the allocator, and the extension is enabled.
    /// let allocator = unsafe { Allocator::new(&info) }?;
    /// let requirements = vk::MemoryRequirements { size: 4096, alignment: 256, memory_type_bits: 1 };
    /// let allocation = allocator.allocate_memory(&requirements, &AllocationCreateInfo::default())?;
    /// // SAFETY: all memory of type 0 is exported so.
    /// let fd = unsafe { allocator.memory_fd(&allocation, opaque) }?;
    /// # drop(fd);
    /// # unsafe { allocator.free_memory(allocation) }?;
    /// # gpu.assert_silent();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[cfg(unix)]
    pub unsafe fn memory_fd(
        &self,
        allocation: &Allocation,
        handle_type: vk::ExternalMemoryHandleTypeFlags,
    ) -> Result<std::os::fd::OwnedFd, ExportError> {
        self.live_vector_of(allocation)?;
        let device = &self.inner.context.device;
        // SAFETY: the caller's promise: the memory was allocated to be exported so. It is live because the allocation is.
        let fd = unsafe { device.memory_fd(allocation.memory, handle_type) };
        Ok(fd.ok_or(ExportError::NotEnabled)??)
    }

    /// Returns a Windows handle for the device memory of an allocation (`vkGetMemoryWin32HandleKHR`). The handle is
    /// duplicated into `target_process`, or into this process if that is null. Each call returns a new handle, which
    /// its receiver closes. The driver is called once for each memory and handle type.
    ///
    /// The documentation of `memory_fd` applies to handles as well.
    ///
    /// # Errors
    /// [`ExportError::NotEnabled`] without
    /// [`KHR_EXTERNAL_MEMORY_WIN32`](crate::AllocatorCreateFlags::KHR_EXTERNAL_MEMORY_WIN32), else the driver's error.
    /// A handle that cannot be duplicated is reported as `VK_ERROR_INVALID_EXTERNAL_HANDLE` of `DuplicateHandle`.
    ///
    /// # Safety
    /// The memory was allocated with this handle type in `VkExportMemoryAllocateInfo`
    /// (VUID-VkMemoryGetWin32HandleInfoKHR-handleType-00662). The type is one of NT handles (-00664). `target_process`
    /// is null, or a process handle with the right to duplicate into it.
    ///
    /// ```no_run
    /// # use sublet::*; use ash::vk;
    /// # fn example(allocator: &Allocator, allocation: &Allocation) -> Result<(), ExportError> {
    /// // SAFETY: the memory was allocated to be exported so.
    /// let handle =
    ///     unsafe { allocator.win32_handle(allocation, vk::ExternalMemoryHandleTypeFlags::OPAQUE_WIN32, 0) }?;
    /// # let _ = handle;
    /// # Ok(())
    /// # }
    /// ```
    #[cfg(windows)]
    pub unsafe fn win32_handle(
        &self,
        allocation: &Allocation,
        handle_type: vk::ExternalMemoryHandleTypeFlags,
        target_process: vk::HANDLE,
    ) -> Result<vk::HANDLE, ExportError> {
        self.live_vector_of(allocation)?;
        let device = &self.inner.context.device;
        // SAFETY: the caller's promise: the memory was allocated to be exported so. It is live because the allocation is.
        let handle = unsafe { device.win32_handle(allocation.memory, handle_type, target_process) };
        Ok(handle.ok_or(ExportError::NotEnabled)??)
    }
}
