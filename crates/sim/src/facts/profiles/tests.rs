//! Rules that every memory layout keeps, and the properties of each profile.

use std::collections::BTreeSet;

use ash::vk;
use ash::vk::MemoryPropertyFlags as Flags;

use super::*;

/// Real drivers that break the order of memory types, with the types that should come earlier.
const OUT_OF_ORDER: [(&str, &[usize]); 3] =
    [("apple-m1", &[2]), ("qualcomm-adreno-620", &[3]), ("amd-rx-6800-windows", &[8, 9, 10, 11, 12, 13])];

#[test]
fn names_are_unique_and_found() {
    let names: BTreeSet<_> = Profile::names().collect();
    assert_eq!(names.len(), ALL.len());
    assert!(ALL.len() >= 14);
    for profile in ALL {
        assert!(std::ptr::eq(Profile::by_name(profile.name).unwrap(), *profile));
        assert!(
            profile
                .name
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
        );
        assert!(profile.device_name.len() < vk::MAX_PHYSICAL_DEVICE_NAME_SIZE);
        assert!(profile.source.len() > 40 && profile.description.len() > 20);
    }
}

/// So that a profile that was changed by hand differs in that alone from what a program writes.
#[test]
fn each_text_is_what_its_profile_is_written_as() {
    for (profile, (name, text)) in ALL.iter().zip(TEXTS) {
        assert_eq!(profile.name, *name);
        assert_eq!(profile.to_json(), *text);
    }
}

#[test]
fn types_and_heaps_fit_together() {
    for profile in ALL {
        assert!(profile.types.len() <= vk::MAX_MEMORY_TYPES && profile.heaps.len() <= vk::MAX_MEMORY_HEAPS);
        let mut used = BTreeSet::new();
        for kind in profile.types {
            let heap = profile.heaps[usize::try_from(kind.heap).unwrap()];
            // "this property is set if and only if the memory type belongs to a heap with DEVICE_LOCAL"
            assert_eq!(
                kind.flags.contains(Flags::DEVICE_LOCAL),
                heap.flags.contains(vk::MemoryHeapFlags::DEVICE_LOCAL),
                "{}",
                profile.name
            );
            used.insert(kind.heap);
        }
        assert_eq!(used.len(), profile.heaps.len(), "{}: a heap that no type uses", profile.name);
        assert!(profile.heaps.iter().all(|heap| heap.size > 0));
    }
}

/// Section "Device Memory Properties" of the specification.
#[test]
fn flags_are_combinations_that_vulkan_allows() {
    for profile in ALL {
        let flags: Vec<_> = profile.types.iter().map(|kind| kind.flags).collect();
        assert!(flags.iter().any(|flags| flags.contains(Flags::HOST_VISIBLE | Flags::HOST_COHERENT)));
        assert!(flags.iter().any(|flags| flags.contains(Flags::DEVICE_LOCAL)));
        for flags in flags {
            let host = Flags::HOST_VISIBLE | Flags::HOST_COHERENT | Flags::HOST_CACHED;
            if flags.intersects(Flags::HOST_COHERENT | Flags::HOST_CACHED) {
                assert!(flags.contains(Flags::HOST_VISIBLE), "{}", profile.name);
            }
            if flags.contains(Flags::LAZILY_ALLOCATED) || flags.contains(Flags::PROTECTED) {
                assert!(!flags.intersects(host), "{}", profile.name);
            }
            if flags.contains(Flags::DEVICE_UNCACHED_AMD) {
                assert!(flags.contains(Flags::DEVICE_COHERENT_AMD), "{}", profile.name);
            }
            if flags.contains(Flags::DEVICE_COHERENT_AMD) {
                assert!(profile.features.device_coherent_memory, "{}", profile.name);
            }
            if flags.contains(Flags::PROTECTED) {
                assert!(profile.features.protected_memory, "{}", profile.name);
            }
        }
    }
}

/// A type whose flags are a strict subset of another's comes before it.
#[test]
fn types_are_in_vulkans_order() {
    for profile in ALL {
        for (later, kind) in profile.types.iter().enumerate() {
            let misplaced = profile.types[..later]
                .iter()
                .any(|earlier| earlier.flags != kind.flags && earlier.flags.contains(kind.flags));
            let known =
                OUT_OF_ORDER.iter().any(|(name, types)| *name == profile.name && types.contains(&later));
            assert_eq!(misplaced, known, "{} type {later}", profile.name);
        }
    }
}

#[test]
fn limits_are_powers_of_two_in_range() {
    for profile in ALL {
        let limits = &profile.limits;
        for value in [
            limits.buffer_image_granularity,
            limits.non_coherent_atom_size,
            limits.min_memory_map_alignment,
            limits.min_texel_buffer_offset_alignment,
            limits.min_uniform_buffer_offset_alignment,
            limits.min_storage_buffer_offset_alignment,
            limits.optimal_buffer_copy_offset_alignment,
            limits.optimal_buffer_copy_row_pitch_alignment,
        ] {
            assert!(value.is_power_of_two(), "{}", profile.name);
        }
        // The limits that every Vulkan device keeps.
        assert!(limits.buffer_image_granularity <= 131_072 && limits.non_coherent_atom_size <= 256);
        assert!(limits.min_memory_map_alignment >= 64 && limits.max_memory_allocation_count >= 4096);
        assert!(limits.min_uniform_buffer_offset_alignment <= 256);
        assert!(limits.max_memory_allocation_size >= 1 << 30 && limits.max_buffer_size >= 1 << 30);
        assert!(limits.max_image_dimension_2d >= 4096 && limits.max_image_array_layers >= 256);
    }
}

#[test]
fn rules_name_types_that_exist() {
    for profile in ALL {
        let images = &profile.images;
        let named = profile.buffers.types
            | images.color_types
            | images.depth_types
            | images.linear_types
            | images.transient_types
            | images.format_types.iter().fold(0, |bits, more| bits | more.types);
        assert_eq!(named & !profile.all_types(), 0, "{}", profile.name);
        assert!(images.tiles.windows(2).all(|pair| pair[0].from < pair[1].from));
        for tile in images.tiles.iter().chain([&images.linear]).chain(&images.compressed) {
            let sizes = [tile.row_bytes, tile.min_rows, tile.max_rows, tile.level_bytes, tile.alignment];
            assert!(sizes.iter().all(|size| size.is_power_of_two()), "{}", profile.name);
            assert!(tile.min_rows <= tile.max_rows);
        }
        assert_eq!(images.tiles[0].from, 0);
        assert!(profile.buffers.alignment.is_power_of_two());
        assert!(profile.buffers.raised.iter().all(|raised| raised.alignment.is_power_of_two()));
    }
}

/// The layouts that an allocator has to get right are all there.
#[test]
fn the_odd_ones_are_among_them() {
    let some = |what: &dyn Fn(&Profile) -> bool| ALL.iter().filter(|profile| what(profile)).count();
    let has = |profile: &Profile, flags: u32| profile.types.iter().any(|kind| kind.flags.as_raw() == flags);
    // A window of at most 256 MiB on the device, and one on all of it.
    assert!(some(&|p| p.heaps.len() == 3 && p.heaps[2].size <= 256 << 20) >= 4);
    assert!(some(&|p| p.device_type == vk::PhysicalDeviceType::DISCRETE_GPU && p.heaps.len() == 2) >= 4);
    // No flag at all, device-coherent, lazily allocated, cached without coherence, nothing cached.
    assert!(some(&|p| has(p, 0)) >= 3);
    assert!(some(&|p| has(p, 0xc1)) >= 4);
    assert!(some(&|p| has(p, 0x11)) >= 3);
    assert!(some(&|p| has(p, 0xb)) >= 3);
    assert!(some(&|p| p.types.iter().all(|kind| !kind.flags.contains(Flags::HOST_CACHED))) >= 3);
    // One type for everything.
    assert!(some(&|p| p.types.len() == 1) >= 5);
    // Granularities from 1 to the largest.
    let granularities: BTreeSet<_> = ALL.iter().map(|p| p.limits.buffer_image_granularity).collect();
    assert!(granularities.len() >= 5 && granularities.contains(&1) && granularities.contains(&131_072));
    let vendors: BTreeSet<_> = ALL.iter().map(|p| p.vendor_id).collect();
    assert!(vendors.len() >= 9);
}

#[test]
fn types_that_resources_may_not_use_are_twins_of_types_that_they_may() {
    for profile in ["amd-rx-6700-xt", "amd-rx-5700"].map(|name| Profile::by_name(name).unwrap()) {
        let kinds = || profile.types.iter().enumerate();
        let usable = |index: usize| profile.buffers.types >> index & 1 == 1;
        let twins = kinds().filter(|(index, _)| !usable(*index)).map(|(index, kind)| {
            let same = |(other, twin): (usize, &TypeProfile)| usable(other) && twin == kind;
            assert!(kinds().any(same), "{}: type {index}", profile.name);
        });
        assert!(twins.count() > 0, "{}", profile.name);
    }
}

#[test]
fn sizes_of_descriptors_are_there_where_the_feature_is_and_fit_what_vulkan_allows() {
    for profile in ALL {
        let limits = profile.limits.descriptor_buffer;
        assert_eq!(limits.is_some(), profile.features.descriptor_buffer, "{}", profile.name);
        let Some(limits) = limits else { continue };
        // Section "Required Limits": at most 256 bytes, and of the alignment too.
        assert!(limits.offset_alignment.is_power_of_two() && limits.offset_alignment <= 256);
        let kinds = (0..=10)
            .map(vk::DescriptorType::from_raw)
            .chain([vk::DescriptorType::ACCELERATION_STRUCTURE_KHR]);
        for size in kinds.filter_map(|kind| limits.size(kind)) {
            assert!((4..=256).contains(&size), "{}", profile.name);
        }
        assert!(
            limits.max_bindings >= 3 && limits.max_resource_bindings >= 1 && limits.max_sampler_bindings >= 1
        );
        assert!(limits.max_range >= 1 << 27 && limits.address_space >= limits.max_range);
        let parts = limits.sampled_image + limits.sampler;
        assert!(limits.single_array || limits.combined_image_sampler == parts);
        assert_eq!(profile.buffers.descriptor_types & !profile.all_types(), 0);
    }
    // Drivers of 2026 have Vulkan's own heaps, and no older ones.
    for profile in ALL {
        let heaps = profile.limits.descriptor_heap;
        let measured = profile.name == "lavapipe-mesa-26";
        let expected = (profile.name == "nvidia-rtx-5070-ti").then_some(DescriptorHeapLimits::NVIDIA);
        assert!(heaps == expected || measured && heaps.is_some(), "{}", profile.name);
        let gpu = crate::Gpu::new(profile);
        let offered = gpu.extensions().iter().any(|name| name == "VK_EXT_descriptor_heap");
        assert_eq!(offered, heaps.is_some(), "{}", profile.name);
    }
    // No two drivers alike, so that nobody takes one of them for all.
    let alignments: BTreeSet<_> =
        ALL.iter().filter_map(|profile| Some(profile.limits.descriptor_buffer?.offset_alignment)).collect();
    assert!(alignments.len() >= 3);
}

#[test]
fn descriptor_buffers_of_radv_lie_in_the_types_with_short_addresses() {
    let profile = Profile::by_name("amd-rx-6700-xt").unwrap();
    let types = |usage| {
        let info = vk::BufferCreateInfo::default().size(1000).usage(usage);
        crate::facts::format::buffer_requirements(profile, &(&info).into()).type_bits
    };
    let (plain, descriptors) = (
        types(vk::BufferUsageFlags::STORAGE_BUFFER),
        types(vk::BufferUsageFlags::RESOURCE_DESCRIPTOR_BUFFER_EXT),
    );
    assert_eq!(plain & descriptors, 0);
    assert_eq!(descriptors, 0b101_0010);
}
