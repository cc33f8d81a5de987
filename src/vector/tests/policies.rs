//! Minimum, maximum, growth, oversize requests, thresholds, time.

use super::super::policy::{LiveGrowth, first_to_go};
use super::*;
use sublet_engines::RegionId;

fn fill(vector: &mut Vector, blocks: usize) -> Vec<GrantOf<Numbers, Tlsf>> {
    (0..blocks).map(|_| vector.allocate(&units(64)).unwrap()).collect()
}

#[test]
fn first_blocks_stay() {
    let (desk, mut vector) = vector(Policy { min_blocks: 2, empty_blocks_kept: 0, ..Policy::default() });
    assert_eq!(desk.blocks(), 2);
    fill(&mut vector, 3).into_iter().for_each(|granted| vector.free(granted).unwrap());
    vector.validate();
    assert_eq!((vector.trim(), desk.blocks()), (0, 2));
    drop(vector);
    assert_eq!(desk.blocks(), 0, "what is empty is destroyed with the vector");
}

#[test]
fn live_growth_is_a_part_of_what_is_in_use() {
    let rule = LiveGrowth { step: 4, cap: 64, part: 4 };
    for (needed, live, size) in [
        (1, 0, 4),
        (1, 100, 28),
        (1, 200, 44),
        (1, 100_000, 64),
        (200, 0, 200),
        (66, 100_000, 68),
        (u64::MAX, 0, u64::MAX),
    ] {
        assert_eq!(rule.next(needed, live), size, "{needed} beside {live}");
    }
    let rule = LiveGrowth { step: 4 << 20, cap: 32 << 20, part: 4 };
    let kib = |needed: u64, live: u64| rule.next(needed << 10, live << 20) >> 10;
    assert_eq!([64, 128, 192, 256].map(|live| kib(1, live)), [16 << 10, 24 << 10, 28 << 10, 32 << 10]);
    let large = (48 << 10) + 1;
    assert_eq!([0, 60, 4096].map(|live| kib(large, live)), [large + 63, large + 511, 52 << 10]);
    for units in (0..1000).chain([u64::MAX / 2]) {
        let least = rule.live_of_bound(units);
        assert!(rule.bound(least) >= units, "{units}");
        assert!(least == 0 || rule.bound(least - 1) < units, "{units}");
    }
}

#[test]
fn the_smallest_block_that_is_enough_goes_first() {
    let empty = || (0..).map(RegionId).zip([8, 64, 16, 16]).map(|(region, units)| (units, region));
    let first = |excess| first_to_go(empty(), excess).unwrap().0;
    assert_eq!([1, 8, 9, 17, 64, 65].map(first), [0, 0, 3, 1, 1, 1]);
    assert_eq!(first_to_go(std::iter::empty(), 1), None);
}

#[test]
fn limits_hold() {
    let (desk, mut blocks) = vector(Policy { max_blocks: 2, ..Policy::default() });
    let full = fill(&mut blocks, 2);
    assert_eq!(blocks.allocate(&units(1)), Err(VectorError::Full { blocks: 2, units: 128 }));
    assert_eq!(desk.blocks(), 2);
    full.into_iter().for_each(|granted| blocks.free(granted).unwrap());
    let (_, mut sizes) = vector(Policy { max_units: 190, ..Policy::default() });
    let _full = fill(&mut sizes, 2);
    assert_eq!(sizes.allocate(&units(1)), Err(VectorError::Full { blocks: 2, units: 128 }));
}

#[test]
fn what_is_empty_gives_way_to_the_limit() {
    let (desk, mut vector) =
        vector(Policy { max_units: 192, empty_blocks_kept: 3, idle_collects: None, ..Policy::default() });
    let mut full = fill(&mut vector, 3);
    let kept = full.pop().unwrap();
    full.into_iter().for_each(|granted| vector.free(granted).unwrap());
    assert_eq!(vector.allocate(&units(129)), Err(VectorError::Full { blocks: 3, units: 192 }));
    assert_eq!(desk.blocks(), 3, "none goes where that does not help");
    let large = vector.allocate(&units(100)).unwrap();
    assert_eq!((desk.blocks(), vector.statistics().own_blocks), (2, 1));
    vector.validate();
    vector.free(large).unwrap();
    vector.free(kept).unwrap();
}

#[test]
fn a_fixed_heap_is_a_vector_of_one_block() {
    let (desk, mut vector) = vector(Policy::fixed());
    let all = vector.allocate(&units(64)).unwrap();
    assert!(matches!(vector.allocate(&units(1)), Err(VectorError::Full { .. })));
    vector.free(all).unwrap();
    assert_eq!((vector.trim(), desk.blocks()), (0, 1));
}

#[test]
fn blocks_double_and_oversize_requests_teach_nothing() {
    let (_, mut vector) = growing(Growth { first: 16, preferred: 64 }, Policy::default());
    let mut sizes = Vec::new();
    let mut live = Vec::new();
    for size in [8, 8, 1000, 32, 64, 64] {
        live.push(vector.allocate(&units(size)).unwrap());
        let blocks = vector.blocks().map(|(info, _)| vector.engine().region_usage(info.region).capacity);
        sizes.push(blocks.sum::<u64>());
    }
    assert_eq!(sizes, [16, 16, 1016, 1016 + 64, 1016 + 128, 1016 + 192]);
    assert_eq!(vector.allocate(&units(1 << 21)), Err(VectorError::TooLarge));
    live.into_iter().for_each(|granted| vector.free(granted).unwrap());
    vector.validate();
    assert_eq!((vector.statistics().own_blocks, vector.statistics().blocks), (0, 1));
}

#[test]
fn the_threshold_is_kept_and_the_rest_goes() {
    let (desk, mut vector) = vector(Policy { empty_blocks_kept: 2, ..Policy::default() });
    let full = fill(&mut vector, 5);
    full.into_iter().for_each(|granted| vector.free(granted).unwrap());
    assert_eq!((desk.blocks(), vector.statistics().empty_blocks, desk.resets.get()), (2, 2, 5));
    assert_eq!((vector.trim(), desk.blocks()), (2, 0));
}

#[test]
fn what_is_idle_for_long_goes() {
    let policy = Policy { empty_blocks_kept: 1, idle_collects: Some(2), ..Policy::default() };
    let (desk, mut vector) = vector(policy);
    let clock = crate::retire::Clock::new();
    fill(&mut vector, 3).into_iter().for_each(|granted| vector.free(granted).unwrap());
    for left in [3, 1, 1] {
        vector.collect(&clock).unwrap();
        assert_eq!(desk.blocks(), left);
    }
}

#[test]
fn blocks_of_large_requests_can_be_kept() {
    let (desk, mut vector) = vector(Policy { own_blocks_kept: 1, empty_blocks_kept: 0, ..Policy::default() });
    for _ in 0..2 {
        let (one, other) = (vector.allocate(&units(100)).unwrap(), vector.allocate(&units(100)).unwrap());
        vector.free(one).unwrap();
        vector.free(other).unwrap();
    }
    assert_eq!((desk.blocks(), vector.statistics().created), (1, 3));
}

#[test]
fn a_minimum_above_a_maximum_is_refused() {
    let made = |policy| {
        let desk = Rc::new(Desk::default());
        let numbers = Numbers { desk: Rc::clone(&desk), growth: Growth::fixed(64) };
        let error = BlockVector::new(numbers, Tlsf::exact(64), policy).err();
        assert_eq!(desk.blocks(), 0, "nothing is left");
        error
    };
    let error = PolicyError { min_blocks: 5, max_blocks: 2 };
    let policy = Policy { min_blocks: 5, max_blocks: 2, ..Policy::default() };
    assert_eq!(made(policy), Some(VectorError::Policy(error)));
    assert_eq!(error.to_string(), "at least 5 blocks were asked for, and at most 2");
    // The first blocks are not destroyed to make room for one another.
    let policy = Policy { min_blocks: 5, max_units: 130, ..Policy::default() };
    assert_eq!(made(policy), Some(VectorError::Full { blocks: 2, units: 128 }));
    assert_eq!(made(Policy { min_blocks: 5, max_blocks: 5, max_units: 320, ..Policy::default() }), None);
}

#[test]
fn an_empty_block_that_is_too_small_gives_way_to_the_number() {
    let (desk, mut vector) =
        growing(Growth { first: 16, preferred: 64 }, Policy { max_blocks: 1, ..Policy::default() });
    let small = vector.allocate(&units(8)).unwrap();
    assert_eq!(vector.statistics().units, 16);
    assert_eq!(vector.allocate(&units(60)), Err(VectorError::Full { blocks: 1, units: 16 }), "it is used");
    vector.free(small).unwrap();
    assert_eq!(desk.blocks(), 1, "it is kept");
    let large = vector.allocate(&units(60)).unwrap();
    assert_eq!((desk.blocks(), vector.statistics().units, vector.statistics().created), (1, 64, 2));
    vector.validate();
    vector.free(large).unwrap();
}
