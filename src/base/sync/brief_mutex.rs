//! A lock for sections of well under a microsecond.

use parking_lot::lock_api;

use super::atomic::{AtomicBool, Ordering, Wait};

/// A lock for sections of well under a microsecond that call no foreign code.
///
/// Why not `parking_lot`: its unlock has to find out whether a thread is parked, and does so with a second atomic
/// read-modify-write. Here locking is one read-modify-write and unlocking one plain store: no thread is ever parked, so
/// none has to be woken. `benches/locks.rs` compares the two.
///
/// What it is bad at:
/// - A waiting thread is not woken. It looks again and again, at first at once, in the end once in a millisecond, so it
///   notices the end of a long section late.
/// - It is not fair. A thread that takes it in a tight loop may keep others out for many rounds.
///
/// So it is only for sections that end soon whatever happens: no call of the driver, no wait for another lock, no code
/// of the caller's. A holder that loses its processor in the middle does not stop the program: waiting threads yield
/// and then sleep, so that even a holder of the lowest priority gets to run.
#[derive(Debug, Default)]
pub struct BriefMutex {
    locked: AtomicBool,
}

impl BriefMutex {
    /// One read-modify-write. Not a swap, which costs the same: it would write `true` over `true` when it fails, and
    /// loom takes that for a store that may come after the holder's `false`.
    #[inline]
    fn acquire(&self) -> bool {
        self.locked.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Waits until the lock is free, and takes it.
    ///
    /// Looks with plain loads: a read-modify-write would take the cache line from the holder.
    #[cold]
    #[inline(never)]
    fn wait_and_acquire(&self) {
        let mut wait = Wait::default();
        loop {
            while self.locked.load(Ordering::Relaxed) {
                wait.once();
            }
            if self.acquire() {
                return;
            }
        }
    }
}

// SAFETY: at most one guard exists at a time. A lock is acquired only by an exchange that finds `false` and leaves
// `true`, and only `unlock` writes `false`, which lock_api calls once for each acquisition. The exchange acquires what
// that store releases, so one holder sees all that the holders before it have written.
unsafe impl lock_api::RawMutex for BriefMutex {
    #[cfg(not(all(loom, test)))]
    const INIT: Self = Self { locked: AtomicBool::new(false) };
    #[cfg(all(loom, test))]
    const INIT: Self = panic!("a modelled lock is made at run time: see `CoreMutex`");
    // Nothing ties a holder to its thread; but a guard that travels is held for longer than a section may last.
    type GuardMarker = lock_api::GuardNoSend;

    #[inline]
    fn lock(&self) {
        if !self.acquire() {
            self.wait_and_acquire();
        }
    }

    #[inline]
    fn try_lock(&self) -> bool {
        // A failed look leaves the cache line with the holder. Where the line is here already, the look costs nothing.
        !self.locked.load(Ordering::Relaxed) && self.acquire()
    }

    #[inline]
    unsafe fn unlock(&self) {
        self.locked.store(false, Ordering::Release);
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.locked.load(Ordering::Relaxed)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_one_byte() {
        assert_eq!(size_of::<BriefMutex>(), 1);
    }
}
