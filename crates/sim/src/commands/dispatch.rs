//! Pipelines and dispatches: recording, and its valid usage.
#![expect(unsafe_code, reason = "the functions have the C ABI")]

use std::sync::Arc;

use ash::vk;

use super::record;
use crate::facts::arithmetic::is_aligned;
use crate::facts::broken::{Broken, refuse_if};
use crate::facts::profiles::MAX_GROUPS;
use crate::objects::commands::RecordedCommand;
use crate::objects::state::{DeviceObject, DeviceState};

/// Bytes of a `VkDispatchIndirectCommand`.
pub(crate) const INDIRECT_SIZE: u64 = 12;

pub(crate) unsafe extern "system" fn bind_pipeline(
    command_buffer: vk::CommandBuffer,
    point: vk::PipelineBindPoint,
    pipeline: vk::Pipeline,
) {
    record(command_buffer, "vkCmdBindPipeline", |device, state| {
        let found = state.pipelines.pipelines.get(&pipeline);
        let found = state.known(device, pipeline, found, "VUID-vkCmdBindPipeline-pipeline-parameter")?;
        let own = found.program.point();
        let rule = match point {
            vk::PipelineBindPoint::GRAPHICS => "VUID-vkCmdBindPipeline-pipelineBindPoint-00780",
            _ => "VUID-vkCmdBindPipeline-pipelineBindPoint-00779",
        };
        refuse_if!(point != own => rule, "{} is for {own:?}, and is bound as {point:?}", state.name(pipeline));
        Ok(vec![RecordedCommand::BindPipeline { point, pipeline, program: Arc::clone(&found.program) }])
    });
}

/// Checks whether the commands so far have bound a compute pipeline.
fn check_pipeline(
    state: &DeviceState,
    command_buffer: vk::CommandBuffer,
    rule: &'static str,
) -> Result<(), Broken> {
    let bound = state.commands.buffers.get(&command_buffer).is_some_and(|buffer| buffer.uses.can_dispatch);
    if bound { Ok(()) } else { Err((rule, "no compute pipeline is bound".to_owned())) }
}

pub(crate) unsafe extern "system" fn dispatch(command_buffer: vk::CommandBuffer, x: u32, y: u32, z: u32) {
    record(command_buffer, "vkCmdDispatch", |_, state| {
        let groups = [x, y, z];
        let rules = [
            "VUID-vkCmdDispatch-groupCountX-00386",
            "VUID-vkCmdDispatch-groupCountY-00387",
            "VUID-vkCmdDispatch-groupCountZ-00388",
        ];
        check_pipeline(state, command_buffer, "VUID-vkCmdDispatch-None-08606")?;
        check_groups(groups, rules)?;
        Ok(vec![RecordedCommand::Dispatch { groups }])
    });
}

/// Checks whether this many workgroups may be started.
pub(crate) fn check_groups(groups: [u32; 3], rules: [&'static str; 3]) -> Result<(), Broken> {
    match groups.into_iter().zip(rules).find(|(count, _)| *count > MAX_GROUPS) {
        Some((count, rule)) => Err((rule, format!("{count} workgroups, and the most is {MAX_GROUPS}"))),
        None => Ok(()),
    }
}

pub(crate) unsafe extern "system" fn indirect(
    command_buffer: vk::CommandBuffer,
    buffer: vk::Buffer,
    offset: u64,
) {
    record(command_buffer, "vkCmdDispatchIndirect", |device, state| {
        check_pipeline(state, command_buffer, "VUID-vkCmdDispatchIndirect-None-08606")?;
        check_indirect(device, state, buffer, offset)?;
        Ok(vec![RecordedCommand::DispatchIndirect { buffer, offset }])
    });
}

fn check_indirect(
    device: &DeviceObject,
    state: &DeviceState,
    buffer: vk::Buffer,
    offset: u64,
) -> Result<(), Broken> {
    let name = state.name(buffer);
    let rule = "VUID-vkCmdDispatchIndirect-buffer-parameter";
    let found = state.known(device, buffer, state.buffers.get(&buffer), rule)?;
    let size = found.description.size;
    refuse_if!(!found.is_backed() => "VUID-vkCmdDispatchIndirect-buffer-02708", "{name} has no memory");
    refuse_if!(!found.description.usage.contains(vk::BufferUsageFlags::INDIRECT_BUFFER)
        => "VUID-vkCmdDispatchIndirect-buffer-02709",
        "{name} was created without the usage INDIRECT_BUFFER");
    refuse_if!(!is_aligned(offset, 4) => "VUID-vkCmdDispatchIndirect-offset-02710",
        "offset is {offset}, no multiple of 4");
    refuse_if!(size.checked_sub(offset).is_none_or(|left| left < INDIRECT_SIZE)
        => "VUID-vkCmdDispatchIndirect-offset-00407",
        "offset is {offset}, and {name} has {size} bytes");
    Ok(())
}
