//! Uploads that the program fills itself.

use std::io::Write as _;
use std::mem::MaybeUninit;

use ash::vk;
use sublet_frame::{ImagePart, ImagePiece, ListError, UploadPiece, format_layout};

use crate::fixture::{FrameFixture, image_info};
use crate::make::{begin_list, end_with};

const COLOR: vk::ImageAspectFlags = vk::ImageAspectFlags::COLOR;

/// The byte at an offset of the data.
fn byte(seed: u64, at: u64) -> u8 {
    let [_, second, .., last] = (at + seed).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes();
    second ^ last
}

fn data(seed: u64, size: u64) -> Vec<u8> {
    (0..size).map(|at| byte(seed, at)).collect()
}

fn fill(seed: u64, piece: UploadPiece<'_>) {
    for (at, to) in (piece.offset..).zip(piece.bytes) {
        to.write(byte(seed, at));
    }
}

/// Four threads fill halves of the pieces, in reverse order.
fn on_threads<'a>(pieces: impl IntoIterator<Item = UploadPiece<'a>>, seed: impl Fn(usize) -> u64) {
    let mut halves = Vec::new();
    for (at, piece) in pieces.into_iter().enumerate() {
        let middle = piece.bytes.len() / 2;
        let (first, second) = piece.split_at(middle);
        halves.extend([(seed(at), first), (seed(at), second)]);
    }
    let each = halves.len().div_ceil(4);
    std::thread::scope(|scope| {
        while !halves.is_empty() {
            let some = halves.split_off(halves.len().saturating_sub(each));
            scope.spawn(|| some.into_iter().for_each(|(seed, half)| fill(seed, half)));
        }
    });
}

#[test]
fn threads_fill_the_pieces_of_an_upload() {
    // The second has non-coherent memory.
    for profile in ["lavapipe", "qualcomm-adreno-620", "nvidia-h200"] {
        let mut fixture = FrameFixture::new(profile, 1);
        let (offset, size) = (64, (5 << 20) + 100);
        let buffer = fixture.buffer(6 << 20);
        let mut made = Vec::new();
        for frame in 0..4 {
            let frames = fixture.frames();
            let mut list = begin_list(frames);
            list.upload_with(&buffer, offset, size, |pieces| {
                assert!(pieces.len() >= 3, "a page is too large for several threads");
                let lengths = pieces.iter().map(|piece| piece.bytes.len() as u64);
                assert_eq!(lengths.sum::<u64>(), size);
                on_threads(pieces, |_| frame);
                Ok::<(), ListError>(())
            })
            .unwrap();
            let read = list.read_buffer(&buffer, offset..offset + size).unwrap();
            let ticket = end_with(frames, list);
            frames.wait(ticket).unwrap();
            assert!(read.bytes().unwrap() == data(frame, size), "{profile}, {frame}");
            drop(read);
            made.push(fixture.gpu.calls("vkCreateBuffer"));
        }
        let per_frame: Vec<_> = made.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert_eq!(per_frame[1..], [1; 2], "{profile}: a page was created for an upload");
    }
}

#[test]
fn threads_fill_the_rows_of_images() {
    for (profile, format) in [
        ("lavapipe", vk::Format::R8G8B8A8_UNORM),
        ("qualcomm-adreno-620", vk::Format::R8G8_UNORM),
        ("nvidia-h200", vk::Format::BC7_UNORM_BLOCK),
    ] {
        let layout = format_layout(format, COLOR).unwrap();
        let mut fixture = FrameFixture::new(profile, 1);
        let (size, layers) = ((1500, 1002), 3);
        let image = fixture.image(&image_info(format, size, 1, layers));
        let parts = [
            ImagePart::new(0, 0..2),
            // The lower half of the third layer.
            ImagePart { offset: vk::Offset3D { x: 0, y: 500, z: 0 }, ..ImagePart::new(0, 2..3) },
        ];
        let row = layout.row_bytes(size.0);
        let layer = row * u64::from(layout.blocks(1, size.1).1);
        let lower = layer - row * u64::from(layout.blocks(1, 500).1);
        let frames = fixture.frames();
        let mut list = begin_list(frames);
        list.upload_image_with(&image, &parts, |pieces| {
            for piece in &pieces {
                assert_eq!(piece.row_bytes as u64, row);
                check_texels(piece, row, layer, layout.block_height);
            }
            let indices: Vec<_> = pieces.iter().map(|piece| piece.index as u64).collect();
            on_threads(pieces.into_iter().map(|piece| piece.data), |at| indices[at]);
            Ok::<(), ListError>(())
        })
        .unwrap();
        let read = list.read_image(&image, 0, 0..layers, COLOR).unwrap();
        let ticket = end_with(frames, list);
        frames.wait(ticket).unwrap();
        let bytes = read.bytes().unwrap();
        let (two, third) = bytes.split_at(usize::try_from(2 * layer).unwrap());
        assert!(two == data(0, 2 * layer), "{profile}: the first part");
        let lower_start = usize::try_from(layer - lower).unwrap();
        assert!(third[lower_start..] == data(1, lower), "{profile}: the second part");
    }
}

/// The texels of a piece are those at its offset in the data.
fn check_texels(piece: &ImagePiece<'_>, row: u64, layer: u64, block_height: u32) {
    let (part, offset) = (&piece.part, piece.data.offset);
    let extent = part.extent.unwrap();
    let rows = |texels: u32| u64::from(texels.div_ceil(block_height)) * row;
    let (first, top) = if piece.index == 0 { (0, 0) } else { (2, 500) };
    let layers = u64::from(part.layers.end - part.layers.start);
    assert_eq!(piece.data.bytes.len() as u64, layers * rows(extent.height));
    let y = u32::try_from(part.offset.y).unwrap() - top;
    assert_eq!(offset, u64::from(part.layers.start - first) * layer + rows(y));
}

#[derive(Debug, PartialEq)]
enum Failure {
    Decoder,
    List(ListError),
}

impl From<ListError> for Failure {
    fn from(error: ListError) -> Self {
        Self::List(error)
    }
}

#[test]
fn a_failed_fill_records_nothing() {
    let mut fixture = FrameFixture::new("lavapipe", 1);
    let buffer = fixture.buffer(8 << 20);
    let image = fixture.image(&image_info(vk::Format::R8_UNORM, (64, 64), 1, 1));
    let frames = fixture.frames();
    let mut list = begin_list(frames);
    list.fill_buffer(&buffer, 0..8 << 20, 0x0101_0101).unwrap();
    let failed = list.upload_with(&buffer, 0, 8 << 20, |pieces| {
        pieces.into_iter().for_each(|piece| fill(0, piece));
        Err(Failure::Decoder)
    });
    assert_eq!(failed, Err(Failure::Decoder));
    let part = ImagePart::new(0, 0..1);
    let failed = list.upload_image_with(&image, std::slice::from_ref(&part), |_| Err(Failure::Decoder));
    assert_eq!(failed, Err(Failure::Decoder));
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        list.upload_with(&buffer, 0, 4, |_| -> Result<(), ListError> { panic!("a decoder panics") })
    }));
    assert!(panicked.is_err());
    // The list's own errors come before `fill`.
    let outside = list.upload_with(&buffer, 1, 8 << 20, |_| panic!("there is no memory to fill"));
    let end = (8 << 20) + 1;
    let expected = ListError::OutOfRange { what: "bytes", start: 1, end, size: 8 << 20 };
    assert_eq!(outside, Err(Failure::List(expected)));
    let mut called = false;
    let nothing = list.upload_with(&buffer, 8 << 20, 0, |_| {
        called = true;
        Err(Failure::Decoder)
    });
    assert_eq!((nothing, called), (Ok(()), false));
    // The list is complete, and the next upload works.
    list.upload_image_with(&image, &[part], |pieces| {
        for mut piece in pieces {
            piece.data.write_all(&[9; 4096]).map_err(|_| Failure::Decoder)?;
            assert_eq!((piece.data.write(&[1]).unwrap(), piece.data.offset), (0, 4096));
        }
        Ok::<(), Failure>(())
    })
    .unwrap();
    let read = list.read_buffer(&buffer, 0..8 << 20).unwrap();
    let texels = list.read_image(&image, 0, 0..1, COLOR).unwrap();
    let ticket = end_with(frames, list);
    frames.wait(ticket).unwrap();
    assert!(read.bytes().unwrap().iter().all(|&byte| byte == 1));
    assert_eq!(texels.bytes().unwrap(), [9; 4096]);
}

#[test]
fn a_piece_is_a_writer() {
    let mut bytes = [MaybeUninit::uninit(); 10];
    let piece = UploadPiece { offset: 100, bytes: &mut bytes };
    let (mut first, mut second) = piece.split_at(4);
    assert_eq!(second.offset, 104);
    assert_eq!(first.write(b"abcdef").unwrap(), 4);
    assert_eq!((first.offset, first.bytes.len()), (104, 0));
    second.write_all(b"ghi").unwrap();
    assert_eq!((second.offset, second.bytes.len()), (107, 3));
    assert!(second.write_all(b"jklm").is_err());
    let written = bytes.map(|byte| unsafe { byte.assume_init() });
    assert_eq!(&written, b"abcdghijkl");
}
