//! The ring alone. Only one thread drains it, so it needs no lock.

use std::num::NonZeroU64;

use super::super::returns::{BATCH, Left, Returns};
use super::*;

const GENERATION: u32 = 1;

/// A ring for four keys, whose positions are advanced by `begin`.
fn ring(begin: u64) -> Arc<Returns> {
    let ring = Returns::new();
    ring.open_for(GENERATION);
    ring.publish_live(u32::MAX);
    for number in 1..=begin {
        leave(&ring, number);
        assert_eq!(take(&ring), [number]);
    }
    Arc::new(ring)
}

fn leave(ring: &Returns, number: u64) -> Left {
    ring.leave(Key(NonZeroU64::new(number).unwrap()), GENERATION)
}

/// Takes one batch: at most two keys.
fn take(ring: &Returns) -> Vec<u64> {
    let mut keys = [None; BATCH];
    let taken = ring.take(&mut keys);
    ring.pass(taken, u32::MAX);
    keys.into_iter().map_while(|key| Some(key?.0.get())).collect()
}

fn take_all(ring: &Returns) -> Vec<u64> {
    std::iter::repeat_with(|| take(ring)).take_while(|taken| !taken.is_empty()).flatten().collect()
}

/// Leaves those keys, and returns those that the ring rejected.
fn leave_all(ring: &Returns, numbers: impl IntoIterator<Item = u64>) -> Vec<u64> {
    numbers.into_iter().filter(|&number| leave(ring, number) == Left::No).collect()
}

#[test]
fn loom_a_key_is_of_the_use_that_the_ring_is_open_for() {
    check(|| {
        let ring = ring(0);
        let key = Key(NonZeroU64::new(5).unwrap());
        assert_eq!(ring.leave(key, GENERATION + 1), Left::No);
        assert_eq!(take(&ring), [0_u64; 0]);
        ring.open_for(GENERATION + 1);
        assert_eq!(ring.leave(key, GENERATION), Left::No);
        assert_eq!(ring.leave(key, GENERATION + 1), Left::There);
        assert_eq!(take(&ring), [5]);
    });
}

/// Four keys find a slot, a fifth does not. From the third on, the caller must drain.
#[test]
fn loom_a_full_ring_takes_nothing_in() {
    check(|| {
        let ring = ring(3);
        let answers = [10, 11, 12, 13, 14].map(|number| leave(&ring, number));
        assert_eq!(answers, [Left::There, Left::There, Left::Soon, Left::Soon, Left::No]);
        assert_eq!(take_all(&ring), [10, 11, 12, 13]);
        assert_eq!(leave(&ring, 15), Left::There);
    });
}

/// The keys of two threads arrive exactly once, and those of each thread in order.
#[test]
fn loom_of_two_that_leave_nothing_is_lost() {
    let outcomes = Outcomes::default();
    let outcome = outcomes.clone();
    check(move || {
        let ring = ring(3);
        let others = [[11, 12], [21, 22]].map(|keys| spawn(&ring, move |ring| leave_all(ring, keys)));
        let mut taken = take(&ring);
        outcome.happened(taken.len() as u32);
        for other in others {
            assert_eq!(other.join().unwrap(), [0_u64; 0], "four find room");
        }
        taken.extend(take_all(&ring));
        assert!(taken.iter().filter(|&&key| key < 20).eq(&[11, 12]), "{taken:?}");
        assert!(taken.iter().filter(|&&key| key > 20).eq(&[21, 22]), "{taken:?}");
        assert_eq!(taken.len(), 4);
    });
    outcomes.expect(&[0, 1, 2]);
}

/// The ring is nearly full. Slots are reused only after they were emptied.
#[test]
fn loom_a_place_is_left_before_it_is_taken_again() {
    let outcomes = Outcomes::default();
    let outcome = outcomes.clone();
    check(move || {
        let ring = ring(2);
        assert_eq!(leave_all(&ring, [1, 2, 3]), [0_u64; 0]);
        let other = spawn(&ring, |ring| leave_all(ring, [4, 5, 6]));
        let mut taken: Vec<u64> = [take(&ring), take(&ring)].concat();
        assert!(taken.starts_with(&[1, 2, 3]));
        let refused = other.join().unwrap();
        taken.extend(take_all(&ring));
        assert!(taken.is_sorted(), "{taken:?}");
        taken.extend(&refused);
        taken.sort_unstable();
        assert_eq!(taken, [1, 2, 3, 4, 5, 6]);
        outcome.happened(refused.len() as u32);
    });
    outcomes.expect(&[0, 1, 2]);
}
