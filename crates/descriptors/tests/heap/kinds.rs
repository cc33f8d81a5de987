//! Heaps of every kind and on every store wait for the device in the same way.

use sublet::retire::OtherClock;
use sublet_descriptors::{DescriptorHeap, HeapCreateInfo, HeapError, HeapKind, HeapStore, RangeError};

use crate::common::Fixture;

/// `value` is the value that the submission signals. A well-known Direct3D 12 sample defers frees in only one of its
/// heaps, and reuses the slots of the others at once.
fn slots_are_free_when_the_submission_is_done<S: HeapStore>(
    fixture: &Fixture,
    heap: &DescriptorHeap<S>,
    value: u64,
) {
    let range = heap.allocate(8).unwrap();
    let id = range.id();
    let ticket = fixture.clock.open(fixture.timeline);
    unsafe { heap.retire(ticket, range) }.unwrap();
    assert_eq!(heap.check(id), Err(RangeError::StaleHandle { range: id }));
    let full = HeapError::Full { asked: 1, free: 0, largest_free: 0, retiring: 8 };
    assert_eq!(heap.allocate(1), Err(full.clone()), "recorded");
    fixture.clock.submit(ticket, value).unwrap();
    fixture.clock.completed(fixture.timeline, value - 1);
    assert_eq!(heap.collect(&fixture.clock), Ok(0));
    assert_eq!(heap.allocate(1), Err(full), "in flight");
    fixture.clock.completed(fixture.timeline, value);
    assert_eq!(heap.collect(&fixture.clock), Ok(8));
    assert_eq!(heap.allocate(8).unwrap().first(), id.first());
}

#[test]
fn no_kind_of_heap_gives_away_what_a_submission_still_uses() {
    for kind in [HeapKind::Resource, HeapKind::Sampler] {
        let fixture = Fixture::new("nvidia-h200");
        let info = HeapCreateInfo { slots: 8, ..HeapCreateInfo::new(kind) };
        let heap = fixture.set_heap(&info);
        slots_are_free_when_the_submission_is_done(&fixture, &heap, 1);
        drop(heap);
        let heap = fixture.buffer_heap(&info);
        slots_are_free_when_the_submission_is_done(&fixture, &heap, 2);
    }
}

/// Otherwise they would wait forever without an error.
#[test]
fn ranges_that_wait_for_another_clock_are_told_of() {
    let fixture = Fixture::new("nvidia-h200");
    let another = sublet::retire::Clock::new();
    let foreign = another.open(another.add_timeline().unwrap());
    let info = HeapCreateInfo { slots: 64, ..HeapCreateInfo::new(HeapKind::Resource) };
    let heap = fixture.set_heap(&info);
    let (own, lost) = (heap.allocate(8).unwrap(), heap.allocate(16).unwrap());
    unsafe { heap.retire(fixture.done(), own) }.unwrap();
    unsafe { heap.retire(foreign, lost) }.unwrap();
    // Ranges that this clock reports as done are freed nonetheless.
    let foreign_clock = OtherClock { ticket: foreign, tickets: 1, collected: 8 };
    assert_eq!(heap.collect(&fixture.clock), Err(foreign_clock));
    assert_eq!((heap.statistics().free, heap.statistics().retiring), (48, 16));
    another.discard(foreign).unwrap();
    assert_eq!(heap.collect(&another), Ok(16));
    assert_eq!(heap.collect(&fixture.clock), Ok(0));
}
