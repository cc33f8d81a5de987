//! A render pass and a framebuffer for each pass, out of the table.

use ash::vk;

use crate::attachments::Attachments;
use crate::keeper::Keeper;
use crate::passes::{Attachment, Extent, Pass, Use, order};
use crate::support::Result;

/// Where a pass draws to.
pub(crate) struct Target {
    pub(crate) pass: Pass,
    pub(crate) render_pass: vk::RenderPass,
    pub(crate) framebuffer: vk::Framebuffer,
    pub(crate) extent: Extent,
}

pub(crate) struct Targets {
    /// Views of the attachments.
    pub(crate) views: Vec<vk::ImageView>,
    /// In the order of the frame; the last pass draws nothing and has none.
    pub(crate) all: Vec<Target>,
}

impl Targets {
    pub(crate) fn new(keeper: &Keeper<'_>, attachments: &Attachments) -> Result<Self> {
        let mut views = Vec::new();
        for (attachment, &image) in attachments.table.iter().zip(&attachments.images) {
            let info = attachment.image_info();
            views.push(keeper.view_of(image, &info, attachment.aspect())?);
        }
        let mut all = Vec::new();
        for pass in order() {
            let drawn = |at: &usize| {
                let how = attachments.table[*at].used_in(pass);
                matches!(how, Some(Use::Depth | Use::Colour | Use::Blend))
            };
            // Colour first: the framebuffer has them in this order.
            let mut drawn: Vec<usize> = (0..attachments.table.len()).filter(drawn).collect();
            drawn.sort_by_key(|&at| attachments.table[at].is_depth());
            let Some(&first) = drawn.first() else { continue };
            let extent = attachments.table[first].extent;
            let used: Vec<_> = drawn.iter().map(|&at| &attachments.table[at]).collect();
            let render_pass = render_pass(keeper, pass, &used)?;
            let of_pass: Vec<_> = drawn.iter().map(|&at| views[at]).collect();
            let info = vk::FramebufferCreateInfo::default()
                .render_pass(render_pass)
                .attachments(&of_pass)
                .width(extent[0].into())
                .height(extent[1].into())
                .layers(1);
            // SAFETY: the views are of the formats of the pass, and all as large.
            let framebuffer = unsafe { keeper.framebuffer(&info) }?;
            all.push(Target { pass, render_pass, framebuffer, extent });
        }
        Ok(Self { views, all })
    }

    /// None if the pass draws nothing.
    pub(crate) fn of(&self, pass: Pass) -> Option<&Target> {
        self.all.iter().find(|target| target.pass == pass)
    }
}

impl Target {
    /// Begins its render pass, in which all of it is drawn to.
    pub(crate) fn begin(&self, device: &ash::Device, commands: vk::CommandBuffer) {
        let [width, height] = self.extent;
        let extent = vk::Extent2D { width: width.into(), height: height.into() };
        let area = vk::Rect2D { offset: vk::Offset2D::default(), extent };
        // Of depth alone: nothing else is cleared. It comes first in the shadow's pass, second in the others.
        let depth = vk::ClearValue { depth_stencil: vk::ClearDepthStencilValue { depth: 1.0, stencil: 0 } };
        let clear = [depth, depth];
        let info = vk::RenderPassBeginInfo::default()
            .render_pass(self.render_pass)
            .framebuffer(self.framebuffer)
            .render_area(area)
            .clear_values(&clear);
        // SAFETY: the command buffer is being recorded, and the attachments are in the layouts that the pass wants.
        unsafe { device.cmd_begin_render_pass(commands, &info, vk::SubpassContents::INLINE) };
        let viewport = vk::Viewport {
            width: f32::from(width),
            height: f32::from(height),
            max_depth: 1.0,
            ..Default::default()
        };
        // SAFETY: it is as large as the self.
        unsafe { device.cmd_set_viewport(commands, 0, &[viewport]) };
        // SAFETY: as above.
        unsafe { device.cmd_set_scissor(commands, 0, &[area]) };
    }
}

/// Layouts stay as they are: the barriers before the pass have seen to that.
fn render_pass(keeper: &Keeper<'_>, pass: Pass, used: &[&Attachment]) -> Result<vk::RenderPass> {
    let mut descriptions = Vec::new();
    let (mut colour, mut depth) = (Vec::new(), vk::AttachmentReference::default());
    depth.attachment = vk::ATTACHMENT_UNUSED;
    for (number, attachment) in (0..).zip(used) {
        let how = attachment.used_in(pass).ok_or("not of this pass")?;
        let last = attachment.uses.last().is_some_and(|&(last, _)| last == pass);
        let load = match how {
            Use::Depth => vk::AttachmentLoadOp::CLEAR,
            Use::Blend => vk::AttachmentLoadOp::LOAD,
            _ => vk::AttachmentLoadOp::DONT_CARE,
        };
        let store = if last { vk::AttachmentStoreOp::DONT_CARE } else { vk::AttachmentStoreOp::STORE };
        descriptions.push(
            vk::AttachmentDescription::default()
                .format(attachment.format)
                .samples(vk::SampleCountFlags::TYPE_1)
                .load_op(load)
                .store_op(store)
                .stencil_load_op(vk::AttachmentLoadOp::DONT_CARE)
                .stencil_store_op(vk::AttachmentStoreOp::DONT_CARE)
                .initial_layout(how.layout())
                .final_layout(how.layout()),
        );
        let reference = vk::AttachmentReference { attachment: number, layout: how.layout() };
        if how == Use::Depth {
            depth = reference;
        } else {
            colour.push(reference);
        }
    }
    let subpasses = [vk::SubpassDescription::default()
        .pipeline_bind_point(vk::PipelineBindPoint::GRAPHICS)
        .color_attachments(&colour)
        .depth_stencil_attachment(&depth)];
    let info = vk::RenderPassCreateInfo::default().attachments(&descriptions).subpasses(&subpasses);
    // SAFETY: the references are those of the descriptions.
    unsafe { keeper.render_pass(&info) }
}
