//! The blocks of one memory type or pool, and the engine that divides them.
//!
//! A vector that one thread uses is its **core**: an engine, and the list of blocks. Threads that contend for it
//! get **shards**, which divide ranges that the core has lent them; `shards.rs` says who gets one, `shard.rs` what it
//! does, `returns.rs` what becomes of an allocation that another thread frees.
//!
//! ```text
//!   allocate      home? -- 0 --> core: try_lock --> engine                        the usual way: `BlockVector::grant`
//!                   |                    \-- contended: count that, wait, or settle
//!                   \-- n --> shard n: lock --> its engine --> no room: a loan, out of the core
//!                 no room: empty loans come back --> growth: look again, ask the driver
//!
//!   free          the handle says whose key it is: the core's, the caller's own shard's, or another's (at its door)
//! ```
//!
//! Each lock has one purpose:
//!
//! | lock | guards | across a call of the driver |
//! |---|---|---|
//! | `core` | the engine, the list of blocks, their map counts | never |
//! | one for each shard | the shard's engine, its loans | never |
//! | `growth` | that one thread makes a block: who finds the vector full takes it, **looks again**, and only then asks the driver | yes |
//! | `mappings` | mapping and unmapping; who is about to free a block waits for it once | yes |
//! | `dedicated` | the list of dedicated allocations | never |
//!
//! `core` and those of the shards are for brief sections: no call of the driver, no event, no code of the caller's.
//! They are taken in this order, so that nobody waits in a circle: `growth` or `mappings`, shards by their numbers,
//! `core`; `dedicated` is held with none but `mappings`. An allocation that finds room, and a free, hold one at a time.
#![forbid(unsafe_code)]

mod allocate;
mod annotations;
mod defragment;
mod ends;
mod free;
mod map;
#[cfg(all(loom, test))]
mod modelled;
mod outlook;
mod priority;
mod returns;
mod shard;
mod shards;
mod show;
mod state;
#[cfg(test)]
#[cfg(not(loom))]
mod tests;
mod undo;

pub(crate) use self::defragment::{BeginError, Compaction, Effort, Emptied, Extent, PassBudget, Planned};

use std::ops::Deref;

use ash::vk;

pub(crate) use self::allocate::VectorRequest;
pub(crate) use self::annotations::Annotation;
use self::shards::Shards;
use self::state::Core;
use super::dedicated::DedicatedList;
use super::device_block::DeviceContext;
use super::events::PendingEvents;
use super::growth::Growth;
use super::mapped_pointer::MappedPointer;
use crate::base::sync::atomic::{AtomicBool, Ordering};
use crate::base::sync::{CoreMutex, Mutex};
use crate::error::{ForeignHandle, MemoryError};
use crate::metadata::{Chunk, Key, Tag};
use crate::pool::VectorConfig;

/// What a vector granted. In this order, for `Miss::Unmapped` of the allocator.
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

/// Names one allocation of one vector.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Live {
    pub(crate) generation: u32,
    pub(crate) key: Key,
    pub(crate) dedicated: bool,
    /// Whose key it is: a shard's, or the core's if 0.
    pub(crate) shard: u8,
}

/// Sums over a vector.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Totals {
    pub(crate) block_count: u64,
    pub(crate) block_bytes: u64,
    pub(crate) allocation_count: u64,
    pub(crate) allocation_bytes: u64,
}

impl Totals {
    /// Counts dedicated allocations, which are blocks as well.
    fn add_dedicated(&mut self, count: u64, bytes: u64) {
        self.block_count += count;
        self.block_bytes += bytes;
        self.allocation_count += count;
        self.allocation_bytes += bytes;
    }
}

/// What a visitor of a vector is shown.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Visited<'a> {
    /// Comes first, if the vector is in use.
    Vector {
        config: &'a VectorConfig,
        generation: u32,
        /// The pool's name.
        name: Option<&'a str>,
    },
    /// A block begins; its chunks follow in the order of their offsets.
    Block {
        /// Counted from the first block of this use of the vector on.
        id: u32,
        memory: vk::DeviceMemory,
        size: u64,
        map_count: u64,
    },
    Chunk {
        chunk: Chunk,
        /// Whose key it is, as in [`Live`].
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

/// On cache lines of its own: what one thread writes must not be in the way of what all threads read. Processors fetch
/// lines in pairs.
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

/// See the module's documentation.
pub(crate) struct BlockVector {
    core: Apart<CoreMutex<Core>>,
    shards: Shards,
    growth: Mutex<()>,
    mappings: Mutex<()>,
    dedicated: Mutex<DedicatedList>,
    /// There is, or was, memory in it.
    had_memory: AtomicBool,
}

/// The allocation is not one of this vector's.
const FOREIGN: ForeignHandle = ForeignHandle::Allocation;

impl BlockVector {
    /// A vector that is not in use yet.
    pub(crate) fn unused() -> Self {
        Self {
            core: Apart(CoreMutex::new(Core::default())),
            shards: Shards::none(),
            growth: Mutex::new(()),
            mappings: Mutex::new(()),
            dedicated: Mutex::new(DedicatedList::default()),
            had_memory: AtomicBool::new(false),
        }
    }

    /// Puts the vector to use, with its first blocks. On failure it stays unused and the driver has everything back.
    pub(crate) fn activate(
        &self,
        context: &DeviceContext,
        config: VectorConfig,
        name: Option<&str>,
    ) -> Result<u32, MemoryError> {
        let growth = Growth { config, needed: 0, largest_block: 0, full_sized: true, within_budget: false };
        let named = || name.map(Box::from);
        let mut blocks = Vec::new();
        let asked = (0..config.min_blocks).try_for_each(|_| {
            let mut events = PendingEvents::default();
            let asked = growth.ask(context, config.block_size, &mut events);
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

    /// Takes the vector out of use. Allocations that are still live are shown to `leak`; their memory is freed.
    pub(crate) fn deactivate(&self, context: &DeviceContext, leak: &mut dyn FnMut(Visited<'_>)) {
        self.visit(&mut |visited| match visited {
            Visited::Chunk { chunk: Chunk { used: Some(_), .. }, .. } | Visited::Dedicated { .. } => {
                leak(visited)
            }
            _ => {}
        });
        self.retire(context);
    }

    /// Takes the vector out of use and frees its memory, whatever is allocated in it.
    pub(crate) fn retire(&self, context: &DeviceContext) {
        self.shards.unsettle(u64::MAX);
        self.shards.iter().for_each(|(_, shard)| shard.close());
        let (name, blocks) = self.core.lock().end();
        let dedicated = self.dedicated.lock().drain();
        self.had_memory.store(false, Ordering::Relaxed);
        // See `destroy_block`.
        drop(self.mappings.lock());
        let dedicated = dedicated.into_iter().map(|dedicated| dedicated.block);
        blocks.into_iter().chain(dedicated).for_each(|block| block.destroy(context, || name.clone()));
    }

    /// Whether the vector is in that use.
    pub(crate) fn is_in_use(&self, generation: u32) -> bool {
        let core = self.core.lock();
        generation == core.generation && core.active.as_ref().is_some()
    }

    /// What the vector was made with; `None` if it is not in use, or in another use than `generation`.
    pub(crate) fn config(&self, generation: Option<u32>) -> Option<VectorConfig> {
        let core = self.core.lock();
        if generation.is_some_and(|generation| generation != core.generation) {
            return None;
        }
        core.active.as_ref().map(|active| active.config)
    }
}
