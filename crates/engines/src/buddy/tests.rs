use super::*;
use crate::asked;

fn engine(capacity: u64, smallest: u64) -> Buddy {
    let mut engine = Buddy::new(capacity, smallest);
    assert_eq!(engine.add_region(&capacity), Ok(RegionId(0)));
    engine.validate();
    engine
}

fn at(engine: &mut Buddy, size: u64, alignment: u64) -> (Key, u64, u64) {
    let (key, span) = engine.allocate(&asked(size, alignment)).unwrap();
    engine.validate();
    (key, span.offset, span.size)
}

/// The sizes of the chunks of region 0, negative if used.
fn sizes(engine: &Buddy) -> Vec<i64> {
    let mut sizes = Vec::new();
    engine.walk(RegionId(0), &mut |chunk| {
        let size = i64::try_from(chunk.size).unwrap();
        sizes.push(if chunk.used.is_some() { -size } else { size });
    });
    sizes
}

#[test]
fn the_drawing_is_right() {
    let mut engine = engine(110, 4);
    assert_eq!(sizes(&engine), [64, 32, 8, 4, 2]);
    let (key, offset, size) = at(&mut engine, 10, 1);
    assert_eq!((offset, size), (64, 16), "the smallest chunk that is large enough is halved");
    assert_eq!(sizes(&engine), [64, -16, 16, 8, 4, 2]);
    assert_eq!((engine.usage().used, engine.usage().rounding), (16, 6));
    engine.free(key).unwrap();
    engine.validate();
    assert_eq!(sizes(&engine), [64, 32, 8, 4, 2]);
}

#[test]
fn pieces_are_not_joined() {
    let mut engine = engine(12, 1);
    let keys: Vec<Key> = (0..12).map(|_| at(&mut engine, 1, 1).0).collect();
    assert_eq!(engine.allocate(&asked(1, 1)), Err(AllocateError::NoSpace));
    for key in keys {
        engine.free(key).unwrap();
        engine.validate();
    }
    assert_eq!(sizes(&engine), [8, 4]);
    assert_eq!(engine.largest_free(), 8);
    assert_eq!(engine.allocate(&asked(9, 1)), Err(AllocateError::NoSpace));
}

#[test]
fn joins_with_the_buddy_only() {
    let mut engine = engine(16, 4);
    let keys: Vec<Key> = (0..4).map(|_| at(&mut engine, 4, 1).0).collect();
    // 1 and 2 are neighbours but not buddies.
    engine.free(keys[1]).unwrap();
    engine.free(keys[2]).unwrap();
    engine.validate();
    assert_eq!(sizes(&engine), [-4, 4, 4, -4]);
    engine.free(keys[3]).unwrap();
    engine.validate();
    assert_eq!(sizes(&engine), [-4, 4, 8]);
    assert!(engine.free(keys[0]).unwrap().region_empty);
    assert_eq!(sizes(&engine), [16]);
}

#[test]
fn alignment_rounds_up() {
    let mut engine = engine(1 << 20, 16);
    assert_eq!(at(&mut engine, 1, 1).2, 16);
    let (key, offset, size) = at(&mut engine, 100, 4096);
    assert_eq!((offset, size), (4096, 4096));
    assert_eq!(engine.region_usage(RegionId(0)).rounding, 15 + 3996);
    engine.free(key).unwrap();
    assert_eq!(engine.usage().rounding, 15);
    engine.reset(RegionId(0));
    engine.validate();
    assert_eq!((engine.usage().rounding, engine.largest_free()), (0, 1 << 20));
}

#[test]
fn the_start_of_a_region_has_every_alignment() {
    let mut engine = Buddy::new(100, 4);
    for capacity in [100, 3, 40] {
        engine.add_region(&capacity).unwrap();
    }
    let at = |engine: &mut Buddy, size, alignment| {
        let granted = engine.allocate(&asked(size, alignment));
        engine.validate();
        granted.map(|(key, span)| (key, span.region.0, span.offset, span.size))
    };
    // No chunk has 128 units, so the engine uses the start of a region. Region 2 has the smallest that is large enough.
    let (a, region, offset, size) = at(&mut engine, 5, 128).unwrap();
    assert_eq!((region, offset, size), (2, 0, 8));
    assert_eq!(engine.usage().rounding, 3);
    let (b, region, offset, size) = at(&mut engine, 5, 1 << 63).unwrap();
    assert_eq!((region, offset, size), (0, 0, 8));
    let before = format!("{engine:?}");
    assert_eq!(at(&mut engine, 1, 128), Err(AllocateError::NoSpace), "region 1 starts with a rest");
    assert_eq!(at(&mut engine, 0, 128), Err(AllocateError::NoSpace));
    assert_eq!(format!("{engine:?}"), before);
    // There are no longer 64 free units in one chunk, and the start of region 0 is used.
    assert_eq!(at(&mut engine, 5, 64), Err(AllocateError::NoSpace));
    assert_eq!(engine.largest_free(), 32);
    engine.free(b).unwrap();
    assert_eq!(
        at(&mut engine, 5, 64).map(|at| (at.1, at.2, at.3)),
        Ok((0, 0, 64)),
        "as large as the alignment"
    );
    engine.free(a).unwrap();
    assert_eq!(at(&mut engine, 33, 128), Err(AllocateError::NoSpace), "64 from the start of region 2");
    assert_eq!(at(&mut engine, 32, 128).map(|at| (at.1, at.2, at.3)), Ok((2, 0, 32)));
    assert_eq!(engine.granted(&asked(5, 1 << 40)), Some(8));
}

#[test]
fn the_rest_of_a_region_is_not_used() {
    let mut engine = engine(7, 8);
    assert_eq!(sizes(&engine), [7]);
    assert_eq!(engine.largest_free(), 0);
    assert_eq!(engine.allocate(&asked(1, 1)), Err(AllocateError::NoSpace));
    engine.reset(RegionId(0));
    engine.validate();
    assert_eq!(engine.remove_region(RegionId(0)), Ok(()));
    engine.validate();
}

#[test]
fn sizes_at_the_upper_end() {
    let mut engine = engine(1 << 63, 1);
    assert_eq!(engine.add_region(&((1 << 63) - 1)), Ok(RegionId(1)));
    assert_eq!(engine.add_region(&1), Err(RegionError::TooMany));
    assert_eq!(engine.allocate(&asked((1 << 63) + 1, 1)), Err(AllocateError::NoSpace));
    assert_eq!(engine.allocate(&asked(u64::MAX, 1)), Err(AllocateError::NoSpace));
    let (key, offset, size) = at(&mut engine, (1 << 62) + 1, 1 << 63);
    assert_eq!((offset, size), (0, 1 << 63));
    assert!(engine.free(key).unwrap().region_empty);
    engine.validate();
}

#[test]
fn the_upper_side_is_refused() {
    let mut engine = engine(64, 1);
    let request = Request { upper: true, ..asked(1, 1) };
    assert_eq!(engine.allocate(&request), Err(AllocateError::UpperUnsupported));
}

#[test]
fn full_regions_stay_full() {
    let mut engine = Buddy::new(64, 1);
    for _ in 0..4 {
        engine.add_region(&64).unwrap();
    }
    let keys: Vec<(Key, Span)> = (0..8).map(|_| engine.allocate(&asked(16, 1)).unwrap()).collect();
    let regions: Vec<u32> = keys.iter().map(|(_, span)| span.region.0).collect();
    assert_eq!(regions, [3, 3, 3, 3, 2, 2, 2, 2], "a region is begun when the one before is full");
    engine.free(keys[1].0).unwrap();
    let (_, span) = engine.allocate(&asked(16, 1)).unwrap();
    assert_eq!(span, keys[1].1, "the hole is smaller than an empty region");
}

#[test]
fn out_of_slots_is_no_space() {
    let mut engine = Buddy::new(1 << 20, 1);
    engine.add_region(&(1 << 20)).unwrap();
    // 20 halvings need 20 slots, and 3 of the 20 are in use.
    engine.chunks.set_max_slots(20);
    let before = format!("{engine:?}");
    assert_eq!(engine.allocate(&asked(1, 1)), Err(AllocateError::NoSpace));
    assert_eq!(engine.add_region(&1), Err(RegionError::TooMany));
    assert_eq!(engine.add_region(&0), Err(RegionError::Capacity { capacity: 0, max: 1 << 20 }));
    assert_eq!(format!("{engine:?}"), before);
    let (key, _) = engine.allocate(&asked(1 << 10, 1)).unwrap();
    engine.validate();
    engine.free(key).unwrap();
    engine.validate();
}

#[test]
#[should_panic(expected = "no region 3")]
fn a_region_that_is_not_there_panics() {
    engine(64, 1).reset(RegionId(3));
}

#[test]
#[should_panic(expected = "smallest chunk")]
fn a_smallest_chunk_of_nothing_panics() {
    let _ = Buddy::new(64, 0);
}
