//! Frames in flight: while the device works on some, the host prepares the next one.

use ash::vk;

use super::commands::{PATIENCE_NS, record_and_submit};
use super::{Context, Result};

/// Some slots, used in turn. Each has a command buffer, and a fence that says when the device is done with it.
pub(crate) struct Frames<'a> {
    context: &'a Context,
    pool: vk::CommandPool,
    slots: Vec<(vk::CommandBuffer, vk::Fence)>,
    next: usize,
}

impl<'a> Frames<'a> {
    pub(crate) fn new(context: &'a Context, in_flight: u32) -> Result<Self> {
        let device = context.device();
        let info = vk::CommandPoolCreateInfo::default()
            .flags(vk::CommandPoolCreateFlags::RESET_COMMAND_BUFFER)
            .queue_family_index(context.queue_family_index());
        // SAFETY: the device has a queue of this family.
        let pool = unsafe { device.create_command_pool(&info, None) }?;
        let mut frames = Self { context, pool, slots: Vec::new(), next: 0 };
        let info =
            vk::CommandBufferAllocateInfo::default().command_pool(pool).command_buffer_count(in_flight);
        // A slot that was never used is as one that the device is done with.
        let done = vk::FenceCreateInfo::default().flags(vk::FenceCreateFlags::SIGNALED);
        // SAFETY: the pool is live and nobody else uses it.
        for buffer in unsafe { device.allocate_command_buffers(&info) }? {
            // SAFETY: the create-info is valid.
            let fence = unsafe { device.create_fence(&done, None) }?;
            frames.slots.push((buffer, fence));
        }
        Ok(frames)
    }

    /// Waits until the device is done with the frame that used the next slot before, and answers which slot it is.
    pub(crate) fn wait(&mut self) -> Result<usize> {
        let (_, fence) = self.slots[self.next];
        // SAFETY: the fence was submitted when the slot was used, or was signalled from the start.
        unsafe { self.context.device().wait_for_fences(&[fence], true, PATIENCE_NS) }?;
        Ok(self.next)
    }

    /// Submits a frame in the slot that [`Self::wait`] answered.
    pub(crate) fn submit(&mut self, record: impl FnOnce(&ash::Device, vk::CommandBuffer)) -> Result<()> {
        let (buffer, fence) = self.slots[self.next];
        let device = self.context.device();
        // SAFETY: `wait` saw it signalled, so that nobody uses it.
        unsafe { device.reset_fences(&[fence]) }?;
        record_and_submit(device, self.context.queue(), fence, buffer, record)?;
        self.next = (self.next + 1) % self.slots.len();
        Ok(())
    }

    /// Waits for all frames.
    pub(crate) fn wait_for_all(&self) -> Result<()> {
        // SAFETY: the device is live.
        unsafe { self.context.device().device_wait_idle() }?;
        Ok(())
    }
}

impl Drop for Frames<'_> {
    fn drop(&mut self) {
        // A device that is lost does nothing any more, so that it makes no difference here.
        let _ = self.wait_for_all();
        let device = self.context.device();
        for &(_, fence) in &self.slots {
            // SAFETY: the device is idle.
            unsafe { device.destroy_fence(fence, None) };
        }
        // SAFETY: the device is idle; the command buffers go with their pool.
        unsafe { device.destroy_command_pool(self.pool, None) };
    }
}
