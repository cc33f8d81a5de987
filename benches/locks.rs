//! The lock of a vector's core beside that of `parking_lot`, which the library uses where a lock is held for longer.
//!
//! `cargo bench --bench locks`. Times are for one lock with its unlock and what is done between them. `alone` is one
//! thread, which is what a thread that has a core to itself pays. In `together` the threads share one lock and do
//! nothing else, which is worse than any program: it shows what contention costs, not how often it happens.

use std::cell::Cell;

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use parking_lot::RawMutex as Parking;
use parking_lot::lock_api::{self, RawMutex};
use sublet::private::BriefMutex as Brief;

/// About what an engine touches for one allocation: a chain of words, each read to find the next.
struct Books([u32; 64]);

impl Books {
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

/// Rounds in one measured call, so that the measuring does not count.
const ROUNDS: u64 = 1000;
/// The same where threads contend: long enough that they all run at once.
const ROUNDS_TOGETHER: u64 = 50_000;

fn main() {
    divan::main();
}

/// A lock and an unlock with nothing between them.
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

/// As an allocation and its free do it: the section reads and writes.
#[divan::bench(types = [Brief, Parking])]
fn alone_with_books<R: RawMutex>(bencher: Bencher<'_, '_>) {
    let lock = lock_api::Mutex::<R, Books>::new(Books::new());
    bencher.counter(ItemsCount::new(ROUNDS)).bench_local(|| {
        for _ in 0..ROUNDS {
            black_box(black_box(&lock).lock().keep());
        }
    });
}

/// A try that succeeds.
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

/// One lock, several threads, nothing done outside it.
#[divan::bench(types = [Brief, Parking], threads = [2, 8])]
fn together_with_books<R: RawMutex + Send + Sync>(bencher: Bencher<'_, '_>) {
    let lock = lock_api::Mutex::<R, Books>::new(Books::new());
    bencher.counter(ItemsCount::new(ROUNDS_TOGETHER)).bench(|| {
        for _ in 0..ROUNDS_TOGETHER {
            black_box(lock.lock().keep());
        }
    });
}
