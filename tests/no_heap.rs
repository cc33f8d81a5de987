//! A warmed-up allocator allocates no host memory. The global allocator of this binary counts calls. The device's
//! functions do nothing, so they allocate nothing either.
#![allow(clippy::unwrap_used, reason = "a test that meets the unexpected is to fail")]

#[allow(unreachable_pub, reason = "shared with other binaries")]
#[path = "shared/counting.rs"]
mod counting;

use ash::vk;
use counting::{bytes, count};
use sublet::retire::{Clock, Retire};
use sublet::sim::{NullGpu, profiles};
use sublet::upload::{UploadArena, UploadArenaCreateInfo, UploadMemory};
use sublet::{
    Algorithm, Allocation, AllocationCreateFlags as Flags, AllocationCreateInfo, Allocator,
    AllocatorCreateInfo, MemoryUsage, PoolCreateInfo, RetiredResources,
};
use sublet_descriptors::{
    BufferDescriptor, Descriptor, DescriptorDevice, DescriptorDeviceCreateInfo, DescriptorFeatures,
    DescriptorHeap, DescriptorKind, HeapCreateInfo, SetStore,
};

/// Returns the number of host allocations in `work`.
fn counted(work: impl FnOnce()) -> u64 {
    let before = count();
    work();
    count() - before
}

/// Runs `test` on every profile. The GPU outlives the allocator.
fn on_every_profile(test: impl Fn(&str, &Allocator, &ash::Device)) {
    for &profile in profiles::ALL {
        let gpu = NullGpu::new(profile);
        let info =
            AllocatorCreateInfo::new(gpu.instance(), gpu.device(), gpu.physical_device(), gpu.api_version());
        // SAFETY: the handles are live and outlive the allocator.
        let allocator = unsafe { Allocator::new(&info) }.unwrap();
        test(profile.name, &allocator, gpu.device());
        assert!(allocator.destroy().is_empty());
    }
}

/// Allocates and frees at random. The same seed makes the same calls and leaves nothing.
fn churn(
    make: impl Fn(u64, u64) -> Option<Allocation>,
    free: impl Fn(Allocation),
    held: &mut Vec<Allocation>,
) {
    let mut random = fastrand::Rng::with_seed(5);
    for _ in 0..2000 {
        if random.u64(..5) < 3 {
            held.extend(make(1 + random.u64(..20_000), 1 << random.u64(..9)));
        } else if !held.is_empty() {
            let at = usize::try_from(random.u64(..u64::try_from(held.len()).unwrap())).unwrap();
            free(held.swap_remove(at));
        }
    }
    held.drain(..).for_each(free);
}

#[test]
fn the_counter_counts() {
    assert_eq!(counted(|| drop(std::hint::black_box(Box::new(1)))), 1);
}

#[test]
fn allocate_and_free() {
    on_every_profile(|name, allocator, _| {
        for flags in [
            Flags::empty(),
            Flags::STRATEGY_MIN_MEMORY,
            Flags::STRATEGY_MIN_TIME,
            Flags::STRATEGY_MIN_OFFSET,
            Flags::WITHIN_BUDGET,
        ] {
            let info = AllocationCreateInfo { flags, ..AllocationCreateInfo::new(MemoryUsage::GpuOnly) };
            let mut held = Vec::with_capacity(4000);
            let mut round = || {
                let make = |size, alignment| {
                    let requirements = vk::MemoryRequirements { size, alignment, memory_type_bits: !0 };
                    allocator.allocate_memory(&requirements, &info).ok()
                };
                // SAFETY: the device does not use the memory.
                churn(make, |it| unsafe { allocator.free_memory(it) }.unwrap(), &mut held);
            };
            // The first round starts without a block, so its chunks differ. Recurring sizes get slabs some rounds
            // later.
            (0..16).for_each(|_| round());
            assert_eq!(counted(round), 0, "{name} with {flags:?}");
        }
    });
}

#[test]
fn buffers() {
    on_every_profile(|name, allocator, _| {
        let info = AllocationCreateInfo {
            flags: Flags::HOST_ACCESS_SEQUENTIAL_WRITE | Flags::MAPPED,
            ..AllocationCreateInfo::new(MemoryUsage::Auto)
        };
        let round = || {
            for size in [1, 100, 10_000, 1_000_000] {
                let buffer_info =
                    vk::BufferCreateInfo::default().size(size).usage(vk::BufferUsageFlags::UNIFORM_BUFFER);
                // SAFETY: the create-info is valid.
                let (buffer, allocation) = unsafe { allocator.create_buffer(&buffer_info, &info) }.unwrap();
                // SAFETY: the device does not use the buffer.
                unsafe { allocator.destroy_buffer(buffer, allocation) }.unwrap();
            }
        };
        round();
        let warm = counted(|| (0..100).for_each(|_| round()));
        assert_eq!(warm, 0, "{name}");
    });
}

#[test]
fn images() {
    on_every_profile(|name, allocator, _| {
        let image_info = vk::ImageCreateInfo::default()
            .image_type(vk::ImageType::TYPE_2D)
            .format(vk::Format::R8G8B8A8_UNORM)
            .extent(vk::Extent3D { width: 64, height: 64, depth: 1 })
            .mip_levels(1)
            .array_layers(1)
            .samples(vk::SampleCountFlags::TYPE_1)
            .usage(vk::ImageUsageFlags::SAMPLED);
        let info = AllocationCreateInfo::new(MemoryUsage::Auto);
        let round = || {
            // SAFETY: the create-info is valid.
            let (image, allocation) = unsafe { allocator.create_image(&image_info, &info) }.unwrap();
            // SAFETY: the device does not use the image.
            unsafe { allocator.destroy_image(image, allocation) }.unwrap();
        };
        round();
        assert_eq!(counted(|| (0..100).for_each(|_| round())), 0, "{name}");
    });
}

#[test]
fn pools() {
    on_every_profile(|name, allocator, _| {
        for algorithm in [Algorithm::Tlsf, Algorithm::Linear, Algorithm::Buddy] {
            let info = PoolCreateInfo { block_size: 64 << 20, algorithm, ..PoolCreateInfo::new(0) };
            let pool = allocator.create_pool(&info).unwrap();
            let in_pool = AllocationCreateInfo::in_pool(&pool);
            let mut held = Vec::with_capacity(4000);
            let mut round = || {
                let make = |size, alignment| {
                    let requirements = vk::MemoryRequirements { size, alignment, memory_type_bits: !0 };
                    allocator.allocate_memory(&requirements, &in_pool).ok()
                };
                // SAFETY: the device does not use the memory.
                churn(make, |it| unsafe { allocator.free_memory(it) }.unwrap(), &mut held);
            };
            round();
            round();
            assert_eq!(counted(round), 0, "{name} with {algorithm:?}");
            // SAFETY: the pool is empty.
            unsafe { allocator.destroy_pool(pool) }.unwrap();
        }
    });
}

/// A pool has no state to keep until its first block exists.
#[test]
fn empty_pools() {
    on_every_profile(|name, allocator, _| {
        let round = || {
            let pool = allocator.create_pool(&PoolCreateInfo::new(0)).unwrap();
            // SAFETY: the pool is empty.
            assert!(unsafe { allocator.destroy_pool(pool) }.unwrap().is_empty());
        };
        round();
        assert_eq!(counted(|| (0..100).for_each(|_| round())), 0, "{name}");
    });
}

#[test]
fn flushes_and_mappings() {
    on_every_profile(|name, allocator, _| {
        let requirements = vk::MemoryRequirements { size: 1000, alignment: 64, memory_type_bits: !0 };
        let info = AllocationCreateInfo::new(MemoryUsage::CpuToGpu);
        let mut allocation = allocator.allocate_memory(&requirements, &info).unwrap();
        let mut round = || {
            let guard = allocator.map(&mut allocation).unwrap();
            guard.flush(0, vk::WHOLE_SIZE).unwrap();
            guard.invalidate(10, 20).unwrap();
        };
        round();
        assert_eq!(counted(|| (0..100).for_each(|_| round())), 0, "{name}");
        // SAFETY: the device does not use the memory.
        unsafe { allocator.free_memory(allocation) }.unwrap();
    });
}

/// Upload frames allocate pages, flush and collect them, and reuse them. Nothing is written, because this device's
/// mappings are invalid.
#[test]
fn uploads() {
    on_every_profile(|name, allocator, _| {
        for (memory, share_pages) in
            [UploadMemory::PreferDevice, UploadMemory::PreferHost].into_iter().zip([false, true])
        {
            let info = UploadArenaCreateInfo { memory, share_pages, page_size: 4096, ..Default::default() };
            // SAFETY: nothing is submitted.
            let mut arena = unsafe { UploadArena::new(allocator, &info) }.unwrap();
            let clock = Clock::new();
            let timeline = clock.add_timeline().unwrap();
            let mut frames = |count: u32| {
                for frame in 0..count {
                    let ticket = clock.begin_frame(timeline, frame % 2);
                    arena.collect(&clock).unwrap();
                    for at in 0..40 {
                        arena.allocate(300, 1 << (at % 9)).unwrap();
                    }
                    arena.flush(ticket).unwrap();
                    clock.end_frame(ticket).unwrap();
                }
            };
            frames(40);
            assert_eq!(counted(|| frames(200)), 0, "{name} in {memory:?}");
            clock.idle();
            arena.collect(&clock).unwrap();
        }
    });
}

/// Pools and names come and go, and all host memory is freed.
#[test]
fn nothing_piles_up() {
    on_every_profile(|name, allocator, _| {
        let requirements = vk::MemoryRequirements { size: 1000, alignment: 64, memory_type_bits: !0 };
        let round = || {
            let info = PoolCreateInfo { block_size: 1 << 20, name: Some("pool"), ..PoolCreateInfo::new(0) };
            let pool = allocator.create_pool(&info).unwrap();
            let named = AllocationCreateInfo { name: Some("piece"), ..AllocationCreateInfo::in_pool(&pool) };
            let pooled = allocator.allocate_memory(&requirements, &named).unwrap();
            let own = AllocationCreateInfo { flags: Flags::DEDICATED_MEMORY, pool: None, ..named };
            let own = allocator.allocate_memory(&requirements, &own).unwrap();
            for piece in [pooled, own] {
                // SAFETY: the device does not use the memory.
                unsafe { allocator.free_memory(piece) }.unwrap();
            }
            // SAFETY: the pool is empty.
            assert!(unsafe { allocator.destroy_pool(pool) }.unwrap().is_empty());
        };
        (0..10).for_each(|_| round());
        let before = bytes();
        (0..200).for_each(|_| round());
        assert_eq!(bytes().wrapping_sub(before), 0, "{name}");
    });
}

#[test]
fn frames_that_retire_and_collect() {
    on_every_profile(|name, allocator, _| {
        let (clock, retired) = (Clock::new(), RetiredResources::new());
        let timeline = clock.add_timeline().unwrap();
        let info = AllocationCreateInfo::new(MemoryUsage::GpuOnly);
        let requirements = vk::MemoryRequirements { size: 4096, alignment: 256, memory_type_bits: !0 };
        let frames = || {
            for slot in [0, 1, 2, 0, 1, 2] {
                let ticket = clock.begin_frame(timeline, slot);
                retired.collect(allocator, &clock).unwrap();
                for _ in 0..20 {
                    let memory = allocator.allocate_memory(&requirements, &info).unwrap();
                    // SAFETY: the device does not use the memory.
                    unsafe { retired.retire_memory(ticket, memory) };
                }
                clock.end_frame(ticket).unwrap();
            }
        };
        frames();
        frames();
        assert_eq!(counted(|| (0..50).for_each(|_| frames())), 0, "{name}");
        clock.shutdown();
        retired.collect(allocator, &clock).unwrap();
    });
}

#[test]
fn tickets_of_several_timelines_in_any_order() {
    let clock = Clock::new();
    let timelines = [(); 3].map(|()| clock.add_timeline().unwrap());
    let mut queue = Retire::new();
    let mut random = fastrand::Rng::with_seed(7);
    let mut open = Vec::with_capacity(64);
    // A ticket that is never submitted must not cause repeated allocations.
    let _stuck = clock.open(timelines[0]);
    let mut value = 0;
    let mut frames = || {
        for timeline in timelines.iter().cycle().take(210) {
            open.push(clock.open(*timeline));
            if open.len() == 42 {
                // Submits in any order.
                while !open.is_empty() {
                    let ticket = open.swap_remove(random.usize(..open.len()));
                    for item in 0..5 {
                        queue.push(ticket, item);
                    }
                    value += 1;
                    clock.submit(ticket, value).unwrap();
                }
                queue.collect(&clock, drop).unwrap();
                timelines.iter().for_each(|&timeline| clock.completed(timeline, value));
            }
        }
    };
    (0..50).for_each(|_| frames());
    assert_eq!(counted(|| (0..200).for_each(|_| frames())), 0);
}

#[test]
fn a_queue_that_reserved_takes_no_memory() {
    let clock = Clock::new();
    let timeline = clock.add_timeline().unwrap();
    let tickets: Vec<_> = (0..100).map(|_| clock.open(timeline)).collect();
    let mut queue = Retire::new();
    queue.reserve(tickets.len()).unwrap();
    let taken = counted(|| {
        for (at, &ticket) in tickets.iter().enumerate() {
            queue.push(ticket, at);
        }
        clock.shutdown();
        assert_eq!(queue.collect(&clock, drop), Ok(tickets.len()));
    });
    assert_eq!(taken, 0);
}

/// Three frames in flight with sets of three layouts. Pools are closed, wait, are reset and reused.
fn transient_frames(share_pools: bool) {
    use sublet_descriptors::{
        DescriptorDevice, DescriptorDeviceCreateInfo, SetLayout, TransientSets, TransientSetsCreateInfo,
    };
    let gpu = NullGpu::new(profiles::Profile::by_name("nvidia-h200").unwrap());
    let info = DescriptorDeviceCreateInfo::new(
        gpu.instance(),
        gpu.device(),
        gpu.physical_device(),
        gpu.api_version(),
    );
    // SAFETY: instance and device outlive the objects created from the value.
    let device = unsafe { DescriptorDevice::new(&info) }.unwrap();
    let layouts = [1, 3, 40].map(|count| {
        let binding = vk::DescriptorSetLayoutBinding::default()
            .descriptor_type(vk::DescriptorType::UNIFORM_BUFFER)
            .descriptor_count(count);
        let info = vk::DescriptorSetLayoutCreateInfo::default().bindings(std::slice::from_ref(&binding));
        // SAFETY: the create-info is valid, and the device ignores layouts.
        unsafe { SetLayout::new(vk::DescriptorSetLayout::null(), &info) }.unwrap()
    });
    let info = TransientSetsCreateInfo { share_pools, max_sets_per_pool: 64, ..Default::default() };
    let mut sets = TransientSets::new(&device, &info).unwrap();
    let clock = Clock::new();
    let timeline = clock.add_timeline().unwrap();
    let mut frames = |count: u32| {
        for frame in 0..count {
            let ticket = clock.begin_frame(timeline, frame % 3);
            sets.collect(&clock).unwrap();
            for layout in layouts.iter().cycle().take(300) {
                // SAFETY: the device ignores its arguments.
                unsafe { sets.allocate(layout) }.unwrap();
            }
            sets.flush(ticket).unwrap();
            clock.end_frame(ticket).unwrap();
        }
    };
    frames(30);
    assert_eq!(counted(|| frames(300)), 0);
    let statistics = sets.statistics();
    assert!(statistics.resets > 600, "pools came and went: {statistics:?}");
    // SAFETY: the device is idle.
    unsafe { sets.destroy() };
}

#[test]
fn warm_transient_sets_take_no_memory() {
    transient_frames(false);
    transient_frames(true);
}

/// Ranges, their descriptors and transient ranges, once as many have been live before.
#[test]
fn ranges_of_descriptor_heaps() {
    for &profile in profiles::ALL.iter().filter(|profile| profile.features.descriptor_indexing) {
        let gpu = NullGpu::new(profile);
        let mut info = DescriptorDeviceCreateInfo::new(
            gpu.instance(),
            gpu.device(),
            gpu.physical_device(),
            gpu.api_version(),
        );
        info.features = DescriptorFeatures::UPDATE_AFTER_BIND;
        // SAFETY: the handles are live and outlive the objects created from them.
        let device = unsafe { DescriptorDevice::new(&info) }.unwrap();
        let types = &[DescriptorKind::StorageBuffer];
        let info = HeapCreateInfo { slots: 512, transient: 64, types, ..HeapCreateInfo::default() };
        let heap = DescriptorHeap::new(SetStore::new(&device, &info).unwrap());
        let clock = Clock::new();
        let timeline = clock.add_timeline().unwrap();
        let mut random = fastrand::Rng::with_seed(9);
        let mut alive = Vec::with_capacity(64);
        let buffer = Descriptor::StorageBuffer(BufferDescriptor::null());
        let mut frames = || {
            for slot in [0, 1, 2].into_iter().cycle().take(60) {
                let ticket = clock.begin_frame(timeline, slot);
                heap.collect(&clock).unwrap();
                for _ in 0..8 {
                    let Ok(range) = heap.allocate(random.u32(1..9)) else { break };
                    // SAFETY: the null device ignores its arguments.
                    unsafe { heap.write(range.id(), 0, &buffer) }.unwrap();
                    alive.push(range);
                }
                heap.allocate_transient(ticket, 7).unwrap();
                while alive.len() > 32 {
                    // SAFETY: no later recording uses it.
                    unsafe { heap.retire(ticket, alive.swap_remove(random.usize(..alive.len()))) }.unwrap();
                }
                clock.end_frame(ticket).unwrap();
            }
        };
        heap.reserve(256).unwrap();
        (0..20).for_each(|_| frames());
        assert_eq!(counted(|| (0..20).for_each(|_| frames())), 0, "{}", profile.name);
        // SAFETY: nothing was submitted.
        unsafe { heap.into_store().destroy() };
    }
}

/// Pages of a recording come from a fixed stock, whichever thread empties them.
#[test]
fn a_recording_asks_the_host_for_nothing_once_it_has_begun() {
    on_every_profile(|name, allocator, _| {
        allocator.start_recording(std::io::sink()).unwrap();
        let requirements = vk::MemoryRequirements { size: 4096, alignment: 256, memory_type_bits: !0 };
        let pair = || {
            let info = AllocationCreateInfo::new(MemoryUsage::GpuOnly);
            let allocation = allocator.allocate_memory(&requirements, &info).unwrap();
            // SAFETY: nothing was bound to it.
            unsafe { allocator.free_memory(allocation) }.unwrap();
        };
        pair();
        // Fills several pages.
        assert_eq!(counted(|| (0..20_000).for_each(|_| pair())), 0, "{name}");
        assert_eq!(allocator.stop_recording().unwrap().records, 40_002, "{name}");
    });
}
