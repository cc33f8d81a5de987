//! The two locks. A [`CoreMutex`] protects sections of a few hundred nanoseconds; a [`Mutex`] may be held over driver
//! calls.

pub(crate) mod atomic;
mod brief_mutex;
#[cfg(all(loom, test))]
pub(crate) mod model;
#[cfg(test)]
mod tests;
pub(crate) mod thread_token;
#[cfg(not(all(loom, test)))]
mod wait;

use parking_lot::lock_api;

pub use self::brief_mutex::BriefMutex;

/// A mutex that may be held for long: waiting threads sleep.
pub(crate) use parking_lot::Mutex;

/// A mutex for short sections that call no foreign code: see [`BriefMutex`].
///
/// A separate type instead of an alias, because a model checker's lock cannot be created in a constant.
#[derive(Debug)]
#[doc(hidden)]
pub struct CoreMutex<V>(lock_api::Mutex<BriefMutex, V>);

/// Holds a [`CoreMutex`] until it is dropped.
pub type CoreGuard<'a, V> = lock_api::MutexGuard<'a, BriefMutex, V>;

impl<V> CoreMutex<V> {
    /// Creates a lock around `value`.
    #[inline]
    pub fn new(value: V) -> Self {
        Self(lock_api::Mutex::const_new(BriefMutex::default(), value))
    }

    /// Waits until the lock is free.
    #[inline]
    pub fn lock(&self) -> CoreGuard<'_, V> {
        self.0.lock()
    }

    /// Returns `None` if the lock is held.
    #[inline]
    pub fn try_lock(&self) -> Option<CoreGuard<'_, V>> {
        self.0.try_lock()
    }
}
