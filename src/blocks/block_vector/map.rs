//! Mappings and sizes of the memory of one live allocation.

use super::super::device_block::{DeviceBlock, DeviceContext, map_memory, unmap_memory};
use super::super::mapped_pointer::MappedPointer;
use super::{AllocationKey, FOREIGN, MemoryBlockVector};
use crate::error::{ForeignHandle, MapError};

impl MemoryBlockVector {
    /// Counts one more user of the mapping of `live`'s memory, and maps the memory if necessary.
    ///
    /// Returns the address where the **memory** begins, not the allocation.
    #[inline]
    pub(crate) fn map(
        &self,
        context: &DeviceContext,
        live: AllocationKey,
    ) -> Result<MappedPointer, MapError> {
        let mapped = self.with_memory(live, |memory, map_count| {
            *map_count += 1;
            memory.mapped()
        })?;
        if mapped.is_mapped() {
            return Ok(mapped);
        }
        self.map_memory(context, live).inspect_err(|_| {
            // Fails only if the pool was destroyed meanwhile; then the count is gone too.
            let _ = self.unmap(live);
        })
    }

    /// Removes one user of the mapping. The memory stays mapped until it is freed, trimmed, or in the way of the
    /// limit of mapped bytes.
    #[inline]
    pub(crate) fn unmap(&self, live: AllocationKey) -> Result<(), MapError> {
        self.with_memory(live, |_, map_count| {
            *map_count = map_count.checked_sub(1).ok_or(MapError::NotMapped)?;
            Ok(())
        })?
    }

    /// Maps the memory of an allocation in a shard. The mapping lasts as long as the leased range has allocations.
    ///
    /// Returns the address where the **memory** begins.
    #[cold]
    pub(super) fn map_for_shard(
        &self,
        context: &DeviceContext,
        live: AllocationKey,
    ) -> Result<MappedPointer, MapError> {
        let mapped = self.map(context, live)?;
        let Some(shard) = self.shard_of(live)? else { return Ok(mapped) };
        let is_news = shard.lock().set_mapped(live, mapped)?;
        if !is_news {
            // Another thread mapped it meanwhile. A leased range counts as one user.
            self.unmap(live)?;
        }
        Ok(mapped)
    }

    /// Maps the memory of `live`. Its map count already includes the caller.
    #[cold]
    pub(super) fn map_memory(
        &self,
        context: &DeviceContext,
        live: AllocationKey,
    ) -> Result<MappedPointer, MapError> {
        let _mappings = self.mappings.lock();
        let (memory, mapped) =
            self.with_memory(live, |memory, _| ((memory.memory, memory.size), memory.mapped()))?;
        if mapped.is_mapped() {
            return Ok(mapped);
        }
        let mapped = map_memory(context, memory)?;
        let set = self.with_memory(live, |memory, _| memory.set_mapped_for(mapped, live.key));
        if let Err(error) = set {
            // The pool was destroyed meanwhile. Its memory is freed after `mappings` is released.
            unmap_memory(context, memory);
            return Err(error.into());
        }
        Ok(mapped)
    }

    /// Bytes of the `VkDeviceMemory` that holds the allocation.
    pub(crate) fn memory_size(&self, live: AllocationKey) -> Result<u64, ForeignHandle> {
        self.with_memory(live, |memory, _| memory.size)
    }

    /// Returns true if the use `generation` has not ended. Until it ends, allocations that are not freed are live.
    #[inline]
    pub(crate) fn has_use(&self, generation: u32) -> bool {
        self.core.lock().use_of(generation).is_ok()
    }

    /// Counts one more user of an existing mapping, so that the memory stays mapped. Returns the bytes of the
    /// `VkDeviceMemory` that holds the allocation. Paired with [`Self::unmap`].
    pub(crate) fn pin_mapping(&self, live: AllocationKey) -> Result<u64, MapError> {
        self.with_memory(live, |memory, map_count| {
            if !memory.mapped().is_mapped() {
                return Err(MapError::NotMapped);
            }
            *map_count += 1;
            Ok(memory.size)
        })?
    }

    /// Calls `look` with the memory of a live allocation and the user count of its mapping.
    #[inline(always)]
    fn with_memory<R>(
        &self,
        live: AllocationKey,
        look: impl FnOnce(&mut DeviceBlock, &mut u64) -> R,
    ) -> Result<R, ForeignHandle> {
        if live.dedicated {
            let mut list = self.dedicated.lock();
            let dedicated = list.get_mut(live.key).map_err(|_| FOREIGN)?;
            return Ok(look(&mut dedicated.block, &mut dedicated.map_count));
        }
        // The locks need not overlap: a live allocation stays in its block.
        let in_shard = match self.shard_of(live)? {
            Some(shard) => Some(shard.lock().block_of(live)?),
            None => None,
        };
        let mut core = self.core.lock();
        let active = core.use_of(live.generation)?;
        let region = match in_shard {
            Some(block) => block,
            None => active.engine.region_of(live.key).ok_or(FOREIGN)?,
        };
        let block = active.block_of(region).ok_or(FOREIGN)?;
        Ok(look(&mut block.memory, &mut block.map_count))
    }
}
