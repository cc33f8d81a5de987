//! Assignment of threads to the shards of a vector.
//!
//! A vector has no shards until threads contend for its core. A thread that often finds the core contended
//! **attaches**: it gets a shard, created at that moment, for its small allocations. The shard's number follows from
//! the thread's token. So one word of bits records which threads have attached, and is read without a lock.

use super::Apart;
use super::shard::Shard;
use crate::base::sync::atomic::{AtomicU32, AtomicU64, OnceLock, Ordering};
use crate::base::sync::thread_token;
use sublet_engines::cast::{byte, index};

/// The maximum number of shards: the bits of a word. Further threads share them. The model checker uses fewer, because
/// it explores each.
pub(super) const SHARDS: u32 = if cfg!(all(loom, test)) { 3 } else { u64::BITS };

/// A shard, on cache lines of its own.
type ShardCell = OnceLock<Box<Apart<Shard>>>;

struct ShardTable {
    /// Bit `i` is set if the threads with token `i` modulo [`SHARDS`] have attached.
    attached: AtomicU64,
    /// The shard that was checked last. It has its own cache lines, because its neighbours are read on every call.
    looked_at: Apart<AtomicU32>,
    shards: [ShardCell; index(SHARDS)],
}

/// See the module's documentation.
pub(super) struct Shards {
    table: OnceLock<Box<ShardTable>>,
}

/// The index of a shard. In handles, shard 0 is the core.
fn at(shard: u8) -> usize {
    usize::from(shard).wrapping_sub(1)
}

impl Shards {
    pub(super) fn none() -> Self {
        Self { table: OnceLock::new() }
    }

    /// The calling thread's shard, 1 to 64, or 0 for the core.
    #[inline]
    pub(super) fn home(&self) -> u8 {
        let Some(table) = self.table.get() else { return 0 };
        let mine = thread_token::current() % SHARDS;
        if table.attached.load(Ordering::Relaxed) >> mine & 1 == 0 { 0 } else { number(mine) }
    }

    /// Returns true if a thread of this shard has attached.
    pub(super) fn is_attached(&self, shard: u8) -> bool {
        self.attached() >> (at(shard) & 63) & 1 == 1
    }

    /// Assigns a shard to the calling thread.
    #[cold]
    pub(super) fn attach(&self) -> u8 {
        let table = self.table.get_or_init(|| {
            Box::new(ShardTable {
                attached: AtomicU64::new(0),
                looked_at: Apart(AtomicU32::new(0)),
                shards: std::array::from_fn(|_| OnceLock::new()),
            })
        });
        let mine = thread_token::current() % SHARDS;
        table.shards[index(mine)].get_or_init(|| Box::new(Apart(Shard::new())));
        table.attached.fetch_or(1 << mine, Ordering::Relaxed);
        number(mine)
    }

    /// The shard with that number, if it exists.
    #[inline]
    pub(super) fn get(&self, shard: u8) -> Option<&Shard> {
        self.table.get()?.shards.get(at(shard))?.get().map(|shard| &shard.0)
    }

    /// The shard with that number, if it exists. The flag is true if it is the shard that the calling thread has, or
    /// gets when it attaches.
    #[inline]
    pub(super) fn with_ownership(&self, shard: u8) -> Option<(&Shard, bool)> {
        let is_own = number(thread_token::current() % SHARDS) == shard;
        Some((self.get(shard)?, is_own))
    }

    /// All existing shards with their numbers.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u8, &Shard)> {
        let table = self.table.get();
        let shards = table.into_iter().flat_map(|table| (0..).zip(&table.shards));
        shards.filter_map(|(at, shard)| shard.get().map(|shard| (number(at), &shard.0)))
    }

    /// Returns the next attached shard, in turn; `None` if no thread has attached.
    pub(super) fn next_to_look_at(&self) -> Option<&Shard> {
        let table = self.table.get()?;
        let attached = table.attached.load(Ordering::Relaxed);
        if attached == 0 {
            return None;
        }
        let last = table.looked_at.load(Ordering::Relaxed) % SHARDS;
        // The attached shards after the last one, or all if there are none.
        let behind = attached & (u64::MAX << last << 1);
        let next = if behind == 0 { attached } else { behind }.trailing_zeros();
        table.looked_at.store(next, Ordering::Relaxed);
        self.get(number(next))
    }

    /// Returns true if nothing seems to be allocated in any shard. An estimate without locks.
    pub(super) fn are_idle(&self) -> bool {
        self.iter().all(|(_, shard)| shard.is_idle())
    }

    /// The bits of the threads that have attached, for [`Self::detach`].
    pub(super) fn attached(&self) -> u64 {
        self.table.get().map_or(0, |table| table.attached.load(Ordering::Relaxed))
    }

    /// Moves these threads back to the core.
    pub(super) fn detach(&self, threads: u64) {
        if let Some(table) = self.table.get() {
            table.attached.fetch_and(!threads, Ordering::Relaxed);
        }
    }
}

/// The number of the shard at `at`.
fn number(at: u32) -> u8 {
    // `at` is below 64.
    byte(at + 1)
}
