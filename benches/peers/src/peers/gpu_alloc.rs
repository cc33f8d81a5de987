//! gpu-alloc: a buddy allocator by default, a free list for transient memory. It has no pools and does not support
//! granularity, so its users have to round up.
#![expect(unsafe_code, reason = "calls Vulkan and other allocators")]

use std::borrow::Cow;
use std::ptr::NonNull;

use ash::vk;
use gpu_alloc::{
    AllocationFlags, Config, Dedicated, DeviceMapError, DeviceProperties, GpuAllocator, MappedMemoryRange,
    MemoryBlock, MemoryDevice, MemoryHeap, MemoryPropertyFlags, MemoryType, OutOfMemory, Request, UsageFlags,
};

use super::{Peer, PeerMode, PeerResource, WholePeer};
use crate::gpu::TestGpu;
use crate::replay::script::{Host, ScriptRequest};
use crate::script::PeerRequest;

/// An allocator, without the lock that its users need.
pub(super) struct GpuAlloc {
    allocator: GpuAllocator<vk::DeviceMemory>,
    device: GpuAllocDevice,
    usage: UsageFlags,
    granularity: u64,
    live: u64,
}

/// A block and its map count, because gpu-alloc allows only one mapping.
pub(super) struct GpuAllocBlock {
    block: MemoryBlock<vk::DeviceMemory>,
    mappings: u32,
}

/// gpu-alloc's interface to the driver.
struct GpuAllocDevice(ash::Device);

fn out_of_memory(error: vk::Result) -> OutOfMemory {
    match error {
        vk::Result::ERROR_OUT_OF_HOST_MEMORY => OutOfMemory::OutOfHostMemory,
        _ => OutOfMemory::OutOfDeviceMemory,
    }
}

fn ranges<'a>(ranges: &[MappedMemoryRange<'_, vk::DeviceMemory>]) -> Vec<vk::MappedMemoryRange<'a>> {
    let range = |range: &MappedMemoryRange<'_, vk::DeviceMemory>| {
        vk::MappedMemoryRange::default().memory(*range.memory).offset(range.offset).size(range.size)
    };
    ranges.iter().map(range).collect()
}

impl MemoryDevice<vk::DeviceMemory> for GpuAllocDevice {
    unsafe fn allocate_memory(
        &self,
        size: u64,
        memory_type: u32,
        _: AllocationFlags,
    ) -> Result<vk::DeviceMemory, OutOfMemory> {
        let info = vk::MemoryAllocateInfo::default().allocation_size(size).memory_type_index(memory_type);
        // SAFETY: guaranteed by the caller.
        unsafe { self.0.allocate_memory(&info, None) }.map_err(out_of_memory)
    }

    unsafe fn deallocate_memory(&self, memory: vk::DeviceMemory) {
        // SAFETY: guaranteed by the caller.
        unsafe { self.0.free_memory(memory, None) };
    }

    unsafe fn map_memory(
        &self,
        memory: &mut vk::DeviceMemory,
        offset: u64,
        size: u64,
    ) -> Result<NonNull<u8>, DeviceMapError> {
        let flags = vk::MemoryMapFlags::empty();
        // SAFETY: guaranteed by the caller.
        let mapped = unsafe { self.0.map_memory(*memory, offset, size, flags) };
        mapped.ok().and_then(|data| NonNull::new(data.cast())).ok_or(DeviceMapError::MapFailed)
    }

    unsafe fn unmap_memory(&self, memory: &mut vk::DeviceMemory) {
        // SAFETY: guaranteed by the caller.
        unsafe { self.0.unmap_memory(*memory) };
    }

    unsafe fn invalidate_memory_ranges(
        &self,
        all: &[MappedMemoryRange<'_, vk::DeviceMemory>],
    ) -> Result<(), OutOfMemory> {
        // SAFETY: guaranteed by the caller.
        unsafe { self.0.invalidate_mapped_memory_ranges(&ranges(all)) }.map_err(out_of_memory)
    }

    unsafe fn flush_memory_ranges(
        &self,
        all: &[MappedMemoryRange<'_, vk::DeviceMemory>],
    ) -> Result<(), OutOfMemory> {
        // SAFETY: guaranteed by the caller.
        unsafe { self.0.flush_mapped_memory_ranges(&ranges(all)) }.map_err(out_of_memory)
    }
}

impl GpuAlloc {
    pub(super) fn new(gpu: &TestGpu, shape: PeerMode) -> Option<Self> {
        let usage = match shape {
            PeerMode::Default | PeerMode::Created => UsageFlags::FAST_DEVICE_ACCESS,
            // Its replacement for linear pools.
            PeerMode::LinearPool { .. } => UsageFlags::FAST_DEVICE_ACCESS | UsageFlags::TRANSIENT,
            _ => return None,
        };
        let memory = gpu.memory();
        let kind = |kind: &vk::MemoryType| MemoryType {
            heap: kind.heap_index,
            props: MemoryPropertyFlags::from_bits_truncate(kind.property_flags.as_raw() as u8),
        };
        let heap = |heap: &vk::MemoryHeap| MemoryHeap { size: heap.size };
        // SAFETY: the physical device belongs to this live instance.
        let properties = unsafe { gpu.instance().get_physical_device_properties(gpu.physical_device()) };
        let limits = &properties.limits;
        let allocator = GpuAllocator::new(
            // Its only configuration for current GPUs.
            Config::i_am_prototyping(),
            DeviceProperties {
                memory_types: Cow::Owned(memory.memory_types_as_slice().iter().map(kind).collect()),
                memory_heaps: Cow::Owned(memory.memory_heaps_as_slice().iter().map(heap).collect()),
                max_memory_allocation_count: limits.max_memory_allocation_count,
                max_memory_allocation_size: 4 << 30,
                non_coherent_atom_size: limits.non_coherent_atom_size.max(1),
                buffer_device_address: false,
            },
        );
        let granularity = limits.buffer_image_granularity.max(1);
        Some(Self { allocator, device: GpuAllocDevice(gpu.device().clone()), usage, granularity, live: 0 })
    }

    #[inline]
    fn memory(&mut self, request: Request, dedicated: bool) -> Option<GpuAllocBlock> {
        let block = if dedicated {
            // SAFETY: it was created with the properties of this device.
            unsafe { self.allocator.alloc_with_dedicated(&self.device, request, Dedicated::Required) }
        } else {
            // SAFETY: as above.
            unsafe { self.allocator.alloc(&self.device, request) }
        };
        let block = block.ok()?;
        self.live += 1;
        Some(GpuAllocBlock { block, mappings: 0 })
    }

    /// Returns a request that keeps the granularity.
    fn rounded(&self, size: u64, alignment: u64, usage: UsageFlags, memory_types: u32) -> Request {
        Request {
            size: size.next_multiple_of(self.granularity),
            align_mask: alignment.max(self.granularity) - 1,
            usage,
            memory_types,
        }
    }
}

impl Peer for GpuAlloc {
    type Allocation = GpuAllocBlock;

    #[inline]
    fn allocate(&mut self, request: &PeerRequest) -> Option<GpuAllocBlock> {
        let align_mask = request.alignment - 1;
        let request = Request { size: request.size, align_mask, usage: self.usage, memory_types: u32::MAX };
        self.memory(request, false)
    }

    #[inline]
    fn free(&mut self, mut held: GpuAllocBlock) {
        if held.mappings > 0 {
            // SAFETY: the block belongs to this device.
            unsafe { held.block.unmap(&self.device) };
        }
        self.live -= 1;
        // SAFETY: the block belongs to this allocator, which was created for this device.
        unsafe { self.allocator.dealloc(&self.device, held.block) };
    }

    fn live(&self) -> Option<u64> {
        Some(self.live)
    }

    fn finish(mut self) -> Result<(), String> {
        // SAFETY: it was created for this device.
        unsafe { self.allocator.cleanup(&self.device) };
        if self.live == 0 { Ok(()) } else { Err(format!("gpu-alloc still has {} allocations", self.live)) }
    }
}

impl WholePeer for GpuAlloc {
    #[inline]
    fn create(&mut self, request: &PeerRequest) -> Option<(PeerResource, GpuAllocBlock)> {
        let (resource, requirements) = PeerResource::create(&self.device.0, request)?;
        let vk::MemoryRequirements { size, alignment, memory_type_bits } = requirements;
        let request = self.rounded(size, alignment, self.usage, memory_type_bits);
        let Some(held) = self.memory(request, false) else {
            resource.destroy(&self.device.0);
            return None;
        };
        if resource.bind(&self.device.0, *held.block.memory(), held.block.offset()) {
            return Some((resource, held));
        }
        self.destroy(resource, held);
        None
    }

    #[inline]
    fn destroy(&mut self, resource: PeerResource, held: GpuAllocBlock) {
        resource.destroy(&self.device.0);
        self.free(held);
    }
    #[inline]
    fn play(&mut self, ask: &ScriptRequest) -> Option<GpuAllocBlock> {
        let usage = match ask.host {
            Host::Never => UsageFlags::FAST_DEVICE_ACCESS,
            Host::Writes => UsageFlags::HOST_ACCESS | UsageFlags::UPLOAD,
            Host::Reads => UsageFlags::HOST_ACCESS | UsageFlags::DOWNLOAD,
        };
        let request = self.rounded(ask.size, ask.alignment, usage, 1 << ask.memory_type);
        let mut held = self.memory(request, ask.dedicated)?;
        if ask.mapped && !self.map(&mut held) {
            self.free(held);
            return None;
        }
        Some(held)
    }

    #[inline]
    fn map(&mut self, held: &mut GpuAllocBlock) -> bool {
        let size = held.block.size() as usize;
        // SAFETY: the block belongs to this device.
        let mapped = held.mappings > 0 || unsafe { held.block.map(&self.device, 0, size) }.is_ok();
        held.mappings += u32::from(mapped);
        mapped
    }

    #[inline]
    fn unmap(&mut self, held: &mut GpuAllocBlock) {
        held.mappings -= 1;
        if held.mappings == 0 {
            // SAFETY: the block belongs to this device.
            unsafe { held.block.unmap(&self.device) };
        }
    }
}
