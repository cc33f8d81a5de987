//! Windows handles of memory: exported once, duplicated for each caller, and closed when the memory is freed.
#![expect(unsafe_code, reason = "calls Vulkan")]

use std::collections::BTreeMap;
use std::ffi::c_int;

use ash::vk::{self, Handle as _};
use parking_lot::Mutex;

use super::error::DriverError;

#[link(name = "kernel32")]
unsafe extern "system" {
    fn GetCurrentProcess() -> vk::HANDLE;
    fn DuplicateHandle(
        source_process: vk::HANDLE,
        source: vk::HANDLE,
        target_process: vk::HANDLE,
        target: *mut vk::HANDLE,
        access: u32,
        inherit: c_int,
        options: u32,
    ) -> c_int;
    fn CloseHandle(handle: vk::HANDLE) -> c_int;
}

/// `DUPLICATE_SAME_ACCESS`.
const SAME_ACCESS: u32 = 2;

/// The driver's handles, by memory and handle type.
#[derive(Debug, Default)]
pub(super) struct Win32Handles(Mutex<BTreeMap<(u64, u32), vk::HANDLE>>);

impl Win32Handles {
    /// Returns a new handle for the caller. Calls `ask` to export the memory the first time.
    ///
    /// # Safety
    /// `target_process` is null (for this process) or the handle of a process.
    pub(super) unsafe fn duplicate(
        &self,
        memory: vk::DeviceMemory,
        handle_type: vk::ExternalMemoryHandleTypeFlags,
        target_process: vk::HANDLE,
        ask: impl FnOnce() -> Result<vk::HANDLE, DriverError>,
    ) -> Result<vk::HANDLE, DriverError> {
        let key = (memory.as_raw(), handle_type.as_raw());
        // Held across the driver call, because memory may be exported only once.
        let mut handles = self.0.lock();
        let source = match handles.get(&key) {
            Some(&handle) => handle,
            None => *handles.entry(key).or_insert(ask()?),
        };
        // SAFETY: the function has no preconditions.
        let this_process = unsafe { GetCurrentProcess() };
        let target_process = if target_process == 0 { this_process } else { target_process };
        let mut target: vk::HANDLE = 0;
        // SAFETY: the source is open, because its list is locked; the caller promises a target process that is null or
        // the handle of a process.
        let done =
            unsafe { DuplicateHandle(this_process, source, target_process, &mut target, 0, 0, SAME_ACCESS) };
        if done == 0 {
            let result = vk::Result::ERROR_INVALID_EXTERNAL_HANDLE;
            return Err(DriverError { call: "DuplicateHandle", result });
        }
        Ok(target)
    }

    /// Closes the handles of memory that is about to be freed.
    pub(super) fn close(&self, memory: vk::DeviceMemory) {
        let first = (memory.as_raw(), 0);
        let last = (memory.as_raw(), u32::MAX);
        let mut handles = self.0.lock();
        let keys: Vec<_> = handles.range(first..=last).map(|(&key, _)| key).collect();
        for handle in keys.iter().filter_map(|key| handles.remove(key)) {
            // SAFETY: the driver gave the handle to this library, which closes it once: it was just removed from the
            // list.
            let closed = unsafe { CloseHandle(handle) };
            debug_assert_ne!(closed, 0);
        }
    }
}
