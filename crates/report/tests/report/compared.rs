//! Comparisons of two snapshots.

use std::collections::BTreeSet;

use ash::vk;
use sublet::{AllocationCreateInfo, PoolCreateInfo};
use sublet_report::{Comparison, Matching, Snapshot};

use super::kit::{PROFILES, Program};

#[test]
fn every_allocation_is_new_or_gone_or_kept() {
    for profile in PROFILES {
        let mut program = Program::busy(profile, 150);
        let before = program.snapshot();
        let ids_before: BTreeSet<_> =
            before.allocations().map(|found| found.entry.id.clone().unwrap()).collect();
        // Free half of the buffers, and add others.
        let half = program.buffers.len() / 2;
        for (buffer, memory) in program.buffers.drain(..half) {
            // SAFETY: no device uses it.
            unsafe { program.allocator.destroy_buffer(buffer, memory) }.unwrap();
        }
        let requirements = vk::MemoryRequirements { size: 3000, alignment: 64, memory_type_bits: !0 };
        for _ in 0..20 {
            let info = AllocationCreateInfo { name: Some("late"), ..AllocationCreateInfo::default() };
            program.held.push(program.allocator.allocate_memory(&requirements, &info).unwrap());
        }
        let now = program.snapshot();
        let ids_now: BTreeSet<_> = now.allocations().map(|found| found.entry.id.clone().unwrap()).collect();
        let comparison = Comparison::new(&before, &now);
        assert_eq!(comparison.matching, Matching::Ids);
        let ids = |all: &mut dyn Iterator<Item = &sublet_report::Located<'_>>| -> BTreeSet<_> {
            all.map(|found| found.entry.id.clone().unwrap()).collect()
        };
        assert_eq!(ids(&mut comparison.new.iter()), &ids_now - &ids_before, "{profile}");
        assert_eq!(ids(&mut comparison.gone.iter()), &ids_before - &ids_now);
        assert_eq!(ids(&mut comparison.kept.iter().map(|(_, now)| now)), &ids_now & &ids_before);
        assert!(comparison.kept.iter().all(|(before, now)| before.entry.id == now.entry.id));
        assert_eq!(comparison.gone.len(), half);
        sums_agree(&comparison, &before, &now);
        // The reverse comparison is the mirror image.
        let back = Comparison::new(&now, &before);
        assert_eq!((&back.new, &back.gone), (&comparison.gone, &comparison.new));
        assert_eq!(back.total.growth(), -comparison.total.growth());
        program.finish();
    }
}

fn sums_agree(comparison: &Comparison<'_>, before: &Snapshot, now: &Snapshot) {
    assert_eq!(comparison.total.before, before.statistics().total.statistics);
    assert_eq!(comparison.total.now, now.statistics().total.statistics);
    let growth = comparison.total.growth();
    assert_eq!(comparison.heaps.iter().map(|heap| heap.growth()).sum::<i64>(), growth);
    assert_eq!(comparison.vectors.iter().map(|vector| vector.change.growth()).sum::<i64>(), growth);
    assert_eq!(comparison.names.iter().map(|name| name.growth()).sum::<i64>(), growth);
    let bytes = |all: &[sublet_report::Located<'_>]| all.iter().map(|found| found.size as i64).sum::<i64>();
    assert_eq!(bytes(&comparison.new) - bytes(&comparison.gone), growth);
}

#[test]
fn without_ids_places_and_names_tell() {
    let mut program = Program::busy("nvidia-gtx-1060", 100);
    let mut before = program.snapshot();
    before.run = Some("another run".into());
    let same = program.snapshot();
    let comparison = Comparison::new(&before, &same);
    assert_eq!(comparison.matching, Matching::Places);
    assert!(comparison.new.is_empty() && comparison.gone.is_empty());
    // This schema has no ids.
    let read = Snapshot::from_json(&sublet_report::stats_string(&program.allocator, true)).unwrap();
    let (buffer, memory) = program.buffers.pop().unwrap();
    let (offset, size) = (memory.offset(), memory.size());
    // SAFETY: no device uses it.
    unsafe { program.allocator.destroy_buffer(buffer, memory) }.unwrap();
    let now = Snapshot::from_json(&sublet_report::stats_string(&program.allocator, true)).unwrap();
    let comparison = Comparison::new(&read, &now);
    assert_eq!(comparison.matching, Matching::Places);
    assert_eq!((comparison.new.len(), comparison.gone.len()), (0, 1));
    assert!(
        comparison.gone[0].size >= size
            && (comparison.gone[0].offset == offset || comparison.gone[0].block.is_none())
    );
    program.finish();
}

#[test]
fn another_name_in_the_same_place_is_another_allocation() {
    let program = Program::busy("lavapipe", 5);
    let before = program.snapshot();
    let mut now = before.clone();
    now.run = None;
    let entry =
        now.vectors.iter_mut().flat_map(|vector| &mut vector.blocks).flat_map(|block| &mut block.chunks);
    entry.filter_map(|chunk| chunk.allocation.as_mut()).next().unwrap().name = Some("renamed".into());
    let comparison = Comparison::new(&before, &now);
    assert_eq!((comparison.new.len(), comparison.gone.len()), (1, 1));
    assert_eq!(comparison.new[0].entry.name.as_deref(), Some("renamed"));
    let mut by_ids = now.clone();
    by_ids.run = before.run.clone();
    assert!(Comparison::new(&before, &by_ids).new.is_empty(), "by its id it is the same");
    program.finish();
}

#[test]
fn pools_come_and_go() {
    let program = Program::on("lavapipe");
    let named = |name| PoolCreateInfo {
        name: Some(name),
        min_block_count: 1,
        block_size: 1 << 16,
        ..PoolCreateInfo::new(0)
    };
    let first = program.allocator.create_pool(&named("first")).unwrap();
    let before = program.snapshot();
    // SAFETY: nothing is in it.
    unsafe { program.allocator.destroy_pool(first) }.unwrap();
    // It reuses the number of the first pool, and is a different pool.
    let second = program.allocator.create_pool(&named("second")).unwrap();
    let now = program.snapshot();
    let comparison = Comparison::new(&before, &now);
    let pools: Vec<_> = comparison
        .vectors
        .iter()
        .filter(|vector| vector.pool.is_some())
        .map(|vector| {
            (vector.name.as_deref().unwrap(), vector.was_there, vector.is_there, vector.change.block_growth())
        })
        .collect();
    assert_eq!(pools, [("second", false, true, 1 << 16), ("first", true, false, -(1 << 16))]);
    // SAFETY: as above.
    unsafe { program.allocator.destroy_pool(second) }.unwrap();
    program.finish();
}

#[test]
fn names_that_changed_most_come_first() {
    let program = Program::on("lavapipe");
    let allocate = |name, size| {
        let requirements = vk::MemoryRequirements { size, alignment: 8, memory_type_bits: !0 };
        let info = AllocationCreateInfo { name: Some(name), ..AllocationCreateInfo::default() };
        program.allocator.allocate_memory(&requirements, &info).unwrap()
    };
    // SAFETY: nothing was bound to it.
    let free = |allocation| unsafe { program.allocator.free_memory(allocation) }.unwrap();
    let (menu, font) = (allocate("menu", 5120), allocate("font", 1024));
    let before = program.snapshot();
    free(menu);
    let level = allocate("level", 2048);
    let now = program.snapshot();
    let comparison = Comparison::new(&before, &now);
    let names: Vec<_> =
        comparison.names.iter().map(|it| (it.name.as_deref().unwrap(), it.growth())).collect();
    assert_eq!(names, [("menu", -5120), ("level", 2048), ("font", 0)]);
    assert_eq!((comparison.names[0].count_before, comparison.names[0].count_now), (1, 0));
    [font, level].into_iter().for_each(free);
    program.finish();
}

#[test]
fn a_comparison_goes_out_as_json() {
    let program = Program::busy("lavapipe", 60);
    let (before, now) = (Program::on("lavapipe").snapshot(), program.snapshot());
    let comparison = Comparison::new(&before, &now);
    let json = serde_json::to_value(&comparison).unwrap();
    assert_eq!(json["matching"], "places", "of two allocators");
    assert_eq!(json["new"].as_array().unwrap().len(), now.allocations().count());
    assert_eq!(json["total"]["growth"], comparison.total.growth());
    assert_eq!(json["new"][0]["allocation"]["id"], comparison.new[0].entry.id.as_deref().unwrap());
    assert_eq!(json["kept"]["count"], 0);
    program.finish();
}
