//! A device of a real driver, with the validation layer and synchronization checks.

use std::ffi::{CStr, c_void};
use std::sync::Mutex;

use ash::{ext, vk};
use sublet_descriptors::heap_ffi;
use sublet_frame::Features;

const LAYER: &CStr = c"VK_LAYER_KHRONOS_validation";

pub(crate) type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

pub(crate) struct Device {
    pub(crate) device: ash::Device,
    pub(crate) queue: vk::Queue,
    pub(crate) family: u32,
    pub(crate) physical_device: vk::PhysicalDevice,
    pub(crate) instance: ash::Instance,
    pub(crate) name: String,
    /// True if Vulkan's own descriptor heaps are enabled, with the addresses that they need.
    pub(crate) heaps: bool,
    messenger: vk::DebugUtilsMessengerEXT,
    debug: ext::debug_utils::Instance,
    /// Boxed, so that the layer's pointer stays valid.
    messages: Box<Mutex<Vec<String>>>,
    _entry: ash::Entry,
}

impl Device {
    pub(crate) fn new(features: Features) -> Result<Self> {
        let entry = unsafe { ash::Entry::load() }?;
        let messages = Box::new(Mutex::new(Vec::new()));
        let mut callback = vk::DebugUtilsMessengerCreateInfoEXT::default()
            .message_severity(
                vk::DebugUtilsMessageSeverityFlagsEXT::WARNING | vk::DebugUtilsMessageSeverityFlagsEXT::ERROR,
            )
            .message_type(vk::DebugUtilsMessageTypeFlagsEXT::VALIDATION)
            .pfn_user_callback(Some(receive))
            .user_data(std::ptr::from_ref(&*messages).cast_mut().cast());
        let checks = [vk::ValidationFeatureEnableEXT::SYNCHRONIZATION_VALIDATION];
        let mut checks = vk::ValidationFeaturesEXT::default().enabled_validation_features(&checks);
        let application = vk::ApplicationInfo::default().api_version(vk::API_VERSION_1_3);
        let (layers, extensions) = ([LAYER.as_ptr()], [ext::debug_utils::NAME.as_ptr()]);
        let info = vk::InstanceCreateInfo::default()
            .application_info(&application)
            .enabled_layer_names(&layers)
            .enabled_extension_names(&extensions)
            .push_next(&mut checks)
            .push_next(&mut callback);
        let instance = unsafe { entry.create_instance(&info, None) }?;
        let debug = ext::debug_utils::Instance::new(&entry, &instance);
        callback.p_next = std::ptr::null();
        let messenger = unsafe { debug.create_debug_utils_messenger(&callback, None) }?;
        let physical_device =
            *unsafe { instance.enumerate_physical_devices() }?.first().ok_or("no device")?;
        let properties = unsafe { instance.get_physical_device_properties(physical_device) };
        let families = unsafe { instance.get_physical_device_queue_family_properties(physical_device) };
        let wanted = vk::QueueFlags::GRAPHICS | vk::QueueFlags::COMPUTE;
        let family = families.iter().position(|family| family.queue_flags.contains(wanted));
        let family = u32::try_from(family.ok_or("no queue that draws")?)?;
        let on = |wanted: bool| vk::Bool32::from(wanted);
        let offered = unsafe { instance.enumerate_device_extension_properties(physical_device) }?;
        let heaps = offered
            .iter()
            .any(|offer| offer.extension_name_as_c_str().is_ok_and(|name| name == heap_ffi::NAME));
        let mut wanted13 = vk::PhysicalDeviceVulkan13Features {
            synchronization2: on(features.synchronization2),
            dynamic_rendering: on(features.dynamic_rendering),
            ..Default::default()
        };
        let mut wanted12 = vk::PhysicalDeviceVulkan12Features {
            timeline_semaphore: on(features.timeline_semaphore),
            separate_depth_stencil_layouts: on(features.separate_depth_stencil_layouts),
            buffer_device_address: on(heaps),
            ..Default::default()
        };
        let queues =
            [vk::DeviceQueueCreateInfo::default().queue_family_index(family).queue_priorities(&[1.0])];
        let mut with_heaps = heap_ffi::PhysicalDeviceDescriptorHeapFeaturesEXT {
            descriptor_heap: vk::TRUE,
            ..Default::default()
        };
        let mut with_flags = vk::PhysicalDeviceMaintenance5FeaturesKHR::default().maintenance5(true);
        let extensions = [heap_ffi::NAME.as_ptr(), ash::khr::maintenance5::NAME.as_ptr()];
        let mut info = vk::DeviceCreateInfo::default()
            .queue_create_infos(&queues)
            .push_next(&mut wanted13)
            .push_next(&mut wanted12);
        if heaps {
            info = info
                .enabled_extension_names(&extensions)
                .push_next(&mut with_heaps)
                .push_next(&mut with_flags);
        }
        let device = unsafe { instance.create_device(physical_device, &info, None) }?;
        let queue = unsafe { device.get_device_queue(family, 0) };
        let name = properties.device_name_as_c_str()?.to_string_lossy().into_owned();
        Ok(Self {
            device,
            queue,
            family,
            physical_device,
            instance,
            name,
            heaps,
            messenger,
            debug,
            messages,
            _entry: entry,
        })
    }

    /// Destroys the device, and returns the messages of the layer.
    pub(crate) fn finish(self) -> Vec<String> {
        unsafe { self.device.destroy_device(None) };
        unsafe { self.debug.destroy_debug_utils_messenger(self.messenger, None) };
        unsafe { self.instance.destroy_instance(None) };
        std::mem::take(&mut self.messages.lock().unwrap())
    }
}

unsafe extern "system" fn receive(
    _: vk::DebugUtilsMessageSeverityFlagsEXT,
    _: vk::DebugUtilsMessageTypeFlagsEXT,
    data: *const vk::DebugUtilsMessengerCallbackDataEXT<'_>,
    messages: *mut c_void,
) -> vk::Bool32 {
    let text = unsafe { (*data).message_as_c_str() };
    let text = text.map_or_else(String::new, |text| text.to_string_lossy().into());
    let messages = unsafe { &*messages.cast::<Mutex<Vec<String>>>() };
    messages.lock().unwrap().push(text);
    vk::FALSE
}
