//! The blocks of one memory type or pool, and the engine that divides them.
//!
//! Three locks, each with one purpose. `core` guards the engine and the list of blocks; it is held for the bookkeeping of
//! one call and **never across a call of the driver**. `growth` is held by the one thread that asks the driver for a
//! block: who finds the vector full takes it, looks again, and only then grows; who finds room never meets it. `mappings`
//! is held while the driver maps, unmaps or frees a block. `core` may be taken while one of the others is held, never the
//! other way round.
#![forbid(unsafe_code)]

mod state;

use ash::vk;

use self::state::{Active, Core};
use super::dedicated::{Dedicated, DedicatedList};
use super::device_block::{DeviceBlock, DeviceContext, map_memory, unmap_memory};
use super::growth::{Growth, VectorConfig};
use super::mapping::MappedPointer;
use crate::base::cast::index;
use crate::base::sync::{Mutex, Threading};
use crate::device::DriverAllocation;
use crate::error::{AllocationError, ForeignHandle, MapError, MemoryError};
use crate::metadata::{Chunk, Key, Metadata, RegionId, Strategy, Tag};

/// What is asked of a vector.
#[derive(Clone, Copy, Debug)]
pub(crate) struct VectorRequest {
    pub(crate) size: u64,
    pub(crate) alignment: u64,
    pub(crate) strategy: Strategy,
    pub(crate) upper: bool,
    pub(crate) tag: Tag,
    /// The resource may be optimal: it gets whole granularity pages, so that no linear one shares a page with it.
    pub(crate) whole_pages: bool,
    /// The allocation stays mapped for its whole life.
    pub(crate) mapped: bool,
    pub(crate) never_allocate: bool,
    pub(crate) within_budget: bool,
}

/// What a vector granted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grant {
    pub(crate) memory: vk::DeviceMemory,
    pub(crate) offset: u64,
    pub(crate) mapped: MappedPointer,
    pub(crate) key: Key,
    pub(crate) generation: u32,
}

/// Names one allocation of one vector.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Live {
    pub(crate) generation: u32,
    pub(crate) key: Key,
    pub(crate) dedicated: bool,
}

/// Sums over a vector.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Totals {
    pub(crate) block_count: u64,
    pub(crate) block_bytes: u64,
    pub(crate) allocation_count: u64,
    pub(crate) allocation_bytes: u64,
}

/// What a visitor of a vector is shown.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Visited<'a> {
    /// A block begins; its chunks follow in the order of their offsets.
    Block {
        size: u64,
    },
    Chunk {
        chunk: Chunk,
        name: Option<&'a str>,
    },
    Dedicated {
        size: u64,
        tag: Tag,
        name: Option<&'a str>,
    },
}

/// See the module's documentation.
pub(crate) struct BlockVector<T: Threading> {
    core: Mutex<T, Core>,
    growth: Mutex<T, ()>,
    mappings: Mutex<T, ()>,
    dedicated: Mutex<T, DedicatedList>,
}

/// The allocation is not one of this vector's.
const FOREIGN: ForeignHandle = ForeignHandle::Allocation;

impl<T: Threading> BlockVector<T> {
    /// A vector that is not in use yet.
    pub(crate) fn unused() -> Self {
        Self {
            core: Mutex::<T, _>::new(Core::default()),
            growth: Mutex::<T, _>::new(()),
            mappings: Mutex::<T, _>::new(()),
            dedicated: Mutex::<T, _>::new(DedicatedList::default()),
        }
    }

    /// Puts the vector to use, with its first blocks. On failure it stays unused and the driver has everything back.
    pub(crate) fn activate(
        &self,
        context: &DeviceContext,
        config: VectorConfig,
        name: Option<&str>,
    ) -> Result<u32, MemoryError> {
        let mut active = Active::new(config, name);
        let growth = Growth { config, needed: 0, largest_block: 0, within_budget: false };
        for _ in 0..config.min_blocks {
            let made = growth.ask(context, config.block_size).and_then(|block| {
                active.add_block(block).map(|_| ()).map_err(|block| {
                    block.destroy(context);
                    MemoryError::TooManyAllocations { limit: active.block_count }
                })
            });
            if let Err(error) = made {
                active.take_all_blocks().into_iter().for_each(|block| block.destroy(context));
                return Err(error);
            }
        }
        let mut core = self.core.lock();
        core.generation = core.generation.wrapping_add(1);
        core.active = Some(active);
        Ok(core.generation)
    }

    /// Takes the vector out of use. Allocations that are still live are shown to `leak`; their memory is freed.
    pub(crate) fn deactivate(&self, context: &DeviceContext, leak: &mut dyn FnMut(Visited<'_>)) {
        self.visit(&mut |visited| match visited {
            Visited::Chunk { chunk: Chunk { used: Some(_), .. }, .. } | Visited::Dedicated { .. } => {
                leak(visited)
            }
            _ => {}
        });
        let active = {
            let mut core = self.core.lock();
            core.generation = core.generation.wrapping_add(1);
            core.active.take()
        };
        let dedicated = self.dedicated.lock().drain();
        // See `destroy_block`.
        drop(self.mappings.lock());
        if let Some(mut active) = active {
            active.take_all_blocks().into_iter().for_each(|block| block.destroy(context));
        }
        dedicated.into_iter().for_each(|dedicated| dedicated.block.destroy(context));
    }

    /// What the vector was made with; `None` if it is not in use, or in another use than `generation`.
    pub(crate) fn config(&self, generation: Option<u32>) -> Option<VectorConfig> {
        let core = self.core.lock();
        if generation.is_some_and(|generation| generation != core.generation) {
            return None;
        }
        core.active.as_ref().map(|active| active.config)
    }

    /// Grants memory out of a block, out of a new one if need be.
    #[inline]
    pub(crate) fn allocate(
        &self,
        context: &DeviceContext,
        request: &VectorRequest,
    ) -> Result<Grant, AllocationError> {
        let first = {
            let mut core = self.core.lock();
            let first = core.try_allocate(request)?;
            if first.is_none() {
                // Who may not grow the vector learns it here, and does not wait for one who does.
                core.check_growth(request)?;
            }
            first
        };
        match first {
            Some(grant) => self.finish(context, grant, request),
            None => self.grow(context, request),
        }
    }

    /// The slow half of [`Self::allocate`].
    #[cold]
    fn grow(&self, context: &DeviceContext, request: &VectorRequest) -> Result<Grant, AllocationError> {
        let growth_lock = self.growth.lock();
        let growth = {
            let mut core = self.core.lock();
            // Another thread may have grown the vector, or freed something, since.
            if let Some(grant) = core.try_allocate(request)? {
                drop(core);
                drop(growth_lock);
                return self.finish(context, grant, request);
            }
            core.plan_growth(request)?
        };
        let block = growth.allocate(context)?;
        let (granted, unwanted) = self.core.lock().allocate_with(block, request);
        drop(growth_lock);
        if let Some(block) = unwanted {
            block.destroy(context);
        }
        self.finish(context, granted?, request)
    }

    /// Maps the block if the allocation is to be mapped and the block is not.
    #[inline]
    fn finish(
        &self,
        context: &DeviceContext,
        grant: Grant,
        request: &VectorRequest,
    ) -> Result<Grant, AllocationError> {
        if !request.mapped || grant.mapped.is_mapped() {
            return Ok(grant);
        }
        let live = Live { generation: grant.generation, key: grant.key, dedicated: false };
        match self.map_memory(context, live) {
            Ok(mapped) => Ok(Grant { mapped: mapped.at(grant.offset), ..grant }),
            Err(error) => {
                // The key was granted a moment ago and nobody else has it.
                let freed = self.free(context, live, true);
                debug_assert!(freed.is_ok());
                match error {
                    MapError::Driver(error) => Err(AllocationError::Map(error)),
                    _ => Err(AllocationError::ForeignPool),
                }
            }
        }
    }

    /// Takes an allocation back. A block that is empty now may go back to the driver.
    #[inline]
    pub(crate) fn free(
        &self,
        context: &DeviceContext,
        live: Live,
        mapped: bool,
    ) -> Result<(), ForeignHandle> {
        if live.dedicated {
            return self.free_dedicated(context, live);
        }
        let emptied = {
            let mut core = self.core.lock();
            let active = core.use_of(live.generation)?;
            let freed = active.engine.free(live.key).map_err(|_| FOREIGN)?;
            if !active.names.is_empty() {
                active.names.remove(&live.key);
            }
            if mapped {
                let block = active.block_mut(freed.span.region);
                // A program that unmapped once too often must not take the allocator down with it.
                block.map_count = block.map_count.saturating_sub(1);
            }
            if freed.region_empty { active.on_empty(context, freed.span.region) } else { None }
        };
        if let Some(block) = emptied {
            self.destroy_block(context, block);
        }
        Ok(())
    }

    /// Gives back memory that was taken out of the books.
    #[cold]
    fn destroy_block(&self, context: &DeviceContext, block: DeviceBlock) {
        // `trim` may be about to unmap it. It cannot begin to any more, so that waiting once is enough, and others may
        // map while the driver frees.
        drop(self.mappings.lock());
        block.destroy(context);
    }

    /// Gives empty blocks back and unmaps what nobody has mapped. Returns the bytes given back.
    pub(crate) fn trim(&self, context: &DeviceContext) -> u64 {
        let mappings = self.mappings.lock();
        let (emptied, unmapped) = {
            let mut core = self.core.lock();
            let Some(active) = core.active.as_mut() else {
                return 0;
            };
            (active.take_empty_blocks(0), active.take_idle_mappings())
        };
        let dedicated = self.dedicated.lock().take_idle_mappings();
        unmapped.into_iter().chain(dedicated).for_each(|memory| unmap_memory(context, memory));
        drop(mappings);
        let bytes = emptied.iter().map(|block| block.size).sum();
        emptied.into_iter().for_each(|block| block.destroy(context));
        bytes
    }

    /// Counts one more user of the mapping of the memory of `live`, and maps it if it is not mapped.
    ///
    /// The answer is where the **memory** begins, not the allocation.
    pub(crate) fn map(&self, context: &DeviceContext, live: Live) -> Result<MappedPointer, MapError> {
        let mapped = self.with_memory(live, |memory, map_count| {
            *map_count += 1;
            memory.mapped()
        })?;
        if mapped.is_mapped() {
            return Ok(mapped);
        }
        self.map_memory(context, live).inspect_err(|_| {
            let uncounted = self.unmap(live);
            debug_assert!(uncounted.is_ok());
        })
    }

    /// Counts one user of the mapping less. The memory stays mapped until it is freed or trimmed.
    pub(crate) fn unmap(&self, live: Live) -> Result<(), MapError> {
        self.with_memory(live, |_, map_count| {
            *map_count = map_count.checked_sub(1).ok_or(MapError::NotMapped)?;
            Ok(())
        })?
    }

    /// Maps the memory of `live`, whose map count says already that it is in use.
    #[cold]
    fn map_memory(&self, context: &DeviceContext, live: Live) -> Result<MappedPointer, MapError> {
        let _mappings = self.mappings.lock();
        let (memory, mapped) = self.with_memory(live, |memory, _| (memory.memory, memory.mapped()))?;
        if mapped.is_mapped() {
            return Ok(mapped);
        }
        let mapped = map_memory(context, memory)?;
        self.with_memory(live, |memory, _| memory.set_mapped(mapped))?;
        Ok(mapped)
    }

    /// Bytes of the `VkDeviceMemory` that the allocation is in.
    pub(crate) fn memory_size(&self, live: Live) -> Result<u64, ForeignHandle> {
        self.with_memory(live, |memory, _| memory.size)
    }

    /// Counts one more user of a mapping that there is, so that nobody ends it. Gives the bytes of the `VkDeviceMemory`
    /// that the allocation is in. Paired with [`Self::unmap`].
    pub(crate) fn pin_mapping(&self, live: Live) -> Result<u64, MapError> {
        self.with_memory(live, |memory, map_count| {
            if !memory.mapped().is_mapped() {
                return Err(MapError::NotMapped);
            }
            *map_count += 1;
            Ok(memory.size)
        })?
    }

    /// Calls `look` with the memory of a live allocation and the number of users of its mapping.
    fn with_memory<R>(
        &self,
        live: Live,
        look: impl FnOnce(&mut DeviceBlock, &mut u64) -> R,
    ) -> Result<R, ForeignHandle> {
        if live.dedicated {
            let mut list = self.dedicated.lock();
            let dedicated = list.get_mut(live.key).map_err(|_| FOREIGN)?;
            return Ok(look(&mut dedicated.block, &mut dedicated.map_count));
        }
        let mut core = self.core.lock();
        let active = core.use_of(live.generation)?;
        let span = active.engine.span(live.key).map_err(|_| FOREIGN)?;
        let block = active.block_mut(span.region);
        Ok(look(&mut block.memory, &mut block.map_count))
    }

    /// Names an allocation, or takes its name away.
    pub(crate) fn set_name(&self, live: Live, name: Option<&str>) -> Result<(), ForeignHandle> {
        let name = name.map(Box::from);
        if live.dedicated {
            self.dedicated.lock().get_mut(live.key).map_err(|_| FOREIGN)?.name = name;
            return Ok(());
        }
        let mut core = self.core.lock();
        let active = core.use_of(live.generation)?;
        active.engine.span(live.key).map_err(|_| FOREIGN)?;
        match name {
            Some(name) => active.names.insert(live.key, name),
            None => active.names.remove(&live.key),
        };
        Ok(())
    }

    /// The name of an allocation.
    pub(crate) fn name(&self, live: Live) -> Result<Option<Box<str>>, ForeignHandle> {
        if live.dedicated {
            return Ok(self.dedicated.lock().get_mut(live.key).map_err(|_| FOREIGN)?.name.clone());
        }
        let mut core = self.core.lock();
        let active = core.use_of(live.generation)?;
        active.engine.span(live.key).map_err(|_| FOREIGN)?;
        Ok(active.names.get(&live.key).cloned())
    }

    /// Names the pool that this vector is, or takes its name away.
    pub(crate) fn set_pool_name(&self, generation: u32, name: Option<&str>) -> Result<(), ForeignHandle> {
        let mut core = self.core.lock();
        core.use_of(generation).map_err(|_| ForeignHandle::Pool)?.name = name.map(Box::from);
        Ok(())
    }

    /// The name of the pool that this vector is.
    pub(crate) fn pool_name(&self) -> Option<Box<str>> {
        self.core.lock().active.as_ref().and_then(|active| active.name.clone())
    }

    /// Makes a dedicated allocation. `None` in `priority` is the vector's own.
    pub(crate) fn allocate_dedicated(
        &self,
        context: &DeviceContext,
        what: &DriverAllocation,
        request: &VectorRequest,
    ) -> Result<Grant, AllocationError> {
        let (generation, config) = {
            let core = self.core.lock();
            (core.generation, core.active.as_ref().ok_or(AllocationError::ForeignPool)?.config)
        };
        let next = if what.next.is_null() { config.next.get() } else { what.next };
        let what = DriverAllocation { next, priority: what.priority.or(Some(config.priority)), ..*what };
        let mut block = DeviceBlock::allocate(context, &what, request.within_budget)?;
        if request.mapped {
            if let Err(error) = block.map(context) {
                block.destroy(context);
                return Err(AllocationError::Map(error));
            }
        }
        let (memory, mapped) = (block.memory, block.mapped());
        let map_count = u64::from(request.mapped);
        let key = self.dedicated.lock().insert(Dedicated { block, map_count, tag: request.tag, name: None });
        Ok(Grant { memory, offset: 0, mapped, key, generation })
    }

    #[cold]
    fn free_dedicated(&self, context: &DeviceContext, live: Live) -> Result<(), ForeignHandle> {
        // Bound first: a guard in the scrutinee would be held across the driver's call.
        let removed = self.dedicated.lock().remove(live.key);
        self.destroy_block(context, removed.map_err(|_| FOREIGN)?.block);
        Ok(())
    }

    /// Sums over blocks and dedicated allocations. O(1).
    pub(crate) fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        if let Some(active) = self.core.lock().active.as_ref() {
            let usage = active.engine.usage();
            totals = Totals {
                block_count: u64::from(active.block_count),
                block_bytes: active.block_bytes,
                allocation_count: usage.used_chunks,
                allocation_bytes: usage.used,
            };
        }
        let (count, bytes) = self.dedicated.lock().totals();
        totals.block_count += count;
        totals.block_bytes += bytes;
        totals.allocation_count += count;
        totals.allocation_bytes += bytes;
        totals
    }

    /// Shows every block with its chunks, then every dedicated allocation. The locks are held meanwhile: `visit` must not
    /// call into the allocator.
    pub(crate) fn visit(&self, visit: &mut dyn FnMut(Visited<'_>)) {
        if let Some(active) = self.core.lock().active.as_ref() {
            for (id, block) in (0..).zip(&active.blocks) {
                let Some(block) = block else { continue };
                visit(Visited::Block { size: block.memory.size });
                active.engine.walk(RegionId(id), &mut |chunk| {
                    let name = chunk.used.and_then(|(key, _)| active.names.get(&key)).map(AsRef::as_ref);
                    visit(Visited::Chunk { chunk, name });
                });
            }
        }
        for dedicated in self.dedicated.lock().iter() {
            let name = dedicated.name.as_deref();
            visit(Visited::Dedicated { size: dedicated.block.size, tag: dedicated.tag, name });
        }
    }

    /// Checks the books of this vector against its engine.
    ///
    /// # Panics
    /// Names what does not agree.
    pub(crate) fn validate(&self) {
        let core = self.core.lock();
        let Some(active) = core.active.as_ref() else {
            return;
        };
        active.engine.validate();
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
                assert_eq!(usage.used_chunks == 0, block.empty, "V5: a block is empty when its region is");
            }
        }
        assert!(active.block_count >= active.config.min_blocks, "V6: the first blocks stay");
        assert!(active.block_count <= active.config.max_blocks, "V7: there are not too many blocks");
        let named = active.names.keys().all(|&key| active.engine.span(key).is_ok());
        assert!(named, "V8: only live allocations have names");
    }
}
