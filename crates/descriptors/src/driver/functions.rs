//! The Vulkan functions that the package calls, and how they are found.
#![expect(unsafe_code, reason = "calls Vulkan")]

use std::ffi::CStr;
use std::fmt;

use ash::vk;
use sublet::device::{DriverError, MissingFunction, VulkanFunctions};
use sublet_vk::descriptor_heap as heap;

macro_rules! functions {
    ($(#[$table_doc:meta])* $table:ident; $( $(#[$doc:meta])* $field:ident : $pfn:path = $name:literal $kind:ident $( | $khr:literal )? ;)*) => {
        $(#[$table_doc])*
        #[derive(Clone)]
        pub(super) struct $table {
            $( $(#[$doc])* pub(super) $field: functions!(@type $kind $pfn), )*
        }

        impl $table {
            /// Looks up all functions.
            pub(super) fn resolve(lookup: &FunctionLookup) -> Result<Self, MissingFunction> {
                Ok(Self {
                    $( $field: functions!(@get $kind lookup, $name, [$($khr)?], $pfn), )*
                })
            }
        }

        impl fmt::Debug for $table {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($table)).finish_non_exhaustive()
            }
        }
    };
    (@type must $pfn:path) => { $pfn };
    (@type may $pfn:path) => { Option<$pfn> };
    (@get must $lookup:ident, $name:literal, [$($khr:literal)?], $pfn:path) => {
        functions!(@get may $lookup, $name, [$($khr)?], $pfn).ok_or_else(|| missing($name))?
    };
    (@get may $lookup:ident, $name:literal, [$($khr:literal)?], $pfn:path) => {{
        let found = $lookup.device($name)$( .or_else(|| $lookup.device($khr)) )?;
        // SAFETY: the get-proc function returns the function of that name, whose type is `$pfn`; the tables below pair
        // names and types.
        found.map(|pointer| unsafe { std::mem::transmute::<unsafe extern "system" fn(), $pfn>(pointer) })
    }};
}

functions! {
    /// The functions that create, write and bind descriptors.
    DescriptorFunctions;
    create_descriptor_set_layout: vk::PFN_vkCreateDescriptorSetLayout = c"vkCreateDescriptorSetLayout" must;
    destroy_descriptor_set_layout: vk::PFN_vkDestroyDescriptorSetLayout = c"vkDestroyDescriptorSetLayout" must;
    get_descriptor_set_layout_support: vk::PFN_vkGetDescriptorSetLayoutSupport = c"vkGetDescriptorSetLayoutSupport" may | c"vkGetDescriptorSetLayoutSupportKHR";
    create_descriptor_pool: vk::PFN_vkCreateDescriptorPool = c"vkCreateDescriptorPool" must;
    destroy_descriptor_pool: vk::PFN_vkDestroyDescriptorPool = c"vkDestroyDescriptorPool" must;
    reset_descriptor_pool: vk::PFN_vkResetDescriptorPool = c"vkResetDescriptorPool" must;
    allocate_descriptor_sets: vk::PFN_vkAllocateDescriptorSets = c"vkAllocateDescriptorSets" must;
    free_descriptor_sets: vk::PFN_vkFreeDescriptorSets = c"vkFreeDescriptorSets" must;
    update_descriptor_sets: vk::PFN_vkUpdateDescriptorSets = c"vkUpdateDescriptorSets" must;
    create_descriptor_update_template: vk::PFN_vkCreateDescriptorUpdateTemplate = c"vkCreateDescriptorUpdateTemplate" may | c"vkCreateDescriptorUpdateTemplateKHR";
    destroy_descriptor_update_template: vk::PFN_vkDestroyDescriptorUpdateTemplate = c"vkDestroyDescriptorUpdateTemplate" may | c"vkDestroyDescriptorUpdateTemplateKHR";
    update_descriptor_set_with_template: vk::PFN_vkUpdateDescriptorSetWithTemplate = c"vkUpdateDescriptorSetWithTemplate" may | c"vkUpdateDescriptorSetWithTemplateKHR";
    cmd_bind_descriptor_sets: vk::PFN_vkCmdBindDescriptorSets = c"vkCmdBindDescriptorSets" must;
    cmd_push_descriptor_set: vk::PFN_vkCmdPushDescriptorSetKHR = c"vkCmdPushDescriptorSetKHR" may;
    cmd_push_descriptor_set_with_template: vk::PFN_vkCmdPushDescriptorSetWithTemplateKHR = c"vkCmdPushDescriptorSetWithTemplateKHR" may;
    get_descriptor_set_layout_size: vk::PFN_vkGetDescriptorSetLayoutSizeEXT = c"vkGetDescriptorSetLayoutSizeEXT" may;
    get_descriptor_set_layout_binding_offset: vk::PFN_vkGetDescriptorSetLayoutBindingOffsetEXT = c"vkGetDescriptorSetLayoutBindingOffsetEXT" may;
    get_descriptor: vk::PFN_vkGetDescriptorEXT = c"vkGetDescriptorEXT" may;
    cmd_bind_descriptor_buffers: vk::PFN_vkCmdBindDescriptorBuffersEXT = c"vkCmdBindDescriptorBuffersEXT" may;
    cmd_set_descriptor_buffer_offsets: vk::PFN_vkCmdSetDescriptorBufferOffsetsEXT = c"vkCmdSetDescriptorBufferOffsetsEXT" may;
    get_buffer_device_address: vk::PFN_vkGetBufferDeviceAddress = c"vkGetBufferDeviceAddress" may | c"vkGetBufferDeviceAddressKHR";
    /// Sets names for debugging.
    set_debug_utils_object_name: vk::PFN_vkSetDebugUtilsObjectNameEXT = c"vkSetDebugUtilsObjectNameEXT" may;
}

functions! {
    /// The functions of VK_EXT_descriptor_heap.
    HeapFunctions;
    write_sampler_descriptors: heap::PFN_vkWriteSamplerDescriptorsEXT = c"vkWriteSamplerDescriptorsEXT" must;
    write_resource_descriptors: heap::PFN_vkWriteResourceDescriptorsEXT = c"vkWriteResourceDescriptorsEXT" must;
    cmd_bind_sampler_heap: heap::PFN_vkCmdBindHeapEXT = c"vkCmdBindSamplerHeapEXT" must;
    cmd_bind_resource_heap: heap::PFN_vkCmdBindHeapEXT = c"vkCmdBindResourceHeapEXT" must;
    cmd_push_data: heap::PFN_vkCmdPushDataEXT = c"vkCmdPushDataEXT" must;
}

/// The functions that query a physical device. The program's own take precedence.
#[derive(Clone, Copy)]
pub(super) struct QueryFunctions {
    pub(super) properties: vk::PFN_vkGetPhysicalDeviceProperties,
    pub(super) properties2: Option<vk::PFN_vkGetPhysicalDeviceProperties2>,
}

/// The two get-proc functions with their objects.
pub(super) struct FunctionLookup {
    instance: vk::Instance,
    device: vk::Device,
    by_instance: Option<vk::PFN_vkGetInstanceProcAddr>,
    by_device: Option<vk::PFN_vkGetDeviceProcAddr>,
}

impl FunctionLookup {
    /// If the program did not give the device's get-proc function, the instance's finds it.
    ///
    /// # Safety
    /// `instance` and `device` are live, and the given functions belong to them and conform to Vulkan.
    pub(super) unsafe fn new(given: &VulkanFunctions, instance: vk::Instance, device: vk::Device) -> Self {
        let by_instance = given.get_instance_proc_addr;
        let lookup = Self { instance, device, by_instance, by_device: given.get_device_proc_addr };
        let by_device = lookup.by_device.or_else(|| {
            let found = lookup.instance(c"vkGetDeviceProcAddr");
            // SAFETY: this is the type of the function of that name.
            found.map(|pointer| unsafe {
                std::mem::transmute::<unsafe extern "system" fn(), vk::PFN_vkGetDeviceProcAddr>(pointer)
            })
        });
        Self { by_device, ..lookup }
    }

    fn instance(&self, name: &'static CStr) -> Option<unsafe extern "system" fn()> {
        let lookup = self.by_instance?;
        // SAFETY: the instance is live (VUID-vkGetInstanceProcAddr-instance-parameter).
        unsafe { lookup(self.instance, name.as_ptr()) }
    }

    fn device(&self, name: &'static CStr) -> Option<unsafe extern "system" fn()> {
        let lookup = self.by_device?;
        // SAFETY: the device is live (VUID-vkGetDeviceProcAddr-device-parameter).
        unsafe { lookup(self.device, name.as_ptr()) }
    }

    /// Returns the functions that query a physical device of the instance.
    pub(super) fn queries(&self, given: &VulkanFunctions) -> Result<QueryFunctions, MissingFunction> {
        const NAME: &CStr = c"vkGetPhysicalDeviceProperties";
        let properties = given.get_physical_device_properties.or_else(|| {
            // SAFETY: this is the type of the function of that name.
            self.instance(NAME).map(|pointer| unsafe {
                std::mem::transmute::<unsafe extern "system" fn(), vk::PFN_vkGetPhysicalDeviceProperties>(
                    pointer,
                )
            })
        });
        let properties2 = given.get_physical_device_properties2.or_else(|| {
            let found = self.instance(c"vkGetPhysicalDeviceProperties2");
            let found = found.or_else(|| self.instance(c"vkGetPhysicalDeviceProperties2KHR"));
            // SAFETY: this is the type of the functions of both names.
            found.map(|pointer| unsafe {
                std::mem::transmute::<unsafe extern "system" fn(), vk::PFN_vkGetPhysicalDeviceProperties2>(
                    pointer,
                )
            })
        });
        Ok(QueryFunctions { properties: properties.ok_or_else(|| missing(NAME))?, properties2 })
    }
}

/// The names in this file are ASCII.
fn missing(name: &'static CStr) -> MissingFunction {
    MissingFunction { name: name.to_str().unwrap_or_default() }
}

/// Returns `Err` for every negative result.
#[inline]
pub(super) fn check(call: &'static str, result: vk::Result) -> Result<(), DriverError> {
    if result.as_raw() >= 0 { Ok(()) } else { Err(DriverError { call, result }) }
}
