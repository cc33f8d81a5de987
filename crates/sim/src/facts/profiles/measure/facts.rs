//! The facts that a physical device reports before a device is created.
#![expect(unsafe_code, reason = "the functions have the C ABI")]

use std::ffi::CStr;

use ash::vk;

use super::super::{
    DescriptorBufferLimits, DescriptorHeapLimits, DescriptorLimits, DescriptorMaxima, FeaturesProfile,
    HeapProfile, LimitsProfile, MAX_MAP_ALIGNMENT, TypeProfile,
};
use super::error::MeasureError;
use crate::facts::arithmetic::{index, widen};
use crate::facts::extensions::NEWEST_MINOR;
use crate::facts::ffi;

/// The newest version of Vulkan that the simulated device can have.
const NEWEST: u32 = vk::make_api_version(0, 1, NEWEST_MINOR, 0);

pub(crate) struct MeasuredFacts {
    pub(crate) properties: vk::PhysicalDeviceProperties,
    pub(crate) device_name: String,
    /// The version that a program may use: the older of instance and device.
    pub(crate) version: u32,
    /// The features of the device that the simulated device has too.
    pub(crate) api_version: u32,
    pub(crate) driver_id: vk::DriverId,
    pub(crate) heaps: Vec<HeapProfile>,
    pub(crate) types: Vec<TypeProfile>,
    pub(crate) limits: LimitsProfile,
    pub(crate) features: FeaturesProfile,
    pub(crate) has_queue: bool,
    /// Facts that could not be queried, in words.
    pub(crate) missing: Vec<&'static str>,
    extensions: Vec<vk::ExtensionProperties>,
}

/// The structures that are chained to `VkPhysicalDeviceProperties2`.
#[derive(Default)]
struct ChainedProperties {
    maintenance3: vk::PhysicalDeviceMaintenance3Properties<'static>,
    maintenance4: vk::PhysicalDeviceMaintenance4Properties<'static>,
    driver: vk::PhysicalDeviceDriverProperties<'static>,
    indexing: vk::PhysicalDeviceDescriptorIndexingProperties<'static>,
    inline: vk::PhysicalDeviceInlineUniformBlockProperties<'static>,
    push: vk::PhysicalDevicePushDescriptorPropertiesKHR<'static>,
    buffer: vk::PhysicalDeviceDescriptorBufferPropertiesEXT<'static>,
    heap: ffi::PhysicalDeviceDescriptorHeapPropertiesEXT,
}

impl ChainedProperties {
    /// # Safety
    ///
    /// 1 to 3 of [`MeasuredFacts::read`]; the version is 1.1 at least.
    unsafe fn read(instance: &ash::Instance, physical_device: vk::PhysicalDevice) -> Self {
        let mut more = Self::default();
        let mut all = vk::PhysicalDeviceProperties2::default()
            .push_next(&mut more.maintenance3)
            .push_next(&mut more.maintenance4)
            .push_next(&mut more.driver)
            .push_next(&mut more.indexing)
            .push_next(&mut more.inline)
            .push_next(&mut more.push)
            .push_next(&mut more.buffer)
            .push_next(&mut more.heap);
        // SAFETY: 1 and 3 of `MeasuredFacts::read`, and the version; the chain is valid, and drivers skip what they do
        // not know.
        unsafe { instance.get_physical_device_properties2(physical_device, &mut all) };
        more
    }
}

/// Those that are chained to `VkPhysicalDeviceFeatures2`.
#[derive(Default)]
struct MoreFeatures {
    priority: vk::PhysicalDeviceMemoryPriorityFeaturesEXT<'static>,
    pageable: vk::PhysicalDevicePageableDeviceLocalMemoryFeaturesEXT<'static>,
    coherent: vk::PhysicalDeviceCoherentMemoryFeaturesAMD<'static>,
    address: vk::PhysicalDeviceBufferDeviceAddressFeatures<'static>,
    timeline: vk::PhysicalDeviceTimelineSemaphoreFeatures<'static>,
    synchronization2: vk::PhysicalDeviceSynchronization2Features<'static>,
    maintenance4: vk::PhysicalDeviceMaintenance4Features<'static>,
    indexing: vk::PhysicalDeviceDescriptorIndexingFeatures<'static>,
    inline: vk::PhysicalDeviceInlineUniformBlockFeatures<'static>,
    mutable: vk::PhysicalDeviceMutableDescriptorTypeFeaturesEXT<'static>,
    buffer: vk::PhysicalDeviceDescriptorBufferFeaturesEXT<'static>,
    protected: vk::PhysicalDeviceProtectedMemoryFeatures<'static>,
    heap: ffi::PhysicalDeviceDescriptorHeapFeaturesEXT,
}

impl MoreFeatures {
    /// # Safety
    ///
    /// 1 to 3 of [`MeasuredFacts::read`]; the version is 1.1 at least.
    unsafe fn read(instance: &ash::Instance, physical_device: vk::PhysicalDevice) -> Self {
        let mut more = Self::default();
        let mut all = vk::PhysicalDeviceFeatures2::default()
            .push_next(&mut more.priority)
            .push_next(&mut more.pageable)
            .push_next(&mut more.coherent)
            .push_next(&mut more.address)
            .push_next(&mut more.timeline)
            .push_next(&mut more.synchronization2)
            .push_next(&mut more.maintenance4)
            .push_next(&mut more.indexing)
            .push_next(&mut more.inline)
            .push_next(&mut more.mutable)
            .push_next(&mut more.buffer)
            .push_next(&mut more.protected)
            .push_next(&mut more.heap);
        // SAFETY: 1 and 3 of `MeasuredFacts::read`, and the version; the chain is valid, and drivers skip what they do
        // not know.
        unsafe { instance.get_physical_device_features2(physical_device, &mut all) };
        more
    }

    /// Returns whether the device has the features of descriptor indexing that descriptor heaps need.
    fn has_indexing(&self) -> bool {
        let indexing = &self.indexing;
        [
            indexing.runtime_descriptor_array,
            indexing.descriptor_binding_partially_bound,
            indexing.descriptor_binding_variable_descriptor_count,
            indexing.descriptor_binding_update_unused_while_pending,
            indexing.descriptor_binding_sampled_image_update_after_bind,
            indexing.descriptor_binding_storage_image_update_after_bind,
            indexing.descriptor_binding_storage_buffer_update_after_bind,
        ]
        .iter()
        .all(|&feature| feature == vk::TRUE)
    }
}

impl MeasuredFacts {
    /// # Safety
    ///
    /// 1. `instance` is live.
    /// 2. It was made for `api_version`.
    /// 3. `physical_device` is its own.
    pub(crate) unsafe fn read(
        instance: &ash::Instance,
        physical_device: vk::PhysicalDevice,
        api_version: u32,
    ) -> Result<Self, MeasureError> {
        // SAFETY: 1 and 3 of `read`.
        let properties = unsafe { instance.get_physical_device_properties(physical_device) };
        // SAFETY: 1 and 3 of `read`.
        let memory = unsafe { instance.get_physical_device_memory_properties(physical_device) };
        // SAFETY: 1 and 3 of `read`.
        let plain = unsafe { instance.get_physical_device_features(physical_device) };
        // SAFETY: 1 and 3 of `read`.
        let extensions =
            unsafe { instance.enumerate_device_extension_properties(physical_device) }.map_err(|result| {
                MeasureError::Driver { call: "vkEnumerateDeviceExtensionProperties", result }
            })?;
        // SAFETY: 1 and 3 of `read`.
        let families = unsafe { instance.get_physical_device_queue_family_properties(physical_device) };
        let version = api_version.min(properties.api_version);
        let (more, offered) = if version >= vk::API_VERSION_1_1 {
            // SAFETY: 1 to 3 of `read`, and the version that was looked at just now.
            let more = unsafe { ChainedProperties::read(instance, physical_device) };
            // SAFETY: as above.
            (more, unsafe { MoreFeatures::read(instance, physical_device) })
        } else {
            (ChainedProperties::default(), MoreFeatures::default())
        };
        let name = properties.device_name_as_c_str().unwrap_or_default().to_string_lossy().into_owned();
        // A count beyond Vulkan's maximum is cut.
        let heaps = memory.memory_heaps.iter().take(index(memory.memory_heap_count));
        let types = memory.memory_types.iter().take(index(memory.memory_type_count));
        let mut facts = Self {
            device_name: if name.is_empty() { "unnamed".to_owned() } else { name },
            version,
            api_version: newest_of(properties.api_version),
            driver_id: more.driver.driver_id,
            heaps: heaps.map(|heap| HeapProfile { size: heap.size, flags: heap.flags }).collect(),
            types: types
                .map(|kind| TypeProfile { flags: kind.property_flags, heap: kind.heap_index })
                .collect(),
            limits: LimitsProfile {
                // Drivers list the extension and do not have the feature.
                descriptor_heap: (offered.heap.descriptor_heap == vk::TRUE)
                    .then(|| descriptor_heap(&more.heap)),
                ..limits(&properties.limits, &more)
            },
            features: FeaturesProfile {
                memory_priority: offered.priority.memory_priority == vk::TRUE,
                pageable_device_local_memory: offered.pageable.pageable_device_local_memory == vk::TRUE,
                device_coherent_memory: offered.coherent.device_coherent_memory == vk::TRUE,
                buffer_device_address: offered.address.buffer_device_address == vk::TRUE,
                timeline_semaphore: offered.timeline.timeline_semaphore == vk::TRUE,
                synchronization2: offered.synchronization2.synchronization2 == vk::TRUE,
                maintenance4: offered.maintenance4.maintenance4 == vk::TRUE,
                descriptor_indexing: offered.has_indexing(),
                descriptor_buffer: offered.buffer.descriptor_buffer == vk::TRUE,
                inline_uniform_block: offered.inline.inline_uniform_block == vk::TRUE,
                mutable_descriptor_type: offered.mutable.mutable_descriptor_type == vk::TRUE,
                sparse_binding: plain.sparse_binding == vk::TRUE,
                protected_memory: offered.protected.protected_memory == vk::TRUE,
                ..FeaturesProfile::default()
            },
            has_queue: !families.is_empty(),
            missing: Vec::new(),
            properties,
            extensions,
        };
        facts.complete(&more);
        Ok(facts)
    }

    /// The limits that depend on extensions, with stand-ins for those that the device does not report.
    fn complete(&mut self, more: &ChainedProperties) {
        self.features.memory_budget = self.has(ash::ext::memory_budget::NAME);
        // The simulated device has the part of maintenance5 that came with the other extension.
        self.features.maintenance5 =
            self.has(ash::khr::maintenance5::NAME) || self.has(ash::khr::map_memory2::NAME);
        self.features.push_descriptor = self.has(ash::khr::push_descriptor::NAME);
        self.features.external_memory =
            self.has(ash::khr::external_memory_fd::NAME) || self.has(ash::khr::external_memory_win32::NAME);
        self.features.descriptor_buffer &= self.has(ash::ext::descriptor_buffer::NAME);
        self.limits.descriptor_buffer =
            self.features.descriptor_buffer.then(|| descriptor_buffer(&more.buffer));
        if self.limits.max_memory_allocation_size == 0 {
            self.limits.max_memory_allocation_size =
                self.heaps.iter().map(|heap| heap.size).max().unwrap_or(0).max(1 << 30);
            self.missing.push("maxMemoryAllocationSize");
        }
        if self.limits.max_buffer_size == 0 {
            self.limits.max_buffer_size = self.limits.max_memory_allocation_size;
            self.missing.push("maxBufferSize");
        }
        if self.driver_id.as_raw() == 0 {
            self.missing.push("the driver's identity");
        }
    }

    /// Returns whether the device has an extension.
    pub(crate) fn has(&self, name: &CStr) -> bool {
        self.extensions.iter().any(|offered| offered.extension_name_as_c_str() == Ok(name))
    }
}

/// The newest version that a simulated device can have and that is not above this one; the patch number stays if
/// possible.
fn newest_of(version: u32) -> u32 {
    if vk::api_version_minor(version) > NEWEST_MINOR { NEWEST } else { version }
}

fn limits(said: &vk::PhysicalDeviceLimits, more: &ChainedProperties) -> LimitsProfile {
    LimitsProfile {
        buffer_image_granularity: said.buffer_image_granularity,
        non_coherent_atom_size: said.non_coherent_atom_size,
        max_memory_allocation_count: said.max_memory_allocation_count,
        max_memory_allocation_size: more.maintenance3.max_memory_allocation_size,
        // Not tried: it would take gigabytes. Measured on an H200.
        grants_above_max_memory_allocation_size: more.driver.driver_id == vk::DriverId::NVIDIA_PROPRIETARY,
        max_buffer_size: more.maintenance4.max_buffer_size,
        // A driver may report more.
        min_memory_map_alignment: widen(said.min_memory_map_alignment).min(MAX_MAP_ALIGNMENT),
        min_texel_buffer_offset_alignment: said.min_texel_buffer_offset_alignment,
        min_uniform_buffer_offset_alignment: said.min_uniform_buffer_offset_alignment,
        min_storage_buffer_offset_alignment: said.min_storage_buffer_offset_alignment,
        optimal_buffer_copy_offset_alignment: said.optimal_buffer_copy_offset_alignment,
        optimal_buffer_copy_row_pitch_alignment: said.optimal_buffer_copy_row_pitch_alignment,
        max_image_dimension_1d: said.max_image_dimension1_d,
        max_image_dimension_2d: said.max_image_dimension2_d,
        max_image_dimension_3d: said.max_image_dimension3_d,
        max_image_array_layers: said.max_image_array_layers,
        descriptor_buffer: None,
        descriptor_heap: None,
        descriptors: descriptors(said, more),
    }
}

/// The least that Vulkan asks of every device for `maxPerSetDescriptors`.
const LEAST_PER_SET: u32 = 1024;
/// The same for `maxPushDescriptors`.
const LEAST_PUSHED: u32 = 32;

/// The limits of a missing extension are 0, so that no program may use it. Two of them are what every device has, as in
/// the profiles.
fn descriptors(said: &vk::PhysicalDeviceLimits, more: &ChainedProperties) -> DescriptorLimits {
    let (after, inline) = (&more.indexing, &more.inline);
    let said_or = |count: u32, least: u32| if count == 0 { least } else { count };
    DescriptorLimits {
        max_bound_descriptor_sets: said.max_bound_descriptor_sets,
        max_per_set_descriptors: said_or(more.maintenance3.max_per_set_descriptors, LEAST_PER_SET),
        max_push_constants_size: said.max_push_constants_size,
        max_push_descriptors: said_or(more.push.max_push_descriptors, LEAST_PUSHED),
        max_sampler_allocation_count: said.max_sampler_allocation_count,
        max_inline_uniform_block_size: inline.max_inline_uniform_block_size,
        max_update_after_bind_descriptors_in_all_pools: after.max_update_after_bind_descriptors_in_all_pools,
        per_stage: DescriptorMaxima {
            samplers: said.max_per_stage_descriptor_samplers,
            uniform_buffers: said.max_per_stage_descriptor_uniform_buffers,
            uniform_buffers_dynamic: said.max_descriptor_set_uniform_buffers_dynamic,
            storage_buffers: said.max_per_stage_descriptor_storage_buffers,
            storage_buffers_dynamic: said.max_descriptor_set_storage_buffers_dynamic,
            sampled_images: said.max_per_stage_descriptor_sampled_images,
            storage_images: said.max_per_stage_descriptor_storage_images,
            input_attachments: said.max_per_stage_descriptor_input_attachments,
            inline_uniform_blocks: inline.max_per_stage_descriptor_inline_uniform_blocks,
            resources: said.max_per_stage_resources,
        },
        per_set: DescriptorMaxima {
            samplers: said.max_descriptor_set_samplers,
            uniform_buffers: said.max_descriptor_set_uniform_buffers,
            uniform_buffers_dynamic: said.max_descriptor_set_uniform_buffers_dynamic,
            storage_buffers: said.max_descriptor_set_storage_buffers,
            storage_buffers_dynamic: said.max_descriptor_set_storage_buffers_dynamic,
            sampled_images: said.max_descriptor_set_sampled_images,
            storage_images: said.max_descriptor_set_storage_images,
            input_attachments: said.max_descriptor_set_input_attachments,
            inline_uniform_blocks: inline.max_descriptor_set_inline_uniform_blocks,
            resources: u32::MAX,
        },
        per_stage_update_after_bind: DescriptorMaxima {
            samplers: after.max_per_stage_descriptor_update_after_bind_samplers,
            uniform_buffers: after.max_per_stage_descriptor_update_after_bind_uniform_buffers,
            uniform_buffers_dynamic: after.max_descriptor_set_update_after_bind_uniform_buffers_dynamic,
            storage_buffers: after.max_per_stage_descriptor_update_after_bind_storage_buffers,
            storage_buffers_dynamic: after.max_descriptor_set_update_after_bind_storage_buffers_dynamic,
            sampled_images: after.max_per_stage_descriptor_update_after_bind_sampled_images,
            storage_images: after.max_per_stage_descriptor_update_after_bind_storage_images,
            input_attachments: after.max_per_stage_descriptor_update_after_bind_input_attachments,
            inline_uniform_blocks: inline.max_per_stage_descriptor_update_after_bind_inline_uniform_blocks,
            resources: after.max_per_stage_update_after_bind_resources,
        },
        per_set_update_after_bind: DescriptorMaxima {
            samplers: after.max_descriptor_set_update_after_bind_samplers,
            uniform_buffers: after.max_descriptor_set_update_after_bind_uniform_buffers,
            uniform_buffers_dynamic: after.max_descriptor_set_update_after_bind_uniform_buffers_dynamic,
            storage_buffers: after.max_descriptor_set_update_after_bind_storage_buffers,
            storage_buffers_dynamic: after.max_descriptor_set_update_after_bind_storage_buffers_dynamic,
            sampled_images: after.max_descriptor_set_update_after_bind_sampled_images,
            storage_images: after.max_descriptor_set_update_after_bind_storage_images,
            input_attachments: after.max_descriptor_set_update_after_bind_input_attachments,
            inline_uniform_blocks: inline.max_descriptor_set_update_after_bind_inline_uniform_blocks,
            resources: u32::MAX,
        },
    }
}

fn descriptor_heap(said: &ffi::PhysicalDeviceDescriptorHeapPropertiesEXT) -> DescriptorHeapLimits {
    DescriptorHeapLimits {
        sampler_heap_alignment: said.sampler_heap_alignment,
        resource_heap_alignment: said.resource_heap_alignment,
        max_sampler_heap: said.max_sampler_heap_size,
        max_resource_heap: said.max_resource_heap_size,
        sampler_reserved: said.min_sampler_heap_reserved_range,
        sampler_reserved_with_embedded: said.min_sampler_heap_reserved_range_with_embedded,
        resource_reserved: said.min_resource_heap_reserved_range,
        sampler: said.sampler_descriptor_size,
        image: said.image_descriptor_size,
        buffer: said.buffer_descriptor_size,
        sampler_alignment: said.sampler_descriptor_alignment,
        image_alignment: said.image_descriptor_alignment,
        buffer_alignment: said.buffer_descriptor_alignment,
        max_push_data: said.max_push_data_size,
        max_embedded_samplers: said.max_descriptor_heap_embedded_samplers,
    }
}

fn descriptor_buffer(said: &vk::PhysicalDeviceDescriptorBufferPropertiesEXT<'_>) -> DescriptorBufferLimits {
    DescriptorBufferLimits {
        offset_alignment: said.descriptor_buffer_offset_alignment,
        max_bindings: said.max_descriptor_buffer_bindings,
        max_resource_bindings: said.max_resource_descriptor_buffer_bindings,
        max_sampler_bindings: said.max_sampler_descriptor_buffer_bindings,
        sampler: said.sampler_descriptor_size,
        combined_image_sampler: said.combined_image_sampler_descriptor_size,
        sampled_image: said.sampled_image_descriptor_size,
        storage_image: said.storage_image_descriptor_size,
        input_attachment: said.input_attachment_descriptor_size,
        texel_buffer: said
            .uniform_texel_buffer_descriptor_size
            .max(said.storage_texel_buffer_descriptor_size),
        uniform_buffer: said.uniform_buffer_descriptor_size,
        storage_buffer: said.storage_buffer_descriptor_size,
        // Without ray tracing the device has no such size, and no program reads it.
        acceleration_structure: said.acceleration_structure_descriptor_size.max(8),
        max_range: said.max_sampler_descriptor_buffer_range.min(said.max_resource_descriptor_buffer_range),
        address_space: said.descriptor_buffer_address_space_size,
        bufferless_push: said.bufferless_push_descriptors == vk::TRUE,
        single_array: said.combined_image_sampler_descriptor_single_array == vk::TRUE,
    }
}
