use super::*;

fn single(capacity: u64) -> Linear {
    let mut engine = Linear::new(capacity, Regions::Single);
    assert_eq!(engine.add_region(&capacity), Ok(RegionId(0)));
    engine
}

fn many(capacities: &[u64]) -> Linear {
    let mut engine = Linear::new(1 << 40, Regions::Many);
    for (n, capacity) in capacities.iter().enumerate() {
        assert_eq!(engine.add_region(capacity), Ok(RegionId(narrow(n))));
    }
    engine
}

/// Allocates and says where.
fn at(engine: &mut Linear, size: u64) -> (Key, u64) {
    let (key, span) = engine.allocate(&Request::new(size, 1)).unwrap();
    engine.validate();
    assert_eq!(span.size, size);
    (key, span.offset)
}

fn upper(engine: &mut Linear, size: u64, alignment: u64) -> Result<(Key, u64), AllocateError> {
    let granted = engine.allocate(&Request { upper: true, ..Request::new(size, alignment) });
    engine.validate();
    granted.map(|(key, span)| (key, span.offset))
}

fn free(engine: &mut Linear, key: Key) -> bool {
    let freed = engine.free(key).unwrap();
    engine.validate();
    assert_eq!(engine.free(key), Err(BadKey));
    freed.region_empty
}

/// Offset, size, and whether it is used.
fn walk(engine: &Linear, region: u32) -> Vec<(u64, u64, bool)> {
    let mut chunks = Vec::new();
    engine.walk(RegionId(region), &mut |chunk| chunks.push((chunk.offset, chunk.size, chunk.used.is_some())));
    chunks
}

#[test]
fn free_at_once_starts_again_when_the_last_is_freed() {
    let mut engine = single(100);
    let (a, b, c) = (at(&mut engine, 20), at(&mut engine, 30), at(&mut engine, 40));
    assert_eq!((a.1, b.1, c.1), (0, 20, 50));
    assert!(!free(&mut engine, b.0));
    assert_eq!(walk(&engine, 0), [(0, 20, true), (20, 30, false), (50, 40, true), (90, 10, false)]);
    assert_eq!(engine.allocate(&Request::new(11, 1)), Err(AllocateError::NoSpace), "the hole is not used");
    assert_eq!(engine.largest_free(), 10);
    assert!(!free(&mut engine, a.0));
    assert!(free(&mut engine, c.0));
    assert_eq!(walk(&engine, 0), [(0, 100, false)]);
    assert_eq!(at(&mut engine, 100).1, 0);
}

#[test]
fn a_stack_pops_over_holes() {
    let mut engine = single(100);
    let keys: Vec<Key> = (0..5).map(|_| at(&mut engine, 10).0).collect();
    free(&mut engine, keys[2]);
    free(&mut engine, keys[3]);
    assert_eq!(at(&mut engine, 1).1, 50, "the holes are in the middle");
    engine.reset(RegionId(0));
    let keys: Vec<Key> = (0..5).map(|_| at(&mut engine, 10).0).collect();
    free(&mut engine, keys[2]);
    free(&mut engine, keys[3]);
    free(&mut engine, keys[4]);
    assert_eq!(at(&mut engine, 1).1, 20, "the holes went with the last");
}

#[test]
fn alignment_pads_on_both_sides() {
    let mut engine = single(1000);
    at(&mut engine, 1);
    let (_, span) = engine.allocate(&Request::new(10, 64)).unwrap();
    assert_eq!(span, Span { region: RegionId(0), offset: 64, size: 10 });
    assert_eq!(upper(&mut engine, 10, 64).map(|granted| granted.1), Ok(960));
    assert_eq!(upper(&mut engine, 10, 64).map(|granted| granted.1), Ok(896));
    let used = (64, 10, true);
    assert_eq!(walk(&engine, 0)[..4], [(0, 1, true), (1, 63, false), used, (74, 822, false)]);
    assert_eq!(engine.largest_free(), 822);
}

#[test]
fn the_two_sides_meet() {
    let mut engine = single(100);
    let (low, _) = at(&mut engine, 40);
    let (high, offset) = upper(&mut engine, 50, 1).unwrap();
    assert_eq!(offset, 50);
    assert_eq!(engine.allocate(&Request::new(11, 1)), Err(AllocateError::NoSpace));
    assert_eq!(upper(&mut engine, 11, 1), Err(AllocateError::NoSpace));
    assert_eq!(upper(&mut engine, 10, 64), Err(AllocateError::NoSpace), "aligned down into the lower side");
    assert_eq!(at(&mut engine, 10).1, 40);
    assert_eq!(engine.largest_free(), 0);
    free(&mut engine, high);
    assert_eq!(upper(&mut engine, 50, 1).map(|granted| granted.1), Ok(50), "the upper side pops too");
    free(&mut engine, low);
    assert_eq!(
        engine.allocate(&Request::new(1, 1)),
        Err(AllocateError::NoSpace),
        "no wrap under an upper side"
    );
}

#[test]
fn an_upper_side_alone_leaves_the_start() {
    let mut engine = single(100);
    let (high, offset) = upper(&mut engine, 100, 1).unwrap();
    assert_eq!(offset, 0);
    assert_eq!(engine.allocate(&Request::new(1, 1)), Err(AllocateError::NoSpace));
    assert!(free(&mut engine, high));
    assert_eq!(at(&mut engine, 100).1, 0);
}

#[test]
fn a_ring_goes_round() {
    let mut engine = single(100);
    let mut keys: std::collections::VecDeque<(Key, u64)> = (0..3).map(|_| at(&mut engine, 30)).collect();
    assert_eq!(engine.allocate(&Request::new(30, 1)), Err(AllocateError::NoSpace));
    for lap in 1..=10 {
        for n in 0..3 {
            let (oldest, offset) = keys.pop_front().unwrap();
            assert_eq!(offset, n * 30, "lap {lap}");
            free(&mut engine, oldest);
            keys.push_back(at(&mut engine, 30));
        }
    }
    assert_eq!(engine.usage().used, 90);
}

#[test]
fn a_ring_has_no_upper_side_and_ends_at_its_oldest() {
    let mut engine = single(100);
    let a = at(&mut engine, 30);
    at(&mut engine, 60);
    free(&mut engine, a.0);
    assert_eq!(upper(&mut engine, 10, 1).map(|granted| granted.1), Ok(90), "not yet a ring");
    assert_eq!(engine.allocate(&Request::new(5, 1)), Err(AllocateError::NoSpace), "and now not any more");
    engine.reset(RegionId(0));
    let (a, b, c) = (at(&mut engine, 30), at(&mut engine, 30), at(&mut engine, 30));
    free(&mut engine, a.0);
    let d = at(&mut engine, 20);
    assert_eq!(d.1, 0);
    assert_eq!(upper(&mut engine, 1, 1), Err(AllocateError::UpperInRing));
    assert_eq!(engine.largest_free(), 10);
    assert_eq!(engine.allocate(&Request::new(11, 1)), Err(AllocateError::NoSpace));
    assert_eq!(walk(&engine, 0)[..2], [(0, 20, true), (20, 10, false)]);
    // The stack at the end of the ring: back to one lap.
    free(&mut engine, d.0);
    assert_eq!(upper(&mut engine, 1, 1).map(|granted| granted.1), Ok(99));
    free(&mut engine, b.0);
    assert!(!free(&mut engine, c.0));
}

#[test]
fn a_hole_in_front_of_the_ring_is_taken_with_the_oldest() {
    let mut engine = single(90);
    let (a, b, c) = (at(&mut engine, 30), at(&mut engine, 30), at(&mut engine, 30));
    free(&mut engine, b.0);
    assert_eq!(engine.allocate(&Request::new(1, 1)), Err(AllocateError::NoSpace));
    free(&mut engine, a.0);
    assert_eq!(at(&mut engine, 60).1, 0);
    free(&mut engine, c.0);
    // One lap again.
    assert_eq!(at(&mut engine, 30).1, 60);
}

#[test]
fn many_regions_are_filled_one_after_the_other() {
    let mut engine = many(&[100, 50, 200]);
    let region = |engine: &mut Linear, size| {
        let (key, span) = engine.allocate(&Request::new(size, 1)).unwrap();
        engine.validate();
        (key, span.region.0, span.offset)
    };
    let a = region(&mut engine, 60);
    let b = region(&mut engine, 50);
    assert_eq!((a.1, a.2, b.1, b.2), (0, 0, 1, 0));
    let c = region(&mut engine, 10);
    assert_eq!((c.1, c.2), (2, 0), "region 0 has room, but was left");
    assert_eq!(engine.allocate(&Request::new(191, 1)), Err(AllocateError::NoSpace));
    assert_eq!(engine.largest_free(), 190);
    assert!(free(&mut engine, b.0));
    assert!(free(&mut engine, a.0));
    assert_eq!(engine.largest_free(), 190);
    let d = region(&mut engine, 190);
    assert_eq!((d.1, d.2), (2, 10), "the current one first");
    let e = region(&mut engine, 50);
    assert_eq!((e.1, e.2), (0, 0), "then the lowest that is empty");
    assert_eq!(
        engine.allocate(&Request { upper: true, ..Request::new(1, 1) }),
        Err(AllocateError::UpperUnsupported)
    );
    // An empty region that is current and too small is left, and can be chosen again.
    engine.reset(RegionId(0));
    engine.reset(RegionId(2));
    assert_eq!(region(&mut engine, 150).1, 2);
    assert_eq!(region(&mut engine, 100).1, 0);
}

#[test]
fn slots_of_regions_are_used_again_lowest_first() {
    let mut engine = many(&[10, 10, 10, 10]);
    let (key, _) = at(&mut engine, 5);
    assert_eq!(engine.remove_region(RegionId(0)), Err(NotEmpty));
    for id in [2, 1] {
        assert_eq!(engine.remove_region(RegionId(id)), Ok(()));
        engine.validate();
    }
    assert_eq!(engine.add_region(&7), Ok(RegionId(1)));
    assert_eq!(engine.add_region(&8), Ok(RegionId(2)));
    assert_eq!(engine.add_region(&9), Ok(RegionId(4)));
    assert_eq!(engine.usage().capacity, 10 + 7 + 8 + 10 + 9);
    assert!(free(&mut engine, key));
    assert_eq!(engine.remove_region(RegionId(0)), Ok(()));
    engine.validate();
    assert_eq!(at(&mut engine, 10).1, 0, "nothing is current, the lowest with room is 3");
    assert_eq!(engine.region_usage(RegionId(3)).used, 10);
}

#[test]
fn a_key_does_not_outlive_its_region() {
    let mut engine = single(100);
    let (old, _) = at(&mut engine, 10);
    engine.reset(RegionId(0));
    assert_eq!(engine.free(old), Err(BadKey));
    engine.remove_region(RegionId(0)).unwrap();
    assert_eq!(
        (engine.free(old), engine.span(old), engine.tag(old)),
        (Err(BadKey), Err(BadKey), Err(BadKey))
    );
    engine.add_region(&100).unwrap();
    at(&mut engine, 10);
    assert_eq!(engine.free(old), Err(BadKey));
}

#[test]
fn keys_are_found_between_pops() {
    // Serial numbers with gaps of all sizes: 0 and then after each pop a longer one.
    let mut engine = single(1 << 40);
    let mut kept = Vec::new();
    for pops in 0..100 {
        kept.push(at(&mut engine, 1).0);
        let popped: Vec<Key> = (0..pops % 13).map(|_| at(&mut engine, 1).0).collect();
        for key in popped.into_iter().rev() {
            free(&mut engine, key);
            assert_eq!(engine.span(key), Err(BadKey));
        }
    }
    for (offset, &key) in kept.iter().enumerate() {
        assert_eq!(engine.span(key).map(|span| span.offset), Ok(crate::base::cast::widen(offset)));
    }
    // From the middle outwards, so that every one is found among holes.
    for n in 0..50 {
        free(&mut engine, kept[50 + n]);
        free(&mut engine, kept[49 - n]);
    }
    assert_eq!(engine.usage().used_chunks, 0);
}

#[test]
fn serial_numbers_run_over() {
    let mut engine = single(1000);
    engine.serial = Serial::LAST;
    let keys: Vec<Key> = (0..4).map(|_| at(&mut engine, 10).0).collect();
    for key in [keys[1], keys[2], keys[0], keys[3]] {
        free(&mut engine, key);
    }
    assert_eq!(engine.usage().used_chunks, 0);
}

#[test]
fn churn_on_an_old_allocation_takes_no_memory() {
    let mut engine = single(1000);
    at(&mut engine, 10);
    for _ in 0..8 {
        let (key, _) = at(&mut engine, 10);
        free(&mut engine, key);
    }
    let held = engine.heap_bytes();
    for _ in 0..10_000 {
        let (key, offset) = at(&mut engine, 10);
        assert_eq!(offset, 10);
        free(&mut engine, key);
    }
    assert_eq!(engine.heap_bytes(), held);
}

#[test]
fn regions_in_turn_share_their_memory() {
    let mut engine = many(&[1000; 64]);
    let mut held = 0;
    let mut last = Vec::new();
    for n in 0..640 {
        let keys: Vec<Key> = (0..100).map(|_| at(&mut engine, 10).0).collect();
        for key in last.drain(..) {
            free(&mut engine, key);
        }
        last = keys;
        if n == 10 {
            held = engine.heap_bytes();
        }
    }
    assert_eq!(engine.heap_bytes(), held, "two regions are in use at a time");
}

#[test]
fn capacities_are_checked() {
    let mut engine = Linear::new(100, Regions::Many);
    assert_eq!(engine.add_region(&0), Err(RegionError::Capacity { capacity: 0, max: 100 }));
    assert_eq!(engine.add_region(&101), Err(RegionError::Capacity { capacity: 101, max: 100 }));
    let mut engine = Linear::new(u64::MAX, Regions::Many);
    assert_eq!(engine.add_region(&u64::MAX), Ok(RegionId(0)));
    assert_eq!(engine.add_region(&1), Err(RegionError::TooMany));
    let (_, span) = engine.allocate(&Request::new(u64::MAX, 1 << 63)).unwrap();
    assert_eq!((span.offset, span.size), (0, u64::MAX));
    assert_eq!(engine.allocate(&Request::new(1, 1 << 63)), Err(AllocateError::NoSpace));
    engine.validate();
}

#[test]
fn as_many_regions_as_keys_can_tell_apart() {
    let mut engine = Linear::new(1, Regions::Many);
    for id in 0..MAX_REGIONS {
        assert_eq!(engine.add_region(&1), Ok(RegionId(id)));
    }
    assert_eq!(engine.add_region(&1), Err(RegionError::TooMany));
    let keys: Vec<Key> = (0..MAX_REGIONS).map(|_| engine.allocate(&Request::new(1, 1)).unwrap().0).collect();
    assert_eq!(engine.allocate(&Request::new(1, 1)), Err(AllocateError::NoSpace));
    engine.validate();
    for (id, &key) in keys.iter().enumerate().rev() {
        assert_eq!(engine.free(key).map(|freed| freed.span.region), Ok(RegionId(narrow(id))));
    }
    engine.validate();
}

#[test]
#[should_panic(expected = "no region 1")]
fn a_region_that_is_not_there_panics() {
    single(10).reset(RegionId(1));
}

#[test]
#[should_panic(expected = "no region 0")]
fn a_removed_region_panics() {
    let mut engine = single(10);
    engine.remove_region(RegionId(0)).unwrap();
    let _ = engine.region_usage(RegionId(0));
}
