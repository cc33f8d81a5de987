//! Finds the rules of images.

use ash::vk;
use ash::vk::Format;
use ash::vk::ImageUsageFlags as Usage;

use super::super::{FormatTypes, ImageRules, Tile, all_types};
use super::buffers::first;
use super::facts::MeasuredFacts;
use super::fit;
use super::fit::Sized;
use super::probe::{Probe, ProbedRequirements};
use crate::facts::format::{ImageDescription, bare_size, tile_of};

/// Formats of one to sixteen bytes.
const COLORS: [Format; 5] = [
    Format::R8_UNORM,
    Format::R8G8B8A8_UNORM,
    Format::R32G32B32A32_SFLOAT,
    Format::R8G8_UNORM,
    Format::R16G16B16A16_SFLOAT,
];
const DEPTHS: [Format; 7] = [
    Format::D16_UNORM,
    Format::X8_D24_UNORM_PACK32,
    Format::D32_SFLOAT,
    Format::S8_UINT,
    Format::D16_UNORM_S8_UINT,
    Format::D24_UNORM_S8_UINT,
    Format::D32_SFLOAT_S8_UINT,
];
/// Every device has formats of one of these families.
const COMPRESSED: [Format; 4] = [
    Format::BC1_RGB_UNORM_BLOCK,
    Format::BC7_UNORM_BLOCK,
    Format::ETC2_R8G8B8_UNORM_BLOCK,
    Format::ASTC_4X4_UNORM_BLOCK,
];
/// Sides in texels. The first few are enough to distinguish most tiles.
const SIDES: [(u32, u32); 22] = [
    (300, 200),
    (1, 1),
    (17, 33),
    (1, 100),
    (1000, 3),
    (64, 64),
    (16, 16),
    (3, 5),
    (100, 60),
    (7, 200),
    (128, 128),
    (200, 7),
    (256, 256),
    (511, 513),
    (640, 480),
    (1000, 1000),
    (1024, 1024),
    (1920, 1080),
    (2048, 64),
    (33, 1500),
    (4000, 20),
    (2500, 1700),
];

/// The rules, and how well they fit.
pub(crate) struct Measured {
    pub(crate) rules: ImageRules,
    /// The count of images that were used to find the tiles.
    pub(crate) sized: usize,
    /// The count of those that have the driver's size with these tiles.
    pub(crate) exact: usize,
    /// Properties that could not be measured, in words.
    pub(crate) missing: Vec<&'static str>,
}

pub(crate) fn flat(format: Format, (width, height): (u32, u32)) -> ImageDescription {
    ImageDescription {
        flags: vk::ImageCreateFlags::empty(),
        image_type: vk::ImageType::TYPE_2D,
        format,
        extent: vk::Extent3D { width, height, depth: 1 },
        mip_levels: 1,
        array_layers: 1,
        samples: vk::SampleCountFlags::TYPE_1,
        tiling: vk::ImageTiling::OPTIMAL,
        usage: Usage::SAMPLED | Usage::TRANSFER_DST,
        external: false,
    }
}

fn linear(format: Format, sides: (u32, u32)) -> ImageDescription {
    ImageDescription { tiling: vk::ImageTiling::LINEAR, ..flat(format, sides) }
}

fn target(format: Format, sides: (u32, u32)) -> ImageDescription {
    let depth = DEPTHS.contains(&format);
    let attachment = if depth { Usage::DEPTH_STENCIL_ATTACHMENT } else { Usage::COLOR_ATTACHMENT };
    ImageDescription { usage: attachment, ..flat(format, sides) }
}

/// All levels, down to one texel.
pub(crate) fn levels((width, height): (u32, u32)) -> u32 {
    u32::BITS - width.max(height).leading_zeros()
}

pub(crate) fn measure(probe: &Probe<'_>, facts: &MeasuredFacts) -> Measured {
    let mut missing = Vec::new();
    let optimal = sizes(probe, optimal_images());
    let tiles = tiles(probe, &optimal);
    let straight = sizes(probe, COLORS.iter().flat_map(|&format| SIDES.map(|sides| linear(format, sides))));
    let usual = linear(COLORS[1], SIDES[0]);
    let alignment = straight.iter().find(|sized| sized.image == usual).map_or(1, |sized| sized.alignment);
    let line = fit::tile(0, alignment, &straight);
    let pressed = sizes(probe, COMPRESSED.iter().flat_map(|&format| SIDES.map(|sides| flat(format, sides))));
    if pressed.is_empty() {
        missing.push("tiles of compressed images");
    }
    let compressed = compressed(&tiles, &pressed);
    let well = |tile: Option<Tile>, images: &[Sized]| match tile {
        Some(tile) => fit::exact(tile, images),
        None => tiles_exact(&tiles, images),
    };
    let exact = well(None, &optimal) + well(Some(line), &straight) + well(compressed, &pressed);
    if facts.features.protected_memory && probe.image(&protected(flat(COLORS[1], (64, 64)))).is_none() {
        missing.push("protected images");
    }
    let shared = ImageDescription { external: true, ..flat(COLORS[1], (256, 256)) };
    let shared = probe.image(&shared);
    if shared.is_none() {
        missing.push("images shared with other programs");
    }
    let all_types = all_types(&facts.types);
    let (color_types, mut format_types) = types(probe, &COLORS, all_types);
    let (depth_types, of_depth) = types(probe, &DEPTHS, all_types);
    format_types.extend(of_depth);
    let plain = prefers_dedicated(probe, flat);
    let targets = prefers_dedicated(probe, target);
    Measured {
        sized: optimal.len() + straight.len() + pressed.len(),
        exact,
        missing,
        rules: ImageRules {
            linear: line,
            compressed,
            color_types: if color_types == 0 { all_types } else { color_types },
            depth_types,
            linear_types: linear_types(probe) & all_types,
            transient_types: transient_types(probe, color_types) & all_types,
            format_types,
            // If attachments are no exception, one rule serves all images.
            prefers_dedicated_target_from: targets.filter(|from| plain.is_none_or(|plain| *from < plain)),
            prefers_dedicated_from: plain,
            external_requires_dedicated: shared.is_some_and(|answer| answer.requires_dedicated),
            tiles,
        },
    }
}

/// Images of many sizes: flat ones, and with levels, layers, slices and samples.
fn optimal_images() -> impl Iterator<Item = ImageDescription> {
    let [_, rgba, float, ..] = COLORS;
    let plain = COLORS[..3].iter().flat_map(|&format| SIDES.map(|sides| flat(format, sides)));
    let mips = SIDES
        .into_iter()
        .map(move |sides| ImageDescription { mip_levels: levels(sides), ..flat(rgba, sides) });
    let layers =
        SIDES.into_iter().map(move |sides| ImageDescription { array_layers: 6, ..flat(rgba, sides) });
    let both = SIDES[..8].iter().map(move |&sides| ImageDescription {
        mip_levels: levels(sides),
        array_layers: 3,
        ..flat(float, sides)
    });
    let deep = [(33, 17), (64, 64), (5, 100)].into_iter().map(move |sides| {
        let (width, height) = sides;
        ImageDescription {
            image_type: vk::ImageType::TYPE_3D,
            extent: vk::Extent3D { width, height, depth: 9 },
            ..flat(rgba, sides)
        }
    });
    let sampled = SIDES[..12]
        .iter()
        .map(move |&sides| ImageDescription { samples: vk::SampleCountFlags::TYPE_4, ..target(rgba, sides) });
    plain.chain(mips).chain(layers).chain(both).chain(deep).chain(sampled)
}

fn sizes(probe: &Probe<'_>, images: impl Iterator<Item = ImageDescription>) -> Vec<Sized> {
    let sized = |image| {
        let ProbedRequirements { size, alignment, .. } = probe.image(&image)?;
        Some(Sized { image, size, alignment })
    };
    images.filter_map(sized).collect()
}

/// A square, or half of one, whose count of texels is this power of two.
fn square(log2: u32) -> (u32, u32) {
    (1 << log2.div_ceil(2), 1 << (log2 / 2))
}

/// The tiles of optimal images. A new one begins at each size at which the alignment changes.
fn tiles(probe: &Probe<'_>, images: &[Sized]) -> Vec<Tile> {
    let alignment = |sides| probe.image(&flat(COLORS[0], sides)).map(|answer| answer.alignment);
    let mut classes: Vec<(u64, u64)> = Vec::new();
    for log2 in 0..=24 {
        let Some(found) = alignment(square(log2)) else { break };
        match classes.last() {
            None => classes.push((0, found)),
            Some(&(_, last)) if last != found => {
                let (width, height) = square(log2 - 1);
                let wider = |width: u64| {
                    u32::try_from(width).ok().and_then(|width| alignment((width, height))) == Some(found)
                };
                let width = first(u64::from(width) + 1, u64::from(width) * 2, wider);
                // A driver that changes back and forth does not decide by size alone.
                let from = width.map_or(1 << log2, |width| width * u64::from(height));
                classes.push((from, found));
            }
            Some(_) => {}
        }
    }
    if classes.is_empty() {
        classes.push((0, 1));
    }
    let ends = classes.iter().skip(1).map(|&(from, _)| from).chain([u64::MAX]).collect::<Vec<_>>();
    classes
        .iter()
        .zip(ends)
        .map(|(&(from, alignment), end)| {
            let within =
                |image: &&Sized| bare_size(&image.image).is_some_and(|bytes| (from..end).contains(&bytes));
            let images: Vec<_> = images.iter().filter(within).copied().collect();
            fit::tile(from, alignment, &images)
        })
        .collect()
}

/// The count of images that have the driver's size with their own tile.
fn tiles_exact(tiles: &[Tile], images: &[Sized]) -> usize {
    let is_exact = |sized: &Sized| {
        let tile = tile_of(tiles, bare_size(&sized.image)?)?;
        Some(fit::exact(*tile, std::slice::from_ref(sized)))
    };
    images.iter().filter_map(is_exact).sum()
}

/// The tile of compressed images, if it differs from that of all others.
fn compressed(tiles: &[Tile], images: &[Sized]) -> Option<Tile> {
    let alignment = images.first()?.alignment;
    let usual = |sized: &Sized| Some(tile_of(tiles, bare_size(&sized.image)?)?.alignment);
    let alike = images.iter().all(|sized| usual(sized) == Some(sized.alignment));
    if alike && tiles_exact(tiles, images) == images.len() {
        return None;
    }
    Some(fit::tile(0, alignment, images))
}

fn protected(image: ImageDescription) -> ImageDescription {
    ImageDescription { flags: image.flags | vk::ImageCreateFlags::PROTECTED, ..image }
}

/// The memory types of an image, and of one that is protected.
fn types_of(probe: &Probe<'_>, image: ImageDescription) -> Option<u32> {
    let plain = probe.image(&image)?.types;
    Some(plain | probe.image(&protected(image)).map_or(0, |answer| answer.types))
}

fn kind(format: Format) -> ImageDescription {
    if DEPTHS.contains(&format) { target(format, (64, 64)) } else { flat(format, (64, 64)) }
}

/// The memory types, out of `all`, that images of all these formats have, and the further ones that images of single
/// formats have.
fn types(probe: &Probe<'_>, formats: &[Format], all: u32) -> (u32, Vec<FormatTypes>) {
    let types = |format| Some(FormatTypes { format, types: types_of(probe, kind(format))? & all });
    let mut each: Vec<FormatTypes> = formats.iter().copied().filter_map(types).collect();
    let common = each.iter().map(|known| known.types).reduce(|common, types| common & types).unwrap_or(0);
    each.iter_mut().for_each(|known| known.types &= !common);
    each.retain(|known| known.types != 0);
    (common, each)
}

fn linear_types(probe: &Probe<'_>) -> u32 {
    types_of(probe, linear(COLORS[1], (64, 64))).unwrap_or(0)
}

/// The further memory types of transient attachments.
fn transient_types(probe: &Probe<'_>, color_types: u32) -> u32 {
    let image = target(COLORS[1], (64, 64));
    let usage = image.usage | Usage::TRANSIENT_ATTACHMENT;
    probe.image(&ImageDescription { usage, ..image }).map_or(0, |answer| answer.types & !color_types)
}

/// The size from which on a dedicated allocation is preferred: the least that was found, with squares first and then
/// with rows.
fn prefers_dedicated(
    probe: &Probe<'_>,
    image: impl Fn(Format, (u32, u32)) -> ImageDescription,
) -> Option<u64> {
    let ask = |sides| probe.image(&image(COLORS[0], sides));
    let prefers = |sides| ask(sides).is_some_and(|answer| answer.prefers_dedicated);
    let log2 = (0..=28).find(|&log2| prefers(square(log2)))?;
    let Some(smaller) = log2.checked_sub(1) else { return ask(square(0)).map(|answer| answer.size) };
    let (width, height) = square(smaller);
    let with = |rows: u64| (width, u32::try_from(rows).unwrap_or(u32::MAX));
    let rows = first(u64::from(height) + 1, u64::from(height) * 2, |rows| prefers(with(rows)));
    rows.and_then(|rows| ask(with(rows))).or_else(|| ask(square(log2))).map(|answer| answer.size)
}
