//! Mips by the shader, compared with a linear filter of the previous mip.

use ash::vk;
use sublet::{AllocationCreateInfo, MemoryUsage};
use sublet_descriptors::BindPoint;
use sublet_frame::track::Subresources;
use sublet_frame::{Frames, Image, ImageData, ListError, PipelineLayout, StorageAccess, ViewInfo};

use crate::buffer;
use crate::make::{begin_list, end_with};

const EXTENT: [u32; 2] = [21, 10];
const MIPS: u32 = 5;
const LAYERS: u32 = 2;
const POINT: BindPoint = BindPoint::Compute;

/// Creates an image without `TRANSFER_SRC`, so that blits are impossible.
fn image(frames: &Frames, format: vk::Format, usage: vk::ImageUsageFlags) -> Image {
    let info = vk::ImageCreateInfo::default()
        .image_type(vk::ImageType::TYPE_2D)
        .format(format)
        .extent(vk::Extent3D { width: EXTENT[0], height: EXTENT[1], depth: 1 })
        .mip_levels(MIPS)
        .array_layers(LAYERS)
        .samples(vk::SampleCountFlags::TYPE_1)
        .usage(usage | vk::ImageUsageFlags::SAMPLED | vk::ImageUsageFlags::TRANSFER_DST);
    unsafe { frames.create_image(&info, &AllocationCreateInfo::new(MemoryUsage::Auto)) }.unwrap()
}

/// Generates the mips of an image with these bytes, and returns all texels as shaders see them.
fn chain(
    frames: &mut Frames,
    layout: &PipelineLayout,
    pipeline: vk::Pipeline,
    format: vk::Format,
    bytes: &[u8],
) -> Vec<Vec<[f32; 4]>> {
    let image = image(frames, format, vk::ImageUsageFlags::STORAGE);
    let mut list = begin_list(frames);
    let half = bytes.len() / 2;
    let layers = [ImageData::new(0, 0, &bytes[..half]), ImageData::new(0, 1, &bytes[half..])];
    list.upload_image(&image, &layers).unwrap();
    // Checks that bindings survive mip generation.
    unsafe { list.bind_pipeline(POINT, pipeline, layout) }.unwrap();
    list.generate_mips(&image).unwrap();
    let mut reads = Vec::new();
    for mip in 0..MIPS {
        let vk::Extent3D { width, height, .. } = image.extent(mip);
        let size = u64::from(width * height * LAYERS * 16);
        let texels = buffer(frames, size, vk::BufferUsageFlags::STORAGE_BUFFER);
        let view_type = vk::ImageViewType::TYPE_2D_ARRAY;
        let view = ViewInfo { view_type, format, part: Subresources::ALL.mips(mip..mip + 1) };
        let (none, read) = (vk::Sampler::null(), StorageAccess::Read);
        unsafe { list.bind_image(POINT, (0, 0, 0), &image, Some(&view), none, read) }.unwrap();
        list.bind_buffer(POINT, (0, 1, 0), &texels, 0..size, StorageAccess::Write).unwrap();
        unsafe { list.dispatch([width.div_ceil(8), height.div_ceil(8), LAYERS]) }.unwrap();
        reads.push(list.read_buffer(&texels, 0..size).unwrap());
    }
    let ticket = end_with(frames, list);
    frames.wait(ticket).unwrap();
    let texel =
        |bytes: &[u8]| [0, 4, 8, 12].map(|at| f32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()));
    reads.iter().map(|read| read.bytes().unwrap().chunks_exact(16).map(texel).collect()).collect()
}

/// Returns the texels and weights of a linear filter in one direction.
fn taps(at: u32, from: u32, to: u32) -> [(u32, f32); 2] {
    let place = (at as f32 + 0.5) * from as f32 / to as f32 - 0.5;
    [(place as u32, 1.0 - place.fract()), ((place as u32 + 1).min(from - 1), place.fract())]
}

fn check(mips: &[Vec<[f32; 4]>], step: f32, format: vk::Format) {
    let extent = |mip: usize| EXTENT.map(|side| (side >> mip).max(1));
    for mip in 1..mips.len() {
        let ([width, height], [wide, high]) = (extent(mip), extent(mip - 1));
        for (at, texel) in (0..).zip(&mips[mip]) {
            let (x, y, layer) = (at % width, at / width % height, at / width / height);
            let mut expected = [0.0; 4];
            for (row, below) in taps(y, high, height) {
                for (column, beside) in taps(x, wide, width) {
                    let from = mips[mip - 1][((layer * high + row) * wide + column) as usize];
                    expected = [0, 1, 2, 3].map(|part| expected[part] + from[part] * below * beside);
                }
            }
            for part in 0..4 {
                let apart = (texel[part] - expected[part]).abs();
                assert!(apart <= step, "{format:?}, mip {mip}, {x}, {y}, {layer}: {texel:?}, {expected:?}");
            }
        }
    }
}

/// Tests the shader with every supported format.
pub(crate) fn chains(frames: &mut Frames, layout: &PipelineLayout, pipeline: vk::Pipeline) {
    let texels = (EXTENT[0] * EXTENT[1] * LAYERS) as usize;
    let mut random = fastrand::Rng::with_seed(7);
    let mut floats =
        |parts: usize| (0..texels * parts).flat_map(|_| random.f32().to_le_bytes()).collect::<Vec<u8>>();
    let (wide, single) = (floats(4), floats(1));
    let bytes: Vec<u8> = wide.iter().copied().take(texels * 4).map(|byte| byte / 2).collect();
    // Half floats between 1 and 2 that differ only in the mantissa.
    let halves: Vec<u8> = bytes.iter().flat_map(|&byte| [byte, 0x3c]).collect();
    for (format, bytes, step) in [
        (vk::Format::R32G32B32A32_SFLOAT, &wide, 1e-5),
        (vk::Format::R32_SFLOAT, &single, 1e-5),
        (vk::Format::R16G16B16A16_SFLOAT, &halves, 2e-3),
        (vk::Format::R8G8B8A8_UNORM, &bytes, 1.0 / 255.0),
        (vk::Format::R8G8B8A8_SNORM, &bytes, 1.0 / 127.0),
    ] {
        check(&chain(frames, layout, pipeline, format, bytes), step, format);
    }
    // Errors for a missing usage.
    let format = vk::Format::R8G8B8A8_UNORM;
    let neither = image(frames, format, vk::ImageUsageFlags::empty());
    let mut list = frames.list(frames.queue(0)).unwrap();
    assert!(matches!(list.generate_mips(&neither), Err(ListError::ImageUsage { .. })));
    let integers = image(frames, vk::Format::R8G8B8A8_UINT, vk::ImageUsageFlags::STORAGE);
    assert!(matches!(list.generate_mips(&integers), Err(ListError::FormatFeatures { .. })));
}
