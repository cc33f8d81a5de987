//! Draws: recording, and its valid usage. A closure decides what they draw, see `kernel`.
#![expect(unsafe_code, reason = "the functions have the C ABI")]

use std::collections::BTreeMap;
use std::sync::Arc;

use ash::vk;

use super::record;
use crate::facts::arithmetic::is_aligned;
use crate::facts::broken::{Broken, refuse_if};
use crate::facts::chain;
use crate::objects::commands::RecordedCommand;
use crate::objects::commands::draw::{Draw, DrawCounts, DrawSpan, DrawState, indirect_size};
use crate::objects::passes::Formats;
use crate::objects::pipelines::DYNAMIC;
use crate::objects::state::{DeviceObject, DeviceState};

/// Bytes of an index; `None` if the type is none that there is.
pub(crate) fn index_size(kind: vk::IndexType) -> Option<u64> {
    match kind {
        vk::IndexType::UINT16 => Some(2),
        vk::IndexType::UINT32 => Some(4),
        vk::IndexType::UINT8_EXT => Some(1),
        _ => None,
    }
}

pub(crate) unsafe extern "system" fn bind_vertices(
    command_buffer: vk::CommandBuffer,
    first: u32,
    count: u32,
    p_buffers: *const vk::Buffer,
    p_offsets: *const u64,
) {
    // SAFETY: VUID-vkCmdBindVertexBuffers-pBuffers-parameter.
    let handles = unsafe { chain::array(p_buffers, count) };
    // SAFETY: VUID-vkCmdBindVertexBuffers-pOffsets-parameter.
    let offsets = unsafe { chain::array(p_offsets, count) };
    let recording = "VUID-vkCmdBindVertexBuffers-commandBuffer-recording";
    record(command_buffer, "vkCmdBindVertexBuffers", recording, |device, state| {
        let buffers: Vec<_> = handles.iter().copied().zip(offsets.iter().copied()).collect();
        let rules = [
            "VUID-vkCmdBindVertexBuffers-pBuffers-parameter",
            "VUID-vkCmdBindVertexBuffers-pBuffers-00627",
            "VUID-vkCmdBindVertexBuffers-pBuffers-00628",
            "VUID-vkCmdBindVertexBuffers-pOffsets-00626",
        ];
        for &place in &buffers {
            check_buffer(device, state, place, vk::BufferUsageFlags::VERTEX_BUFFER, rules)?;
        }
        Ok(vec![RecordedCommand::BindVertexBuffers { first, buffers }])
    });
}

pub(crate) unsafe extern "system" fn bind_indices(
    command_buffer: vk::CommandBuffer,
    buffer: vk::Buffer,
    offset: u64,
    kind: vk::IndexType,
) {
    let recording = "VUID-vkCmdBindIndexBuffer-commandBuffer-recording";
    record(command_buffer, "vkCmdBindIndexBuffer", recording, |device, state| {
        let rules = [
            "VUID-vkCmdBindIndexBuffer-buffer-parameter",
            "VUID-vkCmdBindIndexBuffer-buffer-08784",
            "VUID-vkCmdBindIndexBuffer-buffer-08785",
            "VUID-vkCmdBindIndexBuffer-offset-08782",
        ];
        check_buffer(device, state, (buffer, offset), vk::BufferUsageFlags::INDEX_BUFFER, rules)?;
        let Some(size) = index_size(kind) else {
            let text = format!("{kind:?} is no type of an index buffer");
            return Err(("VUID-vkCmdBindIndexBuffer-indexType-08786", text));
        };
        refuse_if!(!is_aligned(offset, size) => "VUID-vkCmdBindIndexBuffer-offset-08783",
            "offset is {offset}, no multiple of {size}");
        Ok(vec![RecordedCommand::BindIndexBuffer { buffer, offset, kind }])
    });
}

/// The rules are those of a handle, of usage, of memory and of the offset.
fn check_buffer(
    device: &DeviceObject,
    state: &DeviceState,
    (buffer, offset): (vk::Buffer, u64),
    usage: vk::BufferUsageFlags,
    [unknown, unfit, unbound, outside]: [&'static str; 4],
) -> Result<(), Broken> {
    let name = state.name(buffer);
    let found = state.known(device, buffer, state.buffers.get(&buffer), unknown)?;
    let description = &found.description;
    refuse_if!(!description.usage.contains(usage) => unfit, "{name} was created without the usage {usage:?}");
    refuse_if!(!found.is_backed() => unbound, "{name} has no memory");
    refuse_if!(offset >= description.size => outside,
        "offset is {offset}, and {name} has {} bytes", description.size);
    Ok(())
}

/// The rules of one of the commands that draw.
struct DrawRules {
    outside: &'static str,
    pipeline: &'static str,
    buffers: &'static str,
    /// For each of [`DYNAMIC`].
    sets: [&'static str; DYNAMIC.len()],
    indices: &'static str,
    dynamic: &'static str,
    pass: &'static str,
    colors: &'static str,
    color: &'static str,
    depth: &'static str,
    stencil: &'static str,
    samples: &'static str,
    views: &'static str,
}

macro_rules! draw_rules {
    ($command:literal) => {
        DrawRules {
            outside: concat!("VUID-", $command, "-renderpass"),
            pipeline: concat!("VUID-", $command, "-None-08606"),
            buffers: concat!("VUID-", $command, "-None-04007"),
            sets: [
                concat!("VUID-", $command, "-None-07831"),
                concat!("VUID-", $command, "-None-07832"),
                concat!("VUID-", $command, "-None-07834"),
                concat!("VUID-", $command, "-None-07835"),
                concat!("VUID-", $command, "-None-07839"),
                concat!("VUID-", $command, "-None-07840"),
                concat!("VUID-", $command, "-None-07841"),
            ],
            indices: concat!("VUID-", $command, "-None-07312"),
            dynamic: concat!("VUID-", $command, "-renderPass-06198"),
            pass: concat!("VUID-", $command, "-renderPass-02684"),
            colors: concat!("VUID-", $command, "-colorAttachmentCount-06179"),
            color: concat!("VUID-", $command, "-dynamicRenderingUnusedAttachments-08910"),
            depth: concat!("VUID-", $command, "-dynamicRenderingUnusedAttachments-08914"),
            stencil: concat!("VUID-", $command, "-dynamicRenderingUnusedAttachments-08917"),
            samples: concat!("VUID-", $command, "-multisampledRenderToSingleSampled-07285"),
            views: concat!("VUID-", $command, "-viewMask-06178"),
        }
    };
}

pub(crate) unsafe extern "system" fn draw(
    command_buffer: vk::CommandBuffer,
    count: u32,
    instances: u32,
    first: u32,
    first_instance: u32,
) {
    let recording = "VUID-vkCmdDraw-commandBuffer-recording";
    record(command_buffer, "vkCmdDraw", recording, |_, state| {
        let span = DrawSpan { first, count, vertex_offset: 0, first_instance, instances };
        made(state, command_buffer, DrawCounts::Given(span), false, &draw_rules!("vkCmdDraw"))
    });
}

pub(crate) unsafe extern "system" fn indexed(
    command_buffer: vk::CommandBuffer,
    count: u32,
    instances: u32,
    first: u32,
    vertex_offset: i32,
    first_instance: u32,
) {
    let recording = "VUID-vkCmdDrawIndexed-commandBuffer-recording";
    record(command_buffer, "vkCmdDrawIndexed", recording, |_, state| {
        let span = DrawSpan { first, count, vertex_offset, first_instance, instances };
        made(state, command_buffer, DrawCounts::Given(span), true, &draw_rules!("vkCmdDrawIndexed"))
    });
}

/// The rules for commands in a buffer: a handle, usage, memory, the multiple of the offset, the end of one and of
/// several, and the distance between them.
macro_rules! indirect_rules {
    ($command:literal, $one:literal, $several:literal, $stride:literal) => {
        [
            concat!("VUID-", $command, "-buffer-parameter"),
            concat!("VUID-", $command, "-buffer-02709"),
            concat!("VUID-", $command, "-buffer-02708"),
            concat!("VUID-", $command, "-offset-02710"),
            concat!("VUID-", $command, "-drawCount-", $one),
            concat!("VUID-", $command, "-drawCount-", $several),
            concat!("VUID-", $command, "-drawCount-", $stride),
        ]
    };
}

pub(crate) unsafe extern "system" fn indirect(
    command_buffer: vk::CommandBuffer,
    buffer: vk::Buffer,
    offset: u64,
    count: u32,
    stride: u32,
) {
    let recording = "VUID-vkCmdDrawIndirect-commandBuffer-recording";
    record(command_buffer, "vkCmdDrawIndirect", recording, |device, state| {
        let counts = DrawCounts::At { buffer, offset, count, stride };
        let rules = indirect_rules!("vkCmdDrawIndirect", "00487", "00488", "00476");
        check_indirect(device, state, counts, false, rules)?;
        made(state, command_buffer, counts, false, &draw_rules!("vkCmdDrawIndirect"))
    });
}

pub(crate) unsafe extern "system" fn indexed_indirect(
    command_buffer: vk::CommandBuffer,
    buffer: vk::Buffer,
    offset: u64,
    count: u32,
    stride: u32,
) {
    let recording = "VUID-vkCmdDrawIndexedIndirect-commandBuffer-recording";
    record(command_buffer, "vkCmdDrawIndexedIndirect", recording, |device, state| {
        let counts = DrawCounts::At { buffer, offset, count, stride };
        let rules = indirect_rules!("vkCmdDrawIndexedIndirect", "00539", "00540", "00528");
        check_indirect(device, state, counts, true, rules)?;
        made(state, command_buffer, counts, true, &draw_rules!("vkCmdDrawIndexedIndirect"))
    });
}

fn check_indirect(
    device: &DeviceObject,
    state: &DeviceState,
    counts: DrawCounts,
    indexed: bool,
    [unknown, unfit, unbound, unaligned, one, several, apart]: [&'static str; 7],
) -> Result<(), Broken> {
    let DrawCounts::At { buffer, offset, count, stride } = counts else { return Ok(()) };
    if count == 0 {
        return Ok(());
    }
    let usage = vk::BufferUsageFlags::INDIRECT_BUFFER;
    let end = if count == 1 { one } else { several };
    check_buffer(device, state, (buffer, offset), usage, [unknown, unfit, unbound, end])?;
    refuse_if!(!is_aligned(offset, 4) => unaligned, "offset is {offset}, no multiple of 4");
    let size = indirect_size(indexed);
    let stride = u64::from(stride);
    refuse_if!(count > 1 && (!is_aligned(stride, 4) || stride < size) => apart,
        "{count} commands of {size} bytes are {stride} bytes apart");
    let last = offset.saturating_add(u64::from(count - 1).saturating_mul(stride)).saturating_add(size);
    let whole = state.buffers.get(&buffer).map_or(0, |buffer| buffer.description.size);
    refuse_if!(last > whole => end, "the last command ends at {last}, and {} has {whole} bytes", state.name(buffer));
    Ok(())
}

/// The command that draws with what is bound now, if that is complete.
fn made(
    state: &DeviceState,
    command_buffer: vk::CommandBuffer,
    counts: DrawCounts,
    indexed: bool,
    rules: &DrawRules,
) -> Result<Vec<RecordedCommand>, Broken> {
    let missing = |rule, text: &str| Err((rule, text.to_owned()));
    let Some(rendering) = state.rendering(command_buffer) else {
        return missing(rules.outside, "no rendering has begun");
    };
    let Some(buffer) = state.commands.buffers.get(&command_buffer) else { return Ok(Vec::new()) };
    let DrawState { program, vertices, indices, set } = &buffer.uses.draws;
    let Some((program, drawing)) = program.as_ref().and_then(|own| Some((own, own.drawing.as_ref()?))) else {
        return missing(rules.pipeline, "no graphics pipeline is bound");
    };
    fits(&drawing.formats, &rendering.formats, rules)?;
    for (place, (_, name)) in DYNAMIC.iter().enumerate() {
        refuse_if!(drawing.sets[place] && !set[place] => rules.sets[place],
            "the pipeline leaves the {name} to commands, and none was set");
    }
    let mut used = BTreeMap::new();
    for binding in drawing.buffers.keys() {
        let Some(bound) = vertices.get(binding) else {
            return Err((rules.buffers, format!("no vertex buffer is bound at {binding}")));
        };
        used.insert(*binding, *bound);
    }
    let indices = if indexed { *indices } else { None };
    refuse_if!(indexed && indices.is_none() => rules.indices, "no index buffer is bound");
    if let (Some((buffer, offset, kind)), DrawCounts::Given(span)) = (indices, counts) {
        let size = index_size(kind).unwrap_or(0);
        let end = u64::from(span.first).saturating_add(u64::from(span.count)).saturating_mul(size);
        let whole = state.buffers.get(&buffer).map_or(0, |buffer| buffer.description.size);
        refuse_if!(end > whole.saturating_sub(offset)
            => "VUID-vkCmdDrawIndexed-robustBufferAccess2-08798",
            "{end} bytes of indices from {offset} on, and {} has {whole}", state.name(buffer));
    }
    let draw = Draw {
        program: Arc::clone(program),
        rendering: Arc::clone(rendering),
        vertices: used,
        indices,
        counts,
    };
    Ok(vec![RecordedCommand::Draw(Arc::new(draw))])
}

/// Checks whether a pipeline is for what is attached.
fn fits(own: &Formats, attached: &Formats, rules: &DrawRules) -> Result<(), Broken> {
    if attached.in_pass {
        refuse_if!(own != attached => rules.pass, "the pipeline is for {own:?}, and the pass has {attached:?}");
        return Ok(());
    }
    refuse_if!(own.in_pass => rules.dynamic, "the pipeline is for a render pass, and none has begun");
    let (count, given) = (own.colors.len(), attached.colors.len());
    refuse_if!(count != given => rules.colors, "the pipeline is for {count} colors, and there are {given}");
    let colors = own.colors.iter().zip(&attached.colors).map(|pair| (pair, rules.color));
    let others =
        [((&own.depth, &attached.depth), rules.depth), ((&own.stencil, &attached.stencil), rules.stencil)];
    for ((own, attached), rule) in colors.chain(others) {
        refuse_if!(own != attached => rule, "the pipeline is for {own:?}, and {attached:?} is attached");
    }
    refuse_if!(own.view_mask != attached.view_mask => rules.views,
        "the pipeline has the views {:#b}, and rendering {:#b}", own.view_mask, attached.view_mask);
    if let (Some(own), Some(attached)) = (own.samples, attached.samples) {
        refuse_if!(own != attached => rules.samples, "the pipeline has {own:?} samples, and {attached:?} are attached");
    }
    Ok(())
}

/// The bytes of elements, the first of them and so many, that a draw may read of a buffer: offset and size, as far as
/// the buffer goes.
pub(crate) fn elements(
    state: &DeviceState,
    (buffer, offset): (vk::Buffer, u64),
    stride: u64,
    elements: Option<(u32, u32)>,
) -> (u64, u64) {
    let whole = state.buffers.get(&buffer).map_or(0, |buffer| buffer.description.size);
    let (start, size) = match elements {
        // The same for all: whoever reads it reads one.
        Some(_) if stride == 0 => (offset, whole.saturating_sub(offset)),
        Some((first, count)) => (
            offset.saturating_add(u64::from(first).saturating_mul(stride)),
            u64::from(count).saturating_mul(stride),
        ),
        None => (offset, u64::MAX),
    };
    (start, size.min(whole.saturating_sub(start)))
}
