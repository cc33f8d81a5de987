//! AMD: Mesa's RADV and AMD's own driver, cards with and without the large BAR, and an APU.
#![forbid(unsafe_code)]

use ash::vk;
use ash::vk::BufferUsageFlags as Usage;

use super::{
    BufferRules, DescriptorBufferLimits, DescriptorPoolPolicy, FeaturesProfile, GIB, HeapProfile, ImageRules,
    KIB, LimitsProfile, MIB, Profile, Rounding, TEXEL, Tile, TypeProfile, descriptors, kind, local, rows,
    system, tile,
};

/// Swizzle modes of 256 bytes, 4 KiB and 64 KiB.
const TILES: &[Tile] =
    &[tile(0, 32, 8, 256), tile(16 * KIB, 128, 32, 4 * KIB), tile(256 * KIB, 512, 128, 64 * KIB)];

const RADV_LIMITS: LimitsProfile = LimitsProfile {
    buffer_image_granularity: 1,
    non_coherent_atom_size: 64,
    max_memory_allocation_count: u32::MAX,
    max_memory_allocation_size: 4 * GIB - 4,
    max_buffer_size: 4 * GIB - 4,
    min_memory_map_alignment: 4096,
    min_texel_buffer_offset_alignment: 4,
    min_uniform_buffer_offset_alignment: 4,
    min_storage_buffer_offset_alignment: 4,
    optimal_buffer_copy_offset_alignment: 1,
    optimal_buffer_copy_row_pitch_alignment: 1,
    max_image_dimension_1d: 16384,
    max_image_dimension_2d: 16384,
    max_image_dimension_3d: 2048,
    max_image_array_layers: 2048,
    descriptor_buffer: Some(RADV_DESCRIPTORS),
    descriptors: descriptors::AMD,
};

const RADV_FEATURES: FeaturesProfile = FeaturesProfile {
    memory_budget: true,
    memory_priority: true,
    pageable_device_local_memory: false,
    device_coherent_memory: true,
    buffer_device_address: true,
    timeline_semaphore: true,
    synchronization2: true,
    maintenance4: true,
    maintenance5: false,
    descriptor_indexing: true,
    descriptor_buffer: true,
    inline_uniform_block: true,
    mutable_descriptor_type: true,
    push_descriptor: true,
    external_memory: true,
    sparse_binding: true,
    protected_memory: false,
};

/// Types 1, 4 and 6 are the 32-bit twins of their neighbours, which only descriptor buffers may use.
const RADV_TYPES: u32 = 0b111_1010_1101;

/// The 32-bit twins: the driver hands descriptor buffers to shaders as 32-bit addresses.
const RADV_DESCRIPTOR_TYPES: u32 = 0b101_0010;

/// Images take what the hardware reads, 32 or 64 bytes; of a buffer it is 16, as of a sampler.
const RADV_DESCRIPTORS: DescriptorBufferLimits = DescriptorBufferLimits {
    offset_alignment: 32,
    max_bindings: 32,
    max_resource_bindings: 32,
    max_sampler_bindings: 32,
    sampler: 16,
    combined_image_sampler: 96,
    sampled_image: 64,
    storage_image: 32,
    input_attachment: 64,
    texel_buffer: 16,
    uniform_buffer: 16,
    storage_buffer: 16,
    acceleration_structure: 16,
    max_range: 0xffff_ffff,
    address_space: 0xffff_ffff,
    bufferless_push: true,
    single_array: true,
};

/// The strictest of all: sets at multiples of 256, few bindings, arrays of images and samplers apart.
const WINDOWS_DESCRIPTORS: DescriptorBufferLimits = DescriptorBufferLimits {
    offset_alignment: 256,
    max_bindings: 8,
    max_resource_bindings: 8,
    max_sampler_bindings: 4,
    combined_image_sampler: 48,
    sampled_image: 32,
    input_attachment: 32,
    max_range: 1 << 27,
    address_space: 1 << 31,
    bufferless_push: false,
    single_array: false,
    ..RADV_DESCRIPTORS
};

/// The types of every device whose memory is all mappable.
const ALL_MAPPABLE: &[TypeProfile] = &[
    kind(0x1, 1),
    kind(0x1, 1),
    kind(0x6, 0),
    kind(0x7, 1),
    kind(0x7, 1),
    kind(0xe, 0),
    kind(0xe, 0),
    kind(0xc1, 1),
    kind(0xc6, 0),
    kind(0xc7, 1),
    kind(0xce, 0),
];

const RADV_BUFFERS: BufferRules = BufferRules {
    alignment: 16,
    raised: &[],
    rounding: Rounding::ToAlignment,
    types: RADV_TYPES,
    descriptor_types: RADV_DESCRIPTOR_TYPES,
    prefers_dedicated_from: None,
};

const RADV_IMAGES: ImageRules = ImageRules {
    tiles: TILES,
    linear: rows(256, 256),
    compressed: None,
    color_types: RADV_TYPES,
    depth_types: RADV_TYPES,
    linear_types: RADV_TYPES,
    transient_types: 0,
    format_types: &[],
    prefers_dedicated_target_from: None,
    prefers_dedicated_from: None,
    external_requires_dedicated: true,
};

pub(super) static RX_6700_XT: Profile = Profile {
    name: "amd-rx-6700-xt",
    description: "RADV with resizable BAR: one device-local heap, all of it mappable, twins of types for 32-bit \
                  addresses, and device-coherent types.",
    source: "Heaps: vulkaninfo in github.com/HansKristian-Work/vkd3d-proton/issues/1432 (RX 6700 XT). Types: Mesa \
             23.1, radv_device.c, as it fills them. Limits: gpuinfo report of the RX 6600 (RADV NAVI23, Mesa 23.2) \
             in github.com/KhronosGroup/Vulkan-Profiles for granularity, counts and image sizes. Typical: the other \
             limits, tile sizes, the sizes of descriptors.",
    device_name: "AMD Radeon RX 6700 XT (RADV NAVI22)",
    device_type: vk::PhysicalDeviceType::DISCRETE_GPU,
    vendor_id: 0x1002,
    device_id: 0x73df,
    api_version: vk::make_api_version(0, 1, 3, 246),
    driver_version: 23 << 22 | 1 << 12,
    driver_id: vk::DriverId::MESA_RADV,
    descriptor_pools: DescriptorPoolPolicy::Strict,
    heaps: &[system(12_868_124_672), local(12_868_124_672)],
    types: ALL_MAPPABLE,
    limits: RADV_LIMITS,
    features: RADV_FEATURES,
    buffers: RADV_BUFFERS,
    images: RADV_IMAGES,
};

pub(super) static RX_5700: Profile = Profile {
    name: "amd-rx-5700",
    description: "RADV without resizable BAR: the window of 256 MiB is a heap, and taken out of the large one.",
    source: "Heaps: vulkaninfo in github.com/nowrep/obs-vkcapture/issues/6 (an 8 GiB card with RADV; the RX 5700 of \
             github.com/GpuZelenograd/memtest_vulkan/issues/1 has the same). Types: Mesa 23.1, radv_device.c. \
             Limits: see amd-rx-6700-xt.",
    device_name: "AMD Radeon RX 5700 (RADV NAVI10)",
    device_type: vk::PhysicalDeviceType::DISCRETE_GPU,
    vendor_id: 0x1002,
    device_id: 0x731f,
    api_version: vk::make_api_version(0, 1, 3, 246),
    driver_version: 23 << 22 | 1 << 12,
    driver_id: vk::DriverId::MESA_RADV,
    descriptor_pools: DescriptorPoolPolicy::Strict,
    heaps: &[local(8_321_499_136), system(8_573_157_376), local(256 * MIB)],
    types: &[
        kind(0x1, 0),
        kind(0x1, 0),
        kind(0x6, 1),
        kind(0x7, 2),
        kind(0x7, 2),
        kind(0xe, 1),
        kind(0xe, 1),
        kind(0xc1, 0),
        kind(0xc6, 1),
        kind(0xc7, 2),
        kind(0xce, 1),
    ],
    limits: RADV_LIMITS,
    features: RADV_FEATURES,
    buffers: RADV_BUFFERS,
    images: RADV_IMAGES,
};

pub(super) static RX_570: Profile = Profile {
    name: "amd-rx-570",
    description: "An older card with RADV: four types, small BAR, 4 GiB.",
    source: "Heaps and types: DXVK's log in github.com/doitsujin/dxvk/issues/2822 (RADV POLARIS10, Mesa 21.3.8), sizes \
             to the MiB. Typical: limits, tile sizes.",
    device_name: "AMD RADV POLARIS10",
    device_type: vk::PhysicalDeviceType::DISCRETE_GPU,
    vendor_id: 0x1002,
    device_id: 0x67df,
    api_version: vk::make_api_version(0, 1, 2, 195),
    driver_version: 21 << 22 | 3 << 12 | 8,
    driver_id: vk::DriverId::MESA_RADV,
    descriptor_pools: DescriptorPoolPolicy::Strict,
    heaps: &[local(3840 * MIB), system(4096 * MIB), local(256 * MIB)],
    types: &[kind(0x1, 0), kind(0x6, 1), kind(0x7, 2), kind(0xe, 1)],
    limits: LimitsProfile { buffer_image_granularity: 64, descriptor_buffer: None, ..RADV_LIMITS },
    features: FeaturesProfile {
        device_coherent_memory: false,
        descriptor_buffer: false,
        mutable_descriptor_type: false,
        maintenance4: false,
        ..RADV_FEATURES
    },
    buffers: BufferRules { types: 0b1111, descriptor_types: 0, ..RADV_BUFFERS },
    images: ImageRules { color_types: 0b1111, depth_types: 0b1111, linear_types: 0b1111, ..RADV_IMAGES },
};

pub(super) static RAPHAEL: Profile = Profile {
    name: "amd-raphael",
    description: "Integrated graphics with RADV: the driver calls two thirds of the system's memory device-local, one \
                  third not.",
    source: "Heaps and types: DXVK's log in github.com/bottlesdevs/Bottles/issues/4005 (RADV RAPHAEL_MENDOCINO, Mesa \
             25.1.3), sizes to the MiB. Limits: see amd-rx-6700-xt.",
    device_name: "AMD Radeon Graphics (RADV RAPHAEL_MENDOCINO)",
    device_type: vk::PhysicalDeviceType::INTEGRATED_GPU,
    vendor_id: 0x1002,
    device_id: 0x164e,
    api_version: vk::make_api_version(0, 1, 4, 311),
    driver_version: 25 << 22 | 1 << 12 | 3,
    driver_id: vk::DriverId::MESA_RADV,
    descriptor_pools: DescriptorPoolPolicy::Strict,
    heaps: &[system(5369 * MIB), local(10_738 * MIB)],
    types: ALL_MAPPABLE,
    limits: RADV_LIMITS,
    features: FeaturesProfile { maintenance5: true, ..RADV_FEATURES },
    buffers: RADV_BUFFERS,
    images: RADV_IMAGES,
};

pub(super) static RX_6800_WINDOWS: Profile = Profile {
    name: "amd-rx-6800-windows",
    description: "AMD's own driver with the large BAR: sixteen types, of which the second eight are twins that no \
                  resource may use, device-coherent types, a budget of 4096 allocations.",
    source: "Type count, order of types 0 to 3 and of 7 to 10: vulkaninfo in github.com/diharaw/dw-sample-framework/\
             issues/2 (RX 6800, driver 21.10.1), github.com/swaywm/sway/issues/8350 and github.com/GpuZelenograd/\
             memtest_vulkan/issues/22 (the same driver family). Heap sizes: a 16 GiB card with the large BAR on \
             a host of 64 GiB. Limits: gpuinfo report of the RX 7800 XT, driver 2.0.294, Windows 11, in \
             github.com/KhronosGroup/Vulkan-Profiles for granularity, counts and image sizes. Typical: the other \
             limits, buffer alignments, tile sizes, the sizes of descriptors.",
    device_name: "AMD Radeon RX 6800",
    device_type: vk::PhysicalDeviceType::DISCRETE_GPU,
    vendor_id: 0x1002,
    device_id: 0x73bf,
    api_version: vk::make_api_version(0, 1, 3, 262),
    driver_version: 2 << 22 | 294,
    driver_id: vk::DriverId::AMD_PROPRIETARY,
    descriptor_pools: DescriptorPoolPolicy::Strict,
    heaps: &[
        system(68_530_012_160),
        HeapProfile {
            size: 17_095_983_104,
            flags: vk::MemoryHeapFlags::from_raw(
                vk::MemoryHeapFlags::DEVICE_LOCAL.as_raw() | vk::MemoryHeapFlags::MULTI_INSTANCE.as_raw(),
            ),
        },
    ],
    types: &[
        kind(0x1, 1),
        kind(0x6, 0),
        kind(0x7, 1),
        kind(0xe, 0),
        kind(0xc1, 1),
        kind(0xc6, 0),
        kind(0xc7, 1),
        kind(0xce, 0),
        kind(0x1, 1),
        kind(0x6, 0),
        kind(0x7, 1),
        kind(0xe, 0),
        kind(0xc1, 1),
        kind(0xc6, 0),
        kind(0xc7, 1),
        kind(0xce, 0),
    ],
    limits: LimitsProfile {
        buffer_image_granularity: 1,
        non_coherent_atom_size: 128,
        max_memory_allocation_count: 4096,
        max_memory_allocation_size: 2 * GIB,
        max_buffer_size: 2 * GIB,
        min_memory_map_alignment: 64,
        min_texel_buffer_offset_alignment: 4,
        min_uniform_buffer_offset_alignment: 16,
        min_storage_buffer_offset_alignment: 4,
        optimal_buffer_copy_offset_alignment: 1,
        optimal_buffer_copy_row_pitch_alignment: 1,
        max_image_dimension_1d: 16384,
        max_image_dimension_2d: 16384,
        max_image_dimension_3d: 8192,
        max_image_array_layers: 8192,
        descriptor_buffer: Some(WINDOWS_DESCRIPTORS),
        descriptors: descriptors::AMD,
    },
    features: FeaturesProfile { pageable_device_local_memory: true, maintenance5: true, ..RADV_FEATURES },
    buffers: BufferRules {
        alignment: 4,
        raised: &[(TEXEL, 16), (Usage::UNIFORM_BUFFER, 256), (Usage::SHADER_DEVICE_ADDRESS, 16)],
        rounding: Rounding::ToAlignment,
        types: 0xff,
        descriptor_types: 0,
        prefers_dedicated_from: None,
    },
    images: ImageRules {
        color_types: 0xff,
        depth_types: 0xff,
        linear_types: 0xff,
        prefers_dedicated_target_from: Some(256 * KIB),
        ..RADV_IMAGES
    },
};
