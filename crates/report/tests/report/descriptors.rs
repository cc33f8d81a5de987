//! Descriptor heaps and pools in snapshots, in their JSON and on the page.

use ash::vk;
use sublet::retire::Clock;
use sublet::sim::{Gpu, Profile};
use sublet::{Allocator, AllocatorCreateInfo};
use sublet_descriptors::{
    ClassicStore, Descriptor, DescriptorDevice, DescriptorDeviceCreateInfo, DescriptorHeap, HeapCreateInfo,
    HeapKind, HostHeap, HostHeapCreateInfo, PersistentSets, PersistentSetsCreateInfo, SetLayout,
    TransientSets, TransientSetsCreateInfo,
};
use sublet_report::{Page, PoolState, ReadSnapshotError, SlotUse, Snapshot, SnapshotFault};

/// A heap of 16 slots with a live range of 5, 3 retiring slots, and 2 of a frame. One persistent set and two transient
/// ones.
fn taken() -> Snapshot {
    let gpu = Gpu::new(Profile::by_name("lavapipe").unwrap());
    let vulkan = gpu.device();
    // SAFETY: the GPU outlives everything made from it, here and below.
    let allocator = unsafe { Allocator::new(&AllocatorCreateInfo::for_gpu(&gpu)) }.unwrap();
    // SAFETY: as above.
    let device = unsafe { DescriptorDevice::new(&DescriptorDeviceCreateInfo::for_gpu(&gpu)) }.unwrap();
    // SAFETY: the create-info is valid.
    let sampler = unsafe { vulkan.create_sampler(&vk::SamplerCreateInfo::default(), None) }.unwrap();
    let info = HeapCreateInfo { slots: 16, transient: 4, ..HeapCreateInfo::new(HeapKind::Sampler) };
    // SAFETY: the sampler outlives the store.
    let store = unsafe { ClassicStore::new(&device, &info, 2, &[Descriptor::Sampler(sampler)]) }.unwrap();
    let heap = DescriptorHeap::new(store);
    let mut host = HostHeap::new(&device, &HostHeapCreateInfo::default()).unwrap();
    let bindings = [vk::DescriptorSetLayoutBinding::default()
        .descriptor_type(vk::DescriptorType::UNIFORM_BUFFER)
        .descriptor_count(1)];
    let layout_info = vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings);
    // SAFETY: the create-info is valid.
    let handle = unsafe { vulkan.create_descriptor_set_layout(&layout_info, None) }.unwrap();
    // SAFETY: the layout was made from it.
    let layout = unsafe { SetLayout::new(handle, &layout_info) }.unwrap();
    let sets = PersistentSets::new(&PersistentSetsCreateInfo::new(&device));
    let mut frames = TransientSets::new(&device, &TransientSetsCreateInfo::default()).unwrap();

    let clock = Clock::new();
    let ticket = clock.open(clock.add_timeline().unwrap());
    let _live = heap.allocate(5).unwrap();
    let waiting = heap.allocate(3).unwrap();
    // SAFETY: nothing is submitted, here and below.
    unsafe { heap.retire(ticket, waiting) }.unwrap();
    heap.allocate_transient(ticket, 2).unwrap();
    let _staged = host.allocate(1).unwrap();
    // SAFETY: the layout is live.
    let set = unsafe { sets.allocate(&layout) }.unwrap();
    for _ in 0..2 {
        // SAFETY: as above, and nothing uses the set.
        unsafe { frames.allocate(&layout) }.unwrap();
    }
    frames.flush(ticket).unwrap();

    let mut snapshot = Snapshot::of(&allocator);
    snapshot.add_descriptor_heap("materials", &heap);
    snapshot.add_host_heap("staging", &host);
    snapshot.add_descriptor_sets("meshes", &sets);
    snapshot.add_transient_sets("frames", &frames);

    // SAFETY: nothing was submitted, here and below.
    unsafe { sets.free(set) }.unwrap();
    // SAFETY: as above.
    unsafe { sets.destroy() };
    // SAFETY: as above.
    unsafe { frames.destroy() };
    // SAFETY: as above.
    unsafe { heap.into_store().destroy() };
    // SAFETY: as above.
    unsafe { vulkan.destroy_descriptor_set_layout(handle, None) };
    // SAFETY: as above.
    unsafe { vulkan.destroy_sampler(sampler, None) };
    snapshot
}

#[test]
fn a_snapshot_holds_what_heaps_and_pools_held() {
    let snapshot = taken();
    let heap = &snapshot.descriptor_heaps[0];
    assert_eq!((&*heap.name, heap.slots, heap.ranges, heap.peak), ("materials", 16, 1, 10));
    let counts =
        [SlotUse::Live, SlotUse::Retiring, SlotUse::Transient, SlotUse::Free].map(|used| heap.count(used));
    assert_eq!(counts, [5, 3, 2, 6]);
    assert_eq!(heap.largest_free(), 4);
    assert_eq!(snapshot.descriptor_heaps[1].count(SlotUse::Live), 1);
    let [meshes, frames] = &*snapshot.descriptor_pools else { panic!("{:?}", snapshot.descriptor_pools) };
    assert_eq!((meshes.transient, meshes.pools, meshes.live_sets, meshes.free_sets), (false, 1, 1, Some(15)));
    assert_eq!((frames.transient, frames.pools, frames.waiting_pools, frames.live_sets), (true, 1, 1, 2));
}

#[test]
fn a_snapshot_holds_each_pool_with_its_sets_and_descriptors() {
    let snapshot = taken();
    let [meshes, frames] = &*snapshot.descriptor_pools else { panic!("{:?}", snapshot.descriptor_pools) };
    let ([stays], [recorded]) = (&*meshes.each, &*frames.each) else { panic!("{meshes:?} {frames:?}") };
    assert_eq!((stays.sets, stays.live_sets, stays.free_sets, stays.state), (16, 1, 15, PoolState::Open));
    let [uniforms] = &*stays.descriptors else { panic!("{stays:?}") };
    assert_eq!((&*uniforms.kind, uniforms.made, uniforms.left), ("UniformBuffer", 16, 15));
    assert_eq!((recorded.live_sets, recorded.free_sets, recorded.state), (2, 0, PoolState::Waiting));
    let json = snapshot.to_json();
    assert!(
        json.contains(r#""state":"open","descriptors":[{"kind":"UniformBuffer","made":16,"left":15}]"#),
        "{json}"
    );
    // The format of earlier versions.
    let start = json.find(r#","each":["#).unwrap();
    let end = start + json[start..].find(r#""state":"open""#).unwrap();
    let end = end + json[end..].find("]}]").unwrap() + 3;
    let earlier = Snapshot::from_json(&format!("{}{}", &json[..start], &json[end..])).unwrap();
    assert!(earlier.descriptor_pools[0].each.is_empty());
}

#[test]
fn it_is_read_back_and_what_was_not_added_is_not_written() {
    let mut snapshot = taken();
    assert_eq!(Snapshot::from_json(&snapshot.to_json()).unwrap(), snapshot);
    let html = Page::new(&snapshot).to_html();
    assert!(html.contains(r#""descriptor_heaps":[{"name":"materials","slots":16"#));
    snapshot.descriptor_heaps.clear();
    snapshot.descriptor_pools.clear();
    assert!(!snapshot.to_json().contains("descriptor"));
    assert_eq!(Snapshot::from_json(&snapshot.to_json()).unwrap(), snapshot);
}

#[test]
fn runs_that_do_not_tile_their_heap_are_refused() {
    let text = taken().to_json();
    let damaged =
        text.replace(r#"{"first":0,"count":5,"use":"live"}"#, r#"{"first":0,"count":6,"use":"live"}"#);
    assert_ne!(damaged, text);
    let error = Snapshot::from_json(&damaged).unwrap_err();
    assert!(
        matches!(
            error,
            ReadSnapshotError::Contradiction { fault: SnapshotFault::Slots { heap: 0, slot: 5 }, .. }
        ),
        "{error}"
    );
    assert_eq!(error.to_string(), "memory map: the runs of descriptor heap 0 do not tile it at slot 5");
}
