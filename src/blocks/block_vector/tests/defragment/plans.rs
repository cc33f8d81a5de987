//! The choice of moves.

use super::*;

/// Four blocks of 16 allocations, of which every fourth is left. These fit into one block.
#[test]
fn blocks_become_empty() {
    for effort in EFFORTS {
        let fixture = Fixture::new(small_blocks());
        let mut held = fixture.thin_out(fixture.fill(4, 64 * KIB), |at| at % 4 == 0);
        let (emptied, _, _) = fixture.compact(effort, &mut held);
        assert_eq!(emptied, Emptied { blocks: 3, bytes: 3 * MIB }, "{effort:?}");
        assert_eq!(fixture.blocks(), 1);
        fixture.free_all(held);
        fixture.finish();
    }
}

/// The emptiest block is emptied, whichever it is.
#[test]
fn the_emptiest_block_is_the_cheapest() {
    for emptiest in 0..4 {
        let fixture = Fixture::new(small_blocks());
        let mut held = fixture
            .thin_out(fixture.fill(4, 64 * KIB), |at| at / 16 != emptiest && at % 16 != 3 || at % 16 == 5);
        let gone = held
            .iter()
            .find(|it| held.iter().filter(|other| other.grant.memory == it.grant.memory).count() == 1);
        let gone = gone.unwrap().grant.memory;
        let (emptied, passes, moves) = fixture.compact(Effort::Fast, &mut held);
        assert_eq!((emptied.blocks, passes, moves), (1, 1, 1));
        assert!(held.iter().all(|held| held.grant.memory != gone));
        fixture.free_all(held);
        fixture.finish();
    }
}

/// Three blocks, two of them three quarters full: none can become empty, so `Fast` moves nothing.
#[test]
fn fast_copies_nothing_in_vain() {
    let fixture = Fixture::new(small_blocks());
    let mut held = fixture.thin_out(fixture.fill(3, 64 * KIB), |at| at % 4 != 0);
    let before = places(&held);
    assert_eq!(fixture.compact(Effort::Fast, &mut held), (Emptied::default(), 0, 0));
    assert_eq!(places(&held), before);
    // The other efforts fill the fuller blocks.
    let (emptied, _, moves) = fixture.compact(Effort::Balanced, &mut held);
    assert_eq!(emptied.blocks, 0);
    assert!(moves >= 8, "{moves}");
    let in_one = |at: usize| held.iter().filter(|it| it.grant.memory == held[at].grant.memory).count();
    let mut counts: Vec<_> = (0..held.len()).map(in_one).collect();
    counts.sort_unstable();
    counts.dedup();
    assert_eq!(counts, [4, 16], "two are full");
    fixture.free_all(held);
    fixture.finish();
}

/// The emptiest block holds an allocation larger than every hole elsewhere, and stays; the next one is emptied.
#[test]
fn a_block_that_cannot_become_empty_takes_in_others() {
    let fixture = Fixture::new(small_blocks());
    let sizes = [768, 256, 512, 512, 200, 200, 200, 424];
    let held: Vec<_> = sizes.iter().map(|size| fixture.get(size * KIB, 16)).collect();
    assert_eq!(fixture.blocks(), 3);
    let mut held = fixture.thin_out(held, |at| [0, 2, 4, 5, 6].contains(&at));
    let (large, small) = (places(&held[..2]), held[2].grant.memory);
    let (emptied, passes, moves) = fixture.compact(Effort::Fast, &mut held);
    assert_eq!((emptied.blocks, passes, moves), (1, 1, 3));
    assert_eq!(places(&held[..2]), large);
    assert!(held.iter().all(|held| held.grant.memory != small));
    fixture.free_all(held);
    fixture.finish();
}

/// One block with every second allocation: moves down until there is one hole.
#[test]
fn one_block_is_compacted_within() {
    for effort in EFFORTS {
        let fixture = Fixture::new(small_blocks());
        let mut held = fixture.thin_out(fixture.fill(1, 16 * KIB), |at| at % 2 == 1);
        assert_eq!(fixture.vector.extent().largest_free, 16 * KIB);
        let (emptied, _, _) = fixture.compact(effort, &mut held);
        assert_eq!((emptied.blocks, fixture.vector.extent().largest_free), (0, MIB / 2), "{effort:?}");
        let mut offsets: Vec<_> = held.iter().map(|held| held.grant.offset).collect();
        offsets.sort_unstable();
        assert_eq!(offsets, (0..32).map(|at| at * 16 * KIB).collect::<Vec<_>>());
        fixture.free_all(held);
        fixture.finish();
    }
}

/// A large allocation between others, and small holes: `Full` moves it down, `Balanced` does not.
#[test]
fn balanced_leaves_what_does_not_pay() {
    for (effort, is_moved) in [(Effort::Balanced, false), (Effort::Full, true)] {
        let fixture = Fixture::new(small_blocks());
        let sizes = [560, 16, 300, 16, 1, 16, 1, 16, 1, 16, 1, 80];
        let held: Vec<_> = sizes.iter().map(|size| fixture.get(size * KIB, 16)).collect();
        assert_eq!(fixture.blocks(), 1);
        let held = fixture.thin_out(held, |at| at == 2 || at % 2 == 1);
        let mut compaction = fixture.begin(effort);
        let planned = fixture.plan(&mut compaction);
        let sizes: Vec<_> = planned.iter().map(|planned| planned.size / KIB).collect();
        assert_eq!((sizes.contains(&300), sizes.contains(&16)), (is_moved, true), "{sizes:?}");
        fixture.roll_back_all(&planned);
        fixture.vector.end_compaction(&compaction);
        fixture.free_all(held);
        fixture.finish();
    }
}

/// Free space before or after an allocation makes a move pay.
#[test]
fn room_on_either_side_counts() {
    for is_behind in [false, true] {
        let fixture = Fixture::new(small_blocks());
        let mut sizes = vec![160, 40, 80, 60, 40, 1, 40, 1, 40, 1, 40, 1, 40, 1, 479];
        if !is_behind {
            // | hole | used | hole | to move | used ...
            sizes.swap(2, 3);
        }
        let held: Vec<_> = sizes.iter().map(|size| fixture.get(size * KIB, 16)).collect();
        assert_eq!(fixture.blocks(), 1);
        let held = fixture.thin_out(held, |at| ![0, 60, 1].contains(&sizes[at]) && at != 0);
        let mut compaction = fixture.begin(Effort::Balanced);
        let planned = fixture.plan(&mut compaction);
        let moved: Vec<_> = planned.iter().map(|planned| planned.size / KIB).collect();
        assert!(moved.contains(&80), "{moved:?}");
        fixture.roll_back_all(&planned);
        fixture.vector.end_compaction(&compaction);
        fixture.free_all(held);
        fixture.finish();
    }
}

/// The largest allocations are placed first.
#[test]
fn the_largest_get_their_place_first() {
    let fixture = Fixture::new(small_blocks());
    let sizes = [300, 60, 300, 100, 264, 50, 50, 432, 60, 432];
    let held: Vec<_> = sizes.iter().map(|size| fixture.get(size * KIB, 16)).collect();
    assert_eq!(fixture.blocks(), 2);
    let mut held = fixture.thin_out(held, |at| ![1, 3, 7, 9].contains(&at));
    let (emptied, _, moves) = fixture.compact(Effort::Fast, &mut held);
    assert_eq!((emptied.blocks, moves), (1, 3));
    fixture.free_all(held);
    fixture.finish();
}

/// Vectors without blocks, or with any number of empty blocks.
#[test]
fn nothing_is_done_about_nothing() {
    for effort in EFFORTS {
        for min_blocks in 0..4 {
            let fixture = Fixture::new(VectorConfig { min_blocks, ..small_blocks() });
            let (emptied, passes, _) = fixture.compact(effort, &mut []);
            assert_eq!((emptied, passes), (Emptied::default(), 0));
            let mut held = vec![fixture.get(MIB, 16)];
            assert_eq!(fixture.compact(effort, &mut held).1, 0);
            fixture.free_all(held);
            fixture.finish();
        }
    }
}

/// An empty block is not filled, and the minimum number of blocks stays.
#[test]
fn the_first_blocks_stay() {
    let fixture = Fixture::new(VectorConfig { min_blocks: 3, ..small_blocks() });
    let mut held = fixture.thin_out(fixture.fill(4, 64 * KIB), |at| at % 4 == 0);
    let (emptied, _, _) = fixture.compact(Effort::Balanced, &mut held);
    assert_eq!((emptied.blocks, fixture.blocks()), (1, 3));
    let memory = held[0].grant.memory;
    assert!(held.iter().all(|held| held.grant.memory == memory));
    fixture.free_all(held);
    fixture.finish();
}

/// If two blocks become empty, the vector keeps the smaller one.
#[test]
fn the_largest_empty_block_goes() {
    let fixture = Fixture::new(VectorConfig { fixed_block_size: false, empty_blocks_kept: 1, ..config() });
    let size = |held: &Held| fixture.vector.memory_size(held.live()).unwrap();
    let mut held: Vec<Held> = Vec::new();
    while held.last().is_none_or(|last| size(last) < 32 * MIB) {
        held.push(fixture.get(MIB, 16));
    }
    // 4, 8, 16, and 32 MiB. The second stays full, the others nearly empty.
    let mut seen = Vec::new();
    let mut held = fixture.thin_out(held.clone(), |at| {
        let block = size(&held[at]);
        let is_first = !seen.contains(&block);
        block == 8 * MIB && at % 3 != 0 || is_first
    });
    held.iter().for_each(|held| seen.push(size(held)));
    let before = fixture.vector.extent();
    let (emptied, _, _) = fixture.compact(Effort::Fast, &mut held);
    let after = fixture.vector.extent();
    assert_eq!(before.block_bytes - after.block_bytes, emptied.bytes);
    let left: Vec<_> = fixture.walk().iter().map(|&(size, _)| size).collect();
    assert_eq!(after.blocks, 2, "{left:?}");
    assert!(left.contains(&(4 * MIB)), "of those that became empty the smallest is kept: {left:?}");
    fixture.free_all(held);
    fixture.finish();
}

/// Images keep separate pages, and each allocation keeps its alignment.
#[test]
fn alignments_and_pages_are_kept() {
    for effort in EFFORTS {
        let granularity = aligned(4 * KIB);
        let fixture =
            Fixture::new(VectorConfig { granularity, min_alignment: aligned(64), ..small_blocks() });
        let mut random = Random::new(5);
        let mut held = Vec::new();
        while fixture.blocks() < 6 {
            let kind = if random.one_in(2) { BUFFER } else { IMAGE };
            held.push(fixture.allocate(&asked(kind, random.size(15), 1 << random.below(17))).unwrap());
        }
        let keep: Vec<bool> = held.iter().map(|_| random.one_in(4)).collect();
        let mut held = fixture.thin_out(held, |at| keep[at]);
        let (emptied, _, _) = fixture.compact(effort, &mut held);
        assert!(emptied.blocks >= 3, "{effort:?}: {emptied:?}");
        for it in &held {
            let alignment = it.request.alignment.get().max(64);
            assert_eq!(it.grant.offset % alignment, 0, "{it:?}");
            if it.request.whole_pages {
                assert_eq!(it.grant.offset % granularity.get(), 0, "{it:?}");
            }
        }
        fixture.free_all(held);
        fixture.finish();
    }
}

/// With a granularity, images move first, then buffers. Without one, the order is that of the places.
#[test]
fn extensive_moves_kind_by_kind() {
    for (granularity, by_kind) in [(KIB, true), (1, false)] {
        let fixture = Fixture::new(VectorConfig { granularity: aligned(granularity), ..small_blocks() });
        let kinds = [BUFFER, IMAGE, 0];
        let all: Vec<_> =
            (0..64).map(|at| fixture.allocate(&asked(kinds[at % 3], 16 * KIB, 16)).unwrap()).collect();
        let held = fixture.thin_out(all, |at| at % 2 == 1);
        let mut compaction = fixture.begin(Effort::Extensive);
        let planned = fixture.plan(&mut compaction);
        let kinds: Vec<_> = planned.iter().map(|planned| crate::blocks::tag::kind_of(planned.tag)).collect();
        let mut changes = kinds.clone();
        changes.dedup();
        if by_kind {
            assert_eq!(changes, [IMAGE, BUFFER, 0]);
        } else {
            assert!(changes.len() > 3, "{kinds:?}");
        }
        fixture.roll_back_all(&planned);
        fixture.vector.end_compaction(&compaction);
        fixture.free_all(held);
        fixture.finish();
    }
}

/// The same calls give the same plans.
#[test]
fn plans_are_the_same_on_every_run() {
    let run = || {
        let fixture = Fixture::new(small_blocks());
        let mut held = fixture.thin_out(fixture.fill(4, 32 * KIB), |at| at % 3 == 0);
        let _ = fixture.compact(Effort::Full, &mut held);
        let offsets: Vec<_> = held.iter().map(|held| held.grant.offset).collect();
        fixture.free_all(held);
        fixture.finish();
        offsets
    };
    assert_eq!(run(), run());
}

/// Vectors with the linear or buddy algorithm are rejected.
#[test]
fn other_algorithms_are_refused() {
    for algorithm in [Algorithm::Linear, Algorithm::Buddy] {
        let fixture = Fixture::new(VectorConfig { algorithm, ..small_blocks() });
        for _ in 0..2 {
            let refused = fixture.vector.begin_compaction(&fixture.context, None, Effort::Full);
            assert_eq!(refused.unwrap_err(), BeginVectorError::Algorithm(algorithm));
        }
        fixture.finish();
    }
}

/// The emptiest block is the one with the lowest share in use, not with the fewest bytes.
#[test]
fn the_emptiest_block_is_so_by_its_share() {
    let config = VectorConfig { fixed_block_size: false, empty_blocks_kept: 0, ..config() };
    let fixture = Fixture::new(config);
    let size = |held: &Held| fixture.vector.memory_size(held.live()).unwrap();
    let mut held: Vec<Held> = Vec::new();
    while held.last().is_none_or(|last| size(last) < 16 * MIB) {
        held.push(fixture.get(MIB / 2, 16));
    }
    fixture.free(held.pop().unwrap());
    // 3 of 8 in the block of 4 MiB, and 4 of 16 in that of 8 MiB, which holds more bytes.
    let in_small = held.iter().filter(|it| size(it) == 4 * MIB).count();
    assert_eq!((in_small, held.len(), fixture.blocks()), (8, 24, 2));
    let mut held = fixture.thin_out(held, |at| at < 3 || (8..12).contains(&at));
    let (emptied, _, moves) = fixture.compact(Effort::Fast, &mut held);
    assert_eq!((emptied, moves), (Emptied { blocks: 1, bytes: 8 * MIB }, 4));
    assert!(held.iter().all(|it| size(it) == 4 * MIB));
    fixture.free_all(held);
    fixture.finish();
}

/// An allocation at the end of a block gets whole pages at its destination.
#[test]
fn whole_pages_are_had_at_the_destination() {
    let page = 64 * KIB;
    for effort in EFFORTS {
        let block_size = 4 * page + 16 * KIB;
        let fixture = Fixture::new(VectorConfig { granularity: aligned(page), block_size, ..small_blocks() });
        let image = |size| asked(IMAGE, size, 16);
        let sizes = [4 * page, 10 * KIB, 2 * page, 2 * page];
        let [full, last, low, high] = sizes.map(|size| fixture.allocate(&image(size)).unwrap());
        assert_eq!((fixture.blocks(), last.grant.offset), (2, 4 * page), "it ends with its block");
        assert_ne!(last.grant.memory, low.grant.memory);
        fixture.free_all([full, high]);
        let mut held = vec![low, last];
        let (emptied, _, _) = fixture.compact(effort, &mut held);
        assert_eq!(emptied.blocks, 1, "{effort:?}");
        assert_eq!((held[1].grant.memory, held[1].grant.offset % page), (held[0].grant.memory, 0));
        // A buffer does not get the rest of the page.
        let buffer = fixture.allocate(&buffer(10 * KIB)).unwrap();
        assert_ne!(buffer.grant.offset / page, held[1].grant.offset / page, "{effort:?}");
        fixture.free(buffer);
        fixture.free_all(held);
        fixture.finish();
    }
}
