//! Commands that set state which pipelines leave to them, and labels for tools.
#![expect(unsafe_code, reason = "the functions have the C ABI")]

use ash::vk;

use super::record;
use crate::facts::broken::refuse_if;
use crate::facts::chain;
use crate::objects::commands::RecordedCommand;

pub(crate) unsafe extern "system" fn viewport(
    command_buffer: vk::CommandBuffer,
    _: u32,
    count: u32,
    p_viewports: *const vk::Viewport,
) {
    // SAFETY: VUID-vkCmdSetViewport-pViewports-parameter.
    let viewports = unsafe { chain::array(p_viewports, count) };
    record(command_buffer, "vkCmdSetViewport", |device, _| {
        let flips = device.minor >= 1 || device.extensions.iter().any(|name| name == "VK_KHR_maintenance1");
        let unit = 0.0..=1.0;
        for viewport in viewports {
            refuse_if!(viewport.width <= 0.0 => "VUID-VkViewport-width-01770",
                "the width is {}", viewport.width);
            refuse_if!(viewport.height < 0.0 && !flips => "VUID-VkViewport-apiVersion-07917",
                "the height is {}, and VK_KHR_maintenance1 is not enabled", viewport.height);
            refuse_if!(!unit.contains(&viewport.min_depth) => "VUID-VkViewport-minDepth-01234",
                "minDepth is {}", viewport.min_depth);
            refuse_if!(!unit.contains(&viewport.max_depth) => "VUID-VkViewport-maxDepth-01235",
                "maxDepth is {}", viewport.max_depth);
        }
        Ok(vec![RecordedCommand::Set(0)])
    });
}

pub(crate) unsafe extern "system" fn scissor(
    command_buffer: vk::CommandBuffer,
    _: u32,
    count: u32,
    p_scissors: *const vk::Rect2D,
) {
    // SAFETY: VUID-vkCmdSetScissor-pScissors-parameter.
    let scissors = unsafe { chain::array(p_scissors, count) };
    record(command_buffer, "vkCmdSetScissor", |_, _| {
        for vk::Rect2D { offset, extent } in scissors {
            refuse_if!(offset.x < 0 || offset.y < 0 => "VUID-vkCmdSetScissor-x-00595",
                "a scissor begins at {}, {}", offset.x, offset.y);
            refuse_if!(offset.x.checked_add_unsigned(extent.width).is_none()
                => "VUID-vkCmdSetScissor-offset-00596", "a scissor is {} wide", extent.width);
            refuse_if!(offset.y.checked_add_unsigned(extent.height).is_none()
                => "VUID-vkCmdSetScissor-offset-00597", "a scissor is {} high", extent.height);
        }
        Ok(vec![RecordedCommand::Set(1)])
    });
}

pub(crate) unsafe extern "system" fn depth_bias(
    command_buffer: vk::CommandBuffer,
    _: f32,
    clamp: f32,
    _: f32,
) {
    record(command_buffer, "vkCmdSetDepthBias", |_, _| {
        refuse_if!(clamp != 0.0 => "VUID-vkCmdSetDepthBias-depthBiasClamp-00790",
            "the clamp is {clamp}, and the simulated device has no feature depthBiasClamp");
        Ok(vec![RecordedCommand::Set(2)])
    });
}

pub(crate) unsafe extern "system" fn blend_constants(command_buffer: vk::CommandBuffer, _: *const [f32; 4]) {
    record(command_buffer, "vkCmdSetBlendConstants", |_, _| Ok(vec![RecordedCommand::Set(3)]));
}

pub(crate) unsafe extern "system" fn stencil_reference(
    command_buffer: vk::CommandBuffer,
    faces: vk::StencilFaceFlags,
    _: u32,
) {
    record(command_buffer, "vkCmdSetStencilReference", |_, _| {
        refuse_if!(faces.is_empty() => "VUID-vkCmdSetStencilReference-faceMask-requiredbitmask", "there is no face");
        Ok(vec![RecordedCommand::Set(4)])
    });
}

pub(crate) unsafe extern "system" fn cull_mode(command_buffer: vk::CommandBuffer, _: vk::CullModeFlags) {
    record(command_buffer, "vkCmdSetCullMode", |_, _| Ok(vec![RecordedCommand::Set(5)]));
}

pub(crate) unsafe extern "system" fn front_face(command_buffer: vk::CommandBuffer, _: vk::FrontFace) {
    record(command_buffer, "vkCmdSetFrontFace", |_, _| Ok(vec![RecordedCommand::Set(6)]));
}

pub(crate) unsafe extern "system" fn begin_label(
    command_buffer: vk::CommandBuffer,
    _: *const vk::DebugUtilsLabelEXT<'_>,
) {
    record(command_buffer, "vkCmdBeginDebugUtilsLabelEXT", |_, _| Ok(vec![RecordedCommand::Label(true)]));
}

pub(crate) unsafe extern "system" fn end_label(command_buffer: vk::CommandBuffer) {
    record(command_buffer, "vkCmdEndDebugUtilsLabelEXT", |_, state| {
        let begun = state.commands.buffers.get(&command_buffer).map_or(0, |buffer| buffer.uses.labels);
        refuse_if!(begun == 0 => "VUID-vkCmdEndDebugUtilsLabelEXT-commandBuffer-01912", "no label was begun");
        Ok(vec![RecordedCommand::Label(false)])
    });
}
