//! Vectors with shards that are deactivated and reused.

use super::*;

/// Handles of an earlier use are rejected, although the next use has the same shards and places.
#[test]
fn handles_of_an_earlier_use_are_refused() {
    let mut fixture = Fixture::new(config());
    let fill = |fixture: &Fixture| {
        fixture.thread(0);
        let mut held = vec![fixture.get(64, 1)];
        for thread in 1..4 {
            fixture.attach(thread);
            held.extend((0..5).map(|_| fixture.get(4096, 256)));
        }
        held
    };
    let mut stale = Vec::new();
    for round in 0..4 {
        let held = fill(&fixture);
        for it in &stale {
            let Held { grant, .. } = *it;
            let live = Held::live(it);
            assert_eq!(
                fixture.vector.free(&fixture.context, live, false),
                Err(FOREIGN),
                "round {round}: {grant:?}"
            );
            assert_eq!(fixture.vector.set_name(live, Some("stale")), Err(FOREIGN));
            assert_eq!(fixture.vector.name(live), Err(FOREIGN));
            assert_eq!(fixture.vector.memory_size(live), Err(FOREIGN));
            assert!(matches!(fixture.vector.map(&fixture.context, live), Err(MapError::Foreign(_))));
            assert!(matches!(fixture.vector.unmap(live), Err(MapError::Foreign(_))));
            assert!(fixture.vector.pin_mapping(live).is_err());
        }
        fixture.check();
        assert_eq!(fixture.vector.totals().allocation_count, widen(held.len()));
        stale.extend(held);
        fixture.vector.deactivate(&fixture.context, &mut |_| ());
        for it in &stale {
            assert_eq!(fixture.vector.free(&fixture.context, it.live(), false), Err(FOREIGN), "out of use");
            assert_eq!(fixture.vector.name(it.live()), Err(FOREIGN));
            assert!(fixture.vector.map(&fixture.context, it.live()).is_err());
        }
        assert_eq!(fixture.vector.totals().block_count, 0);
        assert_eq!(fixture.vector.totals().allocation_count, 0);
        fixture.generation = fixture.vector.activate(&fixture.context, fixture.config, None).unwrap();
    }
    fixture.finish();
}

/// Invalid shard numbers are rejected without a lookup.
#[test]
fn wrong_numbers_of_shards_are_refused() {
    let fixture = Fixture::new(config());
    let first = fixture.get(64, 1);
    let with = |shard| AllocationKey { shard, ..first.live() };
    for shard in [1, 2, 64, 65, 255] {
        assert_eq!(
            fixture.vector.free(&fixture.context, with(shard), false),
            Err(FOREIGN),
            "before there are any"
        );
    }
    fixture.attach(1);
    let own = fixture.get(64, 1);
    for shard in [1, 2, 3, 64, 65, 255] {
        assert_eq!(fixture.vector.free(&fixture.context, with(shard), false), Err(FOREIGN), "shard {shard}");
        assert_eq!(fixture.vector.name(with(shard)), Err(FOREIGN));
    }
    // Of another use, with any key.
    for it in [first, own] {
        let live = AllocationKey { generation: it.grant.generation.wrapping_sub(1), ..it.live() };
        assert_eq!(fixture.vector.free(&fixture.context, live, false), Err(FOREIGN));
        assert_eq!(fixture.vector.name(live), Err(FOREIGN));
        assert_eq!(fixture.vector.memory_size(live), Err(FOREIGN));
    }
    let other = AllocationKey { shard: 0, ..own.live() };
    assert_eq!(
        fixture.vector.free(&fixture.context, other, false),
        Err(FOREIGN),
        "a shard's key is none of the core's"
    );
    fixture.check();
    fixture.free_all([first, own]);
    fixture.finish();
}

/// Deactivation sends attached threads back to the core. A reused vector without leasing ignores the old shards.
#[test]
fn the_next_use_is_another_kind() {
    let fixture = Fixture::new(config());
    let first = fixture.get(64, 1);
    fixture.attach(1);
    assert_ne!(fixture.get(64, 1).grant.shard, 0);
    fixture.vector.deactivate(&fixture.context, &mut |_| ());
    let _stale = first;
    for other in [
        VectorConfig { algorithm: Algorithm::Linear, ..config() },
        VectorConfig { algorithm: Algorithm::Buddy, block_size: 16 * MIB, ..config() },
        VectorConfig { granularity: aligned(128 * KIB), ..config() },
        VectorConfig { block_size: 64 * MIB, granularity: aligned(1024), ..config() },
    ] {
        fixture.vector.activate(&fixture.context, other, None).unwrap();
        fixture.thread(1);
        let first = fixture.get(64, 1);
        assert_eq!((first.grant.shard, fixture.leased()), (0, (0, 0)), "nobody has attached in {other:?}");
        fixture.attach(1);
        let leases_ranges = other.algorithm == Algorithm::Tlsf && other.granularity == aligned(1024);
        let it = fixture.allocate(&VectorRequest { whole_pages: true, ..request(64, 1) }).unwrap();
        assert_eq!(it.grant.shard != 0, leases_ranges);
        assert_eq!(
            it.grant.offset % other.granularity.get(),
            0,
            "this use's granularity, not the last one's"
        );
        // The range has the size for this use.
        assert_eq!(fixture.leased(), if leases_ranges { (1, MIB) } else { (0, 0) });
        fixture.check();
        fixture.vector.deactivate(&fixture.context, &mut |_| ());
    }
    assert!(fixture.gpu.live().is_empty());
}

/// A range that returns after its vector was deactivated and reused changes nothing there.
#[test]
fn a_lease_of_an_earlier_use_comes_back() {
    let mut fixture = Fixture::new(config());
    let first = fixture.get(64, 1);
    fixture.attach(1);
    fixture.free(fixture.get(64, 1));
    let mut leases = Vec::new();
    fixture.vector.shards.get(shard_of(1)).unwrap().lock().take_empty(&mut leases);
    assert_eq!(leases.len(), 1);
    fixture.vector.deactivate(&fixture.context, &mut |_| ());
    assert_eq!(fixture.vector.give_back(&fixture.context, &leases[0]), 0);
    fixture.generation = fixture.vector.activate(&fixture.context, fixture.config, None).unwrap();
    let _stale = first;
    fixture.thread(0);
    let second = fixture.get(64, 1);
    fixture.attach(1);
    let own = fixture.get(64, 1);
    assert_eq!(fixture.leased(), (1, MIB));
    assert_eq!(fixture.vector.give_back(&fixture.context, &leases[0]), 0);
    assert_eq!(fixture.leased(), (1, MIB));
    fixture.free(own);
    // Even if the key were valid in this use.
    let mut leases = Vec::new();
    fixture.vector.shards.get(shard_of(1)).unwrap().lock().take_empty(&mut leases);
    let mut lease = leases.pop().unwrap();
    lease.generation = lease.generation.wrapping_sub(2);
    assert_eq!(fixture.vector.give_back(&fixture.context, &lease), 0);
    assert_eq!(fixture.leased(), (1, MIB));
    lease.generation = lease.generation.wrapping_add(2);
    fixture.vector.give_back(&fixture.context, &lease);
    assert_eq!(fixture.leased(), (0, 0));
    fixture.check();
    fixture.free(second);
    fixture.finish();
}

#[test]
fn names_in_shards() {
    let fixture = Fixture::new(config());
    let first = fixture.get(64, 1);
    fixture.attach(1);
    let held: Vec<_> = (0..10).map(|_| fixture.get(64, 1)).collect();
    for (at, it) in held.iter().enumerate() {
        assert_eq!(fixture.vector.name(it.live()).unwrap(), None);
        fixture.vector.set_name(it.live(), Some(&at.to_string())).unwrap();
    }
    fixture.thread(2);
    fixture.vector.set_name(held[3].live(), Some("three")).unwrap();
    fixture.vector.set_name(held[4].live(), None).unwrap();
    let name = |at: usize| fixture.vector.name(held[at].live()).unwrap();
    assert_eq!((name(3).as_deref(), name(4), name(5).as_deref()), (Some("three"), None, Some("5")));
    let names: Vec<_> = fixture.walk()[0].1.iter().filter_map(|chunk| chunk.3.clone()).collect();
    assert_eq!(names.len(), 9);
    // A name is dropped with its allocation: the next allocation at this place has none.
    let offset = held[3].grant.offset;
    fixture.thread(1);
    fixture.free(held[3]);
    let next = fixture.get(64, 1);
    assert_eq!(next.grant.offset, offset);
    assert_eq!(fixture.vector.name(next.live()).unwrap(), None);
    assert_eq!(fixture.vector.name(held[3].live()), Err(FOREIGN));
    fixture.check();
    fixture.free_all(held.into_iter().filter(|it| it.grant.offset != offset));
    fixture.free_all([first, next]);
    fixture.finish();
}
