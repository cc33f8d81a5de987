//! Command pools and command buffers: what is recorded, and its valid usage.
//!
//! A recorded command is data. It is checked when it is recorded, as far as it can be, and once more when it runs, see
//! `execute`: only then are the layouts of images known. A command that breaks a rule is reported and not recorded.

pub(crate) mod barriers;
pub(crate) mod buffers;
pub(crate) mod clear;
pub(crate) mod descriptor_buffers;
pub(crate) mod descriptors;
pub(crate) mod dispatch;
pub(crate) mod draw;
pub(crate) mod events;
pub(crate) mod heaps;
pub(crate) mod images;
pub(crate) mod pass;
pub(crate) mod pool;
pub(crate) mod rendering;
pub(crate) mod set;
#[cfg(test)]
pub(crate) mod tests;

use std::sync::Arc;

use ash::vk;

use crate::facts::arithmetic::index;
use crate::facts::broken::{Broken, refuse_if, rule};
use crate::facts::ffi;
use crate::hazards::Site;
use crate::objects::commands::{CommandBuffer, CommandBufferState, RecordedCommand};
use crate::objects::entry::{entries, on_command_buffer_checked};
use crate::objects::state::{DeviceObject, DeviceState};

pub(crate) use barriers::layout_name;

pub(crate) use dispatch::{INDIRECT_SIZE, check_groups};
pub(crate) use draw::{elements, index_size};

pub(crate) use images::blit::between;
pub(crate) use images::buffer::BufferLayout;

entries! {
    Device result vk::PFN_vkCreateCommandPool = pool::create: core 0 "vkCreateCommandPool";
    Device void vk::PFN_vkDestroyCommandPool = pool::destroy: core 0 "vkDestroyCommandPool";
    Device result vk::PFN_vkResetCommandPool = pool::reset: core 0 "vkResetCommandPool";
    Device void vk::PFN_vkTrimCommandPool = pool::trim:
        core 1 "vkTrimCommandPool", ext "VK_KHR_maintenance1" "vkTrimCommandPoolKHR";
    Device result vk::PFN_vkAllocateCommandBuffers = pool::allocate: core 0 "vkAllocateCommandBuffers";
    Device void vk::PFN_vkFreeCommandBuffers = pool::free: core 0 "vkFreeCommandBuffers";
    Device result vk::PFN_vkBeginCommandBuffer = pool::begin: core 0 "vkBeginCommandBuffer";
    Device result vk::PFN_vkEndCommandBuffer = pool::end: core 0 "vkEndCommandBuffer";
    Device result vk::PFN_vkResetCommandBuffer = pool::reset_buffer: core 0 "vkResetCommandBuffer";
    Device void vk::PFN_vkCmdExecuteCommands = pool::execute_commands: core 0 "vkCmdExecuteCommands";
    Device void vk::PFN_vkCmdCopyBuffer = buffers::copy: core 0 "vkCmdCopyBuffer";
    Device void vk::PFN_vkCmdCopyBuffer2 = buffers::copy2:
        core 3 "vkCmdCopyBuffer2", ext "VK_KHR_copy_commands2" "vkCmdCopyBuffer2KHR";
    Device void vk::PFN_vkCmdFillBuffer = buffers::fill: core 0 "vkCmdFillBuffer";
    Device void vk::PFN_vkCmdUpdateBuffer = buffers::update: core 0 "vkCmdUpdateBuffer";
    Device void vk::PFN_vkCmdCopyBufferToImage = images::buffer::from_buffer: core 0 "vkCmdCopyBufferToImage";
    Device void vk::PFN_vkCmdCopyBufferToImage2 = images::buffer::from_buffer2:
        core 3 "vkCmdCopyBufferToImage2", ext "VK_KHR_copy_commands2" "vkCmdCopyBufferToImage2KHR";
    Device void vk::PFN_vkCmdCopyImageToBuffer = images::buffer::to_buffer: core 0 "vkCmdCopyImageToBuffer";
    Device void vk::PFN_vkCmdCopyImageToBuffer2 = images::buffer::to_buffer2:
        core 3 "vkCmdCopyImageToBuffer2", ext "VK_KHR_copy_commands2" "vkCmdCopyImageToBuffer2KHR";
    Device void vk::PFN_vkCmdCopyImage = images::copy::copy: core 0 "vkCmdCopyImage";
    Device void vk::PFN_vkCmdCopyImage2 = images::copy::copy2:
        core 3 "vkCmdCopyImage2", ext "VK_KHR_copy_commands2" "vkCmdCopyImage2KHR";
    Device void vk::PFN_vkCmdBlitImage = images::blit::blit: core 0 "vkCmdBlitImage";
    Device void vk::PFN_vkCmdBlitImage2 = images::blit::blit2:
        core 3 "vkCmdBlitImage2", ext "VK_KHR_copy_commands2" "vkCmdBlitImage2KHR";
    Device void vk::PFN_vkCmdResolveImage = images::multisampled::resolve: core 0 "vkCmdResolveImage";
    Device void vk::PFN_vkCmdResolveImage2 = images::multisampled::resolve2:
        core 3 "vkCmdResolveImage2", ext "VK_KHR_copy_commands2" "vkCmdResolveImage2KHR";
    Device void vk::PFN_vkCmdClearColorImage = clear::color: core 0 "vkCmdClearColorImage";
    Device void vk::PFN_vkCmdBeginRendering = rendering::begin:
        core 3 "vkCmdBeginRendering", ext "VK_KHR_dynamic_rendering" "vkCmdBeginRenderingKHR";
    Device void vk::PFN_vkCmdEndRendering = rendering::end:
        core 3 "vkCmdEndRendering", ext "VK_KHR_dynamic_rendering" "vkCmdEndRenderingKHR";
    Device void vk::PFN_vkCmdBeginRenderPass = pass::begin: core 0 "vkCmdBeginRenderPass";
    Device void vk::PFN_vkCmdEndRenderPass = pass::end: core 0 "vkCmdEndRenderPass";
    Device void vk::PFN_vkCmdBindVertexBuffers = draw::bind_vertices: core 0 "vkCmdBindVertexBuffers";
    Device void vk::PFN_vkCmdBindIndexBuffer = draw::bind_indices: core 0 "vkCmdBindIndexBuffer";
    Device void vk::PFN_vkCmdSetViewport = set::viewport: core 0 "vkCmdSetViewport";
    Device void vk::PFN_vkCmdSetScissor = set::scissor: core 0 "vkCmdSetScissor";
    Device void vk::PFN_vkCmdSetDepthBias = set::depth_bias: core 0 "vkCmdSetDepthBias";
    Device void vk::PFN_vkCmdSetBlendConstants = set::blend_constants: core 0 "vkCmdSetBlendConstants";
    Device void vk::PFN_vkCmdSetStencilReference = set::stencil_reference: core 0 "vkCmdSetStencilReference";
    Device void vk::PFN_vkCmdSetCullMode = set::cull_mode: core 3 "vkCmdSetCullMode";
    Device void vk::PFN_vkCmdSetFrontFace = set::front_face: core 3 "vkCmdSetFrontFace";
    Device void vk::PFN_vkCmdBeginDebugUtilsLabelEXT = set::begin_label:
        ext "VK_EXT_debug_utils" "vkCmdBeginDebugUtilsLabelEXT";
    Device void vk::PFN_vkCmdEndDebugUtilsLabelEXT = set::end_label:
        ext "VK_EXT_debug_utils" "vkCmdEndDebugUtilsLabelEXT";
    Device void vk::PFN_vkCmdDraw = draw::draw: core 0 "vkCmdDraw";
    Device void vk::PFN_vkCmdDrawIndexed = draw::indexed: core 0 "vkCmdDrawIndexed";
    Device void vk::PFN_vkCmdDrawIndirect = draw::indirect: core 0 "vkCmdDrawIndirect";
    Device void vk::PFN_vkCmdDrawIndexedIndirect = draw::indexed_indirect: core 0 "vkCmdDrawIndexedIndirect";
    Device void vk::PFN_vkCmdBindDescriptorSets = descriptors::bind_sets: core 0 "vkCmdBindDescriptorSets";
    Device void vk::PFN_vkCmdPushDescriptorSetKHR = descriptors::push_set:
        ext "VK_KHR_push_descriptor" "vkCmdPushDescriptorSetKHR", core 4 "vkCmdPushDescriptorSet";
    Device void vk::PFN_vkCmdPushDescriptorSetWithTemplateKHR = descriptors::push_with_template:
        ext "VK_KHR_push_descriptor" "vkCmdPushDescriptorSetWithTemplateKHR",
        core 4 "vkCmdPushDescriptorSetWithTemplate";
    Device void vk::PFN_vkCmdBindPipeline = dispatch::bind_pipeline: core 0 "vkCmdBindPipeline";
    Device void vk::PFN_vkCmdDispatch = dispatch::dispatch: core 0 "vkCmdDispatch";
    Device void vk::PFN_vkCmdDispatchIndirect = dispatch::indirect: core 0 "vkCmdDispatchIndirect";
    Device void vk::PFN_vkCmdPushConstants = descriptors::push_constants: core 0 "vkCmdPushConstants";
    Device void vk::PFN_vkCmdPipelineBarrier = barriers::barrier: core 0 "vkCmdPipelineBarrier";
    Device void vk::PFN_vkCmdBindDescriptorBuffersEXT = descriptor_buffers::buffers:
        ext "VK_EXT_descriptor_buffer" "vkCmdBindDescriptorBuffersEXT";
    Device void vk::PFN_vkCmdSetDescriptorBufferOffsetsEXT = descriptor_buffers::offsets:
        ext "VK_EXT_descriptor_buffer" "vkCmdSetDescriptorBufferOffsetsEXT";
    Device void ffi::PFN_vkCmdBindHeapEXT = heaps::samplers:
        ext "VK_EXT_descriptor_heap" "vkCmdBindSamplerHeapEXT";
    Device void ffi::PFN_vkCmdBindHeapEXT = heaps::resources:
        ext "VK_EXT_descriptor_heap" "vkCmdBindResourceHeapEXT";
    Device void ffi::PFN_vkCmdPushDataEXT = heaps::push_data: ext "VK_EXT_descriptor_heap" "vkCmdPushDataEXT";
    Device result vk::PFN_vkCreateEvent = events::create: core 0 "vkCreateEvent";
    Device void vk::PFN_vkDestroyEvent = events::destroy: core 0 "vkDestroyEvent";
    Device result vk::PFN_vkGetEventStatus = events::status: core 0 "vkGetEventStatus";
    Device result vk::PFN_vkSetEvent = events::set_now: core 0 "vkSetEvent";
    Device result vk::PFN_vkResetEvent = events::reset_now: core 0 "vkResetEvent";
    Device void vk::PFN_vkCmdSetEvent = events::set: core 0 "vkCmdSetEvent";
    Device void vk::PFN_vkCmdResetEvent = events::reset: core 0 "vkCmdResetEvent";
    Device void vk::PFN_vkCmdWaitEvents = events::wait: core 0 "vkCmdWaitEvents";
    Device void vk::PFN_vkCmdSetEvent2 = events::set2:
        core 3 "vkCmdSetEvent2", ext "VK_KHR_synchronization2" "vkCmdSetEvent2KHR";
    Device void vk::PFN_vkCmdResetEvent2 = events::reset2:
        core 3 "vkCmdResetEvent2", ext "VK_KHR_synchronization2" "vkCmdResetEvent2KHR";
    Device void vk::PFN_vkCmdWaitEvents2 = events::wait2:
        core 3 "vkCmdWaitEvents2", ext "VK_KHR_synchronization2" "vkCmdWaitEvents2KHR";
    Device void vk::PFN_vkCmdPipelineBarrier2 = barriers::barrier2:
        core 3 "vkCmdPipelineBarrier2", ext "VK_KHR_synchronization2" "vkCmdPipelineBarrier2KHR";
}

/// The commands to record, or the rule that a call breaks.
type Recorded = Result<Vec<RecordedCommand>, Broken>;

/// Runs the recording entry point `call`. `body` checks the command and returns what to record, or the rule that it
/// breaks; it records nothing if `body` has reported the rule itself.
pub(crate) fn record(
    command_buffer: vk::CommandBuffer,
    call: &'static str,
    body: impl FnOnce(&DeviceObject, &DeviceState) -> Recorded,
) {
    let mut body = Some(body);
    record_dyn(command_buffer, call, &mut |device, state| {
        body.take().map_or(Ok(Vec::new()), |body| body(device, state))
    });
}

/// One copy of this code serves all commands, which makes the crate compile faster. It calls `body` at most once.
fn record_dyn(
    command_buffer: vk::CommandBuffer,
    call: &'static str,
    body: &mut dyn FnMut(&DeviceObject, &DeviceState) -> Recorded,
) {
    on_command_buffer_checked(command_buffer, call, |device| {
        let mut state = device.state.lock();
        let buffer = state.commands.buffers.get(&command_buffer);
        // Functions that became core have the rules of their core names.
        let core = call.strip_suffix("KHR").unwrap_or(call);
        refuse_if!(buffer.is_none_or(|buffer| buffer.phase != CommandBufferState::Recording)
            => rule(core, "commandBuffer-recording"),
            "{} is not being recorded", state.name(command_buffer));
        check_family(device, &state, command_buffer, call)?;
        check_outside(buffer, call)?;
        let commands = body(device, &state)?;
        let judged = state.hazards.is_some();
        if let Some(buffer) = state.commands.buffers.get_mut(&command_buffer) {
            if judged {
                let site = Site { call, index: buffer.uses.calls, buffer: command_buffer };
                buffer.uses.calls += 1;
                Arc::make_mut(&mut buffer.commands).push(RecordedCommand::By(site));
            }
            commands.iter().for_each(|command| buffer.uses.add(command));
            Arc::make_mut(&mut buffer.commands).extend(commands);
        }
        Ok(())
    });
}

/// The capabilities that a call needs of the family, if copies are not enough.
const NEEDS: [(&str, vk::QueueFlags, &str); 10] = [
    ("vkCmdBeginRendering", vk::QueueFlags::GRAPHICS, "VUID-vkCmdBeginRendering-commandBuffer-cmdpool"),
    ("vkCmdBeginRenderPass", vk::QueueFlags::GRAPHICS, "VUID-vkCmdBeginRenderPass-commandBuffer-cmdpool"),
    ("vkCmdDispatch", vk::QueueFlags::COMPUTE, "VUID-vkCmdDispatch-commandBuffer-cmdpool"),
    ("vkCmdDispatchIndirect", vk::QueueFlags::COMPUTE, "VUID-vkCmdDispatchIndirect-commandBuffer-cmdpool"),
    ("vkCmdClearColorImage", COMPUTE_OR_DRAW, "VUID-vkCmdClearColorImage-commandBuffer-cmdpool"),
    ("vkCmdSetEvent2", COMPUTE_OR_DRAW, "VUID-vkCmdSetEvent2-commandBuffer-cmdpool"),
    ("vkCmdBlitImage", vk::QueueFlags::GRAPHICS, "VUID-vkCmdBlitImage-commandBuffer-cmdpool"),
    ("vkCmdBlitImage2", vk::QueueFlags::GRAPHICS, "VUID-vkCmdBlitImage2-commandBuffer-cmdpool"),
    ("vkCmdResolveImage", vk::QueueFlags::GRAPHICS, "VUID-vkCmdResolveImage-commandBuffer-cmdpool"),
    ("vkCmdResolveImage2", vk::QueueFlags::GRAPHICS, "VUID-vkCmdResolveImage2-commandBuffer-cmdpool"),
];

const COMPUTE_OR_DRAW: vk::QueueFlags =
    vk::QueueFlags::from_raw(vk::QueueFlags::COMPUTE.as_raw() | vk::QueueFlags::GRAPHICS.as_raw());

fn check_family(
    device: &DeviceObject,
    state: &DeviceState,
    command_buffer: vk::CommandBuffer,
    call: &'static str,
) -> Result<(), Broken> {
    let Some((_, needed, rule)) = NEEDS.iter().find(|(name, ..)| *name == call) else {
        return Ok(());
    };
    let family = state.commands.family(command_buffer);
    let has = device.gpu_state.families.get(index(family)).map(|(flags, _)| *flags);
    refuse_if!(has.is_some_and(|has| !has.intersects(*needed)) => rule,
        "{} is of family {family}, which does none of {needed:?}", state.name(command_buffer));
    Ok(())
}

macro_rules! outside {
    ($($call:literal $rule:literal),*) => {
        [$(($call, concat!("VUID-", $call, "-", $rule))),*]
    };
}

/// The calls that are not allowed while rendering.
const OUTSIDE: [(&str, &str); 26] = outside! {
    "vkCmdCopyBuffer" "renderpass", "vkCmdCopyBuffer2" "renderpass", "vkCmdFillBuffer" "renderpass",
    "vkCmdUpdateBuffer" "renderpass", "vkCmdCopyBufferToImage" "renderpass", "vkCmdCopyBufferToImage2" "renderpass",
    "vkCmdCopyImageToBuffer" "renderpass", "vkCmdCopyImageToBuffer2" "renderpass", "vkCmdCopyImage" "renderpass",
    "vkCmdCopyImage2" "renderpass", "vkCmdBlitImage" "renderpass", "vkCmdBlitImage2" "renderpass",
    "vkCmdResolveImage" "renderpass", "vkCmdResolveImage2" "renderpass", "vkCmdClearColorImage" "renderpass",
    "vkCmdDispatch" "renderpass", "vkCmdDispatchIndirect" "renderpass", "vkCmdBeginRendering" "renderpass",
    "vkCmdSetEvent" "renderpass", "vkCmdSetEvent2" "renderpass", "vkCmdResetEvent" "renderpass",
    "vkCmdResetEvent2" "renderpass", "vkCmdPipelineBarrier" "None-09553", "vkCmdPipelineBarrier2" "None-09553",
    "vkCmdExecuteCommands" "contents-09680", "vkCmdBeginRenderPass" "renderpass"
};

fn check_outside(buffer: Option<&CommandBuffer>, call: &'static str) -> Result<(), Broken> {
    let is_rendering = buffer.is_some_and(|buffer| buffer.uses.rendering.is_some());
    let rule = OUTSIDE.iter().find(|(name, _)| is_rendering && *name == call);
    rule.map_or(Ok(()), |(_, rule)| Err((rule, "rendering has begun and not ended".to_owned())))
}

/// One of the two forms of a command. Each has rules of its own, whose identifiers end alike.
#[derive(Clone, Copy)]
pub(crate) struct CommandForm {
    call: &'static str,
    /// The call itself, or the structure with its arguments.
    info: &'static str,
    region: &'static str,
}

impl CommandForm {
    fn rule(&self, rest: &str) -> &'static str {
        rule(self.info, rest)
    }

    fn region_rule(&self, rest: &str) -> &'static str {
        rule(self.region, rest)
    }
}

/// The size of a buffer that a command may use. Else it reports why not, by a rule of `of`, and answers `None`.
fn buffer_size(
    device: &DeviceObject,
    state: &DeviceState,
    buffer: vk::Buffer,
    usage: vk::BufferUsageFlags,
    of: &str,
    [unknown, unfit, unbound]: [&str; 3],
) -> Option<u64> {
    let name = state.name(buffer);
    let Some(found) = state.buffers.get(&buffer) else {
        device.report(rule(of, unknown), state.missing(device, buffer));
        return None;
    };
    if !found.description.usage.contains(usage) {
        let missing =
            if usage == vk::BufferUsageFlags::TRANSFER_SRC { "TRANSFER_SRC" } else { "TRANSFER_DST" };
        device.report(rule(of, unfit), format!("{name} was created without the usage {missing}"));
        return None;
    }
    if !found.is_backed() {
        device.report(rule(of, unbound), format!("{name} has no memory"));
        return None;
    }
    Some(found.description.size)
}
