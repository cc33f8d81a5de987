//! Sublet.
#![expect(unsafe_code, reason = "calls Vulkan and other allocators")]

use ash::vk;
use sublet::trace::PoolSettings;
use sublet::{
    Algorithm, Allocation, AllocationCreateFlags, AllocationCreateInfo, Allocator, AllocatorCreateInfo,
    MaintainInfo, MemoryAllocateNext, MemoryUsage, Pool, PoolCreateInfo,
};

use super::{PeerMode, PeerResource, SharedPeer, WholePeer};
use crate::gpu::TestGpu;
use crate::replay::script::ScriptRequest;
use crate::script::{PeerRequest, PeerRequestKind};

/// An allocator with its default vectors or a pool.
pub(super) struct Sublet {
    allocator: Allocator,
    info: AllocationCreateInfo<'static>,
    automatic: AllocationCreateInfo<'static>,
    upload: AllocationCreateInfo<'static>,
    is_maintained: bool,
    /// From `Box::into_raw`, so that `info` can refer to it.
    pool: Option<*mut Pool>,
    /// The pools of a recording.
    pools: Vec<Option<Pool>>,
}

// SAFETY: the pool is only shared until `finish`, which takes the peer by value, and `Pool` is `Send` and `Sync`.
unsafe impl Send for Sublet {}
// SAFETY: as above.
unsafe impl Sync for Sublet {}

/// Creates an allocator for the device with default settings.
pub(super) fn create(gpu: &TestGpu) -> Result<Allocator, String> {
    let info =
        AllocatorCreateInfo::new(gpu.instance(), gpu.device(), gpu.physical_device(), gpu.api_version());
    // SAFETY: the creator of a peer keeps the device until the peer is finished.
    unsafe { Allocator::new(&info) }.map_err(|error| error.to_string())
}

impl Sublet {
    pub(super) fn new(gpu: &TestGpu, shape: PeerMode) -> Result<Self, String> {
        let allocator = create(gpu)?;
        let default = PoolCreateInfo::new(gpu.device_local_type());
        let pool_info = match shape {
            PeerMode::Default | PeerMode::Created | PeerMode::Maintained => None,
            PeerMode::Pool { block_size, min, max } => Some(PoolCreateInfo {
                block_size,
                min_block_count: min as u32,
                max_block_count: max as u32,
                ..default
            }),
            PeerMode::LinearPool { block_size } => {
                let algorithm = Algorithm::Linear;
                Some(PoolCreateInfo { block_size, max_block_count: 1, algorithm, ..default })
            }
        };
        let mut info = AllocationCreateInfo::new(MemoryUsage::GpuOnly);
        let automatic = AllocationCreateInfo::new(MemoryUsage::Auto);
        let upload = AllocationCreateInfo {
            flags: AllocationCreateFlags::HOST_ACCESS_SEQUENTIAL_WRITE | AllocationCreateFlags::MAPPED,
            ..automatic
        };
        let is_maintained = shape == PeerMode::Maintained;
        let mut pool = None;
        if let Some(pool_info) = pool_info {
            let made = allocator.create_pool(&pool_info).map_err(|error| error.to_string())?;
            let made = Box::into_raw(Box::new(made));
            // SAFETY: it lives until `finish`, which drops `info` first.
            info = AllocationCreateInfo::in_pool(unsafe { &*made });
            pool = Some(made);
        }
        Ok(Self { allocator, info, automatic, upload, is_maintained, pool, pools: Vec::new() })
    }
}

impl SharedPeer for Sublet {
    type Allocation = Allocation;

    #[inline]
    fn allocate(&self, request: &PeerRequest) -> Option<Allocation> {
        let requirements = vk::MemoryRequirements {
            size: request.size,
            alignment: request.alignment,
            memory_type_bits: u32::MAX,
        };
        self.allocator.allocate_memory(&requirements, &self.info).ok()
    }

    #[inline]
    fn free(&self, allocation: Allocation) {
        // SAFETY: no device uses it.
        let freed = unsafe { self.allocator.free_memory(allocation) };
        assert!(freed.is_ok(), "Sublet does not know its own allocation");
    }

    fn end_frame(&self) {
        if self.is_maintained {
            self.allocator.maintain(&MaintainInfo::default());
        }
    }

    fn live(&self) -> Option<u64> {
        let types = self.allocator.memory_type_statistics();
        Some(types.iter().map(|statistics| statistics.allocation_count).sum())
    }

    fn finish(self) -> Result<(), String> {
        let mut leaks = 0;
        if let Some(pool) = self.pool {
            // SAFETY: from `Box::into_raw`; `info`, the only reference, is not used any more.
            let pool = *unsafe { Box::from_raw(pool) };
            // SAFETY: no device uses it.
            let destroyed = unsafe { self.allocator.destroy_pool(pool) };
            leaks += destroyed.map_err(|error| error.to_string())?.len();
        }
        leaks += self.allocator.destroy().len();
        if leaks == 0 { Ok(()) } else { Err(format!("Sublet reports {leaks} leaks")) }
    }
}

impl WholePeer for Sublet {
    #[inline]
    fn create(&mut self, request: &PeerRequest) -> Option<(PeerResource, Allocation)> {
        if request.kind == PeerRequestKind::Image {
            // SAFETY: the create-info is complete.
            let made = unsafe { self.allocator.create_image(&super::image_info(request), &self.automatic) };
            return made.ok().map(|(image, allocation)| (PeerResource::Image(image), allocation));
        }
        let info = if request.kind == PeerRequestKind::Upload { &self.upload } else { &self.automatic };
        // SAFETY: the create-info is complete.
        let made = unsafe { self.allocator.create_buffer(&super::buffer_info(request), info) };
        made.ok().map(|(buffer, allocation)| (PeerResource::Buffer(buffer), allocation))
    }

    #[inline]
    fn destroy(&mut self, resource: PeerResource, allocation: Allocation) {
        let freed = match resource {
            // SAFETY: no device uses it.
            PeerResource::Buffer(buffer) => unsafe { self.allocator.destroy_buffer(buffer, allocation) },
            // SAFETY: no device uses it.
            PeerResource::Image(image) => unsafe { self.allocator.destroy_image(image, allocation) },
        };
        assert!(freed.is_ok(), "Sublet does not know its own allocation");
    }
    #[inline]
    fn play(&mut self, ask: &ScriptRequest) -> Option<Allocation> {
        let requirements =
            vk::MemoryRequirements { size: ask.size, alignment: ask.alignment, memory_type_bits: u32::MAX };
        let info = AllocationCreateInfo {
            flags: ask.flags(),
            memory_type_bits: 1 << ask.memory_type,
            pool: ask.pool.and_then(|pool| self.pools[pool as usize].as_ref()),
            ..AllocationCreateInfo::default()
        };
        // SAFETY: nothing is bound to it.
        unsafe { self.allocator.allocate_memory_of_kind(&requirements, ask.kind, &info) }.ok()
    }

    #[inline]
    fn map(&mut self, allocation: &mut Allocation) -> bool {
        self.allocator.map(allocation).map(|mapping| mapping.into_raw()).is_ok()
    }

    #[inline]
    fn unmap(&mut self, allocation: &mut Allocation) {
        // SAFETY: scripts pair it with a `map`, whose pointer was not kept.
        let unmapped = unsafe { self.allocator.unmap_memory(allocation) };
        assert!(unmapped.is_ok(), "Sublet does not know its own mapping");
    }

    fn create_pool(&mut self, number: u32, settings: &PoolSettings) -> Result<(), String> {
        let info = PoolCreateInfo { priority: 0.5, ..settings.with(None, MemoryAllocateNext::default()) };
        let pool = self.allocator.create_pool(&info).map_err(|error| error.to_string())?;
        self.pools.resize_with(self.pools.len().max(number as usize + 1), || None);
        self.pools[number as usize] = Some(pool);
        Ok(())
    }

    fn destroy_pool(&mut self, number: u32) {
        if let Some(pool) = self.pools[number as usize].take() {
            // SAFETY: the script has freed everything in it.
            let leaks = unsafe { self.allocator.destroy_pool(pool) };
            assert!(leaks.is_ok_and(|leaks| leaks.is_empty()), "the pool was not empty");
        }
    }

    fn begin_frame(&mut self, index: u32) {
        self.allocator.set_current_frame_index(index);
    }
}
