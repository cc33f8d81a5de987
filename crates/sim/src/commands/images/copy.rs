//! Copies between images.
#![expect(unsafe_code, reason = "the functions have the C ABI")]

use ash::vk;

use super::{ImageCommandRules, ImagePair, RegionRules, check_region, layer_count, usable_images};
use crate::commands::record;
use crate::facts::broken::{Broken, refuse_if};
use crate::facts::chain;
use crate::facts::format::{FormatInfo, ImageDescription, ImageLayout, LevelLayout};
use crate::objects::commands::RecordedCommand;
use crate::objects::state::DeviceObject;

/// The rules of a copy between images.
struct CopyImageRules {
    recording: &'static str,
    src: ImageCommandRules,
    dst: ImageCommandRules,
    samples: &'static str,
    compatible: &'static str,
    aspects: &'static str,
    types: &'static str,
    flat: &'static str,
    layers: &'static str,
    /// Layers to slices, and slices to layers.
    slices: [&'static str; 2],
    /// Across, down, deep.
    empty: [&'static str; 3],
    no_regions: &'static str,
}

macro_rules! image_copy_side {
    (
        $info:literal, $image:literal, $sub:literal, $offset:literal, $usage:literal, $layout:literal, $layouts:literal,
        $aspect:literal, $x:literal, $y:literal, $z:literal, $block_x:literal, $block_y:literal, $width:literal,
        $height:literal
    ) => {
        ImageCommandRules {
            parameter: concat!("VUID-", $info, "-", $image, "-parameter"),
            usage: concat!("VUID-", $info, "-aspect-", $usage),
            bound: concat!("VUID-", $info, "-", $image, "-07966"),
            samples: None,
            layout: concat!("VUID-", $info, "-", $image, "Layout-", $layout),
            layouts: concat!("VUID-", $info, "-", $image, "Layout-", $layouts),
            region: RegionRules {
                level: concat!("VUID-", $info, "-", $sub, "-07967"),
                layers: concat!("VUID-", $info, "-", $sub, "-07968"),
                aspect: concat!("VUID-", $info, "-aspectMask-", $aspect),
                inside: [
                    concat!("VUID-", $info, "-", $offset, "-", $x),
                    concat!("VUID-", $info, "-", $offset, "-", $y),
                    concat!("VUID-", $info, "-", $offset, "-", $z),
                ],
                block_offset: [
                    concat!("VUID-", $info, "-pRegions-", $block_x),
                    concat!("VUID-", $info, "-pRegions-", $block_y),
                ],
                block_extent: [
                    concat!("VUID-", $info, "-", $image, "-", $width),
                    concat!("VUID-", $info, "-", $image, "-", $height),
                ],
            },
        }
    };
}

macro_rules! image_copy_rules {
    ($command:literal, $info:literal, $region:literal) => {
        CopyImageRules {
            recording: concat!("VUID-", $command, "-commandBuffer-recording"),
            src: image_copy_side! {
                $info, "srcImage", "srcSubresource", "srcOffset", "06662", "00128", "01917", "00142", "00144", "00145",
                "00147", "07278", "07279", "01728", "01729"
            },
            dst: image_copy_side! {
                $info, "dstImage", "dstSubresource", "dstOffset", "06663", "00133", "01395", "00143", "00150", "00151",
                "00153", "07281", "07282", "01732", "01733"
            },
            samples: concat!("VUID-", $info, "-srcImage-00136"),
            compatible: concat!("VUID-", $info, "-srcImage-01548"),
            aspects: concat!("VUID-", $info, "-srcImage-01551"),
            types: concat!("VUID-", $info, "-srcImage-07743"),
            flat: concat!("VUID-", $info, "-srcImage-01790"),
            layers: concat!("VUID-", $info, "-srcImage-08793"),
            slices: [concat!("VUID-", $info, "-srcImage-01791"), concat!("VUID-", $info, "-dstImage-01792")],
            empty: [
                concat!("VUID-", $region, "-extent-06668"),
                concat!("VUID-", $region, "-extent-06669"),
                concat!("VUID-", $region, "-extent-06670"),
            ],
            no_regions: concat!("VUID-", $info, "-regionCount-arraylength"),
        }
    };
}

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
    let rules = image_copy_rules!("vkCmdCopyImage", "vkCmdCopyImage", "VkImageCopy");
    let call = "vkCmdCopyImage";
    record_copy(command_buffer, call, &rules, [(src, src_layout), (dst, dst_layout)], regions.to_vec());
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
    let rules = image_copy_rules!("vkCmdCopyImage2", "VkCopyImageInfo2", "VkImageCopy2");
    let src = (info.src_image, info.src_image_layout);
    let dst = (info.dst_image, info.dst_image_layout);
    record_copy(command_buffer, "vkCmdCopyImage2", &rules, [src, dst], regions);
}

fn record_copy(
    command_buffer: vk::CommandBuffer,
    call: &'static str,
    rules: &CopyImageRules,
    images: ImagePair,
    mut regions: Vec<vk::ImageCopy>,
) {
    record(command_buffer, call, rules.recording, |device, state| {
        let found = usable_images(device, state, images, [&rules.src, &rules.dst]);
        let Some(([from, to], names, [src, dst])) = found else {
            return Ok(Vec::new());
        };
        refuse_if!(regions.is_empty() => rules.no_regions, "regionCount is 0");
        refuse_if!(from.samples != to.samples => rules.samples, "{names}: the sample counts differ");
        for region in &mut regions {
            region.src_subresource.layer_count = layer_count(from, &region.src_subresource);
            region.dst_subresource.layer_count = layer_count(to, &region.dst_subresource);
            check_copy(device, (from, to), region, rules)
                .map_err(|(rule, text)| (rule, format!("{names}: {text}")))?;
        }
        Ok(vec![RecordedCommand::CopyImage { src, dst, regions }])
    });
}

fn check_copy(
    device: &DeviceObject,
    (from, to): (&ImageDescription, &ImageDescription),
    region: &vk::ImageCopy,
    rules: &CopyImageRules,
) -> Result<(), Broken> {
    let extent = region.extent;
    for (index, value) in [extent.width, extent.height, extent.depth].into_iter().enumerate() {
        refuse_if!(value == 0 => rules.empty[index], "extent has a 0");
    }
    let (src, dst) = (&region.src_subresource, &region.dst_subresource);
    // Slices of a 3D image may become layers, and the other way round.
    let deep = |image: &ImageDescription| image.image_type == vk::ImageType::TYPE_3D;
    let lines = |image: &ImageDescription| image.image_type == vk::ImageType::TYPE_1D;
    refuse_if!(from.image_type != to.image_type && (lines(from) || lines(to)) => rules.types,
        "a 1D image and one that is not are not copied");
    refuse_if!(!deep(from) && !deep(to) && extent.depth != 1 => rules.flat,
        "{} slices of images that have one", extent.depth);
    let flat = |extent: vk::Extent3D| vk::Extent3D { depth: 1, ..extent };
    let layout = ImageLayout::new(device.profile(), from);
    let covered = if deep(to) && !deep(from) { flat(extent) } else { extent };
    let offset = region.src_offset;
    let (src_level, _) = check_region(layout.as_ref(), from, src, offset, covered, &rules.src.region)?;
    // Color to color, depth to depth: only planes may be copied between different aspects.
    let planar =
        |image: &ImageDescription| FormatInfo::of(image.format).is_some_and(|i| i.planes().len() > 1);
    if src.aspect_mask != dst.aspect_mask && !planar(from) && !planar(to) {
        let (src, dst) = (src.aspect_mask.as_raw(), dst.aspect_mask.as_raw());
        return Err((rules.aspects, format!("the aspects {src:#x} to the aspects {dst:#x}")));
    }
    let slices = |image, layers: &vk::ImageSubresourceLayers| {
        if deep(image) { extent.depth } else { layers.layer_count }
    };
    if slices(from, src) != slices(to, dst) {
        let text = format!("{} slices or layers to {}", slices(from, src), slices(to, dst));
        let rule = match (deep(from), deep(to)) {
            (false, true) => rules.slices[0],
            (true, false) => rules.slices[1],
            _ => rules.layers,
        };
        return Err((rule, text));
    }
    let layout = ImageLayout::new(device.profile(), to);
    let covered = in_other_blocks(extent, &src_level, layout.as_ref(), dst);
    let covered = if deep(from) && !deep(to) { flat(covered) } else { covered };
    let (dst_level, _) =
        check_region(layout.as_ref(), to, dst, region.dst_offset, covered, &rules.dst.region)?;
    refuse_if!(src_level.plane.bytes != dst_level.plane.bytes => rules.compatible,
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
