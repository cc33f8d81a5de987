//! Explicit placement: cases that the model of all engines does not reach.

use super::*;

const MAX: u64 = 1 << 20;

fn engine(regions: usize) -> (Tlsf, Vec<RegionId>) {
    let mut tlsf = Tlsf::exact(MAX);
    let regions = (0..regions).map(|_| tlsf.add_region(&MAX).unwrap()).collect();
    (tlsf, regions)
}

/// Placing something anywhere in an empty region removes it from the list of empty regions.
#[test]
fn an_empty_region_may_be_broken_into() {
    for offset in [0, 1000, MAX - 10] {
        let (mut tlsf, regions) = engine(3);
        let key = tlsf.allocate_at(None, regions[1], offset, 10, Tag(3)).unwrap();
        tlsf.validate();
        assert_eq!(tlsf.span(key), Ok(Span { region: regions[1], offset, size: 10 }));
        assert_eq!(tlsf.tag(key), Ok(Tag(3)));
        assert_eq!(tlsf.allocate(&asked(1, 1)).unwrap().1.region, regions[1]);
        assert!(tlsf.free(key).is_ok());
        tlsf.validate();
    }
}

/// The key belongs to another region, whose free chunk has the same offsets.
#[test]
fn a_key_of_another_region_is_refused() {
    let (mut tlsf, regions) = engine(2);
    let first = tlsf.allocate_at(None, regions[0], 0, 10, Tag(0)).unwrap();
    let second = tlsf.allocate_at(None, regions[1], 0, 10, Tag(0)).unwrap();
    assert_eq!(tlsf.allocate_at(Some(first), regions[1], 10, 10, Tag(0)), None);
    assert_eq!(tlsf.allocate_at(Some(second), RegionId(2), 10, 10, Tag(0)), None);
    tlsf.free(first).unwrap();
    assert_eq!(tlsf.allocate_at(Some(first), regions[0], 10, 10, Tag(0)), None, "it is stale");
    assert!(tlsf.allocate_at(Some(second), regions[1], 10, 10, Tag(0)).is_some());
    assert_eq!(tlsf.allocate_at(None, RegionId(u32::MAX), 0, 1, Tag(0)), None);
    tlsf.validate();
}

/// The next chunk is used, or there is none.
#[test]
fn the_chunk_behind_has_to_be_free() {
    let (mut tlsf, regions) = engine(1);
    let keys: Vec<_> = (0..4).map(|_| tlsf.allocate(&asked(MAX / 4, 1)).unwrap().0).collect();
    for &key in &keys {
        let end = tlsf.span(key).unwrap().offset + MAX / 4;
        assert_eq!(tlsf.allocate_at(Some(key), regions[0], end, 1, Tag(0)), None);
        assert_eq!(tlsf.allocate_at(None, regions[0], 0, 1, Tag(0)), None);
    }
    tlsf.free(keys[0]).unwrap();
    assert!(tlsf.allocate_at(None, regions[0], 0, MAX / 4, Tag(0)).is_some());
    tlsf.validate();
}

/// Large offsets and sizes are refused, and their sums do not overflow.
#[test]
fn what_is_beyond_everything_is_refused() {
    let (mut tlsf, regions) = engine(1);
    for (offset, size) in [(u64::MAX, 1), (1, u64::MAX), (u64::MAX, u64::MAX), (0, 0), (MAX, 1), (MAX - 1, 2)]
    {
        assert_eq!(tlsf.allocate_at(None, regions[0], offset, size, Tag(0)), None, "{size} at {offset}");
    }
    assert!(tlsf.allocate_at(None, regions[0], MAX - 1, 1, Tag(0)).is_some());
    tlsf.validate();
}

/// The index of offsets stays correct.
#[test]
fn the_index_knows_of_it() {
    let (mut tlsf, regions) = engine(1);
    let low = request(16, 1, Strategy::MinOffset);
    let (first, _) = tlsf.allocate(&low).unwrap();
    let key = tlsf.allocate_at(Some(first), regions[0], 32, 16, Tag(0)).unwrap();
    tlsf.validate();
    assert_eq!(tlsf.allocate(&low).unwrap().1.offset, 16);
    assert_eq!(tlsf.allocate(&low).unwrap().1.offset, 48);
    tlsf.free(key).unwrap();
    tlsf.validate();
    assert_eq!(tlsf.allocate(&low).unwrap().1.offset, 32);
}

/// Without free slots, the call fails and changes nothing.
#[test]
fn without_slots_nothing_is_placed() {
    let (mut tlsf, regions) = engine(1);
    let slots = u32::try_from(tlsf.chunks.slot_count()).unwrap();
    tlsf.chunks.set_max_slots(slots);
    let mut before = None;
    let mut placed = 0;
    while let Some(key) = tlsf.allocate_at(before, regions[0], 100 * placed + 50, 10, Tag(0)) {
        before = Some(key);
        placed += 1;
        tlsf.validate();
        assert!(placed < 100);
    }
    tlsf.validate();
    assert!(placed > 1);
}
