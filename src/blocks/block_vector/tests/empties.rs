//! Unused memory returns: from shards to the core, and from the core to the driver.

use super::super::shard::LOOK_AROUND_EVERY;
use super::*;

/// Allocates and frees repeatedly in one shard: this uses one small range and no driver call.
#[test]
fn a_shard_keeps_one_small_lease_for_the_next_call() {
    let fixture = Fixture::new(config());
    let first = fixture.get(64, 1);
    fixture.attach(1);
    fixture.gpu.reset_calls();
    let place = fixture.get(64, 1);
    fixture.free(place);
    for _ in 0..100 {
        assert_eq!(fixture.leased(), (1, MIB));
        let it = fixture.get(64, 1);
        assert_eq!((it.grant.offset, it.grant.shard), (place.grant.offset, place.grant.shard));
        fixture.free(it);
    }
    assert_eq!(fixture.gpu.call_counts(), []);
    fixture.check();
    fixture.free(first);
    fixture.finish();
}

/// An idle shard keeps no large range, and an active one keeps at most one empty range.
#[test]
fn an_idle_shard_holds_no_large_lease() {
    let fixture = Fixture::new(config());
    let first = fixture.get(64, 1);
    fixture.attach(1);
    for backwards in [false, true] {
        let mut held: Vec<_> = (0..1000).map(|_| fixture.get(16 * KIB, 1)).collect();
        assert!(fixture.leased().0 > 8);
        if backwards {
            held.reverse();
        }
        while let Some(it) = held.pop() {
            fixture.free(it);
            let shard = fixture.vector.shards.get(shard_of(1)).unwrap().lock();
            let used = shard.usage();
            drop(shard);
            let empty = (used.capacity - used.used) / (2 * MIB);
            assert!(!held.is_empty() || used.capacity <= MIB, "an idle shard holds {} bytes", used.capacity);
            assert!(empty <= 2 + widen(held.len()), "{empty} leases of which nothing is used");
        }
        assert!(fixture.leased().1 <= MIB);
        fixture.check();
    }
    fixture.free(first);
    fixture.finish();
}

/// Empties a range of a shard, so that the thread checks another shard.
fn empty_a_lease(fixture: &Fixture, thread: u32) {
    fixture.thread(thread);
    fixture.free(fixture.get(64, 1));
}

/// An idle thread's empty range returns while other threads continue.
#[test]
fn a_quiet_shard_gives_its_empty_lease_back() {
    let fixture = Fixture::new(config());
    let first = fixture.get(64, 1);
    let quiet = [3, 17, 63, 64 + 5];
    for thread in quiet {
        fixture.attach(thread);
        fixture.free(fixture.get(64, 1));
    }
    // The first shards may have been found quiet already.
    assert!(fixture.leased().0 >= 1);
    fixture.attach(9);
    // Each shard is checked twice: the first check finds it busy, the second quiet.
    for _ in 0..2 * (quiet.len() + 1) {
        empty_a_lease(&fixture, 9);
        fixture.check();
    }
    assert_eq!(fixture.leased(), (1, MIB), "only the busy one's is left");
    // Threads that continue later work as before.
    for thread in quiet {
        empty_a_lease(&fixture, thread);
    }
    fixture.free(first);
    fixture.finish();
}

/// Ranges in use stay in place, even in a quiet shard.
#[test]
fn a_quiet_shard_keeps_what_is_used() {
    let fixture = Fixture::new(config());
    let first = fixture.get(64, 1);
    fixture.attach(1);
    // Two ranges. The second is empty, and is kept because the first is in use.
    let mut held: Vec<_> = (0..65).map(|_| fixture.get(16 * KIB, 1)).collect();
    fixture.free(held.pop().unwrap());
    assert_eq!(fixture.leased(), (2, 2 * MIB));
    fixture.attach(2);
    let other = fixture.get(64, 1);
    for _ in 0..6 {
        empty_a_lease(&fixture, 2);
        let busy = fixture.get(64, 1);
        fixture.free(busy);
    }
    assert_eq!(fixture.leased().0, 3, "nothing was emptied, so nobody looked");
    fixture.free(other);
    for _ in 0..6 {
        empty_a_lease(&fixture, 2);
    }
    assert_eq!(fixture.leased(), (2, 2 * MIB), "the quiet shard's full lease, and the busy one's");
    fixture.check();
    held.iter().for_each(|it| assert_eq!(fixture.vector.memory_size(it.live()), Ok(32 * MIB)));
    fixture.free_all(held);
    fixture.free(first);
    fixture.finish();
}

/// A thread that only allocates also makes quiet shards return ranges.
#[test]
fn a_growing_shard_looks_at_quiet_ones() {
    let fixture = Fixture::new(config());
    let first = fixture.get(64, 1);
    fixture.attach(1);
    fixture.free(fixture.get(64, 1));
    assert_eq!(fixture.leased(), (1, MIB));
    fixture.attach(2);
    let quiet = fixture.vector.shards.get(shard_of(1)).unwrap();
    let mut held = Vec::new();
    while quiet.lock().usage().capacity > 0 {
        held.push(fixture.get(64 * KIB, 1));
        assert!(fixture.leased().0 <= 6, "the quiet shard keeps its lease");
    }
    fixture.free_all(held);
    fixture.free(first);
    fixture.finish();
}

/// A shard that is used between two checks is not quiet.
#[test]
fn a_busy_shard_keeps_its_empty_lease() {
    let fixture = Fixture::new(config());
    let first = fixture.get(64, 1);
    for thread in [1, 2] {
        fixture.attach(thread);
        empty_a_lease(&fixture, thread);
    }
    fixture.thread(1);
    let place = fixture.get(64, 1);
    fixture.free(place);
    for _ in 0..20 {
        empty_a_lease(&fixture, 2);
        assert_eq!(fixture.leased(), (2, 2 * MIB));
        fixture.thread(1);
        let it = fixture.get(64, 1);
        assert_eq!(it.grant.offset, place.grant.offset);
        fixture.free(it);
    }
    fixture.free(first);
    fixture.finish();
}

/// Frees for other threads return their empty ranges too.
#[test]
fn frees_from_another_thread_empty_leases_too() {
    let fixture = Fixture::new(config());
    let first = fixture.get(64, 1);
    fixture.attach(1);
    let held: Vec<_> = (0..500).map(|_| fixture.get(16 * KIB, 1)).collect();
    assert!(held.iter().all(|it| it.grant.shard == shard_of(1)));
    fixture.attach(2);
    fixture.free_all(held);
    assert!(fixture.leased().1 <= MIB);
    for _ in 0..4 {
        empty_a_lease(&fixture, 2);
    }
    assert_eq!(fixture.leased(), (1, MIB));
    fixture.free(first);
    fixture.finish();
}

/// Empty ranges in shards are reused before a block is created.
#[test]
fn empty_leases_come_before_new_blocks() {
    let fixture = Fixture::new(config());
    fixture.free(fixture.get(64, 1));
    for thread in 1..9 {
        fixture.attach(thread);
        fixture.free(fixture.get(64, 1));
    }
    assert!(fixture.leased().0 >= 1);
    fixture.thread(0);
    // Fills the block.
    let large = fixture.get(32 * MIB, 1);
    assert_eq!(fixture.vector.totals().block_count, 1);
    fixture.free(large);
    fixture.finish();
}

/// As above, in a pool that may not grow.
#[test]
fn empty_leases_of_a_full_pool() {
    let fixture = Fixture::new(VectorConfig { max_blocks: 1, ..config() });
    fixture.free(fixture.get(64, 1));
    fixture.attach(1);
    fixture.free(fixture.get(64, 1));
    fixture.attach(2);
    let never = VectorRequest { never_allocate: true, ..request(32 * MIB, 1) };
    let large = fixture.allocate(&never).unwrap();
    let error = fixture.allocate(&never).unwrap_err();
    let full = AllocationError::Full {
        size: 32 * MIB,
        alignment: 1,
        free: 0,
        largest_free: 0,
        block_count: 1,
        max_block_count: 0,
    };
    assert_eq!(error, full);
    fixture.free(large);
    fixture.finish();
}

/// A block that held only leased ranges is freed by policy: at once, or by `trim`, which returns its bytes.
#[test]
fn a_block_that_only_leases_held() {
    for (empty_blocks_kept, min_blocks) in [(0, 0), (1, 0), (0, 1), (3, 2)] {
        let fixture = Fixture::new(VectorConfig { empty_blocks_kept, min_blocks, ..config() });
        let first = fixture.get(64, 1);
        for thread in 1..4 {
            fixture.attach(thread);
            fixture.free(fixture.get(64, 1));
        }
        fixture.free(first);
        assert!(fixture.leased().0 >= 1, "leases are kept for a moment, although there is nothing in them");
        let blocks = fixture.vector.totals().block_count;
        assert_eq!(fixture.trim(), (blocks - u64::from(min_blocks)) * 32 * MIB);
        fixture.check();
        assert_eq!(fixture.leased(), (0, 0));
        assert_eq!(fixture.vector.totals().block_count, u64::from(min_blocks));
        fixture.finish();
    }
}

/// A large shard that becomes idle empties blocks; the policy decides how many stay.
#[test]
fn blocks_emptied_by_leases_go_back() {
    for empty_blocks_kept in [0, 1, 2] {
        let fixture = Fixture::new(VectorConfig { empty_blocks_kept, ..config() });
        fixture.attach(1);
        let held: Vec<_> = (0..600).map(|_| fixture.get(256 * KIB, 1)).collect();
        let blocks = fixture.vector.totals().block_count;
        assert!(blocks >= 5);
        fixture.free_all(held);
        // The core's own allocations are freed too, so at most one small range holds a block.
        let left = fixture.vector.totals().block_count;
        let leases = fixture.leased().0;
        assert!(leases <= 1);
        assert_eq!(left, u64::from(empty_blocks_kept) + leases, "{empty_blocks_kept} empty blocks kept");
        fixture.finish();
    }
}

/// Over the budget, no empty block is kept, and none that held leased ranges.
#[test]
fn over_budget_no_block_that_leases_held_is_kept() {
    let fixture = Fixture::new(VectorConfig { block_size: 512 * MIB, ..config() });
    let first = fixture.get(64, 1);
    fixture.attach(1);
    let held: Vec<_> = (0..4).map(|_| fixture.get(2 * MIB, 1)).collect();
    assert!(held.iter().all(|it| it.grant.shard != 0));
    // The budget is 80 % of 2 GiB.
    fixture.thread(0);
    let more: Vec<_> = (0..3).map(|_| fixture.get(512 * MIB, 1)).collect();
    fixture.free(first);
    fixture.free_all(held);
    assert_eq!(fixture.leased(), (0, 0), "an idle shard holds no large lease");
    assert_eq!(fixture.vector.totals().block_count, 3);
    fixture.free_all(more);
    fixture.finish();
}

/// Managed sizes, up to 256 MiB.
fn managed() -> VectorConfig {
    VectorConfig { fixed_block_size: false, block_size: 256 * MIB, ..config() }
}

/// Fills two blocks except for 64 KiB each.
fn two_blocks(fixture: &Fixture) -> (Held, Held) {
    let held = one_in_each(fixture, 2);
    (held[0], held[1])
}

/// Fills `count` blocks except for 64 KiB each.
fn one_in_each(fixture: &Fixture, count: u64) -> Vec<Held> {
    let held: Vec<_> = (0..count).map(|_| fixture.get(32 * MIB - 64 * KIB, 1)).collect();
    assert_eq!(fixture.vector.totals().block_count, count);
    held
}

/// An emptied block stays until something else is freed.
#[test]
fn an_empty_block_goes_with_the_next_free_elsewhere() {
    let fixture = Fixture::new(config());
    let small: Vec<_> = (0..4).map(|_| fixture.get(KIB, 1)).collect();
    let (first, second) = two_blocks(&fixture);
    fixture.gpu.reset_calls();
    fixture.free(second);
    assert_eq!(fixture.vector.totals().block_count, 2, "kept");
    let again = fixture.get(32 * MIB - 64 * KIB, 1);
    fixture.free(again);
    assert_eq!(fixture.gpu.call_counts(), [], "who comes back finds it");
    let mut small = small.into_iter();
    fixture.free(small.next().unwrap());
    assert_eq!(fixture.vector.totals().block_count, 1, "something else was freed");
    fixture.check();
    fixture.free_all(small);
    assert_eq!(fixture.vector.totals().block_count, 1);
    fixture.free(first);
    assert_eq!(fixture.vector.totals().block_count, 1, "the last one stays");
    fixture.finish();
}

/// Allocating and freeing at the edge of a block does not call the driver each time.
#[test]
fn the_edge_of_a_block_costs_no_call_of_the_driver() {
    let fixture = Fixture::new(config());
    let (first, second) = two_blocks(&fixture);
    fixture.free(second);
    fixture.gpu.reset_calls();
    for _ in 0..100 {
        let over = fixture.get(MIB, 1);
        let more = fixture.get(MIB, 1);
        fixture.free(more);
        fixture.free(over);
    }
    assert_eq!(fixture.gpu.call_counts(), []);
    fixture.free(first);
    fixture.finish();
}

/// One less than `kept` blocks stay after any free, and one more until the next free.
#[test]
fn more_empty_blocks_are_kept_for_who_asks() {
    for (kept, left) in [(0, 0), (1, 0), (2, 1), (3, 2), (9, 4)] {
        let fixture = Fixture::new(VectorConfig { empty_blocks_kept: kept, ..config() });
        let mut small: Vec<_> = (0..8).map(|_| fixture.get(KIB, 1)).collect();
        let held = one_in_each(&fixture, 5);
        fixture.free_all(held);
        let blocks = 1 + u64::from(kept.min(4));
        assert_eq!(fixture.vector.totals().block_count, blocks, "{kept} are kept for now");
        fixture.free_all(small.drain(1..));
        assert_eq!(fixture.vector.totals().block_count, 1 + left, "{kept} are kept");
        fixture.check();
        fixture.free_all(small);
        fixture.finish();
    }
}

/// The larger of two empty blocks is freed.
#[test]
fn the_smaller_empty_block_stays() {
    for smaller_first in [false, true] {
        let fixture = Fixture::new(managed());
        let small = fixture.get(KIB, 1);
        let large = fixture.get(100 * MIB, 1);
        assert_eq!(fixture.vector.totals().block_bytes, (32 + 256) * MIB);
        let order = if smaller_first { [small, large] } else { [large, small] };
        fixture.free_all(order);
        assert_eq!(fixture.vector.totals().block_bytes, 32 * MIB);
        fixture.finish();
    }
}

/// When many threads become idle, no more memory stays than for one thread.
#[test]
fn idle_shards_hold_one_small_block_at_most() {
    for backwards in [false, true] {
        let fixture = Fixture::new(managed());
        let mut held = vec![fixture.get(KIB, 1)];
        for thread in 1..9 {
            fixture.attach(thread);
            held.extend((0..200).map(|_| fixture.get(256 * KIB, 1)));
            held.extend((0..200).map(|_| fixture.get(KIB, 1)));
        }
        assert!(fixture.vector.totals().block_count > 3);
        if backwards {
            held.reverse();
        }
        for it in held {
            // Each shard's allocations are freed by its own thread.
            fixture.thread(u32::from(it.grant.shard).saturating_sub(1));
            fixture.free(it);
        }
        assert_eq!(fixture.vector.totals().block_count, 1, "backwards: {backwards}");
        fixture.check();
        fixture.finish();
    }
}

/// Allocates and frees in a thread's shard until it has checked whether it is alone. Returns true if it is still
/// attached.
fn stays_attached(fixture: &Fixture, thread: u32, first: u32, between: impl Fn()) -> bool {
    fixture.thread(thread);
    let kept: Vec<_> = (0..first).map(|_| fixture.get(64, 1)).collect();
    for _ in 0..LOOK_AROUND_EVERY / 2 + 16 {
        let it = fixture.get(64, 1);
        between();
        fixture.thread(thread);
        fixture.free(it);
    }
    fixture.free_all(kept);
    fixture.vector.shards.home() != 0
}

/// An attached thread that is alone returns to the core. All leased ranges return too; those in use do so after their
/// last free.
#[test]
fn a_attached_thread_that_is_alone_goes_back() {
    for before in [0, 1] {
        let fixture = Fixture::new(config());
        let first = fixture.get(64, 1);
        fixture.attach(2);
        let theirs = fixture.get(64, 1);
        fixture.free(fixture.get(64, 1));
        fixture.attach(1);
        // The other thread counts as active since it attached.
        assert!(stays_attached(&fixture, 1, before, || ()));
        assert!(!stays_attached(&fixture, 1, before, || ()));
        assert_eq!(fixture.leased(), (1, MIB), "only that in which something is");
        let mine = fixture.get(64, 1);
        assert_eq!(mine.grant.shard, 0);
        fixture.thread(2);
        let other = fixture.get(64, 1);
        assert_eq!((theirs.grant.shard, other.grant.shard), (shard_of(2), 0));
        fixture.free_all([theirs, mine, other, first]);
        fixture.finish();
    }
}

/// Two active threads stay attached, also if one of them only frees.
#[test]
fn attached_threads_that_are_not_alone_stay() {
    let fixture = Fixture::new(config());
    let first = fixture.get(64, 1);
    fixture.attach(2);
    fixture.attach(1);
    for thread in [1, 2, 1] {
        assert!(stays_attached(&fixture, thread, 0, || {
            fixture.thread(3 - thread);
            fixture.free(fixture.get(64, 1));
        }));
    }
    fixture.thread(2);
    let held = std::cell::RefCell::new((0..70_000).map(|_| fixture.get(64, 1)).collect::<Vec<_>>());
    for _ in 0..2 {
        assert!(stays_attached(&fixture, 1, 0, || {
            fixture.thread(2);
            fixture.free(held.borrow_mut().pop().unwrap());
        }));
    }
    fixture.thread(2);
    fixture.free_all(held.into_inner());
    fixture.free(first);
    fixture.finish();
}

/// A new range that reuses the number of a returned one does not affect ranges with higher numbers.
#[test]
fn a_lease_with_a_low_number_leaves_the_others_alone() {
    let fixture = Fixture::new(config());
    let first = fixture.get(64, 1);
    let shard = fixture.attach(1);
    let mut held: Vec<_> = (0..400).map(|_| fixture.get(16 * KIB, 1)).collect();
    let numbers = || -> Vec<_> {
        let shard = fixture.vector.shards.get(shard).unwrap().lock();
        shard.leases().map(|(_, number)| number.0).collect()
    };
    assert!(numbers().len() > 3 && numbers()[0] == 0);
    // Frees everything in the first range, which returns it.
    let lowest = {
        let shard = fixture.vector.shards.get(shard).unwrap().lock();
        let key = shard.leases().next().unwrap().0;
        fixture.vector.core.lock().active.as_ref().unwrap().engine.span(key).unwrap()
    };
    let is_in = |held: &Held| (lowest.offset..lowest.offset + lowest.size).contains(&held.grant.offset);
    let (gone, left): (Vec<_>, Vec<_>) = held.into_iter().partition(is_in);
    assert!(!gone.is_empty() && left.iter().all(|it| it.grant.memory == first.grant.memory));
    held = left;
    fixture.free_all(gone);
    assert!(fixture.vector.reclaim(&fixture.context).is_some());
    let others = numbers();
    assert!(others.len() > 2 && others[0] == 1, "{others:?}");
    // The next range reuses its number.
    while numbers()[0] != 0 {
        held.push(fixture.get(16 * KIB, 1));
    }
    assert_eq!(numbers()[1..], others, "none of the others is lost");
    fixture.check();
    for it in &held {
        assert_eq!(fixture.vector.memory_size(it.live()).unwrap(), 32 * MIB);
    }
    fixture.free_all(held);
    fixture.free(first);
    fixture.finish();
}
