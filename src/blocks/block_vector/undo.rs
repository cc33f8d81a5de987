//! An allocation that is taken back before anybody has seen it: the vector is as it was before.
#![forbid(unsafe_code)]

use super::super::device_block::DeviceContext;
use super::{BlockVector, FOREIGN, Live};
use crate::base::sync::Threading;
use crate::error::ForeignHandle;

impl<T: Threading> BlockVector<T> {
    /// Takes an allocation back that was made for something that has failed. A block that was made for it goes back to
    /// the driver, if nobody has got anything in it since. All others stay: what was empty before is empty again, and
    /// kept.
    pub(crate) fn undo(
        &self,
        context: &DeviceContext,
        live: Live,
        mapped: bool,
    ) -> Result<(), ForeignHandle> {
        if live.dedicated || live.shard != 0 {
            return self.free(context, live, mapped);
        }
        let made = {
            let mut core = self.core.lock();
            let active = core.use_of(live.generation)?;
            let (region, is_empty) = active.engine.take_back(live.key).ok_or(FOREIGN)?;
            active.annotations.remove(&live.key);
            let block = active.block_mut(region);
            if mapped {
                block.map_count = block.map_count.saturating_sub(1);
            }
            let was_made = block.made_for == Some(live.key);
            if is_empty {
                active.mark_empty(region);
            }
            if is_empty && was_made { active.take_empty_block(region) } else { None }
        };
        if let Some(block) = made {
            self.destroy_block(context, block);
        }
        Ok(())
    }
}
