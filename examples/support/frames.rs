//! Frames in flight: the host prepares the next frame while the device works on others.

use ash::vk;

use super::commands::{PATIENCE_NS, record_and_submit};
use super::{Context, Result};

/// A ring of slots. Each has a command buffer, and a fence that is signalled when the device has completed its frame.
pub struct Frames<'a> {
    context: &'a Context,
    pool: vk::CommandPool,
    slots: Vec<(vk::CommandBuffer, vk::Fence)>,
    next: usize,
}

impl<'a> Frames<'a> {
    pub fn new(context: &'a Context, in_flight: u32) -> Result<Self> {
        let device = context.device();
        let info = vk::CommandPoolCreateInfo::default()
            .flags(vk::CommandPoolCreateFlags::RESET_COMMAND_BUFFER)
            .queue_family_index(context.queue_family_index());
        // SAFETY: the device has a queue of this family.
        let pool = unsafe { device.create_command_pool(&info, None) }?;
        let mut frames = Self { context, pool, slots: Vec::new(), next: 0 };
        let info =
            vk::CommandBufferAllocateInfo::default().command_pool(pool).command_buffer_count(in_flight);
        // An unused slot counts as completed.
        let done = vk::FenceCreateInfo::default().flags(vk::FenceCreateFlags::SIGNALED);
        // SAFETY: the pool is live and nothing else uses it.
        for buffer in unsafe { device.allocate_command_buffers(&info) }? {
            // SAFETY: the create-info is valid.
            let fence = unsafe { device.create_fence(&done, None) }?;
            frames.slots.push((buffer, fence));
        }
        Ok(frames)
    }

    /// Waits until the device has completed the previous frame in the next slot. Returns the slot.
    pub fn wait(&mut self) -> Result<usize> {
        let (_, fence) = self.slots[self.next];
        // SAFETY: the fence was submitted when the slot was used, or was signalled from the start.
        unsafe { self.context.device().wait_for_fences(&[fence], true, PATIENCE_NS) }?;
        Ok(self.next)
    }

    /// Submits a frame in the slot that [`Self::wait`] returned.
    pub fn submit(&mut self, record: impl FnOnce(&ash::Device, vk::CommandBuffer)) -> Result<()> {
        let (buffer, fence) = self.slots[self.next];
        let device = self.context.device();
        // SAFETY: `wait` saw the fence signalled, so nothing uses it.
        unsafe { device.reset_fences(&[fence]) }?;
        record_and_submit(device, self.context.queue(), fence, buffer, record)?;
        self.next = (self.next + 1) % self.slots.len();
        Ok(())
    }

    /// Waits for all frames.
    pub fn wait_for_all(&self) -> Result<()> {
        // SAFETY: the device is live.
        unsafe { self.context.device().device_wait_idle() }?;
        Ok(())
    }
}

impl Drop for Frames<'_> {
    fn drop(&mut self) {
        // A lost device executes nothing any more, so the error does not matter.
        let _ = self.wait_for_all();
        let device = self.context.device();
        for &(_, fence) in &self.slots {
            // SAFETY: the device is idle.
            unsafe { device.destroy_fence(fence, None) };
        }
        // SAFETY: the device is idle; the pool destroys its command buffers.
        unsafe { device.destroy_command_pool(self.pool, None) };
    }
}
