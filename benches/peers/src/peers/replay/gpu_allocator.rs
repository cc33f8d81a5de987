//! gpu-allocator, and Sublet behind its interface. It has no pools, and maps every host-visible block while the block
//! lives. Mapping an allocation therefore does nothing.
#![expect(unsafe_code, reason = "calls Vulkan and other allocators")]

use gpu_allocator::AllocationSizes;
use gpu_allocator_stand_in::AllocatorDebugSettings;
use gpu_allocator_stand_in::vulkan::{Allocator, AllocatorCreateDesc};

use super::WgpuHint;
use crate::gpu::TestGpu;
use crate::peers::gpu_allocator::create;

/// Defines a player for a library with gpu-allocator's interface. `$dedicated` is its scheme for dedicated memory.
macro_rules! player {
    ($module:ident, $library:ident, $name:literal, $dedicated:expr) => {
        pub(super) mod $module {
            use ::$library::vulkan::{Allocation, AllocationCreateDesc, AllocationScheme, Allocator};
            use ::$library::{AllocationSizes, MemoryLocation};
            use ash::vk;
            use sublet::ResourceKind;

            use crate::gpu::TestGpu;
            use crate::peers::replay::{Plays, WgpuHint};
            use crate::replay::gaps::MemoryOffset;
            use crate::replay::script::{Host, ScriptRequest};

            pub(in crate::peers::replay) struct GpuAllocatorPlayer {
                allocator: Allocator,
                /// Properties by memory type.
                types: Vec<vk::MemoryPropertyFlags>,
            }

            impl GpuAllocatorPlayer {
                pub(super) fn of(gpu: &TestGpu, allocator: Allocator) -> Self {
                    let memory = gpu.memory();
                    let types = memory.memory_types_as_slice().iter().map(|kind| kind.property_flags);
                    Self { allocator, types: types.collect() }
                }
            }

            pub(super) fn sizes(hint: WgpuHint) -> AllocationSizes {
                let [device, host] = hint.sizes();
                AllocationSizes::new(device[0], host[0])
                    .with_max_device_memblock_size(device[1])
                    .with_max_host_memblock_size(host[1])
            }

            /// Returns the location for a request. Must suit the memory type, or the allocation would fail.
            fn location(ask: &ScriptRequest, flags: vk::MemoryPropertyFlags) -> MemoryLocation {
                let coherent = vk::MemoryPropertyFlags::HOST_VISIBLE | vk::MemoryPropertyFlags::HOST_COHERENT;
                match ask.host {
                    Host::Writes if flags.contains(coherent) => MemoryLocation::CpuToGpu,
                    Host::Reads if flags.contains(coherent) => MemoryLocation::GpuToCpu,
                    Host::Never if flags.contains(vk::MemoryPropertyFlags::DEVICE_LOCAL) => {
                        MemoryLocation::GpuOnly
                    }
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
                            true => $dedicated,
                            false => AllocationScheme::GpuAllocatorManaged,
                        },
                    });
                    allocated.ok()
                }

                #[inline]
                fn free(&mut self, allocation: Allocation) {
                    let freed = self.allocator.free(allocation);
                    assert!(freed.is_ok(), concat!($name, " does not know its own allocation"));
                }

                fn place(&self, allocation: &Allocation) -> MemoryOffset {
                    // SAFETY: it is only read.
                    let memory = unsafe { allocation.memory() };
                    MemoryOffset { memory, offset: allocation.offset() }
                }

                fn map(&mut self, allocation: &mut Allocation) -> bool {
                    allocation.mapped_ptr().is_some()
                }

                fn unmap(&mut self, _: &mut Allocation) {}

                fn finish(self) -> Result<(), String> {
                    match self.allocator.generate_report().allocations.len() {
                        0 => Ok(()),
                        live => Err(format!(concat!($name, " still has {live} allocations"), live = live)),
                    }
                }
            }
        }
    };
}

// The actual buffer does not matter to it.
player!(original, gpu_allocator, "gpu-allocator", AllocationScheme::DedicatedBuffer(vk::Buffer::null()));
// The other schemes query the driver with a buffer, and scripts have none.
player!(stand_in, gpu_allocator_stand_in, "the stand-in", AllocationScheme::GpuAllocatorManaged);

impl original::GpuAllocatorPlayer {
    pub(super) fn new(gpu: &TestGpu, hint: Option<WgpuHint>) -> Result<Self, String> {
        Ok(Self::of(gpu, create(gpu, hint.map_or_else(AllocationSizes::default, original::sizes))?))
    }
}

impl stand_in::GpuAllocatorPlayer {
    /// Creates the peer with wgpu's sizes.
    pub(super) fn new(gpu: &TestGpu, hint: WgpuHint) -> Result<Self, String> {
        let allocator = Allocator::new(&AllocatorCreateDesc {
            instance: gpu.instance().clone(),
            device: gpu.device().clone(),
            physical_device: gpu.physical_device(),
            debug_settings: AllocatorDebugSettings::default(),
            buffer_device_address: false,
            allocation_sizes: stand_in::sizes(hint),
        });
        Ok(Self::of(gpu, allocator.map_err(|error| error.to_string())?))
    }
}
