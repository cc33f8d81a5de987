//! Render passes and framebuffers: what becomes of attachments and their layouts, and what is refused.
#![expect(unsafe_code, reason = "tests call Vulkan")]

use ash::vk;
use ash::vk::Format as F;
use ash::vk::ImageAspectFlags as A;
use vk::ImageLayout as Layout;

use super::draws::{Pipeline, PipelineOptions, Scene};
use super::fixture::DST;
use super::images::{GENERAL, info, layers, whole};
use super::rendering::{area, red, view};

const ATTACHED: Layout = Layout::COLOR_ATTACHMENT_OPTIMAL;
const SOURCE: Layout = Layout::TRANSFER_SRC_OPTIMAL;

/// An attachment that is cleared and stored.
fn described(format: F, (first, last): (Layout, Layout)) -> vk::AttachmentDescription {
    vk::AttachmentDescription::default()
        .format(format)
        .samples(vk::SampleCountFlags::TYPE_1)
        .load_op(vk::AttachmentLoadOp::CLEAR)
        .store_op(vk::AttachmentStoreOp::STORE)
        .stencil_load_op(vk::AttachmentLoadOp::CLEAR)
        .stencil_store_op(vk::AttachmentStoreOp::STORE)
        .initial_layout(first)
        .final_layout(last)
}

fn reference(attachment: u32, layout: Layout) -> vk::AttachmentReference {
    vk::AttachmentReference { attachment, layout }
}

impl Scene {
    /// A pass of one color.
    fn pass(
        &self,
        described: vk::AttachmentDescription,
        dependencies: &[vk::SubpassDependency],
    ) -> vk::RenderPass {
        let (described, colors) = ([described], [reference(0, ATTACHED)]);
        let subpass = [vk::SubpassDescription::default().color_attachments(&colors)];
        let info = vk::RenderPassCreateInfo::default().attachments(&described).subpasses(&subpass);
        unsafe { self.fixture.device().create_render_pass(&info.dependencies(dependencies), None) }.unwrap()
    }

    fn framebuffer(&self, pass: vk::RenderPass, views: &[vk::ImageView]) -> vk::Framebuffer {
        let info = vk::FramebufferCreateInfo::default().render_pass(pass).attachments(views);
        let made =
            unsafe { self.fixture.device().create_framebuffer(&info.width(4).height(2).layers(1), None) };
        made.unwrap_or_default()
    }

    /// Begins a pass with a grey image.
    fn begin_pass(&self, commands: vk::CommandBuffer, pass: vk::RenderPass, framebuffer: vk::Framebuffer) {
        let values = [red(0.2); 2];
        let info = vk::RenderPassBeginInfo::default()
            .render_pass(pass)
            .framebuffer(framebuffer)
            .render_area(area(0, 0, 4, 2))
            .clear_values(&values);
        let contents = vk::SubpassContents::INLINE;
        unsafe { self.fixture.device().cmd_begin_render_pass(commands, &info, contents) };
    }
}

#[test]
fn a_pass_clears_draws_and_changes_layouts() {
    let scene = Scene::new(false);
    let fixture = &scene.fixture;
    let pass = scene.pass(described(F::R8_UNORM, (Layout::UNDEFINED, SOURCE)), &[]);
    let framebuffer = scene.framebuffer(pass, &[scene.shown]);
    let pipeline = Pipeline::new(fixture, &PipelineOptions { pass, ..PipelineOptions::PLAIN });
    fixture.run(|device, commands| {
        scene.begin_pass(commands, pass, framebuffer);
        unsafe { device.cmd_end_render_pass(commands) };
        scene.copy_from(commands, SOURCE);
    });
    assert_eq!(scene.down.read(), [51; 8]);
    scene.vertices.write(0, &[7]);
    fixture.run(|device, commands| {
        scene.begin_pass(commands, pass, framebuffer);
        unsafe {
            device.cmd_bind_pipeline(commands, vk::PipelineBindPoint::GRAPHICS, pipeline.handle);
            device.cmd_bind_vertex_buffers(commands, 0, &[scene.vertices.buffer; 4], &[0; 4]);
            device.cmd_draw(commands, 3, 1, 0, 0);
            device.cmd_end_render_pass(commands);
        }
        scene.copy_from(commands, SOURCE);
    });
    fixture.expect_silence();
    assert_eq!(scene.down.read(), [7; 8]);
    assert_eq!((fixture.gpu.live().render_passes, fixture.gpu.live().framebuffers), (1, 1));
}

#[test]
fn depth_stencil_and_samples_are_attached_as_the_subpass_says() {
    let scene = Scene::new(false);
    let fixture = &scene.fixture;
    let four = vk::SampleCountFlags::TYPE_4;
    let usage = vk::ImageUsageFlags::COLOR_ATTACHMENT;
    let several = fixture.image(&info(F::R8_UNORM, 4, 2).usage(usage).samples(four));
    let format = F::D32_SFLOAT_S8_UINT;
    let plain = info(format, 4, 2);
    let depth = plain.usage(plain.usage | vk::ImageUsageFlags::DEPTH_STENCIL_ATTACHMENT);
    let depth = fixture.image(&depth);
    let stencil = fixture.mapped(8, DST);
    let views = [
        view(fixture, several, F::R8_UNORM, A::COLOR),
        scene.shown,
        view(fixture, depth, format, A::DEPTH | A::STENCIL),
    ];
    let described = [
        described(F::R8_UNORM, (Layout::UNDEFINED, ATTACHED)).samples(four),
        described(F::R8_UNORM, (Layout::UNDEFINED, SOURCE)).load_op(vk::AttachmentLoadOp::DONT_CARE),
        // Its stencil is cleared, by an operation of its own.
        described(format, (Layout::UNDEFINED, SOURCE)).load_op(vk::AttachmentLoadOp::DONT_CARE),
    ];
    let (colors, resolves) = ([reference(0, ATTACHED)], [reference(1, ATTACHED)]);
    let both = reference(2, Layout::DEPTH_STENCIL_ATTACHMENT_OPTIMAL);
    let subpass = [vk::SubpassDescription::default()
        .color_attachments(&colors)
        .resolve_attachments(&resolves)
        .depth_stencil_attachment(&both)];
    let info = vk::RenderPassCreateInfo::default().attachments(&described).subpasses(&subpass);
    let pass = unsafe { scene.fixture.device().create_render_pass(&info, None) }.unwrap();
    let framebuffer = scene.framebuffer(pass, &views);
    scene.fixture.run(|device, commands| unsafe {
        let far = vk::ClearDepthStencilValue { depth: 1.0, stencil: 9 };
        let values = [red(0.2), red(0.9), vk::ClearValue { depth_stencil: far }];
        let info = vk::RenderPassBeginInfo::default()
            .render_pass(pass)
            .framebuffer(framebuffer)
            .render_area(area(0, 0, 4, 2))
            .clear_values(&values);
        device.cmd_begin_render_pass(commands, &info, vk::SubpassContents::INLINE);
        device.cmd_end_render_pass(commands);
        scene.copy_from(commands, SOURCE);
        let region = whole(4, 2).image_subresource(layers(A::STENCIL, 0, 0, 1));
        device.cmd_copy_image_to_buffer(commands, depth, SOURCE, stencil.buffer, &[region]);
    });
    scene.fixture.expect_silence();
    assert_eq!((scene.down.read(), stencil.read()), (vec![51; 8], vec![9; 8]));
}

#[test]
fn the_judge_sees_what_passes_wait_for() {
    use vk::AccessFlags as Access;
    use vk::PipelineStageFlags as Stage;
    let found = |described, dependencies: &[vk::SubpassDependency]| {
        let scene = Scene::new(true);
        let pass = scene.pass(described, dependencies);
        let framebuffer = scene.framebuffer(pass, &[scene.shown]);
        scene.fixture.run(|device, commands| {
            for _ in 0..2 {
                scene.begin_pass(commands, pass, framebuffer);
                unsafe { device.cmd_end_render_pass(commands) };
            }
            scene.copy_from(commands, SOURCE);
        });
        scene.fixture.reports()
    };
    let whole = described(F::R8_UNORM, (Layout::UNDEFINED, SOURCE));
    let before = vk::SubpassDependency {
        src_subpass: vk::SUBPASS_EXTERNAL,
        src_stage_mask: Stage::COLOR_ATTACHMENT_OUTPUT,
        src_access_mask: Access::COLOR_ATTACHMENT_WRITE,
        dst_stage_mask: Stage::COLOR_ATTACHMENT_OUTPUT,
        dst_access_mask: Access::COLOR_ATTACHMENT_WRITE,
        ..Default::default()
    };
    let behind = vk::SubpassDependency {
        src_subpass: 0,
        dst_subpass: vk::SUBPASS_EXTERNAL,
        src_stage_mask: Stage::COLOR_ATTACHMENT_OUTPUT,
        src_access_mask: Access::COLOR_ATTACHMENT_WRITE,
        dst_stage_mask: Stage::TRANSFER | Stage::COLOR_ATTACHMENT_OUTPUT,
        dst_access_mask: Access::TRANSFER_READ,
        ..Default::default()
    };
    assert_eq!(found(whole, &[before, behind]), Vec::<&str>::new());
    // Nothing follows the change of layout at the end.
    let raw = "SYNC-HAZARD-READ-AFTER-WRITE";
    assert!(found(whole, &[before]).contains(&raw));
    assert!(found(whole, &[]).contains(&raw));
    // The second pass clears before the first one has changed the layout.
    let early = vk::SubpassDependency { src_stage_mask: Stage::TOP_OF_PIPE, ..before };
    let late = vk::SubpassDependency { dst_stage_mask: Stage::TRANSFER, ..behind };
    assert_eq!(found(whole, &[early, late]), ["SYNC-HAZARD-WRITE-AFTER-WRITE"]);
}

#[test]
fn wrong_passes_are_reported() {
    let scene = Scene::new(false);
    let fixture = &scene.fixture;
    let device = fixture.device();
    let plain = described(F::R8_UNORM, (SOURCE, GENERAL));
    let pass = scene.pass(plain, &[]);
    let framebuffer = scene.framebuffer(pass, &[scene.shown]);
    let other = scene.pass(plain.samples(vk::SampleCountFlags::TYPE_4), &[]);
    fixture.expect_silence();
    // Create-infos that break a rule.
    let created = |described: &[vk::AttachmentDescription], subpasses: &[vk::SubpassDescription<'_>]| {
        let info = vk::RenderPassCreateInfo::default().attachments(described).subpasses(subpasses);
        assert!(unsafe { device.create_render_pass(&info, None) }.is_err());
        fixture.reports()
    };
    let colors = [reference(1, ATTACHED)];
    let subpass = vk::SubpassDescription::default();
    assert_eq!(created(&[plain], &[]), ["VUID-VkRenderPassCreateInfo-subpassCount-arraylength"]);
    assert_eq!(created(&[plain], &[subpass; 2]), ["SUBLET-unsupported-rendering"]);
    assert_eq!(
        created(&[plain], &[subpass.color_attachments(&colors)]),
        ["VUID-VkRenderPassCreateInfo-attachment-00834"]
    );
    let nowhere = plain.final_layout(Layout::UNDEFINED);
    assert_eq!(created(&[nowhere], &[subpass]), ["VUID-VkAttachmentDescription-finalLayout-00843"]);
    assert_eq!(scene.framebuffer(pass, &[]), vk::Framebuffer::null());
    fixture.expect("VUID-VkFramebufferCreateInfo-attachmentCount-00876");
    assert_eq!(scene.framebuffer(other, &[scene.shown]), vk::Framebuffer::null());
    fixture.expect("VUID-VkFramebufferCreateInfo-pAttachments-00881");
    let large = vk::FramebufferCreateInfo::default().render_pass(pass).width(5).height(2).layers(1);
    assert!(unsafe { device.create_framebuffer(&large.attachments(&[scene.shown]), None) }.is_err());
    fixture.expect("VUID-VkFramebufferCreateInfo-flags-04533");
    // Passes that break a rule when they begin.
    fixture.begin();
    unsafe { device.cmd_end_render_pass(fixture.commands) };
    fixture.expect("VUID-vkCmdEndRenderPass-None-06170");
    scene.begin_pass(fixture.commands, other, framebuffer);
    fixture.expect("VUID-VkRenderPassBeginInfo-renderPass-00904");
    // One attachment more, which nothing uses.
    let (attachments, colors) = ([plain; 2], [reference(0, ATTACHED)]);
    let subpass = [vk::SubpassDescription::default().color_attachments(&colors)];
    let more = vk::RenderPassCreateInfo::default().attachments(&attachments).subpasses(&subpass);
    let more = unsafe { device.create_render_pass(&more, None) }.unwrap();
    scene.begin_pass(fixture.commands, more, framebuffer);
    fixture.expect("VUID-VkRenderPassBeginInfo-renderPass-00904");
    let info = vk::RenderPassBeginInfo::default().render_pass(pass).framebuffer(framebuffer);
    let inline = vk::SubpassContents::INLINE;
    let begin = |info: &vk::RenderPassBeginInfo<'_>, contents| {
        unsafe { device.cmd_begin_render_pass(fixture.commands, info, contents) };
        fixture.reports()
    };
    let value = [red(0.0)];
    let info = info.clear_values(&value);
    let all = info.render_area(area(0, 0, 4, 2));
    assert_eq!(
        begin(&info.render_area(area(1, 0, 4, 2)), inline),
        ["VUID-VkRenderPassBeginInfo-pNext-02852"]
    );
    assert_eq!(begin(&all.clear_values(&[]), inline), ["VUID-VkRenderPassBeginInfo-clearValueCount-00902"]);
    let secondary = vk::SubpassContents::SECONDARY_COMMAND_BUFFERS;
    assert_eq!(begin(&all, secondary), ["SUBLET-unsupported-rendering"]);
    assert_eq!(begin(&all, inline), Vec::<&str>::new());
    assert_eq!(begin(&all, inline), ["VUID-vkCmdBeginRenderPass-renderpass"]);
    unsafe { device.cmd_end_rendering(fixture.commands) };
    fixture.expect("VUID-vkCmdEndRendering-None-06161");
    // A pipeline for dynamic rendering.
    let pipeline = Pipeline::new(fixture, &PipelineOptions::PLAIN);
    unsafe {
        device.cmd_bind_pipeline(fixture.commands, vk::PipelineBindPoint::GRAPHICS, pipeline.handle);
        device.cmd_draw(fixture.commands, 3, 1, 0, 0);
    }
    fixture.expect("VUID-vkCmdDraw-renderPass-02684");
    unsafe { device.cmd_end_render_pass(fixture.commands) };
    fixture.end();
    // The image is in another layout; and the pass is in use until the queue is done.
    fixture.gpu.hold_submissions(true);
    fixture.submit().unwrap();
    unsafe { device.destroy_framebuffer(framebuffer, None) };
    unsafe { device.destroy_render_pass(pass, None) };
    let used = ["VUID-vkDestroyFramebuffer-framebuffer-00892", "VUID-vkDestroyRenderPass-renderPass-00873"];
    assert_eq!(fixture.reports(), used);
    unsafe { device.queue_wait_idle(fixture.gpu.queue()) }.unwrap();
    assert!(fixture.reports().contains(&"VUID-vkCmdBeginRenderPass-initialLayout-00900"));
    assert!(fixture.submit().is_err());
    fixture.gpu.take_messages();
}
