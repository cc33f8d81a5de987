//! Memory that is shared with others, as far as one process goes: descriptors that are real and lead nowhere.

use std::ffi::c_int;

use ash::vk;

use super::chain;
use super::entry::{call, entries, on_device};

entries! {
    Device result vk::PFN_vkGetMemoryFdKHR = memory_fd: ext "VK_KHR_external_memory_fd" "vkGetMemoryFdKHR";
    Device result vk::PFN_vkGetMemoryFdPropertiesKHR = fd_properties:
        ext "VK_KHR_external_memory_fd" "vkGetMemoryFdPropertiesKHR";
}

unsafe extern "system" fn memory_fd(
    device: vk::Device,
    p_info: *const vk::MemoryGetFdInfoKHR<'_>,
    p_fd: *mut c_int,
) -> vk::Result {
    on_device(device, call!("vkGetMemoryFdKHR"), |device| {
        // SAFETY: VUID-vkGetMemoryFdKHR-pGetFdInfo-parameter.
        let Some(info) = (unsafe { chain::input(p_info) }) else {
            return vk::Result::ERROR_VALIDATION_FAILED_EXT;
        };
        let state = device.state.lock();
        let name = state.name(info.memory);
        let broken = match state.memories.get(&info.memory) {
            None => Some(("VUID-VkMemoryGetFdInfoKHR-memory-parameter", device.hub.fate(info.memory))),
            Some(memory) if memory.info.export_handle_types & info.handle_type.as_raw() == 0 => Some((
                "VUID-VkMemoryGetFdInfoKHR-handleType-00671",
                "was allocated without this handle type in VkExportMemoryAllocateInfo",
            )),
            Some(_) => None,
        };
        if let Some((vuid, why)) = broken {
            device.report(vuid, format!("{name} {why}"));
            return vk::Result::ERROR_VALIDATION_FAILED_EXT;
        }
        let Some(fd) = descriptor() else {
            return vk::Result::ERROR_TOO_MANY_OBJECTS;
        };
        // SAFETY: VUID-vkGetMemoryFdKHR-pFd-parameter.
        unsafe { chain::output(p_fd, fd) };
        vk::Result::SUCCESS
    })
}

/// A descriptor that the program may pass on and must close.
#[cfg(unix)]
fn descriptor() -> Option<c_int> {
    use std::os::fd::IntoRawFd as _;
    std::fs::File::open("/dev/null").ok().map(|file| file.into_raw_fd())
}

#[cfg(not(unix))]
fn descriptor() -> Option<c_int> {
    None
}

unsafe extern "system" fn fd_properties(
    device: vk::Device,
    _: vk::ExternalMemoryHandleTypeFlags,
    _: c_int,
    p_properties: *mut vk::MemoryFdPropertiesKHR<'_>,
) -> vk::Result {
    on_device(device, call!("vkGetMemoryFdPropertiesKHR"), |device| {
        // SAFETY: VUID-vkGetMemoryFdPropertiesKHR-pMemoryFdProperties-parameter.
        if let Some(out) = unsafe { p_properties.as_mut() } {
            out.memory_type_bits = device.profile().all_types();
        }
        vk::Result::SUCCESS
    })
}
