//! The features of the driver, and the structures of a chain that enable or report them.
#![expect(unsafe_code, reason = "the functions have the C ABI")]

use std::ffi::c_void;

use ash::vk;

use crate::facts::chain;
use crate::facts::ffi;
use crate::facts::profiles::FeaturesProfile;
use crate::objects::descriptors;
use crate::objects::descriptors::features::EnabledDescriptorFeatures;
use crate::objects::state::GpuState;

impl EnabledFeatures {
    /// The features of a GPU. An extension that the test removed is gone with its feature, also where the feature is
    /// core.
    pub(crate) fn supported(gpu_state: &GpuState) -> Self {
        let FeaturesProfile {
            memory_priority,
            pageable_device_local_memory,
            device_coherent_memory,
            buffer_device_address,
            timeline_semaphore,
            synchronization2,
            maintenance4,
            protected_memory,
            descriptor_buffer,
            sparse_binding,
            ..
        } = gpu_state.profile.features;
        let descriptor_buffer = descriptor_buffer && gpu_state.offers("VK_EXT_descriptor_buffer");
        Self {
            buffer_device_address: buffer_device_address && gpu_state.offers("VK_KHR_buffer_device_address"),
            // Drivers that have addresses can replay them.
            capture_replay: buffer_device_address && gpu_state.offers("VK_KHR_buffer_device_address"),
            memory_priority: memory_priority && gpu_state.offers("VK_EXT_memory_priority"),
            pageable_device_local_memory: pageable_device_local_memory
                && gpu_state.offers("VK_EXT_pageable_device_local_memory"),
            device_coherent_memory: device_coherent_memory
                && gpu_state.offers("VK_AMD_device_coherent_memory"),
            timeline_semaphore: timeline_semaphore && gpu_state.offers("VK_KHR_timeline_semaphore"),
            synchronization2: synchronization2 && gpu_state.offers("VK_KHR_synchronization2"),
            dynamic_rendering: gpu_state.offers("VK_KHR_dynamic_rendering"),
            maintenance4: maintenance4 && gpu_state.offers("VK_KHR_maintenance4"),
            protected_memory,
            sparse_binding,
            descriptor_buffer,
            descriptor_buffer_push: descriptor_buffer,
            descriptor_heap: gpu_state.descriptor_heap.is_some()
                && gpu_state.offers("VK_EXT_descriptor_heap"),
            descriptors: EnabledDescriptorFeatures::supported(gpu_state),
        }
    }

    /// Returns whether everything in `self` is in `supported`.
    pub(crate) fn within(&self, supported: &Self) -> bool {
        let mut within = true;
        let mut asked = *self;
        let mut offered = *supported;
        for (field, _) in FIELDS.iter().chain(descriptors::features::FIELDS) {
            within &= !*field(&mut asked) || *field(&mut offered);
        }
        within
    }

    /// Keeps the features of the extensions that `keep` accepts, and those without an extension.
    pub(crate) fn retain(&mut self, mut keep: impl FnMut(&str) -> bool) {
        for (field, extension) in FIELDS.iter().chain(descriptors::features::FIELDS) {
            if !extension.is_empty() {
                *field(self) &= keep(extension);
            }
        }
    }

    /// Fills the feature structures of a chain.
    ///
    /// # Safety
    ///
    /// 1. The chain is valid.
    /// 2. It is valid for writes.
    pub(crate) unsafe fn write(mut self, next: *mut c_void) {
        // SAFETY: 1 of `write`.
        for (field, slot) in unsafe { slots(next) } {
            let value = vk::Bool32::from(*field(&mut self));
            // SAFETY: 2 of `write`: a field of a structure of the chain.
            unsafe { slot.write(value) };
        }
    }

    /// The features that a chain requests.
    ///
    /// # Safety
    ///
    /// The chain is valid.
    pub(crate) unsafe fn read(next: *const c_void) -> Self {
        let mut asked = Self::default();
        // SAFETY: the promise of `read`: the chain is valid. Nothing is written through the pointers.
        for (field, slot) in unsafe { slots(next.cast_mut()) } {
            // SAFETY: a field of a structure of the chain, which is valid.
            *field(&mut asked) |= unsafe { slot.read() } != vk::FALSE;
        }
        asked
    }
}

type FeatureField = fn(&mut EnabledFeatures) -> &mut bool;

/// The features, each with the extension that it came with.
const FIELDS: &[(FeatureField, &str)] = &[
    (|features| &mut features.buffer_device_address, "VK_KHR_buffer_device_address"),
    (|features| &mut features.capture_replay, "VK_KHR_buffer_device_address"),
    (|features| &mut features.memory_priority, "VK_EXT_memory_priority"),
    (|features| &mut features.pageable_device_local_memory, "VK_EXT_pageable_device_local_memory"),
    (|features| &mut features.device_coherent_memory, "VK_AMD_device_coherent_memory"),
    (|features| &mut features.timeline_semaphore, "VK_KHR_timeline_semaphore"),
    (|features| &mut features.synchronization2, "VK_KHR_synchronization2"),
    (|features| &mut features.dynamic_rendering, "VK_KHR_dynamic_rendering"),
    (|features| &mut features.maintenance4, "VK_KHR_maintenance4"),
    (|features| &mut features.protected_memory, ""),
    (|features| &mut features.sparse_binding, ""),
    (|features| &mut features.descriptor_buffer, "VK_EXT_descriptor_buffer"),
    (|features| &mut features.descriptor_buffer_push, "VK_EXT_descriptor_buffer"),
    (|features| &mut features.descriptor_heap, "VK_EXT_descriptor_heap"),
];

/// The fields in a chain that hold the features.
///
/// # Safety
///
/// The chain is valid.
unsafe fn slots(next: *mut c_void) -> Vec<(FeatureField, *mut vk::Bool32)> {
    let mut slots: Vec<(FeatureField, *mut vk::Bool32)> = Vec::new();
    macro_rules! slot {
        ($($structure:ident.$slot:ident is $field:ident;)*) => {$(
            // SAFETY: the promise of `slots`: the chain is valid.
            if let Some(structure) = unsafe { chain::find_raw::<vk::$structure<'_>>(next) } {
                // SAFETY: the structure is valid, and so is the place of its field.
                slots.push((|features| &mut features.$field, unsafe { &raw mut (*structure).$slot }));
            }
        )*};
    }
    // SAFETY: the promise of `slots`: the chain is valid.
    if let Some(structure) = unsafe { chain::find_raw::<vk::PhysicalDeviceFeatures2<'_>>(next) } {
        // SAFETY: the structure is valid, and so is the place of its field.
        let slot = unsafe { &raw mut (*structure).features.sparse_binding };
        slots.push((|features| &mut features.sparse_binding, slot));
    }
    // SAFETY: the promise of `slots`: the chain is valid.
    let heap = unsafe { chain::find_raw::<ffi::PhysicalDeviceDescriptorHeapFeaturesEXT>(next) };
    if let Some(structure) = heap {
        // SAFETY: the structure is valid, and so is the place of its field.
        slots.push((|features| &mut features.descriptor_heap, unsafe {
            &raw mut (*structure).descriptor_heap
        }));
    }
    slot! {
        PhysicalDeviceVulkan11Features.protected_memory is protected_memory;
        PhysicalDeviceVulkan12Features.buffer_device_address is buffer_device_address;
        PhysicalDeviceVulkan12Features.buffer_device_address_capture_replay is capture_replay;
        PhysicalDeviceVulkan12Features.timeline_semaphore is timeline_semaphore;
        PhysicalDeviceVulkan13Features.synchronization2 is synchronization2;
        PhysicalDeviceVulkan13Features.dynamic_rendering is dynamic_rendering;
        PhysicalDeviceVulkan13Features.maintenance4 is maintenance4;
        PhysicalDeviceProtectedMemoryFeatures.protected_memory is protected_memory;
        PhysicalDeviceBufferDeviceAddressFeatures.buffer_device_address is buffer_device_address;
        PhysicalDeviceBufferDeviceAddressFeatures.buffer_device_address_capture_replay is capture_replay;
        PhysicalDeviceTimelineSemaphoreFeatures.timeline_semaphore is timeline_semaphore;
        PhysicalDeviceSynchronization2Features.synchronization2 is synchronization2;
        PhysicalDeviceDynamicRenderingFeatures.dynamic_rendering is dynamic_rendering;
        PhysicalDeviceMaintenance4Features.maintenance4 is maintenance4;
        PhysicalDeviceMemoryPriorityFeaturesEXT.memory_priority is memory_priority;
        PhysicalDevicePageableDeviceLocalMemoryFeaturesEXT.pageable_device_local_memory
            is pageable_device_local_memory;
        PhysicalDeviceCoherentMemoryFeaturesAMD.device_coherent_memory is device_coherent_memory;
        PhysicalDeviceDescriptorBufferFeaturesEXT.descriptor_buffer is descriptor_buffer;
        PhysicalDeviceDescriptorBufferFeaturesEXT.descriptor_buffer_push_descriptors is descriptor_buffer_push;
    }
    // SAFETY: the promise of `slots`: the chain is valid.
    slots.extend(unsafe { descriptors::features::slots(next) });
    slots
}

/// The features that the program enabled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct EnabledFeatures {
    pub(crate) buffer_device_address: bool,
    /// `bufferDeviceAddressCaptureReplay`.
    pub(crate) capture_replay: bool,
    pub(crate) memory_priority: bool,
    pub(crate) pageable_device_local_memory: bool,
    pub(crate) device_coherent_memory: bool,
    pub(crate) timeline_semaphore: bool,
    pub(crate) synchronization2: bool,
    pub(crate) dynamic_rendering: bool,
    pub(crate) maintenance4: bool,
    pub(crate) protected_memory: bool,
    pub(crate) sparse_binding: bool,
    pub(crate) descriptor_buffer: bool,
    pub(crate) descriptor_buffer_push: bool,
    pub(crate) descriptor_heap: bool,
    pub(crate) descriptors: EnabledDescriptorFeatures,
}
