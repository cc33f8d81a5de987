//! Submissions: what may fail comes before the driver has anything, and is taken back.

use std::collections::VecDeque;
use std::sync::Arc;

use ash::vk;
use parking_lot::Mutex;
use sublet::device::DriverError;
use sublet::retire::Ticket;

use super::{Frames, SubmitError};
use crate::device::{Core, Counts, Point, Pool, Retired, Submitter};
use crate::list::CommandList;
use crate::track::{Batch, Queue, Release, Submission, Wait};

/// A semaphore of the program's own in a submission.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SemaphorePoint {
    /// The semaphore.
    pub semaphore: vk::Semaphore,
    /// What a timeline semaphore counts to; of no meaning for binary ones.
    pub value: u64,
    /// The stages that wait, or that are waited for.
    pub stages: vk::PipelineStageFlags2,
}

impl SemaphorePoint {
    /// A binary semaphore.
    #[must_use]
    pub const fn binary(semaphore: vk::Semaphore, stages: vk::PipelineStageFlags2) -> Self {
        Self { semaphore, value: 0, stages }
    }

    fn point(&self) -> Point {
        Point { semaphore: self.semaphore, value: self.value, stages: self.stages }
    }
}

/// What a submission waits for and signals besides what lists need.
#[derive(Clone, Copy, Debug, Default)]
pub struct SubmitInfo<'a> {
    /// Semaphores that the lists wait for: of a swapchain image that was acquired, for example.
    pub waits: &'a [SemaphorePoint],
    /// Semaphores that are signaled when the lists are done.
    pub signals: &'a [SemaphorePoint],
}

impl Frames {
    /// Submits lists to a queue, in this order, as one submission, with the barriers and semaphores that they need in
    /// front. What they used lives until the ticket is done.
    ///
    /// # Errors
    /// [`SubmitError`]: nothing of the lists runs, and they are gone.
    ///
    /// # Complexity
    /// That of the resources that the lists use. No memory from the host once it has seen as much.
    #[doc(alias = "ExecuteCommandLists")]
    #[doc(alias = "vkQueueSubmit")]
    pub fn submit(
        &self,
        queue: Queue,
        lists: impl IntoIterator<Item = CommandList>,
    ) -> Result<Ticket, SubmitError> {
        // SAFETY: there is no semaphore.
        unsafe { self.submit_with(queue, lists, &SubmitInfo::default()) }
    }

    /// [`submit`](Self::submit) with semaphores of the program's own.
    ///
    /// # Errors
    /// As there. The semaphores are neither waited for nor signaled then.
    ///
    /// # Safety
    /// 1. The semaphores are live ones of the device, until the ticket is done.
    /// 2. A binary one that is waited for is signaled or will be by what is submitted already, and nobody else waits for
    ///    it; one that is signaled is not signaled yet (VUID-vkQueueSubmit-pWaitSemaphores-00069,
    ///    VUID-vkQueueSubmit-pSignalSemaphores-00067). Values of timelines rise (VUID-VkSubmitInfo2-semaphore-03882).
    /// 3. `stages` are stages that the queue has (VUID-VkSubmitInfo-pWaitDstStageMask-00078).
    pub unsafe fn submit_with(
        &self,
        queue: Queue,
        lists: impl IntoIterator<Item = CommandList>,
        info: &SubmitInfo<'_>,
    ) -> Result<Ticket, SubmitError> {
        let mut recorded = Vec::new();
        let lists = lists.into_iter().inspect(|list| {
            if let Some(unwritten) = &self.core.info.unwritten {
                unwritten.look_at(list.as_ref());
            }
        });
        // SAFETY: the caller's own promise.
        let submitted = unsafe { self.submit_unseen(queue, lists, info, &mut recorded) };
        self.core.show(&recorded);
        submitted
    }

    /// [`submit_with`](Self::submit_with), which leaves it to the caller to show the barriers that were recorded.
    ///
    /// # Safety
    /// As there.
    pub(crate) unsafe fn submit_unseen(
        &self,
        queue: Queue,
        lists: impl IntoIterator<Item = CommandList>,
        info: &SubmitInfo<'_>,
        recorded: &mut Vec<Batch>,
    ) -> Result<Ticket, SubmitError> {
        let mut held = std::mem::take(&mut *self.lists.lock());
        held.extend(lists);
        // SAFETY: the caller's own promise.
        let submitted = unsafe { self.submit_held(queue, &mut held, info, recorded) };
        // On failure they are dropped here, when no lock is held any more.
        held.clear();
        *self.lists.lock() = held;
        submitted
    }

    /// # Safety
    /// As [`submit_with`](Self::submit_with).
    unsafe fn submit_held(
        &self,
        queue: Queue,
        lists: &mut [CommandList],
        info: &SubmitInfo<'_>,
        recorded: &mut Vec<Batch>,
    ) -> Result<Ticket, SubmitError> {
        let core = &*self.core;
        if core.is_closed() {
            return Err(SubmitError::Lost);
        }
        for (list, one) in lists.iter().enumerate() {
            one.check(&self.core, queue, list)?;
        }
        let data = core.queues.get(queue.index()).filter(|data| data.track == queue);
        let lane = data.ok_or(SubmitError::WrongQueue { list: 0 })?.lane;
        let ticket = core.clock.open(lane);
        let flushed = lists.iter_mut().try_for_each(|list| list.flush_tools(ticket));
        let submitted = flushed.map_err(SubmitError::Flush).and_then(|()| {
            let submitter = core.submitter.lock();
            // Nothing in there calls code of the program's own, which might submit.
            let submitter = &mut *submitter.borrow_mut();
            // SAFETY: the caller's own promise.
            unsafe { settle(core, submitter, queue, lists, info, ticket, recorded) }
        });
        match submitted {
            Ok(()) => {
                Counts::add(&core.counts.submissions, 1);
                for list in lists.iter_mut() {
                    list.submitted(ticket);
                }
                Ok(ticket)
            }
            Err(error) => {
                // It was opened above, and not submitted. After a lost device every ticket is done.
                let _ = core.clock.discard(ticket);
                Err(core.told(error))
            }
        }
    }
}

/// Meets the states, records what comes in front, and gives all of it to the driver; or takes everything back.
///
/// # Safety
/// As [`Frames::submit_with`]; lists are for this queue and outside of rendering.
unsafe fn settle(
    core: &Core,
    submitter: &mut Submitter,
    queue: Queue,
    lists: &mut [CommandList],
    info: &SubmitInfo<'_>,
    ticket: Ticket,
    recorded: &mut Vec<Batch>,
) -> Result<(), SubmitError> {
    let global = &mut *core.global.lock();
    global.resolve(queue, &*lists, &mut submitter.submission).map_err(SubmitError::Resolve)?;
    // Another value stands for it meanwhile, so that the rest can be used.
    let mut submission = std::mem::take(&mut submitter.submission);
    submitter.released.clear();
    // SAFETY: the caller's own promise.
    let outcome = unsafe { hand_over(core, submitter, &submission, queue, lists, info, ticket) };
    if core.info.on_barriers.is_some() {
        note(&submission, submitter.released.len(), outcome.is_ok().then_some(lists.len()), recorded);
    }
    let outcome = outcome.map_err(|error| {
        if !submitter.released.is_empty() {
            core.poison();
            let given_away = Arc::new(Mutex::new(Vec::new()));
            lists.iter_mut().for_each(|list| list.give_up(&mut given_away.lock()));
            for &ticket in &submitter.released {
                core.retire(ticket, Retired::GivenAway(Arc::clone(&given_away)));
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
/// As [`settle`].
unsafe fn hand_over(
    core: &Core,
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
            // SAFETY: the release was recorded in the pool just now.
            let released = unsafe { give_away(core, submitter, release, pool) }?;
            submitter.released.push(released);
        }
        // Of fronts only that of the first list is a command buffer of its own.
        let front = submission.front(0).and(lists.first()).map(CommandList::front);
        submitter.commands.clear();
        submitter.commands.extend(front.into_iter().chain(lists.iter().map(CommandList::commands)));
        // SAFETY: all of the command buffers are executable and not pending, and the semaphores of the program are the
        // caller's promise.
        unsafe { send(core, submitter, queue, submission.serial(), submission.waits(), info, ticket) }
    });
    // Those that were not submitted.
    pools.drain(..).for_each(|pool| core.discard(pool));
    submitter.pools = pools;
    sent
}

/// Does all that may fail before the first queue is given anything: records the fronts and the releases, each of which
/// gets a pool, ends the lists, and sees that fences and semaphores are at hand.
///
/// # Safety
/// As [`settle`].
unsafe fn prepare(
    core: &Core,
    submission: &Submission,
    lists: &[CommandList],
    pools: &mut VecDeque<Pool>,
) -> Result<(), DriverError> {
    for (at, list) in lists.iter().enumerate() {
        let Some(batch) = submission.front(at) else { continue };
        match at.checked_sub(1) {
            // SAFETY: the list before is still being recorded, outside of rendering, and this thread owns it.
            Some(before) => unsafe { core.barrier(lists[before].commands(), batch) },
            None => {
                // SAFETY: it is empty, and this thread owns the list's pool.
                unsafe { record(core, list.front(), batch) }?;
                Counts::add(&core.counts.fronts, 1);
            }
        }
    }
    for list in lists {
        // SAFETY: the list is being recorded, outside of rendering, and this thread owns it.
        unsafe { core.end(list.commands()) }?;
    }
    for release in submission.releases() {
        let pool = core.pool(core.queues[release.queue().index()].family)?;
        let front = pool.front;
        pools.push_back(pool);
        // SAFETY: the pool is empty, and this thread's.
        unsafe { record(core, front, release.batch()) }?;
    }
    if core.api.has_timeline() {
        return Ok(());
    }
    let releases = submission.releases();
    let waits =
        submission.waits().len() + releases.iter().map(|release| release.waits().len()).sum::<usize>();
    // Only submissions take any, and there is no other one: the queues are locked.
    let (fences, semaphores) = core.books.lock().at_hand();
    for _ in fences..releases.len() + 1 {
        // SAFETY: the device is live as long as the core.
        let fence = unsafe { core.api.create_fence() }.map_err(|error| core.note(error))?;
        core.books.lock().give_fence(fence);
    }
    for _ in semaphores..waits {
        // SAFETY: as above.
        let semaphore = unsafe { core.api.create_semaphore(false) }.map_err(|error| core.note(error))?;
        core.books.lock().give_semaphore(semaphore);
    }
    Ok(())
}

/// Notes the barriers that the driver has: those of so many releases, and those in front of so many lists.
fn note(submission: &Submission, releases: usize, lists: Option<usize>, recorded: &mut Vec<Batch>) {
    let fronts = (0..lists.unwrap_or(0)).filter_map(|list| submission.front(list));
    let releases = submission.releases()[..releases].iter().map(Release::batch);
    recorded.extend(releases.chain(fronts).cloned());
}

/// Gives the command buffers of the submitter to a queue: they wait for other queues, and signal what counts.
///
/// # Safety
/// They are executable and not pending. As [`Frames::submit_with`] for what is in `info`.
unsafe fn send(
    core: &Core,
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
        // SAFETY: the queue is locked, the command buffers are the caller's promise, the semaphores of the frames are
        // right, and those of the program are the caller's promise.
        let submitted = unsafe { core.api.submit(handle, commands, waits, signals, fence, scratch) };
        submitted.map(|()| fence).map_err(|error| {
            core.books.lock().give_fence(fence);
            core.note(error)
        })
    });
    let binary = if core.api.has_timeline() { from..from } else { from..submitter.waits.len() };
    match sent {
        Ok(fence) => {
            for at in binary {
                core.retire(ticket, Retired::Semaphore(submitter.waits[at].semaphore));
            }
            core.books.lock().enter(queue.index(), serial, fence);
            // The ticket is open, unless the device was lost meanwhile: then it is done.
            let _ = core.clock.submit(ticket, serial);
            Ok(())
        }
        Err(error) => {
            // They are signaled, or will be, and nobody waits for them.
            for at in binary {
                let semaphore = submitter.waits[at].semaphore;
                core.books.lock().spoil(semaphore);
            }
            Err(error)
        }
    }
}

/// What a submission signals of the frames' own.
fn own_signal(core: &Core, queue: Queue, value: u64) -> Option<Point> {
    let semaphore = core.queues[queue.index()].timeline;
    let stages = vk::PipelineStageFlags2::ALL_COMMANDS;
    core.api.has_timeline().then_some(Point { semaphore, value, stages })
}

/// One of those that were [prepared](prepare); none where there are timelines.
fn fence_for(core: &Core) -> vk::Fence {
    if core.api.has_timeline() {
        return vk::Fence::null();
    }
    let fence = core.books.lock().free_fence();
    debug_assert!(fence.is_some(), "there is one for each submission");
    fence.unwrap_or_default()
}

/// Adds the semaphores of other queues to what is waited for.
fn wait_for(core: &Core, submitter: &mut Submitter, waits: &[Wait]) -> Result<(), DriverError> {
    for wait in waits {
        let data = &core.queues[wait.queue.index()];
        Counts::add(&core.counts.waits, 1);
        if core.api.has_timeline() {
            let (semaphore, value) = (data.timeline, wait.serial);
            submitter.waits.push(Point { semaphore, value, stages: wait.stages });
            continue;
        }
        // Without timelines the queue signals a semaphore behind all that it has.
        let semaphore = core.books.lock().free_semaphore();
        debug_assert!(semaphore.is_some(), "there is one for each wait");
        let semaphore = semaphore.unwrap_or_default();
        let stages = vk::PipelineStageFlags2::ALL_COMMANDS;
        let signal = [Point { semaphore, value: 0, stages }];
        let (none, scratch) = (vk::Fence::null(), &mut submitter.scratch);
        // SAFETY: the queue is locked, and the semaphore is not signaled.
        let submitted = unsafe { core.api.submit(data.handle, &[], &[], &signal, none, scratch) };
        if let Err(error) = submitted {
            core.books.lock().give_semaphore(semaphore);
            return Err(core.note(error));
        }
        submitter.waits.push(Point { semaphore, value: 0, stages: wait.stages });
    }
    Ok(())
}

/// Records barriers alone.
///
/// # Safety
/// The command buffer is empty, and its pool is this thread's.
unsafe fn record(core: &Core, commands: vk::CommandBuffer, batch: &Batch) -> Result<(), DriverError> {
    // SAFETY: the caller's promise.
    unsafe { core.begin(commands) }?;
    // SAFETY: it is being recorded.
    unsafe { core.barrier(commands, batch) };
    // SAFETY: as above.
    unsafe { core.end(commands) }
}

/// Submits the barriers by which another queue gives resources away. The ticket is that of the submission.
///
/// # Safety
/// As [`settle`]; they are recorded in the front command buffer of the pool, which nobody else has.
unsafe fn give_away(
    core: &Core,
    submitter: &mut Submitter,
    release: &Release,
    pool: Pool,
) -> Result<Ticket, DriverError> {
    let data = &core.queues[release.queue().index()];
    let ticket = core.clock.open(data.lane);
    submitter.commands.clear();
    submitter.commands.push(pool.front);
    let (queue, serial, info) = (release.queue(), release.serial(), SubmitInfo::default());
    // SAFETY: the command buffer is recorded, and there is no semaphore of the program.
    let sent = unsafe { send(core, submitter, queue, serial, release.waits(), &info, ticket) };
    if sent.is_ok() {
        core.retire(ticket, Retired::Pool(pool));
        Counts::add(&core.counts.releases, 1);
    } else {
        // It was opened above, and not submitted.
        let _ = core.clock.discard(ticket);
        core.discard(pool);
    }
    sent.map(|()| ticket)
}
