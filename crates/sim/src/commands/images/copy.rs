//! Copies between images.
#![expect(unsafe_code, reason = "the functions have the C ABI")]

use ash::vk;

use super::{ImageCommandRules, ImagePair, check_region, layer_count, usable_images};
use crate::commands::{CommandForm, record};
use crate::facts::broken::{Broken, refuse_if};
use crate::facts::chain;
use crate::facts::format::{FormatInfo, ImageDescription, ImageLayout, LevelLayout};
use crate::objects::commands::RecordedCommand;
use crate::objects::state::DeviceObject;

const SRC: ImageCommandRules = ImageCommandRules {
    image: ["srcImage-parameter", "aspect-06662", "srcImage-07966"],
    layouts: ["srcImageLayout-00128", "srcImageLayout-01917"],
    samples: None,
    parts: ["srcSubresource-07967", "srcSubresource-07968"],
    aspect: |form| form.rule("aspectMask-00142"),
    inside: ["srcOffset-00144", "srcOffset-00145", "srcOffset-00147"],
    block_offset: ["pRegions-07278", "pRegions-07279"],
    block_extent: ["srcImage-01728", "srcImage-01729"],
};
const DST: ImageCommandRules = ImageCommandRules {
    image: ["dstImage-parameter", "aspect-06663", "dstImage-07966"],
    layouts: ["dstImageLayout-00133", "dstImageLayout-01395"],
    samples: None,
    parts: ["dstSubresource-07967", "dstSubresource-07968"],
    aspect: |form| form.rule("aspectMask-00143"),
    inside: ["dstOffset-00150", "dstOffset-00151", "dstOffset-00153"],
    block_offset: ["pRegions-07281", "pRegions-07282"],
    block_extent: ["dstImage-01732", "dstImage-01733"],
};

pub(crate) unsafe extern "system" fn copy(
    command_buffer: vk::CommandBuffer,
    src: vk::Image,
    src_layout: vk::ImageLayout,
    dst: vk::Image,
    dst_layout: vk::ImageLayout,
    count: u32,
    p_regions: *const vk::ImageCopy,
) {
    // SAFETY: VUID-vkCmdCopyImage-pRegions-parameter.
    let regions = unsafe { chain::array(p_regions, count) };
    let form = CommandForm { call: "vkCmdCopyImage", info: "vkCmdCopyImage", region: "VkImageCopy" };
    record_copy(command_buffer, form, [(src, src_layout), (dst, dst_layout)], regions.to_vec());
}

pub(crate) unsafe extern "system" fn copy2(
    command_buffer: vk::CommandBuffer,
    p_info: *const vk::CopyImageInfo2<'_>,
) {
    // SAFETY: VUID-vkCmdCopyImage2-pCopyImageInfo-parameter.
    let Some(info) = (unsafe { chain::input(p_info) }) else {
        return;
    };
    // SAFETY: VUID-VkCopyImageInfo2-pRegions-parameter.
    let regions = unsafe { chain::array(info.p_regions, info.region_count) };
    let regions = regions
        .iter()
        .map(|region| vk::ImageCopy {
            src_subresource: region.src_subresource,
            src_offset: region.src_offset,
            dst_subresource: region.dst_subresource,
            dst_offset: region.dst_offset,
            extent: region.extent,
        })
        .collect();
    let form = CommandForm { call: "vkCmdCopyImage2", info: "VkCopyImageInfo2", region: "VkImageCopy2" };
    let src = (info.src_image, info.src_image_layout);
    let dst = (info.dst_image, info.dst_image_layout);
    record_copy(command_buffer, form, [src, dst], regions);
}

fn record_copy(
    command_buffer: vk::CommandBuffer,
    form: CommandForm,
    images: ImagePair,
    mut regions: Vec<vk::ImageCopy>,
) {
    record(command_buffer, form.call, |device, state| {
        let found = usable_images(device, state, images, form, [&SRC, &DST]);
        let Some(([from, to], names, [src, dst])) = found else {
            return Ok(Vec::new());
        };
        refuse_if!(regions.is_empty() => form.rule("regionCount-arraylength"), "regionCount is 0");
        refuse_if!(from.samples != to.samples => form.rule("srcImage-00136"),
            "{names}: the sample counts differ");
        for region in &mut regions {
            region.src_subresource.layer_count = layer_count(from, &region.src_subresource);
            region.dst_subresource.layer_count = layer_count(to, &region.dst_subresource);
            check_copy(device, (from, to), region, form)
                .map_err(|(rule, text)| (rule, format!("{names}: {text}")))?;
        }
        Ok(vec![RecordedCommand::CopyImage { src, dst, regions }])
    });
}

fn check_copy(
    device: &DeviceObject,
    (from, to): (&ImageDescription, &ImageDescription),
    region: &vk::ImageCopy,
    form: CommandForm,
) -> Result<(), Broken> {
    let extent = region.extent;
    let rules = ["extent-06668", "extent-06669", "extent-06670"];
    for (value, rule) in [extent.width, extent.height, extent.depth].into_iter().zip(rules) {
        refuse_if!(value == 0 => form.region_rule(rule), "extent has a 0");
    }
    let (src, dst) = (&region.src_subresource, &region.dst_subresource);
    // Slices of a 3D image may become layers, and the other way round.
    let deep = |image: &ImageDescription| image.image_type == vk::ImageType::TYPE_3D;
    let lines = |image: &ImageDescription| image.image_type == vk::ImageType::TYPE_1D;
    refuse_if!(from.image_type != to.image_type && (lines(from) || lines(to))
        => form.rule("srcImage-07743"),
        "a 1D image and one that is not are not copied");
    refuse_if!(!deep(from) && !deep(to) && extent.depth != 1
        => form.rule("srcImage-01790"),
        "{} slices of images that have one", extent.depth);
    let flat = |extent: vk::Extent3D| vk::Extent3D { depth: 1, ..extent };
    let layout = ImageLayout::new(device.profile(), from);
    let covered = if deep(to) && !deep(from) { flat(extent) } else { extent };
    let offset = region.src_offset;
    let (src_level, _) = check_region(layout.as_ref(), from, src, offset, covered, (form, &SRC))?;
    // Color to color, depth to depth: only planes may be copied between different aspects.
    let planar =
        |image: &ImageDescription| FormatInfo::of(image.format).is_some_and(|i| i.planes().len() > 1);
    if src.aspect_mask != dst.aspect_mask && !planar(from) && !planar(to) {
        let (src, dst) = (src.aspect_mask.as_raw(), dst.aspect_mask.as_raw());
        return Err((form.rule("srcImage-01551"), format!("the aspects {src:#x} to the aspects {dst:#x}")));
    }
    let slices = |image, layers: &vk::ImageSubresourceLayers| {
        if deep(image) { extent.depth } else { layers.layer_count }
    };
    if slices(from, src) != slices(to, dst) {
        let text = format!("{} slices or layers to {}", slices(from, src), slices(to, dst));
        let rule = match (deep(from), deep(to)) {
            (false, true) => "srcImage-01791",
            (true, false) => "dstImage-01792",
            _ => "srcImage-08793",
        };
        return Err((form.rule(rule), text));
    }
    let layout = ImageLayout::new(device.profile(), to);
    let covered = in_other_blocks(extent, &src_level, layout.as_ref(), dst);
    let covered = if deep(from) && !deep(to) { flat(covered) } else { covered };
    let offset = region.dst_offset;
    let (dst_level, _) = check_region(layout.as_ref(), to, dst, offset, covered, (form, &DST))?;
    refuse_if!(src_level.plane.bytes != dst_level.plane.bytes => form.rule("srcImage-01548"),
        "blocks of {} bytes to blocks of {}", src_level.plane.bytes, dst_level.plane.bytes);
    Ok(())
}

/// The extent of a region of the source in texels of the destination. Their blocks may differ in size.
fn in_other_blocks(
    extent: vk::Extent3D,
    src: &LevelLayout,
    layout: Option<&ImageLayout<'_>>,
    dst: &vk::ImageSubresourceLayers,
) -> vk::Extent3D {
    let one = dst.aspect_mask.as_raw() & dst.aspect_mask.as_raw().wrapping_neg();
    let level = layout.and_then(|layout| layout.level(vk::ImageAspectFlags::from_raw(one), dst.mip_level, 0));
    let block = level.map_or((1, 1), |(level, _)| level.plane.block);
    let convert = |texels: u32, from: u32, to: u32| {
        if from == to { texels } else { texels.div_ceil(from).saturating_mul(to) }
    };
    vk::Extent3D {
        width: convert(extent.width, src.plane.block.0, block.0),
        height: convert(extent.height, src.plane.block.1, block.1),
        depth: extent.depth,
    }
}
