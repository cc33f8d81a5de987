//! `vkCmdClearColorImage`.
#![expect(unsafe_code, reason = "the functions have the C ABI")]

use ash::vk;

use super::images::{ImageCommandRules, NO_RULES, usable_image};
use super::record;
use crate::facts::broken::{Broken, refuse_if, rule};
use crate::facts::chain;
use crate::facts::format::{Channels, FormatInfo, ImageDescription};
use crate::objects::commands::{ImageTarget, RecordedCommand};

const CALL: &str = "vkCmdClearColorImage";

/// The rules of an image that is cleared. A clear names ranges, not regions.
const CLEAR: ImageCommandRules = ImageCommandRules {
    image: ["image-parameter", "image-00002", "image-00003"],
    layouts: ["imageLayout-00004", "imageLayout-01394"],
    ..NO_RULES
};

pub(crate) unsafe extern "system" fn color(
    command_buffer: vk::CommandBuffer,
    image: vk::Image,
    layout: vk::ImageLayout,
    p_color: *const vk::ClearColorValue,
    count: u32,
    p_ranges: *const vk::ImageSubresourceRange,
) {
    // SAFETY: VUID-vkCmdClearColorImage-pColor-04961.
    let Some(color) = (unsafe { chain::input(p_color) }) else {
        return;
    };
    // SAFETY: any 16 bytes are four `u32`.
    let bits = unsafe { color.uint32 };
    // SAFETY: VUID-vkCmdClearColorImage-pRanges-parameter.
    let ranges = unsafe { chain::array(p_ranges, count) };
    record(command_buffer, CALL, |device, state| {
        let usage = vk::ImageUsageFlags::TRANSFER_DST;
        let Some(description) = usable_image(device, state, image, usage, layout, (CALL, &CLEAR)) else {
            return Ok(Vec::new());
        };
        let name = state.name(image);
        let broken = ranges.iter().find_map(|range| check(description, range));
        if let Some((rule, text)) = broken {
            return Err((rule, format!("{name}: {text}")));
        }
        refuse_if!(ranges.is_empty() => "VUID-vkCmdClearColorImage-rangeCount-arraylength",
            "rangeCount is 0");
        let Some(channels) = Channels::of(description.format) else {
            let text =
                format!("{name}: the simulated device cannot clear format {}", description.format.as_raw());
            return Err(("SUBLET-unsupported-clear", text));
        };
        let dst = ImageTarget { image, layout, layout_rule: rule(CALL, CLEAR.layouts[0]) };
        Ok(vec![RecordedCommand::Clear { dst, texel: channels.encode(bits), ranges: ranges.to_vec() }])
    });
}

fn check(image: &ImageDescription, range: &vk::ImageSubresourceRange) -> Option<Broken> {
    let color = FormatInfo::of(image.format).is_some_and(|info| {
        info.aspects() == vk::ImageAspectFlags::COLOR && info.planes()[0].block == (1, 1)
    });
    let levels = range.base_mip_level.saturating_add(range.level_count);
    let layers = range.base_array_layer.saturating_add(range.layer_count);
    if !color {
        let text = "its format is compressed, or has depth, stencil or several planes".to_owned();
        Some(("VUID-vkCmdClearColorImage-image-00007", text))
    } else if range.aspect_mask != vk::ImageAspectFlags::COLOR {
        let text = format!("aspectMask is {:#x}, and not COLOR", range.aspect_mask.as_raw());
        Some(("VUID-vkCmdClearColorImage-aspectMask-02498", text))
    } else if range.base_mip_level >= image.mip_levels {
        let text = format!("level {} of {}", range.base_mip_level, image.mip_levels);
        Some(("VUID-vkCmdClearColorImage-baseMipLevel-01470", text))
    } else if range.level_count != vk::REMAINING_MIP_LEVELS && levels > image.mip_levels {
        let text = format!("{} levels of {}", range.level_count, image.mip_levels);
        Some(("VUID-vkCmdClearColorImage-pRanges-01692", text))
    } else if range.base_array_layer >= image.array_layers {
        let text = format!("layer {} of {}", range.base_array_layer, image.array_layers);
        Some(("VUID-vkCmdClearColorImage-baseArrayLayer-01472", text))
    } else if range.layer_count != vk::REMAINING_ARRAY_LAYERS && layers > image.array_layers {
        let text = format!("{} layers of {}", range.layer_count, image.array_layers);
        Some(("VUID-vkCmdClearColorImage-pRanges-01693", text))
    } else {
        None
    }
}
