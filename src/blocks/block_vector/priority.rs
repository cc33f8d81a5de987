//! Priorities that change while memory lives.
#![forbid(unsafe_code)]

use super::super::device_block::{DeviceContext, set_memory_priority};
use super::{BlockVector, FOREIGN, Live};
use crate::error::{ForeignHandle, PriorityError};

impl BlockVector {
    /// Changes the priority of every block and dedicated allocation, and of those to come.
    pub(crate) fn set_priority(
        &self,
        context: &DeviceContext,
        generation: u32,
        priority: f32,
    ) -> Result<(), ForeignHandle> {
        self.core.lock().use_of(generation).map_err(|_| ForeignHandle::Pool)?.config.priority = priority;
        // A block that is being made has the old priority, and is not in the list yet.
        drop(self.growth.lock());
        // Who is about to free a block waits for this lock: what is in the lists stays live until it is released.
        let _mappings = self.mappings.lock();
        let mut memories = Vec::new();
        {
            let mut core = self.core.lock();
            let active = core.use_of(generation).map_err(|_| ForeignHandle::Pool)?;
            memories.extend(active.blocks.iter().flatten().map(|block| block.memory.memory));
        }
        memories.extend(self.dedicated.lock().iter().map(|(_, dedicated)| dedicated.block.memory));
        memories.into_iter().for_each(|memory| set_memory_priority(context, memory, priority));
        Ok(())
    }

    /// Changes the priority of one dedicated allocation.
    pub(crate) fn set_dedicated_priority(
        &self,
        context: &DeviceContext,
        live: Live,
        priority: f32,
    ) -> Result<(), PriorityError> {
        if !live.dedicated {
            return Err(PriorityError::NotDedicated);
        }
        // See above: its pool may be destroyed meanwhile.
        let _mappings = self.mappings.lock();
        let memory = self.dedicated.lock().get_mut(live.key).map_err(|_| FOREIGN)?.block.memory;
        set_memory_priority(context, memory, priority);
        Ok(())
    }
}
