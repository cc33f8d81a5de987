//! Sublet behind gpu-allocator's interface, with the sizes that wgpu gives it.

use ash::vk;
use gpu_allocator_stand_in::vulkan::{
    Allocation, AllocationCreateDesc, AllocationScheme, Allocator, AllocatorCreateDesc,
};
use gpu_allocator_stand_in::{AllocationSizes, AllocatorDebugSettings, MemoryLocation};
use sublet::ResourceKind;

use super::gpu_allocator::{Use, use_of};
use super::{Plays, WgpuHint};
use crate::gpu::Gpu;
use crate::replay::gaps::Place;
use crate::replay::script::Ask;

pub(super) struct Player {
    allocator: Allocator,
    /// By memory type.
    types: Vec<vk::MemoryPropertyFlags>,
}

impl Player {
    pub(super) fn new(gpu: &Gpu, hint: WgpuHint) -> Result<Self, String> {
        let types = gpu.memory().memory_types_as_slice().iter().map(|kind| kind.property_flags).collect();
        let [device, host] = hint.sizes();
        let allocator = Allocator::new(&AllocatorCreateDesc {
            instance: gpu.instance().clone(),
            device: gpu.device().clone(),
            physical_device: gpu.physical_device(),
            debug_settings: AllocatorDebugSettings::default(),
            buffer_device_address: false,
            allocation_sizes: AllocationSizes::new(device[0], host[0])
                .with_max_device_memblock_size(device[1])
                .with_max_host_memblock_size(host[1]),
        });
        Ok(Self { allocator: allocator.map_err(|error| error.to_string())?, types })
    }
}

impl Plays for Player {
    type Allocation = Allocation;

    #[inline]
    fn allocate(&mut self, ask: &Ask) -> Option<Allocation> {
        let allocated = self.allocator.allocate(&AllocationCreateDesc {
            name: "peer",
            requirements: vk::MemoryRequirements {
                size: ask.size,
                alignment: ask.alignment,
                memory_type_bits: 1 << ask.memory_type,
            },
            location: match use_of(ask, self.types[ask.memory_type as usize]) {
                Use::Upload => MemoryLocation::CpuToGpu,
                Use::Readback => MemoryLocation::GpuToCpu,
                Use::Device => MemoryLocation::GpuOnly,
                Use::Unknown => MemoryLocation::Unknown,
            },
            linear: matches!(ask.kind, ResourceKind::Buffer | ResourceKind::ImageLinear),
            // The other schemes ask the driver what their buffer needs, and scripts have none.
            allocation_scheme: AllocationScheme::GpuAllocatorManaged,
        });
        allocated.ok()
    }

    #[inline]
    fn free(&mut self, allocation: Allocation) {
        let freed = self.allocator.free(allocation);
        assert!(freed.is_ok(), "the stand-in does not know its own allocation");
    }

    fn place(&self, allocation: &Allocation) -> Place {
        // SAFETY: it is only looked at.
        let memory = unsafe { allocation.memory() };
        Place { memory, offset: allocation.offset() }
    }

    fn map(&mut self, allocation: &mut Allocation) -> bool {
        allocation.mapped_ptr().is_some()
    }

    fn unmap(&mut self, _: &mut Allocation) {}

    fn finish(self) -> Result<(), String> {
        let live = self.allocator.generate_report().allocations.len();
        if live == 0 { Ok(()) } else { Err(format!("the stand-in still has {live} allocations")) }
    }
}
