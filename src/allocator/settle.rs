//! Threads that say beforehand that they will be many.
#![forbid(unsafe_code)]

use super::Allocator;
use super::recorded_call::RecordedCall;
use crate::base::cast::index;
use crate::error::ForeignHandle;
use crate::pool::Pool;

impl Allocator {
    /// Lets the calling thread have a part of the blocks of a memory type to itself from now on, as if it had contended
    /// for them with other threads. No program has to call it: threads that contend settle by themselves. It is for
    /// workers that are to be fast from the first allocation on, and for tests that are to be the same on every machine.
    /// It lasts until a thread that has settled finds, after 65,536 allocations and frees, that no other has done
    /// anything meanwhile.
    ///
    /// Says whether there is such a part: there is none in blocks that are too small to divide further, none where
    /// `bufferImageGranularity` is above 64 KiB, and none for a number that no memory type has. Memory is taken when
    /// the thread allocates; what it does not use is given back as for all threads.
    ///
    /// ```
    /// # use sublet::*; use ash::vk;
    /// # let (gpu, allocator) = sublet::doc_example();
    /// std::thread::scope(|scope| {
    ///     for _ in 0..4 {
    ///         scope.spawn(|| {
    ///             assert!(allocator.settle_in_memory_type(0));
    ///             // ... allocate, without waiting for the others ...
    ///         });
    ///     }
    /// });
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn settle_in_memory_type(&self, memory_type_index: u32) -> bool {
        let has_one =
            self.inner.defaults.get(index(memory_type_index)).is_some_and(|default| default.vector.settle());
        if has_one {
            self.record(RecordedCall::SettleInMemoryType(memory_type_index));
        }
        has_one
    }

    /// As [`Self::settle_in_memory_type`], in the blocks of a pool. Linear and buddy pools are not divided.
    ///
    /// # Errors
    /// [`ForeignHandle`] if the pool is another allocator's.
    pub fn settle_in_pool(&self, pool: &Pool) -> Result<bool, ForeignHandle> {
        let has_one = self.pool_vector(pool)?.settle();
        if has_one {
            self.record(RecordedCall::SettleInPool(pool));
        }
        Ok(has_one)
    }
}
