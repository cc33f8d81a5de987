//! Draws: recording, and its valid usage. A closure decides what they draw, see `kernel`.
#![expect(unsafe_code, reason = "the functions have the C ABI")]

use std::collections::BTreeMap;
use std::sync::Arc;

use ash::vk;

use super::record;
use crate::facts::arithmetic::is_aligned;
use crate::facts::broken::{Broken, refuse_if, rule};
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
    record(command_buffer, "vkCmdBindVertexBuffers", |device, state| {
        let buffers: Vec<_> = handles.iter().copied().zip(offsets.iter().copied()).collect();
        let rules = ["pBuffers-parameter", "pBuffers-00627", "pBuffers-00628", "pOffsets-00626"];
        for &place in &buffers {
            let usage = vk::BufferUsageFlags::VERTEX_BUFFER;
            check_buffer(device, state, place, usage, "vkCmdBindVertexBuffers", rules)?;
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
    record(command_buffer, "vkCmdBindIndexBuffer", |device, state| {
        let rules = ["buffer-parameter", "buffer-08784", "buffer-08785", "offset-08782"];
        let usage = vk::BufferUsageFlags::INDEX_BUFFER;
        check_buffer(device, state, (buffer, offset), usage, "vkCmdBindIndexBuffer", rules)?;
        let Some(size) = index_size(kind) else {
            let text = format!("{kind:?} is no type of an index buffer");
            return Err(("VUID-vkCmdBindIndexBuffer-indexType-08786", text));
        };
        refuse_if!(!is_aligned(offset, size) => "VUID-vkCmdBindIndexBuffer-offset-08783",
            "offset is {offset}, no multiple of {size}");
        Ok(vec![RecordedCommand::BindIndexBuffer { buffer, offset, kind }])
    });
}

/// The rules of `call` are those of a handle, of usage, of memory and of the offset.
fn check_buffer(
    device: &DeviceObject,
    state: &DeviceState,
    (buffer, offset): (vk::Buffer, u64),
    usage: vk::BufferUsageFlags,
    call: &str,
    [unknown, unfit, unbound, outside]: [&str; 4],
) -> Result<(), Broken> {
    let name = state.name(buffer);
    let missing = || (rule(call, unknown), state.missing(device, buffer));
    let found = state.buffers.get(&buffer).ok_or_else(missing)?;
    let description = &found.description;
    refuse_if!(!description.usage.contains(usage) => rule(call, unfit),
        "{name} was created without the usage {usage:?}");
    refuse_if!(!found.is_backed() => rule(call, unbound), "{name} has no memory");
    refuse_if!(offset >= description.size => rule(call, outside),
        "offset is {offset}, and {name} has {} bytes", description.size);
    Ok(())
}

pub(crate) unsafe extern "system" fn draw(
    command_buffer: vk::CommandBuffer,
    count: u32,
    instances: u32,
    first: u32,
    first_instance: u32,
) {
    record(command_buffer, "vkCmdDraw", |_, state| {
        let span = DrawSpan { first, count, vertex_offset: 0, first_instance, instances };
        made(state, command_buffer, DrawCounts::Given(span), false, "vkCmdDraw")
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
    record(command_buffer, "vkCmdDrawIndexed", |_, state| {
        let span = DrawSpan { first, count, vertex_offset, first_instance, instances };
        made(state, command_buffer, DrawCounts::Given(span), true, "vkCmdDrawIndexed")
    });
}

pub(crate) unsafe extern "system" fn indirect(
    command_buffer: vk::CommandBuffer,
    buffer: vk::Buffer,
    offset: u64,
    count: u32,
    stride: u32,
) {
    record(command_buffer, "vkCmdDrawIndirect", |device, state| {
        let counts = DrawCounts::At { buffer, offset, count, stride };
        let rules = ["drawCount-00487", "drawCount-00488", "drawCount-00476"];
        check_indirect(device, state, counts, false, "vkCmdDrawIndirect", rules)?;
        made(state, command_buffer, counts, false, "vkCmdDrawIndirect")
    });
}

pub(crate) unsafe extern "system" fn indexed_indirect(
    command_buffer: vk::CommandBuffer,
    buffer: vk::Buffer,
    offset: u64,
    count: u32,
    stride: u32,
) {
    record(command_buffer, "vkCmdDrawIndexedIndirect", |device, state| {
        let counts = DrawCounts::At { buffer, offset, count, stride };
        let rules = ["drawCount-00539", "drawCount-00540", "drawCount-00528"];
        check_indirect(device, state, counts, true, "vkCmdDrawIndexedIndirect", rules)?;
        made(state, command_buffer, counts, true, "vkCmdDrawIndexedIndirect")
    });
}

/// The rules of `call` are those of the end of one command and of several, and of the distance between them.
fn check_indirect(
    device: &DeviceObject,
    state: &DeviceState,
    counts: DrawCounts,
    indexed: bool,
    call: &str,
    [one, several, apart]: [&str; 3],
) -> Result<(), Broken> {
    let DrawCounts::At { buffer, offset, count, stride } = counts else { return Ok(()) };
    if count == 0 {
        return Ok(());
    }
    let usage = vk::BufferUsageFlags::INDIRECT_BUFFER;
    let end = if count == 1 { one } else { several };
    let rules = ["buffer-parameter", "buffer-02709", "buffer-02708", end];
    check_buffer(device, state, (buffer, offset), usage, call, rules)?;
    refuse_if!(!is_aligned(offset, 4) => rule(call, "offset-02710"), "offset is {offset}, no multiple of 4");
    let size = indirect_size(indexed);
    let stride = u64::from(stride);
    refuse_if!(count > 1 && (!is_aligned(stride, 4) || stride < size) => rule(call, apart),
        "{count} commands of {size} bytes are {stride} bytes apart");
    let last = offset.saturating_add(u64::from(count - 1).saturating_mul(stride)).saturating_add(size);
    let whole = state.buffers.get(&buffer).map_or(0, |buffer| buffer.description.size);
    refuse_if!(last > whole => rule(call, end),
        "the last command ends at {last}, and {} has {whole} bytes", state.name(buffer));
    Ok(())
}

/// The command that draws with what is bound now, if that is complete.
fn made(
    state: &DeviceState,
    command_buffer: vk::CommandBuffer,
    counts: DrawCounts,
    indexed: bool,
    call: &str,
) -> Result<Vec<RecordedCommand>, Broken> {
    let missing = |rest, text: &str| Err((rule(call, rest), text.to_owned()));
    let Some(rendering) = state.rendering(command_buffer) else {
        return missing("renderpass", "no rendering has begun");
    };
    let Some(buffer) = state.commands.buffers.get(&command_buffer) else { return Ok(Vec::new()) };
    let DrawState { program, vertices, indices, set } = &buffer.uses.draws;
    let Some((program, drawing)) = program.as_ref().and_then(|own| Some((own, own.drawing.as_ref()?))) else {
        return missing("None-08606", "no graphics pipeline is bound");
    };
    fits(&drawing.formats, &rendering.formats, call)?;
    for (place, (_, name, rest)) in DYNAMIC.iter().enumerate() {
        refuse_if!(drawing.sets[place] && !set[place] => rule(call, rest),
            "the pipeline leaves the {name} to commands, and none was set");
    }
    let mut used = BTreeMap::new();
    for binding in drawing.buffers.keys() {
        let Some(bound) = vertices.get(binding) else {
            return Err((rule(call, "None-04007"), format!("no vertex buffer is bound at {binding}")));
        };
        used.insert(*binding, *bound);
    }
    let indices = if indexed { *indices } else { None };
    refuse_if!(indexed && indices.is_none() => rule(call, "None-07312"), "no index buffer is bound");
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
fn fits(own: &Formats, attached: &Formats, call: &str) -> Result<(), Broken> {
    if attached.in_pass {
        refuse_if!(own != attached => rule(call, "renderPass-02684"),
            "the pipeline is for {own:?}, and the pass has {attached:?}");
        return Ok(());
    }
    refuse_if!(own.in_pass => rule(call, "renderPass-06198"),
        "the pipeline is for a render pass, and none has begun");
    let (count, given) = (own.colors.len(), attached.colors.len());
    refuse_if!(count != given => rule(call, "colorAttachmentCount-06179"),
        "the pipeline is for {count} colors, and there are {given}");
    let colors = own.colors.iter().zip(&attached.colors).map(|pair| (pair, "08910"));
    let others = [((&own.depth, &attached.depth), "08914"), ((&own.stencil, &attached.stencil), "08917")];
    for ((own, attached), number) in colors.chain(others) {
        refuse_if!(own != attached => rule(call, &format!("dynamicRenderingUnusedAttachments-{number}")),
            "the pipeline is for {own:?}, and {attached:?} is attached");
    }
    refuse_if!(own.view_mask != attached.view_mask => rule(call, "viewMask-06178"),
        "the pipeline has the views {:#b}, and rendering {:#b}", own.view_mask, attached.view_mask);
    if let (Some(own), Some(attached)) = (own.samples, attached.samples) {
        refuse_if!(own != attached => rule(call, "multisampledRenderToSingleSampled-07285"),
            "the pipeline has {own:?} samples, and {attached:?} are attached");
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
