//! Commands for images that take Vulkan's regions.
#![expect(unsafe_code, reason = "calls Vulkan")]

use std::ops::Range;

use ash::vk;

use super::error::check_range;
use super::part::declare;
use super::{CommandList, ListError, buffers};
use crate::resource::{Buffer, Image, format_layout};
use crate::track::{Subresources, Use};

const SOURCE: vk::ImageUsageFlags = vk::ImageUsageFlags::TRANSFER_SRC;
const TARGET: vk::ImageUsageFlags = vk::ImageUsageFlags::TRANSFER_DST;
const SOURCE_LAYOUT: vk::ImageLayout = vk::ImageLayout::TRANSFER_SRC_OPTIMAL;
const TARGET_LAYOUT: vk::ImageLayout = vk::ImageLayout::TRANSFER_DST_OPTIMAL;
const RESOLVE_SOURCE: Use = Use { stages: vk::PipelineStageFlags2::RESOLVE, ..Use::BLIT_SOURCE };
const RESOLVE_TARGET: Use = Use { stages: vk::PipelineStageFlags2::RESOLVE, ..Use::BLIT_TARGET };

/// Returns the bytes from the first to the last that a region uses in the buffer. With a larger range, the tracker
/// would see reads of unused bytes, and later writes of these bytes would wait for the reads.
fn bytes_of(image: &Image, region: &vk::BufferImageCopy) -> Range<u64> {
    let start = region.buffer_offset;
    let vk::Extent3D { width, height, depth } = region.image_extent;
    let Some(layout) = format_layout(image.format(), region.image_subresource.aspect_mask) else {
        return start..u64::MAX;
    };
    let or = |given: u32, extent: u32| if given == 0 { extent } else { given };
    let (pitch, rows) =
        layout.blocks(or(region.buffer_row_length, width), or(region.buffer_image_height, height));
    let (columns, last_rows) = layout.blocks(width, height);
    let slices = u64::from(depth) * u64::from(region.image_subresource.layer_count);
    let before =
        (slices.saturating_sub(1)).saturating_mul(u64::from(rows)) + u64::from(last_rows.saturating_sub(1));
    let blocks = before.saturating_mul(u64::from(pitch)).saturating_add(u64::from(columns));
    start..start.saturating_add(blocks.saturating_mul(layout.block_bytes))
}

impl CommandList {
    /// Checks and declares the images of a command that reads parts of the first and writes parts of the second.
    /// Returns false if there are no parts.
    fn between_images(
        &mut self,
        [from, to]: [&Image; 2],
        parts: impl Iterator<Item = [vk::ImageSubresourceLayers; 2]> + Clone,
        [read, write]: [Use; 2],
    ) -> Result<bool, ListError> {
        self.transfer_image(from, SOURCE, parts.clone().map(|[part, _]| part))?;
        self.transfer_image(to, TARGET, parts.clone().map(|[_, part]| part))?;
        if parts.clone().next().is_none() {
            return Ok(false);
        }
        self.declare(|recorder| {
            declare(recorder, from, parts.clone().map(|[part, _]| (part, read)))?;
            declare(recorder, to, parts.map(|[_, part]| (part, write)))
        })?;
        self.flush()?;
        Ok(true)
    }

    /// `vkCmdCopyImage`.
    ///
    /// # Errors
    /// See [`ListError`]: usages, mips, layers, or a subresource that is both read and written. Nothing was recorded.
    ///
    /// # Safety
    /// The regions are valid for these images (VUID-vkCmdCopyImage-pRegions-00124 and those that follow), and for the
    /// granularity of the queue. The list handles layouts and synchronization.
    #[doc(alias = "CopyTextureRegion")]
    pub unsafe fn copy_image(
        &mut self,
        from: &Image,
        to: &Image,
        regions: &[vk::ImageCopy],
    ) -> Result<(), ListError> {
        let parts = regions.iter().map(|region| [region.src_subresource, region.dst_subresource]);
        if !self.between_images([from, to], parts, [Use::COPY_SOURCE, Use::COPY_TARGET])? {
            return Ok(());
        }
        let (device, from, to) = (self.core.api.device(), from.handle(), to.handle());
        // SAFETY: the list is being recorded, outside of rendering, and keeps both images, in these layouts. The caller
        // guarantees the regions.
        unsafe { device.cmd_copy_image(self.pool.main, from, SOURCE_LAYOUT, to, TARGET_LAYOUT, regions) };
        Ok(())
    }

    /// `vkCmdCopyBufferToImage`. See [`upload_image`](Self::upload_image) for uploads from the host.
    ///
    /// # Errors
    /// See [`ListError`]: usages, mips or layers. Nothing was recorded.
    ///
    /// # Safety
    /// The regions are valid for buffer and image (VUID-vkCmdCopyBufferToImage-pRegions-00171 and those that follow),
    /// and for the granularity of the queue. The list handles layouts and synchronization.
    pub unsafe fn copy_buffer_to_image(
        &mut self,
        from: &Buffer,
        to: &Image,
        regions: &[vk::BufferImageCopy],
    ) -> Result<(), ListError> {
        buffers::needs(from, vk::BufferUsageFlags::TRANSFER_SRC)?;
        self.transfer_image(to, TARGET, regions.iter().map(|region| region.image_subresource))?;
        self.keep_buffer(from)?;
        if regions.is_empty() {
            return Ok(());
        }
        self.declare(|recorder| {
            for region in regions {
                recorder.use_buffer(from.id(), bytes_of(to, region), Use::COPY_SOURCE)?;
            }
            declare(recorder, to, regions.iter().map(|region| (region.image_subresource, Use::COPY_TARGET)))
        })?;
        self.flush()?;
        let (device, from, to) = (self.core.api.device(), from.handle(), to.handle());
        // SAFETY: the list is being recorded, outside of rendering, and keeps both, with the image in this layout. The
        // caller guarantees the regions.
        unsafe { device.cmd_copy_buffer_to_image(self.pool.main, from, to, TARGET_LAYOUT, regions) };
        Ok(())
    }

    /// `vkCmdCopyImageToBuffer`.
    ///
    /// # Errors
    /// See [`ListError`]: usages, mips or layers. Nothing was recorded.
    ///
    /// # Safety
    /// The regions are valid for image and buffer (VUID-vkCmdCopyImageToBuffer-pRegions-00183 and those that follow),
    /// and for the granularity of the queue. The list handles layouts and synchronization.
    pub unsafe fn copy_image_to_buffer(
        &mut self,
        from: &Image,
        to: &Buffer,
        regions: &[vk::BufferImageCopy],
    ) -> Result<(), ListError> {
        buffers::needs(to, vk::BufferUsageFlags::TRANSFER_DST)?;
        self.transfer_image(from, SOURCE, regions.iter().map(|region| region.image_subresource))?;
        self.keep_buffer(to)?;
        // Rows of several regions may interleave, so the union is one write.
        let written = regions.iter().map(|region| bytes_of(from, region));
        let written = written.reduce(|one, other| one.start.min(other.start)..one.end.max(other.end));
        let Some(written) = written else { return Ok(()) };
        self.declare(|recorder| {
            recorder.use_buffer(to.id(), written, Use::COPY_TARGET)?;
            declare(recorder, from, regions.iter().map(|region| (region.image_subresource, Use::COPY_SOURCE)))
        })?;
        self.flush()?;
        let (device, from, to) = (self.core.api.device(), from.handle(), to.handle());
        // SAFETY: the list is being recorded, outside of rendering, and keeps both, with the image in this layout. The
        // caller guarantees the regions.
        unsafe { device.cmd_copy_image_to_buffer(self.pool.main, from, SOURCE_LAYOUT, to, regions) };
        Ok(())
    }

    /// `vkCmdBlitImage`, on a graphics queue.
    ///
    /// # Errors
    /// See [`ListError`]: usages, mips, layers, the queue, or a subresource that is both read and written. Nothing was
    /// recorded.
    ///
    /// # Safety
    /// Regions, formats and filter are valid for these images (VUID-vkCmdBlitImage-pRegions-00215 and those that
    /// follow). The list handles layouts and synchronization.
    pub unsafe fn blit_image(
        &mut self,
        from: &Image,
        to: &Image,
        regions: &[vk::ImageBlit],
        filter: vk::Filter,
    ) -> Result<(), ListError> {
        // SAFETY: the caller's own promise.
        unsafe { self.blit(from, to, regions, filter, Use::BLIT_TARGET) }
    }

    /// # Safety
    /// See [`blit_image`](Self::blit_image). If `target` discards, the regions cover their subresources.
    pub(super) unsafe fn blit(
        &mut self,
        from: &Image,
        to: &Image,
        regions: &[vk::ImageBlit],
        filter: vk::Filter,
        target: Use,
    ) -> Result<(), ListError> {
        self.needs_queue(vk::QueueFlags::GRAPHICS)?;
        let parts = regions.iter().map(|region| [region.src_subresource, region.dst_subresource]);
        if !self.between_images([from, to], parts, [Use::BLIT_SOURCE, target])? {
            return Ok(());
        }
        let (device, from, to) = (self.core.api.device(), from.handle(), to.handle());
        let layouts = (SOURCE_LAYOUT, TARGET_LAYOUT);
        // SAFETY: the list is being recorded, outside of rendering, and keeps both images, in these layouts. The caller
        // guarantees the rest.
        unsafe {
            device.cmd_blit_image(self.pool.main, from, layouts.0, to, layouts.1, regions, filter);
        };
        Ok(())
    }

    /// `vkCmdResolveImage`, on a graphics queue.
    ///
    /// # Errors
    /// See [`ListError`]: usages, mips, layers or the queue. Nothing was recorded.
    ///
    /// # Safety
    /// Regions and formats are valid for these images (VUID-vkCmdResolveImage-srcImage-00257 and those that follow).
    /// The list handles layouts and synchronization.
    #[doc(alias = "ResolveSubresource")]
    pub unsafe fn resolve_image(
        &mut self,
        from: &Image,
        to: &Image,
        regions: &[vk::ImageResolve],
    ) -> Result<(), ListError> {
        self.needs_queue(vk::QueueFlags::GRAPHICS)?;
        let parts = regions.iter().map(|region| [region.src_subresource, region.dst_subresource]);
        if !self.between_images([from, to], parts, [RESOLVE_SOURCE, RESOLVE_TARGET])? {
            return Ok(());
        }
        let (device, from, to) = (self.core.api.device(), from.handle(), to.handle());
        // SAFETY: the list is being recorded, outside of rendering, and keeps both images, in these layouts. The caller
        // guarantees the rest.
        unsafe { device.cmd_resolve_image(self.pool.main, from, SOURCE_LAYOUT, to, TARGET_LAYOUT, regions) };
        Ok(())
    }

    /// `vkCmdClearColorImage` of a part, on a graphics or compute queue.
    ///
    /// # Errors
    /// See [`ListError`]: usage, aspects, part or queue. Nothing was recorded.
    ///
    /// # Safety
    /// The format can be cleared, and is neither compressed nor multi-planar (VUID-vkCmdClearColorImage-image-00007,
    /// VUID-vkCmdClearColorImage-image-01993).
    pub unsafe fn clear_color(
        &mut self,
        image: &Image,
        part: &Subresources,
        color: vk::ClearColorValue,
    ) -> Result<(), ListError> {
        self.needs_queue(vk::QueueFlags::GRAPHICS | vk::QueueFlags::COMPUTE)?;
        let range = self.clear_range(image, part, vk::ImageAspectFlags::COLOR)?;
        let (device, handle) = (self.core.api.device(), image.handle());
        // SAFETY: the list is being recorded, outside of rendering, and keeps the image, in this layout. The range was
        // checked; the caller guarantees the format.
        unsafe { device.cmd_clear_color_image(self.pool.main, handle, TARGET_LAYOUT, &color, &[range]) };
        Ok(())
    }

    /// `vkCmdClearDepthStencilImage` of a part, on a graphics queue.
    ///
    /// # Errors
    /// See [`ListError`]: usage, aspects, part or queue. Nothing was recorded.
    ///
    /// # Safety
    /// The format can be cleared (VUID-vkCmdClearDepthStencilImage-image-01994), and depth is within 0 to 1, or
    /// VK_EXT_depth_range_unrestricted is enabled (VUID-VkClearDepthStencilValue-depth-00022).
    pub unsafe fn clear_depth_stencil(
        &mut self,
        image: &Image,
        part: &Subresources,
        value: vk::ClearDepthStencilValue,
    ) -> Result<(), ListError> {
        self.needs_queue(vk::QueueFlags::GRAPHICS)?;
        let both = vk::ImageAspectFlags::DEPTH | vk::ImageAspectFlags::STENCIL;
        let range = self.clear_range(image, part, both)?;
        let (device, handle) = (self.core.api.device(), image.handle());
        // SAFETY: see `clear_color`; the caller guarantees the value.
        unsafe {
            device.cmd_clear_depth_stencil_image(self.pool.main, handle, TARGET_LAYOUT, &value, &[range]);
        };
        Ok(())
    }

    fn clear_range(
        &mut self,
        image: &Image,
        part: &Subresources,
        aspects: vk::ImageAspectFlags,
    ) -> Result<vk::ImageSubresourceRange, ListError> {
        let (mips, layers) = (part.mips.clone(), part.layers.clone());
        let aspect_mask = part.aspects & image.aspects();
        if !aspects.contains(image.aspects()) || aspect_mask.is_empty() {
            return Err(ListError::Format { format: image.format(), aspect: part.aspects & aspects });
        }
        let end = mips.end.min(image.mips());
        check_range("mips", mips.start.into(), end.into(), image.mips().into())?;
        let range = vk::ImageSubresourceRange {
            aspect_mask,
            base_mip_level: mips.start,
            level_count: end - mips.start,
            base_array_layer: layers.start,
            layer_count: layers.end.min(image.layers()).saturating_sub(layers.start),
        };
        let first = vk::ImageSubresourceLayers {
            aspect_mask,
            mip_level: range.base_mip_level,
            base_array_layer: range.base_array_layer,
            layer_count: range.layer_count,
        };
        self.transfer_image(image, TARGET, std::iter::once(first))?;
        // If both aspects share one state, clearing one must preserve the other.
        let whole = aspect_mask == image.aspects();
        let usage = if whole { Use::CLEAR.discard() } else { Use::CLEAR };
        self.declare(|recorder| recorder.use_image(image.id(), part, usage))?;
        self.flush()?;
        Ok(range)
    }
}
