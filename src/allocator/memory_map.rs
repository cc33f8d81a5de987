//! Builds memory maps by visiting the vectors.

use super::Allocator;
use crate::allocation::{AllocationId, ResourceKind};
use crate::blocks::{Annotation, MemoryBlockVector, Visited};
use crate::error::ForeignHandle;
use crate::pool::Pool;
use crate::statistics::{AllocationEntry, BlockMap, ChunkMap, DedicatedMap, MemoryMap, VectorMap};
use sublet_engines::cast::narrow;
use sublet_engines::{Key, Tag};

fn entry(id: AllocationId, tag: Tag, annotation: Option<&Annotation>) -> AllocationEntry {
    let Annotation { name, user_data, caller, .. } = annotation.cloned().unwrap_or_default();
    AllocationEntry {
        id,
        kind: ResourceKind::of(tag),
        usage: ResourceKind::usage_in(tag),
        name,
        user_data,
        caller,
    }
}

impl Allocator {
    /// A map of all blocks and their contents.
    ///
    /// # Complexity
    /// O(chunks), in time and in host memory. Holds the locks of a memory type or pool and all its shards while it is
    /// visited, so other threads wait. Meant for tools, not for every frame.
    ///
    /// ```
    /// # use sublet::*; use ash::vk;
    /// # let (gpu, allocator) = sublet::doc_example();
    /// let requirements = vk::MemoryRequirements { size: 4096, alignment: 256, memory_type_bits: !0 };
    /// let allocation = allocator.allocate_memory(&requirements, &AllocationCreateInfo::default())?;
    /// let map = allocator.memory_map();
    /// let block = &map.vectors[0].blocks[0];
    /// assert_eq!(block.memory, allocation.memory());
    /// assert!(block.chunks[0].allocation.is_some() && block.chunks[1].allocation.is_none());
    /// assert_eq!(block.chunks[0].size + block.chunks[1].size, block.size);
    /// # unsafe { allocator.free_memory(allocation) }?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    #[doc(alias = "BuildStatsString")]
    pub fn memory_map(&self) -> MemoryMap {
        let span = tracing::debug_span!(target: "sublet::statistics", "memory_map");
        let _entered = span.enter();
        let device = self.device();
        let vectors = self.inner.numbered_vectors();
        MemoryMap {
            vectors: vectors.filter_map(|(number, vector)| self.vector_map(number, vector)).collect(),
            memory_types: device.memory_types().len(),
            memory_heaps: device.memory_heaps().len(),
        }
    }

    /// A map of one pool: see [`Self::memory_map`].
    ///
    /// # Errors
    /// [`ForeignHandle`] if the pool belongs to another allocator.
    pub fn pool_memory_map(&self, pool: &Pool) -> Result<VectorMap, ForeignHandle> {
        let vector = self.pool_vector(pool)?;
        self.vector_map(pool.facts.vector, vector).ok_or(ForeignHandle::Pool)
    }

    /// Returns `None` if the vector is not in use.
    fn vector_map(&self, number: u32, vector: &MemoryBlockVector) -> Option<VectorMap> {
        let mut map = None;
        let mut generation_now = 0;
        vector.visit(&mut |visited| {
            if let Visited::Vector { config, generation, name } = visited {
                generation_now = generation;
                map = Some(VectorMap {
                    memory_type_index: config.memory_type,
                    heap_index: self.inner.context.heap_of(config.memory_type),
                    pool: number.checked_sub(narrow(self.inner.defaults.len())),
                    pool_name: name.map(Box::from),
                    algorithm: config.algorithm,
                    block_size: config.block_size,
                    blocks: Vec::new(),
                    dedicated: Vec::new(),
                });
            }
            let Some(map) = map.as_mut() else { return };
            let id = |key: Key, shard, dedicated| AllocationId {
                allocator: self.inner.id,
                vector: number,
                generation: generation_now,
                shard,
                dedicated,
                key: key.0,
            };
            match visited {
                Visited::Vector { .. } => {}
                Visited::Block { id, memory, size, map_count } => {
                    map.blocks.push(BlockMap { id, memory, size, map_count, chunks: Vec::new() });
                }
                Visited::Chunk { chunk, shard, annotation } => {
                    let allocation =
                        chunk.used.map(|(key, tag)| entry(id(key, shard, false), tag, annotation));
                    if let Some(block) = map.blocks.last_mut() {
                        block.chunks.push(ChunkMap { offset: chunk.offset, size: chunk.size, allocation });
                    }
                }
                Visited::Dedicated { key, memory, size, map_count, tag, annotation } => {
                    let allocation = entry(id(key, 0, true), tag, Some(annotation));
                    map.dedicated.push(DedicatedMap { memory, size, map_count, allocation });
                }
            }
        });
        // Indices of freed blocks are reused, so sort by id.
        if let Some(map) = map.as_mut() {
            map.blocks.sort_by_key(|block| block.id);
        }
        map
    }
}
