//! A ring of allocations of a shard that other threads have freed.
//!
//! Freeing into another thread's shard would take its lock and move a dozen cache lines that the owner needs again
//! soon. Instead the key goes into a ring. A thread that holds the shard's lock drains the ring: the owner
//! occasionally, every other thread always.
//!
//! ```text
//!   slots      . . k k k k . .      one lock-free push for each key
//!                  ^       ^
//!                 head    tail      `head` moves under the shard's lock only
//! ```
//!
//! A key in the ring must not keep memory from becoming empty. So the ring has a limit that depends on the number of
//! live allocations. At the limit, [`Left::Now`] makes the caller take the lock and drain the ring; with many live
//! allocations, [`Left::Soon`] makes it do so only if the lock is free.

use std::num::NonZeroU64;

use super::Apart;
use crate::base::sync::atomic::{AtomicU32, AtomicU64, Ordering, Turn, fence};
use sublet_engines::Key;
use sublet_engines::cast::index;

/// Capacity of the ring.
const ROOM: u32 = if cfg!(all(loom, test)) { 4 } else { 512 };
/// The queue limit with at most [`PLENTY`] live allocations. At this length, the owner does not drain often enough.
const ENOUGH: u32 = if cfg!(all(loom, test)) { 2 } else { 32 };
/// The queue limit with more live allocations. It is higher, because draining then touches more cache lines.
const MOST: u32 = if cfg!(all(loom, test)) { 3 } else { 256 };
const PLENTY: u32 = if cfg!(all(loom, test)) { 4 } else { 512 };
/// Keys that are taken at once.
pub(super) const BATCH: usize = if cfg!(all(loom, test)) { 2 } else { 32 };

// The limit never exceeds the number of live allocations. With more than `PLENTY` of them, the ring cannot hold all, so
// another free follows: see `Left::Soon`. A power of two makes positions wrap with the ring.
const _: () = assert!(ENOUGH < MOST && MOST < ROOM && ROOM <= PLENTY && ROOM.is_power_of_two());

/// The queue length at which the ring must be drained, for `live` allocations.
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

/// The owner checks the ring at a fast allocation if its count of uses is a multiple of this, for `live` allocations.
///
/// Rarer checks let whole cache lines of keys collect, and the other threads fetch the head of the ring less often.
#[inline]
pub(super) const fn look_every(live: u32) -> u32 {
    if live > PLENTY { 64 } else { 16 }
}

/// The outcome of leaving a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Left {
    /// The key is in the ring; the owner will find it.
    There,
    /// The key is in the ring; the caller has to drain it if the lock is free. If not, a later free does, because the
    /// shard has more live allocations than the ring has slots. So threads never wait for each other here: a shard
    /// whose own thread is busy elsewhere would otherwise make all of them queue for its lock.
    Soon,
    /// The key is in the ring; the caller has to take the lock and drain it.
    Now,
    /// The key is not in the ring; the caller has to take the lock and free it.
    No,
}

/// Fields that only the holder of the shard's lock writes.
#[derive(Debug)]
struct ConsumerState {
    head: AtomicU32,
    /// See [`limit`].
    limit: AtomicU32,
    /// The use of the vector whose keys the ring accepts.
    generation: AtomicU32,
}

/// One slot of the ring.
#[derive(Debug)]
struct ReturnSlot {
    /// Zero: empty, or reserved but not written yet.
    key: AtomicU64,
    /// Checks exclusive access: first of the thread that leaves a key, then of the thread that takes it.
    turn: Turn,
}

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Returns {
    tail: Apart<AtomicU32>,
    consumer: Apart<ConsumerState>,
    slots: [ReturnSlot; index(ROOM)],
}

impl Returns {
    pub(super) fn new() -> Self {
        Self {
            tail: Apart(AtomicU32::new(0)),
            consumer: Apart(ConsumerState {
                head: AtomicU32::new(0),
                limit: AtomicU32::new(0),
                generation: AtomicU32::new(0),
            }),
            slots: std::array::from_fn(|_| ReturnSlot { key: AtomicU64::new(0), turn: Turn::new() }),
        }
    }

    fn slot(&self, at: u32) -> &ReturnSlot {
        &self.slots[index(at % ROOM)]
    }

    /// Leaves a key of the use `generation`. Lock-free.
    pub(super) fn leave(&self, key: Key, generation: u32) -> Left {
        if self.consumer.generation.load(Ordering::Relaxed) != generation {
            return Left::No;
        }
        // Acquire: the slot was emptied before `head` moved past it. Loaded first, so that `tail` is not behind `head`.
        let head = self.consumer.head.load(Ordering::Acquire);
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
        // Release: the caller's accesses to the memory happen before those of its next owner.
        slot.key.store(key.0.get(), Ordering::Release);
        // Pairs with the fence in `publish_live`. If one thread leaves the second-to-last key and another frees the
        // last allocation outside the ring, at least one sees the other's write.
        fence(Ordering::SeqCst);
        // Includes all reserved slots: other threads may have reserved later slots and returned before this key was
        // written.
        let end = self.tail.load(Ordering::Relaxed);
        // Acquire: sees the limit that was published before `head` moved. See `pass`.
        let waiting = end.wrapping_sub(self.consumer.head.load(Ordering::Acquire));
        let limit = self.consumer.limit.load(Ordering::Relaxed);
        if waiting < limit {
            Left::There
        } else if limit == MOST {
            Left::Soon
        } else {
            Left::Now
        }
    }

    /// Returns true if a key can be taken.
    #[inline]
    pub(super) fn is_waiting(&self) -> bool {
        self.slot(self.consumer.head.load(Ordering::Relaxed)).key.load(Ordering::Relaxed) != 0
    }

    /// Takes the oldest keys that are written, and returns their number; the caller then calls [`Self::pass`]. Only the
    /// holder of the shard's lock may call this. It does not wait for other threads.
    ///
    /// Takes several keys at once: other threads wrote their cache lines, and the fetches overlap. `head` moves once
    /// for all of them, which matters because every leaving thread reads it.
    #[inline]
    pub(super) fn take(&self, keys: &mut [Option<Key>; BATCH]) -> u32 {
        let head = self.consumer.head.load(Ordering::Relaxed);
        let mut taken = 0;
        for key in keys {
            let slot = self.slot(head.wrapping_add(taken));
            // Zero is also the value of a reserved slot whose key is not written yet.
            let Some(left) = NonZeroU64::new(slot.key.load(Ordering::Acquire)) else { break };
            slot.turn.touch();
            slot.key.store(0, Ordering::Relaxed);
            *key = Some(Key(left));
            taken += 1;
        }
        taken
    }

    /// Releases the slots of `taken` keys; `live` allocations remain. Only the holder of the lock may call this.
    pub(super) fn pass(&self, taken: u32, live: u32) {
        // Before `head`: otherwise a leaving thread could see the old limit with the new, shorter queue. It would not
        // drain, and the current holder may be unable to return leased ranges.
        self.consumer.limit.store(limit(live), Ordering::Relaxed);
        let head = self.consumer.head.load(Ordering::Relaxed);
        self.consumer.head.store(head.wrapping_add(taken), Ordering::Release);
    }

    /// Publishes the queue limit for `live` allocations, including those in the ring. Returns true if the limit is
    /// reached and a key can be taken; the lock holder must then drain the queue.
    pub(super) fn publish_live(&self, live: u32) -> bool {
        self.consumer.limit.store(limit(live), Ordering::Relaxed);
        // See `leave`.
        fence(Ordering::SeqCst);
        let head = self.consumer.head.load(Ordering::Relaxed);
        let waiting = self.tail.load(Ordering::Relaxed).wrapping_sub(head);
        // Does not wait for a thread that reserved the first slot but has not written its key. That thread still has
        // its fence ahead, and then sees the limit that was published here.
        waiting != 0 && waiting >= limit(live) && self.slot(head).key.load(Ordering::Relaxed) != 0
    }

    /// Returns true if the last published number of live allocations was 0.
    pub(super) fn is_idle(&self) -> bool {
        self.consumer.limit.load(Ordering::Relaxed) == 0
    }

    /// Accepts keys of the use `generation` only.
    pub(super) fn open_for(&self, generation: u32) {
        self.consumer.generation.store(generation, Ordering::Relaxed);
    }
}
