//! Render passes and framebuffers.

use std::sync::Arc;

use ash::vk;

use crate::objects::handle_map::HandleMap;
use crate::objects::host_bytes::HostBytes;

/// Render passes and framebuffers of a device.
#[derive(Default)]
pub(crate) struct PassState {
    pub(crate) passes: HandleMap<vk::RenderPass, RenderPass>,
    pub(crate) framebuffers: HandleMap<vk::Framebuffer, Framebuffer>,
}

/// A `VkRenderPass`.
pub(crate) struct RenderPass {
    pub(crate) info: Arc<PassDescription>,
    /// Submissions that are not done and begin it.
    pub(crate) in_use: u32,
    pub(crate) host: HostBytes,
}

/// A `VkFramebuffer`.
pub(crate) struct Framebuffer {
    /// The render pass that it was created with.
    pub(crate) pass: Arc<PassDescription>,
    pub(crate) views: Vec<vk::ImageView>,
    pub(crate) extent: vk::Extent2D,
    pub(crate) layers: u32,
    /// Submissions that are not done and begin a pass with it.
    pub(crate) in_use: u32,
    pub(crate) host: HostBytes,
}

/// The attachments of a subpass, or those that a pipeline is for. Passes, or pipelines, are compatible if these are the
/// same.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Formats {
    /// By location; `UNDEFINED` where there is none.
    pub(crate) colors: Vec<vk::Format>,
    pub(crate) depth: vk::Format,
    pub(crate) stencil: vk::Format,
    /// `None` if nothing is attached.
    pub(crate) samples: Option<vk::SampleCountFlags>,
    pub(crate) view_mask: u32,
    /// True if they are those of a render pass, and not of dynamic rendering.
    pub(crate) in_pass: bool,
}

/// A render pass of one subpass.
#[derive(Debug)]
pub(crate) struct PassDescription {
    pub(crate) attachments: Vec<vk::AttachmentDescription>,
    /// Which attachments its subpass has: an index, and the layout meanwhile.
    pub(crate) colors: Vec<Option<(usize, vk::ImageLayout)>>,
    pub(crate) resolves: Vec<Option<(usize, vk::ImageLayout)>>,
    pub(crate) depth_stencil: Option<(usize, vk::ImageLayout)>,
    pub(crate) formats: Formats,
    /// The dependencies into the pass, and out of it.
    pub(crate) before: Vec<vk::SubpassDependency>,
    pub(crate) behind: Vec<vk::SubpassDependency>,
}
