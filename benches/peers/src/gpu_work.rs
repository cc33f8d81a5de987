//! Work for the GPU of a real driver that lasts for a given time.
#![expect(unsafe_code, reason = "calls Vulkan")]

use std::time::{Duration, Instant};

use ash::vk;

use crate::gpu::TestGpu;

/// Bytes of one fill.
const FILLED: u64 = 64 << 20;
/// The number of fills whose time is measured first.
const MEASURED: u32 = 16;

/// A command buffer that fills memory, and everything that it needs.
pub(crate) struct GpuWork {
    device: ash::Device,
    queue: vk::Queue,
    pool: vk::CommandPool,
    commands: vk::CommandBuffer,
    fence: vk::Fence,
    buffer: vk::Buffer,
    memory: vk::DeviceMemory,
}

impl GpuWork {
    /// Prepares work of this duration.
    pub(crate) fn new(gpu: &TestGpu, duration: Duration) -> Result<Self, String> {
        let mut work = Self {
            device: gpu.device().clone(),
            queue: vk::Queue::null(),
            pool: vk::CommandPool::null(),
            commands: vk::CommandBuffer::null(),
            fence: vk::Fence::null(),
            buffer: vk::Buffer::null(),
            memory: vk::DeviceMemory::null(),
        };
        let prepared = work.prepare(gpu.device_local_type()).and_then(|()| {
            work.record(MEASURED)?;
            // The first submission may include work that is done once.
            work.run()?;
            let start = Instant::now();
            work.run()?;
            let one = start.elapsed().as_secs_f64() / f64::from(MEASURED);
            work.record((duration.as_secs_f64() / one.max(1e-9)).clamp(1.0, 100_000.0) as u32)
        });
        prepared.map_err(|error| format!("the work for the GPU: {error}"))?;
        Ok(work)
    }

    fn prepare(&mut self, memory_type: u32) -> Result<(), vk::Result> {
        let device = &self.device;
        // SAFETY: the device is live and has queue 0 of family 0, and the create-infos are complete.
        self.queue = unsafe { device.get_device_queue(0, 0) };
        let info = vk::CommandPoolCreateInfo::default()
            .flags(vk::CommandPoolCreateFlags::RESET_COMMAND_BUFFER)
            .queue_family_index(0);
        // SAFETY: as above.
        self.pool = unsafe { device.create_command_pool(&info, None) }?;
        let info = vk::CommandBufferAllocateInfo::default().command_pool(self.pool).command_buffer_count(1);
        // SAFETY: the pool was created just now.
        self.commands = unsafe { device.allocate_command_buffers(&info) }?[0];
        // SAFETY: as above.
        self.fence = unsafe { device.create_fence(&vk::FenceCreateInfo::default(), None) }?;
        let info = vk::BufferCreateInfo::default().size(FILLED).usage(vk::BufferUsageFlags::TRANSFER_DST);
        // SAFETY: as above.
        self.buffer = unsafe { device.create_buffer(&info, None) }?;
        // SAFETY: the buffer was created just now.
        let needs = unsafe { device.get_buffer_memory_requirements(self.buffer) };
        let is_allowed = needs.memory_type_bits >> memory_type & 1 != 0;
        let memory_type = if is_allowed { memory_type } else { needs.memory_type_bits.trailing_zeros() };
        let info =
            vk::MemoryAllocateInfo::default().allocation_size(needs.size).memory_type_index(memory_type);
        // SAFETY: as above.
        self.memory = unsafe { device.allocate_memory(&info, None) }?;
        // SAFETY: the memory was allocated for this buffer.
        unsafe { device.bind_buffer_memory(self.buffer, self.memory, 0) }
    }

    fn record(&self, fills: u32) -> Result<(), vk::Result> {
        let device = &self.device;
        // SAFETY: no submission of the command buffer is pending.
        unsafe { device.begin_command_buffer(self.commands, &vk::CommandBufferBeginInfo::default()) }?;
        for value in 0..fills {
            // SAFETY: the buffer is live, and has these bytes.
            unsafe { device.cmd_fill_buffer(self.commands, self.buffer, 0, FILLED, value) };
        }
        // SAFETY: begun above.
        unsafe { device.end_command_buffer(self.commands) }
    }

    fn run(&self) -> Result<(), vk::Result> {
        self.submit()?;
        self.wait()
    }

    pub(crate) fn submit(&self) -> Result<(), vk::Result> {
        let commands = [self.commands];
        let info = [vk::SubmitInfo::default().command_buffers(&commands)];
        // SAFETY: the commands are recorded and not pending, and the fence is unsignalled.
        unsafe { self.device.queue_submit(self.queue, &info, self.fence) }
    }

    pub(crate) fn wait(&self) -> Result<(), vk::Result> {
        // SAFETY: the fence was submitted.
        unsafe { self.device.wait_for_fences(&[self.fence], true, u64::MAX) }?;
        // SAFETY: the fence is signalled.
        unsafe { self.device.reset_fences(&[self.fence]) }
    }
}

impl Drop for GpuWork {
    fn drop(&mut self) {
        // SAFETY: every submission was waited for, or the device is lost; null handles are allowed.
        let _ = unsafe { self.device.device_wait_idle() };
        // SAFETY: as above.
        unsafe { self.device.destroy_command_pool(self.pool, None) };
        // SAFETY: as above.
        unsafe { self.device.destroy_fence(self.fence, None) };
        // SAFETY: as above.
        unsafe { self.device.destroy_buffer(self.buffer, None) };
        // SAFETY: as above.
        unsafe { self.device.free_memory(self.memory, None) };
    }
}
