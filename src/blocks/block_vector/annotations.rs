//! Optional data of an allocation. It lives in a table beside the engine, so that allocations without annotations cost
//! nothing.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasherDefault, Hasher};
use std::panic::Location;

use super::super::device_block::DeviceContext;
use super::{AllocationKey, FOREIGN, MemoryBlockVector};
use crate::error::ForeignHandle;
use sublet_engines::{Key, Metadata};

/// The optional data of one allocation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Annotation {
    pub(crate) name: Option<Box<str>>,
    /// The caller's own number, if such numbers are tracked.
    pub(crate) user_data: Option<u64>,
    /// The code location of the allocation, if tracked.
    pub(crate) caller: Option<&'static Location<'static>>,
    /// The range is the reserved destination of a move, and not an allocation yet.
    pub(crate) is_set_aside: bool,
}

impl Annotation {
    pub(crate) fn is_empty(&self) -> bool {
        let Self { name, user_data, caller, is_set_aside } = self;
        name.is_none() && user_data.is_none() && caller.is_none() && !is_set_aside
    }
}

/// The annotations of an engine's allocations. None of them is empty.
pub(super) type Annotations = HashMap<Key, Annotation, BuildHasherDefault<KeyHasher>>;

/// Hashes keys by one multiplication. Engines create the keys, so nobody can choose colliding ones, and live keys
/// differ in their lower bits.
#[derive(Default)]
pub(super) struct KeyHasher(u64);

impl Hasher for KeyHasher {
    #[inline]
    fn write_u64(&mut self, bits: u64) {
        // The golden ratio: an odd number whose bits have no pattern.
        self.0 = (self.0 ^ bits).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(26);
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(byte.into()));
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
}

/// Changes the annotation of a live key, and creates it if needed.
pub(super) fn annotate(annotations: &mut Annotations, key: Key, change: impl FnOnce(&mut Annotation)) {
    match annotations.entry(key) {
        Entry::Occupied(mut annotation) => {
            change(annotation.get_mut());
            if annotation.get().is_empty() {
                annotation.remove();
            }
        }
        Entry::Vacant(place) => {
            let mut annotation = Annotation::default();
            change(&mut annotation);
            if !annotation.is_empty() {
                place.insert(annotation);
            }
        }
    }
}

impl MemoryBlockVector {
    /// Changes the annotation of an allocation.
    pub(crate) fn annotate(
        &self,
        live: AllocationKey,
        change: impl FnOnce(&mut Annotation),
    ) -> Result<(), ForeignHandle> {
        if live.dedicated {
            change(&mut self.dedicated.lock().get_mut(live.key).map_err(|_| FOREIGN)?.annotation);
            return Ok(());
        }
        if let Some(shard) = self.shard_of(live)? {
            return shard.lock().annotate(live, change);
        }
        let mut core = self.core.lock();
        let active = core.use_of(live.generation)?;
        active.engine.region_of(live.key).ok_or(FOREIGN)?;
        annotate(&mut active.annotations, live.key, change);
        active.heeds_below = u64::MAX;
        Ok(())
    }

    /// The annotation of an allocation.
    pub(crate) fn annotation(&self, live: AllocationKey) -> Result<Annotation, ForeignHandle> {
        if live.dedicated {
            return Ok(self.dedicated.lock().get_mut(live.key).map_err(|_| FOREIGN)?.annotation.clone());
        }
        if let Some(shard) = self.shard_of(live)? {
            return shard.lock().annotation(live);
        }
        let mut core = self.core.lock();
        let active = core.use_of(live.generation)?;
        active.engine.span(live.key).map_err(|_| FOREIGN)?;
        Ok(active.annotations.get(&live.key).cloned().unwrap_or_default())
    }

    /// The annotation of an allocation, and the bytes of its `VkDeviceMemory`.
    // Inlined, to avoid a copy of the result.
    #[inline(always)]
    pub(crate) fn annotation_and_memory_size(
        &self,
        live: AllocationKey,
    ) -> Result<(Annotation, u64), ForeignHandle> {
        if live.dedicated || live.shard != 0 {
            return Ok((self.annotation(live)?, self.memory_size(live)?));
        }
        // The common case needs one lock and one lookup.
        let mut core = self.core.lock();
        let active = core.use_of(live.generation)?;
        let region = active.engine.region_of(live.key).ok_or(FOREIGN)?;
        let memory_size = active.block_of(region).ok_or(FOREIGN)?.memory.size;
        Ok((active.annotations.get(&live.key).cloned().unwrap_or_default(), memory_size))
    }

    /// Sets or clears the name of an allocation.
    pub(crate) fn set_name(&self, live: AllocationKey, name: Option<&str>) -> Result<(), ForeignHandle> {
        let name = name.map(Box::from);
        self.annotate(live, |annotation| annotation.name = name)
    }

    /// Sets or clears the name of the pool.
    pub(crate) fn set_pool_name(&self, generation: u32, name: Option<&str>) -> Result<(), ForeignHandle> {
        let mut core = self.core.lock();
        core.use_of(generation).map_err(|_| ForeignHandle::Pool)?.name = name.map(Box::from);
        Ok(())
    }

    /// The name of the pool.
    pub(crate) fn pool_name(&self) -> Option<Box<str>> {
        self.core.lock().active.as_ref().and_then(|active| active.name.clone())
    }

    /// Changes how many empty blocks are kept, and frees the surplus. Returns the bytes freed.
    pub(crate) fn set_empty_blocks_kept(
        &self,
        context: &DeviceContext,
        generation: Option<u32>,
        kept: u32,
    ) -> Result<u64, ForeignHandle> {
        {
            let mut core = self.core.lock();
            let generation = generation.unwrap_or(core.generation);
            let active = core.use_of(generation).map_err(|_| ForeignHandle::Pool)?;
            active.config.empty_blocks_kept = kept;
            active.heeds_below = u64::MAX;
        }
        // Blocks that hold only unused leased ranges are empty too.
        Ok(self.reclaim(context).unwrap_or(0) + self.give_empty_blocks_back(context, kept))
    }
}
