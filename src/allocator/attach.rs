//! Explicit assignment of shards to threads.

use super::Allocator;
use super::recorded_call::RecordedCall;
use crate::error::ForeignHandle;
use crate::pool::Pool;
use sublet_engines::cast::index;

impl Allocator {
    /// Assigns a shard to the calling thread: an exclusive part of the blocks of a memory type. Threads that contend
    /// get one automatically. This call helps workers that must be fast from the first allocation on, and tests that
    /// must behave the same on every machine. The assignment ends when an attached thread finds, after 65,536
    /// allocations and frees, that no other attached thread was active.
    ///
    /// Returns true if the thread has a shard. There are no shards if blocks are too small to divide, if
    /// `bufferImageGranularity` is above 64 KiB, or if the memory type does not exist. A shard leases memory when the
    /// thread allocates, and returns unused ranges.
    ///
    /// ```
    /// # use sublet::*; use ash::vk;
    /// # let (gpu, allocator) = sublet::doc_example();
    /// std::thread::scope(|scope| {
    ///     for _ in 0..4 {
    ///         scope.spawn(|| {
    ///             assert!(allocator.attach_to_memory_type(0));
    ///             // ... allocate, without waiting for the others ...
    ///         });
    ///     }
    /// });
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn attach_to_memory_type(&self, memory_type_index: u32) -> bool {
        let has_one =
            self.inner.defaults.get(index(memory_type_index)).is_some_and(|default| default.vector.attach());
        if has_one {
            self.record(RecordedCall::SettleInMemoryType(memory_type_index));
        }
        has_one
    }

    /// Like [`Self::attach_to_memory_type`], for the blocks of a pool. Linear and buddy pools have no shards.
    ///
    /// # Errors
    /// [`ForeignHandle`] if the pool belongs to another allocator.
    pub fn attach_to_pool(&self, pool: &Pool) -> Result<bool, ForeignHandle> {
        let has_one = self.pool_vector(pool)?.attach();
        if has_one {
            self.record(RecordedCall::SettleInPool(pool));
        }
        Ok(has_one)
    }
}
