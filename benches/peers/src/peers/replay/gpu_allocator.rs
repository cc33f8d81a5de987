//! gpu-allocator. It has no pools, and maps every block that the host can see for as long as it lives: there is nothing to be done to
//! map an allocation.

use ash::vk;
use gpu_allocator::vulkan::{Allocation, AllocationCreateDesc, AllocationScheme, Allocator};
use gpu_allocator::{AllocationSizes, MemoryLocation};
use sublet::ResourceKind;

use super::{Plays, WgpuHint};
use crate::gpu::Gpu;
use crate::peers::gpu_allocator::create;
use crate::replay::gaps::Place;
use crate::replay::script::{Ask, Host};

pub(super) struct Player {
    allocator: Allocator,
    /// By memory type.
    types: Vec<vk::MemoryPropertyFlags>,
}

impl Player {
    pub(super) fn new(gpu: &Gpu, hint: Option<WgpuHint>) -> Result<Self, String> {
        let types = gpu.memory().memory_types_as_slice().iter().map(|kind| kind.property_flags).collect();
        let sizes = hint.map_or_else(AllocationSizes::default, |hint| {
            let [device, host] = hint.sizes();
            AllocationSizes::new(device[0], host[0])
                .with_max_device_memblock_size(device[1])
                .with_max_host_memblock_size(host[1])
        });
        Ok(Self { allocator: create(gpu, sizes)?, types })
    }
}

/// Which location is asked for.
pub(super) enum Use {
    Upload,
    Readback,
    Device,
    Unknown,
}

/// A location that the memory type does not have would be refused.
pub(super) fn use_of(ask: &Ask, flags: vk::MemoryPropertyFlags) -> Use {
    let coherent = vk::MemoryPropertyFlags::HOST_VISIBLE | vk::MemoryPropertyFlags::HOST_COHERENT;
    match ask.host {
        Host::Writes if flags.contains(coherent) => Use::Upload,
        Host::Reads if flags.contains(coherent) => Use::Readback,
        Host::Never if flags.contains(vk::MemoryPropertyFlags::DEVICE_LOCAL) => Use::Device,
        _ => Use::Unknown,
    }
}

impl Plays for Player {
    type Allocation = Allocation;

    #[inline]
    fn allocate(&mut self, ask: &Ask) -> Option<Allocation> {
        let bits = 1 << ask.memory_type;
        let location = match use_of(ask, self.types[ask.memory_type as usize]) {
            Use::Upload => MemoryLocation::CpuToGpu,
            Use::Readback => MemoryLocation::GpuToCpu,
            Use::Device => MemoryLocation::GpuOnly,
            Use::Unknown => MemoryLocation::Unknown,
        };
        let linear = matches!(ask.kind, ResourceKind::Buffer | ResourceKind::ImageLinear);
        let allocated = self.allocator.allocate(&AllocationCreateDesc {
            name: "peer",
            requirements: vk::MemoryRequirements {
                size: ask.size,
                alignment: ask.alignment,
                memory_type_bits: bits,
            },
            location,
            linear,
            allocation_scheme: match ask.dedicated {
                // Of which buffer does not matter to it.
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
        if live == 0 { Ok(()) } else { Err(format!("gpu-allocator still has {live} allocations")) }
    }
}
