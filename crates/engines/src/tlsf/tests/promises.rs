//! The promises of the documentation.

use super::*;
use crate::cast::index;
use crate::chunks::LOOKS;
use crate::tlsf::bins::LARGEST_LOOKS;
use crate::tlsf::search::{HARD_LOOKS, LAST_LOOKS, LAST_REGION_LOOKS, LOW_LOOKS};

#[test]
fn a_used_region_is_filled_before_an_empty_one_is_cut() {
    for strategy in [Strategy::Balanced, Strategy::MinTime, Strategy::MinMemory] {
        let mut tlsf = Tlsf::new(1 << 20);
        for capacity in [1 << 10, 1 << 20, 1 << 15, 1 << 12] {
            tlsf.add_region(&capacity).unwrap();
        }
        let mut regions_used = Vec::new();
        for _ in 0..1000 {
            let (_, span) = tlsf.allocate(&request(100, 4, strategy)).unwrap();
            if regions_used.last() != Some(&span.region.0) {
                regions_used.push(span.region.0);
            }
        }
        // Uses the smallest empty region first.
        assert_eq!(regions_used, [0, 3, 2, 1], "{strategy:?}");
    }
}

/// Fills a region except for holes of these sizes.
fn region_with_holes(tlsf: &mut Tlsf, holes: &[u64]) {
    let region = tlsf.add_region(&(1 << 17)).unwrap();
    let mut granted = |size| tlsf.allocate_outside(&asked(size, 1), &|other| other != region).unwrap().0;
    let keys: Vec<_> = holes.iter().map(|&size| (granted(size), granted(1))).collect();
    granted((1 << 17) - holes.iter().map(|size| size + 1).sum::<u64>());
    for (hole, _) in keys {
        tlsf.free(hole).unwrap();
    }
}

#[test]
fn last_region_fills_the_last_region_that_has_room() {
    let mut tlsf = Tlsf::exact(1 << 17);
    for holes in [&[1000][..], &[2000, 1200], &[500]] {
        region_with_holes(&mut tlsf, holes);
    }
    tlsf.add_region(&(1 << 17)).unwrap();
    let mut place = |size| {
        let (_, span) = tlsf.allocate(&request(size, 1, Strategy::LastRegion)).unwrap();
        (span.region.0, span.offset)
    };
    // The empty region comes last.
    assert_eq!([1000; 5].map(&mut place), [(1, 2001), (1, 0), (1, 1000), (0, 0), (3, 0)]);
    assert_eq!([500; 2].map(&mut place), [(3, 1000), (3, 1500)]);
    tlsf.validate();
}

#[test]
fn last_region_checks_a_fixed_number_of_chunks() {
    let mut tlsf = Tlsf::exact(1 << 17);
    region_with_holes(&mut tlsf, &vec![1000; index(LAST_REGION_LOOKS) + 1]);
    region_with_holes(&mut tlsf, &[5000]);
    // 1001 is of the same class, and none of the holes that are checked is large enough.
    for (size, region) in [(1000, 0), (1001, 1), (1000, 0), (1000, 1)] {
        let (_, span) = tlsf.allocate(&request(size, 1, Strategy::LastRegion)).unwrap();
        assert_eq!(span.region.0, region, "{size} units");
    }
    tlsf.validate();
}

/// The chunk of a single region is in the bins, even if the region is empty. With several regions, empty ones are not.
#[test]
fn an_only_region_is_in_the_bins_whether_it_is_empty_or_not() {
    for used in [0, 100, 1000] {
        let mut tlsf = Tlsf::exact(1000);
        let first = tlsf.add_region(&1000).unwrap();
        let is_listed = |tlsf: &Tlsf| tlsf.bins.find(0).is_some();
        assert!(is_listed(&tlsf));
        let key = (used > 0).then(|| tlsf.allocate(&asked(used, 1)).unwrap().0);
        let second = tlsf.add_region(&1000).unwrap();
        tlsf.validate();
        assert_eq!(is_listed(&tlsf), used == 100, "no empty one is, of two");
        tlsf.remove_region(second).unwrap();
        tlsf.validate();
        assert_eq!(is_listed(&tlsf), used < 1000);
        if let Some(key) = key {
            let third = tlsf.add_region(&1000).unwrap();
            assert!(tlsf.free(key).unwrap().region_empty);
            assert!(!is_listed(&tlsf), "both are empty");
            tlsf.validate();
            tlsf.remove_region(first).unwrap();
            tlsf.validate();
            assert_eq!(tlsf.allocate(&asked(1000, 1)).unwrap().1.region, third);
        }
        tlsf.validate();
    }
}

/// A lone chunk that is repeatedly allocated and freed keeps its place, and does not need the slow path.
#[test]
fn an_only_chunk_stays_on_the_fast_path() {
    let mut tlsf = Tlsf::new(1 << 28);
    tlsf.add_region(&(1 << 28)).unwrap();
    for size in [1 << 14, 1 << 20, 1 << 28] {
        let alignment = Alignment::new(65_536).unwrap();
        let (key, _, offset) = tlsf.try_allocate(size, alignment, Tag(1)).unwrap();
        assert_eq!(offset, 0);
        assert_eq!(tlsf.take_back(key), Some((RegionId(0), true)));
        assert_eq!(tlsf.largest_free(), 1 << 28);
        tlsf.validate();
    }
}

#[test]
fn the_smallest_empty_region_that_fits_is_cut() {
    let mut tlsf = Tlsf::new(1 << 20);
    for capacity in [1000, 900, 600, 800, 700, 1 << 20, 2000] {
        tlsf.add_region(&capacity).unwrap();
        tlsf.validate();
    }
    let regions: Vec<_> = [650, 850, 1000, 1500, 600, 700]
        .map(|size| tlsf.allocate(&asked(size, 1)).unwrap().1.region.0)
        .into();
    assert_eq!(regions, [4, 1, 0, 6, 2, 3]);
}

#[test]
fn a_small_empty_region_is_found_behind_equal_ones() {
    let mut tlsf = Tlsf::new(1 << 10);
    for capacity in [800, 900, 900, 900] {
        tlsf.add_region(&capacity).unwrap();
    }
    assert_eq!(tlsf.allocate(&asked(750, 1)).unwrap().1.region.0, 0);
}

#[test]
fn an_empty_region_of_exactly_the_size_is_found() {
    for alignment in [1, 16, 1 << 12, 1 << 16] {
        for strategy in STRATEGIES {
            let mut tlsf = Tlsf::new(1 << 16);
            // Many chunks that are one unit too small, all in used regions.
            for _ in 0..3 * HARD_LOOKS {
                tlsf.add_region(&(1 << 16)).unwrap();
                tlsf.allocate(&asked((1 << 16) - 1006, 1)).unwrap();
            }
            assert_eq!(tlsf.largest_free(), 1006);
            tlsf.add_region(&1007).unwrap();
            let (_, span) = tlsf.allocate(&request(1007, alignment, strategy)).unwrap();
            assert_eq!((span.region.0, span.offset), (3 * HARD_LOOKS, 0));
            tlsf.validate();
        }
    }
}

#[test]
fn an_alignment_above_the_region_is_good_at_its_start_only() {
    for strategy in STRATEGIES {
        let mut tlsf = Tlsf::new(1000);
        for _ in 0..3 {
            tlsf.add_region(&1000).unwrap();
        }
        for alignment in [1 << 10, 1 << 11, 1 << 40, 1 << 63] {
            let keys: Vec<_> = (0..3)
                .map(|_| {
                    let (key, span) = tlsf.allocate(&request(100, alignment, strategy)).unwrap();
                    assert_eq!(span.offset, 0);
                    key
                })
                .collect();
            assert_eq!(tlsf.allocate(&request(1, alignment, strategy)), Err(AllocateError::NoSpace));
            tlsf.validate();
            for key in keys {
                tlsf.free(key).unwrap();
                tlsf.validate();
            }
        }
    }
}

#[test]
fn the_start_of_a_used_region_is_found_for_a_high_alignment() {
    let mut tlsf = Tlsf::new(1000);
    let first = tlsf.add_region(&1000).unwrap();
    let (low, _) = tlsf.allocate(&asked(500, 1)).unwrap();
    tlsf.allocate(&asked(100, 1)).unwrap();
    tlsf.free(low).unwrap();
    assert_eq!(tlsf.allocate(&asked(501, 1 << 20)), Err(AllocateError::NoSpace));
    let (_, span) = tlsf.allocate(&asked(500, 1 << 20)).unwrap();
    assert_eq!((span.region, span.offset), (first, 0));
    tlsf.validate();
}

#[test]
fn sizes_up_to_two_to_the_63() {
    let mut tlsf = Tlsf::new(1 << 63);
    let low = tlsf.add_region(&((1 << 63) - 1)).unwrap();
    let high = tlsf.add_region(&(1 << 63)).unwrap();
    let (all, span) = tlsf.allocate(&asked(1 << 63, 1 << 63)).unwrap();
    assert_eq!(span, Span { region: high, offset: 0, size: 1 << 63 });
    assert_eq!(tlsf.allocate(&asked(1 << 63, 1)), Err(AllocateError::NoSpace));
    tlsf.free(all).unwrap();
    for strategy in STRATEGIES {
        let mut keys = Vec::new();
        // Holes of 2^39 units and more, and alignments up to half of a region.
        for (size, alignment) in
            [(1 << 39, 1 << 62), (3 << 40, 1), (1 << 62, 1 << 62), (7, 1 << 50), (1 << 41, 1)]
        {
            let (key, span) = tlsf.allocate(&request(size, alignment, strategy)).unwrap();
            assert_eq!(span.offset % alignment, 0);
            keys.push(key);
            tlsf.validate();
        }
        for key in keys.into_iter().rev() {
            tlsf.free(key).unwrap();
            tlsf.validate();
        }
    }
    assert_eq!(tlsf.largest_free(), 1 << 63);
    assert_eq!(tlsf.region_usage(low).used, 0);
    assert_eq!(tlsf.allocate(&asked((1 << 63) + 1, 1)), Err(AllocateError::NoSpace));
    assert_eq!(tlsf.allocate(&asked(u64::MAX, 1)), Err(AllocateError::NoSpace));
}

#[test]
fn no_size_is_no_space_and_the_upper_side_is_refused() {
    for strategy in STRATEGIES {
        let mut tlsf = Tlsf::new(64);
        assert_eq!(tlsf.allocate(&request(1, 1, strategy)), Err(AllocateError::NoSpace), "no region yet");
        tlsf.add_region(&64).unwrap();
        assert_eq!(tlsf.allocate(&request(0, 1, strategy)), Err(AllocateError::NoSpace));
        assert_eq!(tlsf.allocate(&request(65, 1, strategy)), Err(AllocateError::NoSpace));
        let upper = Request { upper: true, ..request(1, 1, strategy) };
        assert_eq!(tlsf.allocate(&upper), Err(AllocateError::UpperUnsupported));
        assert_eq!(tlsf.usage().used_chunks, 0);
        tlsf.validate();
    }
}

#[test]
fn what_was_freed_last_is_used_first() {
    let mut tlsf = Tlsf::new(1 << 20);
    tlsf.add_region(&(1 << 20)).unwrap();
    let keys: Vec<_> = (0..20).map(|_| tlsf.allocate(&asked(1000, 1)).unwrap()).collect();
    for place in [2, 8, 4] {
        tlsf.free(keys[place].0).unwrap();
    }
    for strategy in [Strategy::Balanced, Strategy::MinMemory] {
        let again = [4, 8, 2].map(|place| {
            let (key, span) = tlsf.allocate(&request(1000, 1, strategy)).unwrap();
            assert_eq!(span, keys[place].1, "{strategy:?}");
            key
        });
        for key in again.into_iter().rev() {
            tlsf.free(key).unwrap();
        }
    }
}

#[test]
fn balanced_takes_the_hole_of_the_size_and_min_time_does_not_look_for_it() {
    for (strategy, place) in [(Strategy::Balanced, 0), (Strategy::MinTime, 2)] {
        let mut tlsf = Tlsf::new(1 << 16);
        tlsf.add_region(&(1 << 16)).unwrap();
        // 1001 is in the middle of its class. Only chunks of the classes above are sure to fit.
        let holes = [1001, 5000, 1100].map(|size| {
            let hole = tlsf.allocate(&asked(size, 1)).unwrap();
            tlsf.allocate(&asked(1, 1)).unwrap();
            hole
        });
        for (key, _) in holes {
            tlsf.free(key).unwrap();
        }
        let (_, span) = tlsf.allocate(&request(1001, 1, strategy)).unwrap();
        assert_eq!(span.offset, holes[place].1.offset, "{strategy:?}");
        // Uses the next class above, because the class of the size has no chunk that is large enough.
        let (_, span) = tlsf.allocate(&request(1003, 1, strategy)).unwrap();
        assert_eq!(
            span.offset,
            if place == 0 { holes[2].1.offset } else { holes[1].1.offset },
            "{strategy:?}"
        );
    }
}

#[test]
fn balanced_looks_only_at_what_is_sure_where_the_alignment_is_above_the_size() {
    for (alignment, takes_the_hole) in [(4096, true), (8192, false)] {
        let mut tlsf = Tlsf::new(1 << 28);
        tlsf.add_region(&(1 << 28)).unwrap();
        let (hole, span) = tlsf.allocate(&asked(4096, 8192)).unwrap();
        tlsf.allocate(&asked(1, 1)).unwrap();
        tlsf.free(hole).unwrap();
        let (_, found) = tlsf.allocate(&asked(4096, alignment)).unwrap();
        assert_eq!(found.offset == span.offset, takes_the_hole, "{alignment}");
    }
}

#[test]
fn min_offset_takes_what_is_just_sure() {
    let mut tlsf = Tlsf::new(1 << 20);
    tlsf.add_region(&(1 << 20)).unwrap();
    // Chunks that are large enough but misaligned.
    let mut holes = Vec::new();
    for _ in 0..LOW_LOOKS {
        tlsf.allocate(&asked(1, 1)).unwrap();
        holes.push(tlsf.allocate(&asked(64, 1)).unwrap());
    }
    tlsf.allocate(&asked(1, 1)).unwrap();
    let (sure, span) = tlsf.allocate(&asked(64 + 63, 1)).unwrap();
    tlsf.allocate(&asked(1, 1)).unwrap();
    for (key, span) in holes {
        assert_ne!(span.offset % 64, 0);
        tlsf.free(key).unwrap();
    }
    tlsf.free(sure).unwrap();
    let (_, found) = tlsf.allocate(&request(64, 64, Strategy::MinOffset)).unwrap();
    assert_eq!(found.offset, span.offset.next_multiple_of(64));
}

#[test]
fn min_memory_takes_the_smallest_of_a_class() {
    let mut tlsf = Tlsf::new(1 << 16);
    tlsf.add_region(&(1 << 16)).unwrap();
    // One class: 1024 to 1039.
    let sizes = [1030, 1028, 1035, 1026, 1039, 1027];
    assert!(sizes.iter().all(|&size| class_of(size) == class_of(1025)));
    let holes = sizes.map(|size| {
        let hole = tlsf.allocate(&asked(size, 1)).unwrap();
        tlsf.allocate(&asked(1, 1)).unwrap();
        hole
    });
    for (key, _) in holes {
        tlsf.free(key).unwrap();
    }
    let (_, span) = tlsf.allocate(&request(1025, 1, Strategy::MinMemory)).unwrap();
    assert_eq!(span.offset, holes[3].1.offset);
    let (_, span) = tlsf.allocate(&request(1029, 1, Strategy::MinMemory)).unwrap();
    assert_eq!(span.offset, holes[0].1.offset);
}

/// Many chunks of sufficient size are misaligned. They are listed before the one that fits.
#[test]
fn no_space_is_answered_after_a_bounded_search_only() {
    for decoys in [LAST_LOOKS - 1, LAST_LOOKS] {
        for strategy in STRATEGIES {
            let mut tlsf = Tlsf::exact(1 << 23);
            tlsf.add_region(&(1 << 23)).unwrap();
            let mut holes = Vec::new();
            // A chunk of 4096 at a multiple of 4096, then chunks of the same size at odd offsets.
            holes.push(tlsf.allocate(&asked(4096, 4096)).unwrap().0);
            for _ in 0..decoys {
                tlsf.allocate(&asked(1, 1)).unwrap();
                holes.push(tlsf.allocate(&asked(4096, 1)).unwrap().0);
            }
            let rest = tlsf.largest_free();
            tlsf.allocate(&asked(rest, 1)).unwrap();
            for key in holes {
                tlsf.free(key).unwrap();
            }
            let wanted = request(4096, 4096, strategy);
            let is_found = decoys < LAST_LOOKS || strategy == Strategy::MinOffset;
            assert_eq!(tlsf.fits(&wanted).unwrap(), decoys < LAST_LOOKS, "{strategy:?}");
            assert_eq!(tlsf.allocate(&wanted).is_ok(), is_found, "{strategy:?}");
            // The second request checks the other chunks.
            assert_eq!(tlsf.allocate(&wanted).is_ok(), !is_found, "{strategy:?}");
            tlsf.validate();
        }
    }
}

/// The chunk at which the next search would start may have left the lists, or may no longer exist.
#[test]
fn a_look_goes_on_only_in_what_is_listed() {
    // One region has many holes of 4096 units, one of them aligned. Another region has one misaligned hole. In the list
    // of these holes, the aligned one is the last but one, after that of the other region.
    let holes = || {
        let mut tlsf = Tlsf::exact(1 << 23);
        let grant = |tlsf: &mut Tlsf, size, alignment| tlsf.allocate(&asked(size, alignment)).unwrap().0;
        let fill = |tlsf: &mut Tlsf, aligned: bool, others: u32| {
            let region = tlsf.add_region(&(1 << 23)).unwrap();
            let mut keys = Vec::new();
            keys.extend(aligned.then(|| grant(tlsf, 4096, 4096)));
            for _ in 0..others {
                grant(tlsf, 1, 1);
                keys.push(grant(tlsf, 4096, 1));
            }
            let rest = tlsf.largest_free();
            grant(tlsf, rest, 1);
            (region, keys)
        };
        let (region, mut keys) = fill(&mut tlsf, true, LAST_LOOKS);
        let (_, mut other) = fill(&mut tlsf, false, 1);
        keys.swap(0, 1);
        keys.insert(2, other.remove(0));
        keys.into_iter().for_each(|key| assert!(tlsf.free(key).is_ok()));
        let wanted = asked(4096, 4096);
        assert!(tlsf.allocate(&wanted).is_err() && !tlsf.has_looked_at_all());
        (tlsf, region, wanted)
    };
    let (mut tlsf, region, wanted) = holes();
    assert!(tlsf.allocate_outside(&wanted, &|closed| closed == region).is_err(), "it is closed");
    tlsf.validate();

    let (mut tlsf, region, wanted) = holes();
    tlsf.reset(region);
    assert_eq!(tlsf.allocate(&asked(1 << 23, 1)).unwrap().1.region, region);
    assert!(tlsf.allocate(&wanted).is_err() && tlsf.has_looked_at_all());
    tlsf.validate();
}

/// Only some of the holes of sufficient size are aligned. The engine finds each of them.
#[test]
fn the_last_holes_that_are_aligned_are_found() {
    let size = 4352;
    let mut tlsf = Tlsf::new(1 << 26);
    tlsf.add_region(&(1 << 26)).unwrap();
    let keys: Vec<_> = std::iter::from_fn(|| Some(tlsf.allocate(&asked(size, 256)).ok()?.0)).collect();
    for key in keys.iter().step_by(2) {
        tlsf.free(*key).unwrap();
    }
    let aligned = free_chunks(&tlsf).into_iter().filter(|&chunk| fits(chunk, 4096, 4096)).count();
    assert!(aligned > 900, "{aligned}");
    let found = std::iter::from_fn(|| tlsf.allocate(&asked(4096, 4096)).ok()).count();
    assert_eq!(found, aligned);
    tlsf.validate();
}

/// `NoSpace` is wrong in less than one of a thousand cases, in a region that is kept as full as possible.
#[test]
fn no_space_is_hardly_ever_wrong() {
    let mut random = Random(5);
    let mut tlsf = Tlsf::new(1 << 26);
    tlsf.add_region(&(1 << 26)).unwrap();
    let mut live = Vec::new();
    let (mut refused, mut wrong) = (0, 0);
    for _ in 0..20_000 {
        let (size, alignment) = (random.size(8, 20), random.usual_alignment());
        match tlsf.allocate(&asked(size, alignment)) {
            Ok((key, _)) => live.push(key),
            Err(_) => {
                refused += 1;
                wrong += u32::from(free_chunks(&tlsf).iter().any(|&chunk| fits(chunk, size, alignment)));
                for _ in 0..2 {
                    let place = random.place(live.len());
                    tlsf.free(live.swap_remove(place)).unwrap();
                }
            }
        }
    }
    assert!(refused > 5000, "the region is not full: {refused}");
    assert!(wrong * 1000 <= refused, "{wrong} of {refused}");
}

/// Keeps `live` allocations and replaces one at random, `turns` times, in regions of 2^`log2` units. Returns the engine
/// and the peak of the used units.
fn churned(live: usize, turns: usize, log2: u32, strategy: Strategy) -> (Tlsf, u64) {
    let mut random = Random(3);
    let mut tlsf = Tlsf::new(1 << log2);
    let mut keys = Vec::new();
    let mut peak = 0;
    for _ in 0..live + turns {
        if keys.len() == live {
            let place = random.place(live);
            tlsf.free(keys.swap_remove(place)).unwrap();
        }
        let alignment = random.usual_alignment();
        // Drivers report sizes that are multiples of the alignment.
        let size = random.size(8, 20).next_multiple_of(alignment);
        let request = request(size, alignment, strategy);
        let (key, _) = tlsf.allocate(&request).unwrap_or_else(|_| {
            tlsf.add_region(&(1 << log2)).unwrap();
            tlsf.allocate(&request).unwrap()
        });
        keys.push(key);
        peak = peak.max(tlsf.usage().used);
    }
    tlsf.validate();
    (tlsf, peak)
}

#[test]
fn packing_and_host_memory() {
    for (strategy, most_percent) in [
        (Strategy::Balanced, 110),
        (Strategy::MinTime, 112),
        (Strategy::MinMemory, 110),
        (Strategy::MinOffset, 116),
    ] {
        let (live, turns) = (10_000, 60_000);
        let (tlsf, peak) = churned(live, turns, 24, strategy);
        let percent = tlsf.usage().capacity * 100 / peak;
        assert!(percent <= most_percent, "{strategy:?}: {percent} percent of the peak is reserved");
        if strategy != Strategy::MinOffset {
            let bytes = tlsf.heap_bytes() / live;
            assert!(bytes <= 64, "{strategy:?}: {bytes} bytes for each allocation");
        }
    }
}

#[test]
fn a_warm_engine_takes_no_more_host_memory() {
    let (mut tlsf, _) = churned(1_000, 10_000, 24, Strategy::MinOffset);
    let warm = tlsf.heap_bytes();
    for _ in 0..3 {
        for region in regions(&tlsf) {
            tlsf.reset(region);
        }
        let mut keys = Vec::new();
        for _ in 0..300 {
            keys.push(tlsf.allocate(&request(1000, 16, Strategy::MinOffset)).unwrap().0);
        }
        for region in regions(&tlsf).into_iter().skip(1) {
            tlsf.remove_region(region).unwrap();
            tlsf.add_region(&(1 << 24)).unwrap();
        }
        assert_eq!(tlsf.heap_bytes(), warm);
    }
}

#[test]
fn slots_run_out_without_harm() {
    let mut tlsf = Tlsf::new(64);
    tlsf.chunks.set_max_slots(8);
    tlsf.add_region(&64).unwrap();
    let mut keys = Vec::new();
    while let Ok((key, _)) = tlsf.allocate(&asked(1, 4)) {
        keys.push(key);
        tlsf.validate();
    }
    assert!(!keys.is_empty() && keys.len() < 8);
    assert_eq!(tlsf.add_region(&64), Err(RegionError::TooMany));
    for key in keys {
        tlsf.free(key).unwrap();
        tlsf.validate();
    }
    assert!(tlsf.allocate(&asked(1, 4)).is_ok());
}

#[test]
fn an_index_that_is_built_late_is_one_that_was_kept() {
    let mut random = Random(11);
    let mut late = Tlsf::new(1 << 16);
    let mut early = Tlsf::new(1 << 16);
    early.build_index();
    let mut live: Vec<(Key, Key)> = Vec::new();
    for tlsf in [&mut late, &mut early] {
        tlsf.add_region(&(1 << 16)).unwrap();
        tlsf.add_region(&1000).unwrap();
    }
    for _ in 0..2000 {
        if random.below(100) < 48 && !live.is_empty() {
            let place = random.place(live.len());
            let (in_late, in_early) = live.swap_remove(place);
            assert_eq!(late.free(in_late), early.free(in_early));
        } else {
            let request = asked(random.size(0, 9), 1 << random.below(8));
            match (late.allocate(&request), early.allocate(&request)) {
                (Ok((in_late, span)), Ok((in_early, same))) => {
                    assert_eq!(span, same);
                    live.push((in_late, in_early));
                }
                (late, early) => assert_eq!(late.map(drop), early.map(drop)),
            }
        }
    }
    late.build_index();
    late.validate();
    early.validate();
    // A treap of the same slots always has the same shape.
    let free: Vec<u32> = regions(&early)
        .into_iter()
        .flat_map(|region| early.chunks.chunks(region))
        .filter(|&chunk| early.chunks.is_free(chunk))
        .collect();
    let rebuilt = OffsetIndex::new(&early.chunks);
    assert_eq!(early.index.unwrap().shape(&free), rebuilt.shape(&free));
}

#[test]
fn an_index_is_shallow() {
    let (tlsf, _) = churned(3_000, 30_000, 24, Strategy::Balanced);
    let index = OffsetIndex::new(&tlsf.chunks);
    let free = free_chunks(&tlsf).len();
    assert!(free > 1000);
    // A random tree is about 2 * log2(n) deep. Twice that would be a defect.
    assert!(index.depth() <= 4 * free.ilog2(), "{} of {free}", index.depth());
}

#[test]
fn debug_is_short() {
    let (tlsf, _) = churned(100, 100, 24, Strategy::Balanced);
    let debug = format!("{tlsf:?}");
    assert!(debug.contains("Tlsf") && debug.contains("used_chunks: 100") && debug.len() < 300, "{debug}");
}

/// The cost does not grow with the number of chunks, because every failed request of a full pool reads this figure.
#[test]
fn the_largest_chunk_is_found_in_a_fixed_number_of_looks() {
    let chunks = u64::from(LARGEST_LOOKS) + 2;
    let mut tlsf = Tlsf::new(1 << 16);
    tlsf.add_region(&(200 * chunks)).unwrap();
    // All chunks are in one class. The first one freed is the largest, and the last in the list.
    let size = |chunk| if chunk == 0 { 129 } else { 128 };
    let keys: Vec<_> = (0..chunks)
        .map(|chunk| {
            let key = tlsf.allocate(&asked(size(chunk), 1)).unwrap().0;
            tlsf.allocate(&asked(1, 1)).unwrap();
            key
        })
        .collect();
    let rest = tlsf.largest_free();
    tlsf.allocate(&asked(rest, 1)).unwrap();
    for (freed, key) in (1..).zip(keys) {
        tlsf.free(key).unwrap();
        let exact = freed <= u64::from(LARGEST_LOOKS);
        assert_eq!(tlsf.largest_free(), if exact { 129 } else { 128 }, "after {freed}");
    }
    tlsf.validate();
}

/// A request larger than any free chunk fails without visiting free chunks. It counts as a complete search.
#[test]
fn a_refusal_of_what_is_too_large_looks_at_no_chunk() {
    for strategy in [Strategy::Balanced, Strategy::MinTime, Strategy::MinMemory] {
        let mut tlsf = Tlsf::exact(1 << 20);
        tlsf.add_region(&(1 << 20)).unwrap();
        let keys: Vec<_> = (0..1024).map(|_| tlsf.allocate(&asked(1024, 1)).unwrap().0).collect();
        keys.into_iter().step_by(2).for_each(|key| _ = tlsf.free(key).unwrap());
        let before = LOOKS.get();
        assert_eq!(tlsf.allocate(&request(2048, 1, strategy)), Err(AllocateError::NoSpace));
        // Two node accesses: slot 0 as the head of an empty list, and the first dead node.
        assert!(LOOKS.get() - before <= 2, "{strategy:?}: {} looks", LOOKS.get() - before);
        assert!(tlsf.has_looked_at_all());
    }
}

/// A free searches nothing: the links name the neighbours and their places in the lists.
#[test]
fn a_free_looks_at_a_few_chunks_however_many_are_free() {
    let looks_of = |chunks: u64| {
        let mut tlsf = Tlsf::exact(chunks);
        tlsf.add_region(&chunks).unwrap();
        // With a second region, the first one leaves the bins when its last chunk is freed. That free counts too.
        tlsf.add_region(&1).unwrap();
        let keys: Vec<Key> = (0..chunks).map(|_| tlsf.allocate(&asked(1, 1)).unwrap().0).collect();
        let is_even = |key: &Key| tlsf.span(*key).unwrap().offset % 2 == 0;
        let (even, odd): (Vec<_>, Vec<_>) = keys.into_iter().partition(is_even);
        for key in even {
            tlsf.free(key).unwrap();
        }
        // Each of these merges with a free chunk on either side.
        let most = odd.into_iter().map(|key| {
            let before = LOOKS.get();
            tlsf.free(key).unwrap();
            LOOKS.get() - before
        });
        most.max().unwrap()
    };
    let (few, many) = (looks_of(16), looks_of(1 << 14));
    assert!(few > 0 && many <= few + 8, "{few} looks among few, {many} among many");
}
