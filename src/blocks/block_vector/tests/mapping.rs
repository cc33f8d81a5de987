//! Mappings of allocations in shards.

use std::sync::Barrier;
use std::time::Duration;

use ash::vk;

use super::*;

fn mapped(size: u64) -> VectorRequest {
    VectorRequest { mapped: true, ..request(size, 16) }
}

/// The user count of the mapping of the only block.
fn users(rig: &Rig) -> u64 {
    let core = rig.vector.core.lock();
    let mut blocks = core.active.as_ref().unwrap().blocks.iter().flatten();
    let count = blocks.next().unwrap().map_count;
    assert!(blocks.next().is_none());
    count
}

/// A block is mapped once for all shards. Each leased range with a mapped allocation counts as one user.
#[test]
fn a_loan_is_one_user() {
    let rig = Rig::new(config());
    let first = rig.get(64, 1);
    let mut held = Vec::new();
    let mut base = None;
    for thread in 1..4 {
        rig.settle(thread);
        held.push(rig.get(64, 1));
        assert_eq!(users(&rig), u64::from(thread) - 1);
        for _ in 0..5 {
            let it = rig.allocate(&mapped(100)).unwrap();
            assert_eq!(it.grant.shard, shard_of(thread));
            let here = rig.vector.map(&rig.context, it.live()).unwrap();
            assert_eq!(it.grant.mapped, here.at(it.grant.offset));
            assert_eq!(*base.get_or_insert(here), here);
            rig.vector.unmap(it.live()).unwrap();
            assert_eq!(users(&rig), u64::from(thread));
            held.push(it);
        }
    }
    assert_eq!(rig.gpu.calls("vkMapMemory"), 1);
    // Freed by another thread. The ranges stay users until they are returned.
    rig.thread(7);
    while let Some(it) = held.pop() {
        rig.free(it);
        assert_eq!(rig.gpu.live().mapped, 1);
    }
    assert_eq!(users(&rig), 3);
    rig.trim();
    assert_eq!((users(&rig), rig.gpu.live().mapped), (0, 0), "no loan, no mapping");
    assert_eq!(rig.gpu.calls("vkUnmapMemory"), 1);
    rig.check();
    rig.free(first);
    rig.finish();
}

/// `trim` unmaps exactly the mappings without users, shards included.
#[test]
fn trim_unmaps_only_what_is_not_used() {
    let rig = Rig::new(config());
    let first = rig.get(64, 1);
    rig.settle(1);
    let plain = rig.get(64, 1);
    let map = || rig.vector.map(&rig.context, plain.live()).unwrap();
    let base = map();
    rig.trim();
    assert_eq!(map(), base, "a guard keeps it");
    rig.vector.unmap(plain.live()).unwrap();
    rig.trim();
    assert_eq!(rig.gpu.live().mapped, 1, "there is one guard left");
    rig.vector.unmap(plain.live()).unwrap();
    assert_eq!(rig.gpu.live().mapped, 1, "until somebody trims");
    rig.trim();
    assert_eq!(rig.gpu.live().mapped, 0);
    assert!(matches!(rig.vector.unmap(plain.live()), Err(MapError::NotMapped)));
    assert!(matches!(rig.vector.pin_mapping(plain.live()), Err(MapError::NotMapped)));

    let persistent = rig.allocate(&mapped(64)).unwrap();
    for _ in 0..3 {
        rig.trim();
        assert_eq!(rig.gpu.live().mapped, 1);
        let base = map();
        rig.vector.unmap(plain.live()).unwrap();
        assert_eq!(persistent.grant.mapped, base.at(persistent.grant.offset));
    }
    // The range stays mapped, so the next allocation needs no driver call.
    rig.free(persistent);
    rig.trim();
    let maps = rig.gpu.calls("vkMapMemory");
    let again = rig.allocate(&mapped(64)).unwrap();
    assert_eq!(again.grant.mapped, map().at(again.grant.offset));
    rig.vector.unmap(plain.live()).unwrap();
    assert_eq!(rig.gpu.calls("vkMapMemory"), maps);
    rig.check();
    rig.free_all([first, plain, again]);
    rig.finish();
}

/// If the driver refuses to map, the allocation is freed, no user is counted, and the next attempt tries again.
#[test]
fn a_driver_that_does_not_map() {
    let rig = Rig::new(config());
    let first = rig.get(64, 1);
    rig.settle(1);
    let own = rig.get(64, 1);
    for result in [vk::Result::ERROR_MEMORY_MAP_FAILED, vk::Result::ERROR_OUT_OF_HOST_MEMORY] {
        rig.gpu.faults().fail_always("vkMapMemory", result);
        for thread in [1, 2, 0] {
            rig.thread(thread);
            let error = rig.allocate(&mapped(64)).unwrap_err();
            assert!(matches!(error, AllocationError::Map(error) if error.result == result), "{error:?}");
            assert_eq!((rig.vector.totals().allocation_count, users(&rig)), (2, 0));
            assert!(rig.vector.map(&rig.context, own.live()).is_err());
            assert_eq!(users(&rig), 0);
            rig.check();
        }
        rig.gpu.faults().clear();
    }
    rig.thread(1);
    let it = rig.allocate(&mapped(64)).unwrap();
    assert!(it.grant.mapped.is_mapped() && it.grant.shard == shard_of(1));
    rig.free_all([first, own, it]);
    rig.finish();
}

/// Several threads want the first mapping of one range: it is mapped and counted once.
#[test]
fn two_threads_map_one_loan() {
    let rig = Rig::new(config());
    let first = rig.get(64, 1);
    rig.settle(1);
    let own = rig.get(64, 1);
    rig.gpu.faults().delay("vkMapMemory", Duration::from_millis(30));
    let barrier = Barrier::new(4);
    let held: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|thread| {
                let (rig, barrier) = (&rig, &barrier);
                scope.spawn(move || {
                    // All of them have the same shard.
                    rig.thread(1 + 64 * thread);
                    barrier.wait();
                    rig.allocate(&mapped(64)).unwrap()
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(held.iter().all(|it| it.grant.shard == shard_of(1) && it.grant.mapped.is_mapped()));
    assert_eq!((users(&rig), rig.gpu.calls("vkMapMemory")), (1, 1));
    rig.gpu.faults().clear();
    rig.check();
    rig.free_all(held);
    rig.free_all([first, own]);
    rig.finish();
}

/// A leaked guard ends with the block, and does no harm.
#[test]
fn a_forgotten_guard() {
    let rig = Rig::new(config());
    let first = rig.get(64, 1);
    rig.settle(1);
    let own = rig.get(64, 1);
    rig.vector.map(&rig.context, own.live()).unwrap();
    rig.free(own);
    rig.trim();
    assert_eq!(rig.gpu.live().mapped, 1);
    rig.free(first);
    assert_eq!(users(&rig), 0);
    rig.finish();
}

/// A returned range ends its own use of the mapping, and no other.
#[test]
fn a_loan_that_goes_back_is_no_user() {
    let rig = Rig::new(config());
    let first = rig.allocate(&mapped(64)).unwrap();
    rig.settle(1);
    let held: Vec<_> = (0..200).map(|_| rig.allocate(&mapped(16 * KIB)).unwrap()).collect();
    let loans = rig.lent().0;
    assert!(loans > 2);
    assert_eq!(users(&rig), 1 + loans);
    rig.free_all(held);
    assert_eq!(users(&rig), 1 + rig.lent().0);
    rig.trim();
    assert_eq!((users(&rig), rig.gpu.live().mapped), (1, 1));
    rig.check();
    rig.free(first);
    rig.finish();
}
