//! Render passes of one subpass, and framebuffers.
#![expect(unsafe_code, reason = "the functions have the C ABI")]

use std::collections::BTreeSet;
use std::sync::Arc;

use ash::vk;

use crate::facts::arithmetic::index;
use crate::facts::broken::{Broken, refuse_if};
use crate::facts::chain;
use crate::facts::format::{FormatInfo, level_size};
use crate::hazards::{CommandBarrier, DependencyScope, On, access2, stages2};
use crate::objects::entry::{checked, entries};
use crate::objects::host;
use crate::objects::host::destroys;
use crate::objects::passes::{Formats, Framebuffer, PassDescription, RenderPass};
use crate::objects::state::{DeviceObject, DeviceState};

entries! {
    Device result vk::PFN_vkCreateRenderPass = create_pass: core 0 "vkCreateRenderPass";
    Device void vk::PFN_vkDestroyRenderPass = destroy_pass: core 0 "vkDestroyRenderPass";
    Device result vk::PFN_vkCreateFramebuffer = create_framebuffer: core 0 "vkCreateFramebuffer";
    Device void vk::PFN_vkDestroyFramebuffer = destroy_framebuffer: core 0 "vkDestroyFramebuffer";
}

unsafe extern "system" fn create_pass(
    device: vk::Device,
    p_info: *const vk::RenderPassCreateInfo<'_>,
    callbacks: *const vk::AllocationCallbacks<'_>,
    p_pass: *mut vk::RenderPass,
) -> vk::Result {
    checked(device, "vkCreateRenderPass", |device| {
        // SAFETY: VUID-vkCreateRenderPass-pCreateInfo-parameter.
        let info = unsafe { chain::given(p_info, "VUID-vkCreateRenderPass-pCreateInfo-parameter") }?;
        // SAFETY: VUID-vkCreateRenderPass-pCreateInfo-parameter: a valid structure.
        let made = Arc::new(unsafe { PassDescription::new(info) }?);
        let insert = |state: &mut DeviceState, handle, host| {
            state.passes.passes.insert(handle, RenderPass { info: made, in_use: 0, host });
        };
        // SAFETY: 1: VUID-vkCreateRenderPass-pAllocator-parameter. 2: no lock is held. 3:
        // VUID-vkCreateRenderPass-pRenderPass-parameter.
        Ok(unsafe { host::create(device, callbacks, p_pass, insert) })
    })
}

impl PassDescription {
    /// # Safety
    ///
    /// `info` is valid, and so is what it points to.
    unsafe fn new(info: &vk::RenderPassCreateInfo<'_>) -> Result<Self, Broken> {
        // SAFETY: VUID-VkRenderPassCreateInfo-pAttachments-parameter.
        let attachments = unsafe { chain::array(info.p_attachments, info.attachment_count) };
        // SAFETY: VUID-VkRenderPassCreateInfo-pSubpasses-parameter.
        let subpasses = unsafe { chain::array(info.p_subpasses, info.subpass_count) };
        // SAFETY: VUID-VkRenderPassCreateInfo-pDependencies-parameter.
        let dependencies = unsafe { chain::array(info.p_dependencies, info.dependency_count) };
        // SAFETY: VUID-VkRenderPassCreateInfo-pNext-pNext.
        let views = unsafe { chain::find::<vk::RenderPassMultiviewCreateInfo<'_>>(info.p_next) };
        // SAFETY: VUID-VkRenderPassMultiviewCreateInfo-pViewMasks-parameter.
        let masks = views.map(|views| unsafe { chain::array(views.p_view_masks, views.subpass_count) });
        let [subpass] = subpasses else {
            refuse_if!(subpasses.is_empty() => "VUID-VkRenderPassCreateInfo-subpassCount-arraylength",
                "subpassCount is 0");
            let text = format!("{} subpasses: the simulated device has passes of one", subpasses.len());
            return Err(("SUBLET-unsupported-rendering", text));
        };
        for (attachment, place) in attachments.iter().zip(0..) {
            let ends = attachment.final_layout;
            refuse_if!([vk::ImageLayout::UNDEFINED, vk::ImageLayout::PREINITIALIZED].contains(&ends)
                => "VUID-VkAttachmentDescription-finalLayout-00843", "attachment {place} ends in {ends:?}");
        }
        let count = subpass.color_attachment_count;
        // SAFETY: VUID-VkSubpassDescription-pColorAttachments-parameter.
        let colors = unsafe { chain::array(subpass.p_color_attachments, count) };
        // SAFETY: VUID-VkSubpassDescription-pResolveAttachments-parameter: NULL, or as many as colors.
        let resolves = unsafe { chain::array(subpass.p_resolve_attachments, count) };
        // SAFETY: VUID-VkSubpassDescription-pDepthStencilAttachment-parameter.
        let depth_stencil = unsafe { chain::input(subpass.p_depth_stencil_attachment) };
        refuse_if!(subpass.input_attachment_count != 0 => "SUBLET-unsupported-rendering",
            "the simulated device has no input attachments");
        let slot = |reference: &vk::AttachmentReference| Self::slot(attachments, reference);
        let colors = colors.iter().map(slot).collect::<Result<Vec<_>, Broken>>()?;
        let resolves = resolves.iter().map(slot).collect::<Result<Vec<_>, Broken>>()?;
        let depth_stencil = depth_stencil.map(slot).transpose()?.flatten();
        let format = |slot: &Option<(usize, vk::ImageLayout)>| {
            slot.map_or(vk::Format::UNDEFINED, |(at, _)| attachments[at].format)
        };
        let depth = format(&depth_stencil);
        let aspects = FormatInfo::of(depth).map(|info| info.aspects()).unwrap_or_default();
        let of = |aspect| if aspects.contains(aspect) { depth } else { vk::Format::UNDEFINED };
        let attached = colors.iter().chain([&depth_stencil]).flatten();
        let formats = Formats {
            colors: colors.iter().map(format).collect(),
            depth: of(vk::ImageAspectFlags::DEPTH),
            stencil: of(vk::ImageAspectFlags::STENCIL),
            samples: attached.map(|(at, _)| attachments[*at].samples).next(),
            view_mask: masks.and_then(|masks| masks.first().copied()).unwrap_or(0),
            in_pass: true,
        };
        let from = |before: u32, behind: u32| {
            let fits =
                move |one: &&vk::SubpassDependency| (one.src_subpass, one.dst_subpass) == (before, behind);
            dependencies.iter().filter(fits).copied().collect()
        };
        Ok(Self {
            attachments: attachments.to_vec(),
            colors,
            resolves,
            depth_stencil,
            formats,
            before: from(vk::SUBPASS_EXTERNAL, 0),
            behind: from(0, vk::SUBPASS_EXTERNAL),
        })
    }

    /// Returns whether the framebuffers of one are for the other: the same attachments, used alike.
    pub(crate) fn is_compatible(&self, other: &Self) -> bool {
        let shape = |pass: &Self| {
            let each = pass.attachments.iter().map(|attachment| (attachment.format, attachment.samples));
            let at = |slot: Option<(usize, vk::ImageLayout)>| slot.map(|(at, _)| at);
            // Nothing to resolve to may be said in two ways.
            let resolved = |location| at(pass.resolves.get(location).copied().flatten());
            let pairs =
                pass.colors.iter().enumerate().map(|(location, color)| (at(*color), resolved(location)));
            (each.collect::<Vec<_>>(), pairs.collect::<Vec<_>>(), at(pass.depth_stencil))
        };
        self.formats == other.formats && shape(self) == shape(other)
    }

    fn slot(
        attachments: &[vk::AttachmentDescription],
        reference: &vk::AttachmentReference,
    ) -> Result<Option<(usize, vk::ImageLayout)>, Broken> {
        if reference.attachment == vk::ATTACHMENT_UNUSED {
            return Ok(None);
        }
        let at = index(reference.attachment);
        refuse_if!(at >= attachments.len() => "VUID-VkRenderPassCreateInfo-attachment-00834",
            "attachment {at} of {}", attachments.len());
        let layout = reference.layout;
        refuse_if!([vk::ImageLayout::UNDEFINED, vk::ImageLayout::PREINITIALIZED].contains(&layout)
            => "VUID-VkAttachmentReference-layout-03077", "attachment {at} is in the layout {layout:?}");
        Ok(Some((at, layout)))
    }

    /// The attachments that the subpass has, each with its layout meanwhile.
    pub(crate) fn references(&self) -> impl Iterator<Item = (usize, vk::ImageLayout)> {
        let mut seen = BTreeSet::new();
        let all = self.colors.iter().chain(&self.resolves).chain([&self.depth_stencil]).flatten().copied();
        all.filter(move |(at, _)| seen.insert(*at))
    }

    /// The barriers at the beginning or the end of the pass, with changes of layouts.
    pub(crate) fn bars(
        &self,
        begins: bool,
        changes: &[(vk::Image, vk::ImageSubresourceRange, (vk::ImageLayout, vk::ImageLayout))],
    ) -> Vec<CommandBarrier> {
        let given = if begins { &self.before } else { &self.behind };
        let implicit = [implicit(begins)];
        // A layout change without a dependency has an implicit one.
        let dependencies = if given.is_empty() && !changes.is_empty() { &implicit[..] } else { given };
        let mut bars: Vec<_> = dependencies.iter().map(|dependency| bar(dependency, On::All)).collect();
        let all = dependencies.iter().copied().reduce(|all, one| vk::SubpassDependency {
            src_stage_mask: all.src_stage_mask | one.src_stage_mask,
            src_access_mask: all.src_access_mask | one.src_access_mask,
            dst_stage_mask: all.dst_stage_mask | one.dst_stage_mask,
            dst_access_mask: all.dst_access_mask | one.dst_access_mask,
            ..all
        });
        if let Some(all) = all {
            // A layout changes once, between all of them.
            let each = changes.iter().map(|&(image, range, layouts)| On::Image { image, range, layouts });
            bars.extend(each.map(|on| bar(&all, on)));
        }
        bars
    }
}

fn bar(dependency: &vk::SubpassDependency, on: On) -> CommandBarrier {
    let first =
        DependencyScope::first(stages2(dependency.src_stage_mask), access2(dependency.src_access_mask));
    let second =
        DependencyScope::second(stages2(dependency.dst_stage_mask), access2(dependency.dst_access_mask));
    CommandBarrier { first, second, on, half: None }
}

/// The dependency that there is where none is given. Source: Vulkan specification, section "Render Pass Creation".
fn implicit(begins: bool) -> vk::SubpassDependency {
    let inside = vk::SubpassDependency {
        dst_stage_mask: vk::PipelineStageFlags::ALL_COMMANDS,
        dst_access_mask: vk::AccessFlags::INPUT_ATTACHMENT_READ
            | vk::AccessFlags::COLOR_ATTACHMENT_READ
            | vk::AccessFlags::COLOR_ATTACHMENT_WRITE
            | vk::AccessFlags::DEPTH_STENCIL_ATTACHMENT_READ
            | vk::AccessFlags::DEPTH_STENCIL_ATTACHMENT_WRITE,
        src_stage_mask: vk::PipelineStageFlags::TOP_OF_PIPE,
        ..Default::default()
    };
    if begins {
        return inside;
    }
    vk::SubpassDependency {
        src_stage_mask: inside.dst_stage_mask,
        src_access_mask: inside.dst_access_mask,
        dst_stage_mask: vk::PipelineStageFlags::BOTTOM_OF_PIPE,
        ..Default::default()
    }
}

destroys! {
    fn destroy_pass(pass: vk::RenderPass) = "vkDestroyRenderPass",
    ["renderPass-parameter", "renderPass-00874", "renderPass-00875"],
    |device, state, name| {
        let found = state.passes.passes.remove(&pass)?;
        if found.in_use > 0 {
            let text = format!("{name} is destroyed, and a submission still uses it");
            device.report("VUID-vkDestroyRenderPass-renderPass-00873", text);
        }
        Some(found.host)
    }
}

unsafe extern "system" fn create_framebuffer(
    device: vk::Device,
    p_info: *const vk::FramebufferCreateInfo<'_>,
    callbacks: *const vk::AllocationCallbacks<'_>,
    p_framebuffer: *mut vk::Framebuffer,
) -> vk::Result {
    checked(device, "vkCreateFramebuffer", |device| {
        // SAFETY: VUID-vkCreateFramebuffer-pCreateInfo-parameter.
        let info = unsafe { chain::given(p_info, "VUID-vkCreateFramebuffer-pCreateInfo-parameter") }?;
        refuse_if!(info.flags.contains(vk::FramebufferCreateFlags::IMAGELESS) => "SUBLET-unsupported-rendering",
            "the simulated device has no framebuffers without images");
        // SAFETY: VUID-VkFramebufferCreateInfo-flags-02778.
        let views = unsafe { chain::array(info.p_attachments, info.attachment_count) };
        let pass = check_framebuffer(device, info, views)?;
        let extent = vk::Extent2D { width: info.width, height: info.height };
        let (views, layers) = (views.to_vec(), info.layers);
        let insert = |state: &mut DeviceState, handle, host| {
            let made = Framebuffer { pass, views, extent, layers, in_use: 0, host };
            state.passes.framebuffers.insert(handle, made);
        };
        // SAFETY: 1: VUID-vkCreateFramebuffer-pAllocator-parameter. 2: no lock is held. 3:
        // VUID-vkCreateFramebuffer-pFramebuffer-parameter.
        Ok(unsafe { host::create(device, callbacks, p_framebuffer, insert) })
    })
}

/// Checks the views of a framebuffer against the attachments of its pass.
fn check_framebuffer(
    device: &DeviceObject,
    info: &vk::FramebufferCreateInfo<'_>,
    views: &[vk::ImageView],
) -> Result<Arc<PassDescription>, Broken> {
    let state = device.state.lock();
    let rule = "VUID-VkFramebufferCreateInfo-renderPass-parameter";
    let pass = state.known(device, info.render_pass, state.passes.passes.get(&info.render_pass), rule)?;
    let wanted = &pass.info.attachments;
    refuse_if!(views.len() != wanted.len() => "VUID-VkFramebufferCreateInfo-attachmentCount-00876",
        "{} views, and the pass has {} attachments", views.len(), wanted.len());
    for (&view, attachment) in views.iter().zip(wanted) {
        let rule = "VUID-VkFramebufferCreateInfo-flags-02778";
        let found = state.known(device, view, state.image_views.get(&view), rule)?;
        let image = state.known(device, found.image, state.images.get(&found.image), rule)?;
        let (name, description) = (state.name(view), &image.description);
        refuse_if!(found.format != attachment.format => "VUID-VkFramebufferCreateInfo-pAttachments-00880",
            "{name} has format {}, and the pass {}", found.format.as_raw(), attachment.format.as_raw());
        refuse_if!(description.samples != attachment.samples
            => "VUID-VkFramebufferCreateInfo-pAttachments-00881",
            "{name} has {:?} samples, and the pass {:?}", description.samples, attachment.samples);
        let level = |size: u32| level_size(size, found.range.base_mip_level);
        let (width, height) = (level(description.extent.width), level(description.extent.height));
        refuse_if!(info.width > width => "VUID-VkFramebufferCreateInfo-flags-04533",
            "{name} has {width} columns of {}", info.width);
        refuse_if!(info.height > height => "VUID-VkFramebufferCreateInfo-flags-04534",
            "{name} has {height} rows of {}", info.height);
        let layers = description.array_layers.saturating_sub(found.range.base_array_layer);
        let layers = layers.min(found.range.layer_count);
        refuse_if!(info.layers > layers => "VUID-VkFramebufferCreateInfo-flags-04535",
            "{name} has {layers} layers of {}", info.layers);
        let views = u32::BITS - pass.info.formats.view_mask.leading_zeros();
        refuse_if!(views > layers => "VUID-VkFramebufferCreateInfo-renderPass-04536",
            "{name} has {layers} layers for {views} views");
    }
    Ok(Arc::clone(&pass.info))
}

destroys! {
    fn destroy_framebuffer(framebuffer: vk::Framebuffer) = "vkDestroyFramebuffer",
    ["framebuffer-parameter", "framebuffer-00893", "framebuffer-00894"],
    |device, state, name| {
        let found = state.passes.framebuffers.remove(&framebuffer)?;
        if found.in_use > 0 {
            let text = format!("{name} is destroyed, and a submission still uses it");
            device.report("VUID-vkDestroyFramebuffer-framebuffer-00892", text);
        }
        Some(found.host)
    }
}
