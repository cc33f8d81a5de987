//! Full pools: by the library's own counts, and on drivers that refuse earlier, always, or never.

use ash::vk;
use sublet::sim::DescriptorPoolPolicy;
use sublet_descriptors::{DescriptorKind, LargeSets, TransientError, TransientSetsCreateInfo};

use crate::fixture::*;

#[test]
fn a_driver_that_never_refuses_is_never_asked_for_more_than_there_is() {
    for policy in POLICIES {
        let mut fixture = Fixture::with_policy(policy);
        let layouts = [
            fixture.layout(&[(UNIFORM, 1)]),
            fixture.layout(&[(STORAGE, 3)]),
            fixture.layout(&[(UNIFORM, 2), (STORAGE, 1)]),
            fixture.layout(&[]),
        ];
        let mut sets = fixture.sets(&fixed(16, &[size(UNIFORM, 12), size(STORAGE, 9)]));
        for at in 0..500 {
            allocate(&mut sets, &layouts[at % 4]).unwrap();
        }
        assert_eq!(fixture.gpu.descriptor_pool_overruns(), 0, "{policy:?}");
        assert_eq!(sets.statistics().refusals, 0, "the counts are the driver's own: {policy:?}");
    }
}

#[test]
fn sets_end_before_descriptors_do() {
    let (_rig, layout, mut sets) =
        uniform(Fixture::with_policy(DescriptorPoolPolicy::NeverRefuses), &fixed(4, &[size(UNIFORM, 1000)]));
    many(&mut sets, &layout, 40);
    assert_eq!(sets.statistics().pools, 10);
}

#[test]
fn descriptors_end_before_sets_do() {
    let mut fixture = Fixture::with_policy(DescriptorPoolPolicy::NeverRefuses);
    let layout = fixture.layout(&[(UNIFORM, 5)]);
    let mut sets = fixture.sets(&fixed(1000, &[size(UNIFORM, 12)]));
    many(&mut sets, &layout, 20);
    assert_eq!(sets.statistics().pools, 10);
}

#[test]
fn a_set_larger_than_any_pool_is_refused_before_any_vulkan_call() {
    let mut fixture = Fixture::new();
    let layout = fixture.layout(&[(UNIFORM, 1)]);
    let large = fixture.layout(&[(UNIFORM, 5)]);
    let other = fixture.layout(&[(IMAGE, 1)]);
    let mut sets = fixture.sets(&fixed(8, &[size(UNIFORM, 4)]));
    allocate(&mut sets, &layout).unwrap();
    let calls = fixture.gpu.call_counts();
    for (layout, kind, had) in
        [(&large, DescriptorKind::UniformBuffer, 4), (&other, DescriptorKind::SampledImage, 0)]
    {
        match allocate(&mut sets, layout) {
            Err(TransientError::TooLarge { need, capacity }) => {
                assert_eq!(*need, layout.counts());
                assert_eq!(capacity.get(kind), had);
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(fixture.gpu.call_counts(), calls);
    many(&mut sets, &layout, 3);
    assert_eq!(sets.statistics().sealed, 0, "the current pool is as it was");
}

#[test]
fn a_set_larger_than_any_pool_gets_one_of_its_own_if_it_may() {
    for policy in POLICIES {
        let mut fixture = Fixture::with_policy(policy);
        let large = fixture.layout(&[(UNIFORM, 500)]);
        let small = fixture.layout(&[(UNIFORM, 1)]);
        let info = TransientSetsCreateInfo { large_sets: LargeSets::Grow, ..fixed(8, &[size(UNIFORM, 8)]) };
        let mut sets = fixture.sets(&info);
        many(&mut sets, &small, 4);
        allocate(&mut sets, &large).unwrap();
        many(&mut sets, &small, 4);
        assert_eq!(sets.statistics().pools, 3, "the pool that was current before still is: {policy:?}");
        fixture.drop_recording(&mut sets);
        sets.collect(&fixture.clock).unwrap();
        allocate(&mut sets, &large).unwrap();
        assert_eq!(sets.statistics().pools, 3, "the large pool is used again: {policy:?}");
    }
}

/// The driver reports a full pool `calls` times, although the pool has space.
fn refuse(fixture: &Fixture, calls: u64, result: vk::Result) {
    for call in 0..calls {
        fixture.gpu.faults().fail_nth("vkAllocateDescriptorSets", call, result);
    }
}

const FULL: [vk::Result; 2] = [vk::Result::ERROR_OUT_OF_POOL_MEMORY, vk::Result::ERROR_FRAGMENTED_POOL];

#[test]
fn a_pool_that_refuses_although_it_has_room_is_sealed_and_the_next_one_is_taken() {
    for result in FULL {
        let (fixture, layout, mut sets) = uniform(Fixture::new(), &fixed(8, &[size(UNIFORM, 8)]));
        allocate(&mut sets, &layout).unwrap();
        refuse(&fixture, 1, result);
        allocate(&mut sets, &layout).unwrap();
        let statistics = sets.statistics();
        assert_eq!((statistics.refusals, statistics.sealed, statistics.pools), (1, 1, 2));
        assert_eq!(statistics.live_sets, 2);
        many(&mut sets, &layout, 7);
        assert_eq!(sets.statistics().pools, 2, "the sealed pool gives nothing more, the next one eight");
        allocate(&mut sets, &layout).unwrap();
        assert_eq!(sets.statistics().pools, 3);
    }
}

#[test]
fn a_new_pool_that_refuses_is_an_error_and_no_endless_loop() {
    for result in FULL {
        let (fixture, layout, mut sets) = uniform(Fixture::new(), &fixed(8, &[size(UNIFORM, 8)]));
        allocate(&mut sets, &layout).unwrap();
        fixture.gpu.faults().fail_always("vkAllocateDescriptorSets", result);
        for _ in 0..50 {
            match allocate(&mut sets, &layout) {
                Err(TransientError::Refused { need, capacity, source }) => {
                    assert_eq!(*need, layout.counts());
                    assert_eq!(capacity.total(), 8);
                    assert_eq!((source.call, source.result), ("vkAllocateDescriptorSets", result));
                }
                other => panic!("{other:?}"),
            }
        }
        let statistics = sets.statistics();
        assert_eq!(statistics.pools, 2, "the pool that refused is kept: {statistics:?}");
        assert!(fixture.gpu.calls("vkAllocateDescriptorSets") <= 1 + 50 * 2, "a bounded number of tries");
        fixture.gpu.faults().clear();
        allocate(&mut sets, &layout).unwrap();
        assert_eq!(sets.statistics().pools, 2, "and used, when the driver gives sets from it");
    }
}

#[test]
fn refusals_of_recycled_pools_do_not_make_pools_for_ever() {
    let (fixture, layout, mut sets) = uniform(Fixture::new(), &fixed(8, &[size(UNIFORM, 8)]));
    for _ in 0..5 {
        many(&mut sets, &layout, 24);
        fixture.drop_recording(&mut sets);
        sets.collect(&fixture.clock).unwrap();
    }
    assert_eq!(sets.statistics().pools, 3);
    fixture.gpu.faults().fail_always("vkAllocateDescriptorSets", vk::Result::ERROR_OUT_OF_POOL_MEMORY);
    for _ in 0..50 {
        assert!(matches!(allocate(&mut sets, &layout), Err(TransientError::Refused { .. })));
    }
    assert_eq!(sets.statistics().pools, 4, "one to see whether a new one does better");
    drop(sets);
    fixture.gpu.faults().clear();
}

#[test]
fn other_errors_are_passed_on_and_change_nothing() {
    for result in [
        vk::Result::ERROR_OUT_OF_HOST_MEMORY,
        vk::Result::ERROR_OUT_OF_DEVICE_MEMORY,
        vk::Result::ERROR_DEVICE_LOST,
        vk::Result::ERROR_UNKNOWN,
    ] {
        let (fixture, layout, mut sets) = uniform(Fixture::new(), &fixed(8, &[size(UNIFORM, 8)]));
        // Resumes from the first pool, from the current one, and from the next one.
        for before in [0, 3, 5] {
            many(&mut sets, &layout, before);
            let statistics = sets.statistics();
            refuse(&fixture, 1, result);
            match allocate(&mut sets, &layout) {
                Err(TransientError::Driver { source, .. }) => assert_eq!(source.result, result),
                other => panic!("{other:?}"),
            }
            assert_eq!(sets.statistics(), statistics);
        }
        allocate(&mut sets, &layout).unwrap();
        assert_eq!(sets.statistics().pools, 2);
    }
}
