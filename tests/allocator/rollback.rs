//! Each driver call fails in turn, at each index, in each operation. The operation is rolled back, and the driver's
//! result is the last source of the error.

use std::error::Error;

use ash::vk;
use sublet::sim::Gpu;
use sublet::sim::profiles::Profile;
use sublet::{
    AllocatePagesError, Allocation, AllocationCreateFlags as Flags, AllocationCreateInfo,
    AllocatorCreateFlags, CreateError, MemoryUsage, Pool, PoolCreateInfo, Scope, ScopeCreateInfo,
};

use crate::common::*;

/// The fallible driver functions that the library calls.
const FALLIBLE: [&str; 8] = [
    "vkAllocateMemory",
    "vkMapMemory",
    "vkCreateBuffer",
    "vkCreateImage",
    "vkBindBufferMemory",
    "vkBindImageMemory",
    "vkFlushMappedMemoryRanges",
    "vkInvalidateMappedMemoryRanges",
];

const RESULTS: [vk::Result; 4] = [
    vk::Result::ERROR_OUT_OF_HOST_MEMORY,
    vk::Result::ERROR_OUT_OF_DEVICE_MEMORY,
    vk::Result::ERROR_DEVICE_LOST,
    vk::Result::ERROR_UNKNOWN,
];

/// The results of an operation, for undoing it.
#[derive(Default)]
struct Made {
    buffers: Vec<(vk::Buffer, Allocation)>,
    images: Vec<(vk::Image, Allocation)>,
    allocations: Vec<Allocation>,
    pools: Vec<Pool>,
}

type Outcome = Result<Made, Box<dyn Error>>;
/// An operation. It may use the passed allocation, which is in host-visible memory.
type Operation = fn(&Fixture, &mut Allocation) -> Outcome;

/// Returns the number of memory types in which a scope has a pool.
fn pool_count(scope: &Scope) -> usize {
    (0..32).filter(|&memory_type| scope.pool(memory_type).is_some()).count()
}

fn undo(fixture: &Fixture, made: Made) {
    made.buffers.into_iter().for_each(|it| fixture.destroy_buffer(it));
    made.images.into_iter().for_each(|it| fixture.destroy_image(it));
    fixture.free_all(made.allocations);
    made.pools.into_iter().for_each(|it| fixture.destroy_pool(it));
}

const MAPPED: Flags = Flags::MAPPED.union(Flags::HOST_ACCESS_RANDOM);
const STORAGE: vk::BufferUsageFlags = vk::BufferUsageFlags::STORAGE_BUFFER;
const OPERATIONS: &[(&str, Operation)] = &[
    ("create_buffer", |fixture, _| {
        let buffer = fixture.buffer(KIB, STORAGE, &AllocationCreateInfo::new(MemoryUsage::Auto))?;
        Ok(Made { buffers: vec![buffer], ..Made::default() })
    }),
    ("create_buffer, mapped and named", |fixture, _| {
        let info = AllocationCreateInfo { name: Some("named"), ..with_flags(MemoryUsage::Auto, MAPPED) };
        Ok(Made { buffers: vec![fixture.buffer(KIB, STORAGE, &info)?], ..Made::default() })
    }),
    ("create_buffer, dedicated and mapped", |fixture, _| {
        let info = with_flags(MemoryUsage::Auto, MAPPED | Flags::DEDICATED_MEMORY);
        Ok(Made { buffers: vec![fixture.buffer(KIB, STORAGE, &info)?], ..Made::default() })
    }),
    ("create_image", |fixture, _| {
        let info = square(32, vk::ImageUsageFlags::SAMPLED);
        let image = fixture.image(&info, &AllocationCreateInfo::new(MemoryUsage::Auto))?;
        Ok(Made { images: vec![image], ..Made::default() })
    }),
    ("create_image, dedicated", |fixture, _| {
        let info = square(32, vk::ImageUsageFlags::SAMPLED);
        let image = fixture.image(&info, &with_flags(MemoryUsage::Auto, Flags::DEDICATED_MEMORY))?;
        Ok(Made { images: vec![image], ..Made::default() })
    }),
    ("allocate_memory", |fixture, _| {
        Ok(Made { allocations: vec![fixture.memory(KIB, 64, &in_type(0))?], ..Made::default() })
    }),
    ("allocate_memory, more than a block", |fixture, _| {
        Ok(Made {
            allocations: vec![fixture.memory(fixture.block_size(0) + 1, 64, &in_type(0))?],
            ..Made::default()
        })
    }),
    ("allocate_memory, more than half a block", |fixture, _| {
        Ok(Made {
            allocations: vec![fixture.memory(fixture.block_size(0) / 4 * 3, 64, &in_type(0))?],
            ..Made::default()
        })
    }),
    ("allocate_memory_pages, of many sizes", |fixture, _| {
        let requirements: Vec<_> = (0..20)
            .map(|at| vk::MemoryRequirements {
                size: fixture.block_size(0) >> (at % 5 + 1),
                alignment: 1,
                memory_type_bits: 1,
            })
            .collect();
        let pages =
            fixture.allocator.allocate_memory_pages(&requirements, &[AllocationCreateInfo::default()])?;
        Ok(Made { allocations: pages, ..Made::default() })
    }),
    ("allocate_memory_pages, dedicated and mapped", |fixture, _| {
        let requirements = [vk::MemoryRequirements { size: KIB, alignment: 1, memory_type_bits: !0 }; 4];
        let infos: Vec<_> = ["a", "b", "c", "d"]
            .into_iter()
            .map(|name| AllocationCreateInfo {
                name: Some(name),
                ..with_flags(MemoryUsage::CpuToGpu, Flags::MAPPED | Flags::DEDICATED_MEMORY)
            })
            .collect();
        let pages = fixture.allocator.allocate_memory_pages(&requirements, &infos)?;
        Ok(Made { allocations: pages, ..Made::default() })
    }),
    ("create_buffer, in a scope", |fixture, _| {
        let scope = fixture.allocator.create_scope(&ScopeCreateInfo::default())?;
        let info = AllocationCreateInfo { scope: Some(&scope), ..with_flags(MemoryUsage::Auto, MAPPED) };
        let made = fixture.buffer(KIB, STORAGE, &info);
        if matches!(made, Err(CreateError::Allocation(_) | CreateError::Resource(_))) {
            assert_eq!(pool_count(&scope), 0, "nothing was ever in it");
        }
        if let Ok((buffer, _)) = made {
            // SAFETY: the device does not use it, here and below.
            unsafe { fixture.gpu.device().destroy_buffer(buffer, None) };
        }
        // SAFETY: as above.
        unsafe { fixture.allocator.free_scope(scope) }.unwrap();
        Ok(made.map(|_| Made::default())?)
    }),
    ("create_pool", |fixture, _| {
        let info = PoolCreateInfo {
            block_size: MIB,
            min_block_count: 3,
            name: Some("three"),
            ..PoolCreateInfo::new(0)
        };
        Ok(Made { pools: vec![fixture.pool(&info)?], ..Made::default() })
    }),
    ("map", |fixture, allocation| {
        drop(fixture.allocator.map(allocation)?);
        Ok(Made::default())
    }),
    ("flush", |fixture, allocation| {
        let guard = fixture.allocator.map(allocation)?;
        guard.flush(0, vk::WHOLE_SIZE)?;
        guard.invalidate(0, 10)?;
        Ok(Made::default())
    }),
    ("copy_to_allocation", |fixture, allocation| {
        fixture.allocator.copy_to_allocation(&[1, 2, 3], allocation, 1)?;
        Ok(Made::default())
    }),
    ("copy_from_allocation", |fixture, allocation| {
        fixture.allocator.copy_from_allocation(allocation, 1, &mut [0; 3])?;
        Ok(Made::default())
    }),
    ("find_memory_type_index_for_buffer_info", |fixture, _| {
        let info = vk::BufferCreateInfo::default().size(KIB).usage(STORAGE);
        // SAFETY: the create-info is valid.
        unsafe {
            fixture.allocator.find_memory_type_index_for_buffer_info(&info, &AllocationCreateInfo::default())
        }?;
        Ok(Made::default())
    }),
    ("find_memory_type_index_for_image_info", |fixture, _| {
        let info = square(32, vk::ImageUsageFlags::SAMPLED);
        // SAFETY: the create-info is valid.
        unsafe {
            fixture.allocator.find_memory_type_index_for_image_info(&info, &AllocationCreateInfo::default())
        }?;
        Ok(Made::default())
    }),
];

/// Returns a fixture without maintenance4, so that queries create dummies, and an allocation in host-visible memory.
fn prepare(profile: &'static Profile) -> (Held<Fixture>, Allocation) {
    let fixture = Fixture::new(profile);
    let incoherent = fixture.types_with(HOST_VISIBLE, HOST_COHERENT | PROTECTED);
    let visible = fixture.types_with(HOST_VISIBLE, PROTECTED);
    let memory_type = incoherent.first().or(visible.first()).copied().unwrap();
    let own = in_type_with(memory_type, Flags::DEDICATED_MEMORY);
    let allocation = fixture.memory(1000, 64, &own).unwrap();
    (fixture, allocation)
}

/// Runs the operation with one injected failure. Returns true if the operation failed.
fn fails(
    fixture: &Fixture,
    allocation: &mut Allocation,
    what: &str,
    run: Operation,
    result: vk::Result,
) -> bool {
    let trimmed = fixture.snapshot();
    let vectors = fixture.allocator.memory_map().vectors.len();
    let outcome = run(fixture, allocation);
    fixture.gpu.faults().clear();
    let failed = outcome.is_err();
    match outcome {
        Ok(made) => {
            // The request falls back to other memory only if memory is short.
            assert!(
                matches!(
                    result,
                    vk::Result::ERROR_OUT_OF_HOST_MEMORY | vk::Result::ERROR_OUT_OF_DEVICE_MEMORY
                ),
                "{what} succeeds after {result}"
            );
            fixture.validate();
            undo(fixture, made);
        }
        Err(error) => {
            assert_eq!(driver_result(&*error), Some(result), "{what}: {error:?}");
            // Nothing is cached either, except the mapping of the allocation that existed before.
            let mut now = fixture.snapshot();
            assert!(now.live.mapped <= now.live.memories);
            if !(what.starts_with("create") || what.starts_with("allocate")) {
                now.live.mapped = trimmed.live.mapped;
            }
            assert_eq!(now, trimmed, "{what}: {result}");
            assert_eq!(fixture.allocator.memory_map().vectors.len(), vectors, "{what}: {result}");
        }
    }
    fixture.validate();
    fixture.allocator.trim();
    assert_eq!(fixture.snapshot(), trimmed, "{what} is not undone after {result}");
    failed
}

#[test]
fn every_call_may_fail() {
    on_every_profile(|profile| {
        for &(what, run) in OPERATIONS {
            let (fixture, mut allocation) = prepare(profile);
            fixture.gpu.reset_calls();
            let made = run(&fixture, &mut allocation).unwrap();
            let counts = fixture.gpu.call_counts();
            undo(&fixture, made);
            fixture.allocator.trim();
            let mut failures = 0;
            for (call, count) in counts.into_iter().filter(|(call, _)| FALLIBLE.contains(call)) {
                for result in RESULTS {
                    for index in 0..count {
                        fixture.gpu.faults().fail_nth(call, index, result);
                        failures += u64::from(fails(&fixture, &mut allocation, what, run, result));
                    }
                    // If the call always fails, there is no fallback.
                    fixture.gpu.faults().fail_always(call, result);
                    assert!(
                        fails(&fixture, &mut allocation, what, run, result),
                        "{what}: {call} always fails"
                    );
                }
            }
            let asks_driver = !what.starts_with("find") || fixture.gpu.calls("vkCreateBuffer") > 0;
            assert!(failures > 0 || !asks_driver || what.starts_with("find"), "{what} never failed");
            fixture.free(allocation);
        }
    });
}

/// The same with an existing empty block: the failure adds and removes nothing.
#[test]
fn a_warm_allocator_is_as_before() {
    on_every_gpu(|fixture| {
        let kept = fixture.buffer(KIB, STORAGE, &with_flags(MemoryUsage::Auto, MAPPED)).unwrap();
        for (call, result) in [
            ("vkCreateBuffer", vk::Result::ERROR_OUT_OF_DEVICE_MEMORY),
            ("vkBindBufferMemory", vk::Result::ERROR_OUT_OF_HOST_MEMORY),
            ("vkBindBufferMemory", vk::Result::ERROR_INVALID_OPAQUE_CAPTURE_ADDRESS),
        ] {
            let before = fixture.snapshot();
            fixture.gpu.faults().fail_nth(call, 0, result);
            let error = fixture.buffer(KIB, STORAGE, &with_flags(MemoryUsage::Auto, MAPPED)).unwrap_err();
            assert_eq!(driver_result(&error), Some(result));
            assert_eq!(error.vk_result(), result);
            assert_eq!(fixture.snapshot(), before);
        }
        fixture.destroy_buffer(kept);
    });
}

/// A block that was mapped for the failed call is unmapped. A block that was mapped before or is in use stays mapped.
#[test]
fn a_failed_call_leaves_mappings_as_they_were() {
    on_every_gpu(|fixture| {
        let memory_type = fixture.types_with(HOST_VISIBLE, PROTECTED)[0];
        let held = fixture.memory(KIB, 1, &in_type(memory_type)).unwrap();
        let mapped = in_type_with(memory_type, MAPPED);
        let good = vk::MemoryRequirements { size: KIB, alignment: 1, memory_type_bits: 1 << memory_type };
        let bad = vk::MemoryRequirements { alignment: 3, ..good };
        let fail = || {
            let before = fixture.snapshot();
            let error = fixture.allocator.allocate_memory_pages(&[good, good, bad], &[mapped]).unwrap_err();
            assert!(matches!(error, AllocatePagesError::Element { index: 2, .. }), "{error:?}");
            assert_eq!(fixture.snapshot(), before);
            fixture.gpu.faults().fail_nth("vkBindBufferMemory", 0, vk::Result::ERROR_OUT_OF_HOST_MEMORY);
            fixture.buffer(KIB, STORAGE, &mapped).unwrap_err();
            assert_eq!(fixture.snapshot(), before);
        };
        assert_eq!(fixture.gpu.live().mapped, 0);
        fail();
        assert_eq!((fixture.gpu.calls("vkMapMemory"), fixture.gpu.calls("vkUnmapMemory")), (2, 2));
        let user = fixture.memory(KIB, 1, &mapped).unwrap();
        fail();
        fixture.free(user);
        assert_eq!(fixture.gpu.live().mapped, 1, "a mapping lasts longer than who it was made for");
        fail();
        assert_eq!((fixture.gpu.calls("vkMapMemory"), fixture.gpu.calls("vkUnmapMemory")), (3, 2));
        fixture.free(held);
    });
}

/// Empty blocks that existed before the call are kept, even if it used them temporarily.
#[test]
fn what_was_kept_stays_and_what_was_grown_goes() {
    on_every_gpu(|fixture| {
        fixture.free(fixture.memory(KIB, 1, &in_type(0)).unwrap());
        let before = fixture.snapshot();
        assert_eq!(before.types[0].block_count, 1, "one is kept");
        let kept = before.types[0].block_bytes;
        let requirements: Vec<_> = [KIB, kept / 2, kept / 2, 0]
            .map(|size| vk::MemoryRequirements { size, alignment: 1, memory_type_bits: 1 })
            .into();
        let error = fixture
            .allocator
            .allocate_memory_pages(&requirements, &[AllocationCreateInfo::default()])
            .unwrap_err();
        assert!(matches!(error, AllocatePagesError::Element { index: 3, .. }), "{error:?}");
        assert!(fixture.gpu.calls("vkAllocateMemory") > 1, "there was another block");
        assert_eq!(fixture.snapshot(), before);
    });
}

/// The scope tries each memory type, and has no pool in any of them afterwards.
#[test]
fn what_a_scope_is_refused_leaves_no_pool() {
    on_every_gpu(|fixture| {
        let scope = fixture.allocator.create_scope(&ScopeCreateInfo::default()).unwrap();
        let before = fixture.snapshot();
        let vectors = fixture.allocator.memory_map().vectors.len();
        fixture.gpu.faults().fail_always("vkAllocateMemory", vk::Result::ERROR_OUT_OF_DEVICE_MEMORY);
        let info = AllocationCreateInfo::in_scope(&scope);
        fixture.memory(KIB, 1, &info).unwrap_err();
        assert_eq!(pool_count(&scope), 0);
        assert_eq!(fixture.allocator.memory_map().vectors.len(), vectors);
        assert_eq!(fixture.snapshot(), before);
        fixture.gpu.faults().clear();
        let allocation = fixture.memory(KIB, 1, &info).unwrap();
        assert_eq!(pool_count(&scope), 1);
        fixture.free(allocation);
        // SAFETY: the scope is empty.
        unsafe { fixture.allocator.free_scope(scope) }.unwrap();
    });
}

/// Without maintenance4, the query creates a dummy resource and destroys it in every case.
#[test]
fn dummies_do_not_stay() {
    on_every_profile(|profile| {
        for flags in [None, Some(AllocatorCreateFlags::empty())] {
            let gpu = Gpu::builder(profile)
                .api_version(vk::make_api_version(0, 1, vk::api_version_minor(profile.api_version).min(2), 0))
                .build();
            let flags = flags.map(|_| enabled(&gpu) - AllocatorCreateFlags::KHR_MAINTENANCE4);
            let fixture = Fixture::with(gpu, &Options { flags, ..Options::default() });
            let info = vk::BufferCreateInfo::default().size(KIB).usage(STORAGE);
            let auto = AllocationCreateInfo::new(MemoryUsage::Auto);
            // SAFETY: the create-info is valid.
            unsafe { fixture.allocator.find_memory_type_index_for_buffer_info(&info, &auto) }.unwrap();
            let info = square(8, vk::ImageUsageFlags::SAMPLED);
            // SAFETY: the create-info is valid.
            unsafe { fixture.allocator.find_memory_type_index_for_image_info(&info, &auto) }.unwrap();
            let dummies = u64::from(flags.is_some() || !profile.features.maintenance4);
            assert_eq!(fixture.gpu.calls("vkCreateBuffer"), dummies);
            assert_eq!(fixture.gpu.calls("vkDestroyBuffer"), dummies);
            assert_eq!(fixture.gpu.calls("vkCreateImage"), dummies);
            assert_eq!(fixture.gpu.calls("vkDestroyImage"), dummies);
            // No memory type fits, and the dummies are destroyed all the same.
            let lazy = AllocationCreateInfo { memory_type_bits: 1 << 31, ..auto };
            // SAFETY: the create-info is valid.
            let found = unsafe { fixture.allocator.find_memory_type_index_for_image_info(&info, &lazy) };
            assert!(found.is_err());
            assert!(fixture.gpu.live().is_empty());
            fixture.gpu.faults().fail_always("vkCreateImage", vk::Result::ERROR_OUT_OF_HOST_MEMORY);
            if dummies > 0 {
                // SAFETY: the create-info is valid.
                let error = unsafe { fixture.allocator.find_memory_type_index_for_image_info(&info, &auto) };
                assert_eq!(driver_result(&error.unwrap_err()), Some(vk::Result::ERROR_OUT_OF_HOST_MEMORY));
            }
        }
    });
}
