//! Resolves: of each texel's samples becomes one.
#![expect(unsafe_code, reason = "the functions have the C ABI")]

use ash::vk;

use super::{ImageCommandRules, ImagePair, NO_RULES, check_region, layer_count, usable_images};
use crate::commands::{CommandForm, record};
use crate::facts::broken::{Broken, refuse_if};
use crate::facts::chain;
use crate::facts::format::{Channels, ImageDescription, ImageLayout};
use crate::objects::commands::RecordedCommand;
use crate::objects::state::DeviceObject;

const SRC: ImageCommandRules = ImageCommandRules {
    image: ["srcImage-parameter", "srcImage-06762", "srcImage-00256"],
    layouts: ["srcImageLayout-00260", "srcImageLayout-01400"],
    parts: ["srcSubresource-01709", "srcSubresource-01711"],
    aspect: |form| form.region_rule("aspectMask-00266"),
    inside: ["srcOffset-00269", "srcOffset-00270", "srcOffset-00272"],
    ..NO_RULES
};
const DST: ImageCommandRules = ImageCommandRules {
    image: ["dstImage-parameter", "dstImage-06764", "dstImage-00258"],
    layouts: ["dstImageLayout-00262", "dstImageLayout-01401"],
    samples: Some("dstImage-00259"),
    parts: ["dstSubresource-01710", "dstSubresource-01712"],
    inside: ["dstOffset-00274", "dstOffset-00275", "dstOffset-00277"],
    ..SRC
};

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
    let form = CommandForm { call: "vkCmdResolveImage", info: "vkCmdResolveImage", region: "VkImageResolve" };
    let images = [(src, src_layout), (dst, dst_layout)];
    record_resolve(command_buffer, form, images, regions.to_vec());
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
    let form =
        CommandForm { call: "vkCmdResolveImage2", info: "VkResolveImageInfo2", region: "VkImageResolve2" };
    let images = [(info.src_image, info.src_image_layout), (info.dst_image, info.dst_image_layout)];
    record_resolve(command_buffer, form, images, regions.collect());
}

fn record_resolve(
    command_buffer: vk::CommandBuffer,
    form: CommandForm,
    images: ImagePair,
    mut regions: Vec<vk::ImageResolve>,
) {
    record(command_buffer, form.call, |device, state| {
        let found = usable_images(device, state, images, form, [&SRC, &DST]);
        let Some(([from, to], names, [src, dst])) = found else {
            return Ok(Vec::new());
        };
        refuse_if!(regions.is_empty() => form.rule("regionCount-arraylength"), "regionCount is 0");
        refuse_if!(from.samples == vk::SampleCountFlags::TYPE_1 => form.rule("srcImage-00257"),
            "{names}: there is one sample to resolve");
        refuse_if!(from.format != to.format => form.rule("srcImage-01386"), "{names}: the formats differ");
        refuse_if!(Channels::of(from.format).is_none() => "SUBLET-unsupported-resolve",
            "{names}: the simulated device cannot resolve format {}", from.format.as_raw());
        for region in &mut regions {
            region.src_subresource.layer_count = layer_count(from, &region.src_subresource);
            region.dst_subresource.layer_count = layer_count(to, &region.dst_subresource);
            check_resolve(device, (from, to), region, form)
                .map_err(|(rule, text)| (rule, format!("{names}: {text}")))?;
        }
        Ok(vec![RecordedCommand::ResolveImage { src, dst, regions }])
    });
}

fn check_resolve(
    device: &DeviceObject,
    (from, to): (&ImageDescription, &ImageDescription),
    region: &vk::ImageResolve,
    form: CommandForm,
) -> Result<(), Broken> {
    let (src, dst) = (&region.src_subresource, &region.dst_subresource);
    let sides = [(from, src, region.src_offset, &SRC), (to, dst, region.dst_offset, &DST)];
    for (image, layers, offset, rules) in sides {
        let layout = ImageLayout::new(device.profile(), image);
        check_region(layout.as_ref(), image, layers, offset, region.extent, (form, rules))?;
    }
    refuse_if!(src.layer_count != dst.layer_count => form.region_rule("layerCount-08803"),
        "{} layers to {}", src.layer_count, dst.layer_count);
    let deep = [from, to].iter().any(|image| image.image_type == vk::ImageType::TYPE_3D);
    for (layers, rule) in [src, dst].into_iter().zip(["srcImage-04446", "srcImage-04447"]) {
        refuse_if!(deep && (layers.base_array_layer, layers.layer_count) != (0, 1) => form.rule(rule),
            "slices are no layers");
    }
    Ok(())
}
