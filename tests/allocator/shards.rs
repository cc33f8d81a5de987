//! Thread shards of a vector, tested through the public API.

use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};

use ash::vk;
use sublet::sim::{Gpu, profiles::Profile};
use sublet::{
    Allocation, AllocationCreateFlags as Flags, AllocationCreateInfo, FitPlace, MapError, Pool,
    PoolCreateInfo,
};

use crate::common::*;

/// With a larger granularity, a vector has no shards.
const LEASE_ALIGNMENT: u64 = 64 * KIB;
/// Rounds that a thread completes while another one is blocked in the driver.
const ROUNDS: u32 = 500;

fn fast_profiles(profile: &Profile) -> bool {
    ["nvidia-h200", "lavapipe"].contains(&profile.name)
}

fn host_visible(fixture: &Fixture) -> u32 {
    fixture.types_with(HOST_VISIBLE, PROTECTED)[0]
}

/// Runs `threads` threads at once, after all of them have shards where `info` allocates.
fn attached<R: Send>(
    fixture: &Fixture,
    info: &AllocationCreateInfo<'_>,
    threads: u64,
    run: impl Fn(u64) -> R + Sync,
) -> Vec<R> {
    // Shards lease ranges of an existing block.
    let kept = fixture.memory(64, 64, info).unwrap();
    let barrier = Barrier::new(threads as usize);
    let elsewhere = AtomicU64::new(0);
    let results = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|thread| {
                let (barrier, elsewhere, run) = (&barrier, &elsewhere, &run);
                scope.spawn(move || {
                    match info.pool {
                        Some(pool) => fixture.allocator.attach_to_pool(pool).unwrap(),
                        None => {
                            fixture.allocator.attach_to_memory_type(info.memory_type_bits.trailing_zeros())
                        }
                    };
                    let it = fixture.memory(64, 64, info).unwrap();
                    elsewhere.fetch_add(u64::from(format!("{it:?}").contains("shard: 0")), Ordering::Relaxed);
                    fixture.free(it);
                    // All threads start together, because some wait for one another.
                    barrier.wait();
                    (elsewhere.load(Ordering::Relaxed) == 0).then(|| run(thread))
                })
            })
            .collect();
        workers.into_iter().map(|worker| worker.join().unwrap().expect("a thread has no shard")).collect()
    });
    fixture.free(kept);
    results
}

/// While one thread is in a driver call, another allocates and frees in the core and in its shard, and reads
/// statistics, without waiting.
fn holds_up_nobody(
    fixture: &Fixture,
    info: AllocationCreateInfo<'_>,
    call: &str,
    slow: impl FnOnce() + Send,
) {
    let slow = std::sync::Mutex::new(Some(slow));
    attached(fixture, &info, 1, |_| {
        let slow = slow.lock().unwrap().take().unwrap();
        fixture.while_in(call, slow, || {
            // The first allocation uses the shard and the second the core, because shards do not support best-fit.
            let best = AllocationCreateInfo { flags: info.flags | Flags::STRATEGY_MIN_MEMORY, ..info };
            for _ in 0..ROUNDS {
                fixture.free_all([
                    fixture.memory(256, 64, &info).unwrap(),
                    fixture.memory(256, 64, &best).unwrap(),
                ]);
                let _ = fixture.allocator.memory_type_statistics();
            }
        });
    });
}

/// A leased range is not an allocation: detailed statistics show the allocations inside it.
#[test]
fn statistics_look_into_leases() {
    let fixture = Fixture::new(Profile::by_name("lavapipe").unwrap());
    let pool = fixture.pool(&PoolCreateInfo::new(host_visible(&fixture))).unwrap();
    attached(&fixture, &AllocationCreateInfo::in_pool(&pool), 1, |_| {
        let of_lease = [256, 4 * KIB]
            .map(|size| fixture.memory(size, 64, &AllocationCreateInfo::in_pool(&pool)).unwrap());
        let of_pool = fixture.allocator.calculate_pool_statistics(&pool).unwrap();
        assert_eq!(of_pool, fixture.allocator.calculate_statistics().total);
        // Includes the allocation that `attached` keeps.
        assert_eq!((of_pool.allocation_size_min, of_pool.allocation_size_max), (64, 4 * KIB));
        assert_eq!(of_pool.statistics, fixture.allocator.pool_statistics(&pool).unwrap());
        assert_eq!(
            (of_pool.statistics.allocation_count, of_pool.statistics.allocation_bytes),
            (3, 64 + 256 + 4 * KIB)
        );
        fixture.free_all(of_lease);
    });
}

/// No lock that other threads need to allocate or free is held during any driver call.
#[test]
fn no_call_of_the_driver_holds_up_others() {
    on_profiles(having(fast_profiles), |profile| {
        let fixture = Fixture::new(profile);
        let memory_type = host_visible(&fixture);
        let block_size = 64 * MIB;
        let pool = fixture.pool(&PoolCreateInfo { block_size, ..PoolCreateInfo::new(memory_type) }).unwrap();
        let in_pool = AllocationCreateInfo::in_pool(&pool);
        let vectors = [in_type(memory_type), in_pool];
        for info in vectors {
            let with = |flags| AllocationCreateInfo { flags, ..info };
            let kept = fixture.memory(KIB, 1, &info).unwrap();
            // Another block, which is freed again.
            let large = match info.pool {
                Some(_) => block_size,
                None => fixture.block_size(memory_type) / 2,
            };
            let grown = std::sync::Mutex::new(Vec::new());
            holds_up_nobody(&fixture, info, "vkAllocateMemory", || {
                grown.lock().unwrap().push(fixture.memory(large, 1, &info).unwrap());
            });
            // Until then the blocks are full, because any free elsewhere in the vector would release an empty block.
            holds_up_nobody(&fixture, info, "vkFreeMemory", || {
                fixture.free_all(grown.into_inner().unwrap());
                fixture.allocator.trim();
            });

            // Mapping and unmapping.
            let mut mine = fixture.memory(KIB, 64, &info).unwrap();
            fixture.allocator.trim();
            holds_up_nobody(&fixture, info, "vkMapMemory", || {
                drop(fixture.allocator.map(&mut mine).unwrap())
            });
            holds_up_nobody(&fixture, info, "vkUnmapMemory", || {
                fixture.allocator.trim();
            });
            let mapped = std::sync::Mutex::new(Vec::new());
            holds_up_nobody(&fixture, info, "vkMapMemory", || {
                mapped.lock().unwrap().push(fixture.memory(KIB, 64, &with(Flags::MAPPED)).unwrap());
            });
            fixture.free_all(mapped.into_inner().unwrap());
            fixture.free_all([kept, mine]);
            fixture.allocator.trim();
        }
        fixture.destroy_pool(pool);
    });
}

/// The same for driver calls about resources and dedicated memory.
#[test]
fn no_call_about_a_resource_holds_up_others() {
    on_profiles(having(fast_profiles), |profile| {
        let fixture = Fixture::new(profile);
        let memory_type = host_visible(&fixture);
        let info = in_type(memory_type);
        let own = in_type_with(memory_type, Flags::DEDICATED_MEMORY);
        let kept = fixture.memory(KIB, 1, &info).unwrap();
        let used = vk::BufferUsageFlags::STORAGE_BUFFER;

        for (call, create_info) in [
            ("vkCreateBuffer", info),
            ("vkBindBufferMemory", info),
            ("vkGetBufferMemoryRequirements2", info),
            ("vkDestroyBuffer", info),
            ("vkAllocateMemory", own),
            ("vkFreeMemory", own),
        ] {
            holds_up_nobody(&fixture, info, call, || {
                fixture.destroy_buffer(fixture.buffer(KIB, used, &create_info).unwrap());
            });
        }
        let anywhere = AllocationCreateInfo::default();
        let texture = square(16, vk::ImageUsageFlags::SAMPLED);
        for call in ["vkCreateImage", "vkBindImageMemory", "vkGetImageMemoryRequirements2", "vkDestroyImage"]
        {
            holds_up_nobody(&fixture, info, call, || {
                fixture.destroy_image(fixture.image(&texture, &anywhere).unwrap());
            });
        }
        let mut dedicated = fixture.memory(KIB, 1, &own).unwrap();
        holds_up_nobody(&fixture, info, "vkMapMemory", || {
            drop(fixture.allocator.map(&mut dedicated).unwrap())
        });
        holds_up_nobody(&fixture, info, "vkUnmapMemory", || {
            fixture.allocator.trim();
        });
        fixture.free_all([kept, dedicated]);
    });
}

/// The same for flushes and invalidations of non-coherent memory, and for budget queries.
#[test]
fn no_other_call_holds_up_others() {
    let needs_flush = |profile: &Profile| {
        profile.types.iter().any(|kind| {
            kind.flags.contains(HOST_VISIBLE)
                && !kind.flags.intersects(HOST_COHERENT | PROTECTED | AMD_COHERENT)
        })
    };
    on_profiles(
        having(|profile| {
            needs_flush(profile)
                && profile.limits.buffer_image_granularity <= LEASE_ALIGNMENT
                && large(profile)
        }),
        |profile| {
            let fixture = Fixture::new(profile);
            let memory_type = fixture.types_with(HOST_VISIBLE, PROTECTED | HOST_COHERENT)[0];
            let info = in_type(memory_type);
            let mapped = fixture.memory(KIB, 64, &in_type_with(memory_type, Flags::MAPPED)).unwrap();
            holds_up_nobody(&fixture, info, "vkFlushMappedMemoryRanges", || {
                fixture.allocator.flush(&mapped, 0, 64).unwrap();
            });
            holds_up_nobody(&fixture, info, "vkInvalidateMappedMemoryRanges", || {
                fixture.allocator.invalidate(&mapped, 0, 64).unwrap();
            });
            fixture.free(mapped);
        },
    );
    on_profiles(
        having(|profile| profile.features.memory_budget && profile.name.starts_with("nvidia")),
        |profile| {
            let fixture = Fixture::new(profile);
            let kept = fixture.memory(KIB, 1, &in_type(0)).unwrap();
            holds_up_nobody(&fixture, in_type(0), "vkGetPhysicalDeviceMemoryProperties2", || {
                fixture.allocator.set_current_frame_index(1);
            });
            fixture.free(kept);
        },
    );
}

/// Returns true if all default vectors have blocks that are large enough for shards.
fn large(profile: &Profile) -> bool {
    profile.heaps.iter().all(|heap| heap.size >= 256 * MIB)
}

/// Buffers and images of many threads. The simulated driver reports overlaps, and pages that a linear and an optimal
/// resource share.
#[test]
fn resources_of_many_threads() {
    let with_pages = |profile: &Profile| {
        (2..=LEASE_ALIGNMENT).contains(&profile.limits.buffer_image_granularity) && large(profile)
    };
    on_profiles(having(with_pages), |profile| {
        let fixture = Fixture::new(profile);
        attached(&fixture, &in_type(0), 4, |thread| {
            let mut random = Random::new(thread + 20);
            let (mut buffers, mut images) = (Vec::new(), Vec::new());
            let anywhere = AllocationCreateInfo::default();
            for _ in 0..150 {
                let used = vk::BufferUsageFlags::STORAGE_BUFFER;
                match random.below(5) {
                    0..=1 => buffers.push(fixture.buffer(random.size(12), used, &anywhere).unwrap()),
                    2 => {
                        let side = 1 << random.below(6);
                        let texture = square(side, vk::ImageUsageFlags::SAMPLED);
                        images.push(fixture.image(&texture, &anywhere).unwrap());
                    }
                    3 if buffers.len() > 10 => {
                        let at = random.below(buffers.len() as u64) as usize;
                        fixture.destroy_buffer(buffers.swap_remove(at));
                    }
                    _ if images.len() > 10 => {
                        let at = random.below(images.len() as u64) as usize;
                        fixture.destroy_image(images.swap_remove(at));
                    }
                    _ => {}
                }
            }
            fixture.gpu.assert_silent();
            buffers.into_iter().for_each(|it| fixture.destroy_buffer(it));
            images.into_iter().for_each(|it| fixture.destroy_image(it));
        });
    });
}

/// Leased ranges are returned when the threads are done: all of them by `trim`, most of them before.
#[test]
fn memory_comes_back() {
    on_profiles(having(fast_profiles), |profile| {
        // The first block has room for a range of each thread.
        let fixture = Fixture::with(Gpu::new(profile), &Options::vma());
        let info = in_type(host_visible(&fixture));
        let peak = AtomicU64::new(0);
        attached(&fixture, &info, 8, |_| {
            let held: Vec<_> = (0..2000).map(|_| fixture.memory(8 * KIB, 64, &info).unwrap()).collect();
            peak.fetch_max(fixture.gpu.live().memory_bytes_by_heap.iter().sum(), Ordering::Relaxed);
            fixture.free_all(held);
        });
        assert!(peak.into_inner() >= 16 * MIB);
        let statistics = fixture.statistics(host_visible(&fixture));
        assert_eq!((statistics.allocation_count, statistics.allocation_bytes), (0, 0));
        // One empty block is kept, and shards may hold ranges of at most one more.
        assert!(statistics.block_count <= 2, "{} blocks for nothing", statistics.block_count);
        assert_eq!(fixture.allocator.trim(), statistics.block_bytes);
        assert_eq!(fixture.gpu.live().memories, 0);
    });
}

/// A large request that gets dedicated memory leaves the shards their spare ranges.
#[test]
fn a_dedicated_request_takes_nothing_from_shards() {
    let fixture = Fixture::new(Profile::by_name("nvidia-h200").unwrap());
    // Without the range, the only block is empty and has room for this.
    let whole = vk::MemoryRequirements { size: 256 * MIB, alignment: 1, memory_type_bits: 1 };
    assert_eq!(fixture.allocator.reserve(0, whole.size).unwrap(), whole.size);
    attached(&fixture, &in_type(0), 1, |_| ());
    for size in [whole.size, whole.size + 1] {
        let large = fixture.memory(size, 1, &in_type(0)).unwrap();
        assert!(large.is_dedicated(), "{size}");
        fixture.free(large);
        let place = fixture.allocator.would_fit(&whole, &in_type(0)).unwrap().place;
        assert_eq!(place, FitPlace::Dedicated { size: whole.size }, "{size}");
    }
    assert_eq!(fixture.statistics(0).block_count, 1);
    assert_eq!(fixture.allocator.trim(), whole.size);
}

fn in_shards(fixture: &Fixture, pool: &Pool, threads: u64) -> Vec<Allocation> {
    let info = AllocationCreateInfo::in_pool(pool);
    attached(fixture, &info, threads, |_| fixture.memory(3000, 64, &info).unwrap())
}

/// A pool is destroyed while threads have shards in it. The next pool reuses its number, but none of its shards.
#[test]
fn a_pool_is_destroyed_with_shards_in_use() {
    on_profiles(having(fast_profiles), |profile| {
        let fixture = Fixture::new(profile);
        let memory_type = host_visible(&fixture);
        let create = || {
            let info = PoolCreateInfo {
                block_size: 32 * MIB,
                name: Some("doomed"),
                ..PoolCreateInfo::new(memory_type)
            };
            fixture.pool(&info).unwrap()
        };
        // The size is rounded up to whole granularity pages.
        let bytes = 3000_u64.next_multiple_of(profile.limits.buffer_image_granularity);
        let mut stale = Vec::new();
        for _ in 0..3 {
            let pool = create();
            let mut held = in_shards(&fixture, &pool, 4);
            for (at, it) in held.iter().enumerate() {
                fixture.allocator.set_allocation_name(it, Some(&at.to_string())).unwrap();
            }
            for it in &mut stale {
                assert!(matches!(fixture.allocator.map(it).map(drop), Err(MapError::Foreign(_))));
                assert!(fixture.allocator.set_allocation_name(it, Some("stale")).is_err());
                assert!(fixture.allocator.allocation_info(it).is_err());
            }
            for it in std::mem::take(&mut stale) {
                // SAFETY: nothing was bound to it.
                let refused = unsafe { fixture.allocator.free_memory(it) };
                assert!(refused.is_err(), "an allocation of a pool that is no more");
            }
            assert_eq!(fixture.allocator.pool_statistics(&pool).unwrap().allocation_count, 4);
            fixture.validate();
            let freed = held.remove(1);
            fixture.free(freed);
            // SAFETY: the device does not use its memory.
            let leaks = unsafe { fixture.allocator.destroy_pool(pool) }.unwrap();
            let mut reported: Vec<_> = leaks
                .iter()
                .map(|leak| (leak.offset, leak.size, leak.name.as_deref().map(str::to_owned)))
                .collect();
            let mut expected: Vec<_> = [0, 2, 3]
                .iter()
                .zip(&held)
                .map(|(at, it)| (it.offset(), bytes, Some(at.to_string())))
                .collect();
            reported.sort_unstable();
            expected.sort_unstable();
            assert_eq!(reported, expected);
            assert!(leaks.iter().all(|leak| leak.pool.as_deref() == Some("doomed") && !leak.dedicated));
            assert_eq!(fixture.gpu.live().memories, 0);
            stale = held;
        }
        drop(stale);
    });
}

/// An unmapped leased range is mapped for the first allocation that requests it.
#[test]
fn a_mapped_allocation_of_a_shard_has_a_pointer() {
    on_profiles(having(fast_profiles), |profile| {
        let fixture = Fixture::new(profile);
        let memory_type = host_visible(&fixture);
        let info = in_type(memory_type);
        let mapped = in_type_with(memory_type, Flags::MAPPED);
        attached(&fixture, &info, 1, |_| {
            // A shard periodically takes the slow path. The plain allocations ensure that the next request does not.
            let plain: Vec<_> = (0..3).map(|_| fixture.memory(256, 64, &info).unwrap()).collect();
            assert_eq!(fixture.gpu.calls("vkMapMemory"), 0);
            let first = fixture.memory(256, 64, &mapped).unwrap();
            let second = fixture.memory(256, 64, &mapped).unwrap();
            assert!(format!("{first:?}{second:?}").matches("shard: 0").next().is_none());
            let pointers = [&first, &second].map(|it| it.mapped_pointer().expect("it is mapped").as_ptr());
            assert_eq!(
                pointers[1].addr().wrapping_sub(pointers[0].addr()) as u64,
                second.offset().wrapping_sub(first.offset())
            );
            assert_eq!(fixture.gpu.calls("vkMapMemory"), 1);
            fixture.free_all(plain);
            fixture.free_all([first, second]);
        });
    });
}
