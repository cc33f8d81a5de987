//! Work in flight under a test's control: submissions that are held back, and a device that is lost.

use std::sync::Arc;

use crate::execution::queue::run::{HeldSubmissions, run, run_timeline};
use crate::gpu::Gpu;
use crate::objects::queues::QueueTimeline;
use crate::objects::registry;
use crate::objects::state::DeviceObject;

impl Gpu {
    /// Holds submissions back from now on, or lets them run again.
    ///
    /// Work that is held back is in flight: its fences and semaphores are not signaled, and what it uses must not be
    /// destroyed. It runs when the program waits for it or for the queue to be idle, with
    /// [`run_pending`](Self::run_pending), and when `hold` is false.
    ///
    /// ```
    /// use ash::vk;
    /// use sublet_sim::{Gpu, profiles::Profile};
    /// let gpu = Gpu::new(Profile::by_name("lavapipe").unwrap());
    /// let fence = unsafe { gpu.device().create_fence(&vk::FenceCreateInfo::default(), None) }.unwrap();
    /// gpu.hold_submissions(true);
    /// unsafe { gpu.device().queue_submit(gpu.queue(), &[], fence) }.unwrap();
    /// assert!(!unsafe { gpu.device().get_fence_status(fence) }.unwrap());
    /// assert_eq!(gpu.pending_submissions(), 1);
    /// assert_eq!(gpu.run_pending(), 1);
    /// assert!(unsafe { gpu.device().get_fence_status(fence) }.unwrap());
    /// unsafe { gpu.device().destroy_fence(fence, None) };
    /// gpu.assert_silent();
    /// ```
    pub fn hold_submissions(&self, hold: bool) {
        self.hold(hold, |timelines| timelines);
    }

    /// Holds back what is submitted to one queue, or lets it run again, as [`hold_submissions`](Self::hold_submissions)
    /// does for all.
    ///
    /// A wait runs no more of the held work than it needs: the held queues run all that they have, one queue after the
    /// other, until the wait is over.
    ///
    /// # Panics
    ///
    /// If the device has no such queue, see [`GpuBuilder::queues`](crate::GpuBuilder::queues).
    ///
    /// ```
    /// use ash::vk;
    /// use sublet_sim::{Gpu, profiles::Profile};
    /// let gpu = Gpu::builder(Profile::by_name("lavapipe").unwrap()).queues(2).build();
    /// gpu.hold_queue(1, true);
    /// for queue in 0..2 {
    ///     let work = [vk::SubmitInfo::default()];
    ///     unsafe { gpu.device().queue_submit(gpu.queue_at(queue), &work, vk::Fence::null()) }.unwrap();
    /// }
    /// // The first queue's work is done.
    /// assert_eq!(gpu.pending_submissions(), 1);
    /// unsafe { gpu.device().queue_wait_idle(gpu.queue_at(0)) }.unwrap();
    /// assert_eq!(gpu.pending_submissions(), 1);
    /// unsafe { gpu.device().queue_wait_idle(gpu.queue_at(1)) }.unwrap();
    /// assert_eq!(gpu.pending_submissions(), 0);
    /// ```
    #[track_caller]
    pub fn hold_queue(&self, queue: usize, hold: bool) {
        let _ = self.queue_at(queue);
        self.hold(hold, |timelines| timelines.get_mut(queue..=queue).unwrap_or_default());
    }

    fn hold(&self, hold: bool, which: impl FnOnce(&mut [QueueTimeline]) -> &mut [QueueTimeline]) {
        if let Some(device) = self.owner() {
            for timeline in which(&mut device.state.lock().queue.timelines) {
                timeline.held = hold;
            }
            run(&device, HeldSubmissions::Back);
        }
    }

    /// Runs what is submitted, held back or not, up to the first submission of each queue that waits for a semaphore.
    /// Returns the count of those that ran: one for each batch, and one for a fence without a batch.
    ///
    /// See [`hold_submissions`](Self::hold_submissions) for an example.
    pub fn run_pending(&self) -> usize {
        self.owner().map_or(0, |device| run(&device, HeldSubmissions::Too))
    }

    /// Runs what is submitted to one queue, as [`run_pending`](Self::run_pending) does for all.
    ///
    /// # Panics
    ///
    /// If the device has no such queue, see [`GpuBuilder::queues`](crate::GpuBuilder::queues).
    #[track_caller]
    pub fn run_pending_on(&self, queue: usize) -> usize {
        let _ = self.queue_at(queue);
        self.owner().map_or(0, |device| run_timeline(&device, queue, HeldSubmissions::Too))
    }

    /// The count of submissions that are not done.
    ///
    /// See [`hold_submissions`](Self::hold_submissions) for an example.
    pub fn pending_submissions(&self) -> usize {
        self.owner().map_or(0, |device| device.state.lock().queue.pending())
    }

    /// The device, unless it is destroyed.
    fn owner(&self) -> Option<Arc<DeviceObject>> {
        registry::device(self.device().handle())
    }
}
