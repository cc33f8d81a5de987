//! gpu-alloc: a buddy allocator by default, a free list for transient memory.
#![expect(unsafe_code, reason = "calls Vulkan and other allocators")]

use std::borrow::Cow;
use std::ptr::NonNull;

use ash::vk;
use gpu_alloc::{
    AllocationFlags, Config, DeviceMapError, DeviceProperties, GpuAllocator, MappedMemoryRange, MemoryBlock,
    MemoryDevice, MemoryHeap, MemoryPropertyFlags, MemoryType, OutOfMemory, UsageFlags,
};

use super::{Creates, Peer, PeerMode, PeerResource};
use crate::gpu::TestGpu;
use crate::script::PeerRequest;

/// An allocator, without the lock that its users need.
pub(super) struct GpuAlloc {
    allocator: GpuAllocator<vk::DeviceMemory>,
    device: GpuAllocDevice,
    usage: UsageFlags,
    granularity: u64,
    live: u64,
}

type GpuAllocBlock = MemoryBlock<vk::DeviceMemory>;

/// gpu-alloc's interface to the driver.
pub(super) struct GpuAllocDevice(ash::Device);

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

/// Returns an allocator for the device, its device interface, and the granularity that its users round up to.
pub(super) fn create(gpu: &TestGpu) -> (GpuAllocator<vk::DeviceMemory>, GpuAllocDevice, u64) {
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
    (allocator, GpuAllocDevice(gpu.device().clone()), granularity)
}

impl GpuAlloc {
    pub(super) fn new(gpu: &TestGpu, shape: PeerMode) -> Option<Self> {
        let usage = match shape {
            PeerMode::Default | PeerMode::Created => UsageFlags::FAST_DEVICE_ACCESS,
            // Its replacement for linear pools.
            PeerMode::LinearPool { .. } => UsageFlags::FAST_DEVICE_ACCESS | UsageFlags::TRANSIENT,
            _ => return None,
        };
        let (allocator, device, granularity) = create(gpu);
        Some(Self { allocator, device, usage, granularity, live: 0 })
    }

    #[inline]
    fn memory(&mut self, size: u64, alignment: u64, types: u32) -> Option<GpuAllocBlock> {
        let request =
            gpu_alloc::Request { size, align_mask: alignment - 1, usage: self.usage, memory_types: types };
        // SAFETY: it was created with the properties of this device.
        let block = unsafe { self.allocator.alloc(&self.device, request) }.ok()?;
        self.live += 1;
        Some(block)
    }
}

impl Peer for GpuAlloc {
    type Allocation = GpuAllocBlock;

    #[inline]
    fn allocate(&mut self, request: &PeerRequest) -> Option<GpuAllocBlock> {
        self.memory(request.size, request.alignment, u32::MAX)
    }

    #[inline]
    fn free(&mut self, block: GpuAllocBlock) {
        self.live -= 1;
        // SAFETY: the block belongs to this allocator, which was created for this device.
        unsafe { self.allocator.dealloc(&self.device, block) };
    }

    fn live(&self) -> Option<u64> {
        Some(self.live)
    }

    fn finish(mut self) -> Result<(), String> {
        // SAFETY: it was created for this device.
        unsafe { self.allocator.cleanup(&self.device) };
        Ok(())
    }
}

impl Creates for GpuAlloc {
    #[inline]
    fn create(&mut self, request: &PeerRequest) -> Option<(PeerResource, GpuAllocBlock)> {
        let (resource, requirements) = PeerResource::create(&self.device.0, request)?;
        // It does not support granularity, so its users have to round up.
        let size = requirements.size.next_multiple_of(self.granularity);
        let alignment = requirements.alignment.max(self.granularity);
        let Some(block) = self.memory(size, alignment, requirements.memory_type_bits) else {
            resource.destroy(&self.device.0);
            return None;
        };
        if resource.bind(&self.device.0, *block.memory(), block.offset()) {
            return Some((resource, block));
        }
        self.destroy(resource, block);
        None
    }

    #[inline]
    fn destroy(&mut self, resource: PeerResource, block: GpuAllocBlock) {
        resource.destroy(&self.device.0);
        self.free(block);
    }
}
