//! Maintenance: driver calls happen between frames, and few of them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ash::vk;
use sublet::sim::{Gpu, Profile};
use sublet::trace::DriverCost;
use sublet::{
    Allocation, AllocationCreateFlags as Flags, AllocationCreateInfo, MaintainInfo, PoolCreateInfo,
};

use crate::common::*;

/// More calls than usage has to be steady for before blocks are freed.
const SETTLED: usize = 200;

/// Blocks grow as in VMA, so that the first ones have room for several frames.
fn plain() -> Held<Fixture> {
    Fixture::with(Gpu::new(Profile::by_name("lavapipe").unwrap()), &Options::vma())
}

/// The calls of `vkAllocateMemory` and `vkFreeMemory` that `what` makes.
fn driver_calls(fixture: &Fixture, what: impl FnOnce()) -> (u64, u64) {
    let count = || (fixture.gpu.calls("vkAllocateMemory"), fixture.gpu.calls("vkFreeMemory"));
    let before = count();
    what();
    let after = count();
    (after.0 - before.0, after.1 - before.1)
}

/// Calls `maintain`, which makes at most one call of each kind, and reports them.
fn maintain(fixture: &Fixture) -> (u64, u64) {
    let before = fixture.statistics(0).block_bytes;
    let mut maintained = sublet::Maintained::default();
    let calls = driver_calls(fixture, || maintained = fixture.allocator.maintain(&MaintainInfo::default()));
    assert_eq!((maintained.blocks_created.into(), maintained.blocks_freed.into()), calls);
    assert!(calls.0 <= 1 && calls.1 <= 1, "{calls:?}");
    let after = before + maintained.bytes_created - maintained.bytes_freed;
    assert_eq!(fixture.statistics(0).block_bytes, after);
    fixture.validate();
    calls
}

/// Maintains until nothing is left to do.
fn settle(fixture: &Fixture) {
    for _ in 0..SETTLED {
        maintain(fixture);
    }
    assert_eq!(maintain(fixture), (0, 0), "steady usage needs no driver calls");
}

fn piece(fixture: &Fixture, bytes: u64) -> Allocation {
    fixture.memory(bytes, 1, &in_type(0)).unwrap()
}

#[test]
fn frames_that_grow_and_shrink_call_no_driver() {
    for pieces_per_frame in [1, 3] {
        let fixture = plain();
        let mut held = Vec::new();
        for frame in 0..250 {
            let calls = driver_calls(&fixture, || {
                // Each frame also makes and drops something, and replaces something older.
                let passing = piece(&fixture, 3 * MIB);
                for _ in 0..pieces_per_frame {
                    held.push(piece(&fixture, 2 * MIB));
                }
                let at = frame % held.len();
                fixture.free(std::mem::replace(&mut held[at], piece(&fixture, 2 * MIB)));
                fixture.free(passing);
            });
            assert!(frame < 4 || calls == (0, 0), "frame {frame}: {calls:?}");
            maintain(&fixture);
        }
        assert!(fixture.statistics(0).block_count > 3);
        settle(&fixture);
        while !held.is_empty() {
            let left = held.len().saturating_sub(5);
            let calls = driver_calls(&fixture, || fixture.free_all(held.drain(left..)));
            assert_eq!(calls, (0, 0), "{left} pieces left");
            maintain(&fixture);
        }
        settle(&fixture);
        assert!(fixture.statistics(0).block_count <= 1, "one empty block is kept");
    }
}

/// A level that ends in one frame returns its memory block by block, and its blocks serve the next level.
#[test]
fn a_level_that_ends_at_once_returns_block_by_block() {
    let fixture = plain();
    let mut level: Vec<_> = (0..500).map(|_| piece(&fixture, 2 * MIB)).collect();
    maintain(&fixture);
    for _ in 0..3 {
        assert_eq!(driver_calls(&fixture, || fixture.free_all(level.drain(..))), (0, 0));
        (0..5).for_each(|_| assert_eq!(maintain(&fixture), (0, 0)));
        let calls = driver_calls(&fixture, || level.extend((0..500).map(|_| piece(&fixture, 2 * MIB))));
        assert_eq!(calls, (0, 0));
        maintain(&fixture);
    }
    let blocks = usize::try_from(fixture.statistics(0).block_count).unwrap();
    fixture.free_all(level);
    for _ in 0..32 + blocks {
        maintain(&fixture);
    }
    assert!(fixture.statistics(0).block_count <= 1);
}

/// A level that is loaded at once is no growth to expect.
#[test]
fn growth_that_happens_once_creates_nothing() {
    let fixture = plain();
    let level: Vec<_> = (0..300).map(|_| piece(&fixture, 2 * MIB)).collect();
    settle(&fixture);
    assert_eq!(fixture.gpu.calls("vkAllocateMemory"), fixture.statistics(0).block_count);
    fixture.free_all(level);
}

/// After the last call, frees release blocks at once again, as soon as more bytes became empty than there were.
#[test]
fn a_program_that_stops_calling_keeps_no_more_than_it_had() {
    let fixture = plain();
    let load = || -> Vec<_> { (0..500).map(|_| piece(&fixture, 2 * MIB)).collect() };
    let level = load();
    maintain(&fixture);
    let most = fixture.statistics(0).block_bytes;
    fixture.free_all(level);
    assert_eq!(fixture.statistics(0).block_bytes, most);
    let level = load();
    fixture.free_all(level);
    assert!(fixture.statistics(0).block_count <= 1);
    fixture.validate();
}

#[test]
fn a_request_that_would_fail_frees_what_waits() {
    let fixture = plain();
    let heap = fixture.heap_size(0);
    let level: Vec<_> = (0..500).map(|_| piece(&fixture, 2 * MIB)).collect();
    maintain(&fixture);
    fixture.free_all(level);
    let waiting = fixture.statistics(0).block_bytes;
    assert!(waiting >= 1000 * MIB);
    assert_eq!(fixture.allocator.heap_budgets()[0].statistics.block_bytes, waiting);
    let own = in_type_with(0, Flags::DEDICATED_MEMORY);
    let large = fixture.memory(heap - 100 * MIB, 1, &own).unwrap();
    assert_eq!(fixture.statistics(0).block_count, 1);
    fixture.free(large);
    // A trim does not wait either.
    let level: Vec<_> = (0..500).map(|_| piece(&fixture, 2 * MIB)).collect();
    maintain(&fixture);
    fixture.free_all(level);
    assert!(fixture.allocator.trim() > 1000 * MIB);
}

/// Grows by one piece per frame, and returns the driver's calls in `maintain`.
fn grow(fixture: &Fixture, frames: usize, held: &mut Vec<Allocation>) -> u64 {
    let mut calls = 0;
    for _ in 0..frames {
        held.push(piece(fixture, 4 * MIB));
        calls += maintain(fixture).0;
    }
    calls
}

#[test]
fn nothing_is_created_above_the_budget() {
    let gpu = Gpu::new(Profile::by_name("lavapipe").unwrap());
    let options = Options::without_budget(&gpu);
    let fixture = Fixture::with(gpu, &options);
    let budget = fixture.allocator.heap_budgets()[0].budget;
    let mut held = Vec::new();
    while fixture.statistics(0).allocation_bytes < budget - 8 * MIB {
        grow(&fixture, 1, &mut held);
        assert!(fixture.statistics(0).block_bytes <= budget);
    }
    fixture.free_all(held);
}

/// A driver that refuses is not asked again in each frame.
#[test]
fn a_refusal_is_no_reason_to_ask_again() {
    let fixture = plain();
    let mut held = Vec::new();
    assert!(grow(&fixture, 60, &mut held) > 0);
    settle(&fixture);
    fixture.gpu.faults().fail_always("vkAllocateMemory", vk::Result::ERROR_OUT_OF_DEVICE_MEMORY);
    fixture.gpu.reset_calls();
    while let Ok(allocation) = fixture.memory(4 * MIB, 1, &in_type_with(0, Flags::NEVER_ALLOCATE)) {
        held.push(allocation);
        fixture.allocator.maintain(&MaintainInfo::default());
    }
    let refused = fixture.gpu.calls("vkAllocateMemory");
    assert!(refused > 0, "the block was full");
    for _ in 0..50 {
        assert_eq!(fixture.allocator.maintain(&MaintainInfo::default()), sublet::Maintained::default());
    }
    assert_eq!(fixture.gpu.calls("vkAllocateMemory"), refused);
    fixture.gpu.faults().clear();
    fixture.free_all(held);
}

#[test]
fn a_pool_keeps_its_limits() {
    let fixture = plain();
    let info = PoolCreateInfo {
        block_size: 16 * MIB,
        min_block_count: 1,
        max_block_count: 3,
        ..PoolCreateInfo::new(0)
    };
    let pool = fixture.pool(&info).unwrap();
    let in_pool = AllocationCreateInfo::in_pool(&pool);
    let mut held = Vec::new();
    for piece in 0..12 {
        let calls = driver_calls(&fixture, || held.push(fixture.memory(4 * MIB, 1, &in_pool).unwrap()));
        assert!(piece < 4 || calls == (0, 0), "piece {piece}: {calls:?}");
        maintain(&fixture);
    }
    assert_eq!(fixture.allocator.pool_statistics(&pool).unwrap().block_count, 3);
    fixture.free_all(held);
    settle(&fixture);
    assert_eq!(fixture.allocator.pool_statistics(&pool).unwrap().block_count, 1);
    fixture.destroy_pool(pool);
}

#[test]
fn more_calls_are_made_if_the_program_allows_them() {
    let fixture = plain();
    let level: Vec<_> = (0..500).map(|_| piece(&fixture, 2 * MIB)).collect();
    maintain(&fixture);
    fixture.free_all(level);
    let none = MaintainInfo { max_allocations: 0, max_frees: 0, ..MaintainInfo::default() };
    for _ in 0..SETTLED {
        assert_eq!(fixture.allocator.maintain(&none), sublet::Maintained::default());
    }
    let blocks = fixture.statistics(0).block_count;
    let info = MaintainInfo { max_frees: 3, max_time: Duration::MAX, ..MaintainInfo::default() };
    assert_eq!(fixture.allocator.maintain(&info).blocks_freed, 3);
    assert_eq!(fixture.statistics(0).block_count, blocks - 3);
}

/// Calls `maintain`, and returns the number of the driver's calls and their modelled time.
fn modelled(fixture: &Fixture, types: &[u32]) -> (u32, Duration) {
    let bytes = || types.iter().map(|&it| fixture.statistics(it).block_bytes).collect::<Vec<_>>();
    let cost = |memory_type| DriverCost::of(fixture.properties(memory_type));
    let before = bytes();
    fixture.gpu.take_log();
    let maintained = fixture.allocator.maintain(&MaintainInfo::default());
    let created = fixture.gpu.take_log();
    assert_eq!(created.len(), maintained.blocks_created as usize);
    let mut time = Duration::ZERO;
    for call in &created {
        time += cost(call.asked.type_index).allocation(call.asked.size);
    }
    for ((&memory_type, before), after) in types.iter().zip(before).zip(bytes()) {
        let here = created.iter().filter(|call| call.asked.type_index == memory_type);
        let freed = before + here.map(|call| call.asked.size).sum::<u64>() - after;
        if freed > 0 {
            time += cost(memory_type).free(freed);
        }
    }
    assert!(maintained.blocks_created <= 1 && maintained.blocks_freed <= 1, "{maintained:?}");
    (maintained.blocks_created + maintained.blocks_freed, time)
}

/// A program grows in three kinds of memory at once, replaces allocations, and shrinks in one kind while it grows in
/// the others.
#[test]
fn no_call_takes_longer_than_one_block() {
    const FRAMES: usize = 120;
    let fixture = Fixture::new(Profile::by_name("nvidia-h200").unwrap());
    fixture.gpu.log_allocations(true);
    // Device-local, host, and cached host memory, and the pieces by which each grows in a frame of each phase.
    let types = [1, 2, 3];
    let growth: [[i32; 5]; 3] = [[6, 0, -6, 0, 0], [2, 0, 2, -4, 0], [2, 0, 2, -4, 0]];
    let mut held: [Vec<Allocation>; 3] = Default::default();
    let mut most = Duration::ZERO;
    for frame in 0..7 * FRAMES {
        let calls = driver_calls(&fixture, || {
            for ((memory_type, growth), held) in types.into_iter().zip(growth).zip(&mut held) {
                let piece = || fixture.memory(MIB, 1, &in_type(memory_type)).unwrap();
                // Idle at the end, until all blocks were freed one by one.
                let growth = growth[(frame / FRAMES).min(4)];
                (0..growth).for_each(|_| held.push(piece()));
                (growth..0).for_each(|_| fixture.free(held.pop().unwrap()));
                if !held.is_empty() {
                    let at = frame * 7 % held.len();
                    fixture.free(std::mem::replace(&mut held[at], piece()));
                }
            }
        });
        assert!(frame < 16 || calls == (0, 0), "frame {frame}: {calls:?}");
        let (calls, time) = modelled(&fixture, &types);
        let is_steady = frame / FRAMES == 1 && frame % FRAMES > 40;
        assert!(!is_steady || calls == 0, "frame {frame} is steady: {calls}");
        // The longest single call frees a block of cached memory.
        assert!(time <= Duration::from_micros(2_200), "frame {frame}: {time:?}");
        most = most.max(time);
    }
    assert!(most > Duration::from_micros(1_500), "no large block was freed: {most:?}");
    // The bound on memory without maintenance, with nothing in use.
    for memory_type in types {
        let bytes = fixture.statistics(memory_type).block_bytes;
        assert!(bytes <= 8 * MIB, "type {memory_type}: {bytes}");
    }
}

/// A block that the driver refuses is not tried again with other sizes in the same call.
#[test]
fn a_refused_block_is_one_call() {
    let fixture = plain();
    let mut held = Vec::new();
    grow(&fixture, 60, &mut held);
    settle(&fixture);
    fixture.gpu.faults().fail_always("vkAllocateMemory", vk::Result::ERROR_OUT_OF_DEVICE_MEMORY);
    let mut refused = 0;
    while let Ok(allocation) = fixture.memory(4 * MIB, 1, &in_type_with(0, Flags::NEVER_ALLOCATE)) {
        held.push(allocation);
        let calls = driver_calls(&fixture, || {
            fixture.allocator.maintain(&MaintainInfo::default());
        });
        assert!(calls.0 <= 1, "{calls:?}");
        refused += calls.0;
    }
    assert!(refused > 0, "the block was full");
    fixture.gpu.faults().clear();
    fixture.free_all(held);
}

/// Two vectors that run out together get one call, even if the driver refuses it.
#[test]
fn a_refused_block_counts_as_a_call() {
    let fixture = plain();
    let pool = fixture.pool(&PoolCreateInfo::new(0)).unwrap();
    let info = MaintainInfo { max_time: Duration::MAX, ..MaintainInfo::default() };
    let mut held = Vec::new();
    for frame in 0..60 {
        let flags = if frame < 30 { Flags::empty() } else { Flags::NEVER_ALLOCATE };
        let in_pool = AllocationCreateInfo { flags, ..AllocationCreateInfo::in_pool(&pool) };
        for wanted in [in_type_with(0, flags), in_pool] {
            held.extend(fixture.memory(4 * MIB, 1, &wanted));
        }
        if frame == 30 {
            let error = vk::Result::ERROR_OUT_OF_DEVICE_MEMORY;
            fixture.gpu.faults().fail_always("vkAllocateMemory", error);
        }
        let calls = driver_calls(&fixture, || {
            fixture.allocator.maintain(&info);
        });
        assert!(calls.0 <= 1, "frame {frame}: {calls:?}");
    }
    assert!(held.len() < 120, "a block was refused");
    fixture.gpu.faults().clear();
    fixture.free_all(held);
    fixture.destroy_pool(pool);
}

/// While `maintain` waits for the driver, other threads allocate and free.
#[test]
fn nobody_waits_for_maintenance() {
    let fixture = plain();
    let mut held = Vec::new();
    // Until less than the growth of one call is free.
    for _ in 0..6 {
        held.push(piece(&fixture, 5 * MIB));
        fixture.allocator.maintain(&MaintainInfo { max_allocations: 0, ..MaintainInfo::default() });
    }
    let maintain = || assert_eq!(fixture.allocator.maintain(&MaintainInfo::default()).blocks_created, 1);
    fixture.while_in("vkAllocateMemory", maintain, || {
        fixture.free(piece(&fixture, MIB));
        fixture.free(held.pop().unwrap());
    });
    fixture.free_all(held);
}

/// Two threads allocate and free at random while a third maintains, and while memory is reserved and trimmed.
#[test]
fn threads_allocate_while_one_maintains() {
    let fixture = plain();
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let fixture = &fixture;
        let workers: Vec<_> = (0..2)
            .map(|seed| {
                scope.spawn(move || {
                    let mut random = Random::new(seed);
                    let mut held = Vec::new();
                    for _ in 0..from_environment("SUBLET_CASES", 3000) {
                        if held.len() > 100 || random.below(5) < 2 && !held.is_empty() {
                            let at = usize::try_from(random.below(held.len() as u64)).unwrap();
                            fixture.free(held.swap_remove(at));
                        } else {
                            held.push(piece(fixture, random.size(22)));
                        }
                        if random.below(500) == 0 {
                            fixture.free_all(held.drain(..));
                        }
                    }
                    fixture.free_all(held);
                })
            })
            .collect();
        let is_done = &is_done;
        scope.spawn(move || {
            let mut random = Random::new(7);
            while !is_done.load(Ordering::Acquire) {
                let info =
                    MaintainInfo { max_allocations: 2, max_frees: 2, max_time: Duration::from_millis(10) };
                fixture.allocator.maintain(&info);
                match random.below(100) {
                    0 => drop(fixture.allocator.trim()),
                    1 => drop(fixture.allocator.reserve(0, random.size(26))),
                    _ => {}
                }
            }
        });
        workers.into_iter().for_each(|worker| worker.join().unwrap());
        is_done.store(true, Ordering::Release);
    });
    settle(&fixture);
}
