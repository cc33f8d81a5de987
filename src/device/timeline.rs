//! Counters of timeline semaphores.
#![expect(unsafe_code, reason = "calls Vulkan")]

use ash::vk;

use super::driver::LiveDevice;
use super::error::DriverError;

impl LiveDevice {
    /// The primary name of the function behind [`Self::counter_value`].
    pub(crate) const COUNTER_VALUE: &'static str = "vkGetSemaphoreCounterValue";

    /// Returns true if [`Self::counter_value`] can be called.
    pub(crate) fn counts(&self) -> bool {
        self.functions.get_semaphore_counter_value.is_some()
    }

    /// `vkGetSemaphoreCounterValue`; `None` without the function.
    ///
    /// # Safety
    /// `semaphore` is a live timeline semaphore of this device (VUID-vkGetSemaphoreCounterValue-semaphore-03255).
    pub(crate) unsafe fn counter_value(&self, semaphore: vk::Semaphore) -> Option<Result<u64, DriverError>> {
        let function = self.functions.get_semaphore_counter_value?;
        let mut value = 0;
        // SAFETY: the caller's promise: `semaphore` is a live timeline semaphore of this device.
        let result = unsafe { function(self.device, semaphore, &mut value) };
        Some(DriverError::check(Self::COUNTER_VALUE, result).map(|()| value))
    }
}
