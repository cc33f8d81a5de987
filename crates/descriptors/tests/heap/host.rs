//! Descriptors in host memory.

use sublet_descriptors::{
    CreateHeapError, Descriptor, DescriptorKind, HeapError, HeapStatistics, HeapWriteError, HostHeap,
    HostHeapCreateInfo, OutOfRange, RangeError, SlotState,
};

use crate::common::Fixture;

fn info(block: u32, max_slots: u32) -> HostHeapCreateInfo<'static> {
    HostHeapCreateInfo { block, max_slots, ..Default::default() }
}

#[test]
fn it_grows_by_blocks_and_a_large_request_makes_no_block_larger() {
    let fixture = Fixture::new("lavapipe");
    let mut heap = HostHeap::new(&fixture.device, &info(60, 256)).unwrap();
    let capacity = |heap: &HostHeap| heap.statistics().capacity;
    assert_eq!(capacity(&heap), 0);
    let all = heap.allocate(64).unwrap();
    assert_eq!(capacity(&heap), 64);
    // The first request filled the block, so the next one goes to a second block of the usual size.
    let small = heap.allocate(1).unwrap();
    assert_eq!((capacity(&heap), small.first()), (128, 64));
    assert_eq!(heap.allocate(257), Err(HeapError::TooMany { asked: 257, most: 256 }));
    assert_eq!(heap.allocate(0), Err(HeapError::ZeroCount));
    heap.free(all).unwrap();
    // Freed space is reused before a block is added.
    assert_eq!(heap.allocate(33).unwrap().first(), 0);
    assert_eq!(capacity(&heap), 128);
    let _rest = [(); 2].map(|()| heap.allocate(64).unwrap());
    let error = heap.allocate(64).unwrap_err();
    assert_eq!(error, HeapError::Full { asked: 64, free: 63, largest_free: 32, retiring: 0 });
    assert_eq!(capacity(&heap), 256);
    let HeapStatistics { free, live, ranges, peak, .. } = heap.statistics();
    assert_eq!((free, live, ranges, peak), (63, 193, 4, 193));
}

/// A block with enough free slots, but no run of that length, does not satisfy the request.
#[test]
fn free_slots_that_are_not_in_a_row_do_not_count_as_room() {
    let fixture = Fixture::new("lavapipe");
    let mut heap = HostHeap::new(&fixture.device, &info(64, 128)).unwrap();
    let quarters = [(); 4].map(|()| heap.allocate(16).unwrap());
    let [first, _, third, _] = quarters;
    let expected = [&first, &third].map(|range| range.first());
    for quarter in [first, third] {
        heap.free(quarter).unwrap();
    }
    let half = heap.allocate(32).unwrap();
    assert_eq!((half.first(), heap.statistics().capacity), (64, 128), "of a second block");
    assert_eq!(heap.allocate(32).unwrap().first(), 96);
    // The gaps are still usable.
    let mut gaps = [(); 2].map(|()| heap.allocate(16).unwrap().first());
    gaps.sort_unstable();
    assert_eq!(gaps, expected);
    assert_eq!(heap.statistics().free, 0);
}

/// 300 slots exceed the block size of 256, so they get a block of their own, which is freed with them.
#[test]
fn a_range_that_is_longer_than_a_block_gets_its_own() {
    let fixture = Fixture::new("lavapipe");
    let mut heap = HostHeap::new(&fixture.device, &HostHeapCreateInfo::default()).unwrap();
    let small = heap.allocate(1).unwrap();
    let large = heap.allocate(300).unwrap();
    assert_eq!((large.count(), heap.statistics().capacity), (300, 256 + 512));
    unsafe { heap.write(large.id(), 299, &fixture.sampler(0)) }.unwrap();
    let all = heap.allocate(256).unwrap();
    assert_eq!(heap.statistics().capacity, 2 * 256 + 512, "later blocks are no larger");
    let mut indices = Vec::new();
    heap.walk(|run| indices.push((run.first, run.count)));
    assert!(indices.is_sorted());
    let kept = large.id();
    heap.free(large).unwrap();
    assert_eq!(heap.statistics().capacity, 2 * 256);
    assert_eq!(heap.check(kept), Err(RangeError::StaleHandle { range: kept }));
    heap.free(all).unwrap();
    assert_eq!(heap.statistics().capacity, 2 * 256, "one empty block is kept");
    let kept = small.id();
    heap.free(small).unwrap();
    assert_eq!((heap.statistics().capacity, heap.trim(), heap.statistics().capacity), (256, 1, 0));
    // The slots are free again, but the old handles are stale.
    let again = heap.allocate(1).unwrap();
    assert_eq!((again.first(), heap.check(kept)), (0, Err(RangeError::StaleHandle { range: kept })));
}

#[test]
fn what_a_heap_cannot_be_made_of_is_said() {
    let fixture = Fixture::new("lavapipe");
    for (block, max_slots) in [(0, 64), (65, 100), (u32::MAX, u32::MAX)] {
        let error = HostHeap::new(&fixture.device, &info(block, max_slots)).unwrap_err();
        assert_eq!(error, CreateHeapError::Block { block, max_slots });
        assert!(error.to_string().contains(&format!("blocks of {block} slots")), "{error}");
    }
    for types in [
        &[DescriptorKind::UniformBufferDynamic][..],
        &[DescriptorKind::Sampler, DescriptorKind::Sampler],
        &[DescriptorKind::StorageBuffer, DescriptorKind::StorageBuffer],
    ] {
        let info = HostHeapCreateInfo { types, ..Default::default() };
        assert!(matches!(HostHeap::new(&fixture.device, &info), Err(CreateHeapError::Kind { .. })));
    }
}

/// A block of 2^31 slots, of which few are used.
#[test]
fn the_largest_block_costs_what_is_used_of_it() {
    let fixture = Fixture::new("lavapipe");
    let mut heap = HostHeap::new(&fixture.device, &info(1 << 31, u32::MAX)).unwrap();
    let range = heap.allocate(3).unwrap();
    unsafe { heap.write(range.id(), 2, &fixture.sampler(0)) }.unwrap();
    assert_eq!(heap.statistics().capacity, 1 << 31);
}

#[test]
fn stale_foreign_and_missing_slots_are_found_out() {
    let fixture = Fixture::new("lavapipe");
    let mut heap = HostHeap::new(&fixture.device, &info(16, 64)).unwrap();
    let mut other = HostHeap::new(&fixture.device, &info(16, 64)).unwrap();
    let (owned, strange) = (heap.allocate(2).unwrap(), other.allocate(2).unwrap());
    let (range, foreign) = (owned.id(), strange.id());
    let mut write = |range, slot, descriptor: &Descriptor| unsafe { heap.write(range, slot, descriptor) };
    assert_eq!(write(range, 1, &fixture.sampler(0)), Ok(()));
    assert_eq!(
        write(range, 2, &fixture.sampler(0)),
        Err(HeapWriteError::OutOfRange(OutOfRange { slot: 2, count: 2 }))
    );
    assert_eq!(
        write(foreign, 0, &fixture.sampler(0)),
        Err(HeapWriteError::Range(RangeError::ForeignHeap { range: foreign }))
    );
    let error = heap.free(strange).unwrap_err();
    assert!(error.to_string().contains("another heap"), "{error}");
    other.free(error.range).unwrap();
    heap.free(owned).unwrap();
    assert_eq!(heap.check(range), Err(RangeError::StaleHandle { range }));
    let mut states = Vec::new();
    heap.walk(|run| states.push((run.first, run.count, run.state)));
    assert_eq!(states, [(0, 16, SlotState::Free)]);
}
