//! Apple with MoltenVK.
#![forbid(unsafe_code)]

use ash::vk;

use super::{
    BufferRules, DescriptorPoolPolicy, FeaturesProfile, GIB, ImageRules, KIB, LimitsProfile, Profile,
    Rounding, descriptors, kind, local, rows, tile,
};

pub(super) static M1: Profile = Profile {
    name: "apple-m1",
    description: "One heap; a cached type without coherence, which comes after the coherent one although Vulkan wants \
                  it before; memoryless attachments; optimal images not in the coherent type; a granularity of 256.",
    source: "Heap and types: vulkaninfo in github.com/KhronosGroup/MoltenVK/issues/2292 (M1 of 16 GiB), with the \
             order of types as it is there, and which serve which images. Limits: gpuinfo report of the M1, MoltenVK \
             1.1.3, in github.com/KhronosGroup/Vulkan-Profiles. Typical: the largest allocation, buffer alignments, \
             tile sizes.",
    device_name: "Apple M1",
    device_type: vk::PhysicalDeviceType::INTEGRATED_GPU,
    vendor_id: 0x106b,
    device_id: 0xc09_03ef,
    api_version: vk::make_api_version(0, 1, 2, 283),
    driver_version: 10_210,
    driver_id: vk::DriverId::MOLTENVK,
    descriptor_pools: DescriptorPoolPolicy::NeverRefuses,
    heaps: &[local(16 * GIB)],
    types: &[kind(0x1, 0), kind(0xf, 0), kind(0xb, 0), kind(0x11, 0)],
    limits: LimitsProfile {
        buffer_image_granularity: 256,
        non_coherent_atom_size: 256,
        max_memory_allocation_count: 1 << 30,
        max_memory_allocation_size: 8 * GIB,
        max_buffer_size: 8 * GIB,
        min_memory_map_alignment: 256,
        min_texel_buffer_offset_alignment: 16,
        min_uniform_buffer_offset_alignment: 256,
        min_storage_buffer_offset_alignment: 16,
        optimal_buffer_copy_offset_alignment: 16,
        optimal_buffer_copy_row_pitch_alignment: 1,
        max_image_dimension_1d: 16384,
        max_image_dimension_2d: 16384,
        max_image_dimension_3d: 2048,
        max_image_array_layers: 2048,
        descriptor_buffer: None,
        descriptors: descriptors::APPLE,
    },
    features: FeaturesProfile {
        memory_budget: true,
        memory_priority: false,
        pageable_device_local_memory: false,
        device_coherent_memory: false,
        buffer_device_address: true,
        timeline_semaphore: true,
        synchronization2: true,
        maintenance4: false,
        maintenance5: false,
        descriptor_indexing: true,
        descriptor_buffer: false,
        inline_uniform_block: true,
        mutable_descriptor_type: false,
        push_descriptor: true,
        external_memory: false,
        sparse_binding: false,
        protected_memory: false,
    },
    buffers: BufferRules {
        alignment: 16,
        raised: &[(vk::BufferUsageFlags::UNIFORM_BUFFER, 256)],
        rounding: Rounding::ToAlignment,
        types: 0b0111,
        descriptor_types: 0,
        prefers_dedicated_from: None,
    },
    images: ImageRules {
        tiles: &[tile(0, 64, 8, 256), tile(16 * KIB, 128, 32, 16 * KIB)],
        linear: rows(256, 256),
        compressed: None,
        color_types: 0b0101,
        depth_types: 0b0001,
        linear_types: 0b0111,
        transient_types: 0b1000,
        format_types: &[],
        prefers_dedicated_target_from: None,
        prefers_dedicated_from: None,
        external_requires_dedicated: false,
    },
};
