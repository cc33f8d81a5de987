//! Compute pipelines and dispatches: recording, and its valid usage.

use std::sync::Arc;

use ash::vk;

use super::{Command, record};
use crate::arithmetic::is_aligned;
use crate::describe::Broken;
use crate::entry::call;
use crate::physical::MAX_GROUPS;
use crate::state::{Device, DeviceState};

/// Bytes of a `VkDispatchIndirectCommand`.
const INDIRECT_SIZE: u64 = 12;

pub(super) unsafe extern "system" fn bind_pipeline(
    command_buffer: vk::CommandBuffer,
    point: vk::PipelineBindPoint,
    pipeline: vk::Pipeline,
) {
    let recording = "VUID-vkCmdBindPipeline-commandBuffer-recording";
    record(command_buffer, call!("vkCmdBindPipeline"), recording, |device, state| {
        let Some(found) = state.pipelines.pipelines.get(&pipeline) else {
            return Err(("VUID-vkCmdBindPipeline-pipeline-parameter", state.missing(device, pipeline)));
        };
        if point != vk::PipelineBindPoint::COMPUTE {
            let text = format!("{} is a compute pipeline, and is bound as {point:?}", state.name(pipeline));
            return Err(("VUID-vkCmdBindPipeline-pipelineBindPoint-00779", text));
        }
        Ok(vec![Command::BindPipeline { point, pipeline, program: Arc::clone(&found.program) }])
    });
}

/// Whether the commands so far have bound a compute pipeline.
fn check_pipeline(
    state: &DeviceState,
    command_buffer: vk::CommandBuffer,
    rule: &'static str,
) -> Result<(), Broken> {
    let bound = state.commands.buffers.get(&command_buffer).is_some_and(|buffer| buffer.uses.can_dispatch);
    if bound { Ok(()) } else { Err((rule, "no compute pipeline is bound".to_owned())) }
}

pub(super) unsafe extern "system" fn dispatch(command_buffer: vk::CommandBuffer, x: u32, y: u32, z: u32) {
    let recording = "VUID-vkCmdDispatch-commandBuffer-recording";
    record(command_buffer, call!("vkCmdDispatch"), recording, |_, state| {
        let groups = [x, y, z];
        let rules = [
            "VUID-vkCmdDispatch-groupCountX-00386",
            "VUID-vkCmdDispatch-groupCountY-00387",
            "VUID-vkCmdDispatch-groupCountZ-00388",
        ];
        check_pipeline(state, command_buffer, "VUID-vkCmdDispatch-None-08606")?;
        check_groups(groups, rules)?;
        Ok(vec![Command::Dispatch { groups }])
    });
}

/// Whether so many workgroups may be started.
pub(crate) fn check_groups(groups: [u32; 3], rules: [&'static str; 3]) -> Result<(), Broken> {
    match groups.into_iter().zip(rules).find(|(count, _)| *count > MAX_GROUPS) {
        Some((count, rule)) => Err((rule, format!("{count} workgroups, and the most is {MAX_GROUPS}"))),
        None => Ok(()),
    }
}

pub(super) unsafe extern "system" fn indirect(
    command_buffer: vk::CommandBuffer,
    buffer: vk::Buffer,
    offset: u64,
) {
    let recording = "VUID-vkCmdDispatchIndirect-commandBuffer-recording";
    record(command_buffer, call!("vkCmdDispatchIndirect"), recording, |device, state| {
        check_pipeline(state, command_buffer, "VUID-vkCmdDispatchIndirect-None-08606")?;
        check_indirect(device, state, buffer, offset)?;
        Ok(vec![Command::DispatchIndirect { buffer, offset }])
    });
}

fn check_indirect(
    device: &Device,
    state: &DeviceState,
    buffer: vk::Buffer,
    offset: u64,
) -> Result<(), Broken> {
    let name = state.name(buffer);
    let Some(found) = state.buffers.get(&buffer) else {
        return Err(("VUID-vkCmdDispatchIndirect-buffer-parameter", state.missing(device, buffer)));
    };
    let size = found.description.size;
    if !found.is_backed() {
        return Err(("VUID-vkCmdDispatchIndirect-buffer-02708", format!("{name} has no memory")));
    }
    if !found.description.usage.contains(vk::BufferUsageFlags::INDIRECT_BUFFER) {
        let text = format!("{name} was created without the usage INDIRECT_BUFFER");
        return Err(("VUID-vkCmdDispatchIndirect-buffer-02709", text));
    }
    if !is_aligned(offset, 4) {
        return Err((
            "VUID-vkCmdDispatchIndirect-offset-02710",
            format!("offset is {offset}, no multiple of 4"),
        ));
    }
    if size.checked_sub(offset).is_none_or(|left| left < INDIRECT_SIZE) {
        let text = format!("offset is {offset}, and {name} has {size} bytes");
        return Err(("VUID-vkCmdDispatchIndirect-offset-00407", text));
    }
    Ok(())
}
