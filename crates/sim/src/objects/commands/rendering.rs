//! Rendering: its attachments and its area.

use ash::vk;

use crate::objects::commands::{ImageTarget, RecordedCommand};
use crate::objects::passes::Formats;

/// An attachment, or what one is resolved to.
#[derive(Clone, Copy)]
pub(crate) struct AttachmentTarget {
    pub(crate) target: ImageTarget,
    /// One aspect of one level.
    pub(crate) layers: vk::ImageSubresourceLayers,
    /// That of the view.
    pub(crate) format: vk::Format,
}

/// Which attachment one is: a color has a location.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AttachmentSlot {
    Color(usize),
    Depth,
    Stencil,
}

#[derive(Clone)]
pub(crate) struct RenderingAttachment {
    pub(crate) slot: AttachmentSlot,
    pub(crate) to: AttachmentTarget,
    pub(crate) load: vk::AttachmentLoadOp,
    pub(crate) store: vk::AttachmentStoreOp,
    /// The bytes of a texel, if it is cleared, or if what is there need not be kept.
    pub(crate) fill: Option<Vec<u8>>,
    pub(crate) resolve: Option<AttachmentTarget>,
}

/// Rendering, from its begin to its end.
pub(crate) struct BegunRendering {
    /// One for each view and attachment.
    pub(crate) attachments: Vec<RenderingAttachment>,
    pub(crate) area: vk::Rect2D,
    /// The formats that pipelines must be created for.
    pub(crate) formats: Formats,
    /// `None` in dynamic rendering.
    pub(crate) pass: Option<BegunPass>,
}

/// A render pass that has begun.
pub(crate) struct BegunPass {
    pub(crate) pass: vk::RenderPass,
    pub(crate) framebuffer: vk::Framebuffer,
    /// The commands to run when it has ended.
    pub(crate) behind: Vec<RecordedCommand>,
}

/// The bytes of the largest texel.
pub(crate) const LARGEST: usize = 32;

impl BegunRendering {
    /// All that is attached, also what others are resolved to.
    pub(crate) fn attached(&self) -> impl Iterator<Item = &AttachmentTarget> {
        self.attachments
            .iter()
            .flat_map(|attachment| std::iter::once(&attachment.to).chain(&attachment.resolve))
    }

    /// The offset and the size of the render area in each layer.
    pub(crate) fn place(&self) -> (vk::Offset3D, vk::Extent3D) {
        let vk::Rect2D { offset, extent } = self.area;
        (vk::Offset3D { x: offset.x, y: offset.y, z: 0 }, extent.into())
    }

    /// The region that is resolved when rendering ends.
    pub(crate) fn resolved(
        &self,
        from: vk::ImageSubresourceLayers,
        to: vk::ImageSubresourceLayers,
    ) -> vk::ImageResolve {
        let (offset, extent) = self.place();
        vk::ImageResolve {
            src_subresource: from,
            src_offset: offset,
            dst_subresource: to,
            dst_offset: offset,
            extent,
        }
    }
}
