//! One set that is written while it is bound.

use std::error::Error;

use ash::vk;
use sublet::sim::{self, Gpu, Profile, profiles};
use sublet_descriptors::{
    CreateDescriptorPoolError, CreateHeapError, Descriptor, DescriptorFeatures, DescriptorHeap,
    DescriptorKind, HeapArrays, HeapCreateInfo, HeapKind, HeapStore, HeapWriteError, HostHeap,
    HostHeapCreateInfo, OutOfRange, RangeError, SetStore,
};

use crate::common::{Fixture, hold};

const NVIDIA: &str = "nvidia-h200";

fn has_indexing(profile: &Profile) -> bool {
    profile.features.descriptor_indexing
}

fn small(arrays: HeapArrays) -> HeapCreateInfo<'static> {
    HeapCreateInfo { slots: 64, arrays, name: "heap", ..HeapCreateInfo::new(HeapKind::Resource) }
}

/// Returns the buffer offset in a slot.
fn offset_in(fixture: &Fixture, store: &SetStore, index: u32) -> Option<u64> {
    let binding = store.binding(DescriptorKind::StorageBuffer).unwrap();
    match fixture.gpu.descriptor(store.set(), binding, index)? {
        sim::SimulatedDescriptor::Buffer { buffer, offset, .. } if buffer == fixture.buffer => Some(offset),
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_is_written_is_at_the_index_that_shaders_have() {
    let mut tried = 0;
    for &profile in profiles::ALL.iter().filter(|profile| has_indexing(profile)) {
        for arrays in [HeapArrays::Auto, HeapArrays::PerType] {
            let fixture = Fixture::new(profile.name);
            let heap = fixture.set_heap(&small(arrays));
            let mutable = fixture.device.features().contains(DescriptorFeatures::MUTABLE_DESCRIPTOR_TYPE);
            let expected = if mutable && arrays == HeapArrays::Auto { 0 } else { 3 };
            let binding = heap.store().binding(DescriptorKind::StorageBuffer);
            assert_eq!(binding, Some(expected), "{}", profile.name);
            let (_first, range) = (heap.allocate(3).unwrap(), heap.allocate(5).unwrap());
            for slot in 0..5 {
                let index = unsafe { heap.write(range.id(), slot, &fixture.storage(slot.into())) }.unwrap();
                assert_eq!(index, range.index(slot).unwrap());
                assert_eq!(offset_in(&fixture, heap.store(), index), Some(256 * u64::from(slot)));
            }
            assert_eq!(offset_in(&fixture, heap.store(), range.indices().end), None);
            drop(heap);
            assert_eq!(fixture.device.update_after_bind_used(), 0);
            tried += 1;
        }
    }
    assert!(tried > 4, "only {tried} heaps were made");
}

#[test]
fn slots_are_written_while_a_submission_that_does_not_look_at_them_is_running() {
    let fixture = Fixture::new(NVIDIA);
    let heap = fixture.set_heap(&small(HeapArrays::Auto));
    let device = fixture.gpu.device();
    let layouts = [heap.store().layout()];
    let info = vk::PipelineLayoutCreateInfo::default().set_layouts(&layouts);
    let layout = unsafe { device.create_pipeline_layout(&info, None) }.unwrap();
    let pool = unsafe { device.create_command_pool(&vk::CommandPoolCreateInfo::default(), None) }.unwrap();
    let info = vk::CommandBufferAllocateInfo::default().command_pool(pool).command_buffer_count(1);
    let commands = unsafe { device.allocate_command_buffers(&info) }.unwrap();
    unsafe { device.begin_command_buffer(commands[0], &vk::CommandBufferBeginInfo::default()) }.unwrap();
    let point = vk::PipelineBindPoint::COMPUTE;
    unsafe { heap.store().cmd_bind(commands[0], point, layout, 0) };
    assert_eq!(fixture.gpu.bound_set(commands[0], point, layout, 0), Some((heap.store().set(), vec![])));
    unsafe { device.end_command_buffer(commands[0]) }.unwrap();

    fixture.gpu.hold_submissions(true);
    let old = heap.allocate(8).unwrap();
    let end = old.indices().end;
    let frame = fixture.clock.open(fixture.timeline);
    let submits = [vk::SubmitInfo::default().command_buffers(&commands)];
    unsafe { device.queue_submit(fixture.gpu.queue(), &submits, vk::Fence::null()) }.unwrap();
    fixture.clock.submit(frame, 1).unwrap();
    unsafe { heap.retire(frame, old) }.unwrap();
    assert_eq!(heap.collect(&fixture.clock), Ok(0));
    // Other slots are written while the submission is running.
    let new = heap.allocate(8).unwrap();
    assert!(new.first() >= end);
    unsafe { heap.write(new.id(), 0, &fixture.storage(1)) }.unwrap();
    fixture.gpu.assert_silent();
    assert_eq!(fixture.gpu.pending_submissions(), 1);
    unsafe { device.queue_wait_idle(fixture.gpu.queue()) }.unwrap();
    fixture.clock.completed(fixture.timeline, 1);
    assert_eq!(heap.collect(&fixture.clock), Ok(8));

    unsafe { device.destroy_command_pool(pool, None) };
    unsafe { device.destroy_pipeline_layout(layout, None) };
}

#[test]
fn a_dead_range_is_not_written_and_nobody_elses_slot_is_either() {
    let fixture = Fixture::new(NVIDIA);
    let heap = fixture.set_heap(&small(HeapArrays::Auto));
    let other = fixture.set_heap(&small(HeapArrays::Auto));
    let (owned, strange) = (heap.allocate(2).unwrap(), other.allocate(2).unwrap());
    let (range, foreign) = (owned.id(), strange.id());
    let write = |range, slot| unsafe { heap.write(range, slot, &fixture.storage(0)) };
    let stale = Err(HeapWriteError::Range(RangeError::StaleHandle { range }));
    let foreign_heap = Err(HeapWriteError::Range(RangeError::ForeignHeap { range: foreign }));
    let calls = || fixture.gpu.calls("vkUpdateDescriptorSets");
    assert_eq!(write(foreign, 0), foreign_heap);
    assert_eq!(write(range, 2), Err(HeapWriteError::OutOfRange(OutOfRange { slot: 2, count: 2 })));
    assert_eq!(calls(), 0);
    assert!(write(range, 1).is_ok());
    let error = unsafe { heap.retire(fixture.done(), strange) }.unwrap_err();
    assert_eq!(error.range.id(), foreign, "it is given back");
    unsafe { heap.retire(fixture.done(), owned) }.unwrap();
    // The handle is stale at once, although the slots are not reused yet.
    assert_eq!(write(range, 1), stale);
    heap.collect(&fixture.clock).unwrap();
    let again = heap.allocate(2).unwrap();
    assert_eq!(again.first(), range.first());
    assert_eq!(write(range, 1), stale);
    assert_eq!(calls(), 1);
    let kept = again.id();
    unsafe { heap.free(again) }.unwrap();
    assert_eq!(heap.check(kept), Err(RangeError::StaleHandle { range: kept }));
}

#[test]
fn samplers_and_resources_are_in_heaps_of_their_own() {
    let fixture = Fixture::new(NVIDIA);
    let info = HeapCreateInfo { slots: 16, ..HeapCreateInfo::new(HeapKind::Sampler) };
    let samplers = fixture.set_heap(&info);
    let range = samplers.allocate(2).unwrap();
    unsafe { samplers.write(range.id(), 1, &fixture.sampler(3)) }.unwrap();
    let found = fixture.gpu.descriptor(samplers.store().set(), 0, range.index(1).unwrap());
    assert!(
        matches!(found, Some(sim::SimulatedDescriptor::Image { sampler, .. }) if sampler == fixture.samplers[3])
    );
    // SAFETY: the call is rejected.
    let refused = unsafe { samplers.write(range.id(), 0, &fixture.storage(0)) };
    assert_eq!(refused, Err(HeapWriteError::Kind { kind: DescriptorKind::StorageBuffer }));
    let wrong = HeapCreateInfo { types: &[DescriptorKind::Sampler], ..HeapCreateInfo::default() };
    let error = SetStore::new(&fixture.device, &wrong).unwrap_err();
    assert_eq!(error, CreateHeapError::Kind { heap: HeapKind::Resource, kind: DescriptorKind::Sampler });
}

#[test]
fn heaps_that_cannot_be_are_refused_before_the_driver_is_asked() {
    let fixture = Fixture::new(NVIDIA);
    let cases = [
        (HeapCreateInfo { slots: 0, ..HeapCreateInfo::default() }, (0, 0)),
        (HeapCreateInfo { slots: 8, transient: 9, ..HeapCreateInfo::default() }, (8, 9)),
    ];
    for (info, (slots, transient)) in cases {
        assert_eq!(
            SetStore::new(&fixture.device, &info).unwrap_err(),
            CreateHeapError::Slots { slots, transient }
        );
    }
    for kind in
        [DescriptorKind::UniformBufferDynamic, DescriptorKind::InlineUniformBlock, DescriptorKind::Mutable]
    {
        let info = HeapCreateInfo { types: &[kind], ..HeapCreateInfo::default() };
        let error = SetStore::new(&fixture.device, &info).unwrap_err();
        assert_eq!(error, CreateHeapError::Kind { heap: HeapKind::Resource, kind });
    }
    let twice = [DescriptorKind::StorageBuffer, DescriptorKind::StorageBuffer];
    let info = HeapCreateInfo { types: &twice, ..HeapCreateInfo::default() };
    assert!(matches!(SetStore::new(&fixture.device, &info), Err(CreateHeapError::Kind { .. })));
    assert_eq!(fixture.gpu.calls("vkCreateDescriptorSetLayout"), 0);
}

#[test]
fn a_device_without_descriptor_indexing_says_which_features_are_missing() {
    let fixture = Fixture::new("lavapipe");
    let CreateHeapError::Unsupported { missing } =
        SetStore::new(&fixture.device, &small(HeapArrays::Auto)).unwrap_err()
    else {
        panic!("it has no descriptor indexing");
    };
    assert!(missing.contains(DescriptorFeatures::PARTIALLY_BOUND));
    assert!(missing.contains(DescriptorFeatures::STORAGE_BUFFER_UPDATE_AFTER_BIND));
    assert!(!missing.contains(DescriptorFeatures::MUTABLE_DESCRIPTOR_TYPE));
    drop(fixture);
    // One feature that the program did not enable is enough to fail, and the error names only that feature.
    let gpu = Gpu::new(Profile::by_name(NVIDIA).unwrap());
    let left_out = DescriptorFeatures::STORAGE_IMAGE_UPDATE_AFTER_BIND;
    let fixture = Fixture::with(gpu, |features| features - left_out);
    let error = SetStore::new(&fixture.device, &small(HeapArrays::Auto)).unwrap_err();
    assert_eq!(error, CreateHeapError::Unsupported { missing: left_out });
}

#[test]
fn limits_are_named_with_what_was_asked_and_what_is_allowed() {
    let profile = Profile::by_name(NVIDIA).unwrap();
    let mut limits = profile.limits.descriptors;
    limits.per_stage_update_after_bind.storage_buffers = 100;
    let fixture = Fixture::with(Gpu::builder(profile).descriptor_limits(limits).build(), |features| features);
    for arrays in [HeapArrays::One, HeapArrays::PerType] {
        let info = HeapCreateInfo { slots: 101, ..small(arrays) };
        let error = SetStore::new(&fixture.device, &info).unwrap_err();
        let limit = "maxPerStageDescriptorUpdateAfterBindStorageBuffers";
        assert_eq!(error, CreateHeapError::Limit { limit, asked: 101, allowed: 100 });
    }
    let info = HeapCreateInfo { slots: 100, ..small(HeapArrays::Auto) };
    drop(fixture.set_store(&info));
    drop(fixture);

    // Four arrays count four times, and a single array for all types counts once.
    let mut limits = profile.limits.descriptors;
    limits.per_stage_update_after_bind.resources = 399;
    let fixture = Fixture::with(Gpu::builder(profile).descriptor_limits(limits).build(), |features| features);
    let info = HeapCreateInfo { slots: 100, ..small(HeapArrays::PerType) };
    let error = SetStore::new(&fixture.device, &info).unwrap_err();
    let limit = "maxPerStageUpdateAfterBindResources";
    assert_eq!(error, CreateHeapError::Limit { limit, asked: 400, allowed: 399 });
    let info = HeapCreateInfo { slots: 100, ..small(HeapArrays::One) };
    drop(fixture.set_store(&info));
}

/// Samplers have their own limits, and do not count as resources of a stage.
#[test]
fn samplers_do_not_count_as_resources() {
    let profile = Profile::by_name(NVIDIA).unwrap();
    let mut limits = profile.limits.descriptors;
    limits.per_stage_update_after_bind.resources = 10;
    limits.per_stage_update_after_bind.samplers = 16;
    let fixture = Fixture::with(Gpu::builder(profile).descriptor_limits(limits).build(), |features| features);
    let samplers = |slots| HeapCreateInfo { slots, ..HeapCreateInfo::new(HeapKind::Sampler) };
    drop(fixture.set_store(&samplers(16)));
    let error = SetStore::new(&fixture.device, &samplers(17)).unwrap_err();
    let limit = "maxPerStageDescriptorUpdateAfterBindSamplers";
    assert_eq!(error, CreateHeapError::Limit { limit, asked: 17, allowed: 16 });
    // Resources exactly at that limit, and above it.
    let buffers = |slots| HeapCreateInfo {
        slots,
        types: &[DescriptorKind::StorageBuffer],
        ..HeapCreateInfo::new(HeapKind::Resource)
    };
    drop(fixture.set_store(&buffers(10)));
    let error = SetStore::new(&fixture.device, &buffers(11)).unwrap_err();
    let limit = "maxPerStageUpdateAfterBindResources";
    assert_eq!(error, CreateHeapError::Limit { limit, asked: 11, allowed: 10 });
}

/// A mutable descriptor has the size of the largest type and needs a feature. A single type needs neither, whichever
/// arrays the program requests.
#[test]
fn a_heap_of_one_type_is_an_array_of_that_type() {
    let fixture = Fixture::new(NVIDIA);
    assert!(fixture.device.features().contains(DescriptorFeatures::MUTABLE_DESCRIPTOR_TYPE));
    for (kind, held) in
        [(HeapKind::Sampler, DescriptorKind::Sampler), (HeapKind::Resource, DescriptorKind::StorageBuffer)]
    {
        for arrays in [HeapArrays::Auto, HeapArrays::One, HeapArrays::PerType] {
            let info = HeapCreateInfo { slots: 8, types: &[held], arrays, ..HeapCreateInfo::new(kind) };
            let store = fixture.set_store(&info);
            let counts = store.set_layout().counts();
            assert_eq!((counts.get(held), counts.get(DescriptorKind::Mutable)), (8, 0), "{arrays:?}");
        }
    }
    drop(fixture);
    // The feature is not needed either.
    let gpu = Gpu::new(Profile::by_name(NVIDIA).unwrap());
    let fixture = Fixture::with(gpu, |features| features - DescriptorFeatures::MUTABLE_DESCRIPTOR_TYPE);
    for arrays in [HeapArrays::Auto, HeapArrays::One] {
        let info = HeapCreateInfo { slots: 8, arrays, ..HeapCreateInfo::new(HeapKind::Sampler) };
        drop(fixture.set_store(&info));
    }
}

/// A store whose counts change with every call.
struct Unsteady(std::cell::Cell<u32>);

impl HeapStore for Unsteady {
    fn slots(&self) -> u32 {
        self.0.replace(self.0.get() / 4)
    }

    fn transient(&self) -> u32 {
        self.0.get()
    }

    unsafe fn write(&self, _: u32, _: &Descriptor) -> Result<(), HeapWriteError> {
        Ok(())
    }
}

#[test]
fn a_store_is_asked_for_its_slots_once() {
    let heap = DescriptorHeap::new(Unsteady(64.into()));
    let statistics = heap.statistics();
    assert_eq!((statistics.capacity, statistics.transient_capacity), (64, 16));
    assert_eq!(heap.allocate(48).unwrap().indices(), 0..48);
}

/// A store with this many slots, which ignores writes.
struct Large(u32);

impl HeapStore for Large {
    fn slots(&self) -> u32 {
        self.0
    }

    unsafe fn write(&self, _: u32, _: &Descriptor) -> Result<(), HeapWriteError> {
        Ok(())
    }
}

/// They would take 32 to 64 GiB if the heap recorded every slot from the start.
#[test]
fn a_store_of_billions_of_slots_costs_what_is_used_of_it() {
    for slots in [1 << 31, u32::MAX] {
        let heap = DescriptorHeap::new(Large(slots));
        assert_eq!(heap.allocate(100).unwrap().indices(), 0..100);
        assert_eq!(heap.statistics().free, slots - 100);
        // Depending on the host's memory, this succeeds or returns an error.
        if let Err(error) = heap.reserve(u32::MAX) {
            assert!(matches!(error, sublet::retire::ReserveError::HostMemory { .. }), "{error}");
        }
        assert_eq!(heap.allocate(100).unwrap().first(), 100);
    }
    // There are never more ranges than slots.
    assert_eq!(DescriptorHeap::new(Large(8)).reserve(u32::MAX), Ok(()));
}

#[test]
fn heaps_share_the_limit_of_all_pools() {
    let profile = Profile::by_name(NVIDIA).unwrap();
    let mut limits = profile.limits.descriptors;
    limits.max_update_after_bind_descriptors_in_all_pools = 100;
    let fixture = Fixture::with(Gpu::builder(profile).descriptor_limits(limits).build(), |features| features);
    let first = fixture.set_store(&small(HeapArrays::One));
    assert_eq!(fixture.device.update_after_bind_used(), 64);
    let error = SetStore::new(&fixture.device, &small(HeapArrays::One)).unwrap_err();
    let CreateHeapError::Pool(CreateDescriptorPoolError::UpdateAfterBindLimit { needed, left, source }) =
        error
    else {
        panic!("{error:?}");
    };
    assert_eq!((needed, left, source.result), (64, 36, vk::Result::ERROR_FRAGMENTATION));
    assert!(error.to_string().contains("a pool of 64 descriptors"), "{error}");
    drop(first);
    drop(fixture.set_store(&small(HeapArrays::One)));
}

#[test]
fn whatever_call_of_the_driver_fails_nothing_is_left() {
    let calls = ["vkCreateDescriptorSetLayout", "vkCreateDescriptorPool", "vkAllocateDescriptorSets"];
    for call in calls {
        let fixture = Fixture::new(NVIDIA);
        let before = fixture.gpu.live();
        fixture.gpu.faults().fail_nth(call, 0, vk::Result::ERROR_OUT_OF_HOST_MEMORY);
        let error = SetStore::new(&fixture.device, &small(HeapArrays::Auto)).unwrap_err();
        let mut cause: &dyn Error = &error;
        while let Some(source) = cause.source() {
            cause = source;
        }
        assert_eq!(cause.downcast_ref(), Some(&vk::Result::ERROR_OUT_OF_HOST_MEMORY), "{call}");
        assert!(error.to_string().contains(&format!("{call} failed")), "{error}");
        assert_eq!(fixture.gpu.live(), before, "{call}");
        assert_eq!(fixture.device.update_after_bind_used(), 0);
        // The next store can be created.
        drop(fixture.set_store(&small(HeapArrays::Auto)));
    }
}

#[test]
fn frames_have_a_part_of_their_own() {
    let fixture = Fixture::new(NVIDIA);
    let info = HeapCreateInfo { transient: 16, ..small(HeapArrays::Auto) };
    let heap = fixture.set_heap(&info);
    assert_eq!((heap.statistics().transient_capacity, heap.largest_free()), (16, 48));
    let mut last = None;
    for frame in 1..20 {
        let ticket = fixture.clock.begin_frame(fixture.timeline, frame % 2);
        heap.collect(&fixture.clock).unwrap();
        let range = heap.allocate_transient(ticket, 5).unwrap();
        assert!(range.first() >= 48);
        unsafe { heap.write(range, 4, &fixture.storage(0)) }.unwrap();
        fixture.clock.end_frame(ticket).unwrap();
        last = Some(range);
    }
    fixture.clock.shutdown();
    heap.collect(&fixture.clock).unwrap();
    let range = last.unwrap();
    assert_eq!(heap.check(range), Err(RangeError::StaleHandle { range }));
    assert_eq!(heap.statistics().free, 64);
}

#[test]
fn descriptors_are_copied_from_host_memory() {
    let fixture = Fixture::new("nvidia-h200");
    // Uses sets, whatever the device supports.
    let mut info = sublet_descriptors::DescriptorDeviceCreateInfo::for_gpu(&fixture.gpu);
    info.model = sublet_descriptors::BindingModel::Sets;
    let device = unsafe { sublet_descriptors::DescriptorDevice::new(&info) }.unwrap();
    let mut staging = sublet_descriptors::HostHeap::new(&device, &Default::default()).unwrap();
    let heap = hold(DescriptorHeap::new(SetStore::new(&device, &small(HeapArrays::Auto)).unwrap()));
    let (from, to) = (staging.allocate(3).unwrap(), heap.allocate(5).unwrap());
    for slot in 0..3 {
        unsafe { staging.write(from.id(), slot, &fixture.storage(u64::from(slot) + 1)) }.unwrap();
    }
    let copy = |slot, from| unsafe { heap.copy_from(to.id(), slot, &staging, from) };
    // The last descriptor would be out of range, so nothing is written.
    assert_eq!(copy(3, from.id()), Err(HeapWriteError::OutOfRange(OutOfRange { slot: 5, count: 5 })));
    assert_eq!(fixture.gpu.calls("vkUpdateDescriptorSets"), 0);
    assert_eq!(copy(2, from.id()), Ok(3));
    assert_eq!(fixture.gpu.calls("vkUpdateDescriptorSets"), 1, "one call for all of them");
    for slot in 0..5 {
        let expected = if slot < 2 { None } else { Some(256 * (u64::from(slot) - 1)) };
        assert_eq!(offset_in(&fixture, heap.store(), to.index(slot).unwrap()), expected);
    }
    // A range of another heap.
    assert!(matches!(copy(0, to.id()), Err(HeapWriteError::Range(RangeError::ForeignHeap { .. }))));
}

/// Returns the offset in a slot, for a heap with one array for each type.
fn shown(fixture: &Fixture, store: &SetStore, kind: DescriptorKind, index: u32) -> Option<u64> {
    match fixture.gpu.descriptor(store.set(), store.binding(kind).unwrap(), index)? {
        sim::SimulatedDescriptor::Buffer { offset, .. } => Some(offset / 256),
        other => panic!("{other:?}"),
    }
}

#[test]
fn many_descriptors_of_any_types_are_written_with_one_call() {
    let fixture = Fixture::new(NVIDIA);
    let heap = fixture.set_heap(&small(HeapArrays::PerType));
    let (_first, owned) = (heap.allocate(3).unwrap(), heap.allocate(6).unwrap());
    let range = owned.id();
    let all =
        [fixture.storage(1), fixture.storage(2), fixture.uniform(3), fixture.storage(4), fixture.storage(5)];
    let write = |range, slot, descriptors: &[_]| unsafe { heap.write_many(range, slot, descriptors) };
    assert_eq!(write(range, 1, &all), Ok(4));
    assert_eq!(fixture.gpu.calls("vkUpdateDescriptorSets"), 1);
    let show = |kind| (0..6).map(|slot| shown(&fixture, heap.store(), kind, 3 + slot)).collect::<Vec<_>>();
    let storage = [None, Some(1), Some(2), None, Some(4), Some(5)];
    assert_eq!(show(DescriptorKind::StorageBuffer), storage);
    assert_eq!(show(DescriptorKind::UniformBuffer), [None, None, None, Some(3), None, None]);
    // A wrong type at the end, one descriptor too many, and a stale range: nothing is written.
    let wrong = [fixture.storage(7), fixture.sampler(0)];
    assert_eq!(write(range, 0, &wrong), Err(HeapWriteError::Kind { kind: DescriptorKind::Sampler }));
    let end = OutOfRange { slot: 6, count: 6 };
    assert_eq!(write(range, 2, &all), Err(HeapWriteError::OutOfRange(end)));
    let far = OutOfRange { slot: u32::MAX, count: 6 };
    assert_eq!(write(range, u32::MAX, &all[..2]), Err(HeapWriteError::OutOfRange(far)));
    assert_eq!(write(range, 6, &[]), Ok(9));
    unsafe { heap.free(owned) }.unwrap();
    assert_eq!(write(range, 0, &all), Err(HeapWriteError::Range(RangeError::StaleHandle { range })));
    assert_eq!(show(DescriptorKind::StorageBuffer), storage);
    assert_eq!(fixture.gpu.calls("vkUpdateDescriptorSets"), 1);
}

#[test]
fn a_part_of_a_table_is_copied_and_what_it_does_not_have_is_left() {
    let fixture = Fixture::with(Gpu::new(Profile::by_name(NVIDIA).unwrap()), |features| {
        features - DescriptorFeatures::DESCRIPTOR_BUFFER
    });
    let mut staging = HostHeap::new(&fixture.device, &HostHeapCreateInfo::default()).unwrap();
    let heap = fixture.set_heap(&small(HeapArrays::PerType));
    let (table, to) = (staging.allocate(8).unwrap(), heap.allocate(8).unwrap());
    unsafe {
        staging.write_many(table.id(), 0, &[fixture.storage(1), fixture.uniform(2), fixture.storage(3)])
    }
    .unwrap();
    unsafe { staging.write(table.id(), 5, &fixture.storage(6)) }.unwrap();
    unsafe { heap.write(to.id(), 4, &fixture.storage(9)) }.unwrap();
    let show = |kind| (0..8).map(|slot| shown(&fixture, heap.store(), kind, slot)).collect::<Vec<_>>();
    let copy = |slot, part| {
        let calls = fixture.gpu.calls("vkUpdateDescriptorSets");
        let copied = unsafe { heap.copy_part_from(to.id(), slot, &staging, table.id(), part) };
        (copied, fixture.gpu.calls("vkUpdateDescriptorSets") - calls)
    };
    // Slots 3 and 4 of the table were never written.
    assert_eq!(copy(1, 2..6), (Ok(2), 1));
    assert_eq!(show(DescriptorKind::StorageBuffer), [None, Some(3), None, None, Some(6), None, None, None]);
    assert_eq!(copy(0, 3..5), (Ok(0), 0), "there is nothing to copy");
    assert_eq!(copy(0, 8..8), (Ok(0), 0));
    assert_eq!(copy(6, 0..3), (Err(HeapWriteError::OutOfRange(OutOfRange { slot: 8, count: 8 })), 0));
    assert_eq!(copy(0, 6..9), (Err(HeapWriteError::OutOfRange(OutOfRange { slot: 8, count: 8 })), 0));
    // Copies the whole table. Unwritten slots leave the destination unchanged.
    unsafe { heap.write(to.id(), 3, &fixture.storage(10)) }.unwrap();
    assert_eq!(copy(0, 0..8), (Ok(4), 1));
    assert_eq!(
        show(DescriptorKind::StorageBuffer),
        [Some(1), Some(3), Some(3), Some(10), Some(6), Some(6), None, None]
    );
    assert_eq!(show(DescriptorKind::UniformBuffer)[1], Some(2));
}

#[test]
fn the_names_of_heaps_are_shown_to_debuggers() {
    let fixture = Fixture::new(NVIDIA);
    let _store = fixture.set_store(&small(HeapArrays::Auto));
    assert!(fixture.gpu.calls("vkSetDebugUtilsObjectNameEXT") >= 1);
}
