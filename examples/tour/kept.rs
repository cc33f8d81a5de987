//! Objects that the scenes keep until the end.

use ash::vk;
use sublet::{Allocation, AllocationCreateInfo, Allocator, Pool, PoolCreateInfo};

use sublet_examples::{Context, Result};

/// The device, the allocator, and their live objects.
pub(crate) struct Kept<'a> {
    pub(crate) context: &'a Context,
    pub(crate) allocator: &'a Allocator,
    pub(crate) buffers: Vec<(vk::Buffer, Allocation)>,
    pub(crate) images: Vec<(vk::Image, Allocation)>,
    pub(crate) memory: Vec<Allocation>,
    pub(crate) pools: Vec<Pool>,
}

impl<'a> Kept<'a> {
    pub(crate) fn new(context: &'a Context, allocator: &'a Allocator) -> Self {
        Self {
            context,
            allocator,
            buffers: Vec::new(),
            images: Vec::new(),
            memory: Vec::new(),
            pools: Vec::new(),
        }
    }

    /// Creates a pool that lives until the end, and returns its index.
    pub(crate) fn pool(&mut self, info: &PoolCreateInfo<'_>) -> Result<usize> {
        self.pools.push(self.allocator.create_pool(info)?);
        Ok(self.pools.len() - 1)
    }

    /// Creates a buffer that the scene itself destroys.
    pub(crate) fn buffer(
        &self,
        size: u64,
        usage: vk::BufferUsageFlags,
        info: &AllocationCreateInfo<'_>,
    ) -> Result<(vk::Buffer, Allocation)> {
        let buffer_info = vk::BufferCreateInfo::default().size(size).usage(usage);
        // SAFETY: the create-info is valid: no flags, no chain, one queue family.
        Ok(unsafe { self.allocator.create_buffer(&buffer_info, info) }?)
    }

    /// Destroys a buffer that the device has finished using.
    pub(crate) fn destroy_buffer(&self, (buffer, allocation): (vk::Buffer, Allocation)) -> Result<()> {
        // SAFETY: the scenes wait for the device before they destroy anything that it used.
        Ok(unsafe { self.allocator.destroy_buffer(buffer, allocation) }?)
    }

    /// Frees everything, then the empty blocks. Returns the bytes of the blocks.
    pub(crate) fn give_back(self) -> Result<u64> {
        // SAFETY: the device is live.
        unsafe { self.context.device().device_wait_idle() }?;
        for (buffer, allocation) in self.buffers.into_iter().rev() {
            // SAFETY: the device is idle.
            unsafe { self.allocator.destroy_buffer(buffer, allocation) }?;
        }
        for (image, allocation) in self.images.into_iter().rev() {
            // SAFETY: the device is idle.
            unsafe { self.allocator.destroy_image(image, allocation) }?;
        }
        for allocation in self.memory.into_iter().rev() {
            // SAFETY: the device is idle, and nothing is bound to the memory any more.
            unsafe { self.allocator.free_memory(allocation) }?;
        }
        for pool in self.pools {
            // SAFETY: the device is idle; everything in the pool is freed, and the result is checked.
            let leaks = unsafe { self.allocator.destroy_pool(pool) }?;
            if let Some(leak) = leaks.first() {
                return Err(format!("a pool still has {leak}").into());
            }
        }
        Ok(self.allocator.trim())
    }
}

/// Returns a sampled 2D image with one level.
pub(crate) fn texture(width: u32, height: u32) -> vk::ImageCreateInfo<'static> {
    image(width, height, vk::Format::R8G8B8A8_UNORM).usage(
        vk::ImageUsageFlags::SAMPLED | vk::ImageUsageFlags::TRANSFER_DST | vk::ImageUsageFlags::TRANSFER_SRC,
    )
}

/// Returns a 2D image with one level.
pub(crate) fn image(width: u32, height: u32, format: vk::Format) -> vk::ImageCreateInfo<'static> {
    vk::ImageCreateInfo::default()
        .image_type(vk::ImageType::TYPE_2D)
        .format(format)
        .extent(vk::Extent3D { width, height, depth: 1 })
        .mip_levels(1)
        .array_layers(1)
        .samples(vk::SampleCountFlags::TYPE_1)
}
