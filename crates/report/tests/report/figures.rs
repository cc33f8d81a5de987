//! The figures of a snapshot.

use ash::vk;
use sublet::{
    AllocationCreateInfo, DefragmentationAlgorithm, DefragmentationInfo, MoveError, PoolCreateInfo,
};
use sublet_report::{Fragmentation, Group, Snapshot, suspected_leaks};

use super::kit::{MIB, PROFILES, Program, small};

#[test]
fn statistics_are_the_allocator_s() {
    for profile in PROFILES {
        let program = Program::busy(profile, 300);
        let snapshot = program.snapshot();
        let all = program.allocator.calculate_statistics();
        assert_eq!(snapshot.statistics(), all, "{profile}");
        let figures = snapshot.figures();
        let dedicated = |heap: usize| {
            let vectors = snapshot.vectors.iter().filter(move |vector| vector.heap as usize == heap);
            vectors.flat_map(|vector| &vector.dedicated)
        };
        for (heap, (sums, figures)) in all.memory_heaps.iter().zip(&figures.heaps).enumerate() {
            let own: u64 = dedicated(heap).map(|it| it.size).sum();
            let count = dedicated(heap).count() as u64;
            assert_eq!(figures.blocks + count, sums.statistics.block_count);
            assert_eq!(figures.block_bytes + own, sums.statistics.block_bytes);
            assert_eq!(figures.allocations + count, sums.statistics.allocation_count);
            assert_eq!(figures.used_bytes + own, sums.statistics.allocation_bytes);
            assert_eq!(figures.free_bytes, sums.statistics.unused_bytes());
            assert_eq!(figures.free_ranges, sums.unused_range_count);
            assert_eq!(figures.largest_free, sums.unused_range_size_max);
        }
        program.finish();
    }
}

#[test]
fn sums_of_vectors_types_and_heaps_agree() {
    for profile in PROFILES {
        let program = Program::busy(profile, 200);
        let figures = program.snapshot().figures();
        for parts in [&figures.vectors, &figures.types, &figures.heaps] {
            let mut sum = Fragmentation::default();
            parts.iter().for_each(|part| sum.add(part));
            assert_eq!(sum, figures.total, "{profile}");
        }
        program.finish();
    }
}

/// Returns the figures of blocks whose chunks are given as sizes: `+` used, `-` free.
fn figures_of(blocks: &[&[i64]]) -> Fragmentation {
    let mut map = small();
    let blocks = blocks.iter().enumerate().map(|(id, sizes)| {
        let mut end = 0;
        let chunks: Vec<_> = sizes
            .iter()
            .map(|size| {
                let (offset, bytes) = (end, size.unsigned_abs());
                end += bytes;
                let allocation =
                    (*size > 0).then(|| serde_json::json!({ "id": null, "kind": "UNKNOWN", "usage": 0 }));
                serde_json::json!({ "offset": offset, "size": bytes, "allocation": allocation })
            })
            .collect();
        serde_json::json!({ "id": id, "size": end, "map_count": 0, "chunks": chunks })
    });
    map["vectors"][0]["blocks"] = blocks.collect();
    let snapshot = Snapshot::from_json(&map.to_string()).unwrap();
    Fragmentation::of(&snapshot.vectors[0])
}

#[test]
fn fragmentation_is_as_the_formulas_say() {
    let figures = figures_of(&[&[10, -20, 30, -40], &[-100], &[-7, 3, -90]]);
    assert_eq!(
        (figures.blocks, figures.block_bytes, figures.allocations, figures.used_bytes),
        (3, 300, 3, 43)
    );
    assert_eq!((figures.free_ranges, figures.free_bytes, figures.largest_free), (5, 257, 100));
    assert_eq!(figures.in_largest_bytes, 100);
    assert_eq!((figures.empty_blocks, figures.empty_bytes), (1, 100));
    assert_eq!((figures.lonely_blocks, figures.lonely_bytes, figures.lonely_used_bytes), (1, 100, 3));
    assert!((figures.free_share() - 257.0 / 300.0).abs() < 1e-12);
    assert!((figures.scatter() - 157.0 / 257.0).abs() < 1e-12);
}

#[test]
fn one_free_range_is_not_scattered_and_nothing_free_neither() {
    assert_eq!(figures_of(&[&[10, -20]]).scatter(), 0.0);
    assert_eq!(figures_of(&[&[10]]).scatter(), 0.0);
    assert_eq!(figures_of(&[]), Fragmentation::default());
    assert_eq!(figures_of(&[]).free_share(), 0.0);
    // Two equal ranges: half of the free bytes are outside the largest.
    assert_eq!(figures_of(&[&[-5, 10, -5]]).scatter(), 0.5);
    assert_eq!(figures_of(&[&[-5], &[-5]]).scatter(), 0.5);
}

#[test]
fn blocks_that_others_have_room_for_can_go() {
    let removable = |blocks: &[&[i64]]| {
        let figures = figures_of(blocks);
        (figures.removable_blocks, figures.removable_bytes)
    };
    assert_eq!(removable(&[&[10, -90], &[80, -20]]), (1, 100));
    assert_eq!(removable(&[&[10, -90], &[95, -5]]), (0, 0), "no range is large enough");
    assert_eq!(removable(&[&[10, -90], &[46, -4, 46, -4]]), (0, 0), "nor two small ones");
    assert_eq!(removable(&[&[10, -90]]), (0, 0), "there is no other block");
    assert_eq!(removable(&[&[10, -90], &[-100]]), (0, 0), "an empty block would only be exchanged for one");
    assert_eq!(removable(&[&[10, -90], &[10, -90], &[10, -90], &[10, -90]]), (3, 300));
    assert_eq!(removable(&[&[10, 10, 10, -70], &[80, -10, 5, -15]]), (0, 0), "all or nothing");
    assert_eq!(removable(&[&[10, 10, -80], &[80, -10, 5, -15]]), (1, 100));
    // A range that one block's allocations fill is not available to the next block.
    assert_eq!(removable(&[&[20, -80], &[20, -80], &[175, -25]]), (1, 100), "25 take one of them");
    assert_eq!(removable(&[&[60, -40], &[60, -40], &[37, -63]]), (1, 100));
}

#[test]
fn linear_pools_are_not_defragmented() {
    let mut map = small();
    let block = |id: u32| {
        serde_json::json!({ "id": id, "size": 100, "map_count": 0, "chunks": [
            { "offset": 0, "size": 10, "allocation": { "kind": "BUFFER", "usage": 0 } },
            { "offset": 10, "size": 90, "allocation": null } ] })
    };
    map["vectors"][1]["blocks"] = serde_json::json!([block(0), block(1)]);
    assert_eq!(Snapshot::from_json(&map.to_string()).unwrap().figures().vectors[1].removable_blocks, 0);
    map["vectors"][1]["algorithm"] = serde_json::json!("Tlsf");
    assert_eq!(Snapshot::from_json(&map.to_string()).unwrap().figures().vectors[1].removable_blocks, 1);
}

#[test]
fn blocks_that_the_rest_has_room_without_are_removable() {
    let mut program = Program::on("lavapipe");
    let info = PoolCreateInfo { block_size: 1 << 16, ..PoolCreateInfo::new(0) };
    program.pools.push(program.allocator.create_pool(&info).unwrap());
    let requirements = vk::MemoryRequirements { size: 4096, alignment: 4096, memory_type_bits: !0 };
    for _ in 0..16 * 8 {
        let info = AllocationCreateInfo::in_pool(&program.pools[0]);
        program.held.push(program.allocator.allocate_memory(&requirements, &info).unwrap());
    }
    let mut at = 0;
    for allocation in std::mem::take(&mut program.held) {
        at += 1;
        if at % 4 == 0 {
            program.held.push(allocation);
        } else {
            // SAFETY: nothing was bound to it.
            unsafe { program.allocator.free_memory(allocation) }.unwrap();
        }
    }
    let figures = program.snapshot().figures().total;
    assert_eq!((figures.blocks, figures.allocations), (8, 32));
    assert_eq!(figures.removable_blocks, 6, "a quarter of eight blocks is two");
    program.finish();
}

/// Blocks with many random sizes, most of them freed. An estimate that spreads allocations over all blocks finds one
/// removable block. Defragmentation empties most of them.
#[test]
fn what_defragmentation_could_free_is_about_what_it_frees() {
    let mut worst = 0.0_f64;
    for seed in 0..8 {
        let mut program = Program::on("nvidia-rtx-5070-ti");
        let random = &mut fastrand::Rng::with_seed(seed);
        let block_size = (8 * MIB) << (seed % 3);
        let info = PoolCreateInfo { block_size, empty_blocks_kept: 0, ..PoolCreateInfo::new(0) };
        program.pools.push(program.allocator.create_pool(&info).unwrap());
        let pool = &program.pools[0];
        while program.allocator.pool_statistics(pool).unwrap().block_count < 9 {
            let size = random.u64(4096..block_size / 16);
            let needed = vk::MemoryRequirements { size, alignment: 256, memory_type_bits: !0 };
            let info = AllocationCreateInfo::in_pool(pool);
            program.held.push(program.allocator.allocate_memory(&needed, &info).unwrap());
        }
        for allocation in std::mem::take(&mut program.held) {
            if random.u64(..100) < 20 + 10 * seed {
                // SAFETY: nothing was bound to it.
                unsafe { program.allocator.free_memory(allocation) }.unwrap();
            } else {
                program.held.push(allocation);
            }
        }
        program.allocator.trim();
        let figures = program.snapshot().figures().total;
        let info = DefragmentationInfo {
            pools: &[pool],
            algorithm: DefragmentationAlgorithm::Full,
            ..Default::default()
        };
        let mut defragmentation = program.allocator.begin_defragmentation(&info).unwrap();
        while let Some(pass) = defragmentation.begin_pass() {
            for moved in pass {
                let at = program.held.iter().position(|held| held.id() == moved.source()).unwrap();
                // SAFETY: nothing was bound to it.
                unsafe { moved.complete(&mut program.held[at]) }.map_err(MoveError::from).unwrap();
            }
        }
        let freed = defragmentation.end();
        println!("seed {seed}: estimated {}, freed {}", figures.removable_blocks, freed.blocks_freed);
        assert!(freed.blocks_freed > 0 || seed == 0, "the program leaves something to gain");
        let off = (figures.removable_bytes as f64 - freed.bytes_freed as f64).abs();
        worst = worst.max(off / block_size as f64);
        program.finish();
    }
    assert!(worst <= 1.0, "the estimate is off by {worst} blocks of about five");
}

#[test]
fn the_largest_come_first_and_equals_in_order() {
    let program = Program::busy("lavapipe", 200);
    let snapshot = program.snapshot();
    let largest = snapshot.largest(20);
    assert_eq!(largest.len(), 20);
    assert!(largest.windows(2).all(|pair| pair[0].size >= pair[1].size));
    let smallest = largest[19].size;
    assert!(snapshot.allocations().filter(|found| found.size > smallest).count() < 20);
    assert_eq!(snapshot.largest(100_000).len(), snapshot.allocations().count());
    assert!(snapshot.largest(0).is_empty());
    program.finish();
}

#[test]
fn groups_add_up() {
    let program = Program::busy("nvidia-gtx-1060", 300);
    let snapshot = program.snapshot();
    let all = snapshot.statistics().total.statistics;
    for groups in [
        Group::by_name(snapshot.allocations()),
        Group::by_caller(snapshot.allocations()),
        Group::by_kind(snapshot.allocations()),
    ] {
        assert_eq!(groups.iter().map(|group| group.count).sum::<u64>(), all.allocation_count);
        assert_eq!(groups.iter().map(|group| group.bytes).sum::<u64>(), all.allocation_bytes);
        assert!(groups.windows(2).all(|pair| pair[0].bytes >= pair[1].bytes));
        assert!(groups.len() > 1);
    }
    let unnamed = Group::by_name(snapshot.allocations()).into_iter().find(|group| group.label.is_none());
    let count = snapshot.allocations().filter(|found| found.entry.name.is_none()).count();
    assert_eq!(unnamed.unwrap().count, count as u64);
    assert!(Group::by_caller(snapshot.allocations())[0].label.as_deref().unwrap().contains("kit.rs:"));
    program.finish();
}

#[test]
fn what_came_and_stayed_is_suspected() {
    let program = Program::on("lavapipe");
    let requirements = vk::MemoryRequirements { size: 1000, alignment: 8, memory_type_bits: !0 };
    let allocate = |name| {
        let info = AllocationCreateInfo { name: Some(name), ..AllocationCreateInfo::default() };
        program.allocator.allocate_memory(&requirements, &info).unwrap()
    };
    // SAFETY: nothing was bound to it.
    let free = |allocation| unsafe { program.allocator.free_memory(allocation) }.unwrap();
    let names = |snapshots: &[&Snapshot]| -> Vec<String> {
        let suspects = suspected_leaks(snapshots);
        suspects.iter().map(|found| found.entry.name.as_deref().unwrap().to_owned()).collect()
    };
    let old = allocate("there from the start");
    let first = program.snapshot();
    let (short, leak) = (allocate("short-lived"), allocate("leak"));
    let second = program.snapshot();
    free(short);
    let late = allocate("late");
    let third = program.snapshot();
    assert_eq!(names(&[]), [""; 0]);
    assert_eq!(names(&[&first]), [""; 0]);
    assert_eq!(names(&[&first, &second]), ["short-lived", "leak"]);
    assert_eq!(names(&[&first, &second, &third]), ["leak"]);
    assert_eq!(names(&[&first, &third]), ["late", "leak"]);
    free(leak);
    let fourth = program.snapshot();
    assert_eq!(names(&[&first, &second, &third, &fourth]), [""; 0]);
    [old, late].into_iter().for_each(free);
    program.finish();
}

#[test]
fn figures_go_out_as_json_with_their_ratios() {
    let program = Program::busy("lavapipe", 50);
    let snapshot = program.snapshot();
    let figures = snapshot.figures();
    let json = serde_json::to_value(&figures).unwrap();
    assert_eq!(json["total"]["free_bytes"], figures.total.free_bytes);
    assert_eq!(json["heaps"][0]["scatter"], figures.heaps[0].scatter());
    assert_eq!(json["vectors"].as_array().unwrap().len(), snapshot.vectors.len());
    program.finish();
}
