//! Locks in two forms: real ones, and none at all for a program that keeps its allocator on one thread.
//!
//! The form is a type parameter, so that the form without locks is not [`Sync`] and the compiler holds
//! the program to its word. A flag that switches locks off at run time could not do that.
//!
//! Each form has two locks. A [`CoreMutex`] guards a few hundred nanoseconds of bookkeeping and nothing else; a
//! [`Mutex`] may be held while the driver is called.

pub(crate) mod atomic;
mod brief_mutex;
#[cfg(all(loom, test))]
pub(crate) mod model;
mod no_mutex;
#[cfg(test)]
mod tests;
pub(crate) mod thread_token;
#[cfg(not(all(loom, test)))]
mod wait;

use parking_lot::lock_api;

pub(crate) use self::brief_mutex::BriefMutex;
pub(crate) use self::no_mutex::NoMutex;

mod sealed {
    pub trait Sealed {}
}

/// How an allocator may be shared: [`Shared`] between threads, or [`Local`] to one at a time.
///
/// Sealed: there are no other forms.
///
/// ```
/// fn statistics<T: sublet::Threading>(allocator: &sublet::Allocator<T>) -> usize {
///     allocator.memory_type_statistics().len()
/// }
/// ```
pub trait Threading: sealed::Sealed + Send + Sized + 'static {
    #[doc(hidden)]
    type RawMutex: lock_api::RawMutex;
    #[doc(hidden)]
    type RawCoreMutex: lock_api::RawMutex + Default;
}

/// An allocator that any number of threads use at once. The default.
#[derive(Debug, Clone, Copy)]
pub struct Shared(());

/// An allocator without locks, which is [`Send`] but not [`Sync`].
#[derive(Debug, Clone, Copy)]
pub struct Local(());

impl sealed::Sealed for Shared {}
impl sealed::Sealed for Local {}
impl Threading for Shared {
    type RawMutex = parking_lot::RawMutex;
    type RawCoreMutex = BriefMutex;
}
impl Threading for Local {
    type RawMutex = NoMutex;
    type RawCoreMutex = NoMutex;
}

/// A mutex in the form that `T` asks for. It may be held for long: waiting threads sleep.
pub(crate) type Mutex<T, V> = lock_api::Mutex<<T as Threading>::RawMutex, V>;

/// A mutex in the form that `T` asks for, for short sections that call no foreign code: see [`BriefMutex`].
///
/// A type of its own and no alias, because under a model checker its lock cannot be made in a constant.
#[derive(Debug)]
#[doc(hidden)]
pub struct CoreMutex<T: Threading, V>(lock_api::Mutex<T::RawCoreMutex, V>);

/// Holds a [`CoreMutex`] until it is dropped.
pub type CoreGuard<'a, T, V> = lock_api::MutexGuard<'a, <T as Threading>::RawCoreMutex, V>;

impl<T: Threading, V> CoreMutex<T, V> {
    /// Guards `value`.
    #[inline]
    pub fn new(value: V) -> Self {
        Self(lock_api::Mutex::const_new(T::RawCoreMutex::default(), value))
    }

    /// Waits until the lock is free. With [`Local`], panics if it is not: the caller would wait for itself.
    #[inline]
    pub fn lock(&self) -> CoreGuard<'_, T, V> {
        self.0.lock()
    }

    /// `None` if the lock is held.
    #[inline]
    pub fn try_lock(&self) -> Option<CoreGuard<'_, T, V>> {
        self.0.try_lock()
    }
}
