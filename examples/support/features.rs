//! Enables all features of a real device that the library can use.

use std::ffi::{CStr, c_char};

use ash::{amd, ext, khr, vk};
use sublet::AllocatorCreateFlags;
#[cfg(feature = "descriptors")]
use sublet_descriptors::DescriptorFeatures;
use sublet_vk::descriptor_heap as heap_ffi;

/// Devices that are a layer over another API require this extension to be enabled.
const PORTABILITY: &CStr = c"VK_KHR_portability_subset";

/// Enabled features that neither the allocator nor descriptors use.
#[derive(Clone, Copy)]
pub struct Enabled {
    pub timeline_semaphore: bool,
    pub synchronization2: bool,
    pub dynamic_rendering: bool,
    /// `hostImageCopy`, of VK_EXT_host_image_copy.
    pub host_image_copy: bool,
    /// `accelerationStructure` and `rayQuery`.
    pub ray_query: bool,
    /// VK_EXT_debug_utils, of the instance.
    pub debug_utils: bool,
}

/// Features and extensions that a physical device supports.
pub(super) struct Features {
    extensions: Vec<&'static CStr>,
    core: vk::PhysicalDeviceFeatures,
    priority: vk::PhysicalDeviceMemoryPriorityFeaturesEXT<'static>,
    pageable: vk::PhysicalDevicePageableDeviceLocalMemoryFeaturesEXT<'static>,
    maintenance5: vk::PhysicalDeviceMaintenance5FeaturesKHR<'static>,
    coherent: vk::PhysicalDeviceCoherentMemoryFeaturesAMD<'static>,
    address: vk::PhysicalDeviceBufferDeviceAddressFeatures<'static>,
    timeline: vk::PhysicalDeviceTimelineSemaphoreFeatures<'static>,
    synchronization2: vk::PhysicalDeviceSynchronization2Features<'static>,
    rendering: vk::PhysicalDeviceDynamicRenderingFeatures<'static>,
    indexing: vk::PhysicalDeviceDescriptorIndexingFeatures<'static>,
    inline_uniform: vk::PhysicalDeviceInlineUniformBlockFeatures<'static>,
    mutable: vk::PhysicalDeviceMutableDescriptorTypeFeaturesEXT<'static>,
    buffer: vk::PhysicalDeviceDescriptorBufferFeaturesEXT<'static>,
    heap: heap_ffi::PhysicalDeviceDescriptorHeapFeaturesEXT,
    host_image: vk::PhysicalDeviceHostImageCopyFeaturesEXT<'static>,
    structure: vk::PhysicalDeviceAccelerationStructureFeaturesKHR<'static>,
    ray_query: vk::PhysicalDeviceRayQueryFeaturesKHR<'static>,
    version: u32,
}

impl Features {
    /// Queries a physical device. `version` is the instance's version in use. With `presents`, includes presentation.
    pub(super) fn of(
        instance: &ash::Instance,
        physical_device: vk::PhysicalDevice,
        version: u32,
        presents: bool,
    ) -> Result<Self, vk::Result> {
        // SAFETY: the physical device belongs to this instance.
        let offered = unsafe { instance.enumerate_device_extension_properties(physical_device) }?;
        let has = |name: &CStr| {
            offered.iter().any(|offer| offer.extension_name_as_c_str().is_ok_and(|has| has == name))
        };
        let mut features = Self {
            extensions: Vec::new(),
            core: vk::PhysicalDeviceFeatures::default(),
            priority: vk::PhysicalDeviceMemoryPriorityFeaturesEXT::default(),
            pageable: vk::PhysicalDevicePageableDeviceLocalMemoryFeaturesEXT::default(),
            maintenance5: vk::PhysicalDeviceMaintenance5FeaturesKHR::default(),
            coherent: vk::PhysicalDeviceCoherentMemoryFeaturesAMD::default(),
            address: vk::PhysicalDeviceBufferDeviceAddressFeatures::default(),
            timeline: vk::PhysicalDeviceTimelineSemaphoreFeatures::default(),
            synchronization2: vk::PhysicalDeviceSynchronization2Features::default(),
            rendering: vk::PhysicalDeviceDynamicRenderingFeatures::default(),
            indexing: vk::PhysicalDeviceDescriptorIndexingFeatures::default(),
            inline_uniform: vk::PhysicalDeviceInlineUniformBlockFeatures::default(),
            mutable: vk::PhysicalDeviceMutableDescriptorTypeFeaturesEXT::default(),
            buffer: vk::PhysicalDeviceDescriptorBufferFeaturesEXT::default(),
            heap: heap_ffi::PhysicalDeviceDescriptorHeapFeaturesEXT::default(),
            host_image: vk::PhysicalDeviceHostImageCopyFeaturesEXT::default(),
            structure: vk::PhysicalDeviceAccelerationStructureFeaturesKHR::default(),
            ray_query: vk::PhysicalDeviceRayQueryFeaturesKHR::default(),
            version,
        };
        if version >= vk::API_VERSION_1_2 {
            features.query(instance, physical_device);
        }
        // Ray queries require a third extension, and buffer addresses.
        let queries_rays = features.structure.acceleration_structure == vk::TRUE
            && features.ray_query.ray_query == vk::TRUE
            && features.address.buffer_device_address == vk::TRUE
            && [khr::deferred_host_operations::NAME, khr::acceleration_structure::NAME, khr::ray_query::NAME]
                .into_iter()
                .all(has);
        let wanted = [
            (khr::deferred_host_operations::NAME, queries_rays),
            (khr::acceleration_structure::NAME, queries_rays),
            (khr::ray_query::NAME, queries_rays),
            (ext::memory_priority::NAME, features.priority.memory_priority == vk::TRUE),
            (
                ext::pageable_device_local_memory::NAME,
                features.priority.memory_priority == vk::TRUE
                    && features.pageable.pageable_device_local_memory == vk::TRUE,
            ),
            // Requires dynamic rendering, which 1.3 introduced.
            (
                khr::maintenance5::NAME,
                features.maintenance5.maintenance5 == vk::TRUE && version >= vk::API_VERSION_1_3,
            ),
            (amd::device_coherent_memory::NAME, features.coherent.device_coherent_memory == vk::TRUE),
            (ext::memory_budget::NAME, version >= vk::API_VERSION_1_1),
            (khr::push_descriptor::NAME, version >= vk::API_VERSION_1_1),
            (ext::mutable_descriptor_type::NAME, features.mutable.mutable_descriptor_type == vk::TRUE),
            (
                ext::descriptor_buffer::NAME,
                features.buffer.descriptor_buffer == vk::TRUE && version >= vk::API_VERSION_1_3,
            ),
            // Requires maintenance5, whose flags of pipelines it extends.
            (
                heap_ffi::NAME,
                features.heap.descriptor_heap == vk::TRUE
                    && features.maintenance5.maintenance5 == vk::TRUE
                    && version >= vk::API_VERSION_1_3,
            ),
            (ext::external_memory_host::NAME, version >= vk::API_VERSION_1_1),
            // Requires two extensions that 1.3 includes.
            (
                ext::host_image_copy::NAME,
                features.host_image.host_image_copy == vk::TRUE && version >= vk::API_VERSION_1_3,
            ),
            (khr::swapchain::NAME, presents),
            (PORTABILITY, true),
        ];
        features.extensions =
            wanted.into_iter().filter(|&(name, wanted)| wanted && has(name)).map(|(name, _)| name).collect();
        Ok(features)
    }

    fn query(&mut self, instance: &ash::Instance, physical_device: vk::PhysicalDevice) {
        let mut all = vk::PhysicalDeviceFeatures2::default()
            .push_next(&mut self.priority)
            .push_next(&mut self.pageable)
            .push_next(&mut self.maintenance5)
            .push_next(&mut self.coherent)
            .push_next(&mut self.address)
            .push_next(&mut self.timeline)
            .push_next(&mut self.indexing)
            .push_next(&mut self.inline_uniform)
            .push_next(&mut self.mutable)
            .push_next(&mut self.buffer)
            .push_next(&mut self.heap)
            .push_next(&mut self.host_image)
            .push_next(&mut self.structure)
            .push_next(&mut self.ray_query);
        if self.version >= vk::API_VERSION_1_3 {
            all = all.push_next(&mut self.synchronization2).push_next(&mut self.rendering);
        }
        // SAFETY: the chain is valid, and drivers skip unknown structures.
        unsafe { instance.get_physical_device_features2(physical_device, &mut all) };
        let offered = all.features;
        // The shaders of the examples index descriptors dynamically.
        self.core = vk::PhysicalDeviceFeatures {
            shader_uniform_buffer_array_dynamic_indexing: offered
                .shader_uniform_buffer_array_dynamic_indexing,
            shader_sampled_image_array_dynamic_indexing: offered.shader_sampled_image_array_dynamic_indexing,
            shader_storage_buffer_array_dynamic_indexing: offered
                .shader_storage_buffer_array_dynamic_indexing,
            shader_storage_image_array_dynamic_indexing: offered.shader_storage_image_array_dynamic_indexing,
            sparse_binding: offered.sparse_binding,
            ..Default::default()
        };
        // The query linked these structures. The new chain links each again.
        self.priority.p_next = std::ptr::null_mut();
        self.pageable.p_next = std::ptr::null_mut();
        self.maintenance5.p_next = std::ptr::null_mut();
        self.coherent.p_next = std::ptr::null_mut();
        self.address.p_next = std::ptr::null_mut();
        self.timeline.p_next = std::ptr::null_mut();
        self.synchronization2.p_next = std::ptr::null_mut();
        self.rendering.p_next = std::ptr::null_mut();
        self.indexing.p_next = std::ptr::null_mut();
        self.inline_uniform.p_next = std::ptr::null_mut();
        self.mutable.p_next = std::ptr::null_mut();
        self.buffer.p_next = std::ptr::null_mut();
        self.heap.p_next = std::ptr::null_mut();
        self.host_image.p_next = std::ptr::null_mut();
        self.structure = vk::PhysicalDeviceAccelerationStructureFeaturesKHR::default()
            .acceleration_structure(self.structure.acceleration_structure == vk::TRUE);
        self.ray_query.p_next = std::ptr::null_mut();
        // Enables only features that are used.
        self.address.buffer_device_address_capture_replay = vk::FALSE;
        self.address.buffer_device_address_multi_device = vk::FALSE;
        self.buffer.descriptor_buffer_capture_replay = vk::FALSE;
        self.buffer.descriptor_buffer_image_layout_ignored = vk::FALSE;
        self.heap.descriptor_heap_capture_replay = vk::FALSE;
    }

    pub(super) fn has(&self, extension: &CStr) -> bool {
        self.extensions.contains(&extension)
    }

    pub(super) fn extension_names(&self) -> Vec<*const c_char> {
        self.extensions.iter().map(|name| name.as_ptr()).collect()
    }

    /// Adds the supported features to the create-info of a device.
    pub(super) fn chain<'a>(&'a mut self, mut info: vk::DeviceCreateInfo<'a>) -> vk::DeviceCreateInfo<'a> {
        let (with_priority, with_coherent) =
            (self.has(ext::memory_priority::NAME), self.has(amd::device_coherent_memory::NAME));
        let (with_mutable, with_buffer) =
            (self.has(ext::mutable_descriptor_type::NAME), self.has(ext::descriptor_buffer::NAME));
        let (with_pageable, with_maintenance5) =
            (self.has(ext::pageable_device_local_memory::NAME), self.has(khr::maintenance5::NAME));
        let with_rays = self.has(khr::ray_query::NAME);
        let (with_heap, with_host_image) = (self.has(heap_ffi::NAME), self.has(ext::host_image_copy::NAME));
        info = info.enabled_features(&self.core);
        if with_heap {
            info = info.push_next(&mut self.heap);
        }
        if with_host_image {
            info = info.push_next(&mut self.host_image);
        }
        if with_rays {
            info = info.push_next(&mut self.structure).push_next(&mut self.ray_query);
        }
        if with_priority {
            info = info.push_next(&mut self.priority);
        }
        if with_pageable {
            info = info.push_next(&mut self.pageable);
        }
        if with_maintenance5 {
            info = info.push_next(&mut self.maintenance5);
        }
        if with_coherent {
            info = info.push_next(&mut self.coherent);
        }
        if with_mutable {
            info = info.push_next(&mut self.mutable);
        }
        if with_buffer {
            info = info.push_next(&mut self.buffer);
        }
        if self.version >= vk::API_VERSION_1_2 {
            info =
                info.push_next(&mut self.address).push_next(&mut self.timeline).push_next(&mut self.indexing);
        }
        if self.version >= vk::API_VERSION_1_3 {
            info = info.push_next(&mut self.inline_uniform);
            info = info.push_next(&mut self.synchronization2).push_next(&mut self.rendering);
        }
        info
    }

    /// Returns the enabled features as flags of the allocator.
    pub(super) fn allocator_flags(&self) -> AllocatorCreateFlags {
        super::loaded::flags(|name| match name {
            "VK_EXT_memory_budget" => self.has(ext::memory_budget::NAME),
            "VK_EXT_memory_priority" => self.has(ext::memory_priority::NAME),
            "VK_EXT_pageable_device_local_memory" => self.has(ext::pageable_device_local_memory::NAME),
            "VK_KHR_maintenance5" => self.has(khr::maintenance5::NAME),
            "VK_KHR_buffer_device_address" => self.address.buffer_device_address == vk::TRUE,
            "VK_AMD_device_coherent_memory" => self.has(amd::device_coherent_memory::NAME),
            _ => false,
        })
    }

    /// Returns the enabled features of [`Enabled`]. Those of the instance are unknown here.
    pub(super) fn enabled(&self) -> Enabled {
        Enabled {
            timeline_semaphore: self.timeline.timeline_semaphore == vk::TRUE,
            synchronization2: self.synchronization2.synchronization2 == vk::TRUE,
            dynamic_rendering: self.rendering.dynamic_rendering == vk::TRUE,
            host_image_copy: self.has(ext::host_image_copy::NAME),
            ray_query: self.has(khr::ray_query::NAME),
            debug_utils: false,
        }
    }

    /// Returns the enabled features of descriptors.
    #[cfg(feature = "descriptors")]
    pub(super) fn descriptor_features(&self) -> DescriptorFeatures {
        let indexing = &self.indexing;
        let buffers = self.has(ext::descriptor_buffer::NAME);
        let inline =
            self.version >= vk::API_VERSION_1_3 && self.inline_uniform.inline_uniform_block == vk::TRUE;
        let pairs = [
            (DescriptorFeatures::PUSH_DESCRIPTOR, self.has(khr::push_descriptor::NAME)),
            (DescriptorFeatures::INLINE_UNIFORM_BLOCK, inline),
            (DescriptorFeatures::MUTABLE_DESCRIPTOR_TYPE, self.has(ext::mutable_descriptor_type::NAME)),
            (DescriptorFeatures::BUFFER_DEVICE_ADDRESS, self.address.buffer_device_address == vk::TRUE),
            (DescriptorFeatures::DESCRIPTOR_BUFFER, buffers),
            (DescriptorFeatures::DESCRIPTOR_HEAP, self.has(heap_ffi::NAME)),
            (
                DescriptorFeatures::DESCRIPTOR_BUFFER_PUSH_DESCRIPTORS,
                buffers && self.buffer.descriptor_buffer_push_descriptors == vk::TRUE,
            ),
            (
                DescriptorFeatures::UNIFORM_BUFFER_UPDATE_AFTER_BIND,
                indexing.descriptor_binding_uniform_buffer_update_after_bind == vk::TRUE,
            ),
            (
                DescriptorFeatures::SAMPLED_IMAGE_UPDATE_AFTER_BIND,
                indexing.descriptor_binding_sampled_image_update_after_bind == vk::TRUE,
            ),
            (
                DescriptorFeatures::STORAGE_IMAGE_UPDATE_AFTER_BIND,
                indexing.descriptor_binding_storage_image_update_after_bind == vk::TRUE,
            ),
            (
                DescriptorFeatures::STORAGE_BUFFER_UPDATE_AFTER_BIND,
                indexing.descriptor_binding_storage_buffer_update_after_bind == vk::TRUE,
            ),
            (
                DescriptorFeatures::UNIFORM_TEXEL_BUFFER_UPDATE_AFTER_BIND,
                indexing.descriptor_binding_uniform_texel_buffer_update_after_bind == vk::TRUE,
            ),
            (
                DescriptorFeatures::STORAGE_TEXEL_BUFFER_UPDATE_AFTER_BIND,
                indexing.descriptor_binding_storage_texel_buffer_update_after_bind == vk::TRUE,
            ),
            (
                DescriptorFeatures::UPDATE_UNUSED_WHILE_PENDING,
                indexing.descriptor_binding_update_unused_while_pending == vk::TRUE,
            ),
            (DescriptorFeatures::PARTIALLY_BOUND, indexing.descriptor_binding_partially_bound == vk::TRUE),
            (
                DescriptorFeatures::VARIABLE_DESCRIPTOR_COUNT,
                indexing.descriptor_binding_variable_descriptor_count == vk::TRUE,
            ),
        ];
        pairs.into_iter().filter(|&(_, enabled)| enabled).map(|(feature, _)| feature).collect()
    }
}
