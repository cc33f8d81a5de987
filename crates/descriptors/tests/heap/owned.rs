//! Ranges that retire themselves.

use std::sync::Arc;

use sublet_descriptors::{DescriptorHeap, HeapStore, HeapWriteError, OwnedRange, RangeError};

/// A store that ignores all writes.
struct Nothing;

impl HeapStore for Nothing {
    fn slots(&self) -> u32 {
        8
    }

    unsafe fn write(&self, _: u32, _: &sublet_descriptors::Descriptor) -> Result<(), HeapWriteError> {
        Ok(())
    }
}

#[test]
fn a_dropped_range_is_retired_once_and_at_no_other_time() {
    let clock = sublet::retire::Clock::new();
    let timeline = clock.add_timeline().unwrap();
    let heap: Arc<DescriptorHeap<Nothing>> = Arc::new(DescriptorHeap::new(Nothing));
    let one = OwnedRange::new(Arc::clone(&heap), 3).unwrap();
    let two = OwnedRange::new(Arc::clone(&heap), 5).unwrap();
    let kept = one.id();
    drop(one);
    assert_eq!(heap.check(kept), Ok(()), "it waits for a promise");
    let ticket = clock.open(timeline);
    assert_eq!(unsafe { heap.retire_dropped(ticket) }, 1);
    assert_eq!(heap.check(kept), Err(RangeError::StaleHandle { range: kept }));
    assert_eq!(unsafe { heap.retire_dropped(ticket) }, 0, "not twice");
    clock.discard(ticket).unwrap();
    assert_eq!(heap.collect(&clock), Ok(3));
    let statistics = heap.statistics();
    assert_eq!((statistics.live, statistics.retiring, statistics.free), (5, 0, 3));
    drop(two);
    assert_eq!(Arc::strong_count(&heap), 1);
}

#[test]
fn a_range_that_is_taken_out_is_the_programs() {
    let heap: Arc<DescriptorHeap<Nothing>> = Arc::new(DescriptorHeap::new(Nothing));
    let range = OwnedRange::new(Arc::clone(&heap), 8).unwrap().into_range();
    assert_eq!(Arc::strong_count(&heap), 1, "the heap is let go of");
    let clock = sublet::retire::Clock::new();
    let ticket = clock.open(clock.add_timeline().unwrap());
    assert_eq!(unsafe { heap.retire_dropped(ticket) }, 0);
    unsafe { heap.free(range) }.unwrap();
    assert_eq!(heap.statistics().free, 8);
}

#[test]
fn a_full_heap_owns_nothing() {
    let heap: DescriptorHeap<Nothing> = DescriptorHeap::new(Nothing);
    assert!(OwnedRange::new(&heap, 9).is_err());
    assert_eq!(heap.statistics().free, 8);
}
