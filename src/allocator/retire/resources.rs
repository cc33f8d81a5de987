//! [`RetiredResources`]: a queue of buffers, images, memory, pools and scopes.
#![expect(unsafe_code, reason = "calls Vulkan, or has its caller promise what Vulkan asks")]

use std::collections::VecDeque;
use std::fmt;

use ash::vk;
use parking_lot::{Mutex, const_mutex};

use super::CollectError;
use crate::allocation::Allocation;
use crate::allocator::Allocator;
use crate::device::BufferOrImage;
use crate::pool::{DestroyPoolError, FreeScopeError, Pool, Scope};
use crate::retire::{ClockView, OtherClock, Retire, Ticket};

/// A resource that waits for its ticket.
struct RetiredEntry {
    ticket: Ticket,
    held: RetiredObject,
}

/// Pools and scopes are boxed, because they are large and rare.
enum RetiredObject {
    Memory {
        /// `None` for memory alone.
        resource: Option<BufferOrImage>,
        allocation: Allocation,
    },
    Pool(Box<Pool>),
    Scope(Box<Scope>),
}

impl RetiredObject {
    /// The number of the allocator that created it.
    fn allocator(&self) -> u32 {
        match self {
            Self::Memory { allocation, .. } => allocation.allocator,
            Self::Pool(pool) => pool.allocator,
            Self::Scope(scope) => scope.allocator,
        }
    }

    /// Bytes of an allocation. The contents of pools and scopes are counted where the allocator reports leaks.
    fn size(&self) -> u64 {
        match self {
            Self::Memory { allocation, .. } => allocation.size(),
            Self::Pool(_) | Self::Scope(_) => 0,
        }
    }
}

struct WaitingResources {
    queue: Retire<RetiredEntry>,
    /// An empty list, kept for its capacity.
    spare: VecDeque<RetiredEntry>,
}

/// Buffers, images, memory, pools and scopes that are destroyed and freed when the GPU is done with them.
///
/// Any number of threads may retire and collect at once. No lock is held over driver calls. A queue works with any
/// clock and any allocator, but one of each for a device is simplest. All tickets of a queue must belong to one clock.
///
/// Dropping the queue frees nothing: pending resources stay allocated, and a `tracing` event warns of it. At the end of
/// the program call [`Clock::shutdown`](crate::retire::Clock::shutdown) and [`collect`](Self::collect), or
/// [`drain`](Self::drain).
///
/// ```
/// # use sublet::{*, retire::Clock}; use ash::vk;
/// # let (gpu, allocator) = sublet::doc_example();
/// # let info = vk::BufferCreateInfo::default().size(256).usage(vk::BufferUsageFlags::TRANSFER_DST);
/// let clock = Clock::new();
/// let timeline = clock.add_timeline()?;
/// let retired = RetiredResources::new();
/// # let (buffer, allocation) = unsafe { allocator.create_buffer(&info, &AllocationCreateInfo::new(MemoryUsage::Auto)) }?;
/// let frame = clock.begin_frame(timeline, 0);
/// // ... a frame that uses the buffer for the last time ...
/// // SAFETY: no other frame uses the buffer.
/// unsafe { retired.retire_buffer(frame, buffer, allocation) };
/// clock.end_frame(frame)?;
///
/// assert_eq!(retired.collect(&allocator, &clock)?, 0);
/// // ... vkWaitForFences for the slot's fence ...
/// let _next = clock.begin_frame(timeline, 0);
/// assert_eq!(retired.collect(&allocator, &clock)?, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct RetiredResources {
    waiting: Mutex<WaitingResources>,
}

/// Items taken out of the queue by one call. Dropping the batch returns the rest to the queue, also during a panic.
struct CollectedBatch<'a> {
    from: &'a RetiredResources,
    items: VecDeque<RetiredEntry>,
}

impl Drop for CollectedBatch<'_> {
    fn drop(&mut self) {
        let mut waiting = self.from.waiting.lock();
        for item in self.items.drain(..) {
            waiting.queue.push(item.ticket, item);
        }
        if self.items.capacity() > waiting.spare.capacity() {
            waiting.spare = std::mem::take(&mut self.items);
        }
    }
}

impl RetiredResources {
    /// An empty queue. Allocates no host memory.
    #[must_use]
    pub const fn new() -> Self {
        Self { waiting: const_mutex(WaitingResources { queue: Retire::new(), spare: VecDeque::new() }) }
    }

    /// Destroys a buffer and frees its memory once `ticket` is done.
    ///
    /// # Safety
    /// 1. The buffer is null, or live and of the device that the allocation is from.
    /// 2. Once `ticket` is done according to the clock passed to [`collect`](Self::collect), the device uses neither
    ///    the buffer nor anything else that is bound to the memory. So this ticket belongs to the last submission that
    ///    uses them, and the clock is informed correctly (VUID-vkDestroyBuffer-buffer-00922,
    ///    VUID-vkFreeMemory-memory-00677).
    /// 3. The program no longer uses them either: later recordings do not reference them, and the mapping is not used.
    pub unsafe fn retire_buffer(&self, ticket: Ticket, buffer: vk::Buffer, allocation: Allocation) {
        self.push(
            ticket,
            RetiredObject::Memory { resource: Some(BufferOrImage::Buffer(buffer)), allocation },
        );
    }

    /// Destroys an image and frees its memory once `ticket` is done.
    ///
    /// # Safety
    /// See [`retire_buffer`](Self::retire_buffer) (VUID-vkDestroyImage-image-01000, VUID-vkFreeMemory-memory-00677).
    pub unsafe fn retire_image(&self, ticket: Ticket, image: vk::Image, allocation: Allocation) {
        self.push(ticket, RetiredObject::Memory { resource: Some(BufferOrImage::Image(image)), allocation });
    }

    /// Frees memory without a resource once `ticket` is done.
    ///
    /// # Safety
    /// See [`retire_buffer`](Self::retire_buffer). Resources that are bound to the memory are not used again, except to
    /// destroy them (VUID-vkFreeMemory-memory-00677).
    pub unsafe fn retire_memory(&self, ticket: Ticket, allocation: Allocation) {
        self.push(ticket, RetiredObject::Memory { resource: None, allocation });
    }

    /// [Destroys](Allocator::destroy_pool) a pool once `ticket` is done. Allocations that are still live in it are
    /// freed with it, and an event reports each as a leak. Allocates a little host memory.
    ///
    /// Retire the contents of the pool first, with this ticket or an earlier one of the same timeline. Resources of one
    /// ticket are freed in the order in which they were retired.
    ///
    /// # Safety
    /// 1. Once `ticket` is done according to the clock passed to [`collect`](Self::collect), the requirements of
    ///    [`destroy_pool`](Allocator::destroy_pool) hold. The device no longer uses any memory of the pool
    ///    (VUID-vkFreeMemory-memory-00677), and neither its resources nor its mappings are used again.
    /// 2. Buffers and images of the pool that also wait in a queue are collected before: they wait for this ticket, or
    ///    for one that is done earlier.
    ///
    /// ```
    /// # use sublet::{*, retire::Clock}; use ash::vk;
    /// # let (gpu, allocator) = sublet::doc_example();
    /// # let info = vk::BufferCreateInfo::default().size(256).usage(vk::BufferUsageFlags::TRANSFER_DST);
    /// # let (clock, retired) = (Clock::new(), RetiredResources::new());
    /// # let timeline = clock.add_timeline()?;
    /// let pool = allocator.create_pool(&PoolCreateInfo::new(0))?;
    /// // SAFETY: the create-info is valid.
    /// let (buffer, memory) = unsafe { allocator.create_buffer(&info, &AllocationCreateInfo::in_pool(&pool)) }?;
    /// let frame = clock.begin_frame(timeline, 0);
    /// // ... the last frame of the level ...
    /// // SAFETY: no other frame uses the buffer.
    /// unsafe { retired.retire_buffer(frame, buffer, memory) };
    /// // SAFETY: nothing else is in the pool.
    /// unsafe { retired.retire_pool(frame, pool) };
    /// clock.end_frame(frame)?;
    ///
    /// // ... vkWaitForFences for the slot's fence ...
    /// let _next = clock.begin_frame(timeline, 0);
    /// assert_eq!(retired.collect(&allocator, &clock)?, 2);
    /// assert_eq!(allocator.statistics().block_count, 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub unsafe fn retire_pool(&self, ticket: Ticket, pool: Pool) {
        self.push(ticket, RetiredObject::Pool(Box::new(pool)));
    }

    /// [Frees](Allocator::free_scope) a scope and everything in it once `ticket` is done. Allocates a little host
    /// memory.
    ///
    /// # Safety
    /// See [`retire_pool`](Self::retire_pool), with the requirements of [`free_scope`](Allocator::free_scope).
    pub unsafe fn retire_scope(&self, ticket: Ticket, scope: Scope) {
        self.push(ticket, RetiredObject::Scope(Box::new(scope)));
    }

    fn push(&self, ticket: Ticket, held: RetiredObject) {
        self.waiting.lock().queue.push(ticket, RetiredEntry { ticket, held });
    }

    /// Destroys and frees the resources whose tickets are done according to `clock`, in the order of tickets. Returns
    /// their number.
    ///
    /// # Errors
    /// [`CollectError`] if some resources belong to another allocator, were in a pool that is gone, or wait for a
    /// ticket of another clock. Everything else is freed nonetheless, and nothing is lost.
    ///
    /// # Complexity
    /// O(pending tickets + completed resources). Allocates host memory only until its lists have grown large enough.
    #[doc(alias = "runGarbageCollection")]
    pub fn collect(&self, allocator: &Allocator, clock: &ClockView) -> Result<usize, CollectError> {
        let mut other_clock = None;
        let batch = self.take(|queue, items| {
            other_clock = queue.collect(clock, |item| items.push_back(item)).err();
        });
        // SAFETY: the tickets are done, and the callers that retired the resources promised that they are then unused.
        unsafe { batch.free(allocator, other_clock) }
    }

    /// Destroys and frees everything, done or not. For the end of the program.
    ///
    /// # Errors
    /// See [`collect`](Self::collect).
    ///
    /// # Safety
    /// The device is idle (`vkDeviceWaitIdle`) or lost. Recordings that use pending resources are not submitted any
    /// more.
    ///
    /// ```
    /// # use sublet::{*, retire::Clock}; use ash::vk;
    /// # let (gpu, allocator) = sublet::doc_example();
    /// # let (clock, retired) = (Clock::new(), RetiredResources::new());
    /// # let ticket = clock.open(clock.add_timeline()?);
    /// # let requirements = vk::MemoryRequirements { size: 4096, alignment: 256, memory_type_bits: !0 };
    /// # let allocation = allocator.allocate_memory(&requirements, &AllocationCreateInfo::default())?;
    /// # unsafe { retired.retire_memory(ticket, allocation) };
    /// unsafe { gpu.device().device_wait_idle() }?;
    /// // SAFETY: the device is idle and nothing is submitted any more.
    /// assert_eq!(unsafe { retired.drain(&allocator) }?, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub unsafe fn drain(&self, allocator: &Allocator) -> Result<usize, CollectError> {
        let batch = self.take(|queue, items| items.extend(queue.drain()));
        // SAFETY: the caller's promise: the device is idle (`vkDeviceWaitIdle`) or lost, and recordings that use what
        // waits are not submitted any more.
        unsafe { batch.free(allocator, None) }
    }

    /// Takes the items that `choose` selects out of the queue.
    fn take(
        &self,
        choose: impl FnOnce(&mut Retire<RetiredEntry>, &mut VecDeque<RetiredEntry>),
    ) -> CollectedBatch<'_> {
        let mut waiting = self.waiting.lock();
        let WaitingResources { queue, spare } = &mut *waiting;
        let mut items = std::mem::take(spare);
        choose(queue, &mut items);
        CollectedBatch { from: self, items }
    }

    /// The number of pending resources.
    #[must_use]
    pub fn len(&self) -> usize {
        self.waiting.lock().queue.len()
    }

    /// Returns true if no resource is pending.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The pending ticket that was opened first.
    #[must_use]
    pub fn oldest(&self) -> Option<Ticket> {
        self.waiting.lock().queue.oldest()
    }
}

impl CollectedBatch<'_> {
    /// Destroys and frees everything in the batch that belongs to the allocator.
    ///
    /// # Safety
    /// The device no longer uses any of it, and the promises made when it was retired hold.
    unsafe fn free(
        mut self,
        allocator: &Allocator,
        other_clock: Option<OtherClock>,
    ) -> Result<usize, CollectError> {
        let mut report = CollectError { collected: 0, kept: 0, refused: Vec::new(), other_clock };
        for _ in 0..self.items.len() {
            let Some(item) = self.items.pop_front() else { break };
            let RetiredEntry { ticket, held } = item;
            if held.allocator() != allocator.inner.id {
                // Its buffer or image belongs to the other allocator's device.
                report.kept += 1;
                self.items.push_back(RetiredEntry { ticket, held });
                continue;
            }
            match held {
                RetiredObject::Memory { resource, allocation } => {
                    let device = &allocator.inner.context.device;
                    match resource {
                        // SAFETY: it belongs to this device, as its allocation does, and the device is done with it:
                        // the caller's promise.
                        Some(BufferOrImage::Buffer(buffer)) => unsafe { device.destroy_buffer(buffer) },
                        // SAFETY: as above.
                        Some(BufferOrImage::Image(image)) => unsafe { device.destroy_image(image) },
                        None => {}
                    }
                    // SAFETY: the device is done with the memory and its resources: the caller's promise.
                    match unsafe { allocator.free_memory(allocation) } {
                        Ok(()) => report.collected += 1,
                        Err(error) => report.refused.push(error),
                    }
                }
                // SAFETY: the device is done with all that is in the pool, and nothing of it is used again: the
                // caller's promise.
                RetiredObject::Pool(pool) => match unsafe { allocator.destroy_pool(*pool) } {
                    // An event reported each leak.
                    Ok(_leaks) => report.collected += 1,
                    Err(DestroyPoolError { pool }) => {
                        report.kept += 1;
                        self.items
                            .push_back(RetiredEntry { ticket, held: RetiredObject::Pool(Box::new(pool)) });
                    }
                },
                // SAFETY: as above.
                RetiredObject::Scope(scope) => match unsafe { allocator.free_scope(*scope) } {
                    Ok(_freed) => report.collected += 1,
                    Err(FreeScopeError { scope }) => {
                        report.kept += 1;
                        self.items
                            .push_back(RetiredEntry { ticket, held: RetiredObject::Scope(Box::new(scope)) });
                    }
                },
            }
        }
        let is_whole = report.kept == 0 && report.refused.is_empty() && report.other_clock.is_none();
        if is_whole { Ok(report.collected) } else { Err(report) }
    }
}

impl Default for RetiredResources {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for RetiredResources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let waiting = self.waiting.lock();
        f.debug_struct("RetiredResources")
            .field("len", &waiting.queue.len())
            .field("oldest", &waiting.queue.oldest())
            .finish()
    }
}

impl Drop for RetiredResources {
    fn drop(&mut self) {
        let queue = &mut self.waiting.get_mut().queue;
        if !queue.is_empty() {
            let resources = queue.len();
            let bytes: u64 = queue.drain().map(|item| item.held.size()).sum();
            tracing::warn!(name: "retired_resources_lost", target: "sublet::leak", resources, bytes, "resources that waited for the GPU are lost: they stay allocated");
        }
    }
}
