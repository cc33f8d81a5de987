//! Unused memory returns: from shards to the core, and from the core to the driver.

use super::super::shard::LOOK_AROUND_EVERY;
use super::*;

/// Allocates and frees repeatedly in one shard: this uses one small range and no driver call.
#[test]
fn a_shard_keeps_one_small_loan_for_the_next_call() {
    let rig = Rig::new(config());
    let first = rig.get(64, 1);
    rig.settle(1);
    rig.gpu.reset_calls();
    let place = rig.get(64, 1);
    rig.free(place);
    for _ in 0..100 {
        assert_eq!(rig.lent(), (1, MIB));
        let it = rig.get(64, 1);
        assert_eq!((it.grant.offset, it.grant.shard), (place.grant.offset, place.grant.shard));
        rig.free(it);
    }
    assert_eq!(rig.gpu.call_counts(), []);
    rig.check();
    rig.free(first);
    rig.finish();
}

/// An idle shard keeps no large range, and an active one keeps at most one empty range.
#[test]
fn an_idle_shard_holds_no_large_loan() {
    let rig = Rig::new(config());
    let first = rig.get(64, 1);
    rig.settle(1);
    for backwards in [false, true] {
        let mut held: Vec<_> = (0..1000).map(|_| rig.get(16 * KIB, 1)).collect();
        assert!(rig.lent().0 > 8);
        if backwards {
            held.reverse();
        }
        while let Some(it) = held.pop() {
            rig.free(it);
            let shard = rig.vector.shards.get(shard_of(1)).unwrap().lock();
            let used = shard.usage();
            drop(shard);
            let empty = (used.capacity - used.used) / (2 * MIB);
            assert!(!held.is_empty() || used.capacity <= MIB, "an idle shard holds {} bytes", used.capacity);
            assert!(empty <= 2 + widen(held.len()), "{empty} loans of which nothing is used");
        }
        assert!(rig.lent().1 <= MIB);
        rig.check();
    }
    rig.free(first);
    rig.finish();
}

/// Empties a range of a shard, so that the thread checks another shard.
fn empty_a_loan(rig: &Rig, thread: u32) {
    rig.thread(thread);
    rig.free(rig.get(64, 1));
}

/// An idle thread's empty range returns while other threads continue.
#[test]
fn a_quiet_shard_gives_its_empty_loan_back() {
    let rig = Rig::new(config());
    let first = rig.get(64, 1);
    let quiet = [3, 17, 63, 64 + 5];
    for thread in quiet {
        rig.settle(thread);
        rig.free(rig.get(64, 1));
    }
    // The first shards may have been found quiet already.
    assert!(rig.lent().0 >= 1);
    rig.settle(9);
    // Each shard is checked twice: the first check finds it busy, the second quiet.
    for _ in 0..2 * (quiet.len() + 1) {
        empty_a_loan(&rig, 9);
        rig.check();
    }
    assert_eq!(rig.lent(), (1, MIB), "only the busy one's is left");
    // Threads that continue later work as before.
    for thread in quiet {
        empty_a_loan(&rig, thread);
    }
    rig.free(first);
    rig.finish();
}

/// Ranges in use stay in place, even in a quiet shard.
#[test]
fn a_quiet_shard_keeps_what_is_used() {
    let rig = Rig::new(config());
    let first = rig.get(64, 1);
    rig.settle(1);
    // Two ranges. The second is empty, and is kept because the first is in use.
    let mut held: Vec<_> = (0..65).map(|_| rig.get(16 * KIB, 1)).collect();
    rig.free(held.pop().unwrap());
    assert_eq!(rig.lent(), (2, 2 * MIB));
    rig.settle(2);
    let other = rig.get(64, 1);
    for _ in 0..6 {
        empty_a_loan(&rig, 2);
        let busy = rig.get(64, 1);
        rig.free(busy);
    }
    assert_eq!(rig.lent().0, 3, "nothing was emptied, so nobody looked");
    rig.free(other);
    for _ in 0..6 {
        empty_a_loan(&rig, 2);
    }
    assert_eq!(rig.lent(), (2, 2 * MIB), "the quiet shard's full loan, and the busy one's");
    rig.check();
    held.iter().for_each(|it| assert_eq!(rig.vector.memory_size(it.live()), Ok(32 * MIB)));
    rig.free_all(held);
    rig.free(first);
    rig.finish();
}

/// A thread that only allocates also makes quiet shards return ranges.
#[test]
fn a_growing_shard_looks_at_quiet_ones() {
    let rig = Rig::new(config());
    let first = rig.get(64, 1);
    rig.settle(1);
    rig.free(rig.get(64, 1));
    assert_eq!(rig.lent(), (1, MIB));
    rig.settle(2);
    let quiet = rig.vector.shards.get(shard_of(1)).unwrap();
    let mut held = Vec::new();
    while quiet.lock().usage().capacity > 0 {
        held.push(rig.get(64 * KIB, 1));
        assert!(rig.lent().0 <= 6, "the quiet shard keeps its loan");
    }
    rig.free_all(held);
    rig.free(first);
    rig.finish();
}

/// A shard that is used between two checks is not quiet.
#[test]
fn a_busy_shard_keeps_its_empty_loan() {
    let rig = Rig::new(config());
    let first = rig.get(64, 1);
    for thread in [1, 2] {
        rig.settle(thread);
        empty_a_loan(&rig, thread);
    }
    rig.thread(1);
    let place = rig.get(64, 1);
    rig.free(place);
    for _ in 0..20 {
        empty_a_loan(&rig, 2);
        assert_eq!(rig.lent(), (2, 2 * MIB));
        rig.thread(1);
        let it = rig.get(64, 1);
        assert_eq!(it.grant.offset, place.grant.offset);
        rig.free(it);
    }
    rig.free(first);
    rig.finish();
}

/// Frees for other threads return their empty ranges too.
#[test]
fn frees_from_another_thread_empty_loans_too() {
    let rig = Rig::new(config());
    let first = rig.get(64, 1);
    rig.settle(1);
    let held: Vec<_> = (0..500).map(|_| rig.get(16 * KIB, 1)).collect();
    assert!(held.iter().all(|it| it.grant.shard == shard_of(1)));
    rig.settle(2);
    rig.free_all(held);
    assert!(rig.lent().1 <= MIB);
    for _ in 0..4 {
        empty_a_loan(&rig, 2);
    }
    assert_eq!(rig.lent(), (1, MIB));
    rig.free(first);
    rig.finish();
}

/// Empty ranges in shards are reused before a block is created.
#[test]
fn empty_loans_come_before_new_blocks() {
    let rig = Rig::new(config());
    rig.free(rig.get(64, 1));
    for thread in 1..9 {
        rig.settle(thread);
        rig.free(rig.get(64, 1));
    }
    assert!(rig.lent().0 >= 1);
    rig.thread(0);
    // Fills the block.
    let large = rig.get(32 * MIB, 1);
    assert_eq!(rig.vector.totals().block_count, 1);
    rig.free(large);
    rig.finish();
}

/// As above, in a pool that may not grow.
#[test]
fn empty_loans_of_a_full_pool() {
    let rig = Rig::new(VectorConfig { max_blocks: 1, ..config() });
    rig.free(rig.get(64, 1));
    rig.settle(1);
    rig.free(rig.get(64, 1));
    rig.settle(2);
    let never = VectorRequest { never_allocate: true, ..request(32 * MIB, 1) };
    let large = rig.allocate(&never).unwrap();
    let error = rig.allocate(&never).unwrap_err();
    let full = AllocationError::Full {
        size: 32 * MIB,
        alignment: 1,
        free: 0,
        largest_free: 0,
        block_count: 1,
        max_block_count: 0,
    };
    assert_eq!(error, full);
    rig.free(large);
    rig.finish();
}

/// A block that held only leased ranges is freed by policy: at once, or by `trim`, which returns its bytes.
#[test]
fn a_block_that_only_loans_held() {
    for (empty_blocks_kept, min_blocks) in [(0, 0), (1, 0), (0, 1), (3, 2)] {
        let rig = Rig::new(VectorConfig { empty_blocks_kept, min_blocks, ..config() });
        let first = rig.get(64, 1);
        for thread in 1..4 {
            rig.settle(thread);
            rig.free(rig.get(64, 1));
        }
        rig.free(first);
        assert!(rig.lent().0 >= 1, "loans are kept for a moment, although there is nothing in them");
        let blocks = rig.vector.totals().block_count;
        assert_eq!(rig.trim(), (blocks - u64::from(min_blocks)) * 32 * MIB);
        rig.check();
        assert_eq!(rig.lent(), (0, 0));
        assert_eq!(rig.vector.totals().block_count, u64::from(min_blocks));
        rig.finish();
    }
}

/// A large shard that becomes idle empties blocks; the policy decides how many stay.
#[test]
fn blocks_emptied_by_loans_go_back() {
    for empty_blocks_kept in [0, 1, 2] {
        let rig = Rig::new(VectorConfig { empty_blocks_kept, ..config() });
        rig.settle(1);
        let held: Vec<_> = (0..600).map(|_| rig.get(256 * KIB, 1)).collect();
        let blocks = rig.vector.totals().block_count;
        assert!(blocks >= 5);
        rig.free_all(held);
        // The core's own allocations are freed too, so at most one small range holds a block.
        let left = rig.vector.totals().block_count;
        let loans = rig.lent().0;
        assert!(loans <= 1);
        assert_eq!(left, u64::from(empty_blocks_kept) + loans, "{empty_blocks_kept} empty blocks kept");
        rig.finish();
    }
}

/// Over the budget, no empty block is kept, and none that held leased ranges.
#[test]
fn over_budget_no_block_that_loans_held_is_kept() {
    let rig = Rig::new(VectorConfig { block_size: 512 * MIB, ..config() });
    let first = rig.get(64, 1);
    rig.settle(1);
    let held: Vec<_> = (0..4).map(|_| rig.get(2 * MIB, 1)).collect();
    assert!(held.iter().all(|it| it.grant.shard != 0));
    // The budget is 80 % of 2 GiB.
    rig.thread(0);
    let more: Vec<_> = (0..3).map(|_| rig.get(512 * MIB, 1)).collect();
    rig.free(first);
    rig.free_all(held);
    assert_eq!(rig.lent(), (0, 0), "an idle shard holds no large loan");
    assert_eq!(rig.vector.totals().block_count, 3);
    rig.free_all(more);
    rig.finish();
}

/// Managed sizes, up to 256 MiB.
fn managed() -> VectorConfig {
    VectorConfig { fixed_block_size: false, block_size: 256 * MIB, ..config() }
}

/// Fills two blocks except for 64 KiB each.
fn two_blocks(rig: &Rig) -> (Held, Held) {
    let held = one_in_each(rig, 2);
    (held[0], held[1])
}

/// Fills `count` blocks except for 64 KiB each.
fn one_in_each(rig: &Rig, count: u64) -> Vec<Held> {
    let held: Vec<_> = (0..count).map(|_| rig.get(32 * MIB - 64 * KIB, 1)).collect();
    assert_eq!(rig.vector.totals().block_count, count);
    held
}

/// An emptied block stays until something else is freed.
#[test]
fn an_empty_block_goes_with_the_next_free_elsewhere() {
    let rig = Rig::new(config());
    let small: Vec<_> = (0..4).map(|_| rig.get(KIB, 1)).collect();
    let (first, second) = two_blocks(&rig);
    rig.gpu.reset_calls();
    rig.free(second);
    assert_eq!(rig.vector.totals().block_count, 2, "kept");
    let again = rig.get(32 * MIB - 64 * KIB, 1);
    rig.free(again);
    assert_eq!(rig.gpu.call_counts(), [], "who comes back finds it");
    let mut small = small.into_iter();
    rig.free(small.next().unwrap());
    assert_eq!(rig.vector.totals().block_count, 1, "something else was freed");
    rig.check();
    rig.free_all(small);
    assert_eq!(rig.vector.totals().block_count, 1);
    rig.free(first);
    assert_eq!(rig.vector.totals().block_count, 1, "the last one stays");
    rig.finish();
}

/// Allocating and freeing at the edge of a block does not call the driver each time.
#[test]
fn the_edge_of_a_block_costs_no_call_of_the_driver() {
    let rig = Rig::new(config());
    let (first, second) = two_blocks(&rig);
    rig.free(second);
    rig.gpu.reset_calls();
    for _ in 0..100 {
        let over = rig.get(MIB, 1);
        let more = rig.get(MIB, 1);
        rig.free(more);
        rig.free(over);
    }
    assert_eq!(rig.gpu.call_counts(), []);
    rig.free(first);
    rig.finish();
}

/// One less than `kept` blocks stay after any free, and one more until the next free.
#[test]
fn more_empty_blocks_are_kept_for_who_asks() {
    for (kept, left) in [(0, 0), (1, 0), (2, 1), (3, 2), (9, 4)] {
        let rig = Rig::new(VectorConfig { empty_blocks_kept: kept, ..config() });
        let mut small: Vec<_> = (0..8).map(|_| rig.get(KIB, 1)).collect();
        let held = one_in_each(&rig, 5);
        rig.free_all(held);
        let blocks = 1 + u64::from(kept.min(4));
        assert_eq!(rig.vector.totals().block_count, blocks, "{kept} are kept for now");
        rig.free_all(small.drain(1..));
        assert_eq!(rig.vector.totals().block_count, 1 + left, "{kept} are kept");
        rig.check();
        rig.free_all(small);
        rig.finish();
    }
}

/// The larger of two empty blocks is freed.
#[test]
fn the_smaller_empty_block_stays() {
    for smaller_first in [false, true] {
        let rig = Rig::new(managed());
        let small = rig.get(KIB, 1);
        let large = rig.get(100 * MIB, 1);
        assert_eq!(rig.vector.totals().block_bytes, (32 + 256) * MIB);
        let order = if smaller_first { [small, large] } else { [large, small] };
        rig.free_all(order);
        assert_eq!(rig.vector.totals().block_bytes, 32 * MIB);
        rig.finish();
    }
}

/// When many threads become idle, no more memory stays than for one thread.
#[test]
fn idle_shards_hold_one_small_block_at_most() {
    for backwards in [false, true] {
        let rig = Rig::new(managed());
        let mut held = vec![rig.get(KIB, 1)];
        for thread in 1..9 {
            rig.settle(thread);
            held.extend((0..200).map(|_| rig.get(256 * KIB, 1)));
            held.extend((0..200).map(|_| rig.get(KIB, 1)));
        }
        assert!(rig.vector.totals().block_count > 3);
        if backwards {
            held.reverse();
        }
        for it in held {
            // Each shard's allocations are freed by its own thread.
            rig.thread(u32::from(it.grant.shard).saturating_sub(1));
            rig.free(it);
        }
        assert_eq!(rig.vector.totals().block_count, 1, "backwards: {backwards}");
        rig.check();
        rig.finish();
    }
}

/// Allocates and frees in a thread's shard until it has checked whether it is alone. Returns true if it is still
/// settled.
fn stays_settled(rig: &Rig, thread: u32, first: u32, between: impl Fn()) -> bool {
    rig.thread(thread);
    let kept: Vec<_> = (0..first).map(|_| rig.get(64, 1)).collect();
    for _ in 0..LOOK_AROUND_EVERY / 2 + 16 {
        let it = rig.get(64, 1);
        between();
        rig.thread(thread);
        rig.free(it);
    }
    rig.free_all(kept);
    rig.vector.shards.home() != 0
}

/// A settled thread that is alone returns to the core. All leased ranges return too, those in use after their last
/// free.
#[test]
fn a_settled_thread_that_is_alone_goes_back() {
    for before in [0, 1] {
        let rig = Rig::new(config());
        let first = rig.get(64, 1);
        rig.settle(2);
        let theirs = rig.get(64, 1);
        rig.free(rig.get(64, 1));
        rig.settle(1);
        // The other thread counts as active since it settled.
        assert!(stays_settled(&rig, 1, before, || ()));
        assert!(!stays_settled(&rig, 1, before, || ()));
        assert_eq!(rig.lent(), (1, MIB), "only that in which something is");
        let mine = rig.get(64, 1);
        assert_eq!(mine.grant.shard, 0);
        rig.thread(2);
        let other = rig.get(64, 1);
        assert_eq!((theirs.grant.shard, other.grant.shard), (shard_of(2), 0));
        rig.free_all([theirs, mine, other, first]);
        rig.finish();
    }
}

/// Two active threads stay settled, also if one of them only frees.
#[test]
fn settled_threads_that_are_not_alone_stay() {
    let rig = Rig::new(config());
    let first = rig.get(64, 1);
    rig.settle(2);
    rig.settle(1);
    for thread in [1, 2, 1] {
        assert!(stays_settled(&rig, thread, 0, || {
            rig.thread(3 - thread);
            rig.free(rig.get(64, 1));
        }));
    }
    rig.thread(2);
    let held = std::cell::RefCell::new((0..70_000).map(|_| rig.get(64, 1)).collect::<Vec<_>>());
    for _ in 0..2 {
        assert!(stays_settled(&rig, 1, 0, || {
            rig.thread(2);
            rig.free(held.borrow_mut().pop().unwrap());
        }));
    }
    rig.thread(2);
    rig.free_all(held.into_inner());
    rig.free(first);
    rig.finish();
}

/// A new range that reuses the number of a returned one does not affect ranges with higher numbers.
#[test]
fn a_loan_with_a_low_number_leaves_the_others_alone() {
    let rig = Rig::new(config());
    let first = rig.get(64, 1);
    let shard = rig.settle(1);
    let mut held: Vec<_> = (0..400).map(|_| rig.get(16 * KIB, 1)).collect();
    let numbers = || -> Vec<_> {
        let shard = rig.vector.shards.get(shard).unwrap().lock();
        shard.loans().map(|(_, number)| number.0).collect()
    };
    assert!(numbers().len() > 3 && numbers()[0] == 0);
    // Frees everything in the first range, which returns it.
    let lowest = {
        let shard = rig.vector.shards.get(shard).unwrap().lock();
        let key = shard.loans().next().unwrap().0;
        rig.vector.core.lock().active.as_ref().unwrap().engine.span(key).unwrap()
    };
    let is_in = |held: &Held| (lowest.offset..lowest.offset + lowest.size).contains(&held.grant.offset);
    let (gone, left): (Vec<_>, Vec<_>) = held.into_iter().partition(is_in);
    assert!(!gone.is_empty() && left.iter().all(|it| it.grant.memory == first.grant.memory));
    held = left;
    rig.free_all(gone);
    assert!(rig.vector.reclaim(&rig.context).is_some());
    let others = numbers();
    assert!(others.len() > 2 && others[0] == 1, "{others:?}");
    // The next range reuses its number.
    while numbers()[0] != 0 {
        held.push(rig.get(16 * KIB, 1));
    }
    assert_eq!(numbers()[1..], others, "none of the others is lost");
    rig.check();
    for it in &held {
        assert_eq!(rig.vector.memory_size(it.live()).unwrap(), 32 * MIB);
    }
    rig.free_all(held);
    rig.free(first);
    rig.finish();
}
