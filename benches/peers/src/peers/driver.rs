//! The driver alone: buffers bound to existing memory.
#![expect(unsafe_code, reason = "calls Vulkan and other allocators")]

use ash::vk;

use super::{Peer, PeerMode, PeerResource};
use crate::gpu::TestGpu;
use crate::script::PeerRequest;

/// Enough for any buffer of these workloads.
const MEMORY_SIZE: u64 = 1 << 20;

/// The calls that every allocator needs.
pub(super) struct DriverAlone {
    device: ash::Device,
    memory: vk::DeviceMemory,
    live: u64,
}

impl DriverAlone {
    pub(super) fn new(gpu: &TestGpu, shape: PeerMode) -> Result<Option<Self>, String> {
        if shape != PeerMode::Created {
            return Ok(None);
        }
        let device = gpu.device().clone();
        let info = vk::MemoryAllocateInfo::default()
            .allocation_size(MEMORY_SIZE)
            .memory_type_index(gpu.device_local_type());
        // SAFETY: the create-info is complete, the memory type exists.
        let memory = unsafe { device.allocate_memory(&info, None) }.map_err(|error| error.to_string())?;
        Ok(Some(Self { device, memory, live: 0 }))
    }
}

impl Peer for DriverAlone {
    type Allocation = PeerResource;

    #[inline]
    fn allocate(&mut self, request: &PeerRequest) -> Option<PeerResource> {
        let (resource, requirements) = PeerResource::create(&self.device, request)?;
        // One buffer stays at the start of the memory. The other one is created and destroyed behind it.
        let offset = if self.live == 0 { 0 } else { MEMORY_SIZE / 2 };
        if requirements.size > MEMORY_SIZE / 2 || !resource.bind(&self.device, self.memory, offset) {
            resource.destroy(&self.device);
            return None;
        }
        self.live += 1;
        Some(resource)
    }

    #[inline]
    fn free(&mut self, resource: PeerResource) {
        self.live -= 1;
        resource.destroy(&self.device);
    }

    fn live(&self) -> Option<u64> {
        Some(self.live)
    }

    fn finish(self) -> Result<(), String> {
        // SAFETY: nothing is bound to it any more.
        unsafe { self.device.free_memory(self.memory, None) };
        Ok(())
    }
}
