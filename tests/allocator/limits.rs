//! Limits: heap sizes, budgets, the count of allocations, and requests that must not reach the driver.

use ash::vk;
use sublet::sim::{Gpu, Profile};
use sublet::{
    Allocation, AllocationCreateFlags as Flags, AllocationCreateInfo, AllocationError, CreateError,
    MemoryError, MemoryUsage, PoolCreateInfo,
};

use crate::common::*;

const QUERY: &str = "vkGetPhysicalDeviceMemoryProperties2";

/// Returns the bytes that the driver has allocated from the heap of a type.
fn taken(fixture: &Fixture, memory_type: u32) -> u64 {
    fixture.gpu.live().memory_bytes_by_heap[fixture.heap_of(memory_type) as usize]
}

#[test]
fn a_heap_limit_holds() {
    on_every_profile(|profile| {
        let limits = vec![10 * MIB; profile.heaps.len()];
        let fixture =
            Fixture::with(Gpu::new(profile), &Options { heap_size_limits: &limits, ..Options::default() });
        for memory_type in fixture.types() {
            let own = in_type_with(memory_type, Flags::DEDICATED_MEMORY);
            let mut held = Vec::new();
            let error = loop {
                match fixture.memory(MIB, 1, &own) {
                    Ok(allocation) => held.push(allocation),
                    Err(error) => break error,
                }
            };
            assert_eq!(held.len(), 10, "type {memory_type}");
            let limit = AllocationError::Memory(MemoryError::HeapLimit {
                size: MIB,
                heap: fixture.heap_of(memory_type),
                used: 10 * MIB,
                limit: 10 * MIB,
            });
            assert_eq!(error, limit);
            // Blocks are full as well, so the request fails.
            let calls = fixture.gpu.calls("vkAllocateMemory");
            let before = fixture.snapshot();
            assert!(fixture.memory(KIB, 1, &in_type(memory_type)).is_err());
            assert_eq!(fixture.gpu.calls("vkAllocateMemory"), calls, "the driver is not asked");
            assert_eq!(fixture.snapshot(), before);
            fixture.free(held.pop().unwrap());
            held.push(fixture.memory(MIB / 2, 1, &in_type(memory_type)).unwrap());
            assert!(taken(&fixture, memory_type) <= 10 * MIB);
            fixture.free_all(held);
            fixture.allocator.trim();
        }
    });
}

#[test]
fn small_allocations_fill_a_limited_heap() {
    on_every_profile(|profile| {
        let limits = vec![10 * MIB; profile.heaps.len()];
        let fixture =
            Fixture::with(Gpu::new(profile), &Options { heap_size_limits: &limits, ..Options::default() });
        let info = PoolCreateInfo {
            flags: sublet::PoolCreateFlags::IGNORE_BUFFER_IMAGE_GRANULARITY,
            ..PoolCreateInfo::new(0)
        };
        let pool = fixture.pool(&info).unwrap();
        let mut held = Vec::new();
        while let Ok(allocation) = fixture.memory(16 * KIB, 1, &AllocationCreateInfo::in_pool(&pool)) {
            held.push(allocation);
        }
        let used = held.len() as u64 * 16 * KIB;
        assert!(used >= 19 * MIB / 2, "{used} bytes are used");
        assert!(taken(&fixture, 0) <= 10 * MIB);
        assert!(taken(&fixture, 0) > 10 * MIB - 16 * KIB, "as long as there was room, there was memory");
        fixture.free_all(held);
        fixture.destroy_pool(pool);
    });
}

#[test]
fn more_than_the_heap_has_is_not_asked_for() {
    on_every_gpu(|fixture| {
        for memory_type in fixture.types() {
            let heap_size = fixture.heap_size(memory_type);
            for size in [heap_size + 1, 1 << 62, u64::MAX - 1, u64::MAX] {
                for flags in [Flags::empty(), Flags::DEDICATED_MEMORY, Flags::WITHIN_BUDGET] {
                    let error = fixture.memory(size, 1, &in_type_with(memory_type, flags)).unwrap_err();
                    let heap = fixture.heap_of(memory_type);
                    let expected =
                        AllocationError::Memory(MemoryError::HeapTooSmall { size, heap, heap_size });
                    assert_eq!(error, expected);
                    assert_eq!(error.vk_result(), vk::Result::ERROR_OUT_OF_DEVICE_MEMORY);
                }
            }
        }
        assert_eq!(fixture.gpu.calls("vkAllocateMemory"), 0);
    });
}

#[test]
fn the_number_of_allocations_is_limited() {
    on_profiles(having(|profile| profile.limits.max_memory_allocation_count == 4096), |profile| {
        let fixture = Fixture::new(profile);
        let memory_type = fixture.types().into_iter().max_by_key(|&at| fixture.heap_size(at)).unwrap();
        let own = in_type_with(memory_type, Flags::DEDICATED_MEMORY);
        let mut held: Vec<_> = (0..4096).map(|_| fixture.memory(KIB, 1, &own).unwrap()).collect();
        let before = fixture.snapshot();
        for info in [own, in_type(memory_type)] {
            let error = fixture.memory(KIB, 1, &info).unwrap_err();
            assert_eq!(error, AllocationError::Memory(MemoryError::TooManyAllocations { limit: 4096 }));
            assert_eq!(error.vk_result(), vk::Result::ERROR_TOO_MANY_OBJECTS);
        }
        assert_eq!(fixture.gpu.calls("vkAllocateMemory"), 4096, "the driver is not asked for one too many");
        assert_eq!(fixture.snapshot(), before);
        // Freeing one memory permits one new block, which then holds the small allocations.
        fixture.free(held.pop().unwrap());
        held.push(fixture.memory(KIB, 1, &in_type(memory_type)).unwrap());
        held.extend((0..100).map(|_| fixture.memory(KIB, 1, &in_type(memory_type)).unwrap()));
        fixture.free_all(held);
    });
}

/// The ways to allocate memory from the driver.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Way {
    Blocks,
    ManagedPool,
    FixedPool,
    Asked,
    Preferred,
    LastResort,
}

const WAYS: [Way; 6] =
    [Way::Blocks, Way::ManagedPool, Way::FixedPool, Way::Asked, Way::Preferred, Way::LastResort];

/// Allocates by one way with `WITHIN_BUDGET` until a request fails. The usage never exceeds the budget.
fn stays_within(fixture: &Fixture, memory_type: u32, way: Way, budget: u64) {
    let pool = match way {
        Way::ManagedPool => Some(PoolCreateInfo::new(memory_type)),
        Way::FixedPool => Some(PoolCreateInfo { block_size: 4 * MIB, ..PoolCreateInfo::new(memory_type) }),
        _ => None,
    };
    let pool = pool.map(|info| fixture.pool(&info).unwrap());
    let flags = if way == Way::Asked { Flags::DEDICATED_MEMORY } else { Flags::empty() };
    let info = AllocationCreateInfo {
        pool: pool.as_ref(),
        ..in_type_with(memory_type, flags | Flags::WITHIN_BUDGET)
    };
    let size = match way {
        Way::Preferred => fixture.block_size(memory_type) / 2 + 1,
        _ => MIB,
    };
    if way == Way::LastResort {
        fixture.gpu.faults().fail_above(MIB);
    }
    let mut held: Vec<Allocation> = Vec::new();
    let error = loop {
        assert!(taken(fixture, memory_type) <= budget, "{way:?} in type {memory_type} passes the budget");
        match fixture.memory(size, 1, &info) {
            Ok(allocation) => held.push(allocation),
            Err(error) => break error,
        }
    };
    let over = matches!(error, AllocationError::Memory(MemoryError::OverBudget { .. }));
    assert!(over, "{way:?}: {error:?}");
    assert_eq!(error.vk_result(), vk::Result::ERROR_OUT_OF_DEVICE_MEMORY);
    if way != Way::Preferred {
        let granted = held.len() as u64 * MIB;
        assert!(granted + 16 * MIB >= budget, "{way:?}: only {granted} of {budget}");
    }
    if matches!(way, Way::Asked | Way::Preferred) {
        assert!(held.iter().all(Allocation::is_dedicated), "{way:?}");
    }
    if way == Way::LastResort {
        // In small heaps, the last blocks are small enough for the driver to grant.
        assert!(held[0].is_dedicated(), "{way:?}");
    }
    // Without the flag, the budget is only a hint.
    fixture.gpu.faults().fail_above(u64::MAX);
    held.push(fixture.memory(size, 1, &AllocationCreateInfo { flags, ..info }).unwrap());
    fixture.free_all(held);
    if let Some(pool) = pool {
        fixture.destroy_pool(pool);
    }
    fixture.allocator.trim();
}

#[test]
fn within_the_drivers_budget_on_every_way() {
    on_profiles(having(|profile| profile.features.memory_budget), |profile| {
        for way in WAYS {
            let fixture = Fixture::new(profile);
            for memory_type in fixture.types() {
                // The budget permits one large allocation, or many small ones.
                let budget = fixture.block_size(memory_type) / 2 + 20 * MIB;
                fixture.gpu.faults().set_budget(fixture.heap_of(memory_type), budget, 0);
                fixture.allocator.set_current_frame_index(memory_type);
                stays_within(&fixture, memory_type, way, budget);
                fixture.gpu.faults().clear();
                fixture.allocator.set_current_frame_index(memory_type);
            }
        }
    });
}

#[test]
fn within_the_guessed_budget_on_every_way() {
    on_every_profile(|profile| {
        for way in WAYS {
            let gpu = Gpu::new(profile);
            let limits = vec![100 * MIB; profile.heaps.len()];
            let fixture = {
                let options = Options { heap_size_limits: &limits, ..Options::without_budget(&gpu) };
                Fixture::with(gpu, &options)
            };
            for memory_type in fixture.types() {
                if way == Way::Preferred {
                    continue; // The heap is small now, and so are its blocks: see below.
                }
                stays_within(&fixture, memory_type, way, 80 * MIB);
            }
            assert_eq!(fixture.gpu.calls(QUERY), 0);
        }
    });
}

#[test]
fn dedicated_by_preference_stays_within_the_guessed_budget() {
    on_every_profile(|profile| {
        let gpu = Gpu::new(profile);
        let limits = vec![100 * MIB; profile.heaps.len()];
        let options = Options { heap_size_limits: &limits, ..Options::without_budget(&gpu) };
        let fixture = Fixture::with(gpu, &options);
        // Blocks have 12.5 MiB, so 10 MiB is more than half of one, and two do not fit.
        let info = in_type_with(0, Flags::WITHIN_BUDGET);
        let held: Vec<_> = std::iter::from_fn(|| fixture.memory(10 * MIB, 1, &info).ok()).collect();
        assert_eq!(held.len(), 8);
        assert!(held.iter().all(Allocation::is_dedicated));
        fixture.free_all(held);
    });
}

#[test]
fn within_the_budget_for_lazily_allocated_memory() {
    on_profiles(having(|profile| profile.types.iter().any(|kind| kind.flags.contains(LAZY))), |profile| {
        let gpu = Gpu::new(profile);
        let limits = vec![MIB; profile.heaps.len()];
        let options = Options { heap_size_limits: &limits, ..Options::without_budget(&gpu) };
        let fixture = Fixture::with(gpu, &options);
        let lazily = with_flags(MemoryUsage::GpuLazilyAllocated, Flags::WITHIN_BUDGET);
        let usage = vk::ImageUsageFlags::TRANSIENT_ATTACHMENT | vk::ImageUsageFlags::COLOR_ATTACHMENT;
        let error = fixture.image(&square(512, usage), &lazily).unwrap_err();
        assert!(
            matches!(error, CreateError::Allocation(AllocationError::Memory(MemoryError::OverBudget { .. }))),
            "{error:?}"
        );
        assert!(fixture.gpu.live().is_empty());
    });
}

/// The allocator notices the usage of other processes after a while, without an explicit update.
#[test]
fn a_budget_that_shrinks_is_seen_by_dedicated_allocations() {
    on_profiles(having(|profile| profile.features.memory_budget), |profile| {
        let fixture = Fixture::new(profile);
        let own = in_type_with(0, Flags::DEDICATED_MEMORY | Flags::WITHIN_BUDGET);
        fixture.free(fixture.memory(KIB, 1, &own).unwrap());
        fixture.gpu.faults().set_budget(fixture.heap_of(0), MIB, MIB);
        let held: Vec<_> = std::iter::from_fn(|| fixture.memory(KIB, 1, &own).ok()).take(1000).collect();
        assert!(held.len() <= 30, "{} allocations on old figures", held.len());
        fixture.free_all(held);
    });
}

/// The same for a growing vector, which then creates smaller blocks.
#[test]
fn a_budget_that_shrinks_is_seen_by_growing_vectors() {
    on_profiles(having(|profile| profile.features.memory_budget), |profile| {
        let fixture = Fixture::new(profile);
        let own = in_type_with(0, Flags::DEDICATED_MEMORY);
        fixture.gpu.faults().set_budget(fixture.heap_of(0), MIB, MIB);
        let mut held: Vec<_> = (0..30).map(|_| fixture.memory(KIB, 1, &own).unwrap()).collect();
        held.push(fixture.memory(KIB, 1, &in_type(0)).unwrap());
        let block = fixture.memory_size(held.last().unwrap());
        assert!(block <= fixture.block_size(0) / 32, "a block of {block} bytes on old figures");
        fixture.free_all(held);
        fixture.gpu.faults().clear();
    });
}

#[test]
fn warm_allocations_do_not_ask_for_budgets() {
    on_every_gpu(|fixture| {
        let kept = fixture.memory(KIB, 1, &in_type(0)).unwrap();
        fixture.gpu.reset_calls();
        for round in 0..10_000_u32 {
            let flags = if round % 2 == 0 { Flags::empty() } else { Flags::WITHIN_BUDGET };
            fixture.free(fixture.memory(KIB, 1, &in_type_with(0, flags)).unwrap());
        }
        assert_eq!(fixture.gpu.call_counts(), [], "the driver is not called at all");
        fixture.free(kept);
    });
}

#[test]
fn a_new_frame_asks_once() {
    on_every_gpu(|fixture| {
        let asked = u64::from(fixture.profile().features.memory_budget);
        fixture.allocator.set_current_frame_index(1);
        assert_eq!(fixture.gpu.calls(QUERY), asked);
        let _ = fixture.allocator.heap_budgets();
        assert_eq!(fixture.gpu.calls(QUERY), asked, "nothing changed hands since");
    });
}

#[test]
fn budgets_add_up() {
    on_every_profile(|profile| {
        for with_extension in [true, false] {
            let gpu = Gpu::new(profile);
            let options = if with_extension { Options::default() } else { Options::without_budget(&gpu) };
            let fixture = Fixture::with(gpu, &options);
            let from_driver = with_extension && profile.features.memory_budget;
            let before = fixture.allocator.heap_budgets();
            assert_eq!(before.len(), profile.heaps.len());
            if !from_driver {
                for (budget, heap) in before.iter().zip(profile.heaps) {
                    assert_eq!((budget.usage, budget.budget), (0, heap.size * 8 / 10));
                }
            }
            let own = in_type_with(0, Flags::DEDICATED_MEMORY);
            let held =
                [fixture.memory(3 * MIB, 1, &own).unwrap(), fixture.memory(KIB, 1, &in_type(0)).unwrap()];
            let heap = fixture.heap_of(0) as usize;
            let now = fixture.allocator.heap_budgets()[heap];
            assert_eq!(now.usage - before[heap].usage, fixture.gpu.live().memory_bytes_by_heap[heap]);
            assert_eq!(now.statistics.allocation_count, 2);
            assert_eq!(now.statistics.block_count, 2);
            assert_eq!(now.statistics.block_bytes, fixture.gpu.live().memory_bytes_by_heap[heap]);
            assert!(now.statistics.allocation_bytes >= 3 * MIB + KIB);
            if from_driver {
                // The allocator adds its own changes since the last query to the usage that the driver reports.
                fixture.gpu.faults().set_budget(heap as u32, 77 * MIB, 55 * MIB);
                fixture.allocator.set_current_frame_index(9);
                let third = fixture.memory(MIB, 1, &own).unwrap();
                let now = fixture.allocator.heap_budgets()[heap];
                assert_eq!((now.usage, now.budget), (56 * MIB, 77 * MIB));
                fixture.free(third);
                assert_eq!(fixture.allocator.heap_budgets()[heap].usage, 55 * MIB);
            }
            fixture.free_all(held);
        }
    });
}

/// The program's limit on a heap caps its budget, whatever the driver reports.
#[test]
fn a_limit_limits_the_budget() {
    on_every_profile(|profile| {
        let limits = vec![50 * MIB; profile.heaps.len()];
        let fixture =
            Fixture::with(Gpu::new(profile), &Options { heap_size_limits: &limits, ..Options::default() });
        let expected = if profile.features.memory_budget { 50 * MIB } else { 50 * MIB * 8 / 10 };
        for budget in fixture.allocator.heap_budgets() {
            assert_eq!(budget.budget, expected);
        }
    });
}

#[test]
fn over_the_budget_small_allocations_share_small_blocks() {
    on_every_profile(|profile| {
        for with_extension in [true, false] {
            if with_extension && !profile.features.memory_budget {
                continue;
            }
            let gpu = Gpu::new(profile);
            let options = if with_extension { Options::default() } else { Options::without_budget(&gpu) };
            let fixture = Fixture::with(gpu, &options);
            let memory_type = fixture.types().into_iter().max_by_key(|&at| fixture.heap_size(at)).unwrap();
            let heap = fixture.heap_of(memory_type);
            let mut held = Vec::new();
            if with_extension {
                fixture.gpu.faults().set_budget(heap, GIB, GIB);
                fixture.allocator.set_current_frame_index(1);
            } else {
                let own = in_type_with(memory_type, Flags::DEDICATED_MEMORY);
                let most = profile.limits.max_memory_allocation_size.min(fixture.heap_size(memory_type) / 10);
                while fixture.allocator.heap_budgets()[heap as usize].usage
                    < fixture.heap_size(memory_type) * 8 / 10
                {
                    held.push(fixture.memory(most, 1, &own).unwrap());
                }
            }
            fixture.gpu.reset_calls();
            for _ in 0..1024 {
                held.push(fixture.memory(64 * KIB, 1, &in_type(memory_type)).unwrap());
            }
            let calls = fixture.gpu.calls("vkAllocateMemory");
            assert!(calls <= 80, "{calls} calls for 1,024 allocations of 64 KiB");
            let bytes = fixture.statistics(memory_type).block_bytes;
            let used = fixture.statistics(memory_type).allocation_bytes;
            assert!(bytes - used <= fixture.block_size(memory_type) / 32, "blocks are small now");
            fixture.free_all(held);
        }
    });
}

#[test]
fn never_allocate_takes_only_what_is_there() {
    on_every_gpu(|fixture| {
        for memory_type in fixture.types() {
            let never = in_type_with(memory_type, Flags::NEVER_ALLOCATE);
            fixture.gpu.reset_calls();
            let error = fixture.memory(KIB, 1, &never).unwrap_err();
            assert!(
                matches!(error, AllocationError::Full { max_block_count: 0, block_count: 0, free: 0, .. }),
                "{error:?}"
            );
            let half = fixture.block_size(memory_type) / 2;
            assert!(fixture.memory(half + 1, 1, &never).is_err(), "nothing dedicated either");
            assert!(fixture.memory(4 * half, 1, &never).is_err());
            assert_eq!(fixture.gpu.calls("vkAllocateMemory"), 0);
            let first = fixture.memory(KIB, 1, &in_type(memory_type)).unwrap();
            let second = fixture.memory(KIB, 1, &never).unwrap();
            assert_eq!(first.memory(), second.memory());
            let mut held = vec![first, second];
            while let Ok(more) = fixture.memory(fixture.block_size(memory_type) / 64, 1, &never) {
                held.push(more);
            }
            assert_eq!(fixture.gpu.calls("vkAllocateMemory"), 1);
            assert_eq!(fixture.gpu.live().memories, 1);
            fixture.free_all(held);
            fixture.allocator.trim();
        }
    });
}

#[test]
fn a_pool_that_is_full_says_so_in_figures() {
    on_every_gpu(|fixture| {
        let info = PoolCreateInfo { block_size: MIB, max_block_count: 2, ..PoolCreateInfo::new(0) };
        let pool = fixture.pool(&info).unwrap();
        let in_pool = AllocationCreateInfo::in_pool(&pool);
        // 768 KiB is a multiple of every granularity page size.
        let held = [
            fixture.memory(768 * KIB, 1, &in_pool).unwrap(),
            fixture.memory(640 * KIB, 1, &in_pool).unwrap(),
        ];
        let error = fixture.memory(512 * KIB, 256, &in_pool).unwrap_err();
        let AllocationError::Full { size, alignment, free, largest_free, block_count, max_block_count } =
            error
        else {
            panic!("{error:?}");
        };
        assert_eq!((size, block_count, max_block_count), (512 * KIB, 2, 2));
        assert_eq!(
            alignment,
            fixture.profile().limits.buffer_image_granularity.max(256).max(alignment.min(256))
        );
        assert_eq!((free, largest_free), ((256 + 384) * KIB, 384 * KIB));
        assert_eq!(fixture.gpu.live().memories, 2);
        let error = fixture.memory(MIB + 1, 1, &in_pool).unwrap_err();
        assert!(matches!(error, AllocationError::BlockTooSmall { block_size: MIB, .. }), "{error:?}");
        fixture.free_all(held);
        fixture.destroy_pool(pool);
    });
}

/// A request with `NEVER_ALLOCATE` fails only after all suitable memory types are full.
#[test]
fn what_may_take_no_block_goes_on_to_the_next_memory_type() {
    let fixture = Fixture::new(Profile::by_name("nvidia-h200").unwrap());
    let info = AllocationCreateInfo::new(MemoryUsage::GpuOnly);
    let mut held = vec![fixture.memory(MIB, 1, &info).unwrap()];
    let best = held[0].memory_type_index();
    let elsewhere = AllocationCreateInfo { memory_type_bits: !(1 << best), ..info };
    held.push(fixture.memory(MIB, 1, &elsewhere).unwrap());
    let second = held[1].memory_type_index();
    let (mut full, calls) = (false, fixture.gpu.calls("vkAllocateMemory"));
    loop {
        match fixture.memory(MIB, 1, &AllocationCreateInfo { flags: Flags::NEVER_ALLOCATE, ..info }) {
            Ok(allocation) => {
                full |= allocation.memory_type_index() == second;
                held.push(allocation);
            }
            Err(error) => {
                assert!(matches!(error, AllocationError::Full { max_block_count: 0, .. }), "{error}");
                break;
            }
        }
    }
    assert!(full, "the second type was not tried");
    assert_eq!(fixture.gpu.calls("vkAllocateMemory"), calls);
    fixture.free_all(held);
}
