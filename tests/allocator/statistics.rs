//! Compares quick statistics, detailed statistics and the memory map with a list of live allocations.

use ash::vk;
use sublet::{
    Algorithm, Allocation, AllocationCreateFlags as Flags, AllocationCreateInfo, DetailedStatistics,
    ForeignHandle, Pool, PoolCreateInfo, Statistics,
};

use crate::common::*;

/// An expected allocation.
struct Held {
    allocation: Allocation,
    /// The index of its pool, or `None` for the default vector.
    pool: Option<usize>,
    /// The bytes that it occupies: whole granularity pages, since its resource kind is unknown.
    bytes: u64,
}

/// Returns count, bytes, smallest and largest size of these allocations.
fn shadow<'a>(held: impl Iterator<Item = &'a Held>) -> (u64, u64, u64, u64) {
    held.fold((0, 0, u64::MAX, 0), |(count, sum, min, max), it| {
        (count + 1, sum + it.bytes, min.min(it.bytes), max.max(it.bytes))
    })
}

fn shown(all: &DetailedStatistics) -> (u64, u64, u64, u64) {
    let Statistics { allocation_count, allocation_bytes, .. } = all.statistics;
    (allocation_count, allocation_bytes, all.allocation_size_min, all.allocation_size_max)
}

/// Checks the consistency of figures whose exact values the test cannot know.
fn check_unused(all: &DetailedStatistics) {
    let unused = all.statistics.unused_bytes();
    let count = all.unused_range_count;
    assert_eq!(unused == 0, count == 0);
    let (min, max) = (all.unused_range_size_min, all.unused_range_size_max);
    match count {
        0 => assert_eq!((min, max), (u64::MAX, 0)),
        1 => assert_eq!((min, max), (unused, unused)),
        _ => assert!(min > 0 && min * count <= unused && unused <= max * count),
    }
}

fn check(fixture: &Fixture, pools: &[Pool], held: &[Held]) {
    fixture.validate();
    let all = fixture.allocator.calculate_statistics();
    assert_eq!(fixture.allocator.memory_map().statistics(), all, "the map says the same");
    assert_eq!(shown(&all.total), shadow(held.iter()));
    assert_eq!(fixture.allocator.statistics(), all.total.statistics, "quick and slow agree");
    check_unused(&all.total);
    let mut sum_of_types = DetailedStatistics::default();
    let mut sums_by_heap = vec![DetailedStatistics::default(); all.memory_heaps.len()];
    for (memory_type, of_type) in (0..).zip(&all.memory_types) {
        let is_here = |it: &&Held| it.allocation.memory_type_index() == memory_type;
        assert_eq!(shown(of_type), shadow(held.iter().filter(is_here)), "memory type {memory_type}");
        assert_eq!(fixture.statistics(memory_type), of_type.statistics);
        check_unused(of_type);
        sum_of_types.add(of_type);
        sums_by_heap[fixture.heap_of(memory_type) as usize].add(of_type);
        let default = fixture.allocator.calculate_default_statistics(memory_type).unwrap();
        let in_default = held.iter().filter(is_here).filter(|it| it.pool.is_none());
        assert_eq!(shown(&default), shadow(in_default), "the default vector of type {memory_type}");
        assert_eq!(fixture.allocator.default_statistics(memory_type), Some(default.statistics));
    }
    assert_eq!(sum_of_types, all.total);
    assert_eq!(sums_by_heap, all.memory_heaps);
    let quick: Vec<_> = all.memory_heaps.iter().map(|heap| heap.statistics).collect();
    assert_eq!(fixture.allocator.heap_statistics(), quick);
    let budgets: Vec<_> = fixture.allocator.heap_budgets().iter().map(|budget| budget.statistics).collect();
    assert_eq!(budgets, quick);
    for (number, pool) in pools.iter().enumerate() {
        let of_pool = fixture.allocator.calculate_pool_statistics(pool).unwrap();
        assert_eq!(shown(&of_pool), shadow(held.iter().filter(|it| it.pool == Some(number))));
        assert_eq!(fixture.allocator.pool_statistics(pool).unwrap(), of_pool.statistics);
        assert_eq!(fixture.allocator.pool_memory_map(pool).unwrap().statistics(), of_pool);
        check_unused(&of_pool);
    }
}

#[test]
fn figures_agree_with_what_is_allocated() {
    on_every_gpu(|fixture| {
        let granularity = fixture.profile().limits.buffer_image_granularity.max(1);
        let types = fixture.types();
        let pools: Vec<Pool> = types
            .iter()
            .take(3)
            .zip([Algorithm::Tlsf, Algorithm::Linear, Algorithm::Tlsf])
            .map(|(&memory_type, algorithm)| {
                let min_block_count = u32::from(algorithm == Algorithm::Linear);
                let info = PoolCreateInfo { algorithm, min_block_count, ..PoolCreateInfo::new(memory_type) };
                fixture.pool(&PoolCreateInfo { block_size: MIB, ..info }).unwrap()
            })
            .collect();
        let mut random = Random::new(14);
        let mut held: Vec<Held> = Vec::new();
        check(&fixture, &pools, &held);
        for round in 0..from_environment("SUBLET_CASES", 64) {
            if held.len() > 4 && random.below(3) == 0 {
                let freed = held.swap_remove(random.below(held.len() as u64) as usize);
                fixture.free(freed.allocation);
            } else {
                let size = random.size(16);
                let pool = (random.below(2) == 0).then(|| random.below(pools.len() as u64) as usize);
                let dedicated = pool.is_none() && random.below(6) == 0;
                let info = match pool {
                    Some(pool) => AllocationCreateInfo::in_pool(&pools[pool]),
                    None if dedicated => in_type_with(random.pick(&types), Flags::DEDICATED_MEMORY),
                    None => in_type(random.pick(&types)),
                };
                let allocation = fixture.memory(size, 1, &info).unwrap();
                let bytes = if dedicated { size } else { size.next_multiple_of(granularity) };
                held.push(Held { allocation, pool, bytes });
            }
            if round % 8 == 0 {
                check(&fixture, &pools, &held);
            }
        }
        check(&fixture, &pools, &held);
        fixture.free_all(held.into_iter().map(|it| it.allocation));
        check(&fixture, &pools, &[]);
        pools.into_iter().for_each(|pool| fixture.destroy_pool(pool));
    });
}

/// Two allocations in two blocks, each followed by one free range, so that all sizes are known exactly.
#[test]
fn unused_ranges_are_counted() {
    on_profiles(having(|profile| profile.limits.buffer_image_granularity == 1), |profile| {
        let fixture = Fixture::new(profile);
        let info = PoolCreateInfo { block_size: 64 * KIB, ..PoolCreateInfo::new(fixture.types()[0]) };
        let pool = fixture.pool(&PoolCreateInfo { algorithm: Algorithm::Linear, ..info }).unwrap();
        let in_pool = AllocationCreateInfo::in_pool(&pool);
        let held: Vec<_> =
            [48 * KIB, 16 * KIB, 40 * KIB].map(|size| fixture.memory(size, 1, &in_pool).unwrap()).into();
        let all = fixture.allocator.calculate_pool_statistics(&pool).unwrap();
        assert_eq!(all.statistics.block_count, 2);
        assert_eq!(all.unused_range_count, 1, "the first block is full");
        assert_eq!((all.unused_range_size_min, all.unused_range_size_max), (24 * KIB, 24 * KIB));
        let mut held = held.into_iter();
        fixture.free(held.next().unwrap());
        let all = fixture.allocator.calculate_pool_statistics(&pool).unwrap();
        assert_eq!(all.unused_range_count, 2);
        assert_eq!((all.unused_range_size_min, all.unused_range_size_max), (24 * KIB, 48 * KIB));
        fixture.free_all(held);
        fixture.destroy_pool(pool);
    });
}

#[test]
fn what_is_not_there_has_no_figures() {
    let fixture = Fixture::new(sublet::sim::Profile::by_name("lavapipe").unwrap());
    let other = Fixture::new(fixture.profile());
    let pool = other.pool(&PoolCreateInfo::new(0)).unwrap();
    assert_eq!(fixture.allocator.default_statistics(1), None);
    assert_eq!(fixture.allocator.calculate_default_statistics(u32::MAX), None);
    assert_eq!(fixture.allocator.calculate_pool_statistics(&pool), Err(ForeignHandle::Pool));
    assert_eq!(fixture.allocator.pool_memory_map(&pool).unwrap_err(), ForeignHandle::Pool);
    other.destroy_pool(pool);
}

/// Without the extension, the budget is 80 % of the heap or of its limit, rounded down as in VMA.
#[test]
fn budgets_are_rounded_as_in_vma() {
    on_every_profile(|profile| {
        let gpu = sublet::sim::Gpu::new(profile);
        let options = Options::without_budget(&gpu);
        let fixture = Fixture::with(gpu, &Options { heap_size_limits: &[MIB + 7], ..options });
        for (heap, budget) in profile.heaps.iter().zip(fixture.allocator.heap_budgets()).skip(1) {
            assert_eq!(budget.budget, heap.size * 8 / 10);
        }
        assert_eq!(fixture.allocator.heap_budgets()[0].budget, (MIB + 7) * 8 / 10);
    });
}

/// Setting the frame index fetches the driver's figures.
#[test]
fn a_frame_fetches_the_driver_s_figures() {
    on_profiles(having(|profile| profile.features.memory_budget), |profile| {
        let fixture = Fixture::new(profile);
        let memory_type = fixture.types()[0];
        let heap = fixture.heap_of(memory_type) as usize;
        let before = fixture.allocator.heap_budgets()[heap].usage;
        // Another user of the device, which the allocator does not know.
        let info = vk::MemoryAllocateInfo::default().allocation_size(MIB).memory_type_index(memory_type);
        // SAFETY: the memory type exists.
        let memory = unsafe { fixture.gpu.device().allocate_memory(&info, None) }.unwrap();
        assert_eq!(fixture.allocator.heap_budgets()[heap].usage, before, "nobody has asked yet");
        fixture.allocator.set_current_frame_index(1);
        assert_eq!(fixture.allocator.heap_budgets()[heap].usage, before + MIB);
        // SAFETY: the device does not use it.
        unsafe { fixture.gpu.device().free_memory(memory, None) };
    });
}
