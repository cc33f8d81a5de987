//! Growth and shrinking of vectors: block sizes, halving, empty blocks, trimming.

use std::cell::Cell;

use ash::vk;
use sublet::sim::Gpu;
use sublet::{AllocationError, Allocator, MemoryError, PoolCreateInfo};

use crate::common::*;

/// Allocates pieces of `size` in one type until `count` new memories exist. Returns the pieces and the memory sizes.
fn fill(fixture: &Fixture, memory_type: u32, size: u64, count: usize) -> (Vec<sublet::Allocation>, Vec<u64>) {
    let (mut pieces, mut sizes, mut last) = (Vec::new(), Vec::new(), vk::DeviceMemory::null());
    let mut seen = Vec::new();
    while sizes.len() < count {
        let piece = fixture.memory(size, 1, &in_type(memory_type)).unwrap();
        assert!(!piece.is_dedicated());
        if piece.memory() != last && !seen.contains(&piece.memory()) {
            last = piece.memory();
            seen.push(last);
            sizes.push(fixture.memory_size(&piece));
        }
        pieces.push(piece);
    }
    (pieces, sizes)
}

#[test]
fn blocks_grow_from_an_eighth_to_the_preferred_size() {
    on_every_vma_gpu(|fixture| {
        for memory_type in fixture.types() {
            let full = fixture.block_size(memory_type);
            let (pieces, sizes) = fill(&fixture, memory_type, full / 64, 5);
            assert_eq!(sizes, [full / 8, full / 4, full / 2, full, full], "type {memory_type}");
            fixture.validate();
            fixture.free_all(pieces);
            fixture.allocator.trim();
        }
    });
}

#[test]
fn small_heaps_have_blocks_of_an_eighth() {
    on_profiles(having(|profile| profile.heaps.iter().any(|heap| heap.size <= GIB)), |profile| {
        let fixture = Fixture::new(profile);
        let small = fixture.types().into_iter().filter(|&memory_type| fixture.heap_size(memory_type) <= GIB);
        for memory_type in small {
            let eighth = (fixture.heap_size(memory_type) / 8).next_multiple_of(32);
            let pool = fixture.pool(&PoolCreateInfo::new(memory_type)).unwrap();
            assert_eq!(pool.block_size(), eighth);
            fixture.destroy_pool(pool);
        }
    });
}

#[test]
fn a_limit_makes_a_heap_small() {
    on_every_profile(|profile| {
        let limits = vec![160 * MIB; profile.heaps.len()];
        let options = Options { heap_size_limits: &limits, ..Options::default() };
        let fixture = Fixture::with(Gpu::new(profile), &options);
        let pool = fixture.pool(&PoolCreateInfo::new(0)).unwrap();
        assert_eq!(pool.block_size(), 20 * MIB);
        fixture.destroy_pool(pool);
    });
}

/// A heap of one GiB is small; one byte more makes it large.
#[test]
fn small_ends_at_a_gibibyte() {
    on_every_profile(|profile| {
        for (limit, block) in [(GIB, GIB / 8), (GIB + 1, 256 * MIB)] {
            let limits = vec![limit; profile.heaps.len()];
            let fixture = Fixture::with(
                Gpu::new(profile),
                &Options { heap_size_limits: &limits, ..Options::default() },
            );
            let memory_type = fixture.types().into_iter().max_by_key(|&at| fixture.heap_size(at)).unwrap();
            let pool = fixture.pool(&PoolCreateInfo::new(memory_type)).unwrap();
            if fixture.heap_size(memory_type) >= limit {
                assert_eq!(pool.block_size(), block);
            }
            fixture.destroy_pool(pool);
        }
    });
}

#[test]
fn the_program_chooses_the_size_of_blocks_in_large_heaps() {
    on_every_profile(|profile| {
        let options = Options { large_block: 64 * MIB, ..Options::default() };
        let fixture = Fixture::with(Gpu::new(profile), &options);
        for memory_type in fixture.types() {
            let full =
                if fixture.heap_size(memory_type) > GIB { 64 * MIB } else { fixture.block_size(memory_type) };
            let (pieces, sizes) = fill(&fixture, memory_type, full / 64, 2);
            assert_eq!(sizes, [full / 8, full / 4]);
            fixture.free_all(pieces);
            fixture.allocator.trim();
        }
    });
}

#[test]
fn an_absurd_block_size_is_cut_to_what_there_may_be() {
    on_every_profile(|profile| {
        for large_block in [u64::MAX, u64::MAX - 15, 1 << 63, 1 << 45] {
            let options = Options { large_block, ..Options::default() };
            let fixture = Fixture::with(Gpu::new(profile), &options);
            for memory_type in fixture.types() {
                let pool = fixture.pool(&PoolCreateInfo::new(memory_type)).unwrap();
                let heap = fixture.heap_size(memory_type);
                let most = heap.min(fixture.allocator.max_memory_allocation_size());
                let full = if heap <= GIB { fixture.block_size(memory_type) } else { most / 32 * 32 };
                assert_eq!(pool.block_size(), full);
                fixture.destroy_pool(pool);
                // If the driver refuses even an eighth of the block size, the allocation still succeeds.
                let piece = fixture.memory(KIB, 1, &in_type(memory_type)).unwrap();
                fixture.free(piece);
                fixture.allocator.trim();
            }
        }
    });
}

#[test]
fn a_large_request_starts_with_a_block_of_twice_its_size() {
    on_every_vma_gpu(|fixture| {
        for memory_type in fixture.types() {
            let full = fixture.block_size(memory_type);
            // The smallest block is created for requests of at most a sixteenth of the full size.
            for (size, block) in [
                (full / 16, full / 8),
                (full / 16 + 1, full / 4),
                (full / 8 + 1, full / 2),
                (full / 4 + 1, full),
            ] {
                // A possible image takes whole pages, so the request is slightly larger than stated.
                let page = fixture.profile().limits.buffer_image_granularity;
                let size = if size == full / 16 { size / page * page } else { size };
                let piece = fixture.memory(size, 1, &in_type(memory_type)).unwrap();
                assert!(!piece.is_dedicated());
                assert_eq!(fixture.memory_size(&piece), block, "for {size} bytes in type {memory_type}");
                fixture.free(piece);
                fixture.allocator.trim();
            }
        }
    });
}

#[test]
fn blocks_halve_when_the_driver_refuses() {
    on_every_vma_gpu(|fixture| {
        for memory_type in fixture.types() {
            let full = fixture.block_size(memory_type);
            let (mut pieces, _) = fill(&fixture, memory_type, full / 64, 5);
            let before = pieces.len();
            while fixture.gpu.live().memories == 5 {
                pieces.push(fixture.memory(full / 64, 1, &in_type(memory_type)).unwrap());
                // The last block is nearly full, and the next block must be created while the driver has little memory.
                fixture.gpu.faults().fail_above(full / 4);
                fixture.gpu.reset_calls();
            }
            assert!(pieces.len() > before);
            let last = pieces.last().unwrap();
            assert!(!last.is_dedicated());
            assert_eq!(fixture.memory_size(last), full / 4, "type {memory_type}");
            fixture.gpu.faults().clear();
            fixture.free_all(pieces);
            fixture.allocator.trim();
        }
    });
}

#[test]
fn the_driver_is_asked_for_each_half_once() {
    on_every_vma_gpu(|fixture| {
        for memory_type in fixture.types() {
            let full = fixture.block_size(memory_type);
            // The request is too large for all three halvings of a new vector: two apply at once, and one is left.
            let size = full / 8 / 4 * 3;
            fixture.gpu.reset_calls();
            fixture.gpu.faults().fail_above(full / 8);
            let piece = fixture.memory(size, 1, &in_type(memory_type)).unwrap();
            assert!(!piece.is_dedicated());
            assert_eq!(fixture.memory_size(&piece), full / 8);
            assert_eq!(
                fixture.gpu.calls("vkAllocateMemory"),
                2,
                "a quarter, then an eighth: type {memory_type}"
            );
            fixture.free(piece);
            fixture.allocator.trim();
            // The driver refuses even an eighth, so the allocator falls back to dedicated memory.
            fixture.gpu.faults().clear();
            fixture.gpu.faults().fail_above(full / 8 - 1);
            fixture.gpu.reset_calls();
            let piece = fixture.memory(size, 1, &in_type(memory_type)).unwrap();
            assert!(piece.is_dedicated());
            assert_eq!(fixture.memory_size(&piece), size);
            assert_eq!(fixture.gpu.calls("vkAllocateMemory"), 3);
            fixture.free(piece);
            fixture.gpu.faults().clear();
            fixture.allocator.trim();
        }
    });
}

/// Limits the largest heap. Returns a memory type in it.
fn limited(profile: &'static sublet::sim::Profile, limit: u64) -> Option<(Held<Fixture>, u32)> {
    let types = 0..profile.types.len() as u32;
    let usual = types.filter(|&at| !profile.types[at as usize].flags.intersects(AMD_COHERENT | PROTECTED));
    let size_of = |at: u32| profile.heaps[profile.types[at as usize].heap as usize].size;
    let memory_type = usual.max_by_key(|&at| size_of(at)).filter(|&at| size_of(at) >= limit)?;
    let limits = vec![limit; profile.heaps.len()];
    let gpu = Gpu::new(profile);
    let options = Options { heap_size_limits: &limits, ..Options::without_budget(&gpu) };
    Some((Fixture::with(gpu, &options), memory_type))
}

/// Over the budget, a block is no larger than the request, because other vectors cannot use its free bytes.
#[test]
fn over_the_budget_blocks_are_as_large_as_needed() {
    let tried = Cell::new(0);
    on_every_profile(|profile| {
        let Some((fixture, memory_type)) = limited(profile, GIB) else { return };
        tried.set(tried.get() + 1);
        let mut held = Vec::new();
        while let Ok(memory) = fixture.memory(36 * MIB, 1, &in_type(memory_type)) {
            held.push(memory);
        }
        // As many as VMA allocates.
        assert!(held.len() >= 25, "{} requests of 36 MiB in a GiB", held.len());
        fixture.validate();
        fixture.free_all(held);
    });
    assert!(tried.get() > 5);
}

/// The same with random sizes: measures the heap usage at the first failure. VMA reaches 94.5 %.
#[test]
fn random_sizes_fill_a_heap() {
    let (limit, mut live, mut runs) = (3 * GIB, 0, 0);
    for seed in 0..40 {
        let profile = sublet::sim::Profile::by_name("nvidia-rtx-5070-ti").unwrap();
        let (fixture, memory_type) = limited(profile, limit).unwrap();
        let (mut random, mut held) = (Random::new(seed), Vec::new());
        loop {
            let size = 20 * MIB + random.below(40 * MIB);
            let Ok(memory) = fixture.memory(size, 1, &in_type(memory_type)) else { break };
            live += memory.size();
            held.push(memory);
        }
        runs += 1;
        fixture.free_all(held);
    }
    let share = live as f64 / (limit * runs) as f64;
    assert!(share >= 0.945, "{:.1} % in use at the first failure", share * 100.0);
}

/// Budgets and sizes with no common multiple, from the driver and from the program.
#[test]
fn odd_sizes_over_odd_budgets() {
    on_profiles(having(|profile| profile.features.memory_budget), |profile| {
        let fixture = Fixture::new(profile);
        let memory_type = fixture.types().into_iter().max_by_key(|&at| fixture.heap_size(at)).unwrap();
        let (heap, block) = (fixture.heap_of(memory_type), fixture.block_size(memory_type));
        let page = fixture.profile().limits.buffer_image_granularity.max(4096);
        let mut random = Random::new(11);
        for round in 0..8 {
            let budget = (100 * MIB + random.below(900 * MIB)) | 1;
            fixture.gpu.faults().set_budget(heap, budget, 0);
            fixture.allocator.set_current_frame_index(round);
            let mut held = Vec::new();
            for _ in 0..60 {
                let size = (block / 64 + random.below(block / 2 - block / 64 - page)) | 1;
                let level = fixture.allocator.heap_budgets()[heap as usize];
                let memories = fixture.gpu.live().memories;
                let Ok(memory) = fixture.memory(size, 1, &in_type(memory_type)) else { break };
                let is_new = fixture.gpu.live().memories > memories;
                let bytes = fixture.memory_size(&memory);
                if is_new && level.usage + bytes > level.budget {
                    assert!(bytes < size + page, "{bytes} bytes for {size}, over the budget of {budget}");
                }
                held.push(memory);
            }
            assert!(held.len() > 4);
            fixture.validate();
            fixture.free_all(held);
            fixture.allocator.trim();
        }
        fixture.gpu.faults().clear();
    });
}

/// Room in a block comes before new memory: the large request enters the block of the small one.
#[test]
fn a_request_above_half_a_block_enters_a_block_that_has_room() {
    let gpu = Gpu::new(sublet::sim::Profile::by_name("nvidia-h200").unwrap());
    let sizes = [sublet::BlockSizes { first: 64 * MIB, largest: 64 * MIB }];
    let info = sublet::AllocatorCreateInfo { block_sizes: &sizes, ..create_info(&gpu) };
    let fixture = hold(Fixture { allocator: new_allocator(&info).unwrap(), gpu });
    let small = fixture.memory(KIB, 1, &in_type(0)).unwrap();
    for _ in 0..100 {
        let requirements = vk::MemoryRequirements { size: 33_000 * KIB, alignment: 1, memory_type_bits: 1 };
        assert_eq!(
            fixture.allocator.would_fit(&requirements, &in_type(0)).unwrap().place,
            sublet::FitPlace::Block
        );
        let large = fixture.memory(33_000 * KIB, 1, &in_type(0)).unwrap();
        assert_eq!(large.memory(), small.memory());
        fixture.free(large);
    }
    assert_eq!(fixture.gpu.calls("vkAllocateMemory"), 1);
    fixture.free(small);
}

/// VMA asks the driver for such a request.
#[test]
fn with_blocks_as_in_vma_a_request_above_half_a_block_is_dedicated() {
    let gpu = Gpu::new(sublet::sim::Profile::by_name("nvidia-h200").unwrap());
    let fixture = Fixture::with(gpu, &Options { large_block: 64 * MIB, ..Options::default() });
    let other = fixture.memory(32 * MIB, 1, &in_type(0)).unwrap();
    let large = fixture.memory(33 * MIB, 1, &in_type(0)).unwrap();
    assert!(!other.is_dedicated() && large.is_dedicated());
    fixture.free_all([other, large]);
}

#[test]
fn a_chosen_block_size_is_constant() {
    on_every_gpu(|fixture| {
        for memory_type in fixture.types() {
            let info = PoolCreateInfo { block_size: 3 * MIB, ..PoolCreateInfo::new(memory_type) };
            let pool = fixture.pool(&info).unwrap();
            assert_eq!(fixture.gpu.live().memories, 0, "no block before it is needed");
            let in_pool = sublet::AllocationCreateInfo::in_pool(&pool);
            let pieces: Vec<_> = (0..6).map(|_| fixture.memory(2 * MIB, 1, &in_pool).unwrap()).collect();
            for piece in &pieces {
                assert_eq!(fixture.memory_size(piece), 3 * MIB);
                assert!(!piece.is_dedicated());
            }
            assert_eq!(fixture.gpu.live().memories, 6);
            // No halving and no dedicated fallback.
            fixture.gpu.reset_calls();
            fixture.gpu.faults().fail_above(3 * MIB - 1);
            let error = fixture.memory(2 * MIB, 1, &in_pool).unwrap_err();
            assert!(matches!(error, AllocationError::Memory(MemoryError::Driver { .. })), "{error:?}");
            assert_eq!(driver_result(&error), Some(vk::Result::ERROR_OUT_OF_DEVICE_MEMORY));
            assert_eq!(fixture.gpu.calls("vkAllocateMemory"), 1);
            fixture.gpu.faults().clear();
            fixture.free_all(pieces);
            fixture.destroy_pool(pool);
        }
    });
}

/// Places one allocation in each of `count` blocks of a pool with blocks of 1 MiB.
fn one_in_each(fixture: &Fixture, pool: &sublet::Pool, count: u64) -> Vec<sublet::Allocation> {
    let in_pool = sublet::AllocationCreateInfo::in_pool(pool);
    let before = fixture.gpu.live().memories;
    let pieces = (0..count).map(|_| fixture.memory(MIB, 1, &in_pool).unwrap()).collect();
    assert!(fixture.gpu.live().memories <= before.max(count));
    pieces
}

#[test]
fn empty_blocks_are_kept_by_policy() {
    on_every_profile(|profile| {
        for (min_block_count, empty_blocks_kept, left) in
            [(0, 0, 0), (0, 1, 1), (0, 3, 3), (0, 9, 5), (2, 0, 2), (2, 1, 2), (2, 3, 3), (5, 0, 5)]
        {
            let fixture = Fixture::new(profile);
            let info = PoolCreateInfo {
                block_size: MIB,
                min_block_count,
                empty_blocks_kept,
                ..PoolCreateInfo::new(0)
            };
            let pool = fixture.pool(&info).unwrap();
            assert_eq!(
                fixture.gpu.live().memories,
                u64::from(min_block_count),
                "the first blocks exist at once"
            );
            for _ in 0..3 {
                let pieces = one_in_each(&fixture, &pool, 5);
                assert_eq!(fixture.gpu.live().memories, 5);
                fixture.free_all(pieces);
                fixture.validate();
                assert_eq!(
                    fixture.gpu.live().memories,
                    left,
                    "a minimum of {min_block_count}, {empty_blocks_kept} empty blocks kept"
                );
            }
            let given_back = fixture.allocator.trim();
            assert_eq!(given_back, (left - u64::from(min_block_count)) * MIB);
            assert_eq!(
                fixture.gpu.live().memories,
                u64::from(min_block_count),
                "trimmed down to the minimum"
            );
            assert_eq!(fixture.allocator.trim(), 0);
            fixture.destroy_pool(pool);
        }
    });
}

#[test]
fn default_vectors_keep_empty_blocks_by_policy() {
    on_every_profile(|profile| {
        for empty_blocks_kept in [0, 1, 2] {
            let options = Options { empty_blocks_kept, ..Options::vma() };
            let fixture = Fixture::with(Gpu::new(profile), &options);
            for memory_type in fixture.types() {
                let (pieces, _) = fill(&fixture, memory_type, fixture.block_size(memory_type) / 64, 3);
                fixture.free_all(pieces);
                assert_eq!(fixture.gpu.live().memories, u64::from(empty_blocks_kept), "type {memory_type}");
                fixture.validate();
                let bytes: u64 = fixture.gpu.live().memory_bytes_by_heap.iter().sum();
                assert_eq!(fixture.allocator.trim(), bytes);
                assert_eq!(fixture.gpu.live().memories, 0);
            }
        }
    });
}

#[test]
fn one_empty_block_saves_the_driver_from_a_program_that_frees_and_allocates() {
    on_every_gpu(|fixture| {
        fixture.free(fixture.memory(KIB, 1, &in_type(0)).unwrap());
        fixture.gpu.reset_calls();
        for _ in 0..100 {
            fixture.free(fixture.memory(KIB, 1, &in_type(0)).unwrap());
        }
        assert_eq!(fixture.gpu.calls("vkAllocateMemory"), 0);
        assert_eq!(fixture.gpu.calls("vkFreeMemory"), 0);
    });
}

#[test]
fn over_the_budget_an_empty_block_goes_at_once() {
    on_profiles(having(|profile| profile.features.memory_budget), |profile| {
        let fixture = Fixture::new(profile);
        for memory_type in fixture.types() {
            let piece = fixture.memory(KIB, 1, &in_type(memory_type)).unwrap();
            fixture.gpu.faults().set_budget(fixture.heap_of(memory_type), MIB, MIB);
            fixture.allocator.set_current_frame_index(1);
            fixture.free(piece);
            assert_eq!(fixture.gpu.live().memories, 0, "type {memory_type}");
            fixture.gpu.faults().clear();
            fixture.allocator.set_current_frame_index(2);
        }
    });
}

#[test]
fn over_the_guessed_budget_an_empty_block_goes_at_once() {
    on_every_profile(|profile| {
        let gpu = Gpu::new(profile);
        let limits = vec![50 * MIB; profile.heaps.len()];
        let options = Options { heap_size_limits: &limits, ..Options::without_budget(&gpu) };
        let fixture = Fixture::with(gpu, &options);
        let small = fixture.memory(KIB, 1, &in_type(0)).unwrap();
        // The estimated budget is 80 % of 50 MiB, which is 40 MiB.
        let own = in_type_with(0, sublet::AllocationCreateFlags::DEDICATED_MEMORY);
        let large = fixture.memory(40 * MIB, 1, &own).unwrap();
        assert_eq!(fixture.gpu.live().memories, 2);
        fixture.free(small);
        assert_eq!(fixture.gpu.live().memories, 1, "the empty block does not wait");
        fixture.free(large);
    });
}

#[test]
fn minimum_blocks_survive_everything() {
    on_every_gpu(|fixture| {
        let info = PoolCreateInfo {
            block_size: MIB,
            min_block_count: 2,
            max_block_count: 4,
            empty_blocks_kept: 0,
            ..PoolCreateInfo::new(0)
        };
        let pool = fixture.pool(&info).unwrap();
        let mut random = Random::new(7);
        let mut pieces = Vec::new();
        let in_pool = sublet::AllocationCreateInfo::in_pool(&pool);
        for _ in 0..500 {
            if random.below(2) == 0 {
                pieces.extend(fixture.memory(random.size(20), 1, &in_pool));
            } else if !pieces.is_empty() {
                let at = random.below(pieces.len() as u64) as usize;
                fixture.free(pieces.swap_remove(at));
            }
            if random.below(16) == 0 {
                fixture.allocator.trim();
            }
            let memories = fixture.gpu.live().memories;
            assert!((2..=4).contains(&memories), "{memories} blocks");
        }
        fixture.free_all(pieces);
        fixture.destroy_pool(pool);
    });
}

#[test]
fn preferred_block_size_of_a_pool_is_full_from_the_start() {
    on_every_gpu(|fixture| {
        let info = PoolCreateInfo { min_block_count: 1, ..PoolCreateInfo::new(0) };
        let pool = fixture.pool(&info).unwrap();
        assert_eq!(fixture.gpu.live().memory_bytes_by_heap.iter().sum::<u64>(), fixture.block_size(0));
        fixture.destroy_pool(pool);
    });
}

/// The allocator has the size of a pointer and is `Send` and `Sync`.
#[test]
fn the_allocator_is_one_pointer() {
    fn is_shared<A: Send + Sync>() {}
    is_shared::<Allocator>();
    assert_eq!(size_of::<Allocator>(), size_of::<usize>());
}
