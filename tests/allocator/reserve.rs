//! Reserved blocks: when they are created, and when they may be freed.

use ash::vk;
use sublet::sim::{Gpu, Profile};
use sublet::{
    AllocationCreateFlags as Flags, AllocationCreateInfo, ForeignHandle, MemoryError, Pool, PoolCreateInfo,
    ReserveMemoryError,
};

use crate::common::*;

/// A profile with one heap of 2 GiB and one memory type, whose blocks have up to 256 MiB.
fn lavapipe() -> &'static Profile {
    Profile::by_name("lavapipe").unwrap()
}

fn plain(empty_blocks_kept: u32) -> Held<Fixture> {
    Fixture::with(Gpu::new(lavapipe()), &Options { empty_blocks_kept, ..Options::vma() })
}

fn limited(limit: u64) -> Held<Fixture> {
    Fixture::with(Gpu::new(lavapipe()), &Options { heap_size_limits: &[limit], ..Options::default() })
}

/// Allocates and frees one allocation that fits in any block.
fn use_once(fixture: &Fixture) {
    fixture.free(fixture.memory(MIB, 1, &in_type(0)).unwrap());
}

#[test]
fn reserved_blocks_stay_until_something_was_freed_in_them() {
    let fixture = plain(0);
    assert_eq!(fixture.allocator.reserve(0, 600 * MIB + 1), Ok(601 * MIB));
    assert_eq!(fixture.statistics(0).block_count, 3, "256, 256 and 89 MiB");
    assert_eq!(fixture.allocator.trim(), 0);
    assert_eq!(fixture.allocator.set_empty_blocks_kept(0), 0);
    fixture.gpu.reset_calls();
    let first = fixture.memory(80 * MIB, 1, &in_type(0)).unwrap();
    assert_eq!(fixture.memory_size(&first), 89 * MIB, "the smallest block with room");
    assert_eq!(fixture.gpu.calls("vkAllocateMemory"), 0);
    assert_eq!(fixture.allocator.trim(), 0, "one is in use, and two are reserved");
    fixture.validate();
    fixture.free(first);
    assert_eq!(fixture.statistics(0).block_bytes, 512 * MIB, "no empty block is kept");
    use_once(&fixture);
    use_once(&fixture);
    assert_eq!(fixture.statistics(0).block_count, 0);
}

#[test]
fn a_used_block_that_is_kept_goes_with_a_trim() {
    let fixture = plain(1);
    fixture.allocator.reserve(0, 64 * MIB).unwrap();
    use_once(&fixture);
    assert_eq!(fixture.statistics(0).block_count, 1);
    assert_eq!(fixture.allocator.trim(), 64 * MIB);
}

/// Unused blocks count, reserved or not. Afterwards all of them are reserved.
#[test]
fn what_exists_is_reserved_first() {
    let fixture = plain(1);
    use_once(&fixture);
    let kept = fixture.statistics(0).block_bytes;
    assert!(kept > 0);
    assert_eq!(fixture.allocator.reserve(0, kept), Ok(0));
    assert_eq!(fixture.allocator.trim(), 0);
    assert_eq!(fixture.allocator.reserve(0, kept + 10 * MIB), Ok(10 * MIB));
    assert_eq!(fixture.allocator.reserve(0, kept + 10 * MIB), Ok(0));
    assert_eq!(fixture.allocator.reserve(0, 0), Ok(0));
    let held = fixture.memory(MIB, 1, &in_type(0)).unwrap();
    assert_eq!(fixture.allocator.reserve(0, kept + 10 * MIB), Ok(10 * MIB), "a block in use does not count");
    assert_eq!(fixture.allocator.trim(), 0);
    fixture.free(held);
}

#[test]
fn a_reservation_that_fails_leaves_nothing() {
    let limit = 1000 * MIB;
    for fails_at in [None, Some(0), Some(1), Some(3)] {
        let fixture = limited(limit);
        use_once(&fixture);
        let kept = fixture.statistics(0).block_bytes;
        let before = fixture.snapshot();
        fixture.gpu.reset_calls();
        let error = match fails_at {
            // Above the budget, which is 80 % of the limit.
            None => {
                let error = fixture.allocator.reserve(0, 900 * MIB).unwrap_err();
                assert_eq!(fixture.gpu.calls("vkAllocateMemory"), 0);
                error
            }
            Some(nth) => {
                let result = vk::Result::ERROR_UNKNOWN;
                fixture.gpu.faults().fail_nth("vkAllocateMemory", nth, result);
                fixture.allocator.reserve(0, 700 * MIB).unwrap_err()
            }
        };
        match (fails_at, error) {
            (None, ReserveMemoryError::Memory(MemoryError::OverBudget { size, budget, .. })) => {
                let missing = (900 * MIB - kept).next_multiple_of(MIB);
                assert_eq!((size, budget), (missing, limit / 10 * 8));
            }
            (Some(_), ReserveMemoryError::Memory(MemoryError::Driver { .. })) => {}
            other => panic!("{other:?}"),
        }
        fixture.gpu.faults().clear();
        assert_eq!(fixture.snapshot(), before);
        assert_eq!(fixture.allocator.trim(), kept, "the kept block is not reserved");
    }
}

#[test]
fn a_request_that_would_fail_frees_reserved_blocks() {
    let fixture = limited(512 * MIB);
    fixture.allocator.reserve(0, 300 * MIB).unwrap();
    let own = in_type_with(0, Flags::DEDICATED_MEMORY);
    let fits = fixture.memory(200 * MIB, 1, &own).unwrap();
    assert_eq!(fixture.statistics(0).block_count, 1 + 5, "there is room beside the reserved blocks");
    let second = fixture.memory(250 * MIB, 1, &own).unwrap();
    assert_eq!(fixture.statistics(0).block_count, 2);
    fixture.free_all([fits, second]);
    // The driver refuses, and does not say how much it lacks.
    fixture.allocator.reserve(0, 300 * MIB).unwrap();
    fixture.gpu.faults().fail_nth("vkAllocateMemory", 0, vk::Result::ERROR_OUT_OF_DEVICE_MEMORY);
    let third = fixture.memory(10 * MIB, 1, &own).unwrap();
    assert_eq!(fixture.statistics(0).block_count, 1);
    fixture.free(third);
}

/// Empty blocks that are not reserved go first, and a reservation frees no other reservation.
#[test]
fn reserved_blocks_go_last() {
    let fixture = limited(512 * MIB);
    let pool = fixture.pool(&PoolCreateInfo { block_size: 100 * MIB, ..PoolCreateInfo::new(0) }).unwrap();
    fixture.free(fixture.memory(KIB, 1, &AllocationCreateInfo::in_pool(&pool)).unwrap());
    fixture.allocator.reserve(0, 200 * MIB).unwrap();
    let count = |pool: &Pool| fixture.allocator.pool_statistics(pool).unwrap().block_count;
    let own = in_type_with(0, Flags::DEDICATED_MEMORY);
    let held = fixture.memory(260 * MIB, 1, &own).unwrap();
    assert_eq!((count(&pool), fixture.allocator.default_statistics(0).unwrap().block_count), (0, 1 + 4));
    fixture.free(held);
    fixture.free(fixture.memory(KIB, 1, &AllocationCreateInfo::in_pool(&pool)).unwrap());
    // The budget is 409.6 MiB.
    let other = fixture.pool(&PoolCreateInfo { block_size: 150 * MIB, ..PoolCreateInfo::new(0) }).unwrap();
    assert_eq!(fixture.allocator.reserve_in_pool(&other, 1), Ok(150 * MIB));
    assert_eq!((count(&pool), count(&other)), (0, 1), "the empty block made room");
    let error = fixture.allocator.reserve_in_pool(&other, 300 * MIB).unwrap_err();
    assert!(matches!(error, ReserveMemoryError::Memory(MemoryError::OverBudget { .. })), "{error:?}");
    assert_eq!(fixture.allocator.default_statistics(0).unwrap().block_bytes, 200 * MIB);
    fixture.destroy_pool(pool);
    fixture.destroy_pool(other);
}

#[test]
fn a_pool_reserves_up_to_its_limit() {
    let fixture = plain(1);
    let info = PoolCreateInfo { block_size: 10 * MIB, max_block_count: 3, ..PoolCreateInfo::new(0) };
    let pool = fixture.pool(&info).unwrap();
    assert_eq!(fixture.allocator.reserve_in_pool(&pool, 11 * MIB), Ok(20 * MIB));
    assert_eq!(fixture.allocator.trim(), 0);
    fixture.gpu.reset_calls();
    let error = fixture.allocator.reserve_in_pool(&pool, 31 * MIB).unwrap_err();
    let expected =
        ReserveMemoryError::TooManyBlocks { bytes: 20 * MIB, blocks: 2, block_count: 2, max_block_count: 3 };
    assert_eq!(error, expected);
    assert_eq!(error.to_string(), "20971520 bytes need 2 more blocks: the pool has 2 and may have 3");
    assert_eq!(fixture.gpu.calls("vkAllocateMemory"), 0);
    assert_eq!(fixture.allocator.reserve_in_pool(&pool, 30 * MIB), Ok(10 * MIB));
    let other = plain(1);
    let foreign = Err(ReserveMemoryError::Foreign(ForeignHandle::Pool));
    assert_eq!(other.allocator.reserve_in_pool(&pool, 1), foreign);
    fixture.destroy_pool(pool);
}

#[test]
fn only_allowed_types_reserve() {
    let fixture = plain(1);
    let error = fixture.allocator.reserve(7, 1).unwrap_err();
    assert_eq!(error, ReserveMemoryError::MemoryType { memory_type: 7, allowed: 1 });
    let error = fixture.allocator.reserve(0, u64::MAX).unwrap_err();
    assert!(matches!(error, ReserveMemoryError::Memory(MemoryError::HeapTooSmall { .. })), "{error:?}");
}

/// An allocation that is undone did not use the block.
#[test]
fn a_failed_bind_uses_no_reservation() {
    let fixture = plain(0);
    fixture.allocator.reserve(0, 64 * MIB).unwrap();
    for call in ["vkBindBufferMemory", "vkBindBufferMemory2"] {
        fixture.gpu.faults().fail_always(call, vk::Result::ERROR_OUT_OF_HOST_MEMORY);
    }
    fixture.buffer(KIB, vk::BufferUsageFlags::VERTEX_BUFFER, &in_type(0)).unwrap_err();
    fixture.gpu.faults().clear();
    assert_eq!((fixture.allocator.trim(), fixture.statistics(0).block_count), (0, 1));
}

/// Every memory type of every GPU serves a reservation as large as one block.
#[test]
fn all_memory_types_reserve() {
    on_every_gpu(|fixture| {
        for memory_type in fixture.types() {
            let bytes = fixture.block_size(memory_type) / 4;
            match fixture.allocator.reserve(memory_type, bytes) {
                Ok(made) => assert!((bytes..=bytes + MIB).contains(&made), "{made} of {bytes}"),
                Err(error) => panic!("type {memory_type}: {error}"),
            }
            fixture.gpu.reset_calls();
            let held =
                fixture.memory(bytes / 2, 1, &in_type_with(memory_type, Flags::NEVER_ALLOCATE)).unwrap();
            assert_eq!(fixture.gpu.calls("vkAllocateMemory"), 0);
            fixture.free(held);
        }
    });
}

#[test]
fn more_blocks_than_the_device_allows_call_no_driver() {
    let few = having(|profile| profile.limits.max_memory_allocation_count == 4096)[0];
    let fixture = Fixture::with(Gpu::new(few), &Options::vma());
    let pool = fixture.pool(&PoolCreateInfo { block_size: KIB, ..PoolCreateInfo::new(0) }).unwrap();
    fixture.gpu.reset_calls();
    let refused = Err(MemoryError::TooManyAllocations { limit: 4096 }.into());
    assert_eq!(fixture.allocator.reserve_in_pool(&pool, 4097 * KIB), refused);
    assert_eq!(fixture.gpu.calls("vkAllocateMemory"), 0);
    let info = PoolCreateInfo { block_size: KIB, max_block_count: 3, ..PoolCreateInfo::new(0) };
    let small = fixture.pool(&info).unwrap();
    let own_limit = fixture.allocator.reserve_in_pool(&small, 4097 * KIB);
    assert!(matches!(own_limit, Err(ReserveMemoryError::TooManyBlocks { .. })), "{own_limit:?}");
    assert_eq!(fixture.allocator.reserve_in_pool(&pool, 4096 * KIB), Ok(4096 * KIB));
    fixture.destroy_pool(small);
    fixture.destroy_pool(pool);
}
