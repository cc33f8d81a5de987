//! Commands for buffers.
#![expect(unsafe_code, reason = "calls Vulkan")]

use std::ops::Range;
use std::sync::Arc;

use ash::vk;
use sublet::upload::Upload;
use sublet::{AllocationCreateFlags, AllocationCreateInfo, MemoryUsage};

use super::error::{check_multiple, check_range};
use super::read::{ReadBack, ReadState};
use super::staging::{UploadPiece, bytes_of};
use super::{CommandList, ListError};
use crate::device::{KeptObject, ReadGuard};
use crate::resource::Buffer;
use crate::track::Use;

/// Limit of `vkCmdUpdateBuffer` (VUID-vkCmdUpdateBuffer-dataSize-00037).
const MOST_UPDATED: u64 = 65_536;

/// Fills and updates belong to `VK_PIPELINE_STAGE_2_CLEAR_BIT`. Drivers and layers of 2022 treat them as copies.
const FILL: Use = Use {
    stages: vk::PipelineStageFlags2::from_raw(
        vk::PipelineStageFlags2::CLEAR.as_raw() | vk::PipelineStageFlags2::COPY.as_raw(),
    ),
    ..Use::CLEAR.discard()
};

pub(super) fn needs(buffer: &Buffer, needs: vk::BufferUsageFlags) -> Result<(), ListError> {
    let has = buffer.usage();
    if has.contains(needs) { Ok(()) } else { Err(ListError::BufferUsage { needs, has }) }
}

fn check_bytes(buffer: &Buffer, offset: u64, size: u64) -> Result<Range<u64>, ListError> {
    let end = offset.saturating_add(size);
    check_range("bytes", offset, end, buffer.size())?;
    Ok(offset..end)
}

fn len(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}

/// Rejects regions whose destination overlaps another region's source or destination
/// (VUID-vkCmdCopyBuffer-pRegions-00117). Regions are not empty, and within their buffers.
fn check_overlap(
    same: bool,
    regions: &[vk::BufferCopy],
    written: &mut Vec<(Range<u64>, usize)>,
) -> Result<(), ListError> {
    written.clear();
    let ranges = regions.iter().map(|region| region.dst_offset..region.dst_offset + region.size);
    written.extend(ranges.zip(0..));
    written.sort_unstable_by_key(|(range, at)| (range.start, *at));
    if let Some(pair) = written.windows(2).find(|pair| pair[1].0.start < pair[0].0.end) {
        let (one, two) = (pair[0].1, pair[1].1);
        return Err(ListError::Overlap { region: one.min(two), with: one.max(two) });
    }
    for (with, region) in regions.iter().enumerate().filter(|_| same) {
        // The ranges are disjoint, so the last one that starts before `end` also ends last.
        let end = region.src_offset + region.size;
        let before = written.partition_point(|(range, _)| range.start < end);
        let last = before.checked_sub(1).map(|last| &written[last]);
        if let Some((_, region)) = last.filter(|(range, _)| range.end > region.src_offset) {
            return Err(ListError::Overlap { region: *region, with });
        }
    }
    Ok(())
}

/// Returns consecutive pieces of the data.
fn pieces<'a>(first: &'a mut Upload, others: &'a mut [Upload]) -> impl Iterator<Item = UploadPiece<'a>> {
    let mut offset = 0;
    std::iter::once(first).chain(others).map(move |upload| {
        // SAFETY: the bytes are the whole upload. Only the list has it, and the result borrows it exclusively.
        let bytes = unsafe { bytes_of(upload, 0, upload.size) };
        let piece = UploadPiece { offset, bytes };
        offset += upload.size;
        piece
    })
}

impl CommandList {
    /// `vkCmdCopyBuffer`.
    ///
    /// # Errors
    /// See [`ListError`]: usages, ranges, or regions whose destination overlaps another region. Nothing was recorded.
    ///
    /// # Complexity
    /// O(n log n) in the regions, for the overlap check.
    ///
    /// ```
    /// # let (_gpu, mut frames) = sublet_frame::doc_example();
    /// # use ash::vk; use sublet::{AllocationCreateInfo, MemoryUsage};
    /// # let usage = vk::BufferUsageFlags::TRANSFER_SRC | vk::BufferUsageFlags::TRANSFER_DST;
    /// # let info = vk::BufferCreateInfo::default().size(256).usage(usage);
    /// # let auto = AllocationCreateInfo::new(MemoryUsage::Auto);
    /// # let (from, to) = unsafe { (frames.create_buffer(&info, &auto)?, frames.create_buffer(&info, &auto)?) };
    /// # frames.begin()?;
    /// let mut list = frames.list(frames.queue(0))?;
    /// list.fill_buffer(&from, 0..256, 7)?;
    /// list.copy_buffer(&from, &to, &[vk::BufferCopy { src_offset: 0, dst_offset: 128, size: 64 }])?; // after a barrier
    /// let read = list.read_buffer(&to, 128..132)?;
    /// frames.submit(frames.queue(0), [list])?;
    /// frames.wait(&read)?;
    /// assert_eq!(read.bytes()?, [7, 0, 0, 0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "CopyResource")]
    #[doc(alias = "CopyBufferRegion")]
    pub fn copy_buffer(
        &mut self,
        from: &Buffer,
        to: &Buffer,
        regions: &[vk::BufferCopy],
    ) -> Result<(), ListError> {
        self.outside()?;
        needs(from, vk::BufferUsageFlags::TRANSFER_SRC)?;
        needs(to, vk::BufferUsageFlags::TRANSFER_DST)?;
        for region in regions {
            check_bytes(from, region.src_offset, region.size)?;
            check_bytes(to, region.dst_offset, region.size)?;
        }
        check_overlap(from == to, regions, &mut self.context.written)?;
        if regions.is_empty() {
            return Ok(());
        }
        self.keep_buffer(from)?;
        self.keep_buffer(to)?;
        self.declare(|recorder| {
            for region in regions {
                let read = region.src_offset..region.src_offset + region.size;
                recorder.use_buffer(from.id(), read, Use::COPY_SOURCE)?;
                let written = region.dst_offset..region.dst_offset + region.size;
                recorder.use_buffer(to.id(), written, Use::COPY_TARGET.discard())?;
            }
            Ok(())
        })?;
        self.flush()?;
        let device = self.core.api.device();
        // SAFETY: the list is being recorded, outside of rendering, and keeps both buffers. Usages, ranges and overlaps
        // were checked.
        unsafe { device.cmd_copy_buffer(self.pool.main, from.handle(), to.handle(), regions) };
        Ok(())
    }

    /// `vkCmdFillBuffer`: fills a range with a 32-bit value. Start and end are multiples of 4. Records nothing if the
    /// range is empty.
    ///
    /// # Errors
    /// See [`ListError`]; nothing was recorded.
    #[doc(alias = "ClearUnorderedAccessViewUint")]
    pub fn fill_buffer(&mut self, buffer: &Buffer, range: Range<u64>, value: u32) -> Result<(), ListError> {
        self.outside()?;
        needs(buffer, vk::BufferUsageFlags::TRANSFER_DST)?;
        check_multiple("the start of the range", range.start, 4)?;
        check_multiple("the end of the range", range.end, 4)?;
        if range.start == range.end && range.end <= buffer.size() {
            return Ok(());
        }
        check_range("bytes", range.start, range.end, buffer.size())?;
        let (start, size) = (range.start, range.end - range.start);
        self.keep_buffer(buffer)?;
        self.declare(|recorder| recorder.use_buffer(buffer.id(), range, FILL))?;
        self.flush()?;
        let device = self.core.api.device();
        // SAFETY: the list is being recorded, outside of rendering, and keeps the buffer. Usage, range and alignment
        // were checked.
        unsafe { device.cmd_fill_buffer(self.pool.main, buffer.handle(), start, size, value) };
        Ok(())
    }

    /// `vkCmdUpdateBuffer`: stores at most 65,536 bytes in the command buffer; [`upload`](Self::upload) has no limit.
    /// Offset and length are multiples of 4. Records nothing if `bytes` is empty.
    ///
    /// # Errors
    /// See [`ListError`]; nothing was recorded.
    pub fn update_buffer(&mut self, buffer: &Buffer, offset: u64, bytes: &[u8]) -> Result<(), ListError> {
        self.outside()?;
        needs(buffer, vk::BufferUsageFlags::TRANSFER_DST)?;
        check_multiple("the offset", offset, 4)?;
        check_multiple("the number of bytes", len(bytes), 4)?;
        if bytes.is_empty() && offset <= buffer.size() {
            return Ok(());
        }
        let range = check_bytes(buffer, offset, len(bytes))?;
        check_range("bytes of an update", 0, len(bytes), MOST_UPDATED)?;
        self.keep_buffer(buffer)?;
        self.declare(|recorder| recorder.use_buffer(buffer.id(), range, FILL))?;
        self.flush()?;
        let device = self.core.api.device();
        // SAFETY: the list is being recorded, outside of rendering, and keeps the buffer. Usage, range, alignment and
        // length were checked.
        unsafe { device.cmd_update_buffer(self.pool.main, buffer.handle(), offset, bytes) };
        Ok(())
    }

    /// Writes bytes to a buffer at `offset`, through upload memory. Records nothing if `bytes` is empty.
    ///
    /// Bytes that do not fit into a page of upload memory are divided over several, with one copy for each.
    ///
    /// # Errors
    /// See [`ListError`]; nothing was recorded.
    pub fn upload(&mut self, buffer: &Buffer, offset: u64, bytes: &[u8]) -> Result<(), ListError> {
        self.upload_staged(buffer, offset, len(bytes), |first, others| {
            let mut rest = bytes;
            for mut piece in pieces(first, others) {
                let (now, later) = rest.split_at(piece.bytes.len().min(rest.len()));
                piece.put(now);
                rest = later;
            }
            Ok(())
        })
    }

    /// Writes `size` bytes to a buffer at `offset`. `fill` writes them to upload memory itself: for data that is read,
    /// decoded or generated, and for several threads. If `size` is 0, records nothing and does not call `fill`.
    ///
    /// The pieces have the size of a page of upload memory each, except the last. `fill` may distribute them to
    /// threads. It must return `Ok` only when all are filled: see [`UploadPiece`].
    ///
    /// # Errors
    /// See [`ListError`], and the errors of `fill`. Nothing was recorded. The upload memory can be used again when the
    /// device is done with the list, or the list is dropped.
    ///
    /// ```
    /// # let (_gpu, mut frames) = sublet_frame::doc_example();
    /// # use ash::vk; use sublet::{AllocationCreateInfo, MemoryUsage};
    /// # let usage = vk::BufferUsageFlags::TRANSFER_SRC | vk::BufferUsageFlags::TRANSFER_DST;
    /// # let info = vk::BufferCreateInfo::default().size(5 << 20).usage(usage);
    /// # let buffer = unsafe { frames.create_buffer(&info, &AllocationCreateInfo::new(MemoryUsage::Auto)) }?;
    /// # frames.begin()?;
    /// let mut list = frames.list(frames.queue(0))?;
    /// list.upload_with(&buffer, 0, buffer.size(), |pieces| {
    ///     std::thread::scope(|scope| {
    ///         for mut piece in pieces {
    ///             // Read or decode the bytes from `piece.offset` on. `std::io::Write` writes them.
    ///             scope.spawn(move || piece.write_all(&vec![7; piece.bytes.len()]));
    ///         }
    ///     });
    ///     Ok::<(), sublet_frame::ListError>(())
    /// })?;
    /// # use std::io::Write as _;
    /// let read = list.read_buffer(&buffer, (4 << 20)..(4 << 20) + 2)?;
    /// frames.submit(frames.queue(0), [list])?;
    /// frames.wait(&read)?;
    /// assert_eq!(read.bytes()?, [7, 7]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn upload_with<E: From<ListError>>(
        &mut self,
        buffer: &Buffer,
        offset: u64,
        size: u64,
        fill: impl FnOnce(Vec<UploadPiece<'_>>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.upload_staged(buffer, offset, size, |first, others| fill(pieces(first, others).collect()))
    }

    /// Allocates upload memory, lets `fill` fill it, and records the copies.
    fn upload_staged<E: From<ListError>>(
        &mut self,
        buffer: &Buffer,
        offset: u64,
        size: u64,
        fill: impl FnOnce(&mut Upload, &mut [Upload]) -> Result<(), E>,
    ) -> Result<(), E> {
        self.outside()?;
        needs(buffer, vk::BufferUsageFlags::TRANSFER_DST)?;
        if size == 0 && offset <= buffer.size() {
            return Ok(());
        }
        let range = check_bytes(buffer, offset, size)?;
        self.keep_buffer(buffer)?;
        let page = self.core.uploads.page_size().max(1);
        let mut stage = |size| self.allocate_upload(size, |alignments| alignments.copy);
        // A single piece, the common case, needs no host memory.
        let (mut first, mut others) = (stage(size.min(page))?, Vec::new());
        let mut rest = size - first.size;
        while rest > 0 {
            let next = stage(rest.min(page))?;
            rest -= next.size;
            others.push(next);
        }
        fill(&mut first, &mut others)?;
        self.declare(|recorder| recorder.use_buffer(buffer.id(), range, Use::COPY_TARGET.discard()))?;
        self.flush()?;
        let mut at = offset;
        for piece in std::iter::once(first).chain(others) {
            let regions = [piece.copy_to(at)];
            at += piece.size;
            let device = self.core.api.device();
            // SAFETY: the list is being recorded, outside of rendering, and keeps the page and the buffer. Usage and
            // range were checked, and the pieces together have the size of the range.
            unsafe { device.cmd_copy_buffer(self.pool.main, piece.buffer, buffer.handle(), &regions) };
        }
        Ok(())
    }

    /// Copies at least one byte of a buffer back to the host.
    ///
    /// # Errors
    /// See [`ListError`]; nothing was recorded.
    pub fn read_buffer(&mut self, buffer: &Buffer, range: Range<u64>) -> Result<ReadBack, ListError> {
        self.outside()?;
        needs(buffer, vk::BufferUsageFlags::TRANSFER_SRC)?;
        check_range("bytes", range.start, range.end, buffer.size())?;
        self.keep_buffer(buffer)?;
        let size = range.end - range.start;
        let to = self.read_target(size)?;
        let regions = [vk::BufferCopy { src_offset: range.start, dst_offset: 0, size }];
        self.declare(|recorder| {
            recorder.use_buffer(buffer.id(), range, Use::COPY_SOURCE)?;
            recorder.use_buffer(to.id(), 0..size, Use::COPY_TARGET)
        })?;
        self.flush()?;
        let device = self.core.api.device();
        // SAFETY: the list is being recorded, outside of rendering, and keeps both buffers. Usage and range were
        // checked.
        unsafe { device.cmd_copy_buffer(self.pool.main, buffer.handle(), to.handle(), &regions) };
        self.finish_read(to)
    }

    /// Creates the destination of a read-back.
    pub(super) fn read_target(&self, size: u64) -> Result<Buffer, ListError> {
        let info = vk::BufferCreateInfo::default().size(size).usage(vk::BufferUsageFlags::TRANSFER_DST);
        let memory = AllocationCreateInfo {
            flags: AllocationCreateFlags::HOST_ACCESS_RANDOM | AllocationCreateFlags::MAPPED,
            name: Some("read back"),
            ..AllocationCreateInfo::new(MemoryUsage::Auto)
        };
        // SAFETY: every device supports transfer destination buffers of this size.
        let made = unsafe { Buffer::create(&self.core, &info, &memory) };
        made.map_err(|error| self.core.or_lost(ListError::Create(error)))
    }

    /// Makes the destination visible to the host, and returns the read-back.
    pub(super) fn finish_read(&mut self, to: Buffer) -> Result<ReadBack, ListError> {
        self.declare(|recorder| recorder.use_buffer(to.id(), 0..u64::MAX, Use::HOST_READ))?;
        self.flush()?;
        let state = Arc::new(ReadState::default());
        self.pool.kept.push(KeptObject::Read(ReadGuard { state: Arc::clone(&state), buffer: to.clone() }));
        self.has_reads = true;
        Ok(ReadBack::new(state, to))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares with a check of all pairs.
    #[test]
    fn regions_overlap_if_two_of_them_do() {
        let mut random = fastrand::Rng::with_seed(13);
        let meet = |a: u64, b: u64, one: u64, two: u64| a < b + two && b < a + one;
        for _ in 0..3_000 {
            let count = random.usize(1..6);
            let mut make = || vk::BufferCopy {
                src_offset: random.u64(0..64),
                dst_offset: random.u64(0..64),
                size: random.u64(1..9),
            };
            let regions: Vec<_> = (0..count).map(|_| make()).collect();
            for same in [false, true] {
                let overlap = |at: usize, with: usize| {
                    let (one, two) = (&regions[at], &regions[with]);
                    (at != with && meet(one.dst_offset, two.dst_offset, one.size, two.size))
                        || (same && meet(one.dst_offset, two.src_offset, one.size, two.size))
                };
                let any = (0..count).any(|at| (0..count).any(|with| overlap(at, with)));
                match check_overlap(same, &regions, &mut Vec::new()) {
                    Ok(()) => assert!(!any, "{regions:?}"),
                    Err(ListError::Overlap { region, with }) => assert!(overlap(region, with)),
                    Err(other) => panic!("{other:?}"),
                }
            }
        }
    }
}
