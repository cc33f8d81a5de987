//! Profiles of devices whose memory alone is known: a recording describes the device that it was made on.

use ash::vk;
use parking_lot::Mutex;

use super::{
    ALL, BufferRules, FeaturesProfile, HeapProfile, ImageRules, LimitsProfile, MAX_ALIGNMENT, Profile,
    TypeProfile, all_types,
};
use crate::facts::arithmetic::index;
use crate::facts::extensions::NEWEST_MINOR;
use crate::facts::profiles::default_profile;

/// The known properties of a device.
#[derive(Clone, Copy)]
pub struct KnownDevice<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its type.
    pub device_type: vk::PhysicalDeviceType,
    /// Its vendor's number.
    pub vendor_id: u32,
    /// Its number with the vendor.
    pub device_id: u32,
    /// The driver's version.
    pub driver_version: u32,
    /// The version of Vulkan.
    pub api_version: u32,
    /// Its heaps, in order.
    pub heaps: &'a [HeapProfile],
    /// Its memory types, in order.
    pub types: &'a [TypeProfile],
    /// `bufferImageGranularity`.
    pub buffer_image_granularity: u64,
    /// `nonCoherentAtomSize`.
    pub non_coherent_atom_size: u64,
    /// `maxMemoryAllocationCount`.
    pub max_memory_allocation_count: u32,
    /// Features that the program had enabled, so that the device must have them. Those of descriptors and queues, which
    /// no recording knows, are the most similar profile's.
    pub features: FeaturesProfile,
}

/// The newest version that the simulated driver has, with any patch.
const NEWEST: u32 = vk::make_api_version(0, 1, NEWEST_MINOR, 0xfff);

fn power_of_two(value: u64) -> u64 {
    value.clamp(1, MAX_ALIGNMENT).next_power_of_two()
}

/// The profiles that were made, so that each device is made only once.
static MADE: Mutex<Vec<&'static Profile>> = Mutex::new(Vec::new());

impl Profile {
    /// A profile with the memory of a known device: one of [`ALL`] with the same memory, else one that takes all
    /// unknown properties from the most similar profile. The profile stays until the process ends. For a device without
    /// memory it is lavapipe's.
    ///
    /// Values that no device could report are corrected: limits become powers of two, and a heap that does not exist
    /// becomes the first one.
    pub fn posing(known: &KnownDevice<'_>) -> &'static Profile {
        let heaps = heaps(known);
        let types = types(known, heaps.len());
        if heaps.is_empty() || types.is_empty() {
            return default_profile();
        }
        let kin = kin(known);
        let profile = pose(known, kin, &heaps, &types);
        let is_it = |found: &&Profile| {
            found.heaps == heaps
                && found.types == types
                && found.device_name == known.name
                && is_same(found, &profile)
        };
        let mut made = MADE.lock();
        if let Some(found) = ALL.iter().chain(made.iter()).copied().find(is_it) {
            return found;
        }
        let kept: &'static Profile = Box::leak(Box::new(Profile {
            device_name: Box::leak(known.name.to_owned().into_boxed_str()),
            heaps: Box::leak(heaps.into_boxed_slice()),
            types: Box::leak(types.into_boxed_slice()),
            ..profile
        }));
        made.push(kept);
        kept
    }
}

/// Returns whether all that [`pose`] sets is equal.
fn is_same(one: &Profile, other: &Profile) -> bool {
    let key = |profile: &Profile| {
        let identity = (profile.device_type, profile.vendor_id, profile.device_id, profile.driver_version);
        // A simulated device reports no patch number.
        let minor = vk::api_version_minor(profile.api_version);
        (identity, minor, profile.limits, profile.features)
    };
    key(one) == key(other)
}

fn heaps(known: &KnownDevice<'_>) -> Vec<HeapProfile> {
    let heap = |heap: &HeapProfile| HeapProfile { size: heap.size.max(1), ..*heap };
    known.heaps.iter().take(vk::MAX_MEMORY_HEAPS).map(heap).collect()
}

fn types(known: &KnownDevice<'_>, heaps: usize) -> Vec<TypeProfile> {
    let of = |kind: &TypeProfile| TypeProfile {
        heap: if index(kind.heap) < heaps { kind.heap } else { 0 },
        ..*kind
    };
    known.types.iter().take(vk::MAX_MEMORY_TYPES).map(of).collect()
}

/// The profile that is most like the device.
fn kin(known: &KnownDevice<'_>) -> &'static Profile {
    let likeness = |profile: &&&Profile| {
        (
            profile.device_name == known.name,
            profile.vendor_id == known.vendor_id,
            profile.device_type == known.device_type,
            profile.types == known.types && profile.heaps == known.heaps,
        )
    };
    // The first of several.
    ALL.iter().rev().max_by_key(likeness).copied().unwrap_or_else(default_profile)
}

/// Puts the known parts over those of the similar profile. Name, heaps and types are still that profile's.
fn pose(
    known: &KnownDevice<'_>,
    kin: &'static Profile,
    heaps: &[HeapProfile],
    types: &[TypeProfile],
) -> Profile {
    let all = all_types(types);
    let same_memory = kin.heaps == heaps && kin.types == types;
    // The types that a resource can be in are unknown, unless the memory is the similar profile's own.
    let buffers = if same_memory {
        kin.buffers.clone()
    } else {
        BufferRules { types: all, descriptor_types: 0, ..kin.buffers.clone() }
    };
    let images = if same_memory {
        kin.images.clone()
    } else {
        ImageRules {
            color_types: all,
            depth_types: all,
            linear_types: all,
            transient_types: 0,
            format_types: Vec::new(),
            ..kin.images.clone()
        }
    };
    let (had, enabled) = (kin.features, known.features);
    Profile {
        name: if same_memory { kin.name } else { "recorded" },
        description: "Poses as the device of a recording.",
        source: "The recording: heaps, memory types and the limits of memory. All else is the nearest kin's.",
        device_type: known.device_type,
        vendor_id: known.vendor_id,
        device_id: known.device_id,
        api_version: known.api_version.clamp(vk::API_VERSION_1_0, NEWEST),
        driver_version: known.driver_version,
        limits: LimitsProfile {
            buffer_image_granularity: power_of_two(known.buffer_image_granularity),
            non_coherent_atom_size: power_of_two(known.non_coherent_atom_size),
            max_memory_allocation_count: known.max_memory_allocation_count.max(1),
            ..kin.limits
        },
        features: FeaturesProfile {
            memory_budget: had.memory_budget || enabled.memory_budget,
            memory_priority: had.memory_priority || enabled.memory_priority,
            pageable_device_local_memory: had.pageable_device_local_memory
                || enabled.pageable_device_local_memory,
            device_coherent_memory: had.device_coherent_memory || enabled.device_coherent_memory,
            buffer_device_address: had.buffer_device_address || enabled.buffer_device_address,
            maintenance4: had.maintenance4 || enabled.maintenance4,
            maintenance5: had.maintenance5 || enabled.maintenance5,
            // Only a device with the feature has such a type.
            protected_memory: had.protected_memory
                || types.iter().any(|kind| kind.flags.contains(vk::MemoryPropertyFlags::PROTECTED)),
            ..had
        },
        buffers,
        images,
        ..kin.clone()
    }
}
