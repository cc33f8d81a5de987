//! Orders faults: failures, delays, budgets, and the loss of the device.

use std::time::Duration;

use ash::vk;

use crate::driver;
use crate::execution::queue;
use crate::facts::arithmetic::index;
use crate::objects::faults::{FaultState, Orders, PosedBudget};
use crate::objects::registry;

/// Orders faults of a simulated GPU: the result of [`Gpu::faults`](crate::Gpu::faults).
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
    pub(crate) state: &'a FaultState,
    pub(crate) device: vk::Device,
}

impl Faults<'_> {
    /// Lets the next `n` calls of a function through, and fails the one after them with `result`.
    ///
    /// # Panics
    ///
    /// If the driver has no function `call`, or it returns no `VkResult`.
    pub fn fail_nth(&self, call: &str, n: u64, result: vk::Result) -> &Self {
        let call = fallible(call);
        self.state.order(|orders| orders.of(call).nth.push((n, result)));
        self
    }

    /// Fails every call of a function with `result`.
    ///
    /// # Panics
    ///
    /// If the driver has no function `call`, or it returns no `VkResult`.
    pub fn fail_always(&self, call: &str, result: vk::Result) -> &Self {
        let call = fallible(call);
        self.state.order(|orders| orders.of(call).always = Some(result));
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
        self.state.order(|orders| orders.of(call).delay = Some(delay));
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
        self.state.order(|orders| orders.of(call).held = true);
        self
    }

    /// Lets the held calls of a function go on, and holds no later ones.
    ///
    /// # Panics
    ///
    /// If the driver has no function `call`.
    pub fn release(&self, call: &str) -> &Self {
        let call = known(call);
        self.state.order(|orders| orders.of(call).held = false);
        self
    }

    /// Makes `VK_EXT_memory_budget` report these bytes for a heap, and not the real ones.
    pub fn set_budget(&self, heap: u32, budget: u64, usage: u64) -> &Self {
        self.pose(heap, PosedBudget { budget, usage, adds_own: false })
    }

    /// Makes `VK_EXT_memory_budget` report this budget for a heap, and as its usage the real one and these bytes of
    /// other processes.
    pub fn set_budget_beside(&self, heap: u32, budget: u64, others: u64) -> &Self {
        self.pose(heap, PosedBudget { budget, usage: others, adds_own: true })
    }

    fn pose(&self, heap: u32, budget: PosedBudget) -> &Self {
        self.state.order(|orders| {
            if let Some(posed) = orders.budgets.get_mut(index(heap)) {
                *posed = Some(budget);
            }
        });
        self
    }

    /// Cancels the failures, the delay and the hold that are ordered for a function.
    ///
    /// # Panics
    ///
    /// If the driver has no function `call`.
    pub fn cancel(&self, call: &str) -> &Self {
        let call = known(call);
        self.state.order(|orders| orders.forget(call));
        self
    }

    /// Cancels every fault that is still ordered.
    pub fn clear(&self) {
        self.state.order(|orders| *orders = Orders::default());
    }
}

/// The entry point of a name that a test has given.
#[track_caller]
pub(crate) fn known(name: &str) -> &'static str {
    match driver::find(name) {
        Some(entry) => entry.name(),
        None => panic!("the simulated driver has no function {name}"),
    }
}

#[track_caller]
pub(crate) fn fallible(name: &str) -> &'static str {
    match driver::find(name) {
        Some(entry) if entry.fallible => entry.name(),
        Some(_) => panic!("{name} returns no VkResult, so it cannot fail"),
        None => panic!("the simulated driver has no function {name}"),
    }
}
