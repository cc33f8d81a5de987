//! Updating a clock from timeline semaphores.
#![expect(unsafe_code, reason = "calls Vulkan, or has its caller promise what Vulkan asks")]

use ash::vk;

use super::TimelineError;
use crate::allocator::Allocator;
use crate::device::{LiveDevice, MissingFunction};
use crate::retire::{Clock, TimelineId};

impl Allocator {
    /// Updates a clock from timeline semaphores: reads the semaphore of each listed timeline that has pending tickets.
    ///
    /// Other timelines, such as those of frames with fences, are not affected.
    ///
    /// # Errors
    /// [`TimelineError`] if the device cannot read timeline semaphores, or the driver refuses. Updates before the error
    /// stay; later semaphores are not read. A lost device is reported this way too: see
    /// [`Clock::shutdown`](crate::retire::Clock::shutdown).
    ///
    /// # Panics
    /// Panics if a `TimelineId` belongs to another clock.
    ///
    /// # Safety
    /// Each semaphore is a live timeline semaphore of the allocator's device
    /// (VUID-vkGetSemaphoreCounterValue-semaphore-03255).
    ///
    /// ```
    /// # use sublet::{*, retire::Clock}; use ash::vk;
    /// # let (gpu, allocator) = sublet::doc_example();
    /// # let mut kind = vk::SemaphoreTypeCreateInfo::default().semaphore_type(vk::SemaphoreType::TIMELINE);
    /// # let info = vk::SemaphoreCreateInfo::default().push_next(&mut kind);
    /// # let semaphore = unsafe { gpu.device().create_semaphore(&info, None) }?;
    /// let clock = Clock::new();
    /// let timeline = clock.add_timeline()?;
    /// let ticket = clock.open(timeline);
    /// // ... a vkQueueSubmit that signals 1 ...
    /// # unsafe { gpu.device().signal_semaphore(&vk::SemaphoreSignalInfo::default().semaphore(semaphore).value(1)) }?;
    /// clock.submit(ticket, 1)?;
    /// // SAFETY: the semaphore is live.
    /// unsafe { allocator.poll_timelines(&clock, &[(timeline, semaphore)]) }?;
    /// assert!(clock.is_done(ticket));
    /// # unsafe { gpu.device().destroy_semaphore(semaphore, None) };
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub unsafe fn poll_timelines(
        &self,
        clock: &Clock,
        timelines: &[(TimelineId, vk::Semaphore)],
    ) -> Result<(), TimelineError> {
        let device = &self.inner.context.device;
        let missing = TimelineError::MissingFunction(MissingFunction { name: LiveDevice::COUNTER_VALUE });
        if !device.counts() {
            return Err(missing);
        }
        for &(timeline, semaphore) in timelines {
            if clock.is_pending(timeline) {
                // SAFETY: the caller's promise: each semaphore is a live timeline semaphore of the allocator's device.
                let value = unsafe { device.counter_value(semaphore) }.ok_or(missing)?;
                clock
                    .completed(timeline, value.map_err(|source| TimelineError::Driver { timeline, source })?);
            }
        }
        Ok(())
    }
}
