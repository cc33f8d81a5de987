//! State shared by the frames, lists and resources of a device.
#![expect(unsafe_code, reason = "calls Vulkan")]

use std::any::Any;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::error::Error;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use ash::vk;
use parking_lot::{Mutex, ReentrantMutex};
use sublet::device::DriverError;
use sublet::retire::{Clock, Retire, Ticket, TimelineId};
use sublet::{Allocator, RetiredResources};
use sublet_descriptors::Binder;

use super::context::ContextInfo;
use super::{
    Api, CommandPool, Idle, KeptLayouts, KeptObject, ListContext, RenderPasses, SubmissionState, Submitter,
    Uploads,
};
use crate::frame::OpenError;
use crate::list::{Downsampler, ListError};
use crate::resource::Movables;
use crate::track::{BarrierBatch, Global, Queue};

pub(crate) struct QueueData {
    pub(crate) handle: vk::Queue,
    pub(crate) track: Queue,
    pub(crate) timeline: TimelineId,
    /// Index of its family.
    pub(crate) family: usize,
    /// Null if fences are used.
    pub(crate) semaphore: vk::Semaphore,
}

pub(crate) struct QueueFamily {
    pub(crate) index: u32,
    pub(crate) flags: vk::QueueFlags,
    pub(crate) granularity: vk::Extent3D,
    /// Protects the pools that no list uses; no lock is taken under it. Never held over a driver call.
    pools: Mutex<Idle<CommandPool>>,
    /// Protects the contexts that no list uses; no lock is taken under it. Held while their descriptor pools are reset.
    contexts: Mutex<Idle<ListContext>>,
}

impl QueueFamily {
    pub(crate) fn new(index: u32, properties: &vk::QueueFamilyProperties) -> Self {
        let granularity = properties.min_image_transfer_granularity;
        let (pools, contexts) = (Mutex::new(Idle::new()), Mutex::new(Idle::new()));
        Self { index, flags: properties.queue_flags, granularity, pools, contexts }
    }
}

/// Objects that wait for a ticket.
pub(crate) enum RetiredDeviceObject {
    Pool(CommandPool),
    /// Resources of lists that were not submitted although another family has released ownership for them. No lock is
    /// taken under theirs.
    Released(Arc<Mutex<Vec<KeptObject>>>),
    /// A binary semaphore that the submission of the ticket has waited for.
    Semaphore(vk::Semaphore),
}

/// Counters since creation.
#[derive(Default)]
pub(crate) struct DeviceCounters {
    pub(crate) lists: AtomicU64,
    pub(crate) submissions: AtomicU64,
    pub(crate) preambles: AtomicU64,
    pub(crate) releases: AtomicU64,
    pub(crate) waits: AtomicU64,
    pub(crate) pools: AtomicU64,
    pub(crate) contexts: AtomicU64,
    pub(crate) barrier_calls: AtomicU64,
    pub(crate) barriers: AtomicU64,
}

impl DeviceCounters {
    pub(crate) fn add(counter: &AtomicU64, more: u64) {
        counter.fetch_add(more, Ordering::Relaxed);
    }
}

/// Errors with a variant for a lost device.
pub(crate) trait LostDevice: Error + Sized + 'static {
    const LOST: Self;
}

/// The payload of a panic in the program's code.
type Panic = Box<dyn Any + Send>;

/// Drops each item even if others panic, and returns the first panic, so that the caller can finish before resuming it.
fn drop_each<T>(items: impl Iterator<Item = T>) -> Option<Panic> {
    let mut first = None;
    for item in items {
        let dropped = catch_unwind(AssertUnwindSafe(|| drop(item)));
        first = first.or(dropped.err());
    }
    first
}

/// Resumes a panic, unless the thread is already panicking.
fn resume(panic: Option<Panic>) {
    if let Some(panic) = panic.filter(|_| !thread::panicking()) {
        resume_unwind(panic);
    }
}

/// The shared state of a device. Lives as long as the frames and all their lists and resources.
///
/// # Locks
/// A lock is taken before those to its right. Each line that begins with `>` continues the first line.
///
/// ```text
/// submitter > moving > name of a resource > its current body
///     > views of a body; in a move, those of the old body before those of the new one
///     > memory of a body > movables
///     > global > pools of a family, RetiredDeviceObject::Released, retired, submission_state
/// submitter > polling > submission_state
/// ```
///
/// No other two locks of the package are held at once. Code of the program runs only under `submitter` (in
/// [`Frames::with_queue`](crate::Frames::with_queue)) and `moving` (subscribers of a compactor), and as a subscriber of
/// `tracing` under locks that are held while memory or descriptor pools are created or freed.
pub(crate) struct DeviceCore {
    pub(crate) api: Api,
    pub(crate) instance: ash::Instance,
    pub(crate) physical_device: vk::PhysicalDevice,
    pub(crate) allocator: Arc<Allocator>,
    pub(crate) clock: Clock,
    pub(crate) queues: Vec<QueueData>,
    pub(crate) families: Vec<QueueFamily>,
    /// Protects the queues, and the scratch memory of submissions; taken before all others. Held over driver calls.
    /// Reentrant.
    pub(crate) submitter: ReentrantMutex<RefCell<Submitter>>,
    /// Protects the tracked states; taken before `retired` and `submission_state`. Held from the resolution of lists
    /// until the driver has accepted them.
    pub(crate) global: Mutex<Global>,
    /// Protects fences and semaphores; no lock is taken under it. Never held over a driver call.
    pub(crate) submission_state: Mutex<SubmissionState>,
    pub(crate) retired_resources: RetiredResources,
    pub(crate) counts: DeviceCounters,
    /// Resources that a compactor may move.
    pub(crate) movables: Movables,
    /// Protects the objects of movable resources from replacement; taken before `global`. A compactor holds it during a
    /// step, over driver calls and its subscribers.
    pub(crate) moving: Mutex<()>,
    pub(crate) aspects_apart: bool,
    pub(crate) info: ContextInfo,
    pub(crate) uploads: Arc<Uploads>,
    /// Protects the pipelines for mips; no lock is taken under it. Held while the driver creates them.
    pub(crate) downsampler: Mutex<Downsampler>,
    pub(crate) render_passes: RenderPasses,
    pub(crate) layouts: KeptLayouts,
    /// Protects the objects that wait for tickets; no lock is taken under it. Never held over a driver call.
    retired: Mutex<Retire<RetiredDeviceObject>>,
    /// Protects a vector that is kept to avoid allocations; no lock is taken under it. Never held over a driver call.
    done: Mutex<Vec<RetiredDeviceObject>>,
    /// Protects submitted fences from being reset during a wait; taken before `submission_state`. Held over the wait.
    polling: Mutex<()>,
    lost: AtomicBool,
    poisoned: AtomicBool,
}

impl DeviceCore {
    #[expect(clippy::too_many_arguments, reason = "each is a separate field")]
    pub(crate) fn new(
        api: Api,
        instance: ash::Instance,
        physical_device: vk::PhysicalDevice,
        allocator: Arc<Allocator>,
        clock: Clock,
        queues: Vec<QueueData>,
        families: Vec<QueueFamily>,
        global: Global,
        info: ContextInfo,
        uploads: Uploads,
        aspects_apart: bool,
    ) -> Self {
        Self {
            api,
            instance,
            physical_device,
            allocator,
            clock,
            submission_state: Mutex::new(SubmissionState::new(queues.len())),
            queues,
            families,
            submitter: ReentrantMutex::new(RefCell::new(Submitter::new())),
            global: Mutex::new(global),
            retired_resources: RetiredResources::new(),
            counts: DeviceCounters::default(),
            movables: Movables::default(),
            moving: Mutex::new(()),
            aspects_apart,
            info,
            uploads: Arc::new(uploads),
            downsampler: Mutex::default(),
            render_passes: RenderPasses::default(),
            layouts: KeptLayouts::default(),
            retired: Mutex::new(Retire::new()),
            done: Mutex::new(Vec::new()),
            polling: Mutex::new(()),
            lost: AtomicBool::new(false),
            poisoned: AtomicBool::new(false),
        }
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Relaxed)
    }

    /// Returns true if no more submissions are accepted.
    pub(crate) fn is_closed(&self) -> bool {
        self.is_lost() || self.poisoned.load(Ordering::Relaxed)
    }

    /// Rejects all further submissions. Earlier ones continue.
    pub(crate) fn poison(&self) {
        self.poisoned.store(true, Ordering::Relaxed);
    }

    /// Records that the device is lost: everything in flight counts as done, and nothing more is submitted.
    pub(crate) fn lose(&self) {
        self.lost.store(true, Ordering::Relaxed);
        self.clock.shutdown();
    }

    /// Records a lost device, and returns the error.
    pub(crate) fn record_error(&self, error: DriverError) -> DriverError {
        if error.result == vk::Result::ERROR_DEVICE_LOST {
            self.lose();
        }
        error
    }

    /// Returns `E::LOST` if the device is lost or `error` reports it; otherwise `error`. Records a lost device.
    pub(crate) fn or_lost<E: LostDevice>(&self, error: E) -> E {
        let mut cause: Option<&(dyn Error + 'static)> = Some(&error);
        while let Some(one) = cause {
            let of_call = one.downcast_ref::<DriverError>().map(|error| error.result);
            if let Some(result) = of_call.or(one.downcast_ref::<vk::Result>().copied()) {
                if result == vk::Result::ERROR_DEVICE_LOST {
                    self.lose();
                }
                return if self.is_lost() { E::LOST } else { error };
            }
            cause = one.source();
        }
        error
    }

    /// Waits until the device has finished a submission.
    pub(crate) fn wait(&self, queue: usize, serial: u64) -> Result<(), DriverError> {
        let data = &self.queues[queue];
        if serial == 0 || self.is_lost() {
            return Ok(());
        }
        if self.api.has_timeline() {
            // SAFETY: the queue owns the semaphore, which lives as long as `self`.
            let waited = unsafe { self.api.wait(data.semaphore, serial) };
            waited.map_err(|error| self.record_error(error))?;
            self.clock.completed(data.timeline, serial);
            return Ok(());
        }
        let _polling = self.polling.lock();
        let fence = self.submission_state.lock().fence_of(queue, serial);
        if let Some(fence) = fence {
            // SAFETY: the fence is live and submitted: only `poll_fences` removes it, under the lock held here.
            let waited = unsafe { self.api.device().wait_for_fences(&[fence], true, u64::MAX) };
            waited.map_err(|result| self.record_error(DriverError { call: "vkWaitForFences", result }))?;
        }
        self.poll_fences(queue)
    }

    /// Updates the progress of all queues.
    pub(crate) fn poll(&self) -> Result<(), DriverError> {
        for (index, data) in self.queues.iter().enumerate() {
            if self.is_lost() || !self.clock.is_pending(data.timeline) {
                continue;
            }
            if self.api.has_timeline() {
                // SAFETY: the queue owns the semaphore, which lives as long as `self`.
                let value =
                    unsafe { self.api.counter(data.semaphore) }.map_err(|error| self.record_error(error))?;
                self.clock.completed(data.timeline, value);
            } else {
                let _polling = self.polling.lock();
                self.poll_fences(index)?;
            }
        }
        Ok(())
    }

    /// Recycles the signaled fences. The caller holds the `polling` lock.
    fn poll_fences(&self, queue: usize) -> Result<(), DriverError> {
        loop {
            let Some((serial, fence)) = self.submission_state.lock().oldest_fence(queue) else {
                return Ok(());
            };
            // SAFETY: the fence is live: only this function removes it, under the lock that the caller holds.
            let status = unsafe { self.api.device().get_fence_status(fence) };
            let signaled = status
                .map_err(|result| self.record_error(DriverError { call: "vkGetFenceStatus", result }))?;
            if !signaled {
                return Ok(());
            }
            self.clock.completed(self.queues[queue].timeline, serial);
            // SAFETY: its submission is done.
            let reset = unsafe { self.api.device().reset_fences(&[fence]) };
            self.submission_state.lock().take_fence(queue, reset.is_ok());
            if reset.is_err() {
                // SAFETY: its submission is done, and it was removed from the state.
                unsafe { self.api.device().destroy_fence(fence, None) };
            }
        }
    }

    /// Waits for a running compaction step.
    pub(crate) fn wait_for_moves(&self) {
        drop(self.moving.lock());
    }

    /// Keeps an object until its ticket is done.
    pub(crate) fn retire(&self, ticket: Ticket, retired: RetiredDeviceObject) {
        self.retired.lock().push(ticket, retired);
    }

    /// Recycles the objects whose tickets are done.
    ///
    /// # Panics
    /// If dropping an object panics, after all others were recycled.
    pub(crate) fn collect(&self) {
        // Drop without locks: destructors may take any.
        let mut done = std::mem::take(&mut *self.done.lock());
        // All tickets belong to this clock.
        let _ = self.retired.lock().collect(&self.clock, |item| done.push(item));
        let mut panic = None;
        for item in done.drain(..) {
            let thrown = match item {
                RetiredDeviceObject::Pool(pool) => self.recycle(pool),
                // The last owner drops them.
                RetiredDeviceObject::Released(kept) => {
                    Arc::into_inner(kept).and_then(|kept| drop_each(kept.into_inner().into_iter()))
                }
                RetiredDeviceObject::Semaphore(semaphore) => {
                    self.submission_state.lock().recycle_semaphore(semaphore);
                    None
                }
            };
            panic = panic.or(thrown);
        }
        *self.done.lock() = done;
        resume(panic);
    }

    pub(crate) fn in_flight(&self) -> usize {
        self.retired.lock().len()
    }

    /// Destroys a pool whose commands were never submitted, and drops the resources that they use.
    ///
    /// The pool is not reset for another list, because of a driver fault (NVIDIA 580.159, H100). If a pool is reset
    /// while a command buffer is being recorded, the last command recorded before runs before the commands recorded
    /// after.
    ///
    /// # Panics
    /// If dropping a resource panics, after everything was done.
    pub(crate) fn discard(&self, mut pool: CommandPool) {
        let panic = drop_each(pool.kept.drain(..));
        // SAFETY: nothing of the pool was submitted, and this function owns it.
        unsafe { self.destroy_pool(&pool) };
        resume(panic);
    }

    /// Resets a pool whose commands are done, and drops the resources that they use. Returns the panic of a destructor.
    fn recycle(&self, mut pool: CommandPool) -> Option<Panic> {
        let panic = drop_each(pool.kept.drain(..));
        let flags = vk::CommandPoolResetFlags::empty();
        // SAFETY: no command buffer of the pool is pending, and this function owns it.
        let reset = unsafe { self.api.device().reset_command_pool(pool.handle, flags) };
        if reset.is_ok() && !self.is_lost() {
            self.families[pool.family].pools.lock().push(pool);
        } else {
            // SAFETY: as above; this also frees its command buffers.
            unsafe { self.destroy_pool(&pool) };
        }
        panic
    }

    /// # Safety
    /// No command buffer of the pool is pending, and the pool is not used any more.
    unsafe fn destroy_pool(&self, pool: &CommandPool) {
        self.counts.pools.fetch_sub(1, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { self.api.device().destroy_command_pool(pool.handle, None) };
    }

    /// Returns a pool with empty command buffers.
    pub(crate) fn pool(&self, family: usize) -> Result<CommandPool, DriverError> {
        if let Some(pool) = self.families[family].pools.lock().pop() {
            return Ok(pool);
        }
        let device = self.api.device();
        let info = vk::CommandPoolCreateInfo::default()
            .flags(vk::CommandPoolCreateFlags::TRANSIENT)
            .queue_family_index(self.families[family].index);
        // SAFETY: the device is live, and has the family.
        let made = unsafe { device.create_command_pool(&info, None) };
        let handle =
            made.map_err(|result| self.record_error(DriverError { call: "vkCreateCommandPool", result }))?;
        DeviceCounters::add(&self.counts.pools, 1);
        let mut pool = CommandPool { handle, family, ..CommandPool::default() };
        let info = vk::CommandBufferAllocateInfo::default().command_pool(handle).command_buffer_count(2);
        // SAFETY: the pool is live, and this function owns it.
        let made = unsafe { device.allocate_command_buffers(&info) };
        match made.as_deref() {
            Ok(&[preamble, main]) => (pool.preamble, pool.main) = (preamble, main),
            Ok(_) => {}
            Err(&result) => {
                // SAFETY: nothing was recorded.
                unsafe { self.destroy_pool(&pool) };
                return Err(self.record_error(DriverError { call: "vkAllocateCommandBuffers", result }));
            }
        }
        Ok(pool)
    }

    /// Begins a command buffer that is submitted once.
    ///
    /// # Safety
    /// It is empty or reset, and no other thread uses it or its pool.
    pub(crate) unsafe fn begin(&self, commands: vk::CommandBuffer) -> Result<(), DriverError> {
        let info = vk::CommandBufferBeginInfo::default().flags(vk::CommandBufferUsageFlags::ONE_TIME_SUBMIT);
        // SAFETY: the caller's promise.
        let begun = unsafe { self.api.device().begin_command_buffer(commands, &info) };
        begun.map_err(|result| self.record_error(DriverError { call: "vkBeginCommandBuffer", result }))
    }

    /// # Safety
    /// It is being recorded, outside of rendering, and no other thread uses it or its pool.
    pub(crate) unsafe fn end(&self, commands: vk::CommandBuffer) -> Result<(), DriverError> {
        // SAFETY: the caller's promise.
        let ended = unsafe { self.api.device().end_command_buffer(commands) };
        ended.map_err(|result| self.record_error(DriverError { call: "vkEndCommandBuffer", result }))
    }

    /// Records and counts barriers.
    ///
    /// # Safety
    /// See [`Api::barrier`]: the owner of the pool records the command buffer, outside of rendering, and all objects of
    /// the barriers are live.
    pub(crate) unsafe fn barrier(&self, commands: vk::CommandBuffer, batch: &BarrierBatch) {
        DeviceCounters::add(&self.counts.barrier_calls, 1);
        DeviceCounters::add(&self.counts.barriers, u64::try_from(batch.len()).unwrap_or(u64::MAX));
        // SAFETY: the caller's promise.
        unsafe { self.api.barrier(commands, batch) };
    }

    /// Passes recorded barriers to the observer. The caller holds no lock.
    pub(crate) fn notify_barriers(&self, batches: &[BarrierBatch]) {
        if let Some(observer) = &self.info.on_barriers {
            batches.iter().for_each(|batch| observer(batch));
        }
    }

    /// Returns a context, and a pool whose main command buffer is being recorded.
    pub(crate) fn open(&self, queue: Queue) -> Result<(ListContext, CommandPool), OpenError> {
        if self.is_closed() {
            return Err(OpenError::Lost);
        }
        let family = self.queues[queue.index()].family;
        let pool = self.pool(family).map_err(|error| self.or_lost(OpenError::Driver(error)))?;
        // SAFETY: it is empty, and this function owns the pool.
        if let Err(error) = unsafe { self.begin(pool.main) } {
            self.discard(pool);
            return Err(self.or_lost(OpenError::Driver(error)));
        }
        DeviceCounters::add(&self.counts.lists, 1);
        let known = self.families[family].contexts.lock().pop();
        let mut context = known.unwrap_or_else(|| {
            DeviceCounters::add(&self.counts.contexts, 1);
            ListContext { family, ..ListContext::default() }
        });
        context.begin(queue);
        Ok((context, pool))
    }

    /// Returns the binder of a context, created on first use.
    pub(crate) fn binder<'a>(
        &self,
        binder: &'a mut Option<Binder<Arc<Allocator>>>,
    ) -> Result<&'a mut Binder<Arc<Allocator>>, ListError> {
        match binder {
            Some(binder) => Ok(binder),
            slot => {
                let device = self.info.descriptors.as_ref().ok_or(ListError::NoDescriptors)?;
                // SAFETY: device and allocator have the same `VkDevice`, as the creator of the frames guarantees. Lists
                // use the descriptors, and their tickets are passed to `flush`. The clock reports completion correctly.
                let made = unsafe { Binder::new(device, Arc::clone(&self.allocator), &self.info.binder) };
                Ok(slot.insert(made.map_err(|error| self.or_lost(ListError::CreateBinder(error)))?))
            }
        }
    }

    pub(crate) fn return_context(&self, context: ListContext) {
        if self.is_lost() {
            return self.drain_context(context);
        }
        self.families[context.family].contexts.lock().push(context);
    }

    /// Drops a context whose tickets are all done, after draining its binder.
    fn drain_context(&self, mut context: ListContext) {
        let ticket = self.clock.open(self.queues[0].timeline);
        let _ = self.clock.discard(ticket);
        if let Some(binder) = &mut context.binder {
            // Collect the bindings of a list that was never submitted. The tickets belong to this clock, and pools that
            // cannot be reset are destroyed.
            let _ = binder.flush(ticket).map(|()| binder.collect(&self.clock));
        }
        self.counts.contexts.fetch_sub(1, Ordering::Relaxed);
    }

    /// Collects descriptor pools and upload pages, and frees those that were idle for long.
    pub(crate) fn collect_contexts(&self) -> Result<(), sublet_descriptors::CollectPoolsError> {
        self.uploads.collect();
        let round = self.uploads.idle_collects();
        for family in &self.families {
            let mut idle = family.contexts.lock();
            for binder in idle.iter_mut().filter_map(|context| context.binder.as_mut()) {
                binder.collect(&self.clock)?;
            }
            let spare: Vec<_> = idle.age(round).collect();
            drop(idle);
            self.drop_idle(spare);
            let spare: Vec<_> = family.pools.lock().age(round).collect();
            for pool in &spare {
                // SAFETY: idle pools are reset and unused.
                unsafe { self.destroy_pool(pool) };
            }
        }
        Ok(())
    }

    /// Frees everything that no list uses and the device does not need. Returns the bytes of upload pages.
    pub(crate) fn trim(&self) -> u64 {
        for family in &self.families {
            let spare = family.contexts.lock().take_all();
            self.drop_idle(spare);
            let spare = family.pools.lock().take_all();
            for pool in &spare {
                // SAFETY: idle pools are reset and unused.
                unsafe { self.destroy_pool(pool) };
            }
        }
        self.uploads.trim()
    }

    /// Drops contexts, except those whose descriptors the device still uses.
    fn drop_idle(&self, spare: Vec<ListContext>) {
        for context in spare {
            if context.is_done(&self.clock) {
                self.drain_context(context)
            } else {
                self.return_context(context)
            }
        }
    }

    /// Retries [`wait`](Self::wait) a few times: a driver may be out of memory only briefly.
    fn wait_with_retries(&self, queue: usize, serial: u64) -> Result<(), DriverError> {
        for pause in [1, 10, 100] {
            match self.wait(queue, serial) {
                Err(_) if !self.is_lost() => thread::sleep(Duration::from_millis(pause)),
                waited => return waited,
            }
        }
        self.wait(queue, serial)
    }

    /// Waits for all submissions and drops the resources that they use. Returns false if the device may still use them:
    /// then the core must not be dropped.
    ///
    /// # Panics
    /// See [`collect`](Self::collect); everything else is done before.
    #[must_use]
    pub(crate) fn close(&self) -> bool {
        let serials: Vec<u64> = self.submission_state.lock().submitted().collect();
        for (queue, serial) in serials.into_iter().enumerate() {
            if let Err(error) = self.wait_with_retries(queue, serial) {
                if !self.is_lost() {
                    tracing::warn!(name: "frames_not_idle", target: "sublet::leak", %error, "waiting for dropped frames failed: their resources are leaked");
                    return false;
                }
            }
        }
        self.clock.idle();
        let panic = catch_unwind(AssertUnwindSafe(|| self.collect())).err();
        self.lose();
        self.trim();
        if let Err(error) = self.retired_resources.collect(&self.allocator, &self.clock) {
            tracing::warn!(name: "frames_retired_left", target: "sublet::leak", %error, "retired resources could not be freed");
        }
        resume(panic);
        true
    }
}

impl Drop for DeviceCore {
    fn drop(&mut self) {
        // The frames were closed before, or nothing was submitted.
        let pools: VecDeque<CommandPool> =
            self.families.iter().flat_map(|family| family.pools.lock().take_all()).collect();
        for pool in &pools {
            // SAFETY: idle pools are reset and unused.
            unsafe { self.destroy_pool(pool) };
        }
        let device = self.api.device();
        // SAFETY: all submissions are done or the device is lost: `close`.
        unsafe { self.downsampler.get_mut().destroy(device) };
        let (fences, semaphores) = self.submission_state.get_mut().take_objects();
        for fence in fences {
            // SAFETY: as above.
            unsafe { device.destroy_fence(fence, None) };
        }
        let timelines = self.queues.iter().map(|queue| queue.semaphore);
        for semaphore in semaphores.into_iter().chain(timelines) {
            // SAFETY: as above; null handles are ignored.
            unsafe { device.destroy_semaphore(semaphore, None) };
        }
    }
}
