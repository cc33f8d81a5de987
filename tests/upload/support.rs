//! Fixture: arenas, and a queue that holds its submissions back.

use std::sync::Arc;

use ash::vk;
use sublet::retire::{Clock, Ticket, TimelineId};
use sublet::upload::{Upload, UploadArena, UploadArenaCreateInfo};
use sublet::{Allocation, Allocator, Pool, PoolCreateInfo};

use crate::common::*;

pub type Arena<'a> = UploadArena<&'a Allocator>;

impl End for Arena<'_> {
    fn end(self) {
        self.validate();
        // SAFETY: the test has waited for all its submissions.
        unsafe { self.destroy() };
    }
}

pub fn arena<'a>(fixture: &'a Fixture, info: &UploadArenaCreateInfo<'_>) -> Held<Arena<'a>> {
    // SAFETY: the usages are those of version 1.0, and the tests' clocks follow the simulated device.
    hold(unsafe { UploadArena::new(&fixture.allocator, info) }.unwrap())
}

/// An arena with pages of this size, which are freed only on request.
pub fn small(page_size: u64) -> UploadArenaCreateInfo<'static> {
    UploadArenaCreateInfo { page_size, idle_collects: None, ..Default::default() }
}

/// Runs a test with a pool in each host-visible memory type, and once without a pool.
pub fn everywhere(profile: &'static sublet::sim::Profile, test: impl Fn(&Fixture, Option<Arc<Pool>>)) {
    let types = Fixture::new(profile).types_with(HOST_VISIBLE, PROTECTED);
    let types: Vec<_> = types.into_iter().filter(|kind| profile.buffers.types & (1 << kind) != 0).collect();
    for memory_type in types.into_iter().map(Some).chain([None]) {
        let fixture = Fixture::new(profile);
        let pool = memory_type.map(|memory_type| {
            let info = PoolCreateInfo { block_size: MIB, ..PoolCreateInfo::new(memory_type) };
            Arc::new(fixture.pool(&info).unwrap())
        });
        test(&fixture, pool.clone());
        if let Some(pool) = pool {
            fixture.destroy_pool(Arc::into_inner(pool).unwrap());
        }
    }
}

/// Returns true if host writes to the type need no flush.
pub fn is_coherent(fixture: &Fixture, memory_type: u32) -> bool {
    fixture.properties(memory_type).contains(HOST_COHERENT)
}

/// A clock with one timeline whose recordings complete in order.
pub struct Time {
    pub clock: Clock,
    pub timeline: TimelineId,
    submitted: u64,
}

impl Time {
    pub fn new() -> Self {
        let clock = Clock::new();
        let timeline = clock.add_timeline().unwrap();
        Self { clock, timeline, submitted: 0 }
    }

    /// Returns a ticket that is already submitted.
    pub fn submitted(&mut self) -> Ticket {
        self.submitted += 1;
        let ticket = self.clock.open(self.timeline);
        self.clock.submit(ticket, self.submitted).unwrap();
        ticket
    }

    /// Completes the first `count` submissions.
    pub fn finish(&self, count: u64) {
        self.clock.completed(self.timeline, count);
    }
}

/// Submissions that copy uploads to a device buffer. They execute only when their fence is waited for.
pub struct Copies<'a> {
    fixture: &'a Fixture,
    pool: vk::CommandPool,
    pub target: (vk::Buffer, Allocation),
    fences: Vec<vk::Fence>,
}

impl<'a> Copies<'a> {
    pub fn new(fixture: &'a Fixture, bytes: u64, slots: usize) -> Self {
        let device = fixture.gpu.device();
        let pool_info =
            vk::CommandPoolCreateInfo::default().queue_family_index(fixture.gpu.queue_family_index());
        // SAFETY: the create-info is valid.
        let pool = unsafe { device.create_command_pool(&pool_info, None) }.unwrap();
        let own = sublet::AllocationCreateInfo::new(sublet::MemoryUsage::Auto);
        let target = fixture.buffer(bytes, vk::BufferUsageFlags::TRANSFER_DST, &own).unwrap();
        let signaled = vk::FenceCreateInfo::default().flags(vk::FenceCreateFlags::SIGNALED);
        // SAFETY: the create-info is valid.
        let fences = (0..slots).map(|_| unsafe { device.create_fence(&signaled, None) }.unwrap()).collect();
        fixture.gpu.hold_submissions(true);
        Self { fixture, pool, target, fences }
    }

    /// Waits for the slot's last submission.
    pub fn wait(&self, slot: usize) {
        // SAFETY: the fence is signaled, or was submitted.
        unsafe { self.fixture.gpu.device().wait_for_fences(&[self.fences[slot]], true, u64::MAX) }.unwrap();
    }

    pub fn submit(&self, slot: usize, uploads: &[(Upload, u64)]) {
        let device = self.fixture.gpu.device();
        let info = vk::CommandBufferAllocateInfo::default().command_pool(self.pool).command_buffer_count(1);
        // SAFETY: the pool is live.
        let commands = unsafe { device.allocate_command_buffers(&info) }.unwrap()[0];
        let once = vk::CommandBufferBeginInfo::default();
        // SAFETY: the command buffer is new.
        unsafe { device.begin_command_buffer(commands, &once) }.unwrap();
        for (upload, to) in uploads {
            let region = [upload.copy_to(*to)];
            // SAFETY: both buffers are bound and have at least as many bytes.
            unsafe { device.cmd_copy_buffer(commands, upload.buffer, self.target.0, &region) };
        }
        // SAFETY: it is being recorded.
        unsafe { device.end_command_buffer(commands) }.unwrap();
        // SAFETY: the slot was waited for.
        unsafe { device.reset_fences(&[self.fences[slot]]) }.unwrap();
        let list = [commands];
        let submit = [vk::SubmitInfo::default().command_buffers(&list)];
        // SAFETY: the command buffer is recorded, and the arena keeps its buffers until the fence is waited for, as
        // tested here.
        unsafe { device.queue_submit(self.fixture.gpu.queue(), &submit, self.fences[slot]) }.unwrap();
    }

    /// Waits until the device is idle, and returns the copied bytes.
    pub fn finish(self) -> Vec<u8> {
        let device = self.fixture.gpu.device();
        // SAFETY: the device is live.
        unsafe { device.device_wait_idle() }.unwrap();
        self.fixture.gpu.hold_submissions(false);
        let (_, allocation) = &self.target;
        let size = allocation.size() as usize;
        let copied = self.fixture.read_memory(allocation.memory(), allocation.offset(), size).unwrap();
        for fence in self.fences {
            // SAFETY: the device is idle.
            unsafe { device.destroy_fence(fence, None) };
        }
        // SAFETY: the device is idle.
        unsafe { device.destroy_command_pool(self.pool, None) };
        self.fixture.destroy_buffer(self.target);
        copied
    }
}
