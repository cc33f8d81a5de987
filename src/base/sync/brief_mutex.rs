//! A lock for sections of well under a microsecond.
#![expect(unsafe_code, reason = "hands out what a lock protects")]

use parking_lot::lock_api;

use super::atomic::{AtomicBool, Ordering, SpinWait};

/// A lock for sections of well under a microsecond that call no foreign code.
///
/// `parking_lot` has a slower unlock: a second atomic read-modify-write checks if a thread is parked. Here locking is
/// one read-modify-write and unlocking one plain store, because no thread is ever parked. `benches/locks.rs` compares
/// the two.
///
/// Limitations:
/// - A waiting thread is not woken. It polls, first without a pause and finally once in a millisecond. So it notices
///   the end of a long section late.
/// - It is not fair. A thread that takes it in a tight loop may keep others out for many rounds.
///
/// So it is only for bounded sections: no driver call, no other lock, no code of the caller. A holder that loses its
/// processor does not stop the program: waiting threads yield and then sleep, so that even a holder of the lowest
/// priority runs.
#[derive(Debug, Default)]
pub struct BriefMutex {
    locked: AtomicBool,
}

impl BriefMutex {
    /// One read-modify-write. A swap costs the same, but would write `true` over `true` when it fails. loom treats that
    /// as a store that may come after the holder's `false`.
    #[inline]
    fn acquire(&self) -> bool {
        self.locked.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Waits until the lock is free, and takes it.
    ///
    /// Polls with plain loads: a read-modify-write would take the cache line from the holder.
    #[cold]
    #[inline(never)]
    fn wait_and_acquire(&self) {
        let mut wait = SpinWait::default();
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
// `true`. Only `unlock` writes `false`, and lock_api calls it once for each acquisition. The exchange acquires what
// that store releases, so one holder sees all writes of the holders before it.
unsafe impl lock_api::RawMutex for BriefMutex {
    #[cfg(not(all(loom, test)))]
    const INIT: Self = Self { locked: AtomicBool::new(false) };
    #[cfg(all(loom, test))]
    const INIT: Self = panic!("a modelled lock is made at run time: see `CoreMutex`");
    // The lock allows guards to move between threads. But a moved guard would be held longer than a section may last.
    type GuardMarker = lock_api::GuardNoSend;

    #[inline]
    fn lock(&self) {
        if !self.acquire() {
            self.wait_and_acquire();
        }
    }

    #[inline]
    fn try_lock(&self) -> bool {
        // A failed load leaves the cache line with the holder. If the line is in this cache already, the load is almost
        // free.
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
