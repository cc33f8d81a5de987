//! A device to query the requirements of buffers and images.
#![expect(unsafe_code, reason = "the functions have the C ABI")]

use std::cell::Cell;

use ash::vk;

use super::error::MeasureError;
use super::facts::MeasuredFacts;
use crate::facts::format::ImageDescription;

/// The requirements that a driver reports for a resource. Units: bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ProbedRequirements {
    pub(crate) size: u64,
    pub(crate) alignment: u64,
    pub(crate) types: u32,
    pub(crate) prefers_dedicated: bool,
    pub(crate) requires_dedicated: bool,
}

/// The device, which the probe owns.
pub(crate) struct Probe<'a> {
    instance: &'a ash::Instance,
    physical_device: vk::PhysicalDevice,
    device: ash::Device,
    /// Vulkan 1.1: the driver also reports whether it prefers a dedicated allocation.
    has_1_1: bool,
    has_protected: bool,
    has_external: bool,
    asked: Cell<u32>,
}

impl<'a> Probe<'a> {
    /// # Safety
    ///
    /// 1. `instance` is live, and outlives the probe.
    /// 2. It was made for `facts.version` or later.
    /// 3. `physical_device` is its own.
    pub(crate) unsafe fn new(
        instance: &'a ash::Instance,
        physical_device: vk::PhysicalDevice,
        facts: &MeasuredFacts,
    ) -> Result<Self, MeasureError> {
        if !facts.has_queue {
            return Err(MeasureError::NoQueue);
        }
        let has = facts.features;
        let mut extensions = Vec::new();
        let has_external = has.external_memory && facts.has(ash::khr::external_memory_fd::NAME);
        for (name, wanted) in [
            (ash::khr::external_memory_fd::NAME, has_external),
            (ash::ext::descriptor_buffer::NAME, has.descriptor_buffer),
            // A device that is a layer over another API demands that the program enables this extension.
            (c"VK_KHR_portability_subset", facts.has(c"VK_KHR_portability_subset")),
            // Core since 1.2, 1.2 and 1.3.
            (
                ash::khr::buffer_device_address::NAME,
                has.buffer_device_address && facts.version < vk::API_VERSION_1_2,
            ),
            (c"VK_EXT_descriptor_indexing", has.descriptor_buffer && facts.version < vk::API_VERSION_1_2),
            (ash::khr::synchronization2::NAME, has.descriptor_buffer && facts.version < vk::API_VERSION_1_3),
        ] {
            if wanted {
                extensions.push(name.as_ptr());
            }
        }
        let mut addresses =
            vk::PhysicalDeviceBufferDeviceAddressFeatures::default().buffer_device_address(true);
        let mut buffers = vk::PhysicalDeviceDescriptorBufferFeaturesEXT::default().descriptor_buffer(true);
        let mut protected = vk::PhysicalDeviceProtectedMemoryFeatures::default().protected_memory(true);
        let queues = [vk::DeviceQueueCreateInfo::default().queue_family_index(0).queue_priorities(&[1.0])];
        let mut info =
            vk::DeviceCreateInfo::default().queue_create_infos(&queues).enabled_extension_names(&extensions);
        if has.buffer_device_address {
            info = info.push_next(&mut addresses);
        }
        if has.descriptor_buffer {
            info = info.push_next(&mut buffers);
        }
        if has.protected_memory {
            info = info.push_next(&mut protected);
        }
        // SAFETY: 1 and 3 of `new`; extensions, features and the queue were all offered by the physical device.
        let device = unsafe { instance.create_device(physical_device, &info, None) }
            .map_err(|result| MeasureError::Driver { call: "vkCreateDevice", result })?;
        Ok(Self {
            instance,
            physical_device,
            device,
            has_1_1: facts.version >= vk::API_VERSION_1_1,
            has_protected: has.protected_memory,
            has_external,
            asked: Cell::new(0),
        })
    }

    /// The count of buffers and images that were queried.
    pub(crate) fn asked(&self) -> u32 {
        self.asked.get()
    }

    /// Returns whether a driver may be asked for more than a pool was made for: since VK_KHR_maintenance1, which is
    /// core in 1.1.
    pub(crate) fn may_overfill_pools(&self) -> bool {
        self.has_1_1
    }

    pub(crate) fn device(&self) -> &ash::Device {
        &self.device
    }

    /// The requirements of a buffer; `None` if the driver cannot make it.
    pub(crate) fn buffer(&self, size: u64, usage: vk::BufferUsageFlags) -> Option<ProbedRequirements> {
        self.buffer_with(size, usage, vk::BufferCreateFlags::empty())
    }

    /// The memory types of buffers that are protected.
    pub(crate) fn protected_buffer_types(&self) -> u32 {
        let (usage, flags) = (vk::BufferUsageFlags::STORAGE_BUFFER, vk::BufferCreateFlags::PROTECTED);
        let answer = self.has_protected.then(|| self.buffer_with(1 << 16, usage, flags)).flatten();
        answer.map_or(0, |answer| answer.types)
    }

    fn buffer_with(
        &self,
        size: u64,
        usage: vk::BufferUsageFlags,
        flags: vk::BufferCreateFlags,
    ) -> Option<ProbedRequirements> {
        let info = vk::BufferCreateInfo::default().size(size).usage(usage).flags(flags);
        // SAFETY: sizes are above 0, and usages and flags are those that the enabled features allow.
        let buffer = unsafe { self.device.create_buffer(&info, None) }.ok()?;
        self.asked.set(self.asked.get() + 1);
        let mut dedicated = vk::MemoryDedicatedRequirements::default();
        let plain = if self.has_1_1 {
            let mut all = vk::MemoryRequirements2::default().push_next(&mut dedicated);
            let asked = vk::BufferMemoryRequirementsInfo2::default().buffer(buffer);
            // SAFETY: the buffer is live, and the device is of 1.1 at least.
            unsafe { self.device.get_buffer_memory_requirements2(&asked, &mut all) };
            all.memory_requirements
        } else {
            // SAFETY: the buffer is live.
            unsafe { self.device.get_buffer_memory_requirements(buffer) }
        };
        // SAFETY: it was created just now, and nothing uses it.
        unsafe { self.device.destroy_buffer(buffer, None) };
        Some(answer(plain, &dedicated))
    }

    /// The requirements of an image; `None` if the driver cannot make it.
    pub(crate) fn image(&self, image: &ImageDescription) -> Option<ProbedRequirements> {
        let protected = image.flags.contains(vk::ImageCreateFlags::PROTECTED);
        if protected && !self.has_protected || image.external && !self.has_external || !self.takes(image) {
            return None;
        }
        let mut external = vk::ExternalMemoryImageCreateInfo::default()
            .handle_types(vk::ExternalMemoryHandleTypeFlags::OPAQUE_FD);
        let mut info = vk::ImageCreateInfo::default()
            .flags(image.flags)
            .image_type(image.image_type)
            .format(image.format)
            .extent(image.extent)
            .mip_levels(image.mip_levels)
            .array_layers(image.array_layers)
            .samples(image.samples)
            .tiling(image.tiling)
            .usage(image.usage);
        if image.external {
            info = info.push_next(&mut external);
        }
        // SAFETY: `takes` has asked the driver whether it has such images.
        let handle = unsafe { self.device.create_image(&info, None) }.ok()?;
        self.asked.set(self.asked.get() + 1);
        let mut dedicated = vk::MemoryDedicatedRequirements::default();
        let plain = if self.has_1_1 {
            let mut all = vk::MemoryRequirements2::default().push_next(&mut dedicated);
            let asked = vk::ImageMemoryRequirementsInfo2::default().image(handle);
            // SAFETY: the image is live, and the device is of 1.1 at least.
            unsafe { self.device.get_image_memory_requirements2(&asked, &mut all) };
            all.memory_requirements
        } else {
            // SAFETY: the image is live.
            unsafe { self.device.get_image_memory_requirements(handle) }
        };
        // SAFETY: it was created just now, and nothing uses it.
        unsafe { self.device.destroy_image(handle, None) };
        Some(answer(plain, &dedicated))
    }

    /// Returns whether the driver says that it has such images.
    fn takes(&self, image: &ImageDescription) -> bool {
        let limits = if image.external { self.shared_limits(image) } else { self.limits(image) };
        limits.is_some_and(|limits| {
            image.extent.width <= limits.max_extent.width
                && image.extent.height <= limits.max_extent.height
                && image.extent.depth <= limits.max_extent.depth
                && image.mip_levels <= limits.max_mip_levels
                && image.array_layers <= limits.max_array_layers
                && limits.sample_counts.contains(image.samples)
        })
    }

    fn limits(&self, image: &ImageDescription) -> Option<vk::ImageFormatProperties> {
        // SAFETY: 1 and 3 of `new`: the physical device is of the instance, which is live.
        unsafe {
            self.instance.get_physical_device_image_format_properties(
                self.physical_device,
                image.format,
                image.image_type,
                image.tiling,
                image.usage,
                image.flags,
            )
        }
        .ok()
    }

    /// The same for images that can be shared with another program.
    fn shared_limits(&self, image: &ImageDescription) -> Option<vk::ImageFormatProperties> {
        let mut external = vk::PhysicalDeviceExternalImageFormatInfo::default()
            .handle_type(vk::ExternalMemoryHandleTypeFlags::OPAQUE_FD);
        let info = vk::PhysicalDeviceImageFormatInfo2::default()
            .format(image.format)
            .ty(image.image_type)
            .tiling(image.tiling)
            .usage(image.usage)
            .flags(image.flags)
            .push_next(&mut external);
        let mut sharing = vk::ExternalImageFormatProperties::default();
        let mut limits = vk::ImageFormatProperties2::default().push_next(&mut sharing);
        if !self.has_1_1 {
            return None;
        }
        // SAFETY: 1 to 3 of `new`: the instance is of 1.1 at least; the chains are valid.
        unsafe {
            self.instance.get_physical_device_image_format_properties2(
                self.physical_device,
                &info,
                &mut limits,
            )
        }
        .ok()?;
        let limits = limits.image_format_properties;
        let features = sharing.external_memory_properties.external_memory_features;
        features.contains(vk::ExternalMemoryFeatureFlags::EXPORTABLE).then_some(limits)
    }
}

fn answer(
    plain: vk::MemoryRequirements,
    dedicated: &vk::MemoryDedicatedRequirements<'_>,
) -> ProbedRequirements {
    ProbedRequirements {
        size: plain.size,
        alignment: plain.alignment,
        types: plain.memory_type_bits,
        prefers_dedicated: dedicated.prefers_dedicated_allocation == vk::TRUE,
        requires_dedicated: dedicated.requires_dedicated_allocation == vk::TRUE,
    }
}

impl Drop for Probe<'_> {
    fn drop(&mut self) {
        // SAFETY: everything that was created on it is destroyed, and nothing was submitted.
        unsafe { self.device.destroy_device(None) };
    }
}
