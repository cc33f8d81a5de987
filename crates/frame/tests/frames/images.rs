//! Uploads and read-backs of images.

use ash::vk;
use sublet_frame::track::{Subresources, UseError};
use sublet_frame::{Attachment, ImageData, ListError, Pitch, RenderingInfo, Resolve, format_layout};

use crate::fixture::{FrameFixture, PROFILES, image_info};
use crate::make::{begin_list, end_with};

const COLOR: vk::ImageAspectFlags = vk::ImageAspectFlags::COLOR;

/// Returns bytes that are unique for this seed.
fn bytes(seed: u64, count: u64) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(seed);
    (0..count).map(|_| random.u8(..)).collect()
}

#[test]
fn mips_and_layers_of_many_formats() {
    let formats = [
        vk::Format::R8_UNORM,
        vk::Format::R8G8_UNORM,
        vk::Format::R8G8B8A8_UNORM,
        vk::Format::R16G16B16A16_SFLOAT,
        vk::Format::R32G32B32A32_SFLOAT,
        vk::Format::BC1_RGBA_UNORM_BLOCK,
        vk::Format::BC7_UNORM_BLOCK,
    ];
    for (profile, format) in PROFILES.into_iter().flat_map(|profile| formats.map(|format| (profile, format)))
    {
        let layout = format_layout(format, COLOR).unwrap();
        let mut fixture = FrameFixture::new(profile, 1);
        let (size, mips, layers) = ((20, 12), 5, 3);
        let image = fixture.image(&image_info(format, size, mips, layers));
        let mut parts = Vec::new();
        for mip in 0..mips {
            for layer in 0..layers {
                let extent = image.extent(mip);
                let rows = layout.blocks(extent.width, extent.height).1;
                let count = layout.row_bytes(extent.width) * u64::from(rows);
                parts.push((mip, layer, bytes(u64::from(mip * 8 + layer), count)));
            }
        }
        let frames = fixture.frames();
        let mut list = begin_list(frames);
        let data: Vec<_> =
            parts.iter().map(|(mip, layer, bytes)| ImageData::new(*mip, *layer, bytes)).collect();
        let before = frames.statistics().barrier_calls;
        list.upload_image(&image, &data).unwrap();
        assert_eq!(frames.statistics().barrier_calls, before, "the barrier is in the preamble");
        let reads: Vec<_> =
            (0..mips).map(|mip| list.read_image(&image, mip, 0..layers, COLOR).unwrap()).collect();
        let ticket = end_with(frames, list);
        frames.wait(ticket).unwrap();
        for (mip, read) in (0..).zip(&reads) {
            let expected: Vec<u8> =
                parts.iter().filter(|part| part.0 == mip).flat_map(|part| part.2.clone()).collect();
            assert_eq!(read.bytes().unwrap(), expected, "{profile}, {format:?}, mip {mip}");
        }
    }
}

#[test]
fn rows_with_gaps_and_rectangles() {
    let mut fixture = FrameFixture::new("lavapipe", 1);
    let image = fixture.image(&image_info(vk::Format::R8G8B8A8_UNORM, (8, 8), 1, 2));
    let source = bytes(1, 1000);
    let frames = fixture.frames();
    let queue = frames.queue(0);
    let mut list = begin_list(frames);
    unsafe { list.clear_color(&image, &Subresources::ALL, vk::ClearColorValue { uint32: [0; 4] }) }.unwrap();
    let corner = ImageData {
        pitch: Pitch { row: Some(40), slice: Some(200) },
        layers: 0..2,
        offset: vk::Offset3D { x: 2, y: 3, z: 0 },
        extent: Some(vk::Extent3D { width: 4, height: 5, depth: 1 }),
        ..ImageData::new(0, 0, &source)
    };
    let single = ImageData {
        offset: vk::Offset3D { x: 0, y: 0, z: 0 },
        extent: Some(vk::Extent3D { width: 1, height: 1, depth: 1 }),
        ..ImageData::new(0, 1, &[5, 6, 7, 8])
    };
    list.upload_image(&image, &[corner, single]).unwrap();
    let read = list.read_image(&image, 0, 0..2, COLOR).unwrap();
    let ticket = frames.submit(queue, [list]).unwrap();
    frames.wait(ticket).unwrap();
    let mut expected = vec![0; 512];
    for layer in 0..2 {
        for row in 0..5 {
            let (to, from) = (layer * 256 + (3 + row) * 32 + 8, layer * 200 + row * 40);
            expected[to..to + 16].copy_from_slice(&source[from..from + 16]);
        }
    }
    expected[256..260].copy_from_slice(&[5, 6, 7, 8]);
    assert_eq!(read.bytes().unwrap(), expected);

    let mut list = frames.list(queue).unwrap();
    let short = list.upload_image(&image, &[ImageData::new(0, 0, &source[..255])]);
    assert_eq!(short, Err(ListError::TooFewBytes { needed: 256, given: 255 }));
    let beyond = ImageData { offset: vk::Offset3D { x: 8, y: 0, z: 0 }, ..ImageData::new(0, 0, &source) };
    assert!(matches!(
        list.upload_image(&image, &[beyond]),
        Err(ListError::OutOfRange { what: "columns", .. })
    ));
    let narrow = ImageData { pitch: Pitch { row: Some(31), slice: None }, ..ImageData::new(0, 0, &source) };
    assert!(matches!(list.upload_image(&image, &[narrow]), Err(ListError::OutOfRange { .. })));
}

/// Uploads that are larger than a page are divided over pages, which later frames use again. No frame but the first
/// ones needs memory from the driver.
#[test]
fn large_uploads_reuse_the_pages() {
    for (profile, format) in [
        ("lavapipe", vk::Format::R8G8B8A8_UNORM),
        // It has non-coherent memory.
        ("qualcomm-adreno-620", vk::Format::R8G8_UNORM),
        ("nvidia-h200", vk::Format::BC7_UNORM_BLOCK),
    ] {
        let layout = format_layout(format, COLOR).unwrap();
        let mut fixture = FrameFixture::new(profile, 1);
        let buffer = fixture.buffer(5 << 20);
        // Two layers of more than a page, with a height that no part divides.
        let (size, layers) = ((1500, 1002), 2);
        let image = fixture.image(&image_info(format, size, 1, layers));
        let blocks = u64::from(layout.blocks(size.0, size.1).1);
        let layer = layout.row_bytes(size.0) * blocks;
        let (words, texels) = (bytes(1, 5 << 20), bytes(2, layer * u64::from(layers)));
        let all = ImageData { layers: 0..layers, ..ImageData::new(0, 0, &texels) };
        // Only the lower half of the second layer, from rows with 64 bytes between them.
        let row = layout.row_bytes(size.0);
        let above = u64::from(layout.blocks(1, 500).1);
        let lower = bytes(3, (row + 64) * (blocks - above));
        let part = ImageData {
            pitch: Pitch { row: Some(row + 64), slice: None },
            offset: vk::Offset3D { x: 0, y: 500, z: 0 },
            ..ImageData::new(0, 1, &lower)
        };
        let mut made = Vec::new();
        for _ in 0..6 {
            let frames = fixture.frames();
            let mut list = begin_list(frames);
            list.upload(&buffer, 0, &words).unwrap();
            list.upload_image(&image, std::slice::from_ref(&all)).unwrap();
            list.upload_image(&image, std::slice::from_ref(&part)).unwrap();
            let reads = (
                list.read_buffer(&buffer, 0..5 << 20).unwrap(),
                list.read_image(&image, 0, 0..layers, COLOR).unwrap(),
            );
            let ticket = end_with(frames, list);
            frames.wait(ticket).unwrap();
            assert!(reads.0.bytes().unwrap() == words, "{profile}");
            let mut expected = texels.clone();
            let start = usize::try_from(layer + row * above).unwrap();
            let rows = lower.chunks(usize::try_from(row + 64).unwrap());
            for (to, from) in expected[start..].chunks_mut(usize::try_from(row).unwrap()).zip(rows) {
                to.copy_from_slice(&from[..to.len()]);
            }
            assert!(reads.1.bytes().unwrap() == expected, "{profile}, {format:?}");
            drop(reads);
            made.push(fixture.gpu.calls("vkCreateBuffer"));
        }
        // Each read-back creates a buffer, and nothing else does.
        let per_frame: Vec<_> = made.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert_eq!(per_frame[1..], [2; 4], "{profile}: a page was created for an upload");
    }
}

#[test]
fn blits_make_mips() {
    for profile in PROFILES {
        let mut fixture = FrameFixture::new(profile, 1);
        let image = fixture.image(&image_info(vk::Format::R8_UNORM, (4, 4), 3, 1));
        let frames = fixture.frames();
        let mut list = begin_list(frames);
        let texels = [0, 40, 200, 200, 80, 120, 200, 200, 10, 10, 0, 0, 10, 10, 0, 100];
        list.upload_image(&image, &[ImageData::new(0, 0, &texels)]).unwrap();
        let before = frames.statistics().barrier_calls;
        list.generate_mips(&image).unwrap();
        assert_eq!(frames.statistics().barrier_calls, before + 2, "one for each mip");
        let reads = [1, 2].map(|mip| list.read_image(&image, mip, 0..1, COLOR).unwrap());
        let ticket = end_with(frames, list);
        frames.wait(ticket).unwrap();
        let mips = reads.map(|read| read.bytes().unwrap().to_vec());
        assert_eq!(mips, [vec![60, 200, 10, 25], vec![74]], "{profile}");
    }
}

#[test]
fn a_shader_makes_mips_where_blits_are_not_allowed() {
    let mut fixture = FrameFixture::new("lavapipe", 1);
    // The test defines the shader: each mip takes every other texel of the previous one.
    fixture.gpu.set_kernel("sublet_mips", |kernel| {
        let (from, to) = (kernel.texels(0, 0, 0), kernel.texels(0, 1, 0));
        let [width, height, _] = to.extent(0);
        for (layer, y) in (0..kernel.groups()[2]).flat_map(|layer| (0..height).map(move |y| (layer, y))) {
            for x in 0..width {
                to.write(0, layer, [x, y, 0], &from.read(0, layer, [2 * x, 2 * y, 0]));
            }
        }
    });
    let usage = vk::ImageUsageFlags::SAMPLED | vk::ImageUsageFlags::STORAGE;
    // Linear filtering is not supported for it.
    let info = image_info(vk::Format::R16G16B16A16_SFLOAT, (20, 12), 4, 2);
    let image = fixture.image(&info.usage(info.usage | usage));
    let neither = fixture.image(&info.usage(vk::ImageUsageFlags::SAMPLED));
    let texels = [bytes(1, 1920), bytes(2, 1920)];
    let frames = fixture.frames();
    for _ in 0..3 {
        let mut list = begin_list(frames);
        let data = [ImageData::new(0, 0, &texels[0]), ImageData::new(0, 1, &texels[1])];
        list.upload_image(&image, &data).unwrap();
        let before = frames.statistics().barrier_calls;
        list.generate_mips(&image).unwrap();
        assert_eq!(frames.statistics().barrier_calls, before + 3, "one for each mip");
        assert!(list.generate_mips(&neither).is_err());
        let read = list.read_image(&image, 2, 1..2, COLOR).unwrap();
        let ticket = end_with(frames, list);
        frames.wait(ticket).unwrap();
        let fourth = |row: usize, column: usize| &texels[1][(row * 20 + column) * 8..][..8];
        let rows = (0..3).flat_map(|row| (0..5).map(move |column| (4 * row, 4 * column)));
        let expected: Vec<u8> = rows.flat_map(|(row, column)| fourth(row, column).to_vec()).collect();
        assert_eq!(read.bytes().unwrap(), expected);
    }
    frames.wait_idle().unwrap();
    assert_eq!(fixture.gpu.calls("vkCreateComputePipelines"), 1);
}

#[test]
fn blocks_are_not_cut() {
    let mut fixture = FrameFixture::new("nvidia-rtx-5070-ti", 1);
    let image = fixture.image(&image_info(vk::Format::BC1_RGBA_UNORM_BLOCK, (10, 10), 1, 1));
    let source = bytes(2, 1000);
    let frames = fixture.frames();
    let mut list = frames.list(frames.queue(0)).unwrap();
    let at = |x, y, width, height| ImageData {
        offset: vk::Offset3D { x, y, z: 0 },
        extent: Some(vk::Extent3D { width, height, depth: 1 }),
        ..ImageData::new(0, 0, &source)
    };
    assert!(matches!(
        list.upload_image(&image, &[at(2, 0, 4, 4)]),
        Err(ListError::Misaligned { given: 2, .. })
    ));
    assert!(matches!(
        list.upload_image(&image, &[at(0, 0, 6, 4)]),
        Err(ListError::Misaligned { given: 6, .. })
    ));
    list.upload_image(&image, &[at(8, 4, 2, 6)]).unwrap();
}

/// Each view is a layer, with dynamic rendering and in render passes.
#[test]
fn views_are_layers() {
    let mut passes = 0;
    for profile in PROFILES {
        let mut fixture = FrameFixture::new(profile, 1);
        let info = image_info(vk::Format::R8G8B8A8_UNORM, (4, 4), 1, 4);
        let image = fixture.image(&info.usage(info.usage | vk::ImageUsageFlags::COLOR_ATTACHMENT));
        let frames = fixture.frames();
        let mut list = begin_list(frames);
        let grey = vk::ClearColorValue { float32: [0.2; 4] };
        unsafe { list.clear_color(&image, &Subresources::ALL, grey) }.unwrap();
        let white = vk::ClearValue { color: vk::ClearColorValue { float32: [1.0; 4] } };
        // With base layer 1: the first and the third view.
        let colors = [Some(Attachment { layer: 1, clear: white, ..Attachment::clear(&image) })];
        let info = RenderingInfo { view_mask: 0b101, ..RenderingInfo::new(image.extent(0), &colors, None) };
        unsafe { list.begin_rendering(&info) }.unwrap();
        list.end_rendering().unwrap();
        let read = list.read_image(&image, 0, 0..4, vk::ImageAspectFlags::COLOR).unwrap();
        end_with(frames, list);
        frames.wait(&read).unwrap();
        let layers: Vec<_> = read.bytes().unwrap().chunks(64).map(|layer| layer.to_vec()).collect();
        let expected = [51, 255, 51, 255].map(|byte| vec![byte; 64]);
        assert_eq!(layers, expected, "{profile}");
        passes += fixture.gpu.live().render_passes;
    }
    assert_eq!(passes, 2, "two of them have no dynamic rendering");
}

#[test]
fn colors_are_resolved_as_their_format_wants_it_to_any_mip_and_layer() {
    for profile in PROFILES {
        let mut fixture = FrameFixture::new(profile, 1);
        let format = vk::Format::R8G8B8A8_UINT;
        let made = |fixture: &mut FrameFixture, mips, layers, samples| {
            let info = image_info(format, (4, 4), mips, layers).samples(samples);
            fixture.image(&info.usage(info.usage | vk::ImageUsageFlags::COLOR_ATTACHMENT))
        };
        let samples = made(&mut fixture, 1, 1, vk::SampleCountFlags::TYPE_4);
        let single = made(&mut fixture, 2, 3, vk::SampleCountFlags::TYPE_1);
        let frames = fixture.frames();
        let mut list = begin_list(frames);
        let none = vk::ClearColorValue { uint32: [1; 4] };
        unsafe { list.clear_color(&single, &Subresources::ALL, none) }.unwrap();
        let seven = vk::ClearValue { color: vk::ClearColorValue { uint32: [7; 4] } };
        let to = Resolve { mip: 1, layer: 2, ..Resolve::new(&single) };
        let wrong = Resolve { mode: Some(vk::ResolveModeFlags::AVERAGE), ..to };
        for (to, expected) in [(wrong, false), (to, true)] {
            let attached = Attachment { clear: seven, resolve: Some(to), ..Attachment::clear(&samples) };
            let colors = [Some(attached)];
            let info = RenderingInfo::new(single.extent(1), &colors, None);
            let begun = unsafe { list.begin_rendering(&info) };
            assert_eq!(begun.is_ok(), expected, "{begun:?}");
        }
        list.end_rendering().unwrap();
        let read = list.read_image(&single, 1, 0..3, vk::ImageAspectFlags::COLOR).unwrap();
        end_with(frames, list);
        frames.wait(&read).unwrap();
        assert_eq!(read.bytes().unwrap(), [[1; 16], [1; 16], [7; 16]].concat(), "{profile}");
    }
}

/// Two layers of one image are two attachments, and so are two slices. Other layers stay unchanged.
#[test]
fn layers_and_slices_are_attachments() {
    for profile in PROFILES {
        let mut fixture = FrameFixture::new(profile, 1);
        let usage = vk::ImageUsageFlags::COLOR_ATTACHMENT;
        let info = image_info(vk::Format::R8G8B8A8_UNORM, (4, 4), 1, 4);
        let image = fixture.image(&info.usage(info.usage | usage));
        let info = image_info(vk::Format::R8G8B8A8_UNORM, (4, 4), 1, 1).image_type(vk::ImageType::TYPE_3D);
        let info = info.extent(vk::Extent3D { width: 4, height: 4, depth: 4 }).usage(info.usage | usage);
        let volume = fixture.image(&info.flags(vk::ImageCreateFlags::TYPE_2D_ARRAY_COMPATIBLE));
        let frames = fixture.frames();
        let mut list = begin_list(frames);
        let grey = vk::ClearColorValue { float32: [0.2; 4] };
        unsafe { list.clear_color(&image, &Subresources::ALL, grey) }.unwrap();
        unsafe { list.clear_color(&volume, &Subresources::ALL, grey) }.unwrap();
        // Framebuffers of the simulated GPU have no slices: `tests/layer` covers them.
        let targets = if profile == PROFILES[0] { vec![&image, &volume] } else { vec![&image] };
        for &image in &targets {
            let one = |layer, value| {
                let color = vk::ClearColorValue { float32: [value; 4] };
                Some(Attachment { layer, clear: vk::ClearValue { color }, ..Attachment::clear(image) })
            };
            let colors = [one(3, 1.0), None, one(1, 0.4)];
            let info = RenderingInfo::new(image.extent(0), &colors, None);
            unsafe { list.begin_rendering(&info) }.unwrap();
            list.end_rendering().unwrap();
        }
        let reads = [(&image, 4), (&volume, 1)]
            .map(|(image, layers)| list.read_image(image, 0, 0..layers, COLOR).unwrap());
        end_with(frames, list);
        frames.wait(&reads[1]).unwrap();
        let expected = [51, 102, 51, 255].map(|byte| vec![byte; 64]);
        let layers: Vec<_> = reads[0].bytes().unwrap().chunks(64).map(|layer| layer.to_vec()).collect();
        assert_eq!(layers, expected, "{profile}");
        // The simulated GPU does not render to slices. It only tracks discarded contents.
        assert_eq!(reads[1].bytes().unwrap()[..64], expected[0], "{profile}");
        // Attaching the same layer twice is an error.
        for image in targets {
            let mut list = frames.list(frames.queue(0)).unwrap();
            let third = Attachment { layer: 3, ..Attachment::clear(image) };
            let colors = [Some(third), Some(third)];
            let info = RenderingInfo::new(image.extent(0), &colors, None);
            let twice = unsafe { list.begin_rendering(&info) };
            assert!(matches!(twice, Err(ListError::Use(UseError::Twice { .. }))), "{twice:?}");
            let mut list = frames.list(frames.queue(0)).unwrap();
            let colors = [Some(Attachment { layer: 4, ..third })];
            let info = RenderingInfo::new(image.extent(0), &colors, None);
            let beyond = unsafe { list.begin_rendering(&info) };
            assert!(matches!(beyond, Err(ListError::OutOfRange { what: "layers", .. })), "{beyond:?}");
        }
    }
}

#[test]
fn empty_commands_record_nothing() {
    let mut fixture = FrameFixture::new("lavapipe", 1);
    let image = fixture.image(&image_info(vk::Format::R8G8B8A8_UNORM, (4, 4), 1, 1));
    let (buffer, drawn) = (fixture.buffer(64), image_info(vk::Format::R8G8B8A8_UNORM, (4, 4), 1, 1));
    let drawn = fixture.image(&drawn.usage(drawn.usage | vk::ImageUsageFlags::COLOR_ATTACHMENT));
    let frames = fixture.frames();
    let mut list = frames.list(frames.queue(0)).unwrap();
    for offset in [0, 64] {
        list.upload(&buffer, offset, &[]).unwrap();
        list.update_buffer(&buffer, offset, &[]).unwrap();
        list.fill_buffer(&buffer, offset..offset, 0).unwrap();
    }
    list.upload_image(&image, &[]).unwrap();
    list.copy_buffer(&buffer, &buffer, &[]).unwrap();
    unsafe { list.copy_image(&image, &image, &[]) }.unwrap();
    unsafe { list.copy_buffer_to_image(&buffer, &image, &[]) }.unwrap();
    unsafe { list.copy_image_to_buffer(&image, &buffer, &[]) }.unwrap();
    unsafe { list.blit_image(&image, &image, &[], vk::Filter::NEAREST) }.unwrap();
    unsafe { list.resolve_image(&image, &image, &[]) }.unwrap();
    let colors = [Some(Attachment::clear(&drawn))];
    unsafe { list.begin_rendering(&RenderingInfo::new(drawn.extent(0), &colors, None)) }.unwrap();
    unsafe { list.draw_indirect(&buffer, 64, 0, 0) }.unwrap();
    unsafe { list.draw_indexed_indirect(&buffer, 64, 0, 0) }.unwrap();
    list.end_rendering().unwrap();
    // Ranges beyond the end are still errors, and so is an empty read.
    let out_of_range = |done: Result<(), ListError>| matches!(done, Err(ListError::OutOfRange { .. }));
    assert!(out_of_range(list.upload(&buffer, 65, &[])));
    assert!(out_of_range(list.update_buffer(&buffer, 68, &[])));
    assert!(out_of_range(list.fill_buffer(&buffer, 68..68, 0)));
    assert!(out_of_range(list.read_buffer(&buffer, 8..8).map(drop)));
    frames.submit(frames.queue(0), [list]).unwrap();
    frames.wait_idle().unwrap();
    let gpu = &fixture.gpu;
    for call in [
        "vkCmdCopyBuffer",
        "vkCmdUpdateBuffer",
        "vkCmdFillBuffer",
        "vkCmdCopyImage",
        "vkCmdCopyBufferToImage",
        "vkCmdCopyImageToBuffer",
        "vkCmdBlitImage",
        "vkCmdResolveImage",
        "vkCmdDrawIndirect",
        "vkCmdDrawIndexedIndirect",
    ] {
        assert_eq!(gpu.calls(call), 0, "{call}");
    }
}

/// Transfers, dispatches and nested rendering are errors within rendering.
#[test]
fn transfers_within_rendering_are_errors() {
    let mut fixture = FrameFixture::new("lavapipe", 1);
    let buffer = fixture.buffer(256);
    let info = image_info(vk::Format::R8G8B8A8_UNORM, (4, 4), 2, 1);
    let image = fixture.image(&info.usage(info.usage | vk::ImageUsageFlags::COLOR_ATTACHMENT));
    let depth = fixture.image(&image_info(vk::Format::D16_UNORM, (4, 4), 1, 1));
    let frames = fixture.frames();
    let mut list = frames.list(frames.queue(0)).unwrap();
    let colors = [Some(Attachment::clear(&image))];
    let info = RenderingInfo::new(image.extent(0), &colors, None);
    unsafe { list.begin_rendering(&info) }.unwrap();
    let layers = vk::ImageSubresourceLayers { aspect_mask: COLOR, layer_count: 1, ..Default::default() };
    let (copy, texel) = (vk::BufferCopy::default().size(4), image.extent(1));
    let corners = [vk::Offset3D::default(), vk::Offset3D { x: 1, y: 1, z: 1 }];
    let of_images = vk::ImageCopy {
        src_subresource: layers,
        dst_subresource: layers,
        extent: texel,
        ..Default::default()
    };
    let of_buffers =
        vk::BufferImageCopy { image_subresource: layers, image_extent: texel, ..Default::default() };
    let blit = vk::ImageBlit {
        src_subresource: layers,
        src_offsets: corners,
        dst_subresource: layers,
        dst_offsets: corners,
    };
    let resolve = vk::ImageResolve {
        src_subresource: layers,
        dst_subresource: layers,
        extent: texel,
        ..Default::default()
    };
    let (all, black, far) =
        (Subresources::ALL, vk::ClearColorValue::default(), vk::ClearDepthStencilValue::default());
    let refused = |done: Result<(), ListError>| assert_eq!(done, Err(ListError::InsideRendering));
    refused(list.fill_buffer(&buffer, 0..4, 0));
    refused(list.update_buffer(&buffer, 0, &[0; 4]));
    refused(list.upload(&buffer, 0, &[0; 4]));
    refused(list.copy_buffer(&buffer, &buffer, &[copy.dst_offset(64)]));
    refused(list.read_buffer(&buffer, 0..4).map(drop));
    refused(list.upload_image(&image, &[ImageData::new(1, 0, &[0; 16])]));
    refused(list.read_image(&image, 1, 0..1, COLOR).map(drop));
    refused(list.generate_mips(&image));
    refused(unsafe { list.copy_image(&image, &image, &[of_images]) });
    refused(unsafe { list.copy_buffer_to_image(&buffer, &image, &[of_buffers]) });
    refused(unsafe { list.copy_image_to_buffer(&image, &buffer, &[of_buffers]) });
    refused(unsafe { list.blit_image(&image, &image, &[blit], vk::Filter::NEAREST) });
    refused(unsafe { list.resolve_image(&image, &image, &[resolve]) });
    refused(unsafe { list.clear_color(&image, &all, black) });
    refused(unsafe { list.clear_depth_stencil(&depth, &all, far) });
    refused(unsafe { list.dispatch([1, 1, 1]) });
    refused(unsafe { list.dispatch_indirect(&buffer, 0) });
    refused(unsafe { list.begin_rendering(&info) });
    list.end_rendering().unwrap();
    frames.submit(frames.queue(0), [list]).unwrap();
    frames.wait_idle().unwrap();
}

/// Each clear accepts only its own aspects. `tests/layer` covers the values.
#[test]
fn clears_accept_only_aspects_of_the_image() {
    let (depth, stencil) = (vk::ImageAspectFlags::DEPTH, vk::ImageAspectFlags::STENCIL);
    let mut fixture = FrameFixture::new("lavapipe", 1);
    let color = fixture.image(&image_info(vk::Format::R8G8B8A8_UNORM, (4, 4), 1, 1));
    let both = fixture.image(&image_info(vk::Format::D32_SFLOAT_S8_UINT, (4, 4), 1, 1));
    let frames = fixture.frames();
    let mut list = frames.list(frames.queue(0)).unwrap();
    let black = vk::ClearColorValue::default();
    let value = |depth, stencil| vk::ClearDepthStencilValue { depth, stencil };
    let all = Subresources::ALL;
    let format =
        |image: &sublet_frame::Image, aspect| Err(ListError::Format { format: image.format(), aspect });
    for (part, aspect) in [(all.clone(), COLOR), (all.clone().aspects(depth), vk::ImageAspectFlags::empty())]
    {
        let cleared = unsafe { list.clear_color(&both, &part, black) };
        assert_eq!(cleared, format(&both, aspect));
    }
    let cleared = unsafe { list.clear_color(&color, &all.clone().aspects(depth), black) };
    assert_eq!(cleared, format(&color, vk::ImageAspectFlags::empty()));
    let cleared = unsafe { list.clear_depth_stencil(&color, &all, value(0.0, 0)) };
    assert_eq!(cleared, format(&color, depth | stencil));
    let cleared = unsafe { list.clear_depth_stencil(&both, &all.clone().aspects(COLOR), value(0.0, 0)) };
    assert_eq!(cleared, format(&both, vk::ImageAspectFlags::empty()));
    frames.submit(frames.queue(0), [list]).unwrap();
    frames.wait_idle().unwrap();
}

/// An image that never moves has an accessible allocation; a movable one has none.
#[test]
fn immovable_images_have_an_allocation() {
    let mut fixture = FrameFixture::new("lavapipe", 1);
    let info = image_info(vk::Format::R8G8B8A8_UNORM, (4, 4), 1, 1);
    let movable = fixture.image(&info);
    let fixed = fixture.image(&info.usage(vk::ImageUsageFlags::TRANSFER_DST));
    let frames = fixture.frames();
    let foreign = unsafe { frames.import_image(fixed.handle(), &info) };
    assert!(movable.is_movable() && movable.allocation().is_none());
    assert!(!fixed.is_movable() && foreign.allocation().is_none());
    let (allocation, place) = (fixed.allocation().unwrap(), fixed.memory_range().unwrap());
    assert_eq!((allocation.memory(), allocation.offset()), (place.memory, place.offset));
}
