//! The accesses of recorded commands.

use std::ops::Range;
use std::sync::Arc;

use ash::vk;
use ash::vk::Handle as _;
use vk::AccessFlags2 as Access;
use vk::PipelineStageFlags2 as Stages;

use crate::commands::{BufferLayout, INDIRECT_SIZE, between, elements, index_size};
use crate::facts::arithmetic::widen;
use crate::facts::format::{ImageDescription, ImageLayout, level_size};
use crate::hazards::past::{Access1, TexelArea, Unordered};
use crate::hazards::{AccessRange, Actor, CommandAccess, Of, On};
use crate::objects::commands::draw::{Draw, DrawCounts};
use crate::objects::commands::rendering::{
    AttachmentSlot, AttachmentTarget, BegunRendering, RenderingAttachment,
};
use crate::objects::commands::{ImageTarget, RecordedCommand};
use crate::objects::state::{DeviceObject, DeviceState};

const READ: (Access, bool) = (Access::TRANSFER_READ, false);
const WRITE: (Access, bool) = (Access::TRANSFER_WRITE, true);

/// The accesses of a command. A command whose resources are gone does neither.
pub(crate) fn of(
    device: &DeviceObject,
    state: &DeviceState,
    command: &RecordedCommand,
    actor: Actor,
) -> Vec<CommandAccess> {
    let mut uses = Vec::new();
    match command {
        RecordedCommand::CopyBuffer { src, dst, regions } => {
            let from = regions.iter().map(|region| (region.src_offset, region.size));
            let to = regions.iter().map(|region| (region.dst_offset, region.size));
            uses.extend(buffer(state, *src, from, Stages::COPY, READ));
            uses.extend(buffer(state, *dst, to, Stages::COPY, WRITE));
        }
        RecordedCommand::Fill { dst, offset, size, .. } => {
            uses.extend(buffer(state, *dst, [(*offset, *size)], Stages::CLEAR, WRITE));
        }
        RecordedCommand::Update { dst, offset, data } => {
            uses.extend(buffer(state, *dst, [(*offset, widen(data.len()))], Stages::CLEAR, WRITE));
        }
        RecordedCommand::BufferToImage { src, dst, regions } => {
            let ranges = regions.iter().filter_map(|region| in_buffer(device, state, *dst, region));
            uses.extend(buffer(state, *src, ranges, Stages::COPY, READ));
            uses.extend(regions.iter().filter_map(|region| of_region(state, *dst, region, WRITE)));
        }
        RecordedCommand::ImageToBuffer { src, dst, regions } => {
            uses.extend(regions.iter().filter_map(|region| of_region(state, *src, region, READ)));
            let ranges = regions.iter().filter_map(|region| in_buffer(device, state, *src, region));
            uses.extend(buffer(state, *dst, ranges, Stages::COPY, WRITE));
        }
        RecordedCommand::CopyImage { src, dst, regions } => {
            for region in regions {
                let from = (&region.src_subresource, region.src_offset, region.extent);
                let to = (&region.dst_subresource, region.dst_offset, region.extent);
                uses.extend(part(state, *src, from, Stages::COPY, READ));
                uses.extend(part(state, *dst, to, Stages::COPY, WRITE));
            }
        }
        RecordedCommand::Blit { src, dst, regions, .. } => {
            for region in regions {
                let (from, to) = (between(region.src_offsets), between(region.dst_offsets));
                let (from, to) =
                    ((&region.src_subresource, from.0, from.1), (&region.dst_subresource, to.0, to.1));
                uses.extend(part(state, *src, from, Stages::BLIT, READ));
                uses.extend(part(state, *dst, to, Stages::BLIT, WRITE));
            }
        }
        RecordedCommand::ResolveImage { src, dst, regions } => {
            for region in regions {
                let from = (&region.src_subresource, region.src_offset, region.extent);
                let to = (&region.dst_subresource, region.dst_offset, region.extent);
                uses.extend(part(state, *src, from, Stages::RESOLVE, READ));
                uses.extend(part(state, *dst, to, Stages::RESOLVE, WRITE));
            }
        }
        RecordedCommand::Clear { dst, ranges, .. } => {
            let each = ranges.iter().filter_map(|range| {
                let access = access(Stages::CLEAR, WRITE, None);
                Some(CommandAccess::new(subresources(state, dst.image, range)?, access))
            });
            uses.extend(each);
        }
        RecordedCommand::BeginRendering(rendering) => {
            let attached = AttachmentUses { state, rendering, actor };
            uses.extend(rendering.attachments.iter().filter_map(|attachment| attached.loaded(attachment)));
        }
        RecordedCommand::EndRendering(rendering) => {
            let attached = AttachmentUses { state, rendering, actor };
            uses.extend(rendering.attachments.iter().flat_map(|attachment| attached.stored(attachment)));
        }
        RecordedCommand::Draw(draw) => {
            uses.extend(of_inputs(state, draw));
            let attached = AttachmentUses { state, rendering: &draw.rendering, actor };
            uses.extend(draw.rendering.attachments.iter().flat_map(|one| attached.drawn(one, draw)));
        }
        RecordedCommand::DispatchIndirect { buffer: from, offset } => {
            let read = (Access::INDIRECT_COMMAND_READ, false);
            uses.extend(buffer(state, *from, [(*offset, INDIRECT_SIZE)], Stages::DRAW_INDIRECT, read));
        }
        _ => {}
    }
    uses
}

/// The access of a shader to a buffer: an offset and a size.
pub(crate) fn of_shader(
    state: &DeviceState,
    shader: vk::ShaderStageFlags,
    from: vk::Buffer,
    range: (u64, u64),
    write: bool,
) -> Option<CommandAccess> {
    let access = if write {
        Access::SHADER_STORAGE_WRITE
    } else {
        // Which of them it is depends on the descriptor; what makes one visible is enough here.
        Access::SHADER_STORAGE_READ | Access::SHADER_SAMPLED_READ | Access::UNIFORM_READ
    };
    buffer(state, from, [range], stage_of(shader), (access, write))
}

/// The access of a shader to an image.
pub(crate) fn of_texels(
    state: &DeviceState,
    shader: vk::ShaderStageFlags,
    image: vk::Image,
    range: &vk::ImageSubresourceRange,
    (sampled, write): (bool, bool),
) -> Option<CommandAccess> {
    let kind = match (sampled, write) {
        (true, _) => Access::SHADER_SAMPLED_READ,
        (false, false) => Access::SHADER_STORAGE_READ,
        (false, true) => Access::SHADER_STORAGE_WRITE,
    };
    let place = subresources(state, image, range)?;
    Some(CommandAccess::new(place, access(stage_of(shader), (kind, write), None)))
}

/// The reads of a draw besides its descriptors: commands, indices and vertices.
fn of_inputs(state: &DeviceState, draw: &Draw) -> Vec<CommandAccess> {
    let mut uses = Vec::new();
    let given = match draw.counts {
        DrawCounts::Given(span) => Some(span),
        DrawCounts::At { buffer: from, offset, count, stride } => {
            let read = (Access::INDIRECT_COMMAND_READ, false);
            let each =
                (0..u64::from(count)).map(|at| (offset + at * u64::from(stride), draw.indirect_size()));
            uses.extend(buffer(state, from, each, Stages::DRAW_INDIRECT, read));
            None
        }
    };
    if let Some((from, offset, kind)) = draw.indices {
        let span = given.map(|span| (span.first, span.count));
        let range = elements(state, (from, offset), index_size(kind).unwrap_or(0), span);
        uses.extend(buffer(state, from, [range], Stages::INDEX_INPUT, (Access::INDEX_READ, false)));
    }
    for (binding, &(from, offset)) in &draw.vertices {
        let Some(shape) = draw.drawing().and_then(|drawing| drawing.buffers.get(binding)) else { continue };
        let span = match given {
            Some(span) if shape.by_instance => Some((span.first_instance, span.instances)),
            // Which vertices are drawn the indices say.
            Some(span) if draw.indices.is_none() => Some((span.first, span.count)),
            _ => None,
        };
        let range = elements(state, (from, offset), u64::from(shape.stride), span);
        let read = (Access::VERTEX_ATTRIBUTE_READ, false);
        uses.extend(buffer(state, from, [range], Stages::VERTEX_ATTRIBUTE_INPUT, read));
    }
    uses
}

/// The accesses of rendering to its attachments.
struct AttachmentUses<'a> {
    state: &'a DeviceState,
    rendering: &'a Arc<BegunRendering>,
    actor: Actor,
}

impl AttachmentUses<'_> {
    /// When rendering begins.
    fn loaded(&self, attachment: &RenderingAttachment) -> Option<CommandAccess> {
        let (read, write, early, _) = kinds(attachment.slot);
        match attachment.load {
            vk::AttachmentLoadOp::LOAD => self.of(&attachment.to, early, (read, false)),
            vk::AttachmentLoadOp::NONE_EXT => None,
            _ => self.of(&attachment.to, early, (write, true)),
        }
    }

    fn drawn(&self, attachment: &RenderingAttachment, draw: &Draw) -> Vec<CommandAccess> {
        let (read, write, early, late) = kinds(attachment.slot);
        let Some(drawing) = draw.drawing() else { return Vec::new() };
        let touch = match attachment.slot {
            AttachmentSlot::Color(location) => drawing.colors.get(location).copied().unwrap_or_default(),
            AttachmentSlot::Depth => drawing.depth,
            AttachmentSlot::Stencil => drawing.stencil,
        };
        let each = [touch.reads.then_some((read, false)), touch.writes.then_some((write, true))];
        each.into_iter().flatten().filter_map(|kind| self.of(&attachment.to, early | late, kind)).collect()
    }

    /// When rendering ends.
    fn stored(&self, attachment: &RenderingAttachment) -> Vec<CommandAccess> {
        let (_, write, _, late) = kinds(attachment.slot);
        let mut uses = Vec::new();
        if attachment.store != vk::AttachmentStoreOp::NONE {
            uses.extend(self.of(&attachment.to, late, (write, true)));
        }
        if let Some(resolve) = &attachment.resolve {
            // Resolving is of this stage for depth and stencil as well.
            let stage = Stages::COLOR_ATTACHMENT_OUTPUT;
            uses.extend(self.of(&attachment.to, stage, (Access::COLOR_ATTACHMENT_READ, false)));
            uses.extend(self.of(resolve, stage, (Access::COLOR_ATTACHMENT_WRITE, true)));
        }
        uses
    }

    fn of(&self, attached: &AttachmentTarget, stages: Stages, kind: (Access, bool)) -> Option<CommandAccess> {
        let (offset, extent) = self.rendering.place();
        let mut usage = part(self.state, attached.target, (&attached.layers, offset, extent), stages, kind)?;
        let address = Arc::as_ptr(self.rendering).addr();
        let submission = self.actor.submission;
        usage.access.unordered = Some(Unordered::Rendering { address, submission });
        Some(usage)
    }
}

/// How an attachment is read and written, and in which stages first and last.
fn kinds(slot: AttachmentSlot) -> (Access, Access, Stages, Stages) {
    if let AttachmentSlot::Color(_) = slot {
        let stage = Stages::COLOR_ATTACHMENT_OUTPUT;
        return (Access::COLOR_ATTACHMENT_READ, Access::COLOR_ATTACHMENT_WRITE, stage, stage);
    }
    let (read, write) = (Access::DEPTH_STENCIL_ATTACHMENT_READ, Access::DEPTH_STENCIL_ATTACHMENT_WRITE);
    (read, write, Stages::EARLY_FRAGMENT_TESTS, Stages::LATE_FRAGMENT_TESTS)
}

/// The stage of a shader among those of a pipeline.
fn stage_of(shader: vk::ShaderStageFlags) -> Stages {
    match shader {
        vk::ShaderStageFlags::VERTEX => Stages::VERTEX_SHADER,
        vk::ShaderStageFlags::TESSELLATION_CONTROL => Stages::TESSELLATION_CONTROL_SHADER,
        vk::ShaderStageFlags::TESSELLATION_EVALUATION => Stages::TESSELLATION_EVALUATION_SHADER,
        vk::ShaderStageFlags::GEOMETRY => Stages::GEOMETRY_SHADER,
        vk::ShaderStageFlags::FRAGMENT => Stages::FRAGMENT_SHADER,
        _ => Stages::COMPUTE_SHADER,
    }
}

/// The part that a barrier covers; `None` for everything, or if its resource is destroyed.
pub(crate) fn place(state: &DeviceState, on: &On) -> Option<AccessRange> {
    match on {
        On::All => None,
        On::Buffer { buffer, offset, size } => {
            let whole = state.buffers.get(buffer)?.description.size;
            let size = if *size == vk::WHOLE_SIZE { whole.saturating_sub(*offset) } else { *size };
            bytes(state, *buffer, [(*offset, size)])
        }
        On::Image { image, range, .. } => subresources(state, *image, range),
    }
}

fn access(stages: Stages, (access, write): (Access, bool), area: Option<TexelArea>) -> Access1 {
    Access1 { stages, access, write, area, unordered: None }
}

fn buffer(
    state: &DeviceState,
    buffer: vk::Buffer,
    ranges: impl IntoIterator<Item = (u64, u64)>,
    stages: Stages,
    kind: (Access, bool),
) -> Option<CommandAccess> {
    Some(CommandAccess::new(bytes(state, buffer, ranges)?, access(stages, kind, None)))
}

/// Ranges of a buffer, each with its offset and size.
fn bytes(
    state: &DeviceState,
    buffer: vk::Buffer,
    ranges: impl IntoIterator<Item = (u64, u64)>,
) -> Option<AccessRange> {
    let found = state.buffers.get(&buffer)?;
    let (space, base) = match &found.bound {
        Some(bound) => (bound.memory.as_raw(), bound.offset),
        None => (buffer.as_raw(), 0),
    };
    let ranges = ranges.into_iter().filter(|(_, size)| *size > 0);
    let ranges = ranges.map(|(offset, size)| {
        let start = base.saturating_add(offset);
        start..start.saturating_add(size)
    });
    let exclusive = found.exclusive;
    Some(AccessRange { space, of: Of::Buffer(buffer), base, ranges: ranges.collect(), exclusive })
}

/// Subresources are numbered by aspect, then level, then layer.
pub(crate) fn subresources(
    state: &DeviceState,
    image: vk::Image,
    range: &vk::ImageSubresourceRange,
) -> Option<AccessRange> {
    let found = state.images.get(&image)?;
    let description = &found.description;
    let (levels, layers) = (u64::from(description.mip_levels), u64::from(description.array_layers));
    let end = |base: u32, count: u32, all: u64| u64::from(base).saturating_add(u64::from(count)).min(all);
    let last_level = end(range.base_mip_level, range.level_count, levels);
    let last_layer = end(range.base_array_layer, range.layer_count, layers);
    let mut ranges: Vec<Range<u64>> = Vec::new();
    for slot in slots(description, range.aspect_mask) {
        for level in u64::from(range.base_mip_level)..last_level {
            let row = (slot * levels + level) * layers;
            let next = row + u64::from(range.base_array_layer)..row + last_layer;
            match ranges.last_mut() {
                Some(last) if last.end == next.start => last.end = next.end,
                _ if next.is_empty() => {}
                _ => ranges.push(next),
            }
        }
    }
    let exclusive = found.exclusive;
    Some(AccessRange { space: image.as_raw(), of: Of::Image(image), base: 0, ranges, exclusive })
}

/// The numbers of aspects. The color of an image of several planes is all of them.
fn slots(description: &ImageDescription, aspects: vk::ImageAspectFlags) -> Vec<u64> {
    use vk::ImageAspectFlags as Aspect;
    let planes = crate::facts::format::FormatInfo::of(description.format)
        .is_some_and(|info| info.aspects().contains(Aspect::PLANE_0));
    let all = planes && aspects.contains(Aspect::COLOR);
    let each =
        [Aspect::COLOR | Aspect::DEPTH | Aspect::PLANE_0, Aspect::STENCIL | Aspect::PLANE_1, Aspect::PLANE_2];
    (0..).zip(each).filter(|(_, own)| all || aspects.intersects(*own)).map(|(slot, _)| slot).collect()
}

fn of_region(
    state: &DeviceState,
    target: ImageTarget,
    region: &vk::BufferImageCopy,
    kind: (Access, bool),
) -> Option<CommandAccess> {
    let part_of = (&region.image_subresource, region.image_offset, region.image_extent);
    part(state, target, part_of, Stages::COPY, kind)
}

/// A part of a level of an image.
fn part(
    state: &DeviceState,
    target: ImageTarget,
    (layers, offset, extent): (&vk::ImageSubresourceLayers, vk::Offset3D, vk::Extent3D),
    stages: Stages,
    kind: (Access, bool),
) -> Option<CommandAccess> {
    let range = vk::ImageSubresourceRange {
        aspect_mask: layers.aspect_mask,
        base_mip_level: layers.mip_level,
        level_count: 1,
        base_array_layer: layers.base_array_layer,
        layer_count: layers.layer_count,
    };
    let whole = state.images.get(&target.image)?.description.extent;
    let from = [offset.x, offset.y, offset.z].map(i64::from);
    let size = [extent.width, extent.height, extent.depth].map(i64::from);
    let to = [from[0] + size[0], from[1] + size[1], from[2] + size[2]];
    let level = |size: u32| i64::from(level_size(size, layers.mip_level));
    let end = [level(whole.width), level(whole.height), level(whole.depth)];
    let all = from == [0; 3] && (0..3).all(|axis| to[axis] >= end[axis]);
    let area = if all { None } else { Some(TexelArea { from, to }) };
    let place = subresources(state, target.image, &range)?;
    Some(CommandAccess::new(place, access(stages, kind, area)))
}

/// The bytes that a copy to or from an image touches in the buffer: offset and size. Gaps between its rows count.
fn in_buffer(
    device: &DeviceObject,
    state: &DeviceState,
    target: ImageTarget,
    region: &vk::BufferImageCopy,
) -> Option<(u64, u64)> {
    let description = &state.images.get(&target.image)?.description;
    let layout = ImageLayout::new(device.profile(), description)?;
    let layers = region.image_subresource;
    let (level, aspect) = layout.level(layers.aspect_mask, layers.mip_level, layers.base_array_layer)?;
    let end = BufferLayout::new(region, &level, &aspect).end(region)?;
    Some((region.buffer_offset, end.saturating_sub(region.buffer_offset)))
}
