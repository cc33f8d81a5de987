//! gpu-allocator. It has no pools, and maps every host-visible block while the block lives. Mapping an allocation
//! therefore does nothing.

use ash::vk;
use gpu_allocator::MemoryLocation;
use gpu_allocator::vulkan::{Allocation, AllocationCreateDesc, AllocationScheme, Allocator};
use sublet::ResourceKind;

use super::Plays;
use crate::gpu::TestGpu;
use crate::peers::gpu_allocator::create;
use crate::replay::script::{Host, ScriptRequest};

pub(super) struct GpuAllocatorPlayer {
    allocator: Allocator,
    /// Properties by memory type.
    types: Vec<vk::MemoryPropertyFlags>,
}

impl GpuAllocatorPlayer {
    pub(super) fn new(gpu: &TestGpu) -> Result<Self, String> {
        let types = gpu.memory().memory_types_as_slice().iter().map(|kind| kind.property_flags).collect();
        Ok(Self { allocator: create(gpu)?, types })
    }
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

impl Plays for GpuAllocatorPlayer {
    type Allocation = Allocation;

    #[inline]
    fn allocate(&mut self, ask: &ScriptRequest) -> Option<Allocation> {
        let allocated = self.allocator.allocate(&AllocationCreateDesc {
            name: "peer",
            requirements: vk::MemoryRequirements {
                size: ask.size,
                alignment: ask.alignment,
                memory_type_bits: 1 << ask.memory_type,
            },
            location: location(ask, self.types[ask.memory_type as usize]),
            linear: matches!(ask.kind, ResourceKind::Buffer | ResourceKind::ImageLinear),
            allocation_scheme: match ask.dedicated {
                // The actual buffer does not matter to it.
                true => AllocationScheme::DedicatedBuffer(vk::Buffer::null()),
                false => AllocationScheme::GpuAllocatorManaged,
            },
        });
        allocated.ok()
    }

    #[inline]
    fn free(&mut self, allocation: Allocation) {
        let freed = self.allocator.free(allocation);
        assert!(freed.is_ok(), "gpu-allocator does not know its own allocation");
    }

    fn map(&mut self, allocation: &mut Allocation) -> bool {
        allocation.mapped_ptr().is_some()
    }

    fn unmap(&mut self, _: &mut Allocation) {}

    fn finish(self) -> Result<(), String> {
        match self.allocator.generate_report().allocations.len() {
            0 => Ok(()),
            live => Err(format!("gpu-allocator still has {live} allocations")),
        }
    }
}
