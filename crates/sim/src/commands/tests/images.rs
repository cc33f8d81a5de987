//! Layouts of images, and what copies and clears do to texels.
#![expect(unsafe_code, reason = "tests call Vulkan")]

use ash::vk;
use ash::vk::Format as F;
use ash::vk::ImageAspectFlags as A;

use super::fixture::{CommandFixture, DST, SRC, all_of, noise};
use crate::facts::profiles::{ALL, Profile};

const BOTH: vk::ImageUsageFlags = vk::ImageUsageFlags::from_raw(
    vk::ImageUsageFlags::TRANSFER_SRC.as_raw() | vk::ImageUsageFlags::TRANSFER_DST.as_raw(),
);
pub(super) const GENERAL: vk::ImageLayout = vk::ImageLayout::GENERAL;

pub(super) fn info(format: F, width: u32, height: u32) -> vk::ImageCreateInfo<'static> {
    vk::ImageCreateInfo::default()
        .image_type(vk::ImageType::TYPE_2D)
        .format(format)
        .extent(vk::Extent3D { width, height, depth: 1 })
        .mip_levels(1)
        .array_layers(1)
        .samples(vk::SampleCountFlags::TYPE_1)
        .usage(BOTH)
}

pub(super) fn layers(
    aspect_mask: A,
    mip_level: u32,
    base_array_layer: u32,
    layer_count: u32,
) -> vk::ImageSubresourceLayers {
    vk::ImageSubresourceLayers { aspect_mask, mip_level, base_array_layer, layer_count }
}

pub(super) fn whole(width: u32, height: u32) -> vk::BufferImageCopy {
    vk::BufferImageCopy::default().image_subresource(layers(A::COLOR, 0, 0, 1)).image_extent(vk::Extent3D {
        width,
        height,
        depth: 1,
    })
}

/// The aspects that a copy with a buffer may name, and the bytes of a texel block of each in the buffer.
fn aspects(format: F) -> Vec<(A, u64)> {
    match format {
        F::D16_UNORM => vec![(A::DEPTH, 2)],
        F::D32_SFLOAT => vec![(A::DEPTH, 4)],
        F::S8_UINT => vec![(A::STENCIL, 1)],
        F::D24_UNORM_S8_UINT | F::D32_SFLOAT_S8_UINT => vec![(A::DEPTH, 4), (A::STENCIL, 1)],
        F::R8_UNORM => vec![(A::COLOR, 1)],
        F::R8G8B8_UNORM => vec![(A::COLOR, 3)],
        F::R8G8B8A8_UNORM => vec![(A::COLOR, 4)],
        F::R16G16B16A16_SFLOAT | F::BC1_RGB_UNORM_BLOCK => vec![(A::COLOR, 8)],
        F::BC7_UNORM_BLOCK | F::ASTC_5X4_UNORM_BLOCK => vec![(A::COLOR, 16)],
        other => panic!("format {}", other.as_raw()),
    }
}

fn block(format: F) -> (u32, u32) {
    match format {
        F::BC1_RGB_UNORM_BLOCK | F::BC7_UNORM_BLOCK => (4, 4),
        F::ASTC_5X4_UNORM_BLOCK => (5, 4),
        _ => (1, 1),
    }
}

/// Uploads every level and layer of an image, then downloads them, through one buffer each.
fn round_trip(profile: &'static Profile, info: &vk::ImageCreateInfo<'_>) {
    let fixture = CommandFixture::new(profile);
    let image = fixture.image(info);
    let block = block(info.format);
    let mut regions = Vec::new();
    let mut end = 0_u64;
    // The fourth byte of 24-bit depth in a buffer is undefined. Here it is 0.
    let mut padding = Vec::new();
    for (aspect, bytes) in aspects(info.format) {
        for level in 0..info.mip_levels {
            let at = |size: u32| (size >> level).max(1);
            let extent = vk::Extent3D {
                width: at(info.extent.width),
                height: at(info.extent.height),
                depth: at(info.extent.depth),
            };
            end = end.next_multiple_of(48);
            regions.push(vk::BufferImageCopy {
                buffer_offset: end,
                buffer_row_length: 0,
                buffer_image_height: 0,
                image_subresource: layers(aspect, level, 0, info.array_layers),
                image_offset: vk::Offset3D::default(),
                image_extent: extent,
            });
            let blocks =
                u64::from(extent.width.div_ceil(block.0)) * u64::from(extent.height.div_ceil(block.1));
            let len = blocks * u64::from(extent.depth) * u64::from(info.array_layers) * bytes;
            if info.format == F::D24_UNORM_S8_UINT && aspect == A::DEPTH {
                padding.extend((end..end + len).skip(3).step_by(4));
            }
            end += len;
        }
    }
    let from = fixture.mapped(end, SRC);
    let to = fixture.mapped(end, DST);
    let mut bytes = noise(usize::try_from(end).unwrap(), u64::from(profile.device_id));
    for at in padding {
        bytes[usize::try_from(at).unwrap()] = 0;
    }
    from.write(0, &bytes);
    fixture.run(|device, commands| unsafe {
        fixture.to_layout(commands, image, GENERAL);
        device.cmd_copy_buffer_to_image(commands, from.buffer, image, GENERAL, &regions);
        device.cmd_copy_image_to_buffer(commands, image, GENERAL, to.buffer, &regions);
    });
    fixture.expect_silence();
    let back = to.read();
    for region in &regions {
        let start = usize::try_from(region.buffer_offset).unwrap();
        let same = back[start..].iter().zip(&bytes[start..]).take_while(|(a, b)| a == b).count();
        let len = regions
            .iter()
            .map(|region| usize::try_from(region.buffer_offset).unwrap())
            .find(|&next| next > start)
            .map_or(bytes.len() - start, |next| next - start);
        // Up to 47 bytes lie between the regions.
        assert!(same + 48 > len, "{}, format {}: {same} of {len}", profile.name, info.format.as_raw());
    }
    let differing = back.iter().zip(&bytes).filter(|(a, b)| a != b).count();
    assert!(differing < 48 * regions.len());
}

#[test]
fn every_level_and_layer_keeps_its_own_texels() {
    let formats = [
        F::R8_UNORM,
        F::R8G8B8_UNORM,
        F::R8G8B8A8_UNORM,
        F::R16G16B16A16_SFLOAT,
        F::BC1_RGB_UNORM_BLOCK,
        F::BC7_UNORM_BLOCK,
        F::ASTC_5X4_UNORM_BLOCK,
        F::D16_UNORM,
        F::D32_SFLOAT,
        F::S8_UINT,
        F::D24_UNORM_S8_UINT,
        F::D32_SFLOAT_S8_UINT,
    ];
    for profile in ALL {
        for format in formats {
            round_trip(profile, &info(format, 37, 21).mip_levels(6).array_layers(3));
        }
    }
}

#[test]
fn linear_images_and_volumes_do_too() {
    for profile in ALL {
        round_trip(profile, &info(F::R8G8B8A8_UNORM, 33, 9).tiling(vk::ImageTiling::LINEAR));
        let extent = vk::Extent3D { width: 17, height: 9, depth: 5 };
        let volume = info(F::R8_UNORM, 1, 1).image_type(vk::ImageType::TYPE_3D).extent(extent).mip_levels(5);
        round_trip(profile, &volume);
    }
}

#[test]
fn a_part_of_an_image_is_copied_from_padded_rows() {
    let fixture = CommandFixture::simple();
    let image = fixture.image(&info(F::R8_UNORM, 8, 8).array_layers(2));
    let from = fixture.mapped(256, SRC);
    let to = fixture.mapped(128, DST);
    from.write(0, &noise(256, 7));
    let part = vk::BufferImageCopy {
        buffer_offset: 3,
        buffer_row_length: 10,
        buffer_image_height: 7,
        image_subresource: layers(A::COLOR, 0, 0, 2),
        image_offset: vk::Offset3D { x: 2, y: 1, z: 0 },
        image_extent: vk::Extent3D { width: 5, height: 4, depth: 1 },
    };
    let all = whole(8, 8).image_subresource(layers(A::COLOR, 0, 0, 2));
    fixture.run(|device, commands| unsafe {
        fixture.to_layout(commands, image, GENERAL);
        device.cmd_clear_color_image(
            commands,
            image,
            GENERAL,
            &vk::ClearColorValue { float32: [1.0; 4] },
            &[all_of(A::COLOR)],
        );
        device.cmd_copy_buffer_to_image(commands, from.buffer, image, GENERAL, &[part]);
        device.cmd_copy_image_to_buffer(commands, image, GENERAL, to.buffer, &[all]);
    });
    fixture.expect_silence();
    let source = noise(256, 7);
    let back = to.read();
    for layer in 0..2 {
        for y in 0..8 {
            for x in 0..8 {
                let inside = (2..7).contains(&x) && (1..5).contains(&y);
                let expected = if inside { source[3 + layer * 70 + (y - 1) * 10 + x - 2] } else { 255 };
                assert_eq!(back[layer * 64 + y * 8 + x], expected, "layer {layer}, {x}, {y}");
            }
        }
    }
}

#[test]
fn the_texels_of_a_linear_image_are_where_its_layout_says() {
    for profile in ALL {
        let visible = vk::MemoryPropertyFlags::HOST_VISIBLE | vk::MemoryPropertyFlags::HOST_COHERENT;
        let fixture = CommandFixture::new(profile);
        let create = info(F::R8G8_UNORM, 7, 3).tiling(vk::ImageTiling::LINEAR);
        let image = fixture.bare_image(&create);
        let device = fixture.device().clone();
        let needs = unsafe { device.get_image_memory_requirements(image) };
        let kind = profile.types.iter().enumerate().position(|(index, kind)| {
            needs.memory_type_bits & 1 << index != 0 && kind.flags.contains(visible)
        });
        // A device whose linear images the host does not see.
        let Some(kind) = kind else { continue };
        let allocate = vk::MemoryAllocateInfo::default()
            .allocation_size(needs.size)
            .memory_type_index(u32::try_from(kind).unwrap());
        let memory = unsafe { device.allocate_memory(&allocate, None) }.unwrap();
        unsafe { device.bind_image_memory(image, memory, 0) }.unwrap();
        let from = fixture.mapped(42, SRC);
        from.write(0, &noise(42, 11));
        fixture.run(|device, commands| unsafe {
            fixture.to_layout(commands, image, GENERAL);
            device.cmd_copy_buffer_to_image(commands, from.buffer, image, GENERAL, &[whole(7, 3)]);
        });
        let subresource = vk::ImageSubresource { aspect_mask: A::COLOR, mip_level: 0, array_layer: 0 };
        let layout = unsafe { device.get_image_subresource_layout(image, subresource) };
        let pointer = unsafe { device.map_memory(memory, 0, vk::WHOLE_SIZE, vk::MemoryMapFlags::empty()) };
        let pointer = pointer.unwrap().cast::<u8>();
        for y in 0..3 {
            let start = layout.offset + layout.row_pitch * y;
            let row = unsafe { pointer.add(usize::try_from(start).unwrap()) };
            let row = unsafe { std::slice::from_raw_parts(row, 14) };
            let y = usize::try_from(y).unwrap();
            assert_eq!(row, &noise(42, 11)[y * 14..y * 14 + 14], "{}", profile.name);
        }
        fixture.expect_silence();
        unsafe { device.unmap_memory(memory) };
    }
}

#[test]
fn an_image_is_copied_to_another_tiling_and_place() {
    for profile in ALL {
        let fixture = CommandFixture::new(profile);
        let first = fixture.image(&info(F::R8G8B8A8_UNORM, 20, 10).array_layers(2));
        let second = fixture.image(&info(F::R32_UINT, 30, 30).tiling(vk::ImageTiling::LINEAR));
        let from = fixture.mapped(1600, SRC);
        let to = fixture.mapped(3600, DST);
        from.write(0, &noise(1600, 13));
        let region = vk::ImageCopy {
            src_subresource: layers(A::COLOR, 0, 1, 1),
            src_offset: vk::Offset3D { x: 3, y: 2, z: 0 },
            dst_subresource: layers(A::COLOR, 0, 0, 1),
            dst_offset: vk::Offset3D { x: 11, y: 20, z: 0 },
            extent: vk::Extent3D { width: 9, height: 7, depth: 1 },
        };
        fixture.run(|device, commands| unsafe {
            fixture.to_layout(commands, first, vk::ImageLayout::TRANSFER_DST_OPTIMAL);
            fixture.to_layout(commands, second, GENERAL);
            let upload = whole(20, 10).image_subresource(layers(A::COLOR, 0, 0, 2));
            let layout = vk::ImageLayout::TRANSFER_DST_OPTIMAL;
            device.cmd_copy_buffer_to_image(commands, from.buffer, first, layout, &[upload]);
            let layout = vk::ImageLayout::TRANSFER_SRC_OPTIMAL;
            fixture.change_layout(commands, first, vk::ImageLayout::TRANSFER_DST_OPTIMAL, layout);
            device.cmd_copy_image(commands, first, layout, second, GENERAL, &[region]);
            device.cmd_copy_image_to_buffer(commands, second, GENERAL, to.buffer, &[whole(30, 30)]);
        });
        fixture.expect_silence();
        let (source, back) = (noise(1600, 13), to.read());
        for y in 0..30 {
            for x in 0..30 {
                let inside = (11..20).contains(&x) && (20..27).contains(&y);
                let expected = if inside {
                    let at = (200 + (y - 18) * 20 + x - 8) * 4;
                    source[at..at + 4].to_vec()
                } else {
                    vec![0; 4]
                };
                assert_eq!(back[(y * 30 + x) * 4..][..4], expected, "{}: {x}, {y}", profile.name);
            }
        }
    }
}

#[test]
fn blocks_become_texels_and_slices_layers() {
    let fixture = CommandFixture::simple();
    // 3 by 2 blocks of 8 bytes.
    let blocks = fixture.image(&info(F::BC1_RGB_UNORM_BLOCK, 10, 7));
    let texels = fixture.image(&info(F::R32G32_UINT, 3, 2));
    let from = fixture.mapped(48, SRC);
    let to = fixture.mapped(48, DST);
    from.write(0, &noise(48, 17));
    let region = vk::ImageCopy {
        src_subresource: layers(A::COLOR, 0, 0, 1),
        dst_subresource: layers(A::COLOR, 0, 0, 1),
        extent: vk::Extent3D { width: 10, height: 7, depth: 1 },
        ..Default::default()
    };
    fixture.run(|device, commands| unsafe {
        fixture.to_layout(commands, blocks, GENERAL);
        fixture.to_layout(commands, texels, GENERAL);
        device.cmd_copy_buffer_to_image(commands, from.buffer, blocks, GENERAL, &[whole(10, 7)]);
        device.cmd_copy_image(commands, blocks, GENERAL, texels, GENERAL, &[region]);
        device.cmd_copy_image_to_buffer(commands, texels, GENERAL, to.buffer, &[whole(3, 2)]);
    });
    fixture.expect_silence();
    assert_eq!(to.read(), noise(48, 17));

    let extent = vk::Extent3D { width: 2, height: 2, depth: 3 };
    let volume = fixture.image(&info(F::R32_UINT, 1, 1).image_type(vk::ImageType::TYPE_3D).extent(extent));
    let array = fixture.image(&info(F::R32_UINT, 2, 2).array_layers(3));
    let region = vk::ImageCopy {
        src_subresource: layers(A::COLOR, 0, 0, 3),
        dst_subresource: layers(A::COLOR, 0, 0, 1),
        extent,
        ..Default::default()
    };
    fixture.run(|device, commands| unsafe {
        fixture.to_layout(commands, volume, GENERAL);
        fixture.to_layout(commands, array, GENERAL);
        let upload = whole(2, 2).image_subresource(layers(A::COLOR, 0, 0, 3));
        device.cmd_copy_buffer_to_image(commands, from.buffer, array, GENERAL, &[upload]);
        device.cmd_copy_image(commands, array, GENERAL, volume, GENERAL, &[region]);
        let download = whole(2, 2).image_extent(extent);
        device.cmd_copy_image_to_buffer(commands, volume, GENERAL, to.buffer, &[download]);
    });
    fixture.expect_silence();
    assert_eq!(to.read(), noise(48, 17));
}

#[test]
fn depth_and_stencil_are_copied_apart_and_together() {
    let fixture = CommandFixture::simple();
    let first = fixture.image(&info(F::D32_SFLOAT_S8_UINT, 4, 4));
    let second = fixture.image(&info(F::D32_SFLOAT_S8_UINT, 4, 4));
    let from = fixture.mapped(80, SRC);
    let to = fixture.mapped(80, DST);
    from.write(0, &noise(80, 19));
    let depth = whole(4, 4).image_subresource(layers(A::DEPTH, 0, 0, 1));
    let stencil = whole(4, 4).image_subresource(layers(A::STENCIL, 0, 0, 1)).buffer_offset(64);
    let copy = |aspects: A| vk::ImageCopy {
        src_subresource: layers(aspects, 0, 0, 1),
        dst_subresource: layers(aspects, 0, 0, 1),
        extent: vk::Extent3D { width: 4, height: 4, depth: 1 },
        ..Default::default()
    };
    for (aspects, len) in [(A::DEPTH, 64), (A::DEPTH | A::STENCIL, 80)] {
        fixture.run(|device, commands| unsafe {
            fixture.to_layout(commands, first, GENERAL);
            fixture.to_layout(commands, second, GENERAL);
            device.cmd_copy_buffer_to_image(commands, from.buffer, first, GENERAL, &[depth, stencil]);
            device.cmd_copy_image(commands, first, GENERAL, second, GENERAL, &[copy(aspects)]);
            device.cmd_copy_image_to_buffer(commands, second, GENERAL, to.buffer, &[depth, stencil]);
        });
        fixture.expect_silence();
        let mut expected = noise(80, 19);
        expected[len..].fill(0);
        assert_eq!(to.read(), expected);
    }
}

#[test]
fn neighbours_in_one_memory_keep_their_own_bytes() {
    let fixture = CommandFixture::simple();
    let create = info(F::R8_UNORM, 8, 8);
    let images = [fixture.bare_image(&create), fixture.bare_image(&create)];
    let buffers = [fixture.bare(64, SRC | DST), fixture.bare(64, SRC | DST)];
    let arena = fixture.arena(16384);
    for (index, &image) in (0..).zip(&images) {
        unsafe { fixture.device().bind_image_memory(image, arena, 4096 * index) }.unwrap();
    }
    for (index, &buffer) in (2..).zip(&buffers) {
        unsafe { fixture.device().bind_buffer_memory(buffer, arena, 4096 * index) }.unwrap();
    }
    let (from, to) = (fixture.mapped(128, SRC), fixture.mapped(384, DST));
    from.write(0, &noise(128, 29));
    let bytes = |src_offset, dst_offset, size| vk::BufferCopy { src_offset, dst_offset, size };
    let plane = vk::ImageCopy {
        src_subresource: layers(A::COLOR, 0, 0, 1),
        dst_subresource: layers(A::COLOR, 0, 0, 1),
        extent: create.extent,
        ..Default::default()
    };
    fixture.run(|device, commands| unsafe {
        for image in images {
            fixture.to_layout(commands, image, GENERAL);
        }
        // The second of each, from it to the first, and the second again: nothing of one is in the other.
        let [first, second] = images;
        device.cmd_copy_buffer_to_image(commands, from.buffer, second, GENERAL, &[whole(8, 8)]);
        device.cmd_copy_image(commands, second, GENERAL, first, GENERAL, &[plane]);
        let upload = whole(8, 8).buffer_offset(64);
        device.cmd_copy_buffer_to_image(commands, from.buffer, second, GENERAL, &[upload]);
        device.cmd_copy_image_to_buffer(commands, first, GENERAL, to.buffer, &[whole(8, 8)]);
        let download = whole(8, 8).buffer_offset(64);
        device.cmd_copy_image_to_buffer(commands, second, GENERAL, to.buffer, &[download]);

        let [first, second] = buffers;
        device.cmd_copy_buffer(commands, from.buffer, second, &[bytes(0, 0, 64)]);
        device.cmd_copy_buffer(commands, second, first, &[bytes(0, 0, 64)]);
        device.cmd_copy_buffer(commands, from.buffer, second, &[bytes(64, 0, 64)]);
        device.cmd_copy_buffer(commands, first, to.buffer, &[bytes(0, 128, 64)]);
        device.cmd_copy_buffer(commands, second, to.buffer, &[bytes(0, 192, 64)]);

        device.cmd_fill_buffer(commands, second, 0, 64, 0x0101_0101);
        device.cmd_update_buffer(commands, first, 0, &[2; 64]);
        device.cmd_copy_buffer(commands, first, to.buffer, &[bytes(0, 256, 64)]);
        device.cmd_copy_buffer(commands, second, to.buffer, &[bytes(0, 320, 64)]);
    });
    fixture.expect_silence();
    let two = noise(128, 29);
    assert_eq!(to.read(), [&two[..], &two, &[2; 64], &[1; 64]].concat());
}

#[test]
fn several_samples_are_copied_all() {
    let fixture = CommandFixture::simple();
    let create = info(F::R8_UNORM, 6, 5).samples(vk::SampleCountFlags::TYPE_4);
    let (first, second) = (fixture.image(&create), fixture.image(&create));
    let region = vk::ImageCopy {
        src_subresource: layers(A::COLOR, 0, 0, 1),
        src_offset: vk::Offset3D { x: 1, y: 1, z: 0 },
        dst_subresource: layers(A::COLOR, 0, 0, 1),
        dst_offset: vk::Offset3D { x: 2, y: 1, z: 0 },
        extent: vk::Extent3D { width: 4, height: 4, depth: 1 },
    };
    fixture.run(|device, commands| unsafe {
        fixture.to_layout(commands, first, GENERAL);
        fixture.to_layout(commands, second, GENERAL);
        let color = vk::ClearColorValue { float32: [1.0; 4] };
        device.cmd_clear_color_image(commands, first, GENERAL, &color, &[all_of(A::COLOR)]);
        device.cmd_copy_image(commands, first, GENERAL, second, GENERAL, &[region]);
    });
    fixture.expect_silence();
    let state = crate::objects::registry::device(fixture.device().handle()).unwrap();
    let bytes = state.state.lock().image_bytes(second).unwrap();
    let size = unsafe { fixture.device().get_image_memory_requirements(second) }.size;
    let mut all = vec![0; usize::try_from(size).unwrap()];
    assert!(bytes.store.read(bytes.offset, &mut all));
    assert_eq!(all.iter().filter(|&&byte| byte == 255).count(), 4 * 4 * 4);
    // Four samples are two across and two down: the texels are 4 to 12 across and 2 to 10 down.
    let set: Vec<usize> = (0..all.len()).filter(|&at| all[at] == 255).collect();
    let rows: Vec<usize> = set.chunks(8).map(|row| row[0]).collect();
    let pitch = rows[1] - rows[0];
    let expected = (2..10).flat_map(|y| (4..12).map(move |x| y * pitch + x));
    assert_eq!(set, expected.collect::<Vec<_>>());
}

#[test]
fn a_clear_writes_the_texel_that_the_format_makes_of_the_color() {
    let float = vk::ClearColorValue { float32: [0.0, 0.5, 1.0, 2.0] };
    let uint = vk::ClearColorValue { uint32: [0x0102_0304, 5, 6, 7] };
    for (format, color, texel) in [
        (F::R8G8B8A8_UNORM, float, &[0, 128, 255, 255][..]),
        (F::B8G8R8A8_UNORM, float, &[255, 128, 0, 255]),
        (F::R8_UINT, uint, &[4]),
        (F::R16G16_UINT, uint, &[4, 3, 5, 0]),
        (F::R32_UINT, uint, &[4, 3, 2, 1]),
        (F::R32G32B32_UINT, uint, &[4, 3, 2, 1, 5, 0, 0, 0, 6, 0, 0, 0]),
        (F::R32G32_SFLOAT, float, &[0, 0, 0, 0, 0, 0, 0, 0x3f]),
    ] {
        let fixture = CommandFixture::simple();
        let image = fixture.image(&info(format, 5, 3).mip_levels(2).array_layers(2));
        let len = texel.len() * 15;
        let to = fixture.mapped(u64::try_from(len).unwrap(), DST);
        // The second layer of the first level, and no more.
        let range = vk::ImageSubresourceRange {
            aspect_mask: A::COLOR,
            base_mip_level: 0,
            level_count: 1,
            base_array_layer: 1,
            layer_count: 1,
        };
        for (layer, expected) in [(1, texel.repeat(15)), (0, vec![0; len])] {
            fixture.run(|device, commands| unsafe {
                fixture.to_layout(commands, image, GENERAL);
                device.cmd_clear_color_image(commands, image, GENERAL, &color, &[range]);
                let region = whole(5, 3).image_subresource(layers(A::COLOR, 0, layer, 1));
                device.cmd_copy_image_to_buffer(commands, image, GENERAL, to.buffer, &[region]);
            });
            fixture.expect_silence();
            assert_eq!(to.read(), expected);
        }
    }
}

#[test]
fn the_second_forms_do_the_same() {
    let fixture = CommandFixture::simple();
    let (first, second) = (fixture.image(&info(F::R32_UINT, 4, 4)), fixture.image(&info(F::R32_UINT, 4, 4)));
    let (from, to) = (fixture.mapped(64, SRC), fixture.mapped(64, DST));
    from.write(0, &noise(64, 23));
    let extent = vk::Extent3D { width: 4, height: 4, depth: 1 };
    let color = layers(A::COLOR, 0, 0, 1);
    let buffer = [vk::BufferImageCopy2::default().image_subresource(color).image_extent(extent)];
    let image = [vk::ImageCopy2::default().src_subresource(color).dst_subresource(color).extent(extent)];
    fixture.run(|device, commands| unsafe {
        let barrier = |image| {
            vk::ImageMemoryBarrier2::default()
                .image(image)
                .new_layout(GENERAL)
                .subresource_range(all_of(A::COLOR))
        };
        let barriers = [barrier(first), barrier(second)];
        device
            .cmd_pipeline_barrier2(commands, &vk::DependencyInfo::default().image_memory_barriers(&barriers));
        let upload = vk::CopyBufferToImageInfo2::default()
            .src_buffer(from.buffer)
            .dst_image(first)
            .dst_image_layout(GENERAL)
            .regions(&buffer);
        device.cmd_copy_buffer_to_image2(commands, &upload);
        let copy = vk::CopyImageInfo2::default()
            .src_image(first)
            .src_image_layout(GENERAL)
            .dst_image(second)
            .dst_image_layout(GENERAL)
            .regions(&image);
        device.cmd_copy_image2(commands, &copy);
        let download = vk::CopyImageToBufferInfo2::default()
            .src_image(second)
            .src_image_layout(GENERAL)
            .dst_buffer(to.buffer)
            .regions(&buffer);
        device.cmd_copy_image_to_buffer2(commands, &download);
    });
    fixture.expect_silence();
    assert_eq!(to.read(), noise(64, 23));
}
