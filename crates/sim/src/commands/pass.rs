//! Render passes in command buffers: they begin and end as dynamic rendering does, and change layouts besides.
#![expect(unsafe_code, reason = "the functions have the C ABI")]

use std::sync::Arc;

use ash::vk;

use super::record;
use super::rendering::{AttachmentRules, RenderingRequest, resolve_mode};
use crate::facts::broken::{Broken, refuse_if};
use crate::facts::chain;
use crate::objects::commands::RecordedCommand;
use crate::objects::commands::rendering::{AttachmentSlot, BegunPass, BegunRendering};
use crate::objects::passes::{Framebuffer, PassDescription};
use crate::objects::state::{DeviceObject, DeviceState};

const COLOR: AttachmentRules = AttachmentRules {
    aspect: vk::ImageAspectFlags::COLOR,
    usage: (vk::ImageUsageFlags::COLOR_ATTACHMENT, "VUID-VkFramebufferCreateInfo-pAttachments-00877"),
    format: "VUID-VkFramebufferCreateInfo-pAttachments-00880",
    layout: "VUID-vkCmdBeginRenderPass-initialLayout-00900",
    resolved_layout: "VUID-vkCmdBeginRenderPass-initialLayout-00900",
};
const DEPTH: AttachmentRules = AttachmentRules {
    aspect: vk::ImageAspectFlags::DEPTH,
    usage: (vk::ImageUsageFlags::DEPTH_STENCIL_ATTACHMENT, "VUID-VkFramebufferCreateInfo-pAttachments-02633"),
    ..COLOR
};
const STENCIL: AttachmentRules = AttachmentRules { aspect: vk::ImageAspectFlags::STENCIL, ..DEPTH };

pub(crate) unsafe extern "system" fn begin(
    command_buffer: vk::CommandBuffer,
    p_info: *const vk::RenderPassBeginInfo<'_>,
    contents: vk::SubpassContents,
) {
    // SAFETY: VUID-vkCmdBeginRenderPass-pRenderPassBegin-parameter.
    let Some(info) = (unsafe { chain::input(p_info) }) else {
        return;
    };
    // SAFETY: VUID-VkRenderPassBeginInfo-clearValueCount-04962.
    let clears = unsafe { chain::array(info.p_clear_values, info.clear_value_count) };
    record(command_buffer, "vkCmdBeginRenderPass", |device, state| {
        refuse_if!(contents != vk::SubpassContents::INLINE => "SUBLET-unsupported-rendering",
            "the simulated device records passes in primary command buffers only");
        let rule = "VUID-VkRenderPassBeginInfo-renderPass-parameter";
        let pass = state.known(device, info.render_pass, state.passes.passes.get(&info.render_pass), rule)?;
        let rule = "VUID-VkRenderPassBeginInfo-framebuffer-parameter";
        let found = state.passes.framebuffers.get(&info.framebuffer);
        let framebuffer = state.known(device, info.framebuffer, found, rule)?;
        let pass = &pass.info;
        refuse_if!(!framebuffer.pass.is_compatible(pass) => "VUID-VkRenderPassBeginInfo-renderPass-00904",
            "{} is for another pass", state.name(info.framebuffer));
        let (area, extent) = (info.render_area, framebuffer.extent);
        let end = |start: i32, size: u32| i64::from(start) + i64::from(size);
        let (right, bottom) = (end(area.offset.x, area.extent.width), end(area.offset.y, area.extent.height));
        refuse_if!(right > extent.width.into() => "VUID-VkRenderPassBeginInfo-pNext-02852",
            "the framebuffer has {} columns, and {right} are rendered", extent.width);
        refuse_if!(bottom > extent.height.into() => "VUID-VkRenderPassBeginInfo-pNext-02853",
            "the framebuffer has {} rows, and {bottom} are rendered", extent.height);
        let asked = RenderingRequest {
            attachments: attachments(pass, framebuffer, clears)?,
            area,
            layers: framebuffer.layers,
            view_mask: pass.formats.view_mask,
            sides: [
                "VUID-VkRenderPassBeginInfo-pNext-02850",
                "VUID-VkRenderPassBeginInfo-pNext-02851",
                "VUID-VkRenderPassBeginInfo-pNext-02852",
                "VUID-VkRenderPassBeginInfo-pNext-02853",
            ],
        };
        let mut rendering = BegunRendering::new(device, state, &asked, pass.formats.clone())?;
        let mut commands = changes(device, state, pass, framebuffer, true)?;
        let behind = changes(device, state, pass, framebuffer, false)?;
        rendering.pass = Some(BegunPass { pass: info.render_pass, framebuffer: info.framebuffer, behind });
        commands.push(RecordedCommand::BeginRendering(Arc::new(rendering)));
        Ok(commands)
    });
}

pub(crate) unsafe extern "system" fn end(command_buffer: vk::CommandBuffer) {
    record(command_buffer, "vkCmdEndRenderPass", |_, state| {
        let rendering = state.rendering(command_buffer);
        let found = rendering.and_then(|rendering| Some((rendering, rendering.pass.as_ref()?)));
        let Some((rendering, pass)) = found else {
            return Err(("VUID-vkCmdEndRenderPass-None-06170", "no render pass has begun".to_owned()));
        };
        let mut commands = vec![RecordedCommand::EndRendering(Arc::clone(rendering))];
        commands.extend(pass.behind.iter().cloned());
        Ok(commands)
    });
}

/// The attachments of a pass, in the form of dynamic rendering.
fn attachments<'a>(
    pass: &PassDescription,
    framebuffer: &Framebuffer,
    clears: &[vk::ClearValue],
) -> Result<Vec<(AttachmentSlot, vk::RenderingAttachmentInfo<'a>, &'static AttachmentRules)>, Broken> {
    let of = |(at, layout): (usize, vk::ImageLayout)| -> Result<vk::RenderingAttachmentInfo<'a>, Broken> {
        let clear = clears.get(at).copied();
        let attachment = &pass.attachments[at];
        let cleared = [attachment.load_op, attachment.stencil_load_op].contains(&vk::AttachmentLoadOp::CLEAR);
        refuse_if!(cleared && clear.is_none() => "VUID-VkRenderPassBeginInfo-clearValueCount-00902",
            "attachment {at} is cleared, and there are {} values", clears.len());
        Ok(vk::RenderingAttachmentInfo::default()
            .image_view(framebuffer.views[at])
            .image_layout(layout)
            .load_op(attachment.load_op)
            .store_op(attachment.store_op)
            .clear_value(clear.unwrap_or_default()))
    };
    let mut all = Vec::new();
    for (location, color) in pass.colors.iter().enumerate() {
        let Some(color) = *color else { continue };
        let mut info = of(color)?;
        if let Some((at, layout)) = pass.resolves.get(location).copied().flatten() {
            // A format that cannot be resolved is refused with the attachment.
            let mode = resolve_mode(pass.attachments[at].format);
            info = info
                .resolve_mode(mode.unwrap_or(vk::ResolveModeFlags::SAMPLE_ZERO))
                .resolve_image_view(framebuffer.views[at])
                .resolve_image_layout(layout);
        }
        all.push((AttachmentSlot::Color(location), info, &COLOR));
    }
    if let Some((at, layout)) = pass.depth_stencil {
        let info = of((at, layout))?;
        let attachment = &pass.attachments[at];
        if pass.formats.depth != vk::Format::UNDEFINED {
            all.push((AttachmentSlot::Depth, info, &DEPTH));
        }
        if pass.formats.stencil != vk::Format::UNDEFINED {
            let info = info.load_op(attachment.stencil_load_op).store_op(attachment.stencil_store_op);
            all.push((AttachmentSlot::Stencil, info, &STENCIL));
        }
    }
    Ok(all)
}

/// The changes of layouts with which a pass begins or ends, and what they order.
fn changes(
    device: &DeviceObject,
    state: &DeviceState,
    pass: &PassDescription,
    framebuffer: &Framebuffer,
    begins: bool,
) -> Result<Vec<RecordedCommand>, Broken> {
    let rule = "VUID-vkCmdBeginRenderPass-initialLayout-00900";
    let mut changes = Vec::new();
    for (at, meanwhile) in pass.references() {
        let attachment = &pass.attachments[at];
        let (old, new) = match begins {
            true => (attachment.initial_layout, meanwhile),
            false => (meanwhile, attachment.final_layout),
        };
        if old != new {
            let view = framebuffer.views[at];
            let found = state.known(device, view, state.image_views.get(&view), rule)?;
            changes.push((found.image, found.range, (old, new)));
        }
    }
    let bars = state.hazards.is_some().then(|| pass.bars(begins, &changes));
    let mut commands: Vec<_> = bars.map(RecordedCommand::Barrier).into_iter().collect();
    commands.extend(changes.into_iter().map(|(image, range, (old, new))| RecordedCommand::Transition {
        image,
        old: Some(old),
        new,
        range,
        rule,
    }));
    Ok(commands)
}
