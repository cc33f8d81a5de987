//! Exports handles of memory, imports host memory, and changes the priority of memory.
#![expect(unsafe_code, reason = "calls Vulkan")]

use std::ffi::c_void;
use std::ptr::NonNull;

use ash::vk;

use super::driver::LiveDevice;
use super::error::DriverError;

impl LiveDevice {
    /// Returns `minImportedHostPointerAlignment`; `None` without VK_EXT_external_memory_host.
    pub(crate) fn host_pointer_alignment(&self) -> Option<u64> {
        self.functions.get_memory_host_pointer_properties?;
        let query = self.functions.get_physical_device_properties2?;
        let mut host = vk::PhysicalDeviceExternalMemoryHostPropertiesEXT::default();
        let mut properties = vk::PhysicalDeviceProperties2::default().push_next(&mut host);
        // SAFETY: the physical device is live. The extension of the structure is enabled, since its function exists
        // (VUID-VkPhysicalDeviceProperties2-pNext-pNext).
        unsafe { query(self.physical_device, &mut properties) };
        Some(host.min_imported_host_pointer_alignment.max(1))
    }

    /// `vkGetMemoryHostPointerPropertiesEXT`: the memory types that memory of the host can be imported to; `None`
    /// without the extension.
    ///
    /// # Safety
    /// `pointer` points to host memory (VUID-vkGetMemoryHostPointerPropertiesEXT-handleType-01754), and has
    /// [`Self::host_pointer_alignment`] (-01753).
    pub(crate) unsafe fn host_pointer_types(
        &self,
        pointer: NonNull<c_void>,
    ) -> Option<Result<u32, DriverError>> {
        let function = self.functions.get_memory_host_pointer_properties?;
        let kind = vk::ExternalMemoryHandleTypeFlags::HOST_ALLOCATION_EXT;
        let mut properties = vk::MemoryHostPointerPropertiesEXT::default();
        // SAFETY: the caller's promise: an aligned pointer to host memory.
        let result = unsafe { function(self.device, kind, pointer.as_ptr(), &mut properties) };
        let checked = DriverError::check("vkGetMemoryHostPointerPropertiesEXT", result);
        Some(checked.map(|()| properties.memory_type_bits))
    }

    /// Returns true if the priority of memory can be changed.
    pub(crate) fn can_set_priority(&self) -> bool {
        self.settings.pageable_device_local_memory && self.functions.set_device_memory_priority.is_some()
    }

    /// `vkSetDeviceMemoryPriorityEXT`, if [`Self::can_set_priority`]. `priority` is between 0.0 and 1.0.
    ///
    /// # Safety
    /// `memory` is live (VUID-vkSetDeviceMemoryPriorityEXT-memory-parameter).
    pub(crate) unsafe fn set_memory_priority(&self, memory: vk::DeviceMemory, priority: f32) {
        let function = self.functions.set_device_memory_priority;
        if let Some(function) = function.filter(|_| self.settings.pageable_device_local_memory) {
            // SAFETY: the caller promises live memory, and has checked the priority
            // (VUID-vkSetDeviceMemoryPriorityEXT-priority-06258); the settings say that the extension is enabled.
            unsafe { function(self.device, memory, priority) };
        }
    }

    /// `vkGetMemoryFdKHR`; `None` without the extension.
    ///
    /// # Safety
    /// `memory` is live and was allocated for export as `handle_type`, which is a file descriptor type
    /// (VUID-VkMemoryGetFdInfoKHR-handleType-00671, -00672).
    #[cfg(unix)]
    pub(crate) unsafe fn memory_fd(
        &self,
        memory: vk::DeviceMemory,
        handle_type: vk::ExternalMemoryHandleTypeFlags,
    ) -> Option<Result<std::os::fd::OwnedFd, DriverError>> {
        use std::os::fd::{FromRawFd as _, OwnedFd};
        const CALL: &str = "vkGetMemoryFdKHR";
        let function = self.functions.get_memory_fd?;
        let info = vk::MemoryGetFdInfoKHR::default().memory(memory).handle_type(handle_type);
        let mut fd = -1;
        // SAFETY: the caller's promise: `memory` is live and was allocated for export as `handle_type`, which is a file
        // descriptor type.
        let result = unsafe { function(self.device, &info, &mut fd) };
        let checked = DriverError::check(CALL, result);
        let is_descriptor = fd >= 0;
        Some(checked.and_then(|()| {
            // SAFETY: the driver created the descriptor for the caller, who owns it; it is not -1.
            let fd = is_descriptor.then(|| unsafe { OwnedFd::from_raw_fd(fd) });
            fd.ok_or(DriverError { call: CALL, result: vk::Result::ERROR_INVALID_EXTERNAL_HANDLE })
        }))
    }

    /// Calls `vkGetMemoryWin32HandleKHR` the first time, and then `DuplicateHandle`; `None` without the extension.
    ///
    /// # Safety
    /// `memory` is live and was allocated for export as `handle_type`, which is an NT handle type
    /// (VUID-VkMemoryGetWin32HandleInfoKHR-handleType-00662, -00664). `target_process` is null or the handle of a
    /// process.
    #[cfg(windows)]
    pub(crate) unsafe fn win32_handle(
        &self,
        memory: vk::DeviceMemory,
        handle_type: vk::ExternalMemoryHandleTypeFlags,
        target_process: vk::HANDLE,
    ) -> Option<Result<vk::HANDLE, DriverError>> {
        let function = self.functions.get_memory_win32_handle?;
        if !self.settings.external_memory_win32 {
            return None;
        }
        let ask = || {
            let info = vk::MemoryGetWin32HandleInfoKHR::default().memory(memory).handle_type(handle_type);
            let mut handle: vk::HANDLE = 0;
            // SAFETY: the caller promises live memory that was allocated for export as this NT handle type. The list of
            // handles ensures one call for each memory and type (VUID-VkMemoryGetWin32HandleInfoKHR-handleType-00663).
            let result = unsafe { function(self.device, &info, &mut handle) };
            DriverError::check("vkGetMemoryWin32HandleKHR", result).map(|()| handle)
        };
        // SAFETY: the caller promises a target process that is null or the handle of a process.
        Some(unsafe { self.win32_handles.duplicate(memory, handle_type, target_process, ask) })
    }
}
