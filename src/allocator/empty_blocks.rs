//! Changing the number of kept empty blocks.

use super::Allocator;
use super::recorded_call::RecordedCall;
use crate::error::ForeignHandle;
use crate::pool::Pool;

impl Allocator {
    /// Changes how many empty blocks each memory type keeps, initially
    /// [`AllocatorCreateInfo::empty_blocks_kept`](crate::AllocatorCreateInfo::empty_blocks_kept). Frees surplus blocks
    /// at once, and returns their bytes. Does not affect pools.
    ///
    /// ```
    /// # use sublet::*; use ash::vk;
    /// # let (gpu, allocator) = sublet::doc_example();
    /// # let requirements = vk::MemoryRequirements { size: 4096, alignment: 256, memory_type_bits: !0 };
    /// let allocation = allocator.allocate_memory(&requirements, &AllocationCreateInfo::default())?;
    /// # // SAFETY: nothing was ever bound to it.
    /// unsafe { allocator.free_memory(allocation) }?;
    /// assert_eq!(allocator.statistics().block_count, 1, "kept for the next level");
    /// assert!(allocator.set_empty_blocks_kept(0) > 0);
    /// assert_eq!(allocator.statistics().block_count, 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn set_empty_blocks_kept(&self, empty_blocks_kept: u32) -> u64 {
        let context = &self.inner.context;
        let given_back = self.inner.defaults.iter().map(|default| {
            // A default vector is in use as long as its allocator exists.
            default.vector.set_empty_blocks_kept(context, None, empty_blocks_kept).unwrap_or(0)
        });
        let given_back = given_back.sum();
        self.record(RecordedCall::SetEmptyBlocksKept(empty_blocks_kept));
        given_back
    }

    /// Changes how many empty blocks a pool keeps, initially
    /// [`PoolCreateInfo::empty_blocks_kept`](crate::PoolCreateInfo::empty_blocks_kept). Frees surplus blocks at once,
    /// except the pool's first ones, and returns their bytes.
    ///
    /// # Errors
    /// [`ForeignHandle`] if the pool belongs to another allocator.
    pub fn set_pool_empty_blocks_kept(
        &self,
        pool: &Pool,
        empty_blocks_kept: u32,
    ) -> Result<u64, ForeignHandle> {
        let vector = self.pool_vector(pool)?;
        let given_back =
            vector.set_empty_blocks_kept(&self.inner.context, Some(pool.generation), empty_blocks_kept)?;
        self.record(RecordedCall::SetPoolEmptyBlocksKept(pool, empty_blocks_kept));
        Ok(given_back)
    }
}
