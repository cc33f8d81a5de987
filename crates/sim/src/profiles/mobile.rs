//! Tile-based GPUs of phones and small boards.
#![forbid(unsafe_code)]

use ash::vk;

use super::{
    BufferRules, DescriptorPoolPolicy, FeaturesProfile, GIB, ImageRules, KIB, LimitsProfile, MIB, Profile,
    Rounding, TEXEL, descriptors, kind, local, rows, tile,
};

/// What these drivers have in common: little.
const FEATURES: FeaturesProfile = FeaturesProfile {
    memory_budget: false,
    memory_priority: false,
    pageable_device_local_memory: false,
    device_coherent_memory: false,
    buffer_device_address: false,
    timeline_semaphore: true,
    synchronization2: false,
    maintenance4: false,
    maintenance5: false,
    descriptor_indexing: false,
    descriptor_buffer: false,
    inline_uniform_block: false,
    mutable_descriptor_type: false,
    push_descriptor: false,
    external_memory: true,
    sparse_binding: false,
    protected_memory: false,
};

const LIMITS: LimitsProfile = LimitsProfile {
    buffer_image_granularity: 1,
    non_coherent_atom_size: 64,
    max_memory_allocation_count: u32::MAX,
    max_memory_allocation_size: 2 * GIB - 4 * KIB,
    max_buffer_size: 2 * GIB - 4 * KIB,
    min_memory_map_alignment: 64,
    min_texel_buffer_offset_alignment: 64,
    min_uniform_buffer_offset_alignment: 64,
    min_storage_buffer_offset_alignment: 64,
    optimal_buffer_copy_offset_alignment: 64,
    optimal_buffer_copy_row_pitch_alignment: 64,
    max_image_dimension_1d: 16384,
    max_image_dimension_2d: 16384,
    max_image_dimension_3d: 2048,
    max_image_array_layers: 2048,
    descriptor_buffer: None,
    descriptors: descriptors::MOBILE,
};

const BUFFERS: BufferRules = BufferRules {
    alignment: 64,
    raised: &[],
    rounding: Rounding::ToAlignment,
    types: 0b1,
    descriptor_types: 0,
    prefers_dedicated_from: None,
};

const IMAGES: ImageRules = ImageRules {
    tiles: &[tile(0, 64, 8, 4 * KIB)],
    linear: rows(64, 64),
    compressed: None,
    color_types: 0b1,
    depth_types: 0b1,
    linear_types: 0b1,
    transient_types: 0,
    format_types: &[],
    prefers_dedicated_target_from: None,
    prefers_dedicated_from: None,
    external_requires_dedicated: true,
};

pub(super) static ADRENO_620: Profile = Profile {
    name: "qualcomm-adreno-620",
    description: "Cached memory without coherence, images in device-only memory alone, lazily allocated attachments, a \
                  protected heap; a coherent type after the one that contains it.",
    source: "Heaps, type count and types 0 to 2, and which serve images: vulkaninfo in github.com/termux/\
             termux-packages/pull/7165 (Adreno 620, driver 512.490, Android). Typical: types 3 to 5, limits, \
             alignments.",
    device_name: "Adreno (TM) 620",
    device_type: vk::PhysicalDeviceType::INTEGRATED_GPU,
    vendor_id: 0x5143,
    device_id: 0x602_0000,
    api_version: vk::make_api_version(0, 1, 1, 128),
    driver_version: 0x801e_a000,
    driver_id: vk::DriverId::QUALCOMM_PROPRIETARY,
    descriptor_pools: DescriptorPoolPolicy::Strict,
    heaps: &[local(7_819_997_184), local(256 * MIB)],
    types: &[kind(0x1, 0), kind(0xb, 0), kind(0xf, 0), kind(0x7, 0), kind(0x11, 0), kind(0x21, 1)],
    limits: LIMITS,
    features: FeaturesProfile { protected_memory: true, push_descriptor: true, ..FEATURES },
    buffers: BufferRules { types: 0b10_1111, ..BUFFERS },
    images: ImageRules {
        tiles: &[tile(0, 256, 16, 4 * KIB)],
        color_types: 0b10_0001,
        depth_types: 0b10_0001,
        linear_types: 0b10_0001,
        transient_types: 0b01_0000,
        ..IMAGES
    },
};

pub(super) static MALI_G52: Profile = Profile {
    name: "arm-mali-g52",
    description: "Three types: coherent, cached without coherence, lazily allocated. The host sees all but the last.",
    source: "Types: DXVK's log in github.com/brunodev85/winlator/issues/1117 (Mali-G52 MC2, driver 32.1.0). Typical: \
             the size of the heap, limits, alignments; a granularity above 1 is what github.com/google/filament/pull/\
             4128 met on Mali.",
    device_name: "Mali-G52 MC2",
    device_type: vk::PhysicalDeviceType::INTEGRATED_GPU,
    vendor_id: 0x13b5,
    device_id: 0x7402_1000,
    api_version: vk::make_api_version(0, 1, 1, 128),
    driver_version: 32 << 22 | 1 << 12,
    driver_id: vk::DriverId::ARM_PROPRIETARY,
    descriptor_pools: DescriptorPoolPolicy::Strict,
    heaps: &[local(4096 * MIB)],
    types: &[kind(0x7, 0), kind(0xb, 0), kind(0x11, 0)],
    limits: LimitsProfile {
        buffer_image_granularity: 4 * KIB,
        min_uniform_buffer_offset_alignment: 16,
        min_storage_buffer_offset_alignment: 64,
        max_image_dimension_3d: 8192,
        ..LIMITS
    },
    features: FEATURES,
    buffers: BufferRules { types: 0b011, ..BUFFERS },
    images: ImageRules {
        tiles: &[tile(0, 64, 16, 64)],
        color_types: 0b011,
        depth_types: 0b011,
        linear_types: 0b011,
        transient_types: 0b100,
        ..IMAGES
    },
};

const V3DV_LIMITS: LimitsProfile = LimitsProfile {
    buffer_image_granularity: 256,
    non_coherent_atom_size: 256,
    max_memory_allocation_count: u32::MAX,
    max_memory_allocation_size: GIB,
    max_buffer_size: GIB,
    min_memory_map_alignment: 4096,
    min_texel_buffer_offset_alignment: 64,
    min_uniform_buffer_offset_alignment: 32,
    min_storage_buffer_offset_alignment: 32,
    optimal_buffer_copy_offset_alignment: 64,
    optimal_buffer_copy_row_pitch_alignment: 64,
    max_image_dimension_1d: 4096,
    max_image_dimension_2d: 4096,
    max_image_dimension_3d: 4096,
    max_image_array_layers: 2048,
    descriptor_buffer: None,
    descriptors: descriptors::MOBILE,
};

const V3DV_BUFFERS: BufferRules = BufferRules {
    alignment: 256,
    raised: &[(TEXEL, 256)],
    rounding: Rounding::ToAlignment,
    types: 0b1,
    descriptor_types: 0,
    prefers_dedicated_from: None,
};

pub(super) static RASPBERRY_PI_4: Profile = Profile {
    name: "broadcom-raspberry-pi-4",
    description: "One small heap of under 1 GiB, one type, which is not cached: reading it back is slow, but possible.",
    source: "Heap and type: vulkaninfo in github.com/GPUOpen-LibrariesAndSDKs/VulkanMemoryAllocator/issues/362 (V3D \
             4.2, Mesa 23.1.3). Uniform alignment and image size: github.com/ZDoom/Raze/issues/456. Typical: the \
             other limits, alignments.",
    device_name: "V3D 4.2",
    device_type: vk::PhysicalDeviceType::INTEGRATED_GPU,
    vendor_id: 0x14e4,
    device_id: 0xbe48_5fd3,
    api_version: vk::make_api_version(0, 1, 2, 246),
    driver_version: 96_473_091,
    driver_id: vk::DriverId::MESA_V3DV,
    descriptor_pools: DescriptorPoolPolicy::Strict,
    heaps: &[local(969_521_152)],
    types: &[kind(0x7, 0)],
    limits: V3DV_LIMITS,
    features: FeaturesProfile {
        memory_budget: true,
        inline_uniform_block: true,
        synchronization2: true,
        ..FEATURES
    },
    buffers: V3DV_BUFFERS,
    images: IMAGES,
};

pub(super) static RASPBERRY_PI_5: Profile = Profile {
    name: "broadcom-raspberry-pi-5",
    description: "As the Raspberry Pi 4, with a heap of 4 GiB.",
    source: "Heap and type: vulkaninfo in github.com/ggml-org/llama.cpp/issues/5237 (Raspberry Pi 5). Typical: limits, \
             alignments.",
    device_name: "V3D 7.1.7",
    device_type: vk::PhysicalDeviceType::INTEGRATED_GPU,
    vendor_id: 0x14e4,
    device_id: 0x5570_1c33,
    api_version: vk::make_api_version(0, 1, 2, 255),
    driver_version: 23 << 22 | 2 << 12 | 1,
    driver_id: vk::DriverId::MESA_V3DV,
    descriptor_pools: DescriptorPoolPolicy::Strict,
    heaps: &[local(4 * GIB)],
    types: &[kind(0x7, 0)],
    limits: V3DV_LIMITS,
    features: FeaturesProfile {
        memory_budget: true,
        inline_uniform_block: true,
        synchronization2: true,
        maintenance4: true,
        ..FEATURES
    },
    buffers: V3DV_BUFFERS,
    images: IMAGES,
};

pub(super) static POWERVR_GX6250: Profile = Profile {
    name: "imagination-powervr-gx6250",
    description: "Vulkan 1.0 with one heap and one type.",
    source: "Heap, type and limits: vulkaninfo in the mail of 30 May 2024 to dri-devel, \"powervr: MT8173 GPU support\" \
             (PowerVR Rogue GX6250, Mesa 24.0.8). Typical: the limits that it does not print, alignments.",
    device_name: "Imagination PowerVR Rogue GX6250",
    device_type: vk::PhysicalDeviceType::INTEGRATED_GPU,
    vendor_id: 0x1010,
    device_id: 0x6250,
    api_version: vk::make_api_version(0, 1, 0, 274),
    driver_version: 100_663_304,
    driver_id: vk::DriverId::IMAGINATION_OPEN_SOURCE_MESA,
    descriptor_pools: DescriptorPoolPolicy::Strict,
    heaps: &[local(1_752_969_216)],
    types: &[kind(0x7, 0)],
    limits: LimitsProfile {
        min_texel_buffer_offset_alignment: 16,
        min_uniform_buffer_offset_alignment: 4,
        min_storage_buffer_offset_alignment: 4,
        max_image_dimension_1d: 8192,
        max_image_dimension_2d: 8192,
        ..LIMITS
    },
    features: FeaturesProfile { timeline_semaphore: false, ..FEATURES },
    buffers: BufferRules { alignment: 16, ..BUFFERS },
    images: IMAGES,
};
