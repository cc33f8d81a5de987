//! The rules for the values of a profile that the simulated device, and an allocator on it, rely on.

use ash::vk;

use super::super::{
    DescriptorBufferLimits, DescriptorHeapLimits, LimitsProfile, MAX_ALIGNMENT, MAX_MAP_ALIGNMENT, Rounding,
    Tile, all_types,
};
use super::{InvalidProfile, ProfileDocument};
use crate::facts::arithmetic::{index, widen};
use crate::facts::extensions::NEWEST_MINOR;

type Checked = Result<(), InvalidProfile>;

pub(crate) fn check(document: &ProfileDocument) -> Checked {
    let name = &document.name;
    if name.is_empty() || !name.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-')) {
        return Err(InvalidProfile::Name);
    }
    let device = &document.device.name;
    if device.is_empty() || device.len() >= vk::MAX_PHYSICAL_DEVICE_NAME_SIZE || device.contains('\0') {
        return Err(InvalidProfile::DeviceName);
    }
    let version = document.device.api_version;
    let known = vk::api_version_variant(version) == 0 && vk::api_version_major(version) == 1;
    if !known || vk::api_version_minor(version) > NEWEST_MINOR {
        return Err(InvalidProfile::ApiVersion { version });
    }
    memory(document)?;
    limits(&document.limits)?;
    if document.features.descriptor_buffer != document.limits.descriptor_buffer.is_some() {
        return Err(InvalidProfile::DescriptorBuffer);
    }
    if let Some(limits) = &document.limits.descriptor_buffer {
        descriptor_buffer(limits)?;
    }
    if let Some(limits) = &document.limits.descriptor_heap {
        descriptor_heap(limits)?;
    }
    buffers(document)?;
    images(document)
}

fn memory(document: &ProfileDocument) -> Checked {
    let (heaps, types) = (&document.heaps, &document.types);
    if heaps.is_empty() || heaps.len() > vk::MAX_MEMORY_HEAPS {
        return Err(InvalidProfile::HeapCount { count: heaps.len() });
    }
    if types.is_empty() || types.len() > vk::MAX_MEMORY_TYPES {
        return Err(InvalidProfile::TypeCount { count: types.len() });
    }
    if let Some(heap) = heaps.iter().position(|heap| heap.size == 0) {
        return Err(InvalidProfile::EmptyHeap { heap });
    }
    for (memory_type, kind) in types.iter().enumerate() {
        let Some(heap) = heaps.get(index(kind.heap)) else {
            return Err(InvalidProfile::HeapOutOfRange { memory_type, heap: kind.heap, heaps: heaps.len() });
        };
        let local = kind.flags.contains(vk::MemoryPropertyFlags::DEVICE_LOCAL);
        if local != heap.flags.contains(vk::MemoryHeapFlags::DEVICE_LOCAL) {
            return Err(InvalidProfile::DeviceLocal { memory_type, heap: kind.heap });
        }
    }
    Ok(())
}

fn power_of_two(what: &'static str, value: u64, most: u64) -> Checked {
    if !value.is_power_of_two() {
        return Err(InvalidProfile::NotPowerOfTwo { what, value });
    }
    within(what, value, 1, most)
}

fn within(what: &'static str, value: u64, least: u64, most: u64) -> Checked {
    if value < least || value > most {
        return Err(InvalidProfile::OutOfRange { what, value, least, most });
    }
    Ok(())
}

/// Fields with their names in the document.
macro_rules! named {
    ($of:ident: $($field:ident)*) => { [$((concat!(stringify!($of), ".", stringify!($field)), $of.$field.into())),*] };
}

fn limits(limits: &LimitsProfile) -> Checked {
    for (what, value) in named! { limits:
        buffer_image_granularity non_coherent_atom_size min_memory_map_alignment min_texel_buffer_offset_alignment
        min_uniform_buffer_offset_alignment min_storage_buffer_offset_alignment optimal_buffer_copy_offset_alignment
        optimal_buffer_copy_row_pitch_alignment
    } {
        let mapped = what == "limits.min_memory_map_alignment";
        power_of_two(what, value, if mapped { MAX_MAP_ALIGNMENT } else { MAX_ALIGNMENT })?;
    }
    for (what, value) in named! { limits:
        max_memory_allocation_count max_memory_allocation_size max_buffer_size max_image_dimension_1d
        max_image_dimension_2d max_image_dimension_3d max_image_array_layers
    } {
        within(what, value, 1, u64::MAX)?;
    }
    Ok(())
}

/// Section "Required Limits": descriptors are of at most 256 bytes. The simulated device writes four of them.
fn descriptor_buffer(limits: &DescriptorBufferLimits) -> Checked {
    power_of_two("limits.descriptor_buffer.offset_alignment", limits.offset_alignment, 256)?;
    for size in [
        limits.sampler,
        limits.combined_image_sampler,
        limits.sampled_image,
        limits.storage_image,
        limits.input_attachment,
        limits.texel_buffer,
        limits.uniform_buffer,
        limits.storage_buffer,
        limits.acceleration_structure,
    ] {
        within("a descriptor's size in limits.descriptor_buffer", widen(size), 4, 256)?;
    }
    let (whole, parts) = (limits.combined_image_sampler, limits.sampled_image + limits.sampler);
    if !limits.single_array && whole < parts {
        let what = "limits.descriptor_buffer.combined_image_sampler";
        return within(what, widen(whole), widen(parts), 256);
    }
    Ok(())
}

/// Section "Required Limits": heaps are aligned to 65,536 bytes at most, descriptors have 256 at most, and push data at
/// least. The reserved range lies in the heap.
fn descriptor_heap(limits: &DescriptorHeapLimits) -> Checked {
    for alignment in [limits.sampler_heap_alignment, limits.resource_heap_alignment] {
        power_of_two("a heap's alignment in limits.descriptor_heap", alignment, 1 << 16)?;
    }
    for size in [
        limits.sampler,
        limits.image,
        limits.buffer,
        limits.sampler_alignment,
        limits.image_alignment,
        limits.buffer_alignment,
    ] {
        power_of_two("a descriptor's size or alignment in limits.descriptor_heap", size, 256)?;
    }
    for (reserved, most) in [
        (limits.sampler_reserved, limits.max_sampler_heap),
        (limits.sampler_reserved_with_embedded, limits.max_sampler_heap),
        (limits.resource_reserved, limits.max_resource_heap),
    ] {
        within("a reserved range in limits.descriptor_heap", reserved, 0, most)?;
    }
    within("limits.descriptor_heap.max_push_data", limits.max_push_data, 256, u64::MAX)
}

/// Checks bits of memory types: they name existing types only, and at least one if `some`.
fn types(document: &ProfileDocument, what: &'static str, bits: u32, some: bool) -> Checked {
    if bits & !all_types(&document.types) != 0 {
        return Err(InvalidProfile::UnknownTypes { what, bits });
    }
    if some && bits == 0 {
        return Err(InvalidProfile::NoTypes { what });
    }
    Ok(())
}

fn buffers(document: &ProfileDocument) -> Checked {
    let rules = &document.buffers;
    power_of_two("buffers.alignment", rules.alignment, MAX_ALIGNMENT)?;
    for raised in &rules.raised {
        power_of_two("buffers.raised.alignment", raised.alignment, MAX_ALIGNMENT)?;
    }
    if let Rounding::To(multiple) = rules.rounding {
        power_of_two("buffers.rounding", multiple, MAX_ALIGNMENT)?;
    }
    types(document, "buffers.types", rules.types, true)?;
    types(document, "buffers.descriptor_types", rules.descriptor_types, false)
}

fn images(document: &ProfileDocument) -> Checked {
    let rules = &document.images;
    let ascends = rules.tiles.windows(2).all(|pair| pair[0].from < pair[1].from);
    if !ascends || rules.tiles.first().is_none_or(|tile| tile.from != 0) {
        return Err(InvalidProfile::TileOrder);
    }
    for tile in rules.tiles.iter().chain([&rules.linear]).chain(&rules.compressed) {
        check_tile(tile)?;
    }
    types(document, "images.color_types", rules.color_types, true)?;
    types(document, "images.linear_types", rules.linear_types, false)?;
    types(document, "images.depth_types", rules.depth_types, false)?;
    types(document, "images.transient_types", rules.transient_types, false)?;
    rules
        .format_types
        .iter()
        .try_for_each(|format| types(document, "images.format_types", format.types, false))
}

fn check_tile(tile: &Tile) -> Checked {
    power_of_two("a tile's row_bytes", tile.row_bytes, MAX_ALIGNMENT)?;
    power_of_two("a tile's min_rows", tile.min_rows, MAX_ALIGNMENT)?;
    power_of_two("a tile's max_rows", tile.max_rows, MAX_ALIGNMENT)?;
    power_of_two("a tile's level_bytes", tile.level_bytes, MAX_ALIGNMENT)?;
    power_of_two("a tile's alignment", tile.alignment, MAX_ALIGNMENT)?;
    if tile.min_rows > tile.max_rows { Err(InvalidProfile::TileHeight) } else { Ok(()) }
}
