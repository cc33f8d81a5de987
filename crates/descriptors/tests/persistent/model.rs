//! Random operations in any order, compared with a list of the program's sets.

use std::collections::BTreeMap;

use ash::vk::Handle;
use proptest::prelude::*;
use sublet::retire::{Clock, Ticket};
use sublet_descriptors::{DescriptorKind, DescriptorSet, DescriptorSetId};

use crate::common::{Fixture, Held};

#[derive(Clone, Copy, Debug)]
enum Step {
    Allocate(usize),
    Variable(u32),
    Many(usize, u32),
    Free(usize),
    Retire(usize),
    /// The oldest pending recordings are done.
    Done(usize),
    Collect,
    Trim,
    /// The driver refuses the next set although the pool has space.
    Refuse,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..4_usize).prop_map(Step::Allocate),
        1 => (0..3_u32).prop_map(Step::Variable),
        2 => (0..4_usize, 0..12_u32).prop_map(|(layout, count)| Step::Many(layout, count)),
        6 => any::<usize>().prop_map(Step::Free),
        3 => any::<usize>().prop_map(Step::Retire),
        2 => any::<usize>().prop_map(Step::Done),
        2 => Just(Step::Collect),
        1 => Just(Step::Trim),
        1 => Just(Step::Refuse),
    ]
}

fn play(fixture: Held<Fixture>, steps: &[Step]) {
    let layouts = [
        fixture.uniform(),
        fixture.uniform(),
        fixture.layout(&[(DescriptorKind::UniformBuffer, 2)]),
        fixture.layout(&[(DescriptorKind::UniformBuffer, 1), (DescriptorKind::UniformBuffer, 1)]),
    ];
    let table = fixture.layout_with(
        &[(DescriptorKind::SampledImage, 50)],
        ash::vk::DescriptorSetLayoutCreateFlags::empty(),
        ash::vk::DescriptorBindingFlags::VARIABLE_DESCRIPTOR_COUNT,
    );
    let sets = fixture.sets_in_pools_of(5);
    let clock = Clock::new();
    let timeline = clock.add_timeline().unwrap();
    let mut live: Vec<DescriptorSet> = Vec::new();
    let mut waiting: Vec<(Ticket, bool, u64)> = Vec::new();
    let mut dead: Vec<DescriptorSetId> = Vec::new();
    for &step in steps {
        let before = live.len();
        match step {
            Step::Allocate(layout) => live.push(unsafe { sets.allocate(&layouts[layout]) }.unwrap()),
            Step::Variable(count) => live.push(unsafe { sets.allocate_variable(&table, count) }.unwrap()),
            Step::Many(layout, count) => {
                live.extend(unsafe { sets.allocate_many(&layouts[layout], count) }.unwrap());
            }
            Step::Free(at) if !live.is_empty() => {
                let set = live.swap_remove(at % before);
                dead.push(set.id());
                unsafe { sets.free(set) }.unwrap();
            }
            Step::Retire(at) if !live.is_empty() => {
                let set = live.swap_remove(at % before);
                dead.push(set.id());
                let ticket = clock.open(timeline);
                waiting.push((ticket, false, set.handle().as_raw()));
                unsafe { sets.retire(ticket, set) }.unwrap();
            }
            Step::Done(at) if !waiting.is_empty() => {
                let at = at % waiting.len();
                if !std::mem::replace(&mut waiting[at].1, true) {
                    clock.discard(waiting[at].0).unwrap();
                }
            }
            Step::Collect => {
                let done = waiting.iter().filter(|(_, done, _)| *done).count();
                assert_eq!(sets.collect(&clock), Ok(done));
                waiting.retain(|(_, done, _)| !done);
            }
            Step::Trim => {
                sets.trim();
            }
            Step::Refuse => {
                // The fault hits the next allocation. In a new pool it would be an error, so the test requires free
                // space.
                let refuses = ash::vk::Result::ERROR_FRAGMENTED_POOL;
                if sets.statistics().room > 30 {
                    fixture.gpu.faults().fail_nth("vkAllocateDescriptorSets", 0, refuses);
                    let result = unsafe { sets.allocate(&layouts[0]) };
                    live.extend(result.ok());
                    fixture.gpu.faults().clear();
                }
            }
            _ => {}
        }
        sets.validate();
        let mut had = BTreeMap::new();
        for set in &live {
            assert_eq!(sets.set(set.id()), Ok(set.handle()));
            assert!(had.insert(set.handle().as_raw(), set.id()).is_none(), "a set that is had twice");
        }
        for (_, _, handle) in &waiting {
            assert!(!had.contains_key(handle), "a set that the device may use was given out");
        }
        assert!(dead.iter().all(|&id| sets.set(id).is_err()));
        let statistics = sets.statistics();
        assert_eq!(statistics.live_sets, u64::try_from(live.len()).unwrap());
        assert_eq!(statistics.retired_sets, u64::try_from(waiting.len()).unwrap());
        let all = statistics.live_sets + statistics.retired_sets + statistics.ready_sets;
        assert_eq!(statistics.capacity, all + statistics.room + statistics.lost);
        assert_eq!(fixture.gpu.live().descriptor_pools, u64::from(statistics.pools));
        assert_eq!(fixture.gpu.descriptor_pool_overruns(), 0);
    }
    assert_eq!(
        unsafe { sets.release().destroy() }.iter().map(|leak| u64::from(leak.sets)).sum::<u64>(),
        u64::try_from(live.len()).unwrap()
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_held_is_what_was_given_and_not_taken_back(
        steps in prop::collection::vec(step(), 1..120),
        driver in 0..15_usize,
    ) {
        play(Fixture::all().nth(driver).unwrap(), &steps);
    }
}
