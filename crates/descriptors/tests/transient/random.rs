//! Random recordings on three timelines, submitted and completed in random order, on all kinds of drivers and with
//! failures.

use std::collections::BTreeMap;

use ash::vk;
use sublet::retire::Ticket;
use sublet_descriptors::{SetLayout, TransientError, TransientSetsCreateInfo};

use crate::fixture::*;

/// The index of the layout, and the set.
type Used = (usize, vk::DescriptorSet);

#[test]
fn sets_live_as_long_as_their_recordings() {
    for seed in 0..24 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut fixture = Fixture::with_policy(POLICIES[random.usize(..3)]);
        let after_bind = vk::DescriptorSetLayoutCreateFlags::UPDATE_AFTER_BIND_POOL;
        let layouts: Vec<SetLayout> = vec![
            fixture.layout(&[(UNIFORM, 1)]),
            fixture.layout(&[(STORAGE, 3), (IMAGE, 9)]),
            fixture.layout(&[(UNIFORM, 40)]),
            fixture.layout_with(&[(STORAGE, 2)], after_bind),
        ];
        let share_pools = random.bool();
        let learned = TransientSetsCreateInfo { share_pools, sets_per_pool: 8, ..Default::default() };
        let sizes = [size(UNIFORM, 48), size(STORAGE, 20), size(IMAGE, 40)];
        let info =
            if random.bool() { learned } else { TransientSetsCreateInfo { share_pools, ..fixed(8, &sizes) } };
        let mut sets = fixture.sets(&info);
        fixture.gpu.hold_submissions(true);
        // The sets allocated since the last flush, and those that each open recording uses.
        let mut recorded: Vec<Used> = Vec::new();
        let mut open: Vec<(Ticket, Vec<Used>)> = Vec::new();
        // The number of sets that the device may still use, by the timeline value that ends their recording.
        let mut in_flight: BTreeMap<u64, usize> = BTreeMap::new();
        let mut value = 0;
        for _ in 0..600 {
            match random.u32(..24) {
                0..=13 => {
                    if random.u32(..30) == 0 {
                        let result = vk::Result::ERROR_FRAGMENTED_POOL;
                        fixture.gpu.faults().fail_nth("vkAllocateDescriptorSets", 0, result);
                    }
                    let layout = random.usize(..4);
                    match allocate(&mut sets, &layouts[layout]) {
                        Ok(set) => recorded.push((layout, set)),
                        Err(TransientError::Refused { .. }) => {}
                        Err(error) => panic!("seed {seed}: {error:?}"),
                    }
                }
                14..=16 => {
                    let ticket = fixture.open();
                    sets.flush(ticket).unwrap();
                    open.push((ticket, std::mem::take(&mut recorded)));
                }
                17..=18 if !open.is_empty() => {
                    let (ticket, used) = open.swap_remove(random.usize(..open.len()));
                    value += 1;
                    for (layout, set) in &used {
                        fixture.submit(&layouts[*layout], &[*set]);
                    }
                    fixture.clock.submit(ticket, value).unwrap();
                    in_flight.insert(value, used.len());
                }
                19 if !open.is_empty() => {
                    let (ticket, _) = open.swap_remove(random.usize(..open.len()));
                    fixture.discard(ticket);
                }
                20 if value != 0 => {
                    fixture.gpu.run_pending();
                    let completed = random.u64(..=value);
                    fixture.clock.completed(fixture.timeline, completed);
                    in_flight.retain(|&value, _| value > completed);
                }
                21 => {
                    sets.trim();
                }
                _ => {
                    if random.u32(..8) == 0 {
                        let result = vk::Result::ERROR_OUT_OF_HOST_MEMORY;
                        fixture.gpu.faults().fail_nth("vkResetDescriptorPool", 0, result);
                    }
                    let _ = sets.collect(&fixture.clock);
                }
            }
            let live = fixture.gpu.live().descriptor_sets;
            assert_eq!(sets.statistics().live_sets, live, "seed {seed}");
            let used = open.iter().map(|(_, used)| used.len()).sum::<usize>() + recorded.len();
            let used = used + in_flight.values().sum::<usize>();
            assert!(u64::try_from(used).unwrap() <= live, "seed {seed}: {used} are in use, {live} live");
        }
        fixture.gpu.faults().clear();
        fixture.gpu.hold_submissions(false);
        let last = fixture.open();
        sets.flush(last).unwrap();
        open.into_iter().map(|(ticket, _)| ticket).chain([last]).for_each(|ticket| fixture.discard(ticket));
        fixture.clock.idle();
        sets.trim();
        sets.collect(&fixture.clock).unwrap();
        let statistics = sets.statistics();
        assert!(share_pools || statistics.live_sets == 0, "seed {seed}: {statistics:?}");
        drop(sets.release());
    }
}
