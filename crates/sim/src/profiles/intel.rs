//! Intel with Mesa's ANV: integrated with the last-level cache shared, and discrete.
#![forbid(unsafe_code)]

use ash::vk;
use ash::vk::BufferUsageFlags as Usage;

use super::{
    BufferRules, DescriptorPoolPolicy, FeaturesProfile, GIB, ImageRules, KIB, LimitsProfile, MIB, Profile,
    Rounding, Tile, descriptors, kind, local, rows, system, tile,
};

/// Y tiles, or Tile4: 128 bytes by 32 rows.
const TILES: &[Tile] = &[tile(0, 128, 32, 4 * KIB)];

const LIMITS: LimitsProfile = LimitsProfile {
    buffer_image_granularity: 1,
    non_coherent_atom_size: 64,
    max_memory_allocation_count: u32::MAX,
    max_memory_allocation_size: 4 * GIB,
    max_buffer_size: 4 * GIB,
    min_memory_map_alignment: 4096,
    min_texel_buffer_offset_alignment: 16,
    min_uniform_buffer_offset_alignment: 64,
    min_storage_buffer_offset_alignment: 4,
    optimal_buffer_copy_offset_alignment: 128,
    optimal_buffer_copy_row_pitch_alignment: 128,
    max_image_dimension_1d: 16384,
    max_image_dimension_2d: 16384,
    max_image_dimension_3d: 2048,
    max_image_array_layers: 2048,
    descriptor_buffer: None,
    descriptors: descriptors::INTEL,
};

const FEATURES: FeaturesProfile = FeaturesProfile {
    memory_budget: true,
    memory_priority: false,
    pageable_device_local_memory: false,
    device_coherent_memory: false,
    buffer_device_address: true,
    timeline_semaphore: true,
    synchronization2: true,
    maintenance4: true,
    maintenance5: false,
    descriptor_indexing: true,
    descriptor_buffer: false,
    inline_uniform_block: true,
    mutable_descriptor_type: true,
    push_descriptor: true,
    external_memory: true,
    sparse_binding: false,
    protected_memory: false,
};

const BUFFERS: BufferRules = BufferRules {
    alignment: 16,
    raised: &[(Usage::UNIFORM_BUFFER, 64)],
    rounding: Rounding::To(4),
    types: 0b111,
    descriptor_types: 0,
    prefers_dedicated_from: None,
};

const IMAGES: ImageRules = ImageRules {
    tiles: TILES,
    linear: rows(64, 64),
    compressed: None,
    color_types: 0b111,
    depth_types: 0b111,
    linear_types: 0b111,
    transient_types: 0,
    format_types: &[],
    prefers_dedicated_target_from: None,
    prefers_dedicated_from: None,
    external_requires_dedicated: true,
};

pub(super) static UHD_630: Profile = Profile {
    name: "intel-uhd-630",
    description: "Integrated graphics with one heap and one type that is everything at once.",
    source: "Heap and type: DXVK's log in github.com/doitsujin/dxvk/issues/1971 (UHD Graphics 630, Mesa 20.2.6), size \
             to the MiB. Tiles: the hardware's documented 4 KiB tile. Typical: limits, buffer alignments.",
    device_name: "Intel(R) UHD Graphics 630 (CFL GT2)",
    device_type: vk::PhysicalDeviceType::INTEGRATED_GPU,
    vendor_id: 0x8086,
    device_id: 0x3e9b,
    api_version: vk::make_api_version(0, 1, 2, 145),
    driver_version: 20 << 22 | 2 << 12 | 6,
    driver_id: vk::DriverId::INTEL_OPEN_SOURCE_MESA,
    descriptor_pools: DescriptorPoolPolicy::Strict,
    heaps: &[local(11_887 * MIB)],
    types: &[kind(0xf, 0)],
    limits: LimitsProfile {
        buffer_image_granularity: 64,
        max_memory_allocation_size: 2 * GIB,
        max_buffer_size: 2 * GIB,
        ..LIMITS
    },
    features: FeaturesProfile {
        synchronization2: false,
        maintenance4: false,
        mutable_descriptor_type: false,
        ..FEATURES
    },
    buffers: BufferRules { types: 0b1, ..BUFFERS },
    images: ImageRules { color_types: 0b1, depth_types: 0b1, linear_types: 0b1, ..IMAGES },
};

pub(super) static ARC_A770: Profile = Profile {
    name: "intel-arc-a770",
    description: "Discrete card with the whole memory mappable: no type of system memory is uncached.",
    source: "Types: Mesa 23, anv_i915_physical_device_init_memory_types with local memory. Heap sizes: a 16 GiB card \
             on a host that gives it 32 GiB (typical). Limits: gpuinfo report of the Arc A380 (Mesa 23.0) in \
             github.com/KhronosGroup/Vulkan-Profiles for granularity, counts and image sizes. Tiles: the hardware's \
             documented 4 KiB tile. Typical: the other limits, buffer alignments.",
    device_name: "Intel(R) Arc(tm) A770 Graphics (DG2)",
    device_type: vk::PhysicalDeviceType::DISCRETE_GPU,
    vendor_id: 0x8086,
    device_id: 0x56a0,
    api_version: vk::make_api_version(0, 1, 3, 238),
    driver_version: 23 << 22,
    driver_id: vk::DriverId::INTEL_OPEN_SOURCE_MESA,
    descriptor_pools: DescriptorPoolPolicy::Strict,
    heaps: &[local(16 * GIB), system(32 * GIB)],
    types: &[kind(0x1, 0), kind(0xe, 1), kind(0x7, 0)],
    limits: LIMITS,
    features: FEATURES,
    buffers: BUFFERS,
    images: IMAGES,
};
