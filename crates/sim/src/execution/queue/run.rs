//! Runs submissions, and the waits that make them run.
#![expect(unsafe_code, reason = "the functions have the C ABI")]

use std::ops::Range;
use std::time::{Duration, Instant};

use ash::vk;
use parking_lot::MutexGuard;

use crate::execution::execute;
use crate::execution::sync::PATIENCE;
use crate::objects::entry::{on_device, on_queue};
use crate::objects::messages;
use crate::objects::queues::QueueTimeline;
use crate::objects::state::{DeviceObject, DeviceState};

/// The treatment of submissions that are held back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HeldSubmissions {
    Back,
    Too,
}

/// Runs submissions of every queue, in order, up to the first that has to wait. Returns the count of those that ran.
pub(crate) fn run(device: &DeviceObject, held: HeldSubmissions) -> usize {
    let timelines = device.queues.len();
    let mut ran = 0;
    loop {
        let now: usize = (0..timelines).map(|timeline| run_timeline(device, timeline, held)).sum();
        if now == 0 {
            return ran;
        }
        ran += now;
    }
}

/// Runs submissions of one queue, as [`run`] does.
pub(crate) fn run_timeline(device: &DeviceObject, timeline: usize, held: HeldSubmissions) -> usize {
    let mut ran = 0;
    while messages::deferred(&device.gpu_state, || run_one(device, timeline, held)) {
        ran += 1;
    }
    ran
}

/// Runs the next submission of a queue, if it can run.
fn run_one(device: &DeviceObject, timeline: usize, held: HeldSubmissions) -> bool {
    let mut state = device.state.lock();
    let Some(submission) = state.next(timeline, held) else {
        return false;
    };
    state.judge_begin(timeline, &submission);
    let mut works = Vec::new();
    for commands in &submission.commands {
        works.extend(execute::resolve(device, &mut state, commands, (timeline, submission.number)));
    }
    drop(state);
    for work in works {
        if !work(device) {
            let text =
                "a command could not move its bytes: no host memory behind the device memory".to_owned();
            device.report("SUBLET-transfer-failed", text);
        }
    }
    device.state.lock().finish(device, timeline, &submission);
    device.changed.notify_all();
    true
}

/// Runs submissions until `done`, and sleeps while none can run. The timeout is in nanoseconds; [`u64::MAX`] means for
/// ever. When it returns, the device is locked again. If it returns no error, `done` holds for the state.
///
/// Queues whose work is held back run one after the other, those of `first` on, and only as far as it takes.
///
/// A wait for ever ends [`PATIENCE`] after the last submission or signal, and at once if there is no `hope`.
pub(crate) fn run_until(
    device: &DeviceObject,
    first: usize,
    timeout: u64,
    done: impl Fn(&DeviceState) -> bool,
    hope: impl Fn(&DeviceState) -> bool,
) -> (MutexGuard<'_, DeviceState>, Result<(), Stuck>) {
    let endless = timeout == u64::MAX;
    let patience = if endless { PATIENCE } else { Duration::from_nanos(timeout) };
    let mut deadline = Instant::now().checked_add(patience);
    let timelines = device.queues.len();
    loop {
        run(device, HeldSubmissions::Back);
        for timeline in (0..timelines).map(|timeline| (first + timeline) % timelines) {
            let state = device.state.lock();
            if done(&state) {
                return (state, Ok(()));
            }
            drop(state);
            if run_timeline(device, timeline, HeldSubmissions::Too) > 0 {
                run(device, HeldSubmissions::Back);
            }
        }
        let mut state = device.state.lock();
        if endless {
            deadline = Instant::now().checked_add(patience);
        }
        // Another thread that runs submissions may leave the held ones to this thread.
        while !state.any_ready(HeldSubmissions::Too) {
            if device.is_lost() {
                return (state, Err(Stuck::Lost));
            }
            if done(&state) {
                return (state, Ok(()));
            }
            if endless && !hope(&state) {
                return (state, Err(Stuck::ForEver));
            }
            let late = match deadline {
                Some(deadline) => device.changed.wait_until(&mut state, deadline).timed_out(),
                None => {
                    device.changed.wait(&mut state);
                    false
                }
            };
            if endless && (!late || state.queue.running()) {
                deadline = Instant::now().checked_add(patience);
            } else if late && !done(&state) {
                let stuck = if endless { Stuck::ForEver } else { Stuck::InTime };
                return (state, Err(stuck));
            }
        }
    }
}

/// Why a wait ended early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stuck {
    /// The timeout has passed.
    InTime,
    /// There is no timeout, and nothing is going to end the wait.
    ForEver,
    /// The device is lost.
    Lost,
}

pub(crate) unsafe extern "system" fn queue_wait_idle(queue: vk::Queue) -> vk::Result {
    on_queue(queue, "vkQueueWaitIdle", |device| {
        let timeline = device.timeline(queue);
        Ok(wait_idle(device, timeline..timeline + 1, "SUBLET-vkQueueWaitIdle-stuck"))
    })
}

pub(crate) unsafe extern "system" fn device_wait_idle(device: vk::Device) -> vk::Result {
    on_device(device, "vkDeviceWaitIdle", |device| {
        wait_idle(device, 0..device.queues.len(), "SUBLET-vkDeviceWaitIdle-stuck")
    })
}

/// The queues of a device that a wait is for; none once the device is destroyed.
fn of_timelines<'a>(state: &'a DeviceState, timelines: &Range<usize>) -> &'a [QueueTimeline] {
    state.queue.timelines.get(timelines.clone()).unwrap_or_default()
}

/// Drops submissions that do not run yet, as a lost device does: what they use is no longer in use.
pub(crate) fn abandon(device: &DeviceObject) {
    let mut state = device.state.lock();
    let dropped: Vec<_> =
        state.queue.timelines.iter_mut().flat_map(|timeline| timeline.waiting.drain(..)).collect();
    for submission in &dropped {
        state.release(submission);
    }
    drop(state);
    device.changed.notify_all();
}

/// Waits until some queues have no submissions left. It reports work that waits for a semaphore that nothing signals,
/// and loses the device then.
fn wait_idle(device: &DeviceObject, timelines: Range<usize>, rule: &'static str) -> vk::Result {
    let of = |state: &DeviceState| {
        of_timelines(state, &timelines).iter().map(QueueTimeline::pending).sum::<usize>()
    };
    let (state, ended) = run_until(device, timelines.start, u64::MAX, |state| of(state) == 0, |_| true);
    match ended {
        Ok(()) => {
            let mut state = state;
            if let Some(judge) = &mut state.hazards {
                judge.host_saw_idle(timelines);
            }
            return vk::Result::SUCCESS;
        }
        Err(Stuck::Lost) => return vk::Result::ERROR_DEVICE_LOST,
        Err(Stuck::InTime | Stuck::ForEver) => {}
    }
    let mut next = of_timelines(&state, &timelines).iter().filter_map(|timeline| timeline.waiting.front());
    let text = match next.find_map(|submission| submission.waits.first()) {
        Some((semaphore, value)) => {
            let name = state.name(*semaphore);
            format!("a submission waits for {name} to become {value}, and nobody signals it")
        }
        None => "a submission does not get done".to_owned(),
    };
    device.report(rule, text);
    vk::Result::ERROR_DEVICE_LOST
}
