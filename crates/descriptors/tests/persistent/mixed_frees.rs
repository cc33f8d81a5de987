//! Freeing sets of two layouts together makes space for both again.

use sublet_descriptors::DescriptorKind;

use crate::common::{Fixture, allocate, free};

/// gpu-descriptor attributes a freed set to the batch before it, and fails the third allocation although nothing is
/// live.
#[test]
fn with_nothing_live_there_is_room_for_everything_after_mixed_frees() {
    for fixture in Fixture::all() {
        let layouts = [fixture.uniform(), fixture.layout(&[(DescriptorKind::StorageBuffer, 2)])];
        let sets = fixture.sets_in_pools_of(8);
        for _ in 0..20 {
            let live: Vec<_> = (0..16).map(|turn| allocate(&sets, &layouts[turn % 2])).collect();
            for set in live {
                free(&sets, set);
            }
            assert_eq!(sets.statistics().live_sets, 0);
        }
        assert_eq!(sets.statistics().pools, 2, "one for each kind of sets");
        for (turn, layout) in layouts.iter().cycle().take(16).enumerate() {
            allocate_and_forget(&sets, layout, turn);
        }
        assert_eq!(unsafe { sets.release().destroy() }.iter().map(|leak| leak.sets).sum::<u32>(), 16);
    }
}

fn allocate_and_forget(sets: &crate::common::Sets, layout: &sublet_descriptors::SetLayout, turn: usize) {
    let set = unsafe { sets.allocate(layout) };
    assert!(set.is_ok(), "allocation {turn} of 16 with room for 16: {set:?}");
}

/// The same with layouts of equal counts, which share their pools.
#[test]
fn layouts_of_the_same_counts_take_turns_in_the_same_pool() {
    for fixture in Fixture::all() {
        let layouts = [fixture.uniform(), fixture.uniform(), fixture.uniform()];
        let sets = fixture.sets_in_pools_of(8);
        for turn in 0..300 {
            let live: Vec<_> = (0..8).map(|at| allocate(&sets, &layouts[(turn + at) % 3])).collect();
            for set in live {
                free(&sets, set);
            }
            assert_eq!(sets.statistics().pools, 1);
        }
    }
}

/// Free sets kept for one layout do not block another: there are only as many pools as the live sets need.
#[test]
fn sets_that_are_kept_for_a_layout_make_way_before_a_pool_is_made() {
    let fixture = Fixture::new();
    let layouts = [fixture.uniform(), fixture.uniform()];
    let sets = fixture.sets_in_pools_of(8);
    let kept = allocate(&sets, &layouts[0]);
    let gone = [(); 7].map(|()| allocate(&sets, &layouts[0]));
    for set in gone {
        free(&sets, set);
    }
    let others = [(); 7].map(|()| allocate(&sets, &layouts[1]));
    assert_eq!(sets.statistics().pools, 1);
    assert_eq!(fixture.gpu.calls("vkFreeDescriptorSets"), 7);
    for set in others {
        free(&sets, set);
    }
    free(&sets, kept);
}
