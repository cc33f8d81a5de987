//! Instances: what a program has before it has a device.
#![expect(unsafe_code, reason = "the functions have the C ABI")]

use std::ffi::{c_char, c_void};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ash::vk;
use ash::vk::Handle as _;

use crate::driver::environment;
use crate::facts::{chain, extensions};
use crate::objects::entry::{entries, on_instance, on_physical_device};
use crate::objects::state::{GpuState, Instance};
use crate::objects::{entry, registry};

entries! {
    Global result vk::PFN_vkCreateInstance = create::<{ environment::ENVIRONMENT }>: core 0 "vkCreateInstance";
    Global result vk::PFN_vkEnumerateInstanceVersion = enumerate_version::<{ environment::ENVIRONMENT }>:
        core 1 "vkEnumerateInstanceVersion";
    Global result vk::PFN_vkEnumerateInstanceExtensionProperties = enumerate_extensions:
        core 0 "vkEnumerateInstanceExtensionProperties";
    Global result vk::PFN_vkEnumerateInstanceLayerProperties = enumerate_layers:
        core 0 "vkEnumerateInstanceLayerProperties";
    Instance void vk::PFN_vkDestroyInstance = destroy: core 0 "vkDestroyInstance";
    Instance result vk::PFN_vkEnumeratePhysicalDevices = enumerate_physical_devices:
        core 0 "vkEnumeratePhysicalDevices";
    Instance result vk::PFN_vkEnumeratePhysicalDeviceGroups = enumerate_groups:
        core 1 "vkEnumeratePhysicalDeviceGroups",
        ext "VK_KHR_device_group_creation" "vkEnumeratePhysicalDeviceGroupsKHR";
    Instance result vk::PFN_vkEnumerateDeviceExtensionProperties = enumerate_device_extensions:
        core 0 "vkEnumerateDeviceExtensionProperties";
    Instance result vk::PFN_vkEnumerateDeviceLayerProperties = enumerate_device_layers:
        core 0 "vkEnumerateDeviceLayerProperties";
    Instance void vk::PFN_vkGetDeviceProcAddr = crate::driver::get_device_proc_addr: core 0 "vkGetDeviceProcAddr";
}

/// Chained to an instance's create-info, it says which GPU the instance is of.
#[repr(C)]
pub(crate) struct HubInfo {
    s_type: vk::StructureType,
    p_next: *const c_void,
    gpu_state: *const GpuState,
}

// SAFETY: it begins with the type tag and the link, and nothing else has this tag, see `TAG`.
unsafe impl vk::TaggedStructure for HubInfo {
    const STRUCTURE_TYPE: vk::StructureType = TAG;
}
// SAFETY: the driver that reads the create-info knows the structure; a foreign one skips what it does not know.
unsafe impl vk::ExtendsInstanceCreateInfo for HubInfo {}

/// It is outside of the ranges that Khronos assigns to extensions.
const TAG: vk::StructureType = vk::StructureType::from_raw(0x5375_626C);

impl HubInfo {
    pub(crate) fn new(gpu_state: &Arc<GpuState>) -> Self {
        Self { s_type: TAG, p_next: std::ptr::null(), gpu_state: Arc::as_ptr(gpu_state) }
    }
}

pub(crate) unsafe extern "system" fn create<const MINOR: u32>(
    p_info: *const vk::InstanceCreateInfo<'_>,
    _: *const vk::AllocationCallbacks<'_>,
    p_instance: *mut vk::Instance,
) -> vk::Result {
    // SAFETY: VUID-vkCreateInstance-pCreateInfo-parameter.
    let Some(info) = (unsafe { chain::input(p_info) }) else {
        return vk::Result::ERROR_VALIDATION_FAILED_EXT;
    };
    // SAFETY: the chain is valid: VUID-VkInstanceCreateInfo-pNext-pNext.
    let chosen = unsafe { chain::find::<HubInfo>(info.p_next) };
    let (gpu_state, orphan) = match chosen {
        Some(chosen) => {
            // SAFETY: `HubInfo::new` took it from an `Arc`, which the maker of the chain holds during the call.
            unsafe { Arc::increment_strong_count(chosen.gpu_state) };
            // SAFETY: the count that was just added is the one that this `Arc` stands for.
            (unsafe { Arc::from_raw(chosen.gpu_state) }, false)
        }
        None => (Arc::new(crate::driver::environment::environment_state(environment::minor(MINOR))), true),
    };
    entry::run(&gpu_state, "vkCreateInstance", || {
        // SAFETY: VUID-VkInstanceCreateInfo-pApplicationInfo-parameter.
        let asked = unsafe { chain::input(info.p_application_info) }.map_or(0, |info| info.api_version);
        let minor = vk::api_version_minor(asked);
        if minor > 0 && gpu_state.instance_minor == 0 {
            // The rule of the loaders of Vulkan 1.0; later ones take any version.
            return vk::Result::ERROR_INCOMPATIBLE_DRIVER;
        }
        if info.enabled_layer_count > 0 {
            return vk::Result::ERROR_LAYER_NOT_PRESENT;
        }
        // SAFETY: VUID-VkInstanceCreateInfo-ppEnabledExtensionNames-parameter.
        let enabled =
            unsafe { extensions::names(info.pp_enabled_extension_names, info.enabled_extension_count) };
        if enabled.iter().any(|name| !extensions::INSTANCE.contains(&name.as_str())) {
            return vk::Result::ERROR_EXTENSION_NOT_PRESENT;
        }
        let instance = Arc::new(Instance {
            handle: vk::Instance::from_raw(registry::reserve()),
            physical_device: vk::PhysicalDevice::from_raw(registry::reserve()),
            gpu_state: Arc::clone(&gpu_state),
            minor: minor.min(gpu_state.instance_minor),
            extensions: enabled,
            devices: AtomicU64::new(0),
            orphan,
        });
        registry::add_instance(&instance);
        // SAFETY: VUID-vkCreateInstance-pInstance-parameter.
        unsafe { chain::output(p_instance, instance.handle) };
        vk::Result::SUCCESS
    })
}

unsafe extern "system" fn destroy(instance: vk::Instance, _: *const vk::AllocationCallbacks<'_>) {
    if instance.is_null() {
        return;
    }
    on_instance(instance, "vkDestroyInstance", |instance| {
        let devices = instance.devices.load(Ordering::Relaxed);
        if devices > 0 {
            let text = format!("{devices} devices of the instance are not destroyed");
            instance.gpu_state.report("VUID-vkDestroyInstance-instance-00629", text);
        }
        registry::remove_instance(instance);
        if instance.orphan {
            crate::driver::environment::print(&instance.gpu_state.messages.unread());
        }
    });
}

pub(crate) unsafe extern "system" fn enumerate_version<const MINOR: u32>(p_version: *mut u32) -> vk::Result {
    // SAFETY: VUID-vkEnumerateInstanceVersion-pApiVersion-parameter.
    unsafe { chain::output(p_version, vk::make_api_version(0, 1, environment::minor(MINOR), 0)) };
    vk::Result::SUCCESS
}

unsafe extern "system" fn enumerate_extensions(
    p_layer: *const c_char,
    p_count: *mut u32,
    p_properties: *mut vk::ExtensionProperties,
) -> vk::Result {
    if !p_layer.is_null() {
        return vk::Result::ERROR_LAYER_NOT_PRESENT;
    }
    let all = extensions::properties(extensions::INSTANCE.iter().copied());
    // SAFETY: VUID-vkEnumerateInstanceExtensionProperties-pProperties-parameter.
    unsafe { chain::list(&all, p_count, p_properties) }
}

unsafe extern "system" fn enumerate_layers(
    p_count: *mut u32,
    p_properties: *mut vk::LayerProperties,
) -> vk::Result {
    // SAFETY: VUID-vkEnumerateInstanceLayerProperties-pProperties-parameter.
    unsafe { chain::list(&[], p_count, p_properties) }
}

unsafe extern "system" fn enumerate_physical_devices(
    instance: vk::Instance,
    p_count: *mut u32,
    p_devices: *mut vk::PhysicalDevice,
) -> vk::Result {
    on_instance(instance, "vkEnumeratePhysicalDevices", |instance| {
        // SAFETY: VUID-vkEnumeratePhysicalDevices-pPhysicalDevices-parameter.
        unsafe { chain::list(&[instance.physical_device], p_count, p_devices) }
    })
}

unsafe extern "system" fn enumerate_groups(
    instance: vk::Instance,
    p_count: *mut u32,
    p_groups: *mut vk::PhysicalDeviceGroupProperties<'_>,
) -> vk::Result {
    on_instance(instance, "vkEnumeratePhysicalDeviceGroups", |instance| {
        // SAFETY: VUID-vkEnumeratePhysicalDeviceGroups-pPhysicalDeviceGroupCount-parameter.
        let Some(count) = (unsafe { p_count.as_mut() }) else {
            return vk::Result::ERROR_VALIDATION_FAILED_EXT;
        };
        let capacity = *count;
        *count = 1;
        // SAFETY: VUID-vkEnumeratePhysicalDeviceGroups-pPhysicalDeviceGroupProperties-parameter.
        let Some(group) = (unsafe { p_groups.as_mut() }) else {
            return vk::Result::SUCCESS;
        };
        if capacity == 0 {
            *count = 0;
            return vk::Result::INCOMPLETE;
        }
        // Field by field: the caller's chain stays.
        group.physical_device_count = 1;
        group.physical_devices[0] = instance.physical_device;
        group.subset_allocation = vk::FALSE;
        vk::Result::SUCCESS
    })
}

unsafe extern "system" fn enumerate_device_extensions(
    physical_device: vk::PhysicalDevice,
    p_layer: *const c_char,
    p_count: *mut u32,
    p_properties: *mut vk::ExtensionProperties,
) -> vk::Result {
    on_physical_device(physical_device, "vkEnumerateDeviceExtensionProperties", |instance| {
        if !p_layer.is_null() {
            return vk::Result::ERROR_LAYER_NOT_PRESENT;
        }
        let all = extensions::properties(instance.gpu_state.extensions.iter().map(String::as_str));
        // SAFETY: VUID-vkEnumerateDeviceExtensionProperties-pProperties-parameter.
        unsafe { chain::list(&all, p_count, p_properties) }
    })
}

unsafe extern "system" fn enumerate_device_layers(
    physical_device: vk::PhysicalDevice,
    p_count: *mut u32,
    p_properties: *mut vk::LayerProperties,
) -> vk::Result {
    on_physical_device(physical_device, "vkEnumerateDeviceLayerProperties", |_| {
        // SAFETY: VUID-vkEnumerateDeviceLayerProperties-pProperties-parameter.
        unsafe { chain::list(&[], p_count, p_properties) }
    })
}
