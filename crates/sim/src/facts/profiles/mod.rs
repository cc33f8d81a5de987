//! The GPUs that the simulated device can pose as: real memory layouts, each with its source.
//!
//! A [`Profile`] is data: heaps and memory types in the driver's own order, the limits and features that touch memory,
//! and the rules by which the driver sizes, aligns and places buffers and images.

pub(crate) mod pool_policy;

use std::ops::Deref;
use std::sync::LazyLock;

use ash::vk;

use crate::facts::arithmetic::{ALIGNMENT, widen};
use crate::facts::profiles::pool_policy::DescriptorPoolPolicy;

mod descriptor_buffer;
mod descriptor_heap;
mod descriptors;
mod document;
mod measure;
mod posed;

pub use descriptor_buffer::DescriptorBufferLimits;
pub use descriptor_heap::DescriptorHeapLimits;
pub use descriptors::{DescriptorLimits, DescriptorMaxima};
pub use document::{InvalidProfile, ReadProfileError};
pub use measure::MeasureError;
#[doc(hidden)]
pub use posed::KnownDevice;

/// One GPU with one driver, as far as memory is concerned.
///
/// ```
/// use sublet_sim::profiles::Profile;
/// let profile = Profile::by_name("nvidia-rtx-5070-ti").unwrap();
/// assert_eq!(profile.device_name, "NVIDIA GeForce RTX 5070 Ti");
/// println!("{}: {} Read from: {}", profile.name, profile.description, profile.source);
/// ```
#[derive(Clone)]
pub struct Profile {
    /// The name that [`Profile::by_name`] takes: lower case, vendor first.
    pub name: &'static str,
    /// The peculiarity of this memory layout, in one sentence.
    pub description: &'static str,
    /// The source of the numbers, and which of them are merely typical.
    pub source: &'static str,
    /// `VkPhysicalDeviceProperties::deviceName`.
    pub device_name: &'static str,
    /// `VkPhysicalDeviceProperties::deviceType`.
    pub device_type: vk::PhysicalDeviceType,
    /// `VkPhysicalDeviceProperties::vendorID`.
    pub vendor_id: u32,
    /// `VkPhysicalDeviceProperties::deviceID`.
    pub device_id: u32,
    /// `VkPhysicalDeviceProperties::apiVersion`.
    pub api_version: u32,
    /// `VkPhysicalDeviceProperties::driverVersion`, in the vendor's own encoding.
    pub driver_version: u32,
    /// `VkPhysicalDeviceDriverProperties::driverID`.
    pub driver_id: vk::DriverId,
    /// When the driver's descriptor pools refuse.
    pub descriptor_pools: DescriptorPoolPolicy,
    /// The memory heaps, in the driver's order.
    pub heaps: &'static [HeapProfile],
    /// The memory types, in the driver's order.
    pub types: &'static [TypeProfile],
    /// The limits that touch memory.
    pub limits: LimitsProfile,
    /// The features and extensions that touch memory.
    pub features: FeaturesProfile,
    /// How the driver sizes and places buffers.
    pub buffers: BufferRules,
    /// How the driver sizes and places images.
    pub images: ImageRules,
}

/// One memory heap.
#[derive(Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HeapProfile {
    /// `VkMemoryHeap::size`, in bytes.
    pub size: u64,
    /// `VkMemoryHeap::flags`.
    #[serde(with = "document::flags")]
    pub flags: vk::MemoryHeapFlags,
}

/// One memory type.
#[derive(Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TypeProfile {
    /// `VkMemoryType::propertyFlags`.
    #[serde(with = "document::flags")]
    pub flags: vk::MemoryPropertyFlags,
    /// `VkMemoryType::heapIndex`.
    pub heap: u32,
}

/// The limits that touch memory. In bytes, except for counts and the dimensions of images.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LimitsProfile {
    /// `bufferImageGranularity`.
    pub buffer_image_granularity: u64,
    /// `nonCoherentAtomSize`.
    pub non_coherent_atom_size: u64,
    /// `maxMemoryAllocationCount`.
    pub max_memory_allocation_count: u32,
    /// `VkPhysicalDeviceMaintenance3Properties::maxMemoryAllocationSize`.
    pub max_memory_allocation_size: u64,
    /// True if `vkAllocateMemory` gives more than `max_memory_allocation_size` all the same, as NVIDIA's driver does.
    /// Documents of older versions do not mention it: then it refuses.
    #[serde(default)]
    pub grants_above_max_memory_allocation_size: bool,
    /// `VkPhysicalDeviceMaintenance4Properties::maxBufferSize`.
    pub max_buffer_size: u64,
    /// `minMemoryMapAlignment`.
    pub min_memory_map_alignment: u64,
    /// `minTexelBufferOffsetAlignment`.
    pub min_texel_buffer_offset_alignment: u64,
    /// `minUniformBufferOffsetAlignment`.
    pub min_uniform_buffer_offset_alignment: u64,
    /// `minStorageBufferOffsetAlignment`.
    pub min_storage_buffer_offset_alignment: u64,
    /// `optimalBufferCopyOffsetAlignment`.
    pub optimal_buffer_copy_offset_alignment: u64,
    /// `optimalBufferCopyRowPitchAlignment`.
    pub optimal_buffer_copy_row_pitch_alignment: u64,
    /// `maxImageDimension1D`.
    pub max_image_dimension_1d: u32,
    /// `maxImageDimension2D`.
    pub max_image_dimension_2d: u32,
    /// `maxImageDimension3D`.
    pub max_image_dimension_3d: u32,
    /// `maxImageArrayLayers`.
    pub max_image_array_layers: u32,
    /// The limits of `VK_EXT_descriptor_buffer`, if the driver has it.
    pub descriptor_buffer: Option<DescriptorBufferLimits>,
    /// The limits of `VK_EXT_descriptor_heap`, if the driver has it. Documents of older versions do not mention it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub descriptor_heap: Option<DescriptorHeapLimits>,
    /// The limits that touch descriptors.
    pub descriptors: DescriptorLimits,
}

/// The features and extensions that touch memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FeaturesProfile {
    /// `VK_EXT_memory_budget`.
    pub memory_budget: bool,
    /// `VK_EXT_memory_priority`.
    pub memory_priority: bool,
    /// `VK_EXT_pageable_device_local_memory`.
    pub pageable_device_local_memory: bool,
    /// `VK_AMD_device_coherent_memory`.
    pub device_coherent_memory: bool,
    /// `bufferDeviceAddress`.
    pub buffer_device_address: bool,
    /// `timelineSemaphore`.
    pub timeline_semaphore: bool,
    /// `synchronization2`.
    pub synchronization2: bool,
    /// `maintenance4`.
    pub maintenance4: bool,
    /// `maintenance5`.
    pub maintenance5: bool,
    /// `descriptorIndexing`, the group of features of Vulkan 1.2.
    pub descriptor_indexing: bool,
    /// `VK_EXT_descriptor_buffer`.
    pub descriptor_buffer: bool,
    /// `inlineUniformBlock`, and that such blocks can be updated after they are bound.
    pub inline_uniform_block: bool,
    /// `VK_EXT_mutable_descriptor_type`.
    pub mutable_descriptor_type: bool,
    /// `VK_KHR_push_descriptor`.
    pub push_descriptor: bool,
    /// `VK_KHR_external_memory_fd`, or its counterpart of another system.
    pub external_memory: bool,
    /// `sparseBinding`.
    pub sparse_binding: bool,
    /// `protectedMemory`.
    pub protected_memory: bool,
}

/// How a driver sizes, aligns and places buffers.
#[derive(Clone, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BufferRules {
    /// The alignment of every buffer, in bytes.
    pub alignment: u64,
    /// Usages that raise the alignment: the largest of those that apply counts.
    pub raised: Vec<RaisedAlignment>,
    /// How sizes are rounded.
    pub rounding: Rounding,
    /// The memory types of a buffer, one bit each.
    pub types: u32,
    /// The memory types of a buffer with a usage of descriptor buffers, if they differ from those of other buffers;
    /// else 0.
    pub descriptor_types: u32,
    /// Buffers of at least this many bytes prefer a dedicated allocation.
    pub prefers_dedicated_from: Option<u64>,
}

/// The alignment that buffers of some usages have at least.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RaisedAlignment {
    /// The usages, of which a buffer has one or more.
    #[serde(with = "document::flags")]
    pub usage: vk::BufferUsageFlags,
    /// The alignment, in bytes.
    pub alignment: u64,
}

/// How a driver rounds the size of a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rounding {
    /// Not at all.
    Exact,
    /// Up to a multiple of the buffer's alignment.
    ToAlignment,
    /// Up to a multiple of this many bytes.
    To(u64),
}

/// How a driver sizes, aligns and places images.
///
/// The model: a level is rows of texel blocks. In an optimal image the length and the number of rows are rounded up to
/// whole tiles. That gives the sizes and alignments that an allocator sees. The order of texels within a tile is not
/// part of the model.
#[derive(Clone, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImageRules {
    /// The tiles of optimal images, by size. The last one whose `from` is not above the bytes of the first level
    /// applies.
    pub tiles: Vec<Tile>,
    /// The "tiles" of linear images, usually one texel block high.
    pub linear: Tile,
    /// The tiles of images of block-compressed formats, if they differ.
    pub compressed: Option<Tile>,
    /// Memory types of optimal color images, one bit each.
    pub color_types: u32,
    /// Memory types of optimal depth and stencil images.
    pub depth_types: u32,
    /// Memory types of linear images.
    pub linear_types: u32,
    /// Memory types of optimal images with the usage TRANSIENT_ATTACHMENT, besides those of their kind.
    pub transient_types: u32,
    /// Memory types of optimal images of a format, besides those of their kind.
    pub format_types: Vec<FormatTypes>,
    /// Attachments of at least this many bytes prefer a dedicated allocation.
    pub prefers_dedicated_target_from: Option<u64>,
    /// Images of at least this many bytes prefer a dedicated allocation, whatever their usage.
    pub prefers_dedicated_from: Option<u64>,
    /// True if images that are shared with another API need a dedicated allocation.
    pub external_requires_dedicated: bool,
}

/// Memory types that images of a format have besides those of their kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FormatTypes {
    /// The format.
    #[serde(with = "document::format")]
    pub format: vk::Format,
    /// The memory types, one bit each.
    pub types: u32,
}

/// One kind of tile. Units: bytes and rows of texel blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tile {
    /// The tile is for images whose first level has at least this many bytes.
    pub from: u64,
    /// Rows are rounded up to a multiple of this many bytes.
    pub row_bytes: u64,
    /// The least height of a tile, in rows.
    pub min_rows: u64,
    /// The greatest height of a tile: a level is given the least power of two that holds it, up to this.
    pub max_rows: u64,
    /// Levels are rounded up to a multiple of this many bytes.
    pub level_bytes: u64,
    /// The alignment of an image of such tiles.
    pub alignment: u64,
}

impl std::fmt::Debug for Profile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Profile").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Profile {
    /// The profile with this name.
    pub fn by_name(name: &str) -> Option<&'static Profile> {
        ALL.iter().copied().find(|profile| profile.name == name)
    }

    /// The names of all profiles, in the order of [`ALL`].
    pub fn names() -> impl Iterator<Item = &'static str> {
        ALL.iter().map(|profile| profile.name)
    }

    /// A bit for each memory type.
    pub fn all_types(&self) -> u32 {
        all_types(self.types)
    }
}

/// A bit for each of these memory types.
pub(crate) fn all_types(types: &[TypeProfile]) -> u32 {
    types.iter().fold(0, |bits, _| bits << 1 | 1)
}

/// The type of [`ALL`]: a slice of [`Profile`]s, which are parsed when one of them is first looked at.
#[derive(Clone, Copy)]
pub struct Profiles(());

impl Deref for Profiles {
    type Target = [&'static Profile];

    fn deref(&self) -> &Self::Target {
        &BUILT_IN
    }
}

impl IntoIterator for Profiles {
    type Item = &'static &'static Profile;
    type IntoIter = std::slice::Iter<'static, &'static Profile>;

    fn into_iter(self) -> Self::IntoIter {
        BUILT_IN.iter()
    }
}

impl std::fmt::Debug for Profiles {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// All profiles that come with this package.
///
/// ```
/// use sublet_sim::{Gpu, profiles};
/// for profile in profiles::ALL {
///     Gpu::new(profile).assert_silent();
/// }
/// ```
pub static ALL: Profiles = Profiles(());

macro_rules! texts {
    ($($name:literal)*) => {
        &[$(($name, include_str!(concat!("../../../profiles/", $name, ".json")))),*]
    };
}

/// Their documents, as [`Profile::to_json`] writes them.
const TEXTS: &[(&str, &str)] = texts! {
    "nvidia-rtx-5070-ti"
    "nvidia-gtx-1060"
    "nvidia-h200"
    "amd-rx-6700-xt"
    "amd-rx-5700"
    "amd-rx-570"
    "amd-rx-6800-windows"
    "amd-raphael"
    "intel-uhd-630"
    "intel-arc-a770"
    "apple-m1"
    "qualcomm-adreno-620"
    "arm-mali-g52"
    "broadcom-raspberry-pi-4"
    "broadcom-raspberry-pi-5"
    "imagination-powervr-gx6250"
    "lavapipe"
    "lavapipe-mesa-26"
    "swiftshader"
};

static BUILT_IN: LazyLock<Vec<&'static Profile>> = LazyLock::new(|| {
    let read = |&(name, text)| match document::read(text) {
        Ok(document) => document.keep(),
        Err(error) => panic!("the profile {name} of this package: {error}"),
    };
    TEXTS.iter().map(read).collect()
});

/// The largest `minMemoryMapAlignment`: views of simulated memory begin there.
const MAX_MAP_ALIGNMENT: u64 = widen(ALIGNMENT);
/// The largest alignment of all others. Vulkan allows up to 131072 for the granularity, and some drivers align images
/// to 2 MiB.
const MAX_ALIGNMENT: u64 = 1 << 30;

#[cfg(test)]
mod tests;

/// The limits of desktop GPUs' drivers; most have more for storage buffers.
pub(crate) const MAX_UNIFORM_BUFFER_RANGE: u32 = 1 << 16;

pub(crate) const MAX_STORAGE_BUFFER_RANGE: u32 = 1 << 30;

/// `maxComputeWorkGroupCount`, in each direction.
pub(crate) const MAX_GROUPS: u32 = 65535;

/// The profile of [`get_instance_proc_addr`](crate::get_instance_proc_addr) if the environment chooses none.
pub const DEFAULT_PROFILE: &str = "lavapipe";

pub(crate) fn default_profile() -> &'static Profile {
    Profile::by_name(DEFAULT_PROFILE).unwrap_or(ALL[0])
}
