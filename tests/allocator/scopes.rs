//! Lifetime scopes: all allocations of a scope are freed at once, and their handles are rejected afterwards.

use ash::vk;
use sublet::{
    AliasError, Allocation, AllocationCreateFlags as Flags, AllocationCreateInfo, AllocationError, BindError,
    Contradiction, CreateError, CreatePoolError, ForeignHandle, MapError, MemoryUsage, PoolCreateInfo, Scope,
    ScopeCreateInfo, Statistics,
};

use crate::common::*;

fn scope(rig: &Rig, name: &str) -> Scope {
    rig.allocator.create_scope(&ScopeCreateInfo { name: Some(name), ..Default::default() }).unwrap()
}

fn free(rig: &Rig, scope: Scope) -> Statistics {
    // SAFETY: the tests submit no work that outlives the resources it uses.
    unsafe { rig.allocator.free_scope(scope) }.unwrap()
}

#[test]
fn everything_ends_at_once() {
    on_every_gpu(|rig| {
        let outside = rig.memory(1000, 1, &in_type(rig.types()[0])).unwrap();
        let before = rig.snapshot();
        let level = scope(&rig, "level");
        let mut random = Random::new(7);
        let mut held: Vec<Allocation> = Vec::new();
        for round in 0..from_environment("SUBLET_CASES", 128) {
            let usage = random.pick(&[
                MemoryUsage::Unknown,
                MemoryUsage::GpuOnly,
                MemoryUsage::CpuOnly,
                MemoryUsage::CpuToGpu,
                MemoryUsage::GpuToCpu,
            ]);
            let flags = if round % 16 == 0 { Flags::DEDICATED_MEMORY } else { Flags::empty() };
            let flags = if usage == MemoryUsage::CpuOnly { flags | Flags::MAPPED } else { flags };
            let info = AllocationCreateInfo { usage, flags, ..AllocationCreateInfo::in_scope(&level) };
            let name = (round % 3 == 0).then_some("named");
            held.push(
                rig.memory(random.size(20), 1 << random.below(9), &AllocationCreateInfo { name, ..info })
                    .unwrap(),
            );
            if random.below(4) == 0 {
                rig.free(held.swap_remove(random.below(held.len() as u64) as usize));
            }
        }
        rig.validate();
        // A scope uses the same memory types as an allocation without scope.
        for usage in [MemoryUsage::GpuOnly, MemoryUsage::CpuToGpu] {
            let plain = rig.memory(64, 1, &AllocationCreateInfo::new(usage)).unwrap();
            let info = AllocationCreateInfo { usage, ..AllocationCreateInfo::in_scope(&level) };
            held.push(rig.memory(64, 1, &info).unwrap());
            assert_eq!(held.last().unwrap().memory_type_index(), plain.memory_type_index());
            rig.free(plain);
        }
        rig.allocator.trim();
        let statistics = rig.allocator.scope_statistics(&level).unwrap();
        assert_eq!(statistics.allocation_count, held.len() as u64);
        let freed = free(&rig, level);
        assert_eq!(freed, statistics);
        assert_eq!(rig.snapshot(), before, "nothing of it is left");
        rig.validate();
        for mut stale in held {
            refused(&rig, &mut stale);
            // SAFETY: nothing was bound to it.
            let error = unsafe { rig.allocator.free_memory(stale) }.unwrap_err();
            drop(error.allocation);
        }
        assert_eq!(rig.snapshot(), before);
        rig.free(outside);
    });
}

/// Every function that takes an allocation rejects a stale one.
fn refused(rig: &Rig, stale: &mut Allocation) {
    const FOREIGN: ForeignHandle = ForeignHandle::Allocation;
    assert_eq!(rig.allocator.allocation_info(stale).unwrap_err(), FOREIGN);
    assert_eq!(rig.allocator.set_allocation_name(stale, Some("stale")), Err(FOREIGN));
    assert_eq!(rig.allocator.set_allocation_user_data(stale, 1), Err(FOREIGN));
    let is_refused =
        |error: &MapError| matches!(error, MapError::Foreign(_) | MapError::NotHostVisible { .. });
    assert!(rig.allocator.map(stale).is_err_and(|error| is_refused(&error)));
    assert!(rig.allocator.copy_to_allocation(&[1], stale, 0).is_err());
    // In coherent memory a flush does nothing. In other memory, it must not call the driver.
    let _ = rig.allocator.flush(stale, 0, 1);
    let _ = rig.allocator.invalidate(stale, 0, 1);
    let mut byte = [0];
    assert!(rig.allocator.copy_from_allocation(stale, 0, &mut byte).is_err());
}

/// New scopes reuse the numbers of old ones, but stale handles are still rejected.
#[test]
fn handles_of_earlier_scopes_are_refused() {
    let rig = Rig::new(sublet::sim::Profile::by_name("lavapipe").unwrap());
    let mut stale = Vec::new();
    for round in 0..10 {
        let level = scope(&rig, "level");
        let info = |flags| AllocationCreateInfo { flags, ..AllocationCreateInfo::in_scope(&level) };
        let shared = rig.memory(100, 1, &info(Flags::empty())).unwrap();
        let own = rig.memory(100, 1, &info(Flags::DEDICATED_MEMORY)).unwrap();
        for old in &mut stale {
            refused(&rig, old);
        }
        assert!(
            rig.allocator.allocation_info(&shared).is_ok() && rig.allocator.allocation_info(&own).is_ok()
        );
        assert_eq!(free(&rig, level).allocation_count, 2, "round {round}");
        stale.extend([shared, own]);
    }
}

/// Buffers and images in a scope, which the program itself destroys.
#[test]
fn resources_live_in_scopes() {
    on_every_gpu(|rig| {
        let level = scope(&rig, "level");
        let info =
            AllocationCreateInfo { usage: MemoryUsage::Auto, ..AllocationCreateInfo::in_scope(&level) };
        let buffers = (0..10).map(|_| rig.buffer(5000, vk::BufferUsageFlags::INDEX_BUFFER, &info).unwrap().0);
        let buffers: Vec<_> = buffers.collect();
        let images: Vec<_> =
            (0..10).map(|_| rig.image(&square(32, vk::ImageUsageFlags::SAMPLED), &info).unwrap().0).collect();
        for buffer in buffers {
            // SAFETY: the device does not use it.
            unsafe { rig.gpu.device().destroy_buffer(buffer, None) };
        }
        for image in images {
            // SAFETY: the device does not use it.
            unsafe { rig.gpu.device().destroy_image(image, None) };
        }
        assert_eq!(free(&rig, level).allocation_count, 20);
        assert!(rig.gpu.live().is_empty());
    });
}

#[test]
fn what_is_wrong_is_said() {
    let (rig, other) = (
        Rig::new(sublet::sim::Profile::by_name("lavapipe").unwrap()),
        Rig::new(sublet::sim::Profile::by_name("lavapipe").unwrap()),
    );
    let priority = rig.allocator.create_scope(&ScopeCreateInfo { priority: 1.5, ..Default::default() });
    assert!(matches!(priority, Err(CreatePoolError::Priority { .. })));
    let huge = rig.allocator.create_scope(&ScopeCreateInfo { block_size: u64::MAX, ..Default::default() });
    assert!(matches!(huge, Err(CreatePoolError::BlockSize { .. })));
    let level = scope(&rig, "level");
    let pool = rig.pool(&PoolCreateInfo::new(0)).unwrap();
    let both = AllocationCreateInfo { pool: Some(&pool), ..AllocationCreateInfo::in_scope(&level) };
    let refused = rig.memory(1, 1, &both).unwrap_err();
    assert_eq!(refused, AllocationError::Contradiction(Contradiction::PoolAndScope));
    let refused = other.memory(1, 1, &AllocationCreateInfo::in_scope(&level)).unwrap_err();
    assert_eq!(refused, AllocationError::ForeignPool);
    assert_eq!(other.allocator.scope_statistics(&level), Err(ForeignHandle::Pool));
    // SAFETY: nothing was allocated in it.
    let level = unsafe { other.allocator.free_scope(level) }.unwrap_err().scope;
    assert_eq!(free(&rig, level), Statistics::default());
    rig.destroy_pool(pool);
}

/// A scope that is never freed is reported as a leak, with its name.
#[test]
fn a_lost_scope_is_reported() {
    let rig = Rig::new(sublet::sim::Profile::by_name("lavapipe").unwrap());
    let level = scope(&rig, "lost level");
    let _kept = rig.memory(100, 1, &AllocationCreateInfo::in_scope(&level)).unwrap();
    let map = rig.allocator.memory_map();
    assert_eq!(map.vectors[1].pool_name.as_deref(), Some("lost level"));
    drop(level);
    let Rig { allocator, gpu } = rig.release();
    let leaks = allocator.destroy();
    assert_eq!(leaks.len(), 1);
    assert_eq!(leaks[0].pool.as_deref(), Some("lost level"));
    assert!(gpu.live().is_empty());
}

/// A scope has its own block size. Some smaller heaps cannot hold such a block.
#[test]
fn block_sizes_are_the_scope_s() {
    on_every_gpu(|rig| {
        let largest = rig.profile().heaps.iter().map(|heap| heap.size).max().unwrap();
        let smallest = rig.profile().heaps.iter().map(|heap| heap.size).min().unwrap();
        let block_size = if smallest < largest { smallest + MIB } else { 2 * MIB }.min(GIB);
        let level =
            rig.allocator.create_scope(&ScopeCreateInfo { block_size, ..Default::default() }).unwrap();
        for memory_type in rig.types() {
            let info = AllocationCreateInfo { scope: Some(&level), ..in_type(memory_type) };
            let held = rig.memory(1000, 1, &info).unwrap();
            assert_eq!(held.memory_type_index(), memory_type);
            let size = rig.memory_size(&held);
            if rig.heap_size(memory_type) >= block_size {
                assert_eq!(size, block_size);
            } else {
                assert!(size <= rig.block_size(memory_type));
            }
            free_one(&rig, held);
        }
        free(&rig, level);
    });
}

fn free_one(rig: &Rig, held: Allocation) {
    rig.free(held);
    rig.allocator.trim();
}

/// Threads that need the same pool of a scope create only one.
#[test]
fn threads_share_a_scope() {
    let rig = Rig::new(sublet::sim::Profile::by_name("nvidia-h200").unwrap());
    for _ in 0..20 {
        let level = scope(&rig, "level");
        let barrier = std::sync::Barrier::new(4);
        std::thread::scope(|threads| {
            for _ in 0..4 {
                threads.spawn(|| {
                    barrier.wait();
                    for _ in 0..20 {
                        let _ = rig.memory(256, 1, &AllocationCreateInfo::in_scope(&level)).unwrap();
                    }
                });
            }
        });
        assert_eq!(rig.allocator.memory_map().vectors.iter().filter(|it| it.pool.is_some()).count(), 1);
        assert_eq!(free(&rig, level).allocation_count, 80);
    }
}

/// Binding to freed memory is rejected before the driver is called.
#[test]
fn nothing_is_bound_to_what_is_gone() {
    let rig = Rig::new(sublet::sim::Profile::by_name("lavapipe").unwrap());
    let level = scope(&rig, "level");
    let stale = rig.memory(KIB, 256, &AllocationCreateInfo::in_scope(&level)).unwrap();
    free(&rig, level);
    let info = vk::BufferCreateInfo::default().size(16).usage(vk::BufferUsageFlags::TRANSFER_DST);
    // SAFETY: the create-info is valid.
    let buffer = unsafe { rig.gpu.device().create_buffer(&info, None) }.unwrap();
    // SAFETY: the buffer is not bound.
    let bound = unsafe { rig.allocator.bind_buffer_memory(&stale, 0, buffer) };
    assert!(matches!(bound, Err(BindError::Foreign(_))), "{bound:?}");
    // SAFETY: the create-info is valid.
    let alias = unsafe { rig.allocator.create_aliasing_buffer(&stale, 0, &info) };
    assert!(matches!(alias, Err(CreateError::Alias(AliasError::Foreign(_)))), "{alias:?}");
    // SAFETY: the device does not use it.
    unsafe { rig.gpu.device().destroy_buffer(buffer, None) };
}
