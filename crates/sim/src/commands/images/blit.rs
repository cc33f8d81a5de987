//! Blits: copies between images that scale, flip and convert.
#![expect(unsafe_code, reason = "the functions have the C ABI")]

use ash::vk;

use super::{ImageCommandRules, ImagePair, NO_RULES, check_region, layer_count, usable_images};
use crate::commands::{CommandForm, record};
use crate::facts::broken::{Broken, refuse_if};
use crate::facts::chain;
use crate::facts::format::{Channels, FormatInfo, ImageDescription, ImageLayout};
use crate::objects::commands::RecordedCommand;
use crate::objects::state::DeviceObject;

const SRC: ImageCommandRules = ImageCommandRules {
    image: ["srcImage-parameter", "srcImage-00219", "srcImage-00220"],
    layouts: ["srcImageLayout-00221", "srcImageLayout-01398"],
    samples: Some("srcImage-00233"),
    parts: ["srcSubresource-01705", "srcSubresource-01707"],
    aspect: |form| form.rule("aspectMask-00241"),
    inside: ["srcOffset-00243", "srcOffset-00244", "srcOffset-00246"],
    ..NO_RULES
};
const DST: ImageCommandRules = ImageCommandRules {
    image: ["dstImage-parameter", "dstImage-00224", "dstImage-00225"],
    layouts: ["dstImageLayout-00226", "dstImageLayout-01399"],
    samples: Some("dstImage-00234"),
    parts: ["dstSubresource-01706", "dstSubresource-01708"],
    aspect: |form| form.rule("aspectMask-00242"),
    inside: ["dstOffset-00248", "dstOffset-00249", "dstOffset-00251"],
    ..NO_RULES
};

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
    let form = CommandForm { call: "vkCmdBlitImage", info: "vkCmdBlitImage", region: "VkImageBlit" };
    let images = [(src, src_layout), (dst, dst_layout)];
    record_blit(command_buffer, form, images, regions.to_vec(), filter);
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
    let form = CommandForm { call: "vkCmdBlitImage2", info: "VkBlitImageInfo2", region: "VkImageBlit2" };
    let images = [(info.src_image, info.src_image_layout), (info.dst_image, info.dst_image_layout)];
    record_blit(command_buffer, form, images, regions.collect(), info.filter);
}

fn record_blit(
    command_buffer: vk::CommandBuffer,
    form: CommandForm,
    images: ImagePair,
    mut regions: Vec<vk::ImageBlit>,
    filter: vk::Filter,
) {
    record(command_buffer, form.call, |device, state| {
        let found = usable_images(device, state, images, form, [&SRC, &DST]);
        let Some(([from, to], names, [src, dst])) = found else {
            return Ok(Vec::new());
        };
        let named = |(rule, text)| (rule, format!("{names}: {text}"));
        refuse_if!(regions.is_empty() => form.rule("regionCount-arraylength"), "regionCount is 0");
        check_formats(from, to, filter, form).map_err(named)?;
        for region in &mut regions {
            region.src_subresource.layer_count = layer_count(from, &region.src_subresource);
            region.dst_subresource.layer_count = layer_count(to, &region.dst_subresource);
            check_blit(device, (from, to), region, form).map_err(named)?;
        }
        Ok(vec![RecordedCommand::Blit { src, dst, regions, filter }])
    });
}

fn check_formats(
    from: &ImageDescription,
    to: &ImageDescription,
    filter: vk::Filter,
    form: CommandForm,
) -> Result<(), Broken> {
    for (image, rule) in [from, to].into_iter().zip(["srcImage-01999", "dstImage-02000"]) {
        let can = FormatInfo::of(image.format).is_some_and(|info| info.is_plain());
        refuse_if!(!can => form.rule(rule), "format {} cannot be blitted", image.format.as_raw());
    }
    let (source, target) = (Channels::of(from.format), Channels::of(to.format));
    let is = |what: fn(&Channels) -> bool| [source, target].map(|side| side.as_ref().is_some_and(what));
    let depth =
        [from, to].map(|image| FormatInfo::of(image.format).is_some_and(|info| info.is_depth_stencil()));
    let (old, new) = (from.format.as_raw(), to.format.as_raw());
    refuse_if!(depth != [false; 2] && old != new => form.rule("srcImage-00231"),
        "format {old} to format {new}");
    refuse_if!(depth != [false; 2] && filter != vk::Filter::NEAREST => form.rule("srcImage-00232"),
        "depth and stencil have no filter but NEAREST");
    let (signed, unsigned) = (is(Channels::is_signed), is(Channels::is_unsigned));
    refuse_if!(signed[0] != signed[1] => form.rule("srcImage-00229"), "format {old} to format {new}");
    refuse_if!(unsigned[0] != unsigned[1] => form.rule("srcImage-00230"), "format {old} to format {new}");
    let float = is(Channels::is_float);
    refuse_if!(filter != vk::Filter::NEAREST && !float[0] => form.rule("filter-02001"),
        "format {old} cannot be filtered");
    refuse_if!((old != new || filter != vk::Filter::NEAREST) && float != [true; 2]
        => "SUBLET-unsupported-blit", "the simulated device cannot convert format {old} to format {new}");
    Ok(())
}

fn check_blit(
    device: &DeviceObject,
    (from, to): (&ImageDescription, &ImageDescription),
    region: &vk::ImageBlit,
    form: CommandForm,
) -> Result<(), Broken> {
    let (src, dst) = (&region.src_subresource, &region.dst_subresource);
    refuse_if!(src.aspect_mask != dst.aspect_mask => form.region_rule("aspectMask-00238"),
        "the aspects {:#x} to the aspects {:#x}", src.aspect_mask.as_raw(), dst.aspect_mask.as_raw());
    let sides = [(from, src, region.src_offsets, &SRC), (to, dst, region.dst_offsets, &DST)];
    for (image, layers, corners, rules) in sides {
        let layout = ImageLayout::new(device.profile(), image);
        let (offset, extent) = between(corners);
        check_region(layout.as_ref(), image, layers, offset, extent, (form, rules))?;
    }
    refuse_if!(src.layer_count != dst.layer_count => form.region_rule("layerCount-08800"),
        "{} layers to {}", src.layer_count, dst.layer_count);
    let deep = [from, to].iter().any(|image| image.image_type == vk::ImageType::TYPE_3D);
    let single =
        |layers: &vk::ImageSubresourceLayers| layers.base_array_layer == 0 && layers.layer_count == 1;
    refuse_if!(deep && !(single(src) && single(dst)) => form.rule("srcImage-00240"), "slices are no layers");
    Ok(())
}

/// The box between two corners in any order.
pub(crate) fn between([a, b]: [vk::Offset3D; 2]) -> (vk::Offset3D, vk::Extent3D) {
    let offset = vk::Offset3D { x: a.x.min(b.x), y: a.y.min(b.y), z: a.z.min(b.z) };
    let extent =
        vk::Extent3D { width: a.x.abs_diff(b.x), height: a.y.abs_diff(b.y), depth: a.z.abs_diff(b.z) };
    (offset, extent)
}
