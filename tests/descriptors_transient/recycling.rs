//! Pools are reset once the device is done with them, not earlier, and with one call each.

use std::collections::BTreeSet;

use sublet::descriptor::TransientSetsCreateInfo;

use crate::rig::*;

#[test]
fn nothing_is_reset_while_the_device_uses_it() {
    for share_pools in [false, true] {
        let info = TransientSetsCreateInfo { share_pools, ..fixed(4, &[size(UNIFORM, 4)]) };
        let (mut rig, layout, mut sets) = uniform(Rig::new(), &info);
        rig.gpu.hold_submissions(true);
        let mut in_flight = Vec::new();
        for value in 1..40 {
            let ticket = rig.open();
            let used: Vec<_> = (0..6).map(|_| allocate(&mut sets, &layout).unwrap()).collect();
            sets.flush(ticket).unwrap();
            rig.submit(&layout, &used);
            rig.clock.submit(ticket, value).unwrap();
            in_flight.push(used);
            sets.collect(&rig.clock).unwrap();
            if value % 3 == 0 {
                rig.gpu.run_pending();
                rig.clock.completed(rig.lane, value);
                sets.collect(&rig.clock).unwrap();
            }
            rig.gpu.assert_silent();
        }
        assert!(sets.statistics().resets > 20, "{:?}", sets.statistics());
        rig.gpu.hold_submissions(false);
    }
}

#[test]
fn the_simulator_would_see_it() {
    let (mut rig, layout, mut sets) = uniform(Rig::new(), &fixed(4, &[size(UNIFORM, 4)]));
    rig.gpu.hold_submissions(true);
    let set = allocate(&mut sets, &layout).unwrap();
    rig.submit(&layout, &[set]);
    let ticket = rig.open();
    sets.flush(ticket).unwrap();
    // A misuse by the program: it discards the ticket although the work is not done.
    rig.discard(ticket);
    sets.collect(&rig.clock).unwrap_err();
    let messages = rig.gpu.take_messages();
    assert_eq!(messages[0].vuid, "VUID-vkResetDescriptorPool-descriptorPool-00313");
    rig.gpu.hold_submissions(false);
}

#[test]
fn a_pool_is_reset_by_one_call_however_many_sets_it_has() {
    let (rig, layout, mut sets) = uniform(Rig::new(), &fixed(100, &[size(UNIFORM, 100)]));
    many(&mut sets, &layout, 200);
    let ticket = rig.open();
    sets.flush(ticket).unwrap();
    assert_eq!(sets.collect(&rig.clock), Ok(0));
    assert_eq!(rig.gpu.calls("vkResetDescriptorPool"), 0, "an open recording keeps them");
    rig.discard(ticket);
    assert_eq!(sets.collect(&rig.clock), Ok(2));
    assert_eq!(rig.gpu.calls("vkResetDescriptorPool"), 2);
    assert_eq!(rig.gpu.calls("vkFreeDescriptorSets"), 0);
    assert_eq!(sets.collect(&rig.clock), Ok(0), "and not again");
}

#[test]
fn the_pool_that_came_back_last_is_used_first() {
    let (rig, layout, mut sets) = uniform(Rig::new(), &fixed(2, &[size(UNIFORM, 2)]));
    let tickets: Vec<_> = (0..4)
        .map(|_| {
            let ticket = rig.open();
            allocate(&mut sets, &layout).unwrap();
            sets.flush(ticket).unwrap();
            ticket
        })
        .collect();
    let resets = |rig: &Rig| rig.gpu.calls("vkResetDescriptorPool");
    for &ticket in &tickets {
        rig.discard(ticket);
        sets.collect(&rig.clock).unwrap();
    }
    assert_eq!(resets(&rig), 4);
    // One frame at a time reuses the same pool. The others stay idle and can be trimmed.
    for _ in 0..20 {
        let ticket = rig.open();
        allocate(&mut sets, &layout).unwrap();
        sets.flush(ticket).unwrap();
        rig.discard(ticket);
        sets.collect(&rig.clock).unwrap();
    }
    assert_eq!(sets.trim(), 2);
}

#[test]
fn recordings_may_be_submitted_in_another_order_than_they_were_recorded() {
    for share_pools in [false, true] {
        let info = TransientSetsCreateInfo { share_pools, ..fixed(4, &[size(UNIFORM, 4)]) };
        let (mut rig, layout, mut sets) = uniform(Rig::new(), &info);
        rig.gpu.hold_submissions(true);
        let (first, second) = (rig.open(), rig.open());
        let of_first = allocate(&mut sets, &layout).unwrap();
        sets.flush(first).unwrap();
        let of_second = allocate(&mut sets, &layout).unwrap();
        sets.flush(second).unwrap();
        rig.submit(&layout, &[of_second]);
        rig.clock.submit(second, 1).unwrap();
        rig.gpu.run_pending();
        rig.clock.completed(rig.lane, 1);
        let collected = sets.collect(&rig.clock).unwrap();
        assert_eq!(collected, usize::from(!share_pools), "the pool of the second alone");
        // The first recording is still open.
        rig.submit(&layout, &[of_first]);
        rig.clock.submit(first, 2).unwrap();
        assert_eq!(sets.collect(&rig.clock), Ok(0));
        rig.gpu.run_pending();
        rig.clock.completed(rig.lane, 2);
        sets.collect(&rig.clock).unwrap();
        // With shared pools, the next pool is still open.
        sets.trim();
        sets.collect(&rig.clock).unwrap();
        assert_eq!(sets.statistics().live_sets, 0);
        rig.gpu.hold_submissions(false);
    }
}

#[test]
fn lanes_do_not_hold_one_another_up() {
    let mut rig = Rig::new();
    let layout = rig.layout(&[(UNIFORM, 1)]);
    let slow = rig.clock.add_lane().unwrap();
    let mut sets = rig.sets(&fixed(4, &[size(UNIFORM, 4)]));
    let stuck = rig.clock.open(slow);
    allocate(&mut sets, &layout).unwrap();
    sets.flush(stuck).unwrap();
    for value in 1..100 {
        let ticket = rig.open();
        allocate(&mut sets, &layout).unwrap();
        sets.flush(ticket).unwrap();
        rig.clock.submit(ticket, value).unwrap();
        rig.clock.completed(rig.lane, value);
        assert_eq!(sets.collect(&rig.clock), Ok(1));
    }
    assert_eq!(sets.statistics().pools, 2);
}

#[test]
fn a_recording_that_is_discarded_gives_its_pools_back() {
    let (rig, layout, mut sets) = uniform(Rig::new(), &fixed(4, &[size(UNIFORM, 4)]));
    for _ in 0..50 {
        let ticket = rig.open();
        allocate(&mut sets, &layout).unwrap();
        sets.flush(ticket).unwrap();
        rig.discard(ticket);
        assert_eq!(sets.collect(&rig.clock), Ok(1));
    }
    assert_eq!(sets.statistics().pools, 2);
}

#[test]
fn going_from_three_frames_in_flight_to_two_wedges_nothing() {
    let (rig, layout, mut sets) = uniform(Rig::new(), &fixed(4, &[size(UNIFORM, 4)]));
    let frame = |sets: &mut sublet::descriptor::TransientSets, slot| {
        let ticket = rig.clock.begin_frame(rig.lane, slot);
        sets.collect(&rig.clock).unwrap();
        many(sets, &layout, 4);
        sets.flush(ticket).unwrap();
        rig.clock.end_frame(ticket).unwrap();
    };
    (0..9).for_each(|at| frame(&mut sets, at % 3));
    let pools = sets.statistics().pools;
    // Slot 2 is never used again.
    (0..100).for_each(|at| frame(&mut sets, at % 2));
    let statistics = sets.statistics();
    assert_eq!(statistics.pools, pools);
    assert_eq!(statistics.waiting_pools, 2, "the pool of slot 2 came back as well: {statistics:?}");
}

#[test]
fn a_slot_that_comes_twice_without_a_wait_frees_nothing_early() {
    let (mut rig, layout, mut sets) = uniform(Rig::new(), &fixed(4, &[size(UNIFORM, 4)]));
    rig.gpu.hold_submissions(true);
    let ticket = rig.clock.begin_frame(rig.lane, 0);
    let set = allocate(&mut sets, &layout).unwrap();
    rig.submit(&layout, &[set]);
    sets.flush(ticket).unwrap();
    // The frame was neither ended nor discarded, as after an early return, and its slot is reused.
    let again = rig.clock.begin_frame(rig.lane, 0);
    assert_eq!(sets.collect(&rig.clock), Ok(0));
    rig.gpu.assert_silent();
    rig.gpu.run_pending();
    rig.clock.end_frame(ticket).unwrap();
    rig.clock.end_frame(again).unwrap();
    rig.clock.idle();
    assert_eq!(sets.collect(&rig.clock), Ok(1));
    rig.gpu.hold_submissions(false);
}

#[test]
fn after_the_last_frame_idle_and_collect_leave_everything_free() {
    let (rig, layout, mut sets) = uniform(Rig::new(), &fixed(4, &[size(UNIFORM, 4)]));
    for slot in 0..3 {
        let ticket = rig.clock.begin_frame(rig.lane, slot);
        many(&mut sets, &layout, 10);
        sets.flush(ticket).unwrap();
        rig.clock.end_frame(ticket).unwrap();
    }
    rig.clock.idle();
    sets.collect(&rig.clock).unwrap();
    let statistics = sets.statistics();
    assert_eq!((statistics.waiting_pools, statistics.free_pools), (0, statistics.pools));
    // Ensures that nothing is left even without `destroy`.
    drop(sets.release());
}

#[test]
fn every_set_is_its_own_while_it_lives() {
    let (_rig, layout, mut sets) = uniform(Rig::new(), &TransientSetsCreateInfo::default());
    let mut live = BTreeSet::new();
    for _ in 0..500 {
        assert!(live.insert(allocate(&mut sets, &layout).unwrap()));
    }
}

#[test]
fn tickets_of_two_clocks_are_refused_or_told_of() {
    let (rig, layout, mut sets) = uniform(Rig::new(), &TransientSetsCreateInfo::default());
    let another = sublet::retire::Clock::new();
    let foreign = another.open(another.add_lane().unwrap());
    allocate(&mut sets, &layout).unwrap();
    let own = rig.open();
    sets.flush(own).unwrap();
    // Without sets to flush, the foreign ticket is accepted.
    sets.flush(foreign).unwrap();
    allocate(&mut sets, &layout).unwrap();
    let mixed = sublet::retire::MixedClocks { ticket: foreign, waiting: own };
    assert_eq!(sets.flush(foreign), Err(mixed));
    sets.flush(own).unwrap();
    // Another clock, which does not know the ticket.
    let error = sets.collect(&another).unwrap_err();
    assert_eq!((error.collected, error.left, error.source), (0, 0, None));
    assert_eq!(error.other_clock.map(|other| (other.ticket, other.collected)), Some((own, 0)));
    rig.discard(own);
    assert!(sets.collect(&rig.clock).unwrap() > 0);
    assert_eq!(sets.collect(&another), Ok(0));
}
