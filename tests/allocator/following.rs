//! Blocks whose sizes follow the bytes in use: the default of default vectors.

use ash::vk;
use sublet::sim::Profile;
use sublet::{Allocation, MemoryUsage};

use crate::common::*;

fn h200() -> Held<Fixture> {
    Fixture::new(Profile::by_name("nvidia-h200").unwrap())
}

/// Bytes of all memory that the driver has allocated.
fn reserved(fixture: &Fixture) -> u64 {
    fixture.gpu.live().memory_bytes_by_heap.iter().sum()
}

/// The largest step of block sizes in a memory type.
fn step(fixture: &Fixture, memory_type: u32) -> u64 {
    (fixture.block_size(memory_type) / 8).next_multiple_of(32).min(4 * MIB)
}

#[test]
fn a_vector_has_at_most_a_quarter_and_two_steps_more_than_is_in_use() {
    on_every_gpu(|fixture| {
        for memory_type in fixture.types() {
            let step = step(&fixture, memory_type);
            let page = fixture.profile().limits.buffer_image_granularity;
            let most = (fixture.heap_size(memory_type) / 4).min(300 * MIB);
            let (mut random, mut live, mut held) = (Random::new(u64::from(memory_type)), 0, Vec::new());
            while live < most {
                let piece =
                    fixture.memory(step / 256 + random.below(step / 32), 256, &in_type(memory_type)).unwrap();
                // Memory for anything takes whole pages.
                live += piece.size().next_multiple_of(page);
                held.push(piece);
                let reserved = reserved(&fixture);
                assert!(
                    reserved <= live + live / 4 + 2 * step,
                    "{reserved} bytes for {live} in type {memory_type}"
                );
            }
            fixture.validate();
            // From the last to the first, so that blocks become empty one by one.
            held.into_iter().rev().for_each(|piece| fixture.free(piece));
            assert!(reserved(&fixture) <= 64 * MIB, "one empty block stays at most, or two small ones");
            fixture.allocator.trim();
        }
    });
}

#[test]
fn a_block_costs_the_driver_little_time() {
    let fixture = h200();
    let flags = |flags, without| fixture.types_with(flags, without)[0];
    for (memory_type, cap) in [
        (flags(DEVICE_LOCAL, HOST_VISIBLE), 32 * MIB),
        (flags(HOST_VISIBLE, DEVICE_LOCAL | HOST_CACHED), 4 * MIB),
        (flags(HOST_VISIBLE | HOST_CACHED, DEVICE_LOCAL), 8 * MIB),
    ] {
        let held: Vec<_> = (0..400).map(|_| fixture.memory(MIB, 1, &in_type(memory_type)).unwrap()).collect();
        let largest = held.iter().map(|piece| fixture.memory_size(piece)).max();
        assert_eq!(largest, Some(cap), "type {memory_type}");
        // Only a larger request gets a larger block, in steps.
        let large = fixture.memory(71 * MIB, 1, &in_type(memory_type)).unwrap();
        assert_eq!((large.is_dedicated(), fixture.memory_size(&large)), (false, 72 * MIB));
        fixture.free_all(held.into_iter().chain([large]));
        fixture.allocator.trim();
    }
}

/// If the device allows 4096 allocations, blocks exceed the bound that the driver's time sets.
#[test]
fn the_number_of_blocks_stays_far_from_the_limit_of_the_device() {
    let profile = *having(|profile| {
        let has_room = profile.heaps.iter().any(|heap| heap.size > 16 * GIB);
        profile.limits.max_memory_allocation_count == 4096 && has_room
    })
    .first()
    .unwrap();
    let fixture = Fixture::new(profile);
    let memory_type = fixture.types().into_iter().max_by_key(|&at| fixture.heap_size(at)).unwrap();
    let held: Vec<_> =
        (0..200).map(|_| fixture.memory(100 * MIB, 1, &in_type(memory_type)).unwrap()).collect();
    let next = fixture.memory(MIB, 1, &in_type(memory_type)).unwrap();
    let expected = (200 * 100 * MIB / 256).next_multiple_of(4 * MIB).max(32 * MIB);
    assert_eq!(fixture.memory_size(&next), expected);
    fixture.free_all(held.into_iter().chain([next]));
}

#[test]
fn steady_work_calls_no_driver() {
    on_every_gpu(|fixture| {
        let memory_type = fixture.types()[0];
        let piece = |fixture: &Fixture| fixture.memory(96 * KIB, 256, &in_type(memory_type)).unwrap();
        let mut held: Vec<Allocation> = (0..1000).map(|_| piece(&fixture)).collect();
        for round in 0..50 {
            if round == 2 {
                fixture.gpu.reset_calls();
            }
            let first = round * 37 % 800;
            let gone: Vec<_> = held.drain(first..first + 150).collect();
            fixture.free_all(gone);
            held.extend((0..150).map(|_| piece(&fixture)));
        }
        assert_eq!((fixture.gpu.calls("vkAllocateMemory"), fixture.gpu.calls("vkFreeMemory")), (0, 0));
        fixture.free_all(held);
    });
}

/// After the end of a level, what is left of the memory follows what is left in use.
#[test]
fn the_end_of_a_level_gives_its_memory_back() {
    let fixture = h200();
    let info = in_type(0);
    let mut stays: Vec<_> = (0..20).map(|_| fixture.memory(MIB, 1, &info).unwrap()).collect();
    let level: Vec<_> = (0..500).map(|_| fixture.memory(MIB, 1, &info).unwrap()).collect();
    assert!(reserved(&fixture) >= 520 * MIB);
    fixture.free_all(level);
    let after = reserved(&fixture);
    assert!(after <= 20 * MIB * 5 / 4 + 8 * MIB + 64 * MIB, "{after}");
    // With a few more frees, the block that waited for its next use goes too.
    let gone = stays.split_off(10);
    fixture.free_all(gone);
    let after = reserved(&fixture);
    assert!(after <= 20 * MIB * 5 / 4 + 8 * MIB, "{after}");
    fixture.free_all(stays);
}

/// An empty block that does not serve the request is released when the request gets another one.
#[test]
fn blocks_that_are_too_small_for_a_request_make_room_for_its_block() {
    let fixture = h200();
    let info = in_type(0);
    let stays = fixture.memory(KIB, 1, &info).unwrap();
    for megabytes in [20, 30, 40, 50] {
        let large = fixture.memory(megabytes * MIB, 1, &info).unwrap();
        let expected = (4 + megabytes) * MIB;
        assert_eq!(reserved(&fixture), expected, "the block of the request before is gone");
        fixture.free(large);
        assert_eq!(reserved(&fixture), expected, "and this one waits for the next request");
    }
    fixture.free(stays);
}

#[test]
fn a_pool_without_a_block_size_follows_too() {
    let fixture = h200();
    let pool = fixture.pool(&sublet::PoolCreateInfo::new(0)).unwrap();
    let in_pool = sublet::AllocationCreateInfo::in_pool(&pool);
    let piece = fixture.memory(MIB, 1, &in_pool).unwrap();
    assert_eq!(fixture.memory_size(&piece), 4 * MIB);
    fixture.free(piece);
    fixture.destroy_pool(pool);
}

/// Memory of all kinds, by usage: none has more than its bound.
#[test]
fn every_usage_of_memory_is_bounded() {
    on_every_gpu(|fixture| {
        let requirements = vk::MemoryRequirements { size: 700 * KIB, alignment: 256, memory_type_bits: !0 };
        for usage in [MemoryUsage::GpuOnly, MemoryUsage::CpuToGpu, MemoryUsage::GpuToCpu] {
            let info = sublet::AllocationCreateInfo::new(usage);
            let held: Vec<_> =
                (0..20).map(|_| fixture.allocator.allocate_memory(&requirements, &info).unwrap()).collect();
            assert!(reserved(&fixture) <= 20 * 700 * KIB * 5 / 4 + 8 * MIB);
            fixture.free_all(held);
            fixture.allocator.trim();
        }
    });
}
