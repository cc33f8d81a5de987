//! gpu-allocator. It has no pools, and maps every host-visible block while the block lives. Mapping an allocation
//! therefore does nothing.
#![expect(unsafe_code, reason = "calls Vulkan and other allocators")]

use ash::vk;
use gpu_allocator::vulkan::{
    Allocation, AllocationCreateDesc, AllocationScheme, Allocator, AllocatorCreateDesc,
};
use gpu_allocator::{AllocationSizes, AllocatorDebugSettings, MemoryLocation};
use sublet::ResourceKind;

use super::{Peer, PeerMode, PeerResource, WholePeer};
use crate::gpu::TestGpu;
use crate::replay::script::{Host, ScriptRequest};
use crate::script::{PeerRequest, PeerRequestKind};

/// An allocator, without the lock that its users need.
pub(super) struct GpuAllocator {
    allocator: Allocator,
    device: ash::Device,
    memory: vk::PhysicalDeviceMemoryProperties,
}

/// Returns the location for a request. Must suit the memory type, or the allocation would fail.
fn location(ask: &ScriptRequest, flags: vk::MemoryPropertyFlags) -> MemoryLocation {
    let coherent = vk::MemoryPropertyFlags::HOST_VISIBLE | vk::MemoryPropertyFlags::HOST_COHERENT;
    match ask.host {
        Host::Writes if flags.contains(coherent) => MemoryLocation::CpuToGpu,
        Host::Reads if flags.contains(coherent) => MemoryLocation::GpuToCpu,
        Host::Never if flags.contains(vk::MemoryPropertyFlags::DEVICE_LOCAL) => MemoryLocation::GpuOnly,
        _ => MemoryLocation::Unknown,
    }
}

impl GpuAllocator {
    pub(super) fn new(gpu: &TestGpu, shape: PeerMode) -> Result<Option<Self>, String> {
        if !matches!(shape, PeerMode::Default | PeerMode::Created) {
            return Ok(None);
        }
        let allocator = Allocator::new(&AllocatorCreateDesc {
            instance: gpu.instance().clone(),
            device: gpu.device().clone(),
            physical_device: gpu.physical_device(),
            debug_settings: AllocatorDebugSettings::default(),
            buffer_device_address: false,
            allocation_sizes: AllocationSizes::default(),
        });
        let allocator = allocator.map_err(|error| error.to_string())?;
        Ok(Some(Self { allocator, device: gpu.device().clone(), memory: gpu.memory() }))
    }

    fn memory(
        &mut self,
        requirements: vk::MemoryRequirements,
        location: MemoryLocation,
        linear: bool,
        allocation_scheme: AllocationScheme,
    ) -> Option<Allocation> {
        let allocated = self.allocator.allocate(&AllocationCreateDesc {
            name: "peer",
            requirements,
            location,
            linear,
            allocation_scheme,
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
        self.memory(requirements, MemoryLocation::GpuOnly, true, AllocationScheme::GpuAllocatorManaged)
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

impl WholePeer for GpuAllocator {
    #[inline]
    fn create(&mut self, request: &PeerRequest) -> Option<(PeerResource, Allocation)> {
        let (resource, requirements) = PeerResource::create(&self.device, request)?;
        let (location, linear) = match request.kind {
            PeerRequestKind::Upload => (MemoryLocation::CpuToGpu, true),
            kind => (MemoryLocation::GpuOnly, kind == PeerRequestKind::Buffer),
        };
        let scheme = AllocationScheme::GpuAllocatorManaged;
        let Some(allocation) = self.memory(requirements, location, linear, scheme) else {
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
    #[inline]
    fn play(&mut self, ask: &ScriptRequest) -> Option<Allocation> {
        let requirements = vk::MemoryRequirements {
            size: ask.size,
            alignment: ask.alignment,
            memory_type_bits: 1 << ask.memory_type,
        };
        let location = location(ask, self.memory.memory_types[ask.memory_type as usize].property_flags);
        let linear = matches!(ask.kind, ResourceKind::Buffer | ResourceKind::ImageLinear);
        let scheme = match ask.dedicated {
            // The actual buffer does not matter to it.
            true => AllocationScheme::DedicatedBuffer(vk::Buffer::null()),
            false => AllocationScheme::GpuAllocatorManaged,
        };
        self.memory(requirements, location, linear, scheme)
    }

    fn map(&mut self, allocation: &mut Allocation) -> bool {
        allocation.mapped_ptr().is_some()
    }

    fn unmap(&mut self, _: &mut Allocation) {}
}
