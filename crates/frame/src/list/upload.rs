//! Uploads and read-backs of images.
#![expect(unsafe_code, reason = "calls Vulkan")]

use std::iter::Peekable;
use std::ops::Range;

use ash::vk;
use sublet::upload::Upload;

use super::copy_region::{CopyRegion, check_granularity};
use super::error::check_range;
use super::part::declare;
use super::read::ReadBack;
use super::staging::{ImagePart, ImagePiece, UploadPiece, bytes_of};
use super::{CommandList, ListError};
use crate::resource::Image;
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

    fn part(&self) -> ImagePart {
        let Self { mip, aspect, offset, extent, .. } = *self;
        ImagePart { mip, layers: self.layers.clone(), aspect, offset, extent }
    }
}

/// The checked rows of [`ImageData`]. Units: bytes, except for `rows`, the number of rows of a slice.
struct SourceRows<'a> {
    bytes: &'a [u8],
    row_bytes: usize,
    row_pitch: usize,
    slice_pitch: usize,
    rows: usize,
    is_packed: bool,
}

impl<'a> SourceRows<'a> {
    fn of(data: &ImageData<'a>, region: &CopyRegion) -> Result<Self, ListError> {
        let row_pitch = data.pitch.row.unwrap_or(region.row_bytes);
        let slice_pitch = data.pitch.slice.unwrap_or_else(|| row_pitch.saturating_mul(region.rows));
        check_range("bytes of a row", 0, region.row_bytes, row_pitch)?;
        let rows_end = (region.rows - 1).saturating_mul(row_pitch).saturating_add(region.row_bytes);
        if region.slices > 1 {
            check_range("bytes of a slice", 0, rows_end, slice_pitch)?;
        }
        let needed = (region.slices - 1).saturating_mul(slice_pitch).saturating_add(rows_end);
        let given = u64::try_from(data.bytes.len()).unwrap_or(u64::MAX);
        if needed > given {
            return Err(ListError::TooFewBytes { needed, given });
        }
        // All values that matter are at most `given`, which fits a `usize`.
        let count = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        Ok(Self {
            bytes: data.bytes,
            row_bytes: count(region.row_bytes),
            row_pitch: count(row_pitch),
            slice_pitch: count(slice_pitch),
            rows: count(region.rows),
            is_packed: row_pitch == region.row_bytes
                && (region.slices == 1 || slice_pitch == row_pitch.saturating_mul(region.rows)),
        })
    }

    /// Copies the rows of a piece, without the gaps between them.
    fn copy_to(&self, mut to: UploadPiece<'_>) {
        let (start, length) = (usize::try_from(to.offset).unwrap_or(usize::MAX), to.bytes.len());
        if self.is_packed {
            return to.put(&self.bytes[start..start + length]);
        }
        let first = start / self.row_bytes;
        for row in first..first + length / self.row_bytes {
            let start = row / self.rows * self.slice_pitch + row % self.rows * self.row_pitch;
            to.put(&self.bytes[start..start + self.row_bytes]);
        }
    }
}

/// A copy from upload memory.
struct StagedCopy {
    /// The index of the part of the image.
    index: usize,
    /// The offset in the tightly packed bytes of this part.
    packed: u64,
    /// The offset in the upload.
    start: u64,
    region: CopyRegion,
}

struct ImageStage {
    upload: Upload,
    copies: Vec<StagedCopy>,
}

/// Returns the upload memory of all copies.
fn pieces(stages: &mut [ImageStage]) -> Vec<ImagePiece<'_>> {
    let copies =
        stages.iter().flat_map(|ImageStage { upload, copies }| copies.iter().map(move |one| (upload, one)));
    let piece = |(upload, one): (&Upload, &StagedCopy)| {
        // SAFETY: `stage_image` has placed the copies of an upload one after another within it. Only the list has the
        // upload, and the result borrows all stages.
        let bytes = unsafe { bytes_of(upload, one.start, one.region.bytes()) };
        ImagePiece {
            index: one.index,
            part: one.region.part(),
            // The bytes of a region fit a `usize`, because they are mapped.
            row_bytes: usize::try_from(one.region.row_bytes).unwrap_or(usize::MAX),
            data: UploadPiece { offset: one.packed, bytes },
        }
    };
    copies.map(piece).collect()
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
        let parts: Vec<ImagePart> = data.iter().map(ImageData::part).collect();
        self.upload_parts(image, &parts, |regions, pieces| {
            let sources = data.iter().zip(regions).map(|(one, region)| SourceRows::of(one, region));
            // Check all before anything is written.
            let sources = sources.collect::<Result<Vec<_>, _>>()?;
            pieces.into_iter().for_each(|piece| sources[piece.index].copy_to(piece.data));
            Ok(())
        })
    }

    /// Uploads texels to an image, as [`upload_image`](Self::upload_image) does, but `fill` writes them to upload
    /// memory itself.
    ///
    /// The pieces have at most a page of upload memory each, unless the queue copies only whole subresources.
    /// `fill` may distribute them to threads. It must return `Ok` only when all are filled: see [`UploadPiece`]. It is
    /// not called if there are no parts.
    ///
    /// # Errors
    /// See [`ListError`], and the errors of `fill`. Nothing was recorded. The upload memory can be used again when the
    /// device is done with the list, or the list is dropped.
    ///
    /// ```
    /// # let (_gpu, mut frames) = sublet_frame::doc_example();
    /// # use ash::vk; use sublet::{AllocationCreateInfo, MemoryUsage};
    /// use std::io::Write as _;
    /// use sublet_frame::ImagePart;
    ///
    /// # let info = vk::ImageCreateInfo::default().image_type(vk::ImageType::TYPE_2D).format(vk::Format::R8_UNORM)
    /// #     .extent(vk::Extent3D { width: 2048, height: 2048, depth: 1 }).mip_levels(1).array_layers(1)
    /// #     .samples(vk::SampleCountFlags::TYPE_1)
    /// #     .usage(vk::ImageUsageFlags::TRANSFER_DST | vk::ImageUsageFlags::TRANSFER_SRC);
    /// # let image = unsafe { frames.create_image(&info, &AllocationCreateInfo::new(MemoryUsage::Auto)) }?;
    /// # frames.begin()?;
    /// let mut list = frames.list(frames.queue(0))?;
    /// list.upload_image_with(&image, &[ImagePart::new(0, 0..1)], |pieces| {
    ///     std::thread::scope(|scope| {
    ///         for mut piece in pieces {
    ///             // A decoder goes here.
    ///             scope.spawn(move || {
    ///                 for y in (piece.part.offset.y..).take(piece.data.bytes.len() / piece.row_bytes) {
    ///                     piece.data.write_all(&vec![y as u8; piece.row_bytes])?;
    ///                 }
    ///                 Ok::<(), std::io::Error>(())
    ///             });
    ///         }
    ///     });
    ///     Ok::<(), sublet_frame::ListError>(())
    /// })?;
    /// let read = list.read_image(&image, 0, 0..1, vk::ImageAspectFlags::COLOR)?;
    /// frames.submit(frames.queue(0), [list])?;
    /// frames.wait(&read)?;
    /// assert_eq!(read.bytes()?[255 * 2048], 255);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn upload_image_with<E: From<ListError>>(
        &mut self,
        image: &Image,
        parts: &[ImagePart],
        fill: impl FnOnce(Vec<ImagePiece<'_>>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.upload_parts(image, parts, |_, pieces| fill(pieces))
    }

    /// Uploads parts of an image. `fill` fills the pieces. The regions are those of the parts.
    fn upload_parts<E: From<ListError>>(
        &mut self,
        image: &Image,
        parts: &[ImagePart],
        fill: impl FnOnce(&[CopyRegion], Vec<ImagePiece<'_>>) -> Result<(), E>,
    ) -> Result<(), E> {
        if parts.is_empty() {
            return Ok(());
        }
        let family = &self.core.families[self.core.queues[self.queue.index()].family];
        let granularity = family.granularity;
        let limits = &self.core.allocator.physical_device_properties().limits;
        let copy_alignment = limits.optimal_buffer_copy_offset_alignment.max(4).next_power_of_two();
        let mut regions = Vec::with_capacity(parts.len());
        for part in parts {
            let region = CopyRegion::of(image, part)?;
            if part.aspect != vk::ImageAspectFlags::COLOR {
                // VUID-vkCmdCopyBufferToImage-commandBuffer-07739.
                self.needs_queue(vk::QueueFlags::GRAPHICS)?;
            }
            check_granularity(image.extent(part.mip), &region, granularity)?;
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
        let mut copies = Vec::with_capacity(regions.len());
        for (index, region) in regions.iter().enumerate() {
            region.divide(granularity, page, |packed, region| {
                copies.push(StagedCopy { index, packed, start: 0, region });
            });
        }
        let (mut stages, mut rest) = (Vec::with_capacity(1), copies.into_iter().peekable());
        while rest.peek().is_some() {
            stages.push(self.stage_image(&mut rest, page, (copy_alignment, most))?);
        }
        fill(&regions, pieces(&mut stages))?;
        self.declare(|recorder| {
            declare(recorder, image, regions.iter().map(|region| (region.layers, region.usage())))
        })?;
        self.flush()?;
        let (device, layout) = (self.core.api.device(), vk::ImageLayout::TRANSFER_DST_OPTIMAL);
        for ImageStage { upload, copies } in stages {
            let copy = |one: &StagedCopy| one.region.copy(upload.offset + one.start);
            let copies: Vec<_> = copies.iter().map(copy).collect();
            // SAFETY: the list is being recorded, outside of rendering, and keeps the page and the image, in this
            // layout. Usage and regions were checked.
            unsafe {
                device.cmd_copy_buffer_to_image(
                    self.pool.main,
                    upload.buffer,
                    image.handle(),
                    layout,
                    &copies,
                );
            };
        }
        Ok(())
    }

    /// Allocates one piece of upload memory for the next copies, up to `page` bytes.
    fn stage_image(
        &mut self,
        rest: &mut Peekable<impl Iterator<Item = StagedCopy>>,
        page: u64,
        (copy_alignment, most): (u64, u64),
    ) -> Result<ImageStage, ListError> {
        let (mut size, mut copies) = (0_u64, Vec::new());
        let range = |size: u64, region: &CopyRegion| {
            let start = size.next_multiple_of(region.alignment(copy_alignment));
            (start, start.saturating_add(region.bytes()))
        };
        while let Some(mut copy) =
            rest.next_if(|copy| copies.is_empty() || range(size, &copy.region).1 <= page)
        {
            (copy.start, size) = range(size, &copy.region);
            copies.push(copy);
        }
        let upload = self.allocate_upload(size.saturating_add(most), |_| copy_alignment)?;
        let padding = upload.offset.next_multiple_of(most) - upload.offset;
        copies.iter_mut().for_each(|copy| copy.start += padding);
        Ok(ImageStage { upload, copies })
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
        let region = CopyRegion::of(image, &ImagePart { aspect, ..ImagePart::new(mip, layers) })?;
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
