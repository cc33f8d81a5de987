//! The features of the driver, and the structures of a chain that enable or report them.
#![expect(unsafe_code, reason = "the functions have the C ABI")]

use std::ffi::c_void;

use ash::vk;
use ash::vk::DescriptorType as Type;

use crate::facts::chain;
use crate::facts::ffi;
use crate::facts::profiles::FeaturesProfile;
use crate::objects::state::GpuState;

/// One feature.
struct Feature {
    field: FeatureField,
    /// Returns whether a GPU with these features has it.
    has: fn(&FeaturesProfile) -> bool,
    /// The extension that it came with, or nothing.
    extension: &'static str,
}

type FeatureField = fn(&mut EnabledFeatures) -> &mut bool;

const ADDRESS: &str = "VK_KHR_buffer_device_address";
const BUFFER: &str = "VK_EXT_descriptor_buffer";
const INDEXING: &str = "VK_EXT_descriptor_indexing";
const INLINE: &str = "VK_EXT_inline_uniform_block";

/// Features by Vulkan's names: whether a GPU has one, its extension, and the structures that have a field for it.
macro_rules! features {
    ($($field:ident: $has:expr, $extension:expr, [$($structure:ty),*];)*) => {
        /// The features that the program enabled.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
        pub(crate) struct EnabledFeatures {
            $(pub(crate) $field: bool,)*
        }

        const FEATURES: &[Feature] = &[$(
            Feature { field: |features| &mut features.$field, has: $has, extension: $extension },
        )*];

        /// The fields in a chain that hold the features.
        ///
        /// # Safety
        ///
        /// The chain is valid.
        unsafe fn slots(next: *mut c_void) -> Vec<(FeatureField, *mut vk::Bool32)> {
            let mut slots: Vec<(FeatureField, *mut vk::Bool32)> = Vec::new();
            $($(
                // SAFETY: the promise of `slots`: the chain is valid.
                if let Some(structure) = unsafe { chain::find_raw::<$structure>(next) } {
                    // SAFETY: the structure is valid, and so is the place of its field.
                    slots.push((|features| &mut features.$field, unsafe { &raw mut (*structure).$field }));
                }
            )*)*
            // SAFETY: as above.
            if let Some(structure) = unsafe { chain::find_raw::<vk::PhysicalDeviceFeatures2<'_>>(next) } {
                // SAFETY: as above.
                let slot = unsafe { &raw mut (*structure).features.sparse_binding };
                slots.push((|features| &mut features.sparse_binding, slot));
            }
            slots
        }
    };
    // Those of descriptor indexing have two structures.
    (indexing: $($indexing:ident)*; $($rest:tt)*) => {
        features! {
            $($indexing: |has| has.descriptor_indexing, INDEXING,
                [vk::PhysicalDeviceVulkan12Features<'_>, vk::PhysicalDeviceDescriptorIndexingFeatures<'_>];)*
            $($rest)*
        }
    };
}

features! {
    indexing:
        shader_input_attachment_array_dynamic_indexing
        shader_uniform_texel_buffer_array_dynamic_indexing
        shader_storage_texel_buffer_array_dynamic_indexing
        shader_uniform_buffer_array_non_uniform_indexing
        shader_sampled_image_array_non_uniform_indexing
        shader_storage_buffer_array_non_uniform_indexing
        shader_storage_image_array_non_uniform_indexing
        shader_input_attachment_array_non_uniform_indexing
        shader_uniform_texel_buffer_array_non_uniform_indexing
        shader_storage_texel_buffer_array_non_uniform_indexing
        descriptor_binding_uniform_buffer_update_after_bind
        descriptor_binding_sampled_image_update_after_bind
        descriptor_binding_storage_image_update_after_bind
        descriptor_binding_storage_buffer_update_after_bind
        descriptor_binding_uniform_texel_buffer_update_after_bind
        descriptor_binding_storage_texel_buffer_update_after_bind
        descriptor_binding_update_unused_while_pending
        descriptor_binding_partially_bound
        descriptor_binding_variable_descriptor_count
        runtime_descriptor_array;
    // Says that a device has the most of those above.
    descriptor_indexing: |has| has.descriptor_indexing, INDEXING, [vk::PhysicalDeviceVulkan12Features<'_>];
    inline_uniform_block: |has| has.inline_uniform_block, INLINE,
        [vk::PhysicalDeviceVulkan13Features<'_>, vk::PhysicalDeviceInlineUniformBlockFeatures<'_>];
    // Lavapipe has this feature without descriptor indexing.
    descriptor_binding_inline_uniform_block_update_after_bind: |has| has.inline_uniform_block, INLINE,
        [vk::PhysicalDeviceVulkan13Features<'_>, vk::PhysicalDeviceInlineUniformBlockFeatures<'_>];
    mutable_descriptor_type: |has| has.mutable_descriptor_type, "VK_EXT_mutable_descriptor_type",
        [vk::PhysicalDeviceMutableDescriptorTypeFeaturesEXT<'_>];
    buffer_device_address: |has| has.buffer_device_address, ADDRESS,
        [vk::PhysicalDeviceVulkan12Features<'_>, vk::PhysicalDeviceBufferDeviceAddressFeatures<'_>];
    // Drivers that have addresses can replay them.
    buffer_device_address_capture_replay: |has| has.buffer_device_address, ADDRESS,
        [vk::PhysicalDeviceVulkan12Features<'_>, vk::PhysicalDeviceBufferDeviceAddressFeatures<'_>];
    memory_priority: |has| has.memory_priority, "VK_EXT_memory_priority",
        [vk::PhysicalDeviceMemoryPriorityFeaturesEXT<'_>];
    pageable_device_local_memory: |has| has.pageable_device_local_memory, "VK_EXT_pageable_device_local_memory",
        [vk::PhysicalDevicePageableDeviceLocalMemoryFeaturesEXT<'_>];
    device_coherent_memory: |has| has.device_coherent_memory, "VK_AMD_device_coherent_memory",
        [vk::PhysicalDeviceCoherentMemoryFeaturesAMD<'_>];
    timeline_semaphore: |has| has.timeline_semaphore, "VK_KHR_timeline_semaphore",
        [vk::PhysicalDeviceVulkan12Features<'_>, vk::PhysicalDeviceTimelineSemaphoreFeatures<'_>];
    synchronization2: |has| has.synchronization2, "VK_KHR_synchronization2",
        [vk::PhysicalDeviceVulkan13Features<'_>, vk::PhysicalDeviceSynchronization2Features<'_>];
    dynamic_rendering: |_| true, "VK_KHR_dynamic_rendering",
        [vk::PhysicalDeviceVulkan13Features<'_>, vk::PhysicalDeviceDynamicRenderingFeatures<'_>];
    maintenance4: |has| has.maintenance4, "VK_KHR_maintenance4",
        [vk::PhysicalDeviceVulkan13Features<'_>, vk::PhysicalDeviceMaintenance4Features<'_>];
    protected_memory: |has| has.protected_memory, "",
        [vk::PhysicalDeviceVulkan11Features<'_>, vk::PhysicalDeviceProtectedMemoryFeatures<'_>];
    sparse_binding: |has| has.sparse_binding, "", [];
    descriptor_buffer: |has| has.descriptor_buffer, BUFFER, [vk::PhysicalDeviceDescriptorBufferFeaturesEXT<'_>];
    descriptor_buffer_push_descriptors: |has| has.descriptor_buffer, BUFFER,
        [vk::PhysicalDeviceDescriptorBufferFeaturesEXT<'_>];
    // The test may give heaps to a GPU whose profile has none.
    descriptor_heap: |_| true, "VK_EXT_descriptor_heap", [ffi::PhysicalDeviceDescriptorHeapFeaturesEXT];
}

impl EnabledFeatures {
    /// The features of a GPU. An extension that the test removed is gone with its feature, also where the feature is
    /// core.
    pub(crate) fn supported(gpu_state: &GpuState) -> Self {
        let mut supported = Self::default();
        for feature in FEATURES {
            let offered = feature.extension.is_empty() || gpu_state.offers(feature.extension);
            *(feature.field)(&mut supported) = offered && (feature.has)(&gpu_state.profile.features);
        }
        supported.descriptor_heap &= gpu_state.descriptor_heap.is_some();
        supported
    }

    /// Returns whether everything in `self` is in `supported`.
    pub(crate) fn within(&self, supported: &Self) -> bool {
        let (mut asked, mut offered) = (*self, *supported);
        FEATURES.iter().all(|feature| !*(feature.field)(&mut asked) || *(feature.field)(&mut offered))
    }

    /// Keeps the features of the extensions that `keep` accepts, and those without an extension.
    pub(crate) fn retain(&mut self, mut keep: impl FnMut(&str) -> bool) {
        for feature in FEATURES.iter().filter(|feature| !feature.extension.is_empty()) {
            *(feature.field)(self) &= keep(feature.extension);
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

    /// Returns whether descriptors of a type may be updated after they are bound.
    pub(crate) fn update_after_bind(&self, kind: Type) -> bool {
        match kind {
            Type::UNIFORM_BUFFER => self.descriptor_binding_uniform_buffer_update_after_bind,
            Type::SAMPLER | Type::COMBINED_IMAGE_SAMPLER | Type::SAMPLED_IMAGE => {
                self.descriptor_binding_sampled_image_update_after_bind
            }
            Type::STORAGE_IMAGE => self.descriptor_binding_storage_image_update_after_bind,
            Type::STORAGE_BUFFER => self.descriptor_binding_storage_buffer_update_after_bind,
            Type::UNIFORM_TEXEL_BUFFER => self.descriptor_binding_uniform_texel_buffer_update_after_bind,
            Type::STORAGE_TEXEL_BUFFER => self.descriptor_binding_storage_texel_buffer_update_after_bind,
            Type::INLINE_UNIFORM_BLOCK => self.descriptor_binding_inline_uniform_block_update_after_bind,
            // A mutable descriptor may be if the types of its list may.
            Type::MUTABLE_EXT => self.mutable_descriptor_type,
            _ => false,
        }
    }
}
