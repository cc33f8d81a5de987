//! Descriptors as bytes in a mapped buffer.

use std::sync::Arc;

use ash::vk;
use sublet::sim::{Gpu, Profile, profiles};
use sublet::{Allocator, AllocatorCreateInfo, Tracking};
use sublet_descriptors::{
    BindingModel, BufferDescriptor, BufferStore, CreateHeapError, Descriptor, DescriptorDataError,
    DescriptorFeatures, DescriptorHeap, DescriptorKind, DescriptorSizes, HeapArrays, HeapCreateInfo,
    HeapError, HeapKind, HeapWriteError, HostHeap, HostHeapCreateInfo,
};

use crate::common::{End, Fixture};

const NVIDIA: &str = "nvidia-h200";

fn small(arrays: HeapArrays) -> HeapCreateInfo<'static> {
    HeapCreateInfo { slots: 64, arrays, ..HeapCreateInfo::new(HeapKind::Resource) }
}

#[test]
fn slots_are_as_far_apart_as_the_device_says_by_type() {
    for &profile in profiles::ALL.iter().filter(|profile| profile.limits.descriptor_buffer.is_some()) {
        let fixture = Fixture::new(profile.name);
        let limits = profile.limits.descriptor_buffer.unwrap();
        let sizes = DescriptorSizes::of(&fixture.device);
        let per_type = fixture.buffer_heap(&small(HeapArrays::PerType));
        for &kind in HeapKind::Resource.default_types() {
            let size = limits.size(kind.to_vk()).map(|size| u64::try_from(size).unwrap());
            assert_eq!((sizes.get(kind), per_type.store().stride(kind)), (size, size), "{}", profile.name);
        }
        let address = |index| per_type.store().address_of(DescriptorKind::StorageBuffer, index);
        let stride = per_type.store().stride(DescriptorKind::StorageBuffer).unwrap();
        assert_eq!(address(63).unwrap() - address(0).unwrap(), 63 * stride);
        assert_eq!(address(64), None);
        assert_eq!(per_type.store().stride(DescriptorKind::Sampler), None);
        assert_eq!(per_type.store().binding_info().address % limits.offset_alignment, 0);
        // A single array for all types: the stride is the size of the largest.
        if fixture.device.features().contains(DescriptorFeatures::MUTABLE_DESCRIPTOR_TYPE) {
            let one = fixture.buffer_heap(&small(HeapArrays::One));
            let largest = sizes.largest(HeapKind::Resource.default_types());
            for &kind in HeapKind::Resource.default_types() {
                assert_eq!(one.store().stride(kind), largest, "{}", profile.name);
            }
        }
    }
}

#[test]
fn what_has_no_address_is_refused_and_the_slot_is_as_it_was() {
    let fixture = Fixture::new(NVIDIA);
    let heap = fixture.buffer_heap(&small(HeapArrays::Auto));
    let range = heap.allocate(1).unwrap();
    let write = |descriptor| {
        // SAFETY: the call is rejected.
        unsafe { heap.write(range.id(), 0, &descriptor) }
    };
    let kind = DescriptorKind::StorageBuffer;
    let without = BufferDescriptor::new(fixture.buffer, 0, 256);
    let whole = BufferDescriptor { range: vk::WHOLE_SIZE, ..without.with_buffer_address(1 << 20) };
    let range = vk::WHOLE_SIZE;
    assert_eq!(
        write(Descriptor::StorageBuffer(without)),
        Err(HeapWriteError::Data(DescriptorDataError::NoAddress { kind }))
    );
    assert_eq!(
        write(Descriptor::StorageBuffer(whole)),
        Err(HeapWriteError::Data(DescriptorDataError::Range { kind, range }))
    );
    assert_eq!(write(fixture.sampler(0)), Err(HeapWriteError::Kind { kind: DescriptorKind::Sampler }));
    assert_eq!(fixture.gpu.calls("vkGetDescriptorEXT"), 0);
}

#[test]
fn many_are_written_or_none() {
    let fixture = Fixture::new(NVIDIA);
    let heap = fixture.buffer_heap(&small(HeapArrays::Auto));
    let mut staging = HostHeap::new(&fixture.device, &HostHeapCreateInfo::default()).unwrap();
    let (range, staged) = (heap.allocate(3).unwrap(), staging.allocate(3).unwrap());
    let kind = DescriptorKind::StorageBuffer;
    let without = Descriptor::StorageBuffer(BufferDescriptor::new(fixture.buffer, 0, 256));
    let no_address = HeapWriteError::Data(DescriptorDataError::NoAddress { kind });
    let sampler = HeapWriteError::Kind { kind: DescriptorKind::Sampler };
    // SAFETY: the call is rejected, here and below.
    assert_eq!(unsafe { heap.write_many(range.id(), 0, &[fixture.storage(0), without]) }, Err(no_address));
    let written = unsafe { heap.write_many(range.id(), 0, &[fixture.storage(0), fixture.sampler(0)]) };
    assert_eq!(written, Err(sampler));
    let written = unsafe { staging.write_many(staged.id(), 0, &[fixture.storage(0), without]) };
    assert_eq!(written, Err(no_address));
    assert_eq!(fixture.gpu.calls("vkGetDescriptorEXT"), 0);
    assert_eq!(unsafe { heap.copy_from(range.id(), 0, &staging, staged.id()) }, Ok(0));
    unsafe { staging.write_many(staged.id(), 1, &[fixture.storage(0), fixture.uniform(1)]) }.unwrap();
    assert_eq!(unsafe { heap.copy_from(range.id(), 0, &staging, staged.id()) }, Ok(2));
    assert_eq!(fixture.gpu.calls("vkGetDescriptorEXT"), 2);
}

#[test]
fn bytes_are_copied_from_host_memory_without_asking_the_driver() {
    let fixture = Fixture::new(NVIDIA);
    assert_eq!(fixture.device.model(), BindingModel::Buffer);
    let heap = fixture.buffer_heap(&small(HeapArrays::Auto));
    let samplers =
        fixture.buffer_heap(&HeapCreateInfo { slots: 8, ..HeapCreateInfo::new(HeapKind::Sampler) });
    let mut staging = HostHeap::new(&fixture.device, &HostHeapCreateInfo::default()).unwrap();
    assert!(staging.stride().is_some());
    let (from, direct, copied) =
        (staging.allocate(1).unwrap(), heap.allocate(1).unwrap(), heap.allocate(2).unwrap());
    let descriptor = fixture.storage(3);
    unsafe { staging.write(from.id(), 0, &descriptor) }.unwrap();
    unsafe { heap.write(direct.id(), 0, &descriptor) }.unwrap();
    let calls = fixture.gpu.calls("vkGetDescriptorEXT");
    assert_eq!(calls, 2);
    unsafe { heap.copy_from(copied.id(), 1, &staging, from.id()) }.unwrap();
    assert_eq!(fixture.gpu.calls("vkGetDescriptorEXT"), calls);
    // A heap that does not support the type.
    let to = samplers.allocate(1).unwrap();
    // SAFETY: the call is rejected.
    let refused = unsafe { samplers.copy_from(to.id(), 0, &staging, from.id()) };
    assert_eq!(refused, Err(HeapWriteError::Kind { kind: DescriptorKind::StorageBuffer }));
}

#[test]
fn descriptors_are_no_bytes_for_a_set_and_bytes_are_no_descriptors() {
    let fixture = Fixture::new(NVIDIA);
    let mut staging = HostHeap::new(&fixture.device, &HostHeapCreateInfo::default()).unwrap();
    let from = staging.allocate(1).unwrap();
    unsafe { staging.write(from.id(), 0, &fixture.storage(0)) }.unwrap();
    let info = small(HeapArrays::Auto);
    let sets = fixture.set_heap(&info);
    let to = sets.allocate(1).unwrap();
    // SAFETY: the call is rejected.
    let refused = unsafe { sets.copy_from(to.id(), 0, &staging, from.id()) };
    assert_eq!(refused, Err(HeapWriteError::Unlike { from: 16, to: 0 }));
}

#[test]
fn a_device_without_descriptor_buffers_says_so() {
    let fixture = Fixture::new("lavapipe");
    let error = BufferStore::new(&fixture.device, &fixture.allocator, &small(HeapArrays::Auto)).unwrap_err();
    assert!(matches!(
        error,
        CreateHeapError::Unsupported { missing } if missing.contains(DescriptorFeatures::DESCRIPTOR_BUFFER)
    ));
}

#[test]
fn arrays_that_the_device_splits_are_refused() {
    let kinds = [DescriptorKind::CombinedImageSampler];
    let info = HeapCreateInfo { types: &kinds, ..small(HeapArrays::Auto) };
    let mut seen = [0; 2];
    for &profile in profiles::ALL {
        let Some(limits) = profile.limits.descriptor_buffer else { continue };
        let fixture = Fixture::new(profile.name);
        seen[usize::from(limits.single_array)] += 1;
        match BufferStore::new(&fixture.device, &fixture.allocator, &info) {
            Ok(store) => {
                assert!(limits.single_array, "{}", profile.name);
                store.end();
            }
            Err(error) => {
                assert!(!limits.single_array, "{}", profile.name);
                assert_eq!(error, CreateHeapError::SplitArrays);
            }
        }
    }
    assert!(seen[0] > 0 && seen[1] > 0, "{seen:?}");
}

#[test]
fn whatever_call_of_the_driver_fails_nothing_is_left() {
    let calls = [
        "vkCreateDescriptorSetLayout",
        "vkCreateBuffer",
        "vkAllocateMemory",
        "vkMapMemory",
        "vkBindBufferMemory",
    ];
    for call in calls {
        let fixture = Fixture::new(NVIDIA);
        let before = fixture.gpu.live();
        fixture.gpu.reset_calls();
        fixture.gpu.faults().fail_always(call, vk::Result::ERROR_OUT_OF_HOST_MEMORY);
        // Large enough for dedicated memory.
        let info = HeapCreateInfo { slots: 1 << 20, ..small(HeapArrays::PerType) };
        let made = BufferStore::new(&fixture.device, &fixture.allocator, &info);
        let counted: u64 = fixture
            .gpu
            .call_counts()
            .iter()
            .filter(|(name, _)| name.starts_with(call))
            .map(|count| count.1)
            .sum();
        assert!(counted >= 1, "{call} was not called");
        assert!(made.is_err(), "{call}");
        fixture.gpu.faults().clear();
        fixture.allocator.trim();
        assert_eq!(fixture.gpu.live(), before, "{call}");
    }
}

#[test]
fn a_full_heap_is_full() {
    let fixture = Fixture::with(Gpu::new(Profile::by_name(NVIDIA).unwrap()), |features| features);
    let heap = fixture.buffer_heap(&small(HeapArrays::Auto));
    let all = heap.allocate(64).unwrap();
    let full = HeapError::Full { asked: 1, free: 0, largest_free: 0, retiring: 0 };
    assert_eq!(heap.allocate(1), Err(full));
    unsafe { heap.retire(fixture.done(), all) }.unwrap();
    assert_eq!(heap.collect(&fixture.clock), Ok(64));
}

/// Otherwise the store would query the address of another device's buffer.
#[test]
fn an_allocator_of_another_device_is_refused() {
    let (one, other) = (Fixture::new(NVIDIA), Fixture::new(NVIDIA));
    let before = (one.gpu.live(), other.gpu.live());
    let error = BufferStore::new(&one.device, &other.allocator, &small(HeapArrays::Auto)).unwrap_err();
    assert_eq!(error, CreateHeapError::ForeignAllocator);
    assert_eq!((one.gpu.live(), other.gpu.live()), before);
}

#[test]
fn the_buffer_is_of_who_made_the_store() {
    let fixture = Fixture::new(NVIDIA);
    let info =
        AllocatorCreateInfo { tracking: Tracking::CALLER, ..AllocatorCreateInfo::for_gpu(&fixture.gpu) };
    let allocator = unsafe { Allocator::new(&info) }.unwrap();
    let store = BufferStore::new(&fixture.device, &allocator, &small(HeapArrays::Auto)).unwrap();
    let made = line!() - 1;
    let map = allocator.memory_map();
    let callers: Vec<_> = map.allocations().map(|it| it.caller.unwrap()).collect();
    assert_eq!((callers.len(), callers[0].file(), callers[0].line()), (1, file!(), made));
    unsafe { store.destroy() };
    drop(allocator);
}

/// The store writes to the mapping of its buffer, whose memory belongs to the allocator.
#[test]
fn a_store_keeps_the_allocator_whose_memory_it_writes() {
    let fixture = Fixture::new(NVIDIA);
    let allocator = unsafe { Allocator::new(&AllocatorCreateInfo::for_gpu(&fixture.gpu)) }.unwrap();
    let allocator = Arc::new(allocator);
    let before = fixture.gpu.live();
    let store =
        BufferStore::new(&fixture.device, Arc::clone(&allocator), &small(HeapArrays::PerType)).unwrap();
    let heap = DescriptorHeap::new(store);
    let range = heap.allocate(1).unwrap();
    // The program drops its own reference.
    assert!(Arc::into_inner(allocator).is_none());
    unsafe { heap.write(range.id(), 0, &fixture.storage(0)) }.unwrap();
    unsafe { heap.into_store().destroy() };
    assert_eq!(fixture.gpu.live(), before, "the store was the last that had the allocator");
}

#[test]
fn a_store_is_used_by_any_thread_where_its_allocator_is() {
    fn shared<T: Send + Sync>() {}
    shared::<DescriptorHeap<BufferStore<&Allocator>>>();
    shared::<DescriptorHeap<BufferStore<Arc<Allocator>>>>();
}
