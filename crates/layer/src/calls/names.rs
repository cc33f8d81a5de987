//! Names of objects.
#![expect(unsafe_code, reason = "the functions have the C ABI, and call the next layer")]

use std::ffi::{CStr, c_char};

use ash::vk::{self, Handle as _};
use sublet::private::Operation;

use super::{FAILED, next};
use crate::device::WatchedDevice;
use crate::recording::{ObjectKey, RecordFields};

/// Records a name.
///
/// # Safety
/// V1: `name` is null or a text that ends with a zero.
unsafe fn record_name(known: &WatchedDevice, key: ObjectKey, name: *const c_char) {
    if !known.recording.as_ref().is_some_and(|recording| recording.names()) {
        return;
    }
    let text = if name.is_null() {
        c""
    } else {
        // SAFETY: the caller's.
        unsafe { CStr::from_ptr(name) }
    };
    let text = text.to_string_lossy();
    known.record(|access| {
        access.update(key, |object| {
            let fields = RecordFields::named(u64::from(!key.is_memory()), object.id, &text);
            object.replace(Operation::Named, &fields);
            Some(fields)
        });
    });
}

pub(crate) unsafe extern "system" fn set_name(
    device: vk::Device,
    info: *const vk::DebugUtilsObjectNameInfoEXT<'_>,
) -> vk::Result {
    let (known, next) = next!(device, set_name, FAILED);
    // SAFETY: V3, and the parameters are those of the program.
    let result = unsafe { next(device, info) };
    // SAFETY: V1.
    let Some(info) = (unsafe { info.as_ref() }) else { return result };
    let key = match info.object_type {
        vk::ObjectType::DEVICE_MEMORY => ObjectKey::from(vk::DeviceMemory::from_raw(info.object_handle)),
        vk::ObjectType::BUFFER => ObjectKey::from(vk::Buffer::from_raw(info.object_handle)),
        vk::ObjectType::IMAGE => ObjectKey::from(vk::Image::from_raw(info.object_handle)),
        _ => return result,
    };
    // SAFETY: V1.
    unsafe { record_name(known, key, info.p_object_name) };
    result
}

pub(crate) unsafe extern "system" fn set_marker_name(
    device: vk::Device,
    info: *const vk::DebugMarkerObjectNameInfoEXT<'_>,
) -> vk::Result {
    let (known, next) = next!(device, set_marker_name, FAILED);
    // SAFETY: V3, and the parameters are those of the program.
    let result = unsafe { next(device, info) };
    // SAFETY: V1.
    let Some(info) = (unsafe { info.as_ref() }) else { return result };
    let key = match info.object_type {
        vk::DebugReportObjectTypeEXT::DEVICE_MEMORY => {
            ObjectKey::from(vk::DeviceMemory::from_raw(info.object))
        }
        vk::DebugReportObjectTypeEXT::BUFFER => ObjectKey::from(vk::Buffer::from_raw(info.object)),
        vk::DebugReportObjectTypeEXT::IMAGE => ObjectKey::from(vk::Image::from_raw(info.object)),
        _ => return result,
    };
    // SAFETY: V1.
    unsafe { record_name(known, key, info.p_object_name) };
    result
}
