//! Blits and resolves: what they do to texels, and what they refuse.
#![expect(unsafe_code, reason = "tests call Vulkan")]

use ash::vk;
use ash::vk::Format as F;
use ash::vk::ImageAspectFlags as A;

use super::fixture::{CommandFixture, DST, SRC};
use super::images::{GENERAL, info, layers, whole};

/// A region from all of one image to all of another.
fn region(from: (i32, i32), to: (i32, i32)) -> vk::ImageBlit {
    let corners = |(x, y)| [vk::Offset3D::default(), vk::Offset3D { x, y, z: 1 }];
    let layers = layers(A::COLOR, 0, 0, 1);
    vk::ImageBlit {
        src_subresource: layers,
        src_offsets: corners(from),
        dst_subresource: layers,
        dst_offsets: corners(to),
    }
}

/// The texels of an image of format `new` and size `to`, after a blit from one of `old` and `from` with `texels`.
fn blitted(
    (old, from, texels): (F, (u32, u32), &[u8]),
    (new, to): (F, (u32, u32)),
    filter: vk::Filter,
    change: impl FnOnce(&mut vk::ImageBlit),
) -> Vec<u8> {
    let fixture = CommandFixture::simple();
    let src = fixture.image(&info(old, from.0, from.1));
    let dst = fixture.image(&info(new, to.0, to.1));
    let up = fixture.mapped(64, SRC);
    let size = u64::from(to.0 * to.1) * u64::try_from(texels.len()).unwrap() / u64::from(from.0 * from.1);
    let down = fixture.mapped(size, DST);
    up.write(0, texels);
    let signed = |(x, y): (u32, u32)| (i32::try_from(x).unwrap(), i32::try_from(y).unwrap());
    let mut region = region(signed(from), signed(to));
    change(&mut region);
    fixture.run(|device, commands| unsafe {
        fixture.to_layout(commands, src, GENERAL);
        fixture.to_layout(commands, dst, GENERAL);
        device.cmd_copy_buffer_to_image(commands, up.buffer, src, GENERAL, &[whole(from.0, from.1)]);
        device.cmd_blit_image(commands, src, GENERAL, dst, GENERAL, &[region], filter);
        device.cmd_copy_image_to_buffer(commands, dst, GENERAL, down.buffer, &[whole(to.0, to.1)]);
    });
    fixture.expect_silence();
    down.read()
}

#[test]
fn a_blit_takes_the_nearest_texel() {
    let (line, texels) = ((F::R8_UNORM, (4, 1)), [1, 2, 3, 4]);
    let from = (line.0, line.1, &texels[..]);
    let nearest =
        |to, change: fn(&mut vk::ImageBlit)| blitted(from, (F::R8_UNORM, to), vk::Filter::NEAREST, change);
    assert_eq!(nearest((2, 1), |_| ()), [2, 4]);
    assert_eq!(nearest((8, 1), |_| ()), [1, 1, 2, 2, 3, 3, 4, 4]);
    assert_eq!(nearest((4, 1), |region| region.src_offsets.swap(0, 1)), [4, 3, 2, 1]);
    assert_eq!(nearest((4, 1), |region| region.dst_offsets.swap(0, 1)), [4, 3, 2, 1]);
    assert_eq!(nearest((4, 2), |_| ()), [1, 2, 3, 4, 1, 2, 3, 4]);
    // Of a part, and numbers.
    let part = |region: &mut vk::ImageBlit| {
        region.src_offsets[0].x = 1;
        region.src_offsets[1].x = 3;
    };
    let numbers = (F::R8_UINT, (4, 1), &texels[..]);
    assert_eq!(blitted(numbers, (F::R8_UINT, (4, 1)), vk::Filter::NEAREST, part), [2, 2, 3, 3]);
}

#[test]
fn a_linear_blit_mixes_by_distance() {
    let linear = |from, to| blitted(from, to, vk::Filter::LINEAR, |_| ());
    assert_eq!(linear((F::R8_UNORM, (2, 2), &[0, 100, 200, 60]), (F::R8_UNORM, (1, 1))), [90]);
    assert_eq!(linear((F::R8_UNORM, (2, 1), &[0, 255]), (F::R8_UNORM, (4, 1))), [0, 64, 191, 255]);
    // Light is mixed, not what stands for it.
    assert_eq!(linear((F::R8_SRGB, (2, 1), &[0, 255]), (F::R8_SRGB, (1, 1))), [188]);
}

#[test]
fn a_blit_converts() {
    let from = (F::R8G8B8A8_UNORM, (1, 1), &[255, 0, 128, 77][..]);
    let swapped = blitted(from, (F::B8G8R8A8_UNORM, (1, 1)), vk::Filter::NEAREST, |_| ());
    assert_eq!(swapped, [128, 0, 255, 77]);
    let encoded = blitted(from, (F::R8G8B8A8_SRGB, (1, 1)), vk::Filter::NEAREST, |_| ());
    assert_eq!(encoded, [255, 0, 188, 77]);
}

#[test]
fn a_resolve_is_the_average_of_the_samples() {
    for (format, resolved) in [(F::R8_UNORM, 20), (F::R8_UINT, 10)] {
        let fixture = CommandFixture::simple();
        let src = fixture.bare_image(&info(format, 1, 1).samples(vk::SampleCountFlags::TYPE_4));
        let needs = unsafe { fixture.device().get_image_memory_requirements(src) };
        let memory = fixture.arena(needs.size);
        unsafe { fixture.device().bind_image_memory(src, memory, 0) }.unwrap();
        // The same memory as bytes: of the samples, two lie beside each other, in two rows.
        let alias = fixture.bare(needs.size, DST);
        unsafe { fixture.device().bind_buffer_memory(alias, memory, 0) }.unwrap();
        fixture.expect("SUBLET-overlap");
        let dst = fixture.image(&info(format, 1, 1));
        let down = fixture.mapped(1, DST);
        let region = vk::ImageResolve {
            src_subresource: layers(A::COLOR, 0, 0, 1),
            dst_subresource: layers(A::COLOR, 0, 0, 1),
            extent: vk::Extent3D { width: 1, height: 1, depth: 1 },
            ..Default::default()
        };
        fixture.run(|device, commands| unsafe {
            fixture.to_layout(commands, src, GENERAL);
            fixture.to_layout(commands, dst, GENERAL);
            device.cmd_fill_buffer(commands, alias, 0, vk::WHOLE_SIZE, u32::from_le_bytes([10, 30, 0, 0]));
            device.cmd_resolve_image(commands, src, GENERAL, dst, GENERAL, &[region]);
            device.cmd_copy_image_to_buffer(commands, dst, GENERAL, down.buffer, &[whole(1, 1)]);
        });
        fixture.expect_silence();
        assert_eq!(down.read(), [resolved], "{format:?}");
    }
}

#[test]
fn wrong_blits_are_reported() {
    let fixture = CommandFixture::simple();
    let plain = info(F::R8_UNORM, 4, 4);
    let image = fixture.image(&plain.array_layers(2));
    let other = fixture.image(&plain);
    let unbound = fixture.bare_image(&plain);
    let source = fixture.image(&plain.usage(vk::ImageUsageFlags::TRANSFER_SRC));
    let target = fixture.image(&plain.usage(vk::ImageUsageFlags::TRANSFER_DST));
    let several = fixture.image(&plain.samples(vk::SampleCountFlags::TYPE_4));
    let numbers = fixture.image(&info(F::R8_UINT, 4, 4));
    let signed = fixture.image(&info(F::R8_SINT, 4, 4));
    let blocks = fixture.image(&info(F::BC1_RGB_UNORM_BLOCK, 4, 4));
    let depth = fixture.image(&info(F::D32_SFLOAT, 4, 4));
    let cube = vk::Extent3D { width: 4, height: 4, depth: 2 };
    let volume = fixture.image(&plain.image_type(vk::ImageType::TYPE_3D).extent(cube));
    let half = fixture.image(&info(F::R16_UNORM, 4, 4));
    let all = region((4, 4), (4, 4));
    let (near, far) = (vk::Filter::NEAREST, vk::Filter::LINEAR);
    let of = |aspect| vk::ImageSubresourceLayers { aspect_mask: aspect, ..all.src_subresource };
    let deep = all.src_subresource(of(A::DEPTH)).dst_subresource(of(A::DEPTH));
    let two = vk::ImageSubresourceLayers { layer_count: 2, ..all.src_subresource };
    let level = vk::ImageSubresourceLayers { mip_level: 1, ..all.src_subresource };
    let wide = region((5, 4), (4, 4));
    let tall = region((4, 4), (4, 5));
    for (src, dst, region, filter, vuid) in [
        (target, other, all, near, "VUID-vkCmdBlitImage-srcImage-00219"),
        (other, source, all, near, "VUID-vkCmdBlitImage-dstImage-00224"),
        (unbound, other, all, near, "VUID-vkCmdBlitImage-srcImage-00220"),
        (other, unbound, all, near, "VUID-vkCmdBlitImage-dstImage-00225"),
        (several, other, all, near, "VUID-vkCmdBlitImage-srcImage-00233"),
        (other, several, all, near, "VUID-vkCmdBlitImage-dstImage-00234"),
        (blocks, other, all, near, "VUID-vkCmdBlitImage-srcImage-01999"),
        (other, blocks, all, near, "VUID-vkCmdBlitImage-dstImage-02000"),
        (signed, other, all, near, "VUID-vkCmdBlitImage-srcImage-00229"),
        (numbers, other, all, near, "VUID-vkCmdBlitImage-srcImage-00230"),
        (numbers, numbers, all, far, "VUID-vkCmdBlitImage-filter-02001"),
        (depth, other, deep, near, "VUID-vkCmdBlitImage-srcImage-00231"),
        (depth, depth, deep, far, "VUID-vkCmdBlitImage-srcImage-00232"),
        (half, other, all, near, "SUBLET-unsupported-blit"),
        (image, other, wide, near, "VUID-vkCmdBlitImage-srcOffset-00243"),
        (image, other, tall, near, "VUID-vkCmdBlitImage-dstOffset-00249"),
        (image, other, all.src_subresource(level), near, "VUID-vkCmdBlitImage-srcSubresource-01705"),
        (image, other, all.dst_subresource(two), near, "VUID-vkCmdBlitImage-dstSubresource-01708"),
        (image, other, all.src_subresource(two), near, "VUID-VkImageBlit-layerCount-08800"),
        (
            image,
            volume,
            all.src_subresource(two).dst_subresource(two),
            near,
            "VUID-vkCmdBlitImage-dstSubresource-01708",
        ),
        (image, other, all.src_subresource(of(A::DEPTH)), near, "VUID-VkImageBlit-aspectMask-00238"),
        (image, other, deep, near, "VUID-vkCmdBlitImage-aspectMask-00241"),
    ] {
        fixture.run(|device, commands| unsafe {
            device.cmd_blit_image(commands, src, GENERAL, dst, GENERAL, &[region], filter);
        });
        fixture.expect(vuid);
    }
    fixture.run(|device, commands| unsafe {
        device.cmd_blit_image(commands, image, GENERAL, other, GENERAL, &[], near);
    });
    fixture.expect("VUID-vkCmdBlitImage-regionCount-arraylength");
    // The layout is that of each, when the command runs.
    fixture.run(|device, commands| unsafe {
        fixture.to_layout(commands, image, vk::ImageLayout::TRANSFER_SRC_OPTIMAL);
        fixture.to_layout(commands, other, GENERAL);
        device.cmd_blit_image(commands, image, GENERAL, other, GENERAL, &[all], near);
    });
    fixture.expect("VUID-vkCmdBlitImage-srcImageLayout-00221");
}

#[test]
fn wrong_resolves_are_reported() {
    let fixture = CommandFixture::simple();
    let plain = info(F::R8_UNORM, 4, 4);
    let four = plain.samples(vk::SampleCountFlags::TYPE_4);
    let (several, image) = (fixture.image(&four), fixture.image(&plain));
    let (unbound, bare) = (fixture.bare_image(&four), fixture.bare_image(&plain));
    let target = fixture.image(&four.usage(vk::ImageUsageFlags::TRANSFER_DST));
    let source = fixture.image(&plain.usage(vk::ImageUsageFlags::TRANSFER_SRC));
    let other = fixture.image(&info(F::R8_UINT, 4, 4));
    let all = vk::ImageResolve {
        src_subresource: layers(A::COLOR, 0, 0, 1),
        dst_subresource: layers(A::COLOR, 0, 0, 1),
        extent: vk::Extent3D { width: 4, height: 4, depth: 1 },
        ..Default::default()
    };
    let wide = all.extent(vk::Extent3D { width: 5, height: 4, depth: 1 });
    let two = vk::ImageSubresourceLayers { layer_count: 2, ..all.src_subresource };
    let depth = vk::ImageSubresourceLayers { aspect_mask: A::DEPTH, ..all.src_subresource };
    for (src, dst, region, vuid) in [
        (target, image, all, "VUID-vkCmdResolveImage-srcImage-06762"),
        (several, source, all, "VUID-vkCmdResolveImage-dstImage-06764"),
        (unbound, image, all, "VUID-vkCmdResolveImage-srcImage-00256"),
        (several, bare, all, "VUID-vkCmdResolveImage-dstImage-00258"),
        (image, image, all, "VUID-vkCmdResolveImage-srcImage-00257"),
        (several, several, all, "VUID-vkCmdResolveImage-dstImage-00259"),
        (several, other, all, "VUID-vkCmdResolveImage-srcImage-01386"),
        (several, image, wide, "VUID-vkCmdResolveImage-srcOffset-00269"),
        (several, image, all.src_subresource(two), "VUID-vkCmdResolveImage-srcSubresource-01711"),
        (several, image, all.dst_subresource(depth), "VUID-VkImageResolve-aspectMask-00266"),
    ] {
        fixture.run(|device, commands| unsafe {
            device.cmd_resolve_image(commands, src, GENERAL, dst, GENERAL, &[region]);
        });
        fixture.expect(vuid);
    }
}
