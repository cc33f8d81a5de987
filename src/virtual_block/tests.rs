//! The public API over all three engines. The engines have their own tests.

use super::*;
use crate::engine::LEAST_FOR_SLABS;

const ALGORITHMS: [Algorithm; 3] = [Algorithm::Tlsf, Algorithm::Linear, Algorithm::Buddy];

fn block(size: u64, algorithm: Algorithm) -> VirtualBlock {
    VirtualBlock::new(&VirtualBlockCreateInfo { size, algorithm }).unwrap()
}

fn info(size: u64, alignment: u64, user_data: u64) -> VirtualAllocationCreateInfo {
    VirtualAllocationCreateInfo { size, alignment, user_data, ..Default::default() }
}

#[test]
fn sizes_of_blocks_are_checked() {
    for algorithm in ALGORITHMS {
        for size in [0, (1 << 63) + 1, u64::MAX] {
            let made = VirtualBlock::new(&VirtualBlockCreateInfo { size, algorithm });
            assert_eq!(made.err(), Some(VirtualBlockError::Size { size, max: 1 << 63 }));
        }
        for size in [1, 1000, 1 << 63] {
            let block = block(size, algorithm);
            assert_eq!((block.size(), block.algorithm(), block.is_empty()), (size, algorithm, true));
        }
    }
}

#[test]
fn requests_are_checked_and_change_nothing() {
    for algorithm in ALGORITHMS {
        let mut block = block(100, algorithm);
        let kept = block.allocate(&info(16, 0, u64::MAX)).unwrap();
        let before = (block.detailed_statistics(), block.iter().collect::<Vec<_>>());
        assert_eq!(block.allocate(&info(0, 1, 0)), Err(VirtualAllocationError::ZeroSize));
        for alignment in [3, 12, u64::MAX] {
            assert_eq!(
                block.allocate(&info(1, alignment, u64::MAX)),
                Err(VirtualAllocationError::Alignment { alignment })
            );
        }
        for (size, alignment) in [(101, 1), (100, 1), (1 << 63, 1), (u64::MAX, 1), (90, 64)] {
            match block.allocate(&info(size, alignment, u64::MAX)).unwrap_err() {
                VirtualAllocationError::NoSpace { size: asked, alignment: aligned, free, largest_free } => {
                    assert_eq!((asked, aligned, free), (size, alignment, 84));
                    assert_eq!(largest_free, if algorithm == Algorithm::Buddy { 64 } else { 84 });
                }
                other => panic!("{other}"),
            }
        }
        if algorithm != Algorithm::Linear {
            let upper = VirtualAllocationCreateInfo { upper_address: true, ..info(1, 1, 0) };
            assert_eq!(block.allocate(&upper), Err(VirtualAllocationError::UpperUnsupported { algorithm }));
        }
        assert_eq!((block.detailed_statistics(), block.iter().collect::<Vec<_>>()), before);
        block.free(kept).unwrap();
        assert!(block.user_data.is_empty(), "a refused request took a slot");
    }
}

#[test]
fn a_ring_has_no_upper_side() {
    let mut block = block(100, Algorithm::Linear);
    let first = block.allocate(&info(60, 1, 0)).unwrap();
    let second = block.allocate(&info(30, 1, 0)).unwrap();
    block.free(first).unwrap();
    let wrapped = block.allocate(&info(40, 1, 0)).unwrap();
    assert_eq!((second.offset(), wrapped.offset()), (60, 0));
    let upper = VirtualAllocationCreateInfo { upper_address: true, ..info(1, 1, 0) };
    assert_eq!(block.allocate(&upper), Err(VirtualAllocationError::UpperInRing));
    block.free(second).unwrap();
    block.free(wrapped).unwrap();
    let top = block.allocate(&upper).unwrap();
    assert_eq!(top.offset(), 99);
}

/// Covers small values, which the tag stores, and large values, which need a slot.
#[test]
fn user_data_stays_with_its_allocation() {
    let number = |n: u64| if n % 2 == 0 { n } else { n << 40 };
    for algorithm in ALGORITHMS {
        let mut block = block(4096, algorithm);
        let mut live: Vec<_> =
            (0..20).map(|n| (number(n), block.allocate(&info(16, 4, number(n))).unwrap())).collect();
        for turn in 0..100 {
            // Oldest first, which the ring also supports.
            let (user_data, range) = live.remove(0);
            assert_eq!(block.user_data(&range), Ok(user_data));
            block.free(range).unwrap();
            let user_data = number(1000 + turn);
            live.push((user_data, block.allocate(&info(16, 4, user_data)).unwrap()));
            if turn % 7 == 0 {
                for place in [3, 4] {
                    live[place].0 = number(turn);
                    block.set_user_data(&live[place].1, number(turn)).unwrap();
                }
            }
            for (user_data, range) in &live {
                let known = block.info(range).unwrap();
                assert_eq!(
                    (known.user_data, known.offset, known.size),
                    (*user_data, range.offset(), range.size())
                );
            }
            let large = live.iter().filter(|(user_data, _)| *user_data >= 1 << 29).count();
            assert_eq!(block.user_data.slots.len() - block.user_data.vacant.len(), large);
        }
        assert!(block.user_data.slots.len() < 20, "slots are used again");
        let mut expected: Vec<_> = live.iter().map(|(_, range)| block.info(range).unwrap()).collect();
        expected.sort_unstable_by_key(|known| known.offset);
        assert_eq!(block.iter().collect::<Vec<_>>(), expected);
        assert_eq!(block.iter().len(), 20);
    }
}

#[test]
fn the_largest_number_without_a_slot() {
    let mut block = block(64, Algorithm::Tlsf);
    for (user_data, slots) in [(0, 0), ((1 << 29) - 1, 0), (1 << 29, 1), (u64::from(u32::MAX) + 1, 1)] {
        let range = block.allocate(&info(1, 1, user_data)).unwrap();
        assert_eq!((block.user_data(&range), block.user_data.slots.len()), (Ok(user_data), slots));
        block.free(range).unwrap();
    }
}

/// A large block leaves slack for a while, but no request fails because of it.
#[test]
fn a_large_block_is_filled_to_the_last_unit() {
    let size = LEAST_FOR_SLABS;
    let strategies = [Strategy::Balanced, Strategy::MinTime, Strategy::MinMemory, Strategy::MinOffset];
    for strategy in strategies {
        let mut block = block(size, Algorithm::Tlsf);
        let mut left = size;
        for part in [130_001, 5_001, 100_003, 77] {
            let _live = block.allocate(&info(part, 1, 0)).unwrap();
            left -= part;
        }
        let whole = VirtualAllocationCreateInfo { strategy, ..info(left, 1, 0) };
        // The slack lies between the parts.
        let error = block.allocate(&whole).unwrap_err();
        let VirtualAllocationError::NoSpace { free, largest_free, .. } = error else { panic!("{error}") };
        assert_eq!((free, size - 300_000 < largest_free && largest_free < left), (left, true));
        // All of the largest free range can be allocated.
        let last = block.allocate(&info(largest_free, 1, 0)).unwrap();
        let mut rest = left - largest_free;
        while rest != 0 {
            let error = block.allocate(&info(rest, 1, 0)).err();
            let part = match error {
                None => rest,
                Some(VirtualAllocationError::NoSpace { largest_free, .. }) => {
                    let _live = block.allocate(&info(largest_free, 1, 0)).unwrap();
                    largest_free
                }
                Some(error) => panic!("{error}"),
            };
            rest -= part;
        }
        assert_eq!(block.statistics().allocation_bytes, size);
        block.free(last).unwrap();
        block.clear();
        assert_eq!(block.allocate(&info(size, 1, 0)).unwrap().size(), size);
    }
    // A request behind it gets all remaining units, and a request that no block could grant changes nothing.
    let mut block = block(size, Algorithm::Tlsf);
    let _live = block.allocate(&info(130_001, 1, 0)).unwrap();
    assert!(block.allocate(&info(size - 130_000, 1, 0)).is_err());
    assert_eq!(block.allocate(&info(77, 1, 0)).unwrap().offset(), 130_048, "sizes are still rounded up");
    block.clear();
    let _live = block.allocate(&info(130_001, 1, 0)).unwrap();
    assert_eq!(block.allocate(&info(size - 130_001, 1, 0)).unwrap().offset(), 130_001);
}

/// Random sizes, filled repeatedly: ranges do not overlap, and a failed request has no sufficient free range outside
/// slabs.
#[test]
fn a_large_block_refuses_only_what_does_not_fit() {
    let mut random = fastrand::Rng::with_seed(5);
    let mut block = block(LEAST_FOR_SLABS, Algorithm::Tlsf);
    let mut live: Vec<VirtualAllocation> = Vec::new();
    let mut refused = 0;
    for turn in 0..20_000_u64 {
        let exponent = random.u32(4..22);
        let asked =
            info((1 << exponent) + random.u64(0..1 << exponent), 1 << random.u32(0..9), turn << (turn % 40));
        match block.allocate(&asked) {
            Ok(range) => {
                assert_eq!((range.size(), range.offset() % asked.alignment), (asked.size, 0));
                assert_eq!(block.user_data(&range), Ok(asked.user_data));
                live.push(range);
            }
            Err(VirtualAllocationError::NoSpace { largest_free, .. }) => {
                assert!(
                    largest_free < asked.size + asked.alignment - 1,
                    "{asked:?}: {largest_free} in one piece"
                );
                refused += 1;
                for _ in 0..20 {
                    let range = live.swap_remove(random.usize(0..live.len()));
                    block.free(range).unwrap();
                }
            }
            Err(error) => panic!("{error}"),
        }
        if turn % 500 == 0 {
            let mut end = 0;
            block.walk(|range| {
                assert_eq!(range.offset, end);
                end += range.size;
            });
            assert_eq!((end, block.iter().len()), (LEAST_FOR_SLABS, live.len()));
        }
    }
    assert!(refused > 100, "{refused}");
    live.into_iter().for_each(|range| block.free(range).unwrap());
    assert!(block.is_empty() && block.user_data.is_empty());
    assert!(block.allocate(&info(LEAST_FOR_SLABS, 1, 0)).is_ok());
}

#[test]
fn walk_tiles_the_block() {
    for algorithm in ALGORITHMS {
        let mut block = block(1000, algorithm);
        let ranges: Vec<_> = (0..10).map(|n| block.allocate(&info(30, 8, n)).unwrap()).collect();
        for (n, range) in ranges.into_iter().enumerate() {
            if n % 3 == 0 {
                block.free(range).unwrap();
            }
        }
        let (mut end, mut used) = (0, 0);
        block.walk(|range| {
            assert_eq!(range.offset, end);
            assert_ne!(range.size, 0);
            end += range.size;
            used += if range.user_data.is_some() { range.size } else { 0 };
        });
        assert_eq!(end, 1000);
        let statistics = block.detailed_statistics();
        assert_eq!(statistics.statistics, block.statistics());
        assert_eq!(
            (statistics.statistics.allocation_count, statistics.statistics.allocation_bytes),
            (6, used)
        );
        assert_eq!((statistics.statistics.block_count, statistics.statistics.block_bytes), (1, 1000));
        let granted = if algorithm == Algorithm::Buddy { 32 } else { 30 };
        assert_eq!((statistics.allocation_size_min, statistics.allocation_size_max), (granted, granted));
        assert!(statistics.unused_range_count >= 3 && statistics.unused_range_size_max >= 400);
    }
}

#[test]
fn statistics_of_an_empty_block() {
    for algorithm in ALGORITHMS {
        let statistics = block(64, algorithm).detailed_statistics();
        assert_eq!(statistics.allocation_size_min, u64::MAX);
        assert_eq!((statistics.allocation_size_max, statistics.unused_range_count), (0, 1));
        assert_eq!((statistics.unused_range_size_min, statistics.unused_range_size_max), (64, 64));
    }
}

#[test]
fn handles_of_another_block_are_refused_and_given_back() {
    for algorithm in ALGORITHMS {
        let (mut one, mut two) = (block(64, algorithm), block(64, algorithm));
        let range = one.allocate(&info(16, 1, 1)).unwrap();
        let other = two.allocate(&info(16, 1, 2)).unwrap();
        assert_eq!(two.info(&range), Err(VirtualHandleError::ForeignBlock));
        assert_eq!(two.user_data(&range), Err(VirtualHandleError::ForeignBlock));
        assert_eq!(two.set_user_data(&range, 3), Err(VirtualHandleError::ForeignBlock));
        let error = two.free(range).unwrap_err();
        assert_eq!(error.reason, VirtualHandleError::ForeignBlock);
        assert!(error.to_string().ends_with(&error.reason.to_string()), "{error}");
        assert!(error.to_string().contains("16 units at 0"));
        assert_eq!((one.statistics().allocation_count, two.statistics().allocation_count), (1, 1));
        one.free(error.allocation).unwrap();
        assert_eq!(two.user_data(&other), Ok(2));
        two.free(other).unwrap();
        assert!(one.is_empty() && two.is_empty());
    }
}

#[test]
fn clearing_makes_handles_stale() {
    for algorithm in ALGORITHMS {
        let mut block = block(64, algorithm);
        let stale = block.allocate(&info(16, 1, u64::MAX - 1)).unwrap();
        let _also_stale = block.allocate(&info(16, 1, 2)).unwrap();
        block.clear();
        assert!(block.is_empty());
        // The same range and the same slot are reused.
        let fresh = block.allocate(&info(16, 1, u64::MAX)).unwrap();
        assert_eq!(block.user_data.slots.len(), 1);
        assert_eq!(fresh.offset(), stale.offset());
        assert_eq!(block.user_data(&stale), Err(VirtualHandleError::Cleared));
        assert_eq!(block.set_user_data(&stale, u64::MAX - 2), Err(VirtualHandleError::Cleared));
        assert_eq!(block.user_data.slots.len() - block.user_data.vacant.len(), 1);
        let error = block.free(stale).unwrap_err();
        assert_eq!(error.reason, VirtualHandleError::Cleared);
        assert_eq!(block.user_data(&fresh), Ok(u64::MAX));
        block.free(fresh).unwrap();
        // A failed `set_user_data` allocates no slot either.
        let stale = block.allocate(&info(16, 1, 0)).unwrap();
        block.clear();
        assert_eq!(block.set_user_data(&stale, u64::MAX), Err(VirtualHandleError::Cleared));
        assert!(block.user_data.is_empty());
    }
}

#[test]
fn strategies_reach_the_engine() {
    let mut block = block(1 << 16, Algorithm::Tlsf);
    let ranges: Vec<_> =
        (0..8).map(|n| block.allocate(&info(if n == 1 { 2000 } else { 100 }, 1, n)).unwrap()).collect();
    for (n, range) in ranges.into_iter().enumerate() {
        if n == 1 || n == 5 {
            block.free(range).unwrap();
        }
    }
    let mut place = |strategy| {
        let range = block.allocate(&VirtualAllocationCreateInfo { strategy, ..info(100, 1, 0) }).unwrap();
        let offset = range.offset();
        block.free(range).unwrap();
        offset
    };
    assert_eq!(place(Strategy::MinOffset), 100, "the lowest");
    assert_eq!(place(Strategy::MinMemory), 2400, "the exact one");
}
