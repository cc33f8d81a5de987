//! Debug settings: margins, patterns, and unusual offsets.

use ash::vk;
use sublet::sim::{Gpu, Profile};
use sublet::{
    Algorithm, Allocation, AllocationCreateFlags as Flags, AllocationCreateInfo, AllocatorCreateFlags,
    AllocatorCreateInfo, CorruptionError, CreateAllocatorError, DamagedAllocation, DebugSettings,
    DefragmentationInfo, ForeignHandle, MemoryAllocateNext, MemoryUsage, PoolCreateInfo, Tracking,
};

use crate::common::*;

fn debugging(gpu: Gpu, debug: DebugSettings) -> Held<Fixture> {
    let info = AllocatorCreateInfo { flags: enabled(&gpu), debug, ..create_info(&gpu) };
    hold(Fixture { allocator: new_allocator(&info).unwrap(), gpu })
}

const GUARDED: DebugSettings = DebugSettings {
    margin: 16,
    detect_corruption: true,
    fill: false,
    always_dedicated: false,
    min_buffer_image_granularity: 0,
    exceed_max_allocation_count: false,
};

/// Returns the host-visible and host-coherent types, whose margins are checked.
fn guarded_types(fixture: &Fixture) -> Vec<u32> {
    fixture.types_with(HOST_VISIBLE | HOST_COHERENT, PROTECTED)
}

fn damaged(checked: Result<(), CorruptionError>) -> Vec<DamagedAllocation> {
    match checked {
        Err(CorruptionError::Damaged(damaged)) => damaged.into_vec(),
        other => panic!("{other:?}"),
    }
}

/// Writes one byte, possibly beyond the end of the allocation. The memory is coherent, so no flush is needed.
fn scribble(fixture: &Fixture, allocation: &Allocation, at: u64, byte: u8) {
    assert!(fixture.write_memory(allocation.memory(), allocation.offset() + at, &[byte]));
}

#[test]
fn a_margin_lies_behind_every_allocation_in_a_block() {
    on_every_profile(|profile| {
        let fixture = debugging(Gpu::new(profile), DebugSettings { margin: 4096, ..Default::default() });
        let mut all: Vec<_> = (0..20).map(|_| fixture.memory(1000, 8, &in_type(0)).unwrap()).collect();
        all.sort_by_key(Allocation::offset);
        for pair in all.windows(2) {
            assert!(pair[1].offset() - pair[0].offset() >= 1000 + 4096);
        }
        assert!(all.iter().all(|allocation| allocation.size() == 1000));
        let last = all.last().unwrap();
        assert!(last.offset() + 1000 + 4096 <= fixture.memory_size(last), "the last one has its margin too");
        let alone = fixture.memory(1000, 8, &in_type_with(0, Flags::DEDICATED_MEMORY)).unwrap();
        assert_eq!(fixture.memory_size(&alone), 1000, "dedicated memory has none");
        fixture.free(alone);
        fixture.free_all(all);
    });
}

#[test]
fn a_margin_has_to_fit_into_the_block() {
    let fixture = debugging(
        Gpu::new(Profile::by_name("lavapipe").unwrap()),
        DebugSettings { margin: 4096, ..Default::default() },
    );
    let info = PoolCreateInfo { block_size: MIB, max_block_count: 1, ..PoolCreateInfo::new(0) };
    for algorithm in [Algorithm::Tlsf, Algorithm::Linear] {
        let pool = fixture.pool(&PoolCreateInfo { algorithm, ..info }).unwrap();
        let in_pool = AllocationCreateInfo::in_pool(&pool);
        fixture.memory(MIB - 4095, 1, &in_pool).unwrap_err();
        let exact = fixture.memory(MIB - 4096, 1, &in_pool).unwrap();
        fixture.memory(1, 1, &in_pool).unwrap_err();
        fixture.free(exact);
        fixture.destroy_pool(pool);
    }
}

#[test]
fn who_writes_too_far_is_found_out() {
    on_every_profile(|profile| {
        let fixture = debugging(Gpu::new(profile), GUARDED);
        for memory_type in guarded_types(&fixture) {
            let named = AllocationCreateInfo { name: Some("culprit"), ..in_type(memory_type) };
            // The size is odd: a margin can begin at any byte.
            let culprit = fixture.memory(1001, 4, &named).unwrap();
            let neighbour = fixture.memory(64, 4, &in_type(memory_type)).unwrap();
            fixture.allocator.check_corruption(!0).unwrap();
            // All bytes of the allocation belong to the program.
            scribble(&fixture, &culprit, 1000, 7);
            scribble(&fixture, &culprit, 0, 7);
            fixture.allocator.check_corruption(!0).unwrap();
            let saved = fixture.read_memory(culprit.memory(), culprit.offset() + 1001, 16).unwrap();
            for wrong in [0, 5, 15] {
                scribble(&fixture, &culprit, 1001 + wrong, !saved[wrong as usize]);
                let found = damaged(fixture.allocator.check_corruption(!0));
                assert_eq!(found.len(), 1);
                let DamagedAllocation { name, memory, offset, size, bytes_past_end, freed, .. } = &found[0];
                assert_eq!(name.as_deref(), Some("culprit"));
                assert_eq!((*memory, *offset, *size), (culprit.memory(), culprit.offset(), 1001));
                assert_eq!(
                    (*bytes_past_end, *freed, found[0].memory_type_index),
                    (wrong, false, memory_type)
                );
                // A check covers only the types in the mask. A mask without a guarded type returns `NotDetected`.
                let others = fixture.allocator.check_corruption(!(1 << memory_type));
                assert!(matches!(others, Ok(()) | Err(CorruptionError::NotDetected)), "{others:?}");
                scribble(&fixture, &culprit, 1001 + wrong, saved[wrong as usize]);
                fixture.allocator.check_corruption(!0).unwrap();
            }
            scribble(&fixture, &culprit, 1001 + 3, !saved[3]);
            fixture.free(culprit);
            let found = damaged(fixture.allocator.check_corruption(1 << memory_type));
            assert_eq!((found.len(), found[0].freed, found[0].bytes_past_end), (1, true, 3));
            assert_eq!(found[0].name.as_deref(), Some("culprit"));
            assert_eq!(fixture.allocator.check_corruption(!0), Ok(()), "it is reported once");
            fixture.free(neighbour);
        }
    });
}

#[test]
fn pools_are_looked_at_on_their_own() {
    on_profiles(
        having(|profile| {
            let both = HOST_VISIBLE | HOST_COHERENT;
            profile.types.iter().any(|kind| kind.flags.contains(both) && !kind.flags.intersects(AMD_COHERENT))
        }),
        |profile| {
            let fixture = debugging(Gpu::new(profile), GUARDED);
            let memory_type = guarded_types(&fixture)[0];
            let info = PoolCreateInfo { block_size: MIB, ..PoolCreateInfo::new(memory_type) };
            for algorithm in [Algorithm::Tlsf, Algorithm::Linear, Algorithm::Buddy] {
                let info = PoolCreateInfo { algorithm, ..info };
                let (pool, other) = (fixture.pool(&info).unwrap(), fixture.pool(&info).unwrap());
                let allocation = fixture.memory(100, 1, &AllocationCreateInfo::in_pool(&pool)).unwrap();
                assert_eq!(fixture.allocator.check_pool_corruption(&pool), Ok(()));
                scribble(&fixture, &allocation, 100, 0);
                assert_eq!(damaged(fixture.allocator.check_pool_corruption(&pool)).len(), 1);
                assert_eq!(
                    damaged(fixture.allocator.check_corruption(!0)).len(),
                    1,
                    "pools are looked at too"
                );
                assert_eq!(fixture.allocator.check_pool_corruption(&other), Ok(()));
                fixture.free(allocation);
                assert_eq!(fixture.allocator.check_pool_corruption(&other), Ok(()));
                assert_eq!(damaged(fixture.allocator.check_pool_corruption(&pool)).len(), 1);
                // Allocations that are still in a destroyed pool are not checked.
                let _left = fixture.memory(100, 1, &AllocationCreateInfo::in_pool(&other)).unwrap();
                // SAFETY: the device does not use it.
                assert_eq!(unsafe { fixture.allocator.destroy_pool(other) }.unwrap().len(), 1);
                assert_eq!(fixture.allocator.check_corruption(!0), Ok(()));
                // Damage found in a pool is reported after the pool is destroyed.
                let allocation = fixture.memory(100, 1, &AllocationCreateInfo::in_pool(&pool)).unwrap();
                scribble(&fixture, &allocation, 107, 0);
                fixture.free(allocation);
                fixture.destroy_pool(pool);
                assert_eq!(damaged(fixture.allocator.check_corruption(!0))[0].bytes_past_end, 7);
            }
            let another = debugging(Gpu::new(profile), GUARDED);
            let pool = fixture.pool(&info).unwrap();
            let refused = another.allocator.check_pool_corruption(&pool);
            assert_eq!(refused, Err(CorruptionError::Foreign(ForeignHandle::Pool)));
            fixture.destroy_pool(pool);
        },
    );
}

#[test]
fn nothing_is_detected_where_nothing_was_asked_for() {
    on_every_profile(|profile| {
        for debug in [DebugSettings::default(), DebugSettings { margin: 64, ..Default::default() }] {
            let fixture = debugging(Gpu::new(profile), debug);
            assert_eq!(fixture.allocator.check_corruption(!0), Err(CorruptionError::NotDetected));
        }
        let fixture = debugging(Gpu::new(profile), GUARDED);
        assert_eq!(fixture.allocator.check_corruption(0), Err(CorruptionError::NotDetected));
        for memory_type in 0..32 {
            let is_guarded = guarded_types(&fixture).contains(&memory_type);
            let special = fixture.profile().types.get(memory_type as usize);
            if special.is_none_or(|kind| !kind.flags.intersects(PROTECTED | AMD_COHERENT)) {
                assert_eq!(fixture.allocator.check_corruption(1 << memory_type).is_ok(), is_guarded);
            }
        }
        // Memory that is not host-visible has no margins and no mapping.
        for memory_type in fixture.types_with(vk::MemoryPropertyFlags::empty(), HOST_VISIBLE) {
            let memory = fixture.memory(KIB, 1, &in_type(memory_type)).unwrap();
            fixture.free(memory);
        }
        assert_eq!(fixture.gpu.calls("vkMapMemory"), 0);
        drop(fixture);
        let gpu = Gpu::new(profile);
        let debug = DebugSettings { margin: 0, ..GUARDED };
        let info = AllocatorCreateInfo { debug, ..create_info(&gpu) };
        assert_eq!(new_allocator(&info).unwrap_err(), CreateAllocatorError::NoMargin);
    });
}

/// Allocation succeeds even if the memory cannot be mapped.
#[test]
fn a_margin_that_cannot_be_mapped() {
    let fixture =
        debugging(Gpu::new(Profile::by_name("lavapipe").unwrap()), DebugSettings { fill: true, ..GUARDED });
    fixture.gpu.faults().fail_always("vkMapMemory", vk::Result::ERROR_MEMORY_MAP_FAILED);
    let memory = fixture.memory(KIB, 1, &AllocationCreateInfo::default()).unwrap();
    fixture.gpu.faults().clear();
    assert_eq!(fixture.allocator.check_corruption(!0), Ok(()));
    fixture.free(memory);
}

/// Allocation fills with `0xDC` and free with `0xEF`. The device sees both, so the writes are flushed.
#[test]
fn patterns_in_memory() {
    on_every_profile(|profile| {
        let fixture = debugging(Gpu::new(profile), DebugSettings { fill: true, ..Default::default() });
        for memory_type in fixture.types_with(HOST_VISIBLE, PROTECTED) {
            for flags in [Flags::empty(), Flags::DEDICATED_MEMORY, Flags::MAPPED] {
                let kept = fixture.memory(64, 64, &in_type(memory_type)).unwrap();
                let allocation = fixture.memory(1000, 64, &in_type_with(memory_type, flags)).unwrap();
                let (memory, offset) = (allocation.memory(), allocation.offset());
                assert_eq!(fixture.read_memory(memory, offset, 1000).unwrap(), [0xDC; 1000]);
                fixture.free(allocation);
                if !flags.contains(Flags::DEDICATED_MEMORY) {
                    assert_eq!(fixture.read_memory(memory, offset, 1000).unwrap(), [0xEF; 1000]);
                }
                let (memory, offset) = (kept.memory(), kept.offset());
                assert_eq!(fixture.read_memory(memory, offset, 64).unwrap(), [0xDC; 64], "the neighbour");
                fixture.free(kept);
            }
        }
        // Memory without host access keeps its contents.
        let hidden = AllocationCreateInfo::new(MemoryUsage::Auto);
        let buffer = fixture.buffer(KIB, vk::BufferUsageFlags::STORAGE_BUFFER, &hidden).unwrap();
        assert_ne!(fixture.read_memory(buffer.1.memory(), buffer.1.offset(), 4).unwrap(), [0xDC; 4]);
        fixture.destroy_buffer(buffer);
    });
}

#[test]
fn everything_can_be_dedicated() {
    on_every_profile(|profile| {
        let fixture =
            debugging(Gpu::new(profile), DebugSettings { always_dedicated: true, ..Default::default() });
        let memory = fixture.memory(100, 4, &AllocationCreateInfo::default()).unwrap();
        assert!(memory.is_dedicated());
        let buffer = fixture.buffer(
            64,
            vk::BufferUsageFlags::STORAGE_BUFFER,
            &AllocationCreateInfo::new(MemoryUsage::Auto),
        );
        let buffer = buffer.unwrap();
        assert!(buffer.1.is_dedicated());
        let pool = fixture.pool(&PoolCreateInfo { block_size: MIB, ..PoolCreateInfo::new(0) }).unwrap();
        let pooled = fixture.memory(100, 4, &AllocationCreateInfo::in_pool(&pool)).unwrap();
        assert!(!pooled.is_dedicated(), "a pool with blocks of a fixed size has nothing else");
        let never = fixture.memory(100, 4, &in_type_with(0, Flags::NEVER_ALLOCATE));
        assert!(never.is_err(), "there is no block");
        fixture.free_all([memory, pooled]);
        fixture.destroy_buffer(buffer);
        fixture.destroy_pool(pool);
    });
}

#[test]
fn a_granularity_larger_than_the_devices() {
    on_every_profile(|profile| {
        let large = 64 * KIB;
        let debug = DebugSettings { min_buffer_image_granularity: large - 1, ..Default::default() };
        let fixture = debugging(Gpu::new(profile), debug);
        let granularity = large.max(profile.limits.buffer_image_granularity);
        let info = in_type(0);
        // Resources of unknown kind do not share granularity pages.
        let (first, second) =
            (fixture.memory(100, 1, &info).unwrap(), fixture.memory(100, 1, &info).unwrap());
        assert!(first.offset().abs_diff(second.offset()) >= granularity);
        assert_eq!(first.offset() % granularity, 0);
        fixture.free_all([first, second]);
        let small = debugging(
            Gpu::new(profile),
            DebugSettings { min_buffer_image_granularity: 1, ..Default::default() },
        );
        let (first, second) = (small.memory(100, 1, &info).unwrap(), small.memory(100, 1, &info).unwrap());
        assert!(first.offset().abs_diff(second.offset()) <= profile.limits.buffer_image_granularity.max(256));
        small.free_all([first, second]);
    });
}

#[test]
fn more_allocations_than_the_device_promises() {
    let profile = sublet::sim::profiles::ALL
        .iter()
        .min_by_key(|profile| profile.limits.max_memory_allocation_count)
        .unwrap();
    let limit = profile.limits.max_memory_allocation_count as usize;
    for exceeds in [false, true] {
        let debug = DebugSettings { exceed_max_allocation_count: exceeds, ..Default::default() };
        let fixture = debugging(Gpu::new(profile), debug);
        let info = in_type_with(0, Flags::DEDICATED_MEMORY);
        let all: Vec<_> = (0..limit).map(|_| fixture.memory(1, 1, &info).unwrap()).collect();
        let one_more = fixture.memory(1, 1, &info).unwrap_err();
        // The simulated driver enforces the limit and reports the excess call.
        assert_eq!(driver_result(&one_more).is_some(), exceeds);
        let reports = fixture.gpu.take_messages().len();
        assert_eq!(reports, usize::from(exceeds));
        fixture.free_all(all);
    }
}

/// With margins, contended threads get no shards.
#[test]
fn margins_with_many_threads() {
    let fixture = debugging(Gpu::new(Profile::by_name("lavapipe").unwrap()), GUARDED);
    std::thread::scope(|scope| {
        for seed in 0..4 {
            let fixture = &fixture;
            scope.spawn(move || {
                let mut random = Random::new(seed);
                let mut live = Vec::new();
                for _ in 0..200 {
                    if live.len() > 10 {
                        fixture.free(live.swap_remove(random.below(10) as usize));
                    }
                    live.push(fixture.memory(random.size(12), 1, &AllocationCreateInfo::default()).unwrap());
                    if random.below(16) == 0 {
                        fixture.allocator.check_corruption(!0).unwrap();
                    }
                }
                fixture.free_all(live);
            });
        }
    });
    assert_eq!(fixture.allocator.check_corruption(!0), Ok(()));
}

/// With tracking, the error names the caller of each damaged allocation. Dedicated memory also has a caller.
#[test]
fn who_allocated_what_was_damaged() {
    let gpu = Gpu::new(Profile::by_name("lavapipe").unwrap());
    let info = AllocatorCreateInfo { debug: GUARDED, tracking: Tracking::all(), ..create_info(&gpu) };
    let fixture = hold(Fixture { allocator: new_allocator(&info).unwrap(), gpu });
    let requirements = vk::MemoryRequirements { size: 64, alignment: 1, memory_type_bits: !0 };
    let tagged = AllocationCreateInfo { user_data: 42, ..Default::default() };
    let allocation = fixture.allocator.allocate_memory(&requirements, &tagged).unwrap();
    let line = line!() - 1;
    scribble(&fixture, &allocation, 64, 1);
    let found = damaged(fixture.allocator.check_corruption(!0));
    assert_eq!((found[0].user_data, found[0].caller.unwrap().line()), (Some(42), line));
    let none = MemoryAllocateNext::default();
    let alone = fixture.allocator.allocate_dedicated_memory(&requirements, &tagged, none).unwrap();
    let line = line!() - 1;
    assert_eq!(fixture.allocator.allocation_info(&alone).unwrap().caller.unwrap().line(), line);
    fixture.free_all([allocation, alone]);
}

/// Defragmentation moves the margins, and they are intact at source and destination.
#[test]
fn margins_and_defragmentation() {
    let profile = Profile::by_name("lavapipe").unwrap();
    let fixture = debugging(Gpu::new(profile), DebugSettings { margin: 1024, ..GUARDED });
    let info = PoolCreateInfo { block_size: 64 * KIB, empty_blocks_kept: 0, ..PoolCreateInfo::new(0) };
    let pool = fixture.pool(&info).unwrap();
    let in_pool = AllocationCreateInfo::in_pool(&pool);
    let mut all: Vec<_> = (0..60).map(|_| fixture.memory(4 * KIB, 256, &in_pool).unwrap()).collect();
    let mut kept = Vec::new();
    while let Some(allocation) = all.pop() {
        if all.len() % 3 == 0 { kept.push(allocation) } else { fixture.free(allocation) }
    }
    let pools = [&pool];
    let whole_pool = DefragmentationInfo { pools: &pools, ..Default::default() };
    let mut defragmentation = fixture.allocator.begin_defragmentation(&whole_pool).unwrap();
    let mut moved = 0;
    while let Some(pass) = defragmentation.begin_pass() {
        for one in pass {
            let at = kept.iter().position(|allocation| allocation.id() == one.source()).unwrap();
            if moved == 3 {
                // SAFETY: the device does not use it.
                unsafe { one.free(kept.swap_remove(at)) }.unwrap();
            } else {
                // SAFETY: nothing is bound to it.
                unsafe { one.complete(&mut kept[at]) }.unwrap();
            }
            moved += 1;
            assert_eq!(fixture.allocator.check_corruption(!0), Ok(()));
        }
    }
    drop(defragmentation);
    assert!(moved > 3, "{moved}");
    kept.sort_by_key(|allocation| (allocation.memory(), allocation.offset()));
    for pair in kept.windows(2) {
        assert!(pair[0].memory() != pair[1].memory() || pair[1].offset() - pair[0].offset() >= 5 * KIB);
    }
    // Each allocation has its margin at its new place.
    for (at, allocation) in kept.iter().enumerate() {
        scribble(&fixture, allocation, 4 * KIB, 0);
        assert_eq!(damaged(fixture.allocator.check_corruption(!0)).len(), at + 1);
    }
    fixture.free_all(kept);
    fixture.destroy_pool(pool);
}

#[test]
fn flags_that_vma_has() {
    assert_eq!(AllocatorCreateFlags::EXTERNALLY_SYNCHRONIZED.bits(), 1);
    assert_eq!(AllocatorCreateFlags::KHR_EXTERNAL_MEMORY_WIN32.bits(), 0x200);
}
