//! Rendering with render passes, for devices without dynamic rendering.
#![expect(unsafe_code, reason = "calls Vulkan")]

use std::sync::Arc;

use ash::vk;
use sublet::device::DriverError;

use super::error::check_range;
use super::{ListError, RenderingInfo};
use crate::device::{
    DEPTH_STENCIL, DeviceCore, FramebufferInfo, KeptObject, MOST_COLORS, PassAttachment, PassInfo, RESOLVES,
    SLOTS, Shared,
};
use crate::track::Use;

/// The attachments of a pipeline, as `VkPipelineRenderingCreateInfo` describes them for dynamic rendering.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RenderPassInfo<'a> {
    /// Color formats by location, at most 8. `UNDEFINED` for an unused location.
    pub colors: &'a [vk::Format],
    /// The format of the depth and stencil image, or `UNDEFINED`.
    pub depth_stencil: vk::Format,
    /// Samples of each attachment.
    pub samples: vk::SampleCountFlags,
    /// The view mask of multiview, or 0.
    pub view_mask: u32,
}

impl<'a> RenderPassInfo<'a> {
    /// Creates an info with one sample and without multiview.
    #[must_use]
    pub const fn new(colors: &'a [vk::Format], depth_stencil: vk::Format) -> Self {
        Self { colors, depth_stencil, samples: vk::SampleCountFlags::TYPE_1, view_mask: 0 }
    }

    /// Returns the render pass, which lives as long as the core; null with dynamic rendering.
    ///
    /// # Safety
    /// The device supports these attachments.
    pub(crate) unsafe fn pass(&self, core: &DeviceCore) -> Result<vk::RenderPass, ListError> {
        if core.api.has_dynamic_rendering() {
            return Ok(vk::RenderPass::null());
        }
        if !core.api.has_render_passes() {
            return Err(ListError::NoRendering);
        }
        let count = u64::try_from(self.colors.len()).unwrap_or(u64::MAX);
        check_range("colors", 0, count.max(1), MOST_COLORS.try_into().unwrap_or(0))?;
        let attachment = |format, layout| {
            (format != vk::Format::UNDEFINED).then(|| PassAttachment::of(format, self.samples, layout))
        };
        let (color_count, view_mask) = (self.colors.len(), self.view_mask);
        let mut info = PassInfo { color_count, view_mask, ..PassInfo::default() };
        for (slot, &format) in info.attachments.iter_mut().zip(self.colors) {
            *slot = attachment(format, Use::COLOR_ATTACHMENT.layout);
        }
        info.attachments[DEPTH_STENCIL] = attachment(self.depth_stencil, Use::DEPTH_ATTACHMENT.layout);
        // SAFETY: frames and device outlive the lists; the caller guarantees the rest.
        let pass = unsafe { core.render_passes.pass(core.api.device(), &info, true) };
        pass.map(|pass| pass.handle).map_err(|error| core.or_lost(ListError::Driver(error)))
    }
}

/// The objects that rendering begins with.
type PassObjects = (Arc<Shared<vk::RenderPass>>, Arc<Shared<vk::Framebuffer>>);

pub(super) struct ListPass {
    info: PassInfo,
    framebuffer: FramebufferInfo,
    /// Indexed by slot.
    clears: [vk::ClearValue; SLOTS],
    made: Option<PassObjects>,
}

/// Returns the operations that preserve an aspect that is not attached while the other aspect of its image is.
fn unattached_ops(store_op: vk::AttachmentStoreOp) -> (vk::AttachmentLoadOp, vk::AttachmentStoreOp) {
    let none = store_op == vk::AttachmentStoreOp::NONE;
    (vk::AttachmentLoadOp::LOAD, if none { store_op } else { vk::AttachmentStoreOp::STORE })
}

impl ListPass {
    /// Describes `info`, with the views and layouts of the attachments.
    pub(super) fn new(
        info: &RenderingInfo<'_>,
        colors: &[vk::RenderingAttachmentInfo<'_>],
        depth: Option<&vk::RenderingAttachmentInfo<'_>>,
        stencil: Option<&vk::RenderingAttachmentInfo<'_>>,
    ) -> Self {
        let layers = if info.view_mask == 0 { info.layers.max(1) } else { 1 };
        let (color_count, view_mask) = (info.colors.len(), info.view_mask);
        let extent = vk::Extent2D { width: u32::MAX, height: u32::MAX };
        let mut pass = Self {
            info: PassInfo { color_count, view_mask, ..PassInfo::default() },
            framebuffer: FramebufferInfo { extent, layers, view_mask, ..FramebufferInfo::default() },
            clears: [vk::ClearValue::default(); SLOTS],
            made: None,
        };
        for (at, (color, made)) in info.colors.iter().zip(colors).enumerate() {
            let Some(color) = color else { continue };
            let mut attachment =
                PassAttachment::of(color.format(), color.image.facts().samples, made.image_layout);
            (attachment.load_op, attachment.store_op) = (made.load_op, made.store_op);
            pass.attach(at, attachment, made.image_view, color.image.extent(color.mip));
            pass.clears[at] = made.clear_value;
            if let Some(target) = color.resolve {
                let mut attachment = PassAttachment::of(
                    target.format(),
                    vk::SampleCountFlags::TYPE_1,
                    made.resolve_image_layout,
                );
                attachment.store_op = vk::AttachmentStoreOp::STORE;
                pass.attach(
                    RESOLVES + at,
                    attachment,
                    made.resolve_image_view,
                    target.image.extent(target.mip),
                );
            }
        }
        if let Some((image, made)) = info.depth.as_ref().or(info.stencil.as_ref()).zip(depth.or(stencil)) {
            let (format, mip, image) = (image.format(), image.mip, image.image);
            let ops = |one: Option<&vk::RenderingAttachmentInfo<'_>>| {
                one.map_or_else(|| unattached_ops(made.store_op), |one| (one.load_op, one.store_op))
            };
            let mut attachment = PassAttachment::of(format, image.facts().samples, made.image_layout);
            (attachment.load_op, attachment.store_op) = ops(depth);
            (attachment.stencil_load_op, attachment.stencil_store_op) = ops(stencil);
            pass.attach(DEPTH_STENCIL, attachment, made.image_view, image.extent(mip));
            let value = |one: Option<&vk::RenderingAttachmentInfo<'_>>| {
                let clear = one.map_or_else(vk::ClearValue::default, |one| one.clear_value);
                // SAFETY: any bits are valid numbers, and a clear of depth or stencil has set these.
                unsafe { clear.depth_stencil }
            };
            let (depth, stencil) = (value(depth).depth, value(stencil).stencil);
            pass.clears[DEPTH_STENCIL].depth_stencil = vk::ClearDepthStencilValue { depth, stencil };
        }
        if pass.framebuffer.extent == extent {
            // There are no attachments.
            let end = |offset: i32, size: u32| u32::try_from(offset).unwrap_or(0).saturating_add(size);
            let vk::Rect2D { offset, extent } = info.area;
            let (width, height) = (end(offset.x, extent.width), end(offset.y, extent.height));
            pass.framebuffer.extent = vk::Extent2D { width, height };
        }
        pass
    }

    fn attach(&mut self, slot: usize, attachment: PassAttachment, view: vk::ImageView, size: vk::Extent3D) {
        self.info.attachments[slot] = Some(attachment);
        let FramebufferInfo { views, extent, .. } = &mut self.framebuffer;
        views[slot] = view;
        (extent.width, extent.height) = (extent.width.min(size.width), extent.height.min(size.height));
    }

    /// Creates the render pass and framebuffer, or takes them from the cache.
    ///
    /// # Safety
    /// The views live until the list is done, and the device supports rendering to them.
    pub(super) unsafe fn make(&mut self, core: &DeviceCore) -> Result<(), DriverError> {
        let device = core.api.device();
        // SAFETY: the caller's own promise; frames and device outlive the lists.
        let pass = unsafe { core.render_passes.pass(device, &self.info, false) };
        let pass = pass.map_err(|error| core.record_error(error))?;
        // SAFETY: as above; both have the same attachments.
        let framebuffer = unsafe { core.render_passes.framebuffer(device, &self.framebuffer, pass.handle) };
        self.made = Some((pass, framebuffer.map_err(|error| core.record_error(error))?));
        Ok(())
    }

    /// Creates the render pass for continuing after an interruption: it loads all attachments.
    ///
    /// # Safety
    /// See [`make`](Self::make).
    pub(super) unsafe fn recreate(&mut self, core: &DeviceCore) -> Result<(), DriverError> {
        for attachment in self.info.attachments.iter_mut().flatten() {
            attachment.load_op = vk::AttachmentLoadOp::LOAD;
            attachment.stencil_load_op = vk::AttachmentLoadOp::LOAD;
        }
        // SAFETY: the caller's own promise.
        unsafe { self.make(core) }
    }

    /// Begins the render pass. The list must keep the result.
    ///
    /// # Safety
    /// Only this thread records the command buffer, outside of rendering. Attachments are in their layouts, and contain
    /// the area.
    pub(super) unsafe fn begin(
        &self,
        core: &DeviceCore,
        commands: vk::CommandBuffer,
        area: vk::Rect2D,
    ) -> Option<KeptObject> {
        let (pass, framebuffer) = self.made.as_ref()?;
        let (mut clears, mut count) = ([vk::ClearValue::default(); SLOTS], 0);
        for (clear, _) in self.clears.iter().zip(&self.info.attachments).filter(|(_, one)| one.is_some()) {
            clears[count] = *clear;
            count += 1;
        }
        let info = vk::RenderPassBeginInfo::default()
            .render_pass(pass.handle)
            .framebuffer(framebuffer.handle)
            .render_area(area)
            .clear_values(&clears[..count]);
        // SAFETY: the caller's promise; the framebuffer matches the pass.
        unsafe { core.api.begin_pass(commands, &info) };
        Some(KeptObject::Pass(Arc::clone(pass), Arc::clone(framebuffer)))
    }
}
