//! Each call and its record.

use ash::vk;
use sublet::sim::Gpu;
use sublet::sim::profiles::ALL;
use sublet::trace::{AllocationNumber, Event, Failure, GrantedMemory, Needs, PoolNumber, ScopeNumber, Trace};
use sublet::{
    AllocationCreateFlags as Flags, AllocationCreateInfo, AllocatorCreateFlags, BlockSizes, GrowthPreset,
    MaintainInfo, MemoryAllocateNext, MemoryUsage, PoolCreateInfo, ResourceKind, ScopeCreateInfo, Tracking,
};

use crate::fixture::*;

const FIRST: AllocationNumber = AllocationNumber(0);
const SECOND: AllocationNumber = AllocationNumber(1);

#[test]
fn the_header_tells_of_device_and_allocator() {
    let gpu = gpu();
    let allocator = allocator_with(&gpu, |info| {
        info.growth = GrowthPreset::MemoryFirst;
        info.preferred_large_heap_block_size = 48 * MIB;
        info.heap_size_limits = &[700 * MIB];
        info.empty_blocks_kept = 3;
        info.tracking = Tracking::CALLER;
        info.debug.min_buffer_image_granularity = 2048;
        info.flags |= AllocatorCreateFlags::KEEP_ONLY_LAST_BLOCK;
        info.block_sizes = &[BlockSizes { first: MIB, largest: 4 * MIB }];
    });
    let header = recorded(&allocator, || {}).header;
    let properties = allocator.physical_device_properties();
    assert_eq!(&*header.device_name, properties.device_name_as_c_str().unwrap().to_str().unwrap());
    assert_eq!((header.vendor_id, header.device_id), (properties.vendor_id, properties.device_id));
    assert_eq!(header.device_type, properties.device_type);
    assert_eq!(header.driver_version, properties.driver_version);
    assert_eq!(header.device_api_version, properties.api_version);
    assert_eq!(header.api_version, gpu.api_version());
    assert_eq!(header.buffer_image_granularity, properties.limits.buffer_image_granularity);
    assert_eq!(header.non_coherent_atom_size, properties.limits.non_coherent_atom_size);
    assert_eq!(header.max_memory_allocation_count, properties.limits.max_memory_allocation_count);
    // SAFETY: the physical device is live.
    let memory = unsafe { gpu.instance().get_physical_device_memory_properties(gpu.physical_device()) };
    for (recorded, heap) in header.heaps.iter().zip(memory.memory_heaps_as_slice()) {
        assert_eq!((recorded.size, recorded.flags), (heap.size, heap.flags));
    }
    for (recorded, of) in header.memory_types.iter().zip(memory.memory_types_as_slice()) {
        assert_eq!((recorded.heap, recorded.flags), (of.heap_index, of.property_flags));
    }
    assert_eq!(header.heaps.len(), memory.memory_heaps_as_slice().len());
    assert_eq!(header.memory_types.len(), memory.memory_types_as_slice().len());
    assert_eq!(header.preferred_large_heap_block_size, 48 * MIB);
    assert_eq!(header.heap_size_limits, [700 * MIB]);
    assert_eq!((header.empty_blocks_kept, header.tracking), (3, Tracking::CALLER.bits()));
    assert_eq!(header.min_buffer_image_granularity, 2048);
    assert!(header.flags.contains(AllocatorCreateFlags::EXT_MEMORY_BUDGET));
    assert_eq!(header.block_sizes, [BlockSizes { first: MIB, largest: 4 * MIB }]);
    let replayed = header.simulated().build();
    let info = header.create_info(&replayed);
    assert!(
        info.flags.contains(AllocatorCreateFlags::KEEP_ONLY_LAST_BLOCK),
        "a rule needs nothing of a device"
    );
    assert_eq!(info.block_sizes, header.block_sizes);
    assert_eq!((header.growth, info.growth), (GrowthPreset::MemoryFirst, GrowthPreset::MemoryFirst));
    assert!(!header.program.is_empty());
    assert_eq!(header.process, std::process::id());
    assert!(header.started > 1_700_000_000);
}

#[test]
fn an_allocation_is_recorded_with_all_that_was_asked_and_its_end() {
    let (gpu, name) = (gpu(), "shadow atlas");
    let allocator = allocator(&gpu);
    let mut memory_type = 0;
    let trace = recorded(&allocator, || {
        let info = AllocationCreateInfo {
            flags: Flags::MAPPED | Flags::HOST_ACCESS_RANDOM,
            usage: MemoryUsage::CpuToGpu,
            required_flags: vk::MemoryPropertyFlags::HOST_VISIBLE,
            preferred_flags: vk::MemoryPropertyFlags::HOST_CACHED,
            memory_type_bits: 0xFFFF,
            user_data: 0xDEAD_BEEF,
            priority: 0.75,
            min_alignment: 1024,
            name: Some(name),
            ..Default::default()
        };
        let requirements = vk::MemoryRequirements { size: 5000, alignment: 64, memory_type_bits: !0 };
        let allocation = allocator.allocate_memory(&requirements, &info).unwrap();
        memory_type = allocation.memory_type_index();
        free(&allocator, allocation);
    });
    let [made, Event::Free { allocation: FIRST }] = &events(&trace)[..] else { panic!("{trace:?}") };
    let Event::Allocate(made) = made else { panic!("{made:?}") };
    assert_eq!(made.allocation, FIRST);
    let needs = Needs { size: 5000, alignment: 64, device_address: true, ..Needs::default() };
    assert_eq!(made.resource, needs);
    let wanted = &made.wanted;
    assert_eq!(wanted.flags, Flags::MAPPED | Flags::HOST_ACCESS_RANDOM);
    assert_eq!(wanted.usage, MemoryUsage::CpuToGpu);
    assert_eq!(wanted.required_flags, vk::MemoryPropertyFlags::HOST_VISIBLE);
    assert_eq!(wanted.preferred_flags, vk::MemoryPropertyFlags::HOST_CACHED);
    assert_eq!((wanted.memory_type_bits, wanted.user_data), (0xFFFF, 0xDEAD_BEEF));
    assert_eq!((wanted.priority, wanted.min_alignment), (0.75, 1024));
    assert_eq!(wanted.name.as_deref(), Some(name));
    assert_eq!((wanted.pool, wanted.scope, wanted.has_chain), (None, None, false));
    assert_eq!(made.granted, GrantedMemory { memory_type, dedicated: false });
}

#[test]
fn a_resource_is_recorded_with_its_kind_its_usage_and_what_its_driver_said() {
    let gpu = gpu();
    let allocator = allocator(&gpu);
    let usage = vk::BufferUsageFlags::VERTEX_BUFFER | vk::BufferUsageFlags::TRANSFER_DST;
    let buffer_info = vk::BufferCreateInfo::default().size(65_536).usage(usage);
    let image_usage = vk::ImageUsageFlags::SAMPLED | vk::ImageUsageFlags::TRANSFER_DST;
    let image_info = vk::ImageCreateInfo::default()
        .image_type(vk::ImageType::TYPE_2D)
        .format(vk::Format::R8G8B8A8_UNORM)
        .extent(vk::Extent3D { width: 64, height: 64, depth: 1 })
        .mip_levels(1)
        .array_layers(1)
        .samples(vk::SampleCountFlags::TYPE_1)
        .usage(image_usage);
    let staging = vk::BufferCreateInfo::default().size(1024).usage(vk::BufferUsageFlags::TRANSFER_SRC);
    let auto = AllocationCreateInfo::new(MemoryUsage::Auto);
    let trace = recorded(&allocator, || {
        // SAFETY: the create-infos are valid.
        let (buffer, of_buffer) = unsafe { allocator.create_buffer(&buffer_info, &auto) }.unwrap();
        // SAFETY: as above.
        let (image, of_image) = unsafe { allocator.create_image(&image_info, &auto) }.unwrap();
        let next = MemoryAllocateNext::default();
        // SAFETY: as above.
        let (copy, of_copy) = unsafe { allocator.create_dedicated_buffer(&staging, &auto, next) }.unwrap();
        // SAFETY: the device never used the resources.
        unsafe { allocator.destroy_buffer(buffer, of_buffer) }.unwrap();
        // SAFETY: as above.
        unsafe { allocator.destroy_image(image, of_image) }.unwrap();
        // SAFETY: as above.
        unsafe { allocator.destroy_buffer(copy, of_copy) }.unwrap();
    });
    let made = allocations(&trace);
    assert_eq!(made[0].resource.kind, ResourceKind::Buffer);
    assert_eq!(made[0].resource.usage, usage.as_raw());
    assert_eq!(made[0].resource.device_access, Some(true));
    assert_eq!(made[0].resource.size, 65_536);
    assert_eq!(made[1].resource.kind, ResourceKind::ImageOptimal);
    assert_eq!(made[1].resource.usage, image_usage.as_raw());
    assert_eq!(made[1].resource.device_access, Some(true));
    assert_eq!(made[2].resource.device_access, Some(false));
    assert!(made[2].granted.dedicated && made[2].wanted.flags.contains(Flags::DEDICATED_MEMORY));
    assert_eq!(trace.records.len(), 6);
}

fn allocations(trace: &Trace) -> Vec<sublet::trace::Allocate> {
    let made = trace.records.iter().filter_map(|record| match &record.event {
        Event::Allocate(made) => Some((**made).clone()),
        _ => None,
    });
    made.collect()
}

#[test]
fn a_failed_allocation_is_recorded_with_its_reason() {
    let gpu = gpu();
    let allocator = allocator(&gpu);
    let foreign_allocator = crate::fixture::allocator(&gpu);
    let foreign = foreign_allocator.create_pool(&PoolCreateInfo::new(0)).unwrap();
    let trace = recorded(&allocator, || {
        let ask = |size, alignment, info: &AllocationCreateInfo<'_>| {
            let requirements = vk::MemoryRequirements { size, alignment, memory_type_bits: !0 };
            assert!(allocator.allocate_memory(&requirements, info).is_err());
        };
        let usual = AllocationCreateInfo::new(MemoryUsage::GpuOnly);
        ask(0, 16, &usual);
        ask(64, 48, &usual);
        ask(64, 16, &AllocationCreateInfo { priority: f32::NAN, name: Some("odd"), ..usual });
        ask(64, 16, &AllocationCreateInfo::new(MemoryUsage::Auto));
        ask(64, 16, &AllocationCreateInfo::in_pool(&foreign));
        ask(1 << 50, 16, &usual);
        ask(64, 16, &AllocationCreateInfo { flags: Flags::HOST_ACCESS_MASK, ..usual });
        gpu.faults().fail_always("vkAllocateMemory", vk::Result::ERROR_OUT_OF_DEVICE_MEMORY);
        ask(64, 16, &usual);
    });
    let failures: Vec<_> = trace
        .records
        .iter()
        .map(|record| match &record.event {
            Event::AllocateFailed(failed) => {
                (failed.failure, failed.resource.size, failed.resource.alignment)
            }
            event => panic!("{event:?}"),
        })
        .collect();
    use Failure::*;
    let reasons: Vec<_> = failures.iter().map(|&(failure, ..)| failure).collect();
    assert_eq!(reasons[..5], [ZeroSize, Alignment, Priority, NoMemoryType, ForeignPool]);
    assert_eq!(reasons[5..], [HeapTooSmall, Contradiction, Driver]);
    assert_eq!(failures[1], (Alignment, 64, 48));
    let Event::AllocateFailed(odd) = &trace.records[2].event else { panic!() };
    assert!(odd.wanted.priority.is_nan() && odd.wanted.name.as_deref() == Some("odd"));
}

#[test]
fn mapping_flushing_and_copying_are_recorded_once_each() {
    let gpu = gpu();
    let allocator = allocator(&gpu);
    let trace = recorded(&allocator, || {
        let mut allocation = host(&allocator, 4096);
        let mapping = allocator.map(&mut allocation).unwrap();
        mapping.flush(256, vk::WHOLE_SIZE).unwrap();
        drop(mapping);
        let _pointer = allocator.map(&mut allocation).unwrap().into_raw();
        // SAFETY: it pairs with `into_raw`, whose pointer is not used.
        unsafe { allocator.unmap_memory(&allocation) }.unwrap();
        allocator.copy_to_allocation(&[1; 64], &mut allocation, 32).unwrap();
        allocator.copy_from_allocation(&allocation, 16, &mut [0; 48]).unwrap();
        allocator.flush_many(&[(&allocation, 0, 64), (&allocation, 64, 64)]).unwrap();
        allocator.invalidate(&allocation, 0, 0).unwrap();
        allocator.flush(&allocation, 5000, 1).unwrap_err();
        allocator.set_allocation_name(&allocation, Some("staging")).unwrap();
        allocator.set_allocation_user_data(&mut allocation, 99).unwrap();
        free(&allocator, allocation);
    });
    let allocation = FIRST;
    assert_eq!(
        events(&trace)[1..],
        [
            Event::Map { allocation },
            Event::Flush { allocation, offset: 256, size: vk::WHOLE_SIZE },
            Event::Unmap { allocation },
            Event::Map { allocation },
            Event::Unmap { allocation },
            Event::CopyTo { allocation, offset: 32, size: 64 },
            Event::CopyFrom { allocation, offset: 16, size: 48 },
            Event::Flush { allocation, offset: 0, size: 64 },
            Event::Flush { allocation, offset: 64, size: 64 },
            Event::Invalidate { allocation, offset: 0, size: 0 },
            Event::SetName { allocation, name: Some("staging".into()) },
            Event::SetUserData { allocation, user_data: 99 },
            Event::Free { allocation },
        ]
    );
}

#[test]
fn priorities_are_recorded_where_they_can_change() {
    let pageable = ALL.iter().find(|profile| profile.features.pageable_device_local_memory).unwrap();
    let gpu = Gpu::new(pageable);
    let allocator = allocator_with(&gpu, |info| {
        info.flags |= AllocatorCreateFlags::EXT_PAGEABLE_DEVICE_LOCAL_MEMORY;
    });
    let trace = recorded(&allocator, || {
        let info = AllocationCreateInfo {
            flags: Flags::DEDICATED_MEMORY,
            ..AllocationCreateInfo::new(MemoryUsage::GpuOnly)
        };
        let allocation = allocator.allocate_memory(&requirements(64), &info).unwrap();
        allocator.set_allocation_priority(&allocation, 0.125).unwrap();
        let pool = allocator.create_pool(&PoolCreateInfo::new(0)).unwrap();
        allocator.set_pool_priority(&pool, 1.0).unwrap();
        free(&allocator, allocation);
        // SAFETY: the pool is empty.
        unsafe { allocator.destroy_pool(pool) }.unwrap();
    });
    let events = events(&trace);
    assert_eq!(events[1], Event::SetPriority { allocation: FIRST, priority: 0.125 });
    assert_eq!(events[3], Event::SetPoolPriority { pool: PoolNumber(0), priority: 1.0 });
}

#[test]
fn pools_are_recorded_from_beginning_to_end() {
    let gpu = gpu();
    let allocator = allocator(&gpu);
    let memory_type = 0;
    let trace = recorded(&allocator, || {
        let info = PoolCreateInfo {
            block_size: MIB,
            max_block_count: 4,
            priority: 0.25,
            min_allocation_alignment: 512,
            name: Some("ring"),
            ..PoolCreateInfo::new(memory_type)
        };
        allocator.create_pool(&PoolCreateInfo::new(77)).unwrap_err();
        let pool = allocator.create_pool(&info).unwrap();
        allocator.set_pool_name(&pool, None).unwrap();
        allocator.set_pool_empty_blocks_kept(&pool, 2).unwrap();
        let in_pool = AllocationCreateInfo::in_pool(&pool);
        let _ends_with_its_pool = allocator.allocate_memory(&requirements(64), &in_pool).unwrap();
        // SAFETY: nothing was bound to its allocations.
        let leaks = unsafe { allocator.destroy_pool(pool) }.unwrap();
        assert_eq!(leaks.len(), 1);
        // Reuses the same vector.
        let pool = allocator.create_pool(&PoolCreateInfo::new(memory_type)).unwrap();
        // SAFETY: the pool is empty.
        unsafe { allocator.destroy_pool(pool) }.unwrap();
    });
    let events = events(&trace);
    let (first, second) = (PoolNumber(0), PoolNumber(1));
    let Event::CreatePool { pool, settings } = &events[0] else { panic!("{events:?}") };
    assert_eq!((*pool, settings.memory_type_index, settings.block_size), (first, memory_type, MIB));
    assert_eq!((settings.max_block_count, settings.priority), (4, 0.25));
    assert_eq!((settings.min_allocation_alignment, settings.name.as_deref()), (512, Some("ring")));
    assert_eq!(events[1], Event::SetPoolName { pool: first, name: None });
    assert_eq!(events[2], Event::SetPoolEmptyBlocksKept { pool: first, empty_blocks_kept: 2 });
    assert_eq!(allocations(&trace)[0].wanted.pool, Some(first));
    assert_eq!(events[4], Event::DestroyPool { pool: first });
    assert!(matches!(events[5], Event::CreatePool { pool, .. } if pool == second));
    assert_eq!(events[6..], [Event::DestroyPool { pool: second }]);
    assert_eq!(trace.unknown_events, 0);
}

#[test]
fn scopes_are_recorded_and_their_pools_are_not() {
    let gpu = gpu();
    let allocator = allocator(&gpu);
    let trace = recorded(&allocator, || {
        let info = ScopeCreateInfo { name: Some("level"), block_size: MIB, priority: 0.75 };
        let scope = allocator.create_scope(&info).unwrap();
        let in_scope =
            AllocationCreateInfo { usage: MemoryUsage::GpuOnly, ..AllocationCreateInfo::in_scope(&scope) };
        for size in [64, 128] {
            let _ends_with_its_scope = allocator.allocate_memory(&requirements(size), &in_scope).unwrap();
        }
        // SAFETY: nothing was bound to its allocations.
        unsafe { allocator.free_scope(scope) }.unwrap();
    });
    let events = events(&trace);
    let scope = ScopeNumber(0);
    let Event::CreateScope { scope: made, settings } = &events[0] else { panic!("{events:?}") };
    assert_eq!((*made, settings.block_size, settings.priority), (scope, MIB, 0.75));
    assert_eq!(settings.name.as_deref(), Some("level"));
    assert!(allocations(&trace).iter().all(|made| made.wanted.scope == Some(scope)));
    assert_eq!((events.len(), &events[3]), (4, &Event::FreeScope { scope }));
}

#[test]
fn frames_and_policies_are_recorded() {
    let gpu = gpu();
    let allocator = allocator(&gpu);
    let pool =
        allocator.create_pool(&PoolCreateInfo { block_size: 32 * MIB, ..PoolCreateInfo::new(0) }).unwrap();
    let mut has_attached = false;
    let trace = recorded(&allocator, || {
        allocator.set_current_frame_index(u32::MAX);
        allocator.trim();
        allocator.set_empty_blocks_kept(0);
        allocator.reserve(0, MIB).unwrap();
        allocator.reserve(31, MIB).unwrap_err();
        allocator.reserve_in_pool(&pool, 1).unwrap();
        allocator.maintain(&MaintainInfo::default());
        has_attached = allocator.attach_to_memory_type(0) && allocator.attach_to_pool(&pool).unwrap();
        assert!(!allocator.attach_to_memory_type(31));
    });
    assert!(has_attached);
    assert_eq!(
        events(&trace)[1..],
        [
            Event::Frame { index: u32::MAX },
            Event::Trim,
            Event::SetEmptyBlocksKept { empty_blocks_kept: 0 },
            Event::Reserve { memory_type: 0, bytes: MIB },
            Event::ReserveInPool { pool: PoolNumber(0), bytes: 1 },
            Event::Maintain { max_allocations: 1, max_frees: 1, max_microseconds: 1500 },
            Event::SettleInMemoryType { memory_type: 0 },
            Event::SettleInPool { pool: PoolNumber(0) },
        ]
    );
}

#[test]
fn several_pieces_that_fail_together_are_recorded_one_by_one() {
    let gpu = gpu();
    let allocator = allocator(&gpu);
    let trace = recorded(&allocator, || {
        let asked = [requirements(64), requirements(0)];
        allocator.allocate_memory_pages(&asked, &[AllocationCreateInfo::default()]).unwrap_err();
    });
    let events = events(&trace);
    assert!(matches!(events[0], Event::Allocate(_)));
    assert!(matches!(&events[1], Event::AllocateFailed(failed) if failed.failure == Failure::ZeroSize));
    assert_eq!(events[2..], [Event::Free { allocation: FIRST }]);
}

#[test]
fn what_another_allocator_made_is_not_recorded() {
    let gpu = gpu();
    let (allocator, another) = (allocator(&gpu), allocator(&gpu));
    let trace = recorded(&allocator, || {
        let foreign = allocate(&another, 64);
        // SAFETY: nothing was bound to it.
        let error = unsafe { allocator.free_memory(foreign) }.unwrap_err();
        allocator.set_allocation_name(&error.allocation, Some("mine")).unwrap_err();
        free(&another, error.allocation);
    });
    assert_eq!(trace.records, []);
    assert_eq!(trace.unknown_events, 0);
}

#[test]
fn a_long_name_is_cut_at_a_character() {
    let gpu = gpu();
    let allocator = allocator(&gpu);
    let name = "é".repeat(100_000);
    let trace = recorded(&allocator, || {
        let info = AllocationCreateInfo { name: Some(&name), ..Default::default() };
        let allocation = allocator.allocate_memory(&requirements(64), &info).unwrap();
        allocator.set_allocation_name(&allocation, Some(&name)).unwrap();
        free(&allocator, allocation);
    });
    let recorded = allocations(&trace)[0].wanted.name.clone().unwrap();
    assert!(name.starts_with(&*recorded) && recorded.len() > 32_000, "{}", recorded.len());
    assert_eq!(events(&trace)[1], Event::SetName { allocation: FIRST, name: Some(recorded) });
}

#[test]
fn numbers_are_given_in_order_of_appearance() {
    let gpu = gpu();
    let allocator = allocator(&gpu);
    let trace = recorded(&allocator, || {
        let first = allocate(&allocator, 64);
        free(&allocator, first);
        // Probably at the place of the first, but with another number.
        let second = allocate(&allocator, 64);
        free(&allocator, second);
    });
    let numbers: Vec<_> = events(&trace).iter().map(|event| event.allocation().unwrap()).collect();
    assert_eq!(numbers, [FIRST, FIRST, SECOND, SECOND]);
}
