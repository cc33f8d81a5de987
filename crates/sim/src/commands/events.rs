//! Events: a dependency whose two halves are apart.
//!
//! Submissions of a queue run in order, so that a command that waits finds its event set, or nothing on this queue will
//! set it: that is reported, and the command waits for nothing.
#![expect(unsafe_code, reason = "the functions have the C ABI")]

use ash::vk;

use super::barriers::Barriers;
use super::{barriers, record};
use crate::facts::broken::{Broken, refuse_if};
use crate::facts::chain;
use crate::hazards::stages2;
use crate::objects::commands::RecordedCommand;
use crate::objects::entry::{checked, on_device};
use crate::objects::host;
use crate::objects::state::{DeviceObject, DeviceState};

pub(crate) unsafe extern "system" fn create(
    device: vk::Device,
    p_info: *const vk::EventCreateInfo<'_>,
    _: *const vk::AllocationCallbacks<'_>,
    p_event: *mut vk::Event,
) -> vk::Result {
    checked(device, "vkCreateEvent", |device| {
        // SAFETY: VUID-vkCreateEvent-pCreateInfo-parameter.
        unsafe { chain::given(p_info, "VUID-vkCreateEvent-pCreateInfo-parameter") }?;
        let handle = device.gpu_state.handle();
        device.state.lock().sync.events.insert(handle, false);
        // SAFETY: VUID-vkCreateEvent-pEvent-parameter.
        unsafe { chain::output(p_event, handle) };
        Ok(vk::Result::SUCCESS)
    })
}

pub(crate) unsafe extern "system" fn destroy(
    device: vk::Device,
    event: vk::Event,
    _: *const vk::AllocationCallbacks<'_>,
) {
    on_device(device, "vkDestroyEvent", |device| {
        let rule = "VUID-vkDestroyEvent-event-parameter";
        host::forget(device, event, rule, |state, _| state.sync.events.remove(&event));
    });
}

pub(crate) unsafe extern "system" fn status(device: vk::Device, event: vk::Event) -> vk::Result {
    checked(device, "vkGetEventStatus", |device| {
        let state = device.state.lock();
        let set = known(device, &state, event, "VUID-vkGetEventStatus-event-parameter")?;
        Ok(if set { vk::Result::EVENT_SET } else { vk::Result::EVENT_RESET })
    })
}

pub(crate) unsafe extern "system" fn set_now(device: vk::Device, event: vk::Event) -> vk::Result {
    of_host(device, event, "vkSetEvent", "VUID-vkSetEvent-event-parameter", true)
}

pub(crate) unsafe extern "system" fn reset_now(device: vk::Device, event: vk::Event) -> vk::Result {
    of_host(device, event, "vkResetEvent", "VUID-vkResetEvent-event-parameter", false)
}

fn of_host(
    device: vk::Device,
    event: vk::Event,
    call: &'static str,
    rule: &'static str,
    set: bool,
) -> vk::Result {
    checked(device, call, |device| {
        let mut state = device.state.lock();
        known(device, &state, event, rule)?;
        state.sync.events.insert(event, set);
        Ok(vk::Result::SUCCESS)
    })
}

/// Checks whether an event is set.
fn known(
    device: &DeviceObject,
    state: &DeviceState,
    event: vk::Event,
    rule: &'static str,
) -> Result<bool, Broken> {
    state.known(device, event, state.sync.events.get(&event).copied(), rule)
}

pub(crate) unsafe extern "system" fn set(
    command_buffer: vk::CommandBuffer,
    event: vk::Event,
    stages: vk::PipelineStageFlags,
) {
    record(command_buffer, "vkCmdSetEvent", |device, state| {
        known(device, state, event, "VUID-vkCmdSetEvent-event-parameter")?;
        Ok(vec![RecordedCommand::SetEvent { event, stages: stages2(stages) }])
    });
}

pub(crate) unsafe extern "system" fn set2(
    command_buffer: vk::CommandBuffer,
    event: vk::Event,
    p_info: *const vk::DependencyInfo<'_>,
) {
    // SAFETY: VUID-vkCmdSetEvent2-pDependencyInfo-parameter.
    let Some(info) = (unsafe { chain::input(p_info) }) else {
        return;
    };
    record(command_buffer, "vkCmdSetEvent2", |device, state| {
        refuse_if!(!device.features.synchronization2 => "VUID-vkCmdSetEvent2-synchronization2-03824",
            "the feature synchronization2 is not enabled");
        known(device, state, event, "VUID-vkCmdSetEvent2-event-parameter")?;
        // SAFETY: VUID-vkCmdSetEvent2-pDependencyInfo-parameter: a valid structure.
        let stages = unsafe { barriers::first_stages(info) };
        Ok(vec![RecordedCommand::SetEvent { event, stages }])
    });
}

pub(crate) unsafe extern "system" fn reset(
    command_buffer: vk::CommandBuffer,
    event: vk::Event,
    _: vk::PipelineStageFlags,
) {
    record(command_buffer, "vkCmdResetEvent", |device, state| {
        known(device, state, event, "VUID-vkCmdResetEvent-event-parameter")?;
        Ok(vec![RecordedCommand::ResetEvent { event }])
    });
}

pub(crate) unsafe extern "system" fn reset2(
    command_buffer: vk::CommandBuffer,
    event: vk::Event,
    _: vk::PipelineStageFlags2,
) {
    record(command_buffer, "vkCmdResetEvent2", |device, state| {
        refuse_if!(!device.features.synchronization2 => "VUID-vkCmdResetEvent2-synchronization2-03829",
            "the feature synchronization2 is not enabled");
        known(device, state, event, "VUID-vkCmdResetEvent2-event-parameter")?;
        Ok(vec![RecordedCommand::ResetEvent { event }])
    });
}

pub(crate) unsafe extern "system" fn wait(
    command_buffer: vk::CommandBuffer,
    count: u32,
    p_events: *const vk::Event,
    src: vk::PipelineStageFlags,
    dst: vk::PipelineStageFlags,
    memory_count: u32,
    p_memory: *const vk::MemoryBarrier<'_>,
    buffer_count: u32,
    p_buffers: *const vk::BufferMemoryBarrier<'_>,
    image_count: u32,
    p_images: *const vk::ImageMemoryBarrier<'_>,
) {
    // SAFETY: VUID-vkCmdWaitEvents-pEvents-parameter.
    let events = unsafe { chain::array(p_events, count) };
    // SAFETY: VUID-vkCmdWaitEvents-pMemoryBarriers-parameter.
    let memory = unsafe { chain::array(p_memory, memory_count) };
    // SAFETY: VUID-vkCmdWaitEvents-pBufferMemoryBarriers-parameter.
    let buffers = unsafe { chain::array(p_buffers, buffer_count) };
    // SAFETY: VUID-vkCmdWaitEvents-pImageMemoryBarriers-parameter.
    let images = unsafe { chain::array(p_images, image_count) };
    record(command_buffer, "vkCmdWaitEvents", |device, state| {
        for event in events {
            known(device, state, *event, "VUID-vkCmdWaitEvents-pEvents-parameter")?;
        }
        let all = barriers::of_first(device, state, command_buffer, (src, dst), memory, buffers, images);
        Ok(waiting(events.to_vec(), all))
    });
}

pub(crate) unsafe extern "system" fn wait2(
    command_buffer: vk::CommandBuffer,
    count: u32,
    p_events: *const vk::Event,
    p_infos: *const vk::DependencyInfo<'_>,
) {
    // SAFETY: VUID-vkCmdWaitEvents2-pEvents-parameter.
    let events = unsafe { chain::array(p_events, count) };
    // SAFETY: VUID-vkCmdWaitEvents2-pDependencyInfos-parameter.
    let infos = unsafe { chain::array(p_infos, count) };
    record(command_buffer, "vkCmdWaitEvents2", |device, state| {
        refuse_if!(!device.features.synchronization2 => "VUID-vkCmdWaitEvents2-synchronization2-03836",
            "the feature synchronization2 is not enabled");
        let mut commands = Vec::new();
        for (&event, info) in events.iter().zip(infos) {
            known(device, state, event, "VUID-vkCmdWaitEvents2-pEvents-parameter")?;
            // SAFETY: VUID-vkCmdWaitEvents2-pDependencyInfos-parameter: a valid structure.
            let all = unsafe { barriers::of_second(device, state, command_buffer, info) };
            commands.extend(waiting(vec![event], all));
        }
        Ok(commands)
    });
}

/// The wait, and the changes of layout behind it.
fn waiting(events: Vec<vk::Event>, all: Barriers) -> Vec<RecordedCommand> {
    let mut commands = vec![RecordedCommand::WaitEvents { events, bars: all.bars.unwrap_or_default() }];
    commands.extend(all.changes);
    commands
}
