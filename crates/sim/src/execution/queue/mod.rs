//! Queue submission.
//!
//! Each queue runs its submissions in order, on the thread that submits them. A submission may wait for a value of a
//! timeline semaphore, or for a binary semaphore that another queue has still to signal. Then it stays, with all behind
//! it, until that is done.
//!
//! A test may hold submissions back, so that work is "in flight" while the program goes on. If the program waits (for a
//! fence, a semaphore or the queue), the held work runs, because a GPU too finishes in time.

pub(crate) mod check;
pub(crate) mod run;
#[cfg(test)]
mod tests;

use std::ffi::c_void;
use std::sync::Arc;

use ash::vk;
use ash::vk::Handle as _;

use crate::facts::broken::{Broken, refuse_if};
use crate::facts::chain;
use crate::hazards;
use crate::hazards::SemaphoreUse;
use crate::objects::commands::{CommandBufferState, Uses};
use crate::objects::entry::{entries, on_queue};
use crate::objects::queues::{QueueSubmission, QueueTimeline};
use crate::objects::state::{DeviceObject, DeviceState};
use crate::objects::sync::SemaphoreKind;
use check::{FIRST, SECOND, SubmissionRules};

pub(crate) use run::{HeldSubmissions, Stuck, abandon, run, run_until};

entries! {
    Device result vk::PFN_vkQueueSubmit = submit: core 0 "vkQueueSubmit";
    Device result vk::PFN_vkQueueSubmit2 = submit2:
        core 3 "vkQueueSubmit2", ext "VK_KHR_synchronization2" "vkQueueSubmit2KHR";
    Device result vk::PFN_vkQueueWaitIdle = run::queue_wait_idle: core 0 "vkQueueWaitIdle";
    Device result vk::PFN_vkDeviceWaitIdle = run::device_wait_idle: core 0 "vkDeviceWaitIdle";
}

/// One batch of a call, in either form.
#[derive(Default)]
pub(crate) struct SubmitBatch {
    waits: Vec<SemaphoreUse>,
    command_buffers: Vec<vk::CommandBuffer>,
    signals: Vec<SemaphoreUse>,
}

#[expect(unsafe_code, reason = "the functions have the C ABI")]
unsafe extern "system" fn submit(
    queue: vk::Queue,
    count: u32,
    p_submits: *const vk::SubmitInfo<'_>,
    fence: vk::Fence,
) -> vk::Result {
    on_queue(queue, "vkQueueSubmit", |device| {
        // SAFETY: VUID-vkQueueSubmit-pSubmits-parameter.
        let infos = unsafe { chain::array(p_submits, count) };
        let mut batches = Vec::new();
        for info in infos {
            // SAFETY: VUID-vkQueueSubmit-pSubmits-parameter: a valid structure with a valid chain.
            batches.push(unsafe { read_batch(device, info) }?);
        }
        enqueue(device, device.timeline(queue), &batches, fence, &FIRST)
    })
}

/// # Safety
///
/// 1. The arrays of `info` have as many elements as it says.
/// 2. Its chain is valid.
#[expect(unsafe_code, reason = "the functions have the C ABI")]
unsafe fn read_batch(device: &DeviceObject, info: &vk::SubmitInfo<'_>) -> Result<SubmitBatch, Broken> {
    let waits = (info.p_wait_semaphores, info.wait_semaphore_count);
    let signals = (info.p_signal_semaphores, info.signal_semaphore_count);
    let command_buffers = (info.p_command_buffers, info.command_buffer_count);
    // SAFETY: 1 of `read_batch` (VUID-VkSubmitInfo-pWaitDstStageMask-parameter).
    let stages = unsafe { chain::array(info.p_wait_dst_stage_mask, info.wait_semaphore_count) };
    // SAFETY: 1 and 2 of `read_batch`.
    let mut batch = unsafe { SubmitBatch::read(device, waits, command_buffers, signals, info.p_next) }?;
    for ((_, _, all), &stages) in batch.waits.iter_mut().zip(stages) {
        *all = hazards::stages2(stages);
    }
    Ok(batch)
}

#[expect(unsafe_code, reason = "the functions have the C ABI")]
impl SubmitBatch {
    /// A batch in the first form of a call: semaphores and command buffers as arrays, values in the chain.
    ///
    /// # Safety
    ///
    /// 1. The arrays have as many elements as their counts say.
    /// 2. The chain is valid.
    pub(crate) unsafe fn read(
        device: &DeviceObject,
        waits: (*const vk::Semaphore, u32),
        command_buffers: (*const vk::CommandBuffer, u32),
        signals: (*const vk::Semaphore, u32),
        next: *const c_void,
    ) -> Result<Self, Broken> {
        // SAFETY: 1 of `read` (VUID-VkSubmitInfo-pWaitSemaphores-parameter).
        let waits = unsafe { chain::array(waits.0, waits.1) };
        // SAFETY: 1 of `read` (VUID-VkSubmitInfo-pSignalSemaphores-parameter).
        let signals = unsafe { chain::array(signals.0, signals.1) };
        // SAFETY: 1 of `read` (VUID-VkSubmitInfo-pCommandBuffers-parameter).
        let command_buffers = unsafe { chain::array(command_buffers.0, command_buffers.1) };
        // SAFETY: 2 of `read`.
        unsafe { with_values(device, waits, command_buffers, signals, next) }
    }
}

/// # Safety
///
/// The chain is valid.
#[expect(unsafe_code, reason = "the functions have the C ABI")]
unsafe fn with_values(
    device: &DeviceObject,
    waits: &[vk::Semaphore],
    command_buffers: &[vk::CommandBuffer],
    signals: &[vk::Semaphore],
    next: *const c_void,
) -> Result<SubmitBatch, Broken> {
    // SAFETY: VUID-VkSubmitInfo-pNext-pNext.
    let values = unsafe { chain::find::<vk::TimelineSemaphoreSubmitInfo<'_>>(next) };
    let state = device.state.lock();
    let any_timeline = |semaphores: &[vk::Semaphore]| {
        semaphores.iter().any(|&semaphore| state.sync.timeline(semaphore).is_some())
    };
    let (wait_values, signal_values) = match values {
        Some(values) => {
            // SAFETY: VUID-VkTimelineSemaphoreSubmitInfo-pWaitSemaphoreValues-parameter.
            let waits =
                unsafe { chain::array(values.p_wait_semaphore_values, values.wait_semaphore_value_count) };
            // SAFETY: VUID-VkTimelineSemaphoreSubmitInfo-pSignalSemaphoreValues-parameter.
            let signals = unsafe {
                chain::array(values.p_signal_semaphore_values, values.signal_semaphore_value_count)
            };
            (waits, signals)
        }
        None => (&[][..], &[][..]),
    };
    let (some_wait, some_signal) = (any_timeline(waits), any_timeline(signals));
    refuse_if!(values.is_none() && (some_wait || some_signal) => "VUID-VkSubmitInfo-pWaitSemaphores-03239",
        "a timeline semaphore, and no VkTimelineSemaphoreSubmitInfo");
    refuse_if!(some_wait && wait_values.len() != waits.len() => "VUID-VkSubmitInfo-pNext-03240",
        "{} wait semaphores, {} values", waits.len(), wait_values.len());
    refuse_if!(some_signal && signal_values.len() != signals.len() => "VUID-VkSubmitInfo-pNext-03241",
        "{} signal semaphores, {} values", signals.len(), signal_values.len());
    // Values for binary semaphores are ignored, and may be missing.
    let pair = |semaphores: &[vk::Semaphore], values: &[u64]| {
        let values = values.iter().copied().chain(std::iter::repeat(0));
        let pairs = semaphores.iter().zip(values);
        pairs.map(|(&semaphore, value)| (semaphore, value, vk::PipelineStageFlags2::ALL_COMMANDS)).collect()
    };
    Ok(SubmitBatch {
        waits: pair(waits, wait_values),
        command_buffers: command_buffers.to_vec(),
        signals: pair(signals, signal_values),
    })
}

#[expect(unsafe_code, reason = "the functions have the C ABI")]
unsafe extern "system" fn submit2(
    queue: vk::Queue,
    count: u32,
    p_submits: *const vk::SubmitInfo2<'_>,
    fence: vk::Fence,
) -> vk::Result {
    on_queue(queue, "vkQueueSubmit2", |device| {
        if !device.features.synchronization2 {
            let text = "the feature synchronization2 is not enabled";
            device.report("VUID-vkQueueSubmit2-synchronization2-03866", text);
        }
        // SAFETY: VUID-vkQueueSubmit2-pSubmits-parameter.
        let infos = unsafe { chain::array(p_submits, count) };
        let mut batches = Vec::new();
        for info in infos {
            // SAFETY: VUID-VkSubmitInfo2-pWaitSemaphoreInfos-parameter.
            let waits = unsafe { chain::array(info.p_wait_semaphore_infos, info.wait_semaphore_info_count) };
            // SAFETY: VUID-VkSubmitInfo2-pSignalSemaphoreInfos-parameter.
            let signals =
                unsafe { chain::array(info.p_signal_semaphore_infos, info.signal_semaphore_info_count) };
            // SAFETY: VUID-VkSubmitInfo2-pCommandBufferInfos-parameter.
            let buffers =
                unsafe { chain::array(info.p_command_buffer_infos, info.command_buffer_info_count) };
            let [waits, signals] = [waits, signals].map(|infos| {
                infos.iter().map(|info| (info.semaphore, info.value, info.stage_mask)).collect()
            });
            let command_buffers = buffers.iter().map(|info| info.command_buffer).collect();
            batches.push(SubmitBatch { waits, command_buffers, signals });
        }
        enqueue(device, device.timeline(queue), &batches, fence, &SECOND)
    })
}

/// Puts batches into a queue, or none of them if one breaks a rule, and runs what can run.
fn enqueue(
    device: &Arc<DeviceObject>,
    timeline: usize,
    batches: &[SubmitBatch],
    fence: vk::Fence,
    rules: &SubmissionRules,
) -> Result<vk::Result, Broken> {
    let mut state = device.state.lock();
    check::check(device, &state, timeline, batches, fence, rules)?;
    let mut submissions: Vec<_> = batches.iter().map(|batch| state.prepare(batch)).collect();
    if !fence.is_null() {
        // The last batch signals the fence of a call. Without a batch, the fence is signaled when all earlier work is
        // done.
        if submissions.is_empty() {
            let number = state.next_number();
            submissions.push(QueueSubmission { number, ..QueueSubmission::default() });
        }
        if let Some(last) = submissions.last_mut() {
            last.fence = fence;
        }
        if let Some(fence) = state.sync.fences.get_mut(&fence) {
            fence.pending += 1;
        }
    }
    if let Some(timeline) = state.queue.timelines.get_mut(timeline) {
        timeline.waiting.extend(submissions);
    }
    drop(state);
    run(device, HeldSubmissions::Back);
    // A thread that waits runs what is held back.
    device.changed.notify_all();
    Ok(vk::Result::SUCCESS)
}

/// Puts batches without commands into a queue: they only wait and signal.
pub(crate) fn enqueue_nothing(
    device: &Arc<DeviceObject>,
    queue: vk::Queue,
    batches: &[SubmitBatch],
    fence: vk::Fence,
) -> Result<vk::Result, Broken> {
    enqueue(device, device.timeline(queue), batches, fence, &FIRST)
}

impl DeviceState {
    fn next_number(&mut self) -> u64 {
        self.queue.last += 1;
        self.queue.unfinished.insert(self.queue.last);
        self.queue.last
    }

    /// Makes a submission of a batch that keeps the rules, and marks what it names as in use.
    fn prepare(&mut self, batch: &SubmitBatch) -> QueueSubmission {
        let number = self.next_number();
        let command_buffers = batch.command_buffers.clone();
        let mut submission = QueueSubmission { number, command_buffers, ..QueueSubmission::default() };
        for &(semaphore, value, _) in &batch.waits {
            submission.semaphores.push(semaphore);
            let Some(found) = self.sync.semaphores.get_mut(&semaphore) else {
                continue;
            };
            found.pending += 1;
            match &mut found.kind {
                SemaphoreKind::Binary { signaled } => {
                    *signaled = false;
                    submission.after.extend(found.signaler.take());
                }
                SemaphoreKind::Timeline { .. } => submission.waits.push((semaphore, value)),
            }
        }
        for &(semaphore, value, _) in &batch.signals {
            submission.semaphores.push(semaphore);
            let Some(found) = self.sync.semaphores.get_mut(&semaphore) else {
                continue;
            };
            found.pending += 1;
            match &mut found.kind {
                SemaphoreKind::Binary { signaled } => {
                    *signaled = true;
                    found.signaler = Some(number);
                }
                SemaphoreKind::Timeline { scheduled, .. } => {
                    *scheduled = value.max(*scheduled);
                    submission.signals.push((semaphore, value));
                }
            }
        }
        for handle in &batch.command_buffers {
            let Some(buffer) = self.commands.buffers.get_mut(handle) else {
                continue;
            };
            buffer.pending += 1;
            submission.commands.push(Arc::clone(&buffer.commands));
            submission.uses.push(buffer.uses.clone());
        }
        self.count_uses(&submission.uses, |count| count.saturating_add(1));
        if self.hazards.is_some() {
            submission.ordered_by = [batch.waits.clone(), batch.signals.clone()];
        }
        submission
    }

    fn count_uses(&mut self, uses: &[Uses], change: fn(u32) -> u32) {
        for uses in uses {
            for buffer in uses.buffers.iter() {
                if let Some(buffer) = self.buffers.get_mut(&buffer) {
                    buffer.in_use = change(buffer.in_use);
                }
            }
            for image in uses.images.iter() {
                if let Some(image) = self.images.get_mut(&image) {
                    image.in_use = change(image.in_use);
                }
            }
            for pipeline in uses.pipelines.iter() {
                if let Some(pipeline) = self.pipelines.pipelines.get_mut(&pipeline) {
                    pipeline.in_use = change(pipeline.in_use);
                }
            }
            for pass in uses.passes.iter() {
                if let Some(pass) = self.passes.passes.get_mut(&pass) {
                    pass.in_use = change(pass.in_use);
                }
            }
            for framebuffer in uses.framebuffers.iter() {
                if let Some(framebuffer) = self.passes.framebuffers.get_mut(&framebuffer) {
                    framebuffer.in_use = change(framebuffer.in_use);
                }
            }
            for set in uses.sets.keys() {
                if let Some(set) = self.descriptors.sets.get_mut(set) {
                    set.in_use = change(set.in_use);
                }
            }
        }
    }

    /// The least value that a pending submission will give a semaphore.
    pub(crate) fn next_signal(&self, semaphore: vk::Semaphore) -> Option<u64> {
        let waiting = self.queue.timelines.iter().flat_map(|timeline| &timeline.waiting);
        let signals = waiting.flat_map(|submission| &submission.signals);
        signals.filter(|(named, _)| *named == semaphore).map(|&(_, value)| value).min()
    }

    /// Returns whether the next submission of a queue can run now.
    fn ready(&self, timeline: &QueueTimeline, held: HeldSubmissions) -> bool {
        if timeline.running || timeline.held && held == HeldSubmissions::Back {
            return false;
        }
        timeline.waiting.front().is_some_and(|next| {
            next.after.iter().all(|number| !self.queue.unfinished.contains(number))
                && next.waits.iter().all(|&(semaphore, value)| {
                    self.sync.timeline(semaphore).is_none_or(|reached| reached >= value)
                })
        })
    }

    fn any_ready(&self, held: HeldSubmissions) -> bool {
        self.queue.timelines.iter().any(|timeline| self.ready(timeline, held))
    }

    /// The next submission of a queue, if it can run.
    fn next(&mut self, timeline: usize, held: HeldSubmissions) -> Option<QueueSubmission> {
        if !self.ready(self.queue.timelines.get(timeline)?, held) {
            return None;
        }
        let timeline = self.queue.timelines.get_mut(timeline)?;
        timeline.running = true;
        timeline.waiting.pop_front()
    }

    /// Orders the submission that runs now after its waits.
    fn judge_begin(&mut self, timeline: usize, submission: &QueueSubmission) {
        let sync = &self.sync;
        if let Some(judge) = &mut self.hazards {
            let binary = |semaphore| sync.timeline(semaphore).is_none();
            judge.begin(timeline, submission.number, &submission.ordered_by[0], binary);
        }
    }

    /// Signals what a submission signals, once it has run.
    fn finish(&mut self, device: &DeviceObject, timeline: usize, submission: &QueueSubmission) {
        if let Some(judge) = &mut self.hazards {
            judge.end(timeline, submission.number, &submission.ordered_by[1], submission.fence);
        }
        self.release(submission);
        for &(semaphore, new) in &submission.signals {
            let name = self.name(semaphore);
            let Some(found) = self.sync.semaphores.get_mut(&semaphore) else {
                continue;
            };
            let SemaphoreKind::Timeline { value, .. } = &mut found.kind else {
                continue;
            };
            if new <= *value {
                let text = format!("{name} is signaled with {new}, and its value is {value} by now");
                device.report("VUID-VkSubmitInfo-pSignalSemaphores-03242", text);
            } else {
                *value = new;
            }
        }
        if let Some(fence) = self.sync.fences.get_mut(&submission.fence) {
            fence.signaled = true;
        }
        if let Some(timeline) = self.queue.timelines.get_mut(timeline) {
            timeline.running = false;
        }
    }

    /// Marks what a submission names as no longer in use.
    fn release(&mut self, submission: &QueueSubmission) {
        self.queue.unfinished.remove(&submission.number);
        self.count_uses(&submission.uses, |count| count.saturating_sub(1));
        for handle in &submission.command_buffers {
            if let Some(buffer) = self.commands.buffers.get_mut(handle) {
                buffer.pending = buffer.pending.saturating_sub(1);
                if buffer.usage.contains(vk::CommandBufferUsageFlags::ONE_TIME_SUBMIT) {
                    buffer.phase = CommandBufferState::Invalid;
                }
            }
        }
        for semaphore in &submission.semaphores {
            if let Some(semaphore) = self.sync.semaphores.get_mut(semaphore) {
                semaphore.pending = semaphore.pending.saturating_sub(1);
            }
        }
        if let Some(fence) = self.sync.fences.get_mut(&submission.fence) {
            fence.pending = fence.pending.saturating_sub(1);
        }
    }
}
