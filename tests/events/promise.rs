//! Emits every event of the guide's tables on simulated GPUs.

use ash::vk::{self, Handle};
use sublet::retire::Clock;
use sublet::sim::{DescriptorPoolPolicy, Gpu, Profile};
use sublet::upload::{UploadArena, UploadArenaCreateInfo};
use sublet::{
    AllocationCreateInfo, Allocator, AllocatorCreateInfo, DebugSettings, DefragmentationInfo, PoolCreateInfo,
    RetiredResources, Tracking,
};
use sublet_descriptors::{
    DescriptorHeap, HeapCreateInfo, HeapKind, PersistentSets, PersistentSetsCreateInfo, SetStore,
    TransientSets, TransientSetsCreateInfo,
};

use crate::collect::{heard, names, rows};
use crate::memory::{self, KIB, MIB, gpu, host_type, requirements};
use crate::sets::device_and_layout;
use crate::table::promised;

fn leaks() {
    let gpu = gpu();
    let info = AllocatorCreateInfo {
        tracking: Tracking::CALLER | Tracking::USER_DATA,
        ..AllocatorCreateInfo::for_gpu(&gpu)
    };
    // SAFETY: instance and device are live, and outlive the allocator.
    let allocator = unsafe { Allocator::new(&info) }.unwrap();
    let named = AllocationCreateInfo { name: Some("forgotten"), user_data: 7, ..Default::default() };
    let _lost = allocator.allocate_memory(&requirements(KIB), &named).unwrap();
    // The ticket is never submitted, so everything that waits for it is leaked.
    let clock = Clock::new();
    let timeline = clock.add_timeline().unwrap();
    let ticket = clock.open(timeline);
    // SAFETY: the usages are those of version 1.0.
    let mut arena = unsafe { UploadArena::new(&allocator, &UploadArenaCreateInfo::default()) }.unwrap();
    // Two pages: one is leaked, and the other is free and gets destroyed.
    arena.reserve(4 << 20).unwrap();
    arena.write(b"read later", 1).unwrap();
    arena.flush(ticket).unwrap();
    drop(arena);
    let retired = RetiredResources::new();
    let memory = allocator.allocate_memory(&requirements(KIB), &Default::default()).unwrap();
    // SAFETY: the device does not use the memory.
    unsafe { retired.retire_memory(ticket, memory) };
    drop(retired);
    assert_eq!(allocator.destroy().len(), 3);
    // The page's buffer leaks too, and the driver reports it.
    drop(gpu.take_messages());
}

fn corruption() {
    let gpu = gpu();
    let debug = DebugSettings { margin: 16, detect_corruption: true, ..Default::default() };
    let info = AllocatorCreateInfo { debug, ..AllocatorCreateInfo::for_gpu(&gpu) };
    // SAFETY: instance and device are live, and outlive the allocator.
    let allocator = unsafe { Allocator::new(&info) }.unwrap();
    let info = AllocationCreateInfo { memory_type_bits: 1 << host_type(&gpu), ..Default::default() };
    let culprit = allocator.allocate_memory(&requirements(KIB), &info).unwrap();
    // SAFETY: no other thread uses the memory.
    let written = unsafe { gpu.write_memory(culprit.memory(), culprit.offset() + KIB, &[1]) };
    assert!(written);
    // SAFETY: nothing was bound to it.
    unsafe { allocator.free_memory(culprit) }.unwrap();
}

fn defragmentation() {
    let gpu = gpu();
    let allocator = memory::allocator(&gpu);
    let info = PoolCreateInfo { block_size: MIB, ..PoolCreateInfo::new(host_type(&gpu)) };
    let pool = allocator.create_pool(&info).unwrap();
    let plain = AllocationCreateInfo::in_pool(&pool);
    let mapped = AllocationCreateInfo { flags: sublet::AllocationCreateFlags::MAPPED, ..plain };
    let first = allocator.allocate_memory(&requirements(MIB / 2), &plain).unwrap();
    let filler = allocator.allocate_memory(&requirements(MIB / 2), &plain).unwrap();
    let moved = allocator.allocate_memory(&requirements(MIB / 4), &mapped).unwrap();
    // SAFETY: nothing was bound to any of them.
    unsafe { allocator.free_memory(filler) }.unwrap();
    gpu.faults().fail_always("vkMapMemory", vk::Result::ERROR_MEMORY_MAP_FAILED);
    let info = DefragmentationInfo { pools: &[&pool], ..Default::default() };
    let mut context = allocator.begin_defragmentation(&info).unwrap();
    assert_eq!(context.begin_pass().unwrap().moves().len(), 1);
    context.end();
    gpu.faults().clear();
    for allocation in [first, moved] {
        // SAFETY: as above.
        unsafe { allocator.free_memory(allocation) }.unwrap();
    }
    // SAFETY: the pool is empty.
    unsafe { allocator.destroy_pool(pool) }.unwrap();
}

fn retirement() {
    let clock = Clock::new();
    let timeline = clock.add_timeline().unwrap();
    let _unended = clock.begin_frame(timeline, 0);
    let frame = clock.begin_frame(timeline, 0);
    let value = clock.end_frame(frame).unwrap();
    clock.idle();
    clock.completed(timeline, value - 1);
    clock.completed(timeline, value);
    let ticket = clock.open(timeline);
    clock.submit(ticket, value + 3).unwrap();
    clock.completed(timeline, value + 2);
    clock.completed(timeline, value + 1);
}

fn descriptors() {
    let profile = Profile::by_name("nvidia-h200").unwrap();
    let gpu = Gpu::builder(profile).descriptor_pools(DescriptorPoolPolicy::Strict).build();
    let (device, layout) = device_and_layout(&gpu);

    let info = PersistentSetsCreateInfo::new(&device);
    let persistent: PersistentSets = PersistentSets::new(&info);
    gpu.faults().fail_nth("vkCreateDescriptorPool", 0, vk::Result::ERROR_OUT_OF_HOST_MEMORY);
    // A smaller pool is created instead.
    // SAFETY: the layout belongs to this device.
    let _lost = unsafe { persistent.allocate(&layout) }.unwrap();
    gpu.faults().fail_nth("vkAllocateDescriptorSets", 0, vk::Result::ERROR_OUT_OF_POOL_MEMORY);
    // SAFETY: as above.
    let refused = unsafe { persistent.allocate(&layout) };
    assert!(refused.is_err(), "a fresh pool that gives nothing");
    drop(persistent);

    let info = TransientSetsCreateInfo { name: "per frame".into(), ..Default::default() };
    let mut sets = TransientSets::new(&device, &info).unwrap();
    // SAFETY: as above.
    unsafe { sets.allocate(&layout) }.unwrap();
    drop(sets);

    let store = SetStore::new(&device, &HeapCreateInfo::new(HeapKind::Resource)).unwrap();
    drop(DescriptorHeap::new(store));
    // SAFETY: its sets are leaked and not used.
    unsafe { gpu.device().destroy_descriptor_set_layout(layout.handle(), None) };
    drop(device);
    drop(gpu.take_messages());
}

fn simulation() {
    let gpu = gpu();
    let none = vk::MemoryAllocateInfo::default();
    // SAFETY: the simulated driver accepts invalid calls, and reports them.
    let given = unsafe { gpu.device().allocate_memory(&none, None) };
    if let Ok(memory) = given {
        // SAFETY: the device does not use it.
        unsafe { gpu.device().free_memory(memory, None) };
    }
    assert!(!gpu.take_messages().is_empty());
    // SAFETY: as above.
    let _ = unsafe { gpu.instance().get_physical_device_memory_properties(vk::PhysicalDevice::from_raw(16)) };
}

#[test]
fn what_the_guide_promises_comes() {
    let seen = heard(|| {
        memory::blocks();
        memory::ahead();
        memory::refusals();
        memory::relief();
        memory::dedicated();
        memory::budgets();
        memory::allocation_count();
        memory::above_limit();
        leaks();
        corruption();
        defragmentation();
        retirement();
        descriptors();
        simulation();
    });
    let (came, promised) = (rows(&seen), promised());
    for (name, row) in &came {
        assert_eq!(Some(row), promised.get(name), "{name}: what came, and what the guide says");
    }
    // Some events need the C interface, failing disks or the recorder's own thread. `source.rs` compares those too.
    let elsewhere = ["sublet::capi", "sublet::trace"];
    let missing: Vec<_> = promised
        .iter()
        .filter(|(name, row)| !elsewhere.contains(&&*row.target) && !came.contains_key(*name))
        .collect();
    assert!(missing.is_empty(), "promised, and did not come: {missing:?}");
    // Fields that are always recorded have a value.
    let always = ["size", "memory_type", "heap", "blocks", "heap_bytes", "nanoseconds", "dedicated"];
    for event in seen.iter().filter(|seen| seen.name() == "block_created") {
        assert!(always.iter().all(|field| !event.get(field).is_empty()), "{event:?}");
    }
    assert!(names(&seen).len() > 100);
}
