//! The lock of [`Local`](super::Local): none.

use std::cell::Cell;

use parking_lot::lock_api;

/// A plain flag that detects re-entry, without an atomic operation.
#[derive(Debug, Default)]
pub struct NoMutex {
    locked: Cell<bool>,
}

// SAFETY: at most one guard exists at a time: `lock` panics and `try_lock` refuses while the flag is set,
// and the flag cannot be seen by two threads at once, because `Cell` makes this type `!Sync`.
unsafe impl lock_api::RawMutex for NoMutex {
    const INIT: Self = Self { locked: Cell::new(false) };
    // A guard must not travel to another thread: the flag is not atomic.
    type GuardMarker = lock_api::GuardNoSend;

    #[inline]
    fn lock(&self) {
        assert!(
            self.try_lock(),
            "an allocator without locks was entered again from one of its own callbacks"
        );
    }

    #[inline]
    fn try_lock(&self) -> bool {
        !self.locked.replace(true)
    }

    #[inline]
    unsafe fn unlock(&self) {
        self.locked.set(false);
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.locked.get()
    }
}
