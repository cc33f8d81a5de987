//! NVIDIA's driver: desktop cards before and after the driver merged its system memory types, and a data centre card.
#![forbid(unsafe_code)]

use ash::vk;
use ash::vk::BufferUsageFlags as Usage;

use super::{
    BufferRules, DescriptorBufferLimits, DescriptorPoolPolicy, FeaturesProfile, GIB, ImageRules, KIB,
    LimitsProfile, MIB, Profile, Rounding, Tile, descriptors, kind, local, rows, system,
};

/// Block-linear tiles: rows of 64 bytes, 8 rows to a unit of 512 bytes, 1 to 16 such units above one another.
const TILES: &[Tile] =
    &[Tile { from: 0, row_bytes: 64, min_rows: 8, max_rows: 128, level_bytes: 1, alignment: KIB }];

const LIMITS: LimitsProfile = LimitsProfile {
    buffer_image_granularity: KIB,
    non_coherent_atom_size: 64,
    max_memory_allocation_count: u32::MAX,
    max_memory_allocation_size: 4 * GIB - 2 * MIB,
    max_buffer_size: 1 << 40,
    min_memory_map_alignment: 64,
    min_texel_buffer_offset_alignment: 16,
    min_uniform_buffer_offset_alignment: 64,
    min_storage_buffer_offset_alignment: 16,
    optimal_buffer_copy_offset_alignment: 1,
    optimal_buffer_copy_row_pitch_alignment: 1,
    max_image_dimension_1d: 32768,
    max_image_dimension_2d: 32768,
    max_image_dimension_3d: 16384,
    max_image_array_layers: 2048,
    descriptors: descriptors::NVIDIA,
    descriptor_buffer: Some(DESCRIPTORS),
};

/// A sampler or an image is an index into a table of the driver's, a buffer an address.
const DESCRIPTORS: DescriptorBufferLimits = DescriptorBufferLimits {
    offset_alignment: 64,
    max_bindings: 32,
    max_resource_bindings: 32,
    max_sampler_bindings: 32,
    sampler: 4,
    combined_image_sampler: 4,
    sampled_image: 4,
    storage_image: 4,
    input_attachment: 4,
    texel_buffer: 16,
    uniform_buffer: 8,
    storage_buffer: 16,
    acceleration_structure: 8,
    max_range: 1 << 40,
    address_space: 1 << 40,
    bufferless_push: true,
    single_array: true,
};

const FEATURES: FeaturesProfile = FeaturesProfile {
    memory_budget: true,
    memory_priority: true,
    pageable_device_local_memory: true,
    device_coherent_memory: false,
    buffer_device_address: true,
    timeline_semaphore: true,
    synchronization2: true,
    maintenance4: true,
    maintenance5: true,
    descriptor_indexing: true,
    descriptor_buffer: true,
    inline_uniform_block: true,
    mutable_descriptor_type: true,
    push_descriptor: true,
    external_memory: true,
    sparse_binding: true,
    protected_memory: false,
};

/// Index and indirect buffers are aligned to 4, uniform buffers to the limit for their offsets, all others to 16.
const BUFFERS: BufferRules = BufferRules {
    alignment: 4,
    raised: &[
        (
            Usage::from_raw(
                !(Usage::INDEX_BUFFER.as_raw()
                    | Usage::INDIRECT_BUFFER.as_raw()
                    | Usage::UNIFORM_BUFFER.as_raw()),
            ),
            16,
        ),
        (Usage::UNIFORM_BUFFER, 64),
    ],
    rounding: Rounding::ToAlignment,
    types: 0b1_1111,
    descriptor_types: 0,
    prefers_dedicated_from: Some(64 * MIB),
};

const IMAGES: ImageRules = ImageRules {
    tiles: TILES,
    linear: rows(128, 128),
    compressed: None,
    color_types: 0b0_0011,
    depth_types: 0b0_0011,
    linear_types: 0b1_1111,
    transient_types: 0,
    format_types: &[],
    prefers_dedicated_target_from: Some(2 * MIB),
    prefers_dedicated_from: Some(24 * MIB),
    external_requires_dedicated: true,
};

pub(super) static H200: Profile = Profile {
    name: "nvidia-h200",
    description: "Data centre card: all 140 GiB mappable, one memory type without any flag, optimal images in no type \
                  that the host sees.",
    source: "Read from the device: NVIDIA H200, driver 580.159.04, Linux: heaps, types, limits, and the requirements \
             of 90 buffers and some 600 images. The size of heap 1 is that of the host. Dedicated preferences: the \
             thresholds lie between sizes that were read.",
    device_name: "NVIDIA H200",
    device_type: vk::PhysicalDeviceType::DISCRETE_GPU,
    vendor_id: 0x10de,
    device_id: 0x2335,
    api_version: vk::make_api_version(0, 1, 4, 312),
    driver_version: 0x9127_c100,
    driver_id: vk::DriverId::NVIDIA_PROPRIETARY,
    descriptor_pools: DescriptorPoolPolicy::CountsSets,
    heaps: &[local(150_754_820_096), system(101_361_423_360)],
    types: &[kind(0x0, 1), kind(0x1, 0), kind(0x6, 1), kind(0xe, 1), kind(0x7, 0)],
    limits: LIMITS,
    features: FEATURES,
    buffers: BUFFERS,
    images: IMAGES,
};

pub(super) static RTX_5070_TI: Profile = Profile {
    name: "nvidia-rtx-5070-ti",
    description: "Desktop card without resizable BAR: of 16 GiB the host sees a window of 214 MiB, which is a heap of \
                  its own.",
    source: "Heaps and types: DXVK's log in github.com/xoxor4d/gta4-rtx/issues/138 (GeForce RTX 5070 Ti, driver \
             610.88, Windows), sizes to the MiB. Limits, requirements: as read from an H200 with driver 580; the \
             allocation count of Windows drivers is typical.",
    device_name: "NVIDIA GeForce RTX 5070 Ti",
    device_type: vk::PhysicalDeviceType::DISCRETE_GPU,
    vendor_id: 0x10de,
    device_id: 0x2c05,
    api_version: vk::make_api_version(0, 1, 4, 341),
    driver_version: 610 << 22 | 88 << 14,
    driver_id: vk::DriverId::NVIDIA_PROPRIETARY,
    descriptor_pools: DescriptorPoolPolicy::CountsSets,
    heaps: &[local(15_997 * MIB), system(16_309 * MIB), local(214 * MIB)],
    types: &[kind(0x0, 1), kind(0x1, 0), kind(0x6, 1), kind(0xe, 1), kind(0x7, 2)],
    limits: LimitsProfile { max_memory_allocation_count: 4096, ..LIMITS },
    features: FEATURES,
    buffers: BUFFERS,
    images: IMAGES,
};

pub(super) static GTX_1060: Profile = Profile {
    name: "nvidia-gtx-1060",
    description: "The older driver's eleven types: seven of system memory without a flag, one for each kind of image; \
                  a window of 246 MiB.",
    source: "Heaps and types: DXVK's log in github.com/doitsujin/dxvk/issues/1971 (GeForce GTX 1060, driver 460.56, \
             Linux), sizes to the MiB; which type serves which format: vulkaninfo of a 6 GiB card with the same \
             types. Limits: gpuinfo report of the GTX 1060, driver 535.86.5, in github.com/KhronosGroup/\
             Vulkan-Profiles. Typical: the type bits of buffers. Requirements: as read from an H200 with driver 580.",
    device_name: "GeForce GTX 1060",
    device_type: vk::PhysicalDeviceType::DISCRETE_GPU,
    vendor_id: 0x10de,
    device_id: 0x1c03,
    api_version: vk::make_api_version(0, 1, 2, 155),
    driver_version: 460 << 22 | 56 << 14,
    driver_id: vk::DriverId::NVIDIA_PROPRIETARY,
    descriptor_pools: DescriptorPoolPolicy::CountsSets,
    heaps: &[local(6144 * MIB), system(11_887 * MIB), local(246 * MIB)],
    types: &[
        kind(0x0, 1),
        kind(0x0, 1),
        kind(0x0, 1),
        kind(0x0, 1),
        kind(0x0, 1),
        kind(0x0, 1),
        kind(0x0, 1),
        kind(0x1, 0),
        kind(0x6, 1),
        kind(0xe, 1),
        kind(0x7, 2),
    ],
    limits: LimitsProfile { min_uniform_buffer_offset_alignment: 256, descriptor_buffer: None, ..LIMITS },
    features: FeaturesProfile {
        memory_priority: false,
        pageable_device_local_memory: false,
        maintenance4: false,
        maintenance5: false,
        descriptor_buffer: false,
        mutable_descriptor_type: false,
        synchronization2: false,
        ..FEATURES
    },
    buffers: BufferRules {
        raised: &[
            (
                Usage::from_raw(
                    !(Usage::INDEX_BUFFER.as_raw()
                        | Usage::INDIRECT_BUFFER.as_raw()
                        | Usage::UNIFORM_BUFFER.as_raw()),
                ),
                16,
            ),
            (Usage::UNIFORM_BUFFER, 256),
        ],
        types: 0b111_1000_0001,
        ..BUFFERS
    },
    images: ImageRules {
        color_types: 0b000_1000_0010,
        depth_types: 0b000_1000_0000,
        linear_types: 0b111_1000_0001,
        format_types: &[
            (vk::Format::D16_UNORM, 1 << 2),
            (vk::Format::X8_D24_UNORM_PACK32, 1 << 3),
            (vk::Format::D24_UNORM_S8_UINT, 1 << 3),
            (vk::Format::D32_SFLOAT, 1 << 4),
            (vk::Format::D32_SFLOAT_S8_UINT, 1 << 5),
            (vk::Format::S8_UINT, 1 << 6),
        ],
        ..IMAGES
    },
};
