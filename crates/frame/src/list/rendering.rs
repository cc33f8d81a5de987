//! Rendering that begins with the first draw.
#![expect(unsafe_code, reason = "calls Vulkan")]

use std::ops::Range;

use ash::vk;

use super::error::check_range;
use super::pass::ListPass;
use super::{Attachment, CommandList, ListError, RenderingInfo, part};
use crate::device::{DeviceCore, KeptObject, MOST_COLORS};
use crate::resource::{Image, ViewInfo};
use crate::track::{ImageId, ResourceId, Subresources, Use, UseError};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum RenderingPhase {
    /// Not recorded yet.
    Pending,
    Active,
    /// Interrupted by a barrier.
    Suspended,
}

/// Maximum number of attached images: colors, depth and stencil, each followed by its resolve target.
const MOST_ATTACHED: usize = 2 * (MOST_COLORS + 2);

#[derive(Clone)]
struct AttachedImage {
    image: ImageId,
    part: Subresources,
    /// `part` in tracked subresources.
    tracked: Subresources,
    usage: Use,
}

impl AttachedImage {
    fn new(image: &Image, part: Subresources, usage: Use) -> Self {
        Self { image: image.id(), tracked: image.tracked(&part), part, usage }
    }

    /// Returns true if both have the same mips and layers, so that they may share one state: depth and stencil, or
    /// slices.
    fn is_beside(&self, other: &Self) -> bool {
        let key = |one: &Self| (one.image, one.tracked.mips.clone(), one.tracked.layers.clone());
        key(self) == key(other)
    }
}

/// Returns true if the parts overlap.
fn meet(one: &Subresources, other: &Subresources) -> bool {
    let meet = |a: &Range<u32>, b: &Range<u32>| a.start < b.end && b.start < a.end;
    meet(&one.mips, &other.mips) && meet(&one.layers, &other.layers) && one.aspects.intersects(other.aspects)
}

/// Returns true if the layers of a view cover their subresources. Slices may cover only a part.
fn is_whole(image: &Image, mip: u32, layers: &Range<u32>) -> bool {
    let slices = image.facts().image_type == vk::ImageType::TYPE_3D;
    !slices || *layers == (0..image.extent(mip).depth)
}

/// The rendering of a list. It begins with the first draw, so that the barriers of that draw come before it.
pub(super) struct ListRendering {
    phase: RenderingPhase,
    area: vk::Rect2D,
    layers: u32,
    view_mask: u32,
    colors: [vk::RenderingAttachmentInfo<'static>; MOST_COLORS],
    color_count: usize,
    depth: Option<vk::RenderingAttachmentInfo<'static>>,
    stencil: Option<vk::RenderingAttachmentInfo<'static>>,
    /// At most ten attachments, each with a resolve target.
    attached: [Option<AttachedImage>; MOST_ATTACHED],
    can_suspend: bool,
    /// Set without dynamic rendering.
    pass: Option<ListPass>,
}

fn range(start: u32, count: u32) -> Range<u32> {
    start..start.saturating_add(count)
}

impl ListRendering {
    /// Returns true if shaders would read an image that is rendered to.
    pub(super) fn attaches(&self, image: ImageId, part: &Subresources) -> bool {
        self.attached.iter().flatten().any(|attached| {
            attached.image == image && attached.usage.writes() && meet(&attached.tracked, part)
        })
    }

    /// Ends rendering for a barrier. Fails if that would lose results.
    ///
    /// # Safety
    /// Rendering is in this command buffer, and only this thread records it.
    pub(super) unsafe fn suspend(
        &mut self,
        core: &DeviceCore,
        commands: vk::CommandBuffer,
    ) -> Result<(), ListError> {
        if self.phase != RenderingPhase::Active {
            return Ok(());
        }
        if !self.can_suspend {
            return Err(ListError::RenderingNeedsBarrier);
        }
        if let Some(pass) = &mut self.pass {
            // SAFETY: the list keeps the views; the caller of `begin_rendering` guarantees them.
            unsafe { pass.recreate(core) }.map_err(|error| core.or_lost(ListError::Driver(error)))?;
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
        self.phase = RenderingPhase::Suspended;
        Ok(())
    }

    /// Begins rendering. Returns the objects that the list must keep.
    ///
    /// # Safety
    /// Only this thread records the command buffer, outside of rendering, and the attachments are in their layouts.
    unsafe fn begin(&mut self, core: &DeviceCore, commands: vk::CommandBuffer) -> Option<KeptObject> {
        self.phase = RenderingPhase::Active;
        if let Some(pass) = &self.pass {
            // SAFETY: the caller's promise; the caller of `begin_rendering` guarantees the area.
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
    /// Begins rendering to attachments, including their layout transitions. It is recorded with the first draw, so that
    /// the barriers of that draw come before it. Without dynamic rendering, it is a render pass with a framebuffer,
    /// created or taken from a cache.
    ///
    /// A later draw interrupts rendering if it needs a barrier for a resource that this list has written: rendering
    /// ends, and begins again after the barrier. That is slow on tiled GPUs. Declare such uses before rendering begins.
    ///
    /// # Errors
    /// See [`ListError`]; nothing was recorded.
    ///
    /// # Safety
    /// Attachments, area and layers are valid for `vkCmdBeginRendering`, except for layouts and synchronization. This
    /// also applies to render passes.
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
        let mut rendering = ListRendering {
            phase: RenderingPhase::Pending,
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
            let ListRendering { colors, depth, stencil, .. } = &rendering;
            let mut pass = ListPass::new(info, colors, depth.as_ref(), stencil.as_ref());
            // SAFETY: the list keeps the views; the caller guarantees that the device supports rendering to them.
            unsafe { pass.make(&self.core) }.map_err(|error| self.core.or_lost(ListError::Driver(error)))?;
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
    /// [`ListError::OutsideRendering`] if rendering was not begun.
    pub fn end_rendering(&mut self) -> Result<(), ListError> {
        self.inside()?;
        // Attachments are cleared and stored even without a draw.
        self.resume_rendering();
        self.rendering = None;
        // SAFETY: rendering is active in the list, which is being recorded by its owner.
        unsafe { self.core.api.end_rendering(self.pool.main) };
        Ok(())
    }

    /// Begins pending or suspended rendering, if the list has any.
    pub(super) fn resume_rendering(&mut self) {
        if self.rendering.as_ref().is_none_or(|rendering| rendering.phase == RenderingPhase::Active) {
            return;
        }
        let Some(mut rendering) = self.rendering.take() else { return };
        if rendering.phase == RenderingPhase::Suspended {
            // Stored attachments are loaded again. A failed use marks the list as incomplete.
            let _ = self.declare_attached(&rendering).and_then(|()| self.flush());
        }
        // SAFETY: the owner records the list, outside of rendering, and the attachments are in their layouts. The
        // caller of `begin_rendering` guarantees the attachments.
        let kept = unsafe { rendering.begin(&self.core, self.pool.main) };
        self.pool.kept.extend(kept);
        self.rendering = Some(rendering);
    }

    /// Declares the attachments: one use for depth and stencil of one image, and for slices of one mip.
    fn declare_attached(&mut self, rendering: &ListRendering) -> Result<(), ListError> {
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
    /// See [`begin_rendering`](Self::begin_rendering).
    unsafe fn attach(
        &mut self,
        rendering: &mut ListRendering,
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
        // Depth and stencil share one layout.
        let read_only = [&info.depth, &info.stencil].iter().all(|one| one.is_none_or(|one| one.read_only));
        if read_only && !color {
            usage.layout = vk::ImageLayout::DEPTH_STENCIL_READ_ONLY_OPTIMAL;
            if store_op == vk::AttachmentStoreOp::NONE {
                usage.access = vk::AccessFlags2::DEPTH_STENCIL_ATTACHMENT_READ;
            }
        }
        usage.discards = full && load_op != vk::AttachmentLoadOp::LOAD && image.aspects() == aspect;
        usage.discards &= is_whole(image, mip, &range(layer, layers));
        // A render pass attaches depth and stencil together, and preserves the missing one by writing it.
        let alone = info.depth.is_none() || info.stencil.is_none();
        let kept = !color && alone && in_passes;
        let aspects = if kept { image.aspects() } else { aspect };
        let part = Subresources::ALL.mips(mip..mip + 1).layers(range(layer, layers)).aspects(aspects);
        if resolve.is_some() && !color {
            usage.stages |= Use::COLOR_ATTACHMENT.stages;
            usage.access |= vk::AccessFlags2::COLOR_ATTACHMENT_READ;
        }
        rendering.attached[at] = Some(AttachedImage::new(image, part, usage));
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
            // The layout is that of an attachment. Stages and accesses are those of colors, even for depth and stencil:
            // see "Render Pass Multisample Resolve Operations" in the specification.
            let layout = if color { Use::COLOR_ATTACHMENT.layout } else { Use::DEPTH_ATTACHMENT.layout };
            made = made.resolve_mode(mode).resolve_image_view(view).resolve_image_layout(layout);
            let whole = target.image.aspects() == aspect && is_whole(target.image, target.mip, &layers);
            let part = Subresources::ALL.mips(target.mip..target.mip + 1).layers(layers).aspects(aspect);
            let discards = full && whole;
            let usage = Use { layout, discards, ..Use::COLOR_ATTACHMENT };
            rendering.attached[at + 1] = Some(AttachedImage::new(target.image, part, usage));
        }
        Ok(made)
    }

    /// # Safety
    /// The image supports the view.
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
        view.map_err(|error| self.core.or_lost(ListError::View(error)))
    }
}
