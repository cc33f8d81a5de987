//! Reports on a vector: sums, a walk over everything, and validation.

use std::collections::HashMap;

use super::shard::ShardState;
use super::state::is_lease;
use super::{Annotation, MemoryBlockVector, VectorTotals, Visited};
use crate::base::sync::atomic::Ordering;
use sublet_engines::cast::index;
use sublet_engines::{ChunkInfo, Key, Metadata, RegionId, Sizes};

impl MemoryBlockVector {
    /// Sums over blocks, shards and dedicated allocations. O(shards).
    pub(crate) fn totals(&self) -> VectorTotals {
        self.totals_and_type().map_or_else(VectorTotals::default, |(_, totals)| totals)
    }

    /// [`Self::totals`] with the memory type. Returns `None` if the vector never had memory, which needs no lock.
    // Inlined, to avoid a copy of the figures.
    #[inline(always)]
    pub(crate) fn totals_and_type(&self) -> Option<(u32, VectorTotals)> {
        if !self.had_memory.load(Ordering::Relaxed) {
            return None;
        }
        let (memory_type, has_leases, mut totals) = {
            let core = self.core.lock();
            let active = core.active.as_ref()?;
            (active.config.memory_type, active.lease_count > 0, active.totals())
        };
        // A shard's allocations lie in leased ranges.
        if has_leases {
            self.add_shards(&mut totals);
        }
        let (count, bytes) = self.dedicated.lock().totals();
        totals.add_dedicated(count, bytes);
        Some((memory_type, totals))
    }

    /// The memory type, sums, and the extremes of sizes. Returns `None` if the vector is not in use, or if shards hold
    /// a part of it; then [`Self::visit`] is needed. O(chunks).
    pub(crate) fn measure(&self) -> Option<(u32, VectorTotals, Sizes)> {
        let (memory_type, mut totals, mut sizes) = {
            let core = self.core.lock();
            let active = core.active.as_ref().filter(|active| active.lease_count == 0)?;
            let mut sizes = Sizes::default();
            for (id, _) in (0..).zip(&active.blocks).filter(|(_, block)| block.is_some()) {
                sizes.add(&active.engine.measure(RegionId(id)));
            }
            (active.config.memory_type, active.totals(), sizes)
        };
        let dedicated = self.dedicated.lock();
        let (count, bytes) = dedicated.totals();
        totals.add_dedicated(count, bytes);
        dedicated.iter().for_each(|(_, dedicated)| sizes.add_used(dedicated.block.size));
        Some((memory_type, totals, sizes))
    }

    #[cold]
    fn add_shards(&self, totals: &mut VectorTotals) {
        for (_, shard) in self.shards.iter() {
            let usage = shard.lock().usage();
            totals.allocation_count += usage.used_chunks;
            totals.allocation_bytes += usage.used;
        }
    }

    /// Visits every block with its chunks, then every dedicated allocation. Holds the locks: `visit` must not call the
    /// allocator.
    pub(crate) fn visit(&self, visit: &mut dyn FnMut(Visited<'_>)) {
        let shards: Vec<_> = self.shards.iter().map(|(number, shard)| (number, shard.lock())).collect();
        // Maps the core's key of a leased range to its shard and region.
        let mut leases = HashMap::new();
        for ((_, shard), at) in shards.iter().zip(0..) {
            leases.extend(shard.leases().map(|(key, region)| (key, (at, region))));
        }
        let core = self.core.lock();
        let generation = core.generation;
        if let Some(active) = core.active.as_ref() {
            visit(Visited::Vector { config: &active.config, generation, name: active.name.as_deref() });
            for (id, block) in (0..).zip(&active.blocks) {
                let Some(block) = block else { continue };
                visit(Visited::Block {
                    id: block.id,
                    memory: block.memory.memory,
                    size: block.memory.size,
                    map_count: block.map_count,
                });
                active.engine.walk(RegionId(id), &mut |chunk| match chunk.used {
                    Some((key, tag)) if is_lease(tag) => match leases.get(&key) {
                        Some(&(at, region)) => {
                            let (number, state) = &shards[index(at)];
                            let (shard, state): (u8, &ShardState) = (*number, state);
                            state.walk(region, &mut |chunk, annotation| {
                                visit(Visited::Chunk { chunk, shard, annotation });
                            });
                        }
                        // The range is being leased or returned.
                        None => visit(Visited::Chunk {
                            chunk: ChunkInfo { used: None, ..chunk },
                            shard: 0,
                            annotation: None,
                        }),
                    },
                    used => {
                        let annotation = used.and_then(|(key, _)| active.annotations.get(&key));
                        visit(Visited::Chunk { chunk, shard: 0, annotation });
                    }
                });
            }
        }
        drop(core);
        drop(shards);
        for (key, dedicated) in self.dedicated.lock().iter() {
            visit(Visited::Dedicated {
                key,
                memory: dedicated.block.memory,
                size: dedicated.block.size,
                map_count: dedicated.map_count,
                tag: dedicated.tag,
                annotation: &dedicated.annotation,
            });
        }
    }

    /// Checks the state of this vector against its engine.
    ///
    /// # Panics
    /// Panics with the violated invariant.
    pub(crate) fn validate(&self) {
        let shards: Vec<_> = self.shards.iter().map(|(_, shard)| shard.lock()).collect();
        shards.iter().for_each(|shard| shard.validate());
        let core = self.core.lock();
        let Some(active) = core.active.as_ref() else {
            return;
        };
        active.engine.validate();
        let mut in_shards = 0;
        for (key, _) in shards.iter().flat_map(|shard| shard.leases()) {
            assert_eq!(active.engine.tag(key).map(is_lease), Ok(true), "V9: a lease is a chunk of the core");
            in_shards += 1;
        }
        // The core may count more: ranges that threads are leasing or returning at the moment.
        assert!(in_shards <= active.lease_count, "V10: the core knows of every lease");
        let (mut lease_count, mut lease_bytes) = (0, 0);
        for (id, _) in (0..).zip(&active.blocks).filter(|(_, block)| block.is_some()) {
            active.engine.walk(RegionId(id), &mut |chunk| {
                if chunk.used.is_some_and(|(_, tag)| is_lease(tag)) {
                    lease_count += 1;
                    lease_bytes += chunk.size;
                }
            });
        }
        let counted = (active.lease_count, active.lease_bytes);
        assert_eq!((lease_count, lease_bytes), counted, "V11: the number of leases, and their bytes");
        let live = || active.blocks.iter().flatten();
        assert_eq!(live().count(), index(active.block_count), "V1: the block count is the number of blocks");
        assert_eq!(live().map(|block| block.memory.size).sum::<u64>(), active.block_bytes, "V2: block bytes");
        assert_eq!(
            live().filter(|block| block.empty).count(),
            index(active.empty_blocks),
            "V3: empty blocks"
        );
        for (id, block) in (0..).zip(&active.blocks) {
            if let Some(block) = block {
                let usage = active.engine.region_usage(RegionId(id));
                assert_eq!(usage.capacity, block.memory.size, "V4: a region is as large as its block");
                let is_empty = block.empty || block.reserved && usage.used_chunks == 0;
                assert_eq!(usage.used_chunks == 0, is_empty, "V5: a block is empty when its region is");
                assert!(!(block.empty && block.reserved), "V13: a reserved block is never one that may go");
            }
        }
        assert!(active.block_count >= active.config.min_blocks, "V6: the first blocks stay");
        assert!(active.block_count <= active.config.max_blocks, "V7: there are not too many blocks");
        let kept = |(&key, annotation): (&Key, &Annotation)| {
            !annotation.is_empty() && active.engine.span(key).is_ok()
        };
        assert!(
            active.annotations.iter().all(kept),
            "V8: only live allocations have annotations, and not empty ones"
        );
        assert!(
            active.heeds_below >= active.must_heed_below(),
            "V12: a free looks for annotations, a spare block, and leases"
        );
    }
}
