//! Vectors with shards that are deactivated and reused.

use super::*;

/// Leaks are reported with their name and their offset in the block, in the core and in shards.
#[test]
fn leaks_in_shards_are_told() {
    let rig = Rig::new(VectorConfig { granularity: aligned(1024), ..config() });
    let mut expected = Vec::new();
    let mut leave = |it: Held, name: Option<&str>| {
        rig.vector.set_name(it.live(), name).unwrap();
        expected.push((it.grant.offset, it.bytes(&rig.config), name.map(str::to_owned), it.request.tag));
    };
    leave(rig.get(1000, 8), None);
    for thread in 1..5 {
        rig.settle(thread);
        leave(rig.get(3000, 16), None);
        let wanted = VectorRequest { whole_pages: true, tag: Tag(9), ..request(5000, 1) };
        leave(rig.allocate(&wanted).unwrap(), Some(&format!("of thread {thread}")));
        let freed = rig.get(10, 1);
        rig.vector.set_name(freed.live(), Some("freed")).unwrap();
        rig.free(freed);
    }
    let mut told = Vec::new();
    rig.vector.deactivate(&rig.context, &mut |visited| match visited {
        Visited::Chunk { chunk, annotation, .. } => {
            told.push((chunk.offset, chunk.size, name_in(annotation), chunk.used.unwrap().1));
        }
        _ => panic!("{visited:?}"),
    });
    expected.sort_unstable_by_key(|leak| leak.0);
    assert_eq!(told, expected);
    assert!(rig.gpu.live().is_empty());
    rig.gpu.assert_silent();
}

/// Handles of an earlier use are rejected, although the next use has the same shards and places.
#[test]
fn handles_of_an_earlier_use_are_refused() {
    let mut rig = Rig::new(config());
    let fill = |rig: &Rig| {
        rig.thread(0);
        let mut held = vec![rig.get(64, 1)];
        for thread in 1..4 {
            rig.settle(thread);
            held.extend((0..5).map(|_| rig.get(4096, 256)));
        }
        held
    };
    let mut stale = Vec::new();
    for round in 0..4 {
        let held = fill(&rig);
        for it in &stale {
            let Held { grant, .. } = *it;
            let live = Held::live(it);
            assert_eq!(rig.vector.free(&rig.context, live, false), Err(FOREIGN), "round {round}: {grant:?}");
            assert_eq!(rig.vector.set_name(live, Some("stale")), Err(FOREIGN));
            assert_eq!(rig.vector.name(live), Err(FOREIGN));
            assert_eq!(rig.vector.memory_size(live), Err(FOREIGN));
            assert!(matches!(rig.vector.map(&rig.context, live), Err(MapError::Foreign(_))));
            assert!(matches!(rig.vector.unmap(live), Err(MapError::Foreign(_))));
            assert!(rig.vector.pin_mapping(live).is_err());
        }
        rig.check();
        assert_eq!(rig.vector.totals().allocation_count, widen(held.len()));
        stale.extend(held);
        rig.vector.deactivate(&rig.context, &mut |_| ());
        for it in &stale {
            assert_eq!(rig.vector.free(&rig.context, it.live(), false), Err(FOREIGN), "out of use");
            assert_eq!(rig.vector.name(it.live()), Err(FOREIGN));
            assert!(rig.vector.map(&rig.context, it.live()).is_err());
        }
        assert_eq!(rig.vector.totals().block_count, 0);
        assert_eq!(rig.vector.totals().allocation_count, 0);
        rig.generation = rig.vector.activate(&rig.context, rig.config, None).unwrap();
    }
    rig.finish();
}

/// Invalid shard numbers are rejected without a lookup.
#[test]
fn wrong_numbers_of_shards_are_refused() {
    let rig = Rig::new(config());
    let first = rig.get(64, 1);
    let with = |shard| Live { shard, ..first.live() };
    for shard in [1, 2, 64, 65, 255] {
        assert_eq!(rig.vector.free(&rig.context, with(shard), false), Err(FOREIGN), "before there are any");
    }
    rig.settle(1);
    let own = rig.get(64, 1);
    for shard in [1, 2, 3, 64, 65, 255] {
        assert_eq!(rig.vector.free(&rig.context, with(shard), false), Err(FOREIGN), "shard {shard}");
        assert_eq!(rig.vector.name(with(shard)), Err(FOREIGN));
    }
    // Of another use, with any key.
    for it in [first, own] {
        let live = Live { generation: it.grant.generation.wrapping_sub(1), ..it.live() };
        assert_eq!(rig.vector.free(&rig.context, live, false), Err(FOREIGN));
        assert_eq!(rig.vector.name(live), Err(FOREIGN));
        assert_eq!(rig.vector.memory_size(live), Err(FOREIGN));
    }
    let other = Live { shard: 0, ..own.live() };
    assert_eq!(
        rig.vector.free(&rig.context, other, false),
        Err(FOREIGN),
        "a shard's key is none of the core's"
    );
    rig.check();
    rig.free_all([first, own]);
    rig.finish();
}

/// Deactivation sends settled threads back to the core. A reused vector without leasing ignores the old shards.
#[test]
fn the_next_use_is_another_kind() {
    let rig = Rig::new(config());
    let first = rig.get(64, 1);
    rig.settle(1);
    assert_ne!(rig.get(64, 1).grant.shard, 0);
    rig.vector.deactivate(&rig.context, &mut |_| ());
    let _stale = first;
    for other in [
        VectorConfig { algorithm: Algorithm::Linear, ..config() },
        VectorConfig { algorithm: Algorithm::Buddy, block_size: 16 * MIB, ..config() },
        VectorConfig { granularity: aligned(128 * KIB), ..config() },
        VectorConfig { block_size: 64 * MIB, granularity: aligned(1024), ..config() },
    ] {
        rig.vector.activate(&rig.context, other, None).unwrap();
        rig.thread(1);
        let first = rig.get(64, 1);
        assert_eq!((first.grant.shard, rig.lent()), (0, (0, 0)), "nobody has settled in {other:?}");
        rig.settle(1);
        let lends = other.algorithm == Algorithm::Tlsf && other.granularity == aligned(1024);
        let it = rig.allocate(&VectorRequest { whole_pages: true, ..request(64, 1) }).unwrap();
        assert_eq!(it.grant.shard != 0, lends);
        assert_eq!(
            it.grant.offset % other.granularity.get(),
            0,
            "this use's granularity, not the last one's"
        );
        // The range has the size for this use.
        assert_eq!(rig.lent(), if lends { (1, MIB) } else { (0, 0) });
        rig.check();
        rig.vector.deactivate(&rig.context, &mut |_| ());
    }
    assert!(rig.gpu.live().is_empty());
}

/// A range that returns after its vector was deactivated and reused changes nothing there.
#[test]
fn a_loan_of_an_earlier_use_comes_back() {
    let mut rig = Rig::new(config());
    let first = rig.get(64, 1);
    rig.settle(1);
    rig.free(rig.get(64, 1));
    let mut loans = Vec::new();
    rig.vector.shards.get(shard_of(1)).unwrap().lock().take_empty(&mut loans);
    assert_eq!(loans.len(), 1);
    rig.vector.deactivate(&rig.context, &mut |_| ());
    assert_eq!(rig.vector.give_back(&rig.context, &loans[0]), 0);
    rig.generation = rig.vector.activate(&rig.context, rig.config, None).unwrap();
    let _stale = first;
    rig.thread(0);
    let second = rig.get(64, 1);
    rig.settle(1);
    let own = rig.get(64, 1);
    assert_eq!(rig.lent(), (1, MIB));
    assert_eq!(rig.vector.give_back(&rig.context, &loans[0]), 0);
    assert_eq!(rig.lent(), (1, MIB));
    rig.free(own);
    // Even if the key were valid in this use.
    let mut loans = Vec::new();
    rig.vector.shards.get(shard_of(1)).unwrap().lock().take_empty(&mut loans);
    let mut loan = loans.pop().unwrap();
    loan.generation = loan.generation.wrapping_sub(2);
    assert_eq!(rig.vector.give_back(&rig.context, &loan), 0);
    assert_eq!(rig.lent(), (1, MIB));
    loan.generation = loan.generation.wrapping_add(2);
    rig.vector.give_back(&rig.context, &loan);
    assert_eq!(rig.lent(), (0, 0));
    rig.check();
    rig.free(second);
    rig.finish();
}

#[test]
fn names_in_shards() {
    let rig = Rig::new(config());
    let first = rig.get(64, 1);
    rig.settle(1);
    let held: Vec<_> = (0..10).map(|_| rig.get(64, 1)).collect();
    for (at, it) in held.iter().enumerate() {
        assert_eq!(rig.vector.name(it.live()).unwrap(), None);
        rig.vector.set_name(it.live(), Some(&at.to_string())).unwrap();
    }
    rig.thread(2);
    rig.vector.set_name(held[3].live(), Some("three")).unwrap();
    rig.vector.set_name(held[4].live(), None).unwrap();
    let name = |at: usize| rig.vector.name(held[at].live()).unwrap();
    assert_eq!((name(3).as_deref(), name(4), name(5).as_deref()), (Some("three"), None, Some("5")));
    let names: Vec<_> = rig.walk()[0].1.iter().filter_map(|chunk| chunk.3.clone()).collect();
    assert_eq!(names.len(), 9);
    // A name is dropped with its allocation: the next allocation at this place has none.
    let offset = held[3].grant.offset;
    rig.thread(1);
    rig.free(held[3]);
    let next = rig.get(64, 1);
    assert_eq!(next.grant.offset, offset);
    assert_eq!(rig.vector.name(next.live()).unwrap(), None);
    assert_eq!(rig.vector.name(held[3].live()), Err(FOREIGN));
    rig.check();
    rig.free_all(held.into_iter().filter(|it| it.grant.offset != offset));
    rig.free_all([first, next]);
    rig.finish();
}
