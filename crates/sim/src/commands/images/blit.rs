//! Blits: copies between images that scale, flip and convert.
#![expect(unsafe_code, reason = "the functions have the C ABI")]

use ash::vk;

use super::{ImageCommandRules, ImagePair, RegionRules, check_region, layer_count, usable_images};
use crate::commands::record;
use crate::facts::broken::{Broken, refuse_if};
use crate::facts::chain;
use crate::facts::format::{Channels, FormatInfo, ImageDescription, ImageLayout};
use crate::objects::commands::RecordedCommand;
use crate::objects::state::DeviceObject;

/// The rules of a blit.
struct BlitRules {
    recording: &'static str,
    src: ImageCommandRules,
    dst: ImageCommandRules,
    /// The features that formats need as source and as destination.
    able: [&'static str; 2],
    linear: &'static str,
    signed: &'static str,
    unsigned: &'static str,
    depth: &'static str,
    depth_filter: &'static str,
    deep: &'static str,
    aspects: &'static str,
    layers: &'static str,
    no_regions: &'static str,
}

macro_rules! blit_rules {
    ($command:literal, $info:literal, $region:literal) => {
        BlitRules {
            recording: concat!("VUID-", $command, "-commandBuffer-recording"),
            src: image_side! {
                $info, "srcImage", "srcSubresource", "srcOffset", "00219", "00220",
                Some(concat!("VUID-", $info, "-srcImage-00233")), "00221", "01398", "01705", "01707",
                concat!("VUID-", $info, "-aspectMask-00241"), "00243", "00244", "00246"
            },
            dst: image_side! {
                $info, "dstImage", "dstSubresource", "dstOffset", "00224", "00225",
                Some(concat!("VUID-", $info, "-dstImage-00234")), "00226", "01399", "01706", "01708",
                concat!("VUID-", $info, "-aspectMask-00242"), "00248", "00249", "00251"
            },
            able: [concat!("VUID-", $info, "-srcImage-01999"), concat!("VUID-", $info, "-dstImage-02000")],
            linear: concat!("VUID-", $info, "-filter-02001"),
            signed: concat!("VUID-", $info, "-srcImage-00229"),
            unsigned: concat!("VUID-", $info, "-srcImage-00230"),
            depth: concat!("VUID-", $info, "-srcImage-00231"),
            depth_filter: concat!("VUID-", $info, "-srcImage-00232"),
            deep: concat!("VUID-", $info, "-srcImage-00240"),
            aspects: concat!("VUID-", $region, "-aspectMask-00238"),
            layers: concat!("VUID-", $region, "-layerCount-08800"),
            no_regions: concat!("VUID-", $info, "-regionCount-arraylength"),
        }
    };
}

pub(crate) unsafe extern "system" fn blit(
    command_buffer: vk::CommandBuffer,
    src: vk::Image,
    src_layout: vk::ImageLayout,
    dst: vk::Image,
    dst_layout: vk::ImageLayout,
    count: u32,
    p_regions: *const vk::ImageBlit,
    filter: vk::Filter,
) {
    // SAFETY: VUID-vkCmdBlitImage-pRegions-parameter.
    let regions = unsafe { chain::array(p_regions, count) };
    let rules = blit_rules!("vkCmdBlitImage", "vkCmdBlitImage", "VkImageBlit");
    let images = [(src, src_layout), (dst, dst_layout)];
    record_blit(command_buffer, "vkCmdBlitImage", &rules, images, regions.to_vec(), filter);
}

pub(crate) unsafe extern "system" fn blit2(
    command_buffer: vk::CommandBuffer,
    p_info: *const vk::BlitImageInfo2<'_>,
) {
    // SAFETY: VUID-vkCmdBlitImage2-pBlitImageInfo-parameter.
    let Some(info) = (unsafe { chain::input(p_info) }) else {
        return;
    };
    // SAFETY: VUID-VkBlitImageInfo2-pRegions-parameter.
    let regions = unsafe { chain::array(info.p_regions, info.region_count) };
    let regions = regions.iter().map(|region| vk::ImageBlit {
        src_subresource: region.src_subresource,
        src_offsets: region.src_offsets,
        dst_subresource: region.dst_subresource,
        dst_offsets: region.dst_offsets,
    });
    let rules = blit_rules!("vkCmdBlitImage2", "VkBlitImageInfo2", "VkImageBlit2");
    let images = [(info.src_image, info.src_image_layout), (info.dst_image, info.dst_image_layout)];
    record_blit(command_buffer, "vkCmdBlitImage2", &rules, images, regions.collect(), info.filter);
}

fn record_blit(
    command_buffer: vk::CommandBuffer,
    call: &'static str,
    rules: &BlitRules,
    images: ImagePair,
    mut regions: Vec<vk::ImageBlit>,
    filter: vk::Filter,
) {
    record(command_buffer, call, rules.recording, |device, state| {
        let found = usable_images(device, state, images, [&rules.src, &rules.dst]);
        let Some(([from, to], names, [src, dst])) = found else {
            return Ok(Vec::new());
        };
        let named = |(rule, text)| (rule, format!("{names}: {text}"));
        refuse_if!(regions.is_empty() => rules.no_regions, "regionCount is 0");
        check_formats(from, to, filter, rules).map_err(named)?;
        for region in &mut regions {
            region.src_subresource.layer_count = layer_count(from, &region.src_subresource);
            region.dst_subresource.layer_count = layer_count(to, &region.dst_subresource);
            check_blit(device, (from, to), region, rules).map_err(named)?;
        }
        Ok(vec![RecordedCommand::Blit { src, dst, regions, filter }])
    });
}

fn check_formats(
    from: &ImageDescription,
    to: &ImageDescription,
    filter: vk::Filter,
    rules: &BlitRules,
) -> Result<(), Broken> {
    for (image, rule) in [from, to].into_iter().zip(rules.able) {
        let can = FormatInfo::of(image.format).is_some_and(|info| info.is_plain());
        refuse_if!(!can => rule, "format {} cannot be blitted", image.format.as_raw());
    }
    let (source, target) = (Channels::of(from.format), Channels::of(to.format));
    let is = |what: fn(&Channels) -> bool| [source, target].map(|side| side.as_ref().is_some_and(what));
    let depth =
        [from, to].map(|image| FormatInfo::of(image.format).is_some_and(|info| info.is_depth_stencil()));
    let (old, new) = (from.format.as_raw(), to.format.as_raw());
    refuse_if!(depth != [false; 2] && old != new => rules.depth, "format {old} to format {new}");
    refuse_if!(depth != [false; 2] && filter != vk::Filter::NEAREST => rules.depth_filter,
        "depth and stencil have no filter but NEAREST");
    let (signed, unsigned) = (is(Channels::is_signed), is(Channels::is_unsigned));
    refuse_if!(signed[0] != signed[1] => rules.signed, "format {old} to format {new}");
    refuse_if!(unsigned[0] != unsigned[1] => rules.unsigned, "format {old} to format {new}");
    let float = is(Channels::is_float);
    refuse_if!(filter != vk::Filter::NEAREST && !float[0] => rules.linear,
        "format {old} cannot be filtered");
    refuse_if!((old != new || filter != vk::Filter::NEAREST) && float != [true; 2]
        => "SUBLET-unsupported-blit", "the simulated device cannot convert format {old} to format {new}");
    Ok(())
}

fn check_blit(
    device: &DeviceObject,
    (from, to): (&ImageDescription, &ImageDescription),
    region: &vk::ImageBlit,
    rules: &BlitRules,
) -> Result<(), Broken> {
    let (src, dst) = (&region.src_subresource, &region.dst_subresource);
    refuse_if!(src.aspect_mask != dst.aspect_mask => rules.aspects,
        "the aspects {:#x} to the aspects {:#x}", src.aspect_mask.as_raw(), dst.aspect_mask.as_raw());
    let sides = [(from, src, region.src_offsets, &rules.src), (to, dst, region.dst_offsets, &rules.dst)];
    for (image, layers, corners, rules) in sides {
        let layout = ImageLayout::new(device.profile(), image);
        let (offset, extent) = between(corners);
        check_region(layout.as_ref(), image, layers, offset, extent, &rules.region)?;
    }
    refuse_if!(src.layer_count != dst.layer_count => rules.layers,
        "{} layers to {}", src.layer_count, dst.layer_count);
    let deep = [from, to].iter().any(|image| image.image_type == vk::ImageType::TYPE_3D);
    let single =
        |layers: &vk::ImageSubresourceLayers| layers.base_array_layer == 0 && layers.layer_count == 1;
    refuse_if!(deep && !(single(src) && single(dst)) => rules.deep, "slices are no layers");
    Ok(())
}

/// The box between two corners in any order.
pub(crate) fn between([a, b]: [vk::Offset3D; 2]) -> (vk::Offset3D, vk::Extent3D) {
    let offset = vk::Offset3D { x: a.x.min(b.x), y: a.y.min(b.y), z: a.z.min(b.z) };
    let extent =
        vk::Extent3D { width: a.x.abs_diff(b.x), height: a.y.abs_diff(b.y), depth: a.z.abs_diff(b.z) };
    (offset, extent)
}
