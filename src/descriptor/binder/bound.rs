//! Which descriptor buffers are bound in the command buffer: a page, and those of the program's own.

use ash::vk;

use crate::base::cast::{index, narrow};
use crate::descriptor::device::DescriptorDevice;
use crate::device::descriptors::DescriptorDriver;

/// The most buffers of the program's own that are bound at once: two of resources and two of samplers.
const MOST: usize = 4;

/// A descriptor buffer of the program's own.
pub(super) type Own = (vk::DeviceAddress, vk::BufferUsageFlags);

/// The buffers that are bound. The page is always the first.
pub(super) const PAGE: u32 = 0;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Bound {
    /// Null if nothing is bound.
    pub(super) page: vk::Buffer,
    /// Where the page is.
    pub(super) address: vk::DeviceAddress,
    own: [Own; MOST],
    count: usize,
}

impl Bound {
    pub(super) const NOTHING: Self = Self {
        page: vk::Buffer::null(),
        address: 0,
        own: [(0, vk::BufferUsageFlags::empty()); MOST],
        count: 0,
    };

    /// The most buffers of the program's own that can be bound beside the page.
    pub(super) fn most(device: &DescriptorDevice) -> usize {
        let all = device.driver().facts.buffer.max_descriptor_buffer_bindings;
        MOST.min(index(all.saturating_sub(1)))
    }

    /// The index at which a buffer of the program's own is bound.
    pub(super) fn number(&self, own: Own) -> Option<u32> {
        let at = self.own[..self.count].iter().position(|&bound| bound == own)?;
        Some(PAGE + 1 + narrow(at))
    }

    /// Adds a buffer of the program's own. Whether there was room.
    pub(super) fn add(&mut self, own: Own, most: usize) -> bool {
        let room = self.count < most;
        if room {
            self.own[self.count] = own;
            self.count += 1;
        }
        room
    }

    /// Binds all of them.
    ///
    /// # Safety
    /// This thread alone records the command buffer. The page and each other buffer have the usages that are given for
    /// them, and there are not more buffers than the device allows.
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
        // SAFETY: the caller promises that it alone records the commands, that all buffers have these usages, and that the
        // device allows so many.
        unsafe { driver.cmd_bind_buffers(commands, &infos[..=self.count]) };
    }
}
