//! What is rendered to: attachments, and what they are resolved to.
#![forbid(unsafe_code)]

use ash::vk;

use super::ListError;
use crate::resource::{Image, is_integer};

/// An attachment of rendering: one mip of some layers of an image.
///
/// ```
/// use ash::vk;
/// use sublet_frame::{Attachment, Image, Resolve};
///
/// fn face<'a>(samples: &'a Image, cube: &'a Image, face: u32) -> Attachment<'a> {
///     Attachment::clear(samples)
///         .clear_value(vk::ClearValue { color: vk::ClearColorValue { float32: [0.1, 0.2, 0.4, 1.0] } })
///         .store_op(vk::AttachmentStoreOp::DONT_CARE)
///         .resolve(Resolve::new(cube).mip(2).layer(face))
/// }
/// ```
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Attachment<'a> {
    /// The image.
    pub image: &'a Image,
    /// Its mip.
    pub mip: u32,
    /// Its first layer; as many are used as rendering has.
    pub layer: u32,
    /// The format of its texels in the view; that of the image without it.
    pub view_format: Option<vk::Format>,
    /// What becomes of its contents when rendering begins.
    pub load_op: vk::AttachmentLoadOp,
    /// What becomes of them when it ends.
    pub store_op: vk::AttachmentStoreOp,
    /// What it is cleared to.
    pub clear: vk::ClearValue,
    /// What gets one sample of it when rendering ends.
    pub resolve: Option<Resolve<'a>>,
    /// Depth and stencil are tested and not written, so that shaders may read them meanwhile. Where both are attached,
    /// both have to be so: they have one layout.
    pub read_only: bool,
}

impl<'a> Attachment<'a> {
    /// Mip 0, layer 0: cleared to zero, and stored.
    #[must_use]
    pub fn clear(image: &'a Image) -> Self {
        Self {
            image,
            mip: 0,
            layer: 0,
            view_format: None,
            load_op: vk::AttachmentLoadOp::CLEAR,
            store_op: vk::AttachmentStoreOp::STORE,
            clear: vk::ClearValue::default(),
            resolve: None,
            read_only: false,
        }
    }

    /// Mip 0, layer 0: as it is, and stored.
    #[must_use]
    pub fn load(image: &'a Image) -> Self {
        Self { load_op: vk::AttachmentLoadOp::LOAD, ..Self::clear(image) }
    }

    /// Another mip.
    #[must_use]
    pub fn mip(mut self, mip: u32) -> Self {
        self.mip = mip;
        self
    }

    /// Another first layer.
    #[must_use]
    pub fn layer(mut self, layer: u32) -> Self {
        self.layer = layer;
        self
    }

    /// Another format of the view: `R8G8B8A8_SRGB` of an image of `R8G8B8A8_UNORM`, for example, that was made with
    /// `MUTABLE_FORMAT` (VUID-VkImageViewCreateInfo-image-01762).
    #[must_use]
    pub fn view_format(mut self, format: vk::Format) -> Self {
        self.view_format = Some(format);
        self
    }

    /// What becomes of the contents when rendering begins.
    #[must_use]
    pub fn load_op(mut self, op: vk::AttachmentLoadOp) -> Self {
        self.load_op = op;
        self
    }

    /// What becomes of the contents when rendering ends.
    #[must_use]
    pub fn store_op(mut self, op: vk::AttachmentStoreOp) -> Self {
        self.store_op = op;
        self
    }

    /// What it is cleared to.
    #[must_use]
    pub fn clear_value(mut self, value: vk::ClearValue) -> Self {
        self.clear = value;
        self
    }

    /// What it is resolved to when rendering ends: an image, or a mip and a layer of one.
    #[must_use]
    pub fn resolve(mut self, to: impl Into<Resolve<'a>>) -> Self {
        self.resolve = Some(to.into());
        self
    }

    /// Tested and not written.
    #[must_use]
    pub fn read_only(mut self) -> Self {
        self.read_only = true;
        self
    }

    /// The format of its view.
    pub(super) fn format(&self) -> vk::Format {
        self.view_format.unwrap_or(self.image.format())
    }
}

/// What an attachment of several samples is resolved to: one mip of as many layers of an image with one sample.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Resolve<'a> {
    /// The image.
    pub image: &'a Image,
    /// Its mip.
    pub mip: u32,
    /// Its first layer.
    pub layer: u32,
    /// The format of its view, which is that of the attachment's view; that of the image without it.
    pub view_format: Option<vk::Format>,
    /// How one sample is made of several. Without it that is `AVERAGE` for colors, and `SAMPLE_ZERO` for integers, depth
    /// and stencil.
    pub mode: Option<vk::ResolveModeFlags>,
}

impl<'a> Resolve<'a> {
    /// Mip 0, layer 0, as the format wants it.
    #[must_use]
    pub fn new(image: &'a Image) -> Self {
        Self { image, mip: 0, layer: 0, view_format: None, mode: None }
    }

    /// Another mip.
    #[must_use]
    pub fn mip(mut self, mip: u32) -> Self {
        self.mip = mip;
        self
    }

    /// Another first layer.
    #[must_use]
    pub fn layer(mut self, layer: u32) -> Self {
        self.layer = layer;
        self
    }

    /// Another format of the view.
    #[must_use]
    pub fn view_format(mut self, format: vk::Format) -> Self {
        self.view_format = Some(format);
        self
    }

    /// How one sample is made of several. Colors have no choice (VUID-VkRenderingAttachmentInfo-imageView-06129, -06130);
    /// depth and stencil have one with dynamic rendering, where the device has the mode.
    #[must_use]
    pub fn mode(mut self, mode: vk::ResolveModeFlags) -> Self {
        self.mode = Some(mode);
        self
    }

    /// The format of its view.
    pub(super) fn format(&self) -> vk::Format {
        self.view_format.unwrap_or(self.image.format())
    }

    /// How an aspect is resolved.
    pub(super) fn mode_of(
        &self,
        aspect: vk::ImageAspectFlags,
        in_pass: bool,
    ) -> Result<vk::ResolveModeFlags, ListError> {
        let color = aspect == vk::ImageAspectFlags::COLOR;
        let usual = if color && !is_integer(self.format()) {
            vk::ResolveModeFlags::AVERAGE
        } else {
            vk::ResolveModeFlags::SAMPLE_ZERO
        };
        let mode = self.mode.unwrap_or(usual);
        // Render passes of Vulkan 1.0 resolve colors alone.
        let possible = if color { mode == usual } else { !in_pass && mode.as_raw().count_ones() == 1 };
        if possible { Ok(mode) } else { Err(ListError::ResolveMode { mode, aspect }) }
    }
}

impl<'a> From<&'a Image> for Resolve<'a> {
    fn from(image: &'a Image) -> Self {
        Self::new(image)
    }
}

/// What is rendered to.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct RenderingInfo<'a> {
    /// The texels that are rendered.
    pub area: vk::Rect2D,
    /// Layers of each attachment.
    pub layers: u32,
    /// The views of multiview; 0 without it.
    pub view_mask: u32,
    /// Colors, by their locations: 8 at most.
    pub colors: &'a [Option<Attachment<'a>>],
    /// Depth.
    pub depth: Option<Attachment<'a>>,
    /// Stencil: mostly the image of depth.
    pub stencil: Option<Attachment<'a>>,
}

impl<'a> RenderingInfo<'a> {
    /// All of the first mip of an attachment's extent, one layer.
    #[must_use]
    pub fn new(
        extent: vk::Extent3D,
        colors: &'a [Option<Attachment<'a>>],
        depth: Option<Attachment<'a>>,
    ) -> Self {
        let extent = vk::Extent2D { width: extent.width, height: extent.height };
        let area = vk::Rect2D { offset: vk::Offset2D::default(), extent };
        Self { area, layers: 1, view_mask: 0, colors, depth, stencil: None }
    }

    /// A part of the attachments.
    #[must_use]
    pub fn area(mut self, area: vk::Rect2D) -> Self {
        self.area = area;
        self
    }

    /// So many layers of each attachment.
    #[must_use]
    pub fn layers(mut self, layers: u32) -> Self {
        self.layers = layers;
        self
    }

    /// The views of multiview.
    #[must_use]
    pub fn view_mask(mut self, mask: u32) -> Self {
        self.view_mask = mask;
        self
    }

    /// With stencil.
    #[must_use]
    pub fn stencil(mut self, stencil: Attachment<'a>) -> Self {
        self.stencil = Some(stencil);
        self
    }
}
