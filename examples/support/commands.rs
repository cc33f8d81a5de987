//! Command buffers: recording, submission and waiting.

use ash::vk;

use super::Result;

/// Maximum wait for the device, ten minutes. Software devices are slow on a busy machine, and broken ones never finish.
pub(super) const PATIENCE_NS: u64 = 600_000_000_000;

/// A command pool with one command buffer and a fence.
pub struct Commands {
    device: ash::Device,
    queue: vk::Queue,
    pool: vk::CommandPool,
    fence: vk::Fence,
}

impl Commands {
    pub fn new(device: &ash::Device, queue: vk::Queue, family: u32) -> Result<Self> {
        let mut commands =
            Self { device: device.clone(), queue, pool: vk::CommandPool::null(), fence: vk::Fence::null() };
        let info = vk::CommandPoolCreateInfo::default().queue_family_index(family);
        // SAFETY: the device has a queue of this family.
        commands.pool = unsafe { device.create_command_pool(&info, None) }?;
        // SAFETY: the create-info is valid.
        commands.fence = unsafe { device.create_fence(&vk::FenceCreateInfo::default(), None) }?;
        Ok(commands)
    }

    pub fn submit(&self, record: impl FnOnce(&ash::Device, vk::CommandBuffer)) -> Result<()> {
        let device = &self.device;
        let info = vk::CommandBufferAllocateInfo::default().command_pool(self.pool).command_buffer_count(1);
        // SAFETY: the pool is live, and nothing else uses it: the context is not shared between threads.
        let buffers = unsafe { device.allocate_command_buffers(&info) }?;
        record_and_submit(device, self.queue, self.fence, buffers[0], record)?;
        // SAFETY: the fence was submitted with the work above.
        unsafe { device.wait_for_fences(&[self.fence], true, PATIENCE_NS) }?;
        // SAFETY: the fence is signalled, so nothing uses it.
        unsafe { device.reset_fences(&[self.fence]) }?;
        // SAFETY: the device has completed the command buffer.
        unsafe { device.free_command_buffers(self.pool, &buffers) };
        Ok(())
    }
}

impl Drop for Commands {
    fn drop(&mut self) {
        // SAFETY: every submission was waited for; a null fence is ignored.
        unsafe { self.device.destroy_fence(self.fence, None) };
        // SAFETY: as above; the pool destroys its command buffers.
        unsafe { self.device.destroy_command_pool(self.pool, None) };
    }
}

/// Records a command buffer that is not in use, and submits it with a fence that is not signalled.
pub(super) fn record_and_submit(
    device: &ash::Device,
    queue: vk::Queue,
    fence: vk::Fence,
    buffer: vk::CommandBuffer,
    record: impl FnOnce(&ash::Device, vk::CommandBuffer),
) -> Result<()> {
    let once = vk::CommandBufferBeginInfo::default().flags(vk::CommandBufferUsageFlags::ONE_TIME_SUBMIT);
    // SAFETY: the command buffer is not in use: the callers' promise.
    unsafe { device.begin_command_buffer(buffer, &once) }?;
    record(device, buffer);
    make_visible(device, buffer);
    // SAFETY: it is being recorded.
    unsafe { device.end_command_buffer(buffer) }?;
    let buffers = [buffer];
    let work = vk::SubmitInfo::default().command_buffers(&buffers);
    // SAFETY: queue, command buffer and fence belong to this device; the examples submit from one thread.
    unsafe { device.queue_submit(queue, &[work], fence) }?;
    Ok(())
}

/// Makes copied data visible to later copies, and to the host after the submission has completed.
pub fn make_visible(device: &ash::Device, buffer: vk::CommandBuffer) {
    let barrier =
        vk::MemoryBarrier::default().src_access_mask(vk::AccessFlags::TRANSFER_WRITE).dst_access_mask(
            vk::AccessFlags::TRANSFER_READ | vk::AccessFlags::TRANSFER_WRITE | vk::AccessFlags::HOST_READ,
        );
    // SAFETY: the command buffer is being recorded, outside of a render pass.
    unsafe {
        device.cmd_pipeline_barrier(
            buffer,
            vk::PipelineStageFlags::TRANSFER,
            vk::PipelineStageFlags::TRANSFER | vk::PipelineStageFlags::HOST,
            vk::DependencyFlags::empty(),
            &[barrier],
            &[],
            &[],
        );
    }
}
