//! The device features that the program has enabled.

use ash::vk;
use bitflags::bitflags;

use super::counts::DescriptorKind;

bitflags! {
    /// The features and extensions that are enabled on the device. Vulkan has no query for them.
    ///
    /// Features of the Vulkan version in use are included automatically: [`Self::MAINTENANCE1`] and
    /// [`Self::UPDATE_TEMPLATE`] with Vulkan 1.1.
    ///
    /// ```
    /// use sublet_descriptors::DescriptorFeatures;
    /// let bindless = DescriptorFeatures::UPDATE_AFTER_BIND;
    /// assert!(bindless.contains(DescriptorFeatures::SAMPLED_IMAGE_UPDATE_AFTER_BIND));
    /// ```
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
    pub struct DescriptorFeatures: u32 {
        /// `VK_KHR_maintenance1`: an exhausted pool returns an error code, and allocating from it is valid.
        const MAINTENANCE1 = 1;
        /// `VK_KHR_descriptor_update_template`.
        const UPDATE_TEMPLATE = 1 << 1;
        /// `VK_KHR_push_descriptor`.
        const PUSH_DESCRIPTOR = 1 << 2;
        /// `inlineUniformBlock`.
        const INLINE_UNIFORM_BLOCK = 1 << 3;
        /// `mutableDescriptorType`.
        const MUTABLE_DESCRIPTOR_TYPE = 1 << 4;
        /// `bufferDeviceAddress`.
        const BUFFER_DEVICE_ADDRESS = 1 << 5;
        /// `descriptorBuffer`.
        const DESCRIPTOR_BUFFER = 1 << 6;
        /// `descriptorBufferPushDescriptors`.
        const DESCRIPTOR_BUFFER_PUSH_DESCRIPTORS = 1 << 7;
        /// `VK_EXT_debug_utils`, an instance extension: pools and buffers get names.
        const DEBUG_UTILS = 1 << 8;
        /// `descriptorBindingUniformBufferUpdateAfterBind`.
        const UNIFORM_BUFFER_UPDATE_AFTER_BIND = 1 << 9;
        /// `descriptorBindingSampledImageUpdateAfterBind`: also covers samplers and combined image samplers.
        const SAMPLED_IMAGE_UPDATE_AFTER_BIND = 1 << 10;
        /// `descriptorBindingStorageImageUpdateAfterBind`.
        const STORAGE_IMAGE_UPDATE_AFTER_BIND = 1 << 11;
        /// `descriptorBindingStorageBufferUpdateAfterBind`.
        const STORAGE_BUFFER_UPDATE_AFTER_BIND = 1 << 12;
        /// `descriptorBindingUniformTexelBufferUpdateAfterBind`.
        const UNIFORM_TEXEL_BUFFER_UPDATE_AFTER_BIND = 1 << 13;
        /// `descriptorBindingStorageTexelBufferUpdateAfterBind`.
        const STORAGE_TEXEL_BUFFER_UPDATE_AFTER_BIND = 1 << 14;
        /// `descriptorBindingUpdateUnusedWhilePending`.
        const UPDATE_UNUSED_WHILE_PENDING = 1 << 15;
        /// `descriptorBindingPartiallyBound`.
        const PARTIALLY_BOUND = 1 << 16;
        /// `descriptorBindingVariableDescriptorCount`.
        const VARIABLE_DESCRIPTOR_COUNT = 1 << 17;
        /// `descriptorBindingInlineUniformBlockUpdateAfterBind`.
        const INLINE_UNIFORM_BLOCK_UPDATE_AFTER_BIND = 1 << 18;
        /// `descriptorBindingAccelerationStructureUpdateAfterBind`.
        const ACCELERATION_STRUCTURE_UPDATE_AFTER_BIND = 1 << 19;
        /// `robustBufferAccess`: may enlarge the descriptors of buffers.
        const ROBUST_BUFFER_ACCESS = 1 << 20;
        /// `descriptorHeap`, of `VK_EXT_descriptor_heap`.
        const DESCRIPTOR_HEAP = 1 << 21;
        /// All features of `VK_EXT_descriptor_indexing` that a bindless set of buffers and images needs.
        const UPDATE_AFTER_BIND = Self::UNIFORM_BUFFER_UPDATE_AFTER_BIND.bits()
            | Self::SAMPLED_IMAGE_UPDATE_AFTER_BIND.bits()
            | Self::STORAGE_IMAGE_UPDATE_AFTER_BIND.bits()
            | Self::STORAGE_BUFFER_UPDATE_AFTER_BIND.bits()
            | Self::UNIFORM_TEXEL_BUFFER_UPDATE_AFTER_BIND.bits()
            | Self::STORAGE_TEXEL_BUFFER_UPDATE_AFTER_BIND.bits()
            | Self::UPDATE_UNUSED_WHILE_PENDING.bits()
            | Self::PARTIALLY_BOUND.bits()
            | Self::VARIABLE_DESCRIPTOR_COUNT.bits();
    }
}

impl DescriptorFeatures {
    /// Returns the feature that allows writing descriptors of a kind after their set is bound; `None` if Vulkan has
    /// none.
    #[must_use]
    pub const fn update_after_bind_of(kind: DescriptorKind) -> Option<Self> {
        match kind {
            DescriptorKind::Sampler | DescriptorKind::CombinedImageSampler | DescriptorKind::SampledImage => {
                Some(Self::SAMPLED_IMAGE_UPDATE_AFTER_BIND)
            }
            DescriptorKind::StorageImage => Some(Self::STORAGE_IMAGE_UPDATE_AFTER_BIND),
            DescriptorKind::UniformTexelBuffer => Some(Self::UNIFORM_TEXEL_BUFFER_UPDATE_AFTER_BIND),
            DescriptorKind::StorageTexelBuffer => Some(Self::STORAGE_TEXEL_BUFFER_UPDATE_AFTER_BIND),
            DescriptorKind::UniformBuffer => Some(Self::UNIFORM_BUFFER_UPDATE_AFTER_BIND),
            DescriptorKind::StorageBuffer => Some(Self::STORAGE_BUFFER_UPDATE_AFTER_BIND),
            DescriptorKind::InlineUniformBlock => Some(Self::INLINE_UNIFORM_BLOCK_UPDATE_AFTER_BIND),
            DescriptorKind::AccelerationStructure => Some(Self::ACCELERATION_STRUCTURE_UPDATE_AFTER_BIND),
            // The features of all types on its list are needed as well.
            DescriptorKind::Mutable => Some(Self::MUTABLE_DESCRIPTOR_TYPE),
            DescriptorKind::UniformBufferDynamic
            | DescriptorKind::StorageBufferDynamic
            | DescriptorKind::InputAttachment => None,
        }
    }

    /// Returns the features that are part of this Vulkan version.
    pub(super) fn of_version(api_version: u32) -> Self {
        if api_version >= vk::API_VERSION_1_1 {
            Self::MAINTENANCE1 | Self::UPDATE_TEMPLATE
        } else {
            Self::empty()
        }
    }
}
