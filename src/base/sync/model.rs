//! How to let loom look at code that threads share: it runs a test once for every order in which the threads' atomic
//! operations can happen, with every value that the memory model lets a load return.
//!
//! `.ci/loom` runs all tests whose names begin with `loom_`. A new one stands in the `tests.rs` of what it tests:
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
//! - Everything is made inside of `check`: loom's atomics live for one run of it. So does a `CoreMutex`. The `Mutex` of
//!   `parking_lot` is not seen by loom: a thread that has to wait for one waits for ever.
//! - Atomics come from [`super::atomic`]. Plain data that only an order of atomics protects is put into a [`Watched`],
//!   or has a [`Turn`] beside it, or loom cannot see that two threads touch it at once. Loom also takes two stores to
//!   one place for made in the order in which they ran: that nothing but an order of atomics sees to it, only a
//!   [`Turn`] can tell.
//! - Two threads with two or three operations each are enough for nearly every fault, and done in seconds. A loop that
//!   waits must do so with [`super::atomic::Wait`], as `CoreMutex` does.
//! - loom 0.7 holds a store against the last access alone. Where one thread loads, and another then loads and stores,
//!   it does not try the store before the first load. So count the outcomes with [`Outcomes`]: what never happened was
//!   not tested.
//! - Threads have token 0 unless they call `thread_token::pretend`. Real tokens would add their own atomics to the
//!   model.
//! - Break the code on purpose (an order relaxed, a compare-exchange split in two) and see that the test fails.
#![forbid(unsafe_code)]

use loom::cell::UnsafeCell;
use loom::skip_branch;
use loom::sync::Mutex;
use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread::{Builder, JoinHandle, yield_now};

/// Runs `test` in every order, but with no more than three switches between threads that can both go on.
/// `LOOM_MAX_PREEMPTIONS` asks for more or fewer.
pub(crate) fn check(test: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound.get_or_insert(3);
    builder.check(test);
}

/// Bytes of stack that a thread of [`check_deep`] has; others have 32 KiB.
const DEEP: usize = 1 << 20;

/// As [`check`], for what needs more stack than loom gives its threads.
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

/// What came of a test, counted over all runs of it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Outcomes(std::sync::Arc<std::sync::Mutex<std::collections::BTreeSet<u32>>>);

impl Outcomes {
    pub(crate) fn happened(&self, outcome: u32) {
        self.0.lock().unwrap().insert(outcome);
    }

    /// Panics unless just these were seen, in this order.
    pub(crate) fn expect(&self, outcomes: &[u32]) {
        let seen: Vec<u32> = self.0.lock().unwrap().iter().copied().collect();
        assert_eq!(seen, outcomes, "the outcomes of all runs");
    }
}

/// A value that panics when two threads are at it at once, or when one was there before without the other knowing of
/// it.
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

/// What a thread has for itself at times. Panics when two have it at once, or when one had it before without the other
/// knowing of it.
#[derive(Debug, Default)]
pub(crate) struct Turn(
    // A lock that loom does not see: it only makes this `Sync`.
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

/// Rounds that one wait may last before loom stops to look for other ways on: threads that wait can give way to one
/// another for ever, and each time they do is a new way.
const ROUNDS: u32 = 3;

/// Waiting in a model, which knows no time: another thread goes on.
#[derive(Debug, Default)]
pub(crate) struct Wait {
    round: u32,
}

impl Wait {
    pub(crate) fn once(&mut self) {
        self.round += 1;
        if self.round == ROUNDS {
            skip_branch();
        }
        yield_now();
    }
}

/// The standard library's `OnceLock`, as its documentation has it, made of what loom can see. That the original is
/// right is taken for granted; what is tested is the code that uses it.
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

    /// `None` until the value was made, also while a thread is making it. Does not wait.
    pub(crate) fn get(&self) -> Option<&V> {
        if self.made.load(Ordering::Acquire) { self.value.get() } else { None }
    }

    /// Of all threads that ask at once, one makes the value, and the others wait for it.
    pub(crate) fn get_or_init(&self, make: impl FnOnce() -> V) -> &V {
        // No look at `made` first: it would hide the looks of other threads from loom.
        let making = self.making.lock().unwrap();
        self.value.get_or_init(make);
        self.made.store(true, Ordering::Release);
        drop(making);
        self.value.get().unwrap()
    }
}
