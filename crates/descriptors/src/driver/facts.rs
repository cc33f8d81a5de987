//! The descriptor properties of a device, queried once.
#![expect(unsafe_code, reason = "calls Vulkan")]

use ash::vk;

use super::functions::QueryFunctions;
use sublet_vk::descriptor_heap::PhysicalDeviceDescriptorHeapPropertiesEXT;

/// The limits and properties of a device that concern descriptors. Unknown values are zero.
#[derive(Clone, Debug, Default)]
pub(crate) struct DescriptorFacts {
    pub(crate) properties: vk::PhysicalDeviceProperties,
    pub(crate) driver_id: vk::DriverId,
    /// `maxPerSetDescriptors`.
    pub(crate) max_per_set: u32,
    pub(crate) indexing: vk::PhysicalDeviceDescriptorIndexingProperties<'static>,
    /// `maxPushDescriptors`.
    pub(crate) max_push_descriptors: u32,
    pub(crate) buffer: vk::PhysicalDeviceDescriptorBufferPropertiesEXT<'static>,
    pub(crate) heap: PhysicalDeviceDescriptorHeapPropertiesEXT,
}

/// The enabled extensions whose properties are queried. Validation layers reject a query for an extension that is not
/// enabled.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DescriptorExtensions {
    pub(crate) push_descriptor: bool,
    pub(crate) descriptor_buffer: bool,
    pub(crate) descriptor_heap: bool,
}

impl DescriptorFacts {
    /// # Safety
    /// The physical device is live, and the functions are its own.
    pub(super) unsafe fn read(
        functions: &QueryFunctions,
        physical_device: vk::PhysicalDevice,
        enabled: DescriptorExtensions,
    ) -> Self {
        let Some(query) = functions.properties2 else {
            let mut properties = vk::PhysicalDeviceProperties::default();
            // SAFETY: the physical device is live (VUID-vkGetPhysicalDeviceProperties-physicalDevice-parameter).
            unsafe { (functions.properties)(physical_device, &mut properties) };
            return Self { properties, ..Self::default() };
        };
        let mut driver = vk::PhysicalDeviceDriverProperties::default();
        let mut maintenance3 = vk::PhysicalDeviceMaintenance3Properties::default();
        let mut indexing = vk::PhysicalDeviceDescriptorIndexingProperties::default();
        let mut push = vk::PhysicalDevicePushDescriptorPropertiesKHR::default();
        let mut buffer = vk::PhysicalDeviceDescriptorBufferPropertiesEXT::default();
        let mut heap = PhysicalDeviceDescriptorHeapPropertiesEXT::default();
        let mut all = vk::PhysicalDeviceProperties2::default()
            .push_next(&mut driver)
            .push_next(&mut maintenance3)
            .push_next(&mut indexing);
        if enabled.push_descriptor {
            all = all.push_next(&mut push);
        }
        if enabled.descriptor_buffer {
            all = all.push_next(&mut buffer);
        }
        if enabled.descriptor_heap {
            all = all.push_next(&mut heap);
        }
        // SAFETY: the physical device is live, and every structure of the chain is one that extends
        // VkPhysicalDeviceProperties2 (VUID-VkPhysicalDeviceProperties2-pNext-pNext); a device that does not know one
        // steps over it, and leaves it zero.
        unsafe { query(physical_device, &mut all) };
        let properties = all.properties;
        indexing.p_next = std::ptr::null_mut();
        buffer.p_next = std::ptr::null_mut();
        heap.p_next = std::ptr::null_mut();
        Self {
            properties,
            driver_id: driver.driver_id,
            max_per_set: maintenance3.max_per_set_descriptors,
            indexing,
            max_push_descriptors: push.max_push_descriptors,
            buffer,
            heap,
        }
    }
}

// SAFETY: the structures hold numbers; their `pNext` pointers are null after the query.
unsafe impl Send for DescriptorFacts {}
// SAFETY: as above.
unsafe impl Sync for DescriptorFacts {}
