//! Pools are reset once the device is done with them, not earlier, and with one call each.

use std::collections::BTreeSet;

use sublet::descriptor::TransientSetsCreateInfo;

use crate::fixture::*;

#[test]
fn nothing_is_reset_while_the_device_uses_it() {
    for share_pools in [false, true] {
        let info = TransientSetsCreateInfo { share_pools, ..fixed(4, &[size(UNIFORM, 4)]) };
        let (mut fixture, layout, mut sets) = uniform(Fixture::new(), &info);
        fixture.gpu.hold_submissions(true);
        let mut in_flight = Vec::new();
        for value in 1..40 {
            let ticket = fixture.open();
            let used: Vec<_> = (0..6).map(|_| allocate(&mut sets, &layout).unwrap()).collect();
            sets.flush(ticket).unwrap();
            fixture.submit(&layout, &used);
            fixture.clock.submit(ticket, value).unwrap();
            in_flight.push(used);
            sets.collect(&fixture.clock).unwrap();
            if value % 3 == 0 {
                fixture.gpu.run_pending();
                fixture.clock.completed(fixture.timeline, value);
                sets.collect(&fixture.clock).unwrap();
            }
            fixture.gpu.assert_silent();
        }
        assert!(sets.statistics().resets > 20, "{:?}", sets.statistics());
        fixture.gpu.hold_submissions(false);
    }
}

#[test]
fn the_simulator_would_see_it() {
    let (mut fixture, layout, mut sets) = uniform(Fixture::new(), &fixed(4, &[size(UNIFORM, 4)]));
    fixture.gpu.hold_submissions(true);
    let set = allocate(&mut sets, &layout).unwrap();
    fixture.submit(&layout, &[set]);
    let ticket = fixture.open();
    sets.flush(ticket).unwrap();
    // A misuse by the program: it discards the ticket although the work is not done.
    fixture.discard(ticket);
    sets.collect(&fixture.clock).unwrap_err();
    let messages = fixture.gpu.take_messages();
    assert_eq!(messages[0].vuid, "VUID-vkResetDescriptorPool-descriptorPool-00313");
    fixture.gpu.hold_submissions(false);
}

#[test]
fn a_pool_is_reset_by_one_call_however_many_sets_it_has() {
    let (fixture, layout, mut sets) = uniform(Fixture::new(), &fixed(100, &[size(UNIFORM, 100)]));
    many(&mut sets, &layout, 200);
    let ticket = fixture.open();
    sets.flush(ticket).unwrap();
    assert_eq!(sets.collect(&fixture.clock), Ok(0));
    assert_eq!(fixture.gpu.calls("vkResetDescriptorPool"), 0, "an open recording keeps them");
    fixture.discard(ticket);
    assert_eq!(sets.collect(&fixture.clock), Ok(2));
    assert_eq!(fixture.gpu.calls("vkResetDescriptorPool"), 2);
    assert_eq!(fixture.gpu.calls("vkFreeDescriptorSets"), 0);
    assert_eq!(sets.collect(&fixture.clock), Ok(0), "and not again");
}

#[test]
fn the_pool_that_came_back_last_is_used_first() {
    let (fixture, layout, mut sets) = uniform(Fixture::new(), &fixed(2, &[size(UNIFORM, 2)]));
    let tickets: Vec<_> = (0..4)
        .map(|_| {
            let ticket = fixture.open();
            allocate(&mut sets, &layout).unwrap();
            sets.flush(ticket).unwrap();
            ticket
        })
        .collect();
    let resets = |fixture: &Fixture| fixture.gpu.calls("vkResetDescriptorPool");
    for &ticket in &tickets {
        fixture.discard(ticket);
        sets.collect(&fixture.clock).unwrap();
    }
    assert_eq!(resets(&fixture), 4);
    // One frame at a time reuses the same pool. The others stay idle and can be trimmed.
    for _ in 0..20 {
        let ticket = fixture.open();
        allocate(&mut sets, &layout).unwrap();
        sets.flush(ticket).unwrap();
        fixture.discard(ticket);
        sets.collect(&fixture.clock).unwrap();
    }
    assert_eq!(sets.trim(), 2);
}

#[test]
fn recordings_may_be_submitted_in_another_order_than_they_were_recorded() {
    for share_pools in [false, true] {
        let info = TransientSetsCreateInfo { share_pools, ..fixed(4, &[size(UNIFORM, 4)]) };
        let (mut fixture, layout, mut sets) = uniform(Fixture::new(), &info);
        fixture.gpu.hold_submissions(true);
        let (first, second) = (fixture.open(), fixture.open());
        let of_first = allocate(&mut sets, &layout).unwrap();
        sets.flush(first).unwrap();
        let of_second = allocate(&mut sets, &layout).unwrap();
        sets.flush(second).unwrap();
        fixture.submit(&layout, &[of_second]);
        fixture.clock.submit(second, 1).unwrap();
        fixture.gpu.run_pending();
        fixture.clock.completed(fixture.timeline, 1);
        let collected = sets.collect(&fixture.clock).unwrap();
        assert_eq!(collected, usize::from(!share_pools), "the pool of the second alone");
        // The first recording is still open.
        fixture.submit(&layout, &[of_first]);
        fixture.clock.submit(first, 2).unwrap();
        assert_eq!(sets.collect(&fixture.clock), Ok(0));
        fixture.gpu.run_pending();
        fixture.clock.completed(fixture.timeline, 2);
        sets.collect(&fixture.clock).unwrap();
        // With shared pools, the next pool is still open.
        sets.trim();
        sets.collect(&fixture.clock).unwrap();
        assert_eq!(sets.statistics().live_sets, 0);
        fixture.gpu.hold_submissions(false);
    }
}

#[test]
fn timelines_do_not_hold_one_another_up() {
    let mut fixture = Fixture::new();
    let layout = fixture.layout(&[(UNIFORM, 1)]);
    let slow = fixture.clock.add_timeline().unwrap();
    let mut sets = fixture.sets(&fixed(4, &[size(UNIFORM, 4)]));
    let stuck = fixture.clock.open(slow);
    allocate(&mut sets, &layout).unwrap();
    sets.flush(stuck).unwrap();
    for value in 1..100 {
        let ticket = fixture.open();
        allocate(&mut sets, &layout).unwrap();
        sets.flush(ticket).unwrap();
        fixture.clock.submit(ticket, value).unwrap();
        fixture.clock.completed(fixture.timeline, value);
        assert_eq!(sets.collect(&fixture.clock), Ok(1));
    }
    assert_eq!(sets.statistics().pools, 2);
}

#[test]
fn a_recording_that_is_discarded_gives_its_pools_back() {
    let (fixture, layout, mut sets) = uniform(Fixture::new(), &fixed(4, &[size(UNIFORM, 4)]));
    for _ in 0..50 {
        let ticket = fixture.open();
        allocate(&mut sets, &layout).unwrap();
        sets.flush(ticket).unwrap();
        fixture.discard(ticket);
        assert_eq!(sets.collect(&fixture.clock), Ok(1));
    }
    assert_eq!(sets.statistics().pools, 2);
}

#[test]
fn going_from_three_frames_in_flight_to_two_wedges_nothing() {
    let (fixture, layout, mut sets) = uniform(Fixture::new(), &fixed(4, &[size(UNIFORM, 4)]));
    let frame = |sets: &mut sublet::descriptor::TransientSets, slot| {
        let ticket = fixture.clock.begin_frame(fixture.timeline, slot);
        sets.collect(&fixture.clock).unwrap();
        many(sets, &layout, 4);
        sets.flush(ticket).unwrap();
        fixture.clock.end_frame(ticket).unwrap();
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
    let (mut fixture, layout, mut sets) = uniform(Fixture::new(), &fixed(4, &[size(UNIFORM, 4)]));
    fixture.gpu.hold_submissions(true);
    let ticket = fixture.clock.begin_frame(fixture.timeline, 0);
    let set = allocate(&mut sets, &layout).unwrap();
    fixture.submit(&layout, &[set]);
    sets.flush(ticket).unwrap();
    // The frame was neither ended nor discarded, as after an early return, and its slot is reused.
    let again = fixture.clock.begin_frame(fixture.timeline, 0);
    assert_eq!(sets.collect(&fixture.clock), Ok(0));
    fixture.gpu.assert_silent();
    fixture.gpu.run_pending();
    fixture.clock.end_frame(ticket).unwrap();
    fixture.clock.end_frame(again).unwrap();
    fixture.clock.idle();
    assert_eq!(sets.collect(&fixture.clock), Ok(1));
    fixture.gpu.hold_submissions(false);
}

#[test]
fn after_the_last_frame_idle_and_collect_leave_everything_free() {
    let (fixture, layout, mut sets) = uniform(Fixture::new(), &fixed(4, &[size(UNIFORM, 4)]));
    for slot in 0..3 {
        let ticket = fixture.clock.begin_frame(fixture.timeline, slot);
        many(&mut sets, &layout, 10);
        sets.flush(ticket).unwrap();
        fixture.clock.end_frame(ticket).unwrap();
    }
    fixture.clock.idle();
    sets.collect(&fixture.clock).unwrap();
    let statistics = sets.statistics();
    assert_eq!((statistics.waiting_pools, statistics.free_pools), (0, statistics.pools));
    // Ensures that nothing is left even without `destroy`.
    drop(sets.release());
}

#[test]
fn every_set_is_its_own_while_it_lives() {
    let (_rig, layout, mut sets) = uniform(Fixture::new(), &TransientSetsCreateInfo::default());
    let mut live = BTreeSet::new();
    for _ in 0..500 {
        assert!(live.insert(allocate(&mut sets, &layout).unwrap()));
    }
}

#[test]
fn tickets_of_two_clocks_are_refused_or_told_of() {
    let (fixture, layout, mut sets) = uniform(Fixture::new(), &TransientSetsCreateInfo::default());
    let another = sublet::retire::Clock::new();
    let foreign = another.open(another.add_timeline().unwrap());
    allocate(&mut sets, &layout).unwrap();
    let own = fixture.open();
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
    fixture.discard(own);
    assert!(sets.collect(&fixture.clock).unwrap() > 0);
    assert_eq!(sets.collect(&another), Ok(0));
}
