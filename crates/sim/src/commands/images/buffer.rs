//! Copies between buffers and images.
#![expect(unsafe_code, reason = "the functions have the C ABI")]

use ash::vk;

use super::{ImageCommandRules, RegionRules, check_region, layer_count, usable_image};
use crate::commands::{BufferCommandRules, buffer_size, record};
use crate::facts::arithmetic::is_aligned;
use crate::facts::broken::{Broken, refuse_if};
use crate::facts::chain;
use crate::facts::format::{Aspect, ImageDescription, ImageLayout, LevelLayout};
use crate::objects::commands::{ImageTarget, RecordedCommand};
use crate::objects::state::DeviceObject;

/// The rules of a copy between buffer and image.
struct BufferImageRules {
    recording: &'static str,
    buffer: BufferCommandRules,
    image: ImageCommandRules,
    buffer_range: &'static str,
    texel_offset: &'static str,
    depth_offset: &'static str,
    row_length_block: &'static str,
    image_height_block: &'static str,
    one_aspect: &'static str,
    row_length: &'static str,
    image_height: &'static str,
    /// Across, down, deep.
    empty: [&'static str; 3],
    no_regions: &'static str,
}

macro_rules! buffer_image_rules {
    (
        $command:literal, $info:literal, $region:literal, $image:literal, $buffer:literal,
        $buffer_usage:literal, $buffer_bound:literal, $image_usage:literal, $layout:literal, $layouts:literal,
        $range:literal
    ) => {
        BufferImageRules {
            recording: concat!("VUID-", $command, "-commandBuffer-recording"),
            buffer: BufferCommandRules {
                parameter: concat!("VUID-", $info, "-", $buffer, "-parameter"),
                usage: concat!("VUID-", $info, "-", $buffer, "-", $buffer_usage),
                bound: concat!("VUID-", $info, "-", $buffer, "-", $buffer_bound),
            },
            image: ImageCommandRules {
                parameter: concat!("VUID-", $info, "-", $image, "-parameter"),
                usage: concat!("VUID-", $info, "-", $image, "-", $image_usage),
                bound: concat!("VUID-", $info, "-", $image, "-07966"),
                samples: Some(concat!("VUID-", $info, "-", $image, "-07973")),
                layout: concat!("VUID-", $info, "-", $image, "Layout-", $layout),
                layouts: concat!("VUID-", $info, "-", $image, "Layout-", $layouts),
                region: RegionRules {
                    level: concat!("VUID-", $info, "-imageSubresource-07967"),
                    layers: concat!("VUID-", $info, "-imageSubresource-07968"),
                    aspect: concat!("VUID-", $info, "-imageSubresource-09105"),
                    inside: [
                        concat!("VUID-", $info, "-imageSubresource-07971"),
                        concat!("VUID-", $info, "-imageSubresource-07972"),
                        concat!("VUID-", $info, "-imageOffset-09104"),
                    ],
                    block_offset: [
                        concat!("VUID-", $info, "-", $image, "-07274"),
                        concat!("VUID-", $info, "-", $image, "-07275"),
                    ],
                    block_extent: [
                        concat!("VUID-", $info, "-", $image, "-00207"),
                        concat!("VUID-", $info, "-", $image, "-00208"),
                    ],
                },
            },
            buffer_range: concat!("VUID-", $info, "-pRegions-", $range),
            texel_offset: concat!("VUID-", $info, "-", $image, "-07975"),
            depth_offset: concat!("VUID-", $info, "-", $image, "-07978"),
            row_length_block: concat!("VUID-", $info, "-bufferRowLength-09106"),
            image_height_block: concat!("VUID-", $info, "-bufferImageHeight-09107"),
            one_aspect: concat!("VUID-", $region, "-aspectMask-09103"),
            row_length: concat!("VUID-", $region, "-bufferRowLength-09101"),
            image_height: concat!("VUID-", $region, "-bufferImageHeight-09102"),
            empty: [
                concat!("VUID-", $region, "-imageExtent-06659"),
                concat!("VUID-", $region, "-imageExtent-06660"),
                concat!("VUID-", $region, "-imageExtent-06661"),
            ],
            no_regions: concat!("VUID-", $info, "-regionCount-arraylength"),
        }
    };
}

macro_rules! to_image_rules {
    ($command:literal, $info:literal, $region:literal) => {
        buffer_image_rules! {
            $command, $info, $region, "dstImage", "srcBuffer", "00174", "00176", "00177", "00180", "01396", "00171"
        }
    };
}

macro_rules! to_buffer_rules {
    ($command:literal, $info:literal, $region:literal) => {
        buffer_image_rules! {
            $command, $info, $region, "srcImage", "dstBuffer", "00191", "00192", "00186", "00189", "01397", "00183"
        }
    };
}

pub(crate) unsafe extern "system" fn from_buffer(
    command_buffer: vk::CommandBuffer,
    src: vk::Buffer,
    dst: vk::Image,
    layout: vk::ImageLayout,
    count: u32,
    p_regions: *const vk::BufferImageCopy,
) {
    // SAFETY: VUID-vkCmdCopyBufferToImage-pRegions-parameter.
    let regions = unsafe { chain::array(p_regions, count) };
    let rules = to_image_rules!("vkCmdCopyBufferToImage", "vkCmdCopyBufferToImage", "VkBufferImageCopy");
    let (call, direction) = ("vkCmdCopyBufferToImage", Direction::ToImage);
    record_buffer_image(command_buffer, call, &rules, direction, src, (dst, layout), regions.to_vec());
}

pub(crate) unsafe extern "system" fn from_buffer2(
    command_buffer: vk::CommandBuffer,
    p_info: *const vk::CopyBufferToImageInfo2<'_>,
) {
    // SAFETY: VUID-vkCmdCopyBufferToImage2-pCopyBufferToImageInfo-parameter.
    let Some(info) = (unsafe { chain::input(p_info) }) else {
        return;
    };
    // SAFETY: VUID-VkCopyBufferToImageInfo2-pRegions-parameter.
    let regions = unsafe { chain::array(info.p_regions, info.region_count) };
    let rules = to_image_rules!("vkCmdCopyBufferToImage2", "VkCopyBufferToImageInfo2", "VkBufferImageCopy2");
    let call = "vkCmdCopyBufferToImage2";
    let image = (info.dst_image, info.dst_image_layout);
    let regions = regions.iter().map(plain).collect();
    record_buffer_image(command_buffer, call, &rules, Direction::ToImage, info.src_buffer, image, regions);
}

pub(crate) unsafe extern "system" fn to_buffer(
    command_buffer: vk::CommandBuffer,
    src: vk::Image,
    layout: vk::ImageLayout,
    dst: vk::Buffer,
    count: u32,
    p_regions: *const vk::BufferImageCopy,
) {
    // SAFETY: VUID-vkCmdCopyImageToBuffer-pRegions-parameter.
    let regions = unsafe { chain::array(p_regions, count) };
    let rules = to_buffer_rules!("vkCmdCopyImageToBuffer", "vkCmdCopyImageToBuffer", "VkBufferImageCopy");
    let (call, direction) = ("vkCmdCopyImageToBuffer", Direction::ToBuffer);
    record_buffer_image(command_buffer, call, &rules, direction, dst, (src, layout), regions.to_vec());
}

pub(crate) unsafe extern "system" fn to_buffer2(
    command_buffer: vk::CommandBuffer,
    p_info: *const vk::CopyImageToBufferInfo2<'_>,
) {
    // SAFETY: VUID-vkCmdCopyImageToBuffer2-pCopyImageToBufferInfo-parameter.
    let Some(info) = (unsafe { chain::input(p_info) }) else {
        return;
    };
    // SAFETY: VUID-VkCopyImageToBufferInfo2-pRegions-parameter.
    let regions = unsafe { chain::array(info.p_regions, info.region_count) };
    let rules = to_buffer_rules!("vkCmdCopyImageToBuffer2", "VkCopyImageToBufferInfo2", "VkBufferImageCopy2");
    let call = "vkCmdCopyImageToBuffer2";
    let image = (info.src_image, info.src_image_layout);
    let regions = regions.iter().map(plain).collect();
    record_buffer_image(command_buffer, call, &rules, Direction::ToBuffer, info.dst_buffer, image, regions);
}

/// The region of the second form of a command as one of the first.
fn plain(region: &vk::BufferImageCopy2<'_>) -> vk::BufferImageCopy {
    vk::BufferImageCopy {
        buffer_offset: region.buffer_offset,
        buffer_row_length: region.buffer_row_length,
        buffer_image_height: region.buffer_image_height,
        image_subresource: region.image_subresource,
        image_offset: region.image_offset,
        image_extent: region.image_extent,
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    ToImage,
    ToBuffer,
}

fn record_buffer_image(
    command_buffer: vk::CommandBuffer,
    call: &'static str,
    rules: &BufferImageRules,
    direction: Direction,
    buffer: vk::Buffer,
    (image, layout): (vk::Image, vk::ImageLayout),
    mut regions: Vec<vk::BufferImageCopy>,
) {
    let (buffer_usage, image_usage) = match direction {
        Direction::ToImage => (vk::BufferUsageFlags::TRANSFER_SRC, vk::ImageUsageFlags::TRANSFER_DST),
        Direction::ToBuffer => (vk::BufferUsageFlags::TRANSFER_DST, vk::ImageUsageFlags::TRANSFER_SRC),
    };
    record(command_buffer, call, rules.recording, |device, state| {
        let size = buffer_size(device, state, buffer, buffer_usage, &rules.buffer);
        let description = usable_image(device, state, image, image_usage, layout, &rules.image);
        let (Some(size), Some(description)) = (size, description) else {
            return Ok(Vec::new());
        };
        refuse_if!(regions.is_empty() => rules.no_regions, "regionCount is 0");
        for region in &mut regions {
            let layers = &mut region.image_subresource;
            layers.layer_count = layer_count(description, layers);
            check_buffer_image(device, description, size, region, rules).map_err(|(rule, text)| {
                (rule, format!("{} and {}: {text}", state.name(buffer), state.name(image)))
            })?;
        }
        let target = ImageTarget { image, layout, layout_rule: rules.image.layout };
        Ok(vec![match direction {
            Direction::ToImage => RecordedCommand::BufferToImage { src: buffer, dst: target, regions },
            Direction::ToBuffer => RecordedCommand::ImageToBuffer { src: target, dst: buffer, regions },
        }])
    });
}

fn check_buffer_image(
    device: &DeviceObject,
    image: &ImageDescription,
    buffer_size: u64,
    region: &vk::BufferImageCopy,
    rules: &BufferImageRules,
) -> Result<(), Broken> {
    let extent = region.image_extent;
    for (index, value) in [extent.width, extent.height, extent.depth].into_iter().enumerate() {
        refuse_if!(value == 0 => rules.empty[index], "imageExtent has a 0");
    }
    let aspects = region.image_subresource.aspect_mask;
    refuse_if!(aspects.as_raw().count_ones() != 1 => rules.one_aspect,
        "aspectMask is {:#x}, and not one aspect", aspects.as_raw());
    refuse_if!(region.buffer_row_length != 0 && region.buffer_row_length < extent.width => rules.row_length,
        "bufferRowLength {} is below the width {}", region.buffer_row_length, extent.width);
    refuse_if!(region.buffer_image_height != 0 && region.buffer_image_height < extent.height
        => rules.image_height,
        "bufferImageHeight {} is below the height {}", region.buffer_image_height, extent.height);
    let layout = ImageLayout::new(device.profile(), image);
    let (level, aspect) = check_region(
        layout.as_ref(),
        image,
        &region.image_subresource,
        region.image_offset,
        extent,
        &rules.image.region,
    )?;
    refuse_if!(region.buffer_row_length % level.plane.block.0 != 0 => rules.row_length_block,
        "bufferRowLength {} is not in whole blocks", region.buffer_row_length);
    refuse_if!(region.buffer_image_height % level.plane.block.1 != 0 => rules.image_height_block,
        "bufferImageHeight {} is not in whole blocks", region.buffer_image_height);
    let offset = region.buffer_offset;
    let depth_stencil = layout.is_some_and(|layout| layout.info().is_depth_stencil());
    refuse_if!(depth_stencil && !is_aligned(offset, 4) => rules.depth_offset,
        "bufferOffset {offset} is no multiple of 4");
    refuse_if!(!depth_stencil && offset % aspect.buffer_bytes != 0 => rules.texel_offset,
        "bufferOffset {offset} is no multiple of the texel size {}", aspect.buffer_bytes);
    let end = BufferLayout::new(region, &level, &aspect).end(region);
    refuse_if!(end.is_none_or(|end| end > buffer_size) => rules.buffer_range,
        "the region ends at byte {end:?} of a buffer of {buffer_size} bytes");
    Ok(())
}

/// How the texels of a region lie in a buffer. Units: bytes and blocks.
pub(crate) struct BufferLayout {
    pub(crate) row_pitch: u64,
    pub(crate) slice_pitch: u64,
    /// Blocks of the region, across and down.
    pub(crate) across: u64,
    pub(crate) down: u64,
    pub(crate) texel: u64,
}

impl BufferLayout {
    pub(crate) fn new(region: &vk::BufferImageCopy, level: &LevelLayout, aspect: &Aspect) -> Self {
        let or = |value: u32, default: u32| if value == 0 { default } else { value };
        let (width, height) = (region.image_extent.width, region.image_extent.height);
        let blocks = |texels: u32, block: u32| u64::from(texels.div_ceil(block));
        let row_pitch =
            blocks(or(region.buffer_row_length, width), level.plane.block.0) * aspect.buffer_bytes;
        let rows = blocks(or(region.buffer_image_height, height), level.plane.block.1);
        Self {
            row_pitch,
            slice_pitch: row_pitch.saturating_mul(rows),
            across: blocks(width, level.plane.block.0),
            down: blocks(height, level.plane.block.1),
            texel: aspect.buffer_bytes,
        }
    }

    /// The byte behind the last one of a region; `None` if there is no such number.
    pub(crate) fn end(&self, region: &vk::BufferImageCopy) -> Option<u64> {
        let slices = u64::from(region.image_extent.depth)
            .checked_mul(u64::from(region.image_subresource.layer_count))?;
        region
            .buffer_offset
            .checked_add(self.slice_pitch.checked_mul(slices.checked_sub(1)?)?)?
            .checked_add(self.row_pitch.checked_mul(self.down.checked_sub(1)?)?)?
            .checked_add(self.across * self.texel)
    }
}
