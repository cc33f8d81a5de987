//! The limit of mapped bytes, which bounds the address space that blocks take.

use ash::vk;
use sublet::sim::{Gpu, Profile};
use sublet::{
    AllocationCreateFlags as Flags, AllocationCreateInfo, AllocationError, AllocatorCreateInfo, BlockSizes,
    CorruptionError, DebugSettings, DefragmentationInfo, MapError, PoolCreateInfo,
};

use crate::common::*;

const MIB: u64 = 1 << 20;
/// The limit of these tests.
const LIMIT: u64 = 3 * MIB;
/// Too large to share a block of a pool with another one.
const MOST: u64 = MIB - 4096;

fn on_every_limited_gpu(test: impl Fn(Held<Fixture>, u32)) {
    on_every_gpu_that_debugs(DebugSettings::default(), test);
}

fn on_every_gpu_that_debugs(debug: DebugSettings, test: impl Fn(Held<Fixture>, u32)) {
    on_every_profile(|profile| {
        let gpu = Gpu::new(profile);
        let sizes = vec![BlockSizes { first: MIB, largest: MIB }; profile.types.len()];
        let info =
            AllocatorCreateInfo { max_mapped_size: LIMIT, block_sizes: &sizes, debug, ..create_info(&gpu) };
        let allocator = new_allocator(&info).unwrap();
        gpu.reset_calls();
        let fixture = hold(Fixture { allocator, gpu });
        let memory_type = fixture.types_with(HOST_VISIBLE, PROTECTED)[0];
        test(fixture, memory_type);
    });
}

/// Three blocks fit. A fourth one is not mapped until one of them has no user.
#[test]
fn what_nobody_uses_makes_room() {
    on_every_limited_gpu(|fixture, memory_type| {
        let info = PoolCreateInfo { block_size: MIB, ..PoolCreateInfo::new(memory_type) };
        let pool = fixture.pool(&info).unwrap();
        let info = AllocationCreateInfo::in_pool(&pool);
        let mut held: Vec<_> = (0..4).map(|_| fixture.memory(MOST, 64, &info).unwrap()).collect();
        let [first, rest @ .., last] = &mut held[..] else { unreachable!() };
        let kept = fixture.allocator.map(first).unwrap();
        let others: Vec<_> = rest.iter_mut().map(|it| fixture.allocator.map(it).unwrap()).collect();
        let error = fixture.allocator.map(last).unwrap_err();
        assert_eq!(error, MapError::AddressSpace { size: MIB, mapped: LIMIT, limit: LIMIT });
        assert_eq!(error.vk_result(), vk::Result::ERROR_MEMORY_MAP_FAILED);
        assert_eq!((fixture.gpu.calls("vkMapMemory"), fixture.gpu.calls("vkUnmapMemory")), (3, 0));

        // A request for mapped memory fails too, and the block that was made for it is gone.
        let blocks = fixture.gpu.live().memories;
        let mapped = AllocationCreateInfo { flags: Flags::MAPPED, ..info };
        let error = fixture.memory(MOST, 64, &mapped).unwrap_err();
        assert!(matches!(error, AllocationError::Map(MapError::AddressSpace { .. })), "{error:?}");
        assert_eq!((fixture.gpu.live().memories, fixture.gpu.calls("vkMapMemory")), (blocks, 3));

        drop(kept);
        drop(fixture.allocator.map(last).unwrap());
        assert_eq!((fixture.gpu.calls("vkMapMemory"), fixture.gpu.calls("vkUnmapMemory")), (4, 1));
        let persistent = fixture.memory(MOST, 64, &mapped).unwrap();
        assert_eq!((fixture.gpu.calls("vkMapMemory"), fixture.gpu.calls("vkUnmapMemory")), (5, 2));
        assert_eq!(fixture.gpu.live().mapped, 3);
        drop(others);
        fixture.free(persistent);
        fixture.free_all(held);
        fixture.destroy_pool(pool);
    });
}

/// A block with room is mapped at the price of idle memory, before dedicated memory is tried.
#[test]
fn idle_memory_makes_room_for_a_block() {
    for has_memory in [true, false] {
        on_every_limited_gpu(|fixture, memory_type| {
            let dedicated = in_type_with(memory_type, Flags::DEDICATED_MEMORY);
            let mut idle = fixture.memory(LIMIT - MIB / 2, 64, &dedicated).unwrap();
            drop(fixture.allocator.map(&mut idle).unwrap());
            let first = fixture.memory(KIB, 64, &in_type(memory_type)).unwrap();
            if !has_memory {
                let result = vk::Result::ERROR_OUT_OF_DEVICE_MEMORY;
                fixture.gpu.faults().fail_always("vkAllocateMemory", result);
            }
            let mapped = fixture.memory(KIB, 64, &in_type_with(memory_type, Flags::MAPPED)).unwrap();
            fixture.gpu.faults().clear();
            assert_eq!(mapped.memory(), first.memory());
            assert_eq!(fixture.gpu.calls("vkAllocateMemory"), 2);
            fixture.free_all([idle, first, mapped]);
        });
    }
}

/// An unused leased range gives up its mapping. A mapped request that fails in a shard leaves nothing.
#[test]
fn a_leased_range_makes_room() {
    const BLOCK: u64 = 16 * MIB;
    let fixture = {
        let gpu = Gpu::new(Profile::by_name("lavapipe").unwrap());
        let info = AllocatorCreateInfo { max_mapped_size: BLOCK, ..create_info(&gpu) };
        let allocator = new_allocator(&info).unwrap();
        hold(Fixture { allocator, gpu })
    };
    let pool = fixture.pool(&PoolCreateInfo { block_size: BLOCK, ..PoolCreateInfo::new(0) }).unwrap();
    let info = AllocationCreateInfo::in_pool(&pool);
    let kept = fixture.memory(64, 64, &info).unwrap();
    assert!(fixture.allocator.attach_to_pool(&pool).unwrap());
    let mapped = AllocationCreateInfo { flags: Flags::MAPPED, ..info };
    let mut idle = fixture.memory(BLOCK, 64, &in_type_with(0, Flags::DEDICATED_MEMORY)).unwrap();
    for is_first in [true, false] {
        let leased = fixture.memory(64, 64, &mapped).unwrap();
        assert!(!is_first || !format!("{leased:?}").contains("shard: 0"), "{leased:?}");
        let error = fixture.allocator.map(&mut idle).unwrap_err();
        assert_eq!(error, MapError::AddressSpace { size: BLOCK, mapped: BLOCK, limit: BLOCK });
        fixture.free(leased);
        let mapping = fixture.allocator.map(&mut idle).unwrap();
        let error = fixture.memory(64, 64, &mapped).unwrap_err();
        assert!(matches!(error, AllocationError::Map(MapError::AddressSpace { .. })), "{error:?}");
        fixture.validate();
        drop(mapping);
    }
    assert_eq!(fixture.gpu.live().memories, 2);
    fixture.free_all([kept, idle]);
    fixture.destroy_pool(pool);
}

/// Checking margins maps one block after another.
#[test]
fn more_margins_are_checked_than_may_be_mapped() {
    let debug = DebugSettings { margin: 16, detect_corruption: true, ..Default::default() };
    on_every_gpu_that_debugs(debug, |fixture, _| {
        for memory_type in fixture.types_with(HOST_VISIBLE | HOST_COHERENT, PROTECTED) {
            let info = PoolCreateInfo { block_size: MIB, ..PoolCreateInfo::new(memory_type) };
            let pool = fixture.pool(&info).unwrap();
            let info = AllocationCreateInfo::in_pool(&pool);
            let held: Vec<_> = (0..5).map(|_| fixture.memory(MOST, 64, &info).unwrap()).collect();
            assert_eq!(fixture.allocator.check_pool_corruption(&pool), Ok(()));
            for allocation in &held {
                let end = allocation.offset() + MOST;
                assert!(fixture.write_memory(allocation.memory(), end, &[0]));
            }
            let checked = fixture.allocator.check_pool_corruption(&pool);
            let Err(CorruptionError::Damaged(damaged)) = checked else { panic!("{checked:?}") };
            assert_eq!(damaged.len(), held.len());
            fixture.free_all(held);
            // Each free found the damage again.
            assert!(fixture.allocator.check_pool_corruption(&pool).is_err());
            fixture.destroy_pool(pool);
        }
    });
}

/// A move of mapped memory maps its destination, which may need the addresses of idle memory.
#[test]
fn a_move_makes_room() {
    on_every_limited_gpu(|fixture, memory_type| {
        let info = PoolCreateInfo { block_size: MIB, ..PoolCreateInfo::new(memory_type) };
        let pool = fixture.pool(&info).unwrap();
        let info = AllocationCreateInfo::in_pool(&pool);
        let quarter = MIB / 4;
        // The first block has room for the only allocation of the second one.
        let mut first: Vec<_> = (0..4).map(|_| fixture.memory(quarter, 64, &info).unwrap()).collect();
        let mapped = AllocationCreateInfo { flags: Flags::MAPPED, ..info };
        let mut moving = fixture.memory(quarter, 64, &mapped).unwrap();
        assert_ne!(first[0].memory(), moving.memory());
        fixture.free(first.pop().unwrap());
        let dedicated = in_type_with(memory_type, Flags::DEDICATED_MEMORY);
        let mut idle = fixture.memory(2 * MIB, 64, &dedicated).unwrap();
        drop(fixture.allocator.map(&mut idle).unwrap());
        let info = DefragmentationInfo { pools: &[&pool], ..Default::default() };
        let mut defragmentation = fixture.allocator.begin_defragmentation(&info).unwrap();
        let pass = defragmentation.begin_pass().unwrap();
        let mut moved = pass.into_iter();
        let only = moved.next().unwrap();
        assert_eq!(only.source(), moving.id());
        // SAFETY: nothing is bound to it.
        unsafe { only.complete(&mut moving) }.unwrap();
        drop(moved);
        defragmentation.end();
        assert_eq!(moving.memory(), first[0].memory());
        fixture.free(idle);
        fixture.free(moving);
        fixture.free_all(first);
        fixture.destroy_pool(pool);
    });
}

/// Freed memory, dedicated or not, counts no more. A refusal of the driver does not count.
#[test]
fn only_live_mappings_count() {
    on_every_limited_gpu(|fixture, memory_type| {
        let dedicated = in_type_with(memory_type, Flags::DEDICATED_MEMORY | Flags::MAPPED);
        for _ in 0..3 {
            fixture.gpu.faults().fail_nth("vkMapMemory", 0, vk::Result::ERROR_OUT_OF_HOST_MEMORY);
            assert!(fixture.memory(LIMIT, 64, &dedicated).is_err());
            fixture.gpu.faults().clear();
            let all = fixture.memory(LIMIT, 64, &dedicated).unwrap();
            let error = fixture.memory(64, 64, &dedicated).unwrap_err();
            let AllocationError::Map(MapError::AddressSpace { mapped, limit: LIMIT, .. }) = error else {
                panic!("{error:?}")
            };
            assert!(mapped >= LIMIT, "the driver rounds sizes up only");
            fixture.free(all);
        }
        assert_eq!(fixture.gpu.live().mapped, 0);
    });
}

/// A driver without address space has some again after memory without users is unmapped.
#[test]
fn a_driver_without_addresses() {
    on_every_limited_gpu(|fixture, memory_type| {
        let info = in_type_with(memory_type, Flags::DEDICATED_MEMORY);
        let mut held: Vec<_> = (0..2).map(|_| fixture.memory(MIB, 64, &info).unwrap()).collect();
        drop(fixture.allocator.map(&mut held[0]).unwrap());
        fixture.gpu.faults().fail_nth("vkMapMemory", 0, vk::Result::ERROR_MEMORY_MAP_FAILED);
        drop(fixture.allocator.map(&mut held[1]).unwrap());
        assert_eq!((fixture.gpu.live().mapped, fixture.gpu.calls("vkUnmapMemory")), (1, 1));
        // Nothing is idle, so the driver's answer counts.
        let _used = fixture.allocator.map_memory(&held[1]).unwrap();
        fixture.gpu.faults().fail_nth("vkMapMemory", 0, vk::Result::ERROR_MEMORY_MAP_FAILED);
        let error = fixture.allocator.map(&mut held[0]).unwrap_err();
        assert_eq!(driver_result(&error), Some(vk::Result::ERROR_MEMORY_MAP_FAILED));
        fixture.gpu.faults().clear();
        fixture.free_all(held);
    });
}

/// By default, a 64-bit host has no limit, and a 32-bit host has one of 1 GiB.
#[test]
fn only_small_address_spaces_have_a_limit_by_default() {
    let fixture = Fixture::new(Profile::by_name("nvidia-h200").unwrap());
    let memory_type = fixture.types_with(HOST_VISIBLE, PROTECTED)[0];
    let info = in_type_with(memory_type, Flags::DEDICATED_MEMORY | Flags::MAPPED);
    let size = (1 << 30) + 1;
    let limit = if cfg!(target_pointer_width = "32") { Some(1 << 30) } else { None };
    match (fixture.memory(size, 64, &info), limit) {
        (Ok(allocation), None) => fixture.free(allocation),
        (Err(AllocationError::Map(error)), Some(limit)) => {
            assert_eq!(error, MapError::AddressSpace { size, mapped: 0, limit });
        }
        (answer, _) => panic!("{answer:?}"),
    }
}
