//! The allocator's own resources, kept until the GPU is done with them.

mod error;
mod timelines;

use std::collections::VecDeque;
use std::fmt;

use ash::vk;
use parking_lot::{Mutex, const_mutex};

pub use self::error::{CollectError, TimelineError};
use super::Allocator;
use crate::allocation::Allocation;
use crate::device::BufferOrImage;
use crate::pool::{DestroyPoolError, FreeScopeError, Pool, Scope};
use crate::retire::{ClockView, OtherClock, Retire, Ticket};

/// A resource that waits for its ticket.
struct Retired {
    ticket: Ticket,
    held: Held,
}

/// The last two are boxed: they are large and rare.
enum Held {
    Memory {
        /// `None` for memory alone.
        resource: Option<BufferOrImage>,
        allocation: Allocation,
    },
    Pool(Box<Pool>),
    Scope(Box<Scope>),
}

impl Held {
    /// The number of the allocator that made it.
    fn allocator(&self) -> u32 {
        match self {
            Self::Memory { allocation, .. } => allocation.allocator,
            Self::Pool(pool) => pool.allocator,
            Self::Scope(scope) => scope.allocator,
        }
    }

    /// Bytes of an allocation. What is in a pool or scope is counted where the allocator reports its leaks.
    fn size(&self) -> u64 {
        match self {
            Self::Memory { allocation, .. } => allocation.size(),
            Self::Pool(_) | Self::Scope(_) => 0,
        }
    }
}

struct Waiting {
    queue: Retire<Retired>,
    /// An empty list with room, left by the last call.
    spare: VecDeque<Retired>,
}

/// Buffers, images, memory, pools and scopes that wait until the GPU is done with them, to be destroyed and freed then.
///
/// Any number of threads retire and collect at once; no lock is held while the driver is called. One queue may be used
/// with any clock and any allocator, but it is simplest to have one of each for a device.
///
/// Dropping the queue frees nothing: what still waits stays allocated, and a `tracing` event warns of it. At the end of
/// the program call [`Clock::shutdown`](crate::retire::Clock::shutdown) and [`collect`](Self::collect), or [`drain`](Self::drain). The tickets of a
/// queue are of one clock.
///
/// ```
/// # use sublet::{*, retire::Clock}; use ash::vk;
/// # let (gpu, allocator) = sublet::doc_example();
/// # let info = vk::BufferCreateInfo::default().size(256).usage(vk::BufferUsageFlags::TRANSFER_DST);
/// let clock = Clock::new();
/// let lane = clock.add_lane()?;
/// let retired = RetiredResources::new();
/// # let (buffer, allocation) = unsafe { allocator.create_buffer(&info, &AllocationCreateInfo::new(MemoryUsage::Auto)) }?;
/// let frame = clock.begin_frame(lane, 0);
/// // ... a frame that uses the buffer for the last time ...
/// // SAFETY: no other frame uses the buffer.
/// unsafe { retired.retire_buffer(frame, buffer, allocation) };
/// clock.end_frame(frame)?;
///
/// assert_eq!(retired.collect(&allocator, &clock)?, 0);
/// // ... vkWaitForFences for the slot's fence ...
/// let _next = clock.begin_frame(lane, 0);
/// assert_eq!(retired.collect(&allocator, &clock)?, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct RetiredResources {
    waiting: Mutex<Waiting>,
}

/// What a call took out of the queue. What is left of it when it is dropped goes back, also when a panic is the reason.
struct Batch<'a> {
    from: &'a RetiredResources,
    items: VecDeque<Retired>,
}

impl Drop for Batch<'_> {
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
    /// Nothing waits. Takes no memory.
    #[must_use]
    pub const fn new() -> Self {
        Self { waiting: const_mutex(Waiting { queue: Retire::new(), spare: VecDeque::new() }) }
    }

    /// A buffer, to be destroyed and its memory freed once `ticket` is done.
    ///
    /// # Safety
    /// 1. The buffer is a live one of the device that the allocation is from, or null.
    /// 2. Once `ticket` is done, as a clock says that [`collect`](Self::collect) is given, the device uses neither the
    ///    buffer nor anything else that is bound to the memory: of all the recordings that do, the device executes this
    ///    one last, and the clock is told the truth (VUID-vkDestroyBuffer-buffer-00922,
    ///    VUID-vkFreeMemory-memory-00677).
    /// 3. Nor does the program: recordings that are begun later leave it alone, and its mapping too.
    pub unsafe fn retire_buffer(&self, ticket: Ticket, buffer: vk::Buffer, allocation: Allocation) {
        self.push(ticket, Held::Memory { resource: Some(BufferOrImage::Buffer(buffer)), allocation });
    }

    /// An image, to be destroyed and its memory freed once `ticket` is done.
    ///
    /// # Safety
    /// As for [`retire_buffer`](Self::retire_buffer) (VUID-vkDestroyImage-image-01000, VUID-vkFreeMemory-memory-00677).
    pub unsafe fn retire_image(&self, ticket: Ticket, image: vk::Image, allocation: Allocation) {
        self.push(ticket, Held::Memory { resource: Some(BufferOrImage::Image(image)), allocation });
    }

    /// Memory without a resource, to be freed once `ticket` is done.
    ///
    /// # Safety
    /// As for [`retire_buffer`](Self::retire_buffer); resources that are bound to the memory are not used again but to
    /// be destroyed (VUID-vkFreeMemory-memory-00677).
    pub unsafe fn retire_memory(&self, ticket: Ticket, allocation: Allocation) {
        self.push(ticket, Held::Memory { resource: None, allocation });
    }

    /// A pool, to be [destroyed](Allocator::destroy_pool) once `ticket` is done. What is still allocated in it then is
    /// freed with it, and an event names each allocation as a leak. Takes a little host memory.
    ///
    /// Retire what is in the pool first, with this ticket or an earlier one of the lane: of one ticket, what was retired
    /// first is freed first.
    ///
    /// # Safety
    /// 1. Once `ticket` is done, as a clock says that [`collect`](Self::collect) is given, what
    ///    [`destroy_pool`](Allocator::destroy_pool) asks for is true: the device no longer uses any memory of the pool
    ///    (VUID-vkFreeMemory-memory-00677), and neither resources that are bound to it nor mappings are used again.
    /// 2. Buffers and images of the pool that wait in a queue too are collected before: they wait for this ticket, or
    ///    for one that is done earlier.
    ///
    /// ```
    /// # use sublet::{*, retire::Clock}; use ash::vk;
    /// # let (gpu, allocator) = sublet::doc_example();
    /// # let info = vk::BufferCreateInfo::default().size(256).usage(vk::BufferUsageFlags::TRANSFER_DST);
    /// # let (clock, retired) = (Clock::new(), RetiredResources::new());
    /// # let lane = clock.add_lane()?;
    /// let pool = allocator.create_pool(&PoolCreateInfo::new(0))?;
    /// // SAFETY: the create-info is valid.
    /// let (buffer, memory) = unsafe { allocator.create_buffer(&info, &AllocationCreateInfo::in_pool(&pool)) }?;
    /// let frame = clock.begin_frame(lane, 0);
    /// // ... the last frame of the level ...
    /// // SAFETY: no other frame uses the buffer.
    /// unsafe { retired.retire_buffer(frame, buffer, memory) };
    /// // SAFETY: nothing else is in the pool.
    /// unsafe { retired.retire_pool(frame, pool) };
    /// clock.end_frame(frame)?;
    ///
    /// // ... vkWaitForFences for the slot's fence ...
    /// let _next = clock.begin_frame(lane, 0);
    /// assert_eq!(retired.collect(&allocator, &clock)?, 2);
    /// assert_eq!(allocator.statistics().block_count, 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub unsafe fn retire_pool(&self, ticket: Ticket, pool: Pool) {
        self.push(ticket, Held::Pool(Box::new(pool)));
    }

    /// A scope, to be [freed](Allocator::free_scope) with everything in it once `ticket` is done. Takes a little host
    /// memory.
    ///
    /// # Safety
    /// As for [`retire_pool`](Self::retire_pool), of [`free_scope`](Allocator::free_scope).
    pub unsafe fn retire_scope(&self, ticket: Ticket, scope: Scope) {
        self.push(ticket, Held::Scope(Box::new(scope)));
    }

    fn push(&self, ticket: Ticket, held: Held) {
        self.waiting.lock().queue.push(ticket, Retired { ticket, held });
    }

    /// Destroys and frees what is done according to `clock`, in the order of tickets, and returns how much that was.
    ///
    /// # Errors
    /// [`CollectError`] if some of it is another allocator's, or was in a pool that is gone, or waits for a ticket of
    /// another clock. All that can be freed is freed nonetheless, and nothing is lost.
    ///
    /// # Complexity
    /// O(tickets that wait + resources that are done). Takes no host memory once there was room for as many.
    #[doc(alias = "runGarbageCollection")]
    pub fn collect(&self, allocator: &Allocator, clock: &ClockView) -> Result<usize, CollectError> {
        let mut other_clock = None;
        let batch = self.take(|queue, items| {
            other_clock = queue.collect(clock, |item| items.push_back(item)).err();
        });
        // SAFETY: the tickets are done, and those who retired promised what follows from that.
        unsafe { batch.free(allocator, other_clock) }
    }

    /// Destroys and frees everything, done or not: for the end of the program.
    ///
    /// # Errors
    /// As [`collect`](Self::collect).
    ///
    /// # Safety
    /// The device is idle (`vkDeviceWaitIdle`) or lost, and recordings that use what waits are not submitted any more.
    ///
    /// ```
    /// # use sublet::{*, retire::Clock}; use ash::vk;
    /// # let (gpu, allocator) = sublet::doc_example();
    /// # let (clock, retired) = (Clock::new(), RetiredResources::new());
    /// # let ticket = clock.open(clock.add_lane()?);
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

    /// Takes out of the queue what `choose` puts into the list.
    fn take(&self, choose: impl FnOnce(&mut Retire<Retired>, &mut VecDeque<Retired>)) -> Batch<'_> {
        let mut waiting = self.waiting.lock();
        let Waiting { queue, spare } = &mut *waiting;
        let mut items = std::mem::take(spare);
        choose(queue, &mut items);
        Batch { from: self, items }
    }

    /// Resources that wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.waiting.lock().queue.len()
    }

    /// Whether nothing waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The ticket that was opened first of all that resources wait for.
    #[must_use]
    pub fn oldest(&self) -> Option<Ticket> {
        self.waiting.lock().queue.oldest()
    }
}

impl Batch<'_> {
    /// Destroys and frees everything in it that is the allocator's.
    ///
    /// # Safety
    /// The device uses none of it any more, and what was promised when it was retired is true.
    unsafe fn free(
        mut self,
        allocator: &Allocator,
        other_clock: Option<OtherClock>,
    ) -> Result<usize, CollectError> {
        let mut report = CollectError { collected: 0, kept: 0, refused: Vec::new(), other_clock };
        for _ in 0..self.items.len() {
            let Some(item) = self.items.pop_front() else { break };
            let Retired { ticket, held } = item;
            if held.allocator() != allocator.inner.id {
                // Its buffer or image is of the other one's device.
                report.kept += 1;
                self.items.push_back(Retired { ticket, held });
                continue;
            }
            match held {
                Held::Memory { resource, allocation } => {
                    let device = &allocator.inner.context.device;
                    match resource {
                        // SAFETY: it is of this device, as its allocation is, and the device is done with it: the
                        // caller's promise.
                        Some(BufferOrImage::Buffer(buffer)) => unsafe { device.destroy_buffer(buffer) },
                        // SAFETY: as above.
                        Some(BufferOrImage::Image(image)) => unsafe { device.destroy_image(image) },
                        None => {}
                    }
                    // SAFETY: the device is done with the memory, and what was bound to it: the caller's promise.
                    match unsafe { allocator.free_memory(allocation) } {
                        Ok(()) => report.collected += 1,
                        Err(error) => report.refused.push(error),
                    }
                }
                // SAFETY: the device is done with all that is in the pool, and nothing of it is used again: the
                // caller's promise.
                Held::Pool(pool) => match unsafe { allocator.destroy_pool(*pool) } {
                    // Each leak was an event.
                    Ok(_leaks) => report.collected += 1,
                    Err(DestroyPoolError { pool }) => {
                        report.kept += 1;
                        self.items.push_back(Retired { ticket, held: Held::Pool(Box::new(pool)) });
                    }
                },
                // SAFETY: as above.
                Held::Scope(scope) => match unsafe { allocator.free_scope(*scope) } {
                    Ok(_freed) => report.collected += 1,
                    Err(FreeScopeError { scope }) => {
                        report.kept += 1;
                        self.items.push_back(Retired { ticket, held: Held::Scope(Box::new(scope)) });
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
