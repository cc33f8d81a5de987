//! Memory shared with other processes or APIs: the functions of Windows.
#![expect(unsafe_code, reason = "the functions have the C ABI")]

use ash::vk;

use crate::allocator::Front;
use crate::guard::{answer, exported, refused};
use crate::types::{VmaAllocation, VmaAllocator};
use sublet::Allocation;
use sublet::ExportError;

use super::bind::both;

impl Front {
    /// # Safety
    /// C1 to C3.
    unsafe fn export(
        &self,
        function: &'static str,
        allocation: &Allocation,
        handle_type: vk::ExternalMemoryHandleTypeFlags,
        target_process: vk::HANDLE,
        handle: *mut vk::HANDLE,
    ) -> vk::Result {
        // SAFETY: C3.
        match unsafe { self.allocator.win32_handle(allocation, handle_type, target_process) } {
            Ok(made) => {
                // SAFETY: C3.
                unsafe { answer(handle, made) };
                vk::Result::SUCCESS
            }
            Err(error) => {
                let result = match &error {
                    // VMA defines no result for misuse that it does not detect.
                    ExportError::Foreign(_) => vk::Result::ERROR_UNKNOWN,
                    known => known.vk_result(),
                };
                refused(function, &error, result == vk::Result::ERROR_UNKNOWN, result)
            }
        }
    }
}

exported! {
    /// Exports the memory of an allocation.
    fn vmaGetMemoryWin32Handle(
        allocator: VmaAllocator,
        allocation: VmaAllocation,
        target_process: vk::HANDLE,
        handle: *mut vk::HANDLE,
    ) -> vk::Result {
        const NAME: &str = "vmaGetMemoryWin32Handle";
        // SAFETY: C1, C2.
        let Some((object, _, allocation)) = (unsafe { both(NAME, allocator, allocation) }) else {
            return vk::Result::ERROR_UNKNOWN;
        };
        let handle_type = vk::ExternalMemoryHandleTypeFlags::OPAQUE_WIN32;
        // SAFETY: C1 to C3.
        unsafe { object.front.export(NAME, allocation, handle_type, target_process, handle) }
    }

    /// Exports the memory of an allocation as a handle of some type.
    fn vmaGetMemoryWin32Handle2(
        allocator: VmaAllocator,
        allocation: VmaAllocation,
        handle_type: vk::ExternalMemoryHandleTypeFlags,
        target_process: vk::HANDLE,
        handle: *mut vk::HANDLE,
    ) -> vk::Result {
        const NAME: &str = "vmaGetMemoryWin32Handle2";
        // SAFETY: C1, C2.
        let Some((object, _, allocation)) = (unsafe { both(NAME, allocator, allocation) }) else {
            return vk::Result::ERROR_UNKNOWN;
        };
        // SAFETY: C1 to C3.
        unsafe { object.front.export(NAME, allocation, handle_type, target_process, handle) }
    }
}
