//! The properties that a physical device reports.
#![expect(unsafe_code, reason = "the functions have the C ABI")]

use ash::vk;

use crate::facts::arithmetic::{host_size, index, narrow};
use crate::facts::format::{Channels, FormatInfo};
use crate::facts::profiles::{
    DescriptorLimits, LimitsProfile, MAX_GROUPS, MAX_STORAGE_BUFFER_RANGE, MAX_UNIFORM_BUFFER_RANGE,
};
use crate::facts::{chain, extensions};
use crate::memory::external::HOST_POINTER_ALIGNMENT;
use crate::objects::entry::{entries, on_physical_device};
use crate::objects::features::EnabledFeatures;
use crate::objects::state::{GpuState, Instance};
use crate::pipelines::{descriptor_buffer, descriptor_heap, descriptors};

entries! {
    Instance void vk::PFN_vkGetPhysicalDeviceProperties = properties: core 0 "vkGetPhysicalDeviceProperties";
    Instance void vk::PFN_vkGetPhysicalDeviceProperties2 = properties2:
        core 1 "vkGetPhysicalDeviceProperties2",
        ext "VK_KHR_get_physical_device_properties2" "vkGetPhysicalDeviceProperties2KHR";
    Instance void vk::PFN_vkGetPhysicalDeviceFeatures = features: core 0 "vkGetPhysicalDeviceFeatures";
    Instance void vk::PFN_vkGetPhysicalDeviceFeatures2 = features2:
        core 1 "vkGetPhysicalDeviceFeatures2",
        ext "VK_KHR_get_physical_device_properties2" "vkGetPhysicalDeviceFeatures2KHR";
    Instance void vk::PFN_vkGetPhysicalDeviceMemoryProperties = memory: core 0 "vkGetPhysicalDeviceMemoryProperties";
    Instance void vk::PFN_vkGetPhysicalDeviceMemoryProperties2 = memory2:
        core 1 "vkGetPhysicalDeviceMemoryProperties2",
        ext "VK_KHR_get_physical_device_properties2" "vkGetPhysicalDeviceMemoryProperties2KHR";
    Instance void vk::PFN_vkGetPhysicalDeviceQueueFamilyProperties = queues:
        core 0 "vkGetPhysicalDeviceQueueFamilyProperties";
    Instance void vk::PFN_vkGetPhysicalDeviceQueueFamilyProperties2 = queues2:
        core 1 "vkGetPhysicalDeviceQueueFamilyProperties2",
        ext "VK_KHR_get_physical_device_properties2" "vkGetPhysicalDeviceQueueFamilyProperties2KHR";
    Instance void vk::PFN_vkGetPhysicalDeviceFormatProperties = format: core 0 "vkGetPhysicalDeviceFormatProperties";
    Instance void vk::PFN_vkGetPhysicalDeviceFormatProperties2 = format2:
        core 1 "vkGetPhysicalDeviceFormatProperties2",
        ext "VK_KHR_get_physical_device_properties2" "vkGetPhysicalDeviceFormatProperties2KHR";
    Instance result vk::PFN_vkGetPhysicalDeviceImageFormatProperties = image_format:
        core 0 "vkGetPhysicalDeviceImageFormatProperties";
    Instance result vk::PFN_vkGetPhysicalDeviceImageFormatProperties2 = image_format2:
        core 1 "vkGetPhysicalDeviceImageFormatProperties2",
        ext "VK_KHR_get_physical_device_properties2" "vkGetPhysicalDeviceImageFormatProperties2KHR";
    Instance void vk::PFN_vkGetPhysicalDeviceSparseImageFormatProperties = sparse_format:
        core 0 "vkGetPhysicalDeviceSparseImageFormatProperties";
    Instance void vk::PFN_vkGetPhysicalDeviceExternalBufferProperties = external_buffer:
        core 1 "vkGetPhysicalDeviceExternalBufferProperties",
        ext "VK_KHR_external_memory_capabilities" "vkGetPhysicalDeviceExternalBufferPropertiesKHR";
}

unsafe extern "system" fn properties(device: vk::PhysicalDevice, out: *mut vk::PhysicalDeviceProperties) {
    on_physical_device(device, "vkGetPhysicalDeviceProperties", |instance| {
        // SAFETY: VUID-vkGetPhysicalDeviceProperties-pProperties-parameter.
        unsafe { chain::output(out, plain_properties(&instance.gpu_state)) };
    });
}

unsafe extern "system" fn properties2(
    device: vk::PhysicalDevice,
    out: *mut vk::PhysicalDeviceProperties2<'_>,
) {
    on_physical_device(device, "vkGetPhysicalDeviceProperties2", |instance| {
        // SAFETY: VUID-vkGetPhysicalDeviceProperties2-pProperties-parameter.
        let Some(out) = (unsafe { out.as_mut() }) else {
            return;
        };
        out.properties = plain_properties(&instance.gpu_state);
        let (gpu_state, next) = (&instance.gpu_state, out.p_next);
        let (profile, per_set) = (gpu_state.profile, gpu_state.descriptors.limits.max_per_set_descriptors);
        macro_rules! fill {
            ($structure:ident, |$out:ident| $body:block) => {
                // SAFETY: the chain is valid, also for writes: VUID-VkPhysicalDeviceProperties2-pNext-pNext.
                if let Some($out) = unsafe { chain::find_mut::<vk::$structure<'_>>(next) } $body
            };
        }
        fill!(PhysicalDeviceMaintenance3Properties, |out| {
            out.max_per_set_descriptors = per_set;
            out.max_memory_allocation_size = profile.limits.max_memory_allocation_size;
        });
        fill!(PhysicalDeviceMaintenance4Properties, |out| {
            out.max_buffer_size = profile.limits.max_buffer_size;
        });
        fill!(PhysicalDeviceVulkan11Properties, |out| {
            out.max_per_set_descriptors = per_set;
            out.max_memory_allocation_size = profile.limits.max_memory_allocation_size;
            out.max_multiview_view_count = 6;
            out.subgroup_size = 32;
        });
        fill!(PhysicalDeviceVulkan12Properties, |out| {
            out.max_timeline_semaphore_value_difference = MAX_TIMELINE_DIFFERENCE;
            out.driver_id = gpu_state.driver.0;
            extensions::copy(DRIVER_NAME, &mut out.driver_name);
            extensions::copy(profile.name, &mut out.driver_info);
        });
        fill!(PhysicalDeviceTimelineSemaphoreProperties, |out| {
            out.max_timeline_semaphore_value_difference = MAX_TIMELINE_DIFFERENCE;
        });
        fill!(PhysicalDeviceVulkan13Properties, |out| {
            out.max_buffer_size = profile.limits.max_buffer_size;
        });
        fill!(PhysicalDeviceDescriptorBufferPropertiesEXT, |out| {
            descriptor_buffer::write_properties(gpu_state, out);
        });
        // SAFETY: the chain is valid, also for writes: VUID-VkPhysicalDeviceProperties2-pNext-pNext.
        let heap =
            unsafe { chain::find_mut::<crate::facts::ffi::PhysicalDeviceDescriptorHeapPropertiesEXT>(next) };
        if let Some(out) = heap {
            descriptor_heap::write_properties(gpu_state, out);
        }
        fill!(PhysicalDeviceExternalMemoryHostPropertiesEXT, |out| {
            out.min_imported_host_pointer_alignment = HOST_POINTER_ALIGNMENT;
        });
        fill!(PhysicalDeviceDriverProperties, |out| {
            out.driver_id = gpu_state.driver.0;
            extensions::copy(DRIVER_NAME, &mut out.driver_name);
            extensions::copy(profile.name, &mut out.driver_info);
        });
        // SAFETY: the chain is valid, also for writes: VUID-VkPhysicalDeviceProperties2-pNext-pNext.
        unsafe { descriptors::write_limits(gpu_state, next) };
    });
}

const DRIVER_NAME: &str = "Sublet simulated device";
const MAX_TIMELINE_DIFFERENCE: u64 = u64::MAX >> 1;

fn plain_properties(gpu_state: &GpuState) -> vk::PhysicalDeviceProperties {
    let profile = gpu_state.profile;
    let mut properties = vk::PhysicalDeviceProperties {
        api_version: vk::make_api_version(0, 1, gpu_state.device_minor, 0),
        driver_version: gpu_state.driver.1,
        vendor_id: profile.vendor_id,
        device_id: profile.device_id,
        device_type: profile.device_type,
        limits: limits(&profile.limits, &gpu_state.descriptors.limits),
        ..Default::default()
    };
    extensions::copy(profile.device_name, &mut properties.device_name);
    for (to, from) in properties.pipeline_cache_uuid.iter_mut().zip(profile.name.bytes()) {
        *to = from;
    }
    properties
}

/// The limits: those that touch memory from the profile, the others as small as Vulkan allows or as GPUs commonly have.
fn limits(limits: &LimitsProfile, descriptors: &DescriptorLimits) -> vk::PhysicalDeviceLimits {
    let DescriptorLimits { per_stage, per_set, .. } = descriptors;
    let samples = vk::SampleCountFlags::TYPE_1 | vk::SampleCountFlags::TYPE_4;
    vk::PhysicalDeviceLimits {
        max_image_dimension1_d: limits.max_image_dimension_1d,
        max_image_dimension2_d: limits.max_image_dimension_2d,
        max_image_dimension3_d: limits.max_image_dimension_3d,
        max_image_dimension_cube: limits.max_image_dimension_2d,
        max_image_array_layers: limits.max_image_array_layers,
        max_texel_buffer_elements: 1 << 27,
        max_uniform_buffer_range: MAX_UNIFORM_BUFFER_RANGE,
        max_storage_buffer_range: MAX_STORAGE_BUFFER_RANGE,
        max_push_constants_size: descriptors.max_push_constants_size,
        max_memory_allocation_count: limits.max_memory_allocation_count,
        max_sampler_allocation_count: descriptors.max_sampler_allocation_count,
        buffer_image_granularity: limits.buffer_image_granularity,
        max_bound_descriptor_sets: descriptors.max_bound_descriptor_sets,
        max_per_stage_descriptor_samplers: per_stage.samplers,
        max_per_stage_descriptor_uniform_buffers: per_stage.uniform_buffers,
        max_per_stage_descriptor_storage_buffers: per_stage.storage_buffers,
        max_per_stage_descriptor_sampled_images: per_stage.sampled_images,
        max_per_stage_descriptor_storage_images: per_stage.storage_images,
        max_per_stage_descriptor_input_attachments: per_stage.input_attachments,
        max_per_stage_resources: per_stage.resources,
        max_descriptor_set_samplers: per_set.samplers,
        max_descriptor_set_uniform_buffers: per_set.uniform_buffers,
        max_descriptor_set_uniform_buffers_dynamic: per_set.uniform_buffers_dynamic,
        max_descriptor_set_storage_buffers: per_set.storage_buffers,
        max_descriptor_set_storage_buffers_dynamic: per_set.storage_buffers_dynamic,
        max_descriptor_set_sampled_images: per_set.sampled_images,
        max_descriptor_set_storage_images: per_set.storage_images,
        max_descriptor_set_input_attachments: per_set.input_attachments,
        max_vertex_input_attributes: 16,
        max_vertex_input_bindings: 16,
        max_vertex_input_attribute_offset: 2047,
        max_vertex_input_binding_stride: 2048,
        max_vertex_output_components: 64,
        max_fragment_input_components: 64,
        max_fragment_output_attachments: 4,
        max_fragment_combined_output_resources: 4,
        max_compute_shared_memory_size: 1 << 15,
        max_compute_work_group_count: [MAX_GROUPS; 3],
        max_compute_work_group_invocations: 128,
        max_compute_work_group_size: [128, 128, 64],
        sub_pixel_precision_bits: 4,
        sub_texel_precision_bits: 4,
        mipmap_precision_bits: 4,
        max_draw_indexed_index_value: u32::MAX,
        max_draw_indirect_count: 1,
        max_sampler_lod_bias: 2.0,
        max_sampler_anisotropy: 1.0,
        max_viewports: 1,
        max_viewport_dimensions: [limits.max_image_dimension_2d; 2],
        viewport_bounds_range: [-32768.0, 32767.0],
        min_memory_map_alignment: host_size(limits.min_memory_map_alignment).unwrap_or(4096),
        min_texel_buffer_offset_alignment: limits.min_texel_buffer_offset_alignment,
        min_uniform_buffer_offset_alignment: limits.min_uniform_buffer_offset_alignment,
        min_storage_buffer_offset_alignment: limits.min_storage_buffer_offset_alignment,
        min_texel_offset: -8,
        max_texel_offset: 7,
        max_framebuffer_width: limits.max_image_dimension_2d,
        max_framebuffer_height: limits.max_image_dimension_2d,
        max_framebuffer_layers: 256,
        framebuffer_color_sample_counts: samples,
        framebuffer_depth_sample_counts: samples,
        framebuffer_stencil_sample_counts: samples,
        framebuffer_no_attachments_sample_counts: samples,
        max_color_attachments: 4,
        sampled_image_color_sample_counts: samples,
        sampled_image_integer_sample_counts: vk::SampleCountFlags::TYPE_1,
        sampled_image_depth_sample_counts: samples,
        sampled_image_stencil_sample_counts: samples,
        storage_image_sample_counts: vk::SampleCountFlags::TYPE_1,
        max_sample_mask_words: 1,
        timestamp_period: 1.0,
        discrete_queue_priorities: 2,
        point_size_range: [1.0, 1.0],
        line_width_range: [1.0, 1.0],
        standard_sample_locations: vk::TRUE,
        optimal_buffer_copy_offset_alignment: limits.optimal_buffer_copy_offset_alignment,
        optimal_buffer_copy_row_pitch_alignment: limits.optimal_buffer_copy_row_pitch_alignment,
        non_coherent_atom_size: limits.non_coherent_atom_size,
        sparse_address_space_size: 1 << 40,
        ..Default::default()
    }
}

unsafe extern "system" fn features(device: vk::PhysicalDevice, out: *mut vk::PhysicalDeviceFeatures) {
    on_physical_device(device, "vkGetPhysicalDeviceFeatures", |instance| {
        // SAFETY: VUID-vkGetPhysicalDeviceFeatures-pFeatures-parameter.
        unsafe { chain::output(out, plain_features(&instance.gpu_state)) };
    });
}

unsafe extern "system" fn features2(device: vk::PhysicalDevice, out: *mut vk::PhysicalDeviceFeatures2<'_>) {
    on_physical_device(device, "vkGetPhysicalDeviceFeatures2", |instance| {
        // SAFETY: VUID-vkGetPhysicalDeviceFeatures2-pFeatures-parameter.
        let Some(out) = (unsafe { out.as_mut() }) else {
            return;
        };
        out.features = plain_features(&instance.gpu_state);
        // SAFETY: the chain is valid: VUID-VkPhysicalDeviceFeatures2-pNext-pNext.
        unsafe { EnabledFeatures::supported(&instance.gpu_state).write(out.p_next) };
    });
}

/// None of the features of 1.0 touches memory, but for sparse binding. Sparse residency is not simulated.
fn plain_features(gpu_state: &GpuState) -> vk::PhysicalDeviceFeatures {
    vk::PhysicalDeviceFeatures {
        robust_buffer_access: vk::TRUE,
        sparse_binding: vk::Bool32::from(EnabledFeatures::supported(gpu_state).sparse_binding),
        ..Default::default()
    }
}

unsafe extern "system" fn memory(device: vk::PhysicalDevice, out: *mut vk::PhysicalDeviceMemoryProperties) {
    on_physical_device(device, "vkGetPhysicalDeviceMemoryProperties", |instance| {
        // SAFETY: VUID-vkGetPhysicalDeviceMemoryProperties-pMemoryProperties-parameter.
        unsafe { chain::output(out, plain_memory(&instance.gpu_state)) };
    });
}

unsafe extern "system" fn memory2(
    device: vk::PhysicalDevice,
    out: *mut vk::PhysicalDeviceMemoryProperties2<'_>,
) {
    on_physical_device(device, "vkGetPhysicalDeviceMemoryProperties2", |instance| {
        // SAFETY: VUID-vkGetPhysicalDeviceMemoryProperties2-pMemoryProperties-parameter.
        let Some(out) = (unsafe { out.as_mut() }) else {
            return;
        };
        out.memory_properties = plain_memory(&instance.gpu_state);
        // SAFETY: the chain is valid: VUID-VkPhysicalDeviceMemoryProperties2-pNext-pNext.
        let budget =
            unsafe { chain::find_mut::<vk::PhysicalDeviceMemoryBudgetPropertiesEXT<'_>>(out.p_next) };
        if let Some(budget) = budget.filter(|_| instance.gpu_state.offers("VK_EXT_memory_budget")) {
            write_budget(instance, budget);
        }
    });
}

fn plain_memory(gpu_state: &GpuState) -> vk::PhysicalDeviceMemoryProperties {
    let profile = gpu_state.profile;
    let mut out = vk::PhysicalDeviceMemoryProperties {
        memory_type_count: narrow(profile.types.len()),
        memory_heap_count: narrow(profile.heaps.len()),
        ..Default::default()
    };
    for (to, from) in out.memory_types.iter_mut().zip(profile.types) {
        *to = vk::MemoryType { property_flags: from.flags, heap_index: from.heap };
    }
    for (to, from) in out.memory_heaps.iter_mut().zip(profile.heaps) {
        *to = vk::MemoryHeap { size: from.size, flags: from.flags };
    }
    out
}

/// The ordered budget and usage. Without an order the budget is the whole heap, and the usage is what all devices of
/// the GPU have allocated.
fn write_budget(instance: &Instance, out: &mut vk::PhysicalDeviceMemoryBudgetPropertiesEXT<'_>) {
    let gpu_state = &instance.gpu_state;
    for (heap, profile) in gpu_state.profile.heaps.iter().enumerate() {
        let number = narrow(heap);
        let (budget, usage) = match gpu_state.faults.budget(number) {
            Some(ordered) => {
                let own = if ordered.adds_own { gpu_state.heap_used(number) } else { 0 };
                (ordered.budget, ordered.usage.saturating_add(own))
            }
            None => (profile.size, gpu_state.heap_used(number)),
        };
        out.heap_budget[heap] = budget;
        out.heap_usage[heap] = usage;
    }
}

/// The families, of which the first can do everything.
fn families(gpu_state: &GpuState) -> Vec<vk::QueueFamilyProperties> {
    let sparse = EnabledFeatures::supported(gpu_state).sparse_binding;
    let sparse = if sparse { vk::QueueFlags::SPARSE_BINDING } else { vk::QueueFlags::empty() };
    let each = gpu_state.families.iter().map(|&(flags, queue_count)| vk::QueueFamilyProperties {
        queue_flags: flags | sparse,
        queue_count,
        timestamp_valid_bits: 0,
        min_image_transfer_granularity: vk::Extent3D { width: 1, height: 1, depth: 1 },
    });
    each.collect()
}

unsafe extern "system" fn queues(
    device: vk::PhysicalDevice,
    count: *mut u32,
    out: *mut vk::QueueFamilyProperties,
) {
    on_physical_device(device, "vkGetPhysicalDeviceQueueFamilyProperties", |instance| {
        // SAFETY: VUID-vkGetPhysicalDeviceQueueFamilyProperties-pQueueFamilyProperties-parameter.
        let _ = unsafe { chain::list(&families(&instance.gpu_state), count, out) };
    });
}

unsafe extern "system" fn queues2(
    device: vk::PhysicalDevice,
    count: *mut u32,
    out: *mut vk::QueueFamilyProperties2<'_>,
) {
    on_physical_device(device, "vkGetPhysicalDeviceQueueFamilyProperties2", |instance| {
        // SAFETY: VUID-vkGetPhysicalDeviceQueueFamilyProperties2-pQueueFamilyPropertyCount-parameter.
        let Some(count) = (unsafe { count.as_mut() }) else {
            return;
        };
        let all = families(&instance.gpu_state);
        let most = narrow(all.len());
        if out.is_null() {
            *count = most;
            return;
        }
        *count = most.min(*count);
        for (position, family) in (0..index(*count)).zip(all) {
            // SAFETY: VUID-vkGetPhysicalDeviceQueueFamilyProperties2-pQueueFamilyProperties-parameter: `count` long.
            let slot = unsafe { out.add(position) };
            // SAFETY: as above.
            if let Some(slot) = unsafe { slot.as_mut() } {
                // Only this field: the caller's chain stays.
                slot.queue_family_properties = family;
            }
        }
    });
}

/// Features of every format that has a size. The simulated device copies it, and scales some.
fn format_features(format: vk::Format) -> vk::FormatProperties {
    let Some(known) = FormatInfo::of(format) else {
        return vk::FormatProperties::default();
    };
    let mut image = vk::FormatFeatureFlags::TRANSFER_SRC
        | vk::FormatFeatureFlags::TRANSFER_DST
        | vk::FormatFeatureFlags::SAMPLED_IMAGE
        | vk::FormatFeatureFlags::STORAGE_IMAGE;
    if known.is_plain() {
        image |= vk::FormatFeatureFlags::BLIT_SRC | vk::FormatFeatureFlags::BLIT_DST;
    }
    if Channels::of(format).is_some_and(|channels| channels.is_float()) {
        image |= vk::FormatFeatureFlags::SAMPLED_IMAGE_FILTER_LINEAR;
    }
    let depth = known.is_depth_stencil();
    let attachment = if depth {
        vk::FormatFeatureFlags::DEPTH_STENCIL_ATTACHMENT
    } else {
        vk::FormatFeatureFlags::COLOR_ATTACHMENT
    };
    let texels = vk::FormatFeatureFlags::UNIFORM_TEXEL_BUFFER
        | vk::FormatFeatureFlags::STORAGE_TEXEL_BUFFER
        | vk::FormatFeatureFlags::VERTEX_BUFFER;
    vk::FormatProperties {
        linear_tiling_features: if depth { vk::FormatFeatureFlags::empty() } else { image },
        optimal_tiling_features: image | attachment,
        buffer_features: if depth { vk::FormatFeatureFlags::empty() } else { texels },
    }
}

unsafe extern "system" fn format(
    device: vk::PhysicalDevice,
    format: vk::Format,
    out: *mut vk::FormatProperties,
) {
    on_physical_device(device, "vkGetPhysicalDeviceFormatProperties", |_| {
        // SAFETY: VUID-vkGetPhysicalDeviceFormatProperties-pFormatProperties-parameter.
        unsafe { chain::output(out, format_features(format)) };
    });
}

unsafe extern "system" fn format2(
    device: vk::PhysicalDevice,
    format: vk::Format,
    out: *mut vk::FormatProperties2<'_>,
) {
    on_physical_device(device, "vkGetPhysicalDeviceFormatProperties2", |_| {
        // SAFETY: VUID-vkGetPhysicalDeviceFormatProperties2-pFormatProperties-parameter.
        if let Some(out) = unsafe { out.as_mut() } {
            out.format_properties = format_features(format);
        }
    });
}

/// The largest images of a format, if there can be any.
fn image_limits(
    limits: &LimitsProfile,
    format: vk::Format,
    kind: vk::ImageType,
    tiling: vk::ImageTiling,
) -> Option<vk::ImageFormatProperties> {
    let features = format_features(format);
    let linear = tiling == vk::ImageTiling::LINEAR;
    let has = if linear { features.linear_tiling_features } else { features.optimal_tiling_features };
    if has.is_empty() {
        return None;
    }
    let (side, height, depth) = match kind {
        vk::ImageType::TYPE_1D => (limits.max_image_dimension_1d, 1, 1),
        vk::ImageType::TYPE_2D => (limits.max_image_dimension_2d, limits.max_image_dimension_2d, 1),
        _ => (limits.max_image_dimension_3d, limits.max_image_dimension_3d, limits.max_image_dimension_3d),
    };
    let samples = if linear || kind != vk::ImageType::TYPE_2D {
        vk::SampleCountFlags::TYPE_1
    } else {
        vk::SampleCountFlags::TYPE_1 | vk::SampleCountFlags::TYPE_4
    };
    Some(vk::ImageFormatProperties {
        max_extent: vk::Extent3D { width: side, height, depth },
        max_mip_levels: if linear { 1 } else { u32::BITS - side.leading_zeros() },
        max_array_layers: if kind == vk::ImageType::TYPE_3D { 1 } else { limits.max_image_array_layers },
        sample_counts: samples,
        max_resource_size: limits.max_memory_allocation_size.max(1 << 31),
    })
}

unsafe extern "system" fn image_format(
    device: vk::PhysicalDevice,
    format: vk::Format,
    kind: vk::ImageType,
    tiling: vk::ImageTiling,
    _: vk::ImageUsageFlags,
    _: vk::ImageCreateFlags,
    out: *mut vk::ImageFormatProperties,
) -> vk::Result {
    on_physical_device(device, "vkGetPhysicalDeviceImageFormatProperties", |instance| {
        let Some(found) = image_limits(&instance.gpu_state.profile.limits, format, kind, tiling) else {
            return vk::Result::ERROR_FORMAT_NOT_SUPPORTED;
        };
        // SAFETY: VUID-vkGetPhysicalDeviceImageFormatProperties-pImageFormatProperties-parameter.
        unsafe { chain::output(out, found) };
        vk::Result::SUCCESS
    })
}

unsafe extern "system" fn image_format2(
    device: vk::PhysicalDevice,
    info: *const vk::PhysicalDeviceImageFormatInfo2<'_>,
    out: *mut vk::ImageFormatProperties2<'_>,
) -> vk::Result {
    on_physical_device(device, "vkGetPhysicalDeviceImageFormatProperties2", |instance| {
        // SAFETY: VUID-vkGetPhysicalDeviceImageFormatProperties2-pImageFormatInfo-parameter.
        let Some(info) = (unsafe { chain::input(info) }) else {
            return vk::Result::ERROR_VALIDATION_FAILED_EXT;
        };
        let limits = &instance.gpu_state.profile.limits;
        let Some(found) = image_limits(limits, info.format, info.ty, info.tiling) else {
            return vk::Result::ERROR_FORMAT_NOT_SUPPORTED;
        };
        // SAFETY: the chain is valid: VUID-VkPhysicalDeviceImageFormatInfo2-pNext-pNext.
        let external = unsafe { chain::find::<vk::PhysicalDeviceExternalImageFormatInfo<'_>>(info.p_next) };
        let shared = external.map(|external| shared_memory(instance, external.handle_type));
        if shared.is_some_and(|shared| shared.external_memory_features.is_empty()) {
            return vk::Result::ERROR_FORMAT_NOT_SUPPORTED;
        }
        // SAFETY: VUID-vkGetPhysicalDeviceImageFormatProperties2-pImageFormatProperties-parameter.
        if let Some(out) = unsafe { out.as_mut() } {
            out.image_format_properties = found;
            // SAFETY: the chain is valid: VUID-VkImageFormatProperties2-pNext-pNext.
            let sharing = unsafe { chain::find_mut::<vk::ExternalImageFormatProperties<'_>>(out.p_next) };
            if let (Some(sharing), Some(mut shared)) = (sharing, shared) {
                if instance.gpu_state.profile.images.external_requires_dedicated {
                    shared.external_memory_features |= vk::ExternalMemoryFeatureFlags::DEDICATED_ONLY;
                }
                sharing.external_memory_properties = shared;
            }
        }
        vk::Result::SUCCESS
    })
}

unsafe extern "system" fn sparse_format(
    device: vk::PhysicalDevice,
    _: vk::Format,
    _: vk::ImageType,
    _: vk::SampleCountFlags,
    _: vk::ImageUsageFlags,
    _: vk::ImageTiling,
    count: *mut u32,
    _: *mut vk::SparseImageFormatProperties,
) {
    on_physical_device(device, "vkGetPhysicalDeviceSparseImageFormatProperties", |_| {
        // SAFETY: VUID-vkGetPhysicalDeviceSparseImageFormatProperties-pPropertyCount-parameter.
        unsafe { chain::output(count, 0) };
    });
}

/// The ways in which memory can be shared through handles of a type.
fn shared_memory(
    instance: &Instance,
    asked: vk::ExternalMemoryHandleTypeFlags,
) -> vk::ExternalMemoryProperties {
    let fd = vk::ExternalMemoryHandleTypeFlags::OPAQUE_FD;
    let host = vk::ExternalMemoryHandleTypeFlags::HOST_ALLOCATION_EXT;
    if asked == host && instance.gpu_state.profile.features.external_memory {
        return vk::ExternalMemoryProperties {
            external_memory_features: vk::ExternalMemoryFeatureFlags::IMPORTABLE,
            compatible_handle_types: host,
            ..Default::default()
        };
    }
    if asked != fd || !instance.gpu_state.profile.features.external_memory {
        return vk::ExternalMemoryProperties::default();
    }
    vk::ExternalMemoryProperties {
        external_memory_features: vk::ExternalMemoryFeatureFlags::EXPORTABLE
            | vk::ExternalMemoryFeatureFlags::IMPORTABLE,
        export_from_imported_handle_types: fd,
        compatible_handle_types: fd,
    }
}

unsafe extern "system" fn external_buffer(
    device: vk::PhysicalDevice,
    info: *const vk::PhysicalDeviceExternalBufferInfo<'_>,
    out: *mut vk::ExternalBufferProperties<'_>,
) {
    on_physical_device(device, "vkGetPhysicalDeviceExternalBufferProperties", |instance| {
        // SAFETY: VUID-vkGetPhysicalDeviceExternalBufferProperties-pExternalBufferInfo-parameter.
        let asked = unsafe { chain::input(info) }.map_or(Default::default(), |info| info.handle_type);
        // SAFETY: VUID-vkGetPhysicalDeviceExternalBufferProperties-pExternalBufferProperties-parameter.
        let Some(out) = (unsafe { out.as_mut() }) else {
            return;
        };
        out.external_memory_properties = shared_memory(instance, asked);
    });
}
