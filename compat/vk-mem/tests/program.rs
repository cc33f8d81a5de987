//! A typical vk-mem program, on every simulated GPU.
#![allow(clippy::unwrap_used, reason = "a test")]
#![allow(clippy::multiple_unsafe_ops_per_block, reason = "a test calls what it tests")]
#![allow(clippy::undocumented_unsafe_blocks, reason = "a test: the simulated device checks what it is given")]

use std::sync::Arc;

use ash::vk;
use sublet::sim::{Gpu, profiles};
use vk_mem::{
    Alloc, Allocation, AllocationCreateFlags, AllocationCreateInfo, Allocator, AllocatorCreateFlags,
    AllocatorCreateInfo, AllocatorPoolCreateFlags, MemoryUsage, PoolCreateInfo,
};

fn allocator(gpu: &Gpu) -> Allocator {
    let mut info = AllocatorCreateInfo::new(gpu.instance(), gpu.device(), gpu.physical_device());
    info.vulkan_api_version = gpu.api_version();
    unsafe { Allocator::new(info) }.unwrap()
}

fn lavapipe() -> Gpu {
    Gpu::new(sublet::sim::Profile::by_name("lavapipe").unwrap())
}

/// Requests memory that the program can write.
fn written() -> AllocationCreateInfo {
    AllocationCreateInfo {
        usage: MemoryUsage::Auto,
        flags: AllocationCreateFlags::HOST_ACCESS_SEQUENTIAL_WRITE,
        ..Default::default()
    }
}

/// Same, without a resource that states its usage.
fn host_visible() -> AllocationCreateInfo {
    AllocationCreateInfo { required_flags: vk::MemoryPropertyFlags::HOST_VISIBLE, ..Default::default() }
}

fn buffer_info(size: u64) -> vk::BufferCreateInfo<'static> {
    vk::BufferCreateInfo::default()
        .size(size)
        .usage(vk::BufferUsageFlags::VERTEX_BUFFER | vk::BufferUsageFlags::TRANSFER_SRC)
}

fn image_info() -> vk::ImageCreateInfo<'static> {
    vk::ImageCreateInfo::default()
        .image_type(vk::ImageType::TYPE_2D)
        .format(vk::Format::R8G8B8A8_UNORM)
        .extent(vk::Extent3D { width: 64, height: 64, depth: 1 })
        .mip_levels(1)
        .array_layers(1)
        .samples(vk::SampleCountFlags::TYPE_1)
        .usage(vk::ImageUsageFlags::SAMPLED | vk::ImageUsageFlags::TRANSFER_DST)
}

/// Asserts that nothing leaked and that the driver reported no errors.
fn ended_well(gpu: &Gpu) {
    assert!(gpu.live().is_empty(), "{:?}", gpu.live());
    gpu.assert_silent();
}

#[test]
fn a_buffer_is_created_written_and_destroyed_on_every_gpu() {
    for profile in profiles::ALL {
        let gpu = Gpu::new(profile);
        let allocator = allocator(&gpu);
        let (buffer, mut allocation) =
            unsafe { allocator.create_buffer(&buffer_info(1000), &written()) }.unwrap();
        assert!(allocator.get_allocation_info(&allocation).mapped_data.is_null());
        let pointer = unsafe { allocator.map_memory(&mut allocation) }.unwrap();
        unsafe { pointer.copy_from_nonoverlapping(b"vertices".as_ptr(), 8) };
        let info = allocator.get_allocation_info(&allocation);
        assert_eq!(info.mapped_data.cast(), pointer);
        allocator.flush_allocation(&allocation, 0, vk::WHOLE_SIZE).unwrap();
        unsafe { allocator.unmap_memory(&mut allocation) };
        assert!(allocator.get_allocation_info(&allocation).mapped_data.is_null());
        assert_eq!(unsafe { gpu.read_memory(info.device_memory, info.offset, 8) }.unwrap(), b"vertices");
        assert!(info.size >= 1000);
        unsafe { allocator.destroy_buffer(buffer, &mut allocation) };
        drop(allocator);
        ended_well(&gpu);
    }
}

#[test]
fn an_image_is_created_and_destroyed_on_every_gpu() {
    for profile in profiles::ALL {
        let gpu = Gpu::new(profile);
        let allocator = allocator(&gpu);
        let wanted = AllocationCreateInfo {
            usage: MemoryUsage::AutoPreferDevice,
            flags: AllocationCreateFlags::DEDICATED_MEMORY,
            user_data: 7,
            ..Default::default()
        };
        let (image, mut allocation) = unsafe { allocator.create_image(&image_info(), &wanted) }.unwrap();
        let info = allocator.get_allocation_info2(&allocation);
        assert!(info.dedicated_memory);
        assert_eq!(info.block_size, info.allocation_info.size);
        assert_eq!(info.allocation_info.user_data, 7);
        unsafe { allocator.set_allocation_user_data(&mut allocation, std::ptr::without_provenance_mut(8)) };
        assert_eq!(allocator.get_allocation_info(&allocation).user_data, 8);
        let found =
            unsafe { allocator.find_memory_type_index_for_image_info(image_info(), &wanted) }.unwrap();
        assert_eq!(found, info.allocation_info.memory_type);
        unsafe { allocator.destroy_image(image, &mut allocation) };
        drop(allocator);
        ended_well(&gpu);
    }
}

#[test]
fn what_is_freed_is_empty_and_freed_once() {
    let gpu = lavapipe();
    let allocator = allocator(&gpu);
    let (buffer, mut allocation) = unsafe { allocator.create_buffer(&buffer_info(64), &written()) }.unwrap();
    let mut other = unsafe { allocator.create_buffer(&buffer_info(64), &written()) }.unwrap();
    unsafe {
        allocator.destroy_buffer(buffer, &mut allocation);
        allocator.destroy_buffer(buffer, &mut allocation);
        allocator.free_memory(&mut allocation);
    }
    assert_eq!(allocator.calculate_statistics().unwrap().total.statistics.allocationCount, 1);
    assert!(allocation.as_sublet().is_none());
    assert_eq!(allocator.get_allocation_info(&allocation).device_memory, vk::DeviceMemory::null());
    assert_eq!(allocator.get_allocation_info2(&allocation).block_size, 0);
    let unknown = Err(vk::Result::ERROR_UNKNOWN);
    assert_eq!(unsafe { allocator.map_memory(&mut allocation) }, unknown);
    assert_eq!(allocator.flush_allocation(&allocation, 0, 1), Err(vk::Result::ERROR_UNKNOWN));
    assert_eq!(unsafe { allocator.bind_buffer_memory(&allocation, other.0) }, Err(vk::Result::ERROR_UNKNOWN));
    unsafe { allocator.destroy_buffer(other.0, &mut other.1) };
    drop(allocator);
    ended_well(&gpu);
}

#[test]
fn another_allocators_memory_is_not_freed_and_stays_its_own() {
    let gpu = lavapipe();
    let (allocator, stranger) = (allocator(&gpu), allocator(&gpu));
    let requirements = vk::MemoryRequirements { size: 256, alignment: 16, memory_type_bits: !0 };
    let mut allocation = unsafe { allocator.allocate_memory(&requirements, &host_visible()) }.unwrap();
    let pointer = unsafe { allocator.map_memory(&mut allocation) }.unwrap();
    unsafe { stranger.free_memory(&mut allocation) };
    assert_eq!(allocator.calculate_statistics().unwrap().total.statistics.allocationCount, 1);
    assert_eq!(allocator.get_allocation_info(&allocation).mapped_data.cast(), pointer);
    unsafe { allocator.unmap_memory(&mut allocation) };
    assert!(allocator.get_allocation_info(&allocation).mapped_data.is_null());
    unsafe { allocator.free_memory(&mut allocation) };
    assert_eq!(allocator.calculate_statistics().unwrap().total.statistics.allocationCount, 0);
    drop((allocator, stranger));
    ended_well(&gpu);
}

#[test]
fn mappings_are_counted_and_one_too_many_is_not_taken_back() {
    let gpu = lavapipe();
    let allocator = allocator(&gpu);
    let persistent =
        AllocationCreateInfo { flags: written().flags | AllocationCreateFlags::MAPPED, ..written() };
    let (buffer, mut allocation) = unsafe { allocator.create_buffer(&buffer_info(64), &persistent) }.unwrap();
    let pointer = allocator.get_allocation_info(&allocation).mapped_data;
    assert!(!pointer.is_null());
    assert_eq!(unsafe { allocator.map_memory(&mut allocation) }.unwrap().cast(), pointer);
    unsafe {
        allocator.unmap_memory(&mut allocation);
        allocator.unmap_memory(&mut allocation);
    }
    assert_eq!(allocator.get_allocation_info(&allocation).mapped_data, pointer);
    unsafe { pointer.cast::<u8>().write(1) };
    unsafe { allocator.destroy_buffer(buffer, &mut allocation) };
    // Freed while mapped: the mapping ends, and the block, which the other buffer keeps alive, is unmapped.
    let mut other = unsafe { allocator.create_buffer(&buffer_info(64), &written()) }.unwrap();
    let (buffer, mut allocation) = unsafe { allocator.create_buffer(&buffer_info(64), &written()) }.unwrap();
    unsafe { allocator.map_memory(&mut allocation) }.unwrap();
    unsafe { allocator.destroy_buffer(buffer, &mut allocation) };
    allocator.as_sublet().trim();
    assert_eq!((gpu.live().memories, gpu.live().mapped), (1, 0));
    unsafe { allocator.destroy_buffer(other.0, &mut other.1) };
    let device_only = AllocationCreateInfo { usage: MemoryUsage::Auto, ..Default::default() };
    let (buffer, mut allocation) =
        unsafe { allocator.create_buffer(&buffer_info(64), &device_only) }.unwrap();
    let refused = unsafe { allocator.map_memory(&mut allocation) };
    assert_eq!(refused, Err(vk::Result::ERROR_MEMORY_MAP_FAILED));
    unsafe { allocator.destroy_buffer(buffer, &mut allocation) };
    allocator.as_sublet().validate();
    drop(allocator);
    ended_well(&gpu);
}

#[test]
fn several_are_flushed_whole_or_in_part_where_the_memory_needs_it() {
    let mut flushed = 0;
    for profile in profiles::ALL {
        let gpu = Gpu::new(profile);
        let allocator = allocator(&gpu);
        let cached = AllocationCreateInfo {
            flags: AllocationCreateFlags::HOST_ACCESS_RANDOM | AllocationCreateFlags::MAPPED,
            ..written()
        };
        let mut all: Vec<_> =
            (0..3).map(|_| unsafe { allocator.create_buffer(&buffer_info(300), &cached) }.unwrap()).collect();
        gpu.reset_calls();
        let allocations = || all.iter().map(|(_, allocation)| allocation);
        unsafe { allocator.flush_allocations(allocations(), None, None) }.unwrap();
        unsafe { allocator.invalidate_allocations(allocations(), Some(&[0, 8, 16]), Some(&[8, 8, 8])) }
            .unwrap();
        let too_short = unsafe { allocator.flush_allocations(allocations(), Some(&[0]), None) };
        assert_eq!(too_short, Err(vk::Result::ERROR_UNKNOWN));
        let memory_type = allocator.get_allocation_info(&all[0].1).memory_type;
        let types = unsafe { allocator.get_memory_properties() }.memory_types;
        let coherent = types[usize::try_from(memory_type).unwrap()]
            .property_flags
            .contains(vk::MemoryPropertyFlags::HOST_COHERENT);
        assert_eq!(gpu.calls("vkFlushMappedMemoryRanges"), u64::from(!coherent), "{}", profile.name);
        assert_eq!(gpu.calls("vkInvalidateMappedMemoryRanges"), u64::from(!coherent), "{}", profile.name);
        let outside = allocator.flush_allocation(&all[0].1, 0, 1 << 40);
        assert_eq!(outside, if coherent { Ok(()) } else { Err(vk::Result::ERROR_UNKNOWN) });
        flushed += u32::from(!coherent);
        for (buffer, allocation) in &mut all {
            unsafe { allocator.destroy_buffer(*buffer, allocation) };
        }
        drop(allocator);
        ended_well(&gpu);
    }
    assert_ne!(flushed, 0, "no simulated GPU has memory that needs it");
}

#[test]
fn bytes_are_copied_there_and_back() {
    let gpu = lavapipe();
    let allocator = allocator(&gpu);
    let random = AllocationCreateInfo { flags: AllocationCreateFlags::HOST_ACCESS_RANDOM, ..written() };
    let (buffer, mut allocation) = unsafe { allocator.create_buffer(&buffer_info(64), &random) }.unwrap();
    allocator.copy_memory_to_allocation(b"there", &mut allocation, 10).unwrap();
    let mut back = [0; 5];
    allocator.copy_allocation_to_memory(&allocation, 10, &mut back).unwrap();
    assert_eq!(&back, b"there");
    let outside = allocator.copy_memory_to_allocation(b"there", &mut allocation, 1 << 30);
    assert_eq!(outside, Err(vk::Result::ERROR_UNKNOWN));
    unsafe { allocator.destroy_buffer(buffer, &mut allocation) };
    drop(allocator);
    ended_well(&gpu);
}

#[test]
fn a_pool_has_its_own_blocks_its_name_and_its_limit() {
    let gpu = lavapipe();
    let allocator = Arc::new(allocator(&gpu));
    let memory_type_index =
        unsafe { allocator.find_memory_type_index_for_buffer_info(&buffer_info(64), &written()) }.unwrap();
    let pool = allocator
        .create_pool(&PoolCreateInfo {
            memory_type_index,
            flags: AllocatorPoolCreateFlags::IGNORE_BUFFER_IMAGE_GRANULARITY,
            block_size: 1 << 16,
            min_block_count: 1,
            max_block_count: 1,
            ..Default::default()
        })
        .unwrap();
    pool.set_name(Some(c"particles"));
    assert_eq!(pool.name().as_deref(), Some(c"particles"));
    assert_eq!(pool.get_statistics().unwrap().blockBytes, 1 << 16);
    let (buffer, mut allocation) = unsafe { pool.create_buffer(&buffer_info(1 << 15), &written()) }.unwrap();
    assert_eq!(allocator.get_allocation_info2(&allocation).block_size, 1 << 16);
    let full = unsafe { pool.create_buffer(&buffer_info(1 << 16), &written()) }.unwrap_err();
    assert_eq!(full, vk::Result::ERROR_OUT_OF_DEVICE_MEMORY);
    assert_eq!(pool.calculate_statistics().unwrap().statistics.allocationCount, 1);
    assert_eq!(pool.check_corruption(), Err(vk::Result::ERROR_FEATURE_NOT_PRESENT));
    // Memory outside the pool belongs to the default pool.
    let default = allocator.default_pool();
    let (outside, mut elsewhere) = unsafe { default.create_buffer(&buffer_info(64), &written()) }.unwrap();
    assert_eq!(default.get_statistics().unwrap().allocationCount, 1);
    assert_eq!(pool.get_statistics().unwrap().allocationCount, 1);
    assert_eq!(allocator.calculate_statistics().unwrap().total.statistics.allocationCount, 2);
    assert_eq!(default.calculate_statistics().unwrap().statistics.allocationCount, 1);
    let json = allocator.build_stats_string(true);
    assert!(json.contains("particles"), "{json}");
    unsafe {
        allocator.destroy_buffer(buffer, &mut allocation);
        allocator.destroy_buffer(outside, &mut elsewhere);
    }
    drop((pool, default));
    drop(allocator);
    ended_well(&gpu);
}

#[test]
fn a_structure_that_is_pushed_reaches_the_driver() {
    let gpu = lavapipe();
    let allocator = Arc::new(allocator(&gpu));
    let mut flags =
        vk::MemoryAllocateFlagsInfo::default().flags(vk::MemoryAllocateFlags::DEVICE_MASK).device_mask(1);
    let mut info = PoolCreateInfo { block_size: 1 << 16, min_block_count: 1, ..Default::default() };
    info.push_next(&mut flags);
    assert!(!info.memory_allocate_next.is_null());
    gpu.log_allocations(true);
    let pool = allocator.create_pool(&info).unwrap();
    let log = gpu.take_log();
    assert_eq!(log.len(), 1);
    assert_eq!(log[0].asked.device_mask, 1);
    drop(pool);
    drop(allocator);
    ended_well(&gpu);
}

#[test]
fn properties_budgets_and_statistics_are_the_devices_own() {
    for profile in profiles::ALL {
        let gpu = Gpu::new(profile);
        let allocator = allocator(&gpu);
        let properties = unsafe { allocator.get_physical_device_properties() }.unwrap();
        let expected = unsafe { gpu.instance().get_physical_device_properties(gpu.physical_device()) };
        assert_eq!(properties.device_name_as_c_str(), expected.device_name_as_c_str());
        assert_eq!(properties.limits.buffer_image_granularity, expected.limits.buffer_image_granularity);
        let memory = unsafe { allocator.get_memory_properties() };
        assert_eq!(memory.memory_types_as_slice().len(), profile.types.len());
        let mut made = unsafe { allocator.create_buffer(&buffer_info(4096), &written()) }.unwrap();
        unsafe { allocator.set_current_frame_index(1) };
        let info = allocator.get_allocation_info(&made.1);
        let memory_type = usize::try_from(info.memory_type).unwrap();
        let heap = usize::try_from(memory.memory_types[memory_type].heap_index).unwrap();
        let flags = memory.memory_types[memory_type].property_flags;
        assert_eq!(allocator.get_memory_type_properties(info.memory_type), flags);
        assert_eq!(allocator.get_allocation_memory_properties(&made.1), flags);
        assert!(allocator.get_memory_type_properties(32).is_empty());
        let budgets = allocator.get_heap_budgets().unwrap();
        assert_eq!(budgets.len(), memory.memory_heaps_as_slice().len());
        assert_eq!(budgets[heap].statistics.allocationBytes, info.size);
        assert!(budgets[heap].usage >= info.size && budgets[heap].budget > 0);
        let statistics = allocator.calculate_statistics().unwrap();
        assert_eq!(statistics.memoryType[memory_type].statistics.allocationCount, 1);
        assert_eq!(statistics.memoryHeap[heap].allocationSizeMax, info.size);
        assert_eq!(statistics.memoryType[31].allocationSizeMin, vk::WHOLE_SIZE);
        unsafe { allocator.destroy_buffer(made.0, &mut made.1) };
        drop(allocator);
        ended_well(&gpu);
    }
}

#[test]
fn a_program_that_says_no_version_has_the_drivers_budget_nonetheless() {
    let mut asked = 0;
    for profile in profiles::ALL {
        let gpu = Gpu::new(profile);
        if !gpu.extensions().iter().any(|name| name == "VK_EXT_memory_budget") {
            continue;
        }
        asked += 1;
        let mut info = AllocatorCreateInfo::new(gpu.instance(), gpu.device(), gpu.physical_device());
        info.flags = AllocatorCreateFlags::EXT_MEMORY_BUDGET | AllocatorCreateFlags::EXTERNALLY_SYNCHRONIZED;
        let allocator = unsafe { Allocator::new(info) }.unwrap();
        gpu.faults().set_budget(0, 123 << 20, 45 << 20);
        unsafe { allocator.set_current_frame_index(1) };
        let budgets = allocator.get_heap_budgets().unwrap();
        assert_eq!((budgets[0].budget, budgets[0].usage), (123 << 20, 45 << 20), "{}", profile.name);
        drop(allocator);
        ended_well(&gpu);
    }
    assert_ne!(asked, 0);
}

#[test]
fn names_are_shown_also_those_that_come_as_user_data() {
    let gpu = lavapipe();
    let allocator = allocator(&gpu);
    let named = AllocationCreateInfo {
        flags: written().flags | AllocationCreateFlags::USER_DATA_COPY_STRING,
        user_data: c"shadow map".as_ptr().expose_provenance(),
        ..written()
    };
    let (buffer, mut allocation) = unsafe { allocator.create_buffer(&buffer_info(64), &named) }.unwrap();
    assert_eq!(allocator.get_allocation_name(&allocation).as_deref(), Some("shadow map"));
    assert_eq!(allocator.get_allocation_info(&allocation).user_data, 0);
    assert!(allocator.build_stats_string(true).contains("shadow map"));
    allocator.set_allocation_name(&allocation, Some("light"));
    assert_eq!(allocator.get_allocation_name(&allocation).as_deref(), Some("light"));
    allocator.set_allocation_name(&allocation, None);
    assert_eq!(allocator.get_allocation_name(&allocation), None);
    unsafe { allocator.destroy_buffer(buffer, &mut allocation) };
    drop(allocator);
    ended_well(&gpu);
}

#[test]
fn resources_share_memory_if_it_is_large_enough() {
    let gpu = lavapipe();
    gpu.allow_aliasing(true);
    let allocator = allocator(&gpu);
    let shared = AllocationCreateInfo { flags: AllocationCreateFlags::CAN_ALIAS, ..written() };
    let (buffer, mut allocation) = unsafe { allocator.create_buffer(&buffer_info(4096), &shared) }.unwrap();
    let second = unsafe { allocator.create_aliasing_buffer(&allocation, 0, &buffer_info(1024)) }.unwrap();
    let refused = unsafe { allocator.create_aliasing_buffer(&allocation, 0, &buffer_info(1 << 20)) };
    assert_eq!(refused, Err(vk::Result::ERROR_FEATURE_NOT_PRESENT));
    unsafe {
        gpu.device().destroy_buffer(second, None);
        allocator.destroy_buffer(buffer, &mut allocation);
    }
    drop(allocator);
    ended_well(&gpu);
}

#[test]
fn whatever_call_of_the_driver_fails_the_result_is_the_drivers_and_nothing_is_left() {
    for call in
        ["vkCreateBuffer", "vkAllocateMemory", "vkBindBufferMemory2", "vkBindBufferMemory", "vkMapMemory"]
    {
        let gpu = lavapipe();
        let allocator = allocator(&gpu);
        let mapped =
            AllocationCreateInfo { flags: written().flags | AllocationCreateFlags::MAPPED, ..written() };
        // If the driver's own function is not called, nothing can fail.
        let (buffer, mut allocation) =
            unsafe { allocator.create_buffer(&buffer_info(256), &mapped) }.unwrap();
        let used = gpu.calls(call) != 0;
        unsafe { allocator.destroy_buffer(buffer, &mut allocation) };
        allocator.as_sublet().trim();
        gpu.faults().fail_always(call, vk::Result::ERROR_OUT_OF_HOST_MEMORY);
        let made = unsafe { allocator.create_buffer(&buffer_info(256), &mapped) };
        assert_eq!(made.is_err(), used, "{call}");
        match made {
            Ok((buffer, mut allocation)) => unsafe { allocator.destroy_buffer(buffer, &mut allocation) },
            Err(result) => assert_eq!(result, vk::Result::ERROR_OUT_OF_HOST_MEMORY, "{call}"),
        }
        gpu.faults().clear();
        assert_eq!(allocator.calculate_statistics().unwrap().total.statistics.allocationCount, 0);
        allocator.as_sublet().validate();
        drop(allocator);
        ended_well(&gpu);
    }
}

#[test]
fn requests_that_nothing_fits_are_refused_with_the_results_programs_know() {
    let gpu = lavapipe();
    let allocator = Arc::new(allocator(&gpu));
    let nowhere =
        AllocationCreateInfo { required_flags: vk::MemoryPropertyFlags::PROTECTED, ..Default::default() };
    let found = unsafe { allocator.find_memory_type_index(!0, &nowhere) };
    assert_eq!(found, Err(vk::Result::ERROR_FEATURE_NOT_PRESENT));
    let made = unsafe { allocator.create_buffer(&buffer_info(64), &nowhere) };
    assert_eq!(made.unwrap_err(), vk::Result::ERROR_FEATURE_NOT_PRESENT);
    let only_there =
        AllocationCreateInfo { flags: AllocationCreateFlags::NEVER_ALLOCATE, ..Default::default() };
    let made = unsafe { allocator.create_buffer(&buffer_info(64), &only_there) };
    assert_eq!(made.unwrap_err(), vk::Result::ERROR_OUT_OF_DEVICE_MEMORY);
    let null = unsafe { allocator.allocate_memory_for_buffer(vk::Buffer::null(), &written()) };
    assert_eq!(null.unwrap_err(), vk::Result::ERROR_UNKNOWN);
    let pool = allocator.create_pool(&PoolCreateInfo { memory_type_index: 31, ..Default::default() });
    assert_eq!(pool.err(), Some(vk::Result::ERROR_FEATURE_NOT_PRESENT));
    drop(allocator);
    ended_well(&gpu);
}

#[test]
fn what_a_program_forgets_goes_with_its_pool_or_its_allocator() {
    let gpu = lavapipe();
    let allocator = Arc::new(allocator(&gpu));
    let pool = allocator.create_pool(&PoolCreateInfo { block_size: 1 << 16, ..Default::default() }).unwrap();
    let requirements = vk::MemoryRequirements { size: 256, alignment: 16, memory_type_bits: !0 };
    let mut in_pool = unsafe { pool.allocate_memory(&requirements, &Default::default()) }.unwrap();
    let outside = unsafe { allocator.allocate_memory(&requirements, &host_visible()) }.unwrap();
    drop(pool);
    assert_eq!(allocator.calculate_statistics().unwrap().total.statistics.allocationCount, 1);
    // Freed after its pool: ignored.
    unsafe { allocator.free_memory(&mut in_pool) };
    assert_eq!(allocator.calculate_statistics().unwrap().total.statistics.allocationCount, 1);
    drop(outside);
    drop(allocator);
    ended_well(&gpu);
}

#[test]
fn handles_may_go_from_thread_to_thread() {
    fn check<T: Send + Sync>() {}
    check::<Allocator>();
    check::<Allocation>();
    check::<vk_mem::AllocatorPool>();
    check::<vk_mem::VirtualAllocation>();
}

#[test]
fn flags_mean_here_what_they_mean_there() {
    for (name, flag) in AllocatorCreateFlags::all().iter_names() {
        let same = sublet::AllocatorCreateFlags::from_name(name);
        assert_eq!(same.map(|same| same.bits()), Some(flag.bits()), "{name}");
    }
    for (name, flag) in AllocationCreateFlags::all().iter_names() {
        let same = sublet::AllocationCreateFlags::from_name(name);
        // VMA's value, for which Sublet has no flag.
        let expected = same.map_or(0x20, |same| same.bits());
        assert_eq!(flag.bits(), expected, "{name}");
    }
    assert_eq!(AllocationCreateFlags::STRATEGY_BEST_FIT, AllocationCreateFlags::STRATEGY_MIN_MEMORY);
    assert_eq!(AllocationCreateFlags::STRATEGY_FIRST_FIT, AllocationCreateFlags::STRATEGY_MIN_TIME);
}
