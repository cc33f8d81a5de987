//! Reserving memory ahead of need.

use super::recorded_call::RecordedCall;
use super::relief::ReliefNeed;
use super::{Allocator, AllocatorInner};
use crate::blocks::MemoryBlockVector;
use crate::error::ReserveMemoryError;
use crate::pool::Pool;
use sublet_engines::cast::index;

impl Allocator {
    /// Creates blocks of a memory type, so that later allocations need no driver call. Call it while a level is loaded.
    /// Returns the bytes of the created blocks.
    ///
    /// Afterwards unused blocks have at least `bytes` in total. Blocks that are unused already count, so a second call
    /// with the same size creates nothing. New blocks have the largest block size of the memory type
    /// ([`AllocatorCreateInfo::block_sizes`](crate::AllocatorCreateInfo::block_sizes)). The last one may be smaller,
    /// and is a multiple of 1 MiB.
    ///
    /// [`trim`](Self::trim) and frees keep reserved blocks until something was allocated and freed in them. If an
    /// allocation would otherwise fail, unused reserved blocks of its heap are freed. A reservation respects the heap's
    /// budget.
    ///
    /// ```
    /// # use sublet::*; use ash::vk;
    /// # let (gpu, allocator) = sublet::doc_example();
    /// # let requirements = vk::MemoryRequirements { size: 1 << 20, alignment: 256, memory_type_bits: 1 };
    /// assert_eq!(allocator.reserve(0, 100 << 20)?, 100 << 20);
    /// assert_eq!(allocator.trim(), 0, "reserved blocks stay until they are used");
    /// gpu.reset_calls();
    /// let allocation = allocator.allocate_memory(&requirements, &AllocationCreateInfo::default())?;
    /// assert_eq!(gpu.calls("vkAllocateMemory"), 0);
    /// # // SAFETY: nothing was ever bound to it.
    /// # unsafe { allocator.free_memory(allocation) }?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ReserveMemoryError`] if the memory type is not allowed, or if not all blocks can be created. Then no new block
    /// is left. Empty blocks of the heap that are not reserved may have been freed.
    ///
    /// # Complexity
    /// One driver call for each new block, and O(blocks).
    pub fn reserve(&self, memory_type_index: u32, bytes: u64) -> Result<u64, ReserveMemoryError> {
        let default = self.inner.defaults.get(index(memory_type_index));
        let Some(default) = default.filter(|_| self.is_type_allowed(memory_type_index)) else {
            let allowed = self.inner.allowed_types;
            return Err(ReserveMemoryError::MemoryType { memory_type: memory_type_index, allowed });
        };
        let made = self.inner.reserve_in(&default.vector, memory_type_index, None, bytes)?;
        self.record(RecordedCall::Reserve(memory_type_index, bytes));
        Ok(made)
    }

    /// [`Self::reserve`] for a pool. New blocks have the pool's block size. In a pool without a fixed block size, the
    /// last one may be smaller.
    ///
    /// # Errors
    /// [`ReserveMemoryError`] if the pool belongs to another allocator or would exceed its maximum number of blocks, or
    /// if not all blocks can be created. Then no new block is left.
    pub fn reserve_in_pool(&self, pool: &Pool, bytes: u64) -> Result<u64, ReserveMemoryError> {
        let vector = self.pool_vector(pool)?;
        let memory_type = pool.facts.config.memory_type;
        let made = self.inner.reserve_in(vector, memory_type, Some(pool.generation), bytes)?;
        self.record(RecordedCall::ReserveInPool(pool, bytes));
        Ok(made)
    }
}

impl AllocatorInner {
    fn reserve_in(
        &self,
        vector: &MemoryBlockVector,
        memory_type: u32,
        generation: Option<u32>,
        bytes: u64,
    ) -> Result<u64, ReserveMemoryError> {
        let span = tracing::debug_span!(target: "sublet::block", "reserve", size = bytes);
        let _entered = span.enter();
        // Relief may free this vector's empty blocks too, which the first attempt counted.
        let (needed, count) = vector.reserve_need(bytes);
        let need =
            ReliefNeed { memory_type, bytes: needed, count, within_budget: true, spares_reserved: true };
        self.with_relief(
            need,
            || vector.reserve(&self.context, generation, bytes),
            |error| match error {
                ReserveMemoryError::Memory(error) => Some(*error),
                _ => None,
            },
        )
    }
}
