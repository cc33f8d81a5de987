//! Upload memory that the program fills.
#![expect(unsafe_code, reason = "hands out mapped memory")]

use std::io;
use std::mem::MaybeUninit;
use std::ops::Range;

use ash::vk;
use sublet::upload::Upload;

/// A rectangle of one mip of some layers, for [`CommandList::upload_image_with`](super::CommandList::upload_image_with).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ImagePart {
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

impl ImagePart {
    /// Describes a whole mip of some layers of a color image.
    #[must_use]
    pub fn new(mip: u32, layers: Range<u32>) -> Self {
        let (aspect, offset) = (vk::ImageAspectFlags::COLOR, vk::Offset3D::default());
        Self { mip, layers, aspect, offset, extent: None }
    }
}

/// Upload memory for a part of the data. The program fills it, on any thread.
///
/// The content is arbitrary, for example an earlier upload. Therefore the bytes are [`MaybeUninit`]: safe code cannot
/// read them. The device copies every byte, written or not. Leaving bytes unwritten is no undefined behaviour, but the
/// buffer or image then has arbitrary content.
///
/// Write each byte once, in increasing order: the memory may be write-combined. [`io::Write`] writes to the start of
/// the piece and removes these bytes from it, so a decoder can write to a piece directly.
///
/// ```
/// use std::mem::MaybeUninit;
/// use sublet_frame::UploadPiece;
///
/// let mut bytes = [MaybeUninit::uninit(); 8];
/// let mut piece = UploadPiece { offset: 0, bytes: &mut bytes };
/// std::io::copy(&mut [7; 5].as_slice(), &mut piece)?;
/// assert_eq!((piece.offset, piece.bytes.len()), (5, 3));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct UploadPiece<'a> {
    /// The offset of the first byte in the upload. For images: in the tightly packed bytes of the [`ImagePart`].
    pub offset: u64,
    /// The bytes to fill.
    pub bytes: &'a mut [MaybeUninit<u8>],
}

impl UploadPiece<'_> {
    /// Divides the piece in two, the first with `at` bytes, for more threads than pieces.
    ///
    /// # Panics
    /// If the piece has fewer bytes.
    #[must_use]
    pub fn split_at(self, at: usize) -> (Self, Self) {
        let (first, second) = self.bytes.split_at_mut(at);
        let offset = self.offset + u64::try_from(at).unwrap_or(u64::MAX);
        (Self { offset: self.offset, bytes: first }, Self { offset, bytes: second })
    }

    /// Copies `source` to the start of the piece, and removes these bytes from it.
    pub(super) fn put(&mut self, source: &[u8]) {
        let (target, rest) = std::mem::take(&mut self.bytes).split_at_mut(source.len());
        // SAFETY: the slices have the same length. They do not overlap, because the target is borrowed exclusively.
        unsafe { source.as_ptr().copy_to_nonoverlapping(target.as_mut_ptr().cast(), source.len()) };
        self.offset += u64::try_from(source.len()).unwrap_or(u64::MAX);
        self.bytes = rest;
    }
}

/// Writes to the start of the piece, and removes the written bytes from it. Writes fewer bytes than requested if the
/// piece is full.
impl io::Write for UploadPiece<'_> {
    fn write(&mut self, source: &[u8]) -> io::Result<usize> {
        let count = source.len().min(self.bytes.len());
        self.put(&source[..count]);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Upload memory for texels: tightly packed rows of blocks, slice by slice and layer by layer.
#[derive(Debug)]
#[non_exhaustive]
pub struct ImagePiece<'a> {
    /// The index of the [`ImagePart`] among those of the upload.
    pub index: usize,
    /// The texels of the piece. Offset and extent are always those of the piece.
    pub part: ImagePart,
    /// Bytes of a row of blocks, and the distance between two rows.
    pub row_bytes: usize,
    /// The bytes to fill.
    pub data: UploadPiece<'a>,
}

/// Returns `size` bytes at `start` of an upload.
///
/// # Safety
/// They are within the upload, and nothing else uses them for the lifetime of the result.
pub(super) unsafe fn bytes_of<'a>(upload: &Upload, start: u64, size: u64) -> &'a mut [MaybeUninit<u8>] {
    // An upload is mapped, so its size fits a `usize`.
    let (Ok(start), Ok(size)) = (usize::try_from(start), usize::try_from(size)) else { return &mut [] };
    // SAFETY: the caller's promise: `start` is within the upload.
    let first = unsafe { upload.ptr.add(start) }.cast::<MaybeUninit<u8>>();
    // SAFETY: the caller's promise; `MaybeUninit<u8>` needs neither initialisation nor alignment. The page stays mapped
    // until the device is done with the list that has the upload.
    unsafe { std::slice::from_raw_parts_mut(first.as_ptr(), size) }
}
