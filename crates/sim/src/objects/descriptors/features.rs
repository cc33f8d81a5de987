//! The features that touch descriptors.
#![expect(unsafe_code, reason = "the functions have the C ABI")]

use std::ffi::c_void;

use ash::vk;
use ash::vk::DescriptorType as Type;

use crate::facts::chain;
use crate::objects::features::EnabledFeatures;
use crate::objects::state::GpuState;

type DescriptorFeatureField = fn(&mut EnabledFeatures) -> &mut bool;

const INDEXING: &str = "VK_EXT_descriptor_indexing";
const INLINE: &str = "VK_EXT_inline_uniform_block";
const MUTABLE: &str = "VK_EXT_mutable_descriptor_type";

macro_rules! features {
    ($($field:ident),* $(,)?) => {
        /// The features that touch descriptors, as the program enabled them: those of descriptor indexing by their own
        /// names, and three more.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
        pub(crate) struct EnabledDescriptorFeatures {
            /// `descriptorIndexing` of Vulkan 1.2, which says that a device has the most of the others.
            pub(crate) descriptor_indexing: bool,
            $(pub(crate) $field: bool,)*
            pub(crate) inline_uniform_block: bool,
            pub(crate) descriptor_binding_inline_uniform_block_update_after_bind: bool,
            pub(crate) mutable_descriptor_type: bool,
        }

        /// Each feature with the extension that it came with.
        pub(crate) const FIELDS: &[(DescriptorFeatureField, &str)] = &[
            (|features| &mut features.descriptors.descriptor_indexing, INDEXING),
            $((|features| &mut features.descriptors.$field, INDEXING),)*
            (|features| &mut features.descriptors.inline_uniform_block, INLINE),
            (|features| &mut features.descriptors.descriptor_binding_inline_uniform_block_update_after_bind, INLINE),
            (|features| &mut features.descriptors.mutable_descriptor_type, MUTABLE),
        ];

        impl EnabledDescriptorFeatures {
            /// The features of a GPU.
            pub(crate) fn supported(gpu_state: &GpuState) -> Self {
                let profile = &gpu_state.profile.features;
                let indexing = profile.descriptor_indexing && gpu_state.offers(INDEXING);
                let inline = profile.inline_uniform_block && gpu_state.offers(INLINE);
                Self {
                    descriptor_indexing: indexing,
                    $($field: indexing,)*
                    inline_uniform_block: inline,
                    // Lavapipe has this feature without descriptor indexing.
                    descriptor_binding_inline_uniform_block_update_after_bind: inline,
                    mutable_descriptor_type: profile.mutable_descriptor_type && gpu_state.offers(MUTABLE),
                }
            }
        }

        /// The fields in a chain that hold these features.
        ///
        /// # Safety
        ///
        /// The chain is valid.
        pub(crate) unsafe fn slots(next: *mut c_void) -> Vec<(DescriptorFeatureField, *mut vk::Bool32)> {
            let mut slots: Vec<(DescriptorFeatureField, *mut vk::Bool32)> = Vec::new();
            macro_rules! slot {
                ($structure:ident: $slot:ident) => {
                    // SAFETY: the promise of `slots`: the chain is valid.
                    if let Some(structure) = unsafe { chain::find_raw::<vk::$structure<'_>>(next) } {
                        let field: DescriptorFeatureField = |features| &mut features.descriptors.$slot;
                        // SAFETY: the structure is valid, and so is the place of its field.
                        slots.push((field, unsafe { &raw mut (*structure).$slot }));
                    }
                };
            }
            slot!(PhysicalDeviceVulkan12Features: descriptor_indexing);
            $(
                slot!(PhysicalDeviceVulkan12Features: $field);
                slot!(PhysicalDeviceDescriptorIndexingFeatures: $field);
            )*
            slot!(PhysicalDeviceVulkan13Features: inline_uniform_block);
            slot!(PhysicalDeviceInlineUniformBlockFeatures: inline_uniform_block);
            slot!(PhysicalDeviceVulkan13Features: descriptor_binding_inline_uniform_block_update_after_bind);
            slot!(PhysicalDeviceInlineUniformBlockFeatures:
                descriptor_binding_inline_uniform_block_update_after_bind);
            slot!(PhysicalDeviceMutableDescriptorTypeFeaturesEXT: mutable_descriptor_type);
            slots
        }
    };
}

features!(
    shader_input_attachment_array_dynamic_indexing,
    shader_uniform_texel_buffer_array_dynamic_indexing,
    shader_storage_texel_buffer_array_dynamic_indexing,
    shader_uniform_buffer_array_non_uniform_indexing,
    shader_sampled_image_array_non_uniform_indexing,
    shader_storage_buffer_array_non_uniform_indexing,
    shader_storage_image_array_non_uniform_indexing,
    shader_input_attachment_array_non_uniform_indexing,
    shader_uniform_texel_buffer_array_non_uniform_indexing,
    shader_storage_texel_buffer_array_non_uniform_indexing,
    descriptor_binding_uniform_buffer_update_after_bind,
    descriptor_binding_sampled_image_update_after_bind,
    descriptor_binding_storage_image_update_after_bind,
    descriptor_binding_storage_buffer_update_after_bind,
    descriptor_binding_uniform_texel_buffer_update_after_bind,
    descriptor_binding_storage_texel_buffer_update_after_bind,
    descriptor_binding_update_unused_while_pending,
    descriptor_binding_partially_bound,
    descriptor_binding_variable_descriptor_count,
    runtime_descriptor_array,
);

impl EnabledDescriptorFeatures {
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
