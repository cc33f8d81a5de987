//! Device limits on single sizes: `maxBufferSize`, `maxMemoryAllocationSize`.

use std::cell::Cell;

use ash::vk;
use sublet::sim::Gpu;
use sublet::sim::profiles::Profile;
use sublet::{
    AllocationCreateFlags as Flags, AllocationCreateInfo, AllocationError, AllocatorCreateFlags, CreateError,
    CreatePoolError, DefragmentationInfo, FindMemoryTypeError, FitPlace, MemoryError, MemoryUsage,
    PoolCreateInfo, ScopeCreateInfo,
};

use crate::common::*;

const STORAGE: vk::BufferUsageFlags = vk::BufferUsageFlags::STORAGE_BUFFER;

fn storage(size: u64) -> vk::BufferCreateInfo<'static> {
    vk::BufferCreateInfo::default().size(size).usage(STORAGE)
}

/// Builds a GPU that reports its limit, by version or by extension.
fn gpu_of(profile: &'static Profile, by_version: bool) -> Gpu {
    let minor = if by_version { 3 } else { 1 };
    Gpu::builder(profile).api_version(vk::make_api_version(0, 1, minor, 0)).build()
}

#[test]
fn buffers_above_the_limit_are_not_asked_for() {
    on_profiles(
        having(|profile| profile.features.maintenance4 && vk::api_version_minor(profile.api_version) >= 3),
        |profile| {
            for by_version in [false, true] {
                let gpu = gpu_of(profile, by_version);
                let flags = match by_version {
                    true => enabled(&gpu) - AllocatorCreateFlags::KHR_MAINTENANCE4,
                    false => enabled(&gpu) | AllocatorCreateFlags::KHR_MAINTENANCE4,
                };
                let fixture = Fixture::with(gpu, &Options { flags: Some(flags), ..Options::default() });
                let max = profile.limits.max_buffer_size;
                assert_eq!(fixture.allocator.max_buffer_size(), max, "by version: {by_version}");
                let auto = AllocationCreateInfo::new(MemoryUsage::Auto);
                let memory = fixture.memory(MIB, 256, &in_type(0)).unwrap();
                for size in [max + 1, u64::MAX] {
                    let error = CreateError::BufferTooLarge { size, max };
                    assert_eq!(fixture.buffer(size, STORAGE, &auto).unwrap_err(), error);
                    let info = storage(size);
                    // SAFETY: the size is rejected before the driver is called, here and below.
                    let alone = unsafe {
                        fixture.allocator.create_dedicated_buffer(
                            &info,
                            &auto,
                            sublet::MemoryAllocateNext::default(),
                        )
                    };
                    assert_eq!(alone.unwrap_err(), error);
                    // SAFETY: as above.
                    let alias = unsafe { fixture.allocator.create_aliasing_buffer(&memory, 0, &info) };
                    assert_eq!(alias.unwrap_err(), error);
                    // SAFETY: as above.
                    let fits = unsafe { fixture.allocator.would_buffer_fit(&info, &auto) };
                    assert_eq!(fits.unwrap_err(), error);
                    // SAFETY: as above.
                    let index =
                        unsafe { fixture.allocator.find_memory_type_index_for_buffer_info(&info, &auto) };
                    assert_eq!(index.unwrap_err(), FindMemoryTypeError::BufferTooLarge { size, max });
                    assert_eq!(error.vk_result(), vk::Result::ERROR_OUT_OF_DEVICE_MEMORY);
                    let text = error.to_string();
                    assert!(text.contains(&size.to_string()) && text.contains(&max.to_string()), "{text}");
                }
                assert_eq!(fixture.gpu.calls("vkCreateBuffer"), 0);
                // A size equal to the limit reaches the driver, which may still be out of memory.
                if let Ok(buffer) = fixture.buffer(max, STORAGE, &auto) {
                    fixture.destroy_buffer(buffer);
                }
                assert_eq!(fixture.gpu.calls("vkCreateBuffer"), 1);
                fixture.free(memory);
            }
        },
    );
}

#[test]
fn a_move_makes_no_buffer_above_the_limit() {
    let profile = Profile::by_name("lavapipe").unwrap();
    let fixture = Fixture::new(profile);
    let max = profile.limits.max_buffer_size;
    let auto = AllocationCreateInfo::new(MemoryUsage::Auto);
    let hole = fixture.buffer(KIB, STORAGE, &auto).unwrap();
    let buffer = fixture.buffer(KIB, STORAGE, &auto).unwrap();
    fixture.destroy_buffer(hole);
    let mut defragmentation =
        fixture.allocator.begin_defragmentation(&DefragmentationInfo::default()).unwrap();
    let mut pass = defragmentation.begin_pass().unwrap();
    let moved = pass.next().unwrap();
    // SAFETY: the size is rejected before the driver is called.
    let error = unsafe { moved.create_buffer(&storage(max + 1)) }.unwrap_err();
    assert_eq!(error, CreateError::BufferTooLarge { size: max + 1, max });
    drop(moved);
    drop(pass);
    drop(defragmentation);
    fixture.destroy_buffer(buffer);
}

#[test]
fn a_device_that_tells_no_limit_is_asked() {
    on_every_profile(|profile| {
        let version = vk::make_api_version(0, 1, 1, 0);
        let builder = Gpu::builder(profile).api_version(version);
        let gpu = match profile.features.maintenance4 {
            true => builder.without_extension("VK_KHR_maintenance4").build(),
            false => builder.build(),
        };
        let fixture = Fixture::with(gpu, &Options::default());
        assert_eq!(fixture.allocator.max_buffer_size(), u64::MAX);
        let size = profile.limits.max_buffer_size + 1;
        let error = fixture.buffer(size, STORAGE, &AllocationCreateInfo::new(MemoryUsage::Auto)).unwrap_err();
        assert_eq!(error.vk_result(), vk::Result::ERROR_OUT_OF_DEVICE_MEMORY, "{error:?}");
        assert_eq!(fixture.gpu.calls("vkCreateBuffer"), 1);
    });
}

/// Returns a memory type whose heap is larger than `maxMemoryAllocationSize`.
fn larger_than_one_piece(profile: &Profile) -> Option<u32> {
    let max = profile.limits.max_memory_allocation_size;
    let fits = |kind: &sublet::sim::profiles::TypeProfile| {
        profile.heaps[kind.heap as usize].size > max + GIB && !kind.flags.intersects(AMD_COHERENT | PROTECTED)
    };
    (0..).zip(profile.types).find(|(_, kind)| fits(kind)).map(|(index, _)| index)
}

#[test]
fn blocks_are_no_larger_than_one_piece_may_be() {
    on_profiles(having(|profile| larger_than_one_piece(profile).is_some()), |profile| {
        let memory_type = larger_than_one_piece(profile).unwrap();
        let max = profile.limits.max_memory_allocation_size;
        let fixture =
            Fixture::with(Gpu::new(profile), &Options { large_block: max + GIB, ..Options::default() });
        assert_eq!(fixture.allocator.max_memory_allocation_size(), max);
        let held: Vec<_> = (0..4).map(|_| fixture.memory(MIB, 256, &in_type(memory_type)).unwrap()).collect();
        assert!(held.iter().all(|it| !it.is_dedicated() && fixture.memory_size(it) <= max));
        fixture.free_all(held);

        let calls = fixture.gpu.calls("vkAllocateMemory");
        let info = PoolCreateInfo { block_size: max + 1, ..PoolCreateInfo::new(memory_type) };
        let error = fixture.pool(&info).unwrap_err();
        assert_eq!(error, CreatePoolError::BlockSize { block_size: max + 1, max });
        let scope = ScopeCreateInfo { block_size: max + 1, ..ScopeCreateInfo::default() };
        let error = fixture.allocator.create_scope(&scope).unwrap_err();
        assert!(matches!(error, CreatePoolError::BlockSize { .. }), "{error:?}");
        assert_eq!(fixture.gpu.calls("vkAllocateMemory"), calls, "the driver is not asked");
    });
}

/// A request above the limit goes to the driver, because some drivers grant it. llama.cpp 12817 and 14553, Vulkan-Docs
/// 1595.
#[test]
fn a_request_above_the_limit_of_one_piece_goes_to_the_driver() {
    let granted = Cell::new(0);
    on_profiles(having(|profile| larger_than_one_piece(profile).is_some()), |profile| {
        let memory_type = larger_than_one_piece(profile).unwrap();
        let max = profile.limits.max_memory_allocation_size;
        let grants = profile.limits.grants_above_max_memory_allocation_size;
        let fixture = Fixture::new(profile);
        let pool = fixture.pool(&PoolCreateInfo::new(memory_type)).unwrap();
        let limited = PoolCreateInfo { max_block_count: 2, ..PoolCreateInfo::new(memory_type) };
        let limited = fixture.pool(&limited).unwrap();
        for info in [
            in_type(memory_type),
            in_type_with(memory_type, Flags::DEDICATED_MEMORY),
            in_type_with(memory_type, Flags::WITHIN_BUDGET),
            AllocationCreateInfo::in_pool(&pool),
            AllocationCreateInfo::in_pool(&limited),
        ] {
            let requirements = vk::MemoryRequirements { size: max + 1, alignment: 1, memory_type_bits: !0 };
            let fit = match fixture.allocator.would_fit(&requirements, &info) {
                Err(AllocationError::Memory(MemoryError::OverBudget { .. })) => continue,
                fit => fit.unwrap(),
            };
            assert_eq!(fit.place, FitPlace::Dedicated { size: max + 1 });
            fixture.gpu.reset_calls();
            match fixture.allocator.allocate_memory(&requirements, &info) {
                Ok(memory) => {
                    assert!(grants && memory.is_dedicated());
                    assert_eq!(fixture.memory_size(&memory), max + 1);
                    granted.set(granted.get() + 1);
                    fixture.free(memory);
                }
                Err(error) => {
                    assert!(!grants, "{error:?}");
                    assert_eq!(driver_result(&error), Some(vk::Result::ERROR_OUT_OF_DEVICE_MEMORY));
                    assert!(
                        matches!(error, AllocationError::Memory(MemoryError::Driver { .. })),
                        "{error:?}"
                    );
                }
            }
            assert_eq!(fixture.gpu.calls("vkAllocateMemory"), 1, "asked once");
        }
        fixture.destroy_pool(pool);
        fixture.destroy_pool(limited);
    });
    assert_ne!(granted.get(), 0);
}

#[test]
fn large_buffers_on_an_h200() {
    let fixture = Fixture::new(Profile::by_name("nvidia-h200").unwrap());
    for size in [5 * GIB, 8 * GIB, 16 * GIB] {
        let made = fixture.buffer(size, STORAGE, &AllocationCreateInfo::new(MemoryUsage::Auto)).unwrap();
        assert!(made.1.is_dedicated());
        fixture.destroy_buffer(made);
    }
    let memory = fixture.memory(40 * GIB, 1, &AllocationCreateInfo::default()).unwrap();
    fixture.free(memory);
}

/// The heap has free space, so the driver refuses the size itself. No empty block is freed, since that would not help.
#[test]
fn what_a_driver_refuses_for_its_size_gives_nothing_back() {
    let refuses = |profile: &Profile| {
        let roomy = larger_than_one_piece(profile).is_some_and(|at| {
            let heap = profile.heaps[profile.types[at as usize].heap as usize].size;
            heap / 10 * 6 > profile.limits.max_memory_allocation_size
        });
        roomy && !profile.limits.grants_above_max_memory_allocation_size
    };
    on_profiles(having(refuses), |profile| {
        let memory_type = larger_than_one_piece(profile).unwrap();
        let fixture = Fixture::new(profile);
        fixture.free(fixture.memory(KIB, 1, &in_type(memory_type)).unwrap());
        let before = fixture.snapshot();
        assert_eq!(before.live.memories, 1, "an empty block is kept");
        for flags in [Flags::empty(), Flags::DEDICATED_MEMORY] {
            let size = profile.limits.max_memory_allocation_size + 1;
            fixture.memory(size, 1, &in_type_with(memory_type, flags)).unwrap_err();
            assert_eq!(fixture.snapshot(), before);
        }
    });
}

/// Vulkan 1.0 does not report this limit.
#[test]
fn a_device_that_tells_no_size_of_a_piece_is_asked() {
    on_profiles(having(|profile| larger_than_one_piece(profile).is_some()), |profile| {
        let memory_type = larger_than_one_piece(profile).unwrap();
        let gpu = Gpu::builder(profile).api_version(vk::API_VERSION_1_0).build();
        let fixture = Fixture::with(gpu, &Options::default());
        assert_eq!(fixture.allocator.max_memory_allocation_size(), u64::MAX);
        let size = profile.limits.max_memory_allocation_size + 1;
        match fixture.memory(size, 1, &in_type(memory_type)) {
            Ok(memory) => {
                assert!(profile.limits.grants_above_max_memory_allocation_size);
                fixture.free(memory);
            }
            Err(error) => {
                assert!(matches!(error, AllocationError::Memory(MemoryError::Driver { .. })), "{error:?}");
            }
        }
    });
}
