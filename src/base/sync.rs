//! Locks in two forms: real ones, and none at all for a program that keeps its allocator on one thread.
//!
//! The form is a type parameter, so that the form without locks is not [`Sync`] and the compiler holds
//! the program to its word. A flag that switches locks off at run time could not do that.

use std::cell::Cell;

use parking_lot::lock_api;

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
}

/// An allocator that any number of threads use at once. The default.
///
/// ```
/// fn shared<A: Send + Sync>() {}
/// shared::<sublet::Allocator<sublet::Shared>>();
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Shared(());

/// An allocator without locks, which is [`Send`] but not [`Sync`].
///
/// ```
/// fn sendable<A: Send>() {}
/// sendable::<sublet::Allocator<sublet::Local>>();
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Local(());

impl sealed::Sealed for Shared {}
impl sealed::Sealed for Local {}
impl Threading for Shared {
    type RawMutex = parking_lot::RawMutex;
}
impl Threading for Local {
    type RawMutex = NoMutex;
}

/// A mutex in the form that `T` asks for.
pub(crate) type Mutex<T, V> = lock_api::Mutex<<T as Threading>::RawMutex, V>;

/// The lock of [`Local`]: a flag that finds re-entry, and no atomic operation.
#[doc(hidden)]
#[derive(Debug)]
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
}
