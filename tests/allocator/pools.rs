//! Custom pools: the linear modes, Buddy, leaks, reuse of slots, names.

use ash::vk;
use sublet::sim::profiles::Profile;
use sublet::{
    Algorithm, Allocation, AllocationCreateFlags as Flags, AllocationCreateInfo, AllocationError,
    ForeignHandle, MapError, MemoryUsage, Pool, PoolCreateInfo, ResourceKind,
};

use crate::common::*;

/// A slot size that suits every profile, for pools of one block with `PLACES` slots in memory type 0.
const PLACE: u64 = 128 * KIB;
const PLACES: u64 = 64;

fn linear() -> PoolCreateInfo<'static> {
    PoolCreateInfo { block_size: PLACES * PLACE, ..limited(1, Algorithm::Linear) }
}

/// A pool of three blocks with four places each.
fn three_blocks() -> PoolCreateInfo<'static> {
    PoolCreateInfo { block_size: 4 * PLACE, ..limited(3, Algorithm::Linear) }
}

/// Runs `test` in such a pool on every profile. The pool must be empty at the end.
fn in_pool(info: &PoolCreateInfo<'_>, test: impl Fn(&Fixture, &Pool)) {
    on_every_gpu(|fixture| {
        let pool = fixture.pool(info).unwrap();
        test(&fixture, &pool);
        fixture.destroy_pool(pool);
    });
}

fn take(fixture: &Fixture, pool: &Pool, places: u64) -> Result<Allocation, AllocationError> {
    fixture.memory(places * PLACE, 1, &AllocationCreateInfo::in_pool(pool))
}

fn take_upper(fixture: &Fixture, pool: &Pool, places: u64) -> Result<Allocation, AllocationError> {
    let upper = AllocationCreateInfo { flags: Flags::UPPER_ADDRESS, ..AllocationCreateInfo::in_pool(pool) };
    fixture.memory(places * PLACE, 1, &upper)
}

fn place(allocation: &Allocation) -> u64 {
    assert_eq!(allocation.offset() % PLACE, 0);
    allocation.offset() / PLACE
}

fn is_full(error: &AllocationError) -> bool {
    matches!(error, AllocationError::Full { block_count: 1, max_block_count: 1, .. })
}

#[test]
fn freed_at_once() {
    in_pool(&linear(), |fixture, pool| {
        for round in 0..5 {
            let mut level: Vec<_> = (0..PLACES).map(|_| take(fixture, pool, 1).unwrap()).collect();
            let places: Vec<_> = level.iter().map(place).collect();
            assert_eq!(places, (0..PLACES).collect::<Vec<_>>(), "one behind the other");
            let error = take(fixture, pool, 1).unwrap_err();
            assert!(is_full(&error), "{error:?}");
            // Holes in the middle are not reused.
            let middle = level.swap_remove(30);
            fixture.free(middle);
            assert!(is_full(&take(fixture, pool, 1).unwrap_err()));
            // Each round frees in a different order.
            let mut random = Random::new(round);
            while !level.is_empty() {
                let at = random.below(level.len() as u64) as usize;
                fixture.free(level.swap_remove(at));
            }
            assert_eq!(fixture.allocator.pool_statistics(pool).unwrap().allocation_count, 0);
        }
        assert_eq!(fixture.gpu.calls("vkAllocateMemory"), 1, "the block is kept and begins at 0 again");
    });
}

#[test]
fn stack() {
    in_pool(&linear(), |fixture, pool| {
        let mut scopes = Vec::new();
        for round in 0..200_u64 {
            if round % 5 < 3 && scopes.len() < 60 {
                let top = scopes.last().map_or(0, |top: &Allocation| place(top) + 1);
                scopes.push(take(fixture, pool, 1).unwrap());
                assert_eq!(place(scopes.last().unwrap()), top);
            } else if let Some(top) = scopes.pop() {
                fixture.free(top);
            }
        }
        while let Some(top) = scopes.pop() {
            fixture.free(top);
        }
    });
}

#[test]
fn double_stack() {
    in_pool(&linear(), |fixture, pool| {
        for _ in 0..3 {
            let mut lower: Vec<_> = (0..20).map(|_| take(fixture, pool, 1).unwrap()).collect();
            let mut upper: Vec<_> = (0..20).map(|_| take_upper(fixture, pool, 2).unwrap()).collect();
            assert_eq!(lower.iter().map(place).collect::<Vec<_>>(), (0..20).collect::<Vec<_>>());
            let expected: Vec<_> = (1..=20).map(|at| PLACES - 2 * at).collect();
            assert_eq!(upper.iter().map(place).collect::<Vec<_>>(), expected);
            // 4 places are free between the two stacks.
            assert!(is_full(&take(fixture, pool, 5).unwrap_err()));
            assert!(is_full(&take_upper(fixture, pool, 5).unwrap_err()));
            fixture.free(upper.pop().unwrap());
            let high = take(fixture, pool, 6).unwrap();
            assert_eq!(place(&high), 20);
            assert!(is_full(&take_upper(fixture, pool, 1).unwrap_err()), "they meet and do not overlap");
            fixture.free(high);
            upper.push(take_upper(fixture, pool, 6).unwrap());
            assert_eq!(place(upper.last().unwrap()), 20);
            lower.reverse();
            fixture.free_all(lower);
            fixture.free_all(upper.into_iter().rev());
        }
    });
}

#[test]
fn ring() {
    in_pool(&linear(), |fixture, pool| {
        let mut frames = std::collections::VecDeque::new();
        let mut next = 0;
        for frame in 0..300 {
            // 64 is no multiple of 7, so the ring leaves unused places at its end.
            if frames.len() == 6 {
                fixture.free(frames.pop_front().unwrap());
            }
            let granted = take(fixture, pool, 7).unwrap();
            if next + 7 > PLACES {
                next = 0;
            }
            assert_eq!(place(&granted), next, "frame {frame}");
            next += 7;
            frames.push_back(granted);
        }
        // After the ring has wrapped, upper addresses are rejected.
        while next != 7 {
            fixture.free(frames.pop_front().unwrap());
            let granted = take(fixture, pool, 7).unwrap();
            next = place(&granted) + 7;
            frames.push_back(granted);
        }
        let before = fixture.snapshot();
        assert_eq!(take_upper(fixture, pool, 1).unwrap_err(), AllocationError::UpperAddressInRing);
        assert_eq!(fixture.snapshot(), before);
        fixture.free_all(frames);
        // An empty pool accepts any mode again.
        let upper = take_upper(fixture, pool, 1).unwrap();
        assert_eq!(place(&upper), PLACES - 1);
        fixture.free(upper);
    });
}

/// An upper-address request is never dedicated, however large the request or full the pool.
#[test]
fn an_upper_address_is_never_dedicated() {
    let info = PoolCreateInfo { max_block_count: 1, algorithm: Algorithm::Linear, ..PoolCreateInfo::new(0) };
    in_pool(&info, |fixture, pool| {
        let upper =
            AllocationCreateInfo { flags: Flags::UPPER_ADDRESS, ..AllocationCreateInfo::in_pool(pool) };
        let large = fixture.memory(pool.block_size() / 8 * 5, 1, &upper).unwrap();
        assert!(!large.is_dedicated());
        let error = fixture.memory(pool.block_size() / 2, 1, &upper).unwrap_err();
        assert!(is_full(&error), "{error:?}");
        fixture.free(large);
    });
}

/// A pool with upper allocations does not wrap.
#[test]
fn a_double_stack_is_no_ring() {
    in_pool(&linear(), |fixture, pool| {
        let upper = take_upper(fixture, pool, 1).unwrap();
        let first = take(fixture, pool, 30).unwrap();
        let second = take(fixture, pool, 30).unwrap();
        fixture.free(first);
        assert!(is_full(&take(fixture, pool, 10).unwrap_err()), "the start is free, and not to be had");
        fixture.free_all([second, upper]);
    });
}

#[test]
fn linear_with_many_blocks() {
    in_pool(&three_blocks(), |fixture, pool| {
        for _ in 0..4 {
            let held: Vec<_> = (0..12).map(|_| take(fixture, pool, 1).unwrap()).collect();
            let places: Vec<_> = held.iter().map(place).collect();
            assert_eq!(places, [0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3]);
            let error = take(fixture, pool, 1).unwrap_err();
            assert!(
                matches!(error, AllocationError::Full { block_count: 3, max_block_count: 3, .. }),
                "{error:?}"
            );
            fixture.free_all(held);
            fixture.validate();
        }
    });
}

/// Space freed at the top is reusable in every block, not only in the last: as many pushes fit as there were pops.
#[test]
fn a_stack_over_several_blocks() {
    in_pool(&three_blocks(), |fixture, pool| {
        let mut stack: Vec<Allocation> = Vec::new();
        for kept in [12, 9, 8, 7, 4, 1, 5, 0, 3] {
            while stack.len() < 12 {
                let pushed = take(fixture, pool, 1).unwrap();
                assert_eq!(place(&pushed), stack.len() as u64 % 4, "on top of {}", stack.len());
                stack.push(pushed);
            }
            assert!(take(fixture, pool, 1).is_err());
            fixture.validate();
            stack.drain(kept..).rev().for_each(|popped| fixture.free(popped));
            fixture.validate();
        }
        fixture.free_all(stack);
    });
}

/// Space freed in the order of allocation is reused by whole blocks, and upper addresses are rejected.
#[test]
fn a_queue_over_several_blocks_goes_round_by_blocks() {
    in_pool(&three_blocks(), |fixture, pool| {
        let mut queue = std::collections::VecDeque::new();
        for step in 0..40 {
            // Two blocks of frames are in flight while a third block is being emptied.
            if queue.len() == 8 {
                fixture.free(queue.pop_front().unwrap());
            }
            let pushed = take(fixture, pool, 1).unwrap();
            assert_eq!(place(&pushed), step % 4, "no block is begun anew before it is empty");
            queue.push_back(pushed);
            fixture.validate();
        }
        let error = take_upper(fixture, pool, 1).unwrap_err();
        assert_eq!(error, AllocationError::UpperAddress { algorithm: Algorithm::Linear, max_block_count: 3 });
        fixture.free_all(queue);
    });
}

#[test]
fn buddy() {
    let info = PoolCreateInfo {
        block_size: 8 * MIB,
        max_block_count: 1,
        algorithm: Algorithm::Buddy,
        ..PoolCreateInfo::new(0)
    };
    in_pool(&info, |fixture, pool| {
        let mut random = Random::new(4);
        let mut held: Vec<Allocation> = Vec::new();
        for _ in 0..500 {
            if random.below(2) == 0 {
                let size = random.size(20);
                if let Ok(granted) = fixture.memory(size, 1, &AllocationCreateInfo::in_pool(pool)) {
                    assert_eq!(granted.size(), size);
                    assert_eq!(
                        granted.offset() % size.next_power_of_two(),
                        0,
                        "a power of two is where its like are"
                    );
                    held.push(granted);
                }
            } else if !held.is_empty() {
                let at = random.below(held.len() as u64) as usize;
                fixture.free(held.swap_remove(at));
            }
        }
        let mut ranges: Vec<_> = held.iter().map(|it| (it.offset(), it.offset() + it.size())).collect();
        ranges.sort_unstable();
        assert!(ranges.windows(2).all(|pair| pair[0].1 <= pair[1].0));
        let statistics = fixture.allocator.pool_statistics(pool).unwrap();
        assert!(statistics.allocation_bytes >= held.iter().map(Allocation::size).sum());
        fixture.free_all(held);
        // All buddies have merged again.
        let whole = fixture.memory(8 * MIB, 1, &AllocationCreateInfo::in_pool(pool)).unwrap();
        fixture.free(whole);
    });
}

/// If no block can hold the rounded size, the driver is not called for a block that could not be used.
#[test]
fn no_block_is_taken_that_a_buddy_cannot_use() {
    let info =
        PoolCreateInfo { block_size: 1000 * KIB, algorithm: Algorithm::Buddy, ..PoolCreateInfo::new(0) };
    in_pool(&info, |fixture, pool| {
        let before = fixture.gpu.calls("vkAllocateMemory");
        let error = fixture.memory(600 * KIB, 1, &AllocationCreateInfo::in_pool(pool)).unwrap_err();
        assert_eq!(error, AllocationError::BlockTooSmall { size: 600 * KIB, block_size: 1000 * KIB });
        assert_eq!(fixture.gpu.calls("vkAllocateMemory"), before);
        let largest = fixture.memory(512 * KIB, 1, &AllocationCreateInfo::in_pool(pool)).unwrap();
        fixture.free(largest);
        // The start of a block satisfies every alignment.
        let aligned = fixture.memory(64, MIB, &AllocationCreateInfo::in_pool(pool)).unwrap();
        assert_eq!(aligned.offset(), 0);
        fixture.free(aligned);
    });
}

#[test]
fn an_upper_address_without_a_limit_of_blocks_is_told_so() {
    let fixture = Fixture::new(sublet::sim::Profile::by_name("lavapipe").unwrap());
    let upper = AllocationCreateInfo { flags: Flags::UPPER_ADDRESS, ..Default::default() };
    let error = fixture.memory(KIB, 1, &upper).unwrap_err();
    assert!(matches!(error, AllocationError::UpperAddress { max_block_count: 0, .. }), "{error:?}");
    assert!(error.to_string().ends_with("this is Tlsf with any number of blocks"), "{error}");
}

#[test]
fn managed_pools_grow_and_have_dedicated_memory() {
    in_pool(&PoolCreateInfo { name: Some("managed"), ..PoolCreateInfo::new(0) }, |fixture, pool| {
        assert_eq!((pool.memory_type_index(), pool.block_size()), (0, fixture.block_size(0)));
        let in_pool = AllocationCreateInfo::in_pool(pool);
        let small = fixture.memory(KIB, 1, &in_pool).unwrap();
        let eighth = (fixture.block_size(0) / 8).next_multiple_of(32);
        assert_eq!(fixture.memory_size(&small), eighth.min(4 * MIB));
        let large = fixture.memory(fixture.block_size(0) / 2 + 1, 1, &in_pool).unwrap();
        assert!(large.is_dedicated());
        let own = AllocationCreateInfo { flags: Flags::DEDICATED_MEMORY, ..in_pool };
        let own = fixture.memory(KIB, 1, &own).unwrap();
        // In a pool, usage and memory types of the create-info are ignored.
        let odd = AllocationCreateInfo {
            required_flags: vk::MemoryPropertyFlags::from_raw(1 << 30),
            memory_type_bits: 1 << 31,
            ..in_pool
        };
        let odd = fixture.memory(KIB, 1, &odd).unwrap();
        let statistics = fixture.allocator.pool_statistics(pool).unwrap();
        assert_eq!((statistics.block_count, statistics.allocation_count), (3, 4));
        assert_eq!(statistics, fixture.statistics(0), "everything of that type is in the pool");
        let detailed = fixture.allocator.calculate_pool_statistics(pool).unwrap();
        assert_eq!(detailed.statistics, statistics);
        assert_eq!(fixture.allocator.calculate_statistics().total.statistics, statistics);
        fixture.free_all([small, large, own, odd]);
    });
}

#[test]
fn names_of_pools() {
    on_every_gpu(|fixture| {
        let pool = fixture.pool(&PoolCreateInfo { name: Some("first"), ..PoolCreateInfo::new(0) }).unwrap();
        assert_eq!(fixture.allocator.pool_name(&pool).unwrap().as_deref(), Some("first"));
        fixture.allocator.set_pool_name(&pool, Some("second")).unwrap();
        assert_eq!(fixture.allocator.pool_name(&pool).unwrap().as_deref(), Some("second"));
        fixture.allocator.set_pool_name(&pool, None).unwrap();
        assert_eq!(fixture.allocator.pool_name(&pool).unwrap(), None);
        fixture.allocator.set_pool_name(&pool, Some("third")).unwrap();
        fixture.destroy_pool(pool);
        // The next pool in the same slot has no name.
        let pool = fixture.pool(&PoolCreateInfo::new(0)).unwrap();
        assert_eq!(fixture.allocator.pool_name(&pool).unwrap(), None);
        fixture.destroy_pool(pool);
    });
}

/// A leak outside pools and a leak in an unnamed pool are reported differently.
#[test]
fn a_leak_in_a_pool_without_a_name_has_its_number() {
    on_every_gpu(|fixture| {
        let _other = fixture.pool(&PoolCreateInfo::new(0)).unwrap();
        let pool = fixture.pool(&PoolCreateInfo::new(0)).unwrap();
        let _inside = fixture.memory(1000, 1, &AllocationCreateInfo::in_pool(&pool)).unwrap();
        let own =
            AllocationCreateInfo { flags: Flags::DEDICATED_MEMORY, ..AllocationCreateInfo::in_pool(&pool) };
        let _own = fixture.memory(1000, 1, &own).unwrap();
        let _outside = fixture.memory(1000, 1, &in_type(0)).unwrap();
        let Fixture { allocator, .. } = fixture.release();
        let mut leaks: Vec<_> = allocator.destroy();
        leaks.sort_by_key(|leak| (leak.pool_number, leak.dedicated));
        let numbers: Vec<_> = leaks.iter().map(|leak| leak.pool_number).collect();
        assert_eq!(numbers, [None, Some(pool.number()), Some(pool.number())]);
        let lines: Vec<_> = leaks.iter().map(ToString::to_string).collect();
        assert!(lines[0].contains(" at 0, memory type 0"), "{lines:?}");
        assert!(lines[1].contains(" at 0 in pool 1, memory type 0"), "{lines:?}");
        assert!(lines[2].contains(", dedicated in pool 1, memory type 0"), "{lines:?}");
    });
}

#[test]
fn leaks_are_reported_by_name() {
    on_every_gpu(|fixture| {
        let info = PoolCreateInfo { name: Some("leaky"), ..PoolCreateInfo::new(0) };
        let pool = fixture.pool(&info).unwrap();
        let named = |name, flags| AllocationCreateInfo {
            name: Some(name),
            flags,
            ..AllocationCreateInfo::in_pool(&pool)
        };
        let freed = fixture.memory(KIB, 1, &named("freed", Flags::empty())).unwrap();
        let _first = fixture.memory(1000, 1, &named("first", Flags::empty())).unwrap();
        let _second = fixture.memory(2000, 1, &named("second", Flags::DEDICATED_MEMORY)).unwrap();
        let _third = fixture.memory(3000, 1, &AllocationCreateInfo::in_pool(&pool)).unwrap();
        fixture.free(freed);
        // SAFETY: the device does not use its memory.
        let leaks = unsafe { fixture.allocator.destroy_pool(pool) }.unwrap();
        let seen: Vec<_> = leaks.iter().map(|leak| (leak.name.as_deref(), leak.dedicated)).collect();
        assert_eq!(seen.len(), 3, "{leaks:?}");
        for expected in [(Some("first"), false), (Some("second"), true), (None, false)] {
            assert!(seen.contains(&expected), "{expected:?} in {leaks:?}");
        }
        for leak in &leaks {
            assert_eq!((leak.pool.as_deref(), leak.pool_number), (Some("leaky"), Some(0)));
            assert!(leak.to_string().contains(" in the pool \"leaky\", memory type 0"), "{leak}");
            assert_eq!((leak.memory_type_index, leak.kind), (0, ResourceKind::Unknown));
            assert!(leak.size >= 1000);
        }
        assert!(fixture.gpu.live().is_empty(), "the memory is freed all the same");

        let buffer = AllocationCreateInfo { name: Some("vertices"), ..in_type(0) };
        let image = AllocationCreateInfo { name: Some("albedo"), ..Default::default() };
        let buffer = fixture.buffer(KIB, vk::BufferUsageFlags::TRANSFER_SRC, &buffer);
        let image = fixture.image(&square(16, vk::ImageUsageFlags::SAMPLED), &image).unwrap();
        let Fixture { allocator, gpu } = fixture.release();
        let device = gpu.device();
        let mut expected = vec![("albedo", ResourceKind::ImageOptimal)];
        // SAFETY: the device does not use the image.
        unsafe { device.destroy_image(image.0, None) };
        if let Ok((buffer, _)) = &buffer {
            expected.push(("vertices", ResourceKind::Buffer));
            // SAFETY: the device does not use the buffer.
            unsafe { device.destroy_buffer(*buffer, None) };
        }
        let leaks = allocator.destroy();
        let mut seen: Vec<_> = leaks.iter().map(|leak| (leak.name.as_deref().unwrap(), leak.kind)).collect();
        seen.sort_unstable_by_key(|it| it.0);
        assert_eq!(seen, expected);
        assert!(gpu.live().is_empty());
        gpu.assert_silent();
    });
}

/// Dropping an allocator frees everything, including its pools.
#[test]
fn dropping_frees_everything() {
    on_every_gpu(|fixture| {
        let pool = fixture.pool(&PoolCreateInfo { min_block_count: 1, ..PoolCreateInfo::new(0) }).unwrap();
        let _lost = fixture.memory(KIB, 1, &AllocationCreateInfo::in_pool(&pool)).unwrap();
        let _lost = fixture.memory(KIB, 1, &in_type_with(0, Flags::DEDICATED_MEMORY)).unwrap();
        let Fixture { allocator, gpu } = fixture.release();
        drop(allocator);
        assert!(gpu.live().is_empty());
        gpu.assert_silent();
    });
}

/// Allocations of a destroyed pool are rejected, even if another pool has reused the slot.
#[test]
fn stale_allocations_do_no_damage() {
    on_every_gpu(|fixture| {
        let tlsf = Algorithm::Tlsf;
        for (algorithm, flags) in [
            (tlsf, Flags::empty()),
            (tlsf, Flags::DEDICATED_MEMORY),
            (Algorithm::Linear, Flags::empty()),
            (Algorithm::Buddy, Flags::empty()),
        ] {
            let pool_info = PoolCreateInfo { algorithm, ..PoolCreateInfo::new(0) };
            let pool = fixture.pool(&pool_info).unwrap();
            let stale = AllocationCreateInfo { flags, ..AllocationCreateInfo::in_pool(&pool) };
            let mut stale = fixture.memory(KIB, 1, &stale).unwrap();
            // SAFETY: the device does not use its memory.
            assert_eq!(unsafe { fixture.allocator.destroy_pool(pool) }.unwrap().len(), 1);
            let pool = fixture.pool(&pool_info).unwrap();
            let fresh =
                AllocationCreateInfo { flags, name: Some("fresh"), ..AllocationCreateInfo::in_pool(&pool) };
            let fresh = fixture.memory(KIB, 1, &fresh).unwrap();
            let before = fixture.snapshot();
            let foreign = ForeignHandle::Allocation;
            assert_eq!(fixture.allocator.allocation_info(&stale), Err(foreign));
            assert_eq!(fixture.allocator.set_allocation_name(&stale, Some("stale")), Err(foreign));
            if fixture.properties(0).contains(HOST_VISIBLE) {
                assert_eq!(fixture.allocator.map(&mut stale).unwrap_err(), MapError::Foreign(foreign));
            }
            // SAFETY: the call is rejected.
            assert!(unsafe { fixture.allocator.free_memory(stale) }.is_err());
            assert_eq!(fixture.snapshot(), before);
            let info = fixture.allocator.allocation_info(&fresh).unwrap();
            assert_eq!(info.name.as_deref(), Some("fresh"));
            fixture.free(fresh);
            fixture.destroy_pool(pool);
        }
    });
}

#[test]
fn slots_are_used_again() {
    on_every_gpu(|fixture| {
        let kept = fixture.pool(&PoolCreateInfo { name: Some("kept"), ..PoolCreateInfo::new(0) }).unwrap();
        for round in 0..100 {
            let pools: Vec<_> = (0..5)
                .map(|at| {
                    let info = PoolCreateInfo { block_size: MIB << at, ..PoolCreateInfo::new(0) };
                    fixture.pool(&info).unwrap()
                })
                .collect();
            for (at, pool) in pools.iter().enumerate() {
                assert_eq!(pool.block_size(), MIB << at);
                if round % 10 == 0 {
                    fixture.free(fixture.memory(KIB, 1, &AllocationCreateInfo::in_pool(pool)).unwrap());
                }
            }
            pools.into_iter().for_each(|pool| fixture.destroy_pool(pool));
        }
        assert_eq!(fixture.allocator.pool_name(&kept).unwrap().as_deref(), Some("kept"));
        fixture.destroy_pool(kept);
    });
}

/// A pool with a block limit, whose block sizes the allocator chooses.
fn limited(max_block_count: u32, algorithm: Algorithm) -> PoolCreateInfo<'static> {
    PoolCreateInfo { max_block_count, algorithm, ..PoolCreateInfo::new(0) }
}

/// Returns the number of driver allocations of the pool that count towards its limit.
fn memories(fixture: &Fixture, pool: &Pool) -> u64 {
    fixture.allocator.pool_statistics(pool).unwrap().block_count
}

#[test]
fn a_limit_counts_all_memory_of_a_pool() {
    on_every_profile(|profile| {
        for max in [1, 3] {
            let fixture = Fixture::new(profile);
            let pool = fixture.pool(&limited(max, Algorithm::Tlsf)).unwrap();
            let info = AllocationCreateInfo::in_pool(&pool);
            let size = fixture.block_size(0) / 64;
            let mut held = Vec::new();
            let error = loop {
                match fixture.memory(size, 1, &info) {
                    Ok(allocation) => held.push(allocation),
                    Err(error) => break error,
                }
                assert!(memories(&fixture, &pool) <= u64::from(max));
            };
            let AllocationError::Full { block_count, max_block_count, .. } = error else {
                panic!("{error:?}");
            };
            assert_eq!((block_count, max_block_count), (max, max));
            assert!(held.iter().all(|allocation| !allocation.is_dedicated()), "nobody asked for it");
            assert!(held.len() >= 60, "the last block is as large as they get: {}", held.len());
            assert_eq!(fixture.gpu.calls("vkAllocateMemory"), u64::from(max));
            // `would_fit` returns the same result.
            let requirements = vk::MemoryRequirements { size, alignment: 1, memory_type_bits: !0 };
            let fit = fixture.allocator.would_fit(&requirements, &info);
            assert!(matches!(fit, Err(AllocationError::Full { .. })), "{fit:?}");
            // Requests with `DEDICATED_MEMORY` still succeed. They do not count towards the limit.
            let own = AllocationCreateInfo { flags: Flags::DEDICATED_MEMORY, ..info };
            let named = fixture.memory(size, 1, &own).unwrap();
            assert!(named.is_dedicated());
            assert_eq!(memories(&fixture, &pool), u64::from(max) + 1);
            fixture.free(held.pop().unwrap());
            held.push(fixture.memory(size, 1, &info).unwrap());
            fixture.free(named);
            fixture.free_all(held);
            fixture.destroy_pool(pool);
        }
    });
}

#[test]
fn what_nobody_asked_to_be_dedicated_counts_as_a_block() {
    on_every_gpu(|fixture| {
        let block = fixture.block_size(0);
        let pool = fixture.pool(&limited(2, Algorithm::Tlsf)).unwrap();
        let info = AllocationCreateInfo::in_pool(&pool);
        let small = fixture.memory(KIB, 1, &info).unwrap();
        // Larger than a block.
        let large = fixture.memory(block + 1, 1, &info).unwrap();
        assert!(large.is_dedicated());
        assert_eq!(memories(&fixture, &pool), 2);
        let before = fixture.snapshot();
        let error = fixture.memory(block + 1, 1, &info).unwrap_err();
        let AllocationError::Full { block_count: 2, max_block_count: 2, .. } = error else {
            panic!("{error:?}");
        };
        assert_eq!(fixture.snapshot(), before);
        // Freeing it permits another one.
        fixture.free(large);
        let again = fixture.memory(block + 1, 1, &info).unwrap();
        assert!(again.is_dedicated());
        fixture.free(again);
        // A failed request does not count either.
        let call = "vkAllocateMemory";
        let lost = vk::Result::ERROR_DEVICE_LOST;
        fixture.gpu.faults().fail_nth(call, 0, lost);
        let error = fixture.memory(block + 1, 1, &info).unwrap_err();
        assert_eq!(driver_result(&error), Some(lost), "{error:?}");
        let again = fixture.memory(block + 1, 1, &info).unwrap();
        fixture.free_all([again, small]);
        fixture.destroy_pool(pool);
    });
}

#[test]
fn a_driver_that_prefers_dedicated_memory_leaves_the_places_of_a_limit() {
    let prefers = |profile: &Profile| profile.images.prefers_dedicated_target_from.is_some();
    on_profiles(having(prefers), |profile| {
        let fixture = Fixture::new(profile);
        let target = square(1024, vk::ImageUsageFlags::COLOR_ATTACHMENT);
        let gpu_only = AllocationCreateInfo::new(MemoryUsage::GpuOnly);
        // SAFETY: the create-info is valid.
        let memory_type =
            unsafe { fixture.allocator.find_memory_type_index_for_image_info(&target, &gpu_only) }.unwrap();
        let free = fixture.image(&target, &gpu_only).unwrap();
        assert!(free.1.is_dedicated(), "it is preferred");
        let info = PoolCreateInfo { memory_type_index: memory_type, ..limited(1, Algorithm::Tlsf) };
        let pool = fixture.pool(&info).unwrap();
        let info = AllocationCreateInfo::in_pool(&pool);
        let mut images: Vec<_> = (0..3).map(|_| fixture.image(&target, &info).unwrap()).collect();
        assert!(images.iter().all(|(_, allocation)| !allocation.is_dedicated()));
        assert_eq!(memories(&fixture, &pool), 1);
        images.push(free);
        images.into_iter().for_each(|image| fixture.destroy_image(image));
        fixture.destroy_pool(pool);
    });
}

#[test]
fn a_ring_without_a_block_size_calls_the_driver_once() {
    on_every_gpu(|fixture| {
        let pool = fixture.pool(&limited(1, Algorithm::Linear)).unwrap();
        let info = AllocationCreateInfo::in_pool(&pool);
        let block = fixture.block_size(0);
        let size = block / 8;
        let mut frames = std::collections::VecDeque::new();
        for _ in 0..40 {
            if frames.len() == 3 {
                fixture.free(frames.pop_front().unwrap());
            }
            frames.push_back(fixture.memory(size, 1, &info).unwrap());
        }
        assert_eq!(fixture.gpu.calls("vkAllocateMemory"), 1);
        assert!(frames.iter().all(|frame| !frame.is_dedicated() && fixture.memory_size(frame) == block));
        // A request for more than half of the block also goes into it.
        fixture.free_all(frames);
        let half = fixture.memory(block / 2 + 1, 1, &info).unwrap();
        assert!(!half.is_dedicated());
        fixture.free(half);
        fixture.destroy_pool(pool);

        // The same without a limit.
        let pool = fixture.pool(&limited(0, Algorithm::Linear)).unwrap();
        let allocation = fixture.memory(KIB, 1, &AllocationCreateInfo::in_pool(&pool)).unwrap();
        assert_eq!(fixture.memory_size(&allocation), block);
        fixture.free(allocation);
        fixture.destroy_pool(pool);
    });
}
