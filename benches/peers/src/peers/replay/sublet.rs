//! Sublet.
#![expect(unsafe_code, reason = "calls Vulkan and other allocators")]

use ash::vk;
use sublet::trace::PoolSettings;
use sublet::{Allocation, AllocationCreateInfo, Allocator, MemoryAllocateNext, Pool, PoolCreateInfo};

use super::Plays;
use crate::gpu::TestGpu;
use crate::peers::sublet::create;
use crate::replay::script::ScriptRequest;

pub(super) struct SubletPlayer {
    allocator: Allocator,
    pools: Vec<Option<Pool>>,
}

impl SubletPlayer {
    pub(super) fn new(gpu: &TestGpu) -> Result<Self, String> {
        Ok(Self { allocator: create(gpu)?, pools: Vec::new() })
    }
}

impl Plays for SubletPlayer {
    type Allocation = Allocation;

    #[inline]
    fn allocate(&mut self, ask: &ScriptRequest) -> Option<Allocation> {
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
    fn free(&mut self, allocation: Allocation) {
        // SAFETY: no device uses it.
        let freed = unsafe { self.allocator.free_memory(allocation) };
        assert!(freed.is_ok(), "Sublet does not know its own allocation");
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

    fn frame(&mut self, index: u32) {
        self.allocator.set_current_frame_index(index);
    }

    fn finish(self) -> Result<(), String> {
        match self.allocator.destroy().len() {
            0 => Ok(()),
            leaks => Err(format!("Sublet reports {leaks} leaks")),
        }
    }
}
