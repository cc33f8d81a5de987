//! Exports handles of memory, and changes its priority.
#![expect(unsafe_code, reason = "calls Vulkan")]

use ash::vk;

use super::driver::LiveDevice;
#[cfg(any(unix, windows))]
use super::error::DriverError;

impl LiveDevice {
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
