//! The model against what real drivers answered, and against Vulkan's promises.
#![allow(clippy::as_conversions, clippy::cast_possible_truncation, reason = "small numbers of test data")]

use ash::vk;

use super::*;
use crate::facts::profiles::ALL;

fn profile(name: &str) -> &'static Profile {
    Profile::by_name(name).unwrap()
}

fn image(format: vk::Format, width: u32, height: u32) -> ImageDescription {
    ImageDescription {
        flags: vk::ImageCreateFlags::empty(),
        image_type: vk::ImageType::TYPE_2D,
        format,
        extent: vk::Extent3D { width, height, depth: 1 },
        mip_levels: 1,
        array_layers: 1,
        samples: vk::SampleCountFlags::TYPE_1,
        tiling: vk::ImageTiling::OPTIMAL,
        usage: vk::ImageUsageFlags::SAMPLED | vk::ImageUsageFlags::TRANSFER_DST,
        external: false,
    }
}

/// Each line of a measured file: a question and the driver's answer.
fn compare(name: &str, measured: &str) {
    let profile = profile(name);
    let mut wrong = Vec::new();
    let mut asked = 0;
    for line in measured.lines().filter(|line| !line.starts_with('#')) {
        let (question, answer) = line.split_once(": ").unwrap();
        let (kind, question) = question.split_once(' ').unwrap();
        let numbers: Vec<u64> = question.split(' ').map(|n| n.parse().unwrap()).collect();
        let answer: Vec<u64> = answer.split(' ').map(|n| n.parse().unwrap()).collect();
        let (requirements, row_pitch) = if kind == "buffer" {
            let usage = vk::BufferUsageFlags::from_raw(numbers[0] as u32);
            let buffer = BufferDescription {
                size: numbers[1],
                usage,
                flags: vk::BufferCreateFlags::empty(),
                external: false,
            };
            (buffer_requirements(profile, &buffer), None)
        } else {
            let mut image =
                image(vk::Format::from_raw(numbers[0] as i32), numbers[3] as u32, numbers[4] as u32);
            image.tiling = vk::ImageTiling::from_raw(numbers[1] as i32);
            image.usage = vk::ImageUsageFlags::from_raw(numbers[2] as u32);
            image.mip_levels = numbers[5] as u32;
            image.array_layers = numbers[6] as u32;
            image.samples = vk::SampleCountFlags::from_raw(numbers[7] as u32);
            let aspect_mask = if FormatInfo::of(image.format).unwrap().is_depth_stencil() {
                vk::ImageAspectFlags::DEPTH
            } else {
                vk::ImageAspectFlags::COLOR
            };
            let subresource = vk::ImageSubresource { aspect_mask, mip_level: 0, array_layer: 0 };
            let pitch = subresource_layout(profile, &image, subresource).map(|layout| layout.row_pitch);
            (image_requirements(profile, &image), pitch)
        };
        let mut model = vec![
            requirements.size,
            requirements.alignment,
            u64::from(requirements.type_bits),
            u64::from(requirements.prefers_dedicated),
        ];
        if answer.len() > 4 {
            model.extend(row_pitch);
        }
        asked += 1;
        if model != answer {
            wrong.push(format!("{line}, model {model:?}"));
        }
    }
    assert!(asked > 500, "only {asked} lines");
    assert!(wrong.is_empty(), "{} of {asked}:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn answers_as_the_h200_did() {
    compare("nvidia-h200", include_str!("measured/nvidia-h200.txt"));
}

#[test]
fn answers_as_lavapipe_did() {
    compare("lavapipe", include_str!("measured/lavapipe.txt"));
}

const FORMATS: [vk::Format; 14] = [
    vk::Format::R8_UNORM,
    vk::Format::R8G8B8_UNORM,
    vk::Format::R8G8B8A8_UNORM,
    vk::Format::R16G16B16_SFLOAT,
    vk::Format::R32G32B32A32_SFLOAT,
    vk::Format::BC1_RGB_UNORM_BLOCK,
    vk::Format::BC7_UNORM_BLOCK,
    vk::Format::ASTC_12X10_UNORM_BLOCK,
    vk::Format::D16_UNORM,
    vk::Format::D24_UNORM_S8_UINT,
    vk::Format::D32_SFLOAT_S8_UINT,
    vk::Format::S8_UINT,
    vk::Format::G8_B8R8_2PLANE_420_UNORM,
    vk::Format::G8_B8_R8_3PLANE_420_UNORM,
];

/// A few hundred images of all shapes.
fn shapes() -> impl Iterator<Item = ImageDescription> {
    FORMATS.into_iter().flat_map(|format| {
        let sizes = [(1, 1, 1), (17, 5, 1), (64, 64, 1), (300, 200, 1), (33, 20, 9), (1024, 1024, 1)];
        sizes.into_iter().flat_map(move |(width, height, depth)| {
            let levels = [1, 32 - u32::leading_zeros(width.max(height))];
            levels.into_iter().flat_map(move |mip_levels| {
                [1, 5].into_iter().flat_map(move |array_layers| {
                    [vk::ImageTiling::OPTIMAL, vk::ImageTiling::LINEAR].map(|tiling| ImageDescription {
                        extent: vk::Extent3D { width, height, depth },
                        mip_levels,
                        array_layers,
                        tiling,
                        ..image(format, width, height)
                    })
                })
            })
        })
    })
}

fn aspects(image: &ImageDescription) -> Vec<vk::ImageAspectFlags> {
    let all = FormatInfo::of(image.format).unwrap().aspects().as_raw();
    (0..32).map(|bit| 1 << bit).filter(|bit| all & bit != 0).map(vk::ImageAspectFlags::from_raw).collect()
}

#[test]
fn subresources_lie_inside_the_image_and_not_upon_each_other() {
    for profile in ALL {
        for image in shapes() {
            let size = image_requirements(profile, &image).size;
            let mut ranges = Vec::new();
            // The aspects of a depth-stencil image share their blocks.
            let aspects = aspects(&image);
            let planes = FormatInfo::of(image.format).unwrap().planes().len();
            for &aspect_mask in aspects.iter().take(planes) {
                for mip_level in 0..image.mip_levels {
                    for array_layer in 0..image.array_layers {
                        let subresource = vk::ImageSubresource { aspect_mask, mip_level, array_layer };
                        let layout = subresource_layout(profile, &image, subresource).unwrap();
                        assert!(layout.depth_pitch >= layout.row_pitch);
                        assert!(
                            layout.size
                                >= layout.depth_pitch * u64::from((image.extent.depth >> mip_level).max(1))
                        );
                        ranges.push((layout.offset, layout.offset + layout.size));
                    }
                }
            }
            ranges.sort_unstable();
            assert!(ranges.windows(2).all(|pair| pair[0].1 <= pair[1].0), "{}", profile.name);
            assert!(ranges.last().unwrap().1 <= size, "{}", profile.name);
        }
    }
}

#[test]
fn every_texel_has_room_in_its_row() {
    for profile in ALL {
        for image in shapes() {
            let layout = ImageLayout::new(profile, &image).unwrap();
            for aspect in aspects(&image) {
                let (level, place) = layout.level(aspect, 0, 0).unwrap();
                let blocks = u64::from(level.extent[0].div_ceil(level.plane.block.0));
                assert!(level.row_pitch >= blocks * level.plane.bytes);
                assert!(place.first + place.bytes <= level.plane.bytes);
                let rows = u64::from(level.extent[1].div_ceil(level.plane.block.1));
                assert!(level.depth_pitch >= rows * level.row_pitch);
            }
        }
    }
}

#[test]
fn no_subresource_outside_of_the_image() {
    let lavapipe = profile("lavapipe");
    let image =
        ImageDescription { mip_levels: 3, array_layers: 2, ..image(vk::Format::D24_UNORM_S8_UINT, 64, 64) };
    let at = |aspect_mask, mip_level, array_layer| {
        subresource_layout(lavapipe, &image, vk::ImageSubresource { aspect_mask, mip_level, array_layer })
    };
    assert!(at(vk::ImageAspectFlags::DEPTH, 2, 1).is_some());
    assert!(at(vk::ImageAspectFlags::STENCIL, 2, 1).is_some());
    assert!(at(vk::ImageAspectFlags::DEPTH, 3, 0).is_none());
    assert!(at(vk::ImageAspectFlags::DEPTH, 0, 2).is_none());
    assert!(at(vk::ImageAspectFlags::COLOR, 0, 0).is_none());
    assert!(at(vk::ImageAspectFlags::DEPTH | vk::ImageAspectFlags::STENCIL, 0, 0).is_none());
}

#[test]
fn the_samples_of_a_texel_lie_in_a_grid_that_is_wider_than_high() {
    for (samples, grid) in [(1, (1, 1)), (2, (2, 1)), (4, (2, 2)), (8, (4, 2)), (16, (4, 4))] {
        let mut image = image(vk::Format::R8_UNORM, 5, 3);
        image.samples = vk::SampleCountFlags::from_raw(samples);
        let layout = ImageLayout::new(profile("lavapipe"), &image).unwrap();
        let (level, _) = layout.level(vk::ImageAspectFlags::COLOR, 0, 0).unwrap();
        assert_eq!(level.samples, grid);
        assert!(level.row_pitch >= u64::from(5 * grid.0));
        assert!(level.depth_pitch >= level.row_pitch * u64::from(3 * grid.1));
    }
}

#[test]
fn an_image_as_large_as_a_tile_has_the_larger_tiles() {
    for profile in ALL {
        for tile in profile.images.tiles.iter().filter(|tile| tile.from > 0) {
            let layout = |bytes: u64| {
                let image = image(vk::Format::R8_UNORM, bytes as u32, 1);
                ImageLayout::new(profile, &image).unwrap().alignment()
            };
            let smaller = profile.images.tiles.iter().rfind(|other| other.from < tile.from);
            assert_eq!(layout(tile.from), tile.alignment, "{}", profile.name);
            assert_eq!(layout(tile.from - 1), smaller.unwrap().alignment, "{}", profile.name);
        }
    }
}

#[test]
fn planes_are_as_large_as_their_divisor_says() {
    let lavapipe = profile("lavapipe");
    let image = image(vk::Format::G8_B8R8_2PLANE_420_UNORM, 128, 128);
    let layout = ImageLayout::new(lavapipe, &image).unwrap();
    let (luma, _) = layout.level(vk::ImageAspectFlags::PLANE_0, 0, 0).unwrap();
    let (chroma, _) = layout.level(vk::ImageAspectFlags::PLANE_1, 0, 0).unwrap();
    assert_eq!((luma.extent, luma.size), ([128, 128, 1], 128 * 128));
    assert_eq!((chroma.extent, chroma.offset, chroma.size), ([64, 64, 1], 128 * 128, 64 * 64 * 2));
}

#[test]
fn depth_of_24_bits_fills_32_in_a_buffer() {
    let info = FormatInfo::of(vk::Format::D24_UNORM_S8_UINT).unwrap();
    let depth = info.aspect(vk::ImageAspectFlags::DEPTH).unwrap();
    let stencil = info.aspect(vk::ImageAspectFlags::STENCIL).unwrap();
    assert_eq!((depth.first, depth.bytes, depth.buffer_bytes), (0, 3, 4));
    assert_eq!((stencil.first, stencil.bytes, stencil.buffer_bytes), (3, 1, 1));
}

#[test]
fn every_core_format_is_known() {
    let known = |raw| FormatInfo::of(vk::Format::from_raw(raw)).is_some();
    assert!((1..=184).all(known));
    assert!(!known(0) && !known(185) && !known(-1));
    let blocks = |format| {
        let plane = FormatInfo::of(format).unwrap().planes()[0];
        (plane.bytes, plane.block)
    };
    assert_eq!(blocks(vk::Format::R8G8B8_SRGB), (3, (1, 1)));
    assert_eq!(blocks(vk::Format::B10G11R11_UFLOAT_PACK32), (4, (1, 1)));
    assert_eq!(blocks(vk::Format::R64G64B64A64_SFLOAT), (32, (1, 1)));
    assert_eq!(blocks(vk::Format::BC4_SNORM_BLOCK), (8, (4, 4)));
    assert_eq!(blocks(vk::Format::EAC_R11G11_SNORM_BLOCK), (16, (4, 4)));
    assert_eq!(blocks(vk::Format::ASTC_10X6_SRGB_BLOCK), (16, (10, 6)));
    assert_eq!(blocks(vk::Format::ASTC_12X12_SRGB_BLOCK), (16, (12, 12)));
}

#[test]
fn requirements_keep_vulkans_promises() {
    let visible = vk::MemoryPropertyFlags::HOST_VISIBLE | vk::MemoryPropertyFlags::HOST_COHERENT;
    for profile in ALL {
        let of = |bits: u32, flags: vk::MemoryPropertyFlags| {
            profile
                .types
                .iter()
                .enumerate()
                .any(|(index, kind)| bits & 1 << index != 0 && kind.flags.contains(flags))
        };
        for usage in 0..18 {
            let usage = vk::BufferUsageFlags::from_raw(1 << usage | 1);
            for size in [1, 15, 4097, 1 << 30] {
                let buffer =
                    BufferDescription { size, usage, flags: vk::BufferCreateFlags::empty(), external: false };
                let requirements = buffer_requirements(profile, &buffer);
                assert_eq!(requirements, buffer_requirements(profile, &buffer));
                assert!(requirements.size >= size && requirements.alignment.is_power_of_two());
                // A buffer can be in memory that the host sees, and in memory of the device.
                assert!(of(requirements.type_bits, visible), "{}", profile.name);
                assert!(of(requirements.type_bits, vk::MemoryPropertyFlags::DEVICE_LOCAL));
                // Fewer usages: no stricter alignment, no fewer types.
                let fewer = BufferDescription { usage: vk::BufferUsageFlags::TRANSFER_SRC, ..buffer };
                let fewer = buffer_requirements(profile, &fewer);
                assert!(fewer.alignment <= requirements.alignment);
                assert_eq!(fewer.type_bits & requirements.type_bits, requirements.type_bits);
            }
        }
        for image in shapes() {
            let requirements = image_requirements(profile, &image);
            assert!(requirements.size > 0 && requirements.alignment.is_power_of_two());
            assert!(of(requirements.type_bits, vk::MemoryPropertyFlags::DEVICE_LOCAL), "{}", profile.name);
            // Linear images can be in memory that the host sees, where it does not have to be Adreno.
            if image.tiling == vk::ImageTiling::LINEAR && profile.vendor_id != 0x5143 {
                assert!(of(requirements.type_bits, visible), "{}", profile.name);
            }
            // Lazily allocated memory is for transient attachments alone.
            let transient = ImageDescription { usage: vk::ImageUsageFlags::TRANSIENT_ATTACHMENT, ..image };
            let transient = image_requirements(profile, &transient).type_bits;
            let lazily = vk::MemoryPropertyFlags::LAZILY_ALLOCATED;
            assert!(!of(requirements.type_bits, lazily));
            let has_lazy = profile.types.iter().any(|kind| kind.flags.contains(lazily));
            assert_eq!(of(transient, lazily), has_lazy && image.tiling == vk::ImageTiling::OPTIMAL);
            assert_eq!(transient & requirements.type_bits, requirements.type_bits);
            assert_eq!(requirements.type_bits & !profile.all_types(), 0);
        }
    }
}

#[test]
fn protected_resources_are_in_protected_memory() {
    let adreno = profile("qualcomm-adreno-620");
    let flags = vk::BufferCreateFlags::PROTECTED;
    let buffer =
        BufferDescription { size: 1, usage: vk::BufferUsageFlags::TRANSFER_SRC, flags, external: false };
    assert_eq!(buffer_requirements(adreno, &buffer).type_bits, 1 << 5);
    let image =
        ImageDescription { flags: vk::ImageCreateFlags::PROTECTED, ..image(vk::Format::R8_UNORM, 4, 4) };
    assert_eq!(image_requirements(adreno, &image).type_bits, 1 << 5);
}

#[test]
fn each_depth_format_has_its_own_type_on_the_older_driver() {
    let card = profile("nvidia-gtx-1060");
    let types = |format| image_requirements(card, &image(format, 64, 64)).type_bits;
    assert_eq!(types(vk::Format::R8_UNORM), 1 << 7 | 1 << 1);
    assert_eq!(types(vk::Format::D16_UNORM), 1 << 7 | 1 << 2);
    assert_eq!(types(vk::Format::D32_SFLOAT_S8_UINT), 1 << 7 | 1 << 5);
}

#[test]
fn shared_images_need_their_own_memory_where_the_driver_says_so() {
    let shared = ImageDescription { external: true, ..image(vk::Format::R8_UNORM, 4, 4) };
    let requirements = image_requirements(profile("nvidia-h200"), &shared);
    assert!(requirements.requires_dedicated && requirements.prefers_dedicated);
    assert!(!image_requirements(profile("lavapipe"), &shared).requires_dedicated);
}

#[test]
fn absurd_images_are_larger_than_any_memory() {
    let absurd = ImageDescription {
        extent: vk::Extent3D { width: u32::MAX, height: u32::MAX, depth: u32::MAX },
        mip_levels: u32::MAX,
        array_layers: u32::MAX,
        ..image(vk::Format::R64G64B64A64_SFLOAT, 0, 0)
    };
    for profile in ALL {
        assert_eq!(image_requirements(profile, &absurd).size, u64::MAX);
        let none = ImageDescription { format: vk::Format::UNDEFINED, ..absurd };
        assert_eq!(image_requirements(profile, &none).type_bits, 0);
    }
}
