//! Pictures that the host reads: a pool of memory that it reads fast, with a buffer for each frame in flight.

use ash::vk;
use sublet::{
    Allocation, AllocationCreateFlags as Flags, AllocationCreateInfo, Allocator, MemoryUsage, Pool,
    PoolCreateInfo,
};

use crate::passes::HALF;
use crate::picture::Picture;
use crate::support::Result;

pub(crate) struct Readback {
    pool: Pool,
    pub(crate) buffers: Vec<(vk::Buffer, Allocation)>,
}

impl Readback {
    pub(crate) fn new(allocator: &Allocator, count: u32) -> Result<Self> {
        let size = 4 * HALF.map(u64::from).iter().product::<u64>();
        let info = vk::BufferCreateInfo::default().size(size).usage(vk::BufferUsageFlags::TRANSFER_DST);
        let read = AllocationCreateInfo {
            flags: Flags::HOST_ACCESS_RANDOM,
            ..AllocationCreateInfo::new(MemoryUsage::AutoPreferHost)
        };
        // SAFETY: the create-info is valid.
        let memory_type = unsafe { allocator.find_memory_type_index_for_buffer_info(&info, &read) }?;
        let pool = allocator.create_pool(&PoolCreateInfo {
            // One block, and as large as it has to be.
            block_size: (size + (64 << 10)) * u64::from(count),
            max_block_count: 1,
            name: Some("readback"),
            ..PoolCreateInfo::new(memory_type)
        })?;
        let mut buffers = Vec::new();
        for number in 0..count {
            let name = format!("readback {number}");
            let in_pool = AllocationCreateInfo {
                flags: Flags::MAPPED,
                name: Some(&name),
                ..AllocationCreateInfo::in_pool(&pool)
            };
            // SAFETY: the create-info is valid.
            buffers.push(unsafe { allocator.create_buffer(&info, &in_pool) }?);
        }
        Ok(Self { pool, buffers })
    }

    /// What the last frame of a slot has copied there. The device has to be done with it.
    pub(crate) fn picture(&self, allocator: &Allocator, slot: usize) -> Result<Picture> {
        let (_, memory) = &self.buffers[slot];
        let mut texels = vec![0; 4 * HALF.map(usize::from).iter().product::<usize>()];
        // Invalidates what the host may have in its caches, where the memory needs it.
        allocator.copy_from_allocation(memory, 0, &mut texels)?;
        Ok(Picture { extent: HALF, texels })
    }

    /// # Safety
    /// The device is done with it.
    pub(crate) unsafe fn destroy(self, allocator: &Allocator) -> Result<()> {
        for (buffer, memory) in self.buffers {
            // SAFETY: the caller's own promise.
            unsafe { allocator.destroy_buffer(buffer, memory) }?;
        }
        // SAFETY: as above.
        let forgotten = unsafe { allocator.destroy_pool(self.pool) }?;
        if forgotten.is_empty() { Ok(()) } else { Err(format!("forgotten: {forgotten:?}").into()) }
    }
}
