//! Copies from and to images: what all kinds have in common.

pub(crate) mod blit;
pub(crate) mod buffer;
pub(crate) mod copy;
pub(crate) mod multisampled;

use ash::vk;

use super::CommandForm;
use crate::facts::broken::{Broken, refuse_if, rule};
use crate::facts::format::{Aspect, FormatInfo, ImageDescription, ImageLayout, LevelLayout};
use crate::objects::commands::ImageTarget;
use crate::objects::state::{DeviceObject, DeviceState};

/// The rules for an image in a command, without the call or structure that their identifiers begin with.
pub(crate) struct ImageCommandRules {
    /// Of the handle, of the usage and of the memory.
    pub(crate) image: [&'static str; 3],
    /// Of the layout that the image has, and of those that the command takes.
    pub(crate) layouts: [&'static str; 2],
    pub(crate) samples: Option<&'static str>,
    /// Of the level and of the layers.
    pub(crate) parts: [&'static str; 2],
    pub(crate) aspect: fn(CommandForm) -> &'static str,
    /// Across, down, deep.
    pub(crate) inside: [&'static str; 3],
    /// Across, down; for commands that take formats of blocks.
    pub(crate) block_offset: [&'static str; 2],
    pub(crate) block_extent: [&'static str; 2],
}

/// The rules of a command that cannot break any.
pub(crate) const NO_RULES: ImageCommandRules = ImageCommandRules {
    image: [""; 3],
    layouts: [""; 2],
    samples: None,
    parts: [""; 2],
    aspect: |_| "",
    inside: [""; 3],
    block_offset: [""; 2],
    block_extent: [""; 2],
};

/// The count of layers that a command covers.
fn layer_count(image: &ImageDescription, layers: &vk::ImageSubresourceLayers) -> u32 {
    if layers.layer_count == vk::REMAINING_ARRAY_LAYERS {
        image.array_layers.saturating_sub(layers.base_array_layer)
    } else {
        layers.layer_count
    }
}

/// The description of an image that a command may use in this layout. Else it reports why not, by a rule of `of`, and
/// answers `None`.
pub(crate) fn usable_image<'a>(
    device: &DeviceObject,
    state: &'a DeviceState,
    image: vk::Image,
    usage: vk::ImageUsageFlags,
    layout: vk::ImageLayout,
    (of, rules): (&str, &ImageCommandRules),
) -> Option<&'a ImageDescription> {
    let name = state.name(image);
    let [unknown, unfit, unbound] = rules.image;
    let Some(found) = state.images.get(&image) else {
        device.report(rule(of, unknown), state.missing(device, image));
        return None;
    };
    let (missing, optimal) = if usage == vk::ImageUsageFlags::TRANSFER_SRC {
        ("TRANSFER_SRC", vk::ImageLayout::TRANSFER_SRC_OPTIMAL)
    } else {
        ("TRANSFER_DST", vk::ImageLayout::TRANSFER_DST_OPTIMAL)
    };
    let broken = if !found.description.usage.contains(usage) {
        Some((unfit, format!("{name} was created without the usage {missing}")))
    } else if found.bound.is_none() {
        Some((unbound, format!("{name} has no memory")))
    } else if layout != optimal
        && layout != vk::ImageLayout::GENERAL
        && layout != vk::ImageLayout::SHARED_PRESENT_KHR
    {
        let text = format!("{name}: no copy takes the layout {}", super::barriers::layout_name(layout));
        Some((rules.layouts[1], text))
    } else {
        let multisampled = found.description.samples != vk::SampleCountFlags::TYPE_1;
        rules.samples.filter(|_| multisampled).map(|rule| (rule, format!("{name} has several samples")))
    };
    if let Some((rest, text)) = broken {
        device.report(rule(of, rest), text);
        return None;
    }
    Some(&found.description)
}

/// Two images, from which and to which a command goes, with the layouts that it names.
type ImagePair = [(vk::Image, vk::ImageLayout); 2];

/// The descriptions of both images, as [`usable_image`] gives them; what the messages call them, and the command's
/// targets.
fn usable_images<'a>(
    device: &DeviceObject,
    state: &'a DeviceState,
    [src, dst]: ImagePair,
    form: CommandForm,
    rules: [&ImageCommandRules; 2],
) -> Option<([&'a ImageDescription; 2], String, [ImageTarget; 2])> {
    let (read, written) = (vk::ImageUsageFlags::TRANSFER_SRC, vk::ImageUsageFlags::TRANSFER_DST);
    let from = usable_image(device, state, src.0, read, src.1, (form.info, rules[0]));
    let to = usable_image(device, state, dst.0, written, dst.1, (form.info, rules[1]));
    let target = |(image, layout), rules: &ImageCommandRules| {
        let layout_rule = form.rule(rules.layouts[0]);
        ImageTarget { image, layout, layout_rule }
    };
    let names = format!("{} to {}", state.name(src.0), state.name(dst.0));
    Some(([from?, to?], names, [target(src, rules[0]), target(dst, rules[1])]))
}

/// Checks whether a region lies within an image, in whole blocks, and where.
fn check_region(
    layout: Option<&ImageLayout<'_>>,
    image: &ImageDescription,
    layers: &vk::ImageSubresourceLayers,
    offset: vk::Offset3D,
    extent: vk::Extent3D,
    (form, rules): (CommandForm, &ImageCommandRules),
) -> Result<(LevelLayout, Aspect), Broken> {
    refuse_if!(layers.mip_level >= image.mip_levels => form.rule(rules.parts[0]),
        "mipLevel is {} of {}", layers.mip_level, image.mip_levels);
    refuse_if!(layers.layer_count == 0 => "VUID-VkImageSubresourceLayers-layerCount-01700",
        "layerCount is 0");
    let end = layers.base_array_layer.saturating_add(layers.layer_count);
    refuse_if!(end > image.array_layers => form.rule(rules.parts[1]),
        "layers {} to {end} of {}", layers.base_array_layer, image.array_layers);
    let missing = || {
        let text = format!("the image has not the aspects {:#x}", layers.aspect_mask.as_raw());
        ((rules.aspect)(form), text)
    };
    let all = FormatInfo::of(image.format).map(|info| info.aspects()).unwrap_or_default();
    if layers.aspect_mask.is_empty() || !all.contains(layers.aspect_mask) {
        return Err(missing());
    }
    // Depth and stencil have the same extents, so either serves.
    let one = layers.aspect_mask.as_raw() & layers.aspect_mask.as_raw().wrapping_neg();
    let one = vk::ImageAspectFlags::from_raw(one);
    let found = layout.and_then(|layout| layout.level(one, layers.mip_level, layers.base_array_layer));
    let Some((level, aspect)) = found else {
        return Err(missing());
    };
    let offsets = [offset.x, offset.y, offset.z].map(i64::from);
    let extents = [extent.width, extent.height, extent.depth].map(i64::from);
    let whole = level.extent.map(i64::from);
    for axis in 0..3 {
        refuse_if!(offsets[axis] < 0 || offsets[axis] + extents[axis] > whole[axis] => form.rule(rules.inside[axis]),
            "{} texels from {} on, of {}", extents[axis], offsets[axis], whole[axis]);
    }
    let blocks = [level.plane.block.0, level.plane.block.1].map(i64::from);
    for axis in 0..2 {
        refuse_if!(offsets[axis] % blocks[axis] != 0 => form.rule(rules.block_offset[axis]),
            "offset {} is not at a block of {}", offsets[axis], blocks[axis]);
        refuse_if!(extents[axis] % blocks[axis] != 0 && offsets[axis] + extents[axis] != whole[axis]
            => form.rule(rules.block_extent[axis]),
            "{} texels are not in whole blocks of {}", extents[axis], blocks[axis]);
    }
    Ok((level, aspect))
}
