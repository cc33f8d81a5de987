//! The `pNext` chain of `VkMemoryAllocateInfo`, and memory shared with other processes.

use ash::vk;
use sublet::sim::{AllocateCall, Gpu};
use sublet::{
    AllocationCreateFlags as Flags, AllocationCreateInfo, AllocationError, AllocatorCreateInfo,
    Contradiction, CreateAllocatorError, CreateError, MemoryAllocateNext, MemoryUsage, PoolCreateInfo,
};

use crate::common::*;

const OPAQUE: vk::ExternalMemoryHandleTypeFlags = vk::ExternalMemoryHandleTypeFlags::OPAQUE_FD;
const EXPORT: vk::StructureType = vk::StructureType::EXPORT_MEMORY_ALLOCATE_INFO;
const PRIORITY: vk::StructureType = vk::StructureType::MEMORY_PRIORITY_ALLOCATE_INFO_EXT;
const FLAGS: vk::StructureType = vk::StructureType::MEMORY_ALLOCATE_FLAGS_INFO;
const DEDICATED: vk::StructureType = vk::StructureType::MEMORY_DEDICATED_ALLOCATE_INFO;
/// A structure type that the allocator never adds.
const OPAQUE_ADDRESS: vk::StructureType = vk::StructureType::MEMORY_OPAQUE_CAPTURE_ADDRESS_ALLOCATE_INFO;

fn chain_of(structure: &impl Sized) -> MemoryAllocateNext {
    // SAFETY: the tests keep the structure alive for the call or the pool.
    unsafe { MemoryAllocateNext::new(std::ptr::from_ref(structure).cast()) }
}

/// Creates an allocator that exports all its memory.
fn exporting(gpu: Gpu, types: &[vk::ExternalMemoryHandleTypeFlags]) -> Held<Fixture> {
    let info = AllocatorCreateInfo {
        flags: enabled(&gpu),
        external_memory_handle_types: types,
        ..create_info(&gpu)
    };
    let allocator = new_allocator(&info).unwrap();
    gpu.log_allocations(true);
    hold(Fixture { allocator, gpu })
}

fn only_call(gpu: &Gpu) -> AllocateCall {
    let calls = gpu.take_log();
    assert_eq!(calls.len(), 1, "{calls:?}");
    calls.into_iter().next().unwrap()
}

/// The order of the chain: export, priority, flags, dedicated, then the caller's own.
#[test]
fn the_order_of_a_chain() {
    on_profiles(
        having(|profile| {
            let features = profile.features;
            features.external_memory && features.memory_priority && features.buffer_device_address
        }),
        |profile| {
            let fixture = exporting(Gpu::new(profile), &[OPAQUE; 32][..profile.types.len()]);
            let own = vk::MemoryOpaqueCaptureAddressAllocateInfo::default();
            let mut shared = vk::ExternalMemoryBufferCreateInfo::default().handle_types(OPAQUE);
            let usage = vk::BufferUsageFlags::STORAGE_BUFFER | vk::BufferUsageFlags::SHADER_DEVICE_ADDRESS;
            let buffer_info =
                vk::BufferCreateInfo::default().size(64 * KIB).usage(usage).push_next(&mut shared);
            let info =
                AllocationCreateInfo { priority: 0.75, ..AllocationCreateInfo::new(MemoryUsage::Auto) };
            // SAFETY: the create-info is valid, and names the handle types of the shared memory.
            let made =
                unsafe { fixture.allocator.create_dedicated_buffer(&buffer_info, &info, chain_of(&own)) };
            let made = made.unwrap();
            let AllocateCall { asked, result, .. } = only_call(&fixture.gpu);
            assert_eq!(result, vk::Result::SUCCESS);
            assert_eq!(asked.chain, [EXPORT, PRIORITY, FLAGS, DEDICATED, OPAQUE_ADDRESS]);
            assert_eq!(asked.export_handle_types, OPAQUE.as_raw());
            assert_eq!((asked.priority, asked.dedicated_buffer), (Some(0.75), made.0));
            assert_eq!(asked.flags, vk::MemoryAllocateFlags::DEVICE_ADDRESS.as_raw());
            fixture.destroy_buffer(made);

            // A block has the same chain without the dedicated structure.
            let memory = fixture.memory(KIB, 1, &AllocationCreateInfo::default()).unwrap();
            let block = only_call(&fixture.gpu).asked;
            assert_eq!(block.chain, [EXPORT, PRIORITY, FLAGS]);
            assert_eq!((block.priority, block.export_handle_types), (Some(0.5), OPAQUE.as_raw()));
            fixture.free(memory);

            // An image has no device address, and memory that can alias is not dedicated.
            let mut shared = vk::ExternalMemoryImageCreateInfo::default().handle_types(OPAQUE);
            let image_info = square(256, vk::ImageUsageFlags::SAMPLED).push_next(&mut shared);
            let info = with_flags(MemoryUsage::Auto, Flags::CAN_ALIAS);
            // SAFETY: the create-info is valid, and names the handle types of the shared memory.
            let made =
                unsafe { fixture.allocator.create_dedicated_image(&image_info, &info, chain_of(&own)) };
            match made {
                Ok(made) => {
                    let asked = only_call(&fixture.gpu).asked;
                    let dedicated = asked.chain.contains(&DEDICATED);
                    let others: Vec<_> = asked.chain.into_iter().filter(|&kind| kind != DEDICATED).collect();
                    assert_eq!(others, [EXPORT, PRIORITY, OPAQUE_ADDRESS]);
                    assert!(!dedicated || profile.images.external_requires_dedicated);
                    fixture.destroy_image(made);
                }
                Err(error) => panic!("{error:?}"),
            }
        },
    );
}

#[test]
fn a_type_without_handle_types_exports_nothing() {
    on_profiles(having(|profile| profile.features.external_memory && profile.types.len() > 1), |profile| {
        // Only the first memory type is exported.
        let fixture = exporting(Gpu::new(profile), &[OPAQUE]);
        for memory_type in fixture.types() {
            let memory = fixture.memory(KIB, 1, &in_type(memory_type)).unwrap();
            assert_eq!(only_call(&fixture.gpu).asked.chain.contains(&EXPORT), memory_type == 0);
            fixture.free(memory);
        }
    });
}

#[test]
fn too_many_handle_types() {
    let gpu = Gpu::new(sublet::sim::Profile::by_name("lavapipe").unwrap());
    let info = AllocatorCreateInfo { external_memory_handle_types: &[OPAQUE; 2], ..create_info(&gpu) };
    let error = new_allocator(&info).unwrap_err();
    assert_eq!(error, CreateAllocatorError::ExternalMemoryHandleTypes { handle_types: 2, types: 1 });
}

/// A chain must not contain a structure twice, so the pool's own export structure replaces the allocator's.
#[test]
fn a_chain_that_exports_itself() {
    on_profiles(having(|profile| profile.features.external_memory), |profile| {
        let fixture = exporting(Gpu::new(profile), &[OPAQUE]);
        let export = vk::ExportMemoryAllocateInfo::default()
            .handle_types(OPAQUE | vk::ExternalMemoryHandleTypeFlags::DMA_BUF_EXT);
        let pool_info = PoolCreateInfo { memory_allocate_next: chain_of(&export), ..PoolCreateInfo::new(0) };
        let pool = fixture.pool(&pool_info).unwrap();
        let memory = fixture.memory(KIB, 1, &AllocationCreateInfo::in_pool(&pool)).unwrap();
        let asked = only_call(&fixture.gpu).asked;
        assert_eq!(asked.chain.iter().filter(|&&kind| kind == EXPORT).count(), 1);
        assert_eq!(asked.export_handle_types, export.handle_types.as_raw());
        fixture.free(memory);
        fixture.destroy_pool(pool);
    });
}

#[test]
fn two_chains_are_one_too_many() {
    on_every_gpu(|fixture| {
        let own = vk::MemoryOpaqueCaptureAddressAllocateInfo::default();
        let pool_info = PoolCreateInfo { memory_allocate_next: chain_of(&own), ..PoolCreateInfo::new(0) };
        let pool = fixture.pool(&pool_info).unwrap();
        let requirements = vk::MemoryRequirements { size: KIB, alignment: 1, memory_type_bits: !0 };
        let in_pool = AllocationCreateInfo::in_pool(&pool);
        let before = fixture.snapshot();
        let both = fixture.allocator.allocate_dedicated_memory(&requirements, &in_pool, chain_of(&own));
        assert_eq!(both.unwrap_err(), AllocationError::Contradiction(Contradiction::TwoMemoryAllocateChains));
        assert_eq!(fixture.snapshot(), before);
        // One chain is allowed: here only the pool has one.
        fixture.gpu.log_allocations(true);
        let none = MemoryAllocateNext::default();
        let memory = fixture.allocator.allocate_dedicated_memory(&requirements, &in_pool, none).unwrap();
        assert!(memory.is_dedicated());
        assert_eq!(only_call(&fixture.gpu).asked.chain.last(), Some(&OPAQUE_ADDRESS));
        fixture.free(memory);
        fixture.destroy_pool(pool);
    });
}

/// The dedicated functions always allocate dedicated memory, and return an error for anything that prevents it.
#[test]
fn dedicated_entry_points_are_dedicated() {
    on_every_gpu(|fixture| {
        let requirements = vk::MemoryRequirements { size: 100, alignment: 4, memory_type_bits: !0 };
        let none = MemoryAllocateNext::default();
        let allocate = |info: &AllocationCreateInfo<'_>| {
            fixture.allocator.allocate_dedicated_memory(&requirements, info, none)
        };
        let memory = allocate(&AllocationCreateInfo::default()).unwrap();
        assert!(memory.is_dedicated());
        assert_eq!(fixture.memory_size(&memory), 100);
        fixture.free(memory);
        let never = AllocationCreateInfo { flags: Flags::NEVER_ALLOCATE, ..Default::default() };
        let error = allocate(&never).unwrap_err();
        assert_eq!(error, AllocationError::Contradiction(Contradiction::DedicatedNeverAllocate));
        let pool = fixture.pool(&PoolCreateInfo { block_size: MIB, ..PoolCreateInfo::new(0) }).unwrap();
        let error = allocate(&AllocationCreateInfo::in_pool(&pool)).unwrap_err();
        assert_eq!(error, AllocationError::Contradiction(Contradiction::DedicatedInFixedPool));
        fixture.destroy_pool(pool);
        let buffer_info =
            vk::BufferCreateInfo::default().size(64).usage(vk::BufferUsageFlags::UNIFORM_BUFFER);
        // SAFETY: the create-info is valid.
        let made = unsafe {
            fixture.allocator.create_dedicated_buffer(
                &buffer_info,
                &with_flags(MemoryUsage::Auto, Flags::empty()),
                none,
            )
        };
        let made = made.unwrap();
        assert!(made.1.is_dedicated());
        fixture.destroy_buffer(made);
        // SAFETY: the allocator rejects the zero size before it calls the driver.
        let empty = unsafe { fixture.allocator.create_dedicated_buffer(&buffer_info.size(0), &never, none) };
        assert_eq!(empty.unwrap_err(), CreateError::ZeroExtent);
        // SAFETY: the create-info is valid.
        let refused = unsafe {
            fixture.allocator.create_dedicated_image(&square(16, vk::ImageUsageFlags::SAMPLED), &never, none)
        };
        assert!(matches!(refused, Err(CreateError::Allocation(AllocationError::Contradiction(_)))));
    });
}

#[cfg(unix)]
#[test]
fn memory_goes_from_one_device_to_another() {
    use std::os::fd::IntoRawFd as _;
    on_profiles(having(|profile| profile.features.external_memory), |profile| {
        let from = exporting(Gpu::new(profile), &[OPAQUE; 32][..profile.types.len()]);
        let to = Fixture::new(profile);
        let visible = from.types_with(HOST_VISIBLE, PROTECTED);
        for &memory_type in visible.iter().take(2) {
            let requirements =
                vk::MemoryRequirements { size: 64 * KIB, alignment: 1, memory_type_bits: 1 << memory_type };
            let info = AllocationCreateInfo { flags: Flags::DEDICATED_MEMORY, ..Default::default() };
            let mut exported = from.allocator.allocate_memory(&requirements, &info).unwrap();
            // SAFETY: the allocator exports all its memory with this handle type.
            let fd = unsafe { from.allocator.memory_fd(&exported, OPAQUE) }.unwrap();
            // SAFETY: as above.
            let another = unsafe { from.allocator.memory_fd(&exported, OPAQUE) }.unwrap();
            drop(another);
            let import = vk::ImportMemoryFdInfoKHR::default().handle_type(OPAQUE).fd(fd.into_raw_fd());
            let info = AllocationCreateInfo::default();
            let imported =
                to.allocator.allocate_dedicated_memory(&requirements, &info, chain_of(&import)).unwrap();
            from.allocator.copy_to_allocation(b"sublet", &mut exported, 1000).unwrap();
            assert_eq!(to.read_memory(imported.memory(), 1000, 6).unwrap(), b"sublet");
            to.free(imported);
            from.free(exported);
        }
    });
}

#[cfg(unix)]
#[test]
fn descriptors_that_are_not_to_be_had() {
    let profile = sublet::sim::Profile::by_name("lavapipe").unwrap();
    let fixture = exporting(Gpu::new(profile), &[OPAQUE]);
    let other = Fixture::new(profile);
    let memory = fixture.memory(KIB, 1, &AllocationCreateInfo::default()).unwrap();
    // SAFETY: the memory is exported with this handle type, and the other allocator rejects it.
    let error = unsafe { other.allocator.memory_fd(&memory, OPAQUE) }.unwrap_err();
    assert_eq!(error, sublet::ExportError::Foreign(sublet::ForeignHandle::Allocation));
    fixture.gpu.faults().fail_nth("vkGetMemoryFdKHR", 0, vk::Result::ERROR_TOO_MANY_OBJECTS);
    // SAFETY: the memory is exported with this handle type.
    let error = unsafe { fixture.allocator.memory_fd(&memory, OPAQUE) }.unwrap_err();
    assert_eq!(driver_result(&error), Some(vk::Result::ERROR_TOO_MANY_OBJECTS));
    fixture.free(memory);
    drop(fixture);
    drop(other);
    let without = Fixture::with(
        Gpu::builder(profile).without_extension("VK_KHR_external_memory_fd").build(),
        &Options::default(),
    );
    let memory = without.memory(KIB, 1, &AllocationCreateInfo::default()).unwrap();
    // SAFETY: without the extension, no driver call is made.
    let error = unsafe { without.allocator.memory_fd(&memory, OPAQUE) }.unwrap_err();
    assert_eq!(error, sublet::ExportError::NotEnabled);
    without.free(memory);
}
