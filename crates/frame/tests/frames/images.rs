//! Texels of every kind go there and come back.

use ash::vk;
use sublet_frame::track::Subresources;
use sublet_frame::{Attachment, ImageData, ListError, Pitch, RenderingInfo, Resolve, format_layout};

use crate::bench::{Bench, PROFILES, image_info};

const COLOR: vk::ImageAspectFlags = vk::ImageAspectFlags::COLOR;

/// Bytes that are of this place and no other.
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
        let mut bench = Bench::new(profile, 1);
        let (size, mips, layers) = ((20, 12), 5, 3);
        let image = bench.image(&image_info(format, size, mips, layers));
        let mut parts = Vec::new();
        for mip in 0..mips {
            for layer in 0..layers {
                let extent = image.extent(mip);
                let rows = layout.blocks(extent.width, extent.height).1;
                let count = layout.row_bytes(extent.width) * u64::from(rows);
                parts.push((mip, layer, bytes(u64::from(mip * 8 + layer), count)));
            }
        }
        let frames = bench.frames();
        frames.begin().unwrap();
        let queue = frames.queue(0);
        let mut list = frames.list(queue).unwrap();
        let data: Vec<_> =
            parts.iter().map(|(mip, layer, bytes)| ImageData::new(*mip, *layer, bytes)).collect();
        let before = frames.statistics().barrier_calls;
        list.upload_image(&image, &data).unwrap();
        assert_eq!(frames.statistics().barrier_calls, before, "it comes in front, at submission");
        let reads: Vec<_> =
            (0..mips).map(|mip| list.read_image(&image, mip, 0..layers, COLOR).unwrap()).collect();
        let ticket = frames.submit(queue, [list]).unwrap();
        frames.end();
        frames.wait(ticket).unwrap();
        for (mip, read) in (0..).zip(&reads) {
            let expected: Vec<u8> =
                parts.iter().filter(|part| part.0 == mip).flat_map(|part| part.2.clone()).collect();
            assert_eq!(read.bytes().unwrap(), expected, "{profile}, {format:?}, mip {mip}");
        }
        drop((reads, image));
        bench.finish();
    }
}

#[test]
fn rows_with_gaps_and_rectangles() {
    let mut bench = Bench::new("lavapipe", 1);
    let image = bench.image(&image_info(vk::Format::R8G8B8A8_UNORM, (8, 8), 1, 2));
    let source = bytes(1, 1000);
    let frames = bench.frames();
    frames.begin().unwrap();
    let queue = frames.queue(0);
    let mut list = frames.list(queue).unwrap();
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
    drop((list, read, image));
    bench.finish();
}

#[test]
fn blits_make_mips() {
    for profile in PROFILES {
        let mut bench = Bench::new(profile, 1);
        let image = bench.image(&image_info(vk::Format::R8_UNORM, (4, 4), 3, 1));
        let frames = bench.frames();
        frames.begin().unwrap();
        let queue = frames.queue(0);
        let mut list = frames.list(queue).unwrap();
        let texels = [0, 40, 200, 200, 80, 120, 200, 200, 10, 10, 0, 0, 10, 10, 0, 100];
        list.upload_image(&image, &[ImageData::new(0, 0, &texels)]).unwrap();
        let before = frames.statistics().barrier_calls;
        list.generate_mips(&image).unwrap();
        assert_eq!(frames.statistics().barrier_calls, before + 2, "one for each mip");
        let reads = [1, 2].map(|mip| list.read_image(&image, mip, 0..1, COLOR).unwrap());
        let ticket = frames.submit(queue, [list]).unwrap();
        frames.end();
        frames.wait(ticket).unwrap();
        let mips = reads.map(|read| read.bytes().unwrap().to_vec());
        assert_eq!(mips, [vec![60, 200, 10, 25], vec![74]], "{profile}");
        drop(image);
        bench.finish();
    }
}

#[test]
fn a_shader_makes_mips_where_blits_are_not_allowed() {
    let mut bench = Bench::new("lavapipe", 1);
    // Which texels it takes is the test's own: here each mip has every other texel of the one before.
    bench.gpu.set_kernel("sublet_mips", |kernel| {
        let (from, to) = (kernel.texels(0, 0, 0), kernel.texels(0, 1, 0));
        let [width, height, _] = to.extent(0);
        for (layer, y) in (0..kernel.groups()[2]).flat_map(|layer| (0..height).map(move |y| (layer, y))) {
            for x in 0..width {
                to.write(0, layer, [x, y, 0], &from.read(0, layer, [2 * x, 2 * y, 0]));
            }
        }
    });
    let usage = vk::ImageUsageFlags::SAMPLED | vk::ImageUsageFlags::STORAGE;
    // It cannot be filtered there.
    let info = image_info(vk::Format::R16G16B16A16_SFLOAT, (20, 12), 4, 2);
    let image = bench.image(&info.usage(info.usage | usage));
    let neither = bench.image(&info.usage(vk::ImageUsageFlags::SAMPLED));
    let texels = [bytes(1, 1920), bytes(2, 1920)];
    let frames = bench.frames();
    for _ in 0..3 {
        frames.begin().unwrap();
        let queue = frames.queue(0);
        let mut list = frames.list(queue).unwrap();
        let data = [ImageData::new(0, 0, &texels[0]), ImageData::new(0, 1, &texels[1])];
        list.upload_image(&image, &data).unwrap();
        let before = frames.statistics().barrier_calls;
        list.generate_mips(&image).unwrap();
        assert_eq!(frames.statistics().barrier_calls, before + 3, "one for each mip");
        assert!(list.generate_mips(&neither).is_err());
        let read = list.read_image(&image, 2, 1..2, COLOR).unwrap();
        let ticket = frames.submit(queue, [list]).unwrap();
        frames.end();
        frames.wait(ticket).unwrap();
        let fourth = |row: usize, column: usize| &texels[1][(row * 20 + column) * 8..][..8];
        let rows = (0..3).flat_map(|row| (0..5).map(move |column| (4 * row, 4 * column)));
        let expected: Vec<u8> = rows.flat_map(|(row, column)| fourth(row, column).to_vec()).collect();
        assert_eq!(read.bytes().unwrap(), expected);
    }
    frames.wait_idle().unwrap();
    assert_eq!(bench.gpu.calls("vkCreateComputePipelines"), 1);
    drop((image, neither));
    bench.finish();
}

#[test]
fn blocks_are_not_cut() {
    let mut bench = Bench::new("nvidia-rtx-5070-ti", 1);
    let image = bench.image(&image_info(vk::Format::BC1_RGBA_UNORM_BLOCK, (10, 10), 1, 1));
    let source = bytes(2, 1000);
    let frames = bench.frames();
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
    drop((list, image));
    bench.finish();
}

/// Each view is a layer, with dynamic rendering and in render passes.
#[test]
fn views_are_layers() {
    let mut passes = 0;
    for profile in PROFILES {
        let mut bench = Bench::new(profile, 1);
        let info = image_info(vk::Format::R8G8B8A8_UNORM, (4, 4), 1, 4);
        let image = bench.image(&info.usage(info.usage | vk::ImageUsageFlags::COLOR_ATTACHMENT));
        let frames = bench.frames();
        frames.begin().unwrap();
        let mut list = frames.list(frames.queue(0)).unwrap();
        let grey = vk::ClearColorValue { float32: [0.2; 4] };
        unsafe { list.clear_color(&image, &Subresources::ALL, grey) }.unwrap();
        let white = vk::ClearValue { color: vk::ClearColorValue { float32: [1.0; 4] } };
        // From the second layer on: the first view and the third.
        let colors = [Some(Attachment::clear(&image).layer(1).clear_value(white))];
        let info = RenderingInfo::new(image.extent(0), &colors, None).view_mask(0b101);
        unsafe { list.begin_rendering(&info) }.unwrap();
        list.end_rendering().unwrap();
        let read = list.read_image(&image, 0, 0..4, vk::ImageAspectFlags::COLOR).unwrap();
        frames.submit(frames.queue(0), [list]).unwrap();
        frames.end();
        frames.wait(&read).unwrap();
        let layers: Vec<_> = read.bytes().unwrap().chunks(64).map(|layer| layer.to_vec()).collect();
        let expected = [51, 255, 51, 255].map(|byte| vec![byte; 64]);
        assert_eq!(layers, expected, "{profile}");
        passes += bench.gpu.live().render_passes;
        drop((read, image));
        bench.finish();
    }
    assert_eq!(passes, 2, "two of them have no dynamic rendering");
}

#[test]
fn colors_are_resolved_as_their_format_wants_it_to_any_mip_and_layer() {
    for profile in PROFILES {
        let mut bench = Bench::new(profile, 1);
        let format = vk::Format::R8G8B8A8_UINT;
        let made = |bench: &mut Bench, mips, layers, samples| {
            let info = image_info(format, (4, 4), mips, layers).samples(samples);
            bench.image(&info.usage(info.usage | vk::ImageUsageFlags::COLOR_ATTACHMENT))
        };
        let samples = made(&mut bench, 1, 1, vk::SampleCountFlags::TYPE_4);
        let single = made(&mut bench, 2, 3, vk::SampleCountFlags::TYPE_1);
        let frames = bench.frames();
        frames.begin().unwrap();
        let mut list = frames.list(frames.queue(0)).unwrap();
        let none = vk::ClearColorValue { uint32: [1; 4] };
        unsafe { list.clear_color(&single, &Subresources::ALL, none) }.unwrap();
        let seven = vk::ClearValue { color: vk::ClearColorValue { uint32: [7; 4] } };
        let to = Resolve::new(&single).mip(1).layer(2);
        let wrong = to.mode(vk::ResolveModeFlags::AVERAGE);
        for (to, expected) in [(wrong, false), (to, true)] {
            let colors = [Some(Attachment::clear(&samples).clear_value(seven).resolve(to))];
            let info = RenderingInfo::new(single.extent(1), &colors, None);
            let begun = unsafe { list.begin_rendering(&info) };
            assert_eq!(begun.is_ok(), expected, "{begun:?}");
        }
        list.end_rendering().unwrap();
        let read = list.read_image(&single, 1, 0..3, vk::ImageAspectFlags::COLOR).unwrap();
        frames.submit(frames.queue(0), [list]).unwrap();
        frames.end();
        frames.wait(&read).unwrap();
        assert_eq!(read.bytes().unwrap(), [[1; 16], [1; 16], [7; 16]].concat(), "{profile}");
        drop((read, samples, single));
        bench.finish();
    }
}
