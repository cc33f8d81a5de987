//! Slack beside used chunks: its amount, its causes, and that it becomes free again.

use super::*;
use crate::cast::narrow;

/// 256 MiB: sizes are rounded up by at most 4095 units, and there may be 256 units of slack before a small chunk.
const BLOCK: u64 = 1 << 28;

fn engine() -> Tlsf {
    let mut tlsf = Tlsf::new(BLOCK);
    tlsf.add_region(&BLOCK).unwrap();
    tlsf
}

#[test]
fn small_engines_have_no_slack() {
    let capacity = (1 << 17) - 1;
    for strategy in STRATEGIES {
        let mut tlsf = Tlsf::new(capacity);
        tlsf.add_region(&capacity).unwrap();
        let (large, span) = tlsf.allocate(&request(capacity - 1, 1, strategy)).unwrap();
        assert_eq!(tlsf.largest_free(), 1);
        assert_eq!(
            (span.offset, tlsf.allocate(&request(1, 1, strategy)).unwrap().1.offset),
            (0, capacity - 1)
        );
        tlsf.free(large).unwrap();
        assert_eq!(tlsf.allocate(&request(capacity - 1, 1, strategy)).unwrap().1.offset, 0);
        tlsf.validate();
    }
}

#[test]
fn exact_strategies_leave_no_slack() {
    for strategy in [Strategy::MinMemory, Strategy::MinOffset] {
        let mut tlsf = engine();
        let mut end = 0;
        for size in [1_000_001, 130_001, 77, 4097] {
            let (_, span) = tlsf.allocate(&request(size, 1, strategy)).unwrap();
            assert_eq!(span.offset, end, "{strategy:?}");
            end += size;
            assert_eq!(tlsf.largest_free(), BLOCK - end);
        }
        let (_, span) = tlsf.allocate(&request(BLOCK - end - 1, 1, strategy)).unwrap();
        assert_eq!((span.offset, tlsf.largest_free()), (end, 1));
        tlsf.validate();
    }
}

#[test]
fn exact_strategies_leave_no_slack_before_a_chunk() {
    for strategy in [Strategy::MinMemory, Strategy::MinOffset] {
        let mut tlsf = engine();
        let offsets = [(156, 1), (2048, 256), (100, 1)]
            .map(|(size, alignment)| tlsf.allocate(&request(size, alignment, strategy)).unwrap().1.offset);
        assert_eq!(offsets, [0, 256, 156], "{strategy:?}");
        tlsf.validate();
    }
}

/// Sizes are rounded up to one of 64 to a power of two, or to a multiple of 4096 units if that is less.
#[test]
fn what_one_leaves_fits_the_next_of_its_class() {
    for (size, rounded) in [(130_000, 130_048), (66_049, 66_560), (100, 100), (1_000_001, 1_003_520)] {
        let mut tlsf = engine();
        // Also covers a chunk that is not the first of its region.
        for start in [0, rounded] {
            let (first, span) = tlsf.allocate(&asked(size, 1)).unwrap();
            let (behind_key, behind) = tlsf.allocate(&asked(5, 1)).unwrap();
            assert_eq!((span.offset, behind.offset), (start, start + rounded));
            let shown: Vec<_> = walked(&tlsf, RegionId(0)).iter().rev().map(|chunk| chunk.size).collect();
            assert_eq!(shown[1], 5);
            assert_eq!(shown[2], if rounded == size { size } else { rounded - size });
            tlsf.free(first).unwrap();
            let (_, again) = tlsf.allocate(&asked(rounded, 1)).unwrap();
            assert_eq!(again.offset, start, "the hole of {size} units");
            tlsf.validate();
            // The next round starts at the offset of this chunk.
            tlsf.free(behind_key).unwrap();
        }
    }
}

#[test]
fn a_rest_is_slack_up_to_a_thirty_second() {
    // A used chunk of 8192 to 16,383 units leaves at most twice 127 units of slack behind it.
    for (rest, is_slack) in [(254, true), (255, false)] {
        let mut tlsf = engine();
        let (hole, _) = tlsf.allocate(&request(8192 + rest, 1, Strategy::MinMemory)).unwrap();
        tlsf.allocate(&request(1, 1, Strategy::MinMemory)).unwrap();
        tlsf.free(hole).unwrap();
        let (_, span) = tlsf.allocate(&asked(8192, 1)).unwrap();
        assert_eq!(span, Span { region: RegionId(0), offset: 0, size: 8192 });
        let (_, next) = tlsf.allocate(&request(100, 1, Strategy::MinMemory)).unwrap();
        assert_eq!(next.offset != 8192, is_slack, "{rest}");
        tlsf.validate();
    }
}

#[test]
fn a_small_rest_before_a_small_chunk_is_slack() {
    for (before, size, is_slack) in [(1, 2048, true), (1, 1024, false), (0, 2048, false)] {
        let mut tlsf = engine();
        tlsf.allocate(&asked(768 + before, 1)).unwrap();
        let used = tlsf.usage().used;
        let (_, span) = tlsf.allocate(&asked(size, 256)).unwrap();
        assert_eq!((span.offset, tlsf.usage().used), (if before == 0 { 768 } else { 1024 }, used + size));
        let (_, next) = tlsf.allocate(&request(64, 1, Strategy::MinMemory)).unwrap();
        assert_eq!(next.offset > span.offset, is_slack || before == 0, "{before} {size}");
        tlsf.validate();
    }
}

/// Slack becomes free with the chunks beside it, in any order of frees. In the end none is left.
#[test]
fn slack_returns() {
    let mut random = Random(17);
    for strategy in [Strategy::Balanced, Strategy::MinTime] {
        let mut tlsf = engine();
        for round in 0..20 {
            let mut live = Vec::new();
            for turn in 0..600 {
                if turn % 3 == 2 {
                    let place = random.place(live.len());
                    tlsf.free(live.swap_remove(place)).unwrap();
                }
                let (size, alignment) = (random.size(6, 18), random.usual_alignment());
                live.push(tlsf.allocate(&request(size, alignment, strategy)).unwrap().0);
            }
            tlsf.validate();
            let free: u64 = free_chunks(&tlsf).iter().map(|&(_, _, size)| size).sum();
            assert_eq!(free, BLOCK - tlsf.usage().used);
            // The slack is less than a 16th of the used units.
            let mut in_chunks = 0;
            tlsf.chunks.validate(&|_| (0, 0), &mut |chunk| in_chunks += tlsf.chunks.size(chunk));
            assert!((free - in_chunks) * 16 < tlsf.usage().used, "round {round}");
            assert!(free > in_chunks, "nothing is left out: this tests nothing");
            while !live.is_empty() {
                let place = random.place(live.len());
                let freed = tlsf.free(live.swap_remove(place)).unwrap();
                assert_eq!(freed.region_empty, live.is_empty());
            }
            assert_eq!(tlsf.largest_free(), BLOCK);
            assert_eq!(walked(&tlsf, RegionId(0)), [ChunkInfo { offset: 0, size: BLOCK, used: None }]);
        }
    }
}

/// After [`Tlsf::free_slack`], the engine is like an exact one: all free units are in chunks, and no two free
/// chunks are neighbours.
#[test]
fn freed_slack_stays_free() {
    let mut random = Random(18);
    for (made, indexed) in
        [(Tlsf::new(BLOCK), false), (Tlsf::new(BLOCK), true), (Tlsf::with_slabs(BLOCK), false)]
    {
        let mut tlsf = made;
        let mut live = Vec::new();
        for _ in 0..2 {
            tlsf.add_region(&BLOCK).unwrap();
        }
        if indexed {
            tlsf.allocate(&request(1000, 1, Strategy::MinOffset)).unwrap();
        }
        for turn in 0..3000 {
            if turn % 3 == 2 {
                let place = random.place(live.len());
                tlsf.free(live.swap_remove(place)).unwrap();
            }
            let (size, alignment) = (random.size(6, 18), random.usual_alignment());
            live.push(tlsf.allocate(&asked(size, alignment)).unwrap().0);
        }
        // Leaves slack at the very end of the second region.
        while tlsf.allocate(&asked(BLOCK / 64 - 77, 1)).is_ok() {}
        let before: Vec<_> = regions(&tlsf).iter().map(|&region| walked(&tlsf, region)).collect();
        assert!(tlsf.free_slack());
        tlsf.validate();
        assert!(tlsf.chunks.slack_chunks().is_empty());
        let after: Vec<_> = regions(&tlsf).iter().map(|&region| walked(&tlsf, region)).collect();
        assert_eq!(before, after, "what is shown is the same");
        assert!(!tlsf.free_slack(), "once");
        for (n, key) in live.into_iter().enumerate() {
            tlsf.free(key).unwrap();
            if n % 64 == 0 {
                tlsf.validate();
            }
        }
        tlsf.validate();
        for _ in 0..1000 {
            tlsf.allocate(&asked(random.size(6, 18), random.usual_alignment())).unwrap();
        }
        assert!(tlsf.chunks.slack_chunks().is_empty());
    }
}

/// Slack stays if there are no nodes for its chunks.
#[test]
fn freeing_slack_needs_nodes() {
    let mut tlsf = engine();
    let (first, _) = tlsf.allocate(&asked(130_000, 1)).unwrap();
    tlsf.allocate(&asked(130_000, 1)).unwrap();
    // Both chunks have slack behind them.
    assert_eq!(tlsf.chunks.slack_chunks().len(), 2);
    tlsf.chunks.set_max_slots(narrow(tlsf.chunks.slot_count()));
    while tlsf.chunks.has_slots(2) {
        tlsf.allocate(&asked(1 << 16, 1)).unwrap();
    }
    assert!(!tlsf.free_slack());
    tlsf.validate();
    tlsf.free(first).unwrap();
    assert!(tlsf.free_slack());
    tlsf.validate();
}

/// Slack before a free chunk stays slack when the empty slab behind that chunk is freed.
#[test]
fn slack_is_no_part_of_the_largest_free_range() {
    let mut tlsf = Tlsf::with_slabs(BLOCK);
    tlsf.add_region(&BLOCK).unwrap();
    let (hole, _) = tlsf.allocate(&asked(200_000, 1)).unwrap();
    let small: Vec<_> = (0..200).map(|_| tlsf.allocate(&asked(1000, 8)).unwrap().0).collect();
    tlsf.free(hole).unwrap();
    let (_, used) = tlsf.allocate(&asked(130_000, 1)).unwrap();
    assert_eq!(used.offset, 0);
    small.into_iter().for_each(|key| assert!(tlsf.free(key).is_ok()));
    let (slabs, free) = tlsf.slab_units();
    assert!(slabs > 0 && slabs == free, "this tests nothing");
    let largest = tlsf.largest_free();
    assert_eq!(largest, BLOCK - 130_048);
    assert_eq!([largest, largest + 1].map(|size| tlsf.fits(&asked(size, 1))), [Ok(true), Ok(false)]);
    assert_eq!(tlsf.allocate(&asked(largest, 1)).unwrap().1.offset, 130_048);
    tlsf.validate();
}

/// A size that is too large to be rounded up to a class reuses the hole of an equal size.
#[test]
fn large_sizes_find_their_own_hole() {
    let mut tlsf = engine();
    let holes: Vec<_> = (0..4)
        .map(|_| {
            let hole = tlsf.allocate(&asked(3_000_123, 1)).unwrap();
            tlsf.allocate(&asked(1 << 16, 1)).unwrap();
            hole
        })
        .collect();
    for (key, _) in &holes {
        tlsf.free(*key).unwrap();
    }
    for (_, span) in holes.iter().rev() {
        assert_eq!(tlsf.allocate(&asked(3_000_123, 1)).unwrap().1, *span);
    }
}

fn damaged(damage: impl FnOnce(&mut Tlsf, u32)) {
    let mut tlsf = engine();
    tlsf.allocate(&asked(8192, 1)).unwrap();
    tlsf.allocate(&asked(8192, 1)).unwrap();
    let second = tlsf.chunks.next(tlsf.chunks.first(RegionId(0)));
    damage(&mut tlsf, second);
    tlsf.validate();
}

/// Moves the start of a used chunk up by `units`.
fn shrink(tlsf: &mut Tlsf, chunk: u32, units: u64) {
    let node = &mut tlsf.chunks.parts_mut().0[crate::cast::index(chunk)];
    node.addr += units;
    node.size -= units;
    tlsf.chunks.shrink_sums(RegionId(0), units);
}

#[test]
fn slack_is_the_sum_of_both_neighbours() {
    // Up to 254 units behind the first chunk, and up to 256 before the second.
    damaged(|tlsf, second| shrink(tlsf, second, 254 + 256));
}

#[test]
#[should_panic(expected = "C3: chunk")]
fn more_is_damage() {
    damaged(|tlsf, second| shrink(tlsf, second, 254 + 257));
}
