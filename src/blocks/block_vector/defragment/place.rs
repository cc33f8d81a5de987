//! One move: reserving its destination, completing it, or rolling it back.

use super::super::super::device_block::{DeviceBlock, DeviceContext};
use super::super::super::mapped_pointer::MappedPointer;
use super::super::annotations::annotate;
use super::super::empties::FollowUp;
use super::super::{AllocationKey, Annotation, FOREIGN, Grant, MemoryBlockVector};
use super::{Emptied, Planned, VectorCompaction};
use crate::error::{ForeignHandle, MapError};
use sublet_engines::{Key, Metadata, RegionId, Tag};

impl MemoryBlockVector {
    /// Reserves a destination, if it is still free and the source has not moved. Maps it if the source's block is
    /// mapped.
    #[allow(clippy::too_many_arguments, reason = "what is moved, and to where")]
    pub(super) fn set_aside(
        &self,
        context: &DeviceContext,
        source: AllocationKey,
        tag: Tag,
        size: u64,
        to: RegionId,
        offset: u64,
        before: Option<Key>,
    ) -> Option<Planned> {
        let from = self.region_of(source).ok()?;
        let (planned, is_mapped) = {
            let mut core = self.core.lock();
            let active = core.use_of(source.generation).ok()?;
            if active.block_of(to).is_none_or(|block| block.empty) {
                return None;
            }
            let block = &active.block_of(from)?.memory;
            let (source_memory, is_mapped) = (block.memory, block.mapped().is_mapped());
            let key = active.engine.allocate_at(before, to, offset, size, tag)?;
            active.refused = None;
            active.annotations.insert(key, Annotation { is_set_aside: true, ..Annotation::default() });
            active.heeds_below = u64::MAX;
            let memory = active.block_mut(to).memory.memory;
            let mapped = MappedPointer::UNMAPPED;
            (
                Planned {
                    source,
                    source_memory,
                    key,
                    memory,
                    offset,
                    size,
                    tag,
                    mapped,
                    annotation: Annotation::default(),
                },
                is_mapped,
            )
        };
        let mut planned = Planned { annotation: self.annotation(source).unwrap_or_default(), ..planned };
        if is_mapped {
            match self.map(context, planned.destination()) {
                Ok(mapped) => planned.mapped = mapped.at(offset),
                // The source may not need the mapping. If it does, completing the move reports the error.
                Err(error) => {
                    tracing::debug!(
                        name: "destination_not_mapped", target: "sublet::defragment", size, %error,
                        "destination not mapped"
                    );
                }
            }
        }
        Some(planned)
    }

    /// The block that holds a live allocation.
    fn region_of(&self, live: AllocationKey) -> Result<RegionId, ForeignHandle> {
        if let Some(shard) = self.shard_of(live)? {
            return shard.lock().block_of(live);
        }
        let mut core = self.core.lock();
        let active = core.use_of(live.generation)?;
        active.engine.span(live.key).map(|span| span.region).map_err(|_| FOREIGN)
    }

    /// Gives the destination to the owner of the source, and frees the source's old place.
    ///
    /// `persistent` means that it stays mapped for its whole life. `users` are the other users of its mapping.
    ///
    /// # Errors
    /// Changes nothing and fails if the source is no longer live, or if the destination must be mapped and the driver
    /// refuses.
    pub(crate) fn complete(
        &self,
        context: &DeviceContext,
        planned: &Planned,
        persistent: bool,
        users: u64,
    ) -> Result<(Grant, Emptied), MapError> {
        let Planned { source, key, memory, offset, .. } = *planned;
        let destination = planned.destination();
        let annotation = self.annotation(source)?;
        let users_after = users + u64::from(persistent);
        let mut mapped = planned.mapped;
        let mut counted = u64::from(mapped.is_mapped());
        if users_after != 0 && !mapped.is_mapped() {
            mapped = self.map(context, destination)?.at(offset);
            counted = 1;
        }
        let freed = self.vacate(context, source, persistent, users);
        let (emptied, freed) = match freed {
            Ok(emptied) => (emptied, Ok(())),
            Err(error) => (Vec::new(), Err(error)),
        };
        let emptied = self.destroy_all(context, emptied);
        {
            let mut core = self.core.lock();
            let active = core.use_of(destination.generation)?;
            let region = active.engine.span(key).map_err(|_| FOREIGN)?.region;
            let after = if freed.is_ok() { users_after } else { u64::from(planned.mapped.is_mapped()) };
            let block = active.block_mut(region);
            block.map_count = block.map_count.saturating_sub(counted) + after;
            if freed.is_ok() {
                annotate(&mut active.annotations, key, |kept| *kept = annotation);
                active.heeds_below = u64::MAX;
            }
        }
        freed?;
        if users_after == 0 || !persistent {
            mapped = MappedPointer::UNMAPPED;
        }
        let generation = source.generation;
        Ok((Grant { memory, offset, mapped, key, generation, shard: 0 }, emptied))
    }

    /// Frees the destination of a move.
    pub(crate) fn roll_back(&self, context: &DeviceContext, planned: &Planned) -> Emptied {
        let users = u64::from(planned.mapped.is_mapped());
        // If the vector was deactivated meanwhile, the place is gone too.
        let emptied = self.vacate(context, planned.destination(), false, users).unwrap_or_default();
        self.destroy_all(context, emptied)
    }

    /// Frees an allocation of this vector, and returns the freed blocks.
    pub(crate) fn free_moved(
        &self,
        context: &DeviceContext,
        source: AllocationKey,
        persistent: bool,
        users: u64,
    ) -> Result<Emptied, ForeignHandle> {
        let emptied = self.vacate(context, source, persistent, users)?;
        Ok(self.destroy_all(context, emptied))
    }

    /// Excludes the block of `source` from further moves of this context.
    pub(crate) fn let_stay(&self, source: AllocationKey) {
        let Ok(region) = self.region_of(source) else { return };
        let mut core = self.core.lock();
        if let Some(block) = core.use_of(source.generation).ok().and_then(|active| active.block_of(region)) {
            block.stays = true;
        }
    }

    /// Returns unused ranges of shards at the end of a pass.
    pub(crate) fn tidy(&self, context: &DeviceContext, compaction: &VectorCompaction) -> Emptied {
        if self.core.lock().use_of(compaction.generation).is_err() {
            return Emptied::default();
        }
        let mut leases = Vec::new();
        self.shards.iter().for_each(|(_, shard)| shard.lock().take_empty(&mut leases));
        let mut emptied = Emptied::default();
        for lease in &leases {
            let block = self.core.lock().take_back(context, lease);
            emptied.add(self.destroy_all(context, block.into_iter().collect()));
        }
        emptied
    }

    /// Frees the place of a source or destination. The caller destroys the returned blocks.
    fn vacate(
        &self,
        context: &DeviceContext,
        live: AllocationKey,
        persistent: bool,
        users: u64,
    ) -> Result<Vec<DeviceBlock>, ForeignHandle> {
        let Some(shard) = self.shard_of(live)? else {
            let mut core = self.core.lock();
            let active = core.use_of(live.generation)?;
            let (region, is_empty) = active.engine.take_back(live.key).ok_or(FOREIGN)?;
            let block = active.block_mut(region);
            block.map_count = block.map_count.saturating_sub(users + u64::from(persistent));
            let follow_up = active.after_free(context, live.key, region, is_empty);
            return Ok(follow_up.and_then(FollowUp::block).into_iter().collect());
        };
        let region = shard.lock().block_of(live)?;
        // The count changes before the range is free. Afterwards the block may have been destroyed and replaced by
        // another. The leased range itself counts persistent mappings.
        let count = |more: u64, fewer: u64| -> Result<(), ForeignHandle> {
            if more != fewer {
                let mut core = self.core.lock();
                if let Some(block) = core.use_of(live.generation)?.block_of(region) {
                    block.map_count = (block.map_count + more).saturating_sub(fewer);
                }
            }
            Ok(())
        };
        count(0, users)?;
        if let Err(error) = shard.free_in_own_shard(live) {
            count(users, 0)?;
            return Err(error);
        }
        let mut emptied = Vec::new();
        for lease in &shard.take_surplus(self.shards.is_attached(live.shard)) {
            emptied.extend(self.core.lock().take_back(context, lease));
        }
        Ok(emptied)
    }

    fn destroy_all(&self, context: &DeviceContext, blocks: Vec<DeviceBlock>) -> Emptied {
        let mut emptied = Emptied::default();
        for block in blocks {
            emptied.add(Emptied { blocks: 1, bytes: block.size });
            self.destroy_block(context, block);
        }
        emptied
    }
}
