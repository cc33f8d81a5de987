//! The ring alone. Who takes holds no lock here: there is only one.
#![forbid(unsafe_code)]

use std::num::NonZeroU64;

use super::super::returns::{Left, Returns};
use super::*;

const GENERATION: u32 = 1;

/// A ring for four keys, of which the places after the first `begin` are next.
fn ring(begin: u64) -> Arc<Returns> {
    let ring = Returns::new();
    ring.open_for(GENERATION);
    ring.publish_live(u32::MAX);
    for number in 1..=begin {
        leave(&ring, number);
        assert_eq!(take(&ring), Some(number));
    }
    Arc::new(ring)
}

fn leave(ring: &Returns, number: u64) -> Left {
    ring.leave(Key(NonZeroU64::new(number).unwrap()), GENERATION)
}

fn take(ring: &Returns) -> Option<u64> {
    let key = ring.first()?;
    ring.pass(u32::MAX);
    Some(key.0.get())
}

/// Leaves those keys, and says which were not taken in.
fn leave_all(ring: &Returns, numbers: impl IntoIterator<Item = u64>) -> Vec<u64> {
    numbers.into_iter().filter(|&number| leave(ring, number) == Left::No).collect()
}

#[test]
fn loom_a_key_is_of_the_use_that_the_ring_is_open_for() {
    check(|| {
        let ring = ring(0);
        let key = Key(NonZeroU64::new(5).unwrap());
        assert_eq!(ring.leave(key, GENERATION + 1), Left::No);
        assert_eq!(take(&ring), None);
        ring.open_for(GENERATION + 1);
        assert_eq!(ring.leave(key, GENERATION), Left::No);
        assert_eq!(ring.leave(key, GENERATION + 1), Left::There);
        assert_eq!(take(&ring), Some(5));
    });
}

/// Four keys find a place, a fifth does not; the third is told that they are many.
#[test]
fn loom_a_full_ring_takes_nothing_in() {
    check(|| {
        let ring = ring(3);
        let answers = [10, 11, 12, 13, 14].map(|number| leave(&ring, number));
        assert_eq!(answers, [Left::There, Left::There, Left::Now, Left::Now, Left::No]);
        assert_eq!([(); 5].map(|()| take(&ring)), [Some(10), Some(11), Some(12), Some(13), None]);
        assert_eq!(leave(&ring, 15), Left::There);
    });
}

/// What two threads leave is there once, and of each thread in its order.
#[test]
fn loom_of_two_that_leave_nothing_is_lost() {
    let outcomes = Outcomes::default();
    let outcome = outcomes.clone();
    check(move || {
        let ring = ring(3);
        let others = [[11, 12], [21, 22]].map(|keys| spawn(&ring, move |ring| leave_all(ring, keys)));
        let mut taken: Vec<u64> = (0..2).filter_map(|_| take(&ring)).collect();
        outcome.happened(taken.len() as u32);
        for other in others {
            assert_eq!(other.join().unwrap(), [0_u64; 0], "four find room");
        }
        taken.extend(std::iter::from_fn(|| take(&ring)));
        assert!(taken.iter().filter(|&&key| key < 20).eq(&[11, 12]), "{taken:?}");
        assert!(taken.iter().filter(|&&key| key > 20).eq(&[21, 22]), "{taken:?}");
        assert_eq!(taken.len(), 4);
    });
    outcomes.expect(&[0, 1, 2]);
}

/// The ring is nearly full. Places are used again only after they were emptied.
#[test]
fn loom_a_place_is_left_before_it_is_taken_again() {
    let outcomes = Outcomes::default();
    let outcome = outcomes.clone();
    check(move || {
        let ring = ring(2);
        assert_eq!(leave_all(&ring, [1, 2, 3]), [0_u64; 0]);
        let other = spawn(&ring, |ring| leave_all(ring, [4, 5, 6]));
        let mut taken: Vec<u64> = (0..3).filter_map(|_| take(&ring)).collect();
        assert_eq!(taken, [1, 2, 3]);
        let refused = other.join().unwrap();
        taken.extend(std::iter::from_fn(|| take(&ring)));
        assert!(taken.is_sorted(), "{taken:?}");
        taken.extend(&refused);
        taken.sort_unstable();
        assert_eq!(taken, [1, 2, 3, 4, 5, 6]);
        outcome.happened(refused.len() as u32);
    });
    outcomes.expect(&[0, 1, 2]);
}
