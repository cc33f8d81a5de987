//! Faults to order: failures, delays and budgets; and the counts of calls.
#![forbid(unsafe_code)]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use ash::vk;
use parking_lot::{Condvar, Mutex};

use super::entry::{self, CALLS, Call};
use super::{queue, registry};

/// What was ordered, and how often each entry point was called.
#[derive(Debug)]
pub(super) struct FaultState {
    counts: [AtomicU64; CALLS],
    /// Whether `orders` holds anything that [`FaultState::enter`] has to look at: most runs order nothing.
    armed: AtomicBool,
    orders: Mutex<Orders>,
    /// Told when calls that were held may go on.
    released: Condvar,
}

#[derive(Debug, Default)]
struct Orders {
    /// Failures that are still to come: how many calls are let through first, and the result.
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
    /// Counts a call, waits while it is held, waits out its delay, and says how it is to fail, if it is.
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
            // Every order counts this call; the first that is due decides, and each due one is used up.
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

/// Orders faults of a simulated GPU. Got from [`Gpu::faults`](super::Gpu::faults).
///
/// A function is named as in C. A KHR or EXT name of a function stands for the function: `vkBindBufferMemory2KHR` and
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
/// assert_eq!(refused.unwrap_err(), vk::Result::ERROR_OUT_OF_HOST_MEMORY);
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
    ///
    /// ```
    /// use ash::vk;
    /// use sublet_sim::{Gpu, profiles::Profile};
    /// let gpu = Gpu::new(Profile::by_name("lavapipe").unwrap());
    /// gpu.faults().fail_nth("vkAllocateMemory", 1, vk::Result::ERROR_OUT_OF_DEVICE_MEMORY);
    /// let info = vk::MemoryAllocateInfo::default().allocation_size(64);
    /// let results: Vec<_> = (0..3).map(|_| unsafe { gpu.device().allocate_memory(&info, None) }.is_ok()).collect();
    /// assert_eq!(results, [true, false, true]);
    /// # gpu.finish();
    /// ```
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
    ///
    /// ```
    /// use ash::vk;
    /// use sublet_sim::{Gpu, profiles::Profile};
    /// let gpu = Gpu::new(Profile::by_name("lavapipe").unwrap());
    /// gpu.faults().fail_always("vkAllocateMemory", vk::Result::ERROR_OUT_OF_DEVICE_MEMORY);
    /// let info = vk::MemoryAllocateInfo::default().allocation_size(64);
    /// assert!((0..3).all(|_| unsafe { gpu.device().allocate_memory(&info, None) }.is_err()));
    /// ```
    pub fn fail_always(&self, call: &str, result: vk::Result) -> &Self {
        let call = fallible(call);
        self.state.order(|orders| {
            orders.always.insert(call, result);
        });
        self
    }

    /// Loses the device: from now on `vkQueueSubmit`, `vkQueueSubmit2` and `vkQueueBindSparse`, the waits for fences,
    /// semaphores and idle queues, `vkGetFenceStatus` and `vkGetSemaphoreCounterValue` answer `VK_ERROR_DEVICE_LOST`.
    /// Threads that wait are woken. What was submitted never runs, and what it uses may be destroyed, as the section
    /// "Lost Device" of the specification says. Objects can still be created and destroyed; the device stays lost.
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
    ///
    /// ```
    /// use ash::vk;
    /// use sublet_sim::{Gpu, profiles::Profile};
    /// let gpu = Gpu::new(Profile::by_name("lavapipe").unwrap());
    /// gpu.faults().fail_above(1 << 20);
    /// let info = vk::MemoryAllocateInfo::default().allocation_size(2 << 20);
    /// assert!(unsafe { gpu.device().allocate_memory(&info, None) }.is_err());
    /// ```
    pub fn fail_above(&self, size: u64) -> &Self {
        self.state.order(|orders| orders.above = Some(size));
        self
    }

    /// Makes every call of a function take `delay` longer. Calls of other threads go on meanwhile.
    ///
    /// # Panics
    ///
    /// If the driver has no function `call`.
    ///
    /// ```
    /// use sublet_sim::{Gpu, profiles::Profile};
    /// let gpu = Gpu::new(Profile::by_name("lavapipe").unwrap());
    /// gpu.faults().delay("vkFreeMemory", std::time::Duration::from_millis(5));
    /// let start = std::time::Instant::now();
    /// unsafe { gpu.device().free_memory(ash::vk::DeviceMemory::null(), None) };
    /// assert!(start.elapsed().as_millis() >= 5);
    /// ```
    pub fn delay(&self, call: &str, delay: Duration) -> &Self {
        let call = known(call);
        self.state.order(|orders| {
            orders.delays.insert(call, delay);
        });
        self
    }

    /// Lets no call of a function return before [`Self::release`] or [`Self::clear`] is called by another thread. It is
    /// counted when it begins. So a test can do what it likes while a call is under way, however fast the machine is.
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

    /// Lets the calls of a function that is held go on, and does not hold it any more.
    ///
    /// # Panics
    ///
    /// If the driver has no function `call`.
    ///
    /// ```
    /// use sublet_sim::{Gpu, profiles::Profile};
    /// let gpu = Gpu::new(Profile::by_name("lavapipe").unwrap());
    /// gpu.faults().hold("vkFreeMemory").release("vkFreeMemory");
    /// unsafe { gpu.device().free_memory(ash::vk::DeviceMemory::null(), None) };
    /// ```
    pub fn release(&self, call: &str) -> &Self {
        let call = known(call);
        self.state.order(|orders| {
            orders.held.remove(&call);
        });
        self
    }

    /// What `VK_EXT_memory_budget` reports for a heap, in bytes, instead of the real numbers.
    ///
    /// ```
    /// use ash::vk;
    /// use sublet_sim::{Gpu, profiles::ALL};
    /// let profile = ALL.iter().find(|profile| profile.features.memory_budget).unwrap();
    /// let gpu = Gpu::builder(profile).api_version(vk::API_VERSION_1_1).build();
    /// gpu.faults().set_budget(0, 1 << 30, 1 << 29);
    /// let mut budget = vk::PhysicalDeviceMemoryBudgetPropertiesEXT::default();
    /// let mut out = vk::PhysicalDeviceMemoryProperties2::default().push_next(&mut budget);
    /// unsafe { gpu.instance().get_physical_device_memory_properties2(gpu.physical_device(), &mut out) };
    /// assert_eq!((budget.heap_budget[0], budget.heap_usage[0]), (1 << 30, 1 << 29));
    /// ```
    pub fn set_budget(&self, heap: u32, budget: u64, usage: u64) -> &Self {
        self.state.order(|orders| {
            orders.budgets.insert(heap, Budget { budget, usage });
        });
        self
    }

    /// Takes back every order.
    ///
    /// ```
    /// use ash::vk;
    /// use sublet_sim::{Gpu, profiles::Profile};
    /// let gpu = Gpu::new(Profile::by_name("lavapipe").unwrap());
    /// gpu.faults().fail_above(0).clear();
    /// let info = vk::MemoryAllocateInfo::default().allocation_size(64);
    /// let memory = unsafe { gpu.device().allocate_memory(&info, None) }.unwrap();
    /// # unsafe { gpu.device().free_memory(memory, None) };
    /// ```
    pub fn clear(&self) {
        self.state.order(|orders| *orders = Orders::default());
    }
}

/// The entry point of this name, which a test has written.
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
