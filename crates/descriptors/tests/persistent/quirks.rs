//! Drivers with faults that the library knows or does not know.

use sublet::sim::{DescriptorPoolPolicy, DescriptorQuirk};
use sublet_descriptors::{DescriptorQuirks, SetLayout};

use crate::common::{Fixture, Held, POLICIES, Sets, allocate, builder, free};

fn fixture(policy: DescriptorPoolPolicy, faults: DescriptorQuirk, known: DescriptorQuirks) -> Held<Fixture> {
    Fixture::of(builder().descriptor_pools(policy).descriptor_quirks(faults), Some(known))
}

/// Allocates and frees sets of two layouts with equal counts, so that each reuses the other's space.
fn churn(sets: &Sets, layouts: &[SetLayout; 2], rounds: usize) {
    let mut rng = fastrand::Rng::with_seed(7);
    let mut live = Vec::new();
    for round in 0..rounds {
        while live.len() < 12 {
            live.push(allocate(
                sets,
                &layouts[usize::from(rng.u32(..100) < u32::try_from(round % 100).unwrap())],
            ));
        }
        for _ in 0..rng.usize(1..12) {
            let at = rng.usize(..live.len());
            free(sets, live.swap_remove(at));
        }
        assert!(sets.statistics().pools <= 6, "{:?}", sets.statistics());
    }
    live.into_iter().for_each(|set| free(sets, set));
}

#[test]
fn a_pool_that_answers_fragmented_is_left_until_it_is_empty_and_another_is_tried() {
    for policy in POLICIES {
        // The library does not know the fault, so it frees single sets.
        let fixture = fixture(policy, DescriptorQuirk::FRAGMENTS, DescriptorQuirks::empty());
        let layouts = [fixture.uniform(), fixture.uniform()];
        let sets = fixture.sets_in_pools_of(8);
        churn(&sets, &layouts, 400);
    }
}

#[test]
fn a_refusal_with_room_seals_the_pool_until_it_is_empty() {
    for policy in POLICIES {
        for result in [ash::vk::Result::ERROR_FRAGMENTED_POOL, ash::vk::Result::ERROR_OUT_OF_POOL_MEMORY] {
            let fixture = fixture(policy, DescriptorQuirk::empty(), DescriptorQuirks::empty());
            let layout = fixture.uniform();
            let sets = fixture.sets_in_pools_of(8);
            let first = [(); 4].map(|()| allocate(&sets, &layout));
            fixture.gpu.faults().fail_nth("vkAllocateDescriptorSets", 0, result);
            let second = allocate(&sets, &layout);
            let statistics = sets.statistics();
            assert_eq!((statistics.pools, statistics.sealed_pools, statistics.lost), (2, 1, 4));
            // The pool provides no more sets, not even freed ones.
            let [one, two, three, four] = first;
            free(&sets, one);
            fixture.gpu.reset_calls();
            let third = allocate(&sets, &layout);
            assert_eq!(fixture.gpu.calls("vkAllocateDescriptorSets"), 1);
            assert_eq!(sets.statistics().sealed_pools, 1);
            let rest = (0..6).map(|_| allocate(&sets, &layout)).collect::<Vec<_>>();
            // Once empty, the pool is usable again.
            for set in [two, three, four] {
                free(&sets, set);
            }
            assert_eq!(fixture.gpu.calls("vkResetDescriptorPool"), 1);
            assert_eq!((sets.statistics().sealed_pools, sets.statistics().pools), (0, 2));
            let again = [(); 8].map(|()| allocate(&sets, &layout));
            assert_eq!(sets.statistics().pools, 2);
            again.into_iter().chain(rest).chain([second, third]).for_each(|set| free(&sets, set));
        }
    }
}

#[test]
fn where_pools_fragment_no_set_is_freed_by_itself() {
    let fixture =
        fixture(DescriptorPoolPolicy::Strict, DescriptorQuirk::FRAGMENTS, DescriptorQuirks::FRAGMENTS);
    let layouts = [fixture.uniform(), fixture.uniform()];
    let sets = fixture.sets_in_pools_of(8);
    churn(&sets, &layouts, 400);
    assert_eq!(fixture.gpu.calls("vkFreeDescriptorSets"), 0);
    assert_eq!(sets.statistics().sealed_pools, 0);
}

#[test]
fn where_resets_leak_no_pool_is_reset() {
    for known in [DescriptorQuirks::RESET_LEAKS, DescriptorQuirks::RESET_LEAKS | DescriptorQuirks::FRAGMENTS]
    {
        let fixture = fixture(DescriptorPoolPolicy::Strict, DescriptorQuirk::RESET_LEAKS, known);
        let layouts = [fixture.uniform(), fixture.uniform()];
        let sets = fixture.sets_in_pools_of(8);
        churn(&sets, &layouts, 100);
        // A pool is full of free sets of one layout, and another layout needs all of it.
        for turn in 0..20 {
            for set in [(); 8].map(|()| allocate(&sets, &layouts[turn % 2])) {
                free(&sets, set);
            }
        }
        assert_eq!(fixture.gpu.calls("vkResetDescriptorPool"), 0);
        assert_eq!(fixture.gpu.leaked_descriptor_sets(), 0);
    }
}

#[test]
fn where_resets_forget_the_count_of_sets_a_pool_that_was_reset_gives_as_many_as_before() {
    let fixture = fixture(
        DescriptorPoolPolicy::CountsSets,
        DescriptorQuirk::SET_COUNT_SURVIVES_RESET,
        // Both quirks, so that no set is freed individually and everything depends on resets.
        DescriptorQuirks::RESET_KEEPS_SET_COUNT | DescriptorQuirks::FRAGMENTS,
    );
    let layouts = [fixture.uniform(), fixture.uniform()];
    let sets = fixture.sets_in_pools_of(8);
    for turn in 0..20 {
        let live = [(); 8].map(|()| allocate(&sets, &layouts[turn % 2]));
        assert_eq!((sets.statistics().pools, sets.statistics().sealed_pools), (1, 0));
        for set in live {
            free(&sets, set);
        }
    }
    assert_eq!(fixture.gpu.calls("vkResetDescriptorPool"), 19);
}
