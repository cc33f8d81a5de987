//! Changing the priority of live memory.

use super::super::device_block::{DeviceContext, set_memory_priority};
use super::{AllocationKey, FOREIGN, MemoryBlockVector};
use crate::error::{ForeignHandle, PriorityError};

impl MemoryBlockVector {
    /// Changes the priority of every existing and future block and dedicated allocation.
    pub(crate) fn set_priority(
        &self,
        context: &DeviceContext,
        generation: u32,
        priority: f32,
    ) -> Result<(), ForeignHandle> {
        self.core.lock().use_of(generation).map_err(|_| ForeignHandle::Pool)?.config.priority = priority;
        // Waits for a block that is being created: it has the old priority and is not in the list yet.
        drop(self.growth.lock());
        // A thread that is about to free a block waits for this lock. So the listed memory stays live until its
        // release.
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
        live: AllocationKey,
        priority: f32,
    ) -> Result<(), PriorityError> {
        if !live.dedicated {
            return Err(PriorityError::NotDedicated);
        }
        // As in `set_priority`. Another thread may destroy the pool meanwhile.
        let _mappings = self.mappings.lock();
        let memory = self.dedicated.lock().get_mut(live.key).map_err(|_| FOREIGN)?.block.memory;
        set_memory_priority(context, memory, priority);
        Ok(())
    }
}
