//! The valid usage of a submission.

use ash::vk;
use ash::vk::Handle as _;

use super::SubmitBatch;
use crate::facts::broken::{Broken, refuse_if};
use crate::objects::commands::CommandBufferState;
use crate::objects::handle_map::{HandleMap, HandleSet};
use crate::objects::state::{DeviceObject, DeviceState};
use crate::objects::sync::SemaphoreKind;

/// The rules of a submission. Each form of the call has identifiers of its own.
pub(crate) struct SubmissionRules {
    fence_unsignaled: &'static str,
    fence_pending: &'static str,
    fence: &'static str,
    command_buffer: &'static str,
    executable: &'static str,
    family: &'static str,
    simultaneous: &'static str,
    secondary: &'static str,
    wait_semaphore: &'static str,
    signal_semaphore: &'static str,
    wait_unsignaled: &'static str,
    signal_signaled: &'static str,
    signal_value: &'static str,
}

pub(crate) const FIRST: SubmissionRules = SubmissionRules {
    fence_unsignaled: "VUID-vkQueueSubmit-fence-00063",
    fence_pending: "VUID-vkQueueSubmit-fence-00064",
    fence: "VUID-vkQueueSubmit-fence-parameter",
    command_buffer: "VUID-VkSubmitInfo-pCommandBuffers-parameter",
    executable: "VUID-vkQueueSubmit-pCommandBuffers-00070",
    family: "VUID-vkQueueSubmit-pCommandBuffers-00074",
    simultaneous: "VUID-vkQueueSubmit-pCommandBuffers-00071",
    secondary: "VUID-VkSubmitInfo-pCommandBuffers-00075",
    wait_semaphore: "VUID-VkSubmitInfo-pWaitSemaphores-parameter",
    signal_semaphore: "VUID-VkSubmitInfo-pSignalSemaphores-parameter",
    wait_unsignaled: "VUID-vkQueueSubmit-pWaitSemaphores-03238",
    signal_signaled: "VUID-vkQueueSubmit-pSignalSemaphores-00067",
    signal_value: "VUID-VkSubmitInfo-pSignalSemaphores-03242",
};

pub(crate) const SECOND: SubmissionRules = SubmissionRules {
    fence_unsignaled: "VUID-vkQueueSubmit2-fence-04894",
    fence_pending: "VUID-vkQueueSubmit2-fence-04895",
    fence: "VUID-vkQueueSubmit2-fence-parameter",
    command_buffer: "VUID-VkCommandBufferSubmitInfo-commandBuffer-parameter",
    executable: "VUID-vkQueueSubmit2-commandBuffer-03874",
    family: "VUID-vkQueueSubmit2-commandBuffer-03878",
    simultaneous: "VUID-vkQueueSubmit2-commandBuffer-03875",
    secondary: "VUID-VkCommandBufferSubmitInfo-commandBuffer-03890",
    wait_semaphore: "VUID-VkSemaphoreSubmitInfo-semaphore-parameter",
    signal_semaphore: "VUID-VkSemaphoreSubmitInfo-semaphore-parameter",
    wait_unsignaled: "VUID-vkQueueSubmit2-semaphore-03873",
    signal_signaled: "VUID-vkQueueSubmit2-semaphore-03868",
    signal_value: "VUID-VkSubmitInfo2-semaphore-03882",
};

/// Checks whether batches and fence keep the rules. It checks everything before anything is changed.
pub(crate) fn check(
    device: &DeviceObject,
    state: &DeviceState,
    timeline: usize,
    batches: &[SubmitBatch],
    fence: vk::Fence,
    rules: &SubmissionRules,
) -> Result<(), Broken> {
    if !fence.is_null() {
        let name = state.name(fence);
        match state.sync.fences.get(&fence) {
            None => return Err((rules.fence, state.missing(device, fence))),
            Some(fence) if fence.pending > 0 => {
                return Err((
                    rules.fence_pending,
                    format!("{name} is of another submission, which is not done"),
                ));
            }
            Some(fence) if fence.signaled => {
                return Err((rules.fence_unsignaled, format!("{name} is signaled already")));
            }
            Some(_) => {}
        }
    }
    // Batches of one call build upon one another: each sees the semaphores as those before leave them.
    let mut kinds = HandleMap::default();
    let mut once = HandleSet::default();
    for batch in batches {
        for &(semaphore, ..) in &batch.waits {
            let kind = semaphore_kind(device, state, &kinds, semaphore, rules.wait_semaphore)?;
            refuse_if!(kind == (SemaphoreKind::Binary { signaled: false }) => rules.wait_unsignaled,
                "{} is waited for, and nothing submitted signals it", state.name(semaphore));
            if let SemaphoreKind::Binary { .. } = kind {
                kinds.insert(semaphore, SemaphoreKind::Binary { signaled: false });
            }
        }
        for &handle in &batch.command_buffers {
            check_command_buffer(state, handle, rules)?;
            let (own, needed) = (state.commands.family(handle), device.families.get(timeline).copied());
            refuse_if!(needed.is_some_and(|family| family != own) => rules.family,
                "{} is of family {own}, and the queue is not", state.name(handle));
            let simultaneous =
                state.commands.buffers.get(&handle).is_some_and(|buffer| {
                    buffer.usage.contains(vk::CommandBufferUsageFlags::SIMULTANEOUS_USE)
                });
            refuse_if!(!once.insert(handle) && !simultaneous => rules.simultaneous,
                "{} is submitted twice, without SIMULTANEOUS_USE", state.name(handle));
        }
        for &(semaphore, value, _) in &batch.signals {
            match semaphore_kind(device, state, &kinds, semaphore, rules.signal_semaphore)? {
                SemaphoreKind::Binary { signaled: true } => {
                    let text = format!("{} is signaled, and signaled again", state.name(semaphore));
                    return Err((rules.signal_signaled, text));
                }
                SemaphoreKind::Binary { signaled: false } => {
                    kinds.insert(semaphore, SemaphoreKind::Binary { signaled: true });
                }
                SemaphoreKind::Timeline { value: reached, scheduled } => {
                    refuse_if!(value <= scheduled => rules.signal_value,
                        "{} is to be signaled with {value}, and its value is {reached}, and will be {scheduled}",
                        state.name(semaphore));
                    kinds.insert(semaphore, SemaphoreKind::Timeline { value: reached, scheduled: value });
                }
            }
        }
    }
    Ok(())
}

fn semaphore_kind(
    device: &DeviceObject,
    state: &DeviceState,
    kinds: &HandleMap<vk::Semaphore, SemaphoreKind>,
    semaphore: vk::Semaphore,
    unknown: &'static str,
) -> Result<SemaphoreKind, Broken> {
    if let Some(&kind) = kinds.get(&semaphore) {
        return Ok(kind);
    }
    match state.sync.semaphores.get(&semaphore).map(|found| found.kind) {
        // Another queue may reach a larger value later: only execution shows that.
        Some(SemaphoreKind::Timeline { value, .. }) if device.queues.len() > 1 => {
            Ok(SemaphoreKind::Timeline { value, scheduled: value })
        }
        Some(kind) => Ok(kind),
        None => Err((unknown, state.missing(device, semaphore))),
    }
}

fn check_command_buffer(
    state: &DeviceState,
    handle: vk::CommandBuffer,
    rules: &SubmissionRules,
) -> Result<(), Broken> {
    let name = state.name(handle);
    let Some(buffer) = state.commands.buffers.get(&handle) else {
        return Err((rules.command_buffer, format!("{name} was never allocated, or is freed")));
    };
    refuse_if!(buffer.is_secondary() => rules.secondary, "{name} is secondary");
    refuse_if!(buffer.phase != CommandBufferState::Executable => rules.executable,
        "{name} is not executable, but {:?}", buffer.phase);
    let simultaneous = buffer.usage.contains(vk::CommandBufferUsageFlags::SIMULTANEOUS_USE);
    refuse_if!(buffer.pending > 0 && !simultaneous => rules.simultaneous,
        "{name} is submitted while a submission still runs it, without SIMULTANEOUS_USE");
    // The objects that a command buffer names must be as they were when it was recorded.
    for used in buffer.uses.buffers.iter() {
        if let Err(reason) = state.buffer_bytes(used) {
            let text = format!("{name} is invalid: {} is {reason:?} since it was recorded", state.name(used));
            return Err((rules.executable, text));
        }
    }
    for used in buffer.uses.pipelines.iter() {
        refuse_if!(!state.pipelines.pipelines.contains_key(&used) => rules.executable,
            "{name} is invalid: {} is destroyed since it was bound", state.name(used));
    }
    for used in buffer.uses.passes.iter() {
        refuse_if!(!state.passes.passes.contains_key(&used) => rules.executable,
            "{name} is invalid: {} is destroyed since it was begun", state.name(used));
    }
    for used in buffer.uses.framebuffers.iter() {
        refuse_if!(!state.passes.framebuffers.contains_key(&used) => rules.executable,
            "{name} is invalid: {} is destroyed since a pass was begun with it", state.name(used));
    }
    for (&used, &version) in &buffer.uses.sets {
        let what = match state.descriptors.sets.get(&used) {
            None => "is freed",
            Some(set) if set.version != version => "is updated",
            Some(_) => continue,
        };
        let text = format!("{name} is invalid: {} {what} since it was bound", state.name(used));
        return Err((rules.executable, text));
    }
    for used in buffer.uses.images.iter() {
        if let Err(reason) = state.image_bytes(used) {
            let text = format!("{name} is invalid: {} is {reason:?} since it was recorded", state.name(used));
            return Err((rules.executable, text));
        }
    }
    Ok(())
}
