//! Full vectors, and drivers that refuse.

use ash::vk;

use super::*;
use crate::engine::ENGINE_CALLS;
use crate::error::MemoryError;

/// A full pool uses the free space of another thread's shard. Only then is it full, and the error counts all space.
#[test]
fn a_full_pool_has_room_in_a_shard() {
    for never_allocate in [false, true] {
        let fixture = Fixture::new(VectorConfig { max_blocks: 1, ..config() });
        let mut held = vec![fixture.get(64, 1)];
        fixture.attach(1);
        held.push(fixture.get(100 * KIB, 1));
        assert_eq!(held[1].grant.shard, shard_of(1));
        for thread in [0, 5] {
            fixture.thread(thread);
            let wanted = VectorRequest { never_allocate, ..request(100 * KIB, 64) };
            let mut shards = Vec::new();
            let error = loop {
                match fixture.allocate(&wanted) {
                    Ok(it) => {
                        shards.push(it.grant.shard);
                        held.push(it);
                    }
                    Err(error) => break error,
                }
            };
            if thread == 0 {
                // 31 MiB in the core, then the rest of the range.
                let in_core = shards.iter().filter(|&&shard| shard == 0).count();
                assert!(in_core > 300 && shards[..in_core].iter().all(|&shard| shard == 0));
                assert_eq!(shards[in_core..], [shard_of(1); 9]);
            } else {
                assert!(shards.is_empty(), "there was room after all: {shards:?}");
            }
            let VectorTotals { block_bytes, allocation_bytes, .. } = fixture.vector.totals();
            let walked = fixture.walk();
            let largest = walked[0].1.iter().filter(|chunk| chunk.2.is_none()).map(|chunk| chunk.1).max();
            let expected = AllocationError::Full {
                size: 100 * KIB,
                alignment: 64,
                free: block_bytes - allocation_bytes,
                largest_free: largest.unwrap(),
                block_count: 1,
                max_block_count: if never_allocate { 0 } else { 1 },
            };
            assert_eq!(error, expected);
            fixture.check();
        }
        // Small requests still find room somewhere.
        held.extend((0..10).map(|_| fixture.get(KIB, 1)));
        fixture.check();
        fixture.free_all(held);
        fixture.finish();
    }
}

/// Free space in a shard is usable by its own thread, by other threads, and with any strategy.
#[test]
fn the_last_room_is_for_everybody() {
    for strategy in [Strategy::Balanced, Strategy::MinTime, Strategy::MinMemory, Strategy::MinOffset] {
        let fixture = Fixture::new(VectorConfig { max_blocks: 1, ..config() });
        let first = fixture.get(64, 1);
        fixture.attach(1);
        let own = fixture.get(64, 1);
        fixture.thread(0);
        let mut held: Vec<_> = std::iter::from_fn(|| {
            let it = fixture.allocate(&request(64 * KIB, 64 * KIB)).ok();
            it.filter(|it| {
                it.grant.shard == 0 || {
                    fixture.free(*it);
                    false
                }
            })
        })
        .collect();
        assert!(held.len() > 400);
        // Larger than a shard usually serves.
        let wanted = VectorRequest { strategy, ..request(512 * KIB, 64 * KIB) };
        let it = fixture.allocate(&wanted).unwrap();
        assert_eq!(it.grant.shard, shard_of(1));
        assert_eq!(it.grant.offset % (64 * KIB), 0);
        fixture.free(it);
        // Alignments above that of ranges are not possible.
        let error = fixture.allocate(&request(64, 128 * KIB)).unwrap_err();
        let AllocationError::Full { free, largest_free, .. } = error else { panic!("{error:?}") };
        assert!(largest_free > 512 * KIB && largest_free <= free, "the largest range is in the shard");
        fixture.check();
        held.extend([first, own]);
        fixture.free_all(held);
        fixture.finish();
    }
}

/// If the driver refuses, shards serve the request. If they cannot, nothing changes.
#[test]
fn a_driver_that_refuses() {
    let fixture = Fixture::new(config());
    let mut held = vec![fixture.get(64, 1)];
    fixture.attach(1);
    held.push(fixture.get(64, 1));
    fixture.thread(0);
    fixture.gpu.faults().fail_always("vkAllocateMemory", vk::Result::ERROR_OUT_OF_DEVICE_MEMORY);
    let mut in_shard = 0;
    let error = loop {
        let before = fixture.vector.totals();
        match fixture.allocate(&request(60 * KIB, 4)) {
            Ok(it) => {
                in_shard += u32::from(it.grant.shard != 0);
                assert_eq!(it.grant.shard != 0, in_shard > 0, "first the core, then the shard");
                held.push(it);
            }
            Err(error) => {
                let after = fixture.vector.totals();
                assert_eq!(after.allocation_bytes, before.allocation_bytes);
                break error;
            }
        }
    };
    assert_eq!(in_shard, 17);
    let AllocationError::Memory(MemoryError::Driver { error, .. }) = error else { panic!("{error:?}") };
    assert_eq!(error.result, vk::Result::ERROR_OUT_OF_DEVICE_MEMORY);
    fixture.check();
    // Also for an attached thread.
    fixture.attach(2);
    assert!(fixture.allocate(&request(60 * KIB, 4)).is_err());
    fixture.check();
    fixture.gpu.faults().clear();
    held.push(fixture.get(60 * KIB, 4));
    assert_eq!(fixture.vector.totals().block_count, 2);
    fixture.free_all(held);
    fixture.finish();
}

/// Over the budget, a request limited to it gets space in shards, but no block.
#[test]
fn within_the_budget() {
    let fixture = Fixture::new(VectorConfig { block_size: 512 * MIB, ..config() });
    let mut held: Vec<_> = (0..3).map(|_| fixture.get(512 * MIB - 8 * MIB, 1)).collect();
    fixture.attach(1);
    held.push(fixture.get(64, 1));
    assert_eq!(held[3].grant.shard, shard_of(1));
    fixture.thread(0);
    let wanted = VectorRequest { within_budget: true, ..request(256 * KIB, 1) };
    let error = loop {
        match fixture.allocate(&wanted) {
            Ok(it) => held.push(it),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, AllocationError::Memory(MemoryError::OverBudget { .. })), "{error:?}");
    let VectorTotals { block_count, block_bytes, allocation_bytes, .. } = fixture.vector.totals();
    assert_eq!(block_count, 3);
    assert!(block_bytes - allocation_bytes < 4 * 256 * KIB, "all that there was is used");
    fixture.free_all(held);
    fixture.finish();
}

/// Requests larger than any block fail, for threads with and without a shard.
#[test]
fn too_large_for_any_block() {
    let fixture = Fixture::new(config());
    let first = fixture.get(64, 1);
    fixture.attach(1);
    let own = fixture.get(64, 1);
    for thread in [0, 1] {
        fixture.thread(thread);
        let error = fixture.allocate(&request(32 * MIB + 1, 1)).unwrap_err();
        assert_eq!(error, AllocationError::BlockTooSmall { size: 32 * MIB + 1, block_size: 32 * MIB });
        assert!(fixture.allocate(&request(u64::MAX, 1)).is_err());
        let pages = VectorRequest { whole_pages: true, ..request(u64::MAX - 3, 1) };
        assert!(fixture.allocate(&pages).is_err());
    }
    fixture.check();
    fixture.free_all([first, own]);
    fixture.finish();
}

/// A miss is a complete search of the engine before the vector grows, and one after. A recent refusal is not repeated.
#[test]
fn a_miss_searches_at_most_twice() {
    let fixture = Fixture::new(VectorConfig { max_blocks: 2, ..config() });
    let ask = |size| {
        let request = request(size, 1);
        ENGINE_CALLS.set(0);
        // As in the allocator: the fast path, then the slow one.
        let at_once = fixture
            .vector
            .try_allocate(request)
            .or_else(|| fixture.vector.allocate_without_growth(&fixture.context, &request));
        let grant = match at_once {
            Some(grant) => Ok(grant),
            None => fixture.vector.allocate(&fixture.context, &request, BlockSearch::Rest),
        };
        (ENGINE_CALLS.get(), grant.ok().map(|grant| Held { grant, request }))
    };
    let mut held = Vec::new();
    for expected in [1, 0, 0, 0] {
        let (asked, granted) = ask(8 * MIB);
        assert_eq!(asked, expected, "the first takes a block");
        held.push(granted.unwrap());
    }
    // Enough free space, but in two places.
    fixture.free(held.remove(0));
    fixture.free(held.remove(1));
    let (asked, granted) = ask(16 * MIB);
    assert_eq!(asked, 2, "a later miss takes another block");
    held.push(granted.unwrap());
    let (asked, granted) = ask(20 * MIB);
    assert!(asked == 1 && granted.is_none(), "there may be no third: {asked}");
    fixture.free_all(held);
}

/// A refused request is not searched again until something changes.
#[test]
fn a_refusal_is_remembered() {
    let fixture = Fixture::new(VectorConfig { max_blocks: 1, ..config() });
    let mut held: Vec<_> = (0..4).map(|_| fixture.get(8 * MIB, 1)).collect();
    // Enough free space, but in two places.
    fixture.free(held.remove(0));
    fixture.free(held.remove(1));
    let wanted = VectorRequest { never_allocate: true, ..request(16 * MIB, 1) };
    let searches = || {
        ENGINE_CALLS.set(0);
        assert!(fixture.vector.allocate_without_growth(&fixture.context, &wanted).is_none());
        ENGINE_CALLS.get()
    };
    assert_eq!([searches(), searches()], [1, 0]);
    let expected = AllocationError::Full {
        size: 16 * MIB,
        alignment: 1,
        free: 16 * MIB,
        largest_free: 8 * MIB,
        block_count: 1,
        max_block_count: 0,
    };
    assert_eq!(fixture.allocate(&wanted).unwrap_err(), expected);
    fixture.free(held.remove(0));
    let grant = fixture.vector.allocate_without_growth(&fixture.context, &wanted).unwrap();
    held.push(Held { grant, request: wanted });
    fixture.check();
    fixture.free_all(held);
    fixture.finish();
}

/// A new block may bring the free bytes back to those at a refusal, after the blocks that had them were freed.
#[test]
fn a_refusal_ends_with_a_new_block() {
    let fixture = Fixture::new(VectorConfig { fixed_block_size: false, empty_blocks_kept: 4, ..config() });
    fixture.gpu.faults().fail_above(4 * MIB);
    let held: Vec<_> = (0..4).map(|_| fixture.get(4 * MIB, 1)).collect();
    fixture.gpu.faults().clear();
    fixture.free_all(held);
    let wanted = request(8 * MIB, 1);
    assert!(fixture.vector.allocate_without_growth(&fixture.context, &wanted).is_none());
    assert_eq!(fixture.trim(), 16 * MIB);
    let grant = fixture.vector.allocate(&fixture.context, &wanted, BlockSearch::Rest).unwrap();
    assert_eq!(fixture.vector.totals().block_bytes, 16 * MIB);
    fixture.free(Held { grant, request: wanted });
    fixture.finish();
}
