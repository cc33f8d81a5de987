//! Creation of instances.
#![expect(unsafe_code, reason = "the functions have the C ABI, and call the next layer")]

use std::ffi::CStr;
use std::mem::transmute;

use ash::vk::{self, Handle as _};
use ash_layer::{LayerFunction, LayerInstanceCreateInfo};

use crate::calls::FAILED;
use crate::chain;
use crate::registry::{Registry, key_of};
use crate::table::InstanceFunctions;

static INSTANCES: Registry<WatchedInstance> = Registry::new();

/// An instance, and the functions of the next layer.
pub(crate) struct WatchedInstance {
    pub(crate) handle: vk::Instance,
    pub(crate) next: vk::PFN_vkGetInstanceProcAddr,
    pub(crate) functions: InstanceFunctions,
    /// `vkGetPhysicalDeviceMemoryProperties2`, if the program may call it.
    pub(crate) memory_properties2: Option<vk::PFN_vkGetPhysicalDeviceMemoryProperties2>,
    /// `vkGetPhysicalDeviceFeatures2`, if the program may call it.
    pub(crate) features2: Option<vk::PFN_vkGetPhysicalDeviceFeatures2>,
    /// The version that the program requests.
    pub(crate) api_version: u32,
}

impl WatchedInstance {
    /// Returns the state that belongs to an instance or a physical device.
    ///
    /// # Safety
    /// V2 holds for `handle` during `'a`.
    pub(crate) unsafe fn of<'a, H: vk::Handle>(handle: H) -> Option<&'a Self> {
        // SAFETY: the caller's.
        let key = unsafe { key_of(handle) };
        // SAFETY: V2: the instance is destroyed after this call.
        unsafe { INSTANCES.find(key) }
    }
}

/// Returns a function without its type.
pub(crate) fn as_void(function: vk::PFN_vkGetInstanceProcAddr) -> vk::PFN_vkVoidFunction {
    // SAFETY: both types are addresses of functions. The caller converts it back.
    Some(unsafe { transmute::<vk::PFN_vkGetInstanceProcAddr, unsafe extern "system" fn()>(function) })
}

/// Returns one of the functions that need no instance.
pub(crate) fn function_without_instance(
    name: &CStr,
    get_instance_proc_addr: vk::PFN_vkGetInstanceProcAddr,
) -> vk::PFN_vkVoidFunction {
    if name == c"vkGetInstanceProcAddr" {
        return as_void(get_instance_proc_addr);
    }
    if name != c"vkCreateInstance" {
        return None;
    }
    let create: vk::PFN_vkCreateInstance = create_instance;
    // SAFETY: as in `as_void`.
    Some(unsafe { transmute::<vk::PFN_vkCreateInstance, unsafe extern "system" fn()>(create) })
}

/// Finds the loader's description of the next layer, moves it to the one after that, and returns the next layer's
/// function.
///
/// # Safety
/// V1 holds for `info`, and the loader created its chain.
unsafe fn take_link(info: &vk::InstanceCreateInfo<'_>) -> Option<vk::PFN_vkGetInstanceProcAddr> {
    // SAFETY: the caller's.
    let all = unsafe { chain::of_type::<LayerInstanceCreateInfo>(info.p_next) };
    for link in all.map(<*const _>::cast_mut) {
        // SAFETY: V1: the type of the structure is the one that `sType` states, and the loader lets each layer change it.
        let link = unsafe { link.as_mut() }?;
        if link.function != LayerFunction::LAYER_LINK_INFO {
            continue;
        }
        // SAFETY: this function is the discriminant of the union.
        let layer = unsafe { link.u.p_layer_info };
        // SAFETY: the loader points to a link for each layer.
        let layer = unsafe { layer.as_ref() }?;
        link.u.p_layer_info = layer.p_next;
        return layer.pfn_next_get_instance_proc_addr;
    }
    None
}

unsafe extern "system" fn create_instance(
    info: *const vk::InstanceCreateInfo<'_>,
    callbacks: *const vk::AllocationCallbacks<'_>,
    instance: *mut vk::Instance,
) -> vk::Result {
    // SAFETY: V1.
    let Some(given) = (unsafe { info.as_ref() }) else { return FAILED };
    // SAFETY: V1, and the loader calls this function.
    let Some(next) = (unsafe { take_link(given) }) else { return FAILED };
    // SAFETY: V3; this function needs no instance.
    let create = unsafe { next(vk::Instance::null(), c"vkCreateInstance".as_ptr()) };
    let Some(create) = create else { return FAILED };
    // SAFETY: V3.
    let create = unsafe { transmute::<unsafe extern "system" fn(), vk::PFN_vkCreateInstance>(create) };
    // SAFETY: the parameters are those of the program.
    let result = unsafe { create(info, callbacks, instance) };
    if result == vk::Result::SUCCESS {
        // SAFETY: V1: the next layer wrote the handle.
        let handle = unsafe { *instance };
        // SAFETY: the instance is live, and `given` is as before.
        let created = unsafe { watched_instance(handle, next, given) };
        // SAFETY: V2.
        let key = unsafe { key_of(handle) };
        INSTANCES.insert(key, Box::new(created));
    }
    result
}

/// Loads the functions of a new instance.
///
/// # Safety
/// V1 holds for `info`, and V3 for `next` and `handle`.
unsafe fn watched_instance(
    handle: vk::Instance,
    next: vk::PFN_vkGetInstanceProcAddr,
    info: &vk::InstanceCreateInfo<'_>,
) -> WatchedInstance {
    // SAFETY: the caller's.
    let functions = unsafe { InstanceFunctions::load(next, handle) };
    // SAFETY: V1.
    let application = unsafe { info.p_application_info.as_ref() };
    let api_version = application.map_or(0, |application| application.api_version).max(vk::API_VERSION_1_0);
    // SAFETY: V1.
    let has_khr = unsafe {
        names_contain(
            info.pp_enabled_extension_names,
            info.enabled_extension_count,
            ash::khr::get_physical_device_properties2::NAME,
        )
    };
    let is_core = api_version >= vk::API_VERSION_1_1;

    WatchedInstance {
        handle,
        next,
        memory_properties2: if is_core {
            functions.memory_properties2
        } else {
            functions.memory_properties2_khr.filter(|_| has_khr)
        },
        features2: if is_core { functions.features2 } else { functions.features2_khr.filter(|_| has_khr) },
        functions,
        api_version,
    }
}

/// Returns true if a list of names contains `wanted`.
///
/// # Safety
/// V1: `names` is valid for reads of `count` texts that end with a zero.
pub(crate) unsafe fn names_contain(names: *const *const std::ffi::c_char, count: u32, wanted: &CStr) -> bool {
    // SAFETY: the caller's.
    let names = unsafe { crate::calls::slice(names, count) };
    names.iter().any(|&name| {
        // SAFETY: the caller's.
        !name.is_null() && unsafe { CStr::from_ptr(name) } == wanted
    })
}

pub(crate) unsafe extern "system" fn destroy_instance(
    instance: vk::Instance,
    callbacks: *const vk::AllocationCallbacks<'_>,
) {
    if instance.is_null() {
        return;
    }
    // The next layer frees the object that has the key.
    // SAFETY: V2.
    let key = unsafe { key_of(instance) };
    let Some(known) = INSTANCES.remove(key) else { return };
    if let Some(destroy) = known.functions.destroy_instance {
        // SAFETY: V3, and the parameters are those of the program.
        unsafe { destroy(instance, callbacks) };
    }
}
