//! Callbacks of the program: for device memory, and for the driver's host memory.

use std::alloc::{Layout, alloc, dealloc};
use std::ffi::c_void;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use ash::vk;
use sublet::device::{DeviceMemoryCallbacks, DeviceMemoryEvent, RawDeviceMemoryCallbacks};
use sublet::sim::Gpu;
use sublet::{
    AllocationCreateFlags as Flags, AllocationCreateInfo, AllocatorCreateInfo, MemoryUsage, PoolCreateInfo,
};

use crate::common::*;

fn with_callbacks(gpu: Gpu, callbacks: DeviceMemoryCallbacks) -> Held<Fixture> {
    let info = AllocatorCreateInfo {
        flags: enabled(&gpu),
        device_memory_callbacks: Some(callbacks),
        ..create_info(&gpu)
    };
    hold(Fixture { allocator: new_allocator(&info).unwrap(), gpu })
}

/// The callbacks report every `VkDeviceMemory`, of blocks and dedicated, in order, with type and size.
#[test]
fn all_memory_is_reported() {
    on_every_profile(|profile| {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let list = Arc::clone(&seen);
        let fixture = with_callbacks(
            Gpu::new(profile),
            DeviceMemoryCallbacks::new(move |event| list.lock().unwrap().push(event)),
        );
        let take = || std::mem::take(&mut *seen.lock().unwrap());
        assert_eq!(take(), []);
        let block = fixture.memory(KIB, 1, &in_type(0)).unwrap();
        let (memory, size) = (block.memory(), fixture.memory_size(&block));
        assert_eq!(take(), [DeviceMemoryEvent::Allocated { memory_type: 0, memory, size }]);
        let second = fixture.memory(KIB, 1, &in_type(0)).unwrap();
        assert_eq!(take(), [], "it is in the same block");
        let alone = fixture.memory(KIB, 1, &in_type_with(0, Flags::DEDICATED_MEMORY)).unwrap();
        let dedicated = alone.memory();
        assert_eq!(take(), [DeviceMemoryEvent::Allocated { memory_type: 0, memory: dedicated, size: KIB }]);
        fixture.free(alone);
        assert_eq!(take(), [DeviceMemoryEvent::Freeing { memory_type: 0, memory: dedicated, size: KIB }]);
        fixture.gpu.faults().fail_nth("vkAllocateMemory", 0, vk::Result::ERROR_DEVICE_LOST);
        fixture.memory(KIB, 1, &in_type_with(0, Flags::DEDICATED_MEMORY)).unwrap_err();
        assert_eq!(take(), [], "the driver gave nothing");
        let pool =
            fixture.pool(&PoolCreateInfo { block_size: MIB, min_block_count: 2, ..PoolCreateInfo::new(0) });
        assert_eq!(take().len(), 2);
        fixture.destroy_pool(pool.unwrap());
        assert_eq!(take().len(), 2);
        fixture.free_all([block, second]);
        assert_eq!(take(), [], "an empty block is kept");
        fixture.allocator.trim();
        assert_eq!(take(), [DeviceMemoryEvent::Freeing { memory_type: 0, memory, size }]);
    });
}

/// The memory is live during both callbacks.
#[test]
fn told_after_it_was_given_and_before_it_goes() {
    static LIVE: AtomicI64 = AtomicI64::new(0);
    static CALLS: AtomicU64 = AtomicU64::new(0);
    unsafe extern "system" fn allocated(
        allocator: *mut c_void,
        memory_type: u32,
        memory: vk::DeviceMemory,
        size: u64,
        user_data: *mut c_void,
    ) {
        assert_eq!(allocator.addr(), 16);
        // SAFETY: the test passes its GPU, which outlives the allocator.
        let gpu = unsafe { &*user_data.cast_const().cast::<Gpu>() };
        let info = gpu.memory_info(memory).expect("live");
        assert_eq!((info.size, info.type_index), (size, memory_type));
        LIVE.fetch_add(1, Ordering::Relaxed);
        CALLS.fetch_add(1, Ordering::Relaxed);
    }
    unsafe extern "system" fn freeing(
        allocator: *mut c_void,
        memory_type: u32,
        memory: vk::DeviceMemory,
        size: u64,
        user_data: *mut c_void,
    ) {
        // SAFETY: see `allocated`.
        unsafe { allocated(allocator, memory_type, memory, size, user_data) };
        LIVE.fetch_sub(2, Ordering::Relaxed);
    }
    let gpu = Box::new(Gpu::new(sublet::sim::Profile::by_name("lavapipe").unwrap()));
    let raw = RawDeviceMemoryCallbacks {
        allocated: Some(allocated),
        freeing: Some(freeing),
        allocator: std::ptr::without_provenance_mut(16),
        user_data: std::ptr::from_ref(&*gpu).cast_mut().cast(),
    };
    // SAFETY: the functions only read their arguments, and may run on any thread.
    let with = |raw| Some(unsafe { DeviceMemoryCallbacks::from_raw(raw) });
    let info = AllocatorCreateInfo { device_memory_callbacks: with(raw), ..create_info(&gpu) };
    let allocator = new_allocator(&info).unwrap();
    let requirements = vk::MemoryRequirements { size: KIB, alignment: 1, memory_type_bits: !0 };
    let memory = allocator.allocate_memory(&requirements, &AllocationCreateInfo::default()).unwrap();
    let alone = AllocationCreateInfo { flags: Flags::DEDICATED_MEMORY, ..Default::default() };
    let dedicated = allocator.allocate_memory(&requirements, &alone).unwrap();
    assert_eq!(LIVE.load(Ordering::Relaxed), 2);
    for allocation in [memory, dedicated] {
        // SAFETY: the device does not use it.
        unsafe { allocator.free_memory(allocation) }.unwrap();
    }
    drop(allocator);
    assert_eq!((LIVE.load(Ordering::Relaxed), CALLS.load(Ordering::Relaxed)), (0, 4));
    // One of the two callbacks is enough.
    let raw = RawDeviceMemoryCallbacks { freeing: None, ..raw };
    let info = AllocatorCreateInfo { device_memory_callbacks: with(raw), ..create_info(&gpu) };
    let allocator = new_allocator(&info).unwrap();
    let memory = allocator.allocate_memory(&requirements, &alone).unwrap();
    // SAFETY: the device does not use it.
    unsafe { allocator.free_memory(memory) }.unwrap();
    assert_eq!(LIVE.load(Ordering::Relaxed), 1);
    gpu.assert_silent();
}

const BYTES: Layout = Layout::new::<[u128; 16]>();

unsafe extern "system" fn take(
    live: *mut c_void,
    size: usize,
    alignment: usize,
    _: vk::SystemAllocationScope,
) -> *mut c_void {
    assert!(size <= BYTES.size() && alignment <= BYTES.align());
    // SAFETY: the test passes a counter that outlives the allocator.
    unsafe { &*live.cast_const().cast::<AtomicI64>() }.fetch_add(1, Ordering::Relaxed);
    // SAFETY: the layout is not empty.
    unsafe { alloc(BYTES) }.cast()
}

unsafe extern "system" fn give_back(live: *mut c_void, bytes: *mut c_void) {
    // SAFETY: as above.
    unsafe { &*live.cast_const().cast::<AtomicI64>() }.fetch_sub(1, Ordering::Relaxed);
    // SAFETY: `take` allocated it.
    unsafe { dealloc(bytes.cast(), BYTES) };
}

/// The driver allocates and frees the host memory of all its objects through the program's callbacks.
#[test]
fn allocation_callbacks_are_passed_to_the_driver() {
    on_every_profile(|profile| {
        let live = AtomicI64::new(0);
        let count = || live.load(Ordering::Relaxed);
        let gpu = Gpu::new(profile);
        let allocator = {
            // The allocator keeps a copy of the callbacks, so this value may go out of scope.
            let callbacks = vk::AllocationCallbacks {
                p_user_data: std::ptr::from_ref(&live).cast_mut().cast(),
                pfn_allocation: Some(take),
                pfn_free: Some(give_back),
                ..Default::default()
            };
            let info = AllocatorCreateInfo {
                flags: enabled(&gpu),
                allocation_callbacks: Some(&callbacks),
                ..create_info(&gpu)
            };
            new_allocator(&info).unwrap()
        };
        let fixture = hold(Fixture { allocator, gpu });
        let memory = fixture.memory(KIB, 1, &AllocationCreateInfo::default()).unwrap();
        assert_eq!(count(), 1, "a block");
        let auto = AllocationCreateInfo::new(MemoryUsage::Auto);
        let buffer = fixture.buffer(KIB, vk::BufferUsageFlags::STORAGE_BUFFER, &auto).unwrap();
        let image = fixture.image(&square(16, vk::ImageUsageFlags::SAMPLED), &auto).unwrap();
        let objects = fixture.gpu.live();
        assert_eq!(count(), (objects.memories + objects.buffers + objects.images) as i64);
        let sample = vk::BufferCreateInfo::default().size(64).usage(vk::BufferUsageFlags::STORAGE_BUFFER);
        // SAFETY: the create-info is valid.
        unsafe { fixture.allocator.find_memory_type_index_for_buffer_info(&sample, &auto) }.unwrap();
        fixture.destroy_buffer(buffer);
        fixture.destroy_image(image);
        fixture.free(memory);
        fixture.allocator.trim();
        assert_eq!(count(), 0);
    });
}
