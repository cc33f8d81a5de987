//! A block source that panics in any of its calls: the state stays consistent, and no block is lost.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::*;
use crate::retire::Clock;

const CALLS: [&str; 6] = ["capacity_for", "create", "destroy", "reset", "realize", "release"];

#[test]
fn a_panic_leaves_consistent_state() {
    let mut caught = [0; CALLS.len()];
    for seed in 1..=40 {
        let mut random = fastrand::Rng::with_seed(seed);
        let policy = Policy {
            min_blocks: random.u32(..2),
            max_blocks: 5,
            empty_blocks_kept: random.u32(..3),
            idle_collects: [Some(0), Some(2), None][random.usize(..3)],
            ..Policy::default()
        };
        let (desk, mut vector) = growing(Growth { first: 16, preferred: 64 }, policy);
        let clock = Clock::new();
        let timeline = clock.add_timeline().unwrap();
        let mut held = Vec::new();
        let mut submitted = 0;
        // Blocks to be destroyed together with one whose destruction panicked.
        let mut lost = 0;
        for _ in 0..400 {
            let call = random.usize(..CALLS.len());
            desk.panics.set((random.u32(..4) == 0).then_some(CALLS[call]));
            let (what, size) = (random.u32(..20), random.u64(1..=80));
            let at = if held.is_empty() { None } else { Some(random.usize(..held.len())) };
            let result = catch_unwind(AssertUnwindSafe(|| match (what, at) {
                (0, _) => {
                    vector.trim();
                }
                (1, _) => {
                    vector.clear();
                }
                (2 | 3, _) => {
                    vector.collect(&clock).unwrap();
                }
                (4..=6, Some(at)) => {
                    let ticket = clock.open(timeline);
                    vector.retire(ticket, held.swap_remove(at)).unwrap();
                    submitted += 1;
                    clock.submit(ticket, submitted).unwrap();
                    clock.completed(timeline, submitted);
                }
                (7, Some(at)) => {
                    let granted: &GrantOf<Numbers, Tlsf> = &held[at];
                    desk.exhausted.borrow_mut().insert(*vector.block(granted.key()).unwrap().0);
                }
                (8..=12, Some(at)) => vector.free(held.swap_remove(at)).unwrap(),
                _ => held.extend(vector.allocate(&units(size)).ok()),
            }));
            desk.panics.set(None);
            caught[call] += u32::from(result.is_err());
            vector.validate();
            // Grants that `clear` freed are stale: all, or those before the panic.
            if what == 1 {
                held.retain(|granted| vector.span(granted.key()).is_ok());
            }
            let statistics = vector.statistics();
            let blocks = desk.blocks() - usize::try_from(statistics.blocks).unwrap();
            assert!(blocks == lost || result.is_err() && CALLS[call] == "destroy", "a block is lost");
            lost = blocks;
            let live = u64::try_from(held.len()).unwrap() + statistics.waiting;
            // After an interrupted `clear`, waiting grants are live without a key until the next `clear`.
            assert!(statistics.live == live || what == 1 && result.is_err() && statistics.live >= live);
            if statistics.live != live {
                vector.clear();
                held.clear();
                vector.validate();
            }
        }
        vector.collect(&clock).unwrap();
        held.into_iter().for_each(|granted| vector.free(granted).unwrap());
        assert_eq!((vector.statistics().live, vector.statistics().waiting), (0, 0));
        drop(vector);
        assert_eq!(desk.blocks(), lost);
    }
    assert!(caught.iter().all(|&times| times > 5), "{caught:?}");
}

/// If a release panics, the next collection frees the remaining grants whose tickets are done.
#[test]
fn a_collection_goes_on_after_a_panic() {
    let (desk, mut vector) = vector(Policy::default());
    let clock = Clock::new();
    let timeline = clock.add_timeline().unwrap();
    let ticket = clock.open(timeline);
    for _ in 0..3 {
        let granted = vector.allocate(&units(8)).unwrap();
        vector.retire(ticket, granted).unwrap();
    }
    clock.submit(ticket, 1).unwrap();
    clock.completed(timeline, 1);
    desk.panics.set(Some("release"));
    assert!(catch_unwind(AssertUnwindSafe(|| vector.collect(&clock))).is_err());
    vector.validate();
    assert_eq!((vector.statistics().live, vector.statistics().waiting), (2, 2));
    assert_eq!((vector.collect(&clock), desk.items(), vector.statistics().live), (Ok(2), 0, 0));
}

/// A panic while a vector is created destroys its blocks.
#[test]
fn first_blocks_go_after_a_panic() {
    let desk = Rc::new(Desk::default());
    let numbers = || Numbers { desk: Rc::clone(&desk), growth: Growth::fixed(64) };
    let policy = Policy { min_blocks: 3, ..Policy::default() };
    let (first, _kept) = (vector(policy), desk.number());
    drop(first);
    desk.panics.set(Some("capacity_for"));
    let made =
        catch_unwind(AssertUnwindSafe(|| BlockVector::new(numbers(), Tlsf::exact(64), policy).is_ok()));
    assert!(made.is_err());
    assert_eq!(desk.blocks(), 0);
}
