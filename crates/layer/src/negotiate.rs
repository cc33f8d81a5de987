//! The function that the loader calls first, and the one that returns this layer's functions of an instance.
#![expect(unsafe_code, reason = "the functions have the C ABI")]

use std::ffi::{CStr, c_char};

use ash::vk::{self, Handle as _};
use ash_layer::NegotiateLayerInterface;

use crate::calls::FAILED;
use crate::device::get_device_proc_addr;
use crate::instance::{self, WatchedInstance};
use crate::settings;
use crate::table;

/// The version of the interface between loader and layers that this layer implements.
const INTERFACE_VERSION: u32 = 2;

/// Agrees with the loader on the version of their interface, and gives it the entry points.
///
/// In a program with more rights than its user, it fails, and the loader continues without this layer.
///
/// # Safety
/// `interface` is null, or valid for reads and writes.
#[unsafe(no_mangle)]
#[allow(non_snake_case, reason = "the loader searches for this name")]
pub unsafe extern "system" fn vkNegotiateLoaderLayerInterfaceVersion(
    interface: *mut NegotiateLayerInterface,
) -> vk::Result {
    // SAFETY: the caller's.
    let Some(interface) = (unsafe { interface.as_mut() }) else {
        return FAILED;
    };
    if interface.loader_layer_interface_version < INTERFACE_VERSION || settings::has_more_rights() {
        return FAILED;
    }
    interface.loader_layer_interface_version = INTERFACE_VERSION;
    interface.pfn_get_instance_proc_addr = Some(get_instance_proc_addr);
    interface.pfn_get_device_proc_addr = Some(get_device_proc_addr);
    interface.pfn_get_physical_device_proc_addr = None;
    vk::Result::SUCCESS
}

/// `vkGetInstanceProcAddr` of this layer.
pub(crate) unsafe extern "system" fn get_instance_proc_addr(
    instance: vk::Instance,
    name: *const c_char,
) -> vk::PFN_vkVoidFunction {
    if name.is_null() {
        return None;
    }
    // SAFETY: V1: a text that ends with a zero.
    let text = unsafe { CStr::from_ptr(name) };
    if instance.is_null() || text == c"vkCreateInstance" {
        return instance::function_without_instance(text, get_instance_proc_addr);
    }
    if text == c"vkGetInstanceProcAddr" {
        return instance::as_void(get_instance_proc_addr);
    }
    // SAFETY: V2.
    let known = unsafe { WatchedInstance::of(instance) }?;
    // SAFETY: V3, and the parameters are those of the program.
    let next = unsafe { (known.next)(instance, name) }?;
    let own = table::intercepted_of_instance(text).or_else(|| table::intercepted_of_device(text));
    // A function that the next layer does not have does not exist for the program either.
    Some(own.unwrap_or(next))
}
