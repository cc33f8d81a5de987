//! Driver faults that the library knows or does not know.

use sublet::sim::DescriptorQuirk;
use sublet_descriptors::{DescriptorQuirks, TransientSets};

use crate::fixture::*;

/// Runs frames of 20 sets with pools of eight. Returns the sets for inspection.
fn work(fixture: &mut Fixture, frames: u32) -> Held<TransientSets> {
    let layout = fixture.layout(&[(UNIFORM, 1)]);
    let mut sets = fixture.sets(&fixed(8, &[size(UNIFORM, 8)]));
    for _ in 0..frames {
        many(&mut sets, &layout, 20);
        fixture.drop_recording(&mut sets);
        assert_eq!(sets.collect(&fixture.clock), Ok(3));
    }
    sets
}

#[test]
fn a_reset_that_keeps_the_count_of_sets_gives_all_of_the_pool_back() {
    let mut fixture = Fixture::with_quirk(
        DescriptorQuirk::SET_COUNT_SURVIVES_RESET,
        DescriptorQuirks::RESET_KEEPS_SET_COUNT,
    );
    let sets = work(&mut fixture, 30);
    let statistics = sets.statistics();
    assert_eq!((statistics.pools_created, statistics.refusals), (3, 0));
}

#[test]
fn a_driver_that_is_not_known_to_keep_the_count_gets_new_pools_instead_of_errors() {
    let (fixture, layout, mut sets) = uniform(
        Fixture::with_quirk(DescriptorQuirk::SET_COUNT_SURVIVES_RESET, DescriptorQuirks::empty()),
        &fixed(8, &[size(UNIFORM, 8)]),
    );
    for _ in 0..30 {
        many(&mut sets, &layout, 20);
        fixture.drop_recording(&mut sets);
        sets.collect(&fixture.clock).unwrap();
    }
    let statistics = sets.statistics();
    assert!(statistics.pools <= 6, "worn pools are destroyed: {statistics:?}");
    assert_eq!(fixture.live_pools(), u64::try_from(statistics.pools).unwrap());
}

#[test]
fn where_a_reset_leaks_pools_are_made_anew() {
    let (fixture, layout, mut sets) = uniform(
        Fixture::with_quirk(DescriptorQuirk::RESET_LEAKS, DescriptorQuirks::RESET_LEAKS),
        &fixed(8, &[size(UNIFORM, 8)]),
    );
    for _ in 0..30 {
        many(&mut sets, &layout, 20);
        fixture.drop_recording(&mut sets);
        assert_eq!(sets.collect(&fixture.clock), Ok(3));
        assert_eq!(fixture.gpu.leaked_descriptor_sets(), 0);
    }
    assert_eq!(fixture.gpu.calls("vkResetDescriptorPool"), 0);
}

#[test]
fn fragmentation_does_not_come_where_nothing_is_freed() {
    let mut fixture = Fixture::with_quirk(DescriptorQuirk::FRAGMENTS, DescriptorQuirks::FRAGMENTS);
    let sets = work(&mut fixture, 100);
    let statistics = sets.statistics();
    assert_eq!((statistics.refusals, statistics.pools_created), (0, 3));
}
