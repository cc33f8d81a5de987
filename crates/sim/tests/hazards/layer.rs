//! The validation layer on a driver of this machine, with its synchronization validation and nothing else that matters
//! here. Without both, the test says so and passes; with `SUBLET_REQUIRE_VULKAN=1` it fails.

use std::ffi::c_void;
use std::sync::Mutex;

use ash::{ext, vk};

/// A device under the layer.
pub(crate) struct Layer {
    _entry: ash::Entry,
    instance: ash::Instance,
    debug: ext::debug_utils::Instance,
    messenger: vk::DebugUtilsMessengerEXT,
    pub(crate) device: ash::Device,
    pub(crate) queue: vk::Queue,
    /// Boxed, so that the layer's pointer to it stays right.
    messages: Box<Mutex<Vec<String>>>,
}

impl Layer {
    /// The first physical device of Vulkan 1.3, or why there is none.
    pub(crate) fn new() -> Result<Self, String> {
        let words = |error: vk::Result| error.to_string();
        let entry = unsafe { ash::Entry::load() }.map_err(|error| error.to_string())?;
        let application = vk::ApplicationInfo::default().api_version(vk::API_VERSION_1_3);
        let layers = [c"VK_LAYER_KHRONOS_validation".as_ptr()];
        let extensions = [ext::debug_utils::NAME.as_ptr()];
        let enabled = [vk::ValidationFeatureEnableEXT::SYNCHRONIZATION_VALIDATION];
        let mut features = vk::ValidationFeaturesEXT::default().enabled_validation_features(&enabled);
        let info = vk::InstanceCreateInfo::default()
            .application_info(&application)
            .enabled_layer_names(&layers)
            .enabled_extension_names(&extensions)
            .push_next(&mut features);
        let instance = unsafe { entry.create_instance(&info, None) }.map_err(words)?;
        let messages = Box::<Mutex<Vec<String>>>::default();
        let debug = ext::debug_utils::Instance::new(&entry, &instance);
        let info = vk::DebugUtilsMessengerCreateInfoEXT::default()
            .message_severity(vk::DebugUtilsMessageSeverityFlagsEXT::ERROR)
            .message_type(vk::DebugUtilsMessageTypeFlagsEXT::VALIDATION)
            .pfn_user_callback(Some(receive))
            .user_data(std::ptr::from_ref::<Mutex<Vec<String>>>(&messages).cast_mut().cast());
        let messenger = unsafe { debug.create_debug_utils_messenger(&info, None) }.map_err(words)?;
        let mut physical = unsafe { instance.enumerate_physical_devices() }.map_err(words)?.into_iter();
        let version = |device: &vk::PhysicalDevice| {
            unsafe { instance.get_physical_device_properties(*device) }.api_version
        };
        let physical = physical.find(|device| version(device) >= vk::API_VERSION_1_3);
        let physical = physical.ok_or("no device of Vulkan 1.3")?;
        let queues = [vk::DeviceQueueCreateInfo::default().queue_priorities(&[1.0])];
        let mut synchronization =
            vk::PhysicalDeviceSynchronization2Features::default().synchronization2(true);
        let mut rendering = vk::PhysicalDeviceDynamicRenderingFeatures::default().dynamic_rendering(true);
        let info = vk::DeviceCreateInfo::default()
            .queue_create_infos(&queues)
            .push_next(&mut synchronization)
            .push_next(&mut rendering);
        let device = unsafe { instance.create_device(physical, &info, None) }.map_err(words)?;
        let queue = unsafe { device.get_device_queue(0, 0) };
        Ok(Self { _entry: entry, instance, debug, messenger, device, queue, messages })
    }

    /// The layer's messages since the last call.
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.messages.lock().unwrap())
    }
}

impl Drop for Layer {
    fn drop(&mut self) {
        unsafe { self.device.destroy_device(None) };
        unsafe { self.debug.destroy_debug_utils_messenger(self.messenger, None) };
        unsafe { self.instance.destroy_instance(None) };
    }
}

unsafe extern "system" fn receive(
    _: vk::DebugUtilsMessageSeverityFlagsEXT,
    _: vk::DebugUtilsMessageTypeFlagsEXT,
    data: *const vk::DebugUtilsMessengerCallbackDataEXT<'_>,
    messages: *mut c_void,
) -> vk::Bool32 {
    let data = unsafe { &*data };
    let text = unsafe { data.message_as_c_str() }.map(|text| text.to_string_lossy().into_owned());
    let messages = unsafe { &*messages.cast::<Mutex<Vec<String>>>() };
    messages.lock().unwrap().extend(text);
    vk::FALSE
}
