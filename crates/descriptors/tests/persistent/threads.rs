//! Many threads use one allocator. The simulated driver does not report concurrent use of a pool, but the test detects
//! a set that two threads hold, and a lost count.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::thread;

use ash::vk::Handle;
use sublet::retire::Clock;
use sublet_descriptors::{DescriptorKind, DescriptorSet};

use crate::common::{Fixture, allocate, free};

#[test]
fn no_set_is_had_twice_whatever_threads_do_at_once() {
    for fixture in Fixture::all() {
        let layouts =
            [fixture.uniform(), fixture.uniform(), fixture.layout(&[(DescriptorKind::StorageBuffer, 2)])];
        let sets = fixture.sets_in_pools_of(16);
        let had = Mutex::new(BTreeSet::new());
        let clock = Clock::new();
        let timeline = clock.add_timeline().unwrap();
        let (enter, leave) = (
            |set: &DescriptorSet| assert!(had.lock().unwrap().insert(set.handle().as_raw()), "had twice"),
            |set: &DescriptorSet| assert!(had.lock().unwrap().remove(&set.handle().as_raw())),
        );
        thread::scope(|scope| {
            for seed in 0..4 {
                let (sets, layouts, clock) = (&sets, &layouts, &clock);
                scope.spawn(move || {
                    let mut rng = fastrand::Rng::with_seed(seed);
                    let mut live: Vec<DescriptorSet> = Vec::new();
                    for turn in 0..400 {
                        match rng.u32(..8) {
                            0..=3 => {
                                let set = unsafe { sets.allocate(&layouts[rng.usize(..3)]) }.unwrap();
                                enter(&set);
                                live.push(set);
                            }
                            4 => {
                                let count = rng.u32(1..20);
                                let many = unsafe { sets.allocate_many(&layouts[rng.usize(..3)], count) };
                                let many = many.unwrap();
                                many.iter().for_each(enter);
                                live.extend(many);
                            }
                            5 if !live.is_empty() => {
                                let ticket = clock.open(timeline);
                                let set = live.swap_remove(rng.usize(..live.len()));
                                assert_eq!(sets.set(set.id()), Ok(set.handle()));
                                leave(&set);
                                unsafe { sets.retire(ticket, set) }.unwrap();
                                clock.discard(ticket).unwrap();
                                sets.collect(clock).unwrap();
                            }
                            6 if turn % 16 == 0 => {
                                sets.trim();
                            }
                            _ => {
                                while live.len() > 30 || (!live.is_empty() && rng.bool()) {
                                    let set = live.swap_remove(rng.usize(..live.len()));
                                    leave(&set);
                                    unsafe { sets.free(set) }.unwrap();
                                }
                            }
                        }
                    }
                    for set in live {
                        leave(&set);
                        unsafe { sets.free(set) }.unwrap();
                    }
                });
            }
        });
        sets.collect(&clock).unwrap();
        sets.validate();
        let statistics = sets.statistics();
        assert_eq!((statistics.live_sets, statistics.retired_sets), (0, 0));
    }
}

#[test]
fn while_one_thread_makes_a_pool_others_allocate_and_free() {
    let fixture = Fixture::new();
    let [full, other] = [fixture.uniform(), fixture.layout(&[(DescriptorKind::StorageBuffer, 2)])];
    let sets = fixture.sets_in_pools_of(2);
    let mut live = vec![allocate(&sets, &full), allocate(&sets, &full)];
    let elsewhere = allocate(&sets, &other);
    fixture.gpu.reset_calls();
    fixture.gpu.faults().hold("vkCreateDescriptorPool");
    let third = thread::scope(|scope| {
        let grows = scope.spawn(|| unsafe { sets.allocate(&full) }.unwrap());
        while fixture.gpu.calls("vkCreateDescriptorPool") == 0 {
            thread::yield_now();
        }
        // In the same bucket, and in another one.
        free(&sets, live.pop().unwrap());
        live.push(allocate(&sets, &full));
        free(&sets, elsewhere);
        let elsewhere = allocate(&sets, &other);
        assert_eq!(sets.set(live[0].id()), Ok(live[0].handle()));
        free(&sets, elsewhere);
        assert!(!grows.is_finished());
        fixture.gpu.faults().release("vkCreateDescriptorPool");
        grows.join().unwrap()
    });
    live.into_iter().chain([third]).for_each(|set| free(&sets, set));
}

#[test]
fn threads_that_find_the_pools_full_at_once_make_as_many_as_are_needed() {
    let fixture = Fixture::new();
    let layout = fixture.uniform();
    let sets = fixture.sets_in_pools_of(64);
    fixture.gpu.faults().delay("vkCreateDescriptorPool", std::time::Duration::from_millis(5));
    let live: Vec<DescriptorSet> = thread::scope(|scope| {
        let threads: Vec<_> =
            (0..8).map(|_| scope.spawn(|| unsafe { sets.allocate(&layout) }.unwrap())).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(fixture.gpu.calls("vkCreateDescriptorPool"), 1);
    live.into_iter().for_each(|set| free(&sets, set));
}
