//! Lifetime scopes: all allocations of a scope are freed at once, and their handles are rejected afterwards.

use ash::vk;
use sublet::{
    AliasError, Allocation, AllocationCreateFlags as Flags, AllocationCreateInfo, AllocationError, BindError,
    Contradiction, CreateError, CreatePoolError, ForeignHandle, MapError, MemoryUsage, PoolCreateInfo, Scope,
    ScopeCreateInfo, Statistics,
};

use crate::common::*;

fn scope(fixture: &Fixture, name: &str) -> Scope {
    fixture.allocator.create_scope(&ScopeCreateInfo { name: Some(name), ..Default::default() }).unwrap()
}

fn free(fixture: &Fixture, scope: Scope) -> Statistics {
    // SAFETY: the tests submit no work that outlives the resources it uses.
    unsafe { fixture.allocator.free_scope(scope) }.unwrap()
}

#[test]
fn everything_ends_at_once() {
    on_every_gpu(|fixture| {
        let outside = fixture.memory(1000, 1, &in_type(fixture.types()[0])).unwrap();
        let before = fixture.snapshot();
        let level = scope(&fixture, "level");
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
                fixture
                    .memory(random.size(20), 1 << random.below(9), &AllocationCreateInfo { name, ..info })
                    .unwrap(),
            );
            if random.below(4) == 0 {
                fixture.free(held.swap_remove(random.below(held.len() as u64) as usize));
            }
        }
        fixture.validate();
        // A scope uses the same memory types as an allocation without scope.
        for usage in [MemoryUsage::GpuOnly, MemoryUsage::CpuToGpu] {
            let plain = fixture.memory(64, 1, &AllocationCreateInfo::new(usage)).unwrap();
            let info = AllocationCreateInfo { usage, ..AllocationCreateInfo::in_scope(&level) };
            held.push(fixture.memory(64, 1, &info).unwrap());
            assert_eq!(held.last().unwrap().memory_type_index(), plain.memory_type_index());
            fixture.free(plain);
        }
        fixture.allocator.trim();
        let statistics = fixture.allocator.scope_statistics(&level).unwrap();
        assert_eq!(statistics.allocation_count, held.len() as u64);
        let freed = free(&fixture, level);
        assert_eq!(freed, statistics);
        assert_eq!(fixture.snapshot(), before, "nothing of it is left");
        fixture.validate();
        for mut stale in held {
            refused(&fixture, &mut stale);
            // SAFETY: nothing was bound to it.
            let error = unsafe { fixture.allocator.free_memory(stale) }.unwrap_err();
            drop(error.allocation);
        }
        assert_eq!(fixture.snapshot(), before);
        fixture.free(outside);
    });
}

/// Every function that takes an allocation rejects a stale one.
fn refused(fixture: &Fixture, stale: &mut Allocation) {
    const FOREIGN: ForeignHandle = ForeignHandle::Allocation;
    assert_eq!(fixture.allocator.allocation_info(stale).unwrap_err(), FOREIGN);
    assert_eq!(fixture.allocator.set_allocation_name(stale, Some("stale")), Err(FOREIGN));
    assert_eq!(fixture.allocator.set_allocation_user_data(stale, 1), Err(FOREIGN));
    let is_refused =
        |error: &MapError| matches!(error, MapError::Foreign(_) | MapError::NotHostVisible { .. });
    assert!(fixture.allocator.map(stale).is_err_and(|error| is_refused(&error)));
    assert!(fixture.allocator.copy_to_allocation(&[1], stale, 0).is_err());
    // In coherent memory a flush does nothing. In other memory, it must not call the driver.
    let _ = fixture.allocator.flush(stale, 0, 1);
    let _ = fixture.allocator.invalidate(stale, 0, 1);
    let mut byte = [0];
    assert!(fixture.allocator.copy_from_allocation(stale, 0, &mut byte).is_err());
}

/// New scopes reuse the numbers of old ones, but stale handles are still rejected.
#[test]
fn handles_of_earlier_scopes_are_refused() {
    let fixture = Fixture::new(sublet::sim::Profile::by_name("lavapipe").unwrap());
    let mut stale = Vec::new();
    for round in 0..10 {
        let level = scope(&fixture, "level");
        let info = |flags| AllocationCreateInfo { flags, ..AllocationCreateInfo::in_scope(&level) };
        let shared = fixture.memory(100, 1, &info(Flags::empty())).unwrap();
        let own = fixture.memory(100, 1, &info(Flags::DEDICATED_MEMORY)).unwrap();
        for old in &mut stale {
            refused(&fixture, old);
        }
        assert!(
            fixture.allocator.allocation_info(&shared).is_ok()
                && fixture.allocator.allocation_info(&own).is_ok()
        );
        assert_eq!(free(&fixture, level).allocation_count, 2, "round {round}");
        stale.extend([shared, own]);
    }
}

/// Buffers and images in a scope, which the program itself destroys.
#[test]
fn resources_live_in_scopes() {
    on_every_gpu(|fixture| {
        let level = scope(&fixture, "level");
        let info =
            AllocationCreateInfo { usage: MemoryUsage::Auto, ..AllocationCreateInfo::in_scope(&level) };
        let buffers =
            (0..10).map(|_| fixture.buffer(5000, vk::BufferUsageFlags::INDEX_BUFFER, &info).unwrap().0);
        let buffers: Vec<_> = buffers.collect();
        let images: Vec<_> = (0..10)
            .map(|_| fixture.image(&square(32, vk::ImageUsageFlags::SAMPLED), &info).unwrap().0)
            .collect();
        for buffer in buffers {
            // SAFETY: the device does not use it.
            unsafe { fixture.gpu.device().destroy_buffer(buffer, None) };
        }
        for image in images {
            // SAFETY: the device does not use it.
            unsafe { fixture.gpu.device().destroy_image(image, None) };
        }
        assert_eq!(free(&fixture, level).allocation_count, 20);
        assert!(fixture.gpu.live().is_empty());
    });
}

#[test]
fn what_is_wrong_is_said() {
    let (fixture, other) = (
        Fixture::new(sublet::sim::Profile::by_name("lavapipe").unwrap()),
        Fixture::new(sublet::sim::Profile::by_name("lavapipe").unwrap()),
    );
    let priority = fixture.allocator.create_scope(&ScopeCreateInfo { priority: 1.5, ..Default::default() });
    assert!(matches!(priority, Err(CreatePoolError::Priority { .. })));
    let huge =
        fixture.allocator.create_scope(&ScopeCreateInfo { block_size: u64::MAX, ..Default::default() });
    assert!(matches!(huge, Err(CreatePoolError::BlockSize { .. })));
    let level = scope(&fixture, "level");
    let pool = fixture.pool(&PoolCreateInfo::new(0)).unwrap();
    let both = AllocationCreateInfo { pool: Some(&pool), ..AllocationCreateInfo::in_scope(&level) };
    let refused = fixture.memory(1, 1, &both).unwrap_err();
    assert_eq!(refused, AllocationError::Contradiction(Contradiction::PoolAndScope));
    let refused = other.memory(1, 1, &AllocationCreateInfo::in_scope(&level)).unwrap_err();
    assert_eq!(refused, AllocationError::ForeignPool);
    assert_eq!(other.allocator.scope_statistics(&level), Err(ForeignHandle::Pool));
    // SAFETY: nothing was allocated in it.
    let level = unsafe { other.allocator.free_scope(level) }.unwrap_err().scope;
    assert_eq!(free(&fixture, level), Statistics::default());
    fixture.destroy_pool(pool);
}

/// A scope that is never freed is reported as a leak, with its name.
#[test]
fn a_lost_scope_is_reported() {
    let fixture = Fixture::new(sublet::sim::Profile::by_name("lavapipe").unwrap());
    let level = scope(&fixture, "lost level");
    let _kept = fixture.memory(100, 1, &AllocationCreateInfo::in_scope(&level)).unwrap();
    let map = fixture.allocator.memory_map();
    assert_eq!(map.vectors[1].pool_name.as_deref(), Some("lost level"));
    drop(level);
    let Fixture { allocator, gpu } = fixture.release();
    let leaks = allocator.destroy();
    assert_eq!(leaks.len(), 1);
    assert_eq!(leaks[0].pool.as_deref(), Some("lost level"));
    assert!(gpu.live().is_empty());
}

/// A scope has its own block size. Some smaller heaps cannot hold such a block.
#[test]
fn block_sizes_are_the_scope_s() {
    on_every_gpu(|fixture| {
        let largest = fixture.profile().heaps.iter().map(|heap| heap.size).max().unwrap();
        let smallest = fixture.profile().heaps.iter().map(|heap| heap.size).min().unwrap();
        let block_size = if smallest < largest { smallest + MIB } else { 2 * MIB }.min(GIB);
        let level =
            fixture.allocator.create_scope(&ScopeCreateInfo { block_size, ..Default::default() }).unwrap();
        for memory_type in fixture.types() {
            let info = AllocationCreateInfo { scope: Some(&level), ..in_type(memory_type) };
            let held = fixture.memory(1000, 1, &info).unwrap();
            assert_eq!(held.memory_type_index(), memory_type);
            let size = fixture.memory_size(&held);
            if fixture.heap_size(memory_type) >= block_size {
                assert_eq!(size, block_size);
            } else {
                assert!(size <= fixture.block_size(memory_type));
            }
            free_one(&fixture, held);
        }
        free(&fixture, level);
    });
}

fn free_one(fixture: &Fixture, held: Allocation) {
    fixture.free(held);
    fixture.allocator.trim();
}

/// Threads that need the same pool of a scope create only one.
#[test]
fn threads_share_a_scope() {
    let fixture = Fixture::new(sublet::sim::Profile::by_name("nvidia-h200").unwrap());
    for _ in 0..20 {
        let level = scope(&fixture, "level");
        let barrier = std::sync::Barrier::new(4);
        std::thread::scope(|threads| {
            for _ in 0..4 {
                threads.spawn(|| {
                    barrier.wait();
                    for _ in 0..20 {
                        let _ = fixture.memory(256, 1, &AllocationCreateInfo::in_scope(&level)).unwrap();
                    }
                });
            }
        });
        assert_eq!(fixture.allocator.memory_map().vectors.iter().filter(|it| it.pool.is_some()).count(), 1);
        assert_eq!(free(&fixture, level).allocation_count, 80);
    }
}

/// Binding to freed memory is rejected before the driver is called.
#[test]
fn nothing_is_bound_to_what_is_gone() {
    let fixture = Fixture::new(sublet::sim::Profile::by_name("lavapipe").unwrap());
    let level = scope(&fixture, "level");
    let stale = fixture.memory(KIB, 256, &AllocationCreateInfo::in_scope(&level)).unwrap();
    free(&fixture, level);
    let info = vk::BufferCreateInfo::default().size(16).usage(vk::BufferUsageFlags::TRANSFER_DST);
    // SAFETY: the create-info is valid.
    let buffer = unsafe { fixture.gpu.device().create_buffer(&info, None) }.unwrap();
    // SAFETY: the buffer is not bound.
    let bound = unsafe { fixture.allocator.bind_buffer_memory(&stale, 0, buffer) };
    assert!(matches!(bound, Err(BindError::Foreign(_))), "{bound:?}");
    // SAFETY: the create-info is valid.
    let alias = unsafe { fixture.allocator.create_aliasing_buffer(&stale, 0, &info) };
    assert!(matches!(alias, Err(CreateError::Alias(AliasError::Foreign(_)))), "{alias:?}");
    // SAFETY: the device does not use it.
    unsafe { fixture.gpu.device().destroy_buffer(buffer, None) };
}
