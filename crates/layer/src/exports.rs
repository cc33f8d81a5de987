//! Exported functions with which loaders without manifests, such as Android's, find the layer.
//!
//! Such a loader lists the layers of each library and their extensions, and then asks for functions. It passes null for
//! the physical device. The layer has no extensions.
#![expect(unsafe_code, reason = "the functions have the C ABI, and write into the loader's lists")]
#![allow(non_snake_case, reason = "loaders search for these names")]

use std::ffi::{CStr, c_char};

use ash::vk;
use sublet::private::{index, narrow};

use crate::calls::FAILED;
use crate::device;
use crate::instance::WatchedInstance;
use crate::negotiate;

const NAME: &CStr = c"VK_LAYER_SUBLET_memory";

/// Writes a list in the way of the functions `vkEnumerate*`.
///
/// # Safety
/// V1: `count` is valid for reads and writes, `list` is null or valid for writes of `*count` elements.
unsafe fn write_list<T: Copy>(all: &[T], count: *mut u32, list: *mut T) -> vk::Result {
    // SAFETY: the caller's.
    let Some(count) = (unsafe { count.as_mut() }) else { return FAILED };
    let available = narrow(all.len());
    if list.is_null() {
        *count = available;
        return vk::Result::SUCCESS;
    }
    *count = available.min(*count);
    // SAFETY: both lists have so many elements: `all` because of the minimum, `list` by the caller.
    unsafe { list.copy_from_nonoverlapping(all.as_ptr(), index(*count)) };
    if *count < available { vk::Result::INCOMPLETE } else { vk::Result::SUCCESS }
}

/// Lists this layer. The exported functions do not call each other: in ELF, that would call a function of the same name
/// in the program or in the loader.
///
/// # Safety
/// V1: see [`write_list`].
unsafe fn list_layer(count: *mut u32, list: *mut vk::LayerProperties) -> vk::Result {
    let layer = vk::LayerProperties {
        spec_version: vk::make_api_version(0, 1, 3, 281),
        implementation_version: 1,
        ..vk::LayerProperties::default()
    };
    let described = layer
        .layer_name(NAME)
        .and_then(|layer| layer.description(c"Records what a program does with device memory"));
    let Ok(layer) = described else { return FAILED };
    // SAFETY: the caller's.
    unsafe { write_list(&[layer], count, list) }
}

/// Lists the extensions of this layer: none.
///
/// # Safety
/// V1: `layer` is null or a text that ends with a zero. For the others, see [`write_list`].
unsafe fn list_extensions(
    layer: *const c_char,
    count: *mut u32,
    list: *mut vk::ExtensionProperties,
) -> vk::Result {
    // SAFETY: the caller's.
    if layer.is_null() || unsafe { CStr::from_ptr(layer) } != NAME {
        return vk::Result::ERROR_LAYER_NOT_PRESENT;
    }
    // SAFETY: the caller's.
    unsafe { write_list(&[], count, list) }
}

/// Lists this layer.
///
/// # Safety
/// `count` is valid for reads and writes, `list` is null or valid for writes of `*count` elements.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "system" fn vkEnumerateInstanceLayerProperties(
    count: *mut u32,
    list: *mut vk::LayerProperties,
) -> vk::Result {
    // SAFETY: the caller's.
    unsafe { list_layer(count, list) }
}

/// Lists this layer: a loader compares both lists, and uses the layer for devices if it is in both.
///
/// # Safety
/// See [`vkEnumerateInstanceLayerProperties`].
#[unsafe(no_mangle)]
pub(crate) unsafe extern "system" fn vkEnumerateDeviceLayerProperties(
    _: vk::PhysicalDevice,
    count: *mut u32,
    list: *mut vk::LayerProperties,
) -> vk::Result {
    // SAFETY: the caller's.
    unsafe { list_layer(count, list) }
}

/// Lists the extensions of this layer: none.
///
/// # Safety
/// `layer` is null or a text that ends with a zero, `count` is valid for reads and writes, and `list` is null or valid
/// for writes of `*count` elements.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "system" fn vkEnumerateInstanceExtensionProperties(
    layer: *const c_char,
    count: *mut u32,
    list: *mut vk::ExtensionProperties,
) -> vk::Result {
    // SAFETY: the caller's.
    unsafe { list_extensions(layer, count, list) }
}

/// Lists the extensions of this layer, or those of the next one if another layer or none is named.
///
/// # Safety
/// As for [`vkEnumerateInstanceExtensionProperties`]. V2 holds for `physical`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "system" fn vkEnumerateDeviceExtensionProperties(
    physical: vk::PhysicalDevice,
    layer: *const c_char,
    count: *mut u32,
    list: *mut vk::ExtensionProperties,
) -> vk::Result {
    // SAFETY: V2.
    let next = unsafe { WatchedInstance::of(physical) }.and_then(|instance| instance.functions.extensions);
    match next {
        // SAFETY: the caller's.
        Some(next) if layer.is_null() || unsafe { CStr::from_ptr(layer) } != NAME => {
            // SAFETY: V3, and the parameters are those of the caller.
            unsafe { next(physical, layer, count, list) }
        }
        // SAFETY: the caller's.
        _ => unsafe { list_extensions(layer, count, list) },
    }
}

/// Returns the layer's function of an instance.
///
/// # Safety
/// V1 to V3 hold for the parameters.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "system" fn vkGetInstanceProcAddr(
    instance: vk::Instance,
    name: *const c_char,
) -> vk::PFN_vkVoidFunction {
    // SAFETY: the caller's.
    unsafe { negotiate::get_instance_proc_addr(instance, name) }
}

/// Returns the layer's function of a device.
///
/// # Safety
/// V1 to V3 hold for the parameters.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "system" fn vkGetDeviceProcAddr(
    device: vk::Device,
    name: *const c_char,
) -> vk::PFN_vkVoidFunction {
    // SAFETY: the caller's.
    unsafe { device::get_device_proc_addr(device, name) }
}
