//! gpu-allocator.
#![expect(unsafe_code, reason = "calls Vulkan and other allocators")]

use ash::vk;
use gpu_allocator::vulkan::{
    Allocation, AllocationCreateDesc, AllocationScheme, Allocator, AllocatorCreateDesc,
};
use gpu_allocator::{AllocationSizes, AllocatorDebugSettings, MemoryLocation};

use super::{Creates, Peer, PeerMode, PeerResource};
use crate::gpu::TestGpu;
use crate::script::{PeerRequest, PeerRequestKind};

/// An allocator, without the lock that its users need.
pub(super) struct GpuAllocator {
    allocator: Allocator,
    device: ash::Device,
}

/// Creates an allocator for the device, with default settings.
pub(super) fn create(gpu: &TestGpu) -> Result<Allocator, String> {
    let allocator = Allocator::new(&AllocatorCreateDesc {
        instance: gpu.instance().clone(),
        device: gpu.device().clone(),
        physical_device: gpu.physical_device(),
        debug_settings: AllocatorDebugSettings::default(),
        buffer_device_address: false,
        allocation_sizes: AllocationSizes::default(),
    });
    allocator.map_err(|error| error.to_string())
}

impl GpuAllocator {
    pub(super) fn new(gpu: &TestGpu, shape: PeerMode) -> Result<Option<Self>, String> {
        // It has no pools.
        if !matches!(shape, PeerMode::Default | PeerMode::Created) {
            return Ok(None);
        }
        Ok(Some(Self { allocator: create(gpu)?, device: gpu.device().clone() }))
    }

    fn memory(
        &mut self,
        requirements: vk::MemoryRequirements,
        location: MemoryLocation,
        linear: bool,
    ) -> Option<Allocation> {
        let allocated = self.allocator.allocate(&AllocationCreateDesc {
            name: "peer",
            requirements,
            location,
            linear,
            allocation_scheme: AllocationScheme::GpuAllocatorManaged,
        });
        allocated.ok()
    }
}

impl Peer for GpuAllocator {
    type Allocation = Allocation;

    #[inline]
    fn allocate(&mut self, request: &PeerRequest) -> Option<Allocation> {
        let requirements = vk::MemoryRequirements {
            size: request.size,
            alignment: request.alignment,
            memory_type_bits: u32::MAX,
        };
        self.memory(requirements, MemoryLocation::GpuOnly, true)
    }

    #[inline]
    fn free(&mut self, allocation: Allocation) {
        let freed = self.allocator.free(allocation);
        assert!(freed.is_ok(), "gpu-allocator does not know its own allocation");
    }

    fn live(&self) -> Option<u64> {
        Some(self.allocator.generate_report().allocations.len() as u64)
    }

    fn finish(self) -> Result<(), String> {
        let live = self.allocator.generate_report().allocations.len();
        if live == 0 { Ok(()) } else { Err(format!("gpu-allocator still has {live} allocations")) }
    }
}

impl Creates for GpuAllocator {
    #[inline]
    fn create(&mut self, request: &PeerRequest) -> Option<(PeerResource, Allocation)> {
        let (resource, requirements) = PeerResource::create(&self.device, request)?;
        let (location, linear) = match request.kind {
            PeerRequestKind::Upload => (MemoryLocation::CpuToGpu, true),
            kind => (MemoryLocation::GpuOnly, kind == PeerRequestKind::Buffer),
        };
        let Some(allocation) = self.memory(requirements, location, linear) else {
            resource.destroy(&self.device);
            return None;
        };
        // SAFETY: the memory lives as long as the resource.
        let memory = unsafe { allocation.memory() };
        if resource.bind(&self.device, memory, allocation.offset()) {
            return Some((resource, allocation));
        }
        self.destroy(resource, allocation);
        None
    }

    #[inline]
    fn destroy(&mut self, resource: PeerResource, allocation: Allocation) {
        resource.destroy(&self.device);
        self.free(allocation);
    }
}
