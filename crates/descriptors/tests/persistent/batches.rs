//! Allocates many sets at once.

use sublet_descriptors::{AllocateDescriptorSetError, DescriptorKind};

use crate::common::{Fixture, allocate, free};

#[test]
fn many_sets_take_one_call_for_each_pool() {
    for fixture in Fixture::all() {
        let layout = fixture.uniform();
        let sets = fixture.sets();
        let one = allocate(&sets, &layout);
        fixture.gpu.reset_calls();
        let many = unsafe { sets.allocate_many(&layout, 1000) }.unwrap();
        sets.validate();
        assert_eq!(many.len(), 1000);
        // 15 sets were free in the first pool. The other pools provide 512 and 473.
        assert_eq!(fixture.gpu.calls("vkAllocateDescriptorSets"), 3);
        assert_eq!(fixture.gpu.calls("vkCreateDescriptorPool"), 2);
        let mut handles: Vec<_> = many.iter().map(|set| set.handle()).collect();
        handles.sort();
        handles.dedup();
        assert_eq!(handles.len(), 1000);
        many.into_iter().chain([one]).for_each(|set| free(&sets, set));
    }
}

#[test]
fn no_sets_are_no_calls() {
    let (_kit, layout, sets) = Fixture::with_sets();
    assert_eq!(unsafe { sets.allocate_many(&layout, 0) }.unwrap(), []);
    assert_eq!(sets.statistics(), Default::default());
}

#[test]
fn all_or_none() {
    for fixture in Fixture::all() {
        let layout = fixture.uniform();
        let sets = fixture.sets_in_pools_of(8);
        let live: Vec<_> = (0..5).map(|_| allocate(&sets, &layout)).collect();
        for fails in 0..4 {
            let before = sets.statistics();
            fixture.gpu.faults().fail_nth(
                "vkCreateDescriptorPool",
                fails,
                ash::vk::Result::ERROR_DEVICE_LOST,
            );
            let error = unsafe { sets.allocate_many(&layout, 40) }.unwrap_err();
            assert!(matches!(error, AllocateDescriptorSetError::NoPool { sets: 1..=8, .. }), "{error:?}");
            sets.validate();
            assert_eq!(sets.statistics().live_sets, before.live_sets);
        }
        live.into_iter().for_each(|set| free(&sets, set));
    }
}

#[test]
fn a_batch_takes_ready_sets_first() {
    let fixture = Fixture::new();
    let layout = fixture.layout(&[(DescriptorKind::SampledImage, 2)]);
    let sets = fixture.sets();
    let many = unsafe { sets.allocate_many(&layout, 10) }.unwrap();
    let mut handles: Vec<_> = many.iter().map(|set| set.handle()).collect();
    many.into_iter().for_each(|set| free(&sets, set));
    fixture.gpu.reset_calls();
    let again = unsafe { sets.allocate_many(&layout, 10) }.unwrap();
    assert_eq!(fixture.gpu.call_counts(), []);
    let mut same: Vec<_> = again.iter().map(|set| set.handle()).collect();
    handles.sort();
    same.sort();
    assert_eq!(handles, same);
    again.into_iter().for_each(|set| free(&sets, set));
}
