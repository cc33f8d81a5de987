//! Every driver call fails in turn, once and permanently.

use ash::vk;
use sublet_descriptors::{
    AllocateDescriptorSetError, CreateDescriptorPoolError, DescriptorSet, PersistentSetsCreateInfo,
};

use crate::common::{Allocated, Fixture, Sets, allocate, free};

const RESULTS: [vk::Result; 6] = [
    vk::Result::ERROR_OUT_OF_HOST_MEMORY,
    vk::Result::ERROR_OUT_OF_DEVICE_MEMORY,
    vk::Result::ERROR_OUT_OF_POOL_MEMORY,
    vk::Result::ERROR_FRAGMENTED_POOL,
    vk::Result::ERROR_FRAGMENTATION,
    // A result that the specification does not allow here.
    vk::Result::ERROR_UNKNOWN,
];
const CALLS: [&str; 4] =
    ["vkCreateDescriptorPool", "vkAllocateDescriptorSets", "vkFreeDescriptorSets", "vkResetDescriptorPool"];

/// Growth, batches, reuse, other layouts in the same pools, empty pools. A failed allocation takes nothing.
fn script(fixture: &Fixture, sets: &Sets) -> (usize, Vec<DescriptorSet>) {
    let layouts = [fixture.uniform(), fixture.uniform()];
    let (mut live, mut failed): (Vec<DescriptorSet>, _) = (Vec::new(), 0);
    let mut take = |live: &mut Vec<DescriptorSet>, layout: usize, many: u32| {
        let before = sets.statistics();
        let result = if many == 1 {
            unsafe { sets.allocate(&layouts[layout]) }.map(|set| vec![set])
        } else {
            unsafe { sets.allocate_many(&layouts[layout], many) }
        };
        sets.validate();
        match result {
            Ok(more) => {
                assert_eq!(more.len(), usize::try_from(many).unwrap());
                live.extend(more);
            }
            Err(_) => {
                failed += 1;
                assert_eq!(sets.statistics().live_sets, before.live_sets);
            }
        }
    };
    for round in 0..3 {
        take(&mut live, 0, 1);
        take(&mut live, 0, 20);
        take(&mut live, 1, 3);
        while live.len() > round {
            free(sets, live.swap_remove(live.len() / 2));
        }
        take(&mut live, 1, 7);
        while live.len() > 3 {
            free(sets, live.pop().unwrap());
        }
        take(&mut live, 0, 5);
        live.drain(..).for_each(|set| free(sets, set));
        take(&mut live, 1, 6);
        live.drain(..).for_each(|set| free(sets, set));
    }
    (failed, live)
}

#[test]
fn whichever_call_fails_once_nothing_is_lost() {
    for call in CALLS {
        for result in RESULTS {
            for nth in 0..12 {
                let fixture = Fixture::new();
                let sets = fixture.sets_in_pools_of(8);
                fixture.gpu.faults().fail_nth(call, nth, result);
                let (failed, live) = script(&fixture, &sets);
                assert!(failed <= 1, "one call failed, {failed} allocations did: {call} {nth} {result}");
                live.into_iter().for_each(|set| free(&sets, set));
                assert_eq!(sets.statistics().live_sets, 0);
            }
        }
    }
}

#[test]
fn whichever_call_fails_always_every_allocation_ends() {
    for call in CALLS {
        for result in RESULTS {
            let fixture = Fixture::new();
            let sets = fixture.sets_in_pools_of(8);
            fixture.gpu.faults().fail_always(call, result);
            let (failed, live) = script(&fixture, &sets);
            let needed = matches!(call, "vkCreateDescriptorPool" | "vkAllocateDescriptorSets");
            assert_eq!(failed, if needed { 18 } else { 0 }, "{call} {result}");
            live.into_iter().for_each(|set| free(&sets, set));
            assert!(!needed || fixture.gpu.live().descriptor_pools == 0, "pools that gave nothing are kept");
            fixture.gpu.faults().clear();
            let (failed, _) = script(&fixture, &sets);
            assert_eq!(failed, 0, "it goes on once the driver does: {call} {result}");
        }
    }
}

#[test]
fn a_fresh_pool_that_refuses_is_an_error_and_is_not_kept() {
    for result in [vk::Result::ERROR_OUT_OF_POOL_MEMORY, vk::Result::ERROR_FRAGMENTED_POOL] {
        let (fixture, layout, sets) = Fixture::with_sets();
        fixture.gpu.faults().fail_always("vkAllocateDescriptorSets", result);
        let error = unsafe { sets.allocate(&layout) }.unwrap_err();
        let AllocateDescriptorSetError::FreshPoolRefused { counts, source } = error else {
            panic!("{error:?}");
        };
        assert_eq!((counts, source.result), (layout.counts(), result));
        assert_eq!(fixture.gpu.calls("vkAllocateDescriptorSets"), 1, "it is asked once");
        assert_eq!(fixture.gpu.live().descriptor_pools, 0);
    }
}

#[test]
fn where_a_large_pool_is_refused_a_small_one_does() {
    let (fixture, layout, sets) = Fixture::with_sets();
    let result = vk::Result::ERROR_OUT_OF_DEVICE_MEMORY;
    fixture.gpu.faults().fail_nth("vkCreateDescriptorPool", 0, result);
    let set = allocate(&sets, &layout);
    assert_eq!(sets.statistics().capacity, 1);
    free(&sets, set);
}

#[test]
fn where_no_pool_can_be_made_idle_ones_are_given_back_first() {
    let fixture = Fixture::new();
    let [uniform, other] = [fixture.uniform(), fixture.layout(&[])];
    let sets = fixture.sets();
    let idle = allocate(&sets, &other);
    free(&sets, idle);
    let faults = fixture.gpu.faults();
    for _ in 0..2 {
        faults.fail_nth("vkCreateDescriptorPool", 0, vk::Result::ERROR_OUT_OF_DEVICE_MEMORY);
        faults.fail_nth("vkCreateDescriptorPool", 1, vk::Result::ERROR_OUT_OF_DEVICE_MEMORY);
        let set = allocate(&sets, &uniform);
        assert_eq!(sets.statistics().pools, 1);
        free(&sets, set);
        sets.trim();
        free(&sets, allocate(&sets, &other));
    }
    sets.trim();
    faults.fail_always("vkCreateDescriptorPool", vk::Result::ERROR_OUT_OF_DEVICE_MEMORY);
    let error: Allocated = unsafe { sets.allocate(&uniform) };
    assert!(
        matches!(
            error,
            Err(AllocateDescriptorSetError::NoPool {
                sets: 1,
                source: CreateDescriptorPoolError::Driver { .. },
                ..
            })
        ),
        "{error:?}"
    );
}

#[test]
fn every_error_says_what_was_asked_and_has_the_drivers_answer_as_its_source() {
    use std::error::Error;
    let fixture = Fixture::new();
    let layout = fixture.uniform();
    let sets = fixture.sets_of(&PersistentSetsCreateInfo { first_sets: 0, max_sets: 0, ..fixture.info() });
    fixture.gpu.faults().fail_always("vkAllocateDescriptorSets", vk::Result::ERROR_OUT_OF_HOST_MEMORY);
    let error = unsafe { sets.allocate(&layout) }.unwrap_err();
    let line =
        "the driver did not allocate a descriptor set of 1 UniformBuffer: vkAllocateDescriptorSets failed";
    assert!(error.to_string().starts_with(line), "{error}");
    assert_eq!(error.source().unwrap().downcast_ref(), Some(&vk::Result::ERROR_OUT_OF_HOST_MEMORY));
    fixture.gpu.faults().clear();
    fixture.gpu.faults().fail_always("vkCreateDescriptorPool", vk::Result::ERROR_OUT_OF_HOST_MEMORY);
    let error = unsafe { sets.allocate(&layout) }.unwrap_err();
    let line = "no pool was made for 1 sets of 1 UniformBuffer each: \
        the driver did not make a descriptor pool of 1 sets and 1 descriptors: vkCreateDescriptorPool failed";
    assert!(error.to_string().starts_with(line), "{error}");
    assert_eq!(error.source().unwrap().downcast_ref(), Some(&vk::Result::ERROR_OUT_OF_HOST_MEMORY));
}
