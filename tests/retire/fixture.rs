//! Fixture: a GPU that executes as far as a test lets it, with an allocator, a clock and a queue.

use ash::vk;
use sublet::retire::Clock;
use sublet::sim::{Gpu, Profile};
use sublet::{
    Allocation, AllocationCreateInfo, Allocator, AllocatorCreateInfo, CollectError, MemoryUsage,
    RetiredResources,
};

use crate::held::{End, Held, hold};

pub(crate) struct Fixture {
    pub(crate) gpu: Gpu,
    pub(crate) allocator: Allocator,
    pub(crate) clock: Clock,
    pub(crate) retired: RetiredResources,
    pool: vk::CommandPool,
    queues: Vec<Queue>,
}

/// A queue. Each of its submissions waits for a value of `gate`.
struct Queue {
    gate: vk::Semaphore,
    submitted: u64,
}

pub(crate) fn timeline_semaphore(gpu: &Gpu) -> vk::Semaphore {
    let mut kind = vk::SemaphoreTypeCreateInfo::default().semaphore_type(vk::SemaphoreType::TIMELINE);
    let info = vk::SemaphoreCreateInfo::default().push_next(&mut kind);
    // SAFETY: the simulated device enables all its features.
    unsafe { gpu.device().create_semaphore(&info, None) }.unwrap()
}

impl Fixture {
    pub(crate) fn new() -> Held<Self> {
        Self::with_queues(1)
    }

    pub(crate) fn with_queues(count: u32) -> Held<Self> {
        let gpu = Gpu::builder(Profile::by_name("lavapipe").unwrap()).queues(count).build();
        // SAFETY: instance and device are live, and outlive the allocator.
        let allocator = unsafe { Allocator::new(&AllocatorCreateInfo::for_gpu(&gpu)) }.unwrap();
        let info = vk::CommandPoolCreateInfo::default();
        // SAFETY: the create-info is valid.
        let pool = unsafe { gpu.device().create_command_pool(&info, None) }.unwrap();
        let queues = (0..count).map(|_| Queue { gate: timeline_semaphore(&gpu), submitted: 0 }).collect();
        let (clock, retired) = (Clock::new(), RetiredResources::new());
        hold(Self { gpu, allocator, clock, retired, pool, queues })
    }

    pub(crate) fn buffer(&self) -> (vk::Buffer, Allocation) {
        let info = vk::BufferCreateInfo::default().size(4096).usage(vk::BufferUsageFlags::TRANSFER_DST);
        // SAFETY: the create-info is valid.
        unsafe { self.allocator.create_buffer(&info, &AllocationCreateInfo::new(MemoryUsage::Auto)) }.unwrap()
    }

    pub(crate) fn image(&self) -> (vk::Image, Allocation) {
        let info = vk::ImageCreateInfo::default()
            .image_type(vk::ImageType::TYPE_2D)
            .format(vk::Format::R8G8B8A8_UNORM)
            .extent(vk::Extent3D { width: 16, height: 16, depth: 1 })
            .mip_levels(1)
            .array_layers(1)
            .samples(vk::SampleCountFlags::TYPE_1)
            .usage(vk::ImageUsageFlags::TRANSFER_DST);
        // SAFETY: the create-info is valid.
        unsafe { self.allocator.create_image(&info, &AllocationCreateInfo::new(MemoryUsage::Auto)) }.unwrap()
    }

    pub(crate) fn memory(&self) -> Allocation {
        let requirements = vk::MemoryRequirements { size: 4096, alignment: 256, memory_type_bits: !0 };
        self.allocator.allocate_memory(&requirements, &AllocationCreateInfo::default()).unwrap()
    }

    /// Records writes to the buffers.
    pub(crate) fn record(&self, buffers: &[vk::Buffer]) -> vk::CommandBuffer {
        let device = self.gpu.device();
        let info = vk::CommandBufferAllocateInfo::default().command_pool(self.pool).command_buffer_count(1);
        // SAFETY: the pool is live.
        let commands = unsafe { device.allocate_command_buffers(&info) }.unwrap()[0];
        // SAFETY: the command buffer is new.
        unsafe { device.begin_command_buffer(commands, &vk::CommandBufferBeginInfo::default()) }.unwrap();
        for &buffer in buffers {
            // SAFETY: the command buffer is being recorded, and the buffers have this size and the usage.
            unsafe { device.cmd_fill_buffer(commands, buffer, 0, 4096, 7) };
        }
        // SAFETY: it is being recorded.
        unsafe { device.end_command_buffer(commands) }.unwrap();
        commands
    }

    /// Submits to the first queue and returns the number of the submission, counted from 1. It runs when
    /// [`execute`](Self::execute) allows it.
    pub(crate) fn submit(
        &mut self,
        commands: vk::CommandBuffer,
        signal: Option<(vk::Semaphore, u64)>,
        fence: vk::Fence,
    ) -> u64 {
        self.submit_to(0, commands, signal, fence)
    }

    pub(crate) fn submit_to(
        &mut self,
        queue: usize,
        commands: vk::CommandBuffer,
        signal: Option<(vk::Semaphore, u64)>,
        fence: vk::Fence,
    ) -> u64 {
        let Queue { gate, submitted } = &mut self.queues[queue];
        *submitted += 1;
        let wait_value = [*submitted];
        let (semaphores, values): (Vec<_>, Vec<_>) = signal.into_iter().unzip();
        let mut timelines = vk::TimelineSemaphoreSubmitInfo::default()
            .wait_semaphore_values(&wait_value)
            .signal_semaphore_values(&values);
        let (gate, commands) = ([*gate], [commands]);
        let info = vk::SubmitInfo::default()
            .wait_semaphores(&gate)
            .wait_dst_stage_mask(&[vk::PipelineStageFlags::ALL_COMMANDS])
            .command_buffers(&commands)
            .signal_semaphores(&semaphores)
            .push_next(&mut timelines);
        // SAFETY: all handles are live, and the recording is not in flight.
        unsafe { self.gpu.device().queue_submit(self.gpu.queue_at(queue), &[info], fence) }.unwrap();
        wait_value[0]
    }

    /// Lets the GPU execute only the first `count` submissions of the first queue.
    pub(crate) fn execute(&self, count: u64) {
        self.execute_on(0, count);
    }

    pub(crate) fn execute_on(&self, queue: usize, count: u64) {
        let info = vk::SemaphoreSignalInfo::default().semaphore(self.queues[queue].gate).value(count);
        // SAFETY: the semaphore is live, and the value is higher than before.
        unsafe { self.gpu.device().signal_semaphore(&info) }.unwrap();
    }

    /// Lets the GPU execute everything. A lost GPU executes nothing.
    pub(crate) fn execute_all(&self) {
        for (at, queue) in self.queues.iter().enumerate() {
            // SAFETY: the semaphore is live.
            let reached = unsafe { self.gpu.device().get_semaphore_counter_value(queue.gate) };
            if reached.is_ok_and(|reached| reached < queue.submitted) {
                self.execute_on(at, queue.submitted);
            }
        }
        assert_eq!(self.gpu.pending_submissions(), 0);
    }

    pub(crate) fn collect(&self) -> Result<usize, CollectError> {
        self.retired.collect(&self.allocator, &self.clock)
    }

    /// Returns the number of live buffers.
    pub(crate) fn buffers(&self) -> u64 {
        self.gpu.live().buffers
    }
}

impl End for Fixture {
    fn end(self) {
        self.execute_all();
        assert_eq!(self.retired.len(), 0, "{:?}", self.retired);
        let device = self.gpu.device();
        // SAFETY: nothing is in flight.
        unsafe { device.destroy_command_pool(self.pool, None) };
        for queue in self.queues {
            // SAFETY: as above.
            unsafe { device.destroy_semaphore(queue.gate, None) };
        }
        self.allocator.validate();
        let leaks = self.allocator.destroy();
        assert!(leaks.is_empty(), "left in the allocator: {leaks:?}");
        self.gpu.assert_silent();
        let messages = self.gpu.finish();
        assert!(messages.is_empty(), "{messages:?}");
    }
}
