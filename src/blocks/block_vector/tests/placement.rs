//! Placement in shards, and the assignment of shards.

use std::collections::BTreeMap;
use std::time::Duration;

use ash::vk::Handle;

use super::*;
use crate::engine::Engine;
use sublet_engines::Request;

#[test]
fn an_alignment_above_that_of_leases_is_met() {
    let fixture = Fixture::new(config());
    fixture.attach(1);
    let mut held = vec![fixture.get(64 * KIB, 1)];
    for thread in 1..6 {
        fixture.attach(thread);
        held.push(fixture.get(100, 1));
        assert_eq!(held.last().unwrap().grant.shard, shard_of(thread));
        for log2 in 0..24 {
            let it = fixture.get(100, 1 << log2);
            assert_eq!(it.grant.offset % (1 << log2), 0, "an alignment of 2^{log2}");
            assert_eq!(it.grant.shard, if log2 <= 16 { shard_of(thread) } else { 0 });
            held.push(it);
        }
        // The next range does not begin at a multiple of 128 KiB.
        fixture.thread(0);
        held.push(fixture.get(64 * KIB, 1));
    }
    fixture.check();
    fixture.free_all(held);
    fixture.finish();
}

#[test]
fn what_is_none_for_a_shard_goes_to_the_core() {
    let fixture = Fixture::new(config());
    let mut held = vec![fixture.get(100, 1)];
    fixture.attach(1);
    let own = shard_of(1);
    for (wanted, shard) in [
        (request(100, 1), own),
        (request(256 * KIB, 64 * KIB), own),
        (request(256 * KIB + 1, 1), 0),
        (request(4 * MIB, 1), 0),
        (VectorRequest { strategy: Strategy::MinTime, ..request(100, 1) }, own),
        (VectorRequest { strategy: Strategy::MinMemory, ..request(100, 1) }, 0),
        (VectorRequest { strategy: Strategy::MinOffset, ..request(100, 1) }, 0),
        (VectorRequest { whole_pages: true, ..request(100, 1) }, own),
        (VectorRequest { mapped: true, ..request(100, 1) }, own),
    ] {
        // Even if the shard has room for it.
        for _ in 0..3 {
            let it = fixture.allocate(&wanted).unwrap();
            assert_eq!(it.grant.shard, shard, "{wanted:?}");
            held.push(it);
        }
    }
    fixture.check();
    fixture.free_all(held);
    fixture.finish();
}

/// Threads whose tokens differ by a multiple of 64 share a shard safely.
#[test]
fn more_threads_than_shards() {
    let fixture = Fixture::new(VectorConfig { block_size: 128 * MIB, ..config() });
    let mut held = vec![fixture.get(1, 1)];
    for round in 0..3 {
        for thread in 0..200 {
            assert_eq!(fixture.attach(thread), shard_of(thread));
            let it = fixture.get(1000 + u64::from(thread), 1 << round);
            assert_eq!(it.grant.shard, shard_of(thread));
            held.push(it);
        }
        fixture.check();
    }
    assert_eq!(fixture.vector.shards.iter().count(), 64);
    assert_eq!(fixture.leased().0, 64, "nobody needs a second lease");
    // Freed by other threads than those that allocated.
    for (at, it) in (0..).zip(held) {
        fixture.thread(at % 77);
        fixture.free(it);
    }
    fixture.finish();
}

/// Placements of a fixed program by an engine alone, by block and offset.
fn placed_by_an_engine(steps: &[Step]) -> Vec<(usize, u64)> {
    let mut engine = Engine::new(Algorithm::Tlsf, config().block_size, true);
    let mut keys = Vec::new();
    let mut placed = Vec::new();
    for &step in steps {
        match step {
            Step::Allocate(size, alignment) => {
                let wanted = Request { tag: Tag(7), ..Request::new(size, aligned(alignment)) };
                let (key, span) = engine.allocate(&wanted).unwrap_or_else(|_| {
                    engine.add_region(&config().block_size).unwrap();
                    engine.allocate(&wanted).unwrap()
                });
                keys.push(key);
                placed.push((index(span.region.0), span.offset));
            }
            Step::Free(at) => drop(engine.free(keys.swap_remove(at)).unwrap()),
        }
    }
    placed
}

#[derive(Clone, Copy)]
enum Step {
    Allocate(u64, u64),
    Free(usize),
}

fn steps() -> Vec<Step> {
    let mut random = Random::new(5);
    let mut live = 0;
    (0..3000)
        .map(|_| {
            if live > 0 && random.below(5) < 2 {
                live -= 1;
                Step::Free(random.place(live + 1))
            } else {
                live += 1;
                Step::Allocate(random.size(21), 1 << random.below(12))
            }
        })
        .collect()
}

/// A single thread gets no shard: its placements equal those of an engine alone.
#[test]
fn one_thread_gets_no_shard() {
    let steps = steps();
    let expected = placed_by_an_engine(&steps);
    let fixture = Fixture::new(VectorConfig { empty_blocks_kept: u32::MAX, ..config() });
    let mut memories = BTreeMap::new();
    let mut held = Vec::new();
    let mut placed = Vec::new();
    for step in steps {
        match step {
            Step::Allocate(size, alignment) => {
                let it = fixture.get(size, alignment);
                let next = memories.len();
                placed.push((*memories.entry(it.grant.memory.as_raw()).or_insert(next), it.grant.offset));
                held.push(it);
            }
            Step::Free(at) => fixture.free(held.swap_remove(at)),
        }
    }
    assert_eq!(placed, expected);
    let blocks = expected.iter().map(|&(block, _)| block).max().unwrap() + 1;
    assert!(blocks > 1);
    assert_eq!(fixture.vector.totals().block_count, widen(blocks));
    assert_eq!((fixture.vector.shards.iter().count(), fixture.leased()), (0, (0, 0)));
    fixture.free_all(held);
    fixture.finish();
}

/// A thread attaches after eight contentions within 1024 allocations.
#[test]
fn a_thread_attaches_at_eight_contentions_in_a_thousand() {
    let fixture = Fixture::new(config());
    let contend = || fixture.vector.core.lock().count_contention();
    let work = |times| (0..times).for_each(|_| fixture.free(fixture.get(64, 1)));
    work(1);
    assert_eq!(
        (0..8).map(|_| contend()).collect::<Vec<_>>(),
        [false, false, false, false, false, false, false, true]
    );
    assert!(contend(), "and from then on at every contended lock");
    // Beyond the window: the count restarts.
    work(1025);
    assert!((0..7).all(|_| !contend()));
    // Just within the window.
    work(1024);
    assert!(contend());
    fixture.finish();
}

/// Threads that wait for the core get shards, and do not wait for it again.
#[test]
fn threads_that_meet_attach() {
    let fixture = Fixture::new(config());
    let kept = fixture.get(64, 1);
    std::thread::scope(|scope| {
        let worker = scope.spawn(|| {
            let mut shards = Vec::new();
            for _ in 0..12 {
                let it = fixture.get(64, 1);
                shards.push(it.grant.shard);
                fixture.free(it);
                std::thread::sleep(Duration::from_millis(2));
            }
            shards
        });
        while !worker.is_finished() {
            let core = fixture.vector.core.lock();
            std::thread::sleep(Duration::from_millis(1));
            drop(core);
            // The lock is not fair: a sleeping waiter needs a gap as long as its sleep.
            std::thread::sleep(Duration::from_millis(2));
        }
        let shards = worker.join().unwrap();
        // The scheduler decides how often the threads contend. If often enough, the thread attaches once and stays
        // attached.
        let attached = shards.iter().position(|&shard| shard != 0).unwrap_or(shards.len());
        assert!(attached >= 7, "{shards:?}");
        assert!(shards[attached..].iter().all(|&shard| shard == shards[attached]), "{shards:?}");
    });
    fixture.free(kept);
    fixture.finish();
}

/// Vectors without shards: those with ordered placement, with blocks too small for leasing, or with alignments above
/// that of ranges.
#[test]
fn some_vectors_have_no_shards() {
    let none = [
        VectorConfig { algorithm: Algorithm::Linear, ..config() },
        VectorConfig { algorithm: Algorithm::Buddy, ..config() },
        VectorConfig { block_size: 16 * MIB - 1, ..config() },
        VectorConfig { granularity: aligned(128 * KIB), ..config() },
        VectorConfig { min_alignment: aligned(128 * KIB), ..config() },
    ];
    let some = [
        config(),
        VectorConfig { block_size: 16 * MIB, ..config() },
        VectorConfig { granularity: aligned(64 * KIB), ..config() },
        VectorConfig { min_alignment: aligned(64 * KIB), ..config() },
    ];
    for (configs, has) in [(&none[..], false), (&some[..], true)] {
        for &config in configs {
            let fixture = Fixture::new(config);
            let first = fixture.get(64, 1);
            fixture.attach(1);
            let second = fixture.get(64, 1);
            assert_eq!((second.grant.shard != 0, fixture.leased().0 != 0), (has, has), "{config:?}");
            fixture.check();
            fixture.free_all([first, second]);
            fixture.finish();
        }
    }
}

/// Range sizes grow with the shard: from 1 MiB to 2 MiB here, and never much above the used bytes.
#[test]
fn leases_grow_with_use() {
    let fixture = Fixture::new(config());
    let first = fixture.get(64, 1);
    fixture.attach(1);
    let mut held = Vec::new();
    let mut leases = vec![0];
    while fixture.leased().0 < 10 {
        let it = fixture.get(16 * KIB, 1);
        assert_eq!(it.grant.shard, shard_of(1));
        held.push(it);
        let (_, bytes) = fixture.leased();
        if bytes != *leases.last().unwrap() {
            leases.push(bytes);
        }
        let used = 16 * KIB * widen(held.len());
        assert!(bytes <= MIB.max(used / 2 * 3) + MIB, "{bytes} leased for {used}");
    }
    let sizes: Vec<_> = leases.windows(2).map(|pair| (pair[1] - pair[0]) / MIB).collect();
    assert_eq!(sizes, [1, 1, 1, 1, 1, 2, 2, 2, 2, 2]);
    // A larger request gets a larger range at once: four times its size, up to the limit.
    fixture.attach(2);
    held.push(fixture.get(256 * KIB, 1));
    assert_eq!(fixture.leased().1, leases.last().unwrap() + MIB);
    fixture.attach(3);
    held.push(fixture.get(256 * KIB - 100, 64 * KIB));
    assert_eq!(fixture.leased().1, leases.last().unwrap() + 2 * MIB);
    fixture.check();
    fixture.free_all(held);
    fixture.free(first);
    fixture.finish();
}

/// A thread leases what a block has left, because small ranges keep it off the core too.
#[test]
fn a_small_range_is_leased_if_no_block_has_room_for_a_large_one() {
    let fixture = Fixture::new(config());
    let mut held = vec![fixture.get(32 * MIB - 512 * KIB, 1)];
    fixture.attach(1);
    held.extend((0..16).map(|_| fixture.get(32 * KIB, 1)));
    assert!(held[1..].iter().all(|it| it.grant.shard == shard_of(1)));
    assert_eq!(fixture.vector.totals().block_count, 1);
    fixture.check();
    fixture.free_all(held);
    fixture.finish();
}

/// If no block has room for a range, the core serves the request. A block is created only if the core cannot serve it.
#[test]
fn a_request_that_no_lease_can_be_had_for() {
    let fixture = Fixture::new(config());
    let mut held = vec![fixture.get(32 * MIB - 96 * KIB, 1)];
    fixture.attach(1);
    while fixture.vector.totals().block_count == 1 {
        held.push(fixture.get(32 * KIB, 1));
        assert_eq!(held.last().unwrap().grant.shard, 0);
        assert!(held.len() <= 1 + 4);
    }
    assert_eq!(held.len(), 1 + 4, "the block was filled to the end");
    held.push(fixture.get(32 * KIB, 1));
    assert_eq!(held.last().unwrap().grant.shard, shard_of(1), "the new block has room for a lease");
    fixture.check();
    fixture.free_all(held);
    fixture.finish();
}
