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
type Operation = fn(&Rig, &mut Allocation) -> Outcome;

/// Returns the number of memory types in which a scope has a pool.
fn pool_count(scope: &Scope) -> usize {
    (0..32).filter(|&memory_type| scope.pool(memory_type).is_some()).count()
}

fn undo(rig: &Rig, made: Made) {
    made.buffers.into_iter().for_each(|it| rig.destroy_buffer(it));
    made.images.into_iter().for_each(|it| rig.destroy_image(it));
    rig.free_all(made.allocations);
    made.pools.into_iter().for_each(|it| rig.destroy_pool(it));
}

const MAPPED: Flags = Flags::MAPPED.union(Flags::HOST_ACCESS_RANDOM);
const STORAGE: vk::BufferUsageFlags = vk::BufferUsageFlags::STORAGE_BUFFER;
const OPERATIONS: &[(&str, Operation)] = &[
    ("create_buffer", |rig, _| {
        let buffer = rig.buffer(KIB, STORAGE, &AllocationCreateInfo::new(MemoryUsage::Auto))?;
        Ok(Made { buffers: vec![buffer], ..Made::default() })
    }),
    ("create_buffer, mapped and named", |rig, _| {
        let info = AllocationCreateInfo { name: Some("named"), ..with_flags(MemoryUsage::Auto, MAPPED) };
        Ok(Made { buffers: vec![rig.buffer(KIB, STORAGE, &info)?], ..Made::default() })
    }),
    ("create_buffer, dedicated and mapped", |rig, _| {
        let info = with_flags(MemoryUsage::Auto, MAPPED | Flags::DEDICATED_MEMORY);
        Ok(Made { buffers: vec![rig.buffer(KIB, STORAGE, &info)?], ..Made::default() })
    }),
    ("create_image", |rig, _| {
        let info = square(32, vk::ImageUsageFlags::SAMPLED);
        let image = rig.image(&info, &AllocationCreateInfo::new(MemoryUsage::Auto))?;
        Ok(Made { images: vec![image], ..Made::default() })
    }),
    ("create_image, dedicated", |rig, _| {
        let info = square(32, vk::ImageUsageFlags::SAMPLED);
        let image = rig.image(&info, &with_flags(MemoryUsage::Auto, Flags::DEDICATED_MEMORY))?;
        Ok(Made { images: vec![image], ..Made::default() })
    }),
    ("allocate_memory", |rig, _| {
        Ok(Made { allocations: vec![rig.memory(KIB, 64, &in_type(0))?], ..Made::default() })
    }),
    ("allocate_memory, more than a block", |rig, _| {
        Ok(Made { allocations: vec![rig.memory(rig.block_size(0) + 1, 64, &in_type(0))?], ..Made::default() })
    }),
    ("allocate_memory, more than half a block", |rig, _| {
        Ok(Made {
            allocations: vec![rig.memory(rig.block_size(0) / 4 * 3, 64, &in_type(0))?],
            ..Made::default()
        })
    }),
    ("allocate_memory_pages, of many sizes", |rig, _| {
        let requirements: Vec<_> = (0..20)
            .map(|at| vk::MemoryRequirements {
                size: rig.block_size(0) >> (at % 5 + 1),
                alignment: 1,
                memory_type_bits: 1,
            })
            .collect();
        let pages = rig.allocator.allocate_memory_pages(&requirements, &[AllocationCreateInfo::default()])?;
        Ok(Made { allocations: pages, ..Made::default() })
    }),
    ("allocate_memory_pages, dedicated and mapped", |rig, _| {
        let requirements = [vk::MemoryRequirements { size: KIB, alignment: 1, memory_type_bits: !0 }; 4];
        let infos: Vec<_> = ["a", "b", "c", "d"]
            .into_iter()
            .map(|name| AllocationCreateInfo {
                name: Some(name),
                ..with_flags(MemoryUsage::CpuToGpu, Flags::MAPPED | Flags::DEDICATED_MEMORY)
            })
            .collect();
        let pages = rig.allocator.allocate_memory_pages(&requirements, &infos)?;
        Ok(Made { allocations: pages, ..Made::default() })
    }),
    ("create_buffer, in a scope", |rig, _| {
        let scope = rig.allocator.create_scope(&ScopeCreateInfo::default())?;
        let info = AllocationCreateInfo { scope: Some(&scope), ..with_flags(MemoryUsage::Auto, MAPPED) };
        let made = rig.buffer(KIB, STORAGE, &info);
        if matches!(made, Err(CreateError::Allocation(_) | CreateError::Resource(_))) {
            assert_eq!(pool_count(&scope), 0, "nothing was ever in it");
        }
        if let Ok((buffer, _)) = made {
            // SAFETY: the device does not use it, here and below.
            unsafe { rig.gpu.device().destroy_buffer(buffer, None) };
        }
        // SAFETY: as above.
        unsafe { rig.allocator.free_scope(scope) }.unwrap();
        Ok(made.map(|_| Made::default())?)
    }),
    ("create_pool", |rig, _| {
        let info = PoolCreateInfo {
            block_size: MIB,
            min_block_count: 3,
            name: Some("three"),
            ..PoolCreateInfo::new(0)
        };
        Ok(Made { pools: vec![rig.pool(&info)?], ..Made::default() })
    }),
    ("map", |rig, allocation| {
        drop(rig.allocator.map(allocation)?);
        Ok(Made::default())
    }),
    ("flush", |rig, allocation| {
        let guard = rig.allocator.map(allocation)?;
        guard.flush(0, vk::WHOLE_SIZE)?;
        guard.invalidate(0, 10)?;
        Ok(Made::default())
    }),
    ("copy_to_allocation", |rig, allocation| {
        rig.allocator.copy_to_allocation(&[1, 2, 3], allocation, 1)?;
        Ok(Made::default())
    }),
    ("copy_from_allocation", |rig, allocation| {
        rig.allocator.copy_from_allocation(allocation, 1, &mut [0; 3])?;
        Ok(Made::default())
    }),
    ("find_memory_type_index_for_buffer_info", |rig, _| {
        let info = vk::BufferCreateInfo::default().size(KIB).usage(STORAGE);
        // SAFETY: the create-info is valid.
        unsafe {
            rig.allocator.find_memory_type_index_for_buffer_info(&info, &AllocationCreateInfo::default())
        }?;
        Ok(Made::default())
    }),
    ("find_memory_type_index_for_image_info", |rig, _| {
        let info = square(32, vk::ImageUsageFlags::SAMPLED);
        // SAFETY: the create-info is valid.
        unsafe {
            rig.allocator.find_memory_type_index_for_image_info(&info, &AllocationCreateInfo::default())
        }?;
        Ok(Made::default())
    }),
];

/// Returns a fixture without maintenance4, so that queries create dummies, and an allocation in host-visible memory.
fn prepare(profile: &'static Profile) -> (Held<Rig>, Allocation) {
    let rig = Rig::new(profile);
    let incoherent = rig.types_with(HOST_VISIBLE, HOST_COHERENT | PROTECTED);
    let visible = rig.types_with(HOST_VISIBLE, PROTECTED);
    let memory_type = incoherent.first().or(visible.first()).copied().unwrap();
    let own = in_type_with(memory_type, Flags::DEDICATED_MEMORY);
    let allocation = rig.memory(1000, 64, &own).unwrap();
    (rig, allocation)
}

/// Runs the operation with one injected failure. Returns true if the operation failed.
fn fails(rig: &Rig, allocation: &mut Allocation, what: &str, run: Operation, result: vk::Result) -> bool {
    let trimmed = rig.snapshot();
    let vectors = rig.allocator.memory_map().vectors.len();
    let outcome = run(rig, allocation);
    rig.gpu.faults().clear();
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
            rig.validate();
            undo(rig, made);
        }
        Err(error) => {
            assert_eq!(driver_result(&*error), Some(result), "{what}: {error:?}");
            // Nothing is cached either, except the mapping of the allocation that existed before.
            let mut now = rig.snapshot();
            assert!(now.live.mapped <= now.live.memories);
            if !(what.starts_with("create") || what.starts_with("allocate")) {
                now.live.mapped = trimmed.live.mapped;
            }
            assert_eq!(now, trimmed, "{what}: {result}");
            assert_eq!(rig.allocator.memory_map().vectors.len(), vectors, "{what}: {result}");
        }
    }
    rig.validate();
    rig.allocator.trim();
    assert_eq!(rig.snapshot(), trimmed, "{what} is not undone after {result}");
    failed
}

#[test]
fn every_call_may_fail() {
    on_every_profile(|profile| {
        for &(what, run) in OPERATIONS {
            let (rig, mut allocation) = prepare(profile);
            rig.gpu.reset_calls();
            let made = run(&rig, &mut allocation).unwrap();
            let counts = rig.gpu.call_counts();
            undo(&rig, made);
            rig.allocator.trim();
            let mut failures = 0;
            for (call, count) in counts.into_iter().filter(|(call, _)| FALLIBLE.contains(call)) {
                for result in RESULTS {
                    for index in 0..count {
                        rig.gpu.faults().fail_nth(call, index, result);
                        failures += u64::from(fails(&rig, &mut allocation, what, run, result));
                    }
                    // If the call always fails, there is no fallback.
                    rig.gpu.faults().fail_always(call, result);
                    assert!(fails(&rig, &mut allocation, what, run, result), "{what}: {call} always fails");
                }
            }
            let asks_driver = !what.starts_with("find") || rig.gpu.calls("vkCreateBuffer") > 0;
            assert!(failures > 0 || !asks_driver || what.starts_with("find"), "{what} never failed");
            rig.free(allocation);
        }
    });
}

/// The same with an existing empty block: the failure adds and removes nothing.
#[test]
fn a_warm_allocator_is_as_before() {
    on_every_gpu(|rig| {
        let kept = rig.buffer(KIB, STORAGE, &with_flags(MemoryUsage::Auto, MAPPED)).unwrap();
        for (call, result) in [
            ("vkCreateBuffer", vk::Result::ERROR_OUT_OF_DEVICE_MEMORY),
            ("vkBindBufferMemory", vk::Result::ERROR_OUT_OF_HOST_MEMORY),
            ("vkBindBufferMemory", vk::Result::ERROR_INVALID_OPAQUE_CAPTURE_ADDRESS),
        ] {
            let before = rig.snapshot();
            rig.gpu.faults().fail_nth(call, 0, result);
            let error = rig.buffer(KIB, STORAGE, &with_flags(MemoryUsage::Auto, MAPPED)).unwrap_err();
            assert_eq!(driver_result(&error), Some(result));
            assert_eq!(error.vk_result(), result);
            assert_eq!(rig.snapshot(), before);
        }
        rig.destroy_buffer(kept);
    });
}

/// A block that was mapped for the failed call is unmapped. A block that was mapped before or is in use stays mapped.
#[test]
fn a_failed_call_leaves_mappings_as_they_were() {
    on_every_gpu(|rig| {
        let memory_type = rig.types_with(HOST_VISIBLE, PROTECTED)[0];
        let held = rig.memory(KIB, 1, &in_type(memory_type)).unwrap();
        let mapped = in_type_with(memory_type, MAPPED);
        let good = vk::MemoryRequirements { size: KIB, alignment: 1, memory_type_bits: 1 << memory_type };
        let bad = vk::MemoryRequirements { alignment: 3, ..good };
        let fail = || {
            let before = rig.snapshot();
            let error = rig.allocator.allocate_memory_pages(&[good, good, bad], &[mapped]).unwrap_err();
            assert!(matches!(error, AllocatePagesError::Element { index: 2, .. }), "{error:?}");
            assert_eq!(rig.snapshot(), before);
            rig.gpu.faults().fail_nth("vkBindBufferMemory", 0, vk::Result::ERROR_OUT_OF_HOST_MEMORY);
            rig.buffer(KIB, STORAGE, &mapped).unwrap_err();
            assert_eq!(rig.snapshot(), before);
        };
        assert_eq!(rig.gpu.live().mapped, 0);
        fail();
        assert_eq!((rig.gpu.calls("vkMapMemory"), rig.gpu.calls("vkUnmapMemory")), (2, 2));
        let user = rig.memory(KIB, 1, &mapped).unwrap();
        fail();
        rig.free(user);
        assert_eq!(rig.gpu.live().mapped, 1, "a mapping lasts longer than who it was made for");
        fail();
        assert_eq!((rig.gpu.calls("vkMapMemory"), rig.gpu.calls("vkUnmapMemory")), (3, 2));
        rig.free(held);
    });
}

/// Empty blocks that existed before the call are kept, even if it used them temporarily.
#[test]
fn what_was_kept_stays_and_what_was_grown_goes() {
    on_every_gpu(|rig| {
        rig.free(rig.memory(KIB, 1, &in_type(0)).unwrap());
        let before = rig.snapshot();
        assert_eq!(before.types[0].block_count, 1, "one is kept");
        let kept = before.types[0].block_bytes;
        let requirements: Vec<_> = [KIB, kept / 2, kept / 2, 0]
            .map(|size| vk::MemoryRequirements { size, alignment: 1, memory_type_bits: 1 })
            .into();
        let error = rig
            .allocator
            .allocate_memory_pages(&requirements, &[AllocationCreateInfo::default()])
            .unwrap_err();
        assert!(matches!(error, AllocatePagesError::Element { index: 3, .. }), "{error:?}");
        assert!(rig.gpu.calls("vkAllocateMemory") > 1, "there was another block");
        assert_eq!(rig.snapshot(), before);
    });
}

/// The scope tries each memory type, and has no pool in any of them afterwards.
#[test]
fn what_a_scope_is_refused_leaves_no_pool() {
    on_every_gpu(|rig| {
        let scope = rig.allocator.create_scope(&ScopeCreateInfo::default()).unwrap();
        let before = rig.snapshot();
        let vectors = rig.allocator.memory_map().vectors.len();
        rig.gpu.faults().fail_always("vkAllocateMemory", vk::Result::ERROR_OUT_OF_DEVICE_MEMORY);
        let info = AllocationCreateInfo::in_scope(&scope);
        rig.memory(KIB, 1, &info).unwrap_err();
        assert_eq!(pool_count(&scope), 0);
        assert_eq!(rig.allocator.memory_map().vectors.len(), vectors);
        assert_eq!(rig.snapshot(), before);
        rig.gpu.faults().clear();
        let allocation = rig.memory(KIB, 1, &info).unwrap();
        assert_eq!(pool_count(&scope), 1);
        rig.free(allocation);
        // SAFETY: the scope is empty.
        unsafe { rig.allocator.free_scope(scope) }.unwrap();
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
            let rig = Rig::with(gpu, &Options { flags, ..Options::default() });
            let info = vk::BufferCreateInfo::default().size(KIB).usage(STORAGE);
            let auto = AllocationCreateInfo::new(MemoryUsage::Auto);
            // SAFETY: the create-info is valid.
            unsafe { rig.allocator.find_memory_type_index_for_buffer_info(&info, &auto) }.unwrap();
            let info = square(8, vk::ImageUsageFlags::SAMPLED);
            // SAFETY: the create-info is valid.
            unsafe { rig.allocator.find_memory_type_index_for_image_info(&info, &auto) }.unwrap();
            let dummies = u64::from(flags.is_some() || !profile.features.maintenance4);
            assert_eq!(rig.gpu.calls("vkCreateBuffer"), dummies);
            assert_eq!(rig.gpu.calls("vkDestroyBuffer"), dummies);
            assert_eq!(rig.gpu.calls("vkCreateImage"), dummies);
            assert_eq!(rig.gpu.calls("vkDestroyImage"), dummies);
            // No memory type fits, and the dummies are destroyed all the same.
            let lazy = AllocationCreateInfo { memory_type_bits: 1 << 31, ..auto };
            // SAFETY: the create-info is valid.
            assert!(unsafe { rig.allocator.find_memory_type_index_for_image_info(&info, &lazy) }.is_err());
            assert!(rig.gpu.live().is_empty());
            rig.gpu.faults().fail_always("vkCreateImage", vk::Result::ERROR_OUT_OF_HOST_MEMORY);
            if dummies > 0 {
                // SAFETY: the create-info is valid.
                let error = unsafe { rig.allocator.find_memory_type_index_for_image_info(&info, &auto) };
                assert_eq!(driver_result(&error.unwrap_err()), Some(vk::Result::ERROR_OUT_OF_HOST_MEMORY));
            }
        }
    });
}
