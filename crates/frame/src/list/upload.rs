//! Uploads and read-backs of images.
#![expect(unsafe_code, reason = "calls Vulkan")]

use std::ops::Range;

use ash::vk;

use super::error::{check_multiple, check_range};
use super::part::declare;
use super::read::ReadBack;
use super::{CommandList, ListError};
use crate::resource::{FormatLayout, Image, format_layout};
use crate::track::Use;

/// Bytes between rows of blocks, and between slices or layers. `None` means tightly packed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Pitch {
    /// Bytes between the starts of two rows of blocks.
    pub row: Option<u64>,
    /// Bytes between the starts of two slices or layers.
    pub slice: Option<u64>,
}

/// Data for one mip of some layers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ImageData<'a> {
    /// The bytes: slices or layers, each of rows of blocks.
    pub bytes: &'a [u8],
    /// The distances of rows and slices.
    pub pitch: Pitch,
    /// The mip.
    pub mip: u32,
    /// The layers.
    pub layers: Range<u32>,
    /// One aspect.
    pub aspect: vk::ImageAspectFlags,
    /// The offset in the mip, in texels: a multiple of the block size.
    pub offset: vk::Offset3D,
    /// The extent in texels, or `None` for the rest of the mip. A multiple of the block size, or up to the edge of the
    /// mip.
    pub extent: Option<vk::Extent3D>,
}

impl<'a> ImageData<'a> {
    /// Describes a whole mip of one layer of a color image, tightly packed.
    #[must_use]
    pub fn new(mip: u32, layer: u32, bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            pitch: Pitch::default(),
            mip,
            layers: layer..layer + 1,
            aspect: vk::ImageAspectFlags::COLOR,
            offset: vk::Offset3D::default(),
            extent: None,
        }
    }
}

pub(super) struct CopyRegion {
    layout: FormatLayout,
    layers: vk::ImageSubresourceLayers,
    offset: vk::Offset3D,
    extent: vk::Extent3D,
    /// Bytes of a row of blocks, rows of a slice, number of slices.
    row_bytes: u64,
    rows: u64,
    slices: u64,
    /// True if it covers its subresources.
    whole: bool,
}

impl CopyRegion {
    fn of(
        image: &Image,
        (mip, layers, aspect): (u32, Range<u32>, vk::ImageAspectFlags),
        offset: vk::Offset3D,
        extent: Option<vk::Extent3D>,
    ) -> Result<Self, ListError> {
        let facts = image.facts();
        if facts.samples != vk::SampleCountFlags::TYPE_1 {
            return Err(ListError::Samples { samples: facts.samples });
        }
        let unknown = ListError::Format { format: facts.format, aspect };
        let layout = format_layout(facts.format, aspect).ok_or(unknown)?;
        check_range("mips", mip.into(), u64::from(mip) + 1, facts.mips.into())?;
        check_range("layers", layers.start.into(), layers.end.into(), facts.layers.into())?;
        let size = facts.mip_extent(mip);
        let axes = [
            ("columns", offset.x, size.width, layout.block_width, extent.map(|extent| extent.width)),
            ("rows", offset.y, size.height, layout.block_height, extent.map(|extent| extent.height)),
            ("slices", offset.z, size.depth, 1, extent.map(|extent| extent.depth)),
        ];
        let mut found = [0; 3];
        for ((what, start, size, block, asked), found) in axes.into_iter().zip(&mut found) {
            let start = u64::try_from(start).unwrap_or(u64::MAX);
            let end = asked.map_or(size.into(), |asked| start.saturating_add(asked.into()));
            check_range(what, start, end, size.into())?;
            check_multiple(what, start, block.into())?;
            if end != u64::from(size) {
                check_multiple(what, end, block.into())?;
            }
            // Fits, because it is at most `size`.
            *found = u32::try_from(end - start).unwrap_or(u32::MAX);
        }
        let extent = vk::Extent3D { width: found[0], height: found[1], depth: found[2] };
        let count = layers.end - layers.start;
        Ok(Self {
            layout,
            layers: vk::ImageSubresourceLayers {
                aspect_mask: aspect,
                mip_level: mip,
                base_array_layer: layers.start,
                layer_count: count,
            },
            offset,
            extent,
            row_bytes: layout.row_bytes(extent.width),
            rows: layout.blocks(extent.width, extent.height).1.into(),
            slices: u64::from(extent.depth) * u64::from(count),
            whole: extent == size && aspect == facts.aspects,
        })
    }

    /// Returns the tightly packed size in bytes.
    fn bytes(&self) -> u64 {
        self.row_bytes.saturating_mul(self.rows).saturating_mul(self.slices)
    }

    /// Returns the copy from or to tightly packed bytes at `buffer_offset`.
    fn copy(&self, buffer_offset: u64) -> vk::BufferImageCopy {
        vk::BufferImageCopy {
            buffer_offset,
            buffer_row_length: 0,
            buffer_image_height: 0,
            image_subresource: self.layers,
            image_offset: self.offset,
            image_extent: self.extent,
        }
    }

    fn usage(&self) -> Use {
        if self.whole { Use::COPY_TARGET.discard() } else { Use::COPY_TARGET }
    }

    /// Returns the alignment of the offset in the buffer (VUID-vkCmdCopyBufferToImage-dstImage-07975, -07978).
    fn alignment(&self, copy: u64) -> u64 {
        least_common_multiple(self.layout.block_bytes, copy.max(4))
    }
}

fn least_common_multiple(a: u64, power_of_two: u64) -> u64 {
    let common = 1 << a.trailing_zeros().min(power_of_two.trailing_zeros());
    a / common * power_of_two
}

/// Appends `one` to `parts`, divided into rows of blocks so that each part has at most `bytes`. Data stays whole if the
/// queue copies only whole subresources or several slices at once. A part of a single step of the granularity may be
/// larger.
fn divide<'a>(
    one: &ImageData<'a>,
    region: &CopyRegion,
    granularity: vk::Extent3D,
    bytes: u64,
    parts: &mut Vec<ImageData<'a>>,
) {
    let is_whole = granularity.width == 0 || (granularity.depth > 1 && region.extent.depth > 1);
    if is_whole || region.bytes() <= bytes {
        parts.push(one.clone());
        return;
    }
    let row_pitch = one.pitch.row.unwrap_or(region.row_bytes);
    let slice_pitch = one.pitch.slice.unwrap_or_else(|| row_pitch.saturating_mul(region.rows));
    let block_height = region.layout.block_height;
    let step = granularity.height.max(1);
    let fit = u32::try_from(bytes / region.row_bytes).unwrap_or(u32::MAX);
    let rows = (fit / step).max(1).saturating_mul(step).saturating_mul(block_height);
    for slice in 0..region.slices {
        let layer = one.layers.start + u32::try_from(slice / u64::from(region.extent.depth)).unwrap_or(0);
        let z = i32::try_from(slice % u64::from(region.extent.depth)).unwrap_or(0);
        let mut row = 0;
        while row < region.extent.height {
            let height = rows.min(region.extent.height - row);
            // The bytes of all slices were checked.
            let start = slice * slice_pitch + u64::from(row / block_height) * row_pitch;
            parts.push(ImageData {
                bytes: &one.bytes[usize::try_from(start).unwrap_or(usize::MAX)..],
                pitch: Pitch { row: Some(row_pitch), slice: None },
                layers: layer..layer + 1,
                offset: vk::Offset3D {
                    y: one.offset.y.saturating_add_unsigned(row),
                    z: one.offset.z + z,
                    ..one.offset
                },
                extent: Some(vk::Extent3D { height, depth: 1, ..region.extent }),
                ..one.clone()
            });
            row += height;
        }
    }
}

/// Calls `f` with each row of the data, without the gaps between them.
fn for_rows(data: &ImageData<'_>, region: &CopyRegion, mut f: impl FnMut(&[u8])) -> Result<(), ListError> {
    let row_pitch = data.pitch.row.unwrap_or(region.row_bytes);
    let slice_pitch = data.pitch.slice.unwrap_or_else(|| row_pitch.saturating_mul(region.rows));
    check_range("bytes of a row", 0, region.row_bytes, row_pitch)?;
    let rows_end = (region.rows - 1).saturating_mul(row_pitch).saturating_add(region.row_bytes);
    if region.slices > 1 {
        check_range("bytes of a slice", 0, rows_end, slice_pitch)?;
    }
    let needed = (region.slices - 1).saturating_mul(slice_pitch).saturating_add(rows_end);
    let given = u64::try_from(data.bytes.len()).unwrap_or(u64::MAX);
    let few = ListError::TooFewBytes { needed, given };
    if needed > given {
        return Err(few);
    }
    // The remaining values are at most `given`, which fits a `usize`.
    let count = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
    if row_pitch == region.row_bytes && (region.slices == 1 || slice_pitch == row_pitch * region.rows) {
        f(&data.bytes[..count(needed)]);
        return Ok(());
    }
    for slice in 0..region.slices {
        for row in 0..region.rows {
            let start = count(slice * slice_pitch + row * row_pitch);
            f(&data.bytes[start..start + count(region.row_bytes)]);
        }
    }
    Ok(())
}

impl CommandList {
    /// Uploads texels to an image: any mips, layers and rectangles, with or without gaps between rows, also of
    /// block-compressed formats. All data goes through upload memory with one copy after one barrier call. Depth and
    /// stencil require a graphics queue.
    ///
    /// Data that does not fit into a page of upload memory is divided over several by rows of blocks, with one copy for
    /// each page. It gets memory of its own only if the queue copies nothing but whole subresources.
    ///
    /// The previous contents of completely written subresources are discarded.
    ///
    /// # Errors
    /// See [`ListError`]; nothing was recorded.
    ///
    /// ```
    /// # let (_gpu, mut frames) = sublet_frame::doc_example();
    /// # use ash::vk; use sublet::{AllocationCreateInfo, MemoryUsage};
    /// # use sublet_frame::ImageData;
    /// # let info = vk::ImageCreateInfo::default().image_type(vk::ImageType::TYPE_2D).format(vk::Format::R8G8B8A8_UNORM)
    /// #     .extent(vk::Extent3D { width: 4, height: 4, depth: 1 }).mip_levels(3).array_layers(1)
    /// #     .samples(vk::SampleCountFlags::TYPE_1)
    /// #     .usage(vk::ImageUsageFlags::TRANSFER_DST | vk::ImageUsageFlags::TRANSFER_SRC);
    /// # let image = unsafe { frames.create_image(&info, &AllocationCreateInfo::new(MemoryUsage::Auto)) }?;
    /// # frames.begin()?;
    /// let mips = [vec![1; 64], vec![2; 16], vec![3; 4]];
    /// let data: Vec<ImageData<'_>> = (0..).zip(&mips).map(|(mip, bytes)| ImageData::new(mip, 0, bytes)).collect();
    /// let mut list = frames.list(frames.queue(0))?;
    /// list.upload_image(&image, &data)?;
    /// let read = list.read_image(&image, 1, 0..1, vk::ImageAspectFlags::COLOR)?;
    /// frames.submit(frames.queue(0), [list])?;
    /// frames.wait(&read)?;
    /// assert_eq!(read.bytes()?, [2; 16]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "UpdateSubresources")]
    #[doc(alias = "CopyTextureSubresource")]
    #[doc(alias = "LoadTextureFromFile")]
    pub fn upload_image(&mut self, image: &Image, data: &[ImageData<'_>]) -> Result<(), ListError> {
        if data.is_empty() {
            return Ok(());
        }
        let family = &self.core.families[self.core.queues[self.queue.index()].family];
        let granularity = family.granularity;
        let limits = &self.core.allocator.physical_device_properties().limits;
        let copy_alignment = limits.optimal_buffer_copy_offset_alignment.max(4).next_power_of_two();
        let mut regions = Vec::with_capacity(data.len());
        for one in data {
            let part = (one.mip, one.layers.clone(), one.aspect);
            let region = CopyRegion::of(image, part, one.offset, one.extent)?;
            if one.aspect != vk::ImageAspectFlags::COLOR {
                // VUID-vkCmdCopyBufferToImage-commandBuffer-07739.
                self.needs_queue(vk::QueueFlags::GRAPHICS)?;
            }
            check_granularity(image.extent(one.mip), &region, granularity)?;
            // Check before anything is written.
            for_rows(one, &region, |_| ())?;
            regions.push(region);
        }
        self.transfer_image(
            image,
            vk::ImageUsageFlags::TRANSFER_DST,
            regions.iter().map(|region| region.layers),
        )?;
        // The first offset is rounded up, so that all offsets have the alignment of their formats.
        let most = regions.iter().map(|region| region.alignment(copy_alignment)).max().unwrap_or(4);
        let page = self.core.uploads.page_size().saturating_sub(most).max(1);
        let mut parts = Vec::with_capacity(data.len());
        for (one, region) in data.iter().zip(&regions) {
            divide(one, region, granularity, page, &mut parts);
        }
        let mut staged: Vec<(vk::Buffer, Vec<vk::BufferImageCopy>)> = Vec::with_capacity(1);
        let mut rest = &parts[..];
        while !rest.is_empty() {
            let mut batch = Vec::with_capacity(rest.len());
            let mut total = 0_u64;
            for one in rest {
                let region =
                    CopyRegion::of(image, (one.mip, one.layers.clone(), one.aspect), one.offset, one.extent)?;
                let start = total.next_multiple_of(region.alignment(copy_alignment));
                let end = start.saturating_add(region.bytes());
                if end > page && !batch.is_empty() {
                    break;
                }
                total = end;
                batch.push((start, region));
            }
            let (now, later) = rest.split_at(batch.len());
            rest = later;
            staged.push(self.stage_image(now, &batch, total, (copy_alignment, most))?);
        }
        self.declare(|recorder| {
            declare(recorder, image, regions.iter().map(|region| (region.layers, region.usage())))
        })?;
        self.flush()?;
        let (device, layout) = (self.core.api.device(), vk::ImageLayout::TRANSFER_DST_OPTIMAL);
        for (buffer, copies) in staged {
            // SAFETY: the list is being recorded, outside of rendering, and keeps the page and the image, in this
            // layout. Usage and regions were checked.
            unsafe {
                device.cmd_copy_buffer_to_image(self.pool.main, buffer, image.handle(), layout, &copies);
            };
        }
        Ok(())
    }

    /// Writes data to one piece of upload memory: each region at its start, `total` bytes in all. Returns the buffer
    /// and the copies from it.
    fn stage_image(
        &mut self,
        data: &[ImageData<'_>],
        regions: &[(u64, CopyRegion)],
        total: u64,
        (copy_alignment, most): (u64, u64),
    ) -> Result<(vk::Buffer, Vec<vk::BufferImageCopy>), ListError> {
        let piece = self.allocate_upload(total.saturating_add(most), |_| copy_alignment)?;
        let base = piece.offset.next_multiple_of(most);
        for (one, (start, region)) in data.iter().zip(regions) {
            let mut at = base - piece.offset + start;
            for_rows(one, region, |row| {
                let Ok(offset) = usize::try_from(at) else { return };
                at += u64::try_from(row.len()).unwrap_or(0);
                // SAFETY: the upload has `total + most` bytes from its pointer on. `base` adds less than `most`, and
                // rows of a region take `bytes` from `start` on, so `at` and the end of the row are within it.
                let to = unsafe { piece.ptr.add(offset) };
                // SAFETY: as above; only this list has the upload, so it does not overlap the source.
                unsafe { row.as_ptr().copy_to_nonoverlapping(to.as_ptr(), row.len()) };
            })?;
        }
        Ok((piece.buffer, regions.iter().map(|(start, region)| region.copy(base + start)).collect()))
    }

    /// Copies one aspect of a mip of some layers back to the host: tightly packed rows, layer by layer.
    ///
    /// # Errors
    /// See [`ListError`]; nothing was recorded.
    pub fn read_image(
        &mut self,
        image: &Image,
        mip: u32,
        layers: Range<u32>,
        aspect: vk::ImageAspectFlags,
    ) -> Result<ReadBack, ListError> {
        let region = CopyRegion::of(image, (mip, layers, aspect), vk::Offset3D::default(), None)?;
        let part = region.layers;
        self.transfer_image(image, vk::ImageUsageFlags::TRANSFER_SRC, std::iter::once(part))?;
        let to = self.read_target(region.bytes())?;
        self.declare(|recorder| {
            declare(recorder, image, std::iter::once((part, Use::COPY_SOURCE)))?;
            recorder.use_buffer(to.id(), 0..u64::MAX, Use::COPY_TARGET)
        })?;
        self.flush()?;
        let (device, layout) = (self.core.api.device(), vk::ImageLayout::TRANSFER_SRC_OPTIMAL);
        let copies = [region.copy(0)];
        // SAFETY: the list is being recorded, outside of rendering, and keeps the buffer and the image, in this layout.
        // Usage and region were checked.
        unsafe {
            device.cmd_copy_image_to_buffer(self.pool.main, image.handle(), layout, to.handle(), &copies);
        };
        self.finish_read(to)
    }
}

/// Checks the granularity of the queue, in blocks (VUID-vkCmdCopyBufferToImage-imageOffset-07738).
fn check_granularity(
    size: vk::Extent3D,
    region: &CopyRegion,
    granularity: vk::Extent3D,
) -> Result<(), ListError> {
    let vk::Extent3D { width, height, depth } = granularity;
    if region.extent == size || (width, height, depth) == (1, 1, 1) {
        return Ok(());
    }
    if width == 0 {
        // The queue copies only whole subresources.
        let needed = ListError::OutOfRange {
            what: "columns",
            start: 0,
            end: region.extent.width.into(),
            size: size.width.into(),
        };
        return Err(needed);
    }
    let FormatLayout { block_width, block_height, .. } = region.layout;
    let axes = [
        ("the column", region.offset.x, region.extent.width, size.width, width * block_width),
        ("the row", region.offset.y, region.extent.height, size.height, height * block_height),
        ("the slice", region.offset.z, region.extent.depth, size.depth, depth),
    ];
    for (what, offset, count, size, step) in axes {
        let start = u64::try_from(offset).unwrap_or(0);
        check_multiple(what, start, step.into())?;
        let end = start + u64::from(count);
        if end != u64::from(size) {
            check_multiple(what, end, step.into())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn extent(width: u32, height: u32, depth: u32) -> vk::Extent3D {
        vk::Extent3D { width, height, depth }
    }

    /// The granularity counts blocks; the edge of a mip is always allowed.
    #[test]
    fn queues_copy_multiples_of_their_granularity() {
        let block = format_layout(vk::Format::ASTC_8X5_UNORM_BLOCK, vk::ImageAspectFlags::COLOR);
        let texel = format_layout(vk::Format::R8_UNORM, vk::ImageAspectFlags::COLOR);
        let check = |layout: Option<FormatLayout>, granularity, (x, y, z), extent| {
            let region = CopyRegion {
                layout: layout.expect("a known format"),
                layers: vk::ImageSubresourceLayers::default(),
                offset: vk::Offset3D { x, y, z },
                extent,
                row_bytes: 1,
                rows: 1,
                slices: 1,
                whole: false,
            };
            check_granularity(vk::Extent3D { width: 100, height: 50, depth: 9 }, &region, granularity)
        };
        let misaligned = |what, given, alignment| Err(ListError::Misaligned { what, given, alignment });
        let (all, any, some) = (extent(0, 0, 0), extent(1, 1, 1), extent(2, 4, 3));
        for (granularity, offset, size, expected) in [
            (any, (8, 5, 1), extent(8, 5, 1), Ok(())),
            (some, (16, 20, 3), extent(32, 20, 6), Ok(())),
            (some, (16, 20, 3), extent(84, 30, 6), Ok(())),
            (some, (8, 20, 3), extent(24, 20, 6), misaligned("the column", 8, 16)),
            (some, (16, 20, 3), extent(8, 20, 6), misaligned("the column", 24, 16)),
            (some, (16, 5, 3), extent(16, 35, 6), misaligned("the row", 5, 20)),
            (some, (16, 20, 3), extent(16, 15, 6), misaligned("the row", 35, 20)),
            (some, (16, 20, 1), extent(16, 20, 8), misaligned("the slice", 1, 3)),
            (some, (16, 20, 3), extent(16, 20, 4), misaligned("the slice", 7, 3)),
            (all, (0, 0, 0), extent(100, 50, 9), Ok(())),
            (
                all,
                (0, 0, 0),
                extent(96, 50, 9),
                Err(ListError::OutOfRange { what: "columns", start: 0, end: 96, size: 100 }),
            ),
        ] {
            assert_eq!(check(block, granularity, offset, size), expected, "{offset:?}, {size:?}");
        }
        // Texels are blocks of one.
        assert_eq!(check(texel, some, (2, 4, 0), extent(2, 4, 3)), Ok(()));
        assert_eq!(check(texel, some, (3, 4, 0), extent(1, 4, 3)), misaligned("the column", 3, 2));
    }

    #[test]
    fn multiples_are_common_and_least() {
        for a in 1..40_u64 {
            for shift in 0..6 {
                let power = 1 << shift;
                let expected = (1..).map(|n| n * a).find(|n| n % power == 0);
                assert_eq!(Some(least_common_multiple(a, power)), expected);
            }
        }
    }
}
