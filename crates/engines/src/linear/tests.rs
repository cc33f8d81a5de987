use super::entry_pages::PAGE_ENTRIES;
use super::*;
use crate::asked;

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

/// Allocates, and returns the key and the offset.
fn at(engine: &mut Linear, size: u64) -> (Key, u64) {
    let (key, span) = engine.allocate(&asked(size, 1)).unwrap();
    engine.validate();
    assert_eq!(span.size, size);
    (key, span.offset)
}

fn upper(engine: &mut Linear, size: u64, alignment: u64) -> Result<(Key, u64), AllocateError> {
    let granted = engine.allocate(&Request { upper: true, ..asked(size, alignment) });
    engine.validate();
    granted.map(|(key, span)| (key, span.offset))
}

fn free(engine: &mut Linear, key: Key) -> bool {
    let freed = engine.free(key).unwrap();
    engine.validate();
    assert_eq!(engine.free(key), Err(BadKey));
    freed.region_empty
}

/// The chunks of a region: offset, size, and true if used.
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
    assert_eq!(engine.allocate(&asked(11, 1)), Err(AllocateError::NoSpace), "the hole is not used");
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
    let (_, span) = engine.allocate(&asked(10, 64)).unwrap();
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
    assert_eq!(engine.allocate(&asked(11, 1)), Err(AllocateError::NoSpace));
    assert_eq!(upper(&mut engine, 11, 1), Err(AllocateError::NoSpace));
    assert_eq!(upper(&mut engine, 10, 64), Err(AllocateError::NoSpace), "aligned down into the lower side");
    assert_eq!(at(&mut engine, 10).1, 40);
    assert_eq!(engine.largest_free(), 0);
    free(&mut engine, high);
    assert_eq!(upper(&mut engine, 50, 1).map(|granted| granted.1), Ok(50), "the upper side pops too");
    free(&mut engine, low);
    assert_eq!(engine.allocate(&asked(1, 1)), Err(AllocateError::NoSpace), "no wrap under an upper side");
}

#[test]
fn an_upper_side_alone_leaves_the_start() {
    let mut engine = single(100);
    let (high, offset) = upper(&mut engine, 100, 1).unwrap();
    assert_eq!(offset, 0);
    assert_eq!(engine.allocate(&asked(1, 1)), Err(AllocateError::NoSpace));
    assert!(free(&mut engine, high));
    assert_eq!(at(&mut engine, 100).1, 0);
}

#[test]
fn a_ring_goes_round() {
    let mut engine = single(100);
    let mut keys: std::collections::VecDeque<(Key, u64)> = (0..3).map(|_| at(&mut engine, 30)).collect();
    assert_eq!(engine.allocate(&asked(30, 1)), Err(AllocateError::NoSpace));
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
    assert_eq!(engine.allocate(&asked(5, 1)), Err(AllocateError::NoSpace), "and now not any more");
    engine.reset(RegionId(0));
    let (a, b, c) = (at(&mut engine, 30), at(&mut engine, 30), at(&mut engine, 30));
    free(&mut engine, a.0);
    let d = at(&mut engine, 20);
    assert_eq!(d.1, 0);
    assert_eq!(upper(&mut engine, 1, 1), Err(AllocateError::UpperInRing));
    assert_eq!(engine.largest_free(), 10);
    assert_eq!(engine.allocate(&asked(11, 1)), Err(AllocateError::NoSpace));
    assert_eq!(walk(&engine, 0)[..2], [(0, 20, true), (20, 10, false)]);
    // Freeing the only allocation of the second lap ends the ring.
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
    assert_eq!(engine.allocate(&asked(1, 1)), Err(AllocateError::NoSpace));
    free(&mut engine, a.0);
    assert_eq!(at(&mut engine, 60).1, 0);
    free(&mut engine, c.0);
    // No longer a ring.
    assert_eq!(at(&mut engine, 30).1, 60);
}

#[test]
fn many_regions_are_filled_one_after_the_other() {
    let mut engine = many(&[100, 50, 200, 50]);
    let region = |engine: &mut Linear, size| {
        let (key, span) = engine.allocate(&asked(size, 1)).unwrap();
        engine.validate();
        (key, span.region.0, span.offset)
    };
    let a = region(&mut engine, 60);
    let b = region(&mut engine, 50);
    assert_eq!((a.1, a.2), (0, 0), "the smallest that is large enough");
    assert_eq!((b.1, b.2), (3, 0), "the last that was added of these");
    let c = region(&mut engine, 10);
    assert_eq!((c.1, c.2), (1, 0), "region 0 has room, but was left");
    assert_eq!(engine.largest_free(), 200);
    let d = region(&mut engine, 60);
    assert_eq!((d.1, d.2), (2, 0));
    assert_eq!(engine.allocate(&asked(141, 1)), Err(AllocateError::NoSpace));
    assert_eq!(engine.largest_free(), 140);
    // Empties two regions in the middle of the stack, and then the lowest.
    assert!(free(&mut engine, c.0));
    assert!(free(&mut engine, b.0));
    assert!(free(&mut engine, a.0));
    let e = region(&mut engine, 140);
    assert_eq!((e.1, e.2), (2, 60), "the current one first");
    let f = region(&mut engine, 10);
    assert_eq!((f.1, f.2), (3, 0), "then the smallest, the last that was emptied");
    assert_eq!(
        engine.allocate(&Request { upper: true, ..asked(1, 1) }),
        Err(AllocateError::UpperUnsupported)
    );
    // A current region that is empty but too small is left, and may become current again.
    engine.reset(RegionId(2));
    engine.reset(RegionId(3));
    assert_eq!(region(&mut engine, 150).1, 2);
    assert_eq!(region(&mut engine, 51).1, 0);
    assert_eq!(region(&mut engine, 50).1, 3, "opened after region 1");
    engine.reset(RegionId(2));
    assert_eq!(engine.usage().used, 101);
}

#[test]
fn a_stack_over_several_regions() {
    let mut engine = many(&[16, 16]);
    let push = |engine: &mut Linear, count| Vec::from_iter((0..count).map(|_| at(engine, 1).0));
    let mut stack = push(&mut engine, 20);
    for popped in stack.drain(1..).rev() {
        free(&mut engine, popped);
    }
    assert_eq!(engine.largest_free(), 16);
    stack.extend(push(&mut engine, 31));
    assert_eq!(engine.allocate(&asked(1, 1)), Err(AllocateError::NoSpace));
    assert_eq!(engine.usage().used, 32);
}

#[test]
fn what_lies_below_the_current_region_is_current_again() {
    let mut engine = many(&[100, 100, 100]);
    let region = |engine: &mut Linear, size| {
        let (key, span) = engine.allocate(&asked(size, 1)).unwrap();
        engine.validate();
        (key, span.region.0, span.offset)
    };
    let (a, b) = (region(&mut engine, 60), region(&mut engine, 60));
    let (c, d) = (region(&mut engine, 30), region(&mut engine, 60));
    assert_eq!([a.1, b.1, c.1, d.1], [2, 1, 1, 0]);
    // A region that is emptied in the middle of the stack leaves it. The one below is then next to the top.
    assert!(!free(&mut engine, b.0));
    assert!(free(&mut engine, c.0));
    assert!(free(&mut engine, d.0));
    let e = region(&mut engine, 40);
    assert_eq!((e.1, e.2), (2, 60));
    let f = region(&mut engine, 1);
    assert_eq!((f.1, f.2), (0, 0), "the last that was emptied");
    // A reset has the effect of freeing everything.
    engine.reset(RegionId(0));
    engine.validate();
    assert!(!free(&mut engine, e.0));
    assert_eq!(region(&mut engine, 40).1, 2);
    assert_eq!(engine.remove_region(RegionId(0)), Ok(()));
    engine.validate();
    // The lowest region stays current when it is emptied. After its removal, no region is current.
    engine.reset(RegionId(2));
    assert_eq!(region(&mut engine, 1).1, 2);
    engine.reset(RegionId(2));
    assert_eq!(engine.remove_region(RegionId(2)), Ok(()));
    engine.validate();
    assert_eq!(region(&mut engine, 1).1, 1);
}

#[test]
fn ids_of_regions_are_used_again_lowest_first() {
    let mut engine = many(&[6, 10, 10, 10]);
    let (key, _) = at(&mut engine, 5);
    assert_eq!(engine.remove_region(RegionId(0)), Err(NotEmpty));
    for id in [2, 1] {
        assert_eq!(engine.remove_region(RegionId(id)), Ok(()));
        engine.validate();
    }
    assert_eq!(engine.add_region(&7), Ok(RegionId(1)));
    assert_eq!(engine.add_region(&8), Ok(RegionId(2)));
    assert_eq!(engine.add_region(&9), Ok(RegionId(4)));
    assert_eq!(engine.usage().capacity, 6 + 7 + 8 + 10 + 9);
    assert!(free(&mut engine, key));
    assert_eq!(engine.remove_region(RegionId(0)), Ok(()));
    engine.validate();
    assert_eq!(at(&mut engine, 9).1, 0, "nothing is current, the smallest with room is 4");
    assert_eq!(engine.region_usage(RegionId(4)).used, 9);
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
    // The generations of the live keys have gaps of 0 to 12.
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
        assert_eq!(engine.span(key).map(|span| span.offset), Ok(crate::cast::widen(offset)));
    }
    // Frees from the middle outwards, so that each key is found beside holes.
    for n in 0..50 {
        free(&mut engine, kept[50 + n]);
        free(&mut engine, kept[49 - n]);
    }
    assert_eq!(engine.usage().used_chunks, 0);
}

#[test]
fn generations_run_over() {
    let mut engine = single(1000);
    engine.pages.set_generation(u32::MAX);
    let keys: Vec<Key> = (0..4).map(|_| at(&mut engine, 10).0).collect();
    for key in [keys[1], keys[2], keys[0], keys[3]] {
        free(&mut engine, key);
    }
    assert_eq!(engine.usage().used_chunks, 0);
}

#[test]
fn engines_start_far_apart() {
    let engines: Vec<Linear> = (0..100).map(|_| Linear::new(1, Regions::Single)).collect();
    let starts: Vec<u32> = engines.iter().map(|engine| engine.pages.generation()).collect();
    for (n, &a) in starts.iter().enumerate() {
        for &b in &starts[n + 1..] {
            // 100 successive engines start at least 2^32 / 200 apart, if no other test creates engines meanwhile.
            assert!(a.wrapping_sub(b).min(b.wrapping_sub(a)) > u32::MAX / 400);
        }
    }
}

#[test]
fn out_of_slots_is_no_space() {
    let mut engine = single(1000);
    engine.pages.set_max(2);
    let keys: Vec<Key> = (0..2 * PAGE_ENTRIES).map(|_| at(&mut engine, 1).0).collect();
    let before = format!("{engine:?}");
    assert_eq!(engine.allocate(&asked(1, 1)), Err(AllocateError::NoSpace));
    assert_eq!(upper(&mut engine, 1, 1), Err(AllocateError::NoSpace));
    assert_eq!(format!("{engine:?}"), before);
    assert_eq!(engine.largest_free(), 1000 - 64, "units there are");
    // Freeing a slot in the middle does not help. Freeing the last one does.
    free(&mut engine, keys[5]);
    assert_eq!(engine.allocate(&asked(1, 1)), Err(AllocateError::NoSpace));
    free(&mut engine, keys[63]);
    assert_eq!(at(&mut engine, 1).1, 63);

    let mut engine = many(&[64, 1, 1]);
    engine.pages.set_max(2);
    (0..2).for_each(|_| _ = at(&mut engine, 1));
    let before = format!("{engine:?}");
    assert_eq!(engine.allocate(&asked(1, 1)), Err(AllocateError::NoSpace), "for region 0");
    assert_eq!(format!("{engine:?}"), before);
}

/// Alternating frees and allocations stay on the fast path, on either side, with any number of regions.
#[test]
fn an_emptied_side_keeps_a_page() {
    for mut engine in [single(100), many(&[100, 100])] {
        let key = at(&mut engine, 10).0;
        assert!(free(&mut engine, key));
        let held = engine.heap_bytes();
        for round in 0..3 * PAGE_ENTRIES {
            let granted = engine.try_allocate(10, Alignment::ONE, Tag(0));
            let (key, _, offset) = granted.unwrap_or_else(|| panic!("no slot in round {round}"));
            assert_eq!(offset, 0);
            engine.validate();
            assert!(free(&mut engine, key));
        }
        assert_eq!(engine.heap_bytes(), held);
        // The kept page can be filled and reset, and is freed with its region.
        let keys: Vec<Key> = (0..2 * PAGE_ENTRIES).map(|_| at(&mut engine, 1).0).collect();
        keys.into_iter().rev().for_each(|key| _ = free(&mut engine, key));
        engine.reset(RegionId(0));
        engine.validate();
        let key = at(&mut engine, 10).0;
        free(&mut engine, key);
        for region in 0..2 {
            engine.remove_region(RegionId(region)).unwrap();
            engine.validate();
            if !engine.many {
                break;
            }
        }
    }
    let mut engine = single(100);
    let (high, _) = upper(&mut engine, 10, 1).unwrap();
    free(&mut engine, high);
    let held = format!("{:?}", engine.regions[0]);
    for round in 0..3 * PAGE_ENTRIES {
        let (high, offset) = upper(&mut engine, 10, 1).unwrap();
        assert_eq!(offset, 90);
        free(&mut engine, high);
        assert_eq!(format!("{:?}", engine.regions[0]), held, "another page in round {round}");
    }
    // An upper side without entries does not prevent a wrap of the lower one.
    let (low, _) = (at(&mut engine, 50), at(&mut engine, 50));
    free(&mut engine, low.0);
    assert_eq!(at(&mut engine, 40).1, 0);
}

#[test]
fn pages_in_the_middle_are_used_again() {
    let mut engine = single(1 << 20);
    let pages = 100;
    let keys: Vec<Key> = (0..pages * PAGE_ENTRIES).map(|_| at_unchecked(&mut engine)).collect();
    let held = engine.heap_bytes();
    // Frees all but the first and the last, from the middle outwards.
    let (low, high) = keys[1..keys.len() - 1].split_at(keys.len() / 2);
    for &key in low.iter().rev().chain(high) {
        engine.free(key).unwrap();
    }
    engine.validate();
    let more: Vec<Key> = (0..(pages - 2) * PAGE_ENTRIES).map(|_| at_unchecked(&mut engine)).collect();
    assert_eq!(engine.heap_bytes(), held);
    engine.validate();
    for key in more {
        engine.free(key).unwrap();
    }
    assert_eq!(engine.region_usage(RegionId(0)).used_chunks, 2);
    engine.validate();
}

fn at_unchecked(engine: &mut Linear) -> Key {
    engine.allocate(&asked(1, 1)).unwrap().0
}

/// Like the property suite, but with sides of many pages: random frees, checked against the order of allocation.
#[test]
fn sides_of_many_pages() {
    let mut random = 1_u64;
    let mut below = move |limit: usize| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(random >> 33).unwrap() % limit
    };
    for style in 0..6 {
        let mut engine = single(1000);
        // Key, offset and tag. All sizes are 1.
        let mut live: [Vec<(Key, u64, Tag)>; 2] = Default::default();
        for step in 0..6000 {
            let upper = style == 4 && below(2) == 0;
            let tag = Tag(step);
            // Grows and shrinks in turn.
            if below(100) < if step / 500 % 2 == 0 { 70 } else { 35 } {
                let granted = engine.allocate(&Request { upper, tag, ..asked(1, 1) });
                let (lower_end, oldest) =
                    (live[0].last().map_or(0, |at| at.1 + 1), live[0].first().map_or(0, |at| at.1));
                let upper_end = live[1].last().map_or(1000, |at| at.1);
                let is_ring = lower_end <= oldest && !live[0].is_empty();
                let expected = if upper {
                    if lower_end < upper_end { Ok(upper_end - 1) } else { Err(AllocateError::NoSpace) }
                } else if is_ring {
                    if lower_end < oldest { Ok(lower_end) } else { Err(AllocateError::NoSpace) }
                } else if lower_end < upper_end {
                    Ok(lower_end)
                } else if oldest > 0 && live[1].is_empty() {
                    Ok(0)
                } else {
                    Err(AllocateError::NoSpace)
                };
                assert_eq!(granted.map(|(_, span)| span.offset), expected, "style {style}, step {step}");
                if let Ok((key, span)) = granted {
                    live[usize::from(upper)].push((key, span.offset, tag));
                }
            } else {
                let side = &mut live[usize::from(upper)];
                if side.is_empty() {
                    continue;
                }
                let at = match style {
                    0 => 0,
                    1 => side.len() - 1,
                    2 => below(side.len()),
                    3 => [0, side.len() - 1][below(2)],
                    // One of the newest, or one of the oldest.
                    4 => side.len() - 1 - below(40.min(side.len())),
                    _ => below(40.min(side.len())),
                };
                let (key, offset, tag) = side.remove(at);
                assert_eq!(engine.tag(key), Ok(tag));
                assert_eq!(engine.free(key).map(|freed| freed.span.offset), Ok(offset));
                assert_eq!(engine.free(key), Err(BadKey));
            }
            if step % 16 == 0 {
                engine.validate();
                let keys: std::collections::BTreeSet<(u64, u64)> =
                    live.iter().flatten().map(|(key, offset, _)| (*offset, key.0.get())).collect();
                let mut walked = Vec::new();
                engine.walk(RegionId(0), &mut |chunk| {
                    walked.extend(chunk.used.map(|(key, _)| (chunk.offset, key.0.get())));
                });
                assert_eq!(walked, Vec::from_iter(keys), "style {style}, step {step}");
            }
        }
    }
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
        let keys: Vec<Key> = (0..100).map(|_| engine.allocate(&asked(10, 1)).unwrap().0).collect();
        for key in last.drain(..) {
            engine.free(key).unwrap();
        }
        engine.validate();
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
    let (_, span) = engine.allocate(&asked(u64::MAX, 1 << 63)).unwrap();
    assert_eq!((span.offset, span.size), (0, u64::MAX));
    assert_eq!(engine.allocate(&asked(1, 1 << 63)), Err(AllocateError::NoSpace));
    engine.validate();
}

#[test]
fn more_regions_than_16_bits_can_tell_apart() {
    let mut engine = Linear::new(1, Regions::Many);
    let count = 70_000;
    for id in 0..count {
        assert_eq!(engine.add_region(&1), Ok(RegionId(id)));
    }
    let keys: Vec<Key> = (0..count).map(|_| at_unchecked(&mut engine)).collect();
    assert_eq!(engine.allocate(&asked(1, 1)), Err(AllocateError::NoSpace));
    engine.validate();
    for (n, &key) in (1..).zip(&keys) {
        assert_eq!(engine.free(key).map(|freed| freed.span.region), Ok(RegionId(count - n)));
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
