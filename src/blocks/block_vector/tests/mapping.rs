//! Mappings of allocations in shards.

use std::sync::Barrier;
use std::time::Duration;

use ash::vk;

use super::*;

fn mapped(size: u64) -> VectorRequest {
    VectorRequest { mapped: true, ..request(size, 16) }
}

/// The user count of the mapping of the only block.
fn users(fixture: &Fixture) -> u64 {
    let core = fixture.vector.core.lock();
    let mut blocks = core.active.as_ref().unwrap().blocks.iter().flatten();
    let count = blocks.next().unwrap().map_count;
    assert!(blocks.next().is_none());
    count
}

/// A block is mapped once for all shards. Each leased range with a mapped allocation counts as one user.
#[test]
fn a_lease_is_one_user() {
    let fixture = Fixture::new(config());
    let first = fixture.get(64, 1);
    let mut held = Vec::new();
    let mut base = None;
    for thread in 1..4 {
        fixture.attach(thread);
        held.push(fixture.get(64, 1));
        assert_eq!(users(&fixture), u64::from(thread) - 1);
        for _ in 0..5 {
            let it = fixture.allocate(&mapped(100)).unwrap();
            assert_eq!(it.grant.shard, shard_of(thread));
            let here = fixture.vector.map(&fixture.context, it.live()).unwrap();
            assert_eq!(it.grant.mapped, here.at(it.grant.offset));
            assert_eq!(*base.get_or_insert(here), here);
            fixture.vector.unmap(it.live()).unwrap();
            assert_eq!(users(&fixture), u64::from(thread));
            held.push(it);
        }
    }
    assert_eq!(fixture.gpu.calls("vkMapMemory"), 1);
    // Freed by another thread. The ranges stay users until they are returned.
    fixture.thread(7);
    while let Some(it) = held.pop() {
        fixture.free(it);
        assert_eq!(fixture.gpu.live().mapped, 1);
    }
    assert_eq!(users(&fixture), 3);
    fixture.trim();
    assert_eq!((users(&fixture), fixture.gpu.live().mapped), (0, 0), "no lease, no mapping");
    assert_eq!(fixture.gpu.calls("vkUnmapMemory"), 1);
    fixture.check();
    fixture.free(first);
    fixture.finish();
}

/// `trim` unmaps exactly the mappings without users, shards included.
#[test]
fn trim_unmaps_only_what_is_not_used() {
    let fixture = Fixture::new(config());
    let first = fixture.get(64, 1);
    fixture.attach(1);
    let plain = fixture.get(64, 1);
    let map = || fixture.vector.map(&fixture.context, plain.live()).unwrap();
    let base = map();
    fixture.trim();
    assert_eq!(map(), base, "a guard keeps it");
    fixture.vector.unmap(plain.live()).unwrap();
    fixture.trim();
    assert_eq!(fixture.gpu.live().mapped, 1, "there is one guard left");
    fixture.vector.unmap(plain.live()).unwrap();
    assert_eq!(fixture.gpu.live().mapped, 1, "until somebody trims");
    fixture.trim();
    assert_eq!(fixture.gpu.live().mapped, 0);
    assert!(matches!(fixture.vector.unmap(plain.live()), Err(MapError::NotMapped)));
    assert!(matches!(fixture.vector.pin_mapping(plain.live()), Err(MapError::NotMapped)));

    let persistent = fixture.allocate(&mapped(64)).unwrap();
    for _ in 0..3 {
        fixture.trim();
        assert_eq!(fixture.gpu.live().mapped, 1);
        let base = map();
        fixture.vector.unmap(plain.live()).unwrap();
        assert_eq!(persistent.grant.mapped, base.at(persistent.grant.offset));
    }
    // The range stays mapped, so the next allocation needs no driver call.
    fixture.free(persistent);
    fixture.trim();
    let maps = fixture.gpu.calls("vkMapMemory");
    let again = fixture.allocate(&mapped(64)).unwrap();
    assert_eq!(again.grant.mapped, map().at(again.grant.offset));
    fixture.vector.unmap(plain.live()).unwrap();
    assert_eq!(fixture.gpu.calls("vkMapMemory"), maps);
    fixture.check();
    fixture.free_all([first, plain, again]);
    fixture.finish();
}

/// If the driver refuses to map, the allocation is freed, no user is counted, and the next attempt tries again.
#[test]
fn a_driver_that_does_not_map() {
    let fixture = Fixture::new(config());
    let first = fixture.get(64, 1);
    fixture.attach(1);
    let own = fixture.get(64, 1);
    for result in [vk::Result::ERROR_MEMORY_MAP_FAILED, vk::Result::ERROR_OUT_OF_HOST_MEMORY] {
        fixture.gpu.faults().fail_always("vkMapMemory", result);
        for thread in [1, 2, 0] {
            fixture.thread(thread);
            let error = fixture.allocate(&mapped(64)).unwrap_err();
            assert!(matches!(error, AllocationError::Map(error) if error.vk_result() == result), "{error:?}");
            assert_eq!((fixture.vector.totals().allocation_count, users(&fixture)), (2, 0));
            assert!(fixture.vector.map(&fixture.context, own.live()).is_err());
            assert_eq!(users(&fixture), 0);
            fixture.check();
        }
        fixture.gpu.faults().clear();
    }
    fixture.thread(1);
    let it = fixture.allocate(&mapped(64)).unwrap();
    assert!(it.grant.mapped.is_mapped() && it.grant.shard == shard_of(1));
    fixture.free_all([first, own, it]);
    fixture.finish();
}

/// Several threads want the first mapping of one range: it is mapped and counted once.
#[test]
fn two_threads_map_one_lease() {
    let fixture = Fixture::new(config());
    let first = fixture.get(64, 1);
    fixture.attach(1);
    let own = fixture.get(64, 1);
    fixture.gpu.faults().delay("vkMapMemory", Duration::from_millis(30));
    let barrier = Barrier::new(4);
    let held: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|thread| {
                let (fixture, barrier) = (&fixture, &barrier);
                scope.spawn(move || {
                    // All of them have the same shard.
                    fixture.thread(1 + 64 * thread);
                    barrier.wait();
                    fixture.allocate(&mapped(64)).unwrap()
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(held.iter().all(|it| it.grant.shard == shard_of(1) && it.grant.mapped.is_mapped()));
    assert_eq!((users(&fixture), fixture.gpu.calls("vkMapMemory")), (1, 1));
    fixture.gpu.faults().clear();
    fixture.check();
    fixture.free_all(held);
    fixture.free_all([first, own]);
    fixture.finish();
}

/// A leaked guard ends with the block, and does no harm.
#[test]
fn a_forgotten_guard() {
    let fixture = Fixture::new(config());
    let first = fixture.get(64, 1);
    fixture.attach(1);
    let own = fixture.get(64, 1);
    fixture.vector.map(&fixture.context, own.live()).unwrap();
    fixture.free(own);
    fixture.trim();
    assert_eq!(fixture.gpu.live().mapped, 1);
    fixture.free(first);
    assert_eq!(users(&fixture), 0);
    fixture.finish();
}

/// A returned range ends its own use of the mapping, and no other.
#[test]
fn a_lease_that_goes_back_is_no_user() {
    let fixture = Fixture::new(config());
    let first = fixture.allocate(&mapped(64)).unwrap();
    fixture.attach(1);
    let held: Vec<_> = (0..200).map(|_| fixture.allocate(&mapped(16 * KIB)).unwrap()).collect();
    let leases = fixture.leased().0;
    assert!(leases > 2);
    assert_eq!(users(&fixture), 1 + leases);
    fixture.free_all(held);
    assert_eq!(users(&fixture), 1 + fixture.leased().0);
    fixture.trim();
    assert_eq!((users(&fixture), fixture.gpu.live().mapped), (1, 1));
    fixture.check();
    fixture.free(first);
    fixture.finish();
}

/// The pool is destroyed while the driver maps one of its blocks.
#[test]
fn a_mapping_in_a_destroyed_pool_does_not_count() {
    let fixture = Fixture::new(config());
    let left = fixture.get(64, 1);
    let Fixture { vector, context, gpu, .. } = &fixture;
    gpu.faults().hold("vkMapMemory");
    std::thread::scope(|scope| {
        scope.spawn(move || {
            while gpu.calls("vkMapMemory") == 0 {
                std::thread::yield_now();
            }
            scope.spawn(|| vector.retire(context));
            while vector.config(None).is_some() {
                std::thread::yield_now();
            }
            gpu.faults().release("vkMapMemory");
        });
        let mapped = vector.map(context, left.live());
        assert!(matches!(mapped, Err(MapError::Foreign(_))), "{mapped:?}");
    });
    assert_eq!(context.budgets.mapped(), 0);
    assert!(gpu.live().is_empty());
}
