//! Drivers that run on the CPU.
#![forbid(unsafe_code)]

use ash::vk;

use super::{
    BufferRules, DescriptorPoolPolicy, FeaturesProfile, GIB, ImageRules, KIB, LimitsProfile, Profile,
    Rounding, Tile, descriptors, kind, local, tile,
};

const IMAGES: ImageRules = ImageRules {
    tiles: &[tile(0, 64, 4, 16)],
    linear: tile(0, 64, 4, 16),
    compressed: Some(Tile { level_bytes: 64, ..tile(0, 1, 1, 16) }),
    color_types: 0b1,
    depth_types: 0b1,
    linear_types: 0b1,
    transient_types: 0,
    format_types: &[],
    prefers_dedicated_target_from: None,
    prefers_dedicated_from: None,
    external_requires_dedicated: false,
};

const FEATURES: FeaturesProfile = FeaturesProfile {
    memory_budget: false,
    memory_priority: false,
    pageable_device_local_memory: false,
    device_coherent_memory: false,
    buffer_device_address: true,
    timeline_semaphore: true,
    synchronization2: true,
    maintenance4: true,
    maintenance5: false,
    descriptor_indexing: false,
    descriptor_buffer: false,
    inline_uniform_block: true,
    mutable_descriptor_type: false,
    push_descriptor: true,
    external_memory: true,
    sparse_binding: false,
    protected_memory: false,
};

pub(super) static LAVAPIPE: Profile = Profile {
    name: "lavapipe",
    description: "Mesa's software driver: one heap, one type that is everything at once.",
    source: "Read from the driver: Mesa 22.3.6 (LLVM 15): heap, type, limits, extensions, and the requirements of 110 \
             buffers and some 600 images.",
    device_name: "llvmpipe (LLVM 15.0.6, 256 bits)",
    device_type: vk::PhysicalDeviceType::CPU,
    vendor_id: 0x1_0005,
    device_id: 0,
    api_version: vk::make_api_version(0, 1, 3, 230),
    driver_version: 1,
    driver_id: vk::DriverId::MESA_LLVMPIPE,
    descriptor_pools: DescriptorPoolPolicy::NeverRefuses,
    heaps: &[local(2 * GIB)],
    types: &[kind(0xf, 0)],
    limits: LimitsProfile {
        buffer_image_granularity: 64,
        non_coherent_atom_size: 64,
        max_memory_allocation_count: u32::MAX,
        max_memory_allocation_size: 2 * GIB,
        max_buffer_size: 4 * GIB - 1,
        min_memory_map_alignment: 64,
        min_texel_buffer_offset_alignment: 16,
        min_uniform_buffer_offset_alignment: 16,
        min_storage_buffer_offset_alignment: 16,
        optimal_buffer_copy_offset_alignment: 128,
        optimal_buffer_copy_row_pitch_alignment: 128,
        max_image_dimension_1d: 16384,
        max_image_dimension_2d: 16384,
        max_image_dimension_3d: 4096,
        max_image_array_layers: 2048,
        descriptor_buffer: None,
        descriptors: descriptors::LAVAPIPE,
    },
    features: FEATURES,
    buffers: BufferRules {
        alignment: 64,
        raised: &[],
        rounding: Rounding::Exact,
        types: 0b1,
        descriptor_types: 0,
        prefers_dedicated_from: None,
    },
    images: IMAGES,
};

pub(super) static SWIFTSHADER: Profile = Profile {
    name: "swiftshader",
    description: "Google's software driver as Vulkan 1.1: the largest granularity there is, 128 KiB, and a budget of \
                  4096 allocations.",
    source: "Limits: VkPhysicalDevice.cpp of github.com/google/swiftshader at 00424c1b. Typical: the heap, the \
             offset alignments, the alignments of buffers and images.",
    device_name: "SwiftShader Device",
    device_type: vk::PhysicalDeviceType::CPU,
    vendor_id: 0x1ae0,
    device_id: 0xc0de,
    api_version: vk::make_api_version(0, 1, 1, 0),
    driver_version: 5 << 22,
    driver_id: vk::DriverId::GOOGLE_SWIFTSHADER,
    descriptor_pools: DescriptorPoolPolicy::NeverRefuses,
    heaps: &[local(2 * GIB)],
    types: &[kind(0xf, 0)],
    limits: LimitsProfile {
        buffer_image_granularity: 128 * KIB,
        non_coherent_atom_size: 256,
        max_memory_allocation_count: 4096,
        max_memory_allocation_size: 2 * GIB,
        max_buffer_size: 2 * GIB,
        min_memory_map_alignment: 64,
        min_texel_buffer_offset_alignment: 256,
        min_uniform_buffer_offset_alignment: 256,
        min_storage_buffer_offset_alignment: 256,
        optimal_buffer_copy_offset_alignment: 64,
        optimal_buffer_copy_row_pitch_alignment: 64,
        max_image_dimension_1d: 16384,
        max_image_dimension_2d: 16384,
        max_image_dimension_3d: 2048,
        max_image_array_layers: 2048,
        descriptor_buffer: None,
        descriptors: descriptors::SWIFTSHADER,
    },
    features: FeaturesProfile {
        buffer_device_address: false,
        timeline_semaphore: false,
        synchronization2: false,
        maintenance4: false,
        inline_uniform_block: false,
        push_descriptor: false,
        ..FEATURES
    },
    buffers: BufferRules {
        alignment: 256,
        raised: &[],
        rounding: Rounding::ToAlignment,
        types: 0b1,
        descriptor_types: 0,
        prefers_dedicated_from: None,
    },
    images: ImageRules {
        tiles: &[tile(0, 16, 2, 256)],
        linear: tile(0, 16, 1, 256),
        compressed: None,
        ..IMAGES
    },
};
