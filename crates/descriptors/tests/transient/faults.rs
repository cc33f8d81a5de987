//! Every fallible call fails in turn. The request fails as a whole or succeeds in another way, and nothing is left
//! behind.

use std::error::Error;

use ash::vk;
use sublet_descriptors::{
    CreateDescriptorPoolError, CreateTransientSetsError, TransientError, TransientSets,
    TransientSetsCreateInfo,
};

use crate::fixture::*;

const RESULTS: [vk::Result; 6] = [
    vk::Result::ERROR_OUT_OF_HOST_MEMORY,
    vk::Result::ERROR_OUT_OF_DEVICE_MEMORY,
    vk::Result::ERROR_DEVICE_LOST,
    vk::Result::ERROR_FRAGMENTATION,
    vk::Result::ERROR_OUT_OF_POOL_MEMORY,
    vk::Result::ERROR_UNKNOWN,
];

/// Asserts that the driver's result is the last source of the error.
fn ends_with(error: &(dyn Error + 'static), result: vk::Result) {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    assert_eq!(error.downcast_ref::<vk::Result>(), Some(&result), "{error}");
}

#[test]
fn pools_for_the_start_are_all_made_or_none() {
    let fixture = Fixture::new();
    for result in RESULTS {
        for nth in 0..5 {
            let info = TransientSetsCreateInfo { min_pools: 5, ..fixed(4, &[size(UNIFORM, 4)]) };
            fixture.gpu.faults().fail_nth("vkCreateDescriptorPool", nth, result);
            let before = fixture.gpu.calls("vkDestroyDescriptorPool");
            match TransientSets::new(&fixture.device, &info) {
                Err(error @ CreateTransientSetsError::Pool { .. }) => ends_with(&error, result),
                other => panic!("{other:?}"),
            }
            assert_eq!(fixture.gpu.calls("vkDestroyDescriptorPool") - before, nth);
        }
    }
}

/// Runs three frames of 20 sets with pools of eight, each reset once. Returns the errors.
fn work(
    fixture: &Fixture,
    sets: &mut TransientSets,
    layout: &sublet_descriptors::SetLayout,
) -> Vec<vk::Result> {
    let mut failed = Vec::new();
    for _ in 0..3 {
        for _ in 0..20 {
            if let Err(error) = allocate(sets, layout) {
                match error {
                    TransientError::Driver { source, .. } | TransientError::Refused { source, .. } => {
                        failed.push(source.result);
                    }
                    TransientError::Pool { source: CreateDescriptorPoolError::Driver { source, .. } } => {
                        failed.push(source.result);
                    }
                    other => panic!("{other:?}"),
                }
            }
        }
        fixture.drop_recording(sets);
        if let Err(error) = sets.collect(&fixture.clock) {
            failed.push(error.source.unwrap().result);
            assert_eq!(error.left, 1);
        }
    }
    failed
}

#[test]
fn each_call_fails_in_turn_and_everything_goes_on() {
    for call in ["vkCreateDescriptorPool", "vkAllocateDescriptorSets", "vkResetDescriptorPool"] {
        for result in RESULTS {
            for nth in 0..60 {
                let info = TransientSetsCreateInfo { min_pools: 0, ..fixed(8, &[size(UNIFORM, 8)]) };
                let (fixture, layout, mut sets) = uniform(Fixture::new(), &info);
                fixture.gpu.faults().fail_nth(call, nth, result);
                let failed = work(&fixture, &mut sets, &layout);
                fixture.gpu.faults().clear();
                let statistics = sets.statistics();
                let refused = u64::from(result == vk::Result::ERROR_OUT_OF_POOL_MEMORY);
                assert!(failed.len() <= 1, "{failed:?}");
                assert_eq!(
                    statistics.sets_allocated
                        + u64::from(failed.len() == 1 && call != "vkResetDescriptorPool"),
                    60
                );
                assert!(statistics.pools <= 4, "{statistics:?}");
                assert!(statistics.refusals <= refused);
                // The next `collect` repeats the failed reset.
                sets.collect(&fixture.clock).unwrap();
                let statistics = sets.statistics();
                assert_eq!((statistics.live_sets, statistics.free_pools), (0, statistics.pools));
                let live = fixture.live_pools();
                assert_eq!(live, u64::try_from(statistics.pools).unwrap(), "{call} {nth} {result:?}");
                drop(sets.release());
                assert_eq!(fixture.live_pools(), 0);
                fixture.gpu.assert_silent();
                if fixture.gpu.calls(call) <= nth {
                    break;
                }
            }
        }
    }
}

#[test]
fn a_pool_that_was_not_reset_is_not_used_and_is_tried_again() {
    let (fixture, layout, mut sets) = uniform(Fixture::new(), &fixed(8, &[size(UNIFORM, 8)]));
    many(&mut sets, &layout, 24);
    fixture.drop_recording(&mut sets);
    fixture.gpu.faults().fail_nth("vkResetDescriptorPool", 1, vk::Result::ERROR_OUT_OF_HOST_MEMORY);
    let error = sets.collect(&fixture.clock).unwrap_err();
    assert_eq!((error.collected, error.left), (2, 1));
    ends_with(&error, vk::Result::ERROR_OUT_OF_HOST_MEMORY);
    assert_eq!(sets.statistics().free_pools, 2);
    many(&mut sets, &layout, 16);
    assert_eq!(sets.statistics().pools, 3);
    assert_eq!(sets.collect(&fixture.clock), Ok(1));
}

#[test]
fn a_driver_that_resets_nothing_any_more_loses_nothing() {
    let (fixture, layout, mut sets) = uniform(Fixture::new(), &fixed(8, &[size(UNIFORM, 8)]));
    fixture.gpu.faults().fail_always("vkResetDescriptorPool", vk::Result::ERROR_DEVICE_LOST);
    for frame in 1..=4 {
        many(&mut sets, &layout, 24);
        fixture.drop_recording(&mut sets);
        assert_eq!(sets.collect(&fixture.clock).unwrap_err().left, 3 * frame);
    }
    assert_eq!(sets.trim(), 10, "destroying does what resetting would");
    drop(sets.release());
}

#[test]
fn dropped_with_sets_that_the_device_may_use_pools_are_left_alone() {
    let (mut fixture, layout, mut sets) = uniform(Fixture::new(), &fixed(8, &[size(UNIFORM, 8)]));
    let set = allocate(&mut sets, &layout).unwrap();
    fixture.gpu.hold_submissions(true);
    fixture.submit(&layout, &[set]);
    sets.flush(fixture.open()).unwrap();
    drop(sets.release());
    fixture.gpu.assert_silent();
    assert_eq!(fixture.live_pools(), 1, "the spare had no sets");
    fixture.gpu.hold_submissions(false);
    drop(fixture.release());
}
