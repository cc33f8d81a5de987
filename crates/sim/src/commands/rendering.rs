//! Rendering: what becomes of attachments when it begins and ends. Render passes begin and end it as well, see `pass`.
#![expect(unsafe_code, reason = "the functions have the C ABI")]

use std::sync::Arc;

use ash::vk;

use super::record;
use crate::facts::broken::{Broken, refuse_if};
use crate::facts::chain;
use crate::facts::format::{Channels, FormatInfo, ImageDescription, level_size};
use crate::objects::commands::rendering::{
    AttachmentSlot, AttachmentTarget, BegunRendering, LARGEST, RenderingAttachment,
};
use crate::objects::commands::{ImageTarget, RecordedCommand};
use crate::objects::passes::Formats;
use crate::objects::state::{DeviceObject, DeviceState};

/// The request for rendering.
pub(crate) struct RenderingRequest<'a> {
    /// The attachments, each with its rules.
    pub(crate) attachments: Vec<(AttachmentSlot, vk::RenderingAttachmentInfo<'a>, &'static AttachmentRules)>,
    pub(crate) area: vk::Rect2D,
    pub(crate) layers: u32,
    pub(crate) view_mask: u32,
    /// The rules for the four sides of the area: left, top, right and bottom.
    pub(crate) sides: [&'static str; 4],
}

impl BegunRendering {
    pub(crate) fn new(
        device: &DeviceObject,
        state: &DeviceState,
        asked: &RenderingRequest<'_>,
        mut formats: Formats,
    ) -> Result<Self, Broken> {
        let (area, [left, top, ..]) = (asked.area, asked.sides);
        refuse_if!(area.offset.x < 0 => left, "x is {}", area.offset.x);
        refuse_if!(area.offset.y < 0 => top, "y is {}", area.offset.y);
        // With several views each is a layer.
        let layers: Vec<_> = match asked.view_mask {
            0 => vec![(0, asked.layers)],
            mask => (0..u32::BITS).filter(|view| mask >> view & 1 == 1).map(|view| (view, 1)).collect(),
        };
        let mut attachments = Vec::new();
        for (slot, info, rules) in &asked.attachments {
            for &layers in &layers {
                let made = RenderingAttachment::new(device, state, (*slot, info), layers, rules)?;
                for attached in std::iter::once(&made.to).chain(&made.resolve) {
                    check_area(state, attached, area, asked.sides)?;
                }
                let samples = state.images.get(&made.to.target.image).map(|image| image.description.samples);
                formats.samples = formats.samples.or(samples);
                attachments.push(made);
            }
        }
        Ok(Self { attachments, area, formats, pass: None })
    }
}

const UNDEFINED: vk::ImageLayout = vk::ImageLayout::UNDEFINED;
const PREINITIALIZED: vk::ImageLayout = vk::ImageLayout::PREINITIALIZED;
const SHADER_READ: vk::ImageLayout = vk::ImageLayout::SHADER_READ_ONLY_OPTIMAL;
const SOURCE: vk::ImageLayout = vk::ImageLayout::TRANSFER_SRC_OPTIMAL;
const TARGET: vk::ImageLayout = vk::ImageLayout::TRANSFER_DST_OPTIMAL;
const DEPTH_READ: vk::ImageLayout = vk::ImageLayout::DEPTH_STENCIL_READ_ONLY_OPTIMAL;

/// The rules of a kind of attachments.
pub(crate) struct AttachmentRules {
    pub(crate) aspect: vk::ImageAspectFlags,
    pub(crate) usage: (vk::ImageUsageFlags, &'static str),
    pub(crate) format: &'static str,
    pub(crate) layout: &'static str,
    pub(crate) resolved_layout: &'static str,
}

/// The fill for contents that need not be kept. The device may leave anything there: nothing should look right by
/// chance.
pub(crate) const LOST: u8 = 0xa5;

const COLOR: AttachmentRules = AttachmentRules {
    aspect: vk::ImageAspectFlags::COLOR,
    usage: (vk::ImageUsageFlags::COLOR_ATTACHMENT, "VUID-VkRenderingInfo-colorAttachmentCount-06087"),
    format: "VUID-VkRenderingInfo-colorAttachmentCount-06087",
    layout: "VUID-vkCmdBeginRendering-pRenderingInfo-09592",
    resolved_layout: "VUID-vkCmdBeginRendering-pRenderingInfo-09593",
};
const DEPTH: AttachmentRules = AttachmentRules {
    aspect: vk::ImageAspectFlags::DEPTH,
    usage: (vk::ImageUsageFlags::DEPTH_STENCIL_ATTACHMENT, "VUID-VkRenderingInfo-pDepthAttachment-06088"),
    format: "VUID-VkRenderingInfo-pDepthAttachment-06547",
    layout: "VUID-vkCmdBeginRendering-pRenderingInfo-09588",
    resolved_layout: "VUID-vkCmdBeginRendering-pRenderingInfo-09589",
};
const STENCIL: AttachmentRules = AttachmentRules {
    aspect: vk::ImageAspectFlags::STENCIL,
    usage: (vk::ImageUsageFlags::DEPTH_STENCIL_ATTACHMENT, "VUID-VkRenderingInfo-pStencilAttachment-06089"),
    format: "VUID-VkRenderingInfo-pStencilAttachment-06548",
    layout: "VUID-vkCmdBeginRendering-pRenderingInfo-09590",
    resolved_layout: "VUID-vkCmdBeginRendering-pRenderingInfo-09591",
};

pub(crate) unsafe extern "system" fn begin(
    command_buffer: vk::CommandBuffer,
    p_info: *const vk::RenderingInfo<'_>,
) {
    // SAFETY: VUID-vkCmdBeginRendering-pRenderingInfo-parameter.
    let Some(info) = (unsafe { chain::input(p_info) }) else {
        return;
    };
    // SAFETY: VUID-VkRenderingInfo-pColorAttachments-parameter.
    let colors = unsafe { chain::array(info.p_color_attachments, info.color_attachment_count) };
    // SAFETY: VUID-VkRenderingInfo-pDepthAttachment-parameter.
    let depth = unsafe { chain::input(info.p_depth_attachment) };
    // SAFETY: VUID-VkRenderingInfo-pStencilAttachment-parameter.
    let stencil = unsafe { chain::input(info.p_stencil_attachment) };
    record(command_buffer, "vkCmdBeginRendering", |device, state| {
        refuse_if!(!device.features.dynamic_rendering => "VUID-vkCmdBeginRendering-dynamicRendering-06446",
            "the feature dynamicRendering is not enabled");
        refuse_if!(info.view_mask == 0 && info.layer_count == 0 => "VUID-VkRenderingInfo-viewMask-06069",
            "layerCount is 0");
        let suspends = vk::RenderingFlags::SUSPENDING | vk::RenderingFlags::RESUMING;
        refuse_if!(info.flags.intersects(suspends) => "SUBLET-unsupported-rendering",
            "the simulated device suspends no rendering");
        let given = colors.iter().zip(0..).map(|(color, at)| (AttachmentSlot::Color(at), color, &COLOR));
        let given = given.chain(depth.map(|depth| (AttachmentSlot::Depth, depth, &DEPTH)));
        let given = given.chain(stencil.map(|stencil| (AttachmentSlot::Stencil, stencil, &STENCIL)));
        let given = given.filter(|(_, attachment, _)| attachment.image_view != vk::ImageView::null());
        let format = |view: vk::ImageView| {
            state.image_views.get(&view).map_or(vk::Format::UNDEFINED, |view| view.format)
        };
        let of = |attachment: Option<&vk::RenderingAttachmentInfo<'_>>| {
            attachment.map_or(vk::Format::UNDEFINED, |attachment| format(attachment.image_view))
        };
        let formats = Formats {
            colors: colors.iter().map(|color| format(color.image_view)).collect(),
            depth: of(depth),
            stencil: of(stencil),
            view_mask: info.view_mask,
            ..Formats::default()
        };
        let asked = RenderingRequest {
            attachments: given.map(|(slot, attachment, rules)| (slot, *attachment, rules)).collect(),
            area: info.render_area,
            layers: info.layer_count,
            view_mask: info.view_mask,
            sides: [
                "VUID-VkRenderingInfo-pNext-06077",
                "VUID-VkRenderingInfo-pNext-06078",
                "VUID-VkRenderingInfo-pNext-06079",
                "VUID-VkRenderingInfo-pNext-06080",
            ],
        };
        let rendering = BegunRendering::new(device, state, &asked, formats)?;
        Ok(vec![RecordedCommand::BeginRendering(Arc::new(rendering))])
    });
}

pub(crate) unsafe extern "system" fn end(command_buffer: vk::CommandBuffer) {
    record(command_buffer, "vkCmdEndRendering", |_, state| {
        let rendering = state.rendering(command_buffer);
        let rendering = rendering.filter(|rendering| rendering.pass.is_none());
        let nothing = || ("VUID-vkCmdEndRendering-None-06161", "no rendering has begun".to_owned());
        Ok(vec![RecordedCommand::EndRendering(rendering.cloned().ok_or_else(nothing)?)])
    });
}

impl DeviceState {
    /// The rendering that has begun in a command buffer.
    pub(crate) fn rendering(&self, command_buffer: vk::CommandBuffer) -> Option<&Arc<BegunRendering>> {
        self.commands.buffers.get(&command_buffer)?.uses.rendering.as_ref()
    }
}

impl RenderingAttachment {
    fn new(
        device: &DeviceObject,
        state: &DeviceState,
        (slot, info): (AttachmentSlot, &vk::RenderingAttachmentInfo<'_>),
        layers: (u32, u32),
        rules: &AttachmentRules,
    ) -> Result<Self, Broken> {
        let unknown = "VUID-VkRenderingAttachmentInfo-imageView-parameter";
        let place = (info.image_view, info.image_layout, rules.layout);
        let (to, image) = attached(device, state, place, layers, rules, unknown)?;
        let unfit = [UNDEFINED, PREINITIALIZED, SHADER_READ, SOURCE, TARGET].contains(&info.image_layout);
        refuse_if!(unfit => "VUID-VkRenderingAttachmentInfo-imageView-06135",
            "{} is in the layout {:?}", state.name(info.image_view), info.image_layout);
        let fill = match info.load_op {
            vk::AttachmentLoadOp::CLEAR => Some(texel(to.format, rules.aspect, info.clear_value)?),
            vk::AttachmentLoadOp::DONT_CARE => Some(vec![LOST; LARGEST]),
            _ => None,
        };
        let mut resolve = None;
        if info.resolve_mode != vk::ResolveModeFlags::NONE {
            let unknown = "VUID-VkRenderingAttachmentInfo-imageView-06862";
            let place = (info.resolve_image_view, info.resolve_image_layout, rules.resolved_layout);
            let (target, single) = attached(device, state, place, layers, rules, unknown)?;
            let name = state.name(info.image_view);
            refuse_if!(image.samples == vk::SampleCountFlags::TYPE_1
                => "VUID-VkRenderingAttachmentInfo-imageView-06861", "{name} has one sample to resolve");
            refuse_if!(single.samples != vk::SampleCountFlags::TYPE_1
                => "VUID-VkRenderingAttachmentInfo-imageView-06864", "{name} is resolved to several samples");
            refuse_if!(target.format != to.format
                => "VUID-VkRenderingAttachmentInfo-imageView-06865", "{name} is resolved to another format");
            let unfit = [UNDEFINED, PREINITIALIZED, SHADER_READ, SOURCE, TARGET, DEPTH_READ];
            refuse_if!(unfit.contains(&info.resolve_image_layout)
                => "VUID-VkRenderingAttachmentInfo-imageView-06136",
                "{name} is resolved to the layout {:?}", info.resolve_image_layout);
            refuse_if!(resolve_mode(to.format) != Some(info.resolve_mode) => "SUBLET-unsupported-resolve",
                "{name}: the simulated device cannot resolve format {} by {:?}",
                to.format.as_raw(), info.resolve_mode);
            resolve = Some(target);
        }
        Ok(Self { slot, to, load: info.load_op, store: info.store_op, fill, resolve })
    }
}

/// How a color of `format` is resolved: integers have no average, so that their first sample is taken.
pub(crate) fn resolve_mode(format: vk::Format) -> Option<vk::ResolveModeFlags> {
    let average = Channels::of(format)?.is_float();
    Some(if average { vk::ResolveModeFlags::AVERAGE } else { vk::ResolveModeFlags::SAMPLE_ZERO })
}

/// The attachment of a view, and its image.
fn attached<'a>(
    device: &DeviceObject,
    state: &'a DeviceState,
    (view, layout, layout_rule): (vk::ImageView, vk::ImageLayout, &'static str),
    (first, count): (u32, u32),
    rules: &AttachmentRules,
    unknown: &'static str,
) -> Result<(AttachmentTarget, &'a ImageDescription), Broken> {
    let name = state.label(view);
    let found = state.known(device, view, state.image_views.get(&view), unknown)?;
    let image = state.known(device, found.image, state.images.get(&found.image), unknown)?;
    let description = &image.description;
    let (usage, rule) = rules.usage;
    refuse_if!(!description.usage.contains(usage) => rule, "{name} is of an image without {usage:?}");
    let format = found.format;
    let aspects = FormatInfo::of(format).map(|info| info.aspects()).unwrap_or_default();
    refuse_if!(!aspects.contains(rules.aspect) => rules.format, "{name} has no {:?}", rules.aspect);
    let range = found.range;
    let there = description.array_layers.saturating_sub(range.base_array_layer).min(range.layer_count);
    let layers = vk::ImageSubresourceLayers {
        aspect_mask: rules.aspect,
        mip_level: range.base_mip_level,
        base_array_layer: range.base_array_layer + first,
        layer_count: count.min(there.saturating_sub(first)),
    };
    let target = ImageTarget { image: found.image, layout, layout_rule };
    Ok((AttachmentTarget { target, layers, format }, description))
}

/// Checks whether what is rendered lies in an attachment.
fn check_area(
    state: &DeviceState,
    attached: &AttachmentTarget,
    area: vk::Rect2D,
    [.., on_right, below]: [&'static str; 4],
) -> Result<(), Broken> {
    let Some(image) = state.images.get(&attached.target.image) else { return Ok(()) };
    let level = |size: u32| level_size(size, attached.layers.mip_level);
    let end = |start: i32, size: u32| start.unsigned_abs().saturating_add(size);
    let (right, bottom) = (end(area.offset.x, area.extent.width), end(area.offset.y, area.extent.height));
    let (width, height) = (level(image.description.extent.width), level(image.description.extent.height));
    let name = state.name(attached.target.image);
    refuse_if!(right > width => on_right,
        "{name} has {width} columns, and {right} are rendered");
    refuse_if!(bottom > height => below,
        "{name} has {height} rows, and {bottom} are rendered");
    Ok(())
}

/// The bytes that a texel is cleared to.
fn texel(format: vk::Format, aspect: vk::ImageAspectFlags, clear: vk::ClearValue) -> Result<Vec<u8>, Broken> {
    use vk::Format as F;
    // SAFETY: any 16 bytes are a color.
    let color = unsafe { clear.color };
    // SAFETY: any 16 bytes are four `u32`.
    let bits = unsafe { color.uint32 };
    let unsupported = || {
        let text = format!("the simulated device cannot clear format {}", format.as_raw());
        ("SUBLET-unsupported-clear", text)
    };
    // Depth and stencil are the first two words of the union.
    let depth = f64::from(f32::from_bits(bits[0]).clamp(0.0, 1.0));
    match aspect {
        vk::ImageAspectFlags::COLOR => Ok(Channels::of(format).ok_or_else(unsupported)?.encode(bits)),
        vk::ImageAspectFlags::STENCIL => Ok(bits[1].to_le_bytes().to_vec()),
        _ => match format {
            F::D32_SFLOAT | F::D32_SFLOAT_S8_UINT => Ok(bits[0].to_le_bytes().to_vec()),
            F::D16_UNORM | F::D16_UNORM_S8_UINT => Ok(steps(depth, 16)),
            F::X8_D24_UNORM_PACK32 | F::D24_UNORM_S8_UINT => Ok(steps(depth, 24)),
            _ => Err(unsupported()),
        },
    }
}

/// A number from 0 to 1 in so many bits, rounded to the nearest.
#[expect(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "it is from 0 to 2^24"
)]
fn steps(value: f64, bits: u32) -> Vec<u8> {
    let steps = (value * f64::from((1_u32 << bits) - 1)).round() as u32;
    steps.to_le_bytes().to_vec()
}
