//! Devices: creation with what the program enables, and destruction with what it left behind.
#![expect(unsafe_code, reason = "the functions have the C ABI")]

use std::sync::Arc;
use std::sync::atomic::Ordering;

use ash::vk;
use ash::vk::Handle as _;

use crate::driver::null;
use crate::facts::broken::refuse_if;
use crate::facts::{arithmetic, chain, extensions};
use crate::objects::entry::{checked, entries, on_device, on_physical_device_checked};
use crate::objects::features::EnabledFeatures;
use crate::objects::handle_map::HandleMap;
use crate::objects::memory::MemoryObject;
use crate::objects::registry;
use crate::objects::state::{DeviceObject, DeviceState};

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
    on_physical_device_checked(physical_device, "vkCreateDevice", |instance| {
        let gpu_state = &instance.gpu_state;
        // SAFETY: VUID-vkCreateDevice-pCreateInfo-parameter.
        let info = unsafe { chain::given(p_info, "VUID-vkCreateDevice-pCreateInfo-parameter") }?;
        // SAFETY: VUID-VkDeviceCreateInfo-pQueueCreateInfos-parameter.
        let queues = unsafe { chain::array(info.p_queue_create_infos, info.queue_create_info_count) };
        refuse_if!(queues.is_empty() => "VUID-VkDeviceCreateInfo-queueCreateInfoCount-arraylength",
            "there are no queues in the create-info");
        let mut families = Vec::new();
        for &vk::DeviceQueueCreateInfo { queue_family_index: family, queue_count: count, .. } in queues {
            let most = gpu_state.families.get(arithmetic::index(family)).map(|(_, count)| *count);
            refuse_if!(most.is_none() => "VUID-VkDeviceQueueCreateInfo-queueFamilyIndex-00381",
                "queueFamilyIndex is {family}, and the number of families {}", gpu_state.families.len());
            refuse_if!(families.contains(&family) => "VUID-VkDeviceCreateInfo-queueFamilyIndex-02802",
                "queueFamilyIndex is {family} twice");
            refuse_if!(count == 0 || most.is_some_and(|most| count > most)
                => "VUID-VkDeviceQueueCreateInfo-queueCount-00382",
                "queueCount is {count}, and the number of queues in the family {}", most.unwrap_or(0));
            families.extend((0..count).map(|_| family));
        }
        // SAFETY: VUID-VkDeviceCreateInfo-ppEnabledExtensionNames-parameter.
        let enabled =
            unsafe { extensions::names(info.pp_enabled_extension_names, info.enabled_extension_count) };
        if enabled.iter().any(|name| !gpu_state.offers(name)) {
            return Ok(vk::Result::ERROR_EXTENSION_NOT_PRESENT);
        }
        // SAFETY: the chain is valid: VUID-VkDeviceCreateInfo-pNext-pNext.
        let mut features = unsafe { EnabledFeatures::read(info.p_next) };
        // SAFETY: VUID-VkDeviceCreateInfo-pEnabledFeatures-parameter.
        let plain = unsafe { chain::input(info.p_enabled_features) };
        features.sparse_binding |= plain.is_some_and(|plain| plain.sparse_binding != vk::FALSE);
        if !features.within(&EnabledFeatures::supported(gpu_state)) {
            return Ok(vk::Result::ERROR_FEATURE_NOT_PRESENT);
        }
        let handle = if gpu_state.null {
            null::handle(gpu_state.profile)
        } else {
            vk::Device::from_raw(registry::reserve())
        };
        // The order of the create-infos does not matter.
        families.sort_unstable();
        let queues: Vec<_> = families.iter().map(|_| vk::Queue::from_raw(registry::reserve())).collect();
        let minor = instance.minor.min(gpu_state.device_minor);
        let device =
            Arc::new(DeviceObject::new(handle, (queues, families), instance, minor, enabled, features));
        registry::add_device(&device);
        instance.devices.fetch_add(1, Ordering::Relaxed);
        // SAFETY: VUID-vkCreateDevice-pDevice-parameter.
        unsafe { chain::output(p_device, device.handle) };
        Ok(vk::Result::SUCCESS)
    })
}

unsafe extern "system" fn destroy(device: vk::Device, _: *const vk::AllocationCallbacks<'_>) {
    if device.is_null() {
        return;
    }
    on_device(device, "vkDestroyDevice", |device| {
        registry::remove_device(device);
        device.instance.devices.fetch_sub(1, Ordering::Relaxed);
        let state = std::mem::take(&mut *device.state.lock());
        for memory in state.memories.values() {
            device.gpu_state.give_back(memory.heap, memory.info.size);
        }
        // Their handles must become unknown: no program frees them after the device.
        state.commands.buffers.keys().for_each(|handle| registry::remove_command_buffer(*handle));
        for leak in state.leaks() {
            device.report("VUID-vkDestroyDevice-device-05137", format!("{leak} is not destroyed"));
        }
    });
}

impl DeviceState {
    /// Everything that is alive, in words. Descriptor sets go with their pools.
    fn leaks(&self) -> Vec<String> {
        let bytes = |name: String, size: u64| format!("{name} of {size} bytes");
        let buffers =
            self.buffers.iter().map(|(&handle, buffer)| bytes(self.name(handle), buffer.description.size));
        let images =
            self.images.iter().map(|(&handle, image)| bytes(self.name(handle), image.requirements.size));
        let views = self.buffer_views.iter().map(|(&handle, view)| {
            format!("{} of {}", self.name(handle), self.resource_name(view.buffer.as_raw()))
        });
        let image_views = self.image_views.iter().map(|(&handle, view)| {
            format!("{} of {}", self.name(handle), self.resource_name(view.image.as_raw()))
        });
        let pools = self.descriptors.pools.iter();
        let pools =
            pools.map(|(&handle, pool)| format!("{} with {} sets", self.name(handle), pool.sets.len()));
        let memories = self.memories.iter().map(|(&handle, MemoryObject { info, .. })| {
            format!("{} of memory type {}", bytes(self.name(handle), info.size), info.type_index)
        });
        [
            buffers.chain(images).chain(views).chain(image_views).collect(),
            self.names_of(&self.commands.pools),
            self.names_of(&self.sync.fences),
            self.names_of(&self.sync.semaphores),
            self.names_of(&self.sync.events),
            pools.collect(),
            self.names_of(&self.descriptors.templates),
            self.names_of(&self.descriptors.pipeline_layouts),
            self.names_of(&self.descriptors.layouts),
            self.names_of(&self.descriptors.samplers),
            self.names_of(&self.pipelines.pipelines),
            self.names_of(&self.pipelines.modules),
            self.names_of(&self.pipelines.caches),
            self.names_of(&self.passes.passes),
            self.names_of(&self.passes.framebuffers),
            memories.collect(),
        ]
        .concat()
    }

    fn names_of<H: vk::Handle + Copy, T>(&self, objects: &HandleMap<H, T>) -> Vec<String> {
        objects.keys().map(|&handle| self.name(handle)).collect()
    }
}

unsafe extern "system" fn queue(device: vk::Device, family: u32, index: u32, p_queue: *mut vk::Queue) {
    checked(device, "vkGetDeviceQueue", |device| {
        let count = device.families.iter().filter(|of| **of == family).count();
        refuse_if!(count == 0 => "VUID-vkGetDeviceQueue-queueFamilyIndex-00384",
            "queueFamilyIndex is {family}, and the device was created without that family");
        let queue = device.queue_of(family, index).ok_or_else(|| {
            let text = format!(
                "queueIndex is {index}, and the device was created with {count} queues of the family"
            );
            ("VUID-vkGetDeviceQueue-queueIndex-00385", text)
        })?;
        // SAFETY: VUID-vkGetDeviceQueue-pQueue-parameter.
        unsafe { chain::output(p_queue, queue) };
        Ok(())
    });
}

unsafe extern "system" fn queue2(
    device: vk::Device,
    p_info: *const vk::DeviceQueueInfo2<'_>,
    p_queue: *mut vk::Queue,
) {
    on_device(device, "vkGetDeviceQueue2", |device| {
        // SAFETY: VUID-vkGetDeviceQueue2-pQueueInfo-parameter.
        let found = unsafe { chain::input(p_info) }
            .filter(|info| info.flags.is_empty())
            .and_then(|info| device.queue_of(info.queue_family_index, info.queue_index));
        if found.is_none() {
            let text = format!(
                "the device was created with queues of the families {:?}, without flags",
                device.families
            );
            device.report("VUID-VkDeviceQueueInfo2-queueIndex-01843", text);
        }
        // SAFETY: VUID-vkGetDeviceQueue2-pQueue-parameter.
        unsafe { chain::output(p_queue, found.unwrap_or_default()) };
    });
}
