//! Names of sets.

use sublet::retire::Clock;
use sublet_descriptors::StaleDescriptorSet;

use crate::common::{Fixture, allocate, free};

#[test]
fn a_name_finds_its_set_and_never_another() {
    let (_kit, layout, sets) = Fixture::with_sets();
    let first = allocate(&sets, &layout);
    let (id, handle) = (first.id(), first.handle());
    assert_eq!(sets.set(id), Ok(handle));
    free(&sets, first);
    assert_eq!(sets.set(id), Err(StaleDescriptorSet { id }));
    let second = allocate(&sets, &layout);
    assert_eq!(second.handle(), handle, "it serves its layout again");
    assert_eq!(sets.set(id), Err(StaleDescriptorSet { id }), "and not under its old name");
    assert_eq!(sets.set(second.id()), Ok(handle));
    free(&sets, second);
}

#[test]
fn a_name_ends_when_its_set_is_retired_and_not_when_it_is_collected() {
    let (_kit, layout, sets) = Fixture::with_sets();
    let clock = Clock::new();
    let ticket = clock.open(clock.add_timeline().unwrap());
    let set = allocate(&sets, &layout);
    let id = set.id();
    unsafe { sets.retire(ticket, set) }.unwrap();
    assert!(sets.set(id).is_err());
    clock.shutdown();
    assert_eq!(sets.collect(&clock), Ok(1));
    let again = allocate(&sets, &layout);
    assert!(sets.set(id).is_err() && sets.set(again.id()).is_ok());
    free(&sets, again);
}

#[test]
fn names_end_with_pools_and_do_not_come_back_in_other_buckets() {
    let fixture = Fixture::new();
    let sets = fixture.sets();
    let mut old = Vec::new();
    for count in 1..30 {
        let layout = fixture.layout(&[(sublet_descriptors::DescriptorKind::StorageBuffer, count)]);
        let set = allocate(&sets, &layout);
        assert!(old.iter().all(|&id| sets.set(id).is_err()) && !old.contains(&set.id()));
        old.push(set.id());
        free(&sets, set);
        // The bucket now belongs to another shape.
        assert_eq!(sets.trim(), 1);
    }
    assert_eq!(sets.statistics(), Default::default());
}

#[test]
fn sets_and_names_of_another_allocator_are_refused_and_the_set_comes_back() {
    let fixture = Fixture::new();
    let layout = fixture.uniform();
    let (one, other) = (fixture.sets(), fixture.sets());
    let (mine, theirs) = (allocate(&one, &layout), allocate(&other, &layout));
    let handle = theirs.handle();
    assert!(one.set(theirs.id()).is_err());
    let back = unsafe { one.free(theirs) }.unwrap_err().set;
    let clock = Clock::new();
    let ticket = clock.open(clock.add_timeline().unwrap());
    let back = unsafe { one.retire(ticket, back) }.unwrap_err().set;
    assert_eq!(back.handle(), handle);
    assert_eq!(one.statistics().live_sets, 1);
    free(&other, back);
    free(&one, mine);
}
