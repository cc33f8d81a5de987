//! Rendering that begins when it has to.

use std::ops::Range;

use ash::vk;

use super::error::check_range;
use super::pass::Pass;
use super::{Attachment, CommandList, ListError, RenderingInfo, part};
use crate::device::{Core, Kept, MOST_COLORS};
use crate::resource::{Image, ViewInfo};
use crate::track::{ImageId, ResourceId, Subresources, Use, UseError};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// Nothing is recorded yet.
    Pending,
    Active,
    /// A barrier came between.
    Suspended,
}

/// Images that are rendered to, each followed by the one that it is resolved to: colors, depth, stencil.
const MOST_ATTACHED: usize = 2 * (MOST_COLORS + 2);

/// An image that is rendered to.
#[derive(Clone)]
struct Attached {
    image: ImageId,
    part: Subresources,
    /// The same as the tracker counts it.
    tracked: Subresources,
    usage: Use,
}

impl Attached {
    fn new(image: &Image, part: Subresources, usage: Use) -> Self {
        Self { image: image.id(), tracked: image.tracked(&part), part, usage }
    }

    /// Whether both are of the same mips and layers, where depth and stencil, or slices, have one state.
    fn is_beside(&self, other: &Self) -> bool {
        let place = |one: &Self| (one.image, one.tracked.mips.clone(), one.tracked.layers.clone());
        place(self) == place(other)
    }
}

/// Whether mips, layers and aspects have some in common.
fn meet(one: &Subresources, other: &Subresources) -> bool {
    let meet = |a: &Range<u32>, b: &Range<u32>| a.start < b.end && b.start < a.end;
    meet(&one.mips, &other.mips) && meet(&one.layers, &other.layers) && one.aspects.intersects(other.aspects)
}

/// Whether layers of a view are all of the subresources that they are in: slices may be some.
fn is_whole(image: &Image, mip: u32, layers: &Range<u32>) -> bool {
    let slices = image.facts().image_type == vk::ImageType::TYPE_3D;
    !slices || *layers == (0..image.extent(mip).depth)
}

/// Rendering that a list is in. It begins with the first draw, so that what that draw needs comes before.
pub(super) struct Rendering {
    phase: Phase,
    area: vk::Rect2D,
    layers: u32,
    view_mask: u32,
    colors: [vk::RenderingAttachmentInfo<'static>; MOST_COLORS],
    color_count: usize,
    depth: Option<vk::RenderingAttachmentInfo<'static>>,
    stencil: Option<vk::RenderingAttachmentInfo<'static>>,
    /// Ten attachments and as many resolved ones at most.
    attached: [Option<Attached>; MOST_ATTACHED],
    can_suspend: bool,
    /// Where dynamic rendering is not enabled.
    pass: Option<Pass>,
}

fn range(start: u32, count: u32) -> Range<u32> {
    start..start.saturating_add(count)
}

impl Rendering {
    /// Whether an image that shaders use is rendered to.
    pub(super) fn attaches(&self, image: ImageId, part: &Subresources) -> bool {
        self.attached.iter().flatten().any(|attached| {
            attached.image == image && attached.usage.writes() && meet(&attached.tracked, part)
        })
    }

    /// Ends it for a barrier. Fails if what is rendered would be lost.
    ///
    /// # Safety
    /// The command buffer is the one that it is in, and is being recorded by this thread alone.
    pub(super) unsafe fn suspend(
        &mut self,
        core: &Core,
        commands: vk::CommandBuffer,
    ) -> Result<(), ListError> {
        if self.phase != Phase::Active {
            return Ok(());
        }
        if !self.can_suspend {
            return Err(ListError::RenderingNeedsBarrier);
        }
        if let Some(pass) = &mut self.pass {
            // SAFETY: the list keeps the views; what they are was promised when rendering began.
            unsafe { pass.make_again(core) }.map_err(|error| core.told(ListError::Driver(error)))?;
        }
        // SAFETY: rendering is active in the command buffer.
        unsafe { core.api.end_rendering(commands) };
        let load = |info: &mut vk::RenderingAttachmentInfo<'static>| {
            info.load_op = vk::AttachmentLoadOp::LOAD;
        };
        self.colors.iter_mut().for_each(load);
        self.depth.iter_mut().for_each(load);
        self.stencil.iter_mut().for_each(load);
        for attached in self.attached.iter_mut().flatten() {
            attached.usage.discards = false;
        }
        self.phase = Phase::Suspended;
        Ok(())
    }

    /// What the list is to keep.
    ///
    /// # Safety
    /// The command buffer is being recorded by this thread alone, outside of rendering, and the attachments are in
    /// their layouts.
    unsafe fn begin(&mut self, core: &Core, commands: vk::CommandBuffer) -> Option<Kept> {
        self.phase = Phase::Active;
        if let Some(pass) = &self.pass {
            // SAFETY: the caller's promise; the area was promised when rendering began.
            return unsafe { pass.begin(core, commands, self.area) };
        }
        let mut info = vk::RenderingInfo::default()
            .render_area(self.area)
            .layer_count(self.layers)
            .view_mask(self.view_mask)
            .color_attachments(&self.colors[..self.color_count]);
        if let Some(depth) = &self.depth {
            info = info.depth_attachment(depth);
        }
        if let Some(stencil) = &self.stencil {
            info = info.stencil_attachment(stencil);
        }
        // SAFETY: the caller's promise.
        unsafe { core.api.begin_rendering(commands, &info) };
        None
    }
}

impl CommandList {
    /// Begins rendering to attachments: their layouts change, and what they lose they lose without a thought. Recorded
    /// with the first draw, so that what that needs comes before. Without dynamic rendering it is a render pass, which
    /// is made with its framebuffer where none like it is kept from before.
    ///
    /// A later draw that needs a barrier, because what it uses was written in this list, interrupts rendering: it ends,
    /// and begins again behind the barrier. That takes time on tiled GPUs; declare such uses before.
    ///
    /// # Errors
    /// [`ListError`]: nothing was recorded.
    ///
    /// # Safety
    /// Attachments, area and layers are valid as of `vkCmdBeginRendering`, also where it is a render pass, but for layouts
    /// and synchronization.
    #[doc(alias = "OMSetRenderTargets")]
    #[doc(alias = "SetRenderTarget")]
    pub unsafe fn begin_rendering(&mut self, info: &RenderingInfo<'_>) -> Result<(), ListError> {
        self.outside()?;
        let in_passes = !self.core.api.has_dynamic_rendering();
        if in_passes && !self.core.api.has_render_passes() {
            return Err(ListError::NoRendering);
        }
        self.needs_queue(vk::QueueFlags::GRAPHICS)?;
        let count = u64::try_from(info.colors.len()).unwrap_or(u64::MAX);
        check_range("colors", 0, count.max(1), MOST_COLORS.try_into().unwrap_or(0))?;
        let mut rendering = Rendering {
            phase: Phase::Pending,
            area: info.area,
            layers: info.layers,
            view_mask: info.view_mask,
            colors: [vk::RenderingAttachmentInfo::default(); MOST_COLORS],
            color_count: info.colors.len(),
            depth: None,
            stencil: None,
            attached: [const { None }; MOST_ATTACHED],
            can_suspend: true,
            pass: None,
        };
        for (at, color) in info.colors.iter().enumerate() {
            if let Some(color) = color {
                let aspect = vk::ImageAspectFlags::COLOR;
                // SAFETY: the caller's own promise.
                rendering.colors[at] = unsafe { self.attach(&mut rendering, info, color, aspect, 2 * at) }?;
            }
        }
        let (depth, stencil) = (vk::ImageAspectFlags::DEPTH, vk::ImageAspectFlags::STENCIL);
        if let Some(attachment) = &info.depth {
            // SAFETY: the caller's own promise.
            let made = unsafe { self.attach(&mut rendering, info, attachment, depth, 2 * MOST_COLORS) };
            rendering.depth = Some(made?);
        }
        if let Some(attachment) = &info.stencil {
            // SAFETY: the caller's own promise.
            let made = unsafe { self.attach(&mut rendering, info, attachment, stencil, 2 * MOST_COLORS + 2) };
            rendering.stencil = Some(made?);
        }
        if in_passes {
            let Rendering { colors, depth, stencil, .. } = &rendering;
            let mut pass = Pass::new(info, colors, depth.as_ref(), stencil.as_ref());
            // SAFETY: the list keeps the views; that the device can render to them so is the caller's promise.
            unsafe { pass.make(&self.core) }.map_err(|error| self.core.told(ListError::Driver(error)))?;
            rendering.pass = Some(pass);
        }
        self.declare_attached(&rendering)?;
        self.flush()?;
        self.rendering = Some(rendering);
        Ok(())
    }

    /// Ends rendering.
    ///
    /// # Errors
    /// [`ListError::OutsideRendering`] if it was not begun.
    pub fn end_rendering(&mut self) -> Result<(), ListError> {
        self.inside()?;
        // Without a draw attachments are still cleared and stored.
        self.resume_rendering();
        self.rendering = None;
        // SAFETY: rendering is active in the list, which is being recorded by its owner.
        unsafe { self.core.api.end_rendering(self.pool.main) };
        Ok(())
    }

    /// Makes rendering active, if the list is in any.
    pub(super) fn resume_rendering(&mut self) {
        if self.rendering.as_ref().is_none_or(|rendering| rendering.phase == Phase::Active) {
            return;
        }
        let Some(mut rendering) = self.rendering.take() else { return };
        if rendering.phase == Phase::Suspended {
            // What was stored is loaded. A use that fails makes the list one that cannot be submitted.
            let _ = self.declare_attached(&rendering).and_then(|()| self.flush());
        }
        // SAFETY: the list is being recorded by its owner, outside of rendering, and the attachments are in their
        // layouts; what they are was promised when rendering began.
        let kept = unsafe { rendering.begin(&self.core, self.pool.main) };
        self.pool.kept.extend(kept);
        self.rendering = Some(rendering);
    }

    /// Declares what is rendered to: once where depth and stencil are of one image, or slices of one mip.
    fn declare_attached(&mut self, rendering: &Rendering) -> Result<(), ListError> {
        let attached = &rendering.attached;
        self.declare(|recorder| {
            for (at, one) in attached.iter().enumerate() {
                let Some(one) = one else { continue };
                let mut before = attached[..at].iter().flatten();
                if before.clone().any(|other| other.image == one.image && meet(&other.part, &one.part)) {
                    return Err(UseError::Twice { resource: ResourceId::from(one.image) });
                }
                if before.any(|other| other.is_beside(one)) {
                    continue;
                }
                let beside = attached[at + 1..].iter().flatten().filter(|other| other.is_beside(one));
                let (aspects, usage) = beside
                    .fold((one.tracked.aspects, one.usage), |(aspects, usage), other| {
                        (aspects | other.tracked.aspects, usage | other.usage)
                    });
                recorder.use_image(one.image, &one.tracked.clone().aspects(aspects), usage)?;
            }
            Ok(())
        })
    }

    /// # Safety
    /// As of [`begin_rendering`](Self::begin_rendering).
    unsafe fn attach(
        &mut self,
        rendering: &mut Rendering,
        info: &RenderingInfo<'_>,
        attachment: &Attachment<'_>,
        aspect: vk::ImageAspectFlags,
        at: usize,
    ) -> Result<vk::RenderingAttachmentInfo<'static>, ListError> {
        let Attachment { image, mip, layer, load_op, store_op, clear, resolve, .. } = *attachment;
        let in_passes = !self.core.api.has_dynamic_rendering();
        let color = aspect == vk::ImageAspectFlags::COLOR;
        let needs = match color {
            true => vk::ImageUsageFlags::COLOR_ATTACHMENT,
            false => vk::ImageUsageFlags::DEPTH_STENCIL_ATTACHMENT,
        };
        // With multiview the views are layers.
        let layers = info.layers.max(u32::BITS - info.view_mask.leading_zeros()).max(1);
        // SAFETY: the caller's own promise.
        let view =
            unsafe { self.attachment_view(image, attachment.format(), mip, range(layer, layers), needs) }?;
        let size = image.extent(mip);
        let full = info.area.offset == vk::Offset2D::default()
            && (info.area.extent.width, info.area.extent.height) == (size.width, size.height);
        let mut usage = if color { Use::COLOR_ATTACHMENT } else { Use::DEPTH_ATTACHMENT };
        // Depth and stencil have one layout.
        let read_only = [&info.depth, &info.stencil].iter().all(|one| one.is_none_or(|one| one.read_only));
        if read_only && !color {
            usage.layout = vk::ImageLayout::DEPTH_STENCIL_READ_ONLY_OPTIMAL;
            if store_op == vk::AttachmentStoreOp::NONE {
                usage.access = vk::AccessFlags2::DEPTH_STENCIL_ATTACHMENT_READ;
            }
        }
        usage.discards = full && load_op != vk::AttachmentLoadOp::LOAD && image.aspects() == aspect;
        usage.discards &= is_whole(image, mip, &range(layer, layers));
        // A render pass has depth and stencil of an image, and keeps the one that is not attached by writing it.
        let alone = info.depth.is_none() || info.stencil.is_none();
        let kept = !color && alone && in_passes;
        let aspects = if kept { image.aspects() } else { aspect };
        let part = Subresources::ALL.mips(mip..mip + 1).layers(range(layer, layers)).aspects(aspects);
        if resolve.is_some() && !color {
            usage.stages |= Use::COLOR_ATTACHMENT.stages;
            usage.access |= vk::AccessFlags2::COLOR_ATTACHMENT_READ;
        }
        rendering.attached[at] = Some(Attached::new(image, part, usage));
        rendering.can_suspend &= store_op == vk::AttachmentStoreOp::STORE && resolve.is_none();
        let mut made = vk::RenderingAttachmentInfo::default()
            .image_view(view)
            .image_layout(usage.layout)
            .load_op(load_op)
            .store_op(store_op)
            .clear_value(clear);
        if let Some(target) = resolve {
            let mode = target.mode_of(aspect, in_passes)?;
            let layers = range(target.layer, layers);
            let format = target.format();
            // SAFETY: the caller's own promise.
            let view =
                unsafe { self.attachment_view(target.image, format, target.mip, layers.clone(), needs) }?;
            // The layout is that of any attachment, and the rest that of colors, also of depth and stencil: "Render Pass
            // Multisample Resolve Operations" of the specification.
            let layout = if color { Use::COLOR_ATTACHMENT.layout } else { Use::DEPTH_ATTACHMENT.layout };
            made = made.resolve_mode(mode).resolve_image_view(view).resolve_image_layout(layout);
            let whole = target.image.aspects() == aspect && is_whole(target.image, target.mip, &layers);
            let part = Subresources::ALL.mips(target.mip..target.mip + 1).layers(layers).aspects(aspect);
            let discards = full && whole;
            let usage = Use { layout, discards, ..Use::COLOR_ATTACHMENT };
            rendering.attached[at + 1] = Some(Attached::new(target.image, part, usage));
        }
        Ok(made)
    }

    /// # Safety
    /// The image can have the view.
    unsafe fn attachment_view(
        &mut self,
        image: &Image,
        format: vk::Format,
        mip: u32,
        layers: Range<u32>,
        needs: vk::ImageUsageFlags,
    ) -> Result<vk::ImageView, ListError> {
        part::needs(image, needs)?;
        check_range("mips", mip.into(), u64::from(mip) + 1, image.mips().into())?;
        let there = image.facts().layers_of(vk::ImageViewType::TYPE_2D, mip);
        check_range("layers", layers.start.into(), layers.end.into(), there.into())?;
        self.keep_image(image)?;
        let view_type = match layers.len() {
            1 => vk::ImageViewType::TYPE_2D,
            _ => vk::ImageViewType::TYPE_2D_ARRAY,
        };
        let part = Subresources::ALL.mips(mip..mip + 1).layers(layers);
        let info = ViewInfo { view_type, format, part };
        // SAFETY: the caller's own promise.
        let view = unsafe { image.view_with(&info) };
        view.map_err(|error| self.core.told(ListError::View(error)))
    }
}
