//! A shard whose allocations are freed at once by its own thread and by others. After all frees, no key waits in the
//! ring.

use std::num::NonZeroU64;

use ash::vk;

use super::super::shard::{LeasedRange, Leasing, Shard};
use super::*;
use sublet_engines::RegionId;

const NUMBER: u8 = 1;

/// A shard with that many allocations, in a range that it does not keep when it is idle.
fn shard(allocations: usize) -> (Arc<Shard>, Vec<AllocationKey>) {
    let shard = Shard::new();
    let lease = LeasedRange {
        key: Key(NonZeroU64::MIN),
        generation: 1,
        block: RegionId(0),
        memory: vk::DeviceMemory::null(),
        base: 0,
        size: 2 * MIB,
        mapped: MappedPointer::UNMAPPED,
    };
    let leasing = Leasing::of(&config()).unwrap();
    assert!(shard.add_lease(&leasing, lease).is_ok());
    let lives = (0..allocations).map(|_| allocate(&shard)).collect();
    (Arc::new(shard), lives)
}

fn allocate(shard: &Shard) -> AllocationKey {
    let request = request(KIB);
    // The fast path declines while the shard has more empty ranges than it needs.
    let fast = shard.try_allocate(&request, NUMBER);
    live(fast.or_else(|| shard.lock().allocate(&request, NUMBER, true)).unwrap())
}

/// Frees allocations. Returns true if the leased range is no longer needed.
fn free(shard: &Shard, lives: impl IntoIterator<Item = AllocationKey>, is_own: bool) -> bool {
    let mut surplus = Vec::new();
    for live in lives {
        let freed = if is_own { shard.free_in_own_shard(live) } else { shard.free_in_other_shard(live) };
        if freed.unwrap() {
            surplus.extend(shard.take_surplus(true));
        }
    }
    assert!(surplus.len() <= 1);
    !surplus.is_empty()
}

fn spawn_free(shard: &Arc<Shard>, lives: Vec<AllocationKey>) -> JoinHandle<bool> {
    spawn(shard, move |shard| free(shard, lives, false))
}

/// Checks that the ring is empty and that exactly one thread got the leased range.
fn check_empty(shard: &Shard, given: &[bool]) {
    let state = shard.lock_as_it_is();
    assert_eq!(state.usage().used_chunks, 0, "a key that nobody takes");
    state.validate();
    assert_eq!(given.iter().filter(|&&given| given).count(), 1, "who came last had the lease: {given:?}");
    assert_eq!(state.leases().count(), 0);
}

/// The shard's own thread frees `own` allocations. For each number in `others`, another thread frees that many. Counts
/// which thread got the range.
fn free_at_once(own: usize, others: &'static [usize]) -> Outcomes {
    let outcomes = Outcomes::default();
    let outcome = outcomes.clone();
    check_deep(move || {
        let (shard, mut lives) = shard(own + others.iter().sum::<usize>());
        let others: Vec<_> = others
            .iter()
            .map(|&count| {
                let theirs = lives.split_off(lives.len() - count);
                spawn_free(&shard, theirs)
            })
            .collect();
        let mut given = vec![free(&shard, lives, true)];
        given.extend(others.into_iter().map(|other| other.join().unwrap()));
        check_empty(&shard, &given);
        outcome.happened(given.iter().position(|&given| given).unwrap() as u32);
    });
    outcomes
}

/// While more allocations are live, a key waits until the own thread checks the ring.
#[test]
fn loom_a_key_waits_for_the_own_thread() {
    check_deep(|| {
        let (shard, mut lives) = shard(3);
        let used = |shard: &Shard| shard.lock_as_it_is().usage().used_chunks;
        assert!(!free(&shard, lives.pop(), false));
        assert_eq!(used(&shard), 3);
        let looked = (0..16).find(|_| {
            let before = used(&shard);
            allocate(&shard);
            used(&shard) == before
        });
        assert!(looked.is_some());
    });
}

/// One thread leaves the second-to-last key while another frees the last allocation. One of them sees the other's
/// write.
#[test]
fn loom_the_last_two_are_freed_at_once() {
    free_at_once(1, &[1]).expect(&[0, 1]);
}

/// As above, but the published limit starts high.
#[test]
fn loom_many_become_few() {
    free_at_once(3, &[2]).expect(&[0, 1]);
}

/// The other thread frees more keys than fit into the ring at once.
#[test]
fn loom_more_are_left_than_may_wait() {
    free_at_once(1, &[5]).expect(&[0, 1]);
}

/// One thread reserves its slot first, but may be the last to write its key.
#[test]
fn loom_two_others_free_the_last_two() {
    free_at_once(0, &[1, 1]).expect(&[1, 2]);
}

#[test]
fn loom_two_others_and_the_own_thread_free_the_last_three() {
    free_at_once(1, &[1, 1]).expect(&[0, 1, 2]);
}

#[test]
fn loom_two_others_free_the_last_four() {
    free_at_once(0, &[2, 2]).expect(&[1, 2]);
}

/// The own thread continues to allocate, and reuses what the other thread freed.
#[test]
fn loom_the_own_thread_goes_on() {
    let outcomes = Outcomes::default();
    let outcome = outcomes.clone();
    check_deep(move || {
        let (shard, mut lives) = shard(3);
        // Keeps the range in use.
        let mine = lives.remove(0);
        let other = spawn_free(&shard, lives);
        let next = allocate(&shard);
        let given = [free(&shard, [mine, next], true), other.join().unwrap()];
        check_empty(&shard, &given);
        outcome.happened(u32::from(given[1]));
    });
    outcomes.expect(&[0, 1]);
}

/// A third thread may drain the last key but cannot return the range: the thread that left the key does.
#[test]
fn loom_a_visitor_takes_the_last() {
    for own in 0..2 {
        let outcomes = Outcomes::default();
        let outcome = outcomes.clone();
        check_deep(move || {
            let (shard, mut lives) = shard(2);
            let mine: Vec<AllocationKey> = lives.drain(..own).collect();
            let other = spawn_free(&shard, lives);
            let given = free(&shard, mine, true);
            outcome.happened(u32::try_from(shard.lock().usage().used_chunks).unwrap());
            check_empty(&shard, &[given, other.join().unwrap()]);
        });
        outcomes.expect(if own == 0 { &[0, 1, 2] } else { &[0, 1] });
    }
}
