//! `VK_EXT_debug_utils`: names of objects, and callbacks that get every report.

use std::ffi::CString;

use ash::vk;

use super::entry::{call, entries, on_device, on_instance};
use super::state::Hub;
use super::{chain, extensions};

entries! {
    Instance result vk::PFN_vkCreateDebugUtilsMessengerEXT = create:
        ext "VK_EXT_debug_utils" "vkCreateDebugUtilsMessengerEXT";
    Instance void vk::PFN_vkDestroyDebugUtilsMessengerEXT = destroy:
        ext "VK_EXT_debug_utils" "vkDestroyDebugUtilsMessengerEXT";
    Device result vk::PFN_vkSetDebugUtilsObjectNameEXT = set_name:
        ext "VK_EXT_debug_utils" "vkSetDebugUtilsObjectNameEXT";
}

type Callback = unsafe extern "system" fn(
    vk::DebugUtilsMessageSeverityFlagsEXT,
    vk::DebugUtilsMessageTypeFlagsEXT,
    *const vk::DebugUtilsMessengerCallbackDataEXT<'_>,
    *mut std::ffi::c_void,
) -> vk::Bool32;

/// A `VkDebugUtilsMessengerEXT` that gets reports.
#[derive(Clone, Copy)]
pub(super) struct Messenger {
    handle: vk::DebugUtilsMessengerEXT,
    callback: Callback,
    /// The address of the program's data. The driver only passes it on.
    user_data: usize,
}

impl std::fmt::Debug for Messenger {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Messenger").field("handle", &self.handle).finish_non_exhaustive()
    }
}

unsafe extern "system" fn create(
    instance: vk::Instance,
    p_info: *const vk::DebugUtilsMessengerCreateInfoEXT<'_>,
    _: *const vk::AllocationCallbacks<'_>,
    p_messenger: *mut vk::DebugUtilsMessengerEXT,
) -> vk::Result {
    on_instance(instance, call!("vkCreateDebugUtilsMessengerEXT"), |instance| {
        // SAFETY: VUID-vkCreateDebugUtilsMessengerEXT-pCreateInfo-parameter.
        let Some(info) = (unsafe { chain::input(p_info) }) else {
            return vk::Result::ERROR_VALIDATION_FAILED_EXT;
        };
        let Some(callback) = info.pfn_user_callback else {
            let text = "pfnUserCallback is NULL".to_owned();
            instance.hub.report("VUID-VkDebugUtilsMessengerCreateInfoEXT-pfnUserCallback-01914", text);
            return vk::Result::ERROR_VALIDATION_FAILED_EXT;
        };
        let handle = instance.hub.handle::<vk::DebugUtilsMessengerEXT>();
        let wants = info.message_severity.contains(vk::DebugUtilsMessageSeverityFlagsEXT::ERROR)
            && info.message_type.contains(vk::DebugUtilsMessageTypeFlagsEXT::VALIDATION);
        if wants {
            let user_data = info.p_user_data.expose_provenance();
            instance.hub.messengers.lock().push(Messenger { handle, callback, user_data });
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
    on_instance(instance, call!("vkDestroyDebugUtilsMessengerEXT"), |instance| {
        instance.hub.messengers.lock().retain(|other| other.handle != messenger);
    });
}

/// Calls every messenger that takes this report.
pub(super) fn send(hub: &Hub, vuid: &str, text: &str) {
    let messengers = hub.messengers.lock().clone();
    if messengers.is_empty() {
        return;
    }
    let (Ok(name), Ok(text)) = (CString::new(vuid), CString::new(text)) else {
        return;
    };
    let data = vk::DebugUtilsMessengerCallbackDataEXT::default().message_id_name(&name).message(&text);
    for messenger in messengers {
        let user_data = std::ptr::with_exposed_provenance_mut(messenger.user_data);
        let kind = vk::DebugUtilsMessageTypeFlagsEXT::VALIDATION;
        // SAFETY: the program gave the function for this use, with this data, until it destroys the messenger; `data`
        // and its strings live during the call.
        let _ = unsafe {
            (messenger.callback)(
                vk::DebugUtilsMessageSeverityFlagsEXT::ERROR,
                kind,
                &raw const data,
                user_data,
            )
        };
    }
}

unsafe extern "system" fn set_name(
    device: vk::Device,
    p_info: *const vk::DebugUtilsObjectNameInfoEXT<'_>,
) -> vk::Result {
    on_device(device, call!("vkSetDebugUtilsObjectNameEXT"), |device| {
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
