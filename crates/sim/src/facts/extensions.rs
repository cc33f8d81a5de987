//! The extensions that a simulated GPU has, and the strings of the C interface.
#![expect(unsafe_code, reason = "the functions have the C ABI")]

use std::ffi::{CStr, c_char};

use ash::vk;

use crate::facts::chain;
use crate::facts::profiles::Profile;

/// The instance extensions, for every profile.
pub(crate) const INSTANCE: &[&str] = &[
    "VK_EXT_debug_utils",
    "VK_KHR_device_group_creation",
    "VK_KHR_external_fence_capabilities",
    "VK_KHR_external_memory_capabilities",
    "VK_KHR_external_semaphore_capabilities",
    "VK_KHR_get_physical_device_properties2",
];

/// Device extensions that became core in a version, which every driver of that version still has.
const PROMOTED: &[(&str, u32)] = &[
    ("VK_KHR_bind_memory2", 1),
    ("VK_KHR_dedicated_allocation", 1),
    ("VK_KHR_descriptor_update_template", 1),
    ("VK_KHR_device_group", 1),
    ("VK_KHR_external_memory", 1),
    ("VK_KHR_get_memory_requirements2", 1),
    ("VK_KHR_maintenance1", 1),
    ("VK_KHR_maintenance2", 1),
    ("VK_KHR_maintenance3", 1),
    ("VK_KHR_driver_properties", 2),
    ("VK_KHR_copy_commands2", 3),
    ("VK_KHR_dynamic_rendering", 3),
];

/// The device extensions of a profile, sorted. They are few, so a linear search is fast enough.
pub(crate) fn device(profile: &Profile) -> Vec<String> {
    let version = vk::api_version_minor(profile.api_version);
    let features = profile.features;
    let by_feature = [
        ("VK_AMD_device_coherent_memory", features.device_coherent_memory),
        ("VK_EXT_descriptor_indexing", features.descriptor_indexing),
        ("VK_EXT_inline_uniform_block", features.inline_uniform_block),
        ("VK_EXT_descriptor_buffer", features.descriptor_buffer),
        ("VK_EXT_descriptor_heap", profile.limits.descriptor_heap.is_some()),
        // Drivers that share memory mostly have it.
        ("VK_EXT_external_memory_host", features.external_memory),
        ("VK_EXT_memory_budget", features.memory_budget),
        ("VK_EXT_memory_priority", features.memory_priority),
        ("VK_EXT_mutable_descriptor_type", features.mutable_descriptor_type),
        ("VK_EXT_pageable_device_local_memory", features.pageable_device_local_memory),
        ("VK_KHR_buffer_device_address", features.buffer_device_address),
        ("VK_KHR_external_memory_fd", features.external_memory),
        ("VK_KHR_maintenance4", features.maintenance4),
        // Drivers got it at the same time as maintenance5.
        ("VK_KHR_map_memory2", features.maintenance5),
        ("VK_KHR_push_descriptor", features.push_descriptor),
        ("VK_KHR_synchronization2", features.synchronization2),
        ("VK_KHR_timeline_semaphore", features.timeline_semaphore),
    ];
    let promoted = PROMOTED.iter().filter(|(_, core)| *core <= version).map(|(name, _)| *name);
    let featured = by_feature.iter().filter(|(_, has)| *has).map(|(name, _)| *name);
    let mut names: Vec<_> = promoted.chain(featured).map(str::to_owned).collect();
    names.sort_unstable();
    names
}

/// The list that an enumeration returns.
pub(crate) fn properties<'a>(names: impl Iterator<Item = &'a str>) -> Vec<vk::ExtensionProperties> {
    names
        .map(|name| {
            let mut properties = vk::ExtensionProperties { spec_version: 1, ..Default::default() };
            copy(name, &mut properties.extension_name);
            properties
        })
        .collect()
}

/// Copies a string into a C array, cut where the array ends.
pub(crate) fn copy(text: &str, to: &mut [c_char]) {
    let Some((last, rest)) = to.split_last_mut() else {
        return;
    };
    for (to, from) in rest.iter_mut().zip(text.bytes()) {
        *to = c_char::from_ne_bytes([from]);
    }
    *last = 0;
}

/// An array of names as a create-info has it.
///
/// # Safety
///
/// 1. `names` is NULL, or valid for reads of `count` pointers.
/// 2. Each of them is NULL or a null-terminated string.
pub(crate) unsafe fn names(names: *const *const c_char, count: u32) -> Vec<String> {
    // SAFETY: 1 of `names`.
    let names = unsafe { chain::array(names, count) };
    names
        .iter()
        .filter(|name| !name.is_null())
        .map(|&name| {
            // SAFETY: 2 of `names`: not NULL, and so a null-terminated string.
            unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned()
        })
        .collect()
}

/// The newest minor version of the driver: Vulkan 1.4.
pub(crate) const NEWEST_MINOR: u32 = 4;
