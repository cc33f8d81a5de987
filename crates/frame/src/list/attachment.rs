//! Attachments and their resolve targets.

use ash::vk;

use super::ListError;
use crate::resource::{Image, is_integer};

/// An attachment: one mip and some layers of an image.
///
/// ```
/// use ash::vk;
/// use sublet_frame::{Attachment, Image, Resolve};
///
/// fn face<'a>(samples: &'a Image, cube: &'a Image, face: u32) -> Attachment<'a> {
///     Attachment {
///         clear: vk::ClearValue { color: vk::ClearColorValue { float32: [0.1, 0.2, 0.4, 1.0] } },
///         store_op: vk::AttachmentStoreOp::DONT_CARE,
///         resolve: Some(Resolve { mip: 2, layer: face, ..Resolve::new(cube) }),
///         ..Attachment::clear(samples)
///     }
/// }
/// ```
#[derive(Clone, Copy)]
pub struct Attachment<'a> {
    /// The image.
    pub image: &'a Image,
    /// The mip.
    pub mip: u32,
    /// The first layer. [`RenderingInfo::layers`] is the number of layers.
    pub layer: u32,
    /// The format of the view; `None` for the format of the image. It may be `R8G8B8A8_SRGB`, for example, for an image
    /// of `R8G8B8A8_UNORM` created with `MUTABLE_FORMAT` (VUID-VkImageViewCreateInfo-image-01762).
    pub view_format: Option<vk::Format>,
    /// The load operation.
    pub load_op: vk::AttachmentLoadOp,
    /// The store operation.
    pub store_op: vk::AttachmentStoreOp,
    /// The clear value.
    pub clear: vk::ClearValue,
    /// The resolve target.
    pub resolve: Option<Resolve<'a>>,
    /// Depth and stencil are tested but not written, so that shaders may read them meanwhile. If both are attached,
    /// both must be read-only, because they share one layout.
    pub read_only: bool,
}

impl<'a> Attachment<'a> {
    /// Creates an attachment with mip 0 and layer 0, cleared to zero and stored.
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

    /// Creates an attachment with mip 0 and layer 0, loaded and stored.
    #[must_use]
    pub fn load(image: &'a Image) -> Self {
        Self { load_op: vk::AttachmentLoadOp::LOAD, ..Self::clear(image) }
    }

    pub(super) fn format(&self) -> vk::Format {
        self.view_format.unwrap_or(self.image.format())
    }
}

/// The resolve target of a multisampled attachment: one mip of a single-sampled image, with the same number of layers.
#[derive(Clone, Copy)]
pub struct Resolve<'a> {
    /// The image.
    pub image: &'a Image,
    /// The mip.
    pub mip: u32,
    /// The first layer.
    pub layer: u32,
    /// The format of the view, which must be that of the attachment's view; `None` for the format of the image.
    pub view_format: Option<vk::Format>,
    /// The resolve mode. The default is `AVERAGE` for colors, and `SAMPLE_ZERO` for integers, depth and stencil. Colors
    /// support only the default (VUID-VkRenderingAttachmentInfo-imageView-06129, -06130). Depth and stencil require
    /// dynamic rendering and a mode that the device supports.
    pub mode: Option<vk::ResolveModeFlags>,
}

impl<'a> Resolve<'a> {
    /// Creates a target with mip 0 and layer 0, and the default mode.
    #[must_use]
    pub fn new(image: &'a Image) -> Self {
        Self { image, mip: 0, layer: 0, view_format: None, mode: None }
    }

    pub(super) fn format(&self) -> vk::Format {
        self.view_format.unwrap_or(self.image.format())
    }

    /// Returns the resolve mode of an aspect.
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
        // Render passes of Vulkan 1.0 resolve only colors.
        let possible = if color { mode == usual } else { !in_pass && mode.as_raw().count_ones() == 1 };
        if possible { Ok(mode) } else { Err(ListError::ResolveMode { mode, aspect }) }
    }
}

/// Parameters of rendering.
#[derive(Clone, Copy)]
pub struct RenderingInfo<'a> {
    /// The render area in texels.
    pub area: vk::Rect2D,
    /// Number of layers of each attachment.
    pub layers: u32,
    /// The view mask of multiview, or 0.
    pub view_mask: u32,
    /// Color attachments by location, at most 8.
    pub colors: &'a [Option<Attachment<'a>>],
    /// The depth attachment.
    pub depth: Option<Attachment<'a>>,
    /// The stencil attachment, usually of the same image as depth.
    pub stencil: Option<Attachment<'a>>,
}

impl<'a> RenderingInfo<'a> {
    /// Creates an info for one layer and the whole extent.
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
}
