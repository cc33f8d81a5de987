//! The assignment of threads to shards.

use super::super::shards::{SHARDS, Shards};
use super::*;

fn shards() -> Arc<Shards> {
    Arc::new(Shards::none())
}

/// Two threads that attach at once get separate shards, and both see them.
#[test]
fn loom_two_attach_at_once() {
    check(|| {
        let shards = shards();
        let attach = |shards: &Shards, token| {
            thread_token::pretend(token);
            assert_eq!(shards.home(), 0);
            let number = shards.attach();
            assert_eq!(shards.home(), number);
            // Loom forbids using a lock before its creation.
            assert!(shards.get(number).unwrap().try_lock().is_some(), "nobody else is there");
            number
        };
        let other = spawn(&shards, move |shards| attach(shards, 2));
        assert_eq!(attach(&shards, 0), 1);
        assert_eq!(other.join().unwrap(), 3);
        let numbers: Vec<u8> = shards.iter().map(|(number, _)| number).collect();
        assert_eq!(numbers, [1, 3]);
        assert!(shards.get(0).is_none() && shards.get(2).is_none() && shards.get(4).is_none());
        shards.detach(u64::MAX);
        assert_eq!(shards.home(), 0);
    });
}

/// Threads beyond the number of shards share one. It is created once: both use the same lock.
#[test]
fn loom_two_that_share_attach_at_once() {
    let outcomes = Outcomes::default();
    let outcome = outcomes.clone();
    check(move || {
        let shards = shards();
        let enter = |shards: &Shards| {
            let mut state = shards.get(shards.attach())?.try_lock()?;
            state.is_quiet();
            Some(())
        };
        let other = spawn(&shards, move |shards| {
            thread_token::pretend(SHARDS + 1);
            enter(shards)
        });
        thread_token::pretend(1);
        let entered = enter(&shards).is_some();
        let other_entered = other.join().unwrap().is_some();
        assert!(entered || other_entered);
        assert_eq!(shards.iter().count(), 1);
        outcome.happened(u32::from(entered) + u32::from(other_entered));
    });
    outcomes.expect(&[1, 2]);
}

/// Other threads see a complete shard or none. A sharing thread may see the attached bit before the shard.
#[test]
fn loom_others_see_who_has_attached() {
    const NO_HOME: u32 = 0;
    const HOME_WITHOUT_SHARD: u32 = 1;
    const HOME: u32 = 2;
    let outcomes = Outcomes::default();
    let outcome = outcomes.clone();
    check(move || {
        let shards = shards();
        // The table exists.
        assert_eq!(shards.attach(), 1);
        let other = spawn(&shards, |shards| {
            thread_token::pretend(SHARDS + 1);
            shards.attach()
        });
        thread_token::pretend(1);
        let home = shards.home();
        let shard = shards.get(home);
        // Loom forbids using a lock before its creation.
        let is_open = shard.map(|shard| shard.try_lock().is_some());
        outcome.happened(match (home, is_open) {
            (0, None) => NO_HOME,
            (2, None) => HOME_WITHOUT_SHARD,
            (2, Some(true)) => HOME,
            other => panic!("{other:?}"),
        });
        assert_eq!(other.join().unwrap(), 2);
        assert_eq!(shards.home(), 2);
        assert!(shards.get(2).is_some());
    });
    outcomes.expect(&[NO_HOME, HOME_WITHOUT_SHARD, HOME]);
}

/// The shards are checked in turn; missing ones are skipped.
#[test]
fn loom_each_shard_is_looked_at_in_turn() {
    let outcomes = Outcomes::default();
    let outcome = outcomes.clone();
    check(move || {
        let shards = shards();
        assert!(shards.next_to_look_at().is_none(), "there is none");
        thread_token::pretend(2);
        shards.attach();
        let at = |number| std::ptr::from_ref(shards.get(number).unwrap());
        let next = |shards: &Shards| shards.next_to_look_at().map(std::ptr::from_ref);
        assert_eq!([next(&shards), next(&shards)], [Some(at(3)); 2]);
        let other = spawn(&shards, move |shards| {
            thread_token::pretend(0);
            shards.attach();
            // The other thread may just have checked that one.
            next(shards).is_some()
        });
        let looked_at = shards.next_to_look_at();
        outcome.happened(match looked_at.map(std::ptr::from_ref) {
            None => 0,
            Some(shard) if shard == at(3) => 3,
            Some(shard) => {
                assert_eq!(shard, at(1));
                1
            }
        });
        assert!(other.join().unwrap());
        let both = [next(&shards), next(&shards)];
        assert!(both == [Some(at(1)), Some(at(3))] || both == [Some(at(3)), Some(at(1))]);
        assert_eq!([next(&shards), next(&shards)], both);
        shards.detach(u64::MAX);
        assert!(shards.next_to_look_at().is_none(), "nobody has attached");
    });
    outcomes.expect(&[0, 1, 3]);
}
