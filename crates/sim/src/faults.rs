//! Faults to order: failures, delays and budgets. Also the counts of calls.
#![forbid(unsafe_code)]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use ash::vk;
use parking_lot::{Condvar, Mutex};

use super::entry::{self, CALLS, Call};
use super::{queue, registry};

/// The ordered faults, and the count of calls of each entry point.
#[derive(Debug)]
pub(super) struct FaultState {
    counts: [AtomicU64; CALLS],
    /// Whether `orders` holds anything that [`FaultState::enter`] has to look at: most runs order nothing.
    armed: AtomicBool,
    orders: Mutex<Orders>,
    /// Notified when calls that were held may go on.
    released: Condvar,
}

#[derive(Debug, Default)]
struct Orders {
    /// Failures that are still to come: the count of calls that succeed first, and the result.
    nth: BTreeMap<Call, Vec<(u64, vk::Result)>>,
    always: BTreeMap<Call, vk::Result>,
    delays: BTreeMap<Call, Duration>,
    held: BTreeSet<Call>,
    above: Option<u64>,
    budgets: BTreeMap<u32, Budget>,
}

/// The budget and usage that a heap is to report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Budget {
    pub(super) budget: u64,
    pub(super) usage: u64,
}

impl Default for FaultState {
    fn default() -> Self {
        Self {
            counts: [const { AtomicU64::new(0) }; CALLS],
            armed: AtomicBool::new(false),
            orders: Mutex::default(),
            released: Condvar::new(),
        }
    }
}

impl FaultState {
    /// Counts a call, waits while it is held, waits out its delay, and returns the failure that was ordered for it.
    pub(super) fn enter(&self, call: Call) -> Option<vk::Result> {
        self.counts[call.index()].fetch_add(1, Ordering::Relaxed);
        if !self.armed.load(Ordering::Acquire) {
            return None;
        }
        let (delay, fault) = {
            let mut orders = self.orders.lock();
            while orders.held.contains(&call) {
                self.released.wait(&mut orders);
            }
            (orders.delays.get(&call).copied(), orders.fault(call))
        };
        // Outside of every lock: a slow call must not slow the calls of other threads.
        if let Some(delay) = delay {
            std::thread::sleep(delay);
        }
        fault
    }

    /// Whether an allocation of this size is to fail.
    pub(super) fn refuses(&self, size: u64) -> bool {
        self.armed.load(Ordering::Acquire) && self.orders.lock().above.is_some_and(|above| size > above)
    }

    /// The budget that was ordered for a heap.
    pub(super) fn budget(&self, heap: u32) -> Option<Budget> {
        self.orders.lock().budgets.get(&heap).copied()
    }

    pub(super) fn count(&self, call: Call) -> u64 {
        self.counts[call.index()].load(Ordering::Relaxed)
    }

    pub(super) fn counts(&self) -> Vec<(&'static str, u64)> {
        let mut counts: Vec<_> = entry::all()
            .map(|(call, entry)| (entry.offers[0].name, self.count(call)))
            .filter(|&(_, count)| count > 0)
            .collect();
        counts.sort_unstable();
        counts
    }

    pub(super) fn reset_counts(&self) {
        for count in &self.counts {
            count.store(0, Ordering::Relaxed);
        }
    }

    fn order(&self, change: impl FnOnce(&mut Orders)) {
        let mut orders = self.orders.lock();
        change(&mut orders);
        let idle = orders.nth.is_empty()
            && orders.always.is_empty()
            && orders.delays.is_empty()
            && orders.held.is_empty()
            && orders.above.is_none();
        self.armed.store(!idle, Ordering::Release);
        self.released.notify_all();
    }
}

impl Orders {
    fn fault(&mut self, call: Call) -> Option<vk::Result> {
        let mut fault = self.always.get(&call).copied();
        if let Some(waiting) = self.nth.get_mut(&call) {
            // Every order counts this call. The first that is due decides the result, and all that are due are used up.
            waiting.retain_mut(|(left, result)| {
                if *left == 0 {
                    fault.get_or_insert(*result);
                    return false;
                }
                *left -= 1;
                true
            });
        }
        fault
    }
}

/// Orders faults of a simulated GPU: the result of [`Gpu::faults`](super::Gpu::faults).
///
/// Functions have their C names. A KHR or EXT name stands for the core function: `vkBindBufferMemory2KHR` and
/// `vkBindBufferMemory2` are one.
///
/// ```
/// use ash::vk;
/// use sublet_sim::{Gpu, profiles::Profile};
/// let gpu = Gpu::new(Profile::by_name("lavapipe").unwrap());
/// gpu.faults().fail_nth("vkAllocateMemory", 1, vk::Result::ERROR_OUT_OF_HOST_MEMORY);
/// let info = vk::MemoryAllocateInfo::default().allocation_size(256);
/// let memory = unsafe { gpu.device().allocate_memory(&info, None) }.unwrap();
/// let refused = unsafe { gpu.device().allocate_memory(&info, None) };
/// assert_eq!(refused, Err(vk::Result::ERROR_OUT_OF_HOST_MEMORY));
/// unsafe { gpu.device().free_memory(memory, None) };
/// gpu.assert_silent();
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Faults<'a> {
    pub(super) state: &'a FaultState,
    pub(super) device: vk::Device,
}

impl Faults<'_> {
    /// Lets the next `n` calls of a function through, and fails the one after them with `result`.
    ///
    /// # Panics
    ///
    /// If the driver has no function `call`, or it returns no `VkResult`.
    pub fn fail_nth(&self, call: &str, n: u64, result: vk::Result) -> &Self {
        let call = fallible(call);
        self.state.order(|orders| orders.nth.entry(call).or_default().push((n, result)));
        self
    }

    /// Fails every call of a function with `result`.
    ///
    /// # Panics
    ///
    /// If the driver has no function `call`, or it returns no `VkResult`.
    pub fn fail_always(&self, call: &str, result: vk::Result) -> &Self {
        let call = fallible(call);
        self.state.order(|orders| {
            orders.always.insert(call, result);
        });
        self
    }

    /// Loses the device, for good. From now on `vkQueueSubmit`, `vkQueueSubmit2` and `vkQueueBindSparse`, the waits for
    /// fences, semaphores and idle queues, `vkGetFenceStatus` and `vkGetSemaphoreCounterValue` return
    /// `VK_ERROR_DEVICE_LOST`. Threads that wait are woken. Pending submissions never run, and what they use may be
    /// destroyed (section "Lost Device"). Objects can still be created and destroyed.
    ///
    /// ```
    /// use ash::vk;
    /// use sublet_sim::{Gpu, profiles::Profile};
    /// let gpu = Gpu::new(Profile::by_name("lavapipe").unwrap());
    /// let fence = unsafe { gpu.device().create_fence(&vk::FenceCreateInfo::default(), None) }.unwrap();
    /// gpu.hold_submissions(true);
    /// unsafe { gpu.device().queue_submit(gpu.queue(), &[], fence) }.unwrap();
    /// gpu.faults().lose_device();
    /// assert_eq!(unsafe { gpu.device().device_wait_idle() }, Err(vk::Result::ERROR_DEVICE_LOST));
    /// assert_eq!(unsafe { gpu.device().get_fence_status(fence) }, Err(vk::Result::ERROR_DEVICE_LOST));
    /// // The submission that was to signal it is gone.
    /// unsafe { gpu.device().destroy_fence(fence, None) };
    /// gpu.assert_silent();
    /// ```
    pub fn lose_device(&self) -> &Self {
        if let Some(device) = registry::device(self.device) {
            device.lose();
            queue::abandon(&device);
        }
        self
    }

    /// Fails every allocation of more than `size` bytes with `VK_ERROR_OUT_OF_DEVICE_MEMORY`.
    pub fn fail_above(&self, size: u64) -> &Self {
        self.state.order(|orders| orders.above = Some(size));
        self
    }

    /// Makes every call of a function take `delay` longer, without holding up the calls of other threads.
    ///
    /// # Panics
    ///
    /// If the driver has no function `call`.
    pub fn delay(&self, call: &str, delay: Duration) -> &Self {
        let call = known(call);
        self.state.order(|orders| {
            orders.delays.insert(call, delay);
        });
        self
    }

    /// Holds every call of a function until another thread calls [`Self::release`] or [`Self::clear`]. A call is
    /// counted when it begins: so a test knows that one is under way, however fast the machine is.
    ///
    /// # Panics
    ///
    /// If the driver has no function `call`.
    ///
    /// ```
    /// use ash::vk;
    /// use sublet_sim::{Gpu, profiles::Profile};
    /// let gpu = Gpu::new(Profile::by_name("lavapipe").unwrap());
    /// gpu.faults().hold("vkFreeMemory");
    /// std::thread::scope(|scope| {
    ///     let slow = scope.spawn(|| unsafe { gpu.device().free_memory(vk::DeviceMemory::null(), None) });
    ///     while gpu.calls("vkFreeMemory") == 0 {
    ///         std::thread::yield_now();
    ///     }
    ///     assert!(!slow.is_finished());
    ///     gpu.faults().release("vkFreeMemory");
    /// });
    /// ```
    pub fn hold(&self, call: &str) -> &Self {
        let call = known(call);
        self.state.order(|orders| {
            orders.held.insert(call);
        });
        self
    }

    /// Lets the held calls of a function go on, and holds no later ones.
    ///
    /// # Panics
    ///
    /// If the driver has no function `call`.
    pub fn release(&self, call: &str) -> &Self {
        let call = known(call);
        self.state.order(|orders| {
            orders.held.remove(&call);
        });
        self
    }

    /// Makes `VK_EXT_memory_budget` report these bytes for a heap, and not the real ones.
    pub fn set_budget(&self, heap: u32, budget: u64, usage: u64) -> &Self {
        self.state.order(|orders| {
            orders.budgets.insert(heap, Budget { budget, usage });
        });
        self
    }

    /// Cancels every fault that is still ordered.
    pub fn clear(&self) {
        self.state.order(|orders| *orders = Orders::default());
    }
}

/// The entry point of a name that a test has given.
#[track_caller]
pub(super) fn known(name: &str) -> Call {
    match Call::find(name) {
        Some((call, _)) => call,
        None => panic!("the simulated driver has no function {name}"),
    }
}

#[track_caller]
fn fallible(name: &str) -> Call {
    match Call::find(name) {
        Some((call, entry)) if entry.fallible => call,
        Some(_) => panic!("{name} returns no VkResult, so it cannot fail"),
        None => panic!("the simulated driver has no function {name}"),
    }
}
