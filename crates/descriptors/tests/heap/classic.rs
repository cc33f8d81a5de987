//! A copy of the set for each frame in flight.

use ash::vk;
use sublet::sim::{self, profiles};
use sublet_descriptors::{
    ClassicStore, CreateHeapError, DescriptorHeap, DescriptorKind, HeapArrays, HeapCreateInfo, HeapKind,
    HeapWriteError,
};

use crate::common::{Fixture, Held, hold};

const TYPES: &[DescriptorKind] = &[DescriptorKind::StorageBuffer, DescriptorKind::UniformBuffer];

fn small() -> HeapCreateInfo<'static> {
    HeapCreateInfo { slots: 8, transient: 2, types: TYPES, ..HeapCreateInfo::new(HeapKind::Resource) }
}

/// Creates a heap whose free slots describe the bytes from 1,024 on.
fn heap(fixture: &Fixture, copies: u32) -> Held<DescriptorHeap<ClassicStore>> {
    let defaults = [fixture.storage(4), fixture.uniform(4)];
    hold(DescriptorHeap::new(
        unsafe { ClassicStore::new(&fixture.device, &small(), copies, &defaults) }.unwrap(),
    ))
}

/// Returns the offsets of the storage buffers in a copy, in units of 256 bytes.
fn shown(fixture: &Fixture, heap: &DescriptorHeap<ClassicStore>, frame: u32) -> Vec<Option<u64>> {
    let binding = heap.store().binding(DescriptorKind::StorageBuffer).unwrap();
    let of = |index| match fixture.gpu.descriptor(heap.store().set(frame), binding, index)? {
        sim::SimulatedDescriptor::Buffer { offset, .. } => Some(offset / 256),
        other => panic!("{other:?}"),
    };
    (0..8).map(of).collect()
}

fn update(heap: &DescriptorHeap<ClassicStore>, frame: u32) -> u32 {
    unsafe { heap.store().update(frame) }
}

fn somes(offsets: [u64; 8]) -> Vec<Option<u64>> {
    offsets.into_iter().map(Some).collect()
}

#[test]
fn every_copy_learns_what_was_written_when_its_frame_comes() {
    for &profile in profiles::ALL {
        let fixture = Fixture::new(profile.name);
        let heap = heap(&fixture, 2);
        let range = heap.allocate(3).unwrap();
        assert_eq!(shown(&fixture, &heap, 0), [None; 8]);
        // Both arrays of the first copy.
        assert_eq!(update(&heap, 0), 16);
        assert_eq!(shown(&fixture, &heap, 0), somes([4; 8]), "{}", profile.name);
        let index = unsafe { heap.write(range.id(), 1, &fixture.storage(2)) }.unwrap();
        assert_eq!(index, 1);
        // The first copy is in use, so it does not change until its next update.
        assert_eq!(shown(&fixture, &heap, 0), somes([4; 8]));
        assert_eq!(update(&heap, 1), 16);
        assert_eq!(shown(&fixture, &heap, 1), somes([4, 2, 4, 4, 4, 4, 4, 4]));
        assert_eq!((update(&heap, 2), update(&heap, 3)), (1, 0));
        assert_eq!(shown(&fixture, &heap, 0), shown(&fixture, &heap, 1));
        // A slot that is written twice is updated once.
        for at in [3, 5] {
            unsafe { heap.write(range.id(), 1, &fixture.storage(at)) }.unwrap();
        }
        assert_eq!((update(&heap, 0), update(&heap, 0)), (1, 0));
        assert_eq!(shown(&fixture, &heap, 0), somes([4, 5, 4, 4, 4, 4, 4, 4]));
    }
}

#[test]
fn a_copy_is_brought_up_to_date_with_one_call() {
    let fixture = Fixture::new("lavapipe");
    let heap = heap(&fixture, 2);
    let calls = || fixture.gpu.calls("vkUpdateDescriptorSets");
    let range = heap.allocate(4).unwrap();
    let all = [fixture.storage(1), fixture.storage(2), fixture.uniform(0), fixture.storage(3)];
    assert_eq!(unsafe { heap.write_many(range.id(), 0, &all) }, Ok(range.first()));
    assert_eq!((update(&heap, 0), calls()), (16, 1));
    assert_eq!(shown(&fixture, &heap, 0), somes([1, 2, 4, 3, 4, 4, 4, 4]));
    assert_eq!((update(&heap, 0), calls()), (0, 1), "nothing has changed");
    // The last descriptor has a wrong type, so nothing is recorded.
    // SAFETY: the call is rejected.
    let refused = unsafe { heap.write_many(range.id(), 0, &[fixture.storage(7), fixture.sampler(0)]) };
    assert_eq!(refused, Err(HeapWriteError::Kind { kind: DescriptorKind::Sampler }));
    assert_eq!((update(&heap, 0), calls()), (0, 1));
    assert_eq!((update(&heap, 1), calls()), (16, 2));
    assert_eq!(shown(&fixture, &heap, 1), shown(&fixture, &heap, 0));
}

#[test]
fn what_was_retired_is_in_no_copy_that_is_bound_afterwards() {
    let fixture = Fixture::new("lavapipe");
    let heap = heap(&fixture, 2);
    let range = heap.allocate(2).unwrap();
    for slot in 0..2 {
        unsafe { heap.write(range.id(), slot, &fixture.storage(slot.into())) }.unwrap();
    }
    assert_eq!((update(&heap, 0), update(&heap, 1)), (16, 16));
    let frame = fixture.clock.open(fixture.timeline);
    unsafe { heap.retire(frame, range) }.unwrap();
    // Two slots are updated. Those of the other array already have their defaults.
    assert_eq!((update(&heap, 0), update(&heap, 1)), (2, 2));
    assert_eq!(shown(&fixture, &heap, 0), somes([4; 8]));
    assert_eq!(shown(&fixture, &heap, 1), somes([4; 8]));
}

/// Otherwise a later update of another copy would write a descriptor of a destroyed resource.
#[test]
fn what_a_frame_had_for_itself_is_in_no_copy_that_is_updated_after_it_was_collected() {
    let fixture = Fixture::new("lavapipe");
    let heap = heap(&fixture, 3);
    assert_eq!((update(&heap, 0), update(&heap, 1), update(&heap, 2)), (16, 16, 16));
    let frame = fixture.clock.open(fixture.timeline);
    let range = heap.allocate_transient(frame, 2).unwrap();
    let index = unsafe { heap.write(range, 1, &fixture.storage(2)) }.unwrap();
    assert_eq!((index, update(&heap, 0)), (7, 1));
    assert_eq!(shown(&fixture, &heap, 0)[7], Some(2));
    fixture.clock.submit(frame, 1).unwrap();
    assert_eq!(heap.collect(&fixture.clock), Ok(0));
    assert_eq!((update(&heap, 1), shown(&fixture, &heap, 1)[7]), (1, Some(2)), "the frame may be running");
    fixture.clock.completed(fixture.timeline, 1);
    assert_eq!(heap.collect(&fixture.clock), Ok(2));
    for copy in 0..3 {
        update(&heap, copy);
        assert_eq!(shown(&fixture, &heap, copy), somes([4; 8]), "copy {copy}");
    }
}

#[test]
fn copies_are_written_while_other_frames_are_running() {
    let fixture = Fixture::new("lavapipe");
    let heap = heap(&fixture, 3);
    let device = fixture.gpu.device();
    let layouts = [heap.store().layout()];
    let info = vk::PipelineLayoutCreateInfo::default().set_layouts(&layouts);
    let layout = unsafe { device.create_pipeline_layout(&info, None) }.unwrap();
    let pool = unsafe { device.create_command_pool(&vk::CommandPoolCreateInfo::default(), None) }.unwrap();
    let info = vk::CommandBufferAllocateInfo::default().command_pool(pool).command_buffer_count(9);
    let commands = unsafe { device.allocate_command_buffers(&info) }.unwrap();
    let point = vk::PipelineBindPoint::COMPUTE;
    let range = heap.allocate(4).unwrap();
    fixture.gpu.hold_submissions(true);
    for (frame, &commands) in (0..).zip(&commands) {
        if frame >= 3 {
            // Completes the oldest submissions, which used this copy before.
            while fixture.gpu.pending_submissions() > 2 {
                fixture.gpu.run_pending();
            }
        }
        unsafe { heap.write(range.id(), frame % 4, &fixture.storage(frame.into())) }.unwrap();
        assert!(update(&heap, frame) >= 1);
        unsafe { device.begin_command_buffer(commands, &vk::CommandBufferBeginInfo::default()) }.unwrap();
        unsafe { heap.store().cmd_bind(frame, commands, point, layout, 0) };
        let bound = fixture.gpu.bound_set(commands, point, layout, 0);
        assert_eq!(bound, Some((heap.store().set(frame), vec![])));
        unsafe { device.end_command_buffer(commands) }.unwrap();
        let buffers = [commands];
        let submits = [vk::SubmitInfo::default().command_buffers(&buffers)];
        unsafe { device.queue_submit(fixture.gpu.queue(), &submits, vk::Fence::null()) }.unwrap();
        fixture.gpu.assert_silent();
    }
    unsafe { device.queue_wait_idle(fixture.gpu.queue()) }.unwrap();
    unsafe { device.destroy_command_pool(pool, None) };
    unsafe { device.destroy_pipeline_layout(layout, None) };
}

#[test]
fn what_cannot_be_is_refused_and_leaves_nothing() {
    let fixture = Fixture::new("lavapipe");
    let make = |info: &HeapCreateInfo<'_>, copies| unsafe {
        ClassicStore::new(&fixture.device, info, copies, &[fixture.storage(4), fixture.uniform(4)])
    };
    for copies in [0, 33] {
        assert_eq!(make(&small(), copies).unwrap_err(), CreateHeapError::Copies { copies });
    }
    let images = HeapCreateInfo { types: &[DescriptorKind::SampledImage], ..small() };
    let kind = DescriptorKind::SampledImage;
    assert_eq!(make(&images, 2).unwrap_err(), CreateHeapError::NoDefault { kind });
    let one = HeapCreateInfo { arrays: HeapArrays::One, ..small() };
    assert!(matches!(make(&one, 2), Err(CreateHeapError::Unsupported { .. })));
    let many = HeapCreateInfo { slots: 1 << 30, ..small() };
    let Err(CreateHeapError::Limit { limit, asked, allowed }) = make(&many, 2) else {
        panic!("no device has sets of that size");
    };
    assert_eq!((limit, asked), ("maxDescriptorSetUniformBuffers", 1 << 30));
    assert!(allowed < 1 << 30);
    for call in ["vkCreateDescriptorSetLayout", "vkCreateDescriptorPool", "vkAllocateDescriptorSets"] {
        let before = fixture.gpu.live();
        // Fails the last of three sets.
        let nth = if call == "vkAllocateDescriptorSets" { 2 } else { 0 };
        fixture.gpu.faults().fail_nth(call, nth, vk::Result::ERROR_OUT_OF_DEVICE_MEMORY);
        assert!(make(&small(), 3).is_err(), "{call}");
        assert_eq!(fixture.gpu.live(), before, "{call}");
    }
}
