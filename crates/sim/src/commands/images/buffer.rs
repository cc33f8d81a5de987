//! Copies between buffers and images.
#![expect(unsafe_code, reason = "the functions have the C ABI")]

use ash::vk;

use super::{ImageCommandRules, check_region, layer_count, usable_image};
use crate::commands::{CommandForm, buffer_size, record};
use crate::facts::arithmetic::is_aligned;
use crate::facts::broken::{Broken, refuse_if};
use crate::facts::chain;
use crate::facts::format::{Aspect, ImageDescription, ImageLayout, LevelLayout};
use crate::objects::commands::{ImageTarget, RecordedCommand};
use crate::objects::state::DeviceObject;

/// The rules of copies in one direction.
struct CopyDirection {
    to_image: bool,
    /// Of the handle, of the usage and of the memory.
    buffer: [&'static str; 3],
    image: ImageCommandRules,
    buffer_range: &'static str,
    texel_offset: &'static str,
    depth_offset: &'static str,
}

const TO_IMAGE: CopyDirection = CopyDirection {
    to_image: true,
    buffer: ["srcBuffer-parameter", "srcBuffer-00174", "srcBuffer-00176"],
    image: ImageCommandRules {
        image: ["dstImage-parameter", "dstImage-00177", "dstImage-07966"],
        layouts: ["dstImageLayout-00180", "dstImageLayout-01396"],
        samples: Some("dstImage-07973"),
        parts: ["imageSubresource-07967", "imageSubresource-07968"],
        aspect: |form| form.rule("imageSubresource-09105"),
        inside: ["imageSubresource-07971", "imageSubresource-07972", "imageOffset-09104"],
        block_offset: ["dstImage-07274", "dstImage-07275"],
        block_extent: ["dstImage-00207", "dstImage-00208"],
    },
    buffer_range: "pRegions-00171",
    texel_offset: "dstImage-07975",
    depth_offset: "dstImage-07978",
};

const TO_BUFFER: CopyDirection = CopyDirection {
    to_image: false,
    buffer: ["dstBuffer-parameter", "dstBuffer-00191", "dstBuffer-00192"],
    image: ImageCommandRules {
        image: ["srcImage-parameter", "srcImage-00186", "srcImage-07966"],
        layouts: ["srcImageLayout-00189", "srcImageLayout-01397"],
        samples: Some("srcImage-07973"),
        block_offset: ["srcImage-07274", "srcImage-07275"],
        block_extent: ["srcImage-00207", "srcImage-00208"],
        ..TO_IMAGE.image
    },
    buffer_range: "pRegions-00183",
    texel_offset: "srcImage-07975",
    depth_offset: "srcImage-07978",
};

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
    let call = "vkCmdCopyBufferToImage";
    let form = CommandForm { call, info: call, region: "VkBufferImageCopy" };
    record_buffer_image(command_buffer, form, &TO_IMAGE, src, (dst, layout), regions.to_vec());
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
    let call = "vkCmdCopyBufferToImage2";
    let form = CommandForm { call, info: "VkCopyBufferToImageInfo2", region: "VkBufferImageCopy2" };
    let image = (info.dst_image, info.dst_image_layout);
    let regions = regions.iter().map(plain).collect();
    record_buffer_image(command_buffer, form, &TO_IMAGE, info.src_buffer, image, regions);
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
    let call = "vkCmdCopyImageToBuffer";
    let form = CommandForm { call, info: call, region: "VkBufferImageCopy" };
    record_buffer_image(command_buffer, form, &TO_BUFFER, dst, (src, layout), regions.to_vec());
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
    let call = "vkCmdCopyImageToBuffer2";
    let form = CommandForm { call, info: "VkCopyImageToBufferInfo2", region: "VkBufferImageCopy2" };
    let image = (info.src_image, info.src_image_layout);
    let regions = regions.iter().map(plain).collect();
    record_buffer_image(command_buffer, form, &TO_BUFFER, info.dst_buffer, image, regions);
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

fn record_buffer_image(
    command_buffer: vk::CommandBuffer,
    form: CommandForm,
    direction: &'static CopyDirection,
    buffer: vk::Buffer,
    (image, layout): (vk::Image, vk::ImageLayout),
    mut regions: Vec<vk::BufferImageCopy>,
) {
    let (buffer_usage, image_usage) = if direction.to_image {
        (vk::BufferUsageFlags::TRANSFER_SRC, vk::ImageUsageFlags::TRANSFER_DST)
    } else {
        (vk::BufferUsageFlags::TRANSFER_DST, vk::ImageUsageFlags::TRANSFER_SRC)
    };
    record(command_buffer, form.call, |device, state| {
        let size = buffer_size(device, state, buffer, buffer_usage, form.info, direction.buffer);
        let rules = (form.info, &direction.image);
        let description = usable_image(device, state, image, image_usage, layout, rules);
        let (Some(size), Some(description)) = (size, description) else {
            return Ok(Vec::new());
        };
        refuse_if!(regions.is_empty() => form.rule("regionCount-arraylength"), "regionCount is 0");
        for region in &mut regions {
            let layers = &mut region.image_subresource;
            layers.layer_count = layer_count(description, layers);
            check_buffer_image(device, description, size, region, (form, direction)).map_err(
                |(rule, text)| (rule, format!("{} and {}: {text}", state.name(buffer), state.name(image))),
            )?;
        }
        let layout_rule = form.rule(direction.image.layouts[0]);
        let target = ImageTarget { image, layout, layout_rule };
        Ok(vec![if direction.to_image {
            RecordedCommand::BufferToImage { src: buffer, dst: target, regions }
        } else {
            RecordedCommand::ImageToBuffer { src: target, dst: buffer, regions }
        }])
    });
}

fn check_buffer_image(
    device: &DeviceObject,
    image: &ImageDescription,
    buffer_size: u64,
    region: &vk::BufferImageCopy,
    (form, direction): (CommandForm, &CopyDirection),
) -> Result<(), Broken> {
    let extent = region.image_extent;
    let rules = ["imageExtent-06659", "imageExtent-06660", "imageExtent-06661"];
    for (value, rule) in [extent.width, extent.height, extent.depth].into_iter().zip(rules) {
        refuse_if!(value == 0 => form.region_rule(rule), "imageExtent has a 0");
    }
    let aspects = region.image_subresource.aspect_mask;
    refuse_if!(aspects.as_raw().count_ones() != 1 => form.region_rule("aspectMask-09103"),
        "aspectMask is {:#x}, and not one aspect", aspects.as_raw());
    refuse_if!(region.buffer_row_length != 0 && region.buffer_row_length < extent.width
        => form.region_rule("bufferRowLength-09101"),
        "bufferRowLength {} is below the width {}", region.buffer_row_length, extent.width);
    refuse_if!(region.buffer_image_height != 0 && region.buffer_image_height < extent.height
        => form.region_rule("bufferImageHeight-09102"),
        "bufferImageHeight {} is below the height {}", region.buffer_image_height, extent.height);
    let layout = ImageLayout::new(device.profile(), image);
    let (level, aspect) = check_region(
        layout.as_ref(),
        image,
        &region.image_subresource,
        region.image_offset,
        extent,
        (form, &direction.image),
    )?;
    refuse_if!(region.buffer_row_length % level.plane.block.0 != 0
        => form.rule("bufferRowLength-09106"),
        "bufferRowLength {} is not in whole blocks", region.buffer_row_length);
    refuse_if!(region.buffer_image_height % level.plane.block.1 != 0
        => form.rule("bufferImageHeight-09107"),
        "bufferImageHeight {} is not in whole blocks", region.buffer_image_height);
    let offset = region.buffer_offset;
    let depth_stencil = layout.is_some_and(|layout| layout.info().is_depth_stencil());
    refuse_if!(depth_stencil && !is_aligned(offset, 4) => form.rule(direction.depth_offset),
        "bufferOffset {offset} is no multiple of 4");
    refuse_if!(!depth_stencil && offset % aspect.buffer_bytes != 0
        => form.rule(direction.texel_offset),
        "bufferOffset {offset} is no multiple of the texel size {}", aspect.buffer_bytes);
    let end = BufferLayout::new(region, &level, &aspect).end(region);
    refuse_if!(end.is_none_or(|end| end > buffer_size) => form.rule(direction.buffer_range),
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
