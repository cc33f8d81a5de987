//! Arenas for tests, and a queue whose submissions are held back.

use std::sync::Arc;

use ash::vk;
use sublet::retire::{Clock, LaneId, Ticket};
use sublet::upload::{Upload, UploadArena, UploadArenaCreateInfo};
use sublet::{Allocation, Allocator, Pool, PoolCreateInfo};

use crate::common::*;

pub type Arena<'a> = UploadArena<&'a Allocator>;

impl End for Arena<'_> {
    fn end(self) {
        self.validate();
        // SAFETY: the test has waited for whatever it submitted.
        unsafe { self.destroy() };
    }
}

pub fn arena<'a>(rig: &'a Rig, info: &UploadArenaCreateInfo<'_>) -> Held<Arena<'a>> {
    // SAFETY: the usages are those of version 1.0; the tests' clocks say what the simulated device has done.
    hold(unsafe { UploadArena::new(&rig.allocator, info) }.unwrap())
}

/// An arena with pages of that size, which are made and given back by nobody but the tests.
pub fn small(page_size: u64) -> UploadArenaCreateInfo<'static> {
    UploadArenaCreateInfo { page_size, idle_collects: None, ..Default::default() }
}

/// Runs a test with a pool in each memory type that the host can write, and once without a pool.
pub fn everywhere(profile: &'static sublet::sim::Profile, test: impl Fn(&Rig, Option<Arc<Pool>>)) {
    let types = Rig::new(profile).types_with(HOST_VISIBLE, PROTECTED);
    let types: Vec<_> = types.into_iter().filter(|kind| profile.buffers.types & (1 << kind) != 0).collect();
    for memory_type in types.into_iter().map(Some).chain([None]) {
        let rig = Rig::new(profile);
        let pool = memory_type.map(|memory_type| {
            let info = PoolCreateInfo { block_size: MIB, ..PoolCreateInfo::new(memory_type) };
            Arc::new(rig.pool(&info).unwrap())
        });
        test(&rig, pool.clone());
        if let Some(pool) = pool {
            rig.destroy_pool(Arc::into_inner(pool).unwrap());
        }
    }
}

/// Whether what the host writes to a type has to be flushed.
pub fn is_coherent(rig: &Rig, memory_type: u32) -> bool {
    rig.properties(memory_type).contains(HOST_COHERENT)
}

/// A clock with one lane whose recordings are done in order.
pub struct Time {
    pub clock: Clock,
    pub lane: LaneId,
    submitted: u64,
}

impl Time {
    pub fn new() -> Self {
        let clock = Clock::new();
        let lane = clock.add_lane().unwrap();
        Self { clock, lane, submitted: 0 }
    }

    /// A ticket that is submitted already: the tests look at memory, not at the clock.
    pub fn submitted(&mut self) -> Ticket {
        self.submitted += 1;
        let ticket = self.clock.open(self.lane);
        self.clock.submit(ticket, self.submitted).unwrap();
        ticket
    }

    /// The first `count` submissions are done.
    pub fn finish(&self, count: u64) {
        self.clock.completed(self.lane, count);
    }
}

/// Submissions that copy uploads to a buffer of the device's, held back until their fence is waited for.
pub struct Copies<'a> {
    rig: &'a Rig,
    pool: vk::CommandPool,
    pub target: (vk::Buffer, Allocation),
    fences: Vec<vk::Fence>,
}

impl<'a> Copies<'a> {
    pub fn new(rig: &'a Rig, bytes: u64, slots: usize) -> Self {
        let device = rig.gpu.device();
        let pool_info = vk::CommandPoolCreateInfo::default().queue_family_index(rig.gpu.queue_family_index());
        // SAFETY: the create-info is valid.
        let pool = unsafe { device.create_command_pool(&pool_info, None) }.unwrap();
        let own = sublet::AllocationCreateInfo::new(sublet::MemoryUsage::Auto);
        let target = rig.buffer(bytes, vk::BufferUsageFlags::TRANSFER_DST, &own).unwrap();
        let signaled = vk::FenceCreateInfo::default().flags(vk::FenceCreateFlags::SIGNALED);
        // SAFETY: the create-info is valid.
        let fences = (0..slots).map(|_| unsafe { device.create_fence(&signaled, None) }.unwrap()).collect();
        rig.gpu.hold_submissions(true);
        Self { rig, pool, target, fences }
    }

    /// Waits for what a slot submitted last.
    pub fn wait(&self, slot: usize) {
        // SAFETY: the fence is signaled, or was submitted.
        unsafe { self.rig.gpu.device().wait_for_fences(&[self.fences[slot]], true, u64::MAX) }.unwrap();
    }

    pub fn submit(&self, slot: usize, uploads: &[(Upload, u64)]) {
        let device = self.rig.gpu.device();
        let info = vk::CommandBufferAllocateInfo::default().command_pool(self.pool).command_buffer_count(1);
        // SAFETY: the pool is live.
        let commands = unsafe { device.allocate_command_buffers(&info) }.unwrap()[0];
        let once = vk::CommandBufferBeginInfo::default();
        // SAFETY: it was made just now.
        unsafe { device.begin_command_buffer(commands, &once) }.unwrap();
        for (upload, to) in uploads {
            let region = [upload.copy_to(*to)];
            // SAFETY: both buffers are bound and have as many bytes.
            unsafe { device.cmd_copy_buffer(commands, upload.buffer, self.target.0, &region) };
        }
        // SAFETY: it is being recorded.
        unsafe { device.end_command_buffer(commands) }.unwrap();
        // SAFETY: the slot was waited for.
        unsafe { device.reset_fences(&[self.fences[slot]]) }.unwrap();
        let list = [commands];
        let submit = [vk::SubmitInfo::default().command_buffers(&list)];
        // SAFETY: the command buffer is recorded, and what it names stays until the fence is waited for: that is what
        // is tested.
        unsafe { device.queue_submit(self.rig.gpu.queue(), &submit, self.fences[slot]) }.unwrap();
    }

    /// Waits for everything, and answers what the device has copied.
    pub fn finish(self) -> Vec<u8> {
        let device = self.rig.gpu.device();
        // SAFETY: the device is live.
        unsafe { device.device_wait_idle() }.unwrap();
        self.rig.gpu.hold_submissions(false);
        let (_, allocation) = &self.target;
        let size = allocation.size() as usize;
        let copied = self.rig.read_memory(allocation.memory(), allocation.offset(), size).unwrap();
        for fence in self.fences {
            // SAFETY: the device is idle.
            unsafe { device.destroy_fence(fence, None) };
        }
        // SAFETY: the device is idle.
        unsafe { device.destroy_command_pool(self.pool, None) };
        self.rig.destroy_buffer(self.target);
        copied
    }
}
