//! Dynamic rendering: what becomes of attachments, and what is refused.
#![expect(unsafe_code, reason = "tests call Vulkan")]

use ash::vk;
use ash::vk::Format as F;
use ash::vk::ImageAspectFlags as A;
use vk::ImageLayout as Layout;

use super::fixture::{CommandFixture, DST};
use super::images::{GENERAL, info, layers, whole};

const COLOR: vk::ImageUsageFlags = vk::ImageUsageFlags::COLOR_ATTACHMENT;
const DEPTH: vk::ImageUsageFlags = vk::ImageUsageFlags::DEPTH_STENCIL_ATTACHMENT;

pub(super) fn view(fixture: &CommandFixture, image: vk::Image, format: F, aspect_mask: A) -> vk::ImageView {
    let range = vk::ImageSubresourceRange {
        aspect_mask,
        base_mip_level: 0,
        level_count: 1,
        base_array_layer: 0,
        layer_count: vk::REMAINING_ARRAY_LAYERS,
    };
    let info = vk::ImageViewCreateInfo::default()
        .image(image)
        .view_type(vk::ImageViewType::TYPE_2D)
        .format(format)
        .subresource_range(range);
    unsafe { fixture.device().create_image_view(&info, None) }.unwrap()
}

pub(super) fn area(x: i32, y: i32, width: u32, height: u32) -> vk::Rect2D {
    vk::Rect2D { offset: vk::Offset2D { x, y }, extent: vk::Extent2D { width, height } }
}

pub(super) fn clear(view: vk::ImageView, value: vk::ClearValue) -> vk::RenderingAttachmentInfo<'static> {
    vk::RenderingAttachmentInfo::default()
        .image_view(view)
        .image_layout(GENERAL)
        .load_op(vk::AttachmentLoadOp::CLEAR)
        .store_op(vk::AttachmentStoreOp::STORE)
        .clear_value(value)
}

pub(super) fn red(value: f32) -> vk::ClearValue {
    vk::ClearValue { color: vk::ClearColorValue { float32: [value, 0.0, 0.0, 1.0] } }
}

#[test]
fn attachments_are_cleared_in_the_area_and_resolved_behind_it() {
    let fixture = CommandFixture::simple();
    let usage = info(F::R8_UNORM, 4, 2).usage | COLOR;
    let several = fixture.image(&info(F::R8_UNORM, 4, 2).usage(usage).samples(vk::SampleCountFlags::TYPE_4));
    let single = fixture.image(&info(F::R8_UNORM, 4, 2).usage(usage));
    let depth = fixture.image(&info(F::D16_UNORM, 4, 2).usage(info(F::D16_UNORM, 4, 2).usage | DEPTH));
    let views = [
        view(&fixture, several, F::R8_UNORM, A::COLOR),
        view(&fixture, single, F::R8_UNORM, A::COLOR),
        view(&fixture, depth, F::D16_UNORM, A::DEPTH),
    ];
    let (down, deep) = (fixture.mapped(8, DST), fixture.mapped(16, DST));
    fixture.run(|device, commands| unsafe {
        fixture.to_layout(commands, several, GENERAL);
        fixture.to_layout(commands, single, GENERAL);
        fixture.to_layout(commands, depth, GENERAL);
        let resolved = |value| {
            clear(views[0], red(value))
                .resolve_mode(vk::ResolveModeFlags::AVERAGE)
                .resolve_image_view(views[1])
                .resolve_image_layout(GENERAL)
        };
        let half = vk::ClearValue { depth_stencil: vk::ClearDepthStencilValue { depth: 0.5, stencil: 0 } };
        let zero = clear(views[2], half);
        let first = [resolved(0.2)];
        let all = vk::RenderingInfo::default().render_area(area(0, 0, 4, 2)).layer_count(1);
        device.cmd_begin_rendering(commands, &all.color_attachments(&first).depth_attachment(&zero));
        device.cmd_end_rendering(commands);
        // A part, and what is loaded stays.
        let second = [resolved(1.0)];
        let part = vk::RenderingInfo::default().render_area(area(1, 1, 2, 1)).layer_count(1);
        let kept = clear(views[2], half).load_op(vk::AttachmentLoadOp::LOAD);
        device.cmd_begin_rendering(commands, &part.color_attachments(&second).depth_attachment(&kept));
        device.cmd_end_rendering(commands);
        device.cmd_copy_image_to_buffer(commands, single, GENERAL, down.buffer, &[whole(4, 2)]);
        let region = whole(4, 2).image_subresource(layers(A::DEPTH, 0, 0, 1));
        device.cmd_copy_image_to_buffer(commands, depth, GENERAL, deep.buffer, &[region]);
    });
    fixture.expect_silence();
    assert_eq!(down.read(), [51, 51, 51, 51, 51, 255, 255, 51]);
    assert_eq!(deep.read(), [0, 128].repeat(8));
}

#[test]
fn what_nobody_wants_is_lost_and_each_view_is_a_layer() {
    use vk::{AttachmentLoadOp as Load, AttachmentStoreOp as Store};
    let fixture = CommandFixture::simple();
    let usage = info(F::R8_UNORM, 2, 1).usage | COLOR;
    let image = fixture.image(&info(F::R8_UNORM, 2, 1).usage(usage).array_layers(3));
    let shown = view(&fixture, image, F::R8_UNORM, A::COLOR);
    let down = fixture.mapped(6, DST);
    let render = |mask, layers, load, store| {
        fixture.run(|device, commands| unsafe {
            let colors = [clear(shown, red(1.0)).load_op(load).store_op(store)];
            let info = vk::RenderingInfo::default().render_area(area(0, 0, 2, 1)).layer_count(layers);
            device.cmd_begin_rendering(commands, &info.view_mask(mask).color_attachments(&colors));
            device.cmd_end_rendering(commands);
            let region = whole(2, 1).image_subresource(layers_of(0, 3));
            device.cmd_copy_image_to_buffer(commands, image, GENERAL, down.buffer, &[region]);
        });
        fixture.expect_silence();
        down.read()
    };
    fixture.run(|_, commands| fixture.to_layout(commands, image, GENERAL));
    assert_eq!(render(0, 3, Load::CLEAR, Store::STORE), [255; 6]);
    assert_eq!(render(0, 1, Load::LOAD, Store::DONT_CARE)[2..], [255; 4]);
    assert_ne!(down.read()[..2], [255; 2]);
    assert_eq!(render(0b101, 0, Load::CLEAR, Store::STORE), [255; 6]);
    let lost = render(0b100, 0, Load::DONT_CARE, Store::STORE);
    assert_eq!(lost[..4], [255; 4]);
    assert_ne!(lost[4..], [255; 2]);
}

/// Color, of these layers.
fn layers_of(first: u32, count: u32) -> vk::ImageSubresourceLayers {
    layers(A::COLOR, 0, first, count)
}

#[test]
fn wrong_rendering_is_reported() {
    let fixture = CommandFixture::simple();
    let plain = info(F::R8_UNORM, 4, 4);
    let image = fixture.image(&plain.usage(plain.usage | COLOR));
    let copied = fixture.image(&plain);
    let depth = fixture.image(&info(F::D32_SFLOAT, 4, 4).usage(DEPTH));
    let small = fixture.image(&plain.usage(COLOR));
    let [color, wrong, deep, single] = [
        view(&fixture, image, F::R8_UNORM, A::COLOR),
        view(&fixture, copied, F::R8_UNORM, A::COLOR),
        view(&fixture, depth, F::D32_SFLOAT, A::DEPTH),
        view(&fixture, small, F::R8_UNORM, A::COLOR),
    ];
    let (all, black) = (area(0, 0, 4, 4), red(0.0));
    let resolved = clear(color, black)
        .resolve_mode(vk::ResolveModeFlags::AVERAGE)
        .resolve_image_view(single)
        .resolve_image_layout(GENERAL);
    let many = fixture.image(&plain.usage(COLOR).samples(vk::SampleCountFlags::TYPE_4));
    let many = view(&fixture, many, F::R8_UNORM, A::COLOR);
    let several = vk::RenderingAttachmentInfo { image_view: many, ..resolved }
        .resolve_image_layout(Layout::SHADER_READ_ONLY_OPTIMAL);
    let numbers = several.resolve_image_layout(GENERAL).resolve_mode(vk::ResolveModeFlags::SAMPLE_ZERO);
    let (from, to) = (fixture.mapped(4, super::fixture::SRC), fixture.mapped(4, DST));
    for (attachment, area, vuid) in [
        (clear(wrong, black), all, "VUID-VkRenderingInfo-colorAttachmentCount-06087"),
        (clear(deep, black), all, "VUID-VkRenderingInfo-colorAttachmentCount-06087"),
        (
            clear(color, black).image_layout(Layout::UNDEFINED),
            all,
            "VUID-VkRenderingAttachmentInfo-imageView-06135",
        ),
        (clear(color, black), area(0, 0, 5, 4), "VUID-VkRenderingInfo-pNext-06079"),
        (clear(color, black), area(0, 1, 4, 4), "VUID-VkRenderingInfo-pNext-06080"),
        (clear(color, black), area(-1, 0, 4, 4), "VUID-VkRenderingInfo-pNext-06077"),
        (
            clear(color, black).image_layout(Layout::TRANSFER_DST_OPTIMAL),
            all,
            "VUID-VkRenderingAttachmentInfo-imageView-06135",
        ),
        (resolved, all, "VUID-VkRenderingAttachmentInfo-imageView-06861"),
        (several, all, "VUID-VkRenderingAttachmentInfo-imageView-06136"),
        (numbers, all, "SUBLET-unsupported-resolve"),
    ] {
        fixture.begin();
        let colors = [attachment];
        let info = vk::RenderingInfo::default().render_area(area).layer_count(1).color_attachments(&colors);
        unsafe { fixture.device().cmd_begin_rendering(fixture.commands, &info) };
        fixture.end();
        fixture.expect(vuid);
    }
    fixture.begin();
    let colors = [clear(color, black)];
    let info = vk::RenderingInfo::default().render_area(all).color_attachments(&colors);
    unsafe { fixture.device().cmd_begin_rendering(fixture.commands, &info) };
    fixture.expect("VUID-VkRenderingInfo-viewMask-06069");
    unsafe { fixture.device().cmd_end_rendering(fixture.commands) };
    fixture.expect("VUID-vkCmdEndRendering-None-06161");
    let info = info.layer_count(1);
    unsafe { fixture.device().cmd_begin_rendering(fixture.commands, &info) };
    fixture.expect_silence();
    unsafe { fixture.device().cmd_begin_rendering(fixture.commands, &info) };
    fixture.expect("VUID-vkCmdBeginRendering-renderpass");
    let region = [vk::BufferCopy { size: 4, ..Default::default() }];
    unsafe { fixture.device().cmd_copy_buffer(fixture.commands, from.buffer, to.buffer, &region) };
    fixture.expect("VUID-vkCmdCopyBuffer-renderpass");
    assert!(unsafe { fixture.device().end_command_buffer(fixture.commands) }.is_err());
    fixture.expect("VUID-vkEndCommandBuffer-commandBuffer-00060");
    // The layout is that of its time.
    unsafe { fixture.device().cmd_end_rendering(fixture.commands) };
    fixture.end();
    fixture.submit().unwrap();
    unsafe { fixture.device().queue_wait_idle(fixture.gpu.queue()) }.unwrap();
    fixture.expect("VUID-vkCmdBeginRendering-pRenderingInfo-09592");
}
