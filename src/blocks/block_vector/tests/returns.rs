//! The rings of shards: keys that other threads free.

use std::num::NonZeroU64;

use super::super::returns::{BATCH, Left, Returns};
use super::*;

fn key(number: u64) -> Key {
    Key(NonZeroU64::new(number + 1).unwrap())
}

/// Drains the ring like the holder of the lock, for a shard with many allocations.
fn take(returns: &Returns) -> Vec<Key> {
    let mut all = Vec::new();
    let mut keys = [None; BATCH];
    loop {
        match returns.take(&mut keys) {
            0 => return all,
            taken => returns.pass(taken, 1000),
        }
        all.extend(keys.iter_mut().map_while(Option::take));
    }
}

/// Keys come out in the order in which they were left, up to the capacity.
#[test]
fn a_ring_takes_what_it_has_room_for() {
    let returns = Returns::new();
    returns.open_for(5);
    assert!(!returns.publish_live(1000));
    for round in 0..3 {
        assert_eq!(returns.leave(key(0), 4), Left::No, "of another use");
        for number in 0..512 {
            let left = if number < 255 { Left::There } else { Left::Soon };
            assert_eq!(returns.leave(key(number), 5), left, "key {number} of round {round}");
        }
        assert_eq!(returns.leave(key(512), 5), Left::No, "it is full");
        assert!(take(&returns).into_iter().eq((0..512).map(key)));
        // Shifts the slots of the next round.
        assert_eq!(returns.leave(key(512), 5), Left::There);
        assert_eq!((take(&returns), take(&returns)), (vec![key(512)], vec![]));
    }
    // The limit falls with the number of live allocations.
    assert!(!returns.publish_live(512));
    let left: Vec<_> = (0..32).map(|number| returns.leave(key(number), 5)).collect();
    assert!(left.iter().enumerate().all(|(at, &left)| left == if at < 31 { Left::There } else { Left::Now }));
    assert!(returns.publish_live(33) && !returns.publish_live(513));
    assert!(take(&returns).into_iter().eq((0..32).map(key)));
    // With few live allocations, the thread that leaves the last key must drain.
    assert!(!returns.publish_live(3));
    let left = [0, 1, 2].map(|number| returns.leave(key(number), 5));
    assert_eq!(left, [Left::There, Left::There, Left::Now]);
    assert!(returns.publish_live(3) && returns.publish_live(2) && !returns.publish_live(4));
}

/// While a shard has more allocations than its ring has slots, another thread's free does not wait for the shard's
/// lock. This thread holds the lock, so a free that waits would never return.
#[test]
fn a_free_does_not_wait_for_a_busy_shard() {
    let fixture = Fixture::new(config());
    let first = fixture.get(64, 1);
    let home = fixture.attach(1);
    let mut held: Vec<_> = (0..600).map(|_| fixture.get(64, 1)).collect();
    fixture.thread(2);
    let busy = fixture.vector.shards.get(home).unwrap().lock();
    fixture.free_all(held.drain(..512));
    drop(busy);
    // The next free drains the ring.
    fixture.free(held.pop().unwrap());
    assert!(fixture.leased().1 <= MIB);
    fixture.check();
    fixture.free_all(held);
    fixture.free(first);
    fixture.finish();
}

/// A shard with 128 allocations of 16 KiB.
fn large_shard(fixture: &Fixture) -> Vec<Held> {
    fixture.attach(1);
    let held: Vec<_> = (0..128).map(|_| fixture.get(16 * KIB, 1)).collect();
    assert!(held.iter().all(|it| it.grant.shard == shard_of(1)));
    assert!(fixture.leased().1 >= 2 * MIB);
    held
}

/// The last free drains the ring, by the shard's own thread or another. Otherwise the ranges of an unused shard would
/// stay.
#[test]
fn whoever_frees_last_empties_the_ring() {
    for (own, foreign) in [(20, 108), (108, 20), (0, 128), (127, 1), (64, 64)] {
        for own_first in [false, true] {
            let fixture = Fixture::new(config());
            let first = fixture.get(64, 1);
            let held = large_shard(&fixture);
            let (by_own, by_other) = held.split_at(own);
            assert_eq!(by_other.len(), foreign);
            let mut turns = [(1, by_own), (2, by_other)];
            if !own_first {
                turns.reverse();
            }
            for (thread, part) in turns {
                fixture.thread(thread);
                fixture.free_all(part.iter().copied());
            }
            // No call has locked the shard since.
            assert!(
                fixture.leased().1 <= MIB,
                "{own} and {foreign}: {} bytes for nothing",
                fixture.leased().1
            );
            fixture.check();
            fixture.free(first);
            fixture.finish();
        }
    }
}

/// A shard's own thread drains its ring within 16 allocations, long before it needs another range.
#[test]
fn what_is_left_is_used_again_soon() {
    let fixture = Fixture::new(config());
    let first = fixture.get(64, 1);
    let mut held = large_shard(&fixture);
    // A third range, large enough for what follows.
    held.push(fixture.get(16 * KIB, 1));
    fixture.thread(2);
    let freed: Vec<_> = held.drain(40..60).collect();
    let places: Vec<_> = freed.iter().map(|it| it.grant.offset).collect();
    fixture.free_all(freed);
    fixture.thread(1);
    let more: Vec<_> = (0..17).map(|_| fixture.get(16 * KIB, 1)).collect();
    assert!(more.iter().any(|it| places.contains(&it.grant.offset)), "nothing of {places:?} is used again");
    fixture.free_all(held);
    fixture.free_all(more);
    fixture.free(first);
    fixture.finish();
}

/// Statistics and leak reports do not count keys in the ring.
#[test]
fn figures_know_what_was_left() {
    let fixture = Fixture::new(VectorConfig { min_blocks: 1, ..config() });
    let mut held = large_shard(&fixture);
    fixture.thread(2);
    for count in (100..held.len()).rev() {
        fixture.free(held.pop().unwrap());
        assert_eq!(fixture.vector.totals().allocation_count, widen(count));
    }
    let freed = held.pop().unwrap();
    fixture.vector.set_name(freed.live(), Some("given back")).unwrap();
    fixture.free(freed);
    let mut leaks = 0;
    fixture.vector.deactivate(&fixture.context, &mut |visited| {
        leaks += 1;
        assert!(matches!(visited, Visited::Chunk { annotation: None, .. }), "{visited:?}");
    });
    assert_eq!(leaks, held.len());
    assert!(fixture.gpu.live().is_empty());
}

/// A shard serves its own thread on the fast path. The exception is one allocation in sixteen, or in 64 with many live
/// ones, if its ring has a key.
#[test]
fn most_calls_use_the_fast_path() {
    for (live, every) in [(200, 16), (800, 64)] {
        expect_slow_calls(live, every);
    }
}

/// Asserts that one fast call in `every` fails with `live` allocations and a key in the ring.
fn expect_slow_calls(live: usize, every: usize) {
    let fixture = Fixture::new(config());
    let first = fixture.get(64, 1);
    let home = fixture.attach(1);
    let mut held: Vec<_> = (0..2 * live).map(|_| fixture.get(64, 1)).collect();
    // The engine keeps the host memory of freed chunks. It gets more on the slow path.
    fixture.free_all(held.drain(live..));
    let wanted = request(64, 1);
    let slow = |held: &mut Vec<Held>, through_ring: bool| {
        let slow = (0..128).filter(|_| {
            if through_ring {
                fixture.thread(2);
                fixture.free(held.pop().unwrap());
                fixture.thread(1);
            }
            let granted = fixture.vector.try_allocate(wanted);
            let is_slow = granted.is_none();
            let it = granted.map_or_else(|| fixture.get(64, 1), |grant| Held { grant, request: wanted });
            held.insert(0, it);
            is_slow
        });
        slow.count()
    };
    assert_eq!(slow(&mut held, false), 0);
    assert_eq!(slow(&mut held, true), 128 / every);
    assert!(held.iter().all(|it| it.grant.shard == home));
    fixture.free_all(held);
    fixture.free(first);
    fixture.finish();
}

/// Small sizes use slabs in a shard if the core has slabs, and the last free still empties the ranges.
#[test]
fn a_shard_has_slabs_where_its_core_has() {
    for (block_size, has_slabs) in [(128 * MIB, true), (64 * MIB, false)] {
        let fixture = Fixture::new(VectorConfig { block_size, ..config() });
        let first = fixture.get(64, 1);
        fixture.attach(1);
        let held: Vec<_> = (0..2000).map(|_| fixture.get(2 * KIB, 1)).collect();
        assert!(held.iter().all(|it| it.grant.shard == shard_of(1)));
        // Bit 31 marks the key of a slot.
        let slots = held.iter().filter(|it| it.grant.key.0.get() >> 31 & 1 == 1).count();
        assert_eq!(slots > 100, has_slabs, "{slots} slots in blocks of {block_size}");
        fixture.check();
        let (mut own, mut others) = (held, Vec::new());
        others.extend(own.split_off(1000));
        fixture.thread(2);
        fixture.free_all(others);
        fixture.thread(1);
        fixture.free_all(own);
        fixture.check();
        assert!(fixture.leased().1 <= MIB, "{} bytes for nothing", fixture.leased().1);
        fixture.free(first);
        fixture.finish();
    }
}

/// A shard that cannot add another range returns it, and the core serves the request.
#[test]
fn a_lease_that_is_refused_goes_back() {
    let fixture = Fixture::new(config());
    let mut held = vec![fixture.get(64, 1)];
    let home = fixture.attach(1);
    held.push(fixture.get(64, 1));
    fixture.vector.shards.get(home).unwrap().lock().refuse_leases();
    let leased = fixture.leased();
    let in_shard = (0..20).filter(|_| {
        // The core serves when the shard can hold no more ranges.
        let it = fixture.get(200 * KIB, 1);
        held.push(it);
        fixture.check();
        assert_eq!(fixture.leased(), leased, "no lease is left that nobody has");
        it.grant.shard == home
    });
    assert!(in_shard.count() < 10, "another lease was taken in");
    fixture.free_all(held);
    fixture.finish();
}

/// While one thread allocates a block from the driver, it holds the growth lock.
#[test]
fn growth_is_locked_while_the_driver_is_asked() {
    const CALL: &str = "vkAllocateMemory";
    let fixture = Fixture::new(config());
    fixture.gpu.faults().hold(CALL);
    std::thread::scope(|scope| {
        let grower = scope
            .spawn(|| fixture.vector.allocate(&fixture.context, &request(64, 1), BlockSearch::All).unwrap());
        while fixture.gpu.calls(CALL) == 0 {
            std::thread::yield_now();
        }
        let is_free = fixture.vector.growth.try_lock().is_some();
        fixture.gpu.faults().release(CALL);
        let grant = grower.join().unwrap();
        assert!(!is_free, "another thread could have asked for a block, too");
        assert!(fixture.vector.growth.try_lock().is_some());
        fixture.free(Held { grant, request: request(64, 1) });
    });
    fixture.finish();
}
