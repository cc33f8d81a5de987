//! Structures of `VK_EXT_descriptor_heap`, which `ash` 0.38 does not have. Names, layouts and numbers are those of
//! Vulkan's registry (`vk.xml` of version 1.4.366), in the style of `ash`.
//!
//! They extend the chains of `ash` (`push_next`). This module will be removed once `ash` has them.
#![expect(unsafe_code, reason = "structures of Vulkan hold pointers")]
#![allow(missing_docs, reason = "fields are called as Vulkan's registry calls them, and mean what it says")]
#![allow(non_camel_case_types, reason = "as in Vulkan's header")]

use std::ffi::c_void;

use ash::vk;

/// The name of the extension.
pub const NAME: &std::ffi::CStr = c"VK_EXT_descriptor_heap";

/// `VK_BUFFER_USAGE_DESCRIPTOR_HEAP_BIT_EXT`.
pub const BUFFER_USAGE_DESCRIPTOR_HEAP: vk::BufferUsageFlags = vk::BufferUsageFlags::from_raw(1 << 28);

/// `VK_PIPELINE_CREATE_2_DESCRIPTOR_HEAP_BIT_EXT`. Pipelines that use heaps set this flag, and have no pipeline layout.
pub const PIPELINE_CREATE_2_DESCRIPTOR_HEAP: vk::PipelineCreateFlags2KHR =
    vk::PipelineCreateFlags2KHR::from_raw(1 << 36);

/// `VK_ACCESS_2_SAMPLER_HEAP_READ_BIT_EXT`.
pub const ACCESS_2_SAMPLER_HEAP_READ: vk::AccessFlags2 = vk::AccessFlags2::from_raw(1 << 57);

/// `VK_ACCESS_2_RESOURCE_HEAP_READ_BIT_EXT`.
pub const ACCESS_2_RESOURCE_HEAP_READ: vk::AccessFlags2 = vk::AccessFlags2::from_raw(1 << 58);

/// `VkDescriptorMappingSourceEXT`.
pub mod mapping_source {
    /// `VK_DESCRIPTOR_MAPPING_SOURCE_HEAP_WITH_CONSTANT_OFFSET_EXT`.
    pub const HEAP_WITH_CONSTANT_OFFSET: i32 = 0;
    /// `VK_DESCRIPTOR_MAPPING_SOURCE_HEAP_WITH_PUSH_INDEX_EXT`.
    pub const HEAP_WITH_PUSH_INDEX: i32 = 1;
    /// `VK_DESCRIPTOR_MAPPING_SOURCE_HEAP_WITH_INDIRECT_INDEX_EXT`.
    pub const HEAP_WITH_INDIRECT_INDEX: i32 = 2;
    /// `VK_DESCRIPTOR_MAPPING_SOURCE_HEAP_WITH_INDIRECT_INDEX_ARRAY_EXT`.
    pub const HEAP_WITH_INDIRECT_INDEX_ARRAY: i32 = 3;
    /// `VK_DESCRIPTOR_MAPPING_SOURCE_RESOURCE_HEAP_DATA_EXT`.
    pub const RESOURCE_HEAP_DATA: i32 = 4;
    /// `VK_DESCRIPTOR_MAPPING_SOURCE_PUSH_DATA_EXT`.
    pub const PUSH_DATA: i32 = 5;
    /// `VK_DESCRIPTOR_MAPPING_SOURCE_PUSH_ADDRESS_EXT`.
    pub const PUSH_ADDRESS: i32 = 6;
    /// `VK_DESCRIPTOR_MAPPING_SOURCE_INDIRECT_ADDRESS_EXT`.
    pub const INDIRECT_ADDRESS: i32 = 7;
    /// `VK_DESCRIPTOR_MAPPING_SOURCE_HEAP_WITH_SHADER_RECORD_INDEX_EXT`.
    pub const HEAP_WITH_SHADER_RECORD_INDEX: i32 = 8;
    /// `VK_DESCRIPTOR_MAPPING_SOURCE_SHADER_RECORD_DATA_EXT`.
    pub const SHADER_RECORD_DATA: i32 = 9;
    /// `VK_DESCRIPTOR_MAPPING_SOURCE_SHADER_RECORD_ADDRESS_EXT`.
    pub const SHADER_RECORD_ADDRESS: i32 = 10;
}

/// `VkSpirvResourceTypeFlagBitsEXT`.
pub mod resource_type {
    /// `VK_SPIRV_RESOURCE_TYPE_SAMPLER_BIT_EXT`.
    pub const SAMPLER: u32 = 1;
    /// `VK_SPIRV_RESOURCE_TYPE_SAMPLED_IMAGE_BIT_EXT`.
    pub const SAMPLED_IMAGE: u32 = 1 << 1;
    /// `VK_SPIRV_RESOURCE_TYPE_READ_ONLY_IMAGE_BIT_EXT`.
    pub const READ_ONLY_IMAGE: u32 = 1 << 2;
    /// `VK_SPIRV_RESOURCE_TYPE_READ_WRITE_IMAGE_BIT_EXT`.
    pub const READ_WRITE_IMAGE: u32 = 1 << 3;
    /// `VK_SPIRV_RESOURCE_TYPE_COMBINED_SAMPLED_IMAGE_BIT_EXT`.
    pub const COMBINED_SAMPLED_IMAGE: u32 = 1 << 4;
    /// `VK_SPIRV_RESOURCE_TYPE_UNIFORM_BUFFER_BIT_EXT`.
    pub const UNIFORM_BUFFER: u32 = 1 << 5;
    /// `VK_SPIRV_RESOURCE_TYPE_READ_ONLY_STORAGE_BUFFER_BIT_EXT`.
    pub const READ_ONLY_STORAGE_BUFFER: u32 = 1 << 6;
    /// `VK_SPIRV_RESOURCE_TYPE_READ_WRITE_STORAGE_BUFFER_BIT_EXT`.
    pub const READ_WRITE_STORAGE_BUFFER: u32 = 1 << 7;
    /// `VK_SPIRV_RESOURCE_TYPE_ACCELERATION_STRUCTURE_BIT_EXT`.
    pub const ACCELERATION_STRUCTURE: u32 = 1 << 8;
    /// `VK_SPIRV_RESOURCE_TYPE_ALL_EXT`.
    pub const ALL: u32 = 0x7fff_ffff;
}

/// `PFN_vkWriteSamplerDescriptorsEXT`.
pub type PFN_vkWriteSamplerDescriptorsEXT = unsafe extern "system" fn(
    device: vk::Device,
    sampler_count: u32,
    p_samplers: *const vk::SamplerCreateInfo<'_>,
    p_descriptors: *const HostAddressRangeEXT,
) -> vk::Result;

/// `PFN_vkWriteResourceDescriptorsEXT`.
pub type PFN_vkWriteResourceDescriptorsEXT = unsafe extern "system" fn(
    device: vk::Device,
    resource_count: u32,
    p_resources: *const ResourceDescriptorInfoEXT,
    p_descriptors: *const HostAddressRangeEXT,
) -> vk::Result;

/// `PFN_vkCmdBindSamplerHeapEXT` and `PFN_vkCmdBindResourceHeapEXT`, which are one type.
pub type PFN_vkCmdBindHeapEXT =
    unsafe extern "system" fn(command_buffer: vk::CommandBuffer, p_bind_info: *const BindHeapInfoEXT);

/// `PFN_vkCmdPushDataEXT`.
pub type PFN_vkCmdPushDataEXT =
    unsafe extern "system" fn(command_buffer: vk::CommandBuffer, p_push_data_info: *const PushDataInfoEXT);

/// `PFN_vkGetPhysicalDeviceDescriptorSizeEXT`.
pub type PFN_vkGetPhysicalDeviceDescriptorSizeEXT = unsafe extern "system" fn(
    physical_device: vk::PhysicalDevice,
    descriptor_type: vk::DescriptorType,
) -> vk::DeviceSize;

/// `VkHostAddressRangeEXT`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct HostAddressRangeEXT {
    pub address: *mut c_void,
    pub size: usize,
}

/// `VkHostAddressRangeConstEXT`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct HostAddressRangeConstEXT {
    pub address: *const c_void,
    pub size: usize,
}

/// `VkDeviceAddressRangeKHR`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct DeviceAddressRangeKHR {
    pub address: vk::DeviceAddress,
    pub size: vk::DeviceSize,
}

/// `VkTexelBufferDescriptorInfoEXT`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct TexelBufferDescriptorInfoEXT {
    pub s_type: vk::StructureType,
    pub p_next: *const c_void,
    pub format: vk::Format,
    pub address_range: DeviceAddressRangeKHR,
}

/// `VkImageDescriptorInfoEXT`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ImageDescriptorInfoEXT {
    pub s_type: vk::StructureType,
    pub p_next: *const c_void,
    pub p_view: *const vk::ImageViewCreateInfo<'static>,
    pub layout: vk::ImageLayout,
}

/// `VkResourceDescriptorDataEXT`.
#[repr(C)]
#[derive(Clone, Copy)]
pub union ResourceDescriptorDataEXT {
    pub p_image: *const ImageDescriptorInfoEXT,
    pub p_texel_buffer: *const TexelBufferDescriptorInfoEXT,
    pub p_address_range: *const DeviceAddressRangeKHR,
    pub p_tensor_arm: *const c_void,
}

/// `VkResourceDescriptorInfoEXT`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ResourceDescriptorInfoEXT {
    pub s_type: vk::StructureType,
    pub p_next: *const c_void,
    pub ty: vk::DescriptorType,
    pub data: ResourceDescriptorDataEXT,
}

/// `VkBindHeapInfoEXT`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct BindHeapInfoEXT {
    pub s_type: vk::StructureType,
    pub p_next: *const c_void,
    pub heap_range: DeviceAddressRangeKHR,
    pub reserved_range_offset: vk::DeviceSize,
    pub reserved_range_size: vk::DeviceSize,
}

/// `VkPushDataInfoEXT`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct PushDataInfoEXT {
    pub s_type: vk::StructureType,
    pub p_next: *const c_void,
    pub offset: u32,
    pub data: HostAddressRangeConstEXT,
}

/// `VkDescriptorMappingSourceConstantOffsetEXT`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct DescriptorMappingSourceConstantOffsetEXT {
    pub heap_offset: u32,
    pub heap_array_stride: u32,
    pub p_embedded_sampler: *const vk::SamplerCreateInfo<'static>,
    pub sampler_heap_offset: u32,
    pub sampler_heap_array_stride: u32,
}

/// `VkDescriptorMappingSourcePushIndexEXT`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct DescriptorMappingSourcePushIndexEXT {
    pub heap_offset: u32,
    pub push_offset: u32,
    pub heap_index_stride: u32,
    pub heap_array_stride: u32,
    pub p_embedded_sampler: *const vk::SamplerCreateInfo<'static>,
    pub use_combined_image_sampler_index: vk::Bool32,
    pub sampler_heap_offset: u32,
    pub sampler_push_offset: u32,
    pub sampler_heap_index_stride: u32,
    pub sampler_heap_array_stride: u32,
}

/// `VkDescriptorMappingSourceIndirectIndexEXT`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct DescriptorMappingSourceIndirectIndexEXT {
    pub heap_offset: u32,
    pub push_offset: u32,
    pub address_offset: u32,
    pub heap_index_stride: u32,
    pub heap_array_stride: u32,
    pub p_embedded_sampler: *const vk::SamplerCreateInfo<'static>,
    pub use_combined_image_sampler_index: vk::Bool32,
    pub sampler_heap_offset: u32,
    pub sampler_push_offset: u32,
    pub sampler_address_offset: u32,
    pub sampler_heap_index_stride: u32,
    pub sampler_heap_array_stride: u32,
}

/// `VkDescriptorMappingSourceIndirectIndexArrayEXT`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct DescriptorMappingSourceIndirectIndexArrayEXT {
    pub heap_offset: u32,
    pub push_offset: u32,
    pub address_offset: u32,
    pub heap_index_stride: u32,
    pub p_embedded_sampler: *const vk::SamplerCreateInfo<'static>,
    pub use_combined_image_sampler_index: vk::Bool32,
    pub sampler_heap_offset: u32,
    pub sampler_push_offset: u32,
    pub sampler_address_offset: u32,
    pub sampler_heap_index_stride: u32,
}

/// `VkDescriptorMappingSourceHeapDataEXT`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct DescriptorMappingSourceHeapDataEXT {
    pub heap_offset: u32,
    pub push_offset: u32,
}

/// `VkDescriptorMappingSourceIndirectAddressEXT`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct DescriptorMappingSourceIndirectAddressEXT {
    pub push_offset: u32,
    pub address_offset: u32,
}

/// `VkDescriptorMappingSourceShaderRecordIndexEXT`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct DescriptorMappingSourceShaderRecordIndexEXT {
    pub heap_offset: u32,
    pub shader_record_offset: u32,
    pub heap_index_stride: u32,
    pub heap_array_stride: u32,
    pub p_embedded_sampler: *const vk::SamplerCreateInfo<'static>,
    pub use_combined_image_sampler_index: vk::Bool32,
    pub sampler_heap_offset: u32,
    pub sampler_shader_record_offset: u32,
    pub sampler_heap_index_stride: u32,
    pub sampler_heap_array_stride: u32,
}

/// `VkDescriptorMappingSourceDataEXT`.
#[repr(C)]
#[derive(Clone, Copy)]
pub union DescriptorMappingSourceDataEXT {
    pub constant_offset: DescriptorMappingSourceConstantOffsetEXT,
    pub push_index: DescriptorMappingSourcePushIndexEXT,
    pub indirect_index: DescriptorMappingSourceIndirectIndexEXT,
    pub indirect_index_array: DescriptorMappingSourceIndirectIndexArrayEXT,
    pub heap_data: DescriptorMappingSourceHeapDataEXT,
    pub push_data_offset: u32,
    pub push_address_offset: u32,
    pub indirect_address: DescriptorMappingSourceIndirectAddressEXT,
    pub shader_record_index: DescriptorMappingSourceShaderRecordIndexEXT,
    pub shader_record_data_offset: u32,
    pub shader_record_address_offset: u32,
}

/// `VkDescriptorSetAndBindingMappingEXT`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct DescriptorSetAndBindingMappingEXT {
    pub s_type: vk::StructureType,
    pub p_next: *const c_void,
    pub descriptor_set: u32,
    pub first_binding: u32,
    pub binding_count: u32,
    pub resource_mask: u32,
    pub source: i32,
    pub source_data: DescriptorMappingSourceDataEXT,
}

/// `VkShaderDescriptorSetAndBindingMappingInfoEXT`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ShaderDescriptorSetAndBindingMappingInfoEXT {
    pub s_type: vk::StructureType,
    pub p_next: *const c_void,
    pub mapping_count: u32,
    pub p_mappings: *const DescriptorSetAndBindingMappingEXT,
}

/// `VkPhysicalDeviceDescriptorHeapFeaturesEXT`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct PhysicalDeviceDescriptorHeapFeaturesEXT {
    pub s_type: vk::StructureType,
    pub p_next: *mut c_void,
    pub descriptor_heap: vk::Bool32,
    pub descriptor_heap_capture_replay: vk::Bool32,
}

/// `VkPhysicalDeviceDescriptorHeapPropertiesEXT`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct PhysicalDeviceDescriptorHeapPropertiesEXT {
    pub s_type: vk::StructureType,
    pub p_next: *mut c_void,
    pub sampler_heap_alignment: vk::DeviceSize,
    pub resource_heap_alignment: vk::DeviceSize,
    pub max_sampler_heap_size: vk::DeviceSize,
    pub max_resource_heap_size: vk::DeviceSize,
    pub min_sampler_heap_reserved_range: vk::DeviceSize,
    pub min_sampler_heap_reserved_range_with_embedded: vk::DeviceSize,
    pub min_resource_heap_reserved_range: vk::DeviceSize,
    pub sampler_descriptor_size: vk::DeviceSize,
    pub image_descriptor_size: vk::DeviceSize,
    pub buffer_descriptor_size: vk::DeviceSize,
    pub sampler_descriptor_alignment: vk::DeviceSize,
    pub image_descriptor_alignment: vk::DeviceSize,
    pub buffer_descriptor_alignment: vk::DeviceSize,
    pub max_push_data_size: vk::DeviceSize,
    pub image_capture_replay_opaque_data_size: usize,
    pub max_descriptor_heap_embedded_samplers: u32,
    pub sampler_ycbcr_conversion_count: u32,
    pub sparse_descriptor_heaps: vk::Bool32,
    pub protected_descriptor_heaps: vk::Bool32,
}

/// `VkCommandBufferInheritanceDescriptorHeapInfoEXT`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CommandBufferInheritanceDescriptorHeapInfoEXT {
    pub s_type: vk::StructureType,
    pub p_next: *const c_void,
    pub p_sampler_heap_bind_info: *const BindHeapInfoEXT,
    pub p_resource_heap_bind_info: *const BindHeapInfoEXT,
}

/// Defines structures with a type tag: `VK_STRUCTURE_TYPE_...`, numbered from the first of extension 136.
macro_rules! tagged {
    ($($name:ident = $number:literal;)*) => {$(
        // SAFETY: the number is the registry's, and the structure begins with `sType` and `pNext`.
        unsafe impl vk::TaggedStructure for $name {
            const STRUCTURE_TYPE: vk::StructureType = vk::StructureType::from_raw(1_000_135_000 + $number);
        }

        impl Default for $name {
            fn default() -> Self {
                // SAFETY: numbers, flags, and nullable pointers: zero is valid for each.
                let zeroes = unsafe { std::mem::MaybeUninit::<Self>::zeroed().assume_init() };
                Self { s_type: <Self as vk::TaggedStructure>::STRUCTURE_TYPE, ..zeroes }
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct(stringify!($name)).finish_non_exhaustive()
            }
        }
    )*};
}

tagged! {
    TexelBufferDescriptorInfoEXT = 0;
    ImageDescriptorInfoEXT = 1;
    ResourceDescriptorInfoEXT = 2;
    BindHeapInfoEXT = 3;
    PushDataInfoEXT = 4;
    DescriptorSetAndBindingMappingEXT = 5;
    ShaderDescriptorSetAndBindingMappingInfoEXT = 6;
    PhysicalDeviceDescriptorHeapPropertiesEXT = 8;
    PhysicalDeviceDescriptorHeapFeaturesEXT = 9;
    CommandBufferInheritanceDescriptorHeapInfoEXT = 10;
}

/// Implements [`Default`] for structures without a type tag.
macro_rules! zeroed {
    ($($name:ident)*) => {$(
        impl Default for $name {
            fn default() -> Self {
                // SAFETY: numbers and nullable pointers: zero is valid for each.
                unsafe { std::mem::MaybeUninit::zeroed().assume_init() }
            }
        }
    )*};
}

zeroed! {
    DescriptorMappingSourceConstantOffsetEXT
    DescriptorMappingSourcePushIndexEXT
    DescriptorMappingSourceIndirectIndexEXT
    DescriptorMappingSourceIndirectIndexArrayEXT
    DescriptorMappingSourceShaderRecordIndexEXT
}

// SAFETY: `structextends` of the registry, for this and those below.
unsafe impl vk::ExtendsPhysicalDeviceFeatures2 for PhysicalDeviceDescriptorHeapFeaturesEXT {}
// SAFETY: as above.
unsafe impl vk::ExtendsDeviceCreateInfo for PhysicalDeviceDescriptorHeapFeaturesEXT {}
// SAFETY: as above.
unsafe impl vk::ExtendsPhysicalDeviceProperties2 for PhysicalDeviceDescriptorHeapPropertiesEXT {}
// SAFETY: as above.
unsafe impl vk::ExtendsPipelineShaderStageCreateInfo for ShaderDescriptorSetAndBindingMappingInfoEXT {}
// SAFETY: as above.
unsafe impl vk::ExtendsShaderCreateInfoEXT for ShaderDescriptorSetAndBindingMappingInfoEXT {}
// SAFETY: as above.
unsafe impl vk::ExtendsCommandBufferInheritanceInfo for CommandBufferInheritanceDescriptorHeapInfoEXT {}

/// Asserts sizes and offsets in bytes with 64-bit pointers.
#[cfg(target_pointer_width = "64")]
macro_rules! layout {
    ($($name:ident $size:literal: $($field:ident $offset:literal),*;)*) => {$(
        const _: () = assert!(std::mem::size_of::<$name>() == $size $(&& std::mem::offset_of!($name, $field) == $offset)*);
    )*};
}

#[cfg(target_pointer_width = "64")]
layout! {
    HostAddressRangeEXT 16: address 0, size 8;
    HostAddressRangeConstEXT 16: address 0, size 8;
    DeviceAddressRangeKHR 16: address 0, size 8;
    TexelBufferDescriptorInfoEXT 40: s_type 0, p_next 8, format 16, address_range 24;
    ImageDescriptorInfoEXT 32: s_type 0, p_next 8, p_view 16, layout 24;
    ResourceDescriptorDataEXT 8: ;
    ResourceDescriptorInfoEXT 32: s_type 0, p_next 8, ty 16, data 24;
    BindHeapInfoEXT 48: s_type 0, p_next 8, heap_range 16, reserved_range_offset 32, reserved_range_size 40;
    PushDataInfoEXT 40: s_type 0, p_next 8, offset 16, data 24;
    DescriptorMappingSourceConstantOffsetEXT 24: heap_offset 0, heap_array_stride 4, p_embedded_sampler 8, sampler_heap_offset 16, sampler_heap_array_stride 20;
    DescriptorMappingSourcePushIndexEXT 48: heap_offset 0, push_offset 4, heap_index_stride 8, heap_array_stride 12, p_embedded_sampler 16, use_combined_image_sampler_index 24, sampler_heap_offset 28, sampler_push_offset 32, sampler_heap_index_stride 36, sampler_heap_array_stride 40;
    DescriptorMappingSourceIndirectIndexEXT 56: heap_offset 0, push_offset 4, address_offset 8, heap_index_stride 12, heap_array_stride 16, p_embedded_sampler 24, use_combined_image_sampler_index 32, sampler_heap_offset 36, sampler_push_offset 40, sampler_address_offset 44, sampler_heap_index_stride 48, sampler_heap_array_stride 52;
    DescriptorMappingSourceIndirectIndexArrayEXT 48: heap_offset 0, push_offset 4, address_offset 8, heap_index_stride 12, p_embedded_sampler 16, use_combined_image_sampler_index 24, sampler_heap_offset 28, sampler_push_offset 32, sampler_address_offset 36, sampler_heap_index_stride 40;
    DescriptorMappingSourceHeapDataEXT 8: heap_offset 0, push_offset 4;
    DescriptorMappingSourceIndirectAddressEXT 8: push_offset 0, address_offset 4;
    DescriptorMappingSourceShaderRecordIndexEXT 48: heap_offset 0, shader_record_offset 4, heap_index_stride 8, heap_array_stride 12, p_embedded_sampler 16, use_combined_image_sampler_index 24, sampler_heap_offset 28, sampler_shader_record_offset 32, sampler_heap_index_stride 36, sampler_heap_array_stride 40;
    DescriptorMappingSourceDataEXT 56: ;
    DescriptorSetAndBindingMappingEXT 96: s_type 0, p_next 8, descriptor_set 16, first_binding 20, binding_count 24, resource_mask 28, source 32, source_data 40;
    ShaderDescriptorSetAndBindingMappingInfoEXT 32: s_type 0, p_next 8, mapping_count 16, p_mappings 24;
    PhysicalDeviceDescriptorHeapFeaturesEXT 24: s_type 0, p_next 8, descriptor_heap 16, descriptor_heap_capture_replay 20;
    PhysicalDeviceDescriptorHeapPropertiesEXT 152: s_type 0, p_next 8, sampler_heap_alignment 16, resource_heap_alignment 24, max_sampler_heap_size 32, max_resource_heap_size 40, min_sampler_heap_reserved_range 48, min_sampler_heap_reserved_range_with_embedded 56, min_resource_heap_reserved_range 64, sampler_descriptor_size 72, image_descriptor_size 80, buffer_descriptor_size 88, sampler_descriptor_alignment 96, image_descriptor_alignment 104, buffer_descriptor_alignment 112, max_push_data_size 120, image_capture_replay_opaque_data_size 128, max_descriptor_heap_embedded_samplers 136, sampler_ycbcr_conversion_count 140, sparse_descriptor_heaps 144, protected_descriptor_heaps 148;
    CommandBufferInheritanceDescriptorHeapInfoEXT 32: s_type 0, p_next 8, p_sampler_heap_bind_info 16, p_resource_heap_bind_info 24;
}
