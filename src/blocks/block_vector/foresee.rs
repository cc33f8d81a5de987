//! Predicts how the vector would serve a request.

use super::super::device_block::DeviceContext;
use super::{BlockSearch, MemoryBlockVector, VectorRequest};
use crate::error::AllocationError;
use sublet_engines::Metadata;

impl MemoryBlockVector {
    /// Returns true if an existing block has room, as far as the calling thread looks.
    fn has_room(&self, request: &VectorRequest) -> Result<bool, AllocationError> {
        let in_shard =
            self.shards.get(self.shards.home()).is_some_and(|shard| shard.lock().fits(request, false));
        if in_shard { Ok(true) } else { self.core.lock().in_use().fits(request) }
    }

    /// Returns the bytes of the block that would be allocated from the driver, or 0 if an existing block has room.
    /// Changes and reserves nothing: other threads may invalidate the answer at any time.
    pub(crate) fn foresee(
        &self,
        context: &DeviceContext,
        request: &VectorRequest,
        search: BlockSearch,
    ) -> Result<u64, AllocationError> {
        if search != BlockSearch::Rest && self.has_room(request)? {
            return Ok(0);
        }
        let dedicated = self.counted_dedicated();
        let planned = self.core.lock().plan_growth(request, dedicated);
        let foreseen = planned.and_then(|growth| Ok(growth.foresee(context)?));
        match foreseen {
            Err(error) if error.is_shortage() => {
                let fits = self.shards.iter().any(|(_, shard)| shard.lock().fits(request, true));
                if fits { Ok(0) } else { Err(self.with_shards(error)) }
            }
            answer => answer,
        }
    }

    /// Free bytes, and the size of the largest possible allocation.
    pub(crate) fn free_bytes(&self) -> (u64, u64) {
        let (mut free, mut largest) = (0, 0);
        if let Some(active) = self.core.lock().active.as_ref() {
            let usage = active.engine.usage();
            free = usage.capacity - usage.used;
            largest = active.engine.largest_free();
        }
        for (_, shard) in self.shards.iter() {
            let shard = shard.lock();
            let usage = shard.usage();
            free += usage.capacity - usage.used;
            largest = shard.largest_free().max(largest);
        }
        (free, largest)
    }
}
