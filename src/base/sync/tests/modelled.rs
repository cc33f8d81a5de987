//! Model checks of the lock, the map of tokens and the append table. See `sync::model`.

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, Ordering};
use loom::thread;

use crate::base::append_table::AppendTable;
use crate::base::sync::model::{Outcomes, Watched, check};
use crate::base::sync::{CoreMutex, thread_token};

type Lock = CoreMutex<Watched<u32>>;

fn new_lock() -> Arc<Lock> {
    Arc::new(Lock::new(Watched::new(0)))
}

fn add_one(value: &mut Watched<u32>) {
    value.write(value.read() + 1);
}

fn spawn(lock: &Arc<Lock>, run: impl FnOnce(&Lock) + 'static) -> thread::JoinHandle<()> {
    let lock = Arc::clone(lock);
    thread::spawn(move || run(&lock))
}

/// One thread at a time is inside, sees the writes of the threads before, and leaves.
#[test]
fn loom_two_threads_enter_twice_each() {
    check(|| {
        let lock = new_lock();
        let other = spawn(&lock, |lock| (0..2).for_each(|_| add_one(&mut lock.lock())));
        (0..2).for_each(|_| add_one(&mut lock.lock()));
        other.join().unwrap();
        assert_eq!(lock.lock().read(), 4);
    });
}

#[test]
fn loom_three_threads_enter() {
    check(|| {
        let lock = new_lock();
        let others = [0; 2].map(|_| spawn(&lock, |lock| add_one(&mut lock.lock())));
        add_one(&mut lock.lock());
        others.into_iter().for_each(|other| other.join().unwrap());
        assert_eq!(lock.lock().read(), 3);
    });
}

/// A successful `try_lock` excludes others; a failed one has no effect.
#[test]
fn loom_tries_exclude_one_another() {
    let outcomes = Outcomes::default();
    let outcome = outcomes.clone();
    check(move || {
        let lock = new_lock();
        let entered = Arc::new(AtomicU32::new(0));
        let others = [0; 2].map(|_| {
            let entered = Arc::clone(&entered);
            spawn(&lock, move |lock| {
                if let Some(mut value) = lock.try_lock() {
                    add_one(&mut value);
                    entered.fetch_add(1, Ordering::Relaxed);
                }
            })
        });
        others.into_iter().for_each(|other| other.join().unwrap());
        let value = lock.try_lock().expect("everybody has left").read();
        assert_eq!(value, entered.load(Ordering::Relaxed));
        outcome.happened(value);
    });
    outcomes.expect(&[1, 2]);
}

/// A `try_lock` concurrent with a `lock`: the lock is always acquired in the end.
#[test]
fn loom_a_try_does_not_take_an_unlock_away() {
    let outcomes = Outcomes::default();
    let outcome = outcomes.clone();
    check(move || {
        let lock = new_lock();
        let other = spawn(&lock, |lock| {
            for _ in 0..2 {
                if let Some(mut value) = lock.try_lock() {
                    add_one(&mut value);
                }
            }
        });
        add_one(&mut lock.lock());
        other.join().unwrap();
        outcome.happened(lock.try_lock().expect("everybody has left").read());
    });
    outcomes.expect(&[1, 2, 3]);
}

#[test]
fn loom_threads_have_the_tokens_they_pretend_to_have() {
    check(|| {
        let other = thread::spawn(|| {
            thread_token::pretend(7);
            thread_token::current()
        });
        assert_eq!(thread_token::current(), 0);
        assert_eq!(other.join().unwrap(), 7);
    });
}

/// A visible element is complete, and all threads see the same one.
#[test]
fn loom_an_element_is_seen_whole_or_not_at_all() {
    const NOT_SEEN: u32 = 0;
    let outcomes = Outcomes::default();
    let outcome = outcomes.clone();
    check(move || {
        let table = Arc::new(AppendTable::<AtomicU32>::new());
        let made = Arc::new(AtomicU32::new(0));
        let (other_table, other_made) = (Arc::clone(&table), Arc::clone(&made));
        let other = thread::spawn(move || {
            let element = other_table.get_or_make(9, |at| {
                other_made.fetch_add(1, Ordering::Relaxed);
                AtomicU32::new(at)
            });
            element.unwrap().store(100, Ordering::Relaxed);
        });
        // Loom forbids using an atomic before its creation: this load checks that.
        outcome.happened(table.get(9).map_or(NOT_SEEN, |element| element.load(Ordering::Relaxed)));
        assert!(table.get(0).is_none(), "another segment");
        other.join().unwrap();
        assert_eq!(table.get(9).unwrap().load(Ordering::Relaxed), 100);
        assert_eq!(table.get(23).unwrap().load(Ordering::Relaxed), 23);
        assert_eq!(made.load(Ordering::Relaxed), 16, "a segment is made whole");
    });
    outcomes.expect(&[NOT_SEEN, 9, 100]);
}

#[test]
fn loom_two_threads_make_one_segment() {
    check(|| {
        let table = Arc::new(AppendTable::<Arc<AtomicU32>>::new());
        let made = Arc::new(AtomicU32::new(0));
        let make = |table: &AppendTable<Arc<AtomicU32>>, made: &AtomicU32, at: u32| {
            let element = table.get_or_make(at, |at| {
                made.fetch_add(1, Ordering::Relaxed);
                Arc::new(AtomicU32::new(at))
            });
            element.unwrap().fetch_add(1000, Ordering::Relaxed);
        };
        let (other_table, other_made) = (Arc::clone(&table), Arc::clone(&made));
        let other = thread::spawn(move || make(&other_table, &other_made, 3));
        make(&table, &made, 3);
        other.join().unwrap();
        assert_eq!(made.load(Ordering::Relaxed), 8, "it was made once");
        let values: Vec<u32> = table.iter().map(|element| element.load(Ordering::Relaxed)).collect();
        assert_eq!(values, [0, 1, 2, 2003, 4, 5, 6, 7]);
    });
}
