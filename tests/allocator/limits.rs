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
fn taken(rig: &Rig, memory_type: u32) -> u64 {
    rig.gpu.live().memory_bytes_by_heap[rig.heap_of(memory_type) as usize]
}

#[test]
fn a_heap_limit_holds() {
    on_every_profile(|profile| {
        let limits = vec![10 * MIB; profile.heaps.len()];
        let rig = Rig::with(Gpu::new(profile), &Options { heap_size_limits: &limits, ..Options::default() });
        for memory_type in rig.types() {
            let own = in_type_with(memory_type, Flags::DEDICATED_MEMORY);
            let mut held = Vec::new();
            let error = loop {
                match rig.memory(MIB, 1, &own) {
                    Ok(allocation) => held.push(allocation),
                    Err(error) => break error,
                }
            };
            assert_eq!(held.len(), 10, "type {memory_type}");
            let limit = AllocationError::Memory(MemoryError::HeapLimit {
                size: MIB,
                heap: rig.heap_of(memory_type),
                used: 10 * MIB,
                limit: 10 * MIB,
            });
            assert_eq!(error, limit);
            // Blocks are full as well, so the request fails.
            let calls = rig.gpu.calls("vkAllocateMemory");
            let before = rig.snapshot();
            assert!(rig.memory(KIB, 1, &in_type(memory_type)).is_err());
            assert_eq!(rig.gpu.calls("vkAllocateMemory"), calls, "the driver is not asked");
            assert_eq!(rig.snapshot(), before);
            rig.free(held.pop().unwrap());
            held.push(rig.memory(MIB / 2, 1, &in_type(memory_type)).unwrap());
            assert!(taken(&rig, memory_type) <= 10 * MIB);
            rig.free_all(held);
            rig.allocator.trim();
        }
    });
}

#[test]
fn small_allocations_fill_a_limited_heap() {
    on_every_profile(|profile| {
        let limits = vec![10 * MIB; profile.heaps.len()];
        let rig = Rig::with(Gpu::new(profile), &Options { heap_size_limits: &limits, ..Options::default() });
        let info = PoolCreateInfo {
            flags: sublet::PoolCreateFlags::IGNORE_BUFFER_IMAGE_GRANULARITY,
            ..PoolCreateInfo::new(0)
        };
        let pool = rig.pool(&info).unwrap();
        let mut held = Vec::new();
        while let Ok(allocation) = rig.memory(16 * KIB, 1, &AllocationCreateInfo::in_pool(&pool)) {
            held.push(allocation);
        }
        let used = held.len() as u64 * 16 * KIB;
        assert!(used >= 19 * MIB / 2, "{used} bytes are used");
        assert!(taken(&rig, 0) <= 10 * MIB);
        assert!(taken(&rig, 0) > 10 * MIB - 16 * KIB, "as long as there was room, there was memory");
        rig.free_all(held);
        rig.destroy_pool(pool);
    });
}

#[test]
fn more_than_the_heap_has_is_not_asked_for() {
    on_every_gpu(|rig| {
        for memory_type in rig.types() {
            let heap_size = rig.heap_size(memory_type);
            for size in [heap_size + 1, 1 << 62, u64::MAX - 1, u64::MAX] {
                for flags in [Flags::empty(), Flags::DEDICATED_MEMORY, Flags::WITHIN_BUDGET] {
                    let error = rig.memory(size, 1, &in_type_with(memory_type, flags)).unwrap_err();
                    let heap = rig.heap_of(memory_type);
                    let expected =
                        AllocationError::Memory(MemoryError::HeapTooSmall { size, heap, heap_size });
                    assert_eq!(error, expected);
                    assert_eq!(error.vk_result(), vk::Result::ERROR_OUT_OF_DEVICE_MEMORY);
                }
            }
        }
        assert_eq!(rig.gpu.calls("vkAllocateMemory"), 0);
    });
}

#[test]
fn the_number_of_allocations_is_limited() {
    on_profiles(having(|profile| profile.limits.max_memory_allocation_count == 4096), |profile| {
        let rig = Rig::new(profile);
        let memory_type = rig.types().into_iter().max_by_key(|&at| rig.heap_size(at)).unwrap();
        let own = in_type_with(memory_type, Flags::DEDICATED_MEMORY);
        let mut held: Vec<_> = (0..4096).map(|_| rig.memory(KIB, 1, &own).unwrap()).collect();
        let before = rig.snapshot();
        for info in [own, in_type(memory_type)] {
            let error = rig.memory(KIB, 1, &info).unwrap_err();
            assert_eq!(error, AllocationError::Memory(MemoryError::TooManyAllocations { limit: 4096 }));
            assert_eq!(error.vk_result(), vk::Result::ERROR_TOO_MANY_OBJECTS);
        }
        assert_eq!(rig.gpu.calls("vkAllocateMemory"), 4096, "the driver is not asked for one too many");
        assert_eq!(rig.snapshot(), before);
        // Freeing one memory permits one new block, which then holds the small allocations.
        rig.free(held.pop().unwrap());
        held.push(rig.memory(KIB, 1, &in_type(memory_type)).unwrap());
        held.extend((0..100).map(|_| rig.memory(KIB, 1, &in_type(memory_type)).unwrap()));
        rig.free_all(held);
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
fn stays_within(rig: &Rig, memory_type: u32, way: Way, budget: u64) {
    let pool = match way {
        Way::ManagedPool => Some(PoolCreateInfo::new(memory_type)),
        Way::FixedPool => Some(PoolCreateInfo { block_size: 4 * MIB, ..PoolCreateInfo::new(memory_type) }),
        _ => None,
    };
    let pool = pool.map(|info| rig.pool(&info).unwrap());
    let flags = if way == Way::Asked { Flags::DEDICATED_MEMORY } else { Flags::empty() };
    let info = AllocationCreateInfo {
        pool: pool.as_ref(),
        ..in_type_with(memory_type, flags | Flags::WITHIN_BUDGET)
    };
    let size = match way {
        Way::Preferred => rig.block_size(memory_type) / 2 + 1,
        _ => MIB,
    };
    if way == Way::LastResort {
        rig.gpu.faults().fail_above(MIB);
    }
    let mut held: Vec<Allocation> = Vec::new();
    let error = loop {
        assert!(taken(rig, memory_type) <= budget, "{way:?} in type {memory_type} passes the budget");
        match rig.memory(size, 1, &info) {
            Ok(allocation) => held.push(allocation),
            Err(error) => break error,
        }
    };
    let over = matches!(error, AllocationError::Memory(MemoryError::OverBudget { .. }));
    assert!(over, "{way:?}: {error:?}");
    assert_eq!(error.vk_result(), vk::Result::ERROR_OUT_OF_DEVICE_MEMORY);
    if way != Way::Preferred {
        let granted = held.len() as u64 * MIB;
        assert!(granted + 8 * MIB >= budget, "{way:?}: only {granted} of {budget}");
    }
    if matches!(way, Way::Asked | Way::Preferred) {
        assert!(held.iter().all(Allocation::is_dedicated), "{way:?}");
    }
    if way == Way::LastResort {
        // In small heaps, the last blocks are small enough for the driver to grant.
        assert!(held[0].is_dedicated(), "{way:?}");
    }
    // Without the flag, the budget is only a hint.
    rig.gpu.faults().fail_above(u64::MAX);
    held.push(rig.memory(size, 1, &AllocationCreateInfo { flags, ..info }).unwrap());
    rig.free_all(held);
    if let Some(pool) = pool {
        rig.destroy_pool(pool);
    }
    rig.allocator.trim();
}

#[test]
fn within_the_drivers_budget_on_every_way() {
    on_profiles(having(|profile| profile.features.memory_budget), |profile| {
        for way in WAYS {
            let rig = Rig::new(profile);
            for memory_type in rig.types() {
                // The budget permits one large allocation, or many small ones.
                let budget = rig.block_size(memory_type) / 2 + 20 * MIB;
                rig.gpu.faults().set_budget(rig.heap_of(memory_type), budget, 0);
                rig.allocator.set_current_frame_index(memory_type);
                stays_within(&rig, memory_type, way, budget);
                rig.gpu.faults().clear();
                rig.allocator.set_current_frame_index(memory_type);
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
            let rig = {
                let options = Options { heap_size_limits: &limits, ..Options::without_budget(&gpu) };
                Rig::with(gpu, &options)
            };
            for memory_type in rig.types() {
                if way == Way::Preferred {
                    continue; // The heap is small now, and so are its blocks: see below.
                }
                stays_within(&rig, memory_type, way, 80 * MIB);
            }
            assert_eq!(rig.gpu.calls(QUERY), 0);
        }
    });
}

#[test]
fn dedicated_by_preference_stays_within_the_guessed_budget() {
    on_every_profile(|profile| {
        let gpu = Gpu::new(profile);
        let limits = vec![100 * MIB; profile.heaps.len()];
        let options = Options { heap_size_limits: &limits, ..Options::without_budget(&gpu) };
        let rig = Rig::with(gpu, &options);
        // Blocks have 12.5 MiB, so 10 MiB is more than half of one, and two do not fit.
        let info = in_type_with(0, Flags::WITHIN_BUDGET);
        let held: Vec<_> = std::iter::from_fn(|| rig.memory(10 * MIB, 1, &info).ok()).collect();
        assert_eq!(held.len(), 8);
        assert!(held.iter().all(Allocation::is_dedicated));
        rig.free_all(held);
    });
}

#[test]
fn within_the_budget_for_lazily_allocated_memory() {
    on_profiles(having(|profile| profile.types.iter().any(|kind| kind.flags.contains(LAZY))), |profile| {
        let gpu = Gpu::new(profile);
        let limits = vec![MIB; profile.heaps.len()];
        let options = Options { heap_size_limits: &limits, ..Options::without_budget(&gpu) };
        let rig = Rig::with(gpu, &options);
        let lazily = with_flags(MemoryUsage::GpuLazilyAllocated, Flags::WITHIN_BUDGET);
        let usage = vk::ImageUsageFlags::TRANSIENT_ATTACHMENT | vk::ImageUsageFlags::COLOR_ATTACHMENT;
        let error = rig.image(&square(512, usage), &lazily).unwrap_err();
        assert!(
            matches!(error, CreateError::Allocation(AllocationError::Memory(MemoryError::OverBudget { .. }))),
            "{error:?}"
        );
        assert!(rig.gpu.live().is_empty());
    });
}

/// The allocator notices the usage of other processes after a while, without an explicit update.
#[test]
fn a_budget_that_shrinks_is_seen_by_dedicated_allocations() {
    on_profiles(having(|profile| profile.features.memory_budget), |profile| {
        let rig = Rig::new(profile);
        let own = in_type_with(0, Flags::DEDICATED_MEMORY | Flags::WITHIN_BUDGET);
        rig.free(rig.memory(KIB, 1, &own).unwrap());
        rig.gpu.faults().set_budget(rig.heap_of(0), MIB, MIB);
        let held: Vec<_> = std::iter::from_fn(|| rig.memory(KIB, 1, &own).ok()).take(1000).collect();
        assert!(held.len() <= 30, "{} allocations on old figures", held.len());
        rig.free_all(held);
    });
}

/// The same for a growing vector, which then creates smaller blocks.
#[test]
fn a_budget_that_shrinks_is_seen_by_growing_vectors() {
    on_profiles(having(|profile| profile.features.memory_budget), |profile| {
        let rig = Rig::new(profile);
        let own = in_type_with(0, Flags::DEDICATED_MEMORY);
        rig.gpu.faults().set_budget(rig.heap_of(0), MIB, MIB);
        let mut held: Vec<_> = (0..30).map(|_| rig.memory(KIB, 1, &own).unwrap()).collect();
        held.push(rig.memory(KIB, 1, &in_type(0)).unwrap());
        let block = rig.memory_size(held.last().unwrap());
        assert!(block <= rig.block_size(0) / 32, "a block of {block} bytes on old figures");
        rig.free_all(held);
        rig.gpu.faults().clear();
    });
}

#[test]
fn warm_allocations_do_not_ask_for_budgets() {
    on_every_gpu(|rig| {
        let kept = rig.memory(KIB, 1, &in_type(0)).unwrap();
        rig.gpu.reset_calls();
        for round in 0..10_000_u32 {
            let flags = if round % 2 == 0 { Flags::empty() } else { Flags::WITHIN_BUDGET };
            rig.free(rig.memory(KIB, 1, &in_type_with(0, flags)).unwrap());
        }
        assert_eq!(rig.gpu.call_counts(), [], "the driver is not called at all");
        rig.free(kept);
    });
}

#[test]
fn a_new_frame_asks_once() {
    on_every_gpu(|rig| {
        let asked = u64::from(rig.profile().features.memory_budget);
        rig.allocator.set_current_frame_index(1);
        assert_eq!(rig.gpu.calls(QUERY), asked);
        let _ = rig.allocator.heap_budgets();
        assert_eq!(rig.gpu.calls(QUERY), asked, "nothing changed hands since");
    });
}

#[test]
fn budgets_add_up() {
    on_every_profile(|profile| {
        for with_extension in [true, false] {
            let gpu = Gpu::new(profile);
            let options = if with_extension { Options::default() } else { Options::without_budget(&gpu) };
            let rig = Rig::with(gpu, &options);
            let from_driver = with_extension && profile.features.memory_budget;
            let before = rig.allocator.heap_budgets();
            assert_eq!(before.len(), profile.heaps.len());
            if !from_driver {
                for (budget, heap) in before.iter().zip(profile.heaps) {
                    assert_eq!((budget.usage, budget.budget), (0, heap.size * 8 / 10));
                }
            }
            let own = in_type_with(0, Flags::DEDICATED_MEMORY);
            let held = [rig.memory(3 * MIB, 1, &own).unwrap(), rig.memory(KIB, 1, &in_type(0)).unwrap()];
            let heap = rig.heap_of(0) as usize;
            let now = rig.allocator.heap_budgets()[heap];
            assert_eq!(now.usage - before[heap].usage, rig.gpu.live().memory_bytes_by_heap[heap]);
            assert_eq!(now.statistics.allocation_count, 2);
            assert_eq!(now.statistics.block_count, 2);
            assert_eq!(now.statistics.block_bytes, rig.gpu.live().memory_bytes_by_heap[heap]);
            assert!(now.statistics.allocation_bytes >= 3 * MIB + KIB);
            if from_driver {
                // The allocator adds its own changes since the last query to the usage that the driver reports.
                rig.gpu.faults().set_budget(heap as u32, 77 * MIB, 55 * MIB);
                rig.allocator.set_current_frame_index(9);
                let third = rig.memory(MIB, 1, &own).unwrap();
                let now = rig.allocator.heap_budgets()[heap];
                assert_eq!((now.usage, now.budget), (56 * MIB, 77 * MIB));
                rig.free(third);
                assert_eq!(rig.allocator.heap_budgets()[heap].usage, 55 * MIB);
            }
            rig.free_all(held);
        }
    });
}

/// The program's limit on a heap caps its budget, whatever the driver reports.
#[test]
fn a_limit_limits_the_budget() {
    on_every_profile(|profile| {
        let limits = vec![50 * MIB; profile.heaps.len()];
        let rig = Rig::with(Gpu::new(profile), &Options { heap_size_limits: &limits, ..Options::default() });
        let expected = if profile.features.memory_budget { 50 * MIB } else { 50 * MIB * 8 / 10 };
        for budget in rig.allocator.heap_budgets() {
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
            let rig = Rig::with(gpu, &options);
            let memory_type = rig.types().into_iter().max_by_key(|&at| rig.heap_size(at)).unwrap();
            let heap = rig.heap_of(memory_type);
            let mut held = Vec::new();
            if with_extension {
                rig.gpu.faults().set_budget(heap, GIB, GIB);
                rig.allocator.set_current_frame_index(1);
            } else {
                let own = in_type_with(memory_type, Flags::DEDICATED_MEMORY);
                let most = profile.limits.max_memory_allocation_size.min(rig.heap_size(memory_type) / 10);
                while rig.allocator.heap_budgets()[heap as usize].usage < rig.heap_size(memory_type) * 8 / 10
                {
                    held.push(rig.memory(most, 1, &own).unwrap());
                }
            }
            rig.gpu.reset_calls();
            for _ in 0..1024 {
                held.push(rig.memory(64 * KIB, 1, &in_type(memory_type)).unwrap());
            }
            let calls = rig.gpu.calls("vkAllocateMemory");
            assert!(calls <= 80, "{calls} calls for 1,024 allocations of 64 KiB");
            let bytes = rig.statistics(memory_type).block_bytes;
            let used = rig.statistics(memory_type).allocation_bytes;
            assert!(bytes - used <= rig.block_size(memory_type) / 32, "blocks are small now");
            rig.free_all(held);
        }
    });
}

#[test]
fn never_allocate_takes_only_what_is_there() {
    on_every_gpu(|rig| {
        for memory_type in rig.types() {
            let never = in_type_with(memory_type, Flags::NEVER_ALLOCATE);
            rig.gpu.reset_calls();
            let error = rig.memory(KIB, 1, &never).unwrap_err();
            assert!(
                matches!(error, AllocationError::Full { max_block_count: 0, block_count: 0, free: 0, .. }),
                "{error:?}"
            );
            let half = rig.block_size(memory_type) / 2;
            assert!(rig.memory(half + 1, 1, &never).is_err(), "nothing dedicated either");
            assert!(rig.memory(4 * half, 1, &never).is_err());
            assert_eq!(rig.gpu.calls("vkAllocateMemory"), 0);
            let first = rig.memory(KIB, 1, &in_type(memory_type)).unwrap();
            let second = rig.memory(KIB, 1, &never).unwrap();
            assert_eq!(first.memory(), second.memory());
            let mut held = vec![first, second];
            while let Ok(more) = rig.memory(rig.block_size(memory_type) / 64, 1, &never) {
                held.push(more);
            }
            assert_eq!(rig.gpu.calls("vkAllocateMemory"), 1);
            assert_eq!(rig.gpu.live().memories, 1);
            rig.free_all(held);
            rig.allocator.trim();
        }
    });
}

#[test]
fn a_pool_that_is_full_says_so_in_figures() {
    on_every_gpu(|rig| {
        let info = PoolCreateInfo { block_size: MIB, max_block_count: 2, ..PoolCreateInfo::new(0) };
        let pool = rig.pool(&info).unwrap();
        let in_pool = AllocationCreateInfo::in_pool(&pool);
        // 768 KiB is a multiple of every granularity page size.
        let held = [rig.memory(768 * KIB, 1, &in_pool).unwrap(), rig.memory(640 * KIB, 1, &in_pool).unwrap()];
        let error = rig.memory(512 * KIB, 256, &in_pool).unwrap_err();
        let AllocationError::Full { size, alignment, free, largest_free, block_count, max_block_count } =
            error
        else {
            panic!("{error:?}");
        };
        assert_eq!((size, block_count, max_block_count), (512 * KIB, 2, 2));
        assert_eq!(alignment, rig.profile().limits.buffer_image_granularity.max(256).max(alignment.min(256)));
        assert_eq!((free, largest_free), ((256 + 384) * KIB, 384 * KIB));
        assert_eq!(rig.gpu.live().memories, 2);
        let error = rig.memory(MIB + 1, 1, &in_pool).unwrap_err();
        assert!(matches!(error, AllocationError::BlockTooSmall { block_size: MIB, .. }), "{error:?}");
        rig.free_all(held);
        rig.destroy_pool(pool);
    });
}

/// A request with `NEVER_ALLOCATE` fails only after all suitable memory types are full.
#[test]
fn what_may_take_no_block_goes_on_to_the_next_memory_type() {
    let rig = Rig::new(Profile::by_name("nvidia-h200").unwrap());
    let info = AllocationCreateInfo::new(MemoryUsage::GpuOnly);
    let mut held = vec![rig.memory(MIB, 1, &info).unwrap()];
    let best = held[0].memory_type_index();
    let elsewhere = AllocationCreateInfo { memory_type_bits: !(1 << best), ..info };
    held.push(rig.memory(MIB, 1, &elsewhere).unwrap());
    let second = held[1].memory_type_index();
    let (mut full, calls) = (false, rig.gpu.calls("vkAllocateMemory"));
    loop {
        match rig.memory(MIB, 1, &AllocationCreateInfo { flags: Flags::NEVER_ALLOCATE, ..info }) {
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
    assert_eq!(rig.gpu.calls("vkAllocateMemory"), calls);
    rig.free_all(held);
}
