//! The blocks of one memory type or pool, and the engine that divides them.
//!
//! A vector used by one thread is its **core**: an engine and the list of blocks. Threads that contend for the core get
//! **shards**, which divide ranges leased from the core. `shards.rs` assigns shards to threads, `shard.rs` implements
//! them, and `returns.rs` handles allocations that another thread frees.
//!
//! ```text
//!   allocate      shard? -- 0 --> core: try_lock --> engine                       the fast path: `try_allocate`
//!                   |                    \-- contended: count that, wait, or get a shard
//!                   \-- n --> shard n: lock --> its engine --> full: lease a range of the core
//!                 full: empty leased ranges return --> growth: try again, call the driver
//!
//!   free          by the owner in the handle: the core, the caller's own shard, or another shard (through its ring)
//! ```
//!
//! [`MemoryBlockVector`] has the locks. Sections under `core` and the shard locks are brief: no driver call, no event,
//! no code of the caller. The lock order prevents deadlocks: `growth` or `mappings`, then shards by number, then `core`.
//! `dedicated` is held with no other lock but `mappings`. A successful allocation from an existing block and a free hold
//! one lock at a time.

mod allocate;
mod annotations;
mod defragment;
mod empties;
mod ends;
mod foresee;
mod free;
mod maintain;
mod map;
#[cfg(all(loom, test))]
mod modelled;
mod priority;
mod reserve;
mod returns;
mod shard;
mod shards;
mod show;
mod state;
#[cfg(test)]
#[cfg(not(loom))]
mod tests;
mod undo;

pub(crate) use self::defragment::{
    BeginVectorError, Effort, Emptied, Extent, PassBudget, Planned, VectorCompaction,
};

use std::ops::Deref;

use ash::vk;

pub(crate) use self::allocate::{BlockSearch, VectorRequest};
pub(crate) use self::annotations::Annotation;
pub(crate) use self::maintain::{BlockLack, MaintenanceWish};
use self::shards::Shards;
use self::state::VectorCore;
use super::dedicated::DedicatedList;
use super::device_block::{DeviceBlock, DeviceContext};
use super::events::PendingEvents;
use super::mapped_pointer::MappedPointer;
use crate::base::sync::atomic::{AtomicBool, Ordering};
use crate::base::sync::{CoreMutex, Mutex};
use crate::error::{ForeignHandle, MemoryError};
use crate::pool::VectorConfig;
use sublet_engines::{ChunkInfo, Key, Tag};

/// A granted allocation. The allocator's `Miss::Unmapped` depends on the order of fields.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Grant {
    pub(crate) key: Key,
    pub(crate) generation: u32,
    pub(crate) shard: u8,
    pub(crate) memory: vk::DeviceMemory,
    pub(crate) offset: u64,
    pub(crate) mapped: MappedPointer,
}

/// Identifies one allocation of one vector.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AllocationKey {
    pub(crate) generation: u32,
    pub(crate) key: Key,
    pub(crate) dedicated: bool,
    /// The owner of the key: a shard, or the core if 0.
    pub(crate) shard: u8,
}

/// Sums over a vector.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct VectorTotals {
    pub(crate) block_count: u64,
    pub(crate) block_bytes: u64,
    pub(crate) allocation_count: u64,
    pub(crate) allocation_bytes: u64,
}

impl VectorTotals {
    /// Adds dedicated allocations, which count as blocks as well.
    fn add_dedicated(&mut self, count: u64, bytes: u64) {
        self.block_count += count;
        self.block_bytes += bytes;
        self.allocation_count += count;
        self.allocation_bytes += bytes;
    }
}

/// An item that a visitor of a vector receives.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Visited<'a> {
    /// Comes first if the vector is in use.
    Vector {
        config: &'a VectorConfig,
        generation: u32,
        /// The pool's name.
        name: Option<&'a str>,
    },
    /// A block. Its chunks follow in the order of their offsets.
    Block {
        /// Numbered from the first block of this use of the vector.
        id: u32,
        memory: vk::DeviceMemory,
        size: u64,
        map_count: u64,
    },
    Chunk {
        chunk: ChunkInfo,
        /// The owner of the key, as in [`AllocationKey`].
        shard: u8,
        annotation: Option<&'a Annotation>,
    },
    Dedicated {
        key: Key,
        memory: vk::DeviceMemory,
        size: u64,
        map_count: u64,
        tag: Tag,
        annotation: &'a Annotation,
    },
}

/// A value on its own cache lines, so that one thread's writes do not slow the reads of others. Two lines, because
/// processors prefetch them in pairs.
#[derive(Debug)]
#[repr(align(128))]
struct Apart<V>(V);

impl<V> Deref for Apart<V> {
    type Target = V;

    #[inline]
    fn deref(&self) -> &V {
        &self.0
    }
}

/// See the module's documentation. `ARCHITECTURE.md` has all locks of an allocator in one table.
pub(crate) struct MemoryBlockVector {
    core: Apart<CoreMutex<VectorCore>>,
    shards: Shards,
    /// Held by the thread that creates a block. A thread that finds the vector full takes it, tries again, and only
    /// then calls the driver.
    growth: Mutex<()>,
    /// Held by the thread that maps, unmaps or changes the priority of memory. A thread that frees a block first
    /// removes it from the vector, and then waits for this lock once.
    mappings: Mutex<()>,
    dedicated: Mutex<DedicatedList>,
    /// The vector has, or had, memory.
    had_memory: AtomicBool,
}

/// The allocation does not belong to this vector.
const FOREIGN: ForeignHandle = ForeignHandle::Allocation;

impl MemoryBlockVector {
    /// A vector that is not in use yet.
    pub(crate) fn unused() -> Self {
        Self {
            core: Apart(CoreMutex::new(VectorCore::default())),
            shards: Shards::none(),
            growth: Mutex::new(()),
            mappings: Mutex::new(()),
            dedicated: Mutex::new(DedicatedList::default()),
            had_memory: AtomicBool::new(false),
        }
    }

    /// Activates the vector with its first blocks. On failure it stays unused, and all blocks are freed.
    pub(crate) fn activate(
        &self,
        context: &DeviceContext,
        config: VectorConfig,
        name: Option<&str>,
    ) -> Result<u32, MemoryError> {
        let named = || name.map(Box::from);
        let mut blocks = Vec::new();
        let asked = (0..config.min_blocks).try_for_each(|_| {
            let mut events = PendingEvents::default();
            let what = config.block(config.block_size);
            let asked = DeviceBlock::allocate(context, &what, false, false, &mut events);
            events.emit(context, config.memory_type, named);
            asked.map(|block| blocks.push(block))
        });
        let begun = asked.and_then(|()| self.core.lock().begin(&config, name, &mut blocks));
        if begun.is_err() {
            blocks.into_iter().for_each(|block| block.destroy(context, named));
        } else if config.min_blocks > 0 {
            self.had_memory.store(true, Ordering::Relaxed);
        }
        begun
    }

    /// Deactivates the vector and frees its memory. Calls `leak` for each allocation that is still live.
    pub(crate) fn deactivate(&self, context: &DeviceContext, leak: &mut dyn FnMut(Visited<'_>)) {
        self.visit(&mut |visited| match visited {
            Visited::Chunk { chunk: ChunkInfo { used: Some(_), .. }, .. } | Visited::Dedicated { .. } => {
                leak(visited)
            }
            _ => {}
        });
        self.retire(context);
    }

    /// Deactivates the vector and frees its memory, live allocations included.
    pub(crate) fn retire(&self, context: &DeviceContext) {
        self.shards.detach(u64::MAX);
        self.shards.iter().for_each(|(_, shard)| shard.close());
        let (name, blocks) = self.core.lock().end();
        let dedicated = self.dedicated.lock().drain();
        self.had_memory.store(false, Ordering::Relaxed);
        // See `destroy_block`.
        drop(self.mappings.lock());
        let dedicated = dedicated.into_iter().map(|dedicated| dedicated.block);
        blocks.into_iter().chain(dedicated).for_each(|block| block.destroy(context, || name.clone()));
    }

    /// Returns true if the vector is in the use `generation`.
    pub(crate) fn is_in_use(&self, generation: u32) -> bool {
        let core = self.core.lock();
        generation == core.generation && core.active.as_ref().is_some()
    }

    /// The number of blocks, without dedicated memory.
    pub(crate) fn block_count(&self) -> u32 {
        self.core.lock().active.as_ref().map_or(0, |active| active.block_count)
    }

    /// The vector's configuration; `None` if it is not in use, or if `generation` does not match.
    pub(crate) fn config(&self, generation: Option<u32>) -> Option<VectorConfig> {
        let core = self.core.lock();
        if generation.is_some_and(|generation| generation != core.generation) {
            return None;
        }
        core.active.as_ref().map(|active| active.config)
    }
}
