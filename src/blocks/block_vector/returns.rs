//! The door through which other threads give back what a shard granted.
//!
//! Who frees in another thread's shard would have to take its lock, and with the lock fetch a dozen cache lines that
//! the other thread needs again in a moment. Instead the key is left in a ring, and whoever holds the lock of the shard
//! takes what is there: its own thread now and then, every other visitor always.
//!
//! ```text
//!   slots      . . k k k k . .      one lock-free push for each key
//!                  ^       ^
//!                 head    tail      `head` moves under the shard's lock only
//! ```
//!
//! A key that nobody takes must not keep memory from becoming empty. So the door closes when the shard has hardly more
//! live allocations than there are keys in the ring: [`Left::Now`] sends the caller in, to take them all.
#![forbid(unsafe_code)]

use std::num::NonZeroU64;

use super::Apart;
use crate::base::cast::index;
use crate::base::sync::atomic::{AtomicU32, AtomicU64, Ordering, Turn, fence};
use crate::metadata::Key;

/// Keys that the ring has room for.
const ROOM: u32 = if cfg!(all(loom, test)) { 4 } else { 256 };
/// When so many wait, the shard's own thread does not come often enough...
const ENOUGH: u32 = if cfg!(all(loom, test)) { 2 } else { 32 };
/// ...or so many, while more than [`PLENTY`] are live: who goes in fetches the cache lines of the whole shard.
const MOST: u32 = if cfg!(all(loom, test)) { 3 } else { 192 };
const PLENTY: u32 = if cfg!(all(loom, test)) { 3 } else { 512 };
/// Keys that are taken at once.
pub(super) const BATCH: usize = if cfg!(all(loom, test)) { 2 } else { 32 };

// No more wait than are live. And positions wrap where the ring does.
const _: () = assert!(ENOUGH < MOST && MOST < ROOM && MOST <= PLENTY && ROOM.is_power_of_two());

/// How many keys may not wait any more where so many allocations are live.
#[inline]
pub(super) const fn limit(live: u32) -> u32 {
    if live > PLENTY {
        MOST
    } else if live > ENOUGH {
        ENOUGH
    } else {
        live
    }
}

/// What became of a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Left {
    /// It lies in the ring, and the shard's own thread will find it.
    There,
    /// It lies in the ring, and the caller has to take the lock and empty it.
    Now,
    /// It was not taken: the caller has to take the lock and free it.
    No,
}

/// What only the holder of the lock writes.
#[derive(Debug)]
struct Inside {
    head: AtomicU32,
    /// See [`limit`].
    limit: AtomicU32,
    /// The use of the vector that keys have to be of.
    generation: AtomicU32,
}

/// A place in the ring.
#[derive(Debug)]
struct Slot {
    /// Zero: nothing, or not yet.
    key: AtomicU64,
    /// Of the one who leaves a key here, then of the one who takes it.
    turn: Turn,
}

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Returns {
    tail: Apart<AtomicU32>,
    inside: Apart<Inside>,
    slots: [Slot; index(ROOM)],
}

impl Returns {
    pub(super) fn new() -> Self {
        Self {
            tail: Apart(AtomicU32::new(0)),
            inside: Apart(Inside {
                head: AtomicU32::new(0),
                limit: AtomicU32::new(0),
                generation: AtomicU32::new(0),
            }),
            slots: std::array::from_fn(|_| Slot { key: AtomicU64::new(0), turn: Turn::new() }),
        }
    }

    fn slot(&self, at: u32) -> &Slot {
        &self.slots[index(at % ROOM)]
    }

    /// Leaves a key of that use of the vector. Lock-free.
    pub(super) fn leave(&self, key: Key, generation: u32) -> Left {
        if self.inside.generation.load(Ordering::Relaxed) != generation {
            return Left::No;
        }
        // Acquire: the slot was emptied before `head` moved past it. Loaded first: `tail` is not behind it then.
        let head = self.inside.head.load(Ordering::Acquire);
        let mut tail = self.tail.load(Ordering::Relaxed);
        loop {
            if tail.wrapping_sub(head) >= ROOM {
                return Left::No;
            }
            match self.tail.compare_exchange_weak(
                tail,
                tail.wrapping_add(1),
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                Ok(_) => break,
                Err(now) => tail = now,
            }
        }
        let slot = self.slot(tail);
        slot.turn.touch();
        // Release: what the caller did to the memory comes before what the next who gets it does.
        slot.key.store(key.0.get(), Ordering::Release);
        // Pairs with the one in `publish_live`: of a thread that leaves the last key but one and of one that frees the
        // last allocation but these, at least one sees the other.
        fence(Ordering::SeqCst);
        // All that have a place by now: others may have come later and gone, and found this key not written yet.
        let end = self.tail.load(Ordering::Relaxed);
        // Acquire: what was told before `head` moved. See `pass`.
        let waiting = end.wrapping_sub(self.inside.head.load(Ordering::Acquire));
        if waiting >= self.inside.limit.load(Ordering::Relaxed) {
            return Left::Now;
        }
        Left::There
    }

    /// Whether a key may be taken.
    #[inline]
    pub(super) fn is_waiting(&self) -> bool {
        self.slot(self.inside.head.load(Ordering::Relaxed)).key.load(Ordering::Relaxed) != 0
    }

    /// Takes the keys that were left first, as far as they were written: the holder of the shard's lock, who alone may
    /// call this, does not wait for another thread. How many there were; [`Self::pass`] comes next.
    ///
    /// Several at once, because they lie in cache lines of the thread that left them, which are fetched at the same time
    /// so. And `head` moves once for all of them: who leaves keys reads it each time.
    #[inline]
    pub(super) fn take(&self, keys: &mut [Option<Key>; BATCH]) -> u32 {
        let head = self.inside.head.load(Ordering::Relaxed);
        let mut taken = 0;
        for key in keys {
            let slot = self.slot(head.wrapping_add(taken));
            // Zero is also what the slot holds whose place was taken but whose key was not written yet.
            let Some(left) = NonZeroU64::new(slot.key.load(Ordering::Acquire)) else { break };
            slot.turn.touch();
            slot.key.store(0, Ordering::Relaxed);
            *key = Some(Key(left));
            taken += 1;
        }
        taken
    }

    /// Gives the places of so many keys that were taken away again; so many allocations are live now. Only for the
    /// holder of the lock.
    pub(super) fn pass(&self, taken: u32, live: u32) {
        // Before `head`: who leaves a key meanwhile must not find too few waiting for what it believes to be live. It
        // would not come in, and whoever is here now may be one who cannot give loans back.
        self.inside.limit.store(limit(live), Ordering::Relaxed);
        let head = self.inside.head.load(Ordering::Relaxed);
        self.inside.head.store(head.wrapping_add(taken), Ordering::Release);
    }

    /// Tells how many keys may not wait any more now that so many allocations of the shard are live, those in the ring
    /// included. Whether the ring has as many, so that the holder of the lock, whose call this is, has to empty it. It
    /// can: there is a key to be taken.
    pub(super) fn publish_live(&self, live: u32) -> bool {
        self.inside.limit.store(limit(live), Ordering::Relaxed);
        // See `leave`.
        fence(Ordering::SeqCst);
        let head = self.inside.head.load(Ordering::Relaxed);
        let waiting = self.tail.load(Ordering::Relaxed).wrapping_sub(head);
        // Who has the first place but has not written its key yet is not waited for: it has the fence before it still,
        // and then sees what was told here.
        waiting != 0 && waiting >= limit(live) && self.slot(head).key.load(Ordering::Relaxed) != 0
    }

    /// Whether nothing was live when it was told last.
    pub(super) fn is_idle(&self) -> bool {
        self.inside.limit.load(Ordering::Relaxed) == 0
    }

    /// Opens the door for keys of a use of the vector, and closes it for all others.
    pub(super) fn open_for(&self, generation: u32) {
        self.inside.generation.store(generation, Ordering::Relaxed);
    }
}
