//! Devices: creation with what the program enables, and destruction with what it left behind.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use ash::vk;
use ash::vk::Handle as _;

use super::entry::{call, entries, on_device, on_physical_device};
use super::state::{Device, DeviceState, Features, registry};
use super::{chain, extensions, null};
use crate::arithmetic;

entries! {
    Instance result vk::PFN_vkCreateDevice = create: core 0 "vkCreateDevice";
    Device void vk::PFN_vkDestroyDevice = destroy: core 0 "vkDestroyDevice";
    Device void vk::PFN_vkGetDeviceQueue = queue: core 0 "vkGetDeviceQueue";
    Device void vk::PFN_vkGetDeviceQueue2 = queue2: core 1 "vkGetDeviceQueue2";
}

unsafe extern "system" fn create(
    physical_device: vk::PhysicalDevice,
    p_info: *const vk::DeviceCreateInfo<'_>,
    _: *const vk::AllocationCallbacks<'_>,
    p_device: *mut vk::Device,
) -> vk::Result {
    on_physical_device(physical_device, call!("vkCreateDevice"), |instance| {
        let hub = &instance.hub;
        // SAFETY: VUID-vkCreateDevice-pCreateInfo-parameter.
        let Some(info) = (unsafe { chain::input(p_info) }) else {
            hub.report("VUID-vkCreateDevice-pCreateInfo-parameter", "pCreateInfo is NULL");
            return vk::Result::ERROR_VALIDATION_FAILED_EXT;
        };
        // SAFETY: VUID-VkDeviceCreateInfo-pQueueCreateInfos-parameter.
        let queues = unsafe { chain::array(info.p_queue_create_infos, info.queue_create_info_count) };
        if queues.is_empty() {
            let text = "there are no queues in the create-info".to_owned();
            hub.report("VUID-VkDeviceCreateInfo-queueCreateInfoCount-arraylength", text);
            return vk::Result::ERROR_VALIDATION_FAILED_EXT;
        }
        if let Some(queue) = queues.iter().find(|queue| queue.queue_family_index != 0) {
            let text = format!("queueFamilyIndex is {}, and there is one family", queue.queue_family_index);
            hub.report("VUID-VkDeviceQueueCreateInfo-queueFamilyIndex-00381", text);
            return vk::Result::ERROR_VALIDATION_FAILED_EXT;
        }
        let first = queues.first().map_or(0, |queue| queue.queue_count);
        if queues.len() > 1 {
            let text = "queueFamilyIndex is 0 twice".to_owned();
            hub.report("VUID-VkDeviceCreateInfo-queueFamilyIndex-02802", text);
            return vk::Result::ERROR_VALIDATION_FAILED_EXT;
        }
        if first == 0 || first > hub.queues {
            let text =
                format!("queueCount is {first}, and the number of queues in the family {}", hub.queues);
            hub.report("VUID-VkDeviceQueueCreateInfo-queueCount-00382", text);
            return vk::Result::ERROR_VALIDATION_FAILED_EXT;
        }
        // SAFETY: VUID-VkDeviceCreateInfo-ppEnabledExtensionNames-parameter.
        let enabled =
            unsafe { extensions::names(info.pp_enabled_extension_names, info.enabled_extension_count) };
        if enabled.iter().any(|name| !hub.offers(name)) {
            return vk::Result::ERROR_EXTENSION_NOT_PRESENT;
        }
        // SAFETY: the chain is valid: VUID-VkDeviceCreateInfo-pNext-pNext.
        let mut features = unsafe { Features::read(info.p_next) };
        // SAFETY: VUID-VkDeviceCreateInfo-pEnabledFeatures-parameter.
        let plain = unsafe { chain::input(info.p_enabled_features) };
        features.sparse_binding |= plain.is_some_and(|plain| plain.sparse_binding != vk::FALSE);
        if !features.within(&Features::supported(hub)) {
            return vk::Result::ERROR_FEATURE_NOT_PRESENT;
        }
        let handle =
            if hub.null { null::handle(hub.profile) } else { vk::Device::from_raw(registry::reserve()) };
        let queues: Vec<_> = (0..first).map(|_| vk::Queue::from_raw(registry::reserve())).collect();
        let minor = instance.minor.min(hub.device_minor);
        let device = Arc::new(Device::new(handle, queues, instance, minor, enabled, features));
        registry::add_device(&device);
        instance.devices.fetch_add(1, Ordering::Relaxed);
        // SAFETY: VUID-vkCreateDevice-pDevice-parameter.
        unsafe { chain::output(p_device, device.handle) };
        vk::Result::SUCCESS
    })
}

unsafe extern "system" fn destroy(device: vk::Device, _: *const vk::AllocationCallbacks<'_>) {
    if device.is_null() {
        return;
    }
    on_device(device, call!("vkDestroyDevice"), |device| {
        registry::remove_device(device);
        device.instance.devices.fetch_sub(1, Ordering::Relaxed);
        let state = std::mem::take(&mut *device.state.lock());
        for memory in state.memories.values() {
            device.hub.give_back(memory.heap, memory.info.size);
        }
        for leak in state.leaks() {
            device.report("VUID-vkDestroyDevice-device-05137", format!("{leak} is not destroyed"));
        }
    });
}

impl DeviceState {
    /// Everything that is alive, in words.
    fn leaks(&self) -> Vec<String> {
        let buffers = self
            .buffers
            .iter()
            .map(|(&handle, buffer)| format!("{} of {} bytes", self.name(handle), buffer.description.size));
        let images = self
            .images
            .iter()
            .map(|(&handle, image)| format!("{} of {} bytes", self.name(handle), image.requirements.size));
        let views = self
            .buffer_views
            .iter()
            .map(|(&handle, view)| format!("{} of {}", self.name(handle), self.resource_name(view.of)));
        let image_views = self
            .image_views
            .iter()
            .map(|(&handle, view)| format!("{} of {}", self.name(handle), self.resource_name(view.of)));
        let memories = self.memories.iter().map(|(&handle, memory)| {
            format!(
                "{} of {} bytes of memory type {}",
                self.name(handle),
                memory.info.size,
                memory.info.type_index
            )
        });
        buffers
            .chain(images)
            .chain(views)
            .chain(image_views)
            .chain(self.other_names())
            .chain(self.descriptor_names())
            .chain(self.pipeline_names())
            .chain(memories)
            .collect()
    }
}

unsafe extern "system" fn queue(device: vk::Device, family: u32, index: u32, p_queue: *mut vk::Queue) {
    on_device(device, call!("vkGetDeviceQueue"), |device| {
        if family != 0 {
            let text = format!("queueFamilyIndex is {family}, and the device was created with family 0");
            return device.report("VUID-vkGetDeviceQueue-queueFamilyIndex-00384", text);
        }
        let Some(&queue) = device.queues.get(arithmetic::index(index)) else {
            let text = format!(
                "queueIndex is {index}, and the device was created with {} queues",
                device.queues.len()
            );
            return device.report("VUID-vkGetDeviceQueue-queueIndex-00385", text);
        };
        // SAFETY: VUID-vkGetDeviceQueue-pQueue-parameter.
        unsafe { chain::output(p_queue, queue) };
    });
}

unsafe extern "system" fn queue2(
    device: vk::Device,
    p_info: *const vk::DeviceQueueInfo2<'_>,
    p_queue: *mut vk::Queue,
) {
    on_device(device, call!("vkGetDeviceQueue2"), |device| {
        // SAFETY: VUID-vkGetDeviceQueue2-pQueueInfo-parameter.
        let found = unsafe { chain::input(p_info) }
            .filter(|info| info.queue_family_index == 0 && info.flags.is_empty())
            .and_then(|info| device.queues.get(arithmetic::index(info.queue_index)));
        if found.is_none() {
            let text = format!(
                "the device was created with {} queues of family 0, without flags",
                device.queues.len()
            );
            device.report("VUID-VkDeviceQueueInfo2-queueIndex-01843", text);
        }
        // SAFETY: VUID-vkGetDeviceQueue2-pQueue-parameter.
        unsafe { chain::output(p_queue, found.copied().unwrap_or_default()) };
    });
}
