//! `VK_EXT_debug_utils`: names of objects, and callbacks that get every report.
#![expect(unsafe_code, reason = "the functions have the C ABI")]

use ash::vk;

use crate::facts::{chain, extensions};
use crate::objects::entry::{entries, on_device, on_instance};
use crate::objects::messages::Messenger;

entries! {
    Instance result vk::PFN_vkCreateDebugUtilsMessengerEXT = create:
        ext "VK_EXT_debug_utils" "vkCreateDebugUtilsMessengerEXT";
    Instance void vk::PFN_vkDestroyDebugUtilsMessengerEXT = destroy:
        ext "VK_EXT_debug_utils" "vkDestroyDebugUtilsMessengerEXT";
    Device result vk::PFN_vkSetDebugUtilsObjectNameEXT = set_name:
        ext "VK_EXT_debug_utils" "vkSetDebugUtilsObjectNameEXT";
}

unsafe extern "system" fn create(
    instance: vk::Instance,
    p_info: *const vk::DebugUtilsMessengerCreateInfoEXT<'_>,
    _: *const vk::AllocationCallbacks<'_>,
    p_messenger: *mut vk::DebugUtilsMessengerEXT,
) -> vk::Result {
    on_instance(instance, "vkCreateDebugUtilsMessengerEXT", |instance| {
        // SAFETY: VUID-vkCreateDebugUtilsMessengerEXT-pCreateInfo-parameter.
        let Some(info) = (unsafe { chain::input(p_info) }) else {
            return vk::Result::ERROR_VALIDATION_FAILED_EXT;
        };
        let Some(callback) = info.pfn_user_callback else {
            let text = "pfnUserCallback is NULL".to_owned();
            instance.gpu_state.report("VUID-VkDebugUtilsMessengerCreateInfoEXT-pfnUserCallback-01914", text);
            return vk::Result::ERROR_VALIDATION_FAILED_EXT;
        };
        let handle = instance.gpu_state.handle::<vk::DebugUtilsMessengerEXT>();
        let wants = info.message_severity.contains(vk::DebugUtilsMessageSeverityFlagsEXT::ERROR)
            && info.message_type.contains(vk::DebugUtilsMessageTypeFlagsEXT::VALIDATION);
        if wants {
            let user_data = info.p_user_data.expose_provenance();
            instance.gpu_state.messengers.lock().push(Messenger { handle, callback, user_data });
        }
        // SAFETY: VUID-vkCreateDebugUtilsMessengerEXT-pMessenger-parameter.
        unsafe { chain::output(p_messenger, handle) };
        vk::Result::SUCCESS
    })
}

unsafe extern "system" fn destroy(
    instance: vk::Instance,
    messenger: vk::DebugUtilsMessengerEXT,
    _: *const vk::AllocationCallbacks<'_>,
) {
    on_instance(instance, "vkDestroyDebugUtilsMessengerEXT", |instance| {
        instance.gpu_state.messengers.lock().retain(|other| other.handle != messenger);
    });
}

unsafe extern "system" fn set_name(
    device: vk::Device,
    p_info: *const vk::DebugUtilsObjectNameInfoEXT<'_>,
) -> vk::Result {
    on_device(device, "vkSetDebugUtilsObjectNameEXT", |device| {
        // SAFETY: VUID-vkSetDebugUtilsObjectNameEXT-pNameInfo-parameter.
        let Some(info) = (unsafe { chain::input(p_info) }) else {
            return vk::Result::ERROR_VALIDATION_FAILED_EXT;
        };
        // SAFETY: NULL or a null-terminated string: VUID-VkDebugUtilsObjectNameInfoEXT-pObjectName-parameter.
        let names = unsafe { extensions::names(&raw const info.p_object_name, 1) };
        let mut state = device.state.lock();
        match names.into_iter().next() {
            Some(name) if !name.is_empty() => drop(state.names.insert(info.object_handle, name)),
            _ => drop(state.names.remove(&info.object_handle)),
        }
        vk::Result::SUCCESS
    })
}
