//! Memory that is shared within one process. File descriptors are real, and memory that is imported from one has the
//! bytes of the exported memory, on any simulated device. Memory that is imported from a host pointer has the bytes of
//! the program.
#![expect(unsafe_code, reason = "the functions have the C ABI")]

use std::ffi::{c_int, c_void};
use std::ptr::NonNull;
use std::sync::Arc;

use ash::vk;
use ash::vk::Handle as _;

use crate::facts::arithmetic::widen;
use crate::facts::broken::{Broken, refuse_if};
use crate::facts::chain;
use crate::facts::profiles::Profile;
use crate::objects::entry::{checked, entries, on_device};
use crate::objects::memory::MemoryInfo;
use crate::objects::store::Store;

entries! {
    Device result vk::PFN_vkGetMemoryFdKHR = memory_fd: ext "VK_KHR_external_memory_fd" "vkGetMemoryFdKHR";
    Device result vk::PFN_vkGetMemoryFdPropertiesKHR = fd_properties:
        ext "VK_KHR_external_memory_fd" "vkGetMemoryFdPropertiesKHR";
    Device result vk::PFN_vkGetMemoryHostPointerPropertiesEXT = host_pointer_properties:
        ext "VK_EXT_external_memory_host" "vkGetMemoryHostPointerPropertiesEXT";
}

/// `minImportedHostPointerAlignment`.
pub(crate) const HOST_POINTER_ALIGNMENT: u64 = 4096;

const HOST: vk::ExternalMemoryHandleTypeFlags = vk::ExternalMemoryHandleTypeFlags::HOST_ALLOCATION_EXT;

fn is_aligned(pointer: *const c_void) -> bool {
    widen(pointer.addr()) % HOST_POINTER_ALIGNMENT == 0
}

/// The memory types that host pointers can be imported to: coherent ones, in host memory if there is any.
fn host_pointer_types(profile: &Profile) -> u32 {
    let coherent = vk::MemoryPropertyFlags::HOST_VISIBLE | vk::MemoryPropertyFlags::HOST_COHERENT;
    let bits = |excluded: vk::MemoryPropertyFlags| {
        let fits = |flags: vk::MemoryPropertyFlags| flags.contains(coherent) && !flags.intersects(excluded);
        let types = (0..).zip(profile.types).filter(|(_, kind)| fits(kind.flags));
        types.fold(0, |bits, (index, _): (u32, _)| bits | 1 << index)
    };
    let amd = vk::MemoryPropertyFlags::DEVICE_COHERENT_AMD;
    match bits(vk::MemoryPropertyFlags::DEVICE_LOCAL | amd) {
        0 => bits(amd),
        host => host,
    }
}

unsafe extern "system" fn host_pointer_properties(
    device: vk::Device,
    handle_type: vk::ExternalMemoryHandleTypeFlags,
    pointer: *const c_void,
    p_properties: *mut vk::MemoryHostPointerPropertiesEXT<'_>,
) -> vk::Result {
    checked(device, "vkGetMemoryHostPointerPropertiesEXT", |device| {
        refuse_if!(handle_type != HOST => "VUID-vkGetMemoryHostPointerPropertiesEXT-handleType-01752",
            "handleType is {:#x}, which is no host allocation", handle_type.as_raw());
        refuse_if!(!is_aligned(pointer) => "VUID-vkGetMemoryHostPointerPropertiesEXT-pHostPointer-01753",
            "pHostPointer is {pointer:p}, which is no multiple of {HOST_POINTER_ALIGNMENT}");
        // SAFETY: VUID-vkGetMemoryHostPointerPropertiesEXT-pMemoryHostPointerProperties-parameter.
        if let Some(out) = unsafe { p_properties.as_mut() } {
            out.memory_type_bits = host_pointer_types(device.profile());
        }
        Ok(vk::Result::SUCCESS)
    })
}

/// The bytes of the program that an import shares; `Ok(None)` for a null pointer.
///
/// # Safety
///
/// A pointer that is not null is valid for `asked.size` bytes as long as the memory exists
/// (VUID-VkImportMemoryHostPointerInfoEXT-handleType-01750).
pub(crate) unsafe fn imported_host(
    profile: &Profile,
    asked: &MemoryInfo,
    pointer: *mut c_void,
) -> Result<Option<Arc<Store>>, Broken> {
    let Some(start) = NonNull::new(pointer.cast::<u8>()) else { return Ok(None) };
    refuse_if!(!is_aligned(pointer) => "VUID-VkImportMemoryHostPointerInfoEXT-pHostPointer-01749",
        "pHostPointer is {pointer:p}, which is no multiple of {HOST_POINTER_ALIGNMENT}");
    refuse_if!(asked.size % HOST_POINTER_ALIGNMENT != 0 => "VUID-VkMemoryAllocateInfo-allocationSize-01745",
        "allocationSize is {}, which is no multiple of {HOST_POINTER_ALIGNMENT}", asked.size);
    refuse_if!(host_pointer_types(profile).checked_shr(asked.type_index).unwrap_or(0) & 1 == 0
        => "VUID-VkMemoryAllocateInfo-memoryTypeIndex-01744",
        "memory type {} is none of a host pointer", asked.type_index);
    // SAFETY: the promise of `imported_host`.
    Ok(Some(Arc::new(unsafe { Store::of_host(start, asked.size) })))
}

unsafe extern "system" fn memory_fd(
    device: vk::Device,
    p_info: *const vk::MemoryGetFdInfoKHR<'_>,
    p_fd: *mut c_int,
) -> vk::Result {
    checked(device, "vkGetMemoryFdKHR", |device| {
        // SAFETY: VUID-vkGetMemoryFdKHR-pGetFdInfo-parameter.
        let info = unsafe { chain::given(p_info, "VUID-vkGetMemoryFdKHR-pGetFdInfo-parameter") }?;
        let state = device.state.lock();
        let memory = state.memories.get(&info.memory);
        let rule = "VUID-VkMemoryGetFdInfoKHR-memory-parameter";
        let memory = state.known(device, info.memory, memory, rule)?;
        refuse_if!(memory.info.export_handle_types & info.handle_type.as_raw() == 0
            => "VUID-VkMemoryGetFdInfoKHR-handleType-00671",
            "{} was allocated without this handle type in VkExportMemoryAllocateInfo", state.name(info.memory));
        let Some(fd) = descriptors::export(&memory.store, &memory.info) else {
            return Ok(vk::Result::ERROR_TOO_MANY_OBJECTS);
        };
        // SAFETY: VUID-vkGetMemoryFdKHR-pFd-parameter.
        unsafe { chain::output(p_fd, fd) };
        Ok(vk::Result::SUCCESS)
    })
}

/// The bytes that an import shares. `Ok(None)` if it imports something that is no descriptor of this driver, such as a
/// host pointer or a foreign DMA buffer.
pub(crate) fn imported(asked: &MemoryInfo, fd: Option<c_int>) -> Result<Option<Arc<Store>>, Broken> {
    if asked.import_handle_type & vk::ExternalMemoryHandleTypeFlags::OPAQUE_FD.as_raw() == 0 {
        return Ok(None);
    }
    let Some(fd) = fd else { return Ok(None) };
    let Some((store, payload)) = descriptors::find(fd) else {
        let text = format!("fd {fd} is none that memory was exported as, or the memory is freed");
        return Err(("VUID-VkImportMemoryFdInfoKHR-handleType-00670", text));
    };
    let MemoryInfo { size, type_index, .. } = payload;
    refuse_if!((size, type_index) != (asked.size, asked.type_index)
        => "VUID-VkMemoryAllocateInfo-allocationSize-01742",
        "{} bytes of memory type {} are imported, and {size} bytes of type {type_index} were exported",
        asked.size, asked.type_index);
    let dedicated = payload.dedicated_kind();
    refuse_if!(!asked.dedicated_image.is_null() && dedicated != vk::ObjectType::IMAGE
        => "VUID-VkMemoryDedicatedAllocateInfo-image-01878",
        "the memory is to be dedicated to an image, and what is imported is not");
    refuse_if!(!asked.dedicated_buffer.is_null() && dedicated != vk::ObjectType::BUFFER
        => "VUID-VkMemoryDedicatedAllocateInfo-buffer-01879",
        "the memory is to be dedicated to a buffer, and what is imported is not");
    refuse_if!(device_mask(asked) != device_mask(&payload) => "VUID-VkMemoryAllocateInfo-None-00643",
        "the device mask is {:#b}, and that of the imported memory {:#b}", device_mask(asked), device_mask(&payload));
    Ok(Some(store))
}

/// The physical devices that have an instance of the memory. There is one.
fn device_mask(info: &MemoryInfo) -> u32 {
    let flags = vk::MemoryAllocateFlags::from_raw(info.flags);
    if flags.contains(vk::MemoryAllocateFlags::DEVICE_MASK) { info.device_mask } else { 1 }
}

/// Ends the life of a descriptor whose import succeeded: the driver owns it.
///
/// # Safety
///
/// The program has given `fd` to the driver, and no longer uses it.
pub(crate) unsafe fn close(fd: c_int) {
    // SAFETY: the promise of `close`: `fd` is the driver's.
    unsafe { descriptors::close(fd) };
}

/// Descriptors, and the memory that each stands for.
#[cfg(unix)]
mod descriptors {
    use std::collections::BTreeMap;
    use std::ffi::c_int;
    use std::fs::File;
    use std::mem::ManuallyDrop;
    use std::os::fd::{FromRawFd as _, IntoRawFd as _, OwnedFd};
    use std::os::unix::fs::MetadataExt as _;
    use std::os::unix::net::UnixStream;
    use std::sync::{Arc, Weak};

    use parking_lot::Mutex;

    use crate::objects::memory::MemoryInfo;
    use crate::objects::store::Store;

    /// Exported memory: its bytes while any device has them, and how it was allocated.
    type Exported = (Weak<Store>, MemoryInfo);

    /// By the file behind the descriptor: a duplicate of a descriptor has another number, and the same file.
    static EXPORTS: Mutex<BTreeMap<(u64, u64), Exported>> = Mutex::new(BTreeMap::new());

    /// Which file is behind a descriptor that stays the caller's.
    fn file_of(fd: c_int) -> Option<(u64, u64)> {
        if fd < 0 {
            return None;
        }
        // SAFETY: the file is only asked what it is, and not closed. A number that is no descriptor is answered with an
        // error.
        let file = ManuallyDrop::new(unsafe { File::from_raw_fd(fd) });
        let metadata = file.metadata().ok()?;
        Some((metadata.dev(), metadata.ino()))
    }

    /// A new descriptor that the program may pass on and must close.
    pub(crate) fn export(store: &Arc<Store>, info: &MemoryInfo) -> Option<c_int> {
        // Any new file serves.
        let (end, _) = UnixStream::pair().ok()?;
        let fd = OwnedFd::from(end).into_raw_fd();
        let mut exports = EXPORTS.lock();
        exports.retain(|_, (store, ..)| store.strong_count() > 0);
        exports.insert(file_of(fd)?, (Arc::downgrade(store), info.clone()));
        Some(fd)
    }

    /// The memory that a descriptor stands for.
    pub(crate) fn find(fd: c_int) -> Option<(Arc<Store>, MemoryInfo)> {
        let file = file_of(fd)?;
        let exports = EXPORTS.lock();
        let (store, info) = exports.get(&file)?;
        Some((store.upgrade()?, info.clone()))
    }

    /// # Safety
    ///
    /// As for [`super::close`].
    pub(crate) unsafe fn close(fd: c_int) {
        // SAFETY: the promise of `close`: `fd` is the driver's.
        drop(unsafe { OwnedFd::from_raw_fd(fd) });
    }
}

/// Other systems have no file descriptors.
#[cfg(not(unix))]
mod descriptors {
    use std::ffi::c_int;
    use std::sync::Arc;

    use crate::objects::memory::MemoryInfo;
    use crate::objects::store::Store;

    pub(crate) fn export(_: &Arc<Store>, _: &MemoryInfo) -> Option<c_int> {
        None
    }

    pub(crate) fn find(_: c_int) -> Option<(Arc<Store>, MemoryInfo)> {
        None
    }

    pub(crate) unsafe fn close(_: c_int) {}
}

unsafe extern "system" fn fd_properties(
    device: vk::Device,
    _: vk::ExternalMemoryHandleTypeFlags,
    _: c_int,
    p_properties: *mut vk::MemoryFdPropertiesKHR<'_>,
) -> vk::Result {
    on_device(device, "vkGetMemoryFdPropertiesKHR", |device| {
        // SAFETY: VUID-vkGetMemoryFdPropertiesKHR-pMemoryFdProperties-parameter.
        if let Some(out) = unsafe { p_properties.as_mut() } {
            out.memory_type_bits = device.profile().all_types();
        }
        vk::Result::SUCCESS
    })
}
