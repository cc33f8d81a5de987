//! Defragmentations in a trace.

use ash::vk;
use sublet::trace::{AllocationNumber, DefragmentationNumber, Event, MoveOutcome, PoolNumber, Trace};
use sublet::{
    Allocation, AllocationCreateFlags as Flags, AllocationCreateInfo, Allocator, DefragmentationAlgorithm,
    DefragmentationInfo, MemoryUsage, Pool, PoolCreateInfo,
};

use crate::fixture::*;

/// Returns a pool with four blocks of 1 MiB, each a quarter used. The allocations are numbered in order.
fn sparse_pool(allocator: &Allocator, memory_type: u32, flags: Flags) -> (Pool, Vec<(u32, Allocation)>) {
    let pool = allocator
        .create_pool(&PoolCreateInfo { block_size: MIB, ..PoolCreateInfo::new(memory_type) })
        .unwrap();
    let asked = AllocationCreateInfo { flags, ..AllocationCreateInfo::in_pool(&pool) };
    let mut kept = Vec::new();
    let all: Vec<_> =
        (0..64).map(|_| allocator.allocate_memory(&requirements(64 * KIB), &asked).unwrap()).collect();
    for (number, allocation) in (0..).zip(all) {
        if number % 4 == 1 {
            kept.push((number, allocation));
        } else {
            free(allocator, allocation);
        }
    }
    (pool, kept)
}

fn host_visible(allocator: &Allocator) -> u32 {
    allocator.find_memory_type_index(u32::MAX, &AllocationCreateInfo::new(MemoryUsage::CpuOnly)).unwrap()
}

fn moves(trace: &Trace) -> Vec<(AllocationNumber, MoveOutcome)> {
    let moves = trace.records.iter().filter_map(|record| match record.event {
        Event::Move { defragmentation: DefragmentationNumber(0), allocation, outcome } => {
            Some((allocation, outcome))
        }
        _ => None,
    });
    moves.collect()
}

#[test]
fn a_defragmentation_is_recorded_move_by_move() {
    let gpu = gpu();
    let allocator = allocator(&gpu);
    let memory_type = host_visible(&allocator);
    let mut expected = Vec::new();
    let mut passes = Vec::new();
    let trace = recorded(&allocator, || {
        let (pool, mut kept) = sparse_pool(&allocator, memory_type, Flags::empty());
        let pools = [&pool];
        let info = DefragmentationInfo {
            algorithm: DefragmentationAlgorithm::Full,
            pools: &pools,
            max_allocations_per_pass: 5,
            ..Default::default()
        };
        let mut defragmentation = allocator.begin_defragmentation(&info).unwrap();
        let mut turn = 0;
        loop {
            let Some(pass) = defragmentation.begin_pass() else {
                passes.push(0);
                break;
            };
            passes.push(u32::try_from(pass.len()).unwrap());
            for moved in pass {
                let at = kept.iter().position(|(_, allocation)| allocation.id() == moved.source()).unwrap();
                let number = AllocationNumber(kept[at].0);
                turn += 1;
                let outcome = match turn {
                    2 => {
                        moved.ignore();
                        MoveOutcome::Ignored
                    }
                    3 => {
                        let (_, allocation) = kept.swap_remove(at);
                        // SAFETY: nothing was bound to it.
                        unsafe { moved.free(allocation) }.unwrap();
                        MoveOutcome::Freed
                    }
                    4 => {
                        drop(moved);
                        MoveOutcome::RolledBack
                    }
                    _ => {
                        // SAFETY: as above.
                        unsafe { moved.complete(&mut kept[at].1) }.unwrap();
                        MoveOutcome::Completed
                    }
                };
                expected.push((number, outcome));
            }
        }
        assert!(defragmentation.end().allocations_moved > 0);
        // Freed under their new ids.
        kept.into_iter().for_each(|(_, allocation)| free(&allocator, allocation));
        // SAFETY: the pool is empty.
        unsafe { allocator.destroy_pool(pool) }.unwrap();
    });
    assert!(expected.len() > 5, "{expected:?}");
    assert_eq!(moves(&trace), expected);
    assert_eq!(trace.unknown_events, 0);
    let begin = trace.records.iter().find_map(|record| match &record.event {
        Event::BeginDefragmentation(begin) => Some((**begin).clone()),
        _ => None,
    });
    let begin = begin.unwrap();
    assert_eq!(begin.algorithm, DefragmentationAlgorithm::Full);
    assert_eq!((begin.pools, begin.max_allocations_per_pass), (vec![PoolNumber(0)], 5));
    let recorded: Vec<_> = trace
        .records
        .iter()
        .filter_map(|record| match record.event {
            Event::BeginPass { moves, .. } => Some(moves),
            _ => None,
        })
        .collect();
    assert_eq!(recorded, passes);
    let ends =
        |wanted: fn(&Event) -> bool| trace.records.iter().filter(|record| wanted(&record.event)).count();
    assert_eq!(ends(|event| matches!(event, Event::EndPass { .. })), passes.len() - 1);
    assert_eq!(ends(|event| matches!(event, Event::EndDefragmentation { .. })), 1);
    // All 64, except the one that a move freed.
    assert_eq!(ends(|event| matches!(event, Event::Free { .. })), 63);
}

/// Destinations reserved for moves are not recorded as allocations, whatever the outcome of the moves.
#[test]
fn a_recording_may_begin_between_the_plan_of_moves_and_what_becomes_of_them() {
    let gpu = gpu();
    let allocator = allocator(&gpu);
    let (pool, mut kept) = sparse_pool(&allocator, host_visible(&allocator), Flags::empty());
    let pools = [&pool];
    let info = DefragmentationInfo {
        algorithm: DefragmentationAlgorithm::Full,
        pools: &pools,
        ..Default::default()
    };
    let mut defragmentation = allocator.begin_defragmentation(&info).unwrap();
    let planned: Vec<_> = defragmentation.begin_pass().unwrap().collect();
    let (living, count) = (kept.len(), planned.len());
    assert!(count >= 4, "{count}");
    let mut completed = 0;
    let trace = recorded(&allocator, || {
        for (turn, moved) in planned.into_iter().enumerate() {
            let at = kept.iter().position(|(_, allocation)| allocation.id() == moved.source()).unwrap();
            match turn {
                0 => moved.ignore(),
                1 => drop(moved),
                2 => {
                    let (_, allocation) = kept.swap_remove(at);
                    // SAFETY: nothing was bound to it.
                    unsafe { moved.free(allocation) }.unwrap();
                }
                _ => {
                    // SAFETY: as above.
                    unsafe { moved.complete(&mut kept[at].1) }.unwrap();
                    completed += 1;
                }
            }
        }
        kept.into_iter().for_each(|(_, allocation)| free(&allocator, allocation));
    });
    drop(defragmentation);
    let count_of =
        |wanted: fn(&Event) -> bool| trace.records.iter().filter(|record| wanted(&record.event)).count();
    assert_eq!(count_of(|event| matches!(event, Event::Existing(_))), living);
    assert_eq!(count_of(|event| matches!(event, Event::Free { .. })), living);
    // The start of the defragmentation was not recorded, so its moves are not recorded either, except the one that
    // freed.
    assert_eq!(count_of(|event| matches!(event, Event::Move { .. })), 0);
    assert!(completed > 0);
    // SAFETY: the pool is empty.
    unsafe { allocator.destroy_pool(pool) }.unwrap();
}

/// The recorder writes the success of the move in advance. The reader corrects the outcome.
#[test]
fn a_move_that_cannot_be_completed_is_recorded_as_what_it_became() {
    let gpu = gpu();
    let allocator = allocator(&gpu);
    let memory_type = host_visible(&allocator);
    let mut failed = 0;
    let trace = recorded(&allocator, || {
        let info = PoolCreateInfo { block_size: MIB, ..PoolCreateInfo::new(memory_type) };
        let pool = allocator.create_pool(&info).unwrap();
        let pools = [&pool];
        let mut kept = Vec::new();
        let mut freed = Vec::new();
        for number in 0..64 {
            // Only the last block is mapped, so a move must map the destination block.
            let flags = if number >= 48 { Flags::MAPPED } else { Flags::empty() };
            let asked = AllocationCreateInfo { flags, ..AllocationCreateInfo::in_pool(&pool) };
            let allocation = allocator.allocate_memory(&requirements(64 * KIB), &asked).unwrap();
            let is_kept = if number >= 48 { number == 49 } else { number % 4 == 1 };
            if is_kept { kept.push((number, allocation)) } else { freed.push(allocation) }
        }
        freed.into_iter().for_each(|allocation| free(&allocator, allocation));
        let info = DefragmentationInfo { pools: &pools, ..Default::default() };
        let mut defragmentation = allocator.begin_defragmentation(&info).unwrap();
        gpu.faults().fail_always("vkMapMemory", vk::Result::ERROR_MEMORY_MAP_FAILED);
        while let Some(pass) = defragmentation.begin_pass() {
            for moved in pass {
                let at = kept.iter().position(|(_, allocation)| allocation.id() == moved.source()).unwrap();
                // SAFETY: nothing was bound to it.
                if let Err(error) = unsafe { moved.complete(&mut kept[at].1) } {
                    failed += 1;
                    error.unfinished.ignore();
                }
            }
        }
        defragmentation.end();
        kept.into_iter().for_each(|(_, allocation)| free(&allocator, allocation));
        // SAFETY: the pool is empty.
        unsafe { allocator.destroy_pool(pool) }.unwrap();
    });
    let ignored = moves(&trace).iter().filter(|(_, outcome)| *outcome == MoveOutcome::Ignored).count();
    assert!(failed > 0, "no move had to map anything");
    assert_eq!(ignored, failed);
    let frees = trace.records.iter().filter(|record| matches!(record.event, Event::Free { .. })).count();
    assert_eq!((frees, trace.unknown_events), (64, 0));
}
