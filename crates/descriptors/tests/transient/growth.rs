//! The allocator creates as many pools as needed, and no more.

use ash::vk;
use sublet_descriptors::{LargeSets, TransientError, TransientSetsCreateInfo};

use crate::fixture::*;

/// Runs three frames in flight with `draws` sets each. Returns the results of `look` after each frame.
fn frames(
    fixture: &mut Fixture,
    info: &TransientSetsCreateInfo,
    frames: u32,
    draws: impl Fn(u32) -> u32,
    mut look: impl FnMut(u32, &sublet_descriptors::TransientSetsStatistics),
) {
    let layout = fixture.layout(&[(UNIFORM, 1), (STORAGE, 2)]);
    let mut sets = fixture.sets(info);
    for frame in 0..frames {
        let ticket = fixture.clock.begin_frame(fixture.timeline, frame % 3);
        sets.collect(&fixture.clock).unwrap();
        for _ in 0..draws(frame) {
            allocate(&mut sets, &layout).unwrap();
        }
        sets.flush(ticket).unwrap();
        fixture.clock.end_frame(ticket).unwrap();
        look(frame, &sets.statistics());
    }
}

#[test]
fn a_thousand_frames_of_300_sets_end_with_the_pools_of_the_first_three() {
    for policy in POLICIES {
        let fixed = fixed(64, &[size(UNIFORM, 64), size(STORAGE, 128)]);
        for info in [TransientSetsCreateInfo::default(), fixed] {
            let mut fixture = Fixture::with_policy(policy);
            let mut pools_of_three = 0;
            frames(
                &mut fixture,
                &info,
                1000,
                |_| 300,
                |frame, statistics| {
                    if frame == 2 {
                        pools_of_three = statistics.pools_created;
                    }
                    assert!(
                        frame < 3 || statistics.pools_created == pools_of_three,
                        "frame {frame}: {statistics:?}"
                    );
                },
            );
            assert_eq!(fixture.gpu.calls("vkCreateDescriptorPool"), pools_of_three);
        }
    }
}

#[test]
fn shared_pools_become_stable_as_well() {
    let mut fixture = Fixture::new();
    let info = TransientSetsCreateInfo {
        share_pools: true,
        ..fixed(256, &[size(UNIFORM, 256), size(STORAGE, 512)])
    };
    let mut pools = Vec::new();
    frames(&mut fixture, &info, 1000, |_| 300, |_, statistics| pools.push(statistics.pools_created));
    // Three frames have 900 sets, and the pools at both ends also hold sets of other frames.
    assert_eq!(*pools.last().unwrap(), 5);
    assert_eq!(pools[20], 5);
}

#[test]
fn a_frame_has_one_pool_once_its_size_is_known() {
    let mut fixture = Fixture::new();
    let mut resets = Vec::new();
    frames(
        &mut fixture,
        &TransientSetsCreateInfo::default(),
        100,
        |frame| 280 + frame % 20,
        |_, statistics| {
            resets.push(statistics.resets);
        },
    );
    assert!(resets[99] - resets[79] <= 60, "{} resets in 20 frames", resets[99] - resets[79]);
}

#[test]
fn no_type_runs_out_long_before_the_others() {
    let mut fixture = Fixture::new();
    let many = fixture.layout(&[(IMAGE, 12)]);
    let few = fixture.layout(&[(UNIFORM, 1)]);
    let mut sets = fixture.sets(&TransientSetsCreateInfo { min_pools: 0, ..Default::default() });
    let mut before = sets.statistics();
    for frame in 0..20 {
        if frame == 10 {
            before = sets.statistics();
        }
        for draw in 0..200 {
            allocate(&mut sets, if draw % 4 == 0 { &many } else { &few }).unwrap();
        }
        fixture.drop_recording(&mut sets);
        sets.collect(&fixture.clock).unwrap();
        // Ensures that pools are always created with known sizes.
        sets.trim();
    }
    let after = sets.statistics();
    assert_eq!(after.pools_created - before.pools_created, 10, "one for each frame");
    let used = 10 * (50 * 12 + 150);
    let wasted = after.wasted_descriptors - before.wasted_descriptors;
    assert!(wasted * 4 < used, "{wasted} wasted, {used} used");
}

#[test]
fn one_large_request_does_not_make_every_later_pool_large() {
    let mut fixture = Fixture::new();
    let small = fixture.layout(&[(UNIFORM, 1)]);
    let large = fixture.layout(&[(IMAGE, 20_000)]);
    let mut sets = fixture.sets(&TransientSetsCreateInfo::default());
    let frame = |fixture: &Fixture, sets: &mut sublet_descriptors::TransientSets| {
        let ticket = fixture.open();
        sets.flush(ticket).unwrap();
        ticket
    };
    let mut tickets = Vec::new();
    for _ in 0..4 {
        many(&mut sets, &small, 50);
        tickets.push(frame(&fixture, &mut sets));
    }
    allocate(&mut sets, &large).unwrap();
    many(&mut sets, &small, 50);
    tickets.push(frame(&fixture, &mut sets));
    let wasted = sets.statistics().wasted_descriptors;
    for _ in 0..8 {
        many(&mut sets, &small, 50);
        tickets.push(frame(&fixture, &mut sets));
    }
    let statistics = sets.statistics();
    assert!(statistics.wasted_descriptors - wasted < 1000, "{statistics:?}");
}

#[test]
fn there_are_two_pools_at_the_start_the_current_one_and_a_spare() {
    let (fixture, layout, mut sets) = uniform(Fixture::new(), &fixed(4, &[size(UNIFORM, 4)]));
    assert_eq!(fixture.gpu.calls("vkCreateDescriptorPool"), 2);
    many(&mut sets, &layout, 8);
    assert_eq!(fixture.gpu.calls("vkCreateDescriptorPool"), 2, "the spare is taken before one is made");
    allocate(&mut sets, &layout).unwrap();
    assert_eq!(fixture.gpu.calls("vkCreateDescriptorPool"), 3);
}

#[test]
fn pools_end_at_their_limit_and_go_on_once_a_recording_is_done() {
    let (fixture, layout, mut sets) =
        uniform(Fixture::new(), &TransientSetsCreateInfo { max_pools: 3, ..fixed(4, &[size(UNIFORM, 4)]) });
    many(&mut sets, &layout, 12);
    let error = allocate(&mut sets, &layout).unwrap_err();
    assert_eq!(error, TransientError::PoolLimit { max_pools: 3 });
    fixture.drop_recording(&mut sets);
    assert_eq!(sets.collect(&fixture.clock), Ok(3));
    many(&mut sets, &layout, 12);
    assert_eq!(sets.statistics().pools_created, 3);
}

#[test]
fn at_the_limit_a_free_pool_that_is_too_small_makes_way_for_one_that_is_not() {
    let mut fixture = Fixture::new();
    let small = fixture.layout(&[(UNIFORM, 1)]);
    let large = fixture.layout(&[(UNIFORM, 100)]);
    let info = TransientSetsCreateInfo {
        max_pools: 2,
        large_sets: LargeSets::Grow,
        ..fixed(4, &[size(UNIFORM, 4)])
    };
    let mut sets = fixture.sets(&info);
    allocate(&mut sets, &small).unwrap();
    allocate(&mut sets, &large).unwrap();
    assert_eq!((sets.statistics().pools, sets.statistics().pools_created), (2, 3));
}

#[test]
fn trimming_leaves_the_pools_for_the_start_and_what_is_in_use() {
    let (fixture, layout, mut sets) = uniform(Fixture::new(), &fixed(4, &[size(UNIFORM, 4)]));
    sets.reserve(6).unwrap();
    assert_eq!(sets.trim(), 4);
    many(&mut sets, &layout, 20);
    assert_eq!(sets.trim(), 0, "five are in use");
    let ticket = fixture.open();
    sets.flush(ticket).unwrap();
    assert_eq!(sets.trim(), 0, "five wait");
    fixture.discard(ticket);
    sets.collect(&fixture.clock).unwrap();
    assert_eq!(sets.trim(), 3);
    assert_eq!(fixture.live_pools(), 2);
}

#[test]
fn pools_have_names_with_a_number() {
    let (mut fixture, layout, mut sets) = uniform(
        Fixture::with_policy(sublet::sim::DescriptorPoolPolicy::Strict),
        &fixed(4, &[size(UNIFORM, 4)]),
    );
    assert_eq!(fixture.gpu.calls("vkSetDebugUtilsObjectNameEXT"), 2);
    let set = allocate(&mut sets, &layout).unwrap();
    fixture.gpu.hold_submissions(true);
    fixture.submit(&layout, &[set]);
    // Provokes a validation message that contains the name. The newest pool is used first.
    drop(sets);
    let messages = fixture.gpu.take_messages();
    assert!(messages.iter().any(|message| message.text.contains("transient sets 2")), "{messages:?}");
    fixture.gpu.hold_submissions(false);
}

#[test]
fn statistics_say_what_happened() {
    let (fixture, layout, mut sets) = uniform(Fixture::new(), &fixed(4, &[size(UNIFORM, 8)]));
    many(&mut sets, &layout, 6);
    let ticket = fixture.open();
    sets.flush(ticket).unwrap();
    let statistics = sets.statistics();
    assert_eq!((statistics.pools, statistics.waiting_pools, statistics.free_pools), (2, 2, 0));
    assert_eq!((statistics.sets_allocated, statistics.live_sets), (6, 6));
    assert_eq!((statistics.sealed, statistics.wasted_sets), (2, 2));
    assert_eq!(statistics.wasted_descriptors, 10);
    fixture.discard(ticket);
    sets.collect(&fixture.clock).unwrap();
    let statistics = sets.statistics();
    assert_eq!((statistics.waiting_pools, statistics.free_pools, statistics.resets), (0, 2, 2));
    assert_eq!((statistics.sets_allocated, statistics.live_sets, statistics.peak_pools), (6, 0, 2));
    let _: vk::DescriptorSet = allocate(&mut sets, &layout).unwrap();
    assert_eq!(sets.statistics().sets_allocated, 7);
}
