//! More threads than processors in short sections: counts must be exact, and every thread must finish. If one does not,
//! the test does not end.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use crate::base::append_table::AppendTable;
use crate::base::sync::CoreMutex;

const THREADS: u64 = 8;
const ROUNDS: u64 = 20_000;
/// One in this many sections yields its processor while it is inside.
const LOSES: u64 = 64;

/// Data that only the lock protects: a plain count, and a flag that detects two threads inside.
#[derive(Default)]
struct GuardedCounters {
    count: u64,
    occupied: AtomicBool,
}

impl GuardedCounters {
    fn enter(&mut self) {
        assert!(!self.occupied.swap(true, Ordering::Relaxed), "two threads are inside at once");
        self.count += 1;
        if self.count % LOSES == 0 {
            thread::yield_now();
        }
        self.occupied.store(false, Ordering::Relaxed);
    }
}

/// Runs `run` on all threads at once.
fn on_all_threads(run: impl Fn(u64) + Sync) {
    let all_are_there = Barrier::new(usize::try_from(THREADS).unwrap());
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (run, all_are_there) = (&run, &all_are_there);
            scope.spawn(move || {
                all_are_there.wait();
                run(thread);
            });
        }
    });
}

type Lock = CoreMutex<GuardedCounters>;

#[test]
fn counts_are_exact_with_more_threads_than_processors() {
    let lock = Lock::new(GuardedCounters::default());
    on_all_threads(|_| (0..ROUNDS).for_each(|_| lock.lock().enter()));
    assert_eq!(lock.lock().count, THREADS * ROUNDS);
}

#[test]
fn tries_and_waits_mix() {
    let lock = Lock::new(GuardedCounters::default());
    let entered = AtomicU64::new(0);
    on_all_threads(|thread| {
        for round in 0..ROUNDS {
            let guard = if (thread + round) % 2 == 0 { Some(lock.lock()) } else { lock.try_lock() };
            if let Some(mut counters) = guard {
                counters.enter();
                entered.fetch_add(1, Ordering::Relaxed);
            }
        }
    });
    let count = lock.lock().count;
    assert_eq!(count, entered.load(Ordering::Relaxed));
    assert!(count >= THREADS * ROUNDS / 2);
}

/// Waiting threads must not starve a holder that sleeps longer than they spin, and all of them must get the lock.
#[test]
fn a_holder_that_sleeps_stops_nobody_for_good() {
    let lock = Lock::new(GuardedCounters::default());
    let holding = Barrier::new(2);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut counters = lock.lock();
            holding.wait();
            thread::sleep(Duration::from_millis(20));
            counters.enter();
        });
        holding.wait();
        let waiters: Vec<_> = (0..THREADS).map(|_| scope.spawn(|| lock.lock().enter())).collect();
        waiters.into_iter().for_each(|waiter| waiter.join().unwrap());
    });
    assert_eq!(lock.lock().count, THREADS + 1);
}

#[test]
fn a_lock_is_free_after_a_panic_under_it() {
    let lock = Lock::new(GuardedCounters::default());
    thread::scope(|scope| {
        let panicked = scope.spawn(|| {
            let _guard = lock.lock();
            panic!("under the lock");
        });
        assert!(panicked.join().is_err());
    });
    assert!(lock.try_lock().is_some());
}

#[test]
fn a_held_lock_refuses() {
    let shared = Lock::new(GuardedCounters::default());
    let guard = shared.lock();
    assert!(shared.try_lock().is_none());
    drop(guard);
    shared.try_lock().unwrap().enter();
    shared.lock().enter();
    assert_eq!(shared.lock().count, 2);
}

#[test]
fn one_thread_makes_a_segment_and_all_see_it() {
    let table = AppendTable::new();
    let made: [AtomicU64; 1000] = std::array::from_fn(|_| AtomicU64::new(0));
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let reader = scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                for at in 0..500 {
                    assert!(table.get(at).is_none_or(|element| *element == at));
                }
                assert!((0..).zip(table.iter()).all(|(at, element)| at == *element));
                thread::yield_now();
            }
        });
        let makers: Vec<_> = (0..THREADS)
            .map(|_| {
                scope.spawn(|| {
                    for at in 0..500 {
                        let element = table.get_or_make(at, |at| {
                            made[usize::try_from(at).unwrap()].fetch_add(1, Ordering::Relaxed);
                            at
                        });
                        assert_eq!(element, Some(&at));
                    }
                })
            })
            .collect();
        let results: Vec<_> = makers.into_iter().map(thread::ScopedJoinHandle::join).collect();
        // Stops the reader before a panic below could leave it running for ever.
        stop.store(true, Ordering::Relaxed);
        results.into_iter().for_each(|result| result.unwrap());
        reader.join().unwrap();
    });
    // Segments end at 8, 24, 56, 120, 248, 504.
    assert!(made[..504].iter().all(|times| times.load(Ordering::Relaxed) == 1));
    assert!(made[504..].iter().all(|times| times.load(Ordering::Relaxed) == 0));
}
