//! Uploads with plain Vulkan calls.

use ash::vk;
use sublet::{Allocation, AllocationCreateFlags, AllocationCreateInfo, Allocator, MemoryUsage};
use sublet_examples::{Context, Result};

use crate::{Source, TARGET, chunks, copy, image_info, target_info, whole_image};

/// Plain Vulkan: a mapped buffer, a command buffer and a fence for each submission in flight.
pub(crate) struct Raw<'a> {
    context: &'a Context,
    allocator: &'a Allocator,
    pool: vk::CommandPool,
    pub(crate) slots: Vec<RawSlot>,
    buffer: (vk::Buffer, Option<Allocation>),
    image: (vk::Image, Option<Allocation>),
    next: usize,
}

pub(crate) struct RawSlot {
    commands: vk::CommandBuffer,
    fence: vk::Fence,
    staging: vk::Buffer,
    pub(crate) memory: Option<Allocation>,
    pub(crate) address: usize,
}

impl<'a> Raw<'a> {
    pub(crate) fn new(context: &'a Context, allocator: &'a Allocator) -> Result<Self> {
        let device = context.device();
        let info = vk::CommandPoolCreateInfo::default()
            .flags(vk::CommandPoolCreateFlags::RESET_COMMAND_BUFFER)
            .queue_family_index(context.queue_family_index());
        let pool = unsafe { device.create_command_pool(&info, None) }?;
        let info = vk::CommandBufferAllocateInfo::default().command_pool(pool).command_buffer_count(2);
        let done = vk::FenceCreateInfo::default().flags(vk::FenceCreateFlags::SIGNALED);
        let staging = vk::BufferCreateInfo::default()
            .size(TARGET.try_into()?)
            .usage(vk::BufferUsageFlags::TRANSFER_SRC);
        let mapped = AllocationCreateInfo {
            flags: AllocationCreateFlags::MAPPED | AllocationCreateFlags::HOST_ACCESS_SEQUENTIAL_WRITE,
            ..AllocationCreateInfo::new(MemoryUsage::AutoPreferHost)
        };
        let mut slots = Vec::new();
        for commands in unsafe { device.allocate_command_buffers(&info) }? {
            let fence = unsafe { device.create_fence(&done, None) }?;
            let (staging, memory) = unsafe { allocator.create_buffer(&staging, &mapped) }?;
            let pointer = memory.mapped_pointer().ok_or("the staging buffer is not mapped")?;
            let address = pointer.cast::<u8>().as_ptr().expose_provenance();
            slots.push(RawSlot { commands, fence, staging, memory: Some(memory), address });
        }
        let auto = AllocationCreateInfo::new(MemoryUsage::Auto);
        let (buffer, memory) = unsafe { allocator.create_buffer(&target_info(), &auto) }?;
        let (image, texels) = unsafe { allocator.create_image(&image_info(), &auto) }?;
        Ok(Self {
            context,
            allocator,
            pool,
            slots,
            buffer: (buffer, Some(memory)),
            image: (image, Some(texels)),
            next: 0,
        })
    }

    /// Copies `count` chunks to staging memory, unless `bytes` is `None`, and submits their copies.
    pub(crate) fn round(&mut self, source: Option<&mut Source>, size: usize, is_image: bool) -> Result<()> {
        let device = self.context.device();
        let slot = &self.slots[self.next];
        self.next = (self.next + 1) % self.slots.len();
        unsafe { device.wait_for_fences(&[slot.fence], true, u64::MAX) }?;
        unsafe { device.reset_fences(&[slot.fence]) }?;
        let once = vk::CommandBufferBeginInfo::default().flags(vk::CommandBufferUsageFlags::ONE_TIME_SUBMIT);
        unsafe { device.begin_command_buffer(slot.commands, &once) }?;
        if let Some(source) = source {
            for at in 0..chunks(size) {
                let from = source.chunk(size);
                copy(&source.bytes, (from, slot.address + at * size, size));
            }
            if let Some(memory) = &slot.memory {
                self.allocator.flush(memory, 0, vk::WHOLE_SIZE)?;
            }
        }
        let before = vk::ImageMemoryBarrier::default()
            .src_access_mask(vk::AccessFlags::TRANSFER_WRITE)
            .dst_access_mask(vk::AccessFlags::TRANSFER_WRITE)
            .old_layout(vk::ImageLayout::UNDEFINED)
            .new_layout(vk::ImageLayout::TRANSFER_DST_OPTIMAL)
            .src_queue_family_index(vk::QUEUE_FAMILY_IGNORED)
            .dst_queue_family_index(vk::QUEUE_FAMILY_IGNORED)
            .image(self.image.0)
            .subresource_range(vk::ImageSubresourceRange {
                aspect_mask: vk::ImageAspectFlags::COLOR,
                base_mip_level: 0,
                level_count: 1,
                base_array_layer: 0,
                layer_count: 1,
            });
        let images = if is_image { std::slice::from_ref(&before) } else { &[] };
        let memory = vk::MemoryBarrier::default()
            .src_access_mask(vk::AccessFlags::TRANSFER_WRITE)
            .dst_access_mask(vk::AccessFlags::TRANSFER_WRITE);
        let transfer = vk::PipelineStageFlags::TRANSFER;
        let none = vk::DependencyFlags::empty();
        unsafe {
            device.cmd_pipeline_barrier(slot.commands, transfer, transfer, none, &[memory], &[], images);
        }
        if is_image {
            let region = whole_image(0);
            let layout = vk::ImageLayout::TRANSFER_DST_OPTIMAL;
            unsafe {
                device.cmd_copy_buffer_to_image(slot.commands, slot.staging, self.image.0, layout, &[region]);
            }
        } else {
            for at in 0..chunks(size) {
                let at = u64::try_from(at * size)?;
                let region = vk::BufferCopy { src_offset: at, dst_offset: at, size: size.try_into()? };
                unsafe { device.cmd_copy_buffer(slot.commands, slot.staging, self.buffer.0, &[region]) };
            }
        }
        unsafe { device.end_command_buffer(slot.commands) }?;
        let commands = [slot.commands];
        let work = vk::SubmitInfo::default().command_buffers(&commands);
        unsafe { device.queue_submit(self.context.queue(), &[work], slot.fence) }?;
        Ok(())
    }

    pub(crate) fn finish(&self) -> Result<()> {
        Ok(unsafe { self.context.device().device_wait_idle() }?)
    }
}

impl Drop for Raw<'_> {
    fn drop(&mut self) {
        let device = self.context.device();
        let _ = self.finish();
        for slot in &mut self.slots {
            unsafe { device.destroy_fence(slot.fence, None) };
            let memory = slot.memory.take();
            memory.map(|memory| unsafe { self.allocator.destroy_buffer(slot.staging, memory) });
        }
        unsafe { device.destroy_command_pool(self.pool, None) };
        self.buffer.1.take().map(|memory| unsafe { self.allocator.destroy_buffer(self.buffer.0, memory) });
        self.image.1.take().map(|memory| unsafe { self.allocator.destroy_image(self.image.0, memory) });
    }
}
