//! Submission. Steps that may fail run before the first `vkQueueSubmit`, so that they can be undone.
#![expect(unsafe_code, reason = "calls Vulkan")]

use std::collections::VecDeque;
use std::sync::Arc;

use ash::vk;
use parking_lot::Mutex;
use sublet::device::DriverError;
use sublet::retire::Ticket;

use super::{Frames, SubmitError};
use crate::device::{
    CommandPool, DeviceCore, DeviceCounters, RetiredDeviceObject, SubmitSemaphore, Submitter,
};
use crate::list::CommandList;
use crate::track::{BarrierBatch, Queue, Release, Submission, Wait};

/// A semaphore of the program in a submission.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SemaphorePoint {
    /// The semaphore.
    pub semaphore: vk::Semaphore,
    /// The value of a timeline semaphore; ignored for binary semaphores.
    pub value: u64,
    /// The stages that wait, or that the signal waits for.
    pub stages: vk::PipelineStageFlags2,
}

impl SemaphorePoint {
    /// Creates a point for a binary semaphore.
    #[must_use]
    pub const fn binary(semaphore: vk::Semaphore, stages: vk::PipelineStageFlags2) -> Self {
        Self { semaphore, value: 0, stages }
    }

    fn point(&self) -> SubmitSemaphore {
        SubmitSemaphore { semaphore: self.semaphore, value: self.value, stages: self.stages }
    }
}

/// Semaphores of the program for a submission.
#[derive(Clone, Copy, Debug, Default)]
pub struct SubmitInfo<'a> {
    /// Semaphores to wait for, for example of an acquired swapchain image.
    pub waits: &'a [SemaphorePoint],
    /// Semaphores to signal after the lists.
    pub signals: &'a [SemaphorePoint],
}

impl Frames {
    /// Submits lists to a queue, in this order, as one submission, with the barriers and semaphores that they need.
    /// Their resources live until the ticket is done.
    ///
    /// # Errors
    /// See [`SubmitError`]; nothing of the lists runs, and they are dropped.
    ///
    /// # Complexity
    /// Linear in the resources of the lists. Does not allocate host memory in the steady state.
    #[doc(alias = "ExecuteCommandLists")]
    #[doc(alias = "vkQueueSubmit")]
    pub fn submit(
        &self,
        queue: Queue,
        lists: impl IntoIterator<Item = CommandList>,
    ) -> Result<Ticket, SubmitError> {
        // SAFETY: there are no semaphores.
        unsafe { self.submit_with(queue, lists, &SubmitInfo::default()) }
    }

    /// Submits lists as [`submit`](Self::submit) does, with semaphores of the program.
    ///
    /// # Errors
    /// See [`submit`](Self::submit). The semaphores are neither waited for nor signaled.
    ///
    /// # Safety
    /// 1. The semaphores are live semaphores of the device until the ticket is done.
    /// 2. Each binary semaphore in `waits` is signaled, or an earlier operation will signal it, and nothing else waits
    ///    for it. Binary semaphores in `signals` are unsignaled (VUID-vkQueueSubmit-pWaitSemaphores-00069,
    ///    VUID-vkQueueSubmit-pSignalSemaphores-00067). Timeline values increase (VUID-VkSubmitInfo2-semaphore-03882).
    /// 3. The queue supports `stages` (VUID-VkSubmitInfo-pWaitDstStageMask-00078).
    pub unsafe fn submit_with(
        &self,
        queue: Queue,
        lists: impl IntoIterator<Item = CommandList>,
        info: &SubmitInfo<'_>,
    ) -> Result<Ticket, SubmitError> {
        let mut recorded = Vec::new();
        let lists = lists.into_iter().inspect(|list| {
            if let Some(unwritten) = &self.core.info.unwritten {
                unwritten.check_reads(list.as_ref());
            }
        });
        // SAFETY: the caller's own promise.
        let submitted = unsafe { self.submit_unobserved(queue, lists, info, &mut recorded) };
        self.core.notify_barriers(&recorded);
        submitted
    }

    /// Submits as [`submit_with`](Self::submit_with) does, and returns the recorded barriers for the observer.
    ///
    /// # Safety
    /// See [`submit_with`](Self::submit_with).
    pub(crate) unsafe fn submit_unobserved(
        &self,
        queue: Queue,
        lists: impl IntoIterator<Item = CommandList>,
        info: &SubmitInfo<'_>,
        recorded: &mut Vec<BarrierBatch>,
    ) -> Result<Ticket, SubmitError> {
        let mut held = std::mem::take(&mut *self.lists.lock());
        held.extend(lists);
        // SAFETY: the caller's own promise.
        let submitted = unsafe { self.submit_held(queue, &mut held, info, recorded) };
        // After a failure the lists are dropped here, without locks.
        held.clear();
        *self.lists.lock() = held;
        submitted
    }

    /// # Safety
    /// See [`submit_with`](Self::submit_with).
    unsafe fn submit_held(
        &self,
        queue: Queue,
        lists: &mut [CommandList],
        info: &SubmitInfo<'_>,
        recorded: &mut Vec<BarrierBatch>,
    ) -> Result<Ticket, SubmitError> {
        let core = &*self.core;
        if core.is_closed() {
            return Err(SubmitError::Lost);
        }
        for (list, one) in lists.iter().enumerate() {
            one.check(&self.core, queue, list)?;
        }
        let data = core.queues.get(queue.index()).filter(|data| data.track == queue);
        let timeline = data.ok_or(SubmitError::WrongQueue { list: 0 })?.timeline;
        let ticket = core.clock.open(timeline);
        let flushed = lists.iter_mut().try_for_each(|list| list.flush_uploads(ticket));
        let submitted = flushed.map_err(SubmitError::Flush).and_then(|()| {
            let submitter = core.submitter.lock();
            // No code of the program runs below, so nothing else submits.
            let submitter = &mut *submitter.borrow_mut();
            // SAFETY: the caller's own promise.
            unsafe { commit(core, submitter, queue, lists, info, ticket, recorded) }
        });
        match submitted {
            Ok(()) => {
                DeviceCounters::add(&core.counts.submissions, 1);
                for list in lists.iter_mut() {
                    list.submitted(ticket);
                }
                Ok(ticket)
            }
            Err(error) => {
                // Cannot fail: the ticket was opened above and not submitted, or every ticket is done after a device
                // loss.
                let _ = core.clock.discard(ticket);
                Err(core.or_lost(error))
            }
        }
    }
}

/// Resolves the lists, records preambles, and submits everything; or undoes all of it.
///
/// # Safety
/// See [`Frames::submit_with`]; all lists are for this queue and outside of rendering.
unsafe fn commit(
    core: &DeviceCore,
    submitter: &mut Submitter,
    queue: Queue,
    lists: &mut [CommandList],
    info: &SubmitInfo<'_>,
    ticket: Ticket,
    recorded: &mut Vec<BarrierBatch>,
) -> Result<(), SubmitError> {
    let global = &mut *core.global.lock();
    global.resolve(queue, &*lists, &mut submitter.submission).map_err(SubmitError::Resolve)?;
    // Moved out, so that the rest of `submitter` can be borrowed.
    let mut submission = std::mem::take(&mut submitter.submission);
    submitter.released.clear();
    // SAFETY: the caller's own promise.
    let outcome = unsafe { hand_over(core, submitter, &submission, queue, lists, info, ticket) };
    if core.info.on_barriers.is_some() {
        collect_barriers(
            &submission,
            submitter.released.len(),
            outcome.is_ok().then_some(lists.len()),
            recorded,
        );
    }
    let outcome = outcome.map_err(|error| {
        if !submitter.released.is_empty() {
            core.poison();
            let released = Arc::new(Mutex::new(Vec::new()));
            lists.iter_mut().for_each(|list| list.move_kept(&mut released.lock()));
            for &ticket in &submitter.released {
                core.retire(ticket, RetiredDeviceObject::Released(Arc::clone(&released)));
            }
            return SubmitError::HalfDone(error);
        }
        global.revoke(&mut submission);
        SubmitError::Driver(error)
    });
    submitter.submission = submission;
    outcome
}

/// # Safety
/// See [`commit`].
unsafe fn hand_over(
    core: &DeviceCore,
    submitter: &mut Submitter,
    submission: &Submission,
    queue: Queue,
    lists: &[CommandList],
    info: &SubmitInfo<'_>,
    ticket: Ticket,
) -> Result<(), DriverError> {
    let mut pools = std::mem::take(&mut submitter.pools);
    // SAFETY: the caller's own promise.
    let ready = unsafe { prepare(core, submission, lists, &mut pools) };
    let sent = ready.and_then(|()| {
        for (release, pool) in submission.releases().iter().zip(std::iter::from_fn(|| pools.pop_front())) {
            // SAFETY: the release was just recorded in the pool.
            let released = unsafe { submit_release(core, submitter, release, pool) }?;
            submitter.released.push(released);
        }
        // Other preambles were recorded at the end of the previous list.
        let preamble = submission.preamble(0).and(lists.first()).map(CommandList::preamble);
        submitter.commands.clear();
        submitter.commands.extend(preamble.into_iter().chain(lists.iter().map(CommandList::commands)));
        // SAFETY: the command buffers are executable and not pending. The caller guarantees the semaphores of the
        // program.
        unsafe { send(core, submitter, queue, submission.serial(), submission.waits(), info, ticket) }
    });
    // Pools that were not submitted.
    pools.drain(..).for_each(|pool| core.discard(pool));
    submitter.pools = pools;
    sent
}

/// Performs everything that may fail before the first submission: records preambles and releases, each release in its
/// own pool, ends the lists, and creates fences and semaphores.
///
/// # Safety
/// See [`commit`].
unsafe fn prepare(
    core: &DeviceCore,
    submission: &Submission,
    lists: &[CommandList],
    pools: &mut VecDeque<CommandPool>,
) -> Result<(), DriverError> {
    for (at, list) in lists.iter().enumerate() {
        let Some(batch) = submission.preamble(at) else { continue };
        match at.checked_sub(1) {
            // SAFETY: the previous list is being recorded, outside of rendering, and this thread owns it.
            Some(before) => unsafe { core.barrier(lists[before].commands(), batch) },
            None => {
                // SAFETY: it is empty, and this thread owns the list's pool.
                unsafe { record(core, list.preamble(), batch) }?;
                DeviceCounters::add(&core.counts.preambles, 1);
            }
        }
    }
    for list in lists {
        // SAFETY: the list is being recorded, outside of rendering, and this thread owns it.
        unsafe { core.end(list.commands()) }?;
    }
    for release in submission.releases() {
        let pool = core.pool(core.queues[release.queue().index()].family)?;
        let preamble = pool.preamble;
        pools.push_back(pool);
        // SAFETY: the pool is empty, and this thread owns it.
        unsafe { record(core, preamble, release.batch()) }?;
    }
    if core.api.has_timeline() {
        return Ok(());
    }
    let releases = submission.releases();
    let waits =
        submission.waits().len() + releases.iter().map(|release| release.waits().len()).sum::<usize>();
    // Only submissions take fences and semaphores, and the queues are locked.
    let (fences, semaphores) = core.submission_state.lock().free_counts();
    for _ in fences..releases.len() + 1 {
        // SAFETY: the device is live as long as the core.
        let fence = unsafe { core.api.create_fence() }.map_err(|error| core.record_error(error))?;
        core.submission_state.lock().recycle_fence(fence);
    }
    for _ in semaphores..waits {
        // SAFETY: as above.
        let semaphore =
            unsafe { core.api.create_semaphore(false) }.map_err(|error| core.record_error(error))?;
        core.submission_state.lock().recycle_semaphore(semaphore);
    }
    Ok(())
}

/// Collects the submitted barriers: of the first `releases` releases and the first `lists` preambles.
fn collect_barriers(
    submission: &Submission,
    releases: usize,
    lists: Option<usize>,
    recorded: &mut Vec<BarrierBatch>,
) {
    let preambles = (0..lists.unwrap_or(0)).filter_map(|list| submission.preamble(list));
    let releases = submission.releases()[..releases].iter().map(Release::batch);
    recorded.extend(releases.chain(preambles).cloned());
}

/// Submits the command buffers of the submitter, with waits for other queues and the signal of this queue.
///
/// # Safety
/// The command buffers are executable and not pending. See [`Frames::submit_with`] for `info`.
unsafe fn send(
    core: &DeviceCore,
    submitter: &mut Submitter,
    queue: Queue,
    serial: u64,
    waits: &[Wait],
    info: &SubmitInfo<'_>,
    ticket: Ticket,
) -> Result<(), DriverError> {
    submitter.waits.clear();
    submitter.waits.extend(info.waits.iter().map(SemaphorePoint::point));
    let from = info.waits.len();
    let sent = wait_for(core, submitter, waits).and_then(|()| {
        let fence = fence_for(core);
        submitter.signals.clear();
        submitter.signals.extend(own_signal(core, queue, serial));
        submitter.signals.extend(info.signals.iter().map(SemaphorePoint::point));
        let Submitter { commands, waits, signals, scratch, .. } = &mut *submitter;
        let handle = core.queues[queue.index()].handle;
        // SAFETY: the queue is locked, and the semaphores of the frames are valid. The caller guarantees the command
        // buffers and the semaphores of the program.
        let submitted = unsafe { core.api.submit(handle, commands, waits, signals, fence, scratch) };
        submitted.map(|()| fence).map_err(|error| {
            core.submission_state.lock().recycle_fence(fence);
            core.record_error(error)
        })
    });
    let binary = if core.api.has_timeline() { from..from } else { from..submitter.waits.len() };
    match sent {
        Ok(fence) => {
            for at in binary {
                core.retire(ticket, RetiredDeviceObject::Semaphore(submitter.waits[at].semaphore));
            }
            core.submission_state.lock().enter(queue.index(), serial, fence);
            // The ticket is open, or done after a device loss.
            let _ = core.clock.submit(ticket, serial);
            Ok(())
        }
        Err(error) => {
            // The semaphores are or will be signaled, and nothing waits for them.
            for at in binary {
                let semaphore = submitter.waits[at].semaphore;
                core.submission_state.lock().spoil(semaphore);
            }
            Err(error)
        }
    }
}

/// Returns the signal of the queue's timeline semaphore; `None` without timeline semaphores.
fn own_signal(core: &DeviceCore, queue: Queue, value: u64) -> Option<SubmitSemaphore> {
    let semaphore = core.queues[queue.index()].semaphore;
    let stages = vk::PipelineStageFlags2::ALL_COMMANDS;
    core.api.has_timeline().then_some(SubmitSemaphore { semaphore, value, stages })
}

/// Takes one of the [prepared](prepare) fences; null with timeline semaphores.
fn fence_for(core: &DeviceCore) -> vk::Fence {
    if core.api.has_timeline() {
        return vk::Fence::null();
    }
    let fence = core.submission_state.lock().free_fence();
    debug_assert!(fence.is_some(), "`prepare` creates one for each submission");
    fence.unwrap_or_default()
}

/// Adds the semaphores of other queues to the waits.
fn wait_for(core: &DeviceCore, submitter: &mut Submitter, waits: &[Wait]) -> Result<(), DriverError> {
    for wait in waits {
        let data = &core.queues[wait.queue.index()];
        DeviceCounters::add(&core.counts.waits, 1);
        if core.api.has_timeline() {
            let (semaphore, value) = (data.semaphore, wait.serial);
            submitter.waits.push(SubmitSemaphore { semaphore, value, stages: wait.stages });
            continue;
        }
        // Without timeline semaphores, the other queue signals a binary semaphore after all its submissions.
        let semaphore = core.submission_state.lock().free_semaphore();
        debug_assert!(semaphore.is_some(), "`prepare` creates one for each wait");
        let semaphore = semaphore.unwrap_or_default();
        let stages = vk::PipelineStageFlags2::ALL_COMMANDS;
        let signal = [SubmitSemaphore { semaphore, value: 0, stages }];
        let (none, scratch) = (vk::Fence::null(), &mut submitter.scratch);
        // SAFETY: the queue is locked, and the semaphore is not signaled.
        let submitted = unsafe { core.api.submit(data.handle, &[], &[], &signal, none, scratch) };
        if let Err(error) = submitted {
            core.submission_state.lock().recycle_semaphore(semaphore);
            return Err(core.record_error(error));
        }
        submitter.waits.push(SubmitSemaphore { semaphore, value: 0, stages: wait.stages });
    }
    Ok(())
}

/// Records a command buffer of barriers.
///
/// # Safety
/// The command buffer is empty, and this thread owns its pool.
unsafe fn record(
    core: &DeviceCore,
    commands: vk::CommandBuffer,
    batch: &BarrierBatch,
) -> Result<(), DriverError> {
    // SAFETY: the caller's promise.
    unsafe { core.begin(commands) }?;
    // SAFETY: it is being recorded.
    unsafe { core.barrier(commands, batch) };
    // SAFETY: as above.
    unsafe { core.end(commands) }
}

/// Submits the barriers that release ownership on another queue. Returns the ticket of that submission.
///
/// # Safety
/// See [`commit`]. The barriers are recorded in the preamble command buffer of `pool`, which this function owns.
unsafe fn submit_release(
    core: &DeviceCore,
    submitter: &mut Submitter,
    release: &Release,
    pool: CommandPool,
) -> Result<Ticket, DriverError> {
    let data = &core.queues[release.queue().index()];
    let ticket = core.clock.open(data.timeline);
    submitter.commands.clear();
    submitter.commands.push(pool.preamble);
    let (queue, serial, info) = (release.queue(), release.serial(), SubmitInfo::default());
    // SAFETY: the command buffer is recorded, and there are no semaphores of the program.
    let sent = unsafe { send(core, submitter, queue, serial, release.waits(), &info, ticket) };
    if sent.is_ok() {
        core.retire(ticket, RetiredDeviceObject::Pool(pool));
        DeviceCounters::add(&core.counts.releases, 1);
    } else {
        // It was opened above and not submitted.
        let _ = core.clock.discard(ticket);
        core.discard(pool);
    }
    sent.map(|()| ticket)
}
