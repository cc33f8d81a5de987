//! Testing concurrent code with loom. loom runs a test once for every order in which the threads' atomic operations can
//! happen, with every value that the memory model lets a load return.
//!
//! `.ci/loom` runs all tests whose names begin with `loom_`. Put a new one into the `tests.rs` of the tested module:
//!
//! ```text
//! #[cfg(loom)]
//! mod loom_shard {
//!     use loom::sync::Arc;
//!     use loom::thread;
//!     use crate::base::sync::model::{Watched, check};
//!     use crate::base::sync::thread_token;
//!
//!     #[test]
//!     fn loom_a_remote_free_is_not_lost() {
//!         check(|| {
//!             let shard = Arc::new(Shard::new());
//!             let other = Arc::clone(&shard);
//!             let thread = thread::spawn(move || {
//!                 thread_token::pretend(1);
//!                 other.give_back(..);
//!             });
//!             shard.drain();
//!             thread.join().unwrap();
//!             shard.drain();
//!             assert!(shard.is_empty());
//!         });
//!     }
//! }
//! ```
//!
//! - Create everything inside `check`: loom's atomics, and a `CoreMutex`, live for one run of it. loom does not see the
//!   `Mutex` of `parking_lot`: a thread that must wait for one waits for ever.
//! - Use the atomics of [`super::atomic`]. Put plain data that only an order of atomics protects into a [`Watched`], or
//!   a [`Turn`] beside it; otherwise loom cannot see concurrent accesses. loom also assumes that two stores to one
//!   place happen in the order in which they ran. Only a [`Turn`] shows if the atomics enforce that.
//! - Two threads with two or three operations each find nearly every fault within seconds. A loop that waits must use
//!   [`super::atomic::SpinWait`], as `CoreMutex` does.
//! - loom 0.7 compares a store only with the last access. If one thread loads, and another then loads and stores, it
//!   does not try the store before the first load. So count the outcomes with [`Outcomes`]: an outcome that never
//!   happened was not tested.
//! - Threads have token 0 unless they call `thread_token::pretend`. Real tokens would add their own atomics to the
//!   model.
//! - Break the code on purpose (relax an order, split a compare-exchange in two) and check that the test fails.

use loom::cell::UnsafeCell;
use loom::skip_branch;
use loom::sync::Mutex;
use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread::{Builder, JoinHandle, yield_now};

/// Runs `test` in every order with at most three preemptions. `LOOM_MAX_PREEMPTIONS` changes that limit.
pub(crate) fn check(test: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound.get_or_insert(3);
    builder.check(test);
}

/// Stack size of the threads of [`check_deep`] in bytes; others have 32 KiB.
const DEEP: usize = 1 << 20;

/// [`check`] for tests that need more stack than loom gives its threads.
pub(crate) fn check_deep(test: impl Fn() + Sync + Send + 'static) {
    let test = std::sync::Arc::new(test);
    check(move || {
        let test = std::sync::Arc::clone(&test);
        spawn_deep(move || test()).join().unwrap();
    });
}

/// Starts a thread with more stack than others have.
pub(crate) fn spawn_deep<R: Send + 'static>(run: impl FnOnce() -> R + Send + 'static) -> JoinHandle<R> {
    // Loom counts words.
    Builder::new().stack_size(DEEP / size_of::<usize>()).spawn(run).unwrap()
}

/// The outcomes of a test, counted over all its runs.
#[derive(Debug, Clone, Default)]
pub(crate) struct Outcomes(std::sync::Arc<std::sync::Mutex<std::collections::BTreeSet<u32>>>);

impl Outcomes {
    pub(crate) fn happened(&self, outcome: u32) {
        self.0.lock().unwrap().insert(outcome);
    }

    /// Panics unless exactly these outcomes were seen. `outcomes` is in ascending order.
    pub(crate) fn expect(&self, outcomes: &[u32]) {
        let seen: Vec<u32> = self.0.lock().unwrap().iter().copied().collect();
        assert_eq!(seen, outcomes, "the outcomes of all runs");
    }
}

/// A value that panics on concurrent use, or if the memory order does not make one thread's use visible to the next.
#[derive(Debug, Default)]
pub(crate) struct Watched<V> {
    watch: UnsafeCell<()>,
    value: V,
}

impl<V: Copy> Watched<V> {
    pub(crate) fn new(value: V) -> Self {
        Self { watch: UnsafeCell::new(()), value }
    }

    pub(crate) fn read(&self) -> V {
        self.watch.with(|_| self.value)
    }

    pub(crate) fn write(&mut self, value: V) {
        self.watch.with_mut(|_| self.value = value);
    }
}

/// Exclusive use by one thread at a time. Panics on concurrent use, or if the memory order does not make the end of one
/// turn visible to the next.
#[derive(Debug, Default)]
pub(crate) struct Turn(
    // A lock that loom does not see, only to make this `Sync`.
    std::sync::Mutex<UnsafeCell<()>>,
);

impl Turn {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn touch(&self) {
        self.0.lock().unwrap().with_mut(|_| ());
    }
}

/// Rounds of one wait before loom abandons that order of events. Waiting threads can yield to one another for ever, and
/// loom would count each round as a new order.
const ROUNDS: u32 = 3;

/// Replaces the real `SpinWait` in a model, which has no time. Each round lets another thread continue.
#[derive(Debug, Default)]
pub(crate) struct SpinWait {
    round: u32,
}

impl SpinWait {
    pub(crate) fn once(&mut self) {
        self.round += 1;
        if self.round == ROUNDS {
            skip_branch();
        }
        yield_now();
    }
}

/// The standard library's `OnceLock`, rebuilt from primitives that loom sees. So models check the code that uses it,
/// not the original.
#[derive(Debug)]
pub(crate) struct OnceLock<V> {
    made: AtomicBool,
    making: Mutex<()>,
    value: std::sync::OnceLock<V>,
}

impl<V> OnceLock<V> {
    pub(crate) fn new() -> Self {
        Self { made: AtomicBool::new(false), making: Mutex::new(()), value: std::sync::OnceLock::new() }
    }

    /// `None` until the value exists, even while a thread creates it. Does not wait.
    pub(crate) fn get(&self) -> Option<&V> {
        if self.made.load(Ordering::Acquire) { self.value.get() } else { None }
    }

    /// If several threads call this at once, one creates the value, and the others wait for it.
    pub(crate) fn get_or_init(&self, make: impl FnOnce() -> V) -> &V {
        // Does not check `made` first: that would hide the accesses of other threads from loom.
        let making = self.making.lock().unwrap();
        self.value.get_or_init(make);
        self.made.store(true, Ordering::Release);
        drop(making);
        self.value.get().unwrap()
    }
}
