//! Limits, features, extensions and the driver's identity.
#![expect(unsafe_code, reason = "tests call Vulkan")]

use super::*;

#[test]
fn properties_say_what_the_profile_says() {
    for &profile in ALL {
        let gpu = Gpu::builder(profile).build();
        let limits = &profile.limits.descriptors;
        let mut indexing = vk::PhysicalDeviceDescriptorIndexingProperties::default();
        let mut push = vk::PhysicalDevicePushDescriptorPropertiesKHR::default();
        let mut inline = vk::PhysicalDeviceInlineUniformBlockProperties::default();
        let mut third = vk::PhysicalDeviceMaintenance3Properties::default();
        let mut core = vk::PhysicalDeviceVulkan12Properties::default();
        let mut driver = vk::PhysicalDeviceDriverProperties::default();
        let mut out = vk::PhysicalDeviceProperties2::default()
            .push_next(&mut indexing)
            .push_next(&mut push)
            .push_next(&mut inline)
            .push_next(&mut third)
            .push_next(&mut core)
            .push_next(&mut driver);
        let physical = gpu.physical_device();
        let get = gpu.instance().fp_v1_1().get_physical_device_properties2;
        // Gpus of 1.0 have it as an extension.
        if gpu.api_version() >= vk::API_VERSION_1_1 {
            unsafe { get(physical, &raw mut out) };
        } else {
            let entry = (gpu.entry(), gpu.instance());
            let loader = ash::khr::get_physical_device_properties2::Instance::new(entry.0, entry.1);
            unsafe { loader.get_physical_device_properties2(physical, &mut out) };
        }
        let (plain, version) = (out.properties.limits, out.properties.driver_version);
        assert_eq!(plain.max_bound_descriptor_sets, limits.max_bound_descriptor_sets);
        assert_eq!(plain.max_push_constants_size, limits.max_push_constants_size);
        assert_eq!(plain.max_per_stage_descriptor_samplers, limits.per_stage.samplers);
        assert_eq!(plain.max_per_stage_resources, limits.per_stage.resources);
        assert_eq!(plain.max_descriptor_set_storage_buffers, limits.per_set.storage_buffers);
        assert_eq!(plain.max_descriptor_set_uniform_buffers_dynamic, limits.per_set.uniform_buffers_dynamic);
        let after = limits.max_update_after_bind_descriptors_in_all_pools;
        assert_eq!(indexing.max_update_after_bind_descriptors_in_all_pools, after);
        assert_eq!(core.max_update_after_bind_descriptors_in_all_pools, after);
        let images = limits.per_set_update_after_bind.sampled_images;
        assert_eq!(indexing.max_descriptor_set_update_after_bind_sampled_images, images);
        assert_eq!(core.max_descriptor_set_update_after_bind_sampled_images, images);
        let pushed = if profile.features.push_descriptor { limits.max_push_descriptors } else { 0 };
        assert_eq!(push.max_push_descriptors, pushed);
        assert_eq!(inline.max_inline_uniform_block_size, limits.max_inline_uniform_block_size);
        assert_eq!(third.max_per_set_descriptors, limits.max_per_set_descriptors);
        assert_eq!((driver.driver_id, core.driver_id), (profile.driver_id, profile.driver_id));
        assert_eq!(version, profile.driver_version);
        gpu.assert_silent();
    }
}

#[test]
fn another_driver_on_order() {
    let id = vk::DriverId::INTEL_PROPRIETARY_WINDOWS;
    let gpu = Gpu::builder(profile("intel-arc-a770")).driver(id, 101 << 14 | 4502).build();
    let mut driver = vk::PhysicalDeviceDriverProperties::default();
    let mut out = vk::PhysicalDeviceProperties2::default().push_next(&mut driver);
    unsafe { gpu.instance().get_physical_device_properties2(gpu.physical_device(), &mut out) };
    assert_eq!(out.properties.driver_version, 101 << 14 | 4502);
    assert_eq!(driver.driver_id, id);
}

/// All twenty features, `descriptorIndexing`, and those of inline uniform blocks and mutable types.
fn features(gpu: &Gpu) -> ([u32; 20], bool, bool, bool) {
    let mut indexing = vk::PhysicalDeviceDescriptorIndexingFeatures::default();
    let mut inline = vk::PhysicalDeviceInlineUniformBlockFeatures::default();
    let mut mutable = vk::PhysicalDeviceMutableDescriptorTypeFeaturesEXT::default();
    let mut core = vk::PhysicalDeviceVulkan12Features::default();
    let mut out = vk::PhysicalDeviceFeatures2::default()
        .push_next(&mut indexing)
        .push_next(&mut inline)
        .push_next(&mut mutable)
        .push_next(&mut core);
    unsafe { gpu.instance().get_physical_device_features2(gpu.physical_device(), &mut out) };
    let bits = [
        indexing.shader_input_attachment_array_dynamic_indexing,
        indexing.shader_uniform_texel_buffer_array_dynamic_indexing,
        indexing.shader_storage_texel_buffer_array_dynamic_indexing,
        indexing.shader_uniform_buffer_array_non_uniform_indexing,
        indexing.shader_sampled_image_array_non_uniform_indexing,
        indexing.shader_storage_buffer_array_non_uniform_indexing,
        indexing.shader_storage_image_array_non_uniform_indexing,
        indexing.shader_input_attachment_array_non_uniform_indexing,
        indexing.shader_uniform_texel_buffer_array_non_uniform_indexing,
        indexing.shader_storage_texel_buffer_array_non_uniform_indexing,
        indexing.descriptor_binding_uniform_buffer_update_after_bind,
        indexing.descriptor_binding_sampled_image_update_after_bind,
        indexing.descriptor_binding_storage_image_update_after_bind,
        indexing.descriptor_binding_storage_buffer_update_after_bind,
        indexing.descriptor_binding_uniform_texel_buffer_update_after_bind,
        indexing.descriptor_binding_storage_texel_buffer_update_after_bind,
        indexing.descriptor_binding_update_unused_while_pending,
        indexing.descriptor_binding_partially_bound,
        indexing.descriptor_binding_variable_descriptor_count,
        indexing.runtime_descriptor_array,
    ];
    let (inline, mutable) = (inline.inline_uniform_block, mutable.mutable_descriptor_type);
    (bits, core.descriptor_indexing != 0, inline != 0, mutable != 0)
}

#[test]
fn features_are_those_of_the_driver() {
    assert_eq!(features(&Gpu::new(profile("nvidia-h200"))), ([1; 20], true, true, true));
    assert_eq!(features(&Gpu::new(profile("lavapipe"))), ([0; 20], false, true, false));
    let without = Gpu::builder(profile("nvidia-h200")).without_extension("VK_EXT_descriptor_indexing");
    assert_eq!(features(&without.build()), ([0; 20], false, true, true));
}

#[test]
fn extensions_are_those_of_the_driver() {
    let has = |profile: &str, extension: &str| {
        Gpu::new(super::profile(profile)).extensions().iter().any(|name| name == extension)
    };
    for (extension, nvidia, lavapipe, mali) in [
        ("VK_EXT_descriptor_indexing", true, false, false),
        ("VK_KHR_push_descriptor", true, true, false),
        ("VK_EXT_mutable_descriptor_type", true, false, false),
        ("VK_EXT_inline_uniform_block", true, true, false),
        ("VK_KHR_descriptor_update_template", true, true, true),
    ] {
        let found = ["nvidia-h200", "lavapipe", "arm-mali-g52"].map(|profile| has(profile, extension));
        assert_eq!(found, [nvidia, lavapipe, mali], "{extension}");
    }
}

#[test]
fn limits_are_at_least_what_vulkan_asks_for() {
    for profile in ALL {
        let limits = &profile.limits.descriptors;
        assert!(limits.max_bound_descriptor_sets >= 4 && limits.max_per_set_descriptors >= 1024);
        assert!(limits.max_push_constants_size >= 128 && limits.max_inline_uniform_block_size >= 256);
        assert!(limits.per_stage.samplers >= 16 && limits.per_stage.uniform_buffers >= 12);
        assert!(limits.per_stage.storage_buffers >= 4 && limits.per_stage.sampled_images >= 16);
        assert!(limits.per_set.uniform_buffers_dynamic >= 8 && limits.per_set.storage_buffers_dynamic >= 4);
        if profile.features.push_descriptor {
            assert!(limits.max_push_descriptors >= 32);
        }
        // Vulkan asks for half a million of each, but for a few types; then the features are there.
        let many = limits.per_set_update_after_bind.sampled_images >= 500_000;
        assert_eq!(many, profile.features.descriptor_indexing, "{}", profile.name);
    }
}
