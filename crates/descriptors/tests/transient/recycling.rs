//! Pools are reset once the device is done with them, not earlier, and with one call each.

use std::collections::BTreeSet;

use sublet_descriptors::TransientSetsCreateInfo;

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
