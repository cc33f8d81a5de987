//! Memory shortage: before a request fails, empty blocks are freed, but only those that help.

use ash::vk;
use sublet::sim::{Gpu, Profile};
use sublet::{
    AllocationCreateFlags as Flags, AllocationCreateInfo, AllocationError, CreateError, CreatePoolError,
    MemoryError, MemoryUsage, PoolCreateInfo,
};

use crate::common::*;

/// A profile with one heap of 2 GiB and one memory type.
fn lavapipe() -> &'static Profile {
    Profile::by_name("lavapipe").unwrap()
}

/// Limits the heap to `limit` bytes by `heap_size_limits`.
fn limited(limit: u64) -> Held<Fixture> {
    Fixture::with(Gpu::new(lavapipe()), &Options { heap_size_limits: &[limit], ..Options::default() })
}

/// Creates a pool with one empty block of that size.
fn empty_pool(fixture: &Fixture, block_size: u64) -> sublet::Pool {
    let pool = fixture.pool(&PoolCreateInfo { block_size, ..PoolCreateInfo::new(0) }).unwrap();
    fixture.free(fixture.memory(KIB, 1, &AllocationCreateInfo::in_pool(&pool)).unwrap());
    assert_eq!(fixture.allocator.pool_statistics(&pool).unwrap().block_count, 1);
    pool
}

fn blocks_of(fixture: &Fixture, pool: &sublet::Pool) -> u64 {
    fixture.allocator.pool_statistics(pool).unwrap().block_count
}

#[test]
fn a_heap_limit_counts_no_empty_block() {
    for flags in [Flags::empty(), Flags::DEDICATED_MEMORY, Flags::NEVER_ALLOCATE] {
        let fixture = limited(256 * MIB);
        let pool = empty_pool(&fixture, 100 * MIB);
        let answer = fixture.memory(160 * MIB, 1, &in_type_with(0, flags));
        if flags == Flags::NEVER_ALLOCATE {
            assert!(answer.is_err());
            assert_eq!(blocks_of(&fixture, &pool), 1, "no shortage of device memory");
        } else {
            fixture.free(answer.unwrap());
            assert_eq!(blocks_of(&fixture, &pool), 0);
        }
        fixture.destroy_pool(pool);
    }
}

#[test]
fn a_full_heap_counts_no_empty_block() {
    for empty in [0, 64 * MIB, 512 * MIB] {
        let fixture = Fixture::new(lavapipe());
        let pool = (empty > 0).then(|| empty_pool(&fixture, empty));
        let own = in_type_with(0, Flags::DEDICATED_MEMORY);
        let mut held = Vec::new();
        let error = loop {
            match fixture.memory(64 * MIB, 1, &own) {
                Ok(allocation) => held.push(allocation),
                Err(error) => break error,
            }
        };
        assert_eq!(held.len(), 32, "all of 2 GiB, with a pool of {empty} empty bytes beside");
        assert_eq!(driver_result(&error), Some(vk::Result::ERROR_OUT_OF_DEVICE_MEMORY));
        fixture.free_all(held);
        pool.into_iter().for_each(|pool| fixture.destroy_pool(pool));
    }
}

/// An empty block of a default vector is freed for a pool, which cannot use that block.
#[test]
fn empty_blocks_of_default_vectors_go_back() {
    let fixture = limited(64 * MIB);
    fixture.free(fixture.memory(KIB, 1, &in_type(0)).unwrap());
    assert_eq!(fixture.gpu.live().memories, 1);
    let whole = fixture.pool(&PoolCreateInfo { block_size: 64 * MIB, ..PoolCreateInfo::new(0) }).unwrap();
    let allocation = fixture.memory(64 * MIB, 1, &AllocationCreateInfo::in_pool(&whole)).unwrap();
    assert_eq!(fixture.gpu.live().memories, 1, "only the pool's block");
    fixture.free(allocation);
    fixture.destroy_pool(whole);
}

#[test]
fn the_budget_counts_no_empty_block() {
    let gpu = Gpu::new(lavapipe());
    let options = Options::without_budget(&gpu);
    let fixture = Fixture::with(gpu, &options);
    let budget = fixture.allocator.heap_budgets()[0].budget;
    let pool = empty_pool(&fixture, 1024 * MIB);
    let info = in_type_with(0, Flags::DEDICATED_MEMORY | Flags::WITHIN_BUDGET);
    let error = fixture.memory(budget + 1, 1, &info).unwrap_err();
    assert!(matches!(error, AllocationError::Memory(MemoryError::OverBudget { .. })), "{error:?}");
    assert_eq!(blocks_of(&fixture, &pool), 1, "even without it there would be too little");
    let allocation = fixture.memory(budget, 1, &info).unwrap();
    assert_eq!(blocks_of(&fixture, &pool), 0);
    fixture.free(allocation);
    fixture.destroy_pool(pool);
}

/// Empty blocks stay if freeing them would not be enough, or if the failure has another cause.
#[test]
fn what_helps_nobody_stays() {
    let fixture = limited(256 * MIB);
    let used = fixture.memory(100 * MIB, 1, &in_type_with(0, Flags::DEDICATED_MEMORY)).unwrap();
    let pool = empty_pool(&fixture, 100 * MIB);
    fixture.gpu.reset_calls();
    let before = fixture.snapshot();
    for size in [157 * MIB, 257 * MIB] {
        let error = fixture.memory(size, 1, &in_type(0)).unwrap_err();
        assert!(matches!(error, AllocationError::Memory(_)), "{error:?}");
    }
    let two = PoolCreateInfo { block_size: 80 * MIB, min_block_count: 2, ..PoolCreateInfo::new(0) };
    assert!(fixture.pool(&two).is_err());
    fixture.gpu.faults().fail_always("vkAllocateMemory", vk::Result::ERROR_UNKNOWN);
    assert!(fixture.memory(10 * MIB, 1, &in_type_with(0, Flags::DEDICATED_MEMORY)).is_err());
    fixture.gpu.faults().clear();
    assert_eq!(fixture.snapshot(), before);
    assert_eq!(fixture.gpu.calls("vkFreeMemory"), 0);
    let fits = fixture.memory(156 * MIB, 1, &in_type(0)).unwrap();
    assert_eq!(blocks_of(&fixture, &pool), 0);
    fixture.free_all([fits, used]);
    fixture.destroy_pool(pool);
}

/// A pool keeps its `min_block_count` blocks, and its other empty blocks are freed.
#[test]
fn a_pool_keeps_its_first_blocks() {
    let fixture = limited(256 * MIB);
    let info = PoolCreateInfo {
        block_size: 50 * MIB,
        min_block_count: 1,
        empty_blocks_kept: 3,
        ..PoolCreateInfo::new(0)
    };
    let pool = fixture.pool(&info).unwrap();
    let in_pool = AllocationCreateInfo::in_pool(&pool);
    let three: Vec<_> = (0..3).map(|_| fixture.memory(50 * MIB, 1, &in_pool).unwrap()).collect();
    fixture.free_all(three);
    assert_eq!(blocks_of(&fixture, &pool), 3);
    let all = fixture.memory(206 * MIB, 1, &in_type(0)).unwrap();
    assert_eq!(blocks_of(&fixture, &pool), 1);
    assert!(fixture.memory(MIB, 1, &in_type(0)).is_err());
    assert_eq!(blocks_of(&fixture, &pool), 1);
    fixture.free(all);
    fixture.destroy_pool(pool);
}

/// The initial blocks of a pool count as ordinary requests, and free empty blocks too.
#[test]
fn a_new_pool_gets_what_lay_empty() {
    let fixture = limited(256 * MIB);
    let old = empty_pool(&fixture, 200 * MIB);
    let info = PoolCreateInfo { block_size: 100 * MIB, min_block_count: 2, ..PoolCreateInfo::new(0) };
    let new = fixture.pool(&info).unwrap();
    assert_eq!((blocks_of(&fixture, &old), blocks_of(&fixture, &new)), (0, 2));
    let error = fixture.pool(&info).unwrap_err();
    assert!(matches!(error, CreatePoolError::Memory(MemoryError::HeapLimit { .. })), "{error:?}");
    fixture.destroy_pool(new);
    fixture.destroy_pool(old);
}

/// The number of allocations is shared by all heaps, so freeing an empty block of any heap helps.
#[test]
fn an_exhausted_number_of_allocations_counts_no_empty_block() {
    let count = |profile: &Profile| profile.limits.max_memory_allocation_count == 4096;
    on_profiles(having(count), |profile| {
        let fixture = Fixture::new(profile);
        let types = fixture.types();
        let (first, last) = (types[0], *types.last().unwrap());
        let info = PoolCreateInfo { block_size: MIB, ..PoolCreateInfo::new(last) };
        let pool = fixture.pool(&info).unwrap();
        fixture.free(fixture.memory(KIB, 1, &AllocationCreateInfo::in_pool(&pool)).unwrap());
        let most = u64::from(profile.limits.max_memory_allocation_count);
        let own = in_type_with(first, Flags::DEDICATED_MEMORY);
        let held: Vec<_> = (1..most).map(|_| fixture.memory(KIB, 1, &own).unwrap()).collect();
        assert_eq!(fixture.gpu.live().memories, most);
        let one_more = fixture.memory(KIB, 1, &own).unwrap();
        assert_eq!((fixture.gpu.live().memories, blocks_of(&fixture, &pool)), (most, 0));
        let error = fixture.memory(KIB, 1, &own).unwrap_err();
        assert!(
            matches!(error, AllocationError::Memory(MemoryError::TooManyAllocations { .. })),
            "{error:?}"
        );
        fixture.free_all(held);
        fixture.free(one_more);
        fixture.destroy_pool(pool);
    });
}

/// A block counts as empty if threads lease ranges of it but have no allocations in them.
#[test]
fn what_threads_hold_and_do_not_use_goes_back() {
    let fixture = limited(256 * MIB);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            assert!(fixture.allocator.attach_to_memory_type(0));
            let one = fixture.memory(KIB, 1, &in_type(0)).unwrap();
            let two = fixture.memory(KIB, 1, &in_type(0)).unwrap();
            fixture.free_all([one, two]);
        });
    });
    assert_eq!(fixture.gpu.live().memories, 1, "kept for the thread");
    let all = fixture.memory(256 * MIB, 1, &in_type_with(0, Flags::DEDICATED_MEMORY)).unwrap();
    assert_eq!(fixture.gpu.live().memories, 1);
    fixture.free(all);
}

/// A thread with enough memory does not wait for one that frees empty blocks.
#[test]
fn others_go_on_while_memory_goes_back() {
    let fixture = limited(256 * MIB);
    let pool = empty_pool(&fixture, 100 * MIB);
    let used = fixture.memory(KIB, 1, &in_type(0)).unwrap();
    let large = std::sync::Mutex::new(None);
    let short = || *large.lock().unwrap() = Some(fixture.memory(200 * MIB, 1, &in_type(0)).unwrap());
    fixture.while_in("vkFreeMemory", short, || {
        let held: Vec<_> = (0..10).map(|_| fixture.memory(KIB, 1, &in_type(0)).unwrap()).collect();
        fixture.free_all(held);
        assert!(fixture.allocator.statistics().allocation_count >= 1);
    });
    fixture.free_all(large.into_inner().unwrap());
    fixture.free(used);
    fixture.destroy_pool(pool);
}

/// The allocator frees empty blocks of one memory type before it tries the next type.
#[test]
fn the_better_memory_type_is_emptied_first() {
    let fixture = Fixture::new(Profile::by_name("nvidia-gtx-1060").unwrap());
    let best = fixture.allocator.find_memory_type_index(!0, &device_local()).unwrap();
    let size = fixture.heap_size(best);
    let info = PoolCreateInfo { block_size: size / 2, ..PoolCreateInfo::new(best) };
    let pool = fixture.pool(&info).unwrap();
    fixture.free(fixture.memory(KIB, 1, &AllocationCreateInfo::in_pool(&pool)).unwrap());
    let own = AllocationCreateInfo { flags: Flags::DEDICATED_MEMORY, ..device_local() };
    // The request fits the heap alone, but not beside the empty block.
    let large = fixture.memory(size / 8 * 5, 1, &own).unwrap();
    assert_eq!(large.memory_type_index(), best);
    assert_eq!(blocks_of(&fixture, &pool), 0);
    fixture.free(large);
    fixture.destroy_pool(pool);
}

/// Device-local memory is preferred, not required, so that another type is possible.
fn device_local() -> AllocationCreateInfo<'static> {
    AllocationCreateInfo {
        preferred_flags: vk::MemoryPropertyFlags::DEVICE_LOCAL,
        ..AllocationCreateInfo::default()
    }
}

/// DXVK 1100: the small device-local heap of this card can never hold the buffer. Its error hid the driver's result.
#[test]
fn a_heap_that_is_too_small_does_not_hide_the_driver_s_answer() {
    let fixture = Fixture::new(Profile::by_name("nvidia-gtx-1060").unwrap());
    fixture.gpu.faults().fail_always("vkAllocateMemory", vk::Result::ERROR_OUT_OF_HOST_MEMORY);
    let written = with_flags(MemoryUsage::Auto, Flags::HOST_ACCESS_SEQUENTIAL_WRITE);
    let error = fixture.buffer(300 * MIB, vk::BufferUsageFlags::STORAGE_BUFFER, &written).unwrap_err();
    assert_eq!(driver_result(&error), Some(vk::Result::ERROR_OUT_OF_HOST_MEMORY), "{error}");
    fixture.gpu.faults().clear();
}

/// Small heaps, limits, budgets and failing mappings on every GPU: the error ends with the driver's result, whichever
/// memory type caused it.
#[test]
fn the_answer_of_the_driver_is_reported() {
    let failures = std::cell::Cell::new(0);
    on_every_profile(|profile| {
        // No limit, half of every heap, and no host-visible device-local memory.
        let halves: Vec<u64> = profile.heaps.iter().map(|heap| heap.size / 2).collect();
        let local =
            |kind: &&sublet::sim::profiles::TypeProfile| kind.flags.contains(DEVICE_LOCAL | HOST_VISIBLE);
        let window = profile.types.iter().find(local).map(|kind| kind.heap as usize);
        let mut tight = vec![vk::WHOLE_SIZE; profile.heaps.len()];
        window.into_iter().for_each(|heap| tight[heap] = 3 * MIB);
        for limits in [&[][..], &halves, &tight] {
            let options = Options { heap_size_limits: limits, ..Options::default() };
            let fixture = Fixture::with(Gpu::new(profile), &options);
            for (call, result) in [
                ("vkAllocateMemory", vk::Result::ERROR_OUT_OF_HOST_MEMORY),
                ("vkMapMemory", vk::Result::ERROR_MEMORY_MAP_FAILED),
            ] {
                for size in [KIB, 2 * MIB, 5 * MIB, 60 * MIB, 300 * MIB] {
                    for more in [Flags::empty(), Flags::WITHIN_BUDGET, Flags::DEDICATED_MEMORY] {
                        let flags = Flags::HOST_ACCESS_SEQUENTIAL_WRITE | Flags::MAPPED | more;
                        let info = with_flags(MemoryUsage::Auto, flags);
                        // Once without any block, and once with an unmapped block that has free space.
                        let unmapped = AllocationCreateInfo { flags: flags - Flags::MAPPED, ..info };
                        let usage = vk::BufferUsageFlags::STORAGE_BUFFER;
                        for there in [None, fixture.buffer(KIB, usage, &unmapped).ok()] {
                            fixture.gpu.reset_calls();
                            fixture.gpu.faults().fail_always(call, result);
                            let answer = fixture.buffer(size, usage, &info);
                            let asked = fixture.gpu.calls(call) > 0;
                            fixture.gpu.faults().clear();
                            match answer {
                                Ok(buffer) => fixture.destroy_buffer(buffer),
                                Err(error) if asked => {
                                    assert_eq!(
                                        driver_result(&error),
                                        Some(result),
                                        "{size} {more:?}: {error}"
                                    );
                                    assert!(matches!(error, CreateError::Allocation(_)));
                                    failures.set(failures.get() + 1);
                                }
                                Err(error) => assert_eq!(driver_result(&error), None),
                            }
                            there.into_iter().for_each(|buffer| fixture.destroy_buffer(buffer));
                            fixture.allocator.trim();
                        }
                    }
                }
            }
        }
    });
    assert!(failures.get() > 1000, "{failures:?}");
}
