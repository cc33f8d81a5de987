//! The driver as its users see it: the functions that it has, and to whom it offers them.

pub(crate) mod device;
pub(crate) mod environment;
pub(crate) mod instance;
mod messenger;
pub(crate) mod null;
pub(crate) mod physical;

use std::ffi::{CStr, c_char};

use ash::vk;

use crate::commands;
use crate::execution::{queue, sparse, sync};
use crate::memory::{allocate, bind, external, mapping, requirements, resource};
use crate::objects::entry::{EntryPoint, Function, FunctionLevel, When};
use crate::objects::registry;
use crate::objects::state::DeviceObject;
use crate::pipelines::{descriptor_buffer, descriptor_heap, descriptors, passes, pipeline};

/// Every list of entry points.
pub(crate) const TABLES: &[&[EntryPoint]] = &[
    instance::ENTRIES,
    physical::ENTRIES,
    device::ENTRIES,
    allocate::ENTRIES,
    external::ENTRIES,
    messenger::ENTRIES,
    mapping::ENTRIES,
    bind::ENTRIES,
    resource::ENTRIES,
    requirements::ENTRIES,
    commands::ENTRIES,
    descriptor_buffer::ENTRIES,
    descriptor_heap::ENTRIES,
    passes::ENTRIES,
    pipeline::ENTRIES,
    descriptors::ENTRIES,
    queue::ENTRIES,
    sparse::ENTRIES,
    sync::ENTRIES,
];

/// Every entry point.
pub(crate) fn all() -> impl Iterator<Item = &'static EntryPoint> {
    TABLES.iter().copied().flatten()
}

/// The entry point that has this name among its names, aliases included.
pub(crate) fn find(name: &str) -> Option<&'static EntryPoint> {
    all().find(|entry| entry.offers.iter().any(|offer| offer.name == name))
}

/// `vkGetInstanceProcAddr` of a driver whose instance version is 1.`MINOR`, or comes from the environment if `MINOR`
/// is [`environment::ENVIRONMENT`].
#[expect(unsafe_code, reason = "the functions have the C ABI")]
pub(crate) unsafe extern "system" fn get_instance_proc_addr<const MINOR: u32>(
    instance: vk::Instance,
    p_name: *const c_char,
) -> vk::PFN_vkVoidFunction {
    // SAFETY: a null-terminated string or NULL: VUID-vkGetInstanceProcAddr-pName-parameter.
    let name = unsafe { name(p_name) }?;
    match name {
        "vkGetInstanceProcAddr" => return function(get_instance_proc_addr::<MINOR>),
        "vkCreateInstance" => return create_instance(instance::create::<MINOR>),
        "vkEnumerateInstanceVersion" => {
            let offered = environment::minor(MINOR) >= 1;
            return if offered { enumerate_version(instance::enumerate_version::<MINOR>) } else { None };
        }
        _ => {}
    }
    let entry = find(name)?;
    if entry.level == FunctionLevel::Global {
        return entry.offered(name, |_| true).then_some(entry.function);
    }
    let owner = registry::instance(instance)?;
    let offered = entry.offered(name, |when| match when {
        When::Core(minor) => minor <= owner.minor,
        // A function of a device extension may be asked for here if the device has the extension at all.
        When::Extension(extension) => {
            owner.extensions.iter().any(|enabled| enabled == extension) || owner.gpu_state.offers(extension)
        }
    });
    offered.then_some(entry.function)
}

/// `vkGetDeviceProcAddr`.
#[expect(unsafe_code, reason = "the functions have the C ABI")]
pub(crate) unsafe extern "system" fn get_device_proc_addr(
    device: vk::Device,
    p_name: *const c_char,
) -> vk::PFN_vkVoidFunction {
    // SAFETY: a null-terminated string or NULL: VUID-vkGetDeviceProcAddr-pName-parameter.
    let name = unsafe { name(p_name) }?;
    let owner: std::sync::Arc<DeviceObject> = registry::device(device)?;
    let entry = find(name)?;
    let offered = entry.level == FunctionLevel::Device
        && entry.offered(name, |when| match when {
            When::Core(minor) => minor <= owner.minor,
            When::Extension(extension) => {
                owner.has(extension) || owner.instance.extensions.iter().any(|enabled| enabled == extension)
            }
        });
    let null = if owner.gpu_state.null { null::function(entry) } else { None };
    offered.then_some(null.unwrap_or(entry.function))
}

/// The string at `name`, if there is one and it is UTF-8: the name of a function always is.
///
/// # Safety
///
/// `name` is NULL or points to a null-terminated string that lives as long as the result is used.
#[expect(unsafe_code, reason = "the functions have the C ABI")]
pub(crate) unsafe fn name<'a>(name: *const c_char) -> Option<&'a str> {
    if name.is_null() {
        return None;
    }
    // SAFETY: the promise of `name`: not NULL, and so a null-terminated string that lives.
    unsafe { CStr::from_ptr(name) }.to_str().ok()
}

#[expect(unsafe_code, reason = "the functions have the C ABI")]
pub(crate) fn function(typed: vk::PFN_vkGetInstanceProcAddr) -> vk::PFN_vkVoidFunction {
    // SAFETY: a pointer to a function; the program that got it by its name calls it with that name's type.
    Some(unsafe { std::mem::transmute::<vk::PFN_vkGetInstanceProcAddr, Function>(typed) })
}

#[expect(unsafe_code, reason = "the functions have the C ABI")]
pub(crate) fn create_instance(typed: vk::PFN_vkCreateInstance) -> vk::PFN_vkVoidFunction {
    // SAFETY: as in `function`.
    Some(unsafe { std::mem::transmute::<vk::PFN_vkCreateInstance, Function>(typed) })
}

#[expect(unsafe_code, reason = "the functions have the C ABI")]
pub(crate) fn enumerate_version(typed: vk::PFN_vkEnumerateInstanceVersion) -> vk::PFN_vkVoidFunction {
    // SAFETY: as in `function`.
    Some(unsafe { std::mem::transmute::<vk::PFN_vkEnumerateInstanceVersion, Function>(typed) })
}
