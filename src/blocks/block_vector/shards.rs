//! Which thread works on which shard of a vector.
//!
//! A vector has no shards until threads contend for its core. A thread that often finds the core contended **settles**:
//! from then on it takes small allocations from a shard of its own, which is made for it at that moment. The number of
//! the shard is the thread's token. So one word of bits says which threads have settled, and is read without a lock.
#![forbid(unsafe_code)]

use super::Apart;
use super::shard::Shard;
use crate::base::cast::{byte, index};
use crate::base::sync::atomic::{AtomicU32, AtomicU64, OnceLock, Ordering};
use crate::base::sync::thread_token;

/// Shards of a vector at most: the bits of a word. Threads beyond that share. In a model fewer, because it looks at
/// each.
pub(super) const SHARDS: u32 = if cfg!(all(loom, test)) { 3 } else { u64::BITS };

/// A shard, on cache lines of its own.
type Room = OnceLock<Box<Apart<Shard>>>;

struct Table {
    /// Bit `i`: the threads of which the token is `i` modulo [`SHARDS`] have settled.
    settled: AtomicU64,
    /// The shard that was looked at last. Apart: it is written, and what is beside it is read on every call.
    looked_at: Apart<AtomicU32>,
    shards: [Room; index(SHARDS)],
}

/// See the module's documentation.
pub(super) struct Shards {
    table: OnceLock<Box<Table>>,
}

/// Shard 0 is the core, in handles.
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
        if table.settled.load(Ordering::Relaxed) >> mine & 1 == 0 { 0 } else { number(mine) }
    }

    /// Whether a thread that works on the shard has settled.
    pub(super) fn is_settled(&self, shard: u8) -> bool {
        self.settled() >> (at(shard) & 63) & 1 == 1
    }

    /// Gives the calling thread a shard.
    #[cold]
    pub(super) fn settle(&self) -> u8 {
        let table = self.table.get_or_init(|| {
            Box::new(Table {
                settled: AtomicU64::new(0),
                looked_at: Apart(AtomicU32::new(0)),
                shards: std::array::from_fn(|_| OnceLock::new()),
            })
        });
        let mine = thread_token::current() % SHARDS;
        table.shards[index(mine)].get_or_init(|| Box::new(Apart(Shard::new())));
        table.settled.fetch_or(1 << mine, Ordering::Relaxed);
        number(mine)
    }

    /// The shard with that number, if it was made.
    #[inline]
    pub(super) fn get(&self, shard: u8) -> Option<&Shard> {
        self.table.get()?.shards.get(at(shard))?.get().map(|shard| &shard.0)
    }

    /// The shard with that number, if it was made, and whether the calling thread is at home there, if it has settled.
    #[inline]
    pub(super) fn with_home(&self, shard: u8) -> Option<(&Shard, bool)> {
        let is_home = number(thread_token::current() % SHARDS) == shard;
        Some((self.get(shard)?, is_home))
    }

    /// All shards that were made, with their numbers.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u8, &Shard)> {
        let table = self.table.get();
        let shards = table.into_iter().flat_map(|table| (0..).zip(&table.shards));
        shards.filter_map(|(at, shard)| shard.get().map(|shard| (number(at), &shard.0)))
    }

    /// Another shard than the last time, if there is one that nobody works on.
    pub(super) fn next_to_look_at(&self) -> Option<&Shard> {
        let table = self.table.get()?;
        let settled = table.settled.load(Ordering::Relaxed);
        if settled == 0 {
            return None;
        }
        let last = table.looked_at.load(Ordering::Relaxed) % SHARDS;
        // Those behind the last one, or else all from the first on.
        let behind = settled & (u64::MAX << last << 1);
        let next = if behind == 0 { settled } else { behind }.trailing_zeros();
        table.looked_at.store(next, Ordering::Relaxed);
        self.get(number(next))
    }

    /// Whether nothing is allocated in any shard: a guess, without a lock.
    pub(super) fn are_idle(&self) -> bool {
        self.iter().all(|(_, shard)| shard.is_idle())
    }

    /// The threads that have settled, as [`Self::unsettle`] takes them.
    pub(super) fn settled(&self) -> u64 {
        self.table.get().map_or(0, |table| table.settled.load(Ordering::Relaxed))
    }

    /// Sends these threads back to the core.
    pub(super) fn unsettle(&self, threads: u64) {
        if let Some(table) = self.table.get() {
            table.settled.fetch_and(!threads, Ordering::Relaxed);
        }
    }
}

/// The number of the shard at `at`.
fn number(at: u32) -> u8 {
    // At most 64.
    byte(at + 1)
}
