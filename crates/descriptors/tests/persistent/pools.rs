//! The number and sizes of pools, and which of them are destroyed.

use sublet_descriptors::{DescriptorKind, PersistentSetsCreateInfo};

use crate::common::{Fixture, allocate, free};

#[test]
fn a_program_with_few_sets_has_one_small_pool() {
    let (fixture, layout, sets) = Fixture::with_sets();
    assert_eq!(fixture.gpu.live().descriptor_pools, 0, "none before the first set");
    let set = allocate(&sets, &layout);
    assert_eq!(sets.statistics().capacity, 16);
    free(&sets, set);
}

#[test]
fn pools_grow_with_what_lives_up_to_a_limit() {
    for fixture in Fixture::all() {
        let layout = fixture.uniform();
        let sets = fixture.sets();
        let mut capacities = vec![0];
        let live: Vec<_> = (0..2000)
            .map(|_| {
                let set = unsafe { sets.allocate(&layout) }.unwrap();
                let capacity = sets.statistics().capacity;
                if capacities.last() != Some(&capacity) {
                    capacities.push(capacity);
                }
                set
            })
            .collect();
        let sizes: Vec<u64> = capacities.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert_eq!(sizes, [16, 16, 32, 64, 128, 256, 512, 512, 512]);
        sets.validate();
        live.into_iter().for_each(|set| unsafe { sets.free(set) }.unwrap());
        sets.validate();
    }
}

#[test]
fn one_large_request_does_not_make_later_pools_large() {
    let (_kit, layout, sets) = Fixture::with_sets();
    let many = unsafe { sets.allocate_many(&layout, 300) }.unwrap();
    assert_eq!(sets.statistics().capacity, 300);
    many.into_iter().for_each(|set| free(&sets, set));
    sets.trim();
    let set = allocate(&sets, &layout);
    assert_eq!(sets.statistics().capacity, 16);
    free(&sets, set);
}

#[test]
fn inline_uniform_blocks_are_reserved_by_use_and_not_by_the_largest_there_can_be() {
    let fixture = Fixture::new();
    let layout = fixture.layout(&[(DescriptorKind::InlineUniformBlock, 256); 4]);
    let sets = fixture.sets();
    let mut live = Vec::new();
    for _ in 0..1000 {
        let before = sets.statistics().capacity;
        live.push(unsafe { sets.allocate(&layout) }.unwrap());
        // A pool has at most a quarter of a megabyte, which is 256 of these sets.
        assert!(sets.statistics().capacity - before <= 256, "{:?}", sets.statistics());
    }
    assert!(sets.statistics().capacity <= 1280, "{:?}", sets.statistics());
    live.into_iter().for_each(|set| unsafe { sets.free(set) }.unwrap());
}

#[test]
fn an_empty_pool_is_kept_until_the_others_have_a_quarter_of_it_free() {
    for fixture in Fixture::all() {
        let layout = fixture.uniform();
        let sets = fixture.sets_in_pools_of(8);
        let mut first: Vec<_> = (0..8).map(|_| allocate(&sets, &layout)).collect();
        let in_second = allocate(&sets, &layout);
        assert_eq!(sets.statistics().pools, 2);
        free(&sets, in_second);
        assert_eq!(sets.statistics().pools, 2, "a set that comes and goes makes no pools");
        // Frees one set of the first pool, then uses and empties the second one.
        let in_second = allocate(&sets, &layout);
        free(&sets, first.remove(0));
        free(&sets, in_second);
        assert_eq!(sets.statistics().pools, 2, "one of eight is too little");
        // With two free sets, the second pool may be destroyed.
        first.push(allocate(&sets, &layout));
        let in_second = allocate(&sets, &layout);
        first.drain(..2).for_each(|set| free(&sets, set));
        free(&sets, in_second);
        assert_eq!(sets.statistics().pools, 1);
        first.into_iter().for_each(|set| free(&sets, set));
        assert_eq!(sets.statistics().pools, 1, "the last pool of a kind stays");
    }
}

#[test]
fn sets_come_from_the_oldest_pool_with_room_so_that_the_newest_becomes_empty() {
    for fixture in Fixture::all() {
        let layout = fixture.uniform();
        let sets = fixture.sets_in_pools_of(8);
        let mut live: Vec<_> = (0..32).map(|_| allocate(&sets, &layout)).collect();
        assert_eq!(sets.statistics().pools, 4);
        // Repeatedly frees every other set and allocates half as many again.
        let mut rng = fastrand::Rng::with_seed(1);
        for _ in 0..200 {
            for _ in 0..4 {
                let at = rng.usize(..live.len());
                free(&sets, live.swap_remove(at));
            }
            while live.len() < 14 {
                live.push(allocate(&sets, &layout));
            }
        }
        assert!(sets.statistics().pools <= 3, "{:?} for 14 sets", sets.statistics());
        live.into_iter().for_each(|set| free(&sets, set));
    }
}

#[test]
fn trimming_destroys_idle_pools_and_no_others() {
    for fixture in Fixture::all() {
        let layouts = [fixture.uniform(), fixture.layout(&[(DescriptorKind::StorageBuffer, 3)])];
        let sets = fixture.sets();
        let [kept, gone] = [0, 1].map(|at: usize| allocate(&sets, &layouts[at]));
        free(&sets, gone);
        assert_eq!(sets.statistics().idle_pools, 1);
        assert_eq!(sets.trim(), 1);
        assert_eq!(sets.trim(), 0);
        assert_eq!(fixture.gpu.live().descriptor_pools, 1);
        assert_eq!(sets.set(kept.id()), Ok(kept.handle()));
        let again = allocate(&sets, &layouts[1]);
        free(&sets, again);
        free(&sets, kept);
    }
}

#[test]
fn kinds_of_sets_that_are_used_once_leave_no_pools_behind() {
    let fixture = Fixture::new();
    let sets = fixture.sets_of(&PersistentSetsCreateInfo { keep_idle_pools: 5, ..fixture.info() });
    for count in 1..60 {
        let layout = fixture.layout(&[(DescriptorKind::SampledImage, count)]);
        let set = allocate(&sets, &layout);
        free(&sets, set);
        assert!(sets.statistics().idle_pools <= 6, "{:?}", sets.statistics());
    }
}

#[test]
fn what_was_never_freed_is_told_by_layout() {
    let fixture = Fixture::new();
    let layouts =
        [fixture.uniform(), fixture.uniform(), fixture.layout(&[(DescriptorKind::SampledImage, 3)])];
    let sets = fixture.sets();
    let freed = allocate(&sets, &layouts[1]);
    let mut lost: Vec<_> = (0..5).map(|_| allocate(&sets, &layouts[0])).collect();
    lost.push(allocate(&sets, &layouts[2]));
    free(&sets, freed);
    let clock = sublet::retire::Clock::new();
    let ticket = clock.open(clock.add_timeline().unwrap());
    unsafe { sets.retire(ticket, lost.remove(0)) }.unwrap();
    let leaks = unsafe { sets.release().destroy() };
    let reported: Vec<_> = leaks.iter().map(|leak| (leak.layout, leak.sets)).collect();
    assert_eq!(reported, [(layouts[0].handle(), 4), (layouts[2].handle(), 1)], "a retired set is no leak");
    assert_eq!(leaks[1].counts.get(DescriptorKind::SampledImage), 3);
}
