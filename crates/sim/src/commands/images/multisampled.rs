//! Resolves: of each texel's samples becomes one.
#![expect(unsafe_code, reason = "the functions have the C ABI")]

use ash::vk;

use super::{ImageCommandRules, ImagePair, RegionRules, check_region, layer_count, usable_images};
use crate::commands::record;
use crate::facts::broken::{Broken, refuse_if};
use crate::facts::chain;
use crate::facts::format::{Channels, ImageDescription, ImageLayout};
use crate::objects::commands::RecordedCommand;
use crate::objects::state::DeviceObject;

/// The rules of a resolve.
struct ResolveRules {
    recording: &'static str,
    src: ImageCommandRules,
    dst: ImageCommandRules,
    single: &'static str,
    formats: &'static str,
    deep: [&'static str; 2],
    layers: &'static str,
    no_regions: &'static str,
}

macro_rules! resolve_rules {
    ($command:literal, $info:literal, $region:literal) => {
        ResolveRules {
            recording: concat!("VUID-", $command, "-commandBuffer-recording"),
            src: image_side! {
                $info, "srcImage", "srcSubresource", "srcOffset", "06762", "00256", None, "00260", "01400", "01709",
                "01711", concat!("VUID-", $region, "-aspectMask-00266"), "00269", "00270", "00272"
            },
            dst: image_side! {
                $info, "dstImage", "dstSubresource", "dstOffset", "06764", "00258",
                Some(concat!("VUID-", $info, "-dstImage-00259")), "00262", "01401", "01710", "01712",
                concat!("VUID-", $region, "-aspectMask-00266"), "00274", "00275", "00277"
            },
            single: concat!("VUID-", $info, "-srcImage-00257"),
            formats: concat!("VUID-", $info, "-srcImage-01386"),
            deep: [concat!("VUID-", $info, "-srcImage-04446"), concat!("VUID-", $info, "-srcImage-04447")],
            layers: concat!("VUID-", $region, "-layerCount-08803"),
            no_regions: concat!("VUID-", $info, "-regionCount-arraylength"),
        }
    };
}

pub(crate) unsafe extern "system" fn resolve(
    command_buffer: vk::CommandBuffer,
    src: vk::Image,
    src_layout: vk::ImageLayout,
    dst: vk::Image,
    dst_layout: vk::ImageLayout,
    count: u32,
    p_regions: *const vk::ImageResolve,
) {
    // SAFETY: VUID-vkCmdResolveImage-pRegions-parameter.
    let regions = unsafe { chain::array(p_regions, count) };
    let rules = resolve_rules!("vkCmdResolveImage", "vkCmdResolveImage", "VkImageResolve");
    let images = [(src, src_layout), (dst, dst_layout)];
    record_resolve(command_buffer, "vkCmdResolveImage", &rules, images, regions.to_vec());
}

pub(crate) unsafe extern "system" fn resolve2(
    command_buffer: vk::CommandBuffer,
    p_info: *const vk::ResolveImageInfo2<'_>,
) {
    // SAFETY: VUID-vkCmdResolveImage2-pResolveImageInfo-parameter.
    let Some(info) = (unsafe { chain::input(p_info) }) else {
        return;
    };
    // SAFETY: VUID-VkResolveImageInfo2-pRegions-parameter.
    let regions = unsafe { chain::array(info.p_regions, info.region_count) };
    let regions = regions.iter().map(|region| vk::ImageResolve {
        src_subresource: region.src_subresource,
        src_offset: region.src_offset,
        dst_subresource: region.dst_subresource,
        dst_offset: region.dst_offset,
        extent: region.extent,
    });
    let rules = resolve_rules!("vkCmdResolveImage2", "VkResolveImageInfo2", "VkImageResolve2");
    let images = [(info.src_image, info.src_image_layout), (info.dst_image, info.dst_image_layout)];
    record_resolve(command_buffer, "vkCmdResolveImage2", &rules, images, regions.collect());
}

fn record_resolve(
    command_buffer: vk::CommandBuffer,
    call: &'static str,
    rules: &ResolveRules,
    images: ImagePair,
    mut regions: Vec<vk::ImageResolve>,
) {
    record(command_buffer, call, rules.recording, |device, state| {
        let found = usable_images(device, state, images, [&rules.src, &rules.dst]);
        let Some(([from, to], names, [src, dst])) = found else {
            return Ok(Vec::new());
        };
        refuse_if!(regions.is_empty() => rules.no_regions, "regionCount is 0");
        refuse_if!(from.samples == vk::SampleCountFlags::TYPE_1 => rules.single,
            "{names}: there is one sample to resolve");
        refuse_if!(from.format != to.format => rules.formats, "{names}: the formats differ");
        refuse_if!(Channels::of(from.format).is_none() => "SUBLET-unsupported-resolve",
            "{names}: the simulated device cannot resolve format {}", from.format.as_raw());
        for region in &mut regions {
            region.src_subresource.layer_count = layer_count(from, &region.src_subresource);
            region.dst_subresource.layer_count = layer_count(to, &region.dst_subresource);
            check_resolve(device, (from, to), region, rules)
                .map_err(|(rule, text)| (rule, format!("{names}: {text}")))?;
        }
        Ok(vec![RecordedCommand::ResolveImage { src, dst, regions }])
    });
}

fn check_resolve(
    device: &DeviceObject,
    (from, to): (&ImageDescription, &ImageDescription),
    region: &vk::ImageResolve,
    rules: &ResolveRules,
) -> Result<(), Broken> {
    let (src, dst) = (&region.src_subresource, &region.dst_subresource);
    let sides = [(from, src, region.src_offset, &rules.src), (to, dst, region.dst_offset, &rules.dst)];
    for (image, layers, offset, rules) in sides {
        let layout = ImageLayout::new(device.profile(), image);
        check_region(layout.as_ref(), image, layers, offset, region.extent, &rules.region)?;
    }
    refuse_if!(src.layer_count != dst.layer_count => rules.layers,
        "{} layers to {}", src.layer_count, dst.layer_count);
    let deep = [from, to].iter().any(|image| image.image_type == vk::ImageType::TYPE_3D);
    for (layers, rule) in [src, dst].into_iter().zip(rules.deep) {
        refuse_if!(deep && (layers.base_array_layer, layers.layer_count) != (0, 1) => rule,
            "slices are no layers");
    }
    Ok(())
}
