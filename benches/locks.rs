//! Compares the lock of a vector's core with that of `parking_lot`, which the library uses for longer sections.
//!
//! `cargo bench --bench locks`. Times are for one lock, its unlock and the work between them. `alone` is one thread
//! without contention. In `together` the threads share one lock and do nothing else, which is worse than any program.
//! It shows the cost of contention, not how often it occurs.

use std::cell::Cell;

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use parking_lot::RawMutex as Parking;
use parking_lot::lock_api::{self, RawMutex};
use sublet::private::BriefMutex as Brief;

/// About the memory accesses of one allocation in an engine: a chain of words, each read to find the next.
struct LockedCounters([u32; 64]);

impl LockedCounters {
    fn new() -> Self {
        Self(std::array::from_fn(|at| u32::try_from(at * 37 % 64).unwrap_or(0)))
    }

    fn keep(&mut self) -> u32 {
        let mut at = 0;
        for _ in 0..16 {
            let next = &mut self.0[usize::try_from(at % 64).unwrap_or(0)];
            *next = next.wrapping_add(64);
            at = *next;
        }
        at
    }
}

/// Rounds per measured call, to hide the cost of the measurement.
const ROUNDS: u64 = 1000;
/// Rounds with contention, long enough that all threads run at once.
const ROUNDS_TOGETHER: u64 = 50_000;

fn main() {
    divan::main();
}

/// Lock and unlock with nothing between them.
#[divan::bench(types = [Brief, Parking])]
fn alone_empty<R: RawMutex>(bencher: Bencher<'_, '_>) {
    let lock = lock_api::Mutex::<R, u64>::new(0);
    let done = Cell::new(0);
    bencher.counter(ItemsCount::new(ROUNDS)).bench_local(|| {
        for _ in 0..ROUNDS {
            *black_box(&lock).lock() += 1;
        }
        done.set(done.get() + ROUNDS);
    });
    assert_eq!(*lock.lock(), done.get());
}

/// Lock and unlock around reads and writes like those of an allocation and its free.
#[divan::bench(types = [Brief, Parking])]
fn alone_with_counters<R: RawMutex>(bencher: Bencher<'_, '_>) {
    let lock = lock_api::Mutex::<R, LockedCounters>::new(LockedCounters::new());
    bencher.counter(ItemsCount::new(ROUNDS)).bench_local(|| {
        for _ in 0..ROUNDS {
            black_box(black_box(&lock).lock().keep());
        }
    });
}

/// A `try_lock` that succeeds.
#[divan::bench(types = [Brief, Parking])]
fn alone_try<R: RawMutex>(bencher: Bencher<'_, '_>) {
    let lock = lock_api::Mutex::<R, u64>::new(0);
    let done = Cell::new(0);
    bencher.counter(ItemsCount::new(ROUNDS)).bench_local(|| {
        for _ in 0..ROUNDS {
            if let Some(mut value) = black_box(&lock).try_lock() {
                *value += 1;
            }
        }
        done.set(done.get() + ROUNDS);
    });
    assert_eq!(*lock.lock(), done.get());
}

/// Several threads on one lock, without work outside it.
#[divan::bench(types = [Brief, Parking], threads = [2, 8])]
fn together_with_counters<R: RawMutex + Send + Sync>(bencher: Bencher<'_, '_>) {
    let lock = lock_api::Mutex::<R, LockedCounters>::new(LockedCounters::new());
    bencher.counter(ItemsCount::new(ROUNDS_TOGETHER)).bench(|| {
        for _ in 0..ROUNDS_TOGETHER {
            black_box(lock.lock().keep());
        }
    });
}
