//! Several threads with one allocator.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};

use ash::vk;
use sublet::sim::Gpu;
use sublet::{
    Allocation, AllocationCreateFlags as Flags, AllocationCreateInfo, AllocationError, MemoryUsage,
    PoolCreateInfo,
};

use crate::common::*;

fn fast_profiles(profile: &sublet::sim::profiles::Profile) -> bool {
    // These profiles suffice for tests that depend on timing and not on memory types.
    ["nvidia-h200", "amd-raphael", "apple-m1", "lavapipe"].contains(&profile.name)
}

/// Threads create, write, compare and destroy, while others read statistics, trim and create pools.
#[test]
fn churn() {
    on_every_gpu(|fixture| {
        let rounds = from_environment("SUBLET_OPERATIONS", 2000) / 4;
        std::thread::scope(|scope| {
            for thread in 0..4_u64 {
                let fixture = &fixture;
                scope.spawn(move || {
                    let mut random = Random::new(thread + 100);
                    let mut held: Vec<((vk::Buffer, Allocation), u8)> = Vec::new();
                    for round in 0..rounds {
                        if random.below(5) < 3 || held.is_empty() {
                            let flags = random.pick(&[
                                Flags::HOST_ACCESS_RANDOM,
                                Flags::HOST_ACCESS_RANDOM | Flags::MAPPED,
                                Flags::HOST_ACCESS_SEQUENTIAL_WRITE | Flags::DEDICATED_MEMORY,
                            ]);
                            let usage = vk::BufferUsageFlags::STORAGE_BUFFER;
                            let stamp = (thread * 61 + round) as u8;
                            let mut buffer = fixture
                                .buffer(random.size(14), usage, &with_flags(MemoryUsage::Auto, flags))
                                .unwrap();
                            let bytes = vec![stamp; buffer.1.size() as usize];
                            fixture.allocator.copy_to_allocation(&bytes, &mut buffer.1, 0).unwrap();
                            held.push((buffer, stamp));
                        } else {
                            let at = random.below(held.len() as u64) as usize;
                            let (buffer, stamp) = held.swap_remove(at);
                            let mut bytes = vec![0; buffer.1.size() as usize];
                            fixture.allocator.copy_from_allocation(&buffer.1, 0, &mut bytes).unwrap();
                            assert!(bytes.iter().all(|&byte| byte == stamp));
                            fixture.destroy_buffer(buffer);
                        }
                        if round % 64 == thread {
                            fixture.allocator.trim();
                            let _ = fixture.allocator.heap_budgets();
                            let _ = fixture.allocator.calculate_statistics();
                            fixture.allocator.set_current_frame_index(round as u32);
                            let pool = fixture
                                .pool(&PoolCreateInfo { block_size: MIB, ..PoolCreateInfo::new(0) })
                                .unwrap();
                            fixture
                                .free(fixture.memory(KIB, 1, &AllocationCreateInfo::in_pool(&pool)).unwrap());
                            fixture.destroy_pool(pool);
                        }
                    }
                    for (buffer, _) in held {
                        fixture.destroy_buffer(buffer);
                    }
                });
            }
        });
    });
}

#[test]
fn who_may_not_grow_does_not_wait() {
    on_profiles(having(fast_profiles), |profile| {
        let fixture = Fixture::new(profile);
        let grow = || fixture.free(fixture.memory(KIB, 1, &in_type(0)).unwrap());
        let never = in_type_with(0, Flags::NEVER_ALLOCATE);
        let error =
            fixture.while_in("vkAllocateMemory", grow, || fixture.memory(KIB, 1, &never).unwrap_err());
        assert!(matches!(error, AllocationError::Full { .. }), "{error:?}");
    });
}

#[test]
fn a_block_can_be_mapped_while_another_is_freed() {
    on_profiles(having(fast_profiles), |profile| {
        let fixture = Fixture::new(profile);
        let memory_type = fixture.types_with(HOST_VISIBLE, PROTECTED)[0];
        let info =
            PoolCreateInfo { block_size: MIB, empty_blocks_kept: 0, ..PoolCreateInfo::new(memory_type) };
        let pool = fixture.pool(&info).unwrap();
        let in_pool = AllocationCreateInfo::in_pool(&pool);
        let first = fixture.memory(MIB, 1, &in_pool).unwrap();
        let mut other = fixture.memory(MIB, 1, &in_pool).unwrap();
        assert_ne!(first.memory(), other.memory());
        fixture.while_in(
            "vkFreeMemory",
            || fixture.free(first),
            || drop(fixture.allocator.map(&mut other).unwrap()),
        );
        fixture.free(other);
        fixture.destroy_pool(pool);
    });
}

/// Several threads each fit the budget alone: only as many get memory as fit it together.
#[test]
fn the_budget_holds_for_all_threads_together() {
    on_every_profile(|profile| {
        for round in 0..4 {
            let gpu = Gpu::new(profile);
            let limits = vec![10 * MIB; profile.heaps.len()];
            let options = Options { heap_size_limits: &limits, ..Options::without_budget(&gpu) };
            let fixture = Fixture::with(gpu, &options);
            let barrier = Barrier::new(4);
            let own = in_type_with(0, Flags::DEDICATED_MEMORY | Flags::WITHIN_BUDGET);
            // 80 % of 10 MiB hold two of these.
            let held: Vec<_> = std::thread::scope(|scope| {
                let threads: Vec<_> = (0..4)
                    .map(|_| {
                        scope.spawn(|| {
                            barrier.wait();
                            fixture.memory(3 * MIB, 1, &own).ok()
                        })
                    })
                    .collect();
                threads.into_iter().filter_map(|thread| thread.join().unwrap()).collect()
            });
            assert_eq!(held.len(), 2, "round {round}");
            fixture.free_all(held);
        }
    });
}

/// Concurrent trims, maps and frees: no memory is unmapped while it is in use or after it was freed.
#[test]
fn trim_against_mapping_and_freeing() {
    on_every_gpu(|fixture| {
        let memory_type = fixture.types_with(HOST_VISIBLE, PROTECTED)[0];
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(Ordering::Acquire) {
                    fixture.allocator.trim();
                }
            });
            let workers: Vec<_> = (0..3_u8)
                .map(|stamp| {
                    let fixture = &fixture;
                    scope.spawn(move || {
                        for round in 0..300 {
                            let flags = match (round + i32::from(stamp)) % 3 {
                                0 => Flags::empty(),
                                1 => Flags::MAPPED,
                                _ => Flags::DEDICATED_MEMORY,
                            };
                            let mut it = fixture.memory(256, 64, &in_type_with(memory_type, flags)).unwrap();
                            let bytes = [stamp; 256];
                            fixture.allocator.copy_to_allocation(&bytes, &mut it, 0).unwrap();
                            let mut back = [0; 256];
                            fixture.allocator.copy_from_allocation(&it, 0, &mut back).unwrap();
                            assert_eq!(back, bytes);
                            fixture.free(it);
                        }
                    })
                })
                .collect();
            let results: Vec<_> = workers.into_iter().map(|worker| worker.join()).collect();
            stop.store(true, Ordering::Release);
            assert!(results.iter().all(Result::is_ok));
        });
    });
}

/// A block that is no longer needed when it arrives is freed if the policy says so.
#[test]
fn a_block_that_came_too_late_goes_back() {
    on_profiles(having(fast_profiles), |profile| {
        for (empty_blocks_kept, left) in [(0, 1), (1, 2)] {
            let fixture = Fixture::new(profile);
            let info = PoolCreateInfo { block_size: MIB, empty_blocks_kept, ..PoolCreateInfo::new(0) };
            let pool = fixture.pool(&info).unwrap();
            let lowest = AllocationCreateInfo {
                flags: Flags::STRATEGY_MIN_OFFSET,
                ..AllocationCreateInfo::in_pool(&pool)
            };
            let large = fixture.memory(768 * KIB, 1, &lowest).unwrap();
            let small = fixture.memory(256 * KIB, 1, &lowest).unwrap();
            let late = std::sync::Mutex::new(None);
            let grow = || *late.lock().unwrap() = Some(fixture.memory(512 * KIB, 1, &lowest).unwrap());
            fixture.while_in("vkAllocateMemory", grow, || fixture.free(large));
            let late = late.into_inner().unwrap().unwrap();
            assert_eq!(
                late.memory(),
                small.memory(),
                "there was room in the old block when the new one came"
            );
            assert_eq!(fixture.gpu.live().memories, left, "{empty_blocks_kept} empty blocks kept");
            fixture.validate();
            fixture.free_all([late, small]);
            fixture.destroy_pool(pool);
        }
    });
}
