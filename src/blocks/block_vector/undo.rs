//! Undoing an allocation before the caller has seen it.

use super::super::device_block::{DeviceContext, unmap_memory};
use super::{AllocationKey, FOREIGN, MemoryBlockVector};
use crate::error::ForeignHandle;

impl MemoryBlockVector {
    /// Undoes an allocation for an operation that failed. A block that was made for it is freed, if nothing else was
    /// allocated in it. All other blocks stay, empty ones included. A mapping that was made for it ends if it has no
    /// other user.
    pub(crate) fn undo(
        &self,
        context: &DeviceContext,
        live: AllocationKey,
        mapped: bool,
    ) -> Result<(), ForeignHandle> {
        if live.dedicated || live.shard != 0 {
            return self.free(context, live, mapped);
        }
        // Held from the check of the mapping's users until the unmapping.
        let mappings = mapped.then(|| self.mappings.lock());
        let (made, unmapped) = {
            let mut core = self.core.lock();
            let active = core.use_of(live.generation)?;
            let (region, is_empty) = active.engine.take_back(live.key).ok_or(FOREIGN)?;
            active.annotations.remove(&live.key);
            let block = active.block_mut(region);
            if mapped {
                block.map_count = block.map_count.saturating_sub(1);
            }
            let was_made = block.created_for == Some(live.key);
            let goes = is_empty && was_made;
            let has_no_user = mapped && !goes && block.map_count == 0;
            let unmapped = if has_no_user { block.memory.forget_mapped_for(live.key) } else { None };
            if is_empty && !active.block_mut(region).reserved {
                active.mark_empty(region);
            }
            (if goes { active.take_empty_block(region) } else { None }, unmapped)
        };
        if let Some(memory) = unmapped {
            unmap_memory(context, memory);
        }
        drop(mappings);
        if let Some(block) = made {
            self.destroy_block(context, block);
        }
        Ok(())
    }
}
