//! A device of a real Vulkan driver, found through the Vulkan loader.

use std::ffi::CStr;

use ash::{ext, khr, vk};
use sublet::AllocatorCreateFlags;

use super::Result;
use super::features::{Enabled, Features};
use super::messenger::{LAYER, Messages, Messenger};

/// The newest version to request.
const WANTED: u32 = vk::make_api_version(0, 1, 4, 0);

/// An instance, with messages of the validation layer if it is on.
struct Instance {
    /// Keeps the library of the functions loaded.
    entry: ash::Entry,
    /// The enabled surface extensions.
    surfaces: Vec<&'static CStr>,
    raw: ash::Instance,
    messenger: Option<Messenger>,
    messages: Messages,
    version: u32,
}

impl Instance {
    fn new(validation: bool) -> Result<Self> {
        // SAFETY: loading the Vulkan loader runs its initialisers, which are trusted.
        let entry = unsafe { ash::Entry::load() }.map_err(|error| format!("no Vulkan loader: {error}"))?;
        // SAFETY: the library is loaded.
        let version = unsafe { entry.try_enumerate_instance_version() }?.unwrap_or(vk::API_VERSION_1_0);
        let version = version.min(WANTED);
        // SAFETY: the library is loaded.
        let available = unsafe { entry.enumerate_instance_extension_properties(None) }?;
        let application =
            vk::ApplicationInfo::default().application_name(c"sublet example").api_version(version);
        let mut extensions = Vec::new();
        let mut flags = vk::InstanceCreateFlags::empty();
        if has(&available, khr::portability_enumeration::NAME) {
            // Devices on a layer over another API are listed only with this extension and flag.
            extensions.push(khr::portability_enumeration::NAME.as_ptr());
            flags |= vk::InstanceCreateFlags::ENUMERATE_PORTABILITY_KHR;
        }
        let mut surfaces = Vec::new();
        if has(&available, khr::surface::NAME) {
            extensions.push(khr::surface::NAME.as_ptr());
            let kinds = [ext::headless_surface::NAME, khr::xcb_surface::NAME].into_iter();
            surfaces.extend(kinds.filter(|name| has(&available, name)));
            extensions.extend(surfaces.iter().map(|name| name.as_ptr()));
        }
        let mut layers = Vec::new();
        let messages = Messages::default();
        let mut creation = messages.create_info();
        let synchronization = [vk::ValidationFeatureEnableEXT::SYNCHRONIZATION_VALIDATION];
        let mut more = vk::ValidationFeaturesEXT::default().enabled_validation_features(&synchronization);
        if validation {
            layers.push(LAYER.as_ptr());
            extensions.push(ext::debug_utils::NAME.as_ptr());
        }
        let mut info = vk::InstanceCreateInfo::default()
            .flags(flags)
            .application_info(&application)
            .enabled_layer_names(&layers)
            .enabled_extension_names(&extensions);
        if validation {
            info = info.push_next(&mut creation).push_next(&mut more);
        }
        // SAFETY: the create-info is valid, and everything that it points to lives during the call.
        let raw = unsafe { entry.create_instance(&info, None) }.map_err(|error| match error {
            vk::Result::ERROR_LAYER_NOT_PRESENT => "the Vulkan validation layer is not installed".to_owned(),
            error => format!("no Vulkan instance: {error}"),
        })?;
        let mut instance = Self { entry, surfaces, raw, messenger: None, messages, version };
        if validation {
            instance.messenger = Some(Messenger::new(&instance.entry, &instance.raw, &instance.messages)?);
        }
        Ok(instance)
    }

    /// Returns the physical devices, best first.
    fn devices(&self) -> Result<Vec<(vk::PhysicalDevice, vk::PhysicalDeviceProperties)>> {
        // SAFETY: the instance is live.
        let devices = unsafe { self.raw.enumerate_physical_devices() }?;
        let mut devices: Vec<_> = devices
            .into_iter()
            // SAFETY: the physical device belongs to this instance.
            .map(|device| (device, unsafe { self.raw.get_physical_device_properties(device) }))
            .collect();
        if devices.is_empty() {
            return Err("no Vulkan driver has a device".into());
        }
        devices.sort_by_key(|(_, properties)| match properties.device_type {
            vk::PhysicalDeviceType::DISCRETE_GPU => 0,
            vk::PhysicalDeviceType::INTEGRATED_GPU => 1,
            vk::PhysicalDeviceType::VIRTUAL_GPU => 2,
            vk::PhysicalDeviceType::CPU => 3,
            _ => 4,
        });
        Ok(devices)
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        self.messenger = None;
        // SAFETY: messenger and device are destroyed: `Device` drops them before its instance.
        unsafe { self.raw.destroy_instance(None) };
    }
}

/// Returns the names of the physical devices, best first.
pub(super) fn device_names() -> Result<Vec<String>> {
    let devices = Instance::new(false)?.devices()?;
    let describe = |properties: &vk::PhysicalDeviceProperties| {
        format!("{} ({})", name(properties), kind(properties.device_type))
    };
    Ok(devices.iter().map(|(_, properties)| describe(properties)).collect())
}

/// Returns the allocator's flags for enabled device extensions and features.
pub(super) fn flags(enabled: impl Fn(&str) -> bool) -> AllocatorCreateFlags {
    [
        ("VK_EXT_memory_budget", AllocatorCreateFlags::EXT_MEMORY_BUDGET),
        ("VK_EXT_memory_priority", AllocatorCreateFlags::EXT_MEMORY_PRIORITY),
        ("VK_EXT_pageable_device_local_memory", AllocatorCreateFlags::EXT_PAGEABLE_DEVICE_LOCAL_MEMORY),
        ("VK_KHR_maintenance5", AllocatorCreateFlags::KHR_MAINTENANCE5),
        ("VK_KHR_buffer_device_address", AllocatorCreateFlags::BUFFER_DEVICE_ADDRESS),
        ("VK_AMD_device_coherent_memory", AllocatorCreateFlags::AMD_DEVICE_COHERENT_MEMORY),
    ]
    .into_iter()
    .filter(|&(name, _)| enabled(name))
    .map(|(_, flag)| flag)
    .collect()
}

/// A device with one queue.
pub(super) struct Device {
    pub(super) device: ash::Device,
    pub(super) physical_device: vk::PhysicalDevice,
    pub(super) queue: vk::Queue,
    pub(super) queue_family_index: u32,
    pub(super) api_version: u32,
    pub(super) flags: AllocatorCreateFlags,
    #[cfg(feature = "descriptors")]
    pub(super) descriptors: sublet_descriptors::DescriptorFeatures,
    pub(super) enabled: Enabled,
    can_present: bool,
    instance: Instance,
}

impl Device {
    pub(super) fn new(index: usize, validation: bool) -> Result<Self> {
        let instance = Instance::new(validation)?;
        let (physical_device, properties) =
            instance.devices()?.into_iter().nth(index).ok_or("no such device")?;
        let api_version = instance.version.min(properties.api_version);
        // SAFETY: the physical device belongs to this instance.
        let families = unsafe { instance.raw.get_physical_device_queue_family_properties(physical_device) };
        let works = vk::QueueFlags::GRAPHICS | vk::QueueFlags::COMPUTE | vk::QueueFlags::TRANSFER;
        let family = families.iter().position(|family| family.queue_flags.intersects(works));
        let queue_family_index = u32::try_from(family.ok_or("the device has no queue that copies")?)?;

        let presents = !instance.surfaces.is_empty();
        let mut features = Features::of(&instance.raw, physical_device, api_version, presents)?;
        // The layer's extension is enabled too.
        let enabled = Enabled { debug_utils: validation, ..features.enabled() };
        let extensions = features.extension_names();
        let queues = [vk::DeviceQueueCreateInfo::default()
            .queue_family_index(queue_family_index)
            .queue_priorities(&[1.0])];
        let info =
            vk::DeviceCreateInfo::default().queue_create_infos(&queues).enabled_extension_names(&extensions);
        let info = features.chain(info);
        // SAFETY: the physical device supports all these extensions and features, and the queue.
        let device = unsafe { instance.raw.create_device(physical_device, &info, None) }?;
        // SAFETY: the device was made with queue 0 of this family.
        let queue = unsafe { device.get_device_queue(queue_family_index, 0) };
        Ok(Self {
            device,
            physical_device,
            queue,
            queue_family_index,
            api_version,
            flags: features.allocator_flags(),
            #[cfg(feature = "descriptors")]
            descriptors: features.descriptor_features(),
            enabled,
            can_present: features.has(khr::swapchain::NAME),
            instance,
        })
    }

    pub(super) fn instance(&self) -> &ash::Instance {
        &self.instance.raw
    }

    pub(super) fn entry(&self) -> &ash::Entry {
        &self.instance.entry
    }

    /// Returns true if surfaces of this extension can be created and presented to.
    pub(super) fn has_surface(&self, extension: &CStr) -> bool {
        self.can_present && self.instance.surfaces.contains(&extension)
    }

    pub(super) fn take_messages(&self) -> Vec<String> {
        self.instance.messages.take()
    }

    /// Destroys the device, and returns all messages of the layer, which detects leaks at that moment.
    pub(super) fn finish(mut self) -> Vec<String> {
        self.destroy();
        self.take_messages()
    }

    fn destroy(&mut self) {
        if self.queue != vk::Queue::null() {
            self.queue = vk::Queue::null();
            // SAFETY: `Context` owns the device, and everything else that used it is destroyed.
            let idle = unsafe { self.device.device_wait_idle() };
            debug_assert!(idle.is_ok());
            // SAFETY: the device is idle, and it is destroyed once: the queue was not null until now.
            unsafe { self.device.destroy_device(None) };
        }
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        self.destroy();
    }
}

fn has(extensions: &[vk::ExtensionProperties], name: &CStr) -> bool {
    extensions.iter().any(|extension| extension.extension_name_as_c_str() == Ok(name))
}

/// Returns a device's name.
pub(super) fn name(properties: &vk::PhysicalDeviceProperties) -> String {
    properties.device_name_as_c_str().map_or_else(|_| "unnamed".into(), |name| name.to_string_lossy().into())
}

/// Returns a device's type in words.
pub(super) fn kind(device_type: vk::PhysicalDeviceType) -> &'static str {
    match device_type {
        vk::PhysicalDeviceType::DISCRETE_GPU => "discrete GPU",
        vk::PhysicalDeviceType::INTEGRATED_GPU => "integrated GPU",
        vk::PhysicalDeviceType::VIRTUAL_GPU => "virtual GPU",
        vk::PhysicalDeviceType::CPU => "CPU",
        _ => "other",
    }
}
