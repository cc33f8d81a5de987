//! gpu-alloc. It has no pools and does not support granularity, so its users have to round up.
#![expect(unsafe_code, reason = "calls Vulkan and other allocators")]

use std::ptr::NonNull;

use ash::vk;
use gpu_alloc::{Dedicated, GpuAllocator, MemoryBlock, Request, UsageFlags};

use super::Plays;
use crate::gpu::TestGpu;
use crate::peers::gpu_alloc::{GpuAllocDevice, create};
use crate::replay::script::{Host, ScriptRequest};

pub(super) struct GpuAllocPlayer {
    allocator: GpuAllocator<vk::DeviceMemory>,
    device: GpuAllocDevice,
    granularity: u64,
    live: u64,
}

/// A block and its map count, because gpu-alloc allows only one mapping.
pub(super) struct BlockWithMappings {
    block: MemoryBlock<vk::DeviceMemory>,
    mappings: u32,
}

impl GpuAllocPlayer {
    pub(super) fn new(gpu: &TestGpu) -> Self {
        let (allocator, device, granularity) = create(gpu);
        Self { allocator, device, granularity, live: 0 }
    }

    fn map_block(&self, held: &mut BlockWithMappings) -> Option<NonNull<u8>> {
        let size = held.block.size() as usize;
        // SAFETY: the block belongs to this device.
        unsafe { held.block.map(&self.device, 0, size) }.ok()
    }
}

impl Plays for GpuAllocPlayer {
    type Allocation = BlockWithMappings;

    #[inline]
    fn allocate(&mut self, ask: &ScriptRequest) -> Option<BlockWithMappings> {
        let usage = match ask.host {
            Host::Never => UsageFlags::FAST_DEVICE_ACCESS,
            Host::Writes => UsageFlags::HOST_ACCESS | UsageFlags::UPLOAD,
            Host::Reads => UsageFlags::HOST_ACCESS | UsageFlags::DOWNLOAD,
        };
        let alignment = ask.alignment.max(self.granularity);
        let request = Request {
            size: ask.size.next_multiple_of(self.granularity),
            align_mask: alignment - 1,
            usage,
            memory_types: 1 << ask.memory_type,
        };
        let block = if ask.dedicated {
            // SAFETY: it was created with the properties of this device.
            unsafe { self.allocator.alloc_with_dedicated(&self.device, request, Dedicated::Required) }
        } else {
            // SAFETY: as above.
            unsafe { self.allocator.alloc(&self.device, request) }
        };
        let mut held = BlockWithMappings { block: block.ok()?, mappings: 0 };
        self.live += 1;
        if ask.mapped && !self.map(&mut held) {
            self.free(held);
            return None;
        }
        Some(held)
    }

    #[inline]
    fn free(&mut self, mut held: BlockWithMappings) {
        if held.mappings > 0 {
            // SAFETY: the block belongs to this device.
            unsafe { held.block.unmap(&self.device) };
        }
        self.live -= 1;
        // SAFETY: the block belongs to this allocator, which was created for this device.
        unsafe { self.allocator.dealloc(&self.device, held.block) };
    }

    #[inline]
    fn map(&mut self, held: &mut BlockWithMappings) -> bool {
        let mapped = held.mappings > 0 || self.map_block(held).is_some();
        held.mappings += u32::from(mapped);
        mapped
    }

    #[inline]
    fn unmap(&mut self, held: &mut BlockWithMappings) {
        held.mappings -= 1;
        if held.mappings == 0 {
            // SAFETY: the block belongs to this device.
            unsafe { held.block.unmap(&self.device) };
        }
    }

    fn finish(mut self) -> Result<(), String> {
        // SAFETY: it was created for this device.
        unsafe { self.allocator.cleanup(&self.device) };
        if self.live == 0 { Ok(()) } else { Err(format!("gpu-alloc still has {} allocations", self.live)) }
    }
}
