//! Collects messages of the validation layer.

use std::ffi::{CStr, c_void};
use std::sync::{Mutex, PoisonError};

use ash::{ext, vk};

use super::Result;

pub(super) const LAYER: &CStr = c"VK_LAYER_KHRONOS_validation";

/// The messages, in a box so that the layer's pointer stays valid.
#[derive(Default)]
pub(super) struct Messages(Box<Mutex<Vec<String>>>);

impl Messages {
    pub(super) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns a create-info for a messenger, or for the chain of the instance's own create-info.
    pub(super) fn create_info(&self) -> vk::DebugUtilsMessengerCreateInfoEXT<'static> {
        vk::DebugUtilsMessengerCreateInfoEXT::default()
            .message_severity(
                vk::DebugUtilsMessageSeverityFlagsEXT::WARNING | vk::DebugUtilsMessageSeverityFlagsEXT::ERROR,
            )
            // Without GENERAL: those messages are about drivers for other machines.
            .message_type(
                vk::DebugUtilsMessageTypeFlagsEXT::VALIDATION
                    | vk::DebugUtilsMessageTypeFlagsEXT::PERFORMANCE,
            )
            .pfn_user_callback(Some(receive))
            .user_data(std::ptr::from_ref::<Mutex<Vec<String>>>(&self.0).cast_mut().cast())
    }
}

/// A messenger of an instance. Must be destroyed before it.
pub(super) struct Messenger {
    functions: ext::debug_utils::Instance,
    handle: vk::DebugUtilsMessengerEXT,
}

impl Messenger {
    pub(super) fn new(entry: &ash::Entry, instance: &ash::Instance, messages: &Messages) -> Result<Self> {
        let functions = ext::debug_utils::Instance::new(entry, instance);
        // SAFETY: the extension is enabled with the layer, and `messages` outlives the instance.
        let handle = unsafe { functions.create_debug_utils_messenger(&messages.create_info(), None) }?;
        Ok(Self { functions, handle })
    }
}

impl Drop for Messenger {
    fn drop(&mut self) {
        // SAFETY: the instance is live: its owner drops the messenger first.
        unsafe { self.functions.destroy_debug_utils_messenger(self.handle, None) };
    }
}

unsafe extern "system" fn receive(
    _: vk::DebugUtilsMessageSeverityFlagsEXT,
    _: vk::DebugUtilsMessageTypeFlagsEXT,
    data: *const vk::DebugUtilsMessengerCallbackDataEXT<'_>,
    messages: *mut c_void,
) -> vk::Bool32 {
    // SAFETY: the layer passes valid data (VUID-PFN_vkDebugUtilsMessengerCallbackEXT-None-04769 and the function's
    // text).
    let data = unsafe { &*data };
    // SAFETY: the text is null-terminated, or NULL.
    let text: String =
        unsafe { data.message_as_c_str() }.map_or_else(String::new, |text| text.to_string_lossy().into());
    // Newer layers no longer begin the text with the id.
    // SAFETY: the name is null-terminated, or NULL.
    let id =
        unsafe { data.message_id_name_as_c_str() }.map_or_else(String::new, |id| id.to_string_lossy().into());
    let text = if text.contains(&id) { text } else { format!("{id}: {text}") };
    // SAFETY: `create_info` passed the address of a mutex that outlives the instance.
    let messages = unsafe { &*messages.cast::<Mutex<Vec<String>>>() };
    messages.lock().unwrap_or_else(PoisonError::into_inner).push(text);
    vk::FALSE
}
