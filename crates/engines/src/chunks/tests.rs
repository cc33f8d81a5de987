//! Cases that the engines' own tests do not reach: both ends of the address space, the limit of slots, foreign keys,
//! and damage that `validate` must find.

use super::*;

fn checked(chunks: &Chunks) -> Vec<u32> {
    let mut free = Vec::new();
    chunks.validate(&|_| (0, 0), &mut |chunk| free.push(chunk));
    free
}

/// Makes a free chunk used.
fn occupy(chunks: &mut Chunks, chunk: u32, tag: Tag) -> (Key, Span) {
    let (addr, size) = chunks.extent(chunk);
    chunks.mark_links(chunk, 0);
    (chunks.occupy(chunk, addr, size, tag), chunks.span_at(addr, size))
}

#[test]
fn cuts_and_joins_keep_the_chain() {
    let mut chunks = Chunks::new(1000);
    let (region, whole) = chunks.add_region(1000).unwrap();
    assert!(chunks.is_whole_region(whole));
    let front = chunks.cut_front(whole, 300);
    let back = chunks.cut_back(whole, 600);
    assert_eq!(checked(&chunks), [front, whole, back]);
    assert!(!chunks.is_whole_region(whole));
    let extents: Vec<_> = chunks.chunks(region).map(|chunk| chunks.extent(chunk)).collect();
    assert_eq!(extents, [(0, 300), (300, 100), (400, 600)]);
    chunks.absorb_next(whole);
    chunks.absorb_prev(whole);
    assert_eq!(checked(&chunks), [whole]);
    assert_eq!(chunks.extent(whole), (0, 1000));
    assert!(chunks.is_whole_region(whole));
}

#[test]
fn regions_of_two_to_the_63_reach_the_last_address() {
    let mut chunks = Chunks::new(1 << 63);
    let (low, _) = chunks.add_region((1 << 63) - 1).unwrap();
    let (high, whole) = chunks.add_region(1 << 63).unwrap();
    assert_eq!((low, high), (RegionId(0), RegionId(1)));
    assert_eq!(chunks.usage().capacity, u64::MAX);
    assert_eq!(chunks.add_region(1), Err(RegionError::TooMany));
    let last = chunks.cut_back(whole, 1);
    assert_eq!(chunks.extent(last), (u64::MAX, 1));
    let (key, span) = occupy(&mut chunks, last, Tag(7));
    assert_eq!(span, Span { region: high, offset: (1 << 63) - 1, size: 1 });
    assert_eq!(chunks.span(key), Ok(span));
    checked(&chunks);
}

#[test]
fn there_are_only_two_regions_of_two_to_the_63() {
    let mut chunks = Chunks::new(1 << 63);
    for _ in 0..2 {
        chunks.add_region(1).unwrap();
    }
    assert_eq!(chunks.add_region(1), Err(RegionError::TooMany));
    chunks.remove_region(RegionId(1));
    assert_eq!(chunks.add_region(1).unwrap().0, RegionId(1));
    checked(&chunks);
}

#[test]
fn the_sum_of_capacities_is_a_u64() {
    let mut chunks = Chunks::new(1 << 63);
    chunks.add_region(1 << 63).unwrap();
    assert_eq!(chunks.add_region(1 << 63), Err(RegionError::TooMany));
    assert_eq!(chunks.add_region((1 << 63) - 1).unwrap().0, RegionId(1));
    checked(&chunks);
}

#[test]
fn regions_of_one_unit() {
    let mut chunks = Chunks::new(1);
    assert_eq!(chunks.shift, 0);
    for id in 0..5 {
        let (region, chunk) = chunks.add_region(1).unwrap();
        assert_eq!(region, RegionId(id));
        assert_eq!((chunks.addr(chunk), chunks.offset(chunk)), (u64::from(id), 0));
    }
    checked(&chunks);
}

#[test]
fn capacity_is_checked() {
    let mut chunks = Chunks::new(1000);
    assert_eq!(chunks.add_region(0), Err(RegionError::Capacity { capacity: 0, max: 1000 }));
    assert_eq!(chunks.add_region(1001), Err(RegionError::Capacity { capacity: 1001, max: 1000 }));
    assert_eq!(chunks.usage(), Usage::default());
    checked(&chunks);
}

#[test]
#[should_panic(expected = "1 to 2^63 units, not 0")]
fn engines_of_nothing_are_refused() {
    Chunks::new(0);
}

#[test]
#[should_panic(expected = "1 to 2^63 units")]
fn engines_of_more_than_two_to_the_63_are_refused() {
    Chunks::new((1 << 63) + 1);
}

#[test]
fn the_lowest_vacant_region_is_used_again() {
    let mut chunks = Chunks::new(16);
    for _ in 0..5 {
        chunks.add_region(16).unwrap();
    }
    for id in [3, 1, 4] {
        chunks.remove_region(RegionId(id));
        checked(&chunks);
    }
    let ids: Vec<_> = (0..4).map(|_| chunks.add_region(8).unwrap().0.0).collect();
    assert_eq!(ids, [1, 3, 4, 5]);
    assert_eq!(chunks.usage().capacity, 2 * 16 + 4 * 8);
    assert_eq!(chunks.regions().count(), 6);
    checked(&chunks);
}

#[test]
#[should_panic(expected = "no region 0")]
fn a_removed_region_is_no_region() {
    let mut chunks = Chunks::new(16);
    chunks.add_region(16).unwrap();
    chunks.remove_region(RegionId(0));
    chunks.region_usage(RegionId(0));
}

#[test]
fn keys_die_with_their_chunk() {
    let mut chunks = Chunks::new(16);
    let (region, whole) = chunks.add_region(16).unwrap();
    let (first, _) = occupy(&mut chunks, whole, Tag(u32::MAX));
    assert_eq!(chunks.tag(first), Ok(Tag(Tag::MASK)));
    assert_eq!(chunks.check_empty(region), Err(NotEmpty));
    let (chunk, freed) = chunks.vacate(first).unwrap();
    assert_eq!(freed, Freed { span: Span { region, offset: 0, size: 16 }, region_empty: true });
    assert_eq!(chunks.vacate(first), Err(BadKey));
    let (second, _) = occupy(&mut chunks, chunk, Tag(0));
    assert_eq!(halves(first).0, halves(second).0);
    assert_eq!(chunks.vacate(first), Err(BadKey));
    assert_eq!(chunks.span(first), Err(BadKey));
    assert_eq!(chunks.tag(first), Err(BadKey));
    assert_eq!(chunks.collapse(region), chunk);
    assert_eq!(chunks.vacate(second), Err(BadKey));
    checked(&chunks);
}

#[test]
fn no_bits_are_a_key_of_a_header_or_of_nothing() {
    let mut chunks = Chunks::new(16);
    let (region, chunk) = chunks.add_region(16).unwrap();
    let header = chunks.prev(chunk);
    for slot in 0..10_u32 {
        for b in [0, 1, region.0] {
            let bits = u64::from(slot) | (u64::from(b) << 32);
            if let Some(bits) = NonZeroU64::new(bits) {
                assert_eq!(chunks.vacate(Key(bits)), Err(BadKey), "slot {slot}, header {header}");
            }
        }
    }
}

#[test]
fn a_key_of_one_engine_is_foreign_to_another() {
    let mut engines = [Chunks::new(16), Chunks::new(16)];
    let keys = engines.each_mut().map(|chunks| {
        let (_, chunk) = chunks.add_region(16).unwrap();
        occupy(chunks, chunk, Tag(0)).0
    });
    assert_eq!(engines[0].vacate(keys[1]), Err(BadKey));
    assert_eq!(engines[1].vacate(keys[0]), Err(BadKey));
    assert!(engines[0].vacate(keys[0]).is_ok());
}

#[test]
fn the_generation_wraps() {
    let mut chunks = Chunks::new(16);
    let (_, chunk) = chunks.add_region(16).unwrap();
    chunks.generation = u32::MAX;
    let (last, _) = occupy(&mut chunks, chunk, Tag(0));
    chunks.vacate(last).unwrap();
    let (wrapped, _) = occupy(&mut chunks, chunk, Tag(0));
    assert_eq!(halves(wrapped).1, 0);
    assert_eq!(chunks.vacate(last), Err(BadKey));
    assert!(chunks.vacate(wrapped).is_ok());
}

#[test]
fn slots_run_out_without_harm() {
    let mut chunks = Chunks::new(16);
    chunks.set_max_slots(6);
    chunks.add_region(16).unwrap();
    chunks.add_region(16).unwrap();
    // Slot 0 and two for each region: one of the six is left.
    assert!(chunks.has_slots(1) && !chunks.has_slots(2) && !chunks.reserve_two());
    assert_eq!(chunks.add_region(16), Err(RegionError::TooMany));
    assert_eq!(chunks.usage().capacity, 32);
    chunks.remove_region(RegionId(0));
    assert!(chunks.has_slots(3) && !chunks.has_slots(4) && chunks.reserve_two());
    assert_eq!(chunks.add_region(16).unwrap().0, RegionId(0));
    checked(&chunks);
}

#[test]
fn growth_leaves_at_most_an_eighth_unused() {
    let mut chunks = Chunks::new(1 << 40);
    let (_, whole) = chunks.add_region(1 << 40).unwrap();
    for _ in 0..50_000 {
        chunks.cut_front(whole, 1);
        let len = chunks.slots.nodes.len();
        assert!(chunks.slots.nodes.capacity() <= len + 64.max(len / 8));
    }
    assert!(chunks.heap_bytes() >= 50_000 * 32);
}

#[test]
fn slots_are_used_again() {
    let mut chunks = Chunks::new(1 << 20);
    let (region, mut whole) = chunks.add_region(1 << 20).unwrap();
    for _ in 0..3 {
        for _ in 0..100 {
            chunks.cut_front(whole, 1);
        }
        whole = chunks.collapse(region);
        assert_eq!(chunks.extent(whole), (0, 1 << 20));
        assert_eq!(checked(&chunks), [whole]);
    }
    // Slot 0, the header, the chunk and 100 more, in batches of 8.
    assert_eq!(chunks.slots.nodes.len(), 1 + 13 * 8);
}

/// Applies `damage` to a small engine, and validates it. The panic must name the invariant.
fn damaged(damage: impl FnOnce(&mut Chunks, u32, u32)) {
    let mut chunks = Chunks::new(64);
    let (_, whole) = chunks.add_region(64).unwrap();
    let front = chunks.cut_front(whole, 16);
    let dead = chunks.cut_back(whole, 16);
    chunks.absorb_next(whole);
    assert_eq!(chunks.slots.dead, dead);
    occupy(&mut chunks, front, Tag(1));
    checked(&chunks);
    damage(&mut chunks, front, whole);
    checked(&chunks);
}

#[test]
#[should_panic(expected = "C1")]
fn damage_c1() {
    damaged(|chunks, front, _| chunks.slots.get_mut(0).b = front);
}

#[test]
#[should_panic(expected = "C2")]
fn damage_c2() {
    damaged(|chunks, front, whole| chunks.slots.get_mut(whole).prev = whole.max(front) + 1);
}

#[test]
#[should_panic(expected = "C2: chunk 3 does not know what is behind it")]
fn damage_c2_mark() {
    damaged(|chunks, front, whole| {
        assert_eq!((front, chunks.slots.get(front).next), (3, whole | TO_FREE));
        chunks.slots.get_mut(front).next = whole;
    });
}

#[test]
#[should_panic(expected = "C3")]
fn damage_c3() {
    damaged(|chunks, _, whole| chunks.slots.get_mut(whole).size -= 1);
}

#[test]
#[should_panic(expected = "C4")]
fn damage_c4() {
    damaged(|chunks, front, _| chunks.slots.get_mut(front).a = slots::DEAD << STATE_SHIFT);
}

#[test]
#[should_panic(expected = "C5: sums of region 0")]
fn damage_c5() {
    damaged(|chunks, _, _| chunks.regions[0].used -= 1);
}

#[test]
#[should_panic(expected = "C5: sums of the engine")]
fn damage_c5_engine() {
    damaged(|chunks, _, _| chunks.used_chunks += 1);
}

#[test]
#[should_panic(expected = "C6")]
fn damage_c6() {
    damaged(|chunks, _, _| chunks.slots.dead = NONE);
}

#[test]
#[should_panic(expected = "C7")]
fn damage_c7() {
    damaged(|chunks, _, _| {
        chunks.add_region(1).unwrap();
        chunks.remove_region(RegionId(1));
        chunks.lowest_vacant = 2;
    });
}

#[test]
#[should_panic(expected = "list")]
fn damage_of_a_list() {
    let mut chunks = Chunks::new(64);
    let (_, whole) = chunks.add_region(64).unwrap();
    let front = chunks.cut_front(whole, 16);
    let mut head = NONE;
    chunks.list_push(&mut head, whole);
    chunks.list_push(&mut head, front);
    chunks.slots.get_mut(whole).a = NONE;
    chunks.validate_list(head, &mut |_| ());
}

#[test]
fn lists_are_linked_both_ways() {
    let mut chunks = Chunks::new(64);
    let (_, whole) = chunks.add_region(64).unwrap();
    let parts: Vec<_> = (0..4).map(|_| chunks.cut_front(whole, 1)).collect();
    let mut head = NONE;
    let list = |chunks: &Chunks, head| {
        let mut list = Vec::new();
        chunks.validate_list(head, &mut |chunk| list.push(chunk));
        list
    };
    chunks.list_push(&mut head, parts[0]);
    chunks.list_push(&mut head, parts[1]);
    chunks.list_insert_behind(parts[1], parts[2]);
    chunks.list_insert_behind(parts[0], parts[3]);
    assert_eq!(list(&chunks, head), [parts[1], parts[2], parts[0], parts[3]]);
    for (gone, left) in [
        (parts[2], vec![parts[1], parts[0], parts[3]]),
        (parts[1], vec![parts[0], parts[3]]),
        (parts[3], vec![parts[0]]),
        (parts[0], vec![]),
    ] {
        chunks.list_remove(&mut head, gone);
        assert_eq!(list(&chunks, head), left);
    }
}

/// The array grows by an eighth: seldom enough to be cheap, and with little unused memory.
#[test]
fn nodes_grow_by_an_eighth() {
    let mut chunks = Chunks::new(1 << 40);
    let (_, whole) = chunks.add_region(1 << 40).unwrap();
    let (mut growths, mut before) = (0, chunks.node_capacity());
    for _ in 0..100_000 {
        chunks.cut_front(whole, 1);
        let (used, capacity) = (chunks.slot_count(), chunks.node_capacity());
        if capacity != before {
            growths += 1;
            before = capacity;
            assert!(capacity <= used + used / 8 + 64, "{capacity} for {used}");
        }
    }
    // Eight growths by 64 nodes, and then by a factor of 9/8 from 512 to 100,000.
    assert!((50..60).contains(&growths), "{growths}");
}
