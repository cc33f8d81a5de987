//! Changes the count of empty blocks to keep while the allocator is in use.

use sublet::{Allocation, AllocationCreateInfo, ForeignHandle, Pool, PoolCreateInfo};

use crate::common::*;

fn pool(fixture: &Fixture, info: PoolCreateInfo<'_>) -> Pool {
    fixture.pool(&PoolCreateInfo { block_size: MIB, ..info }).unwrap()
}

/// Fills `count` blocks with one allocation each.
fn fill(fixture: &Fixture, info: &AllocationCreateInfo<'_>, count: usize) -> Vec<Allocation> {
    (0..count).map(|_| fixture.memory(MIB, 1, info).unwrap()).collect()
}

#[test]
fn a_pool_keeps_what_it_is_told_to() {
    let fixture = Fixture::new(sublet::sim::Profile::by_name("lavapipe").unwrap());
    let pool = pool(&fixture, PoolCreateInfo { empty_blocks_kept: 5, ..PoolCreateInfo::new(0) });
    let info = AllocationCreateInfo::in_pool(&pool);
    fixture.free_all(fill(&fixture, &info, 8));
    assert_eq!(fixture.gpu.live().memories, 5);
    assert_eq!(fixture.allocator.set_pool_empty_blocks_kept(&pool, 2), Ok(3 * MIB), "at once");
    assert_eq!(fixture.gpu.live().memories, 2);
    fixture.free_all(fill(&fixture, &info, 4));
    assert_eq!(fixture.gpu.live().memories, 2, "from now on");
    assert_eq!(fixture.allocator.set_pool_empty_blocks_kept(&pool, 4), Ok(0));
    let held = fill(&fixture, &info, 5);
    assert_eq!(fixture.allocator.set_pool_empty_blocks_kept(&pool, 0), Ok(0), "none of them is empty");
    fixture.free_all(held);
    assert_eq!(fixture.gpu.live().memories, 0);
    fixture.validate();
    fixture.destroy_pool(pool);
}

/// A pool keeps its initial blocks under any policy.
#[test]
fn first_blocks_stay() {
    let fixture = Fixture::new(sublet::sim::Profile::by_name("lavapipe").unwrap());
    let pool =
        pool(&fixture, PoolCreateInfo { min_block_count: 3, empty_blocks_kept: 9, ..PoolCreateInfo::new(0) });
    fixture.free_all(fill(&fixture, &AllocationCreateInfo::in_pool(&pool), 6));
    assert_eq!(fixture.allocator.set_pool_empty_blocks_kept(&pool, 0), Ok(3 * MIB));
    assert_eq!(fixture.gpu.live().memories, 3);
    fixture.destroy_pool(pool);
}

/// The setting applies to every default vector, and to no pool.
#[test]
fn default_vectors_keep_what_they_are_told_to() {
    on_every_gpu(|fixture| {
        let types = fixture.types();
        let kept = pool(&fixture, PoolCreateInfo { empty_blocks_kept: 1, ..PoolCreateInfo::new(types[0]) });
        fixture.free_all(fill(&fixture, &AllocationCreateInfo::in_pool(&kept), 1));
        let held: Vec<_> = types.iter().map(|&it| fixture.memory(1000, 1, &in_type(it)).unwrap()).collect();
        let bytes: u64 = held.iter().map(|it| fixture.memory_size(it)).sum();
        assert_eq!(fixture.allocator.set_empty_blocks_kept(1), 0);
        fixture.free_all(held);
        assert_eq!(fixture.gpu.live().memories, types.len() as u64 + 1);
        assert_eq!(fixture.allocator.set_empty_blocks_kept(0), bytes);
        assert_eq!(fixture.gpu.live().memories, 1, "the pool's");
        let again = fixture.memory(1000, 1, &in_type(types[0])).unwrap();
        fixture.free(again);
        assert_eq!(fixture.gpu.live().memories, 1);
        fixture.destroy_pool(kept);
    });
}

#[test]
fn the_pools_of_others_are_left_alone() {
    let fixture = Fixture::new(sublet::sim::Profile::by_name("lavapipe").unwrap());
    let other = Fixture::new(fixture.profile());
    let pool = pool(&other, PoolCreateInfo::new(0));
    assert_eq!(fixture.allocator.set_pool_empty_blocks_kept(&pool, 0), Err(ForeignHandle::Pool));
    other.destroy_pool(pool);
}
