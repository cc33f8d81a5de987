//! Sets that the device may still use.

use sublet::retire::Clock;

use crate::common::{Fixture, allocate, free};

#[test]
fn an_allocator_that_is_destroyed_takes_its_retired_sets_with_it() {
    let (_kit, layout, sets) = Fixture::with_sets();
    let clock = Clock::new();
    let ticket = clock.open(clock.add_timeline().unwrap());
    unsafe { sets.retire(ticket, allocate(&sets, &layout)) }.unwrap();
}

#[test]
fn sets_that_wait_for_another_clock_are_told_of() {
    let (_kit, layout, sets) = Fixture::with_sets();
    let (clock, another) = (Clock::new(), Clock::new());
    let own = clock.open(clock.add_timeline().unwrap());
    let foreign = another.open(another.add_timeline().unwrap());
    for ticket in [own, foreign, foreign] {
        unsafe { sets.retire(ticket, allocate(&sets, &layout)) }.unwrap();
    }
    clock.discard(own).unwrap();
    let foreign_clock = sublet::retire::OtherClock { ticket: foreign, tickets: 1, collected: 1 };
    assert_eq!(sets.collect(&clock), Err(foreign_clock));
    assert_eq!(sets.statistics().retired_sets, 2);
    another.discard(foreign).unwrap();
    assert_eq!(sets.collect(&another), Ok(2));
    assert_eq!(sets.collect(&clock), Ok(0));
}

/// Dropping is safe, so it destroys nothing that the device may use.
#[test]
fn an_allocator_that_is_dropped_leaves_pools_with_sets_that_may_be_in_use() {
    let fixture = Fixture::new();
    let layouts =
        [fixture.uniform(), fixture.layout(&[(sublet_descriptors::DescriptorKind::SampledImage, 3)])];
    let third = fixture.layout(&[(sublet_descriptors::DescriptorKind::Sampler, 2)]);
    let pools = || fixture.gpu.live().descriptor_pools;
    let clock = Clock::new();
    let ticket = clock.open(clock.add_timeline().unwrap());
    // One pool has a live set, one has a retired set, and one is empty.
    let sets = fixture.sets();
    let _alive = allocate(&sets, &layouts[0]);
    unsafe { sets.retire(ticket, allocate(&sets, &layouts[1])) }.unwrap();
    free(&sets, allocate(&sets, &third));
    assert_eq!(pools(), 3);
    drop(sets.release());
    assert_eq!(pools(), 2);
    // No set is in use, so all pools are destroyed.
    let sets = fixture.sets();
    let set = allocate(&sets, &layouts[0]);
    unsafe { sets.retire(ticket, set) }.unwrap();
    clock.discard(ticket).unwrap();
    sets.collect(&clock).unwrap();
    drop(sets.release());
    assert_eq!(pools(), 2);
    drop(fixture.release());
}
