//! An allocation that is taken back before anybody has seen it: the vector is as it was before.
#![forbid(unsafe_code)]

use super::super::device_block::{DeviceContext, unmap_memory};
use super::{BlockVector, FOREIGN, Live};
use crate::error::ForeignHandle;

impl BlockVector {
    /// Takes an allocation back that was made for something that has failed. A block that was made for it goes back to
    /// the driver, if nobody has got anything in it since. All others stay: what was empty before is empty again, and
    /// kept. A mapping that was made for it ends, if nobody else uses it.
    pub(crate) fn undo(
        &self,
        context: &DeviceContext,
        live: Live,
        mapped: bool,
    ) -> Result<(), ForeignHandle> {
        if live.dedicated || live.shard != 0 {
            return self.free(context, live, mapped);
        }
        // From the look at the users of the mapping until it has ended.
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
            let was_made = block.made_for == Some(live.key);
            let goes = is_empty && was_made;
            let has_no_user = mapped && !goes && block.map_count == 0;
            let ends = has_no_user && block.memory.forget_mapped_for(live.key);
            let unmapped = ends.then_some(block.memory.memory);
            if is_empty {
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
