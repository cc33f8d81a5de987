//! Changing the priority of live memory.

use super::Allocator;
use super::recorded_call::RecordedCall;
use crate::allocation::Allocation;
use crate::error::PriorityError;
use crate::pool::Pool;

impl Allocator {
    /// Changes the priority of a dedicated allocation (`vkSetDeviceMemoryPriorityEXT`). Allocations in a block share
    /// its priority and are rejected; use a pool and change its priority instead.
    ///
    /// # Errors
    /// [`PriorityError`]; nothing was changed.
    ///
    /// ```
    /// # use sublet::*; use ash::vk;
    /// # let gpu = sim::Gpu::new(sim::Profile::by_name("nvidia-rtx-5070-ti").unwrap());
    /// # let allocator = unsafe { Allocator::new(&AllocatorCreateInfo::for_gpu(&gpu)) }?;
    /// let requirements = vk::MemoryRequirements { size: 1 << 20, alignment: 256, memory_type_bits: !0 };
    /// let info = AllocationCreateInfo { flags: AllocationCreateFlags::DEDICATED_MEMORY, ..AllocationCreateInfo::new(MemoryUsage::GpuOnly) };
    /// let allocation = allocator.allocate_memory(&requirements, &info)?;
    /// allocator.set_allocation_priority(&allocation, 1.0)?;
    /// assert_eq!(gpu.memory_info(allocation.memory()).unwrap().priority, Some(1.0));
    /// # unsafe { allocator.free_memory(allocation) }?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn set_allocation_priority(
        &self,
        allocation: &Allocation,
        priority: f32,
    ) -> Result<(), PriorityError> {
        self.check_priority(priority)?;
        let vector = self.vector_of(allocation)?;
        vector.set_dedicated_priority(&self.inner.context, allocation.live(), priority)?;
        self.record(RecordedCall::SetPriority(allocation, priority));
        Ok(())
    }

    /// Changes the priority of all memory of a pool: its blocks and dedicated allocations, existing and future.
    ///
    /// # Errors
    /// [`PriorityError`]; nothing was changed.
    ///
    /// # Complexity
    /// One driver call for each block and each dedicated allocation.
    pub fn set_pool_priority(&self, pool: &Pool, priority: f32) -> Result<(), PriorityError> {
        self.check_priority(priority)?;
        let vector = self.pool_vector(pool)?;
        vector.set_priority(&self.inner.context, pool.generation, priority)?;
        self.record(RecordedCall::SetPoolPriority(pool, priority));
        Ok(())
    }

    fn check_priority(&self, priority: f32) -> Result<(), PriorityError> {
        if !(0.0..=1.0).contains(&priority) {
            return Err(PriorityError::Priority { priority });
        }
        if self.inner.context.device.can_set_priority() { Ok(()) } else { Err(PriorityError::NotEnabled) }
    }
}
