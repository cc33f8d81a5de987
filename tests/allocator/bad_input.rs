//! Invalid input returns a typed error, changes no state and calls no driver function.

use ash::vk;
use sublet::device::VulkanFunctions;
use sublet::sim::Gpu;
use sublet::sim::profiles::Profile;
use sublet::{
    Algorithm, AllocatePagesError, AllocationCreateFlags as Flags, AllocationCreateInfo, AllocationError,
    Allocator, AllocatorCreateFlags, AllocatorCreateInfo, BindError, Contradiction, CreateAllocatorError,
    CreateError, CreatePoolError, FindMemoryTypeError, ForeignHandle, MapError, MemoryUsage, NoMemoryType,
    PoolCreateInfo,
};

use crate::common::*;

/// Runs a test that must neither change state nor call the driver.
fn unchanged(profile: &'static Profile, test: impl Fn(&Fixture)) {
    let fixture = Fixture::new(profile);
    let before = fixture.snapshot();
    test(&fixture);
    assert_eq!(fixture.gpu.call_counts(), [], "nothing of this is the driver's business");
    assert_eq!(fixture.snapshot(), before);
}

#[test]
fn sizes_and_alignments() {
    on_every_profile(|profile| {
        unchanged(profile, |fixture| {
            let memory = |size, alignment, info: &_| fixture.memory(size, alignment, info).unwrap_err();
            assert_eq!(memory(0, 1, &in_type(0)), AllocationError::ZeroSize);
            for alignment in [3, 6, 1000, u64::MAX] {
                let error = AllocationError::Alignment { alignment };
                assert_eq!(memory(64, alignment, &in_type(0)), error);
                let least = AllocationCreateInfo { min_alignment: alignment, ..in_type(0) };
                assert_eq!(memory(64, 1, &least), error);
                assert_eq!(memory(64, 1 << 63, &least), error, "the smaller one is looked at too");
                assert_eq!(error.vk_result(), vk::Result::ERROR_INITIALIZATION_FAILED);
            }
            let buffer = fixture.buffer(0, vk::BufferUsageFlags::UNIFORM_BUFFER, &in_type(0));
            assert_eq!(buffer.unwrap_err(), CreateError::ZeroExtent);
            let whole = square(16, vk::ImageUsageFlags::SAMPLED);
            for at in 0..5 {
                let mut info = whole;
                *[
                    &mut info.extent.width,
                    &mut info.extent.height,
                    &mut info.extent.depth,
                    &mut info.mip_levels,
                    &mut info.array_layers,
                ][at] = 0;
                assert_eq!(fixture.image(&info, &in_type(0)).unwrap_err(), CreateError::ZeroExtent);
            }
        });
    });
}

/// Every power of two is a valid alignment, even if only the start of a block satisfies it.
#[test]
fn huge_alignments_are_alignments() {
    on_every_gpu(|fixture| {
        for exponent in [20, 30, 40, 62, 63] {
            let piece = fixture.memory(64, 1 << exponent, &in_type(0)).unwrap();
            assert_eq!(piece.offset() % (1 << exponent), 0);
            let next = fixture.memory(64, 1 << exponent, &in_type(0)).unwrap();
            assert_eq!(next.offset() % (1 << exponent), 0);
            fixture.free_all([piece, next]);
            fixture.validate();
        }
    });
}

#[test]
fn priorities() {
    on_every_profile(|profile| {
        unchanged(profile, |fixture| {
            for priority in [-0.1, 1.1, f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
                let info = AllocationCreateInfo { priority, ..in_type(0) };
                let error = fixture.memory(64, 1, &info).unwrap_err();
                assert!(matches!(error, AllocationError::Priority { .. }), "{error:?}");
                let pool = PoolCreateInfo { priority, ..PoolCreateInfo::new(0) };
                let error = fixture.pool(&pool).unwrap_err();
                assert!(matches!(error, CreatePoolError::Priority { .. }), "{error:?}");
            }
        });
    });
}

#[test]
fn contradictory_flags() {
    use Contradiction as C;
    use Flags as F;
    let auto = MemoryUsage::Auto;
    let cases = [
        (auto, F::DEDICATED_MEMORY | F::NEVER_ALLOCATE, C::DedicatedNeverAllocate),
        (auto, F::DEDICATED_MEMORY | F::UPPER_ADDRESS, C::DedicatedUpperAddress),
        (auto, F::HOST_ACCESS_RANDOM | F::HOST_ACCESS_SEQUENTIAL_WRITE, C::TwoHostAccesses),
        (auto, F::HOST_ACCESS_ALLOW_TRANSFER_INSTEAD, C::TransferInsteadOfNothing),
        (auto, F::MAPPED, C::MappedWithoutHostAccess),
        (MemoryUsage::AutoPreferHost, F::MAPPED, C::MappedWithoutHostAccess),
        (MemoryUsage::AutoPreferDevice, F::MAPPED, C::MappedWithoutHostAccess),
        (auto, F::STRATEGY_MIN_MEMORY | F::STRATEGY_MIN_TIME, C::SeveralStrategies),
        (auto, F::STRATEGY_MIN_MEMORY | F::STRATEGY_MIN_OFFSET, C::SeveralStrategies),
        (auto, F::STRATEGY_MIN_TIME | F::STRATEGY_MIN_OFFSET, C::SeveralStrategies),
        (auto, F::STRATEGY_MASK, C::SeveralStrategies),
    ];
    on_every_profile(|profile| {
        unchanged(profile, |fixture| {
            for (usage, flags, expected) in cases {
                let info = with_flags(usage, flags);
                assert_eq!(
                    fixture.memory(64, 1, &info).unwrap_err(),
                    AllocationError::Contradiction(expected)
                );
                assert_eq!(
                    fixture.allocator.find_memory_type_index(!0, &info).unwrap_err(),
                    FindMemoryTypeError::Contradiction(expected)
                );
            }
            let lazily = with_flags(MemoryUsage::GpuLazilyAllocated, F::NEVER_ALLOCATE);
            let error = fixture.memory(64, 1, &lazily).unwrap_err();
            let lazy = profile.types.iter().any(|kind| kind.flags.contains(LAZY));
            assert_eq!(error == AllocationError::Contradiction(C::DedicatedNeverAllocate), lazy, "{error:?}");
        });
    });
}

#[test]
fn resources_without_memory_types() {
    on_every_profile(|profile| {
        unchanged(profile, |fixture| {
            let beyond = 1 << 31;
            for bits in [0, beyond] {
                let requirements = vk::MemoryRequirements { size: 64, alignment: 1, memory_type_bits: bits };
                let error = fixture.allocator.allocate_memory(&requirements, &in_type(0)).unwrap_err();
                assert!(matches!(error, AllocationError::NoMemoryType(NoMemoryType::NoneFits { .. })));
                assert_eq!(error.vk_result(), vk::Result::ERROR_FEATURE_NOT_PRESENT);
            }
            let none = AllocationCreateInfo { memory_type_bits: beyond, ..Default::default() };
            assert!(matches!(fixture.memory(64, 1, &none), Err(AllocationError::NoMemoryType(_))));
            assert!(matches!(
                fixture.allocator.find_memory_type_index(beyond, &Default::default()),
                Err(FindMemoryTypeError::NoMemoryType(_))
            ));
            for usage in [MemoryUsage::Auto, MemoryUsage::AutoPreferDevice, MemoryUsage::AutoPreferHost] {
                let error = fixture.memory(64, 1, &AllocationCreateInfo::new(usage)).unwrap_err();
                assert_eq!(error, AllocationError::NoMemoryType(NoMemoryType::AutoWithoutResource { usage }),);
            }
        });
    });
}

#[test]
fn pools_that_cannot_be() {
    on_every_profile(|profile| {
        unchanged(profile, |fixture| {
            let pool = |info: PoolCreateInfo<'_>| fixture.pool(&info).unwrap_err();
            for memory_type in [profile.types.len() as u32, 31, 32, 33, u32::MAX] {
                let error = pool(PoolCreateInfo::new(memory_type));
                assert!(
                    matches!(error, CreatePoolError::MemoryType { memory_type: it, .. } if it == memory_type)
                );
                assert_eq!(error.vk_result(), vk::Result::ERROR_FEATURE_NOT_PRESENT);
            }
            let counts = PoolCreateInfo { min_block_count: 3, max_block_count: 2, ..PoolCreateInfo::new(0) };
            assert_eq!(pool(counts), CreatePoolError::BlockCounts { min: 3, max: 2 });
            for alignment in [3, 48, u64::MAX] {
                let info = PoolCreateInfo { min_allocation_alignment: alignment, ..PoolCreateInfo::new(0) };
                assert_eq!(pool(info), CreatePoolError::Alignment { alignment });
            }
            let max = fixture.heap_size(0).min(fixture.allocator.max_memory_allocation_size());
            for block_size in [max + 1, 1 << 63, u64::MAX] {
                let info = PoolCreateInfo { block_size, ..PoolCreateInfo::new(0) };
                assert_eq!(pool(info), CreatePoolError::BlockSize { block_size, max });
            }
        });
    });
}

/// A pool asks for more initial blocks than the heap can hold: creation fails and frees those already allocated.
#[test]
fn a_pool_with_too_many_first_blocks() {
    on_every_profile(|profile| {
        let limits = vec![10 * MIB; profile.heaps.len()];
        let fixture =
            Fixture::with(Gpu::new(profile), &Options { heap_size_limits: &limits, ..Options::default() });
        let before = fixture.snapshot();
        let info = PoolCreateInfo { block_size: MIB, min_block_count: 11, ..PoolCreateInfo::new(0) };
        let error = fixture.pool(&info).unwrap_err();
        assert!(matches!(error, CreatePoolError::Memory(sublet::MemoryError::HeapLimit { .. })), "{error:?}");
        assert_eq!(fixture.gpu.calls("vkFreeMemory"), 10);
        assert_eq!(fixture.snapshot(), before);
        let pool = fixture.pool(&PoolCreateInfo { min_block_count: 10, ..info }).unwrap();
        fixture.destroy_pool(pool);
    });
}

#[test]
fn requests_that_a_pool_cannot_serve() {
    on_every_gpu(|fixture| {
        let fixed = fixture.pool(&PoolCreateInfo { block_size: MIB, ..PoolCreateInfo::new(0) }).unwrap();
        let two = PoolCreateInfo {
            block_size: MIB,
            max_block_count: 2,
            algorithm: Algorithm::Linear,
            ..PoolCreateInfo::new(0)
        };
        let two = fixture.pool(&two).unwrap();
        let before = fixture.snapshot();
        fixture.gpu.reset_calls();
        let dedicated =
            AllocationCreateInfo { flags: Flags::DEDICATED_MEMORY, ..AllocationCreateInfo::in_pool(&fixed) };
        assert_eq!(
            fixture.memory(64, 1, &dedicated).unwrap_err(),
            AllocationError::Contradiction(Contradiction::DedicatedInFixedPool)
        );
        let upper = |pool, size| {
            let info =
                AllocationCreateInfo { flags: Flags::UPPER_ADDRESS, ..AllocationCreateInfo::in_pool(pool) };
            fixture.memory(size, 1, &info).unwrap_err()
        };
        assert_eq!(
            upper(&two, 64),
            AllocationError::UpperAddress { algorithm: Algorithm::Linear, max_block_count: 2 }
        );
        assert_eq!(
            upper(&fixed, 64),
            AllocationError::UpperAddress { algorithm: Algorithm::Tlsf, max_block_count: 0 }
        );
        let elsewhere = vk::MemoryRequirements { size: 64, alignment: 1, memory_type_bits: !1 };
        assert_eq!(
            fixture
                .allocator
                .allocate_memory(&elsewhere, &AllocationCreateInfo::in_pool(&fixed))
                .unwrap_err(),
            AllocationError::PoolMemoryType { memory_type: 0, memory_type_bits: !1 }
        );
        let error = fixture.memory(MIB + 1, 1, &AllocationCreateInfo::in_pool(&fixed)).unwrap_err();
        assert!(matches!(error, AllocationError::BlockTooSmall { block_size: MIB, .. }), "{error:?}");
        assert_eq!(fixture.gpu.call_counts(), []);
        assert_eq!(fixture.snapshot(), before);
        fixture.destroy_pool(fixed);
        fixture.destroy_pool(two);
    });
}

#[test]
fn handles_of_another_allocator() {
    on_every_profile(|profile| {
        let (fixture, other) = (Fixture::new(profile), Fixture::new(profile));
        let pool = other.pool(&PoolCreateInfo::new(0)).unwrap();
        let mut theirs = other.memory(64, 1, &in_type(0)).unwrap();
        // Our own allocation has the same place, so mixing up the two allocators would be visible.
        let ours = fixture.memory(64, 1, &in_type(0)).unwrap();
        let before = (fixture.snapshot(), other.snapshot());
        fixture.gpu.reset_calls();

        let in_pool = AllocationCreateInfo::in_pool(&pool);
        assert_eq!(fixture.memory(64, 1, &in_pool).unwrap_err(), AllocationError::ForeignPool);
        assert_eq!(fixture.allocator.pool_statistics(&pool), Err(ForeignHandle::Pool));
        assert!(fixture.allocator.calculate_pool_statistics(&pool).is_err());
        assert_eq!(fixture.allocator.set_pool_name(&pool, Some("ours")), Err(ForeignHandle::Pool));
        assert_eq!(fixture.allocator.pool_name(&pool), Err(ForeignHandle::Pool));

        let foreign = ForeignHandle::Allocation;
        assert_eq!(fixture.allocator.allocation_info(&theirs), Err(foreign));
        assert_eq!(fixture.allocator.set_allocation_name(&theirs, Some("ours")), Err(foreign));
        assert_eq!(fixture.allocator.flush(&theirs, 0, 1), Err(MapError::Foreign(foreign)));
        assert_eq!(fixture.allocator.invalidate(&theirs, 0, 1), Err(MapError::Foreign(foreign)));
        if fixture.properties(0).contains(HOST_VISIBLE) {
            assert_eq!(fixture.allocator.map(&mut theirs).unwrap_err(), MapError::Foreign(foreign));
            assert_eq!(
                fixture.allocator.copy_to_allocation(&[1], &mut theirs, 0),
                Err(MapError::Foreign(foreign))
            );
            assert_eq!(
                fixture.allocator.copy_from_allocation(&theirs, 0, &mut [0]),
                Err(MapError::Foreign(foreign))
            );
        }
        // SAFETY: the call is rejected.
        let error = unsafe { fixture.allocator.unmap_memory(&theirs) }.unwrap_err();
        assert_eq!(error, MapError::Foreign(foreign));
        // SAFETY: the call is rejected.
        let error =
            unsafe { fixture.allocator.bind_buffer_memory(&theirs, 0, vk::Buffer::null()) }.unwrap_err();
        assert_eq!(error, BindError::Foreign(foreign));
        // SAFETY: the call is rejected.
        let error =
            unsafe { fixture.allocator.bind_image_memory(&theirs, 0, vk::Image::null()) }.unwrap_err();
        assert_eq!(error, BindError::Foreign(foreign));
        // SAFETY: the call is rejected.
        let error = unsafe { fixture.allocator.free_memory(theirs) }.unwrap_err();
        assert!(error.to_string().contains("another allocator"), "{error}");

        assert_eq!(fixture.gpu.call_counts(), []);
        assert_eq!((fixture.snapshot(), other.snapshot()), before);
        // The error returns the allocation, which is still valid.
        other.free(error.allocation);
        // SAFETY: the call is rejected.
        let error = unsafe { fixture.allocator.destroy_pool(pool) }.unwrap_err();
        assert!(error.to_string().contains("another allocator"), "{error}");
        other.destroy_pool(error.pool);
        fixture.free(ours);
    });
}

#[test]
fn ranges_outside_of_the_allocation() {
    on_every_gpu(|fixture| {
        for memory_type in fixture.types_with(HOST_VISIBLE, PROTECTED) {
            let mut allocation = fixture.memory(100, 1, &in_type_with(memory_type, Flags::MAPPED)).unwrap();
            // The neighbour follows in the same block, so an out-of-range access would still be inside the block.
            let neighbour = fixture.memory(100, 1, &in_type(memory_type)).unwrap();
            fixture.gpu.reset_calls();
            for (offset, size) in [
                (0, 101),
                (1, 100),
                (100, 1),
                (101, 0),
                (101, vk::WHOLE_SIZE),
                (u64::MAX, 1),
                (u64::MAX, vk::WHOLE_SIZE),
                (1, u64::MAX - 1),
            ] {
                let error = MapError::OutOfRange { offset, size, allocation_size: 100 };
                assert_eq!(fixture.allocator.flush(&allocation, offset, size), Err(error));
                assert_eq!(fixture.allocator.invalidate(&allocation, offset, size), Err(error));
            }
            for (offset, length) in [(0, 101), (1, 100), (100, 1), (u64::MAX, 1)] {
                let error = MapError::OutOfRange { offset, size: length as u64, allocation_size: 100 };
                let bytes = vec![0; length];
                assert_eq!(fixture.allocator.copy_to_allocation(&bytes, &mut allocation, offset), Err(error));
                let mut bytes = bytes;
                assert_eq!(
                    fixture.allocator.copy_from_allocation(&allocation, offset, &mut bytes),
                    Err(error)
                );
            }
            for offset in [100, 101, u64::MAX] {
                // SAFETY: the call is rejected.
                let error =
                    unsafe { fixture.allocator.bind_buffer_memory(&allocation, offset, vk::Buffer::null()) };
                assert_eq!(error, Err(BindError::OutOfRange { offset, allocation_size: 100 }));
            }
            assert_eq!(fixture.gpu.call_counts(), []);
            fixture.free_all([allocation, neighbour]);
        }
    });
}

#[test]
fn lists_of_different_lengths() {
    on_every_profile(|profile| {
        unchanged(profile, |fixture| {
            let requirements = [vk::MemoryRequirements { size: 64, alignment: 1, memory_type_bits: !0 }; 3];
            for count in [0, 2, 4] {
                let infos = vec![in_type(0); count];
                assert_eq!(
                    fixture.allocator.allocate_memory_pages(&requirements, &infos).unwrap_err(),
                    AllocatePagesError::Lengths { requirements: 3, create_infos: count }
                );
            }
            assert!(fixture.allocator.allocate_memory_pages(&[], &[]).unwrap().is_empty());
            assert!(fixture.allocator.allocate_memory_pages(&[], &[in_type(0)]).unwrap().is_empty());
        });
    });
}

/// The error names the index of the invalid element, and the pages before it are freed.
#[test]
fn one_wrong_page_spoils_all() {
    on_every_gpu(|fixture| {
        let good = vk::MemoryRequirements { size: 64, alignment: 1, memory_type_bits: !0 };
        let before = fixture.snapshot();
        let list = [good, good, vk::MemoryRequirements { size: 0, ..good }, good];
        assert_eq!(
            fixture.allocator.allocate_memory_pages(&list, &[in_type(0)]).unwrap_err(),
            AllocatePagesError::Element { index: 2, error: AllocationError::ZeroSize }
        );
        fixture.allocator.trim();
        assert_eq!(fixture.snapshot(), before);
        // Each element has its own requirements and create-info.
        let infos = [
            AllocationCreateInfo { user_data: 1, ..in_type(0) },
            AllocationCreateInfo { user_data: 2, ..in_type_with(0, Flags::DEDICATED_MEMORY) },
        ];
        let list = [vk::MemoryRequirements { size: 100, ..good }, vk::MemoryRequirements { size: 7, ..good }];
        let pages = fixture.allocator.allocate_memory_pages(&list, &infos).unwrap();
        assert_eq!((pages[0].size(), pages[0].user_data(), pages[0].is_dedicated()), (100, 1, false));
        assert_eq!((pages[1].size(), pages[1].user_data(), pages[1].is_dedicated()), (7, 2, true));
        fixture.free_all(pages);
    });
}

#[test]
fn device_addresses_want_their_flag() {
    on_profiles(having(|profile| profile.features.buffer_device_address), |profile| {
        let gpu = Gpu::new(profile);
        let flags = Some(enabled(&gpu) - AllocatorCreateFlags::BUFFER_DEVICE_ADDRESS);
        let fixture = Fixture::with(gpu, &Options { flags, ..Options::default() });
        let usage = vk::BufferUsageFlags::SHADER_DEVICE_ADDRESS;
        let error = fixture.buffer(64, usage, &in_type(0)).unwrap_err();
        assert_eq!(error, CreateError::DeviceAddress);
        assert_eq!(fixture.gpu.call_counts(), []);
        drop(fixture);
        let fixture = Fixture::new(profile);
        let buffer = fixture.buffer(64, usage, &AllocationCreateInfo::new(MemoryUsage::Auto)).unwrap();
        fixture.destroy_buffer(buffer);
    });
}

/// With maintenance5 (core in Vulkan 1.4), the chain may hold the usage. That usage replaces the one in the
/// create-info.
#[test]
fn device_addresses_in_the_chain_want_their_flag_too() {
    on_profiles(
        having(|profile| profile.features.maintenance5 && profile.features.buffer_device_address),
        |profile| {
            let is_core = profile.api_version >= vk::make_api_version(0, 1, 4, 0);
            for (maintenance5, refused) in
                [(AllocatorCreateFlags::KHR_MAINTENANCE5, true), (AllocatorCreateFlags::empty(), is_core)]
            {
                let gpu = Gpu::new(profile);
                let flags =
                    Some(maintenance5 | (enabled(&gpu) - AllocatorCreateFlags::BUFFER_DEVICE_ADDRESS));
                let fixture = Fixture::with(gpu, &Options { flags, ..Options::default() });
                let mut usage = vk::BufferUsageFlags2CreateInfoKHR::default()
                    .usage(vk::BufferUsageFlags2KHR::SHADER_DEVICE_ADDRESS);
                let mut external = vk::ExternalMemoryBufferCreateInfo::default();
                let info = vk::BufferCreateInfo::default()
                    .size(64)
                    .usage(vk::BufferUsageFlags::TRANSFER_SRC)
                    .push_next(&mut usage)
                    .push_next(&mut external);
                // A request that is valid apart from this check gets a zero size, so that it also fails before any
                // driver call.
                let info = if refused { info } else { info.size(0) };
                // SAFETY: the call is rejected.
                let error = unsafe { fixture.allocator.create_buffer(&info, &in_type(0)) }.unwrap_err();
                assert_eq!(error == CreateError::DeviceAddress, refused, "{error:?}");
                assert_eq!(fixture.gpu.call_counts(), []);
            }
        },
    );
}

fn refused(info: &AllocatorCreateInfo<'_>) -> CreateAllocatorError {
    // SAFETY: the handles are live, and no allocator is created.
    unsafe { Allocator::new(info) }.unwrap_err()
}

#[test]
fn allocators_that_cannot_be() {
    on_every_profile(|profile| {
        let gpu = Gpu::new(profile);
        for api_version in [
            0,
            vk::make_api_version(0, 2, 0, 0),
            vk::make_api_version(0, 1, 5, 0),
            vk::make_api_version(0, 0, 9, 0),
        ] {
            let info = AllocatorCreateInfo { api_version, ..create_info(&gpu) };
            assert_eq!(refused(&info), CreateAllocatorError::ApiVersion { api_version });
        }
        let heaps = profile.heaps.len();
        let limits = vec![1; heaps + 1];
        let info = AllocatorCreateInfo { heap_size_limits: &limits, ..create_info(&gpu) };
        assert_eq!(refused(&info), CreateAllocatorError::HeapLimits { limits: heaps + 1, heaps });
        let info = AllocatorCreateInfo { functions: VulkanFunctions::default(), ..create_info(&gpu) };
        let error = refused(&info);
        assert!(matches!(error, CreateAllocatorError::MissingFunction(_)), "{error:?}");
        assert!(gpu.live().is_empty());
        gpu.assert_silent();
    });
}
