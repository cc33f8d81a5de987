//! The descriptor buffers that are bound in the command buffer: a page, and buffers of the program.
#![expect(unsafe_code, reason = "calls Vulkan, or has its caller promise what Vulkan asks")]

use ash::vk;

use crate::device::DescriptorDevice;
use crate::driver::DescriptorDriver;
use sublet_engines::cast::{index, narrow};

/// The maximum number of bound program buffers: two of resources and two of samplers.
const MOST: usize = 4;

/// A descriptor buffer of the program.
pub(super) type Own = (vk::DeviceAddress, vk::BufferUsageFlags);

/// The index of the page, which is always the first bound buffer.
pub(super) const PAGE: u32 = 0;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct BoundBuffers {
    /// Null if nothing is bound.
    pub(super) page: vk::Buffer,
    /// The address of the page.
    pub(super) address: vk::DeviceAddress,
    own: [Own; MOST],
    count: usize,
}

impl BoundBuffers {
    pub(super) const NOTHING: Self = Self {
        page: vk::Buffer::null(),
        address: 0,
        own: [(0, vk::BufferUsageFlags::empty()); MOST],
        count: 0,
    };

    /// Returns the maximum number of program buffers that can be bound beside the page.
    pub(super) fn most(device: &DescriptorDevice) -> usize {
        let all = device.driver().facts.buffer.max_descriptor_buffer_bindings;
        MOST.min(index(all.saturating_sub(1)))
    }

    /// Returns the index at which a program buffer is bound.
    pub(super) fn number(&self, own: Own) -> Option<u32> {
        let at = self.own[..self.count].iter().position(|&bound| bound == own)?;
        Some(PAGE + 1 + narrow(at))
    }

    /// Adds a program buffer. Returns true if there was space.
    pub(super) fn add(&mut self, own: Own, most: usize) -> bool {
        let room = self.count < most;
        if room {
            self.own[self.count] = own;
            self.count += 1;
        }
        room
    }

    /// Binds all buffers.
    ///
    /// # Safety
    /// This thread alone records the command buffer. The page and each other buffer have the given usages, and their
    /// number is within the device's limit.
    pub(super) unsafe fn bind(
        &self,
        driver: &DescriptorDriver,
        commands: vk::CommandBuffer,
        usage: vk::BufferUsageFlags,
    ) {
        let mut handle =
            vk::DescriptorBufferBindingPushDescriptorBufferHandleEXT::default().buffer(self.page);
        let info =
            |address, usage| vk::DescriptorBufferBindingInfoEXT::default().address(address).usage(usage);
        let mut infos = [vk::DescriptorBufferBindingInfoEXT::default(); MOST + 1];
        for (info_of, &(address, usage)) in infos[1..].iter_mut().zip(&self.own[..self.count]) {
            *info_of = info(address, usage);
        }
        let has_push = usage.contains(vk::BufferUsageFlags::PUSH_DESCRIPTORS_DESCRIPTOR_BUFFER_EXT);
        infos[0] = info(self.address, usage);
        if has_push {
            infos[0] = infos[0].push_next(&mut handle);
        }
        // SAFETY: the caller promises that this thread alone records the command buffer, that all buffers have these
        // usages, and that the device allows this many.
        unsafe { driver.cmd_bind_buffers(commands, &infos[..=self.count]) };
    }
}
