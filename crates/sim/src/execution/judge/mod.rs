//! Compares the accesses of commands and shaders with those before them.

pub(crate) mod accesses;
pub(crate) mod report;

use ash::vk;
use ash::vk::Handle as _;

use crate::hazards::{AccessRange, Actor, CommandAccess, CommandBarrier, DependencyScope, Finding};
use crate::objects::commands::RecordedCommand;
use crate::objects::state::{DeviceObject, DeviceState};

/// Barriers, each with what it is about.
pub(crate) fn placed(
    state: &DeviceState,
    bars: &[CommandBarrier],
) -> Vec<(CommandBarrier, Option<AccessRange>)> {
    bars.iter().map(|bar| (bar.clone(), accesses::place(state, &bar.on))).collect()
}

/// Judges one command that a queue runs now, and reports what it finds.
pub(crate) fn judge(device: &DeviceObject, command: &RecordedCommand, actor: Actor) {
    let mut state = device.state.lock();
    let Some(mut judge) = state.hazards.take() else { return };
    if matches!(command, RecordedCommand::Barrier(_)) {
        judge.owners.retain(|handle| {
            state.buffers.contains_key(&vk::Buffer::from_raw(handle))
                || state.images.contains_key(&vk::Image::from_raw(handle))
        });
    }
    let found = match command {
        RecordedCommand::Barrier(bars) => judge.barrier(actor, &placed(&state, bars), None),
        RecordedCommand::WaitEvents { events, bars } => {
            judge.barrier(actor, &placed(&state, bars), Some(events))
        }
        RecordedCommand::SetEvent { event, stages } => {
            let first = DependencyScope::first(*stages, vk::AccessFlags2::NONE);
            judge.each(|past| past.mark(actor.timeline, *event, first.order));
            Vec::new()
        }
        RecordedCommand::ResetEvent { event } => {
            judge.each(|past| past.unmark(*event));
            Vec::new()
        }
        command => judge.access(actor, &accesses::of(device, &state, command, actor)),
    };
    state.hazards = Some(judge);
    found.iter().for_each(|finding| report::report(device, &state, actor, finding));
}

/// Judges what a shader reads or writes: bytes of a buffer.
pub(crate) fn judge_shader(
    device: &DeviceObject,
    (actor, stage): (Actor, vk::ShaderStageFlags),
    buffer: vk::Buffer,
    range: (u64, u64),
    write: bool,
) {
    judge_use(device, actor, |state| accesses::of_shader(state, stage, buffer, range, write));
}

/// Judges what a shader reads or writes: a subresource of an image, whole, as nobody knows which texels another reads.
pub(crate) fn judge_texels(
    device: &DeviceObject,
    (actor, stage): (Actor, vk::ShaderStageFlags),
    image: vk::Image,
    range: &vk::ImageSubresourceRange,
    (sampled, write): (bool, bool),
) {
    judge_use(device, actor, |state| accesses::of_texels(state, stage, image, range, (sampled, write)));
}

/// Of a dispatch or a draw only the first of several hazards with the same call is reported.
pub(crate) fn judge_use(
    device: &DeviceObject,
    actor: Actor,
    of: impl FnOnce(&DeviceState) -> Option<CommandAccess>,
) {
    let mut state = device.state.lock();
    let Some(mut judge) = state.hazards.take() else { return };
    let uses: Vec<_> = of(&state).into_iter().collect();
    let found = judge.access(actor, &uses);
    for finding in &found {
        let pair = match finding {
            Finding::Hazard(hazard) => (actor, Some(hazard.before.actor)),
            Finding::Owner(_) => (actor, None),
        };
        if judge.reported != Some(pair) {
            judge.reported = Some(pair);
            report::report(device, &state, actor, finding);
        }
    }
    state.hazards = Some(judge);
}
