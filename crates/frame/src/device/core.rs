//! What frames, lists and resources of a device share.

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
use sublet::descriptor::Binder;
use sublet::device::DriverError;
use sublet::retire::{Clock, LaneId, Retire, Ticket};
use sublet::{Allocator, RetiredResources};

use super::tools::ToolInfo;
use super::{Api, Books, Idle, Kept, Layouts, Pool, RenderPasses, Submitter, Tools, Uploads};
use crate::frame::OpenError;
use crate::list::{Downsampler, ListError};
use crate::resource::Movables;
use crate::track::{Batch, Global, Queue};

/// A queue, and what counts its submissions.
pub(crate) struct QueueData {
    pub(crate) handle: vk::Queue,
    pub(crate) track: Queue,
    pub(crate) lane: LaneId,
    /// Index of its family.
    pub(crate) family: usize,
    /// Null where fences count.
    pub(crate) timeline: vk::Semaphore,
}

/// A family of queues.
pub(crate) struct Family {
    pub(crate) index: u32,
    pub(crate) flags: vk::QueueFlags,
    pub(crate) granularity: vk::Extent3D,
    pools: Mutex<Idle<Pool>>,
    /// Those that no list has at the moment.
    tools: Mutex<Idle<Tools>>,
}

impl Family {
    pub(crate) fn new(index: u32, properties: &vk::QueueFamilyProperties) -> Self {
        let granularity = properties.min_image_transfer_granularity;
        let (pools, tools) = (Mutex::new(Idle::new()), Mutex::new(Idle::new()));
        Self { index, flags: properties.queue_flags, granularity, pools, tools }
    }
}

/// What waits for a ticket.
pub(crate) enum Retired {
    Pool(Pool),
    /// What lists kept that were not submitted, though another family had given it away for them.
    GivenAway(Arc<Mutex<Vec<Kept>>>),
    /// A binary one, which the ticket's submission has waited for.
    Semaphore(vk::Semaphore),
}

/// What was done so far.
#[derive(Default)]
pub(crate) struct Counts {
    pub(crate) lists: AtomicU64,
    pub(crate) submissions: AtomicU64,
    pub(crate) fronts: AtomicU64,
    pub(crate) releases: AtomicU64,
    pub(crate) waits: AtomicU64,
    pub(crate) pools: AtomicU64,
    pub(crate) tools: AtomicU64,
    pub(crate) barrier_calls: AtomicU64,
    pub(crate) barriers: AtomicU64,
}

impl Counts {
    pub(crate) fn add(counter: &AtomicU64, more: u64) {
        counter.fetch_add(more, Ordering::Relaxed);
    }
}

/// Errors that have a word for a lost device.
pub(crate) trait LostDevice: Error + Sized + 'static {
    const LOST: Self;
}

/// What was thrown by something of the program's own.
type Panic = Box<dyn Any + Send>;

/// Drops each of them, also if others panic, and returns the first panic: what has to follow is done before it goes on.
fn drop_each<T>(items: impl Iterator<Item = T>) -> Option<Panic> {
    let mut first = None;
    for item in items {
        let dropped = catch_unwind(AssertUnwindSafe(|| drop(item)));
        first = first.or(dropped.err());
    }
    first
}

/// Lets a panic go on. Where another one is on its way, that is the one.
fn go_on(panic: Option<Panic>) {
    if let Some(panic) = panic.filter(|_| !thread::panicking()) {
        resume_unwind(panic);
    }
}

/// Lives for as long as any frames, list or resource of it.
///
/// Locks are taken in this order, and none is held while code of the program's own is called, but for the queues within
/// [`Frames::with_queue`](crate::Frames::with_queue): `moving`, `submitter`, `global`, `books`.
pub(crate) struct Core {
    pub(crate) api: Api,
    pub(crate) instance: ash::Instance,
    pub(crate) physical_device: vk::PhysicalDevice,
    pub(crate) allocator: Arc<Allocator>,
    pub(crate) clock: Clock,
    pub(crate) queues: Vec<QueueData>,
    pub(crate) families: Vec<Family>,
    /// The queues are this thread's as long as it is held, as often as the thread takes it.
    pub(crate) submitter: ReentrantMutex<RefCell<Submitter>>,
    /// The states. Held from the moment that lists meet them to that in which the driver has the lists.
    pub(crate) global: Mutex<Global>,
    pub(crate) books: Mutex<Books>,
    pub(crate) retired_resources: RetiredResources,
    pub(crate) counts: Counts,
    /// What a compactor may move, and the lock under which it does.
    pub(crate) movables: Movables,
    pub(crate) moving: Mutex<()>,
    pub(crate) aspects_apart: bool,
    pub(crate) info: ToolInfo,
    pub(crate) uploads: Arc<Uploads>,
    pub(crate) downsampler: Mutex<Downsampler>,
    pub(crate) render_passes: RenderPasses,
    pub(crate) layouts: Layouts,
    retired: Mutex<Retire<Retired>>,
    /// Kept for its room.
    done: Mutex<Vec<Retired>>,
    /// Fences are waited for and reset under this lock.
    polling: Mutex<()>,
    lost: AtomicBool,
    poisoned: AtomicBool,
}

impl Core {
    #[expect(clippy::too_many_arguments, reason = "each is a field of its own, named where it is passed")]
    pub(crate) fn new(
        api: Api,
        instance: ash::Instance,
        physical_device: vk::PhysicalDevice,
        allocator: Arc<Allocator>,
        clock: Clock,
        queues: Vec<QueueData>,
        families: Vec<Family>,
        global: Global,
        info: ToolInfo,
        uploads: Uploads,
        aspects_apart: bool,
    ) -> Self {
        Self {
            api,
            instance,
            physical_device,
            allocator,
            clock,
            books: Mutex::new(Books::new(queues.len())),
            queues,
            families,
            submitter: ReentrantMutex::new(RefCell::new(Submitter::new())),
            global: Mutex::new(global),
            retired_resources: RetiredResources::new(),
            counts: Counts::default(),
            movables: Movables::default(),
            moving: Mutex::new(()),
            aspects_apart,
            info,
            uploads: Arc::new(uploads),
            downsampler: Mutex::default(),
            render_passes: RenderPasses::default(),
            layouts: Layouts::default(),
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

    /// Whether nothing can be submitted any more.
    pub(crate) fn is_closed(&self) -> bool {
        self.is_lost() || self.poisoned.load(Ordering::Relaxed)
    }

    /// Nothing is submitted any more; what was goes on.
    pub(crate) fn poison(&self) {
        self.poisoned.store(true, Ordering::Relaxed);
    }

    /// Nothing runs any more, and nothing is submitted any more.
    pub(crate) fn lose(&self) {
        self.lost.store(true, Ordering::Relaxed);
        self.clock.shutdown();
    }

    /// An error of the driver; a lost device is remembered.
    pub(crate) fn note(&self, error: DriverError) -> DriverError {
        if error.result == vk::Result::ERROR_DEVICE_LOST {
            self.lose();
        }
        error
    }

    /// The error, or its word for a lost device if that is what the driver says in it, or was lost before.
    pub(crate) fn told<E: LostDevice>(&self, error: E) -> E {
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

    /// Waits until the device is done with a submission.
    pub(crate) fn wait(&self, queue: usize, serial: u64) -> Result<(), DriverError> {
        let data = &self.queues[queue];
        if serial == 0 || self.is_lost() {
            return Ok(());
        }
        if self.api.has_timeline() {
            // SAFETY: it is the queue's own, live as long as `self`.
            let waited = unsafe { self.api.wait(data.timeline, serial) };
            waited.map_err(|error| self.note(error))?;
            self.clock.completed(data.lane, serial);
            return Ok(());
        }
        let _polling = self.polling.lock();
        let fence = self.books.lock().fence_of(queue, serial);
        if let Some(fence) = fence {
            // SAFETY: the fence is live and submitted: only `poll_fences` takes it away, under the lock that is held.
            let waited = unsafe { self.api.device().wait_for_fences(&[fence], true, u64::MAX) };
            waited.map_err(|result| self.note(DriverError { call: "vkWaitForFences", result }))?;
        }
        self.poll_fences(queue)
    }

    /// Reads how far the queues are.
    pub(crate) fn poll(&self) -> Result<(), DriverError> {
        for (index, data) in self.queues.iter().enumerate() {
            if self.is_lost() || !self.clock.is_pending(data.lane) {
                continue;
            }
            if self.api.has_timeline() {
                // SAFETY: it is the queue's own, live as long as `self`.
                let value = unsafe { self.api.counter(data.timeline) }.map_err(|error| self.note(error))?;
                self.clock.completed(data.lane, value);
            } else {
                let _polling = self.polling.lock();
                self.poll_fences(index)?;
            }
        }
        Ok(())
    }

    /// Takes back the fences that are signaled. The lock on polling is held.
    fn poll_fences(&self, queue: usize) -> Result<(), DriverError> {
        loop {
            let Some((serial, fence)) = self.books.lock().oldest_fence(queue) else { return Ok(()) };
            // SAFETY: the fence is live: only this function takes it away, under the lock that the caller holds.
            let status = unsafe { self.api.device().get_fence_status(fence) };
            let signaled =
                status.map_err(|result| self.note(DriverError { call: "vkGetFenceStatus", result }))?;
            if !signaled {
                return Ok(());
            }
            self.clock.completed(self.queues[queue].lane, serial);
            // SAFETY: its submission is done.
            let reset = unsafe { self.api.device().reset_fences(&[fence]) };
            self.books.lock().take_fence(queue, reset.is_ok());
            if reset.is_err() {
                // SAFETY: its submission is done, and nobody else has it any more.
                unsafe { self.api.device().destroy_fence(fence, None) };
            }
        }
    }

    /// Waits until nothing is being moved that was.
    pub(crate) fn wait_for_moves(&self) {
        drop(self.moving.lock());
    }

    /// Keeps something until its ticket is done.
    pub(crate) fn retire(&self, ticket: Ticket, retired: Retired) {
        self.retired.lock().push(ticket, retired);
    }

    /// Recycles what is done.
    ///
    /// # Panics
    /// If something that was kept does when it is dropped: all the rest is recycled before.
    pub(crate) fn collect(&self) {
        // No lock is held while things are dropped: they may take any.
        let mut done = std::mem::take(&mut *self.done.lock());
        // All tickets are of this clock.
        let _ = self.retired.lock().collect(&self.clock, |item| done.push(item));
        let mut panic = None;
        for item in done.drain(..) {
            let thrown = match item {
                Retired::Pool(pool) => self.recycle(pool),
                // The last share lets go of it.
                Retired::GivenAway(kept) => {
                    Arc::into_inner(kept).and_then(|kept| drop_each(kept.into_inner().into_iter()))
                }
                Retired::Semaphore(semaphore) => {
                    self.books.lock().give_semaphore(semaphore);
                    None
                }
            };
            panic = panic.or(thrown);
        }
        *self.done.lock() = done;
        go_on(panic);
    }

    pub(crate) fn in_flight(&self) -> usize {
        self.retired.lock().len()
    }

    /// Destroys a pool whose commands were never submitted, and lets go of what they used.
    ///
    /// It is not reset for another list: with a driver of NVIDIA (580.159 on an H100) the last command of a command
    /// buffer that was being recorded when its pool was reset runs in front of what is recorded next.
    ///
    /// # Panics
    /// If something that was kept does when it is dropped, after all of this.
    pub(crate) fn discard(&self, mut pool: Pool) {
        let panic = drop_each(pool.kept.drain(..));
        // SAFETY: nothing of the pool was submitted, and nobody else has it.
        unsafe { self.destroy_pool(&pool) };
        go_on(panic);
    }

    /// Resets a pool whose commands are done, and lets go of what they used. Returns what that threw.
    fn recycle(&self, mut pool: Pool) -> Option<Panic> {
        let panic = drop_each(pool.kept.drain(..));
        let flags = vk::CommandPoolResetFlags::empty();
        // SAFETY: no command buffer of the pool is pending, and nobody else has it.
        let reset = unsafe { self.api.device().reset_command_pool(pool.handle, flags) };
        if reset.is_ok() && !self.is_lost() {
            self.families[pool.family].pools.lock().push(pool);
        } else {
            // SAFETY: as above; its command buffers go with it.
            unsafe { self.destroy_pool(&pool) };
        }
        panic
    }

    /// # Safety
    /// None of its command buffers is pending, and nobody uses the pool any more.
    unsafe fn destroy_pool(&self, pool: &Pool) {
        self.counts.pools.fetch_sub(1, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { self.api.device().destroy_command_pool(pool.handle, None) };
    }

    /// A pool whose command buffers are empty.
    pub(crate) fn pool(&self, family: usize) -> Result<Pool, DriverError> {
        if let Some(pool) = self.families[family].pools.lock().pop() {
            return Ok(pool);
        }
        let device = self.api.device();
        let info = vk::CommandPoolCreateInfo::default()
            .flags(vk::CommandPoolCreateFlags::TRANSIENT)
            .queue_family_index(self.families[family].index);
        // SAFETY: the device is live, and has the family.
        let made = unsafe { device.create_command_pool(&info, None) };
        let handle = made.map_err(|result| self.note(DriverError { call: "vkCreateCommandPool", result }))?;
        Counts::add(&self.counts.pools, 1);
        let mut pool = Pool { handle, family, ..Pool::default() };
        let info = vk::CommandBufferAllocateInfo::default().command_pool(handle).command_buffer_count(2);
        // SAFETY: the pool is live, and nobody else has it.
        let made = unsafe { device.allocate_command_buffers(&info) };
        match made.as_deref() {
            Ok(&[front, main]) => (pool.front, pool.main) = (front, main),
            Ok(_) => {}
            Err(&result) => {
                // SAFETY: nothing was recorded.
                unsafe { self.destroy_pool(&pool) };
                return Err(self.note(DriverError { call: "vkAllocateCommandBuffers", result }));
            }
        }
        Ok(pool)
    }

    /// Begins a command buffer that is submitted once.
    ///
    /// # Safety
    /// It is empty or reset, and nobody else uses it or its pool.
    pub(crate) unsafe fn begin(&self, commands: vk::CommandBuffer) -> Result<(), DriverError> {
        let info = vk::CommandBufferBeginInfo::default().flags(vk::CommandBufferUsageFlags::ONE_TIME_SUBMIT);
        // SAFETY: the caller's promise.
        let begun = unsafe { self.api.device().begin_command_buffer(commands, &info) };
        begun.map_err(|result| self.note(DriverError { call: "vkBeginCommandBuffer", result }))
    }

    /// # Safety
    /// It is being recorded, outside of rendering, and nobody else uses it or its pool.
    pub(crate) unsafe fn end(&self, commands: vk::CommandBuffer) -> Result<(), DriverError> {
        // SAFETY: the caller's promise.
        let ended = unsafe { self.api.device().end_command_buffer(commands) };
        ended.map_err(|result| self.note(DriverError { call: "vkEndCommandBuffer", result }))
    }

    /// Records and counts barriers.
    ///
    /// # Safety
    /// As of [`Api::barrier`]: the command buffer is being recorded outside of rendering, by the owner of its pool, and
    /// what the barriers name is live.
    pub(crate) unsafe fn barrier(&self, commands: vk::CommandBuffer, batch: &Batch) {
        Counts::add(&self.counts.barrier_calls, 1);
        Counts::add(&self.counts.barriers, u64::try_from(batch.len()).unwrap_or(u64::MAX));
        // SAFETY: the caller's promise.
        unsafe { self.api.barrier(commands, batch) };
    }

    /// Shows barriers to who wants to see them. They are recorded, and no lock is held.
    pub(crate) fn show(&self, batches: &[Batch]) {
        if let Some(observer) = &self.info.on_barriers {
            batches.iter().for_each(|batch| observer(batch));
        }
    }

    /// Tools and a pool whose main command buffer is being recorded.
    pub(crate) fn open(&self, queue: Queue) -> Result<(Tools, Pool), OpenError> {
        if self.is_closed() {
            return Err(OpenError::Lost);
        }
        let family = self.queues[queue.index()].family;
        let pool = self.pool(family).map_err(|error| self.told(OpenError::Driver(error)))?;
        // SAFETY: it is empty, and nobody else has the pool.
        if let Err(error) = unsafe { self.begin(pool.main) } {
            self.discard(pool);
            return Err(self.told(OpenError::Driver(error)));
        }
        Counts::add(&self.counts.lists, 1);
        let known = self.families[family].tools.lock().pop();
        let mut tools = known.unwrap_or_else(|| {
            Counts::add(&self.counts.tools, 1);
            Tools { family, ..Tools::default() }
        });
        tools.begin(queue);
        Ok((tools, pool))
    }

    /// The binder of these tools.
    pub(crate) fn binder<'a>(
        &self,
        binder: &'a mut Option<Binder<Arc<Allocator>>>,
    ) -> Result<&'a mut Binder<Arc<Allocator>>, ListError> {
        match binder {
            Some(binder) => Ok(binder),
            slot => {
                let device = self.info.descriptors.as_ref().ok_or(ListError::NoDescriptors)?;
                // SAFETY: device and allocator are of one device, as the creator of the frames vouched; what commits
                // use is used by lists whose ticket the binder is flushed with, and the clock is told the truth.
                let made = unsafe { Binder::new(device, Arc::clone(&self.allocator), &self.info.binder) };
                Ok(slot.insert(made.map_err(|error| self.told(ListError::CreateBinder(error)))?))
            }
        }
    }

    /// Tools that a list is done with.
    pub(crate) fn give_tools(&self, tools: Tools) {
        if self.is_lost() {
            return self.settle(tools);
        }
        self.families[tools.family].tools.lock().push(tools);
    }

    /// Takes back all that tools have made, as every ticket is done, and drops them.
    fn settle(&self, mut tools: Tools) {
        let ticket = self.clock.open(self.queues[0].lane);
        let _ = self.clock.discard(ticket);
        if let Some(binder) = &mut tools.binder {
            // What was bound for a list that was never submitted. The tickets are of this clock; pools that are not
            // reset are destroyed.
            let _ = binder.flush(ticket).map(|()| binder.collect(&self.clock));
        }
        self.counts.tools.fetch_sub(1, Ordering::Relaxed);
    }

    /// Takes back descriptor pools and upload pages, and lets go of what nobody has needed for long.
    pub(crate) fn collect_tools(&self) -> Result<(), sublet::descriptor::CollectError> {
        self.uploads.collect();
        let round = self.uploads.idle_collects();
        for family in &self.families {
            let mut idle = family.tools.lock();
            for binder in idle.iter_mut().filter_map(|tools| tools.binder.as_mut()) {
                binder.collect(&self.clock)?;
            }
            let spare: Vec<_> = idle.age(round).collect();
            drop(idle);
            self.let_go(spare);
            let spare: Vec<_> = family.pools.lock().age(round).collect();
            for pool in &spare {
                // SAFETY: pools here are reset, and nobody else has them.
                unsafe { self.destroy_pool(pool) };
            }
        }
        Ok(())
    }

    /// Lets go of all that no list has and the device does not need. Returns the bytes of upload pages.
    pub(crate) fn trim(&self) -> u64 {
        for family in &self.families {
            let spare = family.tools.lock().take_all();
            self.let_go(spare);
            let spare = family.pools.lock().take_all();
            for pool in &spare {
                // SAFETY: pools here are reset, and nobody else has them.
                unsafe { self.destroy_pool(pool) };
            }
        }
        self.uploads.trim()
    }

    /// Drops tools, but for those whose descriptors the device still uses.
    fn let_go(&self, spare: Vec<Tools>) {
        for tools in spare {
            if tools.is_done(&self.clock) { self.settle(tools) } else { self.give_tools(tools) }
        }
    }

    /// [`wait`](Self::wait), a few times: a driver that is short of memory may have some again in a moment.
    fn wait_at_last(&self, queue: usize, serial: u64) -> Result<(), DriverError> {
        for pause in [1, 10, 100] {
            match self.wait(queue, serial) {
                Err(_) if !self.is_lost() => thread::sleep(Duration::from_millis(pause)),
                waited => return waited,
            }
        }
        self.wait(queue, serial)
    }

    /// Waits for everything that was submitted, and lets go of what it used. False if the device may still use it: then
    /// the core must not be dropped any more.
    ///
    /// # Panics
    /// As [`collect`](Self::collect), when all of this is done.
    #[must_use]
    pub(crate) fn close(&self) -> bool {
        let serials: Vec<u64> = self.books.lock().submitted().collect();
        for (queue, serial) in serials.into_iter().enumerate() {
            if let Err(error) = self.wait_at_last(queue, serial) {
                if !self.is_lost() {
                    tracing::warn!(name: "frames_not_idle", target: "sublet::leak", %error, "frames were dropped and could not be waited for: what they use is leaked");
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
        go_on(panic);
        true
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        // Whoever had a share closed the frames before, or never submitted anything.
        let pools: VecDeque<Pool> =
            self.families.iter().flat_map(|family| family.pools.lock().take_all()).collect();
        for pool in &pools {
            // SAFETY: pools here are reset, and nobody else has them.
            unsafe { self.destroy_pool(pool) };
        }
        let device = self.api.device();
        // SAFETY: all submissions are done or the device is lost: `close`.
        unsafe { self.downsampler.get_mut().destroy(device) };
        let (fences, semaphores) = self.books.get_mut().take_objects();
        for fence in fences {
            // SAFETY: as above.
            unsafe { device.destroy_fence(fence, None) };
        }
        let timelines = self.queues.iter().map(|queue| queue.timeline);
        for semaphore in semaphores.into_iter().chain(timelines) {
            // SAFETY: as above; destroying none is nothing.
            unsafe { device.destroy_semaphore(semaphore, None) };
        }
    }
}
