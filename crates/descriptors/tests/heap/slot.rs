//! The place of a slot, for shaders, for the host and for the GPU.

use sublet_descriptors::{
    ClassicStore, DescriptorHeap, DescriptorKind, HeapCreateInfo, HeapKind, HeapWriteError, HostSlot,
    OutOfRange, RangeError,
};

use crate::common::{Fixture, hold};
use crate::shader::TYPES;

const INFO: HeapCreateInfo<'static> =
    HeapCreateInfo { slots: 8, types: TYPES, ..HeapCreateInfo::new(HeapKind::Resource) };

#[test]
fn a_slot_of_a_descriptor_buffer_is_bytes_with_an_address() {
    let fixture = Fixture::new("nvidia-h200");
    let heap = fixture.buffer_heap(&INFO);
    let range = heap.allocate(3).unwrap();
    let kind = DescriptorKind::StorageBuffer;
    let [first, second] = [0, 1].map(|slot| heap.slot(range.id(), slot, kind).unwrap());
    assert_eq!((first.index, second.index), (range.first(), range.first() + 1));
    let stride = heap.store().stride(kind).unwrap();
    assert_eq!(second.device.unwrap() - first.device.unwrap(), stride);
    assert_eq!(first.device, heap.store().address_of(kind, first.index));
    let (Some(HostSlot::Mapped { pointer, bytes }), Some(HostSlot::Mapped { pointer: next, .. })) =
        (first.host, second.host)
    else {
        panic!("{first:?} {second:?}");
    };
    assert_eq!(u64::try_from(next.addr().get() - pointer.addr().get()).unwrap(), stride);
    // The host pointer shows the bytes that a write changes.
    let before = unsafe { std::slice::from_raw_parts(pointer.as_ptr(), bytes) }.to_vec();
    unsafe { heap.write(range.id(), 0, &fixture.storage(3)) }.unwrap();
    let after = unsafe { std::slice::from_raw_parts(pointer.as_ptr(), bytes) }.to_vec();
    assert_ne!(before, after);
}

#[test]
fn a_slot_of_a_set_is_an_element_of_a_binding() {
    let fixture = Fixture::new("nvidia-h200");
    let heap = fixture.set_heap(&INFO);
    let range = heap.allocate(2).unwrap();
    let slot = heap.slot(range.id(), 1, DescriptorKind::UniformBuffer).unwrap();
    let binding = heap.store().binding(DescriptorKind::UniformBuffer).unwrap();
    assert_eq!((slot.index, slot.device), (range.first() + 1, None));
    assert_eq!(slot.host, Some(HostSlot::Set { set: heap.store().set(), binding }));
    let kind = DescriptorKind::SampledImage;
    assert_eq!(heap.slot(range.id(), 0, kind), Err(HeapWriteError::Kind { kind }));
    let outside = OutOfRange { slot: 2, count: 2 };
    assert_eq!(heap.slot(range.id(), 2, kind), Err(HeapWriteError::OutOfRange(outside)));
    let id = range.id();
    unsafe { heap.free(range) }.unwrap();
    let stale = HeapWriteError::Range(RangeError::StaleHandle { range: id });
    assert_eq!(heap.slot(id, 0, DescriptorKind::UniformBuffer), Err(stale));
}

#[test]
fn a_slot_of_copies_is_written_by_their_update_alone() {
    let fixture = Fixture::new("lavapipe");
    let defaults = [fixture.uniform(0), fixture.storage(0)];
    let store = unsafe { ClassicStore::new(&fixture.device, &INFO, 2, &defaults) }.unwrap();
    let heap = hold(DescriptorHeap::new(store));
    let range = heap.allocate(1).unwrap();
    let slot = heap.slot(range.id(), 0, DescriptorKind::StorageBuffer).unwrap();
    assert_eq!(slot.host, Some(HostSlot::EachFrame { binding: 1 }));
    assert_eq!(slot.index, range.first());
}
