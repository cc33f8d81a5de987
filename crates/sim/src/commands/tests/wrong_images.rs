//! Wrong copies, clears and barriers of images.
#![expect(unsafe_code, reason = "tests call Vulkan")]

use ash::vk;
use ash::vk::Format as F;
use ash::vk::ImageAspectFlags as A;

use super::fixture::{CommandFixture, DST, SRC, all_of};
use super::images::{GENERAL, info, layers, whole};

fn range(
    base_mip_level: u32,
    level_count: u32,
    base_array_layer: u32,
    layer_count: u32,
) -> vk::ImageSubresourceRange {
    let aspect_mask = A::COLOR;
    vk::ImageSubresourceRange { aspect_mask, base_mip_level, level_count, base_array_layer, layer_count }
}

#[test]
fn an_image_is_in_the_layout_that_the_command_says() {
    let fixture = CommandFixture::simple();
    let image = fixture.image(&info(F::R8_UNORM, 4, 4).mip_levels(3));
    let (from, to) = (fixture.mapped(16, SRC), fixture.mapped(16, DST));
    let upload = |fixture: &CommandFixture, layout, level| {
        let size = 4_u32 >> level;
        let region = whole(size, size).image_subresource(layers(A::COLOR, level, 0, 1));
        fixture.run(|device, commands| unsafe {
            device.cmd_copy_buffer_to_image(commands, from.buffer, image, layout, &[region]);
        });
    };
    upload(&fixture, GENERAL, 0);
    fixture.expect("VUID-vkCmdCopyBufferToImage-dstImageLayout-00180");
    let one = vk::ImageSubresourceRange { base_mip_level: 1, level_count: 1, ..all_of(A::COLOR) };
    let barrier = |old, new| {
        let barrier = vk::ImageMemoryBarrier::default()
            .image(image)
            .old_layout(old)
            .new_layout(new)
            .subresource_range(one);
        fixture.run(|device, commands| unsafe {
            let stages = vk::PipelineStageFlags::ALL_COMMANDS;
            let none = vk::DependencyFlags::empty();
            device.cmd_pipeline_barrier(commands, stages, stages, none, &[], &[], &[barrier]);
        });
    };
    barrier(vk::ImageLayout::UNDEFINED, GENERAL);
    // Level 1 is in GENERAL, the others are not.
    upload(&fixture, GENERAL, 1);
    fixture.expect_silence();
    upload(&fixture, GENERAL, 2);
    fixture.expect("VUID-vkCmdCopyBufferToImage-dstImageLayout-00180");
    upload(&fixture, vk::ImageLayout::TRANSFER_DST_OPTIMAL, 1);
    fixture.expect("VUID-vkCmdCopyBufferToImage-dstImageLayout-00180");
    upload(&fixture, vk::ImageLayout::SHADER_READ_ONLY_OPTIMAL, 1);
    fixture.expect("VUID-vkCmdCopyBufferToImage-dstImageLayout-01396");
    barrier(vk::ImageLayout::TRANSFER_SRC_OPTIMAL, GENERAL);
    fixture.expect("VUID-VkImageMemoryBarrier-oldLayout-01197");
    barrier(GENERAL, vk::ImageLayout::SHADER_READ_ONLY_OPTIMAL);
    fixture.expect_silence();
    barrier(GENERAL, vk::ImageLayout::UNDEFINED);
    fixture.expect("VUID-VkImageMemoryBarrier-newLayout-01198");
    fixture.run(|device, commands| unsafe {
        device.cmd_copy_image_to_buffer(commands, image, GENERAL, to.buffer, &[whole(4, 4)]);
    });
    fixture.expect("VUID-vkCmdCopyImageToBuffer-srcImageLayout-00189");
}

#[test]
fn wrong_regions_are_reported() {
    let fixture = CommandFixture::simple();
    let image = fixture.image(&info(F::R8G8B8A8_UNORM, 8, 8).mip_levels(2).array_layers(2));
    let blocks = fixture.image(&info(F::BC1_RGB_UNORM_BLOCK, 10, 8));
    let depth = fixture.image(&info(F::D24_UNORM_S8_UINT, 8, 8));
    let from = fixture.mapped(256, SRC);
    let right = whole(8, 8);
    let sub = |level, base, count| right.image_subresource(layers(A::COLOR, level, base, count));
    let size = |width, height, depth| vk::Extent3D { width, height, depth };
    let at = |x, y, z| vk::Offset3D { x, y, z };
    let aspect = |aspect| right.image_subresource(layers(aspect, 0, 0, 1));
    let on_blocks = |offset, width, height| whole(width, height).image_offset(offset);
    let block = on_blocks(at(0, 0, 0), 4, 4);
    for (image, region, vuid) in [
        (image, right.image_extent(size(0, 8, 1)), "VUID-VkBufferImageCopy-imageExtent-06659"),
        (image, right.image_extent(size(8, 0, 1)), "VUID-VkBufferImageCopy-imageExtent-06660"),
        (image, right.image_extent(size(8, 8, 0)), "VUID-VkBufferImageCopy-imageExtent-06661"),
        (image, right.image_offset(at(1, 0, 0)), "VUID-vkCmdCopyBufferToImage-imageSubresource-07971"),
        (image, right.image_offset(at(-1, 0, 0)), "VUID-vkCmdCopyBufferToImage-imageSubresource-07971"),
        (image, right.image_offset(at(0, 1, 0)), "VUID-vkCmdCopyBufferToImage-imageSubresource-07972"),
        (image, right.image_extent(size(8, 8, 2)), "VUID-vkCmdCopyBufferToImage-imageOffset-09104"),
        (image, sub(1, 0, 1), "VUID-vkCmdCopyBufferToImage-imageSubresource-07971"),
        (image, sub(2, 0, 1), "VUID-vkCmdCopyBufferToImage-imageSubresource-07967"),
        (image, sub(0, 1, 2), "VUID-vkCmdCopyBufferToImage-imageSubresource-07968"),
        (image, sub(0, 0, 0), "VUID-VkImageSubresourceLayers-layerCount-01700"),
        (image, sub(0, 0, 2), "VUID-vkCmdCopyBufferToImage-pRegions-00171"),
        (image, right.buffer_offset(4), "VUID-vkCmdCopyBufferToImage-pRegions-00171"),
        (image, right.buffer_row_length(9), "VUID-vkCmdCopyBufferToImage-pRegions-00171"),
        (image, right.buffer_offset(2), "VUID-vkCmdCopyBufferToImage-dstImage-07975"),
        (image, right.buffer_row_length(7), "VUID-VkBufferImageCopy-bufferRowLength-09101"),
        (image, right.buffer_image_height(7), "VUID-VkBufferImageCopy-bufferImageHeight-09102"),
        (image, aspect(A::DEPTH), "VUID-vkCmdCopyBufferToImage-imageSubresource-09105"),
        (image, aspect(A::COLOR | A::DEPTH), "VUID-VkBufferImageCopy-aspectMask-09103"),
        (image, aspect(A::empty()), "VUID-VkBufferImageCopy-aspectMask-09103"),
        (depth, right, "VUID-vkCmdCopyBufferToImage-imageSubresource-09105"),
        (depth, aspect(A::STENCIL).buffer_offset(2), "VUID-vkCmdCopyBufferToImage-dstImage-07978"),
        (blocks, on_blocks(at(2, 0, 0), 4, 4), "VUID-vkCmdCopyBufferToImage-dstImage-07274"),
        (blocks, on_blocks(at(0, 2, 0), 4, 4), "VUID-vkCmdCopyBufferToImage-dstImage-07275"),
        (blocks, on_blocks(at(0, 0, 0), 6, 4), "VUID-vkCmdCopyBufferToImage-dstImage-00207"),
        (blocks, on_blocks(at(0, 0, 0), 4, 6), "VUID-vkCmdCopyBufferToImage-dstImage-00208"),
        (blocks, block.buffer_row_length(6), "VUID-vkCmdCopyBufferToImage-bufferRowLength-09106"),
        (blocks, block.buffer_image_height(6), "VUID-vkCmdCopyBufferToImage-bufferImageHeight-09107"),
    ] {
        fixture.run(|device, commands| unsafe {
            device.cmd_copy_buffer_to_image(commands, from.buffer, image, GENERAL, &[region]);
        });
        fixture.expect(vuid);
    }
    // Blocks that the edge of the image cuts, and the last bytes of a buffer.
    fixture.run(|device, commands| unsafe {
        fixture.to_layout(commands, blocks, GENERAL);
        fixture.to_layout(commands, image, GENERAL);
        let region = on_blocks(at(8, 4, 0), 2, 4);
        device.cmd_copy_buffer_to_image(commands, from.buffer, blocks, GENERAL, &[region]);
        device.cmd_copy_buffer_to_image(commands, from.buffer, image, GENERAL, &[right]);
    });
    fixture.expect_silence();
}

#[test]
fn wrong_images_are_reported() {
    let fixture = CommandFixture::simple();
    let plain = info(F::R8_UNORM, 4, 4);
    let image = fixture.image(&plain);
    let unbound = fixture.bare_image(&plain);
    let source = fixture.image(&plain.usage(vk::ImageUsageFlags::TRANSFER_SRC));
    let target = fixture.image(&plain.usage(vk::ImageUsageFlags::TRANSFER_DST));
    let several = fixture.image(&plain.samples(vk::SampleCountFlags::TYPE_4));
    let extent = vk::Extent3D { width: 4, height: 4, depth: 2 };
    let volume = plain.image_type(vk::ImageType::TYPE_3D).extent(extent);
    let volume = fixture.image(&volume);
    let line = fixture.image(&info(F::R8_UNORM, 4, 1).image_type(vk::ImageType::TYPE_1D));
    let array = fixture.image(&plain.array_layers(3));
    let other = fixture.image(&info(F::R16_UINT, 4, 4));
    let (from, to) = (fixture.mapped(16, SRC), fixture.mapped(16, DST));
    let up = |image| {
        fixture.run(|device, commands| unsafe {
            device.cmd_copy_buffer_to_image(commands, from.buffer, image, GENERAL, &[whole(4, 4)]);
        });
    };
    let down = |image| {
        fixture.run(|device, commands| unsafe {
            device.cmd_copy_image_to_buffer(commands, image, GENERAL, to.buffer, &[whole(4, 4)]);
        });
    };
    for (image, vuid) in [
        (source, "VUID-vkCmdCopyBufferToImage-dstImage-00177"),
        (unbound, "VUID-vkCmdCopyBufferToImage-dstImage-07966"),
        (several, "VUID-vkCmdCopyBufferToImage-dstImage-07973"),
        (vk::Image::null(), "VUID-vkCmdCopyBufferToImage-dstImage-parameter"),
    ] {
        up(image);
        fixture.expect(vuid);
    }
    for (image, vuid) in [
        (target, "VUID-vkCmdCopyImageToBuffer-srcImage-00186"),
        (unbound, "VUID-vkCmdCopyImageToBuffer-srcImage-07966"),
        (several, "VUID-vkCmdCopyImageToBuffer-srcImage-07973"),
        (vk::Image::null(), "VUID-vkCmdCopyImageToBuffer-srcImage-parameter"),
    ] {
        down(image);
        fixture.expect(vuid);
    }
    let region = vk::ImageCopy {
        src_subresource: layers(A::COLOR, 0, 0, 1),
        dst_subresource: layers(A::COLOR, 0, 0, 1),
        extent: vk::Extent3D { width: 4, height: 4, depth: 1 },
        ..Default::default()
    };
    let copy = |src, dst, region, vuid: &str| {
        fixture.run(|device, commands| unsafe {
            device.cmd_copy_image(commands, src, GENERAL, dst, GENERAL, &[region]);
        });
        fixture.expect(vuid);
    };
    let (from_at, to_at) = (
        |x, y, z| region.src_offset(vk::Offset3D { x, y, z }),
        |x, y, z| region.dst_offset(vk::Offset3D { x, y, z }),
    );
    let (from_part, to_part) = (
        |aspect, base, count| region.src_subresource(layers(aspect, 0, base, count)),
        |aspect, base, count| region.dst_subresource(layers(aspect, 0, base, count)),
    );
    let nothing = region.extent(vk::Extent3D { width: 0, height: 1, depth: 1 });
    for (src, dst, region, vuid) in [
        (target, image, region, "VUID-vkCmdCopyImage-aspect-06662"),
        (image, source, region, "VUID-vkCmdCopyImage-aspect-06663"),
        (unbound, image, region, "VUID-vkCmdCopyImage-srcImage-07966"),
        (image, unbound, region, "VUID-vkCmdCopyImage-dstImage-07966"),
        (several, image, region, "VUID-vkCmdCopyImage-srcImage-00136"),
        (image, target, from_at(1, 0, 0), "VUID-vkCmdCopyImage-srcOffset-00144"),
        (image, target, from_at(0, 1, 0), "VUID-vkCmdCopyImage-srcOffset-00145"),
        (image, target, from_at(0, 0, 1), "VUID-vkCmdCopyImage-srcOffset-00147"),
        (image, target, to_at(1, 0, 0), "VUID-vkCmdCopyImage-dstOffset-00150"),
        (image, target, to_at(0, 1, 0), "VUID-vkCmdCopyImage-dstOffset-00151"),
        (image, target, to_at(0, 0, 1), "VUID-vkCmdCopyImage-dstOffset-00153"),
        (image, target, from_part(A::COLOR, 1, 1), "VUID-vkCmdCopyImage-srcSubresource-07968"),
        (image, target, to_part(A::COLOR, 1, 1), "VUID-vkCmdCopyImage-dstSubresource-07968"),
        (image, target, from_part(A::DEPTH, 0, 1), "VUID-vkCmdCopyImage-aspectMask-00142"),
        (image, target, to_part(A::DEPTH, 0, 1), "VUID-vkCmdCopyImage-srcImage-01551"),
        (image, target, nothing, "VUID-VkImageCopy-extent-06668"),
    ] {
        copy(src, dst, region, vuid);
    }
    let two = region.extent(extent);
    for (src, dst, region, vuid) in [
        (line, image, region, "VUID-vkCmdCopyImage-srcImage-07743"),
        (volume, line, region, "VUID-vkCmdCopyImage-srcImage-07743"),
        (array, image, two, "VUID-vkCmdCopyImage-srcImage-01790"),
        (array, image, from_part(A::COLOR, 0, 2), "VUID-vkCmdCopyImage-srcImage-08793"),
        (array, volume, two.src_subresource(layers(A::COLOR, 0, 0, 3)), "VUID-vkCmdCopyImage-srcImage-01791"),
        (volume, array, two, "VUID-vkCmdCopyImage-dstImage-01792"),
    ] {
        copy(src, dst, region, vuid);
    }
    copy(image, other, region, "VUID-vkCmdCopyImage-srcImage-01548");
}

#[test]
fn wrong_clears_are_reported() {
    let fixture = CommandFixture::simple();
    let plain = info(F::R8_UNORM, 4, 4).mip_levels(2).array_layers(2);
    let image = fixture.image(&plain);
    let unbound = fixture.bare_image(&plain);
    let source = fixture.image(&plain.usage(vk::ImageUsageFlags::TRANSFER_SRC));
    let depth = fixture.image(&info(F::D32_SFLOAT, 4, 4));
    let blocks = fixture.image(&info(F::BC7_UNORM_BLOCK, 4, 4));
    let packed = fixture.image(&info(F::R5G6B5_UNORM_PACK16, 4, 4));
    let (all, other) = (all_of(A::COLOR), vk::ImageLayout::TRANSFER_SRC_OPTIMAL);
    for (image, layout, ranges, vuid) in [
        (source, GENERAL, vec![all], "VUID-vkCmdClearColorImage-image-00002"),
        (unbound, GENERAL, vec![all], "VUID-vkCmdClearColorImage-image-00003"),
        (depth, GENERAL, vec![all], "VUID-vkCmdClearColorImage-image-00007"),
        (blocks, GENERAL, vec![all], "VUID-vkCmdClearColorImage-image-00007"),
        (packed, GENERAL, vec![all], "SUBLET-unsupported-clear"),
        (image, other, vec![all], "VUID-vkCmdClearColorImage-imageLayout-01394"),
        (image, GENERAL, vec![all_of(A::DEPTH)], "VUID-vkCmdClearColorImage-aspectMask-02498"),
        (image, GENERAL, vec![range(2, 1, 0, 1)], "VUID-vkCmdClearColorImage-baseMipLevel-01470"),
        (image, GENERAL, vec![range(1, 2, 0, 1)], "VUID-vkCmdClearColorImage-pRanges-01692"),
        (image, GENERAL, vec![range(0, 1, 2, 1)], "VUID-vkCmdClearColorImage-baseArrayLayer-01472"),
        (image, GENERAL, vec![range(0, 1, 1, 2)], "VUID-vkCmdClearColorImage-pRanges-01693"),
        (image, GENERAL, vec![], "VUID-vkCmdClearColorImage-rangeCount-arraylength"),
        (image, GENERAL, vec![range(1, 1, 1, 1)], "VUID-vkCmdClearColorImage-imageLayout-00004"),
    ] {
        let black = vk::ClearColorValue::default();
        fixture.run(|device, commands| unsafe {
            device.cmd_clear_color_image(commands, image, layout, &black, &ranges);
        });
        fixture.expect(vuid);
    }
}

#[test]
fn wrong_barriers_are_reported() {
    let fixture = CommandFixture::simple();
    let image = fixture.image(&info(F::R8_UNORM, 4, 4).mip_levels(2).array_layers(2));
    let unbound = fixture.bare_image(&info(F::R8_UNORM, 4, 4));
    for (image, range, rule) in [
        (vk::Image::null(), range(0, 1, 0, 1), "image-parameter"),
        (unbound, range(0, 1, 0, 1), "image-01932"),
        (image, range(2, 1, 0, 1), "subresourceRange-01486"),
        (image, range(1, 2, 0, 1), "subresourceRange-01724"),
        (image, range(0, 1, 2, 1), "subresourceRange-01488"),
        (image, range(0, 1, 1, 2), "subresourceRange-01725"),
    ] {
        let first =
            vk::ImageMemoryBarrier::default().image(image).new_layout(GENERAL).subresource_range(range);
        let second =
            [vk::ImageMemoryBarrier2::default().image(image).new_layout(GENERAL).subresource_range(range)];
        fixture.run(|device, commands| unsafe {
            let stages = vk::PipelineStageFlags::ALL_COMMANDS;
            let none = vk::DependencyFlags::empty();
            device.cmd_pipeline_barrier(commands, stages, stages, none, &[], &[], &[first]);
        });
        fixture.expect(&format!("VUID-VkImageMemoryBarrier-{rule}"));
        fixture.run(|device, commands| unsafe {
            let info = vk::DependencyInfo::default().image_memory_barriers(&second);
            device.cmd_pipeline_barrier2(commands, &info);
        });
        fixture.expect(&format!("VUID-VkImageMemoryBarrier2-{rule}"));
    }
    let barrier = vk::BufferMemoryBarrier::default();
    fixture.run(|device, commands| unsafe {
        let stages = vk::PipelineStageFlags::ALL_COMMANDS;
        let none = vk::DependencyFlags::empty();
        device.cmd_pipeline_barrier(commands, stages, stages, none, &[], &[barrier], &[]);
    });
    fixture.expect("VUID-VkBufferMemoryBarrier-buffer-parameter");
}
